"""A build for a Python without the interpreter's lock ends with the reason."""

import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# An empty crate with the module's build script. It depends on `pyo3-ffi` alone, which passes the Python's configuration
# to that script.
CRATE = """
[package]
name = "build-script"
version = "0.0.0"
edition = "2024"
build = "{script}"

[lib]
path = "empty.rs"

[dependencies]
pyo3-ffi = {{ version = "{version}", features = ["abi3-py311"] }}

[build-dependencies]
pyo3-build-config = "{version}"

[workspace]
"""


@pytest.mark.parametrize("is_free_threaded", [False, True])
def test_a_build_for_a_free_threaded_python_is_refused(is_free_threaded, tmp_path):
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed")
    requirements = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["dependencies"]
    assert requirements["pyo3"]["features"][0] == "abi3-py311"
    script = ROOT / "crates" / "ffi" / "python" / "build.rs"
    version = requirements["pyo3-build-config"]
    (tmp_path / "Cargo.toml").write_text(CRATE.format(script=script, version=version))
    (tmp_path / "empty.rs").write_text("")
    shutil.copy(ROOT / "Cargo.lock", tmp_path)
    # What PyO3 finds out about an interpreter.
    configuration = tmp_path / "python.txt"
    flags = "build_flags=Py_GIL_DISABLED\n" if is_free_threaded else ""
    configuration.write_text(f"implementation=CPython\nversion=3.14\n{flags}suppress_build_script_link_lines=true\n")
    done = subprocess.run(
        ["cargo", "check", "--offline", "--target-dir", tmp_path / "target"],
        cwd=tmp_path,
        env=os.environ | {"PYO3_CONFIG_FILE": str(configuration)},
        capture_output=True,
        text=True,
        check=False,
    )
    if is_free_threaded:
        assert done.returncode != 0
        assert "Python 3.14 is free-threaded, and the contents of array objects are guarded" in done.stderr
    else:
        assert done.returncode == 0, done.stderr
