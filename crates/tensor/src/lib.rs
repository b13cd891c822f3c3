//! Data types, layouts, storage, devices and zero-copy exchange. No operator, no arithmetic.

#![warn(missing_docs)]

mod device;
mod dtype;
pub mod error;
mod index;
mod layout;
mod promotion;
mod scalar;

pub use device::{Device, DeviceKind};
pub use dtype::{DType, Kind};
pub use error::TensorError;
pub use index::{Advanced, AxisIndex, IndexItem, Indexed};
pub use layout::{
    Dims, Layout, MAX_NDIM, Strides, broadcast_shapes, checked_len, normalize_axes, normalize_axis,
    reshape_dims,
};
pub use promotion::{
    Casting, Operand, Promotion, UnknownCasting, can_cast, default_float, default_int, promote,
    promotion, result_type, set_promotion, with_weak,
};
pub use scalar::Scalar;

/// Another name of [`TensorError`], for the functions of [`Layout`].
pub type LayoutError = TensorError;
