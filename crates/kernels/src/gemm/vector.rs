//! Matrix times vector and vector times vector: bound by reading the matrix once.

use super::Tile;
use super::dot::Inner;
use crate::Threads;
use crate::real::Shared;
use crate::reduce::plan::split;
use num_complex::Complex;

/// The product `y = A x` that a [`Tile`] with one row or one column is.
struct MatVec<T> {
    rows: usize,
    k: usize,
    a: *const T,
    a_strides: (isize, isize),
    x: *const T,
    x_stride: isize,
    y: *mut T,
    y_stride: isize,
    alpha: T,
    beta: T,
}

/// # Safety
/// The tile is in bounds, C overlaps no input, and `m == 1` or `n == 1`.
pub(super) unsafe fn matvec<T: Inner>(t: &Tile<T>) {
    let v = MatVec::of(t);
    // SAFETY: forwarded.
    unsafe {
        if v.has_columns() {
            by_columns(&v)
        } else {
            by_rows(&v)
        }
    }
}

/// Elements of an inner product that one task sums up; the sums are joined two by two.
const STRETCH: usize = 16 * 1024;
/// Bytes of a result of which every task can have one of its own: the sum over rows of A is cut, not its columns, so that rows are read whole.
const NARROW_BYTES: usize = 64 * 1024;
/// Elements of A that such a task reads at least, and how many tasks there are at most.
const PART: usize = 64 * 1024;
const PARTS: usize = 16;

/// A product whose sum is long enough to be cut into parts, which are a function of its size; returns whether it was one.
///
/// # Safety
/// As [`matvec`]'s.
pub(super) unsafe fn by_parts<T: Inner>(threads: &dyn Threads, t: &Tile<T>) -> bool {
    let v = MatVec::of(t);
    if v.rows == 1 && v.k >= 2 * STRETCH {
        let parts = v.k.div_ceil(STRETCH);
        let mut sums = vec![T::from_real(0.0); parts];
        let to = Shared(sums.as_mut_ptr());
        split(threads, parts, v.k, &|p| {
            let part = v.terms(p * STRETCH, v.k.min((p + 1) * STRETCH));
            // SAFETY: the stretch lies inside both vectors; every task writes its own sum.
            unsafe { *to.at(p) = part.row(0) };
        });
        // SAFETY: the caller's output has an element.
        unsafe { v.store(0, joined(&mut sums)) };
        return true;
    }
    let is_narrow = v.rows * size_of::<T>() <= NARROW_BYTES;
    let parts = (v.rows * v.k / PART).min(PARTS).min(v.k / 16);
    if !v.has_columns() || !is_narrow || parts < 2 {
        return false;
    }
    let mut sums = vec![T::from_real(0.0); parts * v.rows];
    let to = Shared(sums.as_mut_ptr());
    split(threads, parts, v.rows * v.k, &|p| {
        let part = MatVec {
            y: to.at(p * v.rows),
            y_stride: 1,
            alpha: T::from_real(1.0),
            beta: T::from_real(0.0),
            ..v.terms(v.k * p / parts, v.k * (p + 1) / parts)
        };
        // SAFETY: the part lies inside A and x; every task writes sums of its own.
        unsafe { by_columns(&part) };
    });
    let mut column = [T::from_real(0.0); PARTS];
    for i in 0..v.rows {
        for (p, slot) in column[..parts].iter_mut().enumerate() {
            *slot = sums[p * v.rows + i];
        }
        // SAFETY: i < rows.
        unsafe { v.store(i, joined(&mut column[..parts])) };
    }
    true
}

/// Sum of all, neighbours first.
fn joined<T: Inner>(sums: &mut [T]) -> T {
    let mut n = sums.len();
    while n > 1 {
        for i in 0..n / 2 {
            sums[i] = sums[2 * i] + sums[2 * i + 1];
        }
        if n % 2 == 1 {
            sums[n / 2] = sums[n - 1];
        }
        n = n.div_ceil(2);
    }
    sums[0]
}

