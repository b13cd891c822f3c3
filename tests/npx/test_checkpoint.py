"""npx.checkpoint: gradients to the bit, random numbers and statistics of the first run, less memory."""

import numpy
import pytest

import slopes
from mxnet import _core, autograd, gluon, np, npx
from mxnet.error import AutogradError

RNG = numpy.random.default_rng(5)


def variable(values, dtype="float32"):
    x = np.array(values, dtype=dtype)
    x.attach_grad()
    return x


def network(seed):
    np.random.seed(seed)
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(16, activation="tanh"), gluon.nn.BatchNorm(axis=1), gluon.nn.Dropout(0.5), gluon.nn.Dense(4))
    net.initialize()
    net(np.zeros((2, 8)))
    return net


def step(net, call, x, seed=3):
    np.random.seed(seed)
    with autograd.record():
        y = call(x)
        loss = (y * y).sum()
    loss.backward()
    after = np.random.random(2).asnumpy()
    parameters = net.collect_params()
    found = {"y": y.asnumpy(), "x": x.grad.asnumpy(), "after": after}
    found |= {name: p.data().asnumpy() for name, p in parameters.items()}
    return found | {name + " grad": p.grad().asnumpy() for name, p in parameters.items() if p.grad_req != "null"}


def test_a_network_with_dropout_and_batch_norm_is_the_same_to_the_bit():
    values = RNG.normal(size=(6, 8)).astype("float32")
    stored, repeated = network(1), network(1)
    for _ in range(2):  # the second step starts from the statistics of the first
        wanted = step(stored, stored, variable(values))
        found = step(repeated, npx.checkpoint(repeated), variable(values))
        assert found.keys() == wanted.keys() and len(found) > 12
        for name, value in wanted.items():
            numpy.testing.assert_array_equal(found[name], value, err_msg=name)
    assert numpy.abs(wanted["1.running_mean"]).max() > 0


def test_parameters_that_wait_for_their_shapes_are_made_in_the_first_run():
    def fresh(seed):
        np.random.seed(seed)
        net = gluon.nn.HybridSequential()
        net.add(gluon.nn.Dropout(0.5), gluon.nn.Dense(4, activation="tanh"), gluon.nn.Dropout(0.5))
        net.initialize()
        return net

    values = RNG.normal(size=(6, 8)).astype("float32")
    wanted = step(stored := fresh(1), stored, variable(values))
    found = step(repeated := fresh(1), npx.checkpoint(repeated), variable(values))
    assert "1.weight grad" in wanted and wanted["1.weight grad"].any()
    for name, value in wanted.items():
        numpy.testing.assert_array_equal(found[name], value, err_msg=name)


def test_each_layer_may_be_a_checkpoint_and_checkpoints_nest():
    values = RNG.normal(size=(6, 8)).astype("float32")
    stored, repeated = network(1), network(1)

    def layers(x):
        for layer in repeated:
            x = npx.checkpoint(layer)(x)
        return x

    wanted = step(stored, stored, variable(values))
    for call in (layers, npx.checkpoint(layers)):
        repeated.load_dict({name: p.data() for name, p in network(1).collect_params().items()})
        found = step(repeated, call, variable(values))
        for name, value in wanted.items():
            numpy.testing.assert_array_equal(found[name], value, err_msg=name)


def test_gradients_of_first_and_second_order_are_the_slopes():
    def function(x, w):
        inner = npx.checkpoint(lambda x: {"y": np.tanh(x * w), "z": [np.sin(x) * w, None]})(x)
        return [inner["y"] * x, inner["z"][0]]

    slopes.check(function, [RNG.normal(size=3), RNG.normal(size=3)], RNG)


def test_arguments_that_depend_on_one_another_get_their_own_gradients():
    x = variable([2.0], "float64")
    with autograd.record():
        y = x * x
        z = npx.checkpoint(lambda a, b: a * b * b)(x, y)
    slope = autograd.grad(z, x, create_graph=True)
    assert slope.item() == 5 * 2.0**4
    assert autograd.grad(slope, x).item() == 20 * 2.0**3


class Cube(autograd.Function):
    def forward(self, x):
        self.save_for_backward(x)
        return x**3

    def backward(self, dy):
        (x,) = self.saved_tensors
        return 3 * x * x * dy


def test_functions_written_in_python_and_gradients_inside():
    w = variable([3.0], "float64")

    def function(x):
        with autograd.record():
            inner = x * x * w
            slope = autograd.grad(inner, x, create_graph=True)  # 2 x w
        return Cube()(x) * slope + Cube()(w)

    x = variable([2.0], "float64")
    with autograd.record():
        y = npx.checkpoint(function)(x)  # 2 x**4 w + w**3
        dx, dw = autograd.grad(y, [x, w], create_graph=True)
        z = dx * dw
    assert [y.item(), dx.item(), dw.item()] == [96 + 27, 8 * 8 * 3, 2 * 16 + 27]
    z.backward()
    # dx = 8 x**3 w, dw = 2 x**4 + 3 w**2
    assert x.grad.item() == 24 * 4 * 3 * 59 + 192 * 8 * 8
    assert w.grad.item() == 8 * 8 * 59 + 192 * 6 * 3


