"""The LSTM cell whose output is projected to a smaller size."""

from __future__ import annotations

from typing import Any

from mxnet import numpy_extension as npx
from mxnet._argument_repr import changed_arguments
from mxnet.gluon.parameter import Parameter
from mxnet.gluon.rnn.rnn_cell import HybridRecurrentCell, StateInfo, States, inferred_input_size
from mxnet.numpy import ndarray

__all__ = ["LSTMPCell"]


class LSTMPCell(HybridRecurrentCell):
    """Long short-term memory with a projected output, gates in the order input, forget, cell, output.

    With the gates ``i, f, g, o`` as affine maps of the input and of the projected output before::

        cell = sigmoid(f) * cell + sigmoid(i) * tanh(g)
        output = h2r_weight @ (sigmoid(o) * tanh(cell))

    Parameters
    ----------
    hidden_size : int
    projection_size : int
        Size of the output.
    i2h_weight_initializer, h2h_weight_initializer, h2r_weight_initializer : Initializer or str, optional
    i2h_bias_initializer, h2h_bias_initializer : Initializer or str, optional
    input_size : int
        0 to find it out from the first input.

    Notes
    -----
    Source: H. Sak, A. Senior and F. Beaufays, "Long Short-Term Memory Based Recurrent Neural Network Architectures for
    Large Vocabulary Speech Recognition", 2014, without peephole connections.

    Examples
    --------
    >>> cell = mx.gluon.rnn.LSTMPCell(hidden_size=5, projection_size=2)
    >>> cell.initialize()
    >>> output, states = cell(np.ones((3, 4)), cell.begin_state(batch_size=3))
    >>> output.shape, [state.shape for state in states]
    ((3, 2), [(3, 2), (3, 5)])
    """

    def __init__(
        self,
        hidden_size: int,
        projection_size: int,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        h2r_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        input_size: int = 0,
    ) -> None:
        for name, size in (("hidden_size", hidden_size), ("projection_size", projection_size)):
            if size < 1:
                raise ValueError(f"LSTMPCell: `{name}` must be positive, found {size}")
        super().__init__()
        self._hidden_size = hidden_size
        self._projection_size = projection_size
        rows = 4 * hidden_size
        self.i2h_weight = Parameter(
            "i2h_weight", shape=(rows, input_size or -1), init=i2h_weight_initializer, allow_deferred_init=True
        )
        self.h2h_weight = Parameter("h2h_weight", shape=(rows, projection_size), init=h2h_weight_initializer)
        self.h2r_weight = Parameter("h2r_weight", shape=(projection_size, hidden_size), init=h2r_weight_initializer)
        self.i2h_bias = Parameter("i2h_bias", shape=(rows,), init=i2h_bias_initializer)
        self.h2h_bias = Parameter("h2h_bias", shape=(rows,), init=h2h_bias_initializer)

    def __repr__(self) -> str:
        size = self.i2h_weight.shape[1] if self.i2h_weight.shape else -1
        sizes = f"{size if size > 0 else None} -> {self._hidden_size} -> {self._projection_size}"
        return f"LSTMPCell({', '.join([sizes, *changed_arguments(self, ('hidden_size', 'projection_size'))])})"

    def state_info(self, batch_size: int = 0) -> StateInfo:
        sizes = (self._projection_size, self._hidden_size)
        return [{"shape": (batch_size, size), "__layout__": "NC"} for size in sizes]

    def infer_shape(self, *args: Any) -> None:
        """Set the input size.

        Parameters
        ----------
        *args
            Either what `forward` takes, `inputs` of shape (n, c) first, or ``(i, x, is_bidirect)``: the cell is layer
            `i` of a stack over `x`, and for `i` > 0 its input is the state of such a cell, or two of them.
        """
        self.i2h_weight.shape = (4 * self._hidden_size, inferred_input_size(args, self._projection_size))

    def forward(self, inputs: ndarray, states: States) -> tuple[ndarray, States]:
        """Do one step.

        Parameters
        ----------
        inputs : ndarray, shape (n, c)
        states : list of two ndarray, shapes (n, projection_size) and (n, hidden_size)
            Output and cell.

        Returns
        -------
        output : ndarray, shape (n, projection_size)
        states : list of ndarray
        """
        projected, cell = states
        device, size = inputs.device, self._hidden_size
        gates = npx.fully_connected(
            inputs,
            self.i2h_weight.data(device),
            self.i2h_bias.data(device),
            num_hidden=4 * size,
            no_bias=False,
        ) + npx.fully_connected(
            projected,
            self.h2h_weight.data(device),
            self.h2h_bias.data(device),
            num_hidden=4 * size,
            no_bias=False,
        )
        write, keep, candidate, show = (
            npx.activation(gates[:, k * size : (k + 1) * size], act_type="tanh" if k == 2 else "sigmoid")
            for k in range(4)
        )
        cell = keep * cell + write * candidate
        hidden = show * npx.activation(cell, act_type="tanh")
        output = npx.fully_connected(
            hidden, self.h2r_weight.data(device), None, num_hidden=self._projection_size, no_bias=True
        )
        return output, [output, cell]
