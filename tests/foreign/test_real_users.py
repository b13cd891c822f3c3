"""Packages of others take our arrays and give ours back."""

import numpy as onp
import pytest

import mxnet as mx
from mxnet import autograd, interop, np

einops = pytest.importorskip("einops")
pytest.importorskip("einops.array_api")
opt_einsum = pytest.importorskip("opt_einsum")

HOST = onp.random.default_rng(3).standard_normal((4, 6, 8)).astype("float32")


def sums(n, largest):
    """How far two float32 sums of `n` terms of at most `largest` may differ, if roundings add up as a random walk."""
    return 2 * n * 2.0**-24 * largest


PATTERNS = [
    ("rearrange", ["a b c -> (a b) c"], {}),
    ("rearrange", ["a (b1 b2) c -> b1 c (a b2)"], {"b1": 2}),
    ("reduce", ["a b c -> a c", "mean"], {}),
    ("reduce", ["a (b b2) c -> b c", "max"], {"b2": 3}),
    ("reduce", ["a b c -> ", "sum"], {}),
    ("repeat", ["a b c -> a k b c"], {"k": 3}),
]


@pytest.fixture(autouse=True)
def introduced():
    interop.use_einops()


@pytest.mark.parametrize(("function", "args", "axes"), PATTERNS)
def test_einops(function, args, axes):
    expected = getattr(einops, function)(HOST, *args, **axes)
    found = getattr(einops, function)(np.array(HOST), *args, **axes)
    assert isinstance(found, np.ndarray)
    onp.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("function", "args", "axes"), PATTERNS)
def test_einops_array_api_needs_no_introduction(function, args, axes):
    expected = getattr(einops, function)(HOST, *args, **axes)
    found = getattr(einops.array_api, function)(np.array(HOST), *args, **axes)
    assert isinstance(found, np.ndarray)
    onp.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-5, atol=1e-6)


def test_einops_einsum_pack_and_unpack():
    x, w = np.array(HOST), np.array(HOST[0])
    found = einops.einsum(x, w, "a b c, b c -> a b")
    assert isinstance(found, np.ndarray)
    onp.testing.assert_allclose(found.asnumpy(), onp.einsum("abc,bc->ab", HOST, HOST[0]), rtol=0, atol=sums(8, 8))
    packed, shapes = einops.pack([x, np.ones((4, 8))], "a * c")
    assert isinstance(packed, np.ndarray)
    assert packed.shape == (4, 7, 8)
    first, second = einops.unpack(packed, shapes, "a * c")
    onp.testing.assert_array_equal(first.asnumpy(), HOST)
    assert second.shape == (4, 8)


def test_einops_is_differentiable():
    x = np.array(HOST)
    x.attach_grad()
    with autograd.record():
        y = (einops.reduce(x, "a b c -> a c", "mean") ** 2).sum()
    y.backward()
    expected = onp.broadcast_to(2 * HOST.mean(1, keepdims=True) / 6, HOST.shape)
    onp.testing.assert_allclose(x.grad.asnumpy(), expected, rtol=0, atol=sums(6, 3))


@pytest.mark.parametrize("pattern", ["abc,abd,cd->ab", "abc,adc,bd->", "abc,abc,abc->abc"])
def test_opt_einsum_contracts_with_our_functions(pattern):
    inputs, _ = pattern.split("->")
    sizes = dict(zip("abcd", (4, 3, 5, 3), strict=True))
    rng = onp.random.default_rng(1)
    hosts = [rng.standard_normal([sizes[label] for label in term]).astype("float32") for term in inputs.split(",")]
    found = opt_einsum.contract(pattern, *map(np.array, hosts))
    assert isinstance(found, np.ndarray)
    onp.testing.assert_allclose(found.asnumpy(), onp.einsum(pattern, *hosts), rtol=0, atol=sums(45, 27))


