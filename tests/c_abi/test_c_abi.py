"""The C ABI: every operator by name, arrays, gradients, settings, and misuse that must not crash."""

from __future__ import annotations

import ctypes
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

import mxnet as mx
from c_library import Arg, Fault, Outputs, Value, library

FLOAT32 = 11
LINALG = 6
KINDS = {type(None): 0, bool: 1, int: 2, float: 3, str: 5, tuple: 7}


class Failed(Exception):
    def __init__(self, status: int, op: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.status, self.op, self.hint = status, op, hint


class Library:
    """The functions of the header, called as a program in C calls them."""

    def __init__(self, path: Path) -> None:
        self.c = ctypes.CDLL(str(path))
        self.c.mx_version.restype = ctypes.c_char_p

    def check(self, status: int) -> None:
        if status:
            fault = Fault(size=ctypes.sizeof(Fault))
            assert self.c.mx_last_error(ctypes.byref(fault)) == 0
            assert fault.status == status
            raise Failed(status, fault.op.decode(), fault.message.decode(), fault.hint.decode())

    def array(self, values: Any, dtype: int = FLOAT32) -> int:
        values = numpy.ascontiguousarray(values)
        shape = (ctypes.c_int64 * values.ndim)(*values.shape)
        handle = ctypes.c_uint64()
        data = values.ctypes.data_as(ctypes.c_void_p)
        self.check(self.c.mx_array_create(data, shape, values.ndim, dtype, None, ctypes.byref(handle)))
        return handle.value

    def read(self, handle: int, dtype: str = "float32") -> numpy.ndarray[Any, Any]:
        shape, ndim = (ctypes.c_int64 * 8)(), ctypes.c_size_t()
        self.check(self.c.mx_array_shape(ctypes.c_uint64(handle), shape, 8, ctypes.byref(ndim)))
        result = numpy.empty(tuple(shape[: ndim.value]), dtype)
        data = result.ctypes.data_as(ctypes.c_void_p)
        self.check(self.c.mx_array_read(ctypes.c_uint64(handle), data, result.nbytes))
        return result

    def invoke(self, op: str, *operands: Any, capacity: int = 4, **named: Any) -> list[int]:
        keep: list[Any] = []
        given = [*((None, x) for x in operands), *named.items()]
        args = (Arg * max(len(given), 1))()
        for arg, (name, x) in zip(args, given, strict=False):
            arg.name = name.encode() if name else None
            if isinstance(x, Array):
                arg.kind, arg.value.array = 9, x.handle
            elif isinstance(x, list) and isinstance(x[0], float):
                keep.append((ctypes.c_double * len(x))(*x))
                arg.kind, arg.len = 8, len(x)
                arg.value.reals = ctypes.cast(keep[-1], ctypes.POINTER(ctypes.c_double))
            elif isinstance(x, list):
                keep.append((ctypes.c_uint64 * len(x))(*(y.handle for y in x)))
                arg.kind, arg.len = 10, len(x)
                arg.value.arrays = ctypes.cast(keep[-1], ctypes.POINTER(ctypes.c_uint64))
            elif isinstance(x, str):
                arg.kind, arg.value.text = 5, x.encode()
            elif isinstance(x, tuple):
                keep.append((ctypes.c_int64 * len(x))(*x))
                arg.kind, arg.len = 7, len(x)
                arg.value.ints = ctypes.cast(keep[-1], ctypes.POINTER(ctypes.c_int64))
            elif isinstance(x, float):
                arg.kind, arg.value.real = 3, x
            else:
                arg.kind, arg.value.integer = KINDS[type(x)], int(x or 0)
        arrays = (ctypes.c_uint64 * max(capacity, 1))()
        out = Outputs(size=ctypes.sizeof(Outputs), arrays=arrays, capacity=capacity)
        self.check(self.c.mx_invoke(op.encode(), args, len(given), ctypes.byref(out)))
        return list(arrays[: out.len])

    def count(self) -> int:
        count = ctypes.c_size_t()
        self.check(self.c.mx_handle_count(ctypes.byref(count)))
        return count.value

    def free(self, handle: int) -> None:
        self.check(self.c.mx_free(ctypes.c_uint64(handle)))

    def text(self, function: str, *first: Any) -> str:
        needed = ctypes.c_size_t()
        call = getattr(self.c, function)
        self.check(call(*first, None, ctypes.c_size_t(0), ctypes.byref(needed)))
        buffer = ctypes.create_string_buffer(needed.value)
        self.check(call(*first, buffer, needed, ctypes.byref(needed)))
        return buffer.value.decode()


class Array:
    def __init__(self, handle: int) -> None:
        self.handle = handle


@pytest.fixture(scope="module")
def shared() -> Library:
    return Library(library())


@pytest.fixture
def lib(shared: Library) -> Iterator[Library]:
    before = shared.count()
    yield shared
    assert shared.count() == before, "a handle was not freed"


X = numpy.arange(6, dtype="float32").reshape(2, 3)


def test_version_and_abi_are_those_of_the_package(lib: Library) -> None:
    import mxnet

    assert lib.c.mx_version().decode() == mxnet.__version__
    assert lib.c.mx_abi_version() == 2


def test_every_operator_is_listed_and_described(lib: Library) -> None:
    from mxnet import _core

    names = lib.text("mx_op_names").split("\n")
    assert set(names) >= set(_core.namespaces["op"])
    for name in names:
        text = ctypes.c_char_p()
        lib.check(lib.c.mx_op_describe(name.encode(), ctypes.byref(text)))
        assert text.value is not None
        described = json.loads(text.value)
        assert described["name"] == name
        assert all(param["name"] and param["kind"] for param in described["params"])


def test_arguments_by_position_and_by_name_give_what_python_gives(lib: Library) -> None:
    import mxnet as mx

    x = Array(lib.array(X))
    for op, operands, named, expected in [
        ("add", (x, 1.5), {}, X + 1.5),
        ("sum", (x,), {"axis": 1, "keepdims": True}, X.sum(1, keepdims=True)),
        ("transpose", (x,), {"axes": (1, 0)}, X.T),
        ("index", (x,), {"key": "1, ::2"}, X[1, ::2]),
        ("softmax", (x,), {"axis": 0}, mx.npx.softmax(mx.np.array(X), axis=0).asnumpy()),
        ("concatenate", ([x, x],), {"axis": 1}, numpy.concatenate([X, X], 1)),
        ("astype", (x, "int32"), {}, X.astype("int32")),
        ("astype", (x,), {"dtype": "float64"}, X.astype("float64")),
    ]:
        (y,) = lib.invoke(op, *operands, **named)
        numpy.testing.assert_array_equal(lib.read(y, expected.dtype), expected, err_msg=op)
        lib.free(y)
    parts = lib.invoke("split", x, indices_or_sections=3, axis=1)
    for i, part in enumerate(parts):
        numpy.testing.assert_array_equal(lib.read(part), X[:, i : i + 1])
        lib.free(part)
    lib.free(x.handle)


def test_statistics_are_those_of_numpy(lib: Library) -> None:
    values = numpy.random.default_rng(3).normal(size=(4, 6)).astype("float32")
    holed = numpy.where(values > 1, numpy.nan, values)
    holed[1, 2] = numpy.nan
    scales = numpy.arange(1, 7, dtype="float32")
    x, y, w = (Array(lib.array(a)) for a in (values, holed, scales))
    edges = numpy.histogram(values, 5, (-2.0, 2.0))
    for op, operands, named, expected in [
        ("median", (x,), {"axis": 1}, [numpy.median(values, 1)]),
        ("trapezoid", (x,), {"axis": 1}, [numpy.trapezoid(values, axis=1)]),
        ("average", (x,), {"axis": 1, "weights": w}, [numpy.average(values, 1, scales)]),
        ("cov", (x,), {"bias": True}, [numpy.cov(values, bias=True)]),
        ("corrcoef", (x,), {}, [numpy.corrcoef(values)]),
        ("histogram", (x,), {"bins": 5, "range": [-2.0, 2.0]}, edges),
        ("nanmean", (y,), {"axis": 0}, [numpy.nanmean(holed, 0)]),
        ("nanvar", (y,), {"axis": 1, "ddof": 1.0}, [numpy.nanvar(holed, 1, ddof=1)]),
        ("nanstd", (y,), {}, [numpy.nanstd(holed)]),
        ("nanmax", (y,), {"axis": 1}, [numpy.nanmax(holed, 1)]),
        ("nanmedian", (y,), {"axis": 1}, [numpy.nanmedian(holed, 1)]),
        ("quantile", (x,), {"q": [0.25, 0.5], "axis": 1}, [numpy.quantile(values, [0.25, 0.5], 1)]),
        ("nanquantile", (y,), {"q": [0.1, 0.9], "axis": 1}, [numpy.nanquantile(holed, [0.1, 0.9], 1)]),
    ]:
        found = lib.invoke(op, *operands, **named)
        assert len(found) == len(expected), op
        for handle, wanted in zip(found, expected, strict=True):
            dtype = "int64" if wanted.dtype == "int64" else "float32"
            # Sums of at most 24 numbers of size 1 to 4, each rounded to float32.
            numpy.testing.assert_allclose(lib.read(handle, dtype), wanted, rtol=24 * 2**-23, atol=2**-20, err_msg=op)
            lib.free(handle)
    for each in (x, y, w):
        lib.free(each.handle)


def test_out_is_written_and_its_own_handle_returned(lib: Library) -> None:
    x, y = Array(lib.array(X)), Array(lib.array(numpy.zeros_like(X)))
    assert lib.invoke("multiply", x, x, out=y) == [y.handle]
    numpy.testing.assert_array_equal(lib.read(y.handle), X * X)
    lib.free(x.handle)
    lib.free(y.handle)


def test_gradients_and_gradients_of_gradients(lib: Library) -> None:
    x = Array(lib.array(X))
    lib.check(lib.c.mx_mark(ctypes.c_uint64(x.handle), None))
    scope = ctypes.c_uint64()
    lib.check(lib.c.mx_record_begin(1, 1, ctypes.byref(scope)))
    (y,) = lib.invoke("power", x, 3)
    (total,) = lib.invoke("sum", Array(y))
    first = ctypes.c_uint64()
    heads, variables = (ctypes.c_uint64 * 1)(total), (ctypes.c_uint64 * 1)(x.handle)
    lib.check(lib.c.mx_grad(heads, None, 1, variables, 1, 1, ctypes.byref(first)))
    numpy.testing.assert_array_equal(lib.read(first.value), 3 * X**2)
    lib.check(lib.c.mx_record_end(scope))
    lib.check(lib.c.mx_backward(ctypes.byref(first), None, 1, 0))
    gradient = ctypes.c_uint64()
    lib.check(lib.c.mx_gradient(ctypes.c_uint64(x.handle), ctypes.byref(gradient)))
    numpy.testing.assert_array_equal(lib.read(gradient.value), 6 * X)
    for handle in (x.handle, y, total, first.value, gradient.value):
        lib.free(handle)


def test_memory_of_the_caller_is_used_where_it_is(lib: Library) -> None:
    values, freed = X.copy(), []
    deleter_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    deleter = deleter_type(freed.append)
    shape, handle = (ctypes.c_int64 * 2)(2, 3), ctypes.c_uint64()
    data = values.ctypes.data_as(ctypes.c_void_p)
    lib.check(lib.c.mx_array_from_memory(data, shape, 2, FLOAT32, deleter, ctypes.c_void_p(7), ctypes.byref(handle)))
    address = ctypes.c_void_p()
    lib.check(lib.c.mx_array_data(handle, ctypes.byref(address)))
    assert address.value == values.ctypes.data
    lib.invoke("add", Array(handle.value), 1.0, out=Array(handle.value))
    numpy.testing.assert_array_equal(values, X + 1)
    lib.free(handle.value)
    assert freed == [7]


def test_dlpack_goes_both_ways_without_a_copy(lib: Library) -> None:
    x = lib.array(X)
    managed, back = ctypes.c_void_p(), ctypes.c_uint64()
    lib.check(lib.c.mx_array_to_dlpack(ctypes.c_uint64(x), ctypes.byref(managed)))
    lib.check(lib.c.mx_array_from_dlpack(managed, ctypes.byref(back)))
    addresses = [ctypes.c_void_p(), ctypes.c_void_p()]
    for handle, address in zip((x, back.value), addresses, strict=True):
        lib.check(lib.c.mx_array_data(ctypes.c_uint64(handle), ctypes.byref(address)))
    assert addresses[0].value == addresses[1].value
    lib.free(x)
    numpy.testing.assert_array_equal(lib.read(back.value), X)
    lib.free(back.value)


def test_files_are_those_of_python(lib: Library, tmp_path: Path) -> None:
    import mxnet as mx

    path = tmp_path / "x.safetensors"
    x = lib.array(X)
    names, arrays = (ctypes.c_char_p * 1)(b"x"), (ctypes.c_uint64 * 1)(x)
    lib.check(lib.c.mx_save(str(path).encode(), names, arrays, 1))
    numpy.testing.assert_array_equal(mx.npx.load(str(path))["x"].asnumpy(), X)
    back, num, text, needed = (
        (ctypes.c_uint64 * 2)(),
        ctypes.c_size_t(),
        ctypes.create_string_buffer(64),
        ctypes.c_size_t(),
    )
    lib.check(lib.c.mx_load(str(path).encode(), back, 2, ctypes.byref(num), text, 64, ctypes.byref(needed)))
    assert (num.value, text.value) == (1, b"x")
    numpy.testing.assert_array_equal(lib.read(back[0]), X)
    lib.free(back[0])
    lib.free(x)
    with pytest.raises(Failed, match="No such file") as caught:
        lib.check(lib.c.mx_load(b"/no/such/file", back, 2, ctypes.byref(num), text, 64, ctypes.byref(needed)))
    assert caught.value.status == 12


def test_random_numbers_are_those_of_the_seed(lib: Library) -> None:
    draws = []
    for _ in range(2):
        lib.check(lib.c.mx_random_seed(ctypes.c_uint64(5)))
        (x,) = lib.invoke("uniform", size=(4,))
        draws.append(lib.read(x))
        lib.free(x)
    numpy.testing.assert_array_equal(*draws)
    assert len(set(draws[0].tolist())) == 4


def test_settings_are_read_written_and_listed(lib: Library) -> None:
    before = lib.text("mx_config_get", b"engine_mode")
    lib.check(lib.c.mx_config_set(b"engine_mode", b"sync"))
    assert lib.text("mx_config_get", b"engine_mode") == "sync"
    listed = {key["name"]: key for key in json.loads(lib.text("mx_config_list"))}
    assert listed["engine_mode"]["value"] == "sync"
    assert listed["engine_mode"]["origin"] == "program"
    lib.check(lib.c.mx_config_set(b"engine_mode", before.encode()))
    with pytest.raises(Failed, match="one of adaptive, async, sync, not 'fast'"):
        lib.check(lib.c.mx_config_set(b"engine_mode", b"fast"))
    with pytest.raises(Failed, match="there is no setting `speed`"):
        lib.check(lib.c.mx_config_set(b"speed", b"1"))


def test_features_devices_and_the_mode_are_those_of_python(lib: Library) -> None:
    features = json.loads(lib.text("mx_features"))
    assert {each["name"]: each["is_enabled"] for each in features} == {
        each.name: each.enabled for each in mx.runtime.feature_list()
    }
    count, free, total = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_size_t()
    for kind, expected in ((b"cpu", 1), (b"gpu", mx.num_gpus())):
        lib.check(lib.c.mx_device_count(kind, ctypes.byref(count)))
        assert count.value == expected
    lib.check(lib.c.mx_device_memory(b"cpu", ctypes.byref(free), ctypes.byref(total)))
    assert 0 < free.value <= total.value
    missing = f"gpu({mx.num_gpus()})".encode()
    shape, handle = (ctypes.c_int64 * 1)(3), ctypes.c_uint64()
    element = ctypes.c_float(1.0)
    data, axes = ctypes.byref(element), ctypes.c_size_t(0)
    for call in (
        lambda: lib.c.mx_array_create(data, shape, axes, FLOAT32, missing, ctypes.byref(handle)),
        lambda: lib.c.mx_device_memory(missing, ctypes.byref(free), ctypes.byref(total)),
        lambda: lib.c.mx_array_create(None, shape, ctypes.c_size_t(1), FLOAT32, missing, ctypes.byref(handle)),
        lambda: lib.c.mx_device_count(b"moon", ctypes.byref(count)),
    ):
        with pytest.raises(Failed, match=r"gpu|kind of device 'moon'") as caught:
            lib.check(call())
        assert caught.value.status == 9
        assert caught.value.op.startswith("mx_")
        # The kind is known without any call before: what is missing is the driver, or the device.
        assert "no backend" not in str(caught.value)
    recording, training, scope = ctypes.c_int32(), ctypes.c_int32(), ctypes.c_uint64()
    states = []
    for flags in (None, (1, 0), (0, 1)):
        if flags:
            lib.check(lib.c.mx_record_begin(*flags, ctypes.byref(scope)))
        lib.check(lib.c.mx_record_state(ctypes.byref(recording), ctypes.byref(training)))
        states.append((recording.value, training.value))
        if flags:
            lib.check(lib.c.mx_record_end(scope))
    assert states == [(0, 0), (1, 0), (0, 1)]


def test_the_profiler_records_operators_and_events_of_the_program(lib: Library, tmp_path: Path) -> None:
    file = str(tmp_path / "profile.json").encode()
    lib.check(lib.c.mx_profiler_configure(file, b"operators, memory"))
    assert lib.text("mx_config_get", b"profiler_filename") == file.decode()
    x = lib.array(X)
    lib.check(lib.c.mx_profiler_start())
    lib.check(lib.c.mx_profiler_range_begin(b"work", b"outer"))
    lib.check(lib.c.mx_profiler_scope_begin(b"layer"))
    [y] = lib.invoke("exp", Array(x))
    lib.check(lib.c.mx_profiler_scope_end())
    lib.check(lib.c.mx_profiler_pause(1))
    [z] = lib.invoke("log", Array(x))
    lib.check(lib.c.mx_profiler_pause(0))
    lib.check(lib.c.mx_profiler_range_end())
    lib.check(lib.c.mx_profiler_counter(b"work", b"rows", ctypes.c_int64(-2)))
    lib.check(lib.c.mx_profiler_marker(b"work", b"here", b"thread"))
    lib.check(lib.c.mx_profiler_stop())
    lib.check(lib.c.mx_profiler_dump(1))
    events = json.loads(Path(file.decode()).read_text())["traceEvents"]
    by_name = {event["name"]: event for event in events}
    assert by_name["exp"]["args"]["scope"] == "layer:"
    assert by_name["exp"]["args"]["outputs"] == [{"shape": [2, 3], "dtype": "float32"}]
    assert by_name["outer"]["dur"] >= by_name["exp"]["dur"]
    assert by_name["rows"]["args"] == {"value": -2}
    assert by_name["here"]["s"] == "t"
    assert "log" not in by_name
    order = (b"json", b"count", ctypes.c_int32(0))
    statistics = json.loads(lib.text("mx_profiler_summary", *order, ctypes.c_int32(1)))
    assert statistics["Time"]["operator"]["exp"]["Count"] == 1
    assert "exp" not in lib.text("mx_profiler_summary", None, None, ctypes.c_int32(0), ctypes.c_int32(0))
    for call, message in [
        (lambda: lib.c.mx_profiler_configure(file, b"everything"), "operators, graphs, memory, calls or all"),
        (lambda: lib.c.mx_profiler_configure(None, b"all"), "`filename` is null"),
        (lambda: lib.c.mx_profiler_marker(b"work", b"here", b"planet"), "not 'planet'"),
        (lambda: lib.c.mx_profiler_scope_begin(b"x" * 4097), "open scopes have 4097 bytes"),
        (lambda: lib.c.mx_profiler_range_end(), "no open range"),
        (lambda: lib.c.mx_profiler_scope_end(), "no open scope"),
        (lambda: lib.text("mx_profiler_summary", b"xml", *order[1:], ctypes.c_int32(0)), "not 'xml'"),
    ]:
        with pytest.raises(Failed, match=message):
            lib.check(call())
    for handle in (x, y, z):
        lib.free(handle)


def test_wrong_arguments_name_operator_and_argument(lib: Library) -> None:
    x = Array(lib.array(X))
    for status, message, op, operands, named in [
        (5, "there is no operator `no_such`", "no_such", (), {}),
        (1, r"operands could not be broadcast|shape", "add", (x, Array(lib.array(numpy.zeros((4, 5), "float32")))), {}),
        (2, r"missing required argument: 'x2'", "add", (x,), {}),
        (2, r"unexpected keyword argument 'y'", "add", (x, x), {"y": 1}),
        (2, r"multiple values for argument 'axis'", "softmax", (x, 0), {"axis": 0}),
        (2, r"argument `axis` must be an integer or a tuple of integers, not 'text'", "sum", (x,), {"axis": "one"}),
        (2, r"argument `x1` must be an array or a number, not 'text'", "add", ("x", x), {}),
        (5, r"argument `act_type` must be one of", "activation", (x,), {"act_type": "none"}),
        (3, r"axis 5", "sum", (x,), {"axis": 5}),
        (11, r"`where` is an argument of the Python function only", "add", (x, x), {"where": True}),
    ]:
        with pytest.raises(Failed, match=message) as caught:
            lib.invoke(op, *operands, **named)
        assert caught.value.status == status, message
        for operand in operands:
            if isinstance(operand, Array) and operand.handle != x.handle:
                lib.free(operand.handle)
    with pytest.raises(Failed, match="has 3 outputs, but the capacity is 1"):
        lib.invoke("split", x, indices_or_sections=3, axis=1, capacity=1)
    lib.free(x.handle)


def test_misuse_is_an_error_and_no_crash(lib: Library) -> None:
    x = lib.array(X)
    handle, out = ctypes.c_uint64(x), ctypes.c_uint64()
    shape = (ctypes.c_int64 * 2)(2, 3)
    data = X.ctypes.data_as(ctypes.c_void_p)
    c, ref = lib.c, ctypes.byref
    outputs = Outputs(size=ctypes.sizeof(Outputs))
    wrong = Arg(kind=99)
    nothing = Arg(kind=9, value=Value(array=0))
    calls = [
        (5, "is null", lambda: c.mx_array_create(data, None, 2, FLOAT32, None, ref(out))),
        (5, "is null", lambda: c.mx_array_create(data, shape, 2, FLOAT32, None, None)),
        (2, "there is no data type with the number 77", lambda: c.mx_array_create(data, shape, 2, 77, None, ref(out))),
        (9, "names no device|device", lambda: c.mx_array_create(data, shape, 2, FLOAT32, b"moon", ref(out))),
        (1, "negative", lambda: c.mx_array_create(data, (ctypes.c_int64 * 1)(-1), 1, FLOAT32, None, ref(out))),
        (5, "is null", lambda: c.mx_array_dtype(handle, None)),
        (5, "is not an object|is not valid", lambda: c.mx_array_wait(ctypes.c_uint64(0))),
        (5, "is not an object|is not valid", lambda: c.mx_array_wait(ctypes.c_uint64(2**63))),
        (5, "24 bytes, but `len_bytes` is 3", lambda: c.mx_array_read(handle, data, 3)),
        (5, "is null", lambda: c.mx_array_from_dlpack(None, ref(out))),
        (5, "not aligned", lambda: c.mx_array_from_dlpack(ctypes.c_void_p(3), ref(out))),
        (5, "is null", lambda: c.mx_invoke(None, None, 0, ref(outputs))),
        (5, "not UTF-8", lambda: c.mx_invoke(b"\xff", None, 0, ref(outputs))),
        (5, "is null", lambda: c.mx_invoke(b"add", None, 2, ref(outputs))),
        (5, "there is no kind 99 of arguments", lambda: c.mx_invoke(b"exp", ref(wrong), 1, ref(outputs))),
        (5, "is not an object|is not valid", lambda: c.mx_invoke(b"exp", ref(nothing), 1, ref(outputs))),
        (5, r"`out.size` is 0", lambda: c.mx_invoke(b"exp", None, 0, ref(Outputs()))),
        (13, "no gradient", lambda: c.mx_gradient(handle, ref(out))),
        (13, "recording", lambda: c.mx_backward(ref(handle), None, 1, 0)),
        (5, "must be write, add or null", lambda: c.mx_mark(handle, b"sum")),
        (5, "is not an object|is not valid", lambda: c.mx_record_end(ctypes.c_uint64(0))),
        (2, "is an array, a scope is needed", lambda: c.mx_record_end(handle)),
        (5, "is null", lambda: c.mx_save(None, None, None, 0)),
    ]
    for status, message, call in calls:
        with pytest.raises(Failed, match=message) as caught:
            lib.check(call())
        assert caught.value.status == status, message
    lib.free(x)
    for call in (c.mx_free, c.mx_array_wait):
        with pytest.raises(Failed, match="it was freed, or never created"):
            lib.check(call(handle))


def test_scopes_belong_to_their_thread_and_end_in_order(lib: Library) -> None:
    outer, inner = ctypes.c_uint64(), ctypes.c_uint64()
    lib.check(lib.c.mx_record_begin(1, 1, ctypes.byref(outer)))
    lib.check(lib.c.mx_record_begin(0, 1, ctypes.byref(inner)))
    with pytest.raises(Failed, match="a scope inside this one is open"):
        lib.check(lib.c.mx_record_end(outer))
    with pytest.raises(Failed, match="end it with mx_record_end"):
        lib.check(lib.c.mx_free(outer))
    seen: list[str] = []

    def elsewhere() -> None:
        try:
            lib.check(lib.c.mx_record_end(inner))
        except Failed as error:
            seen.append(str(error))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert len(seen) == 1
    assert "another thread" in seen[0]
    lib.check(lib.c.mx_record_end(inner))
    lib.check(lib.c.mx_record_end(outer))


def test_errors_belong_to_their_thread_and_shorter_structures_are_served(lib: Library) -> None:
    assert lib.c.mx_array_wait(ctypes.c_uint64(0)) == 5
    seen: list[int] = []

    def elsewhere() -> None:
        fault = Fault(size=ctypes.sizeof(Fault))
        lib.c.mx_last_error(ctypes.byref(fault))
        seen.append(fault.status)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [0]
    older = Fault(size=24, message=b"untouched")
    assert lib.c.mx_last_error(ctypes.byref(older)) == 0
    assert (older.status, older.op, older.message) == (5, b"mx_array_wait", b"untouched")
    assert lib.c.mx_last_error(None) == 5
    assert lib.c.mx_last_error(ctypes.byref(Fault())) == 5


def test_threads_call_at_once(lib: Library) -> None:
    x = Array(lib.array(X))
    wrong: list[object] = []

    def work() -> None:
        for _ in range(200):
            (y,) = lib.invoke("add", x, x)
            if not (lib.read(y) == X + X).all():
                wrong.append(y)
            lib.free(y)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    lib.free(x.handle)


def exported(tmp_path: Path) -> tuple[tuple[str, str], Any, Any]:
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(5, activation="tanh"), mx.gluon.nn.Dense(3))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    x = mx.np.array(numpy.linspace(-1, 1, 8, dtype="float32").reshape(2, 4))
    y = net(x)
    return net.export(tmp_path / "net"), x.asnumpy(), y.asnumpy()


