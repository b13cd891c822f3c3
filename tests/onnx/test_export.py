"""`export_model`: sources, names, files, and errors."""

import json
import subprocess
import sys

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import mxnet as mx
import onnx_oracle
from mxnet import error, gluon, npx
from mxnet import np as mnp
from mxnet.gluon import nn


def data(*shape, dtype="float32"):
    return mnp.array(np.random.default_rng(sum(shape)).normal(size=shape).astype("float32")).astype(dtype)


@pytest.fixture
def net():
    made = nn.HybridSequential()
    made.add(nn.Dense(4, activation="relu"), nn.BatchNorm(), nn.Dense(2))
    made.initialize()
    made.hybridize()
    made(data(2, 3))
    return made


def results(path, *arrays):
    return onnx_oracle.run(path, arrays)[0]


def close(found, want):
    np.testing.assert_allclose(found, want.asnumpy(), 1e-6, 1e-6)


def test_paths_of_exported_files(net, tmp_path):
    symbol, params = net.export(tmp_path / "net")
    for i, given in enumerate((params, None, mx.npx.load(params))):
        path = tmp_path / f"{i}.onnx"
        assert mx.onnx.export_model(symbol, given, [(5, 3)], np.float32, path) == str(path)
        close(results(path, data(5, 3))[0], net(data(5, 3)))
        assert [x.name for x in onnx.load(path).graph.input] == ["data"]


def test_graph_and_block_that_were_read(net, tmp_path):
    symbol, _ = net.export(tmp_path / "net")
    mx.onnx.export_model(mx.graph.load(symbol), onnx_file_path=tmp_path / "graph.onnx", dynamic=True)
    close(results(tmp_path / "graph.onnx", data(7, 3))[0], net(data(7, 3)))
    block = gluon.SymbolBlock.imports(symbol, ["features"])
    block.collect_params()["2.bias"].set_data(mnp.array([1.0, 2.0]))
    mx.onnx.export_model(block, onnx_file_path=tmp_path / "block.onnx", in_shapes=[(2, 3)])
    close(results(tmp_path / "block.onnx", data(2, 3))[0], net(data(2, 3)) + mnp.array([1.0, 2.0]))
    assert [x.name for x in onnx.load(tmp_path / "block.onnx").graph.input] == ["features"]


