"""The profiler's scopes of blocks: `Net:features:0:` for the operators of a layer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mxnet import _core

if TYPE_CHECKING:
    from mxnet.gluon.block import Block

__all__ = ["in_scope_of"]


class _Running(threading.local):
    """The innermost block that this thread runs under the profiler."""

    block: Block | None = None


_running = _Running()


def in_scope_of(block: Block, body: Callable[[], Any]) -> Any:
    """Run `body` in the profiler's scope of a block: its name in the block around it, or the name of its class."""
    outer = _running.block
    name = type(block).__name__
    if outer is not None:
        name = next((key for key, child in outer._children.items() if child is block), name)
    _running.block = block
    scope = _core.profiler_enter_block(name)
    try:
        return body()
    finally:
        _core.profiler_leave_block(scope)
        _running.block = outer
