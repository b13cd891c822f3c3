"""Shapes after other arrays, reshape codes, slices, parts, padding."""

import numpy as onp
import pytest

from mxnet import autograd, np, npx


def counted(*shape):
    return np.array(onp.arange(onp.prod(shape), dtype="float32").reshape(shape))


@pytest.mark.parametrize(
    ("shape", "newshape", "reverse", "result"),
    [
        ((2, 3, 8), (-2, -2, 2, -1), False, (2, 3, 2, 4)),
        ((8, 3, 3, 3, 4, 4), (-6, 2, -1, -4), False, (2, 4, 3, 3, 3, 4, 4)),
        ((8, 3, 3, 3, 4, 4), (-5, -4), False, (24, 3, 3, 4, 4)),
        ((8, 3, 3, 3, 8), (-4, -5), True, (8, 3, 3, 24)),
        ((8, 3, 2, 4, 8), (-4, -1, 2, -6), False, None),
        ((1, 8, 3), (-3, -2, -1), False, (8, 3)),
        ((8, 3, 3, 4), (-4, -6, 2, 2), True, (8, 3, 3, 2, 2)),
        ((2, 3, 4), (6, -1), False, (6, 4)),
        ((2, 3, 4), -1, False, (24,)),
        ((2, 3, 4), (-5, -2), True, (6, 4)),
        ((0, 3), (-2, -6, 3, -1), False, (0, 3, 1)),
    ],
)
def test_reshape_codes(shape, newshape, reverse, result):
    x = counted(*shape)
    if result is None:
        with pytest.raises(ValueError, match=r"\(8, 3, 2, 4, 8\)"):
            npx.reshape(x, newshape, reverse)
        return
    y = npx.reshape(x, newshape, reverse)
    assert y.shape == result
    assert y.asnumpy().ravel().tolist() == x.asnumpy().ravel().tolist()


@pytest.mark.parametrize(
    ("shape", "newshape", "message"),
    [
        ((2, 3), (-2, -2, -2), "position 2 finds no axis left"),
        ((2, 3), (-3, -1), "skips axis 0 of length 2"),
        ((6,), (-6, 4, 2), r"cannot split 6 into \(4, 2\)"),
        ((6,), (-6, -1, -1), "at most one of them -1"),
        ((6,), (-6, 2), "takes two lengths"),
        ((6,), (-7,), "-7 at position 0 is no code"),
        ((6,), (4,), r"\(6,\)"),
    ],
)
def test_reshape_codes_that_do_not_fit_are_refused(shape, newshape, message):
    with pytest.raises(ValueError, match=message):
        npx.reshape(counted(*shape), newshape)
    with pytest.raises(ValueError, match="'F'"):
        npx.reshape(counted(2), (2,), order="F")


def test_reshape_is_a_view_with_a_gradient():
    x = counted(2, 6)
    npx.reshape(x, (-2, 2, -1))[0, 0, 0] = 9
    assert x[0, 0].item() == 9
    x.attach_grad()
    with autograd.record():
        y = (npx.reshape(x, (-5,)) * np.arange(12)).sum()
    y.backward()
    assert x.grad.tolist() == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]


def test_reshape_like_whole_and_spans():
    x, y = counted(30, 7), counted(15, 2, 4)
    assert npx.reshape_like(x, y, 0, 1, 0, 2).shape == (15, 2, 7)
    assert npx.reshape_like(x, y, lhs_end=1, rhs_end=2).shape == (15, 2, 7)
    assert npx.reshape_like(x, y, -2, -1, 0, -1).shape == (15, 2, 7)
    assert npx.reshape_like(counted(6), counted(2, 3)).shape == (2, 3)
    with pytest.raises(ValueError, match=r"\(15, 2, 4\)"):
        npx.reshape_like(x, y)


def test_broadcast_like_shapes_and_axes():
    assert npx.broadcast_like(counted(1, 3), counted(2, 3)).shape == (2, 3)
    assert npx.broadcast_like(counted(9), counted(5, 9)).shape == (5, 9)
    assert npx.broadcast_like(counted(1, 2, 3), counted(5, 6, 7), lhs_axes=(0,), rhs_axes=(2,)).shape == (7, 2, 3)
    assert npx.broadcast_like(counted(1, 2), counted(5, 6), lhs_axes=0, rhs_axes=-1).shape == (6, 2)
    with pytest.raises(ValueError, match=r"\[0, 1\].*\[1\]"):
        npx.broadcast_like(counted(1, 1), counted(5, 6), (0, 1), (1,))
    with pytest.raises(ValueError, match=r"\(3, 2\)"):
        npx.broadcast_like(counted(3, 2), counted(5, 2))


def test_arange_like():
    x = np.zeros((2, 3), dtype="float64")
    y = npx.arange_like(x, start=1, step=2)
    assert y.dtype == "float64"
    assert y.tolist() == [[1, 3, 5], [7, 9, 11]]
    assert npx.arange_like(x, axis=-1).tolist() == [0, 1, 2]
    assert npx.arange_like(x, repeat=4, step=-1).tolist() == [[0, 0, 0], [0, -1, -1]]
    with pytest.raises(ValueError, match="found 0"):
        npx.arange_like(x, repeat=0)
    with pytest.raises(ValueError, match="axis 2"):
        npx.arange_like(x, axis=2)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "uint8", "int16", "bool", "int64"])
