//! Images: JPEG and PNG to and from 8-bit pixels, resizing, and the steps from a file to a network's input. This crate depends on no other crate of
//! the workspace, and has no threads of its own.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod decode;
mod encode;
mod error;
mod memory;
mod pixels;
mod prepare;
mod resize;

pub use decode::{Channels, MAX_PIXELS, Order, decode};
pub use encode::{Format, encode};
pub use error::{Error, Result};
pub use pixels::Pixels;
pub use prepare::{Normalization, Step, apply, prepare, to_planes};
pub use resize::{Interpolation, resize};
