"""`x[...]` and `x[...] = v` against NumPy, for index expressions of every kind."""

import hypothesis
import numpy
import pytest
from hypothesis import strategies as st

from mxnet import numpy as mxnp

DTYPES = ["bool", "int8", "uint8", "int32", "int64", "uint64", "float16", "float32", "float64", "complex64"]


@st.composite
def slices(draw, size):
    bound = st.none() | st.integers(-size - 2, size + 2)
    return slice(draw(bound), draw(bound), draw(st.none() | st.sampled_from([-3, -2, -1, 1, 2, 3])))


@st.composite
def integer_arrays(draw, size, ndim=2):
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=ndim)))
    spread = st.integers(-size, size - 1) if size else st.just(0)
    wrong = draw(st.integers(0, 19)) == 0
    count = int(numpy.prod(shape))
    values = draw(st.lists(spread | st.integers(-size - 1, size) if wrong else spread, min_size=count, max_size=count))
    dtype = draw(st.sampled_from(["int64", "int32", "int8"]))
    return numpy.array(values, dtype).reshape(shape)


@st.composite
def masks(draw, shape):
    wrong = draw(st.integers(0, 19)) == 0
    shape = tuple(n + draw(st.integers(0, 1)) if wrong else n for n in shape)
    count = int(numpy.prod(shape))
    return numpy.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)), bool).reshape(shape)


@st.composite
def expressions(draw, shape):
    """A tuple of entries that consume at most the axes of `shape`, or one too many."""
    entries, axis, ellipsis = [], 0, False
    while axis < len(shape) and len(entries) < 6 and draw(st.integers(0, 5)) > 0:
        size = shape[axis]
        kind = draw(st.integers(0, 9))
        if kind <= 1:
            wrong = draw(st.integers(0, 19)) == 0
            entries.append(draw(st.integers(-size - 1, size) if wrong or not size else st.integers(-size, size - 1)))
            axis += 1
        elif kind <= 3:
            entries.append(draw(slices(size)))
            axis += 1
        elif kind == 4:
            entries.append(None)
        elif kind == 5 and not ellipsis:
            ellipsis = True
            entries.append(Ellipsis)
            axis += draw(st.integers(0, len(shape) - axis))
        elif kind <= 7:
            entries.append(draw(integer_arrays(size)))
            axis += 1
        elif kind == 8:
            k = draw(st.integers(1, min(2, len(shape) - axis)))
            entries.append(draw(masks(shape[axis : axis + k])))
            axis += k
        else:
            entries.append(draw(st.booleans() | st.booleans().map(numpy.array)))
    if draw(st.integers(0, 29)) == 0:
        entries.append(draw(st.sampled_from([0, Ellipsis, 1.5, "a", slice(None)])))
    if len(entries) == 1 and draw(st.booleans()):
        return entries[0]
    return tuple(entries)


def ours(key, how):
    """The same expression with its arrays as arrays of the package, NumPy's, or nested lists."""
    if isinstance(key, tuple):
        return tuple(ours(entry, how) for entry in key)
    if not isinstance(key, numpy.ndarray):
        return key
    if how == "lists" and key.ndim and key.size:
        return key.tolist()
    return mxnp.array(key) if how == "ours" else key


def arange(shape, dtype):
    values = numpy.arange(int(numpy.prod(shape))).reshape(shape)
    return numpy.asarray(values % 3 == 0 if dtype == "bool" else values.astype(dtype))


def outcome(call):
    try:
        return call(), None
    except (IndexError, ValueError, TypeError) as error:
        return None, error


def same_class(found, expected):
    for kind in (IndexError, ValueError, TypeError):
        if isinstance(expected, kind):
            return isinstance(found, kind)
    return False


SHAPES = st.lists(st.integers(0, 4), max_size=4).map(tuple)
SETTINGS = hypothesis.settings(max_examples=400, deadline=None, derandomize=True)


@st.composite
def cases(draw):
    shape = draw(SHAPES)
    return (
        shape,
        draw(expressions(shape)),
        draw(st.sampled_from(DTYPES)),
        draw(st.sampled_from(["ours", "numpy", "lists"])),
    )


@SETTINGS
@hypothesis.given(cases())
def test_reading_agrees_with_numpy(case):
    shape, key, dtype, how = case
    a = arange(shape, dtype).copy()
    x = mxnp.array(a)
    expected, failed = outcome(lambda: a[key])
    found, error = outcome(lambda: x[ours(key, how)])
    if failed is not None:
        assert same_class(error, failed), f"{error!r} instead of {failed!r}"
        return
    assert error is None, f"{error!r}"
    expected = numpy.asarray(expected)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    numpy.testing.assert_array_equal(found.asnumpy(), expected)


