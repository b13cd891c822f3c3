"""Operators on 8-bit integers that carry the range of the real numbers they stand for.

An 8-bit array with the range `low..high` stands for the real numbers ``x * size``, where ``size`` is the largest of
``|low|`` and ``|high|`` divided by 127 for int8 and by 255 for uint8: there is no zero point. An int32 array has
2147483647 levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray
from mxnet.error import UnsupportedError

__all__ = [
    "contrib_quantize",
    "contrib_quantize_v2",
    "quantized_act",
    "quantized_conv",
    "quantized_elemwise_add",
    "quantized_elemwise_mul",
    "quantized_embedding",
    "quantized_flatten",
    "quantized_fully_connected",
    "quantized_pooling",
    "quantized_reshape",
    "quantized_transpose",
    "requantize",
]

_np = _core.namespaces["numpy"]
_npx = _core.namespaces["npx"]
_op = _core.namespaces["op"]

_LEVELS = {"int8": 127.0, "uint8": 255.0, "int32": 2147483647.0}


def _largest(low: ArrayLike, high: ArrayLike) -> ndarray:
    """The largest absolute value of a range, float32."""
    bounds = (_np["absolute"](asarray(x).astype("float32")) for x in (low, high))
    most: ndarray = _np["maximum"](*bounds)
    return most


def _size(low: ArrayLike, high: ArrayLike, dtype: Any, operator: str) -> ndarray:
    """The real number for which 1 stands."""
    name = str(dtype)
    if name not in _LEVELS:
        raise TypeError(f"{operator}: no ranges for dtype {name}; it must be int8, uint8 or int32")
    return _largest(low, high) / _LEVELS[name]


def _one(x: float) -> ndarray:
    return asarray([x]).astype("float32")


def _rounded(x: ndarray, most: ndarray, dtype: str) -> ndarray:
    """Floats as integers of 8 bits, of which the last level stands for `most`."""
    factor = _np["where"](most > 0, _LEVELS[dtype] / most, 0.0)
    integers: ndarray = _op[f"quantize_{dtype}"](x, factor)
    return integers


def _checked_type(out_type: str, allowed: Sequence[str], operator: str) -> None:
    if out_type not in allowed:
        raise ValueError(f"{operator}: `out_type` must be {' or '.join(map(repr, allowed))}, found {out_type!r}")


def _calibrated(low: float | None, high: float | None, operator: str) -> bool:
    if (low is None) != (high is None):
        raise ValueError(f"{operator}: one of `min_calib_range` ({low}) and `max_calib_range` ({high}) is missing")
    return low is not None


def _chosen(out_type: str, low: float | None) -> str:
    """The type that 'auto' stands for."""
    if out_type != "auto":
        return out_type
    return "uint8" if low is not None and low >= 0 else "int8"


def contrib_quantize(
    data: ArrayLike, min_range: ArrayLike, max_range: ArrayLike, out_type: str = "uint8"
) -> tuple[ndarray, ndarray, ndarray]:
    """Real numbers as 8-bit integers, for a given range.

    Parameters
    ----------
    data : array_like, real
    min_range, max_range : array_like, shape (1,)
    out_type : {'uint8', 'int8'}
        Negative numbers are 0 in uint8.

    Returns
    -------
    tuple of ndarray
        Integers of the shape of `data`, rounded to the nearest, ties to even, and saturated; the range that they stand
        for, which is symmetric for int8.

    Raises
    ------
    ValueError
        If `out_type` is another one.

    Examples
    --------
    >>> npx.contrib_quantize(np.array([-1.0, 0.3, 2.0]), np.array([-1.0]), np.array([2.0]), out_type="int8")[0]
    array([-64,  19, 127], dtype=int8)
    """
    _checked_type(out_type, ("uint8", "int8"), "contrib_quantize")
    most = _largest(min_range, max_range)
    result = _rounded(asarray(data), most, out_type)
    if out_type == "int8":
        return result, -most, most
    return result, asarray(min_range).astype("float32"), asarray(max_range).astype("float32")


def contrib_quantize_v2(
    data: ArrayLike,
    out_type: str = "int8",
    min_calib_range: float | None = None,
    max_calib_range: float | None = None,
) -> tuple[ndarray, ndarray, ndarray]:
    """Real numbers as 8-bit integers, for a calibrated range or that of the data.

    Parameters
    ----------
    data : array_like, real
    out_type : {'int8', 'uint8', 'auto'}
        'auto' is uint8 if `min_calib_range` is not negative, otherwise int8.
    min_calib_range, max_calib_range : float, optional
        By default the smallest and the largest element.

    Returns
    -------
    tuple of ndarray
        Integers, and the range that they stand for, of shape (1,).

    Raises
    ------
    ValueError
        If `out_type` is another one, or if only one bound is given.

    Examples
    --------
    >>> integers, low, high = npx.contrib_quantize_v2(np.array([-1.0, 0.3, 2.0]))
    >>> integers, low, high
    (array([-64,  19, 127], dtype=int8), array([-2.]), array([2.]))
    """
    _checked_type(out_type, ("int8", "uint8", "auto"), "contrib_quantize_v2")
    x = asarray(data)
    if min_calib_range is not None and max_calib_range is not None:
        low, high = _one(min_calib_range), _one(max_calib_range)
    else:
        _calibrated(min_calib_range, max_calib_range, "contrib_quantize_v2")
        low, high = (_np[name](x).reshape(1).astype("float32") for name in ("min", "max"))
    return contrib_quantize(x, low, high, _chosen(out_type, min_calib_range))


def requantize(
    data: ArrayLike,
    min_range: ArrayLike,
    max_range: ArrayLike,
    out_type: str = "int8",
    min_calib_range: float | None = None,
    max_calib_range: float | None = None,
) -> tuple[ndarray, ndarray, ndarray]:
    """Integers of 32 bits as integers of 8 bits.

    Parameters
    ----------
    data : array_like, int32
    min_range, max_range : array_like, shape (1,)
        What `data` stands for.
    out_type : {'int8', 'uint8', 'auto'}
        'auto' is uint8 if `min_calib_range` is not negative, otherwise int8.
    min_calib_range, max_calib_range : float, optional
        The range of the result; by default that of the data.

    Returns
    -------
    tuple of ndarray
        Integers, and the range that they stand for.

    Raises
    ------
    ValueError
        If `out_type` is another one, or if only one bound is given.
    TypeError
        If `data` is not int32.

    Examples
    --------
    >>> sums = np.array([1000, -2000], dtype="int32")
    >>> bound = np.array([1000.0])
    >>> npx.requantize(sums, -bound, bound, min_calib_range=-0.001, max_calib_range=0.001)[0]
    array([  59, -118], dtype=int8)
    """
    _checked_type(out_type, ("int8", "uint8", "auto"), "requantize")
    x = asarray(data)
    if str(x.dtype) != "int32":
        raise TypeError(f"requantize: `data` is {x.dtype}, must be int32")
    real = x.astype("float32") * _size(min_range, max_range, x.dtype, "requantize")
    return contrib_quantize_v2(real, out_type, min_calib_range, max_calib_range)


def _sums_range(size: ndarray) -> tuple[ndarray, ndarray]:
    """The range of int32 sums."""
    most = size * _LEVELS["int32"]
    return -most, most


def _with_bias(
    sums: ndarray,
    bias: ArrayLike | None,
    bounds: tuple[ArrayLike | None, ArrayLike | None],
    size: ndarray,
    no_bias: bool,
    axis: int,
    operator: str,
) -> ndarray:
    """The sums plus a bias of 8 bits, converted to their levels."""
    if no_bias != (bias is None):
        raise ValueError(f"{operator}: `no_bias` is {no_bias}, and {'no ' if bias is None else 'a '}`bias` is given")
    if bias is None:
        return sums
    low, high = bounds
    if low is None or high is None:
        raise ValueError(f"{operator}: `bias` needs `min_bias` and `max_bias`")
    x = asarray(bias)
    if x.shape != (sums.shape[axis],):
        raise ValueError(f"{operator}: `bias` has shape {x.shape}, needs ({sums.shape[axis]},)")
    levels: ndarray = _np["rint"](x.astype("float32") * (_size(low, high, x.dtype, operator) / size)).astype("int32")
    return sums + levels.reshape([-1 if a == axis % sums.ndim else 1 for a in range(sums.ndim)])


def quantized_conv(
    data: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None,
    min_data: ArrayLike,
    max_data: ArrayLike,
    min_weight: ArrayLike,
    max_weight: ArrayLike,
    min_bias: ArrayLike | None = None,
    max_bias: ArrayLike | None = None,
    kernel: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    dilate: int | Sequence[int] | None = None,
    pad: int | Sequence[int] | None = None,
    num_filter: int | None = None,
    num_group: int = 1,
    workspace: int = 1024,
    no_bias: bool = False,
    cudnn_tune: str | None = None,
    cudnn_off: bool = False,
    layout: str | None = None,
) -> tuple[ndarray, ndarray, ndarray]:
    """Convolution of 8-bit integers with exact 32-bit sums.

    Parameters
    ----------
    data : array_like, int8 or uint8, shape (n, c, [d, [h,]] w)
    weight : array_like, int8, shape (num_filter, c / num_group, kernel...)
    bias : array_like or None, int8, shape (num_filter,)
        Converted to the levels of the sums and rounded.
    min_data, max_data, min_weight, max_weight, min_bias, max_bias : array_like, shape (1,)
        What the integers stand for. The range of the weights may have an element for each filter.
    kernel, stride, dilate, pad, num_filter, num_group, layout
        As in `npx.convolution`.
    workspace, cudnn_tune, cudnn_off
        Accepted for compatibility with MXNet 2; have no effect.
    no_bias : bool
        Whether there is no bias.

    Returns
    -------
    tuple of ndarray
        The sums, int32, and the range that they stand for.

    Raises
    ------
    ValueError
        If sizes do not fit.
    TypeError
        If operands are not of 8 bits.

    Examples
    --------
    >>> data = np.array([[[[10, -20], [30, 40]]]], dtype="int8")
    >>> weight = np.array([[[[1, 2], [3, -4]]]], dtype="int8")
    >>> low, high = np.array([-1.0]), np.array([1.0])
    >>> npx.quantized_conv(data, weight, None, low, high, low, high, kernel=(2, 2), num_filter=1, no_bias=True)[0]
    array([[[[-100]]]], dtype=int32)
    """
    x, w = asarray(data), asarray(weight)
    where = "quantized_conv"
    _same_extents(kernel, w.shape[1:-1] if layout and layout.endswith("C") else w.shape[2:], where)
    if num_filter is not None and num_filter != w.shape[0]:
        raise ValueError(f"{where}: `num_filter` is {num_filter}, the first axis of `weight` has size {w.shape[0]}")
    size = _size(min_data, max_data, x.dtype, where) * _size(min_weight, max_weight, w.dtype, where)
    sums = _op["int8_convolution"](
        x, w, stride=stride, dilate=dilate, pad=pad, num_group=num_group, layout=layout, dtype="int32"
    )
    axis = -1 if layout and layout.endswith("C") else 1
    sums = _with_bias(sums, bias, (min_bias, max_bias), size, no_bias, axis, where)
    return sums, *_sums_range(size)


def _same_extents(kernel: int | Sequence[int] | None, found: tuple[int, ...], operator: str) -> None:
    if kernel is None:
        return
    wanted = (kernel,) * len(found) if isinstance(kernel, int) else tuple(kernel)
    if wanted != found:
        raise ValueError(f"{operator}: `kernel` is {wanted}, the weight has kernel {found}")


def quantized_fully_connected(
    data: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None,
    min_data: ArrayLike,
    max_data: ArrayLike,
    min_weight: ArrayLike,
    max_weight: ArrayLike,
    min_bias: ArrayLike | None = None,
    max_bias: ArrayLike | None = None,
    num_hidden: int | None = None,
    no_bias: bool = False,
    flatten: bool = True,
) -> tuple[ndarray, ndarray, ndarray]:
    """Affine map of 8-bit integers with exact 32-bit sums.

    Parameters
    ----------
    data : array_like, int8 or uint8, shape (n, ...) or (..., k)
    weight : array_like, int8, shape (num_hidden, k)
    bias : array_like or None, int8, shape (num_hidden,)
        Converted to the levels of the sums and rounded.
    min_data, max_data, min_weight, max_weight, min_bias, max_bias : array_like, shape (1,)
        What the integers stand for. The range of the weights may have an element for each output.
    num_hidden : int, optional
        Number of outputs, checked against `weight`.
    no_bias : bool
        Whether there is no bias.
    flatten : bool
        Whether all axes of `data` but the first count as one.

    Returns
    -------
    tuple of ndarray
        The sums, int32, and the range that they stand for.

    Raises
    ------
    ValueError
        If sizes do not fit.
    TypeError
        If operands are not of 8 bits.

    Examples
    --------
    >>> data, weight = np.array([[10, -20, 30]], dtype="int8"), np.array([[1, 2, 3], [4, 5, -6]], dtype="int8")
    >>> low, high = np.array([-1.0]), np.array([1.0])
    >>> npx.quantized_fully_connected(data, weight, None, low, high, low, high, num_hidden=2, no_bias=True)[0]
    array([[  60, -240]], dtype=int32)
    """
    x, w = asarray(data), asarray(weight)
    where = "quantized_fully_connected"
    if num_hidden is not None and num_hidden != w.shape[0]:
        raise ValueError(f"{where}: `num_hidden` is {num_hidden}, the first axis of `weight` has size {w.shape[0]}")
    size = _size(min_data, max_data, x.dtype, where) * _size(min_weight, max_weight, w.dtype, where)
    sums = _op["int8_fully_connected"](x, w, flatten=flatten, dtype="int32")
    sums = _with_bias(sums, bias, (min_bias, max_bias), size, no_bias, -1, where)
    return sums, *_sums_range(size)


def quantized_pooling(
    data: ArrayLike,
    min_data: ArrayLike,
    max_data: ArrayLike,
    kernel: int | Sequence[int] | None = None,
    pool_type: str = "max",
    global_pool: bool = False,
    cudnn_off: bool = False,
    pooling_convention: str = "valid",
    stride: int | Sequence[int] | None = None,
    pad: int | Sequence[int] | None = None,
    p_value: int | None = None,
    count_include_pad: bool | None = None,
    layout: str | None = None,
    output_size: int | Sequence[int] | None = None,
) -> tuple[ndarray, ndarray, ndarray]:
    """Pooling of 8-bit integers; means are rounded to the nearest integer, ties to even.

    Parameters
    ----------
    data : array_like, int8 or uint8, shape (n, c, [d, [h,]] w)
    min_data, max_data : array_like, shape (1,)
        What the integers stand for.
    kernel, global_pool, pooling_convention, stride, pad, count_include_pad, layout
        As in `npx.pooling`.
    pool_type : {'max', 'avg'}
    cudnn_off : bool
        Accepted for compatibility with MXNet 2; has no effect.
    p_value, output_size
        Must be None: they belong to other kinds of pooling.

    Returns
    -------
    tuple of ndarray
        Integers of the dtype of `data`, and the range that they stand for, which is that of the data.

    Raises
    ------
    ValueError
        If sizes do not fit or `pool_type` is another one.
    UnsupportedError
        If `p_value` or `output_size` is given.

    Examples
    --------
    >>> data = np.array([[[[10, -20], [30, 40]]]], dtype="int8")
    >>> npx.quantized_pooling(data, np.array([-1.0]), np.array([1.0]), kernel=(2, 2), pool_type="avg")[0]
    array([[[[15]]]], dtype=int8)
    """
    if p_value is not None or output_size is not None:
        raise UnsupportedError(
            f"quantized_pooling: `p_value` is {p_value} and `output_size` {output_size}, both must be None: norms and "
            "adaptive pooling are for floats"
        )
    pooled = _op["int8_pooling"](
        asarray(data),
        kernel=kernel,
        stride=stride,
        pad=pad,
        pool_type=pool_type,
        pooling_convention=pooling_convention,
        global_pool=global_pool,
        cudnn_off=cudnn_off,
        count_include_pad=count_include_pad,
        layout=layout,
    )
    return _ranged(pooled, min_data, max_data)


def _ranged(x: ndarray, low: ArrayLike, high: ArrayLike) -> tuple[ndarray, ndarray, ndarray]:
    return x, asarray(low).astype("float32"), asarray(high).astype("float32")


def quantized_act(
    data: ArrayLike, min_data: ArrayLike, max_data: ArrayLike, act_type: str = "relu"
) -> tuple[ndarray, ndarray, ndarray]:
    """Activation of integers.

    Parameters
    ----------
    data : array_like, int8, uint8 or int32
    min_data, max_data : array_like, shape (1,)
        What the integers stand for.
    act_type : {'relu'}

    Returns
    -------
    tuple of ndarray
        Integers of the dtype of `data`, and the range that they stand for, which is that of the data.

    Raises
    ------
    ValueError
        If `act_type` is another one: only relu keeps the levels.

    Examples
    --------
    >>> npx.quantized_act(np.array([-3, 5], dtype="int8"), np.array([-1.0]), np.array([1.0]), act_type="relu")[0]
    array([0, 5], dtype=int8)
    """
    if act_type != "relu":
        raise ValueError(f"quantized_act: `act_type` must be 'relu', found {act_type!r}")
    return _ranged(_npx["relu"](asarray(data)), min_data, max_data)


def quantized_flatten(data: ArrayLike, min_data: ArrayLike, max_data: ArrayLike) -> tuple[ndarray, ndarray, ndarray]:
    """Integers with all axes but the first as one.

    Parameters
    ----------
    data : array_like, shape (n, ...)
    min_data, max_data : array_like, shape (1,)
        What the integers stand for.

    Returns
    -------
    tuple of ndarray
        The integers as (n, k), and their range.

    Examples
    --------
    >>> npx.quantized_flatten(np.ones((2, 3, 4), dtype="int8"), np.array([-1.0]), np.array([1.0]))[0].shape
    (2, 12)
    """
    return _ranged(_npx["batch_flatten"](asarray(data)), min_data, max_data)


def quantized_reshape(
    data: ArrayLike,
    min_data: ArrayLike,
    max_data: ArrayLike,
    newshape: int | Sequence[int],
    reverse: bool = False,
    order: str = "C",
) -> tuple[ndarray, ndarray, ndarray]:
    """Integers in another shape.

    Parameters
    ----------
    data : array_like
    min_data, max_data : array_like, shape (1,)
        What the integers stand for.
    newshape, reverse, order
        As in `npx.reshape`.

    Returns
    -------
    tuple of ndarray
        The integers, and their range.

    Examples
    --------
    >>> npx.quantized_reshape(np.ones((2, 3), dtype="int8"), np.array([-1.0]), np.array([1.0]), newshape=(-1,))[0].shape
    (6,)
    """
    from mxnet.numpy_extension._shapes import reshape

    return _ranged(reshape(asarray(data), newshape, reverse=reverse, order=order), min_data, max_data)


def quantized_transpose(
    data: ArrayLike, min_data: ArrayLike, max_data: ArrayLike, axes: Sequence[int] | None = None
) -> tuple[ndarray, ndarray, ndarray]:
    """Integers with the axes in another order.

    Parameters
    ----------
    data : array_like
    min_data, max_data : array_like, shape (1,)
        What the integers stand for.
    axes : sequence of int, optional
        As in `np.transpose`: by default the reverse order.

    Returns
    -------
    tuple of ndarray
        The integers, and their range.

    Examples
    --------
    >>> npx.quantized_transpose(np.ones((2, 3), dtype="int8"), np.array([-1.0]), np.array([1.0]))[0].shape
    (3, 2)
    """
    return _ranged(_np["transpose"](asarray(data), axes), min_data, max_data)


def quantized_elemwise_add(
    lhs: ArrayLike,
    rhs: ArrayLike,
    lhs_min: ArrayLike,
    lhs_max: ArrayLike,
    rhs_min: ArrayLike,
    rhs_max: ArrayLike,
    min_calib_range: float | None = None,
    max_calib_range: float | None = None,
) -> tuple[ndarray, ndarray, ndarray]:
    """Sum of integers that stand for different ranges.

    Parameters
    ----------
    lhs, rhs : array_like, int8 or uint8
        Of one shape.
    lhs_min, lhs_max, rhs_min, rhs_max : array_like, shape (1,)
        What the integers stand for.
    min_calib_range, max_calib_range : float, optional
        The range of the result.

    Returns
    -------
    tuple of ndarray
        With a calibrated range 8-bit integers, uint8 if both operands are; otherwise int32 for the sum of both ranges.
        And the range that they stand for.

    Raises
    ------
    ValueError
        If shapes differ, or only one bound is given.
    TypeError
        If operands are not of 8 bits.

    Examples
    --------
    >>> lhs, rhs, one = np.array([10, -20], dtype="int8"), np.array([5, 50], dtype="int8"), np.array([1.0])
    >>> npx.quantized_elemwise_add(lhs, rhs, -one, one, -2 * one, 2 * one, -2.5, 2.5)[0]
    array([ 8, 32], dtype=int8)
    """
    where = "quantized_elemwise_add"
    x, y = _operands(lhs, rhs, where)
    sizes = _size(lhs_min, lhs_max, x.dtype, where), _size(rhs_min, rhs_max, y.dtype, where)
    if _calibrated(min_calib_range, max_calib_range, where):
        low, high = _one(float(min_calib_range or 0)), _one(float(max_calib_range or 0))
        total = x.astype("float32") * sizes[0] + y.astype("float32") * sizes[1]
        dtype = "uint8" if str(x.dtype) == str(y.dtype) == "uint8" else "int8"
        return _rounded(total, _largest(low, high), dtype), low, high
    most = _largest(lhs_min, lhs_max) + _largest(rhs_min, rhs_max)
    factor = _np["where"](most > 0, _LEVELS["int32"] / most.astype("float64"), 0.0)
    # The levels of int32 have more digits than float32.
    total = x.astype("float64") * (sizes[0] * factor) + y.astype("float64") * (sizes[1] * factor)
    limit = _LEVELS["int32"]
    return _np["clip"](_np["rint"](total), -limit, limit).astype("int32"), -most, most


def _operands(lhs: ArrayLike, rhs: ArrayLike, operator: str) -> tuple[ndarray, ndarray]:
    x, y = asarray(lhs), asarray(rhs)
    if x.shape != y.shape:
        raise ValueError(f"{operator}: `lhs` has shape {x.shape}, `rhs` {y.shape}: they must be the same")
    for name, operand in (("lhs", x), ("rhs", y)):
        if str(operand.dtype) not in ("int8", "uint8"):
            raise TypeError(f"{operator}: `{name}` is {operand.dtype}, must be int8 or uint8")
    return x, y


def quantized_elemwise_mul(
    lhs: ArrayLike,
    rhs: ArrayLike,
    lhs_min: ArrayLike,
    lhs_max: ArrayLike,
    rhs_min: ArrayLike,
    rhs_max: ArrayLike,
    min_calib_range: float | None = None,
    max_calib_range: float | None = None,
    enable_float_output: bool = False,
) -> ndarray | tuple[ndarray, ndarray, ndarray]:
    """Product of integers.

    Parameters
    ----------
    lhs, rhs : array_like, int8 or uint8
        Of one shape.
    lhs_min, lhs_max, rhs_min, rhs_max : array_like, shape (1,)
        What the integers stand for.
    min_calib_range, max_calib_range : float, optional
        The range of the result.
    enable_float_output : bool
        Whether the result is the real product.

    Returns
    -------
    ndarray or tuple of ndarray
        float32; or with a calibrated range int8, otherwise int32, and the range that they stand for.

    Raises
    ------
    ValueError
        If shapes differ, or only one bound is given.
    TypeError
        If operands are not of 8 bits.

    Examples
    --------
    >>> lhs, rhs, one = np.array([10, -20], dtype="int8"), np.array([5, 50], dtype="int8"), np.array([1.0])
    >>> npx.quantized_elemwise_mul(lhs, rhs, -one, one, -one, one)[0]
    array([   50, -1000], dtype=int32)
    """
    where = "quantized_elemwise_mul"
    x, y = _operands(lhs, rhs, where)
    size = _size(lhs_min, lhs_max, x.dtype, where) * _size(rhs_min, rhs_max, y.dtype, where)
    product = x.astype("int32") * y.astype("int32")
    calibrated = _calibrated(min_calib_range, max_calib_range, where)
    if enable_float_output:
        return product.astype("float32") * size
    if calibrated:
        low, high = _one(float(min_calib_range or 0)), _one(float(max_calib_range or 0))
        return _rounded(product.astype("float32") * size, _largest(low, high), "int8"), low, high
    return product, *_sums_range(size)


def quantized_embedding(
    data: ArrayLike,
    weight: ArrayLike,
    min_weight: ArrayLike,
    max_weight: ArrayLike,
    input_dim: int | None = None,
    output_dim: int | None = None,
    dtype: str = "float32",
    sparse_grad: bool = False,
) -> tuple[ndarray, ndarray, ndarray]:
    """Rows of a table of integers.

    Parameters
    ----------
    data : array_like, integers
        Numbers of rows.
    weight : array_like, int8, shape (input_dim, output_dim)
    min_weight, max_weight : array_like, shape (1,)
        What the integers stand for.
    input_dim, output_dim : int, optional
        The shape of the table, checked against `weight`.
    dtype, sparse_grad
        Accepted for compatibility with MXNet 2; have no effect: the result has the dtype of the table and no gradient.

    Returns
    -------
    tuple of ndarray
        Integers of shape ``data.shape + (output_dim,)``, and their range.

    Raises
    ------
    ValueError
        If the table has another shape.
    TypeError
        If the table is not int8.

    Examples
    --------
    >>> table = np.array([[1, 2], [3, 4]], dtype="int8")
    >>> npx.quantized_embedding(np.array([1, 0]), table, np.array([-1.0]), np.array([1.0]), 2, 2)[0]
    array([[3, 4],
           [1, 2]], dtype=int8)
    """
    table = asarray(weight)
    wanted = tuple(
        found if given is None else given for given, found in zip((input_dim, output_dim), table.shape, strict=False)
    )
    if table.ndim != 2 or wanted != table.shape:
        raise ValueError(f"quantized_embedding: `weight` has shape {table.shape}, needs ({input_dim}, {output_dim})")
    if str(table.dtype) != "int8":
        raise TypeError(f"quantized_embedding: `weight` is {table.dtype}, must be int8")
    return _ranged(_np["take"](table, asarray(data), axis=0), min_weight, max_weight)
