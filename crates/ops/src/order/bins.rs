//! Bin indices and counts; `histogram` is composed of them.
#![allow(unsafe_code)]

use std::borrow::Cow;

use mxnet_kernels::sort::{self, Bins, Spacing};
use mxnet_tensor::{DType, Dims, Operand, Tensor, promotion, result_type};

use crate::args::Param;
use crate::context::{CallCx, KernelCx};
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
    infer: |cx| {
        check(cx)?;
        one_of(Dims::from_slice(cx.shape(0)), DType::I64)
    },
    cpu: Cpu::Kernel(|cx| {
        let (x, edges) = operands(cx)?;
        // SAFETY: both are dense and of one dtype; the output is dense int64 of the numbers' shape, allocated for this call.
        unsafe {
            sort::bin_numbers(
                cx.threads,
                &bins(cx, &edges),
                x.data_ptr(),
                x.len(),
                cx.output(0).data_ptr().cast(),
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
    infer: |cx| {
        check(cx)?;
        one_of(Dims::from_slice(&[cx.shape(1)[0] - 1]), DType::I64)
    },
    cpu: Cpu::Kernel(|cx| {
        let (x, edges) = operands(cx)?;
        let out = cx.output(0);
        // SAFETY: both are dense and of one dtype; the output is dense int64 with an element for each bin, allocated for this call.
        unsafe {
            let counts: *mut i64 = out.data_ptr().cast();
            counts.write_bytes(0, out.len());
            let counts = std::slice::from_raw_parts_mut(counts, out.len());
            sort::histogram(cx.threads, &bins(cx, &edges), x.data_ptr(), x.len(), counts);
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

fn check(cx: &CallCx) -> Result<()> {
    if cx.dtype_of(0).is_complex() || cx.dtype_of(1).is_complex() {
        return Err(cx.dtype_error("complex numbers cannot be binned"));
    }
    if cx.shape(1).len() != 1 || cx.shape(1)[0] == 0 {
        return Err(cx.shape_error(format!(
            "`edges` must have 1 axis of at least 1 element, found shape {}",
            Tuple(cx.shape(1))
        )));
    }
    Ok(())
}

type Dense<'a> = Cow<'a, Tensor>;

/// Elements and edges, dense, in the dtype that both promote to.
fn operands<'a>(cx: &KernelCx<'a>) -> Result<(Dense<'a>, Dense<'a>)> {
    let (x, edges) = (cx.input(0), cx.input(1));
    let dtype = result_type(
        &[Operand::Array(x.dtype()), Operand::Array(edges.dtype())],
        promotion(),
    );
    let of = |x: &'a Tensor| {
        if x.dtype() == dtype {
            return dense(x, cx.threads);
        }
        let converted = Tensor::empty(x.shape(), dtype, x.device())?;
        cpu::copy(x, &converted, cx.threads)?;
        Ok(Cow::Owned(converted))
    };
    Ok((of(x)?, of(edges)?))
}

fn bins(cx: &KernelCx, edges: &Tensor) -> Bins {
    Bins {
        elem: elem(edges.dtype()),
        edges: edges.data_ptr(),
        len: edges.len(),
        spacing: if cx.bool("even") {
            Spacing::Even
        } else {
            Spacing::Any
        },
    }
}
