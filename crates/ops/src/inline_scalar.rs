//! One element without storage: the result of `x[3]` until an operation needs an array.
//!
//! Most elements read from arrays are compared, added or converted to a Python number and then dropped. None of that needs storage with a variable of
//! the engine: the value was complete when it was read, and nothing writes to it.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use mxnet_tensor::{DType, Device, DeviceKind, Scalar, Storage, Tensor};

use crate::array::count_host_read;
use crate::launch::elem;
use crate::mode::Flags;
use crate::opdef::{Cpu, OpDef};
use crate::operand::Operand;
use crate::seqlock_read::seqlock_read;
use crate::types::{Lift, Types};
use crate::{Array, cpu, fp_errors};

/// An element on the CPU that is held by value, without storage.
#[derive(Clone, Copy, Debug)]
pub struct InlineScalar {
    /// The element's bytes at the start, zeros after them.
    bytes: [u64; 2],
    dtype: DType,
    device: Device,
}

impl InlineScalar {
    /// Writes the element into `to` in place, with the bytes that `write` writes. A move right after it would read wider words than were written,
    /// which stalls on the processor's store buffer and costs more than all other work here.
    ///
    /// # Safety
    /// `write` writes an element of `dtype`.
    #[inline]
    pub(crate) unsafe fn make(
        to: &mut MaybeUninit<InlineScalar>,
        dtype: DType,
        device: Device,
        write: impl FnOnce(*mut u8),
    ) {
        let to = to.as_mut_ptr();
        // SAFETY: all fields are written; no element has more than 16 bytes, and those without meaning are zero.
        unsafe {
            (&raw mut (*to).dtype).write(dtype);
            (&raw mut (*to).device).write(device);
            (&raw mut (*to).bytes[0]).write(0);
            (&raw mut (*to).bytes[1]).write(0);
            write((&raw mut (*to).bytes).cast());
        }
    }

    /// Reads the element of `x` at `from`. Returns whether it could be read without waiting.
    ///
    /// # Safety
    /// `from` points to an element of `x`, which is on the CPU.
    #[inline]
    pub(crate) unsafe fn read(
        to: &mut MaybeUninit<InlineScalar>,
        x: &Array,
        from: *const u8,
    ) -> bool {
        let mut is_read = false;
        // SAFETY: there is room for any element.
        let write = |to: *mut u8| is_read = unsafe { seqlock_read(x, from, to, x.dtype().size()) };
        // SAFETY: an element is written, or the caller discards it.
        unsafe { InlineScalar::make(to, x.dtype(), x.device(), write) };
        is_read
    }

    /// Whether the value is neither infinite nor NaN.
    #[inline]
    pub fn is_finite(&self) -> bool {
        // SAFETY: one element of its dtype, aligned to 8.
        unsafe { cpu::are_finite(self.ptr(), 1, self.dtype) }
    }

    /// The address of its bytes.
    #[inline]
    fn ptr(&self) -> *const u8 {
        self.bytes.as_ptr().cast()
    }

    /// Writes it to memory of an element of its dtype.
    ///
    /// # Safety
    /// `to` is valid for writing an element.
    #[inline]
    pub(crate) unsafe fn write(&self, to: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe {
            match self.dtype.size() {
                8 => to.cast::<u64>().write_unaligned(self.bytes[0]),
                4 => to
                    .cast::<u32>()
                    .write_unaligned(self.ptr().cast::<u32>().read()),
                size => std::ptr::copy_nonoverlapping(self.ptr(), to, size),
            }
        }
    }

    /// The dtype.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The device.
    #[inline]
    pub fn device(&self) -> Device {
        self.device
    }

    /// The truth value.
    #[inline]
    pub fn truth(&self) -> bool {
        match self.dtype {
            DType::F64 | DType::F32 => self.float() != Some(0.0),
            dtype if dtype.is_inexact() => self.value().as_bool(),
            dtype => {
                count_host_read();
                // Read as wide as it was written: a wider read stalls on the store buffer.
                // SAFETY: an element of this type.
                unsafe {
                    match dtype.size() {
                        1 => self.ptr().read() != 0,
                        2 => self.ptr().cast::<u16>().read() != 0,
                        4 => self.ptr().cast::<u32>().read() != 0,
                        _ => self.bytes[0] != 0,
                    }
                }
            }
        }
    }

    /// The value of a float64 or float32 element, in a register.
    #[inline]
    pub fn float(&self) -> Option<f64> {
        let value = match self.dtype {
            DType::F64 => f64::from_bits(self.bytes[0]),
            // SAFETY: an element of this type.
            DType::F32 => unsafe { self.ptr().cast::<f32>().read() }.into(),
            _ => return None,
        };
        count_host_read();
        Some(value)
    }

    /// The value of an int64 element.
    #[inline]
    pub fn integer(&self) -> Option<i64> {
        if self.dtype != DType::I64 {
            return None;
        }
        count_host_read();
        Some(self.bytes[0].cast_signed())
    }

    /// The value.
    #[inline]
    pub fn value(&self) -> Scalar {
        count_host_read();
        // SAFETY: an element of this type.
        unsafe { Scalar::read(self.dtype, self.ptr()) }
    }

    /// A 0-d array of the value.
    pub fn to_array(&self) -> Array {
        // SAFETY: an element of this size was read.
        let storage = unsafe { Storage::of_element(self.ptr(), self.dtype.size(), self.device) };
        Array::from_tensor(Tensor::of_element(storage, self.dtype))
    }
}

