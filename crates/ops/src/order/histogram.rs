//! Histograms: edges, and counts of real numbers. Composed of bin numbers and counts.

use mxnet_tensor::{DType, Kind, Promotion, Scalar, promotion};

use super::bin_rules::number_of_bins;
use super::bins::{BIN_COUNTS, BIN_NUMBERS};
use super::search::BINCOUNT;
use crate::args::{Attrs, Param, ParamKind, Value};
use crate::context::CompositeContext;
use crate::creation::LINSPACE;
use crate::elementwise::comparison::GREATER_EQUAL;
use crate::error::Result;
use crate::invoke::invoke1;
use crate::opdef::{Cpu, Grad, OpDef, Probe};
use crate::reduce::{MAX, MIN, is_any};
use crate::shape::narrow;
use crate::{Array, Outputs, Tuple};

/// Edges of bins of equal width.
pub static HISTOGRAM_BIN_EDGES: OpDef = OpDef {
    name: "histogram_bin_edges",
    params: &[
        Param::array("a"),
        Param::int("bins", 10),
        Param::optional("range", ParamKind::Floats),
        Param::optional("rule", ParamKind::Str),
    ],
    doc: "The `bins + 1` edges of `bins` bins of equal width over `range` (the first and the last edge). Without `range` they span the numbers of \
          `a`, and the call waits for these. The dtype is that of `a`; integers give the default float. A `rule` ('auto', 'fd', 'doane', 'scott', \
          'stone', 'rice', 'sturges' or 'sqrt') computes the number of bins for real numbers.",
    cpu: Cpu::Composite(|context| context.done(even_edges(context)?)),
    grad: Grad::Stop("edges depend on two elements, which are read"),
    probe: Probe::calls(&[
        "f((40,)), 5",
        "f((3, 4))",
        "i((30,), 9), 4, (2.0, 8.0)",
        "f((0,)), 3",
        "np.array([2.0, 2.0]), 2",
        "f((60,)), 1, None, 'auto'",
        "c((9,)), 4",
    ])
    .against("lambda a, bins=10, range=None, rule=None: numpy.histogram_bin_edges(a, rule or bins, range)")
    .ulp(4),
    ..OpDef::COMPOSITE
};

/// Number of elements in each bin, and the edges of the bins.
pub static HISTOGRAM: OpDef = OpDef {
    name: "histogram",
    params: &[
        Param::array("a"),
        Param::int("bins", 10),
        Param::optional("range", ParamKind::Floats),
        Param::bool("density", false),
        Param::optional_array("weights"),
        Param::optional_array("edges"),
        Param::optional("rule", ParamKind::Str),
    ],
    doc: "Number of the real numbers of `a` in each bin, int64, or the sums of their real `weights`; then the edges: those of `histogram_bin_edges`, \
        or the given ascending `edges`. `density` divides by the sum and by the widths. A bin includes its left edge, the last one also its right \
        edge.",
    cpu: Cpu::Composite(histogram),
    grad: Grad::Stop("counts are integers, and edges are not differentiated"),
    probe: Probe::calls(&[
        "f((40,)), 5",
        "f((3, 4)), 4, (-1.0, 0.5)",
        "f((40,)), 5, (-1.0, 1.0), True",
        "f((40,)), 5, None, False, f((40,))",
        "i((30,), 9), 3, None, False, i((30,), 5)",
    ])
    .against("np.histogram")
    .ulp(64),
    ..OpDef::COMPOSITE
};

fn even_edges(context: &CompositeContext) -> Result<Array> {
    let a = context.input(0);
    let (first, last) = outer_edges(context)?;
    let bins = match context.is_none("rule") {
        true => context.int("bins"),
        false => number_of_bins(context, context.str("rule"), (first, last))?,
    };
    if bins < 1 {
        let problem = format!("`bins` must be positive, when an integer, found {bins}");
        return Err(context.value_error(problem));
    }
    let Some(num_edges) = bins.checked_add(1) else {
        return Err(context.value_error(format!("too many `bins`: {bins}")));
    };
    let is_float = a.dtype().is_inexact();
    let dtype = match is_float {
        true => a.dtype(),
        false => mxnet_tensor::default_float(),
    };
    let attrs: Attrs = [
        Value::Int(num_edges),
        Value::Bool(true),
        Value::Bool(false),
        Value::DType(dtype),
        Value::Int(0),
        Value::Device(a.device()),
    ]
    .into_iter()
    .collect();
    let ends = [Array::weak_scalar(first)?, Array::weak_scalar(last)?];
    let edges = invoke1(&LINSPACE, &[&ends[0], &ends[1]], &attrs)?;
    if is_float || promotion() == Promotion::NumPy {
        let n = edges.len();
        let (left, right) = (narrow(&edges, 0, 0, n - 1)?, narrow(&edges, 0, 1, n)?);
        if is_any(&left.binary(&GREATER_EQUAL, &right)?)? {
            return Err(context.value_error(format!(
                "Too many bins for data range. Cannot create {bins} finite-sized bins between {} and {}",
                displayed_edge(first),
                displayed_edge(last)
            )));
        }
    }
    Ok(edges)
}

