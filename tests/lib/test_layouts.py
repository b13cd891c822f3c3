"""How results lie in memory: in C order wherever NumPy's do, so that `.shape =`, `.view` and buffers work as there."""

import copy

import numpy
import pytest

import mxnet as mx
from mxnet.util import np_default_dtype

SMALL, LARGE = (4, 6), (60, 80)

# Calls whose result NumPy lays out in C order, on operands in C order unless they say `.T`.
CALLS = """
np.meshgrid(v, w)
np.meshgrid(v, w, indexing='ij')
np.meshgrid(v, w, sparse=True)
np.meshgrid(v, w, v[:3])
np.sort(a, axis=0)
np.sort(a, axis=None)
np.sort(c, axis=1)
np.argsort(a, axis=0, kind='stable')
np.argsort(c, axis=1, kind='stable')
np.argsort(a.T, axis=1, kind='stable')
np.partition(a, 2, axis=0)
np.partition(c, 1, axis=1)
np.argpartition(a, 2, axis=0)
np.argpartition(a.T, 2, axis=0)
np.lexsort([a, b], axis=0)
np.take_along_axis(a, np.argsort(a, axis=0), axis=0)
np.concatenate([a, b], axis=1)
np.stack([a, b], axis=-1)
np.block([[a, b], [b, a]])
np.append(a, b, axis=0)
np.insert(a, 1, 5, axis=1)
np.delete(a, 1, axis=1)
np.percentile(a, [30, 40], axis=0)
np.median(c, axis=0)
np.cumsum(a, axis=0)
np.cumsum(c, axis=1)
np.diff(c, axis=1)
np.gradient(a)
np.take(c, [0, 1], axis=1)
np.choose(i % 2, [a, b])
np.compress(a[:, 0] > 1, a, axis=0)
np.where(a > 1, a, b)
np.select([a > 1, a > 2], [a, b])
np.select([a.T > 1], [a.T])
np.unique(i, axis=0)
np.roll(a, 1, axis=1)
np.tile(a, (2, 2))
np.repeat(a, 2, axis=1)
np.kron(a, a[:2, :2])
np.outer(v, w)
np.dot(a.T, a)
np.matmul(a, b.T)
np.matmul(c.transpose(0, 2, 1), c)
np.tensordot(a, b, axes=([0], [0]))
np.einsum('ij,kj->ik', a, b)
np.einsum('ij,kj->ki', a, b)
np.einsum('ijk,ijl->kl', c, c)
np.einsum('i,j->ji', v, w)
np.vander(v[:5])
np.vander(v[:5], increasing=True)
np.tril(a)
np.pad(a, 1, mode='edge')
np.clip(a, 1, 2)
np.nan_to_num(a)
np.unwrap(c, axis=1)
np.trapezoid(c, axis=1)
np.fft.fft(a, axis=0)
np.fft.rfft(c, axis=1)
np.linalg.inv(s)
np.linalg.cholesky(s @ s.T + 9 * np.eye(4))
np.linalg.cholesky(s @ s.T + 9 * np.eye(4), upper=True)
np.linalg.solve(s + 9 * np.eye(4), s)
np.linalg.qr(s)
np.cov(a)
np.indices((3, 4))
np.mgrid[0:3, 0:4]
np.packbits(i > 2, axis=0)
np.unpackbits(i.astype('u1'), axis=0)
np.unpackbits(i.astype('u1'), axis=0, count=20)
np.resize(a, (3, 5))
np.resize(5, (2, 2))
np.add.reduce(c, axis=1)
np.add.accumulate(c, axis=1)
np.add.reduceat(a, [0, 2], axis=0)
np.add.outer(v, w)
np.random.default_rng(0).permuted(a, axis=0)
np.random.default_rng(0).choice(a, 3, axis=0)
copy.copy(a)
copy.deepcopy(a)
copy.copy(a[:, ::2])
np.copy(a[::-1])
a[[0, 2]]
a[a > 1]
c.mean(0)
c.max((0, 2))
""".strip().splitlines()

