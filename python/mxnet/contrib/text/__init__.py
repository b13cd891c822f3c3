"""Vocabularies, and vectors of words from local files."""

from mxnet.contrib.text import embedding, utils, vocab

__all__ = ["embedding", "utils", "vocab"]
