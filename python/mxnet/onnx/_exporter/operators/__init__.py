"""Translations of operators: one table for each family, and why others have none."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any

from mxnet import _core
from mxnet.onnx._exporter.operators._absent import REASONS

__all__ = ["reason", "translated_names", "translation"]

_FAMILIES = (
    "creation",
    "elementwise",
    "indexing",
    "int8",
    "linalg",
    "network",
    "order",
    "random",
    "recurrent",
    "reduce",
    "shape",
)


@cache
def _table() -> dict[str, Callable[[Any], Any]]:
    """Translations by name: of the families, and of operators whose entry names one ONNX operator."""
    prefix = "mxnet.onnx._exporter.operators"
    elementwise = importlib.import_module(f"{prefix}.elementwise")
    found: dict[str, Callable[[Any], Any]] = {}
    for entry in _core.registry():
        if entry["onnx"]:
            found[entry["name"]] = elementwise.one_node(entry["onnx"])
    for family in _FAMILIES:
        found |= importlib.import_module(f"{prefix}.{family}").TRANSLATIONS
    return found


def translation(op: str) -> Callable[[Any], Any] | None:
    """The function that translates a node of an operator; None if there is none."""
    return _table().get(op)


def translated_names() -> list[str]:
    """Names of the operators that have a translation."""
    return sorted(_table())


def reason(op: str) -> tuple[str, str]:
    """Why an operator has no translation, and what to do instead."""
    for names, problem, instead in REASONS:
        if op in names:
            return problem, instead
    return "ONNX has no operator for it", "compute it before or after the exported network"
