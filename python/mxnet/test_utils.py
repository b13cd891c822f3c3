"""What tests of array programs need: comparisons, random arrays, numeric gradients."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as onp
from numpy.typing import NDArray

from mxnet import autograd
from mxnet import numpy as np
from mxnet.base import DTypeLike, dtype_name
from mxnet.device import Device, current_device
from mxnet.numpy import ndarray

__all__ = [
    "almost_equal",
    "assert_allclose",
    "assert_almost_equal",
    "assert_almost_equal_ignore_nan",
    "assert_exception",
    "check_numeric_gradient",
    "compare_ndarray_tuple",
    "compare_optimizer",
    "default_atols",
    "default_device",
    "default_dtype",
    "default_numeric_eps",
    "default_rtols",
    "effective_dtype",
    "environment",
    "get_atol",
    "get_rtol",
    "get_tolerance",
    "get_tols",
    "np_reduce",
    "rand_ndarray",
    "rand_shape_2d",
    "rand_shape_3d",
    "rand_shape_nd",
    "random_arrays",
    "random_sample",
    "random_uniform_arrays",
    "retry",
    "same",
    "same_array",
    "set_default_device",
]

F = TypeVar("F", bound=Callable[..., Any])
Tolerance = float | Mapping[str, float] | None

# About the square root of the unit roundoff of each dtype, rounded up: what is left after sums of some thousand terms.
_RTOLS = {"float16": 1e-2, "bfloat16": 5e-2, "float32": 1e-4, "float64": 1e-5, "complex64": 1e-4, "complex128": 1e-5}
_ATOLS = {"float16": 1e-1, "bfloat16": 1e-1, "float32": 1e-3, "float64": 1e-20, "complex64": 1e-3, "complex128": 1e-20}
_EPS = {"float16": 1e-1, "float32": 1e-3, "float64": 1e-4}

_default_device: Device | None = None


def default_device() -> Device:
    """The device that tests use: the one set by `set_default_device`, else the current one."""
    return current_device() if _default_device is None else _default_device


def set_default_device(device: Device | None) -> None:
    """Choose the device that tests use.

    Parameters
    ----------
    device : Device or None
        None goes back to the current device.
    """
    global _default_device
    _default_device = device


def default_dtype() -> Any:
    """The dtype that tests use, float32."""
    return onp.float32


def default_rtols() -> dict[str, float]:
    """Relative tolerance of each dtype, by name; 0 for those that are not listed."""
    return dict(_RTOLS)


def default_atols() -> dict[str, float]:
    """Absolute tolerance of each dtype, by name; 0 for those that are not listed."""
    return dict(_ATOLS)


def default_numeric_eps() -> dict[str, float]:
    """Step of numeric differentiation for each dtype, by name."""
    return dict(_EPS)


def effective_dtype(dat: Any) -> Any:
    """The dtype that decides a tolerance.

    Parameters
    ----------
    dat : array_like

    Returns
    -------
    numpy.dtype or str
        The dtype of `dat`; a string only for ``"bfloat16"``.
    """
    dtype = dat.dtype if hasattr(dat, "dtype") else onp.asarray(dat).dtype
    name = dtype_name(dtype)
    return name if name == "bfloat16" else onp.dtype(name)


def get_tolerance(dat: Any, tol: Tolerance, default_tol: Mapping[str, float]) -> float:
    """The tolerance for an array.

    Parameters
    ----------
    dat : array_like
    tol : float, mapping of dtype names to float, or None
        None takes `default_tol`.
    default_tol : mapping of dtype names to float

    Returns
    -------
    float
        0 for a dtype that is not listed.
    """
    if tol is not None and not isinstance(tol, Mapping):
        return float(tol)
    table = default_tol if tol is None else {dtype_name(key): value for key, value in tol.items()}
    return table.get(dtype_name(effective_dtype(dat)), 0.0)


def get_rtol(rtol: Tolerance = None, dtype: DTypeLike = "float64") -> float:
    """The relative tolerance of a dtype, unless `rtol` is given."""
    table = _RTOLS if rtol is None else rtol
    return table.get(dtype_name(dtype), 0.0) if isinstance(table, Mapping) else float(table)


def get_atol(atol: Tolerance = None, dtype: DTypeLike = "float64") -> float:
    """The absolute tolerance of a dtype, unless `atol` is given."""
    table = _ATOLS if atol is None else atol
    return table.get(dtype_name(dtype), 0.0) if isinstance(table, Mapping) else float(table)


def get_tols(x: Any, y: Any, rtol: Tolerance, atol: Tolerance) -> tuple[float, float]:
    """Tolerances for comparing two arrays: those of the less exact one.

    Parameters
    ----------
    x, y : array_like
    rtol, atol : float, mapping of dtype names to float, or None

    Returns
    -------
    tuple of float
        Relative and absolute tolerance.
    """
    return (
        max(get_tolerance(x, rtol, _RTOLS), get_tolerance(y, rtol, _RTOLS)),
        max(get_tolerance(x, atol, _ATOLS), get_tolerance(y, atol, _ATOLS)),
    )


def _host(array: Any) -> NDArray[Any]:
    if isinstance(array, ndarray):
        if dtype_name(array.dtype) == "bfloat16":
            array = array.astype("float32")
        values: NDArray[Any] = array.asnumpy()
        return values
    return onp.asarray(array)


def same(a: Any, b: Any) -> bool:
    """Whether two arrays have equal shapes and values; NaN equals nothing.

    Parameters
    ----------
    a, b : array_like

    Returns
    -------
    bool
    """
    return onp.array_equal(_host(a), _host(b))


def same_array(array1: ndarray, array2: ndarray) -> bool:
    """Whether two arrays share memory, found out by a write to the first one that is taken back.

    Parameters
    ----------
    array1, array2 : ndarray, numeric dtype

    Returns
    -------
    bool
    """
    with autograd.pause():
        array1[:] = array1 + 1
        shared = same(array1, array2)
        array1[:] = array1 - 1
        return shared and same(array1, array2)


def _excess(a: NDArray[Any], b: NDArray[Any], rtol: float, atol: float, equal_nan: bool) -> NDArray[onp.float64]:
    """How many times the allowed difference is exceeded, element by element."""
    wide = onp.complex128 if onp.iscomplexobj(a) or onp.iscomplexobj(b) else onp.float64
    if a.dtype.kind in "iub" and b.dtype.kind in "iub":
        # 64-bit integers do not survive float64; exact equality does.
        exact = a == b
    else:
        exact = onp.zeros(onp.broadcast_shapes(a.shape, b.shape), bool)
    left, right = a.astype(wide), b.astype(wide)
    with onp.errstate(invalid="ignore", divide="ignore", over="ignore"):
        difference = onp.abs(left - right)
        allowed = atol + rtol * onp.abs(right)
        excess = onp.where(difference == 0, 0.0, difference / allowed)
    equal = exact | (left == right)
    if equal_nan:
        equal = equal | (onp.isnan(left) & onp.isnan(right))
    excess = onp.where(equal, 0.0, excess)
    found: NDArray[onp.float64] = onp.where(onp.isnan(excess), onp.inf, excess)
    return found


def almost_equal(
    a: Any,
    b: Any,
    rtol: Tolerance = None,
    atol: Tolerance = None,
    equal_nan: bool = False,
    use_broadcast: bool = True,
) -> bool:
    """Whether ``abs(a - b) <= atol + rtol * abs(b)`` everywhere.

    Parameters
    ----------
    a, b : array_like
    rtol, atol : float, mapping of dtype names to float, or None
        By default those of the less exact dtype.
    equal_nan : bool
        Let NaN equal NaN.
    use_broadcast : bool
        Let shapes differ if they broadcast.

    Returns
    -------
    bool
    """
    rtol, atol = get_tols(a, b, rtol, atol)
    left, right = _host(a), _host(b)
    if not use_broadcast and left.shape != right.shape:
        return False
    return bool((_excess(left, right, rtol, atol, equal_nan) <= 1).all())


def assert_almost_equal(
    a: Any,
    b: Any,
    rtol: Tolerance = None,
    atol: Tolerance = None,
    names: tuple[str, str] = ("a", "b"),
    equal_nan: bool = False,
    use_broadcast: bool = True,
    mismatches: tuple[int, int] = (10, 10),
) -> None:
    """Check that ``abs(a - b) <= atol + rtol * abs(b)`` everywhere.

    Parameters
    ----------
    a, b : array_like
    rtol, atol : float, mapping of dtype names to float, or None
        By default those of the less exact dtype.
    names : tuple of str
        For the message.
    equal_nan : bool
        Let NaN equal NaN.
    use_broadcast : bool
        Let shapes differ if they broadcast.
    mismatches : tuple of int
        How many of the worst elements the message shows; the first number counts.

    Raises
    ------
    AssertionError
        With the number of wrong elements, and the place, values and difference of the worst ones.
    """
    rtol, atol = get_tols(a, b, rtol, atol)
    left, right = _host(a), _host(b)
    if left.shape != right.shape:
        if not use_broadcast:
            raise AssertionError(f"{names[0]} has shape {left.shape}, {names[1]} has shape {right.shape}")
        try:
            onp.broadcast_shapes(left.shape, right.shape)
        except ValueError as error:
            raise AssertionError(
                f"{names[0]} of shape {left.shape} and {names[1]} of shape {right.shape} do not broadcast"
            ) from error
    excess = _excess(left, right, rtol, atol, equal_nan)
    wrong = int((excess > 1).sum())
    if not wrong:
        return
    left, right = onp.broadcast_to(left, excess.shape), onp.broadcast_to(right, excess.shape)
    lines = [
        f"{wrong} of {excess.size} elements differ by more than atol={atol:g} + rtol={rtol:g} * abs({names[1]}), "
        "the worst first:"
    ]
    for flat in excess.ravel().argsort(kind="stable")[::-1][: min(wrong, max(mismatches[0], 1))]:
        place = tuple(int(i) for i in onp.unravel_index(flat, excess.shape))
        lines.append(
            f"  {place}: {names[0]}={left[place]!r} {names[1]}={right[place]!r} "
            f"({excess[place]:.4g} times what is allowed)"
        )
    raise AssertionError("\n".join(lines))


def assert_allclose(a: Any, b: Any, rtol: float = 1e-7, atol: float = 0, equal_nan: bool = True) -> None:
    """As `assert_almost_equal`, with NumPy's defaults.

    Parameters
    ----------
    a, b : array_like
    rtol, atol : float
    equal_nan : bool
        Let NaN equal NaN.

    Raises
    ------
    AssertionError
        If elements differ by more than is allowed.
    """
    assert_almost_equal(a, b, rtol, atol, equal_nan=equal_nan)


def assert_almost_equal_ignore_nan(
    a: Any, b: Any, rtol: Tolerance = None, atol: Tolerance = None, names: tuple[str, str] = ("a", "b")
) -> None:
    """As `assert_almost_equal`, but elements that are NaN in either array do not count.

    Parameters
    ----------
    a, b : array_like, same shape
    rtol, atol : float, mapping of dtype names to float, or None
    names : tuple of str

    Raises
    ------
    AssertionError
        If elements differ by more than is allowed.
    """
    rtol, atol = get_tols(a, b, rtol, atol)
    left, right = _host(a), _host(b)
    counted = ~(onp.isnan(left) | onp.isnan(right))
    assert_almost_equal(left[counted], right[counted], rtol, atol, names)


def assert_exception(f: Callable[..., Any], exception_type: type[BaseException], *args: Any, **kwargs: Any) -> None:
    """Check that a call raises, now or when its result is waited for.

    Parameters
    ----------
    f : callable
    exception_type : exception class
    *args, **kwargs
        Arguments of `f`.

    Raises
    ------
    AssertionError
        If nothing is raised.
    """
    try:
        result = f(*args, **kwargs)
        if isinstance(result, ndarray):
            result.wait_to_read()
    except exception_type:
        return
    raise AssertionError(f"{f!r} did not raise {exception_type.__name__}")


def compare_ndarray_tuple(t1: Any, t2: Any, rtol: Tolerance = None, atol: Tolerance = None) -> None:
    """As `assert_almost_equal`, for arrays in nested tuples or lists.

    Parameters
    ----------
    t1, t2 : None, array_like, or tuple or list of these
    rtol, atol : float, mapping of dtype names to float, or None

    Raises
    ------
    AssertionError
        If the nesting differs, or elements differ by more than is allowed.
    """
    if isinstance(t1, tuple | list):
        if not isinstance(t2, tuple | list) or len(t1) != len(t2):
            raise AssertionError(f"a sequence of {len(t1)} is compared with {type(t2).__name__}")
        for left, right in zip(t1, t2, strict=True):
            compare_ndarray_tuple(left, right, rtol, atol)
    elif t1 is None or t2 is None:
        if t1 is not t2:
            raise AssertionError(f"{type(t1).__name__} is compared with {type(t2).__name__}")
    else:
        assert_almost_equal(t1, t2, rtol, atol)


# ---- random data ----


def _below(limit: int) -> int:
    """A random whole number from 0 to ``limit - 1``."""
    return int(np.random.randint(0, limit, size=(1,)).asnumpy()[0])


def rand_shape_2d(dim0: int = 10, dim1: int = 10, allow_zero_size: bool = False) -> tuple[int, ...]:
    """A random shape of two axes, sizes from 1 (or 0) to the given ones."""
    return _rand_shape((dim0, dim1), allow_zero_size)


def rand_shape_3d(dim0: int = 10, dim1: int = 10, dim2: int = 10, allow_zero_size: bool = False) -> tuple[int, ...]:
    """A random shape of three axes, sizes from 1 (or 0) to the given ones."""
    return _rand_shape((dim0, dim1, dim2), allow_zero_size)


def rand_shape_nd(num_dim: int, dim: int = 10, allow_zero_size: bool = False) -> tuple[int, ...]:
    """A random shape of `num_dim` axes, sizes from 1 (or 0) to `dim`."""
    return _rand_shape((dim,) * num_dim, allow_zero_size)


def _rand_shape(limits: Sequence[int], allow_zero_size: bool) -> tuple[int, ...]:
    low = 0 if allow_zero_size else 1
    return tuple(low + _below(limit - low + 1) for limit in limits)


def rand_ndarray(
    shape: Sequence[int],
    stype: str = "default",
    dtype: DTypeLike | None = None,
    distribution: str | None = None,
    device: Device | None = None,
) -> ndarray:
    """A random array.

    Parameters
    ----------
    shape : sequence of int
    stype : {"default"}
        Storage; only dense storage exists.
    dtype : dtype, optional
        float32 by default.
    distribution : {"uniform", "normal"}, optional
        Uniform in [-1, 1) by default.
    device : Device, optional
        `default_device` by default.

    Returns
    -------
    ndarray, shape `shape`

    Raises
    ------
    ValueError
        If `stype` or `distribution` is unknown.
    """
    if stype != "default":
        raise ValueError(f"`stype` must be 'default', found {stype!r}")
    name = "float32" if dtype is None else dtype_name(dtype)
    where = default_device() if device is None else device
    drawn = "float64" if name == "float64" else "float32"
    if distribution in (None, "uniform"):
        values = np.random.uniform(-1.0, 1.0, size=tuple(shape), dtype=drawn, device=where)
    elif distribution == "normal":
        values = np.random.normal(0.0, 1.0, size=tuple(shape), dtype=drawn, device=where)
    else:
        raise ValueError(f"`distribution` must be 'uniform' or 'normal', found {distribution!r}")
    return values if name == drawn else values.astype(name)


def random_arrays(*shapes: Sequence[int]) -> Any:
    """NumPy arrays of normal random numbers, float32.

    Parameters
    ----------
    *shapes : sequence of int

    Returns
    -------
    numpy.ndarray or list of numpy.ndarray
        One array for one shape.
    """
    arrays = [rand_ndarray(shape, distribution="normal").asnumpy() for shape in shapes]
    return arrays[0] if len(arrays) == 1 else arrays


def random_uniform_arrays(*shapes: Sequence[int], low: float = 0.0, high: float = 1.0) -> list[NDArray[Any]]:
    """NumPy arrays of uniform random numbers, float32.

    Parameters
    ----------
    *shapes : sequence of int
    low, high : float
        Range.

    Returns
    -------
    list of numpy.ndarray
    """
    return [np.random.uniform(low, high, size=tuple(shape)).asnumpy() for shape in shapes]


def random_sample(population: Sequence[Any], k: int) -> list[Any]:
    """Different entries of a sequence, in their order.

    Parameters
    ----------
    population : sequence
    k : int
        How many.

    Returns
    -------
    list

    Raises
    ------
    ValueError
        If there are less.
    """
    if not 0 <= k <= len(population):
        raise ValueError(f"`k` must be from 0 to {len(population)}, found {k}")
    keys = np.random.uniform(0.0, 1.0, size=(len(population),), dtype="float64").asnumpy()
    return [population[i] for i in sorted(keys.argsort(kind="stable")[:k].tolist())]


def np_reduce(
    dat: NDArray[Any],
    axis: int | Sequence[int] | None,
    keepdims: bool,
    numpy_reduce_func: Callable[..., Any],
) -> Any:
    """Reduce a NumPy array axis by axis, with a function that takes one axis only.

    Parameters
    ----------
    dat : numpy.ndarray
    axis : int, sequence of int or None
        None reduces all.
    keepdims : bool
        Keep reduced axes with length 1.
    numpy_reduce_func : callable of an array and ``axis``

    Returns
    -------
    numpy.ndarray
    """
    axes = range(dat.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    chosen = sorted({number % dat.ndim for number in axes}, reverse=True)
    result = dat
    for number in chosen:
        result = numpy_reduce_func(result, axis=number)
    if keepdims:
        result = result.reshape([1 if number in chosen else size for number, size in enumerate(dat.shape)])
    return result


# ---- gradients and optimizers ----


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
        host = _host(value)
        if host.dtype.kind == "f":
            arguments[name] = checked[name] = np.array(host, dtype="float64")
        else:
            arguments[name] = value if isinstance(value, ndarray) else np.array(host)
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
        for place in itertools.product(*(range(size) for size in start.shape)):
            sides = []
            for step in (numeric_eps, -numeric_eps):
                moved = start.copy()
                moved[place] += step
                with autograd.pause():
                    array[...] = np.array(moved, dtype="float64")
                sides.append(current_value())
            numeric[place] = (sides[0] - sides[1]) / (2 * numeric_eps)
        with autograd.pause():
            array[...] = np.array(start, dtype="float64")
        assert_almost_equal(symbolic, numeric, rtol, atol, (f"gradient of {name}", "central difference"))


def compare_optimizer(
    opt1: Any,
    opt2: Any,
    shapes: Sequence[Sequence[int]],
    dtype: DTypeLike,
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
    rtol, atol : float or mapping of dtype names to float
    compare_states : bool
        Compare the states, too.

    Raises
    ------
    AssertionError
        If weights or states differ by more than is allowed.
    """
    indices = list(range(len(shapes)))
    first = [rand_ndarray(shape, dtype=dtype) for shape in shapes]
    second = [np.array(weight, dtype=weight.dtype) for weight in first]
    grads = [rand_ndarray(shape, dtype=dtype) for shape in shapes]
    states = []
    for optimizer, weights in ((opt1, first), (opt2, second)):
        made = [optimizer.create_state_multi_precision(i, weight) for i, weight in zip(indices, weights, strict=True)]
        optimizer.update_multi_precision(indices, weights, [np.array(g, dtype=g.dtype) for g in grads], made)
        states.append(made)
    compare_ndarray_tuple(first, second, rtol, atol)
    if compare_states:
        compare_ndarray_tuple(states[0], states[1], rtol, atol)


