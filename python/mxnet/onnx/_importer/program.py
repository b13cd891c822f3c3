"""A graph of ONNX as a list of steps, which are run one after the other."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, MutableMapping, Sequence
from typing import Any

import numpy

from mxnet import numpy as np
from mxnet.device import Device, current_device
from mxnet.error import UnsupportedError
from mxnet.onnx._importer.table import Call, Operator
from mxnet.onnx._importer.values import Value, later

__all__ = ["ConstantArray", "ProgramStep", "OperatorStep", "Program", "Scope"]

Scope = ChainMap[str, Value]


class ConstantArray:
    """Numbers of a model that are no parameter. Each device that reads them gets a copy, once.

    Parameters
    ----------
    host : numpy.ndarray
    """

    def __init__(self, host: numpy.ndarray) -> None:
        self.host = host
        self._copies: dict[Device, Any] = {}

    def value(self) -> Value:
        """The constant as a value of a run."""
        return Value(make_array=self._array, make_host=lambda: self.host, operands=())

    def _array(self) -> Any:
        device = current_device()
        if device not in self._copies:
            self._copies[device] = np.array(self.host)
        return self._copies[device]

    def __getstate__(self) -> numpy.ndarray:
        return self.host

    def __setstate__(self, host: numpy.ndarray) -> None:
        self.__init__(host)  # type: ignore[misc]  # the arrays are made anew


class OperatorStep:
    """A node that a function of the table computes.

    Parameters
    ----------
    call : Call
    operator : Operator
    inputs, outputs : sequence of str
        Names of values; "" for those that are left out.
    """

    def __init__(self, call: Call, operator: Operator, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        self.call = call
        self.host_call = call.on_host() if operator.folds else None
        self.operator = operator
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.captured: frozenset[str] = frozenset()  # names that subgraphs read

    @property
    def label(self) -> str:
        return self.call.label

    def run(self, values: Sequence[Value | None], outer: Scope) -> Sequence[Value]:
        operator, call = self.operator, self.call
        if operator.takes_values:
            found: Sequence[Value] = operator.function(call, outer, *values)
            return found
        if self.host_call is not None and all(value is None or value.is_static for value in values):
            return later(
                len(self.outputs),
                lambda: self._results(call, operator.host, values),
                lambda: self._host_results(values),
                [value for value in values if value is not None],
            )
        return [Value(array) for array in self._results(call, operator.host, values)]

    def _host_results(self, values: Sequence[Value | None]) -> Sequence[Any]:
        with numpy.errstate(all="ignore"):  # operators of arrays are silent, too
            return self._results(self.host_call, (-1,), values)

    def _results(self, call: Any, host: tuple[int, ...], values: Sequence[Value | None]) -> Sequence[Any]:
        everything = -1 in host
        operands = [
            None if value is None else value.host if everything or index in host else value.array
            for index, value in enumerate(values)
        ]
        found = self.operator.function(call, *operands)
        return found if isinstance(found, tuple) else (found,)


class ProgramStep:
    """A node that calls a function of the model, or of ONNX.

    Parameters
    ----------
    label : str
    program : Program
    inputs, outputs : sequence of str
    """

    captured: frozenset[str] = frozenset()

    def __init__(self, label: str, program: Program, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        self.label = label
        self.program = program
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)

    def run(self, values: Sequence[Value | None], outer: Scope) -> Sequence[Value | None]:
        return self.program.run(values, ChainMap())


class Program:
    """Steps from inputs to outputs.

    Parameters
    ----------
    inputs, outputs : sequence of str
    constants : dict of str to ConstantArray
    steps : sequence of OperatorStep and ProgramStep
    """

    def __init__(
        self,
        inputs: Sequence[str],
        outputs: Sequence[str],
        constants: dict[str, ConstantArray],
        steps: Sequence[OperatorStep | ProgramStep],
    ) -> None:
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.constants = constants
        self.steps = tuple(steps)
        self._last_uses = _last_uses(self.steps, set(self.outputs))

    @property
    def captured(self) -> frozenset[str]:
        """Names of values that the program reads from around it."""
        known = {*self.inputs, *self.constants}
        found: set[str] = set()
        for step in self.steps:
            found.update(name for name in (*step.inputs, *step.captured) if name and name not in known)
            known.update(step.outputs)
        found.update(name for name in self.outputs if name and name not in known)
        return frozenset(found)

    def run(self, values: Sequence[Value | None], outer: Scope) -> list[Value | None]:
        """Run all steps.

        Parameters
        ----------
        values : sequence of Value or None
            One for each input; missing ones at the end are left out.
        outer : Scope
            Values around the program.

        Returns
        -------
        list of Value or None
            One for each output; None for outputs of functions that are left out.
        """
        scope: Scope = outer.new_child()
        own: MutableMapping[str, Value] = scope.maps[0]
        own.update((name, constant.value()) for name, constant in self.constants.items())
        own.update(
            (name, value) for name, value in zip(self.inputs, values, strict=False) if value is not None and name
        )
        for step, unused in zip(self.steps, self._last_uses, strict=True):
            operands = [scope.get(name) if name else None for name in step.inputs]
            try:
                results = step.run(operands, scope)
            except UnsupportedError as error:
                if str(error).startswith("node `"):
                    raise
                raise UnsupportedError(f"{step.label}: {error}") from error
            except Exception as error:
                error.add_note(f"in {step.label}")
                raise
            for name, result in zip(step.outputs, results, strict=False):
                if name and result is not None:
                    own[name] = result
            for name in unused:
                own.pop(name, None)
        return [scope.get(name) if name else None for name in self.outputs]


def _last_uses(steps: Sequence[Any], outputs: set[str]) -> list[tuple[str, ...]]:
    """For each step the names that no later step reads: what they hold can be freed."""
    seen = set(outputs)
    found: list[tuple[str, ...]] = []
    for step in reversed(steps):
        names: Iterable[str] = (*step.inputs, *step.captured, *step.outputs)
        found.append(tuple(name for name in dict.fromkeys(names) if name and name not in seen))
        seen.update(names)
    return found[::-1]
