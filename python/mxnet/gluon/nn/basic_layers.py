"""Dense layers, dropout, embeddings and blocks made of functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet._renamed import attribute_finder
from mxnet.base import DTypeLike
from mxnet.error import UnsupportedError
from mxnet.gluon._counts import count_of
from mxnet.gluon.block import Block, HybridBlock
from mxnet.gluon.nn.activations import optional_activation
from mxnet.gluon.parameter import Parameter
from mxnet.numpy import ndarray

__all__ = ["Dense", "Dropout", "Embedding", "Flatten", "HybridLambda", "Identity", "Lambda"]

__getattr__ = attribute_finder(__name__, "mxnet.gluon.nn")


class Dense(HybridBlock):
    """Fully connected layer: ``activation(x @ weight.T + bias)``.

    Parameters
    ----------
    units : int
        Size of the output, at least 1.
    activation : str, optional
        See `Activation`.
    use_bias : bool
    flatten : bool
        Join all axes of the input but the first; else only the last axis is transformed.
    dtype : dtype
    weight_initializer, bias_initializer : Initializer or str, optional
    in_units : int
        Size of the input; 0 to find it out from the first input.

    Raises
    ------
    ValueError
        If `units` is not positive.

    Attributes
    ----------
    weight : Parameter, shape (units, in_units)
    bias : Parameter, shape (units,), or None

    Examples
    --------
    >>> net = mx.gluon.nn.Dense(2)
    >>> net.initialize('ones')
    >>> net(np.array([[1.0, 2.0, 3.0]]))
    array([[6., 6.]])
    """

    def __init__(
        self,
        units: int,
        activation: str | None = None,
        use_bias: bool = True,
        flatten: bool = True,
        dtype: DTypeLike = "float32",
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        in_units: int = 0,
    ) -> None:
        units = count_of("Dense", "units", units)
        in_units = count_of("Dense", "in_units", in_units, 0)
        super().__init__()
        self._units = units
        self._flatten = flatten
        self.weight = Parameter(
            "weight",
            shape=(units, in_units or -1),
            dtype=dtype,
            init=weight_initializer,
            allow_deferred_init=True,
        )
        self.bias: Parameter | None = None
        if use_bias:
            self.bias = Parameter("bias", shape=(units,), dtype=dtype, init=bias_initializer)
        self.act = optional_activation(activation)

    def __repr__(self) -> str:
        in_units = self.weight.shape[1] if self.weight.shape else -1
        shown = in_units if in_units > 0 else None
        parts = [f"{shown} -> {self._units}", f"{self.act or 'linear'}"]
        if not self._flatten:
            parts.append("flatten=False")
        if self.bias is None:
            parts.append("use_bias=False")
        return f"{type(self).__name__}({', '.join(parts)})"

    def infer_shape(self, x: ndarray, *args: Any) -> None:
        """Set the number of input units.

        Parameters
        ----------
        x : ndarray, shape (n, ...)
        """
        # Ragged rows (sizes of None) are never joined; `forward` refuses them with the reason.
        size = math.prod(x.shape[1:]) if self._flatten and None not in x.shape else x.shape[-1]
        self.weight.shape = (self._units, size)

    def forward(self, x: ndarray) -> ndarray:
        """Transform a batch.

        Parameters
        ----------
        x : ndarray, shape (n, ...) if the layer flattens, else (..., in_units)

        Returns
        -------
        ndarray, shape (n, units) or (..., units)
        """
        device = x.device
        out = npx.fully_connected(
            x,
            self.weight.data(device),
            None if self.bias is None else self.bias.data(device),
            num_hidden=self._units,
            no_bias=self.bias is None,
            flatten=self._flatten,
        )
        return out if self.act is None else self.act(out)


class Dropout(HybridBlock):
    """Sets random elements to zero while training, and scales the others so that the mean stays.

    Parameters
    ----------
    rate : float
        Probability of an element to be dropped, in ``[0, 1]``.
    axes : sequence of int
        Axes along which all elements share their fate.

    Raises
    ------
    ValueError
        If `rate` is out of range.

    Notes
    -----
    Source: N. Srivastava et al., "Dropout: A Simple Way to Prevent Neural Networks from Overfitting", 2014.

    Examples
    --------
    >>> net = mx.gluon.nn.Dropout(0.5)
    >>> net(np.ones(3))  # only training drops elements
    array([1., 1., 1.])
    """

    def __init__(self, rate: float, axes: Sequence[int] = ()) -> None:
        given: Any = rate
        if not (isinstance(given, Real) and 0 <= float(given) <= 1):
            raise ValueError(f"Dropout: `rate` must be a number in [0, 1], found {rate!r}")
        super().__init__()
        self._rate = rate
        self._axes = tuple(axes)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p = {self._rate}, axes={self._axes})"

    def forward(self, x: ndarray) -> ndarray:
        """Drop elements of `x`, any shape; returns an array of that shape, `x` itself in prediction mode."""
        if self._rate == 0:
            return x
        return npx.dropout(x, p=self._rate, axes=self._axes)


class Embedding(HybridBlock):
    """Looks up rows of a table of vectors by integers.

    Parameters
    ----------
    input_dim : int
        Number of vectors.
    output_dim : int
        Their size.
    dtype : dtype
    weight_initializer : Initializer or str, optional
    sparse_grad : bool
        Whether the gradient of `weight` is row-sparse: it holds the rows that were looked up. Not in compiled
        (hybridized) layers that are trained.

    Attributes
    ----------
    weight : Parameter, shape (input_dim, output_dim)

    Examples
    --------
    >>> net = mx.gluon.nn.Embedding(input_dim=10, output_dim=4)
    >>> net.initialize()
    >>> net(np.array([[1, 2, 3]])).shape
    (1, 3, 4)
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        dtype: DTypeLike = "float32",
        weight_initializer: Any = None,
        sparse_grad: bool = False,
    ) -> None:
        input_dim = count_of("Embedding", "input_dim", input_dim, 0)
        output_dim = count_of("Embedding", "output_dim", output_dim, 0)
        super().__init__()
        self._input_dim = input_dim
        self._output_dim = output_dim
        self._sparse_grad = sparse_grad
        self.weight = Parameter(
            "weight",
            shape=(input_dim, output_dim),
            dtype=dtype,
            init=weight_initializer,
            grad_stype="row_sparse" if sparse_grad else "default",
        )

    def __repr__(self) -> str:
        kind = f"{self.weight.dtype}, sparse_grad=True" if self._sparse_grad else f"{self.weight.dtype}"
        return f"{type(self).__name__}({self._input_dim} -> {self._output_dim}, {kind})"

    def forward(self, x: ndarray) -> ndarray:
        """Look up vectors.

        Parameters
        ----------
        x : ndarray, any shape
            Values from 0 to ``input_dim - 1``.

        Returns
        -------
        ndarray, shape ``x.shape + (output_dim,)``
        """
        return npx.embedding(x, self.weight.data(x.device), sparse_grad=self._sparse_grad)


