//! Matrix-vector products. Their speed is limited by reading the matrix once.

use super::Tile;
use super::unpacked::Scalar;
use num_complex::Complex;

/// A [`Tile`] with one row or one column, as the product `y = A x`.
struct MatVec<'a, T> {
    rows: usize,
    k: usize,
    a: *const T,
    a_strides: (isize, isize),
    x: *const T,
    x_stride: isize,
    tile: &'a Tile<T>,
}

/// # Safety
/// The tile is in bounds, C overlaps no input, and `m == 1` or `n == 1`.
pub(super) unsafe fn matvec<T: Scalar>(t: &Tile<T>) {
    let (rows, a, a_strides, x, x_stride) = if t.n == 1 {
        (t.m, t.a, t.a_strides, t.b, t.b_strides.0)
    } else {
        // x^T B = (B^T x)^T
        (t.n, t.b, (t.b_strides.1, t.b_strides.0), t.a, t.a_strides.1)
    };
    let v = MatVec {
        rows,
        k: t.k,
        a,
        a_strides,
        x,
        x_stride,
        tile: t,
    };
    // SAFETY: same contract.
    unsafe {
        if v.a_strides.0 != 1 || v.rows == 1 {
            by_rows(&v)
        } else if v.a_strides.1 == v.rows as isize && v.rows <= rows::NARROW && v.x_stride == 1 {
            by_narrow_columns(&v)
        } else {
            by_columns(&v)
        }
    }
}

impl<T: Scalar> MatVec<'_, T> {
    /// # Safety
    /// `i < rows`.
    #[inline(always)]
    unsafe fn store(&self, i: usize, x: T) {
        let (row, column) = if self.tile.n == 1 { (i, 0) } else { (0, i) };
        // SAFETY: guaranteed by the caller.
        unsafe { self.tile.store(row, column, x) }
    }
}

/// For a dense A with contiguous columns of at most [`rows::NARROW`] elements: all sums stay in registers.
///
/// # Safety
/// Same as for [`matvec`].
unsafe fn by_narrow_columns<T: Scalar>(v: &MatVec<T>) {
    let mut sums = [T::from_real(0.0); rows::NARROW];
    // SAFETY: A has k columns, x has k elements, both dense.
    unsafe {
        rows::narrow(&mut sums, v.a, v.rows, v.x, v.k);
        for (i, &sum) in sums.iter().enumerate().take(v.rows) {
            v.store(i, sum);
        }
    }
}

/// For an A with contiguous columns: sums of scaled columns, a range of rows at a time.
///
/// # Safety
/// Same as for [`matvec`].
unsafe fn by_columns<T: Scalar>(v: &MatVec<T>) {
    /// Rows per range: 4096 f32 are 16 KiB, so the sums stay in L1 while the columns stream through.
    const RANGE: usize = 4096;
    let mut sums = [T::from_real(0.0); RANGE];
    let mut top = 0;
    while top < v.rows {
        let len = RANGE.min(v.rows - top);
        let sums = &mut sums[..len];
        sums.fill(T::from_real(0.0));
        let mut p = 0;
        while p < v.k {
            let four = (v.k - p).min(4);
            // SAFETY: columns p..p + four and rows top..top + len are inside A.
            unsafe {
                let column = |q: usize| v.a.offset((p + q) as isize * v.a_strides.1).add(top);
                let x = |q: usize| *v.x.offset((p + q) as isize * v.x_stride);
                if four == 4 {
                    rows::axpy4(
                        sums,
                        [column(0), column(1), column(2), column(3)],
                        [x(0), x(1), x(2), x(3)],
                    );
                } else {
                    for q in 0..four {
                        rows::axpy(sums, column(q), x(q));
                    }
                }
            }
            p += four;
        }
        for (i, &s) in sums.iter().enumerate() {
            // SAFETY: top + i < rows.
            unsafe { v.store(top + i, s) }
        }
        top += len;
    }
}

