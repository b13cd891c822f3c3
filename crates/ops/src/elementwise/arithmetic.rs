//! Sums, products, quotients and powers. Rounding to integers is in `rounding.rs`.

use mxnet_kernels::map;
use mxnet_tensor::Scalar;

use crate::Array;
use crate::autograd::GradContext;
use crate::elementwise::comparison::{EQUAL, GREATER, LESS};
use crate::error::Result;
use crate::opdef::{Cpu, Fold, FpErrors, Grad, Keep, OpDef, Pole, Probe, Sparse, Surface};
use crate::reduce::{CUMMAX, CUMMIN, CUMPROD, CUMSUM, MAX, MIN, PROD, SUM};
use crate::types::{DTypes, Lift, Out, Types};

pub(crate) static OPS: &[&OpDef] = &[
    &ADD,
    &SUBTRACT,
    &MULTIPLY,
    &DIVIDE,
    &FLOOR_DIVIDE,
    &REMAINDER,
    &FMOD,
    &DIVMOD,
    &NEGATIVE,
    &POSITIVE,
    &ABSOLUTE,
    &FABS,
    &SIGN,
    &RECIPROCAL,
    &SQUARE,
    &CONJUGATE,
    &MAXIMUM,
    &MINIMUM,
    &FMAX,
    &FMIN,
];

/// Sum.
pub static ADD: OpDef = OpDef {
    name: "add",
    surface: &[Surface::Np("add")],
    doc: "Sum of two arrays, element by element. For booleans it is `or`.",
    example: "
        >>> np.add([1, 2], [10, 20])
        array([11, 22])
        >>> np.add([[1], [2]], [10, 20, 30])
        array([[11, 21, 31],
               [12, 22, 32]])
    ",
    types: Types::NUMERIC,
    cpu: Cpu::Map(&map::ADD),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        g.elementwise(&[&|| Ok(g.dy(0).clone()), &|| Ok(g.dy(0).clone())])
    }),
    onnx: Some("Add"),
    probe: Probe::STANDARD.ulp(0),
    fold: Fold::from(Scalar::I64(0)).by(&SUM).steps_by(&CUMSUM),
    ..OpDef::BINARY
};

/// Difference.
pub static SUBTRACT: OpDef = OpDef {
    name: "subtract",
    surface: &[Surface::Np("subtract")],
    doc: "Difference of two arrays, element by element. Booleans are refused: use `logical_xor`.",
    example: "
        >>> np.subtract([5, 7], [1, 10])
        array([ 4, -3])
    ",
    types: Types::NUMBER,
    cpu: Cpu::Map(&map::SUBTRACT),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        g.elementwise(&[&|| Ok(g.dy(0).clone()), &|| g.dy(0).neg()])
    }),
    onnx: Some("Sub"),
    probe: Probe::STANDARD.ulp(0),
    ..OpDef::BINARY
};

/// Product.
pub static MULTIPLY: OpDef = OpDef {
    name: "multiply",
    surface: &[Surface::Np("multiply")],
    doc: "Product of two arrays, element by element. For booleans it is `and`.",
    example: "
        >>> np.multiply([1, 2, 3], 0.5)
        array([0.5, 1. , 1.5])
    ",
    types: Types::NUMERIC,
    fp_errors: FpErrors {
        shrinks: true,
        ..FpErrors::DEFAULT
    },
    cpu: Cpu::Map(&map::MULTIPLY),
    // For complex numbers the cotangent of z in z*w is dy * conj(w).
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.elementwise(&[&|| g.dy(0).mul(&g.input(1).conj()?), &|| {
            g.dy(0).mul(&g.input(0).conj()?)
        }])
    }),
    onnx: Some("Mul"),
    sparse: Sparse::KeepsZero,
    probe: Probe::STANDARD.ulp(0),
    fold: Fold::from(Scalar::I64(1)).by(&PROD).steps_by(&CUMPROD),
    ..OpDef::BINARY
};

