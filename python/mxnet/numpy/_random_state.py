"""`RandomState`, NumPy's legacy random interface."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from mxnet import _core
from mxnet._core import ndarray
from mxnet.numpy._bit_generator import BitGenerator
from mxnet.numpy._generator import Generator
from mxnet.numpy._multivariate import sample

__all__ = ["RandomState"]

_random = _core.namespaces["random"]


def check_seed(seed: Any) -> None:
    """Refuse integers that are no seeds of NumPy's older functions.

    Parameters
    ----------
    seed : int, sequence of int, or anything else, which is not looked at

    Raises
    ------
    ValueError
        If an integer is negative or has more than 32 bits, or a sequence is empty or has more axes than one.
    """
    values = seed.tolist() if hasattr(seed, "tolist") else seed
    parts = values if isinstance(values, list | tuple) else [values]
    if not parts:
        raise ValueError("`seed_state`: a seed must not be empty")
    for part in parts:
        if isinstance(part, list | tuple):
            raise ValueError("`seed_state`: integers of a seed have one axis, found another sequence among them")
        if isinstance(part, int) and not 0 <= part < 1 << 32:
            raise ValueError(f"`seed_state` must be between 0 and 2**32 - 1, found {part}")


class RandomState:
    """Random numbers from a stream of its own; its methods are the functions of `mxnet.numpy.random`.

    Parameters
    ----------
    seed : None, int, sequence of int or BitGenerator, optional
        What the stream is made of; see `BitGenerator`. Integers have 32 bits, as NumPy's; `default_rng` takes any.

    Raises
    ------
    ValueError
        If an integer is out of range, or a sequence is empty.

    Notes
    -----
    New programs use `default_rng`. *Differences from NumPy*: other numbers for the same seed, the same as those of
    ``default_rng(seed)``; states are those of another generator.

    Examples
    --------
    >>> numbers = np.random.RandomState(7)
    >>> numbers.rand(2, 3).shape
    (2, 3)
    >>> bool((np.random.RandomState(7).randn(4) == np.random.RandomState(7).randn(4)).all())
    True
    """

    def __init__(self, seed: Any = None) -> None:
        self.seed(seed)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = _random.get(name)
        if function is None:
            raise AttributeError(f"'RandomState' object has no attribute {name!r}")
        method = partial(self._bits._stream.call, function)
        # Cached from now on, until the stream is replaced.
        self.__dict__[name] = method
        return method

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_random})

    def __reduce__(self) -> tuple[Any, ...]:
        return RandomState, (self._bits,)

    def __repr__(self) -> str:
        return f"RandomState({self._bits.state['bit_generator']})"

    def seed(self, seed: Any = None) -> None:
        """Begin a new stream.

        Parameters
        ----------
        seed : optional
            As that of the class.

        Examples
        --------
        >>> numbers = np.random.RandomState(7)
        >>> x = numbers.rand(3)
        >>> numbers.seed(7)
        >>> bool((numbers.rand(3) == x).all())
        True
        """
        check_seed(seed)
        for name in self.__dict__.keys() & _random.keys():
            del self.__dict__[name]
        self._bits = seed if isinstance(seed, BitGenerator) else BitGenerator(seed)

    def get_state(self, legacy: bool = True) -> tuple[Any, ...] | dict[str, Any]:
        """Where the stream is, for `set_state`.

        Parameters
        ----------
        legacy : bool
            Whether the state is a tuple or a dict.

        Returns
        -------
        tuple or dict
            The name "Philox4x32-10", the key, the counter and the number of streams spawned; of a dict see
            `BitGenerator.state`.

        Examples
        --------
        >>> numbers = np.random.RandomState(7)
        >>> state = numbers.get_state()
        >>> x = numbers.rand(3)
        >>> numbers.set_state(state)
        >>> bool((numbers.rand(3) == x).all())
        True
        """
        state = self._bits.state
        if not legacy:
            return state
        return state["bit_generator"], state["state"]["key"], state["state"]["counter"], state["spawned"]

    def set_state(self, state: tuple[Any, ...] | dict[str, Any]) -> None:
        """Go on from a state that `get_state` returned.

        Parameters
        ----------
        state : tuple or dict

        Raises
        ------
        ValueError
            If `state` is that of another generator.

        Examples
        --------
        >>> first, second = np.random.RandomState(7), np.random.RandomState(8)
        >>> second.set_state(first.get_state())
        >>> bool((first.rand(3) == second.rand(3)).all())
        True
        """
        if isinstance(state, tuple) and len(state) == 4:
            name, key, counter, spawned = state
            state = {"bit_generator": name, "state": {"key": key, "counter": counter}, "spawned": spawned}
        self._bits.state = state

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
        >>> len(np.random.RandomState(1).bytes(8))
        8
        """
        return Generator(self._bits).bytes(length)

    def shuffle(self, x: ndarray) -> None:
        """Put the slices along the first axis into random order, in place.

        Parameters
        ----------
        x : ndarray or mutable sequence

        Examples
        --------
        >>> x = np.arange(4)
        >>> np.random.RandomState(1).shuffle(x)
        >>> np.sort(x)
        array([0, 1, 2, 3])
        """
        Generator(self._bits).shuffle(x)

    def multivariate_normal(
        self, mean: Any, cov: Any, size: Any = None, check_valid: str = "warn", tol: float = 1e-8
    ) -> ndarray:
        """Samples of the normal distribution of several dimensions; see `Generator.multivariate_normal`.

        Parameters
        ----------
        mean, cov : array_like
            Means, shape (..., k), and covariances, shape (..., k, k).
        size : int or tuple of int, optional
            Stands before the shape of the parameters.
        check_valid : {'warn', 'raise', 'ignore'}
            What happens if a matrix is no covariance.
        tol : float
            How far from one it may be.

        Returns
        -------
        ndarray

        Examples
        --------
        >>> np.random.RandomState(1).multivariate_normal([0.0, 0.0], np.eye(2), 3).shape
        (3, 2)
        """
        drawn: ndarray = sample(self._bits._stream.call, mean, cov, size, check_valid, tol, "svd")
        return drawn
