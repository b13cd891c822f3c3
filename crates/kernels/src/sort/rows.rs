//! Whole rows: sort, argsort, topk, partition.

use super::key::{Key, Keyed};
use super::radix;
use crate::reduce::plan::split;
use crate::reduce::with_elem;
use crate::{Elem, Serial, Threads};

/// Direction. NaN counts as the largest value: last ascending, first descending. Equals keep the order of their indices in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Smallest first.
    Ascending,
    /// Largest first.
    Descending,
}

/// Contiguous rows to read.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// The first element.
    pub ptr: *const u8,
    /// Element type.
    pub elem: Elem,
    /// Number of rows.
    pub rows: usize,
    /// Elements of a row, fewer than 2^32.
    pub n: usize,
}

/// What [`topk`] writes; null pointers are left out.
#[derive(Clone, Copy, Debug)]
pub struct Chosen {
    /// `rows` x `k` values.
    pub values: *mut u8,
    /// `rows` x `k` positions in the row.
    pub indices: *mut i64,
    /// `rows` x `n` booleans: whether the element is among the first `k`.
    pub mask: *mut u8,
}

/// Elements above which one row is worth all threads.
const LONG: usize = 64 * 1024;

/// Runs `task(row, threads for the row)` for every row.
pub(super) fn each_row(
    threads: &dyn Threads,
    rows: &Rows,
    task: &(dyn Fn(usize, &dyn Threads) + Sync),
) {
    if rows.n >= LONG && rows.rows < 2 * threads.count() {
        (0..rows.rows).for_each(|row| task(row, threads));
    } else {
        // Sorting costs some thirty times what adding does.
        split(threads, rows.rows, rows.rows * rows.n * 16, &|row| {
            task(row, &Serial)
        });
    }
}

/// Row `row` as a slice.
///
/// # Safety
/// `base` has `n` elements at that row, which nobody writes for as long as the slice lives.
pub(super) unsafe fn slice<'a, T>(base: usize, row: usize, n: usize) -> &'a [T] {
    // SAFETY: the caller's.
    unsafe { std::slice::from_raw_parts((base as *const T).add(row * n), n) }
}

/// Row `row` as a slice to write.
///
/// # Safety
/// `base` has room for `n` elements at that row, which nobody else touches for as long as the slice lives.
pub(super) unsafe fn slice_mut<'a, T>(base: usize, row: usize, n: usize) -> &'a mut [T] {
    // SAFETY: the caller's.
    unsafe { std::slice::from_raw_parts_mut((base as *mut T).add(row * n), n) }
}

fn directed<K: Key>(order: Order, key: K) -> K {
    if order == Order::Ascending {
        key
    } else {
        key.reversed()
    }
}

/// Keys with numbers, in the row's order.
pub(super) fn items<T: Keyed>(order: Order, row: &[T]) -> Vec<<T::Key as Key>::Item> {
    row.iter()
        .enumerate()
        .map(|(i, x)| directed(order, x.key()).item(i))
        .collect()
}

/// Writes every row, sorted, to the contiguous rows at `out`, which may be the input itself. NaNs lose sign and payload.
///
/// # Safety
/// The rows can be read, `out` has room for as many; they are the same or do not overlap.
pub unsafe fn sort(threads: &dyn Threads, order: Order, rows: &Rows, out: *mut u8) {
    let (from, to, n) = (rows.ptr as usize, out as usize, rows.n);
    with_elem!(rows.elem, T => each_row(threads, rows, &|row, threads| {
        // SAFETY: row `row` exists in both; if they are the same, what is read is read before anything is written.
        let keys: Vec<_> = unsafe { slice::<T>(from, row, n) }.iter().map(|x| directed(order, x.exact())).collect();
        let keys = Key::sort(threads, keys);
        if keys.first().is_none_or(|&key| T::from_exact(directed(order, key)).is_some()) {
            // SAFETY: as above; the slice that was read is not used any more.
            for (out, key) in unsafe { slice_mut::<T>(to, row, n) }.iter_mut().zip(keys) {
                *out = T::from_exact(directed(order, key)).expect("keys of one type give elements back or do not");
            }
            return;
        }
        // SAFETY: as above.
        let row_values = unsafe { slice::<T>(from, row, n) }.to_vec();
        let sorted = radix::sort(threads, items(order, &row_values));
        // SAFETY: as above.
        for (out, item) in unsafe { slice_mut::<T>(to, row, n) }.iter_mut().zip(sorted) {
            *out = row_values[<<T as Keyed>::Key as Key>::number(item)];
        }
    }));
}

