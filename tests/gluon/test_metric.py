"""Metrics against their definitions, over several batches."""

import copy
import json
import math
import pickle

import numpy as onp
import pytest
import scipy.stats

import mxnet as mx
from mxnet.gluon import metric

GENERATOR = onp.random.default_rng(5)


def fed(name, batches, **kwargs):
    found = metric.create(name, **kwargs)
    for label, pred in batches:
        found.update(mx.np.array(label), mx.np.array(pred))
    return found.get()[1]


def test_accuracy_of_scores_and_of_classes():
    batches = [([0, 1], [[0.9, 0.1], [0.8, 0.2]]), ([1], [[0.3, 0.7]])]
    assert fed("acc", batches) == pytest.approx(2 / 3)
    assert fed("acc", [([0, 1, 2], [0, 1, 1])]) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    "made",
    [
        metric.TopKAccuracy(top_k=3, name="best"),
        metric.F1(average="macro", class_type="multiclass", threshold=0.3),
        metric.CrossEntropy(ignore_label=2, from_logits=True),
        metric.MeanPairwiseDistance(p=1, label_names=["a"]),
        metric.CompositeEvalMetric([metric.MAE(), metric.Fbeta(beta=2)]),
    ],
)
def test_metrics_are_made_again_from_their_configuration(made):
    config = made.get_config()
    for form in (config, json.dumps(config)):
        again = metric.create(form)
        assert repr(again) == repr(made)
        assert again.get_config() == config
    with pytest.raises(TypeError, match="arguments beside"):
        metric.create(json.dumps(config), name="other")
    with pytest.raises(TypeError, match="found int"):
        metric.create(3)


def test_top_k_accuracy():
    scores = [[0.1, 0.5, 0.4], [0.6, 0.3, 0.1], [0.2, 0.2, 0.6]]
    assert fed("top_k_acc", [([2, 2, 2], scores)], top_k=2) == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match="at least 2"):
        metric.TopKAccuracy(1)


def test_errors():
    label, pred = GENERATOR.normal(size=(2, 6, 2))
    batches = [(label[:4], pred[:4]), (label[4:], pred[4:])]
    assert fed("mae", batches) == pytest.approx(abs(label - pred).mean(), rel=1e-5)
    assert fed("mse", batches) == pytest.approx(((label - pred) ** 2).mean(), rel=1e-5)
    assert fed("rmse", batches) == pytest.approx(((label - pred) ** 2).mean() ** 0.5, rel=1e-5)


def test_cross_entropy_and_perplexity():
    probs = onp.array([[0.2, 0.8], [0.6, 0.4], [0.5, 0.5]])
    expected = -(math.log(0.8) + math.log(0.6) + math.log(0.5)) / 3
    assert fed("ce", [([1, 0, 0], probs)]) == pytest.approx(expected, rel=1e-6)
    assert fed("perplexity", [([1, 0, 0], probs)]) == pytest.approx(math.exp(expected), rel=1e-6)
    assert fed("ce", [([1, 0, 0], onp.log(probs))], from_logits=True) == pytest.approx(expected, rel=1e-6)
    without = -(math.log(0.6) + math.log(0.5)) / 2
    assert fed("ce", [([1, 0, 0], probs)], ignore_label=1) == pytest.approx(without, rel=1e-6)


def test_f1_and_fbeta_count_over_batches():
    # 2 hits, 1 false alarm, 1 miss.
    batches = [([1, 1], [0.9, 0.2]), ([0, 1, 0], [0.8, 0.7, 0.1])]
    assert fed("f1", batches) == pytest.approx(2 * 2 / (2 * 2 + 1 + 1))
    assert fed("fbeta", batches, beta=2) == pytest.approx(5 * 2 / (5 * 2 + 1 + 4 * 1))
    assert fed("mcc", batches) == pytest.approx((2 * 1 - 1 * 1) / math.sqrt(3 * 3 * 2 * 2))
    assert fed("binaryaccuracy", batches) == pytest.approx(3 / 5)


def test_f1_of_several_classes():
    scores = onp.eye(3)[[0, 1, 1, 2]]
    label = [0, 1, 2, 2]
    assert fed("f1", [(label, scores)], class_type="multiclass") == pytest.approx(3 / 4)
    macro = (1 + 2 / 3 + 2 / 3) / 3
    assert fed("f1", [(label, scores)], class_type="multiclass", average="macro") == pytest.approx(macro)


