//! Kernels that fill arrays with samples. Their attributes are numbers that the calling operators have checked.
#![allow(unsafe_code)]

use mxnet_kernels::random::{Distribution, Stream, fill, integers, integers_between};
use mxnet_kernels::scratch::collected;
use mxnet_tensor::{DType, Dims, Scalar, Tensor};

use crate::args::{Param, ParamKind};
use crate::array::Element;
use crate::context::{CallContext, KernelContext};
use crate::creation::dims;
use crate::error::{Error, Result};
use crate::launch::elem;
use crate::opdef::{Cost, Cpu, Grad, Inferred, OpDef, Probe, Rng, one_of};
use crate::{Array, cpu};

/// Default fields for these operators. Every sampler takes at most half a block an element, except those by rejection.
pub(super) const DRAW: OpDef = OpDef {
    infer: drawn,
    grad: Grad::Stop("samples do not depend on arrays"),
    rng: Rng::Blocks(blocks),
    cost: Cost::PerKiB(600),
    probe: Probe::calls(&[]),
    ..OpDef::DEFAULT
};

/// Samples of a distribution that takes a fixed number of random bits an element.
pub static RANDOM_FILL: OpDef = OpDef {
    name: "random_fill",
    params: &[
        Param::required("shape", ParamKind::Ints),
        Param::choice(
            "distribution",
            &[
                "uniform",
                "normal",
                "bernoulli",
                "exponential",
                "gumbel",
                "laplace",
                "logistic",
                "triangular",
            ],
            "uniform",
        ),
        Param::float("a", 0.0),
        Param::float("b", 1.0),
        Param::optional("dtype", ParamKind::DType),
        Param::optional("device", ParamKind::Device),
        Param::float("c", 0.5),
    ],
    doc: "Samples of a distribution with the numbers `a` and `b`: bounds of `uniform` and of `triangular` (which has its peak at `c`), mean and deviation of `normal`, probability of 1 (`a`) for \
          `bernoulli`, scale (`b`) of the others. float64 is sampled in float64, everything else in float32.",
    cpu: Cpu::Kernel(|context| {
        let numbers = [context.float("a"), context.float("b"), context.float("c")];
        fill_output(context, distribution(context.str("distribution"), numbers))
    }),
    ..DRAW
};

/// Fills the output with samples.
pub(super) fn fill_output(context: &KernelContext, what: Distribution) -> Result<()> {
    let out = context.output(0);
    // SAFETY: the output is dense, so it has room for `len` elements from its start on.
    unsafe {
        fill(
            context.threads,
            stream(context),
            what,
            elem(out.dtype()),
            out.len(),
            out.data_ptr(),
        )
    };
    Ok(())
}

/// Integers between two bounds.
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
    cpu: Cpu::Kernel(|context| {
        let bound = |name| context.scalar(name).map_or(0, wide);
        let (low, last) = (bound("low"), bound("last"));
        debug_assert!(low <= last);
        // Integers above the range of i64 are drawn from 0 on as their bits: adding `low` wraps to the same bits.
        let shifted = low as i64;
        let end = shifted as i128 + (last - low) + 1;
        let out = context.output(0);
        // SAFETY: 1. `low <= last`, at most 2^64 integers, checked by the caller. 2. the output is dense.
        unsafe {
            integers(
                context.threads,
                stream(context),
                shifted,
                end,
                elem(out.dtype()),
                out.len(),
                out.data_ptr(),
            )
        };
        Ok(())
    }),
    ..DRAW
};

