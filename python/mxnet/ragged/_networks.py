"""Layers of neural networks on ragged arrays, without padding."""

from __future__ import annotations

import math
from typing import Any

import numpy as onp

from mxnet import _core, autograd, error
from mxnet import numpy as np
from mxnet._core import ndarray
from mxnet.ragged._array import RaggedArray
from mxnet.ragged._outer import OuterAxisSegments
from mxnet.ragged._partition import Partition, _index

_op, _npx = _core.namespaces["op"], _core.namespaces["npx"]


def _refuse(name: str, **given: Any) -> None:
    """An error if arguments are given that ragged operands do not support."""
    for key, value in given.items():
        if value is not None and value is not False:
            raise error.UnsupportedError(f"{name}: ragged arrays take no `{key}`")


def matmul(a: RaggedArray, b: Any, out: Any = None, **other: Any) -> Any:
    """Products with a single matrix, with a matrix for each row, or between rows."""
    _refuse("matmul", out=out, **{k: v for k, v in other.items() if k not in ("casting", "order", "subok")})
    x = a.values
    if isinstance(b, RaggedArray):
        return _batched(a, b)
    w = b if isinstance(b, ndarray) else _core.asarray(b)
    if x.ndim == 1:
        if a.num_ragged == 1 and w.ndim == 2:
            raise error.ShapeError(
                f"matmul: the last axis of shape {a.shape} is ragged, so it has no one size to sum over"
            )
        raise error.ShapeError(f"matmul: shapes {a.shape} and {w.shape}")
    if w.ndim <= 2 or x.ndim > 2:
        # A single matrix, or matrices that broadcast to the uniform axes.
        if w.ndim > x.ndim:
            raise error.ShapeError(f"matmul: shapes {a.shape} and {w.shape}")
        return a.with_values(np.matmul(x, w))
    if w.ndim != 3 or a.num_ragged != 1 or w.shape[0] != a.shape[0]:
        raise error.ShapeError(
            f"matmul: a ragged array of shape {a.shape} is multiplied by a matrix (k, m), or by one for each row "
            f"({len(a)}, k, m); found {w.shape}"
        )
    return a.with_values(_op["ragged_matmul"](x, w, a._partitions[0].offsets))


def _batched(a: RaggedArray, b: RaggedArray) -> Any:
    """A product for each element, of the matrices in the last two axes."""
    if a.values.ndim > 2 and b.values.ndim > 2:
        a._check_same(b, "matmul")
        return a.with_values(np.matmul(a.values, b.values))
    raise error.UnsupportedError(
        f"matmul: no product of shapes {a.shape} and {b.shape}: the axis that is summed over must be uniform; "
        f"ragged.segment_outer sums over the ragged axis, npx.scaled_dot_product_attention multiplies queries and keys"
    )


def _axis_of(data: RaggedArray, axis: int, name: str) -> tuple[int, bool]:
    """The axis of the values, and whether the axis is the innermost ragged one."""
    at = data._axis(axis, name)
    if at > data.num_ragged:
        return at - data.num_ragged, False
    if at != data.num_ragged:
        raise error.UnsupportedError(f"{name}: over axis {axis} of shape {data.shape} there is no operator")
    return 0, True


def _softmax(name: str, data: RaggedArray, axis: int, temperature: Any, dtype: Any) -> Any:
    at = data._axis(axis, name)
    if at > data.num_ragged:
        values = _npx[name](data.values, axis=at - data.num_ragged, temperature=temperature, dtype=dtype)
        return data.with_values(values)
    x = data.values
    if temperature is not None:
        if not temperature:
            raise error.ValueError(f"{name}: `temperature` is {temperature}")
        x = x / temperature
    if at == data.num_ragged:
        y = _op[f"ragged_{name}"](x, data._partitions[-1].offsets)
    else:
        across = OuterAxisSegments(data, at)
        y = across.back(_op[f"ragged_{name}"](across.together(x), across.offsets))
    return data.with_values(y if dtype is None else y.astype(dtype))


