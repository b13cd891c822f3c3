//! Samplers by rejection, and the check of array parameters.
#![allow(unsafe_code)]

use mxnet_kernels::random::{Counts, Scale, fill_angles, fill_counts, fill_gamma};

use super::draw::{DRAW, dense, stream};
use crate::args::{Attrs, Param, ParamKind, Value};
use crate::batching::Batch;
use crate::context::KernelContext;
use crate::cpu;
use crate::elementwise::incomplete::GAMMA_SLOPE;
use crate::error::{Error, Result};
use crate::invoke::invoke1;
use crate::launch::elem;
use crate::opdef::{Cost, Cpu, Grad, Keep, OpDef, Probe, Rng};
use crate::types::Types;

/// Default fields for samplers by rejection.
const REJECT: OpDef = OpDef {
    rng: Rng::Blocks(|n| n),
    cost: Cost::PerKiB(4000),
    ..DRAW
};

/// Gamma samples.
pub static RANDOM_GAMMA: OpDef = OpDef {
    name: "random_gamma",
    params: &[
        Param::array("parameter"),
        Param::required("shape", ParamKind::Ints),
        Param::bool("log", false),
        Param::optional("dtype", ParamKind::DType),
        Param::optional("device", ParamKind::Device),
    ],
    doc: "Samples of the gamma distribution of scale 1 (with `log` their logarithms), differentiable with respect to the shape parameter, which is one number or has the \
          shape of the result. NaN where it is negative.\n\nSources: Marsaglia and Tsang, 2000; gradient: Figurnov, Mohamed and Mnih, 2018.",
    cpu: Cpu::Kernel(|context| {
        let out = context.output(0);
        let shapes = dense::<f64>(context, 0)?;
        let scale = scale(context);
        // SAFETY: 1. the output is dense and new. 2. there is one shape, or as many as elements (checked by `drawn`).
        unsafe {
            fill_gamma(
                context.threads,
                stream(context),
                scale,
                &shapes,
                elem(out.dtype()),
                out.len(),
                out.data_ptr(),
            )
        };
        Ok(())
    }),
    grad: Grad::Rule(
        Keep {
            inputs: 1,
            outputs: 1,
        },
        |g| {
            g.elementwise(&[&|| {
                let attrs: Attrs = [Value::Bool(g.bool("log"))].into_iter().collect();
                g.dy(0)
                    .mul(&invoke1(&GAMMA_SLOPE, &[g.input(0), g.output(0)], &attrs)?)
            }])
        },
    ),
    ..REJECT
};

fn scale(context: &KernelContext) -> Scale {
    if context.bool("log") {
        Scale::Log
    } else {
        Scale::Linear
    }
}

/// Samples of count distributions.
pub static RANDOM_COUNTS: OpDef = OpDef {
    name: "random_counts",
    params: &[
        Param::array("a"),
        Param::optional_array("b"),
        Param::optional_array("c"),
        Param::required("shape", ParamKind::Ints),
        Param::choice(
            "distribution",
            &[
                "poisson",
                "binomial",
                "negative_binomial",
                "hypergeometric",
                "zipf",
                "logseries",
            ],
            "poisson",
        ),
        Param::optional("dtype", ParamKind::DType),
        Param::optional("device", ParamKind::Device),
    ],
    doc: "Samples of `poisson` (mean), `binomial` (tries, probability), `negative_binomial` (successes, probability), `hypergeometric` (good, bad, sample), `zipf` (exponent) or \
          `logseries` (probability). Each parameter is one number or has the shape of the result, and is in range.\n\n\
          Sources: Hörmann's PTRS and BTRS, 1993; Stadlober's HRUA, 1990; Devroye, 1986; Kemp, 1981; Walker's tables, 1977.",
    cpu: Cpu::Kernel(|context| {
        let what = counts_of(context.str("distribution"));
        let given = (0..3).take_while(|&i| context.opt(i).is_some());
        let parameters = given
            .map(|i| dense::<f64>(context, i))
            .collect::<Result<Vec<_>>>()?;
        let parameters: Vec<&[f64]> = parameters.iter().map(Vec::as_slice).collect();
        if what == Counts::Hypergeometric {
            check_samples(&parameters)?;
        }
        let out = context.output(0);
        if out.is_empty() {
            return Ok(());
        }
        // SAFETY: 1. the output is dense and new. 2. each parameter has one element, or as many as the output (checked by `drawn`).
        unsafe {
            fill_counts(
                context.threads,
                stream(context),
                what,
                &parameters,
                elem(out.dtype()),
                out.len(),
                out.data_ptr(),
            )
        };
        Ok(())
    }),
    ..REJECT
};

