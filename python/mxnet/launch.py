"""Starts a program in several processes, which train together: ``python -m mxnet.launch -n 2 train.py --epochs 3``.

The processes communicate by MPI, with the packages `mpi4py` and `mpich` (``pip install mxnet[dist]``). In each,
`mx.kvstore.create('dist_sync')` gives a store with the number of the process as its `rank`.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

__all__ = ["find_mpiexec", "main"]

_HINT = "\n  hint: pip install mxnet[dist]"


def find_mpiexec() -> Path:
    """The program that starts processes for the package `mpi4py` of this environment.

    Returns
    -------
    path
        `mpiexec` of the package `mpich` if it is installed beside this Python, else the one that the shell finds.

    Raises
    ------
    ImportError
        If there is none, or the package `mpi4py` is not installed.
    """
    if importlib.util.find_spec("mpi4py") is None:
        raise ImportError("mxnet.launch: the package mpi4py, by which processes communicate, is missing" + _HINT)
    beside = Path(sysconfig.get_path("scripts")) / "mpiexec"
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        raise ImportError(
            f"mxnet.launch: there is no `mpiexec` in {beside.parent} or on the PATH; the package mpich has one" + _HINT
        )
    return Path(found)


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m mxnet.launch", description=__doc__)
    parser.add_argument("-n", "--num-processes", type=int, required=True, metavar="N", help="how many processes")
    parser.add_argument(
        "--hostfile",
        metavar="FILE",
        help="machines, one `name` or `name:processes` a line, passed to `mpiexec -f`; by default this one",
    )
    parser.add_argument("--mpiexec", metavar="PATH", help="the program that starts the processes")
    parser.add_argument("-m", dest="is_module", action="store_true", help="the program is a module")
    parser.add_argument("program", help="script or module to run")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what the program gets")
    found = parser.parse_args(arguments)
    if found.num_processes < 1:
        parser.error(f"-n must be at least 1, found {found.num_processes}")
    if not found.is_module and not Path(found.program).is_file():
        parser.error(f"there is no script {found.program!r}")
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Start the processes; this process becomes `mpiexec`, or the program itself if it is the only process.

    Each process has one compute thread, unless the environment sets `MXNET_NUM_THREADS`.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the command line.

    Raises
    ------
    ImportError
        If more than one process is wanted, and `mpi4py` or `mpiexec` is missing.
    SystemExit
        If the arguments are wrong.
    """
    found = _parsed(sys.argv[1:] if arguments is None else arguments)
    os.environ.setdefault("MXNET_NUM_THREADS", "1")
    command = [sys.executable, "-m", "mxnet.kvstore._rank", *(["-m"] if found.is_module else [])]
    command += [found.program, *found.arguments]
    if found.num_processes > 1:
        starter = [str(found.mpiexec or find_mpiexec()), "-n", str(found.num_processes)]
        if found.hostfile is not None:
            starter += ["-f", found.hostfile]
        command = starter + command
    sys.stdout.flush()
    os.execv(command[0], command)


if __name__ == "__main__":
    try:
        main()
    except ImportError as error:
        sys.exit(str(error))
