//! What distributions are made of: parameters, samples, and the steps from the ones to the others.
//!
//! A distribution is written once, for any [`Drawing`]. Here are the steps on arrays, by operators; `few.rs` has those on a few numbers at hand.

use mxnet_tensor::{DType, Device, Dims, Scalar, broadcast_shapes, default_float};
use smallvec::SmallVec;

use super::reject::{CHECKED_PARAMETER, angles, counts, gamma, holds};
use crate::Array;
use crate::args::{Attrs, Value};
use crate::creation::dims;
use crate::cx::CompositeCx;
use crate::elementwise::arithmetic::{ADD, DIVIDE, MULTIPLY, SUBTRACT};
use crate::elementwise::select::choose;
use crate::error::{Error, Result};
use crate::interp::current_device;
use crate::invoke::invoke1;
use crate::opdef::OpDef;
use crate::types::promoted;

/// A parameter as it was given, or what was computed of it.
pub(super) enum Given<X> {
    /// A Python number, or the default.
    Number(f64),
    /// Elements.
    Elements(X),
}

impl<X: Values> Given<X> {
    /// The number; `None` for elements.
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Given::Number(x) => Some(*x),
            Given::Elements(_) => None,
        }
    }

    /// Half of it: a chi-square number of `k` degrees of freedom is twice a gamma number of shape `k / 2`.
    pub(super) fn half(&self) -> Result<Given<X>> {
        Ok(match self {
            Given::Number(x) => Given::Number(x / 2.0),
            Given::Elements(x) => Given::Elements(x.scale(0.5)?),
        })
    }
}

impl Given<Array> {
    /// As an operand.
    pub(super) fn array(&self) -> Result<Array> {
        match self {
            Given::Number(x) => Array::weak_scalar(Scalar::F64(*x)),
            Given::Elements(x) => Ok(x.clone()),
        }
    }
}

