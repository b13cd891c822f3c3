//! Boxes of object detection: overlap and non-maximum suppression.

use mxnet_tensor::{Dims, Scalar};

use super::nms::BOX_NMS_ORDER;
use crate::Array;
use crate::args::{Attrs, Param};
use crate::context::CallContext;
use crate::elementwise::comparison::{GREATER, LESS};
use crate::elementwise::select::WHERE;
use crate::error::Result;
use crate::index::take_along_axis;
use crate::invoke::invoke1;
use crate::opdef::{Cpu, OpDef, Probe, Surface};
use crate::shape::{concatenate, narrow};

const FORMATS: &[&str] = &["corner", "center"];

/// Overlaps of boxes.
pub static BOX_IOU: OpDef = OpDef {
    name: "box_iou",
    surface: &[Surface::Npx("box_iou")],
    params: &[
        Param::array("lhs"),
        Param::array("rhs"),
        Param::choice("format", FORMATS, "corner"),
    ],
    doc: "Intersection over union of every box of one set with every box of another.",
    about: &[
        ("lhs", "Boxes, of shape (..., 4)."),
        ("rhs", "Boxes, of shape (..., 4)."),
        (
            "format",
            "Boxes are (left, top, right, bottom), or (x, y, width, height) with x and y in the middle.",
        ),
    ],
    returns: &[(
        "ndarray",
        "Of shape `lhs.shape[:-1] + rhs.shape[:-1]`; 0 where neither box has an area.",
    )],
    raises: &[("ValueError", "If a last axis does not have length 4.")],
    example: "
        >>> npx.box_iou([[0.0, 0.0, 2.0, 2.0], [1.0, 0.0, 2.0, 1.0]], [[0.0, 0.0, 2.0, 1.0]])
        array([[0.5],
               [0.5]])
    ",
    cpu: Cpu::Composite(|context| {
        let (a, b) = (boxes(context, 0)?, boxes(context, 1)?);
        let is_boxes = |x: &Array| x.shape().last() == Some(&4);
        if !is_boxes(&a) || !is_boxes(&b) {
            return Err(
                context.shape_error("the last axis of `lhs` and of `rhs` must have length 4")
            );
        }
        let lead = |x: &Array| Dims::from_slice(&x.shape()[..x.ndim() - 1]);
        let shape: Dims = lead(&a).into_iter().chain(lead(&b)).collect();
        let (n, m) = (lead(&a).iter().product(), lead(&b).iter().product());
        let (a, b) = (a.reshape(&[n, 1, 4])?, b.reshape(&[1, m, 4])?);
        let ((near_a, far_a), (near_b, far_b)) = (halves(&a)?, halves(&b)?);
        let shared = area(&near_a.maximum(&near_b)?, &far_a.minimum(&far_b)?)?;
        let union = area(&near_a, &far_a)?
            .add(&area(&near_b, &far_b)?)?
            .sub(&shared)?;
        // A union of 0 is replaced before the division, so that its gradient is not NaN.
        let is_some = union.with_scalar(&GREATER, 0.0)?;
        let divisor = invoke1(&WHERE, &[&is_some, &union, &number(1)?], &Attrs::none())?;
        let ratio = shared.div(&divisor)?;
        let ratio = invoke1(&WHERE, &[&is_some, &ratio, &number(0)?], &Attrs::none())?;
        context.done(ratio.reshape(&shape)?)
    }),
    probe: Probe::calls(&[
        "f((3, 4)), f((2, 4))",
        "f((2, 3, 4)), f((4,)), 'center'",
        "f((0, 4)), f((2, 4))",
    ]),
    ..OpDef::COMPOSITE
};

