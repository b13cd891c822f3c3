//! `where`, `clip`, `nan_to_num` and relatives.

use mxnet_kernels::map;
use mxnet_tensor::{DType, Kind, Scalar};
use smallvec::SmallVec;

use crate::Array;
use crate::args::{Attrs, Param, ParamKind};
use crate::context::CompositeContext;
use crate::elementwise::arithmetic::{MAXIMUM, MINIMUM};
use crate::elementwise::comparison::{EQUAL, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL};
use crate::elementwise::logic::LOGICAL_AND;
use crate::elementwise::parts::IMAG_PART;
use crate::elementwise::special::ISNAN;
use crate::error::Result;
use crate::index::NONZERO;
use crate::invoke::{Call, dispatch, invoke, invoke1};
use crate::opdef::{Bundle, Cpu, Form, Grad, Keep, OpDef, Probe, Surface, ZeroDimResult};
use crate::shape;
use crate::types::{DTypes, Types, promoted};
use crate::ufunc::deliver::{CASTING, ORDER, SUBOK, computed_in, delivered};

pub(crate) static OPS: &[&OpDef] = &[&WHERE, &CHOOSE, &CLIP, &CLIP_WHERE, &BOUND, &NAN_TO_NUM];

/// Elements of one array or the other; with a condition only, the indices where it holds.
pub static WHERE: OpDef = OpDef {
    name: "where",
    surface: &[Surface::Np("where")],
    bundle: |given| match given {
        1 => Bundle::Tuple,
        _ => Bundle::Natural,
    },
    params: &[
        Param::array("condition"),
        Param::optional_array("x"),
        Param::optional_array("y"),
    ],
    form: Form::ParamsOnly,
    doc: "Elements of `x` where `condition` is not zero, of `y` elsewhere; the three broadcast. Without `x` and `y`, the indices of the elements of \
        `condition` that are not zero, one array per axis, as from `nonzero`.",
    about: &[
        ("condition", "Booleans, or numbers that are true unless 0."),
        ("x", "Elements where the condition holds."),
        ("y", "Elements where it does not."),
    ],
    returns: &[(
        "ndarray",
        "Of the shape to which the three broadcast; without `x` and `y` a tuple of int64 arrays.",
    )],
    raises: &[(
        "ValueError",
        "If only one of `x` and `y` is given, or the shapes do not broadcast.",
    )],
    example: "
        >>> np.where([True, False, True], [1, 2, 3], [10, 20, 30])
        array([ 1, 20,  3])
        >>> np.where(np.array([0, 3, 0, 4]))
        (array([1, 3]),)
    ",
    cpu: Cpu::Composite(|context| match (context.opt(1), context.opt(2)) {
        (Some(x), Some(y)) => context.done(choose(context.input(0), x, y)?),
        (None, None) => invoke(&NONZERO, &[context.input(0)], &Attrs::none()),
        _ => Err(context.value_error("either both or neither of `x` and `y` should be given")),
    }),
    zero_dim: ZeroDimResult::Array,
    probe: Probe::calls(&[
        "b((2, 3)), f((2, 3)), f((2, 3))",
        "b((3,)), f((2, 3)), 1.5",
        "b(()), f((2, 1)), f((3,))",
        "i((2, 3), 2), i((2, 3), 9), i((3,), 9)",
        "i((2, 3), 2)",
        "b((5,))",
    ]),
    ..OpDef::COMPOSITE
};

/// Elements of one array or the other.
pub static CHOOSE: OpDef = OpDef {
    name: "choose_elements",
    params: &[
        Param::array("condition"),
        Param::array("x"),
        Param::array("y"),
    ],
    doc: "Elements of `x` where `condition` is not zero, of `y` elsewhere.",
    types: Types::Choose,
    cpu: Cpu::Map(&map::WHERE),
    grad: Grad::Rule(Keep::inputs(1), |g| {
        let zero = Array::constant(Scalar::I64(0), g.dy(0).dtype())?;
        let condition = g.input(0);
        let mut grads = g.elementwise(&[])?;
        grads.push(None);
        grads.push(if g.wants(1) {
            Some(g.fitted(choose(condition, g.dy(0), &zero)?, 1)?)
        } else {
            None
        });
        grads.push(if g.wants(2) {
            Some(g.fitted(choose(condition, &zero, g.dy(0))?, 2)?)
        } else {
            None
        });
        Ok(grads)
    }),
    onnx: Some("Where"),
    probe: Probe::calls(&[
        "b((2, 3)), f((2, 3)), f((2, 3))",
        "b((3,)), f((2, 3)), 1.5",
        "b(()), f((2, 1)), f((3,))",
        "f((4, 5)), c((5,)), f((4, 1))",
    ])
    .against("np.where"),
    ..OpDef::UNARY
};

