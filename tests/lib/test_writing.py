"""Functions that write into arrays: what is written, through views, and what is refused."""

import warnings

import numpy
import pytest

import mxnet as mx
from both import both

A = numpy.arange(12.0).reshape(3, 4)
I = numpy.arange(12).reshape(3, 4)


def written(call):
    """An expression that makes the call on `x` and gives `x`."""
    return f"(lambda x: ({call}, x)[1])"


@pytest.mark.parametrize(
    "call",
    [
        "np.copyto(x, 5)",
        "np.copyto(x, [1, 2, 3, 4])",
        "np.copyto(x, [[1], [2], [3]], where=[True, False, True, False])",
        "np.copyto(x, 1.5, where=x > 4)",
        "np.copyto(x, [1, 2, 3])",
        "np.copyto(x, 2j)",
        "np.copyto(x, np.array([1.5]), casting='unsafe')",
        "np.copyto(x, np.array([1.5]), casting='no')",
        "np.copyto(x, np.array([1.5]), casting='other')",
        "np.place(x, x > 2, [44, 55])",
        "np.place(x, x > 2, [])",
        "np.place(x, x > 99, [])",
        "np.place(x, [True], [1])",
        "np.place(x, x > 2, list(range(50)))",
        "np.putmask(x, x > 2, [44, 55])",
        "np.putmask(x, x > 2, x * 10)",
        "np.putmask(x, x > 2, [])",
        "np.putmask(x, [True, False], [1])",
        "np.putmask(x, x > 2, -1)",
        "np.fill_diagonal(x, 7)",
        "np.fill_diagonal(x, [7, 8])",
        "np.fill_diagonal(x, [[7, 8], [9, 10]])",
        "np.fill_diagonal(x.T, 7, wrap=True)",
        "np.fill_diagonal(x.T, [7, 8, 9], wrap=True)",
        "np.fill_diagonal(x[0], 7)",
        "np.fill_diagonal(x[::2, ::2], 7)",
        "np.put(x, [0, -1, 5], [7, 8])",
        "np.put(x, [0, 99], 7)",
        "np.put(x, [-20, 99], 7, mode='clip')",
        "np.put(x, [-20, 99], 7, mode='wrap')",
    ],
)
@pytest.mark.parametrize("x", [A, I, A.astype("float32"), A.T, A[::-1, 1:]])
def test_what_is_written_is_what_numpy_writes(call, x):
    both(f"{written(call)}(x)", x=x)


def test_diagonals_of_tall_and_deep_arrays():
    both(f"{written('np.fill_diagonal(x, 4, wrap=True)')}(x)", x=numpy.zeros((10, 3), int))
    both(f"{written('np.fill_diagonal(x, 4)')}(x)", x=numpy.zeros((10, 3), int))
    both(f"{written('np.fill_diagonal(x, [4, 5])')}(x)", x=numpy.zeros((3, 3, 3), int))
    both(f"{written('np.fill_diagonal(x, 4)')}(x)", x=numpy.zeros((3, 2, 3), int))


@pytest.mark.parametrize(
    "write",
    [
        lambda x: mx.np.copyto(x, 1),
        lambda x: mx.np.copyto(x, 1, where=mx.np.ones(x.shape, "bool")),
        lambda x: mx.np.place(x, mx.np.ones(x.shape, "bool"), [1]),
        lambda x: mx.np.putmask(x, mx.np.ones(x.shape, "bool"), [1]),
        lambda x: mx.np.put(x, mx.np.arange(x.size), 1),
    ],
)
def test_writes_go_through_views(write):
    base = mx.np.zeros((4, 6))
    write(base[1::2, ::-3])
    expected = numpy.zeros((4, 6))
    expected[1::2, ::-3] = 1
    assert base.tolist() == expected.tolist()


def test_diagonal_is_written_through_a_view():
    base = mx.np.zeros((4, 4))
    mx.np.fill_diagonal(base[::2].T, 1)
    assert base.tolist() == [[1, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]]


def test_only_arrays_can_be_written_to():
    for write in (mx.np.copyto, lambda x, y: mx.np.place(x, True, y), lambda x, y: mx.np.putmask(x, True, y)):
        with pytest.raises(TypeError, match="must be an ndarray to be written to, not 'list'"):
            write([1, 2], 3)