def softmax(
    data: RaggedArray,
    length: Any = None,
    axis: int = -1,
    temperature: Any = None,
    use_length: bool = False,
    dtype: Any = None,
) -> Any:
    """Softmax along an axis; an integer for `length` is the axis."""
    if isinstance(length, int):
        length, axis = None, length
    _refuse("softmax", length=length, use_length=use_length)
    return _softmax("softmax", data, axis, temperature, dtype)


def log_softmax(
    data: RaggedArray,
    axis: int = -1,
    length: Any = None,
    temperature: Any = None,
    use_length: bool = False,
    dtype: Any = None,
) -> Any:
    """Logarithm of softmax along an axis."""
    _refuse("log_softmax", length=length, use_length=use_length)
    return _softmax("log_softmax", data, axis, temperature, dtype)


def layer_norm(data: RaggedArray, gamma: Any, beta: Any, axis: int = -1, **rest: Any) -> Any:
    """Normalisation along a uniform axis."""
    at, is_ragged = _axis_of(data, axis, "layer_norm")
    if is_ragged:
        raise error.UnsupportedError(f"layer_norm: axis {axis} of shape {data.shape} is ragged; gamma has one size")
    found = _npx["layer_norm"](data.values, gamma, beta, axis=at, **rest)
    if isinstance(found, tuple):
        return tuple(data.with_values(x) for x in found)
    return data.with_values(found)


def rms_norm(data: RaggedArray, gamma: Any, axis: int = -1, **rest: Any) -> Any:
    """Division by the root of the mean square along a uniform axis."""
    at, is_ragged = _axis_of(data, axis, "rms_norm")
    if is_ragged:
        raise error.UnsupportedError(f"rms_norm: axis {axis} of shape {data.shape} is ragged; gamma has one size")
    return data.with_values(_npx["rms_norm"](data.values, gamma, axis=at, **rest))


def fully_connected(
    x: RaggedArray,
    weight: Any,
    bias: Any = None,
    num_hidden: int | None = None,
    no_bias: bool = True,
    flatten: bool = True,
) -> Any:
    """An affine map of the last axis."""
    if x.values.ndim < 2:
        raise error.ShapeError(f"fully_connected: the last axis of shape {x.shape} is ragged, it must be uniform")
    if flatten:
        raise error.ValueError(
            f"fully_connected: rows of shape {x.shape} have different lengths and cannot be joined to one; "
            f"pass flatten=False"
        )
    y = _npx["fully_connected"](x.values, weight, bias, num_hidden=num_hidden, no_bias=no_bias, flatten=False)
    return x.with_values(y)


def embedding(data: RaggedArray, weight: Any, *rest: Any, **named: Any) -> Any:
    """Looks up a table row for each element."""
    return data.with_values(_npx["embedding"](data.values, weight, *rest, **named))


def attention(q: RaggedArray, k: RaggedArray, v: RaggedArray, mask: Any = None, is_causal: bool = False) -> Any:
    """Attention within each row: (n, length, d), or (n, length, heads, d)."""
    name = "scaled_dot_product_attention"
    for x in (q, k, v):
        if x.num_ragged != 1 or x.values.ndim not in (2, 3) or x.values.ndim != q.values.ndim:
            raise error.ShapeError(
                f"{name}: ragged operands have shapes (n, length, d) or (n, length, heads, d), "
                f"found {q.shape}, {k.shape} and {v.shape}"
            )
    k._check_same(v, name)
    if len(q) != len(k):
        raise error.ShapeError(f"{name}: {len(q)} sequences of queries and {len(k)} of keys")
    has_heads = q.values.ndim == 3
    parts = [x.values if has_heads else np.expand_dims(x.values, 1) for x in (q, k, v)]
    scale = 1 / math.sqrt(max(parts[0].shape[-1], 1))
    queries, keys = q._partitions[0], k._partitions[0]
    if q.device.device_type == "cpu":
        out = _op["ragged_attention"](*parts, queries.offsets, keys.offsets, bool(is_causal), scale)[0]
    else:
        out = _sparse_attention(parts, queries, keys, bool(is_causal), scale)
    return q.with_values(out if has_heads else out.reshape((out.shape[0], out.shape[2])))


