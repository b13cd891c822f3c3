"""Default devices, dtypes and tolerances of tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as onp

from mxnet.base import DTypeLike, dtype_name
from mxnet.device import Device, current_device

__all__ = [
    "Tolerance",
    "default_atols",
    "default_device",
    "default_dtype",
    "default_numeric_eps",
    "default_rtols",
    "effective_dtype",
    "get_atol",
    "get_etol",
    "get_rtol",
    "get_tolerance",
    "get_tols",
    "set_default_device",
]

Tolerance = float | Mapping[str, float] | None

# MXNet 2's values, which programs rely on; bfloat16 has three bits fewer than float16.
_RTOLS = {"float16": 1e-2, "bfloat16": 5e-2, "float32": 1e-4, "float64": 1e-5, "complex64": 1e-4, "complex128": 1e-5}
_ATOLS = {"float16": 1e-1, "bfloat16": 1e-1, "float32": 1e-3, "float64": 1e-20, "complex64": 1e-3, "complex128": 1e-20}
_EPS = {"float16": 1e-1, "float32": 1e-3, "float64": 1e-4}


_default_device: Device | None = None


def default_device() -> Device:
    """The device that tests use: the one set by `set_default_device`, else the current one.

    Returns
    -------
    Device

    Examples
    --------
    >>> mx.test_utils.default_device()
    cpu(0)
    """
    return current_device() if _default_device is None else _default_device


def set_default_device(device: Device | None) -> None:
    """Choose the device that tests use.

    Parameters
    ----------
    device : Device or None
        None goes back to the current device.

    Examples
    --------
    >>> mx.test_utils.set_default_device(mx.cpu(1))
    >>> mx.test_utils.default_device()
    cpu(1)
    >>> mx.test_utils.set_default_device(None)
    """
    global _default_device
    _default_device = device


def default_dtype() -> Any:
    """The dtype that tests use, float32.

    Returns
    -------
    dtype

    Examples
    --------
    >>> np.dtype(mx.test_utils.default_dtype())
    dtype('float32')
    """
    return onp.float32


def default_rtols() -> dict[str, float]:
    """Relative tolerance of each dtype, by name; 0 for those that are not listed.

    Returns
    -------
    dict of str to float

    Examples
    --------
    >>> mx.test_utils.default_rtols()['float64'] < mx.test_utils.default_rtols()['float16']
    True
    """
    return dict(_RTOLS)


def default_atols() -> dict[str, float]:
    """Absolute tolerance of each dtype, by name; 0 for those that are not listed.

    Returns
    -------
    dict of str to float

    Examples
    --------
    >>> mx.test_utils.default_atols()['float64'] < mx.test_utils.default_atols()['float16']
    True
    """
    return dict(_ATOLS)


def default_numeric_eps() -> dict[str, float]:
    """Step of numeric differentiation for each dtype, by name.

    Returns
    -------
    dict of str to float

    Examples
    --------
    >>> mx.test_utils.default_numeric_eps()['float64'] < mx.test_utils.default_numeric_eps()['float32']
    True
    """
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

    Examples
    --------
    >>> mx.test_utils.effective_dtype(np.ones(2))
    dtype('float32')
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

    Examples
    --------
    >>> mx.test_utils.get_tolerance(np.ones(2), None, {'float32': 1e-4, 'float64': 1e-8})
    0.0001
    """
    if tol is not None and not isinstance(tol, Mapping):
        return float(tol)
    table = default_tol if tol is None else {dtype_name(key): value for key, value in tol.items()}
    return table.get(dtype_name(effective_dtype(dat)), 0.0)


def get_rtol(rtol: Tolerance = None, dtype: DTypeLike = "float64") -> float:
    """The relative tolerance of a dtype, unless `rtol` is given.

    Parameters
    ----------
    rtol : float, mapping of dtype names to float, or None
        What is used if it is given.
    dtype : dtype
        Whose tolerance is asked for.

    Returns
    -------
    float

    Examples
    --------
    >>> mx.test_utils.get_rtol(1e-3), mx.test_utils.get_rtol({'float32': 1e-4}, 'float32')
    (0.001, 0.0001)
    """
    table = _RTOLS if rtol is None else rtol
    return table.get(dtype_name(dtype), 0.0) if isinstance(table, Mapping) else float(table)


def get_etol(etol: float | None = None) -> float:
    """Share of the elements that may differ.

    Parameters
    ----------
    etol : float, optional

    Returns
    -------
    float
        `etol`; 0 by default.

    Examples
    --------
    >>> mx.test_utils.get_etol(), mx.test_utils.get_etol(0.25)
    (0.0, 0.25)
    """
    return 0.0 if etol is None else etol


def get_atol(atol: Tolerance = None, dtype: DTypeLike = "float64") -> float:
    """The absolute tolerance of a dtype, unless `atol` is given.

    Parameters
    ----------
    atol : float, mapping of dtype names to float, or None
        What is used if it is given.
    dtype : dtype
        Whose tolerance is asked for.

    Returns
    -------
    float

    Examples
    --------
    >>> mx.test_utils.get_atol(1e-3), mx.test_utils.get_atol({'float32': 1e-4}, 'float32')
    (0.001, 0.0001)
    """
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

    Examples
    --------
    >>> mx.test_utils.get_tols(np.ones(2), np.ones(2), rtol=1e-3, atol=1e-5)
    (0.001, 1e-05)
    """
    return (
        max(get_tolerance(x, rtol, _RTOLS), get_tolerance(y, rtol, _RTOLS)),
        max(get_tolerance(x, atol, _ATOLS), get_tolerance(y, atol, _ATOLS)),
    )
