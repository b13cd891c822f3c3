"""Methods of generators: distributions that gamma numbers make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import ndarray
from mxnet.base import DTypeLike
from mxnet.device import Device
from mxnet.numpy._generator_continuous import Size, of_out

_random = _core.namespaces["random"]


class GammaFamily:
    """The gamma distribution and what is made of its numbers."""

    _call: Callable[..., Any]

    def standard_gamma(
        self,
        shape: ArrayLike,
        size: Size = None,
        dtype: DTypeLike | None = None,
        out: ndarray | None = None,
        *,
        device: Device | None = None,
    ) -> Any:
        """Gamma numbers of shape parameter `shape` and scale 1.

        Parameters
        ----------
        shape : array_like
            Shape parameter; not negative.
        size, dtype : optional
            Shape and type of the result; see `Generator`.
        out : ndarray, optional
            Where the result is written.
        device : Device, optional
            Where the result is made.

        Returns
        -------
        ndarray
            Of shape `size`.

        Raises
        ------
        ValueError
            If a parameter is out of its range.

        Examples
        --------
        >>> rng = np.random.default_rng(1)
        >>> round(float(rng.standard_gamma(4.0, size=100000).mean()), 1)
        4.0
        """
        size, dtype = of_out(size, dtype, out)
        return self._call(_random["standard_gamma"], shape, size, dtype, device, out)

    def gamma(
        self,
        shape: ArrayLike,
        scale: ArrayLike = 1.0,
        size: Size = None,
        *,
        dtype: DTypeLike | None = None,
        device: Device | None = None,
    ) -> Any:
        """Gamma numbers of shape parameter `shape` and scale `scale`.

        Parameters
        ----------
        shape : array_like
            Shape parameter; not negative.
        scale : array_like
            How wide it is; not negative.
        size, dtype, device : optional
            Shape, type and place of the result; see `Generator`.

        Returns
        -------
        ndarray
            Of shape `size`.

        Raises
        ------
        ValueError
            If a parameter is out of its range.

        Examples
        --------
        >>> rng = np.random.default_rng(1)
        >>> round(float(rng.gamma(2.0, 3.0, size=100000).mean()), 1)
        6.0
        """
        return self._call(_random["gamma"], shape, scale, size, dtype, device)

    def chisquare(
        self, df: ArrayLike, size: Size = None, *, dtype: DTypeLike | None = None, device: Device | None = None
    ) -> Any:
        """Chi-square numbers of `df` degrees of freedom.

        Parameters
        ----------
        df : array_like
            Degrees of freedom, above 0.
        size, dtype, device : optional
            Shape, type and place of the result; see `Generator`.

        Returns
        -------
        ndarray
            Of shape `size`.

        Raises
        ------
        ValueError
            If a parameter is out of its range.

        Examples
        --------
        >>> rng = np.random.default_rng(1)
        >>> round(float(rng.chisquare(3.0, size=100000).mean()), 1)
        3.0
        """
        return self._call(_random["chisquare"], df, size, dtype, device)

    def noncentral_chisquare(
        self,
        df: ArrayLike,
        nonc: ArrayLike,
        size: Size = None,
        *,
        dtype: DTypeLike | None = None,
        device: Device | None = None,
    ) -> Any:
        """Chi-square numbers of `df` degrees of freedom and non-centrality `nonc`.

        Parameters
        ----------
        df : array_like
            Degrees of freedom, above 0.
        nonc : array_like
            Non-centrality, not negative.
        size, dtype, device : optional
            Shape, type and place of the result; see `Generator`.

        Returns
        -------
        ndarray
            Of shape `size`.

        Raises
        ------
        ValueError
            If a parameter is out of its range.

        Examples
        --------
        >>> rng = np.random.default_rng(1)
        >>> round(float(rng.noncentral_chisquare(3.0, 2.0, size=100000).mean()), 1)
        5.0
        """
        return self._call(_random["noncentral_chisquare"], df, nonc, size, dtype, device)

    def beta(
        self,
        a: ArrayLike,
        b: ArrayLike,
        size: Size = None,
        *,
        dtype: DTypeLike | None = None,
        device: Device | None = None,
    ) -> Any:
        """Beta numbers of parameters `a` and `b`.

        Parameters
        ----------
        a : array_like
            First parameter, above 0.
        b : array_like
            Second parameter, above 0.
        size, dtype, device : optional
            Shape, type and place of the result; see `Generator`.

        Returns
        -------
        ndarray
            Of shape `size`.

        Raises
        ------
        ValueError
            If a parameter is out of its range.

        Examples
        --------
        >>> rng = np.random.default_rng(1)
        >>> round(float(rng.beta(1.0, 3.0, size=100000).mean()), 2)
        0.25
        """
        return self._call(_random["beta"], a, b, size, dtype, device)

    def f(
        self,
        dfnum: ArrayLike,
        dfden: ArrayLike,
        size: Size = None,
        *,
        dtype: DTypeLike | None = None,
        device: Device | None = None,
    ) -> Any:
        """Fisher's F numbers of `dfnum` and `dfden` degrees of freedom.

        Parameters
        ----------
        dfnum : array_like
            Degrees of freedom of the numerator, above 0.
        dfden : array_like
            Degrees of freedom of the denominator, above 0.
        size, dtype, device : optional
            Shape, type and place of the result; see `Generator`.

        Returns
        -------
        ndarray
            Of shape `size`.

        Raises
        ------
        ValueError
            If a parameter is out of its range.

        Examples
        --------
        >>> rng = np.random.default_rng(1)
        >>> round(float(rng.f(5.0, 10.0, size=100000).mean()), 1)  # 10 / (10 - 2)
        1.2
        """
        return self._call(_random["f"], dfnum, dfden, size, dtype, device)

    def noncentral_f(
        self,
        dfnum: ArrayLike,
        dfden: ArrayLike,
        nonc: ArrayLike,
        size: Size = None,
        *,
        dtype: DTypeLike | None = None,
        device: Device | None = None,
    ) -> Any:
        """F numbers of `dfnum` and `dfden` degrees of freedom and non-centrality `nonc`.

        Parameters
        ----------
        dfnum : array_like
            Degrees of freedom of the numerator, above 0.
        dfden : array_like
            Degrees of freedom of the denominator, above 0.
        nonc : array_like
            Non-centrality, not negative.
        size, dtype, device : optional
            Shape, type and place of the result; see `Generator`.

        Returns
        -------
        ndarray
            Of shape `size`.

        Raises
        ------
        ValueError
            If a parameter is out of its range.

        Examples
        --------
        >>> rng = np.random.default_rng(1)
        >>> rng.noncentral_f(3.0, 20.0, 2.0, size=4).shape
        (4,)
        """
        return self._call(_random["noncentral_f"], dfnum, dfden, nonc, size, dtype, device)

    def dirichlet(self, alpha: ArrayLike, size: Size = None, *, dtype: DTypeLike | None = None) -> Any:
        """Shares of the Dirichlet distribution: shape `size` + (k,) for `alpha` of shape (k,); each row sums to 1.

        Parameters
        ----------
        alpha : array_like
            Parameters, (k,), above 0.
        size, dtype : optional
            Shape and type of the result; see `Generator`.

        Returns
        -------
        ndarray
            Of shape `size + (k,)`.

        Raises
        ------
        ValueError
            If a parameter is out of its range.

        Examples
        --------
        >>> rng = np.random.default_rng(1)
        >>> rng.dirichlet([1.0, 2.0, 3.0], size=2).sum(axis=1).round(4)
        array([1., 1.])
        """
        return self._call(_random["dirichlet"], alpha, size, dtype)
