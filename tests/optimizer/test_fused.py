"""Fused updates of whole networks against the formulas in float64: numbers as arrays, copies, threads, errors."""

import copy

import numpy as onp
import pytest

import mxnet as mx
from mxnet import _core, gluon, np, npx, optimizer
from mxnet.test_utils import assert_almost_equal

OP = _core.namespaces["op"]
SHAPES = [(3, 4), (5,), (), (0, 2), (70, 31)]
# Optimizers with an operator of their own; the others are composed (test_composed.py).
WITH_OPERATOR = [name for name in sorted(optimizer.Optimizer.opt_registry) if f"fused_{name}" in OP]
LRS = [0.1, 0.02, 0.3, 0.1, 0.05]
WDS = [0.0, 0.01, 0.1, 0.0, 0.02]
RESCALE, CLIP = 0.5, 0.3


def clipped(g):
    return onp.clip(RESCALE * g, -CLIP, CLIP)


# Each formula updates (weight, states) for one gradient; `t` is the number of the update.


def sgd(w, s, g, lr, wd, t):
    return w - lr * (clipped(g) + wd * w), s


def momentum(w, s, g, lr, wd, t):
    """Polyak 1964, as in MXNet: the rate is part of the momentum."""
    m = 0.8 * s[0] - lr * (clipped(g) + wd * w)
    return w + m, [m]


def nag(w, s, g, lr, wd, t):
    """Sutskever et al. 2013, equation 7, in the form of Bengio et al. 2013."""
    g = clipped(g) + wd * w
    m = 0.8 * s[0] - lr * g
    return w + 0.8 * m - lr * g, [m]


def moments(s, g):
    return [0.8 * s[0] + 0.2 * g, 0.9 * s[1] + 0.1 * g * g]


def correction(t):
    return onp.sqrt(1 - 0.9**t) / (1 - 0.8**t)


def adam(w, s, g, lr, wd, t):
    """Kingma and Ba 2014, the form at the end of section 2."""
    mean, var = moments(s, clipped(g) + wd * w)
    return w - lr * correction(t) * mean / (onp.sqrt(var) + 1e-3), [mean, var]


def adamw(w, s, g, lr, wd, t):
    """Loshchilov and Hutter 2017, algorithm 2."""
    mean, var = moments(s, clipped(g))
    return w - lr * correction(t) * mean / (onp.sqrt(var) + 1e-3) - wd * w, [mean, var]


def rmsprop(w, s, g, lr, wd, t):
    """Tieleman and Hinton 2012, lecture 6.5."""
    g = clipped(g) + wd * w
    var = 0.7 * s[0] + 0.3 * g * g
    return onp.clip(w - lr * g / (onp.sqrt(var) + 1e-3), -1.5, 1.5), [var]


def centered(w, s, g, lr, wd, t):
    """Graves 2013, equations 38 to 45."""
    g = clipped(g) + wd * w
    var, mean = 0.7 * s[0] + 0.3 * g * g, 0.7 * s[1] + 0.3 * g
    m = 0.8 * s[2] - lr * g / onp.sqrt(var - mean * mean + 1e-3)
    return onp.clip(w + m, -1.5, 1.5), [var, mean, m]


def adagrad(w, s, g, lr, wd, t):
    """Duchi et al. 2011."""
    g = clipped(g) + wd * w
    history = s[0] + g * g
    return w - lr * g / (onp.sqrt(history) + 1e-3), [history]


MEANS = {"beta1": 0.8, "beta2": 0.9, "epsilon": 1e-3}
ROOTS = {"rho": 0.7, "momentum": 0.8, "epsilon": 1e-3, "clip_weights": 1.5}
# Formula, operator, its attributes, number of states of the formula and of lists that the operator takes.
RULES = {
    "sgd": (sgd, "fused_sgd", {}, 0, 1),
    "momentum": (momentum, "fused_sgd", {"momentum": 0.8}, 1, 1),
    "nag": (nag, "fused_nag", {"momentum": 0.8}, 1, 1),
    "adam": (adam, "fused_adam", MEANS, 2, 2),
    "adamw": (adamw, "fused_adamw", MEANS, 2, 2),
    "rmsprop": (rmsprop, "fused_rmsprop", ROOTS, 1, 3),
    "centered": (centered, "fused_rmsprop", ROOTS, 3, 3),
    "adagrad": (adagrad, "fused_adagrad", {"epsilon": 1e-3}, 1, 1),
}


