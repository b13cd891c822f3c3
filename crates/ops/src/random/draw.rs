//! Kernels that fill arrays with samples. Their attributes are numbers, checked by the operators that call them.
#![allow(unsafe_code)]

use mxnet_kernels::index::{IndexAxis, Picked, gather};
use mxnet_kernels::random::{
    Distribution, Parameter, Rejecting, Stream, categorical, fill, fill_binomial, fill_rejecting,
    integers, permutation,
};
use mxnet_tensor::{DType, Device, Dims, Scalar, Tensor};
use smallvec::SmallVec;

use crate::args::{Attrs, Param, ParamKind, Value};
use crate::array::Element;
use crate::creation::dims;
use crate::cx::{CallCx, KernelCx};
use crate::eager::elem;
use crate::error::{Error, Result};
use crate::invoke::invoke1;
use crate::opdef::{Cost, Cpu, Cuda, Grad, Inferred, OpDef, Probe, Rng, one_of};
use crate::types::Types;
use crate::{Array, cpu};

/// What all of them have in common. Every sampler takes at most half a block for an element, but those that reject.
const DRAW: OpDef = OpDef {
    infer: drawn,
    grad: Grad::Stop("samples do not depend on arrays"),
    cuda: Cuda::None,
    rng: Rng::Blocks(|n| n.div_ceil(2)),
    cost: Cost::PerKiB(600),
    probe: Probe::calls(&[]),
    ..OpDef::DEFAULT
};

/// Samples of a distribution that takes a fixed number of random bits for each.
pub static RANDOM_FILL: OpDef = OpDef {
    name: "random_fill",
    params: &[
        Param::required("shape", ParamKind::Ints),
        Param::choice(
            "distribution",
            &["uniform", "normal", "bernoulli", "exponential", "gumbel"],
            "uniform",
        ),
        Param::float("a", 0.0),
        Param::float("b", 1.0),
        Param::optional("dtype", ParamKind::DType),
        Param::optional("device", ParamKind::Device),
    ],
    doc: "Samples of a distribution with the numbers `a` and `b`: bounds of `uniform`, mean and deviation of `normal`, probability of 1 (`a`) for \
          `bernoulli`, scale (`b`) of `exponential` and `gumbel`. float64 is sampled in float64, everything else in float32.",
    cpu: Cpu::Kernel(|cx| {
        let (a, b) = (cx.float("a"), cx.float("b"));
        let what = match cx.str("distribution") {
            "normal" => Distribution::Normal {
                mean: a,
                deviation: b,
            },
            "bernoulli" => Distribution::Bernoulli { p: a },
            "exponential" => Distribution::Exponential { scale: b },
            "gumbel" => Distribution::Gumbel { scale: b },
            _ => Distribution::Uniform { low: a, high: b },
        };
        let out = cx.output(0);
        // SAFETY: the output is dense, so it has room for `len` elements from its start on.
        unsafe {
            fill(
                cx.threads,
                stream(cx),
                what,
                elem(out.dtype()),
                out.len(),
                out.data_ptr(),
            )
        };
        Ok(())
    }),
    ..DRAW
};

/// Integers between two numbers.
pub static RANDOM_INTEGERS: OpDef = OpDef {
    name: "random_integers",
    params: &[
        Param::required("shape", ParamKind::Ints),
        Param::required("low", ParamKind::Scalar),
        Param::required("last", ParamKind::Scalar),
        Param::optional("dtype", ParamKind::DType),
        Param::optional("device", ParamKind::Device),
    ],
    doc: "Integers from `low` to `last`, both included, each equally likely.\n\nSource: Lemire, \"Fast random integer generation in an interval\", 2019.",
    cpu: Cpu::Kernel(|cx| {
        let bound = |name| cx.scalar(name).map_or(0, wide);
        let out = cx.output(0);
        draw_integers(cx, bound("low"), bound("last") + 1, 0, out.len(), 0);
        Ok(())
    }),
    ..DRAW
};

