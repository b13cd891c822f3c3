"""Automatic mixed precision: dtypes of operators, gradients, compiled functions, files, scaled losses."""

import copy
import threading

import numpy
import pytest

import mxnet as mx
from mxnet import _core, amp, autograd, gluon, np, npx
from mxnet.gluon import nn

# Half the distance from 1 to the next number: a rounding changes a value by at most this fraction.
HALF_EPS = {"float16": 2.0**-11, "bfloat16": 2.0**-8}


@pytest.fixture(autouse=True)
def off_again():
    yield
    amp.init(None)


def data(*shape, seed=0, dtype="float32"):
    return np.array(numpy.random.default_rng(seed).uniform(-1, 1, shape).astype(dtype))


def lenet():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, activation="relu"), nn.BatchNorm(), nn.MaxPool2D(), nn.Flatten())
    net.add(nn.Dense(16, activation="tanh"), nn.Dense(3))
    return net


def initialized(net, *shape, device=None):
    numpy_state = numpy.random.default_rng(7)
    net.initialize(device=device)
    with mx.device.Device("cpu", 0):
        net(np.zeros(shape))
    for parameter in net.collect_params().values():
        if parameter.grad_req != "null":
            parameter.set_data(np.array(numpy_state.uniform(-0.4, 0.4, parameter.shape).astype("float32")))
    return net


def gradients(net, x, labels, dtype, loss_function):
    with autograd.record(), amp.autocast(dtype):
        loss = loss_function(net(x), labels)
    loss.backward()
    trained = {name: p for name, p in net.collect_params().items() if p.grad_req != "null"}
    return loss, {name: parameter.grad().copy() for name, parameter in trained.items()}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_marks_decide_the_dtype(dtype):
    x, half = data(2, 2), data(2, 2).astype(dtype)
    with amp.autocast(dtype):
        narrow = [np.dot(x, x), x @ x, x @ half, np.einsum("ij,jk->ik", x, x), np.tensordot(x, x, 1)]
        narrow += [npx.fully_connected(x, x, num_hidden=2, no_bias=True)]
        wide = [np.exp(half), np.power(half, 2.0), npx.softmax(half), npx.log_softmax(x @ x)]
        followed = [half + half, npx.relu(half), half * 2.0, half.sum(axis=0), np.concatenate([half, half])]
        widest = [half + x, np.concatenate([half, x]), np.where(x > 0, half, x)]
    assert {str(y.dtype) for y in narrow} == {dtype}
    assert {str(y.dtype) for y in wide} == {"float32"}
    assert {str(y.dtype) for y in followed} == {dtype}
    assert {str(y.dtype) for y in widest} == {"float32"}


def test_casts_are_those_that_one_would_write():
    x, w, b = data(5, 7), data(3, 7, seed=1), data(3, seed=2)
    with amp.autocast():
        y = npx.fully_connected(x, w, b, num_hidden=3, no_bias=False)
        z = np.exp(y)
    x, w, b = (array.astype("float16") for array in (x, w, b))
    expected = npx.fully_connected(x, w, b, num_hidden=3, no_bias=False)
    assert np.array_equal(y, expected)
    assert np.array_equal(z, np.exp(expected.astype("float32")))


def test_float64_integers_and_given_dtypes_stay():
    double, ints, x = data(2, 2, dtype="float64"), np.ones((2, 2), dtype="int32"), data(2, 2)
    with amp.autocast():
        assert np.dot(double, double).dtype == np.dot(double, x).dtype == "float64"
        assert np.dot(ints, ints).dtype == "int32"
        assert np.exp(x.astype("float16"), dtype="float16").dtype == "float16"
        assert (np.exp(double)).dtype == "float64"
        out = np.zeros((2, 2))
        assert np.dot(x, x, out=out) is out
    half = x.astype("float16")
    assert np.array_equal(out, np.dot(half, half).astype("float32"))


def test_composites_are_one_call_if_they_have_a_mark():
    x, y = data(4, 4), data(4, seed=1)
    exact = np.cov(x), np.corrcoef(x), np.linalg.lstsq(x, y)[0], npx.log_softmax(x)
    with amp.autocast():
        found = np.cov(x), np.corrcoef(x), np.linalg.lstsq(x, y)[0], npx.log_softmax(x)
    for a, b in zip(exact, found, strict=True):
        assert np.array_equal(a, b)


