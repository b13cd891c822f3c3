"""Blocks: what fails says where, copies, blocks in containers, hooks of operators, keyword calls, reprs."""

import copy
import pickle
import warnings

import numpy as onp
import pytest

import mxnet as mx
from mxnet import gluon
from mxnet.gluon import nn, rnn
from mxnet.gluon.block.base import has_op_hooks


class Net(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        self.features = nn.HybridSequential()
        self.features.add(nn.Dense(4, activation="relu"), nn.Dense(3))
        self.output = nn.Dense(2)

    def forward(self, x, scale=1.0):
        return self.output(self.features(x)) * scale


def initialized(x):
    net = Net()
    net.initialize(mx.init.Normal(0.5))
    net(x)
    return net


def notes_of(error):
    return "\n".join(getattr(error.value, "__notes__", []))


def test_uninitialized_parameters_are_named_by_their_path():
    with pytest.raises(RuntimeError, match=r"parameter 'features\.0\.weight' is not initialized") as error:
        Net()(mx.np.ones((2, 5)))
    assert notes_of(error) == "in `features.0`: Dense called with ((2, 5) float32)"


def test_errors_of_operators_name_layer_path_and_shapes():
    net = initialized(mx.np.ones((2, 5)))
    with pytest.raises(ValueError, match="size 7") as error:
        net(mx.np.ones((2, 7)), scale=2.0)
    assert notes_of(error) == "in `features.0`: Dense called with ((2, 7) float32)"
    with pytest.raises(ValueError, match="size 7") as error:
        net.output(mx.np.ones((2, 7)))
    assert notes_of(error) == "Dense called with ((2, 7) float32)"


def test_arguments_of_all_kinds_have_short_descriptions():
    class Failing(gluon.Block):
        def forward(self, *args, **kwargs):
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken") as error:
        Failing()([mx.np.ones(2), None], {"mask": mx.np.ones((1, 2))}, length=3)
    assert notes_of(error) == "Failing called with ([(2,) float32, None], {mask: (1, 2) float32}, length=3)"


def test_arrays_of_numpy_are_named_when_a_call_fails():
    net = initialized(mx.np.ones((2, 5)))
    with pytest.raises(TypeError, match=r"Dense: argument 0 is a numpy\.ndarray; `mx\.np\.array\(x\)`") as error:
        net(onp.ones((2, 5), "float32"))
    assert "features.0" in notes_of(error)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_copies_compute_the_same_and_share_nothing(copied):
    x = mx.np.array(onp.random.default_rng(1).normal(size=(3, 5)).astype("float32"))
    net = initialized(x)
    twin = copied(net)
    assert (twin(x).asnumpy() == net(x).asnumpy()).all()
    trainer = gluon.Trainer(twin.collect_params(), "sgd", {"learning_rate": 1.0})
    before = net.output.weight.data().asnumpy()
    with mx.autograd.record():
        loss = twin(x).sum()
    loss.backward()
    trainer.step(1)
    assert (net.output.weight.data().asnumpy() == before).all()
    assert (twin.output.weight.data().asnumpy() != before).any()


def test_devices_are_pickled():
    assert pickle.loads(pickle.dumps([mx.cpu(3)])) == [mx.cpu(3)]
    assert copy.deepcopy(mx.gpu(1)) == mx.gpu(1)


@pytest.mark.parametrize("container", [list, tuple, lambda blocks: {"a": [blocks[0]], "b": blocks[1]}])
def test_blocks_in_containers_give_a_warning_that_names_them(container):
    class Hiding(gluon.Block):
        def __init__(self):
            super().__init__()
            self.layers = container([nn.Dense(2), nn.Dense(3)])

    chain = nn.Sequential()
    chain.add(Hiding())
    with pytest.warns(UserWarning, match=r"Hiding\.layers holds 2 blocks \(Dense the first\) without registration"):
        chain.initialize()
    inner = chain[0]
    inner.first, inner.second = inner.layers.values() if isinstance(inner.layers, dict) else inner.layers
    if not isinstance(inner.layers, dict):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            chain.collect_params()


def test_deferred_shapes_come_from_keyword_arguments():
    for layer, shape in ((nn.Dense(2), (3, 4)), (nn.Conv2D(2, 1), (1, 3, 2, 2)), (nn.BatchNorm(), (2, 3))):
        layer.initialize()
        layer(x=mx.np.ones(shape))
        assert all(size > 0 for parameter in layer.collect_params().values() for size in parameter.shape)


def test_sharing_none_shares_nothing():
    layer = nn.Dense(2, in_units=3)
    weight = layer.weight
    assert layer.share_parameters(None) is layer
    assert layer.weight is weight


def test_hooks_of_operators_see_names_and_values():
    x = mx.np.array([[1.0, -2.0, 3.0]])
    net = nn.HybridSequential()
    net.add(nn.Dense(2, activation="relu"), nn.Dense(2))
    net.initialize()
    expected = net(x).asnumpy()
    seen = []
    with net.register_op_hook(lambda name, operator, array: seen.append((name, operator, array.asnumpy()))):
        net(x)
    net(x)
    assert [(name, operator) for name, operator, _ in seen] == [
        ("fully_connected0_output", "fully_connected"),
        ("relu1_output", "relu"),
        ("fully_connected2_output", "fully_connected"),
    ]
    assert (seen[-1][2] == expected).all()
    assert (seen[1][2] == seen[0][2].clip(0)).all()


def test_hooks_of_operators_see_inputs_if_asked_and_nothing_of_their_own():
    net = nn.Dense(2, in_units=3)
    net.initialize()
    x, names = mx.np.ones((1, 3)), []

    def hook(name, operator, array):
        names.append((name, array.shape))
        (array + 1).sum()

    handle = net.register_op_hook(hook, monitor_all=True)
    with mx.autograd.record():
        loss = net(x).sum()
    loss.backward()
    handle.detach()
    assert names == [
        ("fully_connected0_input0", (1, 3)),
        ("fully_connected0_input1", (2, 3)),
        ("fully_connected0_input2", (2,)),
        ("fully_connected0_output", (1, 2)),
    ]
    assert (net.weight.grad().asnumpy() == 1).all()


def test_exceptions_of_operator_hooks_end_the_call():
    net = nn.Dense(2, in_units=3)
    net.initialize()

    def hook(name, operator, array):
        raise KeyError(name)

    with net.register_op_hook(hook), pytest.raises(KeyError, match="fully_connected0_output"):
        net(mx.np.ones((1, 3)))
    assert net(mx.np.ones((1, 3))).shape == (1, 2)


def test_summary_begins_with_the_input(capsys):
    net = initialized(mx.np.ones((2, 5)))
    net.summary(mx.np.ones((2, 5)))
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[2] == ["input", "(2,", "5)", "0"]


def test_print_summary_computes_nothing_and_counts(capsys):
    net = Net()
    net.initialize()
    mx.viz.print_summary(net, shape={"x": (2, 5)}, line_length=80)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["layer", "(type)", "output", "shape", "paramet", "previous", "layer"]
    assert "features.1 (Dense)" in lines[5]
    assert "features.0.act" in lines[5]
    assert lines[-2] == f"parameters: {5 * 4 + 4 + 4 * 3 + 3 + 3 * 2 + 2}"
    with pytest.raises(ValueError, match="`shape` must be given"):
        mx.viz.print_summary(net)
    with pytest.raises(ValueError, match="4 rising numbers"):
        mx.viz.print_summary(net, (2, 5), positions=(0.5, 0.4, 0.8, 1))
    with pytest.raises(TypeError, match="must be a Block, found int"):
        mx.viz.print_summary(3)


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (lambda: mx.optimizer.Adam(learning_rate=0.1, beta1=0.8), "Adam(learning_rate=0.1, beta1=0.8)"),
        (lambda: mx.optimizer.SGD(), "SGD(learning_rate=0.1)"),
        (lambda: mx.lr_scheduler.FactorScheduler(step=10, factor=0.5), "FactorScheduler(step=10, factor=0.5)"),
        (lambda: mx.optimizer.Updater(mx.optimizer.SGD(momentum=0.5)), "Updater(SGD(learning_rate=0.1, momentum=0.5))"),
        (lambda: mx.lr_scheduler.PolyScheduler(9, pwr=3), "PolyScheduler(max_update=9, pwr=3)"),
        (lambda: gluon.loss.HuberLoss(rho=2), "HuberLoss(batch_axis=0, w=None, rho=2)"),
        (lambda: gluon.loss.SoftmaxCELoss(weight=2.0, axis=1), "SoftmaxCrossEntropyLoss(batch_axis=0, w=2.0, axis=1)"),
        (lambda: gluon.data.batchify.Ragged("int32"), "Ragged(dtype='int32')"),
        (lambda: nn.Dense(3, flatten=False, use_bias=False), "Dense(None -> 3, linear, flatten=False, use_bias=False)"),
        (lambda: nn.Embedding(4, 3, sparse_grad=True), "Embedding(4 -> 3, float32, sparse_grad=True)"),
        (lambda: nn.HybridConcatenate(axis=1), "HybridConcatenate(axis=1)"),
        (lambda: nn.Dropout(0.5, axes=(1,)), "Dropout(p = 0.5, axes=(1,))"),
        (
            lambda: nn.BatchNorm(use_global_stats=True),
            "BatchNorm(axis=1, eps=1e-05, momentum=0.9, use_global_stats=True, in_channels=None)",
        ),
        (
            lambda: nn.DeformableConvolution(4, 3, groups=2, dilation=2, use_bias=False),
            "DeformableConvolution(None -> 4, kernel_size=(3, 3), stride=(1, 1), dilation=(2, 2), groups=2, "
            "use_bias=False)",
        ),
        (lambda: rnn.RNNCell(5, activation="relu", input_size=3), "RNNCell(3 -> 5, activation='relu')"),
        (lambda: rnn.LSTMPCell(5, 3), "LSTMPCell(None -> 5 -> 3)"),
        (lambda: rnn.ZoneoutCell(rnn.GRUCell(4), 0.1), "ZoneoutCell(GRUCell(None -> 4), zoneout_outputs=0.1)"),
        (
            lambda: rnn.VariationalDropoutCell(rnn.GRUCell(4), drop_states=0.1),
            "VariationalDropoutCell(GRUCell(None -> 4), drop_states=0.1)",
        ),
        (lambda: rnn.DropoutCell(0.5), "DropoutCell(rate=0.5)"),
        (
            lambda: rnn.Conv1DGRUCell((2, 9), 3, 3, 3, i2h_pad=1, activation="relu"),
            "Conv1DGRUCell(2 -> 3, i2h_kernel=(3,), h2h_kernel=(3,), i2h_pad=(1,), activation='relu')",
        ),
        (lambda: gluon.data.ArrayDataset(mx.np.ones(3)), "ArrayDataset(3 samples)"),
        (lambda: gluon.data.SimpleDataset([1, 2]).take(1), "Chosen(1 samples)"),
        (lambda: gluon.data.SequentialSampler(3), "SequentialSampler(length=3)"),
        (lambda: gluon.data.vision.transforms.Normalize(0.1, 0.2), "Normalize(mean=0.1, std=0.2)"),
        (lambda: gluon.data.batchify.Pad(val=1), "Pad(val=1, round_to=1)"),
        (lambda: gluon.metric.TopKAccuracy(top_k=3), "TopKAccuracy(top_k=3, name='top_k_accuracy_3')"),
        (
            lambda: nn.AvgPool2D(2, layout="NHWC", count_include_pad=False),
            "AvgPool2D(size=(2, 2), stride=(2, 2), padding=(0, 0), ceil_mode=False, count_include_pad=False, "
            "layout=NHWC)",
        ),
        (lambda: nn.GlobalMaxPool2D(layout="NHWC"), "GlobalMaxPool2D(layout=NHWC)"),
        (
            lambda: gluon.Trainer(nn.Dense(2, in_units=1).collect_params(), "sgd"),
            "Trainer(SGD(learning_rate=0.1), 2 parameters)",
        ),
    ],
)
def test_reprs_show_arguments(made, text):
    assert repr(made()) == text


