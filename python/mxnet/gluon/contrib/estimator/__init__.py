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
from mxnet.gluon.contrib.estimator.predefined import (
    ClassificationEstimator,
    LanguageModelEstimator,
    RegressionEstimator,
)
from mxnet.gluon.contrib.estimator.progress_handler import ProgressBarHandler, TensorBoardHandler

__all__ = [
    "BatchBegin",
    "BatchEnd",
    "BatchProcessor",
    "CheckpointHandler",
    "ClassificationEstimator",
    "EarlyStoppingHandler",
    "EpochBegin",
    "EpochEnd",
    "Estimator",
    "GradientUpdateHandler",
    "LanguageModelEstimator",
    "LoggingHandler",
    "MetricHandler",
    "ProgressBarHandler",
    "RegressionEstimator",
    "StoppingHandler",
    "TensorBoardHandler",
    "TrainBegin",
    "TrainEnd",
    "ValidationHandler",
]
