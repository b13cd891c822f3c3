"""Gradients of Fourier transforms: adjoints, of first and second order.

A gradient with respect to complex numbers points where the real loss grows: of L(x + iy) it is dL/dx + i dL/dy, the
convention of PyTorch.
"""

import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd

CALLS = [
    ("fft", "complex128", (3, 8), {}),
    ("fft", "float64", (3, 8), {}),
    ("fft", "float64", (3, 7), {"n": 5, "norm": "ortho"}),
    ("fft", "complex128", (4, 3), {"n": 6, "axis": 0}),
    ("ifft", "complex128", (3, 7), {}),
    ("ifft", "float64", (6,), {"n": 9, "norm": "forward"}),
    ("rfft", "float64", (3, 8), {}),
    ("rfft", "float64", (3, 7), {"n": 6}),
    ("rfft", "float64", (5, 2), {"n": 9, "axis": 0, "norm": "ortho"}),
    ("ihfft", "float64", (2, 7), {}),
    ("irfft", "complex128", (3, 5), {}),
    ("irfft", "complex128", (3, 5), {"n": 7}),
    ("irfft", "complex128", (3, 5), {"n": 14, "norm": "ortho"}),
    ("irfft", "float64", (2, 4), {}),
    ("hfft", "complex128", (2, 5), {"n": 9}),
    ("fftn", "complex128", (3, 4), {"s": (2, 6), "axes": (0, 1)}),
    ("fft2", "float64", (2, 3, 4), {}),
    ("ifftn", "complex128", (2, 3, 2), {"norm": "ortho"}),
    ("rfftn", "float64", (3, 4, 5), {}),
    ("irfftn", "complex128", (3, 4), {"s": (3, 5), "axes": (0, 1)}),
    ("fftshift", "float64", (3, 4), {}),
]


def numbers(shape, dtype, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype.startswith("complex") else x).astype(dtype)


def ours(x):
    return mx.np.array(x, dtype=x.dtype)


def inner(a, b):
    """Real inner product of real or complex arrays."""
    return float((np.conj(a) * b).real.sum())


@pytest.mark.parametrize("name,dtype,shape,how", CALLS)
def test_gradient_is_the_adjoint(name, dtype, shape, how):
    # For a linear map A, <A d, w> = <d, A* w>: exact for every direction d, and NumPy knows A.
    x = ours(numbers(shape, dtype, 0))
    x.attach_grad()
    with autograd.record():
        y = getattr(mx.np.fft, name)(x, **how)
    w = numbers(y.shape, str(y.dtype), 1)
    y.backward(ours(w))
    assert x.grad.dtype == dtype
    gradient = x.grad.asnumpy()
    for seed in range(2, 6):
        d = numbers(shape, dtype, seed)
        want = inner(getattr(np.fft, name)(d, **how), w)
        np.testing.assert_allclose(inner(d, gradient), want, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name,dtype,shape,how", CALLS)
def test_second_order_of_the_spectral_power(name, dtype, shape, how):
    # L = sum |A x|^4 / 4: its gradient is A*(|Ax|^2 Ax), whose derivative along v is compared with a difference.
    def gradient(values):
        x = ours(values)
        x.attach_grad()
        with autograd.record():
            loss = (mx.np.abs(getattr(mx.np.fft, name)(x, **how)) ** 4).sum() / 4
            (first,) = autograd.grad(loss, [x], create_graph=True)
            v = ours(numbers(shape, dtype, 3))
            along = mx.np.real(mx.np.conj(v) * first).sum()
        along.backward()
        return first.asnumpy(), x.grad.asnumpy(), v.asnumpy()

    x = numbers(shape, dtype, 0)
    _, second, v = gradient(x)
    step = 1e-5
    difference = (gradient(x + step * v)[0] - gradient(x - step * v)[0]) / (2 * step)
    # The Hessian is symmetric: the gradient of <v, gradient> is the derivative of the gradient along v.
    np.testing.assert_allclose(second, difference, rtol=1e-6, atol=1e-6 * np.abs(difference).max())


def test_gradient_of_real_numbers_through_a_complex_filter_is_real():
    x = ours(numbers((16,), "float32", 0))
    x.attach_grad()
    kernel = ours(numbers((9,), "complex64", 1))
    with autograd.record():
        y = mx.np.fft.irfft(mx.np.fft.rfft(x) * kernel)
        loss = (y * y).sum()
    loss.backward()
    assert x.grad.dtype == "float32"

    def value(values):
        filtered = np.fft.irfft(np.fft.rfft(values) * kernel.asnumpy().astype("complex128"))
        return (filtered**2).sum()

    base = x.asnumpy().astype("float64")
    want = [(value(base + 1e-5 * e) - value(base - 1e-5 * e)) / 2e-5 for e in np.eye(16)]
    # Four transforms of 16 numbers in float32, each of four steps.
    np.testing.assert_allclose(x.grad.asnumpy(), want, rtol=0, atol=16 * 2.0**-23 * max(map(abs, want)))
