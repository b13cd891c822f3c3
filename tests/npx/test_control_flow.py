"""npx.cond, npx.foreach, npx.while_loop: values against loops in NumPy, gradients against differences."""

import math

import numpy
import pytest

import slopes
from mxnet import autograd, np, npx

RNG = numpy.random.default_rng(7)


def test_control_flow_is_a_module_with_the_same_functions():
    assert npx.control_flow.foreach is npx.foreach
    assert npx.control_flow.while_loop is npx.while_loop
    assert npx.control_flow.cond is npx.cond


# ---- foreach ----


def test_foreach_joins_outputs_and_carries_states():
    data = RNG.normal(size=(5, 3)).astype("float32")
    outputs, state = npx.foreach(lambda x, s: (x * s, x + s), np.array(data), np.zeros(3))
    s, rows = numpy.zeros(3, "float32"), []
    for x in data:
        rows.append(x * s)
        s = x + s
    numpy.testing.assert_array_equal(outputs.asnumpy(), rows)
    numpy.testing.assert_array_equal(state.asnumpy(), s)


def test_foreach_takes_and_gives_nested_containers():
    data = {"x": np.arange(3.0), "pair": (np.arange(6.0).reshape(3, 2), [np.ones((3, 1))])}

    def body(item, states):
        assert item["x"].shape == () and item["pair"][0].shape == (2,)
        total = states[0] + item["x"]
        return {"sum": total, "rest": [item["pair"][0] * 2, None]}, (total, {"h": states[1]["h"] + 1})

    outputs, states = npx.foreach(body, data, [np.zeros(()), {"h": np.zeros(2)}])
    assert outputs["sum"].asnumpy().tolist() == [0, 1, 3]
    assert outputs["rest"][0].asnumpy().tolist() == [[0, 2], [4, 6], [8, 10]]
    assert outputs["rest"][1] is None
    # The result is nested as the argument is, whichever sequence the body returns.
    assert isinstance(states, list)
    assert states[0].item() == 3 and states[1]["h"].asnumpy().tolist() == [3, 3]


def test_foreach_with_dicts_whose_keys_come_in_another_order():
    outputs, states = npx.foreach(
        lambda x, s: ({"a": x, "b": s["q"]} if x < 1 else {"b": s["q"], "a": x}, {"q": s["p"], "p": s["q"] + 1}),
        np.arange(3.0),
        {"p": np.array(10.0), "q": np.array(20.0)},
    )
    assert outputs["a"].asnumpy().tolist() == [0, 1, 2]
    assert outputs["b"].asnumpy().tolist() == [20, 10, 21]
    assert [states["p"].item(), states["q"].item()] == [22, 11]


def test_foreach_without_states_or_outputs():
    outputs, states = npx.foreach(lambda x, s: (x * 2, s), np.arange(3.0), [])
    assert outputs.asnumpy().tolist() == [0, 2, 4] and states == []
    outputs, total = npx.foreach(lambda x, s: ([], s + x), np.arange(4.0), np.zeros(()))
    assert outputs == [] and total.item() == 6


def test_foreach_without_steps_gives_empty_outputs():
    outputs, state = npx.foreach(lambda x, s: ((x.sum(), np.exp(x)), s), np.zeros((0, 2)), np.ones(()))
    assert [y.shape for y in outputs] == [(0,), (0, 2)]
    assert state.item() == 1
    with pytest.raises(ValueError, match="foreach: there is no step, and the shapes of the outputs of `body`"):
        npx.foreach(lambda x, s: (x[x > 0], s), np.zeros((0, 2)), np.ones(()))


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ((3, np.arange(3), []), TypeError, "`body` must be a function, found 'int'"),
        ((lambda x, s: (x, s), [1, 2], []), TypeError, r"`data\[0\]` must be an ndarray.*found 'int'"),
        ((lambda x, s: (x, s), [], []), ValueError, "`data` must hold at least one array"),
        ((lambda x, s: (x, s), np.array(1), []), ValueError, r"`data` must have at least one axis, found shape \(\)"),
        (
            (lambda x, s: (x, s), [np.arange(3), {"k": np.arange(4)}], []),
            ValueError,
            r"`data\[0\]` has 3 and `data\[1\]\['k'\]` has 4",
        ),
        ((lambda x, s: x, np.arange(3), []), TypeError, "`body` must return a pair.*found 'ndarray' in step 0"),
        ((lambda x, s: (x, 1), np.arange(3), []), TypeError, "`new states of body` must be an ndarray"),
        (
            (lambda x, s: (x, [s, s]), np.arange(3), np.ones(())),
            ValueError,
            r"new states of `body` are nested as \[array, array\] in step 0, `init_states` has array",
        ),
        (
            (lambda x, s: (x, [np.ones(3)]), np.arange(3), [np.ones(())]),
            ValueError,
            r"`init_states\[0\]` has shape \(3,\) and dtype float32 after step 0, it must keep shape \(\)",
        ),
        (
            (lambda x, s: (np.ones(int(x)), s), np.arange(1, 4), []),
            ValueError,
            r"`outputs` has shape \(2,\) and dtype float32 after step 1, step 0 has shape \(1,\)",
        ),
        (
            (lambda x, s: ([x] if x < 1 else [x, x], s), np.arange(3), []),
            ValueError,
            r"outputs of `body` are nested as \[array, array\] in step 1, step 0 has \[array\]",
        ),
    ],
)
def test_foreach_names_what_does_not_fit(arguments, error, message):
    with pytest.raises(error, match=message):
        npx.foreach(*arguments)


