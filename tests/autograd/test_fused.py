"""Which gradient rule a pass takes."""

import numpy
import pytest

from mxnet import _core, autograd, np, npx

FUSED = [
    ("softmax_gradient", lambda x: npx.softmax(x)),
    ("softmax_gradient", lambda x: npx.log_softmax(x)),
    ("row_norm_gradient", lambda x: npx.layer_norm(x, np.ones(4), np.zeros(4))),
    ("batch_norm_gradient", lambda x: npx.batch_norm(x, np.ones(4), np.zeros(4), np.zeros(4), np.ones(4), axis=1)),
]


@pytest.mark.parametrize("name, function", FUSED)
@pytest.mark.parametrize("create_graph", [False, True])
def test_fused_gradients_are_taken_where_they_need_no_gradient(name, function, create_graph):
    x = np.array(numpy.random.default_rng(0).normal(size=(3, 4)))
    x.attach_grad()
    with autograd.record():
        y = (function(x) * np.arange(12).reshape(3, 4)).sum()
    (found,), calls, _ = _core.witnessed(lambda: autograd.grad(y, [x], create_graph=create_graph))
    assert (name in {call.name for call in calls}) is not create_graph
    with autograd.record():
        y = (function(x) * np.arange(12).reshape(3, 4)).sum()
    (expected,) = autograd.grad(y, [x], create_graph=not create_graph)
    # Sums of a few terms of up to 11, in float32.
    numpy.testing.assert_allclose(found.asnumpy(), expected.asnumpy(), rtol=0, atol=32 * 2.0**-24 * 11)
