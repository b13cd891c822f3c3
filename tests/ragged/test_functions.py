"""Functions of `np` and `npx` on ragged arrays, against the same function on each row."""

import numpy as onp
import pytest
from tests.support import slopes

import mxnet as mx
from mxnet import _core, error, np, npx, ragged
from mxnet.ragged import _table

RNG = onp.random.default_rng(34)
LENGTHS = (3, 1, 4)


def rows(*tail, low=-2.0, high=2.0, lengths=LENGTHS):
    return [RNG.uniform(low, high, (n, *tail)) for n in lengths]


def of(parts):
    return ragged.array([np.array(x) for x in parts])


def same(r, parts, atol=0.0):
    assert len(r) == len(parts)
    for got, want in zip(r, parts, strict=True):
        onp.testing.assert_allclose(got.asnumpy(), want, atol=atol)


UFUNCS = sorted(
    name
    for name, found in _core.namespaces["numpy"].items()
    if isinstance(found, np.ufunc) and found.signature is None and found.__name__ == name
)


@pytest.mark.parametrize("name", UFUNCS)
def test_every_function_of_elements_is_that_of_the_values(name):
    function = getattr(np, name)
    integers = name.startswith("bitwise") or name in ("gcd", "lcm", "left_shift", "right_shift", "invert", "ldexp")
    operands = [
        [RNG.integers(1, 4, n) if integers else RNG.uniform(0.1, 0.9, n) for n in LENGTHS] for _ in range(function.nin)
    ]
    if name == "ldexp":
        operands[0] = rows()
    got = function(*map(of, operands))
    want = [function(*(np.array(x) for x in parts)) for parts in zip(*operands, strict=True)]
    for i in range(function.nout):
        pick = (lambda x, i=i: x[i]) if function.nout > 1 else (lambda x: x)
        same(pick(got), [pick(x).asnumpy() for x in want])


def test_operators_and_dense_operands_broadcast():
    x, y = rows(3), rows(3)
    a, b = of(x), of(y)
    same(a + b, [p + q for p, q in zip(x, y, strict=True)])
    same(2 - a, [2 - p for p in x])
    same(a * np.array([1.0, 2.0, 3.0], dtype="float64"), [p * [1, 2, 3] for p in x])
    each = RNG.normal(size=(3, 1, 1))
    same(np.array(each) * a, [p * q for p, q in zip(x, each, strict=True)])
    wide = RNG.normal(size=(3, 1, 3))
    same(a - np.array(wide), [p - q for p, q in zip(x, wide, strict=True)])
    same(a / onp.full((1, 1, 3), 2.0), [p / 2 for p in x])
    same(a > b, [p > q for p, q in zip(x, y, strict=True)])
    same(-abs(a), [-abs(p) for p in x])
    same(onp.add(a, 1.0), [p + 1 for p in x])
    c = a.copy()
    c += 1
    same(c, [p + 1 for p in x])
    narrow = of(rows(1))
    same(a + narrow, [p + q.asnumpy() for p, q in zip(x, narrow, strict=True)])


def test_deep_arrays_broadcast():
    r = ragged.array([[[1.0, 2.0], [3.0]], [[4.0]]])
    assert (r * np.array([[[1.0]], [[10.0]]])).tolist() == [[[1, 2], [3]], [[40]]]


def test_operands_that_do_not_fit_are_named():
    a = of(rows())
    with pytest.raises(ValueError, match="offsets first differ at element 2, 4 and 5: row 1 has 1 elements in one"):
        a + of(rows(lengths=(3, 2, 3)))
    with pytest.raises(ValueError, match="add: ragged arrays of 3 and 2 rows"):
        a + of(rows(lengths=(3, 1)))
    with pytest.raises(ValueError, match="so it must be 1 in the dense operand, found 4"):
        a + np.ones((3, 4))
    with pytest.raises(ValueError, match="add: 2 rows of the dense operand for 3 ragged rows"):
        a + np.ones((2, 1))
    with pytest.raises(ValueError, match="ragged operands of 2 and 3 axes"):
        a + of(rows(1))
    with pytest.raises(ValueError, match="add: 1 and 2 ragged axes"):
        a + ragged.array([[[1.0], []], [[1.0]], [[1.0]]])


