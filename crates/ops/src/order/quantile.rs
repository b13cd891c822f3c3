//! Medians and quantiles: linear interpolation of elements at ranks. Composed of `select_rows`.

use std::collections::BTreeSet;

use mxnet_tensor::{DType, Dims, Kind, Scalar};
use smallvec::SmallVec;

use super::statistics::SELECT_ROWS;
use crate::args::{Attrs, Param, ParamKind, Value};
use crate::context::CompositeContext;
use crate::error::{Error, Result};
use crate::invoke::invoke1;
use crate::opdef::{Cpu, OpDef, Probe};
use crate::reduce::inexact;
use crate::shape::{concatenate, narrow};
use crate::types::default_dtype;
use crate::{Array, Outputs, creation};

/// Methods to compute a quantile from sorted elements: those of Hyndman and Fan (1996), then NumPy's additional ones.
const METHODS: &[&str] = &[
    "interpolated_inverted_cdf",
    "hazen",
    "weibull",
    "linear",
    "median_unbiased",
    "normal_unbiased",
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    "lower",
    "higher",
    "midpoint",
    "nearest",
];

/// Methods whose results are elements.
pub(super) const DISCRETE: &[&str] = &[
    "inverted_cdf",
    "closest_observation",
    "lower",
    "higher",
    "nearest",
];

/// The middle of the sorted elements.
pub static MEDIAN: OpDef = OpDef {
    name: "median",
    params: &[
        Param::array("a"),
        Param::reduced("axis"),
        Param::bool("keepdims", false),
    ],
    doc: "Middle of the sorted elements over `axis` (all axes for None), the mean of the two middle ones if their number is even. Integers become \
        the default float. NaN if an element is NaN, or if there is no element.",
    cpu: Cpu::Composite(median),
    probe: Probe::calls(&[
        "f((3, 5))",
        "f((3, 4)), 1",
        "f((2, 3, 4)), (2, 0), True",
        "i((3, 4), 9), 0",
    ])
    .against("lambda a, axis=None, keepdims=False: numpy.median(a, axis, keepdims=keepdims)")
    .ulp(2),
    ..OpDef::COMPOSITE
};

/// Quantiles of the elements.
pub static QUANTILE: OpDef = OpDef {
    name: "quantile",
    params: &[
        Param::array("a"),
        Param::required("q", ParamKind::Floats),
        Param::reduced("axis"),
        Param::choice("method", METHODS, "linear"),
        Param::bool("keepdims", false),
        Param::optional("dtype", ParamKind::DType),
    ],
    doc: "Quantiles of the probabilities `q` over `axis` (all axes for None): of shape (len(q), ...). `method` says how to interpolate between \
        elements, as in NumPy. NaN if an element is NaN. The result has `dtype`; by default that of `a`, or the default float if `a` holds integers \
        and the method interpolates.\n\n\
          Source: Hyndman and Fan, Sample quantiles in statistical packages, 1996.",
    cpu: Cpu::Composite(quantile),
    probe: Probe::calls(&[
        "f((3, 5)), (0.25, 0.5)",
        "f((3, 4)), (0.1,), 1",
        "f((2, 3, 4)), (0.0, 0.3, 1.0), (2, 0), 'hazen', True",
        "f((7,)), (0.5,), None, 'nearest'",
        "i((3, 4), 9), (0.4, 0.6), 0, 'averaged_inverted_cdf'",
    ])
    .against("lambda a, q, axis=None, method='linear', keepdims=False: numpy.quantile(a, list(q), axis, method=method, keepdims=keepdims)")
    .ulp(16),
    ..OpDef::COMPOSITE
};

/// The body of [`MEDIAN`].
pub(super) fn median(context: &CompositeContext) -> Result<Outputs> {
    let rows = Rows::new(context)?;
    let n = rows.len();
    let middle = match n {
        0 => inexact(&rows.x)?.sum(Some(&[-1]), false)?.scale(f64::NAN)?,
        _ if n % 2 == 1 => rows.at(&[n / 2])?.reshape(&rows.shape(&[]))?,
        _ => rows.at(&[n / 2 - 1, n / 2])?.mean(Some(&[-1]), false)?,
    };
    context.done(rows.kept(&inexact(&middle)?, 0)?)
}

