//! Optimizer updates: one call updates the weights of a whole network, in place.
//!
//! Each optimizer has one kernel, that of its `fused_*` operator. Numbers that change from step to step (rates, decays, counts of updates, the factor
//! of the gradients) are arrays, so a traced step reads them as inputs. The public `*_update` functions take numbers and are compositions.
#![allow(unsafe_code)]

mod fused;
mod kernel;

use mxnet_tensor::{DType, Device, Scalar};
use smallvec::SmallVec;

use crate::args::{Attrs, Default, Param, ParamKind, Value};
use crate::context::{CompositeContext, InferContext};
use crate::error::{Error, Result, Tuple};
use crate::invoke::{invoke_with, invoke1};
use crate::opdef::{Cpu, Grad, Inferred, OpDef, Probe, Surface};
use crate::{Array, Outputs, shape};

pub use fused::*;
use kernel::update;

const WHY: &str = "it changes weights in place";

const WEIGHTS: Param = Param::arrays("weights");
const GRADS: Param = Param::arrays("grads");
const RATES: Param = Param::optional("lrs", ParamKind::Floats);
const DECAYS: Param = Param::optional("wds", ParamKind::Floats);
const RESCALE: Param = Param::float("rescale_grad", 1.0);
const CLIP: Param = Param::optional("clip_gradient", ParamKind::Float);

const UPDATE: OpDef = OpDef {
    about: &[
        ("weights", "The weights, changed in place."),
        ("grads", "Their gradients."),
        ("moms", "Momenta, changed in place."),
        ("means", "Running means of the gradients, changed in place."),
        (
            "variances",
            "Running means of the squares, changed in place.",
        ),
        ("histories", "Sums of squares, changed in place."),
        ("lrs", "Learning rates, one for each weight."),
        ("wds", "Weight decays, one for each weight; 0 for None."),
        ("momentum", "Factor of the previous step."),
        ("beta1", "Decay of the running means."),
        ("beta2", "Decay of the running means of the squares."),
        ("rho", "Decay of the running means of the squares."),
        ("epsilon", "Added to the root."),
        ("eta", "Factor of the whole step."),
        ("rescale_grad", "Factor of the gradients."),
        (
            "clip_gradient",
            "Bound of every element of the rescaled gradients.",
        ),
    ],
    returns: &[("None", "The arrays change in place.")],
    raises: &[(
        "ValueError",
        "If lists differ in length, shapes do not fit, or an array to be updated is read-only. No array is changed then.",
    )],
    grad: Grad::Stop(WHY),
    ..OpDef::COMPOSITE
};

/// Gradient descent, with momentum if there are buffers for it.
pub static SGD_UPDATE: OpDef = OpDef {
    name: "sgd_update",
    surface: &[Surface::Npx("sgd_update")],
    params: &[
        WEIGHTS,
        GRADS,
        Param::arrays("moms").or(Default::None),
        RATES,
        DECAYS,
        Param::float("momentum", 0.0),
        RESCALE,
        CLIP,
    ],
    doc: "One step of gradient descent, in place: with `g = clip(rescale_grad * grad) + wd * weight`, `weight -= lr * g`; with `moms`, `mom = \
          momentum * mom - lr * g` and `weight += mom`. `lrs` and `wds` (0 by default) have a number for each weight; `clip_gradient` bounds the \
          absolute value of every element.",
    example: "
        >>> weight, grad = np.array([1.0, 2.0]), np.array([0.5, -0.5])
        >>> npx.sgd_update([weight], [grad], lrs=[0.1])
        >>> weight
        array([0.95, 2.05])
    ",
    cpu: Cpu::Composite(|context| {
        let momentum = context.float("momentum");
        let n = context.floats("lrs").len();
        // `moms` may be left out.
        let num_lists = if n > 0 && context.inputs.len() == 2 * n {
            2
        } else {
            3
        };
        if num_lists == 2 && momentum != 0.0 {
            let problem = format!("`momentum` is {momentum}, but there are no `moms`");
            return Err(context.value_error(problem));
        }
        compose(context, &FUSED_SGD, num_lists, 1.0, &["momentum"])
    }),
    probe: Probe::calls(&[
        "[f((3, 4)), f((2,))], [f((3, 4)), f((2,))], None, [0.1, 0.2], [0.0, 0.01]",
        "[f((3,))], [f((3,))], [f((3,))], [0.1], momentum=0.9, clip_gradient=0.5",
    ]),
    ..UPDATE
};

