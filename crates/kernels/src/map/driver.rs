//! The elementwise N-d driver: one loop nest for every operator, element type and layout.
//!
//! Axes are merged where possible, the two innermost are split into blocks, and blocks are distributed to threads. An inner loop only handles
//! operands of its own element types that are contiguous or a single value. All other operands (strided, of another type, aliased) go through tiles
//! in L1: they are gathered and converted before the inner loop, and scattered after it.

mod blocks;

use std::mem::MaybeUninit;

use smallvec::SmallVec;

use super::half_table::{run_by_lookup, table_len};
use super::row::{InnerLoop, InnerLoops};
use crate::Threads;
use crate::cast::Cast;
use crate::copy::fill_nd;
use crate::elem::Elem;
use crate::isa::isa;
use crate::nd::{Axes, Axis, MAX_OPERANDS};

/// An operand of the loop nest.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'a> {
    /// First element.
    pub ptr: *mut u8,
    /// The element type in memory.
    pub elem: Elem,
    /// Byte strides, one per axis of the loop; 0 broadcasts (inputs only).
    pub strides: &'a [isize],
}

/// A loop with less work than this, in f32 additions, runs on the calling thread: waking another thread takes about as long.
const SERIAL_WORK: usize = 50_000;

/// Work per task, in f32 additions: 128 KiB of f32, well above the cost of scheduling a task.
const TASK_WORK: usize = 32 * 1024;

/// Bytes of one operand's tile. The tiles of five operands fit in L1.
const TILE_BYTES: usize = 8 * 1024;

/// If the innermost axis is shorter than this, a tile spans the next axis too; otherwise the calls would cost more than the elements.
const MIN_INNER_LEN: usize = 64;

/// Sides of a block if an operand is contiguous along the outer axis: whole cache lines along both.
const CROSS_ROWS: usize = 16;
const CROSS_COLS: usize = 64;

/// Blocks of transposed operands: a pair of cache lines (lines are fetched in pairs) from each of `TRANSPOSED_COLS` source rows.
const TRANSPOSED_BYTES: usize = 128;
const TRANSPOSED_COLS: usize = 256;
/// Maximum number of transposed operands of an operator, and minimum length of both axes for which transposing blocks pays.
const MAX_TRANSPOSED: usize = 2;
const MIN_TRANSPOSED_LEN: usize = 16;

#[repr(C, align(64))]
struct Tile([u8; TILE_BYTES]);

/// A transposed block. Its rows are padded by a cache line so that they do not map to the same cache sets.
#[repr(C, align(64))]
struct TransposedTile([u8; TRANSPOSED_BYTES * (TRANSPOSED_COLS + 64)]);

/// One operand of the loop nest, without its address.
#[derive(Clone, Copy, Debug)]
struct Lane {
    /// Element type in memory.
    elem: Elem,
    /// Element type that the inner loop reads or writes.
    native: Elem,
    /// Whether this is an output that aliases an input in a way that the inner loop does not support: it is written through a tile.
    aliased: bool,
    cast: Option<Cast>,
}

/// What runs on a block: an operator's inner loop, or nothing (a conversion is only gather, cast and scatter).
#[derive(Clone, Copy, Debug)]
enum Kernel {
    Row(InnerLoop),
    Move,
}

/// Addresses of the operands of one run.
type Ptrs = [*mut u8; MAX_OPERANDS];

/// An elementwise operator prepared for operands of known shape, strides and element types: everything about the loop nest that does not depend on
/// addresses. It can be run any number of times, from any thread.
#[derive(Clone, Debug)]
pub struct Loops {
    kernel: Kernel,
    /// Number of outputs; they precede the inputs in `lanes`.
    outs: usize,
    lanes: SmallVec<[Lane; 4]>,
    /// Bytes to add to each operand's address, because axes with a negative stride of the first operand are reversed.
    shift: [isize; MAX_OPERANDS],
    /// Bit set of the inputs of another type that are a single value: each is converted once per run, not once per tile.
    singles: u32,
    /// Conversions of the `singles`.
    single_casts: [Option<Cast>; MAX_OPERANDS],
    /// Number of elements if the call uses a lookup table (a unary function of a 16-bit float); 0 for all other calls.
    table_len: usize,
    rows: Option<(&'static InnerLoops, Elem)>,
    outer: SmallVec<[Axis; 4]>,
    /// Next to innermost and innermost axis.
    axes: [Axis; 2],
    /// Sides of a block along `axes`.
    block: [usize; 2],
    /// Number of blocks along `axes`.
    blocks: [usize; 2],
    /// Number of blocks in total; 0 if there are no elements.
    units: usize,
    /// Number of elements that fit in a tile of every operand.
    tile_len: usize,
    /// Bit set of the inputs that are contiguous along the outer axis and transposed block by block. All other operands are then used in place.
    transposed: u32,
    /// Whether the whole loop nest is one call of the inner loop, with all operands used in place.
    is_row: bool,
    /// Time of one element, in f32 additions.
    cost: usize,
    /// Time of the whole loop, in f32 additions.
    work: usize,
}

/// One run of a loop nest: what its tasks share.
struct Job<'a> {
    loops: &'a Loops,
    ptrs: Ptrs,
    params: &'a [f64],
}

