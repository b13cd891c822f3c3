"""BERT: a transformer that reads text in both directions."""

from __future__ import annotations

from typing import Any

from mxnet import initializer
from mxnet import numpy as np
from mxnet.base import PathLike
from mxnet.gluon.block import HybridBlock
from mxnet.gluon.model_zoo.text._weights import Rule, from_file
from mxnet.gluon.model_zoo.text.attention import MultiHeadAttention, padding_mask
from mxnet.gluon.model_zoo.vision._classifier import CPU
from mxnet.gluon.nn import GELU, Dense, Dropout, Embedding, HybridSequential, LayerNorm
from mxnet.gluon.parameter import DeviceLike
from mxnet.numpy import ndarray

__all__ = ["BERT", "bert_base", "bert_large"]

_LAYER = r"(?:bert\.)?encoder\.layer\.(\d+)\."
_NORM = {"weight": "gamma", "gamma": "gamma", "bias": "beta", "beta": "beta"}


def _norm_rules(pattern: str, ours: str) -> list[Rule]:
    return [(pattern + theirs, f"{ours}{mine}") for theirs, mine in _NORM.items()]


# Names of Hugging Face's BertModel and of the networks that have one as `bert`; heads of tasks are left out.
_RULES: list[Rule] = [
    (r"(?:bert\.)?embeddings\.word_embeddings\.weight", "word_embedding.weight"),
    (r"(?:bert\.)?embeddings\.position_embeddings\.weight", "position_embedding.weight"),
    (r"(?:bert\.)?embeddings\.token_type_embeddings\.weight", "type_embedding.weight"),
    *_norm_rules(r"(?:bert\.)?embeddings\.LayerNorm\.", "embedding_norm."),
    (_LAYER + r"attention\.self\.(query|key|value)\.(weight|bias)", r"layers.\1.attention.\2.\3"),
    (_LAYER + r"attention\.output\.dense\.(weight|bias)", r"layers.\1.attention.output.\2"),
    *_norm_rules(_LAYER + r"attention\.output\.LayerNorm\.", r"layers.\1.attention_norm."),
    (_LAYER + r"intermediate\.dense\.(weight|bias)", r"layers.\1.inner.\2"),
    (_LAYER + r"output\.dense\.(weight|bias)", r"layers.\1.outer.\2"),
    *_norm_rules(_LAYER + r"output\.LayerNorm\.", r"layers.\1.output_norm."),
    (r"(?:bert\.)?pooler\.dense\.(weight|bias)", r"pooler.\1"),
    (r"(?:bert\.)?embeddings\.position_ids", None),
    (r"(?:cls|classifier|qa_outputs)\..*", None),
]


class _Layer(HybridBlock):
    """Attention and two affine maps, each with a connection around it and normalised after it."""

    def __init__(self, units: int, hidden_size: int, num_heads: int, dropout: float, epsilon: float) -> None:
        super().__init__()
        rule = initializer.Normal(0.02)
        self.attention = MultiHeadAttention(units, num_heads, dropout=dropout, weight_initializer=rule)
        self.attention_norm = LayerNorm(epsilon=epsilon, in_channels=units)
        self.inner = Dense(hidden_size, flatten=False, in_units=units, weight_initializer=rule)
        self.activation = GELU()
        self.outer = Dense(units, flatten=False, in_units=hidden_size, weight_initializer=rule)
        self.output_norm = LayerNorm(epsilon=epsilon, in_channels=units)
        self.dropout = Dropout(dropout)

    def forward(self, x: ndarray, mask: ndarray | None = None) -> ndarray:
        """(n, t, units) to the same shape."""
        x = self.attention_norm(x + self.dropout(self.attention(x, mask=mask)))
        y: ndarray = self.output_norm(x + self.dropout(self.outer(self.activation(self.inner(x)))))
        return y


