//! Non-maximum suppression: which boxes remain. `npx.box_nms` uses it.

use mxnet_kernels::scratch::{collected, filled};
use mxnet_tensor::{DType, Dims, Tensor};

use crate::args::Param;
use crate::context::{CallContext, KernelContext};
use crate::cpu;
use crate::error::Result;
use crate::opdef::{Cost, Cpu, Grad, Inferred, OpDef, Probe, one_of};

/// The order of the boxes that remain.
pub static BOX_NMS_ORDER: OpDef = OpDef {
    name: "box_nms_order",
    params: &[
        Param::array("data"),
        Param::float("overlap_thresh", 0.5),
        Param::float("valid_thresh", 0.0),
        Param::int("topk", -1),
        Param::int("coord_start", 2),
        Param::int("score_index", 1),
        Param::int("id_index", -1),
        Param::int("background_id", -1),
        Param::bool("force_suppress", false),
        Param::choice("in_format", &["corner", "center"], "corner"),
    ],
    doc: "Positions of the boxes in the rows of `data`, shape (b, n, k), that non-maximum suppression keeps, by descending score, then -1. int64, (b, n).",
    infer,
    cpu: Cpu::Kernel(keep),
    grad: Grad::Stop("which boxes stay is piecewise constant"),
    cost: Cost::Of(|context| {
        let shape = context.shape(0);
        (shape[0] * shape[1] * shape[1] * 5) as u64
    }),
    probe: Probe::calls(&[
        "f((2, 5, 6))",
        "f((1, 7, 6)), 0.1, 0.2, 4, 2, 1, 0, force_suppress=True, in_format='center'",
        "f((1, 0, 6))",
    ]),
    ..OpDef::DEFAULT
};

fn infer(context: &CallContext) -> Result<Inferred> {
    let &[b, n, k] = context.shape(0) else {
        return Err(context.shape_error("`data` must have three axes"));
    };
    let columns_of_fields = [
        ("coord_start", context.int("coord_start"), 4),
        ("score_index", context.int("score_index"), 1),
        ("id_index", context.int("id_index").max(0), 1),
    ];
    for (name, first, count) in columns_of_fields {
        if first < 0 || first.saturating_add(count) > k as i64 {
            return Err(context.value_error(format!(
                "`{name}` is {first}, but {count} elements from there on exceed the {k} elements of a box"
            )));
        }
    }
    one_of(Dims::from_slice(&[b, n]), DType::I64)
}

fn keep(context: &KernelContext) -> Result<()> {
    let x = context.input(0);
    let dense = Tensor::empty(x.shape(), DType::F64, x.device())?;
    cpu::copy(x, &dense, context.threads)?;
    let elements: Vec<f64> = cpu::read_dense(&dense);
    let (n, k) = (x.shape()[1], x.shape()[2]);
    let mut orders = collected(context.output(0).len(), []);
    for batch in elements.chunks_exact((n * k).max(1)) {
        let boxes = collected(n, batch.chunks_exact(k));
        let mut kept = kept(context, &boxes);
        kept.resize(n, -1);
        orders.extend(kept);
    }
    cpu::fill_from(context.output(0), &orders);
    Ok(())
}

/// Positions of the boxes that do not overlap a better box of their class too much.
fn kept(context: &KernelContext, boxes: &[&[f64]]) -> Vec<i64> {
    let (score, class) = (context.int("score_index") as usize, context.int("id_index"));
    let (valid, background) = (context.float("valid_thresh"), context.int("background_id"));
    let class_of = |b: &[f64]| if class < 0 { -1.0 } else { b[class as usize] };
    let is_candidate = |b: &[f64]| {
        b[score] > valid && !(class >= 0 && background >= 0 && class_of(b) == background as f64)
    };
    let candidates = (0..boxes.len()).filter(|&i| is_candidate(boxes[i]));
    let mut order = collected(boxes.len(), candidates);
    order.sort_unstable_by(|&i, &j| {
        let by_score = boxes[j][score].total_cmp(&boxes[i][score]);
        by_score.then(i.cmp(&j))
    });
    if context.int("topk") > 0 {
        order.truncate(context.int("topk") as usize);
    }
    let corners = collected(
        order.len(),
        order.iter().map(|&i| corners(context, boxes[i])),
    );
    let limit = context.float("overlap_thresh");
    let is_one_class = class < 0 || context.bool("force_suppress");
    let mut is_gone = filled(order.len(), false);
    let mut kept = collected(boxes.len(), []);
    for i in 0..order.len() {
        if is_gone[i] {
            continue;
        }
        kept.push(order[i] as i64);
        for j in i + 1..order.len() {
            let rivals = is_one_class || class_of(boxes[order[i]]) == class_of(boxes[order[j]]);
            is_gone[j] |= rivals && overlap(&corners[i], &corners[j]) > limit;
        }
    }
    kept
}

/// A box as (left, top, right, bottom).
fn corners(context: &KernelContext, b: &[f64]) -> [f64; 4] {
    let at = context.int("coord_start") as usize;
    let [x, y, z, w] = [b[at], b[at + 1], b[at + 2], b[at + 3]];
    match context.str("in_format") {
        "center" => [x - z / 2.0, y - w / 2.0, x + z / 2.0, y + w / 2.0],
        _ => [x, y, z, w],
    }
}

/// Intersection over union; 0 for boxes without an area.
fn overlap(a: &[f64; 4], b: &[f64; 4]) -> f64 {
    let area = |c: &[f64; 4]| (c[2] - c[0]).max(0.0) * (c[3] - c[1]).max(0.0);
    let both = [
        a[0].max(b[0]),
        a[1].max(b[1]),
        a[2].min(b[2]),
        a[3].min(b[3]),
    ];
    let shared = area(&both);
    let union = area(a) + area(b) - shared;
    if union > 0.0 { shared / union } else { 0.0 }
}
