//! Products of integers (exact, wrapping) and of bools (or of ands).
//!
//! Wrapping arithmetic is the same for signed and unsigned types, so one loop per element size serves both.

use super::{Block, Matrix, Problem};
use crate::reduce::by_isa;
use std::cell::RefCell;

/// Element types that add and multiply without rounding.
pub(super) trait Exact: Copy + 'static {
    const ZERO: Self;
    fn from_f64(x: f64) -> Self;
    fn mul_add(self, b: Self, c: Self) -> Self;
}

macro_rules! wrapping {
    ($($t:ty),*) => {$(
        impl Exact for $t {
            const ZERO: Self = 0;
            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as i64 as $t
            }
            #[inline(always)]
            fn mul_add(self, b: Self, c: Self) -> Self {
                self.wrapping_mul(b).wrapping_add(c)
            }
        }
    )*};
}
wrapping!(u8, u16, u32, u64);

impl Exact for bool {
    const ZERO: Self = false;
    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        x != 0.0
    }
    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        (self & b) | c
    }
}

/// Rows and columns of C summed at once, and rows of B copied at once: `DEPTH * COLUMNS` 8-byte elements are 128 KiB, half of a small L2 cache.
const ROWS: usize = 4;
const COLUMNS: usize = 64;
const DEPTH: usize = 256;
/// Up to this many elements of C are computed as dot products: a panel has many more lanes.
const MAX_DOT_PRODUCTS: usize = 16;