# ---- surroundings ----


@contextlib.contextmanager
def environment(*args: Any) -> Iterator[None]:
    """Other environment variables inside a ``with`` block.

    Parameters
    ----------
    *args : name and value, or one mapping of names to values
        None removes a variable.

    Raises
    ------
    ValueError
        If there are neither one nor two arguments.
    """
    if len(args) == 1:
        changes = dict(args[0])
    elif len(args) == 2:
        changes = {args[0]: args[1]}
    else:
        raise ValueError(f"a name and a value or one mapping is needed, found {len(args)} arguments")
    before = {name: os.environ.get(name) for name in changes}
    try:
        _set_environment(changes)
        yield
    finally:
        _set_environment(before)


def _set_environment(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = str(value)


def retry(n: int) -> Callable[[F], F]:
    """Decorator for a statistical test: run it until it passes, at most `n` times.

    Parameters
    ----------
    n : int
        At least 1.

    Returns
    -------
    decorator

    Raises
    ------
    ValueError
        If `n` is below 1.
    """
    if n < 1:
        raise ValueError(f"`n` must be at least 1, found {n}")

    def decorate(test: F) -> F:
        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> Any:
            for _ in range(n - 1):
                with contextlib.suppress(AssertionError):
                    return test(*args, **kwargs)
            return test(*args, **kwargs)

        return run  # type: ignore[return-value]  # the wrapper has the test's signature, which a TypeVar cannot say

    return decorate
