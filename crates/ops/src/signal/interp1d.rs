//! Linear interpolation of one-dimensional data (`np.interp`).
#![allow(unsafe_code)]

use mxnet_kernels::sequence::interpolate;
use mxnet_tensor::{DType, Dims, Promotion, Scalar, default_float, promotion};
use smallvec::SmallVec;

use crate::args::{Attrs, Param, ParamKind, Value};
use crate::autograd::GradContext;
use crate::batching::Batch;
use crate::context::CompositeContext;
use crate::elementwise::arithmetic::REMAINDER;
use crate::elementwise::comparison::{EQUAL, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL, NOT_EQUAL};
use crate::elementwise::logic::LOGICAL_AND;
use crate::elementwise::parts::{COMPLEX_OF, IMAG};
use crate::elementwise::select::choose;
use crate::error::Result;
use crate::index::{SCATTER_ALONG, gather_along};
use crate::invoke::invoke1;
use crate::launch::elem;
use crate::nn::operand::{compute, dense};
use crate::opdef::{Cost, Cpu, Grad, Grads, Keep, OpDef, Probe, Surface, one_of};
use crate::order::{SEARCH_ROWS, argsort};
use crate::shape::{concatenate, narrow};
use crate::types::promoted;
use crate::{Array, Outputs};

/// NumPy's `interp`.
pub static INTERP: OpDef = OpDef {
    name: "interp",
    surface: &[Surface::Np("interp")],
    params: &[
        Param::array("x"),
        Param::array("xp"),
        Param::array("fp"),
        Param::optional_array("left"),
        Param::optional_array("right"),
        Param::optional("period", ParamKind::Float),
    ],
    doc: "Linear interpolation between the points `(xp, fp)` at `x`, of the float dtype that the arguments promote to (with NumPy's promotion always \
        float64 or complex128). At NaN it is NaN.\n\nComputed in float64. Differentiable with respect to `x`, `xp` and `fp`; at a point the slope is \
        that of the line after it.",
    about: &[
        ("x", "Coordinates at which to interpolate."),
        (
            "xp",
            "Coordinates of the points, shape (n,), ascending unless `period` is given.",
        ),
        ("fp", "Their values, shape (n,), real or complex."),
        (
            "left",
            "The value before the first point; the first of `fp` for None.",
        ),
        (
            "right",
            "The value after the last point; the last of `fp` for None.",
        ),
        (
            "period",
            "Period of the coordinates; `left` and `right` have no effect then.",
        ),
    ],
    returns: &[("ndarray", "Of the shape of `x`.")],
    raises: &[(
        "ValueError",
        "If there are no points, `xp` and `fp` are not of one length and one axis, or `period` is 0.",
    )],
    example: "
        >>> np.interp([0.5, 3.0], [0, 1, 2], [0.0, 10.0, 30.0])
        array([ 5., 30.])
        >>> np.interp(3.0, [0, 1, 2], [0.0, 10.0, 30.0], right=-1.0)
        array(-1.)
        >>> np.interp([-0.5, 4.5], [0, 1, 2], [0.0, 10.0, 30.0], period=4)
        array([7.5, 5. ])
    ",
    cpu: Cpu::Composite(interp),
    probe: Probe::calls(&[
        "f((3, 4)), np.arange(5.0) - 2, f((5,))",
        "np.array([inf, -inf, nan, 1.0, 0.5]), np.arange(4), i((4,), 9)",
        "f((6,)), np.array([-1.0, 1.0]), c((2,))",
        "f((6,)), np.array([-0.5, 0.5]), f((2,)), -7.0, 5.0",
        "f((6,)), np.array([0.5, 0.2, 0.9]), f((3,)), None, None, 1.5",
        "f((3,)), np.array([0.0]), np.array([2.0])",
        "f(()), np.arange(3), f((3,))",
    ])
    .ulp(16),
    ..OpDef::COMPOSITE
};

