"""CTC of frames without padding, against each sample alone."""

import numpy
import pytest

from mxnet import autograd, gluon, np, npx, ragged
from mxnet.error import ShapeError

RNG = numpy.random.default_rng(0)
FRAMES = [RNG.normal(size=(n, 4)) for n in (5, 1, 7, 3)]
LABELS = [[1, 2], [3], [2, 2, 1], []]


def alone(frames, label, blank_label):
    """The loss and the gradient of one sample, which is not padded."""
    x = np.array(frames[:, None])
    x.attach_grad()
    with autograd.record():
        loss = npx.ctc_loss(
            x, np.array([label or [0]]), None, np.array([len(label)]), use_label_lengths=True, blank_label=blank_label
        )
    loss.backward()
    return float(loss[0]), x.grad.asnumpy()[:, 0]


@pytest.mark.parametrize("blank_label", ["first", "last"])
def test_losses_and_gradients_are_those_of_each_sample(blank_label):
    labels = [[k - (blank_label == "last") for k in label] for label in LABELS]
    r = ragged.array(FRAMES)
    r.values.attach_grad()
    with autograd.record():
        loss = npx.ctc_loss(r, ragged.array(labels, dtype="int64"), blank_label=blank_label)
    loss.backward()
    want = [alone(x, label, blank_label) for x, label in zip(FRAMES, labels, strict=True)]
    numpy.testing.assert_allclose(loss.asnumpy(), [one for one, _ in want], rtol=1e-13)
    # Probabilities of states, each the exponential of sums of some ten logarithms.
    numpy.testing.assert_allclose(r.values.grad.asnumpy(), numpy.concatenate([dx for _, dx in want]), atol=1e-13)


def test_padded_labels():
    r = ragged.array(FRAMES)
    padded = np.array([[1, 2, 0], [3, 0, 0], [2, 2, 1], [0, 0, 0]])
    want = npx.ctc_loss(r, ragged.array(LABELS, dtype="int64"))
    numpy.testing.assert_array_equal(npx.ctc_loss(r, padded).asnumpy(), want.asnumpy())


def test_labels_may_be_lists():
    r, padded = ragged.array(FRAMES), [[1, 2, 0], [3, 0, 0], [2, 2, 1], [0, 0, 0]]
    want = npx.ctc_loss(r, np.array(padded)).asnumpy()
    numpy.testing.assert_array_equal(npx.ctc_loss(r, padded).asnumpy(), want)
    found = npx.ctc_loss(r, padded, label_lengths=[2, 1, 3, 0], use_label_lengths=True)
    numpy.testing.assert_array_equal(found.asnumpy(), want)


def test_shapes_that_do_not_fit():
    r = ragged.array(FRAMES)
    with pytest.raises(ValueError, match="`use_label_lengths` needs `label_lengths`"):
        npx.ctc_loss(r, np.array([[1]] * 4), use_label_lengths=True)
    with pytest.raises(ValueError, match=r"`label_lengths` must have shape \(4,\), found \(3,\)"):
        npx.ctc_loss(r, np.array([[1]] * 4), label_lengths=np.array([1, 1, 1]), use_label_lengths=True)
    with pytest.raises(ValueError, match="found 4 rows of frames"):
        npx.ctc_loss(r, np.array([[1]]))
    with pytest.raises(ShapeError, match="one ragged axis"):
        npx.ctc_loss(ragged.array([[FRAMES[0], FRAMES[1]]]), np.array([[1]]))
    with pytest.raises(ValueError, match="'middle'"):
        npx.ctc_loss(r, np.array([[1]] * 4), blank_label="middle")


def test_the_loss_of_gluon_takes_ragged_arrays():
    labels = [[k - 1 for k in label] for label in LABELS]
    frames, padded = ragged.array(FRAMES), numpy.full((4, 3), -1)
    for row, label in zip(padded, labels, strict=True):
        row[: len(label)] = label
    lengths, weight = frames.lengths(), np.array([1.0, 2.0, 0.5, 3.0])
    want = gluon.loss.CTCLoss()(frames.to_dense(), np.array(padded), lengths, None, weight).asnumpy()
    loss = gluon.loss.CTCLoss()
    for given in (ragged.array(labels, dtype="int64"), np.array(padded)):
        numpy.testing.assert_allclose(loss(frames, given, None, None, weight).asnumpy(), want, rtol=1e-12)
    loss.hybridize()
    numpy.testing.assert_allclose(
        loss(frames, ragged.array(labels, dtype="int64"), None, None, weight).asnumpy(), want, rtol=1e-12
    )
    with pytest.raises(ValueError, match="a ragged `pred` counts samples first, but its layout is 'TNC'"):
        gluon.loss.CTCLoss(layout="TNC")(frames, np.array(padded))
