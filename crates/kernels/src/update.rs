//! Fused optimizer updates: one step of many weights at once, over flat, contiguous buffers.
//!
//! Every rule uses the gradient `g = clip(rescale * gradient)`. All rules except AdamW, whose decay is decoupled, then add `decay * weight`.

use std::mem::MaybeUninit;

use crate::cast::Cast;
use crate::reduce::by_isa;
use crate::threads::split;
use crate::{Elem, Threads};

/// Update rule for a weight `w` and its states, given the gradient `g`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// `w -= rate * g`. No state.
    Sgd,
    /// `m = momentum * m - rate * g; w += m`. One state.
    Momentum {
        /// Factor of the previous step.
        momentum: f64,
    },
    /// Nesterov: `m = momentum * m - rate * g; w += momentum * m - rate * g`. One state.
    Nag {
        /// Factor of the previous step.
        momentum: f64,
    },
    /// `m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; w -= rate * c * m / (sqrt(v) + epsilon)`. Two states.
    /// The bias correction `c` is in [`Step::rate`]. Source: Kingma and Ba, 2015, section 2.
    Adam {
        /// Decay rate of the mean.
        beta1: f64,
        /// Decay rate of the mean square.
        beta2: f64,
        /// Added to the divisor, so that it is not zero.
        epsilon: f64,
    },
    /// Adam without decay in `g`, and `w -= rate * c * m / (sqrt(v) + epsilon) + decay * w`. Two states.
    /// Source: Loshchilov and Hutter, 2019, algorithm 2.
    AdamW {
        /// Decay rate of the mean.
        beta1: f64,
        /// Decay rate of the mean square.
        beta2: f64,
        /// Added to the divisor, so that it is not zero.
        epsilon: f64,
    },
    /// `v = rho v + (1 - rho) g^2; w -= rate * g / (sqrt(v) + epsilon)`. One state.
    RmsProp {
        /// Decay rate of the mean square.
        rho: f64,
        /// Added to the divisor, so that it is not zero.
        epsilon: f64,
    },
    /// `v` as in RMSProp; `a = rho a + (1 - rho) g; m = momentum * m - rate * g / sqrt(v - a^2 + epsilon); w += m`.
    /// Three states: `v`, `a`, `m`. Source: Graves, 2013, equations 38 to 45.
    RmsPropCentered {
        /// Decay rate of both means.
        rho: f64,
        /// Factor of the previous step.
        momentum: f64,
        /// Added to the divisor, so that it is not zero.
        epsilon: f64,
    },
    /// `v += g^2; w -= rate * g / (sqrt(v) + epsilon)`. One state.
    AdaGrad {
        /// Added to the divisor, so that it is not zero.
        epsilon: f64,
    },
}

/// Maximum number of states of a rule.
pub const MAX_STATES: usize = 3;

impl Rule {
    /// Number of states.
    pub const fn num_states(self) -> usize {
        match self {
            Rule::Sgd => 0,
            Rule::Momentum { .. }
            | Rule::Nag { .. }
            | Rule::RmsProp { .. }
            | Rule::AdaGrad { .. } => 1,
            Rule::Adam { .. } | Rule::AdamW { .. } => 2,
            Rule::RmsPropCentered { .. } => 3,
        }
    }

    /// Factor of the rate at update `count`, counted from 1, that corrects the bias of both means towards their initial value 0:
    /// `sqrt(1 - beta2^count) / (1 - beta1^count)` for Adam and AdamW, 1 for all others.
    ///
    /// Source: Kingma and Ba, 2015, section 2.
    pub fn bias_correction(self, count: f64) -> f64 {
        match self {
            Rule::Adam { beta1, beta2, .. } | Rule::AdamW { beta1, beta2, .. } => {
                (1.0 - beta2.powf(count)).sqrt() / (1.0 - beta1.powf(count))
            }
            _ => 1.0,
        }
    }
}

/// The rule and the parameters for one weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The rule.
    pub rule: Rule,
    /// Learning rate, times the bias correction.
    pub rate: f64,
    /// Weight decay.
    pub decay: f64,
    /// Factor of the gradient.
    pub rescale: f64,
    /// The rescaled gradient is clipped to `-clip..=clip`, if given.
    pub clip: Option<f64>,
    /// The new weight is clipped to `-clip_weight..=clip_weight`, if given.
    pub clip_weight: Option<f64>,
}

