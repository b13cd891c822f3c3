"""Text networks: sizes as published, and against float64 references that read the names of Hugging Face's files."""

import math

import numpy as onp
import pytest
import scipy.special

import mxnet as mx
from mxnet import np
from mxnet.gluon.model_zoo import text

GENERATOR = onp.random.default_rng(8)
COUNTS = {
    # With the pooler, without heads of tasks.
    "bert_base": 109_482_240,
    "bert_large": 335_141_888,
    "gpt2": 124_439_808,
    "gpt2_medium": 354_823_168,
    "t5_small": 60_506_624,
    "t5_base": 222_903_552,
}


@pytest.mark.parametrize("name", COUNTS)
def test_networks_have_the_published_number_of_parameters(name):
    net = getattr(text, name)()
    # All sizes are known without an input.
    assert sum(math.prod(p.shape) for p in net.collect_params().values()) == COUNTS[name]


def normal(*shape):
    return GENERATOR.normal(size=shape) * 0.3


def layer_norm(x, w, name, epsilon):
    x = x - x.mean(-1, keepdims=True)
    return x / onp.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * w[name + ".weight"] + w[name + ".bias"]


def attention(q, k, v, heads, mask=None, scale=None, bias=0.0):
    n, t, _ = q.shape
    q, k, v = (x.reshape(n, x.shape[1], heads, -1).transpose(0, 2, 1, 3) for x in (q, k, v))
    scores = q @ k.transpose(0, 1, 3, 2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale) + bias
    if mask is not None:
        scores = onp.where(mask, scores, -onp.inf)
    return (scipy.special.softmax(scores, axis=-1) @ v).transpose(0, 2, 1, 3).reshape(n, t, -1)


def saved(tmp_path, name, weights):
    arrays = {key: np.array(value, dtype="float64") for key, value in weights.items()}
    mx._core.save_safetensors(str(tmp_path / f"{name}.safetensors"), arrays, {})


VOCABULARY, UNITS, HIDDEN, LAYERS, HEADS = 11, 8, 12, 2, 2
TOKENS = onp.array([[1, 4, 7, 2], [3, 9, 0, 0]])


def bert_weights():
    w = {
        "embeddings.word_embeddings.weight": normal(VOCABULARY, UNITS),
        "embeddings.position_embeddings.weight": normal(6, UNITS),
        "embeddings.token_type_embeddings.weight": normal(2, UNITS),
        "pooler.dense.weight": normal(UNITS, UNITS),
        "pooler.dense.bias": normal(UNITS),
    }
    norms = ["embeddings.LayerNorm"]
    for i in range(LAYERS):
        p = f"encoder.layer.{i}."
        for name, rows, columns in (
            ("attention.self.query", UNITS, UNITS), ("attention.self.key", UNITS, UNITS),
            ("attention.self.value", UNITS, UNITS), ("attention.output.dense", UNITS, UNITS),
            ("intermediate.dense", HIDDEN, UNITS), ("output.dense", UNITS, HIDDEN),
        ):  # fmt: skip
            w[f"{p}{name}.weight"], w[f"{p}{name}.bias"] = normal(rows, columns), normal(rows)
        norms += [p + "attention.output.LayerNorm", p + "output.LayerNorm"]
    for name in norms:
        w[name + ".weight"], w[name + ".bias"] = 1 + normal(UNITS), normal(UNITS)
    return w


def bert_reference(w, tokens, types, valid):
    def affine(x, name):
        return x @ w[name + ".weight"].T + w[name + ".bias"]

    x = w["embeddings.word_embeddings.weight"][tokens] + w["embeddings.position_embeddings.weight"][: tokens.shape[1]]
    x = layer_norm(x + w["embeddings.token_type_embeddings.weight"][types], w, "embeddings.LayerNorm", 1e-12)
    mask = (onp.arange(tokens.shape[1]) < valid[:, None])[:, None, None]
    for i in range(LAYERS):
        p = f"encoder.layer.{i}."
        q, k, v = (affine(x, f"{p}attention.self.{name}") for name in ("query", "key", "value"))
        mixed = affine(attention(q, k, v, HEADS, mask), p + "attention.output.dense")
        x = layer_norm(x + mixed, w, p + "attention.output.LayerNorm", 1e-12)
        inner = affine(x, p + "intermediate.dense")
        inner = inner * scipy.special.ndtr(inner)
        x = layer_norm(x + affine(inner, p + "output.dense"), w, p + "output.LayerNorm", 1e-12)
    return x, onp.tanh(affine(x[:, 0], "pooler.dense"))