def test_a_part_can_be_left_out():
    x = data(2, 2)
    with amp.autocast("bfloat16"):
        with amp.autocast(None):
            inside = np.dot(x, x)
        with amp.autocast("float16"):
            other = np.dot(x, x)
        after = np.dot(x, x)
    assert [str(y.dtype) for y in (inside, other, after, np.dot(x, x))] == [
        *("float32", "float16", "bfloat16", "float32")
    ]


def test_an_error_leaves_the_mode():
    with pytest.raises(ZeroDivisionError), amp.autocast():
        raise ZeroDivisionError
    assert np.dot(data(2, 2), data(2, 2)).dtype == "float32"


def test_init_is_for_its_thread_until_it_is_taken_back():
    x, found = data(2, 2), []
    amp.init()
    thread = threading.Thread(target=lambda: found.append(str(np.dot(x, x).dtype)))
    thread.start()
    thread.join()
    found.append(str(np.dot(x, x).dtype))
    amp.init("bfloat16")
    found.append(str(np.dot(x, x).dtype))
    amp.init(None)
    found.append(str(np.dot(x, x).dtype))
    assert found == ["float32", "float16", "bfloat16", "float32"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_gradients_are_those_of_float32_up_to_half_precision(dtype):
    net = nn.HybridSequential()
    net.add(nn.Dense(16, activation="relu"), nn.LayerNorm(), nn.Dense(3))
    initialized(net, 1, 8)
    x, labels = data(6, 8), np.array([0, 1, 2, 0, 1, 2])
    loss_function = gluon.loss.SoftmaxCrossEntropyLoss()
    loss, found = gradients(net, x, labels, dtype, loss_function)
    _, exact = gradients(net, x, labels, None, loss_function)
    assert loss.dtype == "float32"
    assert {str(gradient.dtype) for gradient in found.values()} == {"float32"}
    for name, gradient in exact.items():
        # Sums of at most 16 products, three layers deep, and the derivative of the norm: some tens of roundings.
        error = numpy.abs((found[name] - gradient).asnumpy()).max()
        assert 0 < error <= 32 * HALF_EPS[dtype] * numpy.abs(gradient.asnumpy()).max(), name


def test_backward_computes_in_the_dtypes_of_the_recording():
    x, w = data(4, 3), data(3, 3, seed=1)
    grads = []
    for inside in (True, False):
        w.attach_grad()
        with autograd.record(), amp.autocast():
            loss = np.tanh(x @ w @ w).sum()
            if inside:
                loss.backward()
        if not inside:
            loss.backward()
        grads.append(w.grad.copy())
    assert np.array_equal(*grads)


def test_second_derivatives_flow_through_casts():
    x = np.array([[0.5]])
    x.attach_grad()
    with autograd.record(), amp.autocast():
        y = np.dot(x, np.dot(x, x))
        (first,) = autograd.grad(y, [x], create_graph=True)
    first.backward()
    assert first.item() == 0.75
    assert x.grad.item() == 3.0


@pytest.mark.parametrize("layer", [gluon.rnn.LSTM, gluon.rnn.GRU])
def test_recurrent_layers_run_in_half_precision(layer):
    net = initialized(layer(4), 3, 2, 5)
    x = data(3, 2, 5)
    with autograd.record(), amp.autocast():
        y = net(x)
        loss = y.sum()
    loss.backward()
    gradient = net.l0_h2h_weight.grad()
    half = copy.deepcopy(net)
    half.cast("float16")
    with autograd.record():
        expected = half(x.astype("float16"))
        loss = expected.sum()
    loss.backward()
    assert y.dtype == "float16"
    assert np.array_equal(y, expected)
    assert np.array_equal(gradient, half.l0_h2h_weight.grad().astype("float32"))


def test_a_compiled_network_gives_the_same_bits():
    eager = initialized(lenet(), 1, 1, 8, 8)
    compiled = copy.deepcopy(eager)
    eager.hybridize(False)
    compiled.hybridize()
    x, labels = data(4, 1, 8, 8), np.array([0, 1, 2, 0])
    loss_function = gluon.loss.SoftmaxCrossEntropyLoss()
    for dtype in ("float16", None, "bfloat16"):
        first, expected = gradients(eager, x, labels, dtype, loss_function)
        second, found = gradients(compiled, x, labels, dtype, loss_function)
        assert np.array_equal(first, second)
        for name, gradient in expected.items():
            assert np.array_equal(found[name], gradient), (dtype, name)
    assert [entry["arguments"].get("mixed precision") for entry in compiled.trace_report()] == [
        *("float16", None, "bfloat16")
    ]


def test_compiled_functions_have_a_graph_for_each_mode():
    function = mx.jit(lambda x: np.exp(np.dot(x, x)))
    x = data(3, 3)
    for dtype in ("float16", None, "bfloat16", "float16"):
        with amp.autocast(dtype):
            assert np.array_equal(function(x), np.exp(np.dot(x, x)))
    assert len(function.trace_report()) == 3


def test_dynamic_sizes_keep_the_casts():
    function = mx.jit(lambda x: np.dot(x, x.T).sum(axis=1), dynamic=True)
    with amp.autocast():
        for n in (2, 5, 7):
            x = data(n, 4)
            y = function(x)
            assert y.dtype == "float16"
            assert np.array_equal(y, np.dot(x, x.T).sum(axis=1))


def test_functions_run_again_for_their_gradient_cast_again():
    x, w = data(4, 3), data(3, 3, seed=1)
    grads = []
    for run in (lambda f, *args: f(*args), lambda f, *args: npx.checkpoint(f)(*args)):
        w.attach_grad()
        with autograd.record(), amp.autocast():
            loss = run(lambda x, w: np.tanh(x @ w) @ w, x, w).sum()
        loss.backward()
        grads.append(w.grad.copy())
    assert np.array_equal(*grads)


def test_an_exported_network_keeps_its_casts(tmp_path):
    net = initialized(lenet(), 1, 1, 8, 8)
    net.hybridize()
    x = data(4, 1, 8, 8)
    with amp.autocast():
        expected = net(x)
    files = net.export(tmp_path / "net")
    loaded = gluon.SymbolBlock.imports(files[0], ["data"], files[1])
    assert expected.dtype == "float16"
    assert {str(p.dtype) for p in loaded.collect_params().values()} == {"float32"}
    assert np.array_equal(loaded(x), expected)
    with amp.autocast("bfloat16"):
        assert np.array_equal(loaded(x), expected)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_a_converted_block_always_casts(is_compiled, tmp_path):
    net = initialized(lenet(), 1, 1, 8, 8)
    x = data(4, 1, 8, 8)
    before = net(x)
    with amp.autocast():
        expected = net(x)
    half = amp.convert_hybrid_block(net, device=mx.cpu(0))
    half.hybridize(is_compiled)
    assert np.array_equal(half(x), expected)
    assert np.array_equal(net(x), before)
    assert list(half.collect_params()) == list(net.collect_params())
    with autograd.record():
        loss = half(x).astype("float32").sum()
    loss.backward()
    weight = half.collect_params()["0.weight"]
    assert weight.data().dtype == weight.grad().dtype == "float32"
    if is_compiled:
        files = half.export(tmp_path / "half")
        assert np.array_equal(gluon.SymbolBlock.imports(files[0], ["data"], files[1])(x), half(x))


def test_training_in_mixed_precision_lowers_the_loss():
    net = initialized(lenet(), 1, 1, 8, 8)
    x = data(24, 1, 8, 8)
    labels = np.argmax(x.reshape(24, -1)[:, :3], axis=1)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
    amp.init()
    amp.init_trainer(trainer)
    loss_function, losses = gluon.loss.SoftmaxCrossEntropyLoss(), []
    for _ in range(40):
        with autograd.record():
            loss = loss_function(net(x), labels)
            with amp.scale_loss(loss, trainer) as scaled:
                autograd.backward(scaled)
        trainer.step(24)
        losses.append(loss.mean().item())
    assert losses[-1] < losses[0] / 4
    assert {str(p.data().dtype) for p in net.collect_params().values()} == {"float32"}


def dense(device=None, **kwargs):
    net = nn.Dense(1, in_units=2, use_bias=False, **kwargs)
    net.initialize(mx.init.One(), device=device)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
    amp.init_trainer(trainer, amp.LossScaler(init_scale=1024.0, scale_window=2))
    return net, trainer


def scaled_backward(net, trainer, *inputs):
    with autograd.record(), amp.autocast():
        losses = [net(x).sum() for x in inputs]
        with amp.scale_loss(losses, trainer) as scaled:
            autograd.backward(scaled)


def test_a_step_divides_by_the_scale():
    net, trainer = dense()
    for expected in (0.5, 0.0, -0.5):
        scaled_backward(net, trainer, np.ones((1, 2)))
        trainer.step(1)
        assert net.weight.data().tolist() == [[expected, expected]]
    assert trainer._loss_scaler.loss_scale == 2048.0  # two good steps double it, the third is the first of the next
    with autograd.record():
        loss = net(np.ones((1, 2))).sum()
    loss.backward()
    trainer.step(1)  # not scaled, and so not divided
    assert net.weight.data().tolist() == [[-1.0, -1.0]]


@pytest.mark.parametrize("bad", [numpy.inf, numpy.nan])
def test_a_step_with_an_overflow_changes_the_scale_only(bad):
    net, trainer = dense()
    scaled_backward(net, trainer, np.array([[1.0, bad]]))
    trainer.step(1)
    assert net.weight.data().tolist() == [[1.0, 1.0]]
    assert trainer._loss_scaler.loss_scale == 512.0
    with pytest.raises(UserWarning, match="no backward pass"):
        trainer.step(1)
    scaled_backward(net, trainer, np.ones((1, 2)))
    trainer.step(1)
    assert net.weight.data().tolist() == [[0.5, 0.5]]


def test_copies_on_two_devices_skip_together():
    devices = [mx.cpu(0), mx.cpu(1)]
    net, trainer = dense(devices)
    parts = [np.ones((1, 2)).to_device(device) for device in devices]
    scaled_backward(net, trainer, *parts)
    trainer.step(2)
    assert [array.tolist() for array in net.weight.list_data()] == [[[0.5, 0.5]]] * 2
    scaled_backward(net, trainer, parts[0], parts[1] * numpy.inf)
    trainer.step(2)
    assert [array.tolist() for array in net.weight.list_data()] == [[[0.5, 0.5]]] * 2
    assert trainer._loss_scaler.loss_scale == 512.0


def test_gradients_can_be_unscaled_before_the_step():
    net, trainer = dense()
    scaled_backward(net, trainer, np.array([[3.0, 4.0]]))
    assert net.weight.grad().tolist() == [[3072.0, 4096.0]]
    amp.unscale(trainer)
    assert net.weight.grad().tolist() == [[3.0, 4.0]]
    gluon.utils.clip_global_norm([net.weight.grad()], 1.0)
    trainer.step(1)
    numpy.testing.assert_allclose(net.weight.data().asnumpy(), [[0.7, 0.6]], rtol=1e-6)  # float32, and the clip's 1e-8


def test_row_sparse_gradients_are_checked_and_unscaled():
    net = nn.Embedding(3, 2, sparse_grad=True)
    net.initialize(mx.init.One())
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
    amp.init_trainer(trainer, amp.LossScaler(init_scale=64.0))
    for factor, expected in ((1.0, 0.5), (numpy.inf, 0.5)):
        with autograd.record():
            loss = (net(np.array([1])) * factor).sum()
            with amp.scale_loss(loss, trainer) as scaled:
                scaled.backward()
        amp.unscale(trainer)
        trainer.step(1)
        assert net.weight.data().tolist() == [[1.0, 1.0], [expected, expected], [1.0, 1.0]]
    assert trainer._loss_scaler.loss_scale == 32.0


def test_a_compiled_step_cannot_skip():
    net, trainer = dense()

    @mx.jit
    def step(x):
        with autograd.record():
            loss = net(x).sum()
        loss.backward()
        trainer.step(1)
        return loss

    with pytest.raises(RuntimeError, match="a compiled function cannot read whether gradients are finite"):
        step(np.ones((1, 2)))


def test_a_compiled_step_in_bfloat16_gives_what_its_parts_give():
    results = []
    for wrap in (lambda f: f, mx.jit):
        net = initialized(nn.Dense(2, in_units=3), 1, 3)
        trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1})

        @wrap
        def step(x, net=net, trainer=trainer):
            with autograd.record():
                loss = np.square(net(x)).sum()
            loss.backward()
            trainer.step(1)
            return loss

        with amp.autocast("bfloat16"):
            losses = [step(data(4, 3)).item() for _ in range(3)]
        results.append((losses, net.weight.data().tolist()))
    assert results[0] == results[1]


