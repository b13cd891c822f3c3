//! Rows in segments: the operators of ragged arrays, and extrema of segments of sparse arrays (`segment.cuh`).

use mxnet_core::context::KernelContext;
use mxnet_core::{Error, Result, device_kernels, registry};
use mxnet_tensor::{DType, DeviceKind, Kind, Scalar};

use super::attention::computed;
use super::operand::{
    self, Operand, PAIR, WALK, bytes, c_type, launch_each, moved, pattern, report, source,
};
use super::order::{Direction, argsorted, picked};
use crate::launch::Arg;
use crate::text::MATH;

pub(super) const SEGMENT: &str = include_str!("../text/segment.cuh");

/// Numbers of the reductions in the kernel source.
const SUM: i64 = 0;
const PRODUCT: i64 = 1;
const MAX: i64 = 2;
const MIN: i64 = 3;

pub(super) fn register(kind: DeviceKind) -> Result<()> {
    // The operators belong to crates that may not be linked into the program.
    let add = |name: &str, kernel: device_kernels::DeviceKernel| match registry::find(name) {
        Some(_) => device_kernels::register(name, kind, 0, kernel),
        None => Ok(()),
    };
    add("ragged_sum", |context| fold(context, SUM, false))?;
    add("ragged_prod", |context| fold(context, PRODUCT, false))?;
    add("ragged_max", |context| fold(context, MAX, false))?;
    add("ragged_min", |context| fold(context, MIN, false))?;
    add("segment_max", |context| fold(context, MAX, true))?;
    add("segment_min", |context| fold(context, MIN, true))?;
    add("ragged_softmax", |context| softmax(context, 0))?;
    add("ragged_log_softmax", |context| softmax(context, 1))?;
    add("ragged_softmax_gradient", |context| {
        softmax_gradient(context, i64::from(context.bool("log")))
    })?;
    add("ragged_expand", |context| {
        let out = context.output(0);
        let x = Operand::dense(context, 0, out.dtype())?;
        let offsets = SegmentOffsets::read(context, 1, out.shape())?;
        let args = [
            Arg::Pointer(x.ptr),
            Arg::Output(0),
            Arg::Bytes(bytes(&offsets.segments)),
        ];
        run(context, "EXPAND", moved(out.dtype()), out.len(), &args)
    })?;
    add("ragged_pad", |context| {
        let x = Operand::dense(context, 0, context.output(0).dtype())?;
        let (offsets, length) = (
            SegmentOffsets::read(context, 1, context.input(0).shape())?,
            context.output(0).shape()[1],
        );
        pad(context, "PAD", &x, &offsets, length, context.float("fill"))
    })?;
    add("ragged_unpad", |context| {
        let x = Operand::dense(context, 0, context.output(0).dtype())?;
        let (offsets, length) = (
            SegmentOffsets::read(context, 1, context.output(0).shape())?,
            x.shape[1],
        );
        pad(context, "UNPAD", &x, &offsets, length, 0.0)
    })?;
    add("ragged_cumsum", cumsum)?;
    add("ragged_argsort", argsort)?;
    add("ragged_matmul", |context| {
        let out = context.output(0);
        let (x, w) = (
            Operand::dense(context, 0, out.dtype())?,
            Operand::dense(context, 1, out.dtype())?,
        );
        let offsets = SegmentOffsets::read(context, 2, context.input(0).shape())?;
        let args = [
            Arg::Pointer(x.ptr),
            Arg::Pointer(w.ptr),
            Arg::Output(0),
            Arg::Bytes(bytes(&offsets.segments)),
            Arg::I64(out.shape()[1] as i64),
            Arg::I64(i64::from(context.bool("transpose"))),
        ];
        run(context, "MATMUL", c_type(out.dtype()), out.len(), &args)
    })?;
    add("ragged_outer", |context| {
        let out = context.output(0);
        let (x, z) = (
            Operand::dense(context, 0, out.dtype())?,
            Operand::dense(context, 1, out.dtype())?,
        );
        let offsets = SegmentOffsets::read(context, 2, context.input(0).shape())?;
        let args = [
            Arg::Pointer(x.ptr),
            Arg::Pointer(z.ptr),
            Arg::Output(0),
            Arg::Bytes(bytes(&offsets.segments)),
            Arg::I64(z.shape[1] as i64),
        ];
        run(context, "OUTER", c_type(out.dtype()), out.len(), &args)
    })
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Segments {
    offsets: u64,
    count: i64,
    rows: i64,
    inner: i64,
}

/// Segment offsets of a call, checked on the device.
pub(super) struct SegmentOffsets<'a> {
    pub segments: Segments,
    _offsets: Option<Operand<'a>>,
}

