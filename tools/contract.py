"""Compare the installed package with the tables of the public API in `tests/api/*.tsv`.

A row of scope `must` has to exist and to take the arguments its signature lists; a row of scope `out` must not exist.
What is not there yet, and where a signature differs on purpose, are the two generated lists beside the tables.
"""

import ast
import csv
import importlib
import inspect
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

TABLES = ("np", "npx", "gluon", "toplevel")
HOMES = {"numpy": "np", "mx.np": "np", "mx.npx": "npx", "mx": ""}  # table's module -> ours, below `mxnet`

# NumPy's knobs for its own class machinery and inner loops; our arrays have one class and one loop.
NUMPY_ONLY = {"like", "subok"}
UFUNC_ONLY = {"casting", "order", "subok", "signature"}

MISSING = object()


@dataclass(frozen=True)
class Name:
    """One public name: `np.linalg.svd`, `gluon.Block.save`. More than one signature: any of them will do."""

    path: str
    kind: str
    scope: str
    signatures: tuple[str, ...]


@dataclass(frozen=True)
class Parameter:
    name: str
    default: str | None = None  # as text; None when it has none
    is_keyword_only: bool = False
    is_variadic: bool = False


def home(module: str, name: str) -> str:
    """The path below `mxnet` of a table's module and name."""
    for prefix, ours in HOMES.items():
        if module == prefix or module.startswith(prefix + "."):
            return ".".join(part for part in (ours, module[len(prefix) + 1 :], name) if part)
    return f"{module}.{name}"


