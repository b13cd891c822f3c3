"""The older class of random numbers: a stream of its own behind the functions of `np.random`."""

import pickle

import pytest

import mxnet as mx

np = mx.np


def test_methods_draw_from_the_stream_of_the_object():
    np.random.seed(5)
    before = np.random.get_state()
    numbers = np.random.RandomState(3)
    drawn = [
        numbers.rand(3),
        numbers.randint(0, 9, size=(2, 2)),
        numbers.normal(1.0, 2.0, size=4),
        numbers.choice(10, 3, replace=False),
        numbers.permutation(5),
        numbers.multivariate_normal([0.0, 0.0], np.eye(2), 3),
    ]
    assert [x.shape for x in drawn] == [(3,), (2, 2), (4,), (3,), (5,), (3, 2)]
    assert np.random.get_state() == before
    again = np.random.RandomState(3)
    assert again.rand(3).tolist() == drawn[0].tolist()
    assert np.random.default_rng(3).random(3).tolist() == drawn[0].tolist()
    assert np.random.RandomState(4).rand(3).tolist() != drawn[0].tolist()


def test_states_are_kept_seeded_and_pickled():
    numbers = np.random.RandomState([1, 2])
    state = numbers.get_state()
    assert state[0] == numbers.get_state(legacy=False)["bit_generator"] == "Philox4x32-10"
    copy = pickle.loads(pickle.dumps(numbers))
    first = numbers.bytes(9)
    assert copy.bytes(9) == first
    numbers.set_state(state)
    assert numbers.bytes(9) == first
    numbers.seed([1, 2])
    assert numbers.bytes(9) == first
    x = np.arange(30)
    numbers.shuffle(x)
    assert sorted(x.tolist()) == list(range(30))
    assert x.tolist() != list(range(30))
    assert "uniform" in dir(numbers)
    with pytest.raises(AttributeError, match="no attribute 'uniforms'"):
        _ = numbers.uniforms
    with pytest.raises(ValueError, match="MT19937"):
        numbers.set_state({"bit_generator": "MT19937"})
    with pytest.raises(ValueError, match="-1"):
        np.random.RandomState(-1)