@pytest.mark.parametrize("prefix", ["", "bert."])
def test_bert_is_its_formula_with_weights_of_hugging_faces_names(tmp_path, prefix):
    weights = bert_weights()
    others = {"cls.predictions.bias": normal(VOCABULARY)} if prefix else {"embeddings.position_ids": onp.arange(6.0)}
    saved(tmp_path, "bert-base", {**{prefix + name: value for name, value in weights.items()}, **others})
    net = text.bert_base(
        True, root=tmp_path, vocab_size=VOCABULARY, units=UNITS, hidden_size=HIDDEN, num_layers=LAYERS,
        num_heads=HEADS, max_length=6,
    )  # fmt: skip
    net.cast("float64")
    types, valid = onp.array([[0, 0, 1, 1], [0, 1, 0, 0]]), onp.array([4, 2])
    outputs, pooled = net(np.array(TOKENS), np.array(types), np.array(valid))
    # Loaded into float32 parameters: their rounding, 6e-8, is amplified by two layers.
    rounded = {name: value.astype("float32").astype("float64") for name, value in weights.items()}
    expected = bert_reference(rounded, TOKENS, types, valid)
    onp.testing.assert_allclose(outputs.asnumpy(), expected[0], rtol=1e-9, atol=1e-10)
    onp.testing.assert_allclose(pooled.asnumpy(), expected[1], rtol=1e-9, atol=1e-10)
    # Our own names are read too.
    net.cast("float32")
    net.save_parameters(str(tmp_path / "bert-base.safetensors"))
    twin = text.bert_base(
        True, root=str(tmp_path), vocab_size=VOCABULARY, units=UNITS, hidden_size=HIDDEN, num_layers=LAYERS,
        num_heads=HEADS, max_length=6,
    )  # fmt: skip
    assert (twin(np.array(TOKENS))[0] == net(np.array(TOKENS))[0]).all()


def gpt2_weights():
    w = {"wte.weight": normal(VOCABULARY, UNITS), "wpe.weight": normal(6, UNITS)}
    norms = ["ln_f"]
    for i in range(LAYERS):
        p = f"h.{i}."
        # Inputs first.
        for name, rows, columns in (
            ("attn.c_attn", UNITS, 3 * UNITS), ("attn.c_proj", UNITS, UNITS),
            ("mlp.c_fc", UNITS, 4 * UNITS), ("mlp.c_proj", 4 * UNITS, UNITS),
        ):  # fmt: skip
            w[f"{p}{name}.weight"], w[f"{p}{name}.bias"] = normal(rows, columns), normal(columns)
        norms += [p + "ln_1", p + "ln_2"]
    for name in norms:
        w[name + ".weight"], w[name + ".bias"] = 1 + normal(UNITS), normal(UNITS)
    return w


def gpt2_reference(w, tokens):
    def affine(x, name):
        return x @ w[name + ".weight"] + w[name + ".bias"]

    length = tokens.shape[1]
    x, mask = w["wte.weight"][tokens] + w["wpe.weight"][:length], onp.tri(length, dtype=bool)
    for i in range(LAYERS):
        p = f"h.{i}."
        q, k, v = onp.split(affine(layer_norm(x, w, p + "ln_1", 1e-5), p + "attn.c_attn"), 3, axis=-1)
        x = x + affine(attention(q, k, v, HEADS, mask), p + "attn.c_proj")
        inner = affine(layer_norm(x, w, p + "ln_2", 1e-5), p + "mlp.c_fc")
        inner = 0.5 * inner * (1 + onp.tanh(math.sqrt(2 / math.pi) * (inner + 0.044715 * inner**3)))
        x = x + affine(inner, p + "mlp.c_proj")
    return layer_norm(x, w, "ln_f", 1e-5) @ w["wte.weight"].T


