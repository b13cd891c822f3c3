"""Linear algebra functions with named results, or whose arguments select the operators.

Factorisations are operators of the core. Their calls wait for the result, so that a matrix that cannot be factored
raises `LinAlgError` at the call, as NumPy's functions do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy
from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import LinAlgError, asarray, ndarray
from mxnet.numpy._dtypes import spelled
from mxnet.numpy._errors import silent
from mxnet.numpy._products import tensordot as _tensordot
from mxnet.numpy._vectors import cross as _cross

_np = _core.namespaces["numpy"]
_op = _core.namespaces["op"]
_linalg = _core.namespaces["linalg"]


class EigResult(NamedTuple):
    """Result of `eig`."""

    eigenvalues: ndarray
    eigenvectors: ndarray


class EighResult(NamedTuple):
    """Result of `eigh`."""

    eigenvalues: ndarray
    eigenvectors: ndarray


class QRResult(NamedTuple):
    """Result of `qr`."""

    Q: ndarray
    R: ndarray


class SlogdetResult(NamedTuple):
    """Result of `slogdet`."""

    sign: ndarray
    logabsdet: ndarray


class SVDResult(NamedTuple):
    """Result of `svd`."""

    U: ndarray
    S: ndarray
    Vh: ndarray


def _matrices(a: ArrayLike, name: str) -> ndarray:
    """The argument as an array of matrices."""
    x = asarray(a)
    if x.ndim < 2:
        raise LinAlgError(f"{name}: matrices have at least 2 axes, found {x.ndim}")
    return x


def _inexact(a: ArrayLike, name: str) -> ndarray:
    """The argument as an array of matrices with a dtype that can be factored."""
    return _factored(_matrices(a, name), name)


def _factored(x: ndarray, name: str) -> ndarray:
    """An array with a dtype that can be factored; integers become the default float."""
    kind = numpy.dtype("e" if spelled(x.dtype) == "bfloat16" else x.dtype)
    if kind.kind not in "fc":
        x = _op["astype"](x, _np["zeros"](()).dtype)
        return x
    if kind.itemsize < 4:
        raise TypeError(f"{name}: no kernel for dtype {x.dtype}; it takes float32, float64, complex64, complex128")
    return x


# Machine epsilon of the dtypes that can be factored.
_EPSILONS = {"float32": 2.0**-23, "complex64": 2.0**-23, "float64": 2.0**-52, "complex128": 2.0**-52}


def _epsilon(x: ndarray) -> float:
    return _EPSILONS[spelled(x.dtype)]


def eig(a: ArrayLike) -> EigResult:
    """Eigenvalues and right eigenvectors of square matrices.

    Parameters
    ----------
    a : array_like, shape (..., m, m)

    Returns
    -------
    EigResult
        `eigenvalues` (..., m) in no particular order and `eigenvectors` (..., m, m), columns of length 1. Real if `a`
        is and all eigenvalues of the whole stack are.

    Raises
    ------
    LinAlgError
        If a matrix is not square, holds infinities or NaNs, or the iteration does not converge.

    Notes
    -----
    Differentiable where eigenvalues differ, for results that do not depend on the phases of the eigenvectors.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.linalg.eig(mx.np.array([[2.0, 0.0], [0.0, 3.0]])).eigenvalues
    array([2., 3.])
    """
    return EigResult(*_op["eig"](a))


def _triangle(UPLO: str, name: str) -> str:
    triangle = UPLO.upper()
    if triangle not in ("L", "U"):
        raise ValueError(f"{name}: UPLO is {UPLO!r}, must be 'L' or 'U'")
    return triangle


def eigh(a: ArrayLike, UPLO: str = "L") -> EighResult:
    """Eigenvalues and eigenvectors of Hermitian matrices.

    Parameters
    ----------
    a : array_like, shape (..., m, m)
    UPLO : {'L', 'U'}
        The triangle that is read.

    Returns
    -------
    EighResult
        `eigenvalues` (..., m), real, in rising order, and `eigenvectors` (..., m, m), orthonormal columns. NaN for
        infinities and NaNs in matrices of 2 or of more than 25 rows.

    Raises
    ------
    LinAlgError
        If a matrix is not square, holds infinities or NaNs (but for those above), or the iteration does not converge.
    ValueError
        If `UPLO` is something else.

    Notes
    -----
    The gradient is that of a Hermitian matrix: both triangles share it. That of the vectors needs eigenvalues that
    differ.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.linalg.eigh(mx.np.array([[2.0, 1.0], [1.0, 2.0]])).eigenvalues
    array([1., 3.])
    """
    return EighResult(*_op["eigh"](a, _triangle(UPLO, "eigh")))


def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """QR factorisation.

    Parameters
    ----------
    a : array_like, shape (..., m, n)
    mode : {'reduced', 'complete', 'r', 'raw'}
        Q with min(m, n) columns, Q with m columns, R alone, or the reflections that Q is made of.

    Returns
    -------
    QRResult, ndarray or tuple
        `Q` with orthonormal columns and upper triangular `R`; `R`; or `h` (..., n, m) and `tau` as LAPACK's ``geqrf``
        has them.

    Raises
    ------
    LinAlgError
        If `a` has fewer than two axes.
    ValueError
        If `mode` is something else.

    Notes
    -----
    The diagonal of R is real, and its signs are LAPACK's. ``'complete'`` has no gradient for m > n, ``'raw'`` has none.

    Examples
    --------
    >>> import mxnet as mx
    >>> q, r = mx.np.linalg.qr(mx.np.array([[3.0, 1.0], [4.0, 2.0]]))
    >>> mx.np.abs(r).round(2)
    array([[5. , 2.2],
           [0. , 0.4]])
    """
    if mode in ("reduced", "complete"):
        return QRResult(*_op["qr"](a, mode))
    if mode == "r":
        return _op["qr"](a, mode)
    if mode == "raw":
        return _op["qr_raw"](a)
    raise ValueError(f"qr: mode is {mode!r}, must be 'reduced', 'complete', 'r' or 'raw'")


def slogdet(a: ArrayLike) -> SlogdetResult:
    """Sign and logarithm of the absolute value of determinants.

    Parameters
    ----------
    a : array_like, shape (..., m, m)

    Returns
    -------
    SlogdetResult
        `sign` (...): 1, -1 or 0, of complex matrices a complex number of length 1 or 0; `logabsdet` (...), real, -inf
        for singular matrices.

    Raises
    ------
    LinAlgError
        If a matrix is not square.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.linalg.slogdet(mx.np.array([[0.0, 1.0], [1.0, 0.0]]))
    SlogdetResult(sign=array(-1.), logabsdet=array(0.))
    """
    return SlogdetResult(*_op["slogdet"](a))


def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """Singular value decomposition ``a = U @ diag(S) @ Vh``.

    Parameters
    ----------
    a : array_like, shape (..., m, n)
    full_matrices : bool
        All singular vectors, or the first min(m, n).
    compute_uv : bool
        Whether singular vectors are computed.
    hermitian : bool
        Whether `a` is Hermitian: then it is done by eigenvalues, of the lower triangle.

    Returns
    -------
    SVDResult or ndarray
        `U` with orthonormal columns, `S` (..., min(m, n)) in falling order, `Vh` with orthonormal rows; `S` alone
        without `compute_uv`.

    Raises
    ------
    LinAlgError
        If a matrix holds infinities or NaNs, or the iteration does not converge.

    Notes
    -----
    The gradient of vectors needs singular values that differ, and results that do not depend on the vectors' phases. Of
    `full_matrices`, vectors beyond the first min(m, n) count as constants.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.linalg.svd(mx.np.array([[0.0, 2.0], [1.0, 0.0]]), compute_uv=False)
    array([2., 1.])
    """
    if not hermitian:
        if not compute_uv:
            return _linalg["svdvals"](_matrices(a, "svd"))
        return SVDResult(*_op["svd"](a, bool(full_matrices)))
    if not compute_uv:
        return _np["flip"](_np["sort"](_np["abs"](_op["eigvalsh_of"](a, "L")), axis=-1), axis=-1)
    values, vectors = _op["eigh"](a, "L")
    order = _np["flip"](_np["argsort"](_np["abs"](values), axis=-1), axis=-1)
    values = _np["take_along_axis"](values, order, axis=-1)
    u = _np["take_along_axis"](vectors, _np["expand_dims"](order, -2), axis=-1)
    signs = _op["astype"](_np["where"](values < 0, -1.0, 1.0), values.dtype)
    # a = V diag(w) V^H = V diag(|w|) (V diag(sign w))^H
    vh = _np["conjugate"](_np["matrix_transpose"](u * _np["expand_dims"](signs, -2)))
    return SVDResult(u, _np["abs"](values), vh)


def _tolerance(x: ndarray, rcond: Any, rtol: Any, name: str) -> Any:
    """The relative tolerance below which singular values count as zero."""
    if rcond is not None and rtol is not None:
        raise ValueError(f"{name}: `rtol` and `rcond` can't be both set. Found {rtol} and {rcond}")
    given = rcond if rtol is None else rtol
    return max(x.shape[-2:]) * _epsilon(x) if given is None else given


def pinv(a: ArrayLike, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> ndarray:
    """Moore-Penrose inverse.

    Parameters
    ----------
    a : array_like, shape (..., m, n)
    rcond, rtol : float or array_like, shape (...), optional
        Singular values up to this times the largest count as zero; one of the two. Default: max(m, n) times the spacing
        of `a`'s dtype.
    hermitian : bool
        Whether `a` is Hermitian: then its eigenvalues are used, of the lower triangle.

    Returns
    -------
    ndarray, shape (..., n, m)

    Raises
    ------
    LinAlgError
        If a matrix holds infinities or NaNs, or the iteration does not converge.
    ValueError
        If both `rcond` and `rtol` are given.

    Notes
    -----
    The gradient holds the rank fixed. *Differences*: NumPy's default is 1e-15 whatever the dtype, which keeps the noise
    of float32 matrices.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.linalg.pinv(mx.np.array([[2.0, 0.0], [0.0, 0.0], [0.0, 0.0]]))
    array([[0.5, 0. , 0. ],
           [0. , 0. , 0. ]])
    """
    x = _inexact(a, "pinv")
    tolerance = asarray(_tolerance(x, rcond, rtol, "pinv"))
    result: ndarray = _op["pinv"](x, tolerance, bool(hermitian))[0]
    return result


def cond(x: ArrayLike, p: float | str | None = None) -> ndarray:
    """Condition number: the norm of a matrix times that of its inverse.

    Parameters
    ----------
    x : array_like, shape (..., m, n)
        Square unless `p` is None, 2 or -2.
    p : {None, 1, -1, 2, -2, inf, -inf, 'fro', 'nuc'}
        The norm; None is 2.

    Returns
    -------
    ndarray, shape (...)
        Real; inf for singular matrices.

    Raises
    ------
    LinAlgError
        If a matrix has no elements, is not square where it must be, or, for 2 and -2, holds infinities or NaNs.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.linalg.cond(mx.np.array([[4.0, 0.0], [0.0, 2.0]]))
    array(2.)
    """
    a = _inexact(x, "cond")
    if a.shape[-2] * a.shape[-1] == 0:
        raise LinAlgError(f"cond: matrices of shape ({a.shape[-2]}, {a.shape[-1]}) have no elements")
    held = _np["any"](_np["isnan"](a), axis=(-2, -1), keepdims=True)
    with silent():
        return _condition(a, p, held)


def _condition(a: ndarray, p: float | str | None, held: ndarray) -> ndarray:
    """`cond` of matrices; `held` tells which contained NaN. Division by zero gives infinity intentionally."""
    if p in (None, 2, -2):
        s = _linalg["svdvals"](a)
        result = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
        singular = _np["isnan"](result)
    else:
        # The inverse of a singular matrix is NaN here, which the nuclear norm would reject.
        inverse = _op["inverse"](a, False)
        lost = _np["logical_and"](_np["any"](_np["isnan"](inverse), axis=(-2, -1), keepdims=True), ~held)
        inverse = _np["where"](lost, 0.0, inverse)
        result = _linalg["norm"](a, p, axis=(-2, -1)) * _linalg["norm"](inverse, p, axis=(-2, -1))
        singular = lost[..., 0, 0]
    condition: ndarray = _np["where"](_np["logical_and"](singular, ~held[..., 0, 0]), math.inf, result)
    return condition[()] if condition.ndim == 0 else condition


def tensorinv(a: ArrayLike, ind: int = 2) -> ndarray:
    """The array whose `tensordot` with `a` over `ind` axes is the identity.

    Parameters
    ----------
    a : array_like
        The product of the first `ind` lengths equals that of the others.
    ind : int
        Positive.

    Returns
    -------
    ndarray, shape ``a.shape[ind:] + a.shape[:ind]``

    Raises
    ------
    LinAlgError
        If `a` is not square in this sense, or singular.
    ValueError
        If `ind` is not positive.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.linalg.tensorinv(mx.np.eye(6).reshape(2, 3, 6)).shape
    (6, 2, 3)
    """
    x = asarray(a)
    if ind <= 0:
        raise ValueError(f"tensorinv: ind is {ind}, must be positive")
    shape = x.shape
    rows, columns = math.prod(shape[:ind]), math.prod(shape[ind:])
    if rows != columns:
        raise LinAlgError(f"tensorinv: the first {ind} axes hold {rows} elements, the others {columns}")
    inverse: ndarray = _linalg["inv"](_np["reshape"](x, (rows, columns)))
    inverse = _np["reshape"](inverse, (*shape[ind:], *shape[:ind]))
    return inverse


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> ndarray:
    """The x of ``tensordot(a, x, x.ndim) = b``.

    Parameters
    ----------
    a : array_like, shape ``b.shape + Q``
        The product of the lengths in Q is ``b.size``.
    b : array_like
    axes : sequence of int, optional
        Axes of `a` that go to its end first.

    Returns
    -------
    ndarray, shape Q

    Raises
    ------
    LinAlgError
        If `a` is not square in this sense, or singular.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.linalg.tensorsolve(mx.np.eye(4).reshape(2, 2, 4) * 2.0, mx.np.ones((2, 2)))
    array([0.5, 0.5, 0.5, 0.5])
    """
    x, side = asarray(a), asarray(b)
    if axes is not None:
        moved = [axis + x.ndim if axis < 0 else axis for axis in axes]
        x = _np["transpose"](x, [i for i in range(x.ndim) if i not in moved] + moved)
    shape = x.shape[side.ndim :]
    unknowns = math.prod(shape)
    if x.size != unknowns**2 or side.size != unknowns:
        raise LinAlgError(f"tensorsolve: {side.size} equations for {unknowns} unknowns, `a` has {x.size} elements")
    solution: ndarray = _linalg["solve"](_np["reshape"](x, (unknowns, unknowns)), _np["ravel"](side))
    solution = _np["reshape"](solution, shape)
    return solution


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> ndarray:
    """Diagonals of the matrices in the last two axes, as a view.

    Parameters
    ----------
    x : array_like, shape (..., m, n)
    offset : int
        Columns to the right of the main diagonal.

    Returns
    -------
    ndarray, shape (..., k)

    Raises
    ------
    LinAlgError
        If `x` has fewer than two axes.

    Examples
    --------
    >>> np.linalg.diagonal([[[1, 2], [3, 4]], [[5, 6], [7, 8]]])
    array([[1, 4],
           [5, 8]])
    """
    result: ndarray = _np["diagonal"](_matrices(x, "diagonal"), offset, -2, -1)
    return result


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: Any = None) -> ndarray:
    """Sums of the diagonals of the matrices in the last two axes.

    Parameters
    ----------
    x : array_like, shape (..., m, n)
    offset : int
        Columns to the right of the main diagonal.
    dtype : dtype, optional
        In which is summed.

    Returns
    -------
    ndarray, shape (...)

    Raises
    ------
    LinAlgError
        If `x` has fewer than two axes.

    Examples
    --------
    >>> np.linalg.trace([[[1, 2], [3, 4]], [[5, 6], [7, 8]]])
    array([ 5, 13])
    """
    result: ndarray = _np["trace"](_matrices(x, "trace"), offset, -2, -1, dtype)
    return result


def outer(x1: ArrayLike, x2: ArrayLike, /) -> ndarray:
    """Products of every element of one vector with every element of another.

    Parameters
    ----------
    x1 : array_like, shape (m,)
    x2 : array_like, shape (n,)

    Returns
    -------
    ndarray, shape (m, n)

    Raises
    ------
    ValueError
        If one of them is no vector.

    Examples
    --------
    >>> np.linalg.outer([1, 2], [10, 20])
    array([[10, 20],
           [20, 40]])
    """
    a, b = asarray(x1), asarray(x2)
    if a.ndim != 1 or b.ndim != 1:
        raise ValueError(f"outer: Input arrays must be one-dimensional, found {a.ndim} and {b.ndim} axes")
    result: ndarray = _np["outer"](a, b)
    return result


def tensordot(x1: ArrayLike, x2: ArrayLike, /, *, axes: int | Sequence[int | Sequence[int]] = 2) -> ndarray:
    """Sum of products over several axes of both arrays: `mxnet.numpy.tensordot`.

    Parameters
    ----------
    x1, x2 : array_like
    axes : int or pair
        The number of last axes of `x1` and first axes of `x2`; or the axes of each.

    Returns
    -------
    ndarray
        Shape: the remaining axes of `x1`, then those of `x2`.

    Raises
    ------
    ValueError
        If paired axes differ in size.

    Examples
    --------
    >>> np.linalg.tensordot([[1, 2], [3, 4]], [[1, 0], [0, 1]], axes=2)
    array(5)
    """
    return _tensordot(x1, x2, axes)


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> ndarray:
    """Cross products of vectors of three elements.

    Parameters
    ----------
    x1, x2 : array_like
        Three elements along `axis`; the other axes broadcast.
    axis : int

    Returns
    -------
    ndarray

    Raises
    ------
    ValueError
        If vectors have another number of elements.

    Examples
    --------
    >>> np.linalg.cross([1, 0, 0], [0, 1, 0])
    array([0, 0, 1])
    """
    a, b = asarray(x1), asarray(x2)
    sizes = (a.shape[axis], b.shape[axis])
    if sizes != (3, 3):
        raise ValueError(
            "cross: both input arrays must be (arrays of) 3-dimensional vectors, "
            f"found {sizes[0]} and {sizes[1]} elements"
        )
    return _cross(a, b, axis=axis)