/// Quotient.
pub static DIVIDE: OpDef = OpDef {
    name: "divide",
    surface: &[Surface::Np("divide"), Surface::Np("true_divide")],
    doc: "Quotient of two arrays, element by element. Integers give floats. Division by zero gives infinity or NaN.",
    example: "
        >>> np.divide([1, 4], [2, 8])
        array([0.5, 0.5])
    ",
    types: Types::Promote {
        accepts: DTypes::INEXACT,
        lift: Lift::ToDefaultFloat,
        out: Out::Same,
    },
    fp_errors: FpErrors {
        shrinks: true,
        pole: Pole::ZeroOf(1),
        ..FpErrors::DEFAULT
    },
    cpu: Cpu::Map(&map::DIVIDE),
    // d(x/y) = dx/y - dy * x/y^2.
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.elementwise(&[&|| g.dy(0).div(&g.input(1).conj()?), &|| {
            let slope = g.input(0).div(g.input(1))?.div(g.input(1))?;
            g.dy(0).mul(&slope.conj()?)?.neg()
        }])
    }),
    onnx: Some("Div"),
    probe: Probe::over(0.5..2.0).ulp(1),
    ..OpDef::BINARY
};

/// Largest integer not above the quotient.
pub static FLOOR_DIVIDE: OpDef = OpDef {
    name: "floor_divide",
    surface: &[Surface::Np("floor_divide")],
    doc: "Largest integer not above the quotient, element by element. Integer division by zero gives 0.",
    example: "
        >>> np.floor_divide([7, -7], 2)
        array([ 3, -4])
    ",
    types: Types::Promote {
        accepts: DTypes::INT.or(DTypes::FLOAT),
        lift: Lift::BoolToI8,
        out: Out::Same,
    },
    fp_errors: FpErrors {
        divides: true,
        quotient: true,
        pole: Pole::ZeroOf(1),
        ..FpErrors::DEFAULT
    },
    cpu: Cpu::Map(&map::FLOOR_DIVIDE),
    grad: Grad::Stop("piecewise constant"),
    probe: Probe::over(0.5..8.0).ulp(0),
    ..OpDef::BINARY
};

/// Remainder with the divisor's sign.
pub static REMAINDER: OpDef = OpDef {
    name: "remainder",
    surface: &[Surface::Np("remainder"), Surface::Np("mod")],
    doc: "Remainder of the floor division, element by element: it has the divisor's sign. Integer division by zero gives 0.",
    example: "
        >>> np.remainder([7, -7], 3)
        array([1, 2])
    ",
    types: Types::Promote {
        accepts: DTypes::INT.or(DTypes::FLOAT),
        lift: Lift::BoolToI8,
        out: Out::Same,
    },
    fp_errors: FpErrors {
        divides: true,
        ..FpErrors::DEFAULT
    },
    cpu: Cpu::Map(&map::REMAINDER),
    // x mod y = x - floor(x/y) * y, and the floor is piecewise constant.
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.elementwise(&[&|| Ok(g.dy(0).clone()), &|| {
            g.dy(0).mul(&g.input(0).floor_div(g.input(1))?)?.neg()
        }])
    }),
    probe: Probe::over(0.5..8.0).ulp(0),
    ..OpDef::BINARY
};

/// Remainder with the dividend's sign.
pub static FMOD: OpDef = OpDef {
    name: "fmod",
    surface: &[Surface::Np("fmod")],
    doc: "Remainder of the division rounded towards zero, element by element: it has the dividend's sign, as in C.",
    example: "
        >>> np.fmod([7, -7], 3)
        array([ 1, -1])
    ",
    types: Types::Promote {
        accepts: DTypes::INT.or(DTypes::FLOAT),
        lift: Lift::BoolToI8,
        out: Out::Same,
    },
    fp_errors: FpErrors {
        divides: true,
        ..FpErrors::DEFAULT
    },
    cpu: Cpu::Map(&map::FMOD),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.elementwise(&[&|| Ok(g.dy(0).clone()), &|| {
            let remainder = g.input(0).binary(&FMOD, g.input(1))?;
            let times = g.input(0).sub(&remainder)?.div(g.input(1))?;
            g.dy(0).mul(&times)?.neg()
        }])
    }),
    probe: Probe::over(0.5..8.0).ulp(0),
    ..OpDef::BINARY
};

