"""The examples on the pages of the documentation."""

from pathlib import Path

import pytest

import docexamples

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = [path for path in sorted(DOCS.glob("*.md")) if ">>>" in path.read_text(encoding="utf-8")]


def test_there_are_pages_with_examples():
    assert "data.md" in [page.name for page in PAGES]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_of_the_page(page):
    # The end of a block of code would be taken for what is printed.
    source = page.read_text(encoding="utf-8").replace("```", "")
    assert docexamples.failures(source, page.name) == ""
