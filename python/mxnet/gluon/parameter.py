"""Parameters: the arrays of a network, their gradients and their first values."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from mxnet import _core, autograd, initializer
from mxnet import numpy as np
from mxnet._caller_warning import warn_caller
from mxnet._jit import watch_parameters
from mxnet._renamed import old_keywords, old_method
from mxnet.base import DTypeLike, MXNetError, Shape, dtype_name, dtype_object
from mxnet.device import Device, current_device
from mxnet.numpy import ndarray

if TYPE_CHECKING:
    from mxnet.sparse import row_sparse_array

__all__ = ["Constant", "DeferredInitializationError", "Parameter", "ParameterDict", "is_known"]

GRAD_REQS = ("write", "add", "null")
GRAD_STYPES = ("default", "row_sparse")
DeviceLike = Device | str | Sequence[Device | str]
_Error = TypeVar("_Error", bound=Exception)
# Methods that `ParameterDict` had in MXNet 1.x, and what does their work.
_REMOVED_METHODS = {
    "get_constant": "assign a `mx.gluon.Constant` to an attribute of the block",
    "initialize": "call `Block.initialize`",
    "list_ctx": "call `Parameter.list_device` of each",
    "load": "call `Block.load_parameters`",
    "load_dict": "call `Block.load_dict`",
    "prefix": "parameters are named by the attributes of blocks",
    "reset_ctx": "call `Block.reset_device`",
    "save": "call `Block.save_parameters`",
    "setattr": "call `Block.setattr`",
    "zero_grad": "call `Block.zero_grad`",
}


class DeferredInitializationError(MXNetError):
    """A parameter's values were asked for before its shape was known."""


def is_known(shape: Shape | None) -> bool:
    """Whether every size of a shape is known.

    Parameters
    ----------
    shape : tuple of int or None
        Unknown sizes are -1 (or 0, as older programs write them).

    Returns
    -------
    bool
    """
    return shape is not None and all(size > 0 for size in shape)


def _fits(pattern: Shape, shape: Sequence[int]) -> bool:
    """Whether `shape` agrees with all known sizes of `pattern`."""
    return len(pattern) == len(shape) and all(
        known <= 0 or known == size for known, size in zip(pattern, shape, strict=True)
    )


def _named(name: str) -> Device:
    """The device of a name, which the engine reads."""
    made: ndarray = np.empty((0,), device=name)  # type: ignore[arg-type]
    return made.device


def _device_list(device: DeviceLike | None) -> list[Device]:
    if device is None:
        return [current_device()]
    named = [device] if isinstance(device, Device | str) else list(device)
    devices: list[Any] = [_named(one) if isinstance(one, str) else one for one in named]
    for one in devices:
        if not isinstance(one, Device):
            raise TypeError(f"`device` must be a device or a sequence of devices, found {type(one).__name__} in it")
    if not devices:
        raise ValueError("`device` must name at least one device")
    if len(set(devices)) != len(devices):
        raise ValueError(f"`device` names a device twice: {devices}")
    return devices


