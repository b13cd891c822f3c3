"""Attention of several heads, and what the layers of transformers share."""

from __future__ import annotations

import math
from typing import Any

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.gluon.block import HybridBlock
from mxnet.gluon.nn import Dense, Dropout
from mxnet.numpy import ndarray

__all__ = ["MultiHeadAttention", "causal_mask", "padding_mask"]


def padding_mask(valid_length: ndarray, length: int) -> ndarray:
    """Which positions of padded sequences count.

    Parameters
    ----------
    valid_length : ndarray, shape (n,)
        Lengths without padding.
    length : int
        Length with padding.

    Returns
    -------
    ndarray of bool, shape (n, 1, 1, length)
        For the scores (n, heads, queries, keys).

    Examples
    --------
    >>> from mxnet.gluon.model_zoo.text import padding_mask
    >>> padding_mask(np.array([2, 1]), 3)[:, 0, 0].tolist()
    [[True, True, False], [True, False, False]]
    """
    return np.arange(length, device=valid_length.device) < valid_length.reshape(-1, 1, 1, 1)


def causal_mask(length: int, like: ndarray) -> ndarray:
    """Each position and all before it.

    Parameters
    ----------
    length : int
    like : ndarray
        Whose device the mask is on.

    Returns
    -------
    ndarray of bool, shape (1, 1, length, length)

    Examples
    --------
    >>> from mxnet.gluon.model_zoo.text import causal_mask
    >>> causal_mask(2, np.zeros(1))[0, 0].tolist()
    [[True, False], [True, True]]
    """
    positions = np.arange(length, device=like.device)
    return (positions.reshape(1, -1) <= positions.reshape(-1, 1)).reshape(1, 1, length, length)


class MultiHeadAttention(HybridBlock):
    """Multi-head attention: weighted sums of values, with weights from products of queries and keys.

    Parameters
    ----------
    units : int
        Size of inputs and outputs.
    num_heads : int
    head_units : int, optional
        Size of each head, ``units // num_heads`` by default.
    dropout : float
        Of the weights.
    use_bias : bool
        Whether the four maps have a bias.
    is_scaled : bool
        Whether products are divided by the root of `head_units`.
    weight_initializer : Initializer or str, optional

    Raises
    ------
    ValueError
        If `units` is not a multiple of `num_heads` and `head_units` is not given.

    Notes
    -----
    ``softmax(q k^T / sqrt(head_units) + bias) v``. Source: A. Vaswani et al., "Attention Is All You Need", 2017.

    Examples
    --------
    >>> from mxnet.gluon.model_zoo.text import MultiHeadAttention
    >>> net = MultiHeadAttention(8, num_heads=2)
    >>> net.initialize()
    >>> net(np.ones((3, 5, 8))).shape
    (3, 5, 8)
    """

    def __init__(
        self,
        units: int,
        num_heads: int,
        head_units: int | None = None,
        dropout: float = 0.0,
        use_bias: bool = True,
        is_scaled: bool = True,
        weight_initializer: Any = None,
    ) -> None:
        if head_units is None and units % num_heads:
            raise ValueError(
                f"MultiHeadAttention: `units` must be a multiple of `num_heads`, found {units} and {num_heads}"
            )
        super().__init__()
        self._num_heads = num_heads
        self._head_units = head_units or units // num_heads
        self._is_scaled = is_scaled
        inner = self._head_units * num_heads

        def affine(size: int, in_units: int) -> Dense:
            return Dense(
                size, use_bias=use_bias, flatten=False, in_units=in_units, weight_initializer=weight_initializer
            )

        self.query = affine(inner, units)
        self.key = affine(inner, units)
        self.value = affine(inner, units)
        self.output = affine(units, inner)
        self.dropout = Dropout(dropout)

    def _heads(self, x: ndarray) -> ndarray:
        """(n, t, heads * size) -> (n, heads, t, size)."""
        return x.reshape(x.shape[0], x.shape[1], self._num_heads, self._head_units).transpose(0, 2, 1, 3)

    def forward(
        self, x: ndarray, memory: ndarray | None = None, mask: ndarray | None = None, bias: ndarray | None = None
    ) -> ndarray:
        """Look from each position of `x` at those of `memory`.

        Parameters
        ----------
        x : ndarray, shape (n, t, units)
        memory : ndarray, shape (n, s, units), optional
            `x` by default.
        mask : ndarray of bool, broadcast to (n, heads, t, s), optional
            Which positions are seen; all by default.
        bias : ndarray, broadcast to (n, heads, t, s), optional
            Added to the products.

        Returns
        -------
        ndarray, shape (n, t, units)
        """
        memory = x if memory is None else memory
        query, key, value = self._heads(self.query(x)), self._heads(self.key(memory)), self._heads(self.value(memory))
        if self._is_scaled:
            query = query * (1 / math.sqrt(self._head_units))
        scores = np.matmul(query, key.transpose(0, 1, 3, 2))
        if bias is not None:
            scores = scores + bias
        if mask is None:
            weights = npx.softmax(scores, axis=-1)
        else:
            weights = npx.masked_softmax(scores, np.broadcast_to(mask, scores.shape), axis=-1)
        mixed = np.matmul(self.dropout(weights), value).transpose(0, 2, 1, 3)
        out: ndarray = self.output(mixed.reshape(*mixed.shape[:2], -1))
        return out