/// Clips elements to two bounds.
pub static CLIP: OpDef = OpDef {
    name: "clip",
    out_broadcasts: true,
    surface: &[Surface::Np("clip"), Surface::Method("clip")],
    params: &[
        Param::array("a").strong(),
        Param::optional_array("a_min"),
        Param::optional_array("a_max"),
        Param::out(),
        Param::optional_array("min").keyword(),
        Param::optional_array("max").keyword(),
    ],
    form: Form::Out,
    full_signature: Some(&CLIP_WHERE),
    doc: "Every element clipped to `a_min` and `a_max`, which broadcast; None means no bound. Where `a_min` exceeds `a_max`, the result is `a_max`. `min` and `max` are \
          other names of the bounds. NaN is unchanged. Within the bounds (inclusive) the gradient flows to the element, outside to the bound.",
    about: &[
        ("a_min", "Lower bound, None for none."),
        ("a_max", "Upper bound, None for none."),
        ("min", "Another name of `a_min`."),
        ("max", "Another name of `a_max`."),
    ],
    returns: &[(
        "ndarray",
        "Of the shape to which the array and the bounds broadcast.",
    )],
    raises: &[
        ("ValueError", "If a bound is given under both of its names."),
        ("TypeError", "If booleans are clipped without bounds."),
    ],
    example: "
        >>> np.clip([1, 5, 9], 2, 8)
        array([2, 5, 8])
        >>> np.clip([1.0, 5.0], None, [0.5, 6.0])
        array([0.5, 5. ])
    ",
    cpu: Cpu::Composite(|context| context.done(clipped(context)?)),
    probe: Probe::calls(&[
        "f((3, 4)), -1.0, 1.0",
        "f((3, 4)), None, 0.5",
        "f((3, 4)), -0.5, None",
        "f((3, 4)), f((4,)), 1.5",
        "f((3, 4)), min=-0.25, max=0.25",
        "i((5,), 9), 2, 6",
        "f(()), 0.0, 1.0",
        "f((0, 3)), 0.0, 1.0",
        "np.array([nan, inf, -inf]), -1.0, 1.0",
    ])
    .ulp(0),
    ..OpDef::COMPOSITE
};

/// `clip` with a ufunc's keywords (`where`, `casting`, …).
pub static CLIP_WHERE: OpDef = OpDef {
    name: "clip_where",
    out_broadcasts: true,
    params: &[
        Param::array("a").strong(),
        Param::optional_array("a_min"),
        Param::optional_array("a_max"),
        Param::out(),
        Param::optional_array("min").keyword(),
        Param::optional_array("max").keyword(),
        Param::optional_array("where").keyword(),
        Param::optional("dtype", ParamKind::DType).keyword(),
        CASTING,
        ORDER,
        SUBOK,
    ],
    form: Form::Out,
    doc: "`dtype` is the dtype of the computation and of the result. Where `where` is false, elements are not computed and those of `out` are unchanged.",
    about: &[
        ("where", "Which elements are computed; all for None."),
        ("dtype", "Dtype of the computation and of the result."),
        (
            "casting",
            "Which conversions of the array, of the bounds and of the result are allowed.",
        ),
    ],
    cpu: Cpu::Composite(|context| {
        let made = (0..5)
            .map(|i| {
                context
                    .opt(i)
                    .map(|x| computed_in(context, i, x))
                    .transpose()
            })
            .collect::<Result<SmallVec<[Option<Array>; 5]>>>()?;
        let inputs: SmallVec<[Option<&Array>; 5]> = made.iter().map(Option::as_ref).collect();
        // Elements that `where` excludes must not be written.
        let y = clipped(&CompositeContext {
            inputs: &inputs,
            outs: &[],
            ..*context
        })?;
        context.done(delivered(context, y, context.opt(5))?)
    }),
    probe: Probe::calls(&[
        "f((3, 4)), -1.0, 1.0, dtype='float64'",
        "i((5,), 9), 2, 6, dtype='int16', casting='unsafe'",
        "f((3, 4)), -0.5, 0.5, where=True, order='F'",
    ])
    .against("np.clip")
    .ulp(0),
    ..OpDef::COMPOSITE
};

