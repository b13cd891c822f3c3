//! Medians and quantiles that ignore NaN, so that rows differ in the number of elements. Composed of `select_each`.

use mxnet_tensor::{Dims, Scalar};
use num_complex::Complex;
use smallvec::SmallVec;

use super::quantile::{
    DISCRETE, MEDIAN, QUANTILE, Rows, bracket, median, quantile, quantile_dtype,
};
use super::sort::argsort;
use super::statistics::SELECT_EACH;
use crate::args::Attrs;
use crate::elementwise::arithmetic::{FLOOR_DIVIDE, MAXIMUM, MINIMUM, SUBTRACT};
use crate::elementwise::comparison::{EQUAL, LESS};
use crate::elementwise::logic::LOGICAL_NOT;
use crate::elementwise::select::choose;
use crate::elementwise::special::ISNAN;
use crate::error::Result;
use crate::index::{gather_along, take};
use crate::invoke::invoke1;
use crate::opdef::{Cpu, OpDef, Probe};
use crate::shape::{concatenate, narrow};
use crate::{Array, creation};

/// The middle of the sorted elements that are not NaN.
pub static NANMEDIAN: OpDef = OpDef {
    name: "nanmedian",
    params: MEDIAN.params,
    doc: "Middle of the sorted elements over `axis` (all axes for None) that are not NaN, the mean of the two middle ones if their number is even. \
        Integers become the default float. NaN if all elements are NaN.",
    cpu: Cpu::Composite(|context| {
        let x = context.input(0);
        if !x.dtype().is_inexact() {
            return median(context);
        }
        let rows = Rows::new(context)?;
        let n = rows.len();
        if n == 0 {
            let nan = creation::full(&rows.shape(&[]), nan_of(x), x.dtype(), x.device())?;
            return context.done(rows.kept(&nan, 0)?);
        }
        let counts = counts(&rows.x)?;
        let half = |x: &Array| with_integer(x, &FLOOR_DIVIDE, 2);
        let low = half(&with_integer(
            &with_integer(&counts, &SUBTRACT, 1)?,
            &MAXIMUM,
            0,
        )?)?;
        let high = with_integer(&half(&counts)?, &MINIMUM, n as i64 - 1)?;
        let last = rows.x.ndim() - 1;
        let ends = concatenate(&[&low, &high], last)?;
        let found = match x.dtype().is_complex() {
            true => gather_along(
                &rows.x,
                &gather_along(&argsort(&rows.x)?, &ends, last)?,
                last,
            )?,
            false => invoke1(&SELECT_EACH, &[&rows.x, &ends], &Attrs::none())?,
        };
        // The sum of one element and itself can overflow.
        let single = rows.shape(&[]);
        let first = narrow(&found, last, 0, 1)?.reshape(&single)?;
        let is_one = low.binary(&EQUAL, &high)?.reshape(&single)?;
        let middle = choose(&is_one, &first, &found.mean(Some(&[-1]), false)?)?;
        context.done(rows.kept(&middle, 0)?)
    }),
    probe: Probe::calls(&[
        "f((3, 5))",
        "np.where(np.arange(20).reshape(4, 5) % 4 == 0, np.nan, f((4, 5))), 1",
        "f((2, 3, 4)), (2, 0), True",
        "i((3, 4), 9), 0",
    ])
    .against("lambda a, axis=None, keepdims=False: numpy.nanmedian(a, axis, keepdims=keepdims)")
    .ulp(2),
    ..OpDef::COMPOSITE
};

