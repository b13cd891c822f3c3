"""The operator that the guide adds step by step is the one that a Rust test adds and calls."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def lines(text):
    return [line.strip() for line in text.splitlines() if line.strip()]


def test_rust_code_of_the_guide_is_compiled_and_run():
    page = (ROOT / "docs/extending.md").read_text()
    tested = "\n".join(lines((ROOT / "crates/ops/tests/extending.rs").read_text()))
    blocks = re.findall(r"```rust\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 5
    for block in blocks:
        assert "\n".join(lines(block)) in tested
