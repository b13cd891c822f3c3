"""A training loop whose steps are event handlers."""

from mxnet.gluon.contrib.estimator.batch_processor import BatchProcessor
from mxnet.gluon.contrib.estimator.checkpoint_handler import CheckpointHandler
from mxnet.gluon.contrib.estimator.estimator import Estimator
from mxnet.gluon.contrib.estimator.event_handler import (
    BatchBegin,
    BatchEnd,
    EarlyStoppingHandler,
    EpochBegin,
    EpochEnd,
    GradientUpdateHandler,
    LoggingHandler,
    MetricHandler,
    StoppingHandler,
    TrainBegin,
    TrainEnd,
    ValidationHandler,
)

__all__ = [
    "BatchBegin",
    "BatchEnd",
    "BatchProcessor",
    "CheckpointHandler",
    "EarlyStoppingHandler",
    "EpochBegin",
    "EpochEnd",
    "Estimator",
    "GradientUpdateHandler",
    "LoggingHandler",
    "MetricHandler",
    "StoppingHandler",
    "TrainBegin",
    "TrainEnd",
    "ValidationHandler",
]
