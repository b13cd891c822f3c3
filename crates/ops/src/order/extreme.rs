//! `argmax` and `argmin`.
#![allow(unsafe_code)]

use mxnet_kernels::reduce::{Extreme, Source, Target, arg_reduce, arg_reduce_contiguous};
use mxnet_tensor::{DType, Dims};
use smallvec::SmallVec;

use crate::args::{Param, ParamKind};
use crate::batching::Batch;
use crate::context::{CallContext, KernelContext};
use crate::error::Result;
use crate::launch::elem;
use crate::opdef::{Cost, Cpu, Form, Grad, Inferred, OpDef, Probe, Surface, one_of};

const EXTREME: OpDef = OpDef {
    returns: &[("ndarray", "int64, of the shape of `a` without the axis.")],
    raises: &[("ValueError", "If there is no element to choose from.")],
    params: &[
        Param::array("a"),
        Param::optional("axis", ParamKind::Int),
        Param::out(),
        Param::bool("keepdims", false).keyword(),
    ],
    form: Form::Out,
    infer,
    grad: Grad::Stop("positions are integers"),
    cost: Cost::PerKiB(60),
    parallel: true,
    probe: Probe::calls(&[
        "f((3, 4))",
        "f((3, 4)), 0",
        "f((2, 3, 4)), -2, keepdims=True",
        "f((3, 4)), keepdims=True",
        "i((3, 40), 5), 1",
        "b((3, 4)), 0",
        "f(())",
        "f((0, 3)), 1",
    ]),
    ..OpDef::DEFAULT
};

/// Position of the largest element.
pub static ARGMAX: OpDef = OpDef {
    name: "argmax",
    surface: &[Surface::Np("argmax"), Surface::Method("argmax")],
    doc: "int64 position of the first largest element along `axis`, in the flattened array for None. NaN counts as the largest.",
    example: "
        >>> np.argmax([3, 7, 5])
        array(1)
        >>> np.argmax([[3, 7], [9, 1]], axis=1)
        array([1, 0])
    ",
    cpu: Cpu::Kernel(|context| run(context, Extreme::Max)),
    batch: Batch::Axes("axis"),
    ..EXTREME
};

/// Position of the smallest element.
pub static ARGMIN: OpDef = OpDef {
    name: "argmin",
    surface: &[Surface::Np("argmin"), Surface::Method("argmin")],
    doc: "int64 position of the first smallest element along `axis`, in the flattened array for None. NaN counts as the smallest.",
    example: "
        >>> np.argmin([3, 7, 5])
        array(0)
        >>> np.argmin([[3, 7], [9, 1]], axis=0)
        array([0, 1])
    ",
    cpu: Cpu::Kernel(|context| run(context, Extreme::Min)),
    batch: Batch::Axes("axis"),
    ..EXTREME
};

fn infer(context: &CallContext) -> Result<Inferred> {
    let mut shape = Dims::from_slice(context.shape(0));
    let empty = |size: &str| {
        Err(context.value_error(format!(
            "attempt to get {} of an empty sequence ({size})",
            context.op.name
        )))
    };
    if context.is_none("axis") || context.is_axis_of_scalar("axis", shape.len()) {
        if context.input(0).is_empty() {
            return empty("the array has no elements");
        }
        match context.bool("keepdims") {
            true => shape.fill(1),
            false => shape.clear(),
        }
        return one_of(shape, DType::I64);
    }
    let axis = context.axis("axis", 0)?;
    if shape[axis] == 0 {
        return empty(&format!("axis {axis} has size 0"));
    }
    match context.bool("keepdims") {
        true => shape[axis] = 1,
        false => drop(shape.remove(axis)),
    }
    one_of(shape, DType::I64)
}

/// Up to this many elements, rows are searched one after the other, without sorting the axes by stride.
const MAX_ROW_BY_ROW_LEN: usize = 4096;

fn run(context: &KernelContext, which: Extreme) -> Result<()> {
    let (x, out) = (context.input(0), context.output(0));
    if out.is_empty() {
        return Ok(());
    }
    let axis = match context.opt_int("axis") {
        None => None,
        Some(_) if x.shape().is_empty() => None,
        Some(_) => Some(context.axis("axis", 0)?),
    };
    if x.len() <= MAX_ROW_BY_ROW_LEN && x.layout().is_contiguous() {
        let rows = match axis {
            None => [1, x.len(), 1],
            Some(axis) => {
                let (outer, inner) = x.shape().split_at(axis);
                [
                    outer.iter().product(),
                    inner[0],
                    inner[1..].iter().product(),
                ]
            }
        };
        // SAFETY: the input is dense; so is the output, which has one element for each row.
        let is_done = unsafe {
            let out = out.data_ptr().cast();
            arg_reduce_contiguous(which, elem(x.dtype()), x.data_ptr(), rows, out)
        };
        if is_done {
            return Ok(());
        }
    }
    // One stride for each axis of the input; that of the reduced axis is ignored.
    let mut steps: SmallVec<[isize; 4]> = out.byte_strides().iter().copied().collect();
    match axis {
        None => steps = SmallVec::from_elem(0, x.shape().len()),
        Some(axis) if !context.bool("keepdims") => steps.insert(axis, 0),
        Some(_) => {}
    }
    let source = Source {
        ptr: x.data_ptr(),
        elem: elem(x.dtype()),
        shape: x.shape(),
        strides: &x.byte_strides(),
    };
    let target = Target {
        ptr: out.data_ptr(),
        elem: elem(DType::I64),
        strides: &steps,
    };
    // SAFETY: both layouts lie within their storages; the output was allocated for this call. No reduced axis is empty (inference).
    unsafe { arg_reduce(context.threads, which, &source, axis, &target) };
    Ok(())
}
