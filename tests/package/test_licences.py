"""What is linked is named, allowed and shipped."""

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import licences

ROOT = Path(__file__).parents[2]


def test_only_licences_that_go_with_ours_are_allowed():
    for licence, is_fine in [
        ("MIT OR Apache-2.0", True),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", True),
        ("GPL-3.0 OR MIT", True),
        ("GPL-3.0-only", False),
        ("MIT AND MPL-2.0", False),
        ("", False),
    ]:
        assert licences.is_allowed(licence) == is_fine, licence


def test_the_list_for_machines_names_what_the_lock_file_has():
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    checksums = {(package["name"], package["version"]): package.get("checksum") for package in lock["package"]}
    document = json.loads((ROOT / "sbom.cdx.json").read_text())
    assert document["bomFormat"] == "CycloneDX"
    names = set()
    for component in document["components"]:
        key = (component["name"], component["version"])
        assert component["hashes"][0]["content"] == checksums[key]
        names.add(component["name"])
    assert {"gemm", "faer", "pyo3", "rustfft"} <= names
    assert not {"cbindgen", "proptest", "loom"} & names
    texts = (ROOT / "THIRD_PARTY_LICENSES.txt").read_text()
    assert all(f"{name} " in texts for name in names)


def test_both_files_are_up_to_date():
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed, so the linked crates are not known")
    done = subprocess.run(
        [sys.executable, "tools/licences.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
