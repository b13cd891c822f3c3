//! Reductions with the arguments `where`, `initial`, `mean` and `correction`.
//!
//! Each is the form of a reduction with its full signature (`OpDef::full_signature`), composed of operators. Calls without these arguments use the kernel.

use mxnet_tensor::{Casting, DType, Scalar};

use crate::Array;
use crate::args::{Default, Param, ParamKind};
use crate::context::{CallContext, CompositeContext};
use crate::elementwise::arithmetic::{ADD, MAXIMUM, MINIMUM, MULTIPLY};
use crate::elementwise::comparison::LESS_EQUAL;
use crate::elementwise::explog::SQRT;
use crate::elementwise::logic::{LOGICAL_AND, LOGICAL_OR};
use crate::error::Result;
use crate::fp_errors;
use crate::mode::{self, Flags};
use crate::opdef::{Cpu, Form, FpErrors, OpDef, Probe, Warned};
use crate::reduce::fold::{REDUCTION, averaged};
use crate::ufunc::{self, Initial, Reduction};

/// Default fields for these operators.
const EXTENDED: OpDef = OpDef {
    form: Form::Out,
    out_casting: REDUCTION.out_casting,
    ..OpDef::COMPOSITE
};

/// Sum of the elements where a mask is true.
pub static MASKED_SUM: OpDef = OpDef {
    name: "masked_sum",
    fp_errors: FpErrors::named("reduce"),
    params: &[
        Param::array("a"),
        Param::reduced("axis"),
        Param::optional("dtype", ParamKind::DType),
        Param::out(),
        Param::bool("keepdims", false),
        Param::optional("initial", ParamKind::Scalar),
        Param::optional_array("where"),
    ],
    doc: "Sum of `initial` and the elements over `axis` (all axes for None) where `where` is true.",
    cpu: Cpu::Composite(|context| folded(context, &ADD, 1)),
    probe: Probe::calls(&[
        "f((3, 4)), 0, where=b((3, 4))",
        "f((2, 3, 4)), (0, 2), where=b((3, 1)), initial=2.5",
        "f((3, 4)), keepdims=True, initial=1",
        "i((3, 4), 9), 1, initial=3",
        "f((0, 3)), 0, initial=1.5",
    ])
    .against("np.sum")
    // Positive, so that the sum does not cancel: its error is relative to the sum of magnitudes.
    .within(0.25..2.0),
    ..EXTENDED
};

/// Product of the elements where a mask is true.
pub static MASKED_PROD: OpDef = OpDef {
    name: "masked_prod",
    fp_errors: FpErrors::named("reduce"),
    params: MASKED_SUM.params,
    doc: "Product of `initial` and the elements over `axis` (all axes for None) where `where` is true.",
    cpu: Cpu::Composite(|context| folded(context, &MULTIPLY, 1)),
    probe: Probe::calls(&[
        "f((3, 4)), 0, where=b((3, 4))",
        "f((2, 3, 4)), (0, 2), where=b((3, 1)), initial=2.5",
        "i((3, 4), 4), 1, initial=3",
    ])
    .against("np.prod")
    .within(0.5..2.0),
    ..EXTENDED
};

/// Largest element where a mask is true.
pub static MASKED_MAX: OpDef = OpDef {
    name: "masked_max",
    fp_errors: FpErrors::named("reduce"),
    params: &[
        Param::array("a"),
        Param::reduced("axis"),
        Param::out(),
        Param::bool("keepdims", false),
        Param::optional("initial", ParamKind::Scalar),
        Param::optional_array("where"),
    ],
    doc: "Largest of `initial` and the elements over `axis` (all axes for None) where `where` is true. With `where` there must be an `initial`.",
    cpu: Cpu::Composite(|context| folded(context, &MAXIMUM, 1)),
    probe: Probe::calls(EXTREMES).against("np.max").ulp(0),
    ..EXTENDED
};

