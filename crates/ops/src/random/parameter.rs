//! Parameters of distributions: a number or an array each, and what they say about the samples' shape and dtype.

use mxnet_tensor::{DType, Device, Dims, broadcast_shapes, default_float};
use smallvec::SmallVec;

use super::reject::{CHECKED_PARAMETER, counts, gamma, holds};
use crate::Array;
use crate::args::{Attrs, Value};
use crate::creation::dims;
use crate::cx::CompositeCx;
use crate::error::Result;
use crate::interp::current_device;
use crate::invoke::invoke1;
use crate::opdef::OpDef;
use crate::types::promoted;

/// A parameter as it was given.
pub(super) enum Given {
    /// A Python number, or the default.
    Number(f64),
    /// An array.
    Elements(Array),
}

impl Given {
    /// The number; `None` for an array.
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Given::Number(x) => Some(*x),
            Given::Elements(_) => None,
        }
    }

    /// As an operand.
    pub(super) fn array(&self) -> Result<Array> {
        match self {
            Given::Number(x) => Array::weak_scalar(mxnet_tensor::Scalar::F64(*x)),
            Given::Elements(x) => Ok(x.clone()),
        }
    }
}

/// Parameter number `i`, or its default.
pub(super) fn given(cx: &CompositeCx, i: usize, default: f64) -> Result<Given> {
    let Some(x) = cx.opt(i) else {
        return Ok(Given::Number(default));
    };
    if x.dtype().is_complex() {
        return Err(cx.dtype_error("parameters of distributions are real"));
    }
    if x.is_weak() {
        return Ok(Given::Number(x.item()?.as_f64()));
    }
    Ok(Given::Elements(x.clone()))
}

/// The parameter `name` if it is what `rule` says, one of the rules of `reject.rs`. Numbers are checked now; arrays, which may not be computed yet,
/// when they are used.
pub(super) fn check(
    cx: &CompositeCx,
    name: &'static str,
    value: Given,
    rule: &'static str,
) -> Result<Given> {
    match value {
        Given::Number(x) if holds(rule, x) => Ok(Given::Number(x)),
        Given::Number(x) => Err(cx.value_error(format!("`{name}` must be {rule}, found {x}"))),
        Given::Elements(x) => {
            let attrs: Attrs = [
                Value::Word(rule),
                Value::Word(name),
                Value::Word(cx.op.name),
            ]
            .into_iter()
            .collect();
            Ok(Given::Elements(invoke1(&CHECKED_PARAMETER, &[&x], &attrs)?))
        }
    }
}

/// Parameter number `i`, or its default, if it is what `rule` says.
pub(super) fn checked(
    cx: &CompositeCx,
    i: usize,
    default: f64,
    name: &'static str,
    rule: &'static str,
) -> Result<Given> {
    check(cx, name, given(cx, i, default)?, rule)
}

/// What the samples are.
pub(super) struct Samples {
    /// Shape: `size`, or what the parameters broadcast to.
    pub(super) shape: Dims,
    /// A floating dtype.
    pub(super) dtype: DType,
    /// Where they are drawn.
    pub(super) device: Device,
}

impl Samples {
    /// Float samples of a call: `dtype`, else what the array parameters promote to if that is a float, else the default float.
    pub(super) fn of(cx: &CompositeCx) -> Result<Samples> {
        let arrays: SmallVec<[Option<&Array>; 8]> = arrays(cx).map(Some).collect();
        let natural = match arrays.is_empty() {
            true => default_float(),
            false => Some(promoted(&arrays))
                .filter(|d| d.is_float())
                .unwrap_or_else(default_float),
        };
        let dtype = asked(cx).unwrap_or(natural);
        if !dtype.is_float() {
            return Err(cx.dtype_error(format!(
                "samples are float16, bfloat16, float32 or float64, not {}",
                dtype.name()
            )));
        }
        Samples::with_dtype(cx, dtype)
    }

    /// Samples of this dtype.
    pub(super) fn with_dtype(cx: &CompositeCx, dtype: DType) -> Result<Samples> {
        let given: SmallVec<[&[usize]; 8]> = arrays(cx).map(Array::shape).collect();
        let natural = broadcast_shapes(&given)?;
        let shape = match cx.opt_ints("size") {
            None => natural,
            Some(size) => {
                let size = dims(cx.op.name, size)?;
                if broadcast_shapes(&[&natural, &size]).ok().as_ref() != Some(&size) {
                    return Err(cx.shape_error(format!(
                        "parameters of shape {} do not broadcast to `size` {}",
                        crate::Tuple(&natural),
                        crate::Tuple(&size)
                    )));
                }
                size
            }
        };
        let placed = arrays(cx).next().map_or_else(current_device, Array::device);
        let device = match has(cx.op, "device") {
            true => cx.device("device").unwrap_or(placed),
            false => placed,
        };
        Ok(Samples {
            shape,
            dtype,
            device,
        })
    }

    /// A sample of a distribution with numeric parameters.
    pub(super) fn draw(&self, distribution: &'static str, a: f64, b: f64) -> Result<Array> {
        super::draw::sample(distribution, (a, b), &self.shape, self.dtype, self.device)
    }

    /// Standard gamma samples, or their logarithms: differentiable with respect to the shape parameter.
    pub(super) fn gamma(&self, shape: &Given, log: bool) -> Result<Array> {
        gamma(&shape.array()?, log, &self.shape, self.dtype, self.device)
    }

    /// Counts of a distribution.
    pub(super) fn counts(
        &self,
        distribution: &'static str,
        parameters: &[&Given],
    ) -> Result<Array> {
        let parameters = parameters
            .iter()
            .map(|x| x.array())
            .collect::<Result<Vec<_>>>()?;
        counts(
            distribution,
            &parameters,
            &self.shape,
            self.dtype,
            self.device,
        )
    }

    /// `location + scale * standard`, in the samples' dtype.
    pub(super) fn shifted(
        &self,
        standard: &Array,
        location: &Given,
        scale: &Given,
    ) -> Result<Array> {
        let scaled = match scale.number() {
            Some(1.0) => standard.clone(),
            _ => standard.mul(&scale.array()?)?,
        };
        let shifted = match location.number() {
            Some(0.0) => scaled,
            _ => scaled.add(&location.array()?)?,
        };
        shifted.astype(self.dtype)
    }
}

/// The dtype asked for.
pub(super) fn asked(cx: &CompositeCx) -> Option<DType> {
    has(cx.op, "dtype").then(|| cx.dtype("dtype")).flatten()
}

fn has(op: &OpDef, name: &str) -> bool {
    op.params.iter().any(|p| p.name == name)
}

fn arrays<'a>(cx: &'a CompositeCx) -> impl Iterator<Item = &'a Array> {
    cx.inputs.iter().copied().flatten().filter(|x| !x.is_weak())
}
