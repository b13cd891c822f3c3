"""Everything public says what it is, and the examples of Python functions run; `test_sections.py` has the details."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

import docexamples
import mxnet
from mxnet import _core

MODULES = ["mxnet"] + sorted(
    module.name
    for module in pkgutil.walk_packages(mxnet.__path__, "mxnet.")
    if not any(part.startswith("_") for part in module.name.split("."))
)
OPERATORS = {operator["name"]: operator for operator in _core.registry()}


def public_members(module):
    """`(dotted name, object)` of what a module defines: functions, classes, and the methods of those."""
    for name, found in vars(module).items():
        if name.startswith("_") or getattr(found, "__module__", None) != module.__name__:
            continue
        if inspect.isfunction(found):
            yield name, found
        elif inspect.isclass(found):
            yield name, found
            for member, attribute in vars(found).items():
                if not member.startswith("_") and (inspect.isfunction(attribute) or isinstance(attribute, property)):
                    yield f"{name}.{member}", getattr(found, member)


@pytest.mark.parametrize("name", MODULES)
def test_public_members_have_docstrings(name):
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} has no docstring"
    assert [member for member, found in public_members(module) if not (inspect.getdoc(found) or "").strip()] == []


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_operator_documents_itself(name):
    doc = OPERATORS[name]["doc"]
    first = doc.strip().splitlines()[0]
    assert first.endswith("."), f"the first line of {name}'s doc is no sentence: {first!r}"


PYTHON_MODULES = sorted(
    module.name for module in pkgutil.walk_packages(mxnet.__path__, "mxnet.") if "_core" not in module.name
)


@pytest.mark.parametrize("name", PYTHON_MODULES)
def test_examples_of_python_functions_run(name):
    module = importlib.import_module(name)
    runner, printed = docexamples.runner(), []
    for example in doctest.DocTestFinder(exclude_empty=True).find(module, globs=docexamples.names()):
        runner.run(example, out=printed.append)
    assert runner.failures == 0, "".join(printed)
