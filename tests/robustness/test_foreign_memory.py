"""Memory that belongs to others: descriptions that cannot be right, and arrays that change during a call."""

import ctypes

import numpy as onp
import pytest

from mxnet import np
from processes import run

MEMORY = (ctypes.c_float * 16)(*range(16))
WHOLE = {"version": 3, "shape": (4,), "typestr": "<f4", "data": (ctypes.addressof(MEMORY), False)}


class Described:
    def __init__(self, **changes):
        self.__array_interface__ = {**WHOLE, **changes}


def test_a_description_that_is_right_is_read():
    assert np.array(Described()).tolist() == [0, 1, 2, 3]
    assert np.array(Described(data=bytearray(16))).tolist() == [0] * 4
    assert np.array(Described(data=bytearray(20), offset=4)).tolist() == [0] * 4
    assert np.array(Described(data=(ctypes.addressof(MEMORY) + 12, False), strides=(-4,))).tolist() == [3, 2, 1, 0]
    assert np.array(Described(data=(0, False), shape=(0,))).tolist() == []


WRONG = {
    "a negative length": {"shape": (-1,)},
    "a length beyond memory": {"shape": (2**62,)},
    "lengths whose product is beyond 64 bits": {"shape": (2**62, 2**62)},
    "a length that is no integer": {"shape": (4.5,)},
    "a shape that is no tuple": {"shape": "x"},
    "an unknown type": {"typestr": "<f3"},
    "a type that is no text": {"typestr": 7},
    "objects": {"typestr": "|O8"},
    "no address": {"data": (0, False)},
    "an address that is no number": {"data": ("x", False)},
    "a negative address": {"data": (-1, False)},
    "an address beyond 64 bits": {"data": (2**64, False)},
    "a step beyond memory": {"strides": (2**62,)},
    "a step before memory": {"strides": (-(2**62),)},
    "steps that are too many": {"strides": (4, 4)},
    "a step that is no number": {"strides": ("a",)},
    "a buffer that is too short": {"data": bytearray(4)},
    "bytes that are too short": {"data": b"12"},
    "an offset behind the buffer": {"data": bytearray(16), "offset": 1},
    "an offset before the buffer": {"data": bytearray(64), "offset": -4},
    "an offset beyond memory": {"data": bytearray(64), "offset": 2**62},
}


@pytest.mark.parametrize("name", WRONG)
def test_a_description_that_cannot_be_right_is_refused(name):
    described = Described(**WRONG[name])
    for call in (np.array, np.asarray, lambda x: np.ones(4) + x, lambda x: np.ones(4)[x]):
        with pytest.raises((ValueError, TypeError, OverflowError, IndexError)):
            call(described)


@pytest.mark.parametrize("offset", [65, 2**31, 2**62, 2**63 - 1])
def test_an_offset_behind_the_buffer_is_refused(offset):
    with pytest.raises(ValueError, match="offset must be at most 64"):
        np.ndarray((4,), "float32", buffer=bytearray(64), offset=offset)


# Calls on positions `i`, a mask `k` and elements `x`.
CALLS = [
    "x[i]",
    "x[k]",
    "x[i, ...]",
    "np.take(x, i)",
    "np.take_along_axis(x, i, 0)",
    "np.compress(k, x)",
    "np.extract(k, x)",
    "np.nonzero(k)",
    "np.argwhere(k)",
    "np.flatnonzero(k)",
    "np.bincount(i)",
    "np.choose(i % 2, [x, x])",
    "np.unravel_index(i, (n,))",
    "np.ravel_multi_index((i,), (n,))",
    "np.repeat(x, k)",
    "np.delete(x, i)",
    "np.insert(x, i, 1)",
    "npx.one_hot(i, n)[0]",
    "npx.embedding(i, x.reshape(-1, 1))",
    "npx.pick(x.reshape(1, -1), i[:1])",
    "npx.gather_nd(x, i.reshape(1, -1))",
    "y.__setitem__(i, 1)",
    "y.__setitem__(k, 1)",
    "np.put_along_axis(y, i, 1, 0)",
    "np.put(y, i, 1)",
    "np.add.at(y, i, 1)",
    "np.place(y, k, [1])",
    "np.putmask(y, k, 1)",
]


def test_positions_and_masks_that_a_thread_changes_during_the_call():
    run(
        f"""
        n = 3000
        x, y = np.arange(float(n)), np.zeros((n,))
        i, k = onp.arange(n), onp.ones(n, dtype=bool)
        stop = threading.Event()

        def change():
            while not stop.is_set():
                i[:] = 2**40
                k[:] = False
                i[:] = -(2**40)
                i[:] = n - 1
                k[:] = True
                i[:] = 0

        sys.setswitchinterval(1e-6)
        thread = threading.Thread(target=change)
        thread.start()
        refused = 0
        try:
            for call in {CALLS!r}:
                code = compile(call, call, "eval")
                for _ in range(40):
                    try:
                        result = eval(code)
                        for part in result if isinstance(result, tuple) else (result,):
                            if isinstance(part, np.ndarray):
                                part.wait_to_read()
                    except (IndexError, ValueError, MemoryError):
                        refused += 1
        finally:
            stop.set()
            thread.join()
        mx.waitall()
        assert refused > 0
        """
    )


WRITES = {
    "place": lambda a: np.place(a, onp.array([True, False, True, False]), [0]),
    "copyto": lambda a: np.copyto(a, a.dtype.type(0)),
    "putmask": lambda a: np.putmask(a, onp.array([True, False, True, False]), 0),
    "put_along_axis": lambda a: np.put_along_axis(a, onp.array([1]), 0, 0),
    "at": lambda a: np.multiply.at(a, [1], onp.zeros(1, a.dtype)),
    "out": lambda a: np.multiply(a, onp.zeros(4, a.dtype), out=a),
}


@pytest.mark.parametrize("dtype", ["int64", "bool", "float32"])
@pytest.mark.parametrize("name", WRITES)
def test_writes_go_through_to_numpys_arrays(name, dtype):
    written = onp.ones(4, dtype)
    WRITES[name](written)
    assert not written.all()
