"""Positions and masks in memory of others: operators check and use one copy, whoever writes meanwhile."""

import numpy as onp
import pytest

import mxnet as mx
from mxnet import _core
from mxnet import numpy as np
from probing import ENTRIES, Maker, names, op
from processes import run

# Their kernels read each position once, so they need no copy.
READ_ONCE = {"csr_matmul_dense", "csr_transposed_matmul_dense"}
POSITIONS = names(lambda entry: entry["positions"])
BEYOND = {"int32": 2**30, "int64": 2**40}


def arguments(name, call):
    """The arguments of a probe call by name."""
    order = [parameter for parameter, _, _ in ENTRIES[name]["params"]]
    args, kwargs = Maker(name, call, ours=True).arguments()
    return dict(zip(order, args, strict=False)) | kwargs


def changed(value, change):
    """An argument whose arrays `change` replaced; None if it has no arrays of positions."""
    items = list(value) if isinstance(value, (list, tuple)) else [value]
    if not all(isinstance(x, _core.ndarray) for x in items) or not any(str(x.dtype) in BEYOND for x in items):
        return None
    items = [change(x) for x in items]
    return items if isinstance(value, (list, tuple)) else items[0]


def test_marked_parameters_are_arrays_that_are_only_read():
    assert {"gather", "take", "nonzero", "ragged_sum", "csr_matmul", "apply_at"} <= set(POSITIONS)
    for name in POSITIONS:
        entry = ENTRIES[name]
        assert set(entry["positions"]) <= {p for p, kind, _ in entry["params"] if kind.startswith("array")}
        assert not set(entry["positions"]) & set(entry["mutates"])


@pytest.mark.parametrize("name", names(lambda entry: not entry["elementwise"] and entry["calls"]))
def test_parameters_whose_integers_can_be_out_of_bounds_are_marked(name):
    for call in ENTRIES[name]["calls"]:
        given = arguments(name, call)
        for parameter, kind, _ in ENTRIES[name]["params"]:
            if not kind.startswith("array") or parameter in ENTRIES[name]["positions"]:
                continue
            if name in READ_ONCE:
                continue
            far = changed(given.get(parameter), lambda x: np.full_like(x, BEYOND.get(str(x.dtype), 1)))
            if far is None:
                continue
            try:
                mx.waitall()
                op(name)(**given | {parameter: far})
                mx.waitall()
            except IndexError as error:
                pytest.fail(f"`{parameter}` holds positions, mark it in `OpDef::positions`: {error}")
            except (ValueError, TypeError, OverflowError, MemoryError):
                pass


WRITES = {
    "[]": lambda target, at, values: target.__setitem__(at, values),
    "[,]": lambda target, at, values: target.reshape(-1, 1).__setitem__((at, 0), values),
    "put": np.put,
    "put_along_axis": lambda target, at, values: np.put_along_axis(target, at, values, 0),
    "add.at": np.add.at,
}


@pytest.mark.parametrize("n", [3, 50, 3000])
@pytest.mark.parametrize("name", WRITES)
def test_an_operator_may_write_to_the_memory_of_its_positions(name, n):
    memory = onp.arange(n)[::-1].copy()
    values = onp.arange(n) + 10 * n
    want = memory.copy()
    if name == "add.at":
        onp.add.at(want, memory.copy(), values)
    else:
        want[memory.copy()] = values
    # Two arrays that do not know of each other.
    target, at = np.asarray(memory), np.asarray(memory)
    WRITES[name](target, at, np.array(values))
    assert (memory == want).all()


