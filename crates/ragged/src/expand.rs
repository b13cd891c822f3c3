//! Expansion of one row per segment to all rows of the segment; padding to segments of one length, and back.
#![allow(unsafe_code)]

use mxnet_core::args::{Param, ParamKind, Value};
use mxnet_core::opdef::{Cost, Cpu, Grad, Keep, OpDef, Probe};
use mxnet_core::types::Types;
use mxnet_core::{Array, Attrs, Result, Tuple, invoke1};
use mxnet_kernels::segment;
use mxnet_ops::nn::operand;
use mxnet_tensor::{Dims, Scalar};
use smallvec::smallvec;

use crate::fold::sum;
use crate::offsets::{Offsets, count, row_len, rows};

/// Repeats a row for each row of a segment.
pub static RAGGED_EXPAND: OpDef = OpDef {
    name: "ragged_expand",
    params: &[
        Param::array("data"),
        Param::array("offsets"),
        Param::required("total", ParamKind::Int),
    ],
    doc: "Row `s` of `data`, `(segments, ...)`, repeated for each row of segment `s`: `(total, ...)`. `total` is the last offset.",
    types: Types::First,
    infer: |context| {
        let (found, needed) = (rows(context, 0)?, count(context, 1)?);
        if found != needed {
            return Err(context.shape_error(format!("{found} rows for {needed} segments")));
        }
        let mut shape = Dims::from_slice(context.shape(0));
        shape[0] = length(context, "total")?;
        mxnet_core::opdef::one(shape)
    },
    cpu: Cpu::Kernel(|context| {
        let (x, out) = (context.input(0), context.output(0));
        let offsets = Offsets::read(context, 1, out.shape()[0])?;
        let x = operand::dense(x, out.dtype(), context.threads)?;
        let g = offsets.segments(row_len(x.shape()) * x.dtype().size());
        // SAFETY: 1. the offsets are checked. 2. both are dense, with a row for each segment and for each row. 3. no overlap.
        unsafe { segment::expand(context.threads, &g, x.data_ptr(), out.data_ptr()) };
        Ok(())
    }),
    grad: Grad::Rule(Keep::inputs(0b10), |g| {
        Ok(smallvec![Some(sum(g.dy(0), g.input(1))?), None])
    }),
    cost: Cost::PerKiB(60),
    probe: Probe::calls(&[
        "f((2, 3)), np.array([0, 2, 5]), 5",
        "f((2,)), np.array([0, 0, 4]), 4",
    ]),
    positions: &[1],
    ..OpDef::DEFAULT
};

/// Pads segments to one length.
pub static RAGGED_PAD: OpDef = OpDef {
    name: "ragged_pad",
    params: &[
        Param::array("values"),
        Param::array("offsets"),
        Param::required("length", ParamKind::Int),
        Param::float("fill", 0.0),
    ],
    doc: "The segments of `values` as `(segments, length, ...)`: the first `length` rows of each, then `fill`.",
    types: Types::First,
    infer: |context| {
        rows(context, 0)?;
        let mut shape = Dims::from_slice(context.shape(0));
        shape[0] = count(context, 1)?;
        shape.insert(1, length(context, "length")?);
        mxnet_core::opdef::one(shape)
    },
    cpu: Cpu::Kernel(|context| {
        let (x, out) = (context.input(0), context.output(0));
        let offsets = Offsets::read(context, 1, x.shape()[0])?;
        let x = operand::dense(x, out.dtype(), context.threads)?;
        let mut fill = [0_u64; 2];
        let size = x.dtype().size();
        // SAFETY: 16 bytes hold an element of every dtype.
        let fill = unsafe {
            let ptr = fill.as_mut_ptr().cast::<u8>();
            Scalar::F64(context.float("fill")).write(x.dtype(), ptr);
            std::slice::from_raw_parts(ptr, size)
        };
        let g = offsets.segments(row_len(x.shape()) * size);
        let len = out.shape()[1];
        // SAFETY: 1. the offsets are checked. 2. both are dense; the output has `len` rows for each segment. 3. no overlap.
        unsafe { segment::pad(context.threads, &g, len, fill, x.data_ptr(), out.data_ptr()) };
        Ok(())
    }),
    grad: Grad::Rule(Keep::inputs(0b10), |g| {
        Ok(smallvec![
            Some(unpad(g.dy(0), g.input(1), g.shape(0)[0])?),
            None
        ])
    }),
    cost: Cost::PerKiB(60),
    probe: Probe::calls(&[
        "f((5, 2)), np.array([0, 2, 5]), 3",
        "f((5,)), np.array([0, 1, 1, 5]), 2, -1.5",
    ]),
    positions: &[1],
    ..OpDef::DEFAULT
};

