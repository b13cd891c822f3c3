//! Counting: occurrences of integers (`bincount`), and numbers per bin (`histogram`, `digitize`).

use std::sync::atomic::{AtomicI64, Ordering};

use super::key::{Key, OrderedWord, with_keys};
use super::search::{SearchKey, Side, Sorted};
use crate::reduce::by_isa;
use crate::scratch;
use crate::threads::split;
use crate::{Elem, Threads};

/// Minimum number of elements per task.
const PIECE: usize = 64 * 1024;
/// With at most this many counters, each task counts into its own table; a larger table would not fit in L1.
const TABLE: usize = 2048;
/// A task alternates between this many tables, so that counting a number need not wait until an equal one before it is stored.
const TABLES: usize = 4;

/// The minimum and the maximum of `n` integers; `(i64::MAX, i64::MIN)` if there are none.
///
/// # Safety
/// `x` has `n` integers.
pub unsafe fn extremes(threads: &dyn Threads, x: *const i64, n: usize) -> (i64, i64) {
    let (least, largest) = (AtomicI64::new(i64::MAX), AtomicI64::new(i64::MIN));
    let x = x as usize;
    split(threads, n.div_ceil(PIECE), n, &|piece| {
        let (start, end) = (piece * PIECE, n.min((piece + 1) * PIECE));
        // SAFETY: the piece lies inside the caller's array.
        let (low, high) = unsafe { extremes_of((x as *const i64).add(start), end - start) };
        least.fetch_min(low, Ordering::Relaxed);
        largest.fetch_max(high, Ordering::Relaxed);
    });
    (least.into_inner(), largest.into_inner())
}

by_isa! {
    unsafe fn extremes_of [] [] (x: *const i64, n: usize) -> (i64, i64) {
        let (mut low, mut high) = (i64::MAX, i64::MIN);
        for i in 0..n {
            // SAFETY: guaranteed by the caller.
            let value = unsafe { *x.add(i) };
            low = if value < low { value } else { low };
            high = if value > high { value } else { high };
        }
        (low, high)
    }
}

/// Adds the number of occurrences of `least + i` among `n` integers to `counts[i]`. Every integer must have a counter.
///
/// # Safety
/// `x` has `n` integers.
pub unsafe fn occurrences(
    threads: &dyn Threads,
    x: *const i64,
    n: usize,
    least: i64,
    counts: &mut [i64],
) {
    // SAFETY: guaranteed by the caller.
    let x = unsafe { std::slice::from_raw_parts(x, n) };
    if counts.len() > TABLE {
        for &value in x {
            counts[value.wrapping_sub(least) as usize] += 1;
        }
        return;
    }
    count_in_pieces(threads, n, counts, &|start, end, tables| {
        tables.count(&x[start..end], |value| value.wrapping_sub(least) as usize);
    });
}

/// Adds the weights of the integers equal to `i` to `sums[i]`, in order.
pub fn weighted(x: &[i64], weights: &[f64], sums: &mut [f64]) {
    for (&i, weight) in x.iter().zip(weights) {
        sums[i as usize] += weight;
    }
}

/// Counters of one task.
struct Tables {
    /// [`TABLES`] consecutive tables.
    counters: Vec<i64>,
    len: usize,
}

impl Tables {
    #[inline]
    fn count<T: Copy>(&mut self, x: &[T], number: impl Fn(T) -> usize) {
        let (first, rest) = self.counters.split_at_mut(self.len);
        let (second, rest) = rest.split_at_mut(self.len);
        let (third, fourth) = rest.split_at_mut(self.len);
        let mut groups = x.chunks_exact(TABLES);
        for group in &mut groups {
            first[number(group[0])] += 1;
            second[number(group[1])] += 1;
            third[number(group[2])] += 1;
            fourth[number(group[3])] += 1;
        }
        for &value in groups.remainder() {
            first[number(value)] += 1;
        }
    }
}

