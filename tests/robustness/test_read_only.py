"""Memory that is read-only is never written: no `bytes` object, locked array of NumPy or map that the system protects.

`tests/ops/test_mutates.py` walks the operators that change their arguments, this file the other ways to write.
"""

import io
import mmap

import numpy as onp
import pytest

import mxnet as mx
from mxnet import autograd, np, npx
from probing import ENTRIES

LENGTH = 16


@pytest.fixture(params=["bytes", "array of NumPy", "map"])
def protected(request, tmp_path):
    """float32 zeros in memory that must not change, and what it holds."""
    memory = bytes(4 * LENGTH)
    if request.param == "map":
        (tmp_path / "zeros").write_bytes(bytes(4 * LENGTH))
        with open(tmp_path / "zeros", "rb") as file:
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if request.param == "array of NumPy":
        array = onp.zeros(LENGTH, "float32")
        array.flags.writeable = False
        memory, x = array.data, np.asarray(array)
        assert np.shares_memory(x, array)
    else:
        x = np.frombuffer(memory, "float32")
    yield x
    assert bytes(memory) == bytes(4 * LENGTH)


@pytest.mark.parametrize("req", ["write", "add"])
def test_gradient_buffers(protected, req):
    x, other = np.ones(LENGTH), np.ones(LENGTH)
    with pytest.raises(ValueError, match=r"`gradients\[1\]` is read-only"):
        autograd.mark_variables([other, x], [np.zeros(LENGTH), protected], req)
    # All or nothing.
    assert other.grad is None
    assert x.grad is None


def test_gradient_buffers_of_shared_elements():
    with pytest.raises(ValueError, match="read-only"):
        autograd.mark_variables([np.ones((4, 4))], [np.broadcast_to(np.ones(4), (4, 4))])
    x = np.ones(LENGTH)
    autograd.mark_variables([x], [np.broadcast_to(np.ones(1), LENGTH)], "null")


WRITES = {
    "assignment": lambda x: x.__setitem__(slice(None), 1),
    "an element": lambda x: x.__setitem__(3, 1),
    "positions": lambda x: x.__setitem__([0, 3], 1),
    "a mask": lambda x: x.__setitem__(np.arange(LENGTH) > 3, 1),
    "in place": lambda x: x.__iadd__(1),
    "fill": lambda x: x.fill(1),
    "sort": lambda x: x.sort(),
    "partition": lambda x: x.partition(3),
    "put": lambda x: x.put([1], [2]),
    "flat": lambda x: x.flat.__setitem__(1, 2),
    "copyto": lambda x: np.copyto(x, 1),
    "putmask": lambda x: np.putmask(x, np.arange(LENGTH) > 3, 1),
    "place": lambda x: np.place(x, np.arange(LENGTH) > 3, [1]),
    "put_along_axis": lambda x: np.put_along_axis(x, np.array([1]), 1, 0),
    "fill_diagonal": lambda x: np.fill_diagonal(x.reshape(4, 4), 1),
    "shuffle": lambda x: np.random.shuffle(x),
    "at": lambda x: np.add.at(x, [1], 1),
    "copyto of the array": lambda x: np.ones(LENGTH).copyto(x),
    "accumulate": lambda x: np.add.accumulate(np.ones(LENGTH), out=x),
    "reduce": lambda x: np.add.reduce(np.ones((2, LENGTH)), out=x),
    "where": lambda x: np.add(np.ones(LENGTH), 1, out=x, where=np.arange(LENGTH) > 3),
    "moving statistics": lambda x: training(lambda: npx.batch_norm(np.ones((2, LENGTH)), x + 1, x, x, x)),
    "a weight": lambda x: npx.sgd_update([x], [np.ones(LENGTH)], lrs=[0.1]),
    "a compiled function": lambda x: mx.jit(add_one)(x),
    "a function compiled for other memory": lambda x: [f := mx.jit(add_one), f(np.ones(LENGTH)), f(x)],
    "a compiled function's own array": lambda x: mx.jit(lambda y: np.exp(y, out=x))(np.ones(LENGTH)),
    "a file read into the buffer": lambda x: io.BytesIO(b"1" * 4 * LENGTH).readinto(x),
    "a momentum": lambda x: npx.sgd_update([np.ones(LENGTH)], [np.ones(LENGTH)], [x], lrs=[0.1], momentum=0.9),
}


def add_one(x):
    x += 1
    return x * 2


def training(call):
    with autograd.record():
        return call()


@pytest.mark.parametrize("how", WRITES)
def test_every_way_to_write(protected, how):
    # `readinto` itself words the refusal of the buffer.
    with pytest.raises((ValueError, TypeError), match=r"read-only|not writeable|read-write"):
        WRITES[how](protected)


NAMES = sorted(name for name, entry in ENTRIES.items() if entry["elementwise"] and entry["form"] == "ufunc")


def test_no_function_of_elements_writes_its_out(protected):
    assert len(NAMES) > 60
    refused = 0
    for name in NAMES:
        function = getattr(np, name, None)
        if getattr(function, "nout", 0) != 1:
            continue
        for kind in ("float32", "bool", "int32"):
            operands = [np.ones(LENGTH, dtype=kind)] * function.nin
            try:
                function(*operands)
            except TypeError:
                continue
            with pytest.raises((ValueError, TypeError), match=r"read-only|cast"):
                function(*operands, out=protected)
            refused += 1
    assert refused > 100
    assert isinstance(onp.asarray(protected), onp.ndarray)
