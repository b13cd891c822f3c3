//! Fast paths of small assignments while nothing is recorded. Each returns whether it did the work; if not, nothing has changed, and the general path
//! does the work or reports the error.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::sync::Arc;

use mxnet_engine::{Access, Var, engine};
use mxnet_kernels::cast::Cast;
use mxnet_kernels::copy::copy_row;
use mxnet_tensor::{DType, DeviceKind, Kind, Layout, Scalar};

use super::element_read::{
    MAX_FAST_PATH_BYTES, MAX_INDEX_ARRAYS, can_use_fast_path, element, row_positions, vars_of,
};
use super::masked_write::put_on_row;
use crate::error::Result;
use crate::inline_scalar::InlineScalar;
use crate::launch::elem;
use crate::mode::Flags;
use crate::operand::Operand;
use crate::types::check_element;
use crate::{Array, cpu};

/// Whether elements of `x` may be written here: on the CPU, not read-only, nothing recorded. A conversion may raise a floating-point error, which
/// [`converts_without_fp_error`] checks.
pub(crate) fn is_writable(x: &Array) -> bool {
    Flags::current().allows_copies()
        && !x.is_weak()
        && x.device().kind() == DeviceKind::Cpu
        && !x.tensor().is_read_only()
}

/// Whether a number in the range of `dtype` converts without a floating-point error that the mode asks to report.
fn converts_without_fp_error(dtype: DType, number: &Scalar) -> bool {
    if !dtype.is_inexact()
        || matches!(dtype, DType::F64 | DType::C128)
        || !Flags::current().is_watching()
    {
        return true;
    }
    let Scalar::F64(x) = *number else {
        return matches!(number, Scalar::Bool(_)) || dtype.size() >= 4 && dtype != DType::C64;
    };
    let normal = match dtype {
        DType::F16 => 6.2e-5..=65504.0,
        _ => f64::from(f32::MIN_POSITIVE)..=f64::from(f32::MAX),
    };
    x == 0.0 || normal.contains(&x.abs())
}

/// Whether a number converts to `dtype` without any error that has to be reported.
#[inline]
pub(super) fn converts_without_error(dtype: DType, number: &Scalar) -> bool {
    (dtype.is_complex() || number.kind() != Kind::Complex)
        && check_element("assignment", number, dtype).is_ok()
        && converts_without_fp_error(dtype, number)
}

/// Calls `write` with the address of the element at offset `offset` of the storage of `x`, if the storage is free. Returns whether it did.
#[inline]
fn write_element(x: &Array, offset: usize, write: impl FnOnce(*mut u8)) -> bool {
    let storage = x.tensor().storage();
    let Some(_hold) = engine().try_hold(storage.var(), Access::Write, 1) else {
        return false;
    };
    storage.bump_version();
    write(storage.ptr().wrapping_add(offset * x.dtype().size()));
    true
}

/// `x[key] = number` for a small region of `x`, given by its layout `at`. Returns whether it was done.
#[inline]
pub fn put_number(x: &Array, at: Layout, number: &Scalar) -> bool {
    is_writable(x)
        && converts_without_error(x.dtype(), number)
        && cpu::try_fill(&x.tensor().with_layout(at), number)
}

/// Writes a number to the element at offset `offset` of the storage of `x`; see [`put_number`].
///
/// # Safety
/// As [`element`].
#[inline]
pub unsafe fn put_element(x: &Array, offset: usize, number: &Scalar) -> bool {
    let dtype = x.dtype();
    // SAFETY: `offset` is within the storage by the caller's promise; the write is granted.
    let write = |to| unsafe { number.write(dtype, to) };
    is_writable(x) && converts_without_error(dtype, number) && write_element(x, offset, write)
}

/// Writes an element of the array's dtype and device to offset `offset` of the storage of `x`; see [`put_number`].
///
/// # Safety
/// As [`element`](super::element).
#[inline]
pub unsafe fn put_inline_scalar(x: &Array, offset: usize, value: &InlineScalar) -> bool {
    // SAFETY: `offset` is within the storage by the caller's promise; the write is granted.
    let write = |to| unsafe { value.write(to) };
    is_writable(x)
        && value.dtype() == x.dtype()
        && value.device() == x.device()
        && write_element(x, offset, write)
}