/// Smallest element where a mask is true.
pub static MASKED_MIN: OpDef = OpDef {
    name: "masked_min",
    fp_errors: FpErrors::named("reduce"),
    params: MASKED_MAX.params,
    doc: "Smallest of `initial` and the elements over `axis` (all axes for None) where `where` is true. With `where` there must be an `initial`.",
    cpu: Cpu::Composite(|context| folded(context, &MINIMUM, 1)),
    probe: Probe::calls(EXTREMES).against("np.min").ulp(0),
    ..EXTENDED
};

const EXTREMES: &[&str] = &[
    "f((3, 4)), 0, where=b((3, 4)), initial=0.25",
    "f((2, 3, 4)), (0, 2), keepdims=True, initial=-0.5",
    "i((3, 4), 9), 1, initial=4",
    "f((0, 3)), 0, initial=1.5",
];

/// Whether any element is true where a mask is true.
pub static MASKED_ANY: OpDef = OpDef {
    name: "masked_any",
    fp_errors: FpErrors::named("reduce"),
    params: &[
        Param::array("a"),
        Param::reduced("axis"),
        Param::out(),
        Param::bool("keepdims", false),
        Param::optional_array("where").keyword(),
    ],
    doc: "Whether any element over `axis` (all axes for None) where `where` is true is nonzero.",
    cpu: Cpu::Composite(|context| folded(context, &LOGICAL_OR, 1)),
    probe: Probe::calls(TRUTHS).against("np.any"),
    ..EXTENDED
};

/// Whether all elements are true where a mask is true.
pub static MASKED_ALL: OpDef = OpDef {
    name: "masked_all",
    fp_errors: FpErrors::named("reduce"),
    params: MASKED_ANY.params,
    doc: "Whether all elements over `axis` (all axes for None) where `where` is true are nonzero.",
    cpu: Cpu::Composite(|context| folded(context, &LOGICAL_AND, 1)),
    probe: Probe::calls(TRUTHS).against("np.all"),
    ..EXTENDED
};

const TRUTHS: &[&str] = &[
    "b((3, 4)), 0, where=b((3, 4))",
    "i((2, 3, 4), 2), (0, 2), keepdims=True, where=b((3, 1))",
];

/// Mean of the elements where a mask is true.
pub static MASKED_MEAN: OpDef = OpDef {
    name: "masked_mean",
    fp_errors: FpErrors::named("reduce"),
    params: &[
        Param::array("a"),
        Param::reduced("axis"),
        Param::optional("dtype", ParamKind::DType),
        Param::out(),
        Param::bool("keepdims", false),
        Param::optional_array("where").keyword(),
    ],
    doc: "Arithmetic mean of the elements over `axis` (all axes for None) where `where` is true; NaN where there are none.",
    cpu: Cpu::Composite(|context| {
        let dtype = context
            .dtype("dtype")
            .unwrap_or(averaged(context.dtype_of(0)));
        let some = MaskedElements {
            axes: context.opt_ints("axis"),
            keepdims: context.bool("keepdims"),
            mask: mask(context, 1),
        };
        let x = context.input(0).astype(wide(dtype))?;
        context.done(some.mean(&x)?.astype(dtype)?)
    }),
    warns: Some(empty),
    probe: Probe::calls(&[
        "f((3, 4)), 0, where=np.array([[True], [False], [True]])",
        "f((2, 3, 4)), (0, 2), keepdims=True, where=np.array([True, False, True, True])",
        "i((3, 4), 9), where=b((3, 4))",
    ])
    .against("np.mean")
    .within(0.25..2.0),
    ..EXTENDED
};

