//! Softmax, log-softmax and their gradients, and cross entropy with labels.

use mxnet_core::{KernelContext, Result, device_kernels};
use mxnet_tensor::{DType, DeviceKind};

use super::operand::Operand;
use crate::launch::{Arg, Grid, launch};
use crate::text::{MATH, type_name};

const SOFTMAX: &str = include_str!("../text/softmax.cuh");

pub(crate) fn register(kind: DeviceKind) -> Result<()> {
    device_kernels::register("softmax", kind, 0, |context| softmax(context, "softmax"))?;
    device_kernels::register("log_softmax", kind, 0, |context| {
        softmax(context, "log_softmax")
    })?;
    device_kernels::register("softmax_gradient", kind, 0, gradient)?;
    device_kernels::register("cross_entropy", kind, 0, cross_entropy)?;
    device_kernels::register("cross_entropy_gradient", kind, 0, cross_entropy_gradient)
}

/// Rows of data: `outer * inner` rows of `len` elements with stride `inner`.
struct Rows {
    outer: usize,
    len: usize,
    inner: usize,
}

impl Rows {
    fn new(shape: &[usize], axis: usize) -> Rows {
        Rows {
            outer: shape[..axis].iter().product(),
            len: shape[axis],
            inner: shape[axis + 1..].iter().product(),
        }
    }

    fn count(&self) -> usize {
        self.outer * self.inner
    }

    /// Whether each thread computes a row: for short rows, and for rows that are adjacent in memory.
    fn by_thread(&self) -> bool {
        self.len <= 32 || self.inner >= 32 && self.count() >= 4096
    }

    fn grid(&self) -> Grid {
        let rows = self.count();
        match self.by_thread() {
            true => Grid::of_len(rows),
            false => {
                let threads = self.len.next_multiple_of(32).clamp(32, 256);
                Grid::of_blocks(rows.clamp(1, 1 << 16) as u32, threads as u32)
            }
        }
    }

    fn variant(&self) -> &'static str {
        match self.by_thread() {
            true => "Thread",
            false => "Block",
        }
    }

    fn args(&self) -> [Arg<'static>; 3] {
        [self.count(), self.len, self.inner].map(|n| Arg::I64(n as i64))
    }
}

/// A kernel source for the types of data, result and computation; `variant` says whether a block or a thread computes a row.
fn text(function: &str, types: [DType; 3], variant: &str) -> String {
    let [x, y, compute] = types.map(type_name);
    format!(
        "{MATH}
namespace mx {{
typedef {x} X;
typedef {y} Y;
typedef {compute} T;
}}
{SOFTMAX}
namespace mx {{ typedef By{variant} Variant; }}
{function}"
    )
}

fn key(function: &str, types: [DType; 3], variant: &str) -> String {
    let [x, y, compute] = types.map(DType::name);
    format!("{function}:{x}:{y}:{compute}:{variant}")
}

/// The compute type of a dtype.
fn compute(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        other => other,
    }
}

