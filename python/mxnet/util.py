"""Switches between NumPy and classic semantics, and environment variables.

Arrays always behave as NumPy's do, zero-size and zero-dimensional shapes included, so the *shape* and *array* switches
that older programs use are constants here. Only the default dtype (float32 or NumPy's float64) can be switched.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from mxnet import _core
from mxnet._renamed import attribute_finder
from mxnet.device import Device, gpu_memory_info, num_gpus

__all__ = [
    "default_array",
    "get_cuda_compute_capability",
    "get_gpu_count",
    "get_gpu_memory",
    "getenv",
    "is_np_array",
    "is_np_default_dtype",
    "is_np_shape",
    "np_array",
    "np_default_dtype",
    "np_shape",
    "set_module",
    "set_np",
    "set_np_default_dtype",
    "set_np_shape",
    "setenv",
    "use_np",
    "use_np_array",
    "use_np_default_dtype",
    "use_np_shape",
]

__getattr__ = attribute_finder(__name__)

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def _refuse(switch: str) -> ValueError:
    return ValueError(f"`{switch}` cannot be turned off: arrays always have NumPy semantics")


def is_np_shape() -> bool:
    """True: shapes may hold zeros and may be empty, as in NumPy.

    Returns
    -------
    bool

    Examples
    --------
    >>> mx.is_np_shape()
    True
    """
    return True


def is_np_array() -> bool:
    """True: arrays are `mxnet.numpy.ndarray`.

    Returns
    -------
    bool

    Examples
    --------
    >>> mx.is_np_array()
    True
    """
    return True


def is_np_default_dtype() -> bool:
    """Whether Python floats become float64, as in NumPy, and not float32.

    Returns
    -------
    bool

    Examples
    --------
    >>> mx.util.is_np_default_dtype()
    False
    """
    return _core.numpy_promotion()


def set_np_default_dtype(is_np_default_dtype: bool = True) -> bool:
    """Choose the dtype of Python floats and the promotion rules that go with it.

    Parameters
    ----------
    is_np_default_dtype : bool
        True for NumPy's rules (float64), False for float32.

    Returns
    -------
    bool
        The setting before.

    Examples
    --------
    >>> before = mx.util.set_np_default_dtype(True)
    >>> np.zeros(1).dtype, mx.util.set_np_default_dtype(before)
    (dtype('float64'), True)
    """
    return bool(_core.set_numpy_promotion(is_np_default_dtype))


def set_np_shape(active: bool) -> bool:
    """Ask for NumPy shapes, which are always on.

    Parameters
    ----------
    active : bool
        Must be True.

    Returns
    -------
    bool
        True, the setting before.

    Raises
    ------
    ValueError
        If `active` is False.

    Examples
    --------
    >>> mx.util.set_np_shape(True)
    True
    """
    if not active:
        raise _refuse("active")
    return True


def set_np(shape: bool = True, array: bool = True, dtype: bool = False) -> None:
    """Ask for NumPy semantics.

    Parameters
    ----------
    shape, array : bool
        Must be True: these semantics are always on.
    dtype : bool
        True for NumPy's default dtype (float64), False for float32.

    Raises
    ------
    ValueError
        If `shape` or `array` is False.

    Examples
    --------
    >>> npx.set_np(dtype=True)
    >>> np.array([0.5]).dtype
    dtype('float64')
    >>> npx.set_np()
    >>> np.array([0.5]).dtype
    dtype('float32')
    """
    if not shape:
        raise _refuse("shape")
    if not array:
        raise _refuse("array")
    set_np_default_dtype(dtype)


@contextlib.contextmanager
def np_default_dtype(active: bool = True) -> Iterator[None]:
    """The default dtype of NumPy (or of this package) inside a ``with`` block.

    Parameters
    ----------
    active : bool
        True for float64, False for float32.

    Returns
    -------
    context manager

    Examples
    --------
    >>> with mx.util.np_default_dtype():
    ...     np.ones(1).dtype
    dtype('float64')
    >>> np.ones(1).dtype
    dtype('float32')
    """
    previous = set_np_default_dtype(active)
    try:
        yield
    finally:
        set_np_default_dtype(previous)


def np_shape(active: bool = True) -> contextlib.AbstractContextManager[None]:
    """NumPy shapes, which are always on, inside a ``with`` block.

    Parameters
    ----------
    active : bool
        Must be True.

    Returns
    -------
    context manager

    Raises
    ------
    ValueError
        If `active` is False.

    Examples
    --------
    >>> with mx.util.np_shape():
    ...     np.zeros((0, 2)).shape
    (0, 2)
    """
    set_np_shape(active)
    return contextlib.nullcontext()


def np_array(active: bool = True) -> contextlib.AbstractContextManager[None]:
    """NumPy arrays, which are always on, inside a ``with`` block.

    Parameters
    ----------
    active : bool
        Must be True.

    Returns
    -------
    context manager

    Raises
    ------
    ValueError
        If `active` is False.

    Examples
    --------
    >>> with mx.util.np_array():
    ...     mx.util.is_np_array()
    True
    """
    if not active:
        raise _refuse("active")
    return contextlib.nullcontext()


def use_np_shape(func: T) -> T:
    """Mark a function or class as using NumPy shapes; returns it unchanged, they are always on.

    Parameters
    ----------
    func : function or class
        What is marked.

    Returns
    -------
    function or class
        `func` itself.

    Examples
    --------
    >>> @mx.util.use_np_shape
    ... def none():
    ...     return np.zeros((0, 2))
    >>> none().shape
    (0, 2)
    """
    return func


def use_np_array(func: T) -> T:
    """Mark a function or class as using NumPy arrays; returns it unchanged, they are always on.

    Parameters
    ----------
    func : function or class
        What is marked.

    Returns
    -------
    function or class
        `func` itself.

    Examples
    --------
    >>> @mx.util.use_np_array
    ... def double(x):
    ...     return 2 * x
    >>> double(np.ones(2))
    array([2., 2.])
    """
    return func


def use_np(func: T) -> T:
    """Mark a function or class as using NumPy semantics; returns it unchanged, they are always on.

    Parameters
    ----------
    func : function or class
        What is marked.

    Returns
    -------
    function or class
        `func` itself.

    Examples
    --------
    >>> @mx.util.use_np
    ... def double(x):
    ...     return 2 * x
    >>> double(np.ones(2))
    array([2., 2.])
    """
    return func


def use_np_default_dtype(func: F) -> F:
    """Make a function run with NumPy's default dtype, float64.

    Parameters
    ----------
    func : function

    Returns
    -------
    function
        `func` inside ``np_default_dtype(True)``.

    Raises
    ------
    TypeError
        If `func` is a class: decorate its methods.

    Examples
    --------
    >>> @mx.util.use_np_default_dtype
    ... def one():
    ...     return np.ones(1).dtype
    >>> one()
    dtype('float64')
    """
    if isinstance(func, type):
        raise TypeError(f"use_np_default_dtype takes a function, found the class {func.__name__}: decorate its methods")

    @functools.wraps(func)
    def run(*args: Any, **kwargs: Any) -> Any:
        with np_default_dtype(True):
            return func(*args, **kwargs)

    return run  # type: ignore[return-value]  # the wrapper has `func`'s signature, which a TypeVar cannot say


def set_module(module: str | None) -> Callable[[T], T]:
    """Decorator that states the public module of a function or class.

    Parameters
    ----------
    module : str or None
        New ``__module__``; None leaves it.

    Returns
    -------
    decorator

    Examples
    --------
    >>> @mx.util.set_module('somewhere')
    ... def function():
    ...     pass
    >>> function.__module__
    'somewhere'
    """

    def decorate(obj: T) -> T:
        if module is not None:
            obj.__module__ = module
        return obj

    return decorate


def getenv(name: str) -> str | None:
    """Value of an environment variable.

    Parameters
    ----------
    name : str

    Returns
    -------
    str or None
        None if it is not set.

    Examples
    --------
    >>> mx.util.setenv('MXNET_EXAMPLE', 'on')
    >>> mx.util.getenv('MXNET_EXAMPLE')
    'on'
    >>> mx.util.setenv('MXNET_EXAMPLE', None)
    """
    return os.environ.get(name)


def setenv(name: str, value: str | None) -> None:
    """Set an environment variable of this process.

    Parameters
    ----------
    name : str
    value : str or None
        None removes the variable.

    Examples
    --------
    >>> mx.util.setenv('MXNET_EXAMPLE', 'on')
    >>> mx.util.getenv('MXNET_EXAMPLE')
    'on'
    >>> mx.util.setenv('MXNET_EXAMPLE', None)
    """
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def get_gpu_count() -> int:
    """Number of graphics processors that arrays can be made on.

    Returns
    -------
    int

    Examples
    --------
    >>> mx.util.get_gpu_count() == mx.num_gpus()
    True
    """
    return num_gpus()


def get_gpu_memory(gpu_dev_id: int) -> tuple[int, int]:
    """Free and total memory of a graphics processor, in bytes: `mx.device.gpu_memory_info`.

    Parameters
    ----------
    gpu_dev_id : int

    Returns
    -------
    (int, int)

    Raises
    ------
    mxnet.error.DeviceError
        If there is no such device.

    Examples
    --------
    >>> [mx.util.get_gpu_memory(i)[1] for i in range(mx.num_gpus())]
    []
    """
    return gpu_memory_info(gpu_dev_id)


def get_cuda_compute_capability(device: Device) -> int | None:
    """Compute capability of a graphics processor.

    Parameters
    ----------
    device : Device

    Returns
    -------
    int or None
        10 times the major number plus the minor one, such as 90; None for a device that is no GPU of this machine.

    Raises
    ------
    ValueError
        If `device` is no `Device`.

    Examples
    --------
    >>> mx.util.get_cuda_compute_capability(mx.cpu()) is None
    True
    """
    if not isinstance(device, Device):
        raise ValueError(f"get_cuda_compute_capability: `device` must be a Device, not {type(device).__name__!r}")
    if device.device_type != "gpu" or device.device_id >= num_gpus():
        return None
    major, minor = _core.cuda_devices()[device.device_id][1]
    return 10 * int(major) + int(minor)


def default_array(source_array: Any, device: Device | None = None, dtype: Any = None) -> Any:
    """Make an array from an array-like.

    Parameters
    ----------
    source_array : array_like, any shape
    device : Device, optional
        The current device by default.
    dtype : dtype, optional
        By default float32 for Python floats, else the source's.

    Returns
    -------
    ndarray
        Of the source's shape.

    Examples
    --------
    >>> mx.util.default_array([1, 2])
    array([1, 2])
    """
    from mxnet import numpy as np

    return np.array(source_array, dtype=dtype, device=device)
