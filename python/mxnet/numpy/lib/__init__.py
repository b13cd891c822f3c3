"""Functions that NumPy keeps in `numpy.lib`."""

from numpy.lib import NumpyVersion

from mxnet.numpy import _absent
from mxnet.numpy import emath as scimath
from mxnet.numpy.lib import array_utils, mixins, npyio, stride_tricks

__all__ = ["NumpyVersion", "array_utils", "mixins", "npyio", "scimath", "stride_tricks"]

__getattr__ = _absent.attributes("mxnet.numpy.lib", _absent.LIB)
