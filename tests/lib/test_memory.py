"""Views with strides of their own, shared memory, arrays from buffers and text."""

import io

import numpy
import pytest

import mxnet as mx
from both import both

X = numpy.arange(24.0).reshape(4, 6)


@pytest.mark.parametrize(
    "expression",
    [
        "view(X, (2, 3))",
        "view(X, 3, axis=1)",
        "view(X, (2, 2), axis=(1, 1))",
        "view(X, 4, 0)",
        "view(X, 5, 0)",
        "view(X, 3)",
        "view(X, (2, -1))",
        "view(X, (2, 2), axis=0)",
        "view(X[::2, ::-1], (1, 2))",
        "view(X, 2, axis=2)",
    ],
)
def test_windows_are_numpys(expression):
    both(expression.replace("view", "np.lib.stride_tricks.sliding_window_view"), X=X)


def test_windows_share_memory_and_are_read_only():
    x = mx.np.arange(5)
    windows = mx.np.lib.stride_tricks.sliding_window_view(x, 3)
    x[2] = 9
    assert windows.tolist() == [[0, 1, 9], [1, 9, 3], [9, 3, 4]]
    assert not windows.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        windows[0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        windows[1][0] = 1
    assert x.tolist() == [0, 1, 9, 3, 4]


@pytest.mark.parametrize(
    "write",
    [
        "w[0, 0] = 7",
        "w[1] = [7, 8, 9]",
        "w[...] = 5",
        "w[:, 1] = -np.arange(3.0)",
        "w[::2, ::2] = 3",
        "w[:, 0] += 1",
        "w[2][1:] = 0",
        "w[...] = w + 1",
        "w.fill(2)",
    ],
)
def test_windows_asked_for_to_be_written_are(write):
    x, theirs = mx.np.arange(5.0), numpy.arange(5.0)
    for module, array in ((mx.np, x), (numpy, theirs)):
        w = module.lib.stride_tricks.sliding_window_view(array, 3, writeable=True)
        assert w.flags.writeable
        exec(write, {"w": w, "np": module})
    if write != "w[...] = w + 1":  # which of several values an element keeps is unspecified
        assert x.tolist() == theirs.tolist()
    assert set(x.tolist()) <= {*range(-5, 10)}


def test_large_windows_are_written_by_one_thread():
    x = mx.np.zeros(100000)
    windows = mx.np.lib.stride_tricks.sliding_window_view(x, 50, writeable=True)
    windows[...] = mx.np.arange(50)
    # Whatever the order, every element is one of the values meant for it.
    found = x.asnumpy()
    assert set(found[60:-60].tolist()) <= set(range(50)) and found[0] == 0 and found[-1] == 49


@pytest.mark.parametrize(
    "write",
    [
        "w.__setitem__([0, 1], 5)",
        "w.__setitem__([[1], [0]], np.array([[[1, 2, 3]], [[4, 5, 6]]]))",
        "w.__setitem__((slice(None), [2, 0]), np.arange(6).reshape(3, 2))",
        "w.__setitem__(w > 1, 0)",
        "w.__setitem__(w > 1, np.arange(8) * 10)",
        "w.__iadd__(1)",
        "w.__imul__(np.array([[1], [2], [3]]))",
        "w[:, ::-1].__isub__(w)",
        "np.add(w, 100, out=w)",
        "np.exp2(w, out=w)",
        "np.multiply(w, 2, out=w, where=[True, False, True])",
        "np.add.at(w, ([0, 1], [1, 0]), 5)",
        "np.cumsum(w, axis=1, out=w)",
        "np.divmod(w, 2, out=(w, np.zeros((3, 3))))",
        "np.copyto(w, 7)",
    ],
)
@pytest.mark.parametrize("kind", ["windows", "strided"])
def test_elements_that_share_memory_are_written_as_in_numpy(write, kind):
    def written(np):
        x = np.arange(5.0) + 1
        tricks = np.lib.stride_tricks
        if kind == "windows":
            w = tricks.sliding_window_view(x, 3, writeable=True)
        else:
            w = tricks.as_strided(x, (3, 3), (x.itemsize, x.itemsize))
        eval(write, {"np": np, "w": w})
        return x.tolist()

    assert written(mx.np) == written(numpy)


def test_shared_elements_are_not_written_while_recording():
    w = mx.np.lib.stride_tricks.sliding_window_view(mx.np.arange(5.0), 3, writeable=True)
    scale = mx.np.ones(3)
    scale.attach_grad()
    with mx.autograd.record():
        with pytest.raises(ValueError, match="share memory"):
            w *= scale
        with pytest.raises(ValueError, match="share memory"):
            w[[0, 1]] = scale


def test_views_keep_the_lock_of_what_they_are_views_of():
    x = mx.np.arange(6)
    strided = mx.np.lib.stride_tricks.as_strided
    assert not strided(x, (2,), (32,), writeable=False).flags.writeable
    assert strided(x, (2, 2), (8, 8)).flags.writeable
    x.flags.writeable = False
    assert not strided(x, (2,), (32,)).flags.writeable
    locked = mx.np.lib.stride_tricks.sliding_window_view(x, 3, writeable=True)
    with pytest.raises(ValueError, match="read-only"):
        locked[0, 0] = 1


def test_strided_views_share_memory_and_stay_within_it():
    x = mx.np.arange(6)
    diagonal = mx.np.lib.stride_tricks.as_strided(x, (2,), (32,))
    diagonal[...] = 7
    assert x.tolist() == [7, 1, 2, 3, 7, 5]
    assert mx.np.lib.stride_tricks.as_strided(x[1:], strides=(0,)).tolist() == [1] * 5
    assert mx.np.lib.stride_tricks.as_strided(x[::2], shape=(2,)).tolist() == [7, 2]
    for shape, strides in (((7,), (8,)), ((2,), (-8,)), ((2, 2), (8, 40))):
        with pytest.raises(ValueError, match="bytes"):
            mx.np.lib.stride_tricks.as_strided(x, shape, strides)
    with pytest.raises(ValueError, match="multiples of the 8 bytes"):
        mx.np.lib.stride_tricks.as_strided(x, (2,), (4,))


@pytest.mark.parametrize("window, axis", [((2, 3), None), ((2,), 0), ((2, 2), (1, 1))])
def test_gradients_of_windows_count_how_often_an_element_is_seen(window, axis):
    x = mx.np.array(X, dtype="float64")
    x.attach_grad()
    view = mx.np.lib.stride_tricks.sliding_window_view
    weights = numpy.arange(numpy.lib.stride_tricks.sliding_window_view(X, window, axis).size, dtype=float)
    with mx.autograd.record():
        y = view(x, window, axis)
        head = (y * mx.np.array(weights.reshape(y.shape))).sum()
    head.backward()
    expected = numpy.zeros(X.size)
    numbers = numpy.lib.stride_tricks.sliding_window_view(numpy.arange(X.size).reshape(X.shape), window, axis)
    numpy.add.at(expected, numbers.ravel(), weights)
    numpy.testing.assert_array_equal(x.grad.asnumpy(), expected.reshape(X.shape))


def test_gradient_of_a_strided_view():
    x = mx.np.array([1.0, 2.0, 3.0])
    x.attach_grad()
    with mx.autograd.record():
        head = mx.np.square(mx.np.lib.stride_tricks.as_strided(x, (2, 2), (4, 4))).sum()
    head.backward()
    assert x.grad.tolist() == [2, 8, 6]
    with mx.autograd.record(), pytest.raises(ValueError, match="C order"):
        mx.np.lib.stride_tricks.as_strided(x[::2], (2,), (8,))


def test_memory_is_shared_exactly_where_numpy_says_so():
    x, y = numpy.zeros((6, 8)), mx.np.zeros((6, 8), "float64")
    parts = [
        (slice(None),),
        (slice(None, None, 2),),
        (slice(1, None, 2),),
        (slice(None), slice(None, None, 3)),
        (slice(None), slice(1, None, 3)),
        (slice(None, None, -1), slice(None, None, -2)),
        (slice(3, None), slice(5, None)),
        (slice(0, 0),),
        (slice(2, 3), slice(3, 4)),
    ]
    for a in parts:
        for b in parts:
            for turn in (False, True):
                ours, theirs = (y[a], y[b]), (x[a], x[b])
                if turn:
                    ours, theirs = (ours[0], ours[1].T), (theirs[0], theirs[1].T)
                assert mx.np.shares_memory(*ours) == numpy.shares_memory(*theirs), (a, b)
                assert mx.np.may_share_memory(*ours) == numpy.may_share_memory(*theirs), (a, b)
    assert not mx.np.shares_memory(y, mx.np.zeros(3))
    assert mx.np.shares_memory(y, y[2], max_work=0) and not mx.np.shares_memory(y, y.copy())
    complex_array = mx.np.zeros(4, "complex64")
    assert not mx.np.shares_memory(complex_array.real, complex_array.imag)
    assert mx.np.may_share_memory(complex_array.real, complex_array.imag)


def test_hard_questions_about_memory_end():
    layouts = [((3, 3, 3, 3, 3), (2, 7, 19, 55, 163)), ((4, 4, 4, 4), (11, 41, 161, 641))]
    for start in range(1, 40):
        pairs = []
        for module, x in ((mx.np, mx.np.zeros(10_000, "int8")), (numpy, numpy.zeros(10_000, "int8"))):
            view = module.lib.stride_tricks.as_strided
            pairs.append((view(x, *layouts[0]), view(x[start:], *layouts[1])))
        assert mx.np.shares_memory(*pairs[0]) == numpy.shares_memory(*pairs[1])
    with pytest.raises(numpy.exceptions.TooHardError, match="after 1 candidates"):
        mx.np.shares_memory(*pairs[0], max_work=1)
    with pytest.raises(ValueError, match="-2"):
        mx.np.shares_memory(*pairs[0], max_work=-2)


def test_arrays_from_buffers_share_their_memory():
    buffer = bytearray(range(8))
    x = mx.np.frombuffer(buffer, dtype="uint8", count=3, offset=2)
    buffer[2] = 77
    assert x.tolist() == [77, 3, 4]
    assert mx.np.frombuffer(b"\0\0\x80?\0\0\0@").tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        mx.np.frombuffer(b"abc", dtype="uint8")[0] = 1
    with pytest.raises(ValueError):
        mx.np.frombuffer(b"abc", dtype="int32")


@pytest.mark.parametrize(
    "expression",
    [
        "np.fromiter((i * i for i in range(5)), 'float32')",
        "np.fromiter([1, 2], 'int64', count=3)",
        "np.fromstring('1 2 3', dtype='int64', sep=' ')",
        "np.fromstring('1.5,2', sep=',')",
        "np.loadtxt(['1 2', '3 4'])",
        "np.loadtxt(['# 1', '3,4'], delimiter=',', dtype='int32')",
        "np.loadtxt(['1 2', '3'])",
        "np.genfromtxt(['1,2', '3,'], delimiter=',')",
        "np.genfromtxt(['1,2', '3,4'], delimiter=',', dtype='int64')",
        "np.asarray_chkfinite([1.0, 2.0])",
        "np.asarray_chkfinite([1.0, nan])",
        "np.asarray_chkfinite([1, 2], dtype='float32', order='F')",
        "np.asanyarray([[1, 2]], dtype='float64', order='F')",
        "np.ascontiguousarray(3)",
        "np.ascontiguousarray(X.T)",
        "np.ascontiguousarray(X.T).strides",
        "np.asfortranarray(X).strides",
        "np.asfortranarray([1, 2], dtype='int8')",
        "np.require(X, requirements=['F']).strides",
        "np.require([1, 2], 'float32', 'CW')",
        "np.require([1, 2], requirements=['C', 'F'])",
        "np.require([1, 2], requirements=['Z'])",
    ],
)
def test_conversions_are_numpys(expression):
    both(expression, X=X)


ITERATED = [
    "range(5), 'float64'",
    "(1.5, 2), 'int8'",
    "[1, 300], 'int8'",
    "[-1], 'uint8'",
    "['1.5', '2'], 'float64'",
    "['a'], 'float64'",
    "[1, 2, 3], 'int64', 2",
    "[1, 2, 3], 'float32', 0",
    "[1, 2], 'int64', 3",
    "[True, False], 'bool'",
    "[1.5, True, 2], 'float64'",
    "[1j], 'complex128'",
    "[[1, 2]], 'float64'",
    "[1, [2]], 'float64'",
    "[], 'float64'",
    "3, 'float64'",
    "[2**70, 0.5], 'float64'",
    "[1, 2**70], 'int64'",
    "[2**63], 'uint64'",
    "[np.array(2.0), 1], 'float64'",
    "[1.0, np.float64(3)], 'float64'",
    "[1, 2], 'float16'",
    "(1 / (x - 2) for x in range(4)), 'float64'",
]


@pytest.mark.parametrize("arguments", ITERATED)
def test_iterators_are_read_as_numpy_reads_them(arguments):
    both(f"np.fromiter({arguments})")


def test_iterators_are_read_no_further_than_is_asked():
    items = iter([1, 2, 3, 4])
    assert mx.np.fromiter(items, "int64", 2).tolist() == [1, 2] and next(items) == 3

    class Old:
        def __getitem__(self, i):
            return [5, 6][i]

    assert mx.np.fromiter(Old(), "float64").tolist() == [5.0, 6.0]


TEXTS = [
    "'1 2 3', sep=' '",
    "' 1  2\\n3 ', dtype='int64', sep=' '",
    "'1, 2,3', sep=','",
    "'1 ,2', sep=','",
    "'1 , 2', sep=' , '",
    "'1,2,', sep=','",
    "'1;2', dtype='float32', sep=';'",
    "'1abc2', sep='abc'",
    "'1-2', sep=' '",
    "'1 2 x', dtype='int64', sep=' '",
    "'1.5 2', dtype='int64', sep=' '",
    "'', sep=' '",
    "'1 2 3', count=2, sep=' '",
    "'nan inf -INF 1e5 .5 5. +3', sep=' '",
    "'300 1', dtype='int8', sep=' '",
    "'18446744073709551615', dtype='uint64', sep=' '",
    "'1 0', dtype='bool', sep=' '",
    "b'1 2', sep=' '",
    "'1 2'",
]


@pytest.mark.parametrize("arguments", TEXTS)
@pytest.mark.filterwarnings("error")
def test_text_is_read_as_numpy_reads_it(arguments):
    both(f"np.fromstring({arguments})")


def test_arrays_that_are_right_already_are_not_copied():
    x = mx.np.ones((2, 3))
    assert mx.np.ascontiguousarray(x) is x and mx.np.asanyarray(x) is x and mx.np.require(x, None, "C") is x
    assert mx.np.require(x, None, "W") is x
    assert mx.np.shares_memory(mx.np.asfortranarray(x.T), x)
    with pytest.raises(ValueError, match="copy is needed: the order"):
        mx.np.asanyarray(x, order="F", copy=False)
    assert mx.np.require(numpy.ones(3), None, "W").tolist() == [1, 1, 1]


def test_text_and_files_hold_what_was_written(tmp_path):
    x = mx.np.array([[1.5, 2.0], [3.0, -4.25]])
    mx.np.savetxt(tmp_path / "x.txt", x, fmt="%.2f", delimiter=",", header="a,b")
    assert (tmp_path / "x.txt").read_text() == "# a,b\n1.50,2.00\n3.00,-4.25\n"
    assert mx.np.loadtxt(tmp_path / "x.txt", delimiter=",").tolist() == x.tolist()
    x.asnumpy().tofile(tmp_path / "x.bin")
    assert mx.np.fromfile(tmp_path / "x.bin", "float32").tolist() == [1.5, 2.0, 3.0, -4.25]
    text = io.StringIO()
    mx.np.savetxt(text, [1, 2], fmt="%d")
    assert text.getvalue() == "1\n2\n"
