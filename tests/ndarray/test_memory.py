"""What an array shows of its memory: flags, views, its elements in a row; changes in place."""

import contextlib
import copy
import math
import pickle
import re
import sys
import weakref
from typing import Any

import numpy as onp
import pytest

import mxnet as mx
from mxnet import autograd, np


class Derived(np.ndarray):
    """A class derived from ndarray."""


FLAGS = ["c_contiguous", "f_contiguous", "contiguous", "fnc", "forc", "owndata", "writeable", "aligned", "behaved"]
# NumPy's attribute `farray` is True of arrays in no order at all; so is its key "FA".
FLAGS += ["carray", "writebackifcopy"]


@pytest.mark.parametrize(
    "look",
    [
        lambda m, x: x,
        lambda m, x: x.T,
        lambda m, x: x[:, ::2],
        lambda m, x: x[1],
        lambda m, x: x[:, :1],
        lambda m, x: x.reshape(4, 3),
        lambda m, x: m.broadcast_to(x[0], (2, 4)),
        lambda m, x: x[0:0],
        lambda m, x: x[1, 2:3],
    ],
)
def test_flags_are_numpys(look):
    theirs = look(onp, onp.zeros((3, 4), "float32"))
    ours = look(np, np.zeros((3, 4)))
    for name in FLAGS:
        assert getattr(ours.flags, name) == getattr(theirs.flags, name), name
    for name in ("C", "F", "W", "A", "X", "O", "B", "CA", "FNC", "FORC", "C_CONTIGUOUS", "WRITEABLE", "OWNDATA"):
        assert ours.flags[name] == theirs.flags[name], name
    with pytest.raises(KeyError):
        ours.flags["Q"]


def test_flags_say_and_compare():
    x = np.zeros((2, 2))
    assert "C_CONTIGUOUS : True" in str(x.flags)
    assert x.flags == np.ones((2, 2)).flags
    assert x.flags != x.T.flags


def test_arrays_can_be_locked():
    x = np.array([1.0, 2.0, 3.0])
    early = x[:2]
    x.flags.writeable = False
    assert not x.flags.writeable
    late = x[1:]
    for locked in (x, late, x.reshape(3, 1)):
        assert not locked.flags.writeable
        for write in (
            lambda a: a.__setitem__(0, 1.0),
            lambda a: a.__iadd__(1),
            lambda a: a.fill(0),
            lambda a: np.add(a, 1, out=a),
            lambda a: a.flat.__setitem__(0, 5.0),
            lambda a: a.sort(),
        ):
            with pytest.raises(ValueError, match="read-only"):
                write(locked)
    assert x.tolist() == [1, 2, 3]
    early[0] = 9
    assert x[0].item() == 9
    x.setflags(write=True)
    x[0] = 4
    assert early[0].item() == 4
    assert not onp.asarray(np.broadcast_to(x, (2, 3))).flags.writeable


def test_repeated_elements_are_written_once_they_are_unlocked():
    x = np.zeros(3)
    repeated = np.broadcast_to(x, (2, 3))
    repeated.flags.writeable = True
    repeated[0] = 5
    repeated[:, 1] = 6
    assert x.tolist() == [5, 6, 5] and repeated.tolist() == [[5, 6, 5]] * 2
    # Computed aside, so that each element is changed once.
    repeated += 1
    assert x.tolist() == [6, 7, 6]


def test_flags_have_numpys_number():
    for shape, order in (((3,), "C"), ((2, 3), "C"), ((2, 3), "F"), ((), "C")):
        theirs = onp.array(onp.ones(shape), order=order)
        ours = np.array(onp.ones(shape), order=order)
        # A new array in Fortran order is a view of what was made for it.
        assert ours.flags.num | 4 == theirs.flags.num | 4
    x = np.ones(3)
    locked = onp.ones(3)
    for write in (0, False, np.array(False)):
        x.setflags(1)
        x.setflags(write)
        locked.flags.writeable = False
        assert x.flags.num == locked.flags.num == 0x107


