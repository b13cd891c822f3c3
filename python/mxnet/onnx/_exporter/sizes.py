"""One ONNX graph for many sizes, from translations of a graph at several sizes.

Translations at different sizes have the same nodes, but other integers: shapes, bounds of slices. Each integer that
differs becomes an expression of lengths of axes, found by its values at all sizes and computed by nodes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as onp

from mxnet.error import UnsupportedError
from mxnet.onnx._exporter.builder import FLOATS, Builder, Constant, OnnxNode, Value

__all__ = ["Lengths", "StructureError", "merge"]


class StructureError(UnsupportedError):
    """Translations at different sizes have different nodes."""


class Lengths(tuple[int, ...]):
    """One integer at each of the sizes."""

    __slots__ = ()


def merge(builders: Sequence[Builder], arguments: Sequence[tuple[str, int]]) -> Builder:
    """Combine translations of one graph.

    Parameters
    ----------
    builders : sequence of Builder
        One for each size. The first is changed.
    arguments : sequence of (str, int)
        Names and axes of arguments that may have any length.

    Returns
    -------
    Builder
        The first builder, whose graph is for all sizes.

    Raises
    ------
    StructureError
        If the translations have different nodes.
    UnsupportedError
        If a number depends on the sizes in a way that is not found.
    """
    first = builders[0]
    if len(builders) == 1:
        return first
    merged = _Merged(builders)
    for name, axis in arguments:
        merged.note(name, axis)
    nodes, first.nodes = first.nodes, []
    if len({len(nodes), *(len(b.nodes) for b in builders[1:])}) != 1:
        raise StructureError("export_model: the network does not have the same operators at all sizes")
    for at, node in enumerate(nodes):
        merged.add(node, [b.nodes[at] for b in builders[1:]])
    for name in list(first.constants):
        if name in merged.replaced:
            del first.constants[name]
    return first


class _Merged:
    def __init__(self, builders: Sequence[Builder]) -> None:
        self._builders = builders
        self._first = builders[0]
        # Variables of the expressions: a length at each size, with the name and the axis of the value that has it.
        self._variables: list[tuple[Lengths, tuple[str, int]]] = []
        self._computed: dict[Lengths, Value] = {}
        self._not_found: set[Lengths] = set()
        self.replaced: dict[str, str] = {}

    def note(self, name: str, axis: int) -> None:
        """Let expressions use the length of an axis of a value."""
        lengths = Lengths(b.shapes[name][axis] for b in self._builders)
        if len(set(lengths)) > 1 and not any(lengths == known for known, _ in self._variables):
            self._variables.append((lengths, (name, axis)))
            self._not_found.clear()

    def add(self, node: OnnxNode, others: Sequence[OnnxNode]) -> None:
        """Add a node, given the corresponding nodes at other sizes."""
        self._first.source = node.source
        for other in others:
            if (other.op, other.inputs, other.outputs) != (node.op, node.inputs, node.outputs):
                raise StructureError(
                    f"export_model: a graph for any size needs the same nodes at all sizes, found {node.op} and "
                    f"{other.op}{self._located()}\n  hint: export with `dynamic=False`"
                )
            for name, value in node.attributes.items():
                if not _is_equal(value, other.attributes.get(name)):
                    raise UnsupportedError(
                        f"export_model: the attribute `{name}` of {node.op} depends on sizes{self._located()}\n"
                        "  hint: export with `dynamic=False`, or let another axis have any length"
                    )
        node.inputs = [self._for_all_sizes(name) for name in node.inputs]
        self._first.nodes.append(node)
        for name in node.outputs:
            shapes = [b.shapes.get(name, ()) for b in self._builders]
            for axis in range(len(shapes[0])):
                lengths = Lengths(shape[axis] for shape in shapes)
                if len(set(lengths)) > 1 and self._expression(lengths) is None:
                    self.note(name, axis)

    def _located(self) -> str:
        return f"\n  called at {self._first.source}" if self._first.source else ""

    def _for_all_sizes(self, name: str) -> str:
        """The name of a value that replaces a constant, if it depends on the sizes."""
        found = self._first.constants.get(name)
        if found is None:
            return name
        if name not in self.replaced:
            constants = [b.constants[name] for b in self._builders]
            if all(c.array is found.array or _same(c.array, found.array) for c in constants):
                return name
            self.replaced[name] = self._replacement(constants)
        return self.replaced[name]

    def _replacement(self, constants: Sequence[Constant]) -> str:
        first = constants[0]
        arrays = [c.array for c in constants]
        b = self._first
        if len({array.shape for array in arrays}) == 1 and first.array.ndim == 0:
            return b.read(self._number([array.item() for array in arrays], first.dtype))
        if len({array.shape for array in arrays}) == 1 and first.dtype == "int64" and first.array.ndim == 1:
            columns = [Lengths(int(array[i]) for array in arrays) for i in range(len(first.array))]
            return b.read(self._vector(columns, infers=first.infers))
        if len({array.ndim for array in arrays}) == 1 and all(array.size > 1 for array in arrays):
            whole = [array.astype(onp.int64) for array in arrays] if first.dtype not in ("bool", "bfloat16") else []
            steps = {int(step) for array in whole for step in onp.diff(array.reshape(-1))}
            if len(steps) == 1 and all(onp.array_equal(x, y) for x, y in zip(whole, arrays, strict=True)):
                return b.read(b.cast(self._progression(whole, steps.pop()), first.dtype))
        raise UnsupportedError(
            f"export_model: a constant of shape {first.array.shape} depends on sizes{self._located()}\n"
            "  hint: export with `dynamic=False`, or compute it of the lengths of axes"
        )

    def _progression(self, arrays: Sequence[onp.ndarray], step: int) -> Value:
        """Numbers that increase by `step` in C order."""
        b = self._first
        starts = self._scalar(Lengths(int(array.flat[0]) for array in arrays))
        ends = self._scalar(Lengths(int(array.flat[0]) + array.size * step for array in arrays))
        line = b.node("Range", [starts, ends, b.scalar(step, "int64")], [arrays[0].size], "int64")
        if arrays[0].ndim == 1:
            return line
        columns = [Lengths(array.shape[axis] for array in arrays) for axis in range(arrays[0].ndim)]
        shape = self._vector(columns, infers=True)
        return b.node("Reshape", [line, shape], arrays[0].shape, "int64")

    # Expressions.

    def _vector(self, columns: Sequence[Lengths], *, infers: bool) -> Value:
        """A vector of numbers that may depend on sizes."""
        b = self._first
        varying = [i for i, column in enumerate(columns) if len(set(column)) > 1]
        left_open = None
        if infers and not any(0 in column for column in columns):
            unknown = [i for i in varying if self._expression(columns[i]) is None]
            if len(unknown) == 1 or len(varying) == 1:
                left_open = (unknown or varying)[0]
        pieces: list[Value] = []
        numbers: list[int] = []
        for i, column in enumerate(columns):
            if i in varying and i != left_open:
                if numbers:
                    pieces.append(b.ints(numbers))
                    numbers = []
                pieces.append(self._length(column))
            else:
                numbers.append(-1 if i == left_open else column[0])
        if numbers:
            pieces.append(b.ints(numbers))
        if len(pieces) == 1 and pieces[0].constant is not None:
            pieces[0].name = b.new_name("shape")
        return b.concat(pieces, 0)

    def _scalar(self, lengths: Lengths) -> Value:
        """A number without axes."""
        b = self._first
        if len(set(lengths)) == 1:
            return b.scalar(lengths[0], "int64")
        return b.reshape(self._length(lengths), ())

    def _number(self, values: Sequence[float], dtype: str) -> Value:
        b = self._first
        if all(float(value).is_integer() for value in values):
            lengths = Lengths(int(value) for value in values)
            if self._expression(lengths) is not None:
                return b.cast(self._scalar(lengths), dtype)
        if dtype in FLOATS:
            for product in self._products():
                quotients = [value * n for value, n in zip(values, product, strict=True)]
                # The constants were rounded to the dtype: half an ulp on each side of the quotient.
                if max(quotients) - min(quotients) <= 2 * _epsilon(dtype) * abs(quotients[0]) and quotients[0]:
                    divisor = b.cast(self._scalar(product), "float64")
                    exact = b.binary("Div", b.scalar(quotients[0], "float64"), divisor)
                    return b.cast(exact, dtype)
        raise UnsupportedError(
            f"export_model: the number {values[0]!r} depends on sizes in a way that is not known{self._located()}\n"
            "  hint: export with `dynamic=False`"
        )

    def _products(self) -> Iterator[Lengths]:
        known = [lengths for lengths, _ in self._variables]
        known += [lengths for lengths in self._computed if lengths not in known]
        yield from known
        for x, y in itertools.combinations_with_replacement(known, 2):
            yield Lengths(m * n for m, n in zip(x, y, strict=True))

    def _length(self, lengths: Lengths) -> Value:
        """A number as int64 of one element."""
        if lengths in self._computed:
            return self._computed[lengths]
        found = self._expression(lengths)
        if found is None:
            raise UnsupportedError(
                f"export_model: a size depends on the lengths of the arguments in a way that is not known: it is "
                f"{lengths[0]} at the sizes of the example{self._located()}\n  hint: export with `dynamic=False`"
            )
        b = self._first
        terms, divisor = found
        total: Value | None = None
        for factor, variables in terms:
            term: Value | None = None
            for at in variables:
                variable = self._variable(at)
                term = variable if term is None else b.binary("Mul", term, variable)
            if term is None:
                term = b.ints([factor])
            elif factor != 1:
                term = b.binary("Mul", term, b.ints([factor]))
            total = term if total is None else b.binary("Add", total, term)
        result = b.ints([0]) if total is None else total
        if divisor != 1:
            result = b.binary("Div", result, b.ints([divisor]))
        self._computed[lengths] = result
        return result

    def _variable(self, at: int) -> Value:
        lengths, (name, axis) = self._variables[at]
        if lengths not in self._computed:
            b = self._first
            source = Value(name, b.shapes[name], "")
            self._computed[lengths] = b.node("Shape", [source], [1], "int64", start=axis, end=axis + 1)
        return self._computed[lengths]

    def _expression(self, lengths: Lengths) -> tuple[list[tuple[int, tuple[int, ...]]], int] | None:
        """Terms (factor, variables), and a divisor of their sum; None if there is none."""
        if lengths in self._not_found:
            return None
        known = [known for known, _ in self._variables]
        if lengths in known:
            return [(1, (known.index(lengths),))], 1
        for at, x in enumerate(known):
            if found := _fit(lengths, [(at,)], [x]):
                return found
        for i, j in itertools.combinations_with_replacement(range(len(known)), 2):
            product = [m * n for m, n in zip(known[i], known[j], strict=True)]
            if found := _fit(lengths, [(i, j)], [product]):
                return found
            columns, names = ([product, known[i]], [(i, j), (i,)])
            if i != j:
                columns, names = [*columns, known[j]], [*names, (j,)]
            if found := _fit(lengths, names, columns):
                return found
        for chosen in itertools.combinations_with_replacement(range(len(known)), 3):
            product = [k * m * n for k, m, n in zip(*(known[at] for at in chosen), strict=True)]
            if found := _fit(lengths, [chosen], [product]):
                return found
        self._not_found.add(lengths)
        return None


def _fit(
    lengths: Sequence[int], names: Sequence[tuple[int, ...]], columns: Sequence[Sequence[int]]
) -> tuple[list[tuple[int, tuple[int, ...]]], int] | None:
    """Exact factors of columns, and a constant, whose sum is `lengths` at all sizes."""
    width = len(columns) + 1
    if width >= len(lengths):
        return None
    rows = [
        [Fraction(column[k]) for column in columns] + [Fraction(1), Fraction(lengths[k])] for k in range(len(lengths))
    ]
    for pivot in range(width):
        found = next((row for row in rows[pivot:] if row[pivot]), None)
        if found is None:
            return None
        rows.remove(found)
        found = [x / found[pivot] for x in found]
        rows = [
            row if not row[pivot] else [x - row[pivot] * y for x, y in zip(row, found, strict=True)] for row in rows
        ]
        rows.insert(pivot, found)
    if any(row[-1] for row in rows[width:]):
        return None
    factors = [row[-1] for row in rows[:width]]
    divisor = int(onp.lcm.reduce([x.denominator for x in factors]))
    if divisor > 64:
        return None
    terms = [(int(x * divisor), name) for x, name in zip(factors, [*names, ()], strict=True) if x]
    return terms, divisor


def _epsilon(dtype: str) -> float:
    return 2.0**-8 if dtype == "bfloat16" else float(onp.finfo(dtype).eps)


def _same(x: onp.ndarray, y: onp.ndarray) -> bool:
    return x.shape == y.shape and x.tobytes() == y.tobytes()


def _is_equal(x: object, y: object) -> bool:
    if isinstance(x, Value) and isinstance(y, Value) and x.constant is not None and y.constant is not None:
        return x.dtype == y.dtype and _same(x.constant, y.constant)
    return x == y
