"""A device whose memory the host cannot touch: calls give there what they give on the CPU, to the bit.

Host code that reads or writes the memory of the device ends the process, so that the whole file fails.
"""

import threading
import warnings

import numpy
import pytest

import mxnet as mx
import np_coverage
from mxnet import _core, autograd, np, npx

_core.add_simulated_devices()
DEVICE = mx.Device("sim", 0)

# The host computes these on the CPU only: they are refused by name, and copies are the way.
HOST_ONLY = {
    "argwhere",
    "bincount",
    "compress",
    "extract",
    "flatnonzero",
    "lstsq",
    "nonzero",
    "nonzero_matrix",
    "pinv",
    "ravel_multi_index",
    "unique_parts",
    "unique_runs",
    "unique_sorted",
    "unravel_index",
}
# Calls whose elements are undefined.
UNDEFINED = {"np.empty(n)", "np.empty_like(x)"}
# Exchange of device memory with other libraries.
NOT_EXCHANGED = {"np.from_dlpack(x)"}


def to_device(value, device=DEVICE):
    """The value with its arrays on another device."""
    if isinstance(value, np.ndarray):
        return value.to_device(device)
    if isinstance(value, list | tuple):
        return type(value)(to_device(item, device) for item in value)
    return value


@pytest.mark.parametrize("name", ["bool", "int8", "int32", "float16", "float32", "float64", "complex64"])
def test_scalars_of_numpy_are_numbers_of_any_array(name):
    number = numpy.dtype(name).type(3)
    for dtype in ("int16", "float16", "float32"):
        x = np.array([[0, 1, 2]], dtype=dtype)
        for call in (
            lambda x: x * number,
            lambda x: np.where(x > 0, number, x),
            lambda x: np.concatenate([x + number, number - x]),
            lambda x: np.dot(x, number),
            lambda x: x[0, 1] + number,
            lambda x: mx.jit(lambda x: x + number)(x),
        ):
            assert bits(call(x)) == bits(call(x.to_device(DEVICE)))


def bits(result):
    if isinstance(result, np.ndarray):
        return result.shape, str(result.dtype), result.asnumpy().tobytes()
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, list | tuple):
        return [bits(item) for item in result]
    return result.tobytes() if isinstance(result, numpy.ndarray) else type(result)


def test_calls_of_the_coverage_table_are_equal_to_the_bit():
    probe = np_coverage.Probe()
    refused, same, problems = set(), 0, []
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for text in sorted(set(probe.common_calls()) - UNDEFINED - NOT_EXCHANGED):
            np.random.seed(1)
            want = bits(np_coverage.run(text, probe.ours()))
            scope = {name: to_device(value) for name, value in probe.ours().items()}
            np.random.seed(1)
            try:
                with DEVICE:
                    found = bits(np_coverage.run(text, scope))
            except mx.error.DeviceError as error:
                if "no kernel for sim(0)" in str(error):
                    refused.add(str(error).split(":")[0])
                else:
                    problems.append(f"{text}: raises {error!r}")
                continue
            except Exception as error:  # noqa: BLE001  whatever is raised is a difference
                problems.append(f"{text}: raises {error!r}")
                continue
            same += 1
            if found != want:
                problems.append(f"{text}: other values")
    assert not problems
    assert refused == HOST_ONLY
    assert same > 500


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool", "complex64", "float16"])
def test_copies_keep_bits_and_layouts_do_not_matter(dtype):
    x = np.array(numpy.arange(24).reshape(2, 3, 4) % 5, dtype=dtype)
    for view in (x, x[:, ::2], x.transpose(2, 0, 1), x[1:, :, 3], x[:0]):
        there = view.to_device(DEVICE)
        assert there.device == DEVICE
        again = there.to_device(mx.Device("sim", 1)).to_device(mx.cpu())
        assert bits(again) == bits(view)
        assert there.tolist() == view.tolist()
        assert repr(there).replace(", device=sim(0)", "") == repr(np.array(view))


def test_gradients_are_those_of_the_cpu():
    def loss(x, w, b):
        y = npx.fully_connected(x, w, b, num_hidden=5, no_bias=False, flatten=False)
        y = npx.softmax(npx.relu(y)[:, 1:] * 2.0 - 0.5)
        return (y * np.tanh(y) / 3).sum() + y.max()

    rng = numpy.random.default_rng(3)
    arrays = [np.array(rng.normal(size=shape), dtype="float32") for shape in ((4, 6), (5, 6), (5,))]
    there = to_device(arrays)
    for xs in (arrays, there):
        for x in xs:
            x.attach_grad()
        with autograd.record():
            value = loss(*xs)
        value.backward()
    assert all(x.grad.device == DEVICE for x in there)
    assert bits([x.grad for x in there]) == bits([x.grad for x in arrays])


def test_gradients_go_through_copies():
    x = np.array([1.0, 2.0, 3.0])
    x.attach_grad()
    with autograd.record():
        y = (x.to_device(DEVICE) ** 2).to_device(mx.cpu()).sum()
    y.backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


def test_writes_in_place():
    x = np.zeros((3, 4), device=DEVICE)
    x[1] = 2
    x[:, 0] = np.array([5.0, 6.0, 7.0])
    x[2, 1:] = x[1, 1:]
    x += 1
    x[np.array([0, 2], device=DEVICE), 3] = -1
    expected = [[6.0, 1.0, 1.0, -1.0], [7.0, 3.0, 3.0, 3.0], [8.0, 3.0, 3.0, -1.0]]
    assert x.device == DEVICE
    assert x.tolist() == expected


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_numbers_beside_halves_go_as_arguments(dtype):
    x = np.array([1.0, 2.0, 3.0]).astype(dtype)
    there = x.to_device(DEVICE)
    assert bits(there * 2.1) == bits(x * 2.1)
    assert bits(7 - there) == bits(7 - x)


def test_operands_on_two_devices_are_refused():
    x = np.ones((2,), device=DEVICE)
    with pytest.raises(mx.error.DeviceError, match=r"different devices: sim\(0\) and cpu\(0\)"):
        x + np.ones((2,))
    with pytest.raises(mx.error.DeviceError, match=r"different devices"):
        x + np.ones((2,), device=mx.Device("sim", 1))
    assert (x + 1).tolist() == [2.0, 2.0]


def test_an_index_out_of_bounds_is_an_error_with_the_operator():
    x = np.arange(4.0).to_device(DEVICE)
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        x[np.array([1, 9], device=DEVICE)]
    assert x[np.array([1, -1], device=DEVICE)].tolist() == [1.0, 3.0]


def test_threads_use_streams_of_their_own():
    shared = np.arange(1000.0).to_device(DEVICE)
    sums = [None] * 4

    def work(i):
        x = shared
        for _ in range(20):
            x = x + i
        sums[i] = float(x.sum())

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [float(numpy.arange(1000.0).sum() + 20 * 1000 * i) for i in range(4)]
