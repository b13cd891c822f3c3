"""Methods of small arrays and of elementwise functions, which take fast paths, give what NumPy's give."""

import numpy
import pytest

import mxnet as mx
from mxnet import autograd

np = mx.np
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
SHAPES = [(), (1,), (5,), (0,), (3, 4), (2, 3, 4), (1, 3), (0, 3), (70, 90)]


@pytest.fixture(autouse=True)
def numpys_promotion():
    """Dtypes are NumPy's here, so that results can be compared."""
    before = mx._core.set_numpy_promotion(True)
    yield
    mx._core.set_numpy_promotion(before)


def values(dtype, shape):
    rng = numpy.random.default_rng(len(shape))
    x = rng.integers(0, 5, shape) - (0 if dtype == "bool" or dtype.startswith("u") else 2)
    x = numpy.asarray(x).astype(dtype)
    if x.size > 3 and x.dtype.kind in "fc":
        x.reshape(-1)[:2] = numpy.nan, -0.0
    return x


def views(x):
    """The array as it lies, and as views that are not dense."""
    return [x, x.T, x[..., ::2], x[::-1]] if x.ndim else [x]


def pairs(dtypes=DTYPES, shapes=SHAPES):
    for dtype in dtypes:
        for shape in shapes:
            x = values(dtype, shape)
            yield from zip(views(np.array(x)), views(x), strict=True)


def outcome(call):
    """What a call gives, or the class of the error that it raises."""
    try:
        with numpy.errstate(all="ignore"):
            return call()
    except Exception as error:  # noqa: BLE001  whatever NumPy raises
        return next(c for c in (IndexError, ValueError, TypeError, RuntimeError) if isinstance(error, c))


def same(got, want, rtol=0.0):
    if isinstance(want, type):
        assert got is want
        return
    got, want = numpy.asarray(got.asnumpy() if isinstance(got, np.ndarray) else got), numpy.asarray(want)
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    numpy.testing.assert_allclose(got, want, rtol=rtol, atol=0)


def sorted_in_place(x, *args, **kwargs):
    assert x.sort(*args, **kwargs) is None
    return x


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_arrays_and_views_sort_in_place_as_in_numpy(axis):
    for ours, theirs in pairs():
        same(outcome(lambda x=ours: sorted_in_place(x, axis)), outcome(lambda x=theirs: sorted_in_place(x, axis)))


def test_what_a_view_does_not_show_is_not_sorted():
    x, theirs = np.array([5, 4, 3, 2, 1, 0]), numpy.array([5, 4, 3, 2, 1, 0])
    x[::2].sort()
    theirs[::2].sort()
    x[3:].sort()
    theirs[3:].sort()
    same(x, theirs)
    assert x.base is None


@pytest.mark.parametrize(
    ("args", "kwargs", "error"),
    [
        ((None,), {}, TypeError),
        ((1.5,), {}, TypeError),
        ((), {"axis": None}, TypeError),
        ((7,), {}, ValueError),
        ((-1, "nope"), {}, ValueError),
        ((), {"order": "f"}, ValueError),
        ((-1, "stable"), {"stable": True}, ValueError),
        ((), {"depth": 1}, TypeError),
        ((0,), {"axis": 0}, TypeError),
        ((-1, None, None, None), {}, TypeError),
    ],
)
def test_wrong_arguments_of_sort_change_nothing(args, kwargs, error):
    x = np.array([3.0, 1.0, 2.0])
    with pytest.raises(error):
        x.sort(*args, **kwargs)
    assert x.tolist() == [3.0, 1.0, 2.0]


def test_kinds_of_sorts_are_accepted():
    for kwargs in ({"kind": "stable"}, {"kind": "mergesort"}, {"stable": True}, {"kind": None, "order": None}):
        assert sorted_in_place(np.array([3, 1, 2]), **kwargs).tolist() == [1, 2, 3]


@pytest.mark.parametrize("rearrange", [lambda y: y.sort(), lambda y: y.partition(1)], ids=["sort", "partition"])
def test_sorts_in_place_are_recorded(rearrange):
    """The slope goes to where each element came from, though that order is gone."""
    x = np.array([[3.0, 1.0, 2.0], [5.0, 6.0, 4.0]])
    x.attach_grad()
    with autograd.record():
        y = x * 1.0
        rearrange(y)
        assert y.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
        z = (y * np.array([1.0, 2.0, 3.0])).sum()
    z.backward()
    assert x.grad.tolist() == [[3.0, 1.0, 2.0], [2.0, 3.0, 1.0]]


