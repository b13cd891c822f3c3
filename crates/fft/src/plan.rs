//! Plans of transforms, cached per type, length and kind.

use std::sync::{Arc, Mutex, PoisonError};

use rustfft::num_complex::Complex;
use rustfft::{Fft, FftDirection, FftNum, FftPlanner};

use super::real::RealPlan;
use super::three::Three;
use super::{Direction, Spectrum};
use mxnet_kernels::real::Real;
use mxnet_kernels::scratch;

/// How a transform of one length is computed.
pub(super) enum Plan<T: Sample> {
    Complex(Arc<dyn Fft<T>>),
    ToHalf(RealPlan<T>),
    ToReal(RealPlan<T>),
}

impl<T: Sample> Plan<T> {
    fn new(kind: Kind, n: usize) -> Plan<T> {
        match kind {
            Kind::Complex(direction) => Plan::Complex(complex(n, direction)),
            Kind::ToHalf => Plan::ToHalf(RealPlan::new(n, FftDirection::Forward)),
            Kind::ToReal => Plan::ToReal(RealPlan::new(n, FftDirection::Inverse)),
        }
    }

    /// Scratch for one line, in complex numbers.
    pub fn scratch_len(&self) -> usize {
        match self {
            Plan::Complex(fft) => fft.get_inplace_scratch_len(),
            Plan::ToHalf(plan) | Plan::ToReal(plan) => plan.scratch_len(),
        }
    }
}

/// The complex transform of `n` numbers.
pub(super) fn complex<T: Sample>(n: usize, direction: FftDirection) -> Arc<dyn Fft<T>> {
    match n {
        3 => Arc::new(Three(direction)),
        _ => {
            scratch::check_available(planning_bytes::<T>(n));
            FftPlanner::new().plan_fft(n, direction)
        }
    }
}

/// Upper bound of the memory that `rustfft` allocates for a plan: it ends the process if it cannot.
fn planning_bytes<T>(n: usize) -> usize {
    // Lengths with large prime factors are computed by convolutions of twice to four times the length (Bluestein), whose plans have tables of several
    // times their length: measured are at most 11 complex numbers per element. For other lengths there are at most 3.1, of tables of less than 4 KiB.
    let per_element = if has_small_factors(n) { 4 } else { 12 };
    per_element * n.saturating_mul(size_of::<Complex<T>>()) + 4096
}

/// Whether `n` has no prime factor above 7.
fn has_small_factors(mut n: usize) -> bool {
    for factor in [2, 3, 5, 7] {
        while n > 0 && n.is_multiple_of(factor) {
            n /= factor;
        }
    }
    n == 1
}

impl<T: Sample> Clone for Plan<T> {
    fn clone(&self) -> Plan<T> {
        match self {
            Plan::Complex(fft) => Plan::Complex(fft.clone()),
            Plan::ToHalf(plan) => Plan::ToHalf(plan.clone()),
            Plan::ToReal(plan) => Plan::ToReal(plan.clone()),
        }
    }
}

/// Key of a plan, besides the length. Real transforms have one plan for both directions; the other direction conjugates.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Complex(FftDirection),
    ToHalf,
    ToReal,
}

/// Real element type of a transform.
pub(super) trait Sample: FftNum + Real + Default {
    /// The cached plans of this type, most recently used last.
    fn plans() -> &'static Mutex<Vec<Entry<Self>>>;

    /// The value nearest to `x`.
    fn of(x: f64) -> Self {
        <Self as Real>::from_f64(x)
    }
}

impl Sample for f32 {
    fn plans() -> &'static Mutex<Vec<Entry<f32>>> {
        static PLANS: Mutex<Vec<Entry<f32>>> = Mutex::new(Vec::new());
        &PLANS
    }
}

impl Sample for f64 {
    fn plans() -> &'static Mutex<Vec<Entry<f64>>> {
        static PLANS: Mutex<Vec<Entry<f64>>> = Mutex::new(Vec::new());
        &PLANS
    }
}

pub(super) struct Entry<T: Sample> {
    kind: Kind,
    n: usize,
    plan: Plan<T>,
}

/// Limits of the cache: number of plans, and sum of their lengths (a plan takes a small multiple of its length in complex numbers).
const PLANS: usize = 64;
const PLANNED_LEN: usize = 4 * 1024 * 1024;

/// The plan for a transform of length `n`, from the cache or new.
pub(super) fn plan<T: Sample>(spectrum: Spectrum, direction: Direction, n: usize) -> Plan<T> {
    let kind = match (spectrum, direction) {
        (Spectrum::Complex, Direction::Forward) => Kind::Complex(FftDirection::Forward),
        (Spectrum::Complex, Direction::Inverse) => Kind::Complex(FftDirection::Inverse),
        (Spectrum::RealToFull | Spectrum::RealToHalf, _) => Kind::ToHalf,
        (Spectrum::HalfToReal, _) => Kind::ToReal,
    };
    // A panic cannot leave the list half-changed: entries are added and removed by single calls.
    let lock = || T::plans().lock().unwrap_or_else(PoisonError::into_inner);
    {
        let mut plans = lock();
        if let Some(i) = plans.iter().rposition(|e| e.n == n && e.kind == kind) {
            plans[i..].rotate_left(1);
            let plan = &plans[plans.len() - 1].plan;
            return plan.clone();
        }
    }
    // Planning is slow, so the lock is not held. If two threads make the same plan, the duplicate is evicted later.
    let plan = Plan::new(kind, n);
    let mut plans = lock();
    plans.push(Entry {
        kind,
        n,
        plan: plan.clone(),
    });
    let mut planned: usize = plans.iter().map(|e| e.n).sum();
    while plans.len() > 1 && (plans.len() > PLANS || planned > PLANNED_LEN) {
        planned -= plans.remove(0).n;
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_cache_is_bounded() {
        for n in 1..200 {
            plan::<f64>(Spectrum::Complex, Direction::Forward, n);
        }
        let plans = f64::plans().lock().expect("no test panics with the lock");
        assert!(plans.len() <= PLANS);
        assert!(plans.iter().any(|e| e.n == 199));
    }
}