# Calls on positions `i`, offsets `p`, a mask `k`, all over NumPy's memory, and on elements `x`, `m` and `y`.
CALLS = [
    "x[i]",
    "x[k]",
    "m[i]",
    "m[i, i % 4]",
    "x[i, ...]",
    "np.take(x, i)",
    "np.take(m, i, axis=0)",
    "np.take_along_axis(x, i, 0)",
    "np.compress(k, x)",
    "np.extract(k, x)",
    "np.nonzero(k)",
    "np.argwhere(k)",
    "np.where(k)",
    "np.flatnonzero(k)",
    "np.bincount(i)",
    "np.bincount(i, x)",
    "np.choose(i, [x, x])",
    "np.unravel_index(i, (n,))",
    "np.ravel_multi_index((i,), (n,))",
    "np.repeat(x, k)",
    "np.delete(x, i)",
    "np.delete(x, k)",
    "np.insert(x, i, 1)",
    "np.searchsorted(x, x, sorter=i)",
    "npx.one_hot(i, 10)",
    "npx.embedding(i, m)",
    "npx.pick(m, i)",
    "npx.gather_nd(x, i.reshape(1, -1))",
    "npx.index_add(y, i.reshape(1, -1), x)",
    "npx.index_update(y, i.reshape(1, -1), x)",
    "npx.sequence_reverse(m, i[:4], True)",
    "y.__setitem__(i, 1)",
    "y.__setitem__(i, x)",
    "y.__setitem__(k, 1)",
    "y.__setitem__(k, x)",
    "np.put_along_axis(y, i, 1, 0)",
    "np.put(y, i, 1)",
    "np.add.at(y, i, 1)",
    "np.place(y, k, [1])",
    "np.putmask(y, k, 1)",
    "np.argsort(i)",
    "np.sort(i)",
    "np.unique(i)",
    "np.isin(i, i)",
    "op['gather_or_zero'](x, i)",
    "op['scatter_or_skip'](x, i, n)",
    "op['row_sparse_to_dense'](i, m, n)",
    "op['coo_order'](i, i, n, n)",
    "op['csr_check'](i, p, n)",
    "op['csr_rows'](i, p)",
    "op['csr_transpose'](i, p, n)",
    "op['csr_merge'](i, p, i, p)",
    "op['csr_merge'](i, p, j, p)",
    "op['csr_find'](i, p, i, p)",
    "op['csr_matmul_dense'](x, i, p, m)",
    "op['csr_sampled_dense'](m, m, i, p)",
    "op['csr_add'](x, i, p, x, i, p)",
    "op['segment_max'](m, p)",
    "op['ragged_softmax'](x, p)",
    "op['ragged_sum'](m, p)",
    "op['ragged_argsort'](m, p)",
    "op['ragged_expand'](x, p, n)",
]


@pytest.mark.parametrize("setup", ["pass", "i.attach_grad(); p.attach_grad()"], ids=["plain", "with gradient buffers"])
def test_positions_over_memory_that_a_thread_writes_during_the_call(setup):
    run(
        f"""
        op = _core.namespaces["op"]
        n = 3000
        x, y, m = np.arange(float(n)), np.zeros((n,)), np.ones((n, 4))
        indices, mask, offsets = onp.arange(n), onp.ones(n, dtype=bool), onp.arange(n + 1)
        i, k, p = np.asarray(indices), np.asarray(mask), np.asarray(offsets)
        assert np.shares_memory(i, indices)
        {setup}
        j = np.array(onp.arange(n)[::-1].copy())
        stop = threading.Event()
        right, right_offsets = onp.arange(n), onp.arange(n + 1)

        def change():
            while not stop.is_set():
                for wrong in (2**40, -(2**40)):
                    indices[1:] = wrong
                    offsets[1:-1] = wrong
                    mask[:] = False
                    indices[:] = right
                    offsets[:] = right_offsets
                    mask[:] = True
                indices[:] = 0

        sys.setswitchinterval(1e-6)
        thread = threading.Thread(target=change)
        thread.start()
        refused, done = 0, 0
        try:
            for call in {CALLS!r}:
                code = compile(call, call, "eval")
                for _ in range(30):
                    try:
                        result = eval(code)
                        for part in result if isinstance(result, tuple) else (result,):
                            if isinstance(part, np.ndarray):
                                part.wait_to_read()
                        done += 1
                    except (IndexError, ValueError, MemoryError):
                        refused += 1
                    except Exception as error:
                        raise AssertionError(call) from error
        finally:
            stop.set()
            thread.join()
        mx.waitall()
        assert refused > 0 and done > 0
        """
    )
