"""Composed optimizers, step by step, against the published rules in float64 NumPy."""

import numpy as onp
import pytest

import mxnet as mx
from mxnet import gluon, optimizer

RESCALE, CLIP, LR, WD, STEPS = 0.5, 0.4, 0.05, 0.02, 6
SHAPES = [(3, 4), (5,), (1,), ()]


def grad_of(g):
    return onp.clip(RESCALE * g, -CLIP, CLIP)


def two_norm(x):
    return float(onp.linalg.norm(onp.ravel(x)))


def ratio(a, b):
    return a / b if a > 0 and b > 0 else 1.0


# A rule gets the weight, the gradient, a dictionary of its own for each weight, and the number of the update from 1.


def adabelief(w, g, kept, t, corrected=True):
    """Zhuang et al. 2020, algorithm 2; without the corrections if asked so."""
    g = grad_of(g) + WD * w
    kept["m"] = 0.9 * kept.get("m", 0) + 0.1 * g
    kept["s"] = 0.999 * kept.get("s", 0) + 0.001 * (g - kept["m"]) ** 2 + 1e-6
    m, s = (kept["m"] / (1 - 0.9**t), kept["s"] / (1 - 0.999**t)) if corrected else (kept["m"], kept["s"])
    return w - LR * m / (onp.sqrt(s) + 1e-6)


def adabelief_raw(w, g, kept, t):
    return adabelief(w, g, kept, t, corrected=False)


def adadelta(w, g, kept, t):
    """Zeiler 2012, algorithm 1, times a rate."""
    g = grad_of(g) + WD * w
    kept["g"] = 0.8 * kept.get("g", 0) + 0.2 * g * g
    step = -onp.sqrt(kept.get("x", 0) + 1e-3) / onp.sqrt(kept["g"] + 1e-3) * g
    kept["x"] = 0.8 * kept.get("x", 0) + 0.2 * step * step
    return w + LR * step


def adamax(w, g, kept, t):
    """Kingma and Ba 2014, algorithm 2."""
    g = grad_of(g) + WD * w
    kept["m"] = 0.9 * kept.get("m", 0) + 0.1 * g
    kept["u"] = onp.maximum(0.999 * kept.get("u", 0), abs(g))
    return w - LR / (1 - 0.9**t) * kept["m"] / (kept["u"] + 1e-8)


def ftml(w, g, kept, t):
    """Zheng and Kwok 2017, algorithm 1."""
    g = grad_of(g) + WD * w
    kept["v"] = 0.999 * kept.get("v", 0) + 0.001 * g * g
    d = (1 - 0.6**t) / LR * (onp.sqrt(kept["v"] / (1 - 0.999**t)) + 1e-8)
    sigma = d - 0.6 * kept.get("d", 0)
    kept["z"] = 0.6 * kept.get("z", 0) + 0.4 * g - sigma * w
    kept["d"] = d
    return -kept["z"] / d


def nadam(w, g, kept, t):
    """Dozat 2016, algorithm 2, with the schedule of its section 2."""
    g = grad_of(g) + WD * w

    def mu(k):
        return 0.9 * (1 - 0.5 * 0.96 ** (k * 0.004))

    kept["m"] = 0.9 * kept.get("m", 0) + 0.1 * g
    kept["v"] = 0.999 * kept.get("v", 0) + 0.001 * g * g
    through_now = onp.prod([mu(k) for k in range(1, t + 1)])
    through_next = through_now * mu(t + 1)
    ahead = (1 - mu(t)) * g / (1 - through_now) + mu(t + 1) * kept["m"] / (1 - through_next)
    return w - LR * ahead / (onp.sqrt(kept["v"] / (1 - 0.999**t)) + 1e-8)


def lamb(w, g, kept, t, corrected=True, low=0.0, high=onp.inf):
    """You et al. 2019, algorithm 2."""
    g = grad_of(g)
    kept["m"] = 0.9 * kept.get("m", 0) + 0.1 * g
    kept["v"] = 0.999 * kept.get("v", 0) + 0.001 * g * g
    m, v = (kept["m"] / (1 - 0.9**t), kept["v"] / (1 - 0.999**t)) if corrected else (kept["m"], kept["v"])
    r = m / (onp.sqrt(v) + 1e-6) + WD * w
    return w - LR * ratio(min(max(two_norm(w), low), high), two_norm(r)) * r


