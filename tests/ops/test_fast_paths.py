"""Small arrays give what NumPy gives, and what large arrays and recorded calls give."""

import numpy
import pytest

import mxnet as mx
from fast_paths import DTYPES, LARGE, REAL, both_ways, same, values, views
from mxnet import autograd

np = mx.np


@pytest.mark.parametrize("to", DTYPES)
@pytest.mark.parametrize("dtype", REAL)
def test_conversions_agree_with_numpy_for_every_pair_and_layout(dtype, to):
    for size in (4, 80):
        theirs, ours = values(dtype, size, size), np.array(values(dtype, size, size))
        for x, y in zip(views(ours), views(theirs), strict=True):
            for got in both_ways(lambda x=x: x.astype(to)):
                same(got, y.astype(to))
            same(x.astype(dtype=to), y.astype(to))


def test_conversions_make_copies_that_lie_as_their_source_does():
    x = np.array(values("float32", 3, 4))
    assert not mx.np.shares_memory(x, x.astype("float32"))
    assert x.T.astype("int32").strides == x.T.asnumpy().astype("int32").strides


def test_conversions_of_complex_numbers_to_real_ones_keep_the_real_part():
    with pytest.warns(numpy.exceptions.ComplexWarning):
        same(np.array([1 + 2j, -3j]).astype("float64"), numpy.array([1.0, 0.0]))


def test_conversions_keep_derived_classes():
    class Derived(np.ndarray):
        pass

    assert type(np.ones((2, 2)).view(Derived).astype("int32")) is Derived


@pytest.mark.parametrize("dtype", DTYPES)
def test_copies_in_every_order_agree_with_numpy(dtype):
    for size in (4, 80):
        theirs, ours = values(dtype, size, size), np.array(values(dtype, size, size))
        for x, y in zip(views(ours), views(theirs), strict=True):
            for got in both_ways(x.copy):
                same(got, y)
                assert got.flags.c_contiguous
                assert got.flags.owndata
            for got in both_ways(x.flatten):
                same(got, y.flatten())
                assert not np.shares_memory(got, x)
            for got in both_ways(x.ravel):
                same(got, y.ravel())
                assert np.shares_memory(got, x) == (x.flags.c_contiguous and x.size > 0)
            for got in both_ways(lambda x=x: np.asfortranarray(x)):
                same(got, y)
                assert got.flags.f_contiguous