/// Non-maximum suppression.
pub static BOX_NMS: OpDef = OpDef {
    name: "box_nms",
    surface: &[Surface::Npx("box_nms")],
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
        Param::choice("in_format", FORMATS, "corner"),
        Param::choice("out_format", FORMATS, "corner"),
    ],
    doc: "Non-maximum suppression: keeps the boxes whose overlap with every kept box of higher score is at most `overlap_thresh`.",
    about: &[
        (
            "data",
            "Boxes of k numbers, coordinates and a score among them: of shape (..., n, k), float.",
        ),
        (
            "overlap_thresh",
            "Intersection over union above which the worse of two boxes is removed.",
        ),
        ("valid_thresh", "Boxes with scores up to this are removed."),
        (
            "topk",
            "Number of best boxes that are considered; all if it is not above 0.",
        ),
        ("coord_start", "Index of the first of the four coordinates."),
        ("score_index", "Index of the score."),
        (
            "id_index",
            "Index of the class; -1 means a single class.",
        ),
        ("background_id", "Boxes of this class are removed; -1 for none."),
        (
            "force_suppress",
            "Whether boxes of different classes suppress each other.",
        ),
        ("in_format", "Format of the coordinates, see `box_iou`."),
        (
            "out_format",
            "Format of the result's coordinates, see `box_iou`.",
        ),
    ],
    returns: &[(
        "ndarray",
        "Shape and dtype of `data`: the remaining boxes by descending score, then -1. The gradient flows back to their original positions.",
    )],
    raises: &[("ValueError", "If an index does not fit.")],
    example: "
        >>> boxes = np.array([[0, 0.9, 0, 0, 2, 2], [0, 0.8, 0, 0, 2, 2], [0, 0.7, 5, 5, 6, 6]])
        >>> npx.box_nms(boxes, overlap_thresh=0.5, id_index=0)[:, 1]  # the second overlaps the first
        array([ 0.9,  0.7, -1. ])
    ",
    cpu: Cpu::Composite(|context| {
        let x = context.input(0);
        let [lead @ .., n, k] = x.shape() else {
            return Err(context.shape_error("`data` must have at least two axes"));
        };
        let (n, k) = (*n, *k);
        let rows = x.reshape(&[lead.iter().product(), n, k])?;
        let order_attrs: Attrs = context.args.attrs.values()[..9].iter().cloned().collect();
        let order = invoke1(&BOX_NMS_ORDER, &[&rows.detach()], &order_attrs)?;
        let order = order.reshape(&[rows.shape()[0], n, 1])?;
        let mut kept = match n {
            0 => rows,
            _ => take_along_axis(&rows, &order.maximum(&number(0)?)?, 1, "raise")?,
        };
        if context.str("in_format") != context.str("out_format") {
            let at = context.int("coord_start") as usize;
            let converted = match context.str("out_format") {
                "center" => to_centres(&narrow(&kept, 2, at, at + 4)?)?,
                _ => to_corners(&narrow(&kept, 2, at, at + 4)?)?,
            };
            let (before, after) = (narrow(&kept, 2, 0, at)?, narrow(&kept, 2, at + 4, k)?);
            kept = concatenate(&[&before, &converted, &after], 2)?;
        }
        let is_none = order.binary(&LESS, &number(0)?)?;
        let result = invoke1(&WHERE, &[&is_none, &number(-1)?, &kept], &Attrs::none())?;
        context.done(result.reshape(x.shape())?)
    }),
    probe: Probe::calls(&[
        "f((5, 6))",
        "f((2, 4, 6)), 0.3, 0.1, 3, 2, 1, 0, in_format='center'",
        "f((1, 0, 6)), out_format='center'",
    ]),
    ..OpDef::COMPOSITE
};

/// A Python integer as a weak scalar.
fn number(value: i64) -> Result<Array> {
    Array::weak_scalar(Scalar::I64(value))
}

/// Argument `i` as (left, top, right, bottom).
fn boxes(context: &CallContext, i: usize) -> Result<Array> {
    let x = context.input(i);
    match context.str("format") {
        "center" if x.shape().last() == Some(&4) => to_corners(x),
        _ => Ok(x.clone()),
    }
}

/// The first two and the last two coordinates of boxes.
fn halves(x: &Array) -> Result<(Array, Array)> {
    let last = x.ndim() - 1;
    Ok((narrow(x, last, 0, 2)?, narrow(x, last, 2, 4)?))
}

/// (x, y, width, height) -> (left, top, right, bottom).
fn to_corners(x: &Array) -> Result<Array> {
    let (centre, size) = halves(x)?;
    let half = size.scale(0.5)?;
    concatenate(&[&centre.sub(&half)?, &centre.add(&half)?], x.ndim() - 1)
}

/// (left, top, right, bottom) -> (x, y, width, height).
fn to_centres(x: &Array) -> Result<Array> {
    let (near, far) = halves(x)?;
    let centre = near.add(&far)?.scale(0.5)?;
    concatenate(&[&centre, &far.sub(&near)?], x.ndim() - 1)
}

/// Products of the sizes along the last axis, of boxes of shape (.., .., 2); 0 where an end lies before its start.
fn area(near: &Array, far: &Array) -> Result<Array> {
    let size = far.sub(near)?.maximum(&number(0)?)?;
    let side = |i: usize| {
        let side = narrow(&size, 2, i, i + 1)?;
        side.reshape(&size.shape()[..2])
    };
    side(0)?.mul(&side(1)?)
}
