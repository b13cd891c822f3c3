//! Convolutions under `vmap`: each example of the batch is itself a batch of samples.

use smallvec::SmallVec;

use crate::args::Value;
use crate::batching::BatchCx;
use crate::error::Result;
use crate::nn::conv::is_channels_last;
use crate::{Outputs, only};

/// A convolution of each example, or the gradient of its data. With a single weight, the samples of all examples form one batch.
pub(super) fn batched(cx: &BatchCx) -> Result<Outputs> {
    if cx.is_batched(1) || cx.is_batched(2) {
        return batched_groups(cx);
    }
    let Some(x) = cx.front(0)? else {
        return Err(cx.refused());
    };
    let n = x.shape()[0] * x.shape()[1];
    let rows = [&[n], &x.shape()[2..]].concat();
    let mut changes = Vec::new();
    if cx.find("shape").is_some() {
        let shape = [&[n as i64], &cx.ints("shape")[1..]].concat();
        changes.push(("shape", Value::from(&shape[..])));
    }
    let mut arrays = vec![Some(x.reshape(&rows)?)];
    for i in 1..cx.num_inputs() {
        arrays.push(cx.aligned(i, 0)?);
    }
    cx.call(&arrays, &cx.with(&changes))
}

/// As [`batched`] where the weights differ between examples, and for the gradient of the weight: the examples become groups of channels,
/// `size` arrays (n, c, ...) -> (n, size * c, ...).
pub(super) fn batched_groups(cx: &BatchCx) -> Result<Outputs> {
    if is_channels_last(cx, cx.shape(0).len() - 2)? {
        return Err(cx.refused());
    }
    let size = cx.size as i64;
    let mut changes = vec![("num_group", Value::Int(cx.int("num_group") * size))];
    if let Some(Value::Int(filters)) = cx.find("num_filter") {
        changes.push(("num_filter", Value::Int(filters * size)));
    }
    let gives_weight = cx.op().name == "convolution_weight_gradient";
    if cx.find("shape").is_some() {
        let mut shape = cx.ints("shape").to_vec();
        shape[usize::from(!gives_weight)] *= size;
        changes.push(("shape", Value::from(&shape[..])));
    }
    // Images have their samples on the first axis, weights and biases their channels.
    let is_image = |i: usize| i == 0 || gives_weight;
    let mut arrays = Vec::new();
    for i in 0..cx.num_inputs() {
        arrays.push(match cx.front(i)? {
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
    let result = only(cx.op(), cx.call(&arrays, &cx.with(&changes))?)?;
    if gives_weight {
        return Ok(Outputs::from_iter([result]));
    }
    let shape = cx.result_shape(0);
    let split = [&[shape[0], cx.size], &shape[1..]].concat();
    let result = result.reshape(&split)?;
    let transposed = result.transpose(Some(&swapped(split.len())))?;
    Ok(Outputs::from_iter([transposed]))
}

/// Axes with the first two exchanged.
fn swapped(ndim: usize) -> SmallVec<[i64; 8]> {
    [1, 0].into_iter().chain(2..ndim as i64).collect()
}
