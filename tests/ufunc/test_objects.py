"""Elementwise functions as objects: what they say about themselves."""

import copy
import csv
import inspect
import pickle
from pathlib import Path

import numpy as np
import pytest

import mxnet as mx

TABLE = Path(__file__).parents[1] / "api" / "np.tsv"


def names():
    """Every elementwise function of NumPy that the contract asks for."""
    with TABLE.open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    must = [r["name"] for r in rows if (r["module"], r["kind"], r["scope"]) == ("numpy", "ufunc", "must")]
    return [name for name in must if getattr(np, name).signature is None]


NAMES = names()
# NumPy has two objects where one function has two names.
SAME = {"degrees": "rad2deg", "radians": "deg2rad"}


def test_the_contract_asks_for_many_functions():
    assert len(NAMES) > 90


@pytest.mark.parametrize("name", NAMES)
def test_function_objects_have_numpys_attributes(name):
    ours, theirs = getattr(mx.np, name), getattr(np, name)
    assert isinstance(ours, mx.np.ufunc)
    assert ours.__name__ == SAME.get(name, theirs.__name__)
    for attribute in ("nin", "nout", "nargs", "identity", "signature"):
        assert getattr(ours, attribute) == getattr(theirs, attribute), attribute
    assert inspect.signature(ours) == inspect.signature(theirs)
    assert ours.__doc__.startswith(f"{ours.__name__}{inspect.signature(ours)}\n\n")


@pytest.mark.parametrize("name", NAMES)
def test_loops_are_numpys_and_those_of_bfloat16(name):
    ours, theirs = getattr(mx.np, name), getattr(np, name)
    assert ours.ntypes == len(ours.types) == len(set(ours.types))
    before = mx._core.set_numpy_promotion(True)
    try:
        types = {text for text in ours.types if "E" not in text}
    finally:
        mx._core.set_numpy_promotion(before)
    # int64 is `l` here and `q` too there; long doubles, times and objects are no numbers of ours.
    wanted = {text for text in theirs.types if not set(text) & set("gGOMmqQ")}
    wanted -= {"ei->e", "fi->f", "di->d"}  # ldexp's exponents of 32 bits are converted to 64
    assert types == wanted


@pytest.mark.parametrize("name", ["add", "divmod", "abs", "isfinite", "frexp"])
def test_functions_pickle_by_name(name):
    ours = getattr(mx.np, name)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(ours, protocol)) is ours
    assert copy.deepcopy(ours) is ours
    with pytest.raises(ValueError, match="no ufunc is called 'sum'"):
        mx._core._ufunc("sum")


def test_functions_show_their_name():
    assert repr(mx.np.add) == "<ufunc 'add'>"


def test_other_names_are_the_same_object():
    assert mx.np.abs is mx.np.absolute
    assert mx.np.pow is mx.np.power
    assert mx._core.namespaces["op"]["add"] is mx.np.add
    assert isinstance(mx.npx.erf, mx.np.ufunc)


def test_the_class_makes_no_instances_and_has_its_own_docstring():
    with pytest.raises(TypeError, match=r"cannot create 'mxnet\.numpy\.ufunc' instances"):
        mx.np.ufunc()
    assert "Elementwise function" in mx.np.ufunc.__doc__
    assert mx.np.ufunc.__module__ == mx.np.add.__module__ == "mxnet.numpy"
    with pytest.raises(AttributeError):
        mx.np.add.nin = 3


def test_calls_by_tuple_and_dictionary_are_calls():
    x = mx.np.array([1.0, 2.0])
    assert mx.np.add(*(x, 1), **{"dtype": "float64"}).dtype == np.float64
    assert type(mx.np.add).__call__(mx.np.add, x, x, casting="safe").tolist() == [2.0, 4.0]
    assert mx.np.add.__call__(x, x2=1).tolist() == [2.0, 3.0]
    assert next(map(mx.np.add, [x], [1])).tolist() == [2.0, 3.0]


@pytest.mark.parametrize("method", ["reduce", "accumulate", "reduceat", "outer", "at"])
def test_methods_have_docstrings(method):
    assert getattr(mx.np.ufunc, method).__doc__
    assert inspect.signature(getattr(mx.np.add, method))