/// `out = sum of conj(a[i]) b[i]`; see [`super::conjugated_dot`].
///
/// # Safety
/// `n` dense elements are readable at `a` and `b`; `out` is apart from both.
pub(super) unsafe fn conjugated<T: Inner>(
    threads: &dyn Threads,
    n: usize,
    a: *const T,
    b: *const T,
    out: *mut T,
) {
    let parts = n.div_ceil(STRETCH).max(1);
    let mut sums = vec![T::from_real(0.0); parts];
    let (to, a, b) = (
        Shared(sums.as_mut_ptr()),
        Shared(a.cast_mut()),
        Shared(b.cast_mut()),
    );
    split(threads, parts, 2 * n, &|p| {
        let (from, end) = (p * STRETCH, n.min((p + 1) * STRETCH));
        // SAFETY: the stretch lies inside both vectors; every task writes its own sum.
        unsafe { *to.at(p) = T::dot::<true>(a.at(from), b.at(from), end - from) };
    });
    // SAFETY: the caller's.
    unsafe { *out = joined(&mut sums) };
}

// SAFETY: tasks read A and x and write results of their own.
unsafe impl<T> Sync for MatVec<T> {}

impl<T: Inner> MatVec<T> {
    fn of(t: &Tile<T>) -> MatVec<T> {
        let (rows, a, a_strides, x, x_stride, y_stride) = if t.n == 1 {
            (t.m, t.a, t.a_strides, t.b, t.b_strides.0, t.c_strides.0)
        } else {
            // x^T B = (B^T x)^T
            (
                t.n,
                t.b,
                (t.b_strides.1, t.b_strides.0),
                t.a,
                t.a_strides.1,
                t.c_strides.1,
            )
        };
        MatVec {
            rows,
            k: t.k,
            a,
            a_strides,
            x,
            x_stride,
            y: t.c,
            y_stride,
            alpha: t.alpha,
            beta: t.beta,
        }
    }

    /// Whether A's columns are dense, and more than an element long.
    fn has_columns(&self) -> bool {
        self.a_strides.0 == 1 && self.rows > 1
    }

    /// The same product with terms `from..to` of each sum only.
    fn terms(&self, from: usize, to: usize) -> MatVec<T> {
        MatVec {
            k: to - from,
            a: self.a.wrapping_offset(from as isize * self.a_strides.1),
            x: self.x.wrapping_offset(from as isize * self.x_stride),
            ..*self
        }
    }

    /// # Safety
    /// `i < rows`.
    #[inline(always)]
    unsafe fn store(&self, i: usize, x: T) {
        // SAFETY: by the caller.
        unsafe {
            let y = self.y.offset(i as isize * self.y_stride);
            let x = self.alpha * x;
            *y = if self.beta == T::from_real(0.0) {
                x
            } else {
                x + self.beta * *y
            };
        }
    }

    /// The inner product of row `i` with x.
    ///
    /// # Safety
    /// `i < rows`.
    #[inline]
    unsafe fn row(&self, i: usize) -> T {
        // SAFETY: row i is inside A.
        unsafe {
            let row = self.a.offset(i as isize * self.a_strides.0);
            if self.is_dense() {
                return T::dot::<false>(row, self.x, self.k);
            }
            let mut sum = T::from_real(0.0);
            for p in 0..self.k as isize {
                sum = sum + *row.offset(p * self.a_strides.1) * *self.x.offset(p * self.x_stride);
            }
            sum
        }
    }

    /// Whether rows and x are dense.
    fn is_dense(&self) -> bool {
        self.a_strides.1 == 1 && self.x_stride == 1
    }
}

/// Rows of A whose elements lie one after another in a column: sums of scaled columns, a stretch of rows at a time.
///
/// # Safety
/// As [`matvec`]'s.
unsafe fn by_columns<T: Inner>(v: &MatVec<T>) {
    /// 4096 f32 are 16 KiB: the sums stay in L1 beside the columns that stream through.
    const STRETCH: usize = 4096;
    let mut sums = [T::from_real(0.0); STRETCH];
    let mut top = 0;
    while top < v.rows {
        let len = STRETCH.min(v.rows - top);
        let sums = &mut sums[..len];
        sums.fill(T::from_real(0.0));
        // SAFETY: columns 0..k and rows top..top + len are inside A.
        unsafe {
            rows::axpys(sums, v.a.add(top), v.a_strides.1, v.x, v.x_stride, v.k);
        }
        for (i, &s) in sums.iter().enumerate() {
            // SAFETY: top + i < rows.
            unsafe { v.store(top + i, s) }
        }
        top += len;
    }
}