def test_what_cannot_be_written_stays_so():
    repeated = np.broadcast_to(np.zeros(3), (2, 3))
    assert not repeated.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        repeated[0, 0] = 1
    source = onp.ones(3, "float32")
    source.flags.writeable = False
    foreign = np.asarray(source)
    assert not foreign.flags.writeable
    with pytest.raises(ValueError, match="WRITEABLE"):
        foreign.setflags(write=True)
    with pytest.raises(ValueError, match="read-only"):
        foreign[0] = 1
    with pytest.raises(ValueError, match="write"):
        foreign.setflags(align=False)
    with pytest.raises(KeyError):
        foreign.flags["C"] = True
    repeated.copy()[0, 0] = 1


def test_base_shares_the_memory():
    x = np.arange(6.0).reshape(2, 3)
    own = np.zeros(3)
    assert own.base is None
    part = x[1, 1:]
    part.base[5] = 50
    assert x[1, 2].item() == 50
    assert np.asarray(onp.ones(2)).base is not None


VIEWS = """
x[1:]; x[1:][0]; x[...]; x[None]; x[:, ::-1].T; x.T; x.mT; x.reshape(-1); x.reshape((3, 2)); x.view();
x.ravel(); x.view('int64'); x.swapaxes(0, 1); x.transpose(1, 0); x.diagonal(); x[None].squeeze();
next(iter(x)); x.real; z.real; z.imag; np.transpose(x); np.ravel(x); np.expand_dims(x, 0);
np.squeeze(x[None]); np.moveaxis(x, 0, 1); np.flip(x); np.rot90(x); np.split(x, 2)[0];
np.array_split(x, 2, 1)[1]; np.unstack(x)[0]; np.atleast_3d(x); np.array(x, copy=None, ndmin=3);
np.diagonal(x); x.copy(); x + 0; x.flatten(); x[[0]]; x[x > 0]; x.T.ravel(); x.astype('float32'); x.T.copy();
np.array(x)
"""


@pytest.mark.parametrize("text", re.split(r";\s+", VIEWS.strip()))
def test_base_is_the_array_a_view_was_taken_from(text: str):
    def known(module: Any) -> tuple[bool, bool]:
        x = module.asarray([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], dtype="float64")
        z = module.asarray([1j, 2.0], dtype="complex128")
        y = eval(text, {"np": module, "x": x, "z": z})
        return y.base is x or y.base is z, y.flags.owndata

    assert known(np) == known(onp)


@pytest.mark.parametrize("recording", [False, True])
def test_views_of_views_have_the_first_array_for_base(recording: bool):
    x = np.arange(6.0).reshape(2, 3).copy()
    x.attach_grad()
    with autograd.record() if recording else contextlib.nullcontext():
        y = x * 2
        row = y[1]
        part = row[1:]
    assert row.base is part.base
    assert (part.base is y) or not recording
    whole = weakref.ref(y)
    del y, row
    assert whole() is not None
    del part
    assert whole() is None


def test_base_after_the_memory_was_exchanged():
    x = np.arange(4.0)
    part = x[1:]
    x.resize(8, refcheck=False)
    assert part.base is not x
    assert part.base.tolist() == [0, 1, 2, 3]


COPIES = """
x.T.cumsum(0); np.concatenate([x.T, x.T]); np.roll(x.T, 1, 0); np.pad(x.T, 1); x.copy('F'); x.T.copy('K');
np.array(x, order='F'); np.array(x.T); np.asfortranarray(x);
x.astype('f4', order='F'); np.empty((2, 3), order='F'); np.zeros((2, 3), order='F');
np.full((2, 3), 7, order='F'); np.ones_like(x.T); np.ndarray((2, 3), order='F'); np.empty_like(x, order='F')
"""


@pytest.mark.parametrize("text", re.split(r";\s+", COPIES.strip()))
def test_copies_in_another_order_own_their_memory(text: str):
    for module in (np, onp):
        y = eval(text, {"np": module, "x": module.asarray([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])})
        assert (y.base, y.flags.owndata, y.flags.f_contiguous) == (None, True, True)