fn interp(context: &CompositeContext) -> Result<Outputs> {
    let (x, xp, fp) = (context.input(0), context.input(1), context.input(2));
    if xp.ndim() != 1 || fp.ndim() != 1 {
        return Err(context.shape_error(format!(
            "Data points must be 1-D sequences, found {} and {} axes",
            xp.ndim(),
            fp.ndim()
        )));
    }
    if xp.len() != fp.len() {
        return Err(context.shape_error(format!(
            "fp and xp are not of the same length: {} and {}",
            fp.len(),
            xp.len()
        )));
    }
    if xp.is_empty() {
        return Err(context.value_error("array of sample points is empty"));
    }
    if x.dtype().is_complex() || xp.dtype().is_complex() {
        return Err(context.dtype_error("coordinates must be real"));
    }
    let found = promoted(context.inputs);
    let dtype = match promotion() {
        Promotion::NumPy if found.is_complex() => DType::C128,
        Promotion::NumPy => DType::F64,
        Promotion::Mx if found.is_inexact() => found,
        Promotion::Mx => default_float(),
    };
    let real = compute(dtype.real());
    let (mut x, mut xp, mut fp) = (x.astype(real)?, xp.astype(real)?, fp.clone());
    let (mut left, mut right) = (context.opt(3), context.opt(4));
    if let Some(period) = context.opt_float("period") {
        if period == 0.0 {
            return Err(context.value_error("period must be a non-zero value"));
        }
        (left, right) = (None, None);
        let period = period.abs();
        (x, xp) = (
            x.with_scalar(&REMAINDER, period)?,
            xp.with_scalar(&REMAINDER, period)?,
        );
        let order = argsort(&xp.detach())?;
        (xp, fp) = (gather_along(&xp, &order, 0)?, gather_along(&fp, &order, 0)?);
        // Periodic data: repeats the last point before the first, and the first after the last.
        let n = xp.len();
        let (first, last) = (
            narrow(&xp, 0, 0, 1)?.shift(period)?,
            narrow(&xp, 0, n - 1, n)?.shift(-period)?,
        );
        xp = concatenate(&[&last, &xp, &first], 0)?;
        fp = concatenate(
            &[&narrow(&fp, 0, n - 1, n)?, &fp, &narrow(&fp, 0, 0, 1)?],
            0,
        )?;
    }
    let one = |part: fn(&Array) -> Result<Array>| -> Result<Array> {
        let fp = part(&fp)?.astype(real)?;
        let mut y = x_between(&x, &xp, &fp)?;
        if let Some(left) = left {
            let first = narrow(&xp, 0, 0, 1)?.reshape(&[])?;
            y = choose(&x.binary(&LESS, &first)?, &part(left)?.astype(real)?, &y)?;
        }
        if let Some(right) = right {
            let last = narrow(&xp, 0, xp.len() - 1, xp.len())?.reshape(&[])?;
            y = choose(&x.binary(&GREATER, &last)?, &part(right)?.astype(real)?, &y)?;
        }
        Ok(y)
    };
    // Real and imaginary part separately, so that an infinity in one does not affect the other.
    let y = if dtype.is_complex() {
        let (re, im) = (one(Array::real_part)?, one(|x| x.unary(&IMAG))?);
        re.binary(&COMPLEX_OF, &im)?
    } else {
        one(|x| Ok(x.clone()))?
    };
    context.done(y.astype(dtype)?)
}

fn x_between(x: &Array, xp: &Array, fp: &Array) -> Result<Array> {
    invoke1(&INTERPOLATED, &[x, xp, fp], &Attrs::none())
}

/// Interpolation between points of one float dtype.
pub static INTERPOLATED: OpDef = OpDef {
    name: "interpolated",
    params: &[Param::array("x"), Param::array("xp"), Param::array("fp")],
    doc: "The values at `x` of the piecewise linear function through the points `(xp, fp)`, which is constant outside of them; all three float32, or \
        float64. Computed in float64.",
    infer: |context| {
        let dtype = context.dtype_of(0);
        let is_fit = |i: usize| context.dtype_of(i) == dtype && context.shape(i).len() == 1;
        if !matches!(dtype, DType::F32 | DType::F64) || !is_fit(1) || !is_fit(2) {
            return Err(context.dtype_error(
                "`x` and the two sequences must be float32 or float64, all the same",
            ));
        }
        if context.shape(1) != context.shape(2) || context.shape(1) == [0] {
            return Err(context
                .shape_error("`xp` and `fp` must have the same number of elements, at least 1"));
        }
        one_of(Dims::from_slice(context.shape(0)), dtype)
    },
    cpu: Cpu::Kernel(|context| {
        let x = dense(context.input(0), context.input(0).dtype(), context.threads)?;
        let (xp, fp) = (
            dense(context.input(1), DType::F64, context.threads)?,
            dense(context.input(2), DType::F64, context.threads)?,
        );
        // SAFETY: 1. points and values are dense float64 and live to the end of the call. 2. `x` is dense, of a dtype that the kernel takes, and of
        // the shape of the output (inference), which was allocated for this call. 3. there is at least one point (inference).
        unsafe {
            let points = |t: &mxnet_tensor::Tensor| {
                std::slice::from_raw_parts(t.data_ptr().cast_const().cast::<f64>(), t.len())
            };
            interpolate(
                context.threads,
                elem(x.dtype()),
                (points(&xp), points(&fp)),
                x.data_ptr(),
                x.len(),
                context.output(0).data_ptr(),
            );
        }
        Ok(())
    }),
    grad: Grad::Rule(Keep::INPUTS, slopes),
    cost: Cost::PerKiB(4000),
    probe: Probe::calls(&[
        "f((3, 4)), np.sort(f((5,))), f((5,))",
        "f((6,)), np.sort(f((2,))), f((2,))",
        "f((3,)), f((1,)), f((1,))",
    ])
    .against("np.interp")
    .ulp(4),
    batch: Batch::Rule(
        |context| match context.is_batched(1) || context.is_batched(2) {
            true => Err(context.refused()),
            false => context.call_with_first(0),
        },
    ),
    ..OpDef::DEFAULT
};

