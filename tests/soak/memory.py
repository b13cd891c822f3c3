"""Every function without memory for its work: a `MemoryError`, and no process may end.

`python tests/soak/memory.py [NAME ...]` calls the functions of `interrupts.py` whose names contain one of the words
(all), each in processes that may take a few megabytes more than they have, and prints those that end such a process or
raise another error there. The exit status is 1 if there is one.
"""

import contextlib
import ctypes
import gc
import os
import resource
import signal
import sys
import tempfile
import warnings
from collections import Counter

from interrupts import Call, Prepare, probe_calls, table_calls

import mxnet as mx
from mxnet import _core, np

# How many megabytes more a process may take.
EXTRA_MB = (1, 5, 12, 25, 50)
# The side of square operands, 9 MB of float32 each, and the factors for the axes of probes.
SIDE, FACTORS = 1500, (100, 20)


def limit_memory(extra_mb: int | None) -> None:
    """Lets this process take so much more memory than it has; None removes the limit."""
    most = resource.RLIM_INFINITY
    if extra_mb is not None:
        # Memory that the allocator keeps would be used first.
        mx.cpu().empty_cache()
        ctypes.CDLL(None).malloc_trim(0)
        with open("/proc/self/statm") as file:
            most = int(file.read().split()[0]) * resource.getpagesize() + (extra_mb << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))


def finish(found: object) -> None:
    """Wait for what a call has started."""
    for part in found if isinstance(found, (tuple, list)) else (found,):
        if isinstance(part, _core.ndarray):
            part.wait_to_read()
    mx.waitall()


def end_of(call: Call, extra_mb: int | None) -> str:
    """How a call ends in a process: "ok", "no memory", "refused", "long" (without a limit, too) or what is wrong."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(write, 2)
        signal.alarm(30)
        warnings.simplefilter("ignore")
        status, kept = 0, np.arange(10)
        limit_memory(extra_mb)
        try:
            finish(call())
        except MemoryError:
            status = 3
        except Exception as error:  # noqa: BLE001  # the parent judges
            limit_memory(None)
            os.write(2, f"{type(error).__name__}: {error}".encode())
            status = 4
        limit_memory(None)
        with contextlib.suppress(MemoryError):
            mx.waitall()
        os._exit(status if np.sort(kept + 1).tolist() == list(range(1, 11)) else 5)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        text = pipe.read().decode(errors="replace")
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == -signal.SIGALRM and (extra_mb is None or end_of(call, None) == "long"):
        return "long"
    if code == 4 and "InternalError" not in text:
        return "refused"
    return {0: "ok", 3: "no memory"}.get(code) or f"exit {code}: {text.splitlines()[:1]}"


def check(name: str, sizes: list[Prepare]) -> str:
    """How a call ends at its limits: "ok", "no memory", "long", "refused" or "wrong"."""
    for prepare in sizes:
        try:
            call = prepare()
            mx.waitall()
        except Exception:  # noqa: BLE001  # operands of this size are not possible
            continue
        found: dict[int, str] = {}
        for extra in EXTRA_MB:
            found[extra] = end_of(call, extra)
            if found[extra] == "long":
                break
        wrong = [f"{extra} MB: {how}" for extra, how in found.items() if how.startswith("exit")]
        if wrong:
            print(f"{name}\n    " + "\n    ".join(wrong), flush=True)
            return "wrong"
        if "refused" not in found.values():
            return next((end for end in ("long", "no memory") if end in found.values()), "ok")
    return "refused"


def main() -> int:
    """Call everything; the exit status."""
    # M_ARENA_MAX: each arena of the allocator has address space in reserve, which would hide the limit.
    ctypes.CDLL(None).mallopt(-8, 1)
    words = [word for word in sys.argv[1:] if not word.startswith("-")] or [""]
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for name, sizes in [*table_calls(words, folder, SIDE).items(), *probe_calls(words, FACTORS).items()]:
            found[check(name, sizes)] += 1
            gc.collect()
    print(dict(found), flush=True)
    return int(bool(found["wrong"]))


if __name__ == "__main__":
    raise SystemExit(main())
