"""Three ranks add up values of every dtype and kind, also compressed, and compare each bit with NumPy."""

import numpy as onp

import mxnet as mx
from compression_oracle import quantized
from mxnet import np
from mxnet.kvstore import _allreduce, _communicators

store = mx.kv.create("dist_sync")
rank, size = store.rank, store.num_workers
assert (store.type, size) == ("dist_sync", 3)
assert mx.config.num_threads == 1

# Several buckets for the values below.
_allreduce._BUCKET_BYTES = 4096
SHAPES = [(), (1,), (7,), (3, 0), (50, 3, 4), (33, 41), (1025,), (64, 16)]


def drawn(number, dtype, shape):
    """What each rank has, as NumPy arrays of a dtype that holds it exactly."""
    rng = onp.random.default_rng([number, len(shape)])
    if dtype in ("float16", "bfloat16"):
        values = rng.standard_normal((size, *shape)).astype("float32")
        return np.array(values, dtype=dtype).astype("float32").asnumpy()
    if dtype.startswith("float"):
        return (rng.standard_normal((size, *shape)) * 10.0 ** rng.integers(-3, 4, (size, *shape))).astype(dtype)
    if dtype.startswith("complex"):
        return (rng.standard_normal((size, *shape)) + 1j * rng.standard_normal((size, *shape))).astype(dtype)
    return rng.integers(0, 50, (size, *shape)).astype(dtype)


def host(array):
    return array.astype("float32").asnumpy() if str(array.dtype) == "bfloat16" else array.asnumpy()


DTYPES = ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "int64", "complex64", "complex128"]
keys, values, expected = [], [], []
for number, dtype in enumerate(DTYPES):
    for shape in SHAPES:
        found = drawn(number, dtype, shape)
        keys.append(f"{dtype} {shape}")
        values.append(np.array(found[rank], dtype=dtype))
        # In the order of the ranks; half precision in float32, rounded once.
        total = found[0]
        for other in found[1:]:
            total = total + other
        expected.append(host(np.array(total, dtype=dtype)))

# The first values are those of rank 0.
store.init(keys, [value * (1 if rank == 0 else 0) for value in values])
outs = [np.zeros_like(value) for value in values]
store.pull(keys, out=outs)
for key, out, dtype, value in zip(keys, outs, onp.repeat(DTYPES, len(SHAPES)), values, strict=True):
    shape = value.shape
    first = drawn(DTYPES.index(dtype), dtype, shape)[0]
    assert onp.array_equal(host(out), host(np.array(first, dtype=dtype))), key

for _ in range(3):
    store.pushpull(keys, values, out=outs)
    for key, out, total in zip(keys, outs, expected, strict=True):
        assert host(out).tobytes() == total.tobytes(), key

# What is stored is the sum; the pushed arrays may change afterwards.
store.push("float32 (7,)", np.full((7,), rank + 1.0))
out = np.zeros((7,))
store.pull("float32 (7,)", out=out)
assert out.asnumpy().tolist() == [6.0] * 7
# A key in another set of keys does not change what was stored before.
store.push(["float32 (1,)", "float32 (7,)"], [np.ones(1), np.ones(7)])
store.push("float32 (1,)", np.full((1,), 5.0))
one = np.zeros(1)
store.pull(["float32 (1,)", "float32 (7,)"], out=[one, out])
assert one.asnumpy().tolist() == [15.0]
assert out.asnumpy().tolist() == [3.0] * 7

# Buffers of other sets of keys are freed when there are too many.
_communicators._KEPT_BYTES = 1 << 16
for number in range(5):
    store.init(f"large {number}", np.zeros(4000))
    store.push(f"large {number}", np.full(4000, float(rank + number)))
    assert sum(plan.num_bytes for plan in store._handle._plans.values()) <= 1 << 16
    large = np.zeros(4000)
    store.pull(f"large {number}", out=large)
    assert (large == 3 + 3 * number).all()

