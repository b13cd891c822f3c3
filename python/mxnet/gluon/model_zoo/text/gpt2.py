"""GPT-2: a transformer that continues text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mxnet import initializer
from mxnet import numpy as np
from mxnet.base import PathLike
from mxnet.gluon.block import HybridBlock
from mxnet.gluon.model_zoo.text._weights import Rule, from_file
from mxnet.gluon.model_zoo.text.attention import MultiHeadAttention, causal_mask
from mxnet.gluon.model_zoo.vision._classifier import CPU
from mxnet.gluon.nn import GELU, Dense, Dropout, Embedding, HybridSequential, LayerNorm
from mxnet.gluon.parameter import DeviceLike
from mxnet.numpy import ndarray

__all__ = ["GPT2", "get_gpt2", "gpt2", "gpt2_large", "gpt2_medium", "gpt2_xl"]

_LAYER = r"(?:transformer\.)?h\.(\d+)\."
# Size: file, units, layers, heads.
_SIZES = {
    "small": ("gpt2", 768, 12, 12),
    "medium": ("gpt2-medium", 1024, 24, 16),
    "large": ("gpt2-large", 1280, 36, 20),
    "xl": ("gpt2-xl", 1600, 48, 25),
}


def _split_qkv(array: ndarray, groups: Sequence[str]) -> Mapping[str, ndarray]:
    """Query, key and value lie side by side in one map; weights have their inputs first."""
    layer, kind = groups
    parts = np.split(array, 3, axis=-1)
    return {
        f"layers.{layer}.attention.{name}.{kind}": part.T if kind == "weight" else part
        for name, part in zip(("query", "key", "value"), parts, strict=True)
    }


def _transposed(ours: str) -> Any:
    def change(array: ndarray, groups: Sequence[str]) -> Mapping[str, ndarray]:
        return {f"layers.{groups[0]}.{ours}.weight": array.T}

    return change


# Names of Hugging Face's GPT2Model and of the networks that have one as `transformer`.
_RULES: list[Rule] = [
    (r"(?:transformer\.)?wte\.weight", "word_embedding.weight"),
    (r"(?:transformer\.)?wpe\.weight", "position_embedding.weight"),
    (_LAYER + r"ln_1\.weight", r"layers.\1.attention_norm.gamma"),
    (_LAYER + r"ln_1\.bias", r"layers.\1.attention_norm.beta"),
    (_LAYER + r"attn\.c_attn\.(weight|bias)", _split_qkv),
    (_LAYER + r"attn\.c_proj\.weight", _transposed("attention.output")),
    (_LAYER + r"attn\.c_proj\.bias", r"layers.\1.attention.output.bias"),
    (_LAYER + r"ln_2\.weight", r"layers.\1.inner_norm.gamma"),
    (_LAYER + r"ln_2\.bias", r"layers.\1.inner_norm.beta"),
    (_LAYER + r"mlp\.c_fc\.weight", _transposed("inner")),
    (_LAYER + r"mlp\.c_fc\.bias", r"layers.\1.inner.bias"),
    (_LAYER + r"mlp\.c_proj\.weight", _transposed("outer")),
    (_LAYER + r"mlp\.c_proj\.bias", r"layers.\1.outer.bias"),
    (r"(?:transformer\.)?ln_f\.weight", "norm.gamma"),
    (r"(?:transformer\.)?ln_f\.bias", "norm.beta"),
    # Masks, and the map to scores, which is that of the embedding.
    (_LAYER + r"attn\.(?:masked_)?bias", None),
    (r"lm_head\.weight", None),
]


class _Layer(HybridBlock):
    """Attention and two affine maps, each normalised before it and with a connection around it."""

    def __init__(self, units: int, num_heads: int, dropout: float, epsilon: float) -> None:
        super().__init__()
        rule = initializer.Normal(0.02)
        self.attention_norm = LayerNorm(epsilon=epsilon, in_channels=units)
        self.attention = MultiHeadAttention(units, num_heads, dropout=dropout, weight_initializer=rule)
        self.inner_norm = LayerNorm(epsilon=epsilon, in_channels=units)
        self.inner = Dense(4 * units, flatten=False, in_units=units, weight_initializer=rule)
        self.activation = GELU(approximation="tanh")
        self.outer = Dense(units, flatten=False, in_units=4 * units, weight_initializer=rule)
        self.dropout = Dropout(dropout)

    def forward(self, x: ndarray, mask: ndarray) -> ndarray:
        """(n, t, units) to the same shape."""
        x = x + self.dropout(self.attention(self.attention_norm(x), mask=mask))
        y: ndarray = x + self.dropout(self.outer(self.activation(self.inner(self.inner_norm(x)))))
        return y


class GPT2(HybridBlock):
    """GPT-2: scores of the next token at each position, which depend on that token and those before it.

    Parameters
    ----------
    vocab_size : int
    units : int
        Size of the embeddings.
    num_layers, num_heads : int
    max_length : int
        Number of positions.
    dropout : float
    epsilon : float
        Of the normalisations.

    Notes
    -----
    Scores are products with the embeddings. Source: A. Radford et al., "Language Models are Unsupervised Multitask
    Learners", 2019.

    Examples
    --------
    >>> net = mx.gluon.model_zoo.text.GPT2(100, units=8, num_layers=2, num_heads=2)
    >>> net.initialize()
    >>> net(np.array([[1, 5, 7]])).shape
    (1, 3, 100)
    """

    def __init__(
        self,
        vocab_size: int = 50257,
        units: int = 768,
        num_layers: int = 12,
        num_heads: int = 12,
        max_length: int = 1024,
        dropout: float = 0.1,
        epsilon: float = 1e-5,
    ) -> None:
        super().__init__()
        self.word_embedding = Embedding(vocab_size, units, weight_initializer=initializer.Normal(0.02))
        self.position_embedding = Embedding(max_length, units, weight_initializer=initializer.Normal(0.01))
        self.dropout = Dropout(dropout)
        self.layers = HybridSequential()
        for _ in range(num_layers):
            self.layers.add(_Layer(units, num_heads, dropout, epsilon))
        self.norm = LayerNorm(epsilon=epsilon, in_channels=units)
        self._max_length = max_length

    def forward(self, tokens: ndarray) -> ndarray:
        """Scores of what comes next.

        Parameters
        ----------
        tokens : ndarray of integers, shape (n, t)

        Returns
        -------
        ndarray, shape (n, t, vocab_size)
            Without softmax.

        Raises
        ------
        ValueError
            If the texts are longer than `max_length`.
        """
        length = tokens.shape[1]
        if length > self._max_length:
            raise ValueError(f"GPT2: texts of {length} tokens are longer than `max_length`, {self._max_length}")
        x = self.word_embedding(tokens) + self.position_embedding(np.arange(length, device=tokens.device))
        x, mask = self.dropout(x), causal_mask(length, tokens)
        for layer in self.layers:
            x = layer(x, mask)
        scores: ndarray = np.matmul(self.norm(x), self.word_embedding.weight.data(tokens.device).T)
        return scores


def get_gpt2(
    size: str, pretrained: bool = False, device: DeviceLike = CPU, root: PathLike | None = None, **kwargs: Any
) -> GPT2:
    """GPT-2 of a published size.

    Parameters
    ----------
    size : {"small", "medium", "large", "xl"}
    pretrained : bool
        Read the weights from ``<root>/<name>.safetensors``, with the names gpt2, gpt2-medium, gpt2-large and gpt2-xl;
        the file has our names or those of Hugging Face's files.
    device : Device or sequence of Device
        Where these weights go.
    root : path, optional
        Folder of the file; ``models`` in `mx.base.data_dir()` by default.
    **kwargs
        Arguments of `GPT2`.

    Returns
    -------
    GPT2

    Raises
    ------
    ValueError
        If `size` is unknown.
    FileNotFoundError
        If `pretrained` and there is no such file. Nothing is downloaded.
    """
    if size not in _SIZES:
        raise ValueError(f"get_gpt2: `size` must be one of {list(_SIZES)}, found {size!r}")
    file, units, num_layers, num_heads = _SIZES[size]
    net = GPT2(**{"units": units, "num_layers": num_layers, "num_heads": num_heads, **kwargs})
    return from_file(net, file, _RULES, root, device) if pretrained else net


def gpt2(**kwargs: Any) -> GPT2:
    """GPT-2 of 12 layers of 768 units, 124 million numbers.

    Parameters
    ----------
    **kwargs
        Arguments of `get_gpt2`.

    Returns
    -------
    GPT2
    """
    return get_gpt2("small", **kwargs)


def gpt2_medium(**kwargs: Any) -> GPT2:
    """GPT-2 of 24 layers of 1024 units, 355 million numbers.

    Parameters
    ----------
    **kwargs
        Arguments of `get_gpt2`.

    Returns
    -------
    GPT2
    """
    return get_gpt2("medium", **kwargs)


def gpt2_large(**kwargs: Any) -> GPT2:
    """GPT-2 of 36 layers of 1280 units, 774 million numbers.

    Parameters
    ----------
    **kwargs
        Arguments of `get_gpt2`.

    Returns
    -------
    GPT2
    """
    return get_gpt2("large", **kwargs)


def gpt2_xl(**kwargs: Any) -> GPT2:
    """GPT-2 of 48 layers of 1600 units, 1558 million numbers.

    Parameters
    ----------
    **kwargs
        Arguments of `get_gpt2`.

    Returns
    -------
    GPT2
    """
    return get_gpt2("xl", **kwargs)
