"""Estimators for a kind of task, the progress bar, and files for TensorBoard."""

import io
import logging
import math
import os
import struct
import sys
import types

import numpy as onp
import pytest

import mxnet as mx
from mxnet import gluon, np
from mxnet.gluon import metric, nn
from mxnet.gluon.contrib import estimator as est
from mxnet.gluon.contrib.estimator._event_file import EventFile, crc32c

GENERATOR = onp.random.default_rng(5)


def quiet(loop):
    loop.logger.setLevel(logging.WARNING)
    return loop


def batches(number=3):
    x = GENERATOR.normal(size=(number, 4, 2)).astype("float32")
    return [(np.array(part), np.array(part.sum(axis=1, keepdims=True))) for part in x]


def regression():
    return quiet(est.Estimator(nn.Dense(1, in_units=2), gluon.loss.L2Loss(), initializer="zeros"))


# ---- tasks ----


def test_a_classifier_has_accuracy_and_adam():
    x = GENERATOR.normal(size=(32, 2)).astype("float32")
    y = (x[:, 0] > x[:, 1]).astype("int32")
    loop = quiet(est.ClassificationEstimator(nn.Dense(2, in_units=2), initializer="zeros"))
    assert isinstance(loop.trainer.optimizer, mx.optimizer.Adam)
    assert [type(m) for m in loop.train_metrics] == [metric.Accuracy, metric.Loss]
    loop.trainer.set_learning_rate(0.1)
    data = gluon.data.DataLoader(gluon.data.ArrayDataset(np.array(x), np.array(y)), batch_size=8)
    loop.fit(data, val_data=data, epochs=20)
    assert loop.val_metrics[0].get()[0] == "validation accuracy"
    assert loop.val_metrics[0].get()[1] > 0.95


def test_a_regression_measures_distances():
    data = batches()
    net = nn.Dense(1, in_units=2)
    loop = quiet(est.RegressionEstimator(net, initializer="zeros", loss=gluon.loss.HuberLoss()))
    loop.trainer.set_learning_rate(0.0)
    loop.fit(data, epochs=1)
    labels = onp.concatenate([y.asnumpy() for _, y in data])
    found = dict(m.get() for m in loop.train_metrics)
    assert found["training mae"] == pytest.approx(onp.abs(labels).mean(), rel=1e-6)
    assert found["training rmse"] == pytest.approx(onp.sqrt((labels**2).mean()), rel=1e-6)
    assert isinstance(loop.loss, gluon.loss.HuberLoss)


def language(vocabulary=5, **arguments):
    net = nn.HybridSequential()
    net.add(nn.Embedding(vocabulary, 3), nn.Dense(vocabulary, flatten=False, in_units=3))
    mx.random.seed(3)
    return quiet(est.LanguageModelEstimator(net, initializer=mx.init.Normal(1), **arguments))


def nll(loop, tokens):
    logits = loop.net(np.array(tokens)).asnumpy().astype("float64")
    logits -= logits.max(axis=-1, keepdims=True)
    return onp.log(onp.exp(logits).sum(axis=-1, keepdims=True)) - logits


@pytest.mark.parametrize("devices", [1, 2])
def test_a_language_model_averages_over_tokens_that_count(devices):
    tokens = GENERATOR.integers(1, 5, (3, 6))
    tokens[0, 3:] = tokens[2, 5:] = 0
    loop = language(ignore_label=0, device=[mx.cpu(n) for n in range(devices)])
    losses = nll(loop, tokens[:, :-1])
    each = onp.take_along_axis(losses, tokens[:, 1:, None], axis=2)[..., 0]
    counts = tokens[:, 1:] != 0
    mean = (each * counts).sum() / counts.sum()
    loop.evaluate([np.array(tokens)])
    assert loop.val_metrics[0].get()[1] == pytest.approx(onp.exp(mean), rel=1e-5)
    assert loop.val_metrics[1].get()[1] == pytest.approx(mean, rel=1e-5)

    # One step of plain descent moves the bias against the mean of softmax - onehot.
    loop.trainer = gluon.Trainer(loop.net.collect_params(), "sgd", {"learning_rate": 1.0})
    bias = loop.net[1].bias.data().asnumpy()
    loop.fit([np.array(tokens)], batches=1)
    gradient = onp.exp(-losses) - onp.eye(5)[tokens[:, 1:]]
    expected = (gradient * counts[..., None]).sum(axis=(0, 1)) / counts.sum()
    onp.testing.assert_allclose(loop.net[1].bias.data().asnumpy(), bias - expected, rtol=0, atol=1e-6)


def test_a_language_model_takes_pairs_and_learns():
    tokens = np.array([[0, 1, 2, 3, 4, 0, 1, 2, 3]])
    loop = language()
    loop.trainer.set_learning_rate(0.1)
    loop.fit([(tokens[:, :-1], tokens[:, 1:])], val_data=[[tokens]], epochs=60)
    assert loop.val_metrics[0].get()[1] < 1.2
    with pytest.raises(ValueError, match="found 3 parts"):
        loop.fit([(tokens, tokens, tokens)], epochs=1)


