"""Chi-squared distribution."""

from __future__ import annotations

from mxnet.gluon.probability.distributions.constraint import Positive
from mxnet.gluon.probability.distributions.gamma import Gamma
from mxnet.gluon.probability.distributions.utils import float_arrays
from mxnet.numpy import ndarray

__all__ = ["Chi2"]


class Chi2(Gamma):
    """Chi-squared distribution: that of the sum of `df` squared standard normal numbers.

    Parameters
    ----------
    df : ndarray or float
        Degrees of freedom, above 0.
    validate_args : bool, optional
        See `Distribution`.

    Examples
    --------
    >>> from mxnet.gluon.probability import Chi2
    >>> Chi2(3.0).mean, Chi2(3.0).variance
    (array(3.), array(6.))
    """

    arg_constraints = {"df": Positive()}

    def __init__(self, df: ndarray | float, validate_args: bool | None = None) -> None:
        given = float_arrays("Chi2", {"df": df})["df"]
        super().__init__(given / 2, 2.0, validate_args=validate_args)
        if self._validate_args:
            self._checked(self.arg_constraints["df"], given, "df")

    @property
    def df(self) -> ndarray:
        """ndarray: degrees of freedom."""
        return 2 * self.shape
