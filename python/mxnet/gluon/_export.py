"""Writing a compiled block as files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from mxnet import _core, autograd
from mxnet._jit import Compiled
from mxnet.base import PathLike
from mxnet.error import UnsupportedError

if TYPE_CHECKING:
    from mxnet.gluon.block import Block

__all__ = ["write_graph"]


def write_graph(block: Block, compiled: Compiled | None, path: PathLike, epoch: int) -> tuple[str, str]:
    """Write the graph of a block's last call and its parameters.

    Parameters
    ----------
    block : Block
    compiled : Compiled or None
        The block's compiled `forward`; None if it is not hybridized.
    path : path
        The files are ``<path>-symbol.json`` and ``<path>-<epoch>.params`` (four digits).
    epoch : int

    Returns
    -------
    tuple of str
        The names of both files.

    Raises
    ------
    RuntimeError
        If the block is not hybridized or was not called yet, or shapes of its results depend on values.
    UnsupportedError
        If its last call was with ragged or sparse arrays.
    """
    from mxnet import graph as graphs

    name = type(block).__name__
    last: Any = None if compiled is None else compiled.last_arguments()
    if compiled is None or last is None:
        raise RuntimeError(
            f"{name}.export: call `hybridize()`, then the block once with arrays like those of later calls"
        )
    args, kwargs = last
    for x in (*args, *kwargs.values()):
        if hasattr(type(x), "_graph_parts"):
            raise UnsupportedError(
                f"{name}.export: an argument is a {type(x).__name__}, whose graph is that of its offsets or its shape, "
                "and a file has one graph\n  hint: export the block after a call with arrays"
            )
    with autograd.pause(), autograd.predict_mode():
        found = compiled.graph_for(args, kwargs, graphs.slot)
    if found is None:
        raise RuntimeError(f"{name}.export: shapes of its results depend on values")
    parameters = block.collect_params()
    names = {_core.storage_of(parameter.data()): key for key, parameter in parameters.items()}
    files = f"{os.fspath(path)}-symbol.json", f"{os.fspath(path)}-{epoch:04d}.params"
    graph, results = found
    graphs.write(graph, results, names, parameters, files, name)
    return files