/// Writes to `out`, row by row, the positions that sort each row. Stable.
///
/// # Safety
/// The rows can be read, `out` has room for `rows * n` integers and does not overlap them.
pub unsafe fn argsort(threads: &dyn Threads, order: Order, rows: &Rows, out: *mut i64) {
    let (from, to, n) = (rows.ptr as usize, out as usize, rows.n);
    with_elem!(rows.elem, T => each_row(threads, rows, &|row, threads| {
        // SAFETY: row `row` exists in both arrays, which are apart.
        let (x, out) = unsafe { (slice::<T>(from, row, n), slice_mut::<i64>(to, row, n)) };
        for (out, item) in out.iter_mut().zip(radix::sort(threads, items(order, x))) {
            *out = <<T as Keyed>::Key as Key>::number(item) as i64;
        }
    }));
}

/// Finds the first `k` (at most `n`) elements of each row in the given order, equals in the order of their indices.
///
/// # Safety
/// The rows can be read; the pointers of `chosen` that are not null have the room they say, apart from the rows and each other.
pub unsafe fn topk(threads: &dyn Threads, order: Order, k: usize, rows: &Rows, chosen: &Chosen) {
    let (from, n) = (rows.ptr as usize, rows.n);
    let (values, indices, mask) = (
        chosen.values as usize,
        chosen.indices as usize,
        chosen.mask as usize,
    );
    debug_assert!(k <= n);
    with_elem!(rows.elem, T => each_row(threads, rows, &|row, threads| {
        // SAFETY: row `row` exists.
        let x = unsafe { slice::<T>(from, row, n) };
        let mut items = items(order, x);
        if k < n / 4 {
            if k > 0 {
                items.select_nth_unstable(k - 1);
            }
            items.truncate(k);
            // The chosen are in no order: comparison sees the numbers, which stable passes would not.
            items.sort_unstable();
        } else {
            items = radix::sort(threads, items);
            items.truncate(k);
        }
        let numbers = items.iter().map(|&item| <<T as Keyed>::Key as Key>::number(item));
        // SAFETY: row `row` of every output that is not null exists; outputs are apart.
        unsafe {
            if values != 0 {
                slice_mut::<T>(values, row, k).iter_mut().zip(numbers.clone()).for_each(|(v, i)| *v = x[i]);
            }
            if indices != 0 {
                slice_mut::<i64>(indices, row, k).iter_mut().zip(numbers.clone()).for_each(|(v, i)| *v = i as i64);
            }
            if mask != 0 {
                let mask = slice_mut::<u8>(mask, row, n);
                mask.fill(0);
                numbers.for_each(|i| mask[i] = 1);
            }
        }
    }));
}

/// Writes every row to `out` so that element `kth` is the one that sorting would put there, none before it is larger and none after it
/// is smaller. `out` may be the input itself.
///
/// # Safety
/// As for [`sort`]; `kth < n`.
pub unsafe fn partition(threads: &dyn Threads, kth: usize, rows: &Rows, out: *mut u8) {
    let (from, to, n) = (rows.ptr as usize, out as usize, rows.n);
    with_elem!(rows.elem, T => each_row(threads, rows, &|row, _| {
        // SAFETY: row `row` exists.
        let values = unsafe { slice::<T>(from, row, n) }.to_vec();
        let mut items = items(Order::Ascending, &values);
        items.select_nth_unstable(kth);
        // SAFETY: row `row` exists, and what was read has been copied.
        for (out, item) in unsafe { slice_mut::<T>(to, row, n) }.iter_mut().zip(items) {
            *out = values[<<T as Keyed>::Key as Key>::number(item)];
        }
    }));
}

/// Writes to `out` the positions of a [`partition`] of every row.
///
/// # Safety
/// As for [`argsort`]; `kth < n`.
pub unsafe fn argpartition(threads: &dyn Threads, kth: usize, rows: &Rows, out: *mut i64) {
    let (from, to, n) = (rows.ptr as usize, out as usize, rows.n);
    with_elem!(rows.elem, T => each_row(threads, rows, &|row, _| {
        // SAFETY: row `row` exists in both arrays, which are apart.
        let (x, out) = unsafe { (slice::<T>(from, row, n), slice_mut::<i64>(to, row, n)) };
        let mut items = items(Order::Ascending, x);
        items.select_nth_unstable(kth);
        for (out, item) in out.iter_mut().zip(items) {
            *out = <<T as Keyed>::Key as Key>::number(item) as i64;
        }
    }));
}
