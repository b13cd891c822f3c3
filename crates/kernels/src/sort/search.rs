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
        let found = values.chunks(TOGETHER).zip(out.chunks_mut(TOGETHER));
        match side {
            Side::Left => found.for_each(|(values, out)| places(sorted, values, out, |x, key| x < key)),
            Side::Right => found.for_each(|(values, out)| places(sorted, values, out, |x, key| x <= key)),
        }
    }));
}

/// Values looked for in step: while one waits for memory the others go on.
const TOGETHER: usize = 8;

/// How many elements of `sorted` come before each of up to [`TOGETHER`] values, by halving without branches.
#[inline(always)]
fn places<T: Keyed>(
    sorted: &[T],
    values: &[T],
    out: &mut [i64],
    before: impl Fn(T::Key, T::Key) -> bool,
) {
    let mut keys = [values[0].key(); TOGETHER];
    keys.iter_mut()
        .zip(values)
        .for_each(|(key, value)| *key = value.key());
    let mut base = [0_usize; TOGETHER];
    let mut len = sorted.len();
    while len > 1 {
        let half = len / 2;
        for (base, &key) in base.iter_mut().zip(&keys) {
            // SAFETY: `base + len` never exceeds the length.
            let middle = unsafe { sorted.get_unchecked(*base + half - 1) };
            *base += if before(middle.key(), key) { half } else { 0 };
        }
        len -= half;
    }
    for ((out, &base), &key) in out.iter_mut().zip(&base).zip(&keys) {
        *out = match sorted.get(base) {
            Some(last) => base + before(last.key(), key) as usize,
            None => 0,
        } as i64;
    }
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
            // SAFETY: there are at most `i` runs before; what starts none is overwritten.
            unsafe { *out.add(count) = i as i64 };
            count += starts as usize;
        }
        count
    })
}
