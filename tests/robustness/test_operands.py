"""Operands that do not fit each other: an error, and no byte beyond an operand is touched.

Operators without a public name are called by others that have checked the operands, but files of graphs can name them,
too.
"""

import sys

import pytest

from processes import run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pages are protected as Linux does")

WALK = """
import ctypes, mmap
from probing import ENTRIES, Maker, names, op

PAGE = mmap.PAGESIZE
libc = ctypes.CDLL(None)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
kept = []

def guarded(x):
    # The elements end where a page begins that nobody may touch.
    if x.nbytes == 0:
        return np.array(x)
    pages = -(-x.nbytes // PAGE)
    memory = mmap.mmap(-1, (pages + 1) * PAGE)
    held = (ctypes.c_char * len(memory)).from_buffer(memory)
    inside = onp.frombuffer(memory, x.dtype, x.size, pages * PAGE - x.nbytes).reshape(x.shape)
    inside[...] = x
    assert libc.mprotect(ctypes.addressof(held) + pages * PAGE, PAGE, 0) == 0
    kept.append((memory, held))
    return np.asarray(inside)

def misfits(x):
    yield onp.resize(x, (1,)) if x.size else onp.zeros((1,), x.dtype)
    for axis in range(x.ndim):
        for n in (1, 500):
            shape = list(x.shape)
            shape[axis] = n
            if x.size and tuple(shape) != x.shape and onp.prod(shape) < 100_000:
                yield onp.resize(x, shape)

def host(x):
    return x.asnumpy() if isinstance(x, np.ndarray) else x

refused = 0
for name in names(lambda entry: not entry["elementwise"] and not entry["surface"]):
    order = [parameter for parameter, _, _ in ENTRIES[name]["params"]]
    for call in ENTRIES[name]["calls"]:
        args, kwargs = Maker(name, call, ours=True).arguments()
        given = {k: host(v) for k, v in (dict(zip(order, args)) | kwargs).items()}
        if any(isinstance(v, list) for v in given.values()):
            continue
        for changed in [k for k, v in given.items() if isinstance(v, onp.ndarray)]:
            for misfit in misfits(given[changed]):
                operands = given | {changed: misfit}
                print(name, call, changed, misfit.shape, flush=True)
                values = {k: guarded(v) if isinstance(v, onp.ndarray) else v for k, v in operands.items()}
                try:
                    op(name)(**values)
                    mx.waitall()
                except mx.error.InternalError:
                    raise
                except mx.error.MXNetError:
                    refused += 1
                del values
                kept.clear()
print(refused)
"""


def test_operators_touch_only_their_operands():
    done = run(f"sys.path[:0] = {sys.path!r}\n{WALK}")
    assert int(done.stdout.split()[-1]) > 500
