//! Reductions that ignore NaN (`nansum`, `nanmax`), and sums of squares (`norm`).
#![allow(unsafe_code)]

use mxnet_kernels::reduce::Reduce;
use mxnet_tensor::Scalar;

use crate::Array;
use crate::args::{Param, ParamKind, Value};
use crate::autograd::GradContext;
use crate::context::CallContext;
use crate::elementwise::arithmetic::MAXIMUM;
use crate::elementwise::comparison::EQUAL;
use crate::elementwise::explog::SQRT;
use crate::elementwise::select::choose;
use crate::error::Result;
use crate::invoke::invoke1;
use crate::opdef::{Cpu, Form, Grad, Grads, Inferred, Keep, OpDef, Probe};
use crate::reduce::extreme::nonempty;
use crate::reduce::fold::{
    REDUCTION, REDUCTION_WITHOUT_DTYPE, accumulator, folded, reduce_kernel, spread, unreduced,
};

/// Sum of the elements that are not NaN.
pub static NAN_SUM: OpDef = OpDef {
    name: "nansum",
    old_names: &["nan_sum"],
    params: &[
        Param::array("a"),
        Param::reduced("axis"),
        Param::optional("dtype", ParamKind::DType),
        Param::bool("keepdims", false),
    ],
    doc: "Sum of the elements over `axis` (all axes for None) that are not NaN.",
    form: Form::ParamsOnly,
    infer: |context| folded(context, accumulator),
    reduces: Some(Reduce::NanSum),
    cpu: Cpu::Kernel(reduce_kernel),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        let (x, dy) = (g.input(0), spread(g, g.dy(0))?);
        let zero = Array::weak_scalar(Scalar::F64(0.0))?;
        g.one(choose(&x.binary(&EQUAL, x)?, &dy, &zero)?)
    }),
    probe: Probe::calls(CALLS).against("np.nansum").within(0.25..2.0),
    ..REDUCTION
};

/// Sum of squared absolute values.
pub static SUM_SQUARES: OpDef = OpDef {
    name: "sum_squares",
    params: &[
        Param::array("a"),
        Param::reduced("axis"),
        Param::bool("keepdims", false),
    ],
    doc: "Sum of the squared absolute values of the elements over `axis` (all axes for None), real.",
    form: Form::ParamsOnly,
    infer: |context| folded(context, |dtype| accumulator(dtype).real()),
    reduces: Some(Reduce::SumSquares),
    cpu: Cpu::Kernel(reduce_kernel),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.one(spread(g, g.dy(0))?.scale(2.0)?.mul(g.input(0))?)
    }),
    probe: Probe::calls(&[
        "f((3, 4))",
        "f((2, 3, 4)), (0, 2)",
        "f((3, 4)), -1, keepdims=True",
        "c((3, 4)), 1",
        "i((5,), 9)",
    ])
    .against(
        "lambda a, axis=None, keepdims=False: np.sum((a * a.conj()).real, axis, keepdims=keepdims)",
    ),
    ..REDUCTION_WITHOUT_DTYPE
};

/// Euclidean norm of all elements.
pub static EUCLIDEAN_NORM: OpDef = OpDef {
    name: "euclidean_norm",
    params: &[Param::array("x"), Param::bool("keepdims", false)],
    doc: "Square root of the sum of the squared absolute values of all elements, real; integers are converted to floats.",
    cpu: Cpu::Composite(|context| {
        let x = context.input(0);
        let x = match x.dtype().is_inexact() {
            true => x.clone(),
            false => x.mul(&Array::weak_scalar(Scalar::F64(1.0))?)?,
        };
        let attrs = [Value::None, Value::Bool(context.bool("keepdims"))];
        context.done(invoke1(&SUM_SQUARES, &[&x], &attrs.into_iter().collect())?.unary(&SQRT)?)
    }),
    probe: Probe::calls(&[
        "f((3, 4))",
        "f((2, 3, 4)), True",
        "c((3, 4))",
        "i((5,), 9)",
        "f(())",
    ])
    .against("lambda x, keepdims=False: np.sqrt(np.sum((x * x.conj()).real, keepdims=keepdims))"),
    ..OpDef::COMPOSITE
};

/// Largest element that is not NaN.
pub static NAN_MAX: OpDef = OpDef {
    name: "nanmax",
    old_names: &["nan_max"],
    params: &[
        Param::array("a"),
        Param::reduced("axis"),
        Param::bool("keepdims", false),
    ],
    doc: "Largest of the real elements over `axis` (all axes for None) that are not NaN; NaN if all are NaN. Elements that tie share the gradient.",
    form: Form::ParamsOnly,
    infer: ordered,
    reduces: Some(Reduce::NanMax),
    cpu: Cpu::Kernel(reduce_kernel),
    grad: Grad::Rule(Keep::ALL, shared),
    probe: Probe::calls(CALLS).against("np.nanmax"),
    ..REDUCTION_WITHOUT_DTYPE
};

/// Smallest element that is not NaN.
pub static NAN_MIN: OpDef = OpDef {
    name: "nanmin",
    old_names: &["nan_min"],
    doc: "Smallest of the real elements over `axis` (all axes for None) that are not NaN; NaN if all are NaN. Elements that tie share the gradient.",
    reduces: Some(Reduce::NanMin),
    cpu: Cpu::Kernel(reduce_kernel),
    probe: Probe::calls(CALLS).against("np.nanmin"),
    ..NAN_MAX
};

const CALLS: &[&str] = &[
    "f((3, 4))",
    "f((3, 4)), 0",
    "f((2, 3, 4)), (0, 2)",
    "f((3, 4)), -1, keepdims=True",
    "f(())",
    "i((3, 4), 50), 1",
];

/// Shape and dtype of an extreme; an error for complex numbers.
fn ordered(context: &CallContext) -> Result<Inferred> {
    if context.dtype_of(0).is_complex() {
        return Err(context.dtype_error("complex numbers are not ordered"));
    }
    nonempty(context)
}

/// The cotangent, shared equally among the elements that equal the extreme; 0 where all are NaN.
fn shared(g: &GradContext) -> Result<Grads> {
    let (axes, keepdims, dtype) = (g.opt_ints("axis"), g.bool("keepdims"), g.dy(0).dtype());
    let extreme = unreduced(g.output(0), g.shape(0), axes, keepdims)?;
    let taken = g.input(0).binary(&EQUAL, &extreme)?.astype(dtype)?;
    let one = Array::weak_scalar(Scalar::F64(1.0))?;
    let ties = taken.sum(axes, true)?.binary(&MAXIMUM, &one)?;
    g.one(spread(g, g.dy(0))?.mul(&taken.div(&ties)?)?)
}
