//! Operations on whole rows: sort, argsort, topk, partition.

use super::complex;
use super::key::{OrderedWord, with_keys};
use super::numbered::Numbered;
use super::quicksort::{self, Word};
use crate::real;
use crate::reduce::kernel::by_isa;
use crate::scratch;
use crate::threads::split;
use crate::{Elem, Serial, Threads};

/// Direction. NaN counts as the largest value: last if ascending, first if descending. Equal elements keep the order of their indices in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Smallest first.
    Ascending,
    /// Largest first.
    Descending,
}

/// Input: contiguous rows.
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

/// Outputs of [`topk`]; those that are null are not computed.
#[derive(Clone, Copy, Debug)]
pub struct Chosen {
    /// `rows` x `k` values.
    pub values: *mut u8,
    /// `rows` x `k` positions in the row.
    pub indices: *mut i64,
    /// `rows` x `n` booleans: whether the element is among the first `k`.
    pub mask: *mut u8,
}

/// Number of elements from which on one row is sorted by several threads.
const LONG: usize = 64 * 1024;

/// Rows are grouped to about this many elements. The rows of a group share their working memory, so that it is not allocated for every row.
const GROUP: usize = 4096;

/// Minimum length of a row of one-byte elements for sorting by counting.
const COUNTED: usize = 64;

/// Runs `task(rows, threads for a row)` for groups of rows.
pub(super) fn each_group(
    threads: &dyn Threads,
    rows: &Rows,
    task: &(dyn Fn(std::ops::Range<usize>, &dyn Threads) + Sync),
) {
    if rows.n >= LONG && rows.rows < 2 * threads.count() {
        return task(0..rows.rows, threads);
    }
    let (count, height) = (rows.rows, (GROUP / rows.n.max(1)).max(1));
    // Estimate: sorting an element costs as much as eight additions.
    split(
        threads,
        count.div_ceil(height),
        count * rows.n * 8,
        &|group| task(group * height..count.min((group + 1) * height), &Serial),
    );
}

/// Runs `task(row, threads for the row)` for every row.
pub(super) fn each_row(
    threads: &dyn Threads,
    rows: &Rows,
    task: &(dyn Fn(usize, &dyn Threads) + Sync),
) {
    each_group(threads, rows, &|group, threads| {
        group.for_each(|row| task(row, threads))
    });
}

/// Row `row` as a slice.
///
/// # Safety
/// `base` has `n` elements at that row, which nobody writes during the lifetime of the slice.
pub(super) unsafe fn slice<'a, T>(base: usize, row: usize, n: usize) -> &'a [T] {
    // SAFETY: guaranteed by the caller.
    unsafe { std::slice::from_raw_parts((base as *const T).add(row * n), n) }
}

/// Row `row` as a mutable slice.
///
/// # Safety
/// `base` has room for `n` elements at that row, which nobody else accesses during the lifetime of the slice.
pub(super) unsafe fn slice_mut<'a, T>(base: usize, row: usize, n: usize) -> &'a mut [T] {
    // SAFETY: guaranteed by the caller.
    unsafe { std::slice::from_raw_parts_mut((base as *mut T).add(row * n), n) }
}

#[inline(always)]
pub(super) fn directed<W: Word>(order: Order, word: W) -> W {
    if order == Order::Ascending {
        word
    } else {
        word.reversed()
    }
}

by_isa! {
    /// # Safety
    /// `x` and `words` have `n` elements; they may be the same memory if elements have the size of words.
    unsafe fn encode[T: OrderedWord][T](order: Order, x: *const T, words: *mut T::Word, n: usize) {
        for i in 0..n {
            // SAFETY: i < n.
            unsafe { *words.add(i) = directed(order, (*x.add(i)).exact()) };
        }
    }
}

by_isa! {
    /// # Safety
    /// Same as for [`encode`].
    unsafe fn decode[T: OrderedWord][T](order: Order, words: *const T::Word, x: *mut T, n: usize) {
        for i in 0..n {
            // SAFETY: i < n.
            unsafe { *x.add(i) = T::from_exact(directed(order, *words.add(i))) };
        }
    }
}

by_isa! {
    /// Converts words to elements in place. A single pointer tells the compiler that nothing else is written.
    ///
    /// # Safety
    /// `words` has `n` words of the size of elements.
    unsafe fn decode_in_place[T: OrderedWord][T](order: Order, words: *mut T::Word, n: usize) {
        for i in 0..n {
            // SAFETY: i < n; an element takes the place of its word.
            unsafe {
                let slot = words.add(i);
                slot.cast::<T>().write(T::from_exact(directed(order, *slot)));
            }
        }
    }
}

/// Calls `task(start, length)` for chunks of `n` elements.
fn in_chunks(threads: &dyn Threads, n: usize, task: &(dyn Fn(usize, usize) + Sync)) {
    split(threads, n.div_ceil(LONG), n, &|chunk| {
        task(chunk * LONG, LONG.min(n - chunk * LONG))
    });
}

