"""What the standard tests know about operators: entries, oracles, operands made from probes."""

import functools
import zlib

import numpy as np
import scipy
import scipy.special

from mxnet import _core
from ulps import rounded, to_bfloat16

ENTRIES = {entry["name"]: entry for entry in _core.registry()}
FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
# The dtype in which an oracle is evaluated: wide enough that its own rounding does not count.
WIDE = {
    "float16": np.float64,
    "bfloat16": np.float64,
    "float32": np.float64,
    "float64": np.longdouble,
    "complex64": np.complex128,
    "complex128": np.clongdouble,
}


def names(choose):
    """Sorted names of the operators whose entry satisfies `choose`."""
    return sorted(name for name, entry in ENTRIES.items() if choose(entry))


def op(name):
    """The operator as a Python function."""
    return _core.namespaces["op"][name]


def generator(*key):
    """A random generator that depends on the key only."""
    return np.random.default_rng(zlib.crc32(repr(key).encode()))


@functools.cache
def numpy_function(name):
    """The NumPy function an operator claims to be, by its public name, or None."""
    for public in [*ENTRIES[name]["surface"], f"np.{name}"]:
        parts = public.split(".")
        if parts[0] != "np" or parts[1] == "random":
            continue
        found = np
        for part in parts[1:]:
            found = getattr(found, part, None)
        if callable(found):
            return found
    return None


@functools.cache
def oracle(name):
    """The reference function of an operator, or None."""
    text = ENTRIES[name]["oracle"]
    if not text:
        return numpy_function(name)
    # The expressions are part of this project's own registry.
    return eval(text, {"np": np, "numpy": np, "scipy": scipy})


def array_parameters(entry):
    """Names of the array parameters."""
    return [name for name, kind, _ in entry["params"] if kind == "array"]


def attribute_parameters(entry):
    """Names of the parameters that are no arrays."""
    return [name for name, kind, _ in entry["params"] if kind not in ("array", "arrays")]


def values(entry, dtype, shape, rng):
    """Random values of `dtype` in the probe's range; bfloat16 values are held in float32."""
    low, high = entry["range"]
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        if (low, high) == (-2.0, 2.0):
            low, high = info.min, info.max
        low, high = max(int(np.ceil(low)), info.min), min(int(np.floor(high)), info.max)
        return rng.integers(low, high, shape, dtype=dtype, endpoint=True)
    x = rng.uniform(low, high, shape)
    if dtype in COMPLEX:
        return (x + 1j * rng.uniform(low, high, shape)).astype(dtype)
    return rounded(x, dtype)


def to_mx(x, dtype=None):
    """An array of ours with the values of a NumPy array."""
    array = _core.array(np.asarray(x))
    return op("astype")(array, "bfloat16") if dtype == "bfloat16" else array


def to_numpy(y):
    """The values of one of our arrays; bfloat16 in float32."""
    return np.asarray(y.asnumpy())


def dtype_name(y):
    """The name of an array's dtype."""
    return str(y.dtype)


def many(outputs):
    """Outputs as a list; operators that only change their arguments have none."""
    if outputs is None:
        return []
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]


def expected(name, xs, dtype):
    """What the oracle says for operands of `dtype`, not yet rounded, one array an output."""
    function = oracle(name)
    with np.errstate(all="ignore"):
        if dtype not in WIDE:
            return [np.asarray(y) for y in many(function(*xs))]
        exact = ENTRIES[name]["ulp32"] == 0 and dtype not in COMPLEX
        if exact and dtype != "bfloat16":
            return [np.asarray(y) for y in many(function(*xs))]
        if exact:
            return [to_bfloat16(y) if np.asarray(y).dtype.kind == "f" else np.asarray(y) for y in many(function(*xs))]
        wide = WIDE[dtype]
        try:
            return [np.asarray(y) for y in many(function(*[np.asarray(x).astype(wide) for x in xs]))]
        except TypeError:
            narrow = np.complex128 if dtype in COMPLEX else np.float64
            return [np.asarray(y) for y in many(function(*[np.asarray(x).astype(narrow) for x in xs]))]


def result_dtype(want, dtype):
    """The dtype an output has in MXNet's promotion, given what the oracle returned for operands of `dtype`."""
    if want.dtype.kind in "biu":
        return str(want.dtype)
    if dtype in COMPLEX and want.dtype.kind == "f":
        return {"complex64": "float32", "complex128": "float64"}[dtype]
    return dtype


class Maker:
    """Makes the arguments of one probe call, the same numbers for NumPy and for us.

    `layout` says how our arrays lie in memory: "dense", "spread" (every second element), "reversed" (negative strides)
    or "transposed" (the last axis is not the fastest). `instead` holds arrays to take, in order, not fresh floats.
    """

    def __init__(self, name, call, *, ours, layout="dense", dtype="float32", instead=()):
        self.entry = ENTRIES[name]
        self.call = call
        self.ours = ours
        self.layout = layout
        self.dtype = dtype
        self.floats = []
        self.instead = list(instead)
        self.rng = generator(name, call)

    def arguments(self):
        """Positional and keyword arguments."""
        from mxnet import numpy as mx_numpy

        scope = {"f": self.f, "i": self.i, "b": self.b, "c": self.c}
        scope |= {"np": mx_numpy if self.ours else np, "numpy": np, "nan": np.nan, "inf": np.inf}
        # The expressions are part of this project's own registry.
        return eval(f"(lambda *args, **kwargs: (args, kwargs))({self.call})", scope)

    def f(self, shape):
        """Floats in the probe's range."""
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        x = np.asarray(self.rng.uniform(*self.entry["range"], shape)).astype(self.dtype)
        self.floats.append(x)
        return self.instead.pop(0) if self.instead else self.given(x)

    def c(self, shape):
        """Complex numbers with parts in the probe's range."""
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        low, high = self.entry["range"]
        x = self.rng.uniform(low, high, shape) + 1j * self.rng.uniform(low, high, shape)
        x = np.asarray(x).astype({"float32": "complex64"}.get(self.dtype, "complex128"))
        self.floats.append(x)
        return self.instead.pop(0) if self.instead else self.given(x)

    def i(self, shape, hi=8):
        """Integers in 0..hi."""
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        return self.given(np.asarray(self.rng.integers(0, hi, shape)))

    def b(self, shape):
        """Truth values."""
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        return self.given(np.asarray(self.rng.random(shape) < 0.5))

    def given(self, x):
        """`x` for the side that is called."""
        if not self.ours:
            return x.astype({"f": np.float64, "c": np.complex128}.get(x.dtype.kind, x.dtype))
        return laid_out(x, self.layout)


def laid_out(x, layout):
    """An array of ours with the values of `x` and this kind of strides."""
    if layout == "dense" or x.ndim == 0:
        return _core.array(x)
    if layout == "spread":
        base = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
        base[..., ::2] = x
        return _core.array(base)[..., ::2]
    if layout == "reversed":
        return _core.array(np.ascontiguousarray(x[..., ::-1]))[..., ::-1]
    assert layout == "transposed"
    return _core.array(np.ascontiguousarray(x.T)).T
