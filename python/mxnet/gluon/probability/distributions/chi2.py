"""Chi-squared distribution."""

from __future__ import annotations

from mxnet.gluon.probability.distributions.constraint import Positive
from mxnet.gluon.probability.distributions.gamma import Gamma
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
    df: ndarray

    def __init__(self, df: ndarray | float, validate_args: bool | None = None) -> None:
        self._store(df=df)
        checked = self.df
        super().__init__(checked / 2, 2.0, validate_args=None)
        self._check_df(checked, validate_args)

    def _check_df(self, df: ndarray, validate_args: bool | None) -> None:
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._checked(self.arg_constraints["df"], df, "df")