/// Nesterov's accelerated gradient.
pub static NAG_UPDATE: OpDef = OpDef {
    name: "nag_update",
    surface: &[Surface::Npx("nag_update")],
    params: &[
        WEIGHTS,
        GRADS,
        Param::arrays("moms"),
        RATES,
        DECAYS,
        Param::float("momentum", 0.9),
        RESCALE,
        CLIP,
    ],
    doc: "One step of Nesterov's accelerated gradient, in place: with `g` as in `sgd_update`, `mom = momentum * mom - lr * g` and `weight += \
        momentum * mom - lr * g`.\n\nSource: Sutskever et al., On the importance of initialization and momentum in deep learning, 2013.",
    example: "
        >>> weight, grad, mom = np.array([1.0, 2.0]), np.array([0.5, -0.5]), np.zeros(2)
        >>> npx.nag_update([weight], [grad], [mom], lrs=[0.1])
        >>> weight
        array([0.905, 2.095])
    ",
    cpu: Cpu::Composite(|context| compose(context, &FUSED_NAG, 3, 1.0, &["momentum"])),
    probe: Probe::calls(&["[f((3,))], [f((3,))], [f((3,))], [0.1], [0.01]"]),
    ..UPDATE
};

const ADAM: OpDef = OpDef {
    params: &[
        WEIGHTS,
        GRADS,
        Param::arrays("means"),
        Param::arrays("variances"),
        RATES,
        DECAYS,
        Param::float("beta1", 0.9),
        Param::float("beta2", 0.999),
        Param::float("epsilon", 1e-8),
        RESCALE,
        CLIP,
    ],
    ..UPDATE
};

/// Adam.
pub static ADAM_UPDATE: OpDef = OpDef {
    name: "adam_update",
    surface: &[Surface::Npx("adam_update")],
    doc: "One step of Adam, in place: with `g` as in `sgd_update`, `mean = beta1 * mean + (1 - beta1) * g`, `variance = beta2 * variance + (1 - beta2) * g^2`, \
          `weight -= lr * mean / (sqrt(variance) + epsilon)`. `lrs` include the bias correction.\n\nSource: Kingma and Ba, 2015.",
    example: "
        >>> weight, grad = np.array([1.0, 2.0]), np.array([0.5, -0.5])
        >>> mean, variance = np.zeros(2), np.zeros(2)
        >>> npx.adam_update([weight], [grad], [mean], [variance], lrs=[0.1])
        >>> weight
        array([0.68377244, 2.3162277 ])
    ",
    cpu: Cpu::Composite(|context| {
        compose(context, &FUSED_ADAM, 4, 1.0, &["beta1", "beta2", "epsilon"])
    }),
    probe: Probe::calls(&[
        "[f((3,))], [f((3,))], [np.zeros((3,))], [np.zeros((3,))], [0.1], [0.01]",
    ]),
    ..ADAM
};

/// Adam with decoupled weight decay.
pub static ADAMW_UPDATE: OpDef = OpDef {
    name: "adamw_update",
    surface: &[Surface::Npx("adamw_update")],
    params: &[
        WEIGHTS,
        GRADS,
        Param::arrays("means"),
        Param::arrays("variances"),
        RATES,
        DECAYS,
        Param::float("beta1", 0.9),
        Param::float("beta2", 0.999),
        Param::float("epsilon", 1e-8),
        Param::float("eta", 1.0),
        RESCALE,
        CLIP,
    ],
    doc: "One step of AdamW, in place: as `adam_update` but without decay in the gradient, and `weight -= eta * (lr * mean / (sqrt(variance) + epsilon) + wd * \
          weight)`.\n\nSource: Loshchilov and Hutter, 2019.",
    example: "
        >>> weight, grad = np.array([1.0, 2.0]), np.array([0.5, -0.5])
        >>> mean, variance = np.zeros(2), np.zeros(2)
        >>> npx.adamw_update([weight], [grad], [mean], [variance], lrs=[0.1], wds=[0.01])
        >>> weight
        array([0.67377245, 2.2962275 ])
    ",
    cpu: Cpu::Composite(|context| {
        let numbers = ["beta1", "beta2", "epsilon"];
        compose(context, &FUSED_ADAMW, 4, context.float("eta"), &numbers)
    }),
    probe: Probe::calls(&[
        "[f((3,))], [f((3,))], [np.zeros((3,))], [np.zeros((3,))], [0.1], [0.01]",
    ]),
    ..UPDATE
};

