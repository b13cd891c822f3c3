"""Ragged layers at log-normal lengths against `torch.nested` (jagged layout) and against padding.

256 sequences of mean length 64, 512 channels, 8 heads. The lengths are log-normal, so the longest sequence decides what
padding costs: the factor (padded elements / real elements) is printed first. The sides are ours without padding,
nested tensors of PyTorch, PyTorch padded and masked, and ours padded and masked; results are compared where they are
real. Words choose cases: `python benches/ragged.py linear softmax`.
"""

import math
import statistics
import sys
from collections.abc import Callable
from typing import Any

import numpy
from _sides import OURS, Case, nothing, settle, torch, turn

import mxnet as mx
from mxnet import np, npx, ragged

BATCH, MEAN, SIGMA = 256, 64, 0.6
CHANNELS, HEADS = 512, 8
RTOL = 1e-4  # float32 sums of some hundred products in another order
TURNS = 3  # attention of nested tensors on a CPU takes seconds, so the comparison is the only warm-up

PADDED = "mxnet padded"


def lengths() -> Any:
    """Log-normal lengths of the mean above."""
    rng = numpy.random.default_rng(0)
    return numpy.maximum(rng.lognormal(math.log(MEAN) - SIGMA**2 / 2, SIGMA, BATCH).round().astype(int), 1)


class Operands:
    """The same sequences on each side."""

    def __init__(self) -> None:
        self.lengths = lengths()
        rng = numpy.random.default_rng(1)
        self.values = rng.normal(size=(self.lengths.sum(), CHANNELS)).astype("float32")
        self.weight = (rng.normal(size=(CHANNELS, CHANNELS)) / math.sqrt(CHANNELS)).astype("float32")
        self.ragged = ragged.from_lengths(np.array(self.values), self.lengths)
        self.padded = self.ragged.to_dense()
        self.mask = np.array(numpy.arange(self.lengths.max()) < self.lengths[:, None])
        self.own_weight = np.array(self.weight)
        if torch is not None:
            offsets = torch.from_numpy(numpy.concatenate([[0], numpy.cumsum(self.lengths)]))
            self.nested = torch.nested.nested_tensor_from_jagged(torch.from_numpy(self.values), offsets)
            self.torch_padded = torch.from_numpy(self.padded.asnumpy())
            self.torch_mask = torch.from_numpy(self.mask.asnumpy())
            self.torch_weight = torch.from_numpy(self.weight)

    @property
    def factor(self) -> float:
        """Padded elements for each real one."""
        return float(self.lengths.max() * BATCH / self.lengths.sum())


def attention(x: Operands) -> dict[str, Case]:
    size = CHANNELS // HEADS
    r = x.ragged.reshape(BATCH, None, HEADS, size)
    dense = x.padded.reshape((BATCH, -1, HEADS, size)).swapaxes(1, 2).copy()
    mask = np.expand_dims(x.mask, (1, 2))
    attend = npx.scaled_dot_product_attention
    sides: dict[str, Case] = {OURS: lambda: attend(r, r, r), PADDED: lambda: attend(dense, dense, dense, mask)}
    if torch is not None:
        theirs = torch.nn.functional.scaled_dot_product_attention
        nested = x.nested.unflatten(-1, (HEADS, size)).transpose(1, 2)
        padded = x.torch_padded.unflatten(-1, (HEADS, size)).transpose(1, 2).contiguous()
        masked = x.torch_mask[:, None, None]
        sides["nested"] = lambda: theirs(nested, nested, nested)
        sides["padded"] = lambda: theirs(padded, padded, padded, attn_mask=masked)
    return sides


def linear(x: Operands) -> dict[str, Case]:
    sides: dict[str, Case] = {
        OURS: lambda: npx.fully_connected(x.ragged, x.own_weight, flatten=False),
        PADDED: lambda: npx.fully_connected(x.padded, x.own_weight, flatten=False),
    }
    if torch is not None:
        sides["nested"] = lambda: torch.nn.functional.linear(x.nested, x.torch_weight)
        sides["padded"] = lambda: torch.nn.functional.linear(x.torch_padded, x.torch_weight)
    return sides


def softmax(x: Operands) -> dict[str, Case]:
    sides: dict[str, Case] = {OURS: lambda: npx.softmax(x.ragged), PADDED: lambda: npx.softmax(x.padded)}
    if torch is not None:
        sides["nested"] = lambda: torch.softmax(x.nested, -1)
        sides["padded"] = lambda: torch.softmax(x.torch_padded, -1)
    return sides


def softmax_of_sequences(x: Operands) -> dict[str, Case]:
    """Along the ragged axis, which nested tensors do not have as a function of elements."""
    hidden = np.expand_dims(x.mask, 2)
    sides: dict[str, Case] = {
        OURS: lambda: npx.softmax(x.ragged, axis=1),
        PADDED: lambda: npx.masked_softmax(x.padded, hidden, axis=1),
    }
    if torch is not None:
        outside = ~x.torch_mask[:, :, None]
        sides["padded"] = lambda: torch.softmax(x.torch_padded.masked_fill(outside, -math.inf), 1)
    return sides


def real(result: Any, x: Operands) -> Any:
    """The real elements of a result, (total, channels)."""
    if isinstance(result, ragged.RaggedArray):
        return result.values.asnumpy().reshape(-1, CHANNELS)
    if torch is not None and isinstance(result, torch.Tensor):
        if result.is_nested:
            rows = [row.transpose(0, 1) if row.ndim == 3 else row for row in result.unbind()]
            return numpy.concatenate([row.reshape(-1, CHANNELS).numpy() for row in rows])
        result = result.numpy()
    dense = numpy.asarray(result)
    if dense.ndim == 4:
        dense = dense.swapaxes(1, 2).reshape(BATCH, -1, CHANNELS)
    return dense[x.mask.asnumpy()]


CASES: dict[str, Callable[[Operands], dict[str, Case]]] = {
    "attention": attention,
    "linear": linear,
    "softmax": softmax,
    "softmax along rows": softmax_of_sequences,
}


def main() -> None:
    x = Operands()
    print(f"{BATCH} sequences, mean {x.lengths.mean():.1f}, longest {x.lengths.max()}, padded / real {x.factor:.2f}")
    print(f"{'':20} {'ours ms':>9} {'nested':>8} {'padded':>8} {'our padding':>12} {'of padded / real':>17}")
    for name, make in CASES.items():
        if sys.argv[1:] and not any(word in name for word in sys.argv[1:]):
            continue
        sides = make(x)
        want = real(sides[OURS](), x)
        for side, case in sides.items():
            numpy.testing.assert_allclose(real(case(), x), want, rtol=RTOL, atol=RTOL, err_msg=f"{name}: {side}")
        mx.waitall()
        turns: dict[str, list[float]] = {side: [] for side in sides}
        for _ in range(TURNS):
            for side, case in sides.items():
                settle()
                wait = nothing if side in ("nested", "padded") else mx.waitall
                turns[side].append(turn(case, 1 if name == "attention" else 3, wait)[0])
        timed = {side: statistics.median(seconds) for side, seconds in turns.items()}
        ours = timed[OURS]
        ratios = [f"{timed[side] / ours:8.2f}" if side in timed else f"{'-':>8}" for side in ("nested", "padded")]
        own = timed[PADDED] / ours
        share = f"{own / x.factor:17.2f}"
        print(f"{name:20} {ours * 1e3:9.2f} {' '.join(ratios)} {own:12.2f} {share}")


if __name__ == "__main__":
    main()
