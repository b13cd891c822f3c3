"""Sequences of different lengths in one array."""

import numpy as onp
import pytest

from mxnet import autograd, np, npx

LENGTHS = [2, 4, 1]


def steps(axis, *behind):
    shape = (4, 3, *behind) if axis == 0 else (3, 4, *behind)
    return onp.arange(1, onp.prod(shape) + 1, dtype="float32").reshape(shape)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("behind", [(), (2,), (2, 3)])
def test_masks_overwrite_what_is_behind_the_end(axis, behind):
    x = steps(axis, *behind)
    want = onp.moveaxis(x.copy(), axis, 0)
    for i, length in enumerate(LENGTHS):
        want[length:, i] = -1
    found = npx.sequence_mask(np.array(x), np.array(LENGTHS), True, value=-1, axis=axis)
    assert found.tolist() == onp.moveaxis(want, 0, axis).tolist()
    assert npx.sequence_mask(np.array(x), axis=axis).tolist() == x.tolist()


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("behind", [(), (2,), (2, 3)])
def test_last_steps(axis, behind):
    x = steps(axis, *behind)
    first = onp.moveaxis(x, axis, 0)
    found = npx.sequence_last(np.array(x), np.array(LENGTHS, dtype="float32"), True, axis=axis)
    assert found.tolist() == [first[length - 1, i].tolist() for i, length in enumerate(LENGTHS)]
    assert npx.sequence_last(np.array(x), axis=axis).tolist() == first[-1].tolist()


@pytest.mark.parametrize("behind", [(), (2,), (2, 3)])
def test_sequences_are_turned_within_their_lengths(behind):
    x = steps(0, *behind)
    want = x.copy()
    for i, length in enumerate(LENGTHS):
        want[:length, i] = x[:length, i][::-1]
    assert npx.sequence_reverse(np.array(x), np.array(LENGTHS), True).tolist() == want.tolist()
    assert npx.sequence_reverse(np.array(x)).tolist() == x[::-1].tolist()


def test_gradients_go_where_the_steps_came_from():
    for function, want in (
        (npx.sequence_mask, [[1, 1, 1], [1, 1, 0], [0, 1, 0], [0, 1, 0]]),
        (npx.sequence_last, [[0, 0, 1], [1, 0, 0], [0, 0, 0], [0, 1, 0]]),
        (npx.sequence_reverse, [[1, 1, 1]] * 4),
    ):
        x = np.array(steps(0))
        x.attach_grad()
        with autograd.record():
            y = function(x, np.array(LENGTHS), True).sum()
        y.backward()
        assert x.grad.tolist() == want


def test_what_does_not_fit_is_refused():
    x = np.array(steps(0))
    with pytest.raises(ValueError, match=r"(?s)shape \(3,\).*data +: shape \(4, 3\).*shape \(2,\)"):
        npx.sequence_mask(x, np.array([1, 2]), True)
    with pytest.raises(ValueError, match="needs `sequence_length`"):
        npx.sequence_last(x, use_sequence_length=True)
    with pytest.raises(ValueError, match="found 2"):
        npx.sequence_mask(x, axis=2)
    with pytest.raises(ValueError, match="found 1"):
        npx.sequence_reverse(x, axis=1)
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        npx.sequence_last(np.zeros((2,)))