class Network:
    """Weights, states and gradients of one rule, in NumPy and as arguments of its operator."""

    def __init__(self, rule, dtype="float64", state_dtype=None, has_masters=False, shapes=SHAPES):
        self.formula, self.name, self.attributes, self.num_states, self.num_lists = RULES[rule]
        self.generator = onp.random.default_rng(31)
        self.shapes, self.dtype = shapes, dtype
        weights = [np.array(self.generator.normal(size=shape), dtype=dtype) for shape in shapes]
        self.weights = weights
        self.masters = [w.astype("float32") if has_masters else None for w in weights]
        self.states = [
            [np.zeros(shape, dtype=state_dtype or dtype) for shape in shapes]
            if k < self.num_states
            else [None] * len(shapes)
            for k in range(self.num_lists)
        ]
        self.wide = [w.astype("float64").asnumpy() for w in weights]
        self.wide_states = [[onp.zeros(shape) for _ in range(self.num_states)] for shape in shapes]
        self.updates = 0

    def step(self):
        self.updates += 1
        grads = [np.array(self.generator.normal(size=shape), dtype=self.dtype) for shape in self.shapes]
        self.call(grads)
        for i, grad in enumerate(grads):
            g = grad.astype("float64").asnumpy()
            self.wide[i], self.wide_states[i] = self.formula(
                self.wide[i], self.wide_states[i], g, LRS[i], WDS[i], self.updates
            )

    def call(self, grads):
        n = len(self.weights)
        numbers = [np.array(x, dtype="float64") for x in (LRS[:n], WDS[:n], RESCALE)]
        if self.name in ("fused_adam", "fused_adamw"):
            numbers.append(np.array([self.updates] * n, dtype="float64"))
        OP[self.name](self.weights, grads, *self.states, self.masters, *numbers, **self.attributes, clip_gradient=CLIP)

    def check(self, arrays, wide, rtol, atol):
        for array, expected in zip(arrays, wide, strict=True):
            onp.testing.assert_allclose(array.astype("float64").asnumpy(), expected, rtol=rtol, atol=atol)