def test_arrays_that_are_what_is_asked_for_come_back_themselves():
    x = np.ones((2, 3))
    assert np.asarray(x) is x
    assert np.asanyarray(x) is x
    assert np.ascontiguousarray(x) is x
    assert np.ascontiguousarray(x.T) is not x
    assert np.atleast_1d(x) is x
    assert np.atleast_2d(x) is x
    assert np.atleast_3d(x).shape == (2, 3, 1)
    turned = x.T
    assert np.asfortranarray(turned) is turned
    assert np.asarray(x, copy=True) is not x


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_positions_of_extremes_agree_with_numpy_along_every_axis(name, dtype):
    for shape in ((7,), (4, 5), (3, 4, 5), (2, 70), (70, 2), (LARGE // 50, 50)):
        theirs = values(dtype, *shape)
        ours = np.array(theirs)
        axes = [None, *range(-len(shape), len(shape))]
        for axis in axes:
            want = getattr(theirs, name)(axis)
            for got in both_ways(lambda ours=ours, axis=axis: getattr(ours, name)(axis)):
                same(got, want)
            same(getattr(ours, name)(axis=axis), want)
            same(getattr(np, name)(ours, axis), want)


def test_the_first_nan_is_the_extreme():
    x = numpy.array([[1.0, numpy.nan, numpy.nan], [numpy.nan, 2.0, 3.0]], "float32")
    for axis in (None, 0, 1):
        same(np.array(x).argmax(axis), x.argmax(axis))
        same(np.array(x).argmin(axis), x.argmin(axis))


def test_positions_of_extremes_of_nothing_and_of_no_such_axis_are_errors():
    with pytest.raises(ValueError, match="empty"):
        np.zeros((0,)).argmax()
    with pytest.raises(numpy.exceptions.AxisError):
        np.zeros((2, 3)).argmax(2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_counts_of_what_is_not_zero_agree_with_numpy(dtype):
    for shape in ((), (0,), (9,), (4, 5), (LARGE,)):
        theirs = values(dtype, *shape)
        for got in both_ways(lambda theirs=theirs: np.count_nonzero(np.array(theirs))):
            assert int(got) == numpy.count_nonzero(theirs)
    assert int(np.count_nonzero(np.array([-0.0, numpy.nan]))) == 1


def assert_product(got, product, a, b):
    """Compare a product with that of the same numbers in float64.

    A sum of k products in any order is off by at most k roundings of the sum of their sizes (Higham, Accuracy and
    Stability of Numerical Algorithms, section 3.1); a complex product takes four of them. float16 is summed in float32
    and rounded once. Integers wrap and are exact.
    """
    if a.dtype.kind in "iu":
        numpy.testing.assert_array_equal(got.asnumpy(), product(a, b))
        return
    a, b, dtype = *(x.astype("complex128" if x.dtype.kind == "c" else "float64") for x in (a, b)), a.dtype
    rounding = numpy.finfo("float32" if dtype == "float16" else dtype).eps
    per_term = 4 if dtype.kind == "c" else 1
    sizes = product(numpy.abs(a), numpy.abs(b))
    exact = product(a, b)
    bound = per_term * (a.shape[-1] + 1) * rounding * sizes + numpy.finfo(dtype).eps * numpy.abs(exact)
    assert (numpy.abs(got.asnumpy().astype(exact.dtype) - exact) <= bound).all()


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype != "bool"])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        *(((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 5)), ((3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5))),
        *(((2, 3, 4), (4, 5)), ((2, 3, 4), (4,)), ((4,), (2, 4, 5)), ((1, 1), (1, 1)), ((60, 60), (60, 60))),
    ],
)
def test_products_agree_with_numpy_and_with_recorded_ones(left, right, dtype):
    a, b = values(dtype, *left), values(dtype, *right, seed=1)
    want = numpy.matmul(a, b)
    x, y = np.array(a), np.array(b)
    x_turned = np.array(a.T.copy()).T
    for call in (lambda: np.matmul(x, y), lambda: x @ y, lambda: np.matmul(x_turned, y)):
        for got in both_ways(call):
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            assert_product(got, numpy.matmul, a, b)
    if len(right) <= 2:
        for got in both_ways(lambda: np.dot(x, y)):
            assert_product(got, numpy.dot, a, b)


def test_products_of_sizes_that_do_not_fit_name_them():
    with pytest.raises(ValueError, match=r"size 3.*size 4"):
        np.ones((2, 3)) @ np.ones((4, 2))
    with pytest.raises(ValueError, match="0 axes"):
        np.matmul(np.array(2.0), np.ones(2))


@pytest.mark.parametrize("dtype", DTYPES)
def test_picks_by_index_arrays_agree_with_numpy(dtype):
    theirs = values(dtype, 5, 6, 2)
    ours = np.array(theirs)
    rows, columns = numpy.array([[0, -1, 3], [4, 2, -5]]), numpy.array([[5, -6, 1], [0, 0, 3]])
    for key in ((rows,), (rows, columns), (slice(None), columns), (rows, slice(1, 3)), (rows[0], columns)):
        mine = tuple(np.array(entry) if isinstance(entry, numpy.ndarray) else entry for entry in key)
        for got in both_ways(lambda mine=mine: ours[mine if len(mine) > 1 else mine[0]]):
            same(got, theirs[key])
    for axis in (0, 1, -1):
        index = numpy.array([1, 0, -1])
        same(np.take(ours, np.array(index), axis), numpy.take(theirs, index, axis))
    same(ours[np.array([], "int64")], theirs[numpy.array([], "int64")])