def test_sorting_a_variable_in_place_changes_it():
    x = np.array([3.0, 1.0, 2.0])
    x.attach_grad()
    x.sort()
    assert x.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("kth", [0, 2, -1, [0, 2]])
def test_partitions_in_place_put_the_element_in_its_place(kth):
    for dtype in DTYPES:
        x = values(dtype, (3, 5))
        ours = np.array(x)
        assert ours.partition(kth) is None
        at = numpy.array(kth)
        same(ours.asnumpy()[:, at], numpy.sort(x)[:, at])
        same(np.sort(ours), numpy.sort(x))
    with pytest.raises(TypeError):
        ours.partition()
    with pytest.raises(TypeError):
        ours.partition(1, None)
    with pytest.raises(ValueError, match="out of bounds"):
        ours.partition(9)
    ours.setflags(write=False)
    with pytest.raises(ValueError, match="read-only"):
        ours.partition(0)


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "minimum", "subtract", "bitwise_or", "less", "matmul"])
@pytest.mark.parametrize("axis", [0, -1])
def test_methods_of_functions_agree_with_numpys_for_few_elements(name, axis):
    theirs, ours = getattr(numpy, name), getattr(np, name)
    for mine, its in pairs([dtype for dtype in DTYPES if dtype != "float16"], SHAPES[:-1]):
        rtol = 1e-5 if its.dtype.kind in "fc" else 0
        same(outcome(lambda x=mine: ours.accumulate(x, axis)), outcome(lambda x=its: theirs.accumulate(x, axis)), rtol)
        same(
            outcome(lambda x=mine: ours.reduce(x, axis=axis)), outcome(lambda x=its: theirs.reduce(x, axis=axis)), rtol
        )
        for starts in ([0], (0, 2, 1), [1, 0], [], [0, 9], [-1]):
            got = outcome(lambda x=mine, s=starts: ours.reduceat(x, s, axis))
            want = outcome(lambda x=its, s=starts: theirs.reduceat(x, numpy.array(s, int), axis=axis))
            same(got, want, rtol)
        if its.ndim < 3:
            same(outcome(lambda x=mine: ours.outer(x, x)), outcome(lambda x=its: theirs.outer(x, x)), rtol)


def test_segments_of_one_element_are_that_element():
    x = numpy.array([-0.0, 1.0])
    assert numpy.signbit(np.add.reduceat(np.array(x), [0, 1]).asnumpy()).tolist() == [True, False]
    starts = np.array([0, 1])
    same(np.add.reduceat(np.array(x), starts), numpy.add.reduceat(x, [0, 1]))


def test_methods_of_functions_are_recorded():
    x = np.array([1.0, 2.0, 3.0])
    x.attach_grad()
    with autograd.record():
        (np.add.accumulate(x) + np.add.outer(x, x).sum() + np.add.reduceat(x, [0, 1, 1])).sum().backward()
    assert x.grad.tolist() == [22.0, 22.0, 20.0]


