"""Python integers beyond the dtype, and beyond 64 bits."""

from types import SimpleNamespace

import numpy as onp
import pytest

from both import both
from mxnet import np

# NumPy's own names, which `both` does not take for an array that is to be copied.
NUMPY = SimpleNamespace(**{name: value for name, value in vars(onp).items() if name != "copy"})
VALUES = ["2**63", "2**64 - 1", "2**64", "2**70", "-2**63 - 1", "-2**70", "2**200", "2**2000", "-2**2000"]
ARITHMETIC = ["x + {}", "{} - x", "x * {}", "x / {}", "{} // x", "x % {}", "np.maximum(x, {})", "np.hypot(x, {})"]
ARITHMETIC += [
    "np.where(x > 0, {}, x)",
    "np.clip(x, 0, {})",
    "x.clip(-5, {})",
    "np.minimum({}, x)",
    "np.copysign(x, {})",
]
COMPARED = ["x == {}", "x != {}", "x < {}", "x <= {}", "x > {}", "x >= {}", "{} < x", "{} >= x", "np.less({}, x)"]


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("expression", ARITHMETIC)
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_floats_compute_with_them_as_floats(expression, value, dtype):
    if dtype == "complex128" and any(word in expression for word in ("//", "%", "hypot", "copysign")):
        pytest.skip("not for complex numbers")
    both(expression.replace("{}", value), rtol=3e-7 if dtype == "float32" else 1e-15, x=onp.array([1.5, 3.0], dtype))


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize(
    "expression", ["x + {}", "{} - x", "x * {}", "{} // x", "np.maximum(x, {})", "x & {}", "x / {}"]
)
@pytest.mark.parametrize("dtype", ["int8", "int64", "uint64", "bool"])
def test_integers_compute_with_those_they_hold(expression, value, dtype):
    if (dtype == "bool" and "-" in expression.replace("{}", "")) or (dtype == "bool" and "//" in expression):
        pytest.skip("not for truth values")
    both(expression.replace("{}", value), rtol=1e-15, x=onp.array([1, 1], dtype))


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("expression", COMPARED)
@pytest.mark.parametrize("dtype", ["int8", "int64", "uint64", "bool", "float32", "float64", "complex64"])
def test_comparisons_give_the_truth(expression, value, dtype):
    both(expression.replace("{}", value), x=onp.array([1, 1], dtype))


@pytest.mark.parametrize(
    "expression",
    [
        "np.less(2**63, 1)",
        "np.equal(2**70, 2**70 + 2**60)",
        "np.greater(2**70, 1)",
        "np.less_equal(2**63, 2**64)",
        "np.add(2**63, 1)",
        "np.add(2**70, 1)",
        "np.sqrt(2**63)",
        "np.arctan2(1, 2**70)",
        "np.power(2.0, 2**70)",
        "np.isclose(np.ones(2), 2**70)",
        "np.nan_to_num([nan], nan=2**70)",
        "np.ones(2, 'int64').clip(-2**70, 2**70)",
        "np.ones(2, 'uint8').clip(-2**70, 2)",
        "np.ones(2, 'uint8').clip(2**70, None)",
        "np.ldexp(np.ones(2), 2**70)",
        "np.left_shift(1, 2**70)",
        "np.array(2**63)",
        "np.asarray(2**63)",
        "np.array([2**63])",
        "np.array([2**63, 1])",
        "np.array([2**63, -1])",
        "np.array([2**63, True])",
        "np.array([2**63, 1.5])",
        "np.array([2**63, numpy.int8(1)])",
        "np.array([2**63, numpy.uint8(1)])",
        "np.array([-2**63, 2**63])",
        "np.array(-2**63)",
        "np.array(2**70, dtype='float64')",
        "np.array([[1, 2], [3, 2**70]], dtype='float32')",
        "np.array([2**70], dtype='complex128')",
        "np.array([2**70, 0], dtype='bool')",
        "np.array([2**70, '3'], dtype='float32')",
        "np.array(2**2000, dtype='float64')",
        "np.array([2**2000], dtype='float64')",
        "np.array([2**2000, numpy.float32(1)], dtype='float64')",
        "np.array([2**63, 1], dtype='int64')",
        "np.array([2**63, -1], dtype='uint64')",
        "np.full(2, 2**63)",
        "np.full((2, 2), 2**70, dtype='float64')",
        "np.full_like(np.ones(2), 2**70)",
        "np.full(2, 2**70, dtype='int64')",
        "np.full(2, 2**70, dtype='bool')",
        "np.isin(2**63, [1, 2])",
        "np.concatenate([np.zeros(1, 'float32'), [2**63]])",
        "np.mean([2**63, 2**63])",
        "np.random.default_rng(1).integers(2**63, 2**64, size=3, dtype='uint64').dtype",
        "np.random.default_rng(1).integers(2**64, dtype='uint64').dtype",
        "np.random.default_rng(1).integers(2**70)",
        "np.arange(3)[2**70]",
    ],
)
def test_other_uses_are_numpys(expression):
    both(expression, numpy=NUMPY)


@pytest.mark.parametrize(
    "expression", ["np.array(2**64)", "np.array([2**64])", "np.array([2**70, 1])", "np.full(2, -2**70)"]
)
def test_arrays_of_them_alone_do_not_exist(expression):
    # NumPy makes arrays of objects.
    with pytest.raises(OverflowError, match="out of bounds for int64"):
        eval(expression, {"np": np})


def test_the_bounds_of_all_64_bits_are_drawn_between():
    x = np.random.default_rng(3).integers(2**63, 2**64, size=200, dtype="uint64")
    assert min(x.tolist()) >= 2**63
    assert max(x.tolist()) > 2**63 + 2**62


def test_functions_of_whole_arrays_refuse_them():
    for call in (np.sum, np.max, np.cumsum):
        with pytest.raises(OverflowError, match=r"about 1\.18"):
            call(2**70)
