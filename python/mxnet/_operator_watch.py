"""Observation of operators while they run: the search for the first NaN, and the cost of operators."""

from __future__ import annotations

import linecache
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from mxnet import _core
from mxnet.numpy import ndarray

if TYPE_CHECKING:
    from mxnet.gluon.block import Block

__all__ = ["Scopes", "nan_check", "operations"]

_PACKAGE = str(Path(__file__).parent)


def _user_line() -> str:
    """The innermost line of code outside this package that is running."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    if frame is None:
        return "an unknown line"
    name, line = frame.f_code.co_filename, frame.f_lineno
    text = linecache.getline(name, line).strip()
    return f"{name}:{line}" + (f": `{text}`" if text else "")


class Scopes:
    """Tracks the path of the running block."""

    def __init__(self, top: Block) -> None:
        self._stack = [""]
        self._handles: list[Any] = []
        self._add(top, "")

    def _add(self, block: Block, path: str) -> None:
        for name, child in block._children.items():
            inner = f"{path}.{name}" if path else name

            def enter(_block: Block, _args: Any, inner: str = inner) -> None:
                self._stack.append(inner)

            def leave(_block: Block, _args: Any, _out: Any) -> None:
                self._stack.pop()

            self._handles += [child.register_forward_pre_hook(enter), child.register_forward_hook(leave)]
            self._add(child, inner)

    def path(self) -> str:
        return self._stack[-1]

    def close(self) -> None:
        for handle in self._handles:
            handle.detach()


def operations(op: str, operands: list[tuple[int, ...]], results: list[tuple[int, ...]]) -> int:
    """Floating-point operations of a call: two for each product that is added, else one for each element.

    Parameters
    ----------
    op : str
    operands, results : list of tuple of int
        Shapes.

    Returns
    -------
    int
    """
    sizes = [math.prod(shape) for shape in operands]
    made = sum(map(math.prod, results))
    if op in ("fully_connected", "matmul", "dot") and min(map(len, operands[:2])) > 0:
        return 2 * math.prod(results[0]) * operands[0][-1] if op != "fully_connected" else 2 * made * operands[1][-1]
    if op == "convolution":
        return 2 * made * math.prod(operands[1][1:])
    if op == "deconvolution":
        return 2 * sizes[0] * math.prod(operands[1][1:])
    if op == "rnn_layer":
        return 2 * math.prod(operands[0][:2]) * (sizes[1] + sizes[2])
    return max([made, *sizes])


def nan_check(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function operator by operator and stop at the first result with a NaN.

    Parameters
    ----------
    function : callable
        A function of arrays, a block, or a compiled function, which runs operator by operator here.
    *args, **kwargs
        Its arguments.

    Returns
    -------
    object
        What the function returns, if no operator makes a NaN.

    Raises
    ------
    FloatingPointError
        Names the operator, the block that it is in, the shape and the line of the program. An operator that gets a NaN
        from an argument counts as the one that made it.

    Examples
    --------
    >>> mx.graph.nan_check(lambda x: np.sqrt(x) + 1, np.ones(2))
    array([2., 2.])
    """
    from mxnet.gluon.block import Block

    scopes = Scopes(function) if isinstance(function, Block) else None

    def look(op: str, _inputs: Sequence[ndarray], arrays: Sequence[ndarray]) -> None:
        for array in arrays:
            if array.dtype.kind not in "fcV":
                continue
            bad = array != array  # Only NaN differs from itself.
            if bad.any().item():
                where = f" in block `{scopes.path()}`" if scopes is not None and scopes.path() else ""
                raise FloatingPointError(
                    f"`{op}`{where} made {int(bad.sum().item())} NaN among {array.size} elements, shape {array.shape}\n"
                    f"  at {_user_line()}"
                )

    try:
        return _core.with_op_hook(look, lambda: function(*args, **kwargs))
    finally:
        if scopes is not None:
            scopes.close()
