//! Correlation of sequences, linear interpolation, and `linspace`.

use crate::real::Shared;
use crate::reduce::number::{Bit, Complex};
use crate::reduce::{Number, by_isa};
use crate::threads::split;
use crate::{Elem, Threads};

/// How two sequences are aligned at each shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sliding {
    /// Type of all elements; not a 16-bit float.
    pub elem: Elem,
    /// Number of weights that precede the first element of `x` at the first shift.
    pub before: usize,
    /// Whether the weights are used in reverse order (convolution).
    pub reversed: bool,
    /// Whether the weights are conjugated.
    pub conjugated: bool,
}

/// Writes `out[k] = sum over j of x[k + j - before] * w[j]` for all `k < len`; terms outside of `x` are 0.
///
/// # Safety
/// `x`, `w` and `out` hold `n`, `m` and `len` contiguous elements; `out` does not overlap the others.
#[expect(clippy::too_many_arguments, reason = "plain data of one small kernel")]
pub unsafe fn slide(
    threads: &dyn Threads,
    how: &Sliding,
    x: *const u8,
    n: usize,
    w: *const u8,
    m: usize,
    out: *mut u8,
    len: usize,
) {
    let run = match how.elem {
        Elem::Bool => slide_of::<Bit>,
        Elem::I8 | Elem::U8 => slide_of::<u8>,
        Elem::I16 | Elem::U16 => slide_of::<u16>,
        Elem::I32 | Elem::U32 => slide_of::<u32>,
        Elem::I64 | Elem::U64 => slide_of::<u64>,
        Elem::F32 => slide_of::<f32>,
        Elem::F64 => slide_of::<f64>,
        Elem::C64 => slide_of::<Complex<f32>>,
        Elem::C128 => slide_of::<Complex<f64>>,
        Elem::F16 | Elem::BF16 => unreachable_halves,
    };
    // SAFETY: guaranteed by the caller.
    unsafe { run(threads, how, x, n, w, m, out, len) }
}

/// Fills the table's entries for 16-bit floats, which every caller converts to float32 first.
#[expect(clippy::too_many_arguments, reason = "the signature of the others")]
unsafe fn unreachable_halves(
    _: &dyn Threads,
    _: &Sliding,
    _: *const u8,
    _: usize,
    _: *const u8,
    _: usize,
    _: *mut u8,
    _: usize,
) {
    debug_assert!(false, "halves are widened before they slide");
}

/// Element types with products and sums; integers wrap.
trait Term: Number {
    fn plus_product(self, x: Self, w: Self) -> Self;
    fn conjugate(self) -> Self;
}

macro_rules! terms {
    ($($t:ty, |$sum:ident, $x:ident, $w:ident| $e:expr, |$z:ident| $conjugate:expr);*) => { $(impl Term for $t {
        #[inline(always)]
        fn plus_product(self, $x: Self, $w: Self) -> Self { let $sum = self; $e }
        #[inline(always)]
        fn conjugate(self) -> Self { let $z = self; $conjugate }
    })* };
}
terms!(
    u8, |s, x, w| s.wrapping_add(x.wrapping_mul(w)), |z| z;
    u16, |s, x, w| s.wrapping_add(x.wrapping_mul(w)), |z| z;
    u32, |s, x, w| s.wrapping_add(x.wrapping_mul(w)), |z| z;
    u64, |s, x, w| s.wrapping_add(x.wrapping_mul(w)), |z| z;
    f32, |s, x, w| s + x * w, |z| z;
    f64, |s, x, w| s + x * w, |z| z;
    Bit, |s, x, w| Bit((s.0 != 0 || x.0 != 0 && w.0 != 0) as u8), |z| z;
    Complex<f32>, |s, x, w| Complex { re: s.re + (x.re * w.re - x.im * w.im), im: s.im + (x.re * w.im + x.im * w.re) }, |z| Complex { re: z.re, im: -z.im };
    Complex<f64>, |s, x, w| Complex { re: s.re + (x.re * w.re - x.im * w.im), im: s.im + (x.re * w.im + x.im * w.re) }, |z| Complex { re: z.re, im: -z.im }
);

