//! Cross entropy and its gradient (`loss.cuh`), and `ctc_loss` (`ctc.cuh`).

use mxnet_core::context::KernelContext;
use mxnet_core::device_kernels::register as add;
use mxnet_core::{Error, Result};
use mxnet_tensor::{DType, DeviceKind};

use super::attention::computed;
use super::operand::{self, Operand, WALK, bytes, c_type, for_each, report, source};
use crate::launch::{Arg, Grid, launch};
use crate::text::MATH;

const LOSS: &str = include_str!("../text/loss.cuh");
const CTC: &str = include_str!("../text/ctc.cuh");

pub(super) fn register(kind: DeviceKind) -> Result<()> {
    add("cross_entropy", kind, 0, cross_entropy)?;
    add("cross_entropy_gradient", kind, 0, cross_entropy_gradient)?;
    add("ctc_paths", kind, 0, |context| paths(context, false))?;
    add("ctc_paths_gradient", kind, 0, |context| {
        paths(context, true)
    })
}

/// `x` with the axis of the classes moved to the end.
fn axis_last<'a>(context: &KernelContext, x: Operand<'a>) -> Result<Operand<'a>> {
    let axis = context.axis("axis", 0)?;
    let (mut shape, mut strides) = (x.shape.clone(), x.strides.clone());
    let (len, stride) = (shape.remove(axis), strides.remove(axis));
    shape.push(len);
    strides.push(stride);
    Ok(x.with(&shape, &strides))
}

fn ignored(context: &KernelContext) -> [Arg<'static>; 2] {
    let ignore = context.opt_int("ignore");
    [
        Arg::I64(i64::from(ignore.is_some())),
        Arg::I64(ignore.unwrap_or(0)),
    ]
}

fn cross_entropy(context: &KernelContext) -> Result<()> {
    let dtype = context.output(0).dtype();
    let x = axis_last(context, Operand::input(context, 0)?)?.into_dense(context, dtype)?;
    let labels = Operand::dense(context, 1, DType::I64)?;
    let (rows, len) = (labels.len(), x.shape.last().copied().unwrap_or(1));
    if rows == 0 {
        return Ok(());
    }
    let [has_ignore, ignore] = ignored(context);
    let args = [
        Arg::Pointer(x.ptr),
        Arg::Pointer(labels.ptr),
        Arg::Output(0),
        Arg::Output(1),
        Arg::I64(rows as i64),
        Arg::I64(len as i64),
        has_ignore,
        ignore,
    ];
    let grid = Grid {
        blocks: [rows.div_ceil(4).clamp(1, 1 << 16) as u32, 1, 1],
        threads: [128, 1, 1],
        shared_bytes: 0,
    };
    launch(
        context,
        &key("FORWARD", dtype),
        || text("FORWARD", dtype),
        grid,
        &args,
    )
}

fn cross_entropy_gradient(context: &KernelContext) -> Result<()> {
    let out = context.output(0);
    let dtype = out.dtype();
    let x = axis_last(context, Operand::input(context, 0)?)?.into_dense(context, dtype)?;
    let labels = Operand::dense(context, 1, DType::I64)?;
    let lse = Operand::dense(context, 2, computed(dtype))?;
    let dloss = Operand::dense(context, 3, computed(dtype))?;
    let dx = Operand::new(context, &x.shape, dtype)?;
    let (rows, len) = (labels.len(), x.shape.last().copied().unwrap_or(1));
    if x.is_empty() {
        return Ok(());
    }
    let [has_ignore, ignore] = ignored(context);
    let args = [
        Arg::Pointer(x.ptr),
        Arg::Pointer(labels.ptr),
        Arg::Pointer(lse.ptr),
        Arg::Pointer(dloss.ptr),
        Arg::Pointer(dx.ptr),
        Arg::I64(rows as i64),
        Arg::I64(len as i64),
        has_ignore,
        ignore,
    ];
    launch(
        context,
        &key("GRADIENT", dtype),
        || text("GRADIENT", dtype),
        for_each(x.len()),
        &args,
    )?;
    operand::copy(context, &dx, &axis_last(context, Operand::of(out))?)
}

