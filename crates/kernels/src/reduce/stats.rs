//! Reductions with more than one number per output: mean with variance, and log-sum-exp.

use std::mem::MaybeUninit;

use super::kernel::{Lane, Load, Max, by_isa, fold_row, load_of, store_of};
use super::plan::{Axes, Axis, Units, Walk, count, normalise};
use super::{Source, Target};
use crate::lanes::in_lanes;
use crate::threads::split;
use crate::{Elem, Threads};

/// Outputs and options of [`moments`].
#[derive(Clone, Copy, Debug)]
pub struct Moments<'a> {
    /// Target of the mean.
    pub mean: Option<Target<'a>>,
    /// Target of the variance: the sum of squared deviations divided by `n - ddof`. Real for complex input.
    pub variance: Option<Target<'a>>,
    /// Target of the standard deviation.
    pub deviation: Option<Target<'a>>,
    /// Delta degrees of freedom; a divisor below 0 is taken as 0, as in NumPy.
    pub ddof: f64,
    /// Whether deviations of complex numbers are from the real part of their mean, as in NumPy with a real dtype.
    pub about_real: bool,
}

/// Partial result for some elements: (count, mean, sum of squared deviations) or (count, maximum, sum of exp(x - maximum)).
type State = [f64; 3];

const BLOCK_BYTES: usize = 16 * 1024;
const SEGMENT: usize = 64 * 1024;
/// Outputs that share cache lines and are processed together.
const GROUP: usize = 16;

type Block = MaybeUninit<[[u64; 8]; BLOCK_BYTES / 64]>;

/// Mean and variance of `src` over the axes marked in `axes`, in one pass over memory.
///
/// Every block is centred on its own mean, and blocks are combined in f64 by the update of Chan, Golub and LeVeque (1979), so that a
/// large common offset loses no digits. Integers are read as f64, f16 and bf16 as f32.
///
/// # Safety
/// Same as for [`reduce`](super::reduce), for every target.
pub unsafe fn moments(threads: &dyn Threads, src: &Source, axes: &[bool], what: &Moments) {
    let tile = |elem| {
        if elem == Elem::F32 {
            centre::<f32> as Tile
        } else {
            centre::<f64>
        }
    };
    // A complex variance is the sum of the variances of both parts, which are two real views.
    let complex = matches!(src.elem, Elem::C64 | Elem::C128);
    let part = if src.elem == Elem::C64 {
        Elem::F32
    } else {
        Elem::F64
    };
    let first = Source {
        elem: if complex { part } else { src.elem },
        ..*src
    };
    let second = complex.then(|| Source {
        ptr: src.ptr.wrapping_add(part.size()),
        ..first
    });
    let finish = |n: usize, output: usize, re: State, im: Option<State>| {
        let im = im.unwrap_or([0.0; 3]);
        let beside = if what.about_real {
            n as f64 * im[1] * im[1]
        } else {
            0.0
        };
        let variance = (re[2] + im[2] + beside) / (n as f64 - what.ddof).max(0.0);
        let mean = if n == 0 {
            [f64::NAN; 2]
        } else {
            [re[1], im[1]]
        };
        for (target, value) in [
            (&what.mean, mean),
            (&what.variance, [variance, 0.0]),
            (&what.deviation, [variance.sqrt(), 0.0]),
        ] {
            if let Some(target) = target {
                // SAFETY: the caller's target has an element for every output.
                unsafe { write(target, src.shape, axes, output, value) };
            }
        }
    };
    // SAFETY: guaranteed by the caller.
    unsafe {
        run(
            threads,
            &first,
            second.as_ref(),
            axes,
            tile,
            join_centred,
            &finish,
        )
    }
}

