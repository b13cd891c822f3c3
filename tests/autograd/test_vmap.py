"""vmap: one call for a batch gives what calls for each example give, its gradients too."""

import re

import numpy
import pytest

from mxnet import autograd, np, npx
from mxnet.autograd import jacobian, vmap
from mxnet.error import AbstractArrayError, UnsupportedError

RNG = numpy.random.default_rng(2)
SHAPES = {"x": (4, 3, 2), "y": (4, 3, 2), "m": (4, 3, 3), "v": (4, 3), "s": (4,), "i": (4, 3), "img": (4, 2, 4, 6, 6)}


def batch(name):
    if name == "i":
        return np.array(RNG.integers(0, 3, SHAPES[name]))
    return np.array(RNG.normal(size=SHAPES[name]), dtype="float64")


# Expressions of arrays that differ between examples; `w` is the same for all, shape (3, 2).
CALLS = {
    "elementwise": "np.sin(x) * y + 2",
    "broadcast": "x * v[:, None] + s",
    "numbers": "np.where(x > 0, x, 0.1 * x) ** 2",
    "with one for all": "np.maximum(x, w) / (1 + w * w)",
    "sum": "x.sum() + y.sum(axis=1).mean(axis=-1, keepdims=True)",
    "extremes": "(x.max(axis=0), y.argmax(axis=1), x.argmin(), np.cumsum(x, axis=1), np.cumsum(y))",
    "moments": "(x.std(axis=0), np.var(y), np.median(x, axis=0))",
    "views": "(x.T, x.reshape(-1), x[1:, ::-1], x[..., None], np.flip(y), np.broadcast_to(s, (2, 2)), np.rot90(x))",
    "diagonal": "np.diagonal(m) * v",
    "matmul": "np.matmul(m, x)",
    "matmul of vectors": "(np.matmul(v, x), np.matmul(m, v), np.matmul(v, v), np.dot(v, v))",
    "matmul with one for all": "(np.matmul(m, w), np.matmul(w.T, v), np.matmul(v, w))",
    "einsum": "np.einsum('ij,jk->ik', m, x)",
    "linalg": "(np.linalg.inv(m + 5 * np.eye(3)), np.linalg.det(m), np.linalg.solve(m + 5 * np.eye(3), x))",
    "cholesky": "np.linalg.cholesky(m @ m.T + np.eye(3))",
    "sort": "(np.sort(x, axis=0), np.argsort(v))",
    "softmax": "(npx.softmax(x, axis=0), npx.log_softmax(v))",
    "layer_norm": "npx.layer_norm(x, np.ones(2, dtype='float64'), w[0])",
    "take": "(np.take(x, i, axis=0), w[i], x[i], m[:, i], np.take_along_axis(m, i[:, None], axis=1))",
    "concatenate": "(np.concatenate([x, y], axis=1), np.stack([v, v * 2]), np.tile(v, 2), np.repeat(v, 2))",
    "pad": "(np.pad(x, 1), np.roll(v, 1), np.pad(v, 2, mode='edge'))",
    "fully_connected": "npx.fully_connected(x, w.T @ w, num_hidden=2)",
    "fully_connected of its own": "npx.fully_connected(x, y, v, num_hidden=3, no_bias=False)",
    "convolution": "npx.convolution(img, kernel_of_all, kernel=(3, 3), num_filter=3, no_bias=True)",
    "convolution of its own": "npx.convolution(img, img[:, :, :2, :2], kernel=(2, 2), num_filter=2, no_bias=True)",
    "pooling": "npx.pooling(img, kernel=(2, 2), stride=(2, 2))",
    "loop": "npx.foreach(lambda a, b: (a * b, a + b), x, v[:2])[0]",
    "casts": "(x.astype('float32'), (x > 0).sum(), x.astype('int64'))",
    "statistics": "(np.percentile(v, 30), np.linalg.norm(x), np.interp(v, np.arange(3.0), np.arange(3.0) ** 2))",
}
FLAT = ("sort", "take", "extremes", "casts", "moments", "statistics", "pad", "cholesky")


def function_of(expression):
    w = np.array(numpy.random.default_rng(9).normal(size=(3, 2)), dtype="float64")
    kernel = np.array(numpy.random.default_rng(8).normal(size=(3, 4, 3, 3)), dtype="float64")
    scope = {"np": np, "npx": npx, "w": w, "kernel_of_all": kernel}
    names = [name for name in SHAPES if _uses(expression, name)]
    # The expressions are those above.
    return eval(f"lambda {', '.join(names)}: {expression}", scope), names


def _uses(expression, name):
    return re.search(rf"(?<![\w.']){name}(?![\w'=(])", expression) is not None


def many(result):
    return list(result) if isinstance(result, (list, tuple)) else [result]