def test_graph_of_one_size_with_operators_that_passes_made(tmp_path):
    class Fixed(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.layers = nn.HybridSequential()
            self.layers.add(nn.Conv2D(4, 3), nn.BatchNorm(), nn.Activation("relu"), nn.Conv2D(4, 1, activation="relu"))
            self.out = nn.Dense(5, activation="relu")

        def forward(self, x, *, factor):
            return self.out(self.layers(x)) * factor

    net = Fixed()
    net.initialize(mx.init.Normal(0.5))
    net.hybridize()
    x, factor = data(2, 3, 6, 6), data(1)
    want = net(x, factor=factor)
    symbol, _ = net.export(tmp_path / "net")
    operators = {node["op"] for node in json.loads((tmp_path / "net-symbol.json").read_text())["nodes"]}
    assert {"convolution_batch_norm", "convolution_relu", "fully_connected_relu"} & operators
    mx.onnx.export_model(symbol, onnx_file_path=tmp_path / "file.onnx")
    close(results(tmp_path / "file.onnx", x, factor)[0], want)
    mx.onnx.export_model(net, onnx_file_path=tmp_path / "net.onnx")
    assert "BatchNormalization" in {node.op_type for node in onnx.load(tmp_path / "net.onnx").graph.node}
    close(results(tmp_path / "net.onnx", x, factor)[0], want)


def test_shapes_of_arguments_replace_a_call(tmp_path):
    net = nn.Embedding(10, 4)
    net.initialize()
    net.hybridize()
    mx.onnx.export_model(net, None, [(2, 3)], "int32", tmp_path / "x.onnx")
    tokens = mnp.array([[1, 2, 3], [9, 0, 4]], dtype="int32")
    close(results(tmp_path / "x.onnx", tokens)[0], net(tokens))


def test_older_names_of_arguments_warn(net, tmp_path):
    with pytest.warns(DeprecationWarning, match="use 'in_shapes'"):
        mx.onnx.export_model(net, onnx_file_path=tmp_path / "x.onnx", input_shape=[(4, 3)])
    close(results(tmp_path / "x.onnx", data(4, 3))[0], net(data(4, 3)))
    with pytest.warns(DeprecationWarning, match="use 'in_types'"):
        mx.onnx.export_model(net, onnx_file_path=tmp_path / "x.onnx", input_type="float32")


class Results(gluon.HybridBlock):
    def forward(self, x):
        return {"twice": x * 2, "parts": (x + 1, [x, x])}


def test_names_of_nested_results_and_results_that_are_arguments(tmp_path):
    net = Results()
    net.hybridize()
    x = data(2, 3)
    net(x)
    model = onnx_oracle.export(net, tmp_path / "x.onnx")
    assert [y.name for y in model.graph.output] == ["twice", "parts_0", "parts_1_0", "parts_1_1"]
    found = results(tmp_path / "x.onnx", x)
    for y, want in zip(found, (x * 2, x + 1, x, x), strict=True):
        close(y, want)


def test_hostile_names(tmp_path):
    class Hostile(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            for name in ("x", "output", "Add_1", "constant_1", "a b", "z/../z", "data"):
                self.register_parameter(name, gluon.Parameter(name, shape=(2,), init="ones"))

        def register_parameter(self, name, parameter):
            self._reg_params[name] = parameter

        def forward(self, x):
            for number, parameter in enumerate(self._reg_params.values()):
                x = x + parameter.data() * number
            return x

    net = Hostile()
    net.initialize()
    net.hybridize()
    x = data(3, 2)
    want = net(x)
    model = onnx_oracle.export(net, tmp_path / "x.onnx")
    close(results(tmp_path / "x.onnx", x)[0], want)
    names = [*(t.name for t in model.graph.initializer), model.graph.input[0].name, model.graph.output[0].name]
    assert len(set(names)) == len(names)


def test_large_model_has_its_elements_in_another_file(tmp_path):
    net = nn.Dense(40, in_units=100)
    net.initialize()
    net.hybridize()
    x = data(2, 100)
    want = net(x)
    path = tmp_path / "large.onnx"
    mx.onnx.export_model(net, onnx_file_path=path, large_model=True)
    assert path.stat().st_size < 4000
    assert (tmp_path / "large.onnx.data").stat().st_size == 16000
    assert sorted(x.name for x in tmp_path.iterdir()) == ["large.onnx", "large.onnx.data"]
    close(results(path, x)[0], want)


def test_file_is_replaced_whole_or_not_at_all(net, tmp_path):
    path = tmp_path / "net.onnx"
    path.write_text("before")

    class Refused(gluon.HybridBlock):
        def forward(self, x):
            return mnp.linalg.inv(x)

    refused = Refused()
    refused.hybridize()
    refused(mnp.eye(2))
    with pytest.raises(error.UnsupportedError):
        mx.onnx.export_model(refused, onnx_file_path=path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
    mx.onnx.export_model(net, onnx_file_path=path)
    onnx.checker.check_model(str(path))
    with pytest.raises(OSError):
        mx.onnx.export_model(net, onnx_file_path=tmp_path / "no" / "net.onnx")


def test_verbose_and_shapes_of_values(net, tmp_path, capsys):
    mx.onnx.export_model(net, onnx_file_path=tmp_path / "x.onnx", verbose=True, run_shape_inference=True)
    assert "Gemm" in capsys.readouterr().out
    model = onnx.load(tmp_path / "x.onnx")
    assert len(model.graph.value_info) >= 3
    assert (model.producer_name, model.producer_version) == ("mxnet", mx.__version__)
    assert model.opset_import[0].version == 21


def test_bfloat16_network_has_opset_22(tmp_path):
    net = nn.HybridSequential()
    net.add(nn.Conv1D(3, 3), nn.Activation("relu"), nn.Flatten(), nn.Dense(2))
    net.initialize()
    net.cast("bfloat16")
    net.hybridize()
    x = data(2, 3, 6, dtype="bfloat16")
    want = net(x)
    model = onnx_oracle.export(net, tmp_path / "x.onnx")
    assert model.opset_import[0].version == 22
    found = ReferenceEvaluator(model).run(None, {"x": onnx_oracle.host(x)})[0]
    assert found.dtype == ml_dtypes.bfloat16
    np.testing.assert_allclose(found.astype("f4"), want.astype("float32").asnumpy(), 0.05, 0.02)


def test_float16_network(tmp_path):
    net = nn.Dense(3, in_units=4)
    net.initialize()
    net.cast("float16")
    net.hybridize()
    x = data(2, 4, dtype="float16")
    want = net(x)
    onnx_oracle.export(net, tmp_path / "x.onnx")
    found = results(tmp_path / "x.onnx", x)[0]
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, want.asnumpy(), 2e-3, 2e-3)


def test_mixed_precision_is_exported(tmp_path):
    net = mx.amp.convert_hybrid_block(nn.Dense(3, in_units=4, activation="sigmoid"), "float16")
    net.initialize()
    net.hybridize()
    x = data(2, 4)
    want = net(x)
    model = onnx_oracle.export(net, tmp_path / "x.onnx")
    assert "Cast" in {node.op_type for node in model.graph.node}
    np.testing.assert_allclose(results(tmp_path / "x.onnx", x)[0], want.asnumpy(), 2e-3, 2e-3)


def test_dropout_is_not_in_the_model(tmp_path):
    net = nn.HybridSequential()
    net.add(nn.Dense(3, in_units=4), nn.Dropout(0.5))
    net.initialize()
    net.hybridize()
    net(data(2, 4))
    model = onnx_oracle.export(net, tmp_path / "x.onnx")
    assert [node.op_type for node in model.graph.node] == ["Gemm"]


# Errors.


class Inverse(gluon.HybridBlock):
    def forward(self, x):
        return mnp.linalg.inv(x @ x.T)


def test_error_names_operator_line_and_alternative(tmp_path):
    net = Inverse()
    net.hybridize()
    net(data(2, 2))
    with pytest.raises(error.UnsupportedError) as caught:
        mx.onnx.export_model(net, onnx_file_path=tmp_path / "x.onnx")
    text = str(caught.value)
    assert text.startswith("export_model: `inv`: ONNX has no factorisations of matrices")
    assert f"{__file__}:" in text
    assert "hint: compute it before or after the exported network" in text


def refusal(function, *arrays, match):
    net, _ = onnx_oracle.traced(function, arrays)
    with pytest.raises(error.UnsupportedError, match=match):
        mx.onnx.export_model(net, onnx_file_path="/nonexistent/x.onnx")


def write(x):
    x += 1
    return x * 2


def test_refused_functions():
    refusal(lambda x: mnp.fft.fft(x), data(4), match="no operators for complex64")
    refusal(write, data(4), match="writes to its argument or array `arrays_0`")
    refusal(lambda x: npx.gammaln(x), data(4), match="`gammaln`: ONNX has no operator for this function")


@pytest.mark.parametrize(
    ("options", "kind", "match"),
    [
        ({"in_shapes": [(2, 3)], "in_types": ["float32", "int32"]}, ValueError, "1 shapes in `in_shapes` and 2 dtypes"),
        ({"dynamic_input_shapes": [(None, 3)]}, ValueError, "needs `dynamic=True`"),
        ({"dynamic": True, "dynamic_input_shapes": [(None, 4)]}, ValueError, r"has \(None, 4\) for argument 0"),
        ({"dynamic": True, "dynamic_input_shapes": [(None,)]}, ValueError, r"has \(None,\) for argument 0"),
        ({"dynamic": True, "dynamic_input_shapes": [(2, 3), (2,)]}, ValueError, "takes 1 arrays, found 2 entries"),
        ({"params": {}}, TypeError, "has its own parameters"),
    ],
)
def test_wrong_arguments(net, options, kind, match, tmp_path):
    with pytest.raises(kind, match=match):
        mx.onnx.export_model(net, onnx_file_path=tmp_path / "x.onnx", **options)
    assert not list(tmp_path.iterdir())


def test_wrong_shapes_of_a_graph_are_named(net, tmp_path):
    symbol, _ = net.export(tmp_path / "net")
    with pytest.raises(ValueError, match=r"argument 0 must have shape \(any, 3\), found \(2, 4\)"):
        mx.onnx.export_model(symbol, None, [(2, 4)], onnx_file_path=tmp_path / "x.onnx")
    with pytest.raises(ValueError, match="argument 0 must be float32, found int32"):
        mx.onnx.export_model(symbol, None, [(2, 3)], "int32", tmp_path / "x.onnx")
    with pytest.raises(ValueError, match="takes 1 arrays, found 2 shapes"):
        mx.onnx.export_model(symbol, None, [(2, 3), (2, 3)], onnx_file_path=tmp_path / "x.onnx")
    with pytest.raises(ValueError, match="axis 1 of argument 0 has length 3, found any length"):
        mx.onnx.export_model(symbol, dynamic=True, dynamic_input_shapes=[(None, None)])
    with pytest.raises(FileNotFoundError):
        mx.onnx.export_model(str(tmp_path / "none-symbol.json"))
    with pytest.raises(TypeError, match="`sym` must be a HybridBlock, a graph or the path of one, found 'int'"):
        mx.onnx.export_model(3)


def test_network_must_be_hybridized_and_called():
    net = nn.Dense(2)
    net.initialize()
    with pytest.raises(RuntimeError, match="call `hybridize"):
        mx.onnx.export_model(net)
    net.hybridize()
    with pytest.raises(RuntimeError, match="then the block once"):
        mx.onnx.export_model(net)


def test_operators_that_are_supported():
    names = mx.onnx.get_operator_support()
    assert names == sorted(names) == mx.onnx.get_operator_support(24)
    assert {"convolution", "rnn_layer", "topk_rows"} <= set(names)
    with pytest.raises(ValueError, match="have opset 21, found 13"):
        mx.onnx.get_operator_support(13)


PROGRAM = """
import sys
import mxnet as mx
from mxnet import onnx
assert "onnx" not in sys.modules
sys.modules["onnx"] = None
net = mx.gluon.nn.Dense(2, in_units=3)
net.initialize()
net.hybridize()
net(mx.np.ones((1, 3)))
try:
    mx.onnx.export_model(net)
except ImportError as error:
    print(error)
"""


def test_package_is_imported_at_first_use():
    found = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert found.stdout.startswith("export_model: needs the Python package `onnx` 1.19 or later")
    assert "hint: pip install 'mxnet[onnx]'" in found.stdout