@pytest.mark.parametrize("bad", [5, -6])
def test_picks_outside_an_axis_are_errors_that_say_where(bad):
    x, at = np.zeros((5, 5)), np.array([0, bad])
    for key in (at, (at, np.array([0, 0])), (np.array([0, 0]), at), (slice(None), at)):
        with pytest.raises(IndexError, match=str(bad)):
            x[key]


@pytest.mark.parametrize("size", [1, 16, 256, 257, LARGE])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_compute_in_float32_and_round_once_whatever_their_number(dtype, size):
    x = np.array(numpy.linspace(0.1, 3, size)).astype(dtype)
    wide = x.astype("float32")
    calls = (np.exp, np.sqrt, lambda v: v + v, lambda v: v * 1.5, lambda v: 2 - v, lambda v: v / 3, np.negative)
    for call in calls:
        for got in both_ways(lambda call=call: call(x)):
            assert got.dtype == x.dtype
            same(got.astype("float32"), call(wide).astype(dtype).astype("float32").asnumpy())
    for call in (lambda v: v > 1, lambda v: v == v, np.isfinite):
        for got in both_ways(lambda call=call: call(x)):
            same(got, call(wide).asnumpy())


def test_integer_powers_refuse_negative_exponents_however_small_the_arrays():
    x = np.array([2, 3])
    same(x ** np.array([3, 2]), numpy.array([8, 9]))
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        x ** np.array([1, -1])


@pytest.mark.parametrize(
    "bounds",
    [(5,), (0,), (-3,), (2, 7), (7, 2), (0, 10, 3), (10, 0, -3), (1, 2, 5), (3, 5000), (-(2**62), 2**62, 2**60)],
)
def test_ranges_of_integers_agree_with_numpy(bounds):
    same(np.arange(*bounds), numpy.arange(*bounds))