/// RMSProp.
pub static RMSPROP_UPDATE: OpDef = OpDef {
    name: "rmsprop_update",
    surface: &[Surface::Npx("rmsprop_update")],
    params: &[
        WEIGHTS,
        GRADS,
        Param::arrays("variances"),
        RATES,
        DECAYS,
        Param::float("rho", 0.95),
        Param::float("epsilon", 1e-8),
        RESCALE,
        CLIP,
    ],
    doc: "One step of RMSProp, in place: with `g` as in `sgd_update`, `variance = rho * variance + (1 - rho) * g^2` and `weight -= lr * g / \
        (sqrt(variance) + epsilon)`.\n\nSource: Tieleman and Hinton, 2012 (lecture 6.5 of Neural Networks for Machine Learning).",
    example: "
        >>> weight, grad, variance = np.array([1.0, 2.0]), np.array([0.5, -0.5]), np.zeros(2)
        >>> npx.rmsprop_update([weight], [grad], [variance], lrs=[0.1])
        >>> weight
        array([0.5527864, 2.4472136])
    ",
    cpu: Cpu::Composite(|context| compose(context, &FUSED_RMSPROP, 3, 1.0, &["rho", "epsilon"])),
    probe: Probe::calls(&["[f((3,))], [f((3,))], [np.zeros((3,))], [0.1], [0.01]"]),
    ..UPDATE
};

/// AdaGrad.
pub static ADAGRAD_UPDATE: OpDef = OpDef {
    name: "adagrad_update",
    surface: &[Surface::Npx("adagrad_update")],
    params: &[
        WEIGHTS,
        GRADS,
        Param::arrays("histories"),
        RATES,
        DECAYS,
        Param::float("epsilon", 1e-7),
        RESCALE,
        CLIP,
    ],
    doc: "One step of AdaGrad, in place: with `g` as in `sgd_update`, `history += g^2` and `weight -= lr * g / (sqrt(history) + \
        epsilon)`.\n\nSource: Duchi, Hazan and Singer, 2011.",
    example: "
        >>> weight, grad, history = np.array([1.0, 2.0]), np.array([0.5, -0.5]), np.zeros(2)
        >>> npx.adagrad_update([weight], [grad], [history], lrs=[0.1])
        >>> weight
        array([0.90000004, 2.1       ])
    ",
    cpu: Cpu::Composite(|context| compose(context, &FUSED_ADAGRAD, 3, 1.0, &["epsilon"])),
    probe: Probe::calls(&["[f((3,))], [f((3,))], [np.zeros((3,))], [0.1], [0.01]"]),
    ..UPDATE
};

/// Calls a fused operator with the arguments of a public one: `num_lists` lists of arrays, rates and decays, and the attributes `numbers`.
/// Both rates and decays are multiplied by `eta`.
fn compose(
    context: &CompositeContext,
    op: &'static OpDef,
    num_lists: usize,
    eta: f64,
    numbers: &[&str],
) -> Result<Outputs> {
    let (rates, decays) = (context.floats("lrs"), context.floats("wds"));
    let n = context.inputs.len() / num_lists;
    if context.inputs.len() != n * num_lists
        || rates.len() != n
        || !(decays.is_empty() || decays.len() == n)
    {
        return Err(context.value_error(format!(
            "{num_lists} lists of equal length are needed, with a number in `lrs` (and `wds`, if given) for each weight; found {} arrays, {} and {} numbers",
            context.inputs.len(),
            rates.len(),
            decays.len()
        )));
    }
    let Some(weight) = context.inputs.first().copied().flatten() else {
        return Ok(Outputs::new());
    };
    let scaled: Vec<f64> = rates.iter().map(|rate| eta * rate).collect();
    let lrs = on_device(Array::from_slice(&scaled, &[n])?, weight.device())?;
    let scaled: Vec<f64> = decays.iter().map(|decay| eta * decay).collect();
    let wds = match decays {
        [] => Array::constant(Scalar::F64(0.0), DType::F64)?,
        _ => Array::from_slice(&scaled, &[n])?,
    };
    let wds = on_device(wds, weight.device())?;
    let rescale = Array::constant(Scalar::F64(context.float("rescale_grad")), DType::F64)?;
    let rescale = on_device(rescale, weight.device())?;
    let mut inputs: SmallVec<[Option<&Array>; 16]> = SmallVec::from_slice(context.inputs);
    // Absent states and master copies, then the numbers; counts are absent.
    let num_arrays = op.array_params().count();
    let fused_lists = num_fused_lists(op);
    inputs.resize(fused_lists * n, None);
    inputs.extend([Some(&lrs), Some(&wds), Some(&rescale)]);
    inputs.resize(fused_lists * n + num_arrays - fused_lists, None);
    let attributes = op.params.iter().filter(|param| param.is_attribute());
    let attrs: Attrs = attributes
        .map(|param| match param.name {
            name if name == CLIP.name || numbers.contains(&name) => context.get(name).clone(),
            _ => Value::from(param.default),
        })
        .collect();
    invoke_with(op, &inputs, &attrs)
}