def test_pearson_correlation_over_batches():
    label, pred = GENERATOR.normal(size=(2, 20))
    pred = 0.5 * label + pred + 1000
    batches = [(label[:7], pred[:7]), (label[7:], pred[7:])]
    found = metric.create("pearsonr")
    for one in batches:
        found.update(*one)
    assert found.get()[1] == pytest.approx(scipy.stats.pearsonr(label, pred).statistic, rel=1e-9)


def test_distances_and_cosines():
    label, pred = onp.array([[1.0, 0.0], [0.0, 2.0]]), onp.array([[0.0, 1.0], [0.0, 4.0]])
    assert fed("meanpairwisedistance", [(label, pred)]) == pytest.approx((2**0.5 + 2) / 2, rel=1e-6)
    assert fed("meancosinesimilarity", [(label, pred)]) == pytest.approx(0.5, rel=1e-6)


def test_loss_ignores_labels():
    found = metric.Loss()
    found.update(None, [mx.np.array([1.0, 2.0]), mx.np.array([6.0])])
    assert found.get() == ("loss", 3.0)


def test_composite_reports_all():
    both = metric.create(["acc", "ce"])
    both.update(mx.np.array([0]), mx.np.array([[0.5, 0.5]]))
    assert dict(both.get_name_value()) == {"accuracy": 1.0, "cross-entropy": pytest.approx(math.log(2))}
    both.reset()
    assert all(math.isnan(value) for _, value in both.get_name_value())


def test_own_function_is_a_metric():
    @metric.np
    def largest_error(label, pred):
        return abs(label - pred).max()

    largest_error.update(mx.np.array([1.0, 2.0]), mx.np.array([1.5, 4.0]))
    assert largest_error.get() == ("largest_error", 2.0)


def test_before_the_first_batch_is_nan():
    assert all(math.isnan(metric.create(name).get()[1]) for name in ("acc", "rmse", "f1", "mcc", "pearsonr"))


def test_misfits_are_refused():
    with pytest.raises(ValueError, match=r"\(2,\) do not fit predictions of shape \(3, 2\)"):
        fed("acc", [([0, 1], onp.zeros((3, 2)))])
    with pytest.raises(ValueError, match="'accuracies'"):
        metric.create("accuracies")


def test_correlation_of_two_classes_is_matthews():
    label, scores = [1, 1, 0, 1, 0], [[0.1, 0.9], [0.8, 0.2], [0.2, 0.8], [0.3, 0.7], [0.9, 0.1]]
    batches = [(label[:2], scores[:2]), (label[2:], scores[2:])]
    assert fed("pcc", batches) == pytest.approx(fed("mcc", batches), rel=1e-12)


def test_correlation_of_several_classes():
    # Right for all of three classes, then for none.
    assert fed("pcc", [([0, 1, 2], onp.eye(3))]) == pytest.approx(1.0)
    assert fed("pcc", [([0, 1, 2], onp.eye(3)[[1, 2, 0]])]) == pytest.approx(-0.5)


KINDS = {
    "acc": ([0, 2, 1, 1], GENERATOR.uniform(size=(4, 3))),
    "top_k_acc": ([0, 2, 1, 1], GENERATOR.uniform(size=(4, 3))),
    "binaryaccuracy": ([0, 1, 1, 0], GENERATOR.uniform(size=4)),
    "f1": ([0, 1, 1, 0], GENERATOR.uniform(size=4)),
    "fbeta": ([0, 1, 1, 0], GENERATOR.uniform(size=(4, 2))),
    "mcc": ([0, 1, 1, 0], GENERATOR.uniform(size=4)),
    "pcc": ([0, 2, 1, 1], GENERATOR.uniform(size=(4, 3))),
    "ce": ([0, 2, 1, 1], GENERATOR.uniform(size=(4, 3))),
    "perplexity": ([0, 2, 1, 1], GENERATOR.uniform(size=(4, 3))),
    "loss": ([0, 0, 0, 0], GENERATOR.uniform(size=4)),
    **dict.fromkeys(
        ("mae", "mse", "rmse", "meanpairwisedistance", "meancosinesimilarity", "pearsonr"),
        (GENERATOR.normal(size=(4, 3)), GENERATOR.normal(size=(4, 3))),
    ),
}
OPTIONS = {"top_k_acc": {"top_k": 2}}


