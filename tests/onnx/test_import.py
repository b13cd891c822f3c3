"""What an imported model is: a block with parameters that predicts, trains, hybridizes, is exported and saved."""

import copy
import io
import pickle
import sys

import numpy
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import mxnet as mx
from mxnet import autograd, gluon, np
from mxnet.error import FileFormatError, UnsupportedError

RANDOM = numpy.random.default_rng(0)
CLASSIFIER = """
    <ir_version: 8, opset_import: ["": 17], producer_name: "tests", producer_version: "1">
    classifier (float[n, 1, 8, 8] images) => (float[n, 3] scores)
    <int64[2] flat = {0, -1}, int64[1] first = {0}>
    {
        c = Conv <pads = [1, 1, 1, 1]> (images, conv.weight, conv.bias)
        b = BatchNormalization <momentum = 0.75> (c, bn.scale, bn.bias, bn.mean, bn.var)
        r = Relu (b)
        p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (r)
        size = Shape (p)
        n = Slice (size, first, one)
        shape = Concat <axis = 0> (n, rest)
        f = Reshape (p, shape)
        scores = Gemm <transB = 1> (f, /fc/weight, /fc/bias)
    }
"""


def parameters_of_classifier():
    generator = numpy.random.default_rng(1)
    normal = lambda *shape: generator.normal(size=shape).astype("float32")  # noqa: E731
    return {
        "conv.weight": normal(4, 1, 3, 3),
        "conv.bias": normal(4),
        "bn.scale": normal(4),
        "bn.bias": normal(4),
        "bn.mean": normal(4),
        "bn.var": normal(4) ** 2 + 1,
        "/fc/weight": normal(3, 64) / 8,
        "/fc/bias": normal(3),
        "one": numpy.array([1]),
        "rest": numpy.array([-1]),
    }


def classifier():
    """A convolutional network that flattens its features by arithmetic with shapes, as exporters write it."""
    model = onnx.ModelProto()
    # The parser has no names with dots and slashes.
    names = {"conv.weight": "w0", "conv.bias": "w1", "bn.scale": "w2", "bn.bias": "w3", "bn.mean": "w4", "bn.var": "w5"}
    names |= {"/fc/weight": "w6", "/fc/bias": "w7"}
    text = CLASSIFIER
    for name, plain in names.items():
        text = text.replace(name, plain)
    model.CopyFrom(onnx.parser.parse_model(text))
    plain = {plain: name for name, plain in names.items()}
    for node in model.graph.node:
        node.input[:] = [plain.get(name, name) for name in node.input]
    del model.graph.initializer[0]  # `flat`, which no node reads
    for name, array in parameters_of_classifier().items():
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    return model


def runtime(model, *arrays):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {i.name: x for i, x in zip(session.get_inputs(), arrays, strict=True)})


def images(n):
    return numpy.random.default_rng(n).normal(size=(n, 1, 8, 8)).astype("float32")


def test_a_model_predicts_what_the_runtime_predicts_for_any_number_of_samples():
    net = mx.onnx.import_to_gluon(classifier())
    for is_hybrid in (False, True):
        net.hybridize(is_hybrid)
        for n in (1, 3):
            (expected,) = runtime(classifier(), images(n))
            numpy.testing.assert_allclose(net(np.array(images(n))).asnumpy(), expected, rtol=1e-5, atol=1e-5)


def test_initializers_are_parameters_and_shapes_are_constants():
    net = mx.onnx.import_to_gluon(classifier())
    found = net.collect_params()
    given = parameters_of_classifier()
    assert isinstance(net, gluon.HybridBlock)
    assert (net.input_names, net.output_names) == (("images",), ("scores",))
    assert set(found) == {*given} - {"one"}  # the end of `Slice`; `rest` is joined with a shape, and may be anything
    for name, parameter in found.items():
        numpy.testing.assert_array_equal(parameter.data().asnumpy(), given[name])
        fixed = name in ("bn.mean", "bn.var", "rest")
        assert parameter.grad_req == ("null" if fixed else "write"), name


