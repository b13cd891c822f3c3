"""T5: a transformer that reads one text and writes another."""

from __future__ import annotations

import math
from typing import Any

from mxnet import initializer
from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.base import PathLike
from mxnet.gluon.block import HybridBlock
from mxnet.gluon.model_zoo.text._weights import Rule, from_file
from mxnet.gluon.model_zoo.text.attention import MultiHeadAttention, causal_mask, padding_mask
from mxnet.gluon.model_zoo.vision._classifier import CPU
from mxnet.gluon.nn import Dense, Dropout, Embedding, HybridSequential
from mxnet.gluon.parameter import DeviceLike, Parameter
from mxnet.numpy import ndarray

__all__ = ["T5", "get_t5", "t5_base", "t5_large", "t5_small"]

# Size: units, units of a head, hidden size, layers, heads.
_SIZES = {
    "small": (512, 64, 2048, 6, 8),
    "base": (768, 64, 3072, 12, 12),
    "large": (1024, 64, 4096, 24, 16),
}
_NAMES = {"q": "query", "k": "key", "v": "value", "o": "output"}


def _rules() -> list[Rule]:
    """Names of Hugging Face's T5Model and T5ForConditionalGeneration."""
    rules: list[Rule] = [
        (r"shared\.weight", "embedding.weight"),
        (r"(?:encoder|decoder)\.embed_tokens\.weight", None),
        (r"lm_head\.weight", None),
        (r"(encoder|decoder)\.final_layer_norm\.weight", r"\1.norm.gamma"),
    ]
    for side, feed_forward in (("encoder", 1), ("decoder", 2)):
        layer = side + r"\.block\.(\d+)\.layer\."
        ours = side + r".layers.\1."
        bias = r"0\.SelfAttention\.relative_attention_bias\.weight"
        rules.append((side + r"\.block\.0\.layer\." + bias, side + ".position_bias.weight"))
        for theirs, mine in _NAMES.items():
            rules.append((layer + rf"0\.SelfAttention\.{theirs}\.weight", ours + f"attention.{mine}.weight"))
            rules.append((layer + rf"1\.EncDecAttention\.{theirs}\.weight", ours + f"cross_attention.{mine}.weight"))
        rules.append((layer + rf"{feed_forward}\.DenseReluDense\.wi\.weight", ours + "inner.weight"))
        rules.append((layer + rf"{feed_forward}\.DenseReluDense\.wo\.weight", ours + "outer.weight"))
        rules.append((layer + r"0\.layer_norm\.weight", ours + "attention_norm.gamma"))
        if side == "decoder":
            rules.append((layer + r"1\.layer_norm\.weight", ours + "cross_norm.gamma"))
        rules.append((layer + rf"{feed_forward}\.layer_norm\.weight", ours + "inner_norm.gamma"))
    return rules


class _RootMeanSquareNorm(HybridBlock):
    """Divides by the root of the mean square along the last axis; no mean is subtracted."""

    def __init__(self, units: int, epsilon: float) -> None:
        super().__init__()
        self._epsilon = epsilon
        self.gamma = Parameter("gamma", shape=(units,), init="ones")

    def forward(self, x: ndarray) -> ndarray:
        """(..., units) to the same shape."""
        normal: ndarray = npx.rms_norm(x, self.gamma.data(x.device), axis=-1, eps=self._epsilon)
        return normal


class _PositionBias(HybridBlock):
    """A number for each head and distance, where large distances share numbers."""

    def __init__(self, num_heads: int, num_buckets: int, max_distance: int, is_causal: bool) -> None:
        super().__init__()
        self._num_buckets = num_buckets
        self._max_distance = max_distance
        self._is_causal = is_causal
        self.weight = Parameter("weight", shape=(num_buckets, num_heads), init=initializer.Normal(0.02))

    def _buckets(self, length: int, like: ndarray) -> ndarray:
        positions = np.arange(length, device=like.device)
        # Keys minus queries: positive behind.
        relative = positions.reshape(1, -1) - positions.reshape(-1, 1)
        count = self._num_buckets
        start, distance = np.zeros_like(relative), np.maximum(-relative, 0)
        if not self._is_causal:
            count //= 2
            start, distance = (relative > 0).astype("int64") * count, np.abs(relative)
        # Half of the buckets are single distances, the others grow with the logarithm.
        exact = count // 2
        ratio = np.log(np.maximum(distance, 1).astype("float64") / exact) / math.log(self._max_distance / exact)
        far = np.minimum(exact + (ratio * (count - exact)).astype("int64"), count - 1)
        buckets: ndarray = start + np.where(distance < exact, distance, far)
        return buckets

    def forward(self, x: ndarray) -> ndarray:
        """For inputs (n, t, units): (1, heads, t, t)."""
        found = np.take(self.weight.data(x.device), self._buckets(x.shape[1], x), axis=0)
        return found.transpose(2, 0, 1).reshape(1, found.shape[2], x.shape[1], x.shape[1])


