"""Stores of one process: what each method does to the stored value, with NumPy as the oracle."""

import copy

import numpy as onp
import pytest

import mxnet as mx
from mxnet import np
from mxnet.error import DeviceError, DTypeError, FileFormatError, ShapeError, UnsupportedError
from mxnet.error import IndexError as MXNetIndexError

NAMES = ["local", "device", "dist_sync", "dist", "dist_device_sync", "dist_async"]
rows = mx.sparse.row_sparse_array


def filled(value, shape=(2, 3), **options):
    return np.full(shape, float(value), **options)


def pulled(store, key, shape=(2, 3), **options):
    out = np.zeros(shape, **options)
    store.pull(key, out=out)
    return out.asnumpy().tolist()


@pytest.mark.parametrize("name", NAMES)
def test_a_store_has_a_type_and_one_rank(name):
    store = mx.kv.create(name.upper())
    assert (store.type, store.rank, store.num_workers) == (name, 0, 1)
    assert repr(store) == f"KVStore({name!r}, rank 0 of 1, 0 keys)"
    assert store.is_capable("Optimizer")
    with pytest.raises(ValueError, match="found 'speed'"):
        store.is_capable("speed")
    store._barrier()


def test_the_module_has_two_names():
    assert mx.kv is mx.kvstore
    assert mx.kv.create().type == "local"


@pytest.mark.parametrize("name", ["none", "", "dist_local_sync_async", "local_sync", "nccl_sync", "dist_fast"])
def test_unknown_stores_are_refused(name):
    with pytest.raises(ValueError, match=f"no store '{name}'; there are 'local', .*registered are 'teststore'"):
        mx.kv.create(name)


def test_a_name_is_text_and_handles_come_from_create():
    with pytest.raises(TypeError, match="found int"):
        mx.kv.create(3)
    with pytest.raises(TypeError, match=r"found str(.|\n)*create"):
        mx.kv.KVStore("local")


@pytest.mark.skipif(mx.num_gpus() > 0, reason="the machine has a GPU")
def test_nccl_needs_a_gpu():
    with pytest.raises(DeviceError, match="machine has none"):
        mx.kv.create("nccl")


@pytest.mark.parametrize("name", NAMES[:-1])
@pytest.mark.parametrize("key", [3, "weight", onp.int64(5)])
def test_pushed_values_replace_the_stored_one(name, key):
    store = mx.kv.create(name)
    first = filled(1)
    store.init(key, first)
    first += 5
    assert pulled(store, key) == [[1.0] * 3] * 2
    value = filled(8)
    store.push(key, value)
    value += 5
    assert pulled(store, key) == [[8.0] * 3] * 2
    store.push(key, [filled(1), filled(2, device=mx.cpu(1)), filled(4)])
    assert pulled(store, key) == [[7.0] * 3] * 2


def test_lists_of_keys_and_of_devices():
    store = mx.kv.create("device")
    keys = ["a", "b"]
    store.init(keys, [filled(0), filled(0, (4,))])
    devices = [mx.cpu(0), mx.cpu(1)]
    values = [[filled(k, shape, device=device) for device in devices] for k, shape in ((1, (2, 3)), (10, (4,)))]
    outs = copy.deepcopy(values)
    store.pushpull(keys, values, out=outs)
    for out, expected, row in zip(outs, (2.0, 20.0), values, strict=True):
        assert [array.device for array in out] == devices
        assert all((array == expected).all() for array in out)
        assert row[0].max() == expected / 2
    store.pushpull(keys, values)
    assert values[1][1].asnumpy().tolist() == [20.0] * 4
    # The same key twice in a list: its values are added.
    store.push(["a", "a"], [filled(1), filled(5)])
    assert pulled(store, "a") == [[6.0] * 3] * 2


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_added_in_float32(dtype):
    step = 2.0**-11 if dtype == "float16" else 2.0**-8  # half of the distance of numbers above 1
    store = mx.kv.create("local")
    store.init(0, np.ones(1, dtype=dtype))
    store.push(0, [np.array([value], dtype=dtype) for value in (1.0, step, step)])
    out = np.zeros(1, dtype=dtype)
    store.pull(0, out=out)
    assert out.astype("float32").item() == 1 + 2 * step


@pytest.mark.parametrize("name", ["local", "dist_sync"])
def test_broadcast_stores_and_copies(name):
    store = mx.kv.create(name)
    outs = [filled(0), filled(0, device=mx.cpu(1))]
    store.broadcast("w", filled(2), out=outs)
    assert all((out == 2).all() for out in outs)
    with pytest.raises(ValueError, match="broadcast: key 'w' has a value already"):
        store.broadcast("w", filled(2), out=outs)


