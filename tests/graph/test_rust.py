"""A network that Python exported gives the same bits in a Rust program, from several threads at once."""

import re
import subprocess
from pathlib import Path

import numpy
import pytest

import mxnet as mx
from mxnet import np
from mxnet.gluon import nn
from rust_examples import ROOT, example


def predict(*arguments):
    """Runs the example of the Rust crate."""
    command = [*example("predict"), *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_exported_networks_run_without_python(tmp_path):
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, activation="relu"), nn.BatchNorm(), nn.MaxPool2D(), nn.Dense(10))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    x = np.array(numpy.random.default_rng(0).normal(size=(5, 1, 12, 12)).astype("float32"))
    expected = net(x).asnumpy()
    symbol, params = net.export(tmp_path / "net")
    mx.npx.save(str(tmp_path / "in.safetensors"), {"0": x})
    files = symbol, params, tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    done = predict(*files, 16, 200)
    assert done.returncode == 0, done.stderr
    assert re.match("3200 calls, 0 with another result", done.stdout)
    assert mx.npx.load(str(tmp_path / "out.safetensors"))["0"].asnumpy().tobytes() == expected.tobytes()
    # A file that is cut off, and an argument of another shape.
    whole = Path(params).read_bytes()
    Path(params).write_bytes(whole[: len(whole) // 2])
    done = predict(*files)
    assert done.returncode == 1
    assert "panicked" not in done.stderr
    Path(params).write_bytes(whole)
    mx.npx.save(str(tmp_path / "in.safetensors"), {"0": x[:2, :, 1:]})
    done = predict(*files)
    assert done.returncode == 1
    assert "argument 0 must have shape (any, 1, 12, 12), found (2, 1, 11, 12)" in done.stderr


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_networks_for_any_size_run_at_any_size(tmp_path):
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, activation="relu"), nn.MaxPool2D(), nn.Flatten(), nn.Dense(10))
    net.initialize(mx.init.Xavier())
    net.hybridize(dynamic=True)
    net(np.ones((5, 1, 12, 12)))
    symbol, params = net.export(tmp_path / "net")
    for n in (1, 7):
        x = np.array(numpy.random.default_rng(n).normal(size=(n, 1, 12, 12)).astype("float32"))
        mx.npx.save(str(tmp_path / "in.safetensors"), {"0": x})
        done = predict(symbol, params, tmp_path / "in.safetensors", tmp_path / "out.safetensors", 4, 5)
        assert done.returncode == 0, done.stderr
        found = mx.npx.load(str(tmp_path / "out.safetensors"))["0"]
        assert found.asnumpy().tobytes() == net(x).asnumpy().tobytes()
