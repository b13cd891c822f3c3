"""Bit generators and seed sequences."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import numpy

from mxnet import _core
from mxnet._core import ndarray
from mxnet._jit import hold_in_trace

__all__ = ["BitGenerator", "Philox", "SeedSequence"]

_NAME = "Philox4x32-10"


def _words(seed: Any) -> list[int]:
    """The 32-bit words of an integer, or the concatenated words of a sequence of integers."""
    if (isinstance(seed, Sequence) and not isinstance(seed, str)) or hasattr(seed, "tolist"):
        parts = seed.tolist() if hasattr(seed, "tolist") else list(seed)
        if isinstance(parts, list):
            return [word for part in parts for word in _words(part)]
        seed = parts
    try:
        value = seed.__index__()
    except AttributeError:
        raise TypeError(
            f"a seed is None, an integer, a sequence of integers or a SeedSequence, not {type(seed).__name__!r}"
        ) from None
    if value < 0:
        raise ValueError(f"a seed must be at least 0, found {value}")
    words = [value & 0xFFFFFFFF]
    while value := value >> 32:
        words.append(value & 0xFFFFFFFF)
    return words


class BitGenerator:
    """Where a `Generator` takes its random bits from: Philox 4x32-10, a function of a key and a counter.

    Parameters
    ----------
    seed : None, int, sequence of int or SeedSequence, optional
        What the key is made of; integers are at least 0 and of any size. None asks the operating system. Of an object
        with a method `generate_state`, as `SeedSequence` has it, four words are taken.

    Raises
    ------
    TypeError
        If `seed` is none of these.
    ValueError
        If an integer is negative.

    Notes
    -----
    Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011.

    Examples
    --------
    >>> bits = np.random.BitGenerator(7)
    >>> np.random.Generator(bits).normal(size=2).shape
    (2,)
    """

    def __init__(self, seed: Any = None) -> None:
        if seed is None:
            entropy = _words(secrets.randbits(128))
        elif hasattr(seed, "generate_state"):
            # These have values in a trace, too.
            entropy = _core.outside_trace(lambda: [int(word) for word in seed.generate_state(4)])
        else:
            entropy = _words(seed)
        self._stream = _core.RandomStream(entropy)
        if seed is None or getattr(seed, "_is_of_system", False):
            # Later runs of a graph draw other numbers than the first one.
            hold_in_trace(self._stream)

    @property
    def state(self) -> dict[str, Any]:
        """Where the stream is, a dict that can be assigned to go on from there."""
        key, counter, spawned = self._stream.state()
        return {"bit_generator": _NAME, "state": {"key": key, "counter": counter}, "spawned": spawned}

    @state.setter
    def state(self, value: Any) -> None:
        if not isinstance(value, dict) or value.get("bit_generator") != _NAME:
            raise ValueError(f"`state` must be that of a {_NAME} generator, found {value!r}")
        self._stream.set_state(value["state"]["key"], value["state"]["counter"], value["spawned"])

    def spawn(self, n_children: int) -> list[BitGenerator]:
        """Make generators with keys of their own; each call makes others.

        Parameters
        ----------
        n_children : int
            How many, at least 0.

        Returns
        -------
        list of BitGenerator
        """
        if n_children < 0:
            raise ValueError(f"`n_children` must be at least 0, found {n_children}")
        children = []
        for _ in range(n_children):
            child = BitGenerator(0)
            child._stream = self._stream.spawn()
            children.append(child)
        return children

    def __reduce__(self) -> tuple[Any, ...]:
        return BitGenerator, (0,), self.state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.state = state


class Philox(BitGenerator):
    """`BitGenerator` under the name of its algorithm, with a key of one's own.

    Parameters
    ----------
    seed : None, int, sequence of int or SeedSequence, optional
        As of `BitGenerator`.
    counter : int, optional
        The counter block to begin with, 0 if left out.
    key : int, optional
        The key, of 64 bits; made of `seed` if left out.

    Raises
    ------
    ValueError
        If both a seed and a key are given, or a key or a counter is out of range.

    Notes
    -----
    *Differences*: NumPy's is Philox 4x64-10, whose numbers are others.

    Examples
    --------
    >>> rng = np.random.Generator(np.random.Philox(7))
    >>> bool((rng.normal(size=3) == np.random.default_rng(7).normal(size=3)).all())
    True
    """

    def __init__(self, seed: Any = None, counter: int | None = None, key: int | None = None) -> None:
        if seed is not None and key is not None:
            raise ValueError("seed and key cannot be both used")
        super().__init__(seed if key is None else 0)
        if counter is None and key is None:
            return
        for name, value in (("counter", counter), ("key", key)):
            if value is not None and not 0 <= value < 1 << 64:
                raise ValueError(f"`{name}` must be in 0..2**64, found {value}")

        def begin() -> None:
            own, _, spawned = self._stream.state()
            self._stream.set_state(own if key is None else key, counter or 0, spawned)

        _core.outside_trace(begin)


class SeedSequence:
    """Entropy that any number of seeds are made of, for streams that do not depend on each other.

    Parameters
    ----------
    entropy : None, int or sequence of int, optional
        At least 0 and of any size. None asks the operating system.
    spawn_key : sequence of int, optional
        Which of the children of a sequence this one is.
    pool_size : int, optional
        Number of words of the entropy pool, at least 4. Another size gives other words.
    n_children_spawned : int, optional
        How many children there have been.

    Raises
    ------
    TypeError
        If `entropy` is none of these.
    ValueError
        If an integer is negative or the pool too small.

    Notes
    -----
    *Differences*: the words are others than those of NumPy's class, which `default_rng` takes, too.

    Examples
    --------
    >>> children = np.random.SeedSequence(7).spawn(2)
    >>> a, b = (np.random.default_rng(child).normal(size=3) for child in children)
    >>> bool((a == b).any())
    False
    """

    def __init__(
        self,
        entropy: Any = None,
        *,
        spawn_key: Sequence[int] = (),
        pool_size: int = 4,
        n_children_spawned: int = 0,
    ) -> None:
        self.entropy = secrets.randbits(128) if entropy is None else entropy
        self._is_of_system = entropy is None and _core.trace_is_active()
        self.spawn_key = tuple(spawn_key)
        self.pool_size = pool_size
        self.n_children_spawned = n_children_spawned
        if pool_size < 4:
            raise ValueError(f"The size of the entropy pool should be at least 4, found {pool_size}")
        own = _words(self.entropy)
        # The number of words distinguishes entropy from spawn keys.
        self._entropy = [pool_size, len(own), *own, *(word for key in self.spawn_key for word in _words(key))]

    def generate_state(self, n_words: int, dtype: Any = "uint32") -> ndarray:
        """Words to seed a generator with, the same ones at each call.

        Parameters
        ----------
        n_words : int
            How many.
        dtype : {'uint32', 'uint64'}
            Their type.

        Returns
        -------
        ndarray, shape (n_words,)

        Raises
        ------
        ValueError
            For another dtype.
        """
        name = numpy.dtype(dtype).name
        if name not in ("uint32", "uint64"):
            raise ValueError("only support uint32 or uint64")
        integers = _core.namespaces["op"]["integers"]
        stream = _core.RandomStream(self._entropy)
        return _core.outside_trace(lambda: stream.call(integers, 0, 1 << int(name[4:]), n_words, name))  # type: ignore[no-any-return]

    def spawn(self, n_children: int) -> list[SeedSequence]:
        """Make sequences with entropy of their own; each call makes others.

        Parameters
        ----------
        n_children : int
            How many.

        Returns
        -------
        list of SeedSequence
        """
        first = self.n_children_spawned
        self.n_children_spawned += n_children
        children = [
            SeedSequence(self.entropy, spawn_key=(*self.spawn_key, i), pool_size=self.pool_size)
            for i in range(first, first + n_children)
        ]
        for child in children:
            child._is_of_system = self._is_of_system
        return children

    @property
    def state(self) -> dict[str, Any]:
        """What the sequence was made of, by the names of the parameters."""
        names = ("entropy", "spawn_key", "pool_size", "n_children_spawned")
        return {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        parts = [f"entropy={self.entropy!r}"]
        if self.spawn_key:
            parts.append(f"spawn_key={self.spawn_key!r}")
        if self.n_children_spawned:
            parts.append(f"n_children_spawned={self.n_children_spawned}")
        return f"SeedSequence({', '.join(parts)})"
