//! The global stream of random numbers and the samplers that draw from it.
//!
//! Numbers are a function of (seed, counter): a call reserves its counter blocks when it is made, so what it draws depends neither on
//! threads nor on when it runs. `draw.rs`, `reject.rs` and `choice.rs` have the kernels; the distributions users see are made of those: a parameter
//! that is an array scales and shifts a standard sample, which makes its gradient the usual one. `parameter.rs` has the parameters and
//! the samples that they are written in.

mod choice;
mod continuous;
mod discrete;
mod draw;
mod order;
mod parameter;
mod reject;
mod transformed;
mod wald;

pub use choice::*;
pub use continuous::*;
pub use discrete::*;
pub use draw::*;
pub use mxnet_core::rng::{Generator, reserve, seed, set_state, state, with_generator};
pub use order::*;
pub(crate) use parameter::Samples;
pub use reject::*;
pub use transformed::*;
pub use wald::*;

use crate::opdef::OpDef;

pub(crate) static OPS: &[&OpDef] = &[
    &RANDOM_FILL,
    &RANDOM_INTEGERS,
    &RANDOM_INTEGERS_BETWEEN,
    &RANDOM_GAMMA,
    &GAMMA_SLOPE,
    &RANDOM_COUNTS,
    &RANDOM_ANGLES,
    &RANDOM_CATEGORICAL,
    &RANDOM_DIFFERENT,
    &RANDOM_ORDER,
    &RANDOM_REORDERED,
    &RANDOM_MULTIVARIATE_HYPERGEOMETRIC,
    &CHECKED_PARAMETER,
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
    &WALD_PATH,
    &DIRICHLET,
    &NONCENTRAL_CHISQUARE,
    &NONCENTRAL_F,
    &VONMISES,
    &RANDINT,
    &INTEGERS,
    &POISSON,
    &BINOMIAL,
    &GEOMETRIC,
    &NEGATIVE_BINOMIAL,
    &HYPERGEOMETRIC,
    &ZIPF,
    &LOGSERIES,
    &BERNOULLI,
    &MULTINOMIAL,
    &MULTIVARIATE_HYPERGEOMETRIC,
    &CATEGORICAL,
    &RANDOM_PERMUTED,
    &PERMUTATION,
    &CHOICE,
    &CHOOSE,
];
