"""Stacked and bidirectional cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mxnet import autograd
from mxnet import numpy as np
from mxnet._renamed import old_keywords
from mxnet.gluon.block import Block
from mxnet.gluon.rnn.rnn_cell import HybridRecurrentCell, RecurrentCell, StateInfo, States, is_place_in_stack
from mxnet.numpy import ndarray

__all__ = [
    "BidirectionalCell",
    "HybridSequentialRNNCell",
    "SequentialRNNCell",
]


def _cells(block: Block) -> list[Any]:
    return list(block._children.values())


class SequentialRNNCell(RecurrentCell):
    """Stacks cells: each gets the outputs of the one below.

    `unroll` unrolls one cell after the other, so cells may be bidirectional.

    Examples
    --------
    >>> import mxnet as mx
    >>> cell = mx.gluon.rnn.SequentialRNNCell()
    >>> cell.add(mx.gluon.rnn.LSTMCell(4))
    >>> cell.add(mx.gluon.rnn.GRUCell(2))
    >>> cell.initialize()
    >>> outputs, states = cell.unroll(3, mx.np.ones((5, 3, 2)), merge_outputs=True)
    >>> outputs.shape, len(states)
    ((5, 3, 2), 3)
    """

    def add(self, cell: RecurrentCell) -> None:
        """Put a cell on top.

        Parameters
        ----------
        cell : RecurrentCell
        """
        self.register_child(cell)

    def state_info(self, batch_size: int = 0) -> StateInfo:
        return [info for cell in _cells(self) for info in cell.state_info(batch_size)]

    @old_keywords(ctx="device")
    def begin_state(self, batch_size: int = 0, func: Callable[..., ndarray] | None = None, **kwargs: Any) -> States:
        return [state for cell in _cells(self) for state in cell.begin_state(batch_size, func, **kwargs)]

    def forward(self, inputs: ndarray, states: States) -> tuple[ndarray, States]:
        """Do one step with every cell.

        Parameters
        ----------
        inputs : ndarray, shape (n, c)
        states : list of ndarray
            Those of all cells in a row.

        Returns
        -------
        output : ndarray
            The last cell's.
        states : list of ndarray
        """
        after: States = []
        start = 0
        for cell in _cells(self):
            count = len(cell.state_info())
            inputs, new = cell(inputs, states[start : start + count])
            after.extend(new)
            start += count
        return inputs, after

    def infer_shape(self, *args: Any) -> None:
        """Find out unknown sizes of all cells.

        Parameters
        ----------
        *args
            Either what `forward` takes, for one unrecorded step; or ``(i, x, is_bidirect)``, for the first cell over
            `x`, and the others over states of cells of their own size, or over two of them.
        """
        if is_place_in_stack(args):
            for layer, cell in enumerate(_cells(self)):
                cell.infer_shape(layer, *args[1:])
        else:
            with autograd.pause():
                self.forward(*args)

    def _run_steps(
        self, steps: list[ndarray], states: States, valid_length: ndarray | None
    ) -> tuple[list[ndarray], States]:
        # Cell by cell, because some need the whole sequence.
        after: States = []
        start = 0
        for cell in _cells(self):
            count = len(cell.state_info())
            begin = states[start : start + count]
            steps, new = cell.unroll(None, steps, begin, merge_outputs=False, valid_length=valid_length)
            after.extend(new)
            start += count
        return steps, after

    def __getitem__(self, i: int) -> RecurrentCell:
        found: RecurrentCell = _cells(self)[i]
        return found

    def __len__(self) -> int:
        return len(self._children)

    def __iter__(self) -> Iterator[RecurrentCell]:
        return iter(_cells(self))


class HybridSequentialRNNCell(SequentialRNNCell, HybridRecurrentCell):
    """As `SequentialRNNCell`, for hybrid cells.

    Examples
    --------
    >>> stack = mx.gluon.rnn.HybridSequentialRNNCell()
    >>> stack.add(mx.gluon.rnn.LSTMCell(5))
    >>> stack.add(mx.gluon.rnn.GRUCell(6))
    >>> stack.initialize()
    >>> outputs, states = stack.unroll(7, np.ones((3, 7, 4)), merge_outputs=True)
    >>> outputs.shape, len(states)
    ((3, 7, 6), 3)
    """


class BidirectionalCell(HybridRecurrentCell):
    """Runs two cells over a sequence, one of them backwards; it can only be unrolled.

    Parameters
    ----------
    l_cell, r_cell : RecurrentCell
        Forwards and backwards; their outputs are joined along the last axis.

    Examples
    --------
    >>> cell = mx.gluon.rnn.BidirectionalCell(mx.gluon.rnn.GRUCell(5), mx.gluon.rnn.GRUCell(5))
    >>> cell.initialize()
    >>> outputs, states = cell.unroll(7, np.ones((3, 7, 4)), merge_outputs=True)
    >>> outputs.shape
    (3, 7, 10)
    """

    l_cell: Any
    r_cell: Any

    def __init__(self, l_cell: RecurrentCell, r_cell: RecurrentCell) -> None:
        super().__init__()
        self.l_cell = l_cell
        self.r_cell = r_cell

    def state_info(self, batch_size: int = 0) -> StateInfo:
        return [*self.l_cell.state_info(batch_size), *self.r_cell.state_info(batch_size)]

    @old_keywords(ctx="device")
    def begin_state(self, batch_size: int = 0, func: Callable[..., ndarray] | None = None, **kwargs: Any) -> States:
        cells = (self.l_cell, self.r_cell)
        return [state for cell in cells for state in cell.begin_state(batch_size, func, **kwargs)]

    def forward(self, inputs: Any, states: Any) -> Any:
        """Refuse to do one step.

        Raises
        ------
        NotImplementedError
            Always: the backward cell needs the whole sequence.
        """
        raise NotImplementedError("a BidirectionalCell needs the whole sequence; call unroll")

    def infer_shape(self, *args: Any) -> None:
        """Find out unknown sizes of both cells.

        Parameters
        ----------
        *args
            ``(i, x, is_bidirect)``: the cell is layer `i` of a stack over `x`. Its layers have two cells each, whatever
            `is_bidirect` says.
        """
        layer, x, _ = args
        for cell in (self.l_cell, self.r_cell):
            cell.infer_shape(layer, x, True)

    def _run_steps(
        self, steps: list[ndarray], states: States, valid_length: ndarray | None
    ) -> tuple[list[ndarray], States]:
        split = len(self.l_cell.state_info())
        forwards, left = self.l_cell.unroll(None, steps, states[:split], merge_outputs=False, valid_length=valid_length)
        turned, right = self.r_cell.unroll(
            None, _reversed(steps, valid_length), states[split:], merge_outputs=False, valid_length=valid_length
        )
        backwards = _reversed(turned, valid_length)
        outputs = [np.concatenate([a, b], axis=-1) for a, b in zip(forwards, backwards, strict=True)]
        return outputs, [*left, *right]


def _reversed(steps: list[ndarray], valid_length: ndarray | None) -> list[ndarray]:
    """Steps in reverse order; with lengths only the valid ones of each sample, the others stay in place."""
    if valid_length is None:
        return steps[::-1]
    total = len(steps)
    time = np.arange(total, device=valid_length.device).reshape((-1, 1))
    ends = valid_length.astype("int64").reshape((1, -1))
    # (t, n): where the entry of step t comes from.
    source = np.where(time < ends, ends - 1 - time, time)
    samples = np.arange(steps[0].shape[0], device=valid_length.device).reshape((1, -1))
    turned = np.stack(steps, axis=0)[source, samples]
    return [turned[t] for t in range(total)]
