"""Activation functions as layers."""

from __future__ import annotations

from typing import Any

from mxnet import initializer
from mxnet import numpy_extension as npx
from mxnet._argument_repr import argument_repr
from mxnet.gluon.block import HybridBlock
from mxnet.gluon.parameter import Parameter
from mxnet.numpy import ndarray

__all__ = ["ELU", "GELU", "SELU", "Activation", "LeakyReLU", "Mish", "PReLU", "SiLU", "Swish", "optional_activation"]

_KNOWN = ("relu", "sigmoid", "log_sigmoid", "mish", "tanh", "softrelu", "softsign")


class Activation(HybridBlock):
    """An activation function by name.

    Parameters
    ----------
    activation : {"relu", "sigmoid", "log_sigmoid", "mish", "tanh", "softrelu", "softsign"}

    Raises
    ------
    ValueError
        If there is no such function.

    Examples
    --------
    >>> mx.gluon.nn.Activation('relu')(np.array([-1.0, 2.0]))
    array([0., 2.])
    """

    def __init__(self, activation: str) -> None:
        if activation not in _KNOWN:
            raise ValueError(f"`activation` must be one of {', '.join(_KNOWN)}, found {activation!r}")
        super().__init__()
        self._act_type = activation

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._act_type})"

    def forward(self, x: ndarray) -> ndarray:
        """Apply the function to every element of `x`, any shape; returns an array of that shape."""
        return npx.activation(x, act_type=self._act_type)


def optional_activation(activation: str | None) -> Activation | None:
    """The layer of that name, or None without a name."""
    return None if activation is None else Activation(activation)


class LeakyReLU(HybridBlock):
    """Leaky ReLU: ``x`` where it is positive, else ``alpha * x``.

    Parameters
    ----------
    alpha : float
        At least 0.

    Raises
    ------
    ValueError
        If `alpha` is negative.

    Examples
    --------
    >>> mx.gluon.nn.LeakyReLU(0.1)(np.array([-1.0, 2.0]))
    array([-0.1,  2. ])
    """

    def __init__(self, alpha: float) -> None:
        if alpha < 0:
            raise ValueError(f"`alpha` must be at least 0, found {alpha}")
        super().__init__()
        self._alpha = alpha

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._alpha})"

    def forward(self, x: ndarray) -> ndarray:
        """Apply the function to every element of `x`, any shape; returns an array of that shape."""
        return npx.leaky_relu(x, act_type="leaky", slope=self._alpha)


class PReLU(HybridBlock):
    """Leaky ReLU with a slope that is learnt.

    Parameters
    ----------
    alpha_initializer : Initializer or str, optional
        0.25 by default.
    in_channels : int
        Number of slopes: 1, or the size of axis 1 of the input.

    Notes
    -----
    Source: K. He, X. Zhang, S. Ren and J. Sun, "Delving Deep into Rectifiers", 2015.

    Examples
    --------
    >>> net = mx.gluon.nn.PReLU()
    >>> net.initialize()
    >>> net(np.array([[-1.0, 2.0]]))
    array([[-0.25,  2.  ]])
    """

    def __init__(self, alpha_initializer: Any = None, in_channels: int = 1) -> None:
        super().__init__()
        init = initializer.Constant(0.25) if alpha_initializer is None else alpha_initializer
        self.alpha = Parameter("alpha", shape=(in_channels,), init=init)

    def forward(self, x: ndarray) -> ndarray:
        """Apply the function to `x` of shape ``(n, c, ...)``; returns an array of that shape."""
        return npx.leaky_relu(x, self.alpha.data(x.device), act_type="prelu")


class ELU(HybridBlock):
    """Exponential linear unit: ``x`` where it is positive, else ``alpha * (exp(x) - 1)``.

    Parameters
    ----------
    alpha : float

    Examples
    --------
    >>> mx.gluon.nn.ELU(alpha=1.0)(np.array([-1.0, 2.0]))
    array([-0.63212055,  2.        ])
    """

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self._alpha = alpha

    def __repr__(self) -> str:
        return argument_repr(self)

    def forward(self, x: ndarray) -> ndarray:
        """Apply the function to every element of `x`, any shape; returns an array of that shape."""
        return npx.leaky_relu(x, act_type="elu", slope=self._alpha)


class SELU(HybridBlock):
    """Scaled `ELU`, so that the output of many layers keeps mean 0 and variance 1.

    Notes
    -----
    Source: G. Klambauer et al., "Self-Normalizing Neural Networks", 2017.

    Examples
    --------
    >>> mx.gluon.nn.SELU()(np.array([-1.0, 2.0]))
    array([-1.1113307,  2.101402 ])
    """

    def forward(self, x: ndarray) -> ndarray:
        """Apply the function to every element of `x`, any shape; returns an array of that shape."""
        return npx.leaky_relu(x, act_type="selu")


class GELU(HybridBlock):
    """Gaussian error linear unit: ``x`` times the normal distribution function of ``x``.

    Parameters
    ----------
    approximation : {"erf", "tanh"}
        Exact, or with the hyperbolic tangent.

    Raises
    ------
    ValueError
        If `approximation` is unknown.

    Notes
    -----
    Source: D. Hendrycks and K. Gimpel, "Gaussian Error Linear Units", 2016.

    Examples
    --------
    >>> mx.gluon.nn.GELU()(np.array([-1.0, 2.0]))
    array([-0.15865526,  1.9544997 ])
    """

    def __init__(self, approximation: str = "erf") -> None:
        if approximation not in ("erf", "tanh"):
            raise ValueError(f"`approximation` must be 'erf' or 'tanh', found {approximation!r}")
        super().__init__()
        self._approximation = approximation

    def __repr__(self) -> str:
        return argument_repr(self)

    def forward(self, x: ndarray) -> ndarray:
        """Apply the function to every element of `x`, any shape; returns an array of that shape."""
        return npx.gelu(x, approximate=self._approximation == "tanh")


class Swish(HybridBlock):
    """Swish: ``x * sigmoid(beta * x)``.

    Parameters
    ----------
    beta : float

    Notes
    -----
    Source: P. Ramachandran, B. Zoph and Q. V. Le, "Searching for Activation Functions", 2017.

    Examples
    --------
    >>> mx.gluon.nn.Swish(beta=2.0)(np.array([-1.0, 2.0]))
    array([-0.11920292,  1.9640275 ])
    """

    def __init__(self, beta: float = 1.0) -> None:
        super().__init__()
        self._beta = beta

    def __repr__(self) -> str:
        return argument_repr(self)

    def forward(self, x: ndarray) -> ndarray:
        """Apply the function to every element of `x`, any shape; returns an array of that shape."""
        return x * npx.sigmoid(x if self._beta == 1.0 else self._beta * x)


class SiLU(Swish):
    """Sigmoid linear unit: ``x * sigmoid(x)``.

    Examples
    --------
    >>> mx.gluon.nn.SiLU()(np.array([-1.0, 2.0]))
    array([-0.26894143,  1.761594  ])
    """

    def __init__(self) -> None:
        super().__init__(1.0)


class Mish(Activation):
    """Mish: ``x * tanh(log(1 + exp(x)))``.

    Notes
    -----
    Source: D. Misra, "Mish: A Self Regularized Non-Monotonic Activation Function", 2019.
    """

    def __init__(self) -> None:
        super().__init__("mish")