def test_data_is_the_memory():
    x = np.array([1, 2, 3], dtype="int32")
    x.data[1] = 7
    assert x.tolist() == [1, 7, 3]


def test_flat_reads_and_writes_in_c_order():
    theirs = onp.arange(12, dtype="float32").reshape(3, 4)
    for look in (lambda x: x, lambda x: x.T, lambda x: x[:, ::2], lambda x: x[::-1], lambda x: x[1:1]):
        a, x = look(theirs.copy()), look(np.array(theirs))
        assert [y.item() for y in x.flat] == [y.item() for y in a.flat]
        assert len(x.flat) == len(a.flat)
        if not a.size:
            continue
        assert x.flat[-1].item() == a.flat[-1]
        assert x.flat[1:4].tolist() == a.flat[1:4].tolist()
        assert x.flat[[0, 2]].tolist() == a.flat[[0, 2]].tolist()
        x.flat[1], a.flat[1] = -1, -1
        x.flat[2:], a.flat[2:] = [7, 8], [7, 8]
        x.flat[[0, -1]], a.flat[[0, -1]] = 5, 5
        assert x.tolist() == a.tolist()
        x.flat, a.flat = [1, 2, 3], [1, 2, 3]
        assert x.tolist() == a.tolist()
        x.flat = 4
        assert (x.asnumpy() == 4).all()
        with pytest.raises(IndexError):
            x.flat[100]
        with pytest.raises(ValueError, match="no values"):
            x.flat = []
    x = np.arange(6).reshape(2, 3)
    it = x.flat
    assert it.base is x
    assert (it.index, it.coords) == (0, (0, 0))
    for _ in range(4):
        next(it)
    assert (it.index, it.coords) == (4, (1, 1))
    copied = it.copy()
    copied[0] = 9
    assert x[0, 0].item() == 0
    assert onp.asarray(x.flat).tolist() == [0, 1, 2, 3, 4, 5]


def test_shape_can_be_set_where_no_copy_is_needed():
    x = np.arange(6)
    x.shape = (2, -1)
    assert x.shape == (2, 3)
    assert x.flags.owndata
    view = x.T
    with pytest.raises(AttributeError, match="reshape"):
        view.shape = 6
    with pytest.raises(ValueError, match="6"):
        x.shape = (4, 2)
    with pytest.raises(TypeError):
        x.shape = "a"
    x.attach_grad()
    with pytest.raises(ValueError, match="variable"):
        x.shape = 6


def test_dtype_can_be_set_and_views_see_other_types():
    theirs, x = onp.arange(4, dtype="float32"), np.arange(4, dtype="float32")
    assert x.view("int32").tolist() == theirs.view("int32").tolist()
    assert x.view(onp.uint8).shape == (16,)
    assert x.view("float64").shape == (2,)
    assert x.view("bfloat16").shape == (8,)
    x.view("int32")[0] = 1065353216
    assert x[0].item() == 1.0
    assert x.view() is not x
    x.view()[1] = 8
    assert x[1].item() == 8
    y = np.zeros((2, 3))
    y.dtype = "int32"
    assert y.dtype == "int32"
    y.dtype = "int16"
    assert y.shape == (2, 6)
    for wrong in (
        lambda: np.zeros(3).view("float64"),
        lambda: np.zeros((2, 2)).T.view("int16"),
        lambda: np.zeros(()).view("int8"),
    ):
        with pytest.raises(ValueError):
            wrong()
    with pytest.raises(TypeError):
        x.view("no dtype")
    with pytest.raises(TypeError):
        x.view(type=list)
    assert type(x.view(Derived)) is Derived
    assert type(x.view(type=Derived)) is Derived
    assert type(Derived(3).view("int32")) is Derived
    assert type(Derived(3).view(np.ndarray)) is np.ndarray


def test_fill_writes_one_number():
    x = np.zeros((2, 3))
    x.fill(2)
    x[:, 1].fill(np.array([5]))
    assert x.tolist() == [[2, 5, 2], [2, 5, 2]]
    with pytest.raises(ValueError, match="one element"):
        x.fill([1, 2, 3])
    with pytest.raises(ValueError):
        x.fill("a")
    with pytest.raises(OverflowError, match="300"):
        np.zeros(2, "int8").fill(300)