/// Rearranges the words of a row; the vector is working memory that rows share.
type Arrange<'a, W> = dyn Fn(&dyn Threads, &mut [W], &mut Vec<W>) + Sync + 'a;

/// Applies `arrange` to the words of every row. If elements have the size of words, this is done in the output.
///
/// # Safety
/// Same as for [`sort`].
unsafe fn rearrange<T: OrderedWord>(
    threads: &dyn Threads,
    order: Order,
    rows: &Rows,
    out: *mut u8,
    arrange: &Arrange<'_, T::Word>,
) {
    let (from, to, n) = (rows.ptr as usize, out as usize, rows.n);
    let fits = size_of::<T>() == size_of::<T::Word>();
    each_group(threads, rows, &|group, threads| {
        let (mut words, mut spare) = (Vec::<T::Word>::new(), Vec::new());
        if !fits {
            scratch::reserve(&mut words, n);
        }
        for row in group {
            // SAFETY: row `row` exists in both arrays; `words` has room for it, as has the output if elements have the size of words.
            unsafe {
                let (x, out) = ((from as *const T).add(row * n), (to as *mut T).add(row * n));
                let words = if fits { out.cast() } else { words.as_mut_ptr() };
                let (x, out, to) = (
                    real::Shared(x.cast_mut()),
                    real::Shared(out),
                    real::Shared(words),
                );
                in_chunks(threads, n, &|at, len| {
                    encode::<T>(order, x.at(at), to.at(at), len)
                });
                arrange(
                    threads,
                    std::slice::from_raw_parts_mut(words, n),
                    &mut spare,
                );
                in_chunks(threads, n, &|at, len| {
                    if fits {
                        decode_in_place::<T>(order, to.at(at), len);
                    } else {
                        decode::<T>(order, to.at(at), out.at(at), len);
                    }
                });
            }
        }
    });
}

/// Sorts every row into the contiguous rows at `out`, which may be the input itself. NaNs lose sign and payload.
///
/// # Safety
/// The rows can be read, `out` has room for them; they are the same memory or do not overlap.
pub unsafe fn sort(threads: &dyn Threads, order: Order, rows: &Rows, out: *mut u8) {
    if matches!(rows.elem, Elem::Bool | Elem::I8 | Elem::U8) && rows.n >= COUNTED {
        // SAFETY: guaranteed by the caller.
        return unsafe { sort_bytes(threads, order, rows, out) };
    }
    with_keys!(rows.elem,
        // SAFETY: guaranteed by the caller.
        T => unsafe { rearrange::<T>(threads, order, rows, out, &|threads, words, spare| quicksort::sort(threads, words, spare)) },
        // SAFETY: guaranteed by the caller.
        C => unsafe { complex::sort::<C>(threads, order, rows, out) })
}

/// Sorts rows of one-byte elements by counting.
///
/// # Safety
/// Same as for [`sort`].
unsafe fn sort_bytes(threads: &dyn Threads, order: Order, rows: &Rows, out: *mut u8) {
    const TABLES: usize = 4;
    let (from, to, n) = (rows.ptr as usize, out as usize, rows.n);
    // XOR with `flip` gives unsigned numbers in the required order.
    let flip = (if rows.elem == Elem::I8 { 0x80 } else { 0 })
        ^ (if order == Order::Descending { 0xff } else { 0 });
    let is_bool = rows.elem == Elem::Bool;
    each_group(threads, rows, &|group, _| {
        for row in group {
            // Consecutive bytes use different tables, because incrementing one counter twice in a row waits for the first store.
            let mut counts = [[0_u32; 256]; TABLES];
            // SAFETY: row `row` exists; all of it is read before anything is written.
            for (i, &byte) in unsafe { slice::<u8>(from, row, n) }.iter().enumerate() {
                counts[i % TABLES][if is_bool {
                    (byte != 0) as usize
                } else {
                    byte as usize
                }] += 1;
            }
            // SAFETY: as above.
            let mut rest = unsafe { slice_mut::<u8>(to, row, n) };
            for slot in 0..=255_u8 {
                let byte = slot ^ flip;
                let count = counts
                    .iter()
                    .map(|table| table[byte as usize] as usize)
                    .sum();
                let run;
                (run, rest) = rest.split_at_mut(count);
                run.fill(byte);
            }
        }
    });
}

/// Writes the positions that sort each row to `out`. Stable.
///
/// # Safety
/// The rows can be read; `out` has room for `rows * n` integers and does not overlap them.
pub unsafe fn argsort(threads: &dyn Threads, order: Order, rows: &Rows, out: *mut i64) {
    let (from, to, n) = (rows.ptr as usize, out as usize, rows.n);
    with_keys!(rows.elem,
        T => each_group(threads, rows, &|group, threads| {
            let mut spare = Vec::new();
            for row in group {
                // SAFETY: row `row` exists in both arrays, which do not overlap.
                let (x, out) = unsafe { (slice::<T>(from, row, n), slice_mut::<i64>(to, row, n)) };
                let numbered = Numbered::new(order, x, out);
                numbered.sort(threads, out, &mut spare);
                out.iter_mut().for_each(|item| *item = numbered.number(*item) as i64);
            }
        }),
        // SAFETY: guaranteed by the caller.
        C => unsafe { complex::argsort::<C>(threads, order, rows, out) })
}