def run_graph(lib: Library, graph: int, *arrays: int, capacity: int = 2) -> list[int]:
    arrays_out, given = (ctypes.c_uint64 * max(capacity, 1))(), (ctypes.c_uint64 * max(len(arrays), 1))(*arrays)
    out = Outputs(size=ctypes.sizeof(Outputs), arrays=arrays_out, capacity=capacity)
    lib.check(lib.c.mx_graph_run(ctypes.c_uint64(graph), given, ctypes.c_size_t(len(arrays)), ctypes.byref(out)))
    return list(arrays_out[: out.len])


def test_exported_networks_are_loaded_and_run_by_threads(shared: Library, tmp_path: Path) -> None:
    (symbol, params), x, expected = exported(tmp_path)
    graph, number = ctypes.c_uint64(), ctypes.c_size_t()
    shared.check(shared.c.mx_graph_load(symbol.encode(), params.encode(), ctypes.byref(graph)))
    shared.check(shared.c.mx_graph_num_arguments(graph, ctypes.byref(number)))
    assert number.value == 1
    given, wrong = shared.array(x), []

    def work() -> None:
        for _ in range(50):
            (result,) = run_graph(shared, graph.value, given)
            if shared.read(result).tobytes() != expected.tobytes():
                wrong.append(result)
            shared.free(result)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    shared.free(given)
    shared.free(graph.value)
    with pytest.raises(Failed, match=r"is not an object|is not valid"):
        run_graph(shared, graph.value)


