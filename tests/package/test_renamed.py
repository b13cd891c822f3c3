"""Older names: each works and warns, or says what to use in its place."""

import importlib
import importlib.util
import inspect
import os
import re
import sys
import warnings

import numpy as onp
import pytest

import mxnet as mx
from mxnet import _renamed, gluon, npx
from mxnet.gluon import nn


def dense():
    net = nn.Dense(2, in_units=3)
    net.initialize()
    return net


def loaded(tmp_path, method, source):
    net = dense()
    net.save_parameters(tmp_path / "w")
    other = nn.Dense(2, in_units=3)
    getattr(other, method)(source(net, tmp_path), ctx=mx.cpu(1))
    return other.weight.list_device()


def initialized(owner, **kwargs):
    owner.initialize(**kwargs)
    return (owner.weight if isinstance(owner, nn.Dense) else owner).list_device()


def moved(owner, *args, **kwargs):
    owner.reset_ctx(*args, **kwargs)
    return (owner.weight if isinstance(owner, nn.Dense) else owner).list_device()


ONE = mx.cpu(1)
# What is called, and what it gives; every call uses one older name.
CASES = {
    "Block.initialize": (lambda tmp: initialized(nn.Dense(2, in_units=3), ctx=ONE), [ONE]),
    "Block.initialize list": (lambda tmp: initialized(nn.Dense(2, in_units=3), ctx=[mx.cpu(), ONE]), [mx.cpu(), ONE]),
    "Block.reset_ctx": (lambda tmp: moved(dense(), ONE), [ONE]),
    "Block.reset_ctx named": (lambda tmp: moved(dense(), ctx=ONE), [ONE]),
    "Block.load_parameters": (lambda tmp: loaded(tmp, "load_parameters", lambda net, tmp: tmp / "w"), [ONE]),
    "Block.load_dict": (
        lambda tmp: loaded(tmp, "load_dict", lambda net, tmp: {k: p.data() for k, p in net.collect_params().items()}),
        [ONE],
    ),
    "Parameter.initialize": (lambda tmp: initialized(gluon.Parameter(shape=(2,)), ctx=ONE), [ONE]),
    "Parameter.reset_ctx": (lambda tmp: moved(dense().weight, ctx=ONE), [ONE]),
    "Parameter.list_ctx": (lambda tmp: dense().weight.list_ctx(), [mx.cpu(0)]),
    "Parameter.data": (lambda tmp: dense().weight.data(ctx=mx.cpu(0)).shape, (2, 3)),
    "Parameter.grad": (lambda tmp: dense().weight.grad(ctx=mx.cpu(0)).shape, (2, 3)),
    "split_and_load": (
        lambda tmp: [x.device for x in gluon.utils.split_and_load(mx.np.ones((2, 1)), ctx_list=[mx.cpu(0), ONE])],
        [mx.cpu(0), ONE],
    ),
    "ndarray.as_in_ctx": (lambda tmp: mx.np.ones(2).as_in_ctx(ONE).device, ONE),
    "ndarray.as_in_context": (lambda tmp: mx.np.ones(2).as_in_context(ONE).device, ONE),
    "ndarray.ctx": (lambda tmp: mx.np.ones(2).ctx, mx.cpu(0)),
    "ndarray.context": (lambda tmp: mx.np.ones(2).context, mx.cpu(0)),
    "random.seed": (lambda tmp: mx.random.seed(1, ctx="all"), None),
    "rand_ndarray": (lambda tmp: mx.test_utils.rand_ndarray((2,), ctx=ONE).device, ONE),
    "mx.Context": (lambda tmp: mx.Context("cpu", 1), ONE),
    "mx.current_context": (lambda tmp: mx.current_context(), mx.cpu(0)),
    "context.Context": (lambda tmp: mx.context.Context, mx.Device),
    "context.current_context": (lambda tmp: mx.context.current_context(), mx.cpu(0)),
    "context.cpu": (lambda tmp: mx.context.cpu(1), ONE),
    "context.gpu": (lambda tmp: mx.context.gpu(1), mx.gpu(1)),
    "context.num_gpus": (lambda tmp: mx.context.num_gpus(), mx.num_gpus()),
}


