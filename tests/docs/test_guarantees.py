"""The page of guarantees names tests that exist, for every promise."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TEXT = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")


def promises():
    """The rows of the tables: what is promised, and the paths of its tests."""
    for line in TEXT.splitlines():
        if line.startswith("| ") and not line.startswith("| promise "):
            promise, tests = line.strip("| ").rsplit(" | ", 1)
            yield promise, re.findall(r"`(tests/[^`]+)`", tests)


def test_every_promise_names_tests_that_exist():
    found = list(promises())
    assert len(found) >= 15
    for promise, tests in found:
        assert tests, promise
        for name in tests:
            path = ROOT / name
            files = sorted(path.glob("test_*.py")) if path.is_dir() else [path]
            assert files, (promise, name)
            assert any("\ndef test_" in file.read_text(encoding="utf-8") for file in files), (promise, name)


def test_other_files_that_the_page_names_exist():
    for name in re.findall(r"`((?:tests|docs|tools)/[^`]+)`", TEXT):
        assert (ROOT / name).exists(), name
