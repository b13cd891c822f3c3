"""Losses: one number for each sample of a batch."""

from __future__ import annotations

import math
from typing import Any

from mxnet import _core
from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet._argument_repr import changed_arguments
from mxnet.gluon.block import HybridBlock
from mxnet.numpy import ndarray

__all__ = [
    "CTCLoss",
    "CosineEmbeddingLoss",
    "HingeLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "L2Loss",
    "LogisticLoss",
    "Loss",
    "PoissonNLLLoss",
    "SDMLLoss",
    "SigmoidBCELoss",
    "SigmoidBinaryCrossEntropyLoss",
    "SoftmaxCELoss",
    "SoftmaxCrossEntropyLoss",
    "SquaredHingeLoss",
    "TripletLoss",
]

# Softmax, logarithm and choice in one pass, and its gradient in another.
_sparse_cross_entropy = _core.namespaces["op"]["sparse_cross_entropy"]


def _class_cross_entropy(pred: ndarray, label: ndarray, axis: int) -> ndarray:
    """Cross entropy of logits and class numbers; numbers out of range count as the nearest class, as for `pick`."""
    loss: ndarray = _sparse_cross_entropy(pred, np.clip(label, 0, pred.shape[axis] - 1), axis)
    return loss


class Loss(HybridBlock):
    """Base class of the losses.

    Parameters
    ----------
    weight : float or None
        Factor of the loss.
    batch_axis : int
        Axis of the samples; the mean is taken over all others.
    """

    def __init__(self, weight: float | None, batch_axis: int) -> None:
        super().__init__()
        self._weight = weight
        self._batch_axis = batch_axis

    def __repr__(self) -> str:
        parts = [f"batch_axis={self._batch_axis}", f"w={self._weight}"]
        return f"{type(self).__name__}({', '.join([*parts, *changed_arguments(self, ('weight', 'batch_axis'))])})"

    def _like(self, given: ndarray, pred: ndarray, name: str, other: str = "pred") -> ndarray:
        """An argument in the shape of the prediction."""
        try:
            found: ndarray = given.reshape(pred.shape)
        except ValueError as error:
            raise ValueError(
                f"{type(self).__name__}: `{name}` must have as many elements as `{other}`, found shape "
                f"{tuple(given.shape)} for {tuple(pred.shape)}"
            ) from error
        return found

    def _weighted(self, loss: ndarray, sample_weight: ndarray | None) -> ndarray:
        if sample_weight is not None:
            loss = loss * sample_weight
        return loss if self._weight is None else loss * self._weight

    def _batch_mean(self, loss: ndarray) -> ndarray:
        axes = tuple(axis for axis in range(loss.ndim) if axis != self._batch_axis % loss.ndim)
        return loss.mean(axis=axes) if axes else loss

    def _reduced(self, loss: ndarray, sample_weight: ndarray | None) -> ndarray:
        return self._batch_mean(self._weighted(loss, sample_weight))


class L2Loss(Loss):
    """Halved squared error: ``weight / 2 * mean((label - pred)**2)``.

    Parameters
    ----------
    weight : float or None
    batch_axis : int

    Examples
    --------
    >>> mx.gluon.loss.L2Loss()(np.array([[1.0, 5.0]]), np.array([[2.0, 2.0]]))  # half the mean square
    array([2.5])
    """

    def __init__(self, weight: float | None = 1.0, batch_axis: int = 0) -> None:
        super().__init__(weight, batch_axis)

    def forward(self, pred: ndarray, label: ndarray, sample_weight: ndarray | None = None) -> ndarray:
        """Compute the loss.

        Parameters
        ----------
        pred, label : ndarray, same size
        sample_weight : ndarray, optional
            Factor, broadcast against `pred`.

        Returns
        -------
        ndarray, shape (n,)
        """
        return self._reduced(np.square(self._like(label, pred, "label") - pred) / 2, sample_weight)


