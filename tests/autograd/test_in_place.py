"""Writes in place while recording: gradients through the arrays and their views."""

import numpy as onp
import pytest

import slopes
from mxnet import _core, autograd, np
from mxnet.error import AutogradError

X = onp.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]])
V = onp.array([3.0, -2.0, 0.5])


def assigned_int(y, v):
    y[1] = v
    return y


def assigned_column(y, v):
    y[:, 1] = v[:2]
    return y


def assigned_mask(y, v):
    y[y > 1] = v[0]
    return y


def assigned_repeated(y, v):
    y[[0, 0], [1, 2]] = v[:2]
    return y


def added_row(y, v):
    y[0] += v
    return y


def multiplied_column(y, v):
    y[:, ::2] *= v[:2]
    return y


def divided_by_itself(y, v):
    y[0] /= y[1]
    return y


def added_at_indices(y, v):
    y[[1, 0]] += v
    return y


def whole_array(y, v):
    y += v
    y *= v
    y -= v * v
    y **= 2
    y /= 1 + v * v
    return y


def through_a_view(y, v):
    row = y[1]
    row *= v
    return y


def through_a_view_of_a_view(y, v):
    column = y.T[1:][0]
    column += v[1:]
    return y


def through_a_reshaped_view(y, v):
    y.reshape(-1)[1:4] = v
    return y


def two_views_that_meet(y, v):
    row, column = y[0], y[:, 1]
    row *= v
    column += v[:2]
    return row * 2 + y + column.sum()


def view_read_after_its_base_was_written(y, v):
    row = y[0]
    y *= v
    y[0, 1] = v[2]
    return row * row


def view_and_its_results(y, v):
    row = y[0]
    before = row * 2
    row += v
    return before * row


def rows_of_a_loop(y, v):
    for row in y:
        row *= v
    return y


def parts_of_a_split(y, v):
    left, right = np.split(y, [1], axis=1)
    left += 1
    right *= v[:2]
    return y * left


def filled_from_parts(y, v):
    out = np.zeros((3, 3), dtype="float64")
    for i in range(2):
        out[i] = y[i] * v
    row = out[2]
    row[:] = v
    row += out[0]
    return out


def overwritten_with_constants(y, v):
    y[0] = 1.3
    z = y * v
    z[1, :2] = onp.array([1.0, 2.0])
    np.floor(z, out=z)
    return z + y


def out_argument(y, v):
    z = y * 2
    np.multiply(y, v, out=z)
    np.sin(y[0], out=z[1])
    np.add(z, v, out=z, where=y > 0)
    return z


def swapped(y, v):
    y[0], y[1] = y[1].copy() * v, y[0].copy()
    return y


FUNCTIONS = [
    assigned_int,
    assigned_column,
    assigned_mask,
    assigned_repeated,
    added_row,
    multiplied_column,
    divided_by_itself,
    added_at_indices,
    whole_array,
    through_a_view,
    through_a_view_of_a_view,
    through_a_reshaped_view,
    two_views_that_meet,
    view_read_after_its_base_was_written,
    view_and_its_results,
    rows_of_a_loop,
    parts_of_a_split,
    filled_from_parts,
    overwritten_with_constants,
    out_argument,
    swapped,
]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_writes_are_part_of_the_gradient(function, order):
    def of_results(x, v):
        return function(x.copy() * 1 if order == "C" else (x.T.copy() * 1).T, v)

    slopes.check(of_results, [X, V], onp.random.default_rng(1))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_recorded_writes_give_the_values_of_numpy(function):
    if function is out_argument:
        pytest.skip("it calls our functions")
    x, v = np.array(X, dtype="float64"), np.array(V, dtype="float64")
    x.attach_grad()
    with autograd.record():
        got = function(x * 1, v)
    onp.testing.assert_allclose(got.asnumpy(), function_of_numpy(function), rtol=1e-14)


def function_of_numpy(function):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "np", onp)
        if function is view_and_its_results:
            row = X[0]
            return row * 2 * (row + V)
        return function(X.copy(), V)