/// The attribute `dtype`. Only methods whose results are elements take types other than floats: the others would lose the fractions.
pub(super) fn quantile_dtype(context: &CompositeContext, method: &str) -> Result<Option<DType>> {
    let dtype = context.dtype("dtype");
    match dtype {
        Some(found) if !found.is_float() && !DISCRETE.contains(&method) => {
            let problem = format!("`dtype` must be a float for method '{method}', found {found}");
            Err(context.dtype_error(problem))
        }
        _ => Ok(dtype),
    }
}

/// The body of [`QUANTILE`].
pub(super) fn quantile(context: &CompositeContext) -> Result<Outputs> {
    let (x, method) = (context.input(0), context.str("method"));
    if x.dtype().is_complex() {
        return Err(context.dtype_error("`a` must be real"));
    }
    let is_discrete = DISCRETE.contains(&method);
    if x.dtype() == DType::Bool && !is_discrete {
        let problem = "truth values have no differences: convert them to numbers";
        return Err(context.dtype_error(problem));
    }
    let probabilities = context.floats("q");
    if let Some(wrong) = probabilities.iter().find(|q| !(0.0..=1.0).contains(*q)) {
        let problem = format!("`q` must lie in [0, 1], found {wrong}");
        return Err(context.value_error(problem));
    }
    let rows = Rows::new(context)?;
    if rows.len() == 0 {
        let problem = "there is no element to take a quantile of";
        return Err(Error::index(context.op.name, problem));
    }
    let dtype = match quantile_dtype(context, method)? {
        Some(dtype) => dtype,
        None if is_discrete || x.dtype().is_inexact() => x.dtype(),
        None => default_dtype(Kind::Float),
    };
    // Interpolation between integers is exact at the elements; between infinite elements it is NaN, as in NumPy.
    let takes = is_discrete || !x.dtype().is_inexact();
    let brackets: Vec<_> = (probabilities.iter())
        .map(|&q| bracket(method, rows.len(), q))
        .collect();
    let ranks: BTreeSet<usize> = brackets.iter().flat_map(|b| [b.0, b.1]).collect();
    let ranks: Vec<usize> = ranks.into_iter().collect();
    if ranks.is_empty() {
        let none = creation::full(&rows.shape(&[0]), Scalar::I64(0), dtype, x.device())?;
        return context.done(rows.kept(&none, 1)?);
    }
    let found = rows.at(&ranks)?.astype(dtype)?;
    let shape = rows.shape(&[1]);
    let element = |rank: usize| -> Result<Array> {
        let at = ranks.partition_point(|&other| other < rank);
        narrow(&found, found.ndim() - 1, at, at + 1)?.reshape(&shape)
    };
    let mut quantiles = Vec::new();
    for (low, high, part) in brackets {
        let is_element = part == 0.0 || part == 1.0 || low == high;
        quantiles.push(match takes && is_element {
            true => element(if part == 1.0 { high } else { low })?,
            false => between(&element(low)?, &element(high)?, part)?,
        });
    }
    let all = match &quantiles[..] {
        [one] => one.clone(),
        several => concatenate(&several.iter().collect::<SmallVec<[&Array; 4]>>(), 0)?,
    };
    context.done(rows.kept(&all, 1)?)
}