class _Layer(HybridBlock):
    """Attention, in the decoder attention to the encoder, and two maps, each normalised before it."""

    def __init__(
        self,
        units: int,
        head_units: int,
        hidden_size: int,
        num_heads: int,
        dropout: float,
        epsilon: float,
        is_decoder: bool,
    ) -> None:
        super().__init__()

        def attention() -> MultiHeadAttention:
            return MultiHeadAttention(
                units, num_heads, head_units, dropout, use_bias=False, is_scaled=False,
                weight_initializer=initializer.Normal(units**-0.5),
            )  # fmt: skip

        self.attention_norm = _RootMeanSquareNorm(units, epsilon)
        self.attention = attention()
        self.cross_norm: _RootMeanSquareNorm | None = None
        self.cross_attention: MultiHeadAttention | None = None
        if is_decoder:
            self.cross_norm = _RootMeanSquareNorm(units, epsilon)
            self.cross_attention = attention()
        self.inner_norm = _RootMeanSquareNorm(units, epsilon)
        rule, other = initializer.Normal(units**-0.5), initializer.Normal(hidden_size**-0.5)
        self.inner = Dense(
            hidden_size, use_bias=False, flatten=False, in_units=units, activation="relu", weight_initializer=rule
        )
        self.outer = Dense(units, use_bias=False, flatten=False, in_units=hidden_size, weight_initializer=other)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        x: ndarray,
        mask: ndarray | None,
        bias: ndarray,
        memory: ndarray | None = None,
        memory_mask: ndarray | None = None,
    ) -> ndarray:
        """(n, t, units) to the same shape."""
        x = x + self.dropout(self.attention(self.attention_norm(x), mask=mask, bias=bias))
        if self.cross_attention is not None and self.cross_norm is not None:
            x = x + self.dropout(self.cross_attention(self.cross_norm(x), memory, memory_mask))
        y: ndarray = x + self.dropout(self.outer(self.dropout(self.inner(self.inner_norm(x)))))
        return y


class _Stack(HybridBlock):
    """The encoder or the decoder."""

    def __init__(
        self, num_layers: int, is_decoder: bool, num_buckets: int, max_distance: int, num_heads: int, **sizes: Any
    ) -> None:
        super().__init__()
        self._is_decoder = is_decoder
        self.position_bias = _PositionBias(num_heads, num_buckets, max_distance, is_decoder)
        self.layers = HybridSequential()
        for _ in range(num_layers):
            self.layers.add(_Layer(num_heads=num_heads, is_decoder=is_decoder, **sizes))
        self.norm = _RootMeanSquareNorm(sizes["units"], sizes["epsilon"])
        self.dropout = Dropout(sizes["dropout"])

    def forward(
        self,
        x: ndarray,
        valid_length: ndarray | None = None,
        memory: ndarray | None = None,
        memory_mask: ndarray | None = None,
    ) -> ndarray:
        """(n, t, units) to the same shape."""
        length = x.shape[1]
        mask = None if valid_length is None else padding_mask(valid_length, length)
        if self._is_decoder:
            before = causal_mask(length, x)
            mask = before if mask is None else mask & before
        bias = self.position_bias(x)
        x = self.dropout(x)
        for layer in self.layers:
            x = layer(x, mask, bias, memory, memory_mask)
        normal: ndarray = self.dropout(self.norm(x))
        return normal