def test_an_updater_changes_the_stored_value():
    store = mx.kv.create("local")
    store.init([3, 5], [filled(4), filled(1)])
    calls = []

    def update(key, value, stored):
        calls.append((key, value.asnumpy().max()))
        stored += value * 2

    store._set_updater(update)
    out = filled(0)
    store.pushpull(3, [filled(1), filled(1)], out=out)
    assert (out == 8).all()
    store.push([3, 5], [filled(1), filled(3)])
    assert calls == [(3, 2.0), (3, 1.0), (5, 3.0)]
    assert pulled(store, 3) == [[10.0] * 3] * 2
    assert pulled(store, 5) == [[7.0] * 3] * 2


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("keys", [[3, 9], ["a", "b"]])
def test_an_optimizer_updates_as_its_formula_says(name, keys):
    store = mx.kv.create(name)
    rng = onp.random.default_rng(0)
    weights = [rng.standard_normal(n).astype("float32") for n in (3, 4)]
    store.init(keys, [np.array(weight) for weight in weights])
    optimizer = mx.optimizer.SGD(learning_rate=0.25, momentum=0.5)
    store.set_optimizer(optimizer)
    moments = [onp.zeros(n, "float32") for n in (3, 4)]
    outs = [np.zeros(3), np.zeros(4)]
    for step in range(3):
        grads = [rng.integers(-4, 5, n).astype("float32") for n in (3, 4)]
        if step == 2:
            optimizer.set_learning_rate(0.5)
        store.pushpull(keys, [np.array(grad) for grad in grads], out=outs)
        for i, grad in enumerate(grads):
            moments[i] = 0.5 * moments[i] - (0.25 if step < 2 else 0.5) * grad
            weights[i] = weights[i] + moments[i]
            assert onp.abs(outs[i].asnumpy() - weights[i]).max() <= 4 * onp.finfo("f4").eps * 8


def test_states_of_the_optimizer_are_saved(tmp_path):
    def store():
        made = mx.kv.create("local")
        made.init(["a", "b"], [filled(1), filled(2)])
        made.set_optimizer(mx.optimizer.Adam(learning_rate=0.5))
        return made

    first, second = store(), store()
    first.push("b", filled(3))
    first.save_optimizer_states(tmp_path / "states", dump_optimizer=True)
    second.load_optimizer_states(tmp_path / "states")
    second._values["b"][...] = first._values["b"]
    for one in (first, second):
        one.push("b", filled(-1))
    assert pulled(first, "b") == pulled(second, "b")
    (tmp_path / "other").write_bytes(b"other")
    with pytest.raises(FileFormatError, match="other"):
        second.load_optimizer_states(tmp_path / "other")
    plain = mx.kv.create("local")
    for method in (plain.save_optimizer_states, plain.load_optimizer_states):
        with pytest.raises(RuntimeError, match="set_optimizer"):
            method(tmp_path / "states")


def test_row_sparse_values_are_added_and_pulled_by_rows():
    store = mx.kv.create("local")
    dense = onp.arange(8.0, dtype="float32").reshape(4, 2)
    store.init("e", rows(np.array(dense)))
    outs = [rows((4, 2)), rows((4, 2))]
    store.row_sparse_pull("e", out=outs, row_ids=[np.array([3, 0, 3]), np.array([1])])
    assert [out.indices.asnumpy().tolist() for out in outs] == [[0, 3], [1]]
    assert outs[0].data.asnumpy().tolist() == dense[[0, 3]].tolist()
    store.row_sparse_pull("e", out=outs, row_ids=np.array([2]))
    assert [out.indices.asnumpy().tolist() for out in outs] == [[2], [2]]
    parts = [rows(([[1.0, 2.0], [3.0, 4.0]], [0, 2]), shape=(4, 2)), rows(([[10.0, 20.0]], [2]), shape=(4, 2))]
    store.push("e", parts)
    out = rows((4, 2))
    store.pull("e", out=out)
    assert out.indices.size == 0  # left alone by default
    store.pull("e", out=out, ignore_sparse=False)
    assert out.indices.asnumpy().tolist() == [0, 2]
    assert out.data.asnumpy().tolist() == [[1, 2], [13, 24]]
    assert pulled(store, "e", (4, 2)) == [[1, 2], [0, 0], [13, 24], [0, 0]]


