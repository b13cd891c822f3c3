"""Quantised networks, vocabularies, word vectors and TensorBoard logging."""

from __future__ import annotations

from mxnet._renamed import attribute_finder
from mxnet.contrib import quantization, tensorboard, text

__all__ = ["quantization", "tensorboard", "text"]

__getattr__ = attribute_finder(__name__)