/// Quantiles of the elements that are not NaN.
pub static NANQUANTILE: OpDef = OpDef {
    name: "nanquantile",
    params: QUANTILE.params,
    doc: "Quantiles of the probabilities `q` over `axis` (all axes for None) of the elements that are not NaN: of shape (len(q), ...); NaN if all \
        are NaN. Otherwise as `quantile`. Outside of traced functions the call waits for the numbers of elements.",
    cpu: Cpu::Composite(|context| {
        let x = context.input(0);
        let probabilities = context.floats("q");
        if !x.dtype().is_float() || probabilities.is_empty() {
            return quantile(context);
        }
        if let Some(wrong) = probabilities.iter().find(|q| !(0.0..=1.0).contains(*q)) {
            let problem = format!("`q` must lie in [0, 1], found {wrong}");
            return Err(context.value_error(problem));
        }
        let (rows, method) = (Rows::new(context)?, context.str("method"));
        let dtype = quantile_dtype(context, method)?.unwrap_or(x.dtype());
        if rows.x.is_empty() {
            let shape = rows.shape(&[probabilities.len()]);
            let nan = creation::full(&shape, Scalar::F64(f64::NAN), dtype, x.device())?;
            return context.done(rows.kept(&nan, 1)?);
        }
        let (k, last) = (probabilities.len(), rows.x.ndim() - 1);
        let brackets = |numbers: &[i64], lead: &[usize]| -> Result<(Array, Array)> {
            let (mut ranks, mut parts) = (Vec::new(), Vec::new());
            for &n in numbers {
                for &q in probabilities {
                    let (low, high, part) = match n {
                        0 => (0, 0, 0.0),
                        n => bracket(method, n as usize, q),
                    };
                    ranks.extend([low as i64, high as i64]);
                    parts.push(part);
                }
            }
            let shape = |len: usize| -> Dims { lead.iter().copied().chain([len]).collect() };
            let ranks = Array::from_slice(&ranks, &shape(2 * k))?.to_device(x.device())?;
            let parts = Array::from_slice(&parts, &shape(k))?.to_device(x.device())?;
            Ok((ranks, parts.astype(dtype)?))
        };
        let (number, lead) = (counts(&rows.x)?, &rows.x.shape()[..last]);
        let (ranks, parts) = match number.is_abstract() {
            false => brackets(&number.to_vec()?, lead)?,
            // While a function is traced, the numbers of elements are not known: a table has the ranks for each possible number.
            true => {
                let all: Vec<i64> = (0..=rows.len() as i64).collect();
                let (ranks, parts) = brackets(&all, &[all.len()])?;
                let number = number.reshape(lead)?;
                (take(&ranks, &number, 0, "clip")?, take(&parts, &number, 0, "clip")?)
            }
        };
        let found = invoke1(&SELECT_EACH, &[&rows.x, &ranks], &Attrs::none())?.astype(dtype)?;
        let single = rows.shape(&[1]);
        let is_empty = number.with_scalar(&EQUAL, 0.0)?.reshape(&single)?;
        let nan = creation::full(&[], Scalar::F64(f64::NAN), dtype, x.device())?;
        let mut quantiles = Vec::new();
        for i in 0..k {
            let column = |x: &Array, at: usize| narrow(x, last, at, at + 1)?.reshape(&single);
            let part = column(&parts, i)?;
            let (low, high) = (column(&found, 2 * i)?, column(&found, 2 * i + 1)?);
            let quantile = match DISCRETE.contains(&method) {
                // The parts are 0 and 1.
                true => choose(&part.with_scalar(&EQUAL, 1.0)?, &high, &low)?,
                false => between_each(&low, &high, &part)?,
            };
            // NaN is inserted by selection: a product with NaN would turn the gradient, which is 0, into NaN.
            quantiles.push(choose(&is_empty, &nan, &quantile)?);
        }
        let all = match &quantiles[..] {
            [one] => one.clone(),
            several => concatenate(&several.iter().collect::<SmallVec<[&Array; 4]>>(), 0)?,
        };
        context.done(rows.kept(&all, 1)?)
    }),
    probe: Probe::calls(&[
        "f((3, 5)), (0.25, 0.5)",
        "np.where(np.arange(20).reshape(4, 5) % 4 == 0, np.nan, f((4, 5))), (0.1, 0.75), 1",
        "np.where(np.arange(20).reshape(4, 5) % 3 == 0, np.nan, f((4, 5))), (0.4,), 0, 'nearest'",
        "f((2, 3, 4)), (0.0, 0.3, 1.0), (2, 0), 'hazen', True",
        "i((3, 4), 9), (0.4, 0.6), 0, 'averaged_inverted_cdf'",
    ])
    .against("lambda a, q, axis=None, method='linear', keepdims=False: numpy.nanquantile(a, list(q), axis, method=method, keepdims=keepdims)")
    .ulp(16),
    ..OpDef::COMPOSITE
};

/// The number of elements of each row that are not NaN, int64.
fn counts(rows: &Array) -> Result<Array> {
    rows.unary(&ISNAN)?
        .unary(&LOGICAL_NOT)?
        .sum(Some(&[-1]), true)
}

fn with_integer(x: &Array, op: &'static OpDef, value: i64) -> Result<Array> {
    x.binary(op, &Array::weak_scalar(Scalar::I64(value))?)
}

fn nan_of(x: &Array) -> Scalar {
    match x.dtype().is_complex() {
        true => Scalar::C128(Complex::new(f64::NAN, f64::NAN)),
        false => Scalar::F64(f64::NAN),
    }
}

/// Linear interpolation: `low` where `part` is 0, `high` where it is 1, exact at both ends.
fn between_each(low: &Array, high: &Array, part: &Array) -> Result<Array> {
    let step = high.sub(low)?;
    let one = Array::weak_scalar(Scalar::F64(1.0))?;
    let near_low = low.add(&step.mul(part)?)?;
    let near_high = high.sub(&step.mul(&one.sub(part)?)?)?;
    choose(&part.with_scalar(&LESS, 0.5)?, &near_low, &near_high)
}
