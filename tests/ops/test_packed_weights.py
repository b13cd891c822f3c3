"""Weights that kernels pack and keep: the packed form is made at the second call and never outlives a write."""

import gc
import threading
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import mxnet as mx
from mxnet import _core, autograd, gluon, np, npx
from mxnet.gluon import nn, rnn

GENERATOR = numpy.random.default_rng(0)


def normal(*shape: int, dtype: str = "float32") -> Any:
    return np.array(GENERATOR.normal(0, 1, shape).astype(dtype))


def convolve(x: Any, w: Any) -> Any:
    return npx.convolution(x, w, kernel=w.shape[2:], pad=(1, 1), num_filter=w.shape[0], no_bias=True)


CALLS = {
    "convolution": (convolve, (1, 40, 6, 5), (48, 40, 3, 3)),
    "fully_connected": (npx.fully_connected, (9, 70), (48, 70)),
}

WRITES: dict[str, Callable[[Any], Any]] = {
    "assignment": lambda w: w.__setitem__(slice(None), w * 2 - 1),
    "an element": lambda w: w.__setitem__((0,) * w.ndim, 5.0),
    "a row": lambda w: w.__setitem__(3, 0.5),
    "in place": lambda w: w.__iadd__(1.0),
    "through a view": lambda w: w[1:].__imul__(3.0),
    "a mask": lambda w: w.__setitem__(w > 0, 0.25),
    "positions": lambda w: w.__setitem__(np.array([0, 7]), 0.125),
    "out=": lambda w: np.exp(w, out=w),
    "copyto": lambda w: np.copyto(w, np.ones_like(w)),
    "sort": lambda w: w.sort(axis=-1),
    "an update": lambda w: mx.optimizer.SGD(learning_rate=0.5).update([0], [w], [np.ones_like(w)], [None]),
    "NumPy": lambda w: numpy.asarray(w).__setitem__(slice(None), 3.0),
    "NumPy, by DLPack": lambda w: numpy.from_dlpack(w).__setitem__(slice(None), 4.0),
}


def in_use() -> int:
    gc.collect()
    return _core.memory_stats()["in_use_bytes"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CALLS)
def test_a_form_is_kept_from_the_second_call_on_until_the_array_is_freed(name: str, dtype: str) -> None:
    call, data_shape, shape = CALLS[name]
    x = normal(*data_shape, dtype=dtype)
    without = in_use()
    w = normal(*shape, dtype=dtype)
    first = call(x, w).asnumpy()
    before = in_use()
    assert numpy.array_equal(call(x, w).asnumpy(), first)
    # 48 rows are one and a half panels of 32, three of 16 or six of 8.
    kept = in_use() - before
    assert w.nbytes <= kept <= w.nbytes * 2
    assert numpy.array_equal(call(x, w).asnumpy(), first)
    assert in_use() - before == kept
    # Another view is another form.
    for _ in range(2):
        call(x, w[::-1]).wait_to_read()
    assert in_use() - before == 2 * kept
    del w
    assert in_use() == without


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("write", WRITES)
def test_a_write_is_seen_by_the_next_call(name: str, write: str) -> None:
    call, data_shape, shape = CALLS[name]
    x, w = normal(*data_shape), normal(*shape)
    old = [call(x, w).asnumpy() for _ in range(3)]
    for _ in range(2):
        WRITES[write](w)
        expected = call(x, w.copy()).asnumpy()
        assert not numpy.array_equal(expected, old[0])
        for _ in range(3):
            assert numpy.array_equal(call(x, w).asnumpy(), expected)


@pytest.mark.parametrize("name", CALLS)
def test_memory_of_others_is_never_kept(name: str) -> None:
    call, data_shape, shape = CALLS[name]
    x, owner = normal(*data_shape), GENERATOR.normal(0, 1, shape).astype("float32")
    w = np.asarray(owner)
    for value in range(3):
        for _ in range(3):
            owner[...] = value
            assert numpy.array_equal(call(x, w).asnumpy(), call(x, np.array(owner)).asnumpy())


def recurrent() -> Any:
    net = nn.HybridSequential()
    net.add(rnn.LSTM(40, 2, input_size=12), rnn.GRU(33, bidirectional=True, input_size=40))
    net.initialize(mx.init.Xavier())
    return net


def convolutional() -> Any:
    net = nn.HybridSequential()
    net.add(nn.Conv2D(32, 3, padding=1, activation="relu"), nn.Conv2D(32, 3, activation="relu"), nn.Flatten())
    net.add(nn.Dense(64, activation="relu"), nn.Dense(32))
    net.initialize(mx.init.Xavier())
    return net


@pytest.mark.parametrize("hybridized", [False, True])
@pytest.mark.parametrize(("network", "shape"), [(convolutional, (2, 8, 7, 7)), (recurrent, (5, 3, 12))])
def test_predictions_between_steps_use_the_new_weights(
    network: Callable[[], Any], shape: tuple[int, ...], hybridized: bool
) -> None:
    net, x = network(), normal(*shape)
    net(x)
    if hybridized:
        net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    for _ in range(3):
        with autograd.record():
            loss = (net(x) ** 2).mean()
        loss.backward()
        trainer.step(1)
        found = [net(x).asnumpy() for _ in range(3)]
        twin = network()
        twin(x)
        for mine, theirs in zip(twin.collect_params().values(), net.collect_params().values(), strict=True):
            mine.set_data(theirs.data().copy())
        expected = twin(x).asnumpy()
        assert all(numpy.array_equal(y, expected) for y in found)


def test_a_compiled_step_that_reads_and_writes_weights() -> None:
    x, w, twin = normal(6, 64), normal(64, 64), None
    twin = w.copy()

    def step(x: Any, w: Any) -> Any:
        y = npx.fully_connected(x, w)
        w *= 0.5
        return y + npx.fully_connected(x, w)

    compiled = mx.jit(step)
    for _ in range(4):
        expected = npx.fully_connected(x, twin.copy())
        twin *= 0.5
        expected = expected + npx.fully_connected(x, twin.copy())
        assert numpy.array_equal(compiled(x, w).asnumpy(), expected.asnumpy())
        assert numpy.array_equal(w.asnumpy(), twin.asnumpy())


def test_threads_that_predict_while_one_writes_see_whole_weights() -> None:
    x, w = np.ones((4, 64)), np.zeros((64, 64))
    errors: list[Any] = []
    stop = threading.Event()

    def predict() -> None:
        while not stop.is_set():
            found = npx.fully_connected(x, w).asnumpy()
            # All weights are the same number in each version.
            if not (found == found[0, 0]).all() or found[0, 0] % 64:
                errors.append(found)

    threads = [threading.Thread(target=predict) for _ in range(3)]
    for thread in threads:
        thread.start()
    for value in range(300):
        w[:] = value
        assert (npx.fully_connected(x, w).asnumpy() == 64 * value).all()
    stop.set()
    for thread in threads:
        thread.join()
    assert not errors


def test_weights_of_one_shape_in_two_layouts() -> None:
    w = normal(32, 3, 3, 3)
    data = {"NCHW": normal(1, 3, 6, 5), "NHWC": normal(1, 6, 5, 3)}

    def call(layout: str, w: Any) -> Any:
        return npx.convolution(data[layout], w, kernel=(3, 3), num_filter=32, no_bias=True, layout=layout)

    for _ in range(3):
        for layout in data:
            assert numpy.array_equal(call(layout, w).asnumpy(), call(layout, w.copy()).asnumpy())
