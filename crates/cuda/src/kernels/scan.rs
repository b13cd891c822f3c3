//! Cumulative sums, products and extrema along an axis.

use std::fmt::Write;

use mxnet_core::{Error, KernelContext, Result, device_kernels};
use mxnet_tensor::{DType, DeviceKind};
use smallvec::SmallVec;

use super::axes::{Axes, MAX_AXES, Visit};
use super::operand::Operand;
use super::reduce::{Kind, accumulator};
use crate::launch::{Arg, Grid, launch};
use crate::text::{MATH, type_name};

/// Operators: kind, initial value, and the combination of `s` and `t`, of which `s` comes first.
const SCANS: &[(&str, Kind, &str, &str)] = &[
    ("cumsum", Kind::Arithmetic, "convert<T>(0)", "add(s, t)"),
    (
        "cumprod",
        Kind::Arithmetic,
        "convert<T>(1)",
        "multiply(s, t)",
    ),
    ("cummax", Kind::Order, "lowest<T>()", "maximum(s, t)"),
    ("cummin", Kind::Order, "highest<T>()", "minimum(s, t)"),
];

/// Whether a block or a thread scans a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// A block of threads, one tile after the other.
    Block,
    /// One thread: for many lines.
    Thread,
}

/// Threads of a block that scans a line.
const THREADS: usize = 256;
/// Elements per thread and tile.
const ITEMS: usize = 4;

pub(crate) fn register(kind: DeviceKind) -> Result<()> {
    for (op, ..) in SCANS {
        device_kernels::register(op, kind, 0, scan)?;
    }
    Ok(())
}

fn scan(context: &KernelContext) -> Result<()> {
    let y = Operand::of(context.output(0));
    if y.is_empty() {
        return Ok(());
    }
    let &(op, kind, neutral, combine) = (SCANS.iter().find(|s| s.0 == context.op.name))
        .ok_or_else(|| Error::internal(context.op.name, "not a cumulative operator"))?;
    let mut x = Operand::input(context, 0)?;
    // With an integer result dtype, floats are converted to integers before the scan, as in NumPy.
    if x.dtype.is_inexact() && !y.dtype.is_inexact() {
        x = x.into_typed(context, y.dtype)?;
    }
    // Without an axis, the elements are scanned in C order.
    let flat = context.is_none("axis") || x.shape.is_empty();
    if flat {
        let (dtype, len) = (x.dtype, x.len());
        x = x.into_dense(context, dtype)?.with(&[len], &[1]);
    }
    let axis = if flat { 0 } else { context.axis("axis", 0)? };
    let others = |values: &[isize]| -> SmallVec<[isize; 8]> {
        (values.iter().enumerate())
            .filter(|&(i, _)| i != axis)
            .map(|(_, &value)| value)
            .collect()
    };
    let shape: SmallVec<[usize; 8]> = (x.shape.iter().enumerate())
        .filter(|&(i, _)| i != axis)
        .map(|(_, &n)| n)
        .collect();
    let strides = [others(&x.strides), others(&y.strides)];
    let lines = Axes::new(&shape, strides.iter().map(|s| &s[..]), Visit::MemoryOrder);
    let (len, mut steps) = (x.shape[axis], [x.strides[axis], y.strides[axis]]);
    let mut starts = [x.ptr, y.ptr];
    if context.bool("reverse") {
        let last = len as isize - 1;
        for ((start, step), size) in starts
            .iter_mut()
            .zip(&mut steps)
            .zip([x.dtype.size(), y.dtype.size()])
        {
            *start = start.wrapping_add_signed((*step * last * size as isize) as i64);
            *step = -*step;
        }
    }
    if lines.0.len() > MAX_AXES {
        let problem = format!(
            "an array of more than {MAX_AXES} axes that do not follow one another in memory"
        );
        return Err(
            Error::value(context.op.name, problem).with_hint("make a contiguous copy first")
        );
    }
    let by = match lines.len() >= 2048 || len <= 32 {
        true => By::Thread,
        false => By::Block,
    };
    let compute = accumulator(kind, op, x.dtype, y.dtype);
    let num_lines = lines.len();
    let grid = match by {
        By::Thread => Grid::of_len(num_lines),
        By::Block => {
            let threads = len.div_ceil(ITEMS).next_multiple_of(32).clamp(32, THREADS);
            Grid::of_blocks(num_lines.clamp(1, 1 << 16) as u32, threads as u32)
        }
    };
    let over = lines.bytes(0..2);
    let (from, to) = (x.dtype, y.dtype);
    launch(
        context,
        &key(op, compute, from, to, by),
        || text([neutral, combine], compute, from, to, by),
        grid,
        &[
            Arg::Pointer(starts[0]),
            Arg::Pointer(starts[1]),
            Arg::Bytes(&over),
            Arg::U64(num_lines as u64),
            Arg::I64(len as i64),
            Arg::I64(steps[0] as i64),
            Arg::I64(steps[1] as i64),
        ],
    )
}