/// Floor division and remainder.
pub static DIVMOD: OpDef = OpDef {
    name: "divmod",
    surface: &[Surface::Np("divmod")],
    doc: "Floor division and remainder at once: two arrays.",
    returns: &[("tuple of ndarray", "Quotients and remainders.")],
    example: "
        >>> np.divmod([7, -7], 3)
        (array([ 2, -3]), array([1, 2]))
    ",
    types: Types::Promote {
        accepts: DTypes::INT.or(DTypes::FLOAT),
        lift: Lift::BoolToI8,
        out: Out::Same,
    },
    fp_errors: FpErrors {
        divides: true,
        quotient: true,
        pole: Pole::ZeroOf(1),
        ..FpErrors::DEFAULT
    },
    cpu: Cpu::Map(&map::DIVMOD),
    // The quotient is piecewise constant: only the remainder's cotangent counts.
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.elementwise(&[&|| Ok(g.dy(1).clone()), &|| {
            g.dy(1).mul(&g.input(0).floor_div(g.input(1))?)?.neg()
        }])
    }),
    probe: Probe::over(0.5..8.0).ulp(0),
    ..OpDef::BINARY
};

/// Negation.
pub static NEGATIVE: OpDef = OpDef {
    name: "negative",
    surface: &[Surface::Np("negative")],
    doc: "Minus every element. Booleans are refused: use `logical_not`.",
    example: "
        >>> np.negative([1.0, -2.0])
        array([-1.,  2.])
    ",
    types: Types::NUMBER,
    cpu: Cpu::Map(&map::NEGATIVE),
    grad: Grad::Rule(Keep::NOTHING, |g| g.elementwise(&[&|| g.dy(0).neg()])),
    onnx: Some("Neg"),
    sparse: Sparse::KeepsZero,
    probe: Probe::STANDARD.ulp(0),
    ..OpDef::UNARY
};

/// A copy of the elements.
pub static POSITIVE: OpDef = OpDef {
    name: "positive",
    surface: &[Surface::Np("positive")],
    doc: "A copy of the elements.",
    example: "
        >>> np.positive([1.0, -2.0])
        array([ 1., -2.])
    ",
    types: Types::NUMBER,
    cpu: Cpu::Map(&map::POSITIVE),
    grad: Grad::Rule(Keep::NOTHING, |g| g.elementwise(&[&|| Ok(g.dy(0).clone())])),
    onnx: Some("Identity"),
    sparse: Sparse::KeepsZero,
    probe: Probe::STANDARD.ulp(0),
    ..OpDef::UNARY
};

/// Absolute value.
pub static ABSOLUTE: OpDef = OpDef {
    name: "absolute",
    surface: &[Surface::Np("absolute"), Surface::Np("abs")],
    doc: "Absolute value of every element; real for complex numbers. The gradient at zero is zero.",
    example: "
        >>> np.absolute([-1.5, 2.0])
        array([1.5, 2. ])
        >>> np.absolute(3 + 4j)
        array(5.)
    ",
    types: Types::Promote {
        accepts: DTypes::ALL,
        lift: Lift::No,
        out: Out::Real,
    },
    cpu: Cpu::Map(&map::ABSOLUTE),
    // For complex z the slope is z/|z|, which `sign` is.
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.elementwise(&[&|| g.dy(0).mul(&g.input(0).sign()?)])
    }),
    onnx: Some("Abs"),
    sparse: Sparse::KeepsZero,
    probe: Probe::over(0.25..2.0).ulp(1),
    ..OpDef::UNARY
};

/// Absolute value of real numbers, as floats.
pub static FABS: OpDef = OpDef {
    name: "fabs",
    surface: &[Surface::Np("fabs")],
    doc: "Absolute value of every real element, as a float.",
    example: "
        >>> np.fabs([-1.5, 2.0])
        array([1.5, 2. ])
    ",
    types: Types::REAL_FLOAT,
    cpu: Cpu::Map(&map::FABS),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.elementwise(&[&|| g.dy(0).mul(&g.input(0).sign()?)])
    }),
    onnx: Some("Abs"),
    sparse: Sparse::KeepsZero,
    probe: Probe::over(0.25..2.0).ulp(0),
    ..OpDef::UNARY
};

