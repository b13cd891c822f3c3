"""Plans of calls: when one is found in the cache, and that calls give the same whether it is or not."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import mxnet as mx
from mxnet import _core, autograd, np, npx


@pytest.fixture
def no_cache() -> Iterator[None]:
    was = _core.set_plan_cache(False)
    yield
    _core.set_plan_cache(was)


def counted(call: Callable[[], Any]) -> tuple[int, int]:
    """How many calls `call` made by a plan of the cache, and how many were prepared."""
    hits, misses = _core.plan_counters()
    call()
    now = _core.plan_counters()
    return now[0] - hits, now[1] - misses


def test_a_call_is_prepared_once() -> None:
    x, y = np.ones((3, 7, 11)), np.ones((3, 7, 11))
    assert counted(lambda: x - y) == (0, 1)
    assert counted(lambda: x - y) == (1, 0)
    assert counted(lambda: y - x) == (1, 0)


@pytest.mark.parametrize(
    "other",
    [
        lambda: np.ones((5, 13, 3)),
        lambda: np.ones((5, 13, 2), dtype="float64"),
        lambda: np.ones((5, 13, 2), dtype="int32"),
        lambda: np.ones((13, 5, 2)).swapaxes(0, 1),
        lambda: np.ones((5, 13, 4))[:, :, ::2],
        lambda: np.ones((5, 13, 2))[::-1],
        lambda: 2,
        lambda: 2.0,
    ],
)
def test_other_forms_of_operands_have_other_plans(other: Callable[[], Any]) -> None:
    x, y = np.ones((5, 13, 2)), other()
    np.multiply(x, x)
    lhs = y if getattr(y, "shape", None) == (5, 13, 3) else x
    assert counted(lambda: np.multiply(lhs, y)) == (0, 1)


def test_values_of_numbers_do_not_matter_to_elementwise_operators() -> None:
    x = np.ones((2, 3, 17), dtype="int64")
    x * 3
    assert counted(lambda: x * 4) == (1, 0)
    assert (x * 4).tolist() == numpy.full((2, 3, 17), 4).tolist()


def test_a_number_that_does_not_fit_is_refused_by_a_cached_plan_too() -> None:
    x = np.ones((2, 3, 19), dtype="int8")
    assert (x + 100).tolist() == numpy.full((2, 3, 19), 101).tolist()
    with pytest.raises(OverflowError, match="300 out of bounds for int8"):
        x + 300
    assert (x < 300).all()
    assert not (x == 300).any()


def test_attributes_are_part_of_the_key() -> None:
    x = np.arange(24).reshape(2, 3, 4).astype("float32")
    sums = {axis: np.sum(x, axis=axis) for axis in (0, 1, 2, (0, 2), None)}
    for axis, found in sums.items():
        expected = numpy.arange(24, dtype="float32").reshape(2, 3, 4).sum(axis)
        assert numpy.array_equal(found.asnumpy(), expected)
        assert numpy.array_equal(np.sum(x, axis=axis).asnumpy(), expected)
        assert np.sum(x, axis=axis, keepdims=True).ndim == 3
        assert np.sum(x, axis=axis, dtype="float64").dtype == numpy.float64


def test_numbers_of_the_same_bits_are_not_confused() -> None:
    np.arange(2**63, 2**63 + 2)
    assert np.arange(-(2**63), -(2**63) + 2).tolist() == [-(2**63), -(2**63) + 1]
    assert np.full((2,), True).dtype == numpy.bool_
    assert np.full((2,), 1).dtype == numpy.int64


def test_the_promotion_mode_is_part_of_the_key() -> None:
    x = np.ones((2, 23), dtype="int32")
    assert np.sqrt(x).dtype == numpy.float32
    npx.set_np(dtype=True)
    try:
        assert np.sqrt(x).dtype == numpy.float64
    finally:
        npx.set_np(dtype=False)
    assert np.sqrt(x).dtype == numpy.float32


def test_training_mode_is_part_of_the_key() -> None:
    x = np.ones((50, 20))
    assert (npx.dropout(x, p=0.5) == 1).all()
    with autograd.train_mode():
        assert not (npx.dropout(x, p=0.5) == 1).all()
    assert (npx.dropout(x, p=0.5) == 1).all()


@pytest.mark.parametrize("is_on", [True, False])
def test_outputs_that_are_operands(is_on: bool) -> None:
    was = _core.set_plan_cache(is_on)
    try:
        for _ in range(3):
            x = np.arange(12, dtype="float32")
            expected = numpy.arange(12, dtype="float32")
            np.add(x, x, out=x)
            numpy.add(expected, expected, out=expected)
            np.add(x[1:], x[:-1], out=x[1:])
            numpy.add(expected[1:], expected[:-1], out=expected[1:])
            np.multiply(x[::-1], 2.0, out=x)
            numpy.multiply(expected[::-1], 2, out=expected)
            y = np.zeros((3, 12))
            np.subtract(x, 1.0, out=y)
            assert numpy.array_equal(x.asnumpy(), expected)
            assert numpy.array_equal(y.asnumpy(), numpy.broadcast_to(expected - 1, (3, 12)))
    finally:
        _core.set_plan_cache(was)


def test_a_wrong_out_is_refused_before_and_after_a_right_one() -> None:
    x = np.ones((4, 5))
    for _ in range(2):
        with pytest.raises(ValueError, match="non-broadcastable output operand"):
            np.add(x, x, out=np.ones((4, 4)))
        with pytest.raises(TypeError, match="cannot cast output 0 from float32 to int32"):
            np.add(x, x, out=np.ones((4, 5), dtype="int32"))
        assert np.add(x, x, out=np.ones((4, 5))).sum() == 40


def test_keys_that_are_too_long_are_prepared_each_time() -> None:
    parts = [np.ones((2, 2, 2)) * i for i in range(30)]
    np.concatenate(parts)
    assert counted(lambda: np.concatenate(parts))[1] >= 1
    assert np.concatenate(parts).sum() == 8 * sum(range(30))


def test_more_forms_than_the_cache_holds() -> None:
    for _ in range(2):
        for n in range(1, 1500):
            x = np.ones((n,))
            assert float((x + x)[n - 1]) == 2.0


def test_without_the_cache_every_call_is_prepared(no_cache: None) -> None:
    x = np.ones((3, 29))
    assert counted(lambda: x + x) == (0, 1)
    assert counted(lambda: x + x) == (0, 1)


def test_training_gives_the_same_bits_with_and_without_the_cache() -> None:
    def weights() -> list[bytes]:
        mx.np.random.seed(3)
        net = mx.gluon.nn.HybridSequential()
        net.add(mx.gluon.nn.Dense(8, activation="relu"), mx.gluon.nn.Dense(3))
        net.initialize()
        trainer = mx.gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1})
        x, y = np.random.uniform(size=(16, 5)), np.random.randint(0, 3, (16,))
        loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
        for _ in range(4):
            with autograd.record():
                error = loss(net(x), y)
            error.backward()
            trainer.step(16)
        return [p.data().asnumpy().tobytes() for p in net.collect_params().values()]

    cached = weights()
    was = _core.set_plan_cache(False)
    try:
        assert weights() == cached
    finally:
        _core.set_plan_cache(was)


@pytest.fixture
def no_element_path() -> Iterator[None]:
    was = _core.set_element_path(False)
    yield
    _core.set_element_path(was)


def test_without_the_element_path_elements_go_through_operators(no_element_path: None) -> None:
    x = np.arange(6.0)
    rows = np.array([4, 1])

    def work() -> list[float]:
        x[2] = 9.0
        x[rows] = np.array([7.0, 8.0])
        return [float(x[2]), *x[rows].tolist(), float(x[0] + x[1])]

    hits, misses = counted(work)
    assert hits + misses >= 3
    assert work() == [9.0, 7.0, 8.0, 8.0]


def test_the_element_path_makes_no_plans() -> None:
    x = np.arange(6.0)

    def work() -> None:
        x[2] = 9.0
        assert float(x[2]) == 9.0

    assert counted(work) == (0, 0)
