"""Values between pixels and moved convolutions against loops in float64; products of attention."""

import numpy as onp
import pytest
import scipy.special

import mxnet as mx
from mxnet import np, npx
from mxnet.gluon import nn
from mxnet.test_utils import check_numeric_gradient

GENERATOR = onp.random.default_rng(21)


def at(image, x, y):
    """The value of an image (h, w) at a place in pixels; 0 outside."""
    total = 0.0
    for row in range(image.shape[0]):
        for column in range(image.shape[1]):
            total += image[row, column] * max(0, 1 - abs(x - column)) * max(0, 1 - abs(y - row))
    return total


def at_extended(image, x, y):
    """As `at`, but the pixels at the lower and right edge extend by one pixel, and nothing fades out."""
    height, width = image.shape
    if not (0 <= x < width and 0 <= y < height):
        return 0.0
    return at(image, min(x, width - 1), min(y, height - 1))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("size", [(45, 47), (50, 43), (17, 19)])
def test_samples_at_pixels_are_the_pixels_in_every_dtype(dtype, size):
    h, w = size
    data = np.arange(h * w).reshape(1, 1, h, w).astype("int32") % 199
    data = data.astype(dtype)
    no_offset, one = np.zeros((1, 2, h, w), dtype=dtype), np.ones((1, 1, 1, 1), dtype=dtype)
    found = npx.deformable_convolution(data, no_offset, one, kernel=1, no_bias=True)
    assert found.dtype == data.dtype
    assert (found == data).all()
    masked = npx.modulated_deformable_convolution(
        data, no_offset, np.ones((1, 1, h, w), dtype=dtype), one, kernel=1, no_bias=True
    )
    assert (masked == data).all()
    ends = np.array([[[[-1.0, 1.0]], [[1.0, 1.0]]]], dtype=dtype)
    found = npx.bilinear_sampler(data, ends)
    assert found.dtype == data.dtype
    assert found.reshape(2).astype("float64").tolist() == data[0, 0, -1, [0, -1]].astype("float64").tolist()


def test_positions_in_large_images_are_exact():
    h, w = 4097, 4099
    data = np.zeros((1, 1, h, w))
    data[0, 0, h - 1, w - 2] = 7.0
    grid = np.array([[[[2 * (w - 2) / (w - 1) - 1]], [[1.0]]]], dtype="float64")
    assert npx.bilinear_sampler(data, grid).item() == pytest.approx(7.0, rel=1e-9)


@pytest.mark.parametrize("value", [onp.nan, onp.inf])
def test_pixels_do_not_reach_positions_outside(value):
    data = np.ones((1, 1, 3, 3))
    data[0, 0, 0, 0] = value
    outside = np.array([5.0, -5.0, onp.inf, onp.nan]).reshape(1, 1, 1, 4)
    outside = np.concatenate([outside, outside], axis=1)
    outside.attach_grad()
    with mx.autograd.record():
        found = npx.bilinear_sampler(data, outside)
    assert (found == 0).all()
    found.backward()
    assert (outside.grad[..., :2] == 0).all()  # of finite positions
    away = np.full((1, 2, 3, 3), -9.0)
    assert (npx.deformable_convolution(data, away, np.ones((1, 1, 1, 1)), kernel=1, no_bias=True) == 0).all()


def test_sampler_is_bilinear():
    data, grid = GENERATOR.normal(size=(2, 3, 4, 5)), GENERATOR.uniform(-1.3, 1.3, size=(2, 2, 3, 2))
    found = npx.bilinear_sampler(np.array(data), np.array(grid)).asnumpy()
    expected = onp.empty((2, 3, 3, 2))
    for n, c, i, j in onp.ndindex(*expected.shape):
        x, y = (grid[n, 0, i, j] + 1) * 2, (grid[n, 1, i, j] + 1) * 1.5
        expected[n, c, i, j] = at(data[n, c], x, y)
    onp.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_sampler_has_gradients_of_image_and_places():
    data, grid = GENERATOR.normal(size=(1, 2, 3, 4)), GENERATOR.uniform(-0.9, 0.9, size=(1, 2, 2, 2))
    check_numeric_gradient(npx.bilinear_sampler, [data, grid], rtol=1e-6, atol=1e-8)


