//! Functions of the representation of floating-point numbers: neighbours, signs, exponents, NaN and infinities.

use mxnet_kernels::map;
use mxnet_tensor::DType;

use crate::Array;
use crate::args::{Attrs, Param};
use crate::context::CompositeContext;
use crate::elementwise::comparison::{EQUAL, GREATER};
use crate::elementwise::logic::LOGICAL_NOT;
use crate::elementwise::select::choose;
use crate::error::Result;
use crate::invoke::Call;
use crate::opdef::{Cpu, Form, FpErrors, Grad, Keep, OpDef, Probe, Sparse, Surface};
use crate::types::{DTypes, Lift, Out, Types, resolve_call};

/// Next representable number in a direction.
pub static NEXTAFTER: OpDef = OpDef {
    name: "nextafter",
    surface: &[Surface::Np("nextafter")],
    doc: "The next number of the dtype from `x1` towards `x2`.",
    example: "
        >>> np.nextafter(np.float32(1), np.float32(2)) - 1
        array(1.1920929e-07)
    ",
    types: Types::REAL_FLOAT,
    cpu: Cpu::Map(&map::NEXTAFTER),
    // The result changes as `x1` does; it does not depend on `x2` locally.
    grad: Grad::Rule(Keep::NOTHING, |g| {
        let mut grads = g.elementwise(&[&|| Ok(g.dy(0).clone())])?;
        grads.push(None);
        Ok(grads)
    }),
    probe: Probe::STANDARD.ulp(0),
    ..OpDef::BINARY
};

/// Distance to the next representable number.
pub static SPACING: OpDef = OpDef {
    name: "spacing",
    surface: &[Surface::Np("spacing")],
    params: &[Param::array("x")],
    form: Form::Ufunc,
    types: Types::REAL_FLOAT,
    doc: "Distance of every element to the next number of the dtype away from zero; it has the element's sign.",
    returns: &[("ndarray", "Of the shape of `x`.")],
    example: "
        >>> np.spacing(np.array([1.0, 1e6], dtype='float32'))
        array([1.1920929e-07, 6.2500000e-02])
    ",
    cpu: Cpu::Map(&map::SPACING),
    grad: Grad::Stop("piecewise constant"),
    probe: Probe::calls(&[
        "np.array([1.0, -1.0, 0.0, 3e30, 1e-40, inf, nan, 3.4028235e38], dtype='float32')",
    ])
    .ulp(0),
    ..OpDef::UNARY
};

/// Magnitude of the first array, sign of the second.
pub static COPYSIGN: OpDef = OpDef {
    name: "copysign",
    surface: &[Surface::Np("copysign")],
    doc: "Magnitude of `x1` with the sign of `x2`, element by element; zeros have signs.",
    example: "
        >>> np.copysign([1.0, 2.0], [-1.0, 1.0])
        array([-1.,  2.])
    ",
    types: Types::REAL_FLOAT,
    cpu: Cpu::Map(&map::COPYSIGN),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        let mut grads = g.elementwise(&[&|| {
            let same = g
                .input(0)
                .unary(&SIGNBIT)?
                .binary(&EQUAL, &g.input(1).unary(&SIGNBIT)?)?;
            choose(&same, g.dy(0), &g.dy(0).neg()?)
        }])?;
        grads.push(None);
        Ok(grads)
    }),
    probe: Probe::STANDARD.ulp(0),
    ..OpDef::BINARY
};

/// x1 * 2^x2.
pub static LDEXP: OpDef = OpDef {
    name: "ldexp",
    surface: &[Surface::Np("ldexp")],
    doc: "`x1` times 2 to the power of the integers `x2`, exact unless it leaves the range of the dtype.",
    example: "
        >>> np.ldexp([0.5, 3.0], [1, 4])
        array([ 1., 48.])
    ",
    types: Types::Counted {
        accepts: DTypes::FLOAT,
        lift: Lift::ToFloat,
    },
    fp_errors: FpErrors {
        shrinks: true,
        ..FpErrors::DEFAULT
    },
    cpu: Cpu::Map(&map::LDEXP),
    grad: Grad::Rule(Keep::inputs(2), |g| {
        let mut grads = g.elementwise(&[&|| g.dy(0).binary(&LDEXP, g.input(1))])?;
        grads.push(None);
        Ok(grads)
    }),
    probe: Probe::calls(&[
        "f((3, 4)), i((3, 4), 9)",
        "f((3, 1)), i((4,), 30)",
        "f((5,)), -3",
        "f(()), i((), 5)",
        "f((0,)), i((0,), 5)",
        "2.0, i((6,), 6)",
        "f((4,)), np.array([1000, -1000, 127, -140])",
    ])
    .ulp(0),
    ..OpDef::BINARY
};

