"""autograd.Function: several and constant outputs, second orders, what an instance keeps, errors."""

import gc
import weakref

import numpy
import pytest

import slopes
from mxnet import _core, autograd, np
from mxnet.error import AutogradError

RNG = numpy.random.default_rng(3)


def variable(values, dtype="float64"):
    x = np.array(values, dtype=dtype)
    x.attach_grad()
    return x


class SinCos(autograd.Function):
    """Sine and cosine; `backward` uses the outputs that it saved."""

    def forward(self, x):
        y, z = np.sin(x), np.cos(x)
        self.save_for_backward(y, z)
        return y, z

    def backward(self, dy, dz):
        y, z = self.saved_tensors
        return dy * z - dz * y


class Exp(autograd.Function):
    """The exponential function; `backward` uses the output, kept as an attribute in a list."""

    def forward(self, x):
        self.kept = [np.exp(x)]
        return self.kept[0]

    def backward(self, dy):
        return dy * self.kept[0]


class Product(autograd.Function):
    def forward(self, x, y):
        self.save_for_backward(x, y)
        return x * y

    def backward(self, dz):
        x, y = self.saved_tensors
        return dz * y, dz * x


@pytest.mark.parametrize(
    "function",
    [lambda x: SinCos()(x), lambda x: Exp()(x), lambda x: Product()(x, Exp()(x)), lambda x: SinCos()(Exp()(x))[1]],
    ids=["SinCos", "Exp", "Product of Exp", "SinCos of Exp"],
)
def test_gradients_of_first_and_second_order_are_the_slopes(function):
    slopes.check(function, [RNG.normal(size=(2, 3))], RNG)


def test_higher_orders_through_saved_outputs():
    x = variable([0.3, 1.2])
    with autograd.record():
        y = SinCos()(x)[0]
        for expected in (numpy.cos, lambda v: -numpy.sin(v), lambda v: -numpy.cos(v), numpy.sin):
            y = autograd.grad(y, x, create_graph=True)
            numpy.testing.assert_allclose(y.asnumpy(), expected(numpy.array([0.3, 1.2])), rtol=1e-14)


def test_without_create_graph_backward_is_not_recorded():
    seen = []

    class Noted(Exp):
        def backward(self, dy):
            seen.append(autograd.is_recording())
            return super().backward(dy)

    for create_graph in (False, True):
        x = variable([1.0])
        with autograd.record():
            autograd.grad(Noted()(x), x, create_graph=create_graph)
    assert seen == [False, True]


def test_outputs_that_are_no_floats_or_marked_are_constants():
    class WithParts(autograd.Function):
        def forward(self, x):
            largest, place = x.max(), x.argmax()
            rounded = np.round(x)
            self.mark_non_differentiable(rounded)
            return x * 2, place, rounded, largest

        def backward(self, dy, dplace, drounded, dlargest):
            assert dplace.dtype == "int64" and not drounded.asnumpy().any()
            return dy * 2

    x = variable([1.4, 2.6])
    with autograd.record():
        y, place, rounded, largest = WithParts()(x)
        total = (y * rounded).sum() + largest * 0
    assert place.item() == 1
    for constant in (place, rounded):
        with pytest.raises(AutogradError, match="head 0 was not computed while recording"):
            constant.backward()
    total.backward()
    assert x.grad.asnumpy().tolist() == [2, 6]


def test_missing_gradients_are_none():
    class First(Product):
        def backward(self, dz):
            return dz * self.saved_tensors[1], None

    x, y = variable([3.0]), variable([5.0])
    with autograd.record():
        z = First()(x, y)
    z.backward()
    assert [x.grad.item(), y.grad.item()] == [5, 0]


def test_outputs_that_are_inputs_stay_the_users_arrays():
    class Same(autograd.Function):
        def forward(self, x):
            return x

        def backward(self, dy):
            return dy * 3

    x = variable([1.0])
    place = _core.tape_entry(x)
    with autograd.record():
        y = Same()(x)
        slope = autograd.grad(y * x, x, create_graph=True)
    assert slope.item() == 1 + 3
    assert _core.tape_entry(x) == place


