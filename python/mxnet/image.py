"""Images on the host: reading, writing, sizes and rectangles of single images."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

from mxnet import _core
from mxnet import numpy as np
from mxnet._renamed import attribute_finder
from mxnet.numpy import ndarray
from mxnet.numpy_extension import _image_geometry as _geometry
from mxnet.numpy_extension._sampling import sampled

__all__ = [
    "center_crop",
    "color_normalize",
    "copyMakeBorder",
    "fixed_crop",
    "imdecode",
    "imread",
    "imresize",
    "imrotate",
    "random_crop",
    "random_rotate",
    "random_size_crop",
    "resize_short",
    "scale_down",
]

__getattr__ = attribute_finder(__name__)


def imdecode(buf: Any, flag: int = 1, to_rgb: bool = True) -> ndarray:
    """Decode a JPEG or PNG image.

    Parameters
    ----------
    buf : bytes, bytearray, memoryview or uint8 ndarray
    flag : int
        1 for three channels, 0 for brightness alone, -1 for channels as stored, transparency among them.
    to_rgb : bool
        Red first; else blue first.

    Returns
    -------
    ndarray, shape (h, w, c), uint8

    Raises
    ------
    OSError
        If the data are no image, truncated or damaged, or the image has more than ``2**28`` pixels.
    ValueError
        If `flag` is another number.

    Notes
    -----
    Samples of 16 bits lose their lower half. The orientation in a file's metadata is not looked at.

    Examples
    --------
    >>> mx.image.imdecode(b'no image')
    Traceback (most recent call last):
    ...
    mxnet.error.IOError: imdecode: 8 bytes are neither a JPEG nor a PNG image
    """
    data = buf.asnumpy().tobytes() if isinstance(buf, ndarray) else bytes(buf)
    image: ndarray = _core.image_decode("imdecode", data, flag, bool(to_rgb))
    return image


def imread(filename: str | os.PathLike[str], flag: int = 1, to_rgb: bool = True) -> ndarray:
    """Read and decode a JPEG or PNG file.

    Parameters
    ----------
    filename : path
    flag, to_rgb
        See `imdecode`.

    Returns
    -------
    ndarray, shape (h, w, c), uint8

    Raises
    ------
    OSError
        If the file cannot be read or decoded; a FileNotFoundError if there is none.
    ValueError
        If `flag` is another number.

    Examples
    --------
    >>> mx.image.imread('nowhere.png')
    Traceback (most recent call last):
    ...
    FileNotFoundError: [Errno 2] No such file or directory: 'nowhere.png'
    """
    with open(filename, "rb") as file:
        data = file.read()
    try:
        image: ndarray = _core.image_decode("imread", data, flag, bool(to_rgb))
    except OSError as error:
        error.add_note(f"while reading {os.fspath(filename)!r}")
        raise
    return image


def _imencode(array: Any, quality: int = 95, img_fmt: str = ".jpg") -> bytes:
    """Encode a uint8 image (h, w) or (h, w, c), red first, as JPEG (quality 1 to 100) or PNG (compression 0 to 9)."""
    image = np.asarray(array)
    if image.ndim == 2:
        image = image[..., None]
    ending = img_fmt.lower()
    if ending not in (".jpg", ".jpeg", ".png"):
        raise ValueError(f"imencode: `img_fmt` must be '.jpg', '.jpeg' or '.png', found {img_fmt!r}")
    least, most = (0, 9) if ending == ".png" else (1, 100)
    if not least <= quality <= most:
        raise ValueError(f"imencode: `quality` must be from {least} to {most} for {ending}, found {quality}")
    file: bytes = _core.image_encode(image, quality, ending == ".png")
    return file


def _interpolation(interp: int, old: Sequence[int], new: Sequence[int]) -> int:
    """The method that 9 and 10 stand for: 9 cubic to enlarge, area to shrink, else bilinear; 10 a random one."""
    if interp == 9:
        if new[0] > old[0] and new[1] > old[1]:
            return 2
        return 3 if new[0] < old[0] and new[1] < old[1] else 1
    if interp == 10:
        return int(np.random.randint(0, 5))
    return interp


def imresize(src: Any, w: int, h: int, interp: int = 1) -> ndarray:
    """An image of another size.

    Parameters
    ----------
    src : array_like, shape (h, w, c)
    w, h : int
        New width and height.
    interp : int
        As for `npx.image.resize`; 9 is cubic to enlarge, area to shrink and else bilinear; 10 is a random one.

    Returns
    -------
    ndarray, dtype of `src`

    Raises
    ------
    ValueError
        If the size or `interp` is not possible.

    Notes
    -----
    Images of uint8 with up to four channels are resized in integers, one axis after the other: levels may differ by one
    from those of `npx.image.resize`, and by more where cubic and Lanczos overshoot at steep edges.

    Examples
    --------
    >>> mx.image.imresize(np.zeros((4, 6, 3), dtype='uint8'), 3, 2).shape
    (2, 3, 3)
    """
    x = np.asarray(src)
    if x.ndim != 3:
        raise ValueError(f"imresize: `src` must have axes (h, w, c), found shape {x.shape}")
    interp = _interpolation(interp, x.shape[:2], (h, w))
    _geometry.check_interp("imresize", interp)
    if min(w, h) < 1:
        raise ValueError(f"imresize: `w` and `h` must be at least 1, found {w} and {h}")
    if x.dtype == "uint8" and x.shape[2] <= 4:
        resized: ndarray = _core.image_resize(x, h, w, interp)
        return resized
    return _geometry.resize(x, (w, h), interp=interp)


def scale_down(src_size: tuple[int, int], size: tuple[int, int]) -> tuple[int, int]:
    """The largest size in proportion to one that fits into an image.

    Parameters
    ----------
    src_size, size : (int, int)
        Width and height of the image and of what is wanted.

    Returns
    -------
    (int, int)

    Examples
    --------
    >>> mx.image.scale_down((640, 480), (720, 120))
    (640, 106)
    """
    w, h = map(float, size)
    sw, sh = src_size
    if sh < h:
        w, h = w * sh / h, sh
    if sw < w:
        w, h = sw, h * sw / w
    return int(w), int(h)


def resize_short(src: Any, size: int, interp: int = 2) -> ndarray:
    """An image whose short side has a length.

    Parameters
    ----------
    src : array_like, shape (h, w, c)
    size : int
        Of the short side; the other is in proportion, rounded down.
    interp : int
        See `imresize`.

    Returns
    -------
    ndarray, dtype of `src`

    Raises
    ------
    ValueError
        If the size or `interp` is not possible.

    Examples
    --------
    >>> mx.image.resize_short(np.zeros((4, 6, 3), dtype='uint8'), 2).shape
    (2, 3, 3)
    """
    x = np.asarray(src)
    h, w = x.shape[:2]
    new_w, new_h = (size, size * h // w) if h > w else (size * w // h, size)
    return imresize(x, new_w, new_h, interp)


def fixed_crop(
    src: Any, x0: int, y0: int, w: int, h: int, size: tuple[int, int] | None = None, interp: int = 2
) -> ndarray:
    """A rectangle of an image, resized if a size is given.

    Parameters
    ----------
    src : array_like, shape (h, w, c)
    x0, y0, w, h : int
        First column and row, columns and rows.
    size : (int, int), optional
        Width and height of the result.
    interp : int
        See `imresize`.

    Returns
    -------
    ndarray, dtype of `src`

    Raises
    ------
    ValueError
        If the rectangle leaves the image.

    Examples
    --------
    >>> mx.image.fixed_crop(np.zeros((4, 6, 3), dtype='uint8'), 1, 0, 2, 2, (8, 8)).shape
    (8, 8, 3)
    """
    part = _geometry.crop(src, x0, y0, w, h)
    return part if size is None or tuple(size) == (w, h) else imresize(part, *size, interp)


def _rectangle(
    src: Any, size: tuple[int, int], interp: int, offset_of: Any
) -> tuple[ndarray, tuple[int, int, int, int]]:
    """A rectangle of a size, scaled down if it does not fit, where `offset_of` puts it between 0 and what is free."""
    x = np.asarray(src)
    h, w = x.shape[:2]
    new_w, new_h = scale_down((w, h), size)
    x0, y0 = offset_of(w - new_w), offset_of(h - new_h)
    return fixed_crop(x, x0, y0, new_w, new_h, size, interp), (x0, y0, new_w, new_h)


def _random_offset(free: int) -> int:
    return int(np.random.randint(0, free + 1))


def random_crop(src: Any, size: tuple[int, int], interp: int = 2) -> tuple[ndarray, tuple[int, int, int, int]]:
    """A rectangle at a random place; what does not fit is scaled down, and its content resized.

    Parameters
    ----------
    src : array_like, shape (h, w, c)
    size : (int, int)
        Width and height.
    interp : int
        See `imresize`.

    Returns
    -------
    (ndarray, (x0, y0, w, h))
        The image, and the rectangle that it was.

    Examples
    --------
    >>> mx.image.random_crop(np.zeros((4, 6, 3), dtype='uint8'), (3, 2))[0].shape
    (2, 3, 3)
    """
    return _rectangle(src, size, interp, _random_offset)


def center_crop(src: Any, size: tuple[int, int], interp: int = 2) -> tuple[ndarray, tuple[int, int, int, int]]:
    """The rectangle in the middle; what does not fit is scaled down, and its content resized.

    Parameters
    ----------
    src : array_like, shape (h, w, c)
    size : (int, int)
        Width and height.
    interp : int
        See `imresize`.

    Returns
    -------
    (ndarray, (x0, y0, w, h))
        The image, and the rectangle that it was.

    Examples
    --------
    >>> mx.image.center_crop(np.zeros((4, 6, 3), dtype='uint8'), (2, 2))[1]
    (2, 1, 2, 2)
    """
    return _rectangle(src, size, interp, lambda free: free // 2)


_TRIALS = 10


def random_size_crop(
    src: Any,
    size: tuple[int, int],
    area: float | tuple[float, float],
    ratio: tuple[float, float],
    interp: int = 2,
) -> tuple[ndarray, tuple[int, int, int, int]]:
    """A rectangle of random size, shape and place, resized.

    Parameters
    ----------
    src : array_like, shape (h, w, c)
    size : (int, int)
        Width and height of the result.
    area : float or (float, float)
        Range of the rectangle's share of the image; one number is the lower end.
    ratio : (float, float)
        Range of width by height; its logarithm is uniform.
    interp : int
        See `imresize`.

    Returns
    -------
    (ndarray, (x0, y0, w, h))
        The image, and the rectangle that it was: in the middle if ten random ones did not fit.

    Examples
    --------
    >>> mx.image.random_size_crop(np.zeros((4, 6, 3), dtype='uint8'), (3, 2), 0.5, (0.8, 1.25))[0].shape
    (2, 3, 3)
    """
    x = np.asarray(src)
    h, w = x.shape[:2]
    low, high = (area, 1.0) if isinstance(area, int | float) else area
    for _ in range(_TRIALS):
        share = float(np.random.uniform(low, high)) * h * w
        shape = math.exp(float(np.random.uniform(math.log(ratio[0]), math.log(ratio[1]))))
        new_w, new_h = round(math.sqrt(share * shape)), round(math.sqrt(share / shape))
        if 0 < new_w <= w and 0 < new_h <= h:
            x0, y0 = _random_offset(w - new_w), _random_offset(h - new_h)
            return fixed_crop(x, x0, y0, new_w, new_h, size, interp), (x0, y0, new_w, new_h)
    return center_crop(x, size, interp)


def color_normalize(src: ndarray, mean: Any, std: Any = None) -> ndarray:
    """Subtract a mean and divide by a standard deviation.

    Parameters
    ----------
    src : ndarray
    mean, std : array_like, optional
        They broadcast; None leaves the step out.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> mx.image.color_normalize(np.ones((1, 1, 2)), mean=0.5, std=0.25)
    array([[[2., 2.]]])
    """
    if mean is not None:
        src = src - mean
    if std is not None:
        src = src / std
    return src


_BORDERS = ("constant", "edge", "symmetric", "wrap", "reflect")


def copyMakeBorder(  # the public name
    src: Any,
    top: int,
    bot: int,
    left: int,
    right: int,
    type: int = 0,
    value: float = 0,
    values: Sequence[float] = (),
) -> ndarray:
    """An image with a border.

    Parameters
    ----------
    src : array_like, shape (h, w, c)
    top, bot, left, right : int
        Widths of the border.
    type : int
        0 constant, 1 the outermost pixel, 2 mirrored with the outermost pixel, 3 from the other side, 4 mirrored
        without it.
    value : float
        Of a constant border.
    values : sequence of float
        One for each channel instead.

    Returns
    -------
    ndarray, dtype of `src`

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> mx.image.copyMakeBorder(np.ones((1, 2, 1)), 0, 0, 1, 1, value=7).ravel()
    array([7., 1., 1., 7.])
    """
    x = np.asarray(src)
    if x.ndim != 3 or min(top, bot, left, right) < 0 or type not in range(len(_BORDERS)):
        raise ValueError(
            f"copyMakeBorder: `src` must have axes (h, w, c), widths must be at least 0 and `type` from 0 to 4, "
            f"found shape {x.shape}, {(top, bot, left, right)} and {type}"
        )
    channels = x.shape[2]
    if len(values) not in (0, channels):
        raise ValueError(f"copyMakeBorder: `values` must be {channels} numbers, found {values}")
    widths = ((top, bot), (left, right), (0, 0))
    if type:
        return np.pad(x, widths, _BORDERS[type])
    if not len(values):
        return np.pad(x, widths, "constant", constant_values=value)
    parts = [np.pad(x[..., c : c + 1], widths, "constant", constant_values=v) for c, v in enumerate(values)]
    return np.concatenate(parts, axis=2)


def imrotate(src: ndarray, rotation_degrees: Any, zoom_in: bool = False, zoom_out: bool = False) -> ndarray:
    """Turn images about their middle, counter-clockwise, with bilinear interpolation and zeros outside.

    Parameters
    ----------
    src : ndarray, shape (c, h, w) or (n, c, h, w), float
    rotation_degrees : float or ndarray of shape (n,)
        One angle, or one for each image.
    zoom_in : bool
        Enlarge until nothing outside is seen.
    zoom_out : bool
        Shrink until all of the image is seen.

    Returns
    -------
    ndarray, shape and dtype of `src`
        Differentiable with respect to `src`.

    Raises
    ------
    TypeError
        If `src` is not float.
    ValueError
        If shapes do not fit, or both zooms are asked for.

    Examples
    --------
    >>> mx.image.imrotate(np.array([[[1.0, 2.0], [3.0, 4.0]]]), 90).round()
    array([[[2., 4.],
            [1., 3.]]])
    """
    x = np.asarray(src)
    if x.dtype.kind != "f":
        raise TypeError(f"imrotate: `src` must be float, found {x.dtype}")
    if zoom_in and zoom_out:
        raise ValueError("imrotate: `zoom_in` and `zoom_out` exclude each other")
    angles = np.asarray(rotation_degrees, dtype="float32")
    is_one = x.ndim == 3
    if x.ndim not in (3, 4) or angles.ndim > (0 if is_one else 1) or angles.shape not in ((), x.shape[:1]):
        raise ValueError(
            f"imrotate: `src` must have axes (c, h, w) with one angle, or (n, c, h, w) with one or n, found shapes "
            f"{x.shape} and {angles.shape}"
        )
    batch = x[None] if is_one else x
    n, _, h, w = batch.shape
    angle = (np.broadcast_to(angles, (n,)) * (math.pi / 180)).reshape(n, 1, 1)
    cos, sin = np.cos(angle), np.sin(angle)
    # How much of the image a turned frame of its size spans, between centres of pixels; 1 at 0 degrees.
    wide, tall = max(w - 1, 1), max(h - 1, 1)
    span_w = (np.abs(wide * cos) + np.abs(tall * sin)) / wide
    span_h = (np.abs(wide * sin) + np.abs(tall * cos)) / tall
    span = np.maximum(span_w, span_h)
    scale = 1 / span if zoom_in else span if zoom_out else np.ones_like(span)
    right = (np.arange(w, dtype="float32") - (w - 1) / 2) * scale  # (n, 1, w)
    down = (np.arange(h, dtype="float32").reshape(h, 1) - (h - 1) / 2) * scale  # (n, h, 1)
    column = cos * right - sin * down + (w - 1) / 2
    row = sin * right + cos * down + (h - 1) / 2
    result = sampled(batch, column.reshape(n, h * w), row.reshape(n, h * w)).astype(x.dtype)
    return result.reshape(x.shape)


def random_rotate(
    src: ndarray, angle_limits: tuple[float, float], zoom_in: bool = False, zoom_out: bool = False
) -> ndarray:
    """Turn each image by a random angle.

    Parameters
    ----------
    src : ndarray, shape (c, h, w) or (n, c, h, w), float
    angle_limits : (float, float)
        Range of the angle in degrees.
    zoom_in, zoom_out : bool
        See `imrotate`.

    Returns
    -------
    ndarray, shape and dtype of `src`

    Raises
    ------
    TypeError, ValueError
        As `imrotate`.

    Examples
    --------
    >>> mx.image.random_rotate(np.ones((3, 4, 6)), (-10, 10)).shape
    (3, 4, 6)
    """
    size = () if src.ndim == 3 else src.shape[:1]
    return imrotate(src, np.random.uniform(*angle_limits, size=size), zoom_in, zoom_out)
