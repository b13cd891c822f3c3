//! Errors: one enum with a variant per kind that a caller can react to. Variants store numbers; `Display` formats the message.

use std::fmt;

use thiserror::Error;

use crate::{Casting, DType, Device, DeviceKind};

/// Errors of tensors, by kind.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TensorError {
    /// Shapes are incompatible, or a shape is impossible.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// An axis does not exist or is named twice.
    #[error(transparent)]
    Axis(#[from] AxisError),
    /// An index expression does not fit the array.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A data type is unknown or not possible here.
    #[error(transparent)]
    DType(#[from] DTypeError),
    /// A device is unknown or absent.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Memory ran out.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A valid request that is not supported.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
}

/// See [`TensorError::Shape`]. NumPy raises `ValueError`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ShapeError {
    /// Shapes that do not broadcast: `sizes` at `axis` of the result differ and neither is 1.
    #[error(
        "shapes {} cannot be broadcast together: axis {axis} of the result has sizes {} and {}",
        Join(.shapes), .sizes.0, .sizes.1
    )]
    Broadcast {
        /// All given shapes.
        shapes: Vec<Box<[usize]>>,
        /// First such axis of the result, counted from the right.
        axis: usize,
        /// The two sizes at this axis.
        sizes: (usize, usize),
    },
    /// A shape that does not broadcast to a given one.
    #[error("shape {} cannot be broadcast to shape {}", Tuple(.from), Tuple(.to))]
    BroadcastTo {
        /// The array's shape.
        from: Box<[usize]>,
        /// The shape asked for.
        to: Box<[usize]>,
    },
    /// The numbers of elements of the old and the new shape differ, or an unknown size cannot be inferred.
    #[error("cannot reshape array of size {len} into shape {}", Tuple(.shape))]
    Reshape {
        /// Number of elements of the array.
        len: usize,
        /// The shape asked for.
        shape: Box<[isize]>,
    },
    /// More than one size is unknown (negative).
    #[error("can only specify one unknown dimension, shape {} has {}", Tuple(.shape), .shape.iter().filter(|n| **n < 0).count())]
    Unknowns {
        /// The shape asked for.
        shape: Box<[isize]>,
    },
    /// The product of the sizes, in bytes, does not fit the address space.
    #[error("array of shape {} is too big: its size in bytes must fit in {} bits", Tuple(.shape), isize::BITS - 1)]
    TooBig {
        /// The shape.
        shape: Box<[usize]>,
    },
    /// More axes than `MAX_NDIM`.
    #[error("an array can have at most {} axes, found {ndim}", crate::MAX_NDIM)]
    TooManyAxes {
        /// Number of axes asked for.
        ndim: usize,
    },
    /// An axis to be squeezed does not have length 1.
    #[error("cannot squeeze axis {axis}: its size is {size}, required is 1")]
    Squeeze {
        /// The axis.
        axis: usize,
        /// Its size.
        size: usize,
    },
    /// An axis that cannot be split into equal parts.
    #[error("cannot split axis {axis} of size {size} into {sections} equal sections")]
    Split {
        /// The axis.
        axis: usize,
        /// Its size.
        size: usize,
        /// Number of parts asked for.
        sections: usize,
    },
    /// A window longer than the axis it slides along.
    #[error("window of length {window} does not fit axis {axis} of size {size}")]
    Window {
        /// The axis.
        axis: usize,
        /// Its size.
        size: usize,
        /// Length of the window.
        window: usize,
    },
    /// A layout exceeds its storage.
    #[error("layout touches bytes {lowest} to {end} (exclusive), but the storage has {len_bytes}")]
    OutsideStorage {
        /// First byte of the layout; negative if before the storage.
        lowest: i128,
        /// One past the last byte of the layout.
        end: i128,
        /// Size of the storage in bytes.
        len_bytes: usize,
    },
    /// Shape and strides of different lengths.
    #[error("shape has {shape} axes, strides have {strides}")]
    Strides {
        /// Length of the shape.
        shape: usize,
        /// Length of the strides.
        strides: usize,
    },
}

/// See [`TensorError::Axis`]. NumPy raises `AxisError` or `ValueError`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AxisError {
    /// An axis outside `-ndim..ndim`.
    #[error("axis {axis} is out of bounds for array of dimension {ndim}")]
    OutOfBounds {
        /// The axis as given.
        axis: isize,
        /// Number of axes.
        ndim: usize,
    },
    /// One axis named twice.
    #[error("axis {axis} is repeated")]
    Repeated {
        /// The axis, normalised.
        axis: usize,
    },
    /// A list of axes of the wrong length.
    #[error("expected {required} axes, found {found}")]
    Count {
        /// Length of the list.
        found: usize,
        /// Length it must have.
        required: usize,
    },
}

