//! Weighted means, covariances and correlations. Composed of sums and products.

use mxnet_tensor::{
    DType, Dims, Operand, Promotion, Scalar, normalize_axis, promotion, result_type,
};
use num_complex::Complex;
use smallvec::SmallVec;

use crate::args::{Attrs, Param, ParamKind, Value};
use crate::context::{CallContext, CompositeContext};
use crate::elementwise::comparison::{LESS, NOT_EQUAL};
use crate::elementwise::explog::SQRT;
use crate::elementwise::parts::IMAG;
use crate::elementwise::rounding::RINT;
use crate::elementwise::select::CLIP;
use crate::error::Result;
use crate::index::DIAGONAL;
use crate::invoke::{invoke_with, invoke1, only};
use crate::mode::Flags;
use crate::opdef::{Amp, Cpu, OpDef, Probe, Warned};
use crate::reduce::fold::{inexact, is_any};
use crate::reduce::masked::empty;
use crate::shape::{concatenate, narrow};
use crate::{Array, Outputs, Tuple, creation, fp_errors, mode};

/// Weighted mean.
pub static AVERAGE: OpDef = OpDef {
    name: "average",
    params: &[
        Param::array("a"),
        Param::reduced("axis"),
        Param::optional_array("weights"),
        Param::bool("returned", false),
        Param::bool("keepdims", false),
    ],
    doc: "Weighted mean over `axis` (all axes for None): sums of elements times `weights` (of the shape of `a`, or of its shape along `axis`), \
        divided by the sums of the weights. With `returned` the sums of the weights are returned too. Weights that sum to 0 give NaN or infinity.",
    warns: Some(|context| match context.opt(1) {
        Some(_) => Ok(None),
        None => empty(context),
    }),
    cpu: Cpu::Composite(average),
    probe: Probe::calls(&[
        "f((3, 4))",
        "f((3, 4)), 1, f((4,))",
        "f((3, 4)), None, f((3, 4)), True",
        "f((2, 3, 4)), (2, 0), f((4, 2)), False, keepdims=True",
        "i((3, 4), 9), 0, np.array([1, 2, 3])",
    ])
    .against("np.average")
    .within(0.25..2.0)
    .ulp(16),
    ..OpDef::COMPOSITE
};

/// Covariance matrix.
pub static COV: OpDef = OpDef {
    name: "cov",
    params: &[
        Param::array("m"),
        Param::optional_array("y"),
        Param::bool("rowvar", true),
        Param::bool("bias", false),
        Param::optional("ddof", ParamKind::Int),
        Param::optional_array("fweights"),
        Param::optional_array("aweights"),
        Param::optional("dtype", ParamKind::DType).keyword(),
    ],
    doc: "Covariance matrix of the rows of `m` (columns if `rowvar` is false) and of `y`: products of distances from the mean, divided by the number \
          of observations less `ddof` (1, or 0 with `bias`). `fweights` are the numbers of occurrences of the observations, `aweights` their \
          weights. Computed in `dtype`.",
    cpu: Cpu::Composite(|context| context.done(covariance(context)?)),
    warns: Some(no_freedom),
    probe: Probe::calls(&[
        "f((3, 8))",
        "f((8,))",
        "f((8, 2)), f((8, 1)), False",
        "f((2, 8)), None, True, True",
        "f((2, 4)), None, True, False, 1, np.array([1, 2, 3, 1])",
        "f((2, 4)), None, True, False, None, None, np.array([0.5, 1.0, 0.25, 2.0])",
        "f((2, 4)), None, True, False, 0, np.array([1, 2, 3, 1]), np.array([0.5, 1.0, 0.25, 2.0])",
        "c((2, 5))",
    ])
    .against("np.cov")
    .ulp(64),
    amp: Amp::WidenToF32,
    ..OpDef::COMPOSITE
};

