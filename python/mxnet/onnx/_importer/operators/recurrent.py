"""Recurrent layers: by `npx.rnn` where it has the meaning, else step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.base import dtype_name
from mxnet.onnx._importer.operators.elementwise import softplus
from mxnet.onnx._importer.table import Call, operator

_DIRECTIONS = ("forward", "reverse", "bidirectional")
# Order of the gates of `npx.rnn`, as indices into that of ONNX: i o f c becomes i f g o, z r h becomes r z n.
_GATE_ORDER = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}
_DEFAULT_ACTIVATIONS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}


@operator("RNN", "GRU", "LSTM")
def recurrent(
    call: Call,
    x: Any,
    weight: Any,
    recurrence: Any,
    bias: Any = None,
    lengths: Any = None,
    state: Any = None,
    cell: Any = None,
    peephole: Any = None,
) -> Any:
    """One layer over (time, n, c), or (n, time, c) with layout 1, in one or both directions."""
    kind = call.op_type
    is_batch_first = bool(call["layout"])
    if is_batch_first:
        x = np.swapaxes(x, 0, 1)
        state = None if state is None else np.swapaxes(state, 0, 1)
        cell = None if cell is None else np.swapaxes(cell, 0, 1)
    num_directions, hidden = weight.shape[0], recurrence.shape[2]
    zeros = np.zeros((num_directions, x.shape[1], hidden), dtype=dtype_name(x.dtype))
    state = zeros if state is None else state
    cell = zeros if cell is None else cell
    if bias is None:
        bias = np.zeros((num_directions, 2 * weight.shape[1]), dtype=dtype_name(x.dtype))
    mode = _fused_mode(call, num_directions)
    if mode is not None and peephole is None:
        y, states = _fused(call, mode, x, weight, recurrence, bias, lengths, state, cell)
    else:
        y, states = _by_steps(call, x, weight, recurrence, bias, lengths, state, cell, peephole)
    if is_batch_first:
        y = np.transpose(y, (2, 0, 1, 3))
        states = [np.swapaxes(last, 0, 1) for last in states]
    return (y, *(states if kind == "LSTM" else states[:1]))


def _fused_mode(call: Call, num_directions: int) -> str | None:
    """The mode of `npx.rnn` that computes the node; None if there is none."""
    kind = call.op_type
    found = tuple(name.lower() for name in call["activations"] or _DEFAULT_ACTIVATIONS[kind] * num_directions)
    default = tuple(name.lower() for name in _DEFAULT_ACTIVATIONS[kind] * num_directions)
    if call["clip"] is not None or call["input_forget"]:
        return None
    if kind == "RNN":
        return {"tanh": "rnn_tanh", "relu": "rnn_relu"}.get(found[0]) if len(set(found)) == 1 else None
    if found != default or (kind == "GRU" and not call["linear_before_reset"]):
        return None
    return kind.lower()


def _in_order(parameter: Any, kind: str) -> Any:
    """The rows of one direction's weights or biases, with the gates in the order of `npx.rnn`."""
    order = _GATE_ORDER[kind]
    return np.concatenate(_gates(parameter, len(order), order)) if len(order) > 1 else parameter


def _gates(parameter: Any, count: int, order: tuple[int, ...] | range) -> list[Any]:
    rows = parameter.shape[0] // count
    return [parameter[gate * rows : (gate + 1) * rows] for gate in order]


def _fused(
    call: Call, mode: str, x: Any, weight: Any, recurrence: Any, bias: Any, lengths: Any, state: Any, cell: Any
) -> tuple[Any, list[Any]]:
    kind, (num_directions, _, hidden) = call.op_type, recurrence.shape
    vectors, biases = [], []
    for direction in range(num_directions):
        half = bias.shape[1] // 2
        vectors += [_in_order(part[direction], kind).reshape(-1) for part in (weight, recurrence)]
        biases += [_in_order(bias[direction, :half], kind), _in_order(bias[direction, half:], kind)]
    is_backward = call.choice("direction", *_DIRECTIONS) == "reverse"
    if is_backward:
        x = _reversed(x, lengths)
    found = npx.rnn(
        x,
        np.concatenate([*vectors, *biases]),
        state,
        cell if kind == "LSTM" else None,
        None if lengths is None else lengths,
        mode=mode,
        state_size=hidden,
        num_layers=1,
        bidirectional=num_directions == 2,
        state_outputs=True,
        use_sequence_length=lengths is not None,
    )
    y, states = found[0], list(found[1:])
    if is_backward:
        y = _reversed(y, lengths)
    y = np.transpose(y.reshape((*y.shape[:2], num_directions, hidden)), (0, 2, 1, 3))
    return y, states


def _reversed(x: Any, lengths: Any) -> Any:
    """Sequences from their ends to their starts, (time, n, ...)."""
    if lengths is None:
        return np.flip(x, 0)
    return npx.sequence_reverse(x, lengths, use_sequence_length=True)


def _activations(call: Call, num_directions: int) -> list[list[Callable[[Any], Any]]]:
    """For each direction its functions, with the numbers that belong to them."""
    defaults = _DEFAULT_ACTIVATIONS[call.op_type]
    names = [name.lower() for name in call["activations"] or defaults * num_directions]
    alphas, betas = iter(call["activation_alpha"] or ()), iter(call["activation_beta"] or ())
    functions = [_activation(call, name, alphas, betas) for name in names]
    each = len(defaults)
    return [functions[each * number : each * (number + 1)] for number in range(num_directions)]


