//! Array objects as the library uses them: creation, access to the array, in-place writes.

use std::mem::MaybeUninit;

use mxnet::core::mode::Flags;
use mxnet::core::{Array, OpDef, Outputs, ZeroDimResult, autograd};
use mxnet::ops::InlineScalar;
use mxnet::tensor::{DType, Layout, Source};
use pyo3::PyTypeInfo;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt};

use super::class::{new_object, new_object_if};
use super::{ArrayOrScalar, PyArray};
use crate::error::raise;
use crate::gil_cell::{GilCell, Ref};
use crate::typed::Get;

impl PyArray {
    /// The content of an object for an array that is neither a view nor a scalar.
    #[inline]
    pub(super) fn of(array: Array) -> PyArray {
        PyArray {
            held: GilCell::new(ArrayOrScalar::Array(array)),
            base: None,
            is_linked: false,
            is_scalar: false,
        }
    }

    /// A new Python object for an array.
    #[inline]
    pub fn wrap(py: Python<'_>, array: Array) -> PyResult<Py<PyArray>> {
        new_object(py, || PyArray::of(array))
    }

    /// A new Python object for a result; a 0-d one stands for a NumPy scalar.
    #[inline]
    pub fn wrap_result(py: Python<'_>, array: Array) -> PyResult<Py<PyArray>> {
        new_object(py, || PyArray {
            is_scalar: array.ndim() == 0,
            ..PyArray::of(array)
        })
    }

    /// A new Python object for the element that `make` constructs in place; `None` if `make` returns false. It stands for a NumPy scalar. The object
    /// is allocated before `make` is called, and `make` runs no Python code.
    ///
    /// # Safety
    /// `make` initialises its argument if it returns true.
    #[inline]
    pub unsafe fn element_by(
        py: Python<'_>,
        make: impl FnOnce(&mut MaybeUninit<InlineScalar>) -> bool,
    ) -> PyResult<Option<Py<PyArray>>> {
        let write = |to: *mut PyArray| {
            // SAFETY: the memory is that of an array object; all fields are written if `make` returns true.
            unsafe {
                (&raw mut (*to).base).write(None);
                (&raw mut (*to).is_linked).write(false);
                (&raw mut (*to).is_scalar).write(true);
                ArrayOrScalar::write_inline_scalar(GilCell::inside(&raw mut (*to).held), make)
            }
        };
        // SAFETY: as above.
        unsafe { new_object_if(py, write) }
    }

    /// A new Python object for the array that `make` constructs in place; `None` if `make` returns false. A 0-d array stands for a NumPy scalar if
    /// `is_result`. The object is allocated before `make` is called, and `make` runs no Python code.
    ///
    /// # Safety
    /// `make` initialises its argument if it returns true.
    #[inline]
    pub unsafe fn made_by(
        py: Python<'_>,
        is_result: bool,
        make: impl FnOnce(&mut MaybeUninit<Array>) -> mxnet::core::Result<bool>,
    ) -> PyResult<Option<Py<PyArray>>> {
        let mut problem = None;
        let write = |to: *mut PyArray| {
            let mut is_scalar = false;
            let array = |to: *mut Array| {
                // SAFETY: memory for an array, accessed as `MaybeUninit`; it is read only if `make` initialised it.
                unsafe {
                    let to = &mut *to.cast::<MaybeUninit<Array>>();
                    let is_made = make(to).unwrap_or_else(|error| {
                        problem = Some(error);
                        false
                    });
                    is_scalar = is_result && is_made && to.assume_init_ref().ndim() == 0;
                    is_made
                }
            };
            // SAFETY: the memory is that of an array object; it is initialised if the array is.
            unsafe {
                let is_made = PyArray::write_array(to, array, || None);
                (&raw mut (*to).is_scalar).write(is_scalar);
                is_made
            }
        };
        // SAFETY: as above.
        let made = unsafe { new_object_if(py, write) }?;
        match problem {
            None => Ok(made),
            Some(error) => Err(raise(py, error)),
        }
    }

