//! The class `ndarray`: the content of its objects. Methods that are operators come from the registry (`call.rs`).

use mxnet::core::Array;
use mxnet::ops::InlineScalar;
use pyo3::prelude::*;

use crate::gil_cell::GilCell;

mod attributes;
mod class;
mod handle;
mod methods;
pub mod slots;

pub use crate::typed::Get;
pub use class::wrap_as;
pub use handle::as_array;

/// The content of an array object.
pub struct PyArray {
    held: GilCell<ArrayOrScalar>,
    /// The array this one is a view of.
    base: Option<Py<PyArray>>,
    /// Whether the view was taken while recording: writes through it or `base` are recorded for both.
    is_linked: bool,
    /// Whether the array stands for a NumPy scalar. In-place operators do not change scalars: `s = x.sum(); s /= 2` makes a new array.
    is_scalar: bool,
}

/// The content of an array object. Its layout in memory is fixed, so that arrays can be constructed in place.
#[repr(u8)]
enum ArrayOrScalar {
    Array(Array),
    /// An element. It is replaced by an array when one is needed.
    #[expect(
        dead_code,
        reason = "it is constructed in place, see `HeldInlineScalar`"
    )]
    InlineScalar(InlineScalar),
}
