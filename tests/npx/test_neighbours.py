"""Correlation of images, attention to neighbours and images of other sizes, against loops in float64."""

import numpy as onp
import pytest

from mxnet import np, npx
from mxnet.test_utils import check_numeric_gradient

GENERATOR = onp.random.default_rng(8)


def correlated(a, b, kernel=1, reach=1, stride1=1, stride2=1, pad=0, is_multiply=True):
    """One sum for each patch and each move."""
    a, b = (onp.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad))) for x in (a, b))
    border = reach + kernel // 2
    high, wide = ((size - 2 * border + stride1 - 1) // stride1 for size in a.shape[2:])
    moves = range(-(reach // stride2) * stride2, reach + 1, stride2)
    out = onp.zeros((a.shape[0], len(moves) ** 2, high, wide))
    for n, i, j in onp.ndindex(a.shape[0], high, wide):
        for q, (down, right) in enumerate((y, x) for y in moves for x in moves):
            top, left = i * stride1 + reach, j * stride1 + reach
            first = a[n, :, top : top + kernel, left : left + kernel]
            second = b[n, :, top + down : top + down + kernel, left + right : left + right + kernel]
            out[n, q, i, j] = (first * second if is_multiply else abs(first - second)).mean()
    return out


@pytest.mark.parametrize(
    ("kernel", "reach", "stride1", "stride2", "pad", "is_multiply"),
    [
        (1, 1, 1, 1, 0, True),
        (3, 2, 1, 1, 2, True),
        (1, 4, 2, 2, 4, True),
        (1, 2, 1, 1, 1, False),
        (3, 3, 3, 2, 3, True),
    ],
)
def test_correlation_is_that_of_the_loop(kernel, reach, stride1, stride2, pad, is_multiply):
    a, b = GENERATOR.normal(size=(2, 2, 3, 6, 7))
    options = (kernel, reach, stride1, stride2, pad, is_multiply)
    found = npx.correlation(np.array(a), np.array(b), *options).asnumpy()
    onp.testing.assert_allclose(found, correlated(a, b, *options), rtol=1e-11, atol=1e-13)
    small = [a[:1, :1], b[:1, :1]]
    check_numeric_gradient(lambda x, y: npx.correlation(x, y, *options), small, rtol=1e-5, atol=1e-7)


def test_correlation_refuses_what_does_not_fit():
    x = np.zeros((1, 1, 3, 3))
    with pytest.raises(ValueError, match="`kernel_size` must be odd, found 2"):
        npx.correlation(x, x, kernel_size=2)
    with pytest.raises(ValueError, match="too small for a border of 2 and 0 padded"):
        npx.correlation(x, x, max_displacement=2)
    with pytest.raises(ValueError, match=r"found \(1, 1, 3, 3\) and \(1, 1, 3, 2\)"):
        npx.correlation(x, np.zeros((1, 1, 3, 2)))


DILATIONS = onp.array([1, 2])


@pytest.mark.parametrize(("w", "symmetric"), [(2, True), (2, False), (0, True)])
def test_attention_to_neighbours_is_that_of_the_loop(w, symmetric):
    query, key = GENERATOR.normal(size=(2, 2, 6, 2, 3))
    width = 2 * w + 1 if symmetric else w + 1
    scores, sums, mask = onp.zeros((2, 6, 2, width)), onp.zeros((2, 6, 2, 3)), onp.zeros((2, 6, 2, width))
    weights, lengths = GENERATOR.normal(size=(2, 6, 2, width)), onp.array([6, 4])
    for n, i, h, j in onp.ndindex(2, 6, 2, width):
        at = i + DILATIONS[h] * (j - w)
        if 0 <= at < 6:
            scores[n, i, h, j] = query[n, i, h] @ key[n, at, h]
            sums[n, i, h] += weights[n, i, h, j] * key[n, at, h]
            mask[n, i, h, j] = max(i, at) < lengths[n]
    at = np.array(DILATIONS)
    found = npx.sldwin_atten_score(np.array(query), np.array(key), at, w, symmetric).asnumpy()
    onp.testing.assert_allclose(found, scores, rtol=1e-12, atol=1e-14)
    found = npx.sldwin_atten_context(np.array(weights), np.array(key), at, w, symmetric).asnumpy()
    onp.testing.assert_allclose(found, sums, rtol=1e-12, atol=1e-14)
    found = npx.sldwin_atten_mask_like(np.array(weights), at, np.array(lengths), w, symmetric).asnumpy()
    onp.testing.assert_array_equal(found, mask)
    check_numeric_gradient(lambda q, k: npx.sldwin_atten_score(q, k, at, w, symmetric), [query[:1], key[:1]])
    check_numeric_gradient(lambda s, v: npx.sldwin_atten_context(s, v, at, w, symmetric), [weights[:1], key[:1]])


def test_attention_to_neighbours_refuses_what_does_not_fit():
    x = np.zeros((1, 4, 2, 3))
    with pytest.raises(ValueError, match="`dilation`"):
        npx.sldwin_atten_score(x, x, np.array([1]), w=1, symmetric=True)
    with pytest.raises(TypeError, match="`dilation` must be integers"):
        npx.sldwin_atten_score(x, x, np.array([1.0, 1.0]), w=1, symmetric=True)
    with pytest.raises(ValueError, match="`w` must not be negative, found -1"):
        npx.sldwin_atten_score(x, x, np.array([1, 1]), w=-1, symmetric=True)
    with pytest.raises(ValueError, match=r"`score` must have shape \(1, 4, 2, 2\)"):
        npx.sldwin_atten_context(x, x, np.array([1, 1]), w=1, symmetric=False)


def resized(x, sizes, align_corners):
    """Rows and columns of weights of two neighbours each."""
    for axis, size in ((2, sizes[0]), (3, sizes[1])):
        old = x.shape[axis]
        if align_corners:
            places = onp.arange(size) * ((old - 1) / (size - 1) if size > 1 else 0)
        else:
            places = onp.clip((onp.arange(size) + 0.5) * old / size - 0.5, 0, old - 1)
        weights = onp.maximum(0, 1 - abs(places[:, None] - onp.arange(old)))
        x = onp.moveaxis(onp.moveaxis(x, axis, -1) @ weights.T, -1, axis)
    return x


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ({"height": 3, "width": 4}, (3, 4)),
        ({"height": 11, "width": 1}, (11, 1)),
        ({"height": 7, "width": 3, "align_corners": False}, (7, 3)),
        ({"scale_height": 2, "scale_width": 0.5}, (10, 3)),
        ({"scale_height": 2, "scale_width": 0.5, "mode": "odd_scale"}, (9, 3)),
        ({"mode": "to_even_down"}, (4, 6)),
        ({"mode": "to_even_up"}, (6, 6)),
        ({"mode": "to_odd_down"}, (5, 5)),
        ({"mode": "to_odd_up"}, (5, 7)),
        ({"mode": "like", "like": onp.zeros((1, 1, 8, 3))}, (8, 3)),
    ],
)
def test_resized_images_have_sizes_and_values_of_the_mode(options, sizes):
    x = GENERATOR.normal(size=(2, 2, 5, 6))
    found = npx.bilinear_resize(np.array(x), **options).asnumpy()
    assert found.shape == (2, 2, *sizes)
    expected = resized(x, sizes, options.get("align_corners", True))
    # float64 places: an error of one ulp of a place is a few ulp of a value.
    onp.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)
    check_numeric_gradient(lambda x: npx.bilinear_resize(x, **options), [x[:1, :1]])


def test_sizes_of_resized_images_are_checked():
    x = np.zeros((1, 1, 5, 6))
    with pytest.raises(ValueError, match="found 'nearest'"):
        npx.bilinear_resize(x, mode="nearest")
    with pytest.raises(ValueError, match="needs `like`"):
        npx.bilinear_resize(x, mode="like")
    with pytest.raises(ValueError, match="needs `scale_height`"):
        npx.bilinear_resize(x, mode="odd_scale", scale_height=2)
    with pytest.raises(ValueError, match="found 0 x 4"):
        npx.bilinear_resize(x, height=0, width=4)
    assert npx.bilinear_resize(np.zeros((1, 1, 2, 2), dtype="int64"), height=3, width=3).dtype == "float32"
