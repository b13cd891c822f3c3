//! The N-d driver: one loop for every operator, element type and layout.
//!
//! The axes are simplified, the two innermost are cut into blocks, and blocks are dealt to threads. A row sees only
//! contiguous or single-valued operands of its own element types; whatever differs (strided, of another element, aliased)
//! goes through tiles in L1, gathered and converted before the row and scattered after it.

use std::mem::MaybeUninit;

use smallvec::SmallVec;

use super::half_table::looked_up;
use super::row::{RowFn, Rows};
use crate::Threads;
use crate::cast::Cast;
use crate::copy::{copy_2d, fill_nd};
use crate::elem::Elem;
use crate::isa::isa;
use crate::nd::{Axes, Axis, MAX_OPERANDS};

/// An array as the driver sees it.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'a> {
    /// First element.
    pub ptr: *mut u8,
    /// What is stored.
    pub elem: Elem,
    /// Byte strides, one per axis of the loop; 0 broadcasts (inputs only).
    pub strides: &'a [isize],
}

/// Work below this, in f32 additions, stays on the calling thread: waking another costs about as much.
const SERIAL_WORK: usize = 50_000;

/// Work of one task, in f32 additions: 128 KiB of f32, well above the cost of dealing the task.
const TASK_WORK: usize = 32 * 1024;

/// Bytes of one operand's tile. Five operands' tiles fill a good part of L1 and leave it none.
const TILE_BYTES: usize = 8 * 1024;

/// An inner axis shorter than this is tiled together with the next, lest calls cost more than elements.
const SHORT: usize = 64;

/// Block sides where an operand runs across the others' order: wide enough for whole cache lines both ways.
const CROSS_ROWS: usize = 16;
const CROSS_COLS: usize = 64;

/// Blocks of operands that are turned: a pair of cache lines of each of so many source rows, since lines are fetched in pairs.
const TURNED_BYTES: usize = 128;
const TURNED_COLS: usize = 256;
/// Turned operands of one operator at most, and the shortest axes that are worth it.
const TURNED: usize = 2;
const TURNED_LEAST: usize = 16;

#[repr(C, align(64))]
struct Tile([u8; TILE_BYTES]);

/// Rows lie a cache line further apart than they are long, lest they compete for places in the cache.
#[repr(C, align(64))]
struct TurnedTile([u8; TURNED_BYTES * (TURNED_COLS + 64)]);

/// One operand during the loop.
#[derive(Clone, Copy)]
struct Lane {
    ptr: *mut u8,
    /// Stored element.
    elem: Elem,
    /// Element the row reads or writes.
    native: Elem,
    /// An output that an input aliases and rows do not take so: written through a tile.
    aliased: bool,
    cast: Option<Cast>,
}

/// What runs on a block: an operator's row, or nothing (a conversion is all gather, cast and scatter).
#[derive(Clone, Copy)]
enum Kernel<'a> {
    Row(RowFn, &'a [f64]),
    Move,
}

struct Job<'a> {
    kernel: Kernel<'a>,
    outs: usize,
    lanes: SmallVec<[Lane; 4]>,
    outer: SmallVec<[Axis; 4]>,
    /// Next to innermost and innermost axis.
    axes: [Axis; 2],
    /// Sides of a block along `axes`.
    block: [usize; 2],
    /// Number of blocks along `axes`.
    blocks: [usize; 2],
    /// Number of blocks in all.
    units: usize,
    /// Elements that fit in a tile for every lane.
    tile_len: usize,
    /// A bit for each input that runs across the others' order and is turned in blocks; all others are taken as they lie.
    turned: u32,
}

// SAFETY: the pointers are shared by the tasks of one call, which write disjoint blocks; the caller of `run` keeps them
// valid until all tasks have returned.
unsafe impl Sync for Job<'_> {}

