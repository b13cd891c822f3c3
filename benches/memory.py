"""Peak memory of training steps: eager, as one compiled function, and with half of what that needs as its budget.

Counted are all bytes that the allocator gave out beyond what is there before the step, and the arena of the compiled
step: in both the working memory of kernels is included.
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy
from compiled import lenet, lstm, mlp, our_step, resnet, transformer

import mxnet as mx
from mxnet import _core, np


def peak(call: Callable[[], Any]) -> int:
    for _ in range(2):
        call()
    mx.waitall()
    before = _core.memory_stats()["in_use_bytes"]
    _core.reset_memory_peak()
    call()
    mx.waitall()
    return _core.memory_stats()["peak_bytes"] - before


def main() -> None:
    generator = numpy.random.default_rng(0)
    print(f"{'MiB':<14}{'eager':>9}{'compiled':>9}{'ratio':>7}{'planned':>9}{'budget':>9}{'ratio':>7}")
    for build in (mlp, lenet, lstm, transformer, resnet):
        if sys.argv[1:] and build.__name__ not in sys.argv[1:]:
            continue
        net, _, shape = build()
        x = np.array(generator.normal(0, 1, shape).astype("float32"))
        labels = np.array(generator.integers(0, 10, shape[0]))
        net.initialize(mx.init.Xavier())
        net(x)
        step = our_step(net, x, labels)
        mx.config.engine_mode = "sync"
        eager = peak(lambda step=step, x=x, labels=labels: step(x, labels))
        compiled = mx.jit(step)
        whole = peak(lambda step=compiled, x=x, labels=labels: step(x, labels))
        planned = compiled.graphs[-1].planned_bytes[0]
        # The graph owns its arena, so those bytes are in use before the step, too.
        whole += compiled.trace_report()[-1]["arena_bytes"]
        least = planned
        for part in (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3):
            bounded = mx.jit(step, memory_budget=int(planned * part))
            try:
                bounded(x, labels)
            except ValueError:
                break
            least = bounded.graphs[-1].planned_bytes[0]
        cells = [eager / 2**20, whole / 2**20, whole / eager, planned / 2**20, least / 2**20, least / planned]
        print(f"{build.__name__:<14}" + "".join(f"{n:>{w}.2f}" for n, w in zip(cells, (9, 9, 7, 9, 9, 7), strict=True)))


if __name__ == "__main__":
    main()
