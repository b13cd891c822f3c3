"""Programs of their own, for what ends, forks or breaks a process."""

import subprocess
import sys
import textwrap

SECONDS = 120
PRELUDE = """
import os, signal, sys, threading, time
import numpy as onp
import mxnet as mx
from mxnet import _core, autograd, np, npx
"""


def run(program, *arguments, code=0, prelude=PRELUDE, cwd=None):
    """Runs a program, which must end by itself within the time; answers what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", prelude + textwrap.dedent(program), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        cwd=cwd,
        check=False,
    )
    assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done
