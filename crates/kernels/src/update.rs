//! Fused optimiser steps over flat, contiguous buffers.
//!
//! Every rule reads the gradient as `g = clip(rescale * gradient)`, and (but for AdamW, whose decay is apart) adds `decay * weight`.

use std::mem::MaybeUninit;

use crate::reduce::by_isa;
use crate::reduce::kernel::{load_of, store_of};
use crate::reduce::plan::split;
use crate::{Elem, Threads};

/// How a weight `w` and its states follow a gradient `g`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// `w -= rate * g`. No state.
    Sgd,
    /// `m = momentum * m - rate * g; w += m`. One state.
    Momentum {
        /// Share of the last step that is kept.
        momentum: f64,
    },
    /// Nesterov: `m = momentum * m - rate * g; w += momentum * m - rate * g`. One state.
    Nag {
        /// Share of the last step that is kept.
        momentum: f64,
    },
    /// `m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; w -= rate * m / (sqrt(v) + epsilon)`. Two states.
    /// The caller puts the bias correction into `rate`. Source: Kingma and Ba, 2015, section 2.
    Adam {
        /// Decay of the mean.
        beta1: f64,
        /// Decay of the squares' mean.
        beta2: f64,
        /// Keeps the divisor from zero.
        epsilon: f64,
    },
    /// As Adam without decay in `g`, and `w -= eta * (rate * m / (sqrt(v) + epsilon) + decay * w)`. Two states.
    /// Source: Loshchilov and Hutter, 2019, algorithm 2.
    AdamW {
        /// Decay of the mean.
        beta1: f64,
        /// Decay of the squares' mean.
        beta2: f64,
        /// Keeps the divisor from zero.
        epsilon: f64,
        /// Multiplies step and decay.
        eta: f64,
    },
    /// `v = rho v + (1 - rho) g^2; w -= rate * g / (sqrt(v) + epsilon)`. One state.
    RmsProp {
        /// Decay of the squares' mean.
        rho: f64,
        /// Keeps the divisor from zero.
        epsilon: f64,
    },
    /// `v += g^2; w -= rate * g / (sqrt(v) + epsilon)`. One state.
    AdaGrad {
        /// Keeps the divisor from zero.
        epsilon: f64,
    },
}

impl Rule {
    /// Number of state buffers.
    pub const fn states(self) -> usize {
        match self {
            Rule::Sgd => 0,
            Rule::Momentum { .. }
            | Rule::Nag { .. }
            | Rule::RmsProp { .. }
            | Rule::AdaGrad { .. } => 1,
            Rule::Adam { .. } | Rule::AdamW { .. } => 2,
        }
    }
}

/// What all rules share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The rule.
    pub rule: Rule,
    /// Learning rate, bias correction included.
    pub rate: f64,
    /// Weight decay.
    pub decay: f64,
    /// Multiplies the gradient first.
    pub rescale: f64,
    /// Then the gradient is cut to `-clip..=clip`, if given.
    pub clip: Option<f64>,
}

/// The buffers of one parameter, `n` elements each, apart from each other.
#[derive(Clone, Copy, Debug)]
pub struct Buffers {
    /// Number of elements.
    pub n: usize,
    /// Weights, read (without `master`) and written.
    pub weight: *mut u8,
    /// Their type: F16, BF16, F32 or F64.
    pub weight_elem: Elem,
    /// F32 weights of which `weight` holds the rounded copy, or null. Not with F64.
    pub master: *mut u8,
    /// Gradients.
    pub gradient: *const u8,
    /// Their type: F16, BF16, F32 or F64.
    pub gradient_elem: Elem,
    /// States, as many as the rule has: F64 for F64 weights, else F32. The others are null.
    pub states: [*mut u8; 2],
}

/// Elements handled at once; four rows of them stay in the first-level cache.
const TILE: usize = 1024;

type Tile = MaybeUninit<[[u64; 8]; TILE / 8]>;

/// `(step, weights, gradients, state, state, n)`, all of the type that computes.
type Row = unsafe fn(&Step, *mut u8, *const u8, *mut u8, *mut u8, usize);

