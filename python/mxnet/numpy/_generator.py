"""Generators: streams of random numbers of their own, with NumPy's methods."""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from typing import Any

from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import ndarray
from mxnet.base import DTypeLike
from mxnet.device import Device
from mxnet.numpy._bit_generator import BitGenerator
from mxnet.numpy._multivariate import sample

__all__ = ["Generator", "default_rng"]

Size = int | Sequence[int] | None

_random = _core.namespaces["random"]
_op = _core.namespaces["op"]
_np = _core.namespaces["numpy"]


class Generator:
    """Random numbers from a stream of its own, with the methods of NumPy's `Generator`.

    Parameters
    ----------
    bit_generator : BitGenerator

    Notes
    -----
    Parameters of distributions are numbers or arrays that broadcast. `size` is the shape of the result; None is the
    shape the parameters broadcast to. `dtype` is that of the result: None is the default float (float32 unless
    `npx.set_np(dtype=True)`) or, for counts, int64; float arrays as parameters give theirs. Impossible parameters raise
    `ValueError`: numbers at the call, elements of arrays when they are used, at the call or where the result is read.

    Samples are differentiable with respect to array parameters where the functions of the same name in
    `mxnet.numpy.random` are. The same seed gives the same numbers with any number of threads.

    *Differences from NumPy*: other numbers for the same seed, float32 by default, and `dtype` and `device` for every
    distribution.

    Examples
    --------
    >>> rng = mx.np.random.default_rng(7)
    >>> rng.normal(size=(2, 3)).shape
    (2, 3)
    >>> rng.integers(1, 7, size=1000).max().item()
    6
    """

    def __init__(self, bit_generator: BitGenerator) -> None:
        if not isinstance(bit_generator, BitGenerator):
            raise TypeError(
                f"`bit_generator` must be a BitGenerator, not {type(bit_generator).__name__!r}; default_rng takes seeds"
            )
        self._bits = bit_generator
        self._call = bit_generator._stream.call

    @property
    def bit_generator(self) -> BitGenerator:
        """Where the random bits come from; its `state` can be kept and restored."""
        return self._bits

    def spawn(self, n_children: int) -> list[Generator]:
        """Make `n_children` generators whose streams are independent of this one and of each other."""
        return [Generator(bits) for bits in self._bits.spawn(n_children)]

    def __reduce__(self) -> tuple[Any, ...]:
        return Generator, (self._bits,)

    def __repr__(self) -> str:
        return f"Generator({self._bits.state['bit_generator']})"

    # ---- uniform numbers, integers, bytes ----

    def random(
        self,
        size: Size = None,
        dtype: DTypeLike | None = None,
        out: ndarray | None = None,
        *,
        device: Device | None = None,
    ) -> Any:
        """Uniform numbers in [0, 1)."""
        return self._call(_random["random"], size, _dtype(dtype, out), device, out)

    def uniform(
        self,
        low: ArrayLike = 0.0,
        high: ArrayLike = 1.0,
        size: Size = None,
        *,
        dtype: DTypeLike | None = None,
        device: Device | None = None,
    ) -> Any:
        """Uniform numbers in [low, high)."""
        return self._call(_random["uniform"], low, high, size, dtype, device)

    def integers(
        self,
        low: ArrayLike,
        high: ArrayLike | None = None,
        size: Size = None,
        dtype: DTypeLike = "int64",
        endpoint: bool = False,
        *,
        device: Device | None = None,
    ) -> Any:
        """Integers from `low` to `high`, which is included if `endpoint`; with one bound, from 0 to it.

        Raises
        ------
        ValueError
            If there is no such integer, or a bound is none of `dtype`.
        """
        return self._call(_op["integers"], low, high, size, dtype, endpoint, device)

    def bytes(self, length: int) -> bytes:
        """`length` random bytes. Waits for them."""
        drawn: bytes = self.integers(0, 256, length, dtype="uint8").asnumpy().tobytes()
        return drawn

    # ---- choices and orders ----

    def choice(
        self,
        a: ArrayLike,
        size: Size = None,
        replace: bool = True,
        p: ArrayLike | None = None,
        axis: int = 0,
        shuffle: bool = True,
        *,
        device: Device | None = None,
    ) -> Any:
        """Slices of `a` along `axis`, or integers below the integer `a`.

        Parameters
        ----------
        a : array_like or int
        size : int or tuple of int, optional
            Takes the place of `axis` in the shape of the result.
        replace : bool
            Whether a slice may be chosen more than once.
        p : array_like, shape (n,), optional
            Probabilities of the slices; they are read, so the call waits for them. None is the same for all.
        axis : int
        shuffle : bool
            Whether the order of a choice without replacement must be random. It is so in either case, at no cost.

        Raises
        ------
        ValueError
            If there are not enough slices, or `p` does not sum to 1.
        """
        return self._call(_op["choose_slices"], a, size, replace, p, axis, device)

    def permutation(self, x: ArrayLike, axis: int = 0) -> Any:
        """The slices of `x` along `axis` in random order; for an integer, the integers below it."""
        if axis == 0 or not getattr(x, "ndim", 0):
            return self._call(_random["permutation"], x)
        x = _core.asarray(x)
        return _np["moveaxis"](self._call(_random["permutation"], _np["moveaxis"](x, axis, 0)), 0, axis)

    def shuffle(self, x: ndarray | MutableSequence[Any], axis: int = 0) -> None:
        """Put the slices of an array along `axis`, or the elements of a list, into random order, in place.

        Raises
        ------
        TypeError
            If `x` is neither an ndarray nor a mutable sequence.
        ValueError
            If `x` has no axes or is read-only.
        """
        if isinstance(x, ndarray):
            view = x if axis == 0 else _np["moveaxis"](x, axis, 0)
            view[...] = self._call(_op["random_reordered"], view)
        elif isinstance(x, MutableSequence):
            if axis != 0:
                raise ValueError(f"a list has one axis, found `axis` {axis}")
            x[:] = [x[i] for i in self.permutation(len(x)).tolist()]
        else:
            raise TypeError(f"`x` must be an ndarray or a mutable sequence, not {type(x).__name__!r}")

    def permuted(self, x: ArrayLike, *, axis: int | None = None, out: ndarray | None = None) -> Any:
        """The elements of `x` in random order, each line along `axis` in an order of its own.

        Parameters
        ----------
        x : array_like
        axis : int, optional
            None takes all elements as one line.
        out : ndarray, optional
            Receives the result; it may be `x`.
        """
        x = _core.asarray(x)
        if axis is None or x.ndim == 0:
            drawn = self._call(_random["permutation"], x.reshape(-1)).reshape(x.shape)
        else:
            lines = _np["moveaxis"](x, axis, -1)
            n = lines.shape[-1]
            orders = self._call(_op["random_order"], (lines.size // max(n, 1), n)).reshape(lines.shape)
            drawn = _np["moveaxis"](_np["take_along_axis"](lines, orders, -1), -1, axis)
        if out is None:
            return drawn
        if out.shape != x.shape:
            raise ValueError(f"`out` must have shape {x.shape}, found {out.shape}")
        out[...] = drawn
        return out

    # ---- standard distributions ----

    def standard_normal(
        self,
        size: Size = None,
        dtype: DTypeLike | None = None,
        out: ndarray | None = None,
        *,
        device: Device | None = None,
    ) -> Any:
        """Normal numbers of mean 0 and deviation 1."""
        return self._call(_random["standard_normal"], size, _dtype(dtype, out), device, out)

    def standard_exponential(
        self,
        size: Size = None,
        dtype: DTypeLike | None = None,
        method: str = "zig",
        out: ndarray | None = None,
        *,
        device: Device | None = None,
    ) -> Any:
        """Exponential numbers of mean 1. Both methods, 'zig' and 'inv', invert the distribution function."""
        if method not in ("zig", "inv"):
            raise ValueError(f"`method` must be 'zig' or 'inv', found {method!r}")
        return self._call(_random["standard_exponential"], size, _dtype(dtype, out), device, out)

    def standard_gamma(
        self,
        shape: ArrayLike,
        size: Size = None,
        dtype: DTypeLike | None = None,
        out: ndarray | None = None,
        *,
        device: Device | None = None,
    ) -> Any:
        """Gamma numbers of shape parameter `shape` and scale 1."""
        return self._call(_random["standard_gamma"], shape, size, _dtype(dtype, out), device, out)

    def standard_cauchy(
        self, size: Size = None, *, dtype: DTypeLike | None = None, device: Device | None = None
    ) -> Any:
        """Cauchy numbers of mode 0 and scale 1."""
        return self._call(_random["standard_cauchy"], size, dtype, device)

    def standard_t(
        self, df: ArrayLike, size: Size = None, *, dtype: DTypeLike | None = None, device: Device | None = None
    ) -> Any:
        """Student's t numbers of `df` degrees of freedom."""
        return self._call(_random["standard_t"], df, size, dtype, device)

    # ---- continuous distributions ----

    def normal(
        self,
        loc: ArrayLike = 0.0,
        scale: ArrayLike = 1.0,
        size: Size = None,
        *,
        dtype: DTypeLike | None = None,
        device: Device | None = None,
    ) -> Any:
        """Normal numbers of mean `loc` and standard deviation `scale`."""
        return self._call(_random["normal"], loc, scale, size, dtype, device)

    def laplace(
        self,
        loc: ArrayLike = 0.0,
        scale: ArrayLike = 1.0,
        size: Size = None,
        *,
        dtype: DTypeLike | None = None,
        device: Device | None = None,
    ) -> Any:
        """Laplace numbers of mean `loc` and scale `scale`."""
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
        """Logistic numbers of mean `loc` and scale `scale`."""
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
        """Gumbel numbers of mode `loc` and scale `scale`."""
        return self._call(_random["gumbel"], loc, scale, size, dtype, device)

    def exponential(
        self, scale: ArrayLike = 1.0, size: Size = None, *, dtype: DTypeLike | None = None, device: Device | None = None
    ) -> Any:
        """Exponential numbers of mean `scale`."""
        return self._call(_random["exponential"], scale, size, dtype, device)

    def rayleigh(
        self, scale: ArrayLike = 1.0, size: Size = None, *, dtype: DTypeLike | None = None, device: Device | None = None
    ) -> Any:
        """Rayleigh numbers of mode `scale`."""
        return self._call(_random["rayleigh"], scale, size, dtype, device)

    def weibull(
        self, a: ArrayLike, size: Size = None, *, dtype: DTypeLike | None = None, device: Device | None = None
    ) -> Any:
        """Weibull numbers of shape parameter `a` and scale 1."""
        return self._call(_random["weibull"], a, size, dtype, device)

    def pareto(
        self, a: ArrayLike, size: Size = None, *, dtype: DTypeLike | None = None, device: Device | None = None
    ) -> Any:
        """Lomax numbers (Pareto of the second kind) of shape parameter `a`."""
        return self._call(_random["pareto"], a, size, dtype, device)

    def power(
        self, a: ArrayLike, size: Size = None, *, dtype: DTypeLike | None = None, device: Device | None = None
    ) -> Any:
        """Numbers in [0, 1] of density a x^(a - 1)."""
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
        """Numbers whose logarithm is normal of mean `mean` and standard deviation `sigma`."""
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
        """Numbers of the triangular distribution from `left` over its peak at `mode` to `right`."""
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
        """Inverse Gaussian numbers of mean `mean` and scale `scale`."""
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
        """Angles in [-pi, pi] around `mu` with concentration `kappa`."""
        return self._call(_random["vonmises"], mu, kappa, size, dtype, device)

    def gamma(
        self,
        shape: ArrayLike,
        scale: ArrayLike = 1.0,
        size: Size = None,
        *,
        dtype: DTypeLike | None = None,
        device: Device | None = None,
    ) -> Any:
        """Gamma numbers of shape parameter `shape` and scale `scale`."""
        return self._call(_random["gamma"], shape, scale, size, dtype, device)

    def chisquare(
        self, df: ArrayLike, size: Size = None, *, dtype: DTypeLike | None = None, device: Device | None = None
    ) -> Any:
        """Chi-square numbers of `df` degrees of freedom."""
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
        """Chi-square numbers of `df` degrees of freedom and non-centrality `nonc`."""
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
        """Beta numbers of parameters `a` and `b`."""
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
        """Fisher's F numbers of `dfnum` and `dfden` degrees of freedom."""
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
        """F numbers of `dfnum` and `dfden` degrees of freedom and non-centrality `nonc`."""
        return self._call(_random["noncentral_f"], dfnum, dfden, nonc, size, dtype, device)

    # ---- counts ----

    def poisson(
        self, lam: ArrayLike = 1.0, size: Size = None, *, dtype: DTypeLike | None = None, device: Device | None = None
    ) -> Any:
        """Poisson counts of mean `lam`."""
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
        """Successes of `n` tries that each succeed with probability `p`."""
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
        """Failures before `n` successes of tries that each succeed with probability `p`."""
        return self._call(_random["negative_binomial"], n, p, size, dtype, device)

    def geometric(
        self, p: ArrayLike, size: Size = None, *, dtype: DTypeLike | None = None, device: Device | None = None
    ) -> Any:
        """Tries up to the first success when each succeeds with probability `p`."""
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
        """Good ones among `nsample` things drawn without replacement from `ngood` good and `nbad` bad ones."""
        return self._call(_random["hypergeometric"], ngood, nbad, nsample, size, dtype, device)

    def logseries(
        self, p: ArrayLike, size: Size = None, *, dtype: DTypeLike | None = None, device: Device | None = None
    ) -> Any:
        """Counts k from 1 on with probabilities proportional to p^k / k."""
        return self._call(_random["logseries"], p, size, dtype, device)

    def zipf(
        self, a: ArrayLike, size: Size = None, *, dtype: DTypeLike | None = None, device: Device | None = None
    ) -> Any:
        """Counts k from 1 on with probabilities proportional to k^-a."""
        return self._call(_random["zipf"], a, size, dtype, device)

    # ---- rows of numbers that belong together ----

    def dirichlet(self, alpha: ArrayLike, size: Size = None, *, dtype: DTypeLike | None = None) -> Any:
        """Shares of the Dirichlet distribution: shape `size` + (k,) for `alpha` of shape (k,); each row sums to 1."""
        return self._call(_random["dirichlet"], alpha, size, dtype)

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
        """
        return self._call(_random["multinomial"], n, pvals, size)

    def multivariate_normal(
        self,
        mean: ArrayLike,
        cov: ArrayLike,
        size: Size = None,
        check_valid: str = "warn",
        tol: float = 1e-8,
        *,
        method: str = "svd",
    ) -> ndarray:
        """Normal vectors of mean `mean`, shape (..., n), and covariance `cov`, shape (..., n, n).

        `size` stands before the shape of the parameters. `method` is the factorisation of `cov`: 'svd', 'eigh', or
        'cholesky', whose gradient with respect to `cov` has no conditions but that it is positive definite. An
        eigenvalue below -`tol` is warned of, raised or ignored as `check_valid` says; except with 'cholesky', which
        always raises for it, the check reads values.
        """
        return sample(self._call, mean, cov, size, check_valid, tol, method)

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
            NumPy's algorithms. Here both names mean the first, which needs no memory for the things themselves.

        Returns
        -------
        ndarray of int64, shape `size` + (k,)
        """
        return self._call(_op["multivariate_hypergeometric"], colors, nsample, size, method)


def _dtype(dtype: DTypeLike | None, out: ndarray | None) -> DTypeLike | None:
    """What is drawn for `out` unless something else is asked."""
    return out.dtype if dtype is None and out is not None else dtype


def default_rng(seed: Any = None) -> Generator:
    """Make a generator.

    Parameters
    ----------
    seed : None, int, sequence of int, SeedSequence, BitGenerator or Generator, optional
        None takes entropy from the operating system. A BitGenerator is drawn from as it is, a Generator is returned.

    Returns
    -------
    Generator

    Raises
    ------
    TypeError
        If `seed` is none of these.
    ValueError
        If an integer is negative.

    Examples
    --------
    >>> a, b = mx.np.random.default_rng(3), mx.np.random.default_rng(3)
    >>> a.random(4).tolist() == b.random(4).tolist()
    True
    """
    if isinstance(seed, Generator):
        return seed
    return Generator(seed if isinstance(seed, BitGenerator) else BitGenerator(seed))
