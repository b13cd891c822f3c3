//! The short ways of assignments: few elements, nothing recorded, no operators in between. Each answers whether it did the work; if not, the
//! general way does it, or says why it cannot be done.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::sync::Arc;

use mxnet_engine::{Access, Var, engine};
use mxnet_kernels::cast::Cast;
use mxnet_kernels::copy::copy_row;
use mxnet_tensor::{DType, DeviceKind, Kind, Layout, Scalar};

use super::short::{MOST, SMALL_BYTES, element, is_open, places, vars_of};
use super::writing::put_on_row;
use crate::error::Result;
use crate::interp::Flags;
use crate::launch::elem;
use crate::lone::Lone;
use crate::quick::Quick;
use crate::types::check_element;
use crate::{Array, cpu};

/// Whether elements of `x` may be written at once: on the CPU, not locked, nothing recorded. Those that are converted may tell of a
/// floating-point error, for which [`keeps`] asks.
pub(crate) fn is_writable(x: &Array) -> bool {
    Flags::current().may_move()
        && !x.is_weak()
        && x.device().kind() == DeviceKind::Cpu
        && !x.tensor().is_read_only()
}

/// Whether a number that a dtype can hold is converted to it without an error that somebody watches for.
fn keeps(dtype: DType, number: &Scalar) -> bool {
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

/// Whether a number becomes an element of this dtype, without an error that somebody watches for.
#[inline]
pub(super) fn takes(dtype: DType, number: &Scalar) -> bool {
    (dtype.is_complex() || number.kind() != Kind::Complex)
        && check_element("assignment", number, dtype).is_ok()
        && keeps(dtype, number)
}

/// Calls `write` with the address of the element at a place of the storage of `x`, if nobody holds that. Answers whether it did.
#[inline]
fn write_element(x: &Array, place: usize, write: impl FnOnce(*mut u8)) -> bool {
    let storage = x.tensor().storage();
    let Some(_hold) = engine().try_hold(storage.var(), Access::Write, 1) else {
        return false;
    };
    storage.bump_version();
    write(storage.ptr().wrapping_add(place * x.dtype().size()));
    true
}

/// `x[key] = number` for few elements, which a layout shows of `x`. Answers whether that was done; if not, the general way does it, or says why
/// it cannot be done.
#[inline]
pub fn put_number(x: &Array, at: Layout, number: &Scalar) -> bool {
    is_writable(x)
        && takes(x.dtype(), number)
        && cpu::fill_small(&x.tensor().with_layout(at), number)
}

/// Writes a number over the element at a place of the storage of `x`; as [`put_number`].
///
/// # Safety
/// As [`element`].
#[inline]
pub unsafe fn put_element(x: &Array, place: usize, number: &Scalar) -> bool {
    let dtype = x.dtype();
    // SAFETY: the place is inside, the caller says; the write is granted.
    let write = |to| unsafe { number.write(dtype, to) };
    is_writable(x) && takes(dtype, number) && write_element(x, place, write)
}

/// Writes an element of the array's dtype and device over the one at a place of the storage of `x`; as [`put_number`].
///
/// # Safety
/// As [`element`](super::element).
#[inline]
pub unsafe fn put_lone(x: &Array, place: usize, value: &Lone) -> bool {
    // SAFETY: the place is inside, the caller says; the write is granted.
    let write = |to| unsafe { value.write(to) };
    is_writable(x)
        && value.dtype() == x.dtype()
        && value.device() == x.device()
        && write_element(x, place, write)
}

/// Copies the element that `value` is over the one at a place of the storage of `x`, if they are of one dtype; as [`put_number`].
///
/// # Safety
/// As [`element`].
#[inline]
pub unsafe fn copy_element(x: &Array, place: usize, value: &Array) -> bool {
    if value.ndim() > 0 || value.is_weak() {
        return false;
    }
    let mut copy = MaybeUninit::uninit();
    // SAFETY: 1. the first element of an array that has one. 2. the caller's promise; the element is made.
    unsafe {
        element(value, value.layout().offset(), &mut copy)
            && put_lone(x, place, copy.assume_init_ref())
    }
}

/// `x[key] = value` for few elements, of one dtype or both in C order; as [`put_number`].
///
/// # Errors
/// None is expected.
#[inline]
pub fn put_few(x: &Array, at: &Layout, value: &Array) -> Result<bool> {
    let (from, to) = (value.tensor().storage(), x.tensor().storage());
    let (n, size) = (at.len(), x.dtype().size());
    let is_like = value.shape() == at.shape();
    let is_straight = is_like && at.is_contiguous() && value.layout().is_contiguous();
    let converts = value.dtype() != x.dtype();
    if !is_writable(x)
        || value.is_weak()
        || value.device() != x.device()
        || n * size > SMALL_BYTES
        || !is_straight && (n > cpu::FEW || converts)
        || !is_like && value.ndim() > 0
        || converts && Flags::current().is_watching()
        || value.dtype().is_complex() && !x.dtype().is_complex()
        || Arc::ptr_eq(from, to)
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
    // SAFETY: 1. the layout was taken of that of `x`. 2. both lie within their storages, which are not the same. 3. `guard` grants the read and the
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
            cpu::copy_few(
                at.shape(),
                size,
                (source, strides.strides()),
                (target, at.strides()),
            );
        }
    }
    Ok(true)
}