class Parameter:
    """An array that training changes, with a copy and a gradient on each of its devices.

    Parameters
    ----------
    name : str
        Its suffix tells initializers what the array is for; blocks use the attribute's name.
    grad_req : {"write", "add", "null"}
        Whether a backward pass overwrites the gradient, adds to it, or there is none.
    shape : int, tuple of int or None
        -1 (or 0) for sizes that are found out from the first input.
    dtype : dtype
    lr_mult, wd_mult : float
        Factors of the learning rate and of the weight decay.
    init : Initializer or str, optional
        First values; by default those of the block's `initialize`.
    allow_deferred_init : bool
        Let `initialize` wait for the first input if the shape is not known.
    differentiable : bool
        False forces `grad_req` to be ``"null"``.
    stype : {"default"}
        Storage of the values, which are dense; `row_sparse_data` gives some rows of them.
    grad_stype : {"default", "row_sparse"}
        Storage of the gradient: all elements, or the rows that a gradient flowed into. `grad` is a `row_sparse_array`
        then, which optimizers with `lazy_update` apply to these rows only.

    Raises
    ------
    ValueError
        If `grad_req` or a storage is unknown.

    Examples
    --------
    >>> weight = mx.gluon.Parameter('weight', shape=(2, 3))
    >>> weight.initialize(init='ones')
    >>> weight.data().shape, weight.grad().sum()
    ((2, 3), array(0.))
    """

    def __init__(
        self,
        name: str = "weight",
        grad_req: str = "write",
        shape: int | Sequence[int] | None = None,
        dtype: DTypeLike = "float32",
        lr_mult: float = 1.0,
        wd_mult: float = 1.0,
        init: Any = None,
        allow_deferred_init: bool = False,
        differentiable: bool = True,
        stype: str = "default",
        grad_stype: str = "default",
    ) -> None:
        if stype != "default":
            raise ValueError(f"parameter {name!r}: `stype` must be 'default', found {stype!r}")
        if grad_stype not in GRAD_STYPES:
            raise ValueError(f"parameter {name!r}: `grad_stype` must be one of {GRAD_STYPES}, found {grad_stype!r}")
        self._grad_stype = grad_stype
        self._name = name
        self._uuid = str(uuid.uuid4())
        self._shape: Shape | None = (shape,) if isinstance(shape, int) else None if shape is None else tuple(shape)
        self._dtype = dtype_name(dtype)
        self._data: dict[Device, ndarray] = {}
        self._deferred: tuple[Any, list[Device], Any] | None = None
        self._differentiable = differentiable
        self._allow_deferred_init = allow_deferred_init
        self._grad_req = "null"
        self.grad_req = grad_req
        self.lr_mult = lr_mult
        self.wd_mult = wd_mult
        self.init = init
        watch_parameters(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__} (shape={self.shape}, dtype={self._dtype})"

    # ---- what it is ----

    @property
    def name(self) -> str:
        """Name of the parameter; its place in a network is the key in `Block.collect_params`."""
        return self._name

    @property
    def dtype(self) -> Any:
        """Dtype of values and gradient; setting it is the same as `cast`."""
        return dtype_object(self._dtype)

    @dtype.setter
    def dtype(self, dtype: DTypeLike) -> None:
        self.cast(dtype)

    @property
    def shape(self) -> Shape | None:
        """Shape, with -1 for sizes not known yet; None if nothing is known.

        Setting it fills in unknown sizes; ValueError if a known size would change.
        """
        return self._shape

    @shape.setter
    def shape(self, shape: Sequence[int]) -> None:
        new = tuple(shape)
        if self._shape is not None and not _fits(self._shape, new):
            raise self._about(ValueError(f"parameter {self._name!r}: shape {self._shape} cannot become {new}"))
        self._shape = new

    @property
    def grad_req(self) -> str:
        """What a backward pass does with the gradient: ``"write"``, ``"add"`` or ``"null"`` (nothing)."""
        return self._grad_req

    @grad_req.setter
    def grad_req(self, req: str) -> None:
        if req not in GRAD_REQS:
            raise ValueError(f"parameter {self._name!r}: `grad_req` must be one of {GRAD_REQS}, found {req!r}")
        if not self._differentiable:
            req = "null"
        if req == self._grad_req:
            return
        self._grad_req = req
        for array in self._data.values():
            self._attach(array)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Fill a copy or a parameter that is unpickled: its gradients are its own and start at zero."""
        vars(self).update(state)
        watch_parameters(self)
        for array in self._data.values():
            self._attach(array)

    # Parameters that were pickled before gradients could be row-sparse have dense ones.
    _grad_stype = "default"

    # Counts how often arrays of the parameter or of its gradient were replaced by others.
    _generation = 0

    # Counts calls of `set_data`, for stores that keep values of their own.
    _num_writes = 0

    def _note_replaced(self) -> None:
        self._generation += 1
        _core.parameters_replaced()

    def _attach(self, array: ndarray) -> None:
        self._note_replaced()
        if self._grad_req == "null":
            array.drop_grad()
        else:
            array.attach_grad(self._grad_req, self._grad_stype)

    # ---- first values ----

    @old_keywords(ctx="device")
    def initialize(
        self,
        init: Any = None,
        device: DeviceLike | None = None,
        default_init: Any = None,
        force_reinit: bool = False,
    ) -> None:
        """Make the arrays and give them their first values, now or, if the shape is not known, at the first input.

        Parameters
        ----------
        init : Initializer or str, optional
            By default the parameter's own `init`, and without one `default_init`.
        device : Device or sequence of Device, optional
            Where the copies lie; the current device by default.
        default_init : Initializer or str, optional
            ``Uniform()`` by default.
        force_reinit : bool
            Initialize anew what has values already; without it a warning is given and nothing happens.

        Raises
        ------
        DeferredInitializationError
            If the shape is not known and `allow_deferred_init` is False.
        ValueError
            If `device` is empty or names a device twice.
        """
        if self._data and not force_reinit:
            warn_caller(
                f"parameter {self._name!r} is initialized already and stays as it is; `force_reinit=True` changes that"
            )
            return
        devices = _device_list(device)
        chosen = self.init if init is None else init
        fallback = initializer.Uniform() if default_init is None else default_init
        self._note_replaced()
        self._data = {}
        self._deferred = (chosen, devices, fallback)
        if is_known(self._shape):
            self._finish_deferred_init()
        elif not self._allow_deferred_init:
            self._deferred = None
            raise DeferredInitializationError(
                f"parameter {self._name!r} cannot be initialized: its shape {self._shape} is not known"
            )

    @property
    def is_deferred(self) -> bool:
        """Whether `initialize` was called but waits for the shape."""
        return self._deferred is not None and not self._data

    def _finish_deferred_init(self) -> None:
        """Make the arrays for which `initialize` had to wait."""
        if self._deferred is None:
            return
        if not is_known(self._shape):
            raise self._about(
                DeferredInitializationError(
                    f"parameter {self._name!r}: its shape {self._shape} is not known even after seeing the input"
                )
            )
        # A layer may find out its shapes while a function that calls it is traced, kept as a checkpoint or batched: its
        # values are real all the same.
        _core.outside_trace(self._make_arrays)

    def _make_arrays(self) -> None:
        """Make the arrays that `initialize` asked for; the shape is known."""
        assert self._deferred is not None
        init, devices, fallback = self._deferred
        assert self._shape is not None
        with autograd.pause():
            first = np.zeros(self._shape, dtype=self._dtype, device=devices[0])
            attrs = {} if init is None else {"__init__": init}
            desc = initializer.InitDesc(self._name, attrs, fallback)
            rule = initializer.create(fallback)
            if not callable(rule):
                raise TypeError(f"parameter {self._name!r}: {rule!r} is no initializer")
            if init is not None and not isinstance(initializer.create(init), initializer.Initializer):
                initializer.create(init)(desc, first)
            else:
                rule(desc, first)
            self._place(first, devices)

    def _place(self, array: ndarray, devices: list[Device]) -> None:
        """Make copies of `array` the values on `devices`."""
        self._note_replaced()
        self._data = {
            device: array if array.device == device else np.array(array, dtype=self._dtype, device=device)
            for device in devices
        }
        self._deferred = None
        for copy in self._data.values():
            self._attach(copy)

    def _check_loadable(self, data: ndarray, cast_dtype: bool, source: str) -> None:
        """Refuse values to load that do not fit, before anything is changed."""
        if self._shape is not None and not _fits(self._shape, data.shape):
            raise ValueError(f"{source}: shape {tuple(data.shape)} does not fit the parameter's shape {self._shape}")
        name = dtype_name(data.dtype)
        if name != self._dtype and not cast_dtype:
            raise TypeError(
                f"{source}: dtype {name} is not the parameter's dtype {self._dtype}; `cast_dtype=True` converts"
            )

    def _load_init(self, data: ndarray, device: DeviceLike | None, dtype_source: str) -> None:
        """Take values that `_check_loadable` has seen."""
        if dtype_source == "saved":
            self.cast(data.dtype)
        elif dtype_name(data.dtype) != self._dtype:
            data = data.astype(self._dtype)
        if device is not None:
            devices = _device_list(device)
        elif self._data:
            devices = list(self._data)
        else:
            devices = self._deferred[1] if self._deferred is not None else [current_device()]
        self._shape = tuple(data.shape)
        if list(self._data) == devices:
            self.set_data(data)
        else:
            with autograd.pause():
                # The file's array may be shared with a dictionary of the caller's.
                first = np.array(data, dtype=self._dtype, device=devices[0])
                self._place(first, devices)

    # ---- values ----

    def _check_initialized(self) -> None:
        if self._data:
            return
        if self._deferred is not None:
            raise self._about(
                DeferredInitializationError(
                    f"parameter {self._name!r} has no values yet: the first input completes its shape {self._shape}"
                )
            )
        raise self._about(
            RuntimeError(
                f"parameter {self._name!r} is not initialized; call `initialize` on it or on the block it belongs to"
            )
        )

    def _about(self, error: _Error) -> _Error:
        """An exception about this parameter: blocks that it passes put the parameter's path in place of its name."""
        error._parameter = self  # type: ignore[attr-defined]  # exceptions take attributes
        return error

    def _pick(self, device: Device | None) -> ndarray:
        if device is None:
            self._check_initialized()
            if len(self._data) == 1:
                return next(iter(self._data.values()))
            device = current_device()
        array = self._data.get(device)
        if array is None:
            self._check_initialized()
            raise self._about(
                RuntimeError(f"parameter {self._name!r} is not on {device}; it is on {', '.join(map(str, self._data))}")
            )
        return array

    @old_keywords(ctx="device")
    def data(self, device: Device | None = None) -> ndarray:
        """The values on a device.

        Parameters
        ----------
        device : Device, optional
            By default the only device there is, or the current one if there are several: in a call of the `HybridBlock`
            with the parameter, that of the first array among the arguments.

        Returns
        -------
        ndarray
            Shares memory with the parameter.

        Raises
        ------
        DeferredInitializationError
            If the shape is not known yet.
        RuntimeError
            If the parameter is not initialized, or not on `device`.
        """
        return self._pick(device)

    def list_data(self) -> list[ndarray]:
        """The values on each device, in the order in which the devices were given.

        Returns
        -------
        list of ndarray

        Raises
        ------
        DeferredInitializationError
            If the shape is not known yet.
        RuntimeError
            If the parameter is not initialized.
        """
        self._check_initialized()
        return list(self._data.values())

    def set_data(self, data: Any) -> None:
        """Overwrite the values on all devices.

        Parameters
        ----------
        data : array_like
            Of the parameter's shape.

        Raises
        ------
        ValueError
            If the shape differs.
        RuntimeError
            If the parameter is not initialized.
        """
        if not self._data and self._deferred is None:
            self._check_initialized()
        values = data if isinstance(data, ndarray) else np.array(data, dtype=self._dtype)
        if self._shape is not None and not _fits(self._shape, values.shape):
            raise ValueError(
                f"parameter {self._name!r} has shape {self._shape}, but the new values have shape {values.shape}"
            )
        if not self._data:
            self._shape = tuple(values.shape)
            self._finish_deferred_init()
        self._num_writes += 1
        with autograd.pause():
            for array in self._data.values():
                array[:] = values

    @property
    def grad_stype(self) -> str:
        """Storage of the gradient: ``"default"`` (dense) or ``"row_sparse"``."""
        return self._grad_stype

    def row_sparse_data(self, row_id: ndarray) -> row_sparse_array:
        """Some rows of the values on the device of `row_id`.

        Parameters
        ----------
        row_id : ndarray, shape (k,), integers
            Numbers of rows, in any order; one may be there several times.

        Returns
        -------
        row_sparse_array
            Of the parameter's shape, with copies of the rows; all others are zero.

        Raises
        ------
        IndexError
            If a row is out of range.
        DeferredInitializationError
            If the shape is not known yet.
        RuntimeError
            If the parameter is not initialized, or not on the device of `row_id`.

        Examples
        --------
        >>> weight = mx.gluon.Parameter('weight', shape=(4, 2))
        >>> weight.initialize(init='ones')
        >>> weight.row_sparse_data(np.array([2, 0, 2])).indices
        array([0, 2])
        """
        return self._rows_of(self._pick(row_id.device), row_id)

    def list_row_sparse_data(self, row_id: ndarray) -> list[row_sparse_array]:
        """Some rows of the values on each device, in the order in which the devices were given.

        Parameters
        ----------
        row_id : ndarray, shape (k,), integers
            Numbers of rows.

        Returns
        -------
        list of row_sparse_array

        Raises
        ------
        IndexError
            If a row is out of range.
        DeferredInitializationError
            If the shape is not known yet.
        RuntimeError
            If the parameter is not initialized.
        """
        return [self._rows_of(array, row_id) for array in self.list_data()]

    def _rows_of(self, array: ndarray, row_id: ndarray) -> row_sparse_array:
        from mxnet.sparse import row_sparse_array

        with autograd.pause():
            rows = np.unique(np.array(row_id, dtype="int64", device=array.device).ravel())
            if rows.size and not 0 <= int(rows[0]) <= int(rows[-1]) < array.shape[0]:
                bad = int(rows[0]) if int(rows[0]) < 0 else int(rows[-1])
                raise self._about(
                    IndexError(f"parameter {self._name!r}: row {bad} is out of bounds for {array.shape[0]} rows")
                )
            return row_sparse_array._of(array[rows], rows, array.shape)

    def _grad_of(self, array: ndarray) -> ndarray:
        grad = array.grad
        if grad is None:
            raise RuntimeError(f"parameter {self._name!r} has no gradient: its `grad_req` is {self._grad_req!r}")
        return grad

    @old_keywords(ctx="device")
    def grad(self, device: Device | None = None) -> ndarray:
        """The gradient on a device.

        Parameters
        ----------
        device : Device, optional
            As for `data`.

        Returns
        -------
        ndarray or row_sparse_array
            Of the parameter's shape and dtype, stored as `grad_stype` says.

        Raises
        ------
        DeferredInitializationError
            If the shape is not known yet.
        RuntimeError
            If there is no gradient, or the parameter is not initialized or not on `device`.
        """
        return self._grad_of(self._pick(device))

    def list_grad(self) -> list[ndarray]:
        """The gradient on each device, in the order in which the devices were given.

        Returns
        -------
        list of ndarray

        Raises
        ------
        DeferredInitializationError
            If the shape is not known yet.
        RuntimeError
            If there is no gradient, or the parameter is not initialized.
        """
        return [self._grad_of(array) for array in self.list_data()]

    def zero_grad(self) -> None:
        """Set the gradient to zero on all devices; nothing happens if there is none."""
        if self._grad_req != "null":
            for array in self._data.values():
                grad: Any = self._grad_of(array)
                if self._grad_stype == "default":
                    grad[:] = 0
                else:
                    _core.set_row_gradient(array, grad.indices[:0], grad.data[:0])

    def list_device(self) -> list[Device]:
        """The devices that the parameter is, or will be, on.

        Returns
        -------
        list of Device

        Raises
        ------
        RuntimeError
            If the parameter is not initialized.
        """
        if not self._data and self._deferred is not None:
            return list(self._deferred[1])
        self._check_initialized()
        return list(self._data)

    list_ctx = old_method("list_ctx", list_device)

    @old_keywords(ctx="device")
    def reset_device(self, device: DeviceLike) -> None:
        """Move the values to other devices; gradients start at zero.

        Parameters
        ----------
        device : Device or sequence of Device

        Raises
        ------
        RuntimeError
            If the parameter is not initialized.
        """
        devices = _device_list(device)
        if self._data:
            with autograd.pause():
                first = next(iter(self._data.values()))
                self._place(np.array(first, dtype=self._dtype, device=devices[0]), devices)
        elif self._deferred is not None:
            init, _, fallback = self._deferred
            self._deferred = (init, devices, fallback)
        else:
            self._check_initialized()

    reset_ctx = old_method("reset_ctx", reset_device, {"ctx": "device"})

    def var(self) -> ndarray:
        """The values, under the name of MXNet's symbolic variable.

        Returns
        -------
        ndarray
            As `data`: networks are traced by running them, so that the array itself stands for the parameter.

        Raises
        ------
        DeferredInitializationError
            If the shape is not known yet.
        RuntimeError
            If the parameter is not initialized.
        """
        return self.data()

    def cast(self, dtype: DTypeLike) -> None:
        """Change the dtype of values and gradient; gradients start at zero.

        Parameters
        ----------
        dtype : dtype
        """
        name = dtype_name(dtype)
        if name == self._dtype:
            return
        self._dtype = name
        with autograd.pause():
            self._note_replaced()
            self._data = {device: array.astype(name) for device, array in self._data.items()}
        for array in self._data.values():
            self._attach(array)


