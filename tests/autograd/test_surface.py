"""mx.autograd: modes, gradients, functions written in Python."""

import threading

import pytest

import mxnet as mx
from mxnet import autograd


def modes():
    return autograd.is_recording(), autograd.is_training()


def test_modes_nest_and_come_back():
    assert modes() == (False, False)
    with autograd.record():
        assert modes() == (True, True)
        with autograd.pause():
            assert modes() == (False, False)
            with autograd.train_mode():
                assert modes() == (False, True)
        with autograd.predict_mode():
            assert modes() == (True, False)
        assert modes() == (True, True)
    with autograd.record(train_mode=False):
        assert modes() == (True, False)
    assert modes() == (False, False)


def test_modes_come_back_after_an_exception():
    with pytest.raises(KeyError), autograd.record():
        raise KeyError
    assert modes() == (False, False)


def test_modes_belong_to_the_thread():
    seen = []
    with autograd.record():
        thread = threading.Thread(target=lambda: seen.append(modes()))
        thread.start()
        thread.join()
    assert seen == [(False, False)]


def test_setters_return_the_old_value():
    assert autograd.set_recording(True) is False
    assert autograd.set_recording(False) is True
    assert autograd.set_training(True) is False
    assert autograd.set_training(False) is True


def test_backward_weighs_heads():
    x = mx.np.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y, z = x * 2, x * x
    autograd.backward([y, z], [mx.np.array([1.0, 1.0]), mx.np.array([10.0, 100.0])])
    assert x.grad.asnumpy().tolist() == [22, 402]
    with pytest.raises(ValueError, match="1 entries for 2 heads"):
        autograd.backward([y, z], [mx.np.array([1.0, 1.0])])


def test_grad_leaves_buffers_alone_and_follows_the_form_of_variables():
    x = mx.np.array([3.0])
    x.attach_grad()
    with autograd.record():
        y = x * x
    assert autograd.grad(y, x, retain_graph=True).asnumpy().tolist() == [6]
    (only,) = autograd.grad(y, [x])
    assert only.asnumpy().tolist() == [6]
    assert x.grad.asnumpy().tolist() == [0]


def test_marked_variables_use_the_given_buffers():
    x, buffer = mx.np.array([3.0]), mx.np.array([1.0])
    autograd.mark_variables([x], [buffer], "add")
    with autograd.record():
        y = x * x
    y.backward()
    assert x.grad.asnumpy().tolist() == [7]
    with pytest.raises(ValueError, match="1 variables, 2 gradients and 1 requests"):
        autograd.mark_variables([x], [buffer, buffer], ["add"])


class Cube(autograd.Function):
    def forward(self, x):
        self.save_for_backward(x)
        return x * x * x

    def backward(self, dy):
        (x,) = self.saved_tensors
        return 3 * x * x * dy


def test_function_in_python_is_differentiated_by_its_own_rule():
    x = mx.np.array([2.0, 5.0])
    x.attach_grad()
    with autograd.record():
        y = 2 * Cube()(x)
    y.backward()
    assert y.asnumpy().tolist() == [16, 250]
    assert x.grad.asnumpy().tolist() == [24, 150]


def test_function_without_recording_only_computes():
    assert Cube()(mx.np.array([2.0])).asnumpy().tolist() == [8]


def test_function_of_two_inputs_and_two_outputs():
    class Both(autograd.Function):
        def forward(self, x, y):
            return x + y, x - y

        def backward(self, da, db):
            return da + db, da - db

    x, y = mx.np.array([5.0]), mx.np.array([3.0])
    x.attach_grad()
    y.attach_grad()
    with autograd.record():
        a, b = Both()(x, y)
        loss = 2 * a + b
    loss.backward()
    assert [x.grad.item(), y.grad.item()] == [3, 1]


def test_function_instances_are_used_once():
    function = Cube()
    function(mx.np.array([2.0]))
    with pytest.raises(RuntimeError, match="Cube was called before"):
        function(mx.np.array([2.0]))


def test_wrong_number_of_gradients_is_named():
    class Wrong(Cube):
        def backward(self, dy):
            return dy, dy

    x = mx.np.array([2.0])
    x.attach_grad()
    with autograd.record():
        y = Wrong()(x)
    with pytest.raises(ValueError, match=r"Wrong.backward returned 2 gradients for 1 inputs"):
        y.backward()


def test_updates_in_place_keep_the_gradient_buffer():
    x = mx.np.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = (x * x).sum()
    y.backward()
    with autograd.pause():
        x[:] = x - 0.5 * x.grad
    assert x.asnumpy().tolist() == [0, 0]
    assert x.grad.asnumpy().tolist() == [2, 4]


def test_one_scope_object_may_be_entered_again():
    scope = autograd.record()
    with scope:
        with autograd.pause(), scope:
            assert modes() == (True, True)
        assert modes() == (True, True)
    assert modes() == (False, False)


def test_a_block_that_nothing_leaves_ends_with_its_object():
    # As if a signal handler had raised between `__enter__` and the block.
    lost = autograd.record()
    lost.__enter__()
    assert autograd.is_recording() and autograd.is_training()
    del lost
    assert not autograd.is_recording() and not autograd.is_training()


@pytest.mark.parametrize("outer", [autograd.record, autograd.pause])
@pytest.mark.parametrize("inner", [autograd.record, autograd.pause])
def test_an_object_that_goes_away_leaves_inner_blocks_alone(outer, inner):
    # The object lives on in a traceback, until another block is open.
    lost = outer()
    lost.__enter__()
    with inner():
        inside = autograd.is_recording(), autograd.is_training()
        del lost
        assert (autograd.is_recording(), autograd.is_training()) == inside
    assert not autograd.is_recording() and not autograd.is_training()


def test_modes_that_an_object_does_not_switch_are_those_of_the_inner_blocks():
    with autograd.record():
        lost = autograd.predict_mode()
        lost.__enter__()
        with autograd.pause(train_mode=True):
            del lost
            assert (autograd.is_recording(), autograd.is_training()) == (False, True)
        assert (autograd.is_recording(), autograd.is_training()) == (True, True)
