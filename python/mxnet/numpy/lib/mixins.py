"""Operators for classes with `__array_ufunc__`: NumPy's own class, whose functions ours answer for their arrays."""

from numpy.lib.mixins import NDArrayOperatorsMixin

__all__ = ["NDArrayOperatorsMixin"]
