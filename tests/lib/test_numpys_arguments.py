"""Arguments that NumPy takes beside the usual ones, and what it warns of."""

import bisect
import ctypes
import operator
import random
import warnings

import numpy
import pytest

import mxnet as mx
from both import both

np = mx.np
A = numpy.arange(24.0).reshape(4, 6)
I = numpy.array([[3, 1, 2], [0, 5, 4]])


@pytest.mark.parametrize(
    "expression",
    [
        "A.reshape(None)",
        "np.reshape(A, None)",
        "A.T.reshape(None, order='F')",
        "np.reshape(A, None, copy=True)",
        "A.copy(order=None)",
        "np.copy(A, order=None)",
        "A.astype('int32', order=None)",
        "np.zeros((2, 3), order=None)",
        "A.flatten(order=None)",
        "np.full(2, None, dtype=float)",
        "np.full((2, 2), None, dtype='complex64')",
        "np.full(2, None, dtype=bool)",
        "np.full_like(A, None)",
        "np.full_like(I, None)",
        "np.isclose(A, A + 0.1, rtol=A / 100)",
        "np.isclose(A, A + 0.1, atol=[0, 0.2, 0, 0, 0.2, 1])",
        "np.isclose(A, A + 0.1, rtol=np.array(0.0), atol=np.array(0.2))",
        "np.allclose(A, A + 0.1, atol=[0, 0.2, 0, 0, 0.2, 1])",
        "np.allclose(A, A + 0.1, atol=A + 0.2)",
        "np.isin(I, ['a'])",
        "np.isin(I, ['a', 3])",
        "np.isin(I, [None, 3])",
        "np.isin(I, None, invert=True)",
        "np.isin(['a', 'b'], ['b'])",
        "np.matmul(A, A.T, signature='dd->d')",
        "np.matmul(A, A.T, signature=('d', 'd', 'd'))",
        "np.matmul(I, I.T, signature='dd->d')",
        "np.matmul(A, A.T, signature='dd')",
        "np.matmul(A, A.T, signature='ff->f')",
        "np.matmul(A, A.T, dtype='d', signature='dd->d')",
        "np.vecdot(A, A, signature='dd->d')",
        "np.matvec(A, A[0], signature='dd->d')",
        "np.pad(I.astype('int8'), 1, constant_values=300)",
        "np.r_[I[0].astype('int8'), 300]",
        "np.clip([True, False], True, True)",
        "np.clip([True, False], False, [True, False])",
        "np.trapezoid([1, 2, 4], [[1, 2, 3]])",
        "np.trapezoid(A, A[:, :1], axis=0)",
        "np.polymul([0, 0, 1, 2], [0, 3])",
        "np.polymul([0, 0], [1, 2])",
        "np.polymul([], [1, 2])",
        "np.polydiv([], [1, 2])",
        "np.polydiv([1, 2], [])",
        "np.polydiv([1.0, 2.0, 3.0], [0.0, 2.0])",
        "np.polydiv([1 + 1j], [1.0, 2.0])",
        "np.polyval([True, False], [True, False, True])",
        "np.correlate([1, 2, 3], [0, 1])",
        "np.correlate([1, 2, 3], 2)",
        "np.nan_to_num(A, nan=1j)",
        "np.isclose(np.array(1, dtype='f4'), 1 - 2**-50, rtol=0, atol=0)",
        "np.isclose(np.array([1], dtype='f4'), 0, atol=1 - 2**-50)",
        "np.isclose(np.array([1], dtype='f4'), 2, atol=0, rtol=0.5 - 2**-50)",
        "np.isclose(np.array([1], dtype='f4'), 2, atol=0, rtol=np.float64(0.5 - 2**-50))",
        "np.full(3, [[1, 2, 3]])",
        "np.full((2, 3), [[[1, 2, 3]]], order='F')",
        "np.full_like(I, [[[7]]])",
        "np.full(3, [[1, 2, 3], [4, 5, 6]])",
        "np.choose([0, 1, 0], [A[0, :3], A[1, :3]], out=np.zeros(3, dtype='int64'))",
        "np.take(A, [0, 7], out=np.zeros(2, dtype='int64'))",
        "np.compress([True], A[0] + 0.5, out=np.zeros(1, dtype='int64'))",
        "np.trace(A + 0.25, out=np.zeros((), dtype='int64'))",
        "np.polyadd([[1, 2]], [1])",
        "np.polyadd(A, A)",
        "np.polysub([], A)",
        "np.polysub(A, [1, 2, 3, 4])",
        "np.polyadd(A, [1, 2, 3])",
        "np.polyadd(A, A[:2])",
        "np.unwrap(np.array([0, 1, 5, 250], dtype='uint8'))",
        "np.unwrap(np.array([0, 1, 5, 250], dtype='uint8'), period=255)",
        "np.unwrap(np.array([0, 1, 5, 250], dtype='uint64'))",
        "np.unwrap(np.array([0, 1, 5, 120, 3, 100], dtype='int8'), period=100.0)",
        "np.copyto(A.copy(), 1, where=[1, 0, 0, 2, 1, 0])",
        "np.copyto(A.copy(), 1, where=1)",
        "np.tensordot(I, I, axes=-1)",
        *(
            "np.add.reduce(A, axis=[0])",
            "np.sum(A, axis=np.array([0]))",
            "np.sum(A, axis={0})",
            "np.std(A, axis=range(1))",
        ),
        *("np.sum(A, axis=np.array(0))", "np.median(A, axis=[0])", "np.flip(A, [0])", "np.average(A, axis=[0])"),
        *("np.sum(A, keepdims='a')", "np.max(A, keepdims=None)", "np.sum(A, keepdims=2)", "np.mean(A, keepdims=[1])"),
        *(
            "np.arange(0, 5, 0)",
            "np.arange(0.0, 0.0, 0.0)",
            "np.split(A, 0)",
            "np.split(A, -1)",
            "np.array_split(A, 0)",
        ),
        *("np.eye(-1)", "np.eye(2, -1)", "np.identity(-2)", "np.tri(-1)", "np.indices(-1)", "np.indices((2, -1))"),
        *(
            "np.put([1, 2], 0, 1)",
            "np.put(3, 0, 1)",
            "np.searchsorted([1, 2], 3, sorter=[0, 5])",
            "A.copy().sort(axis=None)",
        ),
        "np.quantile([1, 2], 0.5, weights=[1], method='inverted_cdf')",
    ],
)
def test_arguments_are_taken_as_by_numpy(expression):
    both(expression, 1e-12, A=A, I=I)