// SAFETY: the pointers are shared by the tasks of one call, which write disjoint blocks; the caller of `Loops::run` keeps
// them valid until all tasks have returned.
unsafe impl Sync for Job<'_> {}

/// Applies an operator to arrays of `shape`: prepares the loop nest and runs it once.
///
/// # Safety
/// Same as for [`Loops::run`], with the addresses of the operands.
///
/// # Panics
/// If the operator is not defined on `compute` (see [`InnerLoops::supports`]).
pub unsafe fn run(
    threads: &dyn Threads,
    rows: &'static InnerLoops,
    compute: Elem,
    shape: &[usize],
    outs: &[Operand],
    ins: &[Operand],
    params: &[f64],
) {
    let loops = Loops::new(rows, compute, shape, outs, ins);
    let mut ptrs = [std::ptr::null_mut(); MAX_OPERANDS];
    for (ptr, operand) in ptrs.iter_mut().zip(outs.iter().chain(ins)) {
        *ptr = operand.ptr;
    }
    // SAFETY: guaranteed by the caller.
    unsafe { loops.run(threads, ptrs, params) }
}

impl Loops {
    /// The maximum number of operands, outputs included.
    pub const MAX_OPERANDS: usize = MAX_OPERANDS;

    /// Prepares an operator for the given operands over arrays of `shape`.
    ///
    /// Operands whose `elem` differs from the inner loop's type (`rows.in_elem`, `rows.out_elem`) are converted tile by tile. An output may be
    /// exactly one or several of the inputs (same pointer and strides). The caller must rule out any other overlap. Addresses are only compared with
    /// each other.
    ///
    /// # Panics
    /// If the operator is not defined on `compute` (see [`InnerLoops::supports`]).
    pub fn new(
        rows: &'static InnerLoops,
        compute: Elem,
        shape: &[usize],
        outs: &[Operand],
        ins: &[Operand],
    ) -> Loops {
        debug_assert_eq!(
            (outs.len(), ins.len()),
            (rows.outs as usize, rows.ins as usize),
            "operands of {}",
            rows.name
        );
        let Some(row) = (rows.get)(isa(), compute) else {
            panic!(
                "{} is not defined on {compute:?}: the caller checks `supports`",
                rows.name
            );
        };
        let mut lanes = SmallVec::<[Lane; 4]>::new();
        for out in outs {
            let native = rows.out_elem(compute);
            // Whether an output aliases an input in a way that the inner loop does not support.
            let aliased = ins.iter().enumerate().any(|(i, input)| {
                let is_taken = i < rows.in_place as usize
                    && [input.elem, out.elem] == [native; 2]
                    && is_same_walk(shape, input.strides, out.strides);
                input.ptr == out.ptr && !is_taken
            });
            lanes.push(Lane::new(out.elem, native, true, aliased));
        }
        let mut singles = 0_u32;
        let mut single_casts = [None; MAX_OPERANDS];
        for (i, input) in ins.iter().enumerate() {
            let native = rows.in_elem(i, compute);
            let is_one =
                (input.strides.iter().zip(shape)).all(|(&stride, &n)| stride == 0 || n == 1);
            let elem = match input.elem != native && is_one {
                true => {
                    let k = outs.len() + i;
                    singles |= 1 << k;
                    single_casts[k] = Some(Cast::new(input.elem, native));
                    native
                }
                false => input.elem,
            };
            lanes.push(Lane::new(elem, native, false, false));
        }
        let strides: SmallVec<[&[isize]; 4]> = outs.iter().chain(ins).map(|o| o.strides).collect();
        let mut loops = Loops::over(
            Kernel::Row(row),
            rows.cost as usize,
            shape,
            &strides,
            outs.len(),
            lanes,
        );
        (loops.singles, loops.single_casts) = (singles, single_casts);
        loops.rows = Some((rows, compute));
        if let ([out], [input]) = (outs, ins) {
            loops.table_len = table_len(rows, shape, out, input);
        }
        loops
    }

