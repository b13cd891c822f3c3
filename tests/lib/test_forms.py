"""What calls may look like, and what kind of thing they give: NumPy's forms of arguments and results."""

import numpy
import pytest

import mxnet as mx
from both import both

np = mx.np
A = numpy.arange(24.0).reshape(4, 6)
Z = numpy.array([1 + 2j, 3 - 1j])


@pytest.mark.parametrize(
    "expression",
    [
        "np.split(A, 2)",
        "np.split(A, [1, 3], axis=1)",
        "np.split(A, 1)",
        "np.split(A, [])",
        "np.split(A, 2.)",
        "np.split(A, np.array(4))",
        "np.split(A, np.array([2]))",
        "np.split(A, 3)",
        "np.split(A, -1)",
        "np.split(A, 'a')",
        "np.split(A, [1.0])",
        "np.array_split(A, 3)",
        "np.array_split(A, 3.0, axis=1)",
        "np.hsplit(A, 2)",
        "np.hsplit(A, 2.)",
        "np.vsplit(A, [1])",
        "np.dsplit(A.reshape(2, 3, 4), 2)",
        "np.unstack(A)",
        "np.meshgrid(A[0], A[1])",
        "np.histogramdd(A[:, :2], bins=3)",
        "np.trim_zeros([0, 1, 2, 0])",
        "np.trim_zeros((0, 1, 2, 0))",
        "np.trim_zeros(range(3))",
        "np.trim_zeros([0, 0])",
        "np.trim_zeros([0, 1, 0], 'f')",
        "np.trim_zeros(A)",
        "np.take(A, [True, False])",
        "np.take(A, np.array([[True], [False]]), axis=1)",
        "np.take(A, True)",
        "np.take(A, np.array([0.0]))",
        "np.argsort(3)",
        "np.argsort(3, axis=0)",
        "np.argsort(3, axis=None)",
        "np.argsort(3, axis=1)",
        "np.argpartition(3, 0)",
        "np.sort(3)",
        "np.partition(3, 0)",
        "np.identity(n=2)",
        "np.identity(3, dtype=int)",
        "A.reshape(6, 4, order='A')",
        "A.T.reshape(4, 6, order='A')",
        "np.reshape(A.T, (3, 8), order='A')",
        "np.reshape(A, (3, 8), order='A', copy=True)",
        "A.reshape(6, 4, order='K')",
        "A.reshape(6, 4, order='Z')",
        "np.nan_to_num([nan, 1, nan], nan=[7, 8, 9])",
        "np.nan_to_num([inf, -inf], posinf=[1, 2], neginf=3)",
        "np.nan_to_num([nan, 1], nan=[7, 8, 9])",
        "np.nan_to_num(np.array([nan, inf], 'f4'), nan=np.array(1e-3), posinf=2)",
        "np.nan_to_num(nan, nan=5)",
        "np.clip(A, 3, 9, dtype='f4')",
        "np.clip(A, 3, 9, dtype=int, casting='unsafe')",
        "np.clip(A, 3, 9, np.zeros((4, 6)))",
        "np.clip(A, 3, 9, out=np.zeros((4, 6), int), casting='unsafe')",
        "np.clip(A, 3, 9, out=np.zeros((4, 6)), where=A > 4)",
        "np.clip(A, 3, 9, out=np.zeros((4, 6), 'f4'), where=A > 4, dtype='f8')",
        "np.clip(A, 3, None, dtype='f4')",
        "np.clip(A, min=3, max=5, where=True)",
        "A.clip(3, 9, np.zeros((4, 6)))",
        "A.clip(3, 9, dtype='f4')",
        "np.round(1.5, 2**40)",
        "np.round(A, 2**31)",
        "np.round(A, -(2**31) - 1)",
        "np.around(A, 2**70)",
        "A.round(2**31)",
        "np.linalg.lstsq(A, A[:, 0])[2].dtype",
        "np.resize(5, (2, 2))",
        "np.resize(A, (5, 3))",
        "np.lib.array_utils.normalize_axis_index(-1, 3)",
        "np.lib.array_utils.normalize_axis_index(3, 3)",
        "np.lib.array_utils.normalize_axis_tuple((0, -1), 3)",
        "np.lib.NumpyVersion('1.2.3') > '1.0.0'",
        "[np.subtract(*np.lib.array_utils.byte_bounds(x)).item() for x in (A, A[::-1, ::2], A[:0])]",
        "np.lib.scimath.sqrt(-1)",
        "np.exceptions.RankWarning.__name__",
        "np.imag(Z)",
        "A.imag",
    ],
)
def test_calls_are_numpys(expression):
    both(expression, A=A, Z=Z, rtol=1e-12)


def test_parts_can_be_changed_and_appended_to():
    parts = np.split(np.arange(4), 2)
    parts[0] = parts[0] + 1
    parts.append(np.zeros(1))
    assert [part.tolist() for part in parts] == [[1, 2], [2, 3], [0]]
    parts[1][0] = 9
    x = np.arange(6.0)
    np.array_split(x, 4)[0][0] = 7
    assert x[0].item() == 7


def test_gradients_flow_through_parts():
    x = np.arange(4.0)
    x.attach_grad()
    with mx.autograd.record():
        first, last = np.split(x, 2)
        y = (first * last).sum()
    y.backward()
    assert x.grad.tolist() == [2, 3, 0, 1]


def test_zeros_in_place_of_imaginary_parts_cannot_be_written_to():
    x = np.ones(3)
    assert not x.imag.flags.writeable and not np.imag(x).flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        x.imag[0] = 1
    z = np.array([1 + 2j])
    z.imag[0] = 5
    assert z.tolist() == [1 + 5j]


def test_a_resized_array_is_its_own():
    for given in (5, [1, 2, 3]):
        x = np.resize(given, (2, 2))
        x[0, 0] = 9
        assert x[0, 0].item() == 9 and x[1, 1].item() != 9


def test_reshaping_in_fortran_order_keeps_the_gradient():
    x = np.array(numpy.arange(6.0).reshape(2, 3))
    x.attach_grad()
    with mx.autograd.record():
        y = (x.T.reshape(2, 3, order="A") * np.array([[1.0, 2, 3], [4, 5, 6]])).sum()
    y.backward()
    theirs = numpy.arange(6.0).reshape(2, 3).T.reshape(2, 3, order="A")
    wanted = numpy.zeros(6)
    wanted[theirs.astype(int)] = [[1, 2, 3], [4, 5, 6]]
    assert x.grad.reshape(-1).tolist() == wanted.tolist()


def test_undefined_elements_of_clip_stay_what_out_holds():
    out = np.full((3,), 7.0)
    found = np.clip(np.array([-5.0, 0.5, 5.0]), 0, 1, out=out, where=np.array([True, False, True]))
    assert found is out and out.tolist() == [0, 7, 1]
    assert np.clip(np.array([-5.0, 5.0]), 0, 1, where=[True, False])[0].item() == 0


def test_clip_refuses_casts_that_the_rule_does_not_allow():
    x = np.arange(3.0)
    for options in ({"dtype": "int32"}, {"out": np.zeros(3, dtype="int32")}, {"dtype": "float16", "casting": "safe"}):
        with pytest.raises(TypeError, match=r"cannot cast .* under|with casting rule"):
            np.clip(x, 0, 1, **options)


def test_what_stands_for_nan_has_a_gradient():
    stands = np.array([1.0, 2.0])
    stands.attach_grad()
    with mx.autograd.record():
        y = np.nan_to_num(np.array([numpy.nan, 3.0]), nan=stands).sum()
    y.backward()
    assert stands.grad.tolist() == [1, 0]