def test_gradients_of_foreach_are_the_slopes():
    def function(data, state, weight):
        outputs, state = npx.foreach(lambda x, s: (np.tanh(x * weight + s), np.sin(s * x) + weight), data, state)
        return [outputs, state]

    slopes.check(function, [RNG.normal(size=(4, 2)), RNG.normal(size=2), RNG.normal(size=2)], RNG)


def test_third_derivative_through_foreach():
    # Four multiplications by x: x**4, whose derivatives are 4 x**3, 12 x**2, 24 x.
    x = np.array(1.5, dtype="float64")
    x.attach_grad()
    with autograd.record():
        _, y = npx.foreach(lambda _, s: ([], s * x), np.zeros(4), np.ones((), dtype="float64"))
        for expected in (4 * 1.5**3, 12 * 1.5**2, 24 * 1.5):
            (y,) = autograd.grad(y, [x], create_graph=True)
            assert y.item() == pytest.approx(expected, rel=1e-14)


# ---- while_loop ----


def test_while_loop_ends_when_the_condition_fails():
    outputs, (i, total) = npx.while_loop(
        lambda i, total: i <= 5, lambda i, total: ([i + total], (i + 1, total + i)), [np.array([0]), np.array([1])], 10
    )
    assert outputs[0].asnumpy().ravel().tolist() == [1, 2, 4, 7, 11, 16, 0, 0, 0, 0]
    assert outputs[0].dtype == i.dtype and outputs[0].shape == (10, 1)
    assert [i.item(), total.item()] == [6, 16]


def test_while_loop_ends_after_max_iterations():
    outputs, i = npx.while_loop(lambda i: True, lambda i: (i * i, i + 1), np.array(2.0), max_iterations=3)
    assert outputs.asnumpy().tolist() == [4, 9, 16] and i.item() == 5


def test_while_loop_takes_a_dict_as_one_argument():
    outputs, state = npx.while_loop(
        lambda s: s["n"] < 3,
        lambda s: (None, {"n": s["n"] + 1, "y": s["y"] * 2}),
        {"n": np.array(0), "y": np.ones(2)},
        9,
    )
    assert outputs is None
    assert state["n"].item() == 3 and state["y"].asnumpy().tolist() == [8, 8]


def test_while_loop_without_steps_gives_zeros_of_the_right_form():
    outputs, loop_vars = npx.while_loop(
        lambda i, x: i < 0, lambda i, x: ((x.sum(axis=1), i), [i + 1, x]), [np.array([0]), np.ones((2, 3))], 4
    )
    assert [(y.shape, y.dtype) for y in outputs] == [((4, 2), "float32"), ((4, 1), "int64")]
    assert not outputs[0].asnumpy().any()
    assert loop_vars[1].shape == (2, 3)
    outputs, _ = npx.while_loop(lambda i: True, lambda i: (i, i), np.ones(2), max_iterations=0)
    assert outputs.shape == (0, 2)


