"""Generated files are what the generator gives for the installed package, and the generator's own logic."""

import subprocess
import sys

import pytest

import gen

OPERATORS = [
    {
        "name": "add",
        "surface": ["np.add", "ndarray.plus"],
        "family": "arith",
        "differentiable": True,
        "dtypes": ["float32", "int32"],
    },
    {"name": "floor", "surface": ["np.floor"], "family": "arith", "differentiable": False, "dtypes": ["float32"]},
    {"name": "T", "surface": ["ndarray.T"], "family": "shape", "differentiable": True, "dtypes": []},
    {"name": "relu", "surface": ["npx.relu"], "family": "activation", "differentiable": True, "dtypes": ["float32"]},
]


@pytest.mark.parametrize("target", sorted(gen.TARGETS))
def test_generated_file_is_up_to_date(target):
    # In a new process: other tests register operators.
    command = [sys.executable, str(gen.ROOT / "tools" / "gen.py"), "--check", target]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_between_replaces_only_what_is_between_the_marks():
    text = f"a\n{gen.BEGIN}\nold\n{gen.END}\nb\n"
    assert gen.between(text, "new") == f"a\n{gen.BEGIN}\nnew\n{gen.END}\nb\n"
    assert gen.between(gen.between(text, "new"), "new") == gen.between(text, "new")


def test_between_refuses_a_text_without_marks():
    with pytest.raises(ValueError, match="needs the marks"):
        gen.between("no marks here", "new")


def test_family_table_counts_operators_and_gradients():
    rows = gen.family_table(OPERATORS).splitlines()[2:]
    assert rows == [
        "| activation | 1 | 1 | `npx.relu` |",
        "| arith | 2 | 1 | `np.add`, `np.floor` |",
        "| shape | 1 | 1 | `ndarray.T` |",
    ]


@pytest.fixture
def target(tmp_path, monkeypatch):
    """The generator with one target of its own, whose text is what this function is given."""
    path = tmp_path / "there.txt"

    def make(text):
        monkeypatch.setattr(gen, "ROOT", tmp_path)
        monkeypatch.setattr(gen, "TARGETS", {"there": (path, lambda: text)})
        return path

    return make


def test_generator_writes_what_is_missing_and_then_is_content(target, capsys):
    path = target("new\n")
    assert gen.main([]) == 0
    assert path.read_text() == "new\n"
    assert capsys.readouterr().out == "there.txt written\n"
    assert gen.main(["--check"]) == 0
    assert capsys.readouterr().out == ""


def test_check_reports_drift_and_writes_nothing(target, capsys):
    path = target("new\n")
    path.write_text("old\n")
    assert gen.main(["--check", "there"]) == 1
    assert path.read_text() == "old\n"
    assert capsys.readouterr().out == "there.txt is not what would be generated\n"


def test_unknown_target_is_refused(target):
    target("")
    with pytest.raises(SystemExit):
        gen.main(["elsewhere"])


def test_operator_page_has_a_row_for_each_operator(monkeypatch):
    monkeypatch.setattr(gen, "registry", lambda: OPERATORS)
    page = gen.operator_page()
    assert gen.MARK in page.splitlines()[0]
    assert "has 4 operators, 3 of them with a gradient" in page
    assert page.index("| activation | 1 | 1 | `npx.relu` |") < page.index("## activation")
    assert page.index("## activation") < page.index("## arith")
    assert "| `add` | `np.add`, `ndarray.plus` | yes | float32, int32 |" in page
    assert "| `floor` | `np.floor` | no | float32 |" in page


def test_stubs_allow_none_beside_another_default():
    for module, name, argument in (
        ("numpy", "concatenate", "axis: int | None = ..."),
        ("numpy", "sort", "axis: int | None = ..."),
        ("numpy_extension", "masked_softmax", "temperature: float | None = ..."),
    ):
        stub = gen.ROOT / "python" / "mxnet" / module / "__init__.pyi"
        (line,) = (line for line in stub.read_text().splitlines() if line.startswith(f"def {name}("))
        assert argument in line
