//! What every kernel text begins with.

/// Types and functions that all kernels share.
pub const PRELUDE: &str = include_str!("text/prelude.cuh");