def _sparse_attention(
    parts: list[ndarray], queries: Partition, keys: Partition, is_causal: bool, scale: float
) -> ndarray:
    """Attention as products at the places of a sparse matrix, on devices without a kernel for it.

    Each pair of a query and a key that it sees is an element: memory for as many scores for each head.
    """
    q, k, v = parts
    seen = onp.repeat(keys.lengths, queries.lengths)
    if is_causal:
        seen = onp.minimum(seen, queries.positions + 1)
    indptr = onp.concatenate([[0], onp.cumsum(seen)])
    first = onp.repeat(onp.repeat(keys.host[:-1], queries.lengths) - indptr[:-1], seen)
    indices = _index(first + onp.arange(indptr[-1])).to_device(q.device)
    offsets = _index(indptr).to_device(q.device)
    scores = _op["csr_sampled_dense"](q * scale, k, indices, offsets, True)
    found: ndarray = _op["csr_matmul_dense"](_op["ragged_softmax"](scores, offsets), indices, offsets, v)
    return found


def _one(x: Any, name: str, what: str) -> int:
    sizes = tuple(x) if isinstance(x, tuple | list) else (x,)
    if len(sizes) != 1:
        raise error.ValueError(f"{name}: `{what}` must have one entry for ragged arrays, found {sizes}")
    return int(sizes[0])


def convolution(
    data: RaggedArray,
    weight: Any,
    bias: Any = None,
    kernel: Any = None,
    stride: Any = None,
    dilate: Any = None,
    pad: Any = None,
    num_filter: int | None = None,
    num_group: int = 1,
    no_bias: bool = False,
    layout: str | None = None,
    **other: Any,
) -> Any:
    """Convolution of (n, length, channels) along the ragged axis; `layout` describes the weight."""
    name = "convolution"
    if data.num_ragged != 1 or data.values.ndim != 2:
        raise error.ShapeError(f"{name}: ragged data have shape (n, length, channels), found {data.shape}")
    if layout not in (None, "NCW", "NWC"):
        raise error.ValueError(f"{name}: ragged data are convolved with the layouts 'NCW' and 'NWC', found {layout!r}")
    if layout != "NWC" and weight.ndim == 3:
        weight = np.swapaxes(weight, 1, 2)
    filters, size, per_group = weight.shape if weight.ndim == 3 else (0, 0, 0)
    channels = data.values.shape[1]
    if weight.ndim != 3 or per_group * num_group != channels or filters % num_group:
        raise error.ShapeError(
            f"{name}: weight of {filters} filters of {per_group} channels for {channels} channels in {num_group} groups"
        )
    if kernel and _one(kernel, name, "kernel") != size:
        raise error.ValueError(f"{name}: `kernel` is {kernel}, the weight has {size}")
    if num_filter is not None and num_filter != filters:
        raise error.ValueError(f"{name}: `num_filter` is {num_filter}, the weight has {filters}")
    step = _one(stride or 1, name, "stride")
    apart = _one(dilate or 1, name, "dilate")
    border = _one(pad or 0, name, "pad")
    partition = data._partitions[0]
    result, rows = _windows(partition, size, step, apart, border)
    x = data.values
    # The row after the last one is zero.
    zero = np.zeros((1, channels), dtype=x.dtype, device=x.device)
    windows = np.take(np.concatenate([x, zero]), rows, axis=0)
    parts = []
    for group in range(num_group):
        own = windows[:, :, group * per_group : (group + 1) * per_group].reshape((result.total, size * per_group))
        share = filters // num_group
        matrix = weight[group * share : (group + 1) * share].reshape((share, size * per_group))
        parts.append(np.matmul(own, matrix.T))
    y = parts[0] if num_group == 1 else np.concatenate(parts, axis=1)
    if bias is not None and not no_bias:
        y = y + bias
    return RaggedArray(y, result)


