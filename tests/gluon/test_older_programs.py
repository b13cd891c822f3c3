"""What programs written for MXNet 1.x and 2.0 beta meet: names, calls and messages."""

import inspect
import warnings

import pytest

import mxnet as mx
from mxnet import gluon, np, npx
from mxnet.base import MXNetError
from mxnet.gluon import nn
from mxnet.gluon.contrib.estimator import EarlyStoppingHandler, Estimator
from mxnet.gluon.data.vision import transforms


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("setattr", "Block.setattr"),
        ("initialize", "Block.initialize"),
        ("reset_ctx", "Block.reset_device"),
        ("save", "Block.save_parameters"),
    ],
)
def test_methods_of_parameter_dictionaries_name_those_of_blocks(name, instead):
    net = nn.Dense(2, in_units=3)
    for found in (net.params, net.collect_params(), net.collect_params("w")):
        assert isinstance(found, dict)
        with pytest.raises(AttributeError, match=rf"no attribute '{name}': call `{instead}`"):
            getattr(found, name)
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            found.nothing


def test_params_get_makes_no_parameters():
    params = nn.Dense(2, in_units=3).params
    assert params.get("weight").shape == (2, 3)
    assert params.get("other", 5) == 5
    with pytest.raises(TypeError, match=r"self\.other = mx\.gluon\.Parameter\('other', \.\.\.\).*\['init', 'shape'\]"):
        params.get("other", shape=(2,), init="zeros")


def test_names_of_blocks_say_that_they_are_gone():
    net = nn.HybridSequential()
    for name in ("name_scope", "prefix", "name"):
        with pytest.raises(
            AttributeError, match=rf"'HybridSequential' object has no attribute '{name}': it was removed"
        ):
            getattr(net, name)
        assert name not in dir(net)
    net.prefix = "mine"  # an attribute of the program's own
    assert net.prefix == "mine"
    assert "prefix" in dir(net)


def test_every_name_that_dir_lists_can_be_read():
    class Net(gluon.HybridBlock):
        prefix = "mine"

        def __init__(self):
            super().__init__()
            self.scale = np.ones(2)

    net = Net()
    arrays = [name for name in dir(net) if isinstance(getattr(net, name), np.ndarray)]
    assert arrays == ["scale"]
    assert {"prefix", "forward", "collect_params"} <= set(dir(net))


def test_collected_parameters_have_a_class_with_a_name():
    net = nn.Dense(2, in_units=3)
    with pytest.raises(KeyError, match=r"no parameter 'dense0_weight'; .* attributes of blocks: 'weight', 'bias'"):
        net.collect_params()["dense0_weight"]
    assert type(net.collect_params()) is gluon.ParameterDict is gluon.parameter.ParameterDict


@pytest.mark.parametrize(
    "make",
    [nn.Dense, nn.HybridSequential, gluon.rnn.LSTM, gluon.loss.L2Loss, nn.Conv2D, gluon.Block],
    ids=lambda make: make.__name__,
)
def test_older_arguments_of_blocks_say_what_replaced_them(make):
    sizes = {nn.Dense: (3,), gluon.rnn.LSTM: (3,), nn.Conv2D: (3, 1)}.get(make, ())
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'prefix': it was removed; .* named by the attri"):
        make(*sizes, prefix="x_")
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'params': it was removed; to share a parameter"):
        make(*sizes, params=None)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'prefx'$"):
        make(*sizes, prefx="x_")


def test_blocks_may_have_arguments_of_the_older_names():
    class Passes(nn.HybridBlock):
        def __init__(self, prefix=None, params=None):
            super().__init__(prefix=prefix, params=params)

    class Keeps(nn.HybridBlock):
        def __init__(self, prefix, **kwargs):
            super().__init__()
            self.prefix, self.params_of_mine = prefix, kwargs["params"]

    with pytest.raises(TypeError, match=r"^Block.__init__\(\) got an unexpected keyword argument 'params': it was rem"):
        Passes()
    net = Keeps("x_", params=3)
    assert (net.prefix, net.params_of_mine) == ("x_", 3)
    assert list(inspect.signature(Keeps).parameters) == ["prefix", "kwargs"]
    assert list(inspect.signature(nn.Dense).parameters)[:2] == ["units", "activation"]
    assert not inspect.signature(gluon.Block).parameters


