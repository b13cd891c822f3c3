"""The text of stubs, on objects made here."""

import ast
from types import ModuleType

import pytest

import stubs

ADD = {
    "name": "add",
    "surface": ["np.add", "ndarray.plus"],
    "params": [("x1", "array", False), ("axis", "ints", True), ("keep", "bool", False)],
}


def add(x1, axis=None, *, keep=False, out=None, dtype=None):
    return x1


def test_operator_parameters_have_the_types_of_their_kinds():
    assert stubs.operator_line("add", add, ADD, "ndarray") == (
        "def add(x1: ArrayLike, axis: int | Sequence[int] | None = ..., *, keep: builtins.bool = ..., "
        "out: ndarray | None = ..., dtype: DTypeLike | None = ...) -> ndarray: ..."
    )


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda: 0, ""),
        (lambda a, /, b: 0, "a: Any, /, b: Any"),
        (lambda a, /: 0, "a: Any, /"),
        (lambda *, k=1: 0, "*, k: int = ..."),
        (lambda *a, k=None, **n: 0, "*a: Any, k: Any = ..., **n: Any"),
        (lambda s="x", f=1.0, b=True: 0, "s: str = ..., f: float = ..., b: builtins.bool = ..."),
    ],
)
def test_arguments_keep_their_markers(function, text):
    assert stubs.arguments(function, {}) == text


def test_object_without_a_signature_takes_everything():
    assert stubs.arguments(5, {}, "self") == "self, *args: Any, **kwargs: Any"


def test_class_has_properties_methods_and_operators():
    class ndarray:  # noqa: N801
        shape = property(lambda self: ())
        plus = add

        def __len__(self):
            return 0

        def __add__(self, other):
            return self

        def __pow__(self, value, mod=None, /):
            return self

        def detach(self):
            return self

    lines = list(stubs.class_lines(ndarray, {"plus": ADD}, {"add": "tuple[ndarray, ...]"}))
    assert lines[0] == "class ndarray:"
    assert "    def __len__(self) -> int: ..." in lines
    assert "    def __add__(self, other: Any) -> ndarray: ..." in lines
    assert "    def __pow__(self, value: Any, /) -> ndarray: ..." in lines
    assert "    def detach(self) -> ndarray: ..." in lines
    assert lines[lines.index("    def shape(self) -> tuple[int, ...]: ...") - 1] == "    @property"
    assert any(line.startswith("    def plus(") and line.endswith("-> tuple[ndarray, ...]: ...") for line in lines)
    ast.parse("\n".join(lines))


def test_error_named_like_its_base_names_the_module_of_the_base():
    error = type("ValueError", (ValueError,), {"__module__": "mxnet.error"})
    assert next(stubs.class_lines(error, {}, {})) == "class ValueError(builtins.ValueError):"


def test_package_imports_what_is_defined_elsewhere():
    core, package = ModuleType("mxnet._core"), ModuleType("mxnet.toy")
    core.array = len
    package.array, package.add, package.pi, package.newaxis, package._hidden = len, add, 3.14, None, 5
    package.OrderedDict, package.Path = type("A", (), {"__module__": "numpy"}), type("B", (), {"__module__": "pathlib"})
    text = stubs.package_stub(package, core, {"add": "add"}, {"add": ADD}, {"add": "ndarray"}, "mark")
    assert "from mxnet._core import array as array\n" in text
    assert "from numpy import A as OrderedDict\n" in text
    assert "\npi: float\n" in text
    assert "\nnewaxis: None\n" in text
    assert "def add(x1: ArrayLike" in text
    assert "_hidden" not in text
    assert "pathlib" not in text
    ast.parse(text)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([1, 2], "int"),
        ([(1, 2)], "tuple"),
        ([[1]], "list"),
        ([1, (1,)], "Any"),
        (["x"], "Any"),
    ],
)
def test_result_type_holds_for_all_calls(values, text):
    names = {"int": "ndarray", "tuple": "tuple[ndarray, ...]", "list": "list[ndarray]"}
    assert stubs.result_type(values, int) == names.get(text, text)
