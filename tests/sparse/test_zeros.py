"""Marks of operators that keep zeros: each gives zero for zero, and takes sparse arrays."""

import numpy
import pytest

import mxnet as mx
from mxnet import _core, np, sparse
from mxnet.sparse import _table

OP = _core.namespaces["op"]
ENTRIES = {entry["name"]: entry for entry in _core.registry()}
MARKED = sorted(_table.keeping_zero())
UNARY = [name for name in MARKED if [kind for _, kind, _ in ENTRIES[name]["params"]].count("array") == 1]
ZEROS = {"b": [False], "i": [0], "u": [0], "f": [0.0, -0.0], "c": [0j]}


@pytest.mark.parametrize("name", MARKED)
def test_a_marked_operator_gives_zero_for_zeros(name):
    count = [kind for _, kind, _ in ENTRIES[name]["params"]].count("array")
    for dtype in ENTRIES[name]["dtypes"]:
        kind = "f" if dtype == "bfloat16" else numpy.dtype(dtype).kind
        for zero in ZEROS[kind]:
            x = np.array([zero]).astype(dtype)
            result = OP[name](*[x] * count)
            for y in result if isinstance(result, (tuple, list)) else [result]:
                assert (y == 0).all(), f"{dtype} {zero}: {y}"


@pytest.mark.parametrize("name", UNARY)
def test_a_marked_operator_takes_sparse_arrays(name):
    entry = ENTRIES[name]
    dtype = next(d for d in ("float32", "int32", *entry["dtypes"]) if d in entry["dtypes"])
    low, high = entry["range"]
    x = numpy.random.default_rng(0).uniform(low, high, (4, 5)) * (numpy.arange(20).reshape(4, 5) % 3 == 0)
    x = np.array(x).astype(dtype)
    if entry["form"] != "ufunc":
        pytest.skip("it is no function object: the table of sparse arrays says what it takes")
    want = OP[name](x)
    if isinstance(want, (tuple, list)):
        pytest.skip("it has several results")
    a = sparse.csr_array(x)
    got = OP[name](a)
    assert sparse.issparse(got) and got.indices is a.indices
    numpy.testing.assert_array_equal(got.todense().asnumpy(), want.asnumpy())


@pytest.mark.parametrize("name", ["cos", "exp", "logical_not", "reciprocal"])
def test_other_operators_are_refused_by_name(name):
    with pytest.raises(mx.error.UnsupportedError, match=rf"{name}\(csr_array\).*not zero at zero"):
        OP[name](sparse.csr_array((2, 2)))
