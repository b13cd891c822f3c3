"""Networks as ONNX models. The functions need the package `onnx`, which `pip install mxnet[onnx]` installs."""

__all__: list[str] = []
