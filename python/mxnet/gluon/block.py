"""Blocks: the building parts of networks."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from mxnet import autograd, initializer
from mxnet._jit import BoundCall, Compiled, check_backend
from mxnet._renamed import old_keywords, old_method
from mxnet._sizes import unnoted
from mxnet.base import DTypeLike, PathLike
from mxnet.gluon import _structure
from mxnet.gluon._checkpoint import load_arrays, save_arrays
from mxnet.gluon._containers import warn_of_unregistered
from mxnet.gluon._export import write_graph
from mxnet.gluon._failure import foreign_inputs, indented, listed, locate
from mxnet.gluon._graph_options import GraphOptions
from mxnet.gluon._op_hooks import OpCallback, run_with_op_hooks
from mxnet.gluon._summary import summary_table
from mxnet.gluon.parameter import DeviceLike, Parameter
from mxnet.gluon.utils import HookHandle
from mxnet.numpy import ndarray

__all__ = ["Block", "HybridBlock"]

PreHook = Callable[["Block", tuple[Any, ...]], None]
Hook = Callable[["Block", tuple[Any, ...], Any], None]
_Self = TypeVar("_Self", bound="Block")


class Block:
    """A part of a network: parameters, child blocks and a `forward` method.

    Parameters and blocks that are assigned to attributes are registered under the attribute's name; their names in the
    whole network are these joined by dots, as in ``"features.0.weight"``.

    Examples
    --------
    >>> import mxnet as mx
    >>> class Net(mx.gluon.Block):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.hidden = mx.gluon.nn.Dense(8, activation="relu")
    ...         self.out = mx.gluon.nn.Dense(2)
    ...     def forward(self, x):
    ...         return self.out(self.hidden(x))
    >>> net = Net()
    >>> net.initialize()
    >>> net(mx.np.ones((4, 3))).shape
    (4, 2)
    >>> list(net.collect_params())
    ['hidden.weight', 'hidden.bias', 'out.weight', 'out.bias']
    """

    _children: dict[str, Block]
    _reg_params: dict[str, Parameter]
    _forward_hooks: dict[int, Hook]
    _forward_pre_hooks: dict[int, PreHook]
    _op_hooks: dict[int, tuple[OpCallback, bool]]

    def __init__(self) -> None:
        for name in ("_children", "_reg_params", "_forward_hooks", "_forward_pre_hooks", "_op_hooks"):
            object.__setattr__(self, name, {})

    def __repr__(self) -> str:
        lines = [f"  ({name}): {indented(repr(child))}" for name, child in self._children.items()]
        return f"{type(self).__name__}(\n{chr(10).join(lines)}\n)" if lines else f"{type(self).__name__}()"

    # ---- structure ----

    def __setattr__(self, name: str, value: Any) -> None:
        if "_children" not in self.__dict__:
            if isinstance(value, Block | Parameter):
                raise RuntimeError(
                    f"{type(self).__name__}.__init__ must call super().__init__() before {name!r} is set"
                )
            object.__setattr__(self, name, value)
            return
        old = self.__dict__.get(name)
        if isinstance(old, Block | Parameter) and not isinstance(value, Block if isinstance(old, Block) else Parameter):
            if value is not None:
                raise TypeError(
                    f"attribute {name!r} of {type(self).__name__} is a {type(old).__name__} "
                    f"and cannot become a {type(value).__name__}"
                )
            self._children.pop(name, None)
            self._reg_params.pop(name, None)
        if isinstance(value, Block):
            self.register_child(value, name)
        elif isinstance(value, Parameter):
            self._reg_params[name] = value
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        self._children.pop(name, None)
        self._reg_params.pop(name, None)
        object.__delattr__(self, name)

    def register_child(self, block: Block, name: str | None = None) -> None:
        """Register a child block.

        Parameters
        ----------
        block : Block
        name : str, optional
            The number of children so far by default.
        """
        self._children[str(len(self._children)) if name is None else name] = block

    @property
    def params(self) -> dict[str, Parameter]:
        """The block's own parameters, without its children's, by attribute name."""
        return dict(self._reg_params)

    def _named_params(self, prefix: str = "") -> Iterator[tuple[str, Parameter]]:
        for name, parameter in self._reg_params.items():
            yield prefix + name, parameter
        for name, child in self._children.items():
            yield from child._named_params(f"{prefix}{name}.")

    def _blocks(self) -> Iterator[Block]:
        """This block and all below it, each once."""
        seen: set[int] = set()
        waiting: list[Block] = [self]
        while waiting:
            block = waiting.pop()
            if id(block) not in seen:
                seen.add(id(block))
                yield block
                waiting.extend(reversed(block._children.values()))

    def collect_params(self, select: str | None = None) -> dict[str, Parameter]:
        """All parameters of the block and its children.

        Parameters
        ----------
        select : str, optional
            Regular expression; only parameters are returned whose name it matches from the beginning.

        Returns
        -------
        dict of str to Parameter
            By name in the network; shared parameters appear under each of their names.

        Warns
        -----
        UserWarning
            If a block keeps blocks in a list, tuple or dictionary, which nothing registers.

        Examples
        --------
        >>> from mxnet.gluon import nn
        >>> net = nn.Sequential()
        >>> net.add(nn.Dense(4), nn.Dense(2))
        >>> list(net.collect_params(".*weight"))
        ['0.weight', '1.weight']
        """
        warn_of_unregistered(self, Block)
        named = self._named_params()
        if select is None:
            return dict(named)
        pattern = re.compile(select)
        return {name: parameter for name, parameter in named if pattern.match(name)}

    def apply(self: _Self, fn: Callable[[Block], object]) -> _Self:
        """Call a function with every block below this one and then with this one.

        Parameters
        ----------
        fn : callable of a Block

        Returns
        -------
        Block
            This block.
        """
        for child in self._children.values():
            child.apply(fn)
        fn(self)
        return self

    # ---- hooks ----

    def register_forward_pre_hook(self, hook: PreHook) -> HookHandle:
        """Call a function before each forward pass.

        Parameters
        ----------
        hook : callable of (block, inputs)
            `inputs` is the tuple of positional arguments.

        Returns
        -------
        HookHandle
            Its `detach` removes the hook.
        """
        handle = HookHandle()
        handle.attach(self._forward_pre_hooks, hook)
        return handle

    def register_forward_hook(self, hook: Hook) -> HookHandle:
        """Call a function after each forward pass.

        Parameters
        ----------
        hook : callable of (block, inputs, output)
            `inputs` is the tuple of positional arguments.

        Returns
        -------
        HookHandle
            Its `detach` removes the hook.
        """
        handle = HookHandle()
        handle.attach(self._forward_hooks, hook)
        return handle

    def register_op_hook(self, callback: OpCallback, monitor_all: bool = False) -> HookHandle:
        """Call a function with the results of every operator that runs while this block does.

        Parameters
        ----------
        callback : callable of (name, operator, array)
            `name` is the operator's name, its number in the call and which result it is, such as
            ``"fully_connected0_output"``. An operator that is made of others does not appear, these do.
        monitor_all : bool
            Show the inputs of each operator too, as ``"fully_connected0_input0"``, before its results.

        Returns
        -------
        HookHandle
            Its `detach` removes the hook.

        Notes
        -----
        What `callback` computes is not shown to it. An exception of `callback` ends the call.

        Examples
        --------
        >>> net = mx.gluon.nn.Dense(2, activation="relu")
        >>> net.initialize()
        >>> with net.register_op_hook(lambda name, operator, array: print(name, array.shape)):
        ...     _ = net(np.ones((3, 4)))
        fully_connected0_output (3, 2)
        relu1_output (3, 2)
        """
        handle = HookHandle()
        handle.attach(self._op_hooks, (callback, monitor_all))
        return handle

    # ---- parameters ----

    @old_keywords(ctx="device")
    def initialize(
        self,
        init: Any = None,
        device: DeviceLike | None = None,
        verbose: bool = False,
        force_reinit: bool = False,
    ) -> None:
        """Initialize all parameters of the block and its children.

        Parameters
        ----------
        init : Initializer or str, optional
            For parameters without an initializer of their own; ``Uniform()`` by default.
        device : Device or sequence of Device, optional
            The current device by default.
        verbose : bool
            Print what is initialized.
        force_reinit : bool
            Initialize anew what has values already.

        Raises
        ------
        DeferredInitializationError
            If a shape is not known and cannot become known from the input.
        """
        rule = initializer.Uniform() if init is None else initializer.create(init)
        if verbose:
            rule.set_verbosity(verbose=True)
        # A parameter that is used in two places is one parameter.
        for parameter in dict.fromkeys(self.collect_params().values()):
            parameter.initialize(None, device, rule, force_reinit=force_reinit)

    def zero_grad(self) -> None:
        """Set all gradients to zero."""
        for parameter in self.collect_params().values():
            parameter.zero_grad()

    @old_keywords(ctx="device")
    def reset_device(self, device: DeviceLike) -> None:
        """Move all parameters to other devices.

        Parameters
        ----------
        device : Device or sequence of Device

        Raises
        ------
        RuntimeError
            If a parameter is not initialized.
        """
        for parameter in self.collect_params().values():
            parameter.reset_device(device)

    reset_ctx = old_method("reset_ctx", reset_device, {"ctx": "device"})

    def setattr(self, name: str, value: Any) -> None:
        """Set an attribute of all parameters.

        Parameters
        ----------
        name : str
        value : object

        Raises
        ------
        AttributeError
            If parameters have no such attribute.

        Examples
        --------
        >>> from mxnet.gluon import nn
        >>> net = nn.Dense(2, in_units=3)
        >>> net.setattr("grad_req", "null")
        """
        for parameter in self.collect_params().values():
            if not hasattr(parameter, name):
                raise AttributeError(f"{type(parameter).__name__} has no attribute {name!r}")
            setattr(parameter, name, value)

    def cast(self, dtype: DTypeLike) -> None:
        """Change the dtype of all parameters.

        Parameters
        ----------
        dtype : dtype
        """
        for child in self._children.values():
            child.cast(dtype)
        for parameter in self._reg_params.values():
            parameter.cast(dtype)

    def share_parameters(self: _Self, shared: Mapping[str, Parameter] | None) -> _Self:
        """Use the parameters of another block.

        Parameters
        ----------
        shared : mapping of str to Parameter, or None
            As from `collect_params`; names that this block does not have are passed over. None shares nothing.

        Returns
        -------
        Block
            This block.

        Raises
        ------
        TypeError
            If `shared` is no mapping of names to parameters.
        ValueError
            If a shape differs.

        Examples
        --------
        >>> from mxnet.gluon import nn
        >>> first, second = nn.Dense(2, in_units=3), nn.Dense(2, in_units=3)
        >>> second.share_parameters(first.collect_params()).weight is first.weight
        True
        """
        if shared is None:
            return self
        if not isinstance(shared, Mapping):
            raise TypeError(f"`shared` must be a mapping of names to parameters, found {type(shared).__name__}")
        self._share(shared, "")
        return self

    def _share(self, shared: Mapping[str, Parameter], prefix: str) -> None:
        for name, own in list(self._reg_params.items()):
            other = shared.get(prefix + name)
            if other is None:
                continue
            if own.shape is not None and other.shape is not None:
                same_rank = len(own.shape) == len(other.shape)
                if not same_rank or any(
                    a > 0 and b > 0 and a != b for a, b in zip(own.shape, other.shape, strict=True)
                ):
                    raise ValueError(f"{prefix + name!r} has shape {own.shape}, the parameter to share {other.shape}")
            setattr(self, name, other)
        for name, child in self._children.items():
            child._share(shared, f"{prefix}{name}.")

    # ---- graphs ----

    def hybridize(self, active: bool = True, **kwargs: Any) -> None:
        """Ask the hybrid blocks at and below this block to run as compiled graphs.

        Parameters
        ----------
        active : bool
        **kwargs
            Options of `HybridBlock.hybridize`.

        Raises
        ------
        TypeError
            If an option is unknown.
        ValueError
            If the value of an option is out of range.
        """
        self._set_graph_options(GraphOptions.checked(type(self).__name__, active, kwargs))

    def _set_graph_options(self, options: GraphOptions) -> None:
        for child in self._children.values():
            child._set_graph_options(options)

    # ---- files ----

    def save_parameters(self, filename: PathLike, deduplicate: bool = False) -> None:
        """Write all parameters to a safetensors file.

        The file appears whole or not at all: a crash leaves an older one untouched.

        Parameters
        ----------
        filename : path
        deduplicate : bool
            Write parameters that are used in several places once, under their first name.

        Raises
        ------
        DeferredInitializationError
            If a shape is not known yet.
        RuntimeError
            If a parameter is not initialized.
        OSError
            If the file cannot be written.
        """
        arrays: dict[str, ndarray] = {}
        seen: set[int] = set()
        for name, parameter in self.collect_params().items():
            if not (deduplicate and id(parameter) in seen):
                arrays[name] = parameter.list_data()[0]
            seen.add(id(parameter))
        save_arrays(filename, arrays, {"format": "mxnet", "block": type(self).__name__})

    @old_keywords(ctx="device")
    def load_parameters(
        self,
        filename: PathLike,
        device: DeviceLike | None = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        cast_dtype: bool = False,
        dtype_source: str = "current",
    ) -> None:
        """Read parameters from a file that `save_parameters` wrote, here or in MXNet 1.x and 2.x.

        Parameters
        ----------
        filename : path
            A safetensors file, an npz archive or a binary list of arrays; its first bytes say which.
        device : Device or sequence of Device, optional
            By default where the parameters are, or the current device for those that are not initialized.
        allow_missing : bool
            Leave parameters alone that the file lacks.
        ignore_extra : bool
            Pass over arrays for which the block has no parameter.
        cast_dtype : bool
            Convert where dtypes differ.
        dtype_source : {"current", "saved"}
            Which dtype then wins.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        FileFormatError
            If the file is truncated, damaged or of another format.
        ValueError
            If parameters are missing or extra, or a shape differs. No parameter is changed then.
        TypeError
            If a dtype differs and `cast_dtype` is off. No parameter is changed then.
        """
        self._load(
            load_arrays(filename),
            device,
            allow_missing,
            ignore_extra,
            cast_dtype,
            dtype_source,
            f"file {str(filename)!r}",
        )

    @old_keywords(ctx="device")
    def load_dict(
        self,
        param_dict: Mapping[str, ndarray],
        device: DeviceLike | None = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        cast_dtype: bool = False,
        dtype_source: str = "current",
    ) -> None:
        """Take parameters from a dictionary.

        Parameters
        ----------
        param_dict : mapping of str to ndarray
        device, allow_missing, ignore_extra, cast_dtype, dtype_source
            See `load_parameters`.

        Raises
        ------
        ValueError, TypeError
            See `load_parameters`.
        """
        self._load(param_dict, device, allow_missing, ignore_extra, cast_dtype, dtype_source, "dictionary")

    def save(self, prefix: PathLike) -> None:
        """Write the structure and the parameters of the network.

        Parameters
        ----------
        prefix : path
            ``-model.json`` and ``-model.params`` are appended.

        Raises
        ------
        RuntimeError
            If a parameter is not initialized.
        OSError
            If a file cannot be written.
        """
        structure, parameters = _structure.files(prefix)
        self.save_parameters(parameters)
        _structure.write(self, structure)

    def load(self, prefix: PathLike) -> None:
        """Read what `save` wrote into a network of the same structure.

        Parameters
        ----------
        prefix : path

        Raises
        ------
        FileNotFoundError
            If a file is missing.
        FileFormatError
            If a file is damaged or of another format.
        ValueError
            If the network has another structure, with the first place that differs.
        """
        structure, parameters = _structure.files(prefix)
        _structure.check(self, structure)
        self.load_parameters(parameters)

    def _load(
        self,
        arrays: Mapping[str, ndarray],
        device: DeviceLike | None,
        allow_missing: bool,
        ignore_extra: bool,
        cast_dtype: bool,
        dtype_source: str,
        source: str,
    ) -> None:
        if dtype_source not in ("current", "saved"):
            raise ValueError(f"`dtype_source` must be 'current' or 'saved', found {dtype_source!r}")
        params = self.collect_params()
        names: dict[int, list[str]] = {}
        for name, parameter in params.items():
            names.setdefault(id(parameter), []).append(name)
        # One stored name is enough for a parameter that is used in several places.
        missing = [group[0] for group in names.values() if not any(name in arrays for name in group)]
        extra = [name for name in arrays if name not in params]
        if missing and not allow_missing:
            raise ValueError(f"{source} lacks {listed(missing)}; `allow_missing=True` leaves them as they are")
        if extra and not ignore_extra:
            raise ValueError(
                f"{source} has {listed(extra)}, which {type(self).__name__} has not; "
                "`ignore_extra=True` passes over them"
            )
        wanted = [(params[name], name, array) for name, array in arrays.items() if name in params]
        for parameter, name, array in wanted:
            parameter._check_loadable(array, cast_dtype, f"{source}, {name!r}")
        for parameter, _, array in wanted:
            parameter._load_init(array, device, dtype_source)

    # ---- running ----

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the hooks and `forward`.

        Parameters
        ----------
        *args, **kwargs
            Arguments of `forward`.

        Returns
        -------
        object
            What `forward` returns.

        Raises
        ------
        TypeError
            If a call fails that was given an array of NumPy.

        Notes
        -----
        Exceptions get a note with the path of the block, such as ``features.3``, and what it was called with.

        Without arguments, if `forward` needs some, the result is the block itself: MXNet 2 kept weak references to
        children, and its programs write ``child()(x)``.
        """
        if not args and not kwargs and self._needs_arguments():
            return self
        try:
            if self._op_hooks:
                return run_with_op_hooks(self._op_hooks, lambda: self._run(args, kwargs))
            return self._run(args, kwargs)
        except Exception as error:
            problem = foreign_inputs(self, args, kwargs)
            if problem is not None and not hasattr(error, "_block_path"):
                clear = TypeError(problem)
                locate(self, args, kwargs, clear)
                raise clear from error
            locate(self, args, kwargs, error)
            raise

    def _needs_arguments(self) -> bool:
        parameters = inspect.signature(self.forward).parameters.values()
        kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        return any(p.default is p.empty and p.kind not in kinds for p in parameters)

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for pre_hook in list(self._forward_pre_hooks.values()):
            pre_hook(self, args)
        out = self.forward(*args, **kwargs)
        for hook in list(self._forward_hooks.values()):
            hook(self, args, out)
        return out

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the output; to be defined by the subclass.

        Parameters
        ----------
        *args, **kwargs
            Usually arrays.

        Returns
        -------
        object
            Usually an array.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define forward")

    def summary(self, *inputs: Any) -> None:
        """Run the block on example inputs and print a table of its parts.

        For each block: shape of the output, numbers in its own parameters, floating-point operations and bytes of the
        results of its own operators, without those of its children. A product that is added counts as two operations,
        any other operator as one for each element.

        Parameters
        ----------
        *inputs : ndarray
            Arguments of `forward`.

        Examples
        --------
        >>> import mxnet as mx
        >>> net = mx.gluon.nn.Dense(2)
        >>> net.initialize()
        >>> net.summary(mx.np.ones((1, 3)))
        layer      output shape    parameters  FLOPs  bytes
        ---------------------------------------------------
        input      (1, 3)                   0
        Dense      (1, 2)                   8     12      8
        ---------------------------------------------------
        trainable                           8
        fixed                               0
        total                               8     12      8
        """
        print(summary_table(self, inputs))


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

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Infer shapes if parameters wait for them, then run the hooks and `forward`.

        Parameters
        ----------
        *args, **kwargs
            Arguments of `forward`.

        Returns
        -------
        object
            What `forward` returns.

        Raises
        ------
        DeferredInitializationError
            If `infer_shape` leaves a size unknown.
        RuntimeError
            If a parameter is not initialized.
        """
        return super().__call__(*args, **kwargs)

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        waiting = [parameter for parameter in self._reg_params.values() if parameter.is_deferred]
        if waiting:
            # `infer_shape` takes the arguments of `forward` by position.
            bound = inspect.signature(self.forward).bind(*args, **kwargs).args if kwargs else args
            with unnoted():
                self.infer_shape(*bound)
                for parameter in waiting:
                    parameter._finish_deferred_init()
        # Hooks of operators see operators, not graphs.
        if self._compiled is not None and not self._op_hooks:
            return self._compiled(*args, **kwargs)
        return self._run_here(*args, **kwargs)

    def _run_here(self, *args: Any, **kwargs: Any) -> Any:
        """Run the hooks and `forward`, for example in a trace."""
        return super()._run(args, kwargs)

    _graph_options = GraphOptions()
    # The block as a compiled function, once it is hybridized.
    _compiled: Compiled | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Graphs belong to the block that was traced: a copy traces its own.
        return {name: value for name, value in vars(self).items() if name != "_compiled"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
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

        Raises
        ------
        TypeError
            If a number is no integer, or `dynamic` is something else.
        ValueError
            If a number is negative, or `static_shape` is on without `static_alloc`.

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
            Graphs have no casts of mixed precision that could be removed; any value gives the same file.

        Returns
        -------
        tuple of str
            The names of both files.

        Raises
        ------
        RuntimeError
            If the block is not hybridized or was not called yet: the graph is that of the last call, in prediction
            mode.
        OSError
            If a file cannot be written.
        TypeError
            If the block returns something that a file cannot hold.
        UnsupportedError
            If its last call was with ragged or sparse arrays.
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
                f"{type(self).__name__} must define infer_shape, because {listed(waiting)} have unknown sizes"
            )
        with autograd.pause():
            self.forward(*args)
