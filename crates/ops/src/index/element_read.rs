//! Fast paths of `x[index]` and `x[mask]` for small dense arrays while nothing is recorded. The fast paths of assignments are in `element_write.rs`.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use mxnet_engine::{Access, Var, engine};
use mxnet_kernels::index::{mask_starts, select};
use mxnet_tensor::{DType, DeviceKind, Dims, Layout, Scalar, Source, Tensor};
use smallvec::SmallVec;

use crate::Array;
use crate::array::count_host_read;
use crate::error::Result;
use crate::inline_scalar::InlineScalar;
use crate::launch::Pool;
use crate::mode::Flags;
use crate::read::read_all;
use crate::seqlock_read::{StackBuffer, seqlock_read};

/// Size limit in bytes of a result, and of the positions, mask or values of an assignment. Up to this size, checking and copying in one pass is
/// faster than calls of operators.
pub(super) const MAX_FAST_PATH_BYTES: usize = 16 * 1024;

/// Whether both are dense arrays on the CPU and no tape or interpreter is active.
pub(super) fn can_use_fast_path(x: &Array, y: &Array) -> bool {
    let dense = |x: &Array| {
        x.layout().is_contiguous() && x.device().kind() == DeviceKind::Cpu && !x.is_weak()
    };
    Flags::current().allows_copies() && dense(x) && dense(y)
}

/// A copy of an index array or mask, if code outside the library can write to it: its elements are read twice, when they are checked and when they
/// are used. `None` if no other code can write to it. It may still be exported before the caller holds it, so the caller checks again then.
///
/// # Errors
/// [`crate::Error::Memory`].
pub(super) fn private_copy(index: &Array) -> Result<Option<Array>> {
    let is_shared = index.tensor().storage().is_shared_while_held();
    is_shared.then(|| index.copy()).transpose()
}

/// Largest number of index arrays that the fast path takes.
pub(super) const MAX_INDEX_ARRAYS: usize = 4;

/// `x[index]`, `x[rows, columns]`, `x[:, index]`: positions on the axes from `axis` on, given by small int64 arrays of one shape. `None`: take
/// the general path, which also reports errors.
///
/// # Errors
/// [`crate::Error::Memory`].
pub fn take_positions(x: &Array, axis: usize, indices: &[&Array]) -> Result<Option<Array>> {
    if let (&[index], 1) = (indices, x.ndim()) {
        let mut dest = MaybeUninit::uninit();
        // SAFETY: `elements_to` returns whether it has written the array.
        return Ok(elements_to(x, index, &mut dest)?.then(|| unsafe { dest.assume_init() }));
    }
    let k = indices.len();
    let (Some(first), true) = (
        indices.first(),
        k <= MAX_INDEX_ARRAYS && axis + k <= x.ndim(),
    ) else {
        return Ok(None);
    };
    let (lead, rest) = x.shape().split_at(axis);
    let (axes, rest) = rest.split_at(k);
    let outer: usize = lead.iter().product();
    let width = rest.iter().product::<usize>() * x.dtype().size();
    let n = first.len();
    if outer * n * width > MAX_FAST_PATH_BYTES || n > MAX_FAST_PATH_BYTES / 8 {
        return Ok(None);
    }
    let Some((vars, num_vars)) = vars_of(x, indices) else {
        return Ok(None);
    };
    let mut reads = [x.tensor().storage().var(); MAX_INDEX_ARRAYS + 1];
    reads[1..].copy_from_slice(&vars);
    let is_own = vars[..num_vars]
        .iter()
        .any(|var| std::ptr::eq(*var, reads[0]));
    let reads = &reads[usize::from(is_own)..=num_vars];
    let bytes = (outer * n * width) as u64;
    let Some(guard) = engine().try_acquire(reads, &[], bytes + 1) else {
        return Ok(None);
    };
    if guard.poison().is_some() {
        return Ok(None);
    }
    // SAFETY: `guard` grants the reads.
    let Some(rows) = (unsafe { row_positions(axes, indices) }) else {
        return Ok(None);
    };
    let mut shape = Dims::from_slice(lead);
    shape.extend_from_slice(first.shape());
    shape.extend_from_slice(rest);
    let result = Tensor::empty(&shape, x.dtype(), x.device())?;
    let block = axes.iter().product::<usize>() * width;
    for o in 0..outer {
        let (src, dst) = (
            x.tensor().data_ptr().wrapping_add(o * block),
            result.data_ptr().wrapping_add(o * n * width),
        );
        macro_rules! copy {
            ($word:ty) => {
                for (p, &row) in rows.iter().enumerate() {
                    // SAFETY: `row` is a row of this block of `x`; both arrays are dense, with rows as wide as this word.
                    unsafe { *dst.cast::<$word>().add(p) = *src.cast::<$word>().add(row) };
                }
            };
        }
        match (width, x.dtype().size()) {
            (1, _) => copy!(u8),
            (2, 2) => copy!(u16),
            (4, 4) => copy!(u32),
            (8, 8) => copy!(u64),
            (16, 4 | 8 | 16) => copy!([u32; 4]),
            _ => {
                for (p, &row) in rows.iter().enumerate() {
                    // SAFETY: as above, row by row.
                    unsafe {
                        std::ptr::copy_nonoverlapping(
                            src.add(row * width),
                            dst.add(p * width),
                            width,
                        )
                    };
                }
            }
        }
    }
    drop(guard);
    Ok(Some(Array::from_tensor(result)))
}