/// Counts `n` elements in pieces with `task(start, end, tables)`, and adds up. Integer sums do not depend on the partition.
fn count_in_pieces(
    threads: &dyn Threads,
    n: usize,
    counts: &mut [i64],
    task: &(dyn Fn(usize, usize, &mut Tables) + Sync),
) {
    let len = counts.len();
    let parts = n.div_ceil(PIECE).min(4 * threads.count()).max(1);
    let totals = scratch::collected(len, counts.iter().map(|&count| AtomicI64::new(count)));
    split(threads, parts, n, &|part| {
        let mut tables = Tables {
            counters: scratch::filled(TABLES * len, 0),
            len,
        };
        task(n * part / parts, n * (part + 1) / parts, &mut tables);
        for (i, total) in totals.iter().enumerate() {
            let sum = (0..TABLES)
                .map(|table| tables.counters[table * len + i])
                .sum();
            total.fetch_add(sum, Ordering::Relaxed);
        }
    });
    for (count, total) in counts.iter_mut().zip(totals) {
        *count = total.into_inner();
    }
}

/// Spacing of the edges of bins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spacing {
    /// Evenly spaced up to rounding: the bin is computed, then checked against its edges.
    Even,
    /// Ascending: the bin is found by binary search.
    Any,
}

/// Half-open bins that include their left edge; the last one also includes its right edge. There is one bin less than there are edges.
#[derive(Clone, Copy, Debug)]
pub struct Bins {
    /// Element type of the edges and of the numbers; real.
    pub elem: Elem,
    /// Ascending edges.
    pub edges: *const u8,
    /// Number of edges, at least 1.
    pub len: usize,
    /// Spacing of the edges.
    pub spacing: Spacing,
}

// SAFETY: the edges are only read, and the caller of every kernel keeps them alive.
unsafe impl Sync for Bins {}

/// Numbers assigned to bins at once.
const TILE: usize = 1024;

/// Counts how many of `n` numbers fall into each bin; adds to `counts`.
///
/// # Safety
/// `x` has `n` elements of the bins' type, `bins.edges` has `bins.len`; `counts` has `bins.len - 1` counters.
pub unsafe fn histogram(
    threads: &dyn Threads,
    bins: &Bins,
    x: *const u8,
    n: usize,
    counts: &mut [i64],
) {
    debug_assert_eq!(counts.len() + 1, bins.len);
    let mut outside = scratch::filled(bins.len + 1, 0);
    let size = bins.elem.size();
    let x = x as usize;
    // SAFETY: guaranteed by the caller.
    let assign = unsafe { bins.assign() };
    if outside.len() > TABLE {
        let mut numbers = [0_i64; TILE];
        for start in (0..n).step_by(TILE) {
            let m = TILE.min(n - start);
            // SAFETY: the tile lies inside the caller's array.
            unsafe { assign.numbers((x as *const u8).add(start * size), &mut numbers[..m]) };
            for &number in &numbers[..m] {
                outside[number as usize] += 1;
            }
        }
    } else {
        count_in_pieces(threads, n, &mut outside, &|start, end, tables| {
            let mut numbers = [0_i64; TILE];
            for start in (start..end).step_by(TILE) {
                let m = TILE.min(end - start);
                // SAFETY: the tile lies inside the caller's array.
                unsafe { assign.numbers((x as *const u8).add(start * size), &mut numbers[..m]) };
                tables.count(&numbers[..m], |number| number as usize);
            }
        });
    }
    for (count, inside) in counts.iter_mut().zip(&outside[1..]) {
        *count += inside;
    }
}

/// Writes the bin of each of `n` numbers, counted from 1; 0 before the first edge, the number of edges after the last one and for NaN.
///
/// # Safety
/// Same as for [`histogram`]; `out` has room for `n` integers.
pub unsafe fn bin_numbers(
    threads: &dyn Threads,
    bins: &Bins,
    x: *const u8,
    n: usize,
    out: *mut i64,
) {
    let size = bins.elem.size();
    // SAFETY: guaranteed by the caller.
    let assign = unsafe { bins.assign() };
    let (x, out) = (x as usize, out as usize);
    split(threads, n.div_ceil(TILE), 8 * n, &|tile| {
        let (start, end) = (tile * TILE, n.min((tile + 1) * TILE));
        // SAFETY: tiles lie inside the caller's arrays; those of the output are disjoint.
        unsafe {
            let numbers = std::slice::from_raw_parts_mut((out as *mut i64).add(start), end - start);
            assign.numbers((x as *const u8).add(start * size), numbers);
        }
    });
}

