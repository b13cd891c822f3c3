"""Where arrays are made, and how they move."""

from __future__ import annotations

import enum
import threading

import numpy as onp
import pytest

import mxnet as mx
from mxnet import autograd, np
from mxnet.base import MXNetError


def test_new_arrays_are_made_on_the_current_device() -> None:
    with mx.cpu(1):
        made = [np.zeros((2,)), np.ones((2,)), np.arange(3), np.array([1.0]), np.random.uniform(size=(2,))]
        assert [x.device for x in made] == [mx.cpu(1)] * len(made)
        with mx.cpu(2):
            assert mx.current_device() == mx.cpu(2)
        assert mx.current_device() == mx.cpu(1)
    assert np.zeros((2,)).device == mx.cpu(0)


def test_the_current_device_is_a_matter_of_the_thread() -> None:
    seen = []
    with mx.cpu(1):
        thread = threading.Thread(target=lambda: seen.append(np.zeros(()).device))
        thread.start()
        thread.join()
    assert seen == [mx.cpu(0)]


def test_results_stay_where_their_operands_are() -> None:
    x = np.array([[1.0, 2.0]], device=mx.cpu(1))
    results = [x + 1, 2 * x, x.T, x.sum(), x[0], np.exp(x), np.concatenate([x, x]), np.zeros_like(x), np.dot(x, x.T)]
    assert [y.device for y in results] == [mx.cpu(1)] * len(results)


class Two(enum.IntEnum):
    TWO = 2


@pytest.mark.parametrize("name", ["float32", "int32"])
@pytest.mark.parametrize("number", [onp.float32(2), onp.float16(2), onp.float64(2), onp.int8(2), onp.bool_(1), Two.TWO])
def test_scalars_of_numpy_have_no_device(number: object, name: str) -> None:
    device = mx.cpu(1)

    def results(x: np.ndarray) -> list[np.ndarray]:
        changed = [x.copy() for _ in range(3)]
        changed[0][:] = number
        changed[1][0] = number
        changed[2] += x * np.full_like(x, number)
        return [
            *changed,
            x * number,
            number - x,
            x**number,
            x[0] + number,
            x == number,
            np.where(x > 1, x, number),
            np.clip(x, 0, number),
            np.add(x, number, out=np.zeros(3, dtype="float64", device=x.device)),
            mx.jit(lambda x: x + number)(x),
        ]

    x = np.array([0, 1, 3], dtype=name)
    for here, there in zip(results(x), results(x.to_device(device)), strict=True):
        assert here.device == mx.cpu(0) and there.device == device
        assert here.dtype == there.dtype
        onp.testing.assert_array_equal(here.asnumpy(), there.asnumpy())
    with device:
        assert np.exp(number).device == device  # no operand has one
    with pytest.raises(MXNetError, match="operands are on different devices"):
        np.array(number) + np.ones(2, device=device)


def test_operands_on_different_devices_are_refused_by_name() -> None:
    with pytest.raises(MXNetError, match=r"add: operands are on different devices: cpu\(0\) and cpu\(1\)"):
        np.zeros((2,)) + np.zeros((2,), device=mx.cpu(1))


def test_moving_copies_and_is_differentiable() -> None:
    x = np.array([1.0, 2.0])
    assert x.to_device(mx.cpu(0)) is x
    x.attach_grad()
    with autograd.record():
        y = (x.to_device(mx.cpu(1)) ** 2).sum()
    y.backward()
    assert y.device == mx.cpu(1) and x.grad.device == mx.cpu(0)
    onp.testing.assert_array_equal(x.grad.asnumpy(), [2.0, 4.0])


def test_a_device_that_is_not_there_is_named() -> None:
    for make in (lambda: np.ones((2,), device=mx.gpu(0)), lambda: np.ones((2,)).to_device(mx.gpu(0))):
        with pytest.raises(MXNetError, match=r"gpu\(0\)"):
            make()
