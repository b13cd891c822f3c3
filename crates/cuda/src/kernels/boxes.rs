//! Boxes and regions of images: bipartite matching, non-maximum suppression, and region pooling (`boxes.cuh`).

use mxnet_core::context::KernelContext;
use mxnet_core::device_kernels::register as add;
use mxnet_core::{Error, Result};
use mxnet_tensor::{DType, DeviceKind};

use super::operand::{self, Operand, WALK, bytes, c_type, launch_each, report, source};
use super::order::{Direction, argsorted};
use crate::launch::{Arg, Grid, launch};
use crate::text::MATH;

const BOXES: &str = include_str!("../text/boxes.cuh");

pub(super) fn register(kind: DeviceKind) -> Result<()> {
    add("match_pairs", kind, 0, match_pairs)?;
    add("box_nms_order", kind, 0, keep)?;
    add("roi_largest", kind, 0, |context| {
        let dtype = match context.input(0).dtype() {
            dtype @ (DType::F32 | DType::F16 | DType::BF16) => dtype,
            _ => DType::F64,
        };
        let data = Operand::dense(context, 0, dtype)?;
        let shape = data.shape.clone();
        let (g, _rois) = regions(context, &shape, false)?;
        let faults = invalid_image(context, shape[0])?;
        let args = [
            Arg::Pointer(data.ptr),
            Arg::Output(0),
            Arg::Bytes(bytes(&g)),
            faults,
        ];
        run(
            context,
            "LARGEST",
            c_type(dtype),
            context.output(0).len(),
            &args,
        )
    })?;
    add("roi_align", kind, 0, |context| {
        let out = context.output(0);
        let data = Operand::dense(context, 0, out.dtype())?;
        let shape = data.shape.clone();
        let (g, _rois) = regions(context, &shape, true)?;
        let channels = out.shape()[1] as i64;
        let faults = invalid_image(context, shape[0])?;
        let args = [
            Arg::Pointer(data.ptr),
            Arg::Output(0),
            Arg::Bytes(bytes(&g)),
            Arg::I64(channels),
            faults,
        ];
        run(context, "ALIGN", c_type(out.dtype()), out.len(), &args)
    })?;
    add("roi_align_spread", kind, 0, |context| {
        let out = context.output(0);
        let dy = Operand::dense(context, 0, out.dtype())?;
        let (g, _rois) = regions(context, out.shape(), true)?;
        let channels = dy.shape[1] as i64;
        let faults = invalid_image(context, out.shape()[0])?;
        let args = [
            Arg::Pointer(dy.ptr),
            Arg::Output(0),
            Arg::Bytes(bytes(&g)),
            Arg::I64(channels),
            faults,
        ];
        run(context, "SPREAD", c_type(out.dtype()), out.len(), &args)
    })
}

fn match_pairs(context: &KernelContext) -> Result<()> {
    let x = Operand::dense(context, 0, DType::F64)?;
    let [batch, n, m] = [x.shape[0], x.shape[1], x.shape[2]];
    if batch * n * m == 0 {
        return (0..2).try_for_each(|i| {
            operand::fill(
                context,
                &Operand::of(context.output(i)),
                mxnet_tensor::Scalar::I64(-1),
            )
        });
    }
    let is_ascend = context.bool("is_ascend");
    let direction = if is_ascend {
        Direction::Ascending
    } else {
        Direction::Descending
    };
    let order = argsorted(context, &x, n * m, direction)?;
    let limit = match context.int("topk") {
        topk if topk > 0 => topk.min(n.min(m) as i64),
        _ => n.min(m) as i64,
    };
    let args = [
        Arg::Pointer(x.ptr),
        Arg::Pointer(order.ptr),
        Arg::Output(0),
        Arg::Output(1),
        Arg::I64(batch as i64),
        Arg::I64(n as i64),
        Arg::I64(m as i64),
        Arg::F64(context.float("threshold")),
        Arg::I64(i64::from(is_ascend)),
        Arg::I64(limit),
    ];
    run(context, "PAIRS", "f64", batch, &args)
}

