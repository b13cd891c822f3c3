"""Methods of small arrays and of elementwise functions take short ways: they give what NumPy's give."""

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