/// log(sum(exp(x))) of `src` (real) over the axes marked in `axes`, without overflow; -inf without elements, NaN if any element is NaN.
///
/// # Safety
/// Same as for [`reduce`](super::reduce).
pub unsafe fn log_sum_exp(threads: &dyn Threads, src: &Source, axes: &[bool], out: &Target) {
    debug_assert!(!matches!(src.elem, Elem::C64 | Elem::C128));
    let tile = |elem| {
        if elem == Elem::F32 {
            exponentials::<f32> as Tile
        } else {
            exponentials::<f64>
        }
    };
    let finish = |n: usize, output: usize, state: State, _| {
        let value = if n == 0 {
            f64::NEG_INFINITY
        } else if state[1].is_finite() {
            state[1] + state[2].ln()
        } else {
            state[1]
        };
        // SAFETY: the caller's target has an element for every output.
        unsafe { write(out, src.shape, axes, output, [value, 0.0]) };
    };
    // SAFETY: guaranteed by the caller.
    unsafe { run(threads, src, None, axes, tile, join_exponentials, &finish) }
}

/// Writes output `output` (in C order over the kept axes).
unsafe fn write(
    target: &Target,
    shape: &[usize],
    axes: &[bool],
    mut output: usize,
    value: [f64; 2],
) {
    let mut offset = 0;
    for i in (0..shape.len()).rev().filter(|&i| !axes[i]) {
        offset += (output % shape[i]) as isize * target.strides[i];
        output /= shape[i];
    }
    let complex = matches!(target.elem, Elem::C64 | Elem::C128);
    let store = store_of(if complex { Elem::C128 } else { Elem::F64 }, target.elem)
        .expect("F64 and C128 convert to all");
    // SAFETY: the caller's target; `value` holds one F64 or C128.
    unsafe { store(value.as_ptr().cast(), target.ptr.offset(offset), 0, 1) };
}

type Tile = unsafe fn(*const u8, usize) -> State;

/// The N-d driver: `tile` computes the partial result of a block, `join` combines partial results in order of position, and
/// `finish(n, output, state, second)` writes an output.
unsafe fn run(
    threads: &dyn Threads,
    src: &Source,
    second: Option<&Source>,
    axes: &[bool],
    tile: impl Fn(Elem) -> Tile,
    join: fn(State, State) -> State,
    finish: &(dyn Fn(usize, usize, State, Option<State>) + Sync),
) {
    let (mut keep, mut red) = (Axes::new(), Axes::new());
    let mut number = 1;
    for (i, &len) in src.shape.iter().enumerate().rev() {
        if axes[i] {
            red.insert(
                0,
                Axis {
                    len,
                    src: src.strides[i],
                    dst: 0,
                },
            );
        } else {
            // The "target" stride is the output's index.
            keep.insert(
                0,
                Axis {
                    len,
                    src: src.strides[i],
                    dst: number,
                },
            );
            number *= len as isize;
        }
    }
    let n = count(&red);
    let outputs = count(&keep);
    if outputs == 0 {
        return;
    }
    let (mut from, mut first) = (src.ptr, std::ptr::null_mut());
    normalise(&mut keep, &mut from, &mut first);
    if n > 0 {
        normalise(&mut red, &mut from, &mut std::ptr::null_mut());
    }
    // Byte offset between the parts of a complex number.
    let part = second.map(|s| s.ptr as isize - src.ptr as isize);
    let first = first as isize;
    let inner = keep.pop().unwrap_or(Axis {
        len: 1,
        src: 0,
        dst: 0,
    });
    let acc = match src.elem.compute() {
        Elem::F32 => Elem::F32,
        _ => Elem::F64,
    };
    let job = Job {
        load: load_of(src.elem, acc),
        needs_no_load: src.elem == acc,
        size: acc.size(),
        tile: tile(acc),
        join,
        red,
    };
    let parts = Units::new(&keep, inner, GROUP);
    let units = parts.count();
    let segments = if units >= 32 {
        1
    } else {
        (n / SEGMENT).clamp(1, 64)
    };
    let from = from as usize;
    let locate = |unit: usize| {
        let (src, number, width) = parts.locate(unit);
        (
            (from as *const u8).wrapping_offset(src),
            first + number,
            width,
        )
    };
    let unit_states = |unit: usize, start: usize, end: usize| {
        let (src, _, width) = locate(unit);
        let mut states = [[[0.0; 3]; GROUP]; 2];
        // SAFETY: offsets lie inside the caller's source, in either part.
        unsafe {
            job.states(src, inner.src, start, end, &mut states[0][..width]);
            if let Some(part) = part {
                job.states(
                    src.wrapping_offset(part),
                    inner.src,
                    start,
                    end,
                    &mut states[1][..width],
                );
            }
        }
        states
    };
    let finish_unit = |unit: usize, states: &[[State; GROUP]; 2]| {
        let (_, number, width) = locate(unit);
        for (j, (&re, &im)) in states[0].iter().zip(&states[1]).enumerate().take(width) {
            let output = (number + j as isize * inner.dst) as usize;
            finish(n, output, re, part.map(|_| im));
        }
    };
    if segments == 1 {
        return split(threads, units, n * outputs, &|unit| {
            finish_unit(unit, &unit_states(unit, 0, n))
        });
    }
    let mut partials = crate::scratch::filled(units * segments, [[[0.0; 3]; GROUP]; 2]);
    let base = partials.as_mut_ptr() as usize;
    split(threads, units * segments, n * outputs, &|task| {
        let (unit, s) = (task / segments, task % segments);
        // SAFETY: every task writes its own partial results.
        unsafe {
            *(base as *mut [[State; GROUP]; 2]).add(task) =
                unit_states(unit, n * s / segments, n * (s + 1) / segments)
        };
    });
    for (unit, group) in partials.chunks_exact(segments).enumerate() {
        let mut all = group[0];
        for other in &group[1..] {
            for (a, b) in all.as_flattened_mut().iter_mut().zip(other.as_flattened()) {
                *a = join(*a, *b);
            }
        }
        finish_unit(unit, &all);
    }
}

