"""Interpolation of images between pixels: sampling grids and deformable convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray

__all__ = [
    "bilinear_sampler",
    "deformable_convolution",
    "grid_generator",
    "modulated_deformable_convolution",
    "sampled",
    "spatial_transformer",
]

_np = _core.namespaces["numpy"]
_op = _core.namespaces["op"]
Sizes = int | Sequence[int]


def sampled(data: ndarray, x: ndarray, y: ndarray) -> ndarray:
    """Values of images (n, c, h, w) at positions (n, m) in pixels, 0 outside of the image. Result (n, c, m).

    At whole pixels the gradient with respect to a position is the slope to the right or down. Positions of 16 bits are
    computed with in float32, and so is the result.
    """
    batch, channels, height, width = data.shape
    flat = data.reshape(batch, channels, height * width)
    x, y = _at_least_float32(x), _at_least_float32(y)
    left, top = _np["floor"](x), _np["floor"](y)
    from_left, from_top = x - left, y - top
    result = None
    for column, of_column in ((left, 1 - from_left), (left + 1, from_left)):
        for row, of_row in ((top, 1 - from_top), (top + 1, from_top)):
            is_inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
            # Integers: a product of floats would be rounded in large images.
            row_index, column_index = (_np["where"](is_inside, at, 0).astype("int64") for at in (row, column))
            positions = (row_index * width + column_index).reshape(batch, 1, -1)
            spread = _np["broadcast_to"](positions, (batch, channels, positions.shape[2]))
            # Both are selected: outside, the value of the pixel may be NaN, and the weight of an infinite position is.
            found = _np["where"](is_inside.reshape(batch, 1, -1), _op["gather_along"](flat, spread, 2), 0)
            weight = _np["where"](is_inside, of_column * of_row, 0).reshape(batch, 1, -1)
            part = found * weight
            result = part if result is None else result + part
    return result  # type: ignore[return-value]  # four parts were added up


def _at_least_float32(positions: ndarray) -> ndarray:
    return positions if positions.dtype.itemsize > 2 else positions.astype("float32")


def bilinear_sampler(data: ArrayLike, grid: ArrayLike, cudnn_off: bool = False) -> ndarray:
    """Values of images at the places of a grid, by bilinear interpolation.

    Parameters
    ----------
    data : array_like, shape (n, c, h, w)
    grid : array_like, shape (n, 2, t, u)
        x and y; -1 is the middle of the first pixel, 1 that of the last.
    cudnn_off : bool
        Accepted for compatibility with MXNet 2; has no effect.

    Returns
    -------
    ndarray, shape (n, c, t, u)
        Pixels outside the image count as 0.

    Raises
    ------
    ValueError
        If a shape does not fit.

    Notes
    -----
    Source: M. Jaderberg et al., "Spatial Transformer Networks", 2015, equation 5.

    Examples
    --------
    >>> image = np.array([[[[0.0, 1.0], [2.0, 3.0]]]])
    >>> npx.bilinear_sampler(image, np.zeros((1, 2, 1, 1))).item()
    1.5
    """
    del cudnn_off
    images, points = asarray(data), asarray(grid)
    if images.ndim != 4 or points.ndim != 4 or points.shape[:2] != (images.shape[0], 2):
        raise ValueError(
            f"bilinear_sampler: `data` must be (n, c, h, w) and `grid` (n, 2, t, u), found {images.shape} and "
            f"{points.shape}"
        )
    batch, channels, height, width = images.shape
    wide = _at_least_float32(points)
    x = (wide[:, 0].reshape(batch, -1) + 1) * ((width - 1) / 2)
    y = (wide[:, 1].reshape(batch, -1) + 1) * ((height - 1) / 2)
    found = sampled(images, x, y).reshape(batch, channels, *points.shape[2:])
    return found.astype(_core.promote_types(images.dtype, points.dtype))


def _middles(height: int, width: int, like: ndarray) -> ndarray:
    """(3, h * w): x and y of all pixels, from -1 to 1, and ones."""
    x, y = (_np["linspace"](-1, 1, size, dtype=like.dtype, device=like.device) for size in (width, height))
    rows = [_np["broadcast_to"](x, (height, width)), _np["broadcast_to"](y.reshape(-1, 1), (height, width))]
    middles: ndarray = _np["stack"]([*rows, _np["ones_like"](rows[0])]).reshape(3, height * width)
    return middles


def grid_generator(data: ArrayLike, transform_type: str, target_shape: Sequence[int] = (0, 0)) -> ndarray:
    """The places that `bilinear_sampler` takes.

    Parameters
    ----------
    data : array_like
        For ``"affine"`` (n, 6), the two rows of the map from places of the result to places of the image; for
        ``"warp"`` (n, 2, h, w), how many pixels each place is moved to the right and down.
    transform_type : {"affine", "warp"}
    target_shape : tuple of 2 int
        Height and width of the result of an affine map.

    Returns
    -------
    ndarray, shape (n, 2, h, w)

    Raises
    ------
    ValueError
        If a shape does not fit or `transform_type` is unknown.

    Examples
    --------
    >>> npx.grid_generator(np.array([[1.0, 0, 0, 0, 1.0, 0]]), "affine", (1, 3))[0, 0]
    array([[-1.,  0.,  1.]])
    """
    x = asarray(data)
    if transform_type == "affine":
        height, width = target_shape
        if x.ndim != 2 or x.shape[1] != 6 or height < 1 or width < 1:
            raise ValueError(
                f"grid_generator: `data` must be (n, 6) and `target_shape` positive, found {x.shape} and "
                f"{tuple(target_shape)}"
            )
        middles = _middles(height, width, x)
        points: ndarray = _np["matmul"](x.reshape(-1, 2, 3), middles)
        return points.reshape(-1, 2, height, width)
    if transform_type == "warp":
        if x.ndim != 4 or x.shape[1] != 2:
            raise ValueError(f"grid_generator: `data` must be (n, 2, h, w), found {x.shape}")
        height, width = x.shape[2:]
        middles = _middles(height, width, x)[:2].reshape(1, 2, height, width)
        # Pixels as fractions of half the image.
        steps = [x[:, :1] * (2 / max(width - 1, 1)), x[:, 1:] * (2 / max(height - 1, 1))]
        moved: ndarray = middles + _np["concatenate"](steps, axis=1)
        return moved
    raise ValueError(f"grid_generator: `transform_type` must be 'affine' or 'warp', found {transform_type!r}")


def spatial_transformer(
    data: ArrayLike,
    loc: ArrayLike,
    target_shape: Sequence[int] = (0, 0),
    transform_type: str = "affine",
    sampler_type: str = "bilinear",
    cudnn_off: bool = False,
) -> ndarray:
    """Images seen through affine maps.

    Parameters
    ----------
    data : array_like, shape (n, c, h, w)
    loc : array_like, shape (n, 6)
        See `grid_generator`.
    target_shape : tuple of 2 int
        Height and width of the result.
    transform_type : {"affine"}
    sampler_type : {"bilinear"}
    cudnn_off : bool
        See `bilinear_sampler`.

    Returns
    -------
    ndarray, shape (n, c, *target_shape)

    Raises
    ------
    ValueError
        If a shape does not fit or a type is unknown.

    Examples
    --------
    >>> image = np.arange(4.0).reshape(1, 1, 2, 2)
    >>> npx.spatial_transformer(image, np.array([[-1.0, 0, 0, 0, 1, 0]]), (2, 2))[0, 0]  # mirrored
    array([[1., 0.],
           [3., 2.]])
    """
    if transform_type != "affine" or sampler_type != "bilinear":
        raise ValueError(
            "spatial_transformer: `transform_type` must be 'affine' and `sampler_type` 'bilinear', found "
            f"{transform_type!r} and {sampler_type!r}"
        )
    return bilinear_sampler(data, grid_generator(loc, "affine", target_shape), cudnn_off)


def _pair(name: str, argument: str, value: Sizes, default: int) -> tuple[int, int]:
    found = (value, value) if isinstance(value, int) else tuple(value) or (default, default)
    if len(found) != 2:
        raise ValueError(f"{name}: `{argument}` must be two numbers, found {value}")
    return found[0], found[1]


def _moved_convolution(
    name: str,
    data: ndarray,
    offset: ndarray,
    mask: ndarray | None,
    weight: ndarray,
    bias: ndarray | None,
    sizes: tuple[tuple[int, int], tuple[int, int], tuple[int, int], tuple[int, int]],
    num_filter: int,
    num_group: int,
    num_deformable_group: int,
) -> ndarray:
    """A convolution whose taps are displaced by `offset` and multiplied by `mask`.

    Without a mask the rows and columns of pixels at the lower and right edge extend by one pixel, and taps above or to
    the left of the first pixel are 0. With one, values fade to 0 within one pixel around the image.
    """
    (kh, kw), (sh, sw), (dh, dw), (ph, pw) = sizes
    batch, channels, height, width = data.shape
    out_h = (height + 2 * ph - dh * (kh - 1) - 1) // sh + 1
    out_w = (width + 2 * pw - dw * (kw - 1) - 1) // sw + 1
    groups, taps = num_deformable_group, kh * kw
    if channels % groups or channels % num_group or num_filter % num_group:
        raise ValueError(
            f"{name}: {channels} channels and {num_filter} filters must be multiples of `num_group` ({num_group}), and "
            f"channels of `num_deformable_group` ({groups})"
        )
    for argument, array, wanted in (
        ("offset", offset, (batch, groups * taps * 2, out_h, out_w)),
        ("mask", mask, (batch, groups * taps, out_h, out_w)),
        ("weight", weight, (num_filter, channels // num_group, kh, kw)),
        ("bias", bias, (num_filter,)),
    ):
        if array is not None and array.shape != wanted:
            raise ValueError(f"{name}: `{argument}` must have shape {wanted}, found {array.shape}")
    arange = _np["arange"]
    device = data.device
    rows = arange(out_h, device=device).reshape(1, -1, 1) * sh - ph
    columns = arange(out_w, device=device).reshape(1, 1, -1) * sw - pw
    tap_rows = (arange(taps, device=device) // kw * dh).reshape(-1, 1, 1)
    tap_columns = (arange(taps, device=device) % kw * dw).reshape(-1, 1, 1)
    # (groups, taps, y and x, out_h, out_w): the vertical, then the horizontal displacement of each tap.
    away = _at_least_float32(offset).reshape(batch, groups, taps, 2, out_h, out_w)
    y = (away[:, :, :, 0] + (rows + tap_rows)).reshape(batch * groups, -1)
    x = (away[:, :, :, 1] + (columns + tap_columns)).reshape(batch * groups, -1)
    images = data.reshape(batch * groups, channels // groups, height, width)
    if mask is None:
        is_inside = ((y >= 0) & (y < height) & (x >= 0) & (x < width)).reshape(batch * groups, 1, -1)
        y, x = (_np["where"](at < size - 1, at, size - 1) for at, size in ((y, height), (x, width)))
        found = _np["where"](is_inside, sampled(images, x, y), 0)
    else:
        found = sampled(images, x, y) * mask.reshape(batch * groups, 1, -1)
    found = found.astype(_core.promote_types(data.dtype, offset.dtype))
    # (n, groups of the convolution, channels * taps, positions)
    found = found.reshape(batch, num_group, channels // num_group * taps, out_h * out_w)
    kernel = weight.reshape(1, num_group, num_filter // num_group, -1)
    result: ndarray = _np["matmul"](kernel, found).reshape(batch, num_filter, out_h, out_w)
    return result if bias is None else result + bias.reshape(1, -1, 1, 1)


def deformable_convolution(
    data: ArrayLike,
    offset: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    kernel: Sizes = (),
    stride: Sizes = (),
    dilate: Sizes = (),
    pad: Sizes = (),
    num_filter: int = 1,
    num_group: int = 1,
    num_deformable_group: int = 1,
    workspace: int = 1024,
    no_bias: bool = False,
    layout: str | None = None,
) -> ndarray:
    """A convolution of images whose taps are moved by given distances.

    Parameters
    ----------
    data : array_like, shape (n, c, h, w)
    offset : array_like, shape (n, num_deformable_group * taps * 2, out_h, out_w)
        For each tap the distance down and the distance to the right, in pixels.
    weight : array_like, shape (num_filter, c / num_group, kernel height, kernel width)
    bias : array_like, shape (num_filter,), optional
    kernel : int or tuple of 2 int
    stride, dilate : int or tuple of 2 int
        1 by default.
    pad : int or tuple of 2 int
        0 by default.
    num_filter : int
    num_group : int
        Number of groups of channels that are convolved separately.
    num_deformable_group : int
        Groups of channels with offsets of their own.
    workspace : int
        Accepted for compatibility with MXNet 2; has no effect.
    no_bias : bool
        Whether there is no bias.
    layout : {None, "NCHW"}

    Returns
    -------
    ndarray, shape (n, num_filter, out_h, out_w)

    Raises
    ------
    ValueError
        If shapes do not fit, or `layout` is another one.

    Notes
    -----
    Values between pixels are bilinear. Taps above or to the left of the middle of the first pixel are 0, as are those
    one pixel or more below or to the right of the last; less than that, they have the last pixel's value. MXNet 2 has
    the same edges; in `modulated_deformable_convolution` values fade to 0 within one pixel around the image.
    Source: J. Dai et al., "Deformable Convolutional Networks", 2017.

    Examples
    --------
    >>> image, offset = np.arange(4.0).reshape(1, 1, 2, 2), np.full((1, 2, 2, 2), 0.5)
    >>> npx.deformable_convolution(image, offset, np.ones((1, 1, 1, 1)), kernel=1, no_bias=True)[0, 0, 0, 0].item()
    1.5
    """
    name = "deformable_convolution"
    sizes = _sizes(name, kernel, stride, dilate, pad, layout)
    given = None if no_bias or bias is None else asarray(bias)
    return _moved_convolution(
        name, asarray(data), asarray(offset), None, asarray(weight), given, sizes, num_filter, num_group,
        num_deformable_group,
    )  # fmt: skip


def modulated_deformable_convolution(
    data: ArrayLike,
    offset: ArrayLike,
    mask: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    kernel: Sizes = (),
    stride: Sizes = (),
    dilate: Sizes = (),
    pad: Sizes = (),
    num_filter: int = 1,
    num_group: int = 1,
    num_deformable_group: int = 1,
    workspace: int = 1024,
    no_bias: bool = False,
    im2col_step: int = 64,
    layout: str | None = None,
) -> ndarray:
    """A convolution of images whose taps are moved by given distances and multiplied by given factors.

    Parameters
    ----------
    data, offset : array_like
        See `deformable_convolution`.
    mask : array_like, shape (n, num_deformable_group * taps, out_h, out_w)
        A factor for each tap.
    weight, bias, kernel, stride, dilate, pad, num_filter, num_group, num_deformable_group, workspace, no_bias, layout
        See `deformable_convolution`.
    im2col_step : int
        Accepted for compatibility with MXNet 2; has no effect.

    Returns
    -------
    ndarray, shape (n, num_filter, out_h, out_w)

    Raises
    ------
    ValueError
        If shapes do not fit, or `layout` is another one.

    Notes
    -----
    Source: X. Zhu et al., "Deformable ConvNets v2", 2019.

    Examples
    --------
    >>> image, offset = np.arange(4.0).reshape(1, 1, 2, 2), np.zeros((1, 2, 2, 2))
    >>> mask = np.full((1, 1, 2, 2), 0.5)
    >>> npx.modulated_deformable_convolution(image, offset, mask, np.ones((1, 1, 1, 1)), kernel=1, no_bias=True)[0, 0]
    array([[0. , 0.5],
           [1. , 1.5]])
    """
    name = "modulated_deformable_convolution"
    sizes = _sizes(name, kernel, stride, dilate, pad, layout)
    given = None if no_bias or bias is None else asarray(bias)
    return _moved_convolution(
        name, asarray(data), asarray(offset), asarray(mask), asarray(weight), given, sizes, num_filter, num_group,
        num_deformable_group,
    )  # fmt: skip


def _sizes(
    name: str, kernel: Sizes, stride: Sizes, dilate: Sizes, pad: Sizes, layout: str | None
) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int], tuple[int, int]]:
    if layout not in (None, "NCHW"):
        raise ValueError(f"{name}: `layout` must be 'NCHW', found {layout!r}")
    size = _pair(name, "kernel", kernel, 0)
    if min(size) < 1:
        raise ValueError(f"{name}: `kernel` must be given, found {kernel}")
    return size, _pair(name, "stride", stride, 1), _pair(name, "dilate", dilate, 1), _pair(name, "pad", pad, 0)