    /// Prepares a conversion of one array into another of the same shape.
    fn converting(shape: &[usize], out: &Operand, input: &Operand) -> Loops {
        let mut lanes = SmallVec::<[Lane; 4]>::new();
        lanes.push(Lane::new(out.elem, out.elem, true, out.ptr == input.ptr));
        lanes.push(Lane::new(input.elem, out.elem, false, false));
        Loops::over(
            Kernel::Move,
            1,
            shape,
            &[out.strides, input.strides],
            1,
            lanes,
        )
    }

    /// Runs the loop nest over operands at the addresses `at`, outputs first.
    ///
    /// # Safety
    /// 1. Each operand has the element type and strides that the loop nest was prepared for, valid and aligned for all elements.
    /// 2. Elements of an output are distinct. Outputs overlap neither each other nor an input, except that an output may be exactly those inputs that
    ///    it was when the loop nest was prepared.
    /// 3. `params` holds at least `rows.params` numbers.
    #[inline]
    pub unsafe fn run(
        &self,
        threads: &dyn Threads,
        mut at: [*mut u8; MAX_OPERANDS],
        params: &[f64],
    ) {
        if self.units == 0 {
            return;
        }
        for (ptr, &shift) in at.iter_mut().zip(&self.shift) {
            *ptr = ptr.wrapping_offset(shift);
        }
        let mut values = [const { MaybeUninit::<[u64; 2]>::uninit() }; MAX_OPERANDS];
        if self.singles != 0 {
            for k in self.outs..self.lanes.len() {
                if self.singles >> k & 1 == 1 {
                    let to = values[k].as_mut_ptr().cast::<u8>();
                    let cast = self.single_casts[k].expect("single values have a conversion");
                    // SAFETY: the input has an element, as no axis is empty; `values[k]` has room for an element of any type.
                    unsafe { cast.row(at[k], to, 1) };
                    at[k] = to;
                }
            }
        }
        if self.is_row && (self.work < SERIAL_WORK || threads.count() < 2) {
            let Kernel::Row(row) = self.kernel else {
                unreachable!("a conversion is no row")
            };
            // SAFETY: every operand is contiguous or a single value over the whole loop, as the inner loop requires.
            return unsafe {
                row(
                    at.as_ptr(),
                    self.axes[1].strides.as_ptr(),
                    self.axes[1].len,
                    params.as_ptr(),
                )
            };
        }
        // SAFETY: guaranteed by the caller.
        unsafe { self.run_blocks(threads, at, params) }
    }

    /// Runs block by block, on several threads if that pays.
    ///
    /// # Safety
    /// Same as for [`Loops::run`].
    #[inline(never)]
    unsafe fn run_blocks(&self, threads: &dyn Threads, ptrs: Ptrs, params: &[f64]) {
        if self.table_len > 0 {
            let (rows, compute) = self.rows.expect("operators with tables have rows");
            let operand = |k: usize| (ptrs[k], self.lanes[k].elem);
            // SAFETY: guaranteed by the caller; both sides are contiguous 16-bit floats.
            return unsafe {
                run_by_lookup(
                    threads,
                    rows,
                    compute,
                    self.table_len,
                    operand(0),
                    operand(1),
                    params,
                )
            };
        }
        let job = Job {
            loops: self,
            ptrs,
            params,
        };
        if threads.count() < 2 || self.work < SERIAL_WORK {
            // SAFETY: guaranteed by the caller.
            return unsafe { job.units(0, self.units) };
        }
        let per_task = (TASK_WORK / (self.cost * self.block[0] * self.block[1])).max(1);
        let tasks = self.units.div_ceil(per_task);
        threads.run(tasks, &|t| {
            // SAFETY: guaranteed by the caller; tasks take disjoint units.
            unsafe { job.units(t * per_task, self.units.min((t + 1) * per_task)) }
        });
    }
}

