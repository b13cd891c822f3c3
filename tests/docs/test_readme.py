"""What the README shows is what happens."""

import contextlib
import io
import re
from pathlib import Path

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_readme_example_learns_what_it_says():
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(example.splitlines()) <= 22
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example, "README.md", "exec"), {})
    told_apart = re.fullmatch(r"told apart: (\d+)%\n", printed.getvalue())
    # Guessing tells half of them apart; a network that learns the product's sign gets nearly all.
    assert int(told_apart[1]) >= 95


def test_readme_names_files_that_exist():
    root = Path(__file__).parents[2]
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (root / target).exists(), target


def test_readme_names_targets_that_exist():
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    for target in set(re.findall(r"\bmake ([a-z]+)\b", README)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