/// Correlation coefficients.
pub static CORRCOEF: OpDef = OpDef {
    name: "corrcoef",
    params: &[
        Param::array("x"),
        Param::optional_array("y"),
        Param::bool("rowvar", true),
        Param::optional("dtype", ParamKind::DType).keyword(),
    ],
    doc: "Pearson's correlation coefficients of the rows of `x` (columns if `rowvar` is false) and of `y`: covariances over the products of standard \
          deviations, in [-1, 1].",
    cpu: Cpu::Composite(correlations),
    warns: Some(no_freedom),
    probe: Probe::calls(&[
        "f((3, 8))",
        "f((8,))",
        "f((8, 2)), f((8, 1)), False",
        "c((2, 5))",
    ])
    .against("np.corrcoef")
    .ulp(64),
    amp: Amp::WidenToF32,
    ..OpDef::COMPOSITE
};

fn average(context: &CompositeContext) -> Result<Outputs> {
    let (a, axes, keepdims) = (
        context.input(0),
        context.opt_ints("axis"),
        context.bool("keepdims"),
    );
    // An axis out of bounds is an error of this operator, not of the sums below.
    context.axes("axis", 0)?;
    let Some(weights) = context.opt(1) else {
        let mean = inexact(a)?.mean(axes, keepdims)?;
        if !context.bool("returned") {
            return context.done(mean);
        }
        let number = Scalar::I64((a.len() / mean.len().max(1)) as i64);
        let number = creation::full(mean.shape(), number, mean.dtype(), mean.device())?;
        return Ok([mean, number].into_iter().collect());
    };
    let mut scales = along(context, weights)?;
    if promotion() == Promotion::NumPy && a.dtype().is_inexact() {
        let operands = [Operand::Array(a.dtype()), Operand::Array(scales.dtype())];
        scales = scales.astype(result_type(&operands, promotion()))?;
    }
    let (values, scales) = (inexact(a)?, inexact(&scales)?);
    // Every element is counted: weights along some axes are repeated over the others.
    let total = scales.broadcast_to(values.shape())?.sum(axes, keepdims)?;
    let mean = values.mul(&scales)?.sum(axes, keepdims)?.div(&total)?;
    if !context.bool("returned") {
        return context.done(mean);
    }
    let total = total.astype(mean.dtype())?;
    Ok([mean, total].into_iter().collect())
}

/// Weights with the shape of `a`, or of its shape along `axis`, shaped to broadcast with it.
fn along(context: &CompositeContext, weights: &Array) -> Result<Array> {
    let a = context.input(0);
    if weights.shape() == a.shape() {
        return Ok(weights.clone());
    }
    let Some(given) = context.opt_ints("axis") else {
        return Err(context.dtype_error(format!(
            "Axis must be specified when shapes of a and weights differ, found {} and {}",
            Tuple(a.shape()),
            Tuple(weights.shape())
        )));
    };
    let axes = (given.iter())
        .map(|&axis| Ok(normalize_axis(axis as isize, a.ndim())?))
        .collect::<Result<SmallVec<[usize; 4]>>>()?;
    let expected: Dims = axes.iter().map(|&axis| a.shape()[axis]).collect();
    if weights.shape() != &expected[..] {
        return Err(context.shape_error(format!(
            "Shape of weights must be consistent with shape of a along specified axis: {} along {}, found {}",
            Tuple(&expected),
            Tuple(given),
            Tuple(weights.shape())
        )));
    }
    let mut order: SmallVec<[i64; 4]> = (0..axes.len() as i64).collect();
    order.sort_by_key(|&i| axes[i as usize]);
    let ordered = match order.is_sorted() {
        true => weights.clone(),
        false => weights.transpose(Some(&order))?,
    };
    let shape: Dims = (a.shape().iter().enumerate())
        .map(|(axis, &n)| if axes.contains(&axis) { n } else { 1 })
        .collect();
    ordered.reshape(&shape)
}

/// The observations with variables as rows.
fn observations(context: &CompositeContext, m: &Array) -> Result<Array> {
    let x = inexact(m)?;
    let dtype = match context.dtype("dtype") {
        None if promotion() == Promotion::NumPy => {
            let operands = [Operand::Array(x.dtype()), Operand::Array(DType::F64)];
            result_type(&operands, promotion())
        }
        dtype => dtype.unwrap_or(x.dtype()),
    };
    let x = x.astype(dtype)?;
    if x.ndim() > 2 {
        return Err(context.shape_error(format!("an array has 1 or 2 axes, found {}", x.ndim())));
    }
    match x.ndim() {
        2 if context.bool("rowvar") => Ok(x),
        2 => x.transpose(None),
        _ => x.reshape(&[1, x.len()]),
    }
}

