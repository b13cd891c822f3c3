"""Text of the type stubs: of `mxnet._core`, and of the packages that hand out its operators under their public names.

What an object is and which arguments it takes comes from the object itself, what an operator's argument may be from the
registry, and what an operator returns from calling it as its standard tests do. Nothing is listed here but how kinds of
parameters are spelt as types.
"""

import __future__

import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Iterator
from types import BuiltinFunctionType, ClassMethodDescriptorType, FunctionType, ModuleType
from typing import Any

Operator = dict[str, Any]

KINDS = {
    "array": "ArrayLike",
    "arrays": "Sequence[ArrayLike]",
    "bool": "builtins.bool",
    "int": "int",
    "float": "float",
    "scalar": "complex",
    "ints": "int | Sequence[int]",
    "axes of each": "Sequence[int | Sequence[int]]",
    "words": "str | Sequence[str]",
    "separate ints": "int | Sequence[int]",
    "floats": "float | Sequence[float]",
    "str": "str",
    "choice": "str",
    "float or choice": "float | str",
    "dtype": "DTypeLike",
    "device": "Device",
    "index": "Any",
    "out": "ndarray",
}
# What the forms of operators add behind their parameters.
ADDED = {
    "out": "ndarray | None",
    "where": "ArrayLike",
    "casting": "str",
    "order": "str",
    "dtype": "DTypeLike | None",
}
# Special methods whose result the data model fixes; those of arrays that are not here give arrays.
SPECIAL = {
    "__len__": "int",
    "__bool__": "builtins.bool",
    "__int__": "int",
    "__index__": "int",
    "__float__": "float",
    "__complex__": "complex",
    "__contains__": "builtins.bool",
    "__format__": "str",
    "__iter__": "Iterator[ndarray]",
    "__setitem__": "None",
    "__delitem__": "None",
    "__array__": "numpy.ndarray[Any, Any]",
    "__array_interface__": "dict[str, Any]",
    "__arrow_array__": "Any",
    "__arrow_c_array__": "tuple[Any, Any]",
    "__dlpack__": "Any",
    "__dlpack_device__": "tuple[int, int]",
    "__reduce__": "tuple[Any, ...]",
    "__buffer__": "memoryview",
    "__release_buffer__": "None",
    "__divmod__": "tuple[ndarray, ndarray]",
    "__rdivmod__": "tuple[ndarray, ndarray]",
    "__array_ufunc__": "Any",
    "__array_function__": "Any",
    "__array_namespace__": "ModuleType",
    "__class_getitem__": "Any",
    "__floor__": "int | ndarray",
    "__ceil__": "int | ndarray",
    "__trunc__": "int | ndarray",
    "__round__": "int | ndarray",
    "__exit__": "None",
}
# What `with` binds, by class.
ENTERED = {"Device": "Device", "Mode": "None"}
# Of these `object` has one too, so that every class shows it: only the rest of what `object` has is left out.
KEPT_OF_OBJECT = {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__format__", "__reduce__"}
# Machinery of the interpreter that is no attribute of instances.
HIDDEN = ("__weakref__", "__dict__", "__vectorcalloffset__")
# Their slot has a modulus that arrays do not take, and `__ipow__` has none: a type checker wants the three alike.
POWERS = ("__pow__", "__rpow__")
PROPERTIES = {
    "shape": "tuple[int, ...]",
    "strides": "tuple[int, ...]",
    "ndim": "int",
    "size": "int",
    "itemsize": "int",
    "nbytes": "int",
    "dtype": "numpy.dtype[Any]",
    "device": "Device",
    "ctx": "Device",
    "context": "Device",
    "T": "ndarray",
    "mT": "ndarray",
    "real": "ndarray",
    "imag": "ndarray",
    "flat": "Iterator[ndarray]",
    "grad": "ndarray | None",
    "nin": "int",
    "nout": "int",
    "nargs": "int",
    "ntypes": "int",
    "types": "list[str]",
    "identity": "builtins.bool | float | None",
    "signature": "str | None",
    "__name__": "str",
    "__qualname__": "str",
    "__text_signature__": "str",
    "stype": "str",
    "device_type": "str",
    "device_id": "int",
    "device_typeid": "int",
}
# The classes that have operators of a namespace as methods.
METHODS_OF = {"ndarray": "ndarray", "np.random": "GeneratorBase"}
# What methods of arrays that are no operators give.
METHODS = {
    "asnumpy": "numpy.ndarray[Any, Any]",
    "to_numpy": "numpy.ndarray[Any, Any]",
    "detach": "ndarray",
    "compress": "ndarray",
    "partition": "None",
    "put": "None",
    "sort": "None",
    "to_device": "ndarray",
    "drop_grad": "None",
    "attach_grad": "None",
    "backward": "None",
    "wait_to_read": "None",
    "wait_to_write": "None",
    "zero_grad": "None",
    "accumulate": "ndarray",
    "at": "None",
    "outer": "Results",
    "reduce": "ndarray",
    "reduceat": "ndarray",
}
# Elementwise functions are objects of one class; what they give is its parameter: `add: ufunc[ndarray]`.
UFUNC = (
    "self, x: ArrayLike, /, *args: ArrayLike | None, out: ndarray | tuple[ndarray | None, ...] | None = ..., "
    "where: ArrayLike = ..., casting: str = ..., order: str = ..., dtype: DTypeLike | None = ..., "
    "subok: builtins.bool = ..., signature: str | tuple[DTypeLike | None, ...] | None = ...",
    "Results",
)
# Functions of the extension module: the operators' machinery, which no registry describes.
FUNCTIONS = {
    "array": "ndarray",
    "asarray": "ndarray",
    "from_dlpack": "ndarray",
    "backward": "None",
    "can_cast": "builtins.bool",
    "current_device": "Device",
    "default_dtype": "numpy.dtype[Any]",
    "engine_mode": "str",
    "is_recording": "builtins.bool",
    "is_training": "builtins.bool",
    "mark_variables": "None",
    "memory_location": "tuple[int, int, builtins.bool, builtins.bool]",
    "num_gpus": "int",
    "num_threads": "int",
    "numpy_promotion": "builtins.bool",
    "result_type": "numpy.dtype[Any]",
    "registry": "list[dict[str, Any]]",
    "seed": "None",
    "set_current_device": "Device",
    "set_num_threads": "None",
    "set_recording": "builtins.bool",
    "set_training": "builtins.bool",
    "waitall": "None",
}
HEADER = """# {mark}; `make gen` rewrites it.
import builtins
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any, Generic, TypeVar

import numpy
import numpy._core._exceptions
import numpy.exceptions
from numpy.typing import ArrayLike, DTypeLike

"""


def operator_kinds(operator: Operator) -> dict[str, tuple[str, bool]]:
    """Parameter -> (kind, whether it may be None)."""
    return {name: (kind, nullable) for name, kind, nullable in operator["params"]}


def annotation(parameter: inspect.Parameter, kinds: dict[str, tuple[str, bool]]) -> str:
    """The type of one parameter; Any where nothing says more."""
    if parameter.name in kinds:
        kind, nullable = kinds[parameter.name]
        return f"{KINDS[kind]} | None" if nullable else KINDS[kind]
    if kinds and parameter.name in ADDED:
        return ADDED[parameter.name]
    if parameter.name == "axis" and parameter.default == 0:
        return "int | Sequence[int] | None"  # folds of elementwise functions
    if isinstance(parameter.default, bool | int | float | str):
        return "builtins." * isinstance(parameter.default, bool) + type(parameter.default).__name__
    return "Any"


def arguments(function: Any, kinds: dict[str, tuple[str, bool]], first: str = "") -> str:
    """What stands between the parentheses of a `def`; everything is allowed where an object does not say."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (ValueError, TypeError):
        return ", ".join(part for part in (first, "*args: Any", "**kwargs: Any") if part)
    parts: list[str] = []
    if first and not (parameters and parameters[0].name == first):
        parts.append(first)
    for index, parameter in enumerate(parameters):
        before = parameters[index - 1].kind if index else None
        if before is parameter.POSITIONAL_ONLY and parameter.kind is not parameter.POSITIONAL_ONLY:
            parts.append("/")
        starred = any(part.startswith("*") for part in parts)
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
        if index == 0 and parameter.name in ("self", "cls"):
            parts.append(parameter.name)
            continue
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        default = "" if parameter.default is parameter.empty else " = ..."
        if first and kinds.get(parameter.name, ("", False))[0] == "separate ints":
            # `x.reshape(2, 3)` and `x.reshape((2, 3))`: what follows is then given by name.
            star, default = "*", ""
        parts.append(f"{star}{parameter.name}: {annotation(parameter, kinds)}{default}")
    if parameters and parameters[-1].kind is inspect.Parameter.POSITIONAL_ONLY:
        parts.append("/")
    return ", ".join(parts)


def operator_line(name: str, function: Any, operator: Operator, result: str, first: str = "") -> str:
    return f"def {name}({arguments(function, operator_kinds(operator), first)}) -> {result}: ..."


def base_name(base: type, module: str) -> str:
    """How a class names its base: by module, since an error of ours may have the name of the one it is made from."""
    return base.__name__ if base.__module__ in (module, "mxnet.error") else f"{base.__module__}.{base.__name__}"


def class_lines(cls: type, methods: dict[str, Operator], results: dict[str, str]) -> Iterator[str]:
    """A class: its properties, its methods that are operators, its other methods."""
    bases = [base_name(base, cls.__module__) for base in cls.__bases__ if base is not object]
    bases += ["Generic[Results]"] * (cls.__name__ == "ufunc")
    yield f"class {cls.__name__}({', '.join(bases)}):" if bases else f"class {cls.__name__}:"
    body: list[str] = []
    is_array = cls.__name__ == "ndarray"
    for name, member in sorted(vars(cls).items()):
        if name == "__new__" and not issubclass(cls, BaseException):
            body.append(f"def __init__({arguments(cls, {}, 'self')}) -> None: ...")
        elif (name in vars(object) and name not in KEPT_OF_OBJECT) or name in HIDDEN:
            continue
        elif name == "__call__" and cls.__name__ == "ufunc":
            body.append(f"def __call__({UFUNC[0]}) -> {UFUNC[1]}: ...")
        elif name in ("__eq__", "__ne__"):
            result = "ndarray: ...  # type: ignore[override]" if is_array else "builtins.bool: ..."
            body.append(f"def {name}(self, other: object, /) -> {result}")
        elif name == "__hash__":
            body.append("def __hash__(self) -> int: ..." if member else "__hash__ = None  # type: ignore[assignment]")
        elif isinstance(member, staticmethod | classmethod):
            decorator, first = ("@staticmethod", "") if isinstance(member, staticmethod) else ("@classmethod", "cls")
            body += [decorator, f"def {name}({arguments(member.__func__, {}, first)}) -> Any: ..."]
        elif isinstance(member, ClassMethodDescriptorType):
            result = SPECIAL.get(name, "Any")
            body += ["@classmethod", f"def {name}({arguments(member.__get__(None, cls), {}, 'cls')}) -> {result}: ..."]
        elif inspect.isdatadescriptor(member):
            result = PROPERTIES.get(name) or SPECIAL.get(name, "Any")
            body += ["@property", f"def {name}(self) -> {result}: ..."]
        elif name in methods:
            operator = methods[name]
            body.append(operator_line(name, member, operator, results[operator["name"]], "self"))
        elif name == "__enter__":
            body.append(f"def __enter__(self) -> {ENTERED[cls.__name__]}: ...")
        elif callable(member):
            default = "ndarray" if is_array and name.startswith("__") else "Any"
            result = SPECIAL.get(name) or METHODS.get(name, default)
            taken = "self, value: Any, /" if is_array and name in POWERS else arguments(member, {}, "self")
            body.append(f"def {name}({taken}) -> {result}: ...")
    for line in body or ["..."]:
        yield f"    {line}"


def by_bases(classes: Iterable[type]) -> list[type]:
    """Classes so that each comes behind its bases, otherwise by name."""
    return sorted(classes, key=lambda cls: (len(cls.__mro__), cls.__name__))


def core_stub(core: ModuleType, operators: list[Operator], results: dict[str, str], mark: str) -> str:
    """The stub of the extension module itself."""
    methods: dict[str, dict[str, Operator]] = {"ndarray": {}, "GeneratorBase": {}}
    for operator in operators:
        for surface in operator["surface"]:
            space, _, name = surface.rpartition(".")
            if space in METHODS_OF:
                methods[METHODS_OF[space]][name] = operator
    public = {name: found for name, found in sorted(vars(core).items()) if not name.startswith("__")}
    lines = [
        'Results = TypeVar("Results")',
        "__version__: str",
        "namespaces: dict[str, dict[str, Callable[..., Any]]]",
        "partition_parts: dict[str, Any]",
        "",
    ]
    for cls in by_bases({found for found in public.values() if isinstance(found, type)}):
        lines += [*class_lines(cls, methods.get(cls.__name__, {}), results), ""]
    for name, found in public.items():
        if isinstance(found, BuiltinFunctionType):
            lines.append(f"def {name}({arguments(found, {})}) -> {FUNCTIONS.get(name, 'Any')}: ...")
        elif isinstance(found, type) and name != found.__name__:
            lines.append(f"{name} = {found.__name__}")
    return HEADER.format(mark=mark) + "\n".join(lines) + "\n"


def package_stub(
    package: ModuleType,
    core: ModuleType,
    space: dict[str, str],
    operators: dict[str, Operator],
    results: dict[str, str],
    mark: str,
) -> str:
    """The stub of a package that hands out operators: those with their types, all else by where it is defined."""
    imports: list[str] = []
    lines: list[str] = []
    for module in pkgutil.iter_modules(getattr(package, "__path__", None) or []):
        # Some are imported when they are first asked for.
        if not module.name.startswith("_"):
            importlib.import_module(f"{package.__name__}.{module.name}")
    for name in sorted(name for name in vars(package) if not name.startswith("__")):
        found = vars(package)[name]
        if isinstance(found, ModuleType):
            if found.__name__ == f"{package.__name__}.{name}" and not name.startswith("_"):
                imports.append(f"from {package.__name__} import {name} as {name}")
        elif name in space:
            operator = operators[space[name]]
            result = results[operator["name"]]
            is_ufunc = type(found).__name__ == "ufunc"
            lines.append(f"{name}: ufunc[{result}]" if is_ufunc else operator_line(name, found, operator, result))
        elif name.startswith("_") or isinstance(found, __future__._Feature):
            continue
        elif name in vars(core) and vars(core)[name] is found:
            imports.append(f"from mxnet._core import {name} as {name}")
        elif isinstance(found, FunctionType | type) and found.__module__ != package.__name__:
            if found.__module__.startswith(("mxnet.", "numpy")):
                imports.append(f"from {found.__module__} import {found.__name__} as {name}")
        elif isinstance(found, float | int | str | bool):
            lines.append(f"{name}: {type(found).__name__}")
        elif found is None:
            lines.append(f"{name}: None")
        else:
            lines.append(f"{name}: Any")
    fixed = [
        "from mxnet._core import Device as Device",
        "from mxnet._core import ndarray as ndarray",
        "from mxnet._core import ufunc as ufunc",
    ]
    return HEADER.format(mark=mark) + "\n".join([*sorted({*imports, *fixed}), "", *lines]) + "\n"


def result_type(values: Iterable[Any], array: type) -> str:
    """The type that holds for all these results."""
    kinds = {
        "ndarray"
        if isinstance(value, array)
        else f"{type(value).__name__}[ndarray, ...]"
        if isinstance(value, tuple) and all(isinstance(part, array) for part in value)
        else "list[ndarray]"
        if isinstance(value, list) and all(isinstance(part, array) for part in value)
        else "Any"
        for value in values
    }
    return kinds.pop() if len(kinds) == 1 else "Any"