def test_hybrid_forward_is_named_when_forward_is_missing():
    class Old(nn.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.relu(x)

    with pytest.raises(NotImplementedError, match=r"Old does not define forward: `hybrid_forward\(F, x"):
        Old()(np.ones(2))


@pytest.mark.parametrize(
    ("name", "instead"),
    [("metric", r"mx\.gluon\.metric"), ("monitor", "register_op_hook"), ("kvstore_server", "dist_async")],
)
def test_removed_modules_name_their_replacement(name, instead):
    with pytest.raises(AttributeError, match=f"it was removed; .*{instead}"):
        getattr(mx, name)


def line():
    return inspect.currentframe().f_back.f_lineno


def test_warnings_name_the_line_of_the_program():
    class Hiding(nn.Block):
        def __init__(self):
            super().__init__()
            self.layers = [nn.Dense(2)]

    made = gluon.Parameter("w", shape=(2,))
    made.initialize()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        first = line()
        gluon.rnn.LSTM(3).begin_state(2, ctx=mx.cpu())
        gluon.rnn.SequentialRNNCell().begin_state(2, ctx=mx.cpu())
        Hiding().initialize()
        made.initialize(ctx=mx.cpu())
        Estimator(nn.Dense(1), gluon.loss.L2Loss(), context=mx.cpu())
    assert {warning.filename for warning in caught} == {__file__}
    assert [warning.lineno - first for warning in caught] == [1, 2, 3, 4, 4, 5]
    assert str(caught[0].message) == "argument `ctx` of begin_state is deprecated; use `device`"
    assert "Hiding.layers holds 1 block (Dense)" in str(caught[2].message)
    assert str(caught[5].message) == "argument `context` of Estimator is deprecated; use `device`"


def test_early_stopping_counts_epochs(capsys):
    estimator = Estimator(
        nn.Dense(1), gluon.loss.L2Loss(), train_metrics=gluon.metric.MSE(), val_metrics=gluon.metric.MSE()
    )
    data = [(np.ones((4, 2)), np.ones((4, 1)))] * 2
    stopping = EarlyStoppingHandler(estimator.train_metrics[0], baseline=-1.0, patience=2)
    assert stopping.current_epoch == 0
    estimator.fit(data, data, epochs=9, event_handlers=[stopping])
    assert (stopping.current_epoch, stopping.stopped_epoch, estimator.current_epoch) == (2, 2, 2)
    # Both metrics are called "mse"; the log tells them apart.
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("epoch 1"))
    assert line.count(", training mse:") == line.count(", validation mse:") == 1


@pytest.mark.parametrize("kind", [list, tuple])
def test_lists_of_arrays_are_files(tmp_path, kind):
    arrays = [np.arange(3), np.ones((2, 2), dtype="bfloat16"), np.zeros(())] * 5  # more than 10: "10" sorts before "2"
    npx.save(tmp_path / "list", kind(arrays))
    found = npx.load(tmp_path / "list")
    assert isinstance(found, list)
    assert [(x.dtype, x.shape) for x in found] == [(x.dtype, x.shape) for x in arrays]
    assert all((x == y).all() for x, y in zip(found, arrays, strict=True))


def test_saving_other_lists_is_refused(tmp_path):
    with pytest.raises(TypeError, match="a list of arrays, not a list with 'int'"):
        npx.save(tmp_path / "list", [np.ones(2), 3])
    with pytest.raises(TypeError, match="a list of arrays, not an empty list"):
        npx.save(tmp_path / "list", [])
    assert not (tmp_path / "list").exists()


def test_dlpack_is_a_keyword():
    x = np.array([1.0, 2.0])
    assert npx.from_dlpack(dlpack=x).tolist() == npx.from_dlpack(x.to_dlpack_for_read()).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (lambda: transforms.RandomBrightness(0.3), "RandomBrightness(brightness=0.3)"),
        (
            lambda: transforms.RandomColorJitter(0.1, hue=0.4),
            "RandomColorJitter(brightness=0.1, contrast=0.0, saturation=0.0, hue=0.4)",
        ),
        (lambda: transforms.RandomCrop(3, pad=2), "RandomCrop(size=(3, 3), pad=2)"),
        (
            lambda: transforms.CropResize(1, 2, 3, 4, interpolation=2),
            "CropResize(x=1, y=2, width=3, height=4, interpolation=2)",
        ),
        (lambda: transforms.Rotate(30, zoom_in=True), "Rotate(rotation_degrees=30, zoom_in=True)"),
        (
            lambda: transforms.RandomRotation((1, 2), rotate_with_proba=0.3),
            "RandomRotation(angle_limits=(1, 2), rotate_with_proba=0.3)",
        ),
        (lambda: nn.ELU(0.3), "ELU(alpha=0.3)"),
        (lambda: nn.GELU("tanh"), "GELU(approximation='tanh')"),
        (lambda: nn.Swish(2.0), "Swish(beta=2.0)"),
        (lambda: nn.GroupNorm(3), "GroupNorm(axis=1, eps=1e-05, num_groups=3, in_channels=None)"),
        (
            lambda: nn.BatchNorm(scale=False),
            "BatchNorm(axis=1, eps=1e-05, momentum=0.9, scale=False, in_channels=None)",
        ),
    ],
)
def test_reprs_show_options(made, text):
    assert repr(made()) == text


def test_calibrated_ranges_are_refused():
    x = np.ones((2, 3))
    scale = [np.ones(3)] * 4
    expected = npx.batch_norm(x, *scale)
    assert (npx.batch_norm(x, *scale, min_calib_range=None, max_calib_range=None) == expected).all()
    for name in ("min_calib_range", "max_calib_range"):
        with pytest.raises(ValueError, match=f"batch_norm: `{name}` must be None"):
            npx.batch_norm(x, *scale, **{name: 0.5})


