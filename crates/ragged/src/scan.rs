//! Running sums within segments.
#![allow(unsafe_code)]

use mxnet_core::args::{Param, Value};
use mxnet_core::launch::elem;
use mxnet_core::opdef::{Cost, Cpu, Grad, Keep, OpDef, Probe, one_of};
use mxnet_core::{Attrs, invoke1};
use mxnet_kernels::segment::cumsum;
use mxnet_ops::nn::operand::{self, Staged};
use mxnet_tensor::{DType, Dims, Kind};
use smallvec::smallvec;

use crate::fold::wide;
use crate::offsets::{Offsets, count, row_len, rows};

/// Sums of the rows of a segment up to each row.
pub static RAGGED_CUMSUM: OpDef = OpDef {
    name: "ragged_cumsum",
    params: &[
        Param::array("values"),
        Param::array("offsets"),
        Param::bool("reverse", false),
    ],
    doc: "Sum of the rows of the segment up to each row, or from it on if `reverse`, of the shape of `values`. Integers and booleans are summed as \
          64-bit integers. The order of summation depends on the sizes only.",
    infer: |context| {
        rows(context, 0)?;
        count(context, 1)?;
        let dtype = context.dtype_of(0);
        let dtype = match dtype.kind() {
            Kind::Bool | Kind::Integer => wide(dtype),
            Kind::Float | Kind::Complex => dtype,
        };
        one_of(Dims::from_slice(context.shape(0)), dtype)
    },
    cpu: Cpu::Kernel(|context| {
        let (x, out) = (context.input(0), context.output(0));
        let dtype = match out.dtype().kind() {
            Kind::Bool | Kind::Integer => out.dtype(),
            Kind::Float | Kind::Complex => operand::compute(out.dtype()),
        };
        let offsets = Offsets::read(context, 1, x.shape()[0])?;
        let x = operand::dense(x, dtype, context.threads)?;
        let out = Staged::new(out, dtype)?;
        let inner = row_len(x.shape());
        // Real and imaginary parts are summed side by side.
        let (elem, inner) = match dtype {
            DType::C64 => (elem(DType::F32), 2 * inner),
            DType::C128 => (elem(DType::F64), 2 * inner),
            _ => (elem(dtype), inner),
        };
        let g = offsets.segments(inner);
        // SAFETY: 1. the offsets are checked. 2. operands are dense, of `dtype` and of one shape. 3. no overlap.
        unsafe {
            cumsum(
                context.threads,
                &g,
                elem,
                context.bool("reverse"),
                x.data_ptr(),
                out.ptr(),
            );
        }
        out.finish(context.threads)
    }),
    grad: Grad::Rule(Keep::inputs(0b10), |g| {
        let attrs: Attrs = [Value::Bool(!g.bool("reverse"))].into_iter().collect();
        let dx = invoke1(&RAGGED_CUMSUM, &[g.dy(0), g.input(1)], &attrs)?;
        Ok(smallvec![Some(g.fitted(dx, 0)?), None])
    }),
    cost: Cost::PerKiB(150),
    probe: Probe::calls(&[
        "f((5, 2)), np.array([0, 2, 5])",
        "f((4,)), np.array([0, 0, 3, 4]), True",
        "i((6, 2), 9), np.array([0, 5, 6])",
    ])
    .ulp(16),
    positions: &[1],
    ..OpDef::DEFAULT
};
