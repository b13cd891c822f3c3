//! Optimiser steps over lists of weights, in place. One kernel call a weight, so that the engine may run several at a time.
#![allow(unsafe_code)]

use mxnet_kernels::update::{self as kernel, Buffers, Rule, Step};
use mxnet_tensor::{DType, Tensor};
use smallvec::SmallVec;

use crate::args::{Attrs, Default, Param, ParamKind, Value};
use crate::cpu;
use crate::cx::{CallCx, KernelCx};
use crate::error::{Result, Tuple};
use crate::invoke::invoke_with;
use crate::launch::elem;
use crate::nn::operand::{self, Staged};
use crate::opdef::{Cost, Cpu, Cuda, Grad, Onnx, OpDef, Probe, Surface};
use crate::{Array, Outputs};

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
        ("lrs", "Rates, one a weight."),
        ("wds", "Decays, one a weight; 0 for None."),
        ("momentum", "Share of the momentum that stays."),
        ("beta1", "Share of the means that stays."),
        ("beta2", "Share of the variances that stays."),
        ("rho", "Share of the variances that stays."),
        ("epsilon", "Added to the root."),
        ("eta", "Factor of the whole step."),
        ("rescale_grad", "What gradients are multiplied by."),
        ("clip_gradient", "Bound of every element of the gradients."),
    ],
    returns: &[("None", "The arrays change in place.")],
    raises: &[(
        "ValueError",
        "If lists differ in length or shapes do not fit; nothing has changed then.",
    )],
    grad: Grad::Stop(WHY),
    onnx: Onnx::None,
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
    doc: "One step of gradient descent, in place: with `g = clip(rescale_grad * grad) + wd * weight`, `weight -= lr * g`; with `moms`, `mom = momentum * mom \
          - lr * g` and `weight += mom`. `lrs` and `wds` (0 where left out) have a number for each weight; `clip_gradient` bounds every element.",
    example: "
        >>> weight, grad = np.array([1.0, 2.0]), np.array([0.5, -0.5])
        >>> npx.sgd_update([weight], [grad], lrs=[0.1])
        >>> weight
        array([0.95, 2.05])
    ",
    cpu: Cpu::Composite(|cx| {
        let momentum = cx.float("momentum");
        let lists = cx.inputs.len() / cx.floats("lrs").len().max(1);
        if lists < 3 {
            if momentum != 0.0 {
                return Err(
                    cx.value_error(format!("`momentum` is {momentum}, but there are no `moms`"))
                );
            }
            return steps(cx, "sgd", 0, [0.0; 4]);
        }
        steps(cx, "momentum", 1, [momentum, 0.0, 0.0, 0.0])
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
    doc: "One step of Nesterov's accelerated gradient, in place: with `g` as in `sgd_update`, `mom = momentum * mom - lr * g` and `weight += momentum * mom \
          - lr * g`.",
    example: "
        >>> weight, grad, mom = np.array([1.0, 2.0]), np.array([0.5, -0.5]), np.zeros(2)
        >>> npx.nag_update([weight], [grad], [mom], lrs=[0.1])
        >>> weight
        array([0.905, 2.095])
    ",
    cpu: Cpu::Composite(|cx| steps(cx, "nag", 1, [cx.float("momentum"), 0.0, 0.0, 0.0])),
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
    cpu: Cpu::Composite(|cx| {
        steps(
            cx,
            "adam",
            2,
            [
                cx.float("beta1"),
                cx.float("beta2"),
                cx.float("epsilon"),
                0.0,
            ],
        )
    }),
    probe: Probe::calls(&[
        "[f((3,))], [f((3,))], [np.zeros((3,))], [np.zeros((3,))], [0.1], [0.01]",
    ]),
    ..ADAM
};

/// Adam with weight decay of its own.
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
    cpu: Cpu::Composite(|cx| {
        let numbers = [
            cx.float("beta1"),
            cx.float("beta2"),
            cx.float("epsilon"),
            cx.float("eta"),
        ];
        steps(cx, "adamw", 2, numbers)
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
    doc: "One step of RMSProp, in place: with `g` as in `sgd_update`, `variance = rho * variance + (1 - rho) * g^2` and `weight -= lr * g / (sqrt(variance) + \
          epsilon)`.",
    example: "
        >>> weight, grad, variance = np.array([1.0, 2.0]), np.array([0.5, -0.5]), np.zeros(2)
        >>> npx.rmsprop_update([weight], [grad], [variance], lrs=[0.1])
        >>> weight
        array([0.5527864, 2.4472136])
    ",
    cpu: Cpu::Composite(|cx| {
        steps(
            cx,
            "rmsprop",
            1,
            [cx.float("rho"), 0.0, cx.float("epsilon"), 0.0],
        )
    }),
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
    doc: "One step of AdaGrad, in place: with `g` as in `sgd_update`, `history += g^2` and `weight -= lr * g / (sqrt(history) + epsilon)`.",
    example: "
        >>> weight, grad, history = np.array([1.0, 2.0]), np.array([0.5, -0.5]), np.zeros(2)
        >>> npx.adagrad_update([weight], [grad], [history], lrs=[0.1])
        >>> weight
        array([0.90000004, 2.1       ])
    ",
    cpu: Cpu::Composite(|cx| steps(cx, "adagrad", 1, [0.0, 0.0, cx.float("epsilon"), 0.0])),
    probe: Probe::calls(&["[f((3,))], [f((3,))], [np.zeros((3,))], [0.1], [0.01]"]),
    ..UPDATE
};

/// The step of one weight, for all rules.
pub static UPDATE_STEP: OpDef = OpDef {
    name: "update_step",
    params: &[
        Param::array("weight"),
        Param::array("grad"),
        Param::optional_array("state1"),
        Param::optional_array("state2"),
        Param::choice(
            "rule",
            &[
                "sgd", "momentum", "nag", "adam", "adamw", "rmsprop", "adagrad",
            ],
            "sgd",
        ),
        Param::float("rate", 0.01),
        Param::float("decay", 0.0),
        Param::float("rescale", 1.0),
        Param::optional("clip", ParamKind::Float),
        Param::float("first", 0.0),
        Param::float("second", 0.0),
        Param::float("epsilon", 0.0),
        Param::float("eta", 1.0),
    ],
    doc: "One optimiser step of one weight, in place; `first` and `second` are the rule's decays (momentum, beta1, rho; beta2).",
    infer: |cx| {
        let weight = cx.input(0);
        if !weight.dtype().is_float() {
            return Err(cx.dtype_error(format!(
                "weights are {}, needs a real floating type",
                weight.dtype().name()
            )));
        }
        if weight.tensor().is_read_only() {
            return Err(cx.value_error("the weight is read-only"));
        }
        for (i, what) in [(1, "gradient"), (2, "state"), (3, "state")] {
            if let Some(x) = cx.opt(i).filter(|x| x.shape() != weight.shape()) {
                return Err(cx.shape_error(format!(
                    "a {what} has shape {}, its weight {}",
                    Tuple(x.shape()),
                    Tuple(weight.shape())
                )));
            }
        }
        cx.many([])
    },
    cpu: Cpu::Kernel(run),
    cuda: Cuda::None,
    grad: Grad::Stop(WHY),
    mutates: &[0, 2, 3],
    cost: Cost::PerKiB(60),
    probe: Probe::calls(&["f((3,)), f((3,)), None, None, 'sgd', 0.1"]),
    ..OpDef::DEFAULT
};

/// One call of [`UPDATE_STEP`] for each weight: lists of weights and gradients, then `states` lists.
fn steps(cx: &CallCx, rule: &'static str, states: usize, numbers: [f64; 4]) -> Result<Outputs> {
    let (rates, decays) = (cx.floats("lrs"), cx.floats("wds"));
    let lists = states + 2;
    let n = cx.inputs.len() / lists;
    if cx.inputs.len() != n * lists || rates.len() != n || !(decays.is_empty() || decays.len() == n)
    {
        return Err(cx.value_error(format!(
            "{lists} lists of equal length are needed, with a number in `lrs` (and `wds`, if given) for each weight; found {} arrays, {} and {} numbers",
            cx.inputs.len(),
            rates.len(),
            decays.len()
        )));
    }
    let list = |which: usize, i: usize| -> Option<&Array> {
        if which < lists {
            cx.opt(which * n + i)
        } else {
            None
        }
    };
    let mut calls: SmallVec<[Attrs; 4]> = SmallVec::new();
    for (i, &rate) in rates.iter().enumerate() {
        let mut attrs = Attrs::none();
        attrs.push(Value::Word(rule));
        attrs.push(Value::Float(rate));
        attrs.push(Value::Float(decays.get(i).copied().unwrap_or(0.0)));
        attrs.push(cx.get("rescale_grad").clone());
        attrs.push(cx.get("clip_gradient").clone());
        for number in numbers {
            attrs.push(Value::Float(number));
        }
        calls.push(attrs);
    }
    let inputs = |i: usize| [list(0, i), list(1, i), list(2, i), list(3, i)];
    // All are checked before the first is changed.
    for (i, attrs) in calls.iter().enumerate() {
        let inputs = inputs(i);
        let call = crate::Call {
            op: &UPDATE_STEP,
            inputs: &inputs,
            attrs,
            outs: &[],
            dtype: None,
        };
        (UPDATE_STEP.infer)(&call.cx()).map_err(|e| call.explain(e))?;
    }
    for (i, attrs) in calls.iter().enumerate() {
        invoke_with(&UPDATE_STEP, &inputs(i), attrs)?;
    }
    Ok(Outputs::new())
}

fn run(cx: &KernelCx) -> Result<()> {
    let weight = cx.input(0);
    let (first, second, epsilon) = (cx.float("first"), cx.float("second"), cx.float("epsilon"));
    let rule = match cx.str("rule") {
        "momentum" => Rule::Momentum { momentum: first },
        "nag" => Rule::Nag { momentum: first },
        "adam" => Rule::Adam {
            beta1: first,
            beta2: second,
            epsilon,
        },
        "adamw" => Rule::AdamW {
            beta1: first,
            beta2: second,
            epsilon,
            eta: cx.float("eta"),
        },
        "rmsprop" => Rule::RmsProp {
            rho: first,
            epsilon,
        },
        "adagrad" => Rule::AdaGrad { epsilon },
        _ => Rule::Sgd,
    };
    let step = Step {
        rule,
        rate: cx.float("rate"),
        decay: cx.float("decay"),
        rescale: cx.float("rescale"),
        clip: cx.opt_float("clip"),
    };
    let state_dtype = if weight.dtype() == DType::F64 {
        DType::F64
    } else {
        DType::F32
    };
    let gradient = cx.input(1);
    let gradient = if gradient.dtype().is_float() && !cpu::overlaps(weight, gradient) {
        operand::dense(gradient, gradient.dtype(), cx.threads)?
    } else {
        let apart = Tensor::empty(gradient.shape(), state_dtype, gradient.device())?;
        cpu::copy(gradient, &apart, cx.threads)?;
        apart
    };
    let stage = |x: &Tensor, dtype: DType| -> Result<Staged> {
        let staged = Staged::new(x, dtype)?;
        if staged.is_apart() {
            cpu::copy(x, staged.tensor(), cx.threads)?;
        }
        Ok(staged)
    };
    let target = stage(weight, weight.dtype())?;
    let states: [Option<Staged>; 2] = [
        cx.opt(2).map(|s| stage(s, state_dtype)).transpose()?,
        cx.opt(3).map(|s| stage(s, state_dtype)).transpose()?,
    ];
    let buffers = Buffers {
        n: weight.len(),
        weight: target.ptr(),
        weight_elem: elem(weight.dtype()),
        master: std::ptr::null_mut(),
        gradient: gradient.data_ptr(),
        gradient_elem: elem(gradient.dtype()),
        states: [0, 1].map(|i| states[i].as_ref().map_or(std::ptr::null_mut(), Staged::ptr)),
    };
    // SAFETY: 1. all buffers are dense, of the types given and of the weight's length (inference checked); the rule's states are there, for every
    // list operator passes as many as its rule has. 2. the engine granted writing weight and states; the gradient does not overlap the weight.
    unsafe { kernel::update(cx.threads, &step, &buffers) };
    for state in states.into_iter().flatten() {
        state.finish(cx.threads)?;
    }
    target.finish(cx.threads)
}
