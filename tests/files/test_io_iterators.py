"""Iterators over batches: tuples, runs that begin anew, last batches, files."""

import gc
import gzip
import logging
import threading

import numpy as onp
import pytest

import mxnet as mx
from mxnet import io
from mxnet.error import FileFormatError
from mxnet.test_utils import DummyIter


def run(batches):
    """One run: the arrays of each batch as lists."""
    return [[array.asnumpy().tolist() for array in batch] for batch in batches]


@pytest.mark.parametrize(
    ("ending", "runs", "pads"),
    [
        ("pad", [[[0, 1, 2], [3, 4, 5], [6, 0, 1]]] * 3, [0, 0, 2]),
        ("discard", [[[0, 1, 2], [3, 4, 5]]] * 3, [0, 0]),
        (
            "roll_over",
            [[[0, 1, 2], [3, 4, 5]], [[6, 0, 1], [2, 3, 4]], [[5, 6, 0], [1, 2, 3], [4, 5, 6]], [[0, 1, 2], [3, 4, 5]]],
            [0, 0],
        ),
    ],
)
def test_last_batches(ending, runs, pads):
    batches = io.NDArrayIter(onp.arange(7), batch_size=3, last_batch_handle=ending)
    assert [batches.getpad() for _ in batches] == pads
    batches.hard_reset()
    for expected in runs:
        assert run(batches) == [[x] for x in expected]
    assert batches.iter_next()
    assert batches.getindex().tolist() == batches.getdata()[0].tolist()
    # Going back before the end leaves nothing over.
    batches.reset()
    assert run(batches)[0] == [[0, 1, 2]]


def test_a_reset_behind_a_loop_keeps_what_is_left():
    # A loop resets at its end by itself; programs that reset too, as MXNet asks for, lose nothing.
    batches = io.NDArrayIter(onp.arange(10), batch_size=4, last_batch_handle="roll_over")
    seen = []
    for _ in range(3):
        seen.append([x.tolist() for (x,) in batches])
        batches.reset()
    assert seen == [[[0, 1, 2, 3], [4, 5, 6, 7]], [[8, 9, 0, 1], [2, 3, 4, 5], [6, 7, 8, 9]], seen[0]]


def test_a_reset_behind_a_loop_over_a_file_keeps_the_round(tmp_path):
    batches = io.CSVIter(csv(tmp_path), (1, 2), 2)
    first, second = ([x.tolist() for x, *_ in batches] for _ in range(2))
    batches = io.CSVIter(csv(tmp_path), (1, 2), 2)
    seen = []
    for _ in range(2):
        seen.append([x.tolist() for x, *_ in batches])
        batches.reset()
    assert seen == [first, second]


def test_hard_reset_forgets_what_is_left():
    batches = io.NDArrayIter(onp.arange(5), batch_size=2, last_batch_handle="roll_over")
    run(batches)
    batches.hard_reset()
    assert run(batches) == [[[0, 1]], [[2, 3]]]


def test_data_come_before_labels_and_have_names():
    x, y = onp.zeros((4, 2, 3), "float32"), onp.arange(4, dtype="int32")
    batches = io.NDArrayIter([x, x + 1], {"a": y, "b": mx.np.array([0.5] * 4)}, 2)
    names = [(d.name, d.shape, d.dtype, d.layout) for d in batches.provide_data + batches.provide_label]
    assert names == [
        ("_0_data", (2, 2, 3), onp.float32, "NCHW"),
        ("_1_data", (2, 2, 3), onp.float32, "NCHW"),
        ("a", (2,), onp.int32, "NCHW"),
        ("b", (2,), onp.float32, "NCHW"),
    ]
    first = next(batches)
    assert isinstance(first, tuple)
    assert [(part.shape, part.dtype) for part in first] == [(shape, dtype) for _, shape, dtype, _ in names]
    assert [part.max().item() for part in first] == [0, 1, 1, 0.5]
    assert [d.name for d in io.NDArrayIter(x, y, data_name="x", label_name="y").provide_label] == ["y"]
    assert io.NDArrayIter([1.0, 2.0]).provide_label == []


