"""Gradients of complex arrays, both orders: of a real loss L with respect to z = x + iy they are dL/dx + i dL/dy."""

import numpy as onp
import pytest

import slopes
from mxnet import autograd, np


def numbers(*shape):
    """Complex numbers away from zero and from the negative real axis, where logarithms and angles jump."""
    rng = onp.random.default_rng(sum(shape) + 10 * len(shape))
    return rng.uniform(0.4, 1.5, shape) * onp.exp(1j * rng.uniform(-2.5, 2.5, shape))


Z, W, A, B = numbers(3, 4), numbers(4), numbers(3, 4), numbers(4, 2)
MASK = onp.array([[True, False, True, True], [False] * 4, [True, True, False, False]])

FUNCTIONS = {
    "z + w": (lambda z, w: z + w, Z, W),
    "z - w": (lambda z, w: z - w, Z, W),
    "z * w": (lambda z, w: z * w, Z, W),
    "z / w": (lambda z, w: z / w, Z, W),
    "z ** w": (lambda z, w: z**w, Z, W),
    "z * x": (lambda z, x: z * x, Z, W.real),
    "x / z": (lambda z, x: x / z, Z, W.real),
    "2 * z + 1j": (lambda z: 2 * z + 1j, Z),
    "z ** 3": (lambda z: z**3, Z),
    "x * 1j": (lambda x: x * 1j, Z.real),
    "x + iy": (lambda x, y: x + 1j * y, Z.real, Z.imag),
    "abs": (np.abs, Z),
    "angle": (np.angle, Z),
    "real": (np.real, Z),
    "imag": (np.imag, Z),
    "z.real * z.imag": (lambda z: z.real * z.imag, Z),
    "conj": (np.conj, Z),
    "z * conj(z)": (lambda z: z * np.conj(z), Z),
    "square": (np.square, Z),
    "sqrt": (np.sqrt, Z),
    "reciprocal": (np.reciprocal, Z),
    "negative": (np.negative, Z),
    "exp": (np.exp, Z),
    "exp2": (np.exp2, Z),
    "expm1": (np.expm1, Z),
    "log": (np.log, Z),
    "log2": (np.log2, Z),
    "log10": (np.log10, Z),
    "log1p": (np.log1p, Z),
    "sin": (np.sin, Z),
    "cos": (np.cos, Z),
    "tan": (np.tan, Z),
    "arcsin": (np.arcsin, 0.4 * Z),
    "arccos": (np.arccos, 0.4 * Z),
    "arctan": (np.arctan, 0.4 * Z),
    "sinh": (np.sinh, Z),
    "cosh": (np.cosh, Z),
    "tanh": (np.tanh, 0.4 * Z),
    "arcsinh": (np.arcsinh, 0.4 * Z),
    "arccosh": (np.arccosh, Z + 2),
    "arctanh": (np.arctanh, 0.4 * Z),
    "sum": (np.sum, Z),
    "sum of an axis": (lambda z: z.sum(axis=1), Z),
    "mean": (lambda z: z.mean(axis=0), Z),
    "prod": (lambda z: z.prod(axis=1), Z),
    "cumsum": (lambda z: np.cumsum(z, axis=1), Z),
    "cumprod": (lambda z: np.cumprod(z, axis=1), Z),
    "var": (np.var, Z),
    "std": (lambda z: np.std(z, axis=1), Z),
    "matmul": (np.matmul, A, B),
    "matrix @ vector": (np.matmul, A, W),
    "dot": (np.dot, A, B),
    "vdot": (np.vdot, W, 1j * W + 1),
    "inner": (np.inner, A, W),
    "outer": (np.outer, W, A[0]),
    "tensordot": (lambda a, b: np.tensordot(a, b, 1), A, B),
    "kron": (np.kron, W[:2], A[:2, :2]),
    "real matrix @ complex": (np.matmul, A.real, B),
    "einsum": (lambda a, b: np.einsum("ij,jk->ki", a, b), A, B),
    "einsum of three": (lambda a, b, w: np.einsum("ij,jk,j->i", a, b, w), A, B, W),
    "trace": (lambda a: np.trace(a), A),
    "norm": (lambda z: np.linalg.norm(z), Z),
    "slice": (lambda z: z[1:, ::2], Z),
    "integer": (lambda z: z[1], Z),
    "index arrays": (lambda z: z[[0, 0, 2], [1, 1, 3]], Z),
    "mask": (lambda z: z[np.array(MASK)], Z),
    "take": (lambda z: np.take(z, np.array([3, 0, 0]), axis=1), Z),
    "where": (lambda z, w: np.where(np.array(MASK), z, w), Z, W),
    "assignment": (lambda z, w: assigned(z, w), Z, W),
    "reshape and transpose": (lambda z: z.reshape(4, 3).T * 2j, Z),
    "concatenate": (lambda z, w: np.concatenate([z, w.reshape(1, 4)]), Z, W),
    "stack": (lambda a, b: np.stack([a, b], axis=1), W, 2 * W),
    "flip": (lambda z: np.flip(z, 0), Z),
    "roll": (lambda z: np.roll(z, 1), Z),
    "astype": (lambda x: (x + 0.0).astype("complex128") * 1j, Z.real),
}