class L1Loss(Loss):
    """Absolute error: ``weight * mean(abs(label - pred))``.

    Parameters
    ----------
    weight : float or None
    batch_axis : int

    Examples
    --------
    >>> mx.gluon.loss.L1Loss()(np.array([[1.0, 5.0]]), np.array([[2.0, 2.0]]))
    array([2.])
    """

    def __init__(self, weight: float | None = None, batch_axis: int = 0) -> None:
        super().__init__(weight, batch_axis)

    def forward(self, pred: ndarray, label: ndarray, sample_weight: ndarray | None = None) -> ndarray:
        """Compute the loss.

        Parameters
        ----------
        pred, label : ndarray, same size
        sample_weight : ndarray, optional
            Factor, broadcast against `pred`.

        Returns
        -------
        ndarray, shape (n,)
        """
        return self._reduced(np.abs(self._like(label, pred, "label") - pred), sample_weight)


class SigmoidBinaryCrossEntropyLoss(Loss):
    """Cross entropy of independent binary decisions.

    Parameters
    ----------
    from_sigmoid : bool
        Whether `pred` holds probabilities and not logits.
    weight : float or None
    batch_axis : int

    Examples
    --------
    >>> mx.gluon.loss.SigmoidBinaryCrossEntropyLoss()(np.array([[0.0]]), np.array([[1.0]]))
    array([0.6931472])
    """

    def __init__(self, from_sigmoid: bool = False, weight: float | None = None, batch_axis: int = 0) -> None:
        super().__init__(weight, batch_axis)
        self._from_sigmoid = from_sigmoid

    def forward(
        self,
        pred: ndarray,
        label: ndarray,
        sample_weight: ndarray | None = None,
        pos_weight: ndarray | None = None,
    ) -> ndarray:
        """Compute the loss.

        Parameters
        ----------
        pred, label : ndarray, same size
            Labels are in ``[0, 1]``.
        sample_weight : ndarray, optional
            Factor, broadcast against `pred`.
        pos_weight : ndarray, optional
            Factor of the positive labels' part, broadcast against `pred`.

        Returns
        -------
        ndarray, shape (n,)
        """
        label = self._like(label, pred, "label")
        if self._from_sigmoid:
            eps = 1e-12
            positive = np.log(pred + eps) * label
            negative = np.log(1.0 - pred + eps) * (1.0 - label)
            loss = -(positive + negative) if pos_weight is None else -(positive * pos_weight + negative)
        elif pos_weight is None:
            # -log(sigmoid(p)) = softplus(-p), so that p may be large: max(p, 0) - p * y + log(1 + exp(-|p|)).
            loss = npx.relu(pred) - pred * label + npx.activation(-np.abs(pred), act_type="softrelu")
        else:
            scale = 1.0 + label * (pos_weight - 1.0)
            loss = pred - pred * label + scale * (npx.activation(-np.abs(pred), act_type="softrelu") + npx.relu(-pred))
        return self._reduced(loss, sample_weight)


SigmoidBCELoss = SigmoidBinaryCrossEntropyLoss


class SoftmaxCrossEntropyLoss(Loss):
    """Cross entropy between predicted probabilities and labels, which are classes or distributions over classes.

    The probabilities are the softmax of `pred`, or ``exp(pred)`` with `from_logits`.

    Parameters
    ----------
    axis : int
        Axis of the classes.
    sparse_label : bool
        Labels are class numbers and not distributions.
    from_logits : bool
        `pred` holds logarithms of probabilities already.
    weight : float or None
    batch_axis : int

    Examples
    --------
    >>> import mxnet as mx
    >>> loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    >>> loss(mx.np.zeros((2, 4)), mx.np.array([0, 3])).shape
    (2,)
    """

    def __init__(
        self,
        axis: int = -1,
        sparse_label: bool = True,
        from_logits: bool = False,
        weight: float | None = None,
        batch_axis: int = 0,
    ) -> None:
        super().__init__(weight, batch_axis)
        self._axis = axis
        self._sparse_label = sparse_label
        self._from_logits = from_logits

    def forward(self, pred: ndarray, label: ndarray, sample_weight: ndarray | None = None) -> ndarray:
        """Compute the loss.

        Parameters
        ----------
        pred : ndarray
            Logits, or logarithms of probabilities with `from_logits`.
        label : ndarray
            Class numbers, of `pred`'s shape without `axis`; without `sparse_label` probabilities of `pred`'s shape.
            Numbers out of range count as the nearest class.
        sample_weight : ndarray, optional
            Factor; with `sparse_label` broadcast against `pred` with a size of 1 along `axis`.

        Returns
        -------
        ndarray, shape (n,)
        """
        if self._sparse_label and not self._from_logits and label.ndim == pred.ndim - 1:
            loss = _class_cross_entropy(pred, label, self._axis)
            if sample_weight is not None or self._batch_axis != 0 or self._axis % pred.ndim == 0:
                loss = np.expand_dims(loss, self._axis)
            return self._reduced(loss, sample_weight)
        log_prob = pred if self._from_logits else npx.log_softmax(pred, axis=self._axis)
        if self._sparse_label:
            if label.ndim == pred.ndim and label.shape[self._axis] != 1:
                shape = tuple(size for axis, size in enumerate(pred.shape) if axis != self._axis % pred.ndim)
                raise ValueError(
                    f"{type(self).__name__}: `label` must be class numbers of shape {shape} for `pred` of shape "
                    f"{tuple(pred.shape)}, found {tuple(label.shape)}; `sparse_label=False` takes probabilities"
                )
            loss = -npx.pick(log_prob, label, axis=self._axis, keepdims=True)
        else:
            loss = -(log_prob * self._like(label, pred, "label")).sum(axis=self._axis, keepdims=True)
        return self._reduced(loss, sample_weight)


