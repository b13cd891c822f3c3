//! Modules: shared libraries that add operators, kernels of existing operators, and kinds of devices while the program runs.
//!
//! [`load`] opens one. The table between both is in [`abi`] and in `include/mxnet_module.h`. A module is never closed: its functions are in the
//! registry for the rest of the process.

#![expect(
    non_camel_case_types,
    reason = "types of the table have the names that the header gives them"
)]

pub mod abi;
mod call;
mod device;
mod host;
mod kernel;
mod operator;
mod text;

pub use host::{Loaded, load, loaded};
pub use kernel::{Served, served};
