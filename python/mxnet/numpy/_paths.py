"""Contraction orders of `einsum`: the search and the report (`einsum_path`)."""

from __future__ import annotations

import functools
import itertools
import math
import operator
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from mxnet._core import asarray, ndarray

Labels = frozenset[str]
Path = list[tuple[int, ...]]


def subscripts_of(operands: Sequence[Any], name: str) -> tuple[str, list[ArrayLike]]:
    """Subscripts and operands of a call, from either calling convention.

    Parameters
    ----------
    operands : sequence
        Text and operands, or operands each followed by the list of its axes, and the result's at the end.
    name : str
        The function, for errors.

    Returns
    -------
    (str, list)

    Raises
    ------
    ValueError
        If there are no operands or an axis is not named by a number in 0..51.
    TypeError
        If axes are not given as lists of integers.
    """
    if not operands or (isinstance(operands[0], str) and len(operands) == 1):
        raise ValueError(f"{name}: subscripts and at least one operand are needed")
    if isinstance(operands[0], str):
        return operands[0], list(operands[1:])
    arrays, axes = list(operands[0::2]), list(operands[1::2])
    output = arrays.pop() if len(operands) % 2 == 1 else None
    for labels in [*axes, *([] if output is None else [output])]:
        if not isinstance(labels, Iterable) or isinstance(labels, str):
            raise TypeError(f"{name}: `subscripts` is text, or a list of axes follows each operand, found {labels!r}")

    def text(labels: Iterable[Any]) -> str:
        numbers = [n if n is Ellipsis else operator.index(n) for n in labels]
        if any(n is not Ellipsis and not 0 <= n < 52 for n in numbers):
            raise ValueError(f"{name}: axes are named by integers in 0..51, found {numbers}")
        # Letters in the order of the numbers, so that an implicit result has its axes sorted by number.
        return "".join("..." if n is Ellipsis else chr((65 if n < 26 else 71) + n) for n in numbers)

    joined = ",".join(text(labels) for labels in axes)
    return (joined if output is None else f"{joined}->{text(output)}"), arrays


def _spelt_out(part: str, axes: int | None, ellipsis: str) -> str:
    """A part of the subscripts with letters in place of the ellipsis; `axes` is None for the result."""
    head, dots, tail = part.partition("...")
    if not all(letter in string.ascii_letters for letter in head + tail):
        raise ValueError(f"einsum_path: subscripts are letters and one ellipsis, found {part!r}")
    missing = len(ellipsis) if axes is None else axes - len(head + tail)
    if missing < 0 or (missing and not dots and axes is not None):
        raise ValueError(f"einsum_path: an operand has {axes} axes, {part!r} names {len(head + tail)}")
    return head + (ellipsis[len(ellipsis) - missing :] if dots else "") + tail