class Inverse(mx.gluon.HybridBlock):
    def forward(self, x: Any) -> Any:
        return mx.np.linalg.inv(x)


def test_a_failure_that_surfaces_later_names_the_operator_that_was_called(lib: Library, tmp_path: Path) -> None:
    net = Inverse()
    net.hybridize()
    net(mx.np.eye(2))
    symbol, params = net.export(tmp_path / "net")
    graph, singular = ctypes.c_uint64(), lib.array(numpy.zeros((2, 2), "float32"))
    lib.check(lib.c.mx_graph_load(symbol.encode(), params.encode(), ctypes.byref(graph)))
    lib.check(lib.c.mx_config_set(b"engine_mode", b"async"))
    try:
        (result,) = run_graph(lib, graph.value, singular)
        for _ in range(2):
            with pytest.raises(Failed, match=r"^inv: Singular matrix") as failed:
                lib.read(result)
            assert (failed.value.status, failed.value.op) == (LINALG, "inv")
            assert failed.value.hint.startswith("called in `Inverse` at ")
        # The operator by which `inv` computes has another name.
        with pytest.raises(Failed, match=r"^inv: Singular matrix") as failed:
            lib.invoke("inv", Array(singular))
        assert failed.value.op == "inv"
    finally:
        lib.check(lib.c.mx_config_set(b"engine_mode", b"adaptive"))
    for handle in result, singular, graph.value:
        lib.free(handle)