/// -1, 0 or 1.
pub static SIGN: OpDef = OpDef {
    name: "sign",
    surface: &[Surface::Np("sign")],
    doc: "-1, 0 or 1 for a negative, zero or positive element; `z / |z|` for complex numbers, NaN for NaN.",
    example: "
        >>> np.sign([-3, 0, 5])
        array([-1,  0,  1])
    ",
    types: Types::NUMBER,
    cpu: Cpu::Map(&map::SIGN),
    // The sign of real numbers is piecewise constant. For s = z/|z| only the part of dy orthogonal to s counts:
    // (dy - s Re(conj(s) dy)) / |z|.
    grad: Grad::Rule(Keep::ALL, |g| {
        if !g.dtype_of(0).is_complex() {
            return Ok(smallvec::smallvec![None]);
        }
        g.elementwise(&[&|| {
            let s = g.output(0);
            let along = s.conj()?.mul(g.dy(0))?;
            let along = along.add(&along.conj()?)?.scale(0.5)?;
            g.dy(0).sub(&s.mul(&along)?)?.div(&g.input(0).abs()?)
        }])
    }),
    onnx: Some("Sign"),
    sparse: Sparse::KeepsZero,
    probe: Probe::STANDARD.ulp(1),
    ..OpDef::UNARY
};

/// Reciprocal.
pub static RECIPROCAL: OpDef = OpDef {
    name: "reciprocal",
    surface: &[Surface::Np("reciprocal"), Surface::Npx("reciprocal")],
    doc: "One over every element. For integers it is 0 except at 1 and -1; for int32 and int64 the smallest number at 0, as in NumPy.",
    example: "
        >>> np.reciprocal([2.0, 4.0])
        array([0.5 , 0.25])
        >>> np.reciprocal(np.array([1, 2]))
        array([1, 0])
    ",
    types: Types::Promote {
        accepts: DTypes::NUMBER,
        lift: Lift::BoolToI8,
        out: Out::Same,
    },
    fp_errors: FpErrors {
        pole: Pole::ZeroOf(0),
        ..FpErrors::DEFAULT
    },
    cpu: Cpu::Map(&map::RECIPROCAL),
    grad: Grad::Rule(Keep::OUTPUTS, |g| {
        g.elementwise(&[&|| g.dy(0).mul(&g.output(0).square()?.conj()?)?.neg()])
    }),
    onnx: Some("Reciprocal"),
    probe: Probe::over(0.5..2.0).ulp(1),
    ..OpDef::UNARY
};

/// Square.
pub static SQUARE: OpDef = OpDef {
    name: "square",
    surface: &[Surface::Np("square")],
    doc: "Every element times itself.",
    example: "
        >>> np.square([1, -2, 3])
        array([1, 4, 9])
    ",
    types: Types::Promote {
        accepts: DTypes::NUMBER,
        lift: Lift::BoolToI8,
        out: Out::Same,
    },
    fp_errors: FpErrors {
        shrinks: true,
        ..FpErrors::DEFAULT
    },
    cpu: Cpu::Map(&map::SQUARE),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.elementwise(&[&|| g.dy(0).mul(&g.input(0).conj()?)?.scale(2.0)])
    }),
    sparse: Sparse::KeepsZero,
    probe: Probe::STANDARD.ulp(0),
    ..OpDef::UNARY
};

/// Complex conjugate.
pub static CONJUGATE: OpDef = OpDef {
    name: "conjugate",
    surface: &[Surface::Np("conjugate"), Surface::Np("conj")],
    doc: "Complex conjugate of every element; real elements are unchanged, booleans become int8.",
    example: "
        >>> np.conjugate([1 + 2j, 3 - 1j])
        array([1.-2.j, 3.+1.j])
    ",
    types: Types::Promote {
        accepts: DTypes::NUMBER,
        lift: Lift::BoolToI8,
        out: Out::Same,
    },
    cpu: Cpu::Map(&map::CONJUGATE),
    grad: Grad::Rule(Keep::NOTHING, |g| g.elementwise(&[&|| g.dy(0).conj()])),
    sparse: Sparse::KeepsZero,
    probe: Probe::STANDARD.ulp(0),
    ..OpDef::UNARY
};

