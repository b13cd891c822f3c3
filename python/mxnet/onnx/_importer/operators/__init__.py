"""The operators of ONNX by families. Importing the families fills the table of operators."""

import importlib

_FAMILIES = (
    "attention",
    "control_flow",
    "convolution",
    "elementwise",
    "indexing",
    "joining",
    "learning",
    "losses",
    "normalization",
    "pooling",
    "products",
    "quantization",
    "random",
    "recurrent",
    "reductions",
    "regions",
    "resampling",
    "sequences",
    "shapes",
    "signal",
)

for _family in _FAMILIES:
    importlib.import_module(f"{__name__}.{_family}")
