//! The kernel of the fused optimizer operators: collects the buffers of all weights and calls the update loop once.
#![allow(unsafe_code)]

use mxnet_kernels::update::{self as kernel, Buffer, MAX_STATES, Rule, Step, Weight};
use mxnet_tensor::{DType, Tensor};
use smallvec::SmallVec;

use crate::context::KernelContext;
use crate::cpu;
use crate::error::{Error, Result};
use crate::launch::elem;
use crate::nn::operand::{self, Staged};

/// The arguments of a fused operator, as its kernel reads them.
struct Arguments<'a> {
    context: &'a KernelContext<'a>,
    n: usize,
    lists: usize,
}

impl<'a> Arguments<'a> {
    /// Entry `i` of list `k`.
    fn entry(&self, k: usize, i: usize) -> Option<&'a Tensor> {
        self.context.opt(k * self.n + i)
    }

    /// The arrays that are written for weight `i`.
    fn written(&self, i: usize) -> impl Iterator<Item = &'a Tensor> {
        let written = (0..self.lists).filter(|&k| k != 1);
        written.filter_map(move |k| self.entry(k, i))
    }

    /// The numbers in array `j` after the lists, one for each weight; empty if it is absent.
    fn numbers(&self, j: usize) -> Result<Vec<f64>> {
        let Some(x) = self.context.opt(self.lists * self.n + j) else {
            return Ok(Vec::new());
        };
        let numbers = cpu::read_dense::<f64>(&operand::dense(x, DType::F64, self.context.threads)?);
        Ok(match numbers[..] {
            [number] => vec![number; self.n],
            _ => numbers,
        })
    }

    /// Whether an array that is written shares memory with any other.
    fn share_memory(&self) -> bool {
        let mut extents = Vec::with_capacity(self.context.inputs.len());
        for (position, x) in self.context.inputs.iter().enumerate() {
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
pub(super) fn update(
    context: &KernelContext,
    max_states: usize,
    rule: &dyn Fn(usize) -> Rule,
) -> Result<()> {
    let lists = max_states + 3;
    let singles = context.op.array_params().count() - lists;
    let n = (context.inputs.len() - singles) / lists;
    let arguments = Arguments { context, n, lists };
    let [rates, decays, rescale, counts] = [0, 1, 2, 3].map(|j| arguments.numbers(j));
    let (rates, decays, rescale) = (rates?, decays?, rescale?);
    // The last array of numbers is there for rules with a bias correction only.
    let counts = counts?;
    let clip = context.opt_float("clip_gradient");
    let has_clip_weights = context
        .op
        .params
        .iter()
        .any(|param| param.name == "clip_weights");
    let clip_weight = has_clip_weights
        .then(|| context.opt_float("clip_weights"))
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
                return Err(Error::value(context.op.name, problem));
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
    let (context, lists) = (arguments.context, arguments.lists);
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
        cpu::copy(x, stage.tensor(), context.threads)?;
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
                context.op.name,
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
            cpu::copy(grad, &copy, context.threads)?;
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
    unsafe { kernel::update(context.threads, &weights) };
    staged
        .into_iter()
        .try_for_each(|stage| stage.finish(context.threads))
}
