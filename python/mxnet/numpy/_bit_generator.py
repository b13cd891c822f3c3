"""Where generators take their random bits from."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from mxnet import _core

__all__ = ["BitGenerator"]

_NAME = "Philox4x32-10"


def _words(seed: Any) -> list[int]:
    """The 32-bit words of an integer, or of a sequence of them one after the other."""
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
        with a method `generate_state`, as NumPy's `SeedSequence` has it, four words are taken.

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
            entropy = [int(word) for word in seed.generate_state(4)]
        else:
            entropy = _words(seed)
        self._stream = _core.RandomStream(entropy)

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