@pytest.mark.parametrize("kind", ["e", "f", "d"])
def test_limits_are_shown_as_numpys(kind):
    theirs, ours = numpy.finfo(kind), np.finfo(kind)
    assert repr(ours) == repr(theirs)
    assert str(ours).splitlines()[3:7] == str(theirs).splitlines()[3:7]
    assert str(ours).count("\n") == str(theirs).count("\n")


def test_limits_of_integers_are_shown_as_numpys():
    assert str(np.iinfo("uint16")) == str(numpy.iinfo("uint16"))
    assert repr(np.iinfo("int8")) == repr(numpy.iinfo("int8"))


def test_limits_of_bfloat16_are_shown():
    assert repr(np.finfo(np.bfloat16)) == "finfo(resolution=0.01, min=-3.3895e+38, max=3.3895e+38, dtype=bfloat16)"
    assert "Machine parameters for bfloat16" in str(np.finfo(np.bfloat16))


class TestSequences:
    def test_length_by_the_protocol_of_sequences(self):
        size = ctypes.pythonapi.PySequence_Size
        size.argtypes, size.restype = [ctypes.py_object], ctypes.c_ssize_t
        x = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        assert size(x) == len(x) == 3
        with pytest.raises(TypeError, match="unsized"):
            size(np.array(1.0))

    def test_items_by_the_protocol_of_sequences(self):
        item = ctypes.pythonapi.PySequence_GetItem
        item.argtypes, item.restype = [ctypes.py_object, ctypes.c_ssize_t], ctypes.py_object
        x = np.array([1.0, 2.0, 3.0])
        assert [float(item(x, i)) for i in (0, 2, -1, -3)] == [1.0, 3.0, 3.0, 1.0]
        with pytest.raises(IndexError):
            item(x, 3)

    def test_the_standard_library_works_on_arrays(self):
        x = np.array([1.0, 3.0, 3.0, 7.0])
        assert bisect.bisect(x, 3) == 3
        assert bisect.bisect_left(x, 3) == 1
        assert float(random.Random(0).choice(x)) in (1.0, 3.0, 7.0)
        assert [float(v) for v in reversed(x)] == [7.0, 3.0, 3.0, 1.0]
        assert operator.length_hint(x) == 4
        assert operator.indexOf(x, 7.0) == 3
        assert operator.countOf(x, 3.0) == 2
        assert x[::-1].tolist() == [7.0, 3.0, 3.0, 1.0]
        x[-1] = 9.0
        assert x.tolist() == [1.0, 3.0, 3.0, 9.0]
        first, *rest = x
        assert float(first) == 1.0 and len(rest) == 3
        with pytest.raises(IndexError):
            x[-5]
        with pytest.raises(ValueError, match="delete"):
            del x[0]


