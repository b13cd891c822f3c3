"""Layers and networks of 8-bit integers beside those of float32, and beside ONNX Runtime's integer products."""

import numpy
from _sides import OURS, Table

import mxnet as mx
from mxnet import _core, np, npx
from mxnet.contrib.quantization import quantize_net
from mxnet.gluon.model_zoo import vision

rng = numpy.random.default_rng(0)
op = _core.namespaces["op"]

# images, input channels, filters, extent, kernel, stride: layers of ResNet
CONVOLUTIONS = [
    (1, 3, 64, 224, 7, 2),
    (1, 64, 64, 56, 3, 1),
    (1, 64, 256, 56, 1, 1),
    (1, 128, 128, 28, 3, 1),
    (1, 256, 256, 14, 3, 1),
    (1, 1024, 256, 14, 1, 1),
    (1, 512, 512, 7, 3, 1),
    (8, 64, 64, 56, 3, 1),
    (8, 256, 256, 14, 3, 1),
]
# rows, inputs, outputs
PRODUCTS = [(1, 2048, 1000), (32, 2048, 1000), (512, 512, 512), (1024, 1024, 1024)]


def integers(dtype: str, *shape: int) -> numpy.ndarray:
    info = numpy.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


def waited(case):
    """The case with its result: both sides are ours, and a side must not begin with the work of the other."""

    def call():
        y = case()
        y.wait_to_read()
        return y

    return call


def onnx_product(x: numpy.ndarray, w: numpy.ndarray):
    """`x @ w.T` of integers in ONNX Runtime; None if it is not installed."""
    try:
        import onnxruntime
        from onnx import TensorProto, helper, numpy_helper
    except ImportError:
        return None
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["x", "w"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.INT32, (x.shape[0], w.shape[0]))],
        [numpy_helper.from_array(numpy.ascontiguousarray(w.T), "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"x": x})[0]


def layers() -> None:
    table = Table("convolutions, uint8 results", [OURS, "float32"])
    for n, channels, filters, extent, kernel, stride in CONVOLUTIONS:
        pad = kernel // 2
        x, w = integers("uint8", n, channels, extent, extent), integers("int8", filters, channels, kernel, kernel)
        data, weight = np.array(x), np.array(w)
        scale, bias = np.full((filters,), 1e-3), np.zeros((filters,))
        floats, float_weight = data.astype("float32"), weight.astype("float32")
        window = {"stride": (stride, stride), "pad": (pad, pad)}

        def exact(data=floats, weight=float_weight, bias=bias, window=window):
            return npx.convolution(data, weight, bias, num_filter=len(bias), **window)

        def ours(data=data, weight=weight, scale=scale, bias=bias, window=window):
            return op["int8_convolution"](data, weight, scale, bias, dtype="uint8", **window)

        name = f"{n} of {channels} x {extent} x {extent}, {filters} filters of {kernel} x {kernel}"
        table.add(name, {OURS: waited(ours), "float32": waited(exact)}, rtol=None)
    table = Table("products, int32 results", [OURS, "float32", "ONNX Runtime"])
    for rows, k, hidden in PRODUCTS:
        x, w = integers("uint8", rows, k), integers("int8", hidden, k)
        data, weight = np.array(x), np.array(w)
        floats, float_weight = data.astype("float32"), weight.astype("float32")
        sides = {
            OURS: waited(lambda x=data, w=weight: op["int8_fully_connected"](x, w, dtype="int32")),
            "float32": waited(lambda x=floats, w=float_weight: npx.fully_connected(x, w, flatten=False)),
        }
        if (other := onnx_product(x, w)) is not None:
            sides["ONNX Runtime"] = other
        table.add(f"{rows} x {k} by {k} x {hidden}", sides, rtol=1e-5)


def networks() -> None:
    table = Table("networks, 224 x 224", [OURS, "float32"])
    for name in ("resnet18_v1", "resnet50_v1", "mobilenet1_0"):
        mx.random.seed(3)
        net = getattr(vision, name)()
        net.initialize(mx.init.Xavier(rnd_type="gaussian", factor_type="in", magnitude=2))
        x = np.random.normal(0, 1, (8, 3, 224, 224))
        quantized = quantize_net(net, calib_data=[x[:2]], calib_mode="naive")
        quantized.hybridize()
        for n in (1, 8):
            sides = {OURS: waited(lambda x=x[:n], f=quantized: f(x)), "float32": waited(lambda x=x[:n], f=net: f(x))}
            table.add(f"{name}, {n}", sides, rtol=None, turns=7)


if __name__ == "__main__":
    layers()
    networks()