/// Default fields for predicates.
const QUESTION: OpDef = OpDef {
    types: Types::COMPARE,
    grad: Grad::Stop("booleans have no gradient"),
    probe: Probe::STANDARD.ulp(0),
    ..OpDef::UNARY
};

/// Whether the sign bit is set.
pub static SIGNBIT: OpDef = OpDef {
    name: "signbit",
    surface: &[Surface::Np("signbit")],
    doc: "Whether the sign bit of each element is set, also for zeros and NaN.",
    example: "
        >>> np.signbit([-1.0, -0.0, 3.0])
        array([ True,  True, False])
    ",
    types: Types::Promote {
        accepts: DTypes::FLOAT,
        lift: Lift::ToFloat,
        out: Out::Bool,
    },
    cpu: Cpu::Map(&map::SIGNBIT),
    ..QUESTION
};

/// Whether an element is NaN.
pub static ISNAN: OpDef = OpDef {
    name: "isnan",
    surface: &[Surface::Np("isnan")],
    doc: "Whether each element is NaN. A complex number is NaN if its real or its imaginary part is.",
    example: "
        >>> np.isnan([1.0, np.nan, np.inf])
        array([False,  True, False])
    ",
    cpu: Cpu::Map(&map::ISNAN),
    sparse: Sparse::KeepsZero,
    onnx: Some("IsNaN"),
    ..QUESTION
};

/// Whether an element is infinite.
pub static ISINF: OpDef = OpDef {
    name: "isinf",
    surface: &[Surface::Np("isinf")],
    doc: "Whether each element is infinite. A complex number is infinite if its real or its imaginary part is.",
    example: "
        >>> np.isinf([1.0, np.nan, -np.inf])
        array([False, False,  True])
    ",
    cpu: Cpu::Map(&map::ISINF),
    sparse: Sparse::KeepsZero,
    onnx: Some("IsInf"),
    ..QUESTION
};

/// Whether an element is neither infinite nor NaN.
pub static ISFINITE: OpDef = OpDef {
    name: "isfinite",
    surface: &[Surface::Np("isfinite")],
    doc: "Whether each element is neither infinite nor NaN.",
    example: "
        >>> np.isfinite([1.0, np.nan, np.inf])
        array([ True, False, False])
    ",
    cpu: Cpu::Map(&map::ISFINITE),
    ..QUESTION
};

/// Default fields for predicates on the sign of infinities.
const INFINITY: OpDef = OpDef {
    params: &[Param::array("x")],
    form: Form::Out,
    grad: Grad::Stop("booleans have no gradient"),
    ..OpDef::COMPOSITE
};

/// Whether an element is positive infinity.
pub static ISPOSINF: OpDef = OpDef {
    name: "isposinf",
    out_broadcasts: true,
    surface: &[Surface::Np("isposinf")],
    doc: "Whether each element is plus infinity.",
    returns: &[("ndarray", "bool, of the shape of `x`.")],
    raises: &[(
        "TypeError",
        "If `x` is complex: complex numbers have no order.",
    )],
    example: "
        >>> np.isposinf([np.inf, -np.inf, 0.0])
        array([ True, False, False])
    ",
    cpu: Cpu::Composite(|context| {
        let minus = context.input(0).unary(&SIGNBIT)?;
        context.done(context.input(0).unary(&ISINF)?.binary(&GREATER, &minus)?)
    }),
    probe: Probe::calls(&[
        "np.array([inf, -inf, nan, 0.0, 1.0])",
        "i((3,), 4)",
        "f(())",
        "f((0, 2))",
    ]),
    ..INFINITY
};

/// Whether an element is negative infinity.
pub static ISNEGINF: OpDef = OpDef {
    name: "isneginf",
    out_broadcasts: true,
    surface: &[Surface::Np("isneginf")],
    doc: "Whether each element is minus infinity.",
    returns: &[("ndarray", "bool, of the shape of `x`.")],
    raises: &[(
        "TypeError",
        "If `x` is complex: complex numbers have no order.",
    )],
    example: "
        >>> np.isneginf([np.inf, -np.inf, 0.0])
        array([False,  True, False])
    ",
    cpu: Cpu::Composite(|context| {
        let minus = context.input(0).unary(&SIGNBIT)?;
        let infinite = context.input(0).unary(&ISINF)?;
        context.done(infinite.binary(&GREATER, &minus.unary(&LOGICAL_NOT)?)?)
    }),
    probe: Probe::calls(&[
        "np.array([inf, -inf, nan, 0.0, 1.0])",
        "i((3,), 4)",
        "f(())",
        "f((0, 2))",
    ]),
    ..INFINITY
};

