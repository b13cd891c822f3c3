"""The names NumPy's own test modules see in place of NumPy: ours, and NumPy's only for what is not under test.

`load(name)` gives what `import name` would have given. Under test are the functions of `numpy`, `numpy.linalg`,
`numpy.fft` and `numpy.lib`; NumPy's random module only makes their input, so its arrays are converted to ours and the
values stay those that the tests expect. A public name that we lack becomes an object that raises when it is used, so
that one missing function does not take a whole module with it.
"""

import functools
import importlib
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy
import numpy.testing

import mxnet as mx

# What tests of numbers use to set their scene, and what names kinds of element that we do not have.
SCENERY = frozenset(
    """
    errstate geterr seterr typecodes sctypeDict ScalarType typename longdouble clongdouble float128 complex256 object_
    str_ bytes_ void datetime64 timedelta64 character flexible record True_ False_ little_endian dtypes ma matrix char
    strings rec recarray nditer memmap busdaycalendar test isnat datetime_data poly1d datetime_as_string frompyfunc
    nested_iters
    """.split()  # noqa: SIM905
)
CORE = ("umath", "numeric", "shape_base", "multiarray", "fromnumeric", "arrayprint")
LIB = ("function_base", "index_tricks", "stride_tricks", "nanfunctions", "shape_base", "twodim_base", "type_check")


class Missing:
    """Stands for a public name that mx.np does not have."""

    def __init__(self, name: str) -> None:
        self.__dict__["name"] = name
        self.__dict__["__name__"] = name

    def _raise(self, *_: Any, **__: Any) -> Any:
        raise AttributeError(f"mx.np has no {self.name}")

    __call__ = __getattr__ = __getitem__ = __iter__ = __enter__ = __exit__ = _raise  # type: ignore[assignment]


class Refused:
    """Stands for an attribute of a test class that we refused to make: raises the refusal when it is used."""

    def __init__(self, error: Exception) -> None:
        self.__dict__["error"] = error

    def _raise(self, *_: Any, **__: Any) -> Any:
        raise self.__dict__["error"]

    __call__ = __getattr__ = __getitem__ = __iter__ = __len__ = _raise


class Namespace(types.ModuleType):
    """A module of ours under NumPy's name; what it lacks is looked up in mx.np.

    While a test module is imported (`lenient`), tables of parameters are made: there NumPy itself makes what we refuse
    to make, so that one parameter of objects does not take the module with it. The rules exclude its test afterwards.
    """

    lenient = True

    def __init__(self, name: str, ours: Any, original: Any) -> None:
        super().__init__(name)
        self.__dict__["_ours"] = ours
        self.__dict__["_original"] = original

    def __getattr__(self, name: str) -> Any:
        dotted = f"{self.__name__}.{name}"
        if name == "__all__":
            return self._original.__all__
        if dotted in MODULES:
            return load(dotted)
        original = getattr(self._original, name, None)
        for place in (self._ours, mx.np):
            if hasattr(place, name):
                found = getattr(place, name)
                if callable(found) and original is not None and not isinstance(found, type | mx.np.ufunc):
                    return or_else(found, original)
                return or_else(found, original) if self.lenient and name == "finfo" else found
        if not hasattr(self._original, name):
            raise AttributeError(f"numpy has no {dotted}")
        if self.lenient and sys._getframe(1).f_globals.get("__name__") != __name__:
            return original
        if name in SCENERY or name.startswith("_") or not hasattr(numpy, name):
            return getattr(self._original, name)  # a test of what is private to NumPy is excluded by rule
        return Missing(dotted)


class OrElse:
    """A function of ours, and NumPy's where ours refuses the type of element while a test module is imported.

    An object, since functions become methods in the bodies of test classes, where NumPy's do not.
    """

    def __init__(self, function: Callable[..., Any], original: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function, updated=())
        self._original = original

    def __call__(self, *args: Any, **options: Any) -> Any:
        if not Namespace.lenient:
            return self.__wrapped__(*args, **options)
        try:
            return self.__wrapped__(*args, **options)
        except (TypeError, ValueError, OverflowError):
            return self._original(*args, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["__wrapped__"], name)


WRAPPED: dict[int, OrElse] = {}


def or_else(function: Callable[..., Any], original: Callable[..., Any]) -> OrElse:
    """The one object for a function: tests ask whether functions are the same."""
    return WRAPPED.setdefault(id(function), OrElse(function, original))


METHODS = {name: getattr(mx.np.ndarray, name) for name in ("astype", "view")}


def numpys_where_we_refuse(name: str) -> Callable[..., Any]:
    """The method while tables of parameters are made."""

    def method(self: Any, *args: Any, **options: Any) -> Any:
        def numpys(*_: Any, **__: Any) -> Any:
            return getattr(self.asnumpy(), name)(*args, **options)

        return OrElse(METHODS[name], numpys)(self, *args, **options)

    return method


