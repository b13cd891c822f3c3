//! Activation functions of neural networks. Their gradients are fused operators, which have gradients themselves.

use mxnet_kernels::map;
use mxnet_tensor::Scalar;

use crate::Array;
use crate::args::{Param, Value};
use crate::elementwise::comparison::{GREATER, LESS};
use crate::elementwise::logic::LOGICAL_AND;
use crate::elementwise::select::choose;
use crate::error::Result;
use crate::invoke::invoke1;
use crate::opdef::{Cost, Cpu, Form, Grad, Keep, OpDef, Probe, Sparse, Surface};
use crate::types::{DTypes, Lift, Out, Types};

pub(crate) static OPS: &[&OpDef] = &[
    &RELU,
    &RELU_GRAD,
    &SIGMOID,
    &SIGMOID_GRAD,
    &LOG_SIGMOID,
    &SOFTPLUS,
    &SOFTPLUS_GRAD,
    &SOFTSIGN,
    &GELU_ERF,
    &GELU_ERF_GRAD,
    &GELU_TANH,
    &GELU_TANH_GRAD,
    &SILU,
    &SILU_GRAD,
    &MISH,
    &ELU,
    &ELU_GRAD,
    &SELU,
    &LEAKY,
    &LEAKY_GRAD,
    &HARD_SIGMOID,
    &HARD_SWISH,
];

/// Default fields for activations.
const ACTIVATION: OpDef = OpDef {
    types: Types::REAL_FLOAT,
    cost: Cost::PerKiB(200),
    ..OpDef::UNARY
};

/// Default fields for gradients of activations, which are not public functions.
const GRADIENT: OpDef = OpDef {
    types: Types::REAL_FLOAT,
    cost: Cost::PerKiB(200),
    ..OpDef::BINARY
};

const SELU_ALPHA: f64 = 1.673_263_242_354_377_2;
const SELU_SCALE: f64 = 1.050_700_987_355_480_5;
/// 1 / sqrt(2 pi).
const ROOT_TWO_PI: f64 = 0.398_942_280_401_432_7;

/// Calls a fused gradient that has one float attribute.
fn fused(op: &'static OpDef, dy: &Array, x: &Array, number: f64) -> Result<Array> {
    invoke1(op, &[dy, x], &[Value::Float(number)].into_iter().collect())
}

/// The second derivative of x sigmoid(v) for v = 2 sqrt(2/pi) (x + 0.044715 x^3).
fn gelu_tanh_curvature(x: &Array) -> Result<Array> {
    const ROOT: f64 = 1.595_769_121_605_730_7;
    const CUBIC: f64 = 0.044_715;
    let z = x.square()?;
    let s = z
        .scale(ROOT * CUBIC)?
        .shift(ROOT)?
        .mul(x)?
        .unary(&SIGMOID)?;
    let steep = s.sub(&s.square()?)?;
    let dv = z.scale(3.0 * ROOT * CUBIC)?.shift(ROOT)?;
    let ddv = x.scale(6.0 * ROOT * CUBIC)?;
    // 2 s' v' + x (s'' v'^2 + s' v''), with s' = s (1 - s) and s'' = s' (1 - 2 s).
    let bend = s
        .scale(-2.0)?
        .shift(1.0)?
        .mul(&dv.square()?)?
        .add(&ddv)?
        .mul(x)?;
    dv.scale(2.0)?.add(&bend)?.mul(&steep)
}

/// Rectified linear unit.
pub static RELU: OpDef = OpDef {
    name: "relu",
    surface: &[Surface::Npx("relu")],
    doc: "The larger of every element and 0; NaN stays. The gradient at 0 is 0.",
    example: "
        >>> npx.relu(np.array([-1.0, 0.0, 2.0]))
        array([0., 0., 2.])
    ",
    cpu: Cpu::Map(&map::RELU),
    grad: Grad::Rule(Keep::OUTPUTS, |g| {
        g.elementwise(&[&|| g.dy(0).binary(&RELU_GRAD, g.output(0))])
    }),
    onnx: Some("Relu"),
    sparse: Sparse::KeepsZero,
    types: Types::Promote {
        accepts: DTypes::INT.or(DTypes::FLOAT),
        lift: Lift::BoolToI8,
        out: Out::Same,
    },
    probe: Probe::STANDARD
        .against("lambda x: np.maximum(x, np.zeros((), x.dtype))")
        .ulp(0),
    ..ACTIVATION
};

