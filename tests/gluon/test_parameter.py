"""Parameters: first values, shapes that become known late, copies on several devices."""

import numpy as onp
import pytest

import mxnet as mx
from mxnet import autograd, gluon
from mxnet.gluon import Parameter


def test_values_are_there_after_initialize():
    parameter = Parameter("weight", shape=(3, 4))
    parameter.initialize(mx.init.One())
    assert parameter.data().shape == (3, 4)
    assert (parameter.data().asnumpy() == 1).all()
    assert (parameter.grad().asnumpy() == 0).all()


def test_access_before_initialize_names_the_parameter():
    with pytest.raises(RuntimeError, match="'bias' is not initialized"):
        Parameter("bias", shape=(2,)).data()


def test_unknown_shape_without_permission_is_an_error():
    with pytest.raises(gluon.DeferredInitializationError, match=r"\(3, -1\)"):
        Parameter("weight", shape=(3, -1)).initialize()


@pytest.mark.parametrize("unknown", [0, -1])
def test_deferred_values_appear_when_the_shape_is_set(unknown):
    parameter = Parameter("weight", shape=(3, unknown), allow_deferred_init=True)
    parameter.initialize(mx.init.Zero())
    with pytest.raises(gluon.DeferredInitializationError):
        parameter.data()
    parameter.shape = (3, 5)
    parameter._finish_deferred_init()
    assert parameter.data().shape == (3, 5)


def test_known_sizes_cannot_change():
    parameter = Parameter("weight", shape=(3, -1))
    with pytest.raises(ValueError, match=r"\(3, -1\) cannot become \(4, 5\)"):
        parameter.shape = (4, 5)


def test_second_initialize_warns_and_keeps_values():
    parameter = Parameter("weight", shape=(2,))
    parameter.initialize(mx.init.One())
    with pytest.warns(UserWarning, match="stays as it is"):
        parameter.initialize(mx.init.Zero())
    assert parameter.data().asnumpy().tolist() == [1, 1]
    parameter.initialize(mx.init.Zero(), force_reinit=True)
    assert parameter.data().asnumpy().tolist() == [0, 0]


def test_own_initializer_applies_whatever_the_name():
    parameter = Parameter("bias", shape=(2,), init=mx.init.Constant(3.0))
    parameter.initialize(default_init=mx.init.Xavier())
    assert parameter.data().asnumpy().tolist() == [3, 3]


def test_set_data_refuses_another_shape():
    parameter = Parameter("weight", shape=(2, 2))
    parameter.initialize()
    with pytest.raises(ValueError, match=r"shape \(2, 2\).*\(3,\)"):
        parameter.set_data([1.0, 2.0, 3.0])
    parameter.set_data([[1.0, 2.0], [3.0, 4.0]])
    assert parameter.data().asnumpy().tolist() == [[1, 2], [3, 4]]


def test_copies_lie_on_every_device():
    devices = [mx.cpu(0), mx.cpu(1)]
    parameter = Parameter("weight", shape=(2,))
    parameter.initialize(mx.init.Normal(1.0), device=devices)
    first, second = parameter.list_data()
    assert [first.device, second.device] == devices == parameter.list_device()
    assert first.asnumpy().tolist() == second.asnumpy().tolist()
    with pytest.raises(RuntimeError, match=r"not on cpu\(2\)"):
        parameter.data(mx.cpu(2))
    parameter.set_data([5.0, 6.0])
    assert [array.asnumpy().tolist() for array in parameter.list_data()] == [[5, 6], [5, 6]]


class Scaled(gluon.HybridBlock):
    """Multiplies the first of the arrays by a vector, whose copy it does not name by a device."""

    def __init__(self, size):
        super().__init__()
        self.scale = Parameter("scale", shape=(size,), init="ones", allow_deferred_init=True)

    def infer_shape(self, arrays):
        self.scale.shape = (arrays["x"][0].shape[-1],)

    def forward(self, arrays):
        return arrays["x"][0] * self.scale.data() + mx.np.ones(3)


@pytest.mark.parametrize("size", [3, -1])
def test_a_block_takes_the_copy_on_the_device_of_its_input(size):
    devices = [mx.cpu(0), mx.cpu(1)]
    inner, outer = Scaled(size), gluon.nn.HybridSequential()
    outer.add(inner)
    outer.initialize(device=devices)
    for device in reversed(devices):
        values = onp.array([[1, 2, 3], [4, 5, 6]], "float32")
        x = mx.np.array(values, device=device)
        for _ in range(2):
            with autograd.record():
                result = outer({"count": 2, "x": [x]})
            result.backward()
            assert result.device == device
            assert onp.array_equal(result.asnumpy(), values + 1)
            assert onp.array_equal(inner.scale.grad(device).asnumpy(), values.sum(0))
        assert mx.current_device() == mx.cpu(0)
    with pytest.raises(RuntimeError, match=r"'0.scale' is not on cpu\(2\); it is on cpu\(0\), cpu\(1\)"):
        outer({"x": [mx.np.ones(3, device=mx.cpu(2))]})


def test_no_device_and_the_same_device_twice_are_refused():
    parameter = Parameter("weight", shape=(2,))
    with pytest.raises(ValueError, match="at least one"):
        parameter.initialize(device=[])
    with pytest.raises(ValueError, match="twice"):
        parameter.initialize(device=[mx.cpu(0), mx.cpu(0)])


def test_reset_device_moves_values():
    parameter = Parameter("weight", shape=(2,))
    parameter.initialize(mx.init.Constant(4.0))
    parameter.reset_device(mx.cpu(1))
    assert parameter.list_device() == [mx.cpu(1)]
    assert parameter.data().asnumpy().tolist() == [4, 4]


def test_gradient_follows_grad_req():
    parameter = Parameter("weight", shape=(1,), init="ones")
    parameter.initialize()

    def run():
        with autograd.record():
            y = parameter.data() * 3
        y.backward()
        return parameter.grad().item()

    assert [run(), run()] == [3, 3]
    parameter.grad_req = "add"
    assert [run(), run()] == [3, 6]
    parameter.zero_grad()
    assert parameter.grad().item() == 0
    parameter.grad_req = "null"
    with pytest.raises(RuntimeError, match="no gradient"):
        parameter.grad()
    with pytest.raises(ValueError, match="'sometimes'"):
        parameter.grad_req = "sometimes"


def test_cast_changes_values_and_gradient():
    parameter = Parameter("weight", shape=(2,), init="ones")
    parameter.initialize()
    parameter.cast("float64")
    assert parameter.dtype == onp.float64
    assert parameter.data().dtype == onp.float64
    assert parameter.grad().dtype == onp.float64
    assert parameter.data().asnumpy().tolist() == [1, 1]


def test_constant_has_no_gradient():
    constant = gluon.Constant([[1.0, 2.0]])
    constant.initialize()
    assert constant.data().asnumpy().tolist() == [[1, 2]]
    assert constant.data().grad is None
    with pytest.raises(ValueError, match="always 'null'"):
        constant.grad_req = "write"


def test_sparse_storage_is_refused():
    with pytest.raises(ValueError, match="`stype` must be 'default'"):
        Parameter("weight", shape=(2,), stype="row_sparse")
