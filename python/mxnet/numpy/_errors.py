"""What happens at floating-point errors."""

from __future__ import annotations

import contextlib
import sys
import threading
import warnings
from typing import TypedDict

from mxnet import _core

__all__ = ["errstate", "geterr", "seterr"]

_MODES = ("ignore", "warn", "raise", "print")
_KINDS = ("divide", "over", "under", "invalid")
_FIRST_WORDS = {"divide": "divide by zero", "over": "overflow", "under": "underflow", "invalid": "invalid value"}


class _Modes(TypedDict):
    divide: str
    over: str
    under: str
    invalid: str


_QUIET = _Modes(divide="ignore", over="ignore", under="ignore", invalid="ignore")


class _State(threading.local):
    """The thread's modes."""

    def __init__(self) -> None:
        self.modes = _Modes(**_QUIET)


_state = _State()


def _report(sentence: str) -> None:
    """Called by the core where a mode is 'warn' or 'print'."""
    mode = next(_state.modes[kind] for kind in _KINDS if sentence.startswith(_FIRST_WORDS[kind]))  # type: ignore[literal-required]
    if mode == "print":
        print(f"Warning: {sentence}", file=sys.stderr)
    else:
        warnings.warn(sentence, RuntimeWarning, stacklevel=2)


_core.install_float_reporter(_report)


class silent:  # noqa: N801  # it is used like a function
    """Ignores floating-point errors inside the block; says whether the thread asked for invalid values before.

    Functions that warn of missing values themselves look for them only then, since looking waits for the values. It is
    no generator, because what is around a reduction of a small array costs as much as the reduction.
    """

    __slots__ = ("_before",)
    _before: dict[str, str] | None

    def __enter__(self) -> bool:
        modes = _state.modes
        self._before = None
        if modes == _QUIET:
            return False
        self._before = seterr(all="ignore")
        return modes["invalid"] != "ignore"

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            seterr(**self._before)


def warn_of(message: str) -> None:
    """A warning about values, as of the caller's caller's caller."""
    warnings.warn(message, RuntimeWarning, stacklevel=4)


def geterr() -> dict[str, str]:
    """How this thread reacts to floating-point errors.

    Returns
    -------
    dict
        A mode, of those of `seterr`, for each of ``divide``, ``over``, ``under`` and ``invalid``.

    Examples
    --------
    >>> np.geterr()
    {'divide': 'ignore', 'over': 'ignore', 'under': 'ignore', 'invalid': 'ignore'}
    """
    return dict(_state.modes)  # type: ignore[arg-type]


def seterr(
    all: str | None = None,
    divide: str | None = None,
    over: str | None = None,
    under: str | None = None,
    invalid: str | None = None,
) -> dict[str, str]:
    """Choose how this thread reacts to floating-point errors.

    Everything is ignored at first, unlike in NumPy, which warns: an error can only be told at the call if the call is
    waited for. While any mode is another, each call of this thread is waited for and its result is compared with its
    operands, which takes several times as long.

    Parameters
    ----------
    all : {'ignore', 'warn', 'raise', 'print'}, optional
        The mode of all kinds that are not named.
    divide : str, optional
        Division by zero: an infinity from finite operands.
    over : str, optional
        A result too large for its dtype.
    under : str, optional
        A result too small for the normal numbers of its dtype.
    invalid : str, optional
        A NaN from operands that are none.

    Returns
    -------
    dict
        The modes that were.

    Raises
    ------
    ValueError
        For another mode; NumPy's ``'call'`` and ``'log'`` do not exist: use ``'warn'`` and the filters of `warnings`.

    Examples
    --------
    >>> old = np.seterr(divide="raise")
    >>> np.ones(2) / 0
    Traceback (most recent call last):
        ...
    mxnet.error.FloatingPointError: divide by zero encountered in divide
      x1: shape (2,)  float32  cpu(0)
      x2: shape ()    int64    cpu(0)
    >>> _ = np.seterr(**old)
    """
    chosen = {"divide": divide, "over": over, "under": under, "invalid": invalid}
    new = {kind: mode or all or old for (kind, mode), old in zip(chosen.items(), geterr().values(), strict=True)}
    for kind, mode in new.items():
        if mode not in _MODES:
            raise _core.ValueError(f"seterr: mode {mode!r} of `{kind}` is none of {', '.join(map(repr, _MODES))}")
    before = geterr()
    _state.modes = _Modes(**new)  # type: ignore[typeddict-item]
    numbers = {"ignore": 0, "warn": 1, "print": 1, "raise": 2}
    _core.set_float_reactions([numbers[new[kind]] for kind in _KINDS])
    return before


class errstate(contextlib.ContextDecorator):  # noqa: N801
    """Choose how this thread reacts to floating-point errors, inside a ``with`` block or a decorated function.

    Parameters
    ----------
    all, divide, over, under, invalid : str, optional
        As those of `seterr`.

    Raises
    ------
    ValueError
        On entry, for a mode that there is not.

    Examples
    --------
    >>> with np.errstate(invalid="raise"):
    ...     np.log(np.array([-1.0]))
    Traceback (most recent call last):
        ...
    mxnet.error.FloatingPointError: invalid value encountered in log
      x: shape (1,)  float32  cpu(0)
    """

    def __init__(
        self,
        *,
        all: str | None = None,
        divide: str | None = None,
        over: str | None = None,
        under: str | None = None,
        invalid: str | None = None,
    ) -> None:
        self._modes = {"all": all, "divide": divide, "over": over, "under": under, "invalid": invalid}
        self._before: list[dict[str, str]] = []

    def __enter__(self) -> None:
        self._before.append(seterr(**self._modes))

    def __exit__(self, *error: object) -> None:
        seterr(**self._before.pop())
