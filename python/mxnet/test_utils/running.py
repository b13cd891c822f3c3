"""The same function on several devices and in several dtypes, its slopes and its time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as onp

from mxnet import autograd, engine
from mxnet import numpy as np
from mxnet.base import DTypeLike, dtype_name
from mxnet.device import Device, current_device
from mxnet.numpy import ndarray
from mxnet.test_utils.comparison import assert_almost_equal, host
from mxnet.test_utils.defaults import default_atols, default_rtols

__all__ = ["check_consistency", "check_speed", "numeric_grad"]

Arguments = Mapping[str, Any]
_GRAD_REQS = ("write", "add", "null")


def _sum_of(result: Any) -> ndarray:
    """The outputs, multiplied by fixed numbers and added up."""
    outputs = [result] if isinstance(result, ndarray) else list(result)
    total = None
    for output in outputs:
        factors = onp.random.Generator(onp.random.PCG64(0)).uniform(0.5, 1.5, size=output.shape)
        part = (output * np.array(factors, dtype=output.dtype, device=output.device)).sum()
        total = part if total is None else total + part
    if total is None:
        raise ValueError("the function returns no array")
    return total


def numeric_grad(
    executor: Callable[..., Any],
    location: Arguments,
    aux_states: Arguments | None = None,
    eps: float = 1e-4,
    use_forward_train: bool = True,
    dtype: DTypeLike = "float32",
) -> dict[str, Any]:
    """Central differences of a function's outputs, added up.

    Parameters
    ----------
    executor : callable or Block
        Of arrays by name; returns an array, or a sequence of arrays.
    location : mapping of str to array_like
        Arguments that are moved.
    aux_states : mapping of str to array_like, optional
        Arguments that are not.
    eps : float
        Distance of the two points of a difference.
    use_forward_train : bool
        Run in training mode.
    dtype : dtype
        Of the moved arguments; float64 gives some ten digits, float32 three.

    Returns
    -------
    dict of str to numpy.ndarray
        For each name of `location` the slopes of the sum of all outputs.

    Examples
    --------
    >>> mx.test_utils.numeric_grad(lambda x: x * x, {'x': [1.0, 3.0]}, dtype='float64')['x'].round(6).tolist()
    [2.0, 6.0]
    """
    values = {name: onp.array(host(value), dtype=dtype_name(dtype)) for name, value in location.items()}
    fixed = {
        name: value if isinstance(value, ndarray) else np.array(value) for name, value in (aux_states or {}).items()
    }

    def total() -> float:
        with autograd.pause(train_mode=use_forward_train):
            result = executor(**{name: np.array(value, dtype=value.dtype) for name, value in values.items()}, **fixed)
        outputs = [result] if isinstance(result, ndarray) else list(result)
        return sum(float(output.astype("float64").sum().item()) for output in outputs)

    slopes = {}
    for name, value in values.items():
        slope = onp.zeros(value.shape)
        for index in onp.ndindex(*value.shape):
            middle = value[index]
            sides = []
            for step in (eps / 2, -eps / 2):
                value[index] = middle + step
                sides.append(total())
            value[index] = middle
            slope[index] = (sides[0] - sides[1]) / eps
        slopes[name] = slope.astype(value.dtype)
    return slopes


def check_consistency(
    sym: Callable[..., Any],
    ctx_list: Sequence[Mapping[str, Any]],
    scale: float = 1.0,
    grad_req: str = "write",
    arg_params: Arguments | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    raise_on_err: bool = True,
    ground_truth: Sequence[Any] | None = None,
    equal_nan: bool = False,
    use_uniform: bool = False,
) -> list[list[Any]]:
    """Check that a function gives the same, and the same gradients, on several devices and in several dtypes.

    Parameters
    ----------
    sym : callable or Block
        Of arrays by name; returns an array, or a sequence of arrays.
    ctx_list : sequence of mapping
        One run each: shapes of arguments by name, ``"ctx"`` the device (the current one if left out) and
        ``"type_dict"`` dtypes of arguments by name (float32 if left out).
    scale : float
        Deviation of the random arguments, or half the length of their interval.
    grad_req : {"write", "add", "null"}
        ``"null"`` compares outputs only.
    arg_params : mapping of str to array_like, optional
        Values of arguments in place of random ones.
    rtol, atol : float, optional
        By default those of the less precise of the two dtypes that are compared.
    raise_on_err : bool
        Raise on a difference; without it a message is printed.
    ground_truth : sequence of array_like, optional
        Right outputs; by default those of the first run in the most precise dtype.
    equal_nan : bool
        Whether NaNs count as equal.
    use_uniform : bool
        Draw random arguments from an interval in place of a normal distribution.

    Returns
    -------
    list of list of numpy.ndarray
        The outputs of each run.

    Raises
    ------
    AssertionError
        If runs differ by more than is allowed.
    ValueError
        If `ctx_list` is empty, runs have other shapes, or `grad_req` is unknown.

    Examples
    --------
    >>> runs = [{'x': (2, 3)}, {'x': (2, 3), 'type_dict': {'x': 'float64'}}]
    >>> len(mx.test_utils.check_consistency(lambda x: np.exp(x).sum(axis=1), runs))
    2
    """
    if grad_req not in _GRAD_REQS:
        raise ValueError(f"check_consistency: `grad_req` must be one of {_GRAD_REQS}, found {grad_req!r}")
    shapes = [
        {name: tuple(shape) for name, shape in run.items() if name not in ("ctx", "type_dict")} for run in ctx_list
    ]
    if not shapes or any(other != shapes[0] for other in shapes):
        raise ValueError(f"check_consistency: `ctx_list` must hold runs of the same shapes, found {shapes}")
    generator = onp.random.default_rng(0)
    values = {}
    for name, shape in shapes[0].items():
        drawn = generator.uniform(-scale, scale, shape) if use_uniform else generator.normal(0, scale, shape)
        # Numbers that every dtype of the runs holds exactly.
        values[name] = onp.array(host((arg_params or {}).get(name, drawn.astype("float16"))))

    found = []
    for run in ctx_list:
        dtypes = {name: dtype_name(run.get("type_dict", {}).get(name, "float32")) for name in values}
        device: Device = run.get("ctx", current_device())
        arguments = {name: np.array(value, dtype=dtypes[name], device=device) for name, value in values.items()}
        if grad_req != "null":
            for array in arguments.values():
                array.attach_grad(grad_req)
        with autograd.record():
            result = sym(**arguments)
            total = _sum_of(result) if grad_req != "null" else None
        outputs = [result] if isinstance(result, ndarray) else list(result)
        slopes = []
        if total is not None:
            total.backward()
            slopes = [array.grad for array in arguments.values()]
        least = min(dtypes.values(), key=lambda name: onp.finfo(name).precision)
        found.append((least, outputs, slopes))

    best = max(range(len(found)), key=lambda i: onp.finfo(found[i][0]).precision)
    right, right_slopes = ground_truth or found[best][1], found[best][2]
    for number, (least, outputs, slopes) in enumerate(found):
        coarse = min(least, found[best][0], key=lambda name: onp.finfo(name).precision)
        relative = default_rtols()[coarse] if rtol is None else rtol
        absolute = default_atols()[coarse] if atol is None else atol
        try:
            for mine, theirs in [*zip(outputs, right, strict=True), *zip(slopes, right_slopes, strict=True)]:
                found_now, wanted = host(mine).astype("float64"), host(theirs).astype("float64")
                assert_almost_equal(found_now, wanted, relative, absolute, equal_nan=equal_nan)
        except AssertionError as error:
            if raise_on_err:
                raise AssertionError(f"run {number}, {dict(ctx_list[number])}: {error}") from error
            print(f"run {number}, {dict(ctx_list[number])}: {error}")
    return [[host(output) for output in outputs] for _, outputs, _ in found]


def check_speed(
    sym: Callable[..., Any],
    location: Arguments | None = None,
    ctx: Device | None = None,
    N: int = 20,  # MXNet's name
    grad_req: str = "write",
    typ: str = "whole",
    **kwargs: Sequence[int],
) -> float:
    """Mean time of a call.

    Parameters
    ----------
    sym : callable or Block
        Of arrays by name; returns an array, or a sequence of arrays.
    location : mapping of str to array_like, optional
        The arguments.
    ctx : Device, optional
        The current device by default.
    N : int
        Number of calls, after one that does not count.
    grad_req : {"write", "add"}
        What backward passes do with gradients.
    typ : {"whole", "forward"}
        Forward and backward, or forward alone.
    **kwargs : tuple of int
        Shapes of arguments that are drawn from a normal distribution.

    Returns
    -------
    float
        Seconds, until all results are there.

    Raises
    ------
    ValueError
        If `typ` or `grad_req` is unknown or `N` is not positive.

    Examples
    --------
    >>> mx.test_utils.check_speed(lambda x: x + 1, N=3, typ='forward', x=(2, 3)) > 0
    True
    """
    if typ not in ("whole", "forward"):
        raise ValueError(f"check_speed: `typ` must be 'whole' or 'forward', found {typ!r}")
    if grad_req not in ("write", "add"):
        raise ValueError(f"check_speed: `grad_req` must be 'write' or 'add', found {grad_req!r}")
    if N < 1:
        raise ValueError(f"check_speed: `N` must be positive, found {N}")
    device = current_device() if ctx is None else ctx
    generator = onp.random.default_rng(0)
    drawn = {name: generator.normal(size=tuple(shape)).astype("float32") for name, shape in kwargs.items()}
    arguments = {name: np.array(value, device=device) for name, value in {**dict(location or {}), **drawn}.items()}
    if typ == "whole":
        for array in arguments.values():
            array.attach_grad(grad_req)

    def call() -> None:
        if typ == "forward":
            with autograd.predict_mode():
                sym(**arguments)
            return
        with autograd.record():
            result = sym(**arguments)
        autograd.backward([result] if isinstance(result, ndarray) else list(result))

    call()
    engine.wait_all()
    started = time.perf_counter()
    for _ in range(N):
        call()
    engine.wait_all()
    return (time.perf_counter() - started) / N