/// The first and the last edge.
fn outer_edges(context: &CompositeContext) -> Result<(Scalar, Scalar)> {
    let a = context.input(0);
    let (first, last) = match context.floats("range") {
        [] if a.is_empty() => (Scalar::I64(0), Scalar::I64(1)),
        [] => {
            let attrs: Attrs = [Value::None, Value::Bool(false)].into_iter().collect();
            let (first, last) = (invoke1(&MIN, &[a], &attrs)?, invoke1(&MAX, &[a], &attrs)?);
            let (first, last) = (first.item()?, last.item()?);
            if !(is_finite(first) && is_finite(last)) {
                let (first, last) = (displayed_edge(first), displayed_edge(last));
                let problem = format!("autodetected range of [{first}, {last}] is not finite");
                return Err(context.value_error(problem));
            }
            (first, last)
        }
        &[first, last] => {
            if first > last {
                let problem = format!(
                    "max must be larger than min in range parameter, found ({first:?}, {last:?})"
                );
                return Err(context.value_error(problem));
            }
            if !(first.is_finite() && last.is_finite()) {
                let problem = format!("supplied range of [{first:?}, {last:?}] is not finite");
                return Err(context.value_error(problem));
            }
            (Scalar::F64(first), Scalar::F64(last))
        }
        other => {
            let problem = format!("`range` must have 2 numbers, found {}", other.len());
            return Err(context.value_error(problem));
        }
    };
    match first == last {
        true => Ok((shifted_edge(first, -0.5), shifted_edge(last, 0.5))),
        false => Ok((first, last)),
    }
}

fn is_finite(x: Scalar) -> bool {
    match x {
        Scalar::C128(z) => z.re.is_finite() && z.im.is_finite(),
        other => other.as_f64().is_finite(),
    }
}

fn shifted_edge(x: Scalar, by: f64) -> Scalar {
    match x {
        Scalar::C128(mut z) => {
            z.re += by;
            Scalar::C128(z)
        }
        other => Scalar::F64(other.as_f64() + by),
    }
}

fn displayed_edge(x: Scalar) -> String {
    match x {
        Scalar::C128(z) => format!("({:?}{:+?}j)", z.re, z.im),
        other => format!("{:?}", other.as_f64()),
    }
}

fn histogram(context: &CompositeContext) -> Result<Outputs> {
    let a = context.input(0);
    let (edges, is_even) = match context.opt(2) {
        Some(edges) => (edges.clone(), false),
        None => (even_edges(context)?, true),
    };
    let attrs: Attrs = [Value::Bool(is_even)].into_iter().collect();
    let counts = match context.opt(1) {
        None => invoke1(&BIN_COUNTS, &[a, &edges], &attrs)?,
        Some(weights) => {
            if weights.shape() != a.shape() {
                return Err(context.shape_error(format!(
                    "weights should have the same shape as a, found {} and {}",
                    Tuple(weights.shape()),
                    Tuple(a.shape())
                )));
            }
            if weights.dtype().is_complex() {
                return Err(context.dtype_error("`weights` must be real"));
            }
            let numbers = invoke1(&BIN_NUMBERS, &[a, &edges], &attrs)?.reshape(&[a.len()])?;
            let scales = weights.reshape(&[a.len()])?;
            // Integers below 2^53 are added exactly.
            let scales = match scales.dtype().kind() {
                Kind::Float => scales,
                _ => scales.astype(DType::F64)?,
            };
            let minlength: Attrs = [Value::Int(edges.len() as i64 + 1)].into_iter().collect();
            let sums = invoke1(&BINCOUNT, &[&numbers, &scales], &minlength)?;
            narrow(&sums.astype(weights.dtype())?, 0, 1, edges.len())?
        }
    };
    let counts = match context.bool("density") {
        true => {
            let n = edges.len();
            let widths = narrow(&edges, 0, 1, n)?.sub(&narrow(&edges, 0, 0, n - 1)?)?;
            counts.div(&widths)?.div(&counts.sum(None, false)?)?
        }
        false => counts,
    };
    Ok([counts, edges].into_iter().collect())
}
