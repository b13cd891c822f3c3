"""Keeps the states of an optimizer and saves them."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import numpy as onp

from mxnet import _core
from mxnet import numpy as np
from mxnet._renamed import old_method
from mxnet.base import dtype_name
from mxnet.device import Device
from mxnet.error import FileFormatError
from mxnet.numpy import ndarray
from mxnet.optimizer._state_files import describe, restore
from mxnet.optimizer.optimizer import Optimizer, State

__all__ = ["Updater", "get_updater"]

# Members of the saved archive besides the arrays, which are called by their place: "3", "3/0", "3/1/0", ...
_STRUCTURE = "structure"
_OPTIMIZER = "optimizer"


class Updater:
    """Callable that updates numbered weights and keeps what the optimizer needs between updates.

    Parameters
    ----------
    optimizer : Optimizer

    Examples
    --------
    >>> updater = mx.optimizer.Updater(mx.optimizer.SGD(learning_rate=0.1))
    >>> weight, gradient = np.array([1.0]), np.array([2.0])
    >>> updater(0, gradient, weight)
    >>> weight
    array([0.8])
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.states: dict[int, State] = {}
        # Loaded states lie on the default device until the first update shows where they belong.
        self._unplaced: set[int] = set()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.optimizer!r})"

    def __call__(
        self,
        index: int | Sequence[int],
        grad: ndarray | Sequence[ndarray],
        weight: ndarray | Sequence[ndarray],
    ) -> None:
        """Update one weight or several.

        Parameters
        ----------
        index : int or sequence of int
        grad : ndarray or sequence of ndarray
        weight : ndarray or sequence of ndarray
            Changed in place.

        Raises
        ------
        ValueError
            If the numbers of indices, gradients and weights differ.
        """
        indices = [index] if isinstance(index, int) else list(index)
        grads = [grad] if isinstance(grad, ndarray) else list(grad)
        weights = [weight] if isinstance(weight, ndarray) else list(weight)
        if not len(indices) == len(grads) == len(weights):
            raise ValueError(f"{len(indices)} indices, {len(grads)} gradients and {len(weights)} weights")
        if self._unplaced:
            self._complete_states(indices, weights)
        try:
            states = list(map(self.states.__getitem__, indices))
        except KeyError:
            self._complete_states(indices, weights)
            states = [self.states[number] for number in indices]
        self.optimizer.update_multi_precision(indices, weights, grads, states)

    def _complete_states(self, indices: Sequence[int], weights: Sequence[ndarray]) -> None:
        """Make the states that are missing, and move loaded ones to the devices of their weights."""
        for number, array in zip(indices, weights, strict=True):
            if number not in self.states:
                self.states[number] = self._new_state(number, array)
            elif number in self._unplaced:
                self.states[number] = self.sync_state_device(self.states[number], array.device)
                self._unplaced.discard(number)

    def _new_state(self, number: int, weight: ndarray) -> State:
        """The first state of a weight. Its values are real also where a step is being traced."""
        return _core.outside_trace(lambda: self.optimizer.create_state_multi_precision(number, weight))

    def sync_state_device(self, state: State, device: Device) -> State:
        """Move a state to a device.

        Parameters
        ----------
        state : None, ndarray or tuple
        device : Device

        Returns
        -------
        None, ndarray or tuple
            The same object where nothing has to move.
        """
        if isinstance(state, tuple):
            return tuple(self.sync_state_device(part, device) for part in state)
        if state is None or state.device == device:
            return state
        return np.array(state, dtype=state.dtype, device=device)

    sync_state_context = old_method("sync_state_context", sync_state_device, {"context": "device"})

    def get_states(self, dump_optimizer: bool = False) -> bytes:
        """All states as bytes.

        Parameters
        ----------
        dump_optimizer : bool
            Add the optimizer's hyperparameters and update counts.

        Returns
        -------
        bytes
            An ``npz`` archive; bfloat16 arrays are stored as float32.
        """
        arrays: dict[str, Any] = {}
        structure = {str(index): _pack(state, str(index), arrays) for index, state in self.states.items()}
        arrays[_STRUCTURE] = onp.array(json.dumps(structure))
        if dump_optimizer:
            arrays[_OPTIMIZER] = onp.array(json.dumps(describe(self.optimizer)))
        buffer = io.BytesIO()
        onp.savez(buffer, **arrays)
        return buffer.getvalue()

    def set_states(self, states: bytes) -> None:
        """Put back what `get_states` gave.

        Parameters
        ----------
        states : bytes

        Raises
        ------
        FileFormatError
            If `states` does not come from `get_states`, or is damaged.
        ValueError
            If an optimizer of another class was saved.
        """
        if states.startswith(b"\x80"):
            raise FileFormatError(
                f"states that were pickled ({len(states)} bytes), as MXNet 1.x and 2.0 beta wrote them, are not read: "
                "unpickling runs code; begin with new states"
            )
        try:
            with onp.load(io.BytesIO(states), allow_pickle=False) as archive:
                members = {name: archive[name] for name in archive.files}
            structure = json.loads(str(members[_STRUCTURE]))
            restored = {int(index): _unpack(packed, members) for index, packed in structure.items()}
            saved = json.loads(str(members[_OPTIMIZER])) if _OPTIMIZER in members else None
        except Exception as error:
            raise FileFormatError(f"not the states of an optimizer ({len(states)} bytes): {error}") from error
        if saved is not None:
            restore(self.optimizer, saved)
        self.states = restored
        self._unplaced = set(restored)


def _pack(state: State, key: str, arrays: dict[str, Any]) -> Any:
    """Move the arrays of a state into `arrays` and return what is needed to put them together again."""
    if state is None:
        return None
    if isinstance(state, tuple):
        return [_pack(part, f"{key}/{number}", arrays) for number, part in enumerate(state)]
    name = dtype_name(state.dtype)
    arrays[key] = (state.astype("float32") if name == "bfloat16" else state).asnumpy()
    return {"array": key, "dtype": name}


def _unpack(packed: Any, members: dict[str, Any]) -> State:
    if packed is None:
        return None
    if isinstance(packed, list):
        return tuple(_unpack(part, members) for part in packed)
    return np.array(members[packed["array"]], dtype=packed["dtype"])


def get_updater(optimizer: Optimizer) -> Updater:
    """Make an updater.

    Parameters
    ----------
    optimizer : Optimizer

    Returns
    -------
    Updater

    Examples
    --------
    >>> updater = mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=0.1))
    >>> weight = np.array([1.0])
    >>> updater(0, np.array([2.0]), weight)
    >>> weight
    array([0.8])
    """
    return Updater(optimizer)
