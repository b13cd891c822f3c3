//! Array objects written where they stay. `Py::new` moves the array through several places on its way, and asks the base class for its
//! constructor, at every call; for a small result that is a third of the time. And most arrays do not live long: the memory of a few that are gone
//! is kept for the next ones, as Python does with its floats and tuples.

use std::alloc::Layout;
use std::ffi::c_void;
use std::mem::MaybeUninit;

use mxnet::ops::Array;
use mxnet::tensor::{DType, Device, Tensor};
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::{PyTypeInfo, ffi};

use super::PyArray;
use crate::cell::Guarded;
use crate::slot::Slot;

/// What is the same for all objects of the class.
struct Mould {
    class: *mut ffi::PyTypeObject,
    /// Bytes from the object's beginning to the array.
    at: usize,
    /// Bytes of an object.
    len: usize,
    /// Where the class says what ends an object.
    slot: Slot,
    /// What ended it before.
    usual_end: ffi::destructor,
}

// SAFETY: the class lives as long as the interpreter, and is only given back to it.
unsafe impl Send for Mould {}
// SAFETY: as above.
unsafe impl Sync for Mould {}

impl Mould {
    /// `None` if an object that `Py::new` made shows anything beside header and array that is not zero: then only `Py::new` knows how to make one.
    fn of(py: Python<'_>) -> PyResult<Option<Mould>> {
        let tensor = Tensor::empty(&[], DType::F32, Device::cpu(0));
        let tensor = tensor.map_err(|error| PyMemoryError::new_err(error.to_string()))?;
        let example = Bound::new(py, PyArray::plain(Array::from_tensor(tensor)))?;
        let class = PyArray::type_object(py);
        let len: usize = class.getattr("__basicsize__")?.extract()?;
        let start = example.as_ptr().cast::<u8>().cast_const();
        let at = std::ptr::from_ref(example.get()).addr() - start.addr();
        let own = Layout::new::<PyArray>();
        // SAFETY: the object has `len` bytes, of which these were written when it was made.
        let is_zero = |from: usize, to: usize| unsafe { is_zero(start.add(from), start.add(to)) };
        let is_simple = at >= HEADER
            && at % own.align() == 0
            && at + own.size() <= len
            && is_zero(HEADER, at)
            && is_zero(at + own.size(), len);
        let Some(slot) = Slot::find(&class, ffi::Py_tp_dealloc)? else {
            return Ok(None);
        };
        let class = class.as_type_ptr();
        // SAFETY: 1. this only looks at the class. 2. the slot holds such a function.
        let (is_collected, usual_end) = unsafe {
            let end = std::mem::transmute::<*mut c_void, ffi::destructor>(slot.usual);
            (ffi::PyType_IS_GC(class) != 0, end)
        };
        if !is_simple || !is_collected {
            return Ok(None);
        }
        Ok(Some(Mould {
            class,
            at,
            len,
            slot,
            usual_end,
        }))
    }

    /// An object of which all but the array is written.
    #[cold]
    #[inline(never)]
    fn blank(&self, py: Python<'_>) -> PyResult<*mut ffi::PyObject> {
        // SAFETY: 1. The class is one of collected objects: this makes an untracked one with its header written, or returns null with an exception
        // set. 2. All else beside the header is to be zero (`Mould::of` has seen that).
        unsafe {
            let object = ffi::PyObject_GC_New::<ffi::PyObject>(self.class);
            if object.is_null() {
                return Err(PyErr::fetch(py));
            }
            let start = object.cast::<u8>();
            let end = self.at + size_of::<PyArray>();
            zero(start.add(HEADER), self.at - HEADER);
            zero(start.add(end), self.len - end);
            Ok(object)
        }
    }

    /// Keeps the memory of an object for the next one, or gives it back.
    ///
    /// # Safety
    /// Nobody else refers to the object, in which there is no array any more.
    #[inline]
    unsafe fn keep(&self, py: Python<'_>, object: *mut ffi::PyObject) {
        if !KEPT.change(py, |kept| kept.push(object)) {
            // SAFETY: it was made by `blank`; every object of the class refers to it.
            unsafe {
                ffi::PyObject_GC_Del(object.cast());
                ffi::Py_DECREF(self.class.cast());
            }
        }
    }
}

/// Memory of objects that are gone, each with its header: it still refers to the class.
struct Kept {
    objects: [*mut ffi::PyObject; Kept::MOST],
    len: usize,
}

impl Kept {
    /// So many results of one expression or of a row of calls are on their way at once; some 16 KiB.
    const MOST: usize = 64;
}

// SAFETY: the memory belongs to nobody else, and may be used and freed by any thread.
unsafe impl Send for Kept {}

static KEPT: Guarded<Kept> = Guarded::new(Kept {
    objects: [std::ptr::null_mut(); Kept::MOST],
    len: 0,
});

impl Kept {
    /// Memory of one object, with its header; `None` if there is none.
    #[inline]
    fn pop(&mut self) -> Option<*mut ffi::PyObject> {
        self.len = self.len.checked_sub(1)?;
        Some(self.objects[self.len])
    }

    /// Keeps the memory of an object; whether there was room.
    #[inline]
    fn push(&mut self, object: *mut ffi::PyObject) -> bool {
        let Some(place) = self.objects.get_mut(self.len) else {
            return false;
        };
        *place = object;
        self.len += 1;
        true
    }
}

