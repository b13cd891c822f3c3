//! Order statistics of rows; medians and quantiles are composed of them.
#![allow(unsafe_code)]

use mxnet_kernels::sort::{RowRanks, argselect, argselect_each, select, select_each};
use mxnet_tensor::{DType, Dims, Tensor};
use smallvec::SmallVec;

use super::rows::{rows, scattered};
use crate::args::{Attrs, Param, ParamKind};
use crate::batching::Batch;
use crate::context::{CallContext, KernelContext};
use crate::error::Result;
use crate::index::{dense, positions};
use crate::invoke::invoke1;
use crate::opdef::{Cost, Cpu, Grad, Inferred, Keep, OpDef, Probe, one_of};

const RANKED: OpDef = OpDef {
    params: &[Param::array("x"), Param::required("ranks", ParamKind::Ints)],
    cost: Cost::PerKiB(1000),
    ..OpDef::DEFAULT
};

/// Elements of given ranks of every row.
pub static SELECT_ROWS: OpDef = OpDef {
    name: "select_rows",
    doc: "For every row (last axis) the elements that sorting would put at `ranks`, which ascend. A row with a NaN gives NaN for each.",
    infer: |context| ranked(context, context.dtype_of(0)),
    cpu: Cpu::Kernel(|context| {
        let x = dense(context.input(0), context.threads)?;
        if !context.output(0).is_empty() {
            // SAFETY: the input is dense, the output dense with an element for each rank of each row, allocated for this call; ranks
            // ascend and lie within the rows (inference).
            unsafe {
                select(
                    context.threads,
                    &ranks(context),
                    &rows(&x),
                    context.output(0).data_ptr(),
                )
            };
        }
        Ok(())
    }),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        let attrs: Attrs = [g.get("ranks").clone()].into_iter().collect();
        let at = invoke1(&ARGSELECT_ROWS, &[g.input(0)], &attrs)?;
        scattered(g, &at)
    }),
    probe: Probe::calls(&[
        "f((3, 5)), (0, 2)",
        "f((4,)), (3,)",
        "i((2, 6), 9), (1, 1, 5)",
    ])
    .against("lambda x, ranks: numpy.sort(x)[..., list(ranks)]"),
    batch: Batch::Leading(&[1]),
    ..RANKED
};

/// Positions of elements of given ranks of every row.
pub static ARGSELECT_ROWS: OpDef = OpDef {
    name: "argselect_rows",
    doc: "For every row (last axis) the int64 positions of the elements that a stable sort would put at `ranks`, which ascend.",
    infer: |context| ranked(context, DType::I64),
    cpu: Cpu::Kernel(|context| {
        let x = dense(context.input(0), context.threads)?;
        if !context.output(0).is_empty() {
            let out = context.output(0).data_ptr().cast();
            // SAFETY: as for `SELECT_ROWS`, the output being int64.
            unsafe { argselect(context.threads, &ranks(context), &rows(&x), out) };
        }
        Ok(())
    }),
    grad: Grad::Stop("positions are integers"),
    probe: Probe::calls(&["f((3, 5)), (0, 2)", "i((2, 6), 4), (1, 5)"])
        .against("lambda x, ranks: numpy.argsort(x, kind='stable')[..., list(ranks)]"),
    batch: Batch::Leading(&[1]),
    ..RANKED
};

/// Elements of ranks that differ from row to row.
pub static SELECT_EACH: OpDef = OpDef {
    name: "select_each",
    params: EACH,
    doc: "For every row (last axis) of `x` the elements that sorting (NaN last) would put at the int64 ranks in the same row of `ranks`.",
    infer: |context| ranked_each(context, context.dtype_of(0)),
    cpu: Cpu::Kernel(|context| {
        let x = dense(context.input(0), context.threads)?;
        if !context.output(0).is_empty() {
            let n = rows(&x).n;
            let ranks = positions(context.op.name, context.input(1), n, context.threads)?;
            // SAFETY: inputs are dense, ranks lie within the rows (`positions`); the output was allocated for this call, is dense and has one element
            // for each rank.
            unsafe {
                select_each(
                    context.threads,
                    &row_ranks(&ranks),
                    &rows(&x),
                    context.output(0).data_ptr(),
                )
            };
        }
        Ok(())
    }),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        let at = invoke1(&ARGSELECT_EACH, &[g.input(0), g.input(1)], &Attrs::none())?;
        let mut grads = scattered(g, &at)?;
        grads.push(None);
        Ok(grads)
    }),
    probe: Probe::calls(&["f((3, 5)), i((3, 2), 5)", "f((4,)), i((1,), 4)"])
        .against("lambda x, ranks: numpy.take_along_axis(numpy.sort(x), ranks, -1)"),
    positions: &[1],
    ..RANKED
};

/// Positions of elements of ranks that differ from row to row.
pub static ARGSELECT_EACH: OpDef = OpDef {
    name: "argselect_each",
    params: EACH,
    doc: "For every row (last axis) of `x` the int64 positions of the elements of `select_each`.",
    infer: |context| ranked_each(context, DType::I64),
    cpu: Cpu::Kernel(|context| {
        let x = dense(context.input(0), context.threads)?;
        if !context.output(0).is_empty() {
            let n = rows(&x).n;
            let ranks = positions(context.op.name, context.input(1), n, context.threads)?;
            let out = context.output(0).data_ptr().cast();
            // SAFETY: as for `SELECT_EACH`, the output being int64.
            unsafe { argselect_each(context.threads, &row_ranks(&ranks), &rows(&x), out) };
        }
        Ok(())
    }),
    grad: Grad::Stop("positions are integers"),
    probe: Probe::calls(&["f((3, 5)), i((3, 2), 5)"]).against(
        "lambda x, ranks: numpy.take_along_axis(numpy.argsort(x, kind='stable'), ranks, -1)",
    ),
    positions: &[1],
    ..RANKED
};

const EACH: &[Param] = &[Param::array("x"), Param::array("ranks")];

fn ranked_each(context: &CallContext, dtype: DType) -> Result<Inferred> {
    let (x, ranks) = (context.shape(0), context.shape(1));
    let leading = |shape: &[usize]| shape.split_last().map(|(_, rest)| Dims::from_slice(rest));
    if leading(x).is_none() || leading(x) != leading(ranks) || context.dtype_of(1) != DType::I64 {
        return Err(
            context.shape_error("`ranks` must be int64, with the axes of `x` but for the last one")
        );
    }
    one_of(Dims::from_slice(ranks), dtype)
}

fn row_ranks(ranks: &Tensor) -> RowRanks {
    RowRanks {
        ptr: ranks.data_ptr().cast(),
        k: ranks.shape().last().copied().unwrap_or(1),
    }
}

fn ranked(context: &CallContext, dtype: DType) -> Result<Inferred> {
    let Some(&n) = context.shape(0).last() else {
        return Err(context.shape_error("a 0-d array has no rows"));
    };
    let ranks = context.ints("ranks");
    if !ranks.is_sorted() || ranks.iter().any(|rank| !(0..n as i64).contains(rank)) {
        return Err(context.value_error(format!(
            "`ranks` must ascend and be in 0..{n} (size of the axis), found {}",
            crate::Tuple(ranks)
        )));
    }
    let mut shape = Dims::from_slice(context.shape(0));
    let last = shape.len() - 1;
    shape[last] = ranks.len();
    one_of(shape, dtype)
}

fn ranks(context: &KernelContext) -> SmallVec<[usize; 8]> {
    context
        .ints("ranks")
        .iter()
        .map(|&rank| rank as usize)
        .collect()
}