/// Names and calls of the functions.
const FUNCTIONS: &[(&str, &str)] = &[
    (
        "softmax",
        "extern \"C\" __global__ void kernel(const mx::X *x, const mx::i64 *lengths, mx::Y *y, double temperature, mx::i64 rows, mx::i64 len, mx::i64 inner) {
    mx::softmax<mx::Variant, false>(x, lengths, y, temperature, rows, len, inner);
}",
    ),
    (
        "log_softmax",
        "extern \"C\" __global__ void kernel(const mx::X *x, const mx::i64 *lengths, mx::Y *y, double temperature, mx::i64 rows, mx::i64 len, mx::i64 inner) {
    mx::softmax<mx::Variant, true>(x, lengths, y, temperature, rows, len, inner);
}",
    ),
    (
        "softmax_gradient",
        "extern \"C\" __global__ void kernel(const mx::X *y, const mx::X *dy, const mx::i64 *lengths, mx::Y *dx, double temperature, mx::i64 rows, mx::i64 len, mx::i64 inner) {
    mx::softmax_gradient<mx::Variant, false>(y, dy, lengths, dx, temperature, rows, len, inner);
}",
    ),
    (
        "log_softmax_gradient",
        "extern \"C\" __global__ void kernel(const mx::X *y, const mx::X *dy, const mx::i64 *lengths, mx::Y *dx, double temperature, mx::i64 rows, mx::i64 len, mx::i64 inner) {
    mx::softmax_gradient<mx::Variant, true>(y, dy, lengths, dx, temperature, rows, len, inner);
}",
    ),
    (
        "cross_entropy",
        "extern \"C\" __global__ void kernel(const mx::X *x, const mx::i64 *labels, mx::Y *loss, mx::Y *lse, mx::i64 has_ignored, mx::i64 ignored, mx::i64 rows, mx::i64 len, mx::i64 inner) {
    mx::cross_entropy<mx::Variant>(x, labels, loss, lse, has_ignored != 0, ignored, rows, len, inner);
}",
    ),
    (
        "cross_entropy_gradient",
        "extern \"C\" __global__ void kernel(const mx::X *x, const mx::i64 *labels, const mx::X *lse, const mx::X *dloss, mx::Y *dx, mx::i64 has_ignored, mx::i64 ignored, mx::i64 rows, mx::i64 len, mx::i64 inner) {
    mx::cross_entropy_gradient<mx::Variant>(x, labels, lse, dloss, dx, has_ignored != 0, ignored, rows, len, inner);
}",
    ),
];

fn body_of(function: &str) -> &'static str {
    FUNCTIONS
        .iter()
        .find(|f| f.0 == function)
        .map_or("", |f| f.1)
}

fn run(
    context: &KernelContext,
    function: &str,
    types: [DType; 3],
    rows: &Rows,
    args: &[Arg],
) -> Result<()> {
    if rows.count() * rows.len.max(1) == 0 {
        return Ok(());
    }
    let variant = rows.variant();
    let source = || text(body_of(function), types, variant);
    launch(
        context,
        &key(function, types, variant),
        source,
        rows.grid(),
        args,
    )
}

/// The address of an optional operand; 0 if it is absent.
fn address(x: Option<&Operand>) -> Arg<'static> {
    Arg::Pointer(x.map_or(0, |x| x.ptr))
}

fn softmax(context: &KernelContext, function: &str) -> Result<()> {
    let to = context.output(0).dtype();
    // Integers are converted to the compute type first; f16 and bf16 are read as they are.
    let from = match context.input(0).dtype() {
        dtype if dtype.is_float() => dtype,
        _ => compute(to),
    };
    let x = Operand::dense(context, 0, from)?;
    let lengths = Operand::dense_or_none(context, 1, DType::I64)?;
    let rows = Rows::new(&x.shape, context.axis("axis", 0)?);
    let y = Staged::new(context, 0)?;
    let [count, len, inner] = rows.args();
    let args = [
        Arg::Pointer(x.ptr),
        address(lengths.as_ref()),
        Arg::Pointer(y.ptr()),
        Arg::F64(context.opt_float("temperature").unwrap_or(1.0)),
        count,
        len,
        inner,
    ];
    run(context, function, [from, to, compute(to)], &rows, &args)?;
    y.finish(context)
}

fn gradient(context: &KernelContext) -> Result<()> {
    let to = context.output(0).dtype();
    let from = context.input(0).dtype();
    let y = Operand::dense(context, 0, from)?;
    let dy = Operand::dense(context, 1, from)?;
    let lengths = Operand::dense_or_none(context, 2, DType::I64)?;
    let rows = Rows::new(&y.shape, context.axis("axis", 0)?);
    let dx = Staged::new(context, 0)?;
    let function = match context.bool("log") {
        true => "log_softmax_gradient",
        false => "softmax_gradient",
    };
    let [count, len, inner] = rows.args();
    let args = [
        Arg::Pointer(y.ptr),
        Arg::Pointer(dy.ptr),
        address(lengths.as_ref()),
        Arg::Pointer(dx.ptr()),
        Arg::F64(context.opt_float("temperature").unwrap_or(1.0)),
        count,
        len,
        inner,
    ];
    run(context, function, [from, to, compute(to)], &rows, &args)?;
    dx.finish(context)
}

