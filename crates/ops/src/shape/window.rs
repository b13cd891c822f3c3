//! Views with given strides: sliding windows and `as_strided`.

use mxnet_tensor::{Dims, Layout, Strides};
use smallvec::SmallVec;

use crate::Array;
use crate::args::{Attrs, Param, ParamKind, Value};
use crate::autograd::GradContext;
use crate::creation;
use crate::creation::dims;
use crate::error::{Error, Result};
use crate::index::SCATTER_ALONG;
use crate::invoke::invoke1;
use crate::opdef::{Cpu, Grad, Grads, Keep, OpDef, Probe, Viewed};

/// Windows that slide over some axes.
pub static SLIDING_WINDOWS: OpDef = OpDef {
    name: "sliding_windows",
    reports_as: Some("sliding_window_view"),
    params: &[
        Param::array("x"),
        Param::required("window_shape", ParamKind::Ints),
        Param::required("axis", ParamKind::Ints),
        Param::bool("writeable", false),
    ],
    doc: "View whose last axes are the windows of `window_shape` that slide over the axes `axis`; those axes count the windows. An axis may occur \
        several times. Windows share elements, so the view is read-only by default.",
    cpu: Cpu::View(|context| {
        let (sizes, axes) = (context.ints("window_shape"), context.ints("axis"));
        let layout = context.layout;
        let mut shape = Dims::from_slice(layout.shape());
        let mut strides = Strides::from_slice(layout.strides());
        for (&size, &axis) in sizes.iter().zip(axes) {
            let axis = mxnet_tensor::normalize_axis(axis as isize, layout.ndim())?;
            let Some(rest) = (shape[axis] as i64 + 1)
                .checked_sub(size)
                .filter(|&n| n > 0 && size >= 0)
            else {
                return Err(Error::value(
                    context.op.name,
                    format!(
                        "a window of {size} elements does not fit axis {axis} of size {}",
                        shape[axis]
                    ),
                ));
            };
            shape[axis] = rest as usize;
        }
        for (&size, &axis) in sizes.iter().zip(axes) {
            let axis = mxnet_tensor::normalize_axis(axis as isize, layout.ndim())?;
            shape.push(size as usize);
            strides.push(layout.strides()[axis]);
        }
        let windows = Layout::strided(&shape, &strides, layout.offset())?;
        Ok(match context.bool("writeable") {
            true => Viewed::Shared(windows),
            false => Viewed::Locked(windows),
        })
    }),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        let attrs: Attrs = [
            g.get("window_shape").clone(),
            g.get("axis").clone(),
            Value::Bool(false),
        ]
        .into_iter()
        .collect();
        added(g, &SLIDING_WINDOWS, &attrs)
    }),
    probe: Probe::calls(&[
        "f((6,)), (3,), (0,)",
        "f((4, 5)), (2, 3), (0, 1)",
        "f((4, 5)).T, (2,), (-1,)",
    ])
    .against("numpy.lib.stride_tricks.sliding_window_view"),
    ..OpDef::VIEW
};

/// A view with any shape and strides.
pub static AS_STRIDED: OpDef = OpDef {
    name: "as_strided",
    params: &[
        Param::array("x"),
        Param::required("shape", ParamKind::Ints),
        Param::required("strides", ParamKind::Ints),
        Param::bool("writeable", true),
    ],
    doc: "View of the memory of `x`, from its first element on, with this shape and these strides in elements. It must lie within the storage of \
        `x`. The gradient assumes that the elements of `x` are in C order.",
    cpu: Cpu::View(|context| {
        let shape = dims(context.op.name, context.ints("shape"))?;
        let strides: Strides = context
            .ints("strides")
            .iter()
            .map(|&s| s as isize)
            .collect();
        Ok(Viewed::Checked {
            layout: Layout::strided(&shape, &strides, context.layout.offset())?,
            writable: context.bool("writeable"),
        })
    }),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        let attrs: Attrs = [
            g.get("shape").clone(),
            g.get("strides").clone(),
            Value::Bool(false),
        ]
        .into_iter()
        .collect();
        added(g, &AS_STRIDED, &attrs)
    }),
    probe: Probe::calls(&[
        "f((6,)), (2, 3), (3, 1)",
        "f((4,)), (3, 2), (1, 1)",
        "f((3,)), (2, 3), (0, 1)",
    ]),
    ..OpDef::VIEW
};

/// The gradient of a view whose elements overlap: the same view of the flat positions of the elements gives the position of each cotangent.
fn added(g: &GradContext, view: &'static OpDef, attrs: &Attrs) -> Result<Grads> {
    let n: usize = g.shape(0).iter().product();
    let numbers: Vec<i64> = (0..n as i64).collect();
    let numbers = Array::from_slice(&numbers, g.shape(0))?.to_device(g.device_of(0))?;
    let numbers = invoke1(view, &[&numbers], attrs)?;
    let flat = [numbers.len()];
    if numbers.is_empty() {
        return g.one(creation::zeros(g.shape(0), g.dtype_of(0), g.device_of(0))?);
    }
    let attrs: Attrs = [
        Value::Int(0),
        Value::Ints(SmallVec::from_slice(&[n as i64])),
    ]
    .into_iter()
    .collect();
    let dx = invoke1(
        &SCATTER_ALONG,
        &[&g.dy(0).reshape(&flat)?, &numbers.reshape(&flat)?],
        &attrs,
    )?;
    g.one(dx.reshape(g.shape(0))?)
}