@pytest.mark.parametrize("prefix", ["", "transformer."])
def test_gpt2_is_its_formula_with_weights_of_hugging_faces_names(tmp_path, prefix):
    weights = gpt2_weights()
    others = {"h.0.attn.bias": onp.tri(6)} if not prefix else {"lm_head.weight": weights["wte.weight"]}
    saved(tmp_path, "gpt2", {**{prefix + name: value for name, value in weights.items()}, **others})
    sizes = {"vocab_size": VOCABULARY, "units": UNITS, "num_layers": LAYERS, "num_heads": HEADS, "max_length": 6}
    net = text.gpt2(pretrained=True, root=tmp_path, **sizes)
    net.cast("float64")
    rounded = {name: value.astype("float32").astype("float64") for name, value in weights.items()}
    expected = gpt2_reference(rounded, TOKENS)
    onp.testing.assert_allclose(net(np.array(TOKENS)).asnumpy(), expected, rtol=1e-9, atol=1e-10)
    with pytest.raises(ValueError, match="texts of 7 tokens are longer than `max_length`, 6"):
        net(np.zeros((1, 7), dtype="int64"))


def test_gpt2_does_not_see_what_comes():
    net = text.GPT2(VOCABULARY, UNITS, LAYERS, HEADS, 6, dropout=0)
    net.initialize()
    changed = TOKENS.copy()
    changed[:, 3] = 5
    onp.testing.assert_array_equal(net(np.array(TOKENS))[:, :3].asnumpy(), net(np.array(changed))[:, :3].asnumpy())


