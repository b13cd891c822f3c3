"""Calls that never ended, and objects that could not be copied."""

import copy
import pickle

import pytest

import mxnet as mx
from mxnet import gluon, np


@pytest.mark.parametrize("again", [copy.deepcopy, copy.copy, lambda x: pickle.loads(pickle.dumps(x))])
def test_devices_are_copied(again):
    for device in (mx.cpu(0), mx.cpu(3)):
        assert again(device) == device


@pytest.mark.parametrize("again", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_networks_and_parameters_are_copied(again):
    net = gluon.nn.Dense(2, in_units=3)
    net.initialize()
    x = np.ones((1, 3))
    other = again(net)
    assert other(x).tolist() == net(x).tolist()
    net.weight.set_data(np.zeros((2, 3)))
    assert other(x).tolist() != net(x).tolist()
    parameter = again(net.weight)
    assert parameter.data().tolist() == [[0] * 3] * 2


def test_derivatives_of_any_order():
    assert np.polyder(np.array([1.0, 2.0, 3.0]), 2**62).tolist() == []
    assert np.polyder(np.array([1.0, 2.0, 3.0]), 2).tolist() == [2]