def test_all_kinds_of_sources_give_the_same_network(tmp_path):
    model = classifier()
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    content = model.SerializeToString()
    x = np.array(images(2))
    expected = mx.onnx.import_to_gluon(model)(x).asnumpy()
    for source in (path, str(path), content, bytearray(content), io.BytesIO(content)):
        assert mx.onnx.import_to_gluon(source)(x).asnumpy().tobytes() == expected.tobytes()
    assert not model.graph.node[0].HasField("doc_string")
    with pytest.raises(TypeError, match="found 'int'"):
        mx.onnx.import_to_gluon(3)
    with pytest.raises(TypeError, match="open for bytes"):
        mx.onnx.import_to_gluon(io.StringIO("text"))
    with pytest.raises(FileNotFoundError):
        mx.onnx.import_to_gluon(tmp_path / "absent.onnx")


def test_the_device_of_the_parameters_is_chosen():
    net = mx.onnx.import_to_gluon(classifier(), device=mx.cpu(1))
    assert {p.list_device()[0] for p in net.collect_params().values()} == {mx.cpu(1)}
    x = np.array(images(2), device=mx.cpu(1))
    found = net(x)
    assert found.device == mx.cpu(1)
    numpy.testing.assert_allclose(found.asnumpy(), runtime(classifier(), images(2))[0], rtol=1e-5, atol=1e-5)


def test_the_older_name_of_the_device_warns():
    with pytest.warns(DeprecationWarning, match="device"):
        net = mx.onnx.import_to_gluon(classifier(), ctx=mx.cpu(1))
    assert {p.list_device()[0] for p in net.collect_params().values()} == {mx.cpu(1)}


def test_an_imported_network_is_fine_tuned():
    net = mx.onnx.import_to_gluon(classifier())
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
    loss_function = gluon.loss.SoftmaxCrossEntropyLoss()
    x, label = np.array(images(12)), np.arange(12) % 3
    mean = net.collect_params()["bn.mean"].data().asnumpy()
    losses = []
    for _ in range(30):
        with autograd.record():
            loss = loss_function(net(x), label).mean()
        loss.backward()
        trainer.step(1)
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]
    assert (net.collect_params()["bn.mean"].data().asnumpy() != mean).all()  # running statistics moved


def test_running_statistics_move_by_the_momentum_of_the_model():
    net = mx.onnx.import_to_gluon(classifier())
    found, given = net.collect_params(), parameters_of_classifier()
    x = np.array(images(5))
    before = mx.npx.convolution(x, found["conv.weight"].data(), found["conv.bias"].data(), pad=(1, 1)).asnumpy()
    with autograd.record():
        net(x)
    expected = 0.75 * given["bn.mean"] + 0.25 * before.mean((0, 2, 3))
    numpy.testing.assert_allclose(found["bn.mean"].data().asnumpy(), expected, rtol=1e-5)


