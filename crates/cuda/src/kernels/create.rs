//! Arrays generated from numbers: constants, ranges, identity matrices, positions.

use mxnet_core::{Args, KernelContext, Result, device_kernels};
use mxnet_tensor::{DType, DeviceKind, Layout, Scalar, Tensor};
use smallvec::{SmallVec, smallvec};

use super::copy::fill;
use super::map::{self, Function, Input};
use super::operand::Operand;
use crate::launch::{Arg, Grid, launch};

pub(crate) fn register(kind: DeviceKind) -> Result<()> {
    // New outputs of these are zeros, or their contents are unspecified.
    for op in ["zeros", "zeroed", "empty"] {
        device_kernels::register(op, kind, 0, |_| Ok(()))?;
    }
    device_kernels::register("ones", kind, 0, |context| {
        fill(context, context.output(0), Scalar::I64(1))
    })?;
    device_kernels::register("filled", kind, 0, |context| match context.scalar("value") {
        Some(value) => fill(context, context.output(0), value),
        None => Ok(()),
    })?;
    device_kernels::register("eye", kind, 0, |context| {
        diagonal(context, context.int("k"))
    })?;
    device_kernels::register("identity", kind, 0, |context| diagonal(context, 0))?;
    device_kernels::register("tri", kind, 0, triangle)?;
    device_kernels::register("arange", kind, 0, arange)?;
    device_kernels::register("ramp", kind, 0, ramp)?;
    device_kernels::register("ramps", kind, 0, ramps)?;
    device_kernels::register("grid_positions", kind, 0, grid_positions)?;
    device_kernels::register("triangle_positions", kind, 0, triangle_positions)
}

/// Functions of the index `i` of an element and of numbers `a`, `b`, ...: name, compute type, number of numbers, and expression.
const GENERATED: &[(&str, DType, usize, &[&str])] = &[
    // On diagonal `b` of a matrix with `a` columns.
    (
        "diagonal",
        DType::I64,
        2,
        &["(i64)(i % (u64)a) - (i64)(i / (u64)a) == b ? 1 : 0"],
    ),
    // On and below that diagonal.
    (
        "triangle",
        DType::I64,
        2,
        &["(i64)(i % (u64)a) - (i64)(i / (u64)a) <= b ? 1 : 0"],
    ),
    ("steps", DType::I64, 2, &["add(a, multiply(b, (i64)i))"]),
    ("float_steps", DType::F64, 2, &["sum(a, mul(b, (f64)i))"]),
    // From `a` in steps of `b`; element `c` is exactly `d`.
    (
        "ramp",
        DType::F64,
        4,
        &["(f64)i == c ? d : sum(mul((f64)i, b), a)"],
    ),
    // Index along an axis of length `b`, where the later axes have `a` elements.
    ("positions", DType::I64, 2, &["(i64)(i / (u64)a % (u64)b)"]),
];

/// The entry of [`GENERATED`] with this name.
fn generated(name: &str) -> Option<Function<'static>> {
    let &(name, compute, count, results) = GENERATED.iter().find(|f| f.0 == name)?;
    Some(Function {
        name,
        results,
        compute,
        natives: SmallVec::from_elem(compute, count),
        out_natives: smallvec![compute],
        counts: true,
    })
}

/// Fills the dense elements of `out` with a function of their indices.
fn generate(context: &KernelContext, out: &Tensor, name: &str, numbers: &[Scalar]) -> Result<()> {
    let function = generated(name).ok_or_else(|| {
        mxnet_core::Error::internal(context.op.name, "the generating function is missing")
    })?;
    let numbers: SmallVec<[Input; 4]> = numbers.iter().map(|&x| Input::Number(x)).collect();
    map::run(
        context,
        &function,
        out.shape(),
        &[Operand::of(out)],
        &numbers,
        &[],
    )
}

/// Number of columns and diagonal of a matrix, as numbers for [`generate`]. The diagonal is clamped to a range outside of which the result is
/// constant.
fn matrix(out: &Tensor, k: i64) -> [Scalar; 2] {
    let (rows, columns) = (out.shape()[0] as i64, out.shape()[1] as i64);
    [
        Scalar::I64(columns),
        Scalar::I64(k.clamp(-rows - 1, columns + 1)),
    ]
}