/// Clips input 0 to inputs 1 or 3 (lower bound) and 2 or 4 (upper bound).
fn clipped(context: &CompositeContext) -> Result<Array> {
    if context.opt(1).and(context.opt(3)).is_some() || context.opt(2).and(context.opt(4)).is_some()
    {
        return Err(
            context.value_error("give a bound as `a_min` or as `min` (`a_max` or `max`), not both")
        );
    }
    let x = context.input(0);
    let low = context
        .opt(1)
        .or(context.opt(3))
        .filter(|low| !vacuous(x, low, false));
    let high = context
        .opt(2)
        .or(context.opt(4))
        .filter(|high| !vacuous(x, high, true));
    match (low, high) {
        // Booleans are ordered, too.
        (Some(low), Some(high)) if promoted(&[Some(x), Some(low), Some(high)]) == DType::Bool => {
            x.binary(&MAXIMUM, low)?.binary(&MINIMUM, high)
        }
        (Some(low), Some(high)) => bound(context, x, low, high),
        (Some(low), None) => x.binary(&MAXIMUM, low),
        (None, Some(high)) => x.binary(&MINIMUM, high),
        (None, None)
            if x.dtype() == DType::Bool && context.inputs[1..].iter().all(Option::is_none) =>
        {
            Err(context.dtype_error("booleans cannot be clipped without bounds"))
        }
        (None, None) => x.copy(),
    }
}

/// Clips `x` to two bounds, into the caller's output if that has the shape and dtype of the result.
fn bound(context: &CompositeContext, x: &Array, low: &Array, high: &Array) -> Result<Array> {
    let operands = [Some(x), Some(low), Some(high)];
    let fits = |out: &Array| {
        out.shape() == x.shape()
            && out.dtype() == promoted(&operands)
            && [low, high].iter().all(|limit| limit.ndim() == 0)
            && out.device() == x.device()
    };
    let outs = match context.outs {
        [Some(out)] if fits(out) => context.outs,
        _ => &[],
    };
    let mut results = dispatch(&Call {
        op: &BOUND,
        inputs: &operands,
        attrs: &Attrs::none(),
        outs,
        dtype: None,
    })?;
    Ok(results.remove(0))
}

/// Whether a Python integer bounds all values of the integer dtype of `x`, so that clipping to it has no effect.
fn vacuous(x: &Array, bound: &Array, upper: bool) -> bool {
    let Some(value) = bound.number() else {
        return false;
    };
    if value.kind() != Kind::Integer || !x.dtype().is_integer() {
        return false;
    }
    !value.fits(x.dtype()) && (value.as_f64() > 0.0) == upper
}

/// Clips elements to two arrays of bounds.
pub static BOUND: OpDef = OpDef {
    name: "bound",
    params: &[Param::array("x"), Param::array("low"), Param::array("high")],
    doc: "Every element of `x` clipped to `low` and `high`.",
    types: Types::same(DTypes::NUMBER),
    cpu: Cpu::Map(&map::CLIP),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        let (x, low, high) = (g.input(0), g.input(1), g.input(2));
        let through = |mask: Array| g.dy(0).mul(&mask.astype(g.dy(0).dtype())?);
        g.elementwise(&[
            &|| {
                let above = x.binary(&GREATER_EQUAL, low)?;
                through(above.binary(&LOGICAL_AND, &x.binary(&LESS_EQUAL, high)?)?)
            },
            &|| {
                let below = x.binary(&LESS, low)?;
                through(below.binary(&LOGICAL_AND, &low.binary(&LESS_EQUAL, high)?)?)
            },
            // The result is `high` where `x` or `low` exceeds it.
            &|| through(x.maximum(low)?.binary(&GREATER, high)?),
        ])
    }),
    probe: Probe::calls(&[
        "f((3, 4)), f((3, 4)), f((3, 4))",
        "f((3, 4)), -1.0, f((4,))",
        "i((3, 4), 9), 2, 6",
    ])
    .against("np.clip")
    .ulp(0),
    ..OpDef::UNARY
};

