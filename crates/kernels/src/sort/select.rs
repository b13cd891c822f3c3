//! Order statistics: the elements at given ranks of each row (`quantile`, `median`).

use std::sync::Mutex;

use super::complex::items;
use super::key::{Key, Keyed, OrderedWord, with_keys};
use super::numbered::Numbered;
use super::rows::{Order, Rows, each_row, slice, slice_mut};
use crate::Threads;
use crate::scratch;

/// Rows of at least this length use a sample to find the relevant elements before anything is moved.
const LONG: usize = 16 * 1024;
/// Elements of a long row per task.
const CHUNK: usize = 64 * 1024;
/// Keys computed and compared at a time.
const BLOCK: usize = 1024;
/// Maximum number of ranges, because each needs a pass over the row.
const MAX_RANGES: usize = 6;

/// Writes the elements of each row at `ranks`, their positions in sorted order. `ranks` ascends and lies within the rows. A row with a NaN gives
/// NaN for every rank.
///
/// # Safety
/// The rows can be read; `out` has room for `rows.rows * ranks.len()` elements and does not overlap them.
pub unsafe fn select(threads: &dyn Threads, ranks: &[usize], rows: &Rows, out: *mut u8) {
    debug_assert!(ranks.is_sorted() && ranks.iter().all(|&r| r < rows.n));
    let (from, to, n) = (rows.ptr as usize, out as usize, rows.n);
    with_keys!(rows.elem,
    T => each_row(threads, rows, &|row, threads| {
        // SAFETY: row `row` exists in both arrays, which do not overlap.
        let (x, out) = unsafe { (slice::<T>(from, row, n), slice_mut::<T>(to, row, ranks.len())) };
        if let Some(found) = first_nan(x) {
            out.fill(found);
            return;
        }
        for (out, key) in out.iter_mut().zip(keys_at(threads, x, ranks)) {
            *out = T::from_exact(key);
        }
    }),
    C => each_row(threads, rows, &|row, _| {
        // SAFETY: as above.
        let (x, out) = unsafe { (slice::<C>(from, row, n), slice_mut::<C>(to, row, ranks.len())) };
        if let Some(found) = first_nan(x) {
            out.fill(found);
            return;
        }
        let mut items = items(Order::Ascending, x);
        arrange(&mut items, ranks, 0);
        for (out, &rank) in out.iter_mut().zip(ranks) {
            *out = x[items[rank].1];
        }
    }))
}

/// The first NaN of a row.
fn first_nan<T: Keyed>(x: &[T]) -> Option<T> {
    let nan = |x: &[T]| x.iter().fold(false, |any, x| any | Keyed::is_nan(*x));
    let block = x.chunks(BLOCK).find(|x| nan(x))?;
    block.iter().copied().find(|x| Keyed::is_nan(*x))
}

/// Separate ranks for each row: `k` per row, in any order.
#[derive(Clone, Copy, Debug)]
pub struct RowRanks {
    /// `rows` x `k` integers, each within the row.
    pub ptr: *const i64,
    /// Number of ranks per row.
    pub k: usize,
}

/// [`select`] with separate ranks for each row. NaN sorts after everything else.
///
/// # Safety
/// The rows and the ranks can be read, and ranks lie within the rows; `out` has room for `rows.rows * ranks.k` elements and overlaps neither.
pub unsafe fn select_each(threads: &dyn Threads, ranks: &RowRanks, rows: &Rows, out: *mut u8) {
    let (from, to, at) = (rows.ptr as usize, out as usize, ranks.ptr as usize);
    let (n, k) = (rows.n, ranks.k);
    with_keys!(rows.elem,
    T => each_row(threads, rows, &|row, threads| {
        // SAFETY: row `row` exists in all three arrays, which do not overlap.
        let (x, ranks, out) = unsafe { (slice::<T>(from, row, n), slice::<i64>(at, row, k), slice_mut::<T>(to, row, k)) };
        let ascending = ascending(ranks);
        let keys = keys_at(threads, x, &ascending);
        for (out, &rank) in out.iter_mut().zip(ranks) {
            *out = T::from_exact(keys[ascending.partition_point(|&r| r < rank as usize)]);
        }
    }),
    C => each_row(threads, rows, &|row, _| {
        // SAFETY: as above.
        let (x, ranks, out) = unsafe { (slice::<C>(from, row, n), slice::<i64>(at, row, k), slice_mut::<C>(to, row, k)) };
        let mut items = items(Order::Ascending, x);
        arrange(&mut items, &ascending(ranks), 0);
        for (out, &rank) in out.iter_mut().zip(ranks) {
            *out = x[items[rank as usize].1];
        }
    }))
}

