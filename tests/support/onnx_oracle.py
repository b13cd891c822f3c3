"""Exported models run by ONNX Runtime, or by the reference evaluator of `onnx` where that has no kernel."""

import re
import warnings

import ml_dtypes
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator

from mxnet import _core, autograd, gluon
from mxnet import onnx as mx_onnx

# Only errors are written: a model of a test may have an initializer that nothing reads.
onnxruntime.set_default_logger_severity(3)

_NO_KERNEL = re.compile(
    r"NOT_IMPLEMENTED|Could not find an implementation|type .* of input parameter|Invalid rank for input"
)


class Function(gluon.HybridBlock):
    """A function of arrays as a block."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *arrays):
        return self.function(*arrays)


def host(array):
    """The elements of one of our arrays for another library."""
    if str(array.dtype) == "bfloat16":
        return array.view("uint16").asnumpy().view(ml_dtypes.bfloat16)
    return array.asnumpy()


def session(path, *, is_plain=False):
    """The model in ONNX Runtime, on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    if is_plain:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def run(path, arrays):
    """Results of a model for our arrays, and who computed them."""
    inputs = [host(x) for x in arrays]
    if not any(x.dtype == ml_dtypes.bfloat16 for x in inputs):
        try:
            found = session(path)
        except Exception as error:  # its classes are not public
            if not _NO_KERNEL.search(str(error)):
                raise
        else:
            names = [x.name for x in found.get_inputs()]
            return found.run(None, dict(zip(names, inputs, strict=True))), "onnxruntime"
    model = onnx.load(str(path))
    evaluator = ReferenceEvaluator(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return evaluator.run(None, dict(zip(evaluator.input_names, inputs, strict=True))), "reference"


def traced(function, arrays):
    """A function as a network that was called with arrays; the network and its results as a list."""
    net = Function(function)
    net.hybridize()
    with autograd.pause():
        found = net(*arrays)
    return net, list(found) if isinstance(found, tuple | list) else [found]


def export(net, path, **options):
    """Export, with all checks that `onnx` has."""
    mx_onnx.export_model(net, onnx_file_path=path, **options)
    model = onnx.load(str(path))
    onnx.checker.check_model(model, full_check=True)
    return model


def registry():
    """The entries of all operators by name."""
    return {entry["name"]: entry for entry in _core.registry()}
