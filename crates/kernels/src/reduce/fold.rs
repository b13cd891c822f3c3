//! Reductions with one associative operator.

use super::count::count_dense;
use std::mem::MaybeUninit;

use smallvec::SmallVec;

use super::kernel::{Kernel, by_isa};
use super::plan::{Axes, Axis, Walk, count, normalise, offsets, split};
use super::types::Types;
use super::{Source, Target};
use crate::{Elem, Serial, Threads};

/// What a reduction computes of the elements `x` of each output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduce {
    /// Sum; 0 if there are no elements.
    Sum,
    /// Product; 1 if there are no elements.
    Prod,
    /// Minimum, NaN if any element is NaN; the type's maximum if there are no elements. Complex numbers compare by real, then imaginary part.
    Min,
    /// Maximum, NaN if any element is NaN; the type's minimum if there are no elements. Complex numbers compare by real, then imaginary part.
    Max,
    /// Whether any element is nonzero (NaN is nonzero).
    Any,
    /// Whether all elements are nonzero.
    All,
    /// Sum divided by the number of elements; NaN if there are no elements.
    Mean,
    /// Sum of |x|^2; real for complex x.
    SumSquares,
    /// Sum of |x|; real for complex x.
    SumAbs,
    /// Number of nonzero elements.
    CountNonzero,
    /// Sum of the elements that are not NaN; 0 if there are none.
    NanSum,
    /// Minimum of the real elements that are not NaN; NaN if all are NaN; an integer type's maximum if there are no elements.
    NanMin,
    /// Maximum of the real elements that are not NaN; NaN if all are NaN; an integer type's minimum if there are no elements.
    NanMax,
}

impl Reduce {
    /// The reduction that gives the same result if no element is NaN.
    pub(super) fn without_nan(self) -> Reduce {
        match self {
            Reduce::NanSum => Reduce::Sum,
            Reduce::NanMin => Reduce::Min,
            Reduce::NanMax => Reduce::Max,
            op => op,
        }
    }
}

/// Bytes of one block of a row: its source and its converted copy fit in L1.
const BLOCK_BYTES: usize = 16 * 1024;
/// Bytes of column accumulators that are reduced into at once.
const COLUMN_BYTES: usize = 2048;
/// Rows folded into one set of column accumulators before the set goes to the summation tree.
const BLOCK_ROWS: usize = 64;
/// Approximate number of elements in one segment of a reduction that is split.
pub(super) const SEGMENT: usize = 64 * 1024;

/// Number of elements that `any` and `all` check first, before they scan the whole array.
const HEAD: usize = 4096;

/// Aligned buffer for one block.
type Block = MaybeUninit<[[u64; 8]; BLOCK_BYTES / 64]>;
/// Aligned buffer for one set of column accumulators.
type Columns = MaybeUninit<[[u64; 8]; COLUMN_BYTES / 64]>;

/// [`super::reduce`] without the correction of products that leave the range of their type.
///
/// # Safety
/// Same as for [`super::reduce`].
pub unsafe fn reduce(threads: &dyn Threads, op: Reduce, src: &Source, axes: &[bool], out: &Target) {
    debug_assert!(
        src.shape.len() == axes.len()
            && src.strides.len() == axes.len()
            && out.strides.len() == axes.len()
    );
    let (mut from, mut to) = (src.ptr, out.ptr);
    let (mut keep, mut red) = (Axes::new(), Axes::new());
    for (i, &len) in src.shape.iter().enumerate() {
        let axis = Axis {
            len,
            src: src.strides[i],
            dst: if axes[i] { 0 } else { out.strides[i] },
        };
        if axes[i] {
            red.push(axis)
        } else {
            keep.push(axis)
        }
    }
    let (outputs, n) = (count(&keep), count(&red));
    if outputs == 0 {
        return;
    }
    normalise(&mut keep, &mut from, &mut to);
    if n == 0 {
        red = SmallVec::from_elem(
            Axis {
                len: 0,
                src: 0,
                dst: 0,
            },
            1,
        );
    } else {
        normalise(&mut red, &mut from, &mut std::ptr::null_mut());
    }
    let dense = red.len() == 1 && red[0].src == src.elem.size() as isize;
    if outputs == 1
        && dense
        && n > 2 * HEAD
        && out.elem == Elem::Bool
        && matches!(op, Reduce::Any | Reduce::All)
    {
        // The first elements often decide the result.
        let size = src.elem.size() as isize;
        let head = Source {
            ptr: from,
            elem: src.elem,
            shape: &[HEAD],
            strides: &[size],
        };
        let first = Target {
            ptr: to,
            elem: Elem::Bool,
            strides: &[0],
        };
        // SAFETY: the head is part of the source; the output is one boolean.
        unsafe {
            reduce(&Serial, op, &head, &[true], &first);
            if (*to != 0) == (op == Reduce::Any) {
                return;
            }
        }
    }
    let counts = op == Reduce::CountNonzero || (op == Reduce::Sum && src.elem == Elem::Bool);
    if outputs == 1 && dense && counts && out.elem == Elem::I64 {
        // SAFETY: `from` has `n` elements; the output is one integer.
        unsafe { *to.cast::<i64>() = count_dense(threads, src.elem, from, n) as i64 };
        return;
    }
    if dense
        && src.elem == Elem::Bool
        && out.elem == Elem::Bool
        && matches!(op, Reduce::Any | Reduce::All)
    {
        let wanted = op == Reduce::Any;
        let (from, to) = (from as usize, to as usize);
        return split(threads, outputs, outputs * n.min(HEAD) / 8, &|i| {
            let (src, dst) = offsets(&keep, i);
            // SAFETY: row `i` lies inside the source, its result inside the output.
            unsafe {
                let row = (from as *const u8).offset(src);
                *(to as *mut u8).offset(dst) = u8::from(has(row, n, wanted) == wanted);
            }
        });
    }
    let columns = match (keep.last(), red.last()) {
        (Some(k), Some(r)) => {
            n > 0 && k.len >= 8 && (k.src < r.src || (r.len < 16 && k.len > r.len))
        }
        _ => false,
    };
    let inner = keep.pop().unwrap_or(Axis {
        len: 1,
        src: 0,
        dst: 0,
    });
    let plan = Plan::new(op, src.elem, out.elem, keep, inner, red, n, columns);
    // SAFETY: guaranteed by the caller; `from` and `to` are at the first elements of the reversed axes.
    unsafe { plan.run(threads, from, to) }
}

