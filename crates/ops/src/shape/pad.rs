//! Padding with the array's own elements: modes edge, wrap, reflect, symmetric. Other modes of `np.pad` are concatenations (`numpy/_padding.py`).

use mxnet_kernels::copy::{border_runs, border_source};
use mxnet_tensor::{Dims, IndexItem, Layout};
use smallvec::SmallVec;

use crate::Array;
use crate::args::{Attrs, Param, ParamKind, Value};
use crate::batching::Batch;
use crate::context::KernelContext;
use crate::cpu;
use crate::error::Result;
use crate::index::SCATTER_ADD;
use crate::invoke::invoke1;
use crate::opdef::{Cost, Cpu, Grad, Keep, OpDef, Probe, one_of};

const MODES: &[&str] = &["edge", "wrap", "reflect", "symmetric"];

/// Pads an array with its own elements.
pub static PAD_BORDER: OpDef = OpDef {
    name: "pad_border",
    reports_as: Some("pad"),
    params: &[
        Param::array("array"),
        Param::required("pad_width", ParamKind::Ints),
        Param::choice("mode", MODES, "edge"),
    ],
    doc: "The array with `pad_width` = (before, after, before, after, ...) elements added along each axis, copied from its edge ('edge') or from the \
        opposite side ('wrap'), or mirrored without ('reflect') or with the edge ('symmetric'). If a border is wider than the array, the pattern \
        repeats.",
    infer: |context| {
        let width = context.ints("pad_width");
        if width.len() != 2 * context.shape(0).len() || width.iter().any(|&w| w < 0) {
            return Err(context.value_error(format!(
                "`pad_width` must have 2 sizes for each of {} axes, found {}",
                context.shape(0).len(),
                crate::Tuple(width)
            )));
        }
        let axes = context.shape(0).iter().zip(width.chunks(2));
        if let Some((_, p)) = axes.clone().find(|&(&n, p)| n == 0 && p[0] + p[1] > 0) {
            return Err(context.value_error(format!(
                "an axis of size 0 has no elements to add {} and {} of",
                p[0], p[1]
            )));
        }
        one_of(axes.map(|(&n, p)| n + (p[0] + p[1]) as usize).collect::<Dims>(), context.dtype_of(0))
    },
    cpu: Cpu::Kernel(pad),
    // The axes are padded one after the other, so the cotangents are added up axis by axis.
    grad: Grad::Rule(Keep::NOTHING, |g| {
        let mut dx = g.dy(0).clone();
        for (axis, p) in g.ints("pad_width").chunks(2).enumerate() {
            let n = g.shape(0)[axis];
            if p[0] + p[1] == 0 {
                continue;
            }
            let at: Vec<i64> = (-p[0]..n as i64 + p[1]).map(|i| border_source(g.str("mode"), i, n as i64)).collect();
            let at = Array::from_slice(&at, &[at.len()])?.to_device(g.device_of(0))?;
            let mut key = vec![IndexItem::ALL; axis];
            key.push(IndexItem::Array { shape: Dims::from_slice(at.shape()) });
            let mut shape = Dims::from_slice(dx.shape());
            shape[axis] = n;
            let attrs: Attrs = [Value::Index(key.into()), Value::from(&shape[..])].into_iter().collect();
            dx = invoke1(&SCATTER_ADD, &[&dx, &at], &attrs)?;
        }
        g.one(dx)
    }),
    cost: Cost::PerKiB(60),
    probe: Probe::calls(&[
        "f((2, 3)), (1, 0, 0, 2)",
        "f((3, 4)), (2, 1, 3, 9), 'wrap'",
        "f((3, 4)), (2, 1, 3, 9), 'reflect'",
        "f((3, 1)), (2, 8, 3, 9), 'symmetric'",
        "f((2, 2, 3)), (0, 1, 2, 0, 1, 1), 'reflect'",
    ])
    .against(
        "lambda x, width, mode='edge': np.pad(x, [width[i : i + 2] for i in range(0, len(width), 2)], mode=mode)",
    ),
    batch: Batch::Rule(|context| {
        let widths = context.prefixed("pad_width", &[0, 0]);
        context.call(&context.fronts()?, &context.with(&[("pad_width", widths)]))
    }),
    ..OpDef::DEFAULT
};

/// Copies the array to the middle of the output, then fills the borders axis by axis. Each axis covers what is filled already, which includes the
/// corners.
fn pad(context: &KernelContext) -> Result<()> {
    let (x, out) = (context.input(0), context.output(0));
    let widths: SmallVec<[(usize, usize); 4]> = context
        .ints("pad_width")
        .chunks(2)
        .map(|p| (p[0] as usize, p[1] as usize))
        .collect();
    if out.is_empty() {
        return Ok(());
    }
    let full = out.layout();
    // The range along each axis that is filled already: first element and length.
    let mut done: SmallVec<[(usize, usize); 4]> = widths
        .iter()
        .zip(x.shape())
        .map(|(w, &n)| (w.0, n))
        .collect();
    let part = |done: &[(usize, usize)],
                axis: usize,
                start: usize,
                step: isize,
                len: usize|
     -> Result<Layout> {
        let (mut shape, mut strides) = (Dims::new(), SmallVec::<[isize; 6]>::new());
        let mut offset = full.offset() as isize;
        for (i, (&(first, n), &stride)) in done.iter().zip(full.strides()).enumerate() {
            let (first, n, step) = if i == axis {
                (start, len, step)
            } else {
                (first, n, 1)
            };
            shape.push(n);
            strides.push(stride * step);
            offset += stride * first as isize;
        }
        Ok(Layout::strided(&shape, &strides, offset as usize)?)
    };
    let middle = part(&done, usize::MAX, 0, 1, 0)?;
    cpu::copy(x, &out.with_layout(middle), context.threads)?;
    for (axis, &(before, after)) in widths.iter().enumerate() {
        for run in border_runs(context.str("mode"), before, x.shape()[axis], after) {
            let from = part(&done, axis, run.from, run.step, run.len)?;
            let to = part(&done, axis, run.to, 1, run.len)?;
            cpu::copy(
                &out.with_layout(from),
                &out.with_layout(to),
                context.threads,
            )?;
        }
        done[axis] = (0, out.shape()[axis]);
    }
    Ok(())
}
