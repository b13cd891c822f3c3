"""The page that compares `mxnet.sparse` with `scipy.sparse`, found out from both packages."""

import itertools
import textwrap
from typing import Any

CLASSES = ("csr_array", "csc_array", "coo_array", "bsr_array")
FORMATS = ("csr", "csc", "coo", "bsr", "row_sparse", "dense", "number")
# Members that are Python's own and say nothing of arrays.
IGNORED = {"__abstractmethods__", "__class_getitem__", "__slots__", "__dict__", "__weakref__", "__module__"}
# In-place operators fall back to the operators; elements are not assigned to.
FALL_BACK = {"__iadd__", "__isub__", "__imul__", "__itruediv__"}
NOT_ASSIGNED = "elements are not assigned to; `data` may be written to, and `coo_array` adds up duplicates"

ELEMENTWISE = (
    *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "power", "maximum", "minimum"),
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
)


def members(name: str) -> list[str]:
    """What SciPy's class of this name has, the instances' own attributes included."""
    import scipy.sparse

    kind = getattr(scipy.sparse, name)
    named = {member for member in (*dir(kind), *vars(kind((2, 2)))) if not member.startswith("_")}
    protocols = {member for member in dir(kind) if member.startswith("__") and not hasattr(object, member)}
    return sorted(named) + sorted(protocols - IGNORED)


def answer(name: str, member: str) -> str:
    """An empty text if our class of this name has the member, else what the error says."""
    from mxnet import sparse

    array = getattr(sparse, name)((2, 2))
    if hasattr(array, member) or member in FALL_BACK:
        return ""
    if member == "__setitem__":
        return NOT_ASSIGNED
    try:
        getattr(array, member)
    except AttributeError as problem:
        text = str(problem)
        if " does not exist: " not in text:
            raise LookupError(f"{name}.{member} is neither there nor among the alternatives") from problem
        return text.partition(" does not exist: ")[2]
    raise LookupError(f"{name}.{member}")


def module_answer(member: str) -> str | None:
    """The same of a function of the module; None for what is no part of SciPy's interface."""
    import scipy.sparse

    from mxnet import sparse

    theirs = getattr(scipy.sparse, member)
    if type(theirs).__name__ == "module" and member not in ("csgraph", "linalg"):
        return None
    if hasattr(sparse, member):
        return ""
    try:
        getattr(sparse, member)
    except AttributeError as problem:
        text = str(problem)
        if " does not exist: " not in text:
            raise LookupError(f"scipy.sparse.{member} is neither there nor among the alternatives") from problem
        return text.partition(" does not exist: ")[2]
    raise LookupError(member)


def operand(kind: str) -> Any:
    """A small operand of a kind."""
    import mxnet as mx

    dense = mx.np.array([[1.0, 0.0], [2.0, 3.0]])
    if kind == "number":
        return 2.0
    return dense if kind == "dense" else getattr(mx.sparse, f"{kind}_array")(dense)


def result(name: str, left: str, right: str) -> str:
    """What kind of result a function of two operands has; empty if the pair is refused, by an error that names it."""
    import mxnet as mx

    function = getattr(mx.np, name)
    a, b = operand(left), operand(right)
    try:
        found = function(a, b)
    except mx.error.UnsupportedError as problem:
        pair = f"({type(a).__name__}, {type(b).__name__})"
        if pair not in str(problem):
            raise LookupError(f"{name}{pair}: the error does not name the pair: {problem}") from problem
        return ""
    return getattr(found, "format", "dense")


def pair_table() -> str:
    """One row for each function and kind on the left, one column for each kind on the right."""
    sparse = FORMATS[:5]
    lines = [f"| function | left | {' | '.join(FORMATS)} |", f"|---|---|{'---|' * len(FORMATS)}"]
    for name in ("matmul", *ELEMENTWISE):
        rows: dict[tuple[str, ...], list[str]] = {}
        for left in FORMATS:
            cells = tuple(
                result(name, left, right) or "error" if left in sparse or right in sparse else " " for right in FORMATS
            )
            rows.setdefault(cells, []).append(left)
        lines += [f"| `{name}` | {', '.join(lefts)} | {' | '.join(cells)} |" for cells, lefts in rows.items()]
    return "\n".join(lines)


def page(mark: str) -> str:
    """The page."""
    import scipy.sparse

    of_class = {name: {member: answer(name, member) for member in members(name)} for name in CLASSES}
    everything = sorted(set(itertools.chain.from_iterable(of_class.values())), key=lambda m: (m.startswith("_"), m))
    lines = [f"<!-- {mark} -->", "", "# Sparse arrays and SciPy's", ""]
    total = sum(len(found) for found in of_class.values())
    there = sum(not text for found in of_class.values() for text in found.values())
    head = (
        f"Of {total} methods and attributes that the four array classes of SciPy have, {there} are here under the same "
        "name. What is not raises an error that says what takes its place."
    )
    lines += [*textwrap.wrap(head, 98), ""]
    lines += [f"| member | {' | '.join(CLASSES)} | instead |", f"|---|{'---|' * len(CLASSES)}---|"]
    for member in everything:
        texts = [of_class[name].get(member) for name in CLASSES]
        cells = [" " if text is None else "no" if text else "yes" for text in texts]
        instead = next((text for text in texts if text), "")
        lines.append(f"| `{member}` | {' | '.join(cells)} | {instead} |")
    lines += ["", "## Functions", "", "| function | here | instead |", "|---|---|---|"]
    for member in sorted(scipy.sparse.__all__):
        found = module_answer(member)
        if found is not None:
            lines.append(f"| `{member}` | {'no' if found else 'yes'} | {found} |")
    text = (
        "What a function of `mx.np` gives for each pair of operands: the format of the result, or an error that names "
        "the function and both kinds."
    )
    lines += ["", "## Pairs of operands", "", *textwrap.wrap(text, 98), "", pair_table(), ""]
    return "\n".join(lines)
