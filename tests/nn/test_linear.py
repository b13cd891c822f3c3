"""The affine map and dropout."""

import numpy as onp
import pytest

import mxnet as mx
from mxnet import np, npx

RNG = onp.random.default_rng(11)


def test_fully_connected_sees_samples_as_rows():
    x, w, b = RNG.normal(size=(3, 2, 4)), RNG.normal(size=(5, 8)), RNG.normal(size=5)
    args = [np.array(a, dtype="float64") for a in (x, w, b)]
    y = npx.fully_connected(*args, num_hidden=5, no_bias=False)
    onp.testing.assert_allclose(y.asnumpy(), x.reshape(3, 8) @ w.T + b, atol=1e-13)


def test_fully_connected_may_map_the_last_axis():
    x, w = RNG.normal(size=(3, 2, 4)), RNG.normal(size=(5, 4))
    y = npx.fully_connected(np.array(x, dtype="float64"), np.array(w, dtype="float64"), flatten=False)
    onp.testing.assert_allclose(y.asnumpy(), x @ w.T, atol=1e-13)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_every_float_type_gives_itself(dtype):
    x, w, b = (np.array(RNG.normal(size=s), dtype=dtype) for s in ((3, 4), (5, 4), (5,)))
    y = npx.fully_connected(x, w, b, no_bias=False)
    assert str(y.dtype) == dtype
    x, w, b = (a.asnumpy().astype(float) for a in (x, w, b))
    want, sizes = x @ w.T + b, abs(x) @ abs(w).T + abs(b)
    # One rounding of the result, and four products and the bias in float32.
    bound = float(np.finfo(dtype).eps) / 2 * abs(want) + 5 * 2**-24 * sizes
    assert (abs(y.asnumpy().astype(float) - want) <= bound).all()


def test_what_does_not_fit_is_said_in_numbers():
    x, w = np.zeros((3, 4)), np.zeros((5, 6))
    with pytest.raises(ValueError, match=r"sample of `x` \(size 4\) must equal the last axis of `weight` \(size 6\)"):
        npx.fully_connected(x, w)
    with pytest.raises(ValueError, match="`num_hidden` is 7, the first axis of `weight` has size 5"):
        npx.fully_connected(np.zeros((3, 6)), w, num_hidden=7)
    with pytest.raises(ValueError, match="`no_bias` is True"):
        npx.fully_connected(np.zeros((3, 6)), w, np.zeros(5))
    with pytest.raises(ValueError, match="`weight` has 1 axes, needs 2"):
        npx.fully_connected(x, np.zeros(4))


def test_dropout_is_the_identity_outside_training():
    x = np.array(RNG.normal(size=(4, 5)))
    onp.testing.assert_array_equal(npx.dropout(x, 0.9).asnumpy(), x.asnumpy())


def test_dropout_drops_its_share_and_keeps_the_mean():
    mx.random.seed(3)
    x = np.ones((200, 500))
    x.attach_grad()
    with mx.autograd.record():
        y = npx.dropout(x, 0.3)
    y.backward()
    value = y.asnumpy()
    # 100 000 draws: the share deviates by more than 5 standard deviations (0.0073) once in two million runs.
    assert abs((value == 0).mean() - 0.3) < 0.0073
    onp.testing.assert_allclose(value[value != 0], 1 / 0.7, rtol=1e-6)
    onp.testing.assert_array_equal(x.grad.asnumpy(), value)


def test_dropout_is_repeatable_and_shares_decisions_along_axes():
    x = np.ones((6, 7, 5))
    draws = []
    for _ in range(2):
        mx.random.seed(4)
        draws.append(npx.dropout(x, 0.5, mode="always", axes=(1,)).asnumpy())
    onp.testing.assert_array_equal(*draws)
    assert (draws[0] == draws[0][:, :1]).all()
    assert len(onp.unique(draws[0])) == 2


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_dropout_keeps_the_dtype(dtype):
    y = npx.dropout(np.ones((64,), dtype=dtype), 0.5, mode="always")
    assert str(y.dtype) == dtype
    assert set(y.asnumpy().astype(float).tolist()) == {0.0, 2.0}


def test_dropout_of_everything_is_zero_and_odd_rates_are_refused():
    assert not npx.dropout(np.ones(9), 1.0, mode="always").asnumpy().any()
    with pytest.raises(ValueError, match=r"`p` is 1.5, must be in \[0, 1\]"):
        npx.dropout(np.ones(3), 1.5)
