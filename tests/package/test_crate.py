"""The Rust crate: no Python in its tree, and a minimal build."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def tree(*options: str) -> set[str]:
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed")
    command = ["cargo", "tree", "--locked", "-p", "mxnet", "-e", "normal", "--prefix", "none", *options]
    printed = subprocess.check_output(command, cwd=ROOT, text=True)
    return {line.split()[0] for line in printed.splitlines() if line.strip()}


def test_no_python_is_in_the_tree():
    found = tree()
    assert {"mxnet-core", "mxnet-ops", "mxnet-module"} <= found
    assert not [name for name in found if "python" in name or "pyo3" in name or name == "numpy"]


def test_the_minimal_build_has_the_cpu_and_nothing_else():
    found = tree("--no-default-features", "--features", "cpu")
    assert {"mxnet-core", "mxnet-ops"} <= found
    assert not {"mxnet-image", "mxnet-simulated", "mxnet-module", "libloading", "png"} & found


def test_nothing_public_is_unsafe():
    for source in (ROOT / "crates" / "mxnet" / "src").glob("*.rs"):
        code = [line for line in source.read_text().splitlines() if not line.lstrip().startswith("//")]
        assert "unsafe" not in "\n".join(code).replace("#![forbid(unsafe_code)]", ""), source


def test_the_committed_modules_table_is_the_one_that_examples_include():
    table = (ROOT / "crates" / "module" / "src" / "abi.rs").read_text()
    assert "use mxnet" not in table
    assert "crates/module/src/abi.rs" in (ROOT / "examples" / "modules" / "accelerator.rs").read_text()
