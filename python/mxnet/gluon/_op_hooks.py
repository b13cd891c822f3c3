"""Hooks that receive the results of every operator while a block runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mxnet import _core
from mxnet.numpy import ndarray

__all__ = ["OpCallback", "run_with_op_hooks"]

OpCallback = Callable[[str, str, ndarray], object]


def run_with_op_hooks(hooks: Mapping[int, tuple[OpCallback, bool]], body: Callable[[], Any]) -> Any:
    """Call a function while every operator is shown to hooks.

    Parameters
    ----------
    hooks : mapping of int to (callback, monitor_all)
        As `Block.register_op_hook` describes them.
    body : callable

    Returns
    -------
    object
        What `body` returns.
    """
    called = 0

    def show(operator: str, inputs: Sequence[ndarray], outputs: Sequence[ndarray]) -> None:
        nonlocal called
        name = f"{operator}{called}"
        called += 1
        for callback, monitor_all in list(hooks.values()):
            if monitor_all:
                _each(callback, f"{name}_input", operator, inputs, always_numbered=True)
            _each(callback, f"{name}_output", operator, outputs, always_numbered=False)

    return _core.with_op_hook(show, body)


def _each(callback: OpCallback, name: str, operator: str, arrays: Sequence[ndarray], always_numbered: bool) -> None:
    for position, array in enumerate(arrays):
        numbered = always_numbered or len(arrays) > 1
        callback(f"{name}{position}" if numbered else name, operator, array)
