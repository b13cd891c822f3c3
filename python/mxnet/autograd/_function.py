"""Differentiable functions whose gradient is written in Python."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from mxnet import _core
from mxnet._core import ndarray
from mxnet.autograd._recording import is_recording, is_training, pause
from mxnet.error import AutogradError

__all__ = ["Function"]


class Function:
    """A differentiable function written in Python.

    Subclasses define `forward` and `backward`; calling the instance runs `forward` unrecorded and records the whole as
    one operation. An instance is called once.

    Notes
    -----
    `backward` runs recorded if the gradient's own gradient is asked for (``create_graph=True``): what it computes from
    the inputs, the outputs and the gradients of the outputs by operators is differentiated further.

    What an instance keeps lives as long as the graph. Results may be kept, too: as attributes, in `save_for_backward`,
    and those that `forward` returns anywhere. Results of the call that are put into a container of the instance
    afterwards hold the graph, which holds the instance: such a cycle ends only with a backward pass.

    Examples
    --------
    >>> import mxnet as mx
    >>> class Square(mx.autograd.Function):
    ...     def forward(self, x):
    ...         self.save_for_backward(x)
    ...         return x * x
    ...     def backward(self, dy):
    ...         (x,) = self.saved_tensors
    ...         return 2 * x * dy
    """

    _used = False
    _saved: tuple[Any, ...] = ()
    _versions: tuple[int | None, ...] = ()
    _constants: tuple[Any, ...] = ()
    _number: int | None = None  # of the recorded call
    _results: list[Any]  # weak references to what `forward` returned

    def save_for_backward(self, *args: Any) -> None:
        """Keep values that `backward` finds in `saved_tensors`.

        Parameters
        ----------
        *args : object
            Usually arrays: inputs, results or others.
        """
        self._saved = args
        self._versions = tuple(_core.version_of(x) if isinstance(x, ndarray) else None for x in args)

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The values that `save_for_backward` was given.

        Raises
        ------
        AutogradError
            If an array among them was overwritten in place since.
        """
        for i, (x, version) in enumerate(zip(self._saved, self._versions, strict=True)):
            if version is not None and _core.version_of(x) != version:
                raise AutogradError(
                    f"{type(self).__name__}: saved array {i} was overwritten in place since `save_for_backward`\n"
                    "  hint: copy the array before changing it, or compute out of place"
                )
        return self._saved

    def mark_non_differentiable(self, *outputs: ndarray) -> None:
        """Say which outputs are constants; to be called in `forward`.

        Integers and truth values are so without being named.

        Parameters
        ----------
        *outputs : ndarray
            Arrays that `forward` returns. `backward` gets zeros for them.
        """
        self._constants = outputs

    def __call__(self, *inputs: ndarray) -> Any:
        """Run `forward` on arrays and record it.

        Parameters
        ----------
        *inputs : ndarray

        Returns
        -------
        ndarray or tuple of ndarray
            What `forward` returns.

        Raises
        ------
        RuntimeError
            If the instance was called before: the values saved by the first call would be lost.
        TypeError
            If an input, or what `forward` returns, is no array.
        ValueError
            If an array marked as not differentiable is none of the outputs.
        """
        name = type(self).__name__
        if self._used:
            raise RuntimeError(f"{name} was called before: make one instance per call")
        self._used = True
        for i, x in enumerate(inputs):
            if not isinstance(x, ndarray):
                raise TypeError(f"{name}: input {i} must be an ndarray, found '{type(x).__name__}'")
        with pause(train_mode=is_training()):
            outputs = self.forward(*inputs)
        is_one = isinstance(outputs, ndarray)
        results = self._as_arrays("forward", [outputs] if is_one else outputs)
        constants = [i for i, y in enumerate(results) if any(y is c for c in self._constants)]
        if len(constants) < len({id(c) for c in self._constants}):
            raise ValueError(f"{name}: `mark_non_differentiable` was given an array that `forward` does not return")
        self._constants = ()
        if is_recording():
            results = self._record(inputs, results, constants)
        return results[0] if is_one else tuple(results)

    def _record(self, inputs: tuple[ndarray, ...], results: list[ndarray], constants: list[int]) -> list[ndarray]:
        # While `backward` runs, the arrays that `forward` returned are outputs of the recorded call; other arrays are
        # unchanged.
        own = [y if _core.tape_entry(y) is None and not any(y is x for x in inputs) else y.detach() for y in results]
        self._results = [weakref.ref(y) for y in own]
        backward = self._call_backward(len(inputs))
        name = type(self).__name__
        recorded: list[ndarray] = _core.custom_function(name, list(inputs), own, backward, constants, self._results)
        self._number = next((entry[0] for entry in map(_core.tape_entry, recorded) if entry), None)
        return recorded

    def __setattr__(self, name: str, value: Any) -> None:
        # A result refers to the recorded call, which refers to the instance. So the instance stores the array without
        # the call.
        if self._number is not None and isinstance(value, ndarray):
            entry = _core.tape_entry(value)
            if entry is not None and entry[0] == self._number:
                kept = self._results[entry[1]]()
                if kept is None:
                    kept = value.detach()
                    self._results[entry[1]] = weakref.ref(kept)
                value = kept
        object.__setattr__(self, name, value)

    def _as_arrays(self, method: str, values: Any) -> list[ndarray]:
        name = type(self).__name__
        if not isinstance(values, (list, tuple)):
            raise TypeError(f"{name}.{method} must return ndarrays, found '{type(values).__name__}'")
        for i, y in enumerate(values):
            if not isinstance(y, ndarray):
                raise TypeError(f"{name}.{method} must return ndarrays, found '{type(y).__name__}' at position {i}")
        return list(values)

    def _call_backward(self, num_inputs: int) -> Any:
        def run(*output_grads: ndarray) -> Sequence[ndarray | None]:
            name = type(self).__name__
            grads = self.backward(*output_grads)
            found = [grads] if isinstance(grads, ndarray) or grads is None else grads
            if not isinstance(found, (list, tuple)):
                raise TypeError(f"{name}.backward must return ndarrays or None, found '{type(found).__name__}'")
            if len(found) != num_inputs:
                raise ValueError(f"{name}.backward returned {len(found)} gradients for {num_inputs} inputs")
            for i, gradient in enumerate(found):
                if gradient is not None and not isinstance(gradient, ndarray):
                    raise TypeError(
                        f"{name}.backward must return ndarrays or None, found '{type(gradient).__name__}' for input {i}"
                    )
            return found

        return run

    def forward(self, *inputs: Any) -> Any:
        """Compute the outputs; to be defined by the subclass.

        Parameters
        ----------
        *inputs : ndarray

        Returns
        -------
        ndarray or tuple of ndarray
        """
        raise NotImplementedError(f"{type(self).__name__} does not define forward")

    def backward(self, *output_grads: Any) -> Any:
        """Gradients of the inputs; to be defined by the subclass.

        Parameters
        ----------
        *output_grads : ndarray
            One for each output, of its shape; zeros where no gradient arrives.

        Returns
        -------
        ndarray, None or tuple of these
            One for each input, of its shape; None for none.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define backward")