/// The two ranks between which quantile `q` of `n` elements (at least 1) lies by a method of [`QUANTILE`], and its position between them, in [0, 1].
pub(super) fn bracket(method: &str, n: usize, q: f64) -> (usize, usize, f64) {
    let (count, last) = (n as f64, n as f64 - 1.0);
    // Plotting positions (alpha, beta) of the continuous methods.
    let continuous = match method {
        "interpolated_inverted_cdf" => Some((0.0, 1.0)),
        "hazen" => Some((0.5, 0.5)),
        "weibull" => Some((0.0, 0.0)),
        "median_unbiased" => Some((1.0 / 3.0, 1.0 / 3.0)),
        "normal_unbiased" => Some((3.0 / 8.0, 3.0 / 8.0)),
        _ => None,
    };
    let at = match (continuous, method) {
        (Some((alpha, beta)), _) => count * q + (alpha + q * (1.0 - alpha - beta)) - 1.0,
        (_, "inverted_cdf" | "averaged_inverted_cdf") => count * q - 1.0,
        (_, "closest_observation") => count * q - 1.5,
        // Computed separately, because this common case then has no rounding error.
        _ => last * q,
    };
    let low = at.floor();
    let rest = at - low;
    let is_odd = low.rem_euclid(2.0) == 1.0;
    let step = |is_next: bool| f64::from(u8::from(is_next));
    let part = match method {
        "inverted_cdf" => step(rest > 0.0),
        "averaged_inverted_cdf" if rest > 0.0 => 1.0,
        "averaged_inverted_cdf" => 0.5,
        // The nearest rank; between two of them the one that is even when counted from 1.
        "closest_observation" => step(!(rest == 0.0 && is_odd)),
        "lower" => 0.0,
        "higher" => step(rest > 0.0),
        "midpoint" if rest > 0.0 => 0.5,
        "midpoint" => 0.0,
        "nearest" => step(rest > 0.5 || (rest == 0.5 && is_odd)),
        _ => rest,
    };
    if at >= last {
        return (n - 1, n - 1, 0.0);
    }
    if low < 0.0 {
        // Before the first element there is nothing to interpolate from; for discrete methods it may be the next element.
        return (0, 0, 0.0);
    }
    (low as usize, low as usize + 1, part)
}

/// Linear interpolation: `low` at 0, `high` at 1, exact at both ends. NaN at infinities, as in NumPy.
fn between(low: &Array, high: &Array, part: f64) -> Result<Array> {
    let step = high.sub(low)?;
    match part < 0.5 {
        true => low.add(&step.scale(part)?),
        false => high.sub(&step.scale(1.0 - part)?),
    }
}

/// An array with the reduced axes as one last axis.
pub(super) struct Rows {
    pub(super) x: Array,
    /// The axes that were reduced, of `ndim`.
    axes: SmallVec<[usize; 4]>,
    ndim: usize,
    keepdims: bool,
}

impl Rows {
    pub(super) fn new(context: &CompositeContext) -> Result<Rows> {
        let (x, axes) = (context.input(0), context.axes("axis", 0)?);
        let (ndim, keepdims) = (x.ndim(), context.bool("keepdims"));
        let order: SmallVec<[i64; 4]> = (0..ndim)
            .filter(|axis| !axes.contains(axis))
            .chain(axes.iter().copied())
            .map(|axis| axis as i64)
            .collect();
        let is_moved = order.iter().enumerate().any(|(i, &axis)| i as i64 != axis);
        let moved = match is_moved {
            true => x.transpose(Some(&order))?,
            false => x.clone(),
        };
        if axes.len() == 1 {
            return Ok(Rows {
                x: moved,
                axes,
                ndim,
                keepdims,
            });
        }
        let kept = &moved.shape()[..ndim - axes.len()];
        let len = moved.shape()[ndim - axes.len()..].iter().product();
        let shape: Dims = kept.iter().copied().chain([len]).collect();
        let x = moved.reshape(&shape)?;
        Ok(Rows {
            x,
            axes,
            ndim,
            keepdims,
        })
    }

    /// Elements of a row.
    pub(super) fn len(&self) -> usize {
        self.x.shape()[self.x.ndim() - 1]
    }

    /// The elements that sorting would put at these ranks, which ascend.
    fn at(&self, ranks: &[usize]) -> Result<Array> {
        let attrs: Attrs = [Value::from(ranks)].into_iter().collect();
        invoke1(&SELECT_ROWS, &[&self.x], &attrs)
    }

    /// The shape of `leading` axes, followed by one result for each row.
    pub(super) fn shape(&self, leading: &[usize]) -> Dims {
        let kept = &self.x.shape()[..self.x.ndim() - 1];
        leading.iter().chain(kept).copied().collect()
    }

    /// Inserts the reduced axes with length 1 after the `leading` axes of the result, if the call has `keepdims`.
    pub(super) fn kept(&self, result: &Array, leading: usize) -> Result<Array> {
        if !self.keepdims {
            return Ok(result.clone());
        }
        let mut sizes = result.shape().iter().copied();
        let mut shape: Dims = sizes.by_ref().take(leading).collect();
        for axis in 0..self.ndim {
            let size = match self.axes.contains(&axis) {
                true => 1,
                false => sizes.next().unwrap_or(1),
            };
            shape.push(size);
        }
        result.reshape(&shape)
    }
}