def test_networks_for_any_size_are_run_at_any_size(shared: Library, tmp_path: Path) -> None:
    net = mx.gluon.nn.Dense(3, in_units=4)
    net.initialize(mx.init.Xavier())
    net.hybridize(dynamic=mx.InputSpec(None, 4))
    net(mx.np.ones((2, 4)))
    symbol, params = net.export(tmp_path / "net")
    graph = ctypes.c_uint64()
    shared.check(shared.c.mx_graph_load(symbol.encode(), params.encode(), ctypes.byref(graph)))
    (described,) = json.loads(shared.text("mx_graph_describe", graph))
    assert (described["shape"][1:], described["dtype"], described["dynamic_axes"]) == ([4], "float32", [0])
    for n in (1, 5, 2, 9):
        x = numpy.linspace(-1, 1, 4 * n, dtype="float32").reshape(n, 4)
        given = shared.array(x)
        (result,) = run_graph(shared, graph.value, given)
        assert shared.read(result).tobytes() == net(mx.np.array(x)).asnumpy().tobytes()
        shared.free(given)
        shared.free(result)
    other = shared.array(numpy.ones((2, 3), dtype="float32"))
    with pytest.raises(Failed, match=r"argument 0 must have shape \(any, 4\), found \(2, 3\)"):
        run_graph(shared, graph.value, other)
    shared.free(other)
    shared.free(graph.value)


