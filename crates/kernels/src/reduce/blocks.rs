//! The blocks of a reduction. Outputs are divided into units, their elements into segments, and these into blocks, whose folds are combined in a
//! binary tree. All depend on the sizes only, so the order of additions is always the same.

use std::mem::MaybeUninit;

use smallvec::SmallVec;

use super::elements::Elements;
use super::fold::Reduce;
use super::kernel::Kernel;
use super::plan::{Axes, Axis, Units, Walk, count};
use super::types::Types;
use crate::threads::split;
use crate::{Elem, Threads};

/// Bytes of one block of a row: its source and its converted copy fit in L1.
pub(super) const BLOCK_BYTES: usize = 16 * 1024;

/// Bytes of column accumulators that are reduced into at once.
const COLUMN_BYTES: usize = 2048;

/// Rows folded into one set of column accumulators before the set goes to the summation tree.
const BLOCK_ROWS: usize = 64;

/// Approximate number of elements in one segment of a reduction that is split.
pub(super) const SEGMENT: usize = 64 * 1024;

/// Aligned buffer for one block.
pub(super) type Block = MaybeUninit<[[u64; 8]; BLOCK_BYTES / 64]>;

/// Aligned buffer for one set of column accumulators.
type Columns = MaybeUninit<[[u64; 8]; COLUMN_BYTES / 64]>;

/// The blocks of a reduction, and the loops that fold them.
pub(super) struct Plan {
    types: Types,
    /// Bytes of an accumulator.
    pub size: usize,
    /// Kept axes except the innermost one.
    outer: Axes,
    /// The innermost kept axis, split into units of `width`.
    pub inner: Axis,
    pub width: usize,
    /// Reduced axes, `n` elements per output, split into `segments`.
    pub red: Axes,
    n: usize,
    pub segments: usize,
    /// Whether `width` neighbouring outputs along `inner` are reduced together.
    pub columns: bool,
    /// Whether elements need no conversion.
    needs_no_conversion: bool,
    /// Folds contiguous source elements without loading them into a buffer first. `None` if there is no such loop.
    pub in_place: Option<unsafe fn(*const u8, usize, *mut u8)>,
    /// Bytes of an element of the source.
    step: isize,
    /// Divisor of a mean.
    divisor: Option<f64>,
}

impl Plan {
    /// The plan for these kept and reduced axes, normalised.
    pub fn new(op: Reduce, src: Elem, out: Elem, mut outer: Axes, red: Axes) -> Plan {
        let n = count(&red);
        let columns = match (outer.last(), red.last()) {
            (Some(k), Some(r)) => {
                n > 0 && k.len >= 8 && (k.src < r.src || (r.len < 16 && k.len > r.len))
            }
            _ => false,
        };
        let inner = outer.pop().unwrap_or(Axis {
            len: 1,
            src: 0,
            dst: 0,
        });
        let types = Types::new(op, src, out);
        let size = types.acc.size();
        // Short rows are grouped so that a unit is worth its overhead; the size of the accumulators limits the group.
        let most = COLUMN_BYTES / size;
        let most = if columns {
            most
        } else {
            (SEGMENT / n.max(1)).clamp(1, most)
        };
        let width = inner.len.div_ceil(inner.len.div_ceil(most));
        let units = count(&outer) * inner.len.div_ceil(width);
        let segments = if units >= 32 {
            1
        } else {
            (n * width).div_ceil(SEGMENT).clamp(1, 64 / units)
        };
        let truths = matches!(op, Reduce::Any | Reduce::All);
        let needs_no_conversion =
            types.acc == src && types.polish.is_none() && (src != Elem::Bool || truths);
        Plan {
            size,
            needs_no_conversion,
            in_place: if needs_no_conversion {
                Some(types.kernel.fold)
            } else {
                types.direct_fold
            },
            step: src.size() as isize,
            divisor: (op == Reduce::Mean).then_some(n as f64),
            types,
            outer,
            inner,
            width,
            red,
            n,
            segments,
            columns,
        }
    }