def test_functions_of_elements_that_are_no_ufuncs():
    x = rows()
    a = of(x)
    same(np.where(a > 0, a, 0.0), [onp.where(p > 0, p, 0) for p in x])
    same(np.clip(a, -1, 1), [onp.clip(p, -1, 1) for p in x])
    same(np.clip(a, a_max=0.5), [onp.minimum(p, 0.5) for p in x])
    same(npx.relu(a), [onp.maximum(p, 0) for p in x])
    same(npx.activation(a, "tanh"), [onp.tanh(p) for p in x], atol=1e-15)
    same(np.zeros_like(a), [onp.zeros_like(p) for p in x])
    assert npx.one_hot(a.astype("int64") * 0, 3).shape == (3, None, 3)


def test_operands_may_be_given_by_name():
    x = rows()
    a = of(x)
    same(np.where(condition=a > 0, x=a, y=-a), [onp.abs(p) for p in x])
    same(np.where(a > 0, y=0.0, x=a), [onp.maximum(p, 0) for p in x])
    row = onp.array([[1.0], [2.0], [3.0]])
    same(np.where(a > 0, a, y=np.array(row)), [onp.where(p > 0, p, n) for p, n in zip(x, row, strict=True)])
    same(np.clip(a=a, a_min=-1, a_max=1), [onp.clip(p, -1, 1) for p in x])
    same(np.clip(a, max=a * 0 + 0.5), [onp.minimum(p, 0.5) for p in x])
    same(np.isclose(b=a, a=1.0, atol=0.5, rtol=0.0), [onp.isclose(1.0, p, atol=0.5, rtol=0.0) for p in x])
    same(np.full_like(a, fill_value=a), x)
    same(np.zeros_like(a=a), [onp.zeros_like(p) for p in x])
    same(npx.activation(act_type="relu", data=a), [onp.maximum(p, 0) for p in x])
    same(np.subtract(x1=a, x2=1.0), [p - 1 for p in x])
    same(np.subtract(1.0, x2=a), [1 - p for p in x])
    same(npx.relu(data=a), [onp.maximum(p, 0) for p in x])
    out = np.zeros_like(a)
    assert np.exp(x=a, out=out) is out
    same(out, [onp.exp(p) for p in x], atol=1e-15)
    deep = rows(2)
    same(np.matmul(x2=np.ones((2, 3)), x1=of(deep)), [p @ onp.ones((2, 3)) for p in deep], atol=1e-15)
    with pytest.raises(TypeError, match=r"isclose\(\) missing required argument: 'b'"):
        np.isclose(a=a)
    with pytest.raises(TypeError, match=r"add\(\) takes from 2 to 3 positional arguments but 1 were given"):
        np.add(a)


def test_bins_and_sets_of_elements():
    a = of([onp.array([1.0, 5.0]), onp.array([2.0])])
    assert np.digitize(x=a, bins=[2.0, 4.0]).tolist() == [[0, 2], [1]]
    assert np.isin(np.array([1.0, 9.0]), a).tolist() == [True, False]
    with pytest.raises(error.UnsupportedError, match=r"digitize: no operator for operands \(ragged, ragged\)"):
        np.digitize(a, a)
    with pytest.raises(error.UnsupportedError, match="histogram: `bins` must not be ragged"):
        np.histogram(a, bins=a + 1)


REDUCTIONS = ["sum", "prod", "max", "min", "mean", "std", "var", "any", "all", "argmax", "argmin"]


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions_are_those_of_each_row(name, keepdims):
    x = rows(2)
    a = of(x)
    reduce = getattr(onp, name)
    got = getattr(np, name)(a, axis=1, keepdims=keepdims)
    onp.testing.assert_allclose(got.asnumpy(), [reduce(p, axis=0, keepdims=keepdims) for p in x], atol=1e-14)
    same(getattr(np, name)(a, axis=-1, keepdims=keepdims), [reduce(p, -1, keepdims=keepdims) for p in x], atol=1e-14)
    onp.testing.assert_allclose(getattr(np, name)(a).asnumpy(), reduce(onp.concatenate(x)), atol=1e-14)
    if not name.startswith("arg"):
        got = getattr(np, name)(a, axis=(1, 2), keepdims=keepdims).asnumpy()
        onp.testing.assert_allclose(got.reshape(3), [reduce(p) for p in x], atol=1e-14)
        assert got.shape == ((3, 1, 1) if keepdims else (3,))
        onp.testing.assert_allclose(getattr(a, name)(axis=1).asnumpy(), [reduce(p, axis=0) for p in x], atol=1e-14)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "mean"])