@pytest.mark.parametrize("rule", RULES)
def test_several_steps_follow_the_formula(rule):
    network = Network(rule)
    for _ in range(5):
        network.step()
    # Five steps of a dozen roundings each; roots of small variances lose digits.
    network.check(network.weights, network.wide, 1e-11, 1e-12)
    for k in range(network.num_states):
        network.check(network.states[k], [states[k] for states in network.wide_states], 1e-11, 1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("rule", RULES)
def test_half_precision_weights_follow_their_float32_copies(rule, dtype):
    network = Network(rule, dtype, "float32", has_masters=True)
    for _ in range(3):
        network.step()
    # Computed in float32: three steps of a dozen roundings of 2**-24 each, roots of small variances lose digits.
    network.check(network.masters, network.wide, 2e-5, 2e-5)
    for weight, master in zip(network.weights, network.masters, strict=True):
        assert weight.dtype == master.astype(dtype).dtype
        assert (weight == master.astype(dtype)).all()


@pytest.mark.parametrize("rule", RULES)
def test_half_precision_weights_and_states_without_copies_are_computed_in_float32(rule):
    network = Network(rule, "float16")
    network.step()
    # One rounding of the weight; a state is computed before it is rounded.
    network.check(network.weights, network.wide, 2**-10, 2**-12)


@pytest.mark.parametrize("rule", RULES)
def test_the_number_of_threads_does_not_change_a_bit(rule):
    def run(threads):
        _core.set_num_threads(threads)
        network = Network(rule, "float32", shapes=[(300, 1000), (7,), (129, 1025), (64, 64)])
        for _ in range(2):
            network.updates += 1
            network.call(network.weights)
        states = [x for row in network.states for x in row if x is not None]
        return [x.asnumpy() for x in (*network.weights, *states)]

    before = _core.num_threads()
    try:
        assert all((a == b).all() for a, b in zip(run(1), run(2), strict=True))
    finally:
        _core.set_num_threads(before)


def test_one_number_may_serve_all_weights():
    weights = [np.ones((2,)), np.ones((3,))]
    grads = [np.ones((2,)), np.ones((3,))]
    OP["fused_sgd"](weights, grads, [None] * 2, [None] * 2, np.array(0.25), np.array(0.0), np.array(2.0))
    assert [w.asnumpy().tolist() for w in weights] == [[0.5] * 2, [0.5] * 3]


def test_only_some_weights_may_have_momentum():
    weights, moms = [np.ones((2,)), np.ones((2,))], [np.ones((2,)), None]
    zero, one = np.array(0.0), np.array(1.0)
    OP["fused_sgd"](weights, [np.zeros((2,))] * 2, moms, [None] * 2, one, zero, one, momentum=0.5)
    assert [w.asnumpy().tolist() for w in weights] == [[1.5] * 2, [1.0] * 2]


def test_integers_may_count():
    w = [np.array([1.0, 2.0], dtype="float64")]
    results = []
    for dtype in ("float64", "float32", "int64"):
        weights, states = [w[0].copy()], [[np.zeros_like(w[0])] for _ in range(2)]
        numbers = [np.array(x, dtype="float64") for x in (0.1, 0.0, 1.0)]
        OP["fused_adam"](weights, w, *states, [None], *numbers, np.array([3], dtype=dtype))
        results.append(weights[0].asnumpy().tolist())
    assert results[0] == results[1] == results[2]


# ---- memory ----


def numbers_of(n, lr=0.5):
    return [np.array(x, dtype="float64") for x in ([lr] * n, [0.0] * n, 1.0)]


def test_views_of_one_array_are_updated_apart():
    whole = np.zeros((6, 4))
    weights = [whole[0], whole[1:3].T, whole[3:, ::2], whole[3:, 1::2]]
    grads = [np.ones(w.shape) * (i + 1) for i, w in enumerate(weights)]
    OP["fused_sgd"](weights, grads, [None] * 4, [None] * 4, *numbers_of(4))
    expected = onp.zeros((6, 4))
    expected[0], expected[1:3], expected[3:, ::2], expected[3:, 1::2] = -0.5, -1.0, -1.5, -2.0
    assert (whole.asnumpy() == expected).all()


def test_a_weight_that_is_named_twice_is_updated_twice():
    w, m = np.zeros((3,)), [np.zeros((3,)), np.zeros((3,))]
    OP["fused_sgd"]([w, w], [np.ones((3,))] * 2, m, [None] * 2, *numbers_of(2), momentum=0.5)
    assert w.asnumpy().tolist() == [-1.0] * 3


def test_a_gradient_may_be_shared_and_may_be_an_integer_or_the_weight():
    g, w = np.array([2, 4]), np.ones((2,))
    weights = [np.zeros((2,)), np.zeros((2,)), w]
    OP["fused_sgd"](weights, [g, g, w], [None] * 3, [None] * 3, *numbers_of(3))
    assert [x.asnumpy().tolist() for x in weights] == [[-1, -2], [-1, -2], [0.5, 0.5]]


def test_a_weight_that_is_its_own_state_is_refused():
    w = np.ones((3,))
    with pytest.raises(ValueError, match="fused_sgd: weight 0 and its states share memory"):
        OP["fused_sgd"]([w], [np.ones((3,))], [w], [None], *numbers_of(1), momentum=0.5)


# ---- errors ----


def arguments(**changes):
    """Arguments of `fused_adam` for two weights."""
    lists = {name: [np.ones((2,)), np.ones((3,))] for name in ("weights", "grads", "means", "variances")}
    numbers = {name: np.ones((2,)) for name in ("lrs", "wds", "counts")}
    return {**lists, "masters": [None, None], **numbers, "rescale_grad": np.array(1.0)} | changes


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"grads": [np.ones((2,))]}, ValueError, "lists of equal length.*2 arrays in `weights` and 1 in `grads`"),
        (
            {"grads": [np.ones((2,)), np.ones((2,))]},
            ValueError,
            r"a gradient has shape \(2,\), its weight \(3,\)\n +weights\[1\] *: shape \(3,\)",
        ),
        ({"means": [np.ones((2,)), np.ones((3, 1))]}, ValueError, r"a state has shape \(3, 1\), its weight \(3,\)"),
        ({"means": [np.ones((2,)), None]}, TypeError, "`means` must be an array"),
        ({"means": [np.ones((2,)), np.array([1, 2, 3])]}, TypeError, r"`means\[1\]` is int64"),
        ({"weights": [np.array([1, 2]), np.ones((3,))]}, TypeError, "weights are int64"),
        (
            {"masters": [np.ones((2,)), None]},
            TypeError,
            r"`masters\[0\]` is float32 and its weight float32, needs a float32 copy of a half-precision weight",
        ),
        ({"lrs": np.ones((3,))}, ValueError, r"`lrs` has shape \(3,\), needs \(\) or \(2,\)"),
        ({"counts": np.ones((2, 1))}, ValueError, r"`counts` has shape \(2, 1\)"),
        ({"rescale_grad": np.array(1j)}, TypeError, "`rescale_grad` is complex"),
    ],
)
def test_errors_come_before_any_change(changes, error, message):
    given = arguments(**changes)
    before = [w.asnumpy().copy() for w in given["weights"]]
    with pytest.raises(error, match=message):
        OP["fused_adam"](**given)
    assert all((a.asnumpy() == b).all() for a, b in zip(given["weights"], before, strict=True))