def lamb_raw(w, g, kept, t):
    return lamb(w, g, kept, t, corrected=False)


def lamb_bounded(w, g, kept, t):
    return lamb(w, g, kept, t, low=1.0, high=2.0)


def lans(w, g, kept, t, low=0.0, high=onp.inf):
    """Zheng et al. 2020, algorithm 2."""
    g = grad_of(g)
    g = g / two_norm(g)
    kept["m"] = 0.9 * kept.get("m", 0) + 0.1 * g
    kept["v"] = 0.999 * kept.get("v", 0) + 0.001 * g * g
    root = onp.sqrt(kept["v"] / (1 - 0.999**t)) + 1e-6
    r, c = kept["m"] / (1 - 0.9**t) / root + WD * w, g / root + WD * w
    size = min(max(two_norm(w), low), high)
    return w - LR * (0.9 * ratio(size, two_norm(r)) * r + 0.1 * ratio(size, two_norm(c)) * c)


def lans_bounded(w, g, kept, t):
    return lans(w, g, kept, t, low=1.0, high=2.0)


def lars(w, g, kept, t):
    """You, Gitman and Ginsburg 2017, algorithm 1."""
    g = grad_of(g)
    local = 0.01 * two_norm(w) / (two_norm(g) + WD * two_norm(w) + 1e-8)
    kept["v"] = 0.9 * kept.get("v", 0) + LR * local * (g + WD * w)
    return w - kept["v"]


def dcasgd(w, g, kept, t):
    """Zheng et al. 2016, equation 10, with momentum."""
    g = grad_of(g)
    step = g + WD * w + 0.04 * g * g * (w - kept.get("before", w))
    kept["mom"] = 0.9 * kept.get("mom", 0) - LR * step
    kept["before"] = w
    return w + kept["mom"]


def ftrl(w, g, kept, t):
    """McMahan et al. 2013, algorithm 1."""
    g = grad_of(g)
    n = kept.get("n", 0)
    sigma = (onp.sqrt(n + g * g) - onp.sqrt(n)) / LR
    kept["z"] = kept.get("z", 0) + g - sigma * w
    kept["n"] = n + g * g
    z = kept["z"]
    return onp.where(abs(z) <= 0.01, 0.0, -(z - onp.sign(z) * 0.01) / ((1.0 + onp.sqrt(kept["n"])) / LR + WD))


def signum(w, g, kept, t, momentum=0.9):
    """Bernstein et al. 2018, algorithm 2, with decoupled decay."""
    kept["m"] = momentum * kept.get("m", 0) + (1 - momentum) * (grad_of(g) + WD * w)
    return (1 - LR * 0.1) * w - LR * onp.sign(kept["m"])


def signsgd(w, g, kept, t):
    return signum(w, g, kept, t, momentum=0.0)


