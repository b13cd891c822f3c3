"""Generated files are what the generator gives for the installed package, and the generator's own logic."""

import pytest

import gen

OPERATORS = [
    {"name": "add", "surface": ["np.add"], "family": "arith", "differentiable": True, "dtypes": ["float32", "int32"]},
    {"name": "floor", "surface": ["np.floor"], "family": "arith", "differentiable": False, "dtypes": ["float32"]},
    {"name": "relu", "surface": ["npx.relu"], "family": "activation", "differentiable": True, "dtypes": ["float32"]},
]


@pytest.mark.parametrize("target", sorted(gen.TARGETS))
def test_generated_file_is_up_to_date(target):
    path, text = gen.TARGETS[target]
    wanted, there = text(), path.read_text()
    assert there == wanted, f"{path.name} is not what tools/gen.py gives; `make gen` rewrites it"


def test_between_replaces_only_what_is_between_the_marks():
    text = f"a\n{gen.BEGIN}\nold\n{gen.END}\nb\n"
    assert gen.between(text, "new") == f"a\n{gen.BEGIN}\nnew\n{gen.END}\nb\n"
    assert gen.between(gen.between(text, "new"), "new") == gen.between(text, "new")


def test_between_refuses_a_text_without_marks():
    with pytest.raises(ValueError, match="needs the marks"):
        gen.between("no marks here", "new")


def test_family_table_counts_operators_and_gradients():
    rows = gen.family_table(OPERATORS).splitlines()[2:]
    assert rows == ["| activation | 1 | 1 | `npx.relu` |", "| arith | 2 | 1 | `np.add`, `np.floor` |"]
