"""Floating-point errors: `errstate`, `seterr` and relatives."""

from __future__ import annotations

import contextlib
import sys
import threading
import warnings
from typing import Any, TypedDict

from mxnet import _core

__all__ = ["errstate", "geterr", "geterrcall", "seterr", "seterrcall"]

# Modes, and the corresponding reaction of the core.
_REACTIONS = {"ignore": 0, "warn": 1, "raise": 2, "print": 1, "call": 1, "log": 1}
_MODES = ("ignore", "warn", "raise", "print", "call", "log")
_KINDS = ("divide", "over", "under", "invalid")
_FIRST_WORDS = {"divide": "divide by zero", "over": "overflow", "under": "underflow", "invalid": "invalid value"}


class _Modes(TypedDict):
    divide: str
    over: str
    under: str
    invalid: str


_UNCHANGED = object()
_QUIET = _Modes(divide="ignore", over="ignore", under="ignore", invalid="ignore")


class _State(threading.local):
    """The thread's modes."""

    def __init__(self) -> None:
        self.modes = _Modes(**_QUIET)
        self.handler: Any = None


_state = _State()


def _report(sentence: str) -> None:
    """Callback of the core for the modes 'warn' and 'print'."""
    mode = next(_state.modes[kind] for kind in _KINDS if sentence.startswith(_FIRST_WORDS[kind]))  # type: ignore[literal-required]
    if mode == "print":
        print(f"Warning: {sentence}", file=sys.stderr)
    elif mode in ("call", "log"):
        _call_or_log(mode, sentence)
    else:
        warnings.warn(sentence, RuntimeWarning, stacklevel=2)


def _call_or_log(mode: str, sentence: str) -> None:
    """Report an error in the modes 'call' and 'log'."""
    kind = next(kind for kind in _KINDS if sentence.startswith(_FIRST_WORDS[kind]))
    if _state.handler is None:
        raise ValueError(f"no function or object was given by seterrcall for mode {mode!r} of {kind!r}: {sentence}")
    if mode == "log":
        _state.handler.write(f"Warning: {sentence}\n")
    else:
        _state.handler(_FIRST_WORDS[kind], 1 << _KINDS.index(kind))


_core.install_float_reporter(_report)


class silent:  # noqa: N801  # it is used like a function
    """Ignores floating-point errors inside the block; says whether the thread asked for invalid values before.

    Functions that warn of missing values themselves look for them only then, since looking waits for the values. It is
    no generator, because what is around a reduction of a small array costs as much as the reduction.
    """

    __slots__ = ("_before",)
    _before: _Modes | None

    def __enter__(self) -> bool:
        modes = _state.modes
        self._before = None
        if modes == _QUIET:
            return False
        self._before = modes
        _restore(_QUIET)
        return modes["invalid"] != "ignore"

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            _restore(self._before)


def warn_of(message: str, is_deprecated: bool = False) -> None:
    """Warn of elements at the line of the program that called this package. The core calls it, too."""
    warn_at_caller(message, DeprecationWarning if is_deprecated else RuntimeWarning)


def warn_at_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the program that called this package, however many of its functions are in between."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("mxnet."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _change(all: str | None, divide: str | None, over: str | None, under: str | None, invalid: str | None) -> _Modes:
    """Set the thread's modes as `seterr` does; returns the previous ones, which must not be modified."""
    before = _state.modes
    new: Any = {
        "divide": divide or all or before["divide"],
        "over": over or all or before["over"],
        "under": under or all or before["under"],
        "invalid": invalid or all or before["invalid"],
    }
    if new != before:
        for kind, mode in new.items():
            if mode not in _MODES:
                raise _core.ValueError(f"seterr: mode {mode!r} of `{kind}` is none of {', '.join(map(repr, _MODES))}")
        _restore(new)
    return before


def _restore(modes: _Modes) -> None:
    """Restore these modes of the thread."""
    if modes != _state.modes:
        _core.set_float_reactions([_REACTIONS[mode] for mode in modes.values()])  # type: ignore[index]
        _state.modes = modes


def geterr() -> dict[str, str]:
    """How this thread reacts to floating-point errors.

    Returns
    -------
    dict
        A mode, of those of `seterr`, for each of ``divide``, ``over``, ``under`` and ``invalid``.

    Notes
    -----
    Difference: everything is 'ignore' at first, where NumPy warns of all but underflow; `seterr` says why.

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

    While any mode is another than 'ignore', each call of this thread is waited for and its result is compared with its
    operands, which takes several times as long.

    Parameters
    ----------
    all : {'ignore', 'warn', 'raise', 'print', 'call', 'log'}, optional
        The mode of all kinds that are not named. 'call' and 'log' report to the object that was given to `seterrcall`.
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
        For another mode.

    Notes
    -----
    Difference: everything is ignored at first, where NumPy warns of all but underflow. Calls return before their
    results are there, so an error can only be reported at the call if the call is waited for.
    ``np.seterr(divide="warn", over="warn", invalid="warn")`` gives NumPy's defaults. Warnings about shapes or masks
    ("Mean of empty slice", "Degrees of freedom <= 0 for slice") do not depend on the modes.

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
    return dict(_change(all, divide, over, under, invalid))  # type: ignore[arg-type]


def geterrcall() -> Any:
    """The object that floating-point errors of this thread are reported to in the modes 'call' and 'log'.

    Returns
    -------
    callable, object with a method `write`, or None

    Examples
    --------
    >>> np.geterrcall() is None
    True
    """
    return _state.handler


def seterrcall(func: Any) -> Any:
    """Set the object that floating-point errors of this thread are reported to in the modes 'call' and 'log'.

    Parameters
    ----------
    func : callable, object with a method `write`, or None
        For 'call', called with the error ('divide by zero', 'overflow', 'underflow', 'invalid value') and its number
        (1, 2, 4, 8). For 'log', its method `write` is given a line.

    Returns
    -------
    callable, object or None
        The previous one.

    Raises
    ------
    ValueError
        If it can be neither called nor written to.

    Examples
    --------
    >>> before = np.seterrcall(lambda error, number: print(error, number))
    >>> with np.errstate(divide="call"):
    ...     _ = np.ones(2) / 0
    divide by zero 1
    >>> _ = np.seterrcall(before)
    """
    if func is not None and not callable(func) and not callable(getattr(func, "write", None)):
        raise ValueError("Only callable can be used as callback")
    before = _state.handler
    _state.handler = func
    return before


class errstate(contextlib.ContextDecorator):  # noqa: N801
    """Choose how this thread reacts to floating-point errors, inside a ``with`` block or a decorated function.

    Parameters
    ----------
    all, divide, over, under, invalid : str, optional
        As those of `seterr`.
    call : callable, object with a method `write`, or None, optional
        As that of `seterrcall`.

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
        call: Any = _UNCHANGED,
        all: str | None = None,
        divide: str | None = None,
        over: str | None = None,
        under: str | None = None,
        invalid: str | None = None,
    ) -> None:
        self._call = call
        self._modes = (all, divide, over, under, invalid)
        self._before: list[tuple[_Modes, Any]] = []

    def __enter__(self) -> None:
        handler = _state.handler
        if self._call is not _UNCHANGED:
            seterrcall(self._call)
        try:
            modes = _change(*self._modes)
        except ValueError:
            _state.handler = handler
            raise
        self._before.append((modes, handler))

    def __exit__(self, *error: object) -> None:
        modes, _state.handler = self._before.pop()
        _restore(modes)