def test_public_updates_name_themselves_in_errors():
    with pytest.raises(ValueError, match=r"^sgd_update: a gradient has shape"):
        npx.sgd_update([np.ones((2,))], [np.ones((3,))], None, [0.1])
    weight = np.broadcast_to(np.ones((1,)), (3,))
    with pytest.raises(ValueError, match=r"^adam_update: `weights\[0\]` is read-only"):
        npx.adam_update([weight], [np.ones((3,))], [np.ones((3,))], [np.ones((3,))], [0.1])


# ---- optimizers ----


def counted(monkeypatch):
    """Names of the fused operators that optimizers call from now on."""
    calls = []

    def counting(name, function):
        def call(*args, **kwargs):
            calls.append(name)
            return function(*args, **kwargs)

        return call

    for module in (optimizer.sgd, optimizer.adaptive):
        for name, function in list(vars(module).items()):
            if name.startswith("fused_"):
                monkeypatch.setattr(module, name, counting(name, function))
    return calls


def networks_gradients(parameters, seed):
    generator = onp.random.default_rng(seed)
    with mx.autograd.record():
        products = [
            (parameter.data() * np.array(generator.normal(size=parameter.shape), dtype=parameter.dtype)).sum()
            for parameter in parameters
        ]
    mx.autograd.backward(products)


def parameters_of(dtype="float32"):
    generator = onp.random.default_rng(5)
    parameters = [
        gluon.Parameter(f"w{i}", shape=shape, dtype=dtype) for i, shape in enumerate([(3, 4), (5,), (70, 31)])
    ]
    for parameter in parameters:
        parameter.initialize(mx.init.Zero())
        parameter.set_data(np.array(generator.normal(size=parameter.shape), dtype=dtype))
    return parameters


@pytest.mark.parametrize("name", WITH_OPERATOR)
@pytest.mark.parametrize("multi_precision", [False, True])
def test_a_step_of_a_trainer_is_one_call(name, multi_precision, monkeypatch):
    calls = counted(monkeypatch)
    parameters = parameters_of("float16" if multi_precision else "float32")
    trainer = gluon.Trainer(parameters, name, {"multi_precision": multi_precision})
    for step in range(3):
        networks_gradients(parameters, step)
        trainer.step(2)
    assert calls == [f"fused_{name}"] * 3


@pytest.mark.parametrize("name", WITH_OPERATOR)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_fused_and_unfused_steps_agree_with_copies_schedules_and_factors(name, dtype):
    weights = []
    for fused in (True, False):
        parameters = parameters_of(dtype)
        parameters[1].lr_mult, parameters[1].wd_mult = 0.5, 2.0
        schedule = mx.lr_scheduler.FactorScheduler(step=1, factor=0.7, base_lr=0.05)
        options = {"lr_scheduler": schedule, "wd": 0.01, "clip_gradient": 0.5, "epsilon": 1e-3}
        if name in ("sgd", "nag"):
            del options["epsilon"]
        trainer = gluon.Trainer(parameters, name, {**options, "multi_precision": True, "use_fused_step": fused})
        for step in range(4):
            networks_gradients(parameters, step)
            trainer.step(step + 1)
        weights.append([parameter.data() for parameter in parameters])
    for fused, unfused in zip(*weights, strict=True):
        # Roundings of a few steps in float32; float16 weights are rounded once more.
        assert_almost_equal(fused, unfused, rtol=2**-10 if dtype == "float16" else 1e-5, atol=1e-6)


# PyTorch's forms of the rules (torch.optim, "Algorithm" of each class), for a constant rate of 0.1 and decay of 0.01.
# Each is given the weight, the gradient, its own dictionary and the number of the update. They divide Adam's root by
# that of the second correction before they add epsilon, so epsilon is too small to count here.


def torch_sgd(w, g, kept, t, nesterov=False):
    g = g + 0.01 * w
    kept["b"] = g if t == 1 else 0.9 * kept["b"] + g
    return w - 0.1 * (g + 0.9 * kept["b"] if nesterov else kept["b"])


def torch_nag(w, g, kept, t):
    return torch_sgd(w, g, kept, t, nesterov=True)


