"""Functions composed of operators against NumPy: under its promotion the same calls give the same values and dtypes."""

import numpy as np
import pytest

import mxnet as mx

RNG = np.random.default_rng(3)
A = RNG.standard_normal((4, 5))
B = RNG.standard_normal((4, 5))
V = RNG.standard_normal(7)
W = RNG.uniform(0.5, 2, 7)
X = np.sort(RNG.uniform(-3, 3, 6))
I = RNG.integers(0, 9, 12)
C = V[:5] + 1j * W[:5]
M = RNG.standard_normal((3, 8))
T = RNG.standard_normal((4, 5, 6))
N = RNG.standard_normal(200)
P = RNG.standard_normal((50, 2))
NAN, INF = np.nan, np.inf


def call(*args, **kwargs):
    return args, kwargs


CALLS = {
    "allclose": [call(A, A + 1e-9), call(A, B), call([1.0, NAN], [1.0, NAN], equal_nan=True), call(A, 2, rtol=10)],
    "isclose": [
        call(A, A + 1e-6),
        call([1e10, 1e-7], [1.00001e10, 1e-8]),
        call([INF, -INF, 1.0, NAN], [INF, INF, INF, NAN]),
        call([1.0, NAN], [1.0, NAN], equal_nan=True),
        call(I, I + (I > 4)),
        call(np.uint8([0]), np.uint8([255])),
        call(C, C * (1 + 1e-7)),
        call(1.0, A, 0.5, 0.1),
    ],
    "array_equal": [call(A, A), call(A, B), call(A, A[:2]), call([NAN], [NAN]), call([NAN], [NAN], equal_nan=True)],
    "array_equiv": [call([1, 2], [[1, 2], [1, 2]]), call([1, 2], [1, 3]), call([1, 2], [1, 2, 3])],
    "iscomplex": [call(A), call(C), call([1 + 0j, 1j]), call(3)],
    "isreal": [call(A), call(C), call([1 + 0j, 1j])],
    "iscomplexobj": [call(A), call(C), call(1j), call([1, 2])],
    "isrealobj": [call(A), call(C)],
    "real_if_close": [call(V + 1e-15j), call(C), call(A), call(V + 1e-3j, tol=0.1)],
    "sort_complex": [call(C), call(I), call(V), call(np.int8([3, 1]))],
    "nan_to_num": [call([NAN, INF, -INF, 1.0]), call([NAN, INF], nan=2.0, posinf=5.0), call([1, 2])],
    "packbits": [
        call(I),
        call(I > 4),
        call(I.reshape(3, 4), axis=0),
        call(I.reshape(3, 4), axis=-1, bitorder="little"),
        call(np.zeros((0,), int)),
    ],
    "unpackbits": [
        call(np.uint8([2, 7, 23])),
        call(np.uint8([[2], [7], [23]]), axis=1),
        call(np.uint8([[2, 3], [7, 9]]), axis=0, bitorder="little"),
        call(np.uint8([2, 7]), count=11),
        call(np.uint8([2, 7]), count=20),
        call(np.uint8([2, 7]), count=-3),
    ],
    "average": [
        call(A),
        call(I),
        call(A, axis=1),
        call(A, axis=(0, 1)),
        call(A, weights=np.abs(B)),
        call(A, 1, np.arange(5.0) + 1),
        call(A, 0, [1, 2, 3, 4], True),
        call(A, 1, returned=True),
        call(T, (2, 0), np.abs(T[:, 0, :].T)),
        call(A, 1, np.arange(5.0) + 1, keepdims=True),
        call(I, weights=I + 1),
    ],
    "cov": [
        call(M),
        call(V),
        call(V, W),
        call(M, rowvar=False),
        call(M, bias=True),
        call(M, ddof=2),
        call(M, fweights=np.arange(8)),
        call(M, aweights=W[:1].repeat(8) + np.arange(8)),
        call(M, fweights=np.arange(8), aweights=np.arange(8) + 0.5),
        call(M, fweights=np.arange(8), aweights=np.arange(8) + 0.5, ddof=0),
        call(M + 1j * M[::-1]),
        call(M, dtype="float32"),
        call(I),
    ],
    "corrcoef": [call(M), call(V, W), call(M, rowvar=False), call(V), call(M + 1j * M[::-1])],
    "ediff1d": [call(V), call(I), call(I, 99, [1, 2]), call(A), call(np.array([5.0]))],
    "diff": [
        call(V),
        call(A, 2),
        call(A, axis=0),
        call(I, prepend=0, append=[1, 2]),
        call(I > 4),
        call(A, 1, 0, prepend=A[:1]),
        call(A, 7),
        call(np.uint8([1, 0])),
    ],
    "trapezoid": [call(A), call(A, axis=0), call(A, dx=0.5), call(V, np.sort(V)), call(A, np.sort(A, 1)), call(I)],
    "gradient": [
        call(V),
        call(V, 2.0),
        call(X**2, X),
        call(X**2, X, edge_order=2),
        call(V, edge_order=2),
        call(A),
        call(A, 2.0, X[:5]),
        call(A, axis=1),
        call(A, 0.5, axis=(1, 0)),
        call(T, edge_order=2),
        call(I),
        call(C),
    ],
    "interp": [
        call(2.5, [1, 2, 3], [3, 2, 0]),
        call([0, 1, 1.5, 2.72, 3.14], [1, 2, 3], [3, 2, 0]),
        call(V, X, np.sin(X)),
        call(V, X, np.sin(X), left=-9, right=9),
        call([-180, -170, -185, 185, -10, -5, 0, 365], [190, -190, 350, -350], [5, 10, 3, 4], period=360),
        call([1.5, 4.0], [2, 3, 5], [1.0j, 0, 2 + 3j]),
        call([NAN, 1.0], [0.0, 2.0], [1.0, 5.0]),
        call([0.0, 1.0, 2.0], [1.0], [7.0]),
        call(A, X, X),
    ],
    "unwrap": [
        call(np.cumsum(np.full(12, 2.5)) % (2 * np.pi)),
        call([0, 1, 2, -1, 0], period=4),
        call([2, 3, 4, 5, 2, 3, 4, 5], period=4),
        call(np.array([[0.0, 8.0, 1.0], [5.0, -4.0, 2.0]]), axis=0),
        call([0.0, 4.0, 9.0], discont=5.0),
        call([0, 2, 4], period=4),
        call([0.0, np.pi, 0.0, -np.pi]),
    ],
    "polyval": [call([3, 0, 1], 5), call([3.0, 0.5], A), call(C, V), call([], V), call([1, 2], I)],
    "polyadd": [call([1, 2], [9, 5, 4]), call([1.5], [2])],
    "polysub": [call([2, 10, -2], [3, 10, -4]), call([1, 2, 3], [4])],
    "polymul": [call([1, 2, 3], [9, 5, 1]), call([1.0, 2.0], V)],
    "polydiv": [
        call([3.0, 5.0, 2.0], [2.0, 1.0]),
        call([1.0, 2.0], [1.0, 2.0, 3.0]),
        call([1.0, -3.0, 2.0], [1.0, -1.0]),
    ],
    "polyder": [call([1, 1, 1, 1]), call([1.0, 2.0, 3.0], 2), call([4], 1), call([1, 2], 0)],
    "polyint": [call([1.0, 1.0, 1.0]), call([1, 2], 2, [6, 5]), call([1.0], 2, 3)],
    "vander": [call([1, 2, 3, 5], 3), call(V), call([1, 2, 3], increasing=True), call(C, 2), call([1, 2], 0)],
    "bartlett": [call(0), call(1), call(2), call(7), call(8)],
    "blackman": [call(0), call(1), call(7), call(8)],
    "hamming": [call(0), call(1), call(7), call(8)],
    "hanning": [call(0), call(1), call(2), call(8)],
    "kaiser": [call(0, 5), call(1, 5), call(7, 14.0), call(8, 0.0), call(9, 5)],
    "i0": [call(0.0), call([0.0, 1.0, -2.5, 8.0, 30.0, 200.0, 700.0]), call(I), call(np.linspace(-20, 20, 9000))],
    "sinc": [call(A), call(0.0), call(np.arange(4.0))],
    "linspace": [
        call(0, 1, 5),
        call(0, 1, 4, False),
        call(1, 2, 3, retstep=True),
        call([0, 1], [2.0, 5.0], 3),
        call([0, 1], 2.0, 3, axis=-1),
        call(0, 10, 4, dtype=int),
        call(3, 1, 1),
        call(0, 1, 0),
        call(1j, 2, 3),
        call(-3, 0, 4, dtype=int),
        call(0, 1, 1, retstep=True),
        call(0, 1, 1, endpoint=False, retstep=True),
    ],
    "logspace": [
        call(0, 2, 5),
        call(0, 2, 4, endpoint=False),
        call(0, 3, 4, base=2.0),
        call(0, 3, 4, dtype=int),
        call([0, 1], [2, 3], 3),
        call([0, 1], 2.0, 3, axis=1),
        call(0, 2, 3, base=[2.0, 3.0]),
        call(0, 2, 3, base=[2.0, 3.0], axis=-1),
    ],
    "geomspace": [
        call(1, 1000, 4),
        call(1, 256, 9, dtype=int),
        call(-1000, -1, 4),
        call(1j, 1000j, 4),
        call(-1 + 0j, 1 + 0j, 5),
        call(1, 1000, 3, endpoint=False),
        call([1, 2], [100.0, 32.0], 3),
        call([1, 2], [100.0, 32.0], 3, axis=-1),
        call(5, 7, 1),
        call(5, 7, 0),
    ],
    "meshgrid": [
        call(V, X),
        call(V, X, indexing="ij"),
        call(V, X, I),
        call(V, X, sparse=True),
        call(V, X, I, sparse=True, indexing="ij", copy=False),
        call(V),
        call(),
    ],
    "indices": [call((2, 3)), call((2, 3), sparse=True), call((4,), dtype=float), call(())],
    "ix_": [call([0, 1], [2, 4]), call([True, False, True], [1]), call([])],
    "unravel_index": [call([22, 41, 37], (7, 6)), call([31, 41, 13], (7, 6), order="F"), call(1621, (6, 7, 8, 9))],
    "ravel_multi_index": [
        call(([3, 6, 6], [4, 5, 1]), (7, 6)),
        call(([3, 6, 6], [4, 5, 1]), (7, 6), order="F"),
        call(([3, 6, 6], [4, 5, 1]), (4, 6), mode="clip"),
        call(([3, 6, 6], [4, 5, 1]), (4, 4), mode=("clip", "wrap")),
        call((3, 1, 4, 1), (6, 7, 8, 9)),
    ],
    "select": [
        call([V < 0, V > 1], [V, V**2], 42),
        call([V < 0], [V]),
        call([A > 0, A < -1], [A, 1], B),
        call([I > 3], [I], 0.5),
    ],
    "digitize": [
        call(V, np.array([-1.0, 0.0, 0.5])),
        call(V, np.array([0.5, 0.0, -1.0])),
        call([0.5, 0.0, 9.0], np.array([0.0, 0.5, 1.0]), right=True),
        call([0.5, 0.0, 9.0], np.array([1.0, 0.5, 0.0]), True),
        call(I, [2, 5, 5, 7]),
        call(A, np.array([0.0])),
    ],
    "bincount": [call(I), call(I, minlength=20), call(I, I * 0.5), call(np.zeros(0, int), minlength=3)],
    "searchsorted": [call(X, V), call(X, V, "right"), call([1, 2, 2, 3], 2), call(V, X, sorter=np.argsort(V))],
    "histogram_bin_edges": [
        *(call(N, rule) for rule in ("auto", "fd", "doane", "scott", "stone", "rice", "sturges", "sqrt")),
        *(call(I, rule) for rule in ("auto", "fd", "rice", "scott")),
        call(N, "fd", range=(-1, 1)),
        call(np.zeros(0), "auto"),
        call(np.full(9, 2.0), "fd"),
        call(N, 7),
        call(N, 7, (-2.0, 5.0)),
        call([], 3),
        call([1.0], 2),
        call(I, [0, 3, 9]),
    ],
    "histogram": [
        call(N),
        call(N, 31),
        call(N, 5, (-1, 1)),
        call(N, [-1.0, 0.0, 0.1, 2.0]),
        call(N, density=True),
        call(N, 6, weights=np.arange(200.0)),
        call(N, 6, weights=np.arange(200), density=True),
        call(N, 6, weights=np.arange(200)),
        call(N, 6, weights=np.arange(200) * 1j),
        call(I, 4),
        call(I, [1, 2, 9]),
        call(N, "auto"),
        call([], 3),
        call(A, 5),
        call(np.array([0.0, NAN, 1.0]), 4, (0, 1)),
    ],
    "histogram2d": [
        call(P[:, 0], P[:, 1]),
        call(P[:, 0], P[:, 1], [3, 5]),
        call(P[:, 0], P[:, 1], [-1.0, 0.0, 1.0]),
        call(P[:, 0], P[:, 1], [4, np.array([-1.0, 0.0, 1.0])], density=True),
        call(P[:, 0], P[:, 1], 4, [[-1, 1], [-2, 2]], weights=np.arange(50.0)),
    ],
    "histogramdd": [
        call(P),
        call(P, (3, 4)),
        call(T[:, :, :3].reshape(-1, 3), 2, density=True),
        call((P[:, 0], P[:, 1]), (2, [-1.0, 0.0, 1.0])),
        call(P, 3, [(-1, 1), None], weights=np.arange(50.0)),
    ],
    "convolve": [call(V, W[:3], mode) for mode in ("full", "same", "valid")]
    + [call(W[:3], V, mode) for mode in ("full", "same", "valid")]
    + [
        call(I, [1, 2, 3]),
        call(C, V[:3], "same"),
        call(I > 4, [True, False, True]),
        call(2.0, V),
        call(V, W[:4], "same"),
    ],
    "correlate": [call(V, W[:3], mode) for mode in ("full", "same", "valid")]
    + [call(W[:3], V, mode) for mode in ("full", "same", "valid")]
    + [
        call(I, [1, 2, 3]),
        call(C, C[:3] * 1j, "full"),
        call(C[:3], C * 1j, "same"),
        call(V, V),
        call(W[:4], V, "same"),
    ],
}