/// Applies an operator to arrays of `shape`.
///
/// Operands whose `elem` differs from what the row takes (`rows.in_elem`, `rows.out_elem`) are converted tile by tile.
/// An output may be exactly one of the inputs (same pointer and strides), or several; any other overlap the caller has resolved.
///
/// # Safety
/// 1. `outs` and `ins` have as many operands as `rows` says, each with one stride per axis, valid and aligned for all elements.
/// 2. Elements of an output are distinct; outputs overlap neither each other nor, except as above, an input.
/// 3. `params` holds at least `rows.params` numbers.
///
/// # Panics
/// If the operator is not defined on `compute` (see [`Rows::supports`]).
pub unsafe fn run(
    threads: &dyn Threads,
    rows: &Rows,
    compute: Elem,
    shape: &[usize],
    outs: &[Operand],
    ins: &[Operand],
    params: &[f64],
) {
    debug_assert_eq!(
        (outs.len(), ins.len()),
        (rows.outs as usize, rows.ins as usize),
        "operands of {}",
        rows.name
    );
    debug_assert!(
        params.len() >= rows.params as usize,
        "{} takes {} numbers",
        rows.name,
        rows.params
    );
    let Some(row) = (rows.get)(isa(), compute) else {
        panic!(
            "{} is not defined on {compute:?}: the caller checks `supports`",
            rows.name
        );
    };
    // SAFETY: the caller's.
    if shape.contains(&0) || unsafe { looked_up(threads, rows, compute, shape, outs, ins, params) }
    {
        return;
    }
    let mut lanes = SmallVec::<[Lane; 4]>::new();
    for out in outs {
        let native = rows.out_elem(compute);
        // Not what the row's own loops take as it lies.
        let aliased = ins.iter().enumerate().any(|(i, input)| {
            let is_taken = i < rows.in_place as usize
                && [input.elem, out.elem] == [native; 2]
                && is_same_walk(shape, input.strides, out.strides);
            input.ptr == out.ptr && !is_taken
        });
        lanes.push(Lane::new(out, native, true, aliased));
    }
    // One value of another element (a Python number beside an array) is converted here and not for every tile: rows take it as it is then.
    let mut values = [[0_u64; 2]; MAX_OPERANDS];
    let mut taken = SmallVec::<[Operand; 4]>::new();
    for ((i, input), value) in ins.iter().enumerate().zip(&mut values) {
        let native = rows.in_elem(i, compute);
        let is_one = (input.strides.iter().zip(shape)).all(|(&stride, &n)| stride == 0 || n == 1);
        let mut input = *input;
        if input.elem != native && is_one {
            let to = value.as_mut_ptr().cast::<u8>();
            // SAFETY: the input has an element, as no axis is empty; `value` has room for the widest.
            unsafe { Cast::new(input.elem, native).row(input.ptr, to, 1) };
            (input.ptr, input.elem) = (to, native);
        }
        lanes.push(Lane::new(&input, native, false, false));
        taken.push(input);
    }
    // SAFETY: the caller's; converted values outlive the call.
    unsafe {
        drive(
            threads,
            Kernel::Row(row, params),
            rows.cost as usize,
            shape,
            outs,
            &taken,
            lanes,
        )
    }
}

/// Whether two operands of one start have their elements at the same places.
fn is_same_walk(shape: &[usize], a: &[isize], b: &[isize]) -> bool {
    (shape.iter().zip(a).zip(b)).all(|((&n, a), b)| n == 1 || a == b)
}

/// Converts one array into another of the same shape.
///
/// # Safety
/// As for [`run`], with one output and one input.
pub(crate) unsafe fn convert(
    threads: &dyn Threads,
    shape: &[usize],
    outs: &[Operand],
    ins: &[Operand],
) {
    let mut lanes = SmallVec::<[Lane; 4]>::new();
    let aliased = outs[0].ptr == ins[0].ptr;
    lanes.push(Lane::new(&outs[0], outs[0].elem, true, aliased));
    lanes.push(Lane::new(&ins[0], outs[0].elem, false, false));
    let is_one = (ins[0].strides.iter().zip(shape)).all(|(&stride, &n)| stride == 0 || n == 1);
    if is_one && !shape.contains(&0) {
        let mut value = [0_u64; 2];
        let value = value.as_mut_ptr().cast::<u8>();
        // SAFETY: the caller's; the input has an element, as no axis is empty, and `value` has room for the widest.
        return unsafe {
            Cast::new(ins[0].elem, outs[0].elem).row(ins[0].ptr, value, 1);
            let size = outs[0].elem.size();
            fill_nd(threads, size, shape, outs[0].ptr, outs[0].strides, value);
        };
    }
    // SAFETY: the caller's.
    unsafe { drive(threads, Kernel::Move, 1, shape, outs, ins, lanes) }
}