/// Whether two operands that start at the same address have their elements at the same addresses.
fn is_same_walk(shape: &[usize], a: &[isize], b: &[isize]) -> bool {
    (shape.iter().zip(a).zip(b)).all(|((&n, a), b)| n == 1 || a == b)
}

/// Converts one array into another of the same shape.
///
/// # Safety
/// Same as for [`run`], with one output and one input.
pub(crate) unsafe fn convert(
    threads: &dyn Threads,
    shape: &[usize],
    outs: &[Operand],
    ins: &[Operand],
) {
    let is_one = (ins[0].strides.iter().zip(shape)).all(|(&stride, &n)| stride == 0 || n == 1);
    if is_one && !shape.contains(&0) {
        let mut value = [0_u64; 2];
        let value = value.as_mut_ptr().cast::<u8>();
        // SAFETY: guaranteed by the caller; the input has an element, as no axis is empty, and `value` has room for an element of any type.
        return unsafe {
            Cast::new(ins[0].elem, outs[0].elem).row(ins[0].ptr, value, 1);
            let size = outs[0].elem.size();
            fill_nd(threads, size, shape, outs[0].ptr, outs[0].strides, value);
        };
    }
    let loops = Loops::converting(shape, &outs[0], &ins[0]);
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut ptrs = [std::ptr::null_mut(); MAX_OPERANDS];
        (ptrs[0], ptrs[1]) = (outs[0].ptr, ins[0].ptr);
        loops.run(threads, ptrs, &[])
    }
}

/// Applies an operator to `n` elements if every operand has the inner loop's element type and is contiguous or a single value.
///
/// # Safety
/// Same as for [`run`]; `strides` (outputs, then inputs) are the element sizes, or 0 for an input that is a single value.
///
/// # Panics
/// If the operator is not defined on `compute`.
#[inline]
pub unsafe fn run_row(
    rows: &'static InnerLoops,
    compute: Elem,
    n: usize,
    ptrs: &[*mut u8],
    strides: &[isize],
    params: &[f64],
) {
    let Some(row) = (rows.get)(isa(), compute) else {
        panic!(
            "{} is not defined on {compute:?}: the caller checks `supports`",
            rows.name
        );
    };
    let outs = rows.outs as usize;
    debug_assert_eq!(
        ptrs.len(),
        outs + rows.ins as usize,
        "operands of {}",
        rows.name
    );
    debug_assert!(
        params.len() >= rows.params as usize,
        "{} takes {} numbers",
        rows.name,
        rows.params
    );
    let aliased = ptrs[..outs].iter().any(|out| ptrs[outs..].contains(out));
    // An inner loop whose output aliases an unsupported input is slow (one element at a time) but correct. Up to 16 elements tiles cost more.
    if !aliased || n <= 16 || rows.in_place == rows.ins {
        // SAFETY: guaranteed by the caller; the inner loop was chosen for this CPU.
        return unsafe { row(ptrs.as_ptr(), strides.as_ptr(), n, params.as_ptr()) };
    }
    let shape = [n];
    let operand = |k: usize, elem: Elem| Operand {
        ptr: ptrs[k],
        elem,
        strides: &strides[k..=k],
    };
    let out_list: SmallVec<[Operand; 2]> = (0..outs)
        .map(|k| operand(k, rows.out_elem(compute)))
        .collect();
    let in_list: SmallVec<[Operand; 4]> = (0..rows.ins as usize)
        .map(|i| operand(outs + i, rows.in_elem(i, compute)))
        .collect();
    // SAFETY: guaranteed by the caller.
    unsafe {
        run(
            &crate::Serial,
            rows,
            compute,
            &shape,
            &out_list,
            &in_list,
            params,
        )
    }
}

impl Lane {
    fn new(elem: Elem, native: Elem, is_out: bool, aliased: bool) -> Lane {
        let cast = (elem != native).then(|| {
            if is_out {
                Cast::new(native, elem)
            } else {
                Cast::new(elem, native)
            }
        });
        Lane {
            elem,
            native,
            aliased,
            cast,
        }
    }
}