fn key(op: &str, compute: DType, from: DType, to: DType, by: By) -> String {
    format!(
        "scan:{op}:{}:{}:{}:{by:?}",
        compute.name(),
        from.name(),
        to.name()
    )
}

fn text([neutral, combine]: [&str; 2], compute: DType, from: DType, to: DType, by: By) -> String {
    let mut text = String::from(MATH);
    let (from, to) = (type_name(from), type_name(to));
    // Writing to a string never fails.
    let _ = write!(
        text,
        "
namespace mx {{
typedef {} T;
MX_FN T neutral() {{ return {neutral}; }}
MX_FN T combine(T s, T t) {{ return {combine}; }}
}}
extern \"C\" __global__ void kernel(const mx::{from} *x, mx::{to} *y, mx::Strided<2> over, mx::u64 num_lines, mx::i64 len, mx::i64 x_step, mx::i64 y_step) {{
    using namespace mx;
",
        type_name(compute)
    );
    let body = match by {
        By::Thread => "    for (u64 line = thread_index(); line < num_lines; line += num_threads()) {
        i64 at[2];
        offsets_of<u64>(over, line, at);
        T value = neutral();
        for (i64 i = 0; i < len; i++) {
            value = combine(value, convert<T>(x[at[0] + i * x_step]));
            y[at[1] + i * y_step] = convert<TO>(value);
        }
    }
}
"
        .to_owned(),
        // Each thread folds its items; the prefixes of all threads are computed in log2(threads) steps with doubling distances.
        By::Block => format!(
            "    __shared__ Vector<T, {THREADS}> totals;
    const i64 me = threadIdx.x, count = blockDim.x;
    for (u64 line = blockIdx.x; line < num_lines; line += gridDim.x) {{
        i64 at[2];
        offsets_of<u64>(over, line, at);
        T carry = neutral();
        for (i64 tile = 0; tile < len; tile += count * {ITEMS}) {{
            const i64 first = tile + me * {ITEMS};
            T values[{ITEMS}];
            T value = neutral();
            for (int k = 0; k < {ITEMS}; k++) {{
                if (first + k < len) value = combine(value, convert<T>(x[at[0] + (first + k) * x_step]));
                values[k] = value;
            }}
            totals.at[me] = value;
            __syncthreads();
            for (i64 distance = 1; distance < count; distance *= 2) {{
                const T before = me >= distance ? totals.at[me - distance] : neutral();
                __syncthreads();
                if (me >= distance) totals.at[me] = combine(before, totals.at[me]);
                __syncthreads();
            }}
            const T before = me > 0 ? combine(carry, totals.at[me - 1]) : carry;
            carry = combine(carry, totals.at[count - 1]);
            __syncthreads();
            for (int k = 0; k < {ITEMS}; k++)
                if (first + k < len) y[at[1] + (first + k) * y_step] = convert<TO>(combine(before, values[k]));
        }}
    }}
}}
"
        ),
    };
    text.push_str(&body.replace("TO>", &format!("{to}>")));
    text
}

pub(crate) fn texts(all: &mut Vec<(String, String)>) {
    for &(op, kind, neutral, combine) in SCANS {
        for dtype in DType::ALL {
            let compute = accumulator(kind, op, dtype, dtype);
            for by in [By::Block, By::Thread] {
                let text = text([neutral, combine], compute, dtype, dtype, by);
                all.push((key(op, compute, dtype, dtype, by), text));
            }
        }
    }
}
