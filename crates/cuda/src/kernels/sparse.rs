//! Sparse matrices in compressed rows: sorting of patterns, rows at positions, products with dense arrays (`sparse.cuh`).

use mxnet_core::context::KernelContext;
use mxnet_core::{Error, Result, device_kernels, registry};
use mxnet_tensor::{DType, DeviceKind, Scalar};

use super::matmul::SUMS;
use super::operand::{
    self, Operand, PAIR, WALK, bytes, c_type, launch_each, moved, report, source,
};
use super::order::{Direction, argsorted, picked};
use super::segment::{SEGMENT, SegmentOffsets};
use crate::launch::Arg;
use crate::text::MATH;

const SPARSE: &str = include_str!("../text/sparse.cuh");

/// Kernels that add products or elements.
const SUMMING: [&str; 5] = [
    "SCATTER_OR_SKIP",
    "MATMUL_DENSE",
    "SAMPLED_DENSE",
    "TRANSPOSED_MATMUL",
    "SAMPLED_MATMUL",
];

pub(super) fn register(kind: DeviceKind) -> Result<()> {
    // The operators belong to a crate that may not be linked into the program.
    let add = |name: &str, kernel: device_kernels::DeviceKernel| match registry::find(name) {
        Some(_) => device_kernels::register(name, kind, 0, kernel),
        None => Ok(()),
    };
    add("csr_rows", |context| {
        let offsets = SegmentOffsets::read(context, 1, context.input(0).shape())?;
        offsets.numbers(context, context.output(0).data_ptr() as u64)
    })?;
    add("csr_transpose", |context| {
        let indices = Operand::dense(context, 0, DType::I64)?;
        let offsets = SegmentOffsets::read(context, 1, context.input(0).shape())?;
        let order = argsorted(context, &indices, indices.len(), Direction::Ascending)?;
        operand::copy(context, &order, &Operand::of(context.output(2)))?;
        invert(context, &indices, &order, &offsets, ("indices", [0, 1]))
    })?;
    add("coo_order", |context| {
        let (rows, columns) = (
            Operand::dense(context, 0, DType::I64)?,
            Operand::dense(context, 1, DType::I64)?,
        );
        let by_column = argsorted(context, &columns, columns.len(), Direction::Ascending)?;
        let rows_by_column = picked(context, &rows, &by_column)?;
        let by_row = argsorted(
            context,
            &rows_by_column,
            rows_by_column.len(),
            Direction::Ascending,
        )?;
        let order = picked(context, &by_column, &by_row)?;
        operand::copy(context, &order, &Operand::of(context.output(0)))?;
        let offsets = SegmentOffsets::none(rows.len());
        // Columns out of range are found like invalid rows, from the offsets that they would give.
        let counts = Operand::new(
            context,
            &[context.int("num_columns") as usize + 1],
            DType::I64,
        )?;
        inverted(
            context,
            (&columns, &by_column),
            &offsets,
            "columns",
            (0, counts.ptr, context.int("num_columns")),
        )?;
        inverted(
            context,
            (&rows, &order),
            &offsets,
            "rows",
            (
                0,
                context.output(1).data_ptr() as u64,
                context.int("num_rows"),
            ),
        )
    })?;
    add("csr_find", |context| {
        let columns = Operand::dense(context, 0, DType::I64)?;
        let own = SegmentOffsets::read(context, 1, context.input(0).shape())?;
        find(context, &columns, None, &own, 2)
    })?;
    add("csr_find_points", |context| {
        let (rows, columns) = (
            Operand::dense(context, 2, DType::I64)?,
            Operand::dense(context, 3, DType::I64)?,
        );
        find(
            context,
            &columns,
            Some(&rows),
            &SegmentOffsets::none(rows.len()),
            0,
        )
    })?;
    add("gather_or_zero", |context| {
        let out = context.output(0);
        let (x, at) = (
            Operand::dense(context, 0, out.dtype())?,
            Operand::dense(context, 1, DType::I64)?,
        );
        let (rows, width) = (x.shape[0], x.shape[1..].iter().product::<usize>());
        let zero = operand::pattern(Scalar::I64(0), out.dtype());
        let args = [
            Arg::Pointer(x.ptr),
            Arg::Pointer(at.ptr),
            Arg::Output(0),
            Arg::I64(at.len() as i64),
            Arg::I64(rows as i64),
            Arg::I64(width as i64),
            Arg::Bytes(&zero),
            outside(context, "positions")?,
        ];
        run(
            context,
            "GATHER_OR_ZERO",
            moved(out.dtype()),
            out.len(),
            &args,
        )
    })?;
    add("scatter_or_skip", |context| {
        let out = context.output(0);
        operand::fill(context, &Operand::of(out), Scalar::I64(0))?;
        let (x, at) = (
            Operand::dense(context, 0, out.dtype())?,
            Operand::dense(context, 1, DType::I64)?,
        );
        let width: usize = x.shape[1..].iter().product();
        let order = argsorted(context, &at, at.len(), Direction::Ascending)?;
        let args = [
            Arg::Pointer(x.ptr),
            Arg::Pointer(at.ptr),
            Arg::Pointer(order.ptr),
            Arg::Output(0),
            Arg::I64(at.len() as i64),
            Arg::I64(out.shape()[0] as i64),
            Arg::I64(width as i64),
            outside(context, "positions")?,
        ];
        run(
            context,
            "SCATTER_OR_SKIP",
            c_type(out.dtype()),
            x.len(),
            &args,
        )
    })?;
    add("csr_matmul_dense", |context| {
        let out = context.output(0);
        let (data, x) = (
            Operand::dense(context, 0, out.dtype())?,
            Operand::dense(context, 3, out.dtype())?,
        );
        let indices = Operand::dense(context, 1, DType::I64)?;
        let offsets = SegmentOffsets::read(context, 2, context.input(1).shape())?;
        let row: usize = x.shape[1..].iter().product();
        let heads = data.shape.get(1).copied().unwrap_or(1);
        let args = [
            Arg::Pointer(data.ptr),
            Arg::Pointer(indices.ptr),
            Arg::Bytes(bytes(&offsets.segments)),
            Arg::Pointer(x.ptr),
            Arg::Output(0),
            Arg::I64(x.shape[0] as i64),
            Arg::I64(heads as i64),
            Arg::I64((row / heads.max(1)) as i64),
            outside(context, "indices")?,
        ];
        run(
            context,
            "MATMUL_DENSE",
            c_type(out.dtype()),
            out.len(),
            &args,
        )
    })?;
    add("csr_sampled_dense", |context| {
        let out = context.output(0);
        let (x, y) = (
            Operand::dense(context, 0, out.dtype())?,
            Operand::dense(context, 1, out.dtype())?,
        );
        let indices = Operand::dense(context, 2, DType::I64)?;
        let offsets = SegmentOffsets::read(context, 3, context.input(2).shape())?;
        let row: usize = y.shape[1..].iter().product();
        let heads = if context.bool("heads") { y.shape[1] } else { 1 };
        let args = [
            Arg::Pointer(x.ptr),
            Arg::Pointer(y.ptr),
            Arg::Pointer(indices.ptr),
            Arg::Bytes(bytes(&offsets.segments)),
            Arg::Output(0),
            Arg::I64(y.shape[0] as i64),
            Arg::I64(heads as i64),
            Arg::I64((row / heads.max(1)) as i64),
            outside(context, "indices")?,
        ];
        run(
            context,
            "SAMPLED_DENSE",
            c_type(out.dtype()),
            out.len(),
            &args,
        )
    })?;
    add("csr_transposed_matmul_dense", |context| {
        let out = context.output(0);
        let (data, x) = (
            Operand::dense(context, 0, out.dtype())?,
            Operand::dense(context, 3, out.dtype())?,
        );
        let indices = Operand::dense(context, 1, DType::I64)?;
        let offsets = SegmentOffsets::read(context, 2, context.input(1).shape())?;
        let columns = out.shape()[0];
        // Stored elements in the order of their columns, so that each column is summed by one thread.
        let order = argsorted(context, &indices, indices.len(), Direction::Ascending)?;
        let rows = Operand::new(context, &[indices.len()], DType::I64)?;
        let starts = Operand::new(context, &[columns + 1], DType::I64)?;
        let to = (rows.ptr, starts.ptr, columns as i64);
        inverted(context, (&indices, &order), &offsets, "indices", to)?;
        let args = [
            Arg::Pointer(data.ptr),
            Arg::Pointer(order.ptr),
            Arg::Pointer(rows.ptr),
            Arg::Pointer(starts.ptr),
            Arg::Pointer(x.ptr),
            Arg::Output(0),
            Arg::I64(columns as i64),
            Arg::I64(x.shape[1..].iter().product::<usize>() as i64),
        ];
        run(
            context,
            "TRANSPOSED_MATMUL",
            c_type(out.dtype()),
            out.len(),
            &args,
        )
    })?;
    add("csr_sampled_matmul", |context| {
        let out = context.output(0);
        let (lhs, rhs) = (
            Operand::dense(context, 0, out.dtype())?,
            Operand::dense(context, 3, out.dtype())?,
        );
        let index = |i: usize| Operand::dense(context, i, DType::I64);
        let (lhs_indices, rhs_indices, indices) = (index(1)?, index(4)?, index(6)?);
        let offsets = |i: usize| SegmentOffsets::read(context, i, context.input(i - 1).shape());
        let (lhs_rows, rhs_rows, rows) = (offsets(2)?, offsets(5)?, offsets(7)?);
        let args = [
            Arg::Pointer(lhs.ptr),
            Arg::Pointer(lhs_indices.ptr),
            Arg::Bytes(bytes(&lhs_rows.segments)),
            Arg::Pointer(rhs.ptr),
            Arg::Pointer(rhs_indices.ptr),
            Arg::Bytes(bytes(&rhs_rows.segments)),
            Arg::Pointer(indices.ptr),
            Arg::Bytes(bytes(&rows.segments)),
            Arg::Output(0),
            Arg::I64(context.int("num_columns")),
            outside(context, "indices")?,
        ];
        run(
            context,
            "SAMPLED_MATMUL",
            c_type(out.dtype()),
            out.len(),
            &args,
        )
    })
}

