"""Operators written in Python: MXNet's classes, and a decorator.

Such an operator is an entry of the registry like any other: it is recorded, traced and named in errors as
the built-in ones are. Graphs call the Python code when they run, forward and gradient. An exported graph
that holds one needs the Python code, or a module that has an operator of that name, where it is loaded.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as onp

from mxnet import _core
from mxnet._renamed import attribute_finder
from mxnet.autograd import pause
from mxnet.device import current_device
from mxnet.numpy import ndarray, zeros, zeros_like

__all__ = ["CustomOp", "CustomOpProp", "Operator", "custom", "define", "register"]

__getattr__ = attribute_finder(__name__)

Spec = tuple[tuple[int, ...], Any]
_Prop = TypeVar("_Prop", bound="type[CustomOpProp]")


class CustomOp:
    """The computation of an operator written in Python. Subclasses define `forward` and `backward`.

    Examples
    --------
    >>> class Sigmoid(mx.operator.CustomOp):
    ...     def forward(self, is_train, req, in_data, out_data, aux):
    ...         self.assign(out_data[0], req[0], 1 / (1 + np.exp(-in_data[0])))
    ...     def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
    ...         y = out_data[0]
    ...         self.assign(in_grad[0], req[0], out_grad[0] * y * (1 - y))
    """

    def forward(
        self,
        is_train: bool,
        req: list[str],
        in_data: list[ndarray],
        out_data: list[ndarray],
        aux: list[ndarray],
    ) -> None:
        """Compute the outputs; to be defined by the subclass.

        Parameters
        ----------
        is_train : bool
            Whether the call is part of training.
        req : list of str
            For each output how it is stored: 'write' here.
        in_data : list of ndarray
            The operands.
        out_data : list of ndarray
            Where the outputs go; `assign` writes them.
        aux : list of ndarray
            The auxiliary states, which may be changed.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define forward")

    def backward(
        self,
        req: list[str],
        out_grad: list[ndarray],
        in_data: list[ndarray],
        out_data: list[ndarray],
        in_grad: list[ndarray],
        aux: list[ndarray],
    ) -> None:
        """Compute the gradients of the operands; to be defined by subclasses of operators that have some.

        Parameters
        ----------
        req : list of str
            For each gradient how it is stored: 'write' here.
        out_grad : list of ndarray
            The gradients of the outputs.
        in_data, out_data : list of ndarray
            Operands and outputs of the call.
        in_grad : list of ndarray
            Where the gradients go; `assign` writes them.
        aux : list of ndarray
            The auxiliary states.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define backward")

    def assign(self, dst: ndarray, req: str, src: Any) -> None:
        """Store a result as `req` says.

        Parameters
        ----------
        dst : ndarray
        req : str
            'null' stores nothing, 'write' and 'inplace' replace, 'add' adds.
        src : ndarray or number
            It is broadcast to the shape of `dst`.

        Raises
        ------
        ValueError
            If `req` is another word.
        """
        if req in ("write", "inplace"):
            dst[...] = src
        elif req == "add":
            dst += src
        elif req != "null":
            raise ValueError(f"req must be 'null', 'write', 'inplace' or 'add', not {req!r}")


class CustomOpProp:
    """What is known of an operator written in Python before it runs: names, shapes, data types.

    Parameters
    ----------
    need_top_grad : bool
        Whether `backward` reads the gradients of the outputs. Losses, which do not, say False.
    """

    def __init__(self, need_top_grad: bool = True) -> None:
        self.need_top_grad_ = need_top_grad

    def infer_shape(self, in_shape: list[Any]) -> tuple[Any, ...]:
        """Shapes of operands, outputs and auxiliary states. As it is, all outputs have the shape of the first operand.

        Parameters
        ----------
        in_shape : list of tuple of int

        Returns
        -------
        (list, list, list)
            The last may be left out if there are no auxiliary states.
        """
        return in_shape, [in_shape[0]] * len(self.list_outputs()), []

    def infer_type(self, in_type: list[Any]) -> tuple[Any, ...]:
        """Data types of operands, outputs and auxiliary states. As it is, all are that of the first operand.

        Parameters
        ----------
        in_type : list of dtype

        Returns
        -------
        (list, list, list)
        """
        return in_type, [in_type[0]] * len(self.list_outputs()), [in_type[0]] * len(self.list_auxiliary_states())

    def infer_storage_type(self, in_stype: list[str]) -> tuple[list[str], list[str], list[str]]:
        """Storage types of operands, outputs and auxiliary states; arrays of these operators are dense.

        Parameters
        ----------
        in_stype : list of str

        Returns
        -------
        (list, list, list)

        Raises
        ------
        ValueError
            If an operand is not dense.
        """
        if any(stype != "default" for stype in in_stype):
            raise ValueError(
                f"operators written in Python take dense arrays, not {in_stype}: convert them with tostype"
            )
        states = ["default"] * len(self.list_auxiliary_states())
        return in_stype, ["default"] * len(self.list_outputs()), states

    def infer_storage_type_backward(
        self,
        ograd_stype: list[str],
        in_stype: list[str],
        out_stype: list[str],
        igrad_stype: list[str],
        aux_stype: list[str],
    ) -> tuple[list[str], ...]:
        """Storage types in the backward pass: all are dense.

        Parameters
        ----------
        ograd_stype, in_stype, out_stype, igrad_stype, aux_stype : list of str

        Returns
        -------
        tuple of list of str
            As many lists as there are parameters.
        """
        given = (ograd_stype, in_stype, out_stype, igrad_stype, aux_stype)
        return tuple(["default"] * len(stypes) for stypes in given)

    def list_arguments(self) -> list[str]:
        """Names of the operands.

        Returns
        -------
        list of str
        """
        return ["data"]

    def list_outputs(self) -> list[str]:
        """Names of the outputs.

        Returns
        -------
        list of str
        """
        return ["output"]

    def list_auxiliary_states(self) -> list[str]:
        """Names of the auxiliary states, which follow the operands in a call.

        Returns
        -------
        list of str
        """
        return []

    def declare_backward_dependency(self, out_grad: list[int], in_data: list[int], out_data: list[int]) -> list[int]:
        """What `backward` reads. All of it is kept in any case.

        Parameters
        ----------
        out_grad, in_data, out_data : list of int
            Numbers that stand for arrays.

        Returns
        -------
        list of int
        """
        return [*(out_grad if self.need_top_grad_ else []), *in_data, *out_data]

    def create_operator(self, ctx: Any, in_shapes: list[Any], in_dtypes: list[Any]) -> CustomOp:
        """The computation; to be defined by the subclass.

        Parameters
        ----------
        ctx : Device
        in_shapes : list of tuple of int
        in_dtypes : list of dtype

        Returns
        -------
        CustomOp
        """
        raise NotImplementedError(f"{type(self).__name__} does not define create_operator")


_FUNCTIONS: dict[str, Callable[..., Any]] = {}
_NUM_STATES: dict[str, Callable[[str], CustomOpProp]] = {}


def _is_shape(x: Any) -> bool:
    return isinstance(x, (list, tuple)) and all(isinstance(size, (int, onp.integer)) and size >= 0 for size in x)


def _is_spec(x: Any) -> bool:
    return isinstance(x, (list, tuple)) and len(x) == 2 and _is_shape(x[0])


def _arrays(op: str, what: str, found: Any, allows_none: bool = False) -> list[Any]:
    """What the code of `op` returned, an array or several, as a list."""
    arrays = [found] if isinstance(found, ndarray) else found
    if not isinstance(arrays, (list, tuple)):
        raise TypeError(f"{op}: {what} must return an array or a list of arrays, not {type(found).__name__!r}")
    for i, x in enumerate(arrays):
        if not isinstance(x, ndarray) and not (allows_none and x is None):
            kind = f"{type(x).__module__}.{type(x).__name__}".removeprefix("builtins.")
            raise TypeError(f"{op}: {what} must return arrays of `mx.np`; result {i} is {kind!r}")
    return list(arrays)


def _shapes_and_dtypes(op: str, prop: CustomOpProp, given: Sequence[Spec]) -> list[Spec]:
    """The outputs' shapes and dtypes by the rules of `prop`, which are checked against what was given."""
    arguments, num_outputs = prop.list_arguments(), len(prop.list_outputs())
    names = [*arguments, *prop.list_auxiliary_states()]
    shapes, dtypes = [list(x) for x, _ in given], [x for _, x in given]
    found = prop.infer_shape(shapes[: len(arguments)])
    types = prop.infer_type(dtypes[: len(arguments)])
    its: Any
    for rule, its in (("infer_shape", found), ("infer_type", types)):
        if not isinstance(its, (list, tuple)) or len(its) < 2 or not all(isinstance(x, (list, tuple)) for x in its):
            raise TypeError(f"{op}: {rule} must return lists for operands, outputs and auxiliary states, not {its!r}")
        if len(its[1]) != num_outputs:
            what = rule.removeprefix("infer_") + "s"
            raise ValueError(f"{op}: {rule} gave {len(its[1])} {what} for {num_outputs} outputs")
    for shape in (x for part in found for x in part):
        if not _is_shape(shape):
            raise TypeError(f"{op}: infer_shape must return shapes of sizes that are not negative, not {shape!r}")
    states = found[2] if len(found) > 2 else []
    for name, needed, there in zip(names, [*found[0], *states], shapes, strict=False):
        if list(needed) != there:
            raise ValueError(f"{op}: argument `{name}` has shape {tuple(there)}, the operator needs {tuple(needed)}")
    for name, needed, there in zip(arguments, types[0], dtypes, strict=False):
        if onp.dtype(needed) != there:
            raise ValueError(f"{op}: argument `{name}` has dtype {there}, the operator needs {onp.dtype(needed)}")
    return [(tuple(shape), dtype) for shape, dtype in zip(found[1], types[1], strict=True)]


