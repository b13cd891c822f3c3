"""The programs in `examples`, each run short: they learn something, the same each time."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

from ranks import succeed

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def run(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))

    def run(name, *arguments):
        spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.main(list(arguments))

    yield run
    sys.modules.pop("_digits", None)


def test_every_example_is_run_by_a_test():
    programs = {path.stem for path in EXAMPLES.glob("*.py") if not path.stem.startswith("_")}
    sources = "".join(path.read_text() for path in Path(__file__).parents[1].rglob("test_*.py"))
    assert programs
    named = ('"{}"', '"{}.py"', "import {}\n")
    assert [name for name in programs if not any(form.format(name) in sources for form in named)] == []


def test_digits(run):
    assert run("digits", "--epochs", "2") > 0.85


def test_char_lstm(run):
    first, last = run(
        "char_lstm", "--steps", "60", "--size", "32", "--length", "24", "--batch-size", "16", "--sample", "5"
    )
    assert last < first - 0.8


def test_transformer_lm(run):
    arguments = [
        "--steps",
        "40",
        "--batch-size",
        "8",
        "--length",
        "24",
        "--units",
        "32",
        "--layers",
        "1",
        "--sample",
        "5",
    ]
    first, last = run("transformer_lm", *arguments)
    assert last < first - 0.8


def test_vae(run):
    first, last = run("vae", "--epochs", "3", "--hidden", "64")
    assert last < first - 8


def test_gan(run):
    first, last = run("gan", "--steps", "500")
    assert last < first - 0.05


def test_uncertain_regression(run):
    within, error = run("uncertain_regression", "--steps", "250")
    # The normal distribution has 68.3 % within one deviation; deviations lie between 0.05 and 0.45.
    assert 0.6 < within < 0.76
    assert error < 0.06


def test_tagging(run):
    # The most frequent tag alone gives 61 %.
    assert run("tagging", "--epochs", "6", "--words", "500") > 0.65


def test_transfer(run):
    scratch, known = run("transfer")
    assert known > scratch + 0.03


def test_custom_layer(run):
    assert run("custom_layer", "--steps", "100") > 0.9


def test_distributed_digits():
    text = succeed(2, EXAMPLES / "distributed_digits.py", "--epochs", "3")
    accuracy, count = re.search(r"accuracy ([\d.]+) of (\d) processes", text).groups()
    assert float(accuracy) > 0.8
    assert count == "2"