def test_ranges_without_a_step_forward_are_errors():
    with pytest.raises(ZeroDivisionError, match="step"):
        np.arange(0, 5, 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sorting_agrees_with_numpy_along_every_axis_and_layout(dtype):
    for shape in ((7,), (4, 6), (6, 3, 4), (LARGE // 50, 60)):
        theirs = values(dtype, *shape)
        if theirs.dtype.kind in "fc":
            theirs.reshape(-1)[1] = numpy.nan
        ours = np.array(theirs)
        pairs = [(ours, theirs), (ours.T, theirs.T), (ours[::-1], theirs[::-1])]
        for x, y in pairs:
            for axis in range(-len(shape), len(shape)):
                for got in both_ways(lambda x=x, axis=axis: np.sort(x, axis)):
                    same(got, numpy.sort(y, axis))
                for got in both_ways(lambda x=x, axis=axis: np.argsort(x, axis)):
                    same(got, numpy.argsort(y, axis, kind="stable"))
            same(np.sort(x), numpy.sort(y))
            same(np.sort(x, None), numpy.sort(y, None))


@pytest.mark.parametrize("name", ["random", "standard_normal", "exponential", "gumbel", "laplace", "logistic"])
def test_few_samples_are_the_first_of_many_and_the_same_while_recording(name):
    draw = getattr(np.random, name)

    def drawn(n):
        np.random.seed(7)
        return draw(size=n).asnumpy()

    many = drawn(LARGE)
    numpy.testing.assert_array_equal(drawn(1000), many[:1000])
    with autograd.record():
        numpy.testing.assert_array_equal(drawn(1000), many[:1000])
    np.random.seed(7)
    parts = [draw(size=10).asnumpy() for _ in range(3)]
    with autograd.record():
        np.random.seed(7)
        again = [draw(size=10).asnumpy() for _ in range(3)]
    numpy.testing.assert_array_equal(parts, again)


def test_copies_of_dense_and_other_arrays_keep_their_order_of_axes():
    x = np.array(values("float32", 3, 4))
    for source in (x, x.T, x[:, ::2]):
        for copy in (np.copy(source), np.array(source)):
            same(copy, source.asnumpy())
            assert copy.strides == source.asnumpy().copy("K").strides
            assert not np.shares_memory(copy, source)


@pytest.mark.parametrize("dtype", DTYPES)
def test_joining_agrees_with_numpy_along_every_axis(dtype):
    for shape in ((3,), (2, 3), (2, 3, 4), (0, 3), (60, 50)):
        a, b = values(dtype, *shape), values(dtype, *shape, seed=1)
        x, y = np.array(a), np.array(b)
        for axis in range(-len(shape), len(shape)):
            want = numpy.concatenate((a, b, a), axis)
            for got in both_ways(lambda x=x, y=y, axis=axis: np.concatenate((x, y, x), axis)):
                same(got, want)
            same(np.concatenate([x, y, x], axis=axis), want)
        same(np.concatenate((x.T, y.T)), numpy.concatenate((a.T, b.T)))
    same(np.concatenate([np.ones(2, dtype="int32"), np.ones(1, dtype="int8")]), numpy.ones(3, "int32"))


def test_joining_what_does_not_fit_names_the_sizes():
    with pytest.raises(ValueError, match=r"size 3 .* size 4"):
        np.concatenate((np.ones((2, 3)), np.ones((2, 4))))
    with pytest.raises(ValueError, match="at least one array"):
        np.concatenate([])
    with pytest.raises(numpy.exceptions.AxisError):
        np.concatenate((np.ones(2), np.ones(2)), 1)


def test_counts_of_integers_agree_with_numpy():
    for given in ([0], [3, 1, 1, 0, 7], [1023], [1024, 5], list(range(2000))):
        for got in both_ways(lambda given=given: np.bincount(np.array(given))):
            same(got, numpy.bincount(given))
    with pytest.raises(ValueError, match="negative, found -2"):
        np.bincount(np.array([1, -2]))


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype != "bool"])
def test_products_of_vectors_along_the_last_axis_agree_with_numpy(dtype):
    for shape in ((3,), (4, 4), (2, 3, 5), (0, 3), (3, 0)):
        a, b = values(dtype, *shape), values(dtype, *shape, seed=1)
        for got in both_ways(lambda a=a, b=b: np.vecdot(np.array(a), np.array(b))):
            want = numpy.vecdot(a, b)
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            assert_product(got, numpy.vecdot, a, b)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "uint8"])
@pytest.mark.parametrize("size", [0, 5, 300, LARGE])
def test_functions_of_two_results_agree_with_numpy(dtype, size):
    x, y = values(dtype, size), values(dtype, size, seed=1) + numpy.ones((), dtype) * 3
    for got, want in zip(np.divmod(np.array(x), np.array(y)), numpy.divmod(x, y), strict=True):
        same(got, want)
    if numpy.dtype(dtype).kind == "f":
        special = numpy.array([numpy.inf, -numpy.inf, numpy.nan, -0.0, -2.5], dtype)
        for given in (x, special):
            for got, want in zip(np.modf(np.array(given)), numpy.modf(given), strict=True):
                same(got, want)
                numpy.testing.assert_array_equal(numpy.signbit(got.asnumpy()), numpy.signbit(want))


@pytest.mark.parametrize("counts", ["int8", "int32", "int64", "uint16"])
@pytest.mark.parametrize("size", [0, 4, 70, LARGE])
def test_powers_of_two_agree_with_numpy_however_far_they_reach(counts, size):
    x, n = values("float32", size), values(counts, size, seed=1)
    same(np.ldexp(np.array(x), np.array(n)), numpy.ldexp(x, n))
    far = numpy.array([2**40, -(2**40), 2**31, 3])
    with numpy.errstate(over="ignore", under="ignore"):
        for dtype in ("float32", "float64"):
            same(np.ldexp(np.ones(4, dtype=dtype), np.array(far)), numpy.ldexp(numpy.ones(4, dtype), far))
            same(np.ldexp(np.ones(4, dtype=dtype), -2000), numpy.ldexp(numpy.ones(4, dtype), -2000))
            with pytest.raises(OverflowError, match=str(2**40)):
                np.ldexp(np.ones(4, dtype=dtype), 2**40)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_spacings_of_all_halves_are_the_distances_to_the_next_ones(dtype):
    x = np.arange(1 << 16).astype("uint16").view(dtype)
    finite = x[np.isfinite(x)]
    away = np.copysign(np.full(finite.shape, np.inf, dtype=dtype), finite)
    got, want = np.spacing(finite), np.nextafter(finite, away) - finite
    assert (got == want).all()
    assert (np.signbit(got) == np.signbit(finite)).all()
    assert np.isnan(np.spacing(x[~np.isfinite(x)])).all()