@pytest.mark.parametrize("name", ["add", "less", "divide", "power", "sqrt", "logical_and", "maximum"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int16", "complex64", "bool"])
def test_functions_compute_in_the_dtype_that_is_asked_for(name, dtype):
    count = getattr(numpy, name).nin
    for ours, theirs in pairs(["int8", "int64", "float32", "float64", "bool"], [(), (3,), (3, 4)]):
        got = outcome(lambda x=ours: getattr(np, name)(*[x] * count, dtype=dtype))
        want = outcome(lambda x=theirs: getattr(numpy, name)(*[x] * count, dtype=dtype))
        if (dtype, name) == ("bool", "add") or not isinstance(want, type):
            same(got, want, 1e-5)
        else:
            assert isinstance(got, type)


def test_functions_write_where_the_mask_is_true():
    for ours, theirs in pairs():
        mask = numpy.arange(theirs.size).reshape(theirs.shape) % 2 == 0
        for dtype in (theirs.dtype, "complex128"):
            out, want = np.full(theirs.shape, 7, dtype), numpy.full(theirs.shape, 7, dtype)
            assert np.add(ours, ours, where=np.array(mask), out=out) is out
            numpy.add(theirs, theirs, where=mask, out=want)
            same(out, want)
        made = np.add(ours, ours, where=np.array(mask))
        same(made.asnumpy()[mask], (theirs + theirs)[mask])
    x, wide = np.ones(3), np.ones((2, 3), "bool")
    assert np.add(x, x, where=wide).shape == (2, 3)
    with pytest.raises(ValueError):
        np.add(x, x, where=np.ones(2, "bool"))
    # A mask and operands that are the target, too.
    b = np.array([True, False, True])
    assert np.logical_not(b, where=b, out=b).tolist() == [False, False, False]
    x = np.array([1.0, 2.0, 3.0])
    assert np.add(x, x[::-1], where=np.array([True, False, True]), out=x).tolist() == [4.0, 2.0, 4.0]


@pytest.mark.parametrize("name", ["sum", "prod", "max", "mean", "any", "argmax", "cumsum"])
def test_folds_write_to_out(name):
    for ours, theirs in pairs(["float32", "float64", "int64", "bool"], [(3,), (3, 4), (2, 3, 4)]):
        want = getattr(theirs, name)(0)
        for dtype in (want.dtype, "float64"):
            out = np.zeros(want.shape, dtype)
            assert getattr(ours, name)(0, out=out) is out
            same(out, want.astype(dtype), 1e-6)
            assert getattr(ours, name)(axis=0, out=out) is out
        with pytest.raises(ValueError):
            getattr(ours, name)(0, out=np.zeros((7, 7), want.dtype))
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    x.sum(0, out=x[0])
    assert x.tolist() == [[4.0, 6.0], [3.0, 4.0]]
    locked = np.zeros(2)
    locked.setflags(write=False)
    with pytest.raises(ValueError, match="read-only"):
        x.sum(0, out=locked)


def test_running_folds_agree_with_numpys():
    for ours, theirs in pairs([dtype for dtype in DTYPES if dtype != "float16"]):
        for axis in (None, 0, -1):
            for name in ("cumsum", "cumprod"):
                got = outcome(lambda x=ours, n=name, a=axis: getattr(x, n)(a))
                want = outcome(lambda x=theirs, n=name, a=axis: getattr(x, n)(a))
                if not isinstance(want, type) and want.size > 1000:
                    continue  # the order of additions decides
                same(got, want, 1e-4)


def test_squeezing_nothing_gives_the_array_itself():
    for ours, theirs in pairs():
        for squeeze in (lambda x: x.squeeze(), lambda x: type(x).squeeze(x)):
            same(squeeze(ours), squeeze(theirs))
            assert (squeeze(ours) is ours) == (squeeze(theirs) is theirs)
    x = np.ones(3)
    with autograd.record():
        assert np.squeeze(x) is x
    assert x.squeeze(()) is not x


def test_views_know_their_base_and_whether_they_may_be_written():
    x = np.zeros((3, 4))
    for look in (
        lambda a: a.T,
        lambda a: a.mT,
        lambda a: a.ravel(),
        lambda a: a.reshape(-1),
        lambda a: a[None].squeeze(),
    ):
        assert look(x).base is x
        assert look(look(x)).base is x
        x.setflags(write=False)
        assert not look(x).flags.writeable
        x.setflags(write=True)
        look(x)[...] = 1.0
        assert x.asnumpy().all()
        x[...] = 0.0
    deep = np.zeros((1, 2, 1, 2, 1, 2))
    assert deep.T.shape == (2, 1, 2, 1, 2, 1)
    assert deep.squeeze().shape == (2, 2, 2)
    with pytest.raises(ValueError, match="at least 2 axes"):
        np.ones(3).mT


def test_elements_become_python_numbers():
    for ours, theirs in pairs():
        assert str(ours.tolist()) == str(theirs.tolist())
        assert ours.tobytes() == theirs.tobytes()
        assert [str(x) for x in map(ours.item, range(ours.size))] == [str(theirs.item(i)) for i in range(theirs.size)]
        got, want = outcome(ours.nonzero), outcome(theirs.nonzero)
        if isinstance(want, type):
            assert got is want
            continue
        for mine, its in zip(got, want, strict=True):
            same(mine, its)


def test_positions_in_an_iterator_go_on_from_element_to_element():
    x = np.arange(6).reshape(2, 3)
    flat = x.T.flat
    assert [int(next(flat)) for _ in range(4)] == [0, 3, 1, 4]
    assert (flat.index, flat.coords, len(flat)) == (4, (2, 0), 6)
    x[0, 2] = 9
    assert [int(element) for element in flat] == [9, 5]
    assert next(flat, None) is None


def test_item_says_what_is_wrong():
    x = np.ones((2, 3))
    for args, error in [
        ((9,), IndexError),
        ((1, 3), IndexError),
        ((1, 2, 3), ValueError),
        (("a",), TypeError),
        ((), ValueError),
    ]:
        with pytest.raises(error):
            x.item(*args)
    with pytest.raises(TypeError):
        x.item(position=1)
    assert x.item((1, 2)) == x.item(numpy.int64(0)) == 1.0


def test_resizing_to_the_same_shape_changes_nothing():
    x = np.arange(6).reshape(2, 3)
    view = x[0]
    x.resize(2, 3)
    x.resize((2, 3))
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    x[0, 0] = 7
    assert view[0] == 7


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "less", "logical_and", "maximum"])
def test_operands_that_lie_in_different_orders_agree_with_numpy(name):
    for dtype in ("bool", "int16", "float16", "float64", "complex64"):
        if (dtype, name) == ("bool", "subtract"):
            continue
        x = values(dtype, (4, 4))
        lying = [views(np.array(x)), views(x)]
        for i, j in [(0, 1), (1, 0), (3, 1), (2, 2), (3, 3), (3, 0)]:
            got, want = (getattr(space, name)(of[i], of[j]) for space, of in zip((np, numpy), lying, strict=True))
            same(got, want)
            assert got.strides == want.strides
            with autograd.record():
                same(getattr(np, name)(lying[0][i], lying[0][j]), want)
        same(lying[0][3] + 1, lying[1][3] + 1)


