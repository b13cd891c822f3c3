//! Optimizer updates: one call updates the weights of a whole network, in place.
//!
//! Each optimizer has one kernel, that of its `fused_*` operator. Numbers that change from step to step (rates, decays, counts of updates, the factor
//! of the gradients) are arrays, so a traced step reads them as inputs. The public `*_update` functions take numbers and are compositions.
#![allow(unsafe_code)]

mod fused;

use mxnet_kernels::update::{self as kernel, Buffer, MAX_STATES, Rule, Step, Weight};
use mxnet_tensor::{DType, Device, Scalar, Tensor};
use smallvec::SmallVec;

use crate::args::{Attrs, Default, Param, ParamKind, Value};
use crate::context::{CompositeCx, InferCx, KernelCx};
use crate::cpu;
use crate::error::{Error, Result, Tuple};
use crate::invoke::{invoke_with, invoke1};
use crate::launch::elem;
use crate::nn::operand::{self, Staged};
use crate::opdef::{Cpu, Grad, Inferred, Onnx, OpDef, Probe, Surface};
use crate::{Array, Outputs, shape};

pub use fused::*;

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
    doc: "One step of gradient descent, in place: with `g = clip(rescale_grad * grad) + wd * weight`, `weight -= lr * g`; with `moms`, `mom = \
          momentum * mom - lr * g` and `weight += mom`. `lrs` and `wds` (0 by default) have a number for each weight; `clip_gradient` bounds the \
          absolute value of every element.",
    example: "
        >>> weight, grad = np.array([1.0, 2.0]), np.array([0.5, -0.5])
        >>> npx.sgd_update([weight], [grad], lrs=[0.1])
        >>> weight
        array([0.95, 2.05])
    ",
    cpu: Cpu::Composite(|cx| {
        let momentum = cx.float("momentum");
        let n = cx.floats("lrs").len();
        // `moms` may be left out.
        let num_lists = if n > 0 && cx.inputs.len() == 2 * n {
            2
        } else {
            3
        };
        if num_lists == 2 && momentum != 0.0 {
            let problem = format!("`momentum` is {momentum}, but there are no `moms`");
            return Err(cx.value_error(problem));
        }
        compose(cx, &FUSED_SGD, num_lists, 1.0, &["momentum"])
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
    cpu: Cpu::Composite(|cx| compose(cx, &FUSED_NAG, 3, 1.0, &["momentum"])),
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
    cpu: Cpu::Composite(|cx| compose(cx, &FUSED_ADAM, 4, 1.0, &["beta1", "beta2", "epsilon"])),
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
    cpu: Cpu::Composite(|cx| {
        let numbers = ["beta1", "beta2", "epsilon"];
        compose(cx, &FUSED_ADAMW, 4, cx.float("eta"), &numbers)
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
    cpu: Cpu::Composite(|cx| compose(cx, &FUSED_RMSPROP, 3, 1.0, &["rho", "epsilon"])),
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
    cpu: Cpu::Composite(|cx| compose(cx, &FUSED_ADAGRAD, 3, 1.0, &["epsilon"])),
    probe: Probe::calls(&["[f((3,))], [f((3,))], [np.zeros((3,))], [0.1], [0.01]"]),
    ..UPDATE
};

/// Calls a fused operator with the arguments of a public one: `num_lists` lists of arrays, rates and decays, and the attributes `numbers`.
/// Both rates and decays are multiplied by `eta`.
fn compose(
    cx: &CompositeCx,
    op: &'static OpDef,
    num_lists: usize,
    eta: f64,
    numbers: &[&str],
) -> Result<Outputs> {
    let (rates, decays) = (cx.floats("lrs"), cx.floats("wds"));
    let n = cx.inputs.len() / num_lists;
    if cx.inputs.len() != n * num_lists
        || rates.len() != n
        || !(decays.is_empty() || decays.len() == n)
    {
        return Err(cx.value_error(format!(
            "{num_lists} lists of equal length are needed, with a number in `lrs` (and `wds`, if given) for each weight; found {} arrays, {} and {} numbers",
            cx.inputs.len(),
            rates.len(),
            decays.len()
        )));
    }
    let Some(weight) = cx.inputs.first().copied().flatten() else {
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
    let rescale = Array::constant(Scalar::F64(cx.float("rescale_grad")), DType::F64)?;
    let rescale = on_device(rescale, weight.device())?;
    let mut inputs: SmallVec<[Option<&Array>; 16]> = SmallVec::from_slice(cx.inputs);
    // Absent states and master copies, then the numbers; counts are absent.
    let num_arrays = op.array_params().count();
    let fused_lists = num_fused_lists(op);
    inputs.resize(fused_lists * n, None);
    inputs.extend([Some(&lrs), Some(&wds), Some(&rescale)]);
    inputs.resize(fused_lists * n + num_arrays - fused_lists, None);
    let attributes = op.params.iter().filter(|param| param.is_attribute());
    let attrs: Attrs = attributes
        .map(|param| match param.name {
            name if name == CLIP.name || numbers.contains(&name) => cx.get(name).clone(),
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
fn infer(cx: &InferCx) -> Result<Inferred> {
    let lists = num_fused_lists(cx.op);
    let singles = cx.op.array_params().count() - lists;
    let n = cx.inputs.len().saturating_sub(singles) / lists;
    if cx.inputs.len() != n * lists + singles {
        return Err(cx.value_error(format!(
            "{lists} lists of equal length and {singles} arrays of numbers are needed; found {} arrays",
            cx.inputs.len()
        )));
    }
    for i in 0..n {
        check_weight(cx, n, lists, i)?;
    }
    for (j, param) in cx.op.array_params().skip(lists).enumerate() {
        let Some(numbers) = cx.opt(n * lists + j) else {
            if param.default == Default::None {
                continue;
            }
            return Err(cx.value_error(format!("`{}` is missing", param.name)));
        };
        if numbers.dtype().is_complex() {
            let problem = format!(
                "`{}` is {}, needs real numbers",
                param.name,
                numbers.dtype().name()
            );
            return Err(cx.dtype_error(problem));
        }
        if !(numbers.shape().is_empty() || numbers.shape() == [n]) {
            let problem = format!(
                "`{}` has shape {}, needs () or ({n},), a number for each weight",
                param.name,
                Tuple(numbers.shape())
            );
            return Err(Error::shape(cx.op.name, problem)
                .with_operands(|| cx.facts_of(|k| k == n * lists + j)));
        }
    }
    cx.many([])
}

/// Checks weight `i` of `n` and what belongs to it.
fn check_weight(cx: &InferCx, n: usize, lists: usize, i: usize) -> Result<()> {
    let facts = || cx.facts_of(|k| k < n * lists && k % n == i);
    let wrong_dtype = |problem: String| Err(Error::dtype(cx.op.name, problem).with_operands(facts));
    let name = |k: usize| cx.op.array_params().nth(k).map_or("", |param| param.name);
    let (mut num_states, mut last_state) = (0, 0);
    for (k, param) in cx.op.array_params().take(lists).enumerate() {
        let Some(x) = cx.opt(k * n + i) else {
            if param.nullable {
                continue;
            }
            return Err(cx.value_error(format!("`{}[{i}]` is missing", param.name)));
        };
        let dtype = x.dtype();
        if x.shape() != cx.shape(i) {
            let what = match k {
                1 => "gradient",
                _ if k == lists - 1 => "master copy",
                _ => "state",
            };
            let problem = format!(
                "a {what} has shape {}, its weight {}",
                Tuple(x.shape()),
                Tuple(cx.shape(i))
            );
            return Err(Error::shape(cx.op.name, problem).with_operands(facts));
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
                let is_half = matches!(cx.dtype_of(i), DType::F16 | DType::BF16);
                if dtype != DType::F32 || !is_half {
                    return wrong_dtype(format!(
                        "`{}[{i}]` is {} and its weight {}, needs a float32 copy of a half-precision weight",
                        name(k),
                        dtype.name(),
                        cx.dtype_of(i).name()
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
        return Err(Error::value(cx.op.name, problem).with_operands(facts));
    }
    Ok(())
}

/// The arguments of a fused operator, as its kernel reads them.
struct Arguments<'a> {
    cx: &'a KernelCx<'a>,
    n: usize,
    lists: usize,
}

impl<'a> Arguments<'a> {
    /// Entry `i` of list `k`.
    fn entry(&self, k: usize, i: usize) -> Option<&'a Tensor> {
        self.cx.opt(k * self.n + i)
    }

    /// The arrays that are written for weight `i`.
    fn written(&self, i: usize) -> impl Iterator<Item = &'a Tensor> {
        let written = (0..self.lists).filter(|&k| k != 1);
        written.filter_map(move |k| self.entry(k, i))
    }

    /// The numbers in array `j` after the lists, one for each weight; empty if it is absent.
    fn numbers(&self, j: usize) -> Result<Vec<f64>> {
        let Some(x) = self.cx.opt(self.lists * self.n + j) else {
            return Ok(Vec::new());
        };
        let numbers = cpu::read_dense::<f64>(&operand::dense(x, DType::F64, self.cx.threads)?);
        Ok(match numbers[..] {
            [number] => vec![number; self.n],
            _ => numbers,
        })
    }

    /// Whether an array that is written shares memory with any other.
    fn share_memory(&self) -> bool {
        let mut extents = Vec::with_capacity(self.cx.inputs.len());
        for (position, x) in self.cx.inputs.iter().enumerate() {
            if let Some((start, end)) = x.and_then(cpu::extent) {
                let k = position / self.n.max(1);
                extents.push((start, end, k != 1 && k < self.lists));
            }
        }
        extents.sort_unstable();
        let (mut read_end, mut written_end) = (0, 0);
        for (start, end, is_written) in extents {
            if start < written_end || is_written && start < read_end {
                return true;
            }
            let latest = if is_written {
                &mut written_end
            } else {
                &mut read_end
            };
            *latest = end.max(*latest);
        }
        false
    }
}

/// The kernel of the fused operators. `rule` returns the update rule for a weight with the given number of states, at most `max_states`.
fn update(cx: &KernelCx, max_states: usize, rule: &dyn Fn(usize) -> Rule) -> Result<()> {
    let lists = max_states + 3;
    let singles = cx.op.array_params().count() - lists;
    let n = (cx.inputs.len() - singles) / lists;
    let arguments = Arguments { cx, n, lists };
    let [rates, decays, rescale, counts] = [0, 1, 2, 3].map(|j| arguments.numbers(j));
    let (rates, decays, rescale) = (rates?, decays?, rescale?);
    // The last array of numbers is there for rules with a bias correction only.
    let counts = counts?;
    let clip = cx.opt_float("clip_gradient");
    let has_clip_weights = cx
        .op
        .params
        .iter()
        .any(|param| param.name == "clip_weights");
    let clip_weight = has_clip_weights
        .then(|| cx.opt_float("clip_weights"))
        .flatten();
    let step = |i: usize| {
        let num_states = (0..max_states).filter(|k| arguments.entry(2 + k, i).is_some());
        let rule = rule(num_states.count());
        let correction = counts
            .get(i)
            .map_or(1.0, |&count| rule.bias_correction(count));
        Step {
            rule,
            rate: rates[i] * correction,
            decay: decays[i],
            rescale: rescale[i],
            clip,
            clip_weight,
        }
    };
    if !arguments.share_memory() {
        return update_range(&arguments, 0..n, &step);
    }
    for i in 0..n {
        let written: SmallVec<[&Tensor; 5]> = arguments.written(i).collect();
        for (k, x) in written.iter().enumerate() {
            if written[..k].iter().any(|y| cpu::overlaps(x, y)) {
                let problem = format!("weight {i} and its states share memory");
                return Err(Error::value(cx.op.name, problem));
            }
        }
    }
    // Updates one weight after another: a weight that occurs twice is updated twice, and a gradient may share memory with an earlier weight.
    (0..n).try_for_each(|i| update_range(&arguments, i..i + 1, &step))
}

/// Updates some of the weights, which share memory with nothing but their gradients.
fn update_range(
    arguments: &Arguments,
    range: std::ops::Range<usize>,
    step: &dyn Fn(usize) -> Step,
) -> Result<()> {
    let (cx, lists) = (arguments.cx, arguments.lists);
    let mut staged = Vec::new();
    // Copies of gradients that are not dense, or that share memory with an output. They live until the kernel is done.
    let mut copies = Vec::new();
    // Dense elements to be written: the array's own, or a buffer that is copied back in the end.
    let mut written = |x: &Tensor| -> Result<Buffer> {
        let buffer = Buffer {
            ptr: x.data_ptr(),
            elem: elem(x.dtype()),
        };
        if x.layout().is_contiguous() {
            return Ok(buffer);
        }
        let stage = Staged::new(x, x.dtype())?;
        cpu::copy(x, stage.tensor(), cx.threads)?;
        let buffer = Buffer {
            ptr: stage.ptr(),
            ..buffer
        };
        staged.push(stage);
        Ok(buffer)
    };
    let mut weights = Vec::with_capacity(range.len());
    for i in range {
        let (Some(weight), Some(grad)) = (arguments.entry(0, i), arguments.entry(1, i)) else {
            return Err(Error::internal(
                cx.op.name,
                "a weight or a gradient is absent",
            ));
        };
        let is_dense_float = grad.dtype().is_float() && grad.layout().is_contiguous();
        let mut grad_buffer = Buffer {
            ptr: grad.data_ptr(),
            elem: elem(grad.dtype()),
        };
        if !is_dense_float || arguments.written(i).any(|x| cpu::overlaps(x, grad)) {
            let dtype = match grad.dtype() {
                dtype if dtype.is_float() => dtype,
                _ => DType::F64,
            };
            let copy = Tensor::empty(grad.shape(), dtype, grad.device())?;
            cpu::copy(grad, &copy, cx.threads)?;
            grad_buffer = Buffer {
                ptr: copy.data_ptr(),
                elem: elem(dtype),
            };
            copies.push(copy);
        }
        let mut states = [None; MAX_STATES];
        for (k, state) in states.iter_mut().enumerate().take(lists - 3) {
            *state = arguments.entry(2 + k, i).map(&mut written).transpose()?;
        }
        weights.push(Weight {
            step: step(i),
            n: weight.len(),
            weight: written(weight)?,
            master: arguments
                .entry(lists - 1, i)
                .map(&mut written)
                .transpose()?,
            grad: grad_buffer,
            states,
        });
    }
    // SAFETY: 1. all buffers are dense, of the types given and of their weight's length (inference checked), and live until the end of this
    // function. 2. every rule has as many states as were counted for it. 3. the engine granted writing all of them but the gradients. 4. what is
    // written overlaps nothing: the caller compared weights and states, and gradients were copied where they overlap.
    unsafe { kernel::update(cx.threads, &weights) };
    staged
        .into_iter()
        .try_for_each(|stage| stage.finish(cx.threads))
}