def pooling(
    data: RaggedArray,
    kernel: Any = None,
    pool_type: str = "max",
    global_pool: bool = False,
    cudnn_off: bool = False,
    pooling_convention: str = "valid",
    stride: Any = None,
    pad: Any = None,
    p_value: Any = None,
    count_include_pad: bool = True,
    layout: str | None = None,
) -> Any:
    """Extreme, sum or mean of windows of (n, length, channels) along the ragged axis, or of whole rows."""
    name = "pooling"
    if data.num_ragged != 1 or data.values.ndim != 2:
        raise error.ShapeError(f"{name}: ragged data have shape (n, length, channels), found {data.shape}")
    if pool_type not in ("max", "avg", "sum"):
        raise error.UnsupportedError(
            f"{name}: `pool_type` of ragged arrays is 'max', 'avg' or 'sum', found {pool_type!r}"
        )
    if global_pool:
        reduce: Any = {"max": np.max, "avg": np.mean, "sum": np.sum}[pool_type]
        return np.expand_dims(reduce(data, axis=1), 1)
    if pooling_convention != "valid":
        raise error.UnsupportedError(f"{name}: ragged arrays have windows that lie in the rows, 'valid'")
    if kernel is None:
        raise error.ValueError(f"{name}: `kernel` is needed unless `global_pool` is True")
    size, border = _one(kernel, name, "kernel"), _one(pad or 0, name, "pad")
    step = _one(1 if stride is None else stride, name, "stride")
    if size < 1 or step < 1 or border < 0:
        raise error.ValueError(
            f"{name}: `kernel` and `stride` are positive, `pad` is not negative, found {size}, {step} and {border}"
        )
    result, rows = _windows(data._partitions[0], size, step, 1, border)
    x = data.values
    # The row after the last one stands for those outside.
    least = float("-inf") if x.dtype.kind in "fV" else np.iinfo(x.dtype).min
    outside = np.full((1, x.shape[1]), least if pool_type == "max" else 0, dtype=x.dtype, device=x.device)
    windows = np.take(np.concatenate([x, outside]), rows, axis=0)
    if pool_type == "max":
        return RaggedArray(np.max(windows, axis=1), result)
    total = np.sum(windows, axis=1, dtype=x.dtype)
    if pool_type == "sum":
        return RaggedArray(total, result)
    if count_include_pad:
        return RaggedArray(total / size, result)
    inside = np.sum(rows < x.shape[0], axis=1, keepdims=True).astype(total.dtype)
    return RaggedArray(total / np.maximum(inside, 1), result)


def sparse_cross_entropy(data: RaggedArray, label: RaggedArray, axis: int = -1) -> Any:
    """Cross entropy of each element with the class of its label."""
    at, is_ragged = _axis_of(data, axis, "sparse_cross_entropy")
    if is_ragged:
        raise error.UnsupportedError(f"sparse_cross_entropy: the classes of shape {data.shape} are along a ragged axis")
    data._check_same(label, "sparse_cross_entropy")
    return data.with_values(_op["sparse_cross_entropy"](data.values, label.values, at))


