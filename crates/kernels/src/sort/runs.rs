//! Runs of equal elements in sorted rows (`unique`).

use std::mem::MaybeUninit;

use super::key::Keyed;
use crate::real::Shared;
use crate::reduce::{by_isa, with_elem};
use crate::threads::split;
use crate::{Elem, Threads};

/// Whether NaNs are equal to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Nans {
    /// All NaNs are one run.
    Equal,
    /// Each NaN is a run.
    Distinct,
}

/// Elements per task, and elements processed together.
const CHUNK: usize = 16 * 1024;
const PIECE: usize = 1024;

/// Sorted elements with the number of runs of equal elements.
#[derive(Debug)]
pub struct Runs {
    elem: Elem,
    nans: Nans,
    sorted: *const u8,
    n: usize,
    /// Number of runs that begin before each chunk.
    before: Vec<usize>,
    count: usize,
}

// SAFETY: the elements are only read, and the caller of `Runs::of` keeps them unchanged.
unsafe impl Sync for Runs {}

impl Runs {
    /// Finds the runs of the `n` elements at `sorted`.
    ///
    /// # Safety
    /// `sorted` holds `n` contiguous elements of type `elem` during the lifetime of the result.
    pub unsafe fn of(
        threads: &dyn Threads,
        elem: Elem,
        nans: Nans,
        sorted: *const u8,
        n: usize,
    ) -> Runs {
        let mut runs = Runs {
            elem,
            nans,
            sorted,
            n,
            before: crate::scratch::filled(n.div_ceil(CHUNK), 0),
            count: 0,
        };
        let counts = Shared(runs.before.as_mut_ptr());
        split(threads, n.div_ceil(CHUNK), n, &|chunk| {
            let mut count = 0;
            runs.pieces(chunk, &mut |_, starts| {
                count += starts.iter().map(|&start| u32::from(start)).sum::<u32>() as usize;
            });
            // SAFETY: every task writes its own count.
            unsafe { *counts.at(chunk) = count };
        });
        for before in &mut runs.before {
            runs.count += std::mem::replace(before, runs.count);
        }
        runs
    }

    /// Number of runs.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Writes the first element of each run to `values` and its position to `positions`; either may be null.
    ///
    /// # Safety
    /// Outputs that are not null have room for [`Runs::count`] elements or integers, and overlap nothing.
    pub unsafe fn write(&self, threads: &dyn Threads, values: *mut u8, positions: *mut i64) {
        let (values, positions) = (Shared(values), Shared(positions));
        split(threads, self.before.len(), self.n, &|chunk| {
            let mut to = self.before[chunk];
            let mut found = [0_u16; PIECE];
            self.pieces(chunk, &mut |at, starts| {
                // Branch-free: every element is written, but the position advances only after the start of a run.
                let mut count = 0;
                for (i, &start) in starts.iter().enumerate() {
                    found[count] = i as u16;
                    count += usize::from(start);
                }
                let found = &found[..count];
                if !positions.is_null() {
                    for (k, &i) in found.iter().enumerate() {
                        // SAFETY: runs `to..to + count` begin in this piece, and the output has room for all runs.
                        unsafe { *positions.at(to + k) = (at + i as usize) as i64 };
                    }
                }
                if !values.is_null() {
                    // SAFETY: as above; the positions lie inside the sorted elements.
                    unsafe { self.copy(at, found, values.at(to * self.elem.size())) };
                }
                to += count;
            });
        });
    }

    /// Calls `each` for the pieces of a chunk, with the start of the piece and, for each element, whether a run begins there.
    fn pieces(&self, chunk: usize, each: &mut dyn FnMut(usize, &[u8])) {
        let (first, end) = (chunk * CHUNK, self.n.min((chunk + 1) * CHUNK));
        let mut starts = [0_u8; PIECE];
        for at in (first..end).step_by(PIECE) {
            let len = PIECE.min(end - at);
            let starts = &mut starts[..len];
            let skipped = usize::from(at == 0);
            let nans_differ = self.nans == Nans::Distinct;
            starts[0] = 1;
            // SAFETY: the piece lies inside the caller's elements, and all but the very first have one before them.
            with_elem!(self.elem, T => unsafe {
                let x = self.sorted.cast::<T>().add(at + skipped);
                starts_of::<T>(x, len - skipped, nans_differ, starts.as_mut_ptr().add(skipped));
            });
            each(at, starts);
        }
    }

    /// Copies the elements `at + found[0]`, `at + found[1]`, ... to `to`.
    ///
    /// # Safety
    /// The elements exist, and `to` has room for them.
    unsafe fn copy(&self, at: usize, found: &[u16], to: *mut u8) {
        macro_rules! copy {
            ($t:ty) => {{
                let to = to.cast::<$t>();
                // SAFETY: guaranteed by the caller.
                unsafe {
                    let x = self.sorted.cast::<$t>().add(at);
                    for (k, &i) in found.iter().enumerate() {
                        *to.add(k) = *x.add(i as usize);
                    }
                }
            }};
        }
        match self.elem.size() {
            1 => copy!(u8),
            2 => copy!(u16),
            4 => copy!(u32),
            // c64 is only aligned to four bytes.
            8 => copy!([u32; 2]),
            _ => copy!([u64; 2]),
        }
    }
}

by_isa! {
    /// Whether each of `n` elements differs from the one before it.
    ///
    /// # Safety
    /// `x` has `n` elements and one before the first; `starts` has room for `n` bytes.
    unsafe fn starts_of [T: Keyed] [T] (x: *const T, n: usize, nans_differ: bool, starts: *mut u8) {
        let starts = starts.cast::<MaybeUninit<u8>>();
        for i in 0..n {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let (x, before) = (*x.add(i), *x.add(i).sub(1));
                // Complex NaNs may differ in their other part, but as one run they are equal.
                let both = x.is_nan() & before.is_nan();
                let differs = (x.key() != before.key()) & !both | (nans_differ & x.is_nan());
                (*starts.add(i)).write(u8::from(differs));
            }
        }
    }
}