def test_batches_share_no_memory_with_the_data():
    x = mx.np.zeros((4,))
    for (batch,) in io.NDArrayIter(x, batch_size=2):
        batch += 1
    assert x.tolist() == [0, 0, 0, 0]


def test_shuffled_runs():
    mx.random.seed(4)
    batches = io.NDArrayIter(onp.arange(20), onp.arange(20) * 2, 4, shuffle=True)
    runs = [run(batches) for _ in range(2)]
    orders = [[value for x, _ in found for value in x] for found in runs]
    assert all(sorted(order) == list(range(20)) for order in orders)
    assert orders[0] != orders[1] != list(range(20))
    assert all(b == 2 * a for found in runs for x, y in found for a, b in zip(x, y, strict=True))
    mx.random.seed(4)
    assert run(io.NDArrayIter(onp.arange(20), onp.arange(20) * 2, 4, shuffle=True)) == runs[0]
    rolling = io.NDArrayIter(onp.arange(7), batch_size=3, shuffle=True, last_batch_handle="roll_over")
    seen = [value for _ in range(3) for (x,) in run(rolling) for value in x]
    assert sorted(seen) == sorted([*range(7)] * 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "`batch_size` must be from 1 to the number of samples \\(0\\)"),
        (({},), "`data` must have at least one array"),
        ((3.0,), "`data` must have samples along its first axis, data has no axes"),
        (([1, 2], [1]), "{'data': 2, 'softmax_label': 1}"),
        (([1, 2], None, 3), r"\(2\), found 3"),
        (([1, 2], None, 0), "found 0"),
        (([1, 2], None, 1, False, "keep"), "one of pad, discard, roll_over, found 'keep'"),
    ],
)
def test_wrong_arguments_of_arrays(arguments, message):
    with pytest.raises(ValueError, match=message):
        io.NDArrayIter(*arguments)
    with pytest.raises(ValueError, match="there is no batch yet"):
        io.NDArrayIter([1, 2]).getdata()


def test_base_class_says_what_is_missing():
    with pytest.raises(NotImplementedError, match="DataIter does not define iter_next"):
        next(io.DataIter())
    with pytest.raises(NotImplementedError, match="DataIter does not define reset"):
        io.DataIter().reset()
    assert (io.DataIter(3).batch_size, io.DataIter().getpad(), io.DataIter().getindex()) == (3, 0, None)


def test_descriptions():
    desc = io.DataDesc("x", [2, 3], "int32", "TNC")
    assert desc == ("x", (2, 3))
    assert (desc.dtype, desc.layout, str(desc)) == ("int32", "TNC", "DataDesc[x,(2, 3),int32,TNC]")
    assert [io.DataDesc.get_batch_axis(layout) for layout in ("NCHW", "TNC", "C", None)] == [0, 1, -1, 0]
    found = io.DataDesc.get_list([("a", (1,)), ("b", (2,))], [("b", "int8"), ("a", "int16")])
    assert [(d.name, d.dtype) for d in found] == [("a", "int16"), ("b", "int8")]
    assert io.DataDesc.get_list([("a", (1,))], None)[0].dtype is onp.float32
    with pytest.raises(ValueError, match="b is missing"):
        io.DataDesc.get_list([("a", (1,)), ("b", (2,))], [("a", "int8")])


@pytest.mark.parametrize(
    ("size", "reset_internal", "runs"),
    [
        (5, True, [[0, 1, 2, 0, 1], [0, 1, 2, 0, 1]]),
        (5, False, [[0, 1, 2, 0, 1], [2, 0, 1, 2, 0]]),
        (2, True, [[0, 1], [0, 1]]),
        (2, False, [[0, 1], [2, 0]]),
        (0, True, [[], []]),
    ],
)
def test_resized_runs(size, reset_internal, runs):
    batches = io.ResizeIter(io.NDArrayIter(onp.arange(3), onp.arange(3) + 5), size, reset_internal)
    assert batches.provide_data[0].shape == (1,)
    for expected in runs:
        assert run(batches) == [[[value], [value + 5]] for value in expected]


class Empty(io.DataIter):
    def reset(self):
        pass

    def iter_next(self):
        return False


def test_wrong_arguments_of_resized_runs():
    with pytest.raises(ValueError, match="at least 0, found -1"):
        io.ResizeIter(Empty(), -1)
    with pytest.raises(ValueError, match="has no batches, 2 are needed"):
        next(io.ResizeIter(Empty(), 2))


