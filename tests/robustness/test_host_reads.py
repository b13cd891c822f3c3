"""Reads on the host beside a thread that overwrites the same array: every read sees one single version.

As a script it repeats chosen reads: `python tests/robustness/test_host_reads.py 100000 asnumpy tolist item unique`.
"""

import contextlib
import copy
import io
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

from mxnet import np, npx

SIZE = 300_000
# Versions are 0 to LAST, and one more between `x += 1` and `x[:] = 0`; each is also an index into `TABLE`.
LAST = 63
# A read that is short is repeated until there were so many writes.
WRITES_BESIDE, MOST_READS = 500, 500
TABLE = np.arange(LAST + 2)
MASK = np.ones(SIZE, dtype="bool")


def _set(x: Any, k: int) -> None:
    x[:] = k


def _add(x: Any, k: int) -> None:
    x += 1
    if k == 0:
        x[:] = 0


def _copyto(x: Any, k: int) -> None:
    np.copyto(x, k)


WRITES: dict[str, Callable[[Any, int], None]] = {"set": _set, "add": _add, "copyto": _copyto}


def _is_whole(values: Any) -> bool:
    found = numpy.asarray(values)
    return found.size > 0 and bool((found == found.flat[0]).all())


def _saved(x: Any, folder: Path) -> Any:
    file = io.BytesIO()
    np.save(file, x)
    file.seek(0)
    return numpy.load(file)


def _stored(x: Any, folder: Path) -> Any:
    npx.savez(str(folder / "x.npz"), x=x)
    with numpy.load(folder / "x.npz") as arrays:
        return arrays["x"]


def _safetensors(x: Any, folder: Path) -> Any:
    path = str(folder / "x.safetensors")
    npx.save(path, {"x": x})
    return npx.load(path)["x"].asnumpy()


def _printed(text: str) -> Any:
    elements = text.split("dtype")[0].split("shape")[0].replace("...", "")
    return [int(word) for word in elements.translate(_SEPARATORS).split()]


_SEPARATORS = str.maketrans("array()[],", " " * 10)


def _unique_parts(x: Any, folder: Path) -> Any:
    values, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    assert counts.tolist() == [SIZE], counts
    assert first.tolist() == [0], first
    assert not inverse.any()
    return values.tolist()


def _tallied(x: Any, folder: Path) -> Any:
    values, counts = np.unique(x, return_counts=True)
    assert counts.tolist() == [SIZE], counts
    return values.tolist()


def _counted(x: Any, folder: Path) -> Any:
    counts = np.bincount(x).tolist()
    assert counts[-1] == SIZE, counts
    assert not any(counts[:-1])
    return counts[-1]


def _weighted(x: Any, folder: Path) -> Any:
    # The array is its own weights: each sum is the value times its count.
    sums = np.bincount(x, weights=x).tolist()
    assert sums[-1] == (len(sums) - 1) * SIZE, sums
    return sums[-1]


def _true_positions(x: Any, folder: Path) -> Any:
    # All elements are zero, or none.
    found = np.nonzero(x % 2)[0].tolist()
    assert len(found) in (0, SIZE), len(found)
    return 0


def _direct_positions(x: Any, folder: Path) -> Any:
    found = len(np.nonzero(x)[0])
    assert found in (0, SIZE), found
    return 0


def _member(x: Any, folder: Path) -> Any:
    # Only a mixture of versions has a version beside another one.
    assert (-1 in x) is False
    return 0


def _unravelled(x: Any, folder: Path) -> Any:
    rows, columns = np.unravel_index(x, (8, 8))
    return (rows * 8 + columns).tolist()


def _ravelled(x: Any, folder: Path) -> Any:
    # Row and column are one version.
    found = np.ravel_multi_index((x, x), (LAST + 1, LAST + 1)).asnumpy()
    assert found[0] % (LAST + 2) == 0, found[0]
    return found