def test_reductions_over_the_rows(name):
    x = rows(2)
    got = getattr(np, name)(of(x), axis=0).asnumpy()
    for place in range(max(LENGTHS)):
        there = onp.stack([p[place] for p in x if len(p) > place])
        onp.testing.assert_allclose(got[place], getattr(onp, name)(there, axis=0), atol=1e-14)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "var"])
def test_reductions_of_deep_arrays(name):
    x = [[[1.0, 2.0], [3.0]], [[4.0, 6.0, 8.0]]]
    r = ragged.array(x)
    inner = getattr(np, name)(r, axis=2)
    assert inner.shape == (2, None)
    for got, want in zip(inner.tolist(), x, strict=True):
        onp.testing.assert_allclose(got, [getattr(onp, name)(p) for p in want])
    both = getattr(np, name)(r, axis=(1, 2)).asnumpy() if name != "var" else None
    if both is not None:
        onp.testing.assert_allclose(both, [getattr(onp, name)(onp.concatenate(p)) for p in x])


DEEP = [[[1.0, 2.0], [3.0], [-1.0, 7.0, 2.0]], [[4.0, 6.0, 8.0]], [[], [5.0]]]


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "max", "min", "var", "any", "count_nonzero", "ptp"])
@pytest.mark.parametrize("axis", [0, 1])
def test_reductions_before_the_last_ragged_axis(name, axis):
    r = ragged.array(DEEP)
    # The inner rows that are reduced together.
    groups = DEEP if axis == 1 else [[row[i] for row in DEEP if len(row) > i] for i in range(3)]
    want = [
        [getattr(onp, name)(onp.array([row[j] for row in group if len(row) > j])) for j in range(max(map(len, group)))]
        for group in groups
    ]
    found = getattr(np, name)(r, axis=axis)
    assert found.num_ragged == 1
    for got, row in zip(found.tolist(), want, strict=True):
        onp.testing.assert_allclose(got, row, atol=1e-14)
    if name in ("sum", "max"):
        kept = getattr(np, name)(r, axis=axis, keepdims=True)
        assert kept.shape == ((1, None, None) if axis == 0 else (3, None, None))
        assert kept.values.tolist() == found.values.tolist()


@pytest.mark.parametrize("name", ["var", "std"])
def test_spread_over_the_rows(name):
    x = rows(2)
    got = getattr(np, name)(of(x), axis=0).asnumpy()
    for place in range(max(LENGTHS)):
        there = onp.stack([p[place] for p in x if len(p) > place])
        onp.testing.assert_allclose(got[place], getattr(onp, name)(there, axis=0), atol=1e-14)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_the_row_with_the_extreme_at_each_place(name):
    x = rows(2)
    got = getattr(np, name)(of(x), axis=0).asnumpy()
    far = -onp.inf if name == "argmax" else onp.inf
    padded = onp.full((len(x), max(LENGTHS), x[0].shape[1]), far)
    for i, p in enumerate(x):
        padded[i, : len(p)] = p
    onp.testing.assert_array_equal(got, getattr(onp, name)(padded, axis=0))


def test_softmax_before_the_last_ragged_axis():
    r = ragged.array([[[1.0, 2.0], [3.0]], [[4.0]]], dtype="float64")
    r.attach_grad()
    with mx.autograd.record():
        y = npx.softmax(r, axis=1)
        z = np.sum(y * y)
    z.backward()
    e = onp.exp([1.0, 3.0])
    p = e / e.sum()
    onp.testing.assert_allclose(y.values.asnumpy(), [p[0], 1, p[1], 1], rtol=1e-14)
    slope = p * (2 * p - (2 * p * p).sum())
    onp.testing.assert_allclose(r.grad.values.asnumpy(), [slope[0], 0, slope[1], 0], atol=1e-14)


def test_deep_rows_are_joined_cut_and_reversed():
    r = ragged.array([[[1.0, 2.0], [3.0]], [[4.0, 5.0, 6.0]], []])
    assert np.concatenate([r, r * 10], axis=2).tolist() == [
        [[1.0, 2.0, 10.0, 20.0], [3.0, 30.0]],
        [[4.0, 5.0, 6.0, 40.0, 50.0, 60.0]],
        [],
    ]
    assert np.flip(r, axis=1).tolist() == [[[3.0], [1.0, 2.0]], [[4.0, 5.0, 6.0]], []]
    assert np.flip(r, axis=2).tolist() == [[[2.0, 1.0], [3.0]], [[6.0, 5.0, 4.0]], []]
    first, rest = np.split(r, [1], axis=2)
    assert first.tolist() == [[[1.0], [3.0]], [[4.0]], []] and rest.tolist() == [[[2.0], []], [[5.0, 6.0]], []]
    assert np.stack([r, r], axis=2).tolist()[1] == [[[4.0, 5.0, 6.0], [4.0, 5.0, 6.0]]]
    with pytest.raises(
        error.ShapeError, match="concatenate: the raggedness differs: offsets first differ at element 1"
    ):
        np.concatenate([r, r[[1, 0, 2]]], axis=2)


