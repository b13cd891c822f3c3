"""Limits of data types: `finfo` and `iinfo`."""

from __future__ import annotations

from typing import Any

import numpy

from mxnet import _core
from mxnet.numpy._dtypes import BFLOAT16, CATEGORIES, CODES, dtype_like, name_of

# Bits of the stored mantissa, and of the exponent.
_FORMATS = {"float16": (10, 5), BFLOAT16: (7, 8), "float32": (23, 8), "float64": (52, 11)}

# Limits of each floating and integer dtype, computed at the first request, by dtype object, scalar type and name.
# Other spellings are not cached, because their meaning may change, as that of `float` does.
_KNOWN_FORMATS: dict[Any, finfo] = {}
_KNOWN_INTEGERS: dict[Any, iinfo] = {}


def _spellings(dtype: Any) -> list[Any]:
    """Objects that always mean this dtype."""
    return [dtype, dtype.name, dtype.type] if isinstance(dtype, numpy.dtype) else [dtype]


# If objects of these types are equal, they mean equal dtypes.
_SPELLING_TYPES = {str, type, *(type(numpy.dtype(code)) for code in CODES)}


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
        dtype = _core.result_type([dtype_like(dtype)])
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
        dtype = _core.result_type([dtype_like(dtype)])
        if str(dtype) not in CATEGORIES["integral"]:
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
