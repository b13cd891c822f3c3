"""The stores of one process, and those whose values every process updates in the same way."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mxnet import autograd
from mxnet import numpy as np
from mxnet.base import PathLike
from mxnet.device import cpu, num_gpus
from mxnet.error import DeviceError, UnsupportedError
from mxnet.kvstore._arguments import (
    Groups,
    Key,
    Value,
    assign_rows,
    check_fits,
    check_same_keys,
    flat,
    grouped,
    sorted_rows,
)
from mxnet.kvstore._communicators import AllProcesses, Communicator, move_rows, sum_rows
from mxnet.kvstore._compression import Compression
from mxnet.kvstore._processes import find_processes
from mxnet.kvstore.base import KVStoreBase, check_capability, copy_to, sum_over_devices
from mxnet.numpy import ndarray
from mxnet.optimizer._state_files import describe, load_states, save_states
from mxnet.optimizer.optimizer import Optimizer
from mxnet.optimizer.updater import Updater, get_updater
from mxnet.sparse import row_sparse_array

__all__ = ["KVStore"]

UpdateFunction = Callable[[Any, Any, Any], None]


class KVStore(KVStoreBase):
    """Values by keys, on which the devices and processes of a program agree; made by `create`.

    A key is an integer or text, and a store has keys of one of these kinds. A value is an `ndarray` or a
    `mx.sparse.row_sparse_array`. Methods also take a list of keys with a list of values. Where the values of several
    devices belong to one key, they are given as a list.

    Calls are carried out in the order in which they are made, each when it is called. So the argument `priority`, which
    every method has for programs of MXNet 2, changes nothing.

    In the distributed stores that are synchronous, each process has a copy of every value. `init`, `broadcast`, `push`
    and `pushpull` are collective: each process must call them, with the same keys, dtypes and shapes.

    Parameters
    ----------
    handle : Communicator
        Connects the processes that share the store.

    Examples
    --------
    >>> store = mx.kvstore.create('local')
    >>> store.init('w', np.ones(2))
    >>> store.push('w', [np.ones(2), 2 * np.ones(2)])
    >>> out = np.zeros(2)
    >>> store.pull('w', out=out)
    >>> out
    array([3., 3.])
    """

    def __init__(self, handle: Any) -> None:
        if not isinstance(handle, Communicator):
            raise TypeError(
                f"KVStore: `handle` must be a communicator, found {type(handle).__name__}\n"
                "  hint: `mx.kvstore.create` makes stores"
            )
        self._handle = handle
        self._values: dict[Key, Value] = {}
        # Optimizers know weights by numbers: the keys themselves, or the order in which text was initialized.
        self._numbers: dict[Key, int] = {}
        self._updater: UpdateFunction | None = None
        self._compression: Compression | None = None

    def __repr__(self) -> str:
        return f"KVStore({self.type!r}, rank {self.rank} of {self.num_workers}, {len(self._numbers)} keys)"

    @property
    def type(self) -> str:
        return self._handle.type

    @property
    def rank(self) -> int:
        return self._handle.rank

    @property
    def num_workers(self) -> int:
        return self._handle.num_workers

    def is_capable(self, capability: str) -> bool:
        check_capability(capability)
        return True

    # ---- values ----

    def _grouped(self, what: str, key: Any, value: Any) -> Groups:
        return grouped(what, key, value, self._numbers)

    def init(self, key: Any, value: Any) -> None:
        """Store the first values of keys.

        Parameters
        ----------
        key : int, str or sequence of them
        value : ndarray, row_sparse_array or sequence of them
            Copied. In a distributed store, those of rank 0 are used.

        Raises
        ------
        ValueError
            If a key has a value already.
        TypeError
            If keys are integers where the store has text, or the other way round.
        mxnet.error.DistributedError
            If the processes do not give the same keys, dtypes and shapes.
        """
        self._init("init", self._grouped("init", key, value))

    def _init(self, what: str, groups: Groups) -> None:
        for key, values in groups.items():
            if key in self._numbers:
                raise ValueError(f"{what}: key {key!r} has a value already")
            if len(values) != 1:
                raise ValueError(f"{what}: key {key!r} needs one value, found {len(values)}")
        keys = list(groups)
        values = self._handle.first_values(what, keys, [found[0] for found in groups.values()])
        for key, value in zip(keys, values, strict=True):
            self._numbers[key] = key if isinstance(key, int) else len(self._numbers)
            self._keep(key, value)

    def _keep(self, key: Key, value: Value) -> None:
        """Store a value that nothing else refers to."""
        self._values[key] = self._at(value, self._storage_device(value))

    def _storage_device(self, value: Value) -> Any:
        return value.device if self._sums_on_device else cpu()

    @property
    def _sums_on_device(self) -> bool:
        return "device" in self.type or self.type == "nccl"

    @staticmethod
    def _at(value: Value, device: Any) -> Value:
        return value.to_device(device) if isinstance(value, ndarray) else move_rows(value, device)

    def _forget(self, keys: Sequence[Key]) -> None:
        """Remove keys, so that they may be initialized again."""
        for key in keys:
            self._numbers.pop(key, None)
            self._values.pop(key, None)

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Store the first values of keys, and copy them to arrays: `init` and `pull`.

        Parameters
        ----------
        key : int, str or sequence of them
        value : ndarray or sequence of ndarray
            Those of rank 0 are used.
        out : ndarray, list of ndarray, or list of such
            Overwritten.
        priority : int
            See the class.

        Raises
        ------
        ValueError
            If a key has a value already.
        mxnet.error.ShapeError
            If an array in `out` has another shape than the value.
        mxnet.error.DistributedError
            If the processes do not give the same keys, dtypes and shapes.
        """
        operator.index(priority)
        values, outs = self._grouped("broadcast", key, value), self._grouped("broadcast", key, out)
        check_same_keys("broadcast", values, outs)
        for name, found in values.items():
            check_fits("broadcast", name, found[0], outs[name])
        self._init("broadcast", values)
        self._write(outs, self._current(list(outs)))

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        """Add up the values of all devices and processes. The sum replaces the stored value, or updates it.

        Parameters
        ----------
        key : int, str or sequence of them
        value : ndarray, row_sparse_array, list of them, or list of such
        priority : int
            See the class.

        Raises
        ------
        KeyError
            If a key has no value yet.
        mxnet.error.ShapeError
            If a value has another shape than the stored one.
        mxnet.error.DTypeError
            If it has another dtype.
        mxnet.error.DistributedError
            If the processes do not push the same keys, dtypes and shapes, or one has ended.
        """
        operator.index(priority)
        self._push("push", self._grouped("push", key, value))

    def _push(self, what: str, groups: Groups, reads: bool = False) -> dict[Key, Value]:
        """Push values. Returns what is stored then, if `reads` is on."""
        self._check_groups(what, groups)
        self._check_updater(what)
        self._update(list(groups), self._sums(what, groups))
        return self._current(list(groups)) if reads else {}

    def _check_updater(self, what: str) -> None:
        if self._updater is None and "async" in self.type:
            raise RuntimeError(
                f"{what}: an asynchronous store updates values, but it has no optimizer; `set_optimizer` gives it one"
            )

    def _check_groups(self, what: str, groups: Groups) -> None:
        """Refuse keys without values, and arrays that do not fit the values."""
        for key, values in groups.items():
            check_fits(what, key, self._form(what, key), values)

    def _form(self, what: str, key: Key) -> Any:
        """Something that has the shape and the dtype of a value."""
        if key not in self._numbers:
            raise KeyError(f"{what}: key {key!r} has no value; `init` or `broadcast` gives it the first one")
        return self._values[key]

    def _current(self, keys: Sequence[Key]) -> dict[Key, Value]:
        """The stored values, not copied."""
        return {key: self._values[key] for key in keys}

    def _sums(self, what: str, groups: Groups) -> list[Value]:
        """Sums over devices and processes, which the next call may overwrite."""
        merged = [self._merged(key, values) for key, values in groups.items()]
        return self._handle.total(what, list(groups), merged, self._compression)

    def _merged(self, key: Key, values: Sequence[Value]) -> Value:
        device = values[0].device if self._sums_on_device else cpu()
        if not isinstance(values[0], ndarray):
            return sum_rows(values, device)
        if self._compression is not None and len(values) > 1 and "dist" not in self.type:
            values = [self._compression.quantize((key, i), value) for i, value in enumerate(values)]
        return sum_over_devices(values, device)

    def _update(self, keys: Sequence[Key], sums: Sequence[Value]) -> None:
        if self._updater is None:
            for key, total in zip(keys, sums, strict=True):
                self._keep(key, total.copy())
            return
        with autograd.pause():
            if isinstance(self._updater, Updater):
                self._densify(keys)
            weights = [self._values[key] for key in keys]
            grads = [self._at(total, weight.device) for total, weight in zip(sums, weights, strict=True)]
            if isinstance(self._updater, Updater):
                self._updater([self._numbers[key] for key in keys], grads, weights)
                return
            for key, grad, weight in zip(keys, grads, weights, strict=True):
                self._updater(key, grad, weight)

    def _densify(self, keys: Sequence[Key]) -> None:
        """Make row-sparse values dense: optimizers update dense weights."""
        for key in keys:
            if not isinstance(self._values[key], ndarray):
                self._values[key] = self._values[key].todense()

    def pull(self, key: Any, out: Any = None, priority: int = 0, ignore_sparse: bool = True) -> None:
        """Copy stored values to arrays.

        Parameters
        ----------
        key : int, str or sequence of them
        out : ndarray, list of ndarray, or list of such
            Overwritten.
        priority : int
            See the class.
        ignore_sparse : bool
            Leave row-sparse arrays in `out` as they are; `row_sparse_pull` reads rows. Otherwise they get all rows.

        Raises
        ------
        TypeError
            If there is no `out`.
        mxnet.error.DTypeError
            If an array has another dtype than the value.
        KeyError
            If a key has no value yet.
        mxnet.error.ShapeError
            If an array has another shape than the value.
        """
        operator.index(priority)
        if out is None:
            raise TypeError("pull: `out` must be given")
        groups = self._grouped("pull", key, out)
        self._check_groups("pull", groups)
        if ignore_sparse:
            groups = {name: outs for name, outs in groups.items() if isinstance(outs[0], ndarray)}
        self._write(groups, self._current(list(groups)))

    @staticmethod
    def _write(groups: Groups, values: Mapping[Key, Value]) -> None:
        """Copy values to arrays."""
        for key, outs in groups.items():
            value = values[key]
            for out in outs:
                if isinstance(out, ndarray):
                    copy_to(value if isinstance(value, ndarray) else value.todense(), out)
                else:
                    rows = row_sparse_array(value) if isinstance(value, ndarray) else value
                    assign_rows(out, rows.copy())

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Push values, and copy what is stored then to arrays: `push` and `pull`.

        Parameters
        ----------
        key : int, str or sequence of them
        value : ndarray, row_sparse_array, list of them, or list of such
        out : ndarray, row_sparse_array, list of them, or list of such, optional
            Overwritten; by default the arrays of `value`.
        priority : int
            See the class.

        Raises
        ------
        KeyError
            If a key has no value yet.
        mxnet.error.ShapeError
            If a value or an array has another shape than the stored value.
        mxnet.error.DTypeError
            If it has another dtype.
        mxnet.error.DistributedError
            If the processes do not push the same keys, dtypes and shapes, or one has ended.
        """
        operator.index(priority)
        values = self._grouped("pushpull", key, value)
        outs = values if out is None else self._grouped("pushpull", key, out)
        check_same_keys("pushpull", values, outs)
        self._check_groups("pushpull", outs)
        self._write(outs, self._push("pushpull", values, reads=True))

    def row_sparse_pull(self, key: Any, out: Any = None, priority: int = 0, row_ids: Any = None) -> None:
        """Copy rows of stored values to row-sparse arrays.

        Parameters
        ----------
        key : int, str or sequence of them
        out : row_sparse_array, list of them, or list of such
            Each gets the rows of its `row_ids`, ascending and each once; rows that are not stored are zero.
        priority : int
            See the class.
        row_ids : ndarray of int, or list of ndarray
            Rows for each array in `out`, in any order and with repetitions; one array is for all of `out`.

        Raises
        ------
        TypeError
            If `out` or `row_ids` is missing, or an array in `out` is dense.
        KeyError
            If a key has no value yet.
        mxnet.error.IndexError
            If there is no such row.
        ValueError
            If the numbers of arrays and of `row_ids` differ.

        Examples
        --------
        >>> store = mx.kvstore.create('local')
        >>> store.init(3, np.ones((4, 2)))
        >>> out = mx.sparse.row_sparse_array((4, 2))
        >>> store.row_sparse_pull(3, out=out, row_ids=np.array([2, 0, 2]))
        >>> out.indices
        array([0, 2])
        """
        operator.index(priority)
        if out is None or row_ids is None:
            raise TypeError("row_sparse_pull: `out` and `row_ids` must be given")
        groups = self._grouped("row_sparse_pull", key, out)
        pairs = [(name, array) for name, arrays in groups.items() for array in arrays]
        found = list(flat(row_ids))
        if len(found) == 1:
            found *= len(pairs)
        if len(found) != len(pairs):
            raise ValueError(f"row_sparse_pull: {len(pairs)} arrays in `out`, but {len(found)} in `row_ids`")
        for name, array in pairs:
            if isinstance(array, ndarray):
                raise TypeError(f"row_sparse_pull: `out` of key {name!r} must be a row_sparse_array, found ndarray")
        self._check_groups("row_sparse_pull", groups)
        wanted = [
            (name, sorted_rows(name, ids, array.shape[0])) for (name, array), ids in zip(pairs, found, strict=True)
        ]
        for (_, array), value in zip(pairs, self._current_rows(wanted), strict=True):
            assign_rows(array, value)

    def _current_rows(self, wanted: Sequence[tuple[Key, ndarray]]) -> list[row_sparse_array]:
        """Rows of stored values, whose numbers ascend."""
        with autograd.pause():
            return [self._rows_of(self._values[key], rows) for key, rows in wanted]

    @staticmethod
    def _rows_of(value: Value, rows: ndarray) -> row_sparse_array:
        rows = rows.to_device(value.device)
        if isinstance(value, ndarray):
            return row_sparse_array._of(value[rows], rows, value.shape)
        # Zero rows, and those that the value stores.
        zeros = np.zeros((rows.size, *value.shape[1:]), dtype=value.dtype, device=value.device)
        return sum_rows([row_sparse_array._of(zeros, rows, value.shape), value.retain(rows)], value.device)

    # ---- updates ----

    def set_gradient_compression(self, compression_params: Mapping[str, Any]) -> None:
        """Send pushed values in one or two bits an element; what is lost is added to the next value of the same key.

        With two bits, an element of at least `threshold` is sent as `threshold`, one of at most ``-threshold`` as
        ``-threshold``, and all others as 0. With one bit, an element above `threshold` is sent as 1, and all others
        as -1. A distributed store compresses what a process sends to others. The store ``'device'`` compresses the
        values of several devices before it adds them up; a single value is not sent, and stays as it is. Row-sparse
        values are not compressed.

        Parameters
        ----------
        compression_params : mapping
            ``type``: ``'1bit'`` or ``'2bit'``. ``threshold``: a number, by default 0.5; positive for two bits.

        Raises
        ------
        mxnet.error.UnsupportedError
            If the store is ``'local'``. Pushing values of another dtype than float32 raises it as well.
        ValueError
            If a parameter is unknown or out of range.

        Examples
        --------
        >>> store = mx.kvstore.create('dist_sync')
        >>> store.set_gradient_compression({'type': '2bit', 'threshold': 0.5})
        >>> out = np.zeros(2)
        >>> store.init('w', out)
        >>> for _ in range(2):
        ...     store.pushpull('w', np.array([0.3, -2.0]), out=out)
        ...     print(out)
        [ 0.  -0.5]
        [ 0.5 -0.5]
        """
        if not ("device" in self.type or "dist" in self.type):
            raise UnsupportedError(
                f"set_gradient_compression: a store of type {self.type!r} does not compress\n"
                "  hint: 'device' and the distributed stores do"
            )
        compression = Compression(compression_params)
        self._handle.agree([f"set_gradient_compression: {compression!r}"])
        self._compression = compression

    def set_optimizer(self, optimizer: Optimizer) -> None:
        """Have pushed values, as gradients, update the stored values by an optimizer.

        The store uses the object itself: a new learning rate holds from the next push on. In a distributed store, each
        process gives an optimizer of the same class with the same hyperparameters, and changes them alike.

        Parameters
        ----------
        optimizer : Optimizer

        Raises
        ------
        TypeError
            If it is no optimizer.
        mxnet.error.DistributedError
            If the optimizers of the processes differ.

        Examples
        --------
        >>> store, weight = mx.kvstore.create('local'), np.zeros(2)
        >>> store.init(3, weight)
        >>> store.set_optimizer(mx.optimizer.SGD(learning_rate=0.1))
        >>> store.pushpull(3, np.ones(2), out=weight)
        >>> weight
        array([-0.1, -0.1])
        """
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"set_optimizer: an Optimizer is needed, found {type(optimizer).__name__}")
        self._handle.agree(["set_optimizer", *json.dumps(describe(optimizer), indent=0, sort_keys=True).split("\n")])
        self._set_updater(get_updater(optimizer))

    def _set_updater(self, updater: UpdateFunction) -> None:
        """Have a function update the stored values.

        Parameters
        ----------
        updater : callable
            Called with a key, the sum of the pushed values, and the stored value, which it changes in place.
        """
        self._updater = updater

    def _updater_with_states(self, what: str) -> Updater:
        if not isinstance(self._updater, Updater):
            raise RuntimeError(f"{what}: the store has no optimizer; `set_optimizer` gives it one")
        return self._updater

    def save_optimizer_states(self, fname: PathLike, dump_optimizer: bool = False) -> None:
        """Write the states of the optimizer to a file, atomically.

        Parameters
        ----------
        fname : path
        dump_optimizer : bool
            Add the optimizer's hyperparameters and update counts.

        Raises
        ------
        RuntimeError
            If the store has no optimizer.
        OSError
            If the file cannot be written.
        """
        save_states(self._updater_with_states("save_optimizer_states"), fname, dump_optimizer)

    def load_optimizer_states(self, fname: PathLike) -> None:
        """Read what `save_optimizer_states` wrote.

        Parameters
        ----------
        fname : path

        Raises
        ------
        RuntimeError
            If the store has no optimizer.
        FileNotFoundError
            If there is no such file.
        FileFormatError
            If the file is damaged or of another format.
        ValueError
            If it was written with another class of optimizer.
        """
        load_states([self._updater_with_states("load_optimizer_states")], fname)

    def _barrier(self) -> None:
        """Wait until all processes have called this."""
        self._handle.barrier()


def open_store(name: str) -> KVStore:
    """Make the store of a name that `create` has checked.

    Parameters
    ----------
    name : str

    Returns
    -------
    KVStore
    """
    if name == "nccl" and not num_gpus():
        raise DeviceError("kvstore.create: the store 'nccl' adds up values of GPUs, and this machine has none")
    processes = find_processes() if "dist" in name else None
    if processes is None:
        return KVStore(Communicator(name))
    handle = AllProcesses(name, processes)
    handle.agree([f"create: {name}"])
    if "async" in name:
        from mxnet.kvstore._server import AsyncStore

        return AsyncStore(handle, processes)
    return KVStore(handle)
