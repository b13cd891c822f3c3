//! Operators that sort dense rows along the last axis; the public functions in `sort.rs` are composed of them.
#![allow(unsafe_code)]

use mxnet_engine::{Access, engine};
use mxnet_kernels::sort::{self as kernel, Chosen, Order, Rows};
use mxnet_tensor::{DType, Dims, Tensor};
use smallvec::SmallVec;

use crate::Array;
use crate::args::{Attrs, Param, ParamKind, Value};
use crate::autograd::GradContext;
use crate::batching::Batch;
use crate::context::{CallContext, KernelContext};
use crate::error::Result;
use crate::index::{SCATTER_ALONG, dense, gather_along, is_writable};
use crate::invoke::invoke1;
use crate::launch::{Pool, elem};
use crate::opdef::{Cost, Cpu, Grad, Grads, Inferred, Keep, OpDef, Probe, one_of};

/// Default fields for these operators.
const ROWS: OpDef = OpDef {
    params: &[Param::array("x"), Param::bool("descending", false)],
    infer: |context| {
        row_len(context)?;
        context.same_as(0)
    },
    // A rough estimate: it only ensures that all but small arrays are sorted on another thread.
    cost: Cost::Of(|context| {
        let n = context.input(0).len() as u64;
        n * u64::from(n.max(2).ilog2())
    }),
    grad: Grad::Stop("positions are integers"),
    ..OpDef::DEFAULT
};

/// Sorts every row.
pub static SORT_ROWS: OpDef = OpDef {
    name: "sort_rows",
    doc: "The rows (last axis) of an array, sorted. NaN counts as the largest value.",
    cpu: Cpu::Kernel(|context| {
        let x = dense(context.input(0), context.threads)?;
        // SAFETY: input and output are dense and of one shape; they are the same memory or do not overlap.
        unsafe {
            kernel::sort(
                context.threads,
                order(context),
                &rows(&x),
                context.output(0).data_ptr(),
            )
        };
        Ok(())
    }),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        let at = argsort_rows(g.input(0), g.bool("descending"))?;
        scattered(g, &at)
    }),
    probe: Probe::calls(&["f((3, 5))", "f((4,)), True", "i((2, 6), 4)", "f((2, 0))"])
        .against("lambda x, d=False: numpy.sort(x)[..., ::-1] if d else numpy.sort(x)"),
    batch: Batch::Leading(&[1]),
    in_place: true,
    ..ROWS
};

/// As [`SORT_ROWS`] in place for a dense array of at most 4096 elements, without dispatching a call. Returns whether the rows were sorted; if not, the array is
/// unchanged.
pub fn try_sort_in_place(x: &Array) -> bool {
    /// Up to this number of elements, sorting takes less time than dispatching a call.
    const MAX_LEN: usize = 4096;
    if x.ndim() == 0
        || x.is_empty()
        || x.len() > MAX_LEN
        || !is_writable(x)
        || !x.layout().is_contiguous()
    {
        return false;
    }
    let storage = x.tensor().storage();
    let Some(_hold) = engine().try_hold(storage.var(), Access::Write, x.len() as u64) else {
        return false;
    };
    storage.bump_version();
    let (sorted, first) = (rows(x.tensor()), x.tensor().data_ptr());
    // SAFETY: dense rows, which `hold` allows to write; the kernel allows input and output to be the same memory.
    unsafe { kernel::sort(&Pool, Order::Ascending, &sorted, first) };
    true
}

/// The positions that sort every row.
pub static ARGSORT_ROWS: OpDef = OpDef {
    name: "argsort_rows",
    doc: "The int64 positions that sort the rows (last axis) of an array. Equal elements keep their order.",
    infer: positions,
    cpu: Cpu::Kernel(|context| {
        let x = dense(context.input(0), context.threads)?;
        let out = context.output(0).data_ptr().cast();
        // SAFETY: the input is dense, the output dense int64 of its shape, allocated for this call.
        unsafe { kernel::argsort(context.threads, order(context), &rows(&x), out) };
        Ok(())
    }),
    probe: Probe::calls(&["f((3, 5))", "i((2, 6), 4)", "f((2, 0))"])
        .against("lambda x: numpy.argsort(x, kind='stable')"),
    batch: Batch::Leading(&[1]),
    ..ROWS
};

const SELECT: &[Param] = &[Param::array("x"), Param::required("kth", ParamKind::Int)];

/// Partitions every row.
pub static PARTITION_ROWS: OpDef = OpDef {
    name: "partition_rows",
    params: SELECT,
    doc: "The rows (last axis) of an array, partitioned: element `kth` is the one that sorting would put there, no element before it is larger and \
        none after it is smaller.",
    cpu: Cpu::Kernel(|context| {
        let x = dense(context.input(0), context.threads)?;
        if !x.is_empty() {
            // SAFETY: as for `SORT_ROWS`; `kth` lies within the row (inference).
            unsafe {
                kernel::partition(
                    context.threads,
                    kth(context),
                    &rows(&x),
                    context.output(0).data_ptr(),
                )
            };
        }
        Ok(())
    }),
    infer: |context| {
        kth_exists(context)?;
        context.same_as(0)
    },
    grad: Grad::Rule(Keep::INPUTS, |g| {
        let attrs: Attrs = [g.get("kth").clone()].into_iter().collect();
        let at = invoke1(&ARGPARTITION_ROWS, &[g.input(0)], &attrs)?;
        scattered(g, &at)
    }),
    probe: Probe::calls(&["f((3, 2)), 1", "f((2, 2)), 0"]).against("lambda x, kth: numpy.sort(x)"),
    batch: Batch::Leading(&[1]),
    in_place: true,
    ..ROWS
};

/// The positions that partition every row.
pub static ARGPARTITION_ROWS: OpDef = OpDef {
    name: "argpartition_rows",
    params: SELECT,
    doc: "The int64 positions of `partition_rows`.",
    infer: |context| {
        kth_exists(context)?;
        positions(context)
    },
    cpu: Cpu::Kernel(|context| {
        let x = dense(context.input(0), context.threads)?;
        if !x.is_empty() {
            let out = context.output(0).data_ptr().cast();
            // SAFETY: as for `ARGSORT_ROWS`; `kth` lies within the row (inference).
            unsafe { kernel::argpartition(context.threads, kth(context), &rows(&x), out) };
        }
        Ok(())
    }),
    probe: Probe::calls(&["f((3, 2)), 1", "f((2, 2)), 0"])
        .against("lambda x, kth: numpy.argsort(x)"),
    batch: Batch::Leading(&[1]),
    ..ROWS
};

const FIRST: &[Param] = &[
    Param::array("x"),
    Param::required("k", ParamKind::Int),
    Param::bool("descending", true),
];

/// Positions of the `k` first elements of every row in sorted order.
pub static TOPK_ROWS: OpDef = OpDef {
    name: "topk_rows",
    params: FIRST,
    doc: "The int64 positions of the first `k` elements of every row (last axis) of an array, in order; the largest first if \
          `descending`. Equal elements keep their order.",
    infer: |context| {
        let n = row_len(context)?;
        let k = context.int("k");
        if k < 0 || k as usize > n {
            return Err(context.value_error(format!("`k` must be in 0..={n} (size of the axis), found {k}")));
        }
        let mut shape = Dims::from_slice(context.shape(0));
        let last = shape.len() - 1;
        shape[last] = k as usize;
        one_of(shape, DType::I64)
    },
    cpu: Cpu::Kernel(|context| {
        let x = dense(context.input(0), context.threads)?;
        let chosen = Chosen {
            values: std::ptr::null_mut(),
            indices: context.output(0).data_ptr().cast(),
            mask: std::ptr::null_mut(),
        };
        if !x.is_empty() {
            // SAFETY: the input is dense, the output dense int64 with `k` elements a row, allocated for this call; `k` is at most the row's length.
            unsafe { kernel::topk(context.threads, order(context), context.int("k") as usize, &rows(&x), &chosen) };
        }
        Ok(())
    }),
    probe: Probe::calls(&["f((3, 5)), 2", "f((4,)), 4", "f((2, 6)), 2, False"])
        .against("lambda x, k, descending=True: numpy.argsort(-x if descending else x, kind='stable')[..., :k]"),
    batch: Batch::Leading(&[1]),
    ..ROWS
};

