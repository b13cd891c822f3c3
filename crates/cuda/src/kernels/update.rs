//! Optimizer steps of many weights in few launches (`update.cuh`). Rates and decays stay on the device.

use mxnet_core::context::KernelContext;
use mxnet_core::cpu;
use mxnet_core::device_kernels::register as add;
use mxnet_core::{Error, ParamKind, Result};
use mxnet_tensor::{DType, DeviceKind, Tensor};
use smallvec::SmallVec;

use super::operand::{self, Operand, WALK, bytes, source};
use crate::launch::{Arg, Grid, launch};
use crate::text::MATH;

const UPDATE: &str = include_str!("../text/update.cuh");

/// Maximum number of weights per launch.
const MAX_WEIGHTS: usize = 24;

/// Numbers of the rules in the kernel source.
const SGD: i64 = 0;
const MOMENTUM: i64 = 1;
const NAG: i64 = 2;
const ADAM: i64 = 3;
const ADAMW: i64 = 4;
const RMSPROP: i64 = 5;
const RMSPROP_CENTERED: i64 = 6;
const ADAGRAD: i64 = 7;

pub(super) fn register(kind: DeviceKind) -> Result<()> {
    add("fused_sgd", kind, 0, |context| {
        update(
            context,
            1,
            &|states| if states == 0 { SGD } else { MOMENTUM },
            [context.float("momentum"), 0.0, 0.0],
        )
    })?;
    add("fused_nag", kind, 0, |context| {
        update(
            context,
            1,
            &|states| if states == 0 { SGD } else { NAG },
            [context.float("momentum"), 0.0, 0.0],
        )
    })?;
    add("fused_adam", kind, 0, |context| {
        update(
            context,
            2,
            &|_| ADAM,
            ["beta1", "beta2", "epsilon"].map(|name| context.float(name)),
        )
    })?;
    add("fused_adamw", kind, 0, |context| {
        update(
            context,
            2,
            &|_| ADAMW,
            ["beta1", "beta2", "epsilon"].map(|name| context.float(name)),
        )
    })?;
    add("fused_rmsprop", kind, 0, |context| {
        let rule = |states| {
            if states == 1 {
                RMSPROP
            } else {
                RMSPROP_CENTERED
            }
        };
        update(
            context,
            3,
            &rule,
            ["rho", "momentum", "epsilon"].map(|name| context.float(name)),
        )
    })?;
    add("fused_adagrad", kind, 0, |context| {
        update(
            context,
            1,
            &|_| ADAGRAD,
            [0.0, 0.0, context.float("epsilon")],
        )
    })
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Buffer {
    at: u64,
    dtype: i64,
}

impl Buffer {
    fn of(x: &Operand) -> Buffer {
        let dtype = match x.dtype {
            DType::F16 => 0,
            DType::BF16 => 1,
            DType::F32 => 2,
            _ => 3,
        };
        Buffer { at: x.ptr, dtype }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Weight {
    weight: Buffer,
    master: Buffer,
    grad: Buffer,
    states: [Buffer; 3],
    len: i64,
    number: i64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Rates {
    at: u64,
    is_single: i64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Step {
    rule: i64,
    num_weights: i64,
    has_clip: i64,
    has_clip_weights: i64,
    first: f64,
    second: f64,
    epsilon: f64,
    clip: f64,
    clip_weights: f64,
    rates: Rates,
    decays: Rates,
    rescale: Rates,
    counts: Rates,
}

/// The array arguments of a call, which are lists with one entry per weight.
struct Lists<'a, 'b> {
    context: &'b KernelContext<'a>,
    n: usize,
    /// Number of lists: weights, gradients, states, master copies.
    lists: usize,
}

impl<'a> Lists<'a, '_> {
    fn entry(&self, k: usize, i: usize) -> Option<&'a Tensor> {
        self.context.opt(k * self.n + i)
    }

    /// The arrays that the update of weight `i` writes.
    fn written(&self, i: usize) -> impl Iterator<Item = &'a Tensor> {
        (0..self.lists)
            .filter(|&k| k != 1)
            .filter_map(move |k| self.entry(k, i))
    }

    /// Whether an array that is written shares memory with any other.
    fn share_memory(&self) -> bool {
        let mut extents = Vec::with_capacity(self.context.inputs.len());
        for (position, x) in self.context.inputs[..self.lists * self.n]
            .iter()
            .enumerate()
        {
            if let Some((start, end)) = x.and_then(cpu::extent) {
                extents.push((start, end, position / self.n != 1));
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

    /// The numbers in array argument `j` after the lists.
    fn numbers(&self, j: usize) -> Result<(Option<Operand<'a>>, Rates)> {
        let i = self.lists * self.n + j;
        let x = Operand::dense_or_none(self.context, i, DType::F64)?;
        let rates = Rates {
            at: x.as_ref().map_or(0, |x| x.ptr),
            is_single: i64::from(x.as_ref().is_some_and(|x| x.len() == 1)),
        };
        Ok((x, rates))
    }
}

/// One step. `rule` returns the rule's number for the number of states of a weight, at most `max_states`; `numbers` are two factors and epsilon.
fn update(
    context: &KernelContext,
    max_states: usize,
    rule: &dyn Fn(usize) -> i64,
    numbers: [f64; 3],
) -> Result<()> {
    let lists = max_states + 3;
    let singles = (context.op.array_params())
        .filter(|param| param.kind != ParamKind::Arrays)
        .count();
    let n = (context.inputs.len() - singles) / lists;
    let given = Lists { context, n, lists };
    let (_rates, rates) = given.numbers(0)?;
    let (_decays, decays) = given.numbers(1)?;
    let (_rescale, rescale) = given.numbers(2)?;
    let (_counts, counts) = given.numbers(3)?;
    let has_clip_weights = context
        .op
        .params
        .iter()
        .any(|param| param.name == "clip_weights");
    let clip_weights = has_clip_weights
        .then(|| context.opt_float("clip_weights"))
        .flatten();
    let clip = context.opt_float("clip_gradient");
    let step = |rule: i64, num_weights: usize| Step {
        rule,
        num_weights: num_weights as i64,
        has_clip: i64::from(clip.is_some()),
        has_clip_weights: i64::from(clip_weights.is_some()),
        first: numbers[0],
        second: numbers[1],
        epsilon: numbers[2],
        clip: clip.unwrap_or(0.0),
        clip_weights: clip_weights.unwrap_or(0.0),
        rates,
        decays,
        rescale,
        counts,
    };
    let num_states = |i: usize| {
        (0..max_states)
            .filter(|k| given.entry(2 + k, i).is_some())
            .count()
    };
    let is_f64 = |i: usize| given.entry(0, i).is_some_and(|x| x.dtype() == DType::F64);
    if !given.share_memory() {
        // Weights with equal rule and type are updated together.
        let mut left: Vec<usize> = (0..n).collect();
        while let Some(&first) = left.first() {
            let belongs = |i: &usize| {
                rule(num_states(*i)) == rule(num_states(first)) && is_f64(*i) == is_f64(first)
            };
            let group: Vec<usize> = left
                .iter()
                .copied()
                .filter(belongs)
                .take(MAX_WEIGHTS)
                .collect();
            left.retain(|i| !group.contains(i));
            update_group(
                &given,
                &group,
                &step(rule(num_states(first)), group.len()),
                is_f64(first),
            )?;
        }
        return Ok(());
    }
    for i in 0..n {
        let written: SmallVec<[&Tensor; 5]> = given.written(i).collect();
        for (k, x) in written.iter().enumerate() {
            if written[..k].iter().any(|y| cpu::overlaps(x, y)) {
                return Err(Error::value(
                    context.op.name,
                    format!("weight {i} and its states share memory"),
                ));
            }
        }
    }
    // Sequentially: a weight that occurs twice is updated twice, and a gradient may share memory with an earlier weight.
    (0..n).try_for_each(|i| update_group(&given, &[i], &step(rule(num_states(i)), 1), is_f64(i)))
}

fn update_group(given: &Lists, group: &[usize], step: &Step, is_f64: bool) -> Result<()> {
    let context = given.context;
    let mut weights = [Weight::default(); MAX_WEIGHTS];
    // Temporary copies that the launch reads, and those that are copied back after it.
    let (mut read, mut staged) = (Vec::new(), Vec::new());
    let mut written = |x: &Tensor| -> Result<Buffer> {
        let own = Operand::of(x);
        if own.is_dense() {
            return Ok(Buffer::of(&own));
        }
        let stage = Operand::new(context, x.shape(), x.dtype())?;
        operand::copy(context, &own, &stage)?;
        let buffer = Buffer::of(&stage);
        staged.push((stage, own));
        Ok(buffer)
    };
    let mut longest = 0;
    for (weight, &i) in weights.iter_mut().zip(group) {
        let (Some(of), Some(grad)) = (given.entry(0, i), given.entry(1, i)) else {
            return Err(Error::internal(
                context.op.name,
                "a weight or a gradient is absent",
            ));
        };
        let dtype = if grad.dtype().is_float() {
            grad.dtype()
        } else {
            DType::F64
        };
        let own = Operand::of(grad);
        let own = if given.written(i).any(|x| cpu::overlaps(x, grad)) {
            let copy = Operand::new(context, grad.shape(), dtype)?;
            operand::copy(context, &own, &copy)?;
            copy
        } else {
            own.into_dense(context, dtype)?
        };
        weight.grad = Buffer::of(&own);
        read.push(own);
        weight.weight = written(of)?;
        for k in 0..given.lists - 3 {
            weight.states[k] = given
                .entry(2 + k, i)
                .map(&mut written)
                .transpose()?
                .unwrap_or_default();
        }
        weight.master = given
            .entry(given.lists - 1, i)
            .map(&mut written)
            .transpose()?
            .unwrap_or_default();
        weight.len = of.len() as i64;
        weight.number = i as i64;
        longest = longest.max(of.len());
    }
    if longest > 0 {
        let grid = Grid {
            blocks: [
                longest.div_ceil(1024).clamp(1, 4096) as u32,
                group.len() as u32,
                1,
            ],
            threads: [256, 1, 1],
            shared_bytes: 0,
        };
        let computed = if is_f64 { "f64" } else { "f32" };
        let args = [Arg::Bytes(bytes(step)), Arg::Bytes(bytes(&weights))];
        launch(context, &key(computed), || text(computed), grid, &args)?;
    }
    staged
        .iter()
        .try_for_each(|(stage, own)| operand::copy(context, stage, own))
}

fn key(computed: &str) -> String {
    format!("update:{computed}")
}

fn text(computed: &str) -> String {
    source(&[
        MATH,
        WALK,
        &format!("typedef {computed} R;\n#define MAX_WEIGHTS {MAX_WEIGHTS}"),
        UPDATE,
    ])
}

pub(super) fn texts(all: &mut Vec<(String, String)>) {
    for computed in ["f32", "f64"] {
        all.push((key(computed), text(computed)));
    }
}
