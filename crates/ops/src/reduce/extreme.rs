//! Largest and smallest elements.

use mxnet_kernels::reduce::Reduce;

use crate::Array;
use crate::autograd::GradContext;
use crate::context::{CallContext, CompositeContext};
use crate::elementwise::comparison::EQUAL;
use crate::error::Result;
use crate::invoke::invoke1;
use crate::opdef::{Cpu, Form, Grad, Grads, Inferred, Keep, OpDef, Probe, Surface};
use crate::reduce::fold::{REDUCTION_WITHOUT_DTYPE, folded, reduce_kernel, spread, unreduced};
use crate::reduce::{MASKED_MAX, MASKED_MIN};
use crate::{Attrs, Outputs};

/// Largest element.
pub static MAX: OpDef = OpDef {
    name: "max",
    surface: &[
        Surface::Np("max"),
        Surface::Np("amax"),
        Surface::Method("max"),
    ],
    doc: "Largest element over `axis` (all axes for None); NaN if any is NaN. Elements that tie share the gradient.",
    returns: &[(
        "ndarray",
        "Of the dtype of `a` and its shape without the axes.",
    )],
    raises: &[("ValueError", "If there is no element and no `initial`.")],
    example: "
        >>> np.max([[1, 5], [7, 2]])
        array(7)
        >>> np.max([[1, 5], [7, 2]], axis=0)
        array([7, 5])
    ",
    infer: nonempty,
    full_signature: Some(&MASKED_MAX),
    reduces: Some(Reduce::Max),
    cpu: Cpu::Kernel(reduce_kernel),
    grad: Grad::Rule(Keep::ALL, shared),
    probe: Probe::calls(NONEMPTY),
    ..REDUCTION_WITHOUT_DTYPE
};

/// Smallest element.
pub static MIN: OpDef = OpDef {
    name: "min",
    surface: &[
        Surface::Np("min"),
        Surface::Np("amin"),
        Surface::Method("min"),
    ],
    doc: "Smallest element over `axis` (all axes for None); NaN if any is NaN. Elements that tie share the gradient.",
    returns: &[(
        "ndarray",
        "Of the dtype of `a` and its shape without the axes.",
    )],
    raises: &[("ValueError", "If there is no element and no `initial`.")],
    example: "
        >>> np.min([[1, 5], [7, 2]])
        array(1)
        >>> np.min([[1, 5], [7, 2]], axis=1)
        array([1, 2])
    ",
    infer: nonempty,
    full_signature: Some(&MASKED_MIN),
    reduces: Some(Reduce::Min),
    cpu: Cpu::Kernel(reduce_kernel),
    grad: Grad::Rule(Keep::ALL, shared),
    probe: Probe::calls(NONEMPTY),
    ..REDUCTION_WITHOUT_DTYPE
};

/// Difference between largest and smallest element.
pub static PTP: OpDef = OpDef {
    name: "ptp",
    surface: &[Surface::Np("ptp")],
    params: REDUCTION_WITHOUT_DTYPE.params,
    doc: "Largest minus smallest element over `axis` (all axes for None).",
    returns: &[(
        "ndarray",
        "Of the dtype of `a` and its shape without the axes.",
    )],
    raises: &[("ValueError", "If there is no element.")],
    example: "
        >>> np.ptp([[1, 5], [7, 2]], axis=1)
        array([4, 5])
    ",
    form: Form::Out,
    cpu: Cpu::Composite(spread_of_values),
    probe: Probe::calls(&[
        "f((3, 4))",
        "f((2, 3, 4)), (0, 2)",
        "f((3, 4)), -1, keepdims=True",
    ]),
    ..OpDef::COMPOSITE
};

const NONEMPTY: &[&str] = &[
    "f((3, 4))",
    "f((3, 4)), 0",
    "f((2, 3, 4)), (0, 2)",
    "f((3, 4)), -1, keepdims=True",
    "f(())",
    "i((3, 4), 50), 1",
    "f((0, 3)), 1",
];

/// Shape and dtype; an error if the reduced axes are empty, even if the result is.
pub(super) fn nonempty(context: &CallContext) -> Result<Inferred> {
    let axes = context.axes("axis", 0)?;
    if let Some(&axis) = axes.iter().find(|&&a| context.shape(0)[a] == 0) {
        return Err(context.shape_error(format!(
            "zero-size array to reduction operation {}imum which has no identity: axis {axis} has size 0",
            context.op.name
        )));
    }
    folded(context, |dtype| dtype)
}

/// The cotangent, shared equally among the elements that equal the extreme.
fn shared(g: &GradContext) -> Result<Grads> {
    let (axes, keepdims, dtype) = (g.opt_ints("axis"), g.bool("keepdims"), g.dy(0).dtype());
    let extreme = unreduced(g.output(0), g.shape(0), axes, keepdims)?;
    let taken = g.input(0).binary(&EQUAL, &extreme)?.astype(dtype)?;
    let ties = taken.sum(axes, true)?;
    g.one(spread(g, g.dy(0))?.mul(&taken.div(&ties)?)?)
}

fn spread_of_values(context: &CompositeContext) -> Result<Outputs> {
    let attrs: Attrs = context.attrs.values().iter().cloned().collect();
    let (high, low): (Array, Array) = (
        invoke1(&MAX, &[context.input(0)], &attrs)?,
        invoke1(&MIN, &[context.input(0)], &attrs)?,
    );
    context.done(high.sub(&low)?)
}
