//! Reductions over rows, compiled per instruction set. They use index loops, because iterator adapters may be compiled without the instruction set.

#![allow(clippy::needless_range_loop, reason = "see above")]

use crate::lanes::in_lanes;
use crate::real::{Real, per_isa};

/// Defines a safe function over slices: `$name` checks lengths, the body is compiled for each instruction set.
macro_rules! row {
    ($(#[$doc:meta])* $name:ident<T>($($arg:ident: $ty:ty),*) where $check:expr; $body:ident $block:block) => {
        $(#[$doc])*
        pub(super) fn $name<T: Real>($($arg: $ty),*) {
            per_isa! { unsafe fn levels<T>($($arg: $ty),*) = $body }
            #[inline(always)]
            unsafe fn $body<T: Real, const FMA: bool>($($arg: $ty),*) $block
            assert!($check, "rows of matching lengths");
            // SAFETY: the body works on slices; the CPU has the level's features.
            unsafe { levels($($arg),*) }
        }
    };
}

/// Whether `x` replaces `best` as the maximum: it is larger, or the first NaN.
#[inline(always)]
fn beats<T: Real>(x: T, best: T) -> bool {
    (x > best) | (x.is_nan() & !best.is_nan())
}

/// `x^p` by squaring.
#[inline(always)]
pub(super) fn power<T: Real>(x: T, p: u32) -> T {
    let (mut result, mut base, mut p) = (T::ONE, x, p);
    while p > 0 {
        if p & 1 == 1 {
            result *= base;
        }
        base *= base;
        p >>= 1;
    }
    result
}

row! {
    /// For each range of rows of `from`, `width` long, a row of `to`: `to = max(to, these rows)`, propagating NaN. The rows of `to` are `distance` apart.
    fold_max<T>(to: &mut [T], distance: usize, from: &[T], width: usize, ranges: &[(usize, usize)])
        where width <= distance; fold_max_body {
        for r in 0..ranges.len() {
            let to = &mut to[r * distance..][..width];
            for row in ranges[r].0..ranges[r].1 {
                let from = &from[row * width..][..width];
                for i in 0..width {
                    to[i] = from[i].max_nan(to[i]);
                }
            }
        }
    }
}

row! {
    /// `to[i]`: the maximum of part `i` of `from`; the parts have `len` elements. Propagates NaN.
    max_of_parts<T>(to: &mut [T], from: &[T], len: usize) where from.len() == to.len() * len; max_of_parts_body {
        for part in 0..to.len() {
            let from = &from[part * len..][..len];
            to[part] = in_lanes!(16; T::NEG_INFINITY, |a, b| b.max_nan(a); i in 0, len, |max| from[i].max_nan(max));
        }
    }
}

row! {
    /// `to += from`.
    fold_sum<T>(to: &mut [T], from: &[T]) where to.len() == from.len(); fold_sum_body {
        for i in 0..to.len() {
            to[i] += from[i];
        }
    }
}

row! {
    /// Each row of `to` has `width` windows of 2 x 2, whose sums times `scale` it gets. `from` has two rows for each, `in_width` long.
    squares_sum<T>(to: &mut [T], width: usize, from: &[T], in_width: usize, scale: T)
        where 2 * width <= in_width && from.len() * width == 2 * to.len() * in_width; squares_sum_body {
        for r in 0..to.len() / width.max(1) {
            let (top, low) = from[2 * r * in_width..][..2 * in_width].split_at(in_width);
            let (top, low) = (&top[..2 * width], &low[..2 * width]);
            let to = &mut to[r * width..][..width];
            for i in 0..width {
                to[i] = (top[2 * i] + low[2 * i] + (top[2 * i + 1] + low[2 * i + 1])) * scale;
            }
        }
    }
}

row! {
    /// The gradient of `squares_sum` with respect to `from`. What no window covers is not written.
    squares_sum_gradient<T>(from: &mut [T], in_width: usize, to: &[T], width: usize, scale: T)
        where 2 * width <= in_width && from.len() * width == 2 * to.len() * in_width; squares_sum_gradient_body {
        for r in 0..to.len() / width.max(1) {
            let (top, low) = from[2 * r * in_width..][..2 * in_width].split_at_mut(in_width);
            let (top, low) = (&mut top[..2 * width], &mut low[..2 * width]);
            let to = &to[r * width..][..width];
            for i in 0..width {
                let slope = to[i] * scale;
                top[2 * i] = slope;
                top[2 * i + 1] = slope;
                low[2 * i] = slope;
                low[2 * i + 1] = slope;
            }
        }
    }
}

row! {
    /// `to += |from|^p`.
    fold_power<T>(to: &mut [T], from: &[T], p: u32) where to.len() == from.len(); fold_power_body {
        for i in 0..to.len() {
            to[i] += power(from[i].abs(), p);
        }
    }
}

/// Layout of a padded row: column `i` is at `(i % step) * phase_len + i / step`, so that the elements that one tap reads for consecutive windows are
/// contiguous.
#[derive(Clone, Copy)]
pub(super) struct Phases {
    pub step: usize,
    pub phase_len: usize,
}

impl Phases {
    pub(super) fn new(padded: usize, step: usize) -> Phases {
        Phases {
            step,
            phase_len: padded.div_ceil(step),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.step * self.phase_len
    }

    /// Position of tap `k` of the first window.
    #[inline(always)]
    fn tap(&self, k: usize) -> usize {
        k % self.step * self.phase_len + k / self.step
    }
}

row! {
    /// Rearranges a row by phases.
    split<T>(to: &mut [T], from: &[T], phases: Phases) where to.len() == phases.len() && from.len() <= to.len(); split_body {
        for p in 0..phases.step {
            let to = &mut to[p * phases.phase_len..][..phases.phase_len];
            if phases.step == 1 {
                to[..from.len()].copy_from_slice(from);
            } else if phases.step == 2 {
                // Pairs, which the compiler turns into shuffles.
                let pairs = from.len() / 2;
                let (to, whole) = (&mut to[..pairs + usize::from(from.len() % 2 == 1 && p == 0)], &from[..2 * pairs]);
                for i in 0..pairs {
                    to[i] = whole[2 * i + p];
                }
                if to.len() > pairs {
                    to[pairs] = from[2 * pairs];
                }
            } else {
                let mut at = p;
                for to in to {
                    if at >= from.len() {
                        break;
                    }
                    *to = from[at];
                    at += phases.step;
                }
            }
        }
    }
}

row! {
    /// The inverse of `split`.
    join<T>(to: &mut [T], from: &[T], phases: Phases) where from.len() == phases.len() && to.len() <= from.len(); join_body {
        for p in 0..phases.step.min(to.len()) {
            let from = &from[p * phases.phase_len..];
            let mut at = p;
            for &x in from {
                if at >= to.len() {
                    break;
                }
                to[at] = x;
                at += phases.step;
            }
        }
    }
}

row! {
    /// `to[i] = max(to[i], taps of window i)`.
    slide_max<T>(to: &mut [T], from: &[T], kernel: usize, phases: Phases) where from.len() == phases.len(); slide_max_body {
        for k in 0..kernel {
            let taps = &from[phases.tap(k)..];
            let n = to.len().min(taps.len());
            let (to, taps) = (&mut to[..n], &taps[..n]);
            for i in 0..n {
                to[i] = taps[i].max_nan(to[i]);
            }
        }
    }
}

row! {
    /// `to[i] += sum of the taps of window i`.
    slide_sum<T>(to: &mut [T], from: &[T], kernel: usize, phases: Phases) where from.len() == phases.len(); slide_sum_body {
        for k in 0..kernel {
            let taps = &from[phases.tap(k)..];
            let n = to.len().min(taps.len());
            let (to, taps) = (&mut to[..n], &taps[..n]);
            for i in 0..n {
                to[i] += taps[i];
            }
        }
    }
}

row! {
    /// Adds `from[i]` to all taps of window `i`: the transpose of `slide_sum`.
    spread<T>(to: &mut [T], from: &[T], kernel: usize, phases: Phases) where to.len() == phases.len(); spread_body {
        for k in 0..kernel {
            let to = &mut to[phases.tap(k)..];
            let n = to.len().min(from.len());
            let (to, from) = (&mut to[..n], &from[..n]);
            for i in 0..n {
                to[i] += from[i];
            }
        }
    }
}

row! {
    /// As `slide_max`; also writes to `winners` the number of each new maximum: that of the tap, counted from `first`.
    slide_argmax<T>(best: &mut [T], winners: &mut [u32], from: &[T], kernel: usize, phases: Phases, first: u32)
        where best.len() == winners.len() && from.len() == phases.len(); slide_argmax_body {
        for k in 0..kernel {
            let taps = &from[phases.tap(k)..];
            let n = best.len().min(taps.len());
            let (best, winners, taps) = (&mut best[..n], &mut winners[..n], &taps[..n]);
            let number = first + k as u32;
            for i in 0..n {
                let wins = beats(taps[i], best[i]);
                best[i] = if wins { taps[i] } else { best[i] };
                winners[i] = if wins { number } else { winners[i] };
            }
        }
    }
}

row! {
    /// 2 x 2 windows with stride 2: `to[i]` is the maximum of columns `2 i` and `2 i + 1` of both rows, propagating NaN.
    squares_max<T>(to: &mut [T], top: &[T], low: &[T])
        where top.len() == low.len() && to.len() <= top.len() / 2; squares_max_body {
        let n = to.len();
        let (top, low) = (&top[..2 * n], &low[..2 * n]);
        for i in 0..n {
            let (a, b) = (top[2 * i + 1].max_nan(top[2 * i]), low[2 * i + 1].max_nan(low[2 * i]));
            to[i] = b.max_nan(a);
        }
    }
}

row! {
    /// The gradient of `squares_max`: `dy[i]` for the first of the largest elements of its window, 0 for the others.
    squares_max_gradient<T>(top_to: &mut [T], low_to: &mut [T], top: &[T], low: &[T], dy: &[T])
        where top.len() == low.len() && dy.len() <= top.len() / 2 && top_to.len() == top.len() && low_to.len() == top.len();
        squares_max_gradient_body {
        let n = dy.len();
        let (top, low) = (&top[..2 * n], &low[..2 * n]);
        let (top_to, low_to) = (&mut top_to[..2 * n], &mut low_to[..2 * n]);
        for i in 0..n {
            let second = beats(top[2 * i + 1], top[2 * i]);
            let best = if second { top[2 * i + 1] } else { top[2 * i] };
            let third = beats(low[2 * i], best);
            let best = if third { low[2 * i] } else { best };
            let fourth = beats(low[2 * i + 1], best);
            // The gradient, or 0 once a later element of the window has received it.
            let left = dy[i];
            low_to[2 * i + 1] = if fourth { left } else { T::ZERO };
            let left = if fourth { T::ZERO } else { left };
            low_to[2 * i] = if third { left } else { T::ZERO };
            let left = if third { T::ZERO } else { left };
            top_to[2 * i + 1] = if second { left } else { T::ZERO };
            top_to[2 * i] = if second { T::ZERO } else { left };
        }
    }
}