def register(reg_name: str) -> Callable[[_Prop], _Prop]:
    """Make an operator of a `CustomOpProp`, under a name.

    Parameters
    ----------
    reg_name : str
        `mx.operator.custom(..., op_type=reg_name)` calls it.

    Returns
    -------
    callable
        A decorator of the class.

    Raises
    ------
    ValueError
        If there is an operator of that name.
    TypeError
        If the class is no `CustomOpProp`.

    Examples
    --------
    >>> class Double(mx.operator.CustomOp):
    ...     def forward(self, is_train, req, in_data, out_data, aux):
    ...         self.assign(out_data[0], req[0], in_data[0] * 2)
    ...     def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
    ...         self.assign(in_grad[0], req[0], out_grad[0] * 2)
    >>> @mx.operator.register('doctest_double')
    ... class DoubleProp(mx.operator.CustomOpProp):
    ...     def create_operator(self, ctx, in_shapes, in_dtypes):
    ...         return Double()
    >>> mx.operator.custom(np.array([1.0, 2.0]), op_type='doctest_double')
    array([2., 4.])
    """

    def decorate(cls: _Prop) -> _Prop:
        given: Any = cls
        if not (isinstance(given, type) and issubclass(given, CustomOpProp)):
            raise TypeError(f"register: {reg_name!r} must be made of a subclass of CustomOpProp, not {cls!r}")

        def make(parameters: str) -> CustomOpProp:
            return cls(**json.loads(parameters))

        def infer(parameters: str, _training: bool, given: Sequence[Spec]) -> list[Spec]:
            return _shapes_and_dtypes(reg_name, make(parameters), given)

        def forward(parameters: str, training: bool, inputs: list[ndarray]) -> tuple[list[ndarray], Any]:
            prop = make(parameters)
            num = len(prop.list_arguments())
            specs = [(x.shape, x.dtype) for x in inputs]
            outputs = [zeros(shape, dtype=dtype) for shape, dtype in _shapes_and_dtypes(reg_name, prop, specs)]
            device = inputs[0].device if inputs else current_device()
            shapes, dtypes = [x.shape for x in inputs[:num]], [x.dtype for x in inputs[:num]]
            instance: Any = prop.create_operator(device, shapes, dtypes)
            if not isinstance(instance, CustomOp):
                kind = type(instance).__name__
                raise TypeError(f"{reg_name}: create_operator must return a CustomOp, not {kind!r}")
            instance.forward(training, ["write"] * len(outputs), inputs[:num], outputs, inputs[num:])
            return outputs, (prop, instance)

        def backward(
            instance: Any,
            _parameters: str,
            training: bool,
            out_grad: list[ndarray],
            inputs: list[ndarray],
            outputs: list[ndarray],
        ) -> list[ndarray | None]:
            prop, operator = instance
            num = len(prop.list_arguments())
            grads = [zeros_like(x) for x in inputs[:num]]
            with pause(train_mode=training):
                operator.backward(["write"] * num, out_grad, inputs[:num], outputs, grads, inputs[num:])
            return [*grads, *([None] * (len(inputs) - num))]

        doc = inspect.getdoc(cls) or f"Operator `{reg_name}`, written in Python."
        _FUNCTIONS[reg_name] = _core.add_operator(reg_name, doc, infer, forward, backward)
        _NUM_STATES[reg_name] = make
        return cls

    return decorate