/// Takes one optimiser step in place, in F64 for F64 weights and in F32 for all others.
///
/// # Safety
/// All buffers that `rule` and types call for have `n` elements, can be read and (but for the gradient) written, and do not overlap.
pub unsafe fn update(threads: &dyn Threads, step: &Step, buffers: &Buffers) {
    let compute = buffers.weight_elem.compute();
    debug_assert!(matches!(compute, Elem::F32 | Elem::F64));
    debug_assert!(buffers.master.is_null() || compute == Elem::F32);
    let row: Row = if compute == Elem::F64 {
        row::<f64>
    } else {
        row::<f32>
    };
    let mastered = !buffers.master.is_null();
    let source_elem = if mastered {
        compute
    } else {
        buffers.weight_elem
    };
    let load_gradient = load_of(buffers.gradient_elem, compute);
    let load_weight = load_of(source_elem, compute);
    let store = store_of(compute, buffers.weight_elem).expect("F32 and F64 convert to all");
    let (in_place, direct) = (source_elem == compute, buffers.gradient_elem == compute);
    let size = compute.size();
    let n = buffers.n;
    let [weight, master, gradient, first, second] = [
        buffers.weight,
        buffers.master,
        buffers.gradient.cast_mut(),
        buffers.states[0],
        buffers.states[1],
    ]
    .map(|p| p as usize);
    let (weight_size, gradient_size) = (buffers.weight_elem.size(), buffers.gradient_elem.size());
    split(threads, n.div_ceil(TILE), 4 * n, &|tile| {
        let start = tile * TILE;
        let count = TILE.min(n - start);
        let at = |base: usize, size: usize| (base as *mut u8).wrapping_add(start * size);
        let (mut weights, mut gradients) = (Tile::uninit(), Tile::uninit());
        let own = if mastered {
            at(master, size)
        } else {
            at(weight, weight_size)
        };
        // SAFETY: tile `tile` of every buffer is inside it, and tasks have tiles apart.
        unsafe {
            let mut w = own;
            if !in_place {
                w = weights.as_mut_ptr().cast();
                load_weight(own, weight_size as isize, count, w);
            }
            let mut g = at(gradient, gradient_size);
            if !direct {
                let to = gradients.as_mut_ptr().cast();
                load_gradient(g, gradient_size as isize, count, to);
                g = to;
            }
            row(step, w, g, at(first, size), at(second, size), count);
            if !in_place || mastered {
                store(w, at(weight, weight_size), weight_size as isize, count);
            }
        }
    });
}

/// A float that steps are taken in.
trait Float:
    Copy
    + PartialOrd
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Div<Output = Self>
    + std::ops::Neg<Output = Self>
{
    fn of(x: f64) -> Self;
    fn sqrt(self) -> Self;
}

macro_rules! float {
    ($($t:ty),*) => { $(impl Float for $t {
        #[inline(always)]
        fn of(x: f64) -> Self { x as $t }
        #[inline(always)]
        fn sqrt(self) -> Self { <$t>::sqrt(self) }
    })* };
}
float!(f32, f64);