/// Copies the only element of `value` to offset `offset` of the storage of `x`, if the dtypes are equal; see [`put_number`].
///
/// # Safety
/// As [`element`].
#[inline]
pub unsafe fn copy_element(x: &Array, offset: usize, value: &Array) -> bool {
    if value.ndim() > 0 || value.is_weak() {
        return false;
    }
    let mut copy = MaybeUninit::uninit();
    // SAFETY: 1. the first element of an array that has one. 2. by the caller's promise; the element was read.
    unsafe {
        element(value, value.layout().offset(), &mut copy)
            && put_inline_scalar(x, offset, copy.assume_init_ref())
    }
}

/// Whether `value` is the region `at` of `x` itself: the second step of `x[key] += y`.
pub(super) fn is_written_already(x: &Array, at: &Layout, value: &Array) -> bool {
    Arc::ptr_eq(x.tensor().storage(), value.tensor().storage())
        && value.layout() == at
        && value.dtype() == x.dtype()
}

/// `x[key] = value` for a small region, of one dtype or with both sides in C order; see [`put_number`].
///
/// # Errors
/// Those of taking views.
#[inline]
pub fn put_array(x: &Array, at: &Layout, value: &Array) -> Result<bool> {
    let (from, to) = (value.tensor().storage(), x.tensor().storage());
    if Arc::ptr_eq(from, to) {
        return Ok(is_writable(x) && is_written_already(x, at, value));
    }
    let (n, size) = (at.len(), x.dtype().size());
    let is_like = value.shape() == at.shape();
    let is_straight = is_like && at.is_contiguous() && value.layout().is_contiguous();
    let converts = value.dtype() != x.dtype();
    if !is_writable(x)
        || value.is_weak()
        || value.device() != x.device()
        || n * size > MAX_FAST_PATH_BYTES
        || !is_straight && (n > cpu::MAX_ONE_BY_ONE_LEN || converts)
        || !is_like && value.ndim() > 0
        || converts && Flags::current().is_watching()
        || value.dtype().is_complex() && !x.dtype().is_complex()
    {
        return Ok(false);
    }
    let writes = [(to.var(), Access::Write)];
    let Some(guard) = engine().try_acquire(&[from.var()], &writes, n as u64) else {
        return Ok(false);
    };
    if guard.poison().is_some() {
        return Ok(false);
    }
    to.bump_version();
    let source = value.tensor().data_ptr().cast_const();
    // SAFETY: 1. `at` is a layout derived from that of `x`. 2. both layouts lie within their storages, which are not the same. 3. `guard` grants the read and the
    // write.
    unsafe {
        let target = to.ptr().add(at.offset() * size);
        if converts {
            Cast::new(elem(value.dtype()), elem(x.dtype())).row(source, target, n);
        } else if is_straight {
            copy_row(source, target, n * size);
        } else {
            let strides = match is_like {
                true => value.layout().clone(),
                false => value.layout().broadcast_to(at.shape())?,
            };
            cpu::copy_one_by_one(
                at.shape(),
                size,
                (source, strides.strides()),
                (target, at.strides()),
            );
        }
    }
    Ok(true)
}

/// The values of an assignment to several positions: consecutive rows of elements, or one row for all.
struct Rows<'a> {
    /// The source array.
    held: Option<&'a Array>,
    pattern: [u64; 2],
    /// Elements in one row.
    width: usize,
}

