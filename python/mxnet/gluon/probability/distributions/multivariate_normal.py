"""Multivariate normal distribution."""

from __future__ import annotations

from typing import Any

from mxnet import numpy as np
from mxnet.gluon.probability.distributions.constraint import LowerCholesky, PositiveDefinite, Real
from mxnet.gluon.probability.distributions.distribution import Distribution
from mxnet.gluon.probability.distributions.utils import LOG_SQRT_2PI
from mxnet.numpy import ndarray

__all__ = ["MultivariateNormal"]


class MultivariateNormal(Distribution):
    """Normal distribution of vectors of length k.

    Parameters
    ----------
    loc : ndarray, shape (..., k)
        Mean.
    cov : ndarray, shape (..., k, k), optional
        Covariances, positive definite. Exactly one of `cov`, `precision` and `scale_tril` is given.
    precision : ndarray, shape (..., k, k), optional
        Inverse of the covariances.
    scale_tril : ndarray, shape (..., k, k), optional
        Lower triangular L with a positive diagonal; the covariances are ``L @ L.T``.
    validate_args : bool, optional
        See `Distribution`.

    Examples
    --------
    >>> from mxnet.gluon.probability import MultivariateNormal
    >>> normal = MultivariateNormal(np.zeros(2), cov=np.array([[4.0, 0.0], [0.0, 1.0]]))
    >>> normal.scale_tril
    array([[2., 0.],
           [0., 1.]])
    >>> normal.sample(3).shape, normal.log_prob(np.zeros((3, 2))).shape
    ((3, 2), (3,))
    """

    has_grad = True
    arg_constraints = {
        "loc": Real(),
        "cov": PositiveDefinite(),
        "precision": PositiveDefinite(),
        "scale_tril": LowerCholesky(),
    }
    support = Real()
    _param_axes = {"loc": 1, "cov": 2, "precision": 2, "scale_tril": 2}
    loc: ndarray

    def __init__(
        self,
        loc: ndarray,
        cov: ndarray | None = None,
        precision: ndarray | None = None,
        scale_tril: ndarray | None = None,
        validate_args: bool | None = None,
    ) -> None:
        matrices = {"_cov": cov, "_precision": precision, "_scale_tril": scale_tril}
        given: dict[str, Any] = {name: matrix for name, matrix in matrices.items() if matrix is not None}
        if len(given) != 1:
            found = ", ".join(f"`{name[1:]}`" for name in given) or "none"
            raise ValueError(
                "MultivariateNormal: exactly one of `cov`, `precision` and `scale_tril` must be given, found " + found
            )
        self._store(loc=loc, **given)
        (self._form,) = given
        shape = getattr(self, self._form).shape
        if shape[-2:] != (self.loc.shape[-1],) * 2:
            raise ValueError(
                f"MultivariateNormal: the last two axes of `{self._form[1:]}` must have the length of the last axis of "
                f"`loc`, found shapes {shape} and {self.loc.shape}"
            )
        super().__init__(event_dim=1, validate_args=validate_args)

    def _event_shape(self) -> tuple[int, ...]:
        return (self.loc.shape[-1],)

    def _factor(self) -> ndarray:
        """The lower triangular factor of what was given: of the precision, or of the covariances."""
        matrix: ndarray = getattr(self, self._form)
        return matrix if self._form == "_scale_tril" else np.linalg.cholesky(matrix)

    @property
    def scale_tril(self) -> ndarray:
        """ndarray, shape (..., k, k): lower triangular factor of the covariances."""
        return np.linalg.cholesky(self.cov) if self._form == "_precision" else self._factor()

    @property
    def cov(self) -> ndarray:
        """ndarray, shape (..., k, k): covariances."""
        matrix: ndarray = getattr(self, self._form)
        if self._form == "_cov":
            return matrix
        return np.linalg.inv(matrix) if self._form == "_precision" else np.matmul(matrix, np.matrix_transpose(matrix))

    @property
    def precision(self) -> ndarray:
        """ndarray, shape (..., k, k): inverse of the covariances."""
        matrix: ndarray = getattr(self, self._form)
        return matrix if self._form == "_precision" else np.linalg.inv(self.cov)

    def _log_det_scale(self) -> ndarray:
        """Logarithm of the determinant of `scale_tril`."""
        logs = np.log(np.diagonal(self._factor(), axis1=-2, axis2=-1)).sum(axis=-1)
        return -logs if self._form == "_precision" else logs

    def _log_prob(self, value: ndarray) -> ndarray:
        factor, difference = self._factor(), (value - self.loc)[..., None]
        if self._form == "_precision":
            standard = np.matmul(np.matrix_transpose(factor), difference)
        else:
            standard = np.linalg.solve(factor, difference)
        squares = (standard[..., 0] ** 2).sum(axis=-1)
        return -squares / 2 - self._log_det_scale() - self.loc.shape[-1] * LOG_SQRT_2PI

    def _draw(self, shape: tuple[int, ...]) -> ndarray:
        size = shape + self._event_shape()
        noise = np.random.normal(np.zeros_like(self.loc), np.ones_like(self.loc), size)[..., None]
        factor = self._factor()
        if self._form == "_precision":
            moved = np.linalg.solve(np.matrix_transpose(factor), noise)
        else:
            moved = np.matmul(factor, noise)
        return self.loc + moved[..., 0]

    @property
    def mean(self) -> ndarray:
        return self._spread(self.loc)

    @property
    def variance(self) -> ndarray:
        return self._spread(np.diagonal(self.cov, axis1=-2, axis2=-1))

    def entropy(self) -> ndarray:
        found = self.loc.shape[-1] * (0.5 + LOG_SQRT_2PI) + self._log_det_scale()
        return np.broadcast_to(found, self._batch_shape())
