"""The parameters of a trainer in a key-value store: equal first values, sums of gradients, updates in the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mxnet import _core
from mxnet.error import UnsupportedError
from mxnet.gluon.parameter import Parameter
from mxnet.kvstore import KVStore, KVStoreBase, create
from mxnet.kvstore.base import copy_to
from mxnet.numpy import ndarray
from mxnet.optimizer import Optimizer
from mxnet.sparse import row_sparse_array

__all__ = ["ParameterStore", "open_store"]

Arrays = Sequence[Sequence[ndarray]]


def open_store(
    kvstore: Any,
    parameters: Sequence[Parameter],
    optimizer: Optimizer,
    compression_params: Mapping[str, Any] | None,
    update_on_kvstore: bool | None,
) -> ParameterStore:
    """The store that the arguments of a trainer ask for.

    Parameters
    ----------
    kvstore : str, KVStoreBase or None
    parameters : sequence of Parameter
    optimizer : Optimizer
    compression_params : mapping or None
    update_on_kvstore : bool or None

    Returns
    -------
    ParameterStore
    """
    if kvstore is None:
        raise ValueError("Trainer: `compression_params` and `update_on_kvstore=True` need a `kvstore`, found None")
    if not isinstance(kvstore, str | KVStoreBase):
        raise TypeError(f"Trainer: `kvstore` must be a name, a store or None, found {type(kvstore).__name__}")
    store = kvstore if isinstance(kvstore, KVStoreBase) else create(kvstore)
    return ParameterStore(store, parameters, optimizer, compression_params, update_on_kvstore)


class ParameterStore:
    """A store whose keys are the numbers of parameters.

    Parameters
    ----------
    store : KVStoreBase
    parameters : sequence of Parameter
    optimizer : Optimizer
    compression_params : mapping or None
        See `KVStore.set_gradient_compression`.
    update_on_kvstore : bool or None
        Whether the store updates the parameters. None means that it does so only if it is asynchronous.

    Raises
    ------
    ValueError
        If the store cannot do what is asked for.
    """

    def __init__(
        self,
        store: KVStoreBase,
        parameters: Sequence[Parameter],
        optimizer: Optimizer,
        compression_params: Mapping[str, Any] | None,
        update_on_kvstore: bool | None,
    ) -> None:
        self.store = store
        self._parameters = parameters
        is_async = "dist" in store.type and "async" in store.type
        if is_async and update_on_kvstore is False:
            raise ValueError(
                f"Trainer: the store {store.type!r} updates the parameters, so `update_on_kvstore` must not be False"
            )
        if update_on_kvstore and not store.is_capable(KVStoreBase.OPTIMIZER):
            raise ValueError(
                f"Trainer: the store {store.type!r} has no optimizers, so `update_on_kvstore` must not be True"
            )
        self.updates = bool(update_on_kvstore) or is_async
        if not isinstance(store, KVStore):
            rows = [parameter.name for parameter in parameters if parameter.grad_stype == "row_sparse"]
            if rows:
                raise ValueError(
                    f"Trainer: the store {store.type!r} adds up no row-sparse gradients, as of {rows[0]!r}"
                )
            if compression_params is not None and not hasattr(store, "set_gradient_compression"):
                raise ValueError(f"Trainer: the store {store.type!r} does not compress gradients")
        if compression_params is not None:
            store.set_gradient_compression(compression_params)  # type: ignore[attr-defined]  # checked above
        if self.updates:
            store.set_optimizer(optimizer)
        # What the arrays of parameters were when their values were given to the store.
        self._states: dict[int, tuple[int, int]] = {}
        if store.num_workers > 1:
            self.send_first_values()

    @property
    def _sends_values(self) -> bool:
        """Whether the store must know, or make equal, the values of parameters."""
        return self.updates or self.store.num_workers > 1 or not isinstance(self.store, KVStore)

    def send_first_values(self) -> None:
        """Give all ranks the values that rank 0 has of parameters which are initialized, or have been set, since."""
        if not self._sends_values:
            return
        numbers = []
        for i, parameter in enumerate(self._parameters):
            # The store keeps values of its own only if it updates them.
            state = parameter._generation, parameter._num_writes if self.updates else 0
            if parameter._data and self._states.get(i) != state:
                numbers.append(i)
                self._states[i] = state
        if not numbers:
            return
        copies = [self._parameters[i].list_data() for i in numbers]
        if not isinstance(self.store, KVStore):
            for i, arrays in zip(numbers, copies, strict=True):
                self.store.broadcast(i, arrays[0], arrays, priority=-i)
        elif self.updates:
            self.store._forget([i for i in numbers if i in self.store._numbers])
            self.store.broadcast(numbers, [arrays[0] for arrays in copies], copies)
        else:
            firsts = self.store._handle.first_values("broadcast", numbers, [arrays[0] for arrays in copies])
            for first, arrays in zip(firsts, copies, strict=True):
                for array in arrays:
                    copy_to(first, array)

    def fresh_on_any_rank(self, is_fresh: Sequence[bool]) -> list[bool]:
        """For each gradient, whether a rank has a new one.

        Parameters
        ----------
        is_fresh : sequence of bool
            Whether this rank has.

        Returns
        -------
        list of bool
        """
        if not isinstance(self.store, KVStore):
            # The store adds up the gradients of all ranks, new or not.
            return list(is_fresh) if self.store.num_workers == 1 else [True] * len(is_fresh)
        if self._is_async:
            return list(is_fresh)
        found = self.store._handle.agree([f"gradients of {len(is_fresh)} parameters, some not new"], bytes(is_fresh))
        return [any(flags) for flags in zip(*found, strict=True)]

    @property
    def _is_async(self) -> bool:
        return "async" in self.store.type

    def add_up(self, numbers: Sequence[int], copies: Arrays, grads: Sequence[Sequence[Any]]) -> None:
        """Replace gradients by their sums over the devices and ranks.

        Parameters
        ----------
        numbers : sequence of int
            Which parameters.
        copies : sequence of sequence of ndarray
            The values of each on each device, whose gradients are replaced.
        grads : sequence of sequence of ndarray or row_sparse_array
            The gradients of each that count.
        """
        if not isinstance(self.store, KVStore):
            for i, arrays in zip(numbers, copies, strict=True):
                # Plugins get all gradients, and replace them.
                self.store.pushpull(i, [array.grad for array in arrays], priority=-i)
            return
        if not numbers:
            return
        sums = self.store._sums("pushpull", dict(zip(numbers, map(list, grads), strict=True)))
        for i, total, arrays in zip(numbers, sums, copies, strict=True):
            for array in arrays:
                if isinstance(total, row_sparse_array):
                    _core.set_row_gradient(
                        array, total.indices.to_device(array.device), total.data.to_device(array.device)
                    )
                else:
                    copy_to(total, self._parameters[i]._grad_of(array))

    def update(self, numbers: Sequence[int], copies: Arrays, grads: Sequence[Sequence[Any]]) -> None:
        """Update parameters in the store by their gradients.

        Parameters
        ----------
        numbers : sequence of int
            Which parameters.
        copies : sequence of sequence of ndarray
            The values of each on each device, which become those of the store.
        grads : sequence of sequence of ndarray or row_sparse_array
            The gradients of each that count.
        """
        if isinstance(self.store, KVStore):
            if numbers:
                self.store.pushpull(list(numbers), [list(arrays) for arrays in grads], [list(x) for x in copies])
            rest = sorted(set(self._states) - set(numbers))
            if self._is_async and rest:
                # Other ranks may have updated them.
                self.store.pull(rest, [self._parameters[i].list_data() for i in rest])
            return
        for i, arrays, found in zip(numbers, copies, grads, strict=True):
            self.store.pushpull(i, list(found), out=list(arrays), priority=-i)

    def refuse_separate_calls(self, method: str) -> None:
        """Raise RuntimeError if the store updates the parameters: then only `step` can be called.

        Parameters
        ----------
        method : str
        """
        if self.updates:
            raise RuntimeError(
                f"Trainer.{method}: the store {self.store.type!r} updates the parameters when it gets their gradients\n"
                "  hint: call `step`, or make the trainer with `update_on_kvstore=False`"
            )

    def refuse_traces(self, method: str) -> None:
        """Raise UnsupportedError in a trace: a graph cannot call a store.

        Parameters
        ----------
        method : str
        """
        if _core.trace_is_active():
            raise UnsupportedError(
                f"Trainer.{method}: a compiled function cannot use the key-value store {self.store.type!r}\n"
                f"  hint: compile the network by `hybridize`, and call `{method}` outside of compiled functions"
            )