def ours(x):
    if isinstance(x, np.ndarray):
        return mx.np.array(x, dtype=x.dtype)
    if isinstance(x, (list, tuple)):
        return type(x)(ours(y) for y in x)
    return x


def compare(got, want, close):
    if isinstance(want, (list, tuple)):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            compare(g, w, close)
        return
    if isinstance(want, (bool, np.bool_)) and isinstance(got, bool):
        assert got == bool(want)
        return
    want = np.asarray(want)
    got = got.asnumpy() if isinstance(got, mx.np.ndarray) else np.asarray(got)
    assert got.shape == want.shape, f"shape {got.shape}, expected {want.shape}"
    close(got, want)


def exact_dtype(got, want):
    assert got.dtype == want.dtype, f"dtype {got.dtype}, expected {want.dtype}"
    # Sums in another order: 64 roundings of the largest number are more than any of these calls has.
    scale = np.abs(want[np.isfinite(want)]).max(initial=0) if want.dtype.kind in "fc" else 0
    eps = np.finfo(want.dtype).eps if want.dtype.kind in "fc" else 0
    np.testing.assert_allclose(got, want, rtol=0, atol=64 * eps * scale)


ALL = [(name, i) for name, calls in CALLS.items() for i in range(len(calls))]


@pytest.mark.parametrize("name,i", ALL)
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning", "ignore::RuntimeWarning")
def test_values_and_dtypes_under_numpy_promotion(name, i):
    args, kwargs = CALLS[name][i]
    before = mx.util.set_np_default_dtype(True)
    try:
        got = getattr(mx.np, name)(*ours(args), **{key: ours(value) for key, value in kwargs.items()})
        with np.errstate(all="ignore"):
            want = getattr(np, name)(*args, **kwargs)
        compare(got, want, exact_dtype)
    finally:
        mx.util.set_np_default_dtype(before)
