//! `Array`: a tensor, and the recorded node that computed it.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::sync::Arc;

use mxnet_engine::{Access, Failure, engine};
use mxnet_tensor::{DType, Device, Kind, Layout, Scalar, Source, Storage, Tensor, checked_len};

use crate::Outputs;
use crate::autograd::Node;
use crate::error::{Error, Result, Tuple};
use crate::memory;
use crate::profiler;

/// An n-dimensional array on one device. Cloning shares the elements.
#[derive(Clone)]
pub struct Array {
    tensor: Tensor,
    /// The node that produced it and which of its outputs this is; `None` outside recording.
    entry: Option<(Arc<Node>, u32)>,
    /// Version of the storage's history (`lineage`) at the time when `entry` was set. If the storage's is newer, another array wrote the elements.
    lineage: u32,
    /// The kind of a Python number, which promotes by this kind only. `None` for other arrays. An integer beyond 64 bits is stored as a float.
    weak: Option<Kind>,
    /// Whether the only element is known at the call. Devices get it as an argument of the launch.
    is_constant: bool,
}

/// Rust types that are elements of arrays.
pub trait Element: Copy + Send + Sync + 'static {
    /// The dtype whose elements have this Rust type.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($t:ty => $d:ident),* $(,)?) => { $(impl Element for $t { const DTYPE: DType = DType::$d; })* };
}
elements!(bool => Bool, i8 => I8, i16 => I16, i32 => I32, i64 => I64, u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    half::f16 => F16, half::bf16 => BF16, f32 => F32, f64 => F64, num_complex::Complex<f32> => C64, num_complex::Complex<f64> => C128);

impl Array {
    /// Wraps a tensor.
    #[inline]
    pub fn from_tensor(tensor: Tensor) -> Array {
        Array {
            lineage: tensor.storage().lineage(),
            tensor,
            entry: None,
            weak: None,
            is_constant: false,
        }
    }

    /// An array with undefined elements in C order.
    ///
    /// # Errors
    /// [`Error::Memory`] if there is none.
    #[inline]
    pub fn uninitialised(shape: &[usize], dtype: DType, device: Device) -> Result<Array> {
        Ok(Array::from_tensor(Tensor::empty(shape, dtype, device)?))
    }

    /// An array of this shape, dtype and device without memory. Operators on it infer the shapes and dtypes of their results and compute nothing.
    /// Reading its values fails with [`Error::Abstract`].
    ///
    /// # Errors
    /// [`Error::Shape`] if the shape has more elements than can be counted.
    pub fn without_values(shape: &[usize], dtype: DType, device: Device) -> Result<Array> {
        checked_len(shape)?;
        Array::without_values_in(Layout::contiguous(shape), dtype, device)
    }

    /// As [`Array::without_values`], for a dense layout with offset 0.
    pub(crate) fn without_values_in(layout: Layout, dtype: DType, device: Device) -> Result<Array> {
        let error = no_values(layout.shape(), dtype);
        let storage = Storage::without_memory(
            layout.len() * dtype.size(),
            device,
            Failure::new(Box::new(error), ""),
        );
        Ok(Array::from_tensor(Tensor::new(storage, layout, dtype)?))
    }

    /// Whether it is abstract: it has a shape, a dtype and a device, but no values.
    #[inline]
    pub fn is_abstract(&self) -> bool {
        self.tensor.storage().is_abstract()
    }

    /// Refuses an abstract array where values are needed.
    ///
    /// # Errors
    /// [`Error::Abstract`].
    #[inline]
    pub fn check_values(&self) -> Result<()> {
        match self.is_abstract() {
            true => Err(no_values(self.shape(), self.dtype())),
            false => Ok(()),
        }
    }

    /// A 0-d array that promotes by its kind only, as a Python number does.
    pub fn weak_scalar(value: Scalar) -> Result<Array> {
        let mut array = Array::scalar(value, Array::weak_dtype(value))?;
        array.weak = Some(value.kind());
        Ok(array)
    }

