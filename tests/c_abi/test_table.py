"""The table of MXNet's functions in the page of the C ABI: each kept one is there once, and what replaces it exists."""

from __future__ import annotations

import re

import pytest

from c_library import HEADER, ROOT

PAGE = (ROOT / "docs" / "design" / "c-abi.md").read_text()
DECLARED = set(re.findall(r"\b(mx_\w+)\(", (HEADER / "mxnet.h").read_text()))


def kept_functions() -> list[str]:
    """The new names of the rows that are kept or renamed."""
    rows = [line.split("\t") for line in (ROOT / "tests" / "api" / "c_api.tsv").read_text().splitlines()]
    name, scope = rows[0].index("new_name"), rows[0].index("scope")
    return [row[name] for row in rows[1:] if row[scope] in ("kept", "renamed")]


def table() -> list[tuple[list[str], str]]:
    """The names in the first column of each line, and the second column."""
    lines = PAGE.split("| functions | here |")[1].split("\n\n")[0].splitlines()
    cells = [line.strip("|").split("|") for line in lines if line.startswith("| `")]
    return [(re.findall(r"`([^`]+)`", left), right) for left, right in cells]


ENTRIES = [name for names, _ in table() for name in names]


def entries_of(function: str) -> list[str]:
    """The entries that name a function; one that ends in `…` names all that begin so and are not written out."""
    if exact := [entry for entry in ENTRIES if entry == function]:
        return exact
    return [entry for entry in ENTRIES if entry.endswith("…") and function.startswith(entry[:-1])]


def test_each_kept_function_has_one_line() -> None:
    kept = kept_functions()
    assert len(kept) > 200
    wrong = {name: found for name in kept if len(found := entries_of(name)) != 1}
    assert not wrong


def test_each_entry_names_a_kept_function() -> None:
    used = {entry for name in kept_functions() for entry in entries_of(name)}
    assert not set(ENTRIES) - used


@pytest.mark.parametrize(("names", "here"), table(), ids=lambda x: x[0] if isinstance(x, list) else "")
def test_what_replaces_a_function_exists_or_the_line_says_why_not(names: list[str], here: str) -> None:
    functions = re.findall(r"`(mx_\w+)", here)
    assert not set(functions) - DECLARED, names
    assert functions or re.match(r" (no[:,]|always)", here), names


def test_every_function_of_the_header_is_in_the_page() -> None:
    assert not DECLARED - set(re.findall(r"`(mx_\w+)", PAGE))
