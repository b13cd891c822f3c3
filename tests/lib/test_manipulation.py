"""Joining, inserting, deleting, splitting and turning arrays, against NumPy."""

import numpy
import pytest

import mxnet as mx
from both import both

A = numpy.arange(12.0).reshape(3, 4)
B = numpy.arange(24).reshape(2, 3, 4)
V = numpy.array([5, 6, 7, 8, 9])
CUBE = numpy.arange(27.0).reshape(3, 3, 3)

EXPRESSIONS = [
    "np.append(A, A)",
    "np.append(A, [[1, 2, 3, 4]], axis=0)",
    "np.append(V, 1.5)",
    "np.append(A, [[1, 2]], axis=0)",
    "np.append([], 3)",
    "np.insert(V, 2, 100)",
    "np.insert(V, -1, [1, 2, 3])",
    "np.insert(V, [2], [1, 2, 3])",
    "np.insert(V, 5, 1)",
    "np.insert(V, 6, 1)",
    "np.insert(V, -6, 1)",
    "np.insert(V, [1, 1, 3], [10, 20, 30])",
    "np.insert(V, [3, 1, 1, -1, 5], [10, 20, 30, 40, 50])",
    "np.insert(V, [0, 7], [10, 20])",
    "np.insert(V, slice(1, 4, 2), 7.9)",
    "np.insert(V, np.array([True, False, True, False, False]), 1)",
    "np.insert(V, [], [])",
    "np.insert(V, [[1]], 2)",
    "np.insert(A, 1, 9)",
    "np.insert(A, 1, 9, axis=0)",
    "np.insert(A, 1, [1, 2, 3], axis=1)",
    "np.insert(A, [1], [[1], [2], [3]], axis=1)",
    "np.insert(A, [0, 2, 2], [[1, 2, 3]], axis=1)",
    "np.insert(A, [0, 2], 7, axis=-1)",
    "np.insert(A, 1, [1, 2], axis=1)",
    "np.insert(A, 0, 1, axis=2)",
    "np.insert(B, 1, np.ones((2, 4)), axis=1)",
    "np.insert(B, [1, 2], np.ones((2, 2, 4)), axis=1)",
    "np.delete(V, 2)",
    "np.delete(V, -5)",
    "np.delete(V, 5)",
    "np.delete(V, [0, 0, -1])",
    "np.delete(V, [0, 9])",
    "np.delete(V, slice(None, None, 2))",
    "np.delete(V, slice(4, 1, -1))",
    "np.delete(V, slice(4, 1))",
    "np.delete(V, slice(1, 3))",
    "np.delete(V, slice(7, 9))",
    "np.delete(V, [True, False, True, False, False])",
    "np.delete(V, [True, False])",
    "np.delete(V, [])",
    "np.delete(V, [1.5])",
    "np.delete(A, 1)",
    "np.delete(A, [0, 2], axis=0)",
    "np.delete(A, np.array([1, 3]), 1)",
    "np.delete(B, slice(0, 2), axis=-2)",
    "np.delete(A, 0, axis=2)",
    "np.resize(V, (2, 3))",
    "np.resize(V, 3)",
    "np.resize(A, (5, 4))",
    "np.resize(A, (0, 4))",
    "np.resize(V, (-1, 3))",
    "np.resize(np.zeros((0,)), (2, 2))",
    "np.trim_zeros(np.array([0, 0, 1, 0, 2, 0]))",
    "np.trim_zeros(np.array([0, 0, 1, 0, 2, 0]), 'f')",
    "np.trim_zeros(np.array([0, 0, 1, 0, 2, 0]), 'B')",
    "np.trim_zeros(np.array([0, 0, 1]), 'x')",
    "np.trim_zeros(np.array([0.0, 0.0]))",
    "np.trim_zeros(np.array([0.0, 0.0]), 'b')",
    "np.trim_zeros(np.array([[0, 0, 0], [0, 1, 0], [0, 2, 0]]))",
    "np.trim_zeros(np.array([[0, 0, 0], [0, 1, 0], [0, 2, 0]]), axis=0)",
    "np.trim_zeros(np.array([[0, 0, 0], [0, 1, 0], [0, 2, 0]]), axis=(1,))",
    "np.block([A, A])",
    "np.block([[A], [A]])",
    "np.block([[A, np.ones((3, 1))], [np.zeros((1, 5))]])",
    "np.block([1, V, 2])",
    "np.block(A)",
    "np.block(3)",
    "np.block([[1, 2], [3, 4]])",
    "np.block([[[B]], [[B]]])",
    "np.block([V, [1]])",
    "np.block([[A, V]])",
    "np.block((A, A))",
    "np.block([])",
    "np.hsplit(A, 2)",
    "np.hsplit(V, [1, 3])",
    "np.hsplit(A, 3)",
    "np.hsplit(3, 1)",
    "np.vsplit(A, [1, 2])",
    "np.vsplit(V, 5)",
    "np.dsplit(B, 2)",
    "np.dsplit(A, 2)",
    "np.array_split(V, 3)",
    "np.array_split(A, [1, 9], axis=1)",
    "np.array_split(V, 0)",
    "np.unstack(A)",
    "np.unstack(A, axis=1)",
    "np.unstack(B, axis=-1)",
    "np.unstack(np.array(3))",
    "np.unstack(A, axis=2)",
    "np.rollaxis(B, 2)",
    "np.rollaxis(B, 0, 3)",
    "np.rollaxis(B, -1, 1)",
    "np.rollaxis(B, 1, -1)",
    "np.rollaxis(B, 3)",
    "np.rollaxis(B, 0, 5)",
    "np.moveaxis(B, [0, 1], [-1, 0])",
    "np.moveaxis(B, 0, 3)",
    "np.permute_dims(B, (2, 0, 1))",
    "np.matrix_transpose(B)",
    "np.matrix_transpose(V)",
    "np.rot90(A)",
    "np.rot90(A, 2)",
    "np.rot90(B, -1, (1, 2))",
    "np.rot90(A, 1, (0, 0))",
    "np.tile(V, (2, 2))",
    "np.tile(A, 2)",
    "np.repeat(V, 2)",
    "np.repeat(V, [0, 1, 2, 0, 3])",
    "np.repeat(A, [1, 2, 0], axis=0)",
    "np.repeat(A, [2], axis=1)",
    "np.repeat(A, [1, 2], axis=0)",
    "np.roll(A, (1, 2), axis=(0, 1))",
    "np.roll(A, 5)",
    "np.roll(A, -1, axis=1)",
    "np.roll(A, (1, 1), axis=(0, 0))",
    "np.diagflat([[1, 2], [3, 4]], 1)",
    "np.flatnonzero(A % 2)",
    "np.argwhere(A % 2)",
    "np.extract(A % 2 == 0, A)",
    "np.compress([True, False, True], A, axis=0)",
    "np.tri(3, 4, 1)",
    "np.tri(3, dtype='int32')",
    "np.expand_dims(V, (0, 2))",
    "np.atleast_1d(3)",
    "np.atleast_1d(3, V, A)",
    "np.atleast_2d(V)",
    "np.atleast_2d(3, V, B)",
    "np.atleast_3d(V, A)",
    "np.atleast_1d()",
    "np.concatenate([A, V, 3], axis=None)",
    "np.concatenate([A, B[0]], axis=None, dtype='float32')",
    "np.concatenate([A.T, A.T], axis=None)",
    "np.concatenate([A, A], dtype='int64')",
    "np.concatenate([A, A], dtype='int64', casting='unsafe')",
    "np.concatenate([V, V], dtype='float64', casting='no')",
    "np.concat([V, V], dtype='float64', casting='safe')",
    "np.stack([V, V], dtype='int8', casting='safe')",
    "np.stack([V, V], 1, dtype='int8')",
    "np.vstack([A, A], dtype='int64')",
    "np.hstack([V, V], dtype='int8', casting='unsafe')",
    "np.column_stack([V, V])",
    "np.flatnonzero(V > 6), np.nonzero(B % 5), np.argwhere(B[:, ::2] % 3)",
    "np.take(V, [[0, -1], [2, 2]]), np.take(V, [7], mode='clip')",
    "np.squeeze(np.ones((1, 3, 1)), axis=0)",
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_result_is_numpys(expression):
    both(expression, A=A, B=B, V=V)


@pytest.mark.parametrize(
    "expression",
    [
        "np.diag_indices(3)",
        "np.diag_indices(2, 3)",
        "np.diag_indices_from(C)",
        "np.diag_indices_from(A)",
        "np.diag_indices_from(V)",
        "np.tril_indices(4)",
        "np.tril_indices(3, -1)",
        "np.tril_indices(3, 1, 5)",
        "np.triu_indices(4)",
        "np.triu_indices(3, 2)",
        "np.triu_indices(3, -1, 5)",
        "np.tril_indices_from(A, 1)",
        "np.triu_indices_from(A, -1)",
        "np.tril_indices_from(C)",
        "np.triu_indices_from(V)",
        "np.mask_indices(3, np.triu, 1)",
        "np.mask_indices(4, np.tril)",
        "np.broadcast_shapes((6, 7), (5, 6, 1), (7,), (5, 1, 7))",
        "np.broadcast_shapes((3,), (4,))",
        "np.broadcast_shapes()",
        "np.broadcast_shapes(3, (2, 1))",
        "np.broadcast_arrays(V, A[:, :1])",
        "np.broadcast_arrays(V, A)",
        "np.broadcast_arrays(1, [[2], [3]])",
        "np.ndim(A), np.ndim(3), np.ndim([[1]])",
        "np.shape(A), np.shape(3), np.shape([[1, 2]])",
        "np.size(A), np.size(A, 1), np.size([[1, 2]], 0), np.size(3)",
        "np.size(A, 2)",
        "np.isscalar(3), np.isscalar(V), np.isscalar('a'), np.isscalar([1]), np.isscalar(2j)",
        "np.iterable(V), np.iterable(3)",
        "list(np.ndindex(2, 3))",
        "list(np.ndenumerate(A))",
        "list(np.broadcast([1, 2], [[3], [4]]))",
        "np.broadcast(A, V[:4]).shape, np.broadcast(A, 1).size, np.broadcast(A, 1, 2).numiter, np.broadcast(A).nd",
    ],
)
def test_positions_and_shapes_are_numpys(expression):
    both(expression, A=A, V=V, C=CUBE)


@pytest.mark.parametrize(
    "expression",
    [
        "np.choose([2, 0, 1], [[1, 2, 3], [4, 5, 6], [7, 8, 9]])",
        "np.choose([[0, 1], [1, 0]], [10, [[1, 2], [3, 4]]])",
        "np.choose([0, 3], [1, 2])",
        "np.choose([-1, 0], [1, 2])",
        "np.choose([-1, 3], [1, 2.5], mode='wrap')",
        "np.choose([-1, 3], [1, 2.5], mode='clip')",
        "np.choose([0, 1], [1, 2], mode='other')",
        "np.choose(np.array([True, False]), [1, 2])",
        "np.choose([0.0, 1.0], [1, 2])",
        "np.choose(np.array([0, 1]), A[:2, :2])",
        "np.array([0, 1]).choose([1, 2])",
    ],
)
def test_choices_are_numpys(expression):
    both(expression, A=A)


def test_choose_writes_to_out():
    out = mx.np.zeros(2)
    assert mx.np.choose([0, 1], [[1.0, 2.0], [3.0, 4.0]], out=out) is out
    assert out.tolist() == [1.0, 4.0]
    with pytest.raises(ValueError, match=r"`out` has wrong shape \(3,\), the result has shape \(2,\)"):
        mx.np.choose([0, 1], [[1.0, 2.0], [3.0, 4.0]], out=mx.np.zeros(3))
    assert mx.np.choose([0, 1], [[1.5, 2.0], [3.0, 4.5]], out=mx.np.zeros(2, "int64")).tolist() == [1, 4]


def test_parts_are_views():
    x = mx.np.zeros((2, 4))
    mx.np.hsplit(x, 2)[1][...] = 1
    mx.np.unstack(x, axis=1)[0][...] = 2
    mx.np.trim_zeros(x[0])[0] = 3
    mx.np.rollaxis(x, 1)[3] = 4
    assert x.tolist() == [[3, 0, 1, 4], [2, 0, 1, 4]]


def test_gradients_of_flattened_joins():
    x, y = mx.np.array([[1.0, 2.0], [3.0, 4.0]]), mx.np.array([5.0])
    for each in (x, y):
        each.attach_grad()
    with mx.autograd.record():
        head = (mx.np.concatenate([x.T, y], axis=None) * mx.np.arange(5)).sum()
    head.backward()
    assert x.grad.tolist() == [[0, 2], [1, 3]] and y.grad.tolist() == [4]


def test_positions_in_large_arrays():
    random = numpy.random.default_rng(2)
    for shape in ((70_000,), (300, 301), (2, 3, 4, 5000), (5, 40_000, 1)):
        x = random.random(shape) < random.choice([0.01, 0.99])
        both("np.argwhere(x), np.nonzero(x), np.flatnonzero(x)", x=x)


@pytest.mark.parametrize("size", [10, 1000])
def test_many_insertions_and_deletions_in_any_order(size):
    random = numpy.random.default_rng(size)
    x = random.standard_normal((size, 3))
    at = random.integers(-size, size, size // 2)
    new = random.standard_normal((size // 2, 3))
    both("np.insert(x, at, new, axis=0)", x=x, at=at, new=new)
    both("np.delete(x, at, axis=0)", x=x, at=at)


@pytest.mark.parametrize(
    "call",
    [
        "np.roll(x, 2.5)",
        "np.roll(x, len(x) / 2)",
        "np.roll(x, -1.5, axis=1)",
        "np.roll(x, (1.0, 2.9), (0, 1))",
        "np.roll(x, np.array([1.0, 2.0]), (0, 1))",
        "np.roll(x, np.nan)",
        "np.repeat(x, 2.0)",
        "np.repeat(x, [1.0, 2.5], axis=0)",
        "x.repeat(1.5, 1)",
    ],
)
def test_floats_that_count_are_cut_off(call):
    both(call, x=numpy.arange(6).reshape(2, 3))