def test_gradients_are_those_of_the_formula():
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["": 17]>
        linear (float[n, 2] x) => (float[n, 3] y)
        <float[2, 3] w = {1, 2, 3, 4, 5, 6}, float[3] b = {1, 1, 1}> { p = MatMul (x, w)  y = Add (p, b) }
    """)
    net = mx.onnx.import_to_gluon(model)
    x = numpy.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], dtype="float32")
    with autograd.record():
        y = net(np.array(x))
    y.backward()
    found = net.collect_params()
    numpy.testing.assert_array_equal(found["w"].grad().asnumpy(), numpy.repeat(x.sum(0)[:, None], 3, axis=1))
    numpy.testing.assert_array_equal(found["b"].grad().asnumpy(), [3, 3, 3])


def test_parameters_are_saved_and_loaded_under_their_names(tmp_path):
    net, other = (mx.onnx.import_to_gluon(classifier()) for _ in range(2))
    x = np.array(images(2))
    for parameter in other.collect_params().values():
        parameter.set_data(parameter.data() * (1 if parameter.name == "rest" else 2))
    net.save_parameters(tmp_path / "net.params")
    assert (other(x) != net(x)).any()
    other.load_parameters(tmp_path / "net.params")
    assert other(x).asnumpy().tobytes() == net(x).asnumpy().tobytes()


def test_an_imported_network_is_exported_for_any_number_of_samples(tmp_path):
    net = mx.onnx.import_to_gluon(classifier())
    net.hybridize()
    net(np.array(images(2)))
    symbol_file, param_file = net.export(tmp_path / "net")
    block = gluon.SymbolBlock.imports(symbol_file, ["images"], param_file)
    for n in (2, 5):
        x = np.array(images(n))
        assert block(x).asnumpy().tobytes() == net(x).asnumpy().tobytes()


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))], ids=["copy", "pickle"]
)
def test_copies_have_parameters_of_their_own(duplicate):
    net = mx.onnx.import_to_gluon(classifier())
    x = np.array(images(2))
    expected = net(x).asnumpy()
    other = duplicate(net)
    for parameter in net.collect_params().values():
        parameter.set_data(parameter.data() * 0 - 1)
    assert other(x).asnumpy().tobytes() == expected.tobytes()


def test_a_network_is_converted_to_another_dtype():
    net = mx.onnx.import_to_gluon(classifier())
    net.collect_params()["rest"].data()
    for parameter in net.collect_params().values():
        if parameter.dtype == numpy.float32:
            parameter.cast("float64")
    found = net(np.array(images(2).astype("float64")))
    assert found.dtype == numpy.float64
    numpy.testing.assert_allclose(found.asnumpy(), runtime(classifier(), images(2))[0], rtol=1e-5, atol=1e-5)


def test_numbers_that_decide_about_shapes_are_read_at_each_call():
    net = mx.onnx.import_to_gluon(classifier())
    net.hybridize()
    x = np.array(images(2))
    assert net(x).shape == (2, 3)
    net.collect_params()["rest"].set_data(np.array([64]))
    assert net(x).shape == (2, 3)
    net.collect_params()["rest"].set_data(np.array([63]))
    with pytest.raises(ValueError, match="63"):
        net(x)


# ---- control flow and functions ----

CONDITION = """
    <ir_version: 8, opset_import: ["": 17]>
    chosen (float[n] x) => (float[n] y)
    {
        total = ReduceSum <keepdims = 0> (x)
        zero = Constant <value_float = 0.0> ()
        is_positive = Greater (total, zero)
        y = If (is_positive) <
            then_branch = doubled () => (float[n] a) { a = Add (x, x) },
            else_branch = negated () => (float[n] b) { b = Neg (x) }
        >
    }
"""


def test_a_condition_on_arguments_is_compiled():
    net = mx.onnx.import_to_gluon(onnx.parser.parse_model(CONDITION))
    for is_hybrid in (False, True):
        net.hybridize(is_hybrid)
        for sign in (1, -1):
            x = np.array([1.0, 2.0]) * sign
            x.attach_grad()
            with autograd.record():
                y = net(x)
            y.backward()
            assert y.asnumpy().tolist() == ([2, 4] if sign > 0 else [1, 2])
            assert x.grad.asnumpy().tolist() == ([2, 2] if sign > 0 else [-1, -1])


LOOP = """
    <ir_version: 8, opset_import: ["": 17]>
    powers (float[1] x) => (float[1] y)
    <int64 most = {8}, bool yes = {1}>
    {
        y = Loop (most, yes, x) <body = doubled (int64 i, bool goes_on, float[1] a) => (bool again, float[1] b) {
            b = Add (a, a)
            limit = Constant <value_floats = [20.0]> ()
            less = Less (b, limit)
            again = Squeeze (less)
        }>
    }
