"""Losses, metrics and devices at the edges: labels out of range, shapes and scales of losses, devices by name."""

import math

import numpy as onp
import pytest
import scipy.special
import scipy.stats

import mxnet as mx
from mxnet import autograd, gluon
from mxnet.gluon import metric, nn

GENERATOR = onp.random.default_rng(17)


@pytest.mark.parametrize(
    ("device", "expected"),
    [("cpu", [mx.cpu(0)]), (["cpu", mx.cpu(1)], [mx.cpu(0), mx.cpu(1)]), (mx.cpu(1), [mx.cpu(1)])],
)
def test_initialize_takes_devices_by_name(device, expected):
    net = nn.Dense(2, in_units=3)
    net.initialize(device=device)
    assert net.weight.list_device() == expected
    assert [array.device for array in net.weight.list_data()] == expected


def test_initialize_refuses_what_is_no_device():
    with pytest.raises(TypeError, match=r"`device` must be a device or a sequence of devices, found int in it"):
        nn.Dense(2, in_units=3).initialize(device=[3])
    with pytest.raises(ValueError, match="names a device twice"):
        nn.Dense(2, in_units=3).initialize(device=["cpu", mx.cpu(0)])


@pytest.mark.parametrize("from_logits", [False, True])
@pytest.mark.parametrize("label", [[0, 7], [0, -1], [4, -9]])
def test_labels_out_of_range_count_as_the_nearest_class(label, from_logits):
    pred = mx.np.array(GENERATOR.normal(size=(2, 4)), dtype="float64")
    loss = gluon.loss.SoftmaxCELoss(from_logits=from_logits)
    given = mx.npx.log_softmax(pred) if from_logits else pred
    given.attach_grad()
    with mx.autograd.record():
        found = loss(given, mx.np.array(label))
    found.backward()
    logs = scipy.special.log_softmax(pred.asnumpy(), axis=1)
    expected = [-logs[row, min(max(number, 0), 3)] for row, number in enumerate(label)]
    onp.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-13)
    assert onp.isfinite(given.grad.asnumpy()).all()


@pytest.mark.parametrize("from_logits", [False, True])
def test_poisson_loss_is_one_number_for_each_sample(from_logits):
    rate, target = GENERATOR.uniform(0.5, 3, size=(4, 3, 2)), GENERATOR.integers(0, 2, size=(4, 3, 2)).astype(float)
    pred = onp.log(rate) if from_logits else rate
    loss = gluon.loss.PoissonNLLLoss(from_logits=from_logits, compute_full=True)
    found = loss(mx.np.array(pred, dtype="float64"), mx.np.array(target, dtype="float64"), epsilon=0.0)
    # Targets of 0 and 1 have no Stirling term, and their factorial is 1.
    expected = -scipy.stats.poisson.logpmf(target, rate).mean(axis=(1, 2))
    assert found.shape == (4,)
    onp.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-12)


def test_sdml_loss_is_a_divergence_divided_by_the_number_of_rows():
    n, smoothing = 5, 0.2
    x1, x2 = GENERATOR.normal(size=(n, 3)), GENERATOR.normal(size=(n, 3))
    found = gluon.loss.SDMLLoss(smoothing)(mx.np.array(x1, dtype="float64"), mx.np.array(x2, dtype="float64"))
    expected = []
    for row in range(n):
        distances = [((x1[row] - x2[other]) ** 2).sum() for other in range(n)]
        q = scipy.special.softmax([-d for d in distances])
        p = [1 - smoothing if other == row else smoothing / (n - 1) for other in range(n)]
        expected.append(scipy.stats.entropy(p, q) / n)
    # 1e-12 is added to probabilities of at least 0.05.
    onp.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-9)


def test_eps_of_cross_entropy_is_the_least_probability():
    measure = metric.CrossEntropy(eps=0.25)
    measure.update(mx.np.array([0, 1]), mx.np.array([[0.5, 0.5], [1.0, 0.0]]))
    assert measure.get()[1] == pytest.approx((math.log(2) + math.log(4)) / 2, rel=1e-12)
    sure = metric.CrossEntropy(eps=0.25)
    sure.update(mx.np.array([0]), mx.np.array([[1.0, 0.0]]))
    assert sure.get()[1] == 0.0


def test_metrics_come_from_json():
    made = metric.create('["topkaccuracy", {"top_k": 3, "name": "three"}]')
    assert isinstance(made, metric.TopKAccuracy)
    assert made.top_k == 3
    for make in (metric.create, mx.init.create):
        for text in ("[1, 2]", '["acc"]', '["acc", 3]'):
            with pytest.raises(ValueError, match="must hold a name and a mapping of arguments"):
                make(text)
        for text in ('["acc", ', '{"metric": '):
            with pytest.raises(ValueError, match="must be JSON"):
                make(text)


def test_correlation_is_merged_batch_by_batch():
    x, y = GENERATOR.normal(100.0, 1.0, size=30), GENERATOR.normal(size=30)
    y += 0.5 * x
    measure = metric.PearsonCorrelation()
    for part in (slice(0, 4), slice(4, 5), slice(5, 30)):
        measure.update(mx.np.array(x[part], dtype="float64"), mx.np.array(y[part], dtype="float64"))
    assert measure.get()[1] == pytest.approx(scipy.stats.pearsonr(x, y).statistic, rel=1e-11)


def test_update_variance_merges_counts_means_and_squares():
    measure, values = metric.PearsonCorrelation(), GENERATOR.normal(3.0, 2.0, size=12)
    state = (0, 0.0, 0.0)
    for part in (values[:5], values[5:5], values[5:]):
        state = measure.update_variance(part, *state)
    assert state[0] == 12
    onp.testing.assert_allclose(state[1:], [values.mean(), 12 * values.var()], rtol=1e-13)


def test_update_cov_adds_products_of_deviations():
    measure, x, y = metric.PearsonCorrelation(), GENERATOR.normal(size=6), GENERATOR.normal(size=6)
    measure.update_cov(x, y)
    # The first batch: its means are its own.
    assert measure._total()[5] == pytest.approx(6 * onp.cov(x, y, bias=True)[0, 1], rel=1e-12)


def test_sum_of_a_pcc_is_its_value_times_the_samples():
    measure = metric.PCC()
    assert measure.sum_metric == 0.0
    measure.update(mx.np.array([0, 1, 2, 0]), mx.np.array([0, 1, 2, 1]))
    assert measure.sum_metric == measure.get()[1] * 4
    assert 0 < measure.get()[1] < 1
    measure.reset()
    assert measure.sum_metric == 0.0
    with pytest.raises(AttributeError, match="cannot be set"):
        measure.sum_metric = 2.0


def test_only_blocks_are_added():
    net = nn.Sequential()
    with pytest.raises(TypeError, match="`blocks` must be blocks, found int"):
        net.add(nn.Dense(2), 3)
    assert len(net) == 0


def test_instance_norm_of_no_channels_is_empty():
    x, gamma, beta = mx.np.ones((2, 0, 3)), mx.np.ones(0), mx.np.zeros(0)
    for y in (x, gamma, beta):
        y.attach_grad()
    with autograd.record():
        found = mx.npx.instance_norm(x, gamma, beta)
    found.backward()
    assert (found.shape, x.grad.shape, gamma.grad.shape) == ((2, 0, 3), (2, 0, 3), (0,))