fn diagonal(context: &KernelContext, k: i64) -> Result<()> {
    let out = context.output(0);
    generate(context, out, "diagonal", &matrix(out, k))
}

fn triangle(context: &KernelContext) -> Result<()> {
    let out = context.output(0);
    generate(context, out, "triangle", &matrix(out, context.int("k")))
}

/// Whether a number is a 64-bit integer.
fn is_whole(x: Scalar) -> bool {
    matches!(x, Scalar::U64(_)) || x.to_i64().is_some()
}

/// An integer, or the integral part of a float, modulo 2^64.
fn bits(x: Scalar) -> i64 {
    match x {
        Scalar::F64(x) if x > 0.0 => x as u64 as i64,
        other => other.as_i64(),
    }
}

/// As on the CPU: the step is the difference of the first two numbers, computed in the dtype of the result.
fn arange(context: &KernelContext) -> Result<()> {
    let out = context.output(0);
    let step = context.scalar("step").unwrap_or(Scalar::I64(1));
    let start = match (context.scalar("start"), context.scalar("stop")) {
        (Some(start), Some(_)) => start,
        _ => Scalar::I64(0),
    };
    let integers = is_whole(start) && is_whole(step);
    let (first, by) = (start.as_f64(), step.as_f64());
    let whole = if out.dtype().is_integer() || integers && !out.dtype().is_inexact() {
        let first = bits(start);
        Some((
            first,
            match integers {
                true => step.as_i64(),
                false => bits(Scalar::F64(start.as_f64() + by)).wrapping_sub(first),
            },
        ))
    } else if !out.dtype().is_inexact() {
        let (whole, second) = (first as i64, (first + by) as i64);
        Some((whole, second.wrapping_sub(whole)))
    } else {
        None
    };
    match whole {
        Some((first, step)) => generate(
            context,
            out,
            "steps",
            &[Scalar::I64(first), Scalar::I64(step)],
        ),
        None => {
            let step = (first + by) - first;
            generate(
                context,
                out,
                "float_steps",
                &[Scalar::F64(first), Scalar::F64(step)],
            )
        }
    }
}

/// Number of steps from start to end; at least 1.
fn gaps(num: usize, ends_at_stop: bool) -> f64 {
    (num - usize::from(ends_at_stop && num > 0)).max(1) as f64
}

fn ramp(context: &KernelContext) -> Result<()> {
    let out = context.output(0);
    let (start, stop, endpoint) = (
        context.float("start"),
        context.float("stop"),
        context.bool("endpoint"),
    );
    let (n, step) = (out.len(), (stop - start) / gaps(out.len(), endpoint));
    // No element has index -1.
    let last = if endpoint && n > 1 {
        (n - 1) as f64
    } else {
        -1.0
    };
    generate(
        context,
        out,
        "ramp",
        &[start, step, last, stop].map(Scalar::F64),
    )
}

/// Numbers between arrays: `i` is the row index.
const RAMPS: Function<'static> = Function {
    name: "ramps",
    results: &["c == p1 ? b : sum(mul(c, (b - a) / p0), a)"],
    compute: DType::F64,
    natives: SmallVec::new_const(),
    out_natives: SmallVec::new_const(),
    counts: false,
};

fn ramps(context: &KernelContext) -> Result<()> {
    let out = context.output(0);
    let (shape, rows) = (out.shape(), out.shape()[0]);
    if out.is_empty() {
        return Ok(());
    }
    let endpoint = context.bool("endpoint");
    // The row indices, broadcast along the other axes.
    let numbers = Operand::new(context, &[rows], DType::F64)?;
    let function = generated("float_steps").ok_or_else(|| {
        mxnet_core::Error::internal(context.op.name, "the generating function is missing")
    })?;
    let target = Operand::at(numbers.ptr, &[rows], &[1], DType::F64);
    let from_0 = [
        Input::Number(Scalar::F64(0.0)),
        Input::Number(Scalar::F64(1.0)),
    ];
    map::run(context, &function, &[rows], &[target], &from_0, &[])?;
    let mut steps: SmallVec<[isize; 8]> = SmallVec::from_elem(0, shape.len());
    steps[0] = 1;
    let ins = [
        Input::of(context, 0, shape)?,
        Input::of(context, 1, shape)?,
        Input::Array(numbers.with(shape, &steps)),
    ];
    let last = if endpoint && rows > 1 {
        (rows - 1) as f64
    } else {
        -1.0
    };
    let function = Function {
        natives: smallvec![DType::F64; 3],
        out_natives: smallvec![DType::F64],
        ..RAMPS
    };
    map::run(
        context,
        &function,
        shape,
        &[Operand::of(out)],
        &ins,
        &[gaps(rows, endpoint), last],
    )
}

