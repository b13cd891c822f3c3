//! Matrix-vector products. Their speed is limited by reading the matrix once.

use super::Tile;
use super::unpacked::Scalar;
use crate::lanes::in_lanes;
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
        } else if v.has_strips() {
            by_strips(&v)
        } else {
            by_columns(&v)
        }
    }
}

/// Longest columns whose sums all stay in L1.
const LONGEST: usize = 128;

impl<T: Scalar> MatVec<'_, T> {
    /// Whether [`by_strips`] applies.
    fn has_strips(&self) -> bool {
        let is_dense = self.a_strides.1 == self.rows as isize;
        self.x_stride == 1 && self.rows <= LONGEST && (is_dense || self.rows >= rows::STRIP)
    }

    /// # Safety
    /// `i < rows`.
    #[inline(always)]
    unsafe fn store(&self, i: usize, x: T) {
        let (row, column) = if self.tile.n == 1 { (i, 0) } else { (0, i) };
        // SAFETY: guaranteed by the caller.
        unsafe { self.tile.store(row, column, x) }
    }
}

/// For an A with contiguous columns of at most [`LONGEST`] elements: sums of a strip of rows stay in registers.
///
/// # Safety
/// Same as for [`matvec`]; columns of less than [`rows::STRIP`] elements are one behind the other.
unsafe fn by_strips<T: Scalar>(v: &MatVec<T>) {
    /// Columns that are read for one strip after the other while they are in L1.
    const BLOCK: usize = 64;
    let mut sums = [T::from_real(0.0); LONGEST];
    for front in (0..v.k).step_by(BLOCK) {
        let count = BLOCK.min(v.k - front);
        let mut done = 0;
        while done < v.rows {
            // The last strip begins earlier, so that it is whole; what was added before is left out.
            let top = done.min(v.rows.saturating_sub(rows::STRIP));
            let mut strip = [T::from_real(0.0); rows::STRIP];
            // SAFETY: columns front..front + BLOCK from row `top` on are inside A.
            unsafe {
                let corner = v.a.offset(front as isize * v.a_strides.1).add(top);
                let x = v.x.add(front);
                rows::strip(&mut strip, corner, v.a_strides.1, v.rows - top, x, count);
            }
            let end = v.rows.min(top + rows::STRIP);
            for (sum, &part) in sums[done..end].iter_mut().zip(&strip[done - top..]) {
                *sum = *sum + part;
            }
            done = end;
        }
    }
    for (i, &sum) in sums.iter().enumerate().take(v.rows) {
        // SAFETY: i < rows.
        unsafe { v.store(i, sum) }
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

/// For any other A: a dot product for each row.
///
/// # Safety
/// Same as for [`matvec`].
unsafe fn by_rows<T: Scalar>(v: &MatVec<T>) {
    let dense = v.a_strides.1 == 1 && v.x_stride == 1;
    let mut first = 0;
    while dense && first + rows::SIDE <= v.rows {
        // SAFETY: rows first..first + SIDE are inside A.
        unsafe {
            let mut sums = [T::from_real(0.0); rows::SIDE];
            let top = v.a.offset(first as isize * v.a_strides.0);
            rows::dots(&mut sums, top, v.a_strides.0, v.x, v.k);
            for (q, &sum) in sums.iter().enumerate() {
                v.store(first + q, sum);
            }
        }
        first += rows::SIDE;
    }
    for i in first..v.rows {
        // SAFETY: row i is inside A.
        unsafe {
            let row = v.a.offset(i as isize * v.a_strides.0);
            let sum = if dense {
                rows::dot(row, v.x, v.k)
            } else {
                let (a, x) = (
                    |p: usize| row.offset(p as isize * v.a_strides.1),
                    |p: usize| v.x.offset(p as isize * v.x_stride),
                );
                in_lanes!(16; T::from_real(0.0), |a, b| a + b; p in 0, v.k, |sum| sum + *a(p) * *x(p))
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
        /// Dot products of `SIDE` dense vectors, `stride` elements apart, with `x`, which is read once.
        ///
        /// # Safety
        /// `n` elements are readable at each of the vectors and at `x`.
        unsafe fn dots(sums: &mut [T; SIDE], a: *const T, stride: isize, x: *const T, n: usize) = dots_body
    }
    per_level! {
        /// `sums += x[0] a[0] + … + x[3] a[3]`.
        ///
        /// # Safety
        /// `sums.len()` elements are readable at each of `a`.
        unsafe fn axpy4(sums: &mut [T], a: [*const T; 4], x: [T; 4]) = axpy4_body
    }
    per_level! {
        /// `sums = x[0] a[0] + … + x[k - 1] a[k - 1]` for the first `STRIP` elements of columns that are `stride` elements apart and have `rows`
        /// elements. If they have less than `STRIP`, they are one behind the other, and only `rows` sums are meant.
        ///
        /// # Safety
        /// `rows` elements are readable at each column, `k` at `x`.
        unsafe fn strip(sums: &mut [T; STRIP], a: *const T, stride: isize, rows: usize, x: *const T, k: usize) = strip_body
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

    /// Vectors of [`dots`], and partial sums of each.
    pub(super) const SIDE: usize = 8;

    #[inline(always)]
    unsafe fn dots_body<T: Scalar>(
        sums: &mut [T; SIDE],
        a: *const T,
        stride: isize,
        x: *const T,
        n: usize,
    ) {
        let mut parts = [[T::from_real(0.0); SIDE]; SIDE];
        let row = |r: usize, p: usize| a.wrapping_offset(r as isize * stride).wrapping_add(p);
        let mut p = 0;
        // SAFETY: SIDE elements from p <= n - SIDE on are inside each vector, and so is element p < n.
        unsafe {
            while p + SIDE <= n {
                let x = x.add(p).cast::<[T; SIDE]>().read();
                for (r, parts) in parts.iter_mut().enumerate() {
                    let row = row(r, p).cast::<[T; SIDE]>().read();
                    for l in 0..SIDE {
                        parts[l] = parts[l] + row[l] * x[l];
                    }
                }
                p += SIDE;
            }
            if p < n && n >= SIDE {
                // The last elements, together with elements that were added before and are left out now.
                let from = n - SIDE;
                let x = x.add(from).cast::<[T; SIDE]>().read();
                for (r, parts) in parts.iter_mut().enumerate() {
                    let row = row(r, from).cast::<[T; SIDE]>().read();
                    for l in 0..SIDE {
                        let sum = parts[l] + row[l] * x[l];
                        parts[l] = if from + l < p { parts[l] } else { sum };
                    }
                }
                p = n;
            }
            while p < n {
                for (r, parts) in parts.iter_mut().enumerate() {
                    parts[0] = parts[0] + *row(r, p) * *x.add(p);
                }
                p += 1;
            }
        }
        *sums = folded(&parts);
    }

    /// The sum of each row. Rows are folded in the middle, then in the middle of each half, then of each quarter. Each time, two rows share one vector.
    #[inline(always)]
    fn folded<T: Scalar>(x: &[[T; SIDE]; SIDE]) -> [T; SIDE] {
        let zero = T::from_real(0.0);
        let mut halves = [[zero; SIDE]; 4];
        for j in 0..4 {
            for l in 0..4 {
                halves[j][l] = x[j][l] + x[j][l + 4];
                halves[j][l + 4] = x[j + 4][l] + x[j + 4][l + 4];
            }
        }
        let mut quarters = [[zero; SIDE]; 2];
        for j in 0..2 {
            // A loop over [0, 1, 4, 5] is not vectorised.
            for half in [0, 4] {
                for l in half..half + 2 {
                    quarters[j][l] = halves[j][l] + halves[j][l + 2];
                    quarters[j][l + 2] = halves[j + 2][l] + halves[j + 2][l + 2];
                }
            }
        }
        let mut sums = [zero; SIDE];
        for l in 0..4 {
            for j in 0..2 {
                sums[2 * l + j] = quarters[j][2 * l] + quarters[j][2 * l + 1];
            }
        }
        sums
    }

    /// Rows whose sums stay in registers.
    pub(super) const STRIP: usize = 16;

    /// Reads `STRIP` elements of each column. In columns with less, those behind the end belong to later columns, and their sums are not used.
    #[inline(always)]
    unsafe fn strip_body<T: Scalar>(
        sums: &mut [T; STRIP],
        a: *const T,
        stride: isize,
        rows: usize,
        x: *const T,
        k: usize,
    ) {
        const UNROLLED: usize = 4;
        let mut parts = [[T::from_real(0.0); STRIP]; UNROLLED];
        // The last columns with less than STRIP elements are too close to the end.
        let readable = match rows < STRIP {
            true => k - STRIP.div_ceil(rows).min(k),
            false => k,
        };
        let whole = readable - readable % UNROLLED;
        let column = |p: usize| a.wrapping_offset(p as isize * stride);
        for p in (0..whole).step_by(UNROLLED) {
            for (q, part) in parts.iter_mut().enumerate() {
                // SAFETY: p + q < readable, so that STRIP elements from the column's first on are inside A.
                let (column, x) =
                    unsafe { (column(p + q).cast::<[T; STRIP]>().read(), *x.add(p + q)) };
                for l in 0..STRIP {
                    part[l] = part[l] + x * column[l];
                }
            }
        }
        for l in 0..STRIP {
            sums[l] = (parts[0][l] + parts[1][l]) + (parts[2][l] + parts[3][l]);
        }
        for p in whole..k {
            for (l, sum) in sums.iter_mut().enumerate().take(rows) {
                // SAFETY: p < k, l < rows.
                unsafe { *sum = *sum + *x.add(p) * *column(p).add(l) };
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
