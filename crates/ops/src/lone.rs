//! One element by itself: what `x[3]` is until somebody wants an array of it.
//!
//! Most elements that are taken of arrays are compared, added or made a Python number and then forgotten. None of that needs memory whose use the
//! engine orders: the element was complete when it was read, and nobody writes it.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use mxnet_tensor::{DType, Device, DeviceKind, Scalar, Storage, Tensor};

use crate::array::count_look;
use crate::few::peek;
use crate::interp::Flags;
use crate::launch::elem;
use crate::opdef::{Cpu, OpDef};
use crate::quick::Quick;
use crate::types::{Lift, Types};
use crate::{Array, cpu, floats};

/// An element of main memory, in no storage.
#[derive(Clone, Copy, Debug)]
pub struct Lone {
    /// Its memory form, at the beginning.
    bytes: [u64; 2],
    dtype: DType,
    device: Device,
}

impl Lone {
    /// Makes the element of an array on `device` that `write` writes, where it shall stay: moved about, it would be read in wider words than it
    /// was written in, which waits for the processor's store buffer and takes longer than all the rest.
    ///
    /// # Safety
    /// `write` writes an element of `dtype`.
    #[inline]
    pub(crate) unsafe fn make(
        to: &mut MaybeUninit<Lone>,
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

    /// Makes it of the element of `x` at `from`. Answers whether that was at hand.
    ///
    /// # Safety
    /// An element of `x`, which is in main memory.
    #[inline]
    pub(crate) unsafe fn read(to: &mut MaybeUninit<Lone>, x: &Array, from: *const u8) -> bool {
        let mut is_read = false;
        // SAFETY: there is room for any element.
        let write = |to: *mut u8| is_read = unsafe { peek(x, from, to, x.dtype().size()) };
        // SAFETY: an element is written, or what it holds does not matter.
        unsafe { Lone::make(to, x.dtype(), x.device(), write) };
        is_read
    }

    /// Whether it is neither infinite nor NaN.
    #[inline]
    pub fn is_finite(&self) -> bool {
        // SAFETY: one element of its dtype, aligned to 8.
        unsafe { cpu::are_finite(self.ptr(), 1, self.dtype) }
    }

    /// Its memory form.
    #[inline]
    fn ptr(&self) -> *const u8 {
        self.bytes.as_ptr().cast()
    }

    /// Writes it over an element of its type.
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

    /// Its type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Where it is.
    #[inline]
    pub fn device(&self) -> Device {
        self.device
    }

    /// Its truth.
    #[inline]
    pub fn truth(&self) -> bool {
        match self.dtype {
            DType::F64 | DType::F32 => self.float() != Some(0.0),
            dtype if dtype.is_inexact() => self.value().as_bool(),
            dtype => {
                count_look();
                // As wide as it was written: anything wider waits until that has left the store buffer.
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

    /// Its value, if it is float64 or float32: nothing but the number, which a register holds.
    #[inline]
    pub fn float(&self) -> Option<f64> {
        let value = match self.dtype {
            DType::F64 => f64::from_bits(self.bytes[0]),
            // SAFETY: an element of this type.
            DType::F32 => unsafe { self.ptr().cast::<f32>().read() }.into(),
            _ => return None,
        };
        count_look();
        Some(value)
    }

    /// Its value, if it is int64.
    #[inline]
    pub fn integer(&self) -> Option<i64> {
        if self.dtype != DType::I64 {
            return None;
        }
        count_look();
        Some(self.bytes[0].cast_signed())
    }

    /// Its value.
    #[inline]
    pub fn value(&self) -> Scalar {
        count_look();
        // SAFETY: an element of this type.
        unsafe { Scalar::read(self.dtype, self.ptr()) }
    }

    /// An array without axes that holds it.
    pub fn to_array(&self) -> Array {
        // SAFETY: so many bytes were read.
        let storage = unsafe { Storage::of_element(self.ptr(), self.dtype.size(), self.device) };
        Array::from_tensor(Tensor::of_element(storage, self.dtype))
    }
}

/// An operand of an operator on elements.
#[derive(Clone, Copy)]
pub enum One<'a> {
    /// An array without axes.
    Array(&'a Array),
    /// An element.
    Lone(&'a Lone),
    /// A Python number, which promotes by its kind only.
    Number(&'a Scalar),
}

impl<'a> From<Quick<'a>> for One<'a> {
    #[inline]
    fn from(operand: Quick<'a>) -> One<'a> {
        match operand {
            Quick::Array(x) => One::Array(x),
            Quick::Number(value) => One::Number(value),
        }
    }
}

/// Calls `op` on elements of one dtype and Python numbers, while nothing intercepts or records, and makes the result. Answers whether it did; else
/// take another way.
#[inline]
pub fn quick_elements(op: &'static OpDef, operands: &[One], to: &mut MaybeUninit<Lone>) -> bool {
    let flags = Flags::current();
    if flags.is_watching() && flags.may_move() {
        let way = || {
            let mut room = MaybeUninit::uninit();
            let is_made = Flags::current().is_plain() && made(op, operands, &mut room).is_some();
            // SAFETY: made.
            Ok(is_made.then(|| unsafe { room.assume_init() }))
        };
        let is_clean = |y: &Lone| Ok(is_clean_element(op, operands, y));
        let found: crate::Result<_> = floats::tried(op, way, is_clean);
        return found.ok().flatten().map(|y| to.write(y)).is_some();
    }
    flags.is_plain() && made(op, operands, to).is_some()
}

/// The same where nobody looks on. `None`: nothing was made.
#[inline]
fn made(op: &'static OpDef, operands: &[One], to: &mut MaybeUninit<Lone>) -> Option<()> {
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
            One::Array(x)
                if x.ndim() == 0 && !x.is_weak() && x.device().kind() == DeviceKind::Cpu =>
            {
                (x.dtype(), x.device())
            }
            One::Array(_) => return None,
            One::Lone(x) => (x.dtype, x.device),
            One::Number(_) => continue,
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
            One::Array(x) => {
                let from = x.tensor().data_ptr();
                // SAFETY: an array without axes has one element; a slot has 16 bytes, aligned to 8, enough for every dtype.
                if !unsafe { peek(x, from, *ptr, dtype.size()) } {
                    return None;
                }
            }
            // Rows read their operands.
            One::Lone(x) => *ptr = x.ptr().cast_mut(),
            One::Number(value) => {
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
    unsafe { Lone::make(to, out.of(dtype), device, compute) };
    Some(())
}

/// Whether an element that an operator made tells of no error.
fn is_clean_element(op: &OpDef, operands: &[One], y: &Lone) -> bool {
    if !y.is_finite() {
        return false;
    }
    if !floats::looks_for_underflow(op)
        || floats::size_of_number(&y.value()) >= floats::tiny(y.dtype())
    {
        return true;
    }
    let counts = op.floats.counts_zeros;
    let is_safe = |x: Scalar| {
        let x = floats::size_of_number(&x);
        !x.is_finite() || !counts && x == 0.0
    };
    operands.iter().any(|x| match x {
        One::Lone(x) => is_safe(x.value()),
        One::Number(x) => is_safe(**x),
        One::Array(_) => false,
    })
}