@pytest.mark.parametrize(
    "statement",
    [
        "Z.astype(float)",
        "Z.astype('int8')",
        "np.astype(Z, np.float32)",
        "np.asarray(Z, dtype=float)",
        "np.array(Z, dtype='float32')",
        "X.__setitem__(slice(None), Z)",
        "np.copyto(X, Z, casting='unsafe')",
        "Z.astype(bool)",
        "Z.astype('complex64')",
        "Z.real",
        "X.astype(complex)",
    ],
)
def test_lost_imaginary_parts_are_warned_of(statement):
    def warned(module):
        names = {"np": module, "Z": module.array([1 + 2j, 3.0]), "X": module.zeros(2)}
        with warnings.catch_warnings(record=True) as record:
            warnings.simplefilter("always")
            eval(statement, names)
        return [warning.category for warning in record]

    assert warned(np) == warned(numpy)


class TestQuantilesOfInfinities:
    @pytest.mark.parametrize("method", ["linear", "hazen", "midpoint", "lower", "averaged_inverted_cdf", "nearest"])
    @pytest.mark.parametrize(
        "values",
        [
            [1.0, numpy.inf],
            [-numpy.inf, 1.0, numpy.inf],
            [-numpy.inf, -numpy.inf, 1.0, 2.0, numpy.inf, numpy.inf],
            [numpy.inf, numpy.inf],
            [0.0, 1.0, 2.0, numpy.nan],
        ],
    )
    def test_values_are_numpys(self, method, values):
        x = numpy.array(values)
        for q in ("[0.0, 0.2, 0.25, 0.4, 0.5, 0.6, 0.75, 1.0]", "0.5", "1.0", "0.0"):
            for name in ("quantile", "nanquantile"):
                both(f"np.{name}(x, {q}, method='{method}')", 1e-12, x=x)
        both(f"np.percentile(x, [0, 50, 100], method='{method}')", 1e-12, x=x)
        both("np.median(x)", x=x)
        both("np.nanmedian(x)", x=x)

    def test_integers_name_elements(self):
        for x in (numpy.array([1.0, numpy.inf]), numpy.array([3, 1, 2])):
            both("np.quantile(x, [0, 1])", x=x)
            both("np.quantile(x, 1)", x=x)
            both("np.quantile(x, True)", x=x)
            both("np.nanquantile(x, [1, 0])", x=x)

    def test_truth_values_have_no_differences(self):
        x = numpy.array([True, False, True])
        both("np.quantile(x, 0.5)", x=x)
        both("np.percentile(x, 50)", x=x)
        both("np.nanpercentile(x, 50)", x=x)
        both("np.quantile(x, 0.5, method='lower')", x=x)
        both("np.quantile(x, 1)", x=x)
        both("np.median(x)", x=x)


class TestHalvesInWiderOuts:
    @pytest.mark.parametrize("name", ["exp", "log", "sqrt", "tanh", "square"])
    @pytest.mark.parametrize("to", ["float32", "float64", "complex64"])
    def test_elements_are_rounded_to_halves_first(self, name, to):
        x = numpy.linspace(0.5, 3.0, 50, dtype="float16")
        ours, theirs = np.zeros(50, dtype=to), numpy.zeros(50, dtype=to)
        getattr(np, name)(np.array(x), out=ours)
        getattr(numpy, name)(x, out=theirs)
        found = ours.asnumpy().real
        assert (found.astype("float16") == found).all()
        numpy.testing.assert_allclose(found, theirs.real, rtol=2**-10)  # one unit in the last place of float16

    @pytest.mark.parametrize("name", ["add", "multiply", "divide", "subtract"])
    def test_arithmetic_agrees(self, name):
        x, y = numpy.linspace(0.5, 3.0, 50, dtype="float16"), numpy.linspace(1.0, 2.0, 50, dtype="float16")
        for keywords in ({}, {"casting": "unsafe"}, {"dtype": "float16"}, {"dtype": "float32"}):
            ours, theirs = np.zeros(50), numpy.zeros(50, dtype="float32")
            getattr(np, name)(np.array(x), np.array(y), out=ours, **keywords)
            getattr(numpy, name)(x, y, out=theirs, **keywords)
            numpy.testing.assert_array_equal(ours.asnumpy(), theirs)

    @pytest.mark.parametrize("name", ["sum", "mean", "prod", "std", "var"])
    def test_folds_are_computed_in_the_wider_type(self, name):
        x = numpy.linspace(0.5, 1.5, 300, dtype="float16")
        ours, theirs = np.zeros(()), numpy.zeros((), dtype="float32")
        getattr(np, name)(np.array(x), out=ours)
        getattr(numpy, name)(x, out=theirs)
        numpy.testing.assert_allclose(ours.asnumpy(), theirs, rtol=300 * 2.0**-24)

    def test_running_sums_are_computed_in_the_wider_type(self):
        x = numpy.linspace(0.5, 1.5, 300, dtype="float16")
        ours = np.cumsum(np.array(x), out=np.zeros(300))
        theirs = numpy.cumsum(x, out=numpy.zeros(300, "float32"))
        numpy.testing.assert_allclose(ours.asnumpy(), theirs, rtol=300 * 2.0**-24)
