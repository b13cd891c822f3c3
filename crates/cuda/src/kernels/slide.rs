//! Sums of products over short distances: correlation of sequences, and sliding-window attention (`slide.cuh`).

use mxnet_core::Result;
use mxnet_core::context::KernelContext;
use mxnet_core::device_kernels::register as add;
use mxnet_tensor::{DType, DeviceKind};

use super::matmul::SUMS;
use super::operand::{Operand, WALK, bytes, c_type, for_each, source};
use crate::launch::{Arg, launch};

const SLIDE: &str = include_str!("../text/slide.cuh");

pub(super) fn register(kind: DeviceKind) -> Result<()> {
    add("convolve", kind, 0, |context| {
        slide(context, Shifts::of(context, true))
    })?;
    add("correlate", kind, 0, |context| {
        slide(context, Shifts::of(context, false))
    })?;
    add("sliding_dot", kind, 0, |context| {
        let (reversed, conjugated) = (context.bool("reversed"), context.bool("conjugated"));
        slide(
            context,
            Shifts {
                before: context.int("before") as usize,
                reversed,
                conjugated,
            },
        )
    })?;
    add("sldwin_atten_score", kind, 0, |context| {
        window(context, 0, None)
    })?;
    add("sldwin_atten_context", kind, 0, |context| {
        window(context, 1, Some(false))
    })?;
    add("sldwin_atten_spread", kind, 0, |context| {
        window(context, 1, Some(true))
    })
}

struct Shifts {
    /// Number of elements of the second sequence that precede the first one at the first shift.
    before: usize,
    reversed: bool,
    conjugated: bool,
}

impl Shifts {
    /// The shifts for the call's mode.
    fn of(context: &KernelContext, is_convolution: bool) -> Shifts {
        let (n, m) = (context.input(0).len(), context.input(1).len());
        let least = n.min(m);
        let start = match context.str("mode") {
            "full" => 0,
            // The centre; for a correlation whose second sequence is the longer one, that of the reversed correlation.
            "same" if m > n && !is_convolution => least / 2,
            "same" => (least - 1) / 2,
            _ => least - 1,
        };
        Shifts {
            before: m - 1 - start,
            reversed: is_convolution,
            conjugated: !is_convolution,
        }
    }
}

fn slide(context: &KernelContext, shifts: Shifts) -> Result<()> {
    let out = context.output(0);
    let dtype = out.dtype();
    let (x, w) = (
        Operand::dense(context, 0, dtype)?,
        Operand::dense(context, 1, dtype)?,
    );
    let args = [
        Arg::Pointer(x.ptr),
        Arg::I64(x.len() as i64),
        Arg::Pointer(w.ptr),
        Arg::I64(w.len() as i64),
        Arg::Output(0),
        Arg::I64(out.len() as i64),
        Arg::I64(shifts.before as i64),
        Arg::I64(i64::from(shifts.reversed)),
        Arg::I64(i64::from(shifts.conjugated)),
    ];
    run(context, "SLIDE", dtype, out.len(), &args)
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Window {
    batch: i64,
    length: i64,
    heads: i64,
    dim: i64,
    before: i64,
    width: i64,
    dilations: u64,
}

/// Scores of the rows of input `rows` with those in their windows; or weighted sums of these, gathered or scattered.
fn window(context: &KernelContext, rows: usize, scatter: Option<bool>) -> Result<()> {
    let out = context.output(0);
    let dtype = out.dtype();
    let (a, b) = (
        Operand::dense(context, 0, dtype)?,
        Operand::dense(context, 1, dtype)?,
    );
    let dilations = Operand::dense(context, 2, DType::I64)?;
    let shape = context.input(rows).shape();
    let before = context.int("w");
    let g = Window {
        batch: shape[0] as i64,
        length: shape[1] as i64,
        heads: shape[2] as i64,
        dim: shape[3] as i64,
        before,
        width: if context.bool("symmetric") {
            2 * before + 1
        } else {
            before + 1
        },
        dilations: dilations.ptr,
    };
    let mut args = vec![
        Arg::Pointer(a.ptr),
        Arg::Pointer(b.ptr),
        Arg::Output(0),
        Arg::Bytes(bytes(&g)),
    ];
    let which = match scatter {
        None => "SCORES",
        Some(scatter) => {
            args.push(Arg::I64(i64::from(scatter)));
            "SUMS"
        }
    };
    run(context, which, dtype, out.len(), &args)
}

fn run(context: &KernelContext, which: &str, dtype: DType, n: usize, args: &[Arg]) -> Result<()> {
    if n == 0 {
        return Ok(());
    }
    launch(
        context,
        &key(which, dtype),
        || text(which, dtype),
        for_each(n),
        args,
    )
}

fn key(which: &str, dtype: DType) -> String {
    format!("slide_{}:{}", which.to_lowercase(), c_type(dtype))
}

fn text(which: &str, dtype: DType) -> String {
    let window = if which == "SLIDE" {
        ""
    } else {
        "#define WINDOW\n"
    };
    let head = format!("typedef {} T;\n{window}#define {which}", c_type(dtype));
    source(&[WALK, &head, SUMS, SLIDE])
}

pub(super) fn texts(all: &mut Vec<(String, String)>) {
    for dtype in DType::ALL {
        all.push((key("SLIDE", dtype), text("SLIDE", dtype)));
        if !dtype.is_complex() {
            all.push((key("SCORES", dtype), text("SCORES", dtype)));
            all.push((key("SUMS", dtype), text("SUMS", dtype)));
        }
    }
}
