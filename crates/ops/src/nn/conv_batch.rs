//! Convolutions under `vmap`: each example of the batch is itself a batch of samples.

use smallvec::SmallVec;

use crate::args::Value;
use crate::batching::BatchContext;
use crate::error::Result;
use crate::nn::conv::is_channels_last;
use crate::{Outputs, only};

/// A convolution of each example, or the gradient of its data. With a single weight, the samples of all examples form one batch.
pub(super) fn batched(context: &BatchContext) -> Result<Outputs> {
    if context.is_batched(1) || context.is_batched(2) {
        return batched_groups(context);
    }
    let Some(x) = context.front(0)? else {
        return Err(context.refused());
    };
    let n = x.shape()[0] * x.shape()[1];
    let rows = [&[n], &x.shape()[2..]].concat();
    let mut changes = Vec::new();
    if context.find("shape").is_some() {
        let shape = [&[n as i64], &context.ints("shape")[1..]].concat();
        changes.push(("shape", Value::from(&shape[..])));
    }
    let mut arrays = vec![Some(x.reshape(&rows)?)];
    for i in 1..context.num_inputs() {
        arrays.push(context.aligned(i, 0)?);
    }
    context.call(&arrays, &context.with(&changes))
}

/// As [`batched`] where the weights differ between examples, and for the gradient of the weight: the examples become groups of channels,
/// `size` arrays (n, c, ...) -> (n, size * c, ...).
pub(super) fn batched_groups(context: &BatchContext) -> Result<Outputs> {
    if is_channels_last(context, context.shape(0).len() - 2)? {
        return Err(context.refused());
    }
    let size = context.size as i64;
    let mut changes = vec![("num_group", Value::Int(context.int("num_group") * size))];
    if let Some(Value::Int(filters)) = context.find("num_filter") {
        changes.push(("num_filter", Value::Int(filters * size)));
    }
    let gives_weight = context.op().name == "convolution_weight_gradient";
    if context.find("shape").is_some() {
        let mut shape = context.ints("shape").to_vec();
        shape[usize::from(!gives_weight)] *= size;
        changes.push(("shape", Value::from(&shape[..])));
    }
    // Images have their samples on the first axis, weights and biases their channels.
    let is_image = |i: usize| i == 0 || gives_weight;
    let mut arrays = Vec::new();
    for i in 0..context.num_inputs() {
        arrays.push(match context.front(i)? {
            Some(x) if is_image(i) => {
                let transposed = x.transpose(Some(&swapped(x.ndim())))?;
                let shape = transposed.shape();
                Some(
                    transposed
                        .reshape(&[&[shape[0], shape[1] * shape[2]], &shape[3..]].concat())?,
                )
            }
            Some(x) => {
                let shape = x.shape();
                Some(x.reshape(&[&[shape[0] * shape[1]], &shape[2..]].concat())?)
            }
            None => None,
        });
    }
    let result = only(
        context.op(),
        context.call(&arrays, &context.with(&changes))?,
    )?;
    if gives_weight {
        return Ok(Outputs::from_iter([result]));
    }
    let shape = context.result_shape(0);
    let split = [&[shape[0], context.size], &shape[1..]].concat();
    let result = result.reshape(&split)?;
    let transposed = result.transpose(Some(&swapped(split.len())))?;
    Ok(Outputs::from_iter([transposed]))
}

/// Axes with the first two exchanged.
fn swapped(ndim: usize) -> SmallVec<[i64; 8]> {
    [1, 0].into_iter().chain(2..ndim as i64).collect()
}
