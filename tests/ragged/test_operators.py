"""Operators on segments against loops over the rows."""

import numpy as onp
import pytest
from tests.support import slopes

import mxnet as mx
from mxnet import _core, np

RNG = onp.random.default_rng(32)
OP = _core.namespaces["op"]
FOLDS = {
    "ragged_sum": (onp.sum, 0),
    "ragged_prod": (onp.prod, 1),
    "ragged_max": (onp.max, None),
    "ragged_min": (onp.min, None),
}


def offsets(*lengths):
    return onp.concatenate([[0], onp.cumsum(lengths)]).astype("int64")


def rows(x, at):
    return [x[a:b] for a, b in zip(at[:-1], at[1:], strict=True)]


LENGTHS = [(3, 0, 4), (1,), (0, 0), (), (5, 9000, 0, 2, 20000, 0)]


@pytest.mark.parametrize("name", FOLDS)
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("tail", [(), (3,), (2, 2), (0,)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "uint8", "bool"])
def test_folds_of_segments(name, lengths, tail, dtype):
    at = offsets(*lengths)
    x = RNG.uniform(0.999, 1.001, (at[-1], *tail)) if name == "ragged_prod" else RNG.normal(size=(at[-1], *tail)) * 9
    if dtype == "bool":
        x = x > 1
    x = onp.abs(x).astype(dtype) if dtype == "uint8" else x.astype(dtype)
    got = OP[name](np.array(x), np.array(at)).asnumpy()
    fold, empty = FOLDS[name]
    for i, part in enumerate(rows(x, at)):
        if not len(part):
            if empty is not None:
                assert (got[i] == empty).all()
            continue
        want = fold(part, axis=0)
        assert got.dtype == want.dtype
        eps = {"float64": 2.0**-52, "float32": 2.0**-23}.get(dtype, 0)
        # Sums in blocks: far fewer roundings than rows; the bound is that of one rounding for each row.
        scale = onp.abs(part.astype("float64")).sum(0) if name == "ragged_sum" else abs(onp.float64(want)) * len(part)
        assert (onp.abs(got[i].astype("float64") - want) <= eps * scale).all()


def test_complex_numbers_and_halves_are_summed():
    at = offsets(2, 3)
    x = RNG.normal(size=(5, 2)) + 1j * RNG.normal(size=(5, 2))
    onp.testing.assert_allclose(
        OP["ragged_sum"](np.array(x), np.array(at)).asnumpy(), [p.sum(0) for p in rows(x, at)], rtol=1e-14
    )
    half = x.real.astype("float16")
    got = OP["ragged_sum"](np.array(half), np.array(at)).asnumpy()
    # Summed in float32, rounded once.
    onp.testing.assert_array_equal(got, [p.astype("float32").sum(0).astype("float16") for p in rows(half, at)])
    with pytest.raises(TypeError, match="ragged_max: no kernel for dtype complex128"):
        OP["ragged_max"](np.array(x), np.array(at))


def test_complex_products_and_their_gradients():
    at = offsets(2, 0, 3)
    x = RNG.normal(size=(5, 2)) + 1j * RNG.normal(size=(5, 2))
    x[2, 0] = 0
    v = np.array(x)
    v.attach_grad()
    with mx.autograd.record():
        y = OP["ragged_prod"](v, np.array(at))
    y.backward(np.ones_like(y))
    onp.testing.assert_allclose(y.asnumpy(), [p.prod(0) for p in rows(x, at)], rtol=1e-14)
    others = [onp.delete(p, i, axis=0).prod(0) for p in rows(x, at) for i in range(len(p))]
    onp.testing.assert_allclose(v.grad.asnumpy(), onp.conj(others), rtol=1e-13)


def test_nan_is_the_extreme_of_its_segment():
    x = np.array([1.0, onp.nan, 2.0, 3.0])
    for name in ("ragged_max", "ragged_min"):
        got = OP[name](x, np.array([0, 2, 4])).asnumpy()
        assert onp.isnan(got[0])
        assert not onp.isnan(got[1])


