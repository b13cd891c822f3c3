"""Metrics: running averages of how good predictions are.

Sums are kept in float64 on the devices of the predictions. `update` waits for nothing, `get` does.
"""

from mxnet._renamed import attribute_finder
from mxnet.gluon.metric._checks import check_label_shapes, one_hot, predict_with_threshold
from mxnet.gluon.metric.base import CompositeEvalMetric, CustomMetric, EvalMetric, create, np, register
from mxnet.gluon.metric.classification import (
    F1,
    MCC,
    PCC,
    Accuracy,
    BinaryAccuracy,
    CrossEntropy,
    Fbeta,
    Perplexity,
    TopKAccuracy,
)
from mxnet.gluon.metric.regression import (
    MAE,
    MSE,
    RMSE,
    Loss,
    MeanCosineSimilarity,
    MeanPairwiseDistance,
    PearsonCorrelation,
)

__all__ = [
    "Accuracy",
    "BinaryAccuracy",
    "CompositeEvalMetric",
    "CrossEntropy",
    "CustomMetric",
    "EvalMetric",
    "F1",
    "Fbeta",
    "Loss",
    "MAE",
    "MCC",
    "MSE",
    "PCC",
    "MeanCosineSimilarity",
    "MeanPairwiseDistance",
    "PearsonCorrelation",
    "Perplexity",
    "RMSE",
    "TopKAccuracy",
    "check_label_shapes",
    "create",
    "np",
    "one_hot",
    "predict_with_threshold",
    "register",
]

__getattr__ = attribute_finder(__name__)