/// Gradient of relu.
pub static RELU_GRAD: OpDef = OpDef {
    name: "relu_grad",
    doc: "Gradient of relu: dy where relu is above 0.",
    cpu: Cpu::Map(&map::RELU_GRAD),
    grad: Grad::Rule(Keep::inputs(2), |g| {
        let mut grads = g.elementwise(&[&|| g.dy(0).binary(&RELU_GRAD, g.input(1))])?;
        grads.push(None);
        Ok(grads)
    }),
    params: &[Param::array("dy"), Param::array("y")],
    probe: Probe::STANDARD
        .against("lambda dy, y: np.where(y > 0, dy, np.zeros((), dy.dtype))")
        .ulp(0),
    ..GRADIENT
};

/// Logistic function.
pub static SIGMOID: OpDef = OpDef {
    name: "sigmoid",
    surface: &[Surface::Npx("sigmoid")],
    doc: "1 / (1 + exp(-x)) of every element.",
    example: "
        >>> npx.sigmoid(np.array([-2.0, 0.0, 2.0]))
        array([0.11920292, 0.5       , 0.880797  ])
    ",
    cpu: Cpu::Map(&map::SIGMOID),
    grad: Grad::Rule(Keep::OUTPUTS, |g| {
        g.elementwise(&[&|| g.dy(0).binary(&SIGMOID_GRAD, g.output(0))])
    }),
    onnx: Some("Sigmoid"),
    probe: Probe::STANDARD.against("lambda x: 1 / (1 + np.exp(-x))"),
    ..ACTIVATION
};

/// Gradient of sigmoid.
pub static SIGMOID_GRAD: OpDef = OpDef {
    name: "sigmoid_grad",
    doc: "Gradient of sigmoid: dy y (1 - y) in terms of its result.",
    cpu: Cpu::Map(&map::SIGMOID_GRAD),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.elementwise(&[&|| g.dy(0).binary(&SIGMOID_GRAD, g.input(1)), &|| {
            g.dy(0)
                .mul(g.input(0))?
                .mul(&g.input(1).scale(-2.0)?.shift(1.0)?)
        }])
    }),
    params: &[Param::array("dy"), Param::array("y")],
    probe: Probe::over(0.125..0.75).against("lambda dy, y: dy * (y * (1 - y))"),
    ..GRADIENT
};

/// Logarithm of the logistic function.
pub static LOG_SIGMOID: OpDef = OpDef {
    name: "log_sigmoid",
    doc: "Logarithm of the logistic function of every element, without overflow.",
    cpu: Cpu::Map(&map::LOG_SIGMOID),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.elementwise(&[&|| g.dy(0).binary(&SOFTPLUS_GRAD, &g.input(0).neg()?)])
    }),
    probe: Probe::STANDARD.against("lambda x: -np.logaddexp(0, -x)"),
    ..ACTIVATION
};

/// Smooth rectified linear.
pub static SOFTPLUS: OpDef = OpDef {
    name: "softplus",
    doc: "log(1 + exp(x)) of every element, without overflow.",
    cpu: Cpu::Map(&map::SOFTPLUS),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.elementwise(&[&|| g.dy(0).binary(&SOFTPLUS_GRAD, g.input(0))])
    }),
    onnx: Some("Softplus"),
    probe: Probe::STANDARD.against("lambda x: np.logaddexp(0, x)"),
    ..ACTIVATION
};

/// Gradient of softplus.
pub static SOFTPLUS_GRAD: OpDef = OpDef {
    name: "softplus_grad",
    doc: "Gradient of softplus: dy sigmoid(x).",
    cpu: Cpu::Map(&map::SOFTPLUS_GRAD),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.elementwise(&[&|| g.dy(0).binary(&SOFTPLUS_GRAD, g.input(1)), &|| {
            g.dy(0)
                .mul(g.input(0))?
                .binary(&SIGMOID_GRAD, &g.input(1).unary(&SIGMOID)?)
        }])
    }),
    params: &[Param::array("dy"), Param::array("x")],
    probe: Probe::STANDARD.against("lambda dy, x: dy / (1 + np.exp(-x))"),
    ..GRADIENT
};