# The same of arrays whose results NumPy lays out in Fortran order, as they are themselves.
FORTRAN = """
np.sort(a.T, axis=0)
np.sort(a.T, axis=1)
np.sort(c.T, axis=1)
np.partition(a.T, 2, axis=0)
copy.copy(a.T)
copy.deepcopy(a.T)
np.array(a.T, dtype='f4')
np.array(a.T, dtype='f4', copy=True)
np.exp(a.T)
a.T.astype('f4')
a.T.reshape(a.T.shape, order='A')
""".strip().splitlines()

# Elementwise results lie as their operands do, whatever the directions of the axes; repeated axes tell nothing.
KEPT = """
a.T[::-1] + 1
a.T[::-1] * a.T[::-1]
a[:, ::-1].T - a.T
a.T[::-1] < a.T
np.sqrt(a.T[::-1])
a.T + a[:, 0]
a.T + a[0][:, None]
a.T + np.ones((2, 1, 1))
a.T + b.T.copy()
a.T + b.T[:1]
c.transpose(1, 2, 0)[::-1] + c.transpose(1, 2, 0)
c.transpose(1, 0, 2) + a[:, None]
c.T[:, ::2] * 2.0
np.maximum(a[::-1, ::-1], a[::-1, ::-1])
np.arctan2(c.swapaxes(0, 1), c.swapaxes(0, 1)[::-1])
a.T.imag
a[::-1].imag
""".strip().splitlines()


def names(module, shape):
    m, n = shape
    a = numpy.arange(m * n) * 0.37 % 3.1
    found = {
        "a": a.reshape(shape),
        "b": a[::-1].copy().reshape(shape),
        "c": (numpy.arange(3.0 * m * n) % 7).reshape(3, m, n),
        "i": (numpy.arange(m * n) % 5).reshape(shape),
        "s": (numpy.arange(16.0) % 5).reshape(4, 4),
        "v": numpy.arange(m + 1.0),
        "w": numpy.arange(n + 0.0),
    }
    return {"np": module, "copy": copy, **{name: module.asarray(x) for name, x in found.items()}}


def parts(result):
    return [x for part in result for x in parts(part)] if isinstance(result, tuple | list) else [result]