/// The label to ignore: whether there is one, and its value.
fn ignored(context: &KernelContext) -> [Arg<'static>; 2] {
    let ignored = context.opt_int("ignore");
    [
        Arg::I64(i64::from(ignored.is_some())),
        Arg::I64(ignored.unwrap_or(0)),
    ]
}

fn cross_entropy(context: &KernelContext) -> Result<()> {
    let to = context.output(0).dtype();
    let from = match context.input(0).dtype() {
        dtype if dtype.is_float() => dtype,
        _ => compute(to),
    };
    let x = Operand::dense(context, 0, from)?;
    let labels = Operand::dense(context, 1, DType::I64)?;
    let rows = Rows::new(&x.shape, context.axis("axis", 0)?);
    let (loss, lse) = (Staged::new(context, 0)?, Staged::new(context, 1)?);
    let [has_ignored, ignored] = ignored(context);
    let [count, len, inner] = rows.args();
    let args = [
        Arg::Pointer(x.ptr),
        Arg::Pointer(labels.ptr),
        Arg::Pointer(loss.ptr()),
        Arg::Pointer(lse.ptr()),
        has_ignored,
        ignored,
        count,
        len,
        inner,
    ];
    run(
        context,
        "cross_entropy",
        [from, to, compute(to)],
        &rows,
        &args,
    )?;
    loss.finish(context)?;
    lse.finish(context)
}

fn cross_entropy_gradient(context: &KernelContext) -> Result<()> {
    let to = context.output(0).dtype();
    let from = compute(to);
    let x = Operand::dense(context, 0, from)?;
    let labels = Operand::dense(context, 1, DType::I64)?;
    let (lse, dloss) = (
        Operand::dense(context, 2, from)?,
        Operand::dense(context, 3, from)?,
    );
    let rows = Rows::new(&x.shape, context.axis("axis", 0)?);
    let dx = Staged::new(context, 0)?;
    let [has_ignored, ignored] = ignored(context);
    let [count, len, inner] = rows.args();
    let args = [
        Arg::Pointer(x.ptr),
        Arg::Pointer(labels.ptr),
        Arg::Pointer(lse.ptr),
        Arg::Pointer(dloss.ptr),
        Arg::Pointer(dx.ptr()),
        has_ignored,
        ignored,
        count,
        len,
        inner,
    ];
    run(
        context,
        "cross_entropy_gradient",
        [from, to, compute(to)],
        &rows,
        &args,
    )?;
    dx.finish(context)
}

/// Destination of an output in C order: the output itself, or a buffer that is copied there.
pub(super) struct Staged<'a> {
    target: Operand<'a>,
    buffer: Option<Operand<'a>>,
}

impl<'a> Staged<'a> {
    pub fn new(context: &KernelContext<'a>, i: usize) -> Result<Staged<'a>> {
        let target = Operand::of(context.output(i));
        let buffer = match target.is_dense() {
            true => None,
            false => Some(Operand::new(context, &target.shape, target.dtype)?),
        };
        Ok(Staged { target, buffer })
    }

    pub fn ptr(&self) -> u64 {
        self.buffer
            .as_ref()
            .map_or(self.target.ptr, |buffer| buffer.ptr)
    }

    pub fn finish(self, context: &KernelContext) -> Result<()> {
        match self.buffer {
            Some(buffer) => super::copy::copy_operand(context, buffer, self.target),
            None => Ok(()),
        }
    }
}

pub(crate) fn texts(all: &mut Vec<(String, String)>) {
    for &(function, body) in FUNCTIONS {
        for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            let types = [dtype, dtype, compute(dtype)];
            for variant in ["Thread", "Block"] {
                all.push((key(function, types, variant), text(body, types, variant)));
            }
        }
    }
}