/// Integers between the elements of two arrays.
pub static RANDOM_INTEGERS_BETWEEN: OpDef = OpDef {
    name: "random_integers_between",
    params: &[
        Param::array("low"),
        Param::array("high"),
        Param::optional("dtype", ParamKind::DType),
    ],
    doc: "For every pair of elements an integer from `low` to `high`, which is not included. The arrays are int64 and of one shape.",
    infer: |cx| {
        one_of(
            Dims::from_slice(cx.shape(0)),
            cx.dtype("dtype").unwrap_or(DType::I64),
        )
    },
    cpu: Cpu::Kernel(|cx| {
        let (low, high) = (dense::<i64>(cx, 0)?, dense::<i64>(cx, 1)?);
        for (i, (&low, &high)) in low.iter().zip(&high).enumerate() {
            if low >= high {
                let problem = format!("low >= high at element {i}: {low} and {high}");
                return Err(Error::value("randint", problem));
            }
            draw_integers(cx, low.into(), high.into(), i, 1, i as u64);
        }
        Ok(())
    }),
    rng: Rng::Blocks(|n| n),
    cost: Cost::PerKiB(5000),
    ..DRAW
};

/// Samples of a distribution that takes as many tries as it needs.
pub static RANDOM_REJECTING: OpDef = OpDef {
    name: "random_rejecting",
    params: &[
        Param::array("parameter"),
        Param::required("shape", ParamKind::Ints),
        Param::choice("distribution", &["gamma", "poisson"], "gamma"),
        Param::optional("dtype", ParamKind::DType),
        Param::optional("device", ParamKind::Device),
    ],
    doc: "Samples of `gamma` (the parameter is its shape, the scale is 1) or `poisson` (the parameter is its mean). The parameter is one number or has the \
          shape of the result. NaN, or the smallest integer, where it is negative.",
    cpu: Cpu::Kernel(|cx| {
        let what = match cx.str("distribution") {
            "poisson" => Rejecting::Poisson,
            _ => Rejecting::Gamma,
        };
        let (x, out) = (cx.input(0), cx.output(0));
        let held;
        let x = if x.layout().is_contiguous() {
            x
        } else {
            held = Tensor::empty(x.shape(), x.dtype(), x.device())?;
            cpu::copy(x, &held, cx.threads)?;
            &held
        };
        let parameter = Parameter {
            ptr: x.data_ptr(),
            elem: elem(x.dtype()),
            stride: if x.len() == 1 {
                0
            } else {
                x.dtype().size() as isize
            },
        };
        // SAFETY: 1. the output is dense and new. 2. the parameter is dense with one element (stride 0) or as many as the output (checked by `drawn`).
        unsafe {
            fill_rejecting(
                cx.threads,
                stream(cx),
                what,
                &parameter,
                elem(out.dtype()),
                out.len(),
                out.data_ptr(),
            );
        }
        Ok(())
    }),
    rng: Rng::Blocks(|n| n),
    cost: Cost::PerKiB(15_000),
    ..DRAW
};

/// Binomial samples.
pub static RANDOM_BINOMIAL: OpDef = OpDef {
    name: "random_binomial",
    params: &[
        Param::array("n"),
        Param::array("p"),
        Param::required("shape", ParamKind::Ints),
        Param::optional("dtype", ParamKind::DType),
        Param::optional("device", ParamKind::Device),
    ],
    doc: "Successes of `n` tries that succeed with probability `p`. Each parameter is one number or has the shape of the result. The smallest integer where there \
          is no such distribution.",
    cpu: Cpu::Kernel(|cx| {
        let out = cx.output(0);
        let (n, p) = (dense::<f64>(cx, 0)?, dense::<f64>(cx, 1)?);
        let parameter = |x: &Vec<f64>| Parameter {
            ptr: x.as_ptr().cast(),
            elem: mxnet_kernels::Elem::F64,
            stride: if x.len() == 1 {
                0
            } else {
                size_of::<f64>() as isize
            },
        };
        // SAFETY: 1. the output is dense and new. 2. each parameter has one element (stride 0) or as many as the output (checked by `drawn`).
        unsafe {
            fill_binomial(
                cx.threads,
                stream(cx),
                &parameter(&n),
                &parameter(&p),
                elem(out.dtype()),
                out.len(),
                out.data_ptr(),
            );
        }
        Ok(())
    }),
    rng: Rng::Blocks(|n| n),
    cost: Cost::PerKiB(15_000),
    ..DRAW
};

