"""Modules that several files of tests load. A module is loaded once for a process."""

from __future__ import annotations

import pytest

import mxnet as mx
from module_libraries import EXAMPLES, Build, builder, built_by_rustc


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    return builder(tmp_path_factory.mktemp("modules"))


@pytest.fixture(scope="session")
def cube(build: Build) -> mx.library.Module:
    return mx.library.load(build("cube", (EXAMPLES / "cube.c").read_text()), verbose=False)


@pytest.fixture(scope="session")
def accelerator(tmp_path_factory: pytest.TempPathFactory) -> mx.library.Module:
    return mx.library.load(built_by_rustc("accelerator", tmp_path_factory.mktemp("accelerator")), verbose=False)
