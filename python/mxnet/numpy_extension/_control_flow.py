"""Conditions and loops whose bodies are functions of arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from mxnet import _core
from mxnet._core import ndarray
from mxnet._nested import Nested, Structure, flatten, reorder, spread
from mxnet.error import AbstractArrayError

__all__ = ["cond", "foreach", "while_loop"]

_np = _core.namespaces["numpy"]


def cond(
    pred: Callable[..., Any] | ndarray,
    then_func: Callable[..., Nested],
    else_func: Callable[..., Nested],
    inputs: Nested,
    name: str = "cond",
) -> Nested:
    """Run one of two functions, chosen by a value.

    Parameters
    ----------
    pred : callable or ndarray
        Called with the inputs; what it returns, or `pred` itself, is one number or truth value, shape () or (1,).
    then_func, else_func : callable
        Called with the inputs where `pred` is true (not true). Returns an array or nested lists, tuples and dicts.
    inputs : ndarray or nested lists, tuples and dicts of ndarray
        The items of a list or tuple are the arguments of the three functions; anything else is their only argument.
    name : str
        What errors call the condition.

    Returns
    -------
    ndarray or nested lists, tuples and dicts of ndarray
        What the chosen function returns. Gradients flow through it, to any order.

    Raises
    ------
    TypeError
        If a function cannot be called, or an input or a result is neither an array nor a container of arrays.
    ValueError
        If `pred` does not give one value; in a compiled function, if the results of both functions differ in structure,
        shape or dtype.

    Notes
    -----
    In a compiled function (`mx.jit`) both functions are computed and the results of one are taken: neither may write to
    arrays from outside, and a gradient that is infinite or NaN in the function that was not chosen makes a NaN.

    Examples
    --------
    >>> a, b = mx.np.array([1.0]), mx.np.array([2.0])
    >>> mx.npx.cond(lambda a, b: a * b < 5, lambda a, b: (a + 5) * (b + 5), lambda a, b: (a - 5) * (b - 5), [a, b])
    array([42.])
    """
    flatten(name, "inputs", inputs)
    _check_callable(name, then_func=then_func, else_func=else_func)
    arguments = spread(inputs)
    value = pred(*arguments) if callable(pred) else pred
    if _is_unknown(value):
        return _selected(name, value, then_func(*arguments), else_func(*arguments))
    is_true = _truth(name, "pred", value)
    chosen, word = (then_func, "then_func") if is_true else (else_func, "else_func")
    result = chosen(*arguments)
    flatten(name, f"result of {word}", result)
    return result


def foreach(body: Callable[[Nested, Nested], tuple[Nested, Nested]], data: Nested, init_states: Nested) -> Any:
    """Go over the first axis of arrays and carry states from each step to the next.

    Parameters
    ----------
    body : callable
        ``body(item, states)`` returns ``(outputs, new_states)``, each an array or nested lists, tuples and dicts of
        arrays. `item` is nested as `data` is, without the first axis. The new states have the structure, shapes and
        dtypes of `init_states`.
    data : ndarray or nested lists, tuples and dicts of ndarray, shapes (n, ...)
    init_states : ndarray or nested lists, tuples and dicts of ndarray
        States of the first step; ``[]`` for none.

    Returns
    -------
    outputs : ndarray or nested lists, tuples and dicts of ndarray, shapes (n, ...)
        The outputs of all steps, joined along a new first axis.
    states : like `init_states`
        States after the last step. Gradients flow through both, to any order.

    Raises
    ------
    TypeError
        If `body` cannot be called, or something else than arrays is among data, states or results.
    ValueError
        If `data` has no array, an array without axes or arrays of different lengths; if results of the body change
        their structure, or states their shape or dtype; if there is no step and `body` needs values.

    Notes
    -----
    *Differences*: all arrays of `data` must be of one length, where MXNet 2 goes on to the end of the first. Without
    steps (n = 0) the outputs have shapes (0, ...), found by running `body` on arrays without values.

    Examples
    --------
    >>> data = mx.np.arange(6).reshape(3, 2)
    >>> outputs, states = mx.npx.foreach(lambda x, s: (x + s, x + s), data, mx.np.zeros(2))
    >>> outputs  # sums of the rows so far
    array([[0., 1.],
           [2., 4.],
           [6., 9.]])
    >>> states
    array([6., 9.])
    """
    arrays, items = flatten("foreach", "data", data)
    states, structure = flatten("foreach", "init_states", init_states)
    _check_callable("foreach", body=body)
    length = _common_length(arrays, items.paths("data"))
    steps = _Steps("foreach", "body", "init_states", structure, states)

    def step(item: list[ndarray], before: list[ndarray]) -> list[ndarray]:
        return steps.take(body(items.unflatten(item), structure.unflatten(before)))

    for i in range(length):
        states = step([x[i] for x in arrays], states)
    if length == 0:
        steps.take_without_values(lambda like: step([like(x.shape[1:], x.dtype) for x in arrays], states))
    return steps.joined(length), structure.unflatten(states)


def while_loop(
    cond: Callable[..., Any],
    func: Callable[..., tuple[Nested, Nested]],
    loop_vars: Nested,
    max_iterations: int | None = None,
) -> Any:
    """Run a function as long as a condition holds.

    Parameters
    ----------
    cond : callable
        Called with the loop variables before each step; returns one number or truth value, shape () or (1,).
    func : callable
        Called with the loop variables; returns ``(outputs, new_loop_vars)``. The new loop variables have the structure,
        shapes and dtypes of `loop_vars`; the outputs are an array, nested lists, tuples and dicts of arrays, or None.
    loop_vars : ndarray or nested lists, tuples and dicts of ndarray
        The items of a list or tuple are the arguments of the functions; anything else is their only argument.
    max_iterations : int
        The loop ends after so many steps. It must be given.

    Returns
    -------
    outputs : ndarray or nested lists, tuples and dicts of ndarray, shapes (max_iterations, ...)
        The outputs of all steps, joined along a new first axis; behind the last step zeros.
    loop_vars : like `loop_vars`
        Their last values. Gradients flow through both, to any order.

    Raises
    ------
    TypeError
        If a function cannot be called, `max_iterations` is no integer, or something else than arrays is among the
        loop variables or results.
    ValueError
        If `max_iterations` is not given or negative, `cond` does not give one value, or results change their structure,
        or loop variables their shape or dtype; if there is no step and `func` needs values.

    Notes
    -----
    *Differences*: MXNet 2 leaves some rows behind the last step undefined. If `cond` is false at once the outputs are
    zeros whose shapes are found by running `func` on arrays without values.

    In a compiled function (`mx.jit`) all `max_iterations` steps are computed and those behind the last one are passed
    over: `func` may not write to arrays from outside, and a gradient that is infinite or NaN in such a step makes a
    NaN.

    Examples
    --------
    >>> i, total = mx.np.array([0.0]), mx.np.array([1.0])
    >>> step = lambda i, total: (i + total, [i + 1, total + i])
    >>> outputs, (i, total) = mx.npx.while_loop(lambda i, total: i <= 3, step, [i, total], max_iterations=5)
    >>> outputs.reshape(-1)
    array([1., 2., 4., 7., 0.])
    >>> total
    array([7.])
    """
    states, structure = flatten("while_loop", "loop_vars", loop_vars)
    _check_callable("while_loop", cond=cond, func=func)
    if max_iterations is None:
        raise ValueError("while_loop: `max_iterations` must be given")
    limit = operator.index(max_iterations)
    if limit < 0:
        raise ValueError(f"while_loop: `max_iterations` must not be negative, found {limit}")
    steps = _Steps("while_loop", "func", "loop_vars", structure, states)
    count = 0
    if limit > 0:
        is_true = cond(*spread(structure.unflatten(states)))
        if _is_unknown(is_true):
            return _masked_loop(cond, func, states, structure, steps, is_true, limit)
    while count < limit and _truth("while_loop", "cond", cond(*spread(structure.unflatten(states)))):
        states = steps.take(func(*spread(structure.unflatten(states))))
        count += 1
    if count == 0:
        steps.take_without_values(
            lambda like: steps.take(func(*spread(structure.unflatten([like(x.shape, x.dtype) for x in states]))))
        )
    return steps.joined(limit), structure.unflatten(states)


def _is_unknown(value: Any) -> bool:
    """Whether a condition is an abstract array of a trace."""
    return isinstance(value, ndarray) and _core.is_abstract(value)


def _one_truth(function: str, name: str, value: ndarray) -> ndarray:
    """An abstract condition, as an array of shape () and dtype bool."""
    if value.size != 1:
        raise ValueError(f"{function}: `{name}` must give one value, found shape {value.shape}")
    truth: ndarray = value.reshape(()).astype("bool")
    return truth


def _selected(name: str, value: ndarray, chosen: Nested, other: Nested) -> Nested:
    """The results of the first function where the condition is true, else those of the second."""
    truth = _one_truth(name, "pred", value)
    arrays, structure = flatten(name, "result of then_func", chosen)
    others, found = flatten(name, "result of else_func", other)
    if not found.fits(structure):
        raise ValueError(f"{name}: `then_func` returns {structure} and `else_func` {found}")
    others = reorder(others, found, structure)
    for x, y, path in zip(arrays, others, structure.paths("result"), strict=True):
        if x.shape != y.shape or x.dtype != y.dtype:
            raise ValueError(
                f"{name}: `{path}` has shape {x.shape} and dtype {x.dtype} from `then_func`, shape {y.shape} and dtype "
                f"{y.dtype} from `else_func`"
            )
    return structure.unflatten([_np["where"](truth, x, y) for x, y in zip(arrays, others, strict=True)])


def _masked_loop(
    cond: Callable[..., Any],
    func: Callable[..., Any],
    states: list[ndarray],
    structure: Structure,
    steps: _Steps,
    first: ndarray,
    limit: int,
) -> Any:
    """A loop with an unknown number of steps in a trace: runs all; steps after the last one change nothing."""
    is_running = _one_truth("while_loop", "cond", first)
    for i in range(limit):
        found = steps.take(func(*spread(structure.unflatten(states))))
        for row in steps.rows:
            row[-1] = _np["where"](is_running, row[-1], _np["zeros_like"](row[-1]))
        states = [_np["where"](is_running, new, old) for new, old in zip(found, states, strict=True)]
        if i + 1 < limit:
            goes_on = cond(*spread(structure.unflatten(states)))
            truth = _one_truth("while_loop", "cond", goes_on) if isinstance(goes_on, ndarray) else bool(goes_on)
            is_running = _np["logical_and"](is_running, truth)
    return steps.joined(limit), structure.unflatten(states)


class _Steps:
    """The results of a loop's steps, which are checked and finally concatenated."""

    def __init__(
        self, function: str, body: str, argument: str, structure: Structure, states: Sequence[ndarray]
    ) -> None:
        self.function = function
        self.body = body
        self.argument = argument
        self.structure = structure
        self.expected = [(x.shape, x.dtype) for x in states]
        self.outputs: Structure | None = None
        self.rows: list[list[ndarray]] = []  # one list for each array of the outputs
        self.row: list[tuple[tuple[int, ...], Any]] = []  # shape and dtype of each array of the outputs
        self.num_steps = 0

    def take(self, result: Any) -> list[ndarray]:
        """Store the outputs of a step; returns the new states."""
        where = f"step {self.num_steps}"
        if not isinstance(result, (list, tuple)) or len(result) != 2:
            raise TypeError(
                f"{self.function}: `{self.body}` must return a pair (outputs, new states), "
                f"found {_describe(result)} in {where}"
            )
        outputs, structure = flatten(self.function, f"outputs of {self.body}", result[0])
        if self.outputs is None:
            self.outputs = structure
            self.rows = [[] for _ in outputs]
            self.row = [(y.shape, y.dtype) for y in outputs]
        else:
            self._check_structure(structure, self.outputs, "outputs", where, "step 0 has")
            outputs = reorder(outputs, structure, self.outputs)
            self._check_arrays(outputs, self.row, self.outputs.paths("outputs"), where, "step 0 has")
        found, structure = flatten(self.function, f"new states of {self.body}", result[1])
        self._check_structure(structure, self.structure, "new states", where, f"`{self.argument}` has")
        states = reorder(found, structure, self.structure)
        paths = self.structure.paths(self.argument)
        self._check_arrays(states, self.expected, paths, where, "it must keep")
        for row, y in zip(self.rows, outputs, strict=True):
            row.append(y)
        self.num_steps += 1
        return states

    def take_without_values(self, run: Callable[[Callable[..., ndarray]], Any]) -> None:
        """Determine shapes and dtypes of the outputs from a step on abstract arrays."""
        try:
            run(_core.abstract_array)
        except AbstractArrayError as error:
            raise ValueError(
                f"{self.function}: there is no step, and the shapes of the outputs of `{self.body}` depend on values"
            ) from error
        self.rows = [[] for _ in self.rows]

    def joined(self, length: int) -> Nested:
        """The outputs of all steps along a new first axis, with zeros up to `length` rows."""
        assert self.outputs is not None, "a step has been taken"
        return self.outputs.unflatten([self._join(rows, length, i) for i, rows in enumerate(self.rows)])

    def _join(self, rows: list[ndarray], length: int, i: int) -> ndarray:
        shape, dtype = self.row[i]
        rest = length - len(rows)
        if not rows:
            empty: ndarray = _np["zeros"]((length, *shape), dtype=dtype)
            return empty
        stacked: ndarray = _np["stack"](rows)
        if rest == 0:
            return stacked
        zeros = _np["zeros"]((rest, *shape), dtype=dtype, device=stacked.device)
        padded: ndarray = _np["concatenate"]([stacked, zeros])
        return padded

    def _check_structure(self, found: Structure, wanted: Structure, what: str, where: str, why: str) -> None:
        if not found.fits(wanted):
            raise ValueError(
                f"{self.function}: {what} of `{self.body}` are nested as {found} in {where}, {why} {wanted}"
            )

    def _check_arrays(
        self, found: list[ndarray], wanted: list[tuple[tuple[int, ...], Any]], paths: list[str], where: str, why: str
    ) -> None:
        for x, (shape, dtype), path in zip(found, wanted, paths, strict=True):
            if x.shape != shape or x.dtype != dtype:
                raise ValueError(
                    f"{self.function}: `{path}` has shape {x.shape} and dtype {x.dtype} after {where}, "
                    f"{why} shape {shape} and dtype {dtype}"
                )


def _check_callable(function: str, **arguments: Any) -> None:
    for name, value in arguments.items():
        if not callable(value):
            raise TypeError(f"{function}: `{name}` must be a function, found '{type(value).__name__}'")


def _common_length(arrays: list[ndarray], paths: list[str]) -> int:
    """The length of the first axis, which must be the same for all arrays."""
    if not arrays:
        raise ValueError("foreach: `data` must hold at least one array, found none")
    for x, path in zip(arrays, paths, strict=True):
        if x.ndim == 0:
            raise ValueError(f"foreach: `{path}` must have at least one axis, found shape ()")
        if len(x) != len(arrays[0]):
            raise ValueError(
                f"foreach: all arrays of `data` must have one length, `{paths[0]}` has {len(arrays[0])} and `{path}` "
                f"has {len(x)}"
            )
    return len(arrays[0])


def _truth(function: str, name: str, value: Any) -> bool:
    """The truth value of the result of a condition."""
    if isinstance(value, ndarray) and value.size != 1:
        raise ValueError(f"{function}: `{name}` must give one value, found shape {value.shape}")
    return bool(value)


def _describe(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__} of {len(value)}"
    return f"'{type(value).__name__}'"
