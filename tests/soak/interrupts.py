"""How soon a signal is noticed in every function: each one is called on large operands while a timer sends signals.

`python tests/soak/interrupts.py [NAME ...]` calls the functions of the coverage table (`tools/np_coverage.py`) and the
probes of the registry whose names contain one of the words (all), and prints those in which a signal waited for longer
than 0.2 s. Such a call is repeated, so that a machine that is busy is not taken for a call that blocks. The exit status
is 1 if one of them is left.
"""

import copy
import mmap
import os
import pickle
import resource
import signal
import struct
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "tools"))

import numpy as onp

import mxnet as mx
import np_coverage
from mxnet import _core
from probing import ENTRIES, Maker, op

# Longest time that a signal may wait, and how often one is sent.
LIMIT_S = 0.2
EVERY_S = 0.01
# A call is ended after this time, and what was seen until then counts.
LONGEST_S = 10
# A call is ended in which a signal waits for so long.
LONGEST_WAIT_S = 1.0
REPEATS = 3
# The side of square operands; long ones have as many elements.
SIDE = 5000
# By how much the axes of a probe's operands are longer; the largest that is accepted counts.
FACTORS = (400, 100, 20)
# The most elements of an operand of a probe.
MOST = 8_000_000

# Calls that neither the table nor the probes have: files, conversions, and positions or counts in arrays.
OTHERS = (
    "np.repeat(v, one)",
    "np.repeat(x, rows, axis=0)",
    "np.unique(v)",
    "np.unique(v, return_inverse=True)",
    "np.unique(v, return_counts=True)",
    "np.unique(x, axis=0)",
    "np.unique(many)",
    "np.bincount(many)",
    "np.bincount(many, weights=v)",
    "np.bincount(k)",
    "np.nonzero(v > 1)",
    "np.argwhere(b)",
    "v[v > 1]",
    "v[k]",
    "v.copy().__setitem__(k, 3)",
    "v.copy().__setitem__(v > 1, 3)",
    "v.copy().__setitem__(k, w)",
    "np.union1d(many, many)",
    "np.isin(many, many)",
    "np.setdiff1d(v, w)",
    "np.searchsorted(t, v)",
    "np.unravel_index(many, (5000, 5000))",
    "np.ravel_multi_index((many % 5000, many % 7), (5000, 7))",
    "np.random.permutation(25_000_000)",
    "np.random.choice(25_000_000, 9_000_000, replace=False)",
    "np.random.choice(25_000_000, 9, p=t / t.sum())",
    "np.random.multinomial(9, t[:1_000_000] / t[:1_000_000].sum())",
    "np.random.shuffle(v.copy())",
    "np.histogram(v, 1000)",
    "np.histogram2d(v, w)",
    "np.array_split(v, 100_000)",
    "list(v[:2_000_000])",
    "v.tolist()",
    "c.tolist()",
    "many.tolist()",
    "v.tobytes()",
    "x.T.tobytes()",
    "pickle.dumps(v)",
    "pickle.loads(pickle.dumps(v[:5_000_000]))",
    "copy.deepcopy(v)",
    "repr(v)",
    "np.array(numbers)",
    "np.array(numbers * 4)",
    "np.array(foreign)",
    "np.asarray(foreign + 1)",
    "v.asnumpy()",
    "x.T.asnumpy()",
    "np.from_dlpack(foreign)",
    "np.fromstring(text, sep=' ')",
    "np.frombuffer(raw, 'float32').copy()",
    "np.fromiter(iter(numbers), 'float32')",
    "npx.save(path, {'v': v, 'x': x})",
    "npx.load(saved)",
    "np.save(path, v)",
    "np.save(path, x.T)",
    "np.savez(path, v=v, x=x)",
    "np.savez_compressed(path, v=v)",
    "np.load(saved_npy)",
    "np.load(saved_npz)['v']",
    "np.load(saved_compressed)['v']",
    "np.savetxt(path, x[:100])",
    "np.loadtxt(lines)",
    "np.genfromtxt(lines)",
    "v.tofile(path)",
    "np.fromfile(raw_file, 'float32')",
    "np.array2string(x[:1000], threshold=10**9)",
    "np.linalg.lstsq(m, m)",
    "np.linalg.svd(m)",
    "np.linalg.eig(m)",
    "np.linalg.matrix_rank(m)",
    "np.linalg.cond(m)",
    "np.einsum('ij,jk,kl->il', m, m, m)",
    "np.convolve(v, w[:1000])",
    "np.vander(v[:100_000], 100)",
    "np.fft.fft(v)",
    "np.lexsort((v, w))",
    "np.percentile(v, 30)",
    "np.median(x, axis=1)",
    "npx.topk(v, k=1000)",
    "npx.convolution(image, weight, kernel=(3, 3), num_filter=64)",
    "mx.image.imdecode(picture)",
    "mx.image._imencode(pixels, 95, '.jpg')",
    "mx.image._imencode(pixels, 3, '.png')",
    "mx.image.imresize(np.array(pixels), 6000, 6000, 2)",
    "mx.sparse.csr_array(x * b)",
    "mx.sparse.csr_array((v[:9_000_000], (k[:9_000_000], k[:9_000_000])))",
    "csr @ csr",
    "csr + csr",
    "csr.toarray()",
    "csr.T.tocsr()",
    "gradient()",
)

