//! Runs the blocks of a loop nest: in place, with transposed operands, or piece by piece through tiles.

use std::mem::MaybeUninit;

use super::{Job, Kernel, Lane, MAX_TRANSPOSED, Tile, TransposedTile};
use crate::copy::copy_2d;
use crate::map::row::InnerLoop;
use crate::nd::MAX_OPERANDS;

impl Job<'_> {
    /// Runs blocks `from..to`.
    ///
    /// # Safety
    /// The operands are valid, and no other thread runs these blocks.
    #[allow(
        clippy::needless_range_loop,
        reason = "operand k has its pointer, strides and lane in three places"
    )]
    pub(super) unsafe fn units(&self, from: usize, to: usize) {
        let lanes = self.loops.lanes.len();
        for unit in from..to {
            // Consecutive transposed blocks read neighbouring lines of the same pages.
            let first = usize::from(self.loops.transposed == 0);
            let mut at = [0; 2];
            let mut rest = unit;
            for axis in [first, 1 - first] {
                at[axis] = rest % self.loops.blocks[axis];
                rest /= self.loops.blocks[axis];
            }
            let [row, col] = at;
            let (row, col) = (row * self.loops.block[0], col * self.loops.block[1]);
            let mut ptrs = [std::ptr::null_mut::<u8>(); MAX_OPERANDS];
            for k in 0..lanes {
                let at = self.loops.axes[0].strides[k] * row as isize
                    + self.loops.axes[1].strides[k] * col as isize;
                // SAFETY: the block's first element.
                ptrs[k] = unsafe { self.ptrs[k].offset(at) };
            }
            for axis in self.loops.outer.iter().rev() {
                let i = (rest % axis.len) as isize;
                rest /= axis.len;
                for k in 0..lanes {
                    // SAFETY: as above.
                    ptrs[k] = unsafe { ptrs[k].offset(axis.strides[k] * i) };
                }
            }
            let sides = [
                self.loops.block[0].min(self.loops.axes[0].len - row),
                self.loops.block[1].min(self.loops.axes[1].len - col),
            ];
            // SAFETY: the block lies inside the loop.
            unsafe { self.run_block(&ptrs, sides) };
        }
    }

    /// # Safety
    /// `ptrs` are the operands' first elements in a block with these sides.
    unsafe fn run_block(&self, ptrs: &[*mut u8; MAX_OPERANDS], sides: [usize; 2]) {
        let lanes = self.loops.lanes.len();
        match self.loops.kernel {
            // SAFETY: guaranteed by the caller.
            Kernel::Row(row) if self.loops.transposed != 0 => unsafe {
                self.run_transposed(row, ptrs, sides)
            },
            Kernel::Row(row) if (0..lanes).all(|k| self.loops.is_direct(k, sides)) => {
                let mut strides = [0isize; MAX_OPERANDS];
                for (k, s) in strides.iter_mut().enumerate().take(lanes) {
                    *s = self.loops.axes[1].strides[k];
                }
                // SAFETY: every operand is contiguous or a single value over the block, as the inner loop requires.
                unsafe {
                    row(
                        ptrs.as_ptr(),
                        strides.as_ptr(),
                        sides[0] * sides[1],
                        self.params.as_ptr(),
                    )
                }
            }
            // SAFETY: guaranteed by the caller.
            _ => unsafe { self.run_tiles(ptrs, sides) },
        }
    }

    /// Runs a block row by row, after its transposed operands were copied to tiles.
    ///
    /// # Safety
    /// Same as for `run_block`.
    #[inline(never)]
    unsafe fn run_transposed(
        &self,
        row: InnerLoop,
        ptrs: &[*mut u8; MAX_OPERANDS],
        sides: [usize; 2],
    ) {
        let mut tiles: [MaybeUninit<TransposedTile>; MAX_TRANSPOSED] =
            [const { MaybeUninit::uninit() }; MAX_TRANSPOSED];
        let mut tiles = tiles.iter_mut();
        let (mut at, mut steps, mut strides) =
            (*ptrs, [0isize; MAX_OPERANDS], [0isize; MAX_OPERANDS]);
        for k in 0..self.loops.lanes.len() {
            let from = [self.loops.axes[0].strides[k], self.loops.axes[1].strides[k]];
            (steps[k], strides[k]) = (from[0], from[1]);
            if self.loops.transposed >> k & 1 == 0 {
                continue;
            }
            let Some(tile) = tiles.next() else {
                debug_assert!(
                    false,
                    "no more than {MAX_TRANSPOSED} operands are transposed"
                );
                return;
            };
            let size = self.loops.lanes[k].elem.size();
            let to = [(sides[1] * size) as isize + 64, size as isize];
            at[k] = tile.as_mut_ptr().cast();
            // SAFETY: rows of the tile are at most `TRANSPOSED_COLS` elements and a cache line long, and `TRANSPOSED_BYTES` limits their number.
            unsafe { copy_2d(size, sides[0], sides[1], at[k], to, ptrs[k], from) };
            (steps[k], strides[k]) = (to[0], to[1]);
        }
        for _ in 0..sides[0] {
            // SAFETY: along a row every operand is contiguous or a single value. The pointers after the last row are not used.
            unsafe {
                row(
                    at.as_ptr(),
                    strides.as_ptr(),
                    sides[1],
                    self.params.as_ptr(),
                )
            };
            for (at, &step) in at.iter_mut().zip(&steps) {
                *at = at.wrapping_offset(step);
            }
        }
    }

    /// Runs a block in pieces that fit in tiles. A block of several rows fits as a whole.
    ///
    /// # Safety
    /// Same as for `run_block`.
    #[inline(never)]
    unsafe fn run_tiles(&self, ptrs: &[*mut u8; MAX_OPERANDS], sides: [usize; 2]) {
        let mut tiles: [MaybeUninit<Tile>; MAX_OPERANDS] =
            [const { MaybeUninit::uninit() }; MAX_OPERANDS];
        let mut spare = MaybeUninit::<Tile>::uninit();
        let spare = spare.as_mut_ptr().cast::<u8>();
        let lanes = self.loops.lanes.len();
        let mut col = 0;
        while col < sides[1] {
            let piece = [
                sides[0],
                self.loops
                    .tile_len
                    .div_ceil(sides[0])
                    .min(self.loops.tile_len)
                    .min(sides[1] - col),
            ];
            let piece = if sides[0] > 1 { sides } else { piece };
            let n = piece[0] * piece[1];
            debug_assert!(
                n <= self.loops.tile_len,
                "{n} elements in tiles of {}",
                self.loops.tile_len
            );
            let mut row_ptrs = [std::ptr::null_mut::<u8>(); MAX_OPERANDS];
            let mut row_strides = [0isize; MAX_OPERANDS];
            for k in 0..lanes {
                let lane = &self.loops.lanes[k];
                let steps = [self.loops.axes[0].strides[k], self.loops.axes[1].strides[k]];
                // SAFETY: column `col` of the block.
                let here = unsafe { ptrs[k].offset(steps[1] * col as isize) };
                let native = lane.native.size() as isize;
                if self.loops.is_direct(k, piece) {
                    (row_ptrs[k], row_strides[k]) = (here, if steps[1] == 0 { 0 } else { native });
                    continue;
                }
                // A conversion into a contiguous output needs no tile in between.
                let is_moved = k > 0
                    && matches!(self.loops.kernel, Kernel::Move)
                    && steps != [0, 0]
                    && n > 1
                    && self.loops.is_direct(0, piece);
                let tile = match is_moved {
                    true => row_ptrs[0],
                    false => tiles[k].as_mut_ptr().cast::<u8>(),
                };
                (row_ptrs[k], row_strides[k]) = (tile, native);
                if k < self.loops.outs {
                    continue;
                }
                // SAFETY: the tile and the spare tile hold `n` elements of either type; the source is inside the block.
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
            // SAFETY: the inner loop gets contiguous tiles, contiguous blocks or single values; outputs are scattered from what it wrote.
            unsafe {
                match self.loops.kernel {
                    Kernel::Row(row) => row(
                        row_ptrs.as_ptr(),
                        row_strides.as_ptr(),
                        n,
                        self.params.as_ptr(),
                    ),
                    Kernel::Move if row_ptrs[1] == row_ptrs[0] => {}
                    Kernel::Move => self.move_piece(&mut row_ptrs, row_strides[1], n),
                }
                for k in 0..self.loops.outs {
                    let lane = &self.loops.lanes[k];
                    let steps = [self.loops.axes[0].strides[k], self.loops.axes[1].strides[k]];
                    let here = ptrs[k].offset(steps[1] * col as isize);
                    if row_ptrs[k] != here {
                        scatter(lane, piece, row_ptrs[k], here, steps, spare);
                    }
                }
            }
            col += piece[1];
        }
    }

    /// The inner loop of a conversion: copies the gathered elements to the output.
    ///
    /// # Safety
    /// Same as for `run_block`: both pointers hold `n` elements of the output's type, or the input holds one if its stride is 0.
    unsafe fn move_piece(
        &self,
        row_ptrs: &mut [*mut u8; MAX_OPERANDS],
        in_stride: isize,
        n: usize,
    ) {
        let size = self.loops.lanes[0].native.size();
        // SAFETY: guaranteed by the caller.
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

/// Whether a piece of `sides` with strides `steps` is contiguous.
fn is_dense(size: usize, sides: [usize; 2], steps: [isize; 2]) -> bool {
    let size = size as isize;
    (sides[1] == 1 || steps[1] == size) && (sides[0] == 1 || steps[0] == size * sides[1] as isize)
}

/// Copies a piece of an input into a tile, contiguous and converted to the inner loop's element type.
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
    // SAFETY: guaranteed by the caller.
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

/// Copies a piece of an output from a tile to the output array.
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
    // SAFETY: guaranteed by the caller.
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
