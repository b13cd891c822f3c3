"""The example of the Rust crate trains a network on the digits that ship with the package."""

import re
import subprocess

import numpy as onp

import mxnet as mx
from mxnet.gluon.data.vision import Digits
from rust_examples import ROOT, example


def test_the_example_learns_the_digits(tmp_path):
    samples = [sample for part in (True, False) for sample in Digits(train=part)]
    images = onp.stack([onp.asarray(image).reshape(64) for image, _ in samples]).astype("float32") / 16
    labels = onp.array([int(label) for _, label in samples], dtype="int64")
    digits, network = tmp_path / "digits.safetensors", tmp_path / "network.safetensors"
    mx.npx.save(str(digits), {"images": mx.np.array(images), "labels": mx.np.array(labels, dtype="int64")})
    done = subprocess.run(
        [*example("train_digits"), str(digits), str(network)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "loaded as saved: true" in done.stdout
    accuracy = float(re.search(r"accuracy: ([\d.]+)", done.stdout)[1])
    # A linear classifier has 0.93 on these digits; two layers that have learnt nothing have 0.1.
    assert accuracy > 0.93
    saved = mx.npx.load(str(network))
    assert {name: x.shape for name, x in saved.items()} == {"w1": (64, 64), "b1": (64,), "w2": (64, 10), "b2": (10,)}
