//! Offsets: dtype and shape are checked when a call is inferred, values when a kernel reads them.
#![allow(unsafe_code)]

use mxnet_core::context::{CallContext, KernelContext};
use mxnet_core::{Error, Result};
use mxnet_kernels::segment::{Malformed, Segments, check};
use mxnet_tensor::{DType, Tensor};

use mxnet_ops::nn::operand;

/// Number of segments of the offsets in argument `i`, whose dtype and shape are checked.
///
/// # Errors
/// [`Error::DType`] unless they are int64, [`Error::Shape`] unless they have one axis and at least one element.
pub(crate) fn count(context: &CallContext, i: usize) -> Result<usize> {
    let offsets = context.input(i);
    if offsets.dtype() != DType::I64 {
        return Err(context.dtype_error(format!(
            "offsets are int64, found {}",
            offsets.dtype().name()
        )));
    }
    match *offsets.shape() {
        [n] if n > 0 => Ok(n - 1),
        _ => Err(context.shape_error(format!(
            "offsets are a vector with an element for each segment and one more, found {} axes and {} elements",
            offsets.ndim(),
            offsets.len()
        ))),
    }
}

/// Number of rows of argument `i`.
///
/// # Errors
/// [`Error::Shape`] if it is 0-d.
pub(crate) fn rows(context: &CallContext, i: usize) -> Result<usize> {
    match context.shape(i).first() {
        Some(&rows) => Ok(rows),
        None => Err(context.shape_error("values have an axis of rows, found 0 axes")),
    }
}

/// Checked offsets, for a kernel.
pub(crate) struct Offsets(Tensor);

impl Offsets {
    /// Reads argument `i`, whose segments must cover `rows` rows.
    ///
    /// # Errors
    /// [`Error::Value`] that names the first defect.
    pub(crate) fn read(context: &KernelContext, i: usize, rows: usize) -> Result<Offsets> {
        let offsets = Offsets(operand::dense(
            context.input(i),
            DType::I64,
            context.threads,
        )?);
        let of = offsets.as_slice();
        let problem = match check(of, rows) {
            Ok(()) => return Ok(offsets),
            Err(Malformed::Empty) => {
                "`offsets` is empty; for no segments it must be [0]".to_owned()
            }
            Err(Malformed::First(first)) => format!("offsets start with 0, found {first}"),
            Err(Malformed::Decreases(at)) => format!(
                "offsets do not decrease: element {at} is {}, after {}",
                of[at],
                of[at - 1]
            ),
            Err(Malformed::Last(last)) => {
                format!("the last offset is {last}, but there are {rows} rows")
            }
        };
        Err(Error::value(context.op.name, problem))
    }

    /// The segments of rows of `inner` elements (bytes for kernels that move).
    pub(crate) fn segments(&self, inner: usize) -> Segments<'_> {
        Segments {
            offsets: self.as_slice(),
            inner,
        }
    }

    /// The offsets.
    pub(crate) fn as_slice(&self) -> &[i64] {
        // SAFETY: dense int64 elements, which the kernel that holds them may read.
        unsafe { std::slice::from_raw_parts(self.0.data_ptr().cast(), self.0.len()) }
    }
}

/// Number of elements in a row of a tensor whose first axis is the rows.
pub(crate) fn row_len(shape: &[usize]) -> usize {
    shape.iter().skip(1).product()
}