def test_misuse_of_graphs_is_an_error(shared: Library, tmp_path: Path) -> None:
    (symbol, params), x, _ = exported(tmp_path)
    graph, before = ctypes.c_uint64(), shared.count()
    with pytest.raises(Failed, match="mx_graph_load: nothing"):
        shared.check(shared.c.mx_graph_load(b"nothing", params.encode(), ctypes.byref(graph)))
    with pytest.raises(Failed, match="mx_load_module: nothing"):
        shared.check(shared.c.mx_load_module(b"nothing"))
    with pytest.raises(Failed, match="symbol_file"):
        shared.check(shared.c.mx_graph_load(None, params.encode(), ctypes.byref(graph)))
    Path(tmp_path / "bad.json").write_text("{}")
    with pytest.raises(Failed, match=r"mx_graph_load: .*cannot be read"):
        shared.check(shared.c.mx_graph_load(str(tmp_path / "bad.json").encode(), params.encode(), ctypes.byref(graph)))
    shared.check(shared.c.mx_graph_load(symbol.encode(), params.encode(), ctypes.byref(graph)))
    given, other = shared.array(x), shared.array(x[..., :1])
    with pytest.raises(Failed, match="takes 1 arrays, found 2"):
        run_graph(shared, graph.value, given, other)
    with pytest.raises(Failed, match="must have shape"):
        run_graph(shared, graph.value, other)
    with pytest.raises(Failed, match="a graph is needed"):
        run_graph(shared, given, given)
    with pytest.raises(Failed, match="capacity is 0"):
        run_graph(shared, graph.value, given, capacity=0)
    for handle in (given, other, graph.value):
        shared.free(handle)
    assert shared.count() == before