@pytest.mark.parametrize(
    ("batch", "shapes"),
    [
        (np.zeros((2, 1), dtype="int32"), r"t at least 2, found \(2, 1\)"),
        (np.zeros((0, 3), dtype="int32"), r"n at least 1 .* found \(0, 3\)"),
        (np.zeros(3, dtype="int32"), r"\(n, t\) .* found \(3,\)"),
        ((np.zeros((2, 3)), np.zeros((2, 4))), r"found \(2, 3\) and \(2, 4\)"),
        ((np.zeros((2, 0)), np.zeros((2, 0))), r"found \(2, 0\) and \(2, 0\)"),
    ],
)
def test_wrong_shapes_of_tokens(batch, shapes):
    with pytest.raises(ValueError, match=f"LanguageModelEstimator: tokens .*{shapes}"):
        language().fit([batch], epochs=1)


def test_older_names_of_devices():
    with pytest.warns(DeprecationWarning, match="ctx"):
        assert est.ClassificationEstimator(nn.Dense(2), ctx=mx.cpu()).device == [mx.cpu()]


def test_configuration_is_shown():
    loop = language()
    loop.val_net = nn.Dense(3)
    shown = repr(loop).splitlines()
    assert shown[0] == "LanguageModelEstimator("
    assert shown[1] == "  net: HybridSequential, 35 parameters"  # 5 * 3 + 3 * 5 + 5
    assert shown[2] == "  validation net: Dense, 3 parameters, 1 of unknown size"


# ---- progress bar ----


class Bar:
    made = []

    def __init__(self, total, desc, file):
        self.total, self.desc, self.file, self.count, self.text, self.is_open = total, desc, file, 0, "", True
        Bar.made.append(self)

    def update(self, n):
        assert self.is_open
        self.count += n

    def set_postfix_str(self, s):
        self.text = s

    def close(self):
        self.is_open = False


def test_a_bar_for_each_epoch():
    Bar.made = []
    loop, file = regression(), io.StringIO()
    loop.fit(batches(), epochs=2, event_handlers=[est.ProgressBarHandler(bar=Bar, file=file)])
    assert [(b.total, b.desc, b.count, b.is_open, b.file is file) for b in Bar.made] == [
        (3, "epoch 1", 3, False, True),
        (3, "epoch 2", 3, False, True),
    ]
    mse, loss = (m.get()[1] for m in loop.train_metrics)
    assert Bar.made[1].text == f"training mse: {mse:.4g}, training loss: {loss:.4g}"


def test_a_bar_without_a_number_of_batches_and_of_an_evaluation():
    Bar.made = []
    loop, mae = regression(), metric.MAE()
    handler = est.ProgressBarHandler(mae, bar=Bar)
    loop.fit(iter(batches()), batches=2, event_handlers=[handler, est.MetricHandler([mae, *loop.train_metrics])])
    assert (Bar.made[0].total, Bar.made[0].count, Bar.made[0].is_open) == (None, 2, False)
    assert Bar.made[0].text.startswith("mae: ")
    loop.evaluate(batches(), event_handlers=[est.ProgressBarHandler(bar=Bar)])
    assert (Bar.made[1].desc, Bar.made[1].count, Bar.made[1].is_open) == ("evaluation", 3, False)
    assert Bar.made[1].text.startswith("validation mse: ")


def test_a_metric_that_nothing_updates_gives_a_warning(tmp_path):
    for make in (lambda m: est.ProgressBarHandler(m, bar=Bar), lambda m: est.TensorBoardHandler(tmp_path, metrics=m)):
        with pytest.warns(RuntimeWarning, match=r"Handler: 'mae' in `metrics` has no value after an epoch"):
            regression().fit(batches(), epochs=1, event_handlers=[make(metric.MAE())])


@pytest.mark.filterwarnings("error")
def test_an_empty_list_of_metrics_shows_none(tmp_path):
    Bar.made = []
    handlers = [est.ProgressBarHandler([], bar=Bar), est.TensorBoardHandler(tmp_path, metrics=[], log_interval=1)]
    regression().fit(batches(), epochs=1, event_handlers=handlers)
    assert not Bar.made[0].text
    assert {name for _, name, _ in scalars(tmp_path)} == {"learning rate"}


class LoaderWithoutLength:
    def __iter__(self):
        return iter(batches())

    def __len__(self):
        raise TypeError("object of type 'generator' has no len()")


class LoaderOfLengthZero(LoaderWithoutLength):
    def __len__(self):
        return 0


