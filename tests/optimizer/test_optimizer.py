"""Update rules against the same formulas in NumPy, rates, states."""

import warnings

import numpy as onp
import pytest

import mxnet as mx
from mxnet import optimizer
from mxnet.error import FileFormatError
from mxnet.test_utils import assert_almost_equal, compare_optimizer_noise_seeded

# A step is a dozen roundings of numbers of size 1.
TOLERANCE = {"rtol": 1e-5, "atol": 1e-6}
SHAPES = [(3, 4), (5,), (1,)]


def run(opt, steps=3, seed=0, wd=0.0):
    """Weights after some steps, and what the NumPy rule is given: first weights and gradients."""
    generator = onp.random.default_rng(seed)
    weights = [generator.normal(size=shape).astype("float32") for shape in SHAPES]
    grads = [[generator.normal(size=shape).astype("float32") for shape in SHAPES] for _ in range(steps)]
    updater = optimizer.get_updater(opt)
    arrays = [mx.np.array(weight) for weight in weights]
    for step in grads:
        updater([0, 1, 2], [mx.np.array(grad) for grad in step], arrays)
    return weights, grads, [array.asnumpy() for array in arrays]


def rule_sgd(w, grads, lr=0.1, momentum=0.0, wd=0.0):
    mom = 0
    for g in grads:
        mom = momentum * mom - lr * (g + wd * w)
        w = w + mom
    return w


def rule_nag(w, grads, lr=0.1, momentum=0.9, wd=0.0):
    mom = 0
    for g in grads:
        g = g + wd * w
        mom = momentum * mom - lr * g
        w = w + momentum * mom - lr * g
    return w


def rule_adam(w, grads, lr=0.01, beta1=0.9, beta2=0.999, eps=1e-8, wd=0.0, decoupled=False, correct=True):
    mean = var = 0
    for t, g in enumerate(grads, 1):
        g = g + (0 if decoupled else wd) * w
        mean = beta1 * mean + (1 - beta1) * g
        var = beta2 * var + (1 - beta2) * g * g
        factor = onp.sqrt(1 - beta2**t) / (1 - beta1**t) if correct else 1
        w = w - lr * factor * mean / (onp.sqrt(var) + eps) - (lr * wd * w if decoupled else 0)
    return w


def rule_adagrad(w, grads, lr=0.1, eps=1e-6, wd=0.0):
    history = 0
    for g in grads:
        g = g + wd * w
        history = history + g * g
        w = w - lr * g / (onp.sqrt(history) + eps)
    return w


def rule_rmsprop(w, grads, lr=0.01, rho=0.9, momentum=0.9, eps=1e-8, centered=False, wd=0.0):
    mean = var = mom = 0
    for g in grads:
        g = g + wd * w
        var = rho * var + (1 - rho) * g * g
        if centered:
            mean = rho * mean + (1 - rho) * g
            mom = momentum * mom - lr * g / onp.sqrt(var - mean * mean + eps)
            w = w + mom
        else:
            w = w - lr * g / (onp.sqrt(var) + eps)
    return w


CASES = {
    "sgd": (optimizer.SGD, {"learning_rate": 0.1}, rule_sgd, {}),
    "sgd momentum": (optimizer.SGD, {"learning_rate": 0.1, "momentum": 0.9}, rule_sgd, {"momentum": 0.9}),
    "nag": (optimizer.NAG, {"learning_rate": 0.1}, rule_nag, {}),
    "adam": (optimizer.Adam, {"learning_rate": 0.01}, rule_adam, {}),
    "adamw": (optimizer.AdamW, {"learning_rate": 0.01}, rule_adam, {"decoupled": True, "eps": 1e-6}),
    "adamw uncorrected": (
        optimizer.AdamW,
        {"learning_rate": 0.01, "correct_bias": False},
        rule_adam,
        {"decoupled": True, "eps": 1e-6, "correct": False},
    ),
    "adagrad": (optimizer.AdaGrad, {"learning_rate": 0.1}, rule_adagrad, {}),
    "rmsprop": (optimizer.RMSProp, {"learning_rate": 0.01}, rule_rmsprop, {}),
    "rmsprop centered": (
        optimizer.RMSProp,
        {"learning_rate": 0.01, "centered": True, "epsilon": 1e-3},
        rule_rmsprop,
        {"centered": True, "eps": 1e-3},
    ),
}


@pytest.mark.parametrize("wd", [0.0, 0.1])
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_rule(name, fused, wd):
    klass, arguments, rule, rule_arguments = CASES[name]
    weights, grads, found = run(klass(**arguments, use_fused_step=fused, wd=wd))
    for place, weight in enumerate(weights):
        history = [step[place].astype("float64") for step in grads]
        assert_almost_equal(found[place], rule(weight.astype("float64"), history, wd=wd, **rule_arguments), **TOLERANCE)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("klass", [optimizer.SGD, optimizer.Adam])