def test_opt_einsum_expressions():
    expression = opt_einsum.contract_expression("ab,bc,cd->ad", (4, 5), (5, 6), (6, 7))
    rng = onp.random.default_rng(2)
    hosts = [rng.standard_normal(shape).astype("float32") for shape in ((4, 5), (5, 6), (6, 7))]
    found = expression(*map(np.array, hosts))
    assert isinstance(found, np.ndarray)
    onp.testing.assert_allclose(found.asnumpy(), hosts[0] @ hosts[1] @ hosts[2], rtol=0, atol=sums(30, 27))


def complex_numbers(shape):
    rng = onp.random.default_rng(5)
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def test_autoray_finds_what_tensor_networks_need():
    autoray = pytest.importorskip("autoray")
    interop.use_autoray()
    host = complex_numbers((5, 3))
    x = np.array(host)
    factors = autoray.do("linalg.svd", x)
    assert [factor.shape for factor in factors] == [(5, 3), (3,), (3, 3)]
    u, s, vh = (factor.asnumpy() for factor in factors)
    onp.testing.assert_allclose((u * s) @ vh, host, rtol=0, atol=5 * 3 * 2.0**-50 * 5)
    made = autoray.do("complex", x.real, x.imag)
    assert isinstance(made, np.ndarray)
    onp.testing.assert_array_equal(made.asnumpy(), host)
    assert autoray.do("sqrt", x).shape == (5, 3)
    assert autoray.to_device(x, "cpu") is x
    with pytest.raises(mx.error.DeviceError):
        autoray.to_device(x, "gpu:63")


@pytest.mark.parametrize(("trans", "lower"), [(0, False), (0, True), ("T", False), (2, True), ("C", False), (1, True)])
@pytest.mark.parametrize("shape", [(4,), (4, 2)])
def test_autoray_solves_triangular_systems(trans, lower, shape):
    autoray = pytest.importorskip("autoray")
    scipy_linalg = pytest.importorskip("scipy.linalg")
    interop.use_autoray()
    a, b = complex_numbers((4, 4)) + 4 * onp.eye(4), complex_numbers(shape)
    options = {"trans": trans, "lower": lower}
    found = autoray.do("scipy.linalg.solve_triangular", np.array(a), np.array(b), **options)
    expected = scipy_linalg.solve_triangular(a, b, **options)
    onp.testing.assert_allclose(found.asnumpy(), expected, rtol=0, atol=64 * 2.0**-52 * onp.abs(expected).max())
    with pytest.raises(ValueError, match="`trans` must be 0, 1, 2, 'N', 'T' or 'C', found 'X'"):
        autoray.do("scipy.linalg.solve_triangular", np.array(a), np.array(b), trans="X")


def test_xarray_wraps_our_arrays():
    xarray = pytest.importorskip("xarray")
    data = xarray.DataArray(np.array(HOST), dims=("x", "y", "z"), coords={"x": [10, 20, 30, 40]})
    assert isinstance(data.data, np.ndarray)
    host = xarray.DataArray(HOST, dims=("x", "y", "z"), coords={"x": [10, 20, 30, 40]})
    for compute in (
        lambda a: a.mean("y"),
        lambda a: a.sel(x=20) * 2 + 1,
        lambda a: a.isel(y=slice(1, 4)).transpose("z", "y", "x"),
        lambda a: (a - a.mean("x")) / a.std("x"),
        lambda a: a.sum(("x", "z")),
        lambda a: a.max("z"),
        lambda a: xarray.concat([a, a], "x"),
        lambda a: a.where(a > 0, 0.0),
        lambda a: a.stack(xy=("x", "y")),
        lambda a: onp.exp(a),
    ):
        expected, found = compute(host), compute(data)
        assert isinstance(found.data, np.ndarray), compute
        assert found.dims == expected.dims
        onp.testing.assert_allclose(found.data.asnumpy(), expected.values, rtol=0, atol=sums(32, 8))