Call = Callable[[], object]
# Makes the operands of a call.
Prepare = Callable[[], Call]


def operands(side: int) -> dict[str, Any]:
    """Large operands by the names that the calls of the coverage table use."""
    rng = onp.random.default_rng(3)
    square, long = (side, side), side * side
    m = rng.uniform(-1, 1, (1200, 1200)) + 40 * onp.eye(1200)
    found: dict[str, Any] = {
        "x": rng.uniform(0.5, 1.5, square),
        "y": rng.uniform(0.5, 1.5, square),
        "v": rng.uniform(0.5, 1.5, long),
        "w": rng.uniform(0.5, 1.5, long),
        "u": rng.uniform(0.5, 1.5, 3),
        "p": rng.uniform(0.1, 0.9, square),
        "t": onp.linspace(0.5, 1.5, long),
        "m": m,
        "spd": m @ m.T,
    }
    found = {name: value.astype("float32") for name, value in found.items()}
    found["c"] = (rng.uniform(-1, 1, square) + 1j * rng.uniform(-1, 1, square)).astype("complex64")
    found["i"] = rng.integers(1, 8, square)
    found["j"] = rng.integers(1, 4, square)
    found["k"] = rng.permutation(long)
    found["b"] = rng.random(square) < 0.5
    found = {name: mx.np.array(value) for name, value in found.items()}
    return found | {"n": 3000}


def files(folder: str, side: int) -> dict[str, Any]:
    """What `OTHERS` uses beside: arrays, lists, and files in `folder`."""
    np, long = mx.np, side * side
    rng = onp.random.default_rng(4)
    v = np.array(rng.uniform(0.5, 1.5, long).astype("float32"))
    path = os.path.join(folder, "saved")
    mx.npx.save(path, {"v": v})
    np.save(path + ".npy", v)
    np.savez(path + ".npz", v=v)
    np.savez_compressed(path + "_small.npz", v=np.zeros((long,)))
    v.tofile(path + ".raw")
    Path(path + ".txt").write_text("1.5 2.5 3.5 4.5\n" * 500_000)
    scattered = onp.arange(3_000_000)
    csr = mx.sparse.csr_array((np.ones(3_000_000), (np.array(scattered % 30_000), np.array(scattered % 29_989))))

    def gradient() -> None:
        x = v.copy()
        x.attach_grad()
        with mx.autograd.record():
            y = (np.exp(x) * np.sin(x)).sum()
        y.backward()

    pixels = rng.integers(0, 256, (3000, 3000, 3), dtype="uint8")
    return {
        "pixels": pixels, "picture": mx.image._imencode(pixels, 95, ".jpg"),
        "mx": mx, "npx": mx.npx, "pickle": pickle, "copy": copy, "gradient": gradient,
        "one": np.array(rng.integers(0, 3, long)), "rows": np.array(rng.integers(0, 3, side)),
        "many": np.array(rng.integers(0, long, long)), "numbers": [1.5] * 5_000_000,
        "foreign": v.asnumpy(), "text": "1.5 " * 3_000_000, "raw": v.tobytes(), "csr": csr,
        "image": np.ones((1, 64, 400, 400)), "weight": np.ones((64, 64, 3, 3)),
        "path": os.path.join(folder, "a"), "saved": path, "saved_npy": path + ".npy", "saved_npz": path + ".npz",
        "saved_compressed": path + "_small.npz", "raw_file": path + ".raw", "lines": path + ".txt",
    }  # fmt: skip


def table_calls(words: list[str], folder: str, side: int = SIDE) -> dict[str, list[Prepare]]:
    """The calls of the coverage table and of `OTHERS`, by their texts, on operands of `side * side` elements."""
    scope = {"np": mx.np, **operands(side), **files(folder, side)}
    calls: dict[str, list[Prepare]] = {}
    for text in [*OTHERS, *np_coverage.Probe().common_calls()]:
        if any(word in text for word in words):
            # The expressions are part of this project.
            calls[text] = [lambda text=text: lambda: eval(text, dict(scope))]
    return calls


