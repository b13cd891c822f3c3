"""Connectionist temporal classification (CTC): builds the states of label sequences, whose paths an operator sums."""

from __future__ import annotations

from mxnet import _core
from mxnet import numpy as np
from mxnet.numpy import ndarray

_log_softmax = _core.namespaces["npx"]["log_softmax"]


def ctc_loss(
    data: ndarray,
    label: ndarray,
    data_lengths: ndarray | None = None,
    label_lengths: ndarray | None = None,
    use_data_lengths: bool = False,
    use_label_lengths: bool = False,
    blank_label: str = "first",
) -> ndarray:
    """Compute minus the log-probability that frames of logits spell a sequence of labels.

    Parameters
    ----------
    data : ndarray, shape (t, n, c), float, or RaggedArray, shape (n, None, c)
        Logits of `c` classes, the blank among them.
    label : ndarray, shape (n, length), or RaggedArray, shape (n, None)
        Class numbers. Without `label_lengths` a sequence ends at its first padding: 0 if the blank is first, -1 if it
        is last.
    data_lengths, label_lengths : ndarray, shape (n,), optional
        Frames and labels that count, used if the flag of the same name says so.
    use_data_lengths, use_label_lengths : bool
    blank_label : {'first', 'last'}
        Whether the blank is class 0 or class ``c - 1``.

    Returns
    -------
    ndarray, shape (n,)

    Raises
    ------
    ValueError
        If `blank_label` is unknown, shapes do not fit, or a flag is set without its lengths.

    Notes
    -----
    Forward and backward recursion in log space and float64. A sequence that cannot be spelt in its frames has a loss of
    1e30 and a gradient of 0. The gradient of the gradient is an error.
    Source: A. Graves et al., "Connectionist Temporal Classification", 2006, equations 6 to 16.

    Examples
    --------
    >>> scores = np.zeros((2, 1, 3))  # two steps, every class as likely
    >>> npx.ctc_loss(scores, np.array([[1]]))  # -log(3 / 9): three of nine paths
    array([1.0986123])
    """
    for x in (data, label):
        if hasattr(x, "num_ragged"):
            lengths = (data_lengths, label_lengths, use_data_lengths, use_label_lengths, blank_label)
            found: ndarray = x.__array_function__(ctc_loss, (type(x),), (data, label, *lengths), {})
            return found
    if blank_label not in ("first", "last"):
        raise ValueError(f"ctc_loss: `blank_label` must be 'first' or 'last', found {blank_label!r}")
    if data.ndim != 3 or label.ndim != 2 or label.shape[0] != data.shape[1]:
        raise ValueError(
            f"ctc_loss: `data` must be (t, n, c) and `label` (n, length), found {data.shape} and {label.shape}"
        )
    frames, batch, classes = data.shape
    blank = 0 if blank_label == "first" else classes - 1
    states, may_skip, num_states = _states(label, label_lengths, use_label_lengths, blank, blank_label)
    shape = (frames, batch, states.shape[1])
    emitted = np.take_along_axis(_log_softmax(data, axis=-1), np.broadcast_to(np.expand_dims(states, 0), shape), axis=2)
    counts = np.full((batch,), frames, dtype="int64")
    if use_data_lengths:
        if data_lengths is None:
            raise ValueError("ctc_loss: `use_data_lengths` needs `data_lengths`")
        counts = data_lengths.astype("int64")
    loss: ndarray = _core.namespaces["op"]["ctc_paths"](emitted, may_skip, num_states, counts)
    return loss


def of_rows(
    values: ndarray, owners: ndarray, offsets: ndarray, label: ndarray, label_lengths: ndarray | None, blank_label: str
) -> ndarray:
    """The loss of unpadded frames.

    Parameters
    ----------
    values : ndarray, shape (total, c)
        Logits of the frames of all samples.
    owners : ndarray, shape (total,), int64
        The sample of each frame.
    offsets : ndarray, shape (n + 1,), int64
        Where the frames of each sample begin, and their number.
    label, label_lengths, blank_label
        As for `ctc_loss`; lengths are used if they are given.

    Returns
    -------
    ndarray, shape (n,)
    """
    if blank_label not in ("first", "last"):
        raise ValueError(f"ctc_loss: `blank_label` must be 'first' or 'last', found {blank_label!r}")
    batch = offsets.size - 1
    if values.ndim != 2 or label.ndim != 2 or label.shape[0] != batch:
        raise ValueError(
            f"ctc_loss: `data` must be (n, None, c) and `label` (n, length), found {batch} rows of frames of shape "
            f"{values.shape[1:]} and {label.shape}"
        )
    blank = 0 if blank_label == "first" else values.shape[1] - 1
    states, may_skip, num_states = _states(label, label_lengths, label_lengths is not None, blank, blank_label)
    emitted = np.take_along_axis(_log_softmax(values, axis=-1), np.take(states, owners, axis=0), axis=1)
    loss: ndarray = _core.namespaces["op"]["ctc_paths"](emitted, may_skip, num_states, offsets)
    return loss


def _states(
    label: ndarray, label_lengths: ndarray | None, use_label_lengths: bool, blank: int, blank_label: str
) -> tuple[ndarray, ndarray, ndarray]:
    """The states that a path goes through, which states may be entered by skipping one, and the number of states."""
    batch, length = label.shape
    label = label.astype("int64")
    if use_label_lengths:
        if label_lengths is None:
            raise ValueError("ctc_loss: `use_label_lengths` needs `label_lengths`")
        sizes = label_lengths.astype("int64")
    else:
        padding = 0 if blank_label == "first" else -1
        sizes = np.cumprod((label != padding).astype("int64"), axis=1).sum(axis=1)
    position = np.arange(length).reshape(1, length)
    label = np.where(position < sizes.reshape(batch, 1), label, blank)

    # blank, l1, blank, l2, …, blank
    blanks = np.full_like(label, blank)
    first = blanks[:, :1] if length else np.full((batch, 1), blank, dtype="int64")
    states = np.concatenate([np.stack([blanks, label], axis=2).reshape(batch, 2 * length), first], axis=1)
    # A blank between two different labels may be skipped.
    may_skip = np.concatenate(
        [
            np.zeros((batch, min(2, 2 * length + 1)), dtype="bool"),
            (states[:, 2:] != blank) & (states[:, 2:] != states[:, :-2]),
        ],
        axis=1,
    )
    return states, may_skip, 2 * sizes + 1