/// # Safety
/// As for [`run`].
unsafe fn drive(
    threads: &dyn Threads,
    kernel: Kernel,
    cost: usize,
    shape: &[usize],
    outs: &[Operand],
    ins: &[Operand],
    mut lanes: SmallVec<[Lane; 4]>,
) {
    let strides: SmallVec<[&[isize]; 4]> = outs.iter().chain(ins).map(|o| o.strides).collect();
    let axes = Axes::new(shape, &strides);
    if axes.len == 0 {
        return;
    }
    for (lane, shift) in lanes.iter_mut().zip(axes.shift) {
        // SAFETY: `shift` leads to the first element of the walk, inside the operand.
        lane.ptr = unsafe { lane.ptr.offset(shift) };
    }
    let widest = lanes
        .iter()
        .map(|l| l.elem.size().max(l.native.size()))
        .max()
        .unwrap_or(1);
    let job = Job::new(
        kernel,
        outs.len(),
        lanes,
        axes.axes,
        TILE_BYTES / widest,
        cost,
    );
    let work = axes.len.saturating_mul(cost);
    if threads.count() < 2 || work < SERIAL_WORK {
        // SAFETY: the caller's.
        return unsafe { job.units(0, job.units) };
    }
    let per_task = (TASK_WORK / (cost * job.block[0] * job.block[1])).max(1);
    let tasks = job.units.div_ceil(per_task);
    threads.run(tasks, &|t| {
        // SAFETY: the caller's; tasks take disjoint units.
        unsafe { job.units(t * per_task, job.units.min((t + 1) * per_task)) }
    });
}

