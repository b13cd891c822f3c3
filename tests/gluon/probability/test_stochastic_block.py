"""Blocks that gather losses, exponential families and functions that distributions share."""

import math

import numpy as onp
import pytest
import scipy.special

import mxnet as mx
from mxnet.gluon import nn
from mxnet.gluon import probability as mgp
from mxnet.test_utils import assert_almost_equal, check_numeric_gradient


class Noisy(mgp.StochasticBlock):
    """Adds noise of a learnt scale; its divergence from the standard normal distribution is a loss."""

    def __init__(self, units):
        super().__init__()
        self.loc = nn.Dense(units)
        self.calls = 0

    @mgp.StochasticBlock.collectLoss
    def forward(self, x, scale=1.0):
        self.calls += 1
        posterior = mgp.Normal(self.loc(x), scale)
        self.add_loss(mgp.kl_divergence(posterior, mgp.Normal(0.0, 1.0)))
        return posterior.sample()


def test_losses_of_a_call():
    net, x = Noisy(3), mx.np.ones((2, 4))
    assert net.losses == []
    net.initialize(mx.initializer.Normal(1.0))
    out = net(x, scale=2.0)
    assert out.shape == (2, 3)
    (loss,) = net.losses
    expected = 0.5 * (4 + net.loc(x).asnumpy() ** 2 - 1 - math.log(4))
    assert_almost_equal(loss, expected, rtol=1e-5)
    net(x)
    assert len(net.losses) == 1  # of the last call
    out, losses = net.forward(x)
    assert out.shape == (2, 3) and len(losses) == 1


def test_gradients_flow_through_losses_and_samples():
    net, x = Noisy(3), mx.np.ones((2, 4))
    net.initialize(mx.initializer.Normal(1.0))
    with mx.autograd.record():
        out = net(x)
        total = net.losses[0].sum()
    total.backward()
    # The gradient of the divergence is the mean; every input is 1.
    assert_almost_equal(net.loc.bias.grad(), net.loc(x).asnumpy().sum(axis=0), rtol=1e-5)
    with mx.autograd.record():
        out = net(x)
    out.backward()
    assert_almost_equal(net.loc.bias.grad(), onp.full(3, 2.0), rtol=1e-6)


def test_training_brings_the_divergence_down():
    net, x = Noisy(2), mx.np.ones((4, 3))
    net.initialize(mx.initializer.Normal(1.0))
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    for _ in range(100):
        with mx.autograd.record():
            net(x)
            loss = net.losses[0].sum()
        loss.backward()
        trainer.step(4)
    # Each step multiplies the mean by 1 - 0.1 * (3 + 1).
    assert loss.item() < 1e-10


def test_forward_must_be_decorated():
    class Plain(mgp.StochasticBlock):
        def forward(self, x):
            return x

    with pytest.raises(ValueError, match=r"Plain\.forward must be decorated"):
        Plain()(mx.np.ones(1))
    with pytest.raises(TypeError):
        Noisy.__bases__[0](prefix="a")


def test_losses_of_a_failed_call_do_not_stay():
    class Failing(mgp.StochasticBlock):
        @mgp.StochasticBlock.collectLoss
        def forward(self, x):
            self.add_loss(x)
            if x.shape == (2,):
                raise RuntimeError("two")
            return x

    net = Failing()
    with pytest.raises(RuntimeError, match="two"):
        net(mx.np.ones(2))
    net(mx.np.ones(1))
    assert [loss.shape for loss in net.losses] == [(1,)]


