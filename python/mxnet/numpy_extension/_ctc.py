"""Connectionist temporal classification (CTC) of frames without padding. `npx.ctc_loss` is an operator."""

from __future__ import annotations

from typing import Any

from mxnet import _core
from mxnet import numpy as np
from mxnet.numpy import ndarray

_log_softmax = _core.namespaces["npx"]["log_softmax"]


def of_rows(
    values: ndarray, owners: ndarray, offsets: ndarray, label: Any, label_lengths: Any, blank_label: str
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
        As for `npx.ctc_loss`; lengths are used if they are given.

    Returns
    -------
    ndarray, shape (n,)

    Raises
    ------
    ValueError
        If `blank_label` is unknown or shapes do not fit.
    """
    if blank_label not in ("first", "last"):
        raise ValueError(f"ctc_loss: `blank_label` must be 'first' or 'last', found {blank_label!r}")
    batch, label = offsets.size - 1, np.asarray(label)
    if values.ndim != 2 or label.ndim != 2 or label.shape[0] != batch:
        raise ValueError(
            f"ctc_loss: `data` must be (n, None, c) and `label` (n, length), found {batch} rows of frames of shape "
            f"{values.shape[1:]} and {label.shape}"
        )
    if label_lengths is not None:
        label_lengths = np.asarray(label_lengths)
        if label_lengths.shape != (batch,):
            raise ValueError(f"ctc_loss: `label_lengths` must have shape {(batch,)}, found {label_lengths.shape}")
    blank = 0 if blank_label == "first" else values.shape[1] - 1
    padding = 0 if blank_label == "first" else -1
    op = _core.namespaces["op"]
    states, may_skip, num_states = op["ctc_states"](label, label_lengths, blank, padding)
    emitted = np.take_along_axis(_log_softmax(values, axis=-1), np.take(states, owners, axis=0), axis=1)
    loss: ndarray = op["ctc_paths"](emitted, may_skip, num_states, offsets)
    return loss
