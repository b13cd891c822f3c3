//! CUDA devices: `gpu(0)`, `gpu(1)`, ...
//!
//! The driver and NVIDIA's libraries are found and loaded when a device is first looked for; without them there are no devices, and nothing else is
//! missing. Kernels are texts of CUDA C++ that NVRTC compiles for the device at their first launch, and that are kept on disk.
//!
//! Who writes a kernel needs [`launch`] and `mxnet_core::variants`; the list of all is in [`kernels`].

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
