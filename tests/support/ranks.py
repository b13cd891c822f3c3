"""Runs a program in several processes, by the launcher."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(__file__).parents[1] / "kvstore" / "programs"
SECONDS = 120


def launch(num_processes, program, *arguments, environment=None, options=(), seconds=SECONDS):
    """Run a program of `tests/kvstore/programs`, or a file, and return what `subprocess.run` does."""
    path = PROGRAMS / program if isinstance(program, str) else program
    command = [sys.executable, "-m", "mxnet.launch", "-n", str(num_processes), *options, str(path), *arguments]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=seconds,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent), **(environment or {})},
    )


def succeed(num_processes, program, *arguments, **options):
    """Run a program that must end well on all ranks; answers what it printed."""
    done = launch(num_processes, program, *arguments, **options)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout
