//! Order statistics of rows; medians and quantiles are composed of them.
#![allow(unsafe_code)]

use mxnet_kernels::sort::{RowRanks, argselect, argselect_each, select, select_each};
use mxnet_tensor::{DType, Dims, Tensor};
use smallvec::SmallVec;

use super::rows::{rows, scattered};
use crate::args::{Attrs, Param, ParamKind};
use crate::batching::Batch;
use crate::context::{CallCx, KernelCx};
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
    infer: |cx| ranked(cx, cx.dtype_of(0)),
    cpu: Cpu::Kernel(|cx| {
        let x = dense(cx.input(0), cx.threads)?;
        if !cx.output(0).is_empty() {
            // SAFETY: the input is dense, the output dense with an element for each rank of each row, allocated for this call; ranks
            // ascend and lie within the rows (inference).
            unsafe { select(cx.threads, &ranks(cx), &rows(&x), cx.output(0).data_ptr()) };
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
    infer: |cx| ranked(cx, DType::I64),
    cpu: Cpu::Kernel(|cx| {
        let x = dense(cx.input(0), cx.threads)?;
        if !cx.output(0).is_empty() {
            let out = cx.output(0).data_ptr().cast();
            // SAFETY: as for `SELECT_ROWS`, the output being int64.
            unsafe { argselect(cx.threads, &ranks(cx), &rows(&x), out) };
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
    infer: |cx| ranked_each(cx, cx.dtype_of(0)),
    cpu: Cpu::Kernel(|cx| {
        let x = dense(cx.input(0), cx.threads)?;
        if !cx.output(0).is_empty() {
            let n = rows(&x).n;
            let ranks = positions(cx.op.name, cx.input(1), n, cx.threads)?;
            // SAFETY: inputs are dense, ranks lie within the rows (`positions`); the output was allocated for this call, is dense and has one element
            // for each rank.
            unsafe {
                select_each(
                    cx.threads,
                    &row_ranks(&ranks),
                    &rows(&x),
                    cx.output(0).data_ptr(),
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
    infer: |cx| ranked_each(cx, DType::I64),
    cpu: Cpu::Kernel(|cx| {
        let x = dense(cx.input(0), cx.threads)?;
        if !cx.output(0).is_empty() {
            let n = rows(&x).n;
            let ranks = positions(cx.op.name, cx.input(1), n, cx.threads)?;
            let out = cx.output(0).data_ptr().cast();
            // SAFETY: as for `SELECT_EACH`, the output being int64.
            unsafe { argselect_each(cx.threads, &row_ranks(&ranks), &rows(&x), out) };
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

fn ranked_each(cx: &CallCx, dtype: DType) -> Result<Inferred> {
    let (x, ranks) = (cx.shape(0), cx.shape(1));
    let leading = |shape: &[usize]| shape.split_last().map(|(_, rest)| Dims::from_slice(rest));
    if leading(x).is_none() || leading(x) != leading(ranks) || cx.dtype_of(1) != DType::I64 {
        return Err(
            cx.shape_error("`ranks` must be int64, with the axes of `x` but for the last one")
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

fn ranked(cx: &CallCx, dtype: DType) -> Result<Inferred> {
    let Some(&n) = cx.shape(0).last() else {
        return Err(cx.shape_error("a 0-d array has no rows"));
    };
    let ranks = cx.ints("ranks");
    if !ranks.is_sorted() || ranks.iter().any(|rank| !(0..n as i64).contains(rank)) {
        return Err(cx.value_error(format!(
            "`ranks` must ascend and be in 0..{n} (size of the axis), found {}",
            crate::Tuple(ranks)
        )));
    }
    let mut shape = Dims::from_slice(cx.shape(0));
    let last = shape.len() - 1;
    shape[last] = ranks.len();
    one_of(shape, dtype)
}

fn ranks(cx: &KernelCx) -> SmallVec<[usize; 8]> {
    cx.ints("ranks").iter().map(|&rank| rank as usize).collect()
}
