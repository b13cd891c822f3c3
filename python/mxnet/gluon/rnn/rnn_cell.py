"""Recurrent cells: one step of a sequence at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet._argument_repr import changed_arguments
from mxnet._renamed import attribute_finder, old_keywords
from mxnet.gluon._failure import without_forward
from mxnet.gluon.block import Block, HybridBlock
from mxnet.gluon.parameter import Parameter
from mxnet.numpy import ndarray

__all__ = [
    "GRUCell",
    "HybridRecurrentCell",
    "LSTMCell",
    "RNNCell",
    "RecurrentCell",
    "StateInfo",
    "States",
    "dynamic_unroll",
    "is_place_in_stack",
    "masked_steps",
    "steps_of",
]

__getattr__ = attribute_finder(__name__, "mxnet.gluon.rnn")

States = list[ndarray]
StateInfo = list[dict[str, Any]]


def steps_of(inputs: ndarray | Sequence[ndarray], length: int | None, layout: str) -> tuple[list[ndarray], int]:
    """The inputs of each step, and the axis of time."""
    if layout not in ("NTC", "TNC"):
        raise ValueError(f"`layout` must be 'NTC' or 'TNC', found {layout!r}")
    axis = layout.find("T")
    if isinstance(inputs, ndarray):
        found = inputs.shape[axis]
        steps = [inputs[:, t] if axis == 1 else inputs[t] for t in range(found)]
    else:
        steps = list(inputs)
        found = len(steps)
    if length is not None and length != found:
        raise ValueError(f"`length` is {length}, but the inputs have {found} steps")
    if not steps:
        raise ValueError("the inputs have no steps")
    return steps, axis


def _last_valid(per_step: list[ndarray], valid_length: ndarray) -> ndarray:
    """For each sample, the entry of its last valid step: a list over t of (n, ...) -> (n, ...)."""
    last = np.arange(per_step[0].shape[0], device=valid_length.device)
    stacked = np.stack(per_step, axis=0)
    step = np.maximum(valid_length.astype("int64") - 1, 0)
    return stacked[step, last]


def masked_steps(outputs: list[ndarray], valid_length: ndarray) -> list[ndarray]:
    """Outputs with zeros after each sample's last valid step."""
    masked = []
    for t, output in enumerate(outputs):
        valid = (valid_length > t).reshape((-1,) + (1,) * (output.ndim - 1))
        masked.append(np.where(valid, output, np.zeros_like(output)))
    return masked


def is_place_in_stack(args: tuple[Any, ...]) -> bool:
    """Whether arguments of `infer_shape` are ``(i, x, is_bidirect)`` and not those of `forward`."""
    return isinstance(args[0], int)


def inferred_input_size(args: tuple[Any, ...], hidden_size: int) -> int:
    """The input size of a cell from the arguments of its `infer_shape`.

    Parameters
    ----------
    args : tuple
        ``(inputs, ...)`` or ``(i, x, is_bidirect)``.
    hidden_size : int
        Of the outputs of the cells of a stack.

    Returns
    -------
    int
    """
    if not is_place_in_stack(args):
        return int(args[0].shape[-1])
    layer, x, is_bidirect = args
    return int(x.shape[-1]) if layer == 0 else hidden_size * (2 if is_bidirect else 1)


