"""Imported models against ONNX Runtime: geometry of windows, lengths of sequences, quantized numbers."""

import numpy
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import mxnet as mx

OPSET = 21
TYPES = {"float32": TensorProto.FLOAT, "int32": TensorProto.INT32, "uint8": TensorProto.UINT8, "int8": TensorProto.INT8,
         "int64": TensorProto.INT64, "float16": TensorProto.FLOAT16, "float64": TensorProto.DOUBLE}  # fmt: skip


def model(op_type, arrays, num_outputs=1, constants=(), domain="", **attributes):
    """A model of one node. The arguments whose index is in `constants` are initializers; None is left out."""
    names = ["" if array is None else f"x{i}" for i, array in enumerate(arrays)]
    inputs, initializers = [], []
    for i, (name, array) in enumerate(zip(names, arrays, strict=True)):
        if array is None:
            continue
        if i in constants:
            initializers.append(numpy_helper.from_array(array, name))
        else:
            shape = [f"n{i}_{axis}" for axis in range(array.ndim)]
            inputs.append(helper.make_tensor_value_info(name, TYPES[array.dtype.name], shape))
    outputs = [f"y{i}" for i in range(num_outputs)]
    node = helper.make_node(op_type, names, outputs, domain=domain, **attributes)
    graph = helper.make_graph(
        [node], "one_node", inputs, [onnx.ValueInfoProto(name=name) for name in outputs], initializers
    )
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", 3)]
    # The types of the outputs are inferred.
    return onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=opsets, ir_version=10))


def normal(*shape, seed=0, dtype="float32"):
    return numpy.random.default_rng(seed).normal(size=shape).astype(dtype)


def integers(low, high, *shape, seed=0, dtype="int8"):
    return numpy.random.default_rng(seed).integers(low, high, size=shape).astype(dtype)


def compare(op_type, arrays, num_outputs=1, constants=(), domain="", ulps=32, **attributes):
    """Eager and hybridized results of one node equal those of ONNX Runtime, up to `ulps` of the largest element."""
    made = model(op_type, arrays, num_outputs, constants, domain, **attributes)
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    given = {f"x{i}": x for i, x in enumerate(arrays) if x is not None and i not in constants}
    expected = session.run(None, given)
    net = mx.onnx.import_to_gluon(made)
    for is_hybrid in (False, True):
        net.hybridize(is_hybrid)
        found = net(*map(mx.np.array, given.values()))
        for one, other in zip(expected, found if num_outputs > 1 else [found], strict=True):
            assert (one.shape, one.dtype) == (other.shape, other.asnumpy().dtype)
            if one.dtype.kind in "iub":
                numpy.testing.assert_array_equal(other.asnumpy(), one)
            else:
                bound = ulps * numpy.finfo(one.dtype).eps * max(numpy.abs(one).max(initial=0), 1)
                numpy.testing.assert_allclose(other.asnumpy(), one, rtol=0, atol=bound)