SCIPY = """
import os
os.environ["SCIPY_ARRAY_API"] = "1"
import numpy as onp
import scipy.special, scipy.stats, scipy.cluster.vq, scipy.fft, scipy.signal, scipy.integrate
import mxnet as mx
from mxnet import np
mx.npx.set_np(dtype=True)
rng = onp.random.default_rng(0)
host = rng.standard_normal((50, 3))
other = rng.standard_normal((50, 3)) + 0.1

def same(function, *hosts, rtol=1e-8):
    expected = function(*hosts)
    found = function(*map(np.array, hosts))
    flat = lambda value: list(value) if isinstance(value, tuple) else [value]
    for one, two in zip(flat(expected), flat(found), strict=True):
        assert isinstance(two, np.ndarray), (function, type(two))
        onp.testing.assert_allclose(two.asnumpy(), one, rtol=rtol, atol=1e-10)

same(lambda a: scipy.special.logsumexp(a, axis=0), host)
same(lambda a: scipy.special.softmax(a, axis=1), host)
same(scipy.special.expit, host)
same(lambda a: scipy.stats.zscore(a, axis=0), host)
same(lambda a: scipy.stats.skew(a, axis=0), host)
same(lambda a: scipy.stats.kurtosis(a, axis=0), host)
same(lambda a: scipy.stats.moment(a, 3, axis=0), host)
same(lambda a: scipy.stats.gmean(a * a, axis=0), host)
same(lambda a, b: tuple(scipy.stats.ttest_ind(a, b)), host, other)
same(scipy.cluster.vq.whiten, host)
same(lambda a: scipy.fft.fft(a, axis=0), host)
same(lambda a: scipy.fft.rfft(a, axis=0), host)
same(lambda a: scipy.integrate.trapezoid(a, axis=0), host)
print("scipy agrees")
"""

SKLEARN = """
import os
os.environ["SCIPY_ARRAY_API"] = "1"
import numpy as onp
import sklearn
from sklearn import metrics
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.preprocessing import MinMaxScaler
import mxnet as mx
from mxnet import np
mx.npx.set_np(dtype=True)
x, y = load_iris(return_X_y=True)
ours, labels = np.array(x), np.array(y)
with sklearn.config_context(array_api_dispatch=True):
    pca = PCA(n_components=2, svd_solver="full").fit(ours)
    reduced = pca.transform(ours)
    assert isinstance(reduced, np.ndarray), type(reduced)
    expected = PCA(n_components=2, svd_solver="full").fit_transform(x)
    onp.testing.assert_allclose(onp.abs(reduced.asnumpy()), onp.abs(expected), atol=1e-8)
    lda = LinearDiscriminantAnalysis().fit(ours, labels)
    predicted = lda.predict(ours)
    assert isinstance(predicted, np.ndarray), type(predicted)
    known = LinearDiscriminantAnalysis().fit(x, y).predict(x)
    onp.testing.assert_array_equal(predicted.asnumpy(), known)
    assert metrics.accuracy_score(labels, predicted) == metrics.accuracy_score(y, known)
    f1 = metrics.f1_score(labels, predicted, average="macro")
    assert abs(float(f1) - metrics.f1_score(y, known, average="macro")) < 1e-12
    error = metrics.mean_squared_error(ours, ours + 1)
    assert abs(float(error) - 1) < 1e-12
    scaled = MinMaxScaler().fit_transform(ours)
    assert isinstance(scaled, np.ndarray)
    onp.testing.assert_allclose(scaled.asnumpy(), MinMaxScaler().fit_transform(x), atol=1e-12)
    similar = metrics.pairwise.cosine_similarity(ours[:5])
    onp.testing.assert_allclose(np.asarray(similar).asnumpy(), metrics.pairwise.cosine_similarity(x[:5]), atol=1e-12)
print("scikit-learn agrees")
"""


@pytest.mark.parametrize(("package", "script"), [("scipy", SCIPY), ("sklearn", SKLEARN)])
def test_array_api_users_in_a_process_of_their_own(package, script):
    """Both read their switch when they are imported."""
    import subprocess
    import sys

    pytest.importorskip(package)
    finished = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert finished.returncode == 0, finished.stderr[-4000:]
    assert "agrees" in finished.stdout
