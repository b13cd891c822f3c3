"""Names that NumPy has and this package has not say what to use instead."""

import numpy
import pytest

import mxnet as mx
from mxnet.numpy import _absent

np = mx.np


@pytest.mark.parametrize(
    ("space", "hints", "name"),
    [
        *((np, _absent.NUMPY, name) for name in _absent.NUMPY),
        *((np.random, _absent.RANDOM, name) for name in _absent.RANDOM),
        *((np.lib, _absent.LIB, name) for name in _absent.LIB),
    ],
)
def test_absent_names_say_what_to_use(space, hints, name):
    with pytest.raises(AttributeError, match=f"^module '{space.__name__}' has no attribute '{name}': ") as caught:
        getattr(space, name)
    assert caught.value.name == name
    assert "{" not in str(caught.value)
    assert not hasattr(space, name)


def test_every_public_name_of_numpy_is_there_or_says_what_to_use():
    there = {"long", "ulong"}  # of NumPy's own classes
    public = {name for name in dir(numpy) if not name.startswith("_")} - there
    assert {name for name in public if not hasattr(np, name) and name not in _absent.NUMPY} == set()
    public = {name for name in dir(numpy.random) if not name.startswith("_")}
    assert {name for name in public if not hasattr(np.random, name) and name not in _absent.RANDOM} == set()
    public = set(numpy.lib.__all__)
    assert {name for name in public if not hasattr(np.lib, name) and name not in _absent.LIB} == set()


def test_other_names_are_absent_without_advice():
    with pytest.raises(AttributeError, match=r"^module 'mxnet.numpy' has no attribute 'nonsense'$"):
        np.nonsense
    with pytest.raises(ImportError, match="nditer"):
        from mxnet.numpy import nditer  # noqa: F401
