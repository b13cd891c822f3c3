//! Data types, layouts, storage, devices and zero-copy exchange. This crate has no operators and no arithmetic.

#![warn(missing_docs)]

mod backend;
mod device;
pub mod dlpack;
mod dtype;
pub mod error;
mod index;
mod layout;
pub mod memory;
mod packed;
mod promotion;
mod scalar;
mod storage;
mod tensor;
mod words;

pub use backend::{
    Allocation, Backend, MemoryInfo, Transfer, backend, backend_of, num_devices, register_backend,
    wait_for_devices,
};
pub use device::{Device, DeviceKind};
pub use dtype::{DType, Kind};
pub use error::TensorError;
pub use index::{Advanced, AxisIndex, IndexItem, Indexed};
pub use layout::{
    BasicIndex, Dims, Layout, MAX_NDIM, Strides, broadcast_shapes, checked_len, normalize_axes,
    normalize_axis, reshape_dims,
};
pub use packed::PackedForms;
pub use promotion::{
    Casting, Operand, Promotion, UnknownCasting, can_cast, default_float, default_int, promote,
    promotion, result_type, set_promotion, with_weak,
};
pub use scalar::Scalar;
pub use storage::Storage;
pub use tensor::{Source, Tensor};
pub(crate) use words::copy_words;

/// Alias of [`TensorError`] for the functions of [`Layout`].
pub type LayoutError = TensorError;