SoftmaxCELoss = SoftmaxCrossEntropyLoss


class KLDivLoss(Loss):
    """Kullback-Leibler divergence of the predicted distribution from the labels' distribution.

    Parameters
    ----------
    from_logits : bool
        `pred` holds logarithms of probabilities already; without it a softmax is applied first.
    axis : int
        Axis of the softmax.
    weight : float or None
    batch_axis : int

    Examples
    --------
    >>> p = np.array([[0.25, 0.75]])
    >>> mx.gluon.loss.KLDivLoss(from_logits=True)(np.log(p), p)
    array([0.])
    """

    def __init__(
        self, from_logits: bool = True, axis: int = -1, weight: float | None = None, batch_axis: int = 0
    ) -> None:
        super().__init__(weight, batch_axis)
        self._from_logits = from_logits
        self._axis = axis

    def forward(self, pred: ndarray, label: ndarray, sample_weight: ndarray | None = None) -> ndarray:
        """Compute the loss.

        Parameters
        ----------
        pred, label : ndarray, same shape
        sample_weight : ndarray, optional
            Factor, broadcast against `pred`.

        Returns
        -------
        ndarray, shape (n,)
            The mean over all axes but the batch's.
        """
        log_prob = pred if self._from_logits else npx.log_softmax(pred, axis=self._axis)
        # 1e-12 makes labels of zero count nothing.
        return self._reduced(label * (np.log(label + 1e-12) - log_prob), sample_weight)


class CTCLoss(Loss):
    """Connectionist temporal classification: the labels' order is known, their places in the sequence are not.

    Parameters
    ----------
    layout : {"NTC", "TNC"}
        Axes of `pred`: samples, time, classes.
    label_layout : {"NT", "TN"}
        Axes of `label`.
    weight : float or None

    Raises
    ------
    ValueError
        If a layout is unknown.

    Notes
    -----
    The last class is the blank. Source: A. Graves et al., "Connectionist Temporal Classification", 2006.

    Examples
    --------
    >>> scores = np.zeros((1, 2, 3))  # two steps, every class as likely
    >>> mx.gluon.loss.CTCLoss()(scores, np.array([[1]]))  # -log(3 / 9): three of nine paths
    array([1.0986123])
    """

    def __init__(self, layout: str = "NTC", label_layout: str = "NT", weight: float | None = None) -> None:
        if layout not in ("NTC", "TNC"):
            raise ValueError(f"`layout` must be 'NTC' or 'TNC', found {layout!r}")
        if label_layout not in ("NT", "TN"):
            raise ValueError(f"`label_layout` must be 'NT' or 'TN', found {label_layout!r}")
        super().__init__(weight, label_layout.find("N"))
        self._layout = layout

    def forward(
        self,
        pred: Any,
        label: Any,
        pred_lengths: ndarray | None = None,
        label_lengths: ndarray | None = None,
        sample_weight: ndarray | None = None,
    ) -> ndarray:
        """Compute the loss.

        Parameters
        ----------
        pred : ndarray, shape (n, t, c) or (t, n, c), or RaggedArray, shape (n, None, c)
            Logits.
        label : ndarray, shape (n, length) or (length, n), or RaggedArray, shape (n, None)
            Class numbers; -1 is padding if there are no `label_lengths`.
        pred_lengths, label_lengths : ndarray, shape (n,), optional
            Where sequences end; ragged arrays have lengths of their own.
        sample_weight : ndarray, shape (n,), optional

        Returns
        -------
        ndarray, shape (n,)

        Raises
        ------
        ValueError
            If `pred` or `label` is ragged and its layout puts time first.
        IndexError
            If a label that counts is no class.
        """
        given = (("pred", pred, self._layout), ("label", label, "NT" if self._batch_axis == 0 else "TN"))
        for name, x, layout in given:
            if None in x.shape and layout[0] == "T":
                raise ValueError(f"CTCLoss: a ragged `{name}` counts samples first, but its layout is {layout!r}")
        if self._layout == "NTC" and None not in pred.shape:
            pred = pred.swapaxes(0, 1)
        if self._batch_axis == 1:
            label = label.swapaxes(0, 1)
        loss = npx.ctc_loss(
            pred,
            label,
            pred_lengths,
            label_lengths,
            use_data_lengths=pred_lengths is not None,
            use_label_lengths=label_lengths is not None,
            blank_label="last",
        )
        return self._weighted(loss, sample_weight)


