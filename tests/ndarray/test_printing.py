"""Where the text of an array breaks its lines, as NumPy's does."""

import numpy as onp
import pytest

from mxnet import np, util


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int32", "uint64", "float16", "float32", "float64", "complex64", "bool"]
)
def test_the_dtype_has_a_line_of_its_own_where_the_last_one_is_full(dtype: str):
    with util.np_default_dtype(True):
        for n in range(40):
            theirs = onp.arange(n).astype(dtype)
            assert repr(np.array(theirs)) == repr(theirs)
            with onp.printoptions(linewidth=n + 20):
                assert repr(np.array(theirs)) == repr(theirs)


def test_a_dtype_in_the_repr_breaks_lines_as_in_numpy():
    for n in range(40):
        theirs = onp.arange(n).astype("float32")
        assert repr(np.arange(n).astype("float64")) == repr(theirs).replace("float32", "float64")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_elements_are_written_with_the_digits_of_their_dtype(dtype: str):
    theirs = onp.array([0.1, 1e4, -2.5], dtype)
    for theirs_one, ours in zip(theirs, np.array(theirs), strict=True):
        for call in ("format_float_positional", "format_float_scientific"):
            for options in ({}, {"precision": 3}, {"trim": "-", "sign": True}):
                assert getattr(np, call)(ours, **options) == getattr(onp, call)(theirs_one, **options)
    assert np.format_float_positional(0.1, unique=False, precision=3) == "0.100"


def test_shortest_digits_are_numpys():
    bits = onp.random.default_rng(0).integers(0, 2**64, 3000, dtype="uint64")
    doubles = [*bits.view("float64"), *(2.0 ** onp.arange(-1074, 1024)), *(bits % 2**53 / 4), 0.0, -0.0, 4, 10**18]
    doubles += [1e22, 1e23, 5e-324, onp.inf, -onp.inf, onp.nan]
    singles = [*bits.astype("uint32").view("float32"), *(onp.float32(2) ** onp.arange(-149, 128, dtype="float32"))]
    for ours, theirs in (
        (np.format_float_positional, onp.format_float_positional),
        (np.format_float_scientific, onp.format_float_scientific),
    ):
        for x in doubles:
            x = getattr(x, "item", lambda x=x: x)()
            assert ours(x) == theirs(x), x
        for x in singles:
            assert ours(np.array(x, dtype="float32")) == theirs(x), x