def test_slopes_at_whole_pixels_are_those_to_the_right_and_down():
    image = onp.array([[1.0, 2, 4, 8], [10, 20, 30, 50], [7, 5, 3, 9]])
    places = onp.array([[0.0, 1, 2, 1.5, 1], [0, 1, 1, 1, 0.25]])  # x, then y
    grid = np.array((places / [[1.5], [1]] - 1).reshape(1, 2, 1, 5))
    grid.attach_grad()
    with mx.autograd.record():
        found = npx.bilinear_sampler(np.array(image[None, None]), grid).sum()
    found.backward()
    step = 2.0**-20  # the function is linear up to the next pixel, so that differences are slopes
    for i, (x, y) in enumerate(places.T):
        right = (at(image, x + step, y) - at(image, x, y)) / step
        down = (at(image, x, y + step) - at(image, x, y)) / step
        onp.testing.assert_allclose(grid.grad[0, :, 0, i].asnumpy(), [right * 1.5, down], rtol=1e-8)


def test_affine_grids_and_warps():
    theta = GENERATOR.normal(size=(2, 6))
    found = npx.grid_generator(np.array(theta), "affine", (3, 4)).asnumpy()
    for n, i, j in onp.ndindex(2, 3, 4):
        place = onp.array([-1 + 2 * j / 3, -1 + i, 1])
        onp.testing.assert_allclose(found[n, :, i, j], theta[n].reshape(2, 3) @ place, rtol=1e-12, atol=1e-14)
    flow, image = onp.zeros((1, 2, 3, 4)), GENERATOR.normal(size=(1, 1, 3, 4))
    flow[:, 0], flow[:, 1] = 1, -1
    moved = npx.bilinear_sampler(np.array(image), npx.grid_generator(np.array(flow), "warp")).asnumpy()[0, 0]
    # One pixel to the right and one up.
    onp.testing.assert_allclose(moved[1:, :3], image[0, 0, :2, 1:], rtol=1e-12)
    assert onp.abs(moved[0]).max() < 1e-12
    with pytest.raises(ValueError, match="'affine' or 'warp', found 'twist'"):
        npx.grid_generator(np.array(flow), "twist")
    with pytest.raises(ValueError, match=r"must be \(n, 6\)"):
        npx.grid_generator(np.array(flow), "affine", (2, 2))


def test_spatial_transformer_joins_both():
    data, loc = np.array(GENERATOR.normal(size=(2, 1, 3, 3))), np.array(GENERATOR.normal(size=(2, 6)))
    found = npx.spatial_transformer(data, loc, (2, 4))
    expected = npx.bilinear_sampler(data, npx.grid_generator(loc, "affine", (2, 4)))
    assert (found == expected).all()


def moved_convolution(x, offset, mask, w, stride, pad, dilate, groups, moved_groups):
    batch, channels, _, _ = x.shape
    filters, per_group, kh, kw = w.shape
    out = onp.zeros((batch, filters, *offset.shape[2:]))
    for n, f, i, j in onp.ndindex(*out.shape):
        for c, a, b in onp.ndindex(per_group, kh, kw):
            channel = f // (filters // groups) * per_group + c
            tap = channel // (channels // moved_groups) * kh * kw + a * kw + b
            y = i * stride - pad + a * dilate + offset[n, 2 * tap, i, j]
            place = j * stride - pad + b * dilate + offset[n, 2 * tap + 1, i, j]
            factor = 1.0 if mask is None else mask[n, tap, i, j]
            value = (at_extended if mask is None else at)(x[n, channel], place, y)
            out[n, f, i, j] += w[f, c, a, b] * factor * value
    return out


