"""Recurrent layers: one layer in one direction is one node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mxnet.onnx._exporter.builder import Value
from mxnet.onnx._exporter.call import Call

__all__ = ["TRANSLATIONS"]

# The order of ONNX's gates, as positions among ours: input, forget, cell, output; reset, update, candidate.
_GATES = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn_tanh": (0,), "rnn_relu": (0,)}
_OPERATORS = {"lstm": "LSTM", "gru": "GRU", "rnn_tanh": "RNN", "rnn_relu": "RNN"}


def _in_order(call: Call, x: Value, order: Sequence[int]) -> Value:
    """The gates along the first axis in another order."""
    size = x.shape[0] // len(order)
    return call.b.concat([call.b.part(x, 0, gate * size, size) for gate in order], 0) if len(order) > 1 else x


def _layer(call: Call) -> list[Value | None]:
    b, dtype, mode = call.b, call.dtype, call.attribute("mode")
    data = call.value(0, dtype)
    order = _GATES[mode]
    wi, wh, bi, bh = (_in_order(call, call.value(at, dtype), order) for at in (1, 2, 3, 4))
    time, batch, hidden = call.shape
    states = [b.reshape(call.value(at, dtype), [1, batch, hidden]) for at in (5, 6)[: 2 if mode == "lstm" else 1]]
    lengths = call.optional(7, "int32")
    bias = b.concat([bi, bh], 0)
    weights = [b.reshape(w, [1, *w.shape]) for w in (wi, wh, bias)]
    attributes: dict[str, Any] = {
        "hidden_size": hidden,
        "direction": "reverse" if call.attribute("reverse", False) else "forward",
    }
    if mode == "gru":
        attributes["linear_before_reset"] = 1
    if mode == "rnn_relu":
        attributes["activations"] = ["Relu"]
    state = ((1, batch, hidden), dtype)
    outputs = [((time, 1, batch, hidden), dtype), state, *([state] if mode == "lstm" else [])]
    found = b.nodes_of(_OPERATORS[mode], [data, *weights, lengths, *states], outputs, **attributes)
    y = b.reshape(found[0], call.shape)
    last = [b.reshape(x, [batch, hidden]) for x in found[1:]]
    if len(call.node.used) > 3 and call.node.used[3]:
        call.refuse("what its gradient needs", "export the network for prediction")
    if mode != "lstm":
        last.append(b.full([0, hidden], 0, dtype))
    return [y, *last, None]


TRANSLATIONS: dict[str, Callable[[Call], Any]] = {"rnn_layer": _layer}
