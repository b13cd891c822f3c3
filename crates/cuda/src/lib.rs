//! CUDA devices: `gpu(0)`, `gpu(1)`, ...
//!
//! The driver and NVIDIA's libraries are loaded when a device is first used; without them there are no devices, and everything else works. Kernels
//! are CUDA C++ sources that NVRTC compiles for the device at their first launch; the results are cached on disk.
//!
//! To write a kernel, use [`launch`] and register it with [`mxnet_core::device_kernels`]; [`kernels`] lists all of them.

mod backend;
mod compile;
mod driver;
mod error;
mod fault;
mod kernels;
mod launch;
mod library;
mod pinned;
mod pool;
mod stream;
mod text;

pub use backend::{CudaDevice, devices, register};
pub use kernels::texts;
pub use library::{Library, add_folders, libraries};
pub use pool::reset_peak;
pub use stream::{number_of_stream, order_after, order_before};
pub use text::PRELUDE;