static MOULD: PyOnceLock<Option<Mould>> = PyOnceLock::new();

/// Ends an object of the class, or of one derived from it. Of those that were placed, and hold nothing whose end may need more of Python than to
/// count references down, the memory is kept.
unsafe extern "C" fn end(object: *mut ffi::PyObject) {
    // SAFETY: Python ends objects while it holds the lock.
    let py = unsafe { Python::assume_attached() };
    let Some(mould) = MOULD.get(py).and_then(Option::as_ref) else {
        unreachable!("objects end here once there is a mould");
    };
    // SAFETY: 1. An object of exactly this class has the array at `at` and nothing but words beyond it: the list of weak references. 2. Nobody
    // refers to it any longer. 3. After that the array is gone, and only the header is of any worth, which is as it was when Python had made it
    // but for the count.
    unsafe {
        let start = object.cast::<u8>();
        let array = start.add(mould.at).cast::<PyArray>();
        if std::ptr::eq(ffi::Py_TYPE(object), mould.class)
            && (*array).is_placed
            && is_zero(
                start.add(mould.at + size_of::<PyArray>()),
                start.add(mould.len),
            )
            && (*array).ends_alone(py)
        {
            let base = (&raw mut (*array).base).replace(None);
            std::ptr::drop_in_place(array);
            if let Some(base) = base {
                ffi::Py_DECREF(base.into_ptr());
            }
            ffi::Py_INCREF(object);
            mould.keep(py, object);
        } else {
            (mould.usual_end)(object);
        }
    }
}

/// Whether all bytes from `from` up to `to` are zero.
///
/// # Safety
/// They are valid for reading.
#[inline]
unsafe fn is_zero(from: *const u8, to: *const u8) -> bool {
    let len = to.addr() - from.addr();
    // SAFETY: the caller's promise.
    (0..len).step_by(8).all(|at| unsafe {
        match len - at {
            8.. => from.add(at).cast::<u64>().read_unaligned() == 0,
            rest => (at..at + rest).all(|at| from.add(at).read() == 0),
        }
    })
}

/// Sets a few bytes to zero: a word or two, for which a call of the C library's function is too much.
///
/// # Safety
/// `to` is valid for writing `len` bytes.
#[inline]
unsafe fn zero(to: *mut u8, len: usize) {
    for at in (0..len).step_by(8) {
        // SAFETY: the caller's promise.
        unsafe {
            match len - at {
                8.. => to.add(at).cast::<u64>().write_unaligned(0),
                rest => to.add(at).write_bytes(0, rest),
            }
        }
    }
}

/// Bytes at the beginning of every object.
const HEADER: usize = size_of::<ffi::PyObject>();

/// A new object around what `make` makes. The garbage collector need not look at it: what arrays refer to is no container.
#[inline]
pub(super) fn place(py: Python<'_>, make: impl FnOnce() -> PyArray) -> PyResult<Py<PyArray>> {
    let write = |to: *mut PyArray| {
        // SAFETY: the place is one for an array.
        unsafe { to.write(make()) };
        true
    };
    // SAFETY: the place is written.
    let made = unsafe { place_if(py, write) }?;
    Ok(made.expect("it is always written"))
}

/// A new object around what `write` writes to its place, if it does and says yes. The object is allocated before: that may collect garbage, and so
/// run any Python code. `write` itself runs none.
///
/// # Safety
/// `write` has initialised the place that it is given if it answers yes, but for `is_placed`, and does not panic before.
#[inline]
pub(super) unsafe fn place_if(
    py: Python<'_>,
    write: impl FnOnce(*mut PyArray) -> bool,
) -> PyResult<Option<Py<PyArray>>> {
    let mould = match MOULD.get(py) {
        Some(mould) => mould,
        None => first_mould(py)?,
    };
    let Some(mould) = mould else {
        let mut room = MaybeUninit::<PyArray>::uninit();
        if !write(room.as_mut_ptr()) {
            return Ok(None);
        }
        // SAFETY: as above; it belongs to an object that PyO3 makes.
        let array = unsafe {
            (&raw mut (*room.as_mut_ptr()).is_placed).write(false);
            room.assume_init()
        };
        return Py::new(py, array).map(Some);
    };
    let object = match KEPT.change(py, Kept::pop) {
        Some(object) => object,
        None => mould.blank(py)?,
    };
    // SAFETY: 1. An object with its header written and zeros around the array, referred to once, by us: one whose memory was kept had no weak
    // references. 2. There is room for the array at `at`, aligned.
    unsafe {
        let array = object.cast::<u8>().add(mould.at).cast::<PyArray>();
        if !write(array) {
            mould.keep(py, object);
            return Ok(None);
        }
        (&raw mut (*array).is_placed).write(true);
        let object = Bound::from_owned_ptr(py, object).cast_into_unchecked::<PyArray>();
        Ok(Some(object.unbind()))
    }
}

/// The mould, where there was none yet.
#[cold]
#[inline(never)]
fn first_mould(py: Python<'_>) -> PyResult<&Option<Mould>> {
    let mould = MOULD.get_or_try_init(py, || Mould::of(py))?;
    if let Some(mould) = mould {
        // SAFETY: it has the form of the slot.
        unsafe { mould.slot.put(end as *mut c_void) };
    }
    Ok(mould)
}
