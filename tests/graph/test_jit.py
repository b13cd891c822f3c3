"""Compiled functions give what the functions themselves give, bit for bit, and say what they cannot do."""

import collections
import dataclasses
import gc
import re
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest

import mxnet as mx
from mxnet import autograd, np, npx
from mxnet.error import AbstractArrayError, AutogradError


def bits(x):
    return x.shape, x.dtype, x.asnumpy().tobytes()


def data(*shape, seed=0):
    return np.array(numpy.random.default_rng(seed).normal(size=shape).astype("float32"))


def chain(x, y):
    z = np.tanh((x + y) * 2.0)
    return np.where(z > 0, z, z * 0.1) + x.mean(axis=0)


def test_results_are_those_of_the_function():
    compiled = mx.jit(chain)
    for shape in [(3, 4), (3, 4), (100, 65), (1,), (3, 0)]:
        x, y = data(*shape), data(*shape, seed=1)
        assert bits(compiled(x, y)) == bits(chain(x, y))
    assert len(compiled.trace_report()) == 4


@pytest.mark.parametrize(
    "shapes", [((7, 5), (5,)), ((7, 5), (7, 1)), ((2, 3, 4000), (3, 1)), ((70000,), ()), ((3, 1, 5), (4, 1))]
)
def test_fused_operators_broadcast(shapes):
    def mixed(x, y):
        z = x * y + 1
        return np.exp(-z * z), z > 0.5, (z * 3).astype("int32") + 1

    x, y = data(*shapes[0]), data(*shapes[1], seed=1)
    compiled = mx.jit(mixed)
    for found, expected in zip(compiled(x, y), mixed(x, y), strict=True):
        assert bits(found) == bits(expected)
    assert compiled.trace_report()[0]["steps"] < compiled.trace_report()[0]["nodes"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int32", "complex64"])
def test_dtypes(dtype):
    x = (data(6, 5) * 4).astype(dtype)
    compiled = mx.jit(lambda x: (x + x * 2 - 1) * x.T.T)
    assert bits(compiled(x)) == bits(compiled.function(x))


def test_structures_of_arguments_and_results():
    Pair = collections.namedtuple("Pair", ["first", "second"])

    @mx.jit
    def swapped(pair, options, *rest, scale=1):
        first = pair.second * scale + options["shift"][0]
        return Pair(first, pair.first), {"rest": [x + 1 for x in rest], "name": options["name"], "none": None}

    pair = Pair(data(3), data(2))
    found, other = swapped(pair, {"shift": (data(1), 2), "name": "a"}, data(4), scale=3)
    assert isinstance(found, Pair)
    assert bits(found.first) == bits(data(2) * 3 + data(1))
    assert bits(found.second) == bits(data(3))
    assert other["name"] == "a"
    assert other["none"] is None
    assert bits(other["rest"][0]) == bits(data(4) + 1)
    swapped(pair, {"shift": (data(1), 2), "name": "b"}, data(4), scale=3)
    swapped(pair, {"shift": (data(1), 2), "name": "b"}, data(4), scale=3.0)
    assert len(swapped.trace_report()) == 3


def test_methods_are_compiled_for_their_object():
    class Scale:
        def __init__(self, factor):
            self.factor = factor

        @mx.jit
        def __call__(self, x):
            return x * self.factor

    x = data(3)
    two, three = Scale(2), Scale(3)
    assert bits(two(x)) == bits(x * 2)
    assert bits(three(x)) == bits(x * 3)


def test_signatures_tell_calls_apart():
    traces = []

    @mx.jit
    def f(x, flag=True):
        traces.append(1)
        return x + 1 if flag else x - 1

    x = data(4, 6)
    f(x)
    f(x)
    assert len(traces) == 1
    for other in [lambda: f(x, flag=False), lambda: f(x.T), lambda: f(x.astype("float64")), lambda: f(x[:2])]:
        before = len(traces)
        other()
        other()
        assert len(traces) == before + 1
    with autograd.train_mode():
        f(x)
    assert len(traces) == 6


def test_views_of_one_array_are_one_signature():
    traces = []

    @mx.jit
    def f(x):
        traces.append(1)
        return x * 2

    x = data(6, 3)
    for i in range(3):
        assert bits(f(x[2 * i : 2 * i + 2])) == bits(x[2 * i : 2 * i + 2] * 2)
    assert bits(f(x[5:3:-1])) == bits(x[5:3:-1] * 2)
    assert len(traces) == 2


def test_arrays_found_elsewhere_are_inputs():
    weight = data(3)
    compiled = mx.jit(lambda x: x * weight)
    x = data(3, seed=1)
    assert bits(compiled(x)) == bits(x * weight)
    weight[:] = 5
    assert bits(compiled(x)) == bits(x * 5)
    assert len(compiled.trace_report()) == 1


def test_arrays_made_inside_are_new_at_each_call():
    @mx.jit
    def counted(x):
        start = np.array([1.0, 2.0, 3.0])
        start += x
        return start, np.array([4.0, 5.0])

    for _ in range(3):
        x = data(3)
        start, constant = counted(x)
        assert bits(start) == bits(np.array([1.0, 2.0, 3.0]) + x)
        constant += 1
        assert constant.tolist() == [5.0, 6.0]


def test_writes_to_arguments_and_to_arrays_found_elsewhere():
    total, parts = np.zeros(3), np.zeros((2, 3))

    def add(x, out):
        nonlocal total
        out[1:] = x[:-1] * 2
        total += x
        parts[0] += x
        x *= 3
        return total + 1, parts[1], out

    compiled = mx.jit(add)
    for turn in range(3):
        x, out = data(3, seed=turn), np.ones(3)
        before, rows = total.copy(), parts.copy()
        found = compiled(x, out)
        assert bits(x) == bits(data(3, seed=turn) * 3)
        assert bits(total) == bits(before + data(3, seed=turn))
        assert bits(parts[0]) == bits(rows[0] + data(3, seed=turn))
        assert out.tolist() == [1.0, *(data(3, seed=turn)[:-1] * 2).tolist()]
        assert bits(found[0]) == bits(total + 1)
        found[2][0] = 7
        assert out[0] == 7
    assert len(compiled.trace_report()) == 1


def test_arguments_that_share_memory():
    def shift(x, y):
        x += 1
        return y * 2

    compiled = mx.jit(shift)
    x = np.arange(4.0)
    assert compiled(x, x).tolist() == [2.0, 4.0, 6.0, 8.0]
    x = np.arange(4.0)
    assert compiled(x[1:], x[:-1]).tolist() == [0.0, 4.0, 6.0]
    assert compiled(np.arange(4.0), np.arange(4.0)).tolist() == [0.0, 2.0, 4.0, 6.0]


def test_an_argument_that_is_also_found_elsewhere():
    state = np.zeros(2)

    @mx.jit
    def f(x):
        state[:] = x + 1
        return x * 1

    assert f(np.ones(2)).tolist() == [1.0, 1.0]
    assert state.tolist() == [2.0, 2.0]
    assert f(state).tolist() == [3.0, 3.0]
    assert f(np.ones(2)).tolist() == [1.0, 1.0]


def test_overlapping_assignment():
    def move(x):
        x[1:] = x[:-1]
        x[::2] += x[1::2]
        return x

    compiled = mx.jit(move)
    assert compiled(np.arange(6.0)).tolist() == move(np.arange(6.0)).tolist()


def test_results_that_are_arguments_or_views_share_memory():
    compiled = mx.jit(lambda x: (x, x.T, x[0]))
    x = data(2, 3)
    same, turned, row = compiled(x)
    row[:] = 9
    assert x[0].tolist() == same[0].tolist() == turned[:, 0].tolist() == [9.0, 9.0, 9.0]


def test_random_numbers_are_those_of_the_function():
    def draw(x):
        noise = np.random.normal(size=x.shape)
        return np.random.uniform(0, x + 1), npx.dropout(noise, p=0.5), np.random.randint(0, 9, size=3)

    compiled = mx.jit(draw)
    x = np.abs(data(4))
    for _ in range(3):
        mx.random.seed(5)
        with autograd.train_mode():
            found = compiled(x), compiled(x)
        mx.random.seed(5)
        with autograd.train_mode():
            expected = draw(x), draw(x)
        for pair in zip(found, expected, strict=True):
            assert list(map(bits, pair[0])) == list(map(bits, pair[1]))


def test_values_are_refused_with_the_line():
    @mx.jit
    def chosen(x):
        if x.sum() > 0:  # the line that is named
            return x
        return -x

    for needs in [chosen, mx.jit(lambda x: float(x[0])), mx.jit(lambda x: x.asnumpy())]:
        with pytest.raises(AbstractArrayError, match=re.escape("npx.cond")) as caught:
            needs(data(3))
        assert "test_jit.py" in str(caught.value)
    with pytest.raises(AbstractArrayError, match="the line that is named"):
        chosen(data(3))


def test_errors_leave_arguments_untouched():
    @mx.jit
    def broken(x):
        x += 1
        return np.dot(x, np.ones((7, 2)))

    x = data(3)
    with pytest.raises(ValueError, match="shape"):
        broken(x)
    assert bits(x) == bits(data(3))


def test_values_of_lengths_that_depend_on_values_run_as_they_are():
    compiled = mx.jit(lambda x: x[x > 0] * len(x[x > 1]))
    for seed in range(3):
        x = data(9, seed=seed)
        assert bits(compiled(x)) == bits(x[x > 0] * len(x[x > 1]))
    assert compiled.num_dynamic == 1
    (report,) = compiled.trace_report()
    assert report["note"].startswith("shapes of results depend on values: a length is converted to a Python integer")


def test_dataclasses_are_returned():
    @dataclasses.dataclass(frozen=True)
    class Pair:
        first: object
        rest: tuple
        name: str = "a"

    compiled = mx.jit(lambda x: {"pair": Pair(x + 1, (x * 2, 3))})
    for seed in range(2):
        x = data(3, seed=seed)
        pair = compiled(x)["pair"]
        assert type(pair) is Pair
        assert bits(pair.first) == bits(x + 1)
        assert bits(pair.rest[0]) == bits(x * 2)
        assert (pair.rest[1], pair.name) == (3, "a")


def test_containers_that_would_keep_stand_ins_are_refused():
    class Rows(list):
        pass

    class Holder:
        def __init__(self, x):
            self.parts = {"x": [x]}

    for make in (lambda x: Rows([x]), Holder, lambda x: collections.OrderedDict(x=x), lambda x: {1: Rows([1, [x]])}):
        with pytest.raises(TypeError, match="holds arrays that a graph does not see"):
            mx.jit(lambda x, make=make: make(x * 2))(data(3))
    assert mx.jit(lambda x: Rows([1]))(data(3)) == [1]


def test_values_that_a_trace_has_seen_are_guarded():
    limit = np.array(2)
    compiled = mx.jit(lambda x: x[: int(limit)] * 1)
    assert compiled(data(5)).shape == (2,)
    limit[...] = 4
    assert compiled(data(5)).shape == (4,)


@pytest.mark.parametrize(
    "read", [lambda x: x.tolist(), lambda x: x.asnumpy().tolist(), lambda x: list(x.tobytes()[::8])]
)
def test_arrays_that_a_trace_has_seen_are_guarded(read):
    shape = np.array([2, 3])
    compiled = mx.jit(lambda x: x.reshape(read(shape)) * 1)
    assert compiled(data(6)).shape == (2, 3)
    shape[...] = np.array([3, 2])
    assert compiled(data(6)).shape == (3, 2)


@pytest.mark.parametrize("length", [3, 5000])
@pytest.mark.parametrize("dtype", [None, "float32", "float16", "int64"])
@pytest.mark.parametrize("source", ["float32", "float64", "int64"])
def test_arrays_of_numpy_are_constants_in_a_trace(length, dtype, source):
    given = numpy.arange(length).astype(source)
    compiled = mx.jit(lambda x: x + np.array(given, dtype=dtype))
    expected = np.ones(length) + np.array(given, dtype=dtype)
    assert bits(compiled(np.ones(length))) == bits(expected)
    given[...] = 0  # a constant is a copy
    assert bits(compiled(np.ones(length))) == bits(expected)


def test_arguments_without_a_hash_are_refused():
    with pytest.raises(TypeError, match="'set'"):
        mx.jit(lambda x: x)({1, 2})


def test_gradients_flow_through_compiled_functions():
    weight = data(4, 3)
    weight.attach_grad()

    def loss(x):
        hidden = np.tanh(np.dot(x, weight)) * 1.0
        return (hidden * hidden).sum(), hidden

    x = data(5, 4, seed=2)
    x.attach_grad()
    grads = []
    for f in (loss, mx.jit(loss)):
        with autograd.record():
            value, hidden = f(x)
            total = value * 3 + hidden[0, 0]
        total.backward()
        grads.append((bits(weight.grad), bits(x.grad), bits(value)))
    assert grads[0] == grads[1]


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("is_computed", [True, False])
def test_arguments_that_are_computed_from_one_another(depth, is_computed):
    # The gradient of a function ends at its arguments, whatever they have to do with one another.
    weight, x = np.array([0.5, -1.0]), np.array([[1.0, 2.0]])

    def function(x, state):
        return np.tanh(x * weight + state * x)

    found = []
    for step in (function, mx.jit(function)):
        for array in (weight, x):
            array.attach_grad()
        with autograd.record():
            state = x * 2 if is_computed else np.zeros((1, 2))
            for _ in range(depth):
                state = step(x, state)
        state.backward()
        found.append([array.asnumpy() for array in (state, x.grad, weight.grad)])
    for mine, theirs in zip(*found, strict=True):
        numpy.testing.assert_allclose(mine, theirs, rtol=1e-5)


def test_second_order_gradients_of_arguments_computed_from_one_another():
    x = np.array([0.5, 2.0])
    found = []
    for step in (lambda x, s: x * s * s, mx.jit(lambda x, s: x * s * s)):
        x.attach_grad()
        with autograd.record():
            y = step(x, x * x)
            dx = autograd.grad(y, [x], create_graph=True)[0]
        dx.backward()
        found.append(x.grad.asnumpy())
    # x^5 twice differentiated.
    numpy.testing.assert_allclose(found[1], 20 * x.asnumpy() ** 3, rtol=1e-5)
    numpy.testing.assert_allclose(found[0], found[1], rtol=1e-5)


def test_overwritten_values_are_found_in_backward():
    x = data(3)
    x.attach_grad()
    compiled = mx.jit(lambda x: np.exp(x))
    with autograd.record():
        y = compiled(x)
    y[:] = 0
    with pytest.raises(AutogradError, match="overwritten"):
        y.backward()
    with autograd.record():
        y = mx.jit(lambda x: (x * x).sum())(x)
    y.backward()
    with pytest.raises(AutogradError, match="freed"):
        y.backward()


def test_whole_training_step():
    def run(compile_it):
        weight, rate = data(4), np.array(0.5)
        weight.attach_grad()

        def step(x):
            with autograd.record():
                loss = ((weight * x) ** 2).sum()
            loss.backward()
            weight[:] -= rate * weight.grad
            return loss

        step = mx.jit(step) if compile_it else step
        losses = [step(data(4, seed=i)).item() for i in range(3)]
        rate[...] = 0.1
        return [*losses, step(data(4)).item()], bits(weight), bits(weight.grad)

    assert run(True) == run(False)


def test_nested_functions_are_part_of_the_graph():
    inner = mx.jit(lambda x: np.exp(x) * 2)
    outer = mx.jit(lambda x: inner(x) + inner(x * 2))
    x = data(4)
    assert bits(outer(x)) == bits(np.exp(x) * 2 + np.exp(x * 2) * 2)
    assert inner.trace_report() == []


def test_graphs_can_be_switched_off():
    calls = []
    compiled = mx.jit(lambda x: calls.append(1) or x + 1)
    compiled(data(2))
    compiled(data(2))
    with mx.config(jit=False):
        compiled(data(2))
    assert len(calls) == 2


def test_memory_is_shared_by_intermediate_results():
    def long(x):
        for _ in range(8):
            x = np.sort(x * 1.5)
        return x.sum()

    report = mx.jit(long)
    report(data(1000))
    (entry,) = report.trace_report()
    assert entry["arena_bytes"] <= 2 * 4096 + 64 < entry["unshared_bytes"]


def test_threads_share_a_compiled_function():
    weight = data(64, 64)
    compiled = mx.jit(lambda x: np.tanh(np.dot(x, weight)).sum(axis=1))
    inputs = [data(8, 64, seed=i) for i in range(8)]
    expected = [bits(compiled(x)) for x in inputs]
    wrong = []

    def work(i):
        for turn in range(60):
            k = (i + turn) % 8
            if bits(compiled(inputs[k])) != expected[k]:
                wrong.append((i, turn))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_passes_can_be_left_out():
    def wasteful(x):
        unused = np.exp(x) * 2  # noqa: F841  what the pass removes
        return np.tanh(x) + np.tanh(x)

    x = data(3)
    sizes = {}
    for off in [(), ("remove_dead_nodes",), ("merge_common_nodes",), ("fuse",)]:
        compiled = mx.jit(wasteful, passes_off=off)
        assert bits(compiled(x)) == bits(wasteful(x))
        (report,) = compiled.trace_report()
        sizes[off] = (report["traced_nodes"], report["nodes"], report["steps"])
    assert sizes[()] == (5, 2, 1)
    assert sizes["remove_dead_nodes",][1] == 4
    assert sizes["merge_common_nodes",][1] == 3
    assert sizes["fuse",][2] == 2


def test_graphs_read_like_code():
    compiled = mx.jit(lambda x: np.tanh(x * 2).T)
    compiled(data(2, 3))
    text = str(compiled.graphs[0])
    assert re.search(r"b0: float32 \(2, 3\) = argument 0\n", text)
    assert re.search(r"b1: float32 \(2, 3\) = multiply\(b0, 2\)  # .*test_jit.py:\d+\n", text)
    assert re.search(r"return b2\[\(3, 2\) strides \[1, 3\] offset 0\]", text)


def test_compiled_functions_are_freed():
    weight = data(3)
    compiled = mx.jit(lambda x: x + weight)
    compiled(data(3))
    gone = weakref.ref(compiled)
    del compiled
    gc.collect()
    assert gone() is None


def test_second_order_gradients_through_compiled_functions():
    weight = data(3, 2)
    weight.attach_grad()

    def energy(x):
        hidden = np.tanh(np.dot(x, weight)) * 1.0
        hidden[0] = hidden[1] * 2
        return (hidden.T[1:] ** 3).sum() + npx.dropout(hidden, p=0.5).sum()

    x = data(4, 3, seed=3)
    x.attach_grad()
    found = []
    for f in (energy, mx.jit(energy)):
        mx.random.seed(4)
        with autograd.record():
            value = f(x)
            first = autograd.grad(value, x, create_graph=True)
            penalty = (first * first).sum()
        penalty.backward()
        found.append((bits(value), bits(first), bits(x.grad), bits(weight.grad)))
    assert found[0] == found[1]


def test_constants_of_forgotten_graphs_may_call_the_function():
    called = []

    class Scale:
        def __init__(self, value):
            self.value = value

        def __eq__(self, other):
            return isinstance(other, Scale) and other.value == self.value

        def __hash__(self):
            return hash(self.value)

        def __del__(self):
            called.append(float(scaled(np.ones(1), 3)[0]))

    @mx.jit
    def scaled(x, scale):
        return x * (scale.value if isinstance(scale, Scale) else scale)

    # More forms than are kept: the oldest graph is dropped with its constants.
    for i in range(70):
        assert float(scaled(np.ones(1), Scale(i))[0]) == i
    assert called
    assert set(called) == {3.0}


def test_threads_trace_a_function_at_once():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        doubled = mx.jit(lambda x, *more: x * 2)
        inputs = [np.arange(n) for n in range(1, 160)]
        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(doubled, inputs))
    finally:
        sys.setswitchinterval(interval)
    assert [y.tolist() for y in found] == [(x * 2).tolist() for x in inputs]