def test_index_arrays_of_another_device_are_copied():
    x = np.arange(6.0, device=mx.cpu(1)).reshape(2, 3)
    rows, columns = np.array([1, 0]), np.array([2, 1], device=mx.cpu(1))
    assert x[rows].device == x[rows, columns].device == mx.cpu(1)
    assert x[rows, columns].tolist() == [5.0, 1.0]
    assert x[np.array([[True, False, False], [False, False, True]])].tolist() == [0.0, 5.0]
    x[rows, columns] = np.array([7.0, 8.0])
    x[rows > 0] += 1
    assert x.tolist() == [[1.0, 9.0, 3.0], [3.0, 4.0, 7.0]]
    x.attach_grad()
    with mx.autograd.record():
        y = x[rows, columns].sum()
    y.backward()
    assert x.grad.tolist() == [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: nn.Dense("x"), TypeError, "Dense: `units` must be an integer, found 'x'"),
        (lambda: nn.Dense(2.5), TypeError, "Dense: `units` must be an integer, found 2.5"),
        (lambda: nn.Dense(0), ValueError, "Dense: `units` must be at least 1, found 0"),
        (lambda: nn.Conv2D("x", 3), TypeError, "Conv2D: `channels` must be an integer, found 'x'"),
        (lambda: nn.Conv2D(3, 3.0), TypeError, "`kernel_size` must be an integer or 2 integers, found 3.0"),
        (lambda: nn.MaxPool2D((2, 2, 2)), ValueError, r"`pool_size` must be a number or 2 numbers, found \(2, 2, 2\)"),
        (lambda: nn.Embedding("a", 3), TypeError, "Embedding: `input_dim` must be an integer, found 'a'"),
        (lambda: nn.Dropout("a"), ValueError, r"Dropout: `rate` must be a number in \[0, 1\], found 'a'"),
        (lambda: gluon.rnn.LSTM(3, num_layers=0), ValueError, "LSTM: `num_layers` must be at least 1, found 0"),
        (lambda: gluon.Trainer(nn.Dense(2), "sgd"), TypeError, r"Trainer: `params` .*collect_params\(\).*found Dense"),
        (
            lambda: nn.Dense(2, in_units=3)([[1, 2, 3]]),
            (TypeError, RuntimeError),
            r"argument 0 is a list; `mx\.np\.array",
        ),
    ],
)
def test_wrong_arguments_of_layers_are_named(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def test_batch_norm_names_inputs_without_channels():
    layer = nn.BatchNorm()
    layer.initialize()
    with pytest.raises(ValueError, match=r"BatchNorm: an input of shape \(3,\) has no axis 1"):
        layer(np.ones(3))


def test_losses_name_arguments_that_do_not_fit():
    with pytest.raises(ValueError, match=r"L2Loss: `label` must have as many .*found shape \(3, 3\) for \(2, 3\)"):
        gluon.loss.L2Loss()(np.ones((2, 3)), np.ones((3, 3)))
    with pytest.raises(ValueError, match=r"class numbers of shape \(2,\) .*found \(2, 3\); `sparse_label=False`"):
        gluon.loss.SoftmaxCELoss()(np.ones((2, 3)), np.ones((2, 3)))


@pytest.mark.parametrize("sample", ["text", {"a": 1}, None])
def test_samples_that_cannot_be_stacked_name_the_builders_that_take_them(sample):
    with pytest.raises(TypeError, match=rf"type {type(sample).__name__} cannot be stacked; .*AsList") as caught:
        list(gluon.data.DataLoader([(sample, 1)] * 2, 2))
    assert caught.value.__notes__ == ["while building a batch of the samples [0, 1]"]


def test_names_of_operations_are_refused_with_a_reason():
    for call in (npx.relu, np.exp, np.sum):
        with pytest.raises(TypeError, match=r"unexpected keyword argument 'name': operations have no names, leave it"):
            call(np.ones(2), name="fwd")
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'nme'$"):
        npx.relu(np.ones(2), nme="fwd")


@pytest.mark.parametrize("kind", ["cpu_pinned", "cpu_shared"])
def test_older_kinds_of_cpu_memory_say_what_replaced_them(kind):
    device = mx.Device(kind, 0)
    for call in (lambda: np.zeros(2, device=device), lambda: np.ones(2).to_device(device)):
        with pytest.raises(
            MXNetError, match=rf"{kind}\(0\) is not available: .*; memory of the CPU is cpu\(0\), pinned"
        ):
            call()


@pytest.mark.parametrize(("name", "function"), [("exp", "np.exp"), ("slice_axis", "npx.slice_axis"), ("nothing", None)])
def test_methods_that_arrays_lack_name_the_function_in_a_note(name, function):
    class Old(nn.HybridBlock):
        def forward(self, x):
            return getattr(x, name)(1)

    with pytest.raises(AttributeError, match=f"has no attribute '{name}'") as caught:
        nn_of(Old())(np.ones(2))
    hints = [note for note in caught.value.__notes__ if "hint" in note]
    assert hints == ([] if function is None else [f"hint: arrays have no such method, call `{function}(x, ...)`"])
    assert any(note.startswith("in `0`: Old called with") for note in caught.value.__notes__)


def nn_of(block):
    net = nn.HybridSequential()
    net.add(block)
    return net
