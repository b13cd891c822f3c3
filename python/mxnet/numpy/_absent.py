"""Names of NumPy that this package lacks, and what to use instead."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["LIB", "NUMPY", "RANDOM", "attributes"]

_TEXT = "arrays of numbers hold no text: keep it in lists, or use numpy.{name}"
_DATES = "there are no dates: use numbers of days or seconds, or numpy.{name}"
_RECORDS = "there are no records: use one array for each field, or numpy.{name}"
_WIDER = "no dtype is wider than float64 and complex128"
_HOST = "numpy.{name} of x.asnumpy() does it on the host"

#: Names of NumPy's main namespace; `{name}` is replaced by the name.
NUMPY: Mapping[str, str] = {
    **dict.fromkeys(
        ("bytes_", "char", "character", "fromregex", "str_", "string_", "strings", "unicode_", "chararray"), _TEXT
    ),
    **dict.fromkeys(
        (
            "busday_count",
            "busday_offset",
            "busdaycalendar",
            "datetime64",
            "datetime_as_string",
            "datetime_data",
            "is_busday",
            "isnat",
            "timedelta64",
        ),
        _DATES,
    ),
    **dict.fromkeys(("flexible", "rec", "recarray", "record", "void"), _RECORDS),
    **dict.fromkeys(("clongdouble", "complex256", "float128", "longdouble", "longfloat"), _WIDER),
    **dict.fromkeys(("asmatrix", "bmat", "mat", "matrix"), "matrices are arrays of two axes: use np.array and `@`"),
    **dict.fromkeys(
        ("f2py", "get_include", "show_config", "show_runtime", "ctypeslib"), "it is about NumPy's own build"
    ),
    **dict.fromkeys(("getbufsize", "setbufsize"), "there are no buffers of conversions to size"),
    **dict.fromkeys(("mintypecode", "typename"), "use np.result_type and the names of dtypes"),
    "core": "use the names of np itself",
    "flatiter": "it is the class of x.flat",
    "frompyfunc": "use np.vectorize",
    "info": "use help()",
    "ma": "there are no masked arrays: use np.where, `where=` of reductions, or NaN and np.nansum and the like",
    "memmap": "use np.asarray(numpy.memmap(...)), which shares the memory",
    "nditer": "iterate over np.ndindex, np.ndenumerate or x.flat, or over x.asnumpy() with numpy.nditer",
    "nested_iters": "use np.ndindex",
    "object_": "arrays of numbers hold no objects: use lists, or numpy.object_",
    "poly1d": "use np.polyval, np.polymul, np.polyder, ... on coefficients, or numpy.poly1d of x.asnumpy()",
    "polynomial": "use np.polyval, np.polyfit, np.roots, ..., or numpy.polynomial of x.asnumpy()",
    "test": "NumPy's tests are about NumPy",
    "typing": "use numpy.typing; arrays are np.ndarray",
    # Names that NumPy 2 has removed.
    "Inf": "use np.inf",
    "Infinity": "use np.inf",
    "NINF": "use -np.inf",
    "NaN": "use np.nan",
    "NAN": "use np.nan",
    "PINF": "use np.inf",
    "alltrue": "use np.all",
    "asfarray": "use np.asarray with a dtype",
    "asscalar": "use x.item()",
    "cast": "use np.asarray(x, dtype)",
    "complex_": "use np.complex128",
    "cumproduct": "use np.cumprod",
    "find_common_type": "use np.promote_types or np.result_type",
    "float_": "use np.float64",
    "in1d": "use np.isin",
    "issctype": "use np.issubdtype",
    "msort": "use np.sort with axis=0",
    "product": "use np.prod",
    "round_": "use np.round",
    "sometrue": "use np.any",
    "trapz": "use np.trapezoid",
}

#: Names of NumPy's namespace `random`.
RANDOM: Mapping[str, str] = {
    **dict.fromkeys(
        ("MT19937", "PCG64", "PCG64DXSM", "SFC64"),
        "there is one generator of bits, Philox 4x32-10: use default_rng(seed), or Generator(Philox(seed))",
    ),
    **dict.fromkeys(
        ("get_bit_generator", "set_bit_generator"), "there is one generator of bits: use get_state and set_state"
    ),
    "bit_generator": "it is internal to NumPy: use BitGenerator",
    "mtrand": "it is internal to NumPy: use RandomState",
    "random_integers": "use randint(low, high + 1)",
    "test": "NumPy's tests are about NumPy",
}

#: Names of NumPy's namespace `lib`.
LIB: Mapping[str, str] = {
    "Arrayterator": "iterate over slices of the array",
    "add_docstring": "it is about NumPy's own functions",
    "add_newdoc": "it is about NumPy's own functions",
    "format": "np.save and np.load read and write these files, numpy.lib.format has their parts",
    "introspect": "it is about NumPy's own build",
    "recfunctions": _RECORDS.format(name="lib.recfunctions"),
    "tracemalloc_domain": "it is about NumPy's own memory",
    "user_array": "derive a class from np.ndarray",
}


def attributes(module: str, hints: Mapping[str, str], late: tuple[str, ...] = ()) -> Callable[[str], Any]:
    """The `__getattr__` of a module: says what to use in place of names that are absent.

    Parameters
    ----------
    module : str
        Name of the module.
    hints : mapping
        Absent name -> what to use instead.
    late : tuple of str
        Submodules that are imported when first asked for.
    """

    def attribute(name: str) -> Any:
        if name in late:
            return importlib.import_module(f"{module}.{name}")
        problem = f"module {module!r} has no attribute {name!r}"
        if name in hints:
            problem += f": {hints[name].format(name=name)}"
        raise AttributeError(problem, name=name)

    attribute.__name__ = attribute.__qualname__ = "__getattr__"
    return attribute