/// Indices drawn with the probabilities of rows.
pub static RANDOM_CATEGORICAL: OpDef = OpDef {
    name: "random_categorical",
    params: &[Param::array("weights"), Param::int("draws", 1)],
    doc: "`draws` indices for every row of `weights`, a (rows, k) array of float64 that are not negative, with replacement, each with the probability that its \
          weight has in the row's sum. int64, (rows, draws).",
    infer: |cx| {
        let &[rows, _] = cx.shape(0) else {
            return Err(cx.shape_error("`weights` must have 2 axes"));
        };
        one_of(
            Dims::from_slice(&[rows, cx.int("draws") as usize]),
            DType::I64,
        )
    },
    cpu: Cpu::Kernel(|cx| {
        let (rows, k) = (cx.input(0).shape()[0], cx.input(0).shape()[1]);
        let weights = dense::<f64>(cx, 0)?;
        for (row, weights) in weights.chunks_exact(k.max(1)).enumerate() {
            let bad = weights.iter().position(|w| !(*w >= 0.0 && w.is_finite()));
            if let Some(at) = bad {
                let problem = format!("probability {at} of row {row} is {}", weights[at]);
                return Err(Error::value(cx.op.name, problem));
            }
            if weights.iter().sum::<f64>() <= 0.0 {
                let problem = format!("the {k} probabilities of row {row} are all 0");
                return Err(Error::value(cx.op.name, problem));
            }
        }
        let out = cx.output(0);
        if out.is_empty() {
            return Ok(());
        }
        // SAFETY: 1. `weights` holds `rows * k` numbers, checked above. 2. the output is dense int64 of shape (rows, draws).
        unsafe {
            categorical(
                cx.threads,
                stream(cx),
                weights.as_ptr(),
                rows,
                k,
                out.shape()[1],
                out.data_ptr().cast::<i64>(),
            )
        };
        Ok(())
    }),
    cost: Cost::PerKiB(5000),
    ..DRAW
};

/// A random order of the first integers.
pub static RANDOM_ORDER: OpDef = OpDef {
    name: "random_order",
    params: &[
        Param::required("shape", ParamKind::Ints),
        Param::optional("dtype", ParamKind::DType),
        Param::optional("device", ParamKind::Device),
    ],
    doc: "The integers from 0 to the length in random order, int64.\n\nSource: Fisher and Yates' exchange.",
    cpu: Cpu::Kernel(|cx| {
        let out = cx.output(0);
        // SAFETY: the output is dense int64.
        unsafe { permutation(stream(cx), out.len(), out.data_ptr().cast::<i64>()) };
        Ok(())
    }),
    cost: Cost::PerKiB(1200),
    ..DRAW
};

/// The slices along the first axis in random order.
pub static RANDOM_REORDERED: OpDef = OpDef {
    name: "random_reordered",
    params: &[Param::array("x")],
    doc: "The slices along the first axis in random order.",
    types: Types::First,
    infer: |cx| match cx.shape(0) {
        [] => Err(cx.shape_error("a 0-d array has no order to change")),
        _ => cx.same_as(0),
    },
    cpu: Cpu::Kernel(reorder),
    grad: Grad::Stop("the order is not kept"),
    cost: Cost::PerKiB(1200),
    ..DRAW
};

/// How often each integer stands in a row.
pub static COUNT_ROWS: OpDef = OpDef {
    name: "count_rows",
    params: &[Param::array("x"), Param::int("k", 1)],
    doc: "How often each of the integers 0 to `k` stands in a row of `x`, a (rows, n) array of int64 with elements from 0 to `k`. int64, (rows, k).",
    infer: |cx| {
        one_of(
            Dims::from_slice(&[cx.shape(0)[0], cx.int("k") as usize]),
            DType::I64,
        )
    },
    cpu: Cpu::Kernel(|cx| {
        let (n, k) = (cx.input(0).shape()[1], cx.int("k") as usize);
        let x = dense::<i64>(cx, 0)?;
        let mut counts = vec![0_i64; cx.output(0).len()];
        for (row, counts) in counts.chunks_exact_mut(k.max(1)).enumerate() {
            for &i in &x[row * n..(row + 1) * n] {
                counts[i as usize] += 1;
            }
        }
        cpu::fill_from(cx.output(0), &counts);
        Ok(())
    }),
    rng: Rng::Derived,
    cost: Cost::PerKiB(300),
    ..DRAW
};

fn stream(cx: &KernelCx) -> Stream {
    Stream {
        seed: cx.rng.seed,
        offset: cx.rng.offset,
    }
}

