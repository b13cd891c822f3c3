"""Calls that never ended or failed, objects that could not be copied or were not freed."""

import copy
import gc
import itertools
import pickle
import weakref

import pytest

import mxnet as mx
from mxnet import _core, autograd, gluon, np


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


def test_differences_of_any_order():
    x = np.arange(5.0)
    assert np.diff(x, n=2**62).shape == (0,)
    assert np.diff(x, n=5).shape == (0,)
    assert np.diff(x, n=4).tolist() == [0]
    assert np.diff(np.zeros((3, 0)), n=2**62, axis=0).shape == (0, 0)
    assert np.diff(np.array([True, False]), n=2**62).dtype == bool


class WithoutEnd:
    """A sequence whose items go on for ever."""

    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        return 1


@pytest.mark.parametrize("shape", [WithoutEnd(-1), itertools.count(), itertools.repeat(1)])
def test_shapes_that_have_no_end_are_refused(shape):
    for make in (np.zeros, np.ones, np.empty):
        with pytest.raises((TypeError, ValueError)):
            make(shape)


@pytest.mark.parametrize(
    "call",
    [
        np.zeros,
        np.array,
        np.stack,
        np.concatenate,
        lambda x: np.ones(3).reshape(x),
        lambda x: np.random.uniform(size=x),
        lambda x: np.ones(3)[x],
        lambda x: np.roll(np.ones(3), x),
        lambda x: np.quantile(np.ones(3), x),
        lambda x: np.add(1, x),
    ],
)
def test_sequences_that_say_they_are_longer_than_memory_are_refused(call):
    with pytest.raises(MemoryError):
        call(WithoutEnd(2**62))


def test_shapes_end_at_their_length():
    assert np.zeros(WithoutEnd(3)).shape == (1, 1, 1)
    assert np.zeros(range(2, 4)).shape == (2, 3)


def test_samples_of_no_numbers():
    for empty in (np.zeros((0,)), np.zeros((0, 3)), []):
        shape = np.array(empty).shape
        assert np.random.hypergeometric(empty, 3, 2).shape == shape
        assert np.random.default_rng(3).hypergeometric(empty, empty, empty).shape == shape
    with pytest.raises(ValueError, match="nsample"):
        np.random.hypergeometric(np.array([1]), 1, 3)


def test_a_function_that_stores_its_output_is_freed_without_a_backward_pass():
    class Keeps(autograd.Function):
        def forward(self, x):
            self.y = x * 2
            return self.y

        def backward(self, dy):
            return dy * 2

    x = np.ones(3)
    x.attach_grad()
    function = Keeps()
    alive = weakref.ref(function)
    with autograd.record():
        y = function(x)
    del function, y
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("upper", [False, True])
def test_triangles_of_the_largest_sizes_end(upper):
    positions = _core.namespaces["op"]["triangle_positions"]
    most = 2**63 - 1
    with pytest.raises((ValueError, MemoryError)):
        positions(most, most, 0, upper)
    # Nearly all rows are empty.
    k = most - 1 if upper else -(most - 1)
    assert positions(most, most, k, upper).tolist() in ([[0], [most - 1]], [[most - 1], [0]])
    assert positions(most, 0, 0, upper).shape == (2, 0)
