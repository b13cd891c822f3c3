//! Sorting within segments.
#![allow(unsafe_code)]

use mxnet_core::args::Param;
use mxnet_core::launch::elem;
use mxnet_core::opdef::{Cost, Cpu, Grad, OpDef, Probe, one_of};
use mxnet_kernels::segment::argsort;
use mxnet_kernels::sort::Order;
use mxnet_ops::nn::operand;
use mxnet_tensor::{DType, Dims};

use crate::offsets::{Offsets, count, row_len, rows};

/// Positions of the rows in sorted order.
pub static RAGGED_ARGSORT: OpDef = OpDef {
    name: "ragged_argsort",
    params: &[
        Param::array("values"),
        Param::array("offsets"),
        Param::bool("descending", false),
    ],
    doc: "For each column the row indices that sort each segment, counted over all rows: int64, of the shape of `values`. Equal elements keep their \
          order. NaN counts as the largest value.",
    infer: |context| {
        rows(context, 0)?;
        count(context, 1)?;
        one_of(Dims::from_slice(context.shape(0)), DType::I64)
    },
    cpu: Cpu::Kernel(|context| {
        let (x, out) = (context.input(0), context.output(0));
        let offsets = Offsets::read(context, 1, x.shape()[0])?;
        let x = operand::dense(x, x.dtype(), context.threads)?;
        let g = offsets.segments(row_len(x.shape()));
        // SAFETY: 1. the offsets are checked. 2. both are dense and of one shape; no overlap.
        unsafe {
            argsort(
                context.threads,
                &g,
                elem(x.dtype()),
                match context.bool("descending") {
                    true => Order::Descending,
                    false => Order::Ascending,
                },
                x.data_ptr(),
                out.data_ptr().cast(),
            );
        }
        Ok(())
    }),
    grad: Grad::Stop("positions do not change with the values"),
    cost: Cost::PerKiB(4000),
    probe: Probe::calls(&[
        "f((5, 2)), np.array([0, 2, 5])",
        "i((6,), 3), np.array([0, 4, 4, 6])",
        "i((6, 2), 3), np.array([0, 4, 4, 6]), True",
    ]),
    positions: &[1],
    ..OpDef::DEFAULT
};