fn drawn(cx: &CallCx) -> Result<Inferred> {
    let shape = dims(cx.op.name, cx.ints("shape"))?;
    let fits = |x: &&Array| x.len() == 1 || x.shape() == shape.as_slice();
    if !cx.inputs.iter().flatten().all(fits) {
        return Err(cx.shape_error(format!(
            "parameters must have one element or shape {}",
            crate::Tuple(&shape)
        )));
    }
    one_of(
        shape,
        cx.dtype("dtype")
            .unwrap_or_else(mxnet_tensor::default_float),
    )
}

/// An integer, of either sign.
fn wide(x: Scalar) -> i128 {
    match x {
        Scalar::U64(x) => x.into(),
        other => other.as_i64().into(),
    }
}

/// Fills elements `at..at + n` of the output with integers of `low..high`, from the counters that start at `block`.
fn draw_integers(cx: &KernelCx, low: i128, high: i128, at: usize, n: usize, block: u64) {
    let out = cx.output(0);
    debug_assert!(low < high && at + n <= out.len());
    // Integers above the range of i64 are drawn from 0 on as their bits: adding `low` wraps to the same bits.
    let stream = stream(cx);
    let stream = Stream {
        offset: stream.offset.wrapping_add(block),
        ..stream
    };
    let shifted = low as i64;
    let elem = elem(out.dtype());
    // SAFETY: 1. `low < high` and at most 2^64 apart, checked by the caller. 2. the output is dense with elements `at..at + n`.
    unsafe {
        integers(
            cx.threads,
            stream,
            shifted,
            shifted as i128 + (high - low),
            elem,
            n,
            out.data_ptr().add(at * out.dtype().size()),
        )
    };
}

/// The elements of input `i` in C order.
fn dense<T: Element>(cx: &KernelCx, i: usize) -> Result<Vec<T>> {
    let x = cx.input(i);
    let held = Tensor::empty(x.shape(), T::DTYPE, x.device())?;
    cpu::copy(x, &held, cx.threads)?;
    Ok(cpu::read_dense(&held))
}

fn reorder(cx: &KernelCx) -> Result<()> {
    let (x, out) = (cx.input(0), cx.output(0));
    if out.is_empty() {
        return Ok(());
    }
    let mut order = vec![0_i64; x.shape()[0]];
    let (from, to): (SmallVec<[isize; 4]>, SmallVec<[isize; 4]>) =
        (x.byte_strides(), out.byte_strides());
    // SAFETY: `order` has room for as many integers as there are slices.
    unsafe { permutation(stream(cx), order.len(), order.as_mut_ptr()) };
    let picked = Picked {
        elem: elem(x.dtype()),
        axes: &[IndexAxis {
            indices: order.as_ptr(),
            stride: from[0],
        }],
        positions: order.len(),
        block: &x.shape()[1..],
        strides: &from[1..],
    };
    // SAFETY: 1. the indices are a permutation of the first axis' positions. 2. both layouts lie within their storages. 3. the output is new.
    unsafe {
        gather(
            cx.threads,
            &picked,
            x.data_ptr(),
            out.data_ptr(),
            to[0],
            &to[1..],
        );
    }
    Ok(())
}

/// A standard or numeric sample: [`RANDOM_FILL`].
pub(crate) fn sample(
    distribution: &'static str,
    (a, b): (f64, f64),
    shape: &[usize],
    dtype: DType,
    device: Device,
) -> Result<Array> {
    let attrs: Attrs = [
        Value::from(shape),
        Value::Word(distribution),
        Value::Float(a),
        Value::Float(b),
        Value::DType(dtype),
        Value::Device(device),
    ]
    .into_iter()
    .collect();
    invoke1(&RANDOM_FILL, &[], &attrs)
}

/// Samples by rejection: [`RANDOM_REJECTING`].
pub(super) fn rejecting(
    distribution: &'static str,
    parameter: &Array,
    shape: &[usize],
    dtype: DType,
    device: Device,
) -> Result<Array> {
    let attrs: Attrs = [
        Value::from(shape),
        Value::Word(distribution),
        Value::DType(dtype),
        Value::Device(device),
    ]
    .into_iter()
    .collect();
    let parameter = if parameter.len() == 1 {
        parameter.clone()
    } else {
        parameter.broadcast_to(shape)?
    };
    invoke1(&RANDOM_REJECTING, &[&parameter.detach()], &attrs)
}