def custom(*data: ndarray, op_type: str, **kwargs: Any) -> Any:
    """Call an operator that was registered with `mx.operator.register`.

    Parameters
    ----------
    *data : ndarray
        Operands, then auxiliary states.
    op_type : str
        The name it was registered under.
    **kwargs : str, number, bool or tuple
        Arguments of its `CustomOpProp`. They reach it as text, as in MXNet.

    Returns
    -------
    ndarray or tuple of ndarray

    Raises
    ------
    ValueError
        If there is no such operator, or the number of arrays is not what it takes.
    """
    function = _FUNCTIONS.get(op_type)
    if function is None or op_type not in _NUM_STATES:
        known = ", ".join(sorted(_NUM_STATES)) or "none"
        raise ValueError(f"custom: no operator is registered as {op_type!r}; there are: {known}")
    parameters = json.dumps({name: str(value) for name, value in kwargs.items()})
    prop = _NUM_STATES[op_type](parameters)
    needed = [*prop.list_arguments(), *prop.list_auxiliary_states()]
    if len(data) != len(needed):
        raise ValueError(f"{op_type}: {len(data)} arrays were given, needed are {len(needed)}: {', '.join(needed)}")
    return _outputs(function(list(data), parameters))


def _outputs(results: tuple[ndarray, ...]) -> Any:
    """The outputs without the ticket behind them."""
    outputs = results[:-1]
    return outputs[0] if len(outputs) == 1 else outputs


