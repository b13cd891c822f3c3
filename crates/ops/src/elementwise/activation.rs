//! Activation functions chosen by name.

use mxnet_tensor::Dims;

use crate::Array;
use crate::args::{Param, Value};
use crate::context::CompositeContext;
use crate::elementwise::arithmetic::MULTIPLY;
use crate::elementwise::comparison::GREATER;
use crate::elementwise::network::{
    ELU, GELU_ERF, GELU_TANH, LEAKY, LOG_SIGMOID, MISH, RELU, SELU, SIGMOID, SILU, SOFTPLUS,
    SOFTSIGN,
};
use crate::elementwise::select::choose;
use crate::elementwise::trig::TANH;
use crate::error::Result;
use crate::invoke::invoke1;
use crate::opdef::{Cpu, OpDef, Probe, Surface};
use crate::random::Samples;

pub(crate) static OPS: &[&OpDef] = &[&ACTIVATION, &LEAKY_RELU, &GELU];

/// A named activation.
pub static ACTIVATION: OpDef = OpDef {
    name: "activation",
    surface: &[Surface::Npx("activation")],
    params: &[
        Param::array("data"),
        Param::choice(
            "act_type",
            &[
                "relu",
                "sigmoid",
                "log_sigmoid",
                "mish",
                "tanh",
                "softrelu",
                "softsign",
                "silu",
            ],
            "relu",
        ),
    ],
    doc: "The activation function called `act_type`, element by element; `softrelu` is log(1 + exp(x)).",
    about: &[("act_type", "The function.")],
    returns: &[("ndarray", "Of the shape of `data`.")],
    example: "
        >>> npx.activation(np.array([-1.0, 0.0, 2.0]), 'relu')
        array([0., 0., 2.])
        >>> npx.activation(np.array([-1.0, 0.0, 2.0]), act_type='softsign')
        array([-0.5      ,  0.       ,  0.6666667])
    ",
    cpu: Cpu::Composite(|context| {
        let op = match context.str("act_type") {
            "sigmoid" => &SIGMOID,
            "log_sigmoid" => &LOG_SIGMOID,
            "mish" => &MISH,
            "tanh" => &TANH,
            "softrelu" => &SOFTPLUS,
            "softsign" => &SOFTSIGN,
            "silu" => &SILU,
            _ => &RELU,
        };
        context.done(context.input(0).unary(op)?)
    }),
    probe: Probe::calls(&[
        "f((2, 3))",
        "f((2, 3)), 'sigmoid'",
        "f((2, 3)), 'log_sigmoid'",
        "f((2, 3)), 'mish'",
        "f((2, 3)), 'tanh'",
        "f((2, 3)), 'softrelu'",
        "f((2, 3)), act_type='softsign'",
        "f((2, 3)), act_type='silu'",
        "f(())",
        "f((0, 2)), 'sigmoid'",
    ])
    .against(
        "lambda x, act_type='relu': {'relu': lambda: np.maximum(x, 0), 'sigmoid': lambda: 1 / (1 + np.exp(-x)), \
         'log_sigmoid': lambda: -np.logaddexp(0, -x), 'mish': lambda: x * np.tanh(np.logaddexp(0, x)), 'tanh': lambda: np.tanh(x), \
         'softrelu': lambda: np.logaddexp(0, x), 'softsign': lambda: x / (1 + abs(x)), 'silu': lambda: x / (1 + np.exp(-x))}[act_type]()",
    ),
    ..OpDef::COMPOSITE
};