def _dlpack(x: Any, folder: Path) -> Any:
    return numpy.from_dlpack(x, copy=True)


READS: dict[str, Callable[[Any, Path], Any]] = {
    "asnumpy": lambda x, folder: x.asnumpy(),
    "asnumpy strided": lambda x, folder: x[::2].asnumpy(),
    "asnumpy 2-d": lambda x, folder: x.reshape(600, 500).T.asnumpy(),
    # `numpy.array(x)` copies from the buffer that `x` exports, which is live memory: it is not among these.
    "__array__ with a dtype": lambda x, folder: x.__array__("float64"),
    "__array__ with a copy": lambda x, folder: x.__array__(copy=True),
    "tolist": lambda x, folder: x.tolist(),
    "tolist strided": lambda x, folder: x[::3].tolist(),
    "item": lambda x, folder: x.item(7),
    "float": lambda x, folder: float(x[SIZE - 1]),
    "tobytes": lambda x, folder: numpy.frombuffer(x.tobytes(), "int64"),
    "tobytes strided": lambda x, folder: numpy.frombuffer(x[::2].tobytes(), "int64"),
    "repr": lambda x, folder: _printed(repr(x)),
    "str": lambda x, folder: _printed(str(x)),
    "repr of all": lambda x, folder: _printed(repr(x[:900])),
    "array2string": lambda x, folder: _printed(np.array2string(x)),
    "pickle": lambda x, folder: pickle.loads(pickle.dumps(x)).asnumpy(),
    "deepcopy": lambda x, folder: copy.deepcopy(x).asnumpy(),
    "copy": lambda x, folder: x.copy().asnumpy(),
    "astype": lambda x, folder: x.astype("float32").asnumpy(),
    "np.save": _saved,
    "npx.savez": _stored,
    "npx.save": _safetensors,
    "dlpack with a copy": _dlpack,
    "unique": lambda x, folder: np.unique(x).tolist(),
    "unique of floats": lambda x, folder: np.unique(x * 0.5).tolist(),
    "unique with positions": _unique_parts,
    "unique with counts": _tallied,
    "bincount": _counted,
    "bincount with weights": _weighted,
    "nonzero": _direct_positions,
    "nonzero of a result": _true_positions,
    "boolean mask": lambda x, folder: x[MASK].asnumpy(),
    "index array": lambda x, folder: TABLE[x].asnumpy(),
    "negative index array": lambda x, folder: TABLE[x - (LAST + 2)].asnumpy(),
    "take": lambda x, folder: np.take(TABLE, x).asnumpy(),
    "unravel_index": _unravelled,
    "ravel_multi_index": _ravelled,
    "in": _member,
    "iteration": lambda x, folder: [int(row[0]) for row in x.reshape(6, -1)[:1]],
    "isin": lambda x, folder: np.isin(x, TABLE).asnumpy(),
    "to a list of arrays": lambda x, folder: np.array([x, x]).asnumpy()[0],
    "ufunc of another library": lambda x, folder: pytest.importorskip("scipy.special").expit(x).asnumpy(),
}


@contextlib.contextmanager
def _overwritten(x: Any, write: Callable[[Any, int], None]) -> Iterator[Callable[[], int]]:
    """Overwrites `x` in a thread with one version after the other; gives a function that returns how often it did."""
    is_over = threading.Event()
    num_writes = 0
    failures: list[BaseException] = []

    def loop() -> None:
        nonlocal num_writes
        try:
            while not is_over.is_set():
                write(x, num_writes % (LAST + 1))
                num_writes += 1
        except BaseException as failure:  # noqa: BLE001 - raised by the test's thread
            failures.append(failure)

    writer = threading.Thread(target=loop)
    writer.start()
    try:
        yield lambda: num_writes
    finally:
        is_over.set()
        writer.join()
    if failures:
        raise failures[0]