def prefetching_threads():
    gc.collect()
    return [t for t in threading.enumerate() if t.name.startswith(("PrefetchingIter", "CSVIter", "MNISTIter"))]


def test_prefetching_joins_iterators():
    parts = [io.NDArrayIter(onp.arange(5) * k, onp.arange(5) + k, batch_size=2) for k in (1, 10)]
    batches = io.PrefetchingIter(parts, rename_data=[{"data": "x"}, {}], rename_label=[{}, {"softmax_label": "y"}])
    assert [d.name for d in batches.provide_data] == ["x", "data"]
    assert [d.name for d in batches.provide_label] == ["softmax_label", "y"]
    expected = [
        [[0, 1], [0, 10], [1, 2], [10, 11]],
        [[2, 3], [20, 30], [3, 4], [12, 13]],
        [[4, 0], [40, 0], [5, 1], [14, 10]],
    ]
    for _ in range(2):
        assert run(batches) == expected
    next(batches)
    assert batches.getindex().tolist() == [0, 1]
    batches.reset()
    with pytest.raises(ValueError, match="there is no batch yet"):
        batches.getpad()
    assert run(batches) == expected
    # A single one may come without a list.
    assert run(io.PrefetchingIter(io.NDArrayIter(onp.arange(5), onp.arange(5) + 1, batch_size=2))) == [
        [x, y] for x, _, y, _ in expected
    ]


def test_prefetching_threads_end_with_the_iterator():
    before = prefetching_threads()
    batches = io.PrefetchingIter([io.NDArrayIter(onp.arange(5))] * 1)
    next(batches)
    threads = [t for t in prefetching_threads() if t not in before]
    assert len(threads) == 1
    del batches
    gc.collect()
    threads[0].join(30)
    assert not threads[0].is_alive()


class Failing(io.NDArrayIter):
    def iter_next(self):
        if not super().iter_next():
            return False
        if self.getindex()[0] == 1:
            raise KeyError("broken")
        return True


def test_prefetching_raises_where_the_batch_would_have_been():
    batches = io.PrefetchingIter(Failing(onp.arange(3)))
    assert next(batches)[0].tolist() == [0]
    for _ in range(2):
        with pytest.raises(KeyError, match="broken"):
            next(batches)
    batches.reset()
    assert next(batches)[0].tolist() == [0]


def test_prefetching_refuses_what_does_not_fit():
    short, long = io.NDArrayIter(onp.arange(2)), io.NDArrayIter(onp.arange(3))
    batches = io.PrefetchingIter([long, short])
    assert len([next(batches) for _ in range(2)]) == 2
    with pytest.raises(ValueError, match=r"iterators \[1\] of 2 ended before the others"):
        next(batches)
    with pytest.raises(ValueError, match=r"paddings must be the same, found \[0, 1\]"):
        list(io.PrefetchingIter([io.NDArrayIter(onp.arange(2)), io.NDArrayIter(onp.arange(3), batch_size=2)]))
    with pytest.raises(ValueError, match="at least one iterator"):
        io.PrefetchingIter([])
    with pytest.raises(ValueError, match="`rename_data` must have a dict for each of 1 iterators, found 2"):
        io.PrefetchingIter([io.NDArrayIter(onp.arange(2))], rename_data=[{}, {}])


def csv(tmp_path, name="x.csv", rows=((1, 2), (3, 4), (5, 6))):
    path = tmp_path / name
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    return path


def test_csv_runs_go_on_behind_what_filled_up(tmp_path):
    rows = csv(tmp_path, rows=[(k,) for k in range(5)])
    batches = io.CSVIter(rows, (), 3, csv(tmp_path, "y.csv", [(10 * k, 0) for k in range(5)]), (2,))
    expected = [[[0, 1, 2], [3, 4, 0]], [[1, 2, 3], [4, 0, 1]], [[2, 3, 4]], [[0, 1, 2], [3, 4, 0]]]
    pads = [[0, 1], [0, 2], [0], [0, 1]]
    for values, padding in zip(expected, pads, strict=True):
        assert len(batches) == len(values)
        found = [(x.tolist(), y.tolist(), batches.getindex().tolist(), batches.getpad()) for x, y in batches]
        assert found == [(x, [[10 * v, 0] for v in x], x, pad) for x, pad in zip(values, padding, strict=True)]
    # Before its end a run begins with the first sample again, however far was read ahead.
    next(batches)
    batches.reset()
    assert run(batches)[0][0] == [0, 1, 2]


