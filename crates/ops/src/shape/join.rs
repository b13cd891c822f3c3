//! `concatenate`, `stack` and their relatives.
#![allow(unsafe_code)]

use mxnet_tensor::{
    Casting, Dims, Layout, Operand, can_cast, normalize_axis, promotion, result_type,
};
use smallvec::SmallVec;

use crate::Array;
use crate::args::{Attrs, Param, ParamKind, Value};
use crate::batching::Batch;
use crate::context::{CallContext, CompositeContext, KernelContext};
use crate::error::{Result, Tuple};
use crate::invoke::invoke1;
use crate::memory_order;
use crate::opdef::{
    Cost, Cpu, Form, FpErrors, Grad, Grads, Inferred, Keep, OpDef, Probe, Surface, one_of,
};
use crate::shape::axes::{at_least_1, at_least_2, at_least_3};
use crate::shape::part::narrow;
use crate::{Outputs, cpu};

/// Joins arrays along an existing axis.
pub static CONCATENATE: OpDef = OpDef {
    name: "concatenate",
    surface: &[Surface::Np("concatenate"), Surface::Np("concat")],
    params: &[
        Param::arrays("arrays"),
        Param::int("axis", 0).or_none(),
        Param::out(),
        Param::optional("dtype", ParamKind::DType).keyword(),
        CASTING,
    ],
    doc: "Concatenates arrays along `axis`; their other lengths must be equal. `axis=None` flattens them first.",
    about: &[("arrays", "The arrays.")],
    returns: &[("ndarray", "Of the promoted dtype.")],
    raises: &[(
        "ValueError",
        "If there is no array, or if lengths other than those along `axis` differ.",
    )],
    example: "
        >>> np.concatenate([[1, 2], [3]])
        array([1, 2, 3])
        >>> np.concatenate([[[1, 2]], [[3, 4]]], axis=1)
        array([[1, 2, 3, 4]])
    ",
    form: Form::Out,
    infer: joined,
    fp_errors: FpErrors::named("cast"),
    cpu: Cpu::Kernel(join),
    order: Some(|context| match context.is_none("axis") {
        true => None,
        false => memory_order::as_inputs(context),
    }),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        let mut grads = Grads::new();
        let mut start = 0;
        if g.is_none("axis") {
            for i in 0..g.num_inputs() {
                let stop = start + g.shape(i).iter().product::<usize>();
                let part = narrow(g.dy(0), 0, start, stop)?.reshape(g.shape(i))?;
                grads.push(g.wants(i).then_some(part));
                start = stop;
            }
            return Ok(grads);
        }
        let axis = normalize_axis(g.int("axis") as isize, g.shape(0).len())?;
        for i in 0..g.num_inputs() {
            let stop = start + g.shape(i)[axis];
            grads.push(if g.wants(i) {
                Some(narrow(g.dy(0), axis, start, stop)?)
            } else {
                None
            });
            start = stop;
        }
        Ok(grads)
    }),
    cost: Cost::PerKiB(60),
    probe: Probe::calls(&[
        "[f((2, 3)), f((1, 3))]",
        "[f((2, 3)), f((2, 1)), f((2, 2))], 1",
        "[f((2, 0)), f((2, 2))], -1",
        "[i((2,), 5), f((3,))]",
        "[f((2, 3)).T, f(()), f((1,))], None",
    ]),
    batch: Batch::Axes("axis"),
    ..OpDef::DEFAULT
};

/// Which conversions to `dtype` are allowed.
const CASTING: Param = Param::choice(
    "casting",
    &["no", "equiv", "safe", "same_kind", "unsafe"],
    "same_kind",
)
.keyword();

/// Checks that the inputs may be converted to `dtype`, if it is given.
fn check_casting(context: &CallContext) -> Result<()> {
    let Some(dtype) = context.dtype("dtype") else {
        return Ok(());
    };
    let casting = context.str("casting").parse().unwrap_or(Casting::SameKind);
    let refused = |x: &&Array| !x.is_weak() && !can_cast(x.dtype(), dtype, casting);
    match context.inputs.iter().flatten().copied().find(refused) {
        None => Ok(()),
        Some(x) => Err(context.dtype_error(format!(
            "cannot cast from {} to {} under casting rule '{}'",
            x.dtype().name(),
            dtype.name(),
            context.str("casting")
        ))),
    }
}

/// The dtype that the inputs promote to.
fn promoted(context: &CallContext) -> mxnet_tensor::DType {
    let operands: SmallVec<[Operand; 8]> = context
        .inputs
        .iter()
        .flatten()
        .map(|x| {
            if x.is_weak() {
                Operand::Weak(x.kind())
            } else {
                Operand::Array(x.dtype())
            }
        })
        .collect();
    if operands.iter().all(|o| matches!(o, Operand::Weak(_))) {
        return crate::types::promoted(context.inputs);
    }
    result_type(&operands, promotion())
}