@pytest.mark.parametrize("is_masked", [False, True])
@pytest.mark.parametrize(
    ("stride", "pad", "dilate", "groups", "moved"), [(1, 1, 1, 1, 1), (2, 0, 1, 2, 2), (1, 2, 2, 2, 4)]
)
def test_deformable_convolutions_are_their_sums(is_masked, stride, pad, dilate, groups, moved):
    x, w = GENERATOR.normal(size=(2, 4, 5, 6)), GENERATOR.normal(size=(2, 4 // groups, 2, 3))
    height, width = (5 + 2 * pad - dilate - 1) // stride + 1, (6 + 2 * pad - 2 * dilate - 1) // stride + 1
    offset = GENERATOR.normal(size=(2, 2 * moved * 6, height, width))
    mask = GENERATOR.uniform(size=(2, moved * 6, height, width)) if is_masked else None
    given = [np.array(x), np.array(offset), *([np.array(mask)] if is_masked else []), np.array(w)]
    function = npx.modulated_deformable_convolution if is_masked else npx.deformable_convolution
    found = function(
        *given, kernel=(2, 3), stride=stride, pad=(pad, pad), dilate=dilate, num_filter=2, num_group=groups,
        num_deformable_group=moved, no_bias=True,
    )  # fmt: skip
    expected = moved_convolution(x, offset, mask, w, stride, pad, dilate, groups, moved)
    onp.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("kind", [nn.DeformableConvolution, nn.ModulatedDeformableConvolution])
def test_deformable_layers_begin_as_convolutions_and_learn(kind):
    layer, convolution = kind(3, 3, padding=1), nn.Conv2D(3, 3, padding=1)
    for net in (layer, convolution):
        net.initialize(mx.init.Normal(0.5))
        net.cast("float64")
    x = GENERATOR.normal(size=(2, 2, 4, 3))
    layer(np.array(x)), convolution(np.array(x))
    convolution.weight.set_data(layer.deformable_conv_weight.data())
    onp.testing.assert_allclose(
        layer(np.array(x)).asnumpy(), convolution(np.array(x)).asnumpy(), rtol=1e-12, atol=1e-12
    )
    # Places stay between the same pixels, as the slope jumps where they cross one.
    layer.offset_weight.set_data(GENERATOR.uniform(-0.01, 0.01, size=layer.offset_weight.shape))
    layer.offset_bias.set_data(onp.full(layer.offset_bias.shape, 0.3))
    check_numeric_gradient(layer, [x], rtol=1e-5, atol=1e-7)
    # The first steps of a layer begin with places on pixels.
    layer.offset_bias.set_data(onp.zeros(layer.offset_bias.shape))
    layer.offset_weight.set_data(onp.zeros(layer.offset_weight.shape))
    shifted = onp.zeros(layer.offset_bias.shape)
    with mx.autograd.record():
        begin = layer(np.array(x)).sum()
    begin.backward()
    slopes = layer.offset_bias.grad().asnumpy()
    for i in range(0, len(slopes), 5):
        shifted[i] = 2.0**-20
        layer.offset_bias.set_data(shifted)
        end = layer(np.array(x)).sum()
        onp.testing.assert_allclose((end - begin).item() / 2.0**-20, slopes[i], rtol=1e-6, atol=1e-6)
        shifted[i] = 0
    assert repr(layer).startswith(f"{kind.__name__}(2 -> 3, kernel_size=(3, 3)")


def test_shapes_of_moved_convolutions_are_named():
    x, w = np.ones((1, 2, 4, 4)), np.ones((3, 2, 3, 3))
    with pytest.raises(ValueError, match=r"`offset` must have shape \(1, 18, 2, 2\), found \(1, 9, 2, 2\)"):
        npx.deformable_convolution(x, np.ones((1, 9, 2, 2)), w, kernel=3, num_filter=3, no_bias=True)
    with pytest.raises(ValueError, match="`kernel` must be given"):
        npx.deformable_convolution(x, np.ones((1, 9, 2, 2)), w, num_filter=3)


def test_interleaved_products_are_attention():
    heads, size, t, s, n = 2, 3, 4, 5, 2
    qkv = GENERATOR.normal(size=(t, n, heads, 3, size))
    q, k, v = (qkv[..., i, :].transpose(1, 2, 0, 3) for i in range(3))
    packed = np.array(qkv.reshape(t, n, -1))
    scores = npx.interleaved_matmul_selfatt_qk(packed, heads)
    expected = (q @ k.transpose(0, 1, 3, 2) / onp.sqrt(size)).reshape(n * heads, t, t)
    onp.testing.assert_allclose(scores.asnumpy(), expected, rtol=1e-12)
    weights = scipy.special.softmax(expected, axis=-1)
    mixed = npx.interleaved_matmul_selfatt_valatt(packed, np.array(weights), heads)
    wanted = (weights.reshape(n, heads, t, t) @ v).transpose(2, 0, 1, 3).reshape(t, n, -1)
    onp.testing.assert_allclose(mixed.asnumpy(), wanted, rtol=1e-12)

    queries, kv = GENERATOR.normal(size=(t, n, heads, size)), GENERATOR.normal(size=(s, n, heads, 2, size))
    q, (k, v) = queries.transpose(1, 2, 0, 3), (kv[..., i, :].transpose(1, 2, 0, 3) for i in range(2))
    given = np.array(queries.reshape(t, n, -1)), np.array(kv.reshape(s, n, -1))
    expected = (q @ k.transpose(0, 1, 3, 2) / onp.sqrt(size)).reshape(n * heads, t, s)
    onp.testing.assert_allclose(npx.interleaved_matmul_encdec_qk(*given, heads).asnumpy(), expected, rtol=1e-12)
    mixed = npx.interleaved_matmul_encdec_valatt(given[1], np.array(expected), heads)
    wanted = (expected.reshape(n, heads, t, s) @ v).transpose(2, 0, 1, 3).reshape(t, n, -1)
    onp.testing.assert_allclose(mixed.asnumpy(), wanted, rtol=1e-12)
    check_numeric_gradient(lambda x: npx.interleaved_matmul_selfatt_qk(x, heads), [qkv.reshape(t, n, -1)])
    with pytest.raises(ValueError, match=r"`queries_keys_values` must be \(t, n, 3 \* heads \* size\) with 5 heads"):
        npx.interleaved_matmul_selfatt_qk(packed, 5)


def test_samples_and_sizes_are_like_the_array():
    x = np.zeros((200, 50), dtype="float64")
    mx.random.seed(4)
    uniform, normal = npx.uniform_like(x, 2.0, 4.0), npx.normal_like(x, 5.0, 0.5)
    assert uniform.shape == normal.shape == x.shape
    assert uniform.dtype == normal.dtype == onp.float64
    assert uniform.min() >= 2
    assert uniform.max() < 4
    # Ten thousand samples: means are within five of their deviations.
    assert abs(uniform.mean().item() - 3) < 5 * (2 / 12**0.5) / 100
    assert abs(normal.mean().item() - 5) < 5 * 0.5 / 100
    assert npx.size_array(x).tolist() == [10000]
    with pytest.raises(ValueError, match="scale"):
        npx.normal_like(x, 0.0, -1.0)


def test_hard_sigmoid_and_scatter_nd():
    x = GENERATOR.normal(size=7) * 3
    onp.testing.assert_allclose(
        npx.hard_sigmoid(np.array(x), alpha=0.3, beta=0.4).asnumpy(), onp.clip(0.3 * x + 0.4, 0, 1), rtol=1e-14
    )
    check_numeric_gradient(lambda x: npx.hard_sigmoid(x), [x])
    values, at_ = GENERATOR.normal(size=(3, 2)), onp.array([[2, 0, 3]])
    expected = onp.zeros((4, 2))
    expected[at_[0]] = values
    onp.testing.assert_array_equal(npx.scatter_nd(np.array(values), np.array(at_), (4, 2)).asnumpy(), expected)
    check_numeric_gradient(lambda x: npx.scatter_nd(x, np.array(at_), (4, 2)), [values])