@pytest.mark.parametrize(
    "keywords, error, message",
    [
        ({"cond": True}, TypeError, "`cond` must be a function, found 'bool'"),
        ({"func": None}, TypeError, "`func` must be a function, found 'NoneType'"),
        ({"loop_vars": [np.zeros(()), 1]}, TypeError, r"`loop_vars\[1\]` must be an ndarray"),
        ({"max_iterations": None}, ValueError, "`max_iterations` must be given"),
        ({"max_iterations": -1}, ValueError, "`max_iterations` must not be negative, found -1"),
        ({"max_iterations": 2.5}, TypeError, "float"),
        ({"cond": lambda i: np.ones(2)}, ValueError, r"`cond` must give one value, found shape \(2,\)"),
        ({"func": lambda i: i}, TypeError, "`func` must return a pair"),
        ({"func": lambda i: (i, [i, i])}, ValueError, r"\[array, array\] in step 0, `loop_vars` has \[array\]"),
        (
            {"func": lambda i: (i, [i.astype("int32")])},
            ValueError,
            r"`loop_vars\[0\]` has shape \(\) and dtype int32 after step 0, it must keep shape \(\) and dtype float32",
        ),
    ],
)
def test_while_loop_names_what_does_not_fit(keywords, error, message):
    fitting = {
        "cond": lambda i: i < 3,
        "func": lambda i: (i, [i + 1]),
        "loop_vars": [np.zeros(())],
        "max_iterations": 5,
    }
    npx.while_loop(**fitting)
    with pytest.raises(error, match=message):
        npx.while_loop(**(fitting | keywords))


def test_gradients_of_while_loop_are_the_slopes():
    def function(x, w):
        count = np.zeros((), dtype="float64")
        outputs, (_, y) = npx.while_loop(
            lambda n, _: n < 3, lambda n, y: (y * w, (n + 1, np.tanh(y * w) + x)), (count, x), max_iterations=5
        )
        return [outputs, y]

    slopes.check(function, [RNG.normal(size=3), RNG.normal(size=3)], RNG)


# ---- cond ----


@pytest.mark.parametrize("value, expected", [(1.0, 42.0), (4.0, 3.0)])
def test_cond_runs_the_chosen_function_only(value, expected):
    ran = []

    def note(name, result):
        ran.append(name)
        return result

    y = npx.cond(
        lambda a, b: a * b < 5,
        lambda a, b: note("then", (a + 5) * (b + 5)),
        lambda a, b: note("else", (a - 5) * (b - 5)),
        [np.array([value]), np.array([2.0])],
    )
    assert y.asnumpy().tolist() == [expected]
    assert ran == ["then" if value == 1 else "else"]


def test_cond_takes_a_value_and_one_array_and_gives_containers():
    x = np.array([1.0, 2.0])
    result = npx.cond(x.sum() > 2, lambda x: {"a": [x, x * 2]}, lambda x: {"a": [x, x]}, x)
    assert result["a"][1].asnumpy().tolist() == [2, 4]
    result = npx.cond(False, lambda p: p["k"], lambda p: -p["k"], {"k": x})
    assert result.asnumpy().tolist() == [-1, -2]


def test_cond_names_what_does_not_fit():
    x = np.ones(2)
    with pytest.raises(ValueError, match=r"choice: `pred` must give one value, found shape \(2,\)"):
        npx.cond(lambda x: x > 0, lambda x: x, lambda x: x, x, name="choice")
    with pytest.raises(TypeError, match="cond: `else_func` must be a function, found 'float'"):
        npx.cond(True, lambda x: x, 1.0, x)
    with pytest.raises(TypeError, match=r"cond: `inputs\[1\]` must be an ndarray.*found 'int'"):
        npx.cond(True, lambda x: x, lambda x: x, [x, 1])
    with pytest.raises(TypeError, match=r"cond: `result of then_func` must be an ndarray.*found 'int'"):
        npx.cond(True, lambda x: 1, lambda x: x, x)


def test_gradients_of_cond_are_the_slopes():
    def function(x, w):
        return npx.cond(lambda x, w: x.sum() > 0, lambda x, w: np.sin(x * w), lambda x, w: x * x * w, [x, w])

    slopes.check(function, [numpy.array([1.0, 0.5]), RNG.normal(size=2)], RNG)
    slopes.check(function, [numpy.array([-1.0, 0.5]), RNG.normal(size=2)], RNG)


def test_newtons_method_as_a_loop_has_the_derivative_of_its_limit():
    # The square root by Newton's steps: what it converges to has the slope 1 / (2 sqrt(a)).
    a = np.array(2.0, dtype="float64")
    a.attach_grad()
    with autograd.record():
        _, root = npx.while_loop(
            lambda y: np.abs(y * y - a) > 1e-12, lambda y: ([], (y + a / y) / 2), np.ones((), dtype="float64"), 50
        )
    root.backward()
    assert root.item() == pytest.approx(math.sqrt(2), rel=1e-12)
    assert a.grad.item() == pytest.approx(0.5 / math.sqrt(2), rel=1e-9)