/// For any other A: one dot product per row.
///
/// # Safety
/// Same as for [`matvec`].
unsafe fn by_rows<T: Scalar>(v: &MatVec<T>) {
    let dense = v.a_strides.1 == 1 && v.x_stride == 1;
    let mut first = 0;
    while dense && first + 4 <= v.rows {
        // SAFETY: rows first..first + 4 are inside A.
        unsafe {
            let row = |q: usize| v.a.offset((first + q) as isize * v.a_strides.0);
            let mut sums = [T::from_real(0.0); 4];
            rows::dot4(&mut sums, [row(0), row(1), row(2), row(3)], v.x, v.k);
            for (q, &sum) in sums.iter().enumerate() {
                v.store(first + q, sum);
            }
        }
        first += 4;
    }
    for i in first..v.rows {
        // SAFETY: row i is inside A.
        unsafe {
            let row = v.a.offset(i as isize * v.a_strides.0);
            let sum = if dense {
                rows::dot(row, v.x, v.k)
            } else {
                let mut sum = T::from_real(0.0);
                for p in 0..v.k as isize {
                    sum = sum + *row.offset(p * v.a_strides.1) * *v.x.offset(p * v.x_stride);
                }
                sum
            };
            v.store(i, sum);
        }
    }
}

/// Loops over dense rows, compiled for each instruction set.
mod rows {
    use super::Scalar;
    use crate::isa::{Isa, isa};
    use crate::lanes::in_lanes;

