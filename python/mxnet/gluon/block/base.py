"""The base class of blocks: structure, parameters, hooks, files and calls."""

from __future__ import annotations

import inspect
import re
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self, TypeVar

from mxnet import _core, initializer
from mxnet._renamed import RemovedAttribute, check_removed_keywords, old_keywords, old_method, removed_keywords
from mxnet.base import DTypeLike, PathLike
from mxnet.gluon import _structure
from mxnet.gluon._checkpoint import load_arrays, save_arrays
from mxnet.gluon._containers import warn_of_unregistered
from mxnet.gluon._failure import foreign_inputs, indented, locate, without_forward
from mxnet.gluon._graph_options import GraphOptions
from mxnet.gluon._load import LoadOptions, load_parameters
from mxnet.gluon._op_hooks import OpCallback, run_with_op_hooks
from mxnet.gluon._profiling import in_scope_of
from mxnet.gluon._summary import summary_table
from mxnet.gluon.parameter import DeviceLike, Parameter, ParameterDict
from mxnet.gluon.utils import HookHandle
from mxnet.numpy import ndarray

__all__ = ["Block", "has_op_hooks"]

PreHook = Callable[["Block", tuple[Any, ...]], None]
Hook = Callable[["Block", tuple[Any, ...], Any], None]
_Self = TypeVar("_Self", bound="Block")

# Blocks that got hooks of operators and may still have some.
_op_hooked: weakref.WeakSet[Block] = weakref.WeakSet()


def has_op_hooks(block: Block) -> bool:
    """Whether the block or a block below it has hooks of operators.

    Parameters
    ----------
    block : Block

    Returns
    -------
    bool
    """
    if not _op_hooked:
        return False
    for hooked in list(_op_hooked):
        if not hooked._op_hooks:
            _op_hooked.discard(hooked)
    return bool(_op_hooked) and any(below._op_hooks for below in block._blocks())


_NAMED = "blocks and parameters are named by the attributes that hold them, as `collect_params` shows them"
# Arguments that constructors of blocks had in MXNet 1.x.
_REMOVED_ARGUMENTS = {
    "params": "to share a parameter, assign it to the attribute of both blocks, or call `share_parameters`",
    "prefix": _NAMED,
}


class _WithoutOlderArguments:
    """Gives the constructors of all blocks an error that explains the older arguments.

    A base class, because `inspect.signature` looks for `__init__` before `__new__` of a base class only.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        if kwargs:
            check_removed_keywords(cls.__init__, kwargs, _REMOVED_ARGUMENTS)
        return super().__new__(cls)


class Block(_WithoutOlderArguments):
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
    # Whether arrays of NumPy are arguments like others, and so explain no error.
    _takes_numpy = False

    name_scope = RemovedAttribute("blocks are named by the attributes that hold them, and make children anywhere")
    name = RemovedAttribute(_NAMED)
    prefix = RemovedAttribute(_NAMED)

    @removed_keywords(_REMOVED_ARGUMENTS)
    def __init__(self) -> None:
        for name in ("_children", "_reg_params", "_forward_hooks", "_forward_pre_hooks", "_op_hooks"):
            object.__setattr__(self, name, {})

    def __dir__(self) -> list[str]:
        # Programs read every attribute that `dir` lists, to find arrays for example; removed ones only raise.
        found = super().__dir__()
        return [name for name in found if not isinstance(inspect.getattr_static(self, name, None), RemovedAttribute)]

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if self._op_hooks:
            _op_hooked.add(self)

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
        return ParameterDict(self._reg_params)

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
            return ParameterDict(named)
        pattern = re.compile(select)
        return ParameterDict((name, parameter) for name, parameter in named if pattern.match(name))

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
        What `callback` computes is not shown to it. An exception of `callback` ends the call. While a block has such
        hooks, it and the hybridized blocks around it run operator by operator, because a graph has other operators.

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
        _op_hooked.add(self)
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
        options = LoadOptions(device, allow_missing, ignore_extra, cast_dtype, dtype_source)
        load_parameters(self, load_arrays(filename), options, f"file {str(filename)!r}")

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
        options = LoadOptions(device, allow_missing, ignore_extra, cast_dtype, dtype_source)
        load_parameters(self, param_dict, options, "dictionary")

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
        DeferredInitializationError
            If `infer_shape` of a hybrid block leaves a size unknown.
        RuntimeError
            If a parameter is not initialized.

        Notes
        -----
        A hybrid block first calls `infer_shape` if parameters wait for their sizes.

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
            problem = foreign_inputs(self, args, kwargs, error)
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
        if _core.profiler_uses_scopes():
            return in_scope_of(self, lambda: self._run_with_hooks(args, kwargs))
        if self._forward_pre_hooks or self._forward_hooks:
            return self._run_with_hooks(args, kwargs)
        return self.forward(*args, **kwargs)

    def _run_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._forward_pre_hooks:
            for pre_hook in list(self._forward_pre_hooks.values()):
                pre_hook(self, args)
        out = self.forward(*args, **kwargs)
        if self._forward_hooks:
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
        raise NotImplementedError(without_forward(type(self)))

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