@pytest.mark.parametrize("name", CASES)
def test_an_older_name_works_and_warns_at_the_callers_line(name, tmp_path):
    call, expected = CASES[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert call(tmp_path) == expected
    assert [warning.category for warning in caught] == [DeprecationWarning]
    assert "is deprecated; use " in str(caught[0].message)
    assert os.path.samefile(caught[0].filename, __file__)


def test_completion_of_an_array_shows_no_older_names():
    older = {name.removeprefix("ndarray.") for name in CASES if name.startswith("ndarray.")}
    assert older <= set(dir(mx.np.ndarray))
    assert set(dir(mx.np.ndarray)) - set(dir(mx.np.ones(2))) == older


def test_both_names_of_an_argument_are_refused():
    with pytest.raises(TypeError, match=r"initialize\(\) got both `device` and its older name `ctx`"):
        dense().initialize(device=mx.cpu(), ctx=mx.cpu())


def test_an_older_method_calls_what_a_subclass_overrides():
    class Net(nn.Dense):
        def reset_device(self, device):
            self.seen = device

    net = Net(2, in_units=3)
    with pytest.warns(DeprecationWarning, match="reset_device"):
        net.reset_ctx(ONE)
    assert net.seen == ONE


def test_signatures_stay_readable():
    assert "device" in inspect.signature(gluon.Block.initialize).parameters
    assert "ctx" not in inspect.signature(gluon.Block.initialize).parameters


@pytest.mark.parametrize("name", _renamed.REMOVED["mxnet"])
def test_removed_names_say_what_to_use(name):
    with pytest.raises(AttributeError, match=rf"'mxnet' has no attribute '{name}': it was removed; .*`mx\."):
        getattr(mx, name)
    assert not hasattr(mx, name)


def test_reset_np_goes_back_to_the_default_dtype():
    npx.set_np(dtype=True)
    try:
        with pytest.warns(DeprecationWarning, match=r"`npx\.reset_np` is deprecated; use `npx\.set_np\(\)`"):
            npx.reset_np()
        assert mx.np.zeros(1).dtype == "float32"
    finally:
        npx.set_np()


CREATION = [
    "zeros(2)",
    "ones(2)",
    "empty(2)",
    "full(2, 1)",
    "arange(2)",
    "array([1])",
    "eye(2)",
    "identity(2)",
    "tri(2)",
    "linspace(0, 1)",
    "logspace(0, 1)",
    "indices((2,))",
    "zeros_like(mx.np.ones(2))",
    "ones_like(mx.np.ones(2))",
    "full_like(mx.np.ones(2), 1)",
    "hanning(3)",
    "hamming(3)",
    "blackman(3)",
    *(f"random.{name}()" for name in ("uniform", "normal", "logistic", "gumbel", "laplace", "exponential", "rand")),
    *(f"random.{name}" for name in ("randint(3)", "choice(3)", "gamma(1.0)")),
]


@pytest.mark.parametrize("call", CREATION)
def test_arrays_are_made_on_a_context(call):
    called = f"mx.np.{call}"
    separator = "" if called.endswith("()") else ", "
    with pytest.warns(DeprecationWarning, match="`ctx`.*`device`"):
        found = eval(f"{called[:-1]}{separator}ctx=mx.cpu(1))")
    assert found.device == mx.cpu(1)


def test_both_names_of_a_device_are_refused():
    with pytest.raises(TypeError, match="multiple values for argument 'device'"):
        mx.np.zeros(2, device=mx.cpu(), ctx=mx.cpu())
    with pytest.raises(TypeError, match="unexpected keyword argument 'ctx'"):
        mx.np.sin(mx.np.zeros(2), ctx=mx.cpu())


def test_children_are_called_for_themselves():
    class Chain(gluon.Block):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Dense(3), nn.Dense(2)

        def forward(self, x):
            for child in self._children.values():
                x = child()(x)
            return x

    net = Chain()
    net.initialize()
    assert net(mx.np.ones((1, 2))).shape == (1, 2)

    class Constant(gluon.HybridBlock):
        def forward(self):
            return mx.np.ones(1)

    assert Constant()().tolist() == [1]
    with pytest.raises(AttributeError, match=r"no attribute 'rellu'$"):
        _ = npx.rellu


def test_star_import_gives_what_test_files_use():
    names = {}
    exec("from mxnet.test_utils import *", names)
    assert names["mx"] is mx
    assert names["np"] is onp
    assert names["npt"] is onp.testing
    assert (names["os"], names["sys"]) == (os, sys)
    assert names["use_np"] is mx.util.use_np


def test_base_has_the_small_names(monkeypatch):
    base = mx.base
    assert base.py_str("ä".encode()) == "ä"
    assert base._as_list(3) == [3]
    assert base._as_list((1, 2)) == (1, 2)
    assert isinstance(onp.int64(3), base.integer_types)
    assert not isinstance(3.0, base.integer_types)
    assert isinstance(onp.float32(3), base.numeric_types)
    assert not isinstance("3", base.numeric_types)
    assert isinstance("3", base.string_types)
    monkeypatch.setenv("MXNET_HOME", "somewhere")
    assert base.data_dir() == "somewhere"
    monkeypatch.delenv("MXNET_HOME")
    assert base.data_dir().endswith("mxnet")


def test_device_types_have_numbers():
    assert mx.Device.devtype2str == {1: "cpu", 2: "gpu", 3: "cpu_pinned", 5: "cpu_shared"}
    assert all(mx.Device.devtype2str[mx.Device.devstr2type[name]] == name for name in mx.Device.devstr2type)
    assert all(mx.Device(name, 0).device_type == name for name in mx.Device.devstr2type)


@pytest.mark.parametrize(
    ("module", "name"),
    [(module, name) for module, names in _renamed.REMOVED.items() if module != "mxnet" for name in names],
)
def test_removed_names_of_modules_say_what_to_use(module, name):
    found = importlib.import_module(module)
    with pytest.raises(AttributeError, match=rf"'{module}' has no attribute '{name}': it was removed; .+"):
        getattr(found, name)
    assert name not in found.__all__


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("gluon.block", "SymbolBlock"),
        ("gluon.nn", "SymbolBlock"),
        ("gluon.nn.basic_layers", "BatchNorm HybridSequential LayerNorm"),
        ("gluon.nn.conv_layers", "MaxPool2D GlobalAvgPool2D PixelShuffle2D"),
        ("gluon.rnn.rnn_cell", "LSTMPCell SequentialRNNCell ZoneoutCell"),
        ("gluon.data.vision.datasets", "MNIST ImageFolderDataset"),
        ("gluon.contrib.estimator.event_handler", "CheckpointHandler"),
    ],
)
def test_modules_give_names_that_mxnet_2_kept_in_them(module, names):
    found = importlib.import_module(f"mxnet.{module}")
    for name in names.split():
        assert getattr(found, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = found.Nothing


def test_test_utils_give_what_test_files_take_from_them():
    taken = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec("from mxnet.test_utils import *", taken)
    assert {"mx", "np", "npx", "os", "sys", "use_np", "default_device", "rand_ndarray"} <= set(taken)
    with pytest.warns(DeprecationWarning, match="`default_context` is deprecated; use `default_device`"):
        assert taken["default_context"]() == mx.test_utils.default_device()


def test_registers_find_classes_by_name():
    class Shape:
        def __init__(self, size=1):
            self.size = size

    register, create = mx.registry.get_register_func(Shape, "shape"), mx.registry.get_create_func(Shape, "shape")
    with pytest.raises(ValueError, match="no shape 'square'; known are none"):
        create("square")

    @mx.registry.get_alias_func(Shape, "shape")("quadrat", "box")
    @register
    class Square(Shape):
        pass

    assert mx.registry.get_registry(Shape) == {"square": Square, "quadrat": Square, "box": Square}
    for made in (
        create("SQUARE", 3),
        create(shape="box", size=3),
        create({"shape": "quadrat", "size": 3}),
        create('["square", {"size": 3}]'),
        create('{"shape": "square", "size": 3}'),
    ):
        assert type(made) is Square
        assert made.size == 3
        assert create(made) is made
    with pytest.raises(TypeError, match="arguments beside"):
        create(made, size=2)
    with pytest.raises(TypeError, match="shape: a name is missing; in a mapping its key is 'shape', found"):
        create(size=2)
    with pytest.raises(TypeError, match="must be a subclass of Shape"):
        register(int)
    with pytest.warns(UserWarning, match="shape 'square' was"):
        register(type("Other", (Shape,), {}), "square")


def test_loggers_write_one_line_a_message(tmp_path):
    path = tmp_path / "training.log"
    logger = mx.log.get_logger("mxnet-test-log", path, level=mx.log.INFO)
    try:
        logger.debug("hidden")
        logger.info("epoch %d", 3)
        assert mx.log.get_logger("mxnet-test-log") is logger
        with pytest.warns(DeprecationWarning, match="get_logger"):
            assert mx.log.getLogger("mxnet-test-log") is logger
        (handler,) = logger.handlers
        handler.flush()
    finally:
        for handler in list(logger.handlers):
            logger.removeHandler(handler)
            handler.close()
    (line,) = path.read_text().splitlines()
    assert re.fullmatch(r"I\d{4} \d\d:\d\d:\d\d \d+ .*test_renamed.py:test_loggers\w+:\d+\] epoch 3", line)


@pytest.mark.parametrize(
    "statement",
    [
        "import mxnet.ndarray as nd",
        "from mxnet import nd",
        "from mxnet.symbol import Symbol",
        "from mxnet import metric",
    ],
)
def test_imports_of_removed_modules_say_what_to_use(statement):
    # Asking whether a module can be imported raises nothing.
    assert importlib.util.find_spec("mxnet.nd") is not None and importlib.util.find_spec("mxnet.nonsense") is None
    with pytest.raises(ImportError, match=r"no module named 'mxnet\.\w+': it was removed; .*`mx\."):
        exec(statement)


def test_imports_of_names_that_never_were_raise_import_error():
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'mxnet\.nothing'$"):
        importlib.import_module("mxnet.nothing")
    with pytest.raises(ImportError, match="cannot import name 'nothing' from 'mxnet'"):
        exec("from mxnet import nothing")
    assert not hasattr(mx, "nd")


def test_batches_of_processes_are_those_of_threads():
    with pytest.warns(DeprecationWarning, match="default_mp_batchify_fn` is deprecated; use `default_batchify_fn"):
        from mxnet.gluon.data.dataloader import default_mp_batchify_fn
    assert default_mp_batchify_fn is gluon.data.dataloader.default_batchify_fn
