"""Regions of images, correlation of neighbourhoods, and resizing."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray
from mxnet.numpy_extension._padding import pad

__all__ = ["bilinear_resize", "correlation", "roi_pooling"]

_np = _core.namespaces["numpy"]
_op = _core.namespaces["op"]
_MODES = ("size", "odd_scale", "like", "to_even_down", "to_even_up", "to_odd_down", "to_odd_up")


def roi_pooling(data: ArrayLike, rois: ArrayLike, pooled_size: int | Sequence[int], spatial_scale: float) -> ndarray:
    """Largest elements of regions of images, cut into bins.

    Parameters
    ----------
    data : array_like, shape (n, c, h, w)
    rois : array_like, shape (r, 5)
        Which image, left, top, right and bottom, both of the latter included.
    pooled_size : tuple of 2 int
        Number of bins down and to the right.
    spatial_scale : float
        What the edges of regions are multiplied by to be pixels of `data`; they are rounded then.

    Returns
    -------
    ndarray, shape (r, c, bins down, bins to the right)
        0 for bins without pixels.

    Raises
    ------
    ValueError
        If shapes do not fit.
    IndexError
        If there is no such image; raised when the result is read.

    Notes
    -----
    The gradient goes to the largest elements; regions have none. Source: R. Girshick, "Fast R-CNN", 2015, section 2.1.

    Examples
    --------
    >>> image = np.arange(48.0).reshape(1, 1, 8, 6)
    >>> npx.roi_pooling(image, np.array([[0, 0, 0, 4, 4]]), (2, 2), 1.0)
    array([[[[14., 16.],
             [26., 28.]]]])
    """
    images, regions = asarray(data), asarray(rois).detach()
    positions = _op["roi_largest"](images.detach(), regions, pooled_size, spatial_scale)
    # One row for each plane of the regions' images, from which the maxima are gathered.
    batch, channels, height, width = images.shape
    planes = (_np["maximum"](regions[:, :1], 0) * channels).astype("int64") + _np["arange"](
        channels, device=images.device
    )
    at = planes.reshape(*planes.shape, 1, 1) * (height * width) + _np["maximum"](positions, 0)
    flat = images.reshape(batch * channels * height * width)
    if flat.size == 0:
        empty: ndarray = _np["zeros"](positions.shape, dtype=images.dtype, device=images.device)
        return empty
    result: ndarray = _np["where"](positions < 0, 0, _np["take"](flat, at, mode="clip"))
    return result


def correlation(
    data1: ArrayLike,
    data2: ArrayLike,
    kernel_size: int = 1,
    max_displacement: int = 1,
    stride1: int = 1,
    stride2: int = 1,
    pad_size: int = 0,
    is_multiply: bool = True,
) -> ndarray:
    """How well patches of one set of images fit patches of another that are moved.

    Parameters
    ----------
    data1, data2 : array_like, shape (n, c, h, w)
    kernel_size : int, odd
        Height and width of a patch.
    max_displacement : int
        How far patches are moved, in all directions.
    stride1 : int
        Distance of the patches in `data1`.
    stride2 : int
        Distance of the moves.
    pad_size : int
        Zeros added on all sides.
    is_multiply : bool
        Whether products are summed; otherwise absolute values of differences.

    Returns
    -------
    ndarray, shape (n, moves, out_h, out_w)
        Means over the patch and the channels; moves go from up to down, each from left to right.

    Raises
    ------
    ValueError
        If shapes or sizes do not fit.

    Notes
    -----
    Source: A. Dosovitskiy et al., "FlowNet", 2015, section 3.

    Examples
    --------
    >>> x = np.arange(9.0).reshape(1, 1, 3, 3)
    >>> npx.correlation(x, x)[0, :, 0, 0]  # the middle, 4, times its neighbours
    array([ 0.,  4.,  8., 12., 16., 20., 24., 28., 32.])
    """
    name = "correlation"
    a, b = asarray(data1), asarray(data2)
    if a.ndim != 4 or a.shape != b.shape:
        raise ValueError(f"{name}: `data1` and `data2` must be (n, c, h, w), found {a.shape} and {b.shape}")
    if kernel_size < 1 or kernel_size % 2 == 0:
        raise ValueError(f"{name}: `kernel_size` must be odd, found {kernel_size}")
    if max_displacement < 0 or pad_size < 0 or stride1 < 1 or stride2 < 1:
        raise ValueError(
            f"{name}: `max_displacement` and `pad_size` must not be negative and strides must be positive, found "
            f"{max_displacement}, {pad_size}, {stride1} and {stride2}"
        )
    border = max_displacement + kernel_size // 2
    inner = [size + 2 * pad_size - 2 * border for size in a.shape[2:]]
    if min(inner) < 1:
        raise ValueError(
            f"{name}: images of {a.shape[2]} x {a.shape[3]} are too small for a border of {border} and {pad_size} "
            "padded pixels"
        )
    widths = (0, 0, 0, 0, pad_size, pad_size, pad_size, pad_size)
    a, b = pad(a, "constant", widths), pad(b, "constant", widths)
    # Patches begin at `max_displacement`; all their rows and columns, each once.
    rows, columns = (size + kernel_size - 1 for size in inner)
    first = a[:, :, max_displacement : max_displacement + rows, max_displacement : max_displacement + columns]
    reach = max_displacement // stride2
    moves = [i * stride2 for i in range(-reach, reach + 1)]
    found = []
    for down in moves:
        for right in moves:
            top, left = max_displacement + down, max_displacement + right
            second = b[:, :, top : top + rows, left : left + columns]
            found.append((first * second if is_multiply else _np["abs"](first - second)).sum(axis=1))
    sums = _np["stack"](found, axis=1)
    for axis, size in ((2, inner[0]), (3, inner[1])):
        shifted = [
            sums[:, :, i : i + size : stride1] if axis == 2 else sums[..., i : i + size : stride1]
            for i in range(kernel_size)
        ]
        sums = sum(shifted[1:], start=shifted[0])
    means: ndarray = sums / (kernel_size * kernel_size * a.shape[1])
    return means


def bilinear_resize(
    data: ArrayLike,
    like: ArrayLike | None = None,
    height: int = 1,
    width: int = 1,
    scale_height: float | None = None,
    scale_width: float | None = None,
    mode: str = "size",
    align_corners: bool = True,
) -> ndarray:
    """Images of another size, by bilinear interpolation.

    Parameters
    ----------
    data : array_like, shape (n, c, h, w)
    like : array_like, shape (n, c, height, width), optional
        Has the size of the result with the mode ``"like"``.
    height, width : int
        Size of the result with the mode ``"size"``, unless scales are given.
    scale_height, scale_width : float, optional
        Size of the result in sizes of `data`, rounded down, with the modes ``"size"`` and ``"odd_scale"``.
    mode : {"size", "odd_scale", "like", "to_even_down", "to_even_up", "to_odd_down", "to_odd_up"}
        How the size of the result is found. ``"odd_scale"``: an odd size n becomes ``(n - 1) * scale + 1``. The others
        take the nearest even or odd size below or above, which is the size itself if it is such.
    align_corners : bool
        Whether the middles of the outermost pixels stay where they are; otherwise their edges do.

    Returns
    -------
    ndarray, shape (n, c, height, width)

    Raises
    ------
    ValueError
        If `data` has not four axes, `mode` is unknown, or what it needs is missing.

    Examples
    --------
    >>> npx.bilinear_resize(np.array([[[[0.0, 1.0, 2.0]]]]), height=1, width=5)
    array([[[[0. , 0.5, 1. , 1.5, 2. ]]]])
    """
    name = "bilinear_resize"
    x = asarray(data)
    if "float" not in str(x.dtype):
        x = x.astype("float32")
    if x.ndim != 4 or 0 in x.shape[2:]:
        raise ValueError(f"{name}: `data` must be (n, c, h, w) with pixels, found {x.shape}")
    if mode not in _MODES:
        raise ValueError(f"{name}: `mode` must be one of {', '.join(_MODES)}, found {mode!r}")
    if mode == "like":
        if like is None or asarray(like).ndim != 4:
            raise ValueError(f"{name}: the mode 'like' needs `like` of four axes")
        sizes = asarray(like).shape[2:]
    else:
        given = ((height, scale_height), (width, scale_width))
        sizes = tuple(_resized(name, mode, old, *new) for old, new in zip(x.shape[2:], given, strict=True))
    if min(sizes) < 1:
        raise ValueError(f"{name}: the result must have pixels, found {sizes[0]} x {sizes[1]}")
    for axis, size in ((2, sizes[0]), (3, sizes[1])):
        x = _interpolated(x, axis, size, align_corners)
    return x


def _resized(name: str, mode: str, old: int, size: int, scale: float | None) -> int:
    if mode == "size":
        return int(size) if scale is None else int(old * scale)
    if mode == "odd_scale":
        if scale is None:
            raise ValueError(f"{name}: the mode 'odd_scale' needs `scale_height` and `scale_width`")
        return int((old - 1) * scale) + 1 if old % 2 else int(old * scale)
    wanted = 0 if "even" in mode else 1
    step = 1 if mode.endswith("up") else -1
    return old if old % 2 == wanted else old + step


def _interpolated(x: ndarray, axis: int, size: int, align_corners: bool) -> ndarray:
    """Values interpolated at `size` positions along an axis."""
    old = x.shape[axis]
    if size == old:
        return x
    dtype = "float64" if x.dtype == "float64" else "float32"
    steps = _np["arange"](size, dtype=dtype, device=x.device)
    if align_corners:
        coordinates = steps * ((old - 1) / max(size - 1, 1))
    else:
        coordinates = _np["clip"]((steps + 0.5) * (old / size) - 0.5, 0, old - 1)
    low = _np["floor"](coordinates)
    part = (coordinates - low).astype(x.dtype).reshape(-1, *[1] * (3 - axis))
    near = low.astype("int64")
    far = _np["minimum"](near + 1, old - 1)
    result: ndarray = _np["take"](x, near, axis=axis) * (1 - part) + _np["take"](x, far, axis=axis) * part
    return result
