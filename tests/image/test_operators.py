"""Operators over pixels against loops in float64, published colour formulas and numeric gradients."""

import colorsys

import numpy as onp
import pytest

import mxnet as mx
from mxnet import np, npx

R = onp.random.RandomState


def pixels(*shape, seed=0):
    return R(seed).randint(0, 256, shape).astype("uint8")


def bilinear(x, height, width):
    """Half-pixel centres, the border repeated, one pixel at a time."""
    out = onp.zeros((height, width, x.shape[2]))
    for i in range(height):
        for j in range(width):
            r = min(max((i + 0.5) * x.shape[0] / height - 0.5, 0), x.shape[0] - 1)
            c = min(max((j + 0.5) * x.shape[1] / width - 0.5, 0), x.shape[1] - 1)
            r0, c0 = int(r), int(c)
            r1, c1 = min(r0 + 1, x.shape[0] - 1), min(c0 + 1, x.shape[1] - 1)
            top = x[r0, c0] * (1 - (c - c0)) + x[r0, c1] * (c - c0)
            low = x[r1, c0] * (1 - (c - c0)) + x[r1, c1] * (c - c0)
            out[i, j] = top * (1 - (r - r0)) + low * (r - r0)
    return out


@pytest.mark.parametrize("size", [(5, 3), (17, 11), (9, 4)])
def test_bilinear_sizes_are_those_of_a_loop(size):
    x = R(0).uniform(size=(7, 9, 3)).astype("float32")
    found = npx.image.resize(x, size).asnumpy()
    # Positions are float32: 9 * 2**-23 of a pixel, with slopes up to 1, on both axes, and four products.
    onp.testing.assert_allclose(found, bilinear(x.astype(float), size[1], size[0]), atol=4e-6)


def test_area_of_whole_blocks_is_their_mean():
    x = R(0).uniform(size=(2, 6, 8, 3)).astype("float32")
    found = npx.image.resize(x, (4, 2), interp=3).asnumpy()
    onp.testing.assert_allclose(found, x.reshape(2, 2, 3, 4, 2, 3).mean((2, 4)), rtol=1e-6)


@pytest.mark.parametrize("interp", range(5))
def test_host_and_operator_agree_on_smooth_images(interp):
    rows, columns = onp.mgrid[:30, :40]
    x = onp.stack([100 + rows * 2, 200 - columns, 60 + rows + columns], -1).astype("uint8")
    for size in ((23, 17), (61, 47)):
        host = mx.image.imresize(np.array(x), *size, interp).asnumpy().astype(int)
        found = npx.image.resize(x, size, interp=interp).asnumpy().astype(int)
        # Both round; a nearest pixel in a tie may be either neighbour, whose levels differ by 2.
        assert onp.abs(host - found).max() <= (2 if interp == 0 else 1)


@pytest.mark.parametrize("interp", range(5))
def test_resize_has_the_gradient_of_a_linear_map(interp):
    x = np.array(R(0).uniform(size=(5, 6, 2)), dtype="float64")
    dy = np.array(R(1).uniform(size=(4, 3, 2)), dtype="float64")
    x.attach_grad()
    with mx.autograd.record():
        y = npx.image.resize(x, (3, 4), interp=interp)
    y.backward(dy)
    other = np.array(R(2).uniform(size=x.shape), dtype="float64")
    # <A other, dy> = <other, A' dy>, with the same float32 weights on both sides.
    left = (npx.image.resize(other, (3, 4), interp=interp) * dy).sum().item()
    assert left == pytest.approx((other * x.grad).sum().item(), rel=1e-12)


def test_ratio_is_kept():
    assert npx.image.resize(pixels(40, 60, 3), 20, keep_ratio=True).shape == (20, 30, 3)
    assert npx.image.resize(pixels(60, 40, 3), 20, keep_ratio=True).shape == (30, 20, 3)