def read_names(folder: Path) -> Iterator[Name]:
    """All names of the tables, members of classes behind their class."""
    seen = set()
    for table in TABLES:
        with (folder / f"{table}.tsv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
                # Operators without a public name; what is no name of the package; slots that only raise an error.
                if row["module"] in ("backend", "(absent)") or row.get("reason") == "error-only":
                    continue
                texts = (row.get(column) for column in ("numpy_signature", "mxnet2b1_signature", "signature"))
                signatures = tuple(text for text in texts if text and text.startswith("(") and text.endswith(")"))
                path = home(row["module"], row["name"])
                names = [Name(path, row["kind"], row["scope"], signatures)]
                if row["scope"] == "must":
                    texts = [text for text in (row.get("method_signatures") or "-").split("; ") if "(" in text]
                    methods = {text.partition("(")[0]: text[text.index("(") :] for text in texts}
                    members = f"{row.get('methods') or '-'} {row.get('properties') or '-'}".split()
                    for member in members:
                        if member != "-":
                            text = methods.get(member)
                            names.append(Name(f"{path}.{member}", "member", "must", (text,) if text else ()))
                for name in names:
                    if name.path not in seen:
                        seen.add(name.path)
                        yield name


def find(package: ModuleType, path: str) -> Any:
    """The object at a dotted path below the package; MISSING when there is none."""
    with warnings.catch_warnings():
        # Older spellings are in the tables too, and warn when they are looked up.
        warnings.simplefilter("ignore", DeprecationWarning)
        return _find(package, path)


def _find(package: ModuleType, path: str) -> Any:
    found: Any = package
    for part in path.split("."):
        parent = found
        found = inspect.getattr_static(parent, part, MISSING)
        if found is not MISSING:
            found = getattr(parent, part)
        elif isinstance(parent, ModuleType):
            # A sub-package need not be imported by its parent; a module's own __getattr__ may make the name.
            found = getattr(parent, part, MISSING)
            if found is MISSING:
                if not hasattr(parent, "__path__"):
                    return MISSING  # a module that is no package holds no modules
                try:
                    found = importlib.import_module(f"{parent.__name__}.{part}")
                except ImportError as error:
                    if error.name != f"{parent.__name__}.{part}":
                        raise
                    return MISSING
        else:
            return MISSING
    return found


def split_arguments(text: str) -> list[str]:
    """Split `a, b=(1, 2), c=<class 'int'>` at the commas that separate arguments."""
    parts, depth, start = [], 0, 0
    for index, letter in enumerate(text):
        if letter in "([{<":
            depth += 1
        elif letter in ")]}>":
            depth -= 1
        elif letter == "," and not depth:
            parts.append(text[start:index])
            start = index + 1
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def parse_signature(text: str) -> list[Parameter]:
    """The parameters a table lists, without `self`; `/` is dropped, since a name that may be used is no fault."""
    parameters, keyword_only = [], False
    for part in split_arguments(text[1:-1]):
        name, _, default = part.partition("=")
        name = name.partition(":")[0].strip()
        if name in ("/", "self", "cls"):
            continue
        if name == "*":
            keyword_only = True
        elif name.startswith("*"):
            parameters.append(Parameter(name.lstrip("*"), is_variadic=True))
            keyword_only = keyword_only or not name.startswith("**")
        else:
            default_text = default.strip() if default and default != "<required>" else None
            parameters.append(Parameter(name, default_text, keyword_only))
    return parameters


def same_default(table: str, ours: Any) -> bool:
    """Whether a default is the one the table prints. What is no literal there (a class, a sentinel) says nothing."""
    try:
        value = ast.literal_eval(table)
    except (ValueError, SyntaxError):
        return True
    if isinstance(value, float) and isinstance(ours, (int, float)):
        return math.isclose(value, ours, rel_tol=1e-6)  # some defaults were printed through float32
    if isinstance(value, (list, tuple)) and isinstance(ours, (list, tuple)):
        return list(value) == list(ours)
    return bool(value == ours) and isinstance(value, bool) == isinstance(ours, bool)


def compare(table: str, ours: inspect.Signature, ignored: set[str]) -> list[str]:
    """What keeps a call that the table's signature allows from being a call of ours."""
    faults = []
    mine = [parameter for parameter in ours.parameters.values() if parameter.name not in ("self", "cls")]
    named = {parameter.name: parameter for parameter in mine}
    positional = [p for p in mine if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    has_args = any(p.kind is p.VAR_POSITIONAL for p in mine)
    position = 0
    for parameter in parse_signature(table):
        if parameter.name in ignored or parameter.is_variadic:
            continue
        found = named.get(parameter.name)
        if found is None and has_args and parameter.default is None and not parameter.is_keyword_only:
            position += 1
            continue
        if found is None or found.kind in (found.VAR_POSITIONAL, found.VAR_KEYWORD):
            faults.append(f"no `{parameter.name}`")
            continue
        if not parameter.is_keyword_only:
            if (position >= len(positional) or positional[position] is not found) and not has_args:
                faults.append(f"`{parameter.name}` is not positional argument {position + 1}")
            position += 1
        if parameter.default is not None:
            if found.default is found.empty:
                faults.append(f"`{parameter.name}` has no default, should be {parameter.default}")
            elif not same_default(parameter.default, found.default):
                faults.append(f"`{parameter.name}` is {found.default!r} by default, should be {parameter.default}")
    wanted = {parameter.name for parameter in parse_signature(table)}
    for extra in mine:
        is_required = extra.default is extra.empty and extra.kind not in (extra.VAR_POSITIONAL, extra.VAR_KEYWORD)
        if is_required and extra.name not in wanted:
            faults.append(f"`{extra.name}` is required here only")
    return faults


def difference(name: Name, found: Any) -> str:
    """How our signature differs from the nearest one of the table; empty when a call of one is a call of ours."""
    is_special = name.path.rpartition(".")[2].startswith("__")  # called by syntax: no caller names the arguments
    if not name.signatures or is_special or not callable(found):
        return ""
    try:
        ours = inspect.signature(found)
    except (ValueError, TypeError):
        return "has no signature"
    ignored = NUMPY_ONLY | (UFUNC_ONLY if name.kind == "ufunc" else set())
    return min(("; ".join(compare(text, ours, ignored)) for text in name.signatures), key=len)


def belongs_to_numpy(package: ModuleType, path: str) -> bool:
    """Whether a name is a member of a class that is NumPy's own, such as `np.dtype`: what that has is not up to us."""
    owner = find(package, path.rpartition(".")[0]) if "." in path else package
    return isinstance(owner, type) and owner.__module__.partition(".")[0] == "numpy"


@dataclass
class Report:
    not_yet: list[str]  # must, and is not there
    differs: list[str]  # `path: how`
    leftover: list[str]  # must not be there, and is


def report(package: ModuleType, folder: Path) -> Report:
    """Hold the package against the tables. Members of a class that is not there are not listed on their own."""
    result = Report([], [], [])
    for name in read_names(folder):
        found = find(package, name.path)
        if name.scope == "out" and found is not MISSING and not belongs_to_numpy(package, name.path):
            result.leftover.append(name.path)
        if name.scope != "must":
            continue
        if found is not MISSING:
            if how := difference(name, found):
                result.differs.append(f"{name.path}: {how}")
        elif name.kind != "member" or find(package, name.path.rpartition(".")[0]) is not MISSING:
            result.not_yet.append(name.path)
    for lines in (result.not_yet, result.differs, result.leftover):
        lines.sort()
    return result
