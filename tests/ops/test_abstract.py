"""Abstract arrays have a shape, a dtype and a device, but no values: operators follow their rules on them."""

import pickle
import warnings

import numpy
import pytest

import mxnet as mx
import np_coverage
from mxnet import _core, autograd, gluon, np
from mxnet.gluon import nn

NO_VALUES = mx.error.AbstractArrayError

# Calls whose result has a shape that depends on values.
SHAPE_OF_VALUES = {
    "np.argwhere(x)",
    "np.bincount(k)",
    "np.compress(v > 1, v)",
    "np.delete(i, j)",
    "np.extract(b, x)",
    "np.flatnonzero(x)",
    "np.intersect1d(x, y)",
    "np.nonzero(x)",
    "np.polydiv(v, u)",
    "np.polymul(u, v)",
    "np.roots(u)",
    "np.setdiff1d(x, y)",
    "np.setxor1d(x, y)",
    "np.trim_zeros(x)",
    "np.union1d(x, y)",
    "np.unique(x)",
    "np.unique_all(x)",
    "np.unique_counts(x)",
    "np.unique_inverse(x)",
    "np.unique_values(x)",
    "v.compress(v > 1)",
    "x.nonzero()",
}
# Calls that give Python objects or memory of the host made from values.
HOST = {
    "np.allclose(x, y)",
    "np.array2string(x)",
    "np.array_equal(x, y)",
    "np.array_equiv(x, y)",
    "np.array_str(x)",
    "np.from_dlpack(x)",
    "x.item(1)",
    "x.tobytes()",
    "x.tolist()",
}
# Calls whose dtype, or way to compute, depends on values, or that check values on the host.
LOOKS = {
    "(z := x + 0, np.place(z, b, v), z)[2]",
    "np.add.reduceat(v, k)",
    "np.asarray_chkfinite(x)",
    "np.average(x, weights=y)",
    "np.digitize(v, t)",
    "np.geomspace(x, y, 3)",
    "np.histogram(v, 4)",
    "np.histogram2d(v, w)",
    "np.histogram_bin_edges(x)",
    "np.histogramdd(x)",
    "np.linalg.eig(spd)",
    "np.linalg.eigvals(spd)",
    "np.nanargmax(x)",
    "np.nanargmin(x)",
    "np.piecewise(v, [v < 1, v >= 1], [lambda v: v * 2, lambda v: v * v])",
    "np.polyfit(t, t * t, 2)",
    "np.random.default_rng(0).multivariate_normal(v[:4], spd)",
    "np.random.multivariate_normal(v[:4], spd)",
}


def abstracted(value):
    return _core.abstract_array(value.shape, value.dtype) if isinstance(value, np.ndarray) else value


def forms(result):
    """Shapes and dtypes of the arrays in a result, and the types of what else is in it."""
    if isinstance(result, np.ndarray):
        return [(result.shape, result.dtype)]
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, list | tuple):
        return [form for item in result for form in forms(item)]
    return [type(result)]


def test_every_call_of_the_coverage_table_follows_its_rule():
    probe = np_coverage.Probe()
    refused, problems = set(), []
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for text in probe.common_calls():
            expected = forms(np_coverage.run(text, probe.ours()))
            scope = {name: abstracted(value) for name, value in probe.ours().items()}
            try:
                found = forms(np_coverage.run(text, scope))
            except NO_VALUES:
                refused.add(text)
                continue
            if found != expected:
                problems.append(f"{text}: {found} instead of {expected}")
    assert not problems, "\n".join(problems)
    assert refused == SHAPE_OF_VALUES | HOST | LOOKS


@pytest.mark.parametrize(
    "look",
    [
        lambda x: x.asnumpy(),
        lambda x: x.item(),
        lambda x: float(x),
        lambda x: bool(x),
        lambda x: int(x),
        lambda x: x.tolist(),
        lambda x: next(iter(x)).item(),
        lambda x: numpy.asarray(x),
        lambda x: numpy.from_dlpack(x),
        lambda x: memoryview(x),
        lambda x: pickle.dumps(x),
        lambda x: x.wait_to_read(),
        lambda x: f"{x[0]:.3f}",
        lambda x: np.nonzero(x),
    ],
)
def test_looking_at_values_is_refused(look):
    with pytest.raises(NO_VALUES, match="values"):
        look(_core.abstract_array((1,), "float32"))


def test_the_error_names_the_operator_and_its_arguments():
    x = _core.abstract_array((3, 4), "float32")
    with pytest.raises(NO_VALUES, match=r"(?s)nonzero.*\(3, 4\)"):
        np.nonzero(x)


def test_printing_tells_the_form():
    x = _core.abstract_array((2, 3), "int8")
    assert repr(x) == str(x) == "array(<no values>, shape=(2, 3), dtype=int8)"


def test_views_stay_without_values():
    x = _core.abstract_array((4, 6), "float32")
    for view in (x[1:3, ::2], x.T, x.reshape(3, 8), x[0], x[..., None], np.broadcast_to(x, (2, 4, 6))):
        assert _core.is_abstract(view)


def test_large_shapes_take_no_memory():
    x = _core.abstract_array((1 << 20, 1 << 20), "float32")
    assert (x + 1).sum(axis=0).shape == (1 << 20,)
    assert (x @ x).shape == x.shape


def test_what_has_values_is_not_overwritten():
    x = _core.abstract_array((3,), "float32")
    y = np.zeros(3)
    with pytest.raises(NO_VALUES, match=r"\(3,\)"):
        np.add(x, 1, out=y)
    with pytest.raises(NO_VALUES):
        y += x
    with pytest.raises(NO_VALUES):
        y[1:] = x[1:]
    assert y.tolist() == [0, 0, 0]
    x += 1
    x[1] = 2.0
    x[1:] = np.ones(2)
    assert _core.is_abstract(x)


def test_errors_come_before_values():
    x, y = _core.abstract_array((3,), "float32"), _core.abstract_array((4,), "float32")
    with pytest.raises(mx.error.ShapeError):
        x + y
    with pytest.raises(mx.error.OverflowError):
        _core.abstract_array((3,), "int8") + 1000


def test_gradients_of_abstract_arrays():
    x = _core.abstract_array((3, 4), "float32")
    w = np.ones((4, 5))
    w.attach_grad()
    with autograd.record():
        y = np.tanh(x @ w).sum()
    (gradient,) = autograd.grad(y, [w])
    assert _core.is_abstract(gradient)
    assert gradient.shape == (4, 5)
    assert w.grad.tolist() == np.zeros((4, 5)).tolist()


def test_a_network_tells_the_shapes_of_its_outputs():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(8, 3, in_channels=3), nn.BatchNorm(in_channels=8), nn.MaxPool2D(), nn.Flatten(), nn.Dense(10))
    net.initialize()
    x = np.random.uniform(size=(2, 3, 16, 16))
    expected = net(x)
    y = net(_core.abstract_array(x.shape, x.dtype))
    assert _core.is_abstract(y)
    assert (y.shape, y.dtype) == (expected.shape, expected.dtype)
    loss = gluon.loss.SoftmaxCrossEntropyLoss()(y, np.zeros(2))
    assert loss.shape == (2,)