@SETTINGS
@hypothesis.given(cases(), st.data())
def test_writing_agrees_with_numpy(case, data):
    shape, key, dtype, how = case
    a = arange(shape, dtype).copy()
    x = mxnp.array(a)
    places, failed = outcome(lambda: a[key])
    if failed is None:
        full = numpy.asarray(places).shape
        kept = full[data.draw(st.integers(0, len(full)), label="dropped") :]
        value_shape = tuple(1 if data.draw(st.booleans(), label="unit") else n for n in kept)
        if full and data.draw(st.integers(0, 9), label="wrong") == 0:
            value_shape = (*value_shape, 5)
        # NumPy refuses an array of one axis for a single element; here its axis of length 1 goes as everywhere else.
        if full and data.draw(st.integers(0, 9), label="extra") == 0:
            value_shape = (1, *value_shape)
    else:
        value_shape = ()
    value = numpy.asarray(
        arange(value_shape, data.draw(st.sampled_from(["int8", "int64", "float32", "float64", "bool"]), label="dtype"))
        + 1
    )
    if value.dtype == "bool":
        value = numpy.asarray(value % 2 == 0)
    if data.draw(st.booleans(), label="reversed") and value.ndim:
        value = value[::-1]

    def assign(target, key, value):
        target[key] = value
        return target

    _, failed = outcome(lambda: assign(a, key, value))
    _, error = outcome(
        lambda: assign(x, ours(key, how), mxnp.array(value) if data.draw(st.booleans(), label="ours") else value)
    )
    if isinstance(failed, TypeError) and "boolean array indexing assignment" in str(failed):
        # NumPy takes no value of several axes for a single mask; here it broadcasts or does not, as everywhere else.
        assert error is None or isinstance(error, ValueError)
        return
    if failed is not None:
        assert same_class(error, failed), f"{error!r} instead of {failed!r}"
    else:
        assert error is None, f"{error!r}"
    numpy.testing.assert_array_equal(x.asnumpy(), a)


def test_basic_indexing_is_a_view_and_advanced_indexing_a_copy():
    x = mxnp.zeros((3, 4))
    x[1][2] = 5
    x[:, 3][0] = 7
    x[None, ..., 0][0, 2] = 9
    assert x.asnumpy().tolist() == [[0, 0, 0, 7], [0, 0, 5, 0], [9, 0, 0, 0]]
    x[[0, 1]][0] = -1
    x[mxnp.array([True, False, True])][0] = -1
    x[mxnp.array(1)][2] = -1
    assert x.asnumpy().min() == 0


def test_an_array_assigned_to_its_own_elements_follows_their_order():
    x = mxnp.arange(12).reshape(3, 4)
    expected = x.asnumpy()
    x[1:] += 10  # writes the result of the addition to where it is
    expected[1:] += 10
    same = x[:, 1:3]
    x[:, 1:3] = same
    assert x.asnumpy().tolist() == expected.tolist()
    square = x[:, :3]
    square[:] = square.T
    expected[:, :3] = expected[:, :3].T.copy()
    x[:] = x[::-1]
    expected[:] = expected[::-1].copy()
    x[:, 1:] = x[:, :3]
    expected[:, 1:] = expected[:, :3].copy()
    assert x.asnumpy().tolist() == expected.tolist()


def test_values_are_written_under_a_mask_of_several_axes():
    rng = numpy.random.default_rng(0)
    expected = rng.normal(size=(40, 50, 3))
    for mask in (rng.random((40, 50)) < 0.3, rng.random((40, 50, 3)) < 0.3):
        x, values = mxnp.array(expected, dtype="float64"), rng.normal(size=expected[mask].shape)
        x[mxnp.array(mask)] = mxnp.array(values, dtype="float64")
        expected[mask] = values
        numpy.testing.assert_array_equal(x.asnumpy(), expected)
        with pytest.raises(ValueError, match="does not broadcast"):
            x[mxnp.array(mask)] = mxnp.ones(values.shape[0] + 1)


@pytest.mark.parametrize("step", [1, 2, -1, -2])
def test_assignment_between_overlapping_parts_reads_before_it_writes(step):
    a = numpy.arange(20.0, dtype="float32")
    x = mxnp.array(a)
    a[1::1][::step][:9], x[1::1][::step][:9] = a[:9].copy(), x[:9]
    numpy.testing.assert_array_equal(x.asnumpy(), a)
    index = numpy.array([3, 2, 1, 0])
    a[index], x[index] = a[[0, 1, 2, 3]], x[:4]
    numpy.testing.assert_array_equal(x.asnumpy(), a)


def test_an_array_can_index_itself():
    a = numpy.array([2, 0, 1])
    x = mxnp.array(a)
    x[x] = x
    expected = a.copy()
    expected[a] = a
    numpy.testing.assert_array_equal(x.asnumpy(), expected)


