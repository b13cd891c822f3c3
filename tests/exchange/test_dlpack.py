"""DLPack both ways: with NumPy, and with structures made by hand to watch their deleters."""

import ctypes
import gc
import weakref

import numpy as onp
import pytest

import mxnet as mx
from mxnet import _core, autograd, np

DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


class Legacy:
    """Offers the unversioned protocol only."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def host(values, dtype):
    return onp.array(values).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wrap", [lambda a: a, Legacy], ids=["versioned", "legacy"])
def test_imports_share_memory_for_every_dtype(dtype, wrap):
    source = host([[0, 1, 2], [3, 4, 5]], dtype)
    x = np.from_dlpack(wrap(source))
    assert (x.dtype, x.shape, x.tolist()) == (source.dtype, (2, 3), source.tolist())
    source[1, 1] = 0
    assert x[1, 1].item() == 0
    if wrap is Legacy:
        # The unversioned structure cannot say whether it may be written, and its owner may be immutable.
        with pytest.raises(ValueError, match="read-only"):
            x[0, 2] = 1
    else:
        x[0, 2] = 1
        assert source[0, 2] == 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wrap", [lambda a: a, Legacy], ids=["versioned", "legacy"])
def test_exports_share_memory_for_every_dtype(dtype, wrap):
    x = np.array(host([[0, 1, 2], [3, 4, 5]], dtype))
    seen = onp.from_dlpack(wrap(x))
    assert (seen.dtype, seen.tolist()) == (x.dtype, x.tolist())
    x[0, 1] = 0
    assert seen[0, 1] == 0
    assert x.__dlpack_device__() == (1, 0)


def test_exports_see_every_later_write():
    x = np.zeros((1_000_000,))
    seen = onp.from_dlpack(x)
    with mx.engine.mode("async"):
        for i in range(5):
            x += 1
            assert seen[-1] == i + 1
            y = x * 2
            seen[:] = 0
            # The product was pushed before the foreign write, so it must not see it.
            assert y[-1].item() == 2 * (i + 1)
            seen[:] = i + 1


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a.T,
        lambda a: a[::2, ::-1],
        lambda a: a[1:2, 3:1:-1],
        lambda a: a[:, 1],
        lambda a: a[2, 3],
        lambda a: a[:0],
        lambda a: a[:, :0],
        lambda a: a[None, :, None],
    ],
)
def test_strides_offsets_points_and_empty_arrays_go_both_ways(view):
    base = onp.arange(12.0).reshape(3, 4)
    source = onp.asarray(view(base))
    x = np.from_dlpack(source)
    assert (x.shape, x.tolist()) == (source.shape, source.tolist())
    if source.size > 1:
        assert x.strides == source.strides
    ours = view(np.array(base))
    back = onp.from_dlpack(ours)
    assert (back.shape, back.tolist()) == (source.shape, source.tolist())


def test_broadcast_arrays_are_imported_with_stride_0():
    source = onp.broadcast_to(onp.arange(3.0), (4, 3))
    x = np.from_dlpack(source)
    assert x.tolist() == source.tolist()
    assert x.sum().item() == 12


def test_read_only_arrays_are_imported_and_not_written():
    source = onp.arange(3.0)
    source.flags.writeable = False
    x = np.from_dlpack(source)
    for write in (lambda: x.__setitem__(0, 1.0), lambda: x.__iadd__(1), lambda: np.add(x, 1.0, out=x)):
        with pytest.raises(ValueError, match="read-only"):
            write()
    assert source.tolist() == [0, 1, 2]
    seen = onp.from_dlpack(x)
    assert not seen.flags.writeable
    # The unversioned protocol cannot say that an array is read-only.
    with pytest.raises(BufferError):
        x.__dlpack__()


def test_copies_are_made_when_asked_for():
    x = np.zeros((3,))
    assert onp.from_dlpack(x, copy=True).tolist() == [0, 0, 0]
    copied = onp.from_dlpack(x, copy=True)
    copied[0] = 5
    assert x.tolist() == [0, 0, 0]
    source = onp.zeros(3)
    ours = np.from_dlpack(source, copy=True)
    ours[0] = 5
    assert source.tolist() == [0, 0, 0]
    shared = np.from_dlpack(source, copy=False)
    shared[0] = 5
    assert source.tolist() == [5, 0, 0]


def test_memory_lives_as_long_as_somebody_sees_it():
    class Watched(onp.ndarray):
        pass

    source = onp.arange(1000.0).view(Watched)
    gone = weakref.ref(source)
    x = np.from_dlpack(source)
    part = x[10:20]
    del source, x
    gc.collect()
    assert gone() is not None
    assert part.tolist() == list(range(10, 20))
    del part
    gc.collect()
    assert gone() is None

    seen = onp.from_dlpack(np.arange(1000.0) * 2)
    trash = [np.zeros((1000,)) for _ in range(20)]
    assert seen[999] == 1998
    del trash


def test_capsules_are_used_once_and_may_be_dropped_unused():
    x = np.arange(4.0)
    for version in (None, (1, 0)):
        capsule = x.__dlpack__(max_version=version)
        assert np.from_dlpack(capsule).tolist() == [0, 1, 2, 3]
        with pytest.raises(TypeError, match="unused"):
            np.from_dlpack(capsule)
        x.__dlpack__(max_version=version)
    with pytest.raises(TypeError, match="__dlpack__"):
        np.from_dlpack([1.0])


def test_other_devices_streams_and_recorded_arrays_are_refused():
    x = np.ones((2,))
    with pytest.raises(BufferError, match=r"\(1, 0\)[\s\S]*\(2, 0\)"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(ValueError, match="stream"):
        x.__dlpack__(stream=1)
    x.attach_grad()
    with autograd.record():
        y = x * 2
        with pytest.raises(BufferError, match="detach"):
            onp.from_dlpack(y)
        assert onp.from_dlpack(y.detach()).tolist() == [2, 2]


# ---- structures made by hand ----


class Tensor(ctypes.Structure):
    pass


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
Tensor._fields_ = [
    ("data", ctypes.c_void_p),
    ("device_type", ctypes.c_int32),
    ("device_id", ctypes.c_int32),
    ("ndim", ctypes.c_int32),
    ("code", ctypes.c_uint8),
    ("bits", ctypes.c_uint8),
    ("lanes", ctypes.c_uint16),
    ("shape", ctypes.c_void_p),
    ("strides", ctypes.c_void_p),
    ("byte_offset", ctypes.c_uint64),
    ("manager", ctypes.c_void_p),
    ("deleter", DELETER),
]


class Made:
    """An unversioned structure around bytes of our own; counts how often its deleter runs."""

    def __init__(self, values, *, shape=None, strides=None, code=2, bits=32, lanes=1, device=1, byte_offset=0):
        self.values = onp.array(values, "float32")
        self.deleted = 0
        shape = self.values.shape if shape is None else shape
        self.shape = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        self.strides = (ctypes.c_int64 * len(strides))(*strides) if strides else None
        self.deleter = DELETER(self._delete)
        self.tensor = Tensor(
            self.values.ctypes.data,
            device,
            0,
            len(shape),
            code,
            bits,
            lanes,
            ctypes.addressof(self.shape),
            ctypes.addressof(self.strides) if strides else None,
            byte_offset,
            None,
            self.deleter,
        )
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        self.capsule = new(ctypes.addressof(self.tensor), b"dltensor", None)

    def _delete(self, _):
        self.deleted += 1


def test_deleters_run_once_when_the_last_view_is_gone():
    made = Made([[1, 2, 3], [4, 5, 6]])
    x = np.from_dlpack(made.capsule)
    view = x.T[1:]
    del x
    gc.collect()
    assert made.deleted == 0
    assert view.tolist() == [[2, 5], [3, 6]]
    del view
    gc.collect()
    assert made.deleted == 1


def test_deleters_run_when_the_last_owner_is_a_queued_operation():
    made = Made(onp.ones(1_000_000))
    with mx.engine.mode("async"):
        y = np.from_dlpack(made.capsule) * 2
        gc.collect()
        assert y.sum().item() == 2_000_000
    mx.waitall()
    del y
    gc.collect()
    assert made.deleted == 1


def test_missing_strides_and_byte_offsets_are_understood():
    assert np.from_dlpack(Made([[1, 2], [3, 4]]).capsule).tolist() == [[1, 2], [3, 4]]
    keep = Made([1, 2, 3, 4], shape=(2,), strides=(2,), byte_offset=4)
    assert np.from_dlpack(keep.capsule).tolist() == [2, 4]
    keep = Made([9], shape=())
    assert np.from_dlpack(keep.capsule).item() == 9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bits": 24}, "24"),
        ({"code": 77}, "77"),
        ({"lanes": 4}, "4"),
        ({"device": 2}, "gpu|cuda|device"),
        ({"shape": (-1,)}, "-1"),
        ({"byte_offset": 2}, "2|align"),
    ],
)
def test_structures_that_make_no_sense_are_refused_and_left_to_their_owner(options, message):
    made = Made([1, 2, 3, 4], **options)
    with pytest.raises((mx.error.MXNetError, BufferError), match=message):
        np.from_dlpack(made.capsule)
    assert made.deleted == 0
    assert _core.array([1.0]).item() == 1


def test_function_forms_share_the_memory_and_copy_when_asked():
    host = onp.arange(4.0)
    shared = mx.npx.from_numpy(host)
    copied = mx.npx.from_numpy(host, zero_copy=False)
    host[0] = 7.0
    assert shared[0].item() == 7.0
    assert copied[0].item() == 0.0
    data = mx.np.zeros(3)
    other = mx.npx.from_dlpack(mx.npx.to_dlpack_for_write(data))
    other += 2
    onp.testing.assert_array_equal(data.asnumpy(), [2, 2, 2])
    onp.testing.assert_array_equal(mx.npx.from_dlpack(mx.npx.to_dlpack_for_read(data)).asnumpy(), [2, 2, 2])


def test_function_forms_refuse_what_is_no_array():
    with pytest.raises(TypeError, match="argument `ndarray` must be a NumPy array, not 'list'"):
        mx.npx.from_numpy([1, 2])
    with pytest.raises(TypeError, match="argument `data` must be an array, not 'int'"):
        mx.npx.to_dlpack_for_read(3)
    with pytest.raises(TypeError, match="array_cls"):
        mx.dlpack.ndarray_from_dlpack(onp.ndarray)


def test_factories_give_the_functions():
    host = onp.ones(2, "float32")
    assert mx.dlpack.ndarray_from_dlpack(mx.np.ndarray)(host).shape == (2,)
    from_numpy = mx.dlpack.ndarray_from_numpy(mx.np.ndarray, mx.np.array)
    assert not onp.shares_memory(from_numpy(host, zero_copy=False).asnumpy(), host)
    assert from_numpy(host).dtype == onp.float32
    capsule = mx.dlpack.ndarray_to_dlpack_for_write()(mx.np.ones(2))
    assert mx.np.from_dlpack(capsule).shape == (2,)
    assert mx.np.from_dlpack(mx.dlpack.ndarray_to_dlpack_for_read()(mx.np.ones(2))).shape == (2,)


# ---- other libraries, where they are installed ----


def modules_dtype(module, dtype):
    return getattr(module, {"bool": "bool" if module.__name__ == "torch" else "bool_"}.get(dtype, dtype))


@pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16"])
def test_torch_tensors_share_memory_both_ways(dtype):
    torch = pytest.importorskip("torch")
    theirs = torch.arange(6).reshape(2, 3).to(modules_dtype(torch, dtype))
    x = np.from_dlpack(theirs)
    assert (str(x.dtype), x.shape) == (dtype, (2, 3))
    x[1, 2] = 0
    assert theirs[1, 2].item() == 0
    back = torch.from_dlpack(x)
    assert (back.dtype, back.data_ptr()) == (theirs.dtype, theirs.data_ptr())
    back[0, 0] = 1
    assert x[0, 0].item() == 1


def test_torch_takes_any_strides_and_refuses_what_needs_a_gradient():
    torch = pytest.importorskip("torch")
    x = np.arange(12, dtype="float32").reshape(3, 4).T[::2]
    theirs = torch.from_dlpack(x)
    assert theirs.stride() == (2, 4)
    assert theirs.tolist() == x.tolist()
    assert np.from_dlpack(theirs[:, ::2]).tolist() == x[:, ::2].tolist()
    with pytest.raises(BufferError, match="detach"):
        np.from_dlpack(torch.ones(2, requires_grad=True))


@pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16"])
def test_jax_arrays_go_both_ways(dtype):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    theirs = jax.numpy.arange(6).reshape(2, 3).astype(modules_dtype(jax.numpy, dtype))
    x = np.from_dlpack(theirs)
    assert (str(x.dtype), x.shape) == (dtype, (2, 3))
    assert x.astype("complex128").tolist() == onp.asarray(theirs).astype("complex128").tolist()
    back = jax.numpy.from_dlpack(np.from_dlpack(theirs, copy=True))
    assert back.dtype == theirs.dtype
    assert (back == theirs).all()


def test_jax_arrays_stay_immutable():
    jax = pytest.importorskip("jax")
    theirs = jax.numpy.ones(3)
    x = np.from_dlpack(theirs)
    with pytest.raises(ValueError, match="read-only"):
        x += 1
    assert theirs.tolist() == [1, 1, 1]


def test_jax_says_which_strides_it_does_not_take():
    jax = pytest.importorskip("jax")
    x = np.arange(12, dtype="float32").reshape(3, 4)
    assert jax.numpy.from_dlpack(x.T).tolist() == x.T.tolist()
    with pytest.raises(Exception, match="compact"):
        jax.numpy.from_dlpack(x[:, ::2])
    assert jax.numpy.from_dlpack(x[:, ::2].copy()).tolist() == x[:, ::2].tolist()