class BERT(HybridBlock):
    """BERT: embeddings of tokens, positions and segments, layers of attention, and a summary of the first token.

    Parameters
    ----------
    vocab_size : int
    units : int
        Size of the embeddings.
    hidden_size : int
        Size between the two affine maps of a layer.
    num_layers, num_heads : int
    max_length : int
        Number of positions.
    num_types : int
        Number of segments.
    dropout : float
    epsilon : float
        Of the normalisations.

    Notes
    -----
    Source: J. Devlin, M.-W. Chang, K. Lee and K. Toutanova, "BERT", 2019.

    Examples
    --------
    >>> net = mx.gluon.model_zoo.text.BERT(100, units=8, hidden_size=16, num_layers=2, num_heads=2)
    >>> net.initialize()
    >>> tokens, summary = net(np.array([[1, 5, 7], [1, 9, 0]]), valid_length=np.array([3, 2]))
    >>> tokens.shape, summary.shape
    ((2, 3, 8), (2, 8))
    """

    def __init__(
        self,
        vocab_size: int = 30522,
        units: int = 768,
        hidden_size: int = 3072,
        num_layers: int = 12,
        num_heads: int = 12,
        max_length: int = 512,
        num_types: int = 2,
        dropout: float = 0.1,
        epsilon: float = 1e-12,
    ) -> None:
        super().__init__()
        rule = initializer.Normal(0.02)
        self.word_embedding = Embedding(vocab_size, units, weight_initializer=rule)
        self.position_embedding = Embedding(max_length, units, weight_initializer=rule)
        self.type_embedding = Embedding(num_types, units, weight_initializer=rule)
        self.embedding_norm = LayerNorm(epsilon=epsilon, in_channels=units)
        self.dropout = Dropout(dropout)
        self.layers = HybridSequential()
        for _ in range(num_layers):
            self.layers.add(_Layer(units, hidden_size, num_heads, dropout, epsilon))
        self.pooler = Dense(units, activation="tanh", in_units=units, weight_initializer=rule)
        self._max_length = max_length

    def forward(
        self, tokens: ndarray, token_types: ndarray | None = None, valid_length: ndarray | None = None
    ) -> tuple[ndarray, ndarray]:
        """Read a batch of texts.

        Parameters
        ----------
        tokens : ndarray of integers, shape (n, t)
        token_types : ndarray of integers, shape (n, t), optional
            Segments, 0 by default.
        valid_length : ndarray, shape (n,), optional
            Lengths without padding; all tokens count by default.

        Returns
        -------
        outputs : ndarray, shape (n, t, units)
        pooled : ndarray, shape (n, units)
            Computed from the output of the first token.

        Raises
        ------
        ValueError
            If the texts are longer than `max_length`.
        """
        length = tokens.shape[1]
        if length > self._max_length:
            raise ValueError(f"BERT: texts of {length} tokens are longer than `max_length`, {self._max_length}")
        x = self.word_embedding(tokens) + self.position_embedding(np.arange(length, device=tokens.device))
        x = x + self.type_embedding(np.zeros_like(tokens) if token_types is None else token_types)
        x = self.dropout(self.embedding_norm(x))
        mask = None if valid_length is None else padding_mask(valid_length, length)
        for layer in self.layers:
            x = layer(x, mask)
        return x, self.pooler(x[:, 0])


def _bert(name: str, pretrained: bool, device: DeviceLike, root: PathLike | None, arguments: dict[str, Any]) -> BERT:
    net = BERT(**arguments)
    return from_file(net, name, _RULES, root, device) if pretrained else net


def bert_base(pretrained: bool = False, device: DeviceLike = CPU, root: PathLike | None = None, **kwargs: Any) -> BERT:
    """BERT of 12 layers of 768 units, 109 million numbers.

    Parameters
    ----------
    pretrained : bool
        Read the weights from ``<root>/bert-base.safetensors``, which has our names or those of Hugging Face's files.
    device : Device or sequence of Device
        Where these weights go.
    root : path, optional
        Folder of the file; ``models`` in `mx.base.data_dir()` by default.
    **kwargs
        Arguments of `BERT`.

    Returns
    -------
    BERT

    Raises
    ------
    FileNotFoundError
        If `pretrained` and there is no such file. Nothing is downloaded.
    """
    return _bert("bert-base", pretrained, device, root, kwargs)


def bert_large(pretrained: bool = False, device: DeviceLike = CPU, root: PathLike | None = None, **kwargs: Any) -> BERT:
    """BERT of 24 layers of 1024 units, 335 million numbers.

    Parameters
    ----------
    pretrained : bool
        Read the weights from ``<root>/bert-large.safetensors``, which has our names or those of Hugging Face's files.
    device : Device or sequence of Device
        Where these weights go.
    root : path, optional
        Folder of the file; ``models`` in `mx.base.data_dir()` by default.
    **kwargs
        Arguments of `BERT`.

    Returns
    -------
    BERT

    Raises
    ------
    FileNotFoundError
        If `pretrained` and there is no such file. Nothing is downloaded.
    """
    large = {"units": 1024, "hidden_size": 4096, "num_layers": 24, "num_heads": 16}
    return _bert("bert-large", pretrained, device, root, {**large, **kwargs})
