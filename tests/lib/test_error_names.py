"""Errors of composite operators carry the name of the function that the user called."""

from collections.abc import Callable

import pytest

import mxnet as mx

np, npx = mx.np, mx.npx

CALLS: list[tuple[str, Callable[..., object]]] = [
    ("mean", lambda x, m: np.mean(x, where=m)),
    ("std", lambda x, m: np.std(x, where=m)),
    ("median", lambda x, m: np.median(x, axis=5)),
    ("percentile", lambda x, m: np.percentile(x, 50, axis=5)),
    ("nanmedian", lambda x, m: np.nanmedian(x, axis=5)),
    ("nanquantile", lambda x, m: np.nanquantile(x, 0.5, axis=5)),
    ("nanargmax", lambda x, m: np.nanargmax(x, axis=5)),
    ("nansum", lambda x, m: np.nansum(x, axis=5)),
    ("nancumsum", lambda x, m: np.nancumsum(x, axis=5)),
    ("trapezoid", lambda x, m: np.trapezoid(x, x=np.ones(7))),
    ("gradient", lambda x, m: np.gradient(x, axis=4)),
    ("unwrap", lambda x, m: np.unwrap(x, axis=5)),
    ("vstack", lambda x, m: np.vstack((x, np.ones((2, 4))))),
    ("hstack", lambda x, m: np.hstack((x, np.ones((3, 4))))),
    ("column_stack", lambda x, m: np.column_stack((x, np.ones((3, 4))))),
    ("delete", lambda x, m: np.delete(x, [0], axis=5)),
    ("extract", lambda x, m: np.extract(m, x)),
    ("apply_along_axis", lambda x, m: np.apply_along_axis(len, 5, x)),
    ("put_along_axis", lambda x, m: np.put_along_axis(x, np.array([[0]]), 1, 5)),
    ("dirichlet", lambda x, m: np.random.dirichlet(-np.ones(3))),
    ("gather_nd", lambda x, m: npx.gather_nd(x, np.array([[9], [9]]))),
    ("index_update", lambda x, m: npx.index_update(x, np.array([[9]]), 1)),
    ("masked_softmax", lambda x, m: npx.masked_softmax(x, m)),
]


@pytest.mark.parametrize(("name", "call"), CALLS, ids=[name for name, _ in CALLS])
def test_errors_name_the_function_that_was_called(name, call):
    x, mask = np.ones((2, 3)), np.ones((4, 4), dtype="bool")
    with pytest.raises((ValueError, IndexError)) as raised:
        call(x, mask)
    assert str(raised.value).startswith(f"{name}: ")


def test_errors_of_a_composite_show_its_own_operands():
    with pytest.raises(mx.error.ShapeError) as raised:
        np.mean(np.ones((2, 3)), where=np.ones((4, 4), dtype="bool"))
    shown = [line.split(":")[0].strip() for line in str(raised.value).splitlines()[1:3]]
    assert shown == ["a", "where"]


@pytest.mark.parametrize("name", ["poisson", "gamma"])
def test_errors_of_samplers_show_the_parameters_of_the_sampler(name):
    with pytest.raises(ValueError, match=rf"^{name}: ") as raised:
        getattr(np.random, name)(np.array([-1.0]))
    assert "\n  x" not in str(raised.value)
