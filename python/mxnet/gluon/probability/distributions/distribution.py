"""Base class of the distributions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, TypeVar

import numpy as onp

from mxnet import numpy as np
from mxnet.gluon.probability.distributions.constraint import Constraint, is_dependent
from mxnet.gluon.probability.distributions.utils import float_arrays, is_floating, sample_n_shape_converter, where
from mxnet.numpy import ndarray

__all__ = ["Distribution"]

Size = int | tuple[int, ...] | None
_Self = TypeVar("_Self", bound="Distribution")


class Distribution:
    """A family of distributions with parameters.

    The shape to which the parameters broadcast is the *batch shape*: there is one distribution for each of its
    elements. A sample of one of them has `event_dim` axes, which come last.

    A subclass hands its parameters to `_store`, calls this constructor and defines `_log_prob(value)` and
    `_draw(shape)`, where `shape` is the whole shape of the result without the axes of the event.

    Parameters
    ----------
    event_dim : int, optional
        Number of axes of one sample; 0 by default.
    validate_args : bool, optional
        Whether parameters, and values given to `log_prob`, are checked. Values are read then, so each call waits for
        them. The class's default (see `set_default_validate_args`) if None.

    Attributes
    ----------
    has_grad : bool
        Whether samples have gradients with respect to the parameters. Where they have not, the gradient of an
        expectation is that of ``(value * log_prob(sample)).mean()`` with a constant `value`.
    has_enumerate_support : bool
        Whether `enumerate_support` lists all values.
    arg_constraints : dict of str to Constraint
        What the parameters must be.

    Raises
    ------
    ValueError
        If a parameter is checked and not allowed.

    Examples
    --------
    >>> from mxnet.gluon.probability import Distribution, Normal
    >>> normal = Normal(np.zeros(3), 1.0)
    >>> isinstance(normal, Distribution), normal.sample((2, 3)).shape, normal.sample_n(4).shape
    (True, (2, 3), (4, 3))
    """

    has_grad: bool = False
    has_enumerate_support: bool = False
    arg_constraints: Mapping[str, Constraint] = {}
    event_dim: int
    _validate_args: bool = False
    # Attributes that hold parameters, and how many of a parameter's axes belong to one event.
    _names: tuple[str, ...] = ()
    _param_axes: Mapping[str, int] = {}
    # A value inside the support: stands for values outside while the formula is computed.
    _inner_value: float = 0.5

    def __init__(self, event_dim: int | None = None, validate_args: bool | None = None) -> None:
        self.event_dim = 0 if event_dim is None else event_dim
        if validate_args is not None:
            self._validate_args = bool(validate_args)
        if self._validate_args:
            for name in self._names:
                constraint = self.arg_constraints.get(name.lstrip("_"))
                if constraint is not None and not is_dependent(constraint):
                    self._checked(constraint, getattr(self, name), name.lstrip("_"))
        try:
            self._batch_shape()
        except ValueError as error:
            shapes = ", ".join(f"`{name.lstrip('_')}` {getattr(self, name).shape}" for name in self._names)
            raise ValueError(f"{type(self).__name__}: the shapes of {shapes} do not broadcast") from error

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether distributions check their arguments where `validate_args` is not given.

        Parameters
        ----------
        value : bool

        Examples
        --------
        >>> from mxnet.gluon.probability import Distribution
        >>> Distribution.set_default_validate_args(False)
        """
        if not isinstance(value, bool):
            raise TypeError(f"set_default_validate_args: `value` must be a bool, found {value!r}")
        Distribution._validate_args = value

    # ---- parameters ----

    def _store(self, **parameters: Any) -> None:
        """Keep parameters as arrays of one dtype, each under its name as an attribute."""
        arrays = float_arrays(type(self).__name__, {name.lstrip("_"): value for name, value in parameters.items()})
        self._names = tuple(parameters)
        for name in parameters:
            array = arrays[name.lstrip("_")]
            axes = self._param_axes.get(name.lstrip("_"), 0)
            if array.ndim < axes:
                raise ValueError(
                    f"{type(self).__name__}: `{name.lstrip('_')}` must have at least {axes} axes, "
                    f"found shape {array.shape}"
                )
            setattr(self, name, array)

    def _param_batch(self, name: str) -> tuple[int, ...]:
        shape: tuple[int, ...] = getattr(self, name).shape
        return shape[: len(shape) - self._param_axes.get(name.lstrip("_"), 0)]

    def _batch_shape(self) -> tuple[int, ...]:
        return onp.broadcast_shapes(*(self._param_batch(name) for name in self._names))

    def _event_shape(self) -> tuple[int, ...]:
        """Shape of one sample."""
        return ()

    @property
    def _some_param(self) -> ndarray:
        found: ndarray = getattr(self, self._names[0])
        return found

    def _checked(self, constraint: Constraint, value: Any, what: str) -> None:
        try:
            constraint.check(value)
        except ValueError as error:
            raise ValueError(f"{type(self).__name__}: `{what}`: {error}") from None

    def broadcast_to(self: _Self, batch_shape: int | tuple[int, ...]) -> _Self:
        """The same distributions with a larger batch shape.

        Parameters
        ----------
        batch_shape : int or tuple of int

        Returns
        -------
        Distribution
            Of the same class.

        Raises
        ------
        ValueError
            If the batch shape does not broadcast to `batch_shape`.
        """
        shape = sample_n_shape_converter(batch_shape)
        self._check_size("broadcast_to", "batch_shape", shape)
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        for name in self._names:
            array = getattr(self, name)
            own = len(self._param_batch(name))
            setattr(new, name, np.broadcast_to(array, shape + array.shape[own:]))
        return new

    def _in_float64(self: _Self) -> _Self:
        """The same distributions with parameters in float64."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        for name in self._names:
            setattr(new, name, getattr(self, name).astype("float64"))
        return new

    def _check_size(self, function: str, argument: str, shape: tuple[int, ...]) -> None:
        batch = self._batch_shape()
        try:
            fits = onp.broadcast_shapes(batch, shape) == shape
        except ValueError:
            fits = False
        if not fits:
            raise ValueError(
                f"{type(self).__name__}.{function}: batch shape {batch} does not broadcast to `{argument}` {shape}"
            )

    # ---- values ----

    def _value(self, value: Any) -> ndarray:
        """A value as an array of a floating dtype, that of the parameters if it has none."""
        dtype = self._some_param.dtype
        if not isinstance(value, ndarray):
            return np.array(value, dtype=dtype, device=self._some_param.device)
        return value if is_floating(value) else value.astype(dtype)

    def _lacks(self, what: str) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__} has no closed form of {what}")

    @property
    def support(self) -> Any:
        """Constraint: the values that samples have."""
        self._lacks("support")

    def log_prob(self, value: Any) -> ndarray:
        """Logarithm of the density, or of the probability where values are discrete.

        Parameters
        ----------
        value : ndarray or float
            Broadcast against the batch shape; the axes of the event come last.

        Returns
        -------
        ndarray
            Without the axes of the event; minus infinity outside the support, NaN at NaN.

        Raises
        ------
        ValueError
            If arguments are validated and a value is outside the support.
        """
        found = self._value(value)
        support = self.support
        if self._validate_args:
            self._checked(support, found, "value")
        if self.event_dim > 0:
            return self._log_prob(found)
        known = support._holds(found) | (found != found)
        # The formula sees an allowed value everywhere: what it gives elsewhere could bring NaN into gradients.
        inner = where(known, found, np.full_like(found, self._inner_value))
        result = self._log_prob(inner)
        return where(known, result, np.full_like(result, -onp.inf))

    def _log_prob(self, value: ndarray) -> ndarray:
        self._lacks("log_prob")

    def pdf(self, value: Any) -> ndarray:
        """Density, or probability where values are discrete.

        Parameters
        ----------
        value : ndarray or float
            See `log_prob`.

        Returns
        -------
        ndarray
            ``exp(log_prob(value))``.
        """
        return np.exp(self.log_prob(value))

    def cdf(self, value: Any) -> ndarray:
        """Probability of a sample that is at most `value`.

        Parameters
        ----------
        value : ndarray or float
            Broadcast against the batch shape.

        Returns
        -------
        ndarray
            From 0 to 1.

        Raises
        ------
        NotImplementedError
            If the distribution has no closed form of it.
        """
        self._lacks("cdf")

    def icdf(self, value: Any) -> ndarray:
        """Inverse of `cdf`: the smallest value whose `cdf` is at least `value`.

        Parameters
        ----------
        value : ndarray or float
            Probabilities, from 0 to 1.

        Returns
        -------
        ndarray
            NaN for what is no probability.

        Raises
        ------
        NotImplementedError
            If the distribution has no closed form of it.
        """
        self._lacks("icdf")

    # ---- samples ----

    def sample(self, size: Size = None) -> ndarray:
        """Draw samples.

        Parameters
        ----------
        size : int or tuple of int, optional
            Shape of the result without the axes of the event; the batch shape by default, and it must broadcast to
            `size`.

        Returns
        -------
        ndarray, shape ``size + event_shape``

        Raises
        ------
        ValueError
            If the batch shape does not broadcast to `size`.
        """
        if size is None:
            return self._draw(self._batch_shape())
        shape = sample_n_shape_converter(size)
        self._check_size("sample", "size", shape)
        return self._draw(shape)

    def sample_n(self, size: Size = None) -> ndarray:
        """Draw a number of samples from each distribution of the batch.

        Parameters
        ----------
        size : int or tuple of int, optional
            Stands before the batch shape.

        Returns
        -------
        ndarray, shape ``size + batch_shape + event_shape``
        """
        return self._draw(sample_n_shape_converter(size) + self._batch_shape())

    def _draw(self, shape: tuple[int, ...]) -> ndarray:
        self._lacks("sample")

    def enumerate_support(self) -> ndarray:
        """All values that samples can have.

        Returns
        -------
        ndarray, shape ``(n,) + batch_shape + event_shape``

        Raises
        ------
        NotImplementedError
            If there is no end of values, or no list of them (see `has_enumerate_support`).
        """
        self._lacks("enumerate_support")

    # ---- moments ----

    @property
    def mean(self) -> ndarray:
        """ndarray: expectation of a sample; NaN where there is none."""
        self._lacks("mean")

    @property
    def variance(self) -> ndarray:
        """ndarray: variance of each element of a sample; NaN where there is none."""
        self._lacks("variance")

    @property
    def stddev(self) -> ndarray:
        """ndarray: square root of the variance."""
        return np.sqrt(self.variance)

    def entropy(self) -> ndarray:
        """Expectation of ``-log_prob(sample)``.

        Returns
        -------
        ndarray, shape batch_shape
            In nats.

        Raises
        ------
        NotImplementedError
            If the distribution has no closed form of it.
        """
        self._lacks("entropy")

    def perplexity(self) -> ndarray:
        """Exponential of the entropy.

        Returns
        -------
        ndarray, shape batch_shape
        """
        return np.exp(self.entropy())

    def __repr__(self) -> str:
        return f"{type(self).__name__}(batch shape {self._batch_shape()}, event shape {self._event_shape()})"

    def _spread(self, x: ndarray) -> ndarray:
        """`x` with the batch shape: for results that do not depend on all parameters."""
        return np.broadcast_to(x, self._batch_shape() + self._event_shape())
