"""Models of ONNX as blocks."""

from __future__ import annotations

from typing import Any

import numpy

from mxnet import autograd
from mxnet import numpy as np
from mxnet._renamed import old_keywords
from mxnet.base import dtype_name
from mxnet.gluon.block import HybridBlock
from mxnet.gluon.parameter import DeviceLike, Parameter
from mxnet.numpy import ndarray
from mxnet.onnx._importer.compiling import Compiler
from mxnet.onnx._importer.program import ConstantArray, Program, Scope
from mxnet.onnx._importer.reading import name_of_type, read_model
from mxnet.onnx._importer.values import Value

__all__ = ["OnnxBlock", "get_model_metadata", "import_to_gluon"]


class OnnxBlock(HybridBlock):
    """A network from an ONNX model, which `import_to_gluon` makes.

    Its parameters have the names of the model's initializers. `forward` calls a function of `mx.np` or `mx.npx` for
    each node, so the block records gradients, hybridizes, exports and saves like any other.

    Parameters
    ----------
    program : Program
    parameters : dict of str to Parameter
    constants : dict of str to ConstantArray
        Initializers that are numbers for operators, such as shapes.

    Attributes
    ----------
    input_names, output_names : tuple of str
        Of the model.
    """

    def __init__(self, program: Program, parameters: dict[str, Parameter], constants: dict[str, ConstantArray]) -> None:
        super().__init__()
        self.input_names = program.inputs
        self.output_names = program.outputs
        self._program = program
        self._constants = constants
        self._reg_params.update(parameters)

    def forward(self, *args: Any) -> Any:
        """Run the nodes of the model.

        Parameters
        ----------
        *args : ndarray
            One for each input of the model, in its order. Sequences are lists of arrays.

        Returns
        -------
        ndarray or tuple of ndarray
            The outputs of the model.

        Raises
        ------
        TypeError
            If the number of arguments is not that of the model's inputs.
        UnsupportedError
            If a node asks for something that is not supported, or in a trace for elements that depend on arguments.
        """
        if len(args) != len(self.input_names):
            names = ", ".join(self.input_names)
            raise TypeError(f"the model has {len(self.input_names)} inputs ({names}), found {len(args)} arguments")
        scope: Scope = Scope({name: constant.value() for name, constant in self._constants.items()})
        for name, parameter in self._reg_params.items():
            scope[name] = _parameter_value(parameter)
        first = next((x for x in args if isinstance(x, ndarray)), None)
        if first is None:
            first = next((parameter.data() for parameter in self._reg_params.values()), np.zeros(()))
        with first.device:
            values = [None if x is None else Value(x) for x in args]
            results = [None if value is None else value.array for value in self._program.run(values, scope)]
        return results[0] if len(results) == 1 else tuple(results)


def _parameter_value(parameter: Parameter) -> Value:
    def host() -> numpy.ndarray:
        # A graph that was traced with elements that `tolist` has read is dropped when they change.
        array = parameter.data()
        return numpy.array(array.tolist(), dtype=dtype_name(array.dtype)).reshape(array.shape)

    return Value(make_array=parameter.data, make_host=host)