    fn parts(&self) -> Units<'_> {
        Units::new(&self.outer, self.inner, self.width)
    }

    pub fn num_units(&self) -> usize {
        self.parts().count()
    }

    /// Reduces the elements of `src` to the outputs from `dst` on.
    ///
    /// # Safety
    /// The axes of the plan describe elements that can be read and outputs that can be written.
    pub unsafe fn run<E: Elements>(&self, threads: &dyn Threads, src: &E, dst: *mut u8) {
        let parts = self.parts();
        let units = parts.count();
        let dst = dst as usize;
        let locate = |unit: usize| {
            let (from, to, width) = parts.locate(unit);
            (from, (dst as *mut u8).wrapping_offset(to), width)
        };
        let work = self.n * count(&self.outer) * self.inner.len * src.cost();
        if self.segments == 1 {
            return split(threads, units, work, &|unit| {
                let (from, to, width) = locate(unit);
                let mut acc = Columns::uninit();
                let acc = acc.as_mut_ptr().cast::<u8>();
                // SAFETY: `width` was chosen such that the accumulators fit in `acc`; offsets lie inside the caller's arrays.
                unsafe {
                    self.unit(src, from, width, 0, self.n, acc);
                    self.finish(acc, to, width);
                }
            });
        }
        let stride = (self.width * self.size).next_multiple_of(64);
        let mut partials: Vec<[u64; 8]> =
            crate::scratch::filled(units * self.segments * stride / 64, [0; 8]);
        let base = partials.as_mut_ptr() as usize;
        let partial = |unit: usize, segment: usize| {
            (base + (unit * self.segments + segment) * stride) as *mut u8
        };
        split(threads, units * self.segments, work, &|task| {
            let (unit, segment) = (task / self.segments, task % self.segments);
            let (from, _, width) = locate(unit);
            let (start, end) = (
                self.n * segment / self.segments,
                self.n * (segment + 1) / self.segments,
            );
            // SAFETY: every task has its own partial accumulators; offsets lie inside the caller's arrays.
            unsafe { self.unit(src, from, width, start, end, partial(unit, segment)) };
        });
        for unit in 0..units {
            let (_, to, width) = locate(unit);
            let mut step = 1;
            while step < self.segments {
                for segment in (0..self.segments - step).step_by(2 * step) {
                    // SAFETY: both partial results are complete and do not overlap.
                    unsafe {
                        (self.types.kernel.rows)(
                            partial(unit, segment),
                            partial(unit, segment + step),
                            0,
                            1,
                            width,
                        )
                    };
                }
                step *= 2;
            }
            // SAFETY: the first partial holds the result of all segments.
            unsafe { self.finish(partial(unit, 0), to, width) };
        }
    }

    /// Reduces elements `start..end` of each of `width` neighbouring outputs, the first of which begins at byte `at`, into `acc`.
    unsafe fn unit<E: Elements>(
        &self,
        src: &E,
        at: isize,
        width: usize,
        start: usize,
        end: usize,
        acc: *mut u8,
    ) {
        let mut buffer = E::buffer();
        let rows = E::start(&mut buffer);
        // SAFETY: guaranteed by the caller, for each output on its own or for all together.
        unsafe {
            if self.columns {
                return self.column_segment(src, rows, at, width, start, end, acc);
            }
            let step = self.inner.src;
            let of_one_block = match (&self.red[..], self.in_place) {
                ([], Some(fold)) => Some((fold, at, 1)),
                ([r], Some(fold))
                    if r.src == self.step && end - start <= BLOCK_BYTES / self.size =>
                {
                    Some((fold, at + start as isize * r.src, end - start))
                }
                _ => None,
            };
            let Some((fold, at, n)) = of_one_block else {
                for j in 0..width {
                    let at = at + j as isize * step;
                    self.row_segment(src, rows, at, start, end, acc.add(j * self.size));
                }
                return;
            };
            let mut done = 0;
            while done < width {
                let at = at + done as isize * step;
                let (row, step, m) = src.rows(at, step, width - done, n, rows);
                for j in 0..m {
                    fold(
                        row.wrapping_offset(j as isize * step),
                        n,
                        acc.add((done + j) * self.size),
                    );
                }
                done += m;
            }
        }
    }

    unsafe fn row_segment<E: Elements>(
        &self,
        src: &E,
        rows: *mut u8,
        first: isize,
        start: usize,
        end: usize,
        acc: *mut u8,
    ) {
        let kernel = &self.types.kernel;
        let block = BLOCK_BYTES / self.size;
        let mut tree = Tree::new(kernel, self.size, (end - start).div_ceil(block));
        let mut walk = Walk::new(&self.red, start);
        let mut buffer = Block::uninit();
        let buffer = buffer.as_mut_ptr().cast::<u8>();
        let mut at = start;
        // Long contiguous runs are read in place where possible, with blocks that end with their run. Otherwise a block is filled from several runs.
        let fold_of_source = self
            .in_place
            .filter(|_| (self.red.last()).is_none_or(|r| r.src == self.step && r.len >= 128));
        while at < end {
            // SAFETY: runs lie inside the source; a block has room for `block` values.
            let taken = unsafe {
                if let Some(fold) = fold_of_source {
                    let (offset, left) = walk.run();
                    let n = left.min(end - at).min(block);
                    tree.push(1, |acc| fold(src.row(first + offset, n, rows), n, acc));
                    walk.advance(n);
                    n
                } else {
                    let n = block.min(end - at);
                    self.fill(src, rows, first, &mut walk, n, buffer);
                    tree.push(1, |acc| (kernel.fold)(buffer, n, acc));
                    n
                }
            };
            at += taken;
        }
        // SAFETY: the caller's `acc` has room for one accumulator.
        unsafe { tree.finish(1, acc) };
    }

    /// Loads the next `n` elements of a walk, which begins at byte `first`, into a buffer.
    unsafe fn fill<E: Elements>(
        &self,
        src: &E,
        rows: *mut u8,
        first: isize,
        walk: &mut Walk,
        n: usize,
        buffer: *mut u8,
    ) {
        let stride = self.red.last().map_or(0, |r| r.src);
        // Truth values are loaded as bytes and converted to integers after the whole block is loaded.
        let item = if self.types.counts { 1 } else { self.size };
        let mut filled = 0;
        while filled < n {
            let (offset, left) = walk.run();
            let m = left.min(n - filled);
            // SAFETY: the run has `left` elements and the buffer room for `n`.
            unsafe {
                let row = src.row(first + offset, m, rows);
                (self.types.load)(row, stride, m, buffer.add(filled * item));
            }
            walk.advance(m);
            filled += m;
        }
        if let Some(polish) = self.types.polish {
            // SAFETY: `n` values have been loaded.
            unsafe { polish(buffer, n) };
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the elements, and which of them")]
    unsafe fn column_segment<E: Elements>(
        &self,
        src: &E,
        block: *mut u8,
        first: isize,
        width: usize,
        start: usize,
        end: usize,
        acc: *mut u8,
    ) {
        let kernel = &self.types.kernel;
        let mut tree = Tree::new(
            kernel,
            width * self.size,
            (end - start).div_ceil(BLOCK_ROWS),
        );
        let mut walk = Walk::new(&self.red, start);
        let stride = self.red.last().map_or(0, |r| r.src);
        let mut buffer = Columns::uninit();
        let buffer = buffer.as_mut_ptr().cast::<u8>();
        let fold_of_source = self.needs_no_conversion && self.inner.src == self.size as isize;
        let mut at = start;
        while at < end {
            let rows = BLOCK_ROWS.min(end - at);
            tree.push(width, |acc| {
                // SAFETY: every run lies inside the source; the buffer has room for `width` values.
                unsafe { (kernel.fill)(acc, width) };
                let mut done = 0;
                while done < rows {
                    let (offset, left) = walk.run();
                    let m = left.min(rows - done);
                    let mut r = 0;
                    while r < m {
                        let from = first + offset + r as isize * stride;
                        // SAFETY: as above.
                        unsafe {
                            if fold_of_source {
                                let (row, stride, m) = src.rows(from, stride, m - r, width, block);
                                (kernel.rows)(acc, row, stride, m, width);
                                r += m;
                                continue;
                            }
                            let row = src.row(from, width, block);
                            (self.types.load)(row, self.inner.src, width, buffer);
                            if let Some(polish) = self.types.polish {
                                polish(buffer, width);
                            }
                            (kernel.rows)(acc, buffer, 0, 1, width);
                            r += 1;
                        }
                    }
                    walk.advance(m);
                    done += m;
                }
            });
            at += rows;
        }
        // SAFETY: the caller's `acc` has room for `width` accumulators.
        unsafe { tree.finish(width, acc) };
    }

    /// Divides by the divisor (means only) and writes `width` outputs.
    unsafe fn finish(&self, acc: *mut u8, to: *mut u8, width: usize) {
        // SAFETY: the caller gives `width` accumulators of type `acc` and as many writable outputs.
        unsafe {
            if let Some(n) = self.divisor {
                let parts = if matches!(self.types.acc, Elem::C64 | Elem::C128) {
                    2 * width
                } else {
                    width
                };
                match self.types.acc {
                    Elem::F32 | Elem::C64 => (0..parts).for_each(|i| {
                        *acc.cast::<f32>().add(i) = (*acc.cast::<f32>().add(i) as f64 / n) as f32
                    }),
                    _ => (0..parts).for_each(|i| *acc.cast::<f64>().add(i) /= n),
                }
            }
            (self.types.store)(acc, to, self.inner.dst, width);
        }
    }
}

/// Combines the results of equal blocks in a binary tree as they arrive: block 0 with 1, 2 with 3, then pairs with pairs.
struct Tree<'a> {
    kernel: &'a Kernel,
    /// One set of accumulators per level, and one for the latest block.
    levels: SmallVec<[[u64; 8]; 8]>,
    /// Cache lines (64 bytes) per set.
    lines: usize,
    pushed: usize,
}