def test_gradients_are_rescaled_then_clipped(klass, fused):
    weight, grad = mx.np.zeros((3,)), mx.np.array([10.0, -10.0, 0.1])
    scaled = [1.0, -1.0, 0.05]
    expected = mx.np.zeros((3,))
    optimizer.get_updater(klass(0.1))(0, mx.np.array(scaled), expected)
    opt = klass(0.1, rescale_grad=0.5, clip_gradient=1.0, use_fused_step=fused)
    optimizer.get_updater(opt)(0, grad, weight)
    assert_almost_equal(weight, expected, **TOLERANCE)


@pytest.mark.parametrize("name", sorted(optimizer.Optimizer.opt_registry))
def test_fused_step_is_the_unfused_step(name):
    fused, unfused = (optimizer.create(name, use_fused_step=on, wd=0.01, clip_gradient=0.5) for on in (True, False))
    compare_optimizer_noise_seeded(fused, unfused, SHAPES, "float32", noise_seed=3, rtol=1e-5, atol=1e-6)


def test_half_weights_have_a_master_copy():
    # 1e-4 is below half a unit in the last place of 1 in float16, so without the copy nothing would move.
    weight = mx.np.ones((2,), dtype="float16")
    updater = optimizer.get_updater(optimizer.SGD(1e-4, multi_precision=True))
    for _ in range(20):
        updater(0, mx.np.ones((2,), dtype="float16"), weight)
    assert_almost_equal(weight, [0.998, 0.998], rtol=2**-10, atol=0)


def test_aggregate_num_does_not_change_the_result():
    whole = run(optimizer.Adam(0.1))[2]
    parts = run(optimizer.Adam(0.1, aggregate_num=1))[2]
    assert all((a == b).all() for a, b in zip(whole, parts, strict=True))


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"'sdg'.*adam.*sgd"):
        optimizer.create("sdg")


def test_scheduler_decides_the_rate():
    schedule = mx.lr_scheduler.FactorScheduler(step=2, factor=0.5)
    opt = optimizer.SGD(learning_rate=0.8, lr_scheduler=schedule)
    updater = optimizer.get_updater(opt)
    weight, moved = mx.np.zeros((1,)), []
    for _ in range(4):
        before = weight.item()
        updater(0, mx.np.ones((1,)), weight)
        moved.append(before - weight.item())
    assert_almost_equal(moved, [0.8, 0.8, 0.4, 0.4], rtol=1e-6, atol=0)
    with pytest.raises(UserWarning, match="scheduler"):
        opt.set_learning_rate(1.0)


@pytest.mark.parametrize("kind", [optimizer.SGD, optimizer.Adam])
def test_the_base_rate_is_the_one_that_was_given(kind):
    """As programs for MXNet 2 have it: a default gives way to a rate that was given; the optimizer's comes first."""
    for make in (
        lambda **base: mx.lr_scheduler.CosineScheduler(10, **base),
        lambda **base: mx.lr_scheduler.FactorScheduler(10, **base),
        lambda **base: mx.lr_scheduler.FactorScheduler(10, warmup_steps=0, **base),
    ):
        default = kind().learning_rate
        for given, base, expected in [
            ({}, {}, default),
            ({}, {"base_lr": 0.5}, 0.5),
            ({"learning_rate": 0.3}, {}, 0.3),
            ({"learning_rate": 0.3}, {"base_lr": 0.5}, 0.3),
            ({"learning_rate": default}, {}, default),
        ]:
            assert kind(lr_scheduler=make(**base), **given).learning_rate == expected


def test_schedulers_of_programs_decide_their_rate():
    class Halving(mx.lr_scheduler.LRScheduler):
        def __init__(self, peak):
            super().__init__(base_lr=peak)

        def __call__(self, num_update):
            return self.base_lr / 2**num_update

    class Plain(mx.lr_scheduler.LRScheduler):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)

        def __call__(self, num_update):
            return self.base_lr

    assert optimizer.Adam(lr_scheduler=Halving(0.7)).learning_rate == 0.7
    assert optimizer.Adam(lr_scheduler=Plain()).learning_rate == 0.001
    assert optimizer.Adam(lr_scheduler=Plain(base_lr=0.2)).learning_rate == 0.2
    assert optimizer.Optimizer(lr_scheduler=lambda num_update: 0.25).learning_rate == 0.25


