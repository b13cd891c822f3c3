"""What SciPy's sparse arrays have and these lack, with replacements.

The errors of missing attributes and the coverage table of the documentation read it.
"""

from __future__ import annotations

_NO_FORMAT = "there is no such format; `to_scipy()` shares the parts with SciPy's, which converts"
_BY_CSR = "blocks have no such form; `tocsr()` has"

# Attributes of arrays.
METHODS: dict[str, str] = {
    "maxprint": "printing shows kind, shape and number of stored elements; `todense()` shows elements",
    "prune": "parts have no spare room at their end",
    "resize": "arrays keep their shape; slices and `block_array` make smaller and larger ones",
    "setdiag": "elements are not assigned to; `x - sparse.diags_array(x.diagonal()) + sparse.diags_array(values)`",
    "tensordot": "`matmul` after `reshape` to two axes sums over one axis of both",
    "todia": _NO_FORMAT,
    "todok": _NO_FORMAT,
    "tolil": _NO_FORMAT,
    "eliminate_zeros": _BY_CSR,
    "has_canonical_format": _BY_CSR,
    "has_sorted_indices": _BY_CSR,
    "sort_indices": _BY_CSR,
    "sorted_indices": _BY_CSR,
    "sum_duplicates": _BY_CSR,
}

_NO_MATRIX = "matrices, whose `*` is the matrix product, do not exist; `{}` has the same parts"

# Functions and classes of the module.
FUNCTIONS: dict[str, str] = {
    **{f"{name}_matrix": _NO_MATRIX.format(f"{name}_array") for name in ("bsr", "coo", "csc", "csr")},
    **{f"{name}_{kind}": _NO_FORMAT for name in ("dia", "dok", "lil") for kind in ("array", "matrix")},
    **{
        f"isspmatrix_{name}": "`x.format` names the format"
        for name in ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")
    },
    "isspmatrix": "`issparse` tells sparse arrays",
    "spmatrix": _NO_MATRIX.format("sparray"),
    "bmat": "`block_array` gives arrays",
    "diags": "`diags_array` gives arrays",
    "spdiags": "`diags_array` takes diagonals of their own lengths",
    "eye": "`eye_array` gives arrays",
    "identity": "`eye_array` gives arrays",
    "rand": "`random_array` gives arrays",
    "random": "`random_array` gives arrays",
    "get_index_dtype": "index arrays are int64",
    "safely_cast_index_arrays": "index arrays are int64; `to_scipy()` gives SciPy's",
    "csgraph": "`mxnet.sparse.graph` has message passing and sampling; SciPy's takes `x.to_scipy()`",
    "linalg": "solvers and factorisations are SciPy's: they take `x.to_scipy()`",
    "SparseEfficiencyWarning": "nothing is made dense or slow silently, so nothing warns",
    "SparseWarning": "nothing is made dense or slow silently, so nothing warns",
}