/// The weights of the observations, and the divisor of the products of deviations that follows from them.
struct Weights {
    each: Array,
    total: Array,
    divisor: Array,
}

/// Whether the call is of `cov`: `corrcoef` has no parameters for weights, `bias` and `ddof`.
fn takes_weights(context: &CallContext) -> bool {
    context.inputs.len() > 2
}

fn degrees_lost(context: &CallContext) -> i64 {
    match takes_weights(context) {
        true => context
            .opt_int("ddof")
            .unwrap_or(i64::from(!context.bool("bias"))),
        false => 1,
    }
}

fn weights(context: &CallContext, n: usize) -> Result<Option<Weights>> {
    if !takes_weights(context) {
        return Ok(None);
    }
    let counts = match context.opt(2) {
        Some(counts) => {
            check_weights(context, counts, n, "fweights")?;
            let is_fractional = counts.dtype().is_inexact()
                && is_any(&counts.binary(&NOT_EQUAL, &counts.unary(&RINT)?)?)?;
            if is_fractional {
                let found = counts.dtype().name();
                return Err(
                    context.dtype_error(format!("`fweights` must be integers, found {found}"))
                );
            }
            Some(inexact(counts)?)
        }
        None => None,
    };
    let scales = match context.opt(3) {
        Some(scales) => {
            check_weights(context, scales, n, "aweights")?;
            Some(inexact(scales)?)
        }
        None => None,
    };
    let each = match (&counts, &scales) {
        (Some(counts), Some(scales)) => counts.mul(scales)?,
        (Some(one), None) | (None, Some(one)) => one.clone(),
        (None, None) => return Ok(None),
    };
    let total = each.sum(None, false)?;
    let ddof = degrees_lost(context) as f64;
    let divisor = match &scales {
        _ if ddof == 0.0 => total.clone(),
        None => total.shift(-ddof)?,
        Some(scales) => {
            let lost = each.mul(scales)?.sum(None, false)?.scale(ddof)?;
            total.sub(&lost.div(&total)?)?
        }
    };
    Ok(Some(Weights {
        each,
        total,
        divisor,
    }))
}

fn check_weights(context: &CallContext, weights: &Array, n: usize, name: &str) -> Result<()> {
    if weights.ndim() > 1 {
        let problem = format!("`{name}` must have 1 axis, found {}", weights.ndim());
        return Err(context.shape_error(problem));
    }
    if weights.shape() != [n] {
        let problem = format!(
            "`{name}` must have {n} elements, as many as there are observations, found {}",
            weights.len()
        );
        return Err(context.shape_error(problem));
    }
    if is_any(&weights.with_scalar(&LESS, 0.0)?)? {
        return Err(context.value_error(format!("`{name}` must not be negative")));
    }
    Ok(())
}

/// Number of observations; `None` if `m` has too many axes.
fn num_observations(context: &CallContext) -> Option<usize> {
    match context.shape(0) {
        [] => Some(1),
        [n] => Some(*n),
        [rows, columns] => Some(if context.bool("rowvar") {
            *columns
        } else {
            *rows
        }),
        _ => None,
    }
}

