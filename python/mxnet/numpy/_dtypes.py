"""Data types: names, kinds, promotion. Limits are in `_dtype_limits.py`."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import numpy
from numpy import generic
from numpy.typing import ArrayLike, DTypeLike

from mxnet import _core
from mxnet._core import asarray, ndarray

BFLOAT16 = "bfloat16"
_KINDS = {bool: "b", int: "i", float: "f", complex: "c"}
CATEGORIES = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float16", BFLOAT16, "float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
CATEGORIES["integral"] = CATEGORIES["signed integer"] + CATEGORIES["unsigned integer"]
CATEGORIES["numeric"] = CATEGORIES["integral"] + CATEGORIES["real floating"] + CATEGORIES["complex floating"]

boolean_dtypes: tuple[Any, ...] = (numpy.dtype("bool"),)
integer_dtypes: tuple[Any, ...] = tuple(numpy.dtype(name) for name in CATEGORIES["integral"])
floating_dtypes: tuple[Any, ...] = tuple(numpy.dtype(f"float{bits}") for bits in (16, 32, 64))
numeric_dtypes: tuple[Any, ...] = integer_dtypes + floating_dtypes

# NumPy's tables, without the types that arrays of numbers do not have.
CODES = "?bhilqnpBHILQNPefdFD"
typecodes: dict[str, str] = {
    kind: "".join(code for code in codes if code in CODES)
    for kind, codes in dict[str, str](numpy.typecodes).items()  # type: ignore[arg-type]
    if set(codes) & set(CODES)
}
sctypeDict: dict[Any, type] = {  # noqa: N816  # NumPy's name
    name: scalar for name, scalar in numpy.sctypeDict.items() if numpy.dtype(scalar).char in CODES
}
ScalarType: tuple[type, ...] = tuple(
    scalar for scalar in numpy.ScalarType if scalar is not memoryview and numpy.dtype(scalar).char in CODES
)


@functools.lru_cache(maxsize=64)
def spelled(dtype: Any) -> str:
    """Name of an array's dtype. NumPy takes microseconds to compute one."""
    return str(dtype)


def kind_of(dtype: Any) -> str:
    """NumPy's letter for the kind of an array's dtype: 'b', 'i', 'u', 'f' or 'c'.

    Parameters
    ----------
    dtype : dtype of an array

    Returns
    -------
    str
    """
    # bfloat16 is a string if no NumPy extension defines it, and of kind 'V' if one does.
    kind: str = getattr(dtype, "kind", "f")
    return kind if kind in "biufc" else "f"


def is_exact(dtype: Any) -> bool:
    """Whether an array's dtype has neither rounding nor NaN: integers and truth values.

    Parameters
    ----------
    dtype : dtype of an array

    Returns
    -------
    bool
    """
    return kind_of(dtype) in "biu"


def name_of(dtype: Any) -> str:
    """Name of the dtype given by any dtype-like object.

    Parameters
    ----------
    dtype : dtype, type or str

    Returns
    -------
    str

    Raises
    ------
    TypeError
        If arrays cannot have it.
    """
    # The core returns its own object, which is a string for bfloat16 if no NumPy extension defines it.
    return spelled(_core.result_type([dtype]))


def dtype_like(x: Any) -> Any:
    """The dtype of an array, or the given dtype."""
    return x.dtype if isinstance(x, (ndarray, numpy.ndarray, generic)) else x


def can_cast(from_: Any, to: DTypeLike, casting: str = "safe") -> bool:
    """Whether a casting rule lets elements of one dtype become another's.

    Parameters
    ----------
    from_ : dtype or array
    to : dtype
    casting : {'no', 'equiv', 'safe', 'same_kind', 'unsafe'}

    Returns
    -------
    bool

    Raises
    ------
    TypeError
        If `from_` is a Python number: numbers have no dtype.
    ValueError
        For another `casting`.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.can_cast("int32", "float64"), mx.np.can_cast("int32", "float32")
    (True, False)
    >>> mx.np.can_cast("float32", mx.np.bfloat16, "same_kind")
    True
    """
    if type(from_) is str:
        return _core.can_cast(from_, to, casting)
    if type(from_) in _KINDS:
        raise TypeError(f"can_cast: Python numbers have no dtype, found {from_!r}; ask result_type instead")
    return _core.can_cast(dtype_like(from_), to, casting)