/// See [`TensorError::Index`]. NumPy raises `IndexError`, and `ValueError` for a zero step.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum IndexError {
    /// An integer outside `-size..size`.
    #[error("index {index} is out of bounds for axis {axis} with size {size}")]
    OutOfBounds {
        /// The axis indexed.
        axis: usize,
        /// The index as given.
        index: isize,
        /// Size of the axis.
        size: usize,
    },
    /// More indices than axes.
    #[error("too many indices for array: array is {ndim}-dimensional, but {found} were indexed")]
    TooMany {
        /// Number of axes.
        ndim: usize,
        /// Number of axes that the expression consumes.
        found: usize,
    },
    /// The result would have more axes than `MAX_NDIM`.
    #[error(
        "an array can have at most {} axes, this index gives {ndim}",
        crate::MAX_NDIM
    )]
    TooManyAxes {
        /// Number of axes of the result.
        ndim: usize,
    },
    /// `...` given twice.
    #[error("an index can only have a single ellipsis ('...')")]
    Ellipses,
    /// A slice with step 0.
    #[error("slice step cannot be zero (axis {axis})")]
    ZeroStep {
        /// The axis sliced.
        axis: usize,
    },
    /// A mask whose shape differs from that of the axes it indexes.
    #[error(
        "boolean index did not match indexed array along axis {axis}; size of axis is {size} but size of corresponding boolean axis is {mask_size}"
    )]
    MaskShape {
        /// First axis of the array where the sizes differ.
        axis: usize,
        /// Its size.
        size: usize,
        /// Size of the mask at this axis.
        mask_size: usize,
    },
    /// Index arrays whose shapes do not broadcast.
    #[error("shape mismatch: indexing arrays could not be broadcast together with shapes {}", Join(.shapes))]
    Broadcast {
        /// Shapes of all index arrays, in order; a mask of k axes appears as k shapes `(count,)`.
        shapes: Vec<Box<[usize]>>,
    },
    /// The number of counts is not the number of masks.
    #[error("index expression has {required} masks, {found} counts were given")]
    MaskCounts {
        /// Counts given.
        found: usize,
        /// Masks in the expression.
        required: usize,
    },
}

/// See [`TensorError::DType`]. NumPy raises `TypeError`, and `ValueError` for views.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DTypeError {
    /// A name of no data type.
    #[error("data type {name:?} not understood")]
    Name {
        /// The name.
        name: Box<str>,
    },
    /// A conversion that the casting rule forbids.
    #[error("cannot cast from {from} to {to} according to the rule '{casting}'")]
    Cast {
        /// Type of the data.
        from: DType,
        /// Type asked for.
        to: DType,
        /// The rule.
        casting: Casting,
    },
    /// An array cannot be viewed as another data type: sizes, strides or offset in bytes are not divisible.
    #[error("cannot view {from} of shape {} as {to}: {why}", Tuple(.shape))]
    View {
        /// Type of the data.
        from: DType,
        /// Type asked for.
        to: DType,
        /// Shape of the array.
        shape: Box<[usize]>,
        /// The condition that fails.
        why: ViewObstacle,
    },
}

/// Why an array cannot be viewed as another data type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ViewObstacle {
    /// A 0-d array has no axis whose length could change.
    #[error("a 0-d array keeps its item size")]
    NoAxis,
    /// Items change size, and the last axis is not contiguous.
    #[error("the last axis must be contiguous")]
    LastAxis,
    /// The bytes of the last axis are no multiple of the new item size.
    #[error("the bytes of the last axis must be a multiple of the new item size")]
    Length,
    /// Offset or strides are no multiple of the new item size.
    #[error("offset and strides in bytes must be multiples of the new item size")]
    Stride,
    /// Only complex types have an imaginary part to view.
    #[error("only complex types have an imaginary part")]
    NotComplex,
}

/// What to use in place of a kind of CPU memory that MXNet 1.x had and this library does not need.
fn instead(device: Device) -> &'static str {
    match device.is_host() {
        true => "; memory of the CPU is cpu(0), pinned and shared where that is needed",
        false => "",
    }
}

/// See [`TensorError::Device`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// There is no backend for this kind of device.
    #[error("device {device} is not available: no backend for `{}` is loaded{}", .device.kind(), instead(*.device))]
    NoBackend {
        /// The device asked for.
        device: Device,
    },
    /// The backend has no devices.
    #[error("device {device} is not available: {reason}")]
    Absent {
        /// The device asked for.
        device: Device,
        /// The reason, and how to make one available.
        reason: Box<str>,
    },
    /// The backend has fewer devices.
    #[error("device {device} does not exist: there are {count} devices of kind `{}`", .device.kind())]
    OutOfRange {
        /// The device asked for.
        device: Device,
        /// Number of devices of this kind.
        count: usize,
    },
    /// There is a backend for this kind of device already.
    #[error("a backend for `{kind}` is already registered")]
    Registered {
        /// The kind.
        kind: DeviceKind,
    },
    /// A kind of device that cannot be added.
    #[error("device kind {name:?} cannot be added: {reason}")]
    Kind {
        /// Its name.
        name: Box<str>,
        /// The reason.
        reason: &'static str,
    },
    /// A text that is not a device.
    #[error("device {name:?} not understood, expected a form like 'cpu' or 'gpu(0)'")]
    Name {
        /// The text.
        name: Box<str>,
    },
    /// The device reported an error.
    #[error("{device}: {action} failed: {message}")]
    Failed {
        /// The device.
        device: Device,
        /// The operation.
        action: &'static str,
        /// Message of the driver.
        message: Box<str>,
    },
}

