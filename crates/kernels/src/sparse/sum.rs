//! Sums and differences of two sparse matrices, row by row.

use super::pattern::Pattern;
use super::value::{Operand, Value, output, with_value};
use crate::real::Shared;
use crate::{Elem, Threads};

/// How the second matrix takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// It is added.
    Plus,
    /// It is subtracted.
    Minus,
}

/// Where a result goes, once its number of elements is known.
pub struct Room {
    /// Values.
    pub data: *mut u8,
    /// Columns.
    pub indices: *mut i64,
}

/// The sum of two matrices of as many rows, whose rows ascend; so do those of the result. Writes where rows begin to `indptr`. `place` is told the
/// number of stored elements and gives memory for them.
///
/// # Errors
/// Those of `place`.
///
/// # Safety
/// Each operand holds one element of `elem` for each stored one; at what `place` gives as many as it was told can be written. `elem` is one of those
/// that sparse kernels compute in.
pub unsafe fn add<E>(
    threads: &dyn Threads,
    elem: Elem,
    (a, a_data): (&Pattern, Operand),
    (b, b_data, sign): (&Pattern, Operand, Sign),
    indptr: &mut [i64],
    place: impl FnOnce(usize) -> Result<Room, E>,
) -> Result<(), E> {
    assert!(a.num_rows() == b.num_rows() && indptr.len() == a.num_rows() + 1);
    with_value!(elem, T => {
        // SAFETY: the caller's.
        let (a_data, b_data) = unsafe { (a_data.as_slice::<T>(), b_data.as_slice::<T>()) };
        assert!(a_data.len() == a.indices.len() && b_data.len() == b.indices.len());
        indptr[0] = 0;
        let counts = Shared(indptr.as_mut_ptr());
        a.for_rows(threads, 1, &|rows| {
            for i in rows {
                let count = count_row(&a.indices[a.row(i)], &b.indices[b.row(i)]);
                // SAFETY: each row is one task's.
                unsafe { *counts.at(i + 1) = count as i64 };
            }
        });
        for i in 1..indptr.len() {
            indptr[i] += indptr[i - 1];
        }
        let room = place(indptr.last().map_or(0, |&n| n as usize))?;
        let (data, indices) = (Shared(room.data.cast::<T>()), Shared(room.indices));
        let indptr = &*indptr;
        a.for_rows(threads, 1, &|rows| {
            for i in rows {
                let (at, len) = (indptr[i] as usize, (indptr[i + 1] - indptr[i]) as usize);
                // SAFETY: rows have places that lie apart, as many as were counted.
                let (columns, values) = unsafe {
                    (output::<i64>(indices.at(at).cast(), len), output::<T>(data.at(at).cast(), len))
                };
                add_row(
                    (&a.indices[a.row(i)], &a_data[a.row(i)]),
                    (&b.indices[b.row(i)], &b_data[b.row(i)], sign),
                    (columns, values),
                );
            }
        });
        Ok(())
    })
}

/// How many different columns a row of the result has. Which operand comes next is no branch: nobody can predict it.
#[inline(always)]
fn count_row(j: &[i64], k: &[i64]) -> usize {
    let (mut p, mut q, mut shared) = (0, 0, 0);
    while p < j.len() && q < k.len() {
        let (left, right) = (j[p], k[q]);
        p += usize::from(left <= right);
        q += usize::from(right <= left);
        shared += usize::from(left == right);
    }
    j.len() + k.len() - shared
}

/// Writes one row of the result, which has as many places as it needs.
#[inline(always)]
fn add_row<T: Value>(
    (j, a): (&[i64], &[T]),
    (k, b, sign): (&[i64], &[T], Sign),
    (columns, values): (&mut [i64], &mut [T]),
) {
    let signed = |x: T| {
        if sign == Sign::Minus {
            T::ZERO.minus(x)
        } else {
            x
        }
    };
    let (mut p, mut q, mut at) = (0, 0, 0);
    while p < j.len() && q < k.len() {
        let (left, right) = (j[p], k[q]);
        let (takes_left, takes_right) = (left <= right, right <= left);
        let x = if takes_left { a[p] } else { T::ZERO };
        let y = if takes_right { signed(b[q]) } else { T::ZERO };
        columns[at] = left.min(right);
        values[at] = x.plus(y);
        p += usize::from(takes_left);
        q += usize::from(takes_right);
        at += 1;
    }
    let rest = at + j.len() - p;
    columns[at..rest].copy_from_slice(&j[p..]);
    values[at..rest].copy_from_slice(&a[p..]);
    columns[rest..].copy_from_slice(&k[q..]);
    for (to, &y) in values[rest..].iter_mut().zip(&b[q..]) {
        *to = signed(y);
    }
}
