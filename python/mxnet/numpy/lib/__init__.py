"""Functions that NumPy keeps in `numpy.lib`."""

from mxnet.numpy.lib import stride_tricks

__all__ = ["stride_tricks"]
