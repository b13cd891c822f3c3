"""The training loop: what it trains, events and their order, checkpoints and going on to the same bits."""

import json
import logging

import numpy as onp
import pytest

import mxnet as mx
from mxnet import gluon
from mxnet.error import FileFormatError
from mxnet.gluon import metric, nn
from mxnet.gluon.contrib import estimator as est

GENERATOR = onp.random.default_rng(7)
X = GENERATOR.normal(size=(24, 3)).astype("float32")
Y = (X[:, 0] > 0).astype("int32")


def loader(shuffle=True):
    data = gluon.data.ArrayDataset(mx.np.array(X), mx.np.array(Y))
    return gluon.data.DataLoader(data, batch_size=6, shuffle=shuffle)


def network():
    net = nn.HybridSequential()
    net.add(nn.Dense(8, in_units=3, activation="tanh"), nn.Dropout(0.3), nn.Dense(2, in_units=8))
    return net


def made(**kwargs):
    mx.random.seed(11)
    net = network()
    net.initialize(mx.init.Xavier())
    schedule = mx.lr_scheduler.FactorScheduler(step=3, factor=0.9)
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.05, "lr_scheduler": schedule})
    estimator = est.Estimator(net, gluon.loss.SoftmaxCrossEntropyLoss(), trainer=trainer, **kwargs)
    estimator.logger.setLevel(logging.WARNING)
    return estimator


def weights(estimator):
    return [p.data().asnumpy().tobytes() for p in estimator.net.collect_params().values()]


def test_a_classifier_learns():
    estimator = made()
    estimator.fit(loader(), val_data=loader(shuffle=False), epochs=12)
    names = [m.get()[0] for m in (*estimator.train_metrics, *estimator.val_metrics)]
    assert names == ["training accuracy", "training loss", "validation accuracy", "validation loss"]
    # Two half-spaces; all 24 samples were seen 12 times.
    assert estimator.val_metrics[0].get()[1] > 0.9
    assert (estimator.current_epoch, estimator.current_batch) == (12, 48)


def test_one_step_of_a_regression_is_the_rule():
    x, y = GENERATOR.normal(size=(4, 2)).astype("float32"), GENERATOR.normal(size=(4, 1)).astype("float32")
    net = nn.Dense(1, in_units=2, use_bias=False)
    estimator = est.Estimator(net, gluon.loss.L2Loss(), initializer="zeros")
    estimator.logger.setLevel(logging.WARNING)
    estimator.fit([(mx.np.array(x), mx.np.array(y))], batches=1)
    # The gradient of mean((w x - y)**2) / 2 at w = 0 is -mean(y x); the rate is 0.001.
    onp.testing.assert_allclose(net.weight.data().asnumpy(), 0.001 * (y.T @ x) / 4, rtol=1e-5)
    mse, loss = estimator.train_metrics
    assert mse.get()[1] == pytest.approx(float((y**2).mean()), rel=1e-6)
    assert loss.get()[1] == pytest.approx(float((y**2).mean()) / 2, rel=1e-6)


def test_two_devices_give_what_one_gives():
    results = []
    for devices in ([mx.cpu(0)], [mx.cpu(0), mx.cpu(1)]):
        net = nn.Dense(2, in_units=3)
        estimator = est.Estimator(net, gluon.loss.SoftmaxCELoss(), initializer="ones", device=devices)
        estimator.logger.setLevel(logging.WARNING)
        estimator.fit([(X[:5], Y[:5])], batches=1)
        results.append(net.weight.list_data()[0].asnumpy())
    # A sum of five terms in another order.
    onp.testing.assert_allclose(results[0], results[1], rtol=1e-6)


class Recorder(est.TrainBegin, est.TrainEnd, est.EpochBegin, est.EpochEnd, est.BatchBegin, est.BatchEnd):
    def __init__(self, name="", into=None, priority=0):
        self.name, self.events, self.priority = name, [] if into is None else into, priority

    def train_begin(self, estimator, *args, **kwargs):
        self.events.append(self.name + "train(")

    def train_end(self, estimator, *args, **kwargs):
        self.events.append(self.name + ")train")

    def epoch_begin(self, estimator, *args, **kwargs):
        self.events.append(self.name + "epoch(")

    def epoch_end(self, estimator, *args, **kwargs):
        self.events.append(self.name + ")epoch")

    def batch_begin(self, estimator, *args, **kwargs):
        assert set(kwargs) == {"batch"}
        self.events.append(self.name + "batch(")

    def batch_end(self, estimator, *args, **kwargs):
        assert set(kwargs) == {"batch", "pred", "label", "loss"}
        self.events.append(self.name + ")batch")


