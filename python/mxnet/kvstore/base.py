"""The interface of key-value stores, their register, and the store that tests of programs use."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Sequence
from typing import Any, NoReturn

from mxnet import autograd
from mxnet._caller_warning import warn_caller
from mxnet.base import PathLike
from mxnet.error import UnsupportedError
from mxnet.numpy import ndarray

__all__ = ["KVStoreBase", "TestStore", "create"]

Key = int | str


class KVStoreBase:
    """Interface of stores for data-parallel training; `register` makes a subclass known to `create`.

    A subclass defines `broadcast`, `pushpull`, `is_capable`, `type`, `rank` and `num_workers`, and the other methods if
    it is capable of updating parameters (`OPTIMIZER`). `mx.gluon.Trainer` calls these methods with one key at a time.

    Examples
    --------
    >>> @mx.kvstore.KVStoreBase.register
    ... class Sum(mx.kvstore.KVStoreBase):
    ...     type, rank, num_workers = 'sum', 0, 1
    ...     def broadcast(self, key, value, out, priority=0):
    ...         out[:] = value
    ...     def pushpull(self, key, value, out=None, priority=0):
    ...         (value[0] if out is None else out)[:] = sum(value)
    ...     def is_capable(self, capability):
    ...         return False
    >>> store, total = mx.kvstore.create('sum'), np.zeros(2)
    >>> store.pushpull(0, [np.ones(2), np.ones(2)], out=total)
    >>> total
    array([2., 2.])
    """

    OPTIMIZER = "optimizer"
    """The capability to update parameters by an optimizer."""

    kv_registry: dict[str, type[KVStoreBase]] = {}
    """Registered classes by their names in lower case."""

    def _undefined(self, method: str) -> NoReturn:
        raise UnsupportedError(f"{type(self).__name__}: this store does not define `{method}`")

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Copy the value of rank 0 to the arrays of all ranks.

        Parameters
        ----------
        key : int or str
        value : ndarray
            The values of other ranks than 0 are not used.
        out : ndarray or list of ndarray
            Arrays of this rank, of the shape of `value`; overwritten.
        priority : int
            Values with a higher priority may be sent earlier.
        """
        self._undefined("broadcast")

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Add up values of all devices and ranks.

        Parameters
        ----------
        key : int or str
        value : ndarray or list of ndarray
            One array for each device of this rank.
        out : ndarray or list of ndarray, optional
            Arrays that get the sum; by default those of `value`.
        priority : int
            Values with a higher priority may be sent earlier.
        """
        self._undefined("pushpull")

    def set_optimizer(self, optimizer: Any) -> None:
        """Have the store update its values by an optimizer.

        Parameters
        ----------
        optimizer : Optimizer
        """
        self._undefined("set_optimizer")

    def is_capable(self, capability: str) -> bool:
        """Whether the store has a capability.

        Parameters
        ----------
        capability : str
            `KVStoreBase.OPTIMIZER`.

        Returns
        -------
        bool

        Raises
        ------
        ValueError
            If there is no such capability.
        """
        self._undefined("is_capable")

    def save_optimizer_states(self, fname: PathLike, dump_optimizer: bool = False) -> None:
        """Write the states of the optimizer to a file.

        Parameters
        ----------
        fname : path
        dump_optimizer : bool
            Add the optimizer's hyperparameters and update counts.
        """
        self._undefined("save_optimizer_states")

    def load_optimizer_states(self, fname: PathLike) -> None:
        """Read what `save_optimizer_states` wrote.

        Parameters
        ----------
        fname : path
        """
        self._undefined("load_optimizer_states")

    @property
    def type(self) -> str:
        """Name of the kind of store."""
        self._undefined("type")

    @property
    def rank(self) -> int:
        """Number of this process among those of the program, from 0 to ``num_workers - 1``."""
        self._undefined("rank")

    @property
    def num_workers(self) -> int:
        """Number of processes of the program."""
        self._undefined("num_workers")

    @staticmethod
    def register(klass: Any) -> Any:
        """Make a class known to `create` by its name in lower case; for use as a decorator.

        Parameters
        ----------
        klass : subclass of KVStoreBase

        Returns
        -------
        class
            `klass` itself.

        Raises
        ------
        TypeError
            If `klass` is no subclass of `KVStoreBase`.
        UserWarning
            Warned of, if another class had the name.
        """
        if not inspect.isclass(klass) or not issubclass(klass, KVStoreBase):
            raise TypeError(f"KVStoreBase.register: a subclass of KVStoreBase is needed, found {klass!r}")
        name = klass.__name__.lower()
        before = KVStoreBase.kv_registry.get(name, klass)
        if before is not klass:
            warn_caller(
                f"key-value store {name!r} was {before.__module__}.{before.__name__} and becomes "
                f"{klass.__module__}.{klass.__name__}"
            )
        KVStoreBase.kv_registry[name] = klass
        return klass


def check_capability(capability: str) -> None:
    """Raise ValueError if this is not the name of a capability.

    Parameters
    ----------
    capability : str
    """
    if capability.lower() != KVStoreBase.OPTIMIZER:
        raise ValueError(f"is_capable: `capability` must be {KVStoreBase.OPTIMIZER!r}, found {capability!r}")


@KVStoreBase.register
class TestStore(KVStoreBase):
    """A store of one process that keeps nothing: it adds up arrays and copies them.

    Examples
    --------
    >>> store, total = mx.kvstore.create('teststore'), np.zeros(2)
    >>> store.pushpull(3, [np.ones(2), np.ones(2)], out=total)
    >>> total
    array([2., 2.])
    """

    __test__ = False  # pytest would take it for a class of tests

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        for array in [out] if isinstance(out, ndarray) else out:
            copy_to(value, array)

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        arrays = [value] if isinstance(value, ndarray) else list(value)
        outs = arrays if out is None else [out] if isinstance(out, ndarray) else list(out)
        total = sum_over_devices(arrays)
        for array in outs:
            if array is not total:
                copy_to(total, array)

    @staticmethod
    def is_capable(capability: str) -> bool:
        """False: the store does not update parameters.

        Parameters
        ----------
        capability : str
            `KVStoreBase.OPTIMIZER`.

        Returns
        -------
        bool

        Raises
        ------
        ValueError
            If there is no such capability.
        """
        check_capability(capability)
        return False

    @property
    def type(self) -> str:
        return "teststore"

    @property
    def rank(self) -> int:
        return 0

    @property
    def num_workers(self) -> int:
        return 1


def copy_to(value: ndarray, array: ndarray) -> None:
    """Overwrite an array, which may be on another device.

    Parameters
    ----------
    value : ndarray, shape (...)
    array : ndarray, shape (...)
    """
    with autograd.pause():
        array[...] = value.to_device(array.device)


def sum_over_devices(arrays: Sequence[ndarray], device: Any = None) -> ndarray:
    """The sum of arrays on one device, added in their order. Half precision is added in float32 and rounded once.

    Parameters
    ----------
    arrays : sequence of ndarray, each of the same shape and dtype
    device : Device, optional
        Where the sum is; by default where the first array is.

    Returns
    -------
    ndarray
        Of the arrays' shape and dtype. The array itself if there is one, on `device`.
    """
    device = device or arrays[0].device
    with autograd.pause():
        total = arrays[0].to_device(device)
        dtype = total.dtype
        if len(arrays) > 1 and dtype.itemsize == 2 and dtype.kind not in "iu":
            total = total.astype("float32")
        for array in arrays[1:]:
            total = total + array.to_device(device)
        return total if total.dtype == dtype else total.astype(dtype)


_ONE_PROCESS = ("local", "device", "nccl")
_AFTER_DIST = ("device", "sync", "async")
_LISTED = "'local', 'device', 'nccl', 'dist_sync', 'dist_device_sync', 'dist_async'"


def create(name: str = "local") -> KVStoreBase:
    """Make a key-value store.

    Parameters
    ----------
    name : str
        A registered class, or one of these, in any case. ``'local'``: sums over the devices of this process, on the
        CPU. ``'device'``: the same, on the device of the first array. ``'nccl'``: as ``'device'``, for GPUs.
        ``'dist_sync'`` or ``'dist'``: sums over the devices of all processes, the same on each, and every process
        waits for the others. ``'dist_device_sync'``: the same, first summed on the device. ``'dist_async'``: each
        process updates the values by its own gradients, without waiting for the others.

    Returns
    -------
    KVStoreBase

    Raises
    ------
    TypeError
        If `name` is no text.
    ValueError
        If there is no such store.
    ImportError
        If a launcher has started several processes, and the package `mpi4py`, by which they communicate, is missing.
    mxnet.error.DistributedError
        If the processes do not create the same store, or the launcher and `mpi4py` use different MPIs.
    mxnet.error.DeviceError
        If `name` is ``'nccl'``, and there is no GPU.

    Notes
    -----
    ``python -m mxnet.launch -n 2 train.py`` starts a program in two processes. Without a launcher, the distributed
    stores have one process and need no package.

    Examples
    --------
    >>> store = mx.kvstore.create('local')
    >>> store.type, store.rank, store.num_workers
    ('local', 0, 1)
    """
    if not isinstance(name, str):
        raise TypeError(f"kvstore.create: `name` must be text, found {type(name).__name__}")
    name = name.lower()
    if name in KVStoreBase.kv_registry:
        return KVStoreBase.kv_registry[name]()
    kind, *rest = name.split("_")
    is_distributed = kind == "dist" and set(rest).issubset(_AFTER_DIST) and not {"sync", "async"}.issubset(rest)
    if name not in _ONE_PROCESS and not is_distributed:
        registered = ", ".join(map(repr, sorted(KVStoreBase.kv_registry)))
        raise ValueError(f"kvstore.create: no store {name!r}; there are {_LISTED}; registered are {registered}")
    store: KVStoreBase = importlib.import_module("mxnet.kvstore.kvstore").open_store(name)
    return store
