"""Writes into small arrays, elements, and small arrays made of others and of buffers give what NumPy gives."""

import numpy
import pytest

import mxnet as mx
from fast_paths import DTYPES, both_ways, same, values, views
from mxnet import autograd

np = mx.np


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_are_computed_like_arrays(dtype):
    x, y = values(dtype, 5), values(dtype, 5, seed=1)
    ours, other = np.array(x), np.array(y)
    for name in ("add", "multiply", "subtract", "maximum", "equal", "less", "true_divide", "floor_divide", "power"):
        ours_fn, theirs_fn = getattr(np, name), getattr(numpy, name)
        for i in range(5):
            try:
                want = theirs_fn(x[i : i + 1], y[i : i + 1])[0]
            except (TypeError, ValueError) as error:
                with pytest.raises(type(error)):
                    ours_fn(ours[i], other[i])
                continue
            whole = ours_fn(ours[i : i + 1], other[i : i + 1])[0]
            got = ours_fn(ours[i], other[i])
            assert got.dtype == whole.dtype
            assert got.shape == ()
            numpy.testing.assert_array_equal(got.asnumpy(), whole.asnumpy())
            if numpy.dtype(want.dtype).kind in "biu":
                numpy.testing.assert_array_equal(got.asnumpy(), want)


def written(function, theirs, ours, *arguments, **named):
    """What NumPy's function of this name leaves of an array, and ours at once, while recording, and through a view."""

    def plain(x):
        return x.asnumpy() if isinstance(x, np.ndarray) else x

    getattr(numpy, function)(theirs, *map(plain, arguments), **{name: plain(x) for name, x in named.items()})
    yield theirs
    call = getattr(np, function)
    first, second = ours.copy(), ours.copy()
    call(first, *arguments, **named)
    yield first
    with autograd.record():
        call(second, *arguments, **named)
    yield second
    wide = np.zeros((2 * ours.shape[0], *ours.shape[1:]), ours.dtype)
    wide[::2] = ours
    call(wide[::2], *arguments, **named)
    yield wide[::2]


def all_same(function, source, *arguments, **named):
    want, *found = written(function, source.copy(), np.array(source), *arguments, **named)
    for got in found:
        same(got, want)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 5), (80, 90), (0, 3)])
def test_writes_under_masks_agree_with_numpy(dtype, shape):
    source = values(dtype, *shape)
    mask = np.array(numpy.random.default_rng(1).uniform(size=shape) < 0.5)
    same_size, broadcastable = np.array(values(dtype, *shape, seed=2)), np.array(values(dtype, 3, 1, seed=3))
    number = True if dtype == "bool" else 3
    all_same("copyto", source, same_size)
    all_same("copyto", source, number)
    for value in (same_size, number, np.array(values(dtype, shape[1], seed=4)), np.array(broadcastable[0, 0])):
        all_same("copyto", source, value, where=mask)
    for function in ("place", "putmask"):
        for value in (same_size if shape[0] else broadcastable, broadcastable, number, [number, 0, 1]):
            all_same(function, source, mask, value)
            all_same(function, source, mask.reshape(-1), value)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 5), (80, 90)])
def test_writes_at_positions_agree_with_numpy(dtype, shape):
    source = values(dtype, *shape)
    rng = numpy.random.default_rng(1)
    number = True if dtype == "bool" else 3
    broadcastable = np.array(values(dtype, 3, seed=3))
    flat = np.array(rng.integers(-source.size, source.size, 11))
    for value in (
        number,
        broadcastable,
        np.array(values(dtype, 11, seed=4)),
        np.array(values(dtype, 30, seed=5)),
        [number, 0],
    ):
        all_same("put", source, flat, value)
        all_same("put", source, [1, -2], value)
    for axis in (0, 1, -1):
        size = list(shape)
        size[axis] = 3
        along = np.array(rng.integers(-shape[axis], shape[axis], size))
        for value in (number, np.array(values(dtype, *size, seed=4)), broadcastable[0]):
            all_same("put_along_axis", source, along, value, axis)
    for value in (number, broadcastable, [number, 0]):
        all_same("fill_diagonal", source, value)
        all_same("fill_diagonal", source.T.copy(), value, wrap=True)
    cube = values(dtype, 3, 3, 3)
    all_same("fill_diagonal", cube, number)


