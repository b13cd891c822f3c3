//! Pooling, its gradient, and the second gradient of max pooling (`pool.cuh`).

use mxnet_core::Result;
use mxnet_core::context::KernelContext;
use mxnet_core::device_kernels::register as add;
use mxnet_tensor::{DType, DeviceKind};

use super::conv::{channels_to_front, extents, spread, staged};
use super::operand::{self, Operand, WALK, bytes, c_type, for_each, source};
use crate::launch::{Arg, launch};
use crate::text::MATH;

const POOL: &str = include_str!("../text/pool.cuh");

pub(super) fn register(kind: DeviceKind) -> Result<()> {
    add("pooling", kind, 0, |context| {
        run(context, "FORWARD", &[0], 0)
    })?;
    add("pooling_gradient", kind, 0, |context| {
        run(context, "GRADIENT", &[0, 1], 1)
    })?;
    add("pooling_select", kind, 0, |context| {
        run(context, "SELECT", &[0, 1], 1)
    })
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Pool {
    planes: i64,
    kind: i64,
    p: i64,
    input: [i64; 3],
    output: [i64; 3],
    kernel: [i64; 3],
    stride: [i64; 3],
    pad: [i64; 3],
    pad_end: [i64; 3],
}

/// Launches a kernel of the source for the inputs; `data` is the index of the data.
fn run(context: &KernelContext, which: &'static str, inputs: &[usize], data: usize) -> Result<()> {
    let channels_last = context.str("layout").ends_with('C');
    let shape = channels_to_front(context.input(data).shape(), channels_last);
    let spatial = shape.len() - 2;
    let dtype = context.output(0).dtype();
    let mut operands = Vec::new();
    for &i in inputs {
        let x = Operand::input(context, i)?;
        let (shape, strides) = (
            channels_to_front(&x.shape, channels_last),
            channels_to_front(&x.strides, channels_last),
        );
        operands.push(x.with(&shape, &strides).into_dense(context, dtype)?);
    }
    let (out, target) = staged(context, context.output(0), channels_last)?;
    if out.is_empty() {
        return Ok(());
    }
    // Shape inference has checked that windows fit, so the extents of results are those of the operands.
    let results = match which {
        "GRADIENT" => channels_to_front(context.input(0).shape(), channels_last),
        _ => channels_to_front(context.output(0).shape(), channels_last),
    };
    let numbers = |x: [usize; 3]| x.map(|x| x as i64);
    let input = extents(&shape[2..]);
    let is_global = context.bool("global_pool");
    let [kernel, stride, pad] = match is_global {
        true => [input, [1; 3], [0; 3]],
        false => [
            spread(context, "kernel", spatial, 1),
            spread(context, "stride", spatial, 1),
            spread(context, "pad", spatial, 0),
        ],
    };
    let counts_pad = context.is_none("count_include_pad") || context.bool("count_include_pad");
    let kind = match context.str("pool_type") {
        "max" => 0,
        "sum" => 1,
        "lp" => 4,
        _ if counts_pad => 3,
        _ => 2,
    };
    let pool = Pool {
        planes: (shape[0] * shape[1]) as i64,
        kind,
        p: context.opt_int("p_value").unwrap_or(2),
        input: numbers(input),
        output: numbers(extents(&results[2..])),
        kernel: numbers(kernel),
        stride: numbers(stride),
        pad: numbers(pad),
        pad_end: numbers(pad),
    };
    let mut args: Vec<Arg> = operands.iter().map(|x| Arg::Pointer(x.ptr)).collect();
    args.extend([Arg::Pointer(out.ptr), Arg::Bytes(bytes(&pool))]);
    launch(
        context,
        &key(which, dtype),
        || text(which, dtype),
        for_each(out.len()),
        &args,
    )?;
    match target {
        Some(target) => operand::copy(context, &out, &target),
        None => Ok(()),
    }
}

fn key(which: &str, dtype: DType) -> String {
    format!("pool_{}:{}", which.to_lowercase(), c_type(dtype))
}

fn text(which: &str, dtype: DType) -> String {
    let head = format!(
        "typedef {} T;\ntypedef compute<T> R;\n#define {which}",
        c_type(dtype)
    );
    source(&[MATH, WALK, &head, POOL])
}

pub(super) fn texts(all: &mut Vec<(String, String)>) {
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        for which in ["FORWARD", "GRADIENT", "SELECT"] {
            all.push((key(which, dtype), text(which, dtype)));
        }
    }
}