by_isa! {
    unsafe fn row [T: Float] [T] (step: &Step, w: *mut u8, g: *const u8, a: *mut u8, b: *mut u8, n: usize) {
        let of = T::of;
        let (rate, rescale, limit) = (of(step.rate), of(step.rescale), of(step.clip.unwrap_or(f64::INFINITY)));
        let coupled = !matches!(step.rule, Rule::AdamW { .. });
        let decay = of(if coupled { step.decay } else { 0.0 });
        let used = |p: *mut u8, k: usize| if step.rule.states() > k { (p.cast::<T>(), n) } else { (std::ptr::NonNull::dangling().as_ptr(), 0) };
        let ((a, a_len), (b, b_len)) = (used(a, 0), used(b, 1));
        // SAFETY: the caller gives `n` weights, gradients and states, as many as the rule uses, apart from each other.
        let (w, g, a, b) = unsafe {
            (
                std::slice::from_raw_parts_mut(w.cast::<T>(), n),
                std::slice::from_raw_parts(g.cast::<T>(), n),
                std::slice::from_raw_parts_mut(a, a_len),
                std::slice::from_raw_parts_mut(b, b_len),
            )
        };
        // NaN stays NaN.
        let gradient = |w: T, g: T| {
            let g = rescale * g;
            let g = if g > limit { limit } else { g };
            (if g < -limit { -limit } else { g }) + decay * w
        };
        match step.rule {
            Rule::Sgd => w.iter_mut().zip(g).for_each(|(w, &g)| *w = *w - rate * gradient(*w, g)),
            Rule::Momentum { momentum } => {
                let momentum = of(momentum);
                for ((w, &g), m) in w.iter_mut().zip(g).zip(a) {
                    *m = momentum * *m - rate * gradient(*w, g);
                    *w = *w + *m;
                }
            }
            Rule::Nag { momentum } => {
                let momentum = of(momentum);
                for ((w, &g), m) in w.iter_mut().zip(g).zip(a) {
                    let s = rate * gradient(*w, g);
                    *m = momentum * *m - s;
                    *w = *w + (momentum * *m - s);
                }
            }
            Rule::Adam { beta1, beta2, epsilon } | Rule::AdamW { beta1, beta2, epsilon, .. } => {
                let (beta1, rest1, beta2, rest2, epsilon) = (of(beta1), of(1.0 - beta1), of(beta2), of(1.0 - beta2), of(epsilon));
                let (eta, apart) = match step.rule {
                    Rule::AdamW { eta, .. } => (of(eta), of(step.decay)),
                    _ => (of(1.0), of(0.0)),
                };
                for (((w, &g), m), v) in w.iter_mut().zip(g).zip(a).zip(b) {
                    let g = gradient(*w, g);
                    *m = beta1 * *m + rest1 * g;
                    *v = beta2 * *v + rest2 * g * g;
                    *w = *w - eta * (rate * *m / (v.sqrt() + epsilon) + apart * *w);
                }
            }
            Rule::RmsProp { rho, epsilon } => {
                let (rho, rest, epsilon) = (of(rho), of(1.0 - rho), of(epsilon));
                for ((w, &g), v) in w.iter_mut().zip(g).zip(a) {
                    let g = gradient(*w, g);
                    *v = rho * *v + rest * g * g;
                    *w = *w - rate * g / (v.sqrt() + epsilon);
                }
            }
            Rule::AdaGrad { epsilon } => {
                let epsilon = of(epsilon);
                for ((w, &g), v) in w.iter_mut().zip(g).zip(a) {
                    let g = gradient(*w, g);
                    *v = *v + g * g;
                    *w = *w - rate * g / (v.sqrt() + epsilon);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduce::fixtures::{Noise, Spawn, get, put};

    /// One step of one weight, straight from the formulas.
    fn slow(step: &Step, w: &mut f64, g: f64, a: &mut f64, b: &mut f64) {
        let mut g = step.rescale * g;
        if let Some(c) = step.clip {
            g = g.clamp(-c, c);
        }
        if !matches!(step.rule, Rule::AdamW { .. }) {
            g += step.decay * *w;
        }
        match step.rule {
            Rule::Sgd => *w -= step.rate * g,
            Rule::Momentum { momentum } => {
                *a = momentum * *a - step.rate * g;
                *w += *a;
            }
            Rule::Nag { momentum } => {
                *a = momentum * *a - step.rate * g;
                *w += momentum * *a - step.rate * g;
            }
            Rule::Adam {
                beta1,
                beta2,
                epsilon,
            } => {
                *a = beta1 * *a + (1.0 - beta1) * g;
                *b = beta2 * *b + (1.0 - beta2) * g * g;
                *w -= step.rate * *a / (b.sqrt() + epsilon);
            }
            Rule::AdamW {
                beta1,
                beta2,
                epsilon,
                eta,
            } => {
                *a = beta1 * *a + (1.0 - beta1) * g;
                *b = beta2 * *b + (1.0 - beta2) * g * g;
                *w -= eta * (step.rate * *a / (b.sqrt() + epsilon) + step.decay * *w);
            }
            Rule::RmsProp { rho, epsilon } => {
                *a = rho * *a + (1.0 - rho) * g * g;
                *w -= step.rate * g / (a.sqrt() + epsilon);
            }
            Rule::AdaGrad { epsilon } => {
                *a += g * g;
                *w -= step.rate * g / (a.sqrt() + epsilon);
            }
        }
    }

    #[test]
    fn steps_agree_with_their_formulas() {
        let rules = [
            Rule::Sgd,
            Rule::Momentum { momentum: 0.9 },
            Rule::Nag { momentum: 0.9 },
            Rule::Adam {
                beta1: 0.9,
                beta2: 0.99,
                epsilon: 1e-3,
            },
            Rule::AdamW {
                beta1: 0.9,
                beta2: 0.99,
                epsilon: 1e-3,
                eta: 0.7,
            },
            Rule::RmsProp {
                rho: 0.9,
                epsilon: 1e-3,
            },
            Rule::AdaGrad { epsilon: 1e-3 },
        ];
        let mut noise = Noise(51);
        for n in [0, 1, 5, 20_000] {
            for rule in rules {
                for (elem, master, gradient_elem) in [
                    (Elem::F32, false, Elem::F32),
                    (Elem::F64, false, Elem::F64),
                    (Elem::F16, false, Elem::F16),
                    (Elem::BF16, true, Elem::BF16),
                    (Elem::F32, false, Elem::F16),
                ] {
                    let clip = (noise.below(2) == 0).then_some(0.4);
                    let step = Step {
                        rule,
                        rate: 0.1,
                        decay: 0.01,
                        rescale: 0.5,
                        clip,
                    };
                    let compute = elem.compute();
                    let mut make = |e: Elem, positive: bool| {
                        let mut bytes = vec![0u8; n * e.size()];
                        for c in bytes.chunks_exact_mut(e.size()) {
                            let v = noise.unit();
                            put(e, c, (if positive { v.abs() } else { v }, 0.0));
                        }
                        bytes
                    };
                    let (mut w, mut m, g) = (
                        make(elem, false),
                        make(compute, false),
                        make(gradient_elem, false),
                    );
                    let (mut a, mut b) = (make(compute, true), make(compute, true));
                    let read = |x: &[u8], e: Elem| -> Vec<f64> {
                        x.chunks_exact(e.size()).map(|c| get(e, c).0).collect()
                    };
                    let mut want = if master {
                        read(&m, compute)
                    } else {
                        read(&w, elem)
                    };
                    let (mut want_a, mut want_b, gradients) = (
                        read(&a, compute),
                        read(&b, compute),
                        read(&g, gradient_elem),
                    );
                    for i in 0..n {
                        slow(
                            &step,
                            &mut want[i],
                            gradients[i],
                            &mut want_a[i],
                            &mut want_b[i],
                        );
                    }
                    let buffers = Buffers {
                        n,
                        weight: w.as_mut_ptr(),
                        weight_elem: elem,
                        master: if master {
                            m.as_mut_ptr()
                        } else {
                            std::ptr::null_mut()
                        },
                        gradient: g.as_ptr(),
                        gradient_elem,
                        states: [a.as_mut_ptr(), b.as_mut_ptr()],
                    };
                    // SAFETY: all buffers have `n` elements of their types.
                    unsafe { update(&Spawn(2), &step, &buffers) };
                    // Values below 2 after a handful of roundings; stored weights have one more.
                    let eps = if compute == Elem::F64 {
                        2f64.powi(-48)
                    } else {
                        2f64.powi(-19)
                    };
                    let stored = match elem {
                        Elem::F16 => 2f64.powi(-10),
                        Elem::BF16 => 2f64.powi(-7),
                        _ => 0.0,
                    };
                    let check = |what: &str, got: Vec<f64>, want: &[f64], tolerance: f64| {
                        for (got, want) in got.iter().zip(want) {
                            assert!(
                                (got - want).abs() <= tolerance,
                                "{rule:?} {elem:?} {what}: {got}, not {want}"
                            );
                        }
                    };
                    check("weight", read(&w, elem), &want, eps + stored);
                    if master {
                        check("master", read(&m, compute), &want, eps);
                    }
                    if rule.states() > 0 {
                        check("first state", read(&a, compute), &want_a, eps);
                    }
                    if rule.states() > 1 {
                        check("second state", read(&b, compute), &want_b, eps);
                    }
                }
            }
        }
    }
}
