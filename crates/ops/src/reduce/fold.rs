//! Sums and other folds over any set of axes.
#![allow(unsafe_code)]

use mxnet_kernels::reduce::{Reduce, Source, Target, reduce};
use mxnet_tensor::{DType, Dims, Kind};
use smallvec::SmallVec;

use crate::Array;
use crate::args::{Attrs, Param, ParamKind, Value};
use crate::autograd::GradCx;
use crate::cx::{CallCx, KernelCx};
use crate::eager::elem;
use crate::error::Result;
use crate::invoke::invoke1;
use crate::opdef::{
    Cost, Cpu, Cuda, Form, Grad, Grads, Inferred, Keep, Onnx, OpDef, Probe, Surface, one_of,
};

pub(crate) static OPS: &[&OpDef] = &[&SUM];

/// What all reductions have in common.
pub(crate) const REDUCTION: OpDef = OpDef {
    params: &[
        Param::array("a"),
        Param::axes("axis"),
        Param::optional("dtype", ParamKind::DType),
        Param::bool("keepdims", false),
    ],
    form: Form::Out,
    cuda: Cuda::None,
    cost: Cost::PerKiB(40),
    probe: Probe::calls(&[
        "f((3, 4))",
        "f((3, 4)), 0",
        "f((2, 3, 4)), (0, 2)",
        "f((3, 4)), -1, keepdims=True",
        "f((0, 3)), 0",
        "f(())",
    ]),
    ..OpDef::DEFAULT
};

/// Sum of the elements.
pub static SUM: OpDef = OpDef {
    name: "sum",
    surface: &[Surface::Np("sum"), Surface::Method("sum")],
    doc: "Sum of the elements over `axis` (all axes for None). Small integers and truth values add up in 64 bits.\n\nFloats are added in \
          blocks of fixed size, so the result does not depend on the number of threads and the rounding error grows with the logarithm of \
          the length.",
    infer: |cx| folded(cx, accumulator),
    cpu: Cpu::Kernel(|cx| run(cx, Reduce::Sum)),
    grad: Grad::Rule(Keep::NOTHING, spread),
    onnx: Onnx::Node {
        ty: "ReduceSum",
        since: 13,
    },
    ..REDUCTION
};

/// The dtype sums and products are returned in.
fn accumulator(dtype: DType) -> DType {
    match dtype.kind() {
        Kind::Bool => mxnet_tensor::default_int(),
        Kind::Integer if dtype.is_signed() => DType::I64,
        Kind::Integer => DType::U64,
        _ => dtype,
    }
}

/// Shape and dtype of a reduction.
pub(crate) fn folded(cx: &CallCx, natural: fn(DType) -> DType) -> Result<Inferred> {
    let axes = cx.axes("axis", 0)?;
    let mut shape = Dims::new();
    for (i, &n) in cx.shape(0).iter().enumerate() {
        if !axes.contains(&i) {
            shape.push(n);
        } else if cx.bool("keepdims") {
            shape.push(1);
        }
    }
    one_of(
        shape,
        cx.dtype("dtype").unwrap_or_else(|| natural(cx.dtype_of(0))),
    )
}

/// Folds input 0 over the axes of the call into output 0.
pub(crate) fn run(cx: &KernelCx, op: Reduce) -> Result<()> {
    let (x, y) = (cx.input(0), cx.output(0));
    let axes = cx.axes("axis", 0)?;
    let reduced: SmallVec<[bool; 8]> = (0..x.shape().len()).map(|i| axes.contains(&i)).collect();
    let steps = y.byte_strides();
    let mut kept = if cx.bool("keepdims") {
        None
    } else {
        Some(steps.iter())
    };
    let strides: SmallVec<[isize; 8]> = (0..reduced.len())
        .map(|i| match (&mut kept, reduced[i]) {
            (None, _) => steps[i],
            (Some(_), true) => 0,
            (Some(steps), false) => steps.next().copied().unwrap_or(0),
        })
        .collect();
    let source = Source {
        ptr: x.data_ptr(),
        elem: elem(x.dtype()),
        shape: x.shape(),
        strides: &x.byte_strides(),
    };
    let target = Target {
        ptr: y.data_ptr(),
        elem: elem(y.dtype()),
        strides: &strides,
    };
    // SAFETY: 1. both layouts lie within their storages. 2. the output was allocated for this call, so it overlaps nothing.
    unsafe { reduce(cx.threads, op, &source, &reduced, &target) };
    Ok(())
}

/// The cotangent of a sum goes to every element that was added.
pub(crate) fn spread(g: &GradCx) -> Result<Grads> {
    let dy = unreduced(g.dy(0), g.shape(0), g.opt_ints("axis"), g.bool("keepdims"))?;
    g.one(dy.broadcast_to(g.shape(0))?)
}

/// A reduced array with length-1 axes where axes went away.
pub(crate) fn unreduced(
    y: &Array,
    shape: &[usize],
    axes: Option<&[i64]>,
    keepdims: bool,
) -> Result<Array> {
    if keepdims {
        return Ok(y.clone());
    }
    let ndim = shape.len() as i64;
    let full: Dims = (0..shape.len())
        .map(|i| match axes {
            None => 1,
            Some(axes)
                if axes
                    .iter()
                    .any(|&a| (if a < 0 { a + ndim } else { a }) == i as i64) =>
            {
                1
            }
            Some(_) => shape[i],
        })
        .collect();
    y.reshape(&full)
}

/// Sums over the axes along which something of `shape` was broadcast to the shape of `x`.
///
/// # Errors
/// [`crate::Error::Memory`].
pub fn sum_to(x: &Array, shape: &[usize]) -> Result<Array> {
    if x.shape() == shape {
        return Ok(x.clone());
    }
    let lead = x.ndim() - shape.len();
    let axes: SmallVec<[i64; 4]> = (0..x.ndim())
        .filter(|&i| i < lead || shape[i - lead] == 1 && x.shape()[i] != 1)
        .map(|i| i as i64)
        .collect();
    x.sum(Some(&axes), true)?.reshape(shape)
}

impl Array {
    /// Sum over these axes; all for `None`.
    ///
    /// # Errors
    /// [`crate::Error::Axis`] if an axis does not exist or repeats.
    pub fn sum(&self, axes: Option<&[i64]>, keepdims: bool) -> Result<Array> {
        let attrs: Attrs = [
            axes.map_or(Value::None, Value::from),
            Value::None,
            Value::Bool(keepdims),
        ]
        .into_iter()
        .collect();
        invoke1(&SUM, &[self], &attrs)
    }
}