/// Dense elements of type F16, BF16, F32 or F64.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    /// First element.
    pub ptr: *mut u8,
    /// Element type.
    pub elem: Elem,
}

/// One weight: its parameters and its buffers of `n` elements each.
#[derive(Clone, Copy, Debug)]
pub struct Weight {
    /// Rule and parameters.
    pub step: Step,
    /// Number of elements.
    pub n: usize,
    /// The weight, written, and read unless there is a `master`.
    pub weight: Buffer,
    /// F32 master copy of the weight, read and written; `weight` receives its rounded elements. Not with F64 weights.
    pub master: Option<Buffer>,
    /// The gradient, which is only read.
    pub grad: Buffer,
    /// The states of the rule, read and written; entries after [`Rule::num_states`] are not used.
    pub states: [Option<Buffer>; MAX_STATES],
}

/// Elements per tile; the buffers of a tile stay in L1.
const TILE: usize = 1024;

type Tile = MaybeUninit<[[u64; 8]; TILE / 8]>;

/// `(step, weights, gradients, states, n)`, all in the compute type.
type Row = unsafe fn(&Step, *mut u8, *const u8, [*mut u8; MAX_STATES], usize);

/// The weights of one update, shared by its tasks.
struct Work<'a>(&'a [Weight]);

// SAFETY: the pointers are used only by `update_tile`, on tiles that no two threads share (contract of `update`).
unsafe impl Sync for Work<'_> {}

impl Work<'_> {
    fn weight(&self, i: usize) -> &Weight {
        &self.0[i]
    }
}

/// Takes one optimizer step of every weight in place, in F64 for F64 weights and in F32 for all others.
///
/// Tiles of all weights are distributed to the threads: large weights are split, and small ones share a thread. Every element is computed
/// independently, so the result does not depend on the number of threads.
///
/// # Safety
/// All buffers have `n` elements and can be read and, except gradients, written. No written buffer overlaps any other.
pub unsafe fn update(threads: &dyn Threads, weights: &[Weight]) {
    let mut num_tiles = 0;
    let mut len = 0;
    // For each weight, the number of its last tile plus one.
    let ends: Vec<usize> = weights
        .iter()
        .map(|weight| {
            num_tiles += weight.n.div_ceil(TILE);
            len += weight.n;
            num_tiles
        })
        .collect();
    let work = Work(weights);
    split(threads, num_tiles, 4 * len, &|tile| {
        let i = ends.partition_point(|&end| end <= tile);
        let first = if i == 0 { 0 } else { ends[i - 1] };
        // SAFETY: the tile lies within weight `i`, and no two tasks have the same tile; otherwise the contract of `update`.
        unsafe { update_tile(work.weight(i), (tile - first) * TILE) };
    });
}

/// Updates at most [`TILE`] elements from `start` on.
///
/// # Safety
/// Same as for [`update`]; `start < weight.n`, and nobody else accesses this tile.
unsafe fn update_tile(weight: &Weight, start: usize) {
    let compute = weight.weight.elem.compute();
    debug_assert!(matches!(compute, Elem::F32 | Elem::F64) && start < weight.n);
    let row: Row = if compute == Elem::F64 {
        row::<f64>
    } else {
        row::<f32>
    };
    let count = TILE.min(weight.n - start);
    let mut tiles = [const { Tile::uninit() }; MAX_STATES + 2];
    let [weight_tile, grad_tile, state_tiles @ ..] = &mut tiles;
    let at = |buffer: Buffer| buffer.ptr.wrapping_add(start * buffer.elem.size());
    // The elements in the compute type: in place, or converted into `tile`.
    let load = |buffer: Buffer, tile: &mut Tile| -> *mut u8 {
        if buffer.elem == compute {
            return at(buffer);
        }
        let to = tile.as_mut_ptr().cast();
        // SAFETY: `count` elements from `start` on lie within the buffer, and `tile` has room for them.
        unsafe { Cast::new(buffer.elem, compute).row(at(buffer), to, count) };
        to
    };
    let store = |from: *mut u8, buffer: Buffer| {
        if from != at(buffer) {
            // SAFETY: as in `load`; `from` has `count` elements.
            unsafe { Cast::new(compute, buffer.elem).row(from, at(buffer), count) };
        }
    };
    let source = weight.master.unwrap_or(weight.weight);
    let w = load(source, weight_tile);
    let g = load(weight.grad, grad_tile);
    let mut states = [std::ptr::null_mut(); MAX_STATES];
    for ((to, state), tile) in states.iter_mut().zip(weight.states).zip(state_tiles) {
        if let Some(state) = state {
            *to = load(state, tile);
        }
    }
    // SAFETY: `count` elements of the compute type in buffers that do not overlap, with as many states as the rule has (contract of `update`).
    unsafe { row(&weight.step, w, g, states, count) };
    for (from, state) in states.into_iter().zip(weight.states) {
        if let Some(state) = state {
            store(from, state);
        }
    }
    store(w, source);
    if weight.master.is_some() {
        store(w, weight.weight);
    }
}

