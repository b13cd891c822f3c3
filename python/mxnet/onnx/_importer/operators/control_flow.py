"""Conditions and loops, whose bodies are graphs."""

from __future__ import annotations

from typing import Any

import numpy

from mxnet import _core
from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.onnx._importer.program import Scope
from mxnet.onnx._importer.table import Call, operator
from mxnet.onnx._importer.values import Value


def _is_known(value: Value) -> bool:
    """Whether the elements of a value can be read here; those of traced arguments cannot."""
    return value.is_static or not _core.is_abstract(value.array)


# A graph has a copy of the body for each step.
_MAX_TRACED_STEPS = 10_000


@operator("If", takes_values=True)
def condition(call: Call, outer: Scope, chosen: Value) -> list[Any]:
    then_branch, else_branch = call["then_branch"], call["else_branch"]
    if _is_known(chosen):
        branch = then_branch if bool(chosen.host.reshape(-1)[0]) else else_branch
        return list(branch.run([], outer))

    def arrays(branch: Any) -> list[Any]:
        return [value.array for value in branch.run([], outer)]

    found = npx.cond(chosen.array, lambda: arrays(then_branch), lambda: arrays(else_branch), [], name=call.label)
    return [Value(array) for array in found]


@operator("Loop", takes_values=True)
def loop(call: Call, outer: Scope, count: Value | None, goes_on: Value | None, *states: Value) -> list[Any]:
    """Runs the body up to `count` times, as long as its first result is true."""
    body = call["body"]
    if count is not None and not _is_known(count):
        raise call.unsupported("how often the loop runs depends on arguments of the network, which a trace cannot know")
    limit = None if count is None else int(count.host.reshape(-1)[0])
    is_running = goes_on or Value(make_array=lambda: np.array(True), make_host=lambda: numpy.array(True))
    if not _is_known(is_running):
        return _traced_loop(call, outer, limit, is_running, states)
    num_states, carried = len(states), list(states)
    rows: list[list[Any]] = [[] for _ in range(len(body.outputs) - 1 - num_states)]
    step = 0
    while (limit is None or step < limit) and bool(is_running.host.reshape(-1)[0]):
        found = body.run([_number(step), is_running, *carried], outer)
        is_running, carried = found[0], found[1 : 1 + num_states]
        for row, value in zip(rows, found[1 + num_states :], strict=True):
            row.append(value.array)
        step += 1
        if not _is_known(is_running):
            if any(rows):
                break
            rest = None if limit is None else limit - step
            return _traced_loop(call, outer, rest, is_running, carried, first=step)
    if not _is_known(is_running):
        raise call.unsupported(
            "the number of rows of a result depends on arguments of the network, which a trace cannot know"
        )
    # Without a step the shape of a row is not known.
    return [*carried, *(Value(np.stack(row) if row else np.zeros((0,))) for row in rows)]


def _number(step: int) -> Value:
    return Value(
        make_array=lambda: np.array(step, dtype="int64"), make_host=lambda: numpy.array(step, dtype=numpy.int64)
    )


def _traced_loop(
    call: Call, outer: Scope, limit: int | None, is_running: Value, states: Any, first: int = 0
) -> list[Any]:
    """A loop whose condition is computed in a trace: all steps are computed, and those behind the end passed over."""
    body = call["body"]
    if limit is None or limit > _MAX_TRACED_STEPS or len(body.outputs) > 1 + len(states):
        raise call.unsupported(
            "the end of the loop depends on arguments of the network. A trace needs a largest number of steps up to "
            f"{_MAX_TRACED_STEPS}, found {limit}, and a body that returns no rows, found "
            f"{len(body.outputs) - 1 - len(states)} of them: such a network runs operator by operator, not hybridized"
        )

    def step(number: Any, goes_on: Any, *carried: Any) -> Any:
        found = body.run([Value(number), Value(goes_on), *map(Value, carried)], outer)
        return [], [number + 1, *(value.array for value in found)]

    start = [np.array(first, dtype="int64"), is_running.array, *(value.array for value in states)]
    _, found = npx.while_loop(lambda _, goes_on, *carried: goes_on, step, start, max_iterations=limit)
    return [Value(array) for array in found[2:]]


@operator("Scan", takes_values=True)
def scan(call: Call, outer: Scope, *values: Value | None) -> list[Any]:
    """Runs the body for the items of arrays along an axis."""
    body, num_items = call["body"], call["num_scan_inputs"]
    if call.opset >= 9:
        given = [value for value in values if value is not None]
        return _scanned(
            call, outer, given[: len(given) - num_items], [v.array for v in given[len(given) - num_items :]]
        )
    # Opset 8 has an axis of samples, each of which is scanned, and their lengths as the first input.
    if values[0] is not None:
        raise call.unsupported("sequences of different lengths (opset 8) are not supported: use opset 9 or later")
    given = [value for value in values[1:] if value is not None]
    num_states = len(given) - num_items
    samples = []
    for sample in range(int(given[0].shape[0])):
        parts = [value.array[sample] for value in given]
        found = _scanned(call, outer, list(map(Value, parts[:num_states])), parts[num_states:])
        samples.append([value.array for value in found])
    assert len(body.outputs) == len(samples[0]), "the body gives one value for each result"
    return [Value(np.stack(list(column))) for column in zip(*samples, strict=True)]


def _scanned(call: Call, outer: Scope, states: list[Value], items: list[Any]) -> list[Any]:
    body, num_states = call["body"], len(states)
    num_rows = len(body.outputs) - num_states
    backward = call["scan_input_directions"] or call["directions"] or [0] * len(items)
    axes = call["scan_input_axes"] or [0] * len(items)
    moved = [np.moveaxis(x, axis, 0) for x, axis in zip(items, axes, strict=True)]
    length = int(moved[0].shape[0])
    rows: list[list[Any]] = [[] for _ in range(num_rows)]
    for step in range(length):
        parts = [Value(x[length - 1 - step] if back else x[step]) for x, back in zip(moved, backward, strict=True)]
        found = body.run([*states, *parts], outer)
        states = found[:num_states]
        for row, value in zip(rows, found[num_states:], strict=True):
            row.append(value.array)
    output_axes = call["scan_output_axes"] or [0] * num_rows
    output_backward = call["scan_output_directions"] or [0] * num_rows
    results = [
        Value(np.stack(row[::-1] if back else row, axis=axis))
        for row, axis, back in zip(rows, output_axes, output_backward, strict=True)
    ]
    return [*states, *results]
