"""The tree checks, each on a small tree that breaks the rule and on one that keeps it."""

from pathlib import Path

import pytest

import lint


@pytest.fixture
def tree(tmp_path):
    """Make a tree of `{path: text}` and of crates `{name: [dependency or (dependency, kind), ...]}`."""

    def make(files=None, crates=None):
        packages = []
        for name, dependencies in (crates or {}).items():
            pairs = [pair if isinstance(pair, tuple) else (pair, None) for pair in dependencies]
            manifest = str(tmp_path / "crates" / name.removeprefix("mxnet-") / "Cargo.toml")
            listed = [{"name": other, "kind": kind} for other, kind in pairs]
            packages.append({"name": name, "manifest_path": manifest, "dependencies": listed})
        for path, text in (files or {}).items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_bytes(text if isinstance(text, bytes) else text.encode())
        return lint.Tree(tmp_path, sorted(files or {}), {"packages": packages})

    return make


def faults(check, tree):
    return list(check(tree))


def test_arrow_upward_is_a_fault(tree):
    found = faults(lint.check_arrows, tree(crates={"mxnet-engine": ["mxnet-tensor"], "mxnet-tensor": ["mxnet-engine"]}))
    assert found == ["crates/engine/Cargo.toml: `mxnet-engine` must not depend on `mxnet-tensor`; below it are: none"]


def test_arrow_sideways_is_a_fault(tree):
    crates = {"mxnet-engine": [], "mxnet-tensor": ["mxnet-kernels"], "mxnet-kernels": []}
    assert len(faults(lint.check_arrows, tree(crates=crates))) == 1
    crates = {"mxnet-core": [], "mxnet-sparse": ["mxnet-graph"], "mxnet-graph": ["mxnet-core"]}
    assert len(faults(lint.check_arrows, tree(crates=crates))) == 1


def test_kernels_import_nothing_of_ours_even_in_tests(tree):
    crates = {"mxnet-engine": [], "mxnet-kernels": [("mxnet-engine", "dev")]}
    assert len(faults(lint.check_arrows, tree(crates=crates))) == 1


def test_arrows_may_be_followed_further_down(tree):
    crates = {
        "mxnet-engine": ["parking_lot"],
        "mxnet-kernels": ["gemm"],
        "mxnet-tensor": ["mxnet-engine"],
        "mxnet-ops": ["mxnet-tensor", "mxnet-kernels", "mxnet-engine"],
        "mxnet": ["mxnet-ops", "mxnet-engine"],
        "mxnet-python": ["mxnet", "pyo3"],
    }
    assert faults(lint.check_arrows, tree(crates=crates)) == []


def test_unknown_crate_is_a_fault(tree):
    assert "not in the drawing" in faults(lint.check_arrows, tree(crates={"mxnet-utils": []}))[0]


def test_testkit_is_for_tests_only(tree):
    crates = {"mxnet-testkit": ["mxnet-ops"], "mxnet-ops": [("mxnet-testkit", "dev")]}
    assert faults(lint.check_arrows, tree(crates=crates)) == []
    crates = {"mxnet-testkit": [], "mxnet-ops": ["mxnet-testkit"]}
    assert faults(lint.check_arrows, tree(crates=crates)) == [
        "crates/ops/Cargo.toml: `mxnet-testkit` may only be a dev-dependency"
    ]


@pytest.mark.parametrize(("foreign", "owner"), [("pyo3", "mxnet-python"), ("cudarc", "mxnet-cuda")])
def test_only_one_crate_names_a_foreign_runtime(tree, foreign, owner):
    assert faults(lint.check_arrows, tree(crates={owner: [foreign]})) == []
    found = faults(lint.check_arrows, tree(crates={"mxnet-ops": [foreign]}))
    assert found == [f"crates/ops/Cargo.toml: only `{owner}` may name `{foreign}`"]


def test_every_arrow_names_a_crate_of_the_drawing():
    assert {other for below in lint.ARROWS.values() for other in below} <= set(lint.ARROWS)


def test_crate_without_unsafe_guard_is_a_fault(tree):
    bad = tree({"crates/ops/src/lib.rs": "//! Operators.\n"}, {"mxnet-ops": []})
    assert [fault.split(":")[0] for fault in faults(lint.check_unsafe, bad)] == ["crates/ops/src/lib.rs"]


@pytest.mark.parametrize("word", ["forbid", "deny"])
def test_guard_at_the_root_covers_the_crate(tree, word):
    files = {"crates/ops/src/lib.rs": f"//! Operators.\n#![{word}(unsafe_code)]\n", "crates/ops/src/a.rs": "//! A.\n"}
    assert faults(lint.check_unsafe, tree(files, {"mxnet-ops": []})) == []


def test_guard_in_a_comment_does_not_count(tree):
    bad = tree({"crates/ops/src/lib.rs": "// #![forbid(unsafe_code)]\n"}, {"mxnet-ops": []})
    assert len(faults(lint.check_unsafe, bad)) == 1


def test_guard_file_by_file_must_be_in_every_file(tree):
    files = {
        "crates/ops/src/lib.rs": '#![expect(unsafe_code, reason = "calls kernels")]\n',
        "crates/ops/src/a.rs": "#![deny(unsafe_code)]\n",
        "crates/ops/src/b.rs": "//! B.\n",
    }
    found = faults(lint.check_unsafe, tree(files, {"mxnet-ops": []}))
    assert [fault.split(":")[0] for fault in found] == ["crates/ops/src/b.rs"]


def test_kernels_need_no_guard(tree):
    assert faults(lint.check_unsafe, tree({"crates/kernels/src/lib.rs": ""}, {"mxnet-kernels": []})) == []