thread_local! {
    /// The copied piece of B. Its words of 8 bytes give the alignment.
    static PIECE: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// Corner of an operand's block and its byte strides.
#[derive(Clone, Copy)]
struct Corner {
    ptr: *const u8,
    row_stride: isize,
    col_stride: isize,
}

impl Corner {
    fn new(ptr: *const u8, x: &Matrix) -> Corner {
        Corner {
            ptr,
            row_stride: x.row_stride,
            col_stride: x.col_stride,
        }
    }

    fn transposed(self) -> Corner {
        Corner {
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            ..self
        }
    }

    #[inline(always)]
    fn at<T>(&self, i: usize, j: usize) -> *const T {
        self.ptr
            .wrapping_offset(i as isize * self.row_stride + j as isize * self.col_stride)
            .cast()
    }
}

/// # Safety
/// The block is in bounds and `T` has the size of the element type.
pub(super) unsafe fn multiply<T: Exact>(block: &Block) {
    let job = block.job;
    let (a, b, c) = (
        Corner::new(block.a, job.a),
        Corner::new(block.b, job.b),
        Corner::new(block.c, job.c),
    );
    if block.m * block.n <= MAX_DOT_PRODUCTS {
        // SAFETY: same contract.
        return unsafe { dot_products::<T>(job.p, (block.m, block.n), a, b, c) };
    }
    PIECE.with(|piece| {
        let mut piece = piece.borrow_mut();
        piece.resize(DEPTH * COLUMNS, 0);
        let piece = piece.as_mut_ptr().cast();
        // With few columns, most lanes of a vector would be unused. Then C^T = B^T A^T is computed.
        // SAFETY: same contract; the piece holds DEPTH * COLUMNS elements of up to 8 bytes.
        unsafe {
            if block.n < COLUMNS / 4 && block.m > block.n {
                with_piece::<T>(
                    job.p,
                    (block.n, block.m),
                    b.transposed(),
                    a.transposed(),
                    c.transposed(),
                    piece,
                )
            } else {
                with_piece::<T>(job.p, (block.m, block.n), a, b, c, piece)
            }
        }
    })
}

/// # Safety
/// The corners reach `m x k`, `k x n` and `m x n` elements; `piece` has room for `DEPTH * COLUMNS` elements.
unsafe fn with_piece<T: Exact>(
    p: &Problem,
    (m, n): (usize, usize),
    a: Corner,
    b: Corner,
    c: Corner,
    piece: *mut T,
) {
    let alpha = T::from_f64(p.alpha);
    for left in (0..n).step_by(COLUMNS) {
        let width = COLUMNS.min(n - left);
        // C = beta C first; each piece then adds to it.
        for i in 0..m {
            for j in left..left + width {
                // SAFETY: (i, j) is inside C.
                unsafe {
                    let c = c.at::<T>(i, j) as *mut T;
                    *c = scaled(p, c);
                }
            }
        }
        for front in (0..p.k).step_by(DEPTH) {
            let depth = DEPTH.min(p.k - front);
            for q in 0..depth {
                for j in 0..COLUMNS {
                    // SAFETY: the piece has room; (front + q, left + j) is inside B where j < width.
                    unsafe {
                        let x = if j < width {
                            alpha.mul_add(*b.at::<T>(front + q, left + j), T::ZERO)
                        } else {
                            T::ZERO
                        };
                        piece.add(q * COLUMNS + j).write(x);
                    }
                }
            }
            for top in (0..m).step_by(ROWS) {
                let rows = ROWS.min(m - top);
                // Rows past the end repeat the last one; their results are dropped below.
                let a_rows: [*const T; ROWS] =
                    std::array::from_fn(|r| a.at::<T>(top + r.min(rows - 1), front));
                // SAFETY: rows and depth are inside A, the piece is filled.
                let sums = unsafe { panel::<T>(a_rows, a.col_stride, piece, depth) };
                for (r, sums) in sums.iter().enumerate().take(rows) {
                    for (j, &s) in sums.iter().enumerate().take(width) {
                        // SAFETY: (top + r, left + j) is inside C.
                        unsafe {
                            let c = c.at::<T>(top + r, left + j) as *mut T;
                            *c = add(*c, s);
                        }
                    }
                }
            }
        }
    }
}

/// `beta` times an element of C, which is not read for `beta` 0.
///
/// # Safety
/// `c` can be read unless `beta` is 0.
#[inline(always)]
unsafe fn scaled<T: Exact>(p: &Problem, c: *const T) -> T {
    match p.beta {
        0.0 => T::ZERO,
        // SAFETY: guaranteed by the caller.
        beta => T::from_f64(beta).mul_add(unsafe { *c }, T::ZERO),
    }
}

#[inline(always)]
fn add<T: Exact>(a: T, b: T) -> T {
    T::from_f64(1.0).mul_add(a, b)
}

by_isa! {
    /// `ROWS` rows of A times the piece.
    ///
    /// # Safety
    /// `depth` elements at each row with the stride in bytes; `depth * COLUMNS` elements at `piece`.
    unsafe fn panel [T: Exact] [T] (
        a: [*const T; ROWS], a_stride: isize, piece: *const T, depth: usize,
    ) -> [[T; COLUMNS]; ROWS] {
        let mut sums = [[T::ZERO; COLUMNS]; ROWS];
        for q in 0..depth {
            // SAFETY: q < depth; the caller guarantees that many elements.
            unsafe {
                let b = &*piece.add(q * COLUMNS).cast::<[T; COLUMNS]>();
                for r in 0..ROWS {
                    let x = *a[r].wrapping_byte_offset(q as isize * a_stride);
                    for j in 0..COLUMNS {
                        sums[r][j] = x.mul_add(b[j], sums[r][j]);
                    }
                }
            }
        }
        sums
    }
}

/// Each element of C as the sum of products of a row of A and a column of B.
///
/// # Safety
/// The corners reach `m x k`, `k x n` and `m x n` elements.
unsafe fn dot_products<T: Exact>(
    p: &Problem,
    (m, n): (usize, usize),
    a: Corner,
    b: Corner,
    c: Corner,
) {
    let alpha = T::from_f64(p.alpha);
    for i in 0..m {
        for j in 0..n {
            let (row, column) = ((a.at(i, 0), a.col_stride), (b.at(0, j), b.row_stride));
            // SAFETY: row i of A and column j of B have k elements; (i, j) is inside C.
            unsafe {
                let c = c.at::<T>(i, j).cast_mut();
                *c = alpha.mul_add(dot::<T>(row, column, p.k), scaled(p, c));
            }
        }
    }
}

by_isa! {
    /// Sum of `n` products. Operands are a pointer and the bytes between elements.
    ///
    /// # Safety
    /// Both operands have `n` elements.
    unsafe fn dot [T: Exact] [T] (x: (*const T, isize), y: (*const T, isize), n: usize) -> T {
        let ((x, x_stride), (y, y_stride)) = (x, y);
        let mut sum = T::ZERO;
        // SAFETY: i < n.
        unsafe {
            if (x_stride, y_stride) == (size_of::<T>() as isize, size_of::<T>() as isize) {
                for i in 0..n {
                    sum = (*x.add(i)).mul_add(*y.add(i), sum);
                }
            } else {
                for i in 0..n {
                    let x = *x.wrapping_byte_offset(i as isize * x_stride);
                    sum = x.mul_add(*y.wrapping_byte_offset(i as isize * y_stride), sum);
                }
            }
        }
        sum
    }
}