@pytest.mark.parametrize("shape, strides, offset", [((2, 2), (4, 2), 1), ((2, 3), (0, -2), 5), ((0, 2), (4, 1), 0)])
def test_a_window_is_a_view_by_strides(shape, strides, offset):
    window = _core.namespaces["op"]["window"]
    x = onp.arange(12.0).reshape(3, 4)
    want = onp.lib.stride_tricks.as_strided(x.ravel()[offset:], shape, [8 * s for s in strides])
    onp.testing.assert_array_equal(window(np.array(x), shape, strides, offset).asnumpy(), want)
    with pytest.raises(ValueError, match="is not in C order"):
        window(np.array(x).T, shape, strides, offset)
    with pytest.raises(IndexError, match=r"strides \(4, 1\) from offset 3 with shape \(3, 2\) exceed the 12 elements"):
        window(np.array(x), (3, 2), (4, 1), 3)


def recorded():
    w = np.array(X, dtype="float64")
    w.attach_grad()
    return w


def test_writing_to_a_variable_or_a_view_of_one_is_refused():
    w = recorded()
    with autograd.record():
        with pytest.raises(AutogradError, match="cannot write in place to a variable"):
            w += 1
        with pytest.raises(AutogradError, match="cannot write in place to a variable"):
            w[0] = 1
        with pytest.raises(AutogradError, match="cannot write in place to a view of a variable"):
            w[0] += 1
        with pytest.raises(AutogradError, match="cannot write in place to a view of a variable"):
            w.T[0][1:] = w[0, 1:]
    assert w.asnumpy().tolist() == X.tolist()


def test_a_view_taken_before_recording_is_refused_after_a_write():
    w, out = recorded(), np.zeros((2, 3), dtype="float64")
    row = out[0]
    with autograd.record():
        out[:] = w * 2
        with pytest.raises(AutogradError, match="operand 0 shares elements with an array that"):
            row.sum()
        assert autograd.grad(out[0].sum(), w).asnumpy().tolist() == [[2] * 3, [0] * 3]
    assert row.asnumpy().tolist() == (2 * X[0]).tolist()


def test_an_array_written_through_a_view_from_before_recording_is_refused():
    w, out = recorded(), np.zeros((2, 3), dtype="float64")
    row = out[0]
    with autograd.record():
        row[:] = w[0]
        with pytest.raises(AutogradError, match="shares elements"):
            out * 2
        with pytest.raises(AutogradError, match="shares elements"):
            out[1] = 1.0 * w[1]
        assert autograd.grad((row * 3).sum(), w).asnumpy().tolist() == [[3] * 3, [0] * 3]


def test_writes_through_real_parts_are_refused():
    z = np.array([1 + 2j, 3 - 1j], dtype="complex128")
    z.attach_grad()
    with autograd.record():
        y = z * 2
        with pytest.raises(AutogradError, match="a view as float64 cannot take part in a recorded write"):
            y.real[:] = 1.0
        real = y.real
        y *= 2
        with pytest.raises(AutogradError, match="shares elements"):
            real * 2


def test_a_value_that_a_gradient_needs_may_not_be_overwritten():
    w = recorded()
    with autograd.record():
        y = np.exp(w)
        y += 1
        total = y.sum()
    with pytest.raises(AutogradError, match="exp: output 0, needed for its gradient, was overwritten in place"):
        total.backward()


def test_a_stale_head_is_refused():
    w, out = recorded(), np.zeros((2, 3), dtype="float64")
    row = out[0]
    with autograd.record():
        row[:] = w[0]
        out = out  # the object that does not know
    with pytest.raises(AutogradError, match="was not computed while recording"):
        out.backward()


def test_writes_inside_pause_leave_the_graph_alone():
    w = recorded()
    with autograd.record():
        y = w * 3
        row = y[0]
        with autograd.pause():
            row *= 10
            y[1] = 0
        total = (row + y[1]).sum()
    assert total.asnumpy() == pytest.approx(30 * X[0].sum())
    assert autograd.grad(total, w).asnumpy().tolist() == [[3] * 3, [3] * 3]


def test_one_array_written_again_and_again_stays_in_the_graph():
    w = recorded()
    with autograd.record():
        y = w * 1
        for k in range(50):
            y[k % 2] += y[(k + 1) % 2] * 0.5
            y[:, k % 3] *= 1.25
    first = autograd.grad(y, w).asnumpy()
    want = X.copy()
    matrix = onp.eye(2)
    for k in range(50):
        matrix[k % 2] += matrix[(k + 1) % 2] * 0.5
    columns = [1.25 ** len(range(c, 50, 3)) for c in range(3)]
    want = matrix.sum(0)[:, None] * columns
    onp.testing.assert_allclose(first, want, rtol=1e-12)
