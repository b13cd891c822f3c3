"""Vocabularies, word vectors and TensorBoard logging."""

from __future__ import annotations

from mxnet._renamed import attribute_finder
from mxnet.contrib import tensorboard, text

__all__ = ["tensorboard", "text"]

__getattr__ = attribute_finder(__name__)