struct Job {
    load: Load,
    needs_no_load: bool,
    size: usize,
    tile: Tile,
    join: fn(State, State) -> State,
    red: Axes,
}

impl Job {
    /// Partial results of elements `start..end` of neighbouring outputs, `step` bytes apart.
    unsafe fn states(
        &self,
        src: *const u8,
        step: isize,
        start: usize,
        end: usize,
        states: &mut [State],
    ) {
        let mut buffer = Block::uninit();
        let buffer = buffer.as_mut_ptr().cast::<u8>();
        let stride = self.red.last().map_or(self.size as isize, |r| r.src);
        let reads_source = self.needs_no_load && stride == self.size as isize;
        // Columns are read one after the other; fewer rows at a time keep the cache lines that they share in L1.
        let block = if states.len() > 1 && !reads_source {
            512
        } else {
            BLOCK_BYTES / self.size
        };
        let mut at = start;
        while at < end {
            let mut n = block.min(end - at);
            if reads_source {
                n = n.min(Walk::new(&self.red, at).run().1);
            }
            for (j, state) in states.iter_mut().enumerate() {
                let mut walk = Walk::new(&self.red, at);
                let src = src.wrapping_offset(j as isize * step);
                // SAFETY: runs lie inside the source; `block` values fit the buffer.
                let new = unsafe {
                    if reads_source {
                        (self.tile)(src.offset(walk.run().0), n)
                    } else {
                        let mut filled = 0;
                        while filled < n {
                            let (offset, left) = walk.run();
                            let m = left.min(n - filled);
                            (self.load)(
                                src.offset(offset),
                                stride,
                                m,
                                buffer.add(filled * self.size),
                            );
                            walk.advance(m);
                            filled += m;
                        }
                        (self.tile)(buffer, n)
                    }
                };
                *state = if at == start {
                    new
                } else {
                    (self.join)(*state, new)
                };
            }
            at += n;
        }
    }
}

fn join_centred(a: State, b: State) -> State {
    let n = a[0] + b[0];
    if n == 0.0 {
        return a;
    }
    let d = b[1] - a[1];
    [
        n,
        a[1] + d * (b[0] / n),
        a[2] + b[2] + d * d * (a[0] * b[0] / n),
    ]
}

