//! The instruction set that kernels use: detected once at run time, overridable for tests.

use std::sync::atomic::{AtomicU8, Ordering};

/// Instruction-set level. Higher levels include lower ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Isa {
    /// The features that the build's target guarantees (x86-64-v2 or NEON).
    Baseline = 0,
    /// x86-64-v3: AVX2, FMA, F16C, BMI2.
    Avx2 = 1,
    /// x86-64-v4: AVX-512 F, BW, CD, DQ, VL.
    Avx512 = 2,
}

impl Isa {
    /// Number of levels; tables indexed by `Isa as usize` have this length.
    pub const COUNT: usize = 3;
}

const UNKNOWN: u8 = u8::MAX;
static CURRENT: AtomicU8 = AtomicU8::new(UNKNOWN);

/// The level in use. Detected at first use; the environment variable `MXNET_ISA` (`baseline`, `avx2`, `avx512`) can lower it.
#[inline]
pub fn isa() -> Isa {
    match CURRENT.load(Ordering::Relaxed) {
        0 => Isa::Baseline,
        1 => Isa::Avx2,
        2 => Isa::Avx512,
        _ => detect_and_store(),
    }
}

/// Lowers the level in use, never above the machine's; for tests and for valgrind.
pub fn limit_isa(level: Isa) {
    CURRENT.store(level.min(machine()) as u8, Ordering::Relaxed);
}

#[cold]
fn detect_and_store() -> Isa {
    let asked = match std::env::var("MXNET_ISA").as_deref() {
        Ok("baseline") => Isa::Baseline,
        Ok("avx2") => Isa::Avx2,
        _ => Isa::Avx512,
    };
    limit_isa(asked);
    asked.min(machine())
}

/// The highest level that this CPU supports.
#[cfg(target_arch = "x86_64")]
pub fn machine() -> Isa {
    macro_rules! all { ($($f:tt),*) => { true $(&& std::is_x86_feature_detected!($f))* } }
    if !all!("avx2", "fma", "f16c", "bmi1", "bmi2", "lzcnt", "movbe") {
        Isa::Baseline
    } else if all!("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl") {
        Isa::Avx512
    } else {
        Isa::Avx2
    }
}

/// The highest level that this CPU supports.
#[cfg(not(target_arch = "x86_64"))]
pub fn machine() -> Isa {
    Isa::Baseline
}
