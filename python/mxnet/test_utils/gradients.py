"""Gradients against differences, optimizers against each other."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as onp

from mxnet import autograd, random
from mxnet import numpy as np
from mxnet.base import DTypeLike, dtype_name
from mxnet.numpy import ndarray
from mxnet.test_utils.comparison import assert_almost_equal, compare_ndarray_tuple, host
from mxnet.test_utils.data import rand_ndarray
from mxnet.test_utils.defaults import Tolerance

__all__ = [
    "check_gluon_hybridize_consistency",
    "check_numeric_gradient",
    "compare_optimizer",
    "compare_optimizer_noise_seeded",
]


def check_numeric_gradient(
    fn: Callable[..., Any],
    location: Sequence[Any] | Mapping[str, Any],
    numeric_eps: float = 1e-5,
    rtol: float = 1e-6,
    atol: float = 1e-7,
    use_forward_train: bool = True,
) -> None:
    """Compare gradients with central differences, in float64.

    Parameters
    ----------
    fn : callable or Block
        Of arrays; returns an array, or a sequence of arrays. The parameters of a block are checked as well; they must
        be float64.
    location : sequence or mapping of array_like
        Arguments of `fn`, by position or name. Floating ones become float64 and are differentiated; others are passed
        as they are.
    numeric_eps : float
        Step. The error of a difference is about ``eps**2`` from the function's third derivative and ``1e-16 / eps``
        from rounding.
    rtol, atol : float
        See `assert_almost_equal`.
    use_forward_train : bool
        Run in training mode.

    Raises
    ------
    AssertionError
        With the worst elements, if a gradient is wrong.
    ValueError
        If there is nothing to differentiate.

    Notes
    -----
    Outputs are multiplied by fixed random numbers and added up, so that errors of different elements do not cancel.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.test_utils.check_numeric_gradient(lambda x: x * x * x, [[0.5, -2.0]])
    """
    named = dict(location) if isinstance(location, Mapping) else {str(i): value for i, value in enumerate(location)}
    arguments: dict[str, Any] = {}
    checked: dict[str, ndarray] = {}
    for name, value in named.items():
        values = host(value)
        if values.dtype.kind == "f":
            arguments[name] = checked[name] = np.array(values, dtype="float64")
        else:
            arguments[name] = value if isinstance(value, ndarray) else np.array(values)
    for name, parameter in getattr(fn, "collect_params", dict)().items():
        if parameter.grad_req != "null":
            checked[f"parameter {name}"] = parameter.data()
    if not checked:
        raise ValueError("no argument has a floating dtype, so there is nothing to differentiate")
    for name, array in checked.items():
        if dtype_name(array.dtype) != "float64":
            raise ValueError(f"{name} must be float64 for a comparison with differences, found {array.dtype}")

    generator = onp.random.Generator(onp.random.PCG64(0))
    weights: list[ndarray] = []

    def total() -> Any:
        result = fn(**arguments) if isinstance(location, Mapping) else fn(*arguments.values())
        outputs = [result] if isinstance(result, ndarray) else list(result)
        if not weights:
            weights.extend(np.array(generator.uniform(0.5, 1.5, size=output.shape)) for output in outputs)
        parts = [(output * weight).sum() for output, weight in zip(outputs, weights, strict=True)]
        return functools.reduce(lambda x, y: x + y, parts)

    for name, array in checked.items():
        if not name.startswith("parameter "):
            array.attach_grad()
    with autograd.record(train_mode=use_forward_train):
        loss = total()
    loss.backward()

    def current_value() -> float:
        with autograd.pause(train_mode=use_forward_train):
            return float(total().asnumpy())

    for name, array in checked.items():
        gradient = array.grad
        if gradient is None:
            raise ValueError(f"{name} has no gradient")
        symbolic = gradient.asnumpy()
        start = array.asnumpy()
        numeric = onp.zeros_like(start)
        for index in itertools.product(*(range(size) for size in start.shape)):
            sides = []
            for step in (numeric_eps, -numeric_eps):
                moved = start.copy()
                moved[index] += step
                with autograd.pause():
                    array[...] = np.array(moved, dtype="float64")
                sides.append(current_value())
            numeric[index] = (sides[0] - sides[1]) / (2 * numeric_eps)
        with autograd.pause():
            array[...] = np.array(start, dtype="float64")
        assert_almost_equal(symbolic, numeric, rtol, atol, (f"gradient of {name}", "central difference"))


def compare_optimizer(
    opt1: Any,
    opt2: Any,
    shapes: Sequence[Sequence[int]],
    dtype: DTypeLike,
    w_stype: str = "default",
    g_stype: str = "default",
    rtol: Tolerance = 1e-4,
    atol: Tolerance = 1e-5,
    compare_states: bool = True,
) -> None:
    """Check that two optimizers make the same of the same weights and gradients.

    Parameters
    ----------
    opt1, opt2 : Optimizer
    shapes : sequence of shapes
        Of the weights.
    dtype : dtype
    w_stype, g_stype : {"default"}
        Storage of weights and gradients; only dense storage exists.
    rtol, atol : float or mapping of dtype names to float
    compare_states : bool
        Compare the states, too.

    Raises
    ------
    AssertionError
        If weights or states differ by more than is allowed.
    ValueError
        If a storage is not dense.

    Examples
    --------
    >>> one, other = mx.optimizer.SGD(learning_rate=0.1), mx.optimizer.SGD(learning_rate=0.1)
    >>> mx.test_utils.compare_optimizer(one, other, [(2, 3), (4,)], 'float32')
    """
    _compare_steps(opt1, opt2, shapes, dtype, None, w_stype, g_stype, rtol, atol, compare_states)


def compare_optimizer_noise_seeded(
    opt1: Any,
    opt2: Any,
    shapes: Sequence[Sequence[int]],
    dtype: DTypeLike,
    noise_seed: int,
    w_stype: str = "default",
    g_stype: str = "default",
    rtol: Tolerance = 1e-4,
    atol: Tolerance = 1e-5,
    compare_states: bool = True,
) -> None:
    """As `compare_optimizer`, for optimizers that draw random numbers.

    Parameters
    ----------
    opt1, opt2, shapes, dtype
        See `compare_optimizer`.
    noise_seed : int
        Seed of the random numbers of each optimizer's step.
    w_stype, g_stype, rtol, atol, compare_states
        See `compare_optimizer`.

    Raises
    ------
    AssertionError
        If weights or states differ by more than is allowed.
    ValueError
        If a storage is not dense.

    Examples
    --------
    >>> one, other = mx.optimizer.SGLD(learning_rate=0.1), mx.optimizer.SGLD(learning_rate=0.1)
    >>> mx.test_utils.compare_optimizer_noise_seeded(one, other, [(2, 3), (4,)], 'float32', noise_seed=1)
    """
    _compare_steps(opt1, opt2, shapes, dtype, noise_seed, w_stype, g_stype, rtol, atol, compare_states)


def _compare_steps(
    opt1: Any,
    opt2: Any,
    shapes: Sequence[Sequence[int]],
    dtype: DTypeLike,
    noise_seed: int | None,
    w_stype: str,
    g_stype: str,
    rtol: Tolerance,
    atol: Tolerance,
    compare_states: bool,
) -> None:
    for name, storage in (("w_stype", w_stype), ("g_stype", g_stype)):
        if storage != "default":
            raise ValueError(f"`{name}` must be 'default', found {storage!r}")
    indices = list(range(len(shapes)))
    first = [rand_ndarray(shape, dtype=dtype) for shape in shapes]
    second = [np.array(weight, dtype=weight.dtype) for weight in first]
    grads = [rand_ndarray(shape, dtype=dtype) for shape in shapes]
    states = []
    for optimizer, weights in ((opt1, first), (opt2, second)):
        made = [optimizer.create_state_multi_precision(i, weight) for i, weight in zip(indices, weights, strict=True)]
        if noise_seed is not None:
            random.seed(noise_seed)
        optimizer.update_multi_precision(indices, weights, [np.array(g, dtype=g.dtype) for g in grads], made)
        states.append(made)
    compare_ndarray_tuple(first, second, rtol, atol)
    if compare_states:
        compare_ndarray_tuple(states[0], states[1], rtol, atol)


def check_gluon_hybridize_consistency(
    net_builder: Callable[[], Any],
    data_l: Sequence[Any],
    numpy_func: Callable[..., Any] | None = None,
    test_grad: bool = True,
    rtol: float = 1e-4,
    atol: float = 1e-4,
) -> None:
    """Check that a network gives the same hybridized and not, with the same parameters.

    Parameters
    ----------
    net_builder : callable
        Makes the network anew.
    data_l : sequence of array_like
        Inputs of the network.
    numpy_func : callable, optional
        The same in NumPy; compared with what the network gives.
    test_grad : bool
        Compare the gradients of inputs and parameters, too.
    rtol, atol : float

    Raises
    ------
    AssertionError
        If outputs or gradients differ by more than is allowed.

    Notes
    -----
    Random numbers are drawn from the same seed each time; the stream is put back afterwards.

    Examples
    --------
    >>> mx.test_utils.check_gluon_hybridize_consistency(
    ...     lambda: mx.gluon.nn.Activation('relu'), [np.array([-1.0, 2.0])], lambda x: x.clip(0)
    ... )
    """
    stream = np.random.get_state()
    first: tuple[Any, list[Any]] | None = None
    saved: dict[str, ndarray] = {}
    try:
        for hybridize in (False, True):
            inputs = [np.array(x) for x in data_l]
            net = net_builder()
            net.initialize()
            with autograd.pause():
                # Finds out the sizes that the first input decides.
                net(*inputs)
            if first is None:
                saved = {name: parameter.data().copy() for name, parameter in net.collect_params().items()}
            net.load_dict(saved)
            if hybridize:
                net.hybridize()
            if test_grad:
                for x in inputs:
                    x.attach_grad()
            random.seed(0)
            if test_grad:
                with autograd.record():
                    out = net(*inputs)
                out.backward()
            else:
                with autograd.predict_mode():
                    out = net(*inputs)
            params = [p for p in net.collect_params().values() if p.grad_req != "null"]
            grads = [*(x.grad for x in inputs), *(p.grad() for p in params)] if test_grad else []
            if first is None:
                first = (out, grads)
            else:
                assert_almost_equal(out, first[0], rtol=rtol, atol=atol)
                for found, expected in zip(grads, first[1], strict=True):
                    assert_almost_equal(found, expected, rtol=rtol, atol=atol)
            if numpy_func is not None:
                assert_almost_equal(out, numpy_func(*(host(x) for x in inputs)), rtol=rtol, atol=atol)
    finally:
        np.random.set_state(stream)