/// The array itself, or a copy on another device.
fn on_device(x: Array, device: Device) -> Result<Array> {
    if x.device() == device {
        return Ok(x);
    }
    let attrs: Attrs = [Value::Device(device)].into_iter().collect();
    invoke1(&shape::TO_DEVICE, &[&x], &attrs)
}

/// Number of lists that a fused operator takes: weights, gradients, states, master copies.
fn num_fused_lists(op: &OpDef) -> usize {
    let is_list = |param: &&Param| param.kind == ParamKind::Arrays;
    op.array_params().filter(is_list).count()
}

/// Checks lists and numbers of a fused operator.
fn infer(context: &InferContext) -> Result<Inferred> {
    let lists = num_fused_lists(context.op);
    let singles = context.op.array_params().count() - lists;
    let n = context.inputs.len().saturating_sub(singles) / lists;
    if context.inputs.len() != n * lists + singles {
        return Err(context.value_error(format!(
            "{lists} lists of equal length and {singles} arrays of numbers are needed; found {} arrays",
            context.inputs.len()
        )));
    }
    for i in 0..n {
        check_weight(context, n, lists, i)?;
    }
    for (j, param) in context.op.array_params().skip(lists).enumerate() {
        let Some(numbers) = context.opt(n * lists + j) else {
            if param.default == Default::None {
                continue;
            }
            return Err(context.value_error(format!("`{}` is missing", param.name)));
        };
        if numbers.dtype().is_complex() {
            let problem = format!(
                "`{}` is {}, needs real numbers",
                param.name,
                numbers.dtype().name()
            );
            return Err(context.dtype_error(problem));
        }
        if !(numbers.shape().is_empty() || numbers.shape() == [n]) {
            let problem = format!(
                "`{}` has shape {}, needs () or ({n},), a number for each weight",
                param.name,
                Tuple(numbers.shape())
            );
            return Err(Error::shape(context.op.name, problem)
                .with_operands(|| context.facts_of(|k| k == n * lists + j)));
        }
    }
    context.many([])
}

/// Checks weight `i` of `n` and what belongs to it.
fn check_weight(context: &InferContext, n: usize, lists: usize, i: usize) -> Result<()> {
    let facts = || context.facts_of(|k| k < n * lists && k % n == i);
    let wrong_dtype =
        |problem: String| Err(Error::dtype(context.op.name, problem).with_operands(facts));
    let name = |k: usize| {
        context
            .op
            .array_params()
            .nth(k)
            .map_or("", |param| param.name)
    };
    let (mut num_states, mut last_state) = (0, 0);
    for (k, param) in context.op.array_params().take(lists).enumerate() {
        let Some(x) = context.opt(k * n + i) else {
            if param.nullable {
                continue;
            }
            return Err(context.value_error(format!("`{}[{i}]` is missing", param.name)));
        };
        let dtype = x.dtype();
        if x.shape() != context.shape(i) {
            let what = match k {
                1 => "gradient",
                _ if k == lists - 1 => "master copy",
                _ => "state",
            };
            let problem = format!(
                "a {what} has shape {}, its weight {}",
                Tuple(x.shape()),
                Tuple(context.shape(i))
            );
            return Err(Error::shape(context.op.name, problem).with_operands(facts));
        }
        match k {
            0 if !dtype.is_float() => {
                return wrong_dtype(format!(
                    "weights are {}, needs a real floating type",
                    dtype.name()
                ));
            }
            1 if dtype.is_complex() => {
                return wrong_dtype(format!(
                    "`grads[{i}]` is {}, needs real numbers",
                    dtype.name()
                ));
            }
            _ if k == lists - 1 => {
                let is_half = matches!(context.dtype_of(i), DType::F16 | DType::BF16);
                if dtype != DType::F32 || !is_half {
                    return wrong_dtype(format!(
                        "`{}[{i}]` is {} and its weight {}, needs a float32 copy of a half-precision weight",
                        name(k),
                        dtype.name(),
                        context.dtype_of(i).name()
                    ));
                }
            }
            0 | 1 => {}
            _ => {
                if !dtype.is_float() {
                    return wrong_dtype(format!(
                        "`{}[{i}]` is {}, needs a real floating type",
                        name(k),
                        dtype.name()
                    ));
                }
                (num_states, last_state) = (num_states + 1, k - 1);
            }
        }
    }
    // The states of a weight are a prefix of the list: there is no rule with a later state but without an earlier one.
    let all = lists - 3;
    if num_states != last_state || (num_states > 1 && num_states != all) {
        let problem = format!("weight {i} has {num_states} of {all} states");
        return Err(Error::value(context.op.name, problem).with_operands(facts));
    }
    Ok(())
}