/// The fault argument for an index outside of its axis.
fn outside(context: &KernelContext, name: &'static str) -> Result<Arg<'static>> {
    let op = context.op.name;
    report(context, move |[at, index, size]| {
        Error::index(
            op,
            format!("{name}[{at}] is {index}, outside its axis of size {size}"),
        )
    })
}

/// Writes the rows of the elements, sorted by column, to output `outputs[0]`, and the offset of each column to `outputs[1]`.
fn invert(
    context: &KernelContext,
    indices: &Operand,
    order: &Operand,
    offsets: &SegmentOffsets,
    (name, outputs): (&'static str, [usize; 2]),
) -> Result<()> {
    let [rows, starts] = outputs.map(|i| context.output(i).data_ptr() as u64);
    let columns = context.output(outputs[1]).len() as i64 - 1;
    inverted(
        context,
        (indices, order),
        offsets,
        name,
        (rows, starts, columns),
    )
}

fn inverted(
    context: &KernelContext,
    (indices, order): (&Operand, &Operand),
    offsets: &SegmentOffsets,
    name: &'static str,
    (rows, starts, columns): (u64, u64, i64),
) -> Result<()> {
    let args = [
        Arg::Pointer(indices.ptr),
        Arg::Pointer(order.ptr),
        Arg::Bytes(bytes(&offsets.segments)),
        Arg::Pointer(rows),
        Arg::Pointer(starts),
        Arg::I64(columns),
        outside(context, name)?,
    ];
    run(
        context,
        "INVERT",
        "u8",
        indices.len() + columns as usize + 1,
        &args,
    )
}

/// Finds the positions of points in the pattern given by the inputs `pattern` and `pattern + 1`.
fn find(
    context: &KernelContext,
    columns: &Operand,
    rows: Option<&Operand>,
    own: &SegmentOffsets,
    pattern: usize,
) -> Result<()> {
    let indices = Operand::dense(context, pattern, DType::I64)?;
    let offsets = SegmentOffsets::read(context, pattern + 1, context.input(pattern).shape())?;
    let args = [
        Arg::Pointer(columns.ptr),
        Arg::Pointer(rows.map_or(0, |rows| rows.ptr)),
        Arg::Bytes(bytes(&own.segments)),
        Arg::Pointer(indices.ptr),
        Arg::Bytes(bytes(&offsets.segments)),
        Arg::Output(0),
        Arg::I64(columns.len() as i64),
    ];
    run(context, "FIND", "u8", columns.len(), &args)
}

fn run(
    context: &KernelContext,
    which: &str,
    name: &'static str,
    n: usize,
    args: &[Arg],
) -> Result<()> {
    launch_each(context, n, &key(which, name), || text(which, name), args)
}

fn key(which: &str, name: &str) -> String {
    format!("sparse_{}:{name}", which.to_lowercase())
}

fn text(which: &str, name: &str) -> String {
    let head = format!("typedef {name} T;\n#define {which}");
    let sums = if SUMMING.contains(&which) { SUMS } else { "" };
    source(&[
        MATH,
        PAIR,
        WALK,
        operand::FAULT,
        &head,
        sums,
        SEGMENT,
        SPARSE,
    ])
}

pub(super) fn texts(all: &mut Vec<(String, String)>) {
    let mut push = |which: &str, name: &str| all.push((key(which, name), text(which, name)));
    push("INVERT", "u8");
    push("FIND", "u8");
    for name in operand::MOVED {
        push("GATHER_OR_ZERO", name);
    }
    for dtype in DType::ALL {
        for which in SUMMING {
            push(which, c_type(dtype));
        }
    }
}