by_isa! {
    /// Whether one of `n` bytes is nonzero (`wanted`), or is zero (not `wanted`). Stops after the first chunk that contains one.
    ///
    /// # Safety
    /// `bytes` has `n` bytes.
    unsafe fn has [] [] (bytes: *const u8, n: usize, wanted: bool) -> bool {
        const CHUNK: usize = 512;
        let mut at = 0;
        while at < n {
            // The first chunk is short, because the first elements often decide.
            let end = n.min(at + if at == 0 { 64 } else { CHUNK });
            let mut found = false;
            for i in at..end {
                // SAFETY: `i` is below `n`.
                found |= (unsafe { *bytes.add(i) } != 0) == wanted;
            }
            if found {
                return true;
            }
            at = end;
        }
        false
    }
}

struct Plan {
    types: Types,
    /// Bytes of an accumulator.
    size: usize,
    /// Kept axes except the innermost one.
    outer: Axes,
    /// The innermost kept axis, split into units of `width`.
    inner: Axis,
    width: usize,
    /// Reduced axes, `n` elements per output, split into `segments`.
    red: Axes,
    n: usize,
    segments: usize,
    /// Whether `width` neighbouring outputs along `inner` are reduced together.
    columns: bool,
    /// Whether elements need no conversion.
    plain: bool,
    /// Folds contiguous source elements without loading them into a buffer first. `None` if there is no such loop.
    in_place: Option<unsafe fn(*const u8, usize, *mut u8)>,
    /// Bytes of an element of the source.
    step: isize,
    /// Divisor of a mean.
    divisor: Option<f64>,
}

