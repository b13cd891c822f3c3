"""Keys of every kind on small arrays, drawn at random: reading and writing give what NumPy gives, views are views."""

import warnings

import numpy
import pytest

from mxnet import np

DTYPES = ("float32", "float64", "int64", "int32", "uint8", "bool", "complex64", "float16", "complex128")


def draw_entry(rng):
    kind = rng.integers(5)
    if kind == 0:
        return int(rng.integers(-3, 4))
    if kind == 1:
        start, stop = (None if rng.random() < 0.4 else int(rng.integers(-4, 5)) for _ in range(2))
        return slice(start, stop, None if rng.random() < 0.5 else int(rng.choice([-2, -1, 1, 2])))
    return (Ellipsis, None, slice(None))[kind - 2]


def outcome(run):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return run(), None
        except Exception as error:  # noqa: BLE001  whatever either side raises
            return None, error


def agree(theirs, ours, what):
    assert (theirs is None) == (ours is None), (what, theirs, ours)
    assert theirs is None or isinstance(ours, type(theirs)), (what, theirs, ours)


@pytest.mark.parametrize("seed", range(4))
def test_integers_slices_ellipsis_and_new_axes_agree_with_numpy(seed):
    rng = numpy.random.default_rng(seed)
    for _ in range(1500):
        shape = tuple(rng.integers(0, 4, rng.integers(0, 4)))
        x = numpy.arange(numpy.prod(shape, dtype=int)).reshape(shape).astype("float64")
        y = np.array(x.copy())
        if rng.random() < 0.3:
            x, y = x.T, y.T
        if shape and rng.random() < 0.2:
            x, y = x[::-1], y[::-1]
        key = draw_entry(rng) if rng.random() < 0.3 else tuple(draw_entry(rng) for _ in range(rng.integers(0, 5)))
        (want, theirs), (got, ours) = outcome(lambda x=x, k=key: x[k]), outcome(lambda y=y, k=key: y[k])
        agree(theirs, ours, (shape, key))
        if theirs is not None:
            continue
        numpy.testing.assert_array_equal(got.asnumpy(), want)
        if numpy.size(want):
            # Integers for all axes take a copy of the element, as NumPy's scalars are; all else shows a view.
            assert (got.base is not None) == isinstance(want, numpy.ndarray), (shape, key)
        x[key], y[key] = 7, 7
        numpy.testing.assert_array_equal(y.asnumpy(), x)


@pytest.mark.parametrize("seed", range(4))
def test_assignments_at_index_arrays_and_masks_agree_with_numpy(seed):
    rng = numpy.random.default_rng(seed)
    for _ in range(800):
        shape = tuple(rng.integers(1, 5, rng.integers(1, 4)))
        dtype = str(rng.choice(DTYPES))
        x = (rng.normal(size=shape) * 5).astype(dtype)
        y = np.array(x, dtype=dtype)
        if rng.random() < 0.2:
            x, y = numpy.asfortranarray(x), np.asfortranarray(y)
        at = tuple(rng.integers(0, 4, rng.integers(1, 3)))

        def positions(n, rng=rng, at=at):
            return rng.integers(-n - (rng.random() < 0.05), n + (rng.random() < 0.05), at)

        kind = rng.integers(4)
        if kind == 0:
            key = (positions(shape[0]),)
        elif kind == 1 and len(shape) > 1:
            key = (positions(shape[0]), positions(shape[1]))
        elif kind == 2:
            key = (rng.random(shape) < 0.5,)
        else:
            key = (Ellipsis,)
        target, _ = outcome(lambda x=x, k=key: x[k])
        of = dtype if rng.random() < 0.7 else str(rng.choice(["float32", "float64", "int64"]))
        value = (3, 2.5, (rng.normal(size=numpy.shape(target)) * 5).astype(of))[rng.integers(3)]
        mine = value if isinstance(value, int | float) else np.array(value, dtype=of)
        own = tuple(np.array(k) if isinstance(k, numpy.ndarray) else k for k in key)

        def assign(x, key, value):
            x[key if len(key) > 1 else key[0]] = value

        before = y.asnumpy().copy()
        _, theirs = outcome(lambda x=x, k=key, v=value: assign(x, k, v))
        _, ours = outcome(lambda y=y, k=own, v=mine: assign(y, k, v))
        agree(theirs, ours, (dtype, shape, key, value))
        numpy.testing.assert_array_equal(y.asnumpy(), before if theirs is not None else x)


def test_repeated_positions_take_the_last_value():
    x, y = np.zeros(4), numpy.zeros(4)
    x[np.array([1, 1, 3, 1])] = np.array([1.0, 2.0, 3.0, 4.0])
    y[[1, 1, 3, 1]] = [1.0, 2.0, 3.0, 4.0]
    numpy.testing.assert_array_equal(x.asnumpy(), y)


def test_positions_and_values_may_lie_in_the_array_itself():
    x, y = np.array([2, 0, 3, 1]), numpy.array([2, 0, 3, 1])
    x[x] = x[::-1]
    y[y] = y[::-1].copy()
    numpy.testing.assert_array_equal(x.asnumpy(), y)
    x[x] = x
    y[y.copy()] = y.copy()
    numpy.testing.assert_array_equal(x.asnumpy(), y)


def test_flat_positions_agree_with_numpy():
    for shape in [(), (3,), (2, 3), (2, 0)]:
        theirs = numpy.arange(numpy.prod(shape, dtype=int)).reshape(shape).astype("float64")
        ours = np.array(theirs)
        for x, y in ((theirs, ours), (theirs.T, ours.T)):
            for i in range(-8, 8):
                (want, error), (got, own) = outcome(lambda x=x, i=i: x.flat[i]), outcome(lambda y=y, i=i: y.flat[i])
                agree(error, own, (shape, i))
                if error is None:
                    assert got == want
                    x.flat[i] = y.flat[i] = want + 1
                    numpy.testing.assert_array_equal(y.asnumpy(), x)


def test_an_element_is_a_copy_that_later_writes_do_not_change():
    x = np.array([1.0, 2.0])
    first, flat = x[0], x.flat[1]
    x[0], x[1] = 5.0, 6.0
    assert (float(first), float(flat)) == (1.0, 2.0)