/// See [`TensorError::Memory`]. NumPy raises `MemoryError`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// An allocation failed.
    #[error("{device}: cannot allocate {requested_bytes} bytes ({in_use_bytes} bytes are in use)")]
    OutOfMemory {
        /// Device.
        device: Device,
        /// Bytes asked for.
        requested_bytes: usize,
        /// Bytes in use by arrays on this device.
        in_use_bytes: usize,
    },
    /// An allocation failed on a device with memory statistics.
    #[error("{device}: cannot allocate {requested_bytes} bytes\n{report}")]
    OutOfDeviceMemory {
        /// Device.
        device: Device,
        /// Bytes asked for.
        requested_bytes: usize,
        /// Free and used memory, and the largest blocks.
        report: Box<str>,
    },
}

/// See [`TensorError::Unsupported`]. DLPack consumers raise `BufferError`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Unsupported {
    /// A DLPack structure of an unknown major version.
    #[error("DLPack version {major}.{minor} is not supported, 1.x is")]
    DLPackVersion {
        /// Major version.
        major: u32,
        /// Minor version.
        minor: u32,
    },
    /// A DLPack element type that does not exist here.
    #[error("DLPack type (code {code}, {bits} bits, {lanes} lanes) is not supported")]
    DLPackType {
        /// `DLDataTypeCode`.
        code: u8,
        /// Bits of a lane.
        bits: u8,
        /// Lanes.
        lanes: u16,
    },
    /// A DLPack device that does not exist here.
    #[error("DLPack device (type {device_type}, id {device_id}) is not supported")]
    DLPackDevice {
        /// `DLDeviceType`.
        device_type: i32,
        /// Number of the device.
        device_id: i32,
    },
    /// An inconsistent DLPack structure (negative sizes, null data with elements, …).
    #[error("DLPack tensor is malformed: {field} is {value}")]
    DLPackMalformed {
        /// The field.
        field: &'static str,
        /// Its value.
        value: i64,
    },
    /// Memory of another owner that is not aligned for its type.
    #[error(
        "foreign memory at {address:#x} is not aligned to {alignment} bytes, as {dtype} requires"
    )]
    Unaligned {
        /// Address of the first element.
        address: usize,
        /// Required alignment.
        alignment: usize,
        /// Element type.
        dtype: DType,
    },
    /// The legacy DLPack structure cannot express read-only memory.
    #[error("a read-only array cannot be exported without a DLPack version of at least 1.0")]
    ReadOnlyLegacy,
    /// No backend copies between these devices.
    #[error("copying from {from} to {to} is not supported")]
    Copy {
        /// Source.
        from: Device,
        /// Destination.
        to: Device,
    },
}

/// A shape, written as Python writes a tuple.
pub(crate) struct Tuple<'a, T>(pub(crate) &'a [T]);

impl<T: fmt::Display> fmt::Display for Tuple<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (i, size) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{size}")?;
        }
        f.write_str(if self.0.len() == 1 { ",)" } else { ")" })
    }
}

/// Formats shapes one after another: `(2,) (3,)`.
struct Join<'a>(&'a [Box<[usize]>]);

impl fmt::Display for Join<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, shape) in self.0.iter().enumerate() {
            write!(f, "{}{}", if i > 0 { " " } else { "" }, Tuple(shape))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_carry_the_numbers() {
        let error = TensorError::from(ShapeError::Broadcast {
            shapes: vec![[2, 3].into(), [4].into()],
            axis: 1,
            sizes: (3, 4),
        });
        assert_eq!(
            error.to_string(),
            "shapes (2, 3) (4,) cannot be broadcast together: axis 1 of the result has sizes 3 and 4"
        );
        let error = TensorError::from(IndexError::OutOfBounds {
            axis: 1,
            index: -5,
            size: 4,
        });
        assert_eq!(
            error.to_string(),
            "index -5 is out of bounds for axis 1 with size 4"
        );
        let error = TensorError::from(ShapeError::Reshape {
            len: 6,
            shape: [4, -1].into(),
        });
        assert_eq!(
            error.to_string(),
            "cannot reshape array of size 6 into shape (4, -1)"
        );
    }

    #[test]
    fn errors_are_small() {
        // Every layout operation returns a `Result` with this error by value.
        assert!(size_of::<TensorError>() <= 64);
    }
}
