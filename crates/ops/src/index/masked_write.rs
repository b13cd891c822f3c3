//! Fast paths of small writes where a mask is true or at positions: `x[mask] = value`, `v[index] = value`, `put`, `position`, `putmask`, `copyto`
//! under a mask, `put_along_axis`.
//!
//! Each returns whether it wrote; if not, nothing has changed, and the general path does the work or reports the error.
#![allow(unsafe_code)]

use std::sync::Arc;

use mxnet_engine::{Access, Var, engine};
use mxnet_tensor::{DType, DeviceKind, Scalar};

use super::element_read::MAX_FAST_PATH_BYTES;
use super::element_write::converts_without_error;
use crate::array::count_host_read;
use crate::mode::Flags;
use crate::seqlock_read::StackBuffer;
use crate::{Array, Operand};

/// Which of the values is written to a selected element of the target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Taken {
    /// The value at the element's own position, modulo the number of values: `putmask`.
    ByPosition,
    /// The next value, starting over after the last one: `position`.
    InTurn,
    /// As `InTurn`, for one value or exactly as many values as elements are selected: `x[mask] = value`.
    Exactly,
}

/// Whether `x` is a dense array on the CPU.
fn is_dense(x: &Array) -> bool {
    x.layout().is_contiguous() && x.device().kind() == DeviceKind::Cpu && !x.is_weak()
}

/// Whether the elements of `x` have at most [`MAX_FAST_PATH_BYTES`] bytes.
fn fits_fast_path(x: &Array) -> bool {
    is_dense(x) && x.len() * x.dtype().size() <= MAX_FAST_PATH_BYTES
}

/// Calls `write` with the addresses of the target's first element, of the first element of `chooser` (a small mask or positions), of the first value,
/// and the number of values, if all arrays are dense, can be held without waiting and do not share memory. Returns the result of `write`.
#[inline]
fn with_pointers(
    x: &Array,
    chooser: &Array,
    values: Operand,
    write: impl FnOnce(*mut u8, *const u8, *const u8, usize) -> bool,
) -> bool {
    let target = x.tensor().storage();
    if !Flags::current().allows_copies()
        || !is_dense(x)
        || !fits_fast_path(chooser)
        || x.tensor().is_read_only()
        || Arc::ptr_eq(chooser.tensor().storage(), target)
    {
        return false;
    }
    let mut pattern = [0_u64; 2];
    let (mut chosen, mut taken) = (StackBuffer::new(), StackBuffer::new());
    let mut reads: [&Var; 2] = [chooser.tensor().storage().var(); 2];
    let mut num_reads = 0;
    let copied = chosen.copy(chooser);
    let is_copied = copied.is_some();
    let chosen = match copied {
        Some(copied) => copied,
        None => {
            num_reads = 1;
            chooser.tensor().data_ptr()
        }
    };
    let (from, count) = match values {
        Operand::Number(number) => {
            if !converts_without_error(x.dtype(), number) {
                return false;
            }
            let pattern = pattern.as_mut_ptr().cast::<u8>();
            // SAFETY: the pattern has 16 bytes, enough for every dtype.
            unsafe { number.write(x.dtype(), pattern) };
            (pattern.cast_const(), 1)
        }
        Operand::Array(values) => {
            let storage = values.tensor().storage();
            if values.dtype() != x.dtype()
                || values.is_empty()
                || !fits_fast_path(values)
                || Arc::ptr_eq(storage, target)
            {
                return false;
            }
            let from = taken.copy(values).unwrap_or_else(|| {
                if num_reads == 0 || !Arc::ptr_eq(storage, chooser.tensor().storage()) {
                    reads[num_reads] = storage.var();
                    num_reads += 1;
                }
                values.tensor().data_ptr()
            });
            (from, values.len())
        }
    };
    let work = chooser.len() as u64 + 1;
    let write = || {
        let is_done = write(x.tensor().data_ptr(), chosen, from, count);
        if is_done {
            target.bump_version();
        }
        is_done
    };
    if num_reads == 0 {
        let hold = engine().try_hold(target.var(), Access::Write, work);
        return hold.is_some_and(|_hold| write());
    }
    let writes = [(target.var(), Access::Write)];
    let Some(guard) = engine().try_acquire(&reads[..num_reads], &writes, work) else {
        return false;
    };
    // Code outside the library could change positions between the check and the write.
    let may_change = !is_copied && chooser.tensor().storage().is_shared_while_held();
    if guard.poison().is_some() || may_change {
        return false;
    }
    write()
}

/// Copies an element of `size` bytes.
///
/// # Safety
/// `from` is valid for reading and `to` for writing `size` bytes; `size` is that of a dtype.
#[inline(always)]
unsafe fn copy(size: usize, from: *const u8, to: *mut u8) {
    // SAFETY: the caller's promise. A copy of constant length compiles to one instruction.
    unsafe {
        match size {
            1 => *to = *from,
            2 => from.copy_to_nonoverlapping(to, 2),
            4 => from.copy_to_nonoverlapping(to, 4),
            8 => from.copy_to_nonoverlapping(to, 8),
            _ => from.copy_to_nonoverlapping(to, 16),
        }
    }
}

