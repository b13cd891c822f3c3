"""Scaled dot-product attention against its definition in float64."""

import numpy as onp
import pytest
from tests.support import slopes

import mxnet as mx
from mxnet import _core, np, npx

RNG = onp.random.default_rng(31)
attend = npx.scaled_dot_product_attention


def definition(q, k, v, mask=None, is_causal=False):
    scores = q @ onp.swapaxes(k, -1, -2) / onp.sqrt(q.shape[-1])
    if mask is not None:
        scores = onp.where(mask, scores, -onp.inf) if mask.dtype == bool else scores + mask
    if is_causal:
        scores = onp.where(onp.tri(*scores.shape[-2:], dtype=bool), scores, -onp.inf)
    top = scores.max(-1, keepdims=True, initial=-1e300)
    weights = onp.exp(scores - top)
    total = weights.sum(-1, keepdims=True)
    return onp.divide(weights, total, out=onp.zeros_like(weights), where=total > 0) @ v


def operands(*lead, queries=5, keys=7, dim=3, width=2):
    return [RNG.normal(size=(*lead, n, d)) for n, d in ((queries, dim), (keys, dim), (keys, width))]


# Blocks hold 64 queries and 256 keys: sizes below, at and beyond them.
@pytest.mark.parametrize("sizes", [(1, 1), (5, 7), (64, 256), (70, 300), (130, 600)])
@pytest.mark.parametrize("is_causal", [False, True])
def test_blocks_give_the_definition(sizes, is_causal):
    q, k, v = operands(2, queries=sizes[0], keys=sizes[1])
    got = attend(*map(np.array, (q, k, v)), is_causal=is_causal).asnumpy()
    # Weights add up to 1, so the result is as accurate as a value times a few hundred roundings.
    onp.testing.assert_allclose(got, definition(q, k, v, is_causal=is_causal), atol=1e-13)


def test_scores_of_any_size_do_not_overflow():
    q, k, v = operands(queries=4, keys=600)
    got = attend(*(np.array(x) for x in (q * 300, k * 300, v))).asnumpy()
    onp.testing.assert_allclose(got, definition(q * 300, k * 300, v), atol=1e-10)


@pytest.mark.parametrize("shape", [(5, 7), (7,), (1, 1, 7), (2, 1, 5, 7), (3, 5, 1), ()])
@pytest.mark.parametrize("is_bool", [False, True])
def test_masks_broadcast(shape, is_bool):
    q, k, v = operands(2, 3)
    mask = RNG.normal(size=shape)
    mask = onp.asarray(mask > -0.5) if is_bool else onp.asarray(mask)
    got = attend(*map(np.array, (q, k, v, mask)))
    onp.testing.assert_allclose(got.asnumpy(), definition(q, k, v, mask), atol=1e-13)


def test_queries_without_keys_are_zero():
    q, k, v = operands()
    mask = onp.ones((5, 7), bool)
    mask[2] = False
    got = attend(*map(np.array, (q, k, v, mask))).asnumpy()
    assert (got[2] == 0).all()
    onp.testing.assert_allclose(got, definition(q, k, v, mask), atol=1e-13)
    none = attend(np.array(q), np.zeros((0, 3), dtype="float64"), np.zeros((0, 2), dtype="float64"))
    assert none.shape == (5, 2)
    assert not none.asnumpy().any()