def test_uniform_axes_move():
    x = [p[:, :, None] * onp.array([1.0, 2.0, 3.0]) for p in rows(2)]
    a = of(x)
    same(np.transpose(a, (0, 1, 3, 2)), [p.transpose(0, 2, 1) for p in x])
    same(np.moveaxis(a, 2, 3), [onp.moveaxis(p, 1, 2) for p in x])
    same(np.cumsum(a, axis=3), [onp.cumsum(p, axis=2) for p in x])
    same(np.vstack([a, a]), [*x, *x])
    same(np.copy(a), x)
    with pytest.raises(error.UnsupportedError, match=r"axes 0 to 1 .* stay"):
        np.transpose(a)


def test_reductions_of_empty_rows():
    r = ragged.array([np.array([1.0, 2.0]), np.zeros(0)])
    assert np.sum(r, axis=1).tolist() == [3, 0]
    assert np.prod(r, axis=1).tolist() == [2, 1]
    assert onp.isnan(np.mean(r, axis=1).asnumpy()).tolist() == [False, True]
    assert np.all(r, axis=1).tolist() == [True, True]
    assert np.any(r, axis=1).tolist() == [True, False]
    with pytest.raises(ValueError, match="max: row 1 has no element, and max has no identity"):
        np.max(r, axis=1)


def test_dtypes_of_reductions():
    r = ragged.array([[1, 2], [3]], dtype="int8")
    assert np.sum(r, axis=1).dtype == onp.int64
    assert np.max(r, axis=1).dtype == onp.int8
    assert np.mean(r, axis=1).dtype == onp.float32
    assert np.sum(r, axis=1, dtype="float64").dtype == onp.float64
    half = ragged.array([[1, 2], [3]], dtype="float16")
    assert np.mean(half, axis=1).dtype == onp.float16
    assert np.var(r, axis=1, dtype="complex64").dtype == "complex64"
    assert np.var(r.astype("complex64"), axis=1).dtype == "float32"


def test_arguments_without_meaning_are_refused():
    r = of(rows())
    with pytest.raises(error.UnsupportedError, match="sum: ragged arrays take no `initial`"):
        np.sum(r, axis=1, initial=3.0)
    with pytest.raises(error.UnsupportedError, match="sum: ragged arrays take no `out`"):
        np.sum(r, axis=1, out=np.zeros(3))
    with pytest.raises(error.UnsupportedError, match="softmax: ragged arrays take no `length`"):
        npx.softmax(r, length=np.ones(3))


def test_a_missing_pair_is_named():
    r = of(rows(3))
    with pytest.raises(error.UnsupportedError, match=r"matmul: no operator for operands \(dense, ragged\)"):
        np.matmul(np.ones((2, 3)), r)
    with pytest.raises(error.UnsupportedError, match=r"trace: no operator for operands \(ragged\)") as raised:
        onp.trace(r)
    assert "names()" in str(raised.value)
    with pytest.raises(error.UnsupportedError, match=r"^kron: "):
        np.kron(r, r)
    with pytest.raises(error.UnsupportedError, match="corrcoef: a ragged array does not become a dense one by itself"):
        np.corrcoef(r)
    with pytest.raises(error.UnsupportedError, match=r"concatenate: no operator for operands \(ragged, dense\)"):
        np.concatenate([r, np.ones((3, 2, 3))], axis=1)


def test_the_table_names_functions_that_exist():
    for name in [*_table.TABLE, *_table.ELEMENTWISE]:
        assert callable(_table._ours(name)), name
    assert {"sum", "add", "softmax"} <= set(ragged.names())


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_concatenate(axis):
    x, y = rows(2), rows(2)
    got = np.concatenate([of(x), of(y), of(x)], axis=axis)
    if axis == 0:
        return same(got, [*x, *y, *x])
    return same(got, [onp.concatenate([p, q, p], axis=axis - 1 if axis > 0 else 1) for p, q in zip(x, y, strict=True)])