fn ascending(ranks: &[i64]) -> Vec<usize> {
    let mut ranks = scratch::collected(ranks.len(), ranks.iter().map(|&rank| rank as usize));
    ranks.sort_unstable();
    ranks
}

/// Writes the positions of the elements of each row at `ranks`, NaN last.
///
/// # Safety
/// Same as for [`select`], with integers at `out`.
pub unsafe fn argselect(threads: &dyn Threads, ranks: &[usize], rows: &Rows, out: *mut i64) {
    let (from, to, n) = (rows.ptr as usize, out as usize, rows.n);
    with_keys!(rows.elem,
    T => each_row(threads, rows, &|row, _| {
        // SAFETY: row `row` exists in both arrays, which do not overlap.
        let (x, out) = unsafe { (slice::<T>(from, row, n), slice_mut::<i64>(to, row, ranks.len())) };
        positions(x, ranks, out.iter_mut().zip(ranks.iter().copied()));
    }),
    C => each_row(threads, rows, &|row, _| {
        // SAFETY: as above.
        let (x, out) = unsafe { (slice::<C>(from, row, n), slice_mut::<i64>(to, row, ranks.len())) };
        let mut items = items(Order::Ascending, x);
        arrange(&mut items, ranks, 0);
        out.iter_mut().zip(ranks).for_each(|(out, &rank)| *out = items[rank].1 as i64);
    }))
}

/// [`argselect`] with separate ranks for each row.
///
/// # Safety
/// Same as for [`select_each`], with integers at `out`.
pub unsafe fn argselect_each(threads: &dyn Threads, ranks: &RowRanks, rows: &Rows, out: *mut i64) {
    let (from, to, at) = (rows.ptr as usize, out as usize, ranks.ptr as usize);
    let (n, k) = (rows.n, ranks.k);
    with_keys!(rows.elem,
    T => each_row(threads, rows, &|row, _| {
        // SAFETY: row `row` exists in all three arrays, which do not overlap.
        let (x, ranks, out) = unsafe { (slice::<T>(from, row, n), slice::<i64>(at, row, k), slice_mut::<i64>(to, row, k)) };
        positions(x, &ascending(ranks), out.iter_mut().zip(ranks.iter().map(|&rank| rank as usize)));
    }),
    C => each_row(threads, rows, &|row, _| {
        // SAFETY: as above.
        let (x, ranks, out) = unsafe { (slice::<C>(from, row, n), slice::<i64>(at, row, k), slice_mut::<i64>(to, row, k)) };
        let mut items = items(Order::Ascending, x);
        arrange(&mut items, &ascending(ranks), 0);
        out.iter_mut().zip(ranks).for_each(|(out, &rank)| *out = items[rank as usize].1 as i64);
    }))
}

/// Writes the positions of the elements of `x` at the ranks `wanted`, which `ascending` has in ascending order.
fn positions<'a, T: OrderedWord>(
    x: &[T],
    ascending: &[usize],
    wanted: impl Iterator<Item = (&'a mut i64, usize)>,
) {
    let mut packed = scratch::filled(x.len(), 0);
    let numbered = Numbered::new(Order::Ascending, x, &mut packed);
    if numbered.is_exact() {
        arrange(&mut packed, ascending, 0);
        wanted.for_each(|(out, rank)| *out = numbered.number(packed[rank]) as i64);
        return;
    }
    let items = x.iter().enumerate().map(|(i, x)| (x.key(), i));
    let mut items = scratch::collected(x.len(), items);
    arrange(&mut items, ascending, 0);
    wanted.for_each(|(out, rank)| *out = items[rank].1 as i64);
}

