"""The tape: what is recorded, what is kept, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as onp
import pytest

import mxnet as mx
from mxnet import _core, autograd, np
from mxnet.base import MXNetError
from mxnet.error import AutogradError


def variable(values: object, req: str = "write") -> np.ndarray:
    x = np.array(values)
    x.attach_grad(req)
    return x


def test_gradient_of_a_shared_subexpression_adds_up() -> None:
    x = variable([1.0, -2.0, 3.0])
    with autograd.record():
        square = x * x
        total = (square * square + square).sum()
    total.backward()
    values = onp.array([1.0, -2.0, 3.0])
    onp.testing.assert_allclose(x.grad.asnumpy(), 4 * values**3 + 2 * values, rtol=1e-6)


def test_grad_req_add_accumulates_and_write_replaces() -> None:
    for req, expected in (("add", 4.0), ("write", 2.0)):
        x = variable([3.0], req)
        for _ in range(2):
            with autograd.record():
                y = 2 * x
            y.backward()
        assert x.grad.item() == expected


def test_grad_req_null_takes_no_gradient() -> None:
    x, w = variable([3.0], "null"), variable([2.0])
    with autograd.record():
        y = x * w
    y.backward()
    assert x.grad is None
    assert w.grad.item() == 3.0


def test_a_gradient_taken_before_backward_sees_the_new_values() -> None:
    x = variable([1.0, 2.0])
    seen = x.grad
    with autograd.record():
        y = (x * x).sum()
    y.backward()
    onp.testing.assert_array_equal(seen.asnumpy(), [2.0, 4.0])


def test_gradient_with_respect_to_an_intermediate_result() -> None:
    x = variable([1.0, 2.0])
    with autograd.record():
        middle = x * 3
        y = (middle * middle).sum()
        (slope,) = autograd.grad(y, [middle], retain_graph=True)
    onp.testing.assert_array_equal(slope.asnumpy(), [6.0, 12.0])


def test_attaching_a_gradient_to_an_intermediate_result_keeps_it_in_the_graph() -> None:
    x = variable([1.0, 2.0])
    with autograd.record():
        middle = x * 3
        middle.attach_grad()
        y = (middle * middle).sum()
    y.backward()
    onp.testing.assert_array_equal(middle.grad.asnumpy(), [6.0, 12.0])
    onp.testing.assert_array_equal(x.grad.asnumpy(), [18.0, 36.0])


def test_higher_orders_of_a_power() -> None:
    x = variable([2.0])
    with autograd.record():
        y = x * x * x * x
        for expected in (4 * 8.0, 12 * 4.0, 24 * 2.0, 24.0):
            y = autograd.grad(y, [x], create_graph=True, retain_graph=True)[0]
            assert y.item() == expected


def test_a_variable_outside_the_graph_has_a_zero_gradient() -> None:
    x, other = variable([1.0]), variable([5.0, 6.0])
    with autograd.record():
        y = x * 2
    (slope,) = autograd.grad(y, [other])
    onp.testing.assert_array_equal(slope.asnumpy(), [0.0, 0.0])


def test_a_second_pass_over_a_freed_graph_is_refused() -> None:
    x = variable([1.0])
    with autograd.record():
        y = x * x
    y.backward()
    with pytest.raises(MXNetError, match=r"(?s)already freed.*retain_graph=True"):
        y.backward()


def test_a_retained_graph_can_be_walked_again() -> None:
    x = variable([3.0])
    with autograd.record():
        y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 6.0


def test_overwriting_a_kept_value_is_found_in_backward() -> None:
    x = variable([3.0])
    with autograd.record():
        y = x * 1
        z = y * y
    y[:] = 7.0
    with pytest.raises(MXNetError, match=r"multiply: input 0.*overwritten in place"):
        z.backward()


@pytest.fixture
def named_lines():
    before = _core.set_debug(True)
    yield
    _core.set_debug(before)


@pytest.mark.usefixtures("named_lines")
def test_errors_of_backward_name_operator_and_line_in_debug_mode() -> None:
    x = variable([3.0])
    with autograd.record():
        y = x * 1
        z = y * y  # the line
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    number = 1 + next(i for i, line in enumerate(lines) if line.endswith("# the line"))
    place = rf"test_tape\.py:{number}"
    y[:] = 7.0
    with pytest.raises(AutogradError, match=rf"multiply: input 0.*had version 0 when recorded at .*{place} and has 1"):
        z.backward()
    with autograd.record():
        z = np.exp(x * 2)
    z.backward()
    with pytest.raises(AutogradError, match=r"\(at `exp`, recorded at .*test_tape\.py:\d+\)"):
        z.backward()


def test_writing_to_a_variable_while_recording_is_refused() -> None:
    x = variable([3.0])
    with autograd.record(), pytest.raises(MXNetError, match="variable with a gradient while recording"):
        x += 1
    assert x.item() == 3.0


def test_in_place_results_stay_in_the_graph() -> None:
    x = variable([3.0])
    with autograd.record():
        y = x * 2
        y += x
    y.backward()
    assert x.grad.item() == 3.0


def test_in_place_outside_recording_keeps_the_gradient_attached() -> None:
    x = variable([3.0])
    x -= 1
    assert x.grad is not None
    with autograd.record():
        y = x * x
    y.backward()
    assert x.grad.item() == 4.0


def test_nothing_is_recorded_inside_pause() -> None:
    x = variable([3.0])
    with autograd.record():
        with autograd.pause():
            y = x * x
        z = x * 1
    with pytest.raises(MXNetError, match="head 0 was not computed while recording"):
        y.backward()
    z.backward()
    assert x.grad.item() == 1.0


def test_head_gradients_scale_the_result_and_must_fit() -> None:
    x = variable([1.0, 2.0])
    with autograd.record():
        y = x * x
    y.backward(np.array([10.0, 100.0]), retain_graph=True)
    onp.testing.assert_array_equal(x.grad.asnumpy(), [20.0, 400.0])
    with pytest.raises(ValueError, match=r"head gradient 0 has shape \(3,\), its head \(2,\)"):
        y.backward(np.array([1.0, 2.0, 3.0]))


def test_broadcast_operands_get_gradients_of_their_own_shape() -> None:
    a, b = variable([[1.0], [2.0]]), variable([3.0, 4.0, 5.0])
    with autograd.record():
        y = (a * b).sum()
    y.backward()
    onp.testing.assert_array_equal(a.grad.asnumpy(), [[12.0], [12.0]])
    onp.testing.assert_array_equal(b.grad.asnumpy(), [3.0, 3.0, 3.0])


def test_gradients_keep_the_dtype_of_their_variable() -> None:
    x = np.array([1.0, 2.0], dtype="float16")
    x.attach_grad()
    with autograd.record():
        y = (x * np.array([3.0, 4.0], dtype="float32")).sum()
    y.backward()
    assert x.grad.dtype == onp.float16
    onp.testing.assert_array_equal(x.grad.asnumpy(), [3.0, 4.0])


def test_a_chain_of_any_length_is_freed_without_recursion() -> None:
    x = variable([1.0])
    with autograd.record():
        y = x
        for _ in range(200_000):
            y = y + 1
    del y


def test_a_long_chain_can_be_walked() -> None:
    x = variable([1.0])
    with autograd.record():
        y = x
        for _ in range(20_000):
            y = y + x
    y.backward()
    assert x.grad.item() == 20_001.0


def test_marked_variables_use_the_buffers_given() -> None:
    x, buffer = np.array([2.0]), np.zeros((1,))
    autograd.mark_variables([x], [buffer])
    with autograd.record():
        y = x * x
    y.backward()
    assert buffer.item() == 4.0
    with pytest.raises(ValueError, match=r"gradient has shape \(2,\), its variable has shape \(1,\)"):
        autograd.mark_variables([x], [np.zeros((2,))])


class Failing(autograd.Function):
    """A function whose gradient raises."""

    def forward(self, x: np.ndarray) -> np.ndarray:
        return x * 1

    def backward(self, dy: np.ndarray) -> np.ndarray:
        raise KeyError("no gradient today")


def test_an_exception_in_a_users_gradient_keeps_its_class() -> None:
    x = variable([2.0])
    with autograd.record():
        y = Failing()(x)
    with pytest.raises(KeyError, match="no gradient today"):
        y.backward()
    assert mx.np.array([1.0]).item() == 1.0


def test_exporting_while_recording_names_detach() -> None:
    x = variable([1.0])
    with autograd.record(), pytest.raises(BufferError, match=r"x\.detach\(\)"):
        onp.from_dlpack(x * 2)


@pytest.mark.parametrize(
    "function, first, second",
    [
        (lambda x: x * 3, 3.0, 0.0),
        (lambda x: 3 - x, -1.0, 0.0),
        (lambda x: 6 / x, -1.5, 1.5),
        (lambda x: x**3, 12.0, 12.0),
        (lambda x: 2**x, 4 * math.log(2), 4 * math.log(2) ** 2),
        (lambda x: np.maximum(x, 1), 1.0, 0.0),
    ],
)
def test_numbers_beside_recorded_arrays_take_part_in_the_gradient(function, first, second) -> None:
    x = np.array([2.0, 2.0], dtype="float64")
    x.attach_grad()
    with autograd.record():
        slope = autograd.grad(function(x), x, create_graph=True)
    assert slope.asnumpy() == pytest.approx([first] * 2, rel=1e-15)
    # Slopes that do not depend on x are outside its graph.
    if second:
        assert autograd.grad(slope, x).asnumpy() == pytest.approx([second] * 2, rel=1e-15)


def test_state_that_a_pass_has_freed_is_a_constant_of_the_next_step() -> None:
    weight = variable([2.0, 3.0])
    state = np.array([1.0, 1.0])
    gradients = []
    for _ in range(3):
        with autograd.record():
            state = state * weight
            loss = state.sum()
        loss.backward()
        gradients.append(weight.grad.asnumpy().tolist())
    # Of state_k = state_{k-1} * weight with state_{k-1} fixed.
    assert gradients == [[1.0, 1.0], [2.0, 3.0], [4.0, 9.0]]


def test_only_the_freed_operand_of_a_call_is_a_constant() -> None:
    x = variable([2.0])
    with autograd.record():
        y = x * x
    y.backward()
    with autograd.record():
        z = y * x + np.exp(y) * 0
    z.backward()
    assert x.grad.item() == 4.0  # y alone
    with autograd.record():
        constant = y * 3
    with pytest.raises(MXNetError, match=r"(?s)not computed while recording.*constants unless it got `retain_graph"):
        constant.backward()


def test_a_graph_that_is_freed_after_it_was_used_is_refused() -> None:
    x = variable([2.0])
    with autograd.record():
        middle = np.exp(x)
        first, second = middle * 2, middle * middle
    first.backward()
    with pytest.raises(MXNetError, match="already freed by an earlier pass"):
        second.backward()


def test_a_freed_result_with_a_gradient_attached_anew_is_a_variable() -> None:
    x = variable([2.0])
    with autograd.record():
        y = x * x
    y.backward()
    y.attach_grad()
    with autograd.record():
        z = y * y
    z.backward()
    assert y.grad.item() == 8.0
    assert x.grad.item() == 4.0


def test_second_derivatives_do_not_take_what_the_first_pass_freed_for_constants() -> None:
    x = variable([0.5])
    with autograd.record():
        y = np.exp(x)
        slope = autograd.grad(y, [x], create_graph=True, retain_graph=False)[0]
    with pytest.raises(MXNetError, match=r"already freed by an earlier pass \(at `exp`\)"):
        slope.backward()
    w = variable([3.0])
    with autograd.record():
        middle = np.exp(x)
        first, second = middle * 2, w * middle
    first.backward()
    with autograd.record():
        slope = autograd.grad(second, [w], create_graph=True)[0]  # `middle`
    with pytest.raises(MXNetError, match=r"already freed by an earlier pass \(at `exp`\)"):
        slope.backward()


class Doubled(autograd.Function):
    def forward(self, x):
        return x * 2

    def backward(self, dy):
        return dy * 2


def test_functions_of_users_and_compiled_blocks_end_at_freed_state() -> None:
    net = mx.gluon.nn.Dense(2, in_units=2, use_bias=False)
    net.initialize()
    net.hybridize()
    state = np.ones((1, 2))
    for _ in range(3):
        before = state.asnumpy()
        with autograd.record():
            state = Doubled()(net(state))
            loss = state.sum()
        loss.backward()
        onp.testing.assert_allclose(net.weight.grad().asnumpy(), 2 * onp.tile(before, (2, 1)), rtol=1e-6)


@pytest.mark.parametrize("layer", [mx.gluon.rnn.RNN, mx.gluon.rnn.GRU, mx.gluon.rnn.LSTM])
def test_states_of_recurrent_layers_go_on_without_detach(layer: type[mx.gluon.HybridBlock]) -> None:
    """The states are joined from the results of layers and directions, and the loss does not use them."""
    net = layer(3, 2, bidirectional=True, input_size=4)
    net.initialize()
    x = np.random.normal(size=(5, 2, 4))

    def gradients(is_detached: bool) -> list[onp.ndarray]:
        state, found = net.begin_state(2), []
        for _ in range(3):
            state = [s.detach() for s in state] if is_detached else state
            with autograd.record():
                y, state = net(x, state)
                loss = (y * y).sum()
            loss.backward()
            found += [p.grad().asnumpy() for p in net.collect_params().values()]
        return found

    for implicit, explicit in zip(gradients(False), gradients(True), strict=True):
        onp.testing.assert_array_equal(implicit, explicit)


def test_a_state_of_freed_and_live_parts_is_refused() -> None:
    x, w = variable([2.0]), variable([3.0])
    with autograd.record():
        first = x * x
        both = first * w
    first.backward()
    with autograd.record():
        z = both * 2
    with pytest.raises(MXNetError, match=r"already freed by an earlier pass \(at `multiply`\)"):
        z.backward()