/// Removes the padding.
pub static RAGGED_UNPAD: OpDef = OpDef {
    name: "ragged_unpad",
    params: &[
        Param::array("data"),
        Param::array("offsets"),
        Param::required("total", ParamKind::Int),
    ],
    doc: "The inverse of `ragged_pad`: `data` `(segments, length, ...)` without its padding, `(total, ...)`. Rows of a segment beyond `length` are \
        0.",
    types: Types::First,
    infer: |context| {
        let segments = count(context, 1)?;
        let shape = context.shape(0);
        if shape.len() < 2 || shape[0] != segments {
            return Err(context.shape_error(format!(
                "data of shape {} for {segments} segments; it has axes (segments, length, ...)",
                Tuple(shape)
            )));
        }
        let mut shape = Dims::from_slice(&shape[1..]);
        shape[0] = length(context, "total")?;
        mxnet_core::opdef::one(shape)
    },
    cpu: Cpu::Kernel(|context| {
        let (x, out) = (context.input(0), context.output(0));
        let offsets = Offsets::read(context, 1, out.shape()[0])?;
        let x = operand::dense(x, out.dtype(), context.threads)?;
        let g = offsets.segments(row_len(out.shape()) * x.dtype().size());
        let len = x.shape()[1];
        // SAFETY: 1. the offsets are checked. 2. both are dense; the input has `len` rows for each segment. 3. no overlap.
        unsafe { segment::unpad(context.threads, &g, len, x.data_ptr(), out.data_ptr()) };
        Ok(())
    }),
    grad: Grad::Rule(Keep::inputs(0b10), |g| {
        Ok(smallvec![
            Some(pad(g.dy(0), g.input(1), g.shape(0)[1])?),
            None
        ])
    }),
    cost: Cost::PerKiB(60),
    probe: Probe::calls(&[
        "f((2, 3, 2)), np.array([0, 2, 5]), 5",
        "f((2, 2)), np.array([0, 1, 4]), 4",
    ]),
    positions: &[1],
    ..OpDef::DEFAULT
};

/// Attribute `name` as a number of rows.
fn length(context: &mxnet_core::context::CallContext, name: &str) -> Result<usize> {
    let n = context.int(name);
    usize::try_from(n)
        .map_err(|_| context.value_error(format!("`{name}` is {n}, must be at least 0")))
}

fn with_length(op: &'static OpDef, x: &Array, offsets: &Array, rest: &[Value]) -> Result<Array> {
    let attrs: Attrs = rest.iter().cloned().collect();
    invoke1(op, &[x, offsets], &attrs)
}

/// Repeats row `s` of `x` for each row of segment `s`.
pub(crate) fn expand(x: &Array, offsets: &Array, total: usize) -> Result<Array> {
    with_length(&RAGGED_EXPAND, x, offsets, &[Value::Int(total as i64)])
}

/// Pads segments to one length with zeros.
pub(crate) fn pad(x: &Array, offsets: &Array, length: usize) -> Result<Array> {
    let attrs = [Value::Int(length as i64), Value::Float(0.0)];
    with_length(&RAGGED_PAD, x, offsets, &attrs)
}

/// Removes the padding.
pub(crate) fn unpad(x: &Array, offsets: &Array, total: usize) -> Result<Array> {
    with_length(&RAGGED_UNPAD, x, offsets, &[Value::Int(total as i64)])
}