/// An operand of [`apply_to_elements`].
#[derive(Clone, Copy)]
pub enum ElementOperand<'a> {
    /// A 0-d array.
    Array(&'a Array),
    /// An element without storage.
    Inline(&'a InlineScalar),
    /// A Python number, which promotes by its kind only.
    Number(&'a Scalar),
}

impl<'a> From<Operand<'a>> for ElementOperand<'a> {
    #[inline]
    fn from(operand: Operand<'a>) -> ElementOperand<'a> {
        match operand {
            Operand::Array(x) => ElementOperand::Array(x),
            Operand::Number(value) => ElementOperand::Number(value),
        }
    }
}

/// Calls an elementwise operator on elements of one dtype and Python numbers, while no tape or interpreter is active, and writes the result to `to`.
/// Returns whether it did; if not, take the general path.
#[inline]
pub fn apply_to_elements(
    op: &'static OpDef,
    operands: &[ElementOperand],
    to: &mut MaybeUninit<InlineScalar>,
) -> bool {
    let flags = Flags::current();
    if flags.is_watching() && flags.allows_copies() {
        let way = || {
            let mut result = MaybeUninit::uninit();
            let is_made = Flags::current().allows_fast_path()
                && try_compute(op, operands, &mut result).is_some();
            // SAFETY: `try_compute` has written it.
            Ok(is_made.then(|| unsafe { result.assume_init() }))
        };
        let is_clean = |y: &InlineScalar| Ok(is_clean_element(op, operands, y));
        let found: crate::Result<_> = fp_errors::try_fast_path(op, way, is_clean);
        return found.ok().flatten().map(|y| to.write(y)).is_some();
    }
    flags.allows_fast_path() && try_compute(op, operands, to).is_some()
}

/// [`apply_to_elements`] without reports of floating-point errors. `None`: nothing was computed.
#[inline]
fn try_compute(
    op: &'static OpDef,
    operands: &[ElementOperand],
    to: &mut MaybeUninit<InlineScalar>,
) -> Option<()> {
    let (Cpu::Map(rows), Types::Promote { accepts, lift, out }) = (&op.cpu, &op.types) else {
        return None;
    };
    if *lift == Lift::ToWidestFloat
        || op.refuses.is_some()
        || rows.outs != 1
        || rows.params != 0
        || operands.len() > 2
        || operands.len() != rows.ins as usize
    {
        return None;
    }
    let mut lead: Option<(DType, Device)> = None;
    for operand in operands {
        let found = match operand {
            ElementOperand::Array(x)
                if x.ndim() == 0 && !x.is_weak() && x.device().kind() == DeviceKind::Cpu =>
            {
                (x.dtype(), x.device())
            }
            ElementOperand::Array(_) => return None,
            ElementOperand::Inline(x) => (x.dtype, x.device),
            ElementOperand::Number(_) => continue,
        };
        if lead.is_some_and(|lead| lead != found) {
            return None;
        }
        lead = Some(found);
    }
    let (dtype, device) = lead?;
    let row = (rows.get)(mxnet_kernels::isa::isa(), elem(dtype))?;
    if !accepts.has(dtype) {
        return None;
    }
    let mut slots = [[0_u64; 2]; 2];
    let mut ptrs = [std::ptr::null_mut::<u8>(); 3];
    for ((operand, slot), ptr) in operands.iter().zip(&mut slots).zip(&mut ptrs[1..]) {
        *ptr = slot.as_mut_ptr().cast::<u8>();
        match operand {
            ElementOperand::Array(x) => {
                let from = x.tensor().data_ptr();
                // SAFETY: a 0-d array has one element; a slot has 16 bytes, aligned to 8, enough for every dtype.
                if !unsafe { seqlock_read(x, from, *ptr, dtype.size()) } {
                    return None;
                }
            }
            // A kernel only reads its operands, so the cast to a mutable pointer is never used to write.
            ElementOperand::Inline(x) => *ptr = x.ptr().cast_mut(),
            ElementOperand::Number(value) => {
                if value.kind() > dtype.kind() || !value.fits(dtype) {
                    return None;
                }
                // SAFETY: as above.
                unsafe { value.write(dtype, *ptr) };
            }
        }
    }
    let compute = |result: *mut u8| {
        ptrs[0] = result;
        // SAFETY: every operand is one element of the row's type, the result has room for 16 bytes.
        unsafe { row(ptrs.as_ptr(), [0_isize; 3].as_ptr(), 1, std::ptr::null()) };
    };
    // SAFETY: the row writes an element of this type.
    unsafe { InlineScalar::make(to, out.of(dtype), device, compute) };
    Some(())
}

/// Whether the result of an operator shows no floating-point error.
fn is_clean_element(op: &OpDef, operands: &[ElementOperand], y: &InlineScalar) -> bool {
    if !y.is_finite() {
        return false;
    }
    if !fp_errors::checks_underflow(op)
        || fp_errors::size_of_number(&y.value()) >= fp_errors::smallest_normal(y.dtype())
    {
        return true;
    }
    let counts = op.fp_errors.counts_zeros;
    let is_safe = |x: Scalar| {
        let x = fp_errors::size_of_number(&x);
        !x.is_finite() || !counts && x == 0.0
    };
    operands.iter().any(|x| match x {
        ElementOperand::Inline(x) => is_safe(x.value()),
        ElementOperand::Number(x) => is_safe(**x),
        ElementOperand::Array(_) => false,
    })
}