/// Applies an operator to `n` elements when every operand has the row's element type and is contiguous or one value.
///
/// # Safety
/// As for [`run`]; `strides` (outputs, then inputs) are the element sizes, or 0 for an input that is one value.
///
/// # Panics
/// If the operator is not defined on `compute`.
#[inline]
pub unsafe fn run_row(
    rows: &Rows,
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
    // A row that meets its own output falls back to one element at a time but stays right; up to here tiles cost more.
    if !aliased || n <= 16 || rows.in_place == rows.ins {
        // SAFETY: the caller's; the row was chosen for this machine.
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
    // SAFETY: the caller's.
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
    fn new(operand: &Operand, native: Elem, is_out: bool, aliased: bool) -> Lane {
        let elem = operand.elem;
        let cast = (elem != native).then(|| {
            if is_out {
                Cast::new(native, elem)
            } else {
                Cast::new(elem, native)
            }
        });
        Lane {
            ptr: operand.ptr,
            elem,
            native,
            aliased,
            cast,
        }
    }
}

impl<'a> Job<'a> {
    fn new(
        kernel: Kernel<'a>,
        outs: usize,
        lanes: SmallVec<[Lane; 4]>,
        mut outer: SmallVec<[Axis; 4]>,
        tile_len: usize,
        cost: usize,
    ) -> Job<'a> {
        // Axes that are not there have one element, dense for every operand.
        let mut one = Axis {
            len: 1,
            strides: [0; MAX_OPERANDS],
        };
        for (stride, lane) in one.strides.iter_mut().zip(&lanes) {
            *stride = lane.elem.size() as isize;
        }
        let inner = outer.pop().unwrap_or(one);
        let next = outer.pop().unwrap_or(one);
        let turned = match kernel {
            Kernel::Row(..) => turned(&lanes, outs, &next, &inner),
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
        let rows = if crosses || inner.len < SHORT {
            let fit = (tile_len / cols).max(1);
            if crosses && fit > CROSS_ROWS {
                fit.min(CROSS_ROWS * SHORT / cols.min(SHORT))
            } else {
                fit
            }
        } else {
            1
        };
        let mut block = [rows.min(next.len), cols];
        if turned != 0 {
            let widest = lanes.iter().map(|lane| lane.elem.size()).max().unwrap_or(1);
            block = [
                (TURNED_BYTES / widest).min(next.len),
                TURNED_COLS.min(inner.len),
            ];
        }
        let blocks = [next.len.div_ceil(block[0]), inner.len.div_ceil(block[1])];
        let units = outer.iter().map(|a| a.len).product::<usize>() * blocks[0] * blocks[1];
        Job {
            kernel,
            outs,
            lanes,
            outer,
            axes: [next, inner],
            block,
            blocks,
            units,
            tile_len,
            turned,
        }
    }

    /// Runs blocks `from..to`.
    ///
    /// # Safety
    /// The operands are valid, and no other thread runs these blocks.
    #[allow(
        clippy::needless_range_loop,
        reason = "operand k has its pointer, strides and lane in three places"
    )]
    unsafe fn units(&self, from: usize, to: usize) {
        let lanes = self.lanes.len();
        for unit in from..to {
            // Blocks to be turned that follow one another read neighbouring lines of the same pages.
            let first = usize::from(self.turned == 0);
            let mut at = [0; 2];
            let mut rest = unit;
            for axis in [first, 1 - first] {
                at[axis] = rest % self.blocks[axis];
                rest /= self.blocks[axis];
            }
            let [row, col] = at;
            let (row, col) = (row * self.block[0], col * self.block[1]);
            let mut ptrs = [std::ptr::null_mut::<u8>(); MAX_OPERANDS];
            for k in 0..lanes {
                let at =
                    self.axes[0].strides[k] * row as isize + self.axes[1].strides[k] * col as isize;
                // SAFETY: the block's first element.
                ptrs[k] = unsafe { self.lanes[k].ptr.offset(at) };
            }
            for axis in self.outer.iter().rev() {
                let i = (rest % axis.len) as isize;
                rest /= axis.len;
                for k in 0..lanes {
                    // SAFETY: as above.
                    ptrs[k] = unsafe { ptrs[k].offset(axis.strides[k] * i) };
                }
            }
            let sides = [
                self.block[0].min(self.axes[0].len - row),
                self.block[1].min(self.axes[1].len - col),
            ];
            // SAFETY: the block lies inside the loop.
            unsafe { self.run_block(&ptrs, sides) };
        }
    }

    /// Whether operand `k` of a block can be handed to the row as it lies.
    fn is_direct(&self, k: usize, sides: [usize; 2]) -> bool {
        let lane = &self.lanes[k];
        let size = lane.elem.size() as isize;
        let [outer, inner] = [self.axes[0].strides[k], self.axes[1].strides[k]];
        let dense = inner == size && (sides[0] == 1 || outer == size * sides[1] as isize);
        let single = k >= self.outs && inner == 0 && (sides[0] == 1 || outer == 0);
        lane.cast.is_none() && !lane.aliased && (dense || single)
    }

    /// # Safety
    /// `ptrs` are the operands' first elements in a block with these sides.
    unsafe fn run_block(&self, ptrs: &[*mut u8; MAX_OPERANDS], sides: [usize; 2]) {
        let lanes = self.lanes.len();
        match self.kernel {
            // SAFETY: the caller's.
            Kernel::Row(row, params) if self.turned != 0 => unsafe {
                self.run_turned(row, params, ptrs, sides)
            },
            Kernel::Row(row, params) if (0..lanes).all(|k| self.is_direct(k, sides)) => {
                let mut strides = [0isize; MAX_OPERANDS];
                for (k, s) in strides.iter_mut().enumerate().take(lanes) {
                    *s = self.axes[1].strides[k];
                }
                // SAFETY: every operand is dense or one value over the block, which is what a row takes.
                unsafe {
                    row(
                        ptrs.as_ptr(),
                        strides.as_ptr(),
                        sides[0] * sides[1],
                        params.as_ptr(),
                    )
                }
            }
            // SAFETY: the caller's.
            _ => unsafe { self.run_tiles(ptrs, sides) },
        }
    }

    /// The block row by row, after what runs across was turned.
    ///
    /// # Safety
    /// As for `run_block`.
    #[inline(never)]
    unsafe fn run_turned(
        &self,
        row: RowFn,
        params: &[f64],
        ptrs: &[*mut u8; MAX_OPERANDS],
        sides: [usize; 2],
    ) {
        let mut tiles: [MaybeUninit<TurnedTile>; TURNED] =
            [const { MaybeUninit::uninit() }; TURNED];
        let mut tiles = tiles.iter_mut();
        let (mut at, mut steps, mut strides) =
            (*ptrs, [0isize; MAX_OPERANDS], [0isize; MAX_OPERANDS]);
        for k in 0..self.lanes.len() {
            let from = [self.axes[0].strides[k], self.axes[1].strides[k]];
            (steps[k], strides[k]) = (from[0], from[1]);
            if self.turned >> k & 1 == 0 {
                continue;
            }
            let Some(tile) = tiles.next() else {
                debug_assert!(false, "no more than {TURNED} operands are turned");
                return;
            };
            let size = self.lanes[k].elem.size();
            let to = [(sides[1] * size) as isize + 64, size as isize];
            at[k] = tile.as_mut_ptr().cast();
            // SAFETY: rows of the tile are `TURNED_COLS` elements and a line long at most; there are no more of them than fit `TURNED_BYTES`.
            unsafe { copy_2d(size, sides[0], sides[1], at[k], to, ptrs[k], from) };
            (steps[k], strides[k]) = (to[0], to[1]);
        }
        for _ in 0..sides[0] {
            // SAFETY: along a row every operand is dense or one value, which is what a row takes; the last step leads behind the block and is not used.
            unsafe { row(at.as_ptr(), strides.as_ptr(), sides[1], params.as_ptr()) };
            for (at, &step) in at.iter_mut().zip(&steps) {
                *at = at.wrapping_offset(step);
            }
        }
    }

    /// The block in pieces that fit in tiles. A block of several rows fits whole.
    ///
    /// # Safety
    /// As for `run_block`.
    #[inline(never)]
    unsafe fn run_tiles(&self, ptrs: &[*mut u8; MAX_OPERANDS], sides: [usize; 2]) {
        let mut tiles: [MaybeUninit<Tile>; MAX_OPERANDS] =
            [const { MaybeUninit::uninit() }; MAX_OPERANDS];
        let mut spare = MaybeUninit::<Tile>::uninit();
        let spare = spare.as_mut_ptr().cast::<u8>();
        let lanes = self.lanes.len();
        let mut col = 0;
        while col < sides[1] {
            let piece = [
                sides[0],
                self.tile_len
                    .div_ceil(sides[0])
                    .min(self.tile_len)
                    .min(sides[1] - col),
            ];
            let piece = if sides[0] > 1 { sides } else { piece };
            let n = piece[0] * piece[1];
            debug_assert!(
                n <= self.tile_len,
                "{n} elements in tiles of {}",
                self.tile_len
            );
            let mut row_ptrs = [std::ptr::null_mut::<u8>(); MAX_OPERANDS];
            let mut row_strides = [0isize; MAX_OPERANDS];
            for k in 0..lanes {
                let lane = &self.lanes[k];
                let steps = [self.axes[0].strides[k], self.axes[1].strides[k]];
                // SAFETY: column `col` of the block.
                let here = unsafe { ptrs[k].offset(steps[1] * col as isize) };
                let native = lane.native.size() as isize;
                if self.is_direct(k, piece) {
                    (row_ptrs[k], row_strides[k]) = (here, if steps[1] == 0 { 0 } else { native });
                    continue;
                }
                let tile = tiles[k].as_mut_ptr().cast::<u8>();
                (row_ptrs[k], row_strides[k]) = (tile, native);
                if k < self.outs {
                    continue;
                }
                // SAFETY: the tile and the spare tile hold `n` elements of either type; the source is the block.
                unsafe {
                    if steps == [0, 0] || n == 1 {
                        row_strides[k] = 0;
                        match lane.cast {
                            Some(cast) => cast.row(here, tile, 1),
                            None => row_ptrs[k] = here,
                        }
                    } else {
                        gather(lane, piece, here, steps, tile, spare);
                    }
                }
            }
            // SAFETY: rows get dense tiles, dense blocks or single values; outputs are scattered from what the row wrote.
            unsafe {
                match self.kernel {
                    Kernel::Row(row, params) => {
                        row(row_ptrs.as_ptr(), row_strides.as_ptr(), n, params.as_ptr())
                    }
                    Kernel::Move => self.move_piece(&mut row_ptrs, row_strides[1], n),
                }
                for k in 0..self.outs {
                    let lane = &self.lanes[k];
                    let steps = [self.axes[0].strides[k], self.axes[1].strides[k]];
                    let here = ptrs[k].offset(steps[1] * col as isize);
                    if row_ptrs[k] != here {
                        scatter(lane, piece, row_ptrs[k], here, steps, spare);
                    }
                }
            }
            col += piece[1];
        }
    }

    /// A conversion's "row": what was gathered is what the output gets.
    ///
    /// # Safety
    /// As for `run_block`: both pointers hold `n` elements of the output's type, the input's one element if its stride is 0.
    unsafe fn move_piece(
        &self,
        row_ptrs: &mut [*mut u8; MAX_OPERANDS],
        in_stride: isize,
        n: usize,
    ) {
        let size = self.lanes[0].native.size();
        // SAFETY: the caller's.
        unsafe {
            copy_2d(
                size,
                1,
                n,
                row_ptrs[0],
                [0, size as isize],
                row_ptrs[1],
                [0, in_stride],
            );
        }
    }
}