fn join_exponentials(a: State, b: State) -> State {
    let (low, high) = if a[1] < b[1] || b[1].is_nan() {
        (a, b)
    } else {
        (b, a)
    };
    if high[1].is_infinite() || high[1].is_nan() {
        return [a[0] + b[0], high[1], 1.0];
    }
    [
        a[0] + b[0],
        high[1],
        high[2] + low[2] * (low[1] - high[1]).exp(),
    ]
}

/// A float type in which statistics are computed.
trait StatFloat:
    Lane + std::ops::Add<Output = Self> + std::ops::Sub<Output = Self> + std::ops::Mul<Output = Self>
{
    /// exp(x) for x <= 0, within 2 ulp; 0 where the result would be subnormal.
    fn exp_negative(x: Self) -> Self;
}

macro_rules! real {
    ($t:ident, $bits:ident, $shift:literal, $bias:literal, $magic:expr, $low:expr, $ln2_high:expr, $ln2_low:expr, $($c:literal)*) => {
        impl StatFloat for $t {
            // exp(x) = 2^k exp(r), |r| <= ln 2 / 2, exp(r) by its Taylor polynomial. Adding `magic` rounds to an integer, which is then in
            // the low bits. ln 2 is split so that k times its high part is exact.
            #[inline(always)]
            fn exp_negative(x: Self) -> Self {
                let kept = if x > $low { x } else { $low };
                let shifted = kept * std::$t::consts::LOG2_E + $magic;
                let k = shifted - $magic;
                let r = (kept - k * $ln2_high) - k * $ln2_low;
                let mut p = 0.0;
                $( p = p * r + 1.0 / $c; )*
                let scale = $t::from_bits((shifted.to_bits().wrapping_sub($t::to_bits($magic)).wrapping_add($bias)) << $shift);
                if x > $low { p * scale } else { 0.0 }
            }
        }
    };
}
real!(f32, u32, 23, 127, 12_582_912.0f32, -87.0f32, 0.693_359_4f32, -2.121_944_4e-4f32,
      5040.0 720.0 120.0 24.0 6.0 2.0 1.0 1.0);
real!(f64, u64, 52, 1023, 6_755_399_441_055_744.0f64, -708.0f64, 0.693_147_180_369_123_8f64, 1.908_214_929_270_587_7e-10f64,
      6_227_020_800.0 479_001_600.0 39_916_800.0 3_628_800.0 362_880.0 40_320.0 5040.0 720.0 120.0 24.0 6.0 2.0 1.0 1.0);

/// Sum of `$term` for `$i` below `$n`: in lanes of `A`, which are joined in f64.
macro_rules! sum {
    ($i:ident < $n:expr => $term:expr) => {{
        let full = $n / 32 * 32;
        let mut total = in_lanes!(16; 0.0, |a, b| a + b; $i in full, $n, |sum| sum + ($term).to_f64());
        if full > 0 {
            let (mut lanes, mut at) = ([A::ZERO; 32], 0);
            while at < full {
                for l in 0..32 {
                    let $i = at + l;
                    lanes[l] = lanes[l] + ($term);
                }
                at += 32;
            }
            total += in_lanes!(16; 0.0, |a, b| a + b; l in 0, 32, |sum| sum + lanes[l].to_f64());
        }
        total
    }};
}

by_isa! {
    unsafe fn centre [A: StatFloat] [A] (x: *const u8, n: usize) -> State {
        let x = x.cast::<A>();
        // SAFETY: the caller gives `n` values, and `i` is below `n`.
        unsafe {
            let (mut pivot, mut again) = (A::from_number(sum!(i < n => *x.add(i)) / n as f64), true);
            loop {
                // The pivot is rounded; the mean of the deviations corrects for that.
                let shift = sum!(i < n => *x.add(i) - pivot) / n as f64;
                let squares = sum!(i < n => (*x.add(i) - pivot) * (*x.add(i) - pivot));
                let spread = squares - shift * shift * n as f64;
                if !(again && spread.is_nan() && shift.is_finite()) {
                    // The comparison is false for NaN, which is returned as it is. Squares that overflowed give infinity.
                    return [n as f64, pivot.to_f64() + shift, if spread < 0.0 { 0.0 } else { spread }];
                }
                // With a very large mean, the squares of its rounding error have overflowed.
                (pivot, again) = (A::from_number(pivot.to_f64() + shift), false);
            }
        }
    }
}

