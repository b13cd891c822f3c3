"""Runs a program as one of the processes that `mxnet.launch` starts: ``python -m mxnet.kvstore._rank train.py``.

MPI is initialized before the program begins. So a process whose program fails at its first line takes part in the
common end, and the others get an error instead of waiting for it.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from mxnet.kvstore._processes import find_processes

__all__ = ["run_program"]


def run_program(arguments: list[str]) -> None:
    """Run a script, or a module after ``-m``, as the main program.

    Parameters
    ----------
    arguments : list of str
        The script or ``-m`` and the module, then the program's arguments.
    """
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        sys.path[0] = str(Path.cwd())
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = list(arguments)
    sys.path[0] = str(Path(arguments[0]).resolve().parent)
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    find_processes()
    run_program(sys.argv[1:])
