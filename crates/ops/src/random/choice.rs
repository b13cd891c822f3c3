//! Kernels for weighted choice, choice without replacement, permutations and multivariate counts.
#![allow(unsafe_code)]

use mxnet_kernels::index::{IndexAxis, Picked, gather};
use mxnet_kernels::random::{
    categorical, distinct_integers, multinomial, multivariate_hypergeometric, permutations, shuffle,
};
use mxnet_tensor::{DType, Dims, Tensor, broadcast_shapes};
use smallvec::SmallVec;

use super::continuous::SIZE;
use super::draw::{DRAW, dense, stream};
use crate::args::{Param, ParamKind};
use crate::context::KernelContext;
use crate::cpu;
use crate::creation::dims;
use crate::error::{Error, Result};
use crate::launch::elem;
use crate::opdef::{Cost, Cpu, Grad, OpDef, Rng, Surface, one_of};
use crate::types::Types;

/// Indices drawn with the probabilities in each row.
pub static RANDOM_CATEGORICAL: OpDef = OpDef {
    name: "random_categorical",
    params: &[Param::array("weights"), Param::int("draws", 1)],
    doc: "`draws` indices for every row of `weights`, a (rows, k) array of float64 that are not negative, with replacement, each with a probability \
        proportional to its weight. int64, (rows, draws).",
    infer: |context| {
        let &[rows, _] = context.shape(0) else {
            return Err(context.shape_error("`weights` must have 2 axes"));
        };
        one_of(
            Dims::from_slice(&[rows, context.int("draws") as usize]),
            DType::I64,
        )
    },
    cpu: Cpu::Kernel(|context| {
        let (rows, k) = (context.input(0).shape()[0], context.input(0).shape()[1]);
        let weights = dense::<f64>(context, 0)?;
        for (row, weights) in weights.chunks_exact(k.max(1)).enumerate() {
            let bad = weights.iter().position(|w| !(*w >= 0.0 && w.is_finite()));
            if let Some(at) = bad {
                let problem = format!("probability {at} of row {row} is {}", weights[at]);
                return Err(Error::value("categorical", problem));
            }
            if weights.iter().sum::<f64>() <= 0.0 {
                let problem = format!("the {k} probabilities of row {row} are all 0");
                return Err(Error::value("categorical", problem));
            }
        }
        let out = context.output(0);
        if out.is_empty() {
            return Ok(());
        }
        // SAFETY: 1. `weights` holds `rows * k` numbers, checked above. 2. the output is dense int64 of shape (rows, draws).
        unsafe {
            categorical(
                context.threads,
                stream(context),
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

/// Random permutations of 0..n.
pub static RANDOM_ORDER: OpDef = OpDef {
    name: "random_order",
    params: &[
        Param::required("shape", ParamKind::Ints),
        Param::optional("device", ParamKind::Device),
    ],
    infer: |context| one_of(dims(context.op.name, context.ints("shape"))?, DType::I64),
    doc: "In each row, the integers from 0 to the row's length in random order, int64. `shape` has one or two axes.\n\nSource: Fisher and Yates' exchange.",
    cpu: Cpu::Kernel(|context| {
        let out = context.output(0);
        let n = out.shape().last().copied().unwrap_or(1);
        let rows = out.len() / n.max(1);
        // SAFETY: the output is dense int64 with `rows * n` elements.
        unsafe {
            permutations(
                context.threads,
                stream(context),
                rows,
                n,
                out.data_ptr().cast::<i64>(),
            )
        };
        Ok(())
    }),
    // Each row takes half a block an element, rounded up.
    rng: Rng::Blocks(|n| n),
    cost: Cost::PerKiB(1200),
    ..DRAW
};

/// A random permutation of the slices along the first axis.
pub static RANDOM_REORDERED: OpDef = OpDef {
    name: "random_reordered",
    reports_as: Some("shuffle"),
    params: &[Param::array("x")],
    doc: "The slices along the first axis in random order.",
    types: Types::First,
    infer: |context| match context.shape(0) {
        [] => Err(context.shape_error("a 0-d array cannot be shuffled")),
        _ => context.same_as(0),
    },
    cpu: Cpu::Kernel(reorder),
    grad: Grad::Stop("the order is not kept"),
    cost: Cost::PerKiB(1200),
    ..DRAW
};

/// Distinct random integers.
pub static RANDOM_DIFFERENT: OpDef = OpDef {
    name: "random_different",
    params: &[
        Param::int("n", 0),
        Param::int("count", 0),
        Param::optional("device", ParamKind::Device),
    ],
    doc: "`count` different integers from 0 to `n`, in random order, int64.\n\nSource: the first `count` exchanges of Fisher and Yates.",
    infer: |context| {
        one_of(
            Dims::from_slice(&[context.int("count") as usize]),
            DType::I64,
        )
    },
    cpu: Cpu::Kernel(|context| {
        let out = context.output(0);
        let n = context.int("n") as usize;
        debug_assert!(out.len() <= n);
        // SAFETY: the output is dense int64; the caller asks for at most `n` integers.
        unsafe { distinct_integers(stream(context), n, out.len(), out.data_ptr().cast::<i64>()) };
        Ok(())
    }),
    // Drawing a large part of the integers takes time proportional to `n`, however few are returned.
    cost: Cost::Of(|context| {
        let (n, count) = (context.int("n") as u64, context.int("count") as u64);
        if count < n / 16 { 60 * count } else { 4 * n }
    }),
    ..DRAW
};

/// Number of draws in each category.
pub static MULTINOMIAL: OpDef = OpDef {
    name: "multinomial",
    surface: &[Surface::NpRandom("multinomial")],
    params: &[Param::array("n"), Param::array("pvals"), SIZE],
    doc: "Number of draws of each of k categories, in `n` draws with the probabilities `pvals`, shape (..., k). `n` and the rows of `pvals` broadcast; the result has their shape, or \
          `size`, + (k,), dtype int64. The last probability is 1 minus the sum of the others.",
    about: &[
        ("n", "Number of draws."),
        ("pvals", "Probabilities, (..., k)."),
        (
            "size",
            "Shape of the result without its last axis; that to which the parameters broadcast for None.",
        ),
    ],
    returns: &[("ndarray", "int64, of shape `size + (k,)`.")],
    raises: &[("ValueError", "If a parameter is out of its range.")],
    example: "
        >>> np.random.seed(1)
        >>> x = np.random.multinomial(20, [0.2, 0.3, 0.5], size=4)
        >>> x.shape, x.sum(axis=1)
        ((4, 3), array([20, 20, 20, 20]))
    ",
    infer: |context| {
        let (n, pvals) = (context.input(0), context.input(1));
        let Some((&k, rows)) = pvals.shape().split_last() else {
            return Err(context.shape_error("`pvals` must have at least one axis"));
        };
        if n.dtype().is_inexact() || pvals.dtype().is_complex() {
            return Err(context.dtype_error("`n` must be integers and `pvals` real"));
        }
        // A Python number is known at the call, so the error is raised there.
        if n.is_weak() && n.item()?.as_i64() < 0 {
            let n = n.item()?.as_i64();
            return Err(context.value_error(format!("`n` must be at least 0, found {n}")));
        }
        let natural = broadcast_shapes(&[n.shape(), rows])?;
        let mut shape = match context.opt_ints("size") {
            None => natural.clone(),
            Some(size) => dims(context.op.name, size)?,
        };
        if broadcast_shapes(&[&natural, &shape]).ok().as_ref() != Some(&shape) {
            return Err(context.shape_error(format!(
                "`n` and the rows of `pvals` have shape {}, which does not broadcast to `size` {}",
                crate::Tuple(&natural),
                crate::Tuple(&shape)
            )));
        }
        shape.push(k);
        one_of(shape, DType::I64)
    },
    cpu: Cpu::Kernel(|context| {
        let out = context.output(0);
        let Some((&k, rows)) = out.shape().split_last() else {
            return Ok(());
        };
        // A parameter that is the same for all rows is not repeated.
        let (n, p) = (context.input(0), context.input(1));
        let n = spread(context, 0, if n.len() == 1 { n.shape() } else { rows })?;
        let p = spread(
            context,
            1,
            if p.len() == k { p.shape() } else { out.shape() },
        )?;
        if let Some(at) = n.iter().position(|n| *n < 0.0) {
            let problem = format!("`n` must be at least 0, found {} at element {at}", n[at]);
            return Err(Error::value(context.op.name, problem));
        }
        for (row, p) in p.chunks_exact(k.max(1)).enumerate() {
            check_row(row, p)?;
        }
        if !out.is_empty() {
            // SAFETY: the output is dense int64 with rows of `k`; each parameter has one row or as many as the output.
            unsafe {
                multinomial(
                    context.threads,
                    stream(context),
                    &n,
                    &p,
                    out.len() / k,
                    k,
                    out.data_ptr().cast::<i64>(),
                )
            };
        }
        Ok(())
    }),
    rng: Rng::Blocks(|n| n),
    cost: Cost::PerKiB(4000),
    ..DRAW
};

/// Array argument `i`, broadcast to `shape`, as float64.
fn spread(context: &KernelContext, i: usize, shape: &[usize]) -> Result<Vec<f64>> {
    let held = Tensor::empty(shape, DType::F64, context.output(0).device())?;
    cpu::copy(context.input(i), &held, context.threads)?;
    Ok(cpu::read_dense(&held))
}

/// An error unless the probabilities of a row are valid.
fn check_row(row: usize, p: &[f64]) -> Result<()> {
    if let Some(at) = p.iter().position(|x| !(0.0..=1.0 + 1e-6).contains(x)) {
        let problem = format!("probability {at} is {}, not in [0, 1] (row {row})", p[at]);
        return Err(Error::value("multinomial", problem));
    }
    let others: f64 = p[..p.len() - 1].iter().sum();
    // NumPy's tolerance, extended for probabilities that were rounded to float32.
    if others > 1.0 + 1e-12 && others > 1.0 + f64::from(f32::EPSILON) * p.len() as f64 {
        let problem = format!("sum(pvals[:-1]) is {others}, above 1 (row {row})");
        return Err(Error::value("multinomial", problem));
    }
    Ok(())
}

/// Number of items of each color in samples drawn without replacement.
pub static RANDOM_MULTIVARIATE_HYPERGEOMETRIC: OpDef = OpDef {
    name: "random_multivariate_hypergeometric",
    params: &[
        Param::array("colors"),
        Param::int("nsample", 0),
        Param::int("rows", 1),
    ],
    doc: "Number of items of each of k colors among `nsample` items drawn without replacement from `colors`, shape (k,). int64, (`rows`, k).",
    infer: |context| {
        let k = context.shape(0)[0];
        one_of(
            Dims::from_slice(&[context.int("rows") as usize, k]),
            DType::I64,
        )
    },
    cpu: Cpu::Kernel(|context| {
        let out = context.output(0);
        let colors = dense::<f64>(context, 0)?;
        let (all, sample) = (colors.iter().sum::<f64>(), context.int("nsample"));
        if let Some(at) = colors.iter().position(|x| *x < 0.0) {
            let problem = format!(
                "`colors` must be at least 0, found {} at element {at}",
                colors[at]
            );
            return Err(Error::value("multivariate_hypergeometric", problem));
        }
        if all >= 1e9 {
            let problem = format!("sum(colors) is {all}, must be below 10**9");
            return Err(Error::value("multivariate_hypergeometric", problem));
        }
        if sample as f64 > all {
            let problem = format!("`nsample` is {sample}, above sum(colors), which is {all}");
            return Err(Error::value("multivariate_hypergeometric", problem));
        }
        if !out.is_empty() {
            // SAFETY: the output is dense int64 of shape (rows, k); the sample is not larger than the sum.
            unsafe {
                multivariate_hypergeometric(
                    context.threads,
                    stream(context),
                    &colors,
                    sample as f64,
                    out.shape()[0],
                    out.data_ptr().cast::<i64>(),
                )
            };
        }
        Ok(())
    }),
    rng: Rng::Blocks(|n| n),
    cost: Cost::PerKiB(4000),
    positions: &[0],
    ..DRAW
};

fn reorder(context: &KernelContext) -> Result<()> {
    let (x, out) = (context.input(0), context.output(0));
    if out.is_empty() {
        return Ok(());
    }
    if out.shape().len() == 1 {
        cpu::copy(x, out, context.threads)?;
        // SAFETY: the output is dense.
        unsafe {
            shuffle(
                stream(context),
                out.len(),
                out.dtype().size(),
                out.data_ptr(),
            )
        };
        return Ok(());
    }
    let mut order = vec![0_i64; x.shape()[0]];
    let (from, to): (SmallVec<[isize; 4]>, SmallVec<[isize; 4]>) =
        (x.byte_strides(), out.byte_strides());
    // SAFETY: `order` has room for as many integers as there are slices.
    unsafe {
        permutations(
            context.threads,
            stream(context),
            1,
            order.len(),
            order.as_mut_ptr(),
        )
    };
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
            context.threads,
            &picked,
            x.data_ptr(),
            out.data_ptr(),
            to[0],
            &to[1..],
        );
    }
    Ok(())
}