class HuberLoss(Loss):
    """Huber loss: quadratic for errors up to `rho`, linear beyond.

    Parameters
    ----------
    rho : float
    weight : float or None
    batch_axis : int

    Examples
    --------
    >>> mx.gluon.loss.HuberLoss(rho=1)(np.array([[0.5], [3.0]]), np.array([[0.0], [0.0]]))
    array([0.125, 2.5  ])
    """

    def __init__(self, rho: float = 1, weight: float | None = None, batch_axis: int = 0) -> None:
        super().__init__(weight, batch_axis)
        self._rho = rho

    def forward(self, pred: ndarray, label: ndarray, sample_weight: ndarray | None = None) -> ndarray:
        """Compute the loss.

        Parameters
        ----------
        pred, label : ndarray, same size
        sample_weight : ndarray, optional
            Factor, broadcast against `pred`.

        Returns
        -------
        ndarray, shape (n,)
        """
        error = np.abs(self._like(label, pred, "label") - pred)
        loss = np.where(error > self._rho, error - 0.5 * self._rho, (0.5 / self._rho) * np.square(error))
        return self._reduced(loss, sample_weight)


class HingeLoss(Loss):
    """Hinge loss: ``max(0, margin - pred * label)`` for labels -1 and 1.

    Parameters
    ----------
    margin : float
    weight : float or None
    batch_axis : int

    Examples
    --------
    >>> mx.gluon.loss.HingeLoss()(np.array([[0.5], [-2.0]]), np.array([[1], [-1]]))
    array([0.5, 0. ])
    """

    def __init__(self, margin: float = 1, weight: float | None = None, batch_axis: int = 0) -> None:
        super().__init__(weight, batch_axis)
        self._margin = margin

    def forward(self, pred: ndarray, label: ndarray, sample_weight: ndarray | None = None) -> ndarray:
        """Compute the loss.

        Parameters
        ----------
        pred, label : ndarray, same size
        sample_weight : ndarray, optional
            Factor, broadcast against `pred`.

        Returns
        -------
        ndarray, shape (n,)
        """
        return self._reduced(npx.relu(self._margin - pred * self._like(label, pred, "label")), sample_weight)


class SquaredHingeLoss(Loss):
    """Squared hinge loss: ``max(0, margin - pred * label)**2`` for labels -1 and 1.

    Parameters
    ----------
    margin : float
    weight : float or None
    batch_axis : int

    Examples
    --------
    >>> mx.gluon.loss.SquaredHingeLoss()(np.array([[0.5]]), np.array([[1]]))
    array([0.25])
    """

    def __init__(self, margin: float = 1, weight: float | None = None, batch_axis: int = 0) -> None:
        super().__init__(weight, batch_axis)
        self._margin = margin

    def forward(self, pred: ndarray, label: ndarray, sample_weight: ndarray | None = None) -> ndarray:
        """Compute the loss.

        Parameters
        ----------
        pred, label : ndarray, same size
        sample_weight : ndarray, optional
            Factor, broadcast against `pred`.

        Returns
        -------
        ndarray, shape (n,)
        """
        loss = np.square(npx.relu(self._margin - pred * self._like(label, pred, "label")))
        return self._reduced(loss, sample_weight)


