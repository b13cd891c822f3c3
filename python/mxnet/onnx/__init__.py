"""Networks as ONNX models. The functions need the package `onnx`, which `pip install mxnet[onnx]` installs."""

from mxnet.onnx._export import export_model, get_operator_support
from mxnet.onnx._importer.block import OnnxBlock, get_model_metadata, import_to_gluon

__all__ = ["OnnxBlock", "export_model", "get_model_metadata", "get_operator_support", "import_to_gluon"]
