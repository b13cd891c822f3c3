//! Rows of complex numbers: compared part by part, except for pairs of f32 that can be packed into one integer.

use super::key::{Keyed, OrderedWord, Parts};
use super::quicksort;
use super::rows::{Order, Rows, Shared, directed, each_group, slice, slice_mut};
use crate::Threads;
use crate::reduce::number::Complex;
use crate::scratch;

/// A complex element.
pub(super) trait ComplexKey: Keyed<Key = Parts> {
    /// One integer with the order of the numbers. `None` for NaN, for negative zeros, whose order is not that of their bit patterns, and for c128.
    fn packed(self) -> Option<i64>;
    /// The number from its packed form.
    fn unpacked(packed: i64) -> Self;
}

impl ComplexKey for Complex<f32> {
    #[inline(always)]
    fn packed(self) -> Option<i64> {
        let is_canonical = |x: f32| !x.is_nan() && x.to_bits() != (-0.0_f32).to_bits();
        let low = (self.im.exact() ^ i32::MIN) as u32;
        (is_canonical(self.re) && is_canonical(self.im))
            .then_some((self.re.exact() as i64) << 32 | low as i64)
    }
    #[inline(always)]
    fn unpacked(packed: i64) -> Self {
        Complex {
            re: f32::from_exact((packed >> 32) as i32),
            im: f32::from_exact(packed as i32 ^ i32::MIN),
        }
    }
}

impl ComplexKey for Complex<f64> {
    fn packed(self) -> Option<i64> {
        None
    }
    fn unpacked(packed: i64) -> Self {
        // c128 is never packed; the bits of the value keep this function total.
        Complex {
            re: f64::from_exact(packed),
            im: 0.0,
        }
    }
}

/// Keys with positions, in the order of the row.
pub(super) fn items<T: ComplexKey>(order: Order, row: &[T]) -> Vec<(Parts, usize)> {
    let directed = |(class, re, im): Parts| match order {
        Order::Ascending => (class, re, im),
        Order::Descending => (!class, !re, !im),
    };
    let items = row.iter().enumerate();
    scratch::collected(row.len(), items.map(|(i, x)| (directed(x.key()), i)))
}

/// [`super::sort`] for complex numbers.
///
/// # Safety
/// The same as there.
pub(super) unsafe fn sort<T: ComplexKey>(
    threads: &dyn Threads,
    order: Order,
    rows: &Rows,
    out: *mut u8,
) {
    let (from, to, n) = (rows.ptr as usize, out as usize, rows.n);
    each_group(threads, rows, &|group, threads| {
        let mut spare = Vec::new();
        for row in group {
            // SAFETY: row `row` exists; nothing is written before its elements are copied.
            let x = unsafe { slice::<T>(from, row, n) };
            let mut packed = scratch::collected(
                n,
                x.iter().map_while(|x| Some(directed(order, x.packed()?))),
            );
            if packed.len() == n {
                quicksort::sort(threads, &mut packed, &mut spare);
                // SAFETY: as above.
                let out = unsafe { slice_mut::<T>(to, row, n) };
                out.iter_mut()
                    .zip(packed)
                    .for_each(|(out, word)| *out = T::unpacked(directed(order, word)));
                continue;
            }
            drop(packed);
            let x = scratch::collected(n, x.iter().copied());
            let mut items = items(order, &x);
            items.sort_unstable();
            // SAFETY: as above.
            let out = unsafe { slice_mut::<T>(to, row, n) };
            out.iter_mut()
                .zip(items)
                .for_each(|(out, item)| *out = x[item.1]);
        }
    });
}

/// [`super::argsort`] for complex numbers.
///
/// # Safety
/// The same as there.
pub(super) unsafe fn argsort<T: ComplexKey>(
    threads: &dyn Threads,
    order: Order,
    rows: &Rows,
    out: *mut i64,
) {
    let (from, to, n) = (rows.ptr as usize, out as usize, rows.n);
    each_group(threads, rows, &|group, _| {
        for row in group {
            // SAFETY: row `row` exists in both arrays, which do not overlap.
            let (x, out) = unsafe { (slice::<T>(from, row, n), slice_mut::<i64>(to, row, n)) };
            let mut items = items(order, x);
            items.sort_unstable();
            out.iter_mut()
                .zip(items)
                .for_each(|(out, item)| *out = item.1 as i64);
        }
    });
}

/// [`super::topk`] for complex numbers.
///
/// # Safety
/// The same as there.
pub(super) unsafe fn topk<T: ComplexKey>(
    threads: &dyn Threads,
    order: Order,
    k: usize,
    rows: &Rows,
    chosen: &Shared,
) {
    let (from, n) = (rows.ptr as usize, rows.n);
    each_group(threads, rows, &|group, _| {
        for row in group {
            // SAFETY: row `row` exists.
            let x = unsafe { slice::<T>(from, row, n) };
            let mut items = items(order, x);
            if k > 0 && k < n {
                items.select_nth_unstable(k - 1);
            }
            items.truncate(k);
            items.sort_unstable();
            // SAFETY: row `row` of every output exists.
            unsafe { chosen.write(row, x, items.iter().map(|item| item.1)) };
        }
    });
}

/// [`super::partition`] for complex numbers.
///
/// # Safety
/// The same as there.
pub(super) unsafe fn partition<T: ComplexKey>(
    threads: &dyn Threads,
    kth: usize,
    rows: &Rows,
    out: *mut u8,
) {
    let (from, to, n) = (rows.ptr as usize, out as usize, rows.n);
    each_group(threads, rows, &|group, _| {
        for row in group {
            // SAFETY: row `row` exists; its elements are copied before anything is written.
            let x = unsafe { slice::<T>(from, row, n) };
            let x = scratch::collected(n, x.iter().copied());
            let mut items = items(Order::Ascending, &x);
            items.select_nth_unstable(kth);
            // SAFETY: as above.
            let out = unsafe { slice_mut::<T>(to, row, n) };
            out.iter_mut()
                .zip(items)
                .for_each(|(out, item)| *out = x[item.1]);
        }
    });
}

/// [`super::argpartition`] for complex numbers.
///
/// # Safety
/// The same as there.
pub(super) unsafe fn argpartition<T: ComplexKey>(
    threads: &dyn Threads,
    kth: usize,
    rows: &Rows,
    out: *mut i64,
) {
    let (from, to, n) = (rows.ptr as usize, out as usize, rows.n);
    each_group(threads, rows, &|group, _| {
        for row in group {
            // SAFETY: row `row` exists in both arrays, which do not overlap.
            let (x, out) = unsafe { (slice::<T>(from, row, n), slice_mut::<i64>(to, row, n)) };
            let mut items = items(Order::Ascending, x);
            items.select_nth_unstable(kth);
            out.iter_mut()
                .zip(items)
                .for_each(|(out, item)| *out = item.1 as i64);
        }
    });
}