fn joined(context: &CallContext) -> Result<Inferred> {
    if context.inputs.is_empty() {
        return Err(context.value_error("need at least one array to concatenate"));
    }
    check_casting(context)?;
    let dtype = context.dtype("dtype").unwrap_or_else(|| promoted(context));
    if context.is_none("axis") {
        let len: usize = context.inputs.iter().flatten().map(|x| x.len()).sum();
        return one_of(Dims::from_slice(&[len]), dtype);
    }
    let first = context.shape(0);
    if first.is_empty() {
        return Err(context
            .shape_error("zero-dimensional arrays cannot be concatenated")
            .with_hint("np.stack joins along a new axis"));
    }
    let axis = context.axis("axis", 0)?;
    let mut shape = Dims::from_slice(first);
    for i in 1..context.inputs.len() {
        let other = context.shape(i);
        if other.len() != first.len() {
            let problem = format!(
                "all the input arrays must have same number of dimensions, but the array at index 0 has {} dimension(s) and the array at index {i} has {} dimension(s)",
                first.len(),
                other.len()
            );
            return Err(context.shape_error(problem));
        }
        if let Some(bad) = (0..first.len()).find(|&a| a != axis && other[a] != first[a]) {
            let problem = format!(
                "all the input array dimensions except for the concatenation axis must match exactly, but along dimension {bad}, the array at index 0 has size {} and the array at index {i} has size {}",
                first[bad], other[bad]
            );
            return Err(context.shape_error(problem));
        }
        shape[axis] += other[axis];
    }
    one_of(shape, dtype)
}

fn join(context: &KernelContext) -> Result<()> {
    if context.is_none("axis") {
        let out = context.output(0);
        let mut start = out.layout().offset();
        for x in context.inputs.iter().flatten() {
            let target = Layout::contiguous(x.shape()).with_offset(start);
            cpu::copy(x, &out.with_layout(target), context.threads)?;
            start += x.len();
        }
        return Ok(());
    }
    let axis = context.axis("axis", 0)? as isize;
    let out = context.output(0);
    let mut start = 0;
    for x in context.inputs.iter().flatten() {
        let stop = start + x.shape()[axis as usize] as isize;
        let target = out.layout().slice(axis, Some(start), Some(stop), Some(1))?;
        cpu::copy(x, &out.with_layout(target), context.threads)?;
        start = stop;
    }
    Ok(())
}

/// Joins arrays along a new axis.
pub static STACK: OpDef = OpDef {
    name: "stack",
    surface: &[Surface::Np("stack")],
    params: &[
        Param::arrays("arrays"),
        Param::int("axis", 0),
        Param::out(),
        Param::optional("dtype", ParamKind::DType).keyword(),
        CASTING,
    ],
    doc: "Joins arrays of one shape along a new axis at position `axis` of the result.",
    about: &[
        ("arrays", "The arrays."),
        ("axis", "Position of the new axis in the result."),
    ],
    returns: &[("ndarray", "With one more axis.")],
    raises: &[("ValueError", "If there is no array or the shapes differ.")],
    example: "
        >>> np.stack([[1, 2], [3, 4]])
        array([[1, 2],
               [3, 4]])
        >>> np.stack([[1, 2], [3, 4]], axis=1)
        array([[1, 3],
               [2, 4]])
    ",
    form: Form::Out,
    fp_errors: FpErrors::named("cast"),
    cpu: Cpu::Composite(stacked),
    probe: Probe::calls(&[
        "[f((2, 3)), f((2, 3))]",
        "[f((2,)), f((2,)), f((2,))], -1",
        "[f(()), f(())]",
    ]),
    ..OpDef::COMPOSITE
};

fn stacked(context: &CompositeContext) -> Result<Outputs> {
    if context.inputs.is_empty() {
        return Err(context.value_error("need at least one array to stack"));
    }
    check_casting(context)?;
    let shape = context.shape(0);
    if let Some(i) = (1..context.inputs.len()).find(|&i| context.shape(i) != shape) {
        let problem = format!(
            "all input arrays must have the same shape: array 0 has {}, array {i} has {}",
            Tuple(shape),
            Tuple(context.shape(i))
        );
        return Err(context.shape_error(problem));
    }
    let axis = normalize_axis(context.int("axis") as isize, shape.len() + 1)?;
    let mut unit = Dims::from_slice(shape);
    unit.insert(axis, 1);
    let parts: Vec<Array> = context
        .inputs
        .iter()
        .flatten()
        .map(|x| x.reshape(&unit))
        .collect::<Result<_>>()?;
    context.done(all_along(&parts, axis, context.dtype("dtype"))?)
}

