//! The inverse Gaussian distribution.

use mxnet_tensor::DType;

use super::parameter::SamplerContext;
use crate::args::{Attrs, Param};
use crate::context::CompositeContext;
use crate::elementwise::arithmetic::SQUARE;
use crate::elementwise::comparison::LESS;
use crate::elementwise::explog::{EXP, SQRT};
use crate::elementwise::select::choose;
use crate::elementwise::special::ERFC;
use crate::error::Result;
use crate::invoke::invoke1;
use crate::opdef::{Cost, Cpu, Form, Grad, Keep, OpDef, Probe, Rng, Surface};
use crate::random::continuous::{DEVICE, DISTRIBUTION, DTYPE, SIZE};
use crate::{Array, Outputs, cpu};

/// First passage of a Brownian motion with drift.
pub static WALD: OpDef = OpDef {
    name: "wald",
    surface: &[Surface::NpRandom("wald")],
    params: &[
        Param::array("mean"),
        Param::array("scale"),
        SIZE,
        DTYPE,
        DEVICE,
    ],
    doc: "Samples of the inverse Gaussian distribution of mean `mean` and scale `scale`, numbers or arrays that broadcast. Differentiable with respect to both.\n\n\
          Source: Michael, Schucany and Haas, 1976, computed in float64; gradient: implicit differentiation of the distribution function.",
    about: &[("mean", "Mean, above 0."), ("scale", "Scale, above 0.")],
    example: "
        >>> np.random.seed(1)
        >>> round(float(np.random.wald(2.0, 3.0, size=100000).mean()), 1)
        2.0
    ",
    cpu: Cpu::Composite(wald),
    form: Form::ParamsOnly,
    ..DISTRIBUTION
};

fn wald(context: &CompositeContext) -> Result<Outputs> {
    let dtype = context.samples()?.dtype;
    let mean = context.checked(0, 1.0, "mean", "above 0")?;
    let scale = context.checked(1, 1.0, "scale", "above 0")?;
    let samples = context.samples_as(DType::F64)?;
    let parameters = [samples.operand(&mean)?, samples.operand(&scale)?];
    // Which of two roots is taken depends on the parameters, so the gradient of these steps would be wrong. [`WALD_PATH`] has the right one.
    let [mean, scale] = parameters.each_ref().map(Array::detach);
    let y = samples
        .draw("normal", 0.0, 1.0)?
        .unary(&SQUARE)?
        .mul(&mean)?;
    let root = y.mul(&scale)?.scale(4.0)?.add(&y.unary(&SQUARE)?)?;
    let root = root.unary(&SQRT)?;
    // The smaller root of a quadratic, mean (1 + (y - root) / (2 scale)), rearranged to avoid cancellation; the other root is mean^2 / x.
    let x = mean.mul(&scale.scale(2.0)?)?;
    let x = x.div(&scale.scale(2.0)?.add(&y)?.add(&root)?)?;
    let share = mean.div(&mean.add(&x)?)?;
    let first = samples.draw("uniform", 0.0, 1.0)?.binary(&LESS, &share)?;
    let other = mean.unary(&SQUARE)?.div(&x)?;
    let x = choose(&first, &x, &other)?;
    let [mean, scale] = parameters.each_ref().map(|p| p.broadcast_to(x.shape()));
    let x = invoke1(&WALD_PATH, &[&x, &mean?, &scale?], &Attrs::none())?;
    context.done(x.astype(dtype)?)
}

/// Inverse Gaussian samples as differentiable functions of their parameters.
pub static WALD_PATH: OpDef = OpDef {
    name: "wald_path",
    params: &[
        Param::array("sample"),
        Param::array("mean"),
        Param::array("scale"),
    ],
    doc: "`sample` unchanged. Its gradient is the derivative of inverse Gaussian samples with respect to `mean` and `scale`, of the same shape, at a \
        constant value of the distribution function.",
    infer: |context| context.same_as(0),
    cpu: Cpu::Kernel(|context| cpu::copy(context.input(0), context.output(0), context.threads)),
    grad: Grad::Rule(
        Keep {
            inputs: 0b110,
            outputs: 1,
        },
        |g| {
            let (x, mean, scale) = (g.output(0), g.input(1), g.input(2));
            // Mills' ratio at sqrt(scale / x) (x / mean + 1), times sqrt(x^3 / scale). Implicit differentiation: -dF/dmean / density is 2 scale /
            // mean^2 times this.
            let length = x.square()?.mul(x)?.div(scale)?.unary(&SQRT)?;
            let at = scale.div(x)?.unary(&SQRT)?.mul(&x.div(mean)?.shift(1.0)?)?;
            let part = length.mul(&mills(&at)?)?.div(mean)?.scale(2.0)?;
            g.slopes(&[&|| g.zeros(0), &|| part.mul(scale)?.div(mean), &|| {
                x.div(scale)?.sub(&part)
            }])
        },
    ),
    rng: Rng::No,
    cost: Cost::PerKiB(100),
    probe: Probe::calls(&["f((2, 3)), f((2, 3)), f((2, 3))"]).within(0.5..2.0),
    ..OpDef::DEFAULT
};

/// Mills' ratio of the normal distribution, (1 - F) / density, for non-negative numbers: from `erfc` up to 30, beyond that from the first terms
/// of the asymptotic series (DLMF 7.12.1); the next term is less than 2e-12.
fn mills(x: &Array) -> Result<Array> {
    let border = Array::constant(mxnet_tensor::Scalar::F64(30.0), DType::F64)?;
    let is_near = x.binary(&LESS, &border)?;
    // The branch that is not chosen must stay finite, or its gradient would be NaN.
    let near = choose(&is_near, x, &border)?;
    let far = choose(&is_near, &border, x)?;
    let growth = near.square()?.scale(0.5)?.unary(&EXP)?;
    let below = near.scale(std::f64::consts::FRAC_1_SQRT_2)?.unary(&ERFC)?;
    let near = growth
        .mul(&below)?
        .scale((std::f64::consts::PI / 2.0).sqrt())?;
    let z = far.square()?.reciprocal()?;
    // 1 - z + 3 z^2 - 15 z^3 by Horner's rule.
    let sum = z
        .scale(-15.0)?
        .shift(3.0)?
        .mul(&z)?
        .shift(-1.0)?
        .mul(&z)?
        .shift(1.0)?;
    choose(&is_near, &near, &sum.div(&far)?)
}