def test_concatenate_of_other_lengths_and_depths():
    x, y = rows(2), rows(2, lengths=(0, 2, 1))
    same(np.concatenate([of(x), of(y)], axis=1), [onp.concatenate(p) for p in zip(x, y, strict=True)])
    deep = ragged.array([[[1, 2], [3]], [[4]]])
    assert np.concatenate([deep, deep], axis=0).tolist() == deep.tolist() * 2
    assert np.concatenate([deep, deep], axis=1).tolist() == [row * 2 for row in deep.tolist()]
    with pytest.raises(ValueError, match="the raggedness differs"):
        np.concatenate([of(x), of(y)], axis=2)


def test_stack():
    x, y = rows(2), rows(2)
    a, b = of(x), of(y)
    got = np.stack([a, b])
    assert got.shape == (2, None, None, 2)
    same(got[1], y)
    got = np.stack([a, b], axis=1)
    for i, row in enumerate(got):
        same(row, [x[i], y[i]])
    same(np.stack([a, b], axis=-1), [onp.stack(p, axis=-1) for p in zip(x, y, strict=True)])


def test_split():
    x = rows(4)
    a = of(x)
    parts = np.split(a, [1, 2])
    assert [len(p) for p in parts] == [1, 1, 1]
    same(parts[2], x[2:])
    same(np.split(a, 3)[1], x[1:2])
    left, right = np.split(a, [2], axis=1)
    same(left, [p[:2] for p in x])
    same(right, [p[2:] for p in x])
    same(np.split(a, 2, axis=2)[1], [p[:, 2:] for p in x])
    with pytest.raises(ValueError, match="3 rows cannot be cut into 2 equal parts"):
        np.split(a, 2)


@pytest.mark.parametrize("tail", [(), (2,)])
def test_sort_and_argsort(tail):
    x = rows(*tail)
    axis = 1
    same(np.sort(of(x), axis=axis), [onp.sort(p, axis=0) for p in x])
    same(np.argsort(of(x), axis=axis), [onp.argsort(p, axis=0) for p in x])
    same(np.sort(of(x)), [onp.sort(p, axis=-1) for p in x])
    same(np.flip(of(x), axis=1), [p[::-1] for p in x])


def test_take():
    x = rows(2)
    a = of(x)
    same(np.take(a, np.array([2, 0, -1]), axis=0), [x[2], x[0], x[2]])
    which = [onp.array([2, 0]), onp.array([0]), onp.array([-1, 1, 1])]
    same(np.take(a, of(which), axis=1), [p[i] for p, i in zip(x, which, strict=True)])
    table = RNG.normal(size=(5, 3))
    same(np.take(np.array(table), of(which), axis=0), [table[i] for i in which])
    same(np.take(a, np.array([1]), axis=2), [p[:, [1]] for p in x])
    with pytest.raises(IndexError, match="index 1 is out of bounds for size 1 of row 1"):
        np.take(a, ragged.array([[0], [1], [0]]), axis=1)


def test_gradients_flow_to_the_values():
    offsets = onp.array([0, 3, 3, 5])

    def on(function, has_empty=True):
        at = offsets if has_empty else onp.array([0, 3, 5])

        def wrapped(x, *others):
            found = function(ragged.RaggedArray(x, at), *others)
            return found.values if isinstance(found, ragged.RaggedArray) else found

        return wrapped

    x = RNG.uniform(0.5, 2, (5, 2))
    w, each = RNG.normal(size=(2, 3)), RNG.normal(size=(3, 1, 1))
    slopes.check(on(lambda r: np.sum(r, axis=1) ** 2), [x], RNG)
    slopes.check(on(lambda r: np.mean(r, axis=1), False), [x], RNG)
    slopes.check(on(lambda r: np.std(r, axis=1), False), [x], RNG)
    slopes.check(on(lambda r: np.max(r, axis=1), False), [x], RNG)
    slopes.check(on(lambda r: np.prod(r, axis=1)), [x], RNG)
    slopes.check(on(lambda r: np.sum(r, axis=0)), [x], RNG)
    slopes.check(on(lambda r: npx.softmax(r, axis=1)), [x], RNG)
    slopes.check(on(lambda r: npx.log_softmax(r, axis=1) * r), [x], RNG)
    slopes.check(on(lambda r, w: np.matmul(r, w)), [x, w], RNG)
    slopes.check(on(lambda r, d: r * d + d), [x, each], RNG)
    slopes.check(on(lambda r: np.concatenate([r, r * r], axis=1)), [x], RNG)
    slopes.check(on(lambda r: np.sort(r, axis=1)), [x], RNG)
    slopes.check(on(lambda r: r.to_dense() ** 2), [x], RNG)
    slopes.check(on(lambda r: r[:, ::-1] * r), [x], RNG)
    slopes.check(on(lambda r: ragged.pool(r, "last"), False), [x], RNG)
    matrices = RNG.normal(size=(3, 2, 3))
    slopes.check(on(lambda r, m: np.matmul(r, m)), [x, matrices], RNG)
    slopes.check(on(lambda r: ragged.segment_outer(r, r)), [x], RNG)
    slopes.check(lambda x: ragged.from_dense(x, lengths=[2, 0, 1]).values ** 2, [RNG.normal(size=(3, 3))], RNG)