@pytest.mark.parametrize(
    "subscripts, shapes",
    [
        ("ij,jk->ik", [(3, 4), (4, 2)]),
        ("ij,ij->i", [(3, 4), (3, 4)]),
        ("ij->j", [(3, 4)]),
        ("ij->", [(3, 4)]),
        ("ii", [(3, 3)]),
        ("ba,a", [(3, 4), (4,)]),
        ("i,j,k->kij", [(2,), (3,), (4,)]),
        ("iij->ij", [(3, 3, 2)]),
        ("ij , jk", [(2, 3), (3, 2)]),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_sums_of_few_products_agree_with_numpy_and_with_recorded_ones(subscripts, shapes, dtype):
    ours, theirs = [], []
    for seed, shape in enumerate(shapes):
        x = values(dtype, *shape, seed=seed)
        theirs.append(x)
        ours.append(np.array(x.T.copy()).T)
    want = numpy.einsum(subscripts, *theirs)
    for got in both_ways(lambda: np.einsum(subscripts, *ours)):
        same(got, want)


def test_sums_over_one_operand_that_sum_nothing_are_views():
    x = np.zeros((3, 3))
    np.einsum("ij->ji", x)[0, 1] = 7
    np.einsum("ii->i", x)[...] = 1
    assert x.tolist() == [[1, 0, 0], [7, 1, 0], [0, 0, 1]]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int32"])
@pytest.mark.parametrize("shape", [(), (3,), (4, 4), (2, 3, 700)])
def test_norms_of_all_elements_agree_with_numpy(dtype, shape):
    x = values(dtype, *shape)
    for got in both_ways(lambda: np.linalg.norm(np.array(x))):
        numpy.testing.assert_allclose(got.asnumpy(), numpy.linalg.norm(x), rtol=1e-6)
    assert np.linalg.norm(np.array(x), keepdims=True).shape == (1,) * len(shape)


@pytest.mark.parametrize("kind", ["quicksort", "stable"])
def test_kinds_of_sorts_choose_nothing_and_unknown_ones_are_errors(kind):
    x = values("float32", 4, 5)
    same(np.sort(np.array(x), 0, kind=kind), numpy.sort(x, 0))
    same(np.sort(np.array(x), axis=1, kind=kind), numpy.sort(x, 1))
    with pytest.raises(ValueError, match="kind"):
        np.sort(np.array(x), 0, kind="unknown")


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64"])
@pytest.mark.parametrize("size", [0, 7, 16, 300])
def test_bits_of_bytes_agree_with_numpy(dtype, size):
    x = values(dtype, size)
    packed = numpy.packbits(x)
    same(np.packbits(np.array(x)), packed)
    same(np.unpackbits(np.array(packed)), numpy.unpackbits(packed))


ONE_ELEMENT = "x + e; e - x; x * e; e / x; x // e; e % x; x ** e; np.maximum(x, e); x < e; e == x; np.clip(x, e, e)"


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("text", ONE_ELEMENT.split("; "))
@pytest.mark.filterwarnings("ignore")
def test_one_element_beside_an_array(text, dtype):
    for shape in [(16,), (3, 4), (0,), (300,)]:
        theirs = (numpy.arange(int(numpy.prod(shape))) % 5 + 1).reshape(shape).astype(dtype)
        for look in (lambda x: x, lambda x: x.T, lambda x: x[::2]):
            x, e = look(theirs), numpy.asarray(2, dtype)
            try:
                want = eval(text, {"np": numpy, "x": x, "e": e})
            except TypeError:
                with pytest.raises(TypeError):
                    eval(text, {"np": np, "x": look(np.array(theirs)), "e": np.array(e)})
                continue
            with mx.util.np_default_dtype(True):
                got = eval(text, {"np": np, "x": look(np.array(theirs)), "e": np.array(e)})
            assert got.dtype == want.dtype
            assert got.strides == want.strides or x.ndim < 2 or not x.flags.forc
            # One unit in the last place of float16, eight of float32.
            numpy.testing.assert_allclose(got.asnumpy(), want, rtol=2.0**-10 if dtype == "float16" else 2.0**-20)


@pytest.mark.parametrize("text", ["x * e", "e / x", "x - e", "np.maximum(x, e)", "x ** e"])
def test_gradients_of_one_element_beside_an_array(text):
    x, e = np.array([1.5, 2.5, 3.5]), np.array(2.0)
    wide, spread = np.array([1.5, 2.5, 3.5]), np.array([2.0, 2.0, 2.0])
    for z in (x, e, wide, spread):
        z.attach_grad()
    with autograd.record():
        y = eval(text, {"np": np, "x": x, "e": e})
        z = eval(text, {"np": np, "x": wide, "e": spread})
    y.backward()
    z.backward()
    assert y.tolist() == z.tolist()
    assert e.grad.shape == ()
    numpy.testing.assert_allclose(x.grad.asnumpy(), wide.grad.asnumpy(), rtol=1e-6)
    numpy.testing.assert_allclose(e.grad.asnumpy(), spread.grad.asnumpy().sum(), rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_slices_repeats_and_positions_agree_with_numpy(dtype):
    theirs = values(dtype, 3, 4)
    for x, y in zip(views(np.array(theirs)), views(theirs), strict=True):
        for got in both_ways(lambda x=x: x.nonzero()):
            for mine, other in zip(got, y.nonzero(), strict=True):
                same(mine, other)
        for axis in (None, 0, 1, -1):
            for got in both_ways(lambda x=x, axis=axis: x.repeat(2, axis)):
                same(got, y.repeat(2, axis))
            same(x.repeat(0, axis), y.repeat(0, axis))
            if y.size:
                at = numpy.array([[1, 0], [-1, 1]])
                for got in both_ways(lambda x=x, axis=axis, at=at: x.take(np.array(at), axis)):
                    same(got, y.take(at, axis))
        same(x.swapaxes(0, -1), y.swapaxes(0, -1))
        same(x[None].squeeze(), y[None].squeeze())
        same(x[None].squeeze(0), y[None].squeeze(0))
    row = numpy.sort(theirs.ravel())
    for got in both_ways(lambda: np.searchsorted(np.array(row), np.array(theirs))):
        same(got, numpy.searchsorted(row, theirs))
    assert np.array(row).tolist() == row.tolist()
    assert [np.array(theirs).item(i) for i in range(-12, 12)] == [theirs.item(i) for i in range(-12, 12)]
    assert np.array(theirs).T.item(1, 2) == theirs.T.item(1, 2)


def test_counts_of_repeats_are_those_of_numpy_for_many_positions():
    counts = numpy.random.default_rng(0).integers(0, 3, 20_000)
    x = numpy.arange(20_000.0)
    same(np.repeat(np.array(x), np.array(counts)), numpy.repeat(x, counts))
    m = values("float32", 3, 4)
    same(np.repeat(np.array(m), [0, 2, 1], axis=0), numpy.repeat(m, [0, 2, 1], axis=0))


@pytest.mark.parametrize("size", [16, LARGE])
@pytest.mark.parametrize("call", ["repeat(-1)", "take(np.array([99999]))", "swapaxes(0, 5)", "item(99999)"])
def test_bad_calls_are_refused_as_by_numpy_at_every_size(call, size):
    with pytest.raises(Exception) as theirs:
        eval(f"x.{call}", {"x": numpy.zeros(size), "np": numpy})
    with pytest.raises(type(theirs.value)):
        eval(f"x.{call}", {"x": np.zeros(size), "np": np})