/// Fractional and integer part.
pub static MODF: OpDef = OpDef {
    name: "modf",
    surface: &[Surface::Np("modf")],
    params: &[Param::array("x")],
    form: Form::Ufunc,
    types: Types::Promote {
        accepts: DTypes::FLOAT,
        lift: Lift::ToFloat,
        out: Out::Two(None),
    },
    doc: "Fraction and integer part of every element, two arrays; both have its sign. Of infinities the fraction is 0.",
    returns: &[(
        "tuple of ndarray",
        "Fractions and integer parts, of the shape of `x`.",
    )],
    example: "
        >>> np.modf([1.5, -2.25])
        (array([ 0.5 , -0.25]), array([ 1., -2.]))
    ",
    cpu: Cpu::Map(&map::MODF),
    // The integer part is piecewise constant: only the cotangent of the fraction counts.
    grad: Grad::Rule(Keep::NOTHING, |g| g.elementwise(&[&|| Ok(g.dy(0).clone())])),
    probe: Probe::calls(&[
        "f((3, 4))",
        "np.array([inf, -inf, -0.0, 2.0, -2.5])",
        "i((3,), 5)",
        "f(())",
    ])
    .ulp(0),
    ..OpDef::UNARY
};

/// The argument of a composed function, in the dtype that the function computes in.
fn in_loop_dtype(context: &CompositeContext) -> Result<Array> {
    let call = Call {
        op: context.op,
        inputs: context.inputs,
        attrs: &Attrs::none(),
        outs: &[],
        dtype: None,
    };
    context.input(0).astype(resolve_call(&call)?.0)
}

/// Mantissa and exponent.
pub static FREXP: OpDef = OpDef {
    name: "frexp",
    out_broadcasts: true,
    surface: &[Surface::Np("frexp")],
    params: &[Param::array("x")],
    form: Form::Ufunc,
    types: Types::Promote {
        accepts: DTypes::FLOAT,
        lift: Lift::ToFloat,
        out: Out::Two(Some(DType::I32)),
    },
    doc: "Mantissa, with an absolute value in [0.5, 1), and int32 exponent of every element, two arrays: `x` is `mantissa * 2**exponent`. Zeros, \
        infinities and NaN are their own mantissa, with exponent 0.",
    returns: &[(
        "tuple of ndarray",
        "Mantissas, and int32 exponents, of the shape of `x`.",
    )],
    example: "
        >>> np.frexp([8.0, 0.3])
        (array([0.5, 0.6]), array([ 4, -1], dtype=int32))
    ",
    cpu: Cpu::Composite(|context| {
        let x = in_loop_dtype(context)?;
        Ok(smallvec::smallvec![
            x.unary(&MANTISSA)?,
            x.unary(&EXPONENT)?
        ])
    }),
    probe: Probe::calls(&[
        "f((3, 4))",
        "np.array([inf, -inf, nan, -0.0, 2.0, -2.5, 1e-40, 3e38], dtype='float32')",
        "i((5,), 100)",
        "f(())",
        "f((0, 2))",
    ])
    .ulp(0),
    ..OpDef::COMPOSITE
};

/// Mantissa of floats.
pub static MANTISSA: OpDef = OpDef {
    name: "mantissa",
    doc: "Every element divided by the power of two for which the absolute value of the quotient is in [0.5, 1).",
    types: Types::REAL_FLOAT,
    cpu: Cpu::Map(&map::MANTISSA),
    // The exponent is piecewise constant.
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.elementwise(&[&|| {
            let down = g.input(0).unary(&EXPONENT)?.neg()?;
            g.dy(0).binary(&LDEXP, &down)
        }])
    }),
    probe: Probe::over(0.25..2.0)
        .against("lambda x: np.frexp(x)[0]")
        .ulp(0),
    ..OpDef::UNARY
};

/// Exponent of floats.
pub static EXPONENT: OpDef = OpDef {
    name: "exponent",
    doc: "int32 exponent e of every element x, for which the absolute value of x / 2^e is in [0.5, 1).",
    types: Types::Promote {
        accepts: DTypes::FLOAT,
        lift: Lift::ToFloat,
        out: Out::Fixed(DType::I32),
    },
    cpu: Cpu::Map(&map::EXPONENT),
    grad: Grad::Stop("piecewise constant"),
    probe: Probe::over(0.25..2.0)
        .against("lambda x: np.frexp(x)[1]")
        .ulp(0),
    ..OpDef::UNARY
};
