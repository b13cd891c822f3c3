"""Metrics: running averages of how good predictions are.

Sums are kept in float64 on the host; `update` waits for the arrays it gets.
"""

from mxnet.gluon.metric.base import CompositeEvalMetric, CustomMetric, EvalMetric, Loss, create, np, register
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
from mxnet.gluon.metric.regression import MAE, MSE, RMSE, MeanCosineSimilarity, MeanPairwiseDistance, PearsonCorrelation

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
    "create",
    "np",
    "register",
]