def test_events_come_in_order_and_batches_end_the_training():
    recorder = Recorder()
    made().fit(loader(), batches=5, event_handlers=[recorder])
    four, one = ["batch(", ")batch"] * 4, ["batch(", ")batch"]
    assert recorder.events == ["train(", "epoch(", *four, ")epoch", "epoch(", *one, ")epoch", ")train"]


def test_handlers_are_called_by_priority():
    events = []
    handlers = [Recorder("late ", events, 5), Recorder("early ", events, -5)]
    made().fit(loader(), batches=1, event_handlers=handlers)
    assert events[:2] == ["early train(", "late train("]


def test_a_handler_replaces_the_default_of_its_class():
    estimator = made()
    before = weights(estimator)

    class Never(est.GradientUpdateHandler):
        def batch_end(self, estimator, *args, **kwargs):
            pass

    estimator.fit(loader(), epochs=1, event_handlers=Never())
    assert weights(estimator) == before


def test_validation_runs_by_its_periods_and_leaves_the_network_alone():
    estimator, calls = made(), []
    handler = est.ValidationHandler(
        loader(shuffle=False), lambda **kwargs: calls.append(estimator.current_batch), epoch_period=2, batch_period=3
    )
    estimator.fit(loader(), epochs=3, event_handlers=[handler])
    assert calls == [3, 6, 8, 9, 12]
    before = weights(estimator)
    estimator.evaluate(loader(shuffle=False))
    assert weights(estimator) == before


# ---- early stopping ----


class Scripted(metric.EvalMetric):
    """A metric whose value is given for each epoch."""

    def __init__(self, values, name="loss"):
        super().__init__(name)
        self.values, self.estimator = values, None

    def get(self):
        return self.name, 0.0 if self.estimator is None else self.values[self.estimator.current_epoch - 1]


@pytest.mark.parametrize(
    ("values", "arguments", "epochs"),
    [
        ([3, 2, 1, 1, 0, 0, 0], {}, 4),
        ([3, 2, 1, 1, 0, 0, 0], {"patience": 1}, 4),
        ([3, 2, 1, 1, 0, 1, 2], {"patience": 2}, 7),
        ([3, 2.95, 2.9, 0, 0, 0, 0], {"min_delta": 0.2}, 2),
        ([1, 2, 3, 3, 0, 0, 0], {"mode": "max"}, 4),
        ([5, 1, 1, 1, 1, 1, 1], {"baseline": 4.0}, 1),
        ([float("nan")] * 7, {"patience": 2}, 2),
    ],
)
def test_training_ends_when_nothing_gets_better(values, arguments, epochs):
    estimator, measure = made(), Scripted(values)
    measure.estimator = estimator
    handler = est.EarlyStoppingHandler(measure, **arguments)
    estimator.fit(loader(), epochs=7, event_handlers=[handler])
    assert estimator.current_epoch == epochs
    assert handler.stop_training == (handler.stopped_epoch == epochs) or epochs == 7


def test_accuracies_should_rise_by_themselves():
    estimator, measure = made(), Scripted([1, 2, 3, 3, 3, 3, 3], "training accuracy")
    measure.estimator = estimator
    estimator.fit(loader(), epochs=7, event_handlers=[est.EarlyStoppingHandler(measure)])
    assert estimator.current_epoch == 4


# ---- checkpoints ----


@pytest.mark.parametrize(
    ("first", "period"),
    [({"epochs": 2}, {}), ({"batches": 6}, {}), ({"batches": 7}, {"epoch_period": None, "batch_period": 3})],
    ids=["between epochs", "cut short", "within an epoch"],
)
def test_a_resumed_training_gives_the_same_bits(first, period, tmp_path):
    straight = made()
    straight.fit(loader(), epochs=4)
    interrupted = made()
    interrupted.fit(loader(), **first, event_handlers=[est.CheckpointHandler(tmp_path, **period)])
    assert weights(interrupted) != weights(straight)
    resumed = made()
    # Other random numbers, that the checkpoint must replace.
    mx.random.seed(99)
    handler = est.CheckpointHandler(tmp_path, resume_from_checkpoint=True, **period)
    resumed.fit(loader(), epochs=4, event_handlers=[handler])
    assert (resumed.current_epoch, resumed.current_batch) == (4, 16)
    assert weights(resumed) == weights(straight)


def test_a_finished_training_is_not_trained_further(tmp_path):
    first = made()
    first.fit(loader(), epochs=2, event_handlers=[est.CheckpointHandler(tmp_path)])
    again = made()
    again.fit(loader(), epochs=2, event_handlers=[est.CheckpointHandler(tmp_path, resume_from_checkpoint=True)])
    assert weights(again) == weights(first)


