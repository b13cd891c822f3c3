"""The digits that come with the package, as arrays, and a network that learns them."""

import numpy as onp

import mxnet as mx
from mxnet import np
from mxnet.gluon import nn
from mxnet.gluon.data.vision import Digits


def digits(train: bool, classes=range(10)):
    """Images (n, 1, 8, 8) from 0 to 1, and labels counted from the first of `classes`."""
    chosen = [(image, label) for image, label in Digits(train=train) if int(label) in classes]
    images = onp.stack([onp.asarray(image) for image, _ in chosen]).transpose(0, 3, 1, 2) / 16
    labels = onp.array([int(label) for _, label in chosen]) - min(classes)
    return np.array(images.astype("float32")), np.array(labels.astype("int32"))


def network():
    """A hybridized network of one convolution and two dense layers, with its first values."""
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(16, 3, padding=1, activation="relu"), nn.MaxPool2D(), nn.Dense(64, activation="relu"), nn.Dense(10)
    )
    net.initialize(mx.init.Xavier())
    net.hybridize()
    return net
