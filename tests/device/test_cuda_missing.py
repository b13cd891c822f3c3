"""Operators without a kernel for CUDA devices are listed: none is forgotten, and none is listed that has one."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIST = ROOT / "docs" / "api" / "cuda_missing.md"


def entries():
    """Names of operators whose entries have a kernel of their own, or run on the host at the call."""
    for crate in ("ops", "sparse", "ragged"):
        for file in sorted((ROOT / "crates" / crate / "src").rglob("*.rs")):
            name = None
            for line in file.read_text().splitlines():
                if found := re.match(r'\s+name: "([a-z0-9_]+)",', line):
                    name = found[1]
                if name and re.match(r"\s+cpu: Cpu::(Kernel|Map|Eager)\(", line):
                    yield name


def served():
    """Names that the families of kernels write."""
    files = (ROOT / "crates" / "cuda" / "src" / "kernels").glob("*.rs")
    return {name for file in files for name in re.findall(r'"([a-z0-9_]+)"', file.read_text())}


def test_the_list_has_all_operators_without_a_kernel():
    listed = re.findall(r"^- `([a-z0-9_]+)`$", LIST.read_text(), re.MULTILINE)
    assert sorted(set(entries()) - served()) == listed