    /// Storage dtype of [`Array::weak_scalar`].
    pub(crate) const fn weak_dtype(value: Scalar) -> DType {
        match value {
            Scalar::Bool(_) => DType::Bool,
            Scalar::I64(_) => DType::I64,
            Scalar::U64(_) => DType::U64,
            Scalar::Wide(_) | Scalar::F64(_) => DType::F64,
            Scalar::C128(_) => DType::C128,
        }
    }

    /// A 0-d array.
    ///
    /// # Errors
    /// [`Error::Memory`] if there is none.
    pub fn scalar(value: Scalar, dtype: DType) -> Result<Array> {
        let array = Array::uninitialised(&[], dtype, Device::cpu(0))?;
        write_scalar(&array.tensor, value);
        Ok(array)
    }

    /// A 0-d array of a constant of an operator. It is no operand: operands of any device can be combined with it.
    ///
    /// # Errors
    /// As [`Array::scalar`].
    pub fn constant(value: Scalar, dtype: DType) -> Result<Array> {
        let mut array = Array::scalar(value, dtype)?;
        array.is_constant = true;
        Ok(array)
    }

    /// An array of these elements in C order, on the CPU.
    ///
    /// # Errors
    /// [`Error::Shape`] if `shape` does not hold `elements.len()` elements, [`Error::Memory`] if there is no memory.
    pub fn from_slice<T: Element>(elements: &[T], shape: &[usize]) -> Result<Array> {
        let array = Array::uninitialised(shape, T::DTYPE, Device::cpu(0))?;
        if array.len() != elements.len() {
            let problem = format!(
                "{} elements do not fill shape {}",
                elements.len(),
                crate::error::Tuple(shape)
            );
            return Err(Error::shape("array", problem));
        }
        crate::cpu::fill_from(&array.tensor, elements);
        Ok(array)
    }