def test_writes_that_are_refused_change_nothing():
    x = np.arange(6).reshape(2, 3)
    before = x.asnumpy()
    inside, outside = np.array([0, 1]), np.array([0, 6])
    for error, call in (
        (IndexError, lambda: np.put(x, outside, 1)),
        (ValueError, lambda: np.put(x, inside, 1, mode="other")),
        (ValueError, lambda: np.place(x, np.array([True, False]), 1)),
        (ValueError, lambda: np.place(x, x > 2, [])),
        (TypeError, lambda: np.place(x, x > 2, np.array([1.5]))),
        (ValueError, lambda: np.putmask(x, np.array([True]), 1)),
        (TypeError, lambda: np.copyto(x, 1.5)),
        (TypeError, lambda: np.copyto(x, 1.5, where=x > 2)),
        (ValueError, lambda: np.copyto(x, np.arange(4))),
        (IndexError, lambda: np.put_along_axis(x, np.array([[3], [0]]), 1, 1)),
        (ValueError, lambda: np.put_along_axis(x, inside, 1, 1)),
        (ValueError, lambda: np.fill_diagonal(x[0], 1)),
        (OverflowError, lambda: np.fill_diagonal(x.astype("int8"), 300)),
        (OverflowError, lambda: np.put(x.astype("int8"), inside, 300)),
    ):
        with pytest.raises(error):
            call()
    locked = x.copy()
    locked.flags.writeable = False
    for call in (
        lambda: np.put(locked, inside, 1),
        lambda: np.place(locked, x > 2, 1),
        lambda: np.putmask(locked, x > 2, 1),
        lambda: np.copyto(locked, x + 1),
        lambda: np.copyto(locked, x + 1, where=x > 2),
        lambda: np.put_along_axis(locked, x, 1, 1),
        lambda: np.fill_diagonal(locked, 1),
    ):
        with pytest.raises(ValueError, match="read-only"):
            call()
    same(x, before)
    same(locked, before)


def test_writes_of_an_array_into_itself_agree_with_numpy():
    theirs, ours = numpy.arange(12).reshape(3, 4), np.arange(12).reshape(3, 4)
    for x, module in ((theirs, numpy), (ours, np)):
        module.copyto(x, x[::-1], where=x > 2)
        module.putmask(x, x > 5, x.T.copy())
        module.put(x, x[0] % 3, x[1])
    same(ours, theirs)


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_like_others_have_their_form(dtype):
    class Derived(np.ndarray):
        pass

    for x, y in zip(views(np.array(values(dtype, 4, 6))), views(values(dtype, 4, 6)), strict=True):
        for got in both_ways(lambda x=x: np.zeros_like(x)):
            same(got, numpy.zeros_like(y))
            assert not x.size or got.strides == numpy.zeros_like(y).strides
        same(np.ones_like(x), numpy.ones_like(y))
        assert (np.empty_like(x).shape, np.empty_like(x).dtype) == (y.shape, y.dtype)
    derived = np.array(values(dtype, 2, 2)).view(Derived)
    assert type(np.empty_like(derived)) is Derived
    assert type(np.zeros_like(derived, subok=False)) is np.ndarray


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_over_buffers_agree_with_numpy(dtype):
    memory = bytes(range(1, 97))
    for count, offset in ((-1, 0), (2, 0), (1, 16), (2, 1), (0, 0), (-1, 80), (-1, 96)):
        want = numpy.frombuffer(memory, dtype, count, offset)
        got = np.frombuffer(memory, dtype, count, offset)
        assert got.asnumpy().tobytes() == want.tobytes()
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
    assert not np.frombuffer(memory, dtype).flags.writeable
    for count, offset in ((1000, 0), (-1, 1000), (-1, -1), (1, 96)):
        for module in (numpy, np):
            with pytest.raises(ValueError, match=r"offset|buffer"):
                module.frombuffer(memory, dtype, count, offset)


def test_arrays_over_buffers_share_their_memory_and_hold_it():
    memory = bytearray(16)
    x = np.frombuffer(memory, "int32")
    x[1] = 7
    assert memory[4] == 7
    with pytest.raises(BufferError):
        memory.append(1)
    same(np.frombuffer(memoryview(memory)[4:12], "int32"), numpy.array([7, 0], "int32"))
    with pytest.raises((ValueError, BufferError)):
        np.frombuffer(memoryview(memory)[::2], "uint8")


@pytest.mark.parametrize("dtype", [*DTYPES, ">f4", ">i2"])
def test_arrays_of_numpy_are_taken_as_they_lie(dtype):
    for x in views(values(dtype, 4, 6)):
        got = np.asarray(x)
        same(got, x.astype(numpy.dtype(dtype).newbyteorder("=")))
        if numpy.dtype(dtype).isnative and x.size:
            assert got.strides == x.strides
            got[...] = 1
            assert (x == 1).all()
    whole = numpy.zeros(8 * numpy.dtype(dtype).itemsize + 1, "uint8")
    same(np.asarray(whole[1:].view(dtype)), numpy.zeros(8, numpy.dtype(dtype).newbyteorder("=")))
    locked = values(dtype, 3)
    locked.flags.writeable = False
    assert numpy.dtype(dtype).isnative is not np.asarray(locked).flags.writeable