fn grid_positions(context: &KernelContext) -> Result<()> {
    let out = context.output(0);
    let shape = &out.shape()[1..];
    for (axis, &len) in shape.iter().enumerate() {
        let plane = out.layout().select(0, axis as isize)?;
        let behind: usize = shape[axis + 1..].iter().product();
        let numbers = [
            Scalar::I64(behind.max(1) as i64),
            Scalar::I64(len.max(1) as i64),
        ];
        generate(context, &out.with_layout(plane), "positions", &numbers)?;
    }
    Ok(())
}

/// Row and column indices of the elements of a triangle. One thread per row computes where its elements begin.
const TRIANGLE: &str = "
namespace mx {
// The sum over q < r of q + d, clamped to 0..=m.
MX_FN i64 sum_up_to(i64 r, i64 d, i64 m) {
    // The terms are positive from `from` on, and m from `to` on.
    i64 from = between64(1 - d, 0, r), to = between64(m - d, from, r);
    i64 rising = (to - from) * (from + d) + (to - from) * (to - from - 1) / 2;
    return rising + (r - to) * m;
}
}
extern \"C\" __global__ void kernel(mx::i64 *y, mx::i64 rows, mx::i64 columns, mx::i64 diagonal, mx::i64 is_upper, mx::i64 count) {
    using namespace mx;
    for (i64 row = (i64)thread_index(); row < rows; row += (i64)num_threads()) {
        i64 on = row + diagonal;
        i64 first = is_upper ? between64(on, 0, columns) : 0, end = is_upper ? columns : between64(on + 1, 0, columns);
        i64 at = is_upper ? row * columns - sum_up_to(row, diagonal, columns) : sum_up_to(row, diagonal + 1, columns);
        for (i64 column = first; column < end; column++, at++) {
            y[at] = row;
            y[count + at] = column;
        }
    }
}
";

const BETWEEN: &str = "
namespace mx {
MX_FN i64 between64(i64 x, i64 low, i64 high) { return x < low ? low : x > high ? high : x; }
}
";

fn triangle_text() -> String {
    format!("{BETWEEN}{TRIANGLE}")
}

fn triangle_positions(context: &KernelContext) -> Result<()> {
    let out = context.output(0);
    let count = out.shape()[1] as i64;
    if count == 0 {
        return Ok(());
    }
    let args: &Args = &context.args;
    let rows = args.int("n").max(0);
    let columns = args.opt_int("m").unwrap_or(rows).max(0);
    let diagonal = args.int("k").clamp(-rows - 1, columns + 1);
    debug_assert_eq!(
        out.layout().strides(),
        Layout::contiguous(out.shape()).strides()
    );
    launch(
        context,
        "triangle_positions",
        triangle_text,
        Grid::of_len(rows as usize),
        &[
            Arg::Output(0),
            Arg::I64(rows),
            Arg::I64(columns),
            Arg::I64(diagonal),
            Arg::I64(i64::from(args.bool("upper"))),
            Arg::I64(count),
        ],
    )
}

pub(crate) fn texts(all: &mut Vec<(String, String)>) {
    for &(name, ..) in GENERATED {
        if let Some(function) = generated(name) {
            map::texts(&function, 0, true, all);
        }
    }
    let function = Function {
        natives: smallvec![DType::F64; 3],
        out_natives: smallvec![DType::F64],
        ..RAMPS
    };
    map::texts(&function, 2, true, all);
    all.push(("triangle_positions".to_owned(), triangle_text()));
}
