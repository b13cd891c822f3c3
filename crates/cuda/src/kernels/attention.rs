//! Attention and its gradients, without storing the matrix of scores (`attention.cuh`).

use mxnet_core::Result;
use mxnet_core::context::KernelContext;
use mxnet_core::device_kernels::register as add;
use mxnet_tensor::{DType, DeviceKind, Dims};

use super::operand::{self, Operand, WALK, Walk, bytes, c_type, source};
use crate::launch::{Arg, Grid, launch};
use crate::text::MATH;

const ATTENTION: &str = include_str!("../text/attention.cuh");

pub(super) fn register(kind: DeviceKind) -> Result<()> {
    add("attention", kind, 0, forward)?;
    add("attention_gradient", kind, 0, backward)
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Attention {
    batches: i64,
    queries: i64,
    keys: i64,
    dim: i64,
    value_dim: i64,
    is_causal: i64,
    scale: f64,
    mask: u64,
    mask_row: i64,
    mask_column: i64,
    mask_batch: Walk,
}

/// The compute type of a dtype.
pub(super) fn computed(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        other => other,
    }
}

/// Sizes of a call, and its mask, which must live until the launch.
fn geometry<'a>(
    context: &KernelContext<'a>,
    dtype: DType,
) -> Result<(Attention, Option<Operand<'a>>)> {
    let (q, k, v) = (
        context.input(0).shape(),
        context.input(1).shape(),
        context.input(2).shape(),
    );
    let axes = q.len();
    let lead = &q[..axes - 2];
    let mut g = Attention {
        batches: lead.iter().product::<usize>() as i64,
        queries: q[axes - 2] as i64,
        keys: k[axes - 2] as i64,
        dim: q[axes - 1] as i64,
        value_dim: v[axes - 1] as i64,
        is_causal: i64::from(context.bool("is_causal")),
        scale: context.float("scale"),
        mask: 0,
        mask_row: 0,
        mask_column: 0,
        mask_batch: Walk::new(&[], &[], &[]),
    };
    let Some(_) = context.opt(3) else {
        return Ok((g, None));
    };
    let mask = Operand::typed(context, 3, computed(dtype))?;
    let scores: Dims = lead
        .iter()
        .copied()
        .chain([q[axes - 2], k[axes - 2]])
        .collect();
    let layout = mask.layout()?.broadcast_to(&scores)?;
    let strides = layout.strides();
    g.mask = mask.ptr;
    g.mask_row = strides[axes - 2] as i64;
    g.mask_column = strides[axes - 1] as i64;
    g.mask_batch = Walk::new(lead, &strides[..axes - 2], &strides[..axes - 2]);
    Ok((g, Some(mask)))
}

/// Grid of blocks of 256 threads: along x tiles of `tile` rows, along y parts of 64 elements of `width`.
fn grid(batches: i64, rows: i64, tile: i64, width: i64) -> Grid {
    let tiles = batches * ((rows + tile - 1) / tile);
    Grid {
        blocks: [
            tiles.clamp(1, 1 << 30) as u32,
            ((width + 63) / 64).clamp(1, 65535) as u32,
            1,
        ],
        threads: [256, 1, 1],
        shared_bytes: 0,
    }
}

fn forward(context: &KernelContext) -> Result<()> {
    let out = context.output(0);
    let dtype = out.dtype();
    let (g, _mask) = geometry(context, dtype)?;
    let [q, k, v] = [
        Operand::dense(context, 0, dtype)?,
        Operand::dense(context, 1, dtype)?,
        Operand::dense(context, 2, dtype)?,
    ];
    if g.batches * g.queries == 0 {
        return Ok(());
    }
    let args = [
        Arg::Pointer(q.ptr),
        Arg::Pointer(k.ptr),
        Arg::Pointer(v.ptr),
        Arg::Output(0),
        Arg::Output(1),
        Arg::Bytes(bytes(&g)),
    ];
    let grid = grid(g.batches, g.queries, 64, g.value_dim);
    launch(
        context,
        &key("FORWARD", dtype),
        || text("FORWARD", dtype),
        grid,
        &args,
    )
}

fn backward(context: &KernelContext) -> Result<()> {
    let dtype = context.output(0).dtype();
    let (g, _mask) = geometry(context, dtype)?;
    let dense = |i: usize, dtype: DType| Operand::dense(context, i, dtype);
    let [q, k, v] = [dense(0, dtype)?, dense(1, dtype)?, dense(2, dtype)?];
    let (out, lse, dout) = (
        dense(4, dtype)?,
        dense(5, computed(dtype))?,
        dense(6, dtype)?,
    );
    let rows = g.batches * g.queries;
    if rows == 0 || g.keys == 0 {
        return (0..3).try_for_each(|i| {
            operand::fill(
                context,
                &Operand::of(context.output(i)),
                mxnet_tensor::Scalar::I64(0),
            )
        });
    }
    let shares = Operand::new(context, &[rows as usize], computed(dtype))?;
    let args = [
        Arg::Pointer(out.ptr),
        Arg::Pointer(dout.ptr),
        Arg::Pointer(shares.ptr),
        Arg::I64(rows),
        Arg::I64(g.value_dim),
    ];
    let of_rows = Grid {
        blocks: [((rows + 7) / 8).clamp(1, 1 << 16) as u32, 1, 1],
        threads: [256, 1, 1],
        shared_bytes: 0,
    };
    launch(
        context,
        &key("SHARES", dtype),
        || text("SHARES", dtype),
        of_rows,
        &args,
    )?;
    for own_keys in [0, 1] {
        let args = [
            Arg::Pointer(q.ptr),
            Arg::Pointer(k.ptr),
            Arg::Pointer(v.ptr),
            Arg::Pointer(dout.ptr),
            Arg::Pointer(lse.ptr),
            Arg::Pointer(shares.ptr),
            Arg::Output(0),
            Arg::Output(1),
            Arg::Output(2),
            Arg::Bytes(bytes(&g)),
            Arg::I64(own_keys),
        ];
        let (count, width) = match own_keys {
            0 => (g.queries, g.dim),
            _ => (g.keys, g.dim.max(g.value_dim)),
        };
        let grid = grid(g.batches, count, 32, width);
        launch(
            context,
            &key("BACKWARD", dtype),
            || text("BACKWARD", dtype),
            grid,
            &args,
        )?;
    }
    Ok(())
}

fn key(which: &str, dtype: DType) -> String {
    format!("attention_{}:{}", which.to_lowercase(), c_type(dtype))
}

fn text(which: &str, dtype: DType) -> String {
    let head = format!(
        "typedef {} T;\ntypedef compute<T> R;\n#define {which}",
        c_type(dtype)
    );
    source(&[MATH, WALK, &head, ATTENTION])
}

pub(super) fn texts(all: &mut Vec<(String, String)>) {
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        for which in ["FORWARD", "SHARES", "BACKWARD"] {
            all.push((key(which, dtype), text(which, dtype)));
        }
    }
}