/// Larger element; NaN if either is NaN.
pub static MAXIMUM: OpDef = OpDef {
    name: "maximum",
    surface: &[Surface::Np("maximum")],
    doc: "Larger of two arrays, element by element. NaN in either gives NaN. Equal elements share the gradient.",
    example: "
        >>> np.maximum([1, 5, 3], [2, 4, 3])
        array([2, 5, 3])
        >>> np.maximum([1.0, np.nan], 0.0)
        array([ 1., nan])
    ",
    types: Types::NUMERIC,
    cpu: Cpu::Map(&map::MAXIMUM),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.elementwise(&[&|| g.dy(0).mul(&share(g, &GREATER, 0, 1)?), &|| {
            g.dy(0).mul(&share(g, &GREATER, 1, 0)?)
        }])
    }),
    onnx: Some("Max"),
    probe: Probe::STANDARD.ulp(0),
    fold: Fold::UNORDERED.by(&MAX).steps_by(&CUMMAX),
    ..OpDef::BINARY
};

/// Smaller element; NaN if either is NaN.
pub static MINIMUM: OpDef = OpDef {
    name: "minimum",
    surface: &[Surface::Np("minimum")],
    doc: "Smaller of two arrays, element by element. NaN in either gives NaN. Equal elements share the gradient.",
    example: "
        >>> np.minimum([1, 5, 3], [2, 4, 3])
        array([1, 4, 3])
    ",
    types: Types::NUMERIC,
    cpu: Cpu::Map(&map::MINIMUM),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.elementwise(&[&|| g.dy(0).mul(&share(g, &LESS, 0, 1)?), &|| {
            g.dy(0).mul(&share(g, &LESS, 1, 0)?)
        }])
    }),
    onnx: Some("Min"),
    probe: Probe::STANDARD.ulp(0),
    fold: Fold::UNORDERED.by(&MIN).steps_by(&CUMMIN),
    ..OpDef::BINARY
};

/// Larger element; ignores NaN.
pub static FMAX: OpDef = OpDef {
    name: "fmax",
    surface: &[Surface::Np("fmax")],
    doc: "Larger of two arrays, element by element. If one element is NaN, the result is the other. Equal elements share the gradient.",
    example: "
        >>> np.fmax([1.0, np.nan], 0.0)
        array([1., 0.])
    ",
    types: Types::NUMERIC,
    cpu: Cpu::Map(&map::FMAX),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.elementwise(&[&|| g.dy(0).mul(&share(g, &GREATER, 0, 1)?), &|| {
            g.dy(0).mul(&share(g, &GREATER, 1, 0)?)
        }])
    }),
    probe: Probe::STANDARD.ulp(0),
    fold: Fold::UNORDERED,
    ..OpDef::BINARY
};

/// Smaller element; ignores NaN.
pub static FMIN: OpDef = OpDef {
    name: "fmin",
    surface: &[Surface::Np("fmin")],
    doc: "Smaller of two arrays, element by element. If one element is NaN, the result is the other. Equal elements share the gradient.",
    example: "
        >>> np.fmin([1.0, np.nan], 2.0)
        array([1., 2.])
    ",
    types: Types::NUMERIC,
    cpu: Cpu::Map(&map::FMIN),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.elementwise(&[&|| g.dy(0).mul(&share(g, &LESS, 0, 1)?), &|| {
            g.dy(0).mul(&share(g, &LESS, 1, 0)?)
        }])
    }),
    probe: Probe::STANDARD.ulp(0),
    fold: Fold::UNORDERED,
    ..OpDef::BINARY
};

/// Weight of input `i` in the gradient: 1 where its element is the result, 1/2 where both are equal, 0 elsewhere.
fn share(g: &GradContext, wins: &'static OpDef, i: usize, other: usize) -> Result<Array> {
    let (x, y, dtype) = (g.input(i), g.input(other), g.dy(0).dtype());
    let taken = x.binary(wins, y)?.astype(dtype)?;
    taken.add(&x.binary(&EQUAL, y)?.astype(dtype)?.scale(0.5)?)
}
