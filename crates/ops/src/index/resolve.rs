//! Checks index values and brings them into range.
#![allow(unsafe_code)]

use mxnet_kernels::Threads;
use mxnet_kernels::index::{self as kernel, BadIndex, Mode};
use mxnet_kernels::reduce::Source;
use mxnet_tensor::{DType, DeviceKind, Dims, Tensor};

use super::positions::all_in_range;
use crate::Array;
use crate::args::{Attrs, Param, ParamKind, Value};
use crate::batching::Batch;
use crate::error::{Error, Result};
use crate::invoke::invoke1;
use crate::launch::{Pool, elem};
use crate::mode::Flags;
use crate::opdef::{Cpu, Grad, OpDef, Probe, one_of};

/// Indices into an axis; negative ones count from its end.
pub static RESOLVE: OpDef = OpDef {
    name: "resolve_indices",
    reports_as: Some(""),
    params: &[
        Param::array("indices"),
        Param::required("size", ParamKind::Int),
        Param::int("axis", 0),
    ],
    doc: "The int64 positions that `indices` name on an axis of `size` elements, negative ones counted from its end. An index out of bounds is an \
          error at the call; `axis` is the axis in the error message.",
    infer: |context| {
        // An empty list has the default float dtype, and is a valid index.
        if !context.dtype_of(0).is_integer() && !context.input(0).is_empty() {
            return Err(context.dtype_error(format!(
                "indices must be integers, found {}",
                context.dtype_of(0).name()
            )));
        }
        one_of(Dims::from_slice(context.shape(0)), DType::I64)
    },
    cpu: Cpu::Kernel(|context| {
        let (size, axis) = (context.int("size") as usize, context.int("axis") as usize);
        run(
            context.threads,
            Mode::Raise,
            size,
            context.input(0),
            context.output(0),
        )
        .map_err(|bad| out_of_bounds(bad.value, axis, size))
    }),
    waits: true,
    grad: Grad::Stop("indices are integers"),
    probe: Probe::calls(&[
        "i((2, 3), 4), 4",
        "i((2, 3), 4)[::-1] - 4, 4",
        "i((0,), 4), 0",
    ])
    .against("lambda x, size: numpy.where(x < 0, x + size, x)"),
    batch: Batch::Leading(&[0]),
    positions: &[0],
    ..OpDef::DEFAULT
};

/// Indices that are wrapped or clipped, so that all are valid.
pub static WRAPPED: OpDef = OpDef {
    name: "wrapped_indices",
    reports_as: Some(""),
    params: &[
        Param::array("indices"),
        Param::required("size", ParamKind::Int),
        Param::choice("mode", &["wrap", "clip"], "clip"),
    ],
    doc: "The int64 positions on an axis of `size` (not 0) elements: `indices` modulo the size ('wrap'), or the nearest position ('clip').",
    infer: |context| {
        if !context.dtype_of(0).is_integer() && !context.input(0).is_empty() {
            return Err(context.dtype_error(format!(
                "indices must be integers, found {}",
                context.dtype_of(0).name()
            )));
        }
        if context.int("size") == 0 && !context.input(0).is_empty() {
            return Err(Error::index(
                context.op.name,
                "cannot take from an axis without elements (size 0)",
            ));
        }
        one_of(Dims::from_slice(context.shape(0)), DType::I64)
    },
    cpu: Cpu::Kernel(|context| {
        let mode = if context.str("mode") == "wrap" {
            Mode::Wrap
        } else {
            Mode::Clip
        };
        let (x, out) = (context.input(0), context.output(0));
        run(context.threads, mode, context.int("size") as usize, x, out).map_err(|bad| {
            Error::internal(
                context.op.name,
                format!("index {} was not brought into range", bad.value),
            )
        })
    }),
    grad: Grad::Stop("indices are integers"),
    probe: Probe::calls(&["i((2, 3), 9), 4, 'clip'", "i((2, 3), 9) - 5, 4, 'wrap'"]).against(
        "lambda x, size, mode: numpy.clip(x, 0, size - 1) if mode == 'clip' else x % size",
    ),
    batch: Batch::Leading(&[0]),
    positions: &[0],
    ..OpDef::DEFAULT
};

pub(super) fn run(
    threads: &dyn Threads,
    mode: Mode,
    limit: usize,
    x: &Tensor,
    out: &Tensor,
) -> Result<(), BadIndex> {
    if x.is_empty() {
        return Ok(());
    }
    let source = Source {
        ptr: x.data_ptr(),
        elem: elem(x.dtype()),
        shape: x.shape(),
        strides: &x.byte_strides(),
    };
    // SAFETY: 1. the layout lies within its storage. 2. `out` is dense int64 of the same shape, allocated for this call.
    unsafe { kernel::resolve(threads, mode, limit, &source, out.data_ptr().cast()) }
}

/// The error for an index out of bounds.
#[cold]
fn out_of_bounds(index: i64, axis: usize, size: usize) -> Error {
    mxnet_tensor::TensorError::from(mxnet_tensor::error::IndexError::OutOfBounds {
        axis,
        index: index as isize,
        size,
    })
    .into()
}

/// The positions of `indices` on an axis of length `size`. `mode` is NumPy's: `raise`, `wrap` or `clip`.
///
/// # Errors
/// [`Error::Index`] for an index out of bounds with `raise`, or for any index into an empty axis; [`Error::DType`] if the indices are no integers.
pub fn resolved(indices: &Array, size: usize, axis: usize, mode: &'static str) -> Result<Array> {
    let (op, last) = match mode {
        "raise" => (&RESOLVE, Value::Int(axis as i64)),
        mode => (&WRAPPED, Value::Word(mode)),
    };
    let attrs: Attrs = [Value::Int(size as i64), last].into_iter().collect();
    invoke1(op, &[indices], &attrs)
}

/// As [`resolved`], but returns `indices` itself if all positions are in range already. Only for callers that do not write to memory that the indices
/// may share. A recorded operation copies them, so that the user may change them before the backward pass.
pub(super) fn resolved_or_unchanged(
    indices: &Array,
    size: usize,
    axis: usize,
    mode: &'static str,
) -> Result<Array> {
    let dense = indices.dtype() == DType::I64 && indices.layout().is_contiguous();
    if mode == "raise"
        && dense
        && indices.device().kind() == DeviceKind::Cpu
        && !indices.is_abstract()
        && Flags::current().allows_copies()
    {
        let held = indices.read()?;
        // Another thread may overwrite them after this check; the kernels check again.
        let is_settled = all_in_range(held.tensor(), size, &Pool);
        drop(held);
        if is_settled {
            return Ok(indices.detach());
        }
    }
    resolved(indices, size, axis, mode)
}