    /// A new Python object for the only output of an operator. The array is moved directly into it, because moving an `Array` is expensive.
    ///
    /// # Panics
    /// If there is no output.
    #[inline]
    pub fn wrap_output(py: Python<'_>, op: &OpDef, outputs: &mut Outputs) -> PyResult<Py<PyArray>> {
        let is_scalar = op.zero_dim == ZeroDimResult::Scalar && outputs[0].ndim() == 0;
        let write = |to: *mut PyArray| {
            let array = |to: *mut Array| match outputs.pop() {
                Some(y) => {
                    // SAFETY: the place is one for an array.
                    unsafe { to.write(y) };
                    true
                }
                None => false,
            };
            // SAFETY: the memory is that of an array object; it is initialised if the array is.
            unsafe {
                let is_written = PyArray::write_array(to, array, || None);
                (&raw mut (*to).is_scalar).write(is_scalar);
                is_written
            }
        };
        // SAFETY: as above.
        let made = unsafe { new_object_if(py, write) }?;
        Ok(made.expect("there is an output"))
    }

    /// A new Python object for the result of an operator.
    #[inline]
    pub fn wrap_made(py: Python<'_>, op: &OpDef, array: Array) -> PyResult<Py<PyArray>> {
        match op.zero_dim {
            ZeroDimResult::Scalar => PyArray::wrap_result(py, array),
            ZeroDimResult::Array | ZeroDimResult::AsOperand => PyArray::wrap(py, array),
        }
    }

    /// A new Python object for the result of an operator whose first argument is `first`.
    #[inline]
    pub fn wrap_made_of(
        py: Python<'_>,
        op: &OpDef,
        array: Array,
        first: Option<&Bound<'_, PyArray>>,
    ) -> PyResult<Py<PyArray>> {
        match op.zero_dim {
            ZeroDimResult::AsOperand if first.is_some_and(|x| x.get().is_scalar) => {
                PyArray::wrap_result(py, array)
            }
            _ => PyArray::wrap_made(py, op, array),
        }
    }

    /// A new Python object for the result of an operator on `source`. If it is a view, `source` becomes its base.
    #[inline]
    pub fn wrap_of(
        py: Python<'_>,
        array: Array,
        source: &Bound<'_, PyArray>,
    ) -> PyResult<Py<PyArray>> {
        match shares(&array, &source.get().borrow(py)) {
            true => PyArray::wrap_view(py, array, source),
            false => PyArray::wrap(py, array),
        }
    }

    /// A new Python object for a view of `source`, which becomes its base.
    #[inline]
    pub fn wrap_view(
        py: Python<'_>,
        array: Array,
        source: &Bound<'_, PyArray>,
    ) -> PyResult<Py<PyArray>> {
        let flags = Flags::current();
        let is_linked = flags.is_recording();
        let of = source.get();
        // A 0-d view of a scalar is a scalar; an array made from a scalar shares no memory with it.
        let is_scalar = of.is_scalar && array.ndim() == 0;
        if of.is_scalar && !is_scalar && flags.is_unobserved() && !array.is_weak() {
            let copy = array.copy().map_err(|error| raise(py, error))?;
            return PyArray::wrap(py, copy);
        }
        // A view that is not recorded must not keep the recorded graph of its source alive.
        if !is_linked && of.borrow_as_is(py).entry().is_some() {
            return match is_scalar {
                true => PyArray::wrap_result(py, array),
                false => PyArray::wrap(py, array),
            };
        }
        let base = match &of.base {
            Some(base) => base.clone_ref(py),
            None => source.clone().unbind(),
        };
        new_object(py, || PyArray {
            base: Some(base),
            is_linked,
            is_scalar,
            ..PyArray::of(array)
        })
    }

    /// A new Python object for the view of `source` with this layout, while nothing is recorded; as [`PyArray::wrap_view`].
    #[inline]
    pub fn view_with_layout(
        py: Python<'_>,
        layout: &Layout,
        source: &Bound<'_, PyArray>,
    ) -> PyResult<Py<PyArray>> {
        let of = source.get();
        if of.is_scalar {
            let view = Array::from_tensor(of.borrow_as_is(py).tensor().with_layout(layout.clone()));
            return PyArray::wrap_view(py, view, source);
        }
        PyArray::view_of_parts(py, layout, None, false, source)
    }