def test_crop_and_flips_are_numpys():
    x = pixels(2, 5, 7, 3)
    assert (npx.image.crop(x, 2, 1, 4, 3).asnumpy() == x[:, 1:4, 2:6]).all()
    assert (npx.image.flip_left_right(x).asnumpy() == x[:, :, ::-1]).all()
    assert (npx.image.flip_top_bottom(x).asnumpy() == x[:, ::-1]).all()


def test_tensor_and_normalisation():
    x = pixels(2, 5, 7, 3)
    y = npx.image.to_tensor(x)
    onp.testing.assert_allclose(y.asnumpy(), x.transpose(0, 3, 1, 2) / 255, rtol=1e-7)
    z = npx.image.normalize(y, (0.1, 0.2, 0.3), (0.5, 0.6, 0.7)).asnumpy()
    expected = (x / 255 - [0.1, 0.2, 0.3]) / [0.5, 0.6, 0.7]
    onp.testing.assert_allclose(z, expected.transpose(0, 3, 1, 2), atol=1e-6)


@pytest.mark.parametrize("share", [0.0, 0.1, 1 / 3, 0.5, -0.25])
def test_hue_is_that_of_colorsys(share):
    x = R(0).uniform(size=(4, 5, 3))
    found = npx.image.random_hue(np.array(x, dtype="float32"), share, share).asnumpy()
    for pixel, y in zip(x.reshape(-1, 3), found.reshape(-1, 3), strict=True):
        h, l, s = colorsys.rgb_to_hls(*pixel)
        # Hue is one of twelve parts in float32; a chroma up to 1 times 12 * 2**-23, with a margin for quotients.
        onp.testing.assert_allclose(y, colorsys.hls_to_rgb((h + share) % 1, l, s), atol=1e-5)


def test_colours_follow_their_formulas():
    x = pixels(6, 5, 3).astype(float)
    grey = x @ [0.299, 0.587, 0.114]
    image = np.array(x, dtype="float32")
    cases = {
        "random_brightness": x * 1.5,
        "random_contrast": x * 1.5 - 0.5 * grey.mean(),
        "random_saturation": x * 1.5 - 0.5 * grey[..., None],
    }
    for name, expected in cases.items():
        found = getattr(npx.image, name)(image, 1.5, 1.5).asnumpy()
        # About four roundings of levels up to 1.5 * 255.
        onp.testing.assert_allclose(found, expected, rtol=0, atol=4 * 2.0**-24 * 1.5 * 255, err_msg=name)
        levels = getattr(npx.image, name)(x.astype("uint8"), 1.5, 1.5)
        assert levels.dtype == "uint8"
        assert onp.abs(levels.asnumpy() - onp.clip(expected, 0, 255)).max() <= 0.501


def test_random_crops_show_parts_and_follow_the_seed():
    x = onp.arange(8 * 9 * 1).reshape(8, 9, 1)
    places = set()
    for seed in range(60):
        mx.random.seed(seed)
        y = npx.image.random_crop(x, width=8, height=7).asnumpy()
        mx.random.seed(seed)
        assert (npx.image.random_crop(x, width=8, height=7).asnumpy() == y).all()
        row, column = divmod(int(y[0, 0, 0]), 9)
        assert (y == x[row : row + 7, column : column + 8]).all()
        places.add((row, column))
    assert places == {(0, 0), (0, 1), (1, 0), (1, 1)}


def test_a_resized_crop_of_everything_is_a_resize():
    x = pixels(10, 10, 3)
    found = npx.image.random_resized_crop(x, width=6, height=4, area=(1, 1), ratio=(1, 1))
    assert (found.asnumpy() == npx.image.resize(x, (6, 4)).asnumpy()).all()