def test_gradients_of_products_with_zeros():
    x = onp.array([0.0, 2.0, 3.0, 0.0, 0.0, 5.0, 4.0, 3.0])
    v = np.array(x)
    v.attach_grad()
    with mx.autograd.record():
        y = OP["ragged_prod"](v, np.array([0, 3, 6, 8]))
    y.backward()
    onp.testing.assert_array_equal(v.grad.asnumpy(), [6, 0, 0, 0, 0, 0, 3, 4])


def test_elements_that_tie_share_the_gradient():
    x = np.array([1.0, 2.0, 2.0, 5.0])
    x.attach_grad()
    with mx.autograd.record():
        y = OP["ragged_max"](x, np.array([0, 3, 3, 4]))
    y.backward()
    assert x.grad.asnumpy().tolist() == [0, 0.5, 0.5, 1]


@pytest.mark.parametrize("name", ["ragged_softmax", "ragged_log_softmax"])
@pytest.mark.parametrize("tail", [(), (3,)])
@pytest.mark.parametrize("lengths", [(3, 0, 4), (2, 70000, 1), (63, 64, 65, 1, 0, 700)])
def test_softmax_of_segments(name, tail, lengths):
    at = offsets(*lengths)
    x = RNG.normal(size=(at[-1], *tail)) * 5
    got = OP[name](np.array(x), np.array(at)).asnumpy()
    for part, found in zip(rows(x, at), rows(got, at), strict=True):
        if len(part):
            shifted = part - part.max(0)
            want = shifted - onp.log(onp.exp(shifted).sum(0))
            want = want if "log" in name else onp.exp(want)
            onp.testing.assert_allclose(found, want, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("tail", [(), (2,)])
def test_positions_that_sort_segments(tail):
    at = offsets(5, 0, 300, 70000)
    x = RNG.integers(0, 50, (at[-1], *tail)).astype("float32")
    got = OP["ragged_argsort"](np.array(x), np.array(at)).asnumpy()
    for part, found, start in zip(rows(x, at), rows(got, at), at, strict=False):
        onp.testing.assert_array_equal(found - start, onp.argsort(part, axis=0, kind="stable"))


@pytest.mark.parametrize("tail", [(), (2,)])
def test_positions_that_sort_segments_downwards(tail):
    at = offsets(5, 0, 300)
    x = RNG.integers(0, 50, (at[-1], *tail)).astype("float32")
    x[3] = onp.nan
    got = OP["ragged_argsort"](np.array(x), np.array(at), True).asnumpy()
    for part, found, start in zip(rows(x, at), rows(got, at), at, strict=False):
        # NaN counts as the largest value; equal elements keep their order.
        onp.testing.assert_array_equal(found - start, onp.argsort(-onp.nan_to_num(part, nan=99), axis=0, kind="stable"))


@pytest.mark.parametrize("tail", [(), (3,)])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("lengths", [(3, 0, 4), (2, 70000, 1), (40000, 1, 40000)])
def test_running_sums_of_segments(tail, reverse, lengths):
    at = offsets(*lengths)
    x = RNG.normal(size=(at[-1], *tail))
    got = OP["ragged_cumsum"](np.array(x), np.array(at), reverse).asnumpy()
    for part, found in zip(rows(x, at), rows(got, at), strict=True):
        want = part[::-1].cumsum(0)[::-1] if reverse else part.cumsum(0)
        # Sums of n terms of either order differ by about n rounding errors of sums below sqrt(n).
        onp.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-16 * len(part) ** 1.5 + 1e-13)


def test_padding_and_back():
    at = offsets(2, 0, 3)
    x = RNG.normal(size=(5, 2))
    padded = OP["ragged_pad"](np.array(x), np.array(at), 4, -7.0).asnumpy()
    want = onp.full((3, 4, 2), -7.0)
    for i, part in enumerate(rows(x, at)):
        want[i, : len(part)] = part
    onp.testing.assert_array_equal(padded, want)
    back = OP["ragged_unpad"](np.array(padded), np.array(at), 5).asnumpy()
    onp.testing.assert_array_equal(back, x)
    cut = OP["ragged_pad"](np.array(x), np.array(at), 1, 0.0).asnumpy()
    onp.testing.assert_array_equal(cut[:, 0], [x[0], [0, 0], x[2]])
    onp.testing.assert_array_equal(OP["ragged_unpad"](np.array(cut), np.array(at), 5).asnumpy()[[0, 1]], [x[0], [0, 0]])


