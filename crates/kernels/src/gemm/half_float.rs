//! Products of f16 and bf16: pieces of A and B are converted to f32, summed in an f32 tile of C and rounded once.

use super::{Block, Tile, dense};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use std::cell::RefCell;

/// A 16-bit float.
pub(super) trait HalfFloat: Copy + 'static {
    fn widen(self) -> f32;
    fn widen_row(from: &[Self], to: &mut [f32]);
    fn round(x: f32) -> Self;
    fn round_row(from: &[f32], to: &mut [Self]);
}

macro_rules! half_float {
    ($($t:ty),*) => {$(
        impl HalfFloat for $t {
            #[inline(always)]
            fn widen(self) -> f32 {
                self.to_f32()
            }
            fn widen_row(from: &[Self], to: &mut [f32]) {
                from.convert_to_f32_slice(to)
            }
            #[inline(always)]
            fn round(x: f32) -> Self {
                <$t>::from_f32(x)
            }
            fn round_row(from: &[f32], to: &mut [Self]) {
                to.convert_from_f32_slice(from)
            }
        }
    )*};
}
half_float!(f16, bf16);

/// Depth (k) converted at once: with tiles of 512, at most 1 MiB each of A and B.
const DEPTH: usize = 512;
/// Largest number of rows and columns of C summed at once; a block may be larger.
const SIDE: usize = 512;

thread_local! {
    /// f32 copies of pieces of A and B, and the sums of C.
    static PIECES: RefCell<[Vec<f32>; 3]> = const { RefCell::new([Vec::new(), Vec::new(), Vec::new()]) };
}

/// # Safety
/// The block is in bounds and `T` is the element type.
pub(super) unsafe fn multiply<T: HalfFloat>(block: &Block) {
    PIECES.with(|pieces| {
        let [a, b, c] = &mut *pieces.borrow_mut();
        for top in (0..block.m).step_by(SIDE) {
            for left in (0..block.n).step_by(SIDE) {
                let (m, n) = (SIDE.min(block.m - top), SIDE.min(block.n - left));
                // SAFETY: the piece of C is inside the block.
                unsafe { piece::<T>(block, (top, left), (m, n), a, b, c) }
            }
        }
    })
}

/// # Safety
/// Rows `top..top + m` and columns `left..left + n` are inside the block.
unsafe fn piece<T: HalfFloat>(
    block: &Block,
    (top, left): (usize, usize),
    (m, n): (usize, usize),
    a: &mut Vec<f32>,
    b: &mut Vec<f32>,
    c: &mut Vec<f32>,
) {
    let (p, job) = (block.job.p, block.job);
    c.clear();
    c.resize(m * n, 0.0);
    for front in (0..p.k).step_by(DEPTH) {
        let k = DEPTH.min(p.k - front);
        let corner = |x: *const u8, rs: isize, i: usize, cs: isize, j: usize| {
            x.wrapping_offset(i as isize * rs + j as isize * cs)
        };
        let a_corner = corner(block.a, job.a.row_stride, top, job.a.col_stride, front);
        let b_corner = corner(block.b, job.b.row_stride, front, job.b.col_stride, left);
        // SAFETY: the pieces are inside A and B.
        let (a_strides, b_strides) = unsafe {
            (
                widen::<T>(a_corner, (job.a.row_stride, job.a.col_stride), (m, k), a),
                widen::<T>(b_corner, (job.b.row_stride, job.b.col_stride), (k, n), b),
            )
        };
        let tile = Tile {
            m,
            n,
            k,
            a: a.as_ptr(),
            a_strides,
            b: b.as_ptr(),
            b_strides,
            c: c.as_mut_ptr(),
            c_strides: (n as isize, 1),
            alpha: 1.0,
            beta: 1.0,
        };
        // SAFETY: the pieces have these sizes.
        unsafe { dense(&tile) }
    }
    // SAFETY: the piece of C and the bias of its rows and columns are inside the block's.
    unsafe { store::<T>(block, (top, left), n, c) }
}

/// Scales the sums, adds the old C and the bias, applies ReLU, and rounds.
///
/// # Safety
/// The `sums.len() / n` rows from `top` and `n` columns from `left` are inside the block.
unsafe fn store<T: HalfFloat>(
    block: &Block,
    (top, left): (usize, usize),
    n: usize,
    sums: &mut [f32],
) {
    let (p, c, e) = (block.job.p, block.job.c, block.job.epilogue);
    let (alpha, beta) = (p.alpha as f32, p.beta as f32);
    let is_unscaled = e.is_none() && alpha == 1.0 && beta == 0.0;
    for (i, sums) in sums.chunks_exact_mut(n).enumerate() {
        let out = block
            .c
            .wrapping_offset((top + i) as isize * c.row_stride + left as isize * c.col_stride);
        let at = |j: usize| out.wrapping_offset(j as isize * c.col_stride).cast::<T>();
        if !is_unscaled {
            for (j, x) in sums.iter_mut().enumerate() {
                // SAFETY: the element is inside C, the bias has one per row or column of the block.
                unsafe {
                    *x *= alpha;
                    if beta != 0.0 {
                        *x += beta * (*at(j)).widen();
                    }
                    match block.bias {
                        super::Bias::None => {}
                        super::Bias::PerRow(bias) => *x += (*bias.cast::<T>().add(top + i)).widen(),
                        super::Bias::PerColumn(bias) => {
                            *x += (*bias.cast::<T>().add(left + j)).widen()
                        }
                    }
                    if e.relu && *x <= 0.0 {
                        *x = 0.0;
                    }
                }
            }
        }
        if c.col_stride == size_of::<T>() as isize {
            // SAFETY: the row of C is dense and inside the block.
            T::round_row(sums, unsafe { std::slice::from_raw_parts_mut(at(0), n) });
        } else {
            for (j, &x) in sums.iter().enumerate() {
                // SAFETY: the element is inside C.
                unsafe { *at(j) = T::round(x) }
            }
        }
    }
}

/// Converts a matrix to dense f32, in its memory order; returns the strides of the copy.
///
/// # Safety
/// `rows x cols` elements are readable at `from` with byte strides.
unsafe fn widen<T: HalfFloat>(
    from: *const u8,
    (rs, cs): (isize, isize),
    (rows, cols): (usize, usize),
    to: &mut Vec<f32>,
) -> (isize, isize) {
    to.resize(rows * cols, 0.0);
    let by_column = rs.abs() < cs.abs();
    let (lines, len, line_stride, stride) = if by_column {
        (cols, rows, cs, rs)
    } else {
        (rows, cols, rs, cs)
    };
    for (line, to) in to.chunks_exact_mut(len.max(1)).enumerate().take(lines) {
        let from = from
            .wrapping_offset(line as isize * line_stride)
            .cast::<T>();
        if stride == size_of::<T>() as isize {
            // SAFETY: the line is dense and in bounds.
            T::widen_row(unsafe { std::slice::from_raw_parts(from, len) }, to);
        } else {
            for (i, to) in to.iter_mut().enumerate() {
                // SAFETY: in bounds (the caller guarantees it).
                *to = unsafe { *from.byte_offset(i as isize * stride) }.widen();
            }
        }
    }
    if by_column {
        (1, rows as isize)
    } else {
        (cols as isize, 1)
    }
}
