"""Gradients of our operators against central differences of their own values in float64."""

import numpy as np

from mxnet import _core

# Fourth-order central difference: its truncation error is step**4 / 30 times the fifth derivative, its rounding error
# about eps / step; both are near 1e-12 of a function of moderate size at this step.
STEP = 1e-3
TOLERANCE = 1e-8


def _mx(x):
    return _core.array(np.array(x, order="C"))


def _flat(outputs):
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]


def is_inexact(y):
    """Whether an array holds floats or complex numbers; NumPy has no bfloat16, whose dtype is its name."""
    return np.dtype("f4" if str(y.dtype) == "bfloat16" else y.dtype).kind in "fc"


def _recorded(heads):
    """Positions of the heads that gradients can start from: a constant head is no part of a graph."""
    kept = []
    for i, head in enumerate(heads):
        probe = _core.array(np.zeros(head.shape, head.dtype))
        try:
            _core.grad([head], [], [probe], retain_graph=True)
        except _core.AutogradError:
            continue
        else:
            kept.append(i)
    return kept


def gradients(function, xs, dys):
    """Gradients of sum(<dys, function(*xs)>) with respect to `xs`, NumPy in and out; a cotangent an inexact output."""
    xs = [_mx(x) for x in xs]
    return [g.asnumpy() for g in _gradients(function, xs, [_mx(dy) for dy in dys], create=False)]


def _gradients(function, xs, dys, *, create):
    for x in xs:
        if x.grad is None:
            x.attach_grad()
    before = _core.set_recording(True)
    try:
        heads = [y for y in _flat(function(*xs)) if is_inexact(y)]
        kept = _recorded(heads)
        if not kept:
            return [x * 0.0 for x in xs]
        return _core.grad([heads[i] for i in kept], xs, [dys[i] for i in kept], create_graph=create)
    finally:
        _core.set_recording(before)


def _values(function, xs):
    return [np.asarray(y.asnumpy()) for y in _flat(function(*[_mx(x) for x in xs])) if is_inexact(y)]


def _inner(a, b):
    return sum(float(np.real(np.vdot(p, q))) for p, q in zip(a, b, strict=True))


def _random_like(x, rng):
    x = np.asarray(x)
    v = rng.uniform(-1.0, 1.0, x.shape)
    return v + 1j * rng.uniform(-1.0, 1.0, x.shape) if x.dtype.kind == "c" else v


def _check(function, xs, grads, cotangents, rng, what):
    """<grad, v> equals the slope of t -> <cotangents, function(x + t v)> for random directions v of every argument."""
    for i, gradient in enumerate(grads):
        assert gradient.shape == xs[i].shape, (
            f"{what}: gradient {i} has shape {gradient.shape}, its input {xs[i].shape}"
        )
        if xs[i].size == 0:
            continue
        for _ in range(2):
            v = _random_like(xs[i], rng)

            def at(t, i=i, v=v):
                return _inner(cotangents, _values(function, [*xs[:i], xs[i] + t * v, *xs[i + 1 :]]))

            want = (8 * (at(STEP) - at(-STEP)) - (at(2 * STEP) - at(-2 * STEP))) / (12 * STEP)
            got = _inner([gradient], [v])
            # The scale of what was summed: cancellation in the sum is no error of the gradient.
            scale = 1.0 + float(np.sum(np.abs(gradient) * np.abs(v)))
            message = f"{what} with respect to argument {i}: {got!r}, expected {want!r}"
            assert abs(got - want) <= TOLERANCE * scale, message


def check(function, xs, rng, orders=2):
    """Gradients of `function` of first to second (or third) order at `xs` (float64 or complex128 NumPy arrays)."""
    xs = [np.asarray(x) for x in xs]
    ys = _values(function, xs)
    assert ys, "no output that a gradient could start from"
    dys = [_random_like(y, rng) for y in ys]
    first = gradients(function, xs, dys)
    _check(function, xs, first, dys, rng, "first order")

    def slope(*args):
        """The gradient itself, as a function of inputs and cotangents."""
        return _gradients(function, list(args[: len(xs)]), list(args[len(xs) :]), create=_core.is_recording())

    args = [*xs, *dys]
    us = [_random_like(x, rng) for x in xs]
    _check(slope, args, gradients(slope, args, us), us, rng, "second order")
    if orders < 3:
        return

    def curvature(*args):
        """The gradient of the gradient along fixed cotangents, as a function of inputs and cotangents."""
        before = _core.set_recording(True)
        try:
            return _gradients(slope, list(args), [_mx(u) for u in us], create=before)
        finally:
            _core.set_recording(before)

    vs = [_random_like(x, rng) for x in args]
    _check(curvature, args, gradients(curvature, args, vs), vs, rng, "third order")