#[expect(clippy::too_many_arguments, reason = "plain data of one small kernel")]
unsafe fn slide_of<T: Term>(
    threads: &dyn Threads,
    how: &Sliding,
    x: *const u8,
    n: usize,
    w: *const u8,
    m: usize,
    out: *mut u8,
    len: usize,
) {
    // Results per task: they and the elements of `x` stay in L1 while the loop runs over the weights.
    const BLOCK: usize = 2048;
    // SAFETY: the caller gives `n` and `m` elements.
    let (x, w) = unsafe {
        (
            std::slice::from_raw_parts(x.cast::<T>(), n),
            std::slice::from_raw_parts(w.cast::<T>(), m),
        )
    };
    let mut prepared;
    let w = if how.reversed || how.conjugated {
        prepared = crate::scratch::collected(m, w.iter().copied());
        if how.reversed {
            prepared.reverse();
        }
        if how.conjugated {
            prepared.iter_mut().for_each(|w| *w = w.conjugate());
        }
        &prepared[..]
    } else {
        w
    };
    let out = out as usize;
    split(
        threads,
        len.div_ceil(BLOCK),
        len.saturating_mul(m) / 4,
        &|block| {
            let (start, end) = (block * BLOCK, len.min((block + 1) * BLOCK));
            // SAFETY: `out` has `len` elements; blocks are disjoint.
            unsafe {
                let out = std::slice::from_raw_parts_mut((out as *mut T).add(start), end - start);
                if end - start < 16 && m > 64 {
                    dots(x, w, how.before, start, out);
                } else {
                    sums(x, w, how.before, start, out);
                }
            }
        },
    );
}

by_isa! {
    /// Computes the results from `start` on with the weights in the outer loop, four at a time where all four have elements.
    unsafe fn sums [T: Term] [T] (x: &[T], w: &[T], before: usize, start: usize, out: &mut [T]) {
        out.fill(T::ZERO);
        let (n, end) = (x.len(), start + out.len());
        // The range of results (relative to `start`) to which weight `j` contributes.
        let reach = |j: usize| {
            let from = before.saturating_sub(j).clamp(start, end);
            (from - start, (n + before).saturating_sub(j).clamp(from, end) - start)
        };
        let mut j = 0;
        while j < w.len() {
            let count = (w.len() - j).min(4);
            // The ranges of later weights start and end earlier.
            let (from, to) = (reach(j).0, reach(j + count - 1).1);
            if count == 4 && from < to {
                for (t, &w) in w[j..j + 4].iter().enumerate() {
                    let own = reach(j + t);
                    for k in (own.0..from.min(own.1)).chain(to.max(own.0)..own.1) {
                        out[k] = out[k].plus_product(x[start + k + j + t - before], w);
                    }
                }
                let x = &x[start + from + j - before..][..to - from + 3];
                let (a, b, c, d) = (w[j], w[j + 1], w[j + 2], w[j + 3]);
                for ((((y, &p), &q), &r), &s) in out[from..to].iter_mut().zip(x).zip(&x[1..]).zip(&x[2..]).zip(&x[3..]) {
                    *y = y.plus_product(p, a).plus_product(q, b).plus_product(r, c).plus_product(s, d);
                }
            } else {
                for (t, &w) in w[j..j + count].iter().enumerate() {
                    let own = reach(j + t);
                    if own.0 < own.1 {
                        let x = &x[start + own.0 + j + t - before..];
                        out[own.0..own.1].iter_mut().zip(x).for_each(|(y, &x)| *y = y.plus_product(x, w));
                    }
                }
            }
            j += count;
        }
    }
}

by_isa! {
    /// Computes the results from `start` on with the results in the outer loop: for few results of many weights.
    unsafe fn dots [T: Term] [T] (x: &[T], w: &[T], before: usize, start: usize, out: &mut [T]) {
        const LANES: usize = 16;
        for (k, out) in out.iter_mut().enumerate() {
            let from = before.saturating_sub(start + k).min(w.len());
            let first = (start + k + from).saturating_sub(before).min(x.len());
            let (x, w) = (&x[first..], &w[from..]);
            let n = x.len().min(w.len());
            let (mut lanes, whole) = ([T::ZERO; LANES], n / LANES * LANES);
            for (x, w) in x[..whole].chunks_exact(LANES).zip(w[..whole].chunks_exact(LANES)) {
                for i in 0..LANES {
                    lanes[i] = lanes[i].plus_product(x[i], w[i]);
                }
            }
            let one = T::from_number(1u8);
            let sum = lanes.into_iter().fold(T::ZERO, |sum, lane| sum.plus_product(lane, one));
            *out = x[whole..n].iter().zip(&w[whole..n]).fold(sum, |sum, (&x, &w)| sum.plus_product(x, w));
        }
    }
}