/// Integers between the elements of two arrays of bounds.
pub static RANDOM_INTEGERS_BETWEEN: OpDef = OpDef {
    name: "random_integers_between",
    params: &[
        Param::array("low"),
        Param::array("high"),
        Param::bool("endpoint", false),
        Param::optional("dtype", ParamKind::DType),
    ],
    doc: "For every pair of elements an integer from `low` to `high`, which is included if `endpoint` says so. The arrays are int64 or uint64 and of one shape.",
    infer: |context| {
        one_of(
            Dims::from_slice(context.shape(0)),
            context.dtype("dtype").unwrap_or(DType::I64),
        )
    },
    cpu: Cpu::Kernel(|context| {
        let out = context.output(0);
        let (low, mut last) = (wide_elements(context, 0)?, wide_elements(context, 1)?);
        if !context.bool("endpoint") {
            last.iter_mut().for_each(|x| *x -= 1);
        }
        for (i, (&low, &last)) in low.iter().zip(&last).enumerate() {
            if low > last {
                let sign = if context.bool("endpoint") { ">" } else { ">=" };
                let high = last + i128::from(!context.bool("endpoint"));
                let problem = format!("low {sign} high at element {i}: {low} and {high}");
                return Err(Error::value("randint", problem));
            }
            for (name, bound) in [("low", low), ("high", last)] {
                if !fits(bound, out.dtype()) {
                    let dtype = out.dtype().name();
                    let problem = format!(
                        "{name} is out of bounds for {dtype} at element {i}: the integers would be {low} to {last}"
                    );
                    return Err(Error::value("randint", problem));
                }
            }
        }
        let bits = |x: &[i128]| collected(x.len(), x.iter().map(|&x| x as u64));
        let (low, last) = (bits(&low), bits(&last));
        // SAFETY: the output is dense and has as many elements as the bounds.
        unsafe {
            integers_between(
                context.threads,
                stream(context),
                &low,
                &last,
                elem(out.dtype()),
                out.data_ptr(),
            )
        };
        Ok(())
    }),
    cost: Cost::PerKiB(3000),
    ..DRAW
};

/// Whether `dtype` has the integer `x`.
pub(super) fn fits(x: i128, dtype: DType) -> bool {
    match (i64::try_from(x), u64::try_from(x)) {
        (Ok(x), _) => Scalar::I64(x).fits(dtype),
        (_, Ok(x)) => Scalar::U64(x).fits(dtype),
        _ => false,
    }
}

fn wide_elements(context: &KernelContext, i: usize) -> Result<Vec<i128>> {
    fn widened<T: Into<i128>>(values: Vec<T>) -> Vec<i128> {
        collected(values.len(), values.into_iter().map(Into::into))
    }
    Ok(match context.input(i).dtype() {
        DType::U64 => widened(dense::<u64>(context, i)?),
        _ => widened(dense::<i64>(context, i)?),
    })
}

pub(super) fn stream(context: &KernelContext) -> Stream {
    Stream {
        seed: context.rng.seed,
        offset: context.rng.offset,
    }
}

pub(super) fn drawn(context: &CallContext) -> Result<Inferred> {
    let shape = dims(context.op.name, context.ints("shape"))?;
    let fits = |x: &&Array| x.len() == 1 || x.shape() == shape.as_slice();
    if !context.inputs.iter().flatten().all(fits) {
        return Err(context.shape_error(format!(
            "parameters must have one element or shape {}",
            crate::Tuple(&shape)
        )));
    }
    one_of(
        shape,
        context
            .dtype("dtype")
            .unwrap_or_else(mxnet_tensor::default_float),
    )
}

/// An integer as i128.
pub(super) fn wide(x: Scalar) -> i128 {
    match x {
        Scalar::U64(x) => x.into(),
        // Exact: the only such integer that is a valid bound is 2^64, excluded.
        Scalar::Wide(x) => x as i128,
        other => other.as_i64().into(),
    }
}

/// The elements of input `i` in C order.
pub(super) fn dense<T: Element>(context: &KernelContext, i: usize) -> Result<Vec<T>> {
    let x = context.input(i);
    let held = Tensor::empty(x.shape(), T::DTYPE, x.device())?;
    cpu::copy(x, &held, context.threads)?;
    Ok(cpu::read_dense(&held))
}

/// Number of counter blocks that `n` samples take.
fn blocks(n: u64) -> u64 {
    n.div_ceil(2)
}

/// The kernel's distribution called `name`.
pub(super) fn distribution(name: &str, [a, b, c]: [f64; 3]) -> Distribution {
    match name {
        "normal" => Distribution::Normal {
            mean: a,
            deviation: b,
        },
        "bernoulli" => Distribution::Bernoulli { p: a },
        "exponential" => Distribution::Exponential { scale: b },
        "gumbel" => Distribution::Gumbel { scale: b },
        "laplace" => Distribution::Laplace { scale: b },
        "logistic" => Distribution::Logistic { scale: b },
        "triangular" => Distribution::Triangular {
            left: a,
            right: b,
            mode: c,
        },
        _ => Distribution::Uniform { low: a, high: b },
    }
}