/// Writes values where a mask of as many elements is true.
pub fn put_where(x: &Array, mask: &Array, values: Operand, taken: Taken) -> bool {
    let (n, size) = (x.len(), x.dtype().size());
    let wanted = match (values, taken) {
        (Operand::Array(values), Taken::Exactly) if values.ndim() != 1 => return false,
        (Operand::Array(values), Taken::Exactly) => Some(values.len()),
        _ => None,
    };
    if mask.dtype() != DType::Bool || mask.len() != n {
        return false;
    }
    with_pointers(x, mask, values, |to, mask, from, count| {
        if taken == Taken::InTurn {
            count_host_read();
        }
        // SAFETY: the bytes of the mask, 0 or 1.
        let mask = unsafe { std::slice::from_raw_parts(mask, n) };
        let num_meant = || mask.iter().filter(|&&is_meant| is_meant != 0).count();
        if wanted.is_some_and(|wanted| wanted != num_meant()) {
            return false;
        }
        let mut next = 0;
        for (i, &is_meant) in mask.iter().enumerate() {
            if is_meant != 0 {
                // SAFETY: element `i` of the target, and one of the `count` values; the memory is not shared.
                unsafe { copy(size, from.add(next * size), to.add(i * size)) };
            }
            if is_meant != 0 || taken == Taken::ByPosition {
                next = if next + 1 == count { 0 } else { next + 1 };
            }
        }
        true
    })
}

/// The `n` int64 elements at `first`, if all are valid positions on an axis of length `len`.
///
/// # Safety
/// The elements are dense and may be read as long as the result lives.
#[inline]
unsafe fn positions_on<'a>(first: *const u8, n: usize, len: usize) -> Option<&'a [i64]> {
    // SAFETY: the caller's promise.
    let positions = unsafe { std::slice::from_raw_parts(first.cast::<i64>(), n) };
    let len = len as i64;
    positions
        .iter()
        .all(|&p| -len <= p && p < len)
        .then_some(positions)
}

/// Writes values at positions of the flattened array; values start over if there are fewer of them than positions.
pub fn put_at(x: &Array, positions: &Array, values: Operand) -> bool {
    if positions.is_empty() || x.ndim() == 0 {
        return false;
    }
    let is_done = put_at_positions(x, positions, values);
    if is_done {
        count_host_read();
    }
    is_done
}

/// `v[index] = value` for a 1-d array, with one number or one value for each position.
pub(super) fn put_on_row(x: &Array, index: &Array, value: Operand) -> bool {
    !matches!(value, Operand::Array(value) if value.shape() != index.shape())
        && put_at_positions(x, index, value)
}

fn put_at_positions(x: &Array, positions: &Array, values: Operand) -> bool {
    let (n, size) = (x.len(), x.dtype().size());
    if positions.dtype() != DType::I64 {
        return false;
    }
    with_pointers(x, positions, values, |to, first, from, count| {
        // SAFETY: `with_pointers` checked that they are dense and may be read.
        let Some(positions) = (unsafe { positions_on(first, positions.len(), n) }) else {
            return false;
        };
        let mut next = 0;
        for &p in positions {
            let p = if p < 0 { p + n as i64 } else { p } as usize;
            // SAFETY: `p` is within the target, `next` within the `count` values; the memory is not shared.
            unsafe { copy(size, from.add(next * size), to.add(p * size)) };
            next = if next + 1 == count { 0 } else { next + 1 };
        }
        true
    })
}

/// Writes a number, or one value for each position, at positions along an axis; the other axes have the lengths of the array.
pub fn put_along(x: &Array, positions: &Array, axis: isize, values: Operand) -> bool {
    let (ndim, size) = (x.ndim(), x.dtype().size());
    let axis = if axis < 0 { axis + ndim as isize } else { axis };
    let is_like = |other: &Array| other.ndim() == 0 || other.shape() == positions.shape();
    if positions.dtype() != DType::I64
        || positions.is_empty()
        || positions.ndim() != ndim
        || !(0..ndim as isize).contains(&axis)
        || matches!(values, Operand::Array(values) if !is_like(values))
    {
        return false;
    }
    let axis = axis as usize;
    let (lead, rest) = x.shape().split_at(axis);
    let (own_lead, own_rest) = positions.shape().split_at(axis);
    if lead != own_lead || rest[1..] != own_rest[1..] {
        return false;
    }
    let (len, lines, inner) = (rest[0], own_rest[0], rest[1..].iter().product::<usize>());
    with_pointers(x, positions, values, |to, first, from, count| {
        count_host_read();
        // SAFETY: `with_pointers` checked that they are dense and may be read.
        let Some(positions) = (unsafe { positions_on(first, positions.len(), len) }) else {
            return false;
        };
        let step = usize::from(count > 1);
        for (i, &p) in positions.iter().enumerate() {
            let p = if p < 0 { p + len as i64 } else { p } as usize;
            let (block, column) = (i / (lines * inner), i % inner);
            let position = (block * len + p) * inner + column;
            // SAFETY: 1. the axes before and behind are those of the positions, and `p` is on this one. 2. there is one value, or one for each
            // position. 3. the memory is not shared.
            unsafe { copy(size, from.add(i * step * size), to.add(position * size)) };
        }
        true
    })
}

/// Whether a Python number may be cast to this dtype under the rule 'same_kind'.
#[must_use]
pub fn is_same_kind(number: Scalar, dtype: DType) -> bool {
    number.kind() <= dtype.kind()
}