BOUNDS = {"lower_bound": 1.0, "upper_bound": 2.0}
RULES = {
    "adabelief": (optimizer.AdaBelief, {}, adabelief),
    "adabelief uncorrected": (optimizer.AdaBelief, {"correct_bias": False}, adabelief_raw),
    "adadelta": (optimizer.AdaDelta, {"rho": 0.8, "epsilon": 1e-3}, adadelta),
    "adamax": (optimizer.Adamax, {}, adamax),
    "ftml": (optimizer.FTML, {}, ftml),
    "nadam": (optimizer.Nadam, {}, nadam),
    "lamb": (optimizer.LAMB, {}, lamb),
    "lamb uncorrected": (optimizer.LAMB, {"bias_correction": False}, lamb_raw),
    "lamb bounded": (optimizer.LAMB, BOUNDS, lamb_bounded),
    "lans": (optimizer.LANS, {}, lans),
    "lans bounded": (optimizer.LANS, BOUNDS, lans_bounded),
    "lars": (optimizer.LARS, {"momentum": 0.9, "eta": 0.01}, lars),
    "dcasgd": (optimizer.DCASGD, {"momentum": 0.9}, dcasgd),
    "ftrl": (optimizer.Ftrl, {}, ftrl),
    "signum": (optimizer.Signum, {"wd_lh": 0.1}, signum),
    "signum without momentum": (optimizer.Signum, {"wd_lh": 0.1, "momentum": 0.0}, signsgd),
}
COMMON = {"learning_rate": LR, "wd": WD, "rescale_grad": RESCALE, "clip_gradient": CLIP}


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("name", RULES)
def test_every_step_is_the_published_rule(name, fused):
    klass, arguments, rule = RULES[name]
    generator = onp.random.default_rng(12)
    wide, kept = [generator.normal(size=shape) for shape in SHAPES], [{} for _ in SHAPES]
    weights = [mx.np.array(w, dtype="float64") for w in wide]
    updater = optimizer.get_updater(klass(**COMMON, **arguments, use_fused_step=fused))
    for t in range(1, STEPS + 1):
        grads = [generator.normal(size=shape) for shape in SHAPES]
        updater([0, 1, 2, 3], [mx.np.array(g, dtype="float64") for g in grads], weights)
        for place in range(len(SHAPES)):
            wide[place] = rule(wide[place], grads[place], kept[place], t)
            # A dozen roundings a step; differences of nearly equal numbers lose four digits.
            onp.testing.assert_allclose(weights[place].asnumpy(), wide[place], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", RULES)
def test_half_precision_follows_a_float32_copy(name, dtype):
    klass, arguments, rule = RULES[name]
    generator = onp.random.default_rng(4)
    weight = mx.np.array(generator.normal(size=(20,)), dtype=dtype)
    wide, kept = weight.astype("float64").asnumpy(), {}
    updater = optimizer.get_updater(klass(**COMMON, **arguments, multi_precision=True))
    for t in range(1, 4):
        # Not near zero: the sign of a momentum near zero depends on its rounding.
        grad = mx.np.array(generator.choice([-1.0, 1.0], size=20) * generator.uniform(0.2, 1, size=20), dtype=dtype)
        updater(0, grad, weight)
        wide = rule(wide, grad.astype("float64").asnumpy(), kept, t)
    master = updater.states[0][0]
    # Three steps of two dozen roundings of 2**-24; roots of small variances lose digits.
    onp.testing.assert_allclose(master.asnumpy(), wide, rtol=2e-5, atol=2e-5)
    assert (weight == master.astype(dtype)).all()


def test_noise_of_sgld_has_the_variance_of_the_rate():
    mx.random.seed(5)
    n, rate = 40_000, 0.25
    weight = mx.np.ones((n,), dtype="float64")
    optimizer.get_updater(optimizer.SGLD(rate, wd=0.5))(0, mx.np.full((n,), 2.0, dtype="float64"), weight)
    noise = weight.asnumpy() - (1 - rate / 2 * (2.0 + 0.5))
    # Five standard errors: sqrt(variance / n) of the mean, variance * sqrt(2 / n) of the variance.
    assert abs(noise.mean()) < 5 * (rate / n) ** 0.5
    assert abs(noise.var() - rate) < 5 * rate * (2 / n) ** 0.5


@pytest.mark.parametrize("klass", [optimizer.LAMB, optimizer.LANS, optimizer.LARS])
def test_weights_and_gradients_of_zero_stay_finite(klass):
    weights, grads = [mx.np.zeros((3,)), mx.np.ones((3,))], [mx.np.ones((3,)), mx.np.zeros((3,))]
    optimizer.get_updater(klass(0.1))([0, 1], grads, weights)
    assert all(onp.isfinite(weight.asnumpy()).all() for weight in weights)
    assert (weights[0] != 0).all()
    assert (weights[1] == 1).all()


@pytest.mark.parametrize("name", sorted(set(optimizer.Optimizer.opt_registry) - {"sgld"}))
def test_a_trainer_comes_nearer_to_the_least_of_a_parabola(name):
    weight = gluon.Parameter("w", shape=(4,))
    weight.initialize(mx.init.One())
    trainer = gluon.Trainer([weight], name, {"learning_rate": 0.05})
    for _ in range(20):
        with mx.autograd.record():
            loss = (weight.data() ** 2).sum()
        loss.backward()
        trainer.step(1)
    assert float((weight.data() ** 2).sum()) < 4.0


@pytest.mark.parametrize("number", [0, 1, 2, float("inf"), None])
def test_aggregate_num_is_the_largest_number_of_weights_in_a_call(number):
    seen = []

    class Counting(optimizer.SGD):
        def fused_step(self, indices, weights, grads, states):
            seen.append(len(indices))

    arrays = [mx.np.ones((2,)) for _ in range(5)]
    optimizer.get_updater(Counting(aggregate_num=number))(list(range(5)), arrays, arrays)
    assert seen == {0: [1] * 5, 1: [1] * 5, 2: [2, 2, 1]}.get(number, [5])


@pytest.mark.parametrize("number", [-1, 1.5, float("nan")])
def test_aggregate_num_must_be_a_count(number):
    with pytest.raises(ValueError, match="`aggregate_num` must be a count"):
        optimizer.SGD(aggregate_num=number)


def test_own_step_methods_have_the_rate_decay_and_count_of_one_weight():
    class Own(optimizer.Optimizer):
        def step(self, indices, weights, grads, states):
            for index, weight, grad in zip(indices, weights, grads, strict=True):
                self._update_count(index)
                t = self._index_update_count[index]
                weight -= self._get_lr(index) / t * (grad + self._get_wd(index) * weight)

    opt = Own(learning_rate=0.5, wd=0.1)
    opt.set_lr_mult({1: 0.5})
    opt.set_wd_mult({1: 2.0})
    updater, weights = optimizer.get_updater(opt), [mx.np.ones((1,), dtype="float64") for _ in range(2)]
    expected = [1.0, 1.0]
    for t in (1, 2):
        updater([0, 1], [mx.np.ones((1,), dtype="float64")] * 2, weights)
        expected = [expected[0] - 0.5 / t * (1 + 0.1 * expected[0]), expected[1] - 0.25 / t * (1 + 0.2 * expected[1])]
    onp.testing.assert_allclose([weight.item() for weight in weights], expected, rtol=1e-14)


def test_lazy_update_changes_nothing_for_dense_gradients():
    for klass in (optimizer.SGD, optimizer.Adam, optimizer.LARS):
        results = []
        for lazy in (False, True):
            weight = mx.np.ones((3, 2))
            optimizer.get_updater(klass(0.1, wd=0.1, lazy_update=lazy))(0, mx.np.zeros((3, 2)), weight)
            results.append(weight.asnumpy())
        assert (results[0] == results[1]).all()


def test_sync_state_context_is_the_older_name():
    updater = optimizer.get_updater(optimizer.Adam())
    with pytest.warns(DeprecationWarning, match="sync_state_device"):
        state = updater.sync_state_context((mx.np.ones((2,)), None), context=mx.cpu(1))
    assert state[0].device == mx.cpu(1)
    assert state[1] is None


def test_group_adagrad_has_one_rate_a_row():
    random = onp.random.default_rng(3)
    weight, history = random.normal(size=(4, 3)), onp.zeros((4, 1))
    optimizer = mx.optimizer.create("groupadagrad", learning_rate=0.1, wd=0.01, rescale_grad=0.5, clip_gradient=0.4)
    ours = mx.np.array(weight, dtype="float64")
    state = optimizer.create_state(0, ours)
    for _ in range(3):
        gradient = random.normal(size=(4, 3))
        optimizer.update([0], [ours], [mx.np.array(gradient, dtype="float64")], [state])
        g = onp.clip(0.5 * gradient, -0.4, 0.4) + 0.01 * weight
        history += (g**2).mean(axis=1, keepdims=True)
        weight -= 0.1 * g / (onp.sqrt(history) + 1e-6)
    # A few roundings of numbers near 1 in each of three steps.
    onp.testing.assert_allclose(ours.asnumpy(), weight, rtol=0, atol=3 * 8 * 2.0**-52)
    onp.testing.assert_allclose(state.asnumpy(), history, rtol=3 * 8 * 2.0**-52)


def test_group_adagrad_leaves_rows_without_gradients_alone():
    weight = mx.np.ones((4, 2))
    optimizer = mx.optimizer.contrib.GroupAdaGrad(learning_rate=0.1, wd=0.5)
    state = optimizer.create_state(0, weight)
    rows = mx.sparse.row_sparse_array((mx.np.ones((1, 2)), mx.np.array([2])), shape=(4, 2))
    optimizer.update([0], [weight], [rows], [state])
    assert (weight.asnumpy()[[0, 1, 3]] == 1).all()
    assert (weight.asnumpy()[2] < 1).all()
    assert (state.asnumpy().ravel() > 0).tolist() == [False, False, True, False]