/// `y = y0 (1 - t) + y1 t` between the points around `x`, where `t = (x - x0) / (x1 - x0)`, clipped to 0..=1.
fn slopes(g: &GradContext) -> Result<Grads> {
    let (m, n) = (g.input(0).len(), g.input(1).len());
    let (x, xp, fp) = (g.input(0).reshape(&[m])?, g.input(1), g.input(2));
    let mut grads: Grads = SmallVec::from_iter([None, None, None]);
    let weak = |value: f64| Array::weak_scalar(Scalar::F64(value));
    let (zero, one) = (weak(0.0)?, weak(1.0)?);
    // Where `x` is NaN, all gradients are 0.
    let dy = choose(&x.binary(&EQUAL, &x)?, &g.dy(0).reshape(&[m])?, &zero)?;
    if n == 1 {
        grads[0] = Some(g.zeros(0)?);
        grads[1] = Some(g.zeros(1)?);
        grads[2] = Some(dy.sum(None, false)?.reshape(&[1])?);
        return Ok(grads);
    }
    let right: Attrs = [Value::Bool(true)].into_iter().collect();
    let (least, most) = (
        Array::weak_scalar(Scalar::I64(1))?,
        Array::weak_scalar(Scalar::I64(n as i64 - 1))?,
    );
    // The index of the point after `x`, at least 1; the point before it is its predecessor.
    let behind = invoke1(&SEARCH_ROWS, &[&xp.detach(), &x.detach()], &right)?;
    let behind = behind.maximum(&least)?.minimum(&most)?;
    let before = behind.sub(&least)?;
    let (x0, x1) = (gather_along(xp, &before, 0)?, gather_along(xp, &behind, 0)?);
    let (y0, y1) = (gather_along(fp, &before, 0)?, gather_along(fp, &behind, 0)?);
    let (first, last) = (
        narrow(&xp.detach(), 0, 0, 1)?,
        narrow(&xp.detach(), 0, n - 1, n)?,
    );
    let step = x1.sub(&x0)?;
    // Two points with equal `x` have no slope between them; `t` is 1 there.
    let step = choose(&step.binary(&NOT_EQUAL, &zero)?, &step, &one)?;
    let slope = y1.sub(&y0)?.div(&step)?;
    let inside = x
        .binary(&GREATER_EQUAL, &first)?
        .binary(&LOGICAL_AND, &x.binary(&LESS_EQUAL, &last)?)?;
    let inner = choose(&inside, &dy, &zero)?;
    if g.wants(0) {
        grads[0] = Some(inner.mul(&slope)?.reshape(g.shape(0))?);
    }
    if !g.wants(1) && !g.wants(2) {
        return Ok(grads);
    }
    let t = x.sub(&x0)?.div(&step)?;
    let t = choose(&x.binary(&GREATER_EQUAL, &last)?, &one, &t)?;
    let t = choose(&x.binary(&GREATER_EQUAL, &first)?, &t, &zero)?;
    let scatter_attrs: Attrs = [Value::Int(0), Value::from(&[n][..])].into_iter().collect();
    let spread = |dy: &Array| -> Result<Array> {
        let later = dy.mul(&t)?;
        let earlier = dy.sub(&later)?;
        let (earlier, later) = (
            invoke1(&SCATTER_ALONG, &[&earlier, &before], &scatter_attrs)?,
            invoke1(&SCATTER_ALONG, &[&later, &behind], &scatter_attrs)?,
        );
        earlier.add(&later)
    };
    if g.wants(1) {
        grads[1] = Some(spread(&inner.mul(&slope)?.neg()?)?);
    }
    if g.wants(2) {
        grads[2] = Some(spread(&dy)?);
    }
    Ok(grads)
}