/// Every other A: one inner product per row, four at a time where x can be read once for all.
///
/// # Safety
/// As [`matvec`]'s.
unsafe fn by_rows<T: Inner>(v: &MatVec<T>) {
    let mut i = 0;
    // SAFETY: all rows are inside A, all results inside y.
    unsafe {
        while v.is_dense() && i + 4 <= v.rows {
            let rows = [0, 1, 2, 3].map(|r| v.a.offset((i + r) as isize * v.a_strides.0));
            for (r, sum) in T::dots(rows, v.x, v.k).into_iter().enumerate() {
                v.store(i + r, sum);
            }
            i += 4;
        }
        for i in i..v.rows {
            v.store(i, v.row(i));
        }
    }
}

/// Sums of scaled columns, compiled for the instruction set in force.
mod rows {
    use super::super::small::Scalar;
    use crate::isa::{Isa, isa};

    /// `sums += x[0] a[0] + … + x[k - 1] a[k - 1]`, columns `a_stride` and factors `x_stride` elements apart.
    ///
    /// # Safety
    /// `k` columns of `sums.len()` elements are readable at `a`, and as many factors at `x`.
    pub(super) unsafe fn axpys<T: Scalar>(
        sums: &mut [T],
        a: *const T,
        a_stride: isize,
        x: *const T,
        x_stride: isize,
        k: usize,
    ) {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn avx2<T: Scalar>(
            sums: &mut [T],
            a: *const T,
            a_stride: isize,
            x: *const T,
            x_stride: isize,
            k: usize,
        ) {
            // SAFETY: forwarded.
            unsafe { body(sums, a, a_stride, x, x_stride, k) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
        unsafe fn avx512<T: Scalar>(
            sums: &mut [T],
            a: *const T,
            a_stride: isize,
            x: *const T,
            x_stride: isize,
            k: usize,
        ) {
            // SAFETY: forwarded.
            unsafe { body(sums, a, a_stride, x, x_stride, k) }
        }
        match isa() {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `isa()` found the features; the rest is forwarded.
            Isa::Avx512 => unsafe { avx512(sums, a, a_stride, x, x_stride, k) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Isa::Avx2 => unsafe { avx2(sums, a, a_stride, x, x_stride, k) },
            // SAFETY: forwarded.
            _ => unsafe { body(sums, a, a_stride, x, x_stride, k) },
        }
    }

    /// Eight columns at a time: the sums are read and written once for all of them.
    #[inline(always)]
    unsafe fn body<T: Scalar>(
        sums: &mut [T],
        a: *const T,
        a_stride: isize,
        x: *const T,
        x_stride: isize,
        k: usize,
    ) {
        let n = sums.len();
        let mut p = 0;
        // SAFETY: columns p..p + 8 (or p) exist.
        unsafe {
            macro_rules! column {
                ($q:literal) => {
                    std::slice::from_raw_parts(a.offset((p + $q) as isize * a_stride), n)
                };
            }
            macro_rules! factor {
                ($q:literal) => {
                    *x.offset((p + $q) as isize * x_stride)
                };
            }
            while p + 8 <= k {
                let (a0, a1, a2, a3) = (column!(0), column!(1), column!(2), column!(3));
                let (a4, a5, a6, a7) = (column!(4), column!(5), column!(6), column!(7));
                let (x0, x1, x2, x3) = (factor!(0), factor!(1), factor!(2), factor!(3));
                let (x4, x5, x6, x7) = (factor!(4), factor!(5), factor!(6), factor!(7));
                for i in 0..n {
                    let first = (x0 * a0[i] + x1 * a1[i]) + (x2 * a2[i] + x3 * a3[i]);
                    let second = (x4 * a4[i] + x5 * a5[i]) + (x6 * a6[i] + x7 * a7[i]);
                    sums[i] = sums[i] + (first + second);
                }
                p += 8;
            }
            while p < k {
                let (a, x) = (column!(0), factor!(0));
                for i in 0..n {
                    sums[i] = sums[i] + x * a[i];
                }
                p += 1;
            }
        }
    }
}

// The stretch of sums must stay a small part of the smallest stack that tasks run on.
const _: () = assert!(4096 * size_of::<Complex<f64>>() <= 64 * 1024);
