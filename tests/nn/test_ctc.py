"""CTC against the sum over all paths, spelt out."""

from __future__ import annotations

import itertools

import numpy as onp
import pytest
import scipy.special

import mxnet as mx
from mxnet import autograd, np, npx
from mxnet.test_utils import check_numeric_gradient

GENERATOR = onp.random.default_rng(11)


def spelt(path: tuple[int, ...], blank: int) -> tuple[int, ...]:
    merged = [key for key, _ in itertools.groupby(path)]
    return tuple(state for state in merged if state != blank)


def summed_over_paths(scores: onp.ndarray, label: tuple[int, ...], blank: int) -> float:
    logp = scipy.special.log_softmax(scores, axis=1)
    frames, classes = scores.shape
    paths = (path for path in itertools.product(range(classes), repeat=frames) if spelt(path, blank) == label)
    total = [sum(logp[t, state] for t, state in enumerate(path)) for path in paths]
    return -scipy.special.logsumexp(total)


@pytest.mark.parametrize(("blank_label", "blank", "padding"), [("first", 0, 0), ("last", 3, -1)])
def test_loss_is_the_sum_over_all_paths(blank_label: str, blank: int, padding: int) -> None:
    scores = GENERATOR.normal(size=(5, 3, 4))
    labels = [[1, 2, padding], [2, 2, 1], [1, padding, padding]]
    found = npx.ctc_loss(np.array(scores, dtype="float64"), np.array(labels), blank_label=blank_label)
    expected = [
        summed_over_paths(scores[:, i], tuple(x for x in row if x != padding), blank) for i, row in enumerate(labels)
    ]
    onp.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-12)


def test_lengths_cut_frames_and_labels() -> None:
    scores, labels = GENERATOR.normal(size=(5, 2, 4)), [[1, 2], [2, 1]]
    found = npx.ctc_loss(
        np.array(scores, dtype="float64"), np.array(labels), np.array([3, 5]), np.array([2, 0]),
        use_data_lengths=True, use_label_lengths=True,
    )  # fmt: skip
    expected = [summed_over_paths(scores[:3, 0], (1, 2), 0), summed_over_paths(scores[:, 1], (), 0)]
    onp.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-12)


def test_gradient_agrees_with_differences() -> None:
    labels = np.array([[1, 2], [2, 2]])
    check_numeric_gradient(
        lambda x: npx.ctc_loss(x, labels), [np.array(GENERATOR.normal(size=(4, 2, 3)), dtype="float64")]
    )


def test_an_impossible_sequence_has_a_huge_loss_and_a_finite_gradient() -> None:
    x = np.zeros((1, 1, 3))
    x.attach_grad()
    with autograd.record():
        loss = npx.ctc_loss(x, np.array([[1, 2]]))
    loss.backward()
    assert loss.item() > 1e29
    assert onp.isfinite(x.grad.asnumpy()).all()


def test_misfits_are_named() -> None:
    with pytest.raises(ValueError, match=r"found \(2, 3\) and \(1, 1\)"):
        npx.ctc_loss(np.zeros((2, 3)), np.zeros((1, 1)))
    with pytest.raises(ValueError, match=r"`blank_label`.*'middle'"):
        npx.ctc_loss(np.zeros((2, 1, 3)), np.zeros((1, 1)), blank_label="middle")


@pytest.mark.parametrize(("blank_label", "label"), [("first", -1), ("first", 3), ("last", -2), ("last", 3)])
def test_labels_that_are_no_class_are_refused(blank_label: str, label: int) -> None:
    scores = np.zeros((4, 1, 3))
    with pytest.raises(IndexError, match="ctc_loss: `label` must be from 0 to 2, the last class"):
        npx.ctc_loss(scores, np.array([[1, label]]), blank_label=blank_label)
    # What lies beyond the end of a sequence may be anything.
    lengths = {"label_lengths": np.array([1]), "use_label_lengths": True}
    found = npx.ctc_loss(scores, np.array([[1, label]]), blank_label=blank_label, **lengths)
    onp.testing.assert_array_equal(found, npx.ctc_loss(scores, np.array([[1]]), blank_label=blank_label))


def test_labels_of_ragged_frames_that_are_no_class_are_refused() -> None:
    frames = mx.ragged.array([np.zeros((4, 3))])
    with pytest.raises(IndexError):
        npx.ctc_loss(frames, np.array([[1, -1]]))