/// Assigns numbers of one type to bins.
trait Numbering: Sync {
    /// # Safety
    /// `x` has as many elements as `numbers`.
    unsafe fn numbers(&self, x: *const u8, numbers: &mut [i64]);
}

impl Bins {
    /// # Safety
    /// The edges live as long as the result.
    unsafe fn assign<'a>(&'a self) -> Box<dyn Numbering + 'a> {
        let (edges, len) = (self.edges, self.len);
        let even = self.spacing == Spacing::Even && len >= 2 && i32::try_from(len).is_ok();
        macro_rules! edges {
            ($t:ty) => {
                // SAFETY: guaranteed by the caller.
                unsafe { std::slice::from_raw_parts(edges.cast::<$t>(), len) }
            };
        }
        match self.elem {
            Elem::F32 if even => Box::new(Computed::new(edges!(f32))),
            Elem::F64 if even => Box::new(Computed::new(edges!(f64))),
            elem => {
                with_keys!(elem, T => Box::new(Searched::new(edges!(T))) as Box<dyn Numbering + 'a>, C => {
                    unreachable!("bins of {}: callers refuse complex numbers", std::any::type_name::<C>())
                })
            }
        }
    }
}

/// Bins found by binary search.
struct Searched<T: OrderedWord> {
    sorted: Sorted<T>,
    last: T::Word,
    len: usize,
}

impl<T: OrderedWord> Searched<T>
where
    T::Word: SearchKey,
{
    fn new(edges: &[T]) -> Searched<T> {
        Searched {
            sorted: Sorted::new(edges),
            last: edges.last().map_or(T::Word::LEAST, |edge| edge.word()),
            len: edges.len(),
        }
    }
}

impl<T: OrderedWord> Numbering for Searched<T>
where
    T::Word: SearchKey,
{
    unsafe fn numbers(&self, x: *const u8, numbers: &mut [i64]) {
        // SAFETY: guaranteed by the caller.
        let x = unsafe { std::slice::from_raw_parts(x.cast::<T>(), numbers.len()) };
        self.sorted.positions(Side::Right, x, numbers);
        for (number, x) in numbers.iter_mut().zip(x) {
            if x.word() == self.last && !x.is_nan() {
                *number = self.len as i64 - 1;
            }
        }
    }
}

/// Bins of equal width, found by computation.
struct Computed<'a, T: OrderedWord> {
    edges: &'a [T],
    /// Used if rounding of a number or of an edge gave a wrong bin.
    searched: Searched<T>,
}