fn key(which: &str, dtype: DType) -> String {
    format!("cross_entropy_{}:{}", which.to_lowercase(), c_type(dtype))
}

fn text(which: &str, dtype: DType) -> String {
    let head = format!(
        "typedef {} T;\ntypedef compute<T> R;\n#define {which}",
        c_type(dtype)
    );
    source(&[MATH, WALK, &head, LOSS])
}

/// Loss of a sequence without a valid alignment.
const NEVER: f64 = 1e30;

#[repr(C)]
#[derive(Clone, Copy)]
struct Ctc {
    batch: i64,
    states: i64,
    /// Rows per padded sample; 0 without padding.
    padded: i64,
    rows: i64,
    emitted: u64,
    may_skip: u64,
    num_states: u64,
    frames: u64,
}

fn paths(context: &KernelContext, is_gradient: bool) -> Result<()> {
    let emitted = Operand::dense(context, 0, DType::F64)?;
    let (may_skip, num_states) = (
        Operand::dense(context, 1, DType::I64)?,
        Operand::dense(context, 2, DType::I64)?,
    );
    let frames = Operand::dense(context, 3, DType::I64)?;
    let (batch, states) = (may_skip.shape[0], may_skip.shape[1]);
    let rows = emitted.len().checked_div(states).unwrap_or(0);
    let g = Ctc {
        batch: batch as i64,
        states: states as i64,
        padded: if emitted.shape.len() == 3 {
            emitted.shape[0] as i64
        } else {
            0
        },
        rows: rows as i64,
        emitted: emitted.ptr,
        may_skip: may_skip.ptr,
        num_states: num_states.ptr,
        frames: frames.ptr,
    };
    let is_ragged = emitted.shape.len() == 2;
    let out = Operand::new(context, context.output(0).shape(), DType::F64)?;
    if batch == 0 {
        return operand::fill(
            context,
            &Operand::of(context.output(0)),
            mxnet_tensor::Scalar::I64(0),
        );
    }
    // Forward variables and, for gradients, backward variables.
    let alpha = Operand::new(context, &[rows.max(1), states], DType::F64)?;
    let beta = Operand::new(
        context,
        &[if is_gradient { rows.max(1) } else { 1 }, states],
        DType::F64,
    )?;
    let dloss = if is_gradient {
        Some(Operand::dense(context, 4, DType::F64)?)
    } else {
        None
    };
    let faults = report(context, move |_| {
        let problem = format!(
            "offsets of frames start with 0, do not decrease and end with their number {rows}"
        );
        Error::value("ctc_loss", problem)
    })?;
    let args = [
        Arg::Bytes(bytes(&g)),
        Arg::I64(i64::from(is_ragged)),
        Arg::Pointer(alpha.ptr),
        Arg::Pointer(beta.ptr),
        Arg::Pointer(dloss.map_or(0, |x| x.ptr)),
        Arg::Pointer(out.ptr),
        Arg::F64(NEVER),
        faults,
    ];
    // One block per sample, one thread per state.
    let grid = Grid {
        blocks: [batch.clamp(1, 1 << 20) as u32, 1, 1],
        threads: [states.next_multiple_of(32).clamp(32, 256) as u32, 1, 1],
        shared_bytes: 0,
    };
    launch(context, "ctc", ctc_text, grid, &args)?;
    operand::copy(context, &out, &Operand::of(context.output(0)))
}

fn ctc_text() -> String {
    source(&[MATH, WALK, operand::FAULT, CTC])
}

pub(super) fn texts(all: &mut Vec<(String, String)>) {
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        for which in ["FORWARD", "GRADIENT"] {
            all.push((key(which, dtype), text(which, dtype)));
        }
    }
    all.push(("ctc".into(), ctc_text()));
}
