//! Reductions over rows, compiled per instruction set.

use crate::real::{Real, per_isa};

/// Defines a safe row over slices: `$name` checks lengths, the body runs under the instruction set in force.
macro_rules! row {
    ($(#[$doc:meta])* $name:ident<T>($($arg:ident: $ty:ty),*) where $check:expr; $body:ident $block:block) => {
        $(#[$doc])*
        pub(super) fn $name<T: Real>($($arg: $ty),*) {
            per_isa! { unsafe fn levels<T>($($arg: $ty),*) = $body }
            #[inline(always)]
            unsafe fn $body<T: Real, const FMA: bool>($($arg: $ty),*) $block
            assert!($check, "rows of matching lengths");
            // SAFETY: the body works on slices; the level's features are there.
            unsafe { levels($($arg),*) }
        }
    };
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
    /// `to = max(to, from)`, NaN winning.
    fold_max<T>(to: &mut [T], from: &[T]) where to.len() == from.len(); fold_max_body {
        for (to, &x) in to.iter_mut().zip(from) {
            *to = x.max_nan(*to);
        }
    }
}

row! {
    /// `to += from`.
    fold_sum<T>(to: &mut [T], from: &[T]) where to.len() == from.len(); fold_sum_body {
        for (to, &x) in to.iter_mut().zip(from) {
            *to += x;
        }
    }
}

row! {
    /// `to += |from|^p`.
    fold_power<T>(to: &mut [T], from: &[T], p: u32) where to.len() == from.len(); fold_power_body {
        for (to, &x) in to.iter_mut().zip(from) {
            *to += power(x.abs(), p);
        }
    }
}

/// A padded row as windows see it: column `i` of it lies at `(i % step) * phase_len + i / step`, so that what one tap sees of
/// neighbouring windows is contiguous.
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

    /// Where tap `k` of the first window lies.
    #[inline(always)]
    fn tap(&self, k: usize) -> usize {
        k % self.step * self.phase_len + k / self.step
    }
}

row! {
    /// Lays a row out by phases.
    split<T>(to: &mut [T], from: &[T], phases: Phases) where to.len() == phases.len() && from.len() <= to.len(); split_body {
        for p in 0..phases.step {
            let to = &mut to[p * phases.phase_len..][..phases.phase_len];
            if phases.step == 1 {
                to[..from.len()].copy_from_slice(from);
            } else if phases.step == 2 {
                // Pairs, which the compiler turns into shuffles.
                for (to, pair) in to.iter_mut().zip(from.chunks_exact(2)) {
                    *to = pair[p];
                }
                if from.len() % 2 == 1 && p == 0 {
                    to[from.len() / 2] = from[from.len() - 1];
                }
            } else {
                for (to, &x) in to.iter_mut().zip(from[p.min(from.len())..].iter().step_by(phases.step)) {
                    *to = x;
                }
            }
        }
    }
}

row! {
    /// Undoes `split`.
    join<T>(to: &mut [T], from: &[T], phases: Phases) where from.len() == phases.len() && to.len() <= from.len(); join_body {
        for p in 0..phases.step.min(to.len()) {
            for (to, &x) in to[p..].iter_mut().step_by(phases.step).zip(&from[p * phases.phase_len..]) {
                *to = x;
            }
        }
    }
}

row! {
    /// `to[i] = max(to[i], taps of window i)`.
    slide_max<T>(to: &mut [T], from: &[T], kernel: usize, phases: Phases) where from.len() == phases.len(); slide_max_body {
        for k in 0..kernel {
            for (to, &x) in to.iter_mut().zip(&from[phases.tap(k)..]) {
                *to = x.max_nan(*to);
            }
        }
    }
}

row! {
    /// `to[i] += sum of the taps of window i`.
    slide_sum<T>(to: &mut [T], from: &[T], kernel: usize, phases: Phases) where from.len() == phases.len(); slide_sum_body {
        for k in 0..kernel {
            for (to, &x) in to.iter_mut().zip(&from[phases.tap(k)..]) {
                *to += x;
            }
        }
    }
}

row! {
    /// Adds `from[i]` to all taps of window `i`: the transpose of `slide_sum`.
    spread<T>(to: &mut [T], from: &[T], kernel: usize, phases: Phases) where to.len() == phases.len(); spread_body {
        for k in 0..kernel {
            for (to, &x) in to[phases.tap(k)..].iter_mut().zip(from) {
                *to += x;
            }
        }
    }
}

row! {
    /// As `slide_max`, and notes in `place` the column (plus `base`, wrapping) of what became the largest.
    slide_place<T>(best: &mut [T], place: &mut [u32], from: &[T], kernel: usize, phases: Phases, base: u32)
        where best.len() == place.len() && from.len() == phases.len(); slide_place_body {
        for k in 0..kernel {
            let seen = &from[phases.tap(k)..];
            for (i, ((best, place), &x)) in best.iter_mut().zip(place.iter_mut()).zip(seen).enumerate() {
                let wins = (x > *best) | (x.is_nan() & !best.is_nan());
                *best = if wins { x } else { *best };
                let column = base.wrapping_add((k + i * phases.step) as u32);
                *place = if wins { column } else { *place };
            }
        }
    }
}

/// Whether `x` takes the place of `best`: it is larger, or the first NaN.
#[inline(always)]
fn beats<T: Real>(x: T, best: T) -> bool {
    (x > best) | (x.is_nan() & !best.is_nan())
}

row! {
    /// Windows of two by two side by side: `to[i]` is the largest of columns `2 i` and `2 i + 1` of both rows, NaN winning.
    squares_max<T>(to: &mut [T], top: &[T], low: &[T])
        where top.len() == low.len() && to.len() <= top.len() / 2; squares_max_body {
        for ((to, a), b) in to.iter_mut().zip(top.chunks_exact(2)).zip(low.chunks_exact(2)) {
            *to = b[1].max_nan(b[0]).max_nan(a[1].max_nan(a[0]));
        }
    }
}

row! {
    /// The gradient of `squares_max`: `dy[i]` to the first of the largest of its window, 0 to the others.
    squares_place<T>(top_to: &mut [T], low_to: &mut [T], top: &[T], low: &[T], dy: &[T])
        where top.len() == low.len() && dy.len() <= top.len() / 2 && top_to.len() == top.len() && low_to.len() == top.len();
        squares_place_body {
        let to = top_to.chunks_exact_mut(2).zip(low_to.chunks_exact_mut(2));
        let from = top.chunks_exact(2).zip(low.chunks_exact(2));
        for (((top_to, low_to), (a, b)), &dy) in to.zip(from).zip(dy) {
            let second = beats(a[1], a[0]);
            let best = if second { a[1] } else { a[0] };
            let third = beats(b[0], best);
            let best = if third { b[0] } else { best };
            let fourth = beats(b[1], best);
            let chosen = |wins: bool| if wins { dy } else { T::ZERO };
            top_to[0] = chosen(!second & !third & !fourth);
            top_to[1] = chosen(second & !third & !fourth);
            low_to[0] = chosen(third & !fourth);
            low_to[1] = chosen(fourth);
        }
    }
}
