//! Traced functions: signatures of calls, traces, and runs of compiled graphs.

mod compiled;
mod jit;
mod loaded;
mod passes;
mod pieces;
mod sized;
mod traced;
mod tree;
pub mod watch;

pub use compiled::CompiledGraph;
pub use jit::{JitFunction, outside_trace, parameters_replaced, trace_is_active};
pub use loaded::LoadedGraph;
pub use passes::{
    graph_passes, register_partitioner, register_pass, switch_off_passes, unregister_pass,
};
pub use watch::classes_of_lengths;
