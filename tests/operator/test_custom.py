"""Operators written in Python: values, gradients of both orders, errors, lifetimes."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as onp
import pytest

import mxnet as mx
from mxnet import autograd, gluon, np, npx, operator


class _Scale(operator.CustomOp):
    """y = factor * x**2; keeps the operand on itself between the passes, as MXNet's examples do."""

    alive: weakref.WeakSet[_Scale] = weakref.WeakSet()

    def __init__(self, factor: float) -> None:
        self.factor = factor
        self.alive.add(self)

    def forward(self, is_train: bool, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        self.kept = in_data[0]
        self.was_training = is_train
        self.assign(out_data[0], req[0], self.factor * in_data[0] ** 2)

    def backward(self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
        assert (self.kept == in_data[0]).all()
        self.assign(in_grad[0], req[0], 2 * self.factor * self.kept * out_grad[0])


@operator.register("test_scale")
class _ScaleProp(operator.CustomOpProp):
    def __init__(self, factor: str = "1") -> None:
        super().__init__(need_top_grad=True)
        self.factor = float(factor)

    def create_operator(self, ctx: Any, in_shapes: Any, in_dtypes: Any) -> operator.CustomOp:
        assert ctx == mx.cpu()
        assert len(in_shapes) == len(in_dtypes) == 1
        return _Scale(self.factor)


class _Split(operator.CustomOp):
    """Two outputs of different shapes, and a counter among the auxiliary states."""

    def forward(self, is_train: bool, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        a, b = in_data
        self.assign(out_data[0], req[0], a * b)
        self.assign(out_data[1], req[1], a.sum(axis=1))
        aux[0][...] = aux[0] + 1

    def backward(self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
        a, b = in_data
        self.assign(in_grad[0], req[0], out_grad[0] * b + out_grad[1].reshape(-1, 1))
        self.assign(in_grad[1], "add", out_grad[0] * a)


@operator.register("test_split")
class _SplitProp(operator.CustomOpProp):
    def list_arguments(self) -> list[str]:
        return ["a", "b"]

    def list_outputs(self) -> list[str]:
        return ["product", "total"]

    def list_auxiliary_states(self) -> list[str]:
        return ["count"]

    def infer_shape(self, in_shape: Any) -> Any:
        return [in_shape[0], in_shape[0]], [in_shape[0], in_shape[0][:1]], [[1]]

    def create_operator(self, ctx: Any, in_shapes: Any, in_dtypes: Any) -> operator.CustomOp:
        return _Split()


@operator.define(name="test_power", shape=lambda x, *, degree: x)
def power(x: Any, *, degree: int = 2) -> Any:
    """Power of every element."""
    return x**degree


@power.gradient
def _power_gradient(dys: Any, inputs: Any, outputs: Any, *, degree: int) -> Any:
    return degree * inputs[0] ** (degree - 1) * dys[0]


def test_values_and_gradients_of_a_registered_class() -> None:
    x = np.array([[1.0, -2.0], [3.0, 0.5]])
    x.attach_grad()
    with autograd.record():
        y = operator.custom(x, op_type="test_scale", factor=3)
        z = (y * np.array([[1.0, 2.0], [3.0, 4.0]])).sum()
    z.backward()
    onp.testing.assert_array_equal(y.asnumpy(), 3 * x.asnumpy() ** 2)
    onp.testing.assert_array_equal(x.grad.asnumpy(), 6 * x.asnumpy() * [[1, 2], [3, 4]])


def test_two_calls_before_backward_keep_what_is_theirs() -> None:
    x, y = np.array([1.0, 2.0]), np.array([5.0])
    x.attach_grad()
    y.attach_grad()
    with autograd.record():
        total = (
            operator.custom(x, op_type="test_scale").sum() + operator.custom(y, op_type="test_scale", factor=2).sum()
        )
    total.backward()
    assert x.grad.tolist() == [2.0, 4.0]
    assert y.grad.tolist() == [20.0]


def test_instances_go_with_the_graph() -> None:
    gc.collect()
    before = len(_Scale.alive)
    x = np.array([1.0])
    x.attach_grad()
    with autograd.record():
        y = operator.custom(x, op_type="test_scale")
    assert len(_Scale.alive) == before + 1
    y.backward()
    del y
    gc.collect()
    assert len(_Scale.alive) == before
    operator.custom(x, op_type="test_scale")
    gc.collect()
    assert len(_Scale.alive) == before


def test_several_outputs_and_auxiliary_states() -> None:
    a, b = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[5.0, 6.0], [7.0, 8.0]])
    count = np.zeros(1)
    a.attach_grad()
    b.attach_grad()
    with autograd.record():
        product, total = operator.custom(a, b, count, op_type="test_split")
        head = product.sum() + 10 * total.sum()
    head.backward()
    onp.testing.assert_array_equal(product.asnumpy(), a.asnumpy() * b.asnumpy())
    assert total.tolist() == [3.0, 7.0]
    assert count.tolist() == [1.0]
    onp.testing.assert_array_equal(a.grad.asnumpy(), b.asnumpy() + 10)
    onp.testing.assert_array_equal(b.grad.asnumpy(), a.asnumpy())


def test_the_decorator_gives_gradients_of_both_orders() -> None:
    x = np.array([2.0, -1.0], dtype="float64")
    x.attach_grad()
    with autograd.record():
        y = power(x, degree=3)
        (first,) = autograd.grad([y.sum()], [x], create_graph=True)
        total = first.sum()
    total.backward()
    assert y.tolist() == [8.0, -1.0]
    assert first.tolist() == [12.0, 3.0]
    assert x.grad.tolist() == [12.0, -6.0]
    assert power(x).tolist() == [4.0, 1.0]
    assert power.__doc__ == "Power of every element."


def test_shape_rules_are_asked_without_values() -> None:
    from mxnet import _core

    assert "test_power" not in _core.namespaces["op"]
    assert callable(_core.added_operator("test_power"))


def test_errors_name_operator_and_argument() -> None:
    x = np.ones((2, 2))
    for message, call in [
        ("no operator is registered as 'no_such'", lambda: operator.custom(x, op_type="no_such")),
        (
            r"test_split: 1 arrays were given, needed are 3: a, b, count",
            lambda: operator.custom(x, op_type="test_split"),
        ),
        (
            r"argument `b` has shape \(3,\), the operator needs \(2, 2\)",
            lambda: operator.custom(x, np.ones(3), np.zeros(1), op_type="test_split"),
        ),
        ("an operator `test_scale` exists already", lambda: operator.register("test_scale")(_ScaleProp)),
        ("an operator `add` exists already", lambda: operator.define(name="add")(lambda x: x)),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="speed"):
        operator.custom(x, op_type="test_scale", speed=1)


def test_wrong_results_of_python_code_are_errors() -> None:
    @operator.define(name="test_wrong_shape")
    def wrong(x: Any) -> Any:
        return x.sum()

    @operator.define(name="test_raises")
    def raises(x: Any) -> Any:
        raise KeyError("mine")

    @operator.define(name="test_no_gradient")
    def nothing(x: Any) -> Any:
        return x * 2

    with pytest.raises(ValueError, match=r"output 0 has shape \(\) .*not what its shape rule says"):
        wrong(np.ones(3))
    with pytest.raises(KeyError, match="mine"):
        raises(np.ones(3))
    x = np.ones(3)
    x.attach_grad()
    with autograd.record():
        y = nothing(x)
    with pytest.raises(ValueError, match=r"test_no_gradient: the operator has no gradient"):
        y.backward()


def test_base_classes_say_what_is_missing() -> None:
    with pytest.raises(NotImplementedError, match="does not define forward"):
        operator.CustomOp().forward(True, [], [], [], [])
    with pytest.raises(NotImplementedError, match="does not define create_operator"):
        operator.CustomOpProp().create_operator(None, [], [])
    with pytest.raises(ValueError, match="req must be"):
        operator.CustomOp().assign(np.ones(1), "sum", 1)
    with pytest.raises(ValueError, match="take dense arrays"):
        operator.CustomOpProp().infer_storage_type(["csr"])


class _Masked(operator.CustomOp):
    """Keeps a value from `forward` for `backward`."""

    def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        self.mask = in_data[0].asnumpy() > 0
        self.assign(out_data[0], req[0], in_data[0] * np.array(self.mask, dtype="float32"))

    def backward(self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
        self.assign(in_grad[0], req[0], out_grad[0] * np.array(self.mask, dtype="float32"))


@operator.register("test_masked")
class _MaskedProp(operator.CustomOpProp):
    def create_operator(self, ctx: Any, in_shapes: Any, in_dtypes: Any) -> operator.CustomOp:
        return _Masked()


def _masked(x: np.ndarray) -> np.ndarray:
    return operator.custom(power(x, degree=2) * np.sign(x), op_type="test_masked")


def _trained(compiled: bool) -> list[bytes]:
    mx.random.seed(3)
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(5, in_units=3), gluon.nn.HybridLambda(_masked), gluon.nn.Dense(2, in_units=5))
    net.initialize(mx.init.Xavier())
    if compiled:
        net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    x = np.array(onp.random.default_rng(0).normal(size=(4, 3)).astype("float32"))
    for _ in range(3):
        with autograd.record():
            # Two calls before the gradients: each has its own state.
            loss = (net(x) ** 2).sum() + net(-x).sum()
        loss.backward()
        trainer.step(4)
    return [parameter.data().asnumpy().tobytes() for parameter in net.collect_params().values()]


def test_hybridized_networks_train_as_they_do_uncompiled() -> None:
    assert _trained(True) == _trained(False)


def test_a_whole_step_in_one_graph() -> None:
    def step(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = x.copy()
        x.attach_grad()
        with autograd.record():
            y = x
            for _ in range(10):
                y = operator.custom(y, op_type="test_masked") + operator.custom(-y, op_type="test_masked") / 2
        y.backward()
        return y, x.grad

    x = np.array([[1.0, -2.0], [0.5, -0.25]])
    for _ in range(2):
        for found, expected in zip(mx.jit(step)(x), step(x), strict=True):
            onp.testing.assert_array_equal(found.asnumpy(), expected.asnumpy())


def test_operands_that_forward_keeps_stay_what_they_were() -> None:
    # `test_scale` compares its operand with what it kept; here that is a value inside of the graph.
    compiled = mx.jit(lambda x: operator.custom(np.exp(np.sin(x).sum(axis=0)), op_type="test_scale") * 3)
    x, y = np.ones((2, 3)), np.zeros((2, 3))
    for z in (x, y):
        z.attach_grad()
    with autograd.record():
        first, second = compiled(x), compiled(y)
    first.backward()
    second.backward()
    with autograd.record():
        expected = operator.custom(np.exp(np.sin(x).sum(axis=0)), op_type="test_scale") * 3
    found = x.grad.copy()
    expected.backward()
    onp.testing.assert_array_equal(found.asnumpy(), x.grad.asnumpy())


def test_instances_go_with_the_runs_of_a_graph() -> None:
    compiled = mx.jit(lambda x: operator.custom(x, op_type="test_scale", factor=2) + 1)
    gc.collect()
    before = len(_Scale.alive)
    x = np.array([1.0, 2.0])
    compiled(x)
    x.attach_grad()
    for _ in range(3):
        with autograd.record():
            first, second = compiled(x), compiled(x * 2)
            total = first + second
        total.backward()
        assert x.grad.tolist() == [20.0, 40.0]
    del first, second, total
    mx.waitall()
    gc.collect()
    assert len(_Scale.alive) <= before + 1


def test_memory_of_results_of_python_code_is_freed_after_a_run() -> None:
    made: list[weakref.ref[Any]] = []

    class Memory(onp.ndarray):
        pass

    @operator.define(name="test_foreign_results")
    def foreign(x: Any) -> Any:
        memory = onp.ones(1000, "float32").view(Memory)
        made.append(weakref.ref(memory))
        return mx.npx.from_numpy(memory, zero_copy=True)

    captured = np.zeros(1000)

    @mx.jit
    def function(x: np.ndarray) -> None:
        captured[:] = foreign(x)

    for _ in range(20):
        function(np.ones(1000))
    mx.waitall()
    gc.collect()
    assert captured.tolist() == [1.0] * 1000
    assert len(made) >= 20
    assert sum(memory() is not None for memory in made) <= 2


def test_a_compiled_function_runs_equal_calls_of_python_code_as_often_as_it_says() -> None:
    calls = []

    @operator.define(name="test_counts_calls")
    def counts(x: Any) -> Any:
        calls.append(1)
        return x * len(calls)

    x = np.array([1.0, 2.0])
    compiled = mx.jit(lambda x: counts(x) + counts(x))
    compiled(x)
    calls.clear()
    assert compiled(x).tolist() == [3.0, 6.0]
    assert len(calls) == 2


def test_a_taken_name_of_the_gradient_adds_nothing() -> None:
    operator.define(lambda x: x, name="test_taken.gradient")
    with pytest.raises(ValueError, match=r"gradient of `test_taken` needs the name `test_taken\.gradient`"):
        operator.define(lambda x: x, name="test_taken")
    from mxnet import _core

    with pytest.raises(ValueError, match="there is no operator `test_taken`"):
        _core.added_operator("test_taken")


def test_a_gradient_names_operands_that_are_missing() -> None:
    from mxnet import _core

    @operator.define(name="test_operands")
    def scaled(x: Any) -> Any:
        return x * 2

    gradient = _core.added_operator("test_operands.gradient")
    with pytest.raises(ValueError, match=r"test_operands\.gradient: .* 3 outputs; found 2 operands"):
        gradient([np.ones(3), np.ones(3)], "{}", 3)


def test_operands_of_any_number_and_parameters_of_any_name() -> None:
    @operator.define(name="test_sum_of_all")
    def total(*xs: Any, factor: float = 1, **more: float) -> Any:
        return factor * sum(xs[1:], xs[0]) + more.get("bias", 0)

    @total.gradient
    def _(dys: Any, inputs: Any, outputs: Any, *, factor: float, **more: float) -> Any:
        return [factor * dys[0] for _ in inputs]

    xs = [np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array([5.0, 6.0])]
    for x in xs:
        x.attach_grad()
    with autograd.record():
        y = total(*xs, factor=onp.int64(2), bias=0.5)
    y.backward()
    assert y.tolist() == [18.5, 24.5]
    assert [x.grad.tolist() for x in xs] == [[2.0, 2.0]] * 3


def test_results_have_memory_of_their_own() -> None:
    same = operator.define(lambda x: x, name="test_same")
    reverse = operator.define(lambda x: x[::-1], name="test_reverse_view")
    twice = operator.define(lambda x: (x, x), name="test_twice", shape=lambda x: [x, x])
    same.gradient(lambda dys, inputs, outputs: dys[0])

    class Careless(operator.CustomOp):
        def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
            out_data[0] = in_data[0]

    @operator.register("test_careless")
    class _CarelessProp(operator.CustomOpProp):
        def create_operator(self, ctx: Any, in_shapes: Any, in_dtypes: Any) -> operator.CustomOp:
            return Careless()

    def first(x: Any) -> Any:
        return twice(x)[0]

    for call in (same, reverse, first, lambda x: operator.custom(x, op_type="test_careless")):
        for function in (call, mx.jit(call)):
            x = np.array([1.0, 2.0])
            y = function(x)
            y[...] = 7
            assert x.tolist() == [1.0, 2.0]
    a, b = twice(np.array([1.0, 2.0]))
    a[...] = 7
    assert b.tolist() == [1.0, 2.0]
    x, dy = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    x.attach_grad()
    for function in (same, mx.jit(same)):
        with autograd.record():
            y = function(x)
        y.backward(dy)
        assert x.grad.tolist() == [3.0, 4.0]
        x.grad[...] = 7
        assert dy.tolist() == [3.0, 4.0]


def test_results_that_python_code_keeps_are_copied() -> None:
    kept = np.array([1.0, 2.0])
    buffers: list[Any] = []

    def new(x: Any) -> Any:
        return x + 1

    def view_of_kept(x: Any) -> Any:
        return kept[::-1]

    def buffer(x: Any) -> Any:
        buffers.append(x * 2)
        return buffers[-1]

    for function, expected in ((lambda x: kept, [1, 2]), (view_of_kept, [2, 1]), (buffer, [6, 8]), (new, [4, 5])):
        call = _made(function)
        for used in (call, mx.jit(call)):
            y = used(np.array([3.0, 4.0]))
            assert y.tolist() == expected
            y[...] = 7
            assert kept.tolist() == [1, 2]
            kept[...] = 0
            for memory in buffers:
                assert memory.tolist() == [6, 8]
                memory[...] = 0
            assert y.tolist() == [7, 7]
            kept[...] = [1, 2]
            buffers.clear()


def test_results_and_gradients_over_memory_of_numpy_are_copied() -> None:
    kept = onp.array([1, 2], "float32")
    call = _made(lambda x: npx.from_numpy(kept))
    call.gradient(lambda dys, inputs, outputs: npx.from_numpy(kept))
    for used in (call, mx.jit(call)):
        x = np.array([3.0, 4.0])
        x.attach_grad()
        with autograd.record():
            y = used(x)
        y.backward()
        assert y.tolist() == x.grad.tolist() == [1, 2]
        y[...] = 7
        x.grad[...] += 5
        assert kept.tolist() == [1, 2]


_NUM_OPERATORS = iter(range(1000))


def _made(function: Any, shape: Any = None) -> Any:
    return operator.define(function, name=f"test_bad_{next(_NUM_OPERATORS)}", shape=shape)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: None, "the function must return an array or a list of arrays, not 'NoneType'"),
        (lambda x: 3.0, "the function must return an array or a list of arrays, not 'float'"),
        (lambda x: [x.asnumpy()], "the function must return arrays of `mx.np`; result 0 is 'numpy.ndarray'"),
        (lambda x: [None], "the function must return arrays of `mx.np`; result 0 is 'NoneType'"),
    ],
)
def test_functions_that_return_no_arrays_are_errors(function: Any, message: str) -> None:
    with pytest.raises(TypeError, match=r"test_bad_\d+: " + message):
        _made(function)(np.ones(2))


