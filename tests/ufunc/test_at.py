"""`at`: in place, unbuffered."""

import numpy as np
import pytest

import mxnet as mx
from probing import generator

KEYS = [
    0,
    -1,
    [0, 2, 2, 1, 0],
    np.array([[0, 1], [1, 1]]),
    slice(None),
    slice(None, None, -2),
    ...,
    (slice(None), [0, 0, 2]),
    ([0, 1, 1], [2, 2, 2]),
    (1, slice(0, 2)),
    np.array([True, False, True, False]),
    (None, 0),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8", "float16", "complex64"])
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "minimum", "fmax", "negative", "square"])
def test_at_is_numpys_for_every_kind_of_index(name, dtype):
    if dtype == "uint8" and name == "negative":
        pytest.skip("nothing else than for int32")
    ours, theirs = getattr(mx.np, name), getattr(np, name)
    base = generator(name, dtype).integers(1, 5, (4, 3)).astype(dtype)
    for key in KEYS:
        x, y = mx.np.array(base), base.copy()
        shape = y[key].shape
        value = generator(name, str(key)).integers(1, 4, shape).astype(dtype)
        if theirs.nin == 1:
            ours.at(x, key)
            theirs.at(y, key)
        else:
            ours.at(x, key, mx.np.array(value))
            theirs.at(y, key, value)
        assert x.dtype == y.dtype
        assert np.array_equal(x.asnumpy(), y), key


def test_repeated_indices_count_repeatedly():
    rng = generator("repeated")
    where, what = rng.integers(0, 10, 5000), rng.uniform(0.99, 1.01, 5000)
    for name in ("add", "subtract", "multiply", "maximum", "minimum", "hypot", "logaddexp"):
        x, y = np.ones(10), mx.np.array(np.ones(10))
        getattr(np, name).at(x, where, what)
        getattr(mx.np, name).at(y, mx.np.array(where), mx.np.array(what))
        # Thousands of operations of an ulp each.
        assert np.allclose(y.asnumpy(), x, rtol=5000 * np.finfo(float).eps), name


def test_at_writes_through_views_of_any_layout():
    for view in (lambda x: x.T, lambda x: x[::2, ::-1], lambda x: x[1], lambda x: x.reshape(-1)):
        x, y = mx.np.zeros((4, 6), dtype="float64"), np.zeros((4, 6))
        mx.np.add.at(view(x), [0, 1, 1], 2)
        np.add.at(view(y), [0, 1, 1], 2)
        assert np.array_equal(x.asnumpy(), y)


def test_values_broadcast_and_numbers_promote_by_kind():
    x, y = mx.np.zeros((3, 4), dtype="float16"), np.zeros((3, 4), "float16")
    for module, a in ((mx.np, x), (np, y)):
        module.add.at(a, [0, 0, 2], 0.5)
        module.add.at(a, [0, 2], np.array([1, 2, 3, 4], "float16") if module is np else [1, 2, 3, 4])
        module.add.at(a, (slice(None), [0, 3]), np.array([[1], [2], [3]], "float16"))
    assert np.array_equal(x.asnumpy(), y)


def test_other_integer_types_serve_as_positions():
    for dtype in ("int8", "uint16", "int32"):
        x = mx.np.zeros(4)
        mx.np.add.at(x, mx.np.array([0, 3, 3], dtype=dtype), 1)
        assert x.tolist() == [1, 0, 0, 2]


@pytest.mark.parametrize(
    "call, error, match",
    [
        (lambda m, a: m.add.at([1, 2], 0, 1), TypeError, "first operand must be array"),
        (lambda m, a: m.add.at(a, 0), ValueError, "second operand needed for ufunc"),
        (lambda m, a: m.negative.at(a, 0, 2), ValueError, "second operand provided when ufunc is unary"),
        (lambda m, a: m.add.at(a, 7, 1), IndexError, "index 7 is out of bounds for axis 0 with size 4"),
        (lambda m, a: m.add.at(a, [0, -5], 1), IndexError, "index -5 is out of bounds for axis 0 with size 4"),
        (lambda m, a: m.add.at(a, [0, 1], [1, 2, 3]), ValueError, r"\(3,\)|not broadcastable"),
        (lambda m, a: m.divmod.at(a, 0, 1), ValueError, "(?i)single output"),
        (lambda m, a: m.add.at(a), TypeError, None),
    ],
)
def test_refusals_are_numpys(call, error, match):
    for module, a in ((mx.np, mx.np.ones(4)), (np, np.ones(4))):
        with pytest.raises(error, match=match):
            call(module, a)


def test_results_that_do_not_fit_the_elements_are_refused():
    with pytest.raises(TypeError, match="cannot cast output from complex64 to int32 under casting rule 'same_kind'"):
        mx.np.add.at(mx.np.ones(4, dtype="int32"), 0, 1.5j)
    with pytest.raises(OverflowError, match="Python integer 300 out of bounds for uint8"):
        mx.np.add.at(mx.np.ones(4, dtype="uint8"), 0, 300)


def test_sums_at_places_are_recorded():
    x, b = mx.np.array([1.0, 2.0, 3.0]), mx.np.array([1.0, 2.0, 4.0])
    for name, sign in (("add", 1), ("subtract", -1)):
        x.attach_grad()
        b.attach_grad()
        with mx.autograd.record():
            y = x * 1
            getattr(mx.np, name).at(y, [0, 0, 2], b)
            z = (y * y).sum()
        z.backward()
        values = np.array([1.0, 2.0, 3.0])
        getattr(np, name).at(values, [0, 0, 2], b.asnumpy())
        assert y.tolist() == values.tolist()
        assert x.grad.tolist() == (2 * values).tolist()
        assert b.grad.tolist() == (sign * 2 * values[[0, 0, 2]]).tolist()
    with mx.autograd.record():
        y = x * 1
        mx.np.add.at(y, slice(0, 2), b[:2])
        z = (y * y).sum()
    z.backward()
    assert x.grad.tolist() == (2 * y.asnumpy()).tolist()


def test_other_functions_at_places_say_that_they_have_no_gradient():
    x = mx.np.array([1.0, 2.0])
    x.attach_grad()
    with mx.autograd.record():
        y = x * 1
        with pytest.raises(mx.error.AutogradError, match=r"multiply\.at .* only add\.at and subtract\.at"):
            mx.np.multiply.at(y, 0, 2)
        with pytest.raises(mx.error.AutogradError):
            mx.np.add.at(x, 0, 2)
