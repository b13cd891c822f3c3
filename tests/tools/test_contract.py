"""The comparison of a package with the API tables, on packages made here."""

import inspect
import sys
from types import ModuleType

import pytest

import contract


def compare(table, ours, ignored=frozenset()):
    return contract.compare(table, inspect.signature(ours), set(ignored))


def test_equal_signatures_have_no_faults():
    assert compare("(a, axis=None, *, keepdims=False)", lambda a, axis=None, *, keepdims=False: 0) == []


def test_more_optional_parameters_are_no_fault():
    assert compare("(a, axis=None)", lambda a, axis=None, out=None, *, device=None: 0) == []


def test_positional_only_in_the_table_may_be_named_here():
    assert compare("(x, /, out=None)", lambda x, out=None: 0) == []


def test_keyword_only_in_the_table_may_be_positional_here():
    assert compare("(a, *, k=1)", lambda a, k=1: 0) == []


def test_required_arguments_may_be_gathered_here():
    assert compare("(x, *args)", lambda *args: 0) == []
    assert compare("(x, axis=None)", lambda *args: 0) == ["no `axis`"]


@pytest.mark.parametrize(
    ("table", "ours", "fault"),
    [
        ("(a, axis=None)", lambda a: 0, "no `axis`"),
        ("(a, axis=None)", lambda a, **axis: 0, "no `axis`"),
        ("(a, axis=None)", lambda a, *, axis=None: 0, "`axis` is not positional argument 2"),
        ("(a, b)", lambda b, a: 0, "`a` is not positional argument 1; `b` is not positional argument 2"),
        ("(a, k=1)", lambda a, k: 0, "`k` has no default, should be 1"),
        ("(a, k=1)", lambda a, k=2: 0, "`k` is 2 by default, should be 1"),
        ("(a, k=True)", lambda a, k=1: 0, "`k` is 1 by default, should be True"),
        ("(a)", lambda a, b: 0, "`b` is required here only"),
    ],
)
def test_differences_are_named(table, ours, fault):
    assert "; ".join(compare(table, ours)) == fault


@pytest.mark.parametrize(
    ("table", "ours", "same"),
    [
        ("0.00999999978", 0.01, True),
        ("0.0099", 0.01, False),
        ("[]", (), True),
        ("(2, 3)", (2, 3), True),
        ("<class 'float'>", None, True),
        ("initializer.Uniform()", None, True),
        ("'C'", "C", True),
        ("'C'", "F", False),
        ("None", 0, False),
        ("1", 1.0, True),
    ],
)
def test_defaults(table, ours, same):
    assert contract.same_default(table, ours) is same


def test_ignored_parameters_are_not_asked_for():
    assert compare("(x, /, out=None, *, subok=True)", lambda x, out=None: 0, {"subok"}) == []


def test_commas_inside_a_default_do_not_split():
    found = contract.parse_signature("(self, a, b=[0,1], c=<class 'int'>, *args, d=f(1, 2), **kw)")
    assert [(p.name, p.default, p.is_keyword_only, p.is_variadic) for p in found] == [
        ("a", None, False, False),
        ("b", "[0,1]", False, False),
        ("c", "<class 'int'>", False, False),
        ("args", None, False, True),
        ("d", "f(1, 2)", True, False),
        ("kw", None, False, True),
    ]


@pytest.mark.parametrize(
    ("module", "name", "path"),
    [
        ("numpy", "add", "np.add"),
        ("numpy.linalg", "svd", "np.linalg.svd"),
        ("mx.np.ndarray", "asnumpy", "np.ndarray.asnumpy"),
        ("mx.npx.random", "bernoulli", "npx.random.bernoulli"),
        ("mx", "cpu", "cpu"),
        ("mx.amp", "init", "amp.init"),
        ("gluon.nn", "Dense", "gluon.nn.Dense"),
    ],
)
def test_paths(module, name, path):
    assert contract.home(module, name) == path


@pytest.fixture
def tables(tmp_path):
    (tmp_path / "np.tsv").write_text(
        "module\tname\tkind\tnumpy_signature\tscope\tmxnet2b1_signature\n"
        "numpy\tadd\tufunc\t(x1, x2, /, out=None, *, subok=True)\tmust\t-\n"
        "numpy\tclip\tfunction\t(a, low)\tmust\t(a, a_min)\n"
        "numpy\tmoved\tfunction\t(a)\tmust\t-\n"
        "numpy\tsave_all\tfunction\t(a)\tout\t-\n"
        "numpy.dtype\tbase\tproperty\t-\tout\t-\n"
        "numpy\tmaybe\tfunction\t(a)\textra\t-\n"
        "numpy.ndarray\tT\tproperty\t-\tmust\t-\n"
    )
    (tmp_path / "npx.tsv").write_text("module\tname\tkind\tsignature\tscope\nbackend\t_x\toperator\t(a)\tmust\n")
    header = "module\tname\tkind\tsignature\tmethods\tproperties\tmethod_signatures\tscope\n"
    (tmp_path / "gluon.tsv").write_text(
        header + "gluon\tBlock\tclass\t()\tsave load\tparams\tsave(prefix); load(prefix)\tmust\n"
        "gluon\tTrainer\tclass\t()\tstep\t-\tstep(n)\tmust\n"
    )
    (tmp_path / "toplevel.tsv").write_text(header + "(absent)\tmx.mod\t-\t-\t-\t-\t-\tout\n")
    return tmp_path


def test_report_lists_what_is_missing_what_differs_and_what_should_be_gone(tables, monkeypatch):
    class Block:
        params = None

        def save(self, filename):
            pass

    package, np, gluon = (ModuleType(name) for name in ("toy", "toy.np", "toy.gluon"))
    package.np, package.gluon, gluon.Block = np, gluon, Block
    np.add = lambda x1, x2, out=None: 0
    np.clip = lambda a, a_min: 0
    np.save_all = lambda a: 0
    np.dtype = type("dtype", (), {"__module__": "numpy", "base": 1})
    monkeypatch.setitem(sys.modules, "toy", package)
    found = contract.report(package, tables)
    assert found.not_yet == ["gluon.Block.load", "gluon.Trainer", "np.moved", "np.ndarray.T"]
    assert found.differs == ["gluon.Block.save: no `prefix`; `filename` is required here only"]
    assert found.leftover == ["np.save_all"]


def test_a_sub_package_is_found_without_its_parent_importing_it():
    import email

    assert contract.find(email, "mime.text.MIMEText") is not contract.MISSING
    assert contract.find(email, "mime.nothing") is contract.MISSING