def test_hooks_and_errors_of_hybridized_networks_are_the_same():
    x = mx.np.array([[1.0, -2.0, 3.0]])
    net = Net()
    net.initialize()
    expected = net(x).asnumpy()
    net.hybridize()
    net(x)
    names = []
    with net.register_op_hook(lambda name, operator, array: names.append(name)):
        net(x)
    assert names[:3] == ["fully_connected0_output", "relu1_output", "fully_connected2_output"]
    onp.testing.assert_allclose(net(x).asnumpy(), expected, rtol=1e-6)
    with pytest.raises(ValueError, match="size 2") as error:
        net(mx.np.ones((1, 2)))
    assert "in `features.0`: Dense called with" in notes_of(error)


def test_trainers_step_in_compiled_functions():
    net = nn.Dense(1, in_units=2, use_bias=False)
    net.initialize(mx.init.One())
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})

    @mx.jit
    def step(x):
        with mx.autograd.record():
            loss = net(x).sum()
        loss.backward()
        trainer.step(1)
        return loss

    for count in range(3):
        step(mx.np.array([[1.0, 2.0]]))
        assert net.weight.data().tolist() == [[1 - 0.5 * (count + 1), 1 - (count + 1)]]
    with pytest.raises(UserWarning, match="no backward pass"):
        trainer.step(1)