def test_tobytes_has_numpys_orders():
    theirs = onp.arange(6, dtype="int16").reshape(2, 3)
    for a, x in ((theirs, np.array(theirs)), (theirs.T, np.array(theirs).T)):
        for order in ("C", "F", "A", None):
            assert x.tobytes(order) == a.tobytes(order)
    with pytest.raises(ValueError):
        x.tobytes("Q")


def test_resize_keeps_the_first_elements():
    for shape in ((2, 2), (3, 4), 5, (0,), ()):
        a, x = onp.arange(6, dtype="float32"), np.arange(6, dtype="float32")
        a.resize(shape, refcheck=False)
        x.resize(shape)
        assert x.tolist() == a.tolist()
    x = np.arange(6)
    x.resize(2, 4)
    assert x.tolist() == [[0, 1, 2, 3], [4, 5, 0, 0]]
    view = x[0]
    with pytest.raises(ValueError, match="own"):
        view.resize(2)
    with pytest.raises(ValueError, match="views"):
        x.resize(3)
    x.resize(3, refcheck=False)
    assert x.tolist() == [0, 1, 2]
    assert view.tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="negative"):
        np.zeros(3).resize(-1)


def test_copies_go_to_arrays_and_devices():
    x, y = np.array([1.0, 2.0]), np.zeros(2, "int32")
    assert x.copyto(y) is y
    assert y.tolist() == [1, 2]
    there = x.copyto(mx.cpu(1))
    assert there.device == mx.cpu(1)
    here = x.copyto(mx.cpu(0))
    here[0] = 9
    assert x[0].item() == 1
    assert x.to_device(mx.cpu(0)) is x
    assert x.to_device(mx.cpu(1)).device == mx.cpu(1)
    with pytest.raises(ValueError):
        x.copyto(np.zeros(3))


def test_rounding_of_python_is_by_element():
    x = np.array([1.25, -1.75, 2.5])
    assert round(x).tolist() == [1, -2, 2]
    assert round(x, 1).tolist() == onp.round(onp.float32([1.25, -1.75, 2.5]), 1).tolist()
    assert math.floor(x).tolist() == [1, -2, 2]
    assert math.ceil(x).tolist() == [2, -1, 3]
    assert math.trunc(x).tolist() == [1, -1, 2]


def test_methods_of_shape():
    x = np.arange(4)
    assert x.reshape_view(2, 2).tolist() == [[0, 1], [2, 3]]
    x.reshape_view((2, 2))[0, 0] = 9
    assert x[0].item() == 9
    assert x.tile(2).tolist() == [9, 1, 2, 3] * 2


def test_dlpack_capsules_share_the_memory():
    x = np.array([1.0, 2.0])
    y = mx.npx.from_dlpack(x.to_dlpack_for_write())
    y[0] = 5
    assert x[0].item() == 5
    assert mx.npx.from_dlpack(x.to_dlpack_for_read()).tolist() == [5, 2]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "bool", "complex64"])
def test_pickles_keep_class_and_dtype(dtype):
    for x in (np.array([[1, 0], [1, 1]], dtype=dtype), np.array([1, 0], dtype=dtype).view(Derived)):
        again = pickle.loads(pickle.dumps(x))
        assert type(again) is type(x)
        assert str(again.dtype) == dtype
        assert again.tolist() == x.tolist()
        again[0] = 0
        assert x.tolist() != again.tolist()
    deep = copy.deepcopy([x])[0]
    assert deep.tolist() == x.tolist()


def test_a_recorded_array_keeps_its_gradient_through_views():
    x = np.array([1.0, 2.0, 3.0])
    x.attach_grad()
    with autograd.record():
        y = (x.view() * x).sum()
    y.backward()
    assert x.grad.tolist() == [2, 4, 6]


@pytest.mark.parametrize("x", [np.ones(2), np.ones((1, 2))])
def test_arrays_have_no_hash_and_no_truth(x):
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    with pytest.raises(ValueError, match="ambiguous"):
        bool(x)