def assigned(z, w):
    z = z * 1
    z[1] = w
    z[:, 2] *= 1j
    return z


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_gradients_are_the_slopes(name):
    function, *xs = FUNCTIONS[name]
    slopes.check(function, xs, onp.random.default_rng(2))


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n != "astype"])
def test_complex64_and_float32_give_gradients_of_their_own_dtype_and_value(name):
    function, *wide = FUNCTIONS[name]
    narrow = [np.array(x.astype("complex64" if x.dtype.kind == "c" else "float32")) for x in wide]
    wide = [np.array(x) for x in wide]
    grads = []
    for xs in (narrow, wide):
        for x in xs:
            x.attach_grad()
        with autograd.record():
            y = function(*xs)
            loss = (y * np.conj(y)).real.sum()
        loss.backward()
        grads.append([x.grad for x in xs])
    for x, small, large in zip(narrow, *grads, strict=True):
        assert small.dtype == x.dtype
        scale = 1 + abs(large.asnumpy()).max()
        # The functions amplify the rounding of float32, 6e-8, by up to a few hundred.
        onp.testing.assert_allclose(small.asnumpy(), large.asnumpy(), rtol=2e-4, atol=2e-5 * scale)


def test_the_gradient_of_a_real_loss_is_its_steepest_ascent():
    z = np.array([3 + 4j, -1 + 0.5j], dtype="complex128")
    z.attach_grad()
    with autograd.record():
        loss = (np.abs(z) ** 2).sum()
    loss.backward()
    assert z.grad.asnumpy() == pytest.approx(2 * z.asnumpy(), rel=1e-15)


def test_the_head_gradient_of_a_complex_head_is_a_cotangent():
    z = np.array([1 + 2j], dtype="complex128")
    z.attach_grad()
    with autograd.record():
        y = z * (2 - 3j)
    # L = Re(conj(g) y): its gradient is g times the conjugate of the factor.
    y.backward(np.array([0.5 + 1j], dtype="complex128"))
    assert z.grad.asnumpy()[0] == (0.5 + 1j) * (2 + 3j)


def test_a_real_variable_gets_a_real_gradient_through_complex_numbers():
    x = np.array([0.5, -2.0], dtype="float64")
    x.attach_grad()
    with autograd.record():
        loss = np.abs(np.exp(1j * x) + x).sum()
    loss.backward()
    v = x.asnumpy()
    want = [(onp.conj(onp.exp(1j * a) + a) / abs(onp.exp(1j * a) + a) * (1j * onp.exp(1j * a) + 1)).real for a in v]
    assert x.grad.dtype == "float64"
    assert x.grad.asnumpy() == pytest.approx(want, rel=1e-13)


def test_gradients_at_zero_are_zero_where_there_is_a_kink():
    z = np.array([0j, 1 + 0j], dtype="complex128")
    z.attach_grad()
    with autograd.record():
        loss = np.abs(z).sum()
    loss.backward()
    assert z.grad.asnumpy().tolist() == [0j, 1 + 0j]