def _sizes(terms: list[str], shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for i, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
        own: dict[str, int] = {}
        for label, size in zip(term, shape, strict=True):
            if own.setdefault(label, size) != size:
                raise ValueError(f"einsum_path: '{label}' is {own[label]} and {size} in operand {i}")
            if sizes.get(label, 1) == 1:
                sizes[label] = size
            elif size not in (1, sizes[label]):
                raise ValueError(f"einsum_path: '{label}' is {sizes[label]} elsewhere and {size} in operand {i}")
    return sizes


@dataclass
class Contraction:
    """Label sets of the operands and of the result, the size of each label, and the size limit of intermediates."""

    terms: list[str]
    output: str
    sizes: dict[str, int]
    limit: float = math.inf

    @classmethod
    def of(cls, subscripts: str, shapes: Sequence[tuple[int, ...]]) -> Contraction:
        """Reads the subscripts of operands of these shapes.

        Raises
        ------
        ValueError
            If they do not fit.
        """
        text = subscripts.replace(" ", "")
        inputs, arrow, wanted = text.partition("->")
        parts = inputs.split(",")
        if len(parts) != len(shapes):
            raise ValueError(f"einsum_path: subscripts name {len(parts)} operands, {len(shapes)} are given")
        free = "".join(letter for letter in string.ascii_letters if letter not in text)
        axes = [len(s) - len(p.replace("...", "")) for p, s in zip(parts, shapes, strict=True) if "..." in p]
        widest = max([0, *axes])
        if widest > len(free):
            raise ValueError(f"einsum_path: {widest} axes of an ellipsis and {52 - len(free)} others are more than 52")
        ellipsis = free[:widest]
        terms = [_spelt_out(part, len(shape), ellipsis) for part, shape in zip(parts, shapes, strict=True)]
        letters = "".join(terms)
        if arrow:
            output = _spelt_out(wanted, None, ellipsis)
        else:
            once = sorted(letter for letter in set(letters) - set(ellipsis) if letters.count(letter) == 1)
            output = ellipsis + "".join(once)
        for label in output:
            if label not in letters or output.count(label) > 1:
                raise ValueError(f"einsum_path: the result names '{label}' {output.count(label)} times, operands do")
        found = cls(terms, output, _sizes(terms, shapes))
        found.limit = max(found.size(labels) for labels in [*terms, output])
        return found

    def size(self, labels: Iterable[str]) -> int:
        """Number of elements of an array with these labels."""
        return math.prod(self.sizes[label] for label in labels)

    def operations(self, labels: Labels, sums: bool, operands: int) -> int:
        """Number of multiplications and additions of a loop over these labels."""
        return self.size(labels) * (max(1, operands - 1) + sums)

    def joined(self, terms: list[Labels], chosen: Sequence[int]) -> tuple[list[Labels], Labels]:
        """The terms with the chosen ones replaced by their product, which comes last; and all labels involved."""
        rest = [term for i, term in enumerate(terms) if i not in chosen]
        own = frozenset().union(*(terms[i] for i in chosen))
        return [*rest, own & frozenset(self.output).union(*rest)], own

    def step(self, terms: list[Labels], chosen: Sequence[int]) -> tuple[list[Labels], int]:
        """The terms with the chosen ones replaced by their product, and the operations that this takes."""
        after, own = self.joined(terms, chosen)
        return after, self.operations(own, own != after[-1], len(chosen))

    def all_at_once(self) -> int:
        """Operations of a single loop over all labels."""
        labels = [frozenset(term) for term in self.terms]
        return self.step(labels, range(len(labels)))[1]

    def greedy(self) -> Path:
        """Repeatedly chooses the pair whose contraction shrinks the operands most."""
        terms = [frozenset(term) for term in self.terms]
        born = [0] * len(terms)
        path: Path = []
        spent, allowed = 0, self.all_at_once()
        while len(terms) > 1:
            # Of equal candidates the older pair is chosen.
            pairs = sorted(itertools.combinations(range(len(terms)), 2), key=lambda pair: born[pair[1]])
            touching = [pair for pair in pairs if terms[pair[0]] & terms[pair[1]]]
            best = self._best(terms, touching, allowed - spent) or self._best(terms, pairs, allowed - spent)
            if best is None:
                return [*path, tuple(range(len(terms)))]
            terms, cost = self.step(terms, best)
            born = [age for i, age in enumerate(born) if i not in best] + [len(path) + 1]
            path.append(best)
            spent += cost
        return path

    def _best(self, terms: list[Labels], pairs: list[tuple[int, int]], allowed: int) -> tuple[int, int] | None:
        best = None
        for pair in pairs:
            after, cost = self.step(terms, pair)
            size = self.size(after[-1])
            if size <= self.limit and cost <= allowed:
                key = (size - sum(self.size(terms[i]) for i in pair), cost)
                if best is None or key < best[0]:
                    best = key, pair
        return best and best[1]

    def optimal(self) -> Path:
        """The order of pairs with the fewest operations; terms that exceed the memory limit are contracted at once."""
        best: tuple[tuple[float, float], Path] = ((math.inf, math.inf), [])

        def search(terms: list[Labels], path: Path, spent: int) -> None:
            nonlocal best
            if (1, spent) >= best[0]:
                return
            stuck = True
            for pair in itertools.combinations(range(len(terms)), 2):
                after, cost = self.step(terms, pair)
                if self.size(after[-1]) <= self.limit:
                    stuck = False
                    search(after, [*path, pair], spent + cost)
            if stuck and (len(terms), spent) < best[0]:
                rest = [tuple(range(len(terms)))] if len(terms) > 1 else []
                best = (len(terms), spent), path + rest

        search([frozenset(term) for term in self.terms], [], 0)
        return best[1]

    def path(self, optimize: Any) -> Path:
        """The order that `optimize` asks for.

        Raises
        ------
        KeyError
            For an unknown word.
        RuntimeError
            If a given path leaves operands.
        """
        if optimize is None:
            optimize = False
        if isinstance(optimize, Sequence) and not isinstance(optimize, str):
            if optimize and optimize[0] == "einsum_path":
                return self._checked([tuple(step) for step in optimize[1:]])
            if len(optimize) == 2 and isinstance(optimize[0], str) and isinstance(optimize[1], (int, float)):
                self.limit = optimize[1]
                optimize = optimize[0]
            elif all(isinstance(step, Sequence) and not isinstance(step, str) for step in optimize):
                return self._checked([tuple(step) for step in optimize])
        if optimize is True:
            optimize = "greedy"
        if optimize not in (False, "greedy", "optimal"):
            raise KeyError(f"einsum_path: `optimize` is True, False, 'greedy', 'optimal' or a path, found {optimize!r}")
        trivial = len(self.terms) < 3 or set(self.output) == set("".join(self.terms))
        if optimize is False or trivial:
            return [tuple(range(len(self.terms)))]
        return self.greedy() if optimize == "greedy" else self.optimal()

    def _checked(self, path: Path) -> Path:
        left = len(self.terms)
        for step in path:
            if len(set(step)) != len(step) or not step or not all(0 <= i < left for i in step):
                raise RuntimeError(f"einsum: a path contracts {step}, there are {left} operands left")
            left += 1 - len(step)
        if left != 1:
            raise RuntimeError(f"einsum: the path {path} leaves {left} operands, should leave 1")
        return path

    def report(self, path: Path) -> str:
        """The cost of the order, step by step."""
        terms, own_order = [frozenset(term) for term in self.terms], list(self.terms)
        rows, total, largest, widest = [], 0, self.size(self.output), 0
        for step in path:
            terms, cost = self.step(terms, step)
            labels = frozenset("".join(own_order[i] for i in step))
            total, widest = total + cost, max(widest, len(labels))
            largest = max(largest, self.size(terms[-1]))
            last = self.output if len(terms) == 1 else "".join(sorted(terms[-1], key=lambda x: (self.sizes[x], x)))
            current = ",".join(own_order[i] for i in reversed(step)) + "->" + last
            own_order = [labels for i, labels in enumerate(own_order) if i not in step] + [last]
            rows.append((len(labels), current, ",".join(own_order) + "->" + self.output))
        naive = self.all_at_once()
        lines = [
            f"  Complete contraction:  {','.join(self.terms)}->{self.output}",
            f"         Naive scaling:  {len(set(''.join(self.terms)))}",
            f"     Optimized scaling:  {widest}",
            f"      Naive FLOP count:  {naive:.3e}",
            f"  Optimized FLOP count:  {total:.3e}",
            f"   Theoretical speedup:  {naive / total if total else 1:.3f}",
            f"  Largest intermediate:  {largest:.3e} elements",
            "-" * 74,
            f"{'scaling':>7} {'current':>24} {'remaining':>40}",
            "-" * 74,
        ]
        return "\n".join([*lines, *(f"{scaling:7} {current:>24} {rest:>40}" for scaling, current, rest in rows)])


def pairs_of(path: Path, operands: int) -> list[int]:
    """A path as pairs of positions: several at once are contracted left to right, single ones are skipped.

    Parameters
    ----------
    path : list of tuple of int
    operands : int

    Returns
    -------
    list of int
        Two for each pair, as the operator `einsum` takes them.
    """
    asked, done = list(range(operands)), list(range(operands))
    pairs: list[int] = []
    for step in path:
        chosen = [asked[i] for i in step]
        asked = [name for name in asked if name not in chosen]
        first = chosen[0]
        for second in chosen[1:]:
            pairs += [done.index(first), done.index(second)]
            name = operands + len(pairs)
            done = [other for other in done if other not in (first, second)] + [name]
            first = name
        asked.append(first)
    return pairs


def einsum_path(*operands: Any, optimize: Any = "greedy") -> tuple[list[Any], str]:
    """The order in which `einsum` would contract its operands.

    Parameters
    ----------
    *operands
        As for `einsum`. Only their shapes count.
    optimize : bool, 'greedy', 'optimal', pair or list
        True and 'greedy' choose the pair that shrinks the operands most, again and again; 'optimal' tries all orders,
        whose number grows as the factorial of the operands'; False contracts all at once. A pair of a word and a number
        bounds the elements of intermediates, which otherwise are as large as the largest operand or the result at most.
        A list is a path, which is reported on.

    Returns
    -------
    path : list
        ``'einsum_path'``, then the positions of the operands that are contracted, step by step; their result is last.
    report : str
        What it costs.

    Raises
    ------
    ValueError
        If the subscripts do not fit the operands.
    KeyError
        For another word.
    RuntimeError
        If a given path does not leave one operand.

    Notes
    -----
    Differences: the report has no column about calls of a BLAS: every step is a product of matrices.

    Examples
    --------
    >>> import mxnet as mx
    >>> a, b, c = mx.np.ones((2, 9)), mx.np.ones((9, 5)), mx.np.ones((5, 2))
    >>> path, report = mx.np.einsum_path("ij,jk,kl->il", a, b, c)
    >>> path
    ['einsum_path', (0, 1), (0, 1)]
    >>> print(report.splitlines()[1].strip())
    Naive scaling:  4
    """
    subscripts, arrays = subscripts_of(operands, "einsum_path")
    shapes = tuple(asarray(operand).shape for operand in arrays)
    plan = _known_plan if isinstance(optimize, str | bool) else _plan
    path, report = plan(subscripts, shapes, optimize)
    return ["einsum_path", *path], report


def _plan(subscripts: str, shapes: tuple[tuple[int, ...], ...], optimize: Any) -> tuple[tuple[Any, ...], str]:
    """The path and the report for operands of these shapes."""
    contraction = Contraction.of(subscripts, shapes)
    path = contraction.path(optimize)
    return tuple(path), contraction.report(path)


# A plan depends on nothing else, and loops request the same one repeatedly.
_known_plan = functools.lru_cache(maxsize=256)(_plan)
