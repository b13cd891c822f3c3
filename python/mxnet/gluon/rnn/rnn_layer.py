"""Recurrent layers: a whole sequence, several layers and both directions in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet._renamed import old_keywords
from mxnet._rnn_layout import packed_input_size
from mxnet.base import DTypeLike
from mxnet.gluon._counts import count_of
from mxnet.gluon.block import HybridBlock
from mxnet.gluon.parameter import Parameter
from mxnet.gluon.utils import split_rnn_params
from mxnet.numpy import ndarray

__all__ = ["GRU", "LSTM", "RNN"]

_GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}


class _RNNLayer(HybridBlock):
    """What the layers have in common.

    Parameters are called ``l0_i2h_weight``, ``l0_h2h_bias`` and so on; those of the backward direction begin with
    ``r``.
    """

    def __init__(
        self,
        mode: str,
        hidden_size: int,
        num_layers: int,
        layout: str,
        dropout: float,
        bidirectional: bool,
        input_size: int,
        i2h_weight_initializer: Any,
        h2h_weight_initializer: Any,
        i2h_bias_initializer: Any,
        h2h_bias_initializer: Any,
        dtype: DTypeLike,
        use_sequence_length: bool,
        projection_size: int | None = None,
        h2r_weight_initializer: Any = None,
        state_clip: tuple[float, float, bool] | None = None,
    ) -> None:
        if layout not in ("TNC", "NTC"):
            raise ValueError(f"`layout` must be 'TNC' or 'NTC', found {layout!r}")
        name = type(self).__name__
        hidden_size, num_layers = count_of(name, "hidden_size", hidden_size), count_of(name, "num_layers", num_layers)
        input_size = count_of(name, "input_size", input_size, 0)
        if not 0 <= dropout <= 1:
            raise ValueError(f"`dropout` must be in [0, 1], found {dropout}")
        if projection_size is not None and projection_size < 1:
            raise ValueError(f"`projection_size` must be at least 1 or None, found {projection_size}")
        super().__init__()
        self._projection_size = projection_size
        self._state_clip = state_clip
        self._use_sequence_length = use_sequence_length
        self._mode = mode
        self._hidden_size = hidden_size
        self._num_layers = num_layers
        self._layout = layout
        self._dropout = dropout
        self._directions = 2 if bidirectional else 1
        self._input_size = input_size
        rows = _GATES[mode] * hidden_size
        output_size = projection_size or hidden_size
        self._names: list[str] = []
        size = input_size or -1
        for layer in range(num_layers):
            for direction in "lr"[: self._directions]:
                prefix = f"{direction}{layer}_"
                self._make(prefix + "i2h_weight", (rows, size), i2h_weight_initializer, dtype)
                self._make(prefix + "h2h_weight", (rows, output_size), h2h_weight_initializer, dtype)
                if projection_size is not None:
                    self._make(prefix + "h2r_weight", (projection_size, hidden_size), h2r_weight_initializer, dtype)
                self._make(prefix + "i2h_bias", (rows,), i2h_bias_initializer, dtype)
                self._make(prefix + "h2h_bias", (rows,), h2h_bias_initializer, dtype)
            size = output_size * self._directions

    def _make(self, name: str, shape: tuple[int, ...], init: Any, dtype: DTypeLike) -> None:
        setattr(self, name, Parameter(name, shape=shape, init=init, dtype=dtype, allow_deferred_init=True))
        self._names.append(name)

    def _cut_packed(self, vector: ndarray) -> dict[str, ndarray]:
        """Parameters of a packed vector, by their names."""
        sizes = (self._hidden_size, self._directions == 2, self._projection_size)
        input_size = packed_input_size(vector.size, self._mode, self._num_layers, *sizes)
        return split_rnn_params(vector, self._mode, self._num_layers, input_size, *sizes)

    def __repr__(self) -> str:
        parts = [f"{self._input_size or None} -> {self._hidden_size}", self._layout]
        if self._num_layers != 1:
            parts.append(f"num_layers={self._num_layers}")
        if self._dropout:
            parts.append(f"dropout={self._dropout}")
        if self._directions == 2:
            parts.append("bidirectional")
        if self._projection_size is not None:
            parts.append(f"projection_size={self._projection_size}")
        if self._state_clip is not None:
            parts.append(f"state_clip={self._state_clip[:2]}")
        if self._use_sequence_length:
            parts.append("use_sequence_length")
        return f"{type(self).__name__}({', '.join(parts)})"

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shapes of the states.

        Parameters
        ----------
        batch_size : int

        Returns
        -------
        list of dict
            With ``"shape"`` and ``"__layout__"``.
        """
        rows = self._num_layers * self._directions
        sizes = [self._projection_size or self._hidden_size]
        if self._mode == "lstm":
            sizes.append(self._hidden_size)
        return [{"shape": (rows, batch_size, size), "__layout__": "LNC"} for size in sizes]

    @old_keywords(ctx="device")
    def begin_state(
        self, batch_size: int = 0, func: Callable[..., ndarray] | None = None, **kwargs: Any
    ) -> list[ndarray]:
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
        list of ndarray, shape (num_layers * directions, batch_size, hidden_size)
            With a projection the first of an LSTM has size `projection_size`.
        """
        make = np.zeros if func is None else func
        return [make(info["shape"], **kwargs) for info in self.state_info(batch_size)]

    def infer_shape(self, inputs: ndarray, *args: Any) -> None:
        """Set the input size.

        Parameters
        ----------
        inputs : ndarray, shape (t, n, c) or (n, t, c)
        """
        self._input_size = inputs.shape[-1]
        for direction in "lr"[: self._directions]:
            weight = self._reg_params[f"{direction}0_i2h_weight"]
            weight.shape = (_GATES[self._mode] * self._hidden_size, self._input_size)

    def _packed(self, inputs: ndarray) -> ndarray:
        """All parameters in one vector: the weights of all layers first, then the biases."""
        weights = [name for name in self._names if name.endswith("weight")]
        biases = [name for name in self._names if name.endswith("bias")]
        device = inputs.device
        return np.concatenate([self._reg_params[name].data(device).reshape((-1,)) for name in weights + biases])

    def forward(
        self,
        inputs: ndarray,
        states: ndarray | Sequence[ndarray] | None = None,
        sequence_length: ndarray | None = None,
    ) -> Any:
        """Run over a batch of sequences.

        Parameters
        ----------
        inputs : ndarray, shape (t, n, c), or (n, t, c) with that layout; or RaggedArray, shape (n, None, c)
            Ragged sequences need the layout 'NTC'; they are not padded.
        states : list of ndarray, shape (num_layers * directions, n, hidden_size), optional
            Zeros by default.
        sequence_length : ndarray, shape (n,), optional
            Where sequences end; needed with `use_sequence_length`.

        Returns
        -------
        output : ndarray, shape (t, n, directions * hidden_size), or (n, t, ...)
            Ragged for ragged inputs.
        states : list of ndarray
            Only if `states` are given.

        Raises
        ------
        ValueError
            If the number of states or the shape of one is wrong, lengths are missing, or inputs are ragged and the
            layout is 'TNC'.
        """
        is_ragged = None in inputs.shape
        if is_ragged and self._layout != "NTC":
            raise ValueError("ragged sequences (n, length, channels) need the layout 'NTC', found 'TNC'")
        if self._use_sequence_length and sequence_length is None and not is_ragged:
            raise ValueError(f"{type(self).__name__}: `use_sequence_length` asks for `sequence_length`")
        batch_size = inputs.shape[self._layout.find("N")]
        expected = self.state_info(batch_size)
        if states is None:
            given = self.begin_state(batch_size, dtype=inputs.dtype, device=inputs.device)
        else:
            given = [states] if isinstance(states, ndarray) else list(states)
        shapes = [tuple(state.shape) for state in given]
        if shapes != [info["shape"] for info in expected]:
            raise ValueError(f"states must have the shapes {[info['shape'] for info in expected]}, found {shapes}")
        moved = inputs if self._layout == "TNC" or is_ragged else inputs.swapaxes(0, 1)
        outputs = npx.rnn(
            moved,
            self._packed(inputs),
            given[0],
            given[1] if len(given) == 2 else None,
            sequence_length,
            mode=self._mode,
            state_size=self._hidden_size,
            num_layers=self._num_layers,
            bidirectional=self._directions == 2,
            p=self._dropout,
            state_outputs=True,
            use_sequence_length=sequence_length is not None,
            projection_size=self._projection_size,
            lstm_state_clip_min=None if self._state_clip is None else self._state_clip[0],
            lstm_state_clip_max=None if self._state_clip is None else self._state_clip[1],
            lstm_state_clip_nan=None if self._state_clip is None else self._state_clip[2],
        )
        output = outputs[0] if self._layout == "TNC" or is_ragged else outputs[0].swapaxes(0, 1)
        return output if states is None else (output, list(outputs[1:]))


class RNN(_RNNLayer):
    """Elman layers: ``h' = activation(W x + b + R h + c)``.

    Parameters
    ----------
    hidden_size : int
    num_layers : int
    activation : {"relu", "tanh"}
    layout : {"TNC", "NTC"}
        Axes of input and output: time, samples, channels.
    dropout : float
        Between layers, while training; in ``[0, 1]``.
    bidirectional : bool
    i2h_weight_initializer, h2h_weight_initializer : Initializer or str, optional
    i2h_bias_initializer, h2h_bias_initializer : Initializer or str, optional
    input_size : int
        0 to find it out from the first input.
    dtype : dtype
    use_sequence_length : bool
        Calls give `sequence_length`; calls may give it without this, too.

    Raises
    ------
    ValueError
        If a number is out of range or a name unknown.

    Examples
    --------
    >>> net = mx.gluon.rnn.RNN(hidden_size=5, num_layers=2)
    >>> net.initialize()
    >>> net(np.ones((7, 3, 4))).shape  # seven steps of three sequences
    (7, 3, 5)
    """

    def __init__(
        self,
        hidden_size: int,
        num_layers: int = 1,
        activation: str = "relu",
        layout: str = "TNC",
        dropout: float = 0,
        bidirectional: bool = False,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        input_size: int = 0,
        dtype: DTypeLike = "float32",
        use_sequence_length: bool = False,
    ) -> None:
        if activation not in ("relu", "tanh"):
            raise ValueError(f"`activation` must be 'relu' or 'tanh', found {activation!r}")
        super().__init__(
            f"rnn_{activation}",
            hidden_size,
            num_layers,
            layout,
            dropout,
            bidirectional,
            input_size,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            dtype,
            use_sequence_length,
        )


class LSTM(_RNNLayer):
    """Long short-term memory (LSTM) layers; see `LSTMCell` for the equations.

    Parameters
    ----------
    hidden_size : int
    num_layers : int
    layout : {"TNC", "NTC"}
        Axes of input and output: time, samples, channels.
    dropout : float
        Between layers, while training; in ``[0, 1]``.
    bidirectional : bool
    input_size : int
        0 to find it out from the first input.
    i2h_weight_initializer, h2h_weight_initializer : Initializer or str, optional
    i2h_bias_initializer, h2h_bias_initializer : Initializer or str, optional
    projection_size : int, optional
        Length of the outputs, which are one more matrix times the cell's; `hidden_size` without such a matrix.
    h2r_weight_initializer : Initializer or str, optional
        Of that matrix.
    state_clip_min, state_clip_max : float, optional
        Bounds of the cell state after every step.
    state_clip_nan : bool
        Put the lower bound in place of what is not a number.
    dtype : dtype
    use_sequence_length : bool
        Calls give `sequence_length`; calls may give it without this, too.

    Raises
    ------
    ValueError
        If a number is out of range or `layout` unknown.

    Examples
    --------
    >>> import mxnet as mx
    >>> layer = mx.gluon.rnn.LSTM(4)
    >>> layer.initialize()
    >>> layer(mx.np.ones((3, 2, 5))).shape
    (3, 2, 4)
    """

    def __init__(
        self,
        hidden_size: int,
        num_layers: int = 1,
        layout: str = "TNC",
        dropout: float = 0,
        bidirectional: bool = False,
        input_size: int = 0,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        projection_size: int | None = None,
        h2r_weight_initializer: Any = None,
        state_clip_min: float | None = None,
        state_clip_max: float | None = None,
        state_clip_nan: bool = False,
        dtype: DTypeLike = "float32",
        use_sequence_length: bool = False,
    ) -> None:
        if (state_clip_min is None) != (state_clip_max is None) or (state_clip_nan and state_clip_min is None):
            raise ValueError(
                "`state_clip_min` and `state_clip_max` are given together, and `state_clip_nan` only with them; found "
                f"{state_clip_min}, {state_clip_max} and {state_clip_nan}"
            )
        clip = None
        if state_clip_min is not None and state_clip_max is not None:
            clip = (float(state_clip_min), float(state_clip_max), bool(state_clip_nan))
        super().__init__(
            "lstm",
            hidden_size,
            num_layers,
            layout,
            dropout,
            bidirectional,
            input_size,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            dtype,
            use_sequence_length,
            projection_size,
            h2r_weight_initializer,
            clip,
        )


class GRU(_RNNLayer):
    """Gated recurrent unit (GRU) layers; see `GRUCell` for the equations.

    Parameters
    ----------
    hidden_size : int
    num_layers : int
    layout : {"TNC", "NTC"}
        Axes of input and output: time, samples, channels.
    dropout : float
        Between layers, while training; in ``[0, 1]``.
    bidirectional : bool
    input_size : int
        0 to find it out from the first input.
    i2h_weight_initializer, h2h_weight_initializer : Initializer or str, optional
    i2h_bias_initializer, h2h_bias_initializer : Initializer or str, optional
    dtype : dtype
    use_sequence_length : bool
        Calls give `sequence_length`; calls may give it without this, too.

    Raises
    ------
    ValueError
        If a number is out of range or `layout` unknown.

    Examples
    --------
    >>> net = mx.gluon.rnn.GRU(hidden_size=5, bidirectional=True)
    >>> net.initialize()
    >>> net(np.ones((7, 3, 4))).shape
    (7, 3, 10)
    """

    def __init__(
        self,
        hidden_size: int,
        num_layers: int = 1,
        layout: str = "TNC",
        dropout: float = 0,
        bidirectional: bool = False,
        input_size: int = 0,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        dtype: DTypeLike = "float32",
        use_sequence_length: bool = False,
    ) -> None:
        super().__init__(
            "gru",
            hidden_size,
            num_layers,
            layout,
            dropout,
            bidirectional,
            input_size,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            dtype,
            use_sequence_length,
        )
