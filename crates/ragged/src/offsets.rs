//! Offsets as operators get them: checked when a call is inferred (form) and when a kernel reads them (values).
#![allow(unsafe_code)]

use mxnet_core::cx::{CallCx, KernelCx};
use mxnet_core::{Error, Result};
use mxnet_kernels::segment::{Malformed, check};
use mxnet_tensor::{DType, Tensor};

use mxnet_ops::nn::operand;

/// Number of segments that argument `i`, offsets, has; its form is checked.
///
/// # Errors
/// [`Error::DType`] unless they are int64, [`Error::Shape`] unless they are a vector with at least one element.
pub(crate) fn count(cx: &CallCx, i: usize) -> Result<usize> {
    let offsets = cx.input(i);
    if offsets.dtype() != DType::I64 {
        return Err(cx.dtype_error(format!(
            "offsets are int64, found {}",
            offsets.dtype().name()
        )));
    }
    match *offsets.shape() {
        [n] if n > 0 => Ok(n - 1),
        _ => Err(cx.shape_error(format!(
            "offsets are a vector with an element for each segment and one more, found {} axes and {} elements",
            offsets.ndim(),
            offsets.len()
        ))),
    }
}

/// Values of argument `i` have rows.
///
/// # Errors
/// [`Error::Shape`] if they have no axis.
pub(crate) fn rows(cx: &CallCx, i: usize) -> Result<usize> {
    match cx.shape(i).first() {
        Some(&rows) => Ok(rows),
        None => Err(cx.shape_error("values have an axis of rows, found 0 axes")),
    }
}

/// Offsets while a kernel runs.
pub(crate) struct Offsets(Tensor);

impl Offsets {
    /// Argument `i`, whose segments cover `rows` rows.
    ///
    /// # Errors
    /// [`Error::Value`] that names the first defect.
    pub(crate) fn read(cx: &KernelCx, i: usize, rows: usize) -> Result<Offsets> {
        let offsets = Offsets(operand::dense(cx.input(i), DType::I64, cx.threads)?);
        let of = offsets.as_slice();
        let problem = match check(of, rows) {
            Ok(()) => return Ok(offsets),
            Err(Malformed::Empty) => {
                "there are no offsets; no segments at all have the offset 0".to_owned()
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
        Err(Error::value(cx.op.name, problem))
    }

    /// The offsets.
    pub(crate) fn as_slice(&self) -> &[i64] {
        // SAFETY: dense int64 elements, which the kernel that holds them may read.
        unsafe { std::slice::from_raw_parts(self.0.data_ptr().cast(), self.0.len()) }
    }
}

/// Elements of a row of a tensor whose first axis counts rows.
pub(crate) fn row_len(shape: &[usize]) -> usize {
    shape.iter().skip(1).product()
}
