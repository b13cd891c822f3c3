//! Plans of transforms, made once and kept for as long as they are in use.

use std::sync::{Arc, Mutex, PoisonError};

use rustfft::{Fft, FftDirection, FftNum, FftPlanner};

use super::real::RealPlan;
use super::three::Three;
use super::{Direction, Spectrum};
use crate::real::Real;

/// How transforms of one length are computed.
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

    /// Complex numbers of memory that one line needs.
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
        _ => FftPlanner::new().plan_fft(n, direction),
    }
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

/// Key of a plan, besides the length. Real transforms are planned in one direction and conjugated for the other.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Complex(FftDirection),
    ToHalf,
    ToReal,
}

/// Numbers that are transformed.
pub(super) trait Sample: FftNum + Real + Default {
    /// The plans of this type, the one used last at the end.
    fn plans() -> &'static Mutex<Vec<Entry<Self>>>;

    /// The nearest one.
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

/// Plans that are kept: so many, and so many elements of their lengths together (each takes a few complex numbers).
const PLANS: usize = 64;
const PLANNED_LEN: usize = 4 * 1024 * 1024;

/// The plan for a transform of `n`.
pub(super) fn plan<T: Sample>(spectrum: Spectrum, direction: Direction, n: usize) -> Plan<T> {
    let kind = match (spectrum, direction) {
        (Spectrum::Complex, Direction::Forward) => Kind::Complex(FftDirection::Forward),
        (Spectrum::Complex, Direction::Inverse) => Kind::Complex(FftDirection::Inverse),
        (Spectrum::RealToFull | Spectrum::RealToHalf, _) => Kind::ToHalf,
        (Spectrum::HalfToReal, _) => Kind::ToReal,
    };
    // A thread that panicked left the list whole: entries go in and out by single calls.
    let lock = || T::plans().lock().unwrap_or_else(PoisonError::into_inner);
    {
        let mut kept = lock();
        if let Some(i) = kept.iter().rposition(|e| e.n == n && e.kind == kind) {
            kept[i..].rotate_left(1);
            let plan = &kept[kept.len() - 1].plan;
            return plan.clone();
        }
    }
    // Planning takes long; nobody waits for the lock meanwhile. Two threads may make the same plan: one of them leaves the list later.
    let plan = Plan::new(kind, n);
    let mut kept = lock();
    kept.push(Entry {
        kind,
        n,
        plan: plan.clone(),
    });
    let mut planned: usize = kept.iter().map(|e| e.n).sum();
    while kept.len() > 1 && (kept.len() > PLANS || planned > PLANNED_LEN) {
        planned -= kept.remove(0).n;
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_kept_up_to_a_bound() {
        for n in 1..200 {
            plan::<f64>(Spectrum::Complex, Direction::Forward, n);
        }
        let kept = f64::plans().lock().expect("no test panics with the lock");
        assert!(kept.len() <= PLANS);
        assert!(kept.iter().any(|e| e.n == 199));
    }
}