/// What is written to several places: rows of elements one behind another, or the same one everywhere.
struct Rows<'a> {
    /// The array they come from.
    held: Option<&'a Array>,
    pattern: [u64; 2],
    /// Elements in one row.
    width: usize,
}

impl<'a> Rows<'a> {
    /// `None`: the value is of another dtype or shape than `n` rows of `width` elements of `x` after their first axes, or shares its memory.
    fn of(x: &Array, value: Quick<'a>, lead: &[usize], rest: &[usize]) -> Option<Rows<'a>> {
        let width = rest.iter().product();
        let mut pattern = [0; 2];
        match value {
            Quick::Number(number) => {
                let dtype = x.dtype();
                if !takes(dtype, number) {
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
            Quick::Array(value) => {
                let is_like = value.ndim() == lead.len() + rest.len()
                    && value.shape().starts_with(lead)
                    && value.shape().ends_with(rest);
                let is_open = is_like
                    && value.dtype() == x.dtype()
                    && is_open(x, value)
                    && !Arc::ptr_eq(value.tensor().storage(), x.tensor().storage());
                is_open.then_some(Rows {
                    held: Some(value),
                    pattern,
                    width,
                })
            }
        }
    }

    /// Writes row number `i` at `to`.
    ///
    /// # Safety
    /// There is such a row of elements of `size` bytes, it may be read, and there is room for it.
    #[inline]
    unsafe fn put(&self, i: usize, to: *mut u8, size: usize) {
        let bytes = self.width * size;
        // SAFETY: the caller's.
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

/// The variables to read, each once, without that of what is written; and how many they are. `None` if that is among them.
fn reads_beside<'a>(
    x: &'a Array,
    indices: &[&'a Var],
    value: Option<&'a Array>,
) -> Option<([&'a Var; MOST + 1], usize)> {
    let own = x.tensor().storage().var();
    let (mut reads, mut count) = ([own; MOST + 1], 0);
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

/// `x[index] = value`, `x[rows, columns] = value`: few positions on the first axes, from int64 arrays of one shape. Nothing is written if one of
/// them is outside. As [`put_number`].
pub fn put_picked(x: &Array, indices: &[&Array], value: Quick) -> bool {
    if let (&[index], 1) = (indices, x.ndim()) {
        return put_on_row(x, index, value);
    }
    let k = indices.len();
    let (Some(first), true) = (indices.first(), k <= MOST && k <= x.ndim()) else {
        return false;
    };
    let (axes, rest) = x.shape().split_at(k);
    let size = x.dtype().size();
    let row_bytes = rest.iter().product::<usize>() * size;
    if !is_writable(x)
        || !x.layout().is_contiguous()
        || first.len() > SMALL_BYTES / 8
        || first.len() * row_bytes > SMALL_BYTES
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
    let Some(places) = (unsafe { places(axes, indices) }) else {
        return false;
    };
    storage.bump_version();
    let to = x.tensor().data_ptr();
    for (i, &place) in places.iter().enumerate() {
        // SAFETY: every place is a row of the dense `x`; `guard` grants the reads and the write.
        unsafe { rows.put(i, to.add(place * row_bytes), size) };
    }
    true
}
