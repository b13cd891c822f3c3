//! Ranks of quantiles, for functions in Python whose rows differ in length.

use pyo3::prelude::*;

/// The ranks between which quantile `q` of `n` elements (at least 1) lies, and how far it is from the first one.
#[pyfunction]
pub fn quantile_bracket(method: &str, n: usize, q: f64) -> (usize, usize, f64) {
    mxnet::ops::order::bracket(method, n, q)
}