/// Replaces NaN and infinities by finite numbers.
pub static NAN_TO_NUM: OpDef = OpDef {
    name: "nan_to_num",
    surface: &[Surface::Np("nan_to_num")],
    params: &[
        Param::array("x"),
        Param::bool("copy", true),
        Param {
            default: crate::args::Default::Float(0.0),
            ..Param::array("nan")
        },
        Param::optional_array("posinf"),
        Param::optional_array("neginf"),
    ],
    doc: "Every element, with `nan` for NaN, `posinf` for infinity and `neginf` for minus infinity; None means the largest and the smallest finite number of the dtype. Real and imaginary parts are replaced separately. With `copy=False` the array itself is changed and returned.",
    about: &[
        ("copy", "Whether to copy; if false, the array is changed in place."),
        ("nan", "Replacement of NaN, one number or one for each element."),
        ("posinf", "Replacement of infinity; the largest number of the dtype for None."),
        ("neginf", "Replacement of minus infinity; the smallest number of the dtype for None."),
    ],
    returns: &[("ndarray", "Of the shape and dtype of `x`.")],
    raises: &[
        ("ValueError", "If a replacement does not broadcast to `x`."),
        ("TypeError", "If a replacement is not real."),
    ],
    example: "
        >>> np.nan_to_num([1.0, np.nan, np.inf], posinf=99.0)
        array([ 1.,  0., 99.])
    ",
    cpu: Cpu::Composite(|context| {
        let x = context.input(0);
        let fixed = if x.dtype().is_complex() {
            let parts = [x.real_part()?, x.unary(&IMAG_PART)?];
            let [re, im] = parts.map(|part| finite(context, &part));
            let i = Array::weak_scalar(Scalar::C128(num_complex::Complex::new(0.0, 1.0)))?;
            re?.astype(x.dtype())?.add(&im?.mul(&i)?)?
        } else if x.dtype().is_inexact() {
            finite(context, x)?
        } else {
            x.copy()?
        };
        if context.bool("copy") {
            return context.done(fixed);
        }
        shape::assign(x, &fixed)?;
        context.done(x.clone())
    }),
    probe: Probe::calls(&[
        "np.array([nan, inf, -inf, 1.5], dtype='float32')",
        "np.array([nan, inf, -inf, 1.5], dtype='float32'), True, 2.0, 3.0, -4.0",
        "np.array([nan, 1.0, 2.0]), nan=7.0, posinf=1.0",
        "np.array([nan, inf, nan], dtype='float32'), nan=[7.0, 8.0, 9.0], posinf=np.array([1.0])",
        "f((2, 3))",
        "c((3,))",
        "i((3,), 9)",
        "f(())",
    ])
    .against("lambda x, *args, **kwargs: np.nan_to_num(x.astype('float32') if x.dtype.kind == 'f' else x, *args, **kwargs)")
    .ulp(0),
    ..OpDef::COMPOSITE
};

fn finite(context: &crate::context::CompositeContext, x: &Array) -> Result<Array> {
    let largest = match x.dtype() {
        DType::F16 => 65504.0,
        // 2^127 (2 - 2^-7)
        DType::BF16 => 3.389_531_389_251_535_5e38,
        DType::F32 => f64::from(f32::MAX),
        _ => f64::MAX,
    };
    // Scalar or array argument `i`, in the dtype of `x`; the default number if it is absent.
    let given = |i: usize, number: f64| match context.opt(i) {
        Some(value) if value.layout().broadcast_to(x.shape()).is_err() => {
            Err(context.shape_error("the replacements of NaN and infinities must broadcast to `x`"))
        }
        Some(value) if value.dtype().is_complex() => {
            Err(context.dtype_error("the replacements of NaN and infinities must be real"))
        }
        Some(value) if !value.is_weak() => value.astype(x.dtype()),
        Some(value) => Ok(value.clone()),
        None => Array::weak_scalar(Scalar::F64(number)),
    };
    let y = choose(&x.unary(&ISNAN)?, &given(1, 0.0)?, x)?;
    let y = choose(
        &x.with_scalar(&EQUAL, f64::INFINITY)?,
        &given(2, largest)?,
        &y,
    )?;
    choose(
        &x.with_scalar(&EQUAL, f64::NEG_INFINITY)?,
        &given(3, -largest)?,
        &y,
    )
}

/// Elements of `x` where `condition` is true, of `y` elsewhere.
///
/// # Errors
/// Shapes that do not broadcast.
pub fn choose(condition: &Array, x: &Array, y: &Array) -> Result<Array> {
    invoke1(&CHOOSE, &[condition, x, y], &Attrs::none())
}