def test_parts_of_complex_numbers_can_be_set():
    x = np.zeros(3, dtype="complex64")
    x.real, x.imag = [1, 2, 3], 4
    assert x.tolist() == [1 + 4j, 2 + 4j, 3 + 4j]
    y = np.zeros(2)
    y.real = 5
    assert y.tolist() == [5, 5]
    with pytest.raises(TypeError, match="imaginary part"):
        y.imag = 1


def test_conjugate_of_real_elements_is_the_array():
    for x in (np.ones(2), np.ones(2, dtype="int8"), np.array([True])):
        assert x.conj() is x and x.conjugate() is x
    assert np.array([1j]).conj().tolist() == [-1j]
    out = np.zeros(1, dtype="complex64")
    assert np.array([2j]).conjugate(out) is out and out.tolist() == [-2j]


def test_flat_takes_the_keys_of_an_iterator():
    x = np.arange(9).reshape(3, 3)
    assert x.flat[()].tolist() == x.flat[...].tolist() == list(range(9))
    for key, match in ((None, "only integers"), ((1, 2), "2 were indexed"), ([True, False], "boolean indices")):
        with pytest.raises(IndexError, match=match):
            x.flat[key]
        with pytest.raises(IndexError, match=match):
            x.flat[key] = 1
    with pytest.raises(IndexError, match="it has 4 elements, the iterator 9"):
        x.flat[np.zeros(4, dtype="bool")]
    with pytest.raises(IndexError, match="0-D index"):
        x.flat[()] = 1
    with pytest.warns(DeprecationWarning, match="0-dimensional boolean"):
        assert x.flat[True].tolist() == [0]
    with pytest.warns(DeprecationWarning, match="Invalid non-array"):
        assert x.flat[[1.0, 2.0]].tolist() == [1, 2]
    with pytest.raises(TypeError, match="cannot delete"):
        del x.flat[0]
    with pytest.raises(ValueError, match="cannot delete"):
        del x[0]


def test_size_of_the_object_counts_elements_of_its_own():
    x = np.ones((10, 10))
    assert sys.getsizeof(x) > x.nbytes > sys.getsizeof(x[...])
    with pytest.raises(TypeError):
        x.__sizeof__(1)


def test_chosen_elements_have_memory_of_their_own():
    assert np.choose([0, 1], [[1, 2], [3, 4]]).flags.owndata
    assert np.array([0, 1]).choose([1, 2], [3, 4]).tolist() == [1, 4]
    assert np.array([0, 1]).choose([[1, 2], 3.5], mode="clip").tolist() == [1, 3.5]


def test_resize_to_as_many_elements_needs_no_memory_of_its_own():
    view = np.zeros((10, 0))[...]
    view.resize((0, 100))
    assert view.shape == (0, 100)
    x = np.eye(3)
    x.resize()
    x.resize(None)
    assert x.shape == (3, 3)
    with pytest.raises(TypeError, match="new shape must be"):
        x.resize("hi")


def test_elements_go_to_files_and_come_back(tmp_path):
    x = np.array([[1.5, 2], [3, 4]])
    x.T.tofile(tmp_path / "bytes")
    assert np.fromfile(tmp_path / "bytes", dtype=x.dtype).tolist() == [1.5, 3, 2, 4]
    x.tofile(str(tmp_path / "text"), sep=",", format="%.2f")
    assert (tmp_path / "text").read_text() == "1.50,2.00,3.00,4.00"


def test_reshape_says_whether_memory_is_shared():
    x = np.arange(6).reshape(2, 3)
    assert np.shares_memory(x.reshape(3, 2, copy=False), x)
    assert not np.shares_memory(np.reshape(x, (3, 2), copy=True), x)
    with pytest.raises(ValueError, match="Unable to avoid creating a copy"):
        np.reshape(x, (3, 2), order="F", copy=False)


def test_devices_are_known_by_name():
    assert np.ones(1).device == "cpu" and np.ones(1).device != "gpu(3)" and np.ones(1).device != "nonsense"