    /// As [`PyArray::view_with_layout`], for a source that is not a scalar. If `part` is given, the view is of the parts (real, imaginary) of its elements; it
    /// may be read-only.
    #[inline]
    pub fn view_of_parts(
        py: Python<'_>,
        layout: &Layout,
        part: Option<DType>,
        locks: bool,
        source: &Bound<'_, PyArray>,
    ) -> PyResult<Py<PyArray>> {
        let of = source.get();
        // Taken before the object is allocated: allocation may run the garbage collector, and thereby Python code that changes the array.
        let (parts, base) = {
            let x = of.borrow_as_is(py);
            let base = of.base_of_views(&x, source);
            (x.tensor().source(part.unwrap_or(x.dtype()), locks), base)
        };
        PyArray::written(py, parts, layout, base)
    }

    /// A new Python object for the view of a source with this layout, if the array object of the source is not known.
    #[inline]
    pub fn of_source(py: Python<'_>, source: Source, layout: &Layout) -> PyResult<Py<PyArray>> {
        PyArray::written(py, source, layout, None)
    }

    /// A new Python object for a view that lies inside its source.
    #[inline]
    fn written(
        py: Python<'_>,
        parts: Source,
        layout: &Layout,
        base: Option<Py<PyArray>>,
    ) -> PyResult<Py<PyArray>> {
        let copy = |to: &mut MaybeUninit<Layout>| {
            layout.copy_to(to);
            true
        };
        // SAFETY: 1. the memory is that of an array object, and the layout was taken from that of `parts`. 2. it is initialised if the array is.
        let made = unsafe {
            new_object_if(py, |to| {
                PyArray::write_array(to, |to| Array::write_view(parts, copy, to), || base)
            })
        }?;
        Ok(made.expect("it is always written"))
    }

    /// A new Python object for a view of `source`, which is not a scalar, while nothing is recorded. `layout` constructs the view's layout in place
    /// from the source's; `None` if it returns false. If `part` is given, the view is of the parts of the elements that have that dtype. The object
    /// is allocated
    /// before `layout` is called, and `layout` runs no Python code.
    ///
    /// # Safety
    /// If `layout` returns true, it has initialised its argument with a layout that lies within the source's.
    #[inline]
    pub unsafe fn view_by(
        source: &Bound<'_, PyArray>,
        part: Option<DType>,
        layout: impl FnOnce(&Layout, &mut MaybeUninit<Layout>) -> bool,
    ) -> PyResult<Option<Py<PyArray>>> {
        let (py, of) = (source.py(), source.get());
        // If a recorded write made this view stale, `borrow` takes it again first.
        of.borrow(py).end();
        let write = |to: *mut PyArray| {
            let x = of.borrow_as_is(py);
            let parts = x.tensor().source(part.unwrap_or(x.dtype()), false);
            let layout = |to: &mut MaybeUninit<Layout>| layout(x.layout(), to);
            // SAFETY: the memory is that of an array; the rest is the caller's promise.
            unsafe {
                let array = |to: *mut Array| Array::write_view(parts, layout, to);
                PyArray::write_array(to, array, || of.base_of_views(&x, source))
            }
        };
        // SAFETY: `write` initialises its argument if it returns true.
        unsafe { new_object_if(py, write) }
    }

    /// The base for views of this array; `None` if the array is recorded. `x` is its array.
    #[inline]
    fn base_of_views(&self, x: &Array, slf: &Bound<'_, PyArray>) -> Option<Py<PyArray>> {
        match (&self.base, x.entry()) {
            (_, Some(_)) => None,
            (Some(base), None) => Some(base.clone_ref(slf.py())),
            (None, None) => Some(slf.clone().unbind()),
        }
    }

    /// Constructs the content of an object that is not a scalar; `array` constructs its array in place. Returns what `array` returned.
    ///
    /// # Safety
    /// `to` is valid for writes; `array` initialises its argument if it returns true.
    #[inline]
    unsafe fn write_array(
        to: *mut PyArray,
        array: impl FnOnce(*mut Array) -> bool,
        base: impl FnOnce() -> Option<Py<PyArray>>,
    ) -> bool {
        // SAFETY: the caller's promise; all fields are written.
        unsafe {
            if !ArrayOrScalar::write_array(GilCell::inside(&raw mut (*to).held), array) {
                return false;
            }
            (&raw mut (*to).base).write(base());
            (&raw mut (*to).is_linked).write(false);
            (&raw mut (*to).is_scalar).write(false);
        }
        true
    }

    /// Whether dropping the content runs no Python code: nothing is recorded, and the memory is not foreign.
    #[inline]
    pub(super) fn drops_without_python(&self, py: Python<'_>) -> bool {
        self.held
            .borrow_part(py, |held| held)
            .drops_without_python()
    }