/// The kernel's distribution called `name`.
fn counts_of(name: &str) -> Counts {
    match name {
        "binomial" => Counts::Binomial,
        "negative_binomial" => Counts::NegativeBinomial,
        "hypergeometric" => Counts::Hypergeometric,
        "zipf" => Counts::Zipf,
        "logseries" => Counts::LogSeries,
        _ => Counts::Poisson,
    }
}

/// An error if a hypergeometric sample is larger than its population.
fn check_samples(parameters: &[&[f64]]) -> Result<()> {
    if parameters.iter().any(|p| p.is_empty()) {
        return Ok(());
    }
    let n = parameters.iter().map(|p| p.len()).max().unwrap_or(0);
    let at = |p: usize, i: usize| parameters[p][i.min(parameters[p].len() - 1)];
    match (0..n).find(|&i| at(2, i) > at(0, i) + at(1, i)) {
        Some(i) => Err(Error::value(
            "hypergeometric",
            format!(
                "`nsample` must be at most `ngood` + `nbad`, found {} of {} and {} at element {i}",
                at(2, i),
                at(0, i),
                at(1, i)
            ),
        )),
        None => Ok(()),
    }
}

/// Von Mises samples around 0.
pub static RANDOM_ANGLES: OpDef = OpDef {
    name: "random_angles",
    params: &[
        Param::array("parameter"),
        Param::required("shape", ParamKind::Ints),
        Param::optional("dtype", ParamKind::DType),
        Param::optional("device", ParamKind::Device),
    ],
    doc: "Samples of the von Mises distribution around 0. Its concentration is one number or has the shape of the result.\n\nSource: Best and Fisher, 1979.",
    cpu: Cpu::Kernel(|context| {
        let out = context.output(0);
        let concentrations = dense::<f64>(context, 0)?;
        // SAFETY: 1. the output is dense and new. 2. there is one parameter, or as many as elements (checked by `drawn`).
        unsafe {
            fill_angles(
                context.threads,
                stream(context),
                &concentrations,
                elem(out.dtype()),
                out.len(),
                out.data_ptr(),
            )
        };
        Ok(())
    }),
    ..REJECT
};

/// The condition on a parameter in words, for the error message, and as a predicate.
type Rule = (&'static str, fn(f64) -> bool);

const RULES: [Rule; 9] = [
    ("at least 0", |x| x >= 0.0),
    // NumPy's bound: ten standard deviations below the largest int64.
    ("from 0 to 9.2233720064847708e18", |x| {
        (0.0..=9.223_372_006_484_771e18).contains(&x)
    }),
    ("above 0", |x| x > 0.0),
    ("above 1", |x| x > 1.0),
    ("in [0, 1]", |x| (0.0..=1.0).contains(&x)),
    ("in (0, 1]", |x| x > 0.0 && x <= 1.0),
    ("in [0, 1)", |x| (0.0..1.0).contains(&x)),
    ("a whole number of at least 0", |x| {
        x >= 0.0 && x.fract() == 0.0
    }),
    ("a whole number from 0 to 10**9", |x| {
        (0.0..=1e9).contains(&x) && x.fract() == 0.0
    }),
];

/// Whether `x` satisfies `rule`.
pub(super) fn holds(rule: &str, x: f64) -> bool {
    RULES.iter().any(|(name, ok)| *name == rule && ok(x))
}

/// An array parameter, after its values have been checked.
pub static CHECKED_PARAMETER: OpDef = OpDef {
    name: "checked_parameter",
    params: &[
        Param::array("x"),
        Param::required("rule", ParamKind::Str),
        Param::required("parameter", ParamKind::Str),
        Param::required("of", ParamKind::Str),
    ],
    doc: "The elements of `x`; raises ValueError, with the names of `parameter` and of the function `of`, if an element violates `rule`.",
    types: Types::First,
    infer: |context| context.same_as(0),
    cpu: Cpu::Kernel(|context| {
        let rule = context.str("rule");
        let ok = RULES.iter().find(|(name, _)| *name == rule);
        let x = dense::<f64>(context, 0)?;
        if let Some((_, ok)) = ok
            && let Some(at) = x.iter().position(|&x| !ok(x))
        {
            let (name, found) = (context.str("parameter"), x[at]);
            let problem = format!("`{name}` must be {rule}, found {found} at element {at}");
            // The error names the function that the user called.
            let of = crate::registry::find(context.str("of")).map_or(context.op.name, |op| op.name);
            return Err(Error::value(of, problem));
        }
        cpu::copy(context.input(0), context.output(0), context.threads)
    }),
    grad: Grad::Rule(Keep::NOTHING, |g| g.one(g.dy(0).clone())),
    rng: Rng::No,
    cost: Cost::PerKiB(300),
    probe: Probe::calls(&["f((2, 3)), 'above 0', 'x', 'normal'"]).within(0.5..2.0),
    batch: Batch::Leading(&[0]),
    ..DRAW
};
