"""Random arrays from the global, counter-based stream."""

from __future__ import annotations

import builtins
from collections.abc import MutableSequence, Sequence
from typing import Any

from mxnet import _core
from mxnet._core import ndarray
from mxnet.device import Device
from mxnet.numpy import _absent
from mxnet.numpy._bit_generator import BitGenerator, Philox, SeedSequence
from mxnet.numpy._generator import Generator, default_rng
from mxnet.numpy._multivariate import multivariate_normal
from mxnet.numpy._random_state import RandomState, check_seed
from mxnet.random import seed as _seed

_NAME = "Philox4x32-10"

globals().update(_core.namespaces["random"])
__getattr__ = _absent.attributes("mxnet.numpy.random", _absent.RANDOM)

_reordered = _core.namespaces["op"]["random_reordered"]
_permutation = _core.namespaces["random"]["permutation"]


def seed(seed_state: int | Sequence[int] | None = None, device: Device | str = "all") -> None:
    """Start the stream of random numbers anew.

    Parameters
    ----------
    seed_state : int, sequence of int or None
        From 0 to ``2**32 - 1``, as NumPy's; `mx.random.seed` takes 64 bits. The same seed gives the same numbers on
        every device and with any number of threads. Several integers make one seed; None asks the operating system.
    device : Device or "all"
        There is one stream for all devices, which the seed of any of them starts anew.

    Raises
    ------
    TypeError
        If a seed is no integer.
    ValueError
        If `device` is something else, or a seed is out of range.

    Examples
    --------
    >>> np.random.seed(1)
    >>> x = np.random.normal(size=3)
    >>> np.random.seed(1)
    >>> bool((np.random.normal(size=3) == x).all())
    True
    """
    check_seed(seed_state)
    _seed(seed_state, device)


def shuffle(x: Any) -> None:
    """Put the slices along the first axis, or the items of a list, into random order, in place.

    Parameters
    ----------
    x : ndarray with at least one axis, or mutable sequence

    Raises
    ------
    TypeError
        If `x` is neither an ndarray nor a mutable sequence: nothing else can be changed in place.
    ValueError
        If `x` has no axes or is read-only.

    Examples
    --------
    >>> np.random.seed(1)
    >>> x = np.arange(4)
    >>> np.random.shuffle(x)
    >>> np.sort(x)
    array([0, 1, 2, 3])
    """
    if isinstance(x, ndarray):
        x[...] = _reordered(x)
    elif isinstance(x, MutableSequence):
        x[:] = [x[i] for i in _permutation(len(x)).tolist()]
    else:
        raise TypeError(f"`x` must be an ndarray or a mutable sequence, not {type(x).__name__!r}")


def bytes(length: int) -> builtins.bytes:
    """`length` random bytes. Waits for them.

    Parameters
    ----------
    length : int
        How many.

    Returns
    -------
    bytes

    Raises
    ------
    ValueError
        If `length` is negative.

    Examples
    --------
    >>> len(np.random.bytes(8))
    8
    """
    drawn: builtins.bytes = _core.namespaces["op"]["integers"](0, 256, length, "uint8").asnumpy().tobytes()
    return drawn


def get_state(legacy: bool = True) -> tuple[Any, ...] | dict[str, Any]:
    """Where the stream is.

    Parameters
    ----------
    legacy : bool
        Whether the state is a tuple or a dict.

    Returns
    -------
    tuple or dict
        The name "Philox4x32-10", the seed, and the number of the next counter block; of a dict `bit_generator`, `seed`
        and `offset`. For `set_state`.

    Notes
    -----
    *Differences*: NumPy's tuple has five entries, the state of another generator.

    Examples
    --------
    >>> state = np.random.get_state()
    >>> x = np.random.normal(size=3)
    >>> np.random.set_state(state)
    >>> bool((np.random.normal(size=3) == x).all())
    True
    """
    seed_state, offset = _core.random_state()
    if legacy:
        return _NAME, seed_state, offset
    return {"bit_generator": _NAME, "seed": seed_state, "offset": offset}


def set_state(state: tuple[Any, ...] | dict[str, Any]) -> None:
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
    >>> np.random.seed(1)
    >>> state = np.random.get_state()
    >>> x = np.random.uniform(size=3)
    >>> np.random.set_state(state)
    >>> bool((np.random.uniform(size=3) == x).all())
    True
    """
    match state:
        case (name, int(seed_state), int(offset)) if name == _NAME:
            _core.set_random_state(seed_state, offset)
        case {"bit_generator": name, "seed": int(seed_state), "offset": int(offset)} if name == _NAME:
            _core.set_random_state(seed_state, offset)
        case _:
            raise ValueError(f"`state` must be what get_state() returned, found {state!r}")


__all__ = [
    "BitGenerator",
    "Generator",
    "Philox",
    "RandomState",
    "SeedSequence",
    "bytes",
    "default_rng",
    "get_state",
    "multivariate_normal",
    "seed",
    "set_state",
    "shuffle",
    *sorted(_core.namespaces["random"]),
]