/// Linear interpolation: writes the values at each of the `m` floats at `x` of the piecewise linear function through the points `(xp[i], fp[i])`,
/// with
/// `xp` ascending. Before the first and after the last point the function is constant; NaN gives NaN. Computed in float64.
///
/// # Safety
/// `x` and `out` hold `m` contiguous elements of type `elem`, float32 or float64, and do not overlap.
///
/// # Panics
/// If there are no points, or if `xp` and `fp` differ in length.
pub unsafe fn interpolate(
    threads: &dyn Threads,
    elem: Elem,
    (xp, fp): (&[f64], &[f64]),
    x: *const u8,
    m: usize,
    out: *mut u8,
) {
    assert!(!xp.is_empty() && xp.len() == fp.len());
    // SAFETY: guaranteed by the caller.
    unsafe {
        if elem == Elem::F64 {
            interpolate_of::<f64>(threads, xp, fp, x, m, out);
        } else {
            interpolate_of::<f32>(threads, xp, fp, x, m, out);
        }
    }
}

unsafe fn interpolate_of<T: Number>(
    threads: &dyn Threads,
    xp: &[f64],
    fp: &[f64],
    x: *const u8,
    m: usize,
    out: *mut u8,
) {
    const CHUNK: usize = 4096;
    let (x, out) = (x as usize, out as usize);
    split(threads, m.div_ceil(CHUNK), m * 16, &|chunk| {
        let (start, end) = (chunk * CHUNK, m.min((chunk + 1) * CHUNK));
        let mut near = 0;
        for i in start..end {
            // SAFETY: `i < m`, the number of elements that the caller gives; chunks are disjoint.
            unsafe {
                let at = (*(x as *const T).add(i)).to_f64();
                *(out as *mut T).add(i) = T::from_number(between(xp, fp, at, &mut near));
            }
        }
    });
}

/// The value at `x`. `near` is the interval of the value before: the next one is often in the same interval.
#[inline]
fn between(xp: &[f64], fp: &[f64], x: f64, near: &mut usize) -> f64 {
    let last = xp.len() - 1;
    if x.is_nan() && last > 0 {
        return x;
    }
    if x < xp[0] {
        return fp[0];
    }
    if x >= xp[last] || last == 0 {
        return fp[last];
    }
    let fits = |i: usize| xp[i] <= x && x < xp[i + 1];
    if !fits(*near) {
        // The interval is clamped, because with NaN among the points the search may return 0.
        *near = xp.partition_point(|&p| p <= x).clamp(1, last) - 1;
    }
    let i = *near;
    if x == xp[i] {
        return fp[i];
    }
    let slope = (fp[i + 1] - fp[i]) / (xp[i + 1] - xp[i]);
    let y = fp[i] + slope * (x - xp[i]);
    if !y.is_nan() {
        return y;
    }
    // With infinities, the line from the other end may give a number; between equal values the result is that value.
    let y = fp[i + 1] + slope * (x - xp[i + 1]);
    if y.is_nan() && fp[i] == fp[i + 1] {
        return fp[i];
    }
    y
}

/// `linspace` of several columns at once: rows of evenly spaced numbers.
#[derive(Clone, Copy, Debug)]
pub struct Ramps {
    /// Element type of the result, F32 or F64.
    pub elem: Elem,
    /// Numbers per row: the length of `start` and of `stop`.
    pub n: usize,
    /// Number of rows.
    pub rows: usize,
    /// Number of steps from `start` to `stop`.
    pub gaps: f64,
    /// Whether the last row is exactly `stop`.
    pub ends_at_stop: bool,
}

/// Writes `start[j] + i * step[j]` to element `j` of row `i` of `out`, where `step[j] = (stop[j] - start[j]) / gaps`. Computed in f64.
///
/// # Safety
/// `start` and `stop` hold `what.n` numbers; `out` has room for `what.rows` contiguous rows of that length and overlaps neither.
pub unsafe fn ramps(
    threads: &dyn Threads,
    what: &Ramps,
    start: *const f64,
    stop: *const f64,
    out: *mut u8,
) {
    /// Columns and rows per task: the bounds and steps of these columns stay in L1.
    const COLUMNS: usize = 1024;
    const ROWS: usize = 64;
    let (columns, rows) = (what.n.div_ceil(COLUMNS), what.rows.div_ceil(ROWS));
    let (start, stop, out) = (
        Shared(start.cast_mut()),
        Shared(stop.cast_mut()),
        Shared(out),
    );
    let size = what.elem.size();
    split(threads, columns * rows, what.n * what.rows, &|task| {
        let (j, first) = (task % columns * COLUMNS, task / columns * ROWS);
        let n = COLUMNS.min(what.n - j);
        let mut steps = [0.0_f64; COLUMNS];
        // SAFETY: columns `j..j + n` exist in the bounds and in every row; tasks write disjoint blocks.
        unsafe {
            for (i, step) in steps[..n].iter_mut().enumerate() {
                *step = (*stop.at(j + i) - *start.at(j + i)) / what.gaps;
            }
            for row in first..what.rows.min(first + ROWS) {
                let to = out.at((row * what.n + j) * size);
                let is_stop = what.ends_at_stop && row + 1 == what.rows;
                let from = if is_stop { stop.at(j) } else { start.at(j) };
                let on = if is_stop { None } else { Some(row as f64) };
                match what.elem {
                    Elem::F64 => ramp_row::<f64>(from, steps.as_ptr(), on, n, to.cast()),
                    _ => ramp_row::<f32>(from, steps.as_ptr(), on, n, to.cast()),
                }
            }
        }
    });
}

