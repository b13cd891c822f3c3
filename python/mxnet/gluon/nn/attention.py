"""Attention of several heads."""

from __future__ import annotations

from typing import Any

from mxnet import numpy_extension as npx
from mxnet.base import DTypeLike
from mxnet.gluon.block import HybridBlock
from mxnet.gluon.nn.basic_layers import Dense
from mxnet.numpy import ndarray

__all__ = ["MultiHeadAttention"]


class MultiHeadAttention(HybridBlock):
    """Multi-head attention: queries, keys and values come from affine maps, and another follows the heads.

    Parameters
    ----------
    units : int
        Size of the output, a multiple of `num_heads`.
    num_heads : int
    use_bias : bool
    dtype : dtype
    weight_initializer, bias_initializer : Initializer or str, optional

    Raises
    ------
    ValueError
        If `units` is no multiple of `num_heads`.

    Attributes
    ----------
    query, key, value, output : Dense
        Their input sizes are found out from the first inputs.

    Notes
    -----
    Source: Vaswani et al., Attention Is All You Need (2017), section 3.2.2.

    Examples
    --------
    >>> layer = mx.gluon.nn.MultiHeadAttention(8, num_heads=2)
    >>> layer.initialize()
    >>> layer(np.ones((3, 5, 8))).shape
    (3, 5, 8)
    >>> layer(mx.ragged.from_dense(np.ones((3, 5, 8)), lengths=[5, 0, 2])).shape
    (3, None, 8)
    """

    def __init__(
        self,
        units: int,
        num_heads: int,
        use_bias: bool = True,
        dtype: DTypeLike = "float32",
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
    ) -> None:
        if num_heads < 1 or units < 1 or units % num_heads:
            raise ValueError(f"`units` ({units}) must be a positive multiple of `num_heads` ({num_heads})")
        super().__init__()
        self._num_heads = num_heads
        self._size = units // num_heads

        def dense() -> Dense:
            return Dense(
                units,
                use_bias=use_bias,
                flatten=False,
                dtype=dtype,
                weight_initializer=weight_initializer,
                bias_initializer=bias_initializer,
            )

        self.query, self.key, self.value, self.output = dense(), dense(), dense(), dense()

    def forward(
        self, query: Any, key: Any = None, value: Any = None, mask: ndarray | None = None, is_causal: bool = False
    ) -> Any:
        """Attend to keys.

        Parameters
        ----------
        query : ndarray, shape (n, l, c), or RaggedArray, shape (n, None, c)
        key : ndarray or RaggedArray, shape (n, s, d), optional
            The queries themselves by default.
        value : ndarray or RaggedArray, shape (n, s, e), optional
            The keys by default.
        mask : ndarray, broadcasts to (n, num_heads, l, s), optional
            See `npx.scaled_dot_product_attention`; ragged sequences take none.
        is_causal : bool
            Whether query i sees keys 0 to i only.

        Returns
        -------
        ndarray or RaggedArray, shape (n, l, units)
        """
        key = query if key is None else key
        value = key if value is None else value
        q, k, v = self.query(query), self.key(key), self.value(value)
        heads = self._num_heads, self._size
        if None in q.shape:
            # (n, length, units) -> (n, length, heads, size)
            q, k, v = (x.reshape((*x.shape[:-1], *heads)) for x in (q, k, v))
            found = npx.scaled_dot_product_attention(q, k, v, mask, is_causal)
            return self.output(found.reshape((*found.shape[:2], heads[0] * heads[1])))
        # (n, l, units) -> (n, heads, l, size)
        q, k, v = (x.reshape((*x.shape[:2], *heads)).swapaxes(1, 2) for x in (q, k, v))
        found = npx.scaled_dot_product_attention(q, k, v, mask, is_causal).swapaxes(1, 2)
        return self.output(found.reshape((*found.shape[:2], heads[0] * heads[1])))
