"""Arrays as sets against NumPy."""

import hypothesis
import numpy
import pytest
from hypothesis import strategies as st

import mxnet as mx
from both import both

GENERATOR = numpy.random.default_rng(9)
A = GENERATOR.integers(-9, 9, (4, 5))
B = GENERATOR.integers(-3, 20, 12)
F = numpy.array([1.5, numpy.nan, -0.0, 0.0, numpy.inf, numpy.nan, 1.5, -numpy.inf])
U = numpy.array([0, 3, 2**63, 2**64 - 1], "uint64")
S = numpy.array([-1, 3, 2**63 - 1, 0], "int64")


@pytest.mark.parametrize(
    "expression",
    [
        "np.isin(A, B)",
        "np.isin(A, B, invert=True)",
        "np.isin(A, B, kind='sort')",
        "np.isin(A, B, kind='table')",
        "np.isin(A, B, assume_unique=True)",
        "np.isin(A, B, kind='other')",
        "np.isin(A, F, kind='table')",
        "np.isin(A, [])",
        "np.isin([], A)",
        "np.isin(3, A)",
        "np.isin(A, 3)",
        "np.isin(F, F)",
        "np.isin(F, [0, nan])",
        "np.isin(A, F)",
        "np.isin(A > 0, [True])",
        "np.isin(A > 0, [False], kind='table')",
        "np.isin(A, [True])",
        "np.isin(A + 1j, [3 + 1j, 4])",
        "np.isin(A.astype('int8'), np.array([200, 3]))",
        "np.isin(A.astype('uint8'), np.array([200, 3, -1]))",
        "np.intersect1d(A, B)",
        "np.intersect1d(A, B, return_indices=True)",
        "np.intersect1d([5, 1, 3], [3, 5, 9], assume_unique=True)",
        "np.intersect1d([5, 1, 3], [3, 5, 9], assume_unique=True, return_indices=True)",
        "np.intersect1d(A, [99], return_indices=True)",
        "np.intersect1d(A, [1.5, 3.0])",
        "np.intersect1d(F, [1.5, 2.0])",
        "np.union1d(A, B)",
        "np.union1d(A, [0.5])",
        "np.union1d(F, F)",
        "np.union1d([], [])",
        "np.setdiff1d(A, B)",
        "np.setdiff1d(B, A[0], assume_unique=True)",
        "np.setdiff1d([3, 1, 2, 9], [1], assume_unique=True)",
        "np.setdiff1d(F, [1.5])",
        "np.setdiff1d(A, [0.5])",
        "np.setxor1d(A, B)",
        "np.setxor1d([3, 1], [1, 2], assume_unique=True)",
        "np.setxor1d(A, [])",
        "np.setxor1d(A, [0.5])",
        "np.unique(A)",
        "np.unique(A, return_counts=True)",
        "np.unique(A, True, True, True)",
        "np.unique(A, return_inverse=True)",
        "np.unique(A % 2, axis=0, return_index=True, return_inverse=True, return_counts=True)",
        "np.unique(A % 2, axis=1)",
        "np.unique(A % 2, axis=-2)",
        "np.unique(A, axis=2)",
        "np.unique(F)",
        "np.unique(F, equal_nan=False)",
        "np.unique(F, return_counts=True, equal_nan=False)",
        "np.unique(np.stack([F, F]), axis=0)",
        "np.unique(np.stack([F, F]), axis=0, equal_nan=False)",
        "np.unique(np.ones((3, 0)), axis=0)",
        "np.unique(F, return_index=True)",
        "np.unique(A + 1j)",
        "np.unique(A > 0, return_counts=True)",
        "np.unique(np.zeros((0, 3)))",
        "np.unique(3)",
        "tuple(np.unique_all(A))",
        "tuple(np.unique_counts(F))",
        "tuple(np.unique_inverse(A))",
        "np.unique_values(A > 0)",
    ],
)
def test_result_is_numpys(expression):
    if "unique_values" in expression:
        expression = f"np.sort({expression})"  # NumPy's come in any order
    both(expression, A=A, B=B, F=F)


@pytest.mark.parametrize("function", ["isin", "intersect1d", "setdiff1d"])
def test_integers_of_64_bits_are_distinguished(function):
    for values, members in ((S, U), (U, S)):
        wanted = [int(v) in {int(m) for m in members} for v in values]
        found = mx.np.isin(mx.np.array(values), mx.np.array(members))
        assert found.tolist() == wanted
        assert mx.np.isin(mx.np.array(values), mx.np.array(members), invert=True).tolist() == [not w for w in wanted]


@hypothesis.settings(max_examples=80)
@hypothesis.given(
    st.sampled_from(["int8", "uint16", "int64", "uint64", "float16", "float32", "float64", "complex64"]),
    st.integers(0, 300),
    st.integers(0, 300),
    st.sampled_from([3, 100, 10_000]),
)
def test_any_sets_agree(dtype, n, m, spread):
    random = numpy.random.default_rng(n * 301 + m)
    x, y = (random.integers(0, spread, k).astype(dtype) for k in (n, m))
    for function in ("isin", "intersect1d", "union1d", "setdiff1d", "setxor1d"):
        both(f"np.{function}(x, y)", x=x, y=y)


def test_large_arrays_agree():
    random = numpy.random.default_rng(1)
    x, y = random.integers(0, 1 << 40, 200_000), random.integers(0, 1 << 40, 50_000)
    y[::2] = x[: len(y[::2])]
    both("np.isin(x, y)", x=x, y=y)
    both("np.intersect1d(x, y)", x=x, y=y)
    both("np.unique(x % 1000, return_counts=True)", x=x)


def test_elements_in_common_have_gradients():
    x = mx.np.array([3.0, 1.0, 3.0, 2.0])
    x.attach_grad()
    with mx.autograd.record():
        head = (mx.np.unique(x) * mx.np.array([1.0, 10.0, 100.0])).sum()
    head.backward()
    assert x.grad.tolist() == [100, 1, 0, 10]
    with mx.autograd.record():
        head = (mx.np.setdiff1d(x, mx.np.array([1.0])) * mx.np.array([10.0, 100.0])).sum()
    head.backward()
    assert x.grad.tolist() == [100, 0, 0, 10]


def test_names_of_the_parts_of_results():
    found = mx.np.unique_all([3, 1, 3])
    assert found.values.tolist() == [1, 3] and found.indices.tolist() == [1, 0]
    assert found.inverse_indices.tolist() == [1, 0, 1] and found.counts.tolist() == [1, 2]


@pytest.mark.parametrize("size", [3, 3000])
def test_complex_nans_are_one_element_by_default(size):
    x = numpy.resize(numpy.array([complex(numpy.nan, 1), complex(numpy.nan, 2), complex(1, numpy.nan)]), size)
    for equal_nan in (True, False):
        want = numpy.unique(x, equal_nan=equal_nan)
        assert mx.np.unique(mx.np.array(x), equal_nan=equal_nan).shape == want.shape
