//! The C ABI: `libmxnet` and `include/mxnet.h`, for programs in C and for languages that call C.
//!
//! Every function returns a status, 0 for success; `mx_last_error` describes the last failure of the thread. Arrays, scopes and graphs are handles
//! (`handles.rs`), so using a freed or invalid one is an error and does not crash. No initialisation is needed, and no panic leaves the library.

#![expect(
    non_camel_case_types,
    reason = "types have the names that the header gives them"
)]

pub mod array;
pub mod autograd;
/// cbindgen:ignore
mod cancel;
pub mod dlpack;
pub mod files;
pub mod foreign;
pub mod graph;
pub mod handles;
pub mod invoke;
pub mod profiler;
pub mod runtime;
pub mod settings;
pub mod status;