/// Soft sign.
pub static SOFTSIGN: OpDef = OpDef {
    name: "softsign",
    surface: &[Surface::Npx("softsign")],
    doc: "`x / (1 + |x|)` of every element.",
    example: "
        >>> npx.softsign(np.array([-3.0, 0.0, 1.0]))
        array([-0.75,  0.  ,  0.5 ])
    ",
    cpu: Cpu::Map(&map::SOFTSIGN),
    // The slope 1 / (1 + |x|)^2 is (1 - |y|)^2.
    grad: Grad::Rule(Keep::OUTPUTS, |g| {
        g.slopes(&[&|| g.output(0).abs()?.neg()?.shift(1.0)?.square()])
    }),
    onnx: Some("Softsign"),
    sparse: Sparse::KeepsZero,
    probe: Probe::over(0.25..2.0).against("lambda x: x / (1 + np.abs(x))"),
    ..ACTIVATION
};

/// Gaussian error linear unit, by the error function.
pub static GELU_ERF: OpDef = OpDef {
    name: "gelu_erf",
    doc: "x times the standard normal distribution function at x, for every element.\n\nSource: Hendrycks and Gimpel, Gaussian Error Linear Units, \
        2016.",
    cpu: Cpu::Map(&map::GELU_ERF),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.elementwise(&[&|| g.dy(0).binary(&GELU_ERF_GRAD, g.input(0))])
    }),
    onnx: Some("Gelu"),
    sparse: Sparse::KeepsZero,
    // SciPy's own error grows further down; the kernel tests measure the tail against mpmath.
    probe: Probe::over(-1.0..4.0)
        .against("lambda x: x * scipy.special.ndtr(x)")
        .ulp(6),
    ..ACTIVATION
};

/// Gradient of gelu by the error function.
pub static GELU_ERF_GRAD: OpDef = OpDef {
    name: "gelu_erf_grad",
    doc: "Gradient of gelu by the error function: dy (Phi(x) + x phi(x)).",
    cpu: Cpu::Map(&map::GELU_ERF_GRAD),
    grad: Grad::Rule(Keep::INPUTS, |g| g.elementwise(&[&|| g.dy(0).binary(&GELU_ERF_GRAD, g.input(1)), &|| { let x = g.input(1); let z = x.square()?; let density = z.scale(-0.5)?.exp()?.scale(ROOT_TWO_PI)?; g.dy(0).mul(g.input(0))?.mul(&density.mul(&z.neg()?.shift(2.0)?)?) }])),
    params: &[Param::array("dy"), Param::array("x")],
    probe: Probe::over(-0.5..2.0).against("lambda dy, x: dy * (scipy.special.ndtr(x) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi))").ulp(6),
    ..GRADIENT
};

/// Gaussian error linear unit, tanh approximation.
pub static GELU_TANH: OpDef = OpDef {
    name: "gelu_tanh",
    doc: "x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) of every element: gelu with tanh for the error function.",
    cpu: Cpu::Map(&map::GELU_TANH),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.elementwise(&[&|| g.dy(0).binary(&GELU_TANH_GRAD, g.input(0))])
    }),
    sparse: Sparse::KeepsZero,
    probe: Probe::STANDARD
        .against("lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))")
        .ulp(6),
    ..ACTIVATION
};

/// Gradient of gelu by tanh.
pub static GELU_TANH_GRAD: OpDef = OpDef {
    name: "gelu_tanh_grad",
    doc: "Gradient of gelu by tanh: dy times the slope at x.",
    cpu: Cpu::Map(&map::GELU_TANH_GRAD),
    grad: Grad::Rule(Keep::INPUTS, |g| g.elementwise(&[&|| g.dy(0).binary(&GELU_TANH_GRAD, g.input(1)), &|| g.dy(0).mul(g.input(0))?.mul(&gelu_tanh_curvature(g.input(1))?)])),
    params: &[Param::array("dy"), Param::array("x")],
    probe: Probe::over(-0.5..2.0).against("lambda dy, x: dy * (lambda s, a: s + x * s * (1 - s) * (a + 3 * 0.044715 * a * x * x))(1 / (1 + np.exp(-np.sqrt(8 / np.pi) * (x + 0.044715 * x**3))), np.sqrt(8 / np.pi))").ulp(6),
    ..GRADIENT
};

/// Sigmoid linear unit.
pub static SILU: OpDef = OpDef {
    name: "silu",
    doc: "x / (1 + exp(-x)) of every element; also called swish.",
    cpu: Cpu::Map(&map::SILU),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.elementwise(&[&|| g.dy(0).binary(&SILU_GRAD, g.input(0))])
    }),
    sparse: Sparse::KeepsZero,
    probe: Probe::STANDARD.against("lambda x: x / (1 + np.exp(-x))"),
    ..ACTIVATION
};

