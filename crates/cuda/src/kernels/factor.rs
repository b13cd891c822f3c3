//! Linear algebra (`factor.cuh`): Cholesky, solve, inverse, determinants. The kernels are made for batches of small and medium matrices; for a single
//! large one NVIDIA's library would be faster.

use mxnet_core::context::KernelContext;
use mxnet_core::device_kernels::register as add;
use mxnet_core::{Error, Result};
use mxnet_tensor::{DType, DeviceKind};

use super::operand::{self, Operand, WALK, c_type, for_each, report, source};
use crate::launch::{Arg, Grid, launch};
use crate::text::MATH;

const FACTOR: &str = include_str!("../text/factor.cuh");

pub(super) fn register(kind: DeviceKind) -> Result<()> {
    add("cholesky_lower", kind, 0, cholesky)?;
    add("solve_triangular", kind, 0, triangular)?;
    add("solve_stacks", kind, 0, |context| {
        let dtype = context.output(0).dtype();
        let (a, b) = (
            Operand::dense(context, 0, dtype)?,
            Operand::dense(context, 1, dtype)?,
        );
        let columns = b.shape[b.shape.len() - 1];
        solve(context, &a, Some(&b), columns, false)
    })?;
    add("inverse", kind, 0, |context| {
        let a = Operand::dense(context, 0, context.output(0).dtype())?;
        let n = size(&a.shape).1;
        solve(context, &a, None, n, !context.bool("strict"))
    })?;
    add("det", kind, 0, |context| determinants(context, false))?;
    add("slogdet", kind, 0, |context| determinants(context, true))
}

/// Number of matrices, and of rows per matrix.
fn size(shape: &[usize]) -> (usize, usize) {
    let (lead, n) = (&shape[..shape.len() - 2], shape[shape.len() - 1]);
    (lead.iter().product(), n)
}

/// The fault argument with which kernels report an invalid matrix of the first operand.
fn faulty(context: &KernelContext, describe: fn(&str, i64) -> String) -> Result<Arg<'static>> {
    let (op, shape) = (context.op.name, context.input(0).shape().to_vec());
    report(context, move |[index, number, _]| {
        let lead = &shape[..shape.len() - 2];
        let mut rest = index as usize;
        let mut at = vec![String::new(); lead.len()];
        for (at, &len) in at.iter_mut().zip(lead).rev() {
            *at = (rest % len.max(1)).to_string();
            rest /= len.max(1);
        }
        let which = match lead.is_empty() {
            true => "the matrix".to_owned(),
            false => format!("matrix [{}]", at.join(", ")),
        };
        Error::linalg(op, describe(&which, number))
    })
}

fn singular(which: &str, number: i64) -> String {
    format!(
        "Singular matrix: {which} is singular: pivot {} is zero",
        number - 1
    )
}

/// A block of threads per matrix of `n` rows.
fn blocks(count: usize, n: usize) -> Grid {
    let threads = (n * n).next_power_of_two().clamp(32, 256) as u32;
    Grid::of_blocks(count.clamp(1, 1 << 20) as u32, threads)
}

fn cholesky(context: &KernelContext) -> Result<()> {
    let dtype = context.output(0).dtype();
    let a = Operand::dense(context, 0, dtype)?;
    let (count, n) = size(&a.shape);
    let faults = faulty(context, |which, order| {
        format!(
            "Matrix is not positive definite: {which} is not positive definite: its leading minor of order {order} is not"
        )
    })?;
    let args = [
        Arg::Pointer(a.ptr),
        Arg::Output(0),
        Arg::I64(count as i64),
        Arg::I64(n as i64),
        faults,
    ];
    run(
        context,
        "CHOLESKY",
        dtype,
        count * n,
        blocks(count, n),
        &args,
    )
}

fn triangular(context: &KernelContext) -> Result<()> {
    let dtype = context.output(0).dtype();
    let (a, b) = (
        Operand::dense(context, 0, dtype)?,
        Operand::dense(context, 1, dtype)?,
    );
    let ((count, n), columns) = (size(&a.shape), b.shape[b.shape.len() - 1]);
    let faults = faulty(context, singular)?;
    let args = [
        Arg::Pointer(a.ptr),
        Arg::Pointer(b.ptr),
        Arg::Output(0),
        Arg::I64(count as i64),
        Arg::I64(n as i64),
        Arg::I64(columns as i64),
        Arg::I64(i64::from(context.bool("lower"))),
        faults,
    ];
    run(
        context,
        "TRIANGULAR",
        dtype,
        b.len(),
        for_each(count * columns),
        &args,
    )
}