@old_keywords(ctx="device")
def import_to_gluon(model_file: Any, device: DeviceLike | None = None) -> OnnxBlock:
    """Read an ONNX model as a block.

    Parameters
    ----------
    model_file : path, file object, bytes or onnx.ModelProto
        Data in files of its own must lie in the folder of the model, which then is given as a path.
    device : Device, optional
        Where the parameters go; the current device by default.

    Returns
    -------
    OnnxBlock
        A `HybridBlock` whose arguments are the model's inputs, without those that have an initializer. It returns an
        array, or a tuple if the model has several outputs.

    Raises
    ------
    ImportError
        If the package `onnx` is not installed.
    FileNotFoundError
        If there is no such file.
    FileFormatError
        If it is no valid ONNX model, or its data lies outside its folder.
    UnsupportedError
        If the model has operators, or types of elements, that are not supported; the message lists them.

    Notes
    -----
    Initializers are parameters under their names in the model. Those of floating dtypes have gradients, except running
    statistics and scales of quantized numbers; the others have `grad_req` ``"null"``. Initializers that only say
    something about shapes (of `Reshape`, `Slice`, ...) are constants. In training mode `BatchNormalization` uses the
    statistics of the batch and updates its running ones, and `Dropout` drops elements.

    A hybridized block knows shapes, and what is computed from them, while it is traced. Models whose shapes depend on
    the values of their arguments run operator by operator.

    Examples
    --------
    >>> import onnx.parser
    >>> model = onnx.parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 17]>
    ...     example (float[n, 2] x) => (float[n, 2] y) <float[2] w = {1.0, 10.0}> { y = Mul(x, w) }
    ... ''')
    >>> net = mx.onnx.import_to_gluon(model)
    >>> net(mx.np.array([[1.0, 2.0]]))
    array([[ 1., 20.]])
    >>> net.collect_params()
    {'w': Parameter (shape=(2,), dtype=float32)}
    """
    compiler = Compiler(*read_model(model_file, "import_to_gluon"))
    program = compiler.program()
    parameters: dict[str, Parameter] = {}
    constants: dict[str, ConstantArray] = {}
    for name, host in compiler.initializers.items():
        if host.size == 0 or (name not in compiler.read and name not in program.outputs):
            constants[name] = ConstantArray(host)
            continue
        with autograd.pause():
            array = np.array(host)
        is_trained = dtype_name(array.dtype) in ("float16", "bfloat16", "float32", "float64")
        req = "write" if is_trained and name not in compiler.fixed else "null"
        parameter = Parameter(name, grad_req=req, shape=array.shape, dtype=array.dtype)
        parameter._load_init(array, device, "saved")
        parameters[name] = parameter
    return OnnxBlock(program, parameters, constants)


def get_model_metadata(model_file: Any) -> dict[str, Any]:
    """What a model takes and returns.

    Parameters
    ----------
    model_file : path, file object, bytes or onnx.ModelProto

    Returns
    -------
    dict
        ``"input_tensor_data"`` and ``"output_tensor_data"`` are lists of ``(name, shape)``, as in MXNet 1.x; a size of
        a shape is an integer, a name for a size that may be any, or None; the shape is None if the model does not
        give it. ``"input_dtypes"`` and ``"output_dtypes"`` have the name of the dtype for each name. ``"opset"`` maps
        domains (``"ai.onnx"``) to versions, ``"producer"`` is the name and version of the program that wrote the model.
        ``"ir_version"`` is the version of the format, ``"metadata"`` a dict of the strings that the model carries.

    Raises
    ------
    ImportError
        If the package `onnx` is not installed.
    FileNotFoundError
        If there is no such file.
    FileFormatError
        If it is no valid ONNX model.

    Examples
    --------
    >>> import onnx.parser
    >>> model = onnx.parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 17]>
    ...     example (float[n, 2] x) => (float[n, 2] y) { y = Exp(x) }
    ... ''')
    >>> found = mx.onnx.get_model_metadata(model)
    >>> found["input_tensor_data"], found["opset"]
    ([('x', ('n', 2))], {'ai.onnx': 17})
    """
    model, _ = read_model(model_file, "get_model_metadata", with_data=False)
    graph = model.graph
    initialized = {tensor.name for tensor in graph.initializer}
    found: dict[str, Any] = {}
    for key, values in (("input", graph.input), ("output", graph.output)):
        named = values if key == "output" else [value for value in values if value.name not in initialized]
        described = [(value.name, *name_of_type(value.type)) for value in named]
        found[f"{key}_tensor_data"] = [(name, shape) for name, shape, _ in described]
        found[f"{key}_dtypes"] = {name: dtype for name, _, dtype in described}
    found["opset"] = {entry.domain or "ai.onnx": entry.version for entry in model.opset_import}
    found["producer"] = f"{model.producer_name} {model.producer_version}".strip()
    found["ir_version"] = model.ir_version
    found["metadata"] = {entry.key: entry.value for entry in model.metadata_props}
    return found
