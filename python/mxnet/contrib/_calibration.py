"""Ranges of the values in a network, collected while it predicts."""

from __future__ import annotations

import abc
import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet._core import ndarray

__all__ = ["CalibrationCollector", "EntropyCollector", "MinMaxCollector"]

Range = tuple[float, float]

# Bins of a histogram before it is extended; odd, so that one bin is around 0.
_BINS = 8001
_LEVELS = 255


class CalibrationCollector(abc.ABC):
    """Collects the ranges of values that `quantize_net` quantises; the base of collectors for ``calib_mode="custom"``.

    Attributes
    ----------
    include_layers : list of str or None
        Names of the values to collect; `quantize_net` sets them if they are None.
    min_max_dict : dict of str to (float, float)
        The ranges.

    Examples
    --------
    >>> class Largest(mx.contrib.quantization.CalibrationCollector):
    ...     def collect(self, name, op_name, arr):
    ...         most = max(float(np.abs(arr).max()), self.min_max_dict.get(name, (0.0, 0.0))[1])
    ...         self.min_max_dict[name] = (-most, most)
    """

    def __init__(self) -> None:
        self.include_layers: list[str] | None = None
        self.min_max_dict: dict[str, Range] = {}

    @abc.abstractmethod
    def collect(self, name: str, op_name: str, arr: ndarray) -> None:
        """Take note of a value.

        Parameters
        ----------
        name : str
            Name of the value: that of the layer with ``_output``, or that of an argument.
        op_name : str
            The operator that made it; empty for arguments.
        arr : ndarray
            The value for a batch.
        """

    def post_collect(self) -> Mapping[str, Range]:
        """The ranges, when all batches were collected.

        Returns
        -------
        mapping of str to (float, float)
            The smallest and the largest number to represent, by name.
        """
        return self.min_max_dict


class MinMaxCollector(CalibrationCollector):
    """The smallest and the largest element of each value."""

    def collect(self, name: str, op_name: str, arr: ndarray) -> None:
        low, high = float(arr.min()), float(arr.max())
        old = self.min_max_dict.get(name, (low, high))
        self.min_max_dict[name] = (min(old[0], low), max(old[1], high))


class _Histogram(NamedTuple):
    counts: ndarray
    bound: float  # the histogram reaches from -bound to bound
    low: float
    high: float


class EntropyCollector(CalibrationCollector):
    """The thresholds at which histograms lose the least information.

    Parameters
    ----------
    quantized_dtype : {'int8', 'uint8', 'auto'}
    logger : logging.Logger, optional
    """

    def __init__(self, quantized_dtype: str, logger: logging.Logger | None = None) -> None:
        super().__init__()
        self._dtype, self._logger = quantized_dtype, logger
        self._histograms: dict[str, _Histogram] = {}

    def collect(self, name: str, op_name: str, arr: ndarray) -> None:
        x = arr.reshape(-1)
        low, high = float(x.min()), float(x.max())
        bound = max(abs(low), abs(high))
        old = self._histograms.get(name)
        if old is None:
            self._histograms[name] = _Histogram(_counted(x, _BINS, bound), bound, low, high)
            return
        low, high, counts = min(low, old.low), max(high, old.high), old.counts
        if old.bound == 0:
            # So far there were zeros only, which belong to the bin in the middle.
            wide = _counted(x, _BINS, bound)
            wide[_BINS // 2] += counts.sum()
            self._histograms[name] = _Histogram(wide, bound, low, high)
            return
        if bound <= old.bound:
            self._histograms[name] = _Histogram(counts + _counted(x, counts.size, old.bound), old.bound, low, high)
            return
        # Bins of the same width are added on both sides.
        width = 2 * old.bound / counts.size
        added = int((bound - old.bound) // width) + 1
        bound = old.bound + added * width
        wide = _counted(x, counts.size + 2 * added, bound)
        wide[added:-added] += counts
        self._histograms[name] = _Histogram(wide, bound, low, high)

    def post_collect(self) -> Mapping[str, Range]:
        for name, (counts, bound, low, high) in self._histograms.items():
            is_unsigned = low >= 0 and self._dtype in ("auto", "uint8")
            # One half of the levels is for negative numbers, which there are none of.
            levels = 2 * _LEVELS + 1 if is_unsigned else _LEVELS
            edges = np.linspace(-bound, bound, counts.size + 1)
            threshold, divergence = (
                float(x[0]) for x in npx.contrib_calibrate_entropy(counts, edges, num_quantized_bins=levels)
            )
            self.min_max_dict[name] = (0.0 if is_unsigned else -threshold, threshold)
            if self._logger is not None:
                self._logger.debug(
                    "%s: from %g to %g, threshold %g, divergence %g", name, low, high, threshold, divergence
                )
        return self.min_max_dict


def _counted(x: ndarray, bins: int, bound: float) -> ndarray:
    """Counts of `bins` bins from ``-bound`` to `bound`, float32."""
    reach = bound if bound > 0 else 1.0
    return np.histogram(x, bins=bins, range=(-reach, reach))[0].astype("float32")


def missing(ranges: Mapping[str, Range], names: Sequence[str]) -> list[str]:
    """Names without a range.

    Parameters
    ----------
    ranges : mapping of str to (float, float)
    names : sequence of str

    Returns
    -------
    list of str
    """
    return [name for name in names if name not in ranges]