/// Partially sorts the items so that those at the ascending `ranks` are in place; ranks count from `skipped`.
fn arrange<I: Ord>(items: &mut [I], ranks: &[usize], skipped: usize) {
    let middle = ranks.len() / 2;
    let Some(&rank) = ranks.get(middle) else {
        return;
    };
    // The same rank may occur several times.
    let first = ranks.partition_point(|&r| r < rank);
    let end = ranks.partition_point(|&r| r <= rank);
    let (below, _, above) = items.select_nth_unstable(rank - skipped);
    arrange(below, &ranks[..first], skipped);
    arrange(above, &ranks[end..], rank + 1);
}

/// Keys of the elements at `ranks`.
fn keys_at<T: OrderedWord>(threads: &dyn Threads, x: &[T], ranks: &[usize]) -> Vec<T::Word> {
    if x.len() >= LONG
        && let Some(found) = narrowed(threads, x, ranks)
    {
        return found;
    }
    let mut keys = scratch::collected(x.len(), x.iter().map(|x| x.exact()));
    arrange(&mut keys, ranks, 0);
    scratch::collected(ranks.len(), ranks.iter().map(|&rank| keys[rank]))
}

/// A range of keys, and the number of ranks that it should contain.
struct Range<K> {
    least: K,
    greatest: K,
    ranks: usize,
}

/// Keys of the elements at `ranks`. Sorts only the elements in the ranges in which a sample expects the ranks (Floyd and Rivest 1975).
/// `None` if there are too many ranges, or if the sample was wrong.
fn narrowed<T: OrderedWord>(
    threads: &dyn Threads,
    x: &[T],
    ranks: &[usize],
) -> Option<Vec<T::Word>> {
    let ranges = ranges(x, ranks);
    if ranges.len() > MAX_RANGES {
        return None;
    }
    let mut found = scratch::collected(ranks.len(), []);
    for range in &ranges {
        let wanted = &ranks[found.len()..found.len() + range.ranks];
        let parts: Vec<Mutex<(usize, Vec<T::Word>)>> = scratch::collected(
            x.len().div_ceil(CHUNK),
            x.chunks(CHUNK).map(|_| Mutex::default()),
        );
        threads.run(parts.len(), &|i| {
            let chunk = &x[i * CHUNK..x.len().min((i + 1) * CHUNK)];
            let part = within(chunk, range);
            *parts[i].lock().expect("nothing panics while it is held") = part;
        });
        let (mut below, mut inside) = (0, Vec::new());
        for part in parts {
            let (less, keys) = part.into_inner().expect("nothing panicked");
            below += less;
            scratch::reserve(&mut inside, keys.len());
            inside.extend(keys);
        }
        if wanted[0] < below || wanted[wanted.len() - 1] >= below + inside.len() {
            return None;
        }
        arrange(&mut inside, wanted, below);
        found.extend(wanted.iter().map(|&rank| inside[rank - below]));
    }
    Some(found)
}