/// A float type in which steps are computed.
trait StepFloat:
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

    /// Clips to `-limit..=limit`; NaN stays NaN.
    #[inline(always)]
    fn clip(self, limit: Self) -> Self {
        let x = if self > limit { limit } else { self };
        if x < -limit { -limit } else { x }
    }
}

macro_rules! float {
    ($($t:ty),*) => { $(impl StepFloat for $t {
        #[inline(always)]
        fn of(x: f64) -> Self { x as $t }
        #[inline(always)]
        fn sqrt(self) -> Self { <$t>::sqrt(self) }
    })* };
}
float!(f32, f64);

by_isa! {
    unsafe fn row [T: StepFloat] [T] (step: &Step, w: *mut u8, g: *const u8, states: [*mut u8; MAX_STATES], n: usize) {
        let of = T::of;
        let (rate, rescale, limit) = (of(step.rate), of(step.rescale), of(step.clip.unwrap_or(f64::INFINITY)));
        let coupled = !matches!(step.rule, Rule::AdamW { .. });
        let decay = of(if coupled { step.decay } else { 0.0 });
        let num_states = step.rule.num_states();
        let state = |k: usize| {
            if k >= num_states {
                return &mut [][..];
            }
            // SAFETY: the caller gives `n` elements of every state of the rule, which do not overlap; each `k` is used once.
            unsafe { std::slice::from_raw_parts_mut(states[k].cast::<T>(), n) }
        };
        let (a, b, c) = (state(0), state(1), state(2));
        // SAFETY: the caller gives `n` weights and gradients, which overlap neither each other nor the states.
        let (w, g) = unsafe {
            (
                std::slice::from_raw_parts_mut(w.cast::<T>(), n),
                std::slice::from_raw_parts(g.cast::<T>(), n),
            )
        };
        let gradient = |w: T, g: T| (rescale * g).clip(limit) + decay * w;
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
            Rule::Adam { beta1, beta2, epsilon } | Rule::AdamW { beta1, beta2, epsilon } => {
                let (beta1, rest1, beta2, rest2, epsilon) = (of(beta1), of(1.0 - beta1), of(beta2), of(1.0 - beta2), of(epsilon));
                let decoupled = of(if coupled { 0.0 } else { step.decay });
                for (((w, &g), m), v) in w.iter_mut().zip(g).zip(a).zip(b) {
                    let g = gradient(*w, g);
                    *m = beta1 * *m + rest1 * g;
                    *v = beta2 * *v + rest2 * g * g;
                    *w = *w - (rate * *m / (v.sqrt() + epsilon) + decoupled * *w);
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
            Rule::RmsPropCentered { rho, momentum, epsilon } => {
                let (rho, rest, momentum, epsilon) = (of(rho), of(1.0 - rho), of(momentum), of(epsilon));
                for ((((w, &g), v), a), m) in w.iter_mut().zip(g).zip(a).zip(b).zip(c) {
                    let g = gradient(*w, g);
                    *v = rho * *v + rest * g * g;
                    *a = rho * *a + rest * g;
                    *m = momentum * *m - rate * g / (*v - *a * *a + epsilon).sqrt();
                    *w = *w + *m;
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
        if let Some(limit) = step.clip_weight {
            let limit = of(limit);
            w.iter_mut().for_each(|w| *w = w.clip(limit));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduce::fixtures::{Noise, get, put};
    use crate::threads::Scoped;

    /// One step of one element, directly from the formulas.
    fn reference(step: &Step, w: &mut f64, g: f64, states: &mut [f64; MAX_STATES]) {
        let mut g = step.rescale * g;
        if let Some(c) = step.clip {
            g = g.clamp(-c, c);
        }
        if !matches!(step.rule, Rule::AdamW { .. }) {
            g += step.decay * *w;
        }
        let [a, b, c] = states;
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
            } => {
                *a = beta1 * *a + (1.0 - beta1) * g;
                *b = beta2 * *b + (1.0 - beta2) * g * g;
                *w -= step.rate * *a / (b.sqrt() + epsilon) + step.decay * *w;
            }
            Rule::RmsProp { rho, epsilon } => {
                *a = rho * *a + (1.0 - rho) * g * g;
                *w -= step.rate * g / (a.sqrt() + epsilon);
            }
            Rule::RmsPropCentered {
                rho,
                momentum,
                epsilon,
            } => {
                *a = rho * *a + (1.0 - rho) * g * g;
                *b = rho * *b + (1.0 - rho) * g;
                *c = momentum * *c - step.rate * g / (*a - *b * *b + epsilon).sqrt();
                *w += *c;
            }
            Rule::AdaGrad { epsilon } => {
                *a += g * g;
                *w -= step.rate * g / (a.sqrt() + epsilon);
            }
        }
        if let Some(limit) = step.clip_weight {
            *w = w.clamp(-limit, limit);
        }
    }

    const RULES: [Rule; 8] = [
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
        },
        Rule::RmsProp {
            rho: 0.9,
            epsilon: 1e-3,
        },
        // The squared mean is at most 1, so the argument of the square root stays positive.
        Rule::RmsPropCentered {
            rho: 0.9,
            momentum: 0.9,
            epsilon: 2.0,
        },
        Rule::AdaGrad { epsilon: 1e-3 },
    ];

    /// One weight of a test with its own memory.
    struct Owned {
        step: Step,
        n: usize,
        weight: (Elem, Vec<u8>),
        master: Option<Vec<u8>>,
        grad: (Elem, Vec<u8>),
        states: Vec<(Elem, Vec<u8>)>,
    }

    impl Owned {
        fn new(
            noise: &mut Noise,
            rule: Rule,
            n: usize,
            elems: [Elem; 3],
            has_master: bool,
        ) -> Owned {
            let mut bytes = |elem: Elem, positive: bool| {
                let mut bytes = vec![0u8; n * elem.size()];
                for element in bytes.chunks_exact_mut(elem.size()) {
                    let v = noise.unit();
                    put(elem, element, (if positive { v.abs() } else { v }, 0.0));
                }
                bytes
            };
            let [weight, grad, state] = elems;
            let master = has_master.then(|| bytes(Elem::F32, false));
            let (weight, grad) = ((weight, bytes(weight, false)), (grad, bytes(grad, false)));
            let states = (0..rule.num_states()).map(|_| (state, bytes(state, true)));
            let states = states.collect();
            let mut option = |x: f64| (noise.below(2) == 0).then_some(x);
            let step = Step {
                rule,
                rate: 0.1,
                decay: 0.01,
                rescale: 0.5,
                clip: option(0.4),
                clip_weight: option(0.8),
            };
            Owned {
                step,
                n,
                weight,
                master,
                grad,
                states,
            }
        }

        fn buffers(&mut self) -> Weight {
            let buffer = |(elem, bytes): &mut (Elem, Vec<u8>)| Buffer {
                ptr: bytes.as_mut_ptr(),
                elem: *elem,
            };
            let mut states = [None; MAX_STATES];
            for (to, state) in states.iter_mut().zip(&mut self.states) {
                *to = Some(buffer(state));
            }
            Weight {
                step: self.step,
                n: self.n,
                weight: buffer(&mut self.weight),
                master: self.master.as_mut().map(|bytes| Buffer {
                    ptr: bytes.as_mut_ptr(),
                    elem: Elem::F32,
                }),
                grad: buffer(&mut self.grad),
                states,
            }
        }

        /// Weights, or their master copies, and states, in F64.
        fn values(&self) -> Vec<Vec<f64>> {
            let read = |elem: Elem, bytes: &[u8]| -> Vec<f64> {
                let elements = bytes.chunks_exact(elem.size());
                elements.map(|element| get(elem, element).0).collect()
            };
            let weight = match &self.master {
                Some(master) => read(Elem::F32, master),
                None => read(self.weight.0, &self.weight.1),
            };
            let states = self.states.iter().map(|(elem, bytes)| read(*elem, bytes));
            [weight].into_iter().chain(states).collect()
        }

        /// The values that are expected after the step.
        fn expected(&self) -> Vec<Vec<f64>> {
            let mut values = self.values();
            for i in 0..self.n {
                let size = self.grad.0.size();
                let g = get(self.grad.0, &self.grad.1[i * size..(i + 1) * size]).0;
                let mut states = [0.0; MAX_STATES];
                for (to, column) in states.iter_mut().zip(&values[1..]) {
                    *to = column[i];
                }
                let mut w = values[0][i];
                reference(&self.step, &mut w, g, &mut states);
                values[0][i] = w;
                for (from, column) in states.iter().zip(&mut values[1..]) {
                    column[i] = *from;
                }
            }
            values
        }
    }

    /// Relative tolerance for values above 1: several roundings in the compute type, and one in the stored type.
    fn tolerance(compute: Elem, stored: Elem) -> f64 {
        let computed = 2f64.powi(if compute == Elem::F64 { -48 } else { -19 });
        computed
            + match stored {
                Elem::F16 => 2f64.powi(-10),
                Elem::BF16 => 2f64.powi(-7),
                _ => 0.0,
            }
    }

    fn all(noise: &mut Noise) -> Vec<Owned> {
        let types = [
            ([Elem::F32, Elem::F32, Elem::F32], false),
            ([Elem::F64, Elem::F64, Elem::F64], false),
            ([Elem::F16, Elem::F16, Elem::F32], false),
            ([Elem::F16, Elem::F16, Elem::F16], false),
            ([Elem::BF16, Elem::BF16, Elem::F32], true),
            ([Elem::F32, Elem::F16, Elem::F64], false),
        ];
        let mut weights = Vec::new();
        for n in [0, 1, 5, 1024, 20_000] {
            for rule in RULES {
                for (elems, has_master) in types {
                    weights.push(Owned::new(noise, rule, n, elems, has_master));
                }
            }
        }
        weights
    }

    #[test]
    fn one_call_updates_weights_of_all_rules_types_and_sizes() {
        let mut weights = all(&mut Noise(51));
        let expected: Vec<_> = weights.iter().map(Owned::expected).collect();
        let buffers: Vec<Weight> = weights.iter_mut().map(Owned::buffers).collect();
        // SAFETY: all buffers have `n` elements of their types and do not overlap.
        unsafe { update(&Scoped(2), &buffers) };
        for (weight, expected) in weights.iter().zip(&expected) {
            let compute = weight.weight.0.compute();
            for (k, (got, want)) in weight.values().iter().zip(expected).enumerate() {
                let stored = match (k, &weight.master) {
                    (0, Some(_)) => compute,
                    (0, None) => weight.weight.0,
                    _ => weight.states[k - 1].0,
                };
                let limit = tolerance(compute, stored);
                for (got, want) in got.iter().zip(want) {
                    let step = &weight.step;
                    assert!(
                        (got - want).abs() <= limit * want.abs().max(1.0),
                        "{step:?} {:?}, array {k}: {got}, not {want}",
                        weight.weight.0
                    );
                }
            }
            if let Some(master) = &weight.master {
                let (elem, bytes) = &weight.weight;
                let wide = master.chunks_exact(4).map(|x| get(Elem::F32, x).0);
                for (narrow, wide) in bytes.chunks_exact(elem.size()).zip(wide) {
                    let limit = tolerance(compute, *elem) * wide.abs().max(1.0);
                    assert!((get(*elem, narrow).0 - wide).abs() <= limit);
                }
            }
        }
    }

    #[test]
    fn the_number_of_threads_does_not_change_a_bit() {
        let [one, four] = [1, 4].map(|threads| {
            let mut weights = all(&mut Noise(52));
            let buffers: Vec<Weight> = weights.iter_mut().map(Owned::buffers).collect();
            // SAFETY: all buffers have `n` elements of their types and do not overlap.
            unsafe { update(&Scoped(threads), &buffers) };
            weights
        });
        for (one, four) in one.iter().zip(&four) {
            assert!(
                one.weight == four.weight && one.master == four.master && one.states == four.states
            );
        }
    }

    #[test]
    fn bias_correction_of_the_first_update_undoes_the_decays() {
        let rule = RULES[3];
        // sqrt(1 - 0.99) / (1 - 0.9)
        assert!((rule.bias_correction(1.0) - 1.0).abs() < 1e-14);
        assert!((rule.bias_correction(1e6) - 1.0).abs() < 1e-14);
        assert_eq!(Rule::Sgd.bias_correction(1.0).to_bits(), 1f64.to_bits());
    }
}