# Several devices of each rank.
store.push("float32 (7,)", [np.full((7,), rank + 1.0), np.full((7,), 10.0, device=mx.cpu(1))])
store.pull("float32 (7,)", out=out)
assert out.asnumpy().tolist() == [36.0] * 7

# Row-sparse values: rank r has the rows r and r + 1; the last rank has none.
rows = mx.sparse.row_sparse_array
store.init("rows", rows((5, 2)))
indices = [] if rank == 2 else [rank, rank + 1]
value = rows((np.full((len(indices), 2), rank + 1.0), np.array(indices, dtype="int64")), shape=(5, 2))
store.push("rows", value)
out = rows((5, 2))
store.row_sparse_pull("rows", out=out, row_ids=np.array([3, 1, 0, 1]))
assert out.indices.asnumpy().tolist() == [0, 1, 3]
assert out.data.asnumpy().tolist() == [[1, 1], [3, 3], [0, 0]]
store.pull("rows", out=out, ignore_sparse=False)
assert out.indices.asnumpy().tolist() == [0, 1, 2]
half = mx.kv.create("dist_sync")
half.init(0, rows((np.ones((1, 3), dtype="bfloat16"), np.array([1])), shape=(4, 3)))
half.push(0, rows((np.full((1, 3), 1.0 + rank / 128, dtype="bfloat16"), np.array([1])), shape=(4, 3)))
out = rows((np.ones((1, 3), dtype="bfloat16"), np.array([1])), shape=(4, 3))
half.row_sparse_pull(0, out=out, row_ids=np.array([1]))
assert out.data.astype("float32").asnumpy().tolist() == [[3.03125] * 3]  # 1 + 129/128 + 130/128, rounded once

# An updater and an optimizer change the copies of all ranks alike.
updated = mx.kv.create("dist_sync")
updated.init([3, 4], [np.zeros(2), np.ones(3)])
seen = []


def add_twice(key, value, stored):
    seen.append(key)
    stored += 2 * value


updated._set_updater(add_twice)
out = [np.zeros(2), np.zeros(3)]
updated.pushpull([3, 4], [np.ones(2), np.full(3, float(rank))], out=out)
assert seen == [3, 4]
assert [array.asnumpy().tolist() for array in out] == [[6.0] * 2, [7.0] * 3]
updated.set_optimizer(mx.optimizer.SGD(learning_rate=0.25))
updated.pushpull(3, np.ones(2), out=out[0])
assert out[0].asnumpy().tolist() == [5.25] * 2
updated._barrier()

# Gradients in one and two bits; a loop over the elements is the oracle.
for kind, threshold in (("1bit", 0.0), ("1bit", 0.25), ("2bit", 0.5), ("2bit", 1.75)):
    store = mx.kv.create("dist_sync")
    store.set_gradient_compression({"type": kind, "threshold": threshold})
    shapes = [(1,), (3,), (17, 5), (4, 4)]
    store.init(list(range(4)), [np.zeros(shape) for shape in shapes])
    residuals = [[onp.zeros(shape, "float32") for shape in shapes] for _ in range(size)]
    rng = onp.random.default_rng(5)
    for _ in range(4):
        gradients = [[rng.standard_normal(shape).astype("float32") for shape in shapes] for _ in range(size)]
        totals = [onp.zeros(shape, "float32") for shape in shapes]
        for number in range(size):
            for i, total in enumerate(totals):
                total += quantized(kind, threshold, gradients[number][i], residuals[number][i])
        outs = [np.zeros(shape) for shape in shapes]
        store.pushpull(list(range(4)), [np.array(x) for x in gradients[rank]], out=outs)
        for out, total in zip(outs, totals, strict=True):
            assert out.asnumpy().tobytes() == total.tobytes(), (kind, threshold)
print(f"rank {rank} is done\n", end="", flush=True)
