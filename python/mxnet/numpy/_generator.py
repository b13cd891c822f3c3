"""Random generators with their own streams and NumPy's methods."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import MutableSequence, Sequence
from typing import Any

from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray
from mxnet.base import DTypeLike
from mxnet.device import Device
from mxnet.numpy._axes import axis_of
from mxnet.numpy._bit_generator import BitGenerator
from mxnet.numpy._multivariate import sample

__all__ = ["Generator", "default_rng"]

Size = int | Sequence[int] | None

_random = _core.namespaces["random"]
_op = _core.namespaces["op"]
_np = _core.namespaces["numpy"]


def _is_below(high: Any, low: Any) -> bool:
    """Whether one bound is less than the other. Arrays are not checked, because they may not be computed yet."""
    if isinstance(low, int | float) and isinstance(high, int | float):
        return high < low
    if isinstance(low, ndarray) or isinstance(high, ndarray):
        return False
    return bool((asarray(high) < asarray(low)).any())


class Generator(_core.GeneratorBase):
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
        self._set_stream(bit_generator._stream)

    @property
    def bit_generator(self) -> BitGenerator:
        """Where the random bits come from; its `state` can be kept and restored."""
        return self._bits

    def spawn(self, n_children: int) -> list[Generator]:
        """Make `n_children` generators whose streams are independent of this one and of each other.

        Parameters
        ----------
        n_children : int
            How many.

        Returns
        -------
        list of Generator

        Examples
        --------
        >>> len(np.random.default_rng(1).spawn(3))
        3
        """
        return [Generator(bits) for bits in self._bits.spawn(n_children)]

    def __reduce__(self) -> tuple[Any, ...]:
        return Generator, (self._bits,)

    def __repr__(self) -> str:
        return f"Generator({self._bits.state['bit_generator']})"

    # ---- uniform numbers, integers, bytes ----

    def uniform(
        self,
        low: ArrayLike = 0.0,
        high: ArrayLike = 1.0,
        size: Size = None,
        *,
        dtype: DTypeLike | None = None,
        device: Device | None = None,
    ) -> Any:
        """Uniform numbers in [low, high).

        Parameters
        ----------
        low : array_like
            Smallest value.
        high : array_like
            Upper bound, which is not reached.
        size, dtype, device : optional
            Shape, type and place of the result; see `Generator`.

        Returns
        -------
        ndarray
            Of shape `size`.

        Raises
        ------
        ValueError
            If numbers or lists are given, and `high` is below `low`. Arrays, which would have to be waited for, are not
            looked at: bounds in the other order span the same range.

        Examples
        --------
        >>> rng = np.random.default_rng(1)
        >>> x = rng.uniform(-1, 1, size=1000)
        >>> x.shape, bool((x >= -1).all()), bool((x <= 1).all())
        ((1000,), True, True)
        """
        if _is_below(high, low):
            raise ValueError(f"high - low < 0: found low {low!r} and high {high!r}")
        return self._call(_random["uniform"], low, high, size, dtype, device)

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
            'zig' gives the same numbers as `exponential`; 'inv' is ``-log1p(-u)`` of
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
        if out is not None:
            size, dtype = out.shape if size is None else size, out.dtype if dtype is None else dtype
        if method == "inv":
            u = self._call(_random["random"], size, dtype, device)
            return _np["negative"](_np["log1p"](_np["negative"](u)), out)
        return self._call(_random["standard_exponential"], size, dtype, device, out)

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

        Parameters
        ----------
        low : array_like of int
            Smallest integer, or the bound if it is the only one.
        high : array_like of int, optional
            Bound, which is reached if `endpoint` is true.
        size : int or tuple of int, optional
            Shape of the result; that to which the parameters broadcast for None.
        dtype : dtype
            Type of the result.
        endpoint : bool
            Whether `high` is included.
        device : Device, optional
            Where the result is made.

        Returns
        -------
        ndarray
            Of shape `size`.

        Raises
        ------
        ValueError
            If there is no such integer, or a bound is none of `dtype`.

        Examples
        --------
        >>> x = np.random.default_rng(1).integers(1, 6, size=1000, endpoint=True)
        >>> int(x.min()), int(x.max())
        (1, 6)
        """
        return self._call(_op["integers"], low, high, size, dtype, endpoint, device)

    def bytes(self, length: int) -> bytes:
        """`length` random bytes. Waits for them.

        Parameters
        ----------
        length : int
            How many.

        Returns
        -------
        bytes

        Examples
        --------
        >>> len(np.random.default_rng(1).bytes(8))
        8
        """
        drawn: bytes = self.integers(0, 256, length, dtype="uint8").asnumpy().tobytes()
        return drawn

    # ---- choices and permutations ----

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
            Whether a choice without replacement comes in random order. If not, it comes in the order of the slices.
            With `replace` it has no effect.
        device : Device, optional
            Where the result is made.

        Returns
        -------
        ndarray
            Of the shape of `a` with `size` in place of the axis.

        Raises
        ------
        ValueError
            If there are not enough slices, or `p` does not sum to 1.

        Examples
        --------
        >>> np.sort(np.random.default_rng(1).choice([10, 20, 30], size=3, replace=False))
        array([10, 20, 30])
        >>> x = np.random.default_rng(1).choice(100, size=5, replace=False, shuffle=False)
        >>> bool((x[1:] > x[:-1]).all())
        True
        """
        return self._call(_op["choose_slices"], a, size, replace, p, axis, shuffle, device)

    def permutation(self, x: ArrayLike, axis: int = 0) -> Any:
        """The slices of `x` along `axis` in random order; for an integer, the integers below it.

        Parameters
        ----------
        x : array_like or int
            The slices, or the number of integers.
        axis : int
            The axis of the slices.

        Returns
        -------
        ndarray
            Of the shape and dtype of `x`.

        Examples
        --------
        >>> np.sort(np.random.default_rng(1).permutation(5))
        array([0, 1, 2, 3, 4])
        """
        if axis == 0 or not getattr(x, "ndim", 0):
            return self._call(_random["permutation"], x)
        x = _core.asarray(x)
        axis = axis_of("permutation", axis, x.ndim)
        return _np["moveaxis"](self._call(_random["permutation"], _np["moveaxis"](x, axis, 0)), 0, axis)

    def shuffle(self, x: ndarray | MutableSequence[Any], axis: int = 0) -> None:
        """Put the slices of an array along `axis`, or the elements of a list, into random order, in place.

        Parameters
        ----------
        x : ndarray or mutable sequence
            What is put into another order.
        axis : int
            The axis of the slices; 0 for a sequence.

        Raises
        ------
        TypeError
            If `x` is neither an ndarray nor a mutable sequence.
        ValueError
            If `x` has no axes or is read-only.

        Examples
        --------
        >>> x = np.arange(5)
        >>> np.random.default_rng(1).shuffle(x)
        >>> np.sort(x)
        array([0, 1, 2, 3, 4])
        """
        if isinstance(x, ndarray):
            view = x if axis == 0 else _np["moveaxis"](x, axis_of("shuffle", axis, x.ndim), 0)
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

        Returns
        -------
        ndarray
            Of the shape and dtype of `x`.

        Examples
        --------
        >>> x = np.array([[1, 2, 3], [10, 20, 30]])
        >>> np.sort(np.random.default_rng(1).permuted(x, axis=1), axis=1)
        array([[ 1,  2,  3],
               [10, 20, 30]])
        """
        x = _core.asarray(x)
        if axis is not None:
            axis = axis_of("permuted", axis, x.ndim)
        if axis is None and x.ndim == 1:
            drawn = self._call(_op["random_reordered"], x)
        elif axis is None:
            drawn = self._call(_random["permutation"], x.reshape(-1)).reshape(x.shape)
        else:
            is_last = axis == x.ndim - 1
            drawn = self._call(_op["random_permuted"], x if is_last else _np["moveaxis"](x, axis, -1))
            if not is_last:
                drawn = _np["moveaxis"](drawn, -1, axis).copy()
        if out is None:
            return drawn
        if out.shape != x.shape:
            raise ValueError(f"`out` must have shape {x.shape}, found {out.shape}")
        out[...] = drawn
        return out

    def multinomial(self, n: ArrayLike, pvals: ArrayLike, size: Size = None) -> Any:
        """Number of draws of each of k categories, in `n` draws.

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
        """How many of each color are among `nsample` items drawn without replacement.

        Parameters
        ----------
        colors : array_like of int, shape (k,)
            How many there are of each, together less than 10**9.
        nsample : int
        size : int or tuple of int, optional
        method : {'marginals', 'count'}
            'marginals' draws one conditional count after the other; 'count' takes items one by one and counts them,
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

        Parameters
        ----------
        mean : array_like, shape (..., n)
            Mean.
        cov : array_like, shape (..., n, n)
            Covariance.
        size : int or tuple of int, optional
            Stands before the shape of the parameters.
        check_valid : {'warn', 'raise', 'ignore'}
            What happens if `cov` is no covariance.
        tol : float
            How negative an eigenvalue may be.
        method : {'svd', 'eigh', 'cholesky'}
            Factorisation of `cov`.

        Returns
        -------
        ndarray
            Of shape `size` + (..., n).

        Examples
        --------
        >>> x = np.random.default_rng(1).multivariate_normal([0.0, 5.0], [[2.0, 1.0], [1.0, 2.0]], size=100000)
        >>> np.cov(x.T).round(1)
        array([[2., 1.],
               [1., 2.]])
        """
        return sample(self._call, mean, cov, size, check_valid, tol, method)


# Registered functions that are methods of generators, with `size` as the last positional parameter.
_UP_TO_SIZE = """
    normal laplace logistic gumbel exponential rayleigh weibull pareto power lognormal triangular wald vonmises
    standard_cauchy standard_t gamma chisquare noncentral_chisquare beta f noncentral_f dirichlet
    poisson binomial negative_binomial geometric hypergeometric logseries zipf
"""
# As above, with the parameters from `size` on that may be given by position.
_DISTRIBUTIONS = {
    **dict.fromkeys(_UP_TO_SIZE.split(), ("size",)),
    **dict.fromkeys(("random", "standard_normal", "standard_gamma"), ("size", "dtype", "out")),
}


def _add_distributions() -> None:
    """Add a method for each of these functions to generators, with its parameters and docstring."""
    for name, last in _DISTRIBUTIONS.items():
        function = _random[name]
        parameters = inspect.signature(function).parameters
        positional = [*itertools.takewhile(lambda parameter: parameter != "size", parameters), *last]
        words = [*positional, "*", *(parameter for parameter in parameters if parameter not in positional)]
        words = words[:-1] if words[-1] == "*" else words
        signature = ", ".join(str(parameters.get(word, word)) for word in words)
        doc = (function.__doc__ or "").replace("np.random.seed(1)", "rng = np.random.default_rng(1)")
        doc = doc.replace(f"np.random.{name}(", f"rng.{name}(")
        _core.add_distribution(name, function, positional, f"{name}($self, {signature})\n--\n\n{doc}")


_add_distributions()


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
