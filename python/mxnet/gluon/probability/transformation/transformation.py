"""Transformations of random variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.gluon.block import HybridBlock
from mxnet.gluon.probability.distributions.utils import epsilon, smallest_normal, softplus, sum_last
from mxnet.numpy import ndarray

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "ComposeTransform",
    "ExpTransform",
    "PowerTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "TransformBlock",
    "Transformation",
]


class Transformation:
    """A function of arrays, with its inverse and the logarithm of its slope.

    A subclass defines `_forward_compute(x)` and `_inverse_compute(y)`, for densities `log_det_jacobian`, and for
    distribution functions `sign`.

    Attributes
    ----------
    bijective : bool
        Whether each result comes from one argument only.
    event_dim : int
        Number of last axes that are transformed together; 0 for functions of single elements.

    Examples
    --------
    >>> from mxnet.gluon.probability import Transformation
    >>> class Cube(Transformation):
    ...     bijective, sign = True, 1
    ...     def _forward_compute(self, x):
    ...         return x**3
    ...     def _inverse_compute(self, y):
    ...         return np.cbrt(y)
    ...     def log_det_jacobian(self, x, y):
    ...         return np.log(3 * x**2)
    >>> cube = Cube()
    >>> cube(np.array([2.0])), cube.inv(np.array([8.0]))
    (array([8.]), array([2.]))
    """

    bijective: bool = False
    event_dim: int = 0

    def __call__(self, x: Any) -> Any:
        """Apply the transformation.

        Parameters
        ----------
        x : ndarray

        Returns
        -------
        ndarray
        """
        return self._forward_compute(x)

    def _forward_compute(self, x: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define _forward_compute")

    def _inverse_compute(self, y: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define _inverse_compute")

    @property
    def inv(self) -> Transformation:
        """Transformation: the inverse, or a right inverse if there are several arguments for a result."""
        return _InverseTransformation(self)

    @property
    def sign(self) -> Any:
        """Int or ndarray: 1 where the function increases, -1 where it decreases.

        Raises
        ------
        NotImplementedError
            If it does neither.
        """
        raise NotImplementedError(f"{type(self).__name__} is not monotonic")

    def log_det_jacobian(self, x: Any, y: Any) -> Any:
        """Logarithm of the absolute value of the determinant of dy/dx.

        Parameters
        ----------
        x : ndarray
            Argument.
        y : ndarray
            The result at `x`.

        Returns
        -------
        ndarray
            Without the last `event_dim` axes.

        Raises
        ------
        NotImplementedError
            If the transformation has none.
        """
        raise NotImplementedError(f"{type(self).__name__} has no log_det_jacobian")


class _InverseTransformation(Transformation):
    """The inverse of a transformation."""

    def __init__(self, forward: Transformation) -> None:
        self._forward = forward
        self.bijective = forward.bijective
        self.event_dim = forward.event_dim

    @property
    def inv(self) -> Transformation:
        return self._forward

    @property
    def sign(self) -> Any:
        return self._forward.sign

    def _forward_compute(self, x: Any) -> Any:
        return self._forward._inverse_compute(x)

    def _inverse_compute(self, y: Any) -> Any:
        return self._forward(y)

    def log_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self._forward.log_det_jacobian(y, x)


class TransformBlock(Transformation, HybridBlock):
    """A transformation with parameters or child blocks.

    Parameters
    ----------
    *args, **kwargs
        Arguments of `HybridBlock`, which takes none; others are a TypeError.

    Examples
    --------
    >>> from mxnet.gluon.probability import TransformBlock
    >>> class Shift(TransformBlock):
    ...     bijective, sign = True, 1
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.by = mx.gluon.Parameter(shape=(1,), init="ones")
    ...     def _forward_compute(self, x):
    ...         return x + self.by.data()
    ...     def _inverse_compute(self, y):
    ...         return y - self.by.data()
    ...     def log_det_jacobian(self, x, y):
    ...         return np.zeros_like(x)
    >>> shift = Shift()
    >>> shift.initialize()
    >>> shift(np.array([2.0])), shift.inv(np.array([2.0]))
    (array([3.]), array([1.]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        HybridBlock.__init__(self, *args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the hooks and the transformation.

        Parameters
        ----------
        *args, **kwargs
            `x`, the array to transform.

        Returns
        -------
        ndarray
        """
        return HybridBlock.__call__(self, *args, **kwargs)

    def forward(self, x: Any) -> Any:
        """Apply the transformation.

        Parameters
        ----------
        x : ndarray

        Returns
        -------
        ndarray
        """
        return self._forward_compute(x)


class ComposeTransform(Transformation):
    """Transformations one after the other.

    Parameters
    ----------
    parts : sequence of Transformation
        The first is applied first.

    Raises
    ------
    TypeError
        If a part is no transformation.

    Examples
    --------
    >>> from mxnet.gluon.probability import AffineTransform, ComposeTransform, ExpTransform
    >>> both = ComposeTransform([ExpTransform(), AffineTransform(1.0, 2.0)])
    >>> both(np.array([0.0])), both.inv(np.array([3.0]))
    (array([3.]), array([0.]))
    """

    def __init__(self, parts: Sequence[Transformation]) -> None:
        self._parts = list(parts)
        for part in self._parts:
            if not isinstance(part, Transformation):
                raise TypeError(f"ComposeTransform: `parts` must hold transformations, found {type(part).__name__}")
        self.bijective = all(part.bijective for part in self._parts)
        self.event_dim = max((part.event_dim for part in self._parts), default=0)

    @property
    def inv(self) -> Transformation:
        return ComposeTransform([part.inv for part in reversed(self._parts)])

    @property
    def sign(self) -> Any:
        found: Any = 1
        for part in self._parts:
            found = found * part.sign
        return found

    def _forward_compute(self, x: Any) -> Any:
        for part in self._parts:
            x = part(x)
        return x

    def _inverse_compute(self, y: Any) -> Any:
        for part in reversed(self._parts):
            y = part.inv(y)
        return y

    def log_det_jacobian(self, x: Any, y: Any) -> Any:
        found = sum_last(np.zeros_like(x), self.event_dim)
        for index, part in enumerate(self._parts):
            after = y if index == len(self._parts) - 1 else part(x)
            found = found + sum_last(part.log_det_jacobian(x, after), self.event_dim - part.event_dim)
            x = after
        return found


class ExpTransform(Transformation):
    """``y = exp(x)``.

    Examples
    --------
    >>> from mxnet.gluon.probability import ExpTransform
    >>> ExpTransform()(np.array([0.0])), ExpTransform().inv(np.array([1.0]))
    (array([1.]), array([0.]))
    """

    bijective = True
    sign = 1

    def _forward_compute(self, x: Any) -> Any:
        return np.exp(x)

    def _inverse_compute(self, y: Any) -> Any:
        return np.log(y)

    def log_det_jacobian(self, x: Any, y: Any) -> Any:
        return x


class AffineTransform(Transformation):
    """``y = loc + scale * x``.

    Parameters
    ----------
    loc, scale : ndarray or float
        `scale` is not 0.
    event_dim : int
        Number of last axes that belong to one event.

    Examples
    --------
    >>> from mxnet.gluon.probability import AffineTransform
    >>> AffineTransform(1.0, -2.0)(np.array([3.0])), AffineTransform(1.0, -2.0).sign
    (array([-5.]), -1)
    """

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0) -> None:
        self._loc = loc
        self._scale = scale
        self.event_dim = event_dim

    @property
    def sign(self) -> Any:
        return _sign(self._scale)

    def _forward_compute(self, x: Any) -> Any:
        return self._loc + self._scale * x

    def _inverse_compute(self, y: Any) -> Any:
        return (y - self._loc) / self._scale

    def log_det_jacobian(self, x: Any, y: Any) -> Any:
        slope = self._scale if isinstance(self._scale, ndarray) else np.full_like(x, self._scale)
        return sum_last(np.log(np.abs(slope)) + np.zeros_like(y), self.event_dim)


class PowerTransform(Transformation):
    """``y = x**exponent`` for ``x >= 0``.

    Parameters
    ----------
    exponent : ndarray or float
        Not 0.

    Examples
    --------
    >>> from mxnet.gluon.probability import PowerTransform
    >>> PowerTransform(2.0)(np.array([3.0])), PowerTransform(2.0).inv(np.array([9.0]))
    (array([9.]), array([3.]))
    """

    bijective = True

    def __init__(self, exponent: Any) -> None:
        self._exponent = exponent

    @property
    def sign(self) -> Any:
        return _sign(self._exponent)

    def _forward_compute(self, x: Any) -> Any:
        return np.power(x, self._exponent)

    def _inverse_compute(self, y: Any) -> Any:
        return np.power(y, 1 / self._exponent)

    def log_det_jacobian(self, x: Any, y: Any) -> Any:
        return np.log(np.abs(self._exponent * y / x))


class SigmoidTransform(Transformation):
    """``y = 1 / (1 + exp(-x))``.

    Results are kept from rounding to 0 and 1, so that the inverse is finite.

    Examples
    --------
    >>> from mxnet.gluon.probability import SigmoidTransform
    >>> SigmoidTransform()(np.array([0.0])), SigmoidTransform().inv(np.array([0.5]))
    (array([0.5]), array([0.]))
    """

    bijective = True
    sign = 1

    def _forward_compute(self, x: Any) -> Any:
        y = npx.sigmoid(x)
        return np.clip(y, smallest_normal(y), 1 - epsilon(y) / 2)

    def _inverse_compute(self, y: Any) -> Any:
        return np.log(y) - np.log1p(-y)

    def log_det_jacobian(self, x: Any, y: Any) -> Any:
        return -softplus(-x) - softplus(x)


class SoftmaxTransform(Transformation):
    """``y = exp(x) / sum(exp(x))`` along the last axis.

    It is no bijection, because a constant added to `x` does not matter, and so has no `log_det_jacobian`. The inverse
    gives ``log(y)``.

    Examples
    --------
    >>> from mxnet.gluon.probability import SoftmaxTransform
    >>> SoftmaxTransform()(np.array([0.0, 0.0]))
    array([0.5, 0.5])
    """

    event_dim = 1

    def _forward_compute(self, x: Any) -> Any:
        return npx.softmax(x, axis=-1)

    def _inverse_compute(self, y: Any) -> Any:
        return np.log(y)


class AbsTransform(Transformation):
    """``y = abs(x)``.

    It is no bijection; the inverse gives the argument that is not negative.

    Examples
    --------
    >>> from mxnet.gluon.probability import AbsTransform
    >>> AbsTransform()(np.array([-2.0])), AbsTransform().inv(np.array([2.0]))
    (array([2.]), array([2.]))
    """

    def _forward_compute(self, x: Any) -> Any:
        return np.abs(x)

    def _inverse_compute(self, y: Any) -> Any:
        return y


def _sign(x: Any) -> Any:
    return np.sign(x) if isinstance(x, ndarray) else (x > 0) - (x < 0)