    /// Whether the array stands for a NumPy scalar.
    pub fn is_scalar(&self) -> bool {
        self.is_scalar
    }

    /// Whether in-place operators write to the array: always, unless it stands for a scalar and is not a variable.
    #[inline]
    pub fn is_written_in_place(&self, py: Python<'_>) -> bool {
        !self.is_scalar
            || self.inline_scalar(py).is_none()
                && (self.borrow_as_is(py).entry()).is_some_and(|(node, _)| node.is_variable())
    }

    /// The array this one is a view of, if they still share memory.
    pub fn viewed(&self, py: Python<'_>) -> Option<Py<PyArray>> {
        let base = self.base.as_ref()?;
        shares(&base.get().borrow(py), &self.borrow(py)).then(|| base.clone_ref(py))
    }

    /// The base of a recorded view: writes to the view are recorded for it, too.
    #[inline]
    fn linked(&self) -> Option<&Py<PyArray>> {
        self.base.as_ref().filter(|_| self.is_linked)
    }

    /// The array; a cheap copy that shares the elements.
    pub fn array(&self, py: Python<'_>) -> Array {
        self.borrow(py).clone()
    }

    /// Calls `read` with a reference to the array; no Python code may run in `read`.
    #[inline]
    pub fn with<R>(&self, py: Python<'_>, read: impl FnOnce(&Array) -> R) -> R {
        read(&self.borrow(py))
    }

    /// A reference to the array; no Python code may run while it lives.
    #[inline]
    pub fn borrow<'a>(&'a self, py: Python<'a>) -> Ref<'a, Array> {
        if self.is_linked {
            self.retake_stale_view(py);
        }
        self.borrow_as_is(py)
    }

    /// The array, without retaking a stale view.
    #[inline]
    fn borrow_as_is<'a>(&'a self, py: Python<'a>) -> Ref<'a, Array> {
        if self.inline_scalar(py).is_some() {
            self.materialise(py);
        }
        self.held.borrow_part(py, |held| match held {
            ArrayOrScalar::Array(array) => array,
            ArrayOrScalar::InlineScalar(_) => {
                unreachable!("an element that is looked at has become an array")
            }
        })
    }

    /// The inline element; `None` for an array. While the result lives, no code may ask for an array, which would replace the element.
    #[inline]
    pub fn inline_scalar<'a>(&'a self, py: Python<'a>) -> Option<Ref<'a, InlineScalar>> {
        self.held.try_borrow_part(py, |held| match held {
            ArrayOrScalar::InlineScalar(element) => Some(element),
            ArrayOrScalar::Array(_) => None,
        })
    }

    /// Whether the array is 0-d.
    #[inline]
    pub fn is_zero_dim(&self, py: Python<'_>) -> bool {
        let held = self.held.borrow_part(py, |held| held);
        match &*held {
            ArrayOrScalar::InlineScalar(_) => true,
            ArrayOrScalar::Array(array) => array.ndim() == 0,
        }
    }

    /// Makes an array of the element.
    #[cold]
    #[inline(never)]
    fn materialise(&self, py: Python<'_>) {
        self.held.change(py, |held| {
            if let ArrayOrScalar::InlineScalar(element) = held {
                *held = ArrayOrScalar::Array(element.to_array());
            }
        });
    }

    /// Takes the view again if a recorded write has changed its elements. If that is not possible, the array is unchanged, and using it in a recorded
    /// operation is an error.
    #[cold]
    #[inline(never)]
    fn retake_stale_view(&self, py: Python<'_>) {
        let Some(base) = self.linked() else { return };
        if !self.borrow_as_is(py).is_stale() {
            return;
        }
        let (whole, part) = (base.get().array(py), self.borrow_as_is(py).clone());
        if !whole.is_stale()
            && shares(&whole, &part)
            && let Ok(view) = autograd::view_again(&whole, &part)
        {
            self.adopt(py, view);
        }
    }

    /// Makes sure that writing into the array can be recorded.
    pub fn check_writable(&self, py: Python<'_>) -> PyResult<()> {
        let Some(base) = self.linked().filter(|_| Flags::current().is_recording()) else {
            return Ok(());
        };
        autograd::check_writable(&base.get().borrow(py), &self.borrow(py)).map_err(|e| raise(py, e))
    }