class Flatten(HybridBlock):
    """Joins all axes but the first.

    Examples
    --------
    >>> mx.gluon.nn.Flatten()(np.ones((2, 3, 4))).shape
    (2, 12)
    """

    def forward(self, x: ndarray) -> ndarray:
        """Reshape `x` of shape ``(n, ...)`` to ``(n, size of the rest)``."""
        if None in x.shape:
            raise UnsupportedError(
                f"Flatten: rows of shape {x.shape} have different lengths and cannot be joined to one"
                "\n  hint: reduce the ragged axis, or `to_dense` pads it"
            )
        return x.reshape((x.shape[0], math.prod(x.shape[1:])))


class Identity(HybridBlock):
    """Returns its input.

    Examples
    --------
    >>> mx.gluon.nn.Identity()(np.array([1.0, 2.0]))
    array([1., 2.])
    """

    def forward(self, x: Any) -> Any:
        """Return `x`."""
        return x


def _named_function(function: str | Callable[..., Any]) -> tuple[Callable[..., Any], str]:
    if callable(function):
        return function, getattr(function, "__name__", type(function).__name__)
    for module in (np, npx):
        found = getattr(module, function, None)
        if callable(found):
            return found, function
    raise ValueError(f"`function` must be callable or a name in mxnet.np or mxnet.npx, found {function!r}")


class Lambda(Block):
    """Wraps a function as a block.

    Parameters
    ----------
    function : callable or str
        A name is looked up in `mxnet.np` and then in `mxnet.npx`.

    Raises
    ------
    ValueError
        If there is no function of that name.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.gluon.nn.Lambda("tanh")(mx.np.zeros((1,))).asnumpy().tolist()
    [0.0]
    """

    def __init__(self, function: str | Callable[..., Any]) -> None:
        super().__init__()
        self._function, self._function_name = _named_function(function)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._function_name})"

    def forward(self, *args: Any) -> Any:
        """Call the function with `args` and return what it returns."""
        return self._function(*args)


class HybridLambda(HybridBlock):
    """Wraps a function as a hybrid block.

    Parameters
    ----------
    function : callable or str
        A name is looked up in `mxnet.np` and then in `mxnet.npx`.

    Raises
    ------
    ValueError
        If there is no function of that name.

    Examples
    --------
    >>> mx.gluon.nn.HybridLambda(lambda x: x * 2)(np.array([1.0, 2.0]))
    array([2., 4.])
    >>> mx.gluon.nn.HybridLambda('tanh')(np.array([0.0]))
    array([0.])
    """

    def __init__(self, function: str | Callable[..., Any]) -> None:
        super().__init__()
        self._function, self._function_name = _named_function(function)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._function_name})"

    def forward(self, x: Any, *args: Any) -> Any:
        """Call the function with `x` and `args` and return what it returns."""
        return self._function(x, *args)