@pytest.mark.parametrize("name", KINDS)
def test_updates_look_at_no_value(name):
    # In a trace arrays have no values: an update that reads one fails. Each run of the graph takes in a batch.
    label, pred = KINDS[name]
    whole = metric.create(name, **OPTIONS.get(name, {}))
    parts = metric.create(name, **OPTIONS.get(name, {}))

    @mx.jit
    def update(label, pred):
        parts.update(label, pred)

    for shift in range(3):
        batch = mx.np.array(label), mx.np.array(onp.roll(pred, shift, axis=0))
        update(*batch)
        whole.update(*batch)
    assert parts.num_inst == whole.num_inst > 0
    assert parts.get()[1] == pytest.approx(whole.get()[1], rel=1e-12)
    parts.reset()
    assert math.isnan(parts.get()[1])
    update(*batch)
    assert parts.num_inst == whole.num_inst // 3


def test_updates_while_recording_are_not_recorded():
    found, x = metric.MSE(), mx.np.array([1.0, 2.0])
    x.attach_grad()
    with mx.autograd.record():
        y = x * x
        found.update(mx.np.zeros(2), y)
    y.backward()
    assert found.get()[1] == pytest.approx((1 + 16) / 2)
    assert x.grad.tolist() == [2, 4]


def test_batches_may_lie_on_several_devices():
    devices = [mx.cpu(0), mx.cpu(1)]
    labels = [mx.np.array([0, 1], device=device) for device in devices]
    preds = [
        mx.np.array([[0.9, 0.1], [score, 0.5]], device=device)
        for score, device in zip((0.1, 0.8), devices, strict=True)
    ]
    found = metric.Accuracy()
    found.update(labels, preds)
    assert found.get()[1] == 3 / 4
    correlation = metric.PearsonCorrelation()
    values = GENERATOR.normal(size=(2, 2, 5))
    correlation.update(
        *([mx.np.array(x, dtype="float64", device=d) for x, d in zip(part, devices, strict=True)] for part in values)
    )
    expected = scipy.stats.pearsonr(values[0].ravel(), values[1].ravel()).statistic
    assert correlation.get()[1] == pytest.approx(expected, rel=1e-12)


def test_sums_are_kept_in_float64():
    found, batch = metric.Loss(), mx.np.full((1000,), 0.1)
    for _ in range(200):
        found.update(None, batch)
    # float32 sums of 200,000 terms would be off by 1e-3.
    assert found.get()[1] == pytest.approx(float(onp.float32(0.1)), rel=1e-12)


def test_equal_scores_are_ranked_by_their_place():
    scores = onp.zeros((3, 4))
    found = fed("top_k_acc", [([0, 1, 3], scores)], top_k=2)
    assert found == pytest.approx(2 / 3)
    # Neither a class that is not there nor a score that is no number is a hit.
    assert fed("top_k_acc", [([4, -1, 0], onp.array([[0, 0, 0, 1.0], [0, 0, 0, 1.0], [onp.nan] * 4]))], top_k=2) == 0


def test_classes_may_become_more():
    batches = [([0, 1], onp.eye(2)), ([2, 0], onp.eye(3)[[2, 1]])]
    assert fed("f1", batches, class_type="multiclass") == pytest.approx(3 / 4)
    expected = onp.corrcoef([0, 1, 0, 1], [0, 1, 0, 1])
    assert expected[0, 1] == pytest.approx(fed("pcc", [([0, 1], [0, 1]), ([0, 1], onp.eye(2))]))


def test_copies_of_metrics_count_apart():
    found = metric.Accuracy()
    found.update(mx.np.array([0]), mx.np.array([[0.9, 0.1]]))
    for other in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        other.update(mx.np.array([1]), mx.np.array([[0.9, 0.1]]))
        assert other.get()[1] == 0.5
    assert found.get()[1] == 1


def test_own_metrics_may_add_up_arrays():
    class Largest(metric.EvalMetric):
        def update(self, labels, preds):
            self.sum_metric = self.sum_metric + preds.max()
            self.num_inst += 1

    found = Largest("largest")
    for value in (1.0, 2.0):
        found.update(None, mx.np.array([value, 0.0]))
    assert found.get() == ("largest", 1.5)
    found.reset()
    assert math.isnan(found.get()[1])