/// Gradient of silu.
pub static SILU_GRAD: OpDef = OpDef {
    name: "silu_grad",
    doc: "Gradient of silu: dy times the slope at x.",
    cpu: Cpu::Map(&map::SILU_GRAD),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.elementwise(&[&|| g.dy(0).binary(&SILU_GRAD, g.input(1)), &|| {
            let s = g.input(1).unary(&SIGMOID)?;
            let tilt = s.scale(-2.0)?.shift(1.0)?.mul(g.input(1))?.shift(2.0)?;
            g.dy(0)
                .mul(g.input(0))?
                .mul(&tilt)?
                .binary(&SIGMOID_GRAD, &s)
        }])
    }),
    params: &[Param::array("dy"), Param::array("x")],
    probe: Probe::over(-0.5..2.0)
        .against("lambda dy, x: dy * (lambda s: s * (1 + x * (1 - s)))(1 / (1 + np.exp(-x)))")
        .ulp(4),
    ..GRADIENT
};

/// Mish.
pub static MISH: OpDef = OpDef {
    name: "mish",
    doc: "x tanh(softplus(x)) of every element.\n\nSource: Misra, Mish: A Self Regularized Non-Monotonic Activation Function, 2019.",
    cpu: Cpu::Map(&map::MISH),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.slopes(&[&|| {
            let x = g.input(0);
            let t = x.unary(&SOFTPLUS)?.tanh()?;
            let bend = t.square()?.neg()?.shift(1.0)?;
            t.add(&x.unary(&SIGMOID)?.mul(x)?.mul(&bend)?)
        }])
    }),
    onnx: Some("Mish"),
    sparse: Sparse::KeepsZero,
    probe: Probe::STANDARD
        .against("lambda x: x * np.tanh(np.logaddexp(0, x))")
        .ulp(4),
    ..ACTIVATION
};

/// Exponential linear unit.
pub static ELU: OpDef = OpDef {
    name: "elu",
    form: Form::Out,
    doc: "Every element above 0; alpha (exp(x) - 1) below.\n\nSource: Clevert, Unterthiner and Hochreiter, Exponential Linear Units, 2015.",
    cpu: Cpu::Map(&map::ELU),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.elementwise(&[&|| fused(&ELU_GRAD, g.dy(0), g.input(0), g.float("alpha"))])
    }),
    sparse: Sparse::KeepsZero,
    params: &[Param::array("x"), Param::float("alpha", 1.0)],
    probe: Probe::STANDARD.against("lambda x: np.where(x > 0, x, np.expm1(x))"),
    ..ACTIVATION
};

/// Gradient of elu.
pub static ELU_GRAD: OpDef = OpDef {
    name: "elu_grad",
    form: Form::Out,
    doc: "Gradient of elu: dy above 0, dy alpha exp(x) below.",
    cpu: Cpu::Map(&map::ELU_GRAD),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.elementwise(&[
            &|| fused(&ELU_GRAD, g.dy(0), g.input(1), g.float("alpha")),
            &|| {
                let x = g.input(1);
                let grown = fused(&ELU_GRAD, &g.dy(0).mul(g.input(0))?, x, g.float("alpha"))?;
                choose(
                    &x.with_scalar(&GREATER, 0.0)?,
                    &Array::weak_scalar(Scalar::F64(0.0))?,
                    &grown,
                )
            },
        ])
    }),
    params: &[
        Param::array("dy"),
        Param::array("x"),
        Param::float("alpha", 1.0),
    ],
    probe: Probe::STANDARD.against("lambda dy, x: np.where(x > 0, dy, dy * np.exp(x))"),
    ..GRADIENT
};

/// Scaled exponential linear unit.
pub static SELU: OpDef = OpDef {
    name: "selu",
    doc: "1.0507 x above 0, 1.0507 1.67326 (exp(x) - 1) below, of every element.\n\nSource: Klambauer et al., Self-Normalizing Neural Networks, 2017.",
    cpu: Cpu::Map(&map::SELU),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.elementwise(&[&|| {
            fused(
                &ELU_GRAD,
                &g.dy(0).scale(SELU_SCALE)?,
                g.input(0),
                SELU_ALPHA,
            )
        }])
    }),
    onnx: Some("Selu"),
    sparse: Sparse::KeepsZero,
    probe: Probe::STANDARD.against(
        "lambda x: 1.0507009873554804934 * np.where(x > 0, x, 1.6732632423543772848 * np.expm1(x))",
    ),
    ..ACTIVATION
};