GEOMETRIES = [
    {},
    {"strides": [2, 3]},
    {"pads": [1, 0, 2, 1]},
    {"pads": [2, 1, 2, 1], "strides": [2, 1]},
    {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
    {"auto_pad": "SAME_LOWER", "strides": [3, 2]},
    {"auto_pad": "VALID"},
    {"dilations": [2, 1], "pads": [2, 0, 1, 1]},
]


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
@pytest.mark.parametrize("group", [1, 2])
def test_convolutions_pad_as_the_model_says(geometry, group):
    x, weight, bias = normal(2, 4, 9, 11), normal(6, 4 // group, 3, 2, seed=1), normal(6, seed=2)
    compare("Conv", [x, weight, bias], constants=(1, 2), group=group, **geometry)


@pytest.mark.parametrize(
    "geometry",
    [*GEOMETRIES, {"output_shape": [7, 7], "strides": [1, 1]}, {"output_padding": [1, 0], "strides": [2, 2]}],
    ids=str,
)
@pytest.mark.parametrize("group", [1, 2])
def test_transposed_convolutions_cut_as_the_model_says(geometry, group):
    x, weight, bias = normal(2, 4, 6, 7), normal(4, 3, 3, 2, seed=1), normal(3 * group, seed=2)
    compare("ConvTranspose", [x, weight, bias], constants=(1,), group=group, **geometry)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
@pytest.mark.parametrize("ceil_mode", [0, 1])
def test_pooling_windows_end_as_the_model_says(geometry, ceil_mode):
    x = normal(2, 3, 9, 11)
    options = {"kernel_shape": [3, 2], "ceil_mode": ceil_mode, **geometry}
    compare("MaxPool", [x], **options)
    compare("MaxPool", [x], num_outputs=2, **options)
    compare("MaxPool", [integers(-128, 127, 2, 3, 9, 11)], **options)
    for counts in (0, 1):
        compare("AveragePool", [x], count_include_pad=counts, **options)
    compare("LpPool", [x], p=3, **options)


@pytest.mark.parametrize("op_type", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("has_lengths", [False, True])
def test_recurrent_layers_begin_and_end_as_the_model_says(op_type, direction, has_lengths):
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op_type]
    d, hidden = 1 + (direction == "bidirectional"), 5
    weight, recurrence = normal(d, gates * hidden, 3, seed=1), normal(d, gates * hidden, hidden, seed=2)
    bias, state, cell = (
        normal(d, 2 * gates * hidden, seed=3),
        normal(d, 4, hidden, seed=4),
        normal(d, 4, hidden, seed=5),
    )
    lengths = numpy.array([6, 2, 1, 4], dtype=numpy.int32) if has_lengths else None
    arrays = [normal(6, 4, 3), weight, recurrence, bias, lengths, state] + [cell] * (op_type == "LSTM")
    num_outputs = 3 if op_type == "LSTM" else 2
    variants = [{}, {"clip": 0.7}]
    if op_type == "GRU":
        variants = [{"linear_before_reset": 1}, {"linear_before_reset": 0}]
    if op_type == "LSTM":
        variants.append({"input_forget": 1})
    for variant in variants:
        compare(op_type, arrays, num_outputs, (1, 2, 3), hidden_size=hidden, direction=direction, **variant)


def test_lstm_cells_see_their_states_through_peepholes():
    arrays = [normal(5, 2, 3), normal(1, 16, 3, seed=1), normal(1, 16, 4, seed=2), None, None, None, None]
    compare("LSTM", [*arrays, normal(1, 12, seed=3)], 3, (1, 2, 7), hidden_size=4)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
def test_images_are_resized_as_the_model_says(mode, coordinates):
    x = normal(2, 3, 7, 5)
    options = {"mode": mode, "coordinate_transformation_mode": coordinates}
    sizes = numpy.array([2, 3, 11, 3], dtype=numpy.int64)
    compare("Resize", [x, None, None, sizes], constants=(3,), **options)
    scales = numpy.array([1, 1, 2, 3], dtype=numpy.float32)
    compare("Resize", [x, None, scales], constants=(2,), **options)


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("is_aligned", [0, 1])
def test_images_are_read_between_pixels_as_the_model_says(mode, padding, is_aligned):
    x, grid = normal(2, 3, 5, 6), normal(2, 4, 4, 2, seed=1)
    compare("GridSample", [x, grid], mode=mode, padding_mode=padding, align_corners=is_aligned, ulps=128)


def test_quantized_numbers_are_exact():
    x, y = integers(0, 255, 3, 8, dtype="uint8"), integers(-128, 127, 8, 4, seed=1)
    zero, scale = numpy.uint8(7), numpy.float32(0.03)
    compare("MatMulInteger", [x, y, numpy.array(zero), numpy.array(numpy.int8(0))], constants=(1, 2, 3))
    scales = normal(4, seed=2).__abs__() + numpy.float32(0.01)
    for axis, scale_ in ((1, scales), (1, numpy.array(scale))):
        zeros = numpy.zeros(scale_.shape, numpy.int8)
        compare("QuantizeLinear", [normal(6, 4), scale_, zeros], constants=(1, 2), axis=axis)
        compare("DequantizeLinear", [integers(-128, 127, 6, 4), scale_, zeros], constants=(1, 2), axis=axis)
    compare("DynamicQuantizeLinear", [normal(5, 7)], num_outputs=3)
    image, weight = integers(0, 255, 2, 3, 6, 5, dtype="uint8"), integers(-128, 127, 4, 3, 3, 2, seed=3)
    compare("ConvInteger", [image, weight, numpy.array(zero)], constants=(1, 2), pads=[1, 0, 0, 1])
    numbers = [scale, zero, weight, scales, numpy.zeros(4, numpy.int8), numpy.float32(0.5), numpy.uint8(128)]
    arrays = [image, *map(numpy.asarray, numbers), integers(-500, 500, 4, dtype="int32")]
    compare("QLinearConv", arrays, constants=tuple(range(1, 9)), strides=[2, 1])


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_integers_are_divided_towards_zero(dtype):
    x, y = integers(-100, 100, 50, dtype=dtype), integers(1, 9, 50, seed=1, dtype=dtype)
    if dtype != "int8":  # which ONNX Runtime does not divide
        compare("Div", [x, y])
        compare("Div", [x, -y])
    compare("Mod", [x, -y])
    compare("Mod", [x, -y], fmod=1)


def test_elements_are_scattered_and_combined():
    x, values = normal(5, 4), normal(3, 4, seed=1)
    positions = numpy.array([[0, -1, 2, 3], [1, 0, -3, 4], [0, 2, 2, 0]], dtype=numpy.int64)
    for reduction in ("none", "add", "mul", "max", "min"):
        options = {"reduction": reduction}
        if reduction == "none":
            positions = positions.copy()
            positions[2] = [2, 3, 4, 1]  # no position twice: which value stays is not defined
        compare("ScatterElements", [x, positions, values], axis=0, **options)
        rows = numpy.array([[1], [3], [4]] if reduction == "none" else [[1], [3], [1]], dtype=numpy.int64)
        compare("ScatterND", [x, rows, values], **options)


def test_boxes_that_overlap_are_left_out():
    generator = numpy.random.default_rng(0)
    corners = generator.uniform(0, 10, size=(2, 30, 2))
    boxes = numpy.concatenate([corners, corners + generator.uniform(1, 5, size=(2, 30, 2))], axis=2).astype("float32")
    scores = generator.uniform(size=(2, 3, 30)).astype("float32")
    numbers = [numpy.array([5]), numpy.array([0.3], dtype="float32"), numpy.array([0.2], dtype="float32")]
    made = model("NonMaxSuppression", [boxes, scores, *numbers], constants=(2, 3, 4))
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"x0": boxes, "x1": scores})
    found = mx.onnx.import_to_gluon(made)(mx.np.array(boxes), mx.np.array(scores))
    numpy.testing.assert_array_equal(found.asnumpy(), expected)