def test_arange_like_counts_beyond_what_narrow_dtypes_hold(dtype):
    x = np.zeros((1, 3000), dtype=dtype)
    y = npx.arange_like(x, axis=1)
    assert y.dtype.kind == ("f" if "float" in dtype else "i")
    assert y.dtype.itemsize == max(x.dtype.itemsize if dtype != "bfloat16" else 2, 4)
    assert y.tolist() == list(range(3000))


def test_slices_by_tuples_are_those_by_brackets():
    x = counted(4, 5, 6)
    assert npx.slice(x, (1, 0), (3, 4)).tolist() == x[1:3, 0:4].tolist()
    assert npx.slice(x, (None, 4), (None, None), (2, -1)).tolist() == x[::2, 4::-1].tolist()
    assert npx.slice(x, 1, 3).tolist() == x[1:3].tolist()
    assert npx.slice(x, begin=(-2,), end=(None,)).tolist() == x[-2:].tolist()
    with pytest.raises(ValueError, match=r"\(1, 2\).*\(3,\)"):
        npx.slice(x, (1, 2), (3,))
    with pytest.raises(ValueError, match="3 axes"):
        npx.slice(x, (0, 0, 0, 0), (1, 1, 1, 1))


def test_slice_like_cuts_to_the_other_shape():
    x = counted(4, 5, 6)
    assert npx.slice_like(x, counted(2, 3, 6)).tolist() == x[:2, :3].tolist()
    assert npx.slice_like(x, counted(2, 3), axes=(0, 1)).tolist() == x[:2, :3].tolist()
    assert npx.slice_like(x, counted(9, 9, 1), axes=-1).tolist() == x[..., :1].tolist()
    with pytest.raises(ValueError, match=r"(?s)axis 0 .*\(4, 5, 6\).*\(5, 5, 6\)"):
        npx.slice_like(x, counted(5, 5, 6))
    with pytest.raises(ValueError, match="the same number of axes"):
        npx.slice_like(x, counted(2, 2))


def test_slice_channel_parts():
    x = counted(2, 4, 3)
    parts = npx.slice_channel(x, 2)
    assert [p.shape for p in parts] == [(2, 2, 3)] * 2
    assert np.concatenate(parts, axis=1).tolist() == x.tolist()
    assert [p.shape for p in npx.slice_channel(x, 4, squeeze_axis=True)] == [(2, 3)] * 4
    assert npx.slice_channel(x, 1).shape == (2, 4, 3)
    assert [p.shape for p in npx.slice_channel(x, 3, axis=-1)] == [(2, 4, 1)] * 3
    with pytest.raises(ValueError, match="length 4, which 3"):
        npx.slice_channel(x, 3)
    with pytest.raises(ValueError, match="found 2 along axis 1"):
        npx.slice_channel(x, 2, squeeze_axis=True)


def test_batch_flatten_and_shape_array():
    assert npx.batch_flatten(counted(2, 3, 4)).shape == (2, 12)
    assert npx.batch_flatten(counted(5)).shape == (5, 1)
    assert npx.batch_flatten(counted(0, 3, 4)).shape == (0, 12)
    with pytest.raises(ValueError, match=r"shape \(\)"):
        npx.batch_flatten(np.array(1.0))
    shape = npx.shape_array(counted(2, 3, 4))
    assert shape.dtype == "int64"
    assert shape.tolist() == [2, 3, 4]
    assert npx.shape_array(np.array(1.0)).tolist() == []


def test_cast_and_stop_gradient():
    x = counted(3)
    x.attach_grad()
    with autograd.record():
        y = (npx.cast(x, "float64") * npx.stop_gradient(x)).sum()
    y.backward()
    assert y.dtype == "float64"
    assert x.grad.dtype == "float32"
    assert x.grad.tolist() == [0, 1, 2]


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
@pytest.mark.parametrize("widths", [(0, 0, 1, 2), (2, 1, 0, 0), (3, 3, 5, 4), (0, 0, 0, 0)])
def test_pad_is_numpys(mode, widths):
    x = counted(3, 4)
    more = {"constant_values": 7} if mode == "constant" else {}
    want = onp.pad(x.asnumpy(), (widths[:2], widths[2:]), mode=mode, **more)
    found = npx.pad(x, mode, widths, constant_value=7)
    assert found.dtype == "float32"
    assert found.tolist() == want.tolist()


def test_pad_has_a_gradient_and_errors():
    x = counted(3)
    x.attach_grad()
    with autograd.record():
        y = npx.pad(x, "edge", (2, 1)).sum()
    y.backward()
    assert x.grad.tolist() == [3, 1, 2]
    with pytest.raises(ValueError, match=r"2 widths .* \(1, 2, 3\)"):
        npx.pad(x, "edge", (1, 2, 3))
    with pytest.raises(ValueError, match="'wrap'"):
        npx.pad(x, "wrap", (1, 1))
    with pytest.raises(ValueError, match="axis 0"):
        npx.pad(np.zeros((0,)), "reflect", (1, 1))
