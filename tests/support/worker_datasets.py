"""Datasets for worker processes, which import what they are sent by name."""

import os
import random
import signal
import time

import numpy as onp

import mxnet as mx
from mxnet.gluon import data


class Numbers(data.Dataset):
    """0 to n - 1, sample by sample."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, idx):
        return idx


class Broken(Numbers):
    """Sample 5 cannot be had."""

    def __getitem__(self, idx):
        if idx == 5:
            raise KeyError("no such picture")
        return idx


class OddError(Exception):
    """Cannot be pickled: its arguments are not those of its constructor."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


class Disconnected(Numbers):
    """Fails as a pipe to the loader would."""

    def __getitem__(self, idx):
        raise (EOFError if idx % 2 else BrokenPipeError)("of the dataset")


class LongTexts(Numbers):
    """Samples that are no arrays."""

    def __getitem__(self, idx):
        return "x" * 10_000


class RaisesOddError(Numbers):
    def __getitem__(self, idx):
        raise OddError("one", "two")


class Dies(Numbers):
    """The process is killed at sample 5."""

    def __getitem__(self, idx):
        if idx == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return idx


class Waits(Numbers):
    """Sample 0 takes forever."""

    def __getitem__(self, idx):
        if idx == 0:
            time.sleep(3600)
        return idx


class Workers(Numbers):
    """Which process makes a sample, and how many threads its engine has."""

    def __getitem__(self, idx):
        from mxnet import _core

        return os.getpid(), _core.num_threads(), int(mx.autograd.is_training()), int(mx.autograd.is_recording())


class Random(Numbers):
    """Draws from our stream, from Python's and from NumPy's."""

    def __getitem__(self, idx):
        drawn = mx.np.random.uniform(size=(2,)).asnumpy()
        return onp.array([*drawn, random.random(), onp.random.random(), idx])


class RandomBatches:
    """A batch builder that draws."""

    def __call__(self, samples):
        return mx.np.random.uniform(size=(len(samples),))


class Shared(data.Dataset):
    """Holds one array twice, and writes to it."""

    def __init__(self):
        self.x = onp.zeros((4, 3))
        self.same = self.x
        self.y = mx.np.arange(4)

    def __len__(self):
        return 4

    def __getitem__(self, idx):
        self.x[idx] = idx
        assert self.same is self.x
        return self.same[idx].copy(), int(self.y[idx])


class Growing(Numbers):
    """Batches that need more memory one after the other, of every kind of content."""

    def __getitem__(self, idx):
        return {
            "text": "x" * idx,
            "bits": mx.np.full((idx + 1, 100), idx, dtype="bfloat16"),
            "host": onp.full((idx, 50), idx, dtype="int16"),
            "dates": onp.array(["2020-01-01"], "M8[D]"),
        }


def open_files():
    """Descriptors that this process has open, by what they are."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{name}"))
        except OSError:
            continue
    return sorted(kind for kind in found if kind.startswith(("/memfd:mxnet-data", "socket:")))


class PidsThenWait(Numbers):
    """The processes of the first samples; the others take forever."""

    def __init__(self):
        super().__init__(10)

    def __getitem__(self, idx):
        if idx > 1:
            time.sleep(3600)
        return (os.getpid(),)