def torch_adam(w, g, kept, t, decoupled=False):
    w, g = (w * (1 - 0.1 * 0.01), g) if decoupled else (w, g + 0.01 * w)
    kept["m"] = 0.9 * kept.get("m", 0) + 0.1 * g
    kept["v"] = 0.999 * kept.get("v", 0) + 0.001 * g * g
    return w - 0.1 * (kept["m"] / (1 - 0.9**t)) / (onp.sqrt(kept["v"] / (1 - 0.999**t)) + 1e-20)


def torch_adamw(w, g, kept, t):
    return torch_adam(w, g, kept, t, decoupled=True)


def torch_rmsprop(w, g, kept, t):
    g = g + 0.01 * w
    kept["v"] = 0.99 * kept.get("v", 0) + 0.01 * g * g
    return w - 0.1 * g / (onp.sqrt(kept["v"]) + 1e-8)


def torch_adagrad(w, g, kept, t):
    g = g + 0.01 * w
    kept["sum"] = kept.get("sum", 0) + g * g
    return w - 0.1 * g / (onp.sqrt(kept["sum"]) + 1e-10)


@pytest.mark.parametrize(
    ("klass", "arguments", "form"),
    [
        (optimizer.SGD, {"momentum": 0.9}, torch_sgd),
        (optimizer.NAG, {}, torch_nag),
        (optimizer.Adam, {"epsilon": 1e-20}, torch_adam),
        (optimizer.AdamW, {"epsilon": 1e-20}, torch_adamw),
        (optimizer.RMSProp, {"rho": 0.99}, torch_rmsprop),
        (optimizer.AdaGrad, {"epsilon": 1e-10}, torch_adagrad),
    ],
)
def test_rules_agree_with_pytorchs_forms(klass, arguments, form):
    generator = onp.random.default_rng(8)
    wide, kept = generator.normal(size=(40,)), {}
    weight = np.array(wide, dtype="float64")
    updater = optimizer.get_updater(klass(learning_rate=0.1, wd=0.01, **arguments))
    for t in range(1, 9):
        g = generator.normal(size=(40,))
        updater(0, np.array(g, dtype="float64"), weight)
        wide = form(wide, g, kept, t)
    # Eight steps of a dozen roundings each, of weights up to 3.
    onp.testing.assert_allclose(weight.asnumpy(), wide, rtol=1e-12, atol=1e-12)


def test_numbers_of_a_step_stay_in_the_same_arrays():
    parameters = parameters_of()
    trainer = gluon.Trainer(parameters, "adam", {"learning_rate": 0.1})
    networks_gradients(parameters, 0)
    trainer.step(1)
    (numbers,) = trainer.optimizer._step_numbers.values()
    before = [numbers.lrs, numbers.wds, numbers.counts, numbers.rescale_grad]
    trainer.set_learning_rate(0.2)
    networks_gradients(parameters, 1)
    trainer.step(4)
    now = [numbers.lrs, numbers.wds, numbers.counts, numbers.rescale_grad]
    assert all(a is b for a, b in zip(before, now, strict=True))
    assert numbers.lrs.asnumpy().tolist() == [0.2] * 3
    assert numbers.counts.asnumpy().tolist() == [2.0] * 3
    assert numbers.rescale_grad.item() == 0.25


def test_weights_on_several_devices_are_updated_by_one_call_each(monkeypatch):
    calls = counted(monkeypatch)
    weights = [np.ones((2,), device=device) for device in (mx.cpu(0), mx.cpu(1), mx.cpu(0))]
    grads = [np.ones((2,), device=weight.device) for weight in weights]
    updater = optimizer.get_updater(optimizer.SGD(0.25))
    updater([0, 1, 2], grads, weights)
    assert [weight.asnumpy().tolist() for weight in weights] == [[0.75, 0.75]] * 3
    assert calls == ["fused_sgd"] * 2


def test_an_optimizer_can_be_copied():
    updater = optimizer.get_updater(optimizer.Adam(0.1))
    weight = np.ones((2,))
    updater(0, np.ones((2,)), weight)
    twin, other = copy.deepcopy(updater), weight.copy()
    updater(0, np.ones((2,)), weight)
    twin(0, np.ones((2,)), other)
    assert weight.asnumpy().tolist() == other.asnumpy().tolist()


def test_an_own_fused_step_is_called_with_copies_too():
    class Half(optimizer.SGD):
        def fused_step(self, indices, weights, grads, states):
            assert all(str(weight.dtype) == "float32" for weight in weights)
            for weight in weights:
                weight *= 0.5

    weight = np.ones((2,), dtype="float16")
    optimizer.get_updater(Half(multi_precision=True))(0, np.ones((2,), dtype="float16"), weight)
    assert weight.asnumpy().tolist() == [0.5, 0.5]
