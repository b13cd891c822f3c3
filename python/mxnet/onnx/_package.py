"""The optional package `onnx`, imported at first use."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["onnx_package"]


def onnx_package(function: str) -> Any:
    """The package `onnx`, with the modules that reading and writing need.

    Parameters
    ----------
    function : str
        What errors call the function that needs it.

    Returns
    -------
    module

    Raises
    ------
    ImportError
        If the package is not installed.
    """
    try:
        package = importlib.import_module("onnx")
        for module in ("checker", "external_data_helper", "helper", "numpy_helper", "printer", "shape_inference"):
            importlib.import_module(f"onnx.{module}")
    except ImportError as error:
        raise ImportError(
            f"{function}: needs the Python package `onnx` 1.19 or later, which cannot be imported: {error}\n"
            "  hint: pip install 'mxnet[onnx]'"
        ) from error
    return package