def test_old_checkpoints_go_and_the_best_stays(tmp_path):
    estimator, measure = made(), Scripted([5, 1, 2, 3], "loss")
    measure.estimator = estimator
    handler = est.CheckpointHandler(tmp_path, "net", measure, save_best=True, max_checkpoints=2)
    best = []

    class Keep(est.EpochEnd):
        def epoch_end(self, estimator, *args, **kwargs):
            best.append(weights(estimator))

    estimator.fit(loader(), epochs=4, event_handlers=[handler, Keep()])
    names = sorted({path.name.rpartition(".")[0] for path in tmp_path.iterdir()})
    assert names == ["net-best", "net-epoch3batch12", "net-epoch4batch16"]
    other = network()
    other.load_parameters(tmp_path / "net-best.params")
    assert [p.data().asnumpy().tobytes() for p in other.collect_params().values()] == best[1]
    assert handler.best == 1


def test_damaged_checkpoints_are_refused(tmp_path):
    made().fit(loader(), epochs=1, event_handlers=[est.CheckpointHandler(tmp_path)])
    path = tmp_path / "model-epoch1batch4.json"
    position = json.loads(path.read_text())
    for text in ("{", json.dumps({**position, "version": 9}), json.dumps({"version": 1})):
        path.write_text(text)
        with pytest.raises(FileFormatError, match=r"model-epoch1batch4\.json"):
            made().fit(
                loader(), epochs=2, event_handlers=[est.CheckpointHandler(tmp_path, resume_from_checkpoint=True)]
            )


# ---- logging, arguments ----


def test_logging_tells_epochs_batches_and_metrics():
    estimator, lines = made(), []
    estimator.logger.setLevel(logging.INFO)

    class Collecting(logging.Handler):
        def emit(self, record):
            lines.append(record.getMessage())

    estimator.logger.handlers = [Collecting()]
    trainer = repr(estimator.trainer)
    estimator.fit(loader(), epochs=1, event_handlers=[est.LoggingHandler(2, estimator.train_metrics)])
    assert [line.split(",")[0].split(" in ")[0] for line in lines] == [
        "training begins: Estimator(\n  net: HybridSequential",
        "batch 2",
        "batch 4",
        "epoch 1",
        "training ends after 1 epochs",
    ]
    assert lines[0].splitlines()[1:] == [
        "  net: HybridSequential, 50 parameters",  # (3 + 1) * 8 + (8 + 1) * 2
        "  loss: SoftmaxCrossEntropyLoss(batch_axis=0, w=None)",
        f"  trainer: {trainer}",
        "  devices: cpu(0)",
        "  training metrics: Accuracy, Loss",
        "  validation metrics: Accuracy, Loss",
        ")",
    ]
    value = estimator.train_metrics[0].get()[1]
    assert f"training accuracy: {value:.4f}, training loss: " in lines[-2]


def test_wrong_arguments_are_refused_by_name():
    loss = gluon.loss.L2Loss()
    with pytest.raises(TypeError, match="Estimator: `net` must be a Block, found int"):
        est.Estimator(3, loss)
    with pytest.raises(TypeError, match="`loss` must be a Loss, found str"):
        est.Estimator(network(), "l2")
    with pytest.raises(TypeError, match="`train_metrics` must be metrics, found str"):
        est.Estimator(network(), loss, ["acc"])
    with pytest.raises(TypeError, match="`val_metrics` must be metrics, found int"):
        est.Estimator(network(), loss, val_metrics=3)
    with pytest.raises(TypeError, match=r"a batch must be \(data, label\), found int"):
        made().fit([1], epochs=1)
    for arguments in ({}, {"epochs": 1, "batches": 1}):
        with pytest.raises(ValueError, match="exactly one of `epochs` and `batches`"):
            made().fit(loader(), **arguments)
    with pytest.raises(ValueError, match="`max_epoch` must be positive or None, found 0"):
        made().fit(loader(), epochs=0)
    with pytest.raises(ValueError, match="`train_data` has no batches"):
        made().fit([], epochs=1)
    with pytest.raises(TypeError, match="`event_handlers` must be event handlers, found int"):
        made().fit(loader(), epochs=1, event_handlers=[3])
    with pytest.raises(ValueError, match=r"a batch must be \(data, label\), found 3 parts"):
        made().fit([(X, Y, Y)], epochs=1)
    with pytest.raises(ValueError, match="`save_best` needs a `monitor`"):
        est.CheckpointHandler("x", save_best=True)
    with pytest.raises(ValueError, match="`mode` must be 'auto', 'min' or 'max', found 'up'"):
        est.EarlyStoppingHandler(metric.Loss(), mode="up")
    with pytest.raises(ValueError, match="`log_interval` must be 'epoch' or a count, found 'batch'"):
        est.LoggingHandler("batch")


def test_older_name_of_the_device():
    with pytest.warns(DeprecationWarning, match="`context` .*use `device`"):
        estimator = est.Estimator(nn.Dense(1, in_units=1), gluon.loss.L2Loss(), context=mx.cpu(1))
    assert estimator.net.weight.list_device() == [mx.cpu(1)]