/// NumPy's warning for a covariance without degrees of freedom. Waits for weights, if there are any.
fn no_freedom(context: &CallContext) -> Result<Option<Warned>> {
    let Some(n) = num_observations(context) else {
        return Ok(None);
    };
    let is_empty = context.opt(1).is_none() && context.shape(0).len() == 2 && {
        let [rows, columns] = [context.shape(0)[0], context.shape(0)[1]];
        (if context.bool("rowvar") {
            rows
        } else {
            columns
        }) == 0
    };
    let is_weighted =
        takes_weights(context) && (context.opt(2).is_some() || context.opt(3).is_some());
    let none_left = match is_weighted {
        _ if is_empty => false,
        false => n as i64 <= degrees_lost(context),
        true if Flags::current().is_stacked() => false,
        true => fp_errors::unwatched(|| -> Result<bool> {
            let _scope = mode::Scope::enter(false, mode::is_training());
            match weights(context, n)? {
                Some(weights) => Ok(weights.divisor.astype(DType::F64)?.to_vec::<f64>()?[0] <= 0.0),
                None => Ok(false),
            }
        })?,
    };
    Ok(none_left.then_some(Warned::Runtime("Degrees of freedom <= 0 for slice")))
}

fn covariance(context: &CompositeContext) -> Result<Array> {
    let mut x = observations(context, context.input(0))?;
    match context.opt(1) {
        Some(y) => {
            let y = observations(context, y)?;
            if y.shape()[1] != x.shape()[1] {
                let (given, found) = (x.shape()[1], y.shape()[1]);
                return Err(context.shape_error(format!(
                    "`y` must have {given} observations, as many as the first array, found {found}"
                )));
            }
            x = concatenate(&[&x, &y], 0)?;
        }
        None if x.shape()[0] == 0 => return creation::zeros(&[0, 0], x.dtype(), x.device()),
        None => {}
    }
    let n = x.shape()[1];
    if n > 1 {
        // A constant that all observations share is subtracted exactly: its rounding would count as variance, and may overflow.
        x = x.sub(&narrow(&x, 1, 0, 1)?)?;
    }
    let product =
        |weighted: &Array, centred: &Array| weighted.matmul(&centred.transpose(None)?.conj()?);
    let result = match weights(context, n)? {
        None => {
            let centred = x.sub(&x.mean(Some(&[1]), true)?)?;
            let product = product(&centred, &centred)?;
            match n as i64 - degrees_lost(context) {
                left if left > 0 => product.div(&Array::weak_scalar(Scalar::F64(left as f64))?)?,
                _ => product.scale(f64::INFINITY)?,
            }
        }
        Some(weights) => {
            let mean = x
                .mul(&weights.each)?
                .sum(Some(&[1]), true)?
                .div(&weights.total)?;
            let centred = x.sub(&mean)?;
            let product = product(&centred.mul(&weights.each)?, &centred)?;
            let none = Array::weak_scalar(Scalar::F64(0.0))?;
            // The product's dtype decides, as if the divisor were a number.
            let divisor = weights.divisor.maximum(&none)?.astype(product.dtype())?;
            product.div(&divisor)?
        }
    };
    match result.len() {
        1 => result.reshape(&[]),
        _ => Ok(result),
    }
}

fn correlations(context: &CompositeContext) -> Result<Outputs> {
    let c = covariance(context)?;
    if c.ndim() == 0 {
        return context.done(c.div(&c)?);
    }
    let k = c.shape()[0];
    let attrs: Attrs = [Value::Int(0), Value::Int(0), Value::Int(1)]
        .into_iter()
        .collect();
    let deviations = invoke1(&DIAGONAL, &[&c], &attrs)?
        .real_part()?
        .unary(&SQRT)?;
    let scaled = c
        .div(&deviations.reshape(&[k, 1])?)?
        .div(&deviations.reshape(&[1, k])?)?;
    if !scaled.dtype().is_complex() {
        return context.done(clipped(&scaled)?);
    }
    let unit = Array::weak_scalar(Scalar::C128(Complex::new(0.0, 1.0)))?;
    let imaginary = clipped(&scaled.unary(&IMAG)?)?.mul(&unit)?;
    context.done(clipped(&scaled.real_part()?)?.add(&imaginary)?)
}

/// Elements clipped to [-1, 1].
fn clipped(x: &Array) -> Result<Array> {
    let (low, high) = (
        Array::weak_scalar(Scalar::I64(-1))?,
        Array::weak_scalar(Scalar::I64(1))?,
    );
    let bounds = [Some(x), Some(&low), Some(&high), None, None];
    only(&CLIP, invoke_with(&CLIP, &bounds, &Attrs::none())?)
}