def test_csv_without_rounding_fills_up_with_zeros(tmp_path):
    batches = io.CSVIter(csv(tmp_path), (1, 2), 2, round_batch=False, dtype="int64", prefetch_buffer=1)
    for _ in range(2):
        found = [(x.tolist(), y.tolist(), batches.getpad()) for x, y in batches]
        assert found == [([[[1, 2]], [[3, 4]]], [[0], [0]], 0), ([[[5, 6]], [[0, 0]]], [[0], [0]], 1)]
    assert [(d.name, d.shape, d.dtype) for d in batches.provide_data] == [("data", (2, 1, 2), "int64")]
    assert [(d.name, d.shape) for d in batches.provide_label] == [("softmax_label", (2, 1))]
    x, y = next(batches)
    assert (x.dtype, y.dtype) == (onp.int64, onp.int64)
    assert [part.tolist() for part in batches.getitems()] == [x.tolist(), y.tolist()]


def test_a_reset_forgets_that_the_first_batch_could_not_be_read(tmp_path):
    path = csv(tmp_path, rows=(("a", "b"), (3, 4)))
    iterator = mx.io.CSVIter(path, (2,), 1)
    with pytest.raises(FileFormatError):
        next(iterator)
    csv(tmp_path, rows=((1, 2), (3, 4)))
    iterator.reset()
    assert next(iterator)[0].tolist() == [[1, 2]]


def test_csv_batch_larger_than_the_file(tmp_path):
    assert run(io.CSVIter(csv(tmp_path, rows=[(1,), (2,)]), (1,), 5))[0][0] == [[1], [2], [1], [2], [1]]
    assert run(io.CSVIter(csv(tmp_path, rows=[]), (1,), 5)) == []
    half = next(io.CSVIter(csv(tmp_path, rows=[(1.5,), (2,)]), (1,), 2, dtype="bfloat16"))[0]
    assert (half.dtype, half.tolist()) == (mx.np.bfloat16, [[1.5], [2.0]])