/// The leaky family.
pub static LEAKY_RELU: OpDef = OpDef {
    name: "leaky_relu",
    surface: &[Surface::Npx("leaky_relu")],
    params: &[
        Param::array("data"),
        Param::optional_array("gamma"),
        Param::choice(
            "act_type",
            &["leaky", "prelu", "elu", "selu", "gelu", "gelu_erf",                 "gelu_tanh",
                "rrelu",
            ],
            "leaky",
        ),
        Param::float("slope", 0.25),
        Param::float("lower_bound", 0.125),
        Param::float("upper_bound", 0.334),
    ],
    doc: "Activation function that `act_type` selects. The first three and `rrelu` return x above 0; below 0 they return: `leaky` `slope * x`; \
        `prelu` `gamma * x` with one gamma, or one for each channel (axis 1); `elu` `slope * (exp(x) - 1)`; `rrelu` x times a random slope between \
        `lower_bound` and `upper_bound` while training, else times their mean. The others are `selu`, `gelu` and `gelu_erf` (with the error \
        function) and `gelu_tanh`.",
    about: &[
        ("gamma", "Slopes of `prelu`: one, or one for each channel."),
        ("act_type", "The function."),
        ("slope", "Slope below 0 of `leaky`, factor of `elu`."),
        ("lower_bound", "Smallest slope of `rrelu`."),
        ("upper_bound", "Largest slope of `rrelu`."),
    ],
    returns: &[("ndarray", "Of the shape of `data`.")],
    raises: &[
        ("ValueError", "If `gamma` is missing for 'prelu', or does not fit the channels."),
    ],
    example: "
        >>> npx.leaky_relu(np.array([-2.0, 3.0]), slope=0.1)
        array([-0.2,  3. ])
        >>> npx.leaky_relu(np.array([-2.0, 3.0]), act_type='elu', slope=1.0)
        array([-0.86466473,  3.        ])
    ",
    cpu: Cpu::Composite(|context| {
        let x = context.input(0);
        let slope = || [Value::Float(context.float("slope"))].into_iter().collect();
        context.done(match context.str("act_type") {
            "prelu" => prelu(context)?,
            "rrelu" => rrelu(context)?,
            "elu" => invoke1(&ELU, &[x], &slope())?,
            "selu" => x.unary(&SELU)?,
            "gelu" | "gelu_erf" => x.unary(&GELU_ERF)?,
            "gelu_tanh" => x.unary(&GELU_TANH)?,
            _ => invoke1(&LEAKY, &[x], &slope())?,
        })
    }),
    probe: Probe::calls(&[
        "f((2, 3))",
        "f((2, 3)), None, 'leaky', 0.5",
        "f((2, 3, 4)), f((3,)), 'prelu'",
        "f((2, 3)), f((1,)), 'prelu'",
        "f((4,)), f((1,)), act_type='prelu'",
        "f((2, 3)), act_type='elu', slope=0.5",
        "f((2, 3)), act_type='selu'",
        "f((2, 3)), act_type='gelu'",
        "f((2, 3)), act_type='gelu_erf'",
        "f((2, 3)), act_type='rrelu', lower_bound=0.25, upper_bound=0.5",
        "f((2, 3)), act_type='gelu_tanh'",
        "f(())",
    ])
    .against(
        "lambda x, gamma=None, act_type='leaky', slope=0.25, lower_bound=0.125, upper_bound=0.334: {'leaky': lambda: np.where(x > 0, x, slope * x), \
         'prelu': lambda: np.where(x > 0, x, x * (gamma.reshape((-1,) + (1,) * (x.ndim - 2)) if gamma.size > 1 else gamma)), \
         'elu': lambda: np.where(x > 0, x, slope * np.expm1(x)), \
         'rrelu': lambda: np.where(x > 0, x, x * (lower_bound + upper_bound) / 2), \
         'selu': lambda: 1.0507009873554804934 * np.where(x > 0, x, 1.6732632423543772848 * np.expm1(x)), \
         'gelu': lambda: x * scipy.special.ndtr(x), 'gelu_erf': lambda: x * scipy.special.ndtr(x), \
         'gelu_tanh': lambda: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))}[act_type]()",
    ),
    ..OpDef::COMPOSITE
};

fn rrelu(context: &CompositeContext) -> Result<Array> {
    let (x, low, high) = (
        context.input(0),
        context.float("lower_bound"),
        context.float("upper_bound"),
    );
    if !context.training {
        let mean = [Value::Float((low + high) / 2.0)].into_iter().collect();
        return invoke1(&LEAKY, &[x], &mean);
    }
    let samples = Samples {
        shape: Dims::from_slice(x.shape()),
        dtype: x.dtype(),
        device: x.device(),
    };
    let slopes = samples.draw("uniform", low, high)?;
    choose(&x.with_scalar(&GREATER, 0.0)?, x, &x.mul(&slopes)?)
}

fn prelu(context: &CompositeContext) -> Result<Array> {
    let x = context.input(0);
    let Some(gamma) = context.opt(1) else {
        return Err(context.value_error("`act_type` 'prelu' needs `gamma`"));
    };
    let gamma = if gamma.len() == 1 {
        gamma.reshape(&[])?
    } else {
        let channels = x.shape().get(1).copied();
        if gamma.ndim() != 1 || channels != Some(gamma.len()) {
            let problem = match channels {
                Some(n) => format!("`gamma` must have 1 element or {n}, one for each channel"),
                None => "`gamma` must have 1 element for data without a channel axis".to_owned(),
            };
            return Err(context.shape_error(problem));
        }
        // (c,) -> (c, 1, ..., 1), so that it broadcasts along axis 1.
        let mut shape = Dims::from_elem(1, x.ndim() - 1);
        shape[0] = gamma.len();
        gamma.reshape(&shape)?
    };
    choose(
        &x.with_scalar(&GREATER, 0.0)?,
        x,
        &x.binary(&MULTIPLY, &gamma)?,
    )
}

/// Gaussian error linear unit.
pub static GELU: OpDef = OpDef {
    name: "gelu",
    surface: &[Surface::Npx("gelu")],
    params: &[
        Param::array("data"),
        Param::bool("approximate", false),
    ],
    doc: "x times the standard normal distribution function at x, for every element; with `approximate` its approximation with tanh.\n\n\
          Source: Hendrycks and Gimpel, Gaussian Error Linear Units, 2016.",
    about: &[("approximate", "Whether to use tanh instead of the error function.")],
    returns: &[("ndarray", "Of the shape of `data`.")],
    example: "
        >>> npx.gelu(np.array([-1.0, 0.0, 1.0]))
        array([-0.15865526,  0.        ,  0.8413447 ])
    ",
    cpu: Cpu::Composite(|context| {
        context.done(context.input(0).unary(if context.bool("approximate") {
            &GELU_TANH
        } else {
            &GELU_ERF
        })?)
    }),
    probe: Probe::calls(&["f((2, 3))", "f((2, 3)), True", "f(())"]).against(
        "lambda x, approximate=False: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) if approximate \
         else x * scipy.special.ndtr(x)",
    ),
    ..OpDef::COMPOSITE
};