/// Finds the first `k` (at most `n`) elements of each row in the given order; equal elements in the order of their indices.
///
/// # Safety
/// The rows can be read; the pointers of `chosen` that are not null have the documented sizes and overlap neither the rows nor each other.
pub unsafe fn topk(threads: &dyn Threads, order: Order, k: usize, rows: &Rows, chosen: &Chosen) {
    let (from, n) = (rows.ptr as usize, rows.n);
    let chosen = Shared(*chosen);
    debug_assert!(k <= n);
    with_keys!(rows.elem,
        T => each_group(threads, rows, &|group, threads| {
            let (mut items, mut spare) = (scratch::filled(n, 0), Vec::new());
            for row in group {
                // SAFETY: row `row` exists.
                let x = unsafe { slice::<T>(from, row, n) };
                let numbered = Numbered::new(order, x, &mut items);
                if k > 0 && k < n / 4 {
                    numbered.select(&mut items, k - 1, &mut spare);
                    numbered.sort(threads, &mut items[..k], &mut spare);
                } else {
                    numbered.sort(threads, &mut items, &mut spare);
                }
                // SAFETY: row `row` of every output exists.
                unsafe { chosen.write(row, x, items[..k].iter().map(|&item| numbered.number(item))) };
            }
        }),
        // SAFETY: guaranteed by the caller.
        C => unsafe { complex::topk::<C>(threads, order, k, rows, &chosen) })
}

/// Outputs shared by tasks, each of which writes its rows.
pub(super) struct Shared(Chosen);

// SAFETY: tasks write different rows.
unsafe impl Sync for Shared {}

impl Shared {
    /// # Safety
    /// Row `row` of every output that is not null exists, and only this task accesses it; `numbers` are positions in `x`.
    pub(super) unsafe fn write<T: Copy>(
        &self,
        row: usize,
        x: &[T],
        numbers: impl ExactSizeIterator<Item = usize> + Clone,
    ) {
        let k = numbers.len();
        let (values, indices, mask) = (
            self.0.values as usize,
            self.0.indices as usize,
            self.0.mask as usize,
        );
        // SAFETY: guaranteed by the caller.
        unsafe {
            if values != 0 {
                let values = slice_mut::<T>(values, row, k);
                values
                    .iter_mut()
                    .zip(numbers.clone())
                    .for_each(|(value, i)| *value = x[i]);
            }
            if indices != 0 {
                let indices = slice_mut::<i64>(indices, row, k);
                indices
                    .iter_mut()
                    .zip(numbers.clone())
                    .for_each(|(index, i)| *index = i as i64);
            }
            if mask != 0 {
                let mask = slice_mut::<u8>(mask, row, x.len());
                mask.fill(0);
                numbers.for_each(|i| mask[i] = 1);
            }
        }
    }
}

/// Partitions every row into `out` such that element `kth` is the one that sorting would put there, no element before it is larger and none after
/// it is smaller. `out` may be the input itself.
///
/// # Safety
/// Same as for [`sort`]; `kth < n`.
pub unsafe fn partition(threads: &dyn Threads, kth: usize, rows: &Rows, out: *mut u8) {
    let order = Order::Ascending;
    if matches!(rows.elem, Elem::Bool | Elem::I8 | Elem::U8) && rows.n >= COUNTED {
        // SAFETY: guaranteed by the caller.
        return unsafe { sort_bytes(threads, order, rows, out) };
    }
    with_keys!(rows.elem,
        // SAFETY: guaranteed by the caller.
        T => unsafe { rearrange::<T>(threads, order, rows, out, &|_, words, spare| quicksort::select(words, kth, spare)) },
        // SAFETY: guaranteed by the caller.
        C => unsafe { complex::partition::<C>(threads, kth, rows, out) })
}

/// Writes the positions of a [`partition`] of every row to `out`.
///
/// # Safety
/// Same as for [`argsort`]; `kth < n`.
pub unsafe fn argpartition(threads: &dyn Threads, kth: usize, rows: &Rows, out: *mut i64) {
    let (from, to, n) = (rows.ptr as usize, out as usize, rows.n);
    with_keys!(rows.elem,
        T => each_group(threads, rows, &|group, _| {
            let mut spare = Vec::new();
            for row in group {
                // SAFETY: row `row` exists in both arrays, which do not overlap.
                let (x, out) = unsafe { (slice::<T>(from, row, n), slice_mut::<i64>(to, row, n)) };
                let numbered = Numbered::new(Order::Ascending, x, out);
                numbered.select(out, kth, &mut spare);
                out.iter_mut().for_each(|item| *item = numbered.number(*item) as i64);
            }
        }),
        // SAFETY: guaranteed by the caller.
        C => unsafe { complex::argpartition::<C>(threads, kth, rows, out) })
}