/// Variance of the elements where a mask is true.
pub static MASKED_VAR: OpDef = OpDef {
    name: "masked_var",
    fp_errors: FpErrors::named("reduce"),
    params: &[
        Param::array("a"),
        Param::reduced("axis"),
        Param::optional("dtype", ParamKind::DType),
        Param::out(),
        Param::float("ddof", 0.0).or(Default::Int(0)),
        Param::bool("keepdims", false),
        Param::optional_array("where").keyword(),
        Param::optional_array("mean").keyword(),
        Param::optional("correction", ParamKind::Float).keyword(),
    ],
    doc: "Variance over `axis` (all axes for None) of the elements where `where` is true: squared distances from `mean` (which keeps the axes; \
        computed by default), divided by their number less `ddof`. `correction` is another name of `ddof`.",
    cpu: Cpu::Composite(|context| context.done(variance(context, false)?)),
    warns: Some(no_degrees_of_freedom),
    probe: Probe::calls(SPREADS).against("np.var"),
    ..EXTENDED
};

/// Standard deviation of the elements where a mask is true.
pub static MASKED_STD: OpDef = OpDef {
    name: "masked_std",
    out_casting: Casting::SameKind,
    fp_errors: FpErrors::named("reduce"),
    params: MASKED_VAR.params,
    doc: "Standard deviation over `axis` (all axes for None) of the elements where `where` is true: the square root of `var`.",
    cpu: Cpu::Composite(|context| context.done(variance(context, true)?)),
    warns: Some(no_degrees_of_freedom),
    probe: Probe::calls(SPREADS).against("np.std"),
    ..EXTENDED
};

const SPREADS: &[&str] = &[
    "f((6, 4)), 0, where=np.array([[True], [True], [False], [True], [True], [False]])",
    "f((2, 3, 4)), (0, 2), keepdims=True, correction=1",
    "f((3, 4)), 1, mean=np.array([[0.5], [0.25], [0.75]]), ddof=1",
    "i((3, 4), 9), 1, where=np.array([True, True, False, True])",
];

/// Array argument `i` as a mask; `None` if it is absent or the Python value `True`.
fn mask<'a>(context: &CompositeContext<'a>, i: usize) -> Option<&'a Array> {
    context.opt(i).filter(|mask| {
        !(mask.is_weak() && crate::cpu::read_scalar(mask.tensor()) == Scalar::Bool(true))
    })
}

/// A reduction with all its options. `at`: index of the mask argument.
fn folded(context: &CompositeContext, op: &'static OpDef, at: usize) -> Result<crate::Outputs> {
    let has = |name: &str| context.params.iter().any(|p| p.name == name);
    let initial = if has("initial") {
        context.scalar("initial")
    } else {
        None
    };
    let how = Reduction {
        axes: context.opt_ints("axis"),
        dtype: if has("dtype") {
            context.dtype("dtype")
        } else {
            None
        },
        keepdims: context.bool("keepdims"),
        initial: initial.map_or(Initial::Natural, Initial::At),
        mask: mask(context, at),
    };
    context.done(ufunc::reduce(op, context.input(0), &how)?)
}

/// The dtype in which variances are computed: float32 for float16 and bfloat16.
fn wide(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        other => other,
    }
}

/// The elements that a masked reduction takes.
struct MaskedElements<'a> {
    axes: Option<&'a [i64]>,
    keepdims: bool,
    mask: Option<&'a Array>,
}

impl MaskedElements<'_> {
    fn sum(&self, x: &Array) -> Result<Array> {
        let how = Reduction {
            axes: self.axes,
            dtype: Some(x.dtype()),
            keepdims: self.keepdims,
            initial: Initial::Natural,
            mask: self.mask,
        };
        ufunc::reduce(&ADD, x, &how)
    }

    /// The number of elements taken, in the real dtype of `x`.
    fn count(&self, x: &Array) -> Result<Array> {
        let one = Array::constant(Scalar::I64(1), x.dtype().real())?
            .to_device(x.device())?
            .broadcast_to(x.shape())?;
        self.sum(&one)
    }

    fn mean(&self, x: &Array) -> Result<Array> {
        self.sum(x)?.div(&self.count(x)?)
    }
}

/// Whether the call is one of the forms of this file; the others have one array argument.
fn is_extended(context: &CallContext) -> bool {
    context.inputs.len() > 1
}

