"""Comparison of whole arrays, and what is real in complex ones."""

from __future__ import annotations

import numpy
from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray
from mxnet.numpy._dtypes import kind_of, spelled

_np = _core.namespaces["numpy"]
_op = _core.namespaces["op"]


def allclose(a: ArrayLike, b: ArrayLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether two arrays are equal up to a tolerance; see `isclose`.

    Parameters
    ----------
    a, b : array_like
    rtol, atol : float
        The elements may differ by ``atol + rtol * abs(b)``.
    equal_nan : bool
        Whether NaN is close to NaN.

    Returns
    -------
    bool

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.allclose(mx.np.ones(3), 1 + 1e-6)
    True
    """
    return bool(_np["all"](_np["isclose"](a, b, rtol, atol, equal_nan)))


def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> bool:
    """Whether two arrays have the same shape and elements.

    Parameters
    ----------
    a1, a2 : array_like
    equal_nan : bool
        Whether NaN equals NaN.

    Returns
    -------
    bool

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.array_equal([1, 2], mx.np.array([1, 2]))
    True
    >>> mx.np.array_equal([1, 2], [1])
    False
    """
    x, y = asarray(a1), asarray(a2)
    if x.shape != y.shape:
        return False
    same = _np["equal"](x, y)
    if equal_nan:
        same = same | (_np["not_equal"](x, x) & _np["not_equal"](y, y))
    return bool(_np["all"](same))


def array_equiv(a1: ArrayLike, a2: ArrayLike) -> bool:
    """Whether two arrays have the same elements after broadcasting.

    Parameters
    ----------
    a1, a2 : array_like

    Returns
    -------
    bool
        False also for shapes that do not broadcast.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.array_equiv([1, 2], [[1, 2], [1, 2]])
    True
    """
    x, y = asarray(a1), asarray(a2)
    if x.shape != y.shape:
        try:
            numpy.broadcast_shapes(x.shape, y.shape)
        except ValueError:
            return False
    return bool(_np["all"](_np["equal"](x, y)))


def _is_complex(x: ndarray) -> bool:
    return kind_of(x.dtype) == "c"


def iscomplexobj(x: object) -> bool:
    """Whether an array, or what would become one, has a complex dtype, whatever its elements are.

    Parameters
    ----------
    x : object
        The array, or what would become one.

    Returns
    -------
    bool

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.iscomplexobj(mx.np.zeros(2)), mx.np.iscomplexobj(1j)
    (False, True)
    """
    return kind_of(x.dtype if type(x) is ndarray else asarray(x).dtype) == "c"


def isrealobj(x: object) -> bool:
    """Whether an array, or what would become one, has a dtype that is not complex.

    Parameters
    ----------
    x : object
        The array, or what would become one.

    Returns
    -------
    bool

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.isrealobj(mx.np.zeros(2))
    True
    """
    return kind_of(x.dtype if type(x) is ndarray else asarray(x).dtype) != "c"


def real_if_close(a: ArrayLike, tol: float = 100) -> ndarray:
    """The real parts, if all imaginary parts are close to 0; else the array.

    Parameters
    ----------
    a : array_like
    tol : float
        In units of the machine epsilon of the dtype if above 1, else absolute.

    Returns
    -------
    ndarray
        Its dtype depends on values: they are waited for.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.real_if_close(mx.np.array([1 + 1e-9j, 2]))
    array([1., 2.])
    """
    values = a if type(a) is ndarray else asarray(a)
    if not _is_complex(values):
        return values
    limit = tol * float(numpy.finfo(values.dtype).eps) if tol > 1 else tol
    if bool(_np["all"](_np["less"](_np["abs"](_np["imag"](values)), limit))):
        return _np["real"](values)  # type: ignore[no-any-return]
    return values


def sort_complex(a: ArrayLike) -> ndarray:
    """Elements sorted along the last axis by real part, then by imaginary part, as complex numbers.

    Parameters
    ----------
    a : array_like

    Returns
    -------
    ndarray
        complex128 for float64 and for wide integers in NumPy's promotion, else complex64. NumPy makes complex128 of
        float32 too.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.sort_complex(mx.np.array([3.0, 1.0]))
    array([1.+0.j, 3.+0.j])
    """
    values = _np["sort"](asarray(a))
    if _is_complex(values):
        return values  # type: ignore[no-any-return]
    narrow = ("int8", "int16", "uint8", "uint16")
    if _core.numpy_promotion():
        wide = spelled(values.dtype) not in narrow
    else:
        wide = spelled(values.dtype) == "float64"
    return _op["astype"](values, "complex128" if wide else "complex64")  # type: ignore[no-any-return]


def _bits_axis(a: ndarray, axis: int | None) -> tuple[ndarray, int]:
    """The array with at least one axis, flattened for None, and the axis counted from the front."""
    if axis is None:
        return a.reshape(-1), 0
    array = a.reshape(1) if a.ndim == 0 else a
    if not -array.ndim <= axis < array.ndim:
        raise numpy.exceptions.AxisError(axis, array.ndim)
    return array, axis % array.ndim


def _along_last(function: str, array: ndarray, axis: int, bitorder: str) -> ndarray:
    """What an operator along the last axis makes of another axis."""
    if bitorder not in ("big", "little"):
        raise ValueError(f"'bitorder' must be 'little' or 'big', found {bitorder!r}")
    last = array.ndim - 1
    if axis == last:
        return _op[function](array, bitorder)  # type: ignore[no-any-return]
    return _np["moveaxis"](_op[function](_np["moveaxis"](array, axis, last), bitorder), last, axis)  # type: ignore[no-any-return]


def packbits(a: ArrayLike, /, axis: int | None = None, bitorder: str = "big") -> ndarray:
    """Truth values as the bits of bytes.

    Parameters
    ----------
    a : array_like of integers or bool
        Not 0 is a set bit.
    axis : int, optional
        The axis that is packed; None packs the flattened array.
    bitorder : {'big', 'little'}
        Whether the first value is the highest or the lowest bit.

    Returns
    -------
    ndarray, uint8
        An eighth of the elements along `axis`, rounded up; bits that are missing are 0.

    Raises
    ------
    TypeError
        If the elements are neither integers nor truth values.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.packbits(mx.np.array([1, 0, 1]))
    array([160], dtype=uint8)
    """
    array = asarray(a)
    if axis is None and bitorder == "big":
        return _op["pack_bits"](array.reshape(-1))  # type: ignore[no-any-return]
    array, axis = _bits_axis(array, axis)
    return _along_last("pack_bits", array, axis, bitorder)


def unpackbits(a: ArrayLike, /, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> ndarray:
    """The bits of bytes, each as a byte that is 0 or 1.

    Parameters
    ----------
    a : array_like, uint8
    axis : int, optional
        The axis that is unpacked; None unpacks the flattened array.
    count : int, optional
        The number of bits to keep along `axis`: zeros follow if it is larger than there are; a negative one is the
        number to leave out at the end.
    bitorder : {'big', 'little'}
        Whether the highest or the lowest bit comes first.

    Returns
    -------
    ndarray, uint8

    Raises
    ------
    TypeError
        If the elements are no uint8.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.unpackbits(mx.np.array([160], dtype="uint8"), count=3)
    array([1, 0, 1], dtype=uint8)
    """
    array = asarray(a)
    if spelled(array.dtype) != "uint8":
        raise TypeError(f"unpackbits: expected an array of uint8, found {array.dtype}")
    array, axis = _bits_axis(array, axis)
    bits = _along_last("unpack_bits", array, axis, bitorder)
    n = bits.shape[axis]
    if count is None:
        return bits
    if count < -n:
        raise ValueError(f"-count larger than number of elements: {-count} of {n}")
    keep = count if count >= 0 else n + count
    if keep > n:
        widths = [0] * (2 * array.ndim)
        widths[2 * axis + 1] = keep - n
        return _op["pad_constant"](bits, tuple(widths), 0)  # type: ignore[no-any-return]
    return bits[(*[slice(None)] * axis, slice(0, keep))]