def test_damaged_csv_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.csv"):
        io.CSVIter(tmp_path / "none.csv", (2,), 1)
    with pytest.raises(FileFormatError, match=r"x\.csv: lines 1 to 2 have 2 numbers each, but shape \(3,\) needs 3"):
        next(io.CSVIter(csv(tmp_path), (3,), 2))
    path = csv(tmp_path)
    path.write_text("1,2\n\n3,x\n")
    batches = io.CSVIter(path, (2,), 1)
    next(batches)
    for _ in range(2):
        with pytest.raises(FileFormatError, match=r"x\.csv: lines 3 to 3: .*'x'"):
            next(batches)
    labels = csv(tmp_path, "y.csv", [(1,), (2,)])
    batches = io.CSVIter(csv(tmp_path), (2,), 2, labels)
    next(batches)
    with pytest.raises(FileFormatError, match=r"x\.csv has more lines than .*y\.csv"):
        next(batches)
    with pytest.raises(FileFormatError, match=r"y\.csv has more lines than .*x\.csv"):
        list(io.CSVIter(csv(tmp_path, rows=[(1,)]), (1,), 1, csv(tmp_path, "y.csv", [(1,), (2,)])))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "`batch_size` must be at least 1, found 0"),
        ({"ctx": "tpu"}, "`ctx` must be one of cpu, gpu, cpu_pinned, found 'tpu'"),
        ({"device_id": -2}, "`device_id` must be at least -1, found -2"),
        ({"prefetch_buffer": 0}, "`prefetch_buffer` must be at least 1, found 0"),
    ],
)
def test_wrong_arguments_of_files(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        io.CSVIter(csv(tmp_path), (2,), **{"batch_size": 1, **options})
    with pytest.raises(ValueError, match=message):
        io.MNISTIter(*mnist(tmp_path), **{"batch_size": 1, **options})


IMAGES = onp.random.default_rng(8).integers(0, 256, (10, 4, 6)).astype("uint8")
LABELS = onp.arange(10).astype("uint8")


def mnist(tmp_path, images=IMAGES, labels=LABELS):
    paths = []
    for name, array in (("images", images), ("labels", labels)):
        lengths = b"".join(size.to_bytes(4, "big") for size in array.shape)
        paths.append(tmp_path / name)
        paths[-1].write_bytes(gzip.compress(bytes([0, 0, 8, array.ndim]) + lengths + array.tobytes()))
    return paths


@pytest.mark.parametrize("flat", [False, True])
def test_mnist(tmp_path, flat):
    batches = io.MNISTIter(*mnist(tmp_path), batch_size=4, shuffle=False, flat=flat)
    shape = (24,) if flat else (1, 4, 6)
    assert (len(batches), batches.provide_data[0].shape, batches.provide_label[0].shape) == (2, (4, *shape), (4,))
    for _ in range(2):
        found = list(batches)
        assert len(found) == 2
        for number, (x, y) in enumerate(found):
            part = slice(4 * number, 4 * number + 4)
            assert (x.dtype, y.dtype) == (onp.float32, onp.float32)
            assert (x.asnumpy() == IMAGES[part].reshape(4, *shape) / onp.float32(256)).all()
            assert y.tolist() == LABELS[part].tolist()


def test_mnist_order_and_parts(tmp_path, caplog):
    paths = mnist(tmp_path)

    def labels(**options):
        batches = io.MNISTIter(*paths, batch_size=1, **options)
        runs = [[int(y.item()) for _, y in batches] for _ in range(2)]
        assert runs[0] == runs[1]
        return runs[0]

    with caplog.at_level(logging.INFO):
        assert sorted(labels()) == list(range(10))
        assert "10 images" in caplog.text
        caplog.clear()
        assert labels(silent=True) == labels(silent=True, seed=0) != labels(silent=True, seed=1)
        assert caplog.text == ""
    parts = [labels(shuffle=False, num_parts=3, part_index=part) for part in range(3)]
    assert parts == [[0, 1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert sorted(labels(num_parts=3, part_index=1)) == [4, 5, 6]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"part_index": 1}, r"`num_parts` - 1 \(0\), found 1"),
        ({"seed": -1}, "found -1"),
        ({"batch_size": 11}, r"number of images \(10\), found 11"),
        ({"images": IMAGES[0]}, r"uint8 with 3 axes, found uint8, \(4, 6\)"),
        ({"labels": LABELS[1:]}, r"each of 10 images, found \(9,\)"),
    ],
)
def test_wrong_arguments_of_mnist(tmp_path, options, message):
    files = {name: options.pop(name) for name in ("images", "labels") if name in options}
    with pytest.raises(ValueError, match=message):
        io.MNISTIter(*mnist(tmp_path, **files), **{"batch_size": 1, **options})


def test_first_batch_again_and_again(tmp_path):
    batches = io.CSVIter(csv(tmp_path), (2,), 1)
    batches.debug_skip_load()
    assert [next(batches)[0].tolist() for _ in range(5)] == [[[1, 2]]] * 5
    with pytest.raises(TypeError, match="unexpected arguments wrong"):
        io.MXDataIter(batches.handle, wrong=1)
    named = io.MXDataIter(batches.handle, "x", "y")
    assert (named.provide_data[0].name, named.provide_label[0].name) == ("x", "y")
    with pytest.raises(ValueError, match="there is no batch yet"):
        named.getdata()


def test_dummy_iterator_has_one_batch():
    real = io.NDArrayIter(onp.arange(4), onp.arange(4) + 5, batch_size=2)
    dummy = DummyIter(real)
    batches = iter(dummy)
    assert [[x.tolist(), y.tolist()] for (x, y), _ in zip(batches, range(5), strict=False)] == [[[0, 1], [5, 6]]] * 5
    assert (dummy.batch_size, dummy.provide_data, dummy.getpad()) == (2, real.provide_data, 0)
    assert dummy.getindex().tolist() == [0, 1]
    assert run(io.ResizeIter(dummy, 3)) == [[[0, 1], [5, 6]]] * 3