impl<'a> SegmentOffsets<'a> {
    /// Argument `i`, whose segments cover the first axis of `shape`.
    pub fn read(
        context: &KernelContext<'a>,
        i: usize,
        shape: &[usize],
    ) -> Result<SegmentOffsets<'a>> {
        let offsets = Operand::dense(context, i, DType::I64)?;
        let op = context.op.name;
        if offsets.is_empty() {
            return Err(Error::value(
                op,
                "`offsets` is empty; for no segments it must be [0]",
            ));
        }
        let rows = shape[0];
        let segments = Segments {
            offsets: offsets.ptr,
            count: offsets.len() as i64 - 1,
            rows: rows as i64,
            inner: shape[1..].iter().product::<usize>() as i64,
        };
        let faults = report(context, move |[at, found, before]| {
            Error::value(
                op,
                match at {
                    0 => format!("offsets start with 0, found {found}"),
                    -1 => format!("the last offset is {found}, but there are {rows} rows"),
                    at => {
                        format!("offsets do not decrease: element {at} is {found}, after {before}")
                    }
                },
            )
        })?;
        run(
            context,
            "CHECK",
            "u8",
            offsets.len(),
            &[Arg::Bytes(bytes(&segments)), faults],
        )?;
        Ok(SegmentOffsets {
            segments,
            _offsets: Some(offsets),
        })
    }

    /// `rows` rows without segments.
    pub fn none(rows: usize) -> SegmentOffsets<'a> {
        let segments = Segments {
            offsets: 0,
            count: 0,
            rows: rows as i64,
            inner: 1,
        };
        SegmentOffsets {
            segments,
            _offsets: None,
        }
    }

    /// Writes the segment index of each row.
    pub fn numbers(&self, context: &KernelContext, to: u64) -> Result<()> {
        let args = [Arg::Pointer(to), Arg::Bytes(bytes(&self.segments))];
        run(context, "NUMBERS", "u8", self.segments.rows as usize, &args)
    }

    fn columns(&self) -> usize {
        (self.segments.count * self.segments.inner) as usize
    }
}

/// Reduces the rows of segments. The extremum of an empty segment is 0 if `is_zero_of_none`.
fn fold(context: &KernelContext, what: i64, is_zero_of_none: bool) -> Result<()> {
    let (x, out) = (Operand::input(context, 0)?, Operand::of(context.output(0)));
    let offsets = SegmentOffsets::read(context, 1, context.input(0).shape())?;
    let is_whole = matches!(x.dtype.kind(), Kind::Bool | Kind::Integer);
    let wide = match x.dtype {
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => DType::U64,
        _ if is_whole => DType::I64,
        other => computed(other),
    };
    let dtype = x.dtype;
    let x = x.into_dense(context, dtype)?;
    // If the accumulator type differs from the result's dtype, the sums are converted afterwards.
    let is_direct = out.dtype == wide && out.is_dense();
    let to = if is_direct {
        Operand::at(out.ptr, &out.shape, &out.strides, wide)
    } else {
        Operand::new(context, &out.shape, wide)?
    };
    let args = [
        Arg::Pointer(x.ptr),
        Arg::Pointer(to.ptr),
        if context.outputs.len() > 1 {
            Arg::Output(1)
        } else {
            Arg::Pointer(0)
        },
        Arg::Bytes(bytes(&offsets.segments)),
        Arg::I64(what),
        Arg::I64(i64::from(is_zero_of_none)),
    ];
    run(context, "FOLD", c_type(dtype), offsets.columns(), &args)?;
    if is_direct {
        Ok(())
    } else {
        operand::copy(context, &to, &out)
    }
}

/// Running sums of the rows of segments.
fn cumsum(context: &KernelContext) -> Result<()> {
    let dtype = context.output(0).dtype();
    let x = Operand::dense(context, 0, dtype)?;
    let offsets = SegmentOffsets::read(context, 1, context.input(0).shape())?;
    let args = [
        Arg::Pointer(x.ptr),
        Arg::Output(0),
        Arg::Bytes(bytes(&offsets.segments)),
        Arg::I64(i64::from(context.bool("reverse"))),
    ];
    run(context, "CUMSUM", c_type(dtype), offsets.columns(), &args)
}