@pytest.mark.parametrize("loader", [LoaderWithoutLength, LoaderOfLengthZero])
def test_data_without_a_length_are_trained_on(loader):
    Bar.made = []
    loop = regression()
    loop.fit(loader(), epochs=1, event_handlers=[est.ProgressBarHandler(bar=Bar)])
    assert (Bar.made[0].total, Bar.made[0].count) == (None, 3)


def test_the_number_of_batches_is_known_during_the_training_only():
    class Seen(est.EpochEnd):
        number = 0

        def epoch_end(self, estimator, *args, **kwargs):
            self.number = estimator.num_batches

    loop, seen = regression(), Seen()
    loop.fit(batches(), epochs=1, event_handlers=[seen])
    assert seen.number == 3
    assert loop.num_batches is None


def test_tqdm_is_used_if_there_is_one(monkeypatch):
    Bar.made = []
    monkeypatch.setitem(sys.modules, "tqdm", types.SimpleNamespace(tqdm=Bar))
    regression().fit(batches(), epochs=1, event_handlers=[est.ProgressBarHandler()])
    assert len(Bar.made) == 1


def test_a_line_of_text_otherwise(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    regression().fit(iter(batches()), batches=3, event_handlers=[est.ProgressBarHandler()])
    shown = capsys.readouterr().err
    assert shown.endswith("\n")
    assert "epoch 1: 3 batches training mse: " in shown


# ---- TensorBoard ----


def records(path):
    data = path.read_bytes()
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        for content, check in ((data[:8], data[8:12]), (data[12 : 12 + length], data[12 + length : 16 + length])):
            crc = crc32c(content)
            rotated = (crc >> 15) | (crc << 17) & 0xFFFFFFFF
            assert struct.unpack("<I", check)[0] == (rotated + 0xA282EAD8) % 2**32
        yield data[12 : 12 + length]
        data = data[16 + length :]


def fields(message):
    """Numbers and contents of the fields of a protocol buffer."""
    found = {}
    while message:
        number, kind = message[0] >> 3, message[0] & 7
        message = message[1:]
        if kind in (1, 5):
            size = 8 if kind == 1 else 4
            found[number], message = message[:size], message[size:]
            continue
        value = shift = 0
        while True:
            byte, message = message[0], message[1:]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        if kind == 2:
            found[number], message = message[:value], message[value:]
        else:
            found[number] = value
    return found


def scalars(folder):
    (name,) = os.listdir(folder)
    first, *rest = [fields(record) for record in records(folder / name)]
    assert first[3] == b"brain.Event:2"
    for event in rest:
        value = fields(fields(event[5])[1])
        yield event.get(2, 0), value[1].decode(), struct.unpack("<f", value[2])[0]


def test_the_check_sum_is_the_published_one():
    # Source: RFC 3720, appendix B.4.
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E


def test_files_have_the_metrics(tmp_path):
    loop = regression()
    folder = tmp_path / "logs" / "first"
    handler = est.TensorBoardHandler(str(folder), log_interval=2, prefix="run")
    loop.fit(batches(), val_data=batches(2), epochs=2, event_handlers=[handler])
    found = list(scalars(folder))
    train, val = ["run/training mse", "run/training loss"], ["run/validation mse", "run/validation loss"]
    assert [(step, name) for step, name, _ in found] == [
        (step, name)
        for step, names in ((2, train), (3, train + val), (4, train), (6, train), (6, train + val))
        for name in [*names, "run/learning rate"]
        # Before the first validation there is nothing to write of it.
    ]
    last = {name: value for _, name, value in found}
    assert last["run/learning rate"] == pytest.approx(0.001)
    for measured in (*loop.train_metrics, *loop.val_metrics):
        name, value = measured.get()
        assert last[f"run/{name}"] == pytest.approx(value, rel=1e-6)


def test_metrics_of_a_loop_of_ones_own(tmp_path):
    log = mx.contrib.tensorboard.LogMetricsCallback(tmp_path, prefix="train")
    mae = metric.MAE()
    log(types.SimpleNamespace(eval_metric=None))
    for number in (1.0, 3.0):
        mae.update(np.array([0.0]), np.array([number]))
        log(types.SimpleNamespace(eval_metric=mae))
    assert list(scalars(tmp_path)) == [(2, "train-mae", 1.0), (3, "train-mae", 2.0)]


def test_values_beyond_float32_are_infinite(tmp_path):
    file = EventFile(tmp_path)
    for step, value in enumerate((3.4e38, 1e39, -1e39, math.nan)):
        file.add("loss", value, step)
    file.flush()
    found = [value for _, _, value in scalars(tmp_path)]
    assert found[:3] == [onp.float32(3.4e38), math.inf, -math.inf]
    assert math.isnan(found[3])


@pytest.mark.parametrize("interval", [0, -1, "batch", 1.5])
def test_wrong_intervals(tmp_path, interval):
    with pytest.raises(ValueError, match="TensorBoardHandler: `log_interval`"):
        est.TensorBoardHandler(tmp_path, log_interval=interval)