def be_lenient(lenient: bool) -> None:
    """Switches between importing a test module and running it."""
    Namespace.lenient = lenient
    for name, method in METHODS.items():
        setattr(mx.np.ndarray, name, numpys_where_we_refuse(name) if lenient else method)


def is_instance(value: Any, kinds: Any) -> bool:
    """`isinstance`, where an array of no axes is what NumPy calls a scalar."""
    if isinstance(value, kinds):
        return True
    if not isinstance(value, mx.np.ndarray) or value.ndim or value.dtype == mx.np.bfloat16:
        return False
    scalars = [kind for kind in (kinds if isinstance(kinds, tuple) else (kinds,)) if isinstance(kind, type)]
    return any(issubclass(value.dtype.type, kind) for kind in scalars if issubclass(kind, numpy.generic))


def ours(value: Any) -> Any:
    """NumPy's arrays of numbers as ours."""
    if (
        isinstance(value, numpy.ndarray | numpy.generic)
        and value.dtype.kind in "biufc"
        and value.dtype.char not in "gG"
    ):
        return mx.np.array(value)
    return value


def numpys(value: Any) -> Any:
    """Our arrays as NumPy's, also inside lists, tuples and dictionaries; those of no axes as scalars."""
    if isinstance(value, mx.np.ndarray):
        return value.asnumpy()[()]
    if type(value) in (list, tuple):
        return type(value)(numpys(item) for item in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return tuple(numpys(item) for item in value)
    if type(value) is dict:
        return {key: numpys(item) for key, item in value.items()}
    return value


def converting(function: Callable[..., Any], convert: Callable[[Any], Any], results: bool) -> Callable[..., Any]:
    """`function` with its results (or its arguments) converted."""

    @functools.wraps(function)
    def wrapper(*args: Any, **options: Any) -> Any:
        if results:
            return convert(function(*args, **options))
        return function(*map(convert, args), **{key: convert(option) for key, option in options.items()})

    return wrapper


class Source:
    """NumPy's random module or a generator of it, giving our arrays."""

    def __init__(self, original: Any) -> None:
        self._original = original

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._original, name)
        if name in ("RandomState", "default_rng", "Generator"):
            return lambda *args, **options: Source(value(*args, **options))
        if name == "shuffle":  # in place
            return self._shuffle
        return converting(value, ours, results=True) if callable(value) else value

    def _shuffle(self, array: Any) -> None:
        if isinstance(array, mx.np.ndarray):
            host = array.asnumpy()
            self._original.shuffle(host)
            array[...] = mx.np.array(host)
        else:
            self._original.shuffle(array)


def testing() -> types.ModuleType:
    """numpy.testing whose comparisons take our arrays."""
    module = types.ModuleType("numpy.testing")
    for name in dir(numpy.testing):
        value = getattr(numpy.testing, name)
        compares = name.startswith("assert_") and not any(word in name for word in ("raises", "warn", "cycles"))
        if compares and inspect.isfunction(value):
            value = converting(value, numpys, results=False)
        setattr(module, name, value)
    return module


MODULES: dict[str, Callable[[], Any]] = {
    "numpy": lambda: mx.np,
    "numpy.linalg": lambda: mx.np.linalg,
    "numpy.fft": lambda: mx.np.fft,
    "numpy.lib": lambda: mx.np,
    "numpy.lib.stride_tricks": lambda: mx.np.lib.stride_tricks,
    "numpy._core": lambda: mx.np,
    **dict.fromkeys([f"numpy._core.{name}" for name in CORE], lambda: mx.np),
    **dict.fromkeys([f"numpy.lib._{name}_impl" for name in LIB], lambda: mx.np),
}


@functools.cache
def load(name: str) -> Any:
    """The module that a test sees under NumPy's `name`."""
    if name == "numpy.testing":
        return testing()
    if name == "numpy.random":
        return Source(numpy.random)
    original = importlib.import_module(name)
    if name not in MODULES:
        return original
    try:
        module = MODULES[name]()
    except AttributeError:
        module = mx.np
    namespace = Namespace(name, module, original)
    if name == "numpy._core.umath":  # tests look for functions of elements in its dictionary
        functions = [item for item in dir(original) if isinstance(getattr(original, item), numpy.ufunc)]
        namespace.__dict__.update({item: getattr(mx.np, item) for item in functions if hasattr(mx.np, item)})
    if name == "numpy":
        namespace.__dict__["testing"] = load("numpy.testing")
        namespace.__dict__["random"] = load("numpy.random")
    return namespace


def load_from(module: str, name: str) -> Any:
    """What `from module import name` would have given."""
    try:
        return getattr(load(module), name)
    except AttributeError:
        return load(f"{module}.{name}")