def test_resized_crops_are_parts():
    # On a ramp every value tells where it is from: means of parts stay inside, and the slope tells the size.
    x = onp.broadcast_to(onp.arange(100.0)[None, :, None], (50, 100, 1)).astype("float32")
    for seed in range(20):
        mx.random.seed(seed)
        y = npx.image.random_resized_crop(x, width=20, height=10, area=(0.1, 0.5)).asnumpy()
        step = onp.diff(y[0, 2:-2, 0])
        assert y.min() >= 0
        assert y.max() <= 99
        # Each step is a difference of two numbers below 128, which are multiples of 2**-17 in float32.
        assert step.min() == pytest.approx(step.max(), abs=8 * 2.0**-17)
        # Width from sqrt(0.1 * 5000 * 3/4) to sqrt(0.5 * 5000 * 4/3), 20 pixels of the result.
        assert 19 / 20 <= step.mean() <= 58 / 20


def test_flips_happen_as_often_as_asked():
    x = np.arange(2).reshape(1, 2, 1)
    mx.random.seed(3)
    count = sum(int(npx.image.random_flip_left_right(x, 0.25)[0, 0, 0]) for _ in range(400))
    # 400 draws with p = 0.25: 100 with a deviation of 8.7; four of them.
    assert 65 <= count <= 135


def test_lighting_adds_components():
    x = onp.full((2, 2, 3), 100.0)
    found = npx.image.adjust_lighting(np.array(x, dtype="float32"), (0.1, 0.2, 0.3)).asnumpy()
    vectors = onp.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])
    expected = x + vectors @ (onp.array([55.46, 4.794, 1.148]) * [0.1, 0.2, 0.3])
    onp.testing.assert_allclose(found, expected, rtol=1e-6)


def test_jitter_of_nothing_changes_nothing():
    x = pixels(4, 4, 3)
    assert (npx.image.random_color_jitter(x, 0, 0, 0, 0).asnumpy() == x).all()


def test_rotation_by_quarters_is_rot90():
    x = R(0).uniform(size=(2, 3, 5, 5)).astype("float32")
    for quarters in range(4):
        found = mx.image.imrotate(np.array(x), 90 * quarters).asnumpy()
        onp.testing.assert_allclose(found, onp.rot90(x, quarters, (2, 3)), atol=2e-6)


def test_zooms_see_nothing_outside_or_everything():
    x = np.ones((1, 20, 30))
    assert mx.image.imrotate(x, 30, zoom_in=True).min().item() == pytest.approx(1, abs=1e-4)
    seen = mx.image.imrotate(x, 30, zoom_out=True)
    assert seen[0, :, 0].max().item() < 1
    assert seen[0, 10, 15].item() == pytest.approx(1)


def test_borders_are_numpys():
    x = pixels(4, 5, 3)
    for number, mode in enumerate(["constant", "edge", "symmetric", "wrap", "reflect"]):
        found = mx.image.copyMakeBorder(x, 1, 2, 3, 0, number).asnumpy()
        assert (found == onp.pad(x, ((1, 2), (3, 0), (0, 0)), mode)).all(), mode


def test_bad_arguments_are_named():
    x = np.ones((4, 4, 3))
    for call, words in [
        (lambda: npx.image.resize(x, (3, 2), interp=5), "`interp` must be from 0 to 4, found 5"),
        (lambda: npx.image.crop(x, 3, 0, 2, 2), "2 columns from 3"),
        (lambda: npx.image.random_flip_left_right(x, 2), "`p` must be from 0 to 1, found 2"),
        (lambda: npx.image.normalize(x, std=0), "deviation"),
        (lambda: npx.image.to_tensor(np.ones(3)), r"found shape \(3,\)"),
        (lambda: npx.image.random_hue(np.ones((2, 2, 2)), 0, 1), "1 or 3 channels"),
        (lambda: mx.image.imresize(x, 0, 2), "at least 1, found 0 and 2"),
        (lambda: mx.image.copyMakeBorder(x, 1, 1, 1, 1, 9), "and 9"),
    ]:
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(TypeError, match="must be float"):
        mx.image.imrotate(pixels(3, 4, 4), 3)