def test_the_last_of_repeated_assignments_stays():
    x = mxnp.zeros((3,))
    x[[1, 1, 0]] = mxnp.array([5.0, 6.0, 7.0])
    assert x.asnumpy().tolist() == [7, 6, 0]


@pytest.mark.parametrize(
    ("key", "parts"),
    [
        (3, ["3", "axis 0", "size 3"]),
        ((0, -5), ["-5", "axis 1", "size 4"]),
        ([0, 7], ["7", "axis 0", "size 3"]),
        ((slice(None), [1, -9]), ["-9", "axis 1", "size 4"]),
        ((0, 0, 0), ["2-dimensional", "3"]),
    ],
)
def test_errors_say_axis_index_and_size(key, parts):
    x = mxnp.zeros((3, 4))
    with pytest.raises(IndexError) as caught:
        x[key]
    for part in parts:
        assert part in str(caught.value)
    with pytest.raises(IndexError):
        x[key] = 1


def test_a_mask_of_another_shape_says_both_sizes():
    with pytest.raises(IndexError, match="axis 0; size of axis is 3 but size of corresponding boolean axis is 2"):
        mxnp.zeros((3, 4))[mxnp.array([True, False])]


@pytest.mark.parametrize("key", [1.0, "a", [1.5], mxnp.array([0.0]), {}, 10**30])
def test_what_is_no_index_is_refused(key):
    with pytest.raises(IndexError):
        mxnp.zeros((3,))[key]


def test_python_numbers_must_fit():
    x = mxnp.zeros((3,), "uint8")
    with pytest.raises(OverflowError, match="300"):
        x[0] = 300
    with pytest.raises(OverflowError):
        x[[0]] = -1
    with pytest.raises(ValueError, match="NaN"):
        x[0] = float("nan")
    with pytest.raises(TypeError):
        x[0] = 1j
    assert x.asnumpy().tolist() == [0, 0, 0]


def test_writing_to_a_read_only_array_is_refused():
    a = numpy.arange(3.0)
    a.flags.writeable = False
    x = mxnp.asarray(a)
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        x[[0]] = 1


def test_a_numpy_array_sees_what_is_written():
    a = numpy.zeros((3, 3), "float32")
    x = mxnp.asarray(a)
    x[[0, 2], 1] = 4
    x[x > 3] = 5
    assert a.tolist() == [[0, 5, 0], [0, 0, 0], [0, 5, 0]]


def test_large_masks_and_gathers_agree_with_numpy():
    rng = numpy.random.default_rng(3)
    a = rng.standard_normal((300, 400)).astype("float32")
    x = mxnp.array(a)
    mask, at = a > 0.3, rng.integers(-300, 300, 1000)
    numpy.testing.assert_array_equal(x[mxnp.array(mask)].asnumpy(), a[mask])
    numpy.testing.assert_array_equal(x[mxnp.array(at)].asnumpy(), a[at])
    numpy.testing.assert_array_equal(x[:, mxnp.array(at)].asnumpy(), a[:, at])
    values = rng.standard_normal(int(mask.sum())).astype("float32")
    a[mask], x[mxnp.array(mask)] = values, mxnp.array(values)
    numpy.testing.assert_array_equal(x.asnumpy(), a)


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64", "complex128"])
def test_elements_at_many_positions_agree_with_numpy(dtype):
    rng = numpy.random.default_rng(4)
    a = rng.integers(0, 200, (50_000, 3)).astype(dtype)
    line, at = a[:, 0].copy(), rng.integers(0, 50_000, 40_001)
    x, y, where = mxnp.array(a), mxnp.array(line), mxnp.array(at)
    for found in (y[where], mxnp.take(y, where), mxnp.take(y[::-1], where[::-1])[::-1]):
        want = line[::-1][at] if found.strides[0] < 0 else line[at]
        numpy.testing.assert_array_equal(found.asnumpy(), want)
    numpy.testing.assert_array_equal(mxnp.repeat(y, 3).asnumpy(), numpy.repeat(line, 3))
    for axis, shape in ((0, (40_001, 3)), (1, (50_000, 5))):
        order = rng.integers(0, a.shape[axis], shape)
        found = mxnp.take_along_axis(x, mxnp.array(order), axis).asnumpy()
        numpy.testing.assert_array_equal(found, numpy.take_along_axis(a, order, axis))
        turned = mxnp.take_along_axis(x.T, mxnp.array(order.T.copy()), 1 - axis).asnumpy()
        numpy.testing.assert_array_equal(turned, numpy.take_along_axis(a.T, order.T, 1 - axis))


def test_rows_are_views():
    x = mxnp.zeros((2, 3))
    for row in x:
        row[1] = 4
    assert x.asnumpy().tolist() == [[0, 4, 0], [0, 4, 0]]
