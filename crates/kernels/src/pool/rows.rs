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