def test_gradients_are_ragged():
    r = ragged.array([[1.0, 2.0], [3.0]])
    r.attach_grad()
    with mx.autograd.record():
        y = r * r
    y.backward(ragged.array([[1.0, 10.0], [100.0]]))
    assert r.grad.tolist() == [[2, 40], [600]]


def test_pooling():
    x = rows(2)
    a = of(x)
    for mode in ("mean", "max", "min", "sum"):
        want = [getattr(onp, mode)(p, axis=0) for p in x]
        onp.testing.assert_allclose(ragged.pool(a, mode).asnumpy(), want, atol=1e-15)
    onp.testing.assert_array_equal(ragged.pool(a, "first").asnumpy(), [p[0] for p in x])
    onp.testing.assert_array_equal(ragged.pool(a, "last").asnumpy(), [p[-1] for p in x])
    with pytest.raises(ValueError, match="there is no mode 'median'"):
        ragged.pool(a, "median")
    with pytest.raises(ValueError, match="row 1 has no element"):
        ragged.pool(ragged.array([[1.0], []]), "last")


def test_errors_of_extrema_name_the_function_that_was_called():
    r = ragged.array([[1.0], []])
    for name in ("argmax", "ptp"):
        with pytest.raises(ValueError, match=f"{name}: row 1 has no element, and {name} has no identity"):
            getattr(np, name)(r, axis=1)
    with pytest.raises(error.UnsupportedError, match="ptp: ragged arrays take no `out`"):
        np.ptp(r, axis=1, out=np.ones(2))


X = ragged.array([onp.ones((n, 3)) for n in (2, 3, 1)])
Y = ragged.array([onp.ones((n, 3)) for n in (2, 1, 3)])


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("vstack", ([X, np.ones((3, 2, 3))],), r"vstack: no operator for operands \(ragged, dense\)"),
        ("hstack", ([X, Y[:2]],), "hstack: arrays of 3 and 2 rows"),
        ("concat", ([X, Y], 2), "concatenate: the raggedness differs"),
        ("append", (X, Y, 2), "append: the raggedness differs"),
        ("stack", ([X, Y], 3), "stack: the raggedness differs"),
        ("transpose", (X,), "transpose: the axes 0 to 1 of shape"),
        ("swapaxes", (X, 1, 2), "swapaxes: axis 1 of shape .* is not uniform"),
        ("std", (X, 7), "std: axis 7 is out of bounds"),
        ("nanstd", (X, 7), "nanstd: axis 7 is out of bounds"),
        ("average", (X, 7), "average: axis 7 is out of bounds"),
        ("dot", (X, np.ones((4, 2))), "dot: last axis of `x1`"),
        ("sum", ([X, Y],), r"sum: no operator for operands \(list\)"),
        ("sum", (X, Y), "sum: 'RaggedArray' object cannot be interpreted as an integer"),
        ("array_split", (X, 2, 1), "array_split: a ragged axis is cut at positions"),
        ("dsplit", (X, 2), "dsplit: 2 sections do not divide"),
        ("cumsum", (X, "rows"), "cumsum: 'str' object"),
        ("add", (X, Y), "add: the raggedness differs: offsets first differ at element 2, 5 and 3"),
        ("where", (X > 0,), "where: ragged arrays need `x` and `y`"),
        ("cov", (X,), "cov: a ragged array does not become a dense one by itself"),
    ],
)
def test_errors_name_the_function_that_was_called(name, arguments, problem):
    with pytest.raises((error.MXNetError, TypeError), match=f"^{problem}"):
        getattr(np, name)(*arguments)
