"""Losses against their formulas in float64."""

import numpy as onp
import pytest
import scipy.special

import mxnet as mx
from mxnet.gluon import loss as losses
from mxnet.test_utils import assert_almost_equal, check_numeric_gradient

GENERATOR = onp.random.default_rng(3)
PRED, LABEL = GENERATOR.normal(size=(4, 3)), GENERATOR.normal(size=(4, 3))
SIGNS = onp.where(GENERATOR.random((4, 3)) < 0.5, -1.0, 1.0)
BITS = (SIGNS + 1) / 2
CLASSES = onp.array([0, 2, 1, 2])
PROBS = scipy.special.softmax(LABEL, axis=1)
ERROR = LABEL - PRED
SOFTPLUS = onp.logaddexp(0, -PRED * SIGNS)
LOGP = scipy.special.log_softmax(PRED, axis=1)

CASES = {
    "l2": (losses.L2Loss(), LABEL, (ERROR**2 / 2).mean(1)),
    "l1": (losses.L1Loss(), LABEL, abs(ERROR).mean(1)),
    "sigmoid": (losses.SigmoidBCELoss(), BITS, SOFTPLUS.mean(1)),
    "softmax": (losses.SoftmaxCELoss(), CLASSES, -LOGP[range(4), CLASSES]),
    "softmax dense": (losses.SoftmaxCELoss(sparse_label=False), PROBS, -(PROBS * LOGP).sum(1)),
    "kl": (losses.KLDivLoss(from_logits=False), PROBS, (PROBS * (onp.log(PROBS) - LOGP)).mean(1)),
    "huber": (
        losses.HuberLoss(rho=0.8),
        LABEL,
        onp.where(abs(ERROR) > 0.8, abs(ERROR) - 0.4, ERROR**2 / 1.6).mean(1),
    ),
    "hinge": (losses.HingeLoss(), SIGNS, onp.maximum(0, 1 - PRED * SIGNS).mean(1)),
    "squared hinge": (losses.SquaredHingeLoss(), SIGNS, (onp.maximum(0, 1 - PRED * SIGNS) ** 2).mean(1)),
    "logistic": (losses.LogisticLoss(), SIGNS, SOFTPLUS.mean(1)),
    "logistic binary": (losses.LogisticLoss(label_format="binary"), BITS, SOFTPLUS.mean(1)),
    "poisson": (losses.PoissonNLLLoss(), BITS, (onp.exp(PRED) - BITS * PRED).mean(1)),
}


@pytest.mark.parametrize("name", CASES)
def test_value_and_gradient(name):
    loss, label, expected = CASES[name]
    label = mx.np.array(label, dtype="int32" if label is CLASSES else "float64")
    found = loss(mx.np.array(PRED, dtype="float64"), label)
    # 1e-12 stands in the formula of the divergence.
    assert_almost_equal(found, expected, rtol=1e-10, atol=1e-12)
    check_numeric_gradient(lambda pred: loss(pred, label), [PRED], rtol=1e-5, atol=1e-8)


def test_weights_multiply():
    loss = losses.L1Loss(weight=2.0)
    pred, label = mx.np.zeros((2, 2)), mx.np.ones((2, 2))
    assert loss(pred, label, mx.np.array([[1.0], [3.0]])).asnumpy().tolist() == [2, 6]


def test_positive_weight_counts_positive_labels():
    loss = losses.SigmoidBCELoss()
    pred, weight = mx.np.array(PRED, dtype="float64"), mx.np.array([2.0, 3.0, 4.0], dtype="float64")
    found = loss(pred, mx.np.array(BITS, dtype="float64"), None, weight)
    positive = BITS * onp.array([2, 3, 4]) * onp.logaddexp(0, -PRED)
    expected = (positive + (1 - BITS) * onp.logaddexp(0, PRED)).mean(1)
    assert_almost_equal(found, expected, rtol=1e-12, atol=1e-14)


def test_large_logits_do_not_overflow():
    pred = mx.np.array([[1000.0, -1000.0]])
    assert losses.SigmoidBCELoss()(pred, mx.np.array([[0.0, 1.0]])).item() == 1000
    assert losses.LogisticLoss()(pred, mx.np.array([[-1.0, 1.0]])).item() == 1000


def test_triplet_prefers_the_near_one():
    anchor, near, far = mx.np.zeros((1, 2)), mx.np.ones((1, 2)), 2 * mx.np.ones((1, 2))
    loss = losses.TripletLoss(margin=1)
    assert loss(anchor, near, far).item() == 0
    assert loss(anchor, far, near).item() == 7


def test_cosine_embedding():
    loss = losses.CosineEmbeddingLoss(margin=0.1)
    left = mx.np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    right = mx.np.array([[2.0, 0.0], [2.0, 0.0], [0.0, 3.0]])
    found = loss(left, right, mx.np.array([1, -1, -1]))
    assert_almost_equal(found, [0, 0.9, 0], rtol=1e-6, atol=1e-7)


def test_sdml_wants_matching_rows():
    loss = losses.SDMLLoss()
    rows = mx.np.array([[0.0, 0.0], [5.0, 5.0], [-5.0, 5.0]])
    turned = mx.np.array([[5.0, 5.0], [-5.0, 5.0], [0.0, 0.0]])
    assert loss(rows, rows).mean().item() < loss(rows, turned).mean().item()
    with pytest.raises(ValueError, match="at least 2"):
        loss(rows[:1], rows[:1])


def test_ctc_of_one_frame_is_the_class_probability():
    scores = GENERATOR.normal(size=(2, 1, 4))
    found = losses.CTCLoss()(mx.np.array(scores, dtype="float32"), mx.np.array([[2.0], [0.0]]))
    logp = scipy.special.log_softmax(scores[:, 0], axis=1)
    assert_almost_equal(found, [-logp[0, 2], -logp[1, 0]], rtol=1e-5, atol=1e-6)