@pytest.mark.parametrize("dtype", DTYPES)
def test_vectors_times_a_matrix_agree_with_numpy_and_with_recorded_ones(dtype):
    if dtype == "bool":
        pytest.skip("products of truth values are those of matmul")
    for lead in ((), (3,), (2, 3)):
        x, y = values(dtype, *lead, 4), values(dtype, 4, 5, seed=1)
        for got in both_ways(lambda x=x, y=y: np.vecmat(np.array(x), np.array(y))):
            same(got, numpy.vecmat(x, y))


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_permuted_lines_are_the_same_while_recording_and_hold_what_they_held(axis):
    x = values("float64", 5, 7)
    drawn = []
    for recorded in (False, True):
        rng = np.random.default_rng(3)
        with autograd.record() if recorded else autograd.pause():
            drawn += [rng.permuted(np.array(x), axis=axis).asnumpy(), rng.random().asnumpy()]
    numpy.testing.assert_array_equal(drawn[0], drawn[2])
    assert drawn[1] == drawn[3]
    numpy.testing.assert_array_equal(numpy.sort(drawn[0], axis), numpy.sort(x, axis))


def test_limits_of_dtypes_are_found_by_every_spelling():
    for name in ("float16", "float32", "float64", "complex64"):
        spellings = (name, numpy.dtype(name), getattr(numpy, name), np.ones(1, dtype=name))
        assert len({id(np.finfo(spelling)) for spelling in spellings}) == 1
    for name in ("int8", "uint8", "int32", "int64", "uint64"):
        for spelling in (name, numpy.dtype(name), getattr(numpy, name), np.ones(1, dtype=name)):
            ours, theirs = np.iinfo(spelling), numpy.iinfo(name)
            for part in ("min", "max", "bits", "kind", "key", "dtype"):
                assert getattr(ours, part) == getattr(theirs, part)
    for wrong in ("int32", bool):
        with pytest.raises(ValueError, match="finfo"):
            np.finfo(wrong)
    with pytest.raises(ValueError, match="iinfo"):
        np.iinfo("float32")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(), (4, 5), (80, 90)])
def test_values_between_points_agree_with_numpy_and_with_recorded_ones(dtype, shape):
    rng = numpy.random.default_rng(0)
    x = numpy.asarray(rng.uniform(-1, 9, shape), dtype)
    x.flat[0] = numpy.nan
    for n in (1, 2, 7):
        xp, fp = numpy.arange(n, dtype=dtype), rng.uniform(size=n).astype(dtype)
        plain, recorded = both_ways(lambda xp=xp, fp=fp: np.interp(np.array(x), np.array(xp), np.array(fp)))
        numpy.testing.assert_array_equal(plain.asnumpy(), recorded.asnumpy())
        numpy.testing.assert_allclose(plain.asnumpy(), numpy.interp(x, xp, fp), rtol=4 * numpy.finfo(dtype).eps)
        assert plain.dtype == recorded.dtype == dtype
    for wrong in (np.arange(3.0, dtype=dtype), np.zeros((7, 1), dtype=dtype), np.zeros(0, dtype=dtype)):
        with pytest.raises(ValueError, match=r"length|1-D|empty"):
            np.interp(np.array(x), np.arange(7.0, dtype=dtype), wrong)


def test_arrays_of_extensions_dtypes_are_taken_as_they_lie():
    extension = pytest.importorskip("ml_dtypes").bfloat16
    theirs = numpy.arange(6).reshape(2, 3).astype(extension)
    for x in views(theirs):
        same(np.asarray(x).astype("float32"), x.astype("float32"))
    ours = np.asarray(theirs)
    ours[0, 0] = 9
    assert theirs[0, 0] == 9
    unaligned = numpy.frombuffer(b"0" + theirs.tobytes(), "uint8")[1:].view(extension)
    same(np.asarray(unaligned).astype("float32"), unaligned.astype("float32"))


def test_arrays_that_numpy_warns_to_write_to_are_read_only():
    theirs = numpy.broadcast_arrays(numpy.arange(3), numpy.zeros((2, 1)))[0]
    assert not np.asarray(theirs).flags.writeable


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype != "float16"])
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all", "mean"])
def test_folds_of_few_elements_agree_with_numpy_and_with_recorded_ones(name, dtype):
    ufunc = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum", "any": "logical_or"}.get(name)
    for shape in [(), (1,), (5,), (3, 4), (2, 3, 4), (2, 0), (60, 50)]:
        x = values(dtype, *shape)
        y = np.array(x)
        for axis in (None, *range(-len(shape), len(shape))):
            try:
                want = getattr(x, name)(axis=axis)
            except ValueError:
                with pytest.raises(ValueError):
                    getattr(y, name)(axis)
                continue
            got, recorded = both_ways(lambda y=y, axis=axis: getattr(y, name)(axis))
            same(got, recorded.asnumpy())
            assert got.shape == numpy.shape(want)
            numpy.testing.assert_allclose(got.asnumpy(), want, rtol=1e-5, atol=1e-5)
            if ufunc:
                folded, recorded = both_ways(lambda y=y, axis=axis: getattr(np, ufunc).reduce(y, axis))
                same(folded, recorded.asnumpy())
        with pytest.raises(numpy.exceptions.AxisError):
            getattr(y, name)(5)
