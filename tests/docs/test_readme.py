"""The README's examples print the results that it shows."""

import contextlib
import io
import re
from pathlib import Path

import pytest

import mxnet as mx

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def printed(example):
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(example, "README.md", "exec"), {})
    return output.getvalue()


def test_readme_has_one_example_each_for_arrays_networks_and_what_is_different():
    assert len(EXAMPLES) == 3
    assert all(len(example.splitlines()) <= 22 for example in EXAMPLES)


def test_array_example_is_numpys():
    ours, theirs = printed(EXAMPLES[0]), printed(EXAMPLES[0].replace("from mxnet import np", "import numpy as np"))
    # Both are rounded to two places; float32 and float64 may round to neighbours.
    assert float(ours) == pytest.approx(float(theirs), abs=0.01)


def test_network_example_learns():
    accuracy = re.fullmatch(r"accuracy: (\d+)%\n", printed(EXAMPLES[1]))
    # Guessing is right for half of the points; a network that learns the sign of the product for nearly all.
    assert int(accuracy[1]) >= 95


def test_gradient_example_counts_the_overwritten_elements():
    # d/dx of x[1]**2 + x[2]**2 + x[2] at (1, 2, 3)
    assert re.findall(r"[\d.]+", printed(EXAMPLES[2])) == ["0.", "4.", "7."]


def test_picture_is_made_by_its_script(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "examples")
    import plane

    with contextlib.redirect_stdout(io.StringIO()):
        assert plane.main(["--output", str(tmp_path / "plane.svg")]) > 0.95  # guessing gives a half
    drawn, kept = ((folder / "plane.svg").read_text() for folder in (tmp_path, ROOT / "docs/images"))
    # The last bits of training depend on the processor, colours hardly.
    size = plane.CELLS * plane.PIXELS
    assert drawn.splitlines()[0] == kept.splitlines()[0]
    assert f'width="{size}"' in kept
    assert drawn.count("<circle") == kept.count("<circle") == plane.SHOWN


def test_table_of_capabilities_has_ten_lines_and_counts_optimizers():
    table = README.split("| capability |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    assert len(table) == 10
    # Examples of other tests register optimizers of their own.
    known = [x for x in mx.optimizer.Optimizer.opt_registry.values() if x.__module__.startswith("mxnet.optimizer.")]
    assert f"{len(known)} optimizers" in "\n".join(table)


def test_readme_names_files_that_exist():
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", README):
        assert (ROOT / target).exists(), target


def test_readme_names_targets_that_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"\bmake ([a-z]+)\b", README)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