by_isa! {
    unsafe fn exponentials [A: StatFloat] [A] (x: *const u8, n: usize) -> State {
        // SAFETY: the caller gives `n` values.
        let largest = fold_row::<A, Max>(unsafe { std::slice::from_raw_parts(x.cast::<A>(), n) });
        let (x, is_finite) = (x.cast::<A>(), largest.to_f64().is_finite());
        // SAFETY: `i` is below `n`.
        let sum = if is_finite { unsafe { sum!(i < n => A::exp_negative(*x.add(i) - largest)) } } else { 1.0 };
        [n as f64, largest.to_f64(), sum]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Serial;
    use crate::reduce::fixtures::{Noise, Strided, indices};
    use crate::threads::Scoped;

    #[test]
    fn moments_and_log_sum_exp_agree_with_reference_loops() {
        let mut noise = Noise(5);
        for round in 0..300 {
            let ndim = 1 + noise.below(3);
            let shape: Vec<usize> = (0..ndim).map(|_| [1, 2, 9, 33][noise.below(4)]).collect();
            let mut order: Vec<usize> = (0..ndim).collect();
            (0..ndim).for_each(|i| order.swap(i, noise.below(ndim)));
            let steps: Vec<isize> = (0..ndim).map(|_| [1, 2, -1, 0][noise.below(4)]).collect();
            let axes: Vec<bool> = (0..ndim).map(|_| noise.below(3) > 0).collect();
            let elem = [
                Elem::F32,
                Elem::F64,
                Elem::C64,
                Elem::I32,
                Elem::BF16,
                Elem::C128,
                Elem::F16,
            ][round % 7];
            // A large common offset, with which naive sums of squares would lose all digits.
            let offset = if matches!(elem, Elem::BF16 | Elem::F16) {
                0.0
            } else {
                1000.0
            };
            let x = Strided::new(elem, &shape, &order, &steps, || {
                (offset + 8.0 * noise.unit(), noise.unit())
            });
            let kept: Vec<usize> = shape
                .iter()
                .zip(&axes)
                .map(|(&n, &a)| if a { 1 } else { n })
                .collect();
            let make = |e| {
                Strided::new(
                    e,
                    &kept,
                    &(0..ndim).rev().collect::<Vec<_>>(),
                    &vec![-1; ndim],
                    || (0.0, 0.0),
                )
            };
            let complex = elem >= Elem::C64;
            let (mut mean, mut variance, mut lse) =
                (make(Elem::C128), make(Elem::F64), make(Elem::F64));
            let (mean_target, variance_target) = (mean.target(), variance.target());
            let what = Moments {
                about_real: false,
                mean: Some(mean_target),
                variance: Some(variance_target),
                deviation: None,
                ddof: 0.5,
            };
            // SAFETY: the views lie in their buffers.
            unsafe {
                moments(&Scoped(2), &x.source(), &axes, &what);
                if !complex {
                    log_sum_exp(&Serial, &x.source(), &axes, &lse.target());
                }
            }
            for at in indices(&kept) {
                let v: Vec<(f64, f64)> = indices(&shape)
                    .filter(|i| (0..ndim).all(|k| axes[k] || i[k] == at[k]))
                    .map(|i| x.at(&i))
                    .collect();
                let n = v.len() as f64;
                let m = v
                    .iter()
                    .fold((0.0, 0.0), |m, v| (m.0 + v.0 / n, m.1 + v.1 / n));
                let q: f64 = v
                    .iter()
                    .map(|v| (v.0 - m.0).powi(2) + if complex { (v.1 - m.1).powi(2) } else { 0.0 })
                    .sum();
                let single = matches!(elem, Elem::F32 | Elem::C64 | Elem::BF16 | Elem::F16);
                // Deviations are below 16 and exact to one rounding each; the scalar loop itself rounds at 1000.
                let eps = if single {
                    2f64.powi(-22)
                } else {
                    2f64.powi(-36)
                };
                let got = mean.at(&at);
                assert!(
                    (got.0 - m.0).abs() <= eps * 16.0,
                    "{elem:?} mean {got:?}, not {m:?}"
                );
                assert!(!complex || (got.1 - m.1).abs() <= eps * 16.0);
                let (got, want) = (variance.at(&at).0, q / (n - 0.5));
                assert!(
                    (got - want).abs() <= eps * 64.0 * (1.0 + want),
                    "{elem:?} {shape:?} {axes:?}: variance {got}, not {want}"
                );
                if !complex {
                    let high = v.iter().fold(f64::NEG_INFINITY, |h, v| h.max(v.0));
                    let want = high + v.iter().map(|v| (v.0 - high).exp()).sum::<f64>().ln();
                    let got = lse.at(&at).0;
                    assert!(
                        (got - want).abs() <= eps * 4.0 + want.abs() * 1e-15,
                        "{elem:?}: log-sum-exp {got}, not {want}"
                    );
                }
            }
        }
    }

    #[test]
    fn long_and_extreme_inputs() {
        let n = 300_000;
        let mut noise = Noise(9);
        let x = Strided::contiguous(Elem::F32, &[n], || (1e4 + noise.unit(), 0.0));
        let run = |threads: &dyn Threads| {
            let mut y = Strided::contiguous(Elem::F64, &[2], || (0.0, 0.0));
            let target = y.target();
            let second = Target {
                ptr: target.ptr.wrapping_add(8),
                ..target
            };
            let what = Moments {
                about_real: false,
                mean: Some(target),
                variance: None,
                deviation: Some(second),
                ddof: 1.0,
            };
            // SAFETY: the views lie in their buffers.
            unsafe { moments(threads, &x.source(), &[true], &what) };
            (y.at(&[0]).0, y.at(&[1]).0)
        };
        let got = run(&Serial);
        assert_eq!(got, run(&Scoped(3)));
        let v = x.values();
        let mean = v.iter().map(|v| v.0).sum::<f64>() / n as f64;
        let deviation =
            (v.iter().map(|v| (v.0 - mean).powi(2)).sum::<f64>() / (n - 1) as f64).sqrt();
        assert!(
            (got.0 - mean).abs() < 1e-6 && (got.1 - deviation).abs() < 1e-6,
            "{got:?} not {:?}",
            (mean, deviation)
        );
        let inf = f64::INFINITY;
        for (values, want) in [
            (vec![-inf, -inf], -inf),
            (vec![-inf, 1.0], 1.0),
            (vec![inf, 1.0], inf),
            (vec![1e30, 1e30], 1e30),
            (vec![], -inf),
            (vec![f64::NAN, inf], f64::NAN),
        ] {
            let mut i = 0;
            let x = Strided::contiguous(Elem::F32, &[values.len()], || {
                i += 1;
                (values.get(i - 1).copied().unwrap_or(0.0), 0.0)
            });
            let mut y = Strided::contiguous(Elem::F32, &[1], || (0.0, 0.0));
            // SAFETY: the views lie in their buffers.
            unsafe { log_sum_exp(&Serial, &x.source(), &[true], &y.target()) };
            let got = y.at(&[0]).0;
            assert!(
                got == want as f32 as f64 || (got.is_nan() && want.is_nan()),
                "{values:?}: {got}"
            );
        }
    }

    #[test]
    fn exponentials_are_within_two_ulp() {
        for i in 0..200_000 {
            let x = -87.0 * i as f64 / 200_000.0;
            let (got, want) = (f32::exp_negative(x as f32), f64::from(x as f32).exp());
            assert!(
                (got as f64 - want).abs() <= 2.0 * want * 2f64.powi(-23),
                "{x}: {got} {want}"
            );
            let (got, want) = (f64::exp_negative(8.0 * x), libm::exp(8.0 * x));
            assert!(
                (got - want).abs() <= 3.0 * want * 2f64.powi(-52),
                "{x}: {got} {want}"
            );
        }
    }
}