def test_broadcast_views_are_read_only():
    x = mx.np.broadcast_to(mx.np.arange(3), (2, 3))
    for write in (
        lambda: x.__setitem__(0, 1),
        lambda: mx.np.add(x, 1, out=x),
        lambda: mx.np.copyto(x, 1),
        lambda: mx.np.fill_diagonal(x, 1),
    ):
        with pytest.raises(ValueError, match="read-only"):
            write()
    assert x.tolist() == [[0, 1, 2], [0, 1, 2]]
    # NumPy's are read-only too where nothing is repeated.
    with pytest.raises(ValueError, match="read-only"):
        mx.np.broadcast_to(mx.np.arange(3), (1, 3))[0, 0] = 5


def test_gradients_follow_what_is_written():
    x = mx.np.array([1.0, 2.0, 3.0])
    v = mx.np.array([10.0, 20.0])
    for each in (x, v):
        each.attach_grad()
    with mx.autograd.record():
        y = x * 1
        mx.np.place(y, [True, False, True], v)
        mx.np.copyto(y, v[0], where=[False, True, False])
        head = (y * mx.np.array([1.0, 10.0, 100.0])).sum()
    head.backward()
    assert x.grad.tolist() == [0, 0, 0]
    assert v.grad.tolist() == [11, 100]


@pytest.mark.parametrize(
    "call",
    [
        "np.diagonal(x).__setitem__(0, 7)",
        "x.diagonal(1).__setitem__(slice(None), 7)",
        "np.diag(x).__iadd__(7)",
        "np.diag(x, -1)[1:].fill(7)",
        "np.diag(x[0]).__setitem__(0, 7)",
        "np.linalg.diagonal(x).__setitem__(0, 7)",
        "np.diagonal(x).copy().__setitem__(0, 7)",
        "np.add(1, 2, out=np.diagonal(x))",
        "np.einsum('ii->i', x[:, :3]).__setitem__(slice(None), 7)",
        "np.einsum('ii...->i...', x[:, :3]).__iadd__(7)",
        "np.fill_diagonal(x, 7)",
        "(lambda d: (setattr(d.flags, 'writeable', True), d.fill(7)))(np.diagonal(x))",
    ],
)
def test_diagonals_are_read_only_where_numpys_are(call):
    both(f"{written(call)}(x)", x=A)


def test_gradients_go_through_diagonals():
    x = mx.np.array(A)
    x.attach_grad()
    with mx.autograd.record():
        y = (mx.np.diagonal(x, 1) * mx.np.array([1.0, 2.0, 3.0])).sum() + mx.np.einsum("ii->", x[:, :3] ** 2)
    y.backward()
    expected = numpy.zeros((3, 4))
    expected[range(3), range(1, 4)] = [1, 2, 3]
    expected[range(3), range(3)] = 2 * A[range(3), range(3)]
    numpy.testing.assert_array_equal(x.grad.asnumpy(), expected)


@pytest.mark.parametrize("casting", ["same_kind", "safe", "unsafe", "no"])
@pytest.mark.parametrize("masked", [False, True])
def test_copies_over_other_dtypes_are_refused_where_numpy_refuses_them(casting, masked):
    dtypes = ("bool", "uint8", "int8", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128")
    for to in dtypes:
        for of in dtypes:
            theirs, ours = numpy.zeros(4, dtype=to), mx.np.zeros(4, dtype=to)
            values, mine = numpy.ones(4, dtype=of), mx.np.ones(4, dtype=of)
            how = {"where": numpy.array([True, False, True, True])} if masked else {}
            own = {"where": mx.np.array(how["where"])} if masked else {}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if numpy.can_cast(of, to, casting):
                    numpy.copyto(theirs, values, casting=casting, **how)
                    mx.np.copyto(ours, mine, casting=casting, **own)
                else:
                    with pytest.raises(TypeError):
                        mx.np.copyto(ours, mine, casting=casting, **own)
            numpy.testing.assert_array_equal(ours.asnumpy(), theirs)