def t5_weights():
    inner = HEADS * 3
    w = {"shared.weight": normal(VOCABULARY, UNITS)}
    for side, parts in (("encoder", ("SelfAttention",)), ("decoder", ("SelfAttention", "EncDecAttention"))):
        for i in range(LAYERS):
            p = f"{side}.block.{i}.layer."
            for j, part in enumerate(parts):
                for name in "qkv":
                    w[f"{p}{j}.{part}.{name}.weight"] = normal(inner, UNITS)
                w[f"{p}{j}.{part}.o.weight"] = normal(UNITS, inner)
                w[f"{p}{j}.layer_norm.weight"] = 1 + normal(UNITS)
            w[f"{p}{len(parts)}.DenseReluDense.wi.weight"] = normal(HIDDEN, UNITS)
            w[f"{p}{len(parts)}.DenseReluDense.wo.weight"] = normal(UNITS, HIDDEN)
            w[f"{p}{len(parts)}.layer_norm.weight"] = 1 + normal(UNITS)
        w[f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"] = normal(8, HEADS)
        w[f"{side}.final_layer_norm.weight"] = 1 + normal(UNITS)
    return w


def bucket(relative, is_causal):
    """Of 8 buckets up to a distance of 12."""
    count, start = 8, 0
    if is_causal:
        distance = max(-relative, 0)
    else:
        count = 4
        start, distance = (4 if relative > 0 else 0), abs(relative)
    exact = count // 2
    if distance < exact:
        return start + distance
    far = exact + int(math.log(distance / exact) / math.log(12 / exact) * (count - exact))
    return start + min(far, count - 1)


def t5_reference(w, tokens, targets, valid):
    def norm(x, name):
        return x / onp.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w[name + ".weight"]

    def stack(side, x, mask, memory=None, memory_mask=None):
        length = x.shape[1]
        table = w[f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"]
        rows = [[table[bucket(j - i, side == "decoder")] for j in range(length)] for i in range(length)]
        bias = onp.array(rows).transpose(2, 0, 1)
        for i in range(LAYERS):
            p = f"{side}.block.{i}.layer."
            parts = [("SelfAttention", None, mask, bias)]
            if memory is not None:
                parts.append(("EncDecAttention", memory, memory_mask, 0.0))
            for j, (part, source, seen, added) in enumerate(parts):
                y = norm(x, f"{p}{j}.layer_norm")
                source = y if source is None else source
                q, k, v = (a @ w[f"{p}{j}.{part}.{n}.weight"].T for a, n in ((y, "q"), (source, "k"), (source, "v")))
                x = x + attention(q, k, v, HEADS, seen, 1.0, added) @ w[f"{p}{j}.{part}.o.weight"].T
            j = len(parts)
            inner = norm(x, f"{p}{j}.layer_norm") @ w[f"{p}{j}.DenseReluDense.wi.weight"].T
            x = x + onp.maximum(inner, 0) @ w[f"{p}{j}.DenseReluDense.wo.weight"].T
        return norm(x, f"{side}.final_layer_norm")

    seen = (onp.arange(tokens.shape[1]) < valid[:, None])[:, None, None]
    memory = stack("encoder", w["shared.weight"][tokens], seen)
    x = stack("decoder", w["shared.weight"][targets], onp.tri(targets.shape[1], dtype=bool), memory, seen)
    return x * UNITS**-0.5 @ w["shared.weight"].T


def test_t5_is_its_formula_with_weights_of_hugging_faces_names(tmp_path):
    weights = t5_weights()
    saved(tmp_path, "t5-small", {**weights, "encoder.embed_tokens.weight": weights["shared.weight"]})
    net = text.t5_small(
        pretrained=True, root=tmp_path, vocab_size=VOCABULARY, units=UNITS, head_units=3, hidden_size=HIDDEN,
        num_layers=LAYERS, num_heads=HEADS, num_buckets=8, max_distance=12,
    )  # fmt: skip
    net.cast("float64")
    tokens = GENERATOR.integers(0, VOCABULARY, size=(2, 17))
    targets, valid = GENERATOR.integers(0, VOCABULARY, size=(2, 15)), onp.array([17, 6])
    rounded = {name: value.astype("float32").astype("float64") for name, value in weights.items()}
    expected = t5_reference(rounded, tokens, targets, valid)
    found = net(np.array(tokens), np.array(targets), np.array(valid)).asnumpy()
    onp.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    ("net", "inputs"),
    [
        (lambda: text.BERT(VOCABULARY, UNITS, HIDDEN, 1, HEADS, 6, dropout=0), (TOKENS,)),
        (lambda: text.GPT2(VOCABULARY, UNITS, 1, HEADS, 6, dropout=0), (TOKENS,)),
        (lambda: text.T5(VOCABULARY, UNITS, 4, HIDDEN, 1, HEADS, dropout=0), (TOKENS, TOKENS)),
    ],
)
def test_all_parameters_learn(net, inputs):
    mx.random.seed(2)
    net = net()
    net.initialize()
    trainer = mx.gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
    losses = []
    for _ in range(8):
        with mx.autograd.record():
            out = net(*map(np.array, inputs))
            scores = np.concatenate([part.ravel() for part in (out if isinstance(out, tuple) else (out,))])
            loss = ((scores - np.sin(np.arange(scores.size))) ** 2).mean()
        loss.backward()
        trainer.step(1)
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    for name, parameter in net.collect_params().items():
        assert np.isfinite(parameter.grad()).all(), name


def test_missing_files_and_sizes_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"gpt2-xl: .*gpt2-xl\.safetensors.* nothing is downloaded"):
        text.gpt2_xl(pretrained=True, root=tmp_path, num_layers=1, units=50)
    with pytest.raises(ValueError, match=r"get_gpt2: `size` must be one of .*'xl'.*, found 'huge'"):
        text.get_gpt2("huge")
    with pytest.raises(ValueError, match=r"get_t5: `size` must be one of .*found 'tiny'"):
        text.get_t5("tiny")
    with pytest.raises(ValueError, match="`units` must be a multiple of `num_heads`, found 7 and 2"):
        text.MultiHeadAttention(7, 2)


@pytest.mark.parametrize(
    ("net", "inputs"),
    [
        (
            lambda: text.BERT(VOCABULARY, UNITS, HIDDEN, 2, HEADS, 6),
            (TOKENS, onp.zeros_like(TOKENS), onp.array([4, 2])),
        ),
        (lambda: text.GPT2(VOCABULARY, UNITS, 2, HEADS, 6), (TOKENS,)),
        (lambda: text.T5(VOCABULARY, UNITS, 4, HIDDEN, 2, HEADS), (TOKENS, TOKENS, onp.array([4, 2]))),
    ],
)
def test_hybridized_networks_give_the_same(net, inputs):
    net = net()
    net.initialize()
    given = [np.array(x) for x in inputs]
    expected = net(*given)
    net.hybridize()
    for _ in range(2):
        found = net(*given)
        pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
        for mine, theirs in pairs:
            # Fused loops round in another order: a few units in the last place, amplified by two layers.
            onp.testing.assert_allclose(mine.asnumpy(), theirs.asnumpy(), rtol=1e-4, atol=1e-5)