def _windows(partition: Partition, size: int, step: int, apart: int, border: int) -> tuple[Partition, ndarray]:
    """Segments of a convolution's results, and the row that each tap of each result reads: `total` outside."""
    reach = apart * (size - 1) + 1
    if partition.is_traced:
        if step != 1 or 2 * border != reach - 1:
            raise error.UnsupportedError(
                "windows: in a graph whose lengths of rows are not known rows keep them: stride 1 and padding "
                f"dilate * (kernel - 1) / 2, found kernel {size}, stride {step}, dilate {apart} and padding {border}"
            )
        taps = np.expand_dims(partition.row_positions - border, 1) + np.arange(size, dtype="int64") * apart
        sizes = np.expand_dims(partition.expand(partition.sizes), 1)
        inside = np.logical_and(taps >= 0, taps < sizes)
        return partition, np.where(inside, taps + np.expand_dims(partition.row_starts, 1), partition.total)
    counts = onp.maximum((partition.lengths + 2 * border - reach) // step + 1, 0)
    result = Partition.of_lengths(counts)
    taps = result.positions[:, None] * step - border + onp.arange(size) * apart
    inside = (taps >= 0) & (taps < onp.repeat(partition.lengths, counts)[:, None])
    return result, _index(onp.where(inside, taps + onp.repeat(partition.host[:-1], counts)[:, None], partition.total))


class _Packed:
    """Packed sequences, longest first, step by step: step t has a row for each sequence longer than t."""

    def __init__(self, partition: Partition) -> None:
        self.order = onp.argsort(-partition.lengths, kind="stable")
        self.rank = onp.empty_like(self.order)
        self.rank[self.order] = onp.arange(len(self.order))
        lengths = partition.lengths[self.order]
        self.counts = onp.searchsorted(-lengths, -onp.arange(partition.longest), side="left")
        starts = onp.concatenate([[0], onp.cumsum(self.counts)])
        # The packed row of each row of the values, and the inverse permutation.
        self.to_packed = onp.repeat(self.rank, partition.lengths) + starts[partition.positions]
        self.from_values = onp.empty_like(self.to_packed)
        self.from_values[self.to_packed] = onp.arange(partition.total)
        # Runs of steps with the same number of sequences: (first row, steps, sequences).
        edges = [0, *(onp.flatnonzero(onp.diff(self.counts)) + 1), len(self.counts)] if len(self.counts) else []
        self.stretches = [
            (int(starts[a]), b - a, int(self.counts[a])) for a, b in zip(edges[:-1], edges[1:], strict=True)
        ]


def _layer(packed: _Packed, x: ndarray, weights: list[ndarray], h: ndarray, c: ndarray | None, mode: str) -> Any:
    """One layer in one direction on packed rows: results, last states and cell states, longest sequence first."""
    results, last_h, last_c = [], [], []
    active = h.shape[0]
    for first, steps, count in [*packed.stretches, (0, 0, 0)]:
        if count < active:
            last_h.append(h[count:])
            if c is not None:
                last_c.append(c[count:])
            h, c, active = h[:count], None if c is None else c[:count], count
        if not steps:
            break
        block = x[first : first + steps * count].reshape((steps, count, x.shape[1]))
        found = _op["rnn_layer"](block, *weights, h, c, mode=mode)
        y, h = found[0], found[1]
        c = None if c is None else found[2]
        results.append(y.reshape((steps * count, y.shape[2])))
    y = np.concatenate(results) if results else np.zeros((0, h.shape[1]), dtype=x.dtype, device=x.device)
    ends_c = np.concatenate(last_c[::-1]) if last_c else None
    return y, np.concatenate(last_h[::-1]) if last_h else h, ends_c


def rnn(
    data: RaggedArray,
    parameters: ndarray,
    state: ndarray,
    state_cell: ndarray | None = None,
    sequence_length: Any = None,
    mode: Any = None,
    state_size: int | None = None,
    num_layers: int | None = None,
    bidirectional: bool = False,
    state_outputs: bool = False,
    p: float = 0.0,
    use_sequence_length: bool = False,
    **other: Any,
) -> Any:
    """Recurrent layers over rows (n, length, channels). A step has a row for each sequence that has not ended."""
    _refuse("rnn", sequence_length=sequence_length, use_sequence_length=use_sequence_length, **other)
    if data.num_ragged != 1 or data.values.ndim != 2:
        raise error.ShapeError(f"rnn: ragged data have shape (n, length, channels), found {data.shape}")
    if mode is None or state_size is None or num_layers is None:
        raise error.ValueError("rnn: `mode`, `state_size` and `num_layers` must be given")
    gates = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}[mode]
    directions = 1 + bool(bidirectional)
    shape = (num_layers * directions, data.shape[0], state_size)
    for what, given in (("state", state), ("state_cell", state_cell)):
        if given is not None and tuple(given.shape) != shape:
            raise error.ShapeError(f"rnn: `{what}` has shape {given.shape}, needs {shape}")
    if (mode == "lstm") != (state_cell is not None):
        raise error.ValueError("rnn: an LSTM needs a `state_cell`, others have none")
    rows = gates * state_size
    sizes: list[int] = []
    for layer in range(num_layers):
        width = data.values.shape[1] if layer == 0 else directions * state_size
        sizes += [rows * width, rows * state_size] * directions
    sizes += [rows] * (2 * num_layers * directions)
    if tuple(parameters.shape) != (sum(sizes),):
        raise error.ShapeError(f"rnn: `parameters` has shape {parameters.shape}, these layers have {sum(sizes)}")
    partition = data._partitions[0]
    if partition.is_traced:
        # The lengths are known only when the graph runs, so steps cannot be packed: rows are padded.
        padded = np.swapaxes(data.to_dense(), 0, 1)
        shared = {"mode": mode, "state_size": state_size, "num_layers": num_layers, "bidirectional": bidirectional}
        every, *ends = _npx["rnn"](
            padded,
            parameters,
            state,
            state_cell,
            partition.sizes,
            p=p,
            state_outputs=True,
            use_sequence_length=True,
            **shared,
        )
        y = _op["ragged_unpad"](np.swapaxes(every, 0, 1), partition.offsets, partition.total)
        return (data.with_values(y), *ends) if state_outputs else data.with_values(y)
    parts = _op["split_vector"](parameters, tuple(sizes))
    matrices, biases = parts[: 2 * num_layers * directions], parts[2 * num_layers * directions :]
    packed = _Packed(partition)
    order, rank = _index(packed.order), _index(packed.rank)
    back = partition.mirrored
    x = data.values
    hs, cs = [], []
    for layer in range(num_layers):
        if layer and p > 0 and autograd.is_training():
            x = _npx["dropout"](x, p)
        ys = []
        for direction in range(directions):
            at = layer * directions + direction
            # The backward direction reads each sequence from its end.
            source = packed.from_values if not direction else back[packed.from_values]
            weights = [
                matrices[2 * at].reshape((rows, x.shape[1])),
                matrices[2 * at + 1].reshape((rows, state_size)),
                biases[2 * at],
                biases[2 * at + 1],
            ]
            h0 = np.take(state[at], order, axis=0)
            c0 = None if state_cell is None else np.take(state_cell[at], order, axis=0)
            y, h, c = _layer(packed, np.take(x, _index(source), axis=0), weights, h0, c0, mode)
            target = packed.to_packed if not direction else packed.to_packed[back]
            ys.append(np.take(y, _index(target), axis=0))
            hs.append(np.take(h, rank, axis=0))
            if c is not None:
                cs.append(np.take(c, rank, axis=0))
        x = ys[0] if directions == 1 else np.concatenate(ys, axis=1)
    y = data.with_values(x)
    if not state_outputs:
        return y
    return (y, np.stack(hs), np.stack(cs)) if cs else (y, np.stack(hs))


