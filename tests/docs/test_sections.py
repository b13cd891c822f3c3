"""Every public function documents its parameters and results and has an example, whose results are as shown."""

import contextlib
import doctest
import importlib
import inspect
import re
import warnings
from pathlib import Path
from types import ModuleType

import numpy
import pytest

import contract
import docexamples
import mxnet
from mxnet import _core

# Namespaces whose names the contract lists and whose descriptions are looked at here.
DESCRIBED = (
    *("np", "npx", "autograd", "engine", "device", "dlpack", "util", "test_utils", "random"),
    *("amp", "initializer", "lr_scheduler", "optimizer", "profiler"),
)
# Python describes what slots of the data model do; a property needs no more than a sentence.
SLOT = type(object.__init__)
PROPERTIES = (property, type(type.__dict__["__module__"]), type(_core.ndarray.shape))
# Another library's: described there.
FOREIGN = ("numpy", "builtins", "ml_dtypes")


def described():
    """`(path, object)` of what the contract lists, is there and is ours."""
    folder = Path(__file__).parents[1] / "api"
    for path in sorted({name.path for name in contract.read_names(folder)}):
        home, _, rest = path.partition(".")
        if home not in DESCRIBED and (rest or (home in dir(mxnet) and isinstance(getattr(mxnet, home), ModuleType))):
            continue
        found = mxnet
        for part in path.split("."):
            found = getattr(found, part, None)
        if found is None or isinstance(found, ModuleType | SLOT) or not callable(found):
            continue
        module = getattr(found, "__module__", None) or ""
        if module.partition(".")[0] in FOREIGN or path.startswith("np.dtype."):
            continue
        yield path, found


with warnings.catch_warnings():
    # Older spellings are in the tables too, and say so when they are looked up.
    warnings.simplefilter("ignore", DeprecationWarning)
    PUBLIC = dict(described())
OPERATORS = {operator["name"]: operator for operator in _core.registry()}


def signature(found):
    with contextlib.suppress(ValueError, TypeError):
        return inspect.signature(found)
    return None


def parameters(found):
    """Names of what a caller gives."""
    known = signature(found)
    return [name for name in known.parameters if name not in ("self", "cls")] if known else []


def gives_nothing(found):
    known = signature(found)
    return known is not None and known.return_annotation in (None, "None", "builtins.None")


def section(doc, title):
    return re.search(rf"^{title}\n-{{3,}}\n(.+)", doc, re.MULTILINE)


def lacks(path, found):
    doc = inspect.getdoc(found) or ""
    if not doc.strip():
        return ["a description"]
    if path.rpartition(".")[2].startswith("__") and not isinstance(found, type):
        return []  # protocols: who implements the other side reads their specification
    missing = []
    if parameters(found) and not section(doc, "Parameters"):
        missing.append("Parameters")
    changes_in_place = isinstance(found, type) or gives_nothing(found) or path in IN_PLACE
    if not changes_in_place and not section(doc, "(?:Returns|Yields)"):
        missing.append("Returns")
    # Small classes show once how their methods are used together.
    owner = PUBLIC.get(path.rpartition(".")[0])
    shown = doc + (inspect.getdoc(owner) or "" if isinstance(owner, type) and not path.startswith("np.") else "")
    if not (isinstance(found, type) and issubclass(found, BaseException)) and ">>>" not in shown:
        missing.append("Examples")
    return missing


# Methods in C, whose signatures do not say that they give nothing.
IN_PLACE = {
    *(f"np.ndarray.{name}" for name in ("attach_grad", "backward", "drop_grad", "fill", "partition", "resize")),
    *(f"np.ndarray.{name}" for name in ("put", "setflags", "sort")),
    *("np.ndarray.wait_to_read", "np.ndarray.wait_to_write", "np.ufunc.at", "np.ndarray.zero_grad"),
}


def test_enough_is_looked_at():
    assert len(PUBLIC) > 750


@pytest.mark.parametrize("path", sorted(PUBLIC))
def test_public_name_is_described(path):
    assert lacks(path, PUBLIC[path]) == []


