"""Programs on GPUs: networks train as on the CPU, on one device and on two, compiled or not; wrong values raise."""

import subprocess
import sys

import pytest

import cuda_emulator

pytestmark = pytest.mark.skipif(not cuda_emulator.is_available(), reason="needs g++")

TRAINING = """
import numpy
import mxnet as mx
from mxnet import autograd, gluon, np

def train(devices, how="eager"):
    rng = numpy.random.default_rng(0)
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(8, activation="tanh", in_units=5), gluon.nn.Dense(3, in_units=8))
    net.initialize(device=devices)
    for parameter in net.collect_params().values():
        parameter.set_data(np.array(rng.normal(size=parameter.shape).astype("float32")))
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
    loss = gluon.loss.L2Loss()
    if how == "hybridized":
        net.hybridize()
    data, label = (np.array(rng.normal(size=(12, n)).astype("float32")) for n in (5, 3))
    parts = [gluon.utils.split_and_load(x, devices) for x in (data, label)]

    def step():
        with autograd.record():
            losses = [loss(net(x), y) for x, y in zip(*parts)]
        autograd.backward(losses)
        trainer.step(12)
        return losses

    if how == "whole step":
        step = mx.jit(step)
    for _ in range(5):
        step()
    return {name: [x.asnumpy() for x in p.list_data()] for name, p in net.collect_params().items()}

expected = train([mx.cpu()])
one, two = [mx.gpu(0)], [mx.gpu(0), mx.gpu(mx.num_gpus() - 1)]
for devices, how in [(one, "eager"), (one, "hybridized"), (one, "whole step"), (two, "eager"), (two, "hybridized")]:
    found = train(devices, how)
    for name, (value,) in expected.items():
        copies = found[name]
        assert len(copies) == len(devices)
        assert all(numpy.array_equal(copy, copies[0]) for copy in copies), name
        # Five steps of products of at most 12 terms of size about 1, in float32.
        assert numpy.allclose(copies[0], value, rtol=1e-4, atol=1e-5), (name, devices, how)
"""


FAILURES = """
import mxnet as mx
from mxnet import np

base = np.arange(10).to_device(mx.gpu(0))
exponent = (np.arange(10) - 3).to_device(mx.gpu(0))

def wrong():
    # The device finds the negative exponents; the call has returned by then.
    return base**exponent * 2 + 1

def message(function):
    try:
        function()
    except ValueError as error:
        return str(error)
    return None

def is_named(text):
    words = ["power: Integers to negative integer powers", "x2: shape (10,)  int64  gpu(0)"]
    return text is not None and all(word in text for word in words)

assert is_named(message(wrong().asnumpy))
# Through another device, and through a copy to the host.
there = wrong().to_device(mx.gpu(mx.num_gpus() - 1)) + 1
assert is_named(message(there.asnumpy))
assert is_named(message(wrong().to_device(mx.cpu()).asnumpy))
# What does not read the result is not concerned, and neither is what comes later.
assert (base + base).asnumpy().tolist() == list(range(0, 20, 2))
mx.waitall()
# The work has ended when the next operation is launched, which finds the failure.
power = base**exponent
assert (base + base).asnumpy().tolist() == list(range(0, 20, 2))
assert is_named(message((power * 2).asnumpy)) and is_named(message(power.asnumpy))
mx.waitall()
# Nobody reads it: the first wait for everything says so, once.
wrong()
assert is_named(message(mx.waitall)) and message(mx.waitall) is None
last = [wrong() for _ in range(200)][-1]
assert is_named(message(last.asnumpy))
assert is_named(message(mx.waitall)) and message(mx.waitall) is None
with mx.config(debug_lines=True):
    text = message(wrong().asnumpy)
    assert is_named(text) and "issued by: <string>:" in text, text
"""

RAGGED = """
import numpy
import mxnet as mx
from mxnet import autograd, np, npx, ragged

rng = numpy.random.default_rng(0)
values = [rng.normal(size=shape).astype("float32") for shape in ((10, 2, 4), (12, 2, 4), (12, 2, 3))]
lengths = (3, 0, 5, 2), (2, 3, 7, 0), (2, 3, 7, 0)

def attended(device, is_causal):
    with device:
        operands = [ragged.from_lengths(np.array(x), n) for x, n in zip(values, lengths)]
        for x in operands:
            x.values.attach_grad()
        with autograd.record():
            y = npx.scaled_dot_product_attention(*operands, is_causal=is_causal)
            loss = (npx.softmax(y, axis=1).values * y.values).sum()
        loss.backward()
        return [x.asnumpy() for x in (y.values, *(x.values.grad for x in operands))]

for is_causal in (False, True):
    for found, want in zip(attended(mx.gpu(0), is_causal), attended(mx.cpu(), is_causal)):
        # Sums of 4 channels and of at most 7 rows, and two softmaxes, there and back: fewer than 64 roundings.
        numpy.testing.assert_allclose(found, want, rtol=0, atol=64 * 2.0**-24 * abs(want).max())
"""


def run(program, cache):
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**cuda_emulator.environment(delay=100), "XDG_CACHE_HOME": str(cache)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr


def test_training_gives_the_weights_of_the_cpu(tmp_path):
    run(TRAINING, tmp_path)


def test_wrong_values_are_raised_where_they_are_read(tmp_path):
    run(FAILURES, tmp_path)


def test_ragged_attention_gives_the_results_and_gradients_of_the_cpu(tmp_path):
    run(RAGGED, tmp_path)