/// The variables of index arrays of int64 and one shape, without duplicates, and their number. `None`: take the general path.
pub(super) fn vars_of<'a>(
    x: &Array,
    indices: &[&'a Array],
) -> Option<([&'a Var; MAX_INDEX_ARRAYS], usize)> {
    let first = indices.first()?;
    let (mut vars, mut count) = ([first.tensor().storage().var(); MAX_INDEX_ARRAYS], 0);
    for index in indices {
        if index.dtype() != DType::I64
            || index.shape() != first.shape()
            || !can_use_fast_path(x, index)
        {
            return None;
        }
        let var = index.tensor().storage().var();
        if !vars[..count].iter().any(|seen| std::ptr::eq(*seen, var)) {
            vars[count] = var;
            count += 1;
        }
    }
    Some((vars, count))
}

/// The row number of each position within a block of rows over axes of these lengths; `None` if a position is out of bounds.
///
/// # Safety
/// [`vars_of`] accepted these arrays, and reading them is granted.
pub(super) unsafe fn row_positions(
    axes: &[usize],
    indices: &[&Array],
) -> Option<SmallVec<[usize; 32]>> {
    let mut rows = SmallVec::<[usize; 32]>::new();
    let mut all_inside = true;
    for (i, (&len, index)) in axes.iter().zip(indices).enumerate() {
        // SAFETY: dense int64 elements, which may be read.
        let positions = unsafe {
            std::slice::from_raw_parts(index.tensor().data_ptr().cast::<i64>(), index.len())
        };
        let resolved = positions.iter().map(|&p| {
            let p = if p < 0 { p.wrapping_add(len as i64) } else { p } as u64;
            all_inside &= p < len as u64;
            p as usize
        });
        if i == 0 {
            rows.extend(resolved);
        } else {
            for (row, p) in rows.iter_mut().zip(resolved) {
                *row = row.wrapping_mul(len).wrapping_add(p);
            }
        }
    }
    all_inside.then_some(rows)
}

/// `x[index]` for a small int64 array, over the flattened `x`: positions are checked and elements copied to `to` in one pass. Returns whether it was
/// done; if not, take the general path.
///
/// # Errors
/// [`crate::Error::Memory`].
pub fn elements_to(x: &Array, index: &Array, to: &mut MaybeUninit<Array>) -> Result<bool> {
    let (n, size) = (index.len(), x.dtype().size());
    if index.dtype() != DType::I64
        || n * size > MAX_FAST_PATH_BYTES
        || n > MAX_FAST_PATH_BYTES / 8
        || !can_use_fast_path(x, index)
    {
        return Ok(false);
    }
    let private = match n * size_of::<i64>() > size_of::<StackBuffer>() {
        true => private_copy(index)?,
        false => None,
    };
    let index = private.as_ref().unwrap_or(index);
    let (vars, bytes) = (
        [x.tensor().storage().var(), index.tensor().storage().var()],
        (n * size) as u64 + 1,
    );
    let mut copied = StackBuffer::new();
    let (first, num_held) = match copied.copy(index) {
        Some(first) => (first, 1),
        None if std::ptr::eq(vars[0], vars[1]) => (index.tensor().data_ptr().cast_const(), 1),
        None => (index.tensor().data_ptr().cast_const(), 2),
    };
    let result = Source::fresh(n, x.dtype(), x.device())?;
    let (src, dst, len) = (
        x.tensor().data_ptr(),
        result.storage().ptr(),
        x.len() as u64,
    );
    let gather = || {
        // SAFETY: int64 elements, copied or granted to read.
        let positions = unsafe { std::slice::from_raw_parts(first.cast::<i64>(), n) };
        macro_rules! copy {
            ($word:ty) => {
                positions.iter().enumerate().all(|(i, &p)| {
                    let p = if p < 0 { (p as u64).wrapping_add(len) } else { p as u64 };
                    let is_inside = p < len;
                    if is_inside {
                        // SAFETY: `p` is within the dense elements of `x`, `i` within those of the result, and both are as wide as this word.
                        unsafe { *dst.cast::<$word>().add(i) = *src.cast::<$word>().add(p as usize) };
                    }
                    is_inside
                })
            };
        }
        match size {
            1 => copy!(u8),
            2 => copy!(u16),
            4 => copy!(u32),
            8 => copy!(u64),
            _ => copy!([u64; 2]),
        }
    };
    let all_inside = if num_held == 1 {
        let Some(_hold) = engine().try_hold(vars[0], Access::Read, bytes) else {
            return Ok(false);
        };
        if std::ptr::eq(vars[0], vars[1]) && index.tensor().storage().is_shared_while_held() {
            return Ok(false);
        }
        gather()
    } else {
        let Some(guard) = engine().try_acquire(&vars, &[], bytes) else {
            return Ok(false);
        };
        if guard.poison().is_some() || index.tensor().storage().is_shared_while_held() {
            return Ok(false);
        }
        gather()
    };
    let like = |to: &mut MaybeUninit<Layout>| {
        index.layout().copy_dense_to(to);
        true
    };
    // SAFETY: the result has one dense element for each position, and `to` has room for an array.
    Ok(all_inside && unsafe { Array::write_view(result, like, to.as_mut_ptr()) })
}

/// Reads the element at offset `offset` of the storage of `x` into `to`. Returns whether it did; if not, take the general path.
///
/// # Safety
/// `offset` is the offset of an element of `x`, from [`Layout::offset_of`] or a layout derived from that of `x`.
#[inline]
pub unsafe fn element(x: &Array, offset: usize, to: &mut MaybeUninit<InlineScalar>) -> bool {
    if x.is_weak() || x.device().kind() != DeviceKind::Cpu || !Flags::current().allows_copies() {
        return false;
    }
    // SAFETY: `offset` is within the storage by the caller's promise.
    unsafe {
        let at = x.tensor().storage().ptr().add(offset * x.dtype().size());
        InlineScalar::read(to, x, at)
    }
}

/// The element at offset `offset` of the storage of `x`. `None`: a writer holds or awaits the storage, or it is not on the CPU.
///
/// # Safety
/// As [`element`].
#[inline]
pub unsafe fn read(x: &Array, offset: usize) -> Option<Scalar> {
    if x.device().kind() != DeviceKind::Cpu {
        return None;
    }
    count_host_read();
    let (size, mut bytes) = (x.dtype().size(), [0_u64; 2]);
    let to = bytes.as_mut_ptr().cast::<u8>();
    // SAFETY: 1. `offset` is within the storage by the caller's promise. 2. no element has more than 16 bytes.
    unsafe {
        let at = x.tensor().storage().ptr().add(offset * size);
        seqlock_read(x, at, to, size).then(|| Scalar::read(x.dtype(), to))
    }
}

/// The value of an array of one element. `None`: as [`read`].
#[inline]
pub fn only_element(x: &Array) -> Option<Scalar> {
    debug_assert_eq!(x.len(), 1);
    // SAFETY: the first element of an array that has one.
    unsafe { read(x, x.layout().offset()) }
}

/// A buffer on the stack for the bytes of small arrays.
pub type ByteBuffer = [MaybeUninit<u128>; 64];

/// Copies the elements of a small array to the start of the buffer, if the array is in C order and can be read without waiting. Returns whether it
/// did.
#[inline]
pub fn copy_bytes(x: &Array, buffer: &mut ByteBuffer) -> bool {
    if x.len() * x.dtype().size() > size_of::<ByteBuffer>() {
        return false;
    }
    let copied = with_bytes(x, |bytes| {
        // SAFETY: the buffer holds as many bytes as the elements have, as checked above.
        unsafe {
            buffer
                .as_mut_ptr()
                .cast::<u8>()
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    });
    copied.is_some()
}

/// Calls `look` with the bytes of an array, if it is in C order and can be read without waiting. `None` otherwise, and if an interpreter has to
/// know of the read.
#[inline]
pub fn with_bytes<R>(x: &Array, look: impl FnOnce(&[u8]) -> R) -> Option<R> {
    if !x.layout().is_contiguous()
        || x.device().kind() != DeviceKind::Cpu
        || Flags::current().is_stacked()
    {
        return None;
    }
    count_host_read();
    let len_bytes = x.len() * x.dtype().size();
    let var = x.tensor().storage().var();
    let hold = engine().try_hold(var, Access::Read, len_bytes as u64 / 8 + 1)?;
    let bytes = match len_bytes {
        0 => &[][..],
        // SAFETY: the elements are dense, and `hold` grants the read.
        _ => unsafe { std::slice::from_raw_parts(x.tensor().data_ptr().cast_const(), len_bytes) },
    };
    let made = look(bytes);
    drop(hold);
    Some(made)
}

/// `x[mask]` for a mask of the array's shape. `None`: take the general path.
pub(super) fn masked(x: &Array, mask: &Array) -> Result<Option<Array>> {
    if mask.dtype() != DType::Bool
        || mask.shape() != x.shape()
        || x.ndim() == 0
        || !can_use_fast_path(x, mask)
    {
        return Ok(None);
    }
    let private = private_copy(mask)?;
    let mask = private.as_ref().unwrap_or(mask);
    let held = read_all([mask, x])?;
    if mask.tensor().storage().is_shared_while_held() {
        return Ok(None);
    }
    let (n, size) = (x.len(), x.dtype().size());
    let bytes = mask.tensor().data_ptr();
    // SAFETY: the mask is dense, and `held` grants the read.
    let (starts, count) = unsafe { mask_starts(&Pool, bytes, n) };
    let result = Tensor::empty(&[count], x.dtype(), x.device())?;
    // SAFETY: both arrays are dense and of one length, and `held` grants the reads; the result has one element for each true of the mask, and no other
    // reference to it exists.
    unsafe {
        select(
            &Pool,
            size,
            n,
            bytes,
            &starts,
            x.tensor().data_ptr(),
            result.data_ptr(),
        )
    };
    drop(held);
    Ok(Some(Array::from_tensor(result)))
}