@pytest.mark.parametrize("rule", [None, 3, (2,), ((-2,), "float32"), [], [((2,),)], "ab"])
def test_shape_rules_that_give_no_shapes_are_errors(rule: Any) -> None:
    with pytest.raises(TypeError, match=r"test_bad_\d+: the shape rule must return \(shape, dtype\)"):
        _made(lambda x: x * 1, lambda x: rule)(np.ones(2))


def test_errors_of_calls_name_the_operator() -> None:
    weighted = operator.define(lambda x, *, w: x * w, name="test_weighted")
    with pytest.raises(TypeError, match=r"test_weighted: parameter `w` must be what JSON can write: .*ndarray"):
        weighted(np.ones(2), w=np.ones(2))
    with pytest.raises(TypeError, match="test_weighted: missing a required"):
        weighted(np.ones(2))
    with pytest.raises(ValueError, match=r"test_bad_\d+: an operator without operands needs a shape rule"):
        _made(lambda: np.ones(2))()
    with pytest.raises(TypeError, match="define: an operator is made of a function, not 'int'"):
        operator.define(3)
    with pytest.raises(TypeError, match="register: 'test_no_prop' must be made of a subclass of CustomOpProp"):
        operator.register("test_no_prop")(_Scale)  # type: ignore[type-var]
    with pytest.raises(mx.error.UnsupportedError, match="test_weighted: no operator for operands"):
        weighted(mx.ragged.array([[1.0, 2.0], [3.0]]), w=2)
    with pytest.raises(mx.error.UnsupportedError, match=r"test_weighted\(\): no operator serves these kinds"):
        weighted(mx.sparse.csr_array(np.ones((2, 2))), w=2)