class LargeMaker(Maker):
    """Makes the arguments of a probe call with longer axes."""

    def __init__(self, name: str, call: str, factor: int) -> None:
        super().__init__(name, call, ours=True)
        self.factor = factor

    def _longer(self, shape: int | tuple[int, ...]) -> tuple[int, ...]:
        axes = [shape] if isinstance(shape, int) else list(shape)
        size = 1
        for k, axis in enumerate(axes):
            axes[k] = axis * self.factor if axis > 1 else axis
            size *= axes[k]
        if size > MOST:
            raise ValueError("too many elements")
        return tuple(axes)

    def f(self, shape: Any) -> Any:
        """Floats."""
        return super().f(self._longer(shape))

    def c(self, shape: Any) -> Any:
        """Complex numbers."""
        return super().c(self._longer(shape))

    def i(self, shape: Any, hi: int = 8) -> Any:
        """Integers."""
        return super().i(self._longer(shape), hi)

    def b(self, shape: Any) -> Any:
        """Truth values."""
        return super().b(self._longer(shape))


def prepared(name: str, text: str, factor: int) -> Call:
    """A probe call with operands whose axes are longer by `factor`."""
    args, kwargs = LargeMaker(name, text, factor).arguments()
    return lambda: op(name)(*args, **kwargs)


def probe_calls(words: list[str], factors: tuple[int, ...] = FACTORS) -> dict[str, list[Prepare]]:
    """The probe calls of the registry, each with the sizes to try."""
    calls: dict[str, list[Prepare]] = {}
    for name, entry in sorted(ENTRIES.items()):
        if any(word in name for word in words):
            for text in entry["calls"]:
                calls[f"{name}({text})"] = [partial(prepared, name, text, factor) for factor in factors]
    return calls


def longest_wait(prepare: Prepare) -> tuple[str, float]:
    """How a call ended, and for how long a signal waited in it, in seconds. The call runs in a process of its own."""
    shared = mmap.mmap(-1, 24)
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        resource.setrlimit(resource.RLIMIT_AS, (14 << 30, resource.RLIM_INFINITY))
        warnings.simplefilter("ignore")
        last = longest = 0.0

        def note(*_: object) -> None:
            nonlocal last, longest
            now = time.monotonic()
            longest = max(longest, now - last)
            last = now
            shared[:16] = struct.pack("dd", longest, last)

        status = 0
        signal.signal(signal.SIGALRM, note)
        try:
            call = prepare()
            mx.waitall()
            last = time.monotonic()
            note()
            signal.setitimer(signal.ITIMER_REAL, EVERY_S, EVERY_S)
            found = call()
            for part in found if isinstance(found, (tuple, list)) else (found,):
                if isinstance(part, _core.ndarray):
                    part.wait_to_read()
            mx.waitall()
        except Exception:  # noqa: BLE001  # what is refused is not waited for
            status = 3
        signal.setitimer(signal.ITIMER_REAL, 0)
        note()
        os._exit(status)
    end = time.monotonic() + LONGEST_S
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            longest, _ = struct.unpack("dd", shared[:16])
            break
        longest, last = struct.unpack("dd", shared[:16])
        if last and time.monotonic() - last > LONGEST_WAIT_S:
            end = 0.0
        time.sleep(0.002)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return "ended", max(longest, time.monotonic() - last)
    code = os.waitstatus_to_exitcode(status)
    return {0: "ok", 3: "refused"}.get(code, f"exit {code}"), longest


def check(name: str, sizes: list[Prepare]) -> str:
    """How the call of the largest size that is accepted ends; "late" if a signal waited for too long every time."""
    how = "refused"
    for prepare in sizes:
        how, longest = longest_wait(prepare)
        if how != "refused":
            break
    if how != "refused" and longest > LIMIT_S:
        waits = [longest] + [longest_wait(prepare)[1] for _ in range(REPEATS - 1)]
        if min(waits) > LIMIT_S:
            print(f"late: {min(waits):.2f} s: {name}", flush=True)
            return "late"
    if how == "refused" and "-v" in sys.argv:
        print(f"refused: {name}", flush=True)
    if how.startswith("exit"):
        print(f"{how}: {name}", flush=True)
    return how


def main() -> int:
    """Call everything; the exit status."""
    words = [word for word in sys.argv[1:] if not word.startswith("-")] or [""]
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for name, sizes in [*table_calls(words, folder).items(), *probe_calls(words).items()]:
            found[check(name, sizes)] += 1
    print(dict(found), flush=True)
    return int(any(word == "late" or word.startswith("exit") for word in found))


if __name__ == "__main__":
    raise SystemExit(main())
