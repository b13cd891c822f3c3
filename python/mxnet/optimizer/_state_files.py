"""What is saved of an optimizer beside arrays, and the files of its states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mxnet import _core
from mxnet._atomic_file import write_atomically
from mxnet.base import PathLike
from mxnet.error import FileFormatError
from mxnet.optimizer.optimizer import Optimizer

if TYPE_CHECKING:
    from mxnet.optimizer.updater import Updater

__all__ = ["describe", "load_states", "restore", "save_states"]

# Hyperparameters that are saved with an optimizer: all numbers, switches and names among its attributes.
_HYPERPARAMETER_TYPES = (bool, int, float, str, type(None))


def _hyperparameters(owner: object) -> dict[str, Any]:
    """Numbers, switches and names among the attributes; an absent scheduler is no hyperparameter."""
    return {
        key: value
        for key, value in vars(owner).items()
        if isinstance(value, _HYPERPARAMETER_TYPES) and key != "lr_scheduler"
    }


def describe(optimizer: Optimizer) -> dict[str, Any]:
    """The class of an optimizer, its hyperparameters, scheduler and update counts, as JSON has them.

    Parameters
    ----------
    optimizer : Optimizer

    Returns
    -------
    dict of str
    """
    hyperparameters = _hyperparameters(optimizer)
    counts = {
        str(device): {str(index): count for index, count in per_index.items()}
        for device, per_index in optimizer._all_index_update_counts.items()
    }
    scheduler = optimizer.lr_scheduler
    return {
        "class": type(optimizer).__name__,
        "hyperparameters": hyperparameters,
        "counts": counts,
        "scheduler": None
        if scheduler is None
        else {"class": type(scheduler).__name__, "hyperparameters": _hyperparameters(scheduler)},
    }


def restore(optimizer: Optimizer, saved: dict[str, Any]) -> None:
    """Give an optimizer what `describe` has noted.

    Parameters
    ----------
    optimizer : Optimizer
    saved : dict of str

    Raises
    ------
    ValueError
        If it is an optimizer of another class, or has another scheduler.
    """
    if saved["class"] != type(optimizer).__name__:
        raise ValueError(f"states of {saved['class']} cannot be given to {type(optimizer).__name__}")
    scheduler, saved_scheduler = optimizer.lr_scheduler, saved["scheduler"]
    if saved_scheduler is not None:
        if scheduler is None or type(scheduler).__name__ != saved_scheduler["class"]:
            raise ValueError(
                f"saved with a {saved_scheduler['class']}, but the optimizer has {type(scheduler).__name__}"
            )
        vars(scheduler).update(saved_scheduler["hyperparameters"])
    for key, value in saved["hyperparameters"].items():
        setattr(optimizer, key, value)
    for device, per_index in saved["counts"].items():
        counts = optimizer._all_index_update_counts.setdefault(int(device), {})
        counts.clear()
        counts.update({int(index): count for index, count in per_index.items()})


def save_states(updater: Updater, fname: PathLike, dump_optimizer: bool) -> None:
    """Write the states of an updater to a file, atomically.

    Parameters
    ----------
    updater : Updater
    fname : path
    dump_optimizer : bool
        See `Updater.get_states`.
    """
    states = updater.get_states(dump_optimizer)

    def write(name: str) -> None:
        with open(name, "wb") as file:
            file.write(states)

    write_atomically(fname, write)


def load_states(updaters: Sequence[Updater], fname: PathLike) -> None:
    """Give updaters the states that `save_states` wrote.

    Parameters
    ----------
    updaters : sequence of Updater
    fname : path
    """
    _core.check_file(fname)
    with open(fname, "rb") as file:
        states = file.read()
    for updater in updaters:
        try:
            updater.set_states(states)
        except FileFormatError as error:
            raise FileFormatError(f"{str(fname)!r}: {error}") from error
