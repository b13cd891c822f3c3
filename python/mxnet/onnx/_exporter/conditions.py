"""Conditions of graphs for many sizes as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as onp

__all__ = ["described"]

_SIGNS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_OPPOSITES = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}


def described(condition: Sequence[Any], symbols: Sequence[str]) -> str:
    """A condition that a graph was traced with.

    Parameters
    ----------
    condition : sequence
        Comparison, left side, right side and result, as files of graphs have them.
    symbols : sequence of str
        Names of the lengths.

    Returns
    -------
    str
        For example ``batch <= 100``.
    """
    comparison, left, right, outcome = condition
    sign = _SIGNS[comparison if outcome else _OPPOSITES[comparison]]
    return f"{_number(left, symbols)} {sign} {_number(right, symbols)}"


def _number(number: Any, symbols: Sequence[str]) -> str:
    ((kind, content),) = number.items()
    if kind == "quotient":
        constant = float(onp.uint64(int(content[0])).view(onp.float64))
        divisor = _polynomial(content[1], symbols)
        return f"{constant:g}" if divisor == "1" else f"{constant:g} / ({divisor})"
    return _polynomial(content, symbols)


def _polynomial(terms: Sequence[Sequence[int]], symbols: Sequence[str]) -> str:
    written = []
    for factor, *numbers in terms:
        names = [symbols[number] for number in numbers]
        written.append(" * ".join(names if names and factor == 1 else [str(factor), *names]))
    return " + ".join(written) or "0"