def test_factors_of_single_weights():
    opt = optimizer.SGD(1.0, param_idx2name={0: "slow", 1: "fast"})
    opt.set_lr_mult({"slow": 0.1})
    updater = optimizer.get_updater(opt)
    weights = [mx.np.zeros((1,)), mx.np.zeros((1,))]
    updater([0, 1], [mx.np.ones((1,)), mx.np.ones((1,))], weights)
    assert_almost_equal([weight.item() for weight in weights], [-0.1, -1.0], rtol=1e-6, atol=0)


@pytest.mark.parametrize("name", sorted(optimizer.Optimizer.opt_registry))
def test_restored_states_go_on_as_if_nothing_had_happened(name):
    def updater():
        return optimizer.get_updater(optimizer.create(name, learning_rate=0.1))

    grads = [mx.np.array([float(step + 1), -2.0]) for step in range(4)]
    first, straight = updater(), mx.np.array([1.0, 2.0])
    for grad in grads[:2]:
        first(0, grad, straight)
    resumed, second = mx.np.array(straight), updater()
    second.set_states(first.get_states(dump_optimizer=True))
    for step, grad in enumerate(grads[2:]):
        for own, weight in ((first, straight), (second, resumed)):
            mx.random.seed(step)
            own(0, grad, weight)
    assert straight.asnumpy().tolist() == resumed.asnumpy().tolist()


def test_foreign_states_are_refused():
    updater = optimizer.get_updater(optimizer.SGD())
    for content, problem in [
        (b"", "not the states"),
        (b"\x80\x04K\x01.", "states that were pickled"),
        (b"PK\x03\x04" + bytes(30), "not the states"),
    ]:
        with pytest.raises(FileFormatError, match=problem):
            updater.set_states(content)
    with pytest.raises(ValueError, match="states of Adam cannot be given to SGD"):
        updater.set_states(optimizer.get_updater(optimizer.Adam()).get_states(dump_optimizer=True))


def test_own_optimizer_needs_only_a_rule():
    @optimizer.register
    class Sign(optimizer.Optimizer):
        def _rule(self, weight, grad, state, lr, wd, count):
            weight -= lr * mx.np.sign(grad)

    weight = mx.np.zeros((2,))
    optimizer.get_updater(optimizer.create("sign", learning_rate=0.5))(0, mx.np.array([3.0, -7.0]), weight)
    assert weight.asnumpy().tolist() == [-0.5, 0.5]
    del optimizer.Optimizer.opt_registry["sign"]


def test_updates_are_counted_for_each_weight():
    optimizer = mx.optimizer.SGD(begin_num_update=2)
    for indices, counts, largest in (
        ([0, 1], {0: 3, 1: 3}, 3),
        ([0, 1], {0: 4, 1: 4}, 4),
        (1, {0: 4, 1: 5}, 5),
        ([0, 1], {0: 5, 1: 6}, 6),
        ([0, 0], {0: 7, 1: 6}, 7),
        ([], {0: 7, 1: 6}, 7),
        ([2, 1], {0: 7, 1: 7, 2: 3}, 7),
    ):
        optimizer._update_count(indices)
        assert optimizer._index_update_count == counts
        assert optimizer.num_update == largest


@pytest.mark.parametrize(
    ("name", "older", "newer"),
    [
        (
            "rmsprop",
            {"gamma1": 0.5, "gamma2": 0.25, "centered": True},
            {"rho": 0.5, "momentum": 0.25, "centered": True},
        ),
        ("adagrad", {"eps": 0.25}, {"epsilon": 0.25}),
    ],
)
def test_arguments_of_older_programs_have_new_names(name, older, newer):
    gradient = mx.np.array([1.0, -2.0, 0.5])
    weights = []
    for arguments in (older, newer):
        weight = mx.np.zeros(3)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            made = optimizer.create(name, learning_rate=0.1, **arguments)
        assert [str(w.message) for w in caught if w.category is DeprecationWarning] == [
            f"argument `{old}` of {type(made).__name__} is deprecated; use `{new}`"
            for old, new in zip(arguments, newer, strict=True)
            if old != new
        ]
        state = made.create_state(0, weight)
        for _ in range(2):
            made.update([0], [weight], [gradient], [state])
        weights.append(weight.asnumpy())
    assert (weights[0] == weights[1]).all()
    assert (weights[0] != 0).all()


def test_unknown_arguments_are_named_with_those_that_there_are():
    with pytest.raises(
        TypeError, match=r"^SGD has no argument 'lr', 'beta'; it takes learning_rate, momentum, .*, wd, "
    ):
        optimizer.create("sgd", lr=0.1, beta=1)
    with pytest.raises(TypeError, match=r"^Adam has no argument 'eps'; it takes learning_rate, beta1, .*, epsilon, "):
        optimizer.Adam(eps=1e-8)
