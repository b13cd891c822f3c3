"""Transforms of the values of pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mxnet import numpy as np
from mxnet.gluon.data.vision.transforms._base import HybridTransform
from mxnet.numpy_extension import _image_color as _color
from mxnet.numpy_extension._image_geometry import as_before, as_float, check_probability, draw, image_of

__all__ = [
    "Normalize",
    "RandomBrightness",
    "RandomColorJitter",
    "RandomContrast",
    "RandomGray",
    "RandomHue",
    "RandomLighting",
    "RandomSaturation",
    "ToTensor",
]


def _with(first: Any, rest: tuple[Any, ...]) -> Any:
    """The transformed image, and what came with it if something did."""
    return (first, *rest) if rest else first


def _check_amount(name: str, value: float) -> float:
    if not value >= 0:
        raise ValueError(f"`{name}` must be at least 0, found {value}")
    return float(value)


class ToTensor(HybridTransform):
    """Converts images with levels from 0 to 255 to float32 from 0 to 1, channels first.

    Examples
    --------
    >>> transforms = mx.gluon.data.vision.transforms
    >>> transforms.ToTensor()(np.ones((4, 6, 3))).shape
    (3, 4, 6)
    """

    def forward(self, x: Any, *args: Any) -> Any:
        """Convert an image (h, w, c) or a batch (n, h, w, c); other arguments are handed on."""
        return _with(_color.to_tensor(x), args)


class Normalize(HybridTransform):
    """Subtracts a mean and divides by a standard deviation, channel by channel.

    Parameters
    ----------
    mean, std : float or sequence of float
        One number, or one for each channel.

    Raises
    ------
    ValueError
        If a standard deviation is zero.

    Examples
    --------
    >>> transforms = mx.gluon.data.vision.transforms
    >>> transforms.Normalize(mean=0.5, std=0.25)(np.ones((1, 1, 2)))
    array([[[2., 2.]]])
    """

    def __init__(self, mean: float | Sequence[float] = 0.0, std: float | Sequence[float] = 1.0) -> None:
        super().__init__()
        self._mean, self._std = mean, std
        if 0 in ((std,) if isinstance(std, int | float) else tuple(std)):
            raise ValueError(f"`std` must not be zero, found {std}")

    def forward(self, x: Any, *args: Any) -> Any:
        """Normalise an image (c, h, w) or a batch (n, c, h, w); other arguments are handed on."""
        return _with(_color.normalize(x, self._mean, self._std), args)


class RandomBrightness(HybridTransform):
    """Changes the brightness of images by a random factor.

    Parameters
    ----------
    brightness : float
        The factor is drawn from ``max(0, 1 - brightness)`` to ``1 + brightness``.

    Raises
    ------
    ValueError
        If `brightness` is negative.

    Examples
    --------
    >>> transforms = mx.gluon.data.vision.transforms
    >>> transforms.RandomBrightness(0.2)(np.ones((4, 6, 3))).shape
    (4, 6, 3)
    """

    def __init__(self, brightness: float) -> None:
        super().__init__()
        self._brightness = _check_amount("brightness", brightness)
        self._range = (max(0.0, 1 - brightness), 1 + brightness)

    def forward(self, x: Any, *args: Any) -> Any:
        """Change an image (h, w, c) or a batch (n, h, w, c); other arguments are handed on."""
        return _with(_color.random_brightness(x, *self._range), args)


class RandomContrast(HybridTransform):
    """Changes the contrast of images by a random factor.

    Parameters
    ----------
    contrast : float
        The factor is drawn from ``max(0, 1 - contrast)`` to ``1 + contrast``.

    Raises
    ------
    ValueError
        If `contrast` is negative.

    Examples
    --------
    >>> transforms = mx.gluon.data.vision.transforms
    >>> transforms.RandomContrast(0.2)(np.ones((4, 6, 3))).shape
    (4, 6, 3)
    """

    def __init__(self, contrast: float) -> None:
        super().__init__()
        self._contrast = _check_amount("contrast", contrast)
        self._range = (max(0.0, 1 - contrast), 1 + contrast)

    def forward(self, x: Any, *args: Any) -> Any:
        """Change an image (h, w, c) or a batch (n, h, w, c); other arguments are handed on."""
        return _with(_color.random_contrast(x, *self._range), args)


class RandomSaturation(HybridTransform):
    """Changes the saturation of images by a random factor.

    Parameters
    ----------
    saturation : float
        The factor is drawn from ``max(0, 1 - saturation)`` to ``1 + saturation``.

    Raises
    ------
    ValueError
        If `saturation` is negative.

    Examples
    --------
    >>> transforms = mx.gluon.data.vision.transforms
    >>> transforms.RandomSaturation(0.2)(np.ones((4, 6, 3))).shape
    (4, 6, 3)
    """

    def __init__(self, saturation: float) -> None:
        super().__init__()
        self._saturation = _check_amount("saturation", saturation)
        self._range = (max(0.0, 1 - saturation), 1 + saturation)

    def forward(self, x: Any, *args: Any) -> Any:
        """Change an image (h, w, c) or a batch (n, h, w, c); other arguments are handed on."""
        return _with(_color.random_saturation(x, *self._range), args)


class RandomHue(HybridTransform):
    """Rotates the hues of images by a random angle.

    Parameters
    ----------
    hue : float
        The share is drawn from ``-hue`` to ``hue``.

    Raises
    ------
    ValueError
        If `hue` is negative.

    Examples
    --------
    >>> transforms = mx.gluon.data.vision.transforms
    >>> transforms.RandomHue(0.1)(np.ones((4, 6, 3))).shape
    (4, 6, 3)
    """

    def __init__(self, hue: float) -> None:
        super().__init__()
        self._hue = _check_amount("hue", hue)

    def forward(self, x: Any, *args: Any) -> Any:
        """Change an image (h, w, c) or a batch (n, h, w, c); other arguments are handed on."""
        return _with(_color.random_hue(x, -self._hue, self._hue), args)


class RandomColorJitter(HybridTransform):
    """Changes brightness, contrast, saturation and hue of images randomly, in random order.

    Parameters
    ----------
    brightness, contrast, saturation, hue : float
        As for the transforms of one of them; 0 changes nothing.

    Raises
    ------
    ValueError
        If a number is negative.

    Examples
    --------
    >>> transforms = mx.gluon.data.vision.transforms
    >>> transforms.RandomColorJitter(0.1, 0.1, 0.1, 0.1)(np.ones((4, 6, 3))).shape
    (4, 6, 3)
    """

    def __init__(self, brightness: float = 0, contrast: float = 0, saturation: float = 0, hue: float = 0) -> None:
        super().__init__()
        given = {"brightness": brightness, "contrast": contrast, "saturation": saturation, "hue": hue}
        self._amounts = [_check_amount(name, value) for name, value in given.items()]
        self._brightness, self._contrast, self._saturation, self._hue = self._amounts

    def forward(self, x: Any, *args: Any) -> Any:
        """Change an image (h, w, c) or a batch (n, h, w, c); other arguments are handed on."""
        return _with(_color.random_color_jitter(x, *self._amounts), args)


class RandomLighting(HybridTransform):
    """Adds a random mixture of the principal components of the colours of ImageNet.

    Parameters
    ----------
    alpha : float
        Standard deviation of the shares.

    Raises
    ------
    ValueError
        If `alpha` is negative.

    Examples
    --------
    >>> transforms = mx.gluon.data.vision.transforms
    >>> transforms.RandomLighting(0.1)(np.ones((4, 6, 3))).shape
    (4, 6, 3)
    """

    def __init__(self, alpha: float) -> None:
        super().__init__()
        self._alpha = _check_amount("alpha", alpha)

    def forward(self, x: Any, *args: Any) -> Any:
        """Change an image (h, w, c) or a batch (n, h, w, c) of levels from 0 to 255; other arguments are handed on."""
        return _with(_color.random_lighting(x, self._alpha), args)


class RandomGray(HybridTransform):
    """Converts images to grey with a probability; their three channels become equal.

    Parameters
    ----------
    p : float
        From 0 to 1.

    Raises
    ------
    ValueError
        If `p` is no probability.

    Examples
    --------
    >>> image = np.array([[[0, 100, 0]]], dtype='uint8')
    >>> mx.gluon.data.vision.transforms.RandomGray(p=1)(image)
    array([[[59, 59, 59]]], dtype=uint8)
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        check_probability("RandomGray", p)
        self._p = p

    def forward(self, x: Any, *args: Any) -> Any:
        """Change an image (h, w, 3) or a batch (n, h, w, 3); other arguments are handed on."""
        image = image_of("RandomGray", x)
        if image.shape[-1] != 3:
            raise ValueError(f"RandomGray: images must have 3 channels, found shape {image.shape}")
        grey = np.broadcast_to(as_before(_color.grey_of(as_float(image)), image), image.shape)
        return _with(np.where(draw(0, 1, image) < self._p, grey, image), args)
