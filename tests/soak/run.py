"""Attacks that take long: forks, exits, killed saves and damaged files, again and again. `make soak` runs them.

`python tests/soak/run.py [SECONDS] [NAME ...]` gives each attack so many seconds (300), and at least the rounds of
`LEAST`, and prints what it counted. The exit status is 1 if one of them found something.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))

from processes import PRELUDE

# When to end, the least number of rounds, and a folder of its own; answers what it counted.
Attack = Callable[[float, int, str], Counter[str]]
MODES = ("adaptive", "async", "sync")
# A child that is forked beside everything computes, records and writes; `forks` ends one that hangs.
FORKS = """
mode, seed = sys.argv[1], int(sys.argv[2])
_core.set_engine_mode(mode)
rng = onp.random.default_rng(seed)
n = int(rng.choice([10, 3000, 60_000, 400_000]))
x, w, stop = np.ones((n,)), np.ones((n,)), threading.Event()
w.attach_grad()

def train():
    with autograd.record():
        z = (w * x).sum()
    try:
        z.backward()
    except mx.error.AutogradError:
        # Another thread has written x meanwhile.
        assert len(set(chosen)) > 1

WORK = [train, lambda: np.add(x, 1, out=x), lambda: x.asnumpy(), lambda: np.sort(x),
        lambda: npx.save(f"{seed}", {"x": x}), lambda: np.cumsum(x), lambda: x.__setitem__(slice(None), 3)]

def loop(work):
    while not stop.is_set():
        work()

chosen = [WORK[i] for i in rng.integers(0, len(WORK), 2)]
threads = [threading.Thread(target=loop, args=(work,)) for work in chosen]
for thread in threads:
    thread.start()
for _ in range(10):
    time.sleep(float(rng.random()) * 0.02)
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        found = x.asnumpy()
        assert (found == found[0]).all()
        x[:] = 2
        w.grad[:] = 1
        train()
        os._exit(int(x.sum().item() != 2 * n))
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        print("child", status, mode, seed, flush=True)
        os._exit(1)
stop.set()
for thread in threads:
    thread.join()
"""
EXITS = """
_core.set_engine_mode(sys.argv[1])
seed = int(sys.argv[2])

def work(k):
    rng = onp.random.default_rng(k)
    x, w = np.ones((100,)), np.ones((100,))
    w.attach_grad()
    while True:
        match rng.integers(0, 6):
            case 0:
                x = x * 1.0 + 0
            case 1:
                np.cumsum(np.ones((50_000,))).sum().item()
            case 2:
                with autograd.record():
                    z = (w * w).sum()
                z.backward()
            case 3:
                onp.asarray(x).sum(), x.tolist(), repr(x[:3])
            case 4:
                np.array([[1.0, 2], [3, 4]]) @ np.ones((2, 2))
            case _:
                np.random.uniform(size=(1000,)), mx.waitall()

for k in range(6):
    threading.Thread(target=work, args=(k,), daemon=True).start()
time.sleep(random.Random(seed).random() * 0.15)
"""
SAVES = """
x = np.ones((500_000,))
npx.save("a", {"x": x})
np.save("b.npy", x)
np.savez("c.npz", x=x)
print("ready", flush=True)
while True:
    npx.save("a", {"x": x})
    np.save("b.npy", x)
    np.savez("c.npz", x=x)
