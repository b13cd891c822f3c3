"""Programs of the Rust crate, built once."""

import os
import shutil
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@cache
def example(name: str) -> list[str]:
    """The command that runs an example: a program in the folder `MXNET_EXAMPLES`, else cargo, which builds it first."""
    if given := os.environ.get("MXNET_EXAMPLES"):
        return [str(Path(given) / name)]
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed")
    options = ["--profile", "develop", "--locked", "--quiet", "-p", "mxnet"]
    return ["cargo", "run", *options, "--example", name, "--"]


@cache
def program(name: str) -> list[str]:
    """As `example`, for a program of the package `name` in `examples/`."""
    if given := os.environ.get("MXNET_EXAMPLES"):
        return [str(Path(given).parent / name)]
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed")
    return ["cargo", "run", "--profile", "develop", "--locked", "--quiet", "-p", name, "--"]