fn softmax(context: &KernelContext, is_log: i64) -> Result<()> {
    let dtype = context.output(0).dtype();
    let x = Operand::dense(context, 0, dtype)?;
    let offsets = SegmentOffsets::read(context, 1, context.input(0).shape())?;
    let args = [
        Arg::Pointer(x.ptr),
        Arg::Output(0),
        Arg::Bytes(bytes(&offsets.segments)),
        Arg::I64(is_log),
    ];
    run(context, "SOFTMAX", c_type(dtype), offsets.columns(), &args)
}

fn softmax_gradient(context: &KernelContext, is_log: i64) -> Result<()> {
    let dtype = context.output(0).dtype();
    let (y, dy) = (
        Operand::dense(context, 0, dtype)?,
        Operand::dense(context, 1, dtype)?,
    );
    let offsets = SegmentOffsets::read(context, 2, context.input(0).shape())?;
    let args = [
        Arg::Pointer(y.ptr),
        Arg::Pointer(dy.ptr),
        Arg::Output(0),
        Arg::Bytes(bytes(&offsets.segments)),
        Arg::I64(is_log),
    ];
    run(
        context,
        "SOFTMAX_GRADIENT",
        c_type(dtype),
        offsets.columns(),
        &args,
    )
}

fn pad(
    context: &KernelContext,
    which: &str,
    x: &Operand,
    offsets: &SegmentOffsets,
    length: usize,
    fill: f64,
) -> Result<()> {
    let out = context.output(0);
    let bits = pattern(Scalar::F64(fill), out.dtype());
    let args = [
        Arg::Pointer(x.ptr),
        Arg::Output(0),
        Arg::Bytes(bytes(&offsets.segments)),
        Arg::I64(length as i64),
        Arg::Bytes(&bits),
    ];
    run(context, which, moved(out.dtype()), out.len(), &args)
}

/// Sorts each column by its elements, then stably by the segments of the rows.
fn argsort(context: &KernelContext) -> Result<()> {
    let x = Operand::input(context, 0)?;
    let offsets = SegmentOffsets::read(context, 1, context.input(0).shape())?;
    if x.is_empty() {
        return Ok(());
    }
    let dtype = x.dtype;
    let x = x.into_dense(context, dtype)?;
    let (rows, inner) = (x.shape[0], x.len() / x.shape[0]);
    let columns = x
        .with(&[inner, rows], &[1, inner as isize])
        .into_dense(context, dtype)?;
    let direction = match context.bool("descending") {
        true => Direction::Descending,
        false => Direction::Ascending,
    };
    let order = argsorted(context, &columns, rows, direction)?;
    let numbers = Operand::new(context, &[rows], DType::I64)?;
    offsets.numbers(context, numbers.ptr)?;
    let numbers = numbers
        .with(&[inner, rows], &[0, 1])
        .into_dense(context, DType::I64)?;
    let numbers = picked(context, &numbers, &order)?;
    let again = argsorted(context, &numbers, rows, Direction::Ascending)?;
    let order = picked(context, &order, &again)?.with(&[rows, inner], &[1, rows as isize]);
    operand::copy(
        context,
        &order,
        &Operand::of(context.output(0)).with(&[rows, inner], &[inner as isize, 1]),
    )
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
    format!("segment_{}:{name}", which.to_lowercase())
}

fn text(which: &str, name: &str) -> String {
    // Integers are summed in 64 bits, f16 and bf16 in f32.
    let wide = match name {
        "boolean" | "i8" | "i16" | "i32" | "i64" if which == "FOLD" => "i64",
        "u8" | "u16" | "u32" | "u64" if which == "FOLD" => "u64",
        "f16" | "bf16" => "f32",
        other => other,
    };
    let head = format!("typedef {name} T;\ntypedef {wide} R;\n#define {which}");
    source(&[MATH, PAIR, WALK, operand::FAULT, &head, SEGMENT])
}

pub(super) fn texts(all: &mut Vec<(String, String)>) {
    let mut push = |which: &str, name: &str| all.push((key(which, name), text(which, name)));
    for dtype in DType::ALL {
        push("FOLD", c_type(dtype));
    }
    for dtype in [DType::I64, DType::U64, DType::C64, DType::C128] {
        push("CUMSUM", c_type(dtype));
    }
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        for which in ["CUMSUM", "SOFTMAX", "SOFTMAX_GRADIENT", "MATMUL", "OUTER"] {
            push(which, c_type(dtype));
        }
    }
    for name in operand::MOVED {
        for which in ["EXPAND", "PAD", "UNPAD"] {
            push(which, name);
        }
    }
    push("CHECK", "u8");
    push("NUMBERS", "u8");
}