class Operator:
    """An operator made of a function by `define`. Calling it runs the function; `gradient` gives it a gradient."""

    def __init__(self, name: str, function: Callable[..., Any], shape: Callable[..., Any] | None) -> None:
        self.name = name
        self._forward, self._shape = function, shape
        self._gradient: Callable[..., Any] | None = None
        self.__name__, self.__doc__ = name, inspect.getdoc(function)
        self.__signature__ = inspect.signature(function)
        doc = self.__doc__ or f"Operator `{name}`, written in Python."
        self._call = _core.add_operator(name, doc, self._infer, self._run, self._run_gradient)
        _FUNCTIONS[name] = self._call

    def gradient(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Use `function` for the gradient: a decorator.

        Parameters
        ----------
        function : callable
            `function(dys, inputs, outputs, **parameters)` with lists of arrays; it returns one gradient, or
            None, for each operand.

        Returns
        -------
        callable
            `function`.
        """
        self._gradient = function
        return function

    def _infer(self, parameters: str, _training: bool, given: Sequence[Spec]) -> list[Spec]:
        if self._shape is None:
            if not given:
                raise ValueError(f"{self.name}: an operator without operands needs a shape rule: define(shape=...)")
            return [(tuple(given[0][0]), given[0][1])]
        operands = [(tuple(shape), onp.dtype(dtype)) for shape, dtype in given]
        found = self._shape(*operands, **json.loads(parameters))
        specs = [found] if _is_spec(found) else found
        if not isinstance(specs, (list, tuple)) or not specs or not all(map(_is_spec, specs)):
            raise TypeError(
                f"{self.name}: the shape rule must return (shape, dtype), or a list of these, not {found!r}"
            )
        return [(tuple(shape), dtype) for shape, dtype in specs]

    def _run(self, parameters: str, training: bool, inputs: list[ndarray]) -> tuple[list[ndarray], None]:
        with pause(train_mode=training):
            result = self._forward(*inputs, **json.loads(parameters))
        return _arrays(self.name, "the function", result), None

    def _run_gradient(
        self,
        _instance: None,
        parameters: str,
        _training: bool,
        dys: list[ndarray],
        inputs: list[ndarray],
        outputs: list[ndarray],
    ) -> list[ndarray | None]:
        if self._gradient is None:
            raise ValueError(f"{self.name}: the operator has no gradient: give it one with @{self.name}.gradient")
        found = self._gradient(dys, inputs, outputs, **json.loads(parameters))
        return _arrays(self.name, "the gradient", found, allows_none=True)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the operator; arguments are those of the function."""
        try:
            bound = self.__signature__.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}: {error}") from None
        bound.apply_defaults()
        texts = [f"{json.dumps(name)}: {self._text(name, value)}" for name, value in bound.kwargs.items()]
        return _outputs(self._call(list(bound.args), "{" + ", ".join(texts) + "}"))

    def _text(self, name: str, value: Any) -> str:
        """A parameter as JSON. NumPy's numbers are written as Python's."""
        try:
            return json.dumps(value.item() if isinstance(value, onp.generic) else value)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{self.name}: parameter `{name}` must be what JSON can write: {error}") from None