class LogisticLoss(Loss):
    """Logistic loss: ``log(1 + exp(-pred * label))``.

    Parameters
    ----------
    weight : float or None
    batch_axis : int
    label_format : {"signed", "binary"}
        Labels are -1 and 1, or 0 and 1.

    Raises
    ------
    ValueError
        If `label_format` is unknown.

    Examples
    --------
    >>> mx.gluon.loss.LogisticLoss()(np.array([[0.0]]), np.array([[1]]))
    array([0.6931472])
    """

    def __init__(self, weight: float | None = None, batch_axis: int = 0, label_format: str = "signed") -> None:
        if label_format not in ("signed", "binary"):
            raise ValueError(f"`label_format` must be 'signed' or 'binary', found {label_format!r}")
        super().__init__(weight, batch_axis)
        self._label_format = label_format

    def forward(self, pred: ndarray, label: ndarray, sample_weight: ndarray | None = None) -> ndarray:
        """Compute the loss.

        Parameters
        ----------
        pred, label : ndarray, same size
        sample_weight : ndarray, optional
            Factor, broadcast against `pred`.

        Returns
        -------
        ndarray, shape (n,)
        """
        label = self._like(label, pred, "label")
        if self._label_format == "signed":
            label = (label + 1.0) / 2.0
        loss = npx.relu(pred) - pred * label + npx.activation(-np.abs(pred), act_type="softrelu")
        return self._reduced(loss, sample_weight)


class TripletLoss(Loss):
    """Triplet loss: ``max(0, |pred - positive|**2 - |pred - negative|**2 + margin)``.

    Parameters
    ----------
    margin : float
    weight : float or None
    batch_axis : int

    Examples
    --------
    >>> x, near, far = np.array([[0.0]]), np.array([[1.0]]), np.array([[3.0]])
    >>> mx.gluon.loss.TripletLoss(margin=10.0)(x, near, far)
    array([2.])
    """

    def __init__(self, margin: float = 1, weight: float | None = None, batch_axis: int = 0) -> None:
        super().__init__(weight, batch_axis)
        self._margin = margin

    def forward(
        self, pred: ndarray, positive: ndarray, negative: ndarray, sample_weight: ndarray | None = None
    ) -> ndarray:
        """Compute the loss.

        Parameters
        ----------
        pred, positive, negative : ndarray, same size
        sample_weight : ndarray, shape (n,), optional

        Returns
        -------
        ndarray, shape (n,)
        """
        near = np.square(self._like(positive, pred, "positive") - pred)
        far = np.square(self._like(negative, pred, "negative") - pred)
        axes = tuple(axis for axis in range(pred.ndim) if axis != self._batch_axis % pred.ndim)
        loss = npx.relu((near - far).sum(axis=axes) + self._margin)
        return self._weighted(loss, sample_weight)


class PoissonNLLLoss(Loss):
    """Negative log likelihood of counts under a Poisson distribution.

    Parameters
    ----------
    weight : float or None
    from_logits : bool
        `pred` holds the logarithm of the rate and not the rate.
    batch_axis : int
    compute_full : bool
        Add Stirling's approximation of ``log(target!)`` for targets above 1.

    Examples
    --------
    >>> mx.gluon.loss.PoissonNLLLoss()(np.array([[0.0]]), np.array([[1.0]]))
    array([1.])
    """

    def __init__(
        self,
        weight: float | None = None,
        from_logits: bool = True,
        batch_axis: int = 0,
        compute_full: bool = False,
    ) -> None:
        super().__init__(weight, batch_axis)
        self._from_logits = from_logits
        self._compute_full = compute_full

    def forward(
        self, pred: ndarray, target: ndarray, sample_weight: ndarray | None = None, epsilon: float = 1e-8
    ) -> ndarray:
        """Compute the loss.

        Parameters
        ----------
        pred, target : ndarray, same size
        sample_weight : ndarray, optional
            Factor, broadcast against `pred`.
        epsilon : float
            Added to the rate before its logarithm is taken.

        Returns
        -------
        ndarray, shape (n,)
        """
        target = self._like(target, pred, "target")
        if self._from_logits:
            loss = np.exp(pred) - target * pred
        else:
            loss = pred - target * np.log(pred + epsilon)
        if self._compute_full:
            # Clamped first, so that the unused branch has no logarithm of zero.
            safe = np.maximum(target, 1.0)
            stirling = safe * np.log(safe) - safe + 0.5 * np.log(2.0 * math.pi * safe)
            loss = loss + np.where(target > 1.0, stirling, np.zeros_like(target))
        return self._reduced(loss, sample_weight)