@pytest.mark.parametrize("expression", CALLS.values(), ids=CALLS)
def test_a_batch_gives_what_its_examples_give(expression):
    function, names = function_of(expression)
    batches = [batch(name) for name in names]
    found = many(vmap(function)(*batches))
    each = [many(function(*[x[k] for x in batches])) for k in range(4)]
    assert len(found) == len(each[0])
    for n, y in enumerate(found):
        wanted = numpy.stack([one[n].asnumpy() for one in each])
        assert y.dtype == each[0][n].dtype
        # Products of all examples may be summed in another order than those of one.
        numpy.testing.assert_allclose(y.asnumpy(), wanted, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", [name for name in CALLS if name not in FLAT])
def test_gradients_inside_and_outside_are_those_of_the_examples(name):
    function, names = function_of(CALLS[name])
    batches = [batch(name) for name in names]

    def loss(*args):
        return sum((np.sin(y) * y).sum() for y in many(function(*args)))

    def gradient(*args):
        inputs = [autograd.vjp(lambda x, i=i: loss(*args[:i], x, *args[i + 1 :]), x)[1] for i, x in enumerate(args)]
        return inputs

    each = [gradient(*[x[k] for x in batches]) for k in range(4)]
    wanted = [numpy.stack([one[n].asnumpy() for one in each]) for n in range(len(batches))]
    inside = vmap(gradient)(*batches)
    for x in batches:
        x.attach_grad()
    with autograd.record():
        total = vmap(loss)(*batches).sum()
    total.backward()
    for n, x in enumerate(batches):
        numpy.testing.assert_allclose(inside[n].asnumpy(), wanted[n], rtol=1e-11, atol=1e-12, err_msg="inside")
        numpy.testing.assert_allclose(x.grad.asnumpy(), wanted[n], rtol=1e-11, atol=1e-12, err_msg="outside")


def test_axes_of_arguments_and_results():
    x, w = batch("x"), np.array([1.0, 10.0], dtype="float64")
    turned = np.moveaxis(x, 0, 2)
    found = vmap(lambda p, w, k: {"y": p["x"] * w * k}, in_axes=(-1, None, None), out_axes=1)({"x": turned}, w, 2)
    numpy.testing.assert_array_equal(found["y"].asnumpy(), numpy.moveaxis(2 * (x * w).asnumpy(), 0, 1))
    same, other = vmap(lambda x: (w, x.sum()))(x)
    numpy.testing.assert_array_equal(same.asnumpy(), numpy.broadcast_to([1.0, 10.0], (4, 2)))
    assert other.shape == (4,)


def test_vmap_nests():
    a, b = np.arange(3.0), np.arange(4.0)
    outer = vmap(vmap(lambda x, y: x * y + y, in_axes=(None, 0)), in_axes=(0, None))
    numpy.testing.assert_array_equal(outer(a, b).asnumpy(), numpy.outer([0, 1, 2], range(4)) + numpy.arange(4))


def test_jacobians_of_examples_and_constants_of_pause_and_detach():
    x = batch("v")
    found = vmap(lambda x: jacobian(lambda x: x * x.sum(), x))(x)
    for k in range(4):
        wanted = jacobian(lambda x: x * x.sum(), x[k])
        numpy.testing.assert_allclose(found[k].asnumpy(), wanted.asnumpy(), rtol=1e-14)
    x.attach_grad()
    with autograd.record():

        def function(x):
            with autograd.pause():
                y = x * 2
            return x * y + x.detach() * x

        total = vmap(function)(x).sum()
    total.backward()
    numpy.testing.assert_allclose(x.grad.asnumpy(), 3 * x.asnumpy(), rtol=1e-14)


def test_shared_parameters_get_the_sum_of_all_gradients():
    x, w = batch("v"), np.array(2.0, dtype="float64")
    w.attach_grad()
    with autograd.record():
        total = vmap(lambda x: (w * x * x).sum())(x).sum()
    total.backward()
    assert w.grad.item() == pytest.approx((x * x).sum().item(), rel=1e-14)


def test_functions_written_in_python_have_their_rule_inside_only():
    class Double(autograd.Function):
        def forward(self, x):
            return x * 1

        def backward(self, dy):
            return dy * 2

    x = batch("v")
    found = vmap(lambda x: autograd.vjp(lambda x: Double()(x).sum(), x)[1])(x)
    assert (found.asnumpy() == 2).all()
    x.attach_grad()
    with autograd.record(), pytest.raises(UnsupportedError, match="`Double` has a gradient rule of its own"):
        vmap(lambda x: Double()(x))(x)


def writes(x):
    x += 1
    return x


@pytest.mark.parametrize(
    "function, error, message",
    [
        (lambda x: np.random.normal(size=3) * x, UnsupportedError, "draws random numbers"),
        (writes, UnsupportedError, "add: writes to an array in place"),
        (lambda x: np.convolve(x, x), UnsupportedError, "convolve: has no batching rule"),
        (lambda x: x[x > 0], AbstractArrayError, "values"),
        (lambda x: x if x.sum() > 0 else -x, AbstractArrayError, "has no values"),
        (lambda x: 3, TypeError, "`result of function` must be an ndarray"),
    ],
)
def test_what_cannot_be_batched_is_named(function, error, message):
    with pytest.raises(error, match=message):
        vmap(function)(batch("v"))
    assert np.ones(2).sum().item() == 2


def test_errors_of_axes_name_the_argument():
    x, v = batch("x"), batch("v")
    with pytest.raises(ValueError, match=r"`in_axes` has 1 entries for 2 arguments"):
        vmap(lambda a, b: a, in_axes=[0])(x, v)
    with pytest.raises(TypeError, match="`in_axes` must be integers or None, found 'str'"):
        vmap(lambda a: a, in_axes=["0"])(x)
    with pytest.raises(ValueError, match=r"`argument 1\[0\]` has no axis 2, its shape is \(4, 3\)"):
        vmap(lambda a, b: a, in_axes=(0, 2))(x, [v])
    with pytest.raises(ValueError, match=r"`argument 0` has 4 and `argument 1` has 3"):
        vmap(lambda a, b: a, in_axes=(0, 1))(x, v)
    with pytest.raises(ValueError, match="at least one argument must have an axis"):
        vmap(lambda a: a, in_axes=None)(x)
    with pytest.raises(ValueError, match=r"a result of shape \(\) for each example has no place 1"):
        vmap(lambda a: a.sum(), out_axes=1)(x)
    with pytest.raises(TypeError, match="`function` must be a function, found 'int'"):
        vmap(3)