fn all_along(parts: &[Array], axis: usize, dtype: Option<mxnet_tensor::DType>) -> Result<Array> {
    let refs: SmallVec<[&Array; 8]> = parts.iter().collect();
    let attrs: Attrs = [
        Value::Int(axis as i64),
        dtype.map_or(Value::None, Value::DType),
        // The callers have checked the casting rule.
        Value::Word("unsafe"),
    ]
    .into_iter()
    .collect();
    invoke1(&CONCATENATE, &refs, &attrs)
}

/// Default fields for `vstack`, `hstack` and `dstack`.
const DIRECTION: OpDef = OpDef {
    about: &[("tup", "The arrays.")],
    returns: &[("ndarray", "Of the promoted dtype.")],
    raises: &[("ValueError", "If the shapes do not fit.")],
    params: &[
        Param::arrays("tup"),
        Param::optional("dtype", ParamKind::DType).keyword(),
        CASTING,
    ],
    ..OpDef::COMPOSITE
};

/// Joins arrays along the first axis.
pub static VSTACK: OpDef = OpDef {
    name: "vstack",
    surface: &[Surface::Np("vstack"), Surface::Np("row_stack")],
    doc: "Arrays joined along the first axis; arrays with fewer than 2 axes become rows.",
    example: "
        >>> np.vstack([[1, 2], [3, 4]])
        array([[1, 2],
               [3, 4]])
    ",
    cpu: Cpu::Composite(|context| along(context, at_least_2, |_| 0)),
    probe: Probe::calls(&["[f((3,)), f((3,))]", "[f((2, 3)), f((1, 3))]"]),
    ..DIRECTION
};

/// Joins arrays along the second axis.
pub static HSTACK: OpDef = OpDef {
    name: "hstack",
    surface: &[Surface::Np("hstack")],
    doc: "Arrays joined along the second axis; arrays with 1 axis along that one.",
    example: "
        >>> np.hstack([[1, 2], [3, 4]])
        array([1, 2, 3, 4])
    ",
    cpu: Cpu::Composite(|context| along(context, at_least_1, |ndim| usize::from(ndim > 1))),
    probe: Probe::calls(&["[f((3,)), f((2,))]", "[f((2, 3)), f((2, 1))]"]),
    ..DIRECTION
};

/// Joins arrays along the third axis.
pub static DSTACK: OpDef = OpDef {
    name: "dstack",
    surface: &[Surface::Np("dstack")],
    doc: "Arrays joined along the third axis, which is added where it is missing.",
    example: "
        >>> np.dstack([[1, 2], [3, 4]])
        array([[[1, 3],
                [2, 4]]])
    ",
    cpu: Cpu::Composite(|context| along(context, at_least_3, |_| 2)),
    probe: Probe::calls(&["[f((3,)), f((3,))]", "[f((2, 3)), f((2, 3))]"]),
    ..DIRECTION
};

/// Joins arrays as columns of a matrix.
pub static COLUMN_STACK: OpDef = OpDef {
    name: "column_stack",
    surface: &[Surface::Np("column_stack")],
    params: &[Param::arrays("tup")],
    doc: "Arrays joined along the second axis; arrays with 1 axis become columns.",
    about: &[("tup", "The arrays.")],
    returns: &[("ndarray", "Of two axes and the promoted dtype.")],
    raises: &[("ValueError", "If the lengths differ.")],
    example: "
        >>> np.column_stack([[1, 2], [3, 4]])
        array([[1, 3],
               [2, 4]])
    ",
    cpu: Cpu::Composite(|context| {
        let parts: Vec<Array> = context
            .inputs
            .iter()
            .flatten()
            .map(|x| {
                if x.ndim() < 2 {
                    x.reshape(&[x.len(), 1])
                } else {
                    Ok((*x).clone())
                }
            })
            .collect::<Result<_>>()?;
        context.done(all_along(&parts, 1, None)?)
    }),
    probe: Probe::calls(&["[f((3,)), f((3, 2))]"]),
    ..OpDef::COMPOSITE
};

fn along(
    context: &CompositeContext,
    lifted: fn(&Array) -> Result<Array>,
    axis: fn(usize) -> usize,
) -> Result<Outputs> {
    check_casting(context)?;
    let parts: Vec<Array> = context
        .inputs
        .iter()
        .flatten()
        .map(|x| lifted(x))
        .collect::<Result<_>>()?;
    let ndim = parts.first().map_or(0, Array::ndim);
    context.done(all_along(&parts, axis(ndim), context.dtype("dtype"))?)
}

/// Arrays joined along an existing axis.
///
/// # Errors
/// [`crate::Error::Shape`] if their other sizes differ.
pub fn concatenate(arrays: &[&Array], axis: usize) -> Result<Array> {
    invoke1(
        &CONCATENATE,
        arrays,
        &[
            Value::Int(axis as i64),
            Value::None,
            Value::Word("same_kind"),
        ]
        .into_iter()
        .collect(),
    )
}