impl<'a, T: OrderedWord> Computed<'a, T>
where
    T::Word: SearchKey,
{
    fn new(edges: &'a [T]) -> Computed<'a, T> {
        Computed {
            edges,
            searched: Searched::new(edges),
        }
    }
}

impl<T: BinFloat> Numbering for Computed<'_, T>
where
    T::Word: SearchKey,
{
    unsafe fn numbers(&self, x: *const u8, numbers: &mut [i64]) {
        // SAFETY: guaranteed by the caller; there are at least two edges, and their number fits in an i32.
        unsafe {
            if !compute(self.edges, x.cast::<T>(), numbers) {
                self.searched.numbers(x, numbers);
            }
        }
    }
}

/// A float type in which bins are computed.
trait BinFloat: OrderedWord + PartialOrd {
    /// The distance of a number from `first` in bins, truncated.
    fn bin(self, first: Self, density: Self) -> i32;
    fn density(bins: usize, first: Self, last: Self) -> Self;
}

macro_rules! floats {
    ($($t:ty),*) => { $(impl BinFloat for $t {
        #[inline(always)]
        fn bin(self, first: $t, density: $t) -> i32 { ((self - first) * density) as i32 }
        #[inline(always)]
        fn density(bins: usize, first: $t, last: $t) -> $t { bins as $t / (last - first) }
    })* };
}
floats!(f32, f64);

by_isa! {
    /// Computes the bins. Returns whether all are right; rounding may have moved a number to the wrong bin.
    ///
    /// # Safety
    /// `x` has as many elements as `numbers`; there are at least two edges.
    unsafe fn compute [T: BinFloat] [T] (edges: &[T], x: *const T, numbers: &mut [i64]) -> bool {
        let bins = edges.len() - 1;
        let (first, last, end) = (edges[0], edges[bins], bins as i32 - 1);
        let density = T::density(bins, first, last);
        let edges = edges.as_ptr();
        let mut is_wrong = false;
        for i in 0..numbers.len() {
            // SAFETY: guaranteed by the caller; `at` is one of the bins.
            unsafe {
                let x = *x.add(i);
                let at = x.bin(first, density).clamp(0, end);
                let (left, right) = (*edges.offset(at as isize), *edges.offset(at as isize + 1));
                let is_inside = (x >= first) & (x <= last);
                is_wrong |= is_inside & !((x >= left) & ((x < right) | (at == end)));
                let outside = if x < first { 0 } else { bins as i64 + 1 };
                *numbers.get_unchecked_mut(i) = if is_inside { i64::from(at) + 1 } else { outside };
            }
        }
        !is_wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduce::fixtures::Noise;
    use crate::threads::Scoped;

    fn reference(edges: &[f64], x: f64) -> i64 {
        if Some(&x) == edges.last() {
            return edges.len() as i64 - 1;
        }
        edges
            .iter()
            .filter(|&&edge| edge <= x || x.is_nan())
            .count() as i64
    }

    fn check(edges: &[f64], x: &[f64]) {
        let wanted: Vec<i64> = x.iter().map(|&x| reference(edges, x)).collect();
        for spacing in [Spacing::Even, Spacing::Any] {
            let bins = Bins {
                elem: Elem::F64,
                edges: edges.as_ptr().cast(),
                len: edges.len(),
                spacing,
            };
            let mut numbers = vec![-1; x.len()];
            let mut counts = vec![0; edges.len() - 1];
            // SAFETY: lengths are those of the slices.
            unsafe {
                bin_numbers(
                    &Scoped(3),
                    &bins,
                    x.as_ptr().cast(),
                    x.len(),
                    numbers.as_mut_ptr(),
                );
                histogram(&Scoped(3), &bins, x.as_ptr().cast(), x.len(), &mut counts);
            }
            assert_eq!(numbers, wanted, "{spacing:?}");
            for (i, count) in counts.iter().enumerate() {
                let wanted = wanted
                    .iter()
                    .filter(|&&number| number == i as i64 + 1)
                    .count();
                assert_eq!(*count, wanted as i64, "bin {i}, {spacing:?}");
            }
        }
    }

    #[test]
    fn bins_match_a_scalar_loop() {
        let mut noise = Noise(9);
        let special = [
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            0.0,
            -0.0,
            1.0,
            -1.0,
        ];
        for bins in [1_usize, 2, 7, 10, 3000] {
            let mut x: Vec<f64> = (0..5000).map(|_| 1.2 * noise.unit()).collect();
            let edges: Vec<f64> = (0..=bins)
                .map(|i| -1.0 + 2.0 * i as f64 / bins as f64)
                .collect();
            x.extend(special);
            x.extend(&edges);
            check(&edges, &x);
            let cubes: Vec<f64> = edges.iter().map(|x| x * x * x).collect();
            check(&cubes, &x);
        }
        // Edges so close together that some of them are equal.
        let coarse: Vec<f64> = (0..=40)
            .map(|i| 1e16 + (f64::from(i) * 0.25).round())
            .collect();
        let x: Vec<f64> = (0..14).map(|i| 1e16 - 2.0 + f64::from(i)).collect();
        check(&coarse, &x);
    }

    #[test]
    fn integers_are_counted_by_few_and_by_many_counters() {
        let mut noise = Noise(31);
        for span in [1, 5, TABLE, TABLE + 1, 100_000] {
            let x: Vec<i64> = (0..200_003).map(|_| noise.below(span) as i64 - 7).collect();
            let mut counts = vec![0; span];
            // SAFETY: lengths are those of the vectors.
            let (low, high) = unsafe {
                occurrences(&Scoped(3), x.as_ptr(), x.len(), -7, &mut counts);
                extremes(&Scoped(3), x.as_ptr(), x.len())
            };
            assert_eq!((Some(&low), Some(&high)), (x.iter().min(), x.iter().max()));
            let mut wanted = vec![0_i64; span];
            x.iter().for_each(|&i| wanted[(i + 7) as usize] += 1);
            assert_eq!(counts, wanted);
        }
    }
}
