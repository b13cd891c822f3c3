"""Cells that wrap another cell: dropout, zoneout, residual."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mxnet import autograd
from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet._argument_repr import argument_repr, changed_arguments
from mxnet._renamed import old_keywords
from mxnet.gluon.rnn.rnn_cell import HybridRecurrentCell, RecurrentCell, StateInfo, States, masked_steps
from mxnet.numpy import ndarray

__all__ = [
    "DropoutCell",
    "ModifierCell",
    "ResidualCell",
    "VariationalDropoutCell",
    "ZoneoutCell",
]


class ModifierCell(HybridRecurrentCell):
    """Base class of cells that change what another cell does.

    Parameters
    ----------
    base_cell : RecurrentCell
    """

    base_cell: Any

    def __init__(self, base_cell: RecurrentCell) -> None:
        super().__init__()
        self.base_cell = base_cell

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join([repr(self.base_cell), *changed_arguments(self, ('base_cell',))])})"

    def state_info(self, batch_size: int = 0) -> StateInfo:
        return self.base_cell.state_info(batch_size)  # type: ignore[no-any-return]

    @old_keywords(ctx="device")
    def begin_state(self, batch_size: int = 0, func: Callable[..., ndarray] | None = None, **kwargs: Any) -> States:
        return self.base_cell.begin_state(batch_size, func, **kwargs)  # type: ignore[no-any-return]


class ResidualCell(ModifierCell):
    """Adds its input to the output of another cell.

    Parameters
    ----------
    base_cell : RecurrentCell
        Its output must have the size of its input.

    Examples
    --------
    >>> cell = mx.gluon.rnn.ResidualCell(mx.gluon.rnn.GRUCell(4))
    >>> cell.initialize()
    >>> output, states = cell(np.ones((3, 4)), cell.begin_state(batch_size=3))
    >>> output.shape
    (3, 4)
    """

    def forward(self, inputs: ndarray, states: States) -> tuple[ndarray, States]:
        """Do one step; shapes are those of the other cell."""
        output, states = self.base_cell(inputs, states)
        return output + inputs, states

    def _run_steps(
        self, steps: list[ndarray], states: States, valid_length: ndarray | None
    ) -> tuple[list[ndarray], States]:
        outputs, states = self.base_cell.unroll(None, steps, states, merge_outputs=False, valid_length=valid_length)
        added = steps if valid_length is None else masked_steps(steps, valid_length)
        return [output + step for output, step in zip(outputs, added, strict=True)], states


class ZoneoutCell(ModifierCell):
    """Zoneout: random elements of outputs and states keep their old value while training.

    Parameters
    ----------
    base_cell : RecurrentCell
    zoneout_outputs, zoneout_states : float
        Probabilities, in ``[0, 1]``.

    Raises
    ------
    ValueError
        If a probability is out of range.

    Notes
    -----
    Source: D. Krueger et al., "Zoneout: Regularizing RNNs by Randomly Preserving Hidden Activations", 2016.

    Examples
    --------
    >>> cell = mx.gluon.rnn.ZoneoutCell(mx.gluon.rnn.GRUCell(5), zoneout_states=0.2)
    >>> cell.initialize()
    >>> cell.unroll(7, np.ones((3, 7, 4)), merge_outputs=True)[0].shape
    (3, 7, 5)
    """

    _keeps_arrays = True

    def __init__(self, base_cell: RecurrentCell, zoneout_outputs: float = 0.0, zoneout_states: float = 0.0) -> None:
        for name, rate in (("zoneout_outputs", zoneout_outputs), ("zoneout_states", zoneout_states)):
            if not 0 <= rate <= 1:
                raise ValueError(f"`{name}` must be in [0, 1], found {rate}")
        super().__init__(base_cell)
        self._zoneout_outputs = zoneout_outputs
        self._zoneout_states = zoneout_states
        self._previous: ndarray | None = None

    def reset(self) -> None:
        super().reset()
        self._previous = None

    def _mix(self, rate: float, new: ndarray, old: ndarray | None) -> ndarray:
        if rate == 0.0 or not autograd.is_training():
            return new
        before = np.zeros_like(new) if old is None else old
        # Dropout of ones is zero with probability `rate`.
        keep_new = npx.dropout(np.ones_like(new), p=rate)
        mixed: ndarray = np.where(keep_new > 0, new, before)
        return mixed

    def forward(self, inputs: ndarray, states: States) -> tuple[ndarray, States]:
        """Do one step; shapes are those of the other cell."""
        output, new_states = self.base_cell(inputs, states)
        output = self._mix(self._zoneout_outputs, output, self._previous)
        mixed = [self._mix(self._zoneout_states, new, old) for new, old in zip(new_states, states, strict=True)]
        self._previous = output
        return output, mixed


class DropoutCell(HybridRecurrentCell):
    """Dropout as a cell without states.

    Parameters
    ----------
    rate : float
        Probability of an element to be dropped, in ``[0, 1]``.
    axes : sequence of int
        Axes along which all elements share their fate.

    Raises
    ------
    ValueError
        If `rate` is out of range.

    Examples
    --------
    >>> cell = mx.gluon.rnn.DropoutCell(0.5)
    >>> cell(np.ones((1, 3)), [])[0]  # only training drops elements
    array([[1., 1., 1.]])
    """

    def __init__(self, rate: float, axes: Sequence[int] = ()) -> None:
        if not 0 <= rate <= 1:
            raise ValueError(f"`rate` must be in [0, 1], found {rate}")
        super().__init__()
        self._rate = rate
        self._axes = tuple(axes)

    def __repr__(self) -> str:
        return argument_repr(self)

    def state_info(self, batch_size: int = 0) -> StateInfo:
        return []

    def forward(self, inputs: ndarray, states: States) -> tuple[ndarray, States]:
        """Drop elements of `inputs`; returns an array of that shape and `states`."""
        output = npx.dropout(inputs, p=self._rate, axes=self._axes) if self._rate > 0 else inputs
        return output, states


class VariationalDropoutCell(ModifierCell):
    """Dropout around another cell, with the same elements dropped in every step of a sequence.

    Parameters
    ----------
    base_cell : RecurrentCell
    drop_inputs, drop_states, drop_outputs : float
        Probabilities, in ``[0, 1]``; of the states only the first one is dropped.

    Raises
    ------
    ValueError
        If a probability is out of range.

    Notes
    -----
    `reset` and `unroll` draw anew what is dropped. Source: Y. Gal and Z. Ghahramani, "A Theoretically Grounded
    Application of Dropout in Recurrent Neural Networks", 2016.

    Examples
    --------
    >>> cell = mx.gluon.rnn.VariationalDropoutCell(mx.gluon.rnn.GRUCell(5), drop_inputs=0.2)
    >>> cell.initialize()
    >>> cell.unroll(7, np.ones((3, 7, 4)), merge_outputs=True)[0].shape
    (3, 7, 5)
    """

    _keeps_arrays = True

    def __init__(
        self,
        base_cell: RecurrentCell,
        drop_inputs: float = 0.0,
        drop_states: float = 0.0,
        drop_outputs: float = 0.0,
    ) -> None:
        rates = {"drop_inputs": drop_inputs, "drop_states": drop_states, "drop_outputs": drop_outputs}
        for name, rate in rates.items():
            if not 0 <= rate <= 1:
                raise ValueError(f"`{name}` must be in [0, 1], found {rate}")
        super().__init__(base_cell)
        self._drop_inputs, self._drop_states, self._drop_outputs = drop_inputs, drop_states, drop_outputs
        self._masks: dict[str, ndarray] = {}

    def reset(self) -> None:
        super().reset()
        self._masks = {}

    def _drop(self, name: str, rate: float, x: ndarray) -> ndarray:
        if rate == 0.0 or not autograd.is_training():
            return x
        if name not in self._masks:
            self._masks[name] = npx.dropout(np.ones_like(x), p=rate)
        return x * self._masks[name]

    def forward(self, inputs: ndarray, states: States) -> tuple[ndarray, States]:
        """Do one step; shapes are those of the other cell."""
        dropped = [self._drop("states", self._drop_states, states[0]), *states[1:]] if states else states
        output, new_states = self.base_cell(self._drop("inputs", self._drop_inputs, inputs), dropped)
        return self._drop("outputs", self._drop_outputs, output), new_states