def keeps_result(function, x):
    function.result = function(x)


def keeps_result_of_saved(function, x):
    result = function(x)
    function.save_for_backward(*function.saved_tensors)
    function.copy = function.again = result


@pytest.mark.parametrize("keep", [keeps_result, keeps_result_of_saved])
def test_a_function_that_keeps_its_result_ends_with_the_last_name(keep):
    x = variable([1.0])
    with autograd.record():
        function = Exp()
        keep(function, x)
        gone = weakref.ref(function)
        del function
    gc.collect()
    assert gone() is None


def test_memory_of_functions_that_keep_their_results_is_constant():
    x = variable(numpy.ones(1000))

    def step():
        with autograd.record():
            function = Exp()
            function.y = function(x)
            assert function.y.asnumpy()[0] == pytest.approx(numpy.e)

    step()
    before = _core.memory_stats()["in_use_bytes"]
    for _ in range(50):
        step()
    assert _core.memory_stats()["in_use_bytes"] <= before


def test_a_result_kept_as_an_attribute_takes_part_in_second_orders():
    class Late(autograd.Function):
        def forward(self, x):
            return np.exp(x)

        def backward(self, dy):
            return dy * self.y

    x = variable([0.5])
    with autograd.record():
        function = Late()
        y = function(x)
        function.y = y
        slope = autograd.grad(y, x, create_graph=True)
        second = autograd.grad(slope, x)
    assert slope.item() == second.item() == pytest.approx(numpy.exp(0.5))


def test_saved_arrays_that_were_overwritten_are_named():
    x = variable([1.0])
    with autograd.record():
        middle = x * 2
        y = Product()(middle, x)
    middle[:] = 5.0
    with pytest.raises(AutogradError, match=r"Product: saved array 0 was overwritten in place"):
        y.backward()


def wrong(**methods):
    return type("Wrong", (Product,), methods)


@pytest.mark.parametrize(
    "function, error, message",
    [
        (wrong(forward=lambda self, x, y: 1.0), TypeError, "Wrong.forward must return ndarrays, found 'float'"),
        (wrong(forward=lambda self, x, y: (x, 1)), TypeError, "found 'int' at position 1"),
        (wrong(backward=lambda self, dz: dz), ValueError, "Wrong.backward returned 1 gradients for 2 inputs"),
        (wrong(backward=lambda self, dz: (dz, 1)), TypeError, "Wrong.backward must return .* 'int' for input 1"),
        (wrong(backward=lambda self, dz: 5), TypeError, "Wrong.backward must return ndarrays or None, found 'int'"),
        (
            wrong(backward=lambda self, dz: (dz, dz.sum())),
            ValueError,
            r"Wrong.backward returned a gradient of shape \(\) for input 1 of shape \(2,\)",
        ),
    ],
)
def test_errors_name_the_class(function, error, message):
    x = variable([1.0, 2.0])
    with autograd.record(), pytest.raises(error, match=message):
        function()(x, x * 1).backward()


def test_inputs_must_be_arrays_and_marked_arrays_outputs():
    with pytest.raises(TypeError, match="Product: input 1 must be an ndarray, found 'int'"):
        Product()(np.ones(2), 3)

    class Marks(Exp):
        def forward(self, x):
            self.mark_non_differentiable(x)
            return super().forward(x)

    with pytest.raises(ValueError, match="Marks: `mark_non_differentiable` was given an array that `forward` does"):
        Marks()(np.ones(2))


def test_a_second_pass_names_the_class():
    x = variable([1.0])
    with autograd.record():
        y = Exp()(x)
    y.backward()
    with pytest.raises(AutogradError, match=r"already freed by an earlier pass \(at `Exp`\)"):
        y.backward()


def test_retain_graph_allows_a_second_pass():
    x = variable([1.0])
    with autograd.record():
        y = Exp()(x)
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == pytest.approx(numpy.e)
