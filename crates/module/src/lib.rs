//! Modules: shared libraries that add operators, kernels of existing operators, kinds of devices, graph passes and partitioners at run time.
//!
//! [`load`] opens one. The table between both is in [`abi`] and in `include/mxnet_module.h`. A module is never closed: its functions are in the
//! registry for the rest of the process. Libraries that multiply matrices are in `blas`: the setting of that name opens them.

#![expect(
    non_camel_case_types,
    reason = "types of the table have the names that the header gives them"
)]

pub mod abi;
mod blas;
mod call;
mod device;
mod host;
mod kernel;
mod operator;
mod partitioner;
mod pass;
mod session;
mod stream;
mod text;

pub use blas::{BlasLibrary, add_folders, blas_libraries};
pub use host::{Loaded, load, loaded};
pub use kernel::{Served, served};