by_isa! {
    /// Writes `from`, plus `on` times `steps` if `on` is given.
    ///
    /// # Safety
    /// `n` numbers are readable at `from` and `steps`; `to` has room for `n`.
    unsafe fn ramp_row [T: Number] [T] (from: *const f64, steps: *const f64, on: Option<f64>, n: usize, to: *mut T) {
        // SAFETY: all numbers lie below `n`.
        unsafe {
            if let Some(on) = on {
                for j in 0..n {
                    *to.add(j) = T::from_number(on * *steps.add(j) + *from.add(j));
                }
            } else {
                for j in 0..n {
                    *to.add(j) = T::from_number(*from.add(j));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Serial;
    use crate::threads::Scoped;
    use crate::values::Values;

    /// Sums in the order of the definition.
    fn reference(x: &[f64], w: &[f64], before: usize, len: usize) -> Vec<f64> {
        let at = |k: usize, j: usize| (k + j).checked_sub(before).and_then(|i| x.get(i));
        (0..len)
            .map(|k| {
                (0..w.len())
                    .filter_map(|j| at(k, j).map(|x| x * w[j]))
                    .sum()
            })
            .collect()
    }

    #[test]
    fn correlation_matches_the_definition() {
        let mut values = Values(3);
        for (n, m, before, len) in [
            (16, 5, 0, 12),
            (16, 5, 4, 20),
            (3, 9, 8, 11),
            (1, 1, 0, 1),
            (5000, 7, 3, 5000),
            (3000, 2990, 0, 11),
            (200, 300, 299, 499),
            (100, 70, 80, 9),
        ] {
            let x: Vec<f64> = (0..n).map(|_| values.next()).collect();
            let w: Vec<f64> = (0..m).map(|_| values.next()).collect();
            let want = reference(&x, &w, before, len);
            for (threads, reversed) in [(&Serial as &dyn Threads, false), (&Scoped(3), true)] {
                let given: Vec<f64> = if reversed {
                    w.iter().rev().copied().collect()
                } else {
                    w.clone()
                };
                let how = Sliding {
                    elem: Elem::F64,
                    before,
                    reversed,
                    conjugated: false,
                };
                let mut out = vec![f64::NAN; len];
                // SAFETY: slices of these lengths.
                unsafe {
                    slide(
                        threads,
                        &how,
                        x.as_ptr().cast(),
                        n,
                        given.as_ptr().cast(),
                        m,
                        out.as_mut_ptr().cast(),
                        len,
                    );
                }
                for (y, w) in out.iter().zip(&want) {
                    assert!(
                        (y - w).abs() <= 1e-15 * m as f64,
                        "{n} {m} {before}: {y} {w}"
                    );
                }
            }
        }
    }

    #[test]
    fn interpolation_is_linear_between_points() {
        let (xp, fp) = ([0.0, 1.0, 1.0, 3.0], [0.0, 2.0, 4.0, f64::INFINITY]);
        let x = [-1.0, 0.0, 0.5, 1.0, 3.0, 4.0, f64::NAN];
        let mut out = [0.0; 7];
        // SAFETY: arrays of this length.
        unsafe {
            interpolate(
                &Serial,
                Elem::F64,
                (&xp, &fp),
                x.as_ptr().cast(),
                7,
                out.as_mut_ptr().cast(),
            )
        };
        assert_eq!(out[..6], [0.0, 0.0, 1.0, 4.0, f64::INFINITY, f64::INFINITY]);
        assert!(out[6].is_nan());
    }
}