/// LU factors of matrices, their row permutations, and which are singular.
struct Factors<'a> {
    lu: Operand<'a>,
    rows: Operand<'a>,
    signs: Operand<'a>,
    singular: Operand<'a>,
    count: usize,
    n: usize,
}

fn factors<'a>(context: &KernelContext<'a>, a: &Operand) -> Result<Factors<'a>> {
    let (count, n) = size(&a.shape);
    let lu = Operand::new(context, &a.shape, a.dtype)?;
    operand::copy(context, a, &lu)?;
    let integers = |len: usize| Operand::new(context, &[len], DType::I64);
    let factors = Factors {
        lu,
        rows: integers(count * n)?,
        signs: integers(count)?,
        singular: integers(count)?,
        count,
        n,
    };
    let args = [
        Arg::Pointer(factors.lu.ptr),
        Arg::Pointer(factors.rows.ptr),
        Arg::Pointer(factors.signs.ptr),
        Arg::Pointer(factors.singular.ptr),
        Arg::I64(count as i64),
        Arg::I64(n as i64),
    ];
    run(context, "LU", a.dtype, count, blocks(count, n), &args)?;
    Ok(factors)
}

/// Writes the solutions for the right-hand sides; without these, for the identity matrix.
fn solve(
    context: &KernelContext,
    a: &Operand,
    b: Option<&Operand>,
    columns: usize,
    allows_singular: bool,
) -> Result<()> {
    if context.output(0).is_empty() {
        return Ok(());
    }
    let found = factors(context, a)?;
    let faults = faulty(context, singular)?;
    let args = [
        Arg::Pointer(found.lu.ptr),
        Arg::Pointer(found.rows.ptr),
        Arg::Pointer(found.singular.ptr),
        Arg::Pointer(b.map_or(0, |b| b.ptr)),
        Arg::Output(0),
        Arg::I64(found.count as i64),
        Arg::I64(found.n as i64),
        Arg::I64(columns as i64),
        Arg::I64(i64::from(allows_singular)),
        faults,
    ];
    let n = found.count * columns;
    run(context, "SOLVE", a.dtype, n, for_each(n), &args)
}

fn determinants(context: &KernelContext, has_logs: bool) -> Result<()> {
    let a = Operand::dense(context, 0, context.output(0).dtype())?;
    if context.output(0).is_empty() {
        return Ok(());
    }
    let found = factors(context, &a)?;
    let args = [
        Arg::Pointer(found.lu.ptr),
        Arg::Pointer(found.signs.ptr),
        Arg::Pointer(found.singular.ptr),
        Arg::Output(0),
        if has_logs {
            Arg::Output(1)
        } else {
            Arg::Pointer(0)
        },
        Arg::I64(found.count as i64),
        Arg::I64(found.n as i64),
    ];
    run(
        context,
        "DET",
        a.dtype,
        found.count,
        for_each(found.count),
        &args,
    )
}

fn run(
    context: &KernelContext,
    which: &str,
    dtype: DType,
    n: usize,
    grid: Grid,
    args: &[Arg],
) -> Result<()> {
    if n == 0 {
        return Ok(());
    }
    launch(
        context,
        &key(which, dtype),
        || text(which, dtype),
        grid,
        args,
    )
}

fn key(which: &str, dtype: DType) -> String {
    format!("factor_{}:{}", which.to_lowercase(), c_type(dtype))
}

fn text(which: &str, dtype: DType) -> String {
    let head = format!("typedef {} T;\n#define {which}", c_type(dtype));
    source(&[MATH, WALK, operand::FAULT, &head, FACTOR])
}

pub(super) fn texts(all: &mut Vec<(String, String)>) {
    for dtype in [DType::F32, DType::F64, DType::C64, DType::C128] {
        for which in ["CHOLESKY", "LU", "SOLVE", "TRIANGULAR", "DET"] {
            all.push((key(which, dtype), text(which, dtype)));
        }
    }
}