impl Plan {
    #[expect(
        clippy::too_many_arguments,
        reason = "called once, with what `reduce` has worked out"
    )]
    fn new(
        op: Reduce,
        src: Elem,
        out: Elem,
        outer: Axes,
        inner: Axis,
        red: Axes,
        n: usize,
        columns: bool,
    ) -> Plan {
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
        let plain = types.acc == src && types.polish.is_none() && (src != Elem::Bool || truths);
        Plan {
            size,
            plain,
            in_place: if plain {
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

    unsafe fn run(&self, threads: &dyn Threads, src: *const u8, dst: *mut u8) {
        let pieces = self.inner.len.div_ceil(self.width);
        let units = count(&self.outer) * pieces;
        let (src, dst) = (src as usize, dst as usize);
        let place = |unit: usize| {
            let (from, to) = offsets(&self.outer, unit / pieces);
            let first = unit % pieces * self.width;
            let width = self.width.min(self.inner.len - first);
            let from = (src as *const u8).wrapping_offset(from + first as isize * self.inner.src);
            let to = (dst as *mut u8).wrapping_offset(to + first as isize * self.inner.dst);
            (from, to, width)
        };
        let work = self.n * count(&self.outer) * self.inner.len;
        if self.segments == 1 {
            return split(threads, units, work, &|unit| {
                let (from, to, width) = place(unit);
                let mut acc = Columns::uninit();
                let acc = acc.as_mut_ptr().cast::<u8>();
                // SAFETY: `width` was chosen such that the accumulators fit in `acc`; offsets lie inside the caller's arrays.
                unsafe {
                    self.unit(from, width, 0, self.n, acc);
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
            let (from, _, width) = place(unit);
            let (start, end) = (
                self.n * segment / self.segments,
                self.n * (segment + 1) / self.segments,
            );
            // SAFETY: every task has its own partial accumulators; offsets lie inside the caller's arrays.
            unsafe { self.unit(from, width, start, end, partial(unit, segment)) };
        });
        for unit in 0..units {
            let (_, to, width) = place(unit);
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

    /// Reduces elements `start..end` of each of `width` neighbouring outputs into `acc`.
    unsafe fn unit(&self, src: *const u8, width: usize, start: usize, end: usize, acc: *mut u8) {
        // SAFETY: guaranteed by the caller, for each output on its own or for all together.
        unsafe {
            if self.columns {
                return self.column_segment(src, width, start, end, acc);
            }
            for j in 0..width {
                let (src, acc) = (
                    src.offset(j as isize * self.inner.src),
                    acc.add(j * self.size),
                );
                match (&self.red[..], self.in_place) {
                    ([], Some(fold)) => fold(src, 1, acc),
                    ([r], Some(fold))
                        if r.src == self.step && end - start <= BLOCK_BYTES / self.size =>
                    {
                        fold(src.offset(start as isize * r.src), end - start, acc);
                    }
                    _ => self.row_segment(src, start, end, acc),
                }
            }
        }
    }

    unsafe fn row_segment(&self, src: *const u8, start: usize, end: usize, acc: *mut u8) {
        let kernel = &self.types.kernel;
        let block = BLOCK_BYTES / self.size;
        let mut tree = Tree::new(kernel, self.size, (end - start).div_ceil(block));
        let mut walk = Walk::new(&self.red, start);
        let mut buffer = Block::uninit();
        let buffer = buffer.as_mut_ptr().cast::<u8>();
        let mut at = start;
        // Long contiguous runs are read in place where possible, with blocks that end with their run. Otherwise a block is filled from several runs.
        let direct = self
            .in_place
            .filter(|_| (self.red.last()).is_none_or(|r| r.src == self.step && r.len >= 128));
        while at < end {
            // SAFETY: runs lie inside the source; a block has room for `block` values.
            let taken = unsafe {
                if let Some(fold) = direct {
                    let (offset, left) = walk.run();
                    let n = left.min(end - at).min(block);
                    tree.push(1, |acc| fold(src.offset(offset), n, acc));
                    walk.advance(n);
                    n
                } else {
                    let n = self.fill(src, &mut walk, block.min(end - at), buffer);
                    tree.push(1, |acc| (kernel.fold)(buffer, n, acc));
                    n
                }
            };
            at += taken;
        }
        // SAFETY: the caller's `acc` has room for one accumulator.
        unsafe { tree.finish(1, acc) };
    }

    /// Loads the next `n` elements of a walk into a buffer.
    unsafe fn fill(&self, src: *const u8, walk: &mut Walk, n: usize, buffer: *mut u8) -> usize {
        let stride = self.red.last().map_or(0, |r| r.src);
        // Truth values are loaded as bytes and converted to integers after the whole block is loaded.
        let item = if self.types.counts { 1 } else { self.size };
        let mut filled = 0;
        while filled < n {
            let (offset, left) = walk.run();
            let m = left.min(n - filled);
            // SAFETY: the run has `left` elements and the buffer room for `n`.
            unsafe { (self.types.load)(src.offset(offset), stride, m, buffer.add(filled * item)) };
            walk.advance(m);
            filled += m;
        }
        if let Some(polish) = self.types.polish {
            // SAFETY: `n` values have been loaded.
            unsafe { polish(buffer, n) };
        }
        n
    }

    unsafe fn column_segment(
        &self,
        src: *const u8,
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
        let direct = self.plain && self.inner.src == self.size as isize;
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
                    let from = src.wrapping_offset(offset);
                    for r in 0..if direct { 1 } else { m } {
                        // SAFETY: as above.
                        unsafe {
                            if direct {
                                (kernel.rows)(acc, from, stride, m, width);
                                continue;
                            }
                            (self.types.load)(
                                from.offset(r as isize * stride),
                                self.inner.src,
                                width,
                                buffer,
                            );
                            if let Some(polish) = self.types.polish {
                                polish(buffer, width);
                            }
                            (kernel.rows)(acc, buffer, 0, 1, width);
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

#[cfg(test)]
#[path = "fold_tests.rs"]
mod tests;
