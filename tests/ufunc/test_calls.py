"""Calls with NumPy's keywords: `out`, `where`, `casting`, `order`, `dtype`, `subok`, `signature`."""

import numpy as np
import pytest
from numpy._core._exceptions import UFuncTypeError

import mxnet as mx

A = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def a():
    return mx.np.array(A)


def test_out_is_an_array_a_tuple_or_positional(a):
    for give in (lambda o: {"out": o}, lambda o: {"out": (o,)}):
        out = mx.np.zeros((2, 3))
        assert mx.np.add(a, 1, **give(out)) is out
        assert np.array_equal(out.asnumpy(), A + 1)
    out = mx.np.zeros((2, 3))
    assert mx.np.add(a, 1, out) is out
    assert mx.np.add(a, 1, None).tolist() == (A + 1).tolist()
    assert mx.np.add(a, 1, out=(None,)).tolist() == (A + 1).tolist()


def test_two_outputs_go_to_two_arrays_or_to_one_and_a_new_one(a):
    q, r = mx.np.zeros((2, 3)), mx.np.zeros((2, 3))
    result = mx.np.divmod(a, 2, q, r)
    assert result[0] is q
    assert result[1] is r
    assert np.array_equal(q.asnumpy(), A // 2)
    assert np.array_equal(r.asnumpy(), A % 2)
    r2 = mx.np.zeros((2, 3))
    new, same = mx.np.divmod(a, 2, out=(None, r2))
    assert same is r2
    assert np.array_equal(new.asnumpy(), A // 2)
    fraction, whole = mx.np.modf(a + 0.25, mx.np.zeros((2, 3)))
    assert np.array_equal(fraction.asnumpy(), np.full((2, 3), 0.25))
    assert np.array_equal(whole.asnumpy(), A)
    mantissa, exponent = mx.np.zeros((2, 3)), mx.np.zeros((2, 3), dtype="int32")
    mx.np.frexp(a, out=(mantissa, exponent))
    assert np.array_equal(mantissa.asnumpy(), np.frexp(A)[0])
    assert np.array_equal(exponent.asnumpy(), np.frexp(A)[1])


def test_out_may_be_larger_than_the_operands(a):
    out = mx.np.zeros((4, 2, 3))
    mx.np.add(a, 1, out=out)
    assert np.array_equal(out.asnumpy(), np.add(A, 1, out=np.zeros((4, 2, 3), np.float32)))
    with pytest.raises(ValueError, match=r"\(4,\)"):
        mx.np.add(a, 1, out=mx.np.zeros((4,)))


def test_out_may_be_a_numpy_array(a):
    out = np.zeros((2, 3))
    assert mx.np.add(a, 1, out=out) is out
    assert np.array_equal(out, A + 1)
    every_second = np.zeros((2, 6), np.float32)[:, ::2]
    mx.np.exp(a, out=every_second)
    assert np.allclose(every_second, np.exp(A), rtol=3e-7)
    frozen = np.zeros((2, 3))
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        mx.np.add(a, 1, out=frozen)
    with pytest.raises(TypeError, match="native byte order"):
        mx.np.add(a, 1, out=np.zeros((2, 3), ">f4"))


@pytest.mark.parametrize(
    "call, error, match",
    [
        (lambda m, a: m.add(a, 1, out=(1,)), TypeError, "ndarray, not 'int'|ArrayType"),
        (lambda m, a: m.add(a, 1, out=(None, None)), ValueError, "exactly one entry per ufunc output"),
        (lambda m, a: m.divmod(a, 1, out=a), TypeError, "must be a tuple of"),
        (lambda m, a: m.add(a), TypeError, r"add\(\) takes from 2 to 3 positional arguments but 1 was given"),
        (lambda m, a: m.add(a, 1, a, a), TypeError, r"add\(\) takes from 2 to 3 positional arguments but 4 were given"),
        (lambda m, a: m.add(a, 1, a, out=a), TypeError, "both a positional and keyword"),
        (lambda m, a: m.add(a, 1, foo=1), TypeError, r"add\(\) got an unexpected keyword argument 'foo'"),
        (lambda m, a: m.add(a, 1, subok=3), TypeError, "'subok' must be a boolean"),
        (lambda m, a: m.add(a, 1, casting="foo"), ValueError, "casting must be one of 'no', 'equiv', 'safe'"),
        (lambda m, a: m.add(a, 1, order="foo"), ValueError, "order must be one of 'C', 'F', 'A'"),
        (lambda m, a: m.add(a, 1, signature="zz->z"), (ValueError, TypeError), None),
        (lambda m, a: m.add(a, 1, signature="dd"), ValueError, "2 typecode.s. before and 1 after the -> sign"),
        (lambda m, a: m.add(a, 1, dtype="int32"), UFuncTypeError, "(?i)cannot cast ufunc 'add' input 0 from .*float32"),
        (
            lambda m, a: m.add(a, 1.5, out=m.zeros((2, 3), dtype="int32")),
            UFuncTypeError,
            "(?i)cannot cast .*output.*int32",
        ),
        (lambda m, a: m.add(a, a, casting="no", dtype="float64"), UFuncTypeError, "(?i)input 0 from .*float64.*'no'"),
        (lambda m, a: m.less(a, 1, dtype="float32"), TypeError, "(?i)no loop matching the specified signature"),
        (lambda m, a: m.bitwise_and(a, a), TypeError, "bitwise_and"),
        (lambda m, a: m.add(a, a, out=m.zeros((2, 3)), casting="no", signature="dd->d"), UFuncTypeError, "'no'"),
    ],
)
def test_refusals_are_numpys(call, error, match, a):
    with pytest.raises(error, match=match):
        call(mx.np, a)
    with pytest.raises(error, match=match):
        call(np, A)


def test_refusals_name_the_loops_there_are(a):
    with pytest.raises(TypeError, match=r"it has .*ff->\?, dd->\?"):
        mx.np.less(a, 1, dtype="float32")


def test_where_leaves_the_rest_of_out_alone(a):
    mask = np.array([True, False, True])
    out = mx.np.full((2, 3), -1.0)
    assert mx.np.add(a, a, out=out, where=mask) is out
    assert np.array_equal(out.asnumpy(), np.add(A, A, out=np.full((2, 3), -1, np.float32), where=mask))
    fresh = mx.np.add(a, a, where=mask)
    assert np.array_equal(fresh.asnumpy()[:, mask], (A + A)[:, mask])
    assert mx.np.add(1, 2, where=[[True], [True]]).shape == (2, 1)
    assert mx.np.add(a, a, where=1).tolist() == (A + A).tolist()
    assert mx.np.add(1, 2, out=out, where=mask) is out
    assert out.tolist() == [[3, -1, 3], [3, -1, 3]]
    q, r = mx.np.zeros((2, 3)), mx.np.zeros((2, 3))
    mx.np.divmod(a, 2, out=(q, r), where=mask)
    assert q.asnumpy()[:, 1].tolist() == [0, 0]
    assert r.asnumpy()[1, 0] == 1


def test_where_and_out_are_recorded(a):
    a.attach_grad()
    base = mx.np.full((2, 3), 5.0)
    base.attach_grad()
    mask = mx.np.array([True, False, True])
    with mx.autograd.record():
        out = base * 2
        mx.np.multiply(a, a, out=out, where=mask)
        total = out.sum()
    total.backward()
    assert np.array_equal(a.grad.asnumpy(), 2 * A * mask.asnumpy())
    assert np.array_equal(base.grad.asnumpy(), np.broadcast_to([0, 2, 0], (2, 3)))


def test_dtype_is_that_of_the_result(a):
    assert mx.np.add(a, 1, dtype="float64").dtype == np.float64
    assert mx.np.add(a, 1, dtype="int32", casting="unsafe").tolist() == (A + 1).astype(int).tolist()
    assert mx.np.less(1, 2, dtype=bool).dtype == np.bool_
    z = mx.np.array([3 + 4j])
    assert mx.np.abs(z, dtype="float32").tolist() == [5.0]
    assert mx.np.frexp(mx.np.array([3]), signature="d->di")[0].dtype == np.float64
    assert mx.np.modf(mx.np.array([3]), dtype="float64")[0].dtype == np.float64


def test_signature_is_a_text_or_a_tuple(a):
    assert mx.np.add(1, 2, signature="dd->d").dtype == np.float64
    assert mx.np.add(1, 2, sig="dd->d").dtype == np.float64
    assert mx.np.add(1, 2, signature=("f4", None, None)).dtype == np.float32
    assert mx.np.add(1, 2, signature=(None, None, np.float16)).dtype == np.float16
    assert mx.np.equal(a, 1, signature="dd->?").dtype == np.bool_
    with pytest.raises(ValueError, match="the signature of add needs 3 entries, found 2"):
        mx.np.add(a, 1, signature=("d", "d"))
    with pytest.raises(TypeError, match="both 'signature' and 'dtype'"):
        mx.np.add(1, 2, signature="dd->d", dtype="float32")


def test_casting_allows_and_forbids(a):
    i = mx.np.array([1, 2, 3])
    out = mx.np.zeros((2, 3), dtype="int32")
    mx.np.add(a, 0.75, out=out, casting="unsafe")
    assert np.array_equal(out.asnumpy(), np.add(A, 0.75, out=np.zeros((2, 3), "i4"), casting="unsafe"))
    assert mx.np.add(i, i, casting="no").tolist() == [2, 4, 6]
    with pytest.raises(UFuncTypeError, match="input 1 from int64 to float32 with casting rule 'safe'"):
        mx.np.add(a, i, casting="safe")
    with pytest.raises(mx.error.UFuncTypeError):
        mx.np.add(a, i, casting="equiv")


@pytest.mark.parametrize("order", "CFAK")
def test_order_is_that_of_new_arrays(order):
    for x in (A, A.T, np.asfortranarray(A)):
        ours = mx.np.array(x.copy()) if x.flags.c_contiguous else mx.np.array(x.T.copy()).T
        got = mx.np.add(ours, 1, order=order)
        assert got.asnumpy().tolist() == (x + 1).tolist()
        assert got.strides == np.add(x, 1, order=order).strides


def test_operands_are_whatever_becomes_an_array(a):
    for other in (2, 2.0, True, [1, 2, 3], (1, 2, 3), np.float64(2), np.int8(2), np.ones(3), [[1], [2]], mx.np.ones(3)):
        for x, y in ((a, other), (other, a)):
            wanted = np.multiply(*[o.asnumpy() if isinstance(o, mx.np.ndarray) else o for o in (x, y)])
            assert mx.np.multiply(x, y).tolist() == wanted.tolist()
    assert isinstance(mx.np.add([1, 2], [3, 4]), mx.np.ndarray)
    with pytest.raises(TypeError, match="not 'dict'"):
        mx.np.add(a, {})


def test_integers_with_negative_powers_are_refused():
    i = mx.np.array([2, 3])
    for call in (lambda: i**-1, lambda: i ** mx.np.array([1, -1]), lambda: mx.np.power(2, -1), lambda: (-2) ** (i - 3)):
        with pytest.raises(ValueError, match="Integers to negative integer powers are not allowed"):
            call().wait_to_read()
    big = mx.np.ones((200_000,), dtype="int64")
    with pytest.raises(ValueError, match="negative integer powers"):
        (big ** (big - 2)).wait_to_read()
    kept = mx.np.array([2, 3])
    with pytest.raises(ValueError, match="negative integer powers"):
        kept **= -1
    assert kept.tolist() == [2, 3]
    assert (mx.np.array([2.0]) ** -1).tolist() == [0.5]
    assert (mx.np.array([2], dtype="uint8") ** mx.np.array([3], dtype="uint8")).tolist() == [8]
    assert mx.np.power(mx.np.zeros((0,), dtype="int64"), -1).shape == (0,)


def test_integers_wrap_and_division_by_zero_gives_zero():
    top = mx.np.array([127, -128], dtype="int8")
    assert (top + top).tolist() == [-2, 0]
    assert (top * top).tolist() == [1, 0]
    assert mx.np.negative(top).tolist() == [-127, -128]
    zero = mx.np.zeros(2, dtype="int8")
    assert (top // zero).tolist() == (top % zero).tolist() == mx.np.fmod(top, zero).tolist() == [0, 0]
    assert (top // mx.np.array([-1, -1], dtype="int8")).tolist() == [-127, -128]


def test_python_integers_beyond_the_dtype():
    x = mx.np.array([1, 255], dtype="uint8")
    for number in (300, -1, 2**40, -(2**40)):
        with pytest.raises(OverflowError, match=f"Python integer {number} out of bounds for uint8"):
            x + number
        for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
            ours, theirs = getattr(mx.np, name), getattr(np, name)
            assert ours(x, number).tolist() == theirs(x.asnumpy(), number).tolist(), (name, number)
            assert ours(number, x).tolist() == theirs(number, x.asnumpy()).tolist(), (name, number)
    assert (x < 300).tolist() == [True, True]
    out = mx.np.zeros(2, dtype=bool)
    assert mx.np.less(x, 300, out=out) is out
    assert out.tolist() == [True, True]


def test_where_keeps_what_out_holds_in_its_own_dtype():
    out, ones = mx.np.full(3, 1.5), mx.np.ones(3, dtype="int64")
    assert mx.np.add(ones, ones, out=out, where=[1, 0, 1]).tolist() == [2, 1.5, 2]


def test_int64_and_uint64_are_compared_exactly():
    low, high = 2**60, 2**60 + 1
    for a, b in ((low, high), (high, low), (low, low), (-1, 2**64 - 1), (-low, low)):
        for name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"):
            x, y = mx.np.array([a, a]), mx.np.array([b, b], dtype="uint64")
            wanted = bool(getattr(np, name)(a, b))
            assert getattr(mx.np, name)(x, y).tolist() == [wanted] * 2, (name, a, b)
            wanted = bool(getattr(np, name)(b, a))
            assert getattr(mx.np, name)(y, x).tolist() == [wanted] * 2, (name, b, a)


def test_signatures_have_an_entry_for_each_operand():
    for sig in ("i", ("i4",)):
        with pytest.raises(TypeError, match="an entry for each of the 3 operands"):
            mx.np.add(1, 2, sig=sig)
    with pytest.raises(TypeError, match="both 'sig' and 'signature'"):
        mx.np.add(1, 2, sig="ii->i", signature="ii->i")


def test_out_may_be_an_ellipsis():
    assert mx.np.add(1, 2, out=...).tolist() == 3
    with pytest.raises(TypeError, match="only allowed as a keyword"):
        mx.np.add(1, 2, ...)
    with pytest.raises(TypeError, match="not per-operand"):
        mx.np.negative(1, out=(...,))


def test_integer_quotients_that_overflow_are_reported():
    x = mx.np.array([-128], dtype="int8")
    with mx.np.errstate(over="raise"):
        with pytest.raises(FloatingPointError, match="overflow encountered in floor_divide"):
            x // mx.np.array([-1], dtype="int8")
        assert (x % mx.np.array([-1], dtype="int8")).tolist() == [0]
    with mx.np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        mx.np.divmod(mx.np.array(1.0), mx.np.array(0.0))