def test_weights_in_half_precision_are_updated_as_before():
    weights = []
    for dtype in (None, "float16"):
        net = initialized(nn.Dense(2, in_units=3), 1, 3)
        net.cast("float16")
        options = {"learning_rate": 0.1, "momentum": 0.9, "multi_precision": True}
        trainer = gluon.Trainer(net.collect_params(), "sgd", options)
        with amp.autocast(dtype):
            for _ in range(3):
                with autograd.record():
                    loss = np.square(net(data(4, 3).astype("float16"))).sum()
                loss.backward()
                trainer.step(4)
        weights.append(net.weight.data())
    assert weights[1].dtype == "float16"
    assert np.array_equal(*weights)


def test_lists_are_the_marks():
    lists = [f("float16") for f in (amp.list_lp16_ops, amp.list_fp32_ops, amp.list_lp16_fp32_ops)]
    lists.append(amp.list_widest_type_cast("float16"))
    listed = sorted(name for names in lists for name in names)
    assert listed == sorted(operator["name"] for operator in _core.registry())
    assert {"convolution", "matmul"} <= set(lists[0])
    assert {"exp", "softmax"} <= set(lists[1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: amp.init("float32"), r"init: mixed precision is of 'float16' or 'bfloat16', found 'float32'"),
        (lambda: amp.init(fp32_ops=["exp"]), r"init: `fp32_ops` is not supported: .*autocast\(None\)"),
        (lambda: amp.init(target_precision_ops=["exp"]), "init: `target_precision_ops` is not supported"),
        (lambda: amp.init(conditional_fp32_ops=[("a", "b", [])]), "init: `conditional_fp32_ops` is not supported"),
        (lambda: amp.init(layout_optimization=True), "init: `layout_optimization` is not supported"),
        (lambda: amp.convert_hybrid_block(nn.Dense(1), cast_optional_params=True), "`cast_optional_params` is not"),
        (lambda: amp.convert_hybrid_block(nn.Dense(1), excluded_sym_names=["a"]), "`excluded_sym_names` is not"),
        (lambda: amp.LossScaler(init_scale=0.0), "`init_scale` must be positive"),
        (lambda: amp.LossScaler(scale_factor=1.0), "`scale_factor` must be above 1, found 1.0"),
        (lambda: amp.LossScaler(scale_window=0), "`scale_window` must be at least 1, found 0"),
        (lambda: amp.list_fp32_ops("int8"), "list_fp32_ops: mixed precision is of"),
    ],
)
def test_what_does_not_exist_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_trainers_are_needed():
    with pytest.raises(TypeError, match=r"init_trainer: a `gluon.Trainer` is needed, found SGD"):
        amp.init_trainer(mx.optimizer.SGD())
    with pytest.raises(TypeError, match="convert_hybrid_block: a HybridBlock is needed, found Block"):
        amp.convert_hybrid_block(gluon.Block())
    trainer = gluon.Trainer(nn.Dense(1).collect_params(), "sgd")
    with pytest.raises(RuntimeError, match="unscale: the trainer has no loss scaler"):
        amp.unscale(trainer)


def test_the_scale_stays_below_its_limit():
    scaler = amp.LossScaler(init_scale=8.0, scale_factor=4.0, scale_window=1, max_scale=100.0)
    scales = []
    for overflow in (False, False, True):
        scaler.update_scale(overflow)
        scales.append(scaler.loss_scale)
    assert scales == [32.0, 100.0, 25.0]
