"""Results without axes stand for NumPy's scalars, which in-place operators leave as they are."""

from typing import Any

import numpy as onp
import pytest

from mxnet import autograd, np, util

MAKERS = [
    *("x.sum()", "x[0]", "x.max()", "x.argmax()", "np.dot(x, x)", "np.sqrt(4.0)", "x.cumsum()[-1]", "np.add.reduce(x)"),
    *(
        "next(iter(x))",
        "np.searchsorted(x, 2)",
        "np.median(x)",
        "np.linalg.norm(x)",
        "x.mean()",
        "x[1] + x[0]",
        "-x[0]",
    ),
    *(
        "abs(x[0])",
        "x[0] % 2",
        "divmod(x[2], 2)[0]",
        "np.modf(x[0])[1]",
        "x @ x",
        "x.flat[0]",
        "np.trace(np.diag(x))",
        "x[0] > 1",
    ),
    *(
        "np.array(5)",
        "np.zeros(())",
        "np.full((), 3)",
        "np.ones_like(x[0, ...])",
        "x[0, ...]",
        "x[...][0, ...]",
        "np.asarray(2.5)",
    ),
    *("np.empty(()).copy()", "x[0, ...].reshape(())", "x[:1].squeeze()"),
    *("x[0].copy()", "x[0].__copy__()", "x[0].__deepcopy__({})", "x[0].astype('f4')", "x[0, ...].astype('f4')"),
    *("np.real(x[0])", "x[0].T", "x[0].squeeze()", "x[0].reshape(())", "x[0].view('u8')", "np.transpose(x[0])"),
    *("x[0][...]", "x[0][()]", "np.asarray(x[0])", "np.asanyarray(x[0])", "np.copy(x[0])", "np.array(x[0])"),
    *(
        "np.where(True, x[0], 2)",
        "np.select([True], [1])",
        "np.tensordot(x, x, 1)",
        "np.linalg.tensordot(x, x, axes=1)",
    ),
    *("np.nanvar(x)", "np.nanstd(x)", "np.nanpercentile(x, 3)", "np.quantile(x, 0.5)"),
    *("np.linalg.norm(x[:, None] + x, 2)", "np.linalg.cond(np.eye(2))", "np.linalg.cond(np.eye(2), 1)"),
]


@pytest.mark.parametrize("text", MAKERS)
def test_another_name_sees_what_it_sees_of_numpys(text: str):
    def seen(module: Any) -> bool:
        held = value = eval(text, {"np": module, "x": module.asarray([1, 2, 3])})
        if held.dtype == bool:
            value |= module.asarray(True)
        else:
            value += 1
        return value is held

    assert seen(np) == seen(onp)


def test_an_array_of_a_scalar_shares_no_memory_with_it():
    total = np.arange(3.0).sum()
    held = np.asarray(total)
    held += 1
    assert (float(total), float(held)) == (3, 4)


def test_variables_stay_what_they_are_in_asarray():
    x = np.arange(3.0).sum()
    x.attach_grad()
    assert np.asarray(x) is x


@pytest.mark.parametrize(
    "line",
    [
        *(
            "s /= 2",
            "s += 0.5",
            "s *= 1.5",
            "s -= 1j",
            "s **= 2",
            "s //= 4",
            "s %= 4",
            "s <<= 2",
            "s ^= 3",
            "s &= 2",
            "s >>= 1",
        ),
        *("s += np.asarray([1.5, 2])", "s *= x", "s += np.float64(0.5)", "s @= np.asarray([[1]])", "s += 'a'"),
    ],
)
def test_in_place_operators_of_results_are_the_plain_ones(line: str):
    def after(module: Any) -> Any:
        names = {"np": module, "x": module.asarray([1, 2, 3])}
        names["s"] = names["x"].sum()
        try:
            exec(line, names)
        except (TypeError, ValueError) as error:
            return type(error).__mro__[-3]
        return names["s"].dtype, names["s"].tolist()

    with util.np_default_dtype(True):
        assert after(np) == after(onp)


def test_programs_keep_what_they_have_seen():
    def told(module: Any) -> list[Any]:
        y = module.asarray([1.5, 2.5])
        total, seen, places = y.sum(), [], {}
        for step in range(3):
            seen.append(total)
            places[total] = step
            total += 1
        row = [y[0]] * 3
        row[0] += 1
        return [*map(float, seen), *(places[float(t)] for t in seen), *map(float, row)]

    assert told(np) == told(onp)


def test_gradients_pass_through_what_was_added_to():
    x = np.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        loss = first = (x * x).sum()
        loss += x.prod()
        loss *= 2
    loss.backward()
    assert x.grad.tolist() == [8, 10]
    assert first.item() == 5


def test_variables_are_written_to_whatever_they_came_from():
    w = np.array([3.0]).sum()
    w.attach_grad()
    held = w
    w -= 1
    assert held is w
    assert held.item() == 2
    gradient = w.grad
    gradient += 2
    assert w.grad.item() == 2