@pytest.mark.parametrize("lengths", [(2, 0, 3), (40, 9000)])
def test_products_with_matrices_of_their_own(lengths):
    at = offsets(*lengths)
    x, w = RNG.normal(size=(at[-1], 4)), RNG.normal(size=(len(lengths), 4, 3))
    got = OP["ragged_matmul"](np.array(x), np.array(w), np.array(at)).asnumpy()
    want = onp.concatenate([p @ m for p, m in zip(rows(x, at), w, strict=True)])
    onp.testing.assert_allclose(got, want, atol=1e-14)
    turned = OP["ragged_matmul"](np.array(x), np.array(w.swapaxes(1, 2)), np.array(at), True).asnumpy()
    onp.testing.assert_allclose(turned, want, atol=1e-14)
    outer = OP["ragged_outer"](np.array(x), np.array(got), np.array(at)).asnumpy()
    want = onp.stack([p.T @ q for p, q in zip(rows(x, at), rows(got, at), strict=True)])
    onp.testing.assert_allclose(outer, want, atol=1e-14 * (1 + at[-1]))


@pytest.mark.parametrize("is_causal", [False, True])
def test_attention_within_segments(is_causal):
    q_at, k_at = offsets(3, 0, 70, 2), offsets(300, 4, 5, 0)
    q, k, v = (RNG.normal(size=(n, 2, d)) for n, d in ((75, 4), (309, 4), (309, 3)))
    got = OP["ragged_attention"](*map(np.array, (q, k, v, q_at, k_at)), is_causal, 0.5)[0].asnumpy()
    for i in range(4):
        parts = [rows(x, at)[i].swapaxes(0, 1) for x, at in ((q, q_at), (k, k_at), (v, k_at))]
        want = mx.npx.scaled_dot_product_attention(*map(np.array, parts), is_causal=is_causal)
        onp.testing.assert_allclose(rows(got, q_at)[i].swapaxes(0, 1), want.asnumpy(), atol=1e-13)


@pytest.mark.parametrize("is_causal", [False, True])
def test_gradients_of_attention_within_segments(is_causal):
    q_at, k_at = np.array(offsets(3, 0, 2)), np.array(offsets(2, 1, 4))
    xs = [RNG.normal(size=(n, 2, d)) for n, d in ((5, 3), (7, 3), (7, 2))]
    slopes.check(lambda q, k, v: OP["ragged_attention"](q, k, v, q_at, k_at, is_causal, 0.7)[0], xs, RNG)


def test_results_do_not_depend_on_the_number_of_threads():
    at = np.array(offsets(5, 90000, 0, 40000))
    x = np.array(RNG.normal(size=(130005, 2))).astype("float32")
    calls = ["ragged_sum", "ragged_prod", "ragged_cumsum", "ragged_softmax", "ragged_log_softmax"]
    before = _core.num_threads()
    found = []
    try:
        for n in (1, 2):
            _core.set_num_threads(n)
            found.append([OP[name](x, at).asnumpy() for name in calls])
    finally:
        _core.set_num_threads(before)
    for one, two in zip(*found, strict=True):
        onp.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ([1, 3], "offsets start with 0, found 1"),
        ([0, 2, 1, 3], "element 2 is 1, after 2"),
        ([0, 2], "the last offset is 2, but there are 3 rows"),
    ],
)
def test_malformed_offsets_are_refused(given, problem):
    with pytest.raises(ValueError, match=problem):
        OP["ragged_sum"](np.ones(3), np.array(given)).asnumpy()


def test_forms_of_offsets_are_checked_at_the_call():
    with pytest.raises(TypeError, match="offsets are int64, found int32"):
        OP["ragged_sum"](np.ones(3), np.array([0, 3], dtype="int32"))
    with pytest.raises(ValueError, match="offsets are a vector"):
        OP["ragged_sum"](np.ones(3), np.array([[0, 3]]))
    x = np.ones((3, 1, 2))
    with pytest.raises(ValueError, match="2 segments of queries and 1 segments of keys"):
        OP["ragged_attention"](x, x, x, np.array([0, 1, 3]), np.array([0, 3]))
