"""Blocks that find out shapes from inputs and can run as compiled graphs."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mxnet import autograd
from mxnet._autocast import autocast
from mxnet._jit import BoundCall, Compiled, check_backend
from mxnet._sizes import unnoted
from mxnet.base import PathLike
from mxnet.device import Device, current_device
from mxnet.gluon._export import write_graph
from mxnet.gluon._failure import listed
from mxnet.gluon._graph_options import GraphOptions
from mxnet.gluon.block.base import Block, has_op_hooks
from mxnet.numpy import ndarray

__all__ = ["HybridBlock"]


def _device_of(arguments: Any) -> Device | None:
    """The device of the first array in nested arguments."""
    if isinstance(arguments, ndarray):
        return arguments.device
    if isinstance(arguments, Mapping):
        arguments = arguments.values()
    elif not isinstance(arguments, list | tuple):
        return None
    return next((device for part in arguments if (device := _device_of(part)) is not None), None)


class HybridBlock(Block):
    """A block whose own parameters may get their shapes from the first input.

    A subclass that leaves sizes of its own parameters open defines `infer_shape`, which fills them in.

    Examples
    --------
    >>> class Double(mx.gluon.HybridBlock):
    ...     def forward(self, x):
    ...         return 2 * x
    >>> Double()(np.ones(2))
    array([2., 2.])
    """

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for parameter in self._reg_params.values():
            if len(parameter._data) == 1:
                continue
            if not parameter._data and parameter.is_deferred:
                self._complete_shapes(args, kwargs)
            if len(parameter._data) > 1 and (device := _device_of((args, kwargs))) not in (None, current_device()):
                # `Parameter.data` gives the values on the current device.
                with device:
                    return self._run(args, kwargs)
            break
        # Hooks of operators see operators, not graphs.
        if self._compiled is not None and not has_op_hooks(self):
            return self._compiled(*args, **kwargs)
        return self._run_here(*args, **kwargs)

    def _complete_shapes(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Infer the sizes that parameters wait for, and make their arrays."""
        waiting = [parameter for parameter in self._reg_params.values() if parameter.is_deferred]
        # `infer_shape` takes the arguments of `forward` by position.
        bound = inspect.signature(self.forward).bind(*args, **kwargs).args if kwargs else args
        with unnoted():
            self.infer_shape(*bound)
            for parameter in waiting:
                parameter._finish_deferred_init()

    def _run_here(self, *args: Any, **kwargs: Any) -> Any:
        """Run the hooks and `forward`, for example in a trace."""
        if self._autocast is None:
            return super()._run(args, kwargs)
        with autocast(self._autocast):
            return super()._run(args, kwargs)

    _graph_options = GraphOptions()
    # The block as a compiled function, once it is hybridized.
    _compiled: Compiled | None = None
    # The dtype of mixed precision of a block that `amp.convert_hybrid_block` has made.
    _autocast: str | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Graphs belong to the block that was traced: a copy traces its own.
        return {name: value for name, value in vars(self).items() if name != "_compiled"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._compile()

    def _compile(self) -> None:
        """Become, or cease to be, a compiled function, as the options say."""
        options = self._graph_options
        compiled = None
        if options.active:
            body = BoundCall(HybridBlock._run_here, self, self.forward)
            chosen = (options.backend, options.memory_budget, options.partition_if_dynamic)
            compiled = Compiled(body, (), options.dynamic, *chosen)
        vars(self)["_compiled"] = compiled

    def trace_report(self) -> list[dict[str, Any]]:
        """What was traced of a hybridized block, one entry for each form of the arguments.

        Returns
        -------
        list of dict
            See `Compiled.trace_report`; empty if the block is not hybridized, or was called inside others only.
        """
        return [] if self._compiled is None else self._compiled.trace_report()

    def hybridize(  # type: ignore[override]  # the options of the base class, by name
        self,
        active: bool = True,
        partition_if_dynamic: bool = True,
        static_alloc: bool = False,
        static_shape: bool = False,
        inline_limit: int = 2,
        forward_bulk_size: int | None = None,
        backward_bulk_size: int | None = None,
        dynamic: Any = None,
        memory_budget: int | None = None,
        backend: str | None = None,
    ) -> None:
        """Ask for this block and those below to run as compiled graphs; the blocks keep what they are told.

        Parameters
        ----------
        active : bool
            False goes back to running operator by operator.
        partition_if_dynamic : bool
            Compile the parts around operators whose output shape depends on values; else a block that calls one runs
            operator by operator.
        static_alloc : bool
            Keep the memory of a graph between calls.
        static_shape : bool
            Plan for inputs that keep their shape; needs `static_alloc`.
        inline_limit : int
            Graphs of at most this number of operators become part of the graph that calls them.
        forward_bulk_size, backward_bulk_size : int, optional
            Largest number of operators that are launched together.
        dynamic : bool, int, tuple of int, InputSpec or sequence of InputSpec, optional
            Axes of the arguments that may have any length, as `mx.jit` takes them: one graph serves all.
        memory_budget : int, optional
            The most bytes of intermediate results of a training pass. Where it needs more, parts of the forward pass
            are computed again when the gradient needs them; results stay the same.
        backend : str, optional
            Name of a partitioner or pass that changes the graphs, see `optimize_for`.

        Raises
        ------
        TypeError
            If a number is no integer, or `dynamic` is something else.
        ValueError
            If a number is negative, `static_shape` is on without `static_alloc`, or there is no such backend.

        Notes
        -----
        The first call of each form of the arguments traces the block, with its children, and compiles it; see `mx.jit`.
        Children of a hybridized block run as part of its graph. `static_alloc`, `static_shape`, `inline_limit` and the
        bulk sizes were advice to another executor: memory is always planned and kept, and a graph is always one piece.

        Examples
        --------
        >>> net = mx.gluon.nn.Dense(2)
        >>> net.initialize()
        >>> net.hybridize(static_alloc=True)
        >>> net(np.ones((1, 3))).shape
        (1, 2)
        """
        check_backend("hybridize", backend)
        super().hybridize(
            active,
            partition_if_dynamic=partition_if_dynamic,
            static_alloc=static_alloc,
            static_shape=static_shape,
            inline_limit=inline_limit,
            forward_bulk_size=forward_bulk_size,
            backward_bulk_size=backward_bulk_size,
            dynamic=dynamic,
            memory_budget=memory_budget,
            backend=backend,
        )

    def optimize_for(
        self,
        x: Any,
        *args: Any,
        backend: str | None = None,
        clear: bool = False,
        partition_if_dynamic: bool = True,
        static_alloc: bool = False,
        static_shape: bool = False,
        inline_limit: int = 2,
        forward_bulk_size: int | None = None,
        backward_bulk_size: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Hybridize the block, compile it for example inputs and let a backend take parts of its graph.

        Parameters
        ----------
        x : ndarray
        *args
            Further arguments of `forward`.
        backend : str, optional
            Name that a partitioner, or a pass with ``backend=True``, was registered under. None compiles without one.
        clear : bool
            Forget a backend that was chosen before if `backend` is None; without it that one stays.
        partition_if_dynamic, static_alloc, static_shape, inline_limit, forward_bulk_size, backward_bulk_size
            See `hybridize`.
        **kwargs
            Further options of `hybridize`.

        Raises
        ------
        TypeError
            If an option is unknown.
        ValueError
            If there is no such backend.

        Examples
        --------
        >>> @mx.graph.register_pass(name="halves", backend=True)
        ... def halve(graph):
        ...     for node in graph.nodes:
        ...         if node.op == "divide":
        ...             graph.replace(node, "multiply", [node.inputs[0], 1 / node.inputs[1]])
        >>> net = mx.gluon.nn.HybridLambda(lambda x: x / 2)
        >>> net.optimize_for(np.ones(2), backend="halves")
        >>> net(np.ones(2))
        array([0.5, 0.5])
        >>> mx.graph.unregister_pass("halves")
        """
        check_backend("optimize_for", backend)
        if backend is None and not clear:
            backend = self._graph_options.backend
        given = {
            "partition_if_dynamic": partition_if_dynamic,
            "static_alloc": static_alloc,
            "static_shape": static_shape,
            "inline_limit": inline_limit,
            "forward_bulk_size": forward_bulk_size,
            "backward_bulk_size": backward_bulk_size,
            "backend": backend,
        }
        self._set_graph_options(GraphOptions.checked(type(self).__name__, True, given | kwargs))
        with autograd.pause():
            self(x, *args)

    def _set_graph_options(self, options: GraphOptions) -> None:
        self._graph_options = options
        self._compile()
        # Forms of arrays are those of this block's arguments.
        below = options if options.dynamic is True else replace(options, dynamic=None)
        super()._set_graph_options(below)

    def export(self, path: PathLike, epoch: int = 0, remove_amp_cast: bool = True) -> tuple[str, str]:
        """Write the block as a graph and its parameters, to be run without its Python code.

        Parameters
        ----------
        path : path
            The files are ``<path>-symbol.json`` and ``<path>-<epoch>.params`` (four digits).
        epoch : int
        remove_amp_cast : bool
            Casts of mixed precision are part of what the block computes: they stay, with any value.

        Returns
        -------
        tuple of str
            The names of both files.

        Raises
        ------
        RuntimeError
            If the block is not hybridized or was not called yet: the graphs are for calls like the last one.
        OSError
            If a file cannot be written.
        TypeError
            If the block returns something that a file cannot hold.
        UnsupportedError
            If its last call was with ragged arrays and the number of rows of a result is made of their lengths, or a
            backend of `mx.graph.register_partitioner` compiled a part of the graph: no other process has its code.

        Notes
        -----
        The file has the graph for prediction mode, which all readers run, and for blocks that compute something else in
        training mode (`Dropout`, `BatchNorm`) also that one, which `SymbolBlock` uses for training. To make them,
        `forward` and its hooks run in both modes. A warning says if there is no graph for training mode: because
        `forward` raises an error there, or draws from a generator of its own. The imported block is then trained as it
        predicts.

        Where the arguments are given by position, as arrays, the graph serves any number of samples, the length of
        their first axis, and for a first argument of three axes any number of steps, too, if the network does (see
        `mx.jit`). Other lengths, and all of keyword arguments and of lists of arrays, are those of the last call,
        unless ``hybridize(dynamic=...)`` says more. With a backend all lengths are those of the last call, and the file
        has the graph as the backend changed it. Ragged and sparse arguments may have any lengths and numbers of stored
        elements; their graph is not changed by a backend.
        """
        return write_graph(self, self._compiled, path, epoch)

    def infer_type(self, *args: Any) -> None:
        """Give the parameters the dtype of example inputs.

        Parameters
        ----------
        *args : ndarray
            Arguments of `forward`; the first one of a floating dtype counts. Without one nothing changes.

        Examples
        --------
        >>> net = mx.gluon.nn.Dense(2, in_units=1)
        >>> net.infer_type(np.ones((3, 1), dtype="float16"))
        >>> net.weight.dtype
        dtype('float16')
        """
        floating = [x.dtype for x in args if isinstance(x, ndarray) and x.dtype.kind in "fV"]
        if floating:
            self.cast(floating[0])

    def infer_shape(self, *args: Any) -> None:
        """Find out unknown sizes of the parameters from example inputs.

        A block without own unknown sizes runs `forward` once, unrecorded and in prediction mode, so that its children
        find out theirs; such children must have been initialized.

        Parameters
        ----------
        *args : ndarray
            Arguments of `forward`.

        Raises
        ------
        NotImplementedError
            If the block's own parameters have unknown sizes and the subclass does not define this method.
        """
        waiting = [name for name, parameter in self._reg_params.items() if parameter.is_deferred]
        if waiting:
            raise NotImplementedError(
                f"{type(self).__name__} must define infer_shape, because sizes of {listed(waiting)} are unknown"
            )
        with autograd.pause():
            self.forward(*args)