/// Samples, or what they are computed from.
pub(super) trait Values: Sized {
    /// An operator of one operand.
    fn unary(&self, op: &'static OpDef) -> Result<Self>;
    /// An operator of two.
    fn binary(&self, op: &'static OpDef, rhs: &Self) -> Result<Self>;
    /// An operator with a number on the right, which takes on the dtype on the left.
    fn with_number(&self, op: &'static OpDef, number: f64) -> Result<Self>;
    /// The elements of `x` where a condition is true, of `y` elsewhere.
    fn chosen(condition: &Self, x: &Self, y: &Self) -> Result<Self>;
    /// Converted.
    fn astype(&self, dtype: DType) -> Result<Self>;
    /// Without a way back for gradients.
    fn detached(&self) -> Result<Self>;

    /// An operator with a parameter on the right.
    fn with(&self, op: &'static OpDef, parameter: &Given<Self>) -> Result<Self> {
        match parameter {
            Given::Number(x) => self.with_number(op, *x),
            Given::Elements(x) => self.binary(op, x),
        }
    }

    fn add(&self, rhs: &Self) -> Result<Self> {
        self.binary(&ADD, rhs)
    }

    fn sub(&self, rhs: &Self) -> Result<Self> {
        self.binary(&SUBTRACT, rhs)
    }

    fn mul(&self, rhs: &Self) -> Result<Self> {
        self.binary(&MULTIPLY, rhs)
    }

    fn div(&self, rhs: &Self) -> Result<Self> {
        self.binary(&DIVIDE, rhs)
    }

    fn scale(&self, factor: f64) -> Result<Self> {
        self.with_number(&MULTIPLY, factor)
    }
}

/// A call of a distribution's function.
pub(super) trait Drawing {
    /// What it computes with.
    type X: Values;
    /// The samples it makes.
    type Samples: Sampling<X = Self::X>;

    /// The function.
    fn function(&self) -> &'static OpDef;
    /// Parameter number `i`, or its default.
    fn given(&self, i: usize, default: f64) -> Result<Given<Self::X>>;
    /// A parameter's elements, which must be what `rule` says when they are used.
    fn watched(&self, x: Self::X, name: &'static str, rule: &'static str) -> Result<Self::X>;
    /// The dtype asked for.
    fn asked(&self) -> Option<DType>;
    /// Float samples: `dtype`, else what the array parameters promote to if that is a float, else the default float.
    fn samples(&self) -> Result<Self::Samples>;
    /// Samples of this dtype.
    fn samples_as(&self, dtype: DType) -> Result<Self::Samples>;

    /// The parameter `name` if it is what `rule` says, one of the rules of `reject.rs`. Numbers are checked now; arrays, which may not be computed yet,
    /// when they are used.
    fn check(
        &self,
        name: &'static str,
        value: Given<Self::X>,
        rule: &'static str,
    ) -> Result<Given<Self::X>> {
        match value {
            Given::Number(x) if holds(rule, x) => Ok(Given::Number(x)),
            Given::Number(x) => {
                let problem = format!("`{name}` must be {rule}, found {x}");
                Err(Error::value(self.function().name, problem))
            }
            Given::Elements(x) => Ok(Given::Elements(self.watched(x, name, rule)?)),
        }
    }

    /// Parameter number `i`, or its default, if it is what `rule` says.
    fn checked(
        &self,
        i: usize,
        default: f64,
        name: &'static str,
        rule: &'static str,
    ) -> Result<Given<Self::X>> {
        self.check(name, self.given(i, default)?, rule)
    }
}

/// Samples of one shape, dtype and device.
pub(super) trait Sampling {
    /// The samples.
    type X: Values;

    /// Their dtype.
    fn dtype(&self) -> DType;
    /// A sample of a distribution of `draw.rs` with these numbers.
    fn filled(&self, distribution: &'static str, numbers: [f64; 3]) -> Result<Self::X>;
    /// Standard gamma samples, or their logarithms: differentiable with respect to the shape parameter.
    fn gamma(&self, shape: &Given<Self::X>, log: bool) -> Result<Self::X>;
    /// Counts of a distribution.
    fn counts(&self, distribution: &'static str, parameters: &[&Given<Self::X>])
    -> Result<Self::X>;
    /// Angles around 0.
    fn angles(&self, concentration: &Given<Self::X>) -> Result<Self::X>;
    /// A parameter by itself, in the samples' dtype.
    fn operand(&self, parameter: &Given<Self::X>) -> Result<Self::X>;
    /// A parameter by itself; a number is a default float, as in every operator that has no other operand.
    fn alone(&self, parameter: &Given<Self::X>) -> Result<Self::X>;

    /// A sample of a distribution of two numbers.
    fn draw(&self, distribution: &'static str, a: f64, b: f64) -> Result<Self::X> {
        self.filled(distribution, [a, b, 0.5])
    }

    /// `location + scale * standard`, in the samples' dtype.
    fn shifted(
        &self,
        standard: Self::X,
        location: &Given<Self::X>,
        scale: &Given<Self::X>,
    ) -> Result<Self::X> {
        let scaled = match scale.number() {
            Some(1.0) => standard,
            _ => standard.with(&MULTIPLY, scale)?,
        };
        let shifted = match location.number() {
            Some(0.0) => scaled,
            _ => scaled.with(&ADD, location)?,
        };
        shifted.astype(self.dtype())
    }
}

impl Values for Array {
    fn unary(&self, op: &'static OpDef) -> Result<Array> {
        Array::unary(self, op)
    }

    fn binary(&self, op: &'static OpDef, rhs: &Array) -> Result<Array> {
        Array::binary(self, op, rhs)
    }

    fn with_number(&self, op: &'static OpDef, number: f64) -> Result<Array> {
        self.with_scalar(op, number)
    }

    fn chosen(condition: &Array, x: &Array, y: &Array) -> Result<Array> {
        choose(condition, x, y)
    }

    fn astype(&self, dtype: DType) -> Result<Array> {
        Array::astype(self, dtype)
    }

    fn detached(&self) -> Result<Array> {
        Ok(self.detach())
    }
}

impl Drawing for CompositeCx<'_> {
    type X = Array;
    type Samples = Samples;

    fn function(&self) -> &'static OpDef {
        self.op
    }

    fn given(&self, i: usize, default: f64) -> Result<Given<Array>> {
        let Some(x) = self.opt(i) else {
            return Ok(Given::Number(default));
        };
        if x.dtype().is_complex() {
            return Err(self.dtype_error("parameters of distributions are real"));
        }
        if x.is_weak() {
            return Ok(Given::Number(x.item()?.as_f64()));
        }
        Ok(Given::Elements(x.clone()))
    }

    fn watched(&self, x: Array, name: &'static str, rule: &'static str) -> Result<Array> {
        let attrs: Attrs = [
            Value::Word(rule),
            Value::Word(name),
            Value::Word(self.op.name),
        ]
        .into_iter()
        .collect();
        invoke1(&CHECKED_PARAMETER, &[&x], &attrs)
    }

    fn asked(&self) -> Option<DType> {
        has(self.op, "dtype").then(|| self.dtype("dtype")).flatten()
    }

    fn samples(&self) -> Result<Samples> {
        let arrays: SmallVec<[Option<&Array>; 8]> = arrays(self).map(Some).collect();
        let natural = match arrays.is_empty() {
            true => default_float(),
            false => Some(promoted(&arrays))
                .filter(|d| d.is_float())
                .unwrap_or_else(default_float),
        };
        let dtype = self.asked().unwrap_or(natural);
        if !dtype.is_float() {
            return Err(self.dtype_error(format!(
                "samples are float16, bfloat16, float32 or float64, not {}",
                dtype.name()
            )));
        }
        self.samples_as(dtype)
    }

    fn samples_as(&self, dtype: DType) -> Result<Samples> {
        let given: SmallVec<[&[usize]; 8]> = arrays(self).map(Array::shape).collect();
        let natural = broadcast_shapes(&given)?;
        let shape = match self.opt_ints("size") {
            None => natural,
            Some(size) => {
                let size = dims(self.op.name, size)?;
                if broadcast_shapes(&[&natural, &size]).ok().as_ref() != Some(&size) {
                    return Err(self.shape_error(format!(
                        "parameters of shape {} do not broadcast to `size` {}",
                        crate::Tuple(&natural),
                        crate::Tuple(&size)
                    )));
                }
                size
            }
        };
        let placed = arrays(self)
            .next()
            .map_or_else(current_device, Array::device);
        let device = match has(self.op, "device") {
            true => self.device("device").unwrap_or(placed),
            false => placed,
        };
        Ok(Samples {
            of: self.op,
            shape,
            dtype,
            device,
        })
    }
}

/// Arrays of samples.
pub(super) struct Samples {
    /// The function that draws them, for errors.
    pub(super) of: &'static OpDef,
    /// Shape: `size`, or what the parameters broadcast to.
    pub(super) shape: Dims,
    /// A dtype.
    pub(super) dtype: DType,
    /// Where they are drawn.
    pub(super) device: Device,
}

impl Sampling for Samples {
    type X = Array;

    fn dtype(&self) -> DType {
        self.dtype
    }

    fn filled(&self, distribution: &'static str, numbers: [f64; 3]) -> Result<Array> {
        super::draw::sample(
            self.of,
            distribution,
            numbers,
            &self.shape,
            self.dtype,
            self.device,
        )
    }

    fn gamma(&self, shape: &Given<Array>, log: bool) -> Result<Array> {
        gamma(
            self.of,
            &shape.array()?,
            log,
            &self.shape,
            self.dtype,
            self.device,
        )
    }

    fn counts(&self, distribution: &'static str, parameters: &[&Given<Array>]) -> Result<Array> {
        let parameters = parameters
            .iter()
            .map(|x| x.array())
            .collect::<Result<Vec<_>>>()?;
        counts(
            self.of,
            distribution,
            &parameters,
            &self.shape,
            self.dtype,
            self.device,
        )
    }

    fn angles(&self, concentration: &Given<Array>) -> Result<Array> {
        angles(
            self.of,
            &concentration.array()?,
            &self.shape,
            self.dtype,
            self.device,
        )
    }

    fn operand(&self, parameter: &Given<Array>) -> Result<Array> {
        match parameter {
            Given::Number(x) => Array::scalar(Scalar::F64(*x), self.dtype),
            Given::Elements(x) => x.astype(self.dtype),
        }
    }

    fn alone(&self, parameter: &Given<Array>) -> Result<Array> {
        match parameter {
            Given::Number(x) => Array::scalar(Scalar::F64(*x), default_float()),
            Given::Elements(x) => Ok(x.clone()),
        }
    }
}

fn has(op: &OpDef, name: &str) -> bool {
    op.params.iter().any(|p| p.name == name)
}

fn arrays<'a>(cx: &'a CompositeCx) -> impl Iterator<Item = &'a Array> {
    cx.inputs.iter().copied().flatten().filter(|x| !x.is_weak())
}