def _activation(call: Call, name: str, alphas: Iterator[float], betas: Iterator[float]) -> Callable[[Any], Any]:
    if name == "affine":
        alpha, beta = next(alphas, 1.0), next(betas, 0.0)
        return lambda x: alpha * x + beta
    if name == "scaledtanh":
        alpha, beta = next(alphas, 1.0), next(betas, 1.0)
        return lambda x: alpha * np.tanh(beta * x)
    if name == "hardsigmoid":
        alpha, beta = next(alphas, 0.2), next(betas, 0.5)
        return lambda x: npx.hard_sigmoid(x, alpha=alpha, beta=beta)
    if name in ("elu", "leakyrelu", "thresholdedrelu"):
        alpha = next(alphas, 0.01 if name == "leakyrelu" else 1.0)
        if name == "thresholdedrelu":
            return lambda x: np.where(x > alpha, x, np.zeros_like(x))
        return lambda x: npx.leaky_relu(x, act_type=name.removesuffix("yrelu") + "y" * (name != "elu"), slope=alpha)
    plain: dict[str, Callable[[Any], Any]] = {
        "relu": npx.relu,
        "sigmoid": npx.sigmoid,
        "softplus": lambda x: softplus(call, x),
        "softsign": npx.softsign,
        "tanh": np.tanh,
    }
    if name not in plain:
        raise call.unsupported(f"there is no activation {name!r}")
    return plain[name]


def _by_steps(
    call: Call,
    x: Any,
    weight: Any,
    recurrence: Any,
    bias: Any,
    lengths: Any,
    state: Any,
    cell: Any,
    peephole: Any,
) -> tuple[Any, list[Any]]:
    num_directions, length = weight.shape[0], int(x.shape[0])
    step_of = {"LSTM": _lstm_step, "GRU": _gru_step, "RNN": _rnn_step}[call.op_type]
    outputs, last_states, last_cells = [], [], []
    for direction, functions in enumerate(_activations(call, num_directions)):
        is_backward = call.choice("direction", *_DIRECTIONS) == "reverse" or direction == 1
        items = _reversed(x, lengths) if is_backward else x
        h, c = state[direction], cell[direction]
        pieces = None if peephole is None else _gates(peephole[direction], 3, range(3))
        rows = []
        for step in range(length):
            parameters = (weight[direction], recurrence[direction], bias[direction])
            new_h, new_c = step_of(call, functions, items[step], h, c, parameters, pieces)
            if lengths is None:
                h, c, row = new_h, new_c, new_h
            else:
                is_inside = np.expand_dims(lengths > step, 1)
                h, c = np.where(is_inside, new_h, h), np.where(is_inside, new_c, c)
                row = np.where(is_inside, new_h, np.zeros_like(new_h))
            rows.append(row)
        y = np.stack(rows) if rows else np.zeros((0, *h.shape), dtype=dtype_name(h.dtype))
        outputs.append(_reversed(y, lengths) if is_backward else y)
        last_states.append(h)
        last_cells.append(c)
    return np.stack(outputs, axis=1), [np.stack(last_states), np.stack(last_cells)]


def _clipped(call: Call, x: Any) -> Any:
    bound = call["clip"]
    return x if bound is None else np.clip(x, -bound, bound)


def _rnn_step(call: Call, functions: Any, x: Any, h: Any, c: Any, parameters: Any, pieces: Any) -> tuple[Any, Any]:
    weight, recurrence, bias = parameters
    half = bias.shape[0] // 2
    total = np.matmul(x, weight.T) + np.matmul(h, recurrence.T) + bias[:half] + bias[half:]
    return functions[0](_clipped(call, total)), c


def _gru_step(call: Call, functions: Any, x: Any, h: Any, c: Any, parameters: Any, pieces: Any) -> tuple[Any, Any]:
    f, g = functions
    weight, recurrence, bias = parameters
    half = bias.shape[0] // 2
    from_input = [np.matmul(x, part.T) for part in _gates(weight, 3, range(3))]
    rows = _gates(recurrence, 3, range(3))
    input_bias, state_bias = _gates(bias[:half], 3, range(3)), _gates(bias[half:], 3, range(3))
    z, r = (
        f(_clipped(call, from_input[gate] + np.matmul(h, rows[gate].T) + input_bias[gate] + state_bias[gate]))
        for gate in (0, 1)
    )
    if call["linear_before_reset"]:
        recurrent_part = r * (np.matmul(h, rows[2].T) + state_bias[2])
    else:
        recurrent_part = np.matmul(r * h, rows[2].T) + state_bias[2]
    candidate = g(_clipped(call, from_input[2] + recurrent_part + input_bias[2]))
    return (1 - z) * candidate + z * h, c


def _lstm_step(call: Call, functions: Any, x: Any, h: Any, c: Any, parameters: Any, pieces: Any) -> tuple[Any, Any]:
    f, g, output_function = functions
    weight, recurrence, bias = parameters
    half = bias.shape[0] // 2
    total = np.matmul(x, weight.T) + np.matmul(h, recurrence.T) + bias[:half] + bias[half:]
    width = total.shape[1] // 4
    i, o, forget, new = (total[:, gate * width : (gate + 1) * width] for gate in range(4))
    if pieces is not None:
        i, forget = i + pieces[0] * c, forget + pieces[2] * c
    i = f(_clipped(call, i))
    forget = 1 - i if call["input_forget"] else f(_clipped(call, forget))
    c = forget * c + i * g(_clipped(call, new))
    if pieces is not None:
        o = o + pieces[1] * c
    return f(_clipped(call, o)) * output_function(c), c
