"""Devices, engine modes, semantics switches, environment variables, error classes."""

import os
import threading

import pytest

import mxnet as mx
from mxnet import engine, error, util


def test_devices_compare_by_kind_and_number():
    assert mx.cpu() == mx.cpu(0) == mx.Device("cpu", 0) == mx.Device("cpu")
    assert mx.cpu(0) != mx.cpu(1)
    assert mx.cpu(0) != mx.gpu(0)
    assert len({mx.cpu(0), mx.cpu(0), mx.cpu(1)}) == 2
    assert repr(mx.gpu(3)) == "gpu(3)"
    assert (mx.cpu(2).device_type, mx.cpu(2).device_id) == ("cpu", 2)


def test_current_device_nests_per_thread():
    seen = []
    with mx.cpu(1) as entered:
        assert entered == mx.current_device() == mx.cpu(1)
        with mx.cpu(2):
            assert mx.current_device() == mx.cpu(2)
        thread = threading.Thread(target=lambda: seen.append(mx.current_device()))
        thread.start()
        thread.join()
        assert mx.current_device() == mx.cpu(1)
    assert mx.current_device() == mx.cpu(0)
    assert seen == [mx.cpu(0)]


def test_engine_modes_switch_and_come_back():
    before = engine.set_mode("async")
    try:
        with engine.mode("sync"):
            assert (mx.np.array([1.0]) + 1).asnumpy().tolist() == [2]
        assert engine.set_mode("async") == "async"
    finally:
        engine.set_mode(before)
    with pytest.raises(ValueError, match="'lazy'"):
        engine.set_mode("lazy")


def test_bulk_size_is_remembered():
    with engine.bulk(3):
        assert engine.set_bulk_size(4) == 3
    assert engine.set_bulk_size(15) == 15
    with pytest.raises(ValueError, match="-1"):
        engine.set_bulk_size(-1)


def test_waitall_returns_when_all_is_done():
    x = mx.np.array([1.0]) + 1
    mx.waitall()
    assert x.item() == 2


def test_semantics_are_numpys_for_good():
    assert util.is_np_array()
    assert util.is_np_shape()
    with pytest.raises(ValueError, match="`shape` cannot be turned off"):
        util.set_np(shape=False)
    with pytest.raises(ValueError, match="`array` cannot be turned off"):
        util.set_np(array=False)

    @util.use_np
    class Plain:
        pass

    assert Plain.__name__ == "Plain"


def test_default_dtype_can_be_numpys():
    assert not util.is_np_default_dtype()
    with util.np_default_dtype():
        assert util.is_np_default_dtype()
    assert not util.is_np_default_dtype()

    @util.use_np_default_dtype
    def inside():
        """Says something."""
        return util.is_np_default_dtype()

    assert inside()
    assert inside.__doc__ == "Says something."
    with pytest.raises(TypeError, match="decorate its methods"):
        util.use_np_default_dtype(int)
    util.set_np(dtype=True)
    assert util.is_np_default_dtype()
    util.set_np(dtype=False)
    assert not util.is_np_default_dtype()


def test_environment_variables():
    name = "MXNET_TEST_OF_SETENV"
    assert util.getenv(name) is None
    util.setenv(name, "1")
    assert util.getenv(name) == os.environ[name] == "1"
    with mx.test_utils.environment({name: None, "MXNET_OTHER": 5}):
        assert util.getenv(name) is None
        assert util.getenv("MXNET_OTHER") == "5"
    assert util.getenv(name) == "1"
    util.setenv(name, None)
    assert name not in os.environ


def test_module_can_be_stated():
    @util.set_module("mxnet.elsewhere")
    def function():
        pass

    assert function.__module__ == "mxnet.elsewhere"


@pytest.mark.parametrize(
    ("name", "builtin"),
    [
        ("ShapeError", ValueError),
        ("DTypeError", TypeError),
        ("IndexError", IndexError),
        ("MemoryError", MemoryError),
        ("IOError", OSError),
        ("FileFormatError", ValueError),
    ],
)
def test_errors_are_also_what_numpy_raises(name, builtin):
    klass = getattr(error, name)
    assert issubclass(klass, mx.MXNetError)
    assert issubclass(klass, builtin)


def test_error_classes_can_be_registered():
    @error.register
    class OwnError(error.MXNetError):
        pass

    @error.register("Another")
    class OtherError(error.MXNetError):
        pass

    assert error._REGISTRY["OwnError"] is OwnError
    assert error._REGISTRY["Another"] is OtherError


def test_a_seed_of_a_device_is_that_of_the_stream():
    mx.random.seed(1)
    expected = mx.np.random.uniform(size=3).tolist()
    mx.random.seed(1, device=mx.cpu(0))
    assert mx.np.random.uniform(size=3).tolist() == expected
    with pytest.raises(ValueError, match="must be 'all' or a Device"):
        mx.random.seed(1, device="cpu")