def ctc_loss(
    data: Any,
    label: Any,
    data_lengths: Any = None,
    label_lengths: Any = None,
    use_data_lengths: bool = False,
    use_label_lengths: bool = False,
    blank_label: str = "first",
) -> Any:
    """CTC loss of frames (n, length, classes) and labels (n, length). Labels are padded, frames are not."""
    from mxnet import numpy_extension as npx
    from mxnet.numpy_extension import _ctc

    if isinstance(label, RaggedArray):
        _refuse("ctc_loss", label_lengths=label_lengths, use_label_lengths=use_label_lengths)
        label_lengths, use_label_lengths = label.lengths(), True
        label = label.to_dense()
    if isinstance(data, RaggedArray):
        _refuse("ctc_loss", data_lengths=data_lengths, use_data_lengths=use_data_lengths)
        if data.num_ragged != 1:
            raise error.ShapeError(f"ctc_loss: `data` must have one ragged axis, found shape {data.shape}")
        partition = data._partitions[0]
        if use_label_lengths and label_lengths is None:
            raise ValueError("ctc_loss: `use_label_lengths` needs `label_lengths`")
        given = label_lengths if use_label_lengths else None
        return _ctc.of_rows(data.values, partition.row_owners, partition.offsets, label, given, blank_label)
    found: ndarray = npx.ctc_loss(
        data, label, data_lengths, label_lengths, use_data_lengths, use_label_lengths, blank_label
    )
    return found
