"""Distances in units in the last place, for every dtype we have."""

import numpy as np

HALF = ("float16", "bfloat16")


def to_bfloat16(x):
    """`x` rounded to bfloat16 (ties to even), as float32: NumPy has no such dtype."""
    x = np.asarray(x, dtype=np.float32)
    bits = x.view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    return np.where(np.isnan(x), x, rounded)


def rounded(x, dtype):
    """`x` rounded to `dtype`; bfloat16 values are held in float32."""
    if dtype == "bfloat16":
        return to_bfloat16(x)
    with np.errstate(all="ignore"):
        return np.asarray(x).astype(dtype)


def spacing(x, dtype):
    """Distance from |x| to the next larger number of a real dtype, never below that at the smallest normal number."""
    digits, low = {
        "float16": (10, -14),
        "bfloat16": (7, -126),
        "float32": (23, -126),
        "float64": (52, -1022),
    }[dtype]
    x = np.abs(np.asarray(x, dtype=np.float64))
    exponent = np.frexp(np.where(np.isfinite(x) & (x > 0), x, 1.0))[1] - 1
    exponent = np.where(x > 0, np.maximum(exponent, low), low)
    return np.ldexp(1.0, exponent - digits)


def real_of(dtype):
    """The dtype of the parts of a complex dtype, or the dtype itself."""
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def distance(got, want, dtype, *, whole=False):
    """Largest error of `got` in units in the last place of `want`.

    NaN must meet NaN and infinity the same infinity, otherwise the distance is infinite. `whole` measures in units of
    the largest element of `want` instead of each one's own: what sums and products of many elements promise.
    """
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"shape {got.shape}, expected {want.shape}"
    if got.size == 0:
        return 0.0
    if got.dtype.kind in "biu" or want.dtype.kind in "biu":
        return 0.0 if np.array_equal(got, want) else np.inf
    unit = real_of(dtype)
    if got.dtype.kind == "c" or want.dtype.kind == "c":
        got, want = got.astype(np.complex128), want.astype(np.complex128)
        odd = ~(np.isfinite(got) & np.isfinite(want))
        for part in (np.real, np.imag):
            a, b = part(got)[odd], part(want)[odd]
            if not np.all((a == b) | np.isnan(a) & np.isnan(b)):
                return np.inf
        got, want = got[~odd], want[~odd]
    else:
        got, want = got.astype(np.float64), want.astype(np.float64)
        same = (got == want) | np.isnan(got) & np.isnan(want)
        odd = ~(np.isfinite(got) & np.isfinite(want))
        if np.any(odd & ~same):
            return np.inf
        got, want = got[~odd], want[~odd]
    if got.size == 0:
        return 0.0
    size = np.abs(want)
    return float(np.max(np.abs(got - want) / spacing(size.max() if whole else size, unit)))
