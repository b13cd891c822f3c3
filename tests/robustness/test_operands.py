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
    # The elements end where a protected page begins.
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


MISFITS = """
import warnings
from probing import ENTRIES, Maker, names, op

warnings.simplefilter("ignore")
DTYPES = ["float16", "bfloat16", "float32", "float64", "complex64", "int8", "int64", "uint64", "bool"]
SHAPES = [(), (0,), (1,), (3,), (1, 1), (2, 3), (0, 3), (2, 3, 4), (1, 2, 3, 4), (2, 1, 2, 1, 2)]

def misfits(x):
    yield from (x.astype(dtype) for dtype in DTYPES if str(x.dtype) != dtype)
    shapes = SHAPES + [x.shape[1:], x.shape[:-1], x.shape + (1,), (1,) + x.shape, x.shape + (2,), x.shape[::-1]]
    for axis in range(x.ndim):
        shapes += [x.shape[:axis] + (n,) + x.shape[axis + 1 :] for n in (0, 1, x.shape[axis] + 1, 17)]
    for shape in dict.fromkeys(shapes):
        if shape != x.shape and onp.prod(shape) < 20_000:
            yield np.resize(x, shape)

def arrays(values):
    for value in values:
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from arrays(value)

def attempt(call):
    # Whether a call with operands that may not fit is accepted; anything but a result or a typed error ends this.
    try:
        call()
        mx.waitall()
    except mx.error.InternalError:
        raise
    except (mx.error.MXNetError, MemoryError):
        return False
    return True

def with_gradients(name, operands):
    variables = list(arrays(operands.values()))
    for x in variables:
        x.attach_grad()
    with autograd.record():
        results = list(arrays([op(name)(**operands)]))
    if results:
        autograd.backward(results)

accepted = refused = 0
for name in names(lambda entry: entry["calls"]):
    order = [parameter for parameter, _, _ in ENTRIES[name]["params"]]
    args, kwargs = Maker(name, ENTRIES[name]["calls"][0], ours=True).arguments()
    given = dict(zip(order, args)) | kwargs
    for changed in [k for k, v in given.items() if isinstance(v, np.ndarray)]:
        for misfit in misfits(given[changed]):
            operands = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in given.items()}
            operands[changed] = misfit
            print(name, changed, misfit.shape, misfit.dtype, flush=True)
            signal.alarm(60)
            if attempt(lambda: op(name)(**operands)):
                accepted += 1
                attempt(lambda: with_gradients(name, operands))
            else:
                refused += 1
print(accepted, refused)
"""


def test_misfits_are_results_or_typed_errors_and_so_are_their_gradients():
    done = run(f"sys.path[:0] = {sys.path!r}\n{MISFITS}")
    accepted, refused = map(int, done.stdout.split()[-2:])
    assert accepted > 5000
    assert refused > 5000


def test_operators_touch_only_their_operands():
    done = run(f"sys.path[:0] = {sys.path!r}\n{WALK}")
    assert int(done.stdout.split()[-1]) > 500