@pytest.mark.parametrize("is_sparse", [True, False])
def test_row_sparse_gradients_update_their_rows(is_sparse):
    store = mx.kv.create("local")
    store.init(0, rows(np.ones((4, 2))) if is_sparse else np.ones((4, 2)))
    store.set_optimizer(mx.optimizer.SGD(learning_rate=0.5, momentum=0.5, lazy_update=True))
    for _ in range(2):
        store.push(0, rows(([[1.0, 2.0]], [2]), shape=(4, 2)))
    assert pulled(store, 0, (4, 2)) == [[1, 1], [1, 1], [1 - 0.5 - 0.75, 1 - 1 - 1.5], [1, 1]]
    out = rows((4, 2))
    store.row_sparse_pull(0, out=out, row_ids=np.array([2, 3]))
    assert out.data.asnumpy().tolist() == [[-0.25, -1.5], [1, 1]]


WRONG = {
    "push of a key without a value": (lambda s: s.push("z", filled(1)), KeyError, "key 'z' has no value"),
    "pull of a key without a value": (lambda s: s.pull("z", out=filled(1)), KeyError, "key 'z' has no value"),
    "second init": (lambda s: s.init("a", filled(1)), ValueError, "init: key 'a' has a value already"),
    "shape of a value": (lambda s: s.push("a", filled(1, (3,))), ShapeError, r"shape \(2, 3\), found \(3,\)"),
    "shape of one device": (lambda s: s.push("a", [filled(1), filled(1, (3,))]), ShapeError, r"found \(3,\)"),
    "shape of out": (lambda s: s.pull("a", out=filled(1, (3,))), ShapeError, r"pull: .* found \(3,\)"),
    "dtype": (lambda s: s.push("a", filled(1, dtype="float64")), DTypeError, "dtype float32, found float64"),
    "number instead of an array": (lambda s: s.push("a", 3.0), TypeError, "found float"),
    "no out": (lambda s: s.pull("a"), TypeError, "`out` must be given"),
    "number of values": (lambda s: s.push(["a"], [filled(1)] * 2), ValueError, "1 keys need .* found 2"),
    "values of several keys": (lambda s: s.push(["a"], filled(1)), ValueError, "found ndarray"),
    "empty list": (lambda s: s.push("a", []), ValueError, "empty list"),
    "integer among text": (lambda s: s.init(3, filled(1)), TypeError, "integers or text, but not both"),
    "key of another type": (lambda s: s.init(2.5, filled(1)), TypeError, "found float"),
    "bool as a key": (lambda s: s.init(True, filled(1)), TypeError, "found bool"),
    "two first values": (lambda s: s.init("b", [filled(1)] * 2), ValueError, "needs one value, found 2"),
    "other keys of out": (lambda s: s.pushpull(["a"], [filled(1)], out=[]), ValueError, "found 0"),
    "sparse and dense": (lambda s: s.push("a", [filled(1), rows((2, 3))]), TypeError, "all dense or all row-sparse"),
    "dense out of rows": (lambda s: s.row_sparse_pull("a", out=filled(1), row_ids=np.array([0])), TypeError, "ndarray"),
    "no rows": (lambda s: s.row_sparse_pull("a", out=rows((2, 3))), TypeError, "row_ids"),
    "row out of bounds": (
        lambda s: s.row_sparse_pull("a", out=rows((2, 3)), row_ids=np.array([2])),
        MXNetIndexError,
        "row 2 is out of bounds for key 'a' of 2 rows",
    ),
    "number of row_ids": (
        lambda s: s.row_sparse_pull("a", out=rows((2, 3)), row_ids=[np.array([0])] * 2),
        ValueError,
        "1 arrays in `out`, but 2",
    ),
    "priority": (lambda s: s.push("a", filled(1), priority="high"), TypeError, "integer"),
    "no optimizer": (lambda s: s.set_optimizer("sgd"), TypeError, "found str"),
    "compression by 'local'": (lambda s: s.set_gradient_compression({"type": "2bit"}), UnsupportedError, "'local'"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_arguments_change_nothing(what):
    action, error, said = WRONG[what]
    store = mx.kv.create("local")
    store.init("a", filled(1))
    with pytest.raises(error, match=said):
        action(store)
    assert repr(store).endswith("1 keys)")
    assert pulled(store, "a") == [[1.0] * 3] * 2


def test_an_asynchronous_store_needs_an_optimizer():
    store = mx.kv.create("dist_async")
    store.init(0, filled(1))
    with pytest.raises(RuntimeError, match="set_optimizer"):
        store.push(0, filled(1))
