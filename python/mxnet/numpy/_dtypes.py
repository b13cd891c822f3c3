"""Data types: names, limits, promotion."""

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
# Bits of the stored mantissa, and of the exponent.
_FORMATS = {"float16": (10, 5), BFLOAT16: (7, 8), "float32": (23, 8), "float64": (52, 11)}
_KINDS = {bool: "b", int: "i", float: "f", complex: "c"}
_CATEGORIES = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float16", BFLOAT16, "float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_CATEGORIES["integral"] = _CATEGORIES["signed integer"] + _CATEGORIES["unsigned integer"]
_CATEGORIES["numeric"] = _CATEGORIES["integral"] + _CATEGORIES["real floating"] + _CATEGORIES["complex floating"]

boolean_dtypes: tuple[Any, ...] = (numpy.dtype("bool"),)
integer_dtypes: tuple[Any, ...] = tuple(numpy.dtype(name) for name in _CATEGORIES["integral"])
floating_dtypes: tuple[Any, ...] = tuple(numpy.dtype(f"float{bits}") for bits in (16, 32, 64))
numeric_dtypes: tuple[Any, ...] = integer_dtypes + floating_dtypes

# NumPy's tables, without the types that arrays of numbers do not have.
_CODES = "?bhilqnpBHILQNPefdFD"
typecodes: dict[str, str] = {
    kind: "".join(code for code in codes if code in _CODES)
    for kind, codes in dict[str, str](numpy.typecodes).items()  # type: ignore[arg-type]
    if set(codes) & set(_CODES)
}
sctypeDict: dict[Any, type] = {  # noqa: N816  # NumPy's name
    name: scalar for name, scalar in numpy.sctypeDict.items() if numpy.dtype(scalar).char in _CODES
}
ScalarType: tuple[type, ...] = tuple(
    scalar for scalar in numpy.ScalarType if scalar is not memoryview and numpy.dtype(scalar).char in _CODES
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


def _dtype_like(x: Any) -> Any:
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
    return _core.can_cast(_dtype_like(from_), to, casting)


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
        Numbers count by their kind only.

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
        if type(operand) in _KINDS:
            kind = _KINDS[type(operand)]
            weak = max(weak, kind, key=" bifc".find)
        elif isinstance(operand, (list, tuple)):
            dtypes.append(asarray(operand).dtype)
        else:
            dtypes.append(_dtype_like(operand))
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
    if not kinds:
        raise ValueError("isdtype: `kind` must not be an empty tuple")
    answers = []
    for one in kinds:
        if isinstance(one, str) and one in _CATEGORIES:
            answers.append(name in _CATEGORIES[one])
            continue
        if isinstance(one, str) and one != BFLOAT16:
            raise ValueError(
                f"isdtype: `kind` must be a dtype or one of {', '.join(sorted(_CATEGORIES))}, found {one!r}"
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


# Limits of each floating and integer dtype, computed at the first request, by dtype object, scalar type and name.
# Other spellings are not cached, because their meaning may change, as that of `float` does.
_KNOWN_FORMATS: dict[Any, finfo] = {}
_KNOWN_INTEGERS: dict[Any, iinfo] = {}


def _spellings(dtype: Any) -> list[Any]:
    """Objects that always mean this dtype."""
    return [dtype, dtype.name, dtype.type] if isinstance(dtype, numpy.dtype) else [dtype]


# If objects of these types are equal, they mean equal dtypes.
_SPELLING_TYPES = {str, type, *(type(numpy.dtype(code)) for code in _CODES)}


class finfo:  # noqa: N801  # NumPy's name
    """Limits of a type of floats.

    Parameters
    ----------
    dtype : dtype or array
        A complex type stands for that of its parts.

    Attributes
    ----------
    bits : int
        Bits of a number.
    dtype : dtype
    eps, epsneg : float
        From 1 to the next larger number, and to the next smaller one.
    max, min : float
        Largest and smallest finite number.
    smallest_normal, tiny : float
        Smallest positive number with all digits.
    smallest_subnormal : float
        Smallest positive number.
    precision : int
        Decimal digits that survive.
    resolution : float
        10 to the power of minus `precision`.
    nmant, nexp, iexp : int
        Stored bits of the mantissa, and bits of the exponent.
    machep, negep : int
        Exponents of `eps` and `epsneg`.
    maxexp, minexp : int
        Exponents of the first power of two that is too large, and of `smallest_normal`.

    Raises
    ------
    ValueError
        For types that are no floats.

    Notes
    -----
    Differences: limits are Python floats, which are exact and do not widen what they are combined with.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.finfo(mx.np.float32).eps
    1.1920928955078125e-07
    >>> mx.np.finfo(mx.np.bfloat16).bits
    16
    """

    __slots__ = ("_format", "dtype")
    _format: tuple[int, int]
    dtype: numpy.dtype[Any]

    def __new__(cls, dtype: Any) -> finfo:
        if cls is finfo and type(dtype) in _SPELLING_TYPES and dtype in _KNOWN_FORMATS:
            return _KNOWN_FORMATS[dtype]
        dtype = _core.result_type([_dtype_like(dtype)])
        if cls is finfo and dtype in _KNOWN_FORMATS:
            return _KNOWN_FORMATS[dtype]
        name = str(dtype)
        if name.startswith("complex"):
            name = f"float{int(name[7:]) // 2}"
        if name not in _FORMATS:
            raise ValueError(f"finfo: `dtype` must be a type of floats, found {name}")
        limits = super().__new__(cls)
        limits.dtype = numpy.dtype(name) if str(dtype).startswith("complex") else dtype
        limits._format = _FORMATS[name]
        if cls is finfo:
            _KNOWN_FORMATS.update(dict.fromkeys(_spellings(dtype), limits))
        return limits

    @property
    def nmant(self) -> int:
        """Stored bits of the mantissa."""
        return self._format[0]

    @property
    def nexp(self) -> int:
        """Bits of the exponent."""
        return self._format[1]

    iexp = nexp

    @property
    def bits(self) -> int:
        """Bits of a number."""
        return 1 + self.nmant + self.nexp

    @property
    def machep(self) -> int:
        """Exponent of `eps`."""
        return -self.nmant

    @property
    def negep(self) -> int:
        """Exponent of `epsneg`."""
        return -self.nmant - 1

    @property
    def maxexp(self) -> int:
        """Exponent of the first power of two that is too large."""
        return 1 << (self.nexp - 1)

    @property
    def minexp(self) -> int:
        """Exponent of the smallest positive number with all digits."""
        return 2 - self.maxexp

    @property
    def eps(self) -> float:
        """From 1 to the next larger number."""
        return 2.0 ** -self._format[0]

    @property
    def epsneg(self) -> float:
        """From 1 to the next smaller number."""
        return 2.0**self.negep

    @property
    def max(self) -> float:
        """Largest finite number."""
        # The power of two itself would overflow float64.
        return (2.0 - self.eps) * 2.0 ** (self.maxexp - 1)

    @property
    def min(self) -> float:
        """Smallest finite number."""
        return -self.max

    @property
    def smallest_normal(self) -> float:
        """Smallest positive number with all digits."""
        return 2.0**self.minexp

    tiny = smallest_normal

    @property
    def smallest_subnormal(self) -> float:
        """Smallest positive number."""
        return 2.0 ** (self.minexp - self.nmant)

    @property
    def precision(self) -> int:
        """Decimal digits that survive."""
        # log10(2), truncated to whole digits.
        return int(self.nmant * 0.3010299956639812)

    @property
    def resolution(self) -> float:
        """10 to the power of minus `precision`."""
        return float(f"1e-{self.precision}")

    def _shown(self, value: float) -> str:
        """A limit, with enough digits to distinguish it from its neighbours."""
        return str(value) if name_of(self.dtype) == BFLOAT16 else str(self.dtype.type(value))

    def __repr__(self) -> str:
        # Enough digits to distinguish neighbouring numbers.
        digits = {16: 5, 32: 7, 64: 16}[self.bits] if name_of(self.dtype) != BFLOAT16 else 4
        low, high = f"{self.min:.{digits}e}", f"{self.max:.{digits}e}"
        return f"finfo(resolution={self._shown(self.resolution)}, min={low}, max={high}, dtype={self.dtype})"

    def __str__(self) -> str:
        shown = {name: self._shown(getattr(self, name)) for name in ("resolution", "eps", "epsneg", "tiny", "max")}
        rows = [
            f"precision = {self.precision}   resolution = {shown['resolution']}",
            f"machep = {self.machep}   eps =        {shown['eps']}",
            f"negep =  {self.negep}   epsneg =     {shown['epsneg']}",
            f"minexp = {self.minexp}   tiny =       {shown['tiny']}",
            f"maxexp = {self.maxexp}   max =        {shown['max']}",
            f"nexp =   {self.nexp}   min =        -max",
            f"smallest_normal = {shown['tiny']}   smallest_subnormal = {self._shown(self.smallest_subnormal)}",
        ]
        return _table(f"Machine parameters for {self.dtype}", rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(("finfo", str(self.dtype)))


class iinfo:  # noqa: N801  # NumPy's name
    """Limits of a type of integers.

    Parameters
    ----------
    dtype : dtype, array or Python int

    Attributes
    ----------
    bits : int
    dtype : dtype
    max, min : int
    kind : str
        'i' for signed types, 'u' for unsigned ones.
    key : str
        `kind` and `bits`.

    Raises
    ------
    ValueError
        For types that are no integers.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.iinfo("int8").max
    127
    """

    __slots__ = ("_bits", "_kind", "_max", "_min", "dtype")
    _bits: int
    _kind: str
    _max: int
    _min: int
    dtype: numpy.dtype[Any]

    def __new__(cls, dtype: Any) -> iinfo:
        if cls is iinfo and type(dtype) in _SPELLING_TYPES and dtype in _KNOWN_INTEGERS:
            return _KNOWN_INTEGERS[dtype]
        if isinstance(dtype, int) and not isinstance(dtype, bool):
            dtype = "int64"
        dtype = _core.result_type([_dtype_like(dtype)])
        if str(dtype) not in _CATEGORIES["integral"]:
            raise ValueError(f"iinfo: `dtype` must be a type of integers, found {dtype}")
        limits = super().__new__(cls)
        limits.dtype, limits._bits, limits._kind = dtype, 8 * dtype.itemsize, dtype.kind
        half = 1 << (limits._bits - 1)
        limits._min, limits._max = (-half, half - 1) if dtype.kind == "i" else (0, 2 * half - 1)
        if cls is iinfo:
            _KNOWN_INTEGERS.update(dict.fromkeys(_spellings(dtype), limits))
        return limits

    @property
    def bits(self) -> int:
        """Bits of a number."""
        return self._bits

    @property
    def max(self) -> int:
        """Largest number."""
        return self._max

    @property
    def min(self) -> int:
        """Smallest number."""
        return self._min

    @property
    def kind(self) -> str:
        """'i' for signed types, 'u' for unsigned ones."""
        return self._kind

    @property
    def key(self) -> str:
        """`kind` and `bits`."""
        return f"{self._kind}{self._bits}"

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"

    def __str__(self) -> str:
        return _table(f"Machine parameters for {self.dtype}", [f"min = {self.min}", f"max = {self.max}"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(("iinfo", str(self.dtype)))


def _table(title: str, rows: list[str]) -> str:
    """Rows between two lines, below a title."""
    line = "-" * 63
    return "\n".join([title, line, *rows, line, ""])


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
    names = {name for kind in kinds for name in _CATEGORIES[kind]}
    return {name: numpy.dtype(name) for name in sorted(names) if name not in (BFLOAT16, "float16")}