@pytest.mark.parametrize(
    ("members", "kind", "message"),
    [
        ({"infer_shape": lambda self, x: None}, TypeError, "infer_shape must return lists for operands, outputs"),
        ({"infer_shape": lambda self, x: (x,)}, TypeError, "infer_shape must return lists for operands, outputs"),
        ({"infer_shape": lambda self, x: (x, [3], [])}, TypeError, "infer_shape must return shapes of sizes"),
        ({"infer_shape": lambda self, x: (x, [(-1,)], [])}, TypeError, "infer_shape must return shapes of sizes"),
        ({"infer_shape": lambda self, x: (x, [], [])}, ValueError, "infer_shape gave 0 shapes for 1 outputs"),
        ({"infer_type": lambda self, x: (x, [], [])}, ValueError, "infer_type gave 0 types for 1 outputs"),
        ({"infer_type": lambda self, x: (["int32"], x, [])}, ValueError, "argument `data` has dtype float32, .* int32"),
        ({"create_operator": lambda self, *given: None}, TypeError, "create_operator must return a CustomOp"),
    ],
)
def test_rules_of_classes_that_make_no_sense_are_errors(members: Any, kind: Any, message: str) -> None:
    name = f"test_bad_{next(_NUM_OPERATORS)}"
    operator.register(name)(type("BadProp", (_ScaleProp,), members))
    with pytest.raises(kind, match=f"{name}: {message}"):
        operator.custom(np.ones(2), op_type=name)