/// NumPy's warning for the mean of no elements.
pub(crate) fn empty(context: &CallContext) -> Result<Option<Warned>> {
    Ok(counts_at_most(context, 0.0)?.then_some(Warned::Runtime("Mean of empty slice")))
}

/// NumPy's warning for a variance without degrees of freedom.
pub(crate) fn no_degrees_of_freedom(context: &CallContext) -> Result<Option<Warned>> {
    let correction = match is_extended(context) {
        true => context.opt_float("correction"),
        false => None,
    };
    let ddof = correction.unwrap_or_else(|| context.float("ddof"));
    Ok(counts_at_most(context, ddof)?
        .then_some(Warned::Runtime("Degrees of freedom <= 0 for slice")))
}

/// Whether some slice has at most `most` elements. Waits for the mask, if there is one.
fn counts_at_most(context: &CallContext, most: f64) -> Result<bool> {
    let x = context.input(0);
    let mask = if is_extended(context) {
        mask(context, 1)
    } else {
        None
    };
    if mask.is_none() && most <= 0.0 && !x.is_empty() {
        return Ok(false);
    }
    let number: usize = context
        .axes("axis", 0)?
        .iter()
        .map(|&a| x.shape()[a])
        .product();
    if number as f64 <= most || mask.is_none() || Flags::current().is_stacked() {
        return Ok(number as f64 <= most);
    }
    let some = MaskedElements {
        axes: context.opt_ints("axis"),
        keepdims: false,
        mask,
    };
    fp_errors::unwatched(|| {
        let _scope = mode::Scope::enter(false, mode::is_training());
        let one = Array::constant(Scalar::I64(1), DType::I64)?
            .to_device(x.device())?
            .broadcast_to(x.shape())?;
        let insufficient = some.sum(&one)?.with_scalar(&LESS_EQUAL, most)?;
        Ok(insufficient.to_vec::<bool>()?.contains(&true))
    })
}

/// Sum of squared distances from the mean, divided by the number of elements less `ddof`; the square root of that if `root`.
fn variance(context: &CompositeContext, root: bool) -> Result<Array> {
    let dtype = context
        .dtype("dtype")
        .unwrap_or(averaged(context.dtype_of(0)));
    let x = context.input(0);
    // Complex elements with a real `dtype`: distances are from the real part of the mean, as in NumPy.
    let about_real = x.dtype().is_complex() && !dtype.is_complex();
    let x = x.astype(match about_real {
        true => wide(dtype).complex(),
        false => wide(dtype),
    })?;
    let ddof = match (context.opt_float("correction"), context.float("ddof")) {
        (Some(_), ddof) if ddof != 0.0 => {
            return Err(context.value_error("ddof and correction can't be provided simultaneously"));
        }
        (Some(correction), _) => correction,
        (None, ddof) => ddof,
    };
    let some = MaskedElements {
        axes: context.opt_ints("axis"),
        keepdims: context.bool("keepdims"),
        mask: mask(context, 1),
    };
    let mean = match context.opt(2) {
        Some(mean) => mean.astype(x.dtype())?,
        None => {
            let kept = MaskedElements {
                keepdims: true,
                ..some
            };
            match about_real {
                true => kept.mean(&x.real_part()?)?,
                false => kept.mean(&x)?,
            }
        }
    };
    let centred = x.sub(&mean)?;
    let squares = if x.dtype().is_complex() {
        centred.mul(&centred.conj()?)?.real_part()?
    } else {
        centred.square()?
    };
    // With fewer elements than `ddof` NumPy divides by 0.
    let zero = Array::constant(Scalar::I64(0), x.dtype().real())?;
    let divisor = some.count(&x)?.shift(-ddof)?.maximum(&zero)?;
    let variance = some.sum(&squares)?.div(&divisor)?;
    let result = if root {
        variance.unary(&SQRT)?
    } else {
        variance
    };
    result.astype(context.dtype("dtype").unwrap_or(dtype.real()))
}
