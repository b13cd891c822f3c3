"""Which function computes an operator of ONNX, and what the function gets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

from mxnet import numpy as np
from mxnet.error import UnsupportedError

__all__ = ["OPERATORS", "Call", "Operator", "dtype_of", "operator"]

# Types of elements of ONNX (`TensorProto.DataType`) and the dtypes of their arrays.
DTYPES = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
    14: "complex64",
    15: "complex128",
    16: "bfloat16",
}
_OTHER_TYPES = {
    8: "string",
    17: "float8e4m3fn",
    18: "float8e4m3fnuz",
    19: "float8e5m2",
    20: "float8e5m2fnuz",
    21: "uint4",
    22: "int4",
    23: "float4e2m1",
    24: "float8e8m0",
    25: "uint2",
    26: "int2",
}
# Integers of two and four bits are in arrays of these dtypes.
NARROW_DTYPES = {"uint4": "uint8", "uint2": "uint8", "int4": "int8", "int2": "int8"}


def dtype_of(number: int) -> str | None:
    """The dtype of an element type of ONNX.

    Parameters
    ----------
    number : int
        Of `TensorProto.DataType`.

    Returns
    -------
    str or None
        None for types that arrays do not have.
    """
    return DTYPES.get(number)


def type_name(number: int) -> str:
    """What messages call an element type of ONNX.

    Parameters
    ----------
    number : int
        Of `TensorProto.DataType`.

    Returns
    -------
    str
    """
    return DTYPES.get(number) or _OTHER_TYPES.get(number, f"type {number}")


def is_narrow(number: int) -> bool:
    """Whether an element type of ONNX is an integer of two or four bits.

    Parameters
    ----------
    number : int
        Of `TensorProto.DataType`.

    Returns
    -------
    bool
    """
    return _OTHER_TYPES.get(number, "") in NARROW_DTYPES


class Operator(NamedTuple):
    """How an operator of ONNX is computed.

    Parameters
    ----------
    function : callable
        ``function(call, *inputs)`` returns an array or a tuple of arrays. Inputs that a node leaves out are None.
    host : tuple of int
        Inputs that are arrays of NumPy: their elements decide about shapes. -1 stands for all.
    folds : bool
        Whether the function also computes with arrays of NumPy, which `call.np` then is. It does so for operands that
        are known without running the network.
    fixed : tuple of int
        Inputs that training does not change, such as running means and the scales of quantized numbers.
    takes_values : bool
        Whether the function is ``function(call, outer, *values)`` and returns a list, both of `Value`; `outer` has the
        values that subgraphs of the node read.
    suits : callable or None
        ``suits(call, inputs)`` says whether the function computes a node; `inputs` says for each input whether it is
        given. For other nodes the function body of ONNX is used. None: all nodes.
    """

    function: Callable[..., Any]
    host: tuple[int, ...]
    folds: bool
    fixed: tuple[int, ...]
    takes_values: bool
    suits: Callable[[Call, tuple[bool, ...]], bool] | None


OPERATORS: dict[tuple[str, str], Operator] = {}


def operator(
    *names: str,
    domain: str = "",
    host: tuple[int, ...] = (),
    folds: bool = False,
    fixed: tuple[int, ...] = (),
    takes_values: bool = False,
    suits: Callable[[Call, tuple[bool, ...]], bool] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function as the one that computes operators of ONNX; see `Operator`.

    Parameters
    ----------
    *names : str
    domain : str
    host : tuple of int
    folds : bool
    fixed : tuple of int
    takes_values : bool
    suits : callable, optional

    Returns
    -------
    callable
        A decorator.
    """

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            assert (domain, name) not in OPERATORS, f"{name} has two functions"
            OPERATORS[domain, name] = Operator(function, host, folds, fixed, takes_values, suits)
        return function

    return enter


class Call:
    """One node of a model, as its function sees it.

    Parameters
    ----------
    domain, op_type, name : str
        The operator and the name of the node.
    opset : int
        Version of the operator set that the model asks for.
    attributes : dict
        Of the node, with the defaults of the operator: numbers, strings, arrays of NumPy, programs, lists of them.
    num_outputs : int
    is_output_used : tuple of bool
        Which outputs the model uses.
    is_on_host : bool
        Whether the operands are arrays of NumPy.
    """

    __slots__ = ("attributes", "domain", "is_on_host", "is_output_used", "name", "num_outputs", "op_type", "opset")

    def __init__(
        self,
        domain: str,
        op_type: str,
        name: str,
        opset: int,
        attributes: dict[str, Any],
        is_output_used: tuple[bool, ...],
        is_on_host: bool = False,
    ) -> None:
        self.domain = domain
        self.op_type = op_type
        self.name = name
        self.opset = opset
        self.attributes = attributes
        self.is_output_used = is_output_used
        self.num_outputs = len(is_output_used)
        self.is_on_host = is_on_host

    @property
    def np(self) -> Any:
        """The module whose functions take the operands: `mxnet.numpy`, or `numpy` on the host."""
        return numpy if self.is_on_host else np

    def __getitem__(self, attribute: str) -> Any:
        """The attribute of that name; None if the node does not have it and the operator has no default."""
        return self.attributes.get(attribute)

    def choice(self, attribute: str, *options: str, default: str = "") -> str:
        """The value of an attribute that is one of some words.

        Parameters
        ----------
        attribute : str
        *options : str
        default : str
            For nodes without the attribute.

        Returns
        -------
        str

        Raises
        ------
        ValueError
            If it is another word.
        """
        found = self.attributes.get(attribute)
        word = default if found is None else str(found)
        if word not in options:
            known = ", ".join(repr(option) for option in options if option)
            raise ValueError(f"{self.label}: attribute `{attribute}` must be one of {known}, found {word!r}")
        return word

    def uses(self, index: int) -> bool:
        """Whether output number `index` exists and is used."""
        return index < self.num_outputs and self.is_output_used[index]

    def on_host(self) -> Call:
        """The same node for arrays of NumPy."""
        return Call(self.domain, self.op_type, self.name, self.opset, self.attributes, self.is_output_used, True)

    @property
    def label(self) -> str:
        """What messages call the node."""
        return f"node `{self.name}` ({self.domain or 'ai.onnx'}.{self.op_type}, opset {self.opset})"

    def unsupported(self, text: str) -> UnsupportedError:
        """An error that names the node.

        Parameters
        ----------
        text : str
            What is not supported, with the alternative.

        Returns
        -------
        UnsupportedError
        """
        return UnsupportedError(f"{self.label}: {text}")

    def dtype(self, number: int) -> str:
        """The dtype of an element type of ONNX; UnsupportedError if arrays do not have it."""
        found = dtype_of(number)
        if found is None:
            raise self.unsupported(f"there are no arrays of {type_name(number)}")
        return found