@pytest.mark.parametrize("line", ["todo!()", 'unimplemented!("later")', "dbg!(x)", "let y = todo! {};"])
def test_unfinished_code_is_a_fault(tree, line):
    bad = tree({"crates/ops/src/a.rs": f"fn a() {{\n    {line}\n}}\n"})
    assert [fault.split(": ")[0] for fault in faults(lint.check_unfinished, bad)] == ["crates/ops/src/a.rs:2"]


def test_talking_of_unfinished_code_is_no_fault(tree):
    assert faults(lint.check_unfinished, tree({"crates/ops/src/a.rs": "// no todo!() here\nlet todo = 1;\n"})) == []


@pytest.mark.parametrize(("lines", "is_fault", "is_note"), [(600, 0, 0), (601, 0, 1), (1000, 0, 1), (1001, 1, 0)])
def test_long_files(tree, lines, is_fault, is_note):
    long = tree({"crates/ops/src/a.rs": "x\n" * lines})
    assert len(faults(lint.check_length, long)) == is_fault
    assert len(faults(lint.note_length, long)) == is_note


def test_generated_and_data_files_may_be_long(tree):
    files = {"python/mxnet/_core.py": f"# {lint.GENERATED_MARK}\n" + "x\n" * 2000, "tests/api/np.tsv": "x\n" * 2000}
    assert faults(lint.check_length, tree(files)) == []


@pytest.mark.parametrize(
    ("line", "is_fault"),
    [
        ("x" * 100, False),
        ("x" * 101, True),
        ("| " + "x" * 200 + " |", False),
        ("  | " + "x" * 200 + " |", False),
        ("a [page](" + "x" * 120 + ".md) of words", False),
        ("a [" + "x" * 101 + "](page.md)", True),
        ("see https://example.org/" + "x" * 120, False),
        ("(" + "x" * 100 + ")", True),
    ],
)
def test_wide_lines_of_markdown(tree, line, is_fault):
    found = faults(lint.check_markdown, tree({"docs/a.md": f"# A\n\n{line}\n", "docs/a.py": f"# {line}\n"}))
    assert [fault.split(": ")[0] for fault in found] == ["docs/a.md:3"] * is_fault


def test_generated_markdown_may_be_wide(tree):
    assert faults(lint.check_markdown, tree({"docs/a.md": f"<!-- {lint.GENERATED_MARK} -->\n{'x' * 200}\n"})) == []


@pytest.mark.parametrize(("lines", "is_fault"), [(150, 0), (151, 1)])
def test_long_design_pages(tree, lines, is_fault):
    text = "x\n" * lines
    files = {"docs/design/engine.md": text, "docs/guide.md": text * 2}
    found = faults(lint.check_pages, tree(files))
    assert [fault.split(":")[0] for fault in found] == ["docs/design/engine.md"] * is_fault


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("from . import numpy", "relative"),
        ("from mxnet.numpy import *", "import *"),
        ("import scipy.special", "`scipy` is not required"),
        ("from matplotlib import pyplot", "`matplotlib` is not required"),
        ("def f(:", "invalid syntax"),
    ],
)
def test_python_imports(tree, line, complaint):
    found = faults(lint.check_python_imports, tree({"python/mxnet/a.py": f'"""A."""\n{line}\n'}))
    assert len(found) == 1
    assert found[0].startswith("python/mxnet/a.py:2: ")
    assert complaint in found[0]


def test_good_python_imports(tree):
    text = "import numpy\nfrom mxnet import _core\nimport os.path\ndef f():\n    import matplotlib\n"
    assert faults(lint.check_python_imports, tree({"python/mxnet/a.py": text})) == []
    assert faults(lint.check_python_imports, tree({"tests/a.py": "from . import b\n"})) == []


@pytest.mark.parametrize("text", ["see /home/ada/x", "open('/root/x')", "/Users/ada/y"])
def test_words_of_a_machine_are_faults(tree, text):
    found = faults(lint.check_words, tree({"docs/a.md": f"fine\n{text}\n"}))
    assert [fault.split(": ")[0] for fault in found] == ["docs/a.md:2"]


def test_words_that_only_look_alike_are_fine(tree):
    files = {"a.md": "the/root/of it, /rooted/ a/home/b, at home/ada", "b.bin": b"\0/root/x"}
    assert faults(lint.check_words, tree(files)) == []


def test_design_index_lists_every_page_and_no_other(tree):
    files = {"docs/design/README.md": "- [Engine](engine.md)\n- [Gone](gone.md)\n"}
    files |= {"docs/design/engine.md": "", "docs/design/tensor.md": ""}
    assert faults(lint.check_design_index, tree(files)) == [
        "docs/design/README.md: `tensor.md` is not listed",
        "docs/design/README.md: lists `gone.md`, which is not there",
    ]


def test_dependency_rows_and_manifests_agree(tree):
    files = {
        "Cargo.toml": '[workspace.dependencies]\nmxnet = { path = "a" }\ngemm = "0.19"\nlibm = "0.2"\n',
        "pyproject.toml": '[project]\ndependencies = ["numpy>=2.0"]\noptional-dependencies.dev = ["ruff"]\n',
        "docs/design/dependencies.md": "| `gemm` 0.19 | x |\n| `numpy` | x |\n| `rayon` | x |\n",
    }
    assert faults(lint.check_dependencies, tree(files)) == [
        "docs/design/dependencies.md: no row for `libm` of Cargo.toml",
        "docs/design/dependencies.md: no row for `ruff` of pyproject.toml",
        "docs/design/dependencies.md: `rayon` has a row but no manifest requires it",
    ]


def test_this_checkout_is_clean():
    checkout = lint.Tree.checkout(Path(__file__).parents[2])
    assert [fault for check in lint.CHECKS for fault in check(checkout)] == []
