"""The source distribution: its lock file has the crates of the package and no others."""

import shutil
import subprocess

import pytest

import sdist


def test_cargo_accepts_the_lock_file_of_the_sources(tmp_path):
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed")
    tree = sdist.sources(tmp_path)
    assert not (tree / "crates" / "ffi" / "c").exists()
    kept = sdist.locked(tree)
    assert kept < sdist.locked(sdist.ROOT)
    assert "mxnet-c" not in {name for name, *_ in kept}
    subprocess.run(
        ["cargo", "metadata", "--locked", "--offline", "--format-version", "1"],
        cwd=tree,
        check=True,
        stdout=subprocess.DEVNULL,
    )
