"""Methods of generators: distributions of counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike

from mxnet import _core
from mxnet.base import DTypeLike
from mxnet.device import Device
from mxnet.numpy._generator_continuous import Size

_random = _core.namespaces["random"]
_op = _core.namespaces["op"]


class Counts:
    """Distributions of integers."""

    _call: Callable[..., Any]

    def poisson(
        self, lam: ArrayLike = 1.0, size: Size = None, *, dtype: DTypeLike | None = None, device: Device | None = None
    ) -> Any:
        """Poisson counts of mean `lam`.

        Parameters
        ----------
        lam : array_like
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
        >>> round(float(rng.poisson(4.0, size=100000).mean()), 1)
        4.0
        """
        return self._call(_random["poisson"], lam, size, dtype, device)

    def binomial(
        self,
        n: ArrayLike,
        p: ArrayLike,
        size: Size = None,
        *,
        dtype: DTypeLike | None = None,
        device: Device | None = None,
    ) -> Any:
        """Successes of `n` tries that each succeed with probability `p`.

        Parameters
        ----------
        n : array_like
            Number of tries, or of successes.
        p : array_like
            Probability of a success.
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
        >>> round(float(rng.binomial(10, 0.3, size=100000).mean()), 1)
        3.0
        """
        return self._call(_random["binomial"], n, p, size, dtype, device)

    def negative_binomial(
        self,
        n: ArrayLike,
        p: ArrayLike,
        size: Size = None,
        *,
        dtype: DTypeLike | None = None,
        device: Device | None = None,
    ) -> Any:
        """Failures before `n` successes of tries that each succeed with probability `p`.

        Parameters
        ----------
        n : array_like
            Number of tries, or of successes.
        p : array_like
            Probability of a success.
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
        >>> round(float(rng.negative_binomial(3, 0.5, size=100000).mean()), 1)
        3.0
        """
        return self._call(_random["negative_binomial"], n, p, size, dtype, device)

    def geometric(
        self, p: ArrayLike, size: Size = None, *, dtype: DTypeLike | None = None, device: Device | None = None
    ) -> Any:
        """Tries up to the first success when each succeeds with probability `p`.

        Parameters
        ----------
        p : array_like
            Probability of a success, in (0, 1].
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
        >>> round(float(rng.geometric(0.25, size=100000).mean()), 1)
        4.0
        """
        return self._call(_random["geometric"], p, size, dtype, device)

    def hypergeometric(
        self,
        ngood: ArrayLike,
        nbad: ArrayLike,
        nsample: ArrayLike,
        size: Size = None,
        *,
        dtype: DTypeLike | None = None,
        device: Device | None = None,
    ) -> Any:
        """Good ones among `nsample` things drawn without replacement from `ngood` good and `nbad` bad ones.

        Parameters
        ----------
        ngood : array_like
            How many are good.
        nbad : array_like
            How many are bad.
        nsample : array_like
            How many are drawn.
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
        >>> round(float(rng.hypergeometric(10, 30, 8, size=100000).mean()), 1)
        2.0
        """
        return self._call(_random["hypergeometric"], ngood, nbad, nsample, size, dtype, device)

    def logseries(
        self, p: ArrayLike, size: Size = None, *, dtype: DTypeLike | None = None, device: Device | None = None
    ) -> Any:
        """Counts k from 1 on with probabilities proportional to p^k / k.

        Parameters
        ----------
        p : array_like
            Parameter in [0, 1).
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
        >>> round(float(rng.logseries(0.5, size=100000).mean()), 1)
        1.4
        """
        return self._call(_random["logseries"], p, size, dtype, device)

    def zipf(
        self, a: ArrayLike, size: Size = None, *, dtype: DTypeLike | None = None, device: Device | None = None
    ) -> Any:
        """Counts k from 1 on with probabilities proportional to k^-a.

        Parameters
        ----------
        a : array_like
            Exponent, above 1.
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
        >>> x = rng.zipf(2.0, size=100000)
        >>> int(x.min()), round(float((x == 1).mean()), 1)  # 6 / pi^2
        (1, 0.6)
        """
        return self._call(_random["zipf"], a, size, dtype, device)

    def multinomial(self, n: ArrayLike, pvals: ArrayLike, size: Size = None) -> Any:
        """How often each of k categories comes up in `n` draws.

        Parameters
        ----------
        n : int or array_like of int
            Draws, at least 0; broadcasts with the rows of `pvals`.
        pvals : array_like, shape (..., k)
            Probabilities; the last is what the others leave of 1.
        size : int or tuple of int, optional
            The shape of `n` and the rows of `pvals` must broadcast to it; the result has k counts for each.

        Returns
        -------
        ndarray of int64
            Of shape `size` + (k,).

        Raises
        ------
        ValueError
            If there is no category, or the probabilities are none.

        Examples
        --------
        >>> np.random.default_rng(1).multinomial(20, [0.2, 0.3, 0.5], size=4).sum(axis=1)
        array([20, 20, 20, 20])
        """
        shape = (len(pvals),) if isinstance(pvals, list | tuple) else _core.asarray(pvals).shape
        if not shape or shape[-1] == 0:
            raise ValueError("`pvals` must have at least 1 axis, the last of them not empty")
        return self._call(_random["multinomial"], n, pvals, size)

    def multivariate_hypergeometric(
        self, colors: ArrayLike, nsample: int, size: Size = None, method: str = "marginals"
    ) -> Any:
        """How many of each color are among `nsample` things drawn without replacement.

        Parameters
        ----------
        colors : array_like of int, shape (k,)
            How many there are of each, together less than 10**9.
        nsample : int
        size : int or tuple of int, optional
        method : {'marginals', 'count'}
            'marginals' draws one conditional count after the other; 'count' takes things one by one and counts them,
            which waits for `colors`, and takes memory for all of them and time for each sample: for small numbers.

        Returns
        -------
        ndarray of int64, shape `size` + (k,)

        Examples
        --------
        >>> np.random.default_rng(1).multivariate_hypergeometric([5, 5, 5], 6, size=3).sum(axis=1)
        array([6, 6, 6])
        """
        return self._call(_op["multivariate_hypergeometric"], colors, nsample, size, method)
