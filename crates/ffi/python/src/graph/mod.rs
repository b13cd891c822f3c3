//! Traced functions: signatures of calls, traces, and runs of what was compiled.

mod compiled;
mod jit;
mod loaded;
mod sized;
mod tree;

pub use compiled::CompiledGraph;
pub use jit::{JitFunction, outside_trace, parameters_replaced, set_jit, trace_is_active};
pub use loaded::LoadedGraph;
