"""Derivatives of functions: Jacobians, Hessians, and their products with vectors."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy

from mxnet import _core
from mxnet import numpy as np
from mxnet._core import ndarray
from mxnet._nested import Nested, Structure, flatten, reorder, spread
from mxnet.autograd._recording import grad, is_recording, is_training, record

__all__ = ["hessian", "jacobian", "jvp", "vjp"]


def jacobian(function: Callable[..., Nested], inputs: Nested, create_graph: bool | None = None) -> Nested:
    """Derivatives of every element of a function's results with respect to every element of its inputs.

    Parameters
    ----------
    function : callable
        Made of operators of this library. Returns an array, or nested lists, tuples and dicts of arrays.
    inputs : ndarray or nested lists, tuples and dicts of ndarray
        Where the derivatives are taken; real floating-point dtypes. The items of a list or tuple are the arguments of
        the function, anything else is its only argument.
    create_graph : bool, optional
        Record the computation, for derivatives of derivatives. By default it is recorded if the caller records, so
        that these functions nest.

    Returns
    -------
    ndarray or nested lists, tuples and dicts of ndarray
        Nested as the results are, with the nesting of the inputs in place of each array. The derivative of a result of
        shape s with respect to an input of shape t has shape s + t and the input's dtype.

    Raises
    ------
    TypeError
        If something else than arrays is among inputs or results, or an array has no real floating-point dtype.

    Notes
    -----
    One pass back for each element of the results. Results that do not depend on an input have derivative 0.

    Examples
    --------
    >>> x = mx.np.array([1.0, 2.0])
    >>> mx.autograd.jacobian(lambda x: x * x, x)
    array([[2., 0.],
           [0., 4.]])
    >>> by_x, by_w = mx.autograd.jacobian(lambda x, w: (x * w).sum(), (x, mx.np.array([3.0, 5.0])))
    >>> by_x, by_w
    (array([3., 5.]), array([1., 2.]))
    """
    run = _Run("jacobian", function, inputs, create_graph)
    run.check_real()
    return run.outputs_structure.unflatten([run.inputs_structure.unflatten(run.rows(y)) for y in run.outputs])


def hessian(function: Callable[..., ndarray], inputs: Nested, create_graph: bool | None = None) -> Nested:
    """Second derivatives of a function with one value.

    Parameters
    ----------
    function : callable
        Made of operators of this library. Returns an array of one element.
    inputs : ndarray or nested lists, tuples and dicts of ndarray
        As for `jacobian`.
    create_graph : bool, optional
        As for `jacobian`.

    Returns
    -------
    ndarray or nested lists, tuples and dicts of ndarray
        Nested as the inputs are, with the nesting of the inputs in place of each array. The derivative with respect to
        inputs of shapes s and t has shape s + t.

    Raises
    ------
    TypeError
        As for `jacobian`.
    ValueError
        If the function does not return one array of one element.

    Examples
    --------
    >>> x = mx.np.array([1.0, 2.0])
    >>> mx.autograd.hessian(lambda x: x[0] ** 2 * x[1], x)
    array([[4., 2.],
           [2., 0.]])
    """

    def gradient(*arguments: Any) -> list[ndarray]:
        inside = _Run("hessian", function, structure.unflatten(arguments), True)
        inside.check_real()
        if inside.outputs_structure.kind is not ndarray or inside.outputs[0].size != 1:
            found = ", ".join(str(y.shape) for y in inside.outputs)
            raise ValueError(f"hessian: `function` must return one array of one element, found shapes {found}")
        return inside.pull_back([(inside.outputs[0], None)], True)

    arrays, structure = flatten("hessian", "inputs", inputs)
    outside = _Run("hessian", gradient, arrays, create_graph)
    outside.check_real()
    return structure.unflatten([structure.unflatten(outside.rows(y)) for y in outside.outputs])


def vjp(
    function: Callable[..., Nested], inputs: Nested, cotangents: Nested = None, create_graph: bool | None = None
) -> tuple[Nested, Nested]:
    """A function's results, and the product of a vector with its Jacobian: the gradients of its inputs.

    Parameters
    ----------
    function : callable
        As for `jacobian`.
    inputs : ndarray or nested lists, tuples and dicts of ndarray
        As for `jacobian`; complex dtypes, too.
    cotangents : ndarray or nested lists, tuples and dicts of ndarray, optional
        The vector: nested as the results are, of their shapes. Ones by default.
    create_graph : bool, optional
        As for `jacobian`.

    Returns
    -------
    outputs : ndarray or nested lists, tuples and dicts of ndarray
        What the function returns.
    gradients : like `inputs`
        Derivatives of the sum of all products of cotangents and outputs.

    Raises
    ------
    TypeError
        If something else than arrays is among inputs, cotangents or results, or an input is of integers.
    ValueError
        If the cotangents are not nested as the results are, or a shape differs.

    Examples
    --------
    >>> y, dx = mx.autograd.vjp(lambda x: x * x, mx.np.array([1.0, 2.0]), mx.np.array([1.0, 10.0]))
    >>> y, dx
    (array([1., 4.]), array([ 2., 40.]))
    """
    run = _Run("vjp", function, inputs, create_graph)
    given = run.matching("cotangents", cotangents, run.outputs, run.outputs_structure, "results")
    pairs = zip(run.outputs, [None] * len(run.outputs) if given is None else given, strict=True)
    gradients = run.pull_back(pairs, run.create_graph)
    return run.results(), run.inputs_structure.unflatten(gradients)


def jvp(
    function: Callable[..., Nested], inputs: Nested, tangents: Nested, create_graph: bool | None = None
) -> tuple[Nested, Nested]:
    """A function's results, and the product of its Jacobian with a vector: the derivative in a direction.

    Parameters
    ----------
    function : callable
        As for `jacobian`.
    inputs : ndarray or nested lists, tuples and dicts of ndarray
        As for `jacobian`.
    tangents : ndarray or nested lists, tuples and dicts of ndarray
        The vector: nested as the inputs are, of their shapes.
    create_graph : bool, optional
        As for `jacobian`.

    Returns
    -------
    outputs, derivatives : ndarray or nested lists, tuples and dicts of ndarray
        What the function returns, and its derivative along the tangents, of the same form.

    Raises
    ------
    TypeError
        As for `jacobian`.
    ValueError
        If the tangents are not nested as the inputs are, or a shape differs.

    Notes
    -----
    The gradients of the inputs are linear in the cotangents of the results; their derivative by the cotangents is the
    product. So this needs second derivatives of the operators, and costs about twice what `vjp` does.

    Examples
    --------
    >>> y, dy = mx.autograd.jvp(lambda x: x * x, mx.np.array([1.0, 2.0]), mx.np.array([1.0, 10.0]))
    >>> y, dy
    (array([1., 4.]), array([ 2., 40.]))
    """
    run = _Run("jvp", function, inputs, create_graph)
    run.check_real()
    given = run.matching("tangents", tangents, run.inputs, run.inputs_structure, "inputs")
    if given is None:
        raise ValueError("jvp: `tangents` must be given")
    derivatives = run.push_forward(given)
    return run.results(), run.outputs_structure.unflatten(derivatives)


class _Run:
    """A recorded run of a function on its own variables."""

    def __init__(self, name: str, function: Callable[..., Nested], inputs: Nested, create_graph: bool | None) -> None:
        if not callable(function):
            raise TypeError(f"{name}: `function` must be a function, found '{type(function).__name__}'")
        self.name = name
        self.create_graph = is_recording() if create_graph is None else create_graph
        arrays, self.inputs_structure = flatten(name, "inputs", inputs)
        self._check_dtypes(arrays, self.inputs_structure.paths("inputs"), "fc")
        self.inputs = [_core.graph_input(x, self.create_graph) for x in arrays]
        with record(train_mode=is_training()):
            result = function(*spread(self.inputs_structure.unflatten(self.inputs)))
        self.outputs, self.outputs_structure = flatten(name, "result of function", result)

    def _check_dtypes(self, arrays: list[ndarray], paths: list[str], kinds: str) -> None:
        wanted = "real or complex floats" if "c" in kinds else "real floats"
        for x, path in zip(arrays, paths, strict=True):
            if _kind(x) not in kinds:
                raise TypeError(f"{self.name}: `{path}` must be of {wanted}, found {x.dtype}")

    def check_real(self) -> None:
        """An error for complex numbers: there are several conventions for their derivatives."""
        self._check_dtypes(self.inputs, self.inputs_structure.paths("inputs"), "f")
        self._check_dtypes(self.outputs, self.outputs_structure.paths("result of function"), "f")

    def matching(
        self, argument: str, value: Nested, arrays: list[ndarray], structure: Structure, whose: str
    ) -> list[ndarray] | None:
        """The arrays of a vector, which must have the structure of the inputs or results."""
        if value is None:
            return None
        found, nested = flatten(self.name, argument, value)
        if not nested.fits(structure):
            raise ValueError(f"{self.name}: `{argument}` are nested as {nested}, the {whose} as {structure}")
        found = reorder(found, nested, structure)
        for v, x, path in zip(found, arrays, structure.paths(argument), strict=True):
            if v.shape != x.shape:
                raise ValueError(f"{self.name}: `{path}` must have shape {x.shape}, found {v.shape}")
        return found

    def results(self) -> Nested:
        """What the function returned."""
        outputs = self.outputs if self.create_graph else [y.detach() for y in self.outputs]
        return self.outputs_structure.unflatten(outputs)

    def pull_back(self, pairs: Iterable[tuple[ndarray, ndarray | None]], create_graph: bool) -> list[ndarray]:
        """Gradients of the inputs, given outputs and their cotangents. May be called repeatedly."""
        recorded = [(y, dy) for y, dy in pairs if _core.tape_entry(y) is not None]
        if not recorded or not self.inputs:
            return [np.zeros_like(x) for x in self.inputs]
        heads, dys = [y for y, _ in recorded], [dy for _, dy in recorded]
        return list(grad(heads, self.inputs, dys, True, create_graph, is_training()))

    def rows(self, output: ndarray) -> list[ndarray]:
        """Derivatives of one output element after the other with respect to all inputs."""
        rows: list[list[ndarray]] = [[] for _ in self.inputs]
        for k in range(output.size):
            unit = np.zeros(output.size, dtype=output.dtype, device=output.device)
            unit[k] = 1
            gradients = self.pull_back([(output, unit.reshape(output.shape))], self.create_graph)
            for row, gradient in zip(rows, gradients, strict=True):
                row.append(gradient)
        shapes = [output.shape + x.shape for x in self.inputs]
        if output.size == 0:
            return [np.zeros(shape, dtype=x.dtype) for shape, x in zip(shapes, self.inputs, strict=True)]
        with record(train_mode=is_training()) if self.create_graph else contextlib.nullcontext():
            return [np.stack(row).reshape(shape) for row, shape in zip(rows, shapes, strict=True)]

    def push_forward(self, tangents: list[ndarray]) -> list[ndarray]:
        """Derivatives of the outputs along tangents of the inputs."""
        with record(train_mode=is_training()):
            cotangents = [_core.graph_input(np.zeros_like(y), False) for y in self.outputs]
            grads = self.pull_back(zip(self.outputs, cotangents, strict=True), True)
            pairs = [(g, t) for g, t in zip(grads, tangents, strict=True) if _core.tape_entry(g) is not None]
            if not pairs:
                return [np.zeros_like(y) for y in self.outputs]
            heads, along = [g for g, _ in pairs], [t for _, t in pairs]
        return list(grad(heads, cotangents, along, True, self.create_graph, is_training()))


def _kind(x: ndarray) -> str:
    """NumPy's kind character of a dtype; for bfloat16, which NumPy does not have, its name."""
    return "f" if str(x.dtype) == "bfloat16" else numpy.dtype(x.dtype).kind