class T5(HybridBlock):
    """T5: scores of the tokens of one text, given another text and the tokens before.

    Parameters
    ----------
    vocab_size : int
    units : int
        Size of the embeddings.
    head_units : int
        Size of a head of attention.
    hidden_size : int
        Size between the two maps of a layer.
    num_layers : int
        Of the encoder and of the decoder.
    num_heads : int
    num_buckets, max_distance : int
        How many numbers of position a head has, and from which distance on there is only one.
    dropout : float
    epsilon : float
        Of the normalisations.

    Notes
    -----
    Positions enter as numbers that are added to the products of attention, which are not scaled. Scores are products
    with the embeddings, divided by the root of `units`. Source: C. Raffel et al., "Exploring the Limits of Transfer
    Learning with a Unified Text-to-Text Transformer", 2020.

    Examples
    --------
    >>> net = mx.gluon.model_zoo.text.T5(100, units=8, head_units=4, hidden_size=16, num_layers=1, num_heads=2)
    >>> net.initialize()
    >>> net(np.array([[1, 5, 7]]), np.array([[0, 9]])).shape
    (1, 2, 100)
    """

    def __init__(
        self,
        vocab_size: int = 32128,
        units: int = 512,
        head_units: int = 64,
        hidden_size: int = 2048,
        num_layers: int = 6,
        num_heads: int = 8,
        num_buckets: int = 32,
        max_distance: int = 128,
        dropout: float = 0.1,
        epsilon: float = 1e-6,
    ) -> None:
        super().__init__()
        sizes: dict[str, Any] = {
            "num_layers": num_layers,
            "num_buckets": num_buckets,
            "max_distance": max_distance,
            "num_heads": num_heads,
            "units": units,
            "head_units": head_units,
            "hidden_size": hidden_size,
            "dropout": dropout,
            "epsilon": epsilon,
        }
        self.embedding = Embedding(vocab_size, units, weight_initializer=initializer.Normal(1.0))
        self.encoder = _Stack(is_decoder=False, **sizes)
        self.decoder = _Stack(is_decoder=True, **sizes)
        self._scale = units**-0.5

    def encode(self, tokens: ndarray, valid_length: ndarray | None = None) -> ndarray:
        """Read a batch of texts.

        Parameters
        ----------
        tokens : ndarray of integers, shape (n, s)
        valid_length : ndarray, shape (n,), optional
            Lengths without padding; all tokens count by default.

        Returns
        -------
        ndarray, shape (n, s, units)
        """
        memory: ndarray = self.encoder(self.embedding(tokens), valid_length)
        return memory

    def forward(self, tokens: ndarray, targets: ndarray, valid_length: ndarray | None = None) -> ndarray:
        """Scores of what comes after each token of the targets.

        Parameters
        ----------
        tokens : ndarray of integers, shape (n, s)
            The texts that are read.
        targets : ndarray of integers, shape (n, t)
            The texts that are written, behind a token of the beginning.
        valid_length : ndarray, shape (n,), optional
            Lengths of `tokens` without padding; all count by default.

        Returns
        -------
        ndarray, shape (n, t, vocab_size)
            Without softmax.
        """
        memory = self.encode(tokens, valid_length)
        memory_mask = None if valid_length is None else padding_mask(valid_length, tokens.shape[1])
        x = self.decoder(self.embedding(targets), None, memory, memory_mask)
        scores: ndarray = np.matmul(x * self._scale, self.embedding.weight.data(tokens.device).T)
        return scores


def get_t5(
    size: str, pretrained: bool = False, device: DeviceLike = CPU, root: PathLike | None = None, **kwargs: Any
) -> T5:
    """T5 of a published size.

    Parameters
    ----------
    size : {"small", "base", "large"}
    pretrained : bool
        Read the weights from ``<root>/t5-<size>.safetensors``, which has our names or those of Hugging Face's files.
    device : Device or sequence of Device
        Where these weights go.
    root : path, optional
        Folder of the file; ``models`` in `mx.base.data_dir()` by default.
    **kwargs
        Arguments of `T5`.

    Returns
    -------
    T5

    Raises
    ------
    ValueError
        If `size` is unknown.
    FileNotFoundError
        If `pretrained` and there is no such file. Nothing is downloaded.
    """
    if size not in _SIZES:
        raise ValueError(f"get_t5: `size` must be one of {list(_SIZES)}, found {size!r}")
    names = ("units", "head_units", "hidden_size", "num_layers", "num_heads")
    net = T5(**{**dict(zip(names, _SIZES[size], strict=True)), **kwargs})
    return from_file(net, f"t5-{size}", _rules(), root, device) if pretrained else net


def t5_small(**kwargs: Any) -> T5:
    """T5 of 6 and 6 layers of 512 units, 61 million numbers.

    Parameters
    ----------
    **kwargs
        Arguments of `get_t5`.

    Returns
    -------
    T5
    """
    return get_t5("small", **kwargs)


def t5_base(**kwargs: Any) -> T5:
    """T5 of 12 and 12 layers of 768 units, 223 million numbers.

    Parameters
    ----------
    **kwargs
        Arguments of `get_t5`.

    Returns
    -------
    T5
    """
    return get_t5("base", **kwargs)


def t5_large(**kwargs: Any) -> T5:
    """T5 of 24 and 24 layers of 1024 units, 738 million numbers.

    Parameters
    ----------
    **kwargs
        Arguments of `get_t5`.

    Returns
    -------
    T5
    """
    return get_t5("large", **kwargs)
