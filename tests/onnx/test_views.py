"""Properties of views: any chain of views, read and written, gives the elements that our arrays have."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import onnx_oracle
from mxnet import np as mnp


def transposed(x, numbers):
    axes = sorted(range(x.ndim), key=lambda axis: (numbers[axis % len(numbers)], axis))
    return x.transpose(axes)


def sliced(x, numbers):
    if not x.ndim:
        return x
    axis = numbers[0] % x.ndim
    n = x.shape[axis]
    key = [slice(None)] * x.ndim
    step = (1, 2, 3, -1, -2)[numbers[1] % 5]
    key[axis] = slice(numbers[2] % (n + 1), None, step) if step > 0 else slice(None, None, step)
    return x[tuple(key)]


def reshaped(x, numbers):
    divisors = [d for d in range(1, x.size + 1) if x.size % d == 0] or [1]
    first = divisors[numbers[0] % len(divisors)]
    return x.reshape(first, x.size // first)


def indexed(x, numbers):
    if not x.ndim:
        return x
    axis = numbers[0] % x.ndim
    return x[(slice(None),) * axis + (numbers[1] % x.shape[axis],)] if x.shape[axis] else x


def widened(x, numbers):
    return mnp.expand_dims(x, numbers[0] % (x.ndim + 1))


def repeated(x, numbers):
    return mnp.broadcast_to(x, (1 + numbers[0] % 2, *x.shape)) if x.ndim < 4 else x


def diagonal(x, numbers):
    return mnp.diagonal(x, axis1=0, axis2=x.ndim - 1) if x.ndim >= 2 else x


STEPS = [transposed, sliced, reshaped, indexed, widened, repeated, diagonal]
CHAINS = st.lists(st.tuples(st.sampled_from(STEPS), st.lists(st.integers(0, 9), min_size=3, max_size=3)), max_size=5)
SHAPES = st.lists(st.integers(2, 5), min_size=1, max_size=3)


def check(function, shape, path):
    x = mnp.arange(float(np.prod(shape))).reshape(shape)
    net, wanted = onnx_oracle.traced(function, [x])
    onnx_oracle.export(net, path)
    found, _ = onnx_oracle.run(path, [x])
    np.testing.assert_array_equal(found[0], wanted[0].asnumpy())


@settings(max_examples=60, deadline=None, derandomize=True)
@given(chain=CHAINS, shape=SHAPES)
def test_chain_of_views_is_read(chain, shape, tmp_path_factory):
    def function(x):
        for step, numbers in chain:
            x = step(x, numbers)
        return x + 1

    check(function, shape, tmp_path_factory.mktemp("views") / "x.onnx")


@settings(max_examples=40, deadline=None, derandomize=True)
@given(chain=CHAINS, shape=SHAPES)
def test_chain_of_views_is_written(chain, shape, tmp_path_factory):
    def function(x):
        x = x * 2
        view = x
        for step, numbers in chain:
            if step is not repeated and step is not diagonal:  # these views are read-only
                view = step(view, numbers)
        view[...] = view + 1
        return x

    check(function, shape, tmp_path_factory.mktemp("views") / "x.onnx")