def test_state_inside_nested_checkpoints_is_read_as_it_was():
    count = np.zeros(1)

    def add(x):
        count[:] = count + 1
        return x * 1

    def function(x):
        return npx.checkpoint(lambda x: x * (count + 1))(npx.checkpoint(add)(x))

    x = variable([1.0])
    with autograd.record():
        y = npx.checkpoint(function)(x)
        z = npx.checkpoint(function)(y)
    count[:] = 100
    z.backward()
    assert z.item() == 2 * 3 and x.grad.item() == 6 and count.item() == 100


def test_results_that_are_arguments_or_constants():
    x = variable([2.0])
    with autograd.record():
        y = x * 3
        same, constant, number = npx.checkpoint(lambda y: (y, np.ones(1), np.arange(2)))(y)
        loss = same * constant
    loss.backward()
    assert x.grad.item() == 3
    assert number.dtype == "int64"


def test_random_numbers_are_those_of_the_first_run_from_any_generator():
    generator = np.random.default_rng(4)
    x = variable(numpy.ones(5))
    drawn = []

    def function(x):
        noise = np.random.normal(size=5) + generator.normal(size=5) + npx.dropout(x * 1, p=0.5)
        drawn.append(noise.asnumpy() if not drawn else None)
        return x * noise

    np.random.seed(9)
    with autograd.record():
        y = npx.checkpoint(function)(x)
        between = np.random.normal(size=3)  # others draw before the second run
    y.backward()
    assert len(drawn) == 2
    after = np.random.normal(size=3), generator.normal(size=3)
    np.random.seed(9)
    generator = np.random.default_rng(4)
    x2 = variable(numpy.ones(5))
    with autograd.record():
        y2 = function(x2)
        numpy.testing.assert_array_equal(np.random.normal(size=3).asnumpy(), between.asnumpy())
    y2.backward()
    numpy.testing.assert_array_equal(x.grad.asnumpy(), x2.grad.asnumpy())
    numpy.testing.assert_array_equal(np.random.normal(size=3).asnumpy(), after[0].asnumpy())
    numpy.testing.assert_array_equal(generator.normal(size=3).asnumpy(), after[1].asnumpy())


def test_arrays_from_outside_are_updated_once_and_read_as_they_were():
    count, x = np.zeros(1), variable([1.0])

    def function(x):
        before = count * 1
        count[:] = count + 1
        view = count[:]
        view += 1
        return x * (before + 10 * count)

    with autograd.record():
        y = npx.checkpoint(function)(x)
    assert count.item() == 2 and y.item() == 20
    with autograd.record():
        z = npx.checkpoint(function)(x)
    assert count.item() == 4 and z.item() == 42
    y.backward(retain_graph=True)
    assert x.grad.item() == 20
    y.backward()
    z.backward()
    assert x.grad.item() == 42 and count.item() == 4


def test_memory_of_intermediates_is_given_back():
    # 8 layers of 6 intermediates each; with checkpoints 8 results, and 6 intermediates while one runs again.
    size = 1 << 18
    x = variable(RNG.normal(size=size).astype("float32"))

    def layer(x):
        for _ in range(3):
            x = np.sin(x) * 1.5
        return x

    def peak(call):
        _core.waitall()
        before = _core.memory_stats()["in_use_bytes"]
        _core.reset_memory_peak()
        with autograd.record():
            y = x
            for _ in range(8):
                y = call(y)
        y.backward()
        _core.waitall()
        gradient = x.grad.asnumpy()
        return _core.memory_stats()["peak_bytes"] - before, gradient

    with_all, wanted = peak(layer)
    with_checkpoints, found = peak(npx.checkpoint(layer))
    numpy.testing.assert_array_equal(found, wanted)
    assert with_all > 24 * size * 4
    assert with_checkpoints < 0.8 * with_all


def test_without_recording_the_function_just_runs():
    assert npx.checkpoint(lambda: 3)() == 3
    with autograd.train_mode():
        assert npx.checkpoint(autograd.is_training)() is True


def test_overwritten_arguments_and_closed_over_arrays_are_named():
    def double(x):
        return x * offset

    for overwrites_argument in (True, False):
        x, offset = variable([1.0]), np.array([5.0])
        with autograd.record():
            middle = x * 2
            y = npx.checkpoint(double)(middle)
        (middle if overwrites_argument else offset)[:] = 3.0
        with pytest.raises(AutogradError, match="an array that `double` read was overwritten in place"):
            y.backward()


def test_a_function_that_does_something_else_the_second_time_is_refused():
    runs, x = [], variable([1.0])

    def draws(x):
        runs.append(1)
        return x * np.random.normal(size=1) if len(runs) == 1 else x * 2

    def gives(x):
        runs.append(1)
        return [x * 2] * len(runs)

    for function, message in ((draws, "random numbers 0 times, the first 1"), (gives, "gave 2 arrays, the first 1")):
        runs.clear()
        with autograd.record():
            y = npx.checkpoint(function)(x)
        y = y[0] if isinstance(y, list) else y
        with pytest.raises(AutogradError, match=message):
            y.backward()


def test_errors_name_the_function():
    with pytest.raises(TypeError, match="checkpoint: `function` must be a function or a block, found 'int'"):
        npx.checkpoint(3)

    def three(x):
        return 3

    with autograd.record(), pytest.raises(TypeError, match=r"`result of three` must be an ndarray.*found 'int'"):
        npx.checkpoint(three)(np.ones(1))

    def broken(x):
        raise KeyError("inside")

    with autograd.record(), pytest.raises(KeyError, match="inside"):
        npx.checkpoint(broken)(np.ones(1))
    assert not autograd.is_recording()