"""


def test_a_loop_that_ends_by_a_value_is_compiled():
    net = mx.onnx.import_to_gluon(onnx.parser.parse_model(LOOP))
    for is_hybrid in (False, True):
        net.hybridize(is_hybrid)
        assert net(np.array([3.0])).asnumpy().tolist() == [24]
        assert net(np.array([0.01])).asnumpy().tolist() == pytest.approx([2.56])


def test_a_loop_without_a_largest_number_of_steps_runs_eagerly():
    text = LOOP.replace("int64 most = {8}", "int64 most = {9223372036854775807}")
    net = mx.onnx.import_to_gluon(onnx.parser.parse_model(text))
    assert net(np.array([3.0])).asnumpy().tolist() == [24]
    net.hybridize()
    with pytest.raises(UnsupportedError, match=r"steps up to 10000, found 9223372036854775806"):
        net(np.array([3.0]))


def test_functions_of_the_model_are_called_with_their_attributes():
    model = onnx.parser.parse_model("""
        <ir_version: 9, opset_import: ["": 17, "own": 1]>
        outer (float[n] x) => (float[n] y, float[n] z) { y = own.scaled <by = 3.0> (x)  z = own.scaled (x) }
        <domain: "own", opset_import: ["": 17]>
        scaled <by: float = 10.0> (v) => (w) { factor = Constant <value_float: float = @by> ()  w = Mul (v, factor) }
    """)
    y, z = mx.onnx.import_to_gluon(model)(np.array([1.0, 2.0]))
    assert y.asnumpy().tolist() == [3, 6]
    assert z.asnumpy().tolist() == [10, 20]


def test_a_function_that_calls_itself_is_refused():
    model = onnx.parser.parse_model("""
        <ir_version: 9, opset_import: ["": 17, "own": 1]>
        outer (float[n] x) => (float[n] y) { y = own.again (x) }
        <domain: "own", opset_import: ["": 17, "own": 1]>
        again (v) => (w) { w = own.again (v) }
    """)
    with pytest.raises(FileFormatError, match=r"`own.again` calls itself"):
        mx.onnx.import_to_gluon(model)


@pytest.mark.parametrize(
    ("num_functions", "num_calls", "problem"), [(80, 1, "64 deep"), (10, 10, "more than 200000 nodes")]
)
def test_functions_that_multiply_are_refused(num_functions, num_calls, problem):
    text = """<ir_version: 9, opset_import: ["": 17, "own": 1]>
        outer (float[n] x) => (float[n] y) { y = own.f0 (x) }
    """
    for i in range(num_functions):
        name = f"own.f{i + 1}" if i + 1 < num_functions else "Neg"
        calls = "  ".join(f"a{j + 1} = {name} (a{j})" for j in range(num_calls))
        text += f'<domain: "own", opset_import: ["": 17, "own": 1]> f{i} (a0) => (a{num_calls}) {{ {calls} }}\n'
    with pytest.raises(FileFormatError, match=problem):
        mx.onnx.import_to_gluon(onnx.parser.parse_model(text))


def test_shapes_that_depend_on_values_run_eagerly_and_are_refused_in_a_trace():
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["": 17]>
        reshaped (float[n] x, int64[k] shape) => (float y) { y = Reshape (x, shape) }
    """)
    net = mx.onnx.import_to_gluon(model)
    x, shape = np.arange(6.0), np.array([2, 3])
    assert net(x, shape).shape == (2, 3)
    net.hybridize()
    with pytest.raises(UnsupportedError, match=r"node `y` \(ai.onnx.Reshape, opset 17\).*not hybridized"):
        net(x, shape)