/// Marks the elements that are among the `k` first of their row in sorted order.
pub static TOPK_MASK: OpDef = OpDef {
    name: "topk_mask",
    params: FIRST,
    doc: "Whether each element of an array is among the first `k` of its row (see `topk_rows`).",
    infer: |context| {
        (TOPK_ROWS.infer)(context)?;
        one_of(Dims::from_slice(context.shape(0)), DType::Bool)
    },
    cpu: Cpu::Kernel(|context| {
        let x = dense(context.input(0), context.threads)?;
        let chosen = Chosen {
            values: std::ptr::null_mut(),
            indices: std::ptr::null_mut(),
            mask: context.output(0).data_ptr(),
        };
        if !x.is_empty() {
            // SAFETY: as for `TOPK_ROWS`; the output has one byte for each element.
            unsafe {
                kernel::topk(
                    context.threads,
                    order(context),
                    context.int("k") as usize,
                    &rows(&x),
                    &chosen,
                )
            };
        }
        Ok(())
    }),
    grad: Grad::Stop("booleans have no gradient"),
    probe: Probe::calls(&["f((3, 5)), 2", "f((4,)), 0"])
        .against("lambda x, k: numpy.argsort(numpy.argsort(-x)) < k"),
    batch: Batch::Leading(&[1]),
    ..ROWS
};

/// Length of the rows.
fn row_len(context: &CallContext) -> Result<usize> {
    match context.shape(0).last() {
        Some(&n) => Ok(n),
        None => Err(context.shape_error("a 0-d array has no rows")),
    }
}

fn positions(context: &CallContext) -> Result<Inferred> {
    row_len(context)?;
    one_of(Dims::from_slice(context.shape(0)), DType::I64)
}

fn kth_exists(context: &CallContext) -> Result<()> {
    let (n, kth) = (row_len(context)?, context.int("kth"));
    if (0..n as i64).contains(&kth) || context.input(0).is_empty() {
        Ok(())
    } else {
        Err(context.value_error(format!("kth(={kth}) out of bounds ({n})")))
    }
}

fn kth(context: &KernelContext) -> usize {
    context.int("kth") as usize
}

fn order(context: &KernelContext) -> Order {
    if context.bool("descending") {
        Order::Descending
    } else {
        Order::Ascending
    }
}

pub(super) fn rows(x: &Tensor) -> Rows {
    let n = x.shape().last().copied().unwrap_or(1);
    Rows {
        ptr: x.data_ptr(),
        elem: elem(x.dtype()),
        rows: x.len().checked_div(n).unwrap_or(0),
        n,
    }
}

/// The positions that sort every row.
pub(super) fn argsort_rows(x: &Array, descending: bool) -> Result<Array> {
    invoke1(
        &ARGSORT_ROWS,
        &[x],
        &[Value::Bool(descending)].into_iter().collect(),
    )
}

/// The gradient of permuted rows: scatters the cotangents back to the elements' positions.
pub(super) fn scattered(g: &GradContext, at: &Array) -> Result<Grads> {
    let axis = g.shape(0).len() as i64 - 1;
    let attrs: Attrs = [Value::Int(axis), Value::from(g.shape(0))]
        .into_iter()
        .collect();
    Ok(SmallVec::from_iter([Some(invoke1(
        &SCATTER_ALONG,
        &[g.dy(0), at],
        &attrs,
    )?)]))
}

/// Gathers elements of dense rows.
pub(super) fn at_positions(x: &Array, at: &Array) -> Result<Array> {
    gather_along(x, at, x.ndim() - 1)
}