def _num_torn(read: Callable[[Any, Path], Any], write: Callable[[Any, int], None], count: int, folder: Path) -> int:
    """How many of `count` reads are torn, or of more: those that are done beside `WRITES_BESIDE` writes."""
    most = max(count, MOST_READS)
    x = np.zeros(SIZE, dtype="int64")
    torn = done = 0
    with _overwritten(x, write) as num_writes:
        while done < count or (done < most and num_writes() < WRITES_BESIDE):
            done += 1
            try:
                torn += not _is_whole(read(x, folder))
            except AssertionError:
                torn += 1
    return torn


@pytest.mark.parametrize("read", READS)
def test_read_beside_an_overwrite_sees_one_version(read: str, tmp_path: Path) -> None:
    assert _num_torn(READS[read], _set, 25, tmp_path) == 0


@pytest.mark.parametrize("read", ["asnumpy", "tolist", "unique", "index array"])
@pytest.mark.parametrize("write", ["add", "copyto"])
def test_read_beside_other_writes_sees_one_version(write: str, read: str, tmp_path: Path) -> None:
    assert _num_torn(READS[read], WRITES[write], 25, tmp_path) == 0


def test_index_array_that_changes_sign_is_read_once() -> None:
    # Both versions name the same element, one of them counted from the end.
    x = np.zeros(SIZE, dtype="int64")
    with _overwritten(x, lambda x, k: _set(x, 5 if k % 2 else 5 - (LAST + 2))):
        x.wait_to_read()
        for _ in range(50):
            found = set(TABLE[x].tolist())
            assert found <= {0, 5} and len(found) == 1


def test_reads_of_several_threads_end_beside_writes() -> None:
    x = np.zeros(SIZE, dtype="int64")
    torn: list[Any] = []

    def loop() -> None:
        for _ in range(10):
            torn.extend(values for values in (x.asnumpy(), np.unique(x).tolist()) if not _is_whole(values))

    with _overwritten(x, _set):
        readers = [threading.Thread(target=loop) for _ in range(4)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
    assert not torn


def test_export_beside_writes_is_complete() -> None:
    # Writes that follow the export are done when they return; the ones before it were waited for.
    for _ in range(20):
        x = np.zeros(SIZE, dtype="int64")
        seen: list[Any] = []
        with _overwritten(x, _set):
            seen.append(numpy.asarray(x))
        assert _is_whole(seen[0])
        x[:] = 77
        assert (seen[0] == 77).all()


def test_asnumpy_owns_its_memory_in_the_order_of_the_array() -> None:
    x = np.arange(24).reshape(2, 3, 4)
    for view in (x, x.T, x[:, ::-1], x.transpose(1, 0, 2), x[0, 0, 0], x[:0], np.broadcast_to(x[0], (5, 3, 4))):
        values, lent = view.asnumpy(), numpy.array(numpy.asarray(view))
        assert values.flags.owndata and values.flags.writeable
        assert values.strides == lent.strides and (values == lent).all()


def test_printing_a_large_view_shows_its_corners() -> None:
    x = np.arange(40_000).reshape(200, 200)
    for view in (x, x.T, x[::-1, ::2], np.broadcast_to(x[0], (1000, 200)), x.reshape(-1)):
        values = view.asnumpy()
        assert str(view) == str(values)
        with numpy.printoptions(edgeitems=1):
            assert str(view) == str(values)
        with numpy.printoptions(threshold=sys.maxsize):
            part = (slice(2000), slice(3))[: view.ndim]
            assert str(view[part]) == str(values[part])


def _soak(count: int, names: list[str]) -> int:
    """Repeats reads beside `x[:] = k` and prints how many were torn."""
    import tempfile

    total = 0
    for name in names or list(READS):
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            torn = _num_torn(READS[name], _set, count, Path(folder))
        total += torn
        print(f"{name}: {torn} of {count} torn, {time.perf_counter() - start:.0f} s", flush=True)
    return total


if __name__ == "__main__":
    sys.exit(_soak(int(sys.argv[1]), sys.argv[2:]) > 0)