@pytest.mark.parametrize("path", sorted(PUBLIC))
def test_parameters_are_those_of_the_signature(path):
    """No description is left of a parameter that went, and none is missing."""
    doc = inspect.getdoc(PUBLIC[path]) or ""
    if not section(doc, "Parameters"):
        return
    body = re.split(r"\n\n?[A-Z][A-Za-z ]+\n-{3,}\n", doc.split("Parameters\n----------\n", 1)[1])[0]
    heads = [line.partition(" :")[0] for line in body.splitlines() if line and not line.startswith(" ")]
    named = {name.strip().lstrip("*") for head in heads for name in head.split(",")}
    if signature(PUBLIC[path]) is not None and path != "np.ufunc":
        assert named - {"kwargs"} <= set(parameters(PUBLIC[path])), f"{path} has no parameter of these"
        assert set(parameters(PUBLIC[path])) - named <= {"args", "kwargs"}, f"{path} does not describe these"


def classes_of_gluon():
    folder = Path(__file__).parents[1] / "api"
    for name in contract.read_names(folder):
        found = contract.find(mxnet, name.path)
        if name.path.startswith("gluon.") and isinstance(found, type) and not issubclass(found, Exception):
            yield name.path, found


@pytest.mark.parametrize(("path", "found"), list(classes_of_gluon()))
def test_gluon_class_shows_an_example(path, found):
    # Base classes without anything to do, whose subclasses show it.
    if found.__name__ not in ("Loss", "Dataset", "Sampler", "RecurrentCell", "HybridRecurrentCell", "ModifierCell"):
        assert ">>>" in inspect.getdoc(found), f"{path} shows no example"


@pytest.mark.parametrize("path", sorted(PUBLIC))
@pytest.mark.filterwarnings("ignore")
def test_examples_run(path):
    assert docexamples.failures(inspect.getdoc(PUBLIC[path]) or "", path) == ""


@pytest.mark.parametrize("name", sorted(name for name, operator in OPERATORS.items() if operator["surface"]))
@pytest.mark.filterwarnings("ignore")
def test_examples_of_operators_hold_for_numpy(name):
    """Where an example names nothing that only this package has, NumPy gives the same."""
    example = inspect.cleandoc(OPERATORS[name]["example"])
    assert example, f"{name} shows no example"
    if re.search(r"\b(npx|mx|autograd|random|attach_grad)\b", example):
        return
    ours, theirs = {"np": mxnet.np}, {"np": numpy}
    for part in doctest.DocTestParser().get_examples(example + "\n"):
        if not part.want:
            exec(part.source, ours)
            exec(part.source, theirs)
            continue
        got, want = (flat(eval(part.source, scope)) for scope in (ours, theirs))
        assert len(got) == len(want), part.source
        for mine, other in zip(got, want, strict=True):
            mine, other = numpy.asarray(mine), numpy.asarray(other)
            if name == "eigvals" and not other.imag.any():
                other = other.real  # always complex in NumPy from 2.5 on
            assert mine.shape == other.shape and mine.dtype.kind == other.dtype.kind, part.source
            numpy.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6, err_msg=part.source)


def flat(value):
    if isinstance(value, tuple | list):
        return [item for part in value for item in flat(part)]
    return [value.asnumpy() if isinstance(value, _core.ndarray) else value]


# Derived sections are right: what they promise to raise is raised.


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_axis_errors_are_what_docstrings_say(name):
    operator = OPERATORS[name]
    kinds = {parameter: kind for parameter, kind, _ in operator["params"]}
    if not operator["surface"] or kinds.get("axis") not in ("int", "ints") or not example_with_axis(operator):
        return
    function = _core.namespaces["op"][name]
    with pytest.raises(numpy.exceptions.AxisError):
        function(mxnet.np.ones((2, 3)), axis=97)
    assert section(inspect.getdoc(function), "Raises")


def example_with_axis(operator):
    """Whether the operator takes one array and an axis, so that a call is known."""
    required = re.match(r"\((\w+), (?:axis|\*|/)", operator["signature"])
    return required is not None and operator["params"][0][1] == "array"


def test_words_of_choices_are_checked():
    for name, operator in OPERATORS.items():
        choices = [parameter for parameter, kind, _ in operator["params"] if kind == "choice"]
        if operator["surface"] and choices:
            doc = inspect.getdoc(_core.namespaces["op"][name])
            assert f"If `{choices[0]}` is not one of these strings." in doc, name
    with pytest.raises(ValueError, match="mode"):
        mxnet.np.convolve([1, 2], [3, 4], mode="some")


def test_modules_describe_themselves():
    for name in DESCRIBED:
        assert importlib.import_module(f"mxnet.{ {'np': 'numpy', 'npx': 'numpy_extension'}.get(name, name) }").__doc__
