"""The examples on the pages of the documentation."""

import re
from pathlib import Path

import pytest

import docexamples

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = [path for path in sorted(DOCS.glob("*.md")) if ">>>" in path.read_text(encoding="utf-8")]


def test_every_page_of_the_guide_has_examples():
    contents = re.findall(r"^(\w+)$", (DOCS / "index.md").read_text().split(":caption: Guide", 1)[1], re.MULTILINE)
    assert {f"{name}.md" for name in contents} - {"internals.md"} <= {page.name for page in PAGES}


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: str(page.relative_to(DOCS)))
def test_links_of_the_page_lead_to_files(page):
    for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_of_the_page(page):
    # The end of a block of code would be taken for what is printed.
    source = page.read_text(encoding="utf-8").replace("```", "")
    assert docexamples.failures(source, page.name) == ""