"""


# A program that hangs ends with the stacks of its threads.
HANGS = "import faulthandler, random\nfaulthandler.dump_traceback_later(100, exit=True)\n"


def _run(program: str, arguments: list[str], folder: str) -> str:
    """How a program ended, in a word."""
    try:
        done = subprocess.run(
            # Python 3.12 warns of every fork beside threads.
            [
                sys.executable,
                "-W",
                "ignore::DeprecationWarning",
                "-c",
                PRELUDE + HANGS + program,
                *arguments,
            ],
            capture_output=True,
            text=True,
            timeout=120,
            cwd=folder,
            check=False,
        )
    except subprocess.TimeoutExpired:
        print(arguments, "hangs", flush=True)
        return "hangs"
    if done.returncode == 0 and not done.stderr:
        return "ok"
    print(arguments, done.returncode, done.stdout, done.stderr[-2000:], flush=True)
    return f"exit {done.returncode}"


def _repeated(program: str) -> Attack:
    def attack(end: float, least: int, folder: str) -> Counter[str]:
        found: Counter[str] = Counter()
        seed = 0
        while seed < least or time.monotonic() < end:
            found[_run(program, [MODES[seed % 3], str(seed)], folder)] += 1
            seed += 1
        return found

    return attack


def _killed_saves(end: float, least: int, folder: str) -> Counter[str]:
    found: Counter[str] = Counter()
    rng = random.Random(3)
    check = (
        "assert (npx.load('a')['x'] == 1).all() and (np.load('b.npy') == 1).all()\n"
        "assert (np.load('c.npz')['x'] == 1).all()\n"
        "for name, save in (('a', lambda x: npx.save('a', {'x': x})), ('b.npy', lambda x: np.save('b.npy', x)),\n"
        "                   ('c.npz', lambda x: np.savez('c.npz', x=x))):\n"
        "    save(np.ones((500_000,)))\n"
        "assert sorted(os.listdir()) == ['a', 'b.npy', 'c.npz'], os.listdir()\n"
    )
    while found.total() < least or time.monotonic() < end:
        savers = [
            subprocess.Popen([sys.executable, "-c", PRELUDE + SAVES], cwd=folder, stdout=subprocess.PIPE)
            for _ in range(2)
        ]
        for saver in savers:
            saver.stdout.readline()
        time.sleep(rng.random() * 0.05)
        for saver in savers:
            saver.send_signal(signal.SIGKILL)
            saver.wait()
            saver.stdout.close()
        found[_run(check, [], folder)] += 1
    return found


def _damaged_files(end: float, least: int, folder: str) -> Counter[str]:
    from mxnet import np, npx

    found: Counter[str] = Counter()
    rng = random.Random(4)
    os.chdir(folder)
    npx.save("a", {"x": np.arange(50), "y": np.ones((3, 4), dtype="bfloat16")})
    np.save("b.npy", np.arange(50))
    np.savez("c.npz", x=np.arange(50))
    whole = {name: Path(name).read_bytes() for name in ("a", "b.npy", "c.npz")}
    while found.total() < least or time.monotonic() < end:
        for name, content in whole.items():
            damaged = bytearray(content)
            for _ in range(rng.randrange(1, 6)):
                at = rng.randrange(len(damaged))
                damaged[at : at + rng.randrange(0, 3)] = rng.randbytes(rng.randrange(0, 4))
            Path("damaged").write_bytes(damaged)
            try:
                loaded = npx.load("damaged")
                {k: v.tolist() for k, v in loaded.items()} if isinstance(loaded, dict) else loaded.tolist()
                found[f"{name} is read"] += 1
            except (OSError, ValueError, TypeError, KeyError, MemoryError) as error:
                found[f"{name}: {type(error).__name__}"] += 1
    return found


# 5,000 forks, 1,600 exits beside daemon threads, 600 killed savers, 12,000 files.
LEAST = {"forks": 500, "exits": 1600, "saves": 300, "files": 12_000}
ATTACKS: dict[str, Attack] = {
    "forks": _repeated(FORKS),
    "exits": _repeated(EXITS),
    "saves": _killed_saves,
    "files": _damaged_files,
}


def main() -> int:
    """Run the attacks; the exit status."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 300.0
    is_bad = False
    for name in sys.argv[2:] or ATTACKS:
        with tempfile.TemporaryDirectory() as folder:
            here = os.getcwd()
            found = ATTACKS[name](time.monotonic() + seconds, LEAST[name], folder)
            os.chdir(here)
        is_bad |= any(word == "hangs" or word.startswith("exit") for word in found)
        print(f"{name}: {dict(found)}", flush=True)
    return int(is_bad)


if __name__ == "__main__":
    raise SystemExit(main())