def test_sequential():
    net = mgp.StochasticSequential()
    net.add(nn.Dense(4), Noisy(3), nn.Activation("relu"), Noisy(2))
    net.initialize()
    assert len(net) == 4 and isinstance(net[1], Noisy)
    assert net(mx.np.ones((5, 6))).shape == (5, 2)
    assert [[loss.shape for loss in losses] for losses in net.losses] == [[(5, 3)], [(5, 2)]]
    part = net[:2]
    assert type(part) is mgp.StochasticSequential and part[1] is net[1]
    assert part(mx.np.ones((5, 6))).shape == (5, 3)
    assert net[1].calls == 2
    assert list(net.collect_params()) == [
        f"{name}.{kind}" for name in ("0", "1.loc", "3.loc") for kind in ("weight", "bias")
    ]
    with pytest.raises(TypeError, match=r"blocks must be hybrid, found Block"):
        net.add(mx.gluon.Block())
    empty = mgp.StochasticSequential()
    assert empty(1, 2) == (1, 2) and empty.losses == []


class Rates(mgp.ExponentialFamily):
    """The gamma distribution by its natural parameters."""

    def __init__(self, shape, scale):
        self._store(shape=shape, scale=scale)
        super().__init__()

    @property
    def _natural_params(self):
        return self.shape - 1, -1 / self.scale

    _mean_carrier_measure = 0.0

    def _log_normalizer(self, a, b):
        return mx.npx.gammaln(a + 1) - (a + 1) * mx.np.log(-b)


def test_entropy_from_natural_parameters():
    shape, scale = [0.5, 3.0], [2.0, 0.7]
    as_arrays = [mx.np.array(x, dtype="float64") for x in (shape, scale)]
    expected = mgp.Gamma(*as_arrays).entropy()
    assert_almost_equal(Rates(*as_arrays).entropy(), expected, rtol=1e-12)
    assert not mx.autograd.is_recording()
    check_numeric_gradient(lambda a, b: Rates(a, b).entropy(), [shape, scale], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["erf", "erfinv", "gammaln", "digamma"])
def test_special_functions_of_numbers_and_arrays(name):
    function, twin = getattr(mgp, name)(), getattr(scipy.special, name)
    assert isinstance(function(0.3), float)
    assert function(0.3) == pytest.approx(float(twin(0.3)), rel=1e-13)
    assert_almost_equal(function(mx.np.array([0.3, 0.6], dtype="float64")), twin([0.3, 0.6]), rtol=1e-13)


def test_probabilities_and_logits():
    logit = onp.array([[-40.0, 0.5], [3.0, 40.0]])
    array = mx.np.array(logit, dtype="float64")
    assert_almost_equal(mgp.logit2prob(array), scipy.special.expit(logit), rtol=1e-14)
    assert_almost_equal(mgp.logit2prob(array, False), scipy.special.softmax(logit, axis=-1), rtol=1e-14)
    prob = onp.array([0.0, 1e-20, 0.4, 1.0])
    array = mx.np.array(prob, dtype="float64")
    assert_almost_equal(mgp.prob2logit(array), scipy.special.logit(prob), rtol=1e-14)
    with onp.errstate(divide="ignore"):
        assert_almost_equal(mgp.prob2logit(array, binary=False), onp.log(prob), rtol=1e-14)


def test_checks_of_conditions():
    check = mgp.constraint_check()
    assert check(True, "wrong") is True and check(mx.np.array([True]), "wrong").item()
    for condition in (False, mx.np.array([True, False])):
        with pytest.raises(ValueError, match="wrong"):
            check(condition, "wrong")


def test_sizes():
    convert = mgp.sample_n_shape_converter
    assert convert(None) == convert(()) == () and convert(3) == (3,) and convert([2, onp.int64(3)]) == (2, 3)
    for wrong in (1.5, "a", (1.5,)):
        with pytest.raises(TypeError, match="size"):
            convert(wrong)
    with pytest.raises(ValueError, match="negative"):
        convert((2, -1))


def test_cached_property_is_computed_once():
    calls = []

    class Owner:
        @mgp.cached_property
        def value(self):
            calls.append(1)
            return 5

    owner = Owner()
    assert owner.value == owner.value == 5 and calls == [1]
    assert isinstance(Owner.value, mgp.cached_property)
