"""NumPy's interface on asynchronous, differentiable arrays.

Operators come from the registry of the compiled core; what only Python can express well stands in the modules beside
this one.
"""

from __future__ import annotations

from numpy import (
    False_,
    True_,
    bool_,
    byte,
    cdouble,
    complex64,
    complex128,
    complexfloating,
    csingle,
    double,
    dtype,
    e,
    euler_gamma,
    float16,
    float32,
    float64,
    floating,
    generic,
    half,
    inexact,
    inf,
    int8,
    int16,
    int32,
    int64,
    int_,
    intc,
    integer,
    intp,
    little_endian,
    long,
    longlong,
    nan,
    ndindex,
    newaxis,
    number,
    pi,
    short,
    signedinteger,
    single,
    ubyte,
    uint,
    uint8,
    uint16,
    uint32,
    uint64,
    uintc,
    uintp,
    ulong,
    ulonglong,
    unsignedinteger,
    ushort,
)

from mxnet import _core
from mxnet._core import (
    __version__,
    array,
    asanyarray,
    asarray,
    ascontiguousarray,
    asfortranarray,
    from_dlpack,
    ndarray,
    ufunc,
)
from mxnet.numpy import _absent, emath, exceptions, fft, lib, linalg, random
from mxnet.numpy import dtypes as dtypes
from mxnet.numpy._broadcasting import broadcast_arrays, broadcast_shapes
from mxnet.numpy._calculus import gradient, unwrap
from mxnet.numpy._choosing import apply_along_axis, apply_over_axes, piecewise, select
from mxnet.numpy._closeness import (
    allclose,
    array_equal,
    array_equiv,
    iscomplexobj,
    isrealobj,
    real_if_close,
    sort_complex,
)
from mxnet.numpy._conversion import (
    asarray_chkfinite,
    frombuffer,
    fromfile,
    fromiter,
    fromstring,
    genfromtxt,
    loadtxt,
    require,
    savetxt,
)
from mxnet.numpy._dtype_limits import finfo, iinfo
from mxnet.numpy._dtypes import (
    ScalarType,
    boolean_dtypes,
    can_cast,
    common_type,
    floating_dtypes,
    integer_dtypes,
    isdtype,
    isscalar,
    issubdtype,
    min_scalar_type,
    numeric_dtypes,
    promote_types,
    result_type,
    sctypeDict,
    typecodes,
)
from mxnet.numpy._errors import errstate, geterr, geterrcall, seterr, seterrcall
from mxnet.numpy._files import load, save, savez, savez_compressed
from mxnet.numpy._grids import (
    c_,
    fromfunction,
    geomspace,
    index_exp,
    indices,
    ix_,
    logspace,
    meshgrid,
    mgrid,
    ogrid,
    r_,
    s_,
)
from mxnet.numpy._histograms import histogram, histogram2d, histogram_bin_edges, histogramdd
from mxnet.numpy._indexing import diagflat, put, put_along_axis
from mxnet.numpy._iteration import broadcast, iterable, ndenumerate
from mxnet.numpy._joining import (
    append,
    atleast_1d,
    atleast_2d,
    atleast_3d,
    block,
    delete,
    dsplit,
    hsplit,
    insert,
    rollaxis,
    trim_zeros,
    vsplit,
)
from mxnet.numpy._memory import isfortran, may_share_memory, ndim, shape, shares_memory, size
from mxnet.numpy._namespace import __array_namespace_info__
from mxnet.numpy._nans import (
    nanargmax,
    nanargmin,
    nanmax,
    nanmean,
    nanmin,
    nanprod,
    nanstd,
    nansum,
    nanvar,
)
from mxnet.numpy._padding import pad
from mxnet.numpy._paths import einsum_path
from mxnet.numpy._polynomials import (
    poly,
    polyadd,
    polyder,
    polydiv,
    polyfit,
    polyint,
    polymul,
    polysub,
    polyval,
    roots,
)
from mxnet.numpy._printing import (
    array2string,
    array_repr,
    array_str,
    base_repr,
    binary_repr,
    format_float_positional,
    format_float_scientific,
    get_printoptions,
    printoptions,
    set_printoptions,
)
from mxnet.numpy._products import einsum, tensordot
from mxnet.numpy._quantiles import median, nanmedian, nanpercentile, nanquantile, percentile, quantile
from mxnet.numpy._sets import (
    intersect1d,
    isin,
    setdiff1d,
    setxor1d,
    union1d,
    unique,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
)
from mxnet.numpy._statistics import average, corrcoef, cov
from mxnet.numpy._triangles import (
    diag_indices,
    diag_indices_from,
    mask_indices,
    tril_indices,
    tril_indices_from,
    triu_indices,
    triu_indices_from,
)
from mxnet.numpy._vectorizing import vectorize
from mxnet.numpy._vectors import cross
from mxnet.numpy._windowing import bartlett, blackman, hamming, hanning, i0, kaiser
from mxnet.numpy._writing import copyto, fill_diagonal, place, putmask

bool = bool_  # NumPy's name
bfloat16 = "bfloat16"
__array_api_version__ = "2025.12"

globals().update(_core.namespaces["numpy"])
# `testing` takes as long to import as all the rest, and programs seldom need it.
__getattr__ = _absent.attributes("mxnet.numpy", _absent.NUMPY, late=("testing",))

__all__ = sorted({name for name in globals() if not name.startswith("_")} - {"annotations"})
