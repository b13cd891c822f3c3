"""Blocks from files of graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mxnet import autograd
from mxnet._renamed import old_keywords
from mxnet.base import PathLike
from mxnet.error import FileFormatError
from mxnet.gluon.block import HybridBlock
from mxnet.gluon.parameter import DeviceLike, Parameter
from mxnet.graph import Graph, read

__all__ = ["SymbolBlock"]


class SymbolBlock(HybridBlock):
    """A block that calls the operators of a graph from a file; its arrays are parameters and can be trained.

    In training mode dropout and batch statistics are those of the exported network, as far as the file has a graph for
    that mode; see `HybridBlock.export`.

    Parameters
    ----------
    outputs : Graph
        A graph from a file.
    inputs : str or sequence of str
        Names of the arguments, for messages.
    params : dict of str to Parameter, optional
        Parameters to use in place of the graph's own arrays.

    Raises
    ------
    TypeError
        If `outputs` is no graph from a file: there are no symbols to compose.
    ValueError
        If the number of names differs from that of the arguments.

    Examples
    --------
    >>> net = mx.gluon.nn.Dense(2)
    >>> net.initialize(mx.init.One())
    >>> net.hybridize()
    >>> _ = net(np.ones((1, 3)))
    >>> import os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> symbol_file, param_file = net.export(os.path.join(folder, "dense"))
    >>> again = mx.gluon.SymbolBlock.imports(symbol_file, ["data"], param_file)
    >>> again(np.ones((1, 3)))
    array([[3., 3.]])
    """

    def __init__(self, outputs: Graph, inputs: str | Sequence[str], params: dict[str, Parameter] | None = None) -> None:
        super().__init__()
        if not isinstance(outputs, Graph):
            raise TypeError(
                f"SymbolBlock: `outputs` must be a graph from a file, found '{type(outputs).__name__}'\n"
                "  hint: use `SymbolBlock.imports(symbol_file, input_names, param_file)`"
            )
        names = [inputs] if isinstance(inputs, str) else list(inputs)
        if len(names) != outputs.num_arguments:
            raise ValueError(f"SymbolBlock: {len(names)} names for the {outputs.num_arguments} arguments of the graph")
        self._graph = outputs
        self._training_graph = outputs._for_training()
        self._input_names = names
        for name, array in outputs.arrays.items():
            if params is not None and name in params:
                parameter = params[name]
            else:
                req = "write" if name in outputs.trainable else "null"
                parameter = Parameter(name, grad_req=req, shape=array.shape, dtype=array.dtype)
                parameter._load_init(array, None, "saved")
            self._reg_params[name] = parameter

    @classmethod
    @old_keywords(ctx="device")
    def imports(
        cls,
        symbol_file: PathLike,
        input_names: str | Sequence[str],
        param_file: PathLike | None = None,
        device: DeviceLike | None = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
    ) -> SymbolBlock:
        """Read what `HybridBlock.export` wrote.

        Parameters
        ----------
        symbol_file : path
        input_names : str or sequence of str
            One for each argument of the network.
        param_file : path, optional
            By default the newest one beside `symbol_file`.
        device : Device, optional
            Where the parameters go.
        allow_missing : bool
            A graph cannot run without its arrays: this changes nothing but the hint of the error.
        ignore_extra : bool
            Pass over arrays of the file that the graph does not have.

        Returns
        -------
        SymbolBlock

        Raises
        ------
        FileNotFoundError
            If a file does not exist.
        FileFormatError
            If a file is damaged, of a newer version or needs operators that are not there.
        ValueError
            If the number of names differs from that of the arguments, or if the file has other arrays and
            `ignore_extra` is off.

        Examples
        --------
        >>> net = mx.gluon.nn.Dense(2)
        >>> net.initialize(mx.init.One())
        >>> net.hybridize()
        >>> _ = net(np.ones((1, 3)))
        >>> import os, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> symbol_file, param_file = net.export(os.path.join(folder, "dense"))
        >>> again = mx.gluon.SymbolBlock.imports(symbol_file, ["data"], param_file)
        >>> again(np.ones((1, 3)))
        array([[3., 3.]])
        """
        try:
            graph = read(symbol_file, param_file)
        except FileFormatError as error:
            if allow_missing and "needs arrays that are not there" in str(error):
                error.add_note("`allow_missing=True` cannot help: build the network in Python and load what is there")
            raise
        if graph.extra and not ignore_extra:
            names = ", ".join(repr(name) for name in graph.extra[:5])
            raise ValueError(
                f"SymbolBlock.imports: the file of parameters has {names}, which the graph has not; "
                "`ignore_extra=True` passes over them"
            )
        block = cls(graph, input_names)
        if device is not None:
            block.reset_device(device)
        return block

    def forward(self, *args: Any) -> Any:
        """Call the operators of the graph.

        Parameters
        ----------
        *args : ndarray, sparray or RaggedArray

        Returns
        -------
        ndarray, sparray, RaggedArray or nested tuples, lists and dicts
        """
        values = {name: parameter.data() for name, parameter in self._reg_params.items()}
        trained = self._training_graph if autograd.is_training() else None
        return (trained or self._graph)._interpret(args, values)