def promote_types(type1: DTypeLike, type2: DTypeLike, /) -> Any:
    """The dtype that arrays of two dtypes give together.

    Parameters
    ----------
    type1, type2 : dtype

    Returns
    -------
    dtype

    Notes
    -----
    Differences: by default an integer type with a float type gives that float. ``npx.set_np(dtype=True)`` chooses
    NumPy's rules, by which the result holds all integers of the type.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.promote_types("int32", "float32")
    dtype('float32')
    """
    return _core.promote_types(type1, type2)


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype that an operation on these operands gives.

    Parameters
    ----------
    *arrays_and_dtypes : array, dtype or Python number
        Numbers count by their kind only; so do NumPy's float64 and
        complex128, whose classes derive from Python's, unless NumPy's rules are chosen.

    Returns
    -------
    dtype

    Raises
    ------
    ValueError
        Without operands.

    Notes
    -----
    Differences: see `promote_types`. Python floats alone are float32 unless NumPy's rules are chosen.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.result_type(mx.np.ones(2, dtype="int8"), 3)
    dtype('int8')
    >>> mx.np.result_type("int32", 1.5)
    dtype('float32')
    """
    if len(arrays_and_dtypes) == 1 and type(arrays_and_dtypes[0]) is ndarray:
        return arrays_and_dtypes[0].dtype
    if not arrays_and_dtypes:
        raise ValueError("result_type: at least one array or dtype is required")
    dtypes, weak = [], ""
    for operand in arrays_and_dtypes:
        kind = _KINDS.get(type(operand))
        if kind is None and isinstance(operand, (float, complex)) and not _core.numpy_promotion():
            kind = "f" if isinstance(operand, float) else "c"
        if kind is not None:
            weak = max(weak, kind, key=" bifc".find)
        elif isinstance(operand, (list, tuple)):
            dtypes.append(asarray(operand).dtype)
        else:
            dtypes.append(dtype_like(operand))
    return _core.result_type(dtypes, weak or None)


def min_scalar_type(a: ArrayLike) -> Any:
    """The smallest dtype that holds a number; the dtype of an array of one axis and more.

    Parameters
    ----------
    a : array_like

    Returns
    -------
    dtype

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.min_scalar_type(300), mx.np.min_scalar_type(-1)
    (dtype('uint16'), dtype('int8'))
    """
    if isinstance(a, ndarray):
        if a.ndim or name_of(a.dtype) == BFLOAT16:
            return a.dtype
        return numpy.min_scalar_type(a.asnumpy())
    return numpy.min_scalar_type(a)


def issubdtype(arg1: DTypeLike, arg2: DTypeLike) -> bool:
    """Whether a dtype is of a class of dtypes, or is another one.

    Parameters
    ----------
    arg1 : dtype or class
    arg2 : dtype or class
        Such as ``mx.np.floating``.

    Returns
    -------
    bool

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.issubdtype("int16", mx.np.integer), mx.np.issubdtype(mx.np.bfloat16, mx.np.floating)
    (True, True)
    """
    # For NumPy's own dtypes, reading the name costs more than the test.
    own = False
    if isinstance(arg1, numpy.dtype) and arg1.isbuiltin == 1:
        own = True
        if isinstance(arg2, type) and issubclass(arg2, generic):
            return issubclass(arg1.type, arg2)
    if not own and getattr(arg1, "name", getattr(arg1, "__name__", arg1)) == BFLOAT16:
        # NumPy does not know the class of the extension's type.
        if isinstance(arg2, type) and issubclass(arg2, generic):
            return (issubclass(numpy.float16, arg2) and arg2 is not numpy.float16) or arg2.__name__ == BFLOAT16
        return name_of(arg2) == BFLOAT16
    if isinstance(arg2, str) and arg2 == BFLOAT16:
        return False
    return bool(numpy.issubdtype(arg1, arg2))


def isdtype(dtype: DTypeLike, kind: Any) -> bool:
    """Whether a dtype is of a kind, as the array API standard names kinds.

    Parameters
    ----------
    dtype : dtype
    kind : str, dtype or tuple of them
        'bool', 'signed integer', 'unsigned integer', 'integral', 'real floating', 'complex floating', 'numeric', or a
        dtype.

    Returns
    -------
    bool

    Raises
    ------
    TypeError
        If `dtype` is no dtype.
    ValueError
        For another word.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.isdtype(mx.np.float32, "real floating"), mx.np.isdtype(mx.np.float32, ("integral", "bool"))
    (True, False)
    """
    if isinstance(dtype, ndarray):
        raise TypeError("isdtype: `dtype` must be a dtype, found an array")
    name = name_of(dtype)
    kinds = kind if isinstance(kind, tuple) else (kind,)
    answers = []
    for one in kinds:
        if isinstance(one, str) and one in CATEGORIES:
            answers.append(name in CATEGORIES[one])
            continue
        if isinstance(one, str) and one != BFLOAT16:
            raise ValueError(
                f"isdtype: `kind` must be a dtype or one of {', '.join(sorted(CATEGORIES))}, found {one!r}"
            )
        answers.append(name == name_of(one))
    return any(answers)


def common_type(*arrays: ArrayLike) -> Any:
    """The float or complex type that holds the elements of all arrays; integers count as the default float.

    Parameters
    ----------
    *arrays : ndarray

    Returns
    -------
    type
        A scalar type of NumPy; the dtype itself for bfloat16.

    Raises
    ------
    TypeError
        For arrays of bool.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.common_type(mx.np.arange(3), mx.np.ones(2, dtype="float16"))
    <class 'numpy.float32'>
    """
    dtypes = []
    for array in arrays:
        dtype = asarray(array).dtype
        kind = kind_of(dtype)
        if kind == "b":
            raise TypeError("common_type: arrays of bool have no common float type")
        dtypes.append(_core.default_dtype("f") if kind in "iu" else dtype)
    found = dtypes[0] if len(dtypes) == 1 else _core.result_type(dtypes or [numpy.dtype("float16")])
    return getattr(found, "type", found)


def isscalar(element: Any) -> bool:
    """Whether an object is a number, and no array.

    Parameters
    ----------
    element : object

    Returns
    -------
    bool
        True for numbers of Python and NumPy, text and bytes.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.isscalar(3.1), mx.np.isscalar(mx.np.array(3.1))
    (True, False)
    """
    return not isinstance(element, ndarray) and bool(numpy.isscalar(element))


def of_kinds(kinds: Iterable[str]) -> dict[str, Any]:
    """Dtypes of these kinds by name; bfloat16, which the standard does not name, is left out.

    Parameters
    ----------
    kinds : iterable of str
        As for `isdtype`.

    Returns
    -------
    dict
    """
    names = {name for kind in kinds for name in CATEGORIES[kind]}
    return {name: numpy.dtype(name) for name in sorted(names) if name not in (BFLOAT16, "float16")}
