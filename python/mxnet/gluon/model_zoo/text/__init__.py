"""Transformers of published papers. Weights are read from local files."""

from mxnet.gluon.model_zoo.text.attention import MultiHeadAttention, causal_mask, padding_mask
from mxnet.gluon.model_zoo.text.bert import BERT, bert_base, bert_large
from mxnet.gluon.model_zoo.text.gpt2 import GPT2, get_gpt2, gpt2, gpt2_large, gpt2_medium, gpt2_xl
from mxnet.gluon.model_zoo.text.t5 import T5, get_t5, t5_base, t5_large, t5_small

__all__ = [
    "BERT",
    "GPT2",
    "T5",
    "MultiHeadAttention",
    "bert_base",
    "bert_large",
    "causal_mask",
    "get_gpt2",
    "get_t5",
    "gpt2",
    "gpt2_large",
    "gpt2_medium",
    "gpt2_xl",
    "padding_mask",
    "t5_base",
    "t5_large",
    "t5_small",
]