/// The ranges of keys in which a sample expects the elements at `ranks`.
fn ranges<T: OrderedWord>(x: &[T], ranks: &[usize]) -> Vec<Range<T::Word>> {
    let n = x.len();
    let len = (n as f64).powf(2.0 / 3.0) as usize;
    // One element of each of `len` equal pieces, at golden-ratio fractions of the piece so that the sample is not in phase with a period of the data.
    let drawn = (0..len).map(|i| {
        let (start, end) = (n * i / len, n * (i + 1) / len);
        let fraction = (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        x[start + ((fraction * (end - start) as u64) >> 32) as usize].exact()
    });
    let mut sample = scratch::collected(len, drawn);
    sample.sort_unstable();
    // Four standard deviations of a rank in the sample, for the median, where the deviation is largest.
    let margin = 2 * len.isqrt();
    let mut ranges: Vec<Range<T::Word>> = Vec::new();
    let mut reached = 0;
    for &rank in ranks {
        let at = (rank as u128 * len as u128 / n as u128) as usize;
        let (low, high) = (at.saturating_sub(margin), at + margin);
        let greatest = sample.get(high).copied().unwrap_or(Key::GREATEST);
        match ranges.last_mut() {
            Some(range) if low <= reached => {
                range.greatest = greatest;
                range.ranks += 1;
            }
            _ => ranges.push(Range {
                least: if at < margin { Key::LEAST } else { sample[low] },
                greatest,
                ranks: 1,
            }),
        }
        reached = high;
    }
    ranges
}

/// The number of keys below a range, and the keys inside it.
fn within<T: OrderedWord>(x: &[T], range: &Range<T::Word>) -> (usize, Vec<T::Word>) {
    let (least, greatest) = (range.least, range.greatest);
    let (mut below, mut inside) = (0, Vec::new());
    let mut keys = [least; BLOCK];
    let mut selected = [least; BLOCK + 1];
    for block in x.chunks(BLOCK) {
        let keys = &mut keys[..block.len()];
        for (key, x) in keys.iter_mut().zip(block) {
            *key = x.exact();
        }
        below += keys
            .iter()
            .map(|key| usize::from(*key < least))
            .sum::<usize>();
        let mut len = 0;
        // Branch-free, because it is unpredictable which elements are in the range.
        for &key in keys.iter() {
            selected[len] = key;
            len += usize::from(key >= least) & usize::from(key <= greatest);
        }
        if inside.capacity() - inside.len() < len {
            let more = len.max(inside.len());
            scratch::reserve(&mut inside, more);
        }
        inside.extend_from_slice(&selected[..len]);
    }
    (below, inside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduce::fixtures::Noise;
    use crate::threads::Scoped;
    use crate::{Elem, Serial};

    fn check(threads: &dyn Threads, x: &[f32], n: usize, ranks: &[usize]) {
        let rows = Rows {
            ptr: x.as_ptr().cast(),
            elem: Elem::F32,
            rows: x.len() / n,
            n,
        };
        let mut out = vec![0.0_f32; rows.rows * ranks.len()];
        let mut at = vec![0_i64; out.len()];
        // SAFETY: the rows are those of `x`; both outputs have room for every rank of every row.
        unsafe {
            select(threads, ranks, &rows, out.as_mut_ptr().cast());
            argselect(threads, ranks, &rows, at.as_mut_ptr());
        }
        let outs = out.chunks(ranks.len()).zip(at.chunks(ranks.len()));
        for (row, (out, at)) in x.chunks(n).zip(outs) {
            let mut sorted = row.to_vec();
            sorted.sort_by(f32::total_cmp);
            for ((&rank, &out), &at) in ranks.iter().zip(out).zip(at) {
                if row.iter().any(|x| x.is_nan()) {
                    assert!(out.is_nan());
                } else {
                    assert_eq!(out, sorted[rank], "rank {rank} of {n}");
                    assert_eq!(row[at as usize], sorted[rank]);
                }
            }
        }
    }

    #[test]
    fn elements_at_ranks_are_those_of_the_sorted_row() {
        let mut noise = Noise(7);
        for n in [1, 2, 3, 100, LONG - 1, LONG, 3 * CHUNK + 17] {
            let smooth: Vec<f32> = (0..n).map(|_| noise.unit() as f32).collect();
            let coarse: Vec<f32> = smooth.iter().map(|x| (x * 3.0).round()).collect();
            let rising: Vec<f32> = (0..n).map(|i| i as f32).collect();
            let spike: Vec<f32> = (0..n).map(|i| f32::from(u8::from(i + 1 == n))).collect();
            let ranks = [0, n / 4, n / 2, n / 2, n - 1];
            for x in [smooth, coarse, rising, spike] {
                check(&Scoped(3), &x, n, &ranks);
                check(&Serial, &x, n, &ranks[2..3]);
            }
        }
    }

    #[test]
    fn many_ranks_and_short_rows() {
        let mut noise = Noise(8);
        let x: Vec<f32> = (0..40_000).map(|_| noise.unit() as f32).collect();
        check(
            &Scoped(2),
            &x,
            40_000,
            &(0..40_000).step_by(701).collect::<Vec<_>>(),
        );
        check(&Scoped(2), &x, 8, &[0, 3, 4, 7]);
    }

    #[test]
    fn a_row_with_nan_gives_nan() {
        let mut x: Vec<f32> = (0..60).map(|i| i as f32).collect();
        x[37] = f32::NAN;
        check(&Serial, &x, 20, &[0, 10]);
    }
}