def test_gradients_of_compiled_functions_are_new_and_compiled_steps_apply_them_once():
    net = nn.Dense(1, in_units=1, use_bias=False)
    net.initialize(mx.init.One())
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0})

    @mx.jit
    def backward(x):
        with mx.autograd.record():
            loss = net(x).sum()
        loss.backward()

    @mx.jit
    def step():
        trainer.step(1)

    for count in range(3):
        backward(mx.np.array([[1.0]]))
        trainer.step(1)
        backward(mx.np.array([[1.0]]))
        step()
        assert net.weight.data().item() == 1 - 2 * (count + 1)
        with pytest.raises(UserWarning, match="no backward pass"):
            step()


def test_hooks_of_operators_of_a_child_are_called_in_hybridized_parents():
    x = mx.np.array([[1.0, -2.0, 3.0]])
    net = Net()
    net.initialize()
    expected = net(x).asnumpy()
    net.hybridize()
    net(x)
    names = []
    with net.features[0].register_op_hook(lambda name, operator, array: names.append((name, float(array.sum())))):
        net(x)
        net(x)
        assert [name for name, _ in names] == 2 * ["fully_connected0_output", "relu1_output"]
        copied = copy.deepcopy(net)
    onp.testing.assert_allclose(net(x).asnumpy(), expected, rtol=1e-6)
    assert len(names) == 4
    copied(x)
    assert len(names) == 6
    assert net.trace_report()
    assert has_op_hooks(copied)
    assert not has_op_hooks(net)