@pytest.mark.parametrize("part", ["real", "imag"])
def test_parts_are_views_and_zeros_of_real_numbers(part):
    for ours, theirs in pairs():
        same(getattr(ours, part), getattr(theirs, part))
        assert getattr(ours, part).flags.writeable == getattr(theirs, part).flags.writeable
    x, theirs = np.array([[1 + 2j, 3], [4, 5j]]), numpy.array([[1 + 2j, 3], [4, 5j]])
    assert getattr(x, part).base is x
    getattr(x.T, part)[0] = 7
    getattr(theirs.T, part)[0] = 7
    same(x, theirs)
    x.setflags(write=False)
    assert not getattr(x, part).flags.writeable
    element = x.sum()
    same(getattr(element, part), getattr(theirs.sum(), part))


def test_parts_are_recorded():
    x = np.array([1.0 + 2j, 3])
    x.attach_grad()
    with autograd.record():
        y = (x.real * x.imag).sum()
    y.backward()
    same(x.grad.real, numpy.array([2.0, 0.0]))


def test_diagonals_are_views_that_are_not_written_to():
    for ours, theirs in pairs(shapes=[(3, 4), (2, 3, 4), (1, 3), (0, 3), (70, 90)]):
        for args in [(), (1,), (-1,), (9,), (1, 1, 0), ((1,),), (1.5,)]:
            same(outcome(lambda x=ours, a=args: x.diagonal(*a)), outcome(lambda x=theirs, a=args: x.diagonal(*a)))
    x = np.arange(9.0).reshape(3, 3).copy()
    diagonal = x.diagonal()
    assert not diagonal.flags.writeable and diagonal.base is x
    x[1, 1] = -1
    same(diagonal, numpy.array([0.0, -1.0, 8.0]))
    with pytest.raises(ValueError, match="read-only"):
        diagonal[0] = 1


def test_a_view_of_all_shares_the_memory():
    for ours, theirs in pairs(dtypes=["float32", "complex64"]):
        same(ours.view(), theirs)
        assert ours.view() is not ours and type(ours.view()) is np.ndarray
    x = np.zeros((2, 3))
    x.view()[1] = 5
    same(x, numpy.array([[0.0] * 3, [5.0] * 3]))
    assert x.view().base is x
    x.setflags(write=False)
    assert not x.view().flags.writeable


def test_elements_are_taken_of_all_axes():
    for ours, theirs in pairs(dtypes=["bool", "float32", "int64", "complex128"]):
        for indices in [0, -1, 2, 99, [0, -1], [[1], [2]], [], [99], True]:
            index = numpy.array(indices, dtype="int64" if indices == [] else None)
            given = indices if isinstance(indices, int) else np.array(index)
            for axis in [None, 0, 1, -1] if theirs.ndim else [None]:
                want = outcome(lambda x=theirs, i=index, a=axis: x.take(i, a))
                same(outcome(lambda x=ours, i=given, a=axis: x.take(i, a)), want)


