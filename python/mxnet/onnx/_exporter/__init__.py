"""Export to ONNX: graphs are read, translated node by node, and written as a model."""