class Constant(Parameter):
    """Values that are part of a network but are not trained.

    Parameters
    ----------
    value : array_like
        Any shape; Python floats become float32.

    Examples
    --------
    >>> import mxnet as mx
    >>> scale = mx.gluon.Constant([1.0, 2.0])
    >>> scale.initialize()
    >>> scale.data().asnumpy().tolist()
    [1.0, 2.0]
    """

    def __init__(self, value: Any) -> None:
        if not isinstance(value, ndarray):
            value = np.array(value)
        self.value: ndarray = value
        super().__init__(
            "const",
            grad_req="null",
            shape=value.shape,
            dtype=value.dtype,
            init=initializer.Constant(value),
            differentiable=False,
        )

    @property
    def grad_req(self) -> str:
        """Always ``"null"``; setting another value is a ValueError."""
        return "null"

    @grad_req.setter
    def grad_req(self, req: str) -> None:
        if req != "null":
            raise ValueError(f"the `grad_req` of a Constant is always 'null', found {req!r}")


class ParameterDict(dict[str, Parameter]):
    """Parameters by name: a dictionary whose errors name what replaced the methods that it had in MXNet 1.x.

    Examples
    --------
    >>> net = mx.gluon.nn.Dense(2, in_units=3)
    >>> net.collect_params()
    {'weight': Parameter (shape=(2, 3), dtype=float32), 'bias': Parameter (shape=(2,), dtype=float32)}
    >>> net.collect_params().setattr('lr_mult', 0.1)
    Traceback (most recent call last):
        ...
    AttributeError: parameters are in a dictionary, which has no attribute 'setattr': call `Block.setattr`
    """

    def __missing__(self, name: str) -> Any:
        listed = ", ".join(map(repr, self)) or "none"
        raise KeyError(f"no parameter {name!r}; parameters are named by the attributes of blocks: {listed}")

    def __getattr__(self, name: str) -> Any:
        if name in _REMOVED_METHODS:
            raise AttributeError(
                f"parameters are in a dictionary, which has no attribute {name!r}: {_REMOVED_METHODS[name]}",
                name=name,
                obj=self,
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def get(self, key: str, default: Any = None, **made: Any) -> Any:
        """The parameter of a name.

        Parameters
        ----------
        key : str
        default : object, optional
            What is returned if there is none.

        Returns
        -------
        Parameter
            Or `default`.

        Raises
        ------
        TypeError
            If there are further arguments, with which MXNet 1.x made a parameter.
        """
        if made:
            raise TypeError(
                f"params.get makes no parameters: write `self.{key} = mx.gluon.Parameter({key!r}, ...)`, with the "
                f"arguments {sorted(made)}"
            )
        return dict.get(self, key, default)
