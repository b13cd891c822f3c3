"""Values of a model while it runs: arrays, and numbers that operators need on the host, such as shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from mxnet import numpy as np
from mxnet.base import dtype_name
from mxnet.error import AbstractArrayError, UnsupportedError

__all__ = ["Value", "later", "numbers"]

_MISSING: Any = object()
# Constants with more elements are computed by operators, not on the host.
_MAX_SMALL = 64


class Value:
    """One value of a model: an array, and its elements as an array of NumPy where an operator asks for them.

    Both are computed at first use. A value is *static* if its elements follow from constants, parameters and shapes,
    so that they are known while a network is traced; other values are read from the device, which a trace refuses.

    Parameters
    ----------
    array : ndarray or list, optional
        The array, or the items of a sequence.
    make_array, make_host : callable, optional
        Compute the array and the array of NumPy.
    operands : sequence of Value, optional
        What the value is computed from, if that are constants and shapes alone.
    """

    __slots__ = ("_array", "_host", "_is_small", "_make_array", "_make_host", "_operands")

    def __init__(
        self,
        array: Any = _MISSING,
        make_array: Callable[[], Any] | None = None,
        make_host: Callable[[], Any] | None = None,
        operands: Sequence[Value] | None = None,
    ) -> None:
        self._array = array
        self._host: Any = _MISSING
        self._make_array = make_array
        self._make_host = make_host
        self._operands = operands
        self._is_small: bool | None = None

    @property
    def is_static(self) -> bool:
        return self._make_host is not None

    @property
    def is_small(self) -> bool:
        """Whether the value and all that it is computed from are constants of at most `_MAX_SMALL` elements."""
        if self._is_small is None:
            self._is_small = (
                self._operands is not None
                and all(operand.is_small for operand in self._operands)
                and self.host.size <= _MAX_SMALL
            )
        return self._is_small

    @property
    def array(self) -> Any:
        if self._array is _MISSING:
            assert self._make_array is not None, "a value has an array or computes it"
            if self._operands and self.is_small and self.host.size == 1:
                # A number that was computed from shapes: it may differ between traces for other sizes, where a
                # constant may not.
                host = self.host
                self._array = np.full(host.shape, host.reshape(()).item(), dtype=dtype_name(host.dtype))
            else:
                self._array = self._make_array()
        return self._array

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, without the array if that is not computed yet."""
        if self._array is _MISSING and self._make_host is not None:
            return numpy.shape(self.host)
        shape: tuple[int, ...] = self.array.shape
        return shape

    @property
    def host(self) -> numpy.ndarray:
        if self._host is _MISSING:
            if self._make_host is not None:
                self._host = numpy.asarray(self._make_host())
            else:
                try:
                    self._host = self.array.asnumpy()
                except AbstractArrayError as error:
                    raise UnsupportedError(
                        "the elements of an operand decide about shapes or about what is computed, and they depend on "
                        "the arguments of the network: such a network runs operator by operator, not hybridized"
                    ) from error
        found: numpy.ndarray = self._host
        return found


def later(
    count: int,
    make_arrays: Callable[[], Sequence[Any]],
    make_hosts: Callable[[], Sequence[Any]],
    operands: Sequence[Value],
) -> list[Value]:
    """Static values of one node, which are computed together.

    Parameters
    ----------
    count : int
        Number of values.
    make_arrays, make_hosts : callable
        Compute the arrays and the arrays of NumPy of all values.
    operands : sequence of Value
        What they are computed from.

    Returns
    -------
    list of Value
    """
    found: dict[str, Sequence[Any]] = {}

    def arrays(index: int) -> Any:
        if "arrays" not in found:
            found["arrays"] = make_arrays()
        return found["arrays"][index]

    def hosts(index: int) -> Any:
        if "hosts" not in found:
            found["hosts"] = make_hosts()
        return found["hosts"][index]

    return [
        Value(
            make_array=lambda index=index: arrays(index),  # type: ignore[misc]
            make_host=lambda index=index: hosts(index),  # type: ignore[misc]
            operands=operands,
        )
        for index in range(count)
    ]


def numbers(host: Any) -> list[int]:
    """The elements of an array of NumPy as integers of Python.

    Parameters
    ----------
    host : numpy.ndarray

    Returns
    -------
    list of int
    """
    return [int(number) for number in numpy.asarray(host).reshape(-1)]
