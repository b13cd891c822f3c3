//! The global stream of random numbers and the samplers that draw from it.
//!
//! Numbers are a function of (seed, counter): a call reserves its counter blocks when it is made, so what it draws depends neither on
//! threads nor on when it runs. `draw.rs` has the kernels, which fill arrays for numeric parameters; the distributions users see are made
//! of those: a parameter that is an array scales and shifts a standard sample, which makes its gradient the usual one.

mod continuous;
mod discrete;
mod draw;
mod order;
mod parameter;
mod transformed;

use std::sync::atomic::{AtomicU64, Ordering};

pub use continuous::*;
pub use discrete::*;
pub(crate) use draw::sample;
pub use draw::*;
pub use order::*;
pub use transformed::*;

use crate::cx::RngState;
use crate::opdef::OpDef;

pub(crate) static OPS: &[&OpDef] = &[
    &RANDOM_FILL,
    &RANDOM_INTEGERS,
    &RANDOM_INTEGERS_BETWEEN,
    &RANDOM_REJECTING,
    &RANDOM_BINOMIAL,
    &RANDOM_CATEGORICAL,
    &RANDOM_ORDER,
    &RANDOM_REORDERED,
    &COUNT_ROWS,
    &UNIFORM,
    &RANDOM,
    &RANDOM_SAMPLE,
    &RAND,
    &NORMAL,
    &RANDN,
    &STANDARD_NORMAL,
    &EXPONENTIAL,
    &STANDARD_EXPONENTIAL,
    &GUMBEL,
    &LAPLACE,
    &LOGISTIC,
    &STANDARD_CAUCHY,
    &GAMMA,
    &STANDARD_GAMMA,
    &CHISQUARE,
    &BETA,
    &F,
    &LOGNORMAL,
    &RAYLEIGH,
    &WEIBULL,
    &PARETO,
    &POWER_DISTRIBUTION,
    &STANDARD_T,
    &TRIANGULAR,
    &WALD,
    &DIRICHLET,
    &NONCENTRAL_CHISQUARE,
    &NONCENTRAL_F,
    &RANDINT,
    &POISSON,
    &BINOMIAL,
    &GEOMETRIC,
    &NEGATIVE_BINOMIAL,
    &BERNOULLI,
    &MULTINOMIAL,
    &CATEGORICAL,
    &PERMUTATION,
    &CHOICE,
];

static SEED: AtomicU64 = AtomicU64::new(0);
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Starts the stream anew.
pub fn seed(seed: u64) {
    set_state(RngState { seed, offset: 0 });
}

/// Where the stream is: the next call draws from here.
pub fn state() -> RngState {
    RngState {
        seed: SEED.load(Ordering::Relaxed),
        offset: NEXT.load(Ordering::Relaxed),
    }
}

/// Goes on from `state`.
pub fn set_state(state: RngState) {
    SEED.store(state.seed, Ordering::Relaxed);
    NEXT.store(state.offset, Ordering::Relaxed);
}

/// Takes `blocks` counter blocks off the stream.
pub fn reserve(blocks: u64) -> RngState {
    let offset = NEXT.fetch_add(blocks, Ordering::Relaxed);
    RngState {
        seed: SEED.load(Ordering::Relaxed),
        offset,
    }
}
