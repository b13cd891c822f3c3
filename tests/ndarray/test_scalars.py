"""Results without axes stand for NumPy's scalars, which in-place operators leave as they are."""

import copy
import pickle
from typing import Any

import ml_dtypes
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
def test_in_place_operators_of_results_are_the_binary_ones(line: str):
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
    def values_of(module: Any) -> list[Any]:
        y = module.asarray([1.5, 2.5])
        total, seen, places = y.sum(), [], {}
        for step in range(3):
            seen.append(total)
            places[total] = step
            total += 1
        row = [y[0]] * 3
        row[0] += 1
        return [*map(float, seen), *(places[float(t)] for t in seen), *map(float, row)]

    assert values_of(np) == values_of(onp)


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


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
)
def test_an_element_keeps_its_value_when_it_becomes_an_array(dtype):
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    values = onp.array([0, 1, 3, 2]).astype(kind)
    x = np.array(values, dtype=dtype)
    looks = [
        lambda e: None,
        lambda e: e.shape,
        lambda e: np.asarray(e),
        lambda e: e.asnumpy(),
        lambda e: np.stack([e, e]),
        repr,
        lambda e: e.attach_grad() if dtype == "float32" else None,
    ]
    operations = [
        lambda e, f: e + f,
        lambda e, f: e * 2,
        lambda e, f: 2 + e,
        lambda e, f: e == f,
        lambda e, f: e < f,
        lambda e, f: e != 3,
        lambda e, f: abs(e),
        lambda e, f: bool(e),
        lambda e, f: int(e.real),
        lambda e, f: complex(e),
        lambda e, f: hash(e.item()),
        lambda e, f: e.item(),
        lambda e, f: e.dtype,
        lambda e, f: onp.asarray(e).tobytes(),
        lambda e, f: copy.deepcopy(e) + f,
        lambda e, f: pickle.loads(pickle.dumps(e)) + f,
    ]
    for operate in operations:
        wanted = operate(values[2], values[3])
        for look in looks:
            for look_too in looks:
                e, f = x[2], x[3]
                look(e), look_too(f)
                found = operate(e, f)
                onp.testing.assert_equal(onp.asarray(found), onp.asarray(wanted))
                onp.testing.assert_equal(onp.asarray(e), values[2])
                if isinstance(found, np.ndarray):
                    assert (found.ndim, found.dtype) == (0, wanted.dtype)


def test_an_element_keeps_what_it_was_and_arrays_of_it_are_one():
    x = np.array([1.0, 2.0, 3.0])
    e = x[1]
    x[1] = 7.0
    assert float(e) == 2.0
    for row in (e.reshape(1), e.ravel(), e[None], np.atleast_1d(e), np.expand_dims(e, 0), e.reshape(1, 1)[0]):
        row[0] = 5.0
        assert float(e) == 2.0
    f = x[2]
    g = f
    f += 1
    assert (float(f), float(g), float(x[2])) == (4.0, 3.0, 3.0)
    g[()] = g
    f[()] = g
    assert (float(f), float(g)) == (3.0, 3.0)
    x[0] = x[2]
    x[np.array([1])] = x[0]
    x[2] = x[0] * 2
    onp.testing.assert_array_equal(x.asnumpy(), [3.0, 3.0, 6.0])


def test_elements_of_what_is_recorded_carry_gradients():
    x = np.array([1.0, 2.0, 3.0])
    x.attach_grad()
    with autograd.record():
        y = x[0] * x[1] + abs(-x[2]) * x[2]
    y.backward()
    onp.testing.assert_array_equal(x.grad.asnumpy(), [2.0, 1.0, 6.0])
    e = x[1]
    e.attach_grad()
    with autograd.record():
        z = e * e * 3
    z.backward()
    assert float(e.grad) == 12.0
