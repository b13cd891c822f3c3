//! Bin indices and counts; `histogram` is composed of them.
#![allow(unsafe_code)]

use std::borrow::Cow;

use mxnet_kernels::sort::{self, Bins, Spacing};
use mxnet_tensor::{DType, Dims, Operand, Tensor, promotion, result_type};

use crate::args::Param;
use crate::context::{CallContext, KernelContext};
use crate::error::Result;
use crate::index::dense;
use crate::launch::elem;
use crate::opdef::{Cost, Cpu, Grad, OpDef, Probe, one_of};
use crate::{Tuple, cpu};

const PARAMS: &[Param] = &[
    Param::array("x"),
    Param::array("edges"),
    Param::bool("even", false),
];

/// The bin of each element.
pub static BIN_NUMBERS: OpDef = OpDef {
    name: "bin_numbers",
    params: PARAMS,
    doc: "For each real number of `x` its bin, int64: 0 before the first of the ascending `edges`; bins count from 1, and each includes its left \
        edge, the last one also its right edge; after the last edge, and for NaN, the number of edges. `even` says that the edges are evenly spaced \
        up to rounding.",
    infer: |context| {
        check(context)?;
        one_of(Dims::from_slice(context.shape(0)), DType::I64)
    },
    cpu: Cpu::Kernel(|context| {
        let (x, edges) = operands(context)?;
        // SAFETY: both are dense and of one dtype; the output is dense int64 of the numbers' shape, allocated for this call.
        unsafe {
            sort::bin_numbers(
                context.threads,
                &bins(context, &edges),
                x.data_ptr(),
                x.len(),
                context.output(0).data_ptr().cast(),
            );
        }
        Ok(())
    }),
    grad: Grad::Stop("numbers of bins are integers"),
    cost: Cost::PerKiB(1500),
    probe: Probe::calls(CALLS).against(
        "lambda x, edges, even=False: numpy.where(x == edges[-1], len(edges) - 1, numpy.searchsorted(edges, x, 'right'))",
    ),
    ..OpDef::DEFAULT
};

/// Number of elements in each bin.
pub static BIN_COUNTS: OpDef = OpDef {
    name: "bin_counts",
    doc: "How many of the real numbers of `x` fall into each of the bins between ascending `edges`, int64. `even` says that the edges are evenly \
        spaced up to rounding.",
    infer: |context| {
        check(context)?;
        one_of(Dims::from_slice(&[context.shape(1)[0] - 1]), DType::I64)
    },
    cpu: Cpu::Kernel(|context| {
        let (x, edges) = operands(context)?;
        let out = context.output(0);
        // SAFETY: both are dense and of one dtype; the output is dense int64 with an element for each bin, allocated for this call.
        unsafe {
            let counts: *mut i64 = out.data_ptr().cast();
            counts.write_bytes(0, out.len());
            let counts = std::slice::from_raw_parts_mut(counts, out.len());
            sort::histogram(
                context.threads,
                &bins(context, &edges),
                x.data_ptr(),
                x.len(),
                counts,
            );
        }
        Ok(())
    }),
    grad: Grad::Stop("counts are integers"),
    probe: Probe::calls(CALLS).against("lambda x, edges, even=False: numpy.histogram(x, edges)[0]"),
    ..BIN_NUMBERS
};

const CALLS: &[&str] = &[
    "f((40,)), np.linspace(-1, 1, 8), True",
    "f((3, 5)), np.linspace(-1, 1, 8)",
    "i((30,), 9), np.arange(7)",
    "f((0,)), np.arange(3.0), True",
];

fn check(context: &CallContext) -> Result<()> {
    if context.dtype_of(0).is_complex() || context.dtype_of(1).is_complex() {
        return Err(context.dtype_error("complex numbers cannot be binned"));
    }
    if context.shape(1).len() != 1 || context.shape(1)[0] == 0 {
        return Err(context.shape_error(format!(
            "`edges` must have 1 axis of at least 1 element, found shape {}",
            Tuple(context.shape(1))
        )));
    }
    Ok(())
}

type Dense<'a> = Cow<'a, Tensor>;

/// Elements and edges, dense, in the dtype that both promote to.
fn operands<'a>(context: &KernelContext<'a>) -> Result<(Dense<'a>, Dense<'a>)> {
    let (x, edges) = (context.input(0), context.input(1));
    let dtype = result_type(
        &[Operand::Array(x.dtype()), Operand::Array(edges.dtype())],
        promotion(),
    );
    let of = |x: &'a Tensor| {
        if x.dtype() == dtype {
            return dense(x, context.threads);
        }
        let converted = Tensor::empty(x.shape(), dtype, x.device())?;
        cpu::copy(x, &converted, context.threads)?;
        Ok(Cow::Owned(converted))
    };
    Ok((of(x)?, of(edges)?))
}

fn bins(context: &KernelContext, edges: &Tensor) -> Bins {
    Bins {
        elem: elem(edges.dtype()),
        edges: edges.data_ptr(),
        len: edges.len(),
        spacing: if context.bool("even") {
            Spacing::Even
        } else {
            Spacing::Any
        },
    }
}
