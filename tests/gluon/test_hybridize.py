"""`hybridize`: options of blocks; results stay the same."""

import numpy as onp
import pytest

import mxnet as mx
from mxnet.gluon import nn


def network(chain):
    net = chain()
    net.add(nn.Dense(4, in_units=3, activation="relu"), nn.Dense(2, in_units=4))
    net.initialize()
    return net


@pytest.mark.parametrize("chain", [nn.Sequential, nn.HybridSequential])
def test_all_hybrid_blocks_below_keep_the_options(chain):
    net = network(chain)
    x = mx.np.ones((2, 3))
    before = net(x).asnumpy()
    net.hybridize(static_alloc=True, static_shape=True, inline_limit=3, forward_bulk_size=5)
    for dense in net:
        options = dense._graph_options
        assert (options.active, options.static_alloc, options.static_shape) == (True, True, True)
        assert (options.inline_limit, options.forward_bulk_size, options.backward_bulk_size) == (3, 5, None)
    assert (net(x).asnumpy() == before).all()
    net.hybridize(active=False)
    assert not any(dense._graph_options.active for dense in net)


@pytest.mark.parametrize("chain", [nn.Sequential, nn.HybridSequential])
def test_unknown_options_are_refused(chain):
    with pytest.raises(TypeError, match="static_aloc"):
        network(chain).hybridize(static_aloc=True)


@pytest.mark.parametrize("chain", [nn.Sequential, nn.HybridSequential])
def test_values_out_of_range_are_refused_before_anything_changes(chain):
    net = network(chain)
    with pytest.raises(ValueError, match=r"hybridize: `inline_limit` must not be negative, found -1"):
        net.hybridize(inline_limit=-1)
    with pytest.raises(ValueError, match=r"`static_shape=True` needs `static_alloc=True`"):
        net.hybridize(static_shape=True)
    with pytest.raises(TypeError, match=r"`backward_bulk_size` must be an integer, found 2\.5"):
        net.hybridize(backward_bulk_size=2.5)
    assert not any(dense._graph_options.active for dense in net)


@pytest.mark.parametrize("chain", [nn.Sequential, nn.HybridSequential])
def test_only_blocks_can_be_added(chain):
    net = chain()
    with pytest.raises(TypeError, match=rf"{chain.__name__}\.add: `blocks` must be blocks, found int"):
        net.add(nn.Dense(2), 3)
    assert len(net) == 0


def test_consistency_check_compares_outputs_gradients_and_numpy():
    data = onp.random.default_rng(2).normal(size=(4, 3)).astype("float32")

    def build():
        net = nn.HybridSequential()
        net.add(nn.Dense(4, activation="tanh"), nn.Dropout(0.5), nn.Dense(2))
        return net

    check = mx.test_utils.check_gluon_hybridize_consistency
    before = mx.np.random.get_state()
    check(build, [data])
    check(build, [data], test_grad=False)
    assert mx.np.random.get_state() == before
    with pytest.raises(AssertionError, match="differ"):
        check(lambda: nn.Activation("relu"), [data], lambda x: x)


@pytest.mark.parametrize("what", ["output", "gradient"])
def test_consistency_check_finds_a_network_that_changes(what):
    class Changing(mx.gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.weight = mx.gluon.Parameter(shape=(2,), init="ones")

        def forward(self, x):
            hybridized = self._graph_options.active
            y = x * self.weight.data()
            if not hybridized:
                return y
            return y + 1 if what == "output" else y + 2 * (y - mx.npx.stop_gradient(y))

    with pytest.raises(AssertionError, match="differ"):
        mx.test_utils.check_gluon_hybridize_consistency(Changing, [onp.ones((3, 2), "float32")])