def test_dropout_is_active_in_training_only():
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["": 17]>
        dropped (float[n] x) => (float[n] y) <float half = {0.5}> { y = Dropout (x, half) }
    """)
    net = mx.onnx.import_to_gluon(model)
    x = np.ones(1000)
    for is_hybrid in (False, True):
        net.hybridize(is_hybrid)
        assert (net(x) == 1).all()
        with autograd.record():
            y = net(x).asnumpy()
        assert set(y.tolist()) == {0, 2}
        assert 300 < (y == 0).sum() < 700


# ---- metadata ----


def test_metadata_describe_inputs_and_outputs():
    model = classifier()
    model.metadata_props.add(key="task", value="digits")
    found = mx.onnx.get_model_metadata(model)
    assert found == {
        "input_tensor_data": [("images", ("n", 1, 8, 8))],
        "output_tensor_data": [("scores", ("n", 3))],
        "input_dtypes": {"images": "float32"},
        "output_dtypes": {"scores": "float32"},
        "opset": {"ai.onnx": 17},
        "producer": "tests 1",
        "ir_version": 8,
        "metadata": {"task": "digits"},
    }


# ---- what is refused ----


def test_operators_that_are_missing_are_listed():
    graph = helper.make_graph(
        [
            helper.make_node("Mystery", ["x"], ["a"], name="first", domain="com.example"),
            helper.make_node("Enigma", ["a"], ["y"], name="second", domain="com.example"),
        ],
        "missing",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.example", 3)]
    with pytest.raises(UnsupportedError) as caught:
        mx.onnx.import_to_gluon(helper.make_model(graph, opset_imports=opsets))
    for part in ("2 operators", "`first` (com.example.Mystery, opset 3)", "`second` (com.example.Enigma, opset 3)"):
        assert part in str(caught.value)


def test_types_without_arrays_are_refused():
    info = helper.make_tensor_value_info("x", TensorProto.STRING, [1])
    node = helper.make_node("Identity", ["x"], ["y"])
    graph = helper.make_graph([node], "g", [info], [helper.make_tensor_value_info("y", TensorProto.STRING, [1])])
    with pytest.raises(UnsupportedError, match="`x` is of string"):
        mx.onnx.import_to_gluon(helper.make_model(graph))


def test_the_number_of_arguments_is_checked():
    net = mx.onnx.import_to_gluon(classifier())
    with pytest.raises(TypeError, match=r"1 inputs \(images\), found 2"):
        net(np.array(images(1)), np.array(images(1)))


def test_errors_name_the_node():
    with pytest.raises(ValueError) as caught:
        mx.onnx.import_to_gluon(classifier())(np.ones((1, 2, 8, 8)))
    assert any("in node `c` (ai.onnx.Conv, opset 17)" in note for note in caught.value.__notes__)


def test_files_that_are_no_models_are_refused(tmp_path):
    content = classifier().SerializeToString()
    for damaged in (b"", b"\x00", b"no model", content[: len(content) // 2]):
        with pytest.raises(FileFormatError):
            mx.onnx.import_to_gluon(damaged)
    cyclic = classifier()
    cyclic.graph.node[0].input[0] = "scores"
    with pytest.raises(FileFormatError):
        mx.onnx.import_to_gluon(cyclic)
    with pytest.raises(FileFormatError):
        mx.onnx.get_model_metadata(b"no model")


def test_damaged_models_raise_errors_of_python():
    content = classifier().SerializeToString()
    x = np.array(images(1))
    generator = numpy.random.default_rng(5)
    num_refused = 0
    for _ in range(150):
        damaged = bytearray(content)
        for position in generator.integers(0, 600, size=3):  # where the nodes are
            damaged[position] = generator.integers(0, 256)
        try:
            mx.onnx.import_to_gluon(bytes(damaged))(x).wait_to_read()
        except (mx.MXNetError, ValueError, TypeError, ZeroDivisionError, IndexError):
            num_refused += 1
    assert num_refused > 50


# ---- external data ----


def external(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    path = folder / "model.onnx"
    onnx.save(classifier(), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    return path


def test_data_beside_the_model_are_read(tmp_path):
    path = external(tmp_path)
    x = np.array(images(2))
    expected = mx.onnx.import_to_gluon(classifier())(x)
    assert mx.onnx.import_to_gluon(path)(x).asnumpy().tobytes() == expected.asnumpy().tobytes()
    with pytest.raises(FileFormatError, match="give the model's path"):
        mx.onnx.import_to_gluon(path.read_bytes())
    assert mx.onnx.get_model_metadata(path.read_bytes()) == mx.onnx.get_model_metadata(classifier())


def relocated(path, **entries):
    """The model with other entries for the data of one initializer."""
    model = onnx.load(path, load_external_data=False)
    (tensor,) = (tensor for tensor in model.graph.initializer if tensor.name == "conv.weight")
    for entry in tensor.external_data:
        if entry.key in entries:
            entry.value = entries[entry.key]
    path.write_bytes(model.SerializeToString())


@pytest.mark.parametrize(
    "location", ["../secret.bin", "{parent}/secret.bin", "link.bin", "sub/../../secret.bin", "absent.bin", ""]
)
def test_data_outside_of_the_folder_are_not_read(tmp_path, location):
    path = external(tmp_path)
    secret = tmp_path / "secret.bin"
    secret.write_bytes(b"\0" * 10_000)
    (path.parent / "link.bin").symlink_to(secret)
    (path.parent / "sub").mkdir()
    relocated(path, location=location.format(parent=tmp_path))
    with pytest.raises(FileFormatError, match=r"not in the model's folder|does not exist"):
        mx.onnx.import_to_gluon(path)


@pytest.mark.parametrize(
    "entries",
    [{"offset": "99999999"}, {"length": "99999999"}, {"offset": "-4"}, {"length": "x"}, {"length": "8"}],
    ids=str,
)
def test_data_of_another_size_are_refused(tmp_path, entries):
    path = external(tmp_path)
    relocated(path, **entries)
    with pytest.raises(FileFormatError):
        mx.onnx.import_to_gluon(path)


def test_without_the_package_onnx_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    for function in (mx.onnx.import_to_gluon, mx.onnx.get_model_metadata):
        with pytest.raises(ImportError, match=r"pip install 'mxnet\[onnx\]'"):
            function(b"")
