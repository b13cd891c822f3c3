"""Modules: shared libraries that add operators, kernels, devices and graph passes while the program runs.

The table between a module and this package is ``mxnet_module.h``; `docs/design/modules.md` explains it, and
``examples/modules`` has modules in C and Rust.
"""

from __future__ import annotations

import importlib.metadata
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from mxnet import _core
from mxnet import numpy_extension as npx
from mxnet._caller_warning import warn_caller
from mxnet.base import PathLike

__all__ = ["Module", "discover", "load", "loaded"]

_TRIAL_S = 60
_TRIAL = """
import sys
from mxnet import _core
try:
    _core.load_module(sys.argv[1])
except _core.MXNetError:
    pass
"""


class Module(NamedTuple):
    """A module that was loaded.

    Attributes
    ----------
    name, version, path : str
    operators : list of str
        Functions of `mx.npx`.
    devices : list of str
        Kinds of devices.
    passes : list of str
        Graph passes and partitioners: entries of `mx.graph.passes()`, and backends of `HybridBlock.optimize_for`.
    """

    name: str
    version: str
    path: str
    operators: list[str]
    devices: list[str]
    passes: list[str]


def load(path: PathLike, verbose: bool = True) -> Module:
    """Load a module. Its operators are found in `mx.npx` then, its devices by name.

    The library is loaded by another process first: one that crashes or hangs ends that process, not this one.

    Parameters
    ----------
    path : path
        A shared library that is a module.
    verbose : bool
        Print what it adds.

    Returns
    -------
    Module

    Raises
    ------
    mxnet.error.IOError
        If it cannot be opened, is no module, or crashes while it is loaded.
    mxnet.error.UnsupportedError
        If it was built for another version of the table, or refuses.
    ValueError
        If what it describes makes no sense. Nothing of it is registered then.
    """
    target = os.path.abspath(os.fspath(path))
    if not any(module.path == os.path.realpath(target) for module in loaded()):
        _try_in_another_process(target)
    module = Module(*_core.load_module(target))
    for name in module.operators:
        if not hasattr(npx, name):
            setattr(npx, name, _core.added_operator(name))
    if verbose:
        added = [*module.operators, *(f"device {name}" for name in module.devices)]
        added += [f"pass {name}" for name in module.passes]
        print(f"{module.name} {module.version}: {', '.join(added) or 'kernels of existing operators'}")
    return module


def _try_in_another_process(target: str) -> None:
    """Load the library in a process of its own, and raise if that is not alive at the end."""
    package = str(Path(_core.__file__).resolve().parent.parent)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([package, *sys.path])}
    command = [sys.executable, "-c", _TRIAL, target]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_TRIAL_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise _core.IOError(f"load: {target} was not loaded within {_TRIAL_S} s") from error
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        raise _core.IOError(f"load: {target} crashes while it is loaded ({name})")
    if done.returncode > 0:
        raise _core.IOError(f"load: {target} ends the process that loads it:\n{done.stderr.strip()}")


def loaded() -> list[Module]:
    """The modules of this process.

    Returns
    -------
    list of Module
    """
    return [Module(*found) for found in _core.loaded_modules()]


def discover(folder: PathLike | None = None) -> list[Module]:
    """Load all modules of a folder, and those that installed packages name.

    A module that cannot be loaded is left out, with a warning that says why.

    Parameters
    ----------
    folder : path, optional
        None takes the folder that ``MXNET_MODULES`` names, if that is set. A package names a module by an entry
        point of the group ``mxnet.modules``: a function that returns the path.

    Returns
    -------
    list of Module
        Those that were loaded.

    Raises
    ------
    OSError
        If the folder cannot be read.
    """
    modules = []
    for name, path_of in _found(folder):
        try:
            modules.append(load(path_of(), verbose=False))
        except Exception as error:  # noqa: BLE001  # of any package's code; it is shown, and the other modules are loaded
            warn_caller(f"discover: {name} is left out: {error}")
    return modules


def _found(folder: PathLike | None) -> Iterator[tuple[str, Callable[[], str]]]:
    """Modules by name: functions that return their paths."""
    modules_folder = os.environ.get("MXNET_MODULES") if folder is None else os.fspath(folder)
    if modules_folder:
        for path in sorted(
            str(path) for path in Path(modules_folder).iterdir() if path.suffix in (".so", ".dylib", ".dll")
        ):
            yield path, partial(str, path)
    for entry in importlib.metadata.entry_points(group="mxnet.modules"):
        yield f"entry point {entry.name!r}", partial(_path_of, entry)


def _path_of(entry: importlib.metadata.EntryPoint) -> str:
    return str(os.fspath(entry.load()()))