/// The inputs that are dense along the outer of two axes, as a bit each, if there are any and everything else is dense or one value along the inner
/// one: then blocks of them are turned, and nothing else is moved.
fn turned(lanes: &[Lane], outs: usize, outer: &Axis, inner: &Axis) -> u32 {
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
    let is_worth = outer.len >= TURNED_LEAST && inner.len >= TURNED_LEAST;
    if is_worth && found.count_ones() as usize <= TURNED {
        found
    } else {
        0
    }
}

/// Whether a piece of `sides` with strides `steps` is dense.
fn is_dense(size: usize, sides: [usize; 2], steps: [isize; 2]) -> bool {
    let size = size as isize;
    (sides[1] == 1 || steps[1] == size) && (sides[0] == 1 || steps[0] == size * sides[1] as isize)
}

/// Brings a piece of an input into a tile, dense and in the row's element type.
///
/// # Safety
/// `from` is valid for the piece; `tile` and `spare` hold that many elements of either type.
unsafe fn gather(
    lane: &Lane,
    sides: [usize; 2],
    from: *mut u8,
    steps: [isize; 2],
    tile: *mut u8,
    spare: *mut u8,
) {
    let size = lane.elem.size();
    let dense = [size as isize * sides[1] as isize, size as isize];
    // SAFETY: the caller's.
    unsafe {
        match lane.cast {
            Some(cast) if is_dense(size, sides, steps) => cast.row(from, tile, sides[0] * sides[1]),
            Some(cast) => {
                copy_2d(size, sides[0], sides[1], spare, dense, from, steps);
                cast.row(spare, tile, sides[0] * sides[1]);
            }
            None => copy_2d(size, sides[0], sides[1], tile, dense, from, steps),
        }
    }
}

/// Takes a piece of an output from a tile to its place.
///
/// # Safety
/// `to` is valid for the piece; `tile` and `spare` hold that many elements of either type.
unsafe fn scatter(
    lane: &Lane,
    sides: [usize; 2],
    tile: *mut u8,
    to: *mut u8,
    steps: [isize; 2],
    spare: *mut u8,
) {
    let size = lane.elem.size();
    let dense = [size as isize * sides[1] as isize, size as isize];
    // SAFETY: the caller's.
    unsafe {
        match lane.cast {
            Some(cast) if is_dense(size, sides, steps) => cast.row(tile, to, sides[0] * sides[1]),
            Some(cast) => {
                cast.row(tile, spare, sides[0] * sides[1]);
                copy_2d(size, sides[0], sides[1], to, steps, spare, dense);
            }
            None => copy_2d(size, sides[0], sides[1], to, steps, tile, dense),
        }
    }
}