impl Loops {
    /// The loop nest over `shape`, given every operand's strides.
    fn over(
        kernel: Kernel,
        cost: usize,
        shape: &[usize],
        strides: &[&[isize]],
        outs: usize,
        lanes: SmallVec<[Lane; 4]>,
    ) -> Loops {
        let Axes {
            axes: mut outer,
            shift,
            len,
        } = Axes::new(shape, strides);
        let widest = lanes
            .iter()
            .map(|l| l.elem.size().max(l.native.size()))
            .max()
            .unwrap_or(1);
        let tile_len = TILE_BYTES / widest;
        // Missing axes get length 1, contiguous for every operand.
        let mut one = Axis {
            len: 1,
            strides: [0; MAX_OPERANDS],
        };
        for (stride, lane) in one.strides.iter_mut().zip(&lanes) {
            *stride = lane.elem.size() as isize;
        }
        let inner = outer.pop().unwrap_or(one);
        let next = outer.pop().unwrap_or(one);
        let transposed = match kernel {
            Kernel::Row(_) => transposed(&lanes, outs, &next, &inner),
            Kernel::Move => 0,
        };
        let crosses = next.len > 1
            && (0..lanes.len()).any(|k| {
                let (a, b) = (
                    next.strides[k].unsigned_abs(),
                    inner.strides[k].unsigned_abs(),
                );
                a != 0 && a < b
            });
        let cols = if crosses && inner.len > CROSS_COLS {
            CROSS_COLS
        } else {
            inner.len.min(TASK_WORK / cost)
        };
        let rows = if crosses || inner.len < MIN_INNER_LEN {
            let fit = (tile_len / cols).max(1);
            if crosses && fit > CROSS_ROWS {
                fit.min(CROSS_ROWS * MIN_INNER_LEN / cols.min(MIN_INNER_LEN))
            } else {
                fit
            }
        } else {
            1
        };
        let mut block = [rows.min(next.len), cols];
        if transposed != 0 {
            let widest = lanes.iter().map(|lane| lane.elem.size()).max().unwrap_or(1);
            block = [
                (TRANSPOSED_BYTES / widest).min(next.len),
                TRANSPOSED_COLS.min(inner.len),
            ];
        }
        let blocks = [next.len.div_ceil(block[0]), inner.len.div_ceil(block[1])];
        let units = match len {
            0 => 0,
            _ => outer.iter().map(|a| a.len).product::<usize>() * blocks[0] * blocks[1],
        };
        let mut loops = Loops {
            kernel,
            outs,
            lanes,
            shift,
            singles: 0,
            single_casts: [None; MAX_OPERANDS],
            table_len: 0,
            rows: None,
            outer,
            axes: [next, inner],
            block,
            blocks,
            units,
            tile_len,
            transposed,
            is_row: false,
            cost,
            work: len.saturating_mul(cost),
        };
        let sides = [next.len, inner.len];
        loops.is_row = matches!(kernel, Kernel::Row(_))
            && transposed == 0
            && next.len == 1
            && loops.outer.is_empty()
            && (0..loops.lanes.len()).all(|k| loops.is_direct(k, sides));
        loops
    }

    /// Whether the inner loop can use operand `k` of a block in place.
    fn is_direct(&self, k: usize, sides: [usize; 2]) -> bool {
        let lane = &self.lanes[k];
        let size = lane.elem.size() as isize;
        let [outer, inner] = [self.axes[0].strides[k], self.axes[1].strides[k]];
        let dense = inner == size && (sides[0] == 1 || outer == size * sides[1] as isize);
        let single = k >= self.outs && inner == 0 && (sides[0] == 1 || outer == 0);
        lane.cast.is_none() && !lane.aliased && (dense || single)
    }
}

/// Bit set of the inputs that are contiguous along `outer`, if there are any and all other operands are contiguous or a single value along `inner`.
/// Blocks of these inputs are then transposed, and all other operands are used in place. Otherwise 0.
fn transposed(lanes: &[Lane], outs: usize, outer: &Axis, inner: &Axis) -> u32 {
    let mut found = 0_u32;
    for (k, lane) in lanes.iter().enumerate() {
        let size = lane.elem.size() as isize;
        let (across, along) = (outer.strides[k], inner.strides[k]);
        if lane.cast.is_some() || lane.aliased {
            return 0;
        }
        if along == size || (along == 0 && k >= outs) {
            continue;
        }
        if k < outs || across.abs() != size {
            return 0;
        }
        found |= 1 << k;
    }
    let is_worth = outer.len >= MIN_TRANSPOSED_LEN && inner.len >= MIN_TRANSPOSED_LEN;
    if is_worth && found.count_ones() as usize <= MAX_TRANSPOSED {
        found
    } else {
        0
    }
}
