"""What other libraries do with arrays. Stand-ins behave as tensors of PyTorch and JAX, and as callers of NumPy do."""

import numpy as onp
import pytest

import mxnet as mx
from mxnet import autograd, np


class Tensor:
    """An array whose `__index__` refuses all but one element, as in PyTorch and JAX."""

    def __init__(self, values, dtype=None):
        self.values = onp.array(values, dtype=dtype)

    def __index__(self):
        if self.values.size != 1 or self.values.dtype == bool:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.values.item())

    def __array__(self, dtype=None, copy=None):
        return self.values if dtype is None else self.values.astype(dtype)


HOST = onp.arange(12.0).reshape(4, 3)
KEYS = [
    Tensor([0, 2]), Tensor([True, False, True, False]), Tensor(2), Tensor([[0, 1], [3, 2]]), Tensor([], "int64"),
    (Tensor([0, 2]), slice(1, None)), (slice(None), Tensor([True, False, True])), (Tensor([0, 2]), Tensor([1, 1])),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_tensors_are_index_arrays(key):
    x = np.array(HOST)
    onp.testing.assert_array_equal(x[key].asnumpy(), HOST[key])
    expected = HOST.copy()
    expected[key] = -1
    x[key] = -1
    onp.testing.assert_array_equal(x.asnumpy(), expected)


def test_tensors_of_floats_are_no_indices():
    with pytest.raises(IndexError, match="must be of integer"):
        np.array(HOST)[Tensor([0.0, 1.0])]


class Refused:
    """A tensor that NumPy cannot read, but DLPack exports."""

    def __init__(self, array, refusal):
        self.array, self.refusal = array, refusal

    def __array__(self, dtype=None, copy=None):
        raise self.refusal

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("refusal", [TypeError("unsupported ScalarType BFloat16"), RuntimeError("no NumPy")])
def test_what_numpy_cannot_read_is_read_by_dlpack(refusal):
    source = np.array([1.5, 2.0], dtype="bfloat16")
    tensor = Refused(source, refusal)
    found = np.asarray(tensor)
    assert found.dtype == np.bfloat16
    found += 1
    assert source.tolist() == [2.5, 3.0]
    copied = np.array(tensor)
    copied += 1
    assert source.tolist() == [2.5, 3.0]
    assert np.array(tensor, dtype="float64").dtype == "float64"
    assert np.add(tensor, 1).tolist() == [3.5, 4.0]


def test_the_error_of_the_object_is_raised_if_dlpack_fails_too():
    class Neither(Refused):
        def __dlpack__(self, **options):
            raise BufferError("call detach() first")

    with pytest.raises(RuntimeError, match=r"use tensor\.detach\(\)\.numpy\(\)"):
        np.asarray(Neither(None, RuntimeError("use tensor.detach().numpy() instead")))


WORDS = onp.array(["cat", "dog", "owl"])
DATES = onp.array(["2020-01-01", "2021-01-01", "2022-01-01"], dtype="datetime64[D]")
OBJECTS = onp.array([None, "x", 3], dtype=object)
FOREIGN_CALLS = [
    lambda a, xp: xp.where(a([True, False, True]), "yes", "no"),
    lambda a, xp: xp.where(a([True, False, True]), WORDS, "none"),
    lambda a, xp: xp.take(WORDS, a([2, 0])),
    lambda a, xp: xp.compress(a([True, False, True]), WORDS),
    lambda a, xp: xp.repeat(WORDS, a([1, 0, 2])),
    lambda a, xp: xp.concatenate([a([1, 2]), OBJECTS]),
    lambda a, xp: xp.searchsorted(DATES, DATES[1:], sorter=a([0, 1, 2])),
    lambda a, xp: xp.choose(a([0, 1, 0]), [WORDS, OBJECTS]),
    lambda a, xp: xp.split(WORDS, a([1, 2])),
    lambda a, xp: xp.lexsort((WORDS, a([1, 0, 1]))),
    lambda a, xp: xp.take_along_axis(WORDS, a([1, 1, 0]), 0),
    lambda a, xp: xp.delete(WORDS, a([1])),
    # Matplotlib's `bar`.
    lambda a, xp: xp.broadcast_arrays(a([1, 2, 3]), 0.8, a([4, 5, 6]), None),
]


@pytest.mark.parametrize("call", FOREIGN_CALLS)
def test_numpys_functions_with_text_dates_and_objects_are_answered_by_numpy(call):
    expected, found = call(onp.array, onp), call(np.array, onp)
    if not isinstance(expected, list | tuple):
        expected, found = [expected], [found]
    for one, two in zip(expected, found, strict=True):
        assert type(two) is onp.ndarray
        assert two.dtype == one.dtype
        onp.testing.assert_array_equal(two, one)


def test_numpys_answer_is_about_the_same_memory():
    y = np.zeros(3, dtype="int64")
    spans = onp.asarray(y).view("m8[s]")
    # pandas asks this of the time spans that it made of an array.
    assert onp.may_share_memory(y, spans)
    assert onp.shares_memory(y, spans)
    assert not onp.may_share_memory(y, spans.copy())
    onp.copyto(y, onp.array([1, 2, 3], dtype=object), casting="unsafe")
    assert y.tolist() == [1, 2, 3]


def test_calls_that_numpy_cannot_answer_keep_our_error():
    with pytest.raises(mx.error.DTypeError, match="argument `x` must be an array or a number, not 'str'"):
        np.where(np.array([True, False]), "yes", "no")
    for x in (np.ones(2, dtype="bfloat16"), np.ones(2)):
        with pytest.raises(TypeError):
            onp.cumsum(x, "text")
    with pytest.raises(mx.error.DTypeError):
        onp.concatenate([np.ones(2, dtype="bfloat16"), WORDS])


def test_numpy_answers_no_call_whose_gradient_is_recorded():
    x = np.ones(3)
    x.attach_grad()
    with autograd.record():
        y = x * 2
        with pytest.raises(mx.error.DTypeError):
            onp.concatenate([y, OBJECTS])
        assert onp.concatenate([np.ones(2), OBJECTS]).dtype == object


def test_plotting_libraries_find_numpys_array():
    x = np.array(HOST)
    found = x.to_numpy()
    assert type(found) is onp.ndarray
    onp.testing.assert_array_equal(found, HOST)
    found[:] = 0
    onp.testing.assert_array_equal(x.asnumpy(), HOST)
