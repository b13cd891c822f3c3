"""Exponential families."""

from __future__ import annotations

import functools

from mxnet import autograd
from mxnet.gluon.probability.distributions.distribution import Distribution
from mxnet.numpy import ndarray

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Distributions of density ``h(x) * exp(sum(eta * t(x)) - A(eta))``.

    A subclass that has no formula of its own for the entropy defines the property `_natural_params` (a tuple of arrays,
    eta), the method `_log_normalizer` (A, of such arrays, element by element) and the property `_mean_carrier_measure`
    (the expectation of ``log(h(x))``).

    Parameters
    ----------
    event_dim : int, optional
    validate_args : bool, optional
        See `Distribution`.

    Examples
    --------
    >>> from mxnet.gluon.probability import ExponentialFamily
    >>> class Decay(ExponentialFamily):  # the density rate * exp(-rate * x)
    ...     def __init__(self, rate):
    ...         self._store(rate=rate)
    ...         super().__init__()
    ...     _natural_params = property(lambda self: (-self.rate,))
    ...     _mean_carrier_measure = 0.0
    ...     def _log_normalizer(self, eta):
    ...         return -np.log(-eta)
    >>> Decay(np.array([1.0])).entropy()
    array([1.])
    """

    @property
    def _natural_params(self) -> tuple[ndarray, ...]:
        self._lacks("natural parameters")

    def _log_normalizer(self, *natural_params: ndarray) -> ndarray:
        self._lacks("log normalizer")

    @property
    def _mean_carrier_measure(self) -> ndarray | float:
        self._lacks("mean carrier measure")

    def entropy(self) -> ndarray:
        """Expectation of ``-log_prob(sample)``.

        Returns
        -------
        ndarray, shape batch_shape
            In nats.

        Notes
        -----
        ``A(eta) - sum(eta * dA/deta) - E[log h]``, since the gradient of A is the expectation of t. Source: Nielsen and
        Nock, "Entropies and cross-entropies of exponential families", ICIP 2010.
        """
        was_recording = autograd.is_recording()
        etas = list(self._natural_params)
        if not was_recording:
            etas = [eta.detach() for eta in etas]
            for eta in etas:
                eta.attach_grad()
        with autograd.record(train_mode=autograd.is_training()):
            normalizer = self._log_normalizer(*etas)
            grads = autograd.grad(normalizer.sum(), etas, create_graph=was_recording, retain_graph=was_recording)
        with autograd.pause() if not was_recording else autograd.record(train_mode=autograd.is_training()):
            products = [eta * grad for eta, grad in zip(etas, grads, strict=True)]
            return normalizer - functools.reduce(lambda x, y: x + y, products) - self._mean_carrier_measure
