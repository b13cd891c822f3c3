//! Rules for the number of bins of a histogram, from the elements. They are composed of operators and wait for values.
//!
//! Source: the estimators of `numpy.histogram_bin_edges`: Sturges 1926, Doane 1976, Scott 1979, Freedman and Diaconis 1981, Stone 1984.

use std::f64::consts::PI;

use mxnet_tensor::{DType, Kind, Scalar};

use super::bins::BIN_COUNTS;
use super::rows::SORT_ROWS;
use crate::Array;
use crate::args::{Attrs, Value};
use crate::context::CompositeContext;
use crate::creation::LINSPACE;
use crate::elementwise::comparison::{GREATER_EQUAL, LESS_EQUAL};
use crate::error::Result;
use crate::index::COMPRESS;
use crate::invoke::invoke1;
use crate::reduce::{MAX, MIN};
use crate::shape::narrow;

/// The names of the rules.
const RULES: [&str; 8] = [
    "auto", "doane", "fd", "rice", "scott", "sqrt", "stone", "sturges",
];

/// Number of bins between two edges by a rule. With the attribute `range`, elements outside do not count.
///
/// # Errors
/// [`crate::Error::Value`] for another rule, [`crate::Error::DType`] for complex numbers.
pub(super) fn number_of_bins(
    context: &CompositeContext,
    rule: &str,
    (first, last): (Scalar, Scalar),
) -> Result<i64> {
    if !RULES.contains(&rule) {
        return Err(context.value_error(format!(
            "'{rule}' is not a valid estimator for `bins`; there are {}",
            RULES.join(", ")
        )));
    }
    let a = context.input(0);
    if a.dtype().is_complex() {
        return Err(context.dtype_error("rules for `bins` need real numbers"));
    }
    let mut x = a.reshape(&[a.len()])?;
    if !context.floats("range").is_empty() {
        let is_from_first = x.binary(&GREATER_EQUAL, &Array::weak_scalar(first)?)?;
        x = compress(&is_from_first, &x)?;
        let is_to_last = x.binary(&LESS_EQUAL, &Array::weak_scalar(last)?)?;
        x = compress(&is_to_last, &x)?;
    }
    if x.is_empty() {
        return Ok(1);
    }
    let (first, last) = (first.as_f64(), last.as_f64());
    let width = match width(rule, &x.astype(DType::F64)?, (first, last))? {
        // The rule gives no width if the data have no spread, such as equal quartiles.
        width if width.is_nan() || width <= 0.0 => return Ok(1),
        width if a.dtype().kind() == Kind::Integer => width.max(1.0),
        width => width,
    };
    Ok(((last - first) / width).ceil().max(1.0) as i64)
}

fn compress(condition: &Array, x: &Array) -> Result<Array> {
    invoke1(
        &COMPRESS,
        &[condition, x],
        &[Value::None].into_iter().collect(),
    )
}

/// Width of a bin for the float64 elements `x`; 0 if the rule gives none.
fn width(rule: &str, x: &Array, edges: (f64, f64)) -> Result<f64> {
    let n = x.len() as f64;
    Ok(match rule {
        "sqrt" => spread(x)? / n.sqrt(),
        "sturges" => spread(x)? / (n.log2() + 1.0),
        "rice" => spread(x)? / (2.0 * n.cbrt()),
        "scott" => (24.0 * PI.sqrt() / n).cbrt() * deviation(x)?,
        "doane" => by_doane(x)?,
        "fd" => by_quartiles(x)?,
        "stone" => by_loss(x, edges)?,
        // The Freedman-Diaconis width, which is at least half the square-root width, or that of Sturges if smaller.
        _ => {
            let least = width("sqrt", x, edges)? / 2.0;
            by_quartiles(x)?.max(least).min(width("sturges", x, edges)?)
        }
    })
}

fn number(x: &Array) -> Result<f64> {
    Ok(x.item()?.as_f64())
}

fn spread(x: &Array) -> Result<f64> {
    let attrs: Attrs = [Value::None, Value::Bool(false)].into_iter().collect();
    Ok(number(&invoke1(&MAX, &[x], &attrs)?)? - number(&invoke1(&MIN, &[x], &attrs)?)?)
}

/// Distances from the mean.
fn centred(x: &Array) -> Result<Array> {
    x.sub(&x.mean(None, false)?)
}

fn deviation(x: &Array) -> Result<f64> {
    let centred = centred(x)?;
    Ok(number(&centred.mul(&centred)?.mean(None, false)?)?.sqrt())
}

/// Sturges' rule, corrected by the skewness.
fn by_doane(x: &Array) -> Result<f64> {
    let (n, deviation) = (x.len() as f64, deviation(x)?);
    if n <= 2.0 || deviation <= 0.0 {
        return Ok(0.0);
    }
    let unit = centred(x)?.scale(1.0 / deviation)?;
    let skew = number(&unit.mul(&unit)?.mul(&unit)?.mean(None, false)?)?;
    let error = (6.0 * (n - 2.0) / ((n + 1.0) * (n + 3.0))).sqrt();
    Ok(spread(x)? / (1.0 + n.log2() + (1.0 + skew.abs() / error).log2()))
}

/// Freedman-Diaconis: twice the interquartile range over the cube root of the number of elements.
fn by_quartiles(x: &Array) -> Result<f64> {
    let sorted = invoke1(
        &SORT_ROWS,
        &[x],
        &[Value::Bool(false)].into_iter().collect(),
    )?;
    let at = |k: usize| number(&narrow(&sorted, 0, k, k + 1)?.reshape(&[])?);
    let quantile = |q: f64| -> Result<f64> {
        let position = q * (x.len() - 1) as f64;
        let below = position as usize;
        let (lower, upper) = (at(below)?, at((below + 1).min(x.len() - 1))?);
        Ok(lower + (upper - lower) * (position - below as f64))
    };
    Ok(2.0 * (quantile(0.75)? - quantile(0.25)?) / (x.len() as f64).cbrt())
}

/// Stone's rule: the number of bins with the least estimated loss (leave-one-out cross-validation).
fn by_loss(x: &Array, (first, last): (f64, f64)) -> Result<f64> {
    let (n, spread) = (x.len() as f64, spread(x)?);
    if n <= 1.0 || spread == 0.0 {
        return Ok(0.0);
    }
    let ends = [
        Array::weak_scalar(Scalar::F64(first))?,
        Array::weak_scalar(Scalar::F64(last))?,
    ];
    let (mut least, mut best) = (f64::INFINITY, 1);
    for bins in 1..=(n.sqrt() as i64).max(100) {
        let attrs: Attrs = [
            Value::Int(bins + 1),
            Value::Bool(true),
            Value::Bool(false),
            Value::DType(DType::F64),
            Value::Int(0),
            Value::Device(x.device()),
        ]
        .into_iter()
        .collect();
        let edges = invoke1(&LINSPACE, &[&ends[0], &ends[1]], &attrs)?;
        let is_even: Attrs = [Value::Bool(true)].into_iter().collect();
        let counts = invoke1(&BIN_COUNTS, &[x, &edges], &is_even)?;
        let shares = counts.astype(DType::F64)?.scale(1.0 / n)?;
        let squares = number(&shares.mul(&shares)?.sum(None, false)?)?;
        let loss = (2.0 - (n + 1.0) * squares) / (spread / bins as f64);
        if loss < least {
            (least, best) = (loss, bins);
        }
    }
    Ok(spread / best as f64)
}
