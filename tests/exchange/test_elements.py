"""Conversion of text, None and numbers to elements in constructors and assignments, with NumPy's errors."""

import warnings
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import numpy as onp
import pytest

from both import both
from mxnet import np
from mxnet.util import np_default_dtype

# NumPy's own names, which `both` does not take for an array that is to be copied.
NUMPY = SimpleNamespace(**{name: value for name, value in vars(onp).items() if name != "copy"})
NAMES = {"Decimal": Decimal, "Fraction": Fraction, "numpy": NUMPY}

MADE = [
    "np.array(['1', '2'], dtype='float64')",
    "np.array(['1', '2'], dtype='int16')",
    "np.array([['1', '2'], ['3', '4.5']], dtype='float32')",
    "np.array('1.5', dtype='float64')",
    "np.array(['1.5'], dtype='int64')",
    "np.array(['a'], dtype='float64')",
    "np.array(['300'], dtype='uint8')",
    "np.array(['nan', '-inf'], dtype='float16')",
    "np.array(['1+2j'], dtype='complex128')",
    "np.array(['', 'a'], dtype='bool')",
    "np.array([b'1', b'2'], dtype='float64')",
    "np.array(numpy.array(['1', '2']), dtype='float64')",
    "np.array(numpy.array([None, '2'], dtype=object), dtype='float64')",
    "np.array(None, dtype='float64')",
    "np.array([None, 1], dtype='float32')",
    "np.array([[None, '2'], ['3', 4]], dtype='float64')",
    "np.array([None, 1], dtype='int64')",
    "np.array([None, 1], dtype='bool')",
    "np.array([None], dtype='complex64')",
    "np.array(Decimal('1.5'), dtype='float64')",
    "np.array([Fraction(1, 2), 1], dtype='float64')",
    "np.array([{}], dtype='float64')",
    "np.array({1, 2}, dtype='float64')",
    "np.array(object(), dtype='float64')",
    "np.asarray(['1', None], dtype='float64')",
    "np.array(300., 'uint8')",
    "np.array([300.7], 'uint8')",
    "np.array([255.7], 'uint8')",
    "np.array([-0.5], 'uint8')",
    "np.array(-1.0, 'uint8')",
    "np.array(nan, 'int32')",
    "np.array([nan, 1], 'int32')",
    "np.array(inf, 'int64')",
    "np.array([-inf], 'uint64')",
    "np.array(1e30, 'int64')",
    "np.array(1e19, 'uint64')",
    "np.array(1e10, 'int32')",
    "np.array(1e10, 'int64')",
    "np.array([2**62 + 1, 1.5], 'int64')",
    "np.array(1+2j, 'float32')",
    "np.array([1+2j], 'float32')",
    "np.array([1+2j, 0], 'bool')",
    "np.array(1+2j, 'bool')",
    "np.array([True, 300], 'uint8')",
    "np.array([numpy.int64(300)], 'uint8')",
    "np.array([numpy.int64(-1)], 'uint64')",
    "np.array(numpy.float64(300), 'uint8')",
    "np.array([numpy.float64(nan)], 'int32')",
    "np.array([numpy.float64(inf), 1], 'int32')",
    "np.array([numpy.int64(2**40)], 'int32')",
    "np.array([numpy.float64(1e10)], 'int32')",
    "np.array([numpy.uint64(2**63)], 'int64')",
    "np.array([numpy.complex64(1+2j)], 'int32')",
    "np.array([numpy.complex128(1+2j), 3], 'float32')",
    "np.array([numpy.uint64(2**63), -1], 'float64')",
    "np.array([numpy.array(300)], 'uint8')",
]


@pytest.mark.parametrize("expression", MADE)
def test_arrays_of_a_dtype_asked_for_are_numpys(expression):
    both(expression, **NAMES)


@pytest.mark.parametrize(
    "expression", ["np.array(['1'])", "np.array([None, 1.0])", "np.array('a')", "np.array({})", "np.array(None)"]
)
def test_without_a_dtype_there_are_only_numbers(expression):
    with pytest.raises(TypeError):
        eval(expression, {"np": np})