def test_what_a_condition_lets_through():
    for ours, theirs in pairs(dtypes=["bool", "float32", "int64", "complex128"]):
        for condition in [[True, False, True], [False, True], [True] * 9, [], [1, 0, 2]]:
            c = numpy.array(condition, dtype="bool" if condition == [] else None)
            for axis in [None, 0, 1, -1, 5] if theirs.ndim else [None]:
                want = outcome(lambda x=theirs, c=c, a=axis: x.compress(c, a))
                same(outcome(lambda x=ours, c=c, a=axis: x.compress(np.array(c), a)), want)
                same(outcome(lambda x=ours, c=c, a=axis: np.compress(np.array(c), x, a)), want)


@pytest.mark.parametrize("decimals", [(), (0,), (1,), (-1,)])
def test_rounding_agrees_with_numpys(decimals):
    for ours, theirs in pairs(dtypes=["float32", "float64", "int32", "complex64"]):
        same(
            outcome(lambda x=ours: (x * 3 / 2).round(*decimals)),
            outcome(lambda x=theirs: (x * 3 / 2).round(*decimals)),
            1e-6,
        )
    x = np.array([0.5, 1.5])
    with autograd.record():
        same(x.round(), numpy.array([0.0, 2.0]))


@pytest.mark.parametrize("indices", [0, -1, 2, 99, -99, [0, 1], [-1, 0, 0], [], [99], "a"])
@pytest.mark.parametrize("value", [1, 1.5, True, [1, 2], [1.5, 2.5, 3.5], 2j, None, "a"])
def test_numbers_are_put_at_flat_positions(indices, value):
    for dtype in ["int64", "float32", "complex64", "bool"]:
        for shape in [(5,), (3, 4), (2, 3, 4)]:
            for view in range(4):
                ours, theirs = np.array(values(dtype, shape)), values(dtype, shape)
                a, b = views(ours)[view], views(theirs)[view]
                got, want = outcome(lambda a=a: a.put(indices, value)), outcome(lambda b=b: b.put(indices, value))
                if isinstance(got, type) and isinstance(want, type):
                    continue
                assert got is want, (dtype, shape, view)
                same(ours, theirs)


def test_what_put_refuses():
    x = np.zeros(3)
    for args, kwargs in [
        ((), {}),
        ((0,), {}),
        ((0, 1, "raise", 4), {}),
        ((0, 1), {"out": x}),
        ((0, 1), {"indices": 2}),
    ]:
        with pytest.raises(TypeError):
            x.put(*args, **kwargs)
    with pytest.raises(ValueError, match="mode"):
        x.put(0, 1, mode="no")
    with pytest.raises(IndexError):
        x.put(3, 1)
    x.put(values=2, indices=4, mode="wrap")
    same(x, numpy.array([0.0, 2.0, 0.0]))
    x.setflags(write=False)
    with pytest.raises(ValueError, match="read-only"):
        x.put(0, 1.0)


def test_put_is_recorded():
    x = np.ones(3)
    x.attach_grad()
    with autograd.record():
        y = x * 2
        y.put(0, 5.0)
        z = (y * y).sum()
    z.backward()
    same(x.grad, numpy.array([0.0, 8.0, 8.0]))


def test_slices_are_views_of_their_array():
    x, theirs = np.arange(12).reshape(3, 4), numpy.arange(12).reshape(3, 4)
    whole = x.copy()
    for key in [
        slice(1, 3),
        (slice(None), 1),
        None,
        1,
        (..., 0),
        slice(None, None, -1),
        (slice(1, None), slice(1, None)),
    ]:
        same(whole[key], theirs[key])
        assert whole[key].base is whole and whole[key].flags.writeable
        assert whole[key][...].base is whole
    element = whole.sum()
    element[None][0] = 7
    assert int(element) == 66


def test_conversions_that_change_nothing_give_the_array_itself():
    x, theirs = np.array(values("float32", (3, 4))), values("float32", (3, 4))
    for a, b in zip(views(x), views(theirs), strict=True):
        assert a.astype("float32", copy=False) is a
        assert a.astype(dtype="float32", copy=False) is a
        same(a.astype("float64", copy=False), b.astype("float64"))
        copy = a.astype("float32", copy=True)
        same(copy, b)
        assert copy is not a and copy.base is None
    with pytest.raises(TypeError):
        x.astype("int32", casting="safe", copy=False)