    macro_rules! per_level {
        ($(#[$doc:meta])* unsafe fn $name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)? = $body:ident) => {
            $(#[$doc])*
            pub(super) unsafe fn $name<T: Scalar>($($arg: $ty),*) $(-> $ret)? {
                #[cfg(target_arch = "x86_64")]
                #[target_feature(enable = "avx2,fma")]
                unsafe fn avx2<T: Scalar>($($arg: $ty),*) $(-> $ret)? {
                    // SAFETY: same contract.
                    unsafe { $body($($arg),*) }
                }
                #[cfg(target_arch = "x86_64")]
                #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
                unsafe fn avx512<T: Scalar>($($arg: $ty),*) $(-> $ret)? {
                    // SAFETY: same contract.
                    unsafe { $body($($arg),*) }
                }
                match isa() {
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: `isa()` found the features; same contract.
                    Isa::Avx512 => unsafe { avx512($($arg),*) },
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: `isa()` found the features; same contract.
                    Isa::Avx2 => unsafe { avx2($($arg),*) },
                    // SAFETY: same contract.
                    _ => unsafe { $body($($arg),*) },
                }
            }
        };
    }

    per_level! {
        /// Dot product of two dense vectors.
        ///
        /// # Safety
        /// `n` elements are readable at both.
        unsafe fn dot(a: *const T, b: *const T, n: usize) -> T = dot_body
    }
    per_level! {
        /// Dot products of four dense vectors with `x`, which is read once.
        ///
        /// # Safety
        /// `n` elements are readable at each of `a` and at `x`.
        unsafe fn dot4(sums: &mut [T; 4], a: [*const T; 4], x: *const T, n: usize) = dot4_body
    }
    per_level! {
        /// `sums += x[0] a[0] + … + x[3] a[3]`.
        ///
        /// # Safety
        /// `sums.len()` elements are readable at each of `a`.
        unsafe fn axpy4(sums: &mut [T], a: [*const T; 4], x: [T; 4]) = axpy4_body
    }
    per_level! {
        /// `sums[..rows] = x[0] a[0] + … + x[k - 1] a[k - 1]` for columns of `rows` elements, one behind the other.
        ///
        /// # Safety
        /// `rows <= NARROW`; `rows * k` elements are readable at `a`, `k` at `x`.
        unsafe fn narrow(sums: &mut [T; NARROW], a: *const T, rows: usize, x: *const T, k: usize) = narrow_body
    }
    per_level! {
        /// `sums += x a`.
        ///
        /// # Safety
        /// `sums.len()` elements are readable at `a`.
        unsafe fn axpy(sums: &mut [T], a: *const T, x: T) = axpy_body
    }

    #[inline(always)]
    unsafe fn dot_body<T: Scalar>(a: *const T, b: *const T, n: usize) -> T {
        let zero = T::from_real(0.0);
        // SAFETY: i < n.
        in_lanes!(64; zero, |a, b| a + b; i in 0, n, |sum| unsafe { sum + *a.add(i) * *b.add(i) })
    }

    /// Partial sums of each of four dot products: four AVX-512 registers, eight AVX2 registers.
    const LANES_OF_FOUR: usize = 16;

    #[inline(always)]
    unsafe fn dot4_body<T: Scalar>(sums: &mut [T; 4], a: [*const T; 4], x: *const T, n: usize) {
        const L: usize = LANES_OF_FOUR;
        let zero = T::from_real(0.0);
        let (mut s0, mut s1, mut s2, mut s3) = ([zero; L], [zero; L], [zero; L], [zero; L]);
        let mut p = 0;
        // SAFETY: p + L <= n; same contract.
        unsafe {
            while p + L <= n {
                for l in 0..L {
                    let x = *x.add(p + l);
                    s0[l] = s0[l] + *a[0].add(p + l) * x;
                    s1[l] = s1[l] + *a[1].add(p + l) * x;
                    s2[l] = s2[l] + *a[2].add(p + l) * x;
                    s3[l] = s3[l] + *a[3].add(p + l) * x;
                }
                p += L;
            }
            let mut l = 0;
            while p < n {
                let x = *x.add(p);
                s0[l] = s0[l] + *a[0].add(p) * x;
                s1[l] = s1[l] + *a[1].add(p) * x;
                s2[l] = s2[l] + *a[2].add(p) * x;
                s3[l] = s3[l] + *a[3].add(p) * x;
                (p, l) = (p + 1, l + 1);
            }
        }
        let mut width = L / 2;
        while width > 0 {
            for l in 0..width {
                s0[l] = s0[l] + s0[l + width];
                s1[l] = s1[l] + s1[l + width];
                s2[l] = s2[l] + s2[l + width];
                s3[l] = s3[l] + s3[l + width];
            }
            width /= 2;
        }
        *sums = [s0[0], s1[0], s2[0], s3[0]];
    }

    /// Longest column whose sums stay in registers.
    pub(super) const NARROW: usize = 16;

    /// Reads each column as `NARROW` elements: those behind its end belong to later columns, their sums are not used.
    #[inline(always)]
    unsafe fn narrow_body<T: Scalar>(
        sums: &mut [T; NARROW],
        a: *const T,
        rows: usize,
        x: *const T,
        k: usize,
    ) {
        const UNROLLED: usize = 4;
        let mut parts = [[T::from_real(0.0); NARROW]; UNROLLED];
        // The last columns are too close to the end.
        let readable = k - NARROW.div_ceil(rows).min(k);
        let whole = readable - readable % UNROLLED;
        for p in (0..whole).step_by(UNROLLED) {
            for (q, part) in parts.iter_mut().enumerate() {
                // SAFETY: p + q < readable, so that NARROW elements from this column on are inside A.
                unsafe {
                    let (column, x) = (a.add((p + q) * rows), *x.add(p + q));
                    for (l, sum) in part.iter_mut().enumerate() {
                        *sum = *sum + x * *column.add(l);
                    }
                }
            }
        }
        for l in 0..NARROW {
            sums[l] = (parts[0][l] + parts[1][l]) + (parts[2][l] + parts[3][l]);
        }
        for p in whole..k {
            for (l, sum) in sums.iter_mut().enumerate().take(rows) {
                // SAFETY: p < k, l < rows.
                unsafe { *sum = *sum + *x.add(p) * *a.add(p * rows + l) };
            }
        }
    }

    #[inline(always)]
    unsafe fn axpy4_body<T: Scalar>(sums: &mut [T], a: [*const T; 4], x: [T; 4]) {
        let n = sums.len();
        // SAFETY: guaranteed by the caller.
        let a = unsafe { a.map(|a| std::slice::from_raw_parts(a, n)) };
        for i in 0..n {
            sums[i] =
                sums[i] + ((x[0] * a[0][i] + x[1] * a[1][i]) + (x[2] * a[2][i] + x[3] * a[3][i]));
        }
    }

    #[inline(always)]
    unsafe fn axpy_body<T: Scalar>(sums: &mut [T], a: *const T, x: T) {
        // SAFETY: guaranteed by the caller.
        let a = unsafe { std::slice::from_raw_parts(a, sums.len()) };
        for (s, &a) in sums.iter_mut().zip(a) {
            *s = *s + x * a;
        }
    }
}

// The sums of a range must be a small part of the smallest stack that tasks run on.
const _: () = assert!(4096 * size_of::<Complex<f64>>() <= 64 * 1024);