    /// The elements in C order. Waits until they are computed.
    ///
    /// # Errors
    /// [`Error::DType`] if `T` is not the array's dtype; the failure of the operation that should have computed them.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        if T::DTYPE != self.dtype() {
            let problem = format!(
                "the array has dtype {}, elements of {} were requested",
                self.dtype().name(),
                T::DTYPE.name()
            );
            return Err(Error::dtype("to_vec", problem));
        }
        let dense = self.on_host()?.contiguous()?;
        let held = dense.read()?;
        let elements = held.elements();
        memory::collected("to_vec", elements.len(), elements.iter().copied())
    }

    /// The only element.
    ///
    /// # Errors
    /// [`Error::Value`] if there is not exactly one; the failure of the operation that should have computed it.
    pub fn item(&self) -> Result<Scalar> {
        if self.len() != 1 {
            let problem = format!(
                "can only convert an array of size 1 to a Python scalar, found size {}",
                self.len()
            );
            return Err(Error::value("item", problem));
        }
        Ok(self.on_host()?.read()?.first())
    }

    /// The tensor.
    #[inline]
    pub fn tensor(&self) -> &Tensor {
        &self.tensor
    }

    /// Shape.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        self.tensor.layout().shape()
    }

    /// Number of axes.
    #[inline]
    pub fn ndim(&self) -> usize {
        self.tensor.layout().ndim()
    }

    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.tensor.layout().len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Data type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.tensor.dtype()
    }

    /// Shape, strides and offset.
    #[inline]
    pub fn layout(&self) -> &Layout {
        self.tensor.layout()
    }

    /// Device.
    #[inline]
    pub fn device(&self) -> Device {
        self.tensor.device()
    }

    /// Whether both arrays have the same storage, layout and dtype.
    pub fn is_same_view(&self, other: &Array) -> bool {
        Arc::ptr_eq(self.tensor.storage(), other.tensor.storage())
            && self.dtype() == other.dtype()
            && self.layout() == other.layout()
            && self.weak == other.weak
    }

    /// Whether it promotes as a Python number does.
    #[inline]
    pub fn is_weak(&self) -> bool {
        self.weak.is_some()
    }

    /// Whether devices get its value as an argument of the launch: it is a Python number or a constant of an operator.
    #[inline]
    pub fn is_launch_argument(&self) -> bool {
        self.is_constant || self.weak.is_some()
    }

    /// Its kind in type promotion.
    #[inline]
    pub fn kind(&self) -> Kind {
        self.weak.unwrap_or_else(|| self.dtype().kind())
    }

    /// Its value if it is a Python number.
    #[inline]
    pub fn number(&self) -> Option<Scalar> {
        let kind = self.weak?;
        Some(match crate::cpu::read_scalar(&self.tensor) {
            Scalar::F64(x) if kind == Kind::Integer => Scalar::Wide(x),
            value => value,
        })
    }

    /// The node that produced it, and which output it is.
    #[inline]
    pub fn entry(&self) -> Option<&(Arc<Node>, u32)> {
        self.entry.as_ref()
    }

    /// Where a call that is recorded now sends the gradient of this input; `None` for constants. Results whose graph an earlier pass has freed are
    /// constants too, unless a gradient is attached to them: state that goes from one training step to the next ends each step's graph.
    #[inline]
    pub fn edge(&self) -> Option<&(Arc<Node>, u32)> {
        self.entry
            .as_ref()
            .filter(|(node, index)| !node.is_dead() || node.leaf(*index).is_some())
    }

    /// The same elements, produced by output `index` of `node`.
    #[must_use]
    pub fn with_entry(mut self, node: Arc<Node>, index: u32) -> Array {
        self.entry = Some((node, index));
        self
    }

    /// Makes it output `index` of `node`.
    #[inline]
    pub(crate) fn set_entry(&mut self, node: Arc<Node>, index: u32) {
        self.entry = Some((node, index));
    }

    /// The same array without its graph entry. A Python number stays weak.
    #[inline]
    pub(crate) fn without_entry(&self) -> Array {
        Array {
            tensor: self.tensor.clone(),
            entry: None,
            lineage: self.lineage,
            weak: self.weak,
            is_constant: self.is_constant,
        }
    }

    /// The same elements, outside any recorded graph.
    #[must_use]
    pub fn detach(&self) -> Array {
        Array::from_tensor(self.tensor.clone())
    }

    /// Whether a recorded operation wrote the elements through another array after this array's graph entry was set.
    #[inline]
    pub fn is_stale(&self) -> bool {
        self.lineage != self.tensor.storage().lineage()
    }

    /// The same array with a graph entry that counts as current.
    #[must_use]
    pub(crate) fn up_to_date(mut self) -> Array {
        self.set_up_to_date();
        self
    }

    /// Marks the graph entry as current for the elements as they are now.
    #[inline]
    pub(crate) fn set_up_to_date(&mut self) {
        self.lineage = self.tensor.storage().lineage();
    }

    /// The same array with the same graph entry. If `is_locked`, nobody can write through the result or its views.
    #[must_use]
    pub fn locked(mut self, is_locked: bool) -> Array {
        self.tensor = self.tensor.locked(is_locked);
        self
    }

    /// Marks the array as the owner of its storage, not a view. The caller promises that no other array uses the storage.
    #[must_use]
    pub fn as_owner(mut self) -> Array {
        self.tensor = self.tensor.as_owner();
        self
    }

    /// The same elements with another layout, outside any recorded graph.
    pub fn seen_as(&self, layout: Layout) -> Array {
        Array::from_tensor(self.tensor.with_layout(layout))
    }

    /// Constructs a view of a tensor in place, outside any recorded graph. `layout` writes the layout to the pointer that it is given and returns
    /// whether it did. Returns whether the array was constructed.
    ///
    /// # Safety
    /// As for [`Source::write`].
    #[inline]
    #[allow(unsafe_code, reason = "writes to memory of the caller")]
    pub unsafe fn write_view(
        source: Source,
        layout: impl FnOnce(&mut MaybeUninit<Layout>) -> bool,
        to: *mut Array,
    ) -> bool {
        let lineage = source.storage().lineage();
        // SAFETY: the caller's promise.
        unsafe {
            if !source.write(layout, &raw mut (*to).tensor) {
                return false;
            }
            (&raw mut (*to).entry).write(None);
            (&raw mut (*to).lineage).write(lineage);
            (&raw mut (*to).weak).write(None);
            (&raw mut (*to).is_constant).write(false);
        }
        true
    }

    /// Appends an array of new elements with a dense layout. It is constructed in place: a temporary `Array` would be written in parts and read at
    /// once, which stalls the processor.
    #[inline]
    #[allow(unsafe_code, reason = "writes behind the end of a list")]
    pub fn push_dense(outputs: &mut Outputs, elements: Source, layout: &Layout) {
        outputs.reserve(1);
        let len = outputs.len();
        // SAFETY: 1. the capacity suffices for one more array, which is counted once it is written. 2. the storage holds the dense layout's elements.
        unsafe {
            let copy = |to: &mut MaybeUninit<Layout>| {
                layout.copy_dense_to(to);
                true
            };
            if Array::write_view(elements, copy, outputs.as_mut_ptr().add(len)) {
                outputs.set_len(len + 1);
            }
        }
    }

    /// Whether the elements may be written to.
    ///
    /// # Errors
    /// [`Error::Value`] if the memory is read-only, or if several elements share memory, as in a broadcast view.
    pub fn check_writable(&self, op: &'static str, what: &str) -> Result<()> {
        if self.tensor.is_read_only() {
            return Err(Error::value(op, format!("{what} is read-only")));
        }
        if self.shares_elements() {
            let problem = format!("{what} is read-only: it is a view whose elements share memory");
            return Err(Error::value(op, problem).with_hint("write to a copy of it"));
        }
        Ok(())
    }

    /// Whether several elements may share memory, as in broadcast views and sliding windows.
    pub fn shares_elements(&self) -> bool {
        !self.layout().is_contiguous() && self.layout().may_self_overlap()
    }

    /// Whether no operation that writes it is pending.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.tensor.storage().var().is_free()
    }

    /// Waits until all writes pushed so far are done. Other threads may push new ones at any time: use [`Array::read`] to hold the array while its
    /// elements are read.
    ///
    /// # Errors
    /// The failure of the operation that should have written it; [`Error::Interrupted`].
    pub fn wait_to_read(&self) -> Result<()> {
        self.wait(Access::Read)
    }

    /// Waits until all reads and writes pushed so far are done.
    ///
    /// # Errors
    /// As [`Array::wait_to_read`].
    pub fn wait_to_write(&self) -> Result<()> {
        self.wait(Access::Write)
    }

    fn wait(&self, access: Access) -> Result<()> {
        self.check_values()?;
        count_host_read();
        let waited = profiler::wait_began();
        let result = engine().wait_for(
            self.tensor.storage().var(),
            access,
            &mut crate::interrupt::is_requested,
        );
        if let Some(waited) = waited {
            profiler::wait_ended(waited, "wait");
        }
        Ok(result?)
    }
}

/// The error for reading an abstract array.
#[cold]
fn no_values(shape: &[usize], dtype: DType) -> Error {
    let problem = format!(
        "an array of shape {} and dtype {} has no values here: it is abstract, as the arrays of a function that is being traced are",
        Tuple(shape),
        dtype.name()
    );
    Error::without_values("", problem)
}

thread_local! {
    static WAITS: Cell<u64> = const { Cell::new(0) };
}

/// How often this thread has waited for an array or has read values on the host. A call that leaves the count unchanged read no values.
pub fn waits() -> u64 {
    WAITS.with(Cell::get)
}

/// Counts a read of values on the host that did not wait.
#[inline]
pub fn count_host_read() {
    WAITS.with(|waits| waits.set(waits.get() + 1));
}

fn write_scalar(tensor: &Tensor, value: Scalar) {
    crate::cpu::write_scalar(tensor, value);
}

impl std::fmt::Debug for Array {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Array(shape {}, {}, {})",
            crate::error::Tuple(self.shape()),
            self.dtype().name(),
            self.device()
        )
    }
}
