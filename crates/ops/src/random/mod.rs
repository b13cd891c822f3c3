//! The global random stream, and the samplers that draw from it.
//!
//! Random numbers are a function of (seed, counter). A call reserves its counter blocks when it is made, so its samples depend neither on the
//! number of threads nor on when it runs. The kernels are in `draw.rs`, `reject.rs` and `choice.rs`; the public distributions are composed of
//! them. An array parameter scales or shifts a standard sample, so that its gradient follows from the operators (reparameterisation).
//! `parameter.rs` reads the parameters and determines shape, dtype and device of the samples.

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