impl<'a> Tree<'a> {
    fn new(kernel: &'a Kernel, bytes: usize, blocks: usize) -> Self {
        let lines = bytes.div_ceil(64);
        let levels = (usize::BITS - blocks.leading_zeros()) as usize + 1;
        Tree {
            kernel,
            levels: SmallVec::from_elem([0; 8], lines * levels),
            lines,
            pushed: 0,
        }
    }

    fn level(&mut self, k: usize) -> *mut u8 {
        self.levels[k * self.lines..].as_mut_ptr().cast()
    }

    /// Adds a block, which `make` writes as `n` accumulators.
    fn push(&mut self, n: usize, make: impl FnOnce(*mut u8)) {
        let level = self.pushed.trailing_ones() as usize;
        // Blocks that end with their runs can be more than were estimated.
        let needed = (level + 1) * self.lines;
        if self.levels.len() < needed {
            self.levels.resize(needed, [0; 8]);
        }
        make(self.level(level));
        // All levels below are occupied: each is combined with the latest block as its right operand, and the result goes to `level`.
        for k in 0..level {
            let (newest, older) = (self.level(level), self.level(k));
            // SAFETY: both sets are complete, have length `n` and do not overlap.
            unsafe {
                (self.kernel.rows)(older, newest, 0, 1, n);
                std::ptr::copy_nonoverlapping(older, newest, self.lines * 64);
            }
        }
        self.pushed += 1;
    }

    /// Writes the result of all blocks; the neutral element if there are none.
    unsafe fn finish(mut self, n: usize, acc: *mut u8) {
        // SAFETY: the caller's `acc` has room for `n` accumulators.
        unsafe { (self.kernel.fill)(acc, n) };
        let mut full = self.pushed;
        while full != 0 {
            let k = full.ilog2() as usize;
            // SAFETY: the level is complete and does not overlap `acc`.
            unsafe { (self.kernel.rows)(acc, self.level(k), 0, 1, n) };
            full &= !(1 << k);
        }
    }
}