def define(
    function: Any = None,
    *,
    name: str | None = None,
    shape: Callable[..., Any] | None = None,
) -> Any:
    """Make an operator of a function: a decorator.

    Parameters
    ----------
    function : callable
        Positional parameters are operands, also ``*operands``. Keyword-only ones are parameters, which must be what
        JSON can write; tuples arrive as lists. It returns one array, or several; those whose memory others use are
        copied. It runs unrecorded.
    name : str, optional
        The operator's name; None takes the function's.
    shape : callable, optional
        ``shape(*operands, **parameters)`` gets ``(shape, dtype)`` of each operand and returns that of the output,
        or a list of them. None: there is one output like the first operand.

    Returns
    -------
    Operator

    Raises
    ------
    ValueError
        If there is an operator of that name.
    TypeError
        If `function` cannot be called.

    Examples
    --------
    >>> @mx.operator.define(name='doctest_cube')
    ... def cube(x):
    ...     return x ** 3
    >>> @cube.gradient
    ... def _(dys, inputs, outputs):
    ...     return 3 * inputs[0] ** 2 * dys[0]
    >>> x = np.array([2.0])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = cube(x)
    >>> y.backward()
    >>> y, x.grad
    (array([8.]), array([12.]))
    """
    if function is not None and not callable(function):
        raise TypeError(f"define: an operator is made of a function, not {type(function).__name__!r}")
    if function is None:
        return lambda function: define(function, name=name, shape=shape)
    return Operator(name or function.__name__, function, shape)
