//! The short ways of `x[index]` and `x[mask]`: dense arrays, nothing recorded, no operators in between.
#![allow(unsafe_code)]

use std::sync::Arc;

use mxnet_engine::{Access, engine};
use mxnet_kernels::index::{mask_starts, select};
use mxnet_tensor::{DType, DeviceKind, Dims, Kind, Layout, Scalar, Storage, Tensor};
use smallvec::SmallVec;

use crate::eager::Pool;
use crate::error::Result;
use crate::interp::Flags;
use crate::types::check_element;
use crate::{Array, cpu};

/// Up to this many bytes of result checking and copying at once cost less than operators.
const SMALL_BYTES: usize = 16 * 1024;

/// Whether both are dense arrays of the CPU and nothing records or intercepts.
fn is_open(x: &Array, y: &Array) -> bool {
    let dense = |x: &Array| {
        x.layout().is_contiguous() && x.device().kind() == DeviceKind::Cpu && !x.is_weak()
    };
    Flags::current().is_plain() && dense(x) && dense(y)
}

/// Most index arrays that go this way.
const MOST: usize = 4;

/// `x[index]`, `x[rows, columns]`, `x[:, index]`: few positions on the axes from `axis` on, from int64 arrays of one shape. `None`: take the
/// general way, which also says what is wrong.
///
/// # Errors
/// [`crate::Error::Memory`].
pub fn picked(x: &Array, axis: usize, indices: &[&Array]) -> Result<Option<Array>> {
    if let (&[index], 1) = (indices, x.ndim()) {
        return elements(x, index);
    }
    let k = indices.len();
    let (Some(first), true) = (indices.first(), k <= MOST && axis + k <= x.ndim()) else {
        return Ok(None);
    };
    let (lead, rest) = x.shape().split_at(axis);
    let (axes, rest) = rest.split_at(k);
    let outer: usize = lead.iter().product();
    let width = rest.iter().product::<usize>() * x.dtype().size();
    let n = first.len();
    if outer * n * width > SMALL_BYTES || n > SMALL_BYTES / 8 {
        return Ok(None);
    }
    let mut reads = [x.tensor().storage().var(); MOST + 1];
    let mut num_reads = 1;
    for index in indices {
        if index.dtype() != DType::I64 || index.shape() != first.shape() || !is_open(x, index) {
            return Ok(None);
        }
        let var = index.tensor().storage().var();
        if !reads[..num_reads]
            .iter()
            .any(|read| std::ptr::eq(*read, var))
        {
            reads[num_reads] = var;
            num_reads += 1;
        }
    }
    let bytes = (outer * n * width) as u64;
    let Some(guard) = engine().try_acquire(&reads[..num_reads], &[], bytes + 1) else {
        return Ok(None);
    };
    if guard.poison().is_some() {
        return Ok(None);
    }
    // Where in each block of rows the row of a position begins, in rows.
    let mut places = SmallVec::<[usize; 32]>::new();
    let mut all_inside = true;
    for (i, (&len, index)) in axes.iter().zip(indices).enumerate() {
        // SAFETY: dense int64 elements, which `guard` grants to read.
        let positions =
            unsafe { std::slice::from_raw_parts(index.tensor().data_ptr().cast::<i64>(), n) };
        let resolved = positions.iter().map(|&p| {
            let p = if p < 0 { p.wrapping_add(len as i64) } else { p } as u64;
            all_inside &= p < len as u64;
            p as usize
        });
        if i == 0 {
            places.extend(resolved);
        } else {
            for (place, p) in places.iter_mut().zip(resolved) {
                *place = place.wrapping_mul(len).wrapping_add(p);
            }
        }
    }
    if !all_inside {
        return Ok(None);
    }
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
                for (p, &place) in places.iter().enumerate() {
                    // SAFETY: every place is a row of this block of `x`; both arrays are dense, with rows as wide as this word.
                    unsafe { *dst.cast::<$word>().add(p) = *src.cast::<$word>().add(place) };
                }
            };
        }
        match (width, x.dtype().size()) {
            (1, _) => copy!(u8),
            (2, 2) => copy!(u16),
            (4, 4) => copy!(u32),
            (8, 8) => copy!(u64),
            _ => {
                for (p, &place) in places.iter().enumerate() {
                    // SAFETY: as above, row by row.
                    unsafe {
                        std::ptr::copy_nonoverlapping(
                            src.add(place * width),
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

/// `x[index]` of a row: few elements, checked and copied at once. `None`: take the general way.
fn elements(x: &Array, index: &Array) -> Result<Option<Array>> {
    let (n, size) = (index.len(), x.dtype().size());
    if index.dtype() != DType::I64
        || n * size > SMALL_BYTES
        || n > SMALL_BYTES / 8
        || !is_open(x, index)
    {
        return Ok(None);
    }
    let reads = [x.tensor().storage().var(), index.tensor().storage().var()];
    let is_lone = std::ptr::eq(reads[0], reads[1]);
    let bytes = (n * size) as u64 + 1;
    let Some(guard) = engine().try_acquire(&reads[usize::from(is_lone)..], &[], bytes) else {
        return Ok(None);
    };
    if guard.poison().is_some() {
        return Ok(None);
    }
    let result = Tensor::empty_dense(index.layout(), x.dtype(), x.device())?;
    let (src, dst, len) = (x.tensor().data_ptr(), result.data_ptr(), x.len() as u64);
    // SAFETY: dense int64 elements, which `guard` grants to read.
    let positions =
        unsafe { std::slice::from_raw_parts(index.tensor().data_ptr().cast::<i64>(), n) };
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
    let all_inside = match size {
        1 => copy!(u8),
        2 => copy!(u16),
        4 => copy!(u32),
        8 => copy!(u64),
        _ => copy!([u64; 2]),
    };
    drop(guard);
    Ok(all_inside.then(|| Array::from_tensor(result)))
}

/// The element at a place of the storage of `x`, in memory of its own. `None`: take the general way.
///
/// # Safety
/// The place is that of an element of `x`: [`Layout::place_of`], or the offset of a layout taken of its own.
#[inline]
pub unsafe fn element(x: &Array, place: usize) -> Option<Arc<Storage>> {
    if x.is_weak() || x.device().kind() != DeviceKind::Cpu || !Flags::current().is_plain() {
        return None;
    }
    let storage = x.tensor().storage();
    let guard = engine().try_acquire(&[storage.var()], &[], 1)?;
    if guard.poison().is_some() {
        return None;
    }
    let size = x.dtype().size();
    // SAFETY: 1. the place is inside, the caller says. 2. `guard` grants the read.
    let element = unsafe {
        Storage::of_element(
            storage.ptr().cast_const().add(place * size),
            size,
            x.device(),
        )
    };
    drop(guard);
    Some(element)
}

/// Whether elements of `x` may be written at once: on the CPU, not locked, nothing recorded.
fn is_writable(x: &Array) -> bool {
    Flags::current().is_plain()
        && !x.is_weak()
        && x.device().kind() == DeviceKind::Cpu
        && !x.tensor().is_read_only()
}

/// `x[key] = number` for few elements, which a layout shows of `x`. Answers whether that was done; if not, the general way does it, or says why
/// it cannot be done.
#[inline]
pub fn put_number(x: &Array, at: Layout, number: Scalar) -> bool {
    let fits = x.dtype().is_complex() || number.kind() != Kind::Complex;
    is_writable(x)
        && fits
        && check_element("assignment", number, x.dtype()).is_ok()
        && cpu::fill_small(&x.tensor().with_layout(at), number)
}

/// Writes a number over the element at a place of the storage of `x`; as [`put_number`].
///
/// # Safety
/// As [`element`].
#[inline]
pub unsafe fn put_element(x: &Array, place: usize, number: Scalar) -> bool {
    let (storage, dtype) = (x.tensor().storage(), x.dtype());
    let fits = dtype.is_complex() || number.kind() != Kind::Complex;
    if !is_writable(x) || !fits || check_element("assignment", number, dtype).is_err() {
        return false;
    }
    let Some(guard) = engine().try_acquire(&[], &[(storage.var(), Access::Write)], 1) else {
        return false;
    };
    if guard.poison().is_some() {
        return false;
    }
    storage.bump_version();
    // SAFETY: the place is inside, the caller says; `guard` grants the write.
    unsafe { number.write(dtype, storage.ptr().add(place * dtype.size())) };
    true
}

/// Copies the element that `value` is over the one at a place of the storage of `x`, if they are of one dtype; as [`put_number`].
///
/// # Safety
/// As [`element`].
#[inline]
pub unsafe fn copy_element(x: &Array, place: usize, value: &Array) -> bool {
    let (from, to) = (value.tensor().storage(), x.tensor().storage());
    if value.ndim() > 0
        || !is_writable(x)
        || value.is_weak()
        || value.dtype() != x.dtype()
        || value.device() != x.device()
        || Arc::ptr_eq(from, to)
    {
        return false;
    }
    let writes = [(to.var(), Access::Write)];
    let Some(guard) = engine().try_acquire(&[from.var()], &writes, 1) else {
        return false;
    };
    if guard.poison().is_some() {
        return false;
    }
    to.bump_version();
    let size = x.dtype().size();
    // SAFETY: 1. the places are inside of two storages. 2. `guard` grants the read and the write.
    unsafe {
        let target = to.ptr().add(place * size);
        std::ptr::copy_nonoverlapping(value.tensor().data_ptr().cast_const(), target, size);
    }
    true
}

/// `x[key] = value` for few elements of one dtype; as [`put_number`].
///
/// # Errors
/// None is expected.
#[inline]
pub fn put_few(x: &Array, at: &Layout, value: &Array) -> Result<bool> {
    let (from, to) = (value.tensor().storage(), x.tensor().storage());
    if !is_writable(x)
        || value.is_weak()
        || value.dtype() != x.dtype()
        || value.device() != x.device()
        || at.len() > cpu::FEW
        || (value.shape() != at.shape() && value.ndim() > 0)
        || Arc::ptr_eq(from, to)
    {
        return Ok(false);
    }
    let source = match value.shape() == at.shape() {
        true => value.layout().clone(),
        false => value.layout().broadcast_to(at.shape())?,
    };
    let writes = [(to.var(), Access::Write)];
    let Some(guard) = engine().try_acquire(&[from.var()], &writes, at.len() as u64) else {
        return Ok(false);
    };
    if guard.poison().is_some() {
        return Ok(false);
    }
    to.bump_version();
    let size = x.dtype().size();
    // SAFETY: 1. both layouts lie within their storages, which are not the same. 2. `guard` grants the read and the write.
    unsafe {
        cpu::copy_few(
            at.shape(),
            size,
            (value.tensor().data_ptr().cast_const(), source.strides()),
            (to.ptr().add(at.offset() * size), at.strides()),
        );
    }
    Ok(true)
}

/// `x[mask] = number` for a small dense array and a mask of its shape; as [`put_number`].
pub fn put_masked(x: &Array, mask: &Array, number: Scalar) -> bool {
    let (n, size) = (x.len(), x.dtype().size());
    let fits = x.dtype().is_complex() || number.kind() != Kind::Complex;
    if !is_writable(x)
        || !fits
        || n * size > SMALL_BYTES
        || mask.dtype() != DType::Bool
        || mask.shape() != x.shape()
        || !is_open(x, mask)
        || check_element("assignment", number, x.dtype()).is_err()
        || Arc::ptr_eq(mask.tensor().storage(), x.tensor().storage())
    {
        return false;
    }
    let storage = x.tensor().storage();
    let writes = [(storage.var(), Access::Write)];
    let reads = [mask.tensor().storage().var()];
    let Some(guard) = engine().try_acquire(&reads, &writes, n as u64 + 1) else {
        return false;
    };
    if guard.poison().is_some() {
        return false;
    }
    storage.bump_version();
    let mut pattern = [0_u64; 2];
    let pattern = pattern.as_mut_ptr().cast::<u8>();
    let to = x.tensor().data_ptr();
    // SAFETY: 1. the pattern has 16 bytes, enough for every dtype. 2. the mask is dense, with a byte of 0 or 1 for each of `n` elements; `guard`
    // grants the read.
    let mask = unsafe {
        number.write(x.dtype(), pattern);
        std::slice::from_raw_parts(mask.tensor().data_ptr(), n)
    };
    macro_rules! put {
        ($word:ty) => {{
            // SAFETY: the pattern holds an element as wide as this word.
            let value = unsafe { *pattern.cast::<$word>() };
            for (i, &is_meant) in mask.iter().enumerate() {
                if is_meant != 0 {
                    // SAFETY: element `i` of the dense array, as wide as this word; `guard` grants the write.
                    unsafe { to.cast::<$word>().add(i).write_unaligned(value) };
                }
            }
        }};
    }
    match size {
        1 => put!(u8),
        2 => put!(u16),
        4 => put!(u32),
        8 => put!(u64),
        _ => put!([u64; 2]),
    }
    true
}

/// `x[mask]` for a mask of the array's shape. `None`: take the general way.
pub(super) fn masked(x: &Array, mask: &Array) -> Result<Option<Array>> {
    if mask.dtype() != DType::Bool
        || mask.shape() != x.shape()
        || x.ndim() == 0
        || !is_open(x, mask)
    {
        return Ok(None);
    }
    mask.wait_to_read()?;
    x.wait_to_read()?;
    let (n, size) = (x.len(), x.dtype().size());
    let bytes = mask.tensor().data_ptr();
    // SAFETY: the mask is dense and complete.
    let (starts, count) = unsafe { mask_starts(&Pool, bytes, n) };
    let result = Tensor::empty(&[count], x.dtype(), x.device())?;
    // SAFETY: both arrays are dense, complete and of one length; the result has room for what the mask lets through and is known to nobody else.
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
    Ok(Some(Array::from_tensor(result)))
}