class RecurrentCell(Block):
    """Base class of the cells.

    A subclass defines `state_info` and ``forward(inputs, states)``, which returns the output and the list of new
    states.
    """

    def reset(self) -> None:
        """Forget what was kept from the sequence before."""
        for child in self._children.values():
            if isinstance(child, RecurrentCell):
                child.reset()

    def state_info(self, batch_size: int = 0) -> StateInfo:
        """Shapes of the states.

        Parameters
        ----------
        batch_size : int

        Returns
        -------
        list of dict
            With ``"shape"`` and ``"__layout__"``.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define state_info")

    @old_keywords(ctx="device")
    def begin_state(self, batch_size: int = 0, func: Callable[..., ndarray] | None = None, **kwargs: Any) -> States:
        """States before the first step.

        Parameters
        ----------
        batch_size : int
        func : callable of a shape, optional
            ``np.zeros`` by default.
        **kwargs
            Arguments of `func`, such as `dtype` and `device`.

        Returns
        -------
        list of ndarray
        """
        make = np.zeros if func is None else func
        return [make(info["shape"], **kwargs) for info in self.state_info(batch_size)]

    def _first_states(self, begin_state: Sequence[ndarray] | None, step: ndarray) -> States:
        if begin_state is not None:
            return list(begin_state)
        return self.begin_state(step.shape[0], dtype=step.dtype, device=step.device)

    def unroll(
        self,
        length: int | None,
        inputs: ndarray | Sequence[ndarray],
        begin_state: Sequence[ndarray] | None = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        valid_length: ndarray | None = None,
    ) -> tuple[Any, States]:
        """Run over a sequence.

        Parameters
        ----------
        length : int or None
            Number of steps; None takes it from the inputs.
        inputs : ndarray, shape (n, t, c) or (t, n, c), or sequence of ndarray, shape (n, c)
        begin_state : sequence of ndarray, optional
            Zeros by default.
        layout : {"NTC", "TNC"}
            Axes of the inputs and of merged outputs.
        merge_outputs : bool, optional
            Whether to return one array and not a list; by default if `valid_length` is given.
        valid_length : ndarray, shape (n,), optional
            Where sequences end; outputs behind are zero, and states are those of the last valid step.

        Returns
        -------
        outputs : ndarray, shape (n, t, c) or (t, n, c), or list of ndarray, shape (n, c)
        states : list of ndarray

        Raises
        ------
        ValueError
            If `layout` is unknown, there are no steps, or their number is not `length`.
        """
        self.reset()
        steps, axis = steps_of(inputs, length, layout)
        outputs, states = self._run_steps(steps, self._first_states(begin_state, steps[0]), valid_length)
        merge = valid_length is not None if merge_outputs is None else merge_outputs
        return (np.stack(outputs, axis=axis) if merge else outputs), states

    def _run_steps(
        self, steps: list[ndarray], states: States, valid_length: ndarray | None
    ) -> tuple[list[ndarray], States]:
        """The outputs of all steps and the last states, as `unroll` returns them."""
        outputs: list[ndarray] = []
        history: list[States] = []
        for step in steps:
            output, states = self(step, states)
            outputs.append(output)
            if valid_length is not None:
                history.append(states)
        if valid_length is not None:
            states = [_last_valid(list(kind), valid_length) for kind in zip(*history, strict=True)]
            outputs = masked_steps(outputs, valid_length)
        return outputs, states

    def forward(self, inputs: Any, states: Any) -> Any:
        """Do one step; to be defined by the subclass.

        Parameters
        ----------
        inputs : ndarray, shape (n, c)
        states : list of ndarray

        Returns
        -------
        output : ndarray
        states : list of ndarray
        """
        raise NotImplementedError(without_forward(type(self)))


class HybridRecurrentCell(RecurrentCell, HybridBlock):
    """As `RecurrentCell`, for cells that are hybrid blocks.

    A cell that keeps arrays from one step to the next is not compiled by itself, nor are cells that contain one: a
    graph would keep those of the step that was traced. Its children are, and so is a block around it that calls all
    steps.
    """

    # Whether the cell keeps arrays from one call to the next.
    _keeps_arrays = False

    def _compile(self) -> None:
        if _any_keeps_arrays(self):
            vars(self)["_compiled"] = None
        else:
            super()._compile()

    def infer_shape(self, *args: Any) -> None:
        """Find out unknown sizes of the cells within.

        Parameters
        ----------
        *args
            Either what `forward` takes, or ``(i, x, is_bidirect)``, where this is layer `i` of a stack over `x`, which
            every cell within is told.
        """
        if is_place_in_stack(args):
            cell: Any
            for cell in self._children.values():
                cell.infer_shape(*args)
        else:
            super().infer_shape(*args)


def _any_keeps_arrays(block: Block) -> bool:
    return getattr(block, "_keeps_arrays", False) or any(map(_any_keeps_arrays, block._children.values()))


class _GatedCell(HybridRecurrentCell):
    """A cell whose gates are affine maps of the input and of the first state.

    Parameters
    ----------
    hidden_size : int
    num_gates : int
    input_size : int
        0 to find it out from the first input.
    """

    _num_states = 1

    def __init__(
        self,
        hidden_size: int,
        num_gates: int,
        input_size: int,
        i2h_weight_initializer: Any,
        h2h_weight_initializer: Any,
        i2h_bias_initializer: Any,
        h2h_bias_initializer: Any,
    ) -> None:
        super().__init__()
        self._hidden_size = hidden_size
        self._rows = rows = num_gates * hidden_size
        self.i2h_weight = Parameter(
            "i2h_weight", shape=(rows, input_size or -1), init=i2h_weight_initializer, allow_deferred_init=True
        )
        self.h2h_weight = Parameter("h2h_weight", shape=(rows, hidden_size), init=h2h_weight_initializer)
        self.i2h_bias = Parameter("i2h_bias", shape=(rows,), init=i2h_bias_initializer)
        self.h2h_bias = Parameter("h2h_bias", shape=(rows,), init=h2h_bias_initializer)

    def __repr__(self) -> str:
        size = self.i2h_weight.shape[1] if self.i2h_weight.shape else -1
        parts = [f"{size if size > 0 else None} -> {self._hidden_size}", *changed_arguments(self, ("hidden_size",))]
        return f"{type(self).__name__}({', '.join(parts)})"

    def state_info(self, batch_size: int = 0) -> StateInfo:
        return [{"shape": (batch_size, self._hidden_size), "__layout__": "NC"} for _ in range(self._num_states)]

    def infer_shape(self, *args: Any) -> None:
        """Set the input size.

        Parameters
        ----------
        *args
            Either what `forward` takes, `inputs` of shape (n, c) first, or ``(i, x, is_bidirect)``: the cell is layer
            `i` of a stack over `x`, and for `i` > 0 its input is the state of such a cell, or two of them.
        """
        self.i2h_weight.shape = (self._rows, inferred_input_size(args, self._hidden_size))

    def _gates(self, inputs: ndarray, hidden: ndarray) -> tuple[ndarray, ndarray]:
        device = inputs.device
        from_input = npx.fully_connected(
            inputs,
            self.i2h_weight.data(device),
            self.i2h_bias.data(device),
            num_hidden=self._rows,
            no_bias=False,
        )
        from_hidden = npx.fully_connected(
            hidden,
            self.h2h_weight.data(device),
            self.h2h_bias.data(device),
            num_hidden=self._rows,
            no_bias=False,
        )
        return from_input, from_hidden

    def _part(self, gates: ndarray, number: int) -> ndarray:
        size = self._hidden_size
        return gates[:, number * size : (number + 1) * size]


class RNNCell(_GatedCell):
    """Elman cell: ``h' = activation(W x + b + R h + c)``.

    Parameters
    ----------
    hidden_size : int
    activation : {"tanh", "relu", "sigmoid", ...}
        See `mxnet.gluon.nn.Activation`.
    i2h_weight_initializer, h2h_weight_initializer : Initializer or str, optional
    i2h_bias_initializer, h2h_bias_initializer : Initializer or str, optional
    input_size : int
        0 to find it out from the first input.

    Examples
    --------
    >>> cell = mx.gluon.rnn.RNNCell(hidden_size=5)
    >>> cell.initialize()
    >>> output, states = cell(np.ones((3, 4)), cell.begin_state(batch_size=3))
    >>> output.shape, [state.shape for state in states]
    ((3, 5), [(3, 5)])
    """

    def __init__(
        self,
        hidden_size: int,
        activation: str = "tanh",
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        input_size: int = 0,
    ) -> None:
        super().__init__(
            hidden_size,
            1,
            input_size,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
        )
        self._activation = activation

    def forward(self, inputs: ndarray, states: States) -> tuple[ndarray, States]:
        """Do one step.

        Parameters
        ----------
        inputs : ndarray, shape (n, c)
        states : list of one ndarray, shape (n, hidden_size)

        Returns
        -------
        output : ndarray, shape (n, hidden_size)
        states : list of ndarray
        """
        from_input, from_hidden = self._gates(inputs, states[0])
        output = npx.activation(from_input + from_hidden, act_type=self._activation)
        return output, [output]


class LSTMCell(_GatedCell):
    """Long short-term memory (LSTM) cell, with gates in the order input, forget, cell, output.

    Parameters
    ----------
    hidden_size : int
    i2h_weight_initializer, h2h_weight_initializer : Initializer or str, optional
    i2h_bias_initializer, h2h_bias_initializer : Initializer or str, optional
    input_size : int
        0 to find it out from the first input.
    activation, recurrent_activation : str
        Of the cell and of the gates.

    Notes
    -----
    With the rows of each gate in `i2h_weight` ``W``, in `h2h_weight` ``R`` and in the sum ``b`` of both biases::

        i = sigmoid(W_i @ x + R_i @ h + b_i)
        f = sigmoid(W_f @ x + R_f @ h + b_f)
        g = tanh(W_g @ x + R_g @ h + b_g)
        o = sigmoid(W_o @ x + R_o @ h + b_o)
        c = f * c + i * g
        h = o * tanh(c)

    where ``sigmoid`` is `recurrent_activation` and ``tanh`` is `activation`.

    Source: F. A. Gers, J. Schmidhuber and F. Cummins, "Learning to Forget", 2000.

    Examples
    --------
    >>> cell = mx.gluon.rnn.LSTMCell(hidden_size=5)
    >>> cell.initialize()
    >>> output, states = cell(np.ones((3, 4)), cell.begin_state(batch_size=3))
    >>> output.shape, [state.shape for state in states]
    ((3, 5), [(3, 5), (3, 5)])
    """

    _num_states = 2

    def __init__(
        self,
        hidden_size: int,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        input_size: int = 0,
        activation: str = "tanh",
        recurrent_activation: str = "sigmoid",
    ) -> None:
        super().__init__(
            hidden_size,
            4,
            input_size,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
        )
        self._activation = activation
        self._recurrent_activation = recurrent_activation

    def forward(self, inputs: ndarray, states: States) -> tuple[ndarray, States]:
        """Do one step.

        Parameters
        ----------
        inputs : ndarray, shape (n, c)
        states : list of two ndarray, shape (n, hidden_size)
            Output and cell.

        Returns
        -------
        output : ndarray, shape (n, hidden_size)
        states : list of ndarray
        """
        hidden, cell = states
        from_input, from_hidden = self._gates(inputs, hidden)
        gates = from_input + from_hidden
        write, keep, show = (
            npx.activation(self._part(gates, number), act_type=self._recurrent_activation) for number in (0, 1, 3)
        )
        candidate = npx.activation(self._part(gates, 2), act_type=self._activation)
        cell = keep * cell + write * candidate
        output = show * npx.activation(cell, act_type=self._activation)
        return output, [output, cell]


class GRUCell(_GatedCell):
    """Gated recurrent unit (GRU) cell, with gates in the order reset, update, candidate.

    Parameters
    ----------
    hidden_size : int
    i2h_weight_initializer, h2h_weight_initializer : Initializer or str, optional
    i2h_bias_initializer, h2h_bias_initializer : Initializer or str, optional
    input_size : int
        0 to find it out from the first input.
    activation, recurrent_activation : str
        Of the candidate and of the gates.

    Notes
    -----
    With the rows of each gate in `i2h_weight` ``W``, in `h2h_weight` ``R`` and in their biases ``b`` and ``d``::

        r = sigmoid(W_r @ x + b_r + R_r @ h + d_r)
        z = sigmoid(W_z @ x + b_z + R_z @ h + d_z)
        n = tanh(W_n @ x + b_n + r * (R_n @ h + d_n))
        h = (1 - z) * n + z * h

    where ``sigmoid`` is `recurrent_activation` and ``tanh`` is `activation`. The reset gate acts after the recurrent
    matrix, as in fused kernels.

    Source: K. Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder", 2014.

    Examples
    --------
    >>> cell = mx.gluon.rnn.GRUCell(hidden_size=5)
    >>> cell.initialize()
    >>> output, states = cell(np.ones((3, 4)), cell.begin_state(batch_size=3))
    >>> output.shape, [state.shape for state in states]
    ((3, 5), [(3, 5)])
    """

    def __init__(
        self,
        hidden_size: int,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        input_size: int = 0,
        activation: str = "tanh",
        recurrent_activation: str = "sigmoid",
    ) -> None:
        super().__init__(
            hidden_size,
            3,
            input_size,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
        )
        self._activation = activation
        self._recurrent_activation = recurrent_activation

    def forward(self, inputs: ndarray, states: States) -> tuple[ndarray, States]:
        """Do one step.

        Parameters
        ----------
        inputs : ndarray, shape (n, c)
        states : list of one ndarray, shape (n, hidden_size)

        Returns
        -------
        output : ndarray, shape (n, hidden_size)
        states : list of ndarray
        """
        hidden = states[0]
        x, h = self._gates(inputs, hidden)
        reset, update = (
            npx.activation(self._part(x, number) + self._part(h, number), act_type=self._recurrent_activation)
            for number in (0, 1)
        )
        candidate = npx.activation(self._part(x, 2) + reset * self._part(h, 2), act_type=self._activation)
        output = (1.0 - update) * candidate + update * hidden
        return output, [output]


def dynamic_unroll(
    cell: RecurrentCell,
    inputs: ndarray,
    begin_state: Sequence[ndarray],
    drop_inputs: float = 0,
    drop_outputs: float = 0,
    layout: str = "TNC",
    valid_length: ndarray | None = None,
) -> tuple[ndarray, States]:
    """Run a cell over a sequence.

    Parameters
    ----------
    cell : RecurrentCell
    inputs : ndarray, shape (t, n, c) or (n, t, c)
    begin_state : sequence of ndarray
    drop_inputs, drop_outputs : float
        Probability that a feature of the inputs and of the outputs is zero, at all steps alike, while training.
    layout : {"TNC", "NTC"}
        Axes of the inputs and outputs.
    valid_length : ndarray, shape (n,), optional
        Where sequences end; outputs behind are zero, and states are those of the last valid step.

    Returns
    -------
    outputs : ndarray, shape (t, n, c) or (n, t, c)
    states : list of ndarray

    Raises
    ------
    ValueError
        If `layout` is unknown or there are no steps.

    Examples
    --------
    >>> cell = mx.gluon.rnn.GRUCell(4)
    >>> cell.initialize()
    >>> x = np.ones((3, 2, 5))
    >>> outputs, states = mx.gluon.rnn.rnn_cell.dynamic_unroll(cell, x, cell.begin_state(2))
    >>> outputs.shape, states[0].shape
    ((3, 2, 4), (2, 4))
    """
    axes = (layout.find("T"),)
    x = npx.dropout(inputs, drop_inputs, axes=axes) if drop_inputs else inputs
    outputs, states = cell.unroll(None, x, begin_state, layout, True, valid_length)
    return (npx.dropout(outputs, drop_outputs, axes=axes) if drop_outputs else outputs), states
