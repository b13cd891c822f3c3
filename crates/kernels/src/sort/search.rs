//! Looking things up in sorted rows.

use super::key::Keyed;
use crate::reduce::plan::split;
use crate::reduce::with_elem;
use crate::{Elem, Threads};

/// Where a value goes among its equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Before them.
    Left,
    /// After them.
    Right,
}

/// Whether NaNs make one run or one each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Nans {
    /// One run for all.
    Equal,
    /// A run for each.
    Distinct,
}

/// Writes to `out`, for each of `m` values, the position in the `n` ascending elements at `sorted` where it would be inserted.
///
/// # Safety
/// `sorted` and `values` hold `n` and `m` contiguous elements of type `elem`; `out` has room for `m` integers, apart from them.
#[expect(clippy::too_many_arguments, reason = "plain data of one small kernel")]
pub unsafe fn search_sorted(
    threads: &dyn Threads,
    side: Side,
    elem: Elem,
    sorted: *const u8,
    n: usize,
    values: *const u8,
    m: usize,
    out: *mut i64,
) {
    const CHUNK: usize = 1024;
    let (sorted, values, out) = (sorted as usize, values as usize, out as usize);
    with_elem!(elem, T => split(threads, m.div_ceil(CHUNK), m * 32, &|chunk| {
        let (start, end) = (chunk * CHUNK, m.min((chunk + 1) * CHUNK));
        // SAFETY: the caller's arrays; chunks of the output are apart.
        let (sorted, values, out) = unsafe {
            (
                std::slice::from_raw_parts(sorted as *const T, n),
                std::slice::from_raw_parts((values as *const T).add(start), end - start),
                std::slice::from_raw_parts_mut((out as *mut i64).add(start), end - start),
            )
        };
        for (out, value) in out.iter_mut().zip(values) {
            let key = value.key();
            *out = match side {
                Side::Left => sorted.partition_point(|x| x.key() < key),
                Side::Right => sorted.partition_point(|x| x.key() <= key),
            } as i64;
        }
    }));
}

/// Writes to `out` where each run of equal elements starts in the `n` sorted elements at `sorted`, and returns how many runs there are.
///
/// # Safety
/// `sorted` holds `n` contiguous elements of type `elem`; `out` has room for `n` integers, apart from them.
pub unsafe fn runs(elem: Elem, nans: Nans, sorted: *const u8, n: usize, out: *mut i64) -> usize {
    with_elem!(elem, T => {
        // SAFETY: the caller's.
        let x = unsafe { std::slice::from_raw_parts(sorted.cast::<T>(), n) };
        let mut count = 0;
        for i in 0..n {
            let starts = i == 0 || x[i].key() != x[i - 1].key() || (nans == Nans::Distinct && Keyed::is_nan(x[i]));
            if starts {
                // SAFETY: there are at most `n` runs.
                unsafe { *out.add(count) = i as i64 };
                count += 1;
            }
        }
        count
    })
}
