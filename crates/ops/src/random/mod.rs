//! The global stream of random numbers and the samplers that draw from it.
//!
//! Numbers are a function of (seed, counter): a call reserves its counter blocks when it is made, so what it draws depends neither on
//! threads nor on when it runs.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::cx::RngState;
use crate::opdef::OpDef;

pub(crate) static OPS: &[&OpDef] = &[];

static SEED: AtomicU64 = AtomicU64::new(0);
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Starts the stream anew.
pub fn seed(seed: u64) {
    SEED.store(seed, Ordering::Relaxed);
    NEXT.store(0, Ordering::Relaxed);
}

/// Takes `blocks` counter blocks off the stream.
pub fn reserve(blocks: u64) -> RngState {
    let offset = NEXT.fetch_add(blocks, Ordering::Relaxed);
    RngState {
        seed: SEED.load(Ordering::Relaxed),
        offset,
    }
}