    /// Replaces the array by the result of a recorded operation that wrote its elements in place, and updates its base accordingly. If nothing is
    /// recorded, the array is unchanged: the optimiser updates variables in place, and they remain variables.
    pub fn adopt_written(&self, py: Python<'_>, written: Array) -> PyResult<()> {
        // A recorded array may have been overwritten with constants.
        let is_recorded = written.entry().is_some() || self.borrow_as_is(py).entry().is_some();
        if !is_recorded || !Flags::current().is_recording() {
            return Ok(());
        }
        let base = self
            .linked()
            .map(|base| (base, base.get().borrow_as_is(py).clone()));
        let Some((base, whole)) = base.filter(|(_, whole)| shares(whole, &written)) else {
            self.adopt(py, written);
            return Ok(());
        };
        let (whole, part) =
            autograd::written_through(&whole, &written).map_err(|error| raise(py, error))?;
        base.get().adopt(py, whole);
        self.adopt(py, part);
        Ok(())
    }

    /// Replaces the array, as in-place operators and `attach_grad` do.
    pub fn adopt(&self, py: Python<'_>, array: Array) {
        self.held.set(py, ArrayOrScalar::Array(array));
    }
}

/// An [`ArrayOrScalar::Array`] in memory. With `repr(u8)` every variant is laid out as a C structure of its tag and its fields.
#[repr(C)]
struct HeldArray {
    number: u8,
    array: Array,
}

/// A [`ArrayOrScalar::InlineScalar`] in memory.
#[repr(C)]
struct HeldInlineScalar {
    number: u8,
    element: MaybeUninit<InlineScalar>,
}

impl ArrayOrScalar {
    /// Whether dropping it only frees memory of ours.
    #[inline]
    fn drops_without_python(&self) -> bool {
        match self {
            ArrayOrScalar::InlineScalar(_) => true,
            ArrayOrScalar::Array(x) => x.entry().is_none() && !x.tensor().storage().is_foreign(),
        }
    }

    /// Tag of the first variant, arrays.
    const ARRAY: u8 = 0;

    /// Tag of the second variant, elements.
    const INLINE_SCALAR: u8 = 1;

    /// Constructs the scalar variant; `make` constructs its element in place. Returns what `make` returned.
    ///
    /// # Safety
    /// `to` is valid for writes; `make` initialises its argument if it returns true.
    #[inline]
    unsafe fn write_inline_scalar(
        to: *mut ArrayOrScalar,
        make: impl FnOnce(&mut MaybeUninit<InlineScalar>) -> bool,
    ) -> bool {
        let to = to.cast::<HeldInlineScalar>();
        // SAFETY: 1. the place is the caller's, and has room for any variant. 2. this is the form of the variant, whose element needs not be
        // initialised to be referred to.
        unsafe {
            (&raw mut (*to).number).write(ArrayOrScalar::INLINE_SCALAR);
            make(&mut (*to).element)
        }
    }

    /// Constructs the array variant; `write` constructs its array in place. Returns what `write` returned.
    ///
    /// # Safety
    /// `to` is valid for writes; `write` initialises its argument if it returns true.
    #[inline]
    unsafe fn write_array(to: *mut ArrayOrScalar, write: impl FnOnce(*mut Array) -> bool) -> bool {
        let to = to.cast::<HeldArray>();
        // SAFETY: 1. `to` is valid for any variant (the caller's promise). 2. this is the layout of the variant.
        unsafe { (&raw mut (*to).number).write(ArrayOrScalar::ARRAY) };
        // SAFETY: as above.
        write(unsafe { &raw mut (*to).array })
    }
}

/// The object as an array of this package, if its class is `ndarray` or derived from it. The cheap tests come first: the class itself, then Python's
/// own numbers, which are the other common operands.
#[inline]
pub fn as_array<'a, 'py>(object: &'a Bound<'py, PyAny>) -> Option<&'a Bound<'py, PyArray>> {
    if PyArray::is_exact_type_of(object) {
        return object.cast_exact().ok();
    }
    if object.is_exact_instance_of::<PyFloat>() || object.is_exact_instance_of::<PyInt>() {
        return None;
    }
    object.cast().ok()
}

/// Whether two arrays share a storage.
fn shares(a: &Array, b: &Array) -> bool {
    std::sync::Arc::ptr_eq(a.tensor().storage(), b.tensor().storage())
}
