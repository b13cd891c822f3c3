"""Image operators that change geometry: resizing, cropping, flipping. Axes are (h, w, c) or (n, h, w, c)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray

__all__ = [
    "crop",
    "flip_left_right",
    "flip_top_bottom",
    "random_crop",
    "random_flip_left_right",
    "random_flip_top_bottom",
    "random_resized_crop",
    "resize",
]

_np = _core.namespaces["numpy"]
_NEAREST, _BILINEAR, _CUBIC, _AREA, _LANCZOS = range(5)


def image_of(name: str, data: ArrayLike) -> ndarray:
    """The argument as an array of images; ValueError for another number of axes."""
    x = asarray(data)
    if x.ndim not in (3, 4):
        raise ValueError(f"{name}: `data` must have axes (h, w, c) or (n, h, w, c), found shape {x.shape}")
    return x


def is_integer(x: ndarray) -> bool:
    """Whether pixels are integers, which have levels from 0 to 255."""
    return x.dtype.kind in "biu"


def as_float(x: ndarray) -> ndarray:
    """Pixels to compute with; floats are unchanged."""
    return x.astype("float32") if is_integer(x) else x


def as_before(y: ndarray, x: ndarray) -> ndarray:
    """Computed pixels in the dtype of `x`; for integers rounded and clipped to 0 to 255."""
    if not is_integer(x):
        return y
    return _np["clip"](_np["rint"](y), 0, 255).astype(x.dtype)  # type: ignore[no-any-return]


def draw(low: float, high: float, x: ndarray) -> ndarray:
    """A uniform number from the global stream, on the device of `x`. One number for all images of a batch."""
    drawn: ndarray = _core.namespaces["random"]["uniform"](low, high, (), "float32", x.device)
    return drawn


def check_probability(name: str, p: float) -> None:
    if not 0 <= p <= 1:
        raise ValueError(f"{name}: `p` must be from 0 to 1, found {p}")


def _kernel(interp: int) -> Callable[[ndarray], ndarray]:
    where = _np["where"]

    def box(d: ndarray) -> ndarray:
        return ((d > -0.5) & (d <= 0.5)).astype(d.dtype)

    def triangle(d: ndarray) -> ndarray:
        return _np["maximum"](1 - _np["abs"](d), 0)  # type: ignore[no-any-return]

    def cubic(d: ndarray) -> ndarray:
        # R. Keys, "Cubic convolution interpolation for digital image processing", 1981, with a = -0.75.
        d = _np["abs"](d)
        near = (1.25 * d - 2.25) * d * d + 1
        far = -0.75 * (((d - 5) * d + 8) * d - 4)
        return where(d < 1, near, where(d < 2, far, 0.0))  # type: ignore[no-any-return]

    def lanczos(d: ndarray) -> ndarray:
        wave = _np["sinc"](d) * _np["sinc"](d / 4)
        return where(_np["abs"](d) < 4, wave, 0.0)  # type: ignore[no-any-return]

    return {_NEAREST: box, _BILINEAR: triangle, _CUBIC: cubic, _AREA: box, _LANCZOS: lanczos}[interp]


def _weights(size: int, start: Any, length: Any, num: int, interp: int, x: ndarray) -> ndarray:
    """Interpolation weights (size, num) from the pixels `start` to `start + length` of a row of `num` to `size` pixels.

    Centres of pixels lie at halves. Weights outside the row part are given to the others. `start` and `length` may be
    arrays without axes, so that a random rectangle needs no read of its numbers.
    """
    step = length / size
    centres = (start + (_np["arange"](size, dtype="float32", device=x.device) + 0.5) * step).reshape(-1, 1)
    pixels = _np["arange"](num, dtype="float32", device=x.device) + 0.5
    distance = (pixels - centres) / (step if interp == _AREA else 1)
    inside = (pixels > start) & (pixels < start + length)
    weights = _np["where"](inside, _kernel(interp)(distance), 0.0)
    scaled: ndarray = (weights / weights.sum(axis=1, keepdims=True)).astype(x.dtype)
    return scaled


def _resample(x: ndarray, part: Sequence[Any], height: int, width: int, interp: int) -> ndarray:
    """The rectangle (left, top, width, height) resampled to another size; linear in `x`."""
    left, top, w, h = part
    rows, columns, channels = x.shape[-3:]
    y = as_float(x)
    if interp == _AREA and (height > rows or width > columns):
        interp = _BILINEAR
    by_row = _weights(height, top, h, rows, interp, y)
    by_column = _weights(width, left, w, columns, interp, y)
    lead = x.shape[:-3]
    y = _np["matmul"](by_row, y.reshape(*lead, rows, columns * channels))
    y = _np["matmul"](by_column, y.reshape(*lead, height, columns, channels))
    return as_before(y, x)


def check_interp(name: str, interp: int) -> None:
    if interp not in range(5):
        raise ValueError(f"{name}: `interp` must be from 0 to 4, found {interp}")


def resize(
    data: ArrayLike, size: int | Sequence[int] = (), keep_ratio: bool = False, interp: int = _BILINEAR
) -> ndarray:
    """Images of another size.

    Parameters
    ----------
    data : array_like, shape (h, w, c) or (n, h, w, c)
        Integers are levels from 0 to 255.
    size : int or (int, int)
        Width and height; one number is both.
    keep_ratio : bool
        Make the short side `size` long and the other in proportion, rounded down. Only with one number.
    interp : int
        0 nearest pixel, 1 bilinear, 2 cubic (4 x 4 pixels), 3 mean over the area (bilinear if an axis grows), 4 Lanczos
        (8 x 8 pixels).

    Returns
    -------
    ndarray
        dtype of `data`; integers are rounded. Differentiable for floats.

    Raises
    ------
    ValueError
        If the size or `interp` is not possible.

    Notes
    -----
    Centres of pixels lie at halves. Differences: pixels outside the image count nothing, older versions repeat those at
    the border, which differs near borders for cubic and Lanczos; the nearest pixel is that of the centre; the mean over
    an area is that of the pixels whose centres lie in it, where older versions count parts of pixels.

    Examples
    --------
    >>> npx.image.resize(np.ones((4, 6, 3)), (3, 2)).shape
    (2, 3, 3)
    >>> npx.image.resize(np.ones((4, 6, 3)), 2, keep_ratio=True).shape
    (2, 3, 3)
    """
    x = image_of("image.resize", data)
    check_interp("image.resize", interp)
    rows, columns = x.shape[-3:-1]
    given = (size,) if isinstance(size, int) else tuple(size)
    if len(given) not in (1, 2) or min(given) < 1 or (keep_ratio and len(given) != 1) or 0 in (rows, columns):
        raise ValueError(
            f"image.resize: `size` must be one or two numbers of at least 1, one with `keep_ratio`, and images "
            f"must have pixels, found {size} for shape {x.shape}"
        )
    width, height = given * 2 if len(given) == 1 else given
    if keep_ratio:
        short_side = given[0]
        width, height = (
            (short_side, rows * short_side // columns) if rows > columns else (columns * short_side // rows, short_side)
        )
    return _resample(x, (0, 0, columns, rows), height, width, interp)


def crop(data: ArrayLike, x: int, y: int, width: int, height: int) -> ndarray:
    """A rectangle of images.

    Parameters
    ----------
    data : array_like, shape (h, w, c) or (n, h, w, c)
    x, y : int
        First column and first row.
    width, height : int
        Columns and rows.

    Returns
    -------
    ndarray, shape (height, width, c) or (n, height, width, c)

    Raises
    ------
    ValueError
        If the rectangle is empty or leaves the image.

    Examples
    --------
    >>> npx.image.crop(np.ones((4, 6, 3)), 1, 0, 5, 2).shape
    (2, 5, 3)
    """
    image = image_of("image.crop", data)
    rows, columns = image.shape[-3:-1]
    if min(x, y) < 0 or min(width, height) < 1 or x + width > columns or y + height > rows:
        raise ValueError(
            f"image.crop: the rectangle of {height} rows from {y} and {width} columns from {x} must lie in the image "
            f"and not be empty, found shape {image.shape}"
        )
    part: ndarray = image[..., y : y + height, x : x + width, :]
    return part


def flip_left_right(data: ArrayLike) -> ndarray:
    """Images mirrored left to right.

    Parameters
    ----------
    data : array_like, shape (h, w, c) or (n, h, w, c)

    Returns
    -------
    ndarray

    Examples
    --------
    >>> npx.image.flip_left_right(np.arange(3).reshape(1, 3, 1)).ravel()
    array([2, 1, 0])
    """
    return _np["flip"](image_of("image.flip_left_right", data), -2)  # type: ignore[no-any-return]


def flip_top_bottom(data: ArrayLike) -> ndarray:
    """Images mirrored top to bottom.

    Parameters
    ----------
    data : array_like, shape (h, w, c) or (n, h, w, c)

    Returns
    -------
    ndarray

    Examples
    --------
    >>> npx.image.flip_top_bottom(np.arange(3).reshape(3, 1, 1)).ravel()
    array([2, 1, 0])
    """
    return _np["flip"](image_of("image.flip_top_bottom", data), -3)  # type: ignore[no-any-return]


def random_flip_left_right(data: ArrayLike, p: float = 0.5) -> ndarray:
    """Images mirrored left to right with a probability; all of a batch or none.

    Parameters
    ----------
    data : array_like, shape (h, w, c) or (n, h, w, c)
    p : float
        From 0 to 1.

    Returns
    -------
    ndarray

    Raises
    ------
    ValueError
        If `p` is no probability.

    Examples
    --------
    >>> npx.image.random_flip_left_right(np.arange(3).reshape(1, 3, 1), p=1).ravel()
    array([2, 1, 0])
    """
    x = image_of("image.random_flip_left_right", data)
    check_probability("image.random_flip_left_right", p)
    return _np["where"](draw(0, 1, x) < p, flip_left_right(x), x)  # type: ignore[no-any-return]


def random_flip_top_bottom(data: ArrayLike, p: float = 0.5) -> ndarray:
    """Images mirrored top to bottom with a probability; all of a batch or none.

    Parameters
    ----------
    data : array_like, shape (h, w, c) or (n, h, w, c)
    p : float
        From 0 to 1.

    Returns
    -------
    ndarray

    Raises
    ------
    ValueError
        If `p` is no probability.

    Examples
    --------
    >>> npx.image.random_flip_top_bottom(np.arange(3).reshape(3, 1, 1), p=1).ravel()
    array([2, 1, 0])
    """
    x = image_of("image.random_flip_top_bottom", data)
    check_probability("image.random_flip_top_bottom", p)
    return _np["where"](draw(0, 1, x) < p, flip_top_bottom(x), x)  # type: ignore[no-any-return]


def _check_random(name: str, ranges: dict[str, Sequence[float]], width: int, height: int, interp: int) -> None:
    check_interp(name, interp)
    for argument, (low, high) in ranges.items():
        if not 0 <= low <= high <= 1:
            raise ValueError(f"{name}: `{argument}` must be two growing numbers from 0 to 1, found ({low}, {high})")
    if min(width, height) < 1:
        raise ValueError(f"{name}: `width` and `height` must be at least 1, found {width} and {height}")


def random_crop(
    data: ArrayLike,
    xrange: Sequence[float] = (0, 1),
    yrange: Sequence[float] = (0, 1),
    width: int | None = None,
    height: int | None = None,
    interp: int = _BILINEAR,
) -> ndarray:
    """A rectangle at a random place; the same of all images of a batch.

    Parameters
    ----------
    data : array_like, shape (h, w, c) or (n, h, w, c)
        An axis that is shorter than the rectangle is resized to its length first.
    xrange, yrange : (float, float)
        Where the rectangle may begin: 0 is at the first, 1 at the last place where it fits.
    width, height : int
        Columns and rows; required.
    interp : int
        See `resize`.

    Returns
    -------
    ndarray, shape (height, width, c) or (n, height, width, c)

    Raises
    ------
    TypeError
        Without width or height.
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> npx.image.random_crop(np.ones((4, 6, 3)), width=3, height=2).shape
    (2, 3, 3)
    """
    x = image_of("image.random_crop", data)
    if width is None or height is None:
        raise TypeError("image.random_crop: `width` and `height` are required")
    _check_random("image.random_crop", {"xrange": xrange, "yrange": yrange}, width, height, interp)
    rows, columns = x.shape[-3:-1]
    if rows < height or columns < width:
        x = resize(x, (max(columns, width), max(rows, height)), interp=interp)
    for axis, part, (low, high) in ((x.ndim - 3, height, yrange), (x.ndim - 2, width, xrange)):
        free = x.shape[axis] - part
        start = _np["minimum"](_np["floor"](draw(low, high, x) * (free + 1)), free).astype("int64")
        x = _np["take"](x, start + _np["arange"](part, dtype="int64", device=x.device), axis)
    return x


def random_resized_crop(
    data: ArrayLike,
    xrange: Sequence[float] = (0, 1),
    yrange: Sequence[float] = (0, 1),
    width: int | None = None,
    height: int | None = None,
    interp: int = _BILINEAR,
    *,
    area: Sequence[float] = (0.08, 1.0),
    ratio: Sequence[float] = (3 / 4, 4 / 3),
) -> ndarray:
    """A rectangle of random size and shape at a random place, resized; the same of all images of a batch.

    Parameters
    ----------
    data : array_like, shape (h, w, c) or (n, h, w, c)
    xrange, yrange : (float, float)
        Where the rectangle may begin: 0 is at the first, 1 at the last place where it fits.
    width, height : int
        Columns and rows of the result; required.
    interp : int
        See `resize`; 3 is bilinear here, since the size of the rectangle is not known beforehand.
    area : (float, float)
        Range of the rectangle's share of the image.
    ratio : (float, float)
        Range of width by height; its logarithm is uniform.

    Returns
    -------
    ndarray, shape (height, width, c) or (n, height, width, c)

    Raises
    ------
    TypeError
        Without width or height.
    ValueError
        If an argument is out of range.

    Notes
    -----
    A side that is longer than the image is cut to its length.

    Examples
    --------
    >>> npx.image.random_resized_crop(np.ones((4, 6, 3)), width=3, height=2).shape
    (2, 3, 3)
    """
    name = "image.random_resized_crop"
    x = image_of(name, data)
    if width is None or height is None:
        raise TypeError(f"{name}: `width` and `height` are required")
    _check_random(name, {"xrange": xrange, "yrange": yrange, "area": area}, width, height, interp)
    if not 0 < ratio[0] <= ratio[1] or not area[0] > 0:
        raise ValueError(f"{name}: `ratio` and `area` must be growing positive numbers, found {ratio} and {area}")
    rows, columns = x.shape[-3:-1]
    share = draw(area[0], area[1], x) * (rows * columns)
    shape = _np["exp"](draw(math.log(ratio[0]), math.log(ratio[1]), x))
    w = _np["clip"](_np["rint"](_np["sqrt"](share * shape)), 1, columns)
    h = _np["clip"](_np["rint"](_np["sqrt"](share / shape)), 1, rows)
    left = _np["minimum"](_np["floor"](draw(xrange[0], xrange[1], x) * (columns - w + 1)), columns - w)
    top = _np["minimum"](_np["floor"](draw(yrange[0], yrange[1], x) * (rows - h + 1)), rows - h)
    # A pixel of the result may cover no pixel centre, so that it has nothing to average.
    return _resample(x, (left, top, w, h), height, width, _BILINEAR if interp == _AREA else interp)