class CosineEmbeddingLoss(Loss):
    """``1 - cos`` of the angle between vectors that belong together, ``max(0, cos - margin)`` for others.

    Parameters
    ----------
    weight : float or None
    batch_axis : int
    margin : float

    Examples
    --------
    >>> x, y = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    >>> mx.gluon.loss.CosineEmbeddingLoss()(x, y, np.array([1]))
    array([1.])
    """

    def __init__(self, weight: float | None = None, batch_axis: int = 0, margin: float = 0) -> None:
        super().__init__(weight, batch_axis)
        self._margin = margin

    def forward(
        self, input1: ndarray, input2: ndarray, label: ndarray, sample_weight: ndarray | None = None
    ) -> ndarray:
        """Compute the loss.

        Parameters
        ----------
        input1, input2 : ndarray, shape (n, ..., k)
            Vectors along the last axis.
        label : ndarray, shape (n, ...)
            1 for pairs that belong together, else -1.
        sample_weight : ndarray, optional
            Factor, broadcast against ``(n, ..., 1)``.

        Returns
        -------
        ndarray, shape (n,)
        """
        input2 = self._like(input2, input1, "input2", "input1")
        dot = (input1 * input2).sum(axis=-1, keepdims=True)
        norms = np.sqrt(np.square(input1).sum(axis=-1, keepdims=True) * np.square(input2).sum(axis=-1, keepdims=True))
        # 1e-12 keeps vectors of length zero from dividing by zero.
        cosine = dot / np.maximum(norms, 1e-12)
        label = label.reshape(cosine.shape)
        loss = np.where(label == 1, 1.0 - cosine, npx.relu(cosine - self._margin))
        return self._reduced(loss, sample_weight)


class SDMLLoss(Loss):
    """Batch-wise smoothed deep metric learning: each row of one batch belongs to the same row of the other.

    Parameters
    ----------
    smoothing_parameter : float
        Probability that is spread over the wrong rows, in ``[0, 1)``.
    weight : float or None
    batch_axis : int

    Notes
    -----
    Source: L. Bonadiman, A. Kumar and A. Mittal, "Large Scale Question Paraphrase Retrieval with Smoothed Deep Metric
    Learning", 2019.

    Examples
    --------
    >>> x = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> mx.gluon.loss.SDMLLoss(smoothing_parameter=0.1)(x, x).shape
    (2,)
    """

    def __init__(self, smoothing_parameter: float = 0.3, weight: float | None = 1.0, batch_axis: int = 0) -> None:
        super().__init__(weight, batch_axis)
        self._smoothing_parameter = smoothing_parameter

    def forward(self, x1: ndarray, x2: ndarray) -> ndarray:
        """Compute the loss.

        Parameters
        ----------
        x1, x2 : ndarray, shape (n, k)
            ``n`` at least 2.

        Returns
        -------
        ndarray, shape (n,)

        Raises
        ------
        ValueError
            If there are less than two rows.
        """
        n = x1.shape[0]
        if n < 2:
            raise ValueError(f"rows are compared with other rows, so at least 2 are needed, found {n}")
        # (n, 1, k) - (1, n, k) -> (n, n)
        distances = np.square(np.expand_dims(x1, 1) - np.expand_dims(x2, 0)).sum(axis=2)
        eye = np.eye(n, dtype=x1.dtype, device=x1.device)
        labels = eye * (1.0 - self._smoothing_parameter) + (1.0 - eye) * (self._smoothing_parameter / (n - 1))
        log_prob = npx.log_softmax(-distances, axis=1)
        # The divergence of the distributions of each row, as `KLDivLoss` scales it: divided by the number of rows.
        loss = (labels * (np.log(labels + 1e-12) - log_prob)).mean(axis=1)
        return self._weighted(loss, None)