/// Leaky rectified linear unit.
pub static LEAKY: OpDef = OpDef {
    name: "leaky",
    form: Form::Out,
    doc: "Every element above 0, `slope` times it below.",
    cpu: Cpu::Map(&map::LEAKY_RELU),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.elementwise(&[&|| fused(&LEAKY_GRAD, g.dy(0), g.input(0), g.float("slope"))])
    }),
    sparse: Sparse::KeepsZero,
    params: &[Param::array("x"), Param::float("slope", 0.25)],
    probe: Probe::STANDARD
        .against("lambda x: np.where(x > 0, x, np.asarray(0.25, x.dtype) * x)")
        .ulp(1),
    ..ACTIVATION
};

/// Gradient of leaky.
pub static LEAKY_GRAD: OpDef = OpDef {
    name: "leaky_grad",
    form: Form::Out,
    doc: "Gradient of leaky: dy above 0, slope dy below.",
    cpu: Cpu::Map(&map::LEAKY_RELU_GRAD),
    grad: Grad::Rule(Keep::inputs(2), |g| {
        let mut grads =
            g.elementwise(&[&|| fused(&LEAKY_GRAD, g.dy(0), g.input(1), g.float("slope"))])?;
        grads.push(None);
        Ok(grads)
    }),
    params: &[
        Param::array("dy"),
        Param::array("x"),
        Param::float("slope", 0.25),
    ],
    probe: Probe::STANDARD
        .against("lambda dy, x: np.where(x > 0, dy, np.asarray(0.25, dy.dtype) * dy)")
        .ulp(1),
    ..GRADIENT
};

/// Piecewise linear approximation of the logistic function.
pub static HARD_SIGMOID: OpDef = OpDef {
    name: "hard_sigmoid",
    surface: &[Surface::Npx("hard_sigmoid")],
    form: Form::Out,
    doc: "alpha x + beta, clipped to [0, 1], of every element.",
    about: &[("alpha", "The slope."), ("beta", "The value at 0.")],
    example: "
        >>> npx.hard_sigmoid(np.array([-3.0, 0.0, 1.0]))
        array([0. , 0.5, 0.7])
    ",
    cpu: Cpu::Map(&map::HARD_SIGMOID),
    grad: Grad::Rule(Keep::OUTPUTS, |g| {
        g.elementwise(&[&|| {
            let y = g.output(0);
            let inside = y
                .with_scalar(&GREATER, 0.0)?
                .binary(&LOGICAL_AND, &y.with_scalar(&LESS, 1.0)?)?;
            g.dy(0)
                .scale(g.float("alpha"))?
                .mul(&inside.astype(g.dy(0).dtype())?)
        }])
    }),
    params: &[
        Param::array("x"),
        Param::float("alpha", 0.2),
        Param::float("beta", 0.5),
    ],
    probe: Probe::over(-2.0..2.0)
        .against("lambda x: np.clip(0.2 * x + 0.5, 0, 1)")
        .ulp(4),
    ..ACTIVATION
};

/// Piecewise quadratic approximation of swish.
pub static HARD_SWISH: OpDef = OpDef {
    name: "hard_swish",
    doc: "x times (x + 3) / 6 clipped to [0, 1], of every element.\n\nSource: Howard et al., Searching for MobileNetV3, 2019.",
    cpu: Cpu::Map(&map::HARD_SWISH),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.slopes(&[&|| {
            let x = g.input(0);
            let one = Array::weak_scalar(Scalar::F64(1.0))?;
            let rising = x.with_scalar(&GREATER, -3.0)?.astype(x.dtype())?;
            choose(
                &x.with_scalar(&LESS, 3.0)?,
                &x.scale(1.0 / 3.0)?.shift(0.5)?.mul(&rising)?,
                &one,
            )
        }])
    }),
    onnx: Some("HardSwish"),
    sparse: Sparse::KeepsZero,
    probe: Probe::over(-4.0..4.0)
        .against("lambda x: x * np.clip((x + 3) / 6, 0, 1)")
        .ulp(4),
    ..ACTIVATION
};