# Statements on an array `a` of two or more elements.
ASSIGNED = [
    "a[0] = {}",
    "a[:] = {}",
    "a[...] = [{}, 1]",
    "a[:] = ({}, 1)",
    "a[[0, 1]] = {}",
    "a[[0, 1]] = [{}, 1]",
    "a[np.array([True, False])] = {}",
    "a[np.array([True, False])] = [{}]",
    "a.fill({})",
    "a.flat = {}",
    "a.flat = [{}]",
    "a.flat[:] = [{}, 1]",
    "a.flat[[0, 1]] = [{}, 1]",
    "np.put(a, 0, {})",
    "np.put(a, [0, 1], [{}, 1])",
    "a.put([1], [{}])",
    "np.place(a, [True, False], {})",
    "np.place(a, [True, False], [{}])",
    "np.putmask(a, [True, False], {})",
    "np.putmask(a, [True, False], [{}, 1])",
    "np.put_along_axis(a, np.array([0]), {}, 0)",
    "np.put_along_axis(a, np.array([0]), [{}], 0)",
    "np.copyto(a, {})",
    "np.copyto(a, [{}, 1])",
    "np.copyto(a, [{}, 1], casting='unsafe')",
    "np.fill_diagonal(a.reshape(1, 2), {})",
    "np.fill_diagonal(a.reshape(1, 2), [{}])",
    "a[:] = np.insert(a, 0, {})[:2]",
    "a[:] = np.insert(a, 0, [{}])[:2]",
    "a[:] = np.insert(a, [0, 1], [{}, 1])[:2]",
    "a[:] = np.piecewise(a, [np.array([True, False])], [{}])",
    "a[:] = np.piecewise(a, [np.array([True, False])], [lambda x: {}])",
    "a[:] = np.piecewise(a, [np.array([True, False])], [lambda x: [{}]])",
    "a += {}",
]

VALUES = {
    "uint8": ["300", "300.", "-1", "3", "255.7", "nan", "inf", "2**70", "1j", "'3'", "'3.5'", "'300'", "None"],
    "int32": ["2**31", "-2**31", "1e10", "-2.5", "nan", "-inf", "2**63", "'-3'", "None", "{}"],
    "int64": ["2**63", "1e30", "2**62 + 1", "nan", "numpy.float64(2.0)", "numpy.uint64(2**63)"],
    "uint64": ["2**64", "2**63 + 1", "-1", "2.**63", "'7'"],
    "float32": ["2**70", "2**2000", "'1.5'", "'x'", "None", "1j", "Decimal('2.5')", "{1, 2}", "numpy.complex64(1+2j)"],
    "float64": ["2**63", "0.1", "None", "'inf'"],
    "bool": ["2**70", "nan", "0", "''", "None", "1j"],
    "complex64": ["2**70", "1j", "'1+2j'", "None"],
}


def _runs(statement, module, dtype):
    """The array that a statement leaves, and the error it raises."""
    a = module.array([5, 6]).astype(dtype)
    names = {"np": module, "nan": onp.nan, "inf": onp.inf, "a": a, **NAMES}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(statement, names)
        except Exception as error:  # noqa: BLE001  # whatever is raised is what is compared
            return onp.asarray(names["a"]).tolist(), error
    return onp.asarray(names["a"]).tolist(), None


@pytest.mark.parametrize("dtype", VALUES)
@pytest.mark.parametrize("statement", ASSIGNED)
def test_values_are_assigned_or_refused_as_numpy_does(statement, dtype):
    with np_default_dtype(True):
        for value in VALUES[dtype]:
            text = statement.replace("{}", value)
            theirs, failure = _runs(text, onp, dtype)
            ours, error = _runs(text, np, dtype)
            if failure is None:
                assert error is None, f"{text} ({dtype}): {error!r}"
                assert onp.array_equal(ours, theirs, equal_nan=dtype != "bool"), (
                    f"{text} ({dtype}): {ours}, not {theirs}"
                )
            else:
                # NumPy words the overflow of one element of `flat` as a ValueError, that of a truth value in
                # `copyto` as an OverflowError.
                kinds = [next(c for c in type(failure).__mro__ if c.__module__ == "builtins")]
                kinds += (
                    [OverflowError] if "flat" in text else [TypeError] if "copyto" in text and dtype == "bool" else []
                )
                kinds = tuple(kinds)
                assert isinstance(error, kinds), f"{text} ({dtype}): NumPy raises {failure!r}, we {error!r} {ours}"
                assert ours == onp.array([5, 6]).astype(dtype).tolist(), f"{text} ({dtype}) has changed the array"