def test_leading_axes_broadcast():
    q, k, v = operands(2, 3)
    got = attend(np.array(q), np.array(k[0]), np.array(v[:, :1]))
    want = definition(q, onp.broadcast_to(k[0], k.shape), onp.broadcast_to(v[:, :1], v.shape))
    onp.testing.assert_allclose(got.asnumpy(), want, atol=1e-13)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_narrow_types_stay(dtype):
    q, k, v = operands(2)
    got = attend(*(np.array(x).astype(dtype) for x in (q, k, v)))
    assert got.dtype == np.zeros(1, dtype=dtype).dtype
    want = definition(*(np.array(x).astype(dtype).astype("float64").asnumpy() for x in (q, k, v)))
    eps = {"float16": 2**-11, "bfloat16": 2**-8, "float32": 2**-24}[dtype]
    # One rounding of the result, and the float32 of the kernel.
    onp.testing.assert_allclose(got.astype("float64").asnumpy(), want, atol=4 * (eps + 8 * 2**-24))


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("mask", [None, "bool", "float"])
def test_gradients(is_causal, mask):
    q, k, v = operands(2, queries=4, keys=5)
    extra = []
    fixed = None
    if mask == "bool":
        fixed = np.array([True, False, True, True, True])
    elif mask == "float":
        extra = [RNG.normal(size=(4, 5))]

    def function(q, k, v, *mask):
        return attend(q, k, v, mask[0] if mask else fixed, is_causal)

    slopes.check(function, [q, k, v, *extra], RNG)


@pytest.mark.parametrize("is_causal", [False, True])
def test_the_fused_gradient_is_the_composed_one(is_causal):
    q, k, v = (np.array(x) for x in operands(2, queries=130, keys=600))
    for x in (q, k, v):
        x.attach_grad()
    with mx.autograd.record():
        y = attend(q, k, v, is_causal=is_causal)
        loss = (y * y).sum()
    fused = mx.autograd.grad([loss], [q, k, v], retain_graph=True)
    composed = mx.autograd.grad([loss], [q, k, v], create_graph=True)
    for a, b in zip(fused, composed, strict=True):
        onp.testing.assert_allclose(a.asnumpy(), b.asnumpy(), atol=1e-12)


def test_results_do_not_depend_on_the_number_of_threads():
    q, k, v = (np.array(x).astype("float32") for x in operands(3, queries=200, keys=300))
    before = _core.num_threads()
    found = []
    try:
        for n in (1, 2):
            _core.set_num_threads(n)
            found.append(attend(q, k, v).asnumpy())
    finally:
        _core.set_num_threads(before)
    assert (found[0] == found[1]).all()


def test_sizes_that_do_not_fit_are_named():
    q, k, v = (np.array(x) for x in operands(2))
    with pytest.raises(ValueError, match="queries have 3 channels and keys 2; there are 7 keys"):
        attend(q, v, v)
    with pytest.raises(ValueError, match=r"`mask` has shape \(4, 7\), which does not broadcast to \(2, 5, 7\)"):
        attend(q, k, v, np.ones((4, 7)))
    with pytest.raises(ValueError, match="`v` has 1 axes, needs at least 2"):
        attend(q, k, np.ones(3))
    with pytest.raises(ValueError, match="axes before the last two broadcast"):
        attend(q, k[:1][[0, 0, 0]], v)


@pytest.mark.parametrize("dtype", ["int64", "int8", "bool"])
def test_integers_are_computed_as_floats(dtype):
    rng = onp.random.default_rng(4)
    q, k, v = (np.array(rng.integers(0, 2, size=(2, 5, 3))).astype(dtype) for _ in range(3))
    floats = [x.astype("float32") for x in (q, k, v)]
    found = npx.scaled_dot_product_attention(q, k, v)
    assert found.dtype == onp.float32
    assert (found == npx.scaled_dot_product_attention(*floats)).all()
    heads = [x.reshape(2, 5, 1, 3) for x in (q, k, v)]
    windows = [x.reshape(2, 5, 1, 3) for x in floats]
    dilation = np.array([1], dtype="int32")
    score = npx.sldwin_atten_score(heads[0], heads[1], dilation, w=1, symmetric=True)
    assert (score == npx.sldwin_atten_score(windows[0], windows[1], dilation, w=1, symmetric=True)).all()
    assert score.dtype == onp.float32
    rows = [mx.ragged.array([x[0], x[1]]) for x in (q, k, v)]
    found = npx.scaled_dot_product_attention(*rows)
    assert (found.values == npx.scaled_dot_product_attention(*(r.astype("float32") for r in rows)).values).all()
    with pytest.raises(TypeError, match="complex64"):
        npx.scaled_dot_product_attention(*(x.astype("complex64") for x in floats))
