"""Gradients in one or two bits an element, with the error kept and added to the next gradient."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as onp

from mxnet import autograd
from mxnet import numpy as np
from mxnet.base import dtype_name
from mxnet.error import UnsupportedError
from mxnet.numpy import ndarray

__all__ = ["Compression"]

_BITS = {"1bit": 1, "2bit": 2}


class Compression:
    """Quantises gradients to two or three values.

    With two bits, an element of at least `threshold` becomes `threshold`, one of at most ``-threshold`` becomes
    ``-threshold``, and all others 0. With one bit, an element above `threshold` becomes 1, and all others -1. What the
    element loses by this, its residual, is added to the next gradient of the same key.

    Parameters
    ----------
    params : mapping
        ``type``: ``'1bit'`` or ``'2bit'``. ``threshold``: a number, by default 0.5; positive for two bits.

    Raises
    ------
    TypeError
        If `params` is no mapping.
    ValueError
        If a parameter is unknown or out of range.

    Notes
    -----
    Seide et al., "1-Bit Stochastic Gradient Descent and its Application to Data-Parallel Distributed Training of
    Speech DNNs", Interspeech 2014, introduce the residual.
    """

    def __init__(self, params: Mapping[str, Any]) -> None:
        if not isinstance(params, Mapping):
            raise TypeError(f"set_gradient_compression: a mapping is needed, found {type(params).__name__}")
        unknown = sorted(set(params) - {"type", "threshold"})
        if unknown:
            raise ValueError(f"set_gradient_compression: unknown parameters {unknown}; known are 'type', 'threshold'")
        if params.get("type") not in _BITS:
            found = params.get("type")
            raise ValueError(f"set_gradient_compression: `type` must be '1bit' or '2bit', found {found!r}")
        self.type = str(params["type"])
        self.threshold = float(params.get("threshold", 0.5))
        if not math.isfinite(self.threshold) or (self.type == "2bit" and self.threshold <= 0):
            raise ValueError(
                "set_gradient_compression: `threshold` must be a finite number, and positive for '2bit', "
                f"found {self.threshold}"
            )
        self._residuals: dict[Any, ndarray] = {}

    def __repr__(self) -> str:
        return f"Compression({self.type!r}, threshold={self.threshold})"

    def quantize(self, key: Any, gradient: ndarray) -> ndarray:
        """The quantised gradient. Keeps the difference for the next one of this key.

        Parameters
        ----------
        key : hashable
            Names the residual.
        gradient : ndarray of float32, shape (...)

        Returns
        -------
        ndarray of float32, shape (...)

        Raises
        ------
        mxnet.error.UnsupportedError
            If the gradient is not float32.
        """
        found = dtype_name(gradient.dtype)
        if found != "float32":
            raise UnsupportedError(f"compression: only float32 is compressed, but key {key!r} has dtype {found}")
        with autograd.pause():
            residual = self._residuals.get(key)
            if residual is None or residual.shape != gradient.shape or residual.device != gradient.device:
                residual = self._residuals[key] = np.zeros_like(gradient)
            residual += gradient
            step = self.threshold
            if self.type == "1bit":
                values: ndarray = np.where(residual > step, np.float32(1), np.float32(-1))
            else:
                lower = np.where(residual <= -step, np.float32(-step), np.float32(0))
                values = np.where(residual >= step, np.float32(step), lower)
            residual -= values
            return values

    def pack(self, values: ndarray) -> onp.ndarray[Any, Any]:
        """The bits of quantised values, the first element in the highest bits of the first byte.

        Parameters
        ----------
        values : ndarray of float32, shape (...)
            Made by `quantize`.

        Returns
        -------
        numpy.ndarray of uint8, shape (num_bytes(values.size),)
        """
        flat = values.asnumpy().ravel()
        if self.type == "1bit":
            return onp.packbits(flat > 0)
        # 11 is the positive value, 10 the negative one, 00 is zero.
        return onp.packbits(onp.stack([flat != 0, flat > 0], axis=1))

    def num_bytes(self, n: int) -> int:
        """Length of the bits of `n` values.

        Parameters
        ----------
        n : int

        Returns
        -------
        int
        """
        return -(-n * _BITS[self.type] // 8)

    def unpack(self, codes: onp.ndarray[Any, Any], n: int) -> onp.ndarray[Any, Any]:
        """The values that `pack` was given, flat.

        Parameters
        ----------
        codes : numpy.ndarray of uint8, shape (num_bytes(n),)
        n : int

        Returns
        -------
        numpy.ndarray of float32, shape (n,)
        """
        if self.type == "1bit":
            return onp.where(onp.unpackbits(codes, count=n), onp.float32(1), onp.float32(-1))
        bits = onp.unpackbits(codes, count=2 * n).reshape(n, 2)
        step = onp.float32(self.threshold)
        return onp.where(bits[:, 0], onp.where(bits[:, 1], step, -step), onp.float32(0))
