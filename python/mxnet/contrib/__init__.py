"""What MXNet keeps under this name and has no other place: vocabularies and vectors of words."""

from __future__ import annotations

from mxnet._renamed import attribute_finder
from mxnet.contrib import text

__all__ = ["text"]

__getattr__ = attribute_finder(__name__)
