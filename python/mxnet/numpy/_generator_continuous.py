"""Methods of generators: continuous distributions that one uniform or normal number makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import ndarray
from mxnet.base import DTypeLike
from mxnet.device import Device

Size = int | Sequence[int] | None

_random = _core.namespaces["random"]
_np = _core.namespaces["numpy"]
_normal, _standard_normal = _random["normal"], _random["standard_normal"]


class Continuous:
    """Continuous distributions, those of the gamma family aside."""

    _call: Callable[..., Any]

    def standard_normal(
        self,
        size: Size = None,
        dtype: DTypeLike | None = None,
        out: ndarray | None = None,
        *,
        device: Device | None = None,
    ) -> Any:
        """Normal numbers of mean 0 and deviation 1.

        Parameters
        ----------
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

        Examples
        --------
        >>> rng = np.random.default_rng(1)
        >>> x = rng.standard_normal(10000)
        >>> abs(round(float(x.mean()), 1)), round(float(x.std()), 1)
        (0.0, 1.0)
        """
        if out is None:
            return self._call(_standard_normal, size, dtype, device)
        size, dtype = of_out(size, dtype, out)
        return self._call(_standard_normal, size, dtype, device, out)

    def standard_exponential(
        self,
        size: Size = None,
        dtype: DTypeLike | None = None,
        method: str = "zig",
        out: ndarray | None = None,
        *,
        device: Device | None = None,
    ) -> Any:
        """Exponential numbers of mean 1.

        Parameters
        ----------
        size, dtype : optional
            Shape and type of the result; see `Generator`.
        method : {'zig', 'inv'}
            'zig' is the generator's own way, the same numbers as those of `exponential`; 'inv' is ``-log1p(-u)`` of
            the numbers `u` that `random` would give.
        out : ndarray, optional
            Where the result is written.
        device : Device, optional
            Where the result is made.

        Returns
        -------
        ndarray
            Of shape `size`.

        Examples
        --------
        >>> rng = np.random.default_rng(1)
        >>> round(float(rng.standard_exponential(100000).mean()), 1)
        1.0
        >>> u, x = np.random.default_rng(1).random(2), np.random.default_rng(1).standard_exponential(2, method='inv')
        >>> bool((x == -np.log1p(-u)).all())
        True
        """
        if method not in ("zig", "inv"):
            raise ValueError(f"`method` must be 'zig' or 'inv', found {method!r}")
        size, dtype = of_out(size, dtype, out)
        if method == "inv":
            u = self._call(_random["random"], size, dtype, device)
            return _np["negative"](_np["log1p"](_np["negative"](u)), out)
        return self._call(_random["standard_exponential"], size, dtype, device, out)

    def standard_cauchy(
        self, size: Size = None, *, dtype: DTypeLike | None = None, device: Device | None = None
    ) -> Any:
        """Cauchy numbers of mode 0 and scale 1.

        Parameters
        ----------
        size, dtype, device : optional
            Shape, type and place of the result; see `Generator`.

        Returns
        -------
        ndarray
            Of shape `size`.

        Examples
        --------
        >>> rng = np.random.default_rng(1)
        >>> abs(round(float(np.median(rng.standard_cauchy(100000))), 1))
        0.0
        """
        return self._call(_random["standard_cauchy"], size, dtype, device)

    def standard_t(
        self, df: ArrayLike, size: Size = None, *, dtype: DTypeLike | None = None, device: Device | None = None
    ) -> Any:
        """Student's t numbers of `df` degrees of freedom.

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
        >>> round(float(rng.standard_t(6.0, size=100000).var()), 1)  # 6 / (6 - 2)
        1.5
        """
        return self._call(_random["standard_t"], df, size, dtype, device)

    def normal(
        self,
        loc: ArrayLike = 0.0,
        scale: ArrayLike = 1.0,
        size: Size = None,
        *,
        dtype: DTypeLike | None = None,
        device: Device | None = None,
    ) -> Any:
        """Normal numbers of mean `loc` and standard deviation `scale`.

        Parameters
        ----------
        loc : array_like
            Mean.
        scale : array_like
            Standard deviation, not negative.
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
        >>> x = rng.normal(5.0, 2.0, size=100000)
        >>> round(float(x.mean()), 1), round(float(x.std()), 1)
        (5.0, 2.0)
        >>> rng.normal([0.0, 100.0], 1.0, size=(3, 2)).shape
        (3, 2)
        """
        return self._call(_normal, loc, scale, size, dtype, device)

    def laplace(
        self,
        loc: ArrayLike = 0.0,
        scale: ArrayLike = 1.0,
        size: Size = None,
        *,
        dtype: DTypeLike | None = None,
        device: Device | None = None,
    ) -> Any:
        """Laplace numbers of mean `loc` and scale `scale`.

        Parameters
        ----------
        loc : array_like
            Where the distribution lies.
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
        >>> round(float(np.abs(rng.laplace(0.0, 2.0, size=100000)).mean()), 1)
        2.0
        """
        return self._call(_random["laplace"], loc, scale, size, dtype, device)

    def logistic(
        self,
        loc: ArrayLike = 0.0,
        scale: ArrayLike = 1.0,
        size: Size = None,
        *,
        dtype: DTypeLike | None = None,
        device: Device | None = None,
    ) -> Any:
        """Logistic numbers of mean `loc` and scale `scale`.

        Parameters
        ----------
        loc : array_like
            Where the distribution lies.
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
        >>> round(float(rng.logistic(3.0, 1.0, size=100000).mean()), 1)
        3.0
        """
        return self._call(_random["logistic"], loc, scale, size, dtype, device)

    def gumbel(
        self,
        loc: ArrayLike = 0.0,
        scale: ArrayLike = 1.0,
        size: Size = None,
        *,
        dtype: DTypeLike | None = None,
        device: Device | None = None,
    ) -> Any:
        """Gumbel numbers of mode `loc` and scale `scale`.

        Parameters
        ----------
        loc : array_like
            Where the distribution lies.
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
        >>> round(float(rng.gumbel(0.0, 1.0, size=100000).mean()), 1)  # Euler's constant
        0.6
        """
        return self._call(_random["gumbel"], loc, scale, size, dtype, device)

    def exponential(
        self, scale: ArrayLike = 1.0, size: Size = None, *, dtype: DTypeLike | None = None, device: Device | None = None
    ) -> Any:
        """Exponential numbers of mean `scale`.

        Parameters
        ----------
        scale : array_like
            Mean, not negative.
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
        >>> round(float(rng.exponential(2.0, size=100000).mean()), 1)
        2.0
        """
        return self._call(_random["exponential"], scale, size, dtype, device)

    def rayleigh(
        self, scale: ArrayLike = 1.0, size: Size = None, *, dtype: DTypeLike | None = None, device: Device | None = None
    ) -> Any:
        """Rayleigh numbers of mode `scale`.

        Parameters
        ----------
        scale : array_like
            Mode, not negative.
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
        >>> round(float(rng.rayleigh(2.0, size=100000).mean()), 1)  # 2 * sqrt(pi / 2)
        2.5
        """
        return self._call(_random["rayleigh"], scale, size, dtype, device)

    def weibull(
        self, a: ArrayLike, size: Size = None, *, dtype: DTypeLike | None = None, device: Device | None = None
    ) -> Any:
        """Weibull numbers of shape parameter `a` and scale 1.

        Parameters
        ----------
        a : array_like
            Shape parameter, above 0.
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
        >>> round(float(rng.weibull(1.0, size=100000).mean()), 1)
        1.0
        """
        return self._call(_random["weibull"], a, size, dtype, device)

    def pareto(
        self, a: ArrayLike, size: Size = None, *, dtype: DTypeLike | None = None, device: Device | None = None
    ) -> Any:
        """Lomax numbers (Pareto of the second kind) of shape parameter `a`.

        Parameters
        ----------
        a : array_like
            Shape parameter, above 0.
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
        >>> round(float(rng.pareto(3.0, size=100000).mean()), 1)  # 1 / (3 - 1)
        0.5
        """
        return self._call(_random["pareto"], a, size, dtype, device)

    def power(
        self, a: ArrayLike, size: Size = None, *, dtype: DTypeLike | None = None, device: Device | None = None
    ) -> Any:
        """Numbers in [0, 1] of density a x^(a - 1).

        Parameters
        ----------
        a : array_like
            Shape parameter, above 0.
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
        >>> round(float(rng.power(3.0, size=100000).mean()), 2)  # 3 / (3 + 1)
        0.75
        """
        return self._call(_random["power"], a, size, dtype, device)

    def lognormal(
        self,
        mean: ArrayLike = 0.0,
        sigma: ArrayLike = 1.0,
        size: Size = None,
        *,
        dtype: DTypeLike | None = None,
        device: Device | None = None,
    ) -> Any:
        """Numbers whose logarithm is normal of mean `mean` and standard deviation `sigma`.

        Parameters
        ----------
        mean : array_like
            Mean of the logarithm.
        sigma : array_like
            Standard deviation of the logarithm, not negative.
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
        >>> round(float(np.log(rng.lognormal(1.0, 0.5, size=100000)).mean()), 1)
        1.0
        """
        return self._call(_random["lognormal"], mean, sigma, size, dtype, device)

    def triangular(
        self,
        left: ArrayLike,
        mode: ArrayLike,
        right: ArrayLike,
        size: Size = None,
        *,
        dtype: DTypeLike | None = None,
        device: Device | None = None,
    ) -> Any:
        """Numbers of the triangular distribution from `left` over its peak at `mode` to `right`.

        Parameters
        ----------
        left : array_like
            Lower bound.
        mode : array_like
            Where the peak is, between the bounds.
        right : array_like
            Upper bound.
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
        >>> round(float(rng.triangular(0.0, 1.0, 5.0, size=100000).mean()), 1)
        2.0
        """
        return self._call(_random["triangular"], left, mode, right, size, dtype, device)

    def wald(
        self,
        mean: ArrayLike,
        scale: ArrayLike,
        size: Size = None,
        *,
        dtype: DTypeLike | None = None,
        device: Device | None = None,
    ) -> Any:
        """Inverse Gaussian numbers of mean `mean` and scale `scale`.

        Parameters
        ----------
        mean : array_like
            Mean, above 0.
        scale : array_like
            Scale, above 0.
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
        >>> round(float(rng.wald(2.0, 3.0, size=100000).mean()), 1)
        2.0
        """
        return self._call(_random["wald"], mean, scale, size, dtype, device)

    def vonmises(
        self,
        mu: ArrayLike,
        kappa: ArrayLike,
        size: Size = None,
        *,
        dtype: DTypeLike | None = None,
        device: Device | None = None,
    ) -> Any:
        """Angles in [-pi, pi] around `mu` with concentration `kappa`.

        Parameters
        ----------
        mu : array_like
            The angle around which they lie.
        kappa : array_like
            Concentration, not negative.
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
        >>> round(float(rng.vonmises(1.0, 10.0, size=100000).mean()), 1)
        1.0
        """
        return self._call(_random["vonmises"], mu, kappa, size, dtype, device)


def of_out(size: Size, dtype: DTypeLike | None, out: ndarray | None) -> tuple[Size, DTypeLike | None]:
    """Size and dtype of what is drawn for `out` unless something else is asked."""
    if out is None:
        return size, dtype
    return out.shape if size is None else size, out.dtype if dtype is None else dtype
