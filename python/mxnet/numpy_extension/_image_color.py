"""Image operators that change pixel values. Axes are (h, w, c) or (n, h, w, c)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as onp
from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray
from mxnet.numpy_extension._image_geometry import as_before, as_float, draw, image_of

__all__ = [
    "adjust_lighting",
    "normalize",
    "random_brightness",
    "random_color_jitter",
    "random_contrast",
    "random_hue",
    "random_lighting",
    "random_saturation",
    "to_tensor",
]

_np = _core.namespaces["numpy"]
_FLOAT32, _FLOAT64 = onp.dtype("float32"), onp.dtype("float64")

# Brightness of red, green and blue: ITU-R BT.601.
_LUMA = (0.299, 0.587, 0.114)

# PCA of the colours of ImageNet, in levels from 0 to 255: square roots of the eigenvalues, and eigenvectors as
# columns. Source: A. Krizhevsky, I. Sutskever, G. Hinton, "ImageNet classification with deep convolutional neural
# networks", 2012, section 4.1.
_PCA_SCALES = (55.46, 4.794, 1.148)
_PCA_COLORS = ((-0.5675, 0.7192, 0.4009), (-0.5808, -0.0045, -0.8140), (-0.5836, -0.6948, 0.4203))


def _row(numbers: Sequence[float], x: ndarray) -> ndarray:
    return asarray(tuple(float(number) for number in numbers), dtype=x.dtype, device=x.device)


def _color(name: str, data: ArrayLike) -> ndarray:
    x = image_of(name, data)
    if x.shape[-1] not in (1, 3):
        raise ValueError(f"{name}: `data` must have 1 or 3 channels, found shape {x.shape}")
    return x


def grey_of(x: ndarray) -> ndarray:
    """Luminance of float pixels: (..., 3) -> (..., 1)."""
    return (x * _row(_LUMA, x)).sum(axis=-1, keepdims=True)


def to_tensor(data: ArrayLike) -> ndarray:
    """Levels from 0 to 255 to float32 from 0 to 1, channels first.

    Parameters
    ----------
    data : array_like, shape (h, w, c) or (n, h, w, c)

    Returns
    -------
    ndarray, shape (c, h, w) or (n, c, h, w), float32

    Raises
    ------
    ValueError
        If `data` has another number of axes.

    Examples
    --------
    >>> npx.image.to_tensor(np.full((1, 2, 3), 255, dtype='uint8')).shape
    (3, 1, 2)
    """
    x = image_of("image.to_tensor", data)
    axes = (2, 0, 1) if x.ndim == 3 else (0, 3, 1, 2)
    return x.transpose(axes).astype("float32") / 255.0


def normalize(
    data: ArrayLike, mean: float | Sequence[float] = (0, 0, 0, 0), std: float | Sequence[float] = (1, 1, 1, 1)
) -> ndarray:
    """Subtract a mean and divide by a standard deviation, channel by channel.

    Parameters
    ----------
    data : array_like, shape (c, h, w) or (n, c, h, w), float
    mean, std : float or sequence of float
        One number, or at least one for each channel; more are not looked at.

    Returns
    -------
    ndarray, shape of `data`

    Raises
    ------
    ValueError
        If there are too few numbers, or a deviation is zero.

    Examples
    --------
    >>> npx.image.normalize(np.ones((1, 1, 2)), mean=0.5, std=0.25)
    array([[[2., 2.]]])
    """
    x = asarray(data)
    if x.ndim not in (3, 4):
        raise ValueError(f"image.normalize: `data` must have axes (c, h, w) or (n, c, h, w), found shape {x.shape}")
    channels = x.shape[-3]
    columns: list[ndarray | float] = []
    for name, given in (("mean", mean), ("std", std)):
        several = (given,) * channels if isinstance(given, int | float) else given
        numbers = tuple(float(number) for number in several)
        numbers = numbers * channels if len(numbers) == 1 else numbers[:channels]
        if len(numbers) != channels or (name == "std" and 0 in numbers):
            raise ValueError(
                f"image.normalize: `{name}` must be one number or one for each of {channels} channels, and a "
                f"deviation is not zero, found {given}"
            )
        # One number for all channels is rounded to the dtype of `x` by the operator, as an array of numbers is here.
        is_one = len(set(numbers)) == 1 and x.dtype in (_FLOAT32, _FLOAT64)
        columns.append(numbers[0] if is_one else _row(numbers, x).reshape(-1, 1, 1))
    result: ndarray = (x - columns[0]) / columns[1]
    return result


def brightness_by(x: ndarray, factor: ndarray) -> ndarray:
    """Float pixels multiplied by a factor."""
    return x * factor


def contrast_by(x: ndarray, factor: ndarray) -> ndarray:
    """Float pixels interpolated between the mean luminance of the image (factor 0) and themselves (factor 1)."""
    grey = grey_of(x) if x.shape[-1] == 3 else x
    return x * factor + (1 - factor) * grey.mean(axis=(-3, -2, -1), keepdims=True)


def saturation_by(x: ndarray, factor: ndarray) -> ndarray:
    """Float pixels interpolated between their luminance (factor 0) and themselves (factor 1)."""
    return x if x.shape[-1] == 1 else x * factor + (1 - factor) * grey_of(x)


def hue_by(x: ndarray, factor: ndarray) -> ndarray:
    """Float pixels with their hue rotated by a fraction of the circle.

    Lightness and chroma stay, so that the largest and the smallest of the three colours do. The formulas are those of
    CSS Color Module Level 4, section 7, with saturation and lightness resolved.
    """
    if x.shape[-1] == 1:
        return x
    red, green, blue = x[..., 0], x[..., 1], x[..., 2]
    high, low = x.max(axis=-1), x.min(axis=-1)
    chroma = high - low
    # Greys have no hue: any divisor is valid.
    safe = _np["where"](chroma > 0, chroma, 1)
    of_blue = (red - green) / safe + 4
    of_green = (blue - red) / safe + 2
    of_red = (green - blue) / safe
    sextant = _np["where"](high == red, of_red, _np["where"](high == green, of_green, of_blue))
    turned = 2 * sextant + 12 * factor
    middle = (high + low) / 2
    colors = []
    for offset in (0, 8, 4):
        k = _np["mod"](turned + offset, 12)
        shape = _np["clip"](_np["minimum"](k - 3, 9 - k), -1, 1)
        colors.append(middle - chroma / 2 * shape)
    return _np["stack"](colors, axis=-1)  # type: ignore[no-any-return]


def _changed(
    name: str,
    data: ArrayLike,
    min_factor: float,
    max_factor: float,
    change: Callable[[ndarray, ndarray], ndarray],
    least: float = 0,
) -> ndarray:
    """Images changed with a random factor."""
    x = _color(name, data)
    if not least <= min_factor <= max_factor:
        raise ValueError(
            f"{name}: `min_factor` and `max_factor` must grow and be at least {least}, "
            f"found {min_factor} and {max_factor}"
        )
    y = as_float(x)
    return as_before(change(y, draw(min_factor, max_factor, x).astype(y.dtype)), x)


def random_brightness(data: ArrayLike, min_factor: float, max_factor: float) -> ndarray:
    """Images times a random factor.

    Parameters
    ----------
    data : array_like, shape (h, w, c) or (n, h, w, c), 1 or 3 channels
        Integers are levels from 0 to 255: results are rounded and clipped to them.
    min_factor, max_factor : float
        Range of the factor, at least 0.

    Returns
    -------
    ndarray, shape and dtype of `data`

    Raises
    ------
    ValueError
        If `data` is no image or the factors are no range.

    Examples
    --------
    >>> npx.image.random_brightness(np.full((1, 1, 3), 100, dtype='uint8'), 2, 2)
    array([[[200, 200, 200]]], dtype=uint8)
    """
    return _changed("image.random_brightness", data, min_factor, max_factor, brightness_by)


def random_contrast(data: ArrayLike, min_factor: float, max_factor: float) -> ndarray:
    """Images moved away from their mean brightness, or to it, by a random factor.

    Parameters
    ----------
    data : array_like, shape (h, w, c) or (n, h, w, c), 1 or 3 channels
    min_factor, max_factor : float
        Range of the factor, at least 0; 1 changes nothing.

    Returns
    -------
    ndarray, shape and dtype of `data`

    Raises
    ------
    ValueError
        If `data` is no image or the factors are no range.

    Examples
    --------
    >>> npx.image.random_contrast(np.array([[[1.0]], [[3.0]]]), 0, 0).ravel()
    array([2., 2.])
    """
    return _changed("image.random_contrast", data, min_factor, max_factor, contrast_by)


def random_saturation(data: ArrayLike, min_factor: float, max_factor: float) -> ndarray:
    """Images with their colours moved away from grey, or to it, by a random factor.

    Parameters
    ----------
    data : array_like, shape (h, w, c) or (n, h, w, c), 1 or 3 channels
    min_factor, max_factor : float
        Range of the factor, at least 0; 1 changes nothing.

    Returns
    -------
    ndarray, shape and dtype of `data`

    Raises
    ------
    ValueError
        If `data` is no image or the factors are no range.

    Examples
    --------
    >>> npx.image.random_saturation(np.array([[[0, 100, 0]]], dtype='uint8'), 0, 0)
    array([[[59, 59, 59]]], dtype=uint8)
    """
    return _changed("image.random_saturation", data, min_factor, max_factor, saturation_by)


def random_hue(data: ArrayLike, min_factor: float, max_factor: float) -> ndarray:
    """Images with their hues turned by a random share of the circle.

    Parameters
    ----------
    data : array_like, shape (h, w, c) or (n, h, w, c), 1 or 3 channels
    min_factor, max_factor : float
        Range of the share; 0 changes nothing, 1/3 turns red into green.

    Returns
    -------
    ndarray, shape and dtype of `data`

    Raises
    ------
    ValueError
        If `data` is no image or the factors are no range.

    Examples
    --------
    >>> npx.image.random_hue(np.array([[[100, 0, 0]]], dtype='uint8'), 1 / 3, 1 / 3)
    array([[[  0, 100,   0]]], dtype=uint8)
    """
    return _changed("image.random_hue", data, min_factor, max_factor, hue_by, least=float("-inf"))


def random_color_jitter(data: ArrayLike, brightness: float, contrast: float, saturation: float, hue: float) -> ndarray:
    """Images with random brightness, contrast, saturation and hue, in random order.

    Parameters
    ----------
    data : array_like, shape (h, w, c) or (n, h, w, c), 1 or 3 channels
    brightness, contrast, saturation : float
        Factors are drawn from ``max(0, 1 - value)`` to ``1 + value``; 0 changes nothing.
    hue : float
        The share is drawn from ``-hue`` to ``hue``.

    Returns
    -------
    ndarray, shape and dtype of `data`

    Raises
    ------
    ValueError
        If `data` is no image or a number is negative.

    Notes
    -----
    One of the four rotations of the order brightness, contrast, saturation, hue is taken at random, by weights on the
    device, so that nothing is read.

    Examples
    --------
    >>> npx.image.random_color_jitter(np.ones((2, 2, 3)), 0.1, 0.1, 0.1, 0.1).shape
    (2, 2, 3)
    """
    name = "image.random_color_jitter"
    x = _color(name, data)
    given = {"brightness": brightness, "contrast": contrast, "saturation": saturation, "hue": hue}
    for argument, value in given.items():
        if not value >= 0:
            raise ValueError(f"{name}: `{argument}` must be at least 0, found {value}")
    y = as_float(x)
    changes: list[tuple[Callable[[ndarray, ndarray], ndarray], ndarray]] = [
        (change, draw(max(0, 1 - value), 1 + value, x).astype(y.dtype))
        for change, value in ((brightness_by, brightness), (contrast_by, contrast), (saturation_by, saturation))
        if value
    ]
    if hue:
        changes.append((hue_by, draw(-hue, hue, x).astype(y.dtype)))
    first = draw(0, max(len(changes), 1), x)
    result = y
    for start in range(len(changes)):
        changed = y
        for change, factor in changes[start:] + changes[:start]:
            changed = change(changed, factor)
        result = _np["where"](first >= start, changed, result)
    return as_before(result, x)


def _lit(x: ndarray, alpha: ndarray) -> ndarray:
    if x.shape[-1] == 1:
        return x
    y = as_float(x)
    parts = alpha.astype(y.dtype) * _row(_PCA_SCALES, y)
    matrix = asarray(_PCA_COLORS, dtype=y.dtype, device=y.device)
    return as_before(y + _np["matmul"](matrix, parts), x)


def adjust_lighting(data: ArrayLike, alpha: Sequence[float]) -> ndarray:
    """Add a mixture of the principal components of the colours of ImageNet.

    Parameters
    ----------
    data : array_like, shape (h, w, c) or (n, h, w, c), 1 or 3 channels
        Levels from 0 to 255; an image of one channel stays as it is.
    alpha : sequence of three float
        Share of each component.

    Returns
    -------
    ndarray, shape and dtype of `data`

    Raises
    ------
    ValueError
        If `data` is no image or `alpha` has no three numbers.

    Examples
    --------
    >>> npx.image.adjust_lighting(np.full((1, 1, 3), 100, dtype='uint8'), (0.1, 0, 0))
    array([[[97, 97, 97]]], dtype=uint8)
    """
    x = _color("image.adjust_lighting", data)
    if len(alpha) != 3:
        raise ValueError(f"image.adjust_lighting: `alpha` must be three numbers, found {alpha}")
    return _lit(x, _row(alpha, as_float(x)))


def random_lighting(data: ArrayLike, alpha_std: float = 0.05) -> ndarray:
    """Add a random mixture of the principal components of the colours of ImageNet.

    Parameters
    ----------
    data : array_like, shape (h, w, c) or (n, h, w, c), 1 or 3 channels
        Levels from 0 to 255; an image of one channel stays as it is.
    alpha_std : float
        Standard deviation of the shares.

    Returns
    -------
    ndarray, shape and dtype of `data`

    Raises
    ------
    ValueError
        If `data` is no image or `alpha_std` is negative.

    Examples
    --------
    >>> npx.image.random_lighting(np.ones((2, 2, 3)), 0.1).shape
    (2, 2, 3)
    """
    x = _color("image.random_lighting", data)
    if not alpha_std >= 0:
        raise ValueError(f"image.random_lighting: `alpha_std` must be at least 0, found {alpha_std}")
    return _lit(x, _core.namespaces["random"]["normal"](0, alpha_std, (3,), "float32", x.device))