fn keep(context: &KernelContext) -> Result<()> {
    let boxes = Operand::dense(context, 0, DType::F64)?;
    let [batch, n, k] = [boxes.shape[0], boxes.shape[1], boxes.shape[2]];
    if batch * n == 0 {
        return Ok(());
    }
    let scores = Operand::new(context, &[batch, n], DType::F64)?;
    let class = context.int("id_index");
    let args = [
        Arg::Pointer(boxes.ptr),
        Arg::Pointer(scores.ptr),
        Arg::I64((batch * n) as i64),
        Arg::I64(k as i64),
        Arg::I64(context.int("score_index")),
        Arg::I64(class),
        Arg::I64(context.int("background_id")),
        Arg::F64(context.float("valid_thresh")),
    ];
    run(context, "SCORES", "f64", batch * n, &args)?;
    let order = argsorted(context, &scores, n, Direction::Descending)?;
    let gone = Operand::new(context, &[batch, n], DType::U8)?;
    let topk = context.int("topk");
    let args = [
        Arg::Pointer(boxes.ptr),
        Arg::Pointer(scores.ptr),
        Arg::Pointer(order.ptr),
        Arg::Output(0),
        Arg::Pointer(gone.ptr),
        Arg::I64(batch as i64),
        Arg::I64(n as i64),
        Arg::I64(k as i64),
        Arg::I64(context.int("coord_start")),
        Arg::I64(class.max(0)),
        Arg::I64(i64::from(class < 0 || context.bool("force_suppress"))),
        Arg::I64(i64::from(context.str("in_format") == "center")),
        Arg::F64(context.float("overlap_thresh")),
        Arg::I64(if topk > 0 { topk } else { i64::MAX }),
    ];
    let grid = Grid {
        blocks: [batch.clamp(1, 1 << 20) as u32, 1, 1],
        threads: [n.next_multiple_of(32).clamp(32, 256) as u32, 1, 1],
        shared_bytes: 0,
    };
    launch(
        context,
        &key("KEEP", "f64"),
        || text("KEEP", "f64"),
        grid,
        &args,
    )
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Regions {
    images: i64,
    channels: i64,
    height: i64,
    width: i64,
    count: i64,
    down: i64,
    right: i64,
    samples: i64,
    is_aligned: i64,
    is_by_position: i64,
    scale: f64,
    regions: u64,
}

/// The regions of a call (its second argument), in images of this shape.
fn regions<'a>(
    context: &KernelContext<'a>,
    images: &[usize],
    has_samples: bool,
) -> Result<(Regions, Operand<'a>)> {
    let rois = Operand::dense(context, 1, DType::F64)?;
    let bins = context.ints("pooled_size");
    let flag = |name: &str| i64::from(has_samples && context.bool(name));
    let g = Regions {
        images: images[0] as i64,
        channels: images[1] as i64,
        height: images[2] as i64,
        width: images[3] as i64,
        count: rois.shape[0] as i64,
        down: bins[0],
        right: bins[bins.len() - 1],
        samples: if has_samples {
            context.int("sample_ratio").max(0)
        } else {
            0
        },
        is_aligned: flag("aligned"),
        is_by_position: flag("position_sensitive"),
        scale: context.float("spatial_scale"),
        regions: rois.ptr,
    };
    Ok((g, rois))
}

/// The fault argument for a region whose image index is out of range.
fn invalid_image(context: &KernelContext, images: usize) -> Result<Arg<'static>> {
    let op = context.op.name;
    report(context, move |[region, image, _]| {
        let image = f64::from_bits(image as u64);
        Error::index(
            op,
            format!("region {region} is of image {image}, but there are {images} images"),
        )
    })
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
    format!("boxes_{}:{name}", which.to_lowercase())
}

fn text(which: &str, name: &str) -> String {
    let mut head = format!("typedef {name} T;\ntypedef compute<T> R;\n#define {which}\n");
    if matches!(which, "LARGEST" | "ALIGN" | "SPREAD") {
        head.push_str("#define REGIONS\n");
    }
    if matches!(which, "ALIGN" | "SPREAD") {
        head.push_str("#define MEANS\n");
    }
    source(&[MATH, WALK, operand::FAULT, &head, BOXES])
}

pub(super) fn texts(all: &mut Vec<(String, String)>) {
    for which in ["PAIRS", "SCORES", "KEEP"] {
        all.push((key(which, "f64"), text(which, "f64")));
    }
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        for which in ["LARGEST", "ALIGN", "SPREAD"] {
            all.push((key(which, c_type(dtype)), text(which, c_type(dtype))));
        }
    }
}