impl<'a> Rows<'a> {
    /// `None` if the dtype or the shape of the value is not that of the indexed elements (rows of `rest` along `lead`), or if it shares memory with
    /// `x`.
    fn of(x: &Array, value: Operand<'a>, lead: &[usize], rest: &[usize]) -> Option<Rows<'a>> {
        let width = rest.iter().product();
        let mut pattern = [0; 2];
        match value {
            Operand::Number(number) => {
                let dtype = x.dtype();
                if !converts_without_error(dtype, number) {
                    return None;
                }
                // SAFETY: the pattern has 16 bytes, enough for every dtype.
                unsafe { number.write(dtype, pattern.as_mut_ptr().cast()) };
                Some(Rows {
                    held: None,
                    pattern,
                    width,
                })
            }
            Operand::Array(value) => {
                let is_like = value.ndim() == lead.len() + rest.len()
                    && value.shape().starts_with(lead)
                    && value.shape().ends_with(rest);
                let is_supported = is_like
                    && value.dtype() == x.dtype()
                    && can_use_fast_path(x, value)
                    && !Arc::ptr_eq(value.tensor().storage(), x.tensor().storage());
                is_supported.then_some(Rows {
                    held: Some(value),
                    pattern,
                    width,
                })
            }
        }
    }

    /// Writes row `i` to `to`.
    ///
    /// # Safety
    /// Row `i` exists and reading it is granted; `to` is valid for writing one row of elements of `size` bytes.
    #[inline]
    unsafe fn put(&self, i: usize, to: *mut u8, size: usize) {
        let bytes = self.width * size;
        // SAFETY: the caller's promise.
        unsafe {
            match self.held {
                Some(value) => {
                    let from = value.tensor().data_ptr().cast_const().add(i * bytes);
                    std::ptr::copy_nonoverlapping(from, to, bytes);
                }
                None => {
                    for k in 0..self.width {
                        let from = self.pattern.as_ptr().cast::<u8>();
                        std::ptr::copy_nonoverlapping(from, to.add(k * size), size);
                    }
                }
            }
        }
    }
}

/// The variables to read, without duplicates, and their number. `None` if the variable of the written array is among them.
fn reads_beside<'a>(
    x: &'a Array,
    indices: &[&'a Var],
    value: Option<&'a Array>,
) -> Option<([&'a Var; MAX_INDEX_ARRAYS + 1], usize)> {
    let own = x.tensor().storage().var();
    let (mut reads, mut count) = ([own; MAX_INDEX_ARRAYS + 1], 0);
    let value = value.map(|value| value.tensor().storage().var());
    for &var in indices.iter().chain(&value) {
        if std::ptr::eq(var, own) {
            return None;
        }
        if !reads[..count].iter().any(|seen| std::ptr::eq(*seen, var)) {
            reads[count] = var;
            count += 1;
        }
    }
    Some((reads, count))
}

/// `x[index] = value`, `x[rows, columns] = value`: positions on the first axes, given by small int64 arrays of one shape. Nothing is written if
/// a position is out of bounds. See [`put_number`].
pub fn put_positions(x: &Array, indices: &[&Array], value: Operand) -> bool {
    if let (&[index], 1) = (indices, x.ndim()) {
        return put_on_row(x, index, value);
    }
    let k = indices.len();
    let (Some(first), true) = (indices.first(), k <= MAX_INDEX_ARRAYS && k <= x.ndim()) else {
        return false;
    };
    let (axes, rest) = x.shape().split_at(k);
    let size = x.dtype().size();
    let row_bytes = rest.iter().product::<usize>() * size;
    if !is_writable(x)
        || !x.layout().is_contiguous()
        || first.len() > MAX_FAST_PATH_BYTES / 8
        || first.len() * row_bytes > MAX_FAST_PATH_BYTES
    {
        return false;
    }
    let Some((vars, num_vars)) = vars_of(x, indices) else {
        return false;
    };
    let Some(rows) = Rows::of(x, value, first.shape(), rest) else {
        return false;
    };
    let Some((reads, count)) = reads_beside(x, &vars[..num_vars], rows.held) else {
        return false;
    };
    let storage = x.tensor().storage();
    let writes = [(storage.var(), Access::Write)];
    let Some(guard) = engine().try_acquire(&reads[..count], &writes, first.len() as u64 + 1) else {
        return false;
    };
    if guard.poison().is_some() {
        return false;
    }
    // SAFETY: `guard` grants the reads.
    let Some(selected) = (unsafe { row_positions(axes, indices) }) else {
        return false;
    };
    storage.bump_version();
    let to = x.tensor().data_ptr();
    for (i, &row) in selected.iter().enumerate() {
        // SAFETY: `row` is a row of the dense `x`; `guard` grants the reads and the write.
        unsafe { rows.put(i, to.add(row * row_bytes), size) };
    }
    true
}