@pytest.mark.parametrize("shape", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("call", CALLS)
def test_results_are_in_c_order_where_numpys_are(call, shape):
    with np_default_dtype(True):
        ours = parts(eval(call, names(mx.np, shape)))
    theirs = parts(eval(call, names(numpy, shape)))
    assert any(x.flags.c_contiguous for x in theirs), "the call belongs into no list of C order"
    for x, y in zip(ours, theirs, strict=True):
        assert x.shape == y.shape
        assert x.flags.c_contiguous >= y.flags.c_contiguous
        assert x.flags.writeable
        if "random" not in call and "argpartition" not in call:
            numpy.testing.assert_allclose(x.asnumpy(), y, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("call", FORTRAN)
def test_fortran_order_is_kept_where_numpy_keeps_it(call, shape):
    with np_default_dtype(True):
        ours = eval(call, names(mx.np, shape))
    theirs = eval(call, names(numpy, shape))
    assert theirs.flags.f_contiguous and not theirs.flags.c_contiguous
    assert ours.flags.f_contiguous
    if "partition" not in call:  # the order is unspecified on both sides
        numpy.testing.assert_allclose(ours.asnumpy(), theirs, rtol=1e-14 if theirs.itemsize == 8 else 1e-7)


@pytest.mark.parametrize("shape", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("call", KEPT)
def test_elementwise_results_lie_as_numpys(call, shape):
    with np_default_dtype(True):
        ours = eval(call, names(mx.np, shape))
    theirs = eval(call, names(numpy, shape))
    assert ours.strides == theirs.strides
    numpy.testing.assert_allclose(ours.asnumpy(), theirs, rtol=1e-14)


def test_what_needs_c_order_works_on_results():
    x, y = mx.np.meshgrid(mx.np.arange(3), mx.np.arange(4))
    for grid in (x, y):
        grid.shape = (12,)
        assert grid.view("uint8").shape == (96,)
        assert memoryview(grid).c_contiguous
    order = mx.np.argsort(mx.np.ones((200, 300)), axis=0)
    order.shape = (-1,)
    assert order.flags.c_contiguous


def test_gradients_pass_through_the_moves():
    x = mx.np.array(numpy.arange(6.0).reshape(2, 3)[::-1].copy())
    x.attach_grad()
    with mx.autograd.record():
        y = (mx.np.sort(x, axis=0) * mx.np.array([[1.0, 2, 3], [4, 5, 6]])).sum()
    y.backward()
    assert x.grad.tolist() == [[4, 5, 6], [1, 2, 3]]
    with mx.autograd.record():
        y = (mx.np.einsum("ij,kj->ki", x, x) * mx.np.array([[1.0, 2], [3, 4]])).sum()
    y.backward()
    w = numpy.array([[1.0, 2], [3, 4]])
    numpy.testing.assert_allclose(x.grad.asnumpy(), (w + w.T) @ x.asnumpy(), rtol=1e-6)


# Calls whose result has NumPy's strides, however the axes of the operands lie in memory.
STRIDES = """
np.cumsum(a, axis=0)
np.cumsum(c, axis=1)
np.cumprod(a, axis=1)
np.nancumsum(a, axis=0)
np.concatenate([a, b])
np.concatenate([a, b], axis=1)
np.concatenate([a, np.ascontiguousarray(b)])
np.stack([a, b])
np.stack([a, b], axis=1)
np.stack([a, b], axis=-1)
np.vstack([a, b])
np.hstack([a, b])
np.dstack([a, b])
np.block([[a, b], [b, a]])
np.append(a, b, axis=0)
np.insert(a, 1, 5, axis=1)
np.roll(a, 1, axis=0)
np.roll(c, 2, axis=1)
np.pad(a, 1)
np.pad(a, 1, mode='mean')
np.sum(c, axis=0)
np.sum(c, axis=1)
np.sum(c, axis=2)
np.sum(c, axis=1, keepdims=True)
np.mean(c, axis=1)
np.max(c, axis=1)
np.argmax(c, axis=1)
np.std(c, axis=0)
np.var(c, axis=(0, 2))
np.any(c > 1, axis=1)
np.count_nonzero(c, axis=0)
np.ptp(c, axis=0)
np.nansum(c, axis=1)
np.nanmean(c, axis=1)
np.average(c, axis=1)
np.linalg.norm(c, axis=0)
np.trapezoid(c, axis=1)
np.add.reduce(c, axis=0)
np.add.accumulate(a, axis=1)
np.maximum.accumulate(a)
a + b
np.where(a > 1, a, b)
""".strip().splitlines()


def turned(np, x, how):
    """The same elements, in Fortran order, or with the first axis the fastest one."""
    if how == "F":
        return np.asfortranarray(x)
    back = (x.ndim - 1, *range(x.ndim - 1))
    return np.ascontiguousarray(np.moveaxis(x, 0, -1)).transpose(back)


@pytest.mark.parametrize("how", ["F", "turned"])
@pytest.mark.parametrize("shape", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("call", STRIDES)
def test_results_keep_the_order_of_the_axes_as_numpys_do(call, shape, how):
    def result(np):
        found = names(np, shape)
        return eval(call, {**found, **{name: turned(np, found[name], how) for name in "abc"}})

    with np_default_dtype(True):
        ours = result(mx.np)
    theirs = result(numpy)
    steps = [(x, y) for x, y, n in zip(ours.strides, theirs.strides, theirs.shape, strict=True) if n > 1]
    assert all(x == y for x, y in steps), (ours.strides, theirs.strides)
    assert ours.base is None or theirs.base is not None
    numpy.testing.assert_allclose(ours.asnumpy(), theirs, rtol=1e-12, atol=1e-12)
