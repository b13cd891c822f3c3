"""Objects of other classes in calls of our functions: NumPy's protocol `__array_ufunc__`."""

import pytest

import mxnet as mx


class Recorder:
    """Answers with what it was asked."""

    def __array_ufunc__(self, function, method, *inputs, **options):
        return function, method, inputs, options


class Shy:
    def __array_ufunc__(self, *_, **__):
        return NotImplemented


class OptOut:
    __array_ufunc__ = None

    def __radd__(self, other):
        return "radd"


def test_another_class_answers_in_the_place_of_the_function():
    x, other = mx.np.ones(2), Recorder()
    function, method, inputs, options = mx.np.add(x, other, dtype="float64")
    assert function is mx.np.add and method == "__call__" and options == {"dtype": "float64"}
    assert inputs[0] is x and inputs[1] is other
    assert (x + other)[2][1] is other and (x + other)[2][0] is x


def test_outputs_are_a_tuple_and_left_out_where_there_are_none():
    x, other = mx.np.ones(2), Recorder()
    assert mx.np.sin(x, other)[3] == {"out": (other,)}
    assert mx.np.sin(x, out=other)[3] == {"out": (other,)}
    assert mx.np.sin(other, None)[3] == {}
    assert mx.np.modf(x, out=(None, other))[3] == {"out": (None, other)}
    assert mx.np.add(other, 1, sig="ii->i")[3] == {"signature": "ii->i"}
    with pytest.raises(TypeError, match="tuple of 2"):
        mx.np.modf(x, out=other)
    with pytest.raises(ValueError, match="exactly one entry per ufunc output: 2, found 1"):
        mx.np.modf(x, out=(other,))
    with pytest.raises(TypeError, match="from 2 to 3 positional arguments but 1"):
        mx.np.add(other)


def test_derived_classes_are_asked_first():
    class Derived(Recorder):
        def __array_ufunc__(self, *_, **__):
            return "derived"

    assert mx.np.add(Recorder(), Derived()) == "derived"


def test_the_next_operand_is_asked_after_not_implemented_until_none_is_left():
    assert mx.np.add(Shy(), Recorder())[1] == "__call__"
    with pytest.raises(TypeError, match=r"all returned NotImplemented .*: 'Shy'"):
        mx.np.add(mx.np.ones(2), Shy())


def test_none_opts_out_of_functions_and_keeps_its_operators():
    assert mx.np.ones(2) + OptOut() == "radd"
    for call in (lambda: mx.np.add(OptOut(), 1), lambda: mx.np.negative(OptOut())):
        with pytest.raises(TypeError, match="operand 'OptOut' does not support ufuncs"):
            call()


def test_our_arrays_answer_for_our_functions_too():
    x = mx.np.ones(2)
    assert x.__array_ufunc__(mx.np.add, "__call__", x, x).tolist() == [2, 2]
    assert x.__array_ufunc__(mx.np.add, "__call__", x, Shy()) is NotImplemented
