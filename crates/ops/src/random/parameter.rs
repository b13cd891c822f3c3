//! Parameters of distributions, and the samples that are drawn with them.

use mxnet_tensor::{DType, Device, Dims, Scalar, broadcast_shapes, default_float};
use smallvec::SmallVec;

use super::draw::RANDOM_FILL;
use super::reject::{CHECKED_PARAMETER, RANDOM_ANGLES, RANDOM_COUNTS, RANDOM_GAMMA, holds};
use crate::Array;
use crate::args::{Attrs, Value};
use crate::context::CompositeContext;
use crate::creation::dims;
use crate::elementwise::arithmetic::{ADD, MULTIPLY};
use crate::error::Result;
use crate::invoke::invoke1;
use crate::mode::current_device;
use crate::opdef::OpDef;
use crate::types::promoted;

/// A parameter of a distribution.
pub(super) enum Parameter {
    /// A Python number, or the default.
    Number(f64),
    /// An array.
    Elements(Array),
}

impl Parameter {
    /// The number; `None` for an array.
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Parameter::Number(x) => Some(*x),
            Parameter::Elements(_) => None,
        }
    }

    /// Half the parameter. A chi-square sample with `k` degrees of freedom is twice a gamma sample of shape `k / 2`.
    pub(super) fn half(&self) -> Result<Parameter> {
        Ok(match self {
            Parameter::Number(x) => Parameter::Number(x / 2.0),
            Parameter::Elements(x) => Parameter::Elements(x.scale(0.5)?),
        })
    }

    /// The parameter as an array; a number becomes a weak scalar.
    pub(super) fn array(&self) -> Result<Array> {
        match self {
            Parameter::Number(x) => Array::weak_scalar(Scalar::F64(*x)),
            Parameter::Elements(x) => Ok(x.clone()),
        }
    }

    /// The parameter as a kernel operand: an array with one element, or of `shape`.
    fn operand(&self, shape: &[usize]) -> Result<Array> {
        match self {
            Parameter::Number(x) => Array::constant(Scalar::F64(*x), DType::F64),
            Parameter::Elements(x) if x.len() == 1 => Ok(x.clone()),
            Parameter::Elements(x) => x.broadcast_to(shape),
        }
    }

    /// The parameter without its gradient.
    fn detach(&self) -> Parameter {
        match self {
            Parameter::Number(x) => Parameter::Number(*x),
            Parameter::Elements(x) => Parameter::Elements(x.detach()),
        }
    }
}

/// Binary operators whose right operand is a parameter.
pub(super) trait WithParameter {
    /// Calls `op` on the array and the parameter.
    fn with_parameter(&self, op: &'static OpDef, parameter: &Parameter) -> Result<Array>;
}

impl WithParameter for Array {
    fn with_parameter(&self, op: &'static OpDef, parameter: &Parameter) -> Result<Array> {
        match parameter {
            Parameter::Number(x) => self.with_scalar(op, *x),
            Parameter::Elements(x) => self.binary(op, x),
        }
    }
}

/// Reads the arguments of samplers.
pub(super) trait SamplerContext {
    /// Parameter `i`, or its default.
    fn parameter(&self, i: usize, default: f64) -> Result<Parameter>;

    /// Checks `value` of the parameter `name` against `rule`, one of the rules in `reject.rs`. Numbers are checked now; arrays, which may not be
    /// computed yet, when they are used.
    fn check(&self, name: &'static str, value: Parameter, rule: &'static str) -> Result<Parameter>;

    /// Parameter `i`, or its default, checked against `rule`.
    fn checked(
        &self,
        i: usize,
        default: f64,
        name: &'static str,
        rule: &'static str,
    ) -> Result<Parameter>;

    /// The argument `dtype` of the call.
    fn requested_dtype(&self) -> Option<DType>;

    /// Float samples. Their dtype is `dtype`, else the promoted dtype of the array parameters if that is a float, else the default float.
    fn samples(&self) -> Result<Samples>;

    /// Samples of this dtype.
    fn samples_as(&self, dtype: DType) -> Result<Samples>;
}

impl SamplerContext for CompositeContext<'_> {
    fn parameter(&self, i: usize, default: f64) -> Result<Parameter> {
        let Some(x) = self.opt(i) else {
            return Ok(Parameter::Number(default));
        };
        if x.dtype().is_complex() {
            return Err(self.dtype_error("parameters of distributions are real"));
        }
        if x.is_weak() {
            let number = x.number().map_or_else(|| x.item(), Ok)?;
            return Ok(Parameter::Number(number.as_f64()));
        }
        Ok(Parameter::Elements(x.clone()))
    }

    fn check(&self, name: &'static str, value: Parameter, rule: &'static str) -> Result<Parameter> {
        match value {
            Parameter::Number(x) if holds(rule, x) => Ok(value),
            Parameter::Number(x) => {
                Err(self.value_error(format!("`{name}` must be {rule}, found {x}")))
            }
            Parameter::Elements(x) => {
                let attrs: Attrs = [rule, name, self.op.name]
                    .into_iter()
                    .map(Value::Word)
                    .collect();
                let checked = invoke1(&CHECKED_PARAMETER, &[&x], &attrs)?;
                Ok(Parameter::Elements(checked))
            }
        }
    }

    fn checked(
        &self,
        i: usize,
        default: f64,
        name: &'static str,
        rule: &'static str,
    ) -> Result<Parameter> {
        self.check(name, self.parameter(i, default)?, rule)
    }

    fn requested_dtype(&self) -> Option<DType> {
        match self.find("dtype") {
            Some(Value::DType(dtype)) => Some(*dtype),
            _ => None,
        }
    }

    fn samples(&self) -> Result<Samples> {
        let dtype = self.requested_dtype().unwrap_or_else(|| {
            let arrays: SmallVec<[Option<&Array>; 8]> = arrays(self).map(Some).collect();
            match arrays.is_empty() {
                true => default_float(),
                false => Some(promoted(&arrays))
                    .filter(|dtype| dtype.is_float())
                    .unwrap_or_else(default_float),
            }
        });
        if !dtype.is_float() {
            return Err(self.dtype_error(format!(
                "samples are float16, bfloat16, float32 or float64, not {}",
                dtype.name()
            )));
        }
        self.samples_as(dtype)
    }

    fn samples_as(&self, dtype: DType) -> Result<Samples> {
        let shapes: SmallVec<[&[usize]; 8]> = arrays(self).map(Array::shape).collect();
        let natural = broadcast_shapes(&shapes)?;
        let shape = match self.opt_ints("size") {
            None => natural,
            Some(size) => {
                let size = dims(self.op.name, size)?;
                if !natural.is_empty()
                    && broadcast_shapes(&[&natural, &size]).ok().as_ref() != Some(&size)
                {
                    return Err(self.shape_error(format!(
                        "parameters of shape {} do not broadcast to `size` {}",
                        crate::Tuple(&natural),
                        crate::Tuple(&size)
                    )));
                }
                size
            }
        };
        let placed = || {
            arrays(self)
                .next()
                .map_or_else(current_device, Array::device)
        };
        let device = match self.find("device") {
            Some(Value::Device(device)) => *device,
            _ => placed(),
        };
        Ok(Samples {
            shape,
            dtype,
            device,
        })
    }
}

/// Properties of the samples of one call.
pub(crate) struct Samples {
    /// Shape: `size`, or the broadcast shape of the parameters.
    pub(crate) shape: Dims,
    /// Dtype of the samples.
    pub(crate) dtype: DType,
    /// Device of the samples.
    pub(crate) device: Device,
}

impl Samples {
    /// A sample of a distribution of [`RANDOM_FILL`] with these parameters.
    pub(super) fn filled(&self, distribution: &'static str, [a, b, c]: [f64; 3]) -> Result<Array> {
        let attrs: Attrs = [
            Value::from(self.shape.as_slice()),
            Value::Word(distribution),
            Value::Float(a),
            Value::Float(b),
            Value::DType(self.dtype),
            Value::Device(self.device),
            Value::Float(c),
        ]
        .into_iter()
        .collect();
        invoke1(&RANDOM_FILL, &[], &attrs)
    }

    /// A sample of a distribution with two parameters.
    pub(crate) fn draw(&self, distribution: &'static str, a: f64, b: f64) -> Result<Array> {
        self.filled(distribution, [a, b, 0.5])
    }

    /// Standard gamma samples, or their logarithms. Differentiable with respect to the shape parameter.
    pub(super) fn gamma(&self, shape: &Parameter, log: bool) -> Result<Array> {
        let shape = shape.operand(&self.shape)?;
        let attrs = self.attrs(Some(Value::Bool(log)));
        invoke1(&RANDOM_GAMMA, &[&shape], &attrs)
    }

    /// Samples of a distribution of [`RANDOM_COUNTS`]. Not differentiable.
    pub(super) fn counts(
        &self,
        distribution: &'static str,
        parameters: &[&Parameter],
    ) -> Result<Array> {
        let mut arrays = SmallVec::<[Array; 3]>::new();
        for parameter in parameters {
            arrays.push(parameter.detach().operand(&self.shape)?);
        }
        let inputs: SmallVec<[&Array; 3]> = arrays.iter().collect();
        let attrs = self.attrs(Some(Value::Word(distribution)));
        invoke1(&RANDOM_COUNTS, &inputs, &attrs)
    }

    /// Von Mises samples around 0. Not differentiable with respect to the concentration.
    pub(super) fn angles(&self, concentration: &Parameter) -> Result<Array> {
        let concentration = concentration.detach().operand(&self.shape)?;
        invoke1(&RANDOM_ANGLES, &[&concentration], &self.attrs(None))
    }

    /// Attributes of a kernel in `reject.rs`: shape, the kernel's own attribute if there is one, dtype and device.
    fn attrs(&self, own: Option<Value>) -> Attrs {
        let mut attrs = Attrs::none();
        attrs.push(Value::from(self.shape.as_slice()));
        if let Some(own) = own {
            attrs.push(own);
        }
        attrs.push(Value::DType(self.dtype));
        attrs.push(Value::Device(self.device));
        attrs
    }

    /// `location + scale * standard`, in the samples' dtype.
    pub(super) fn shifted(
        &self,
        standard: Array,
        location: &Parameter,
        scale: &Parameter,
    ) -> Result<Array> {
        let scaled = match scale.number() {
            Some(1.0) => standard,
            _ => standard.with_parameter(&MULTIPLY, scale)?,
        };
        let shifted = match location.number() {
            Some(0.0) => scaled,
            _ => scaled.with_parameter(&ADD, location)?,
        };
        shifted.astype(self.dtype)
    }

    /// A parameter as an array in the samples' dtype.
    pub(super) fn operand(&self, parameter: &Parameter) -> Result<Array> {
        match parameter {
            Parameter::Number(x) => Array::constant(Scalar::F64(*x), self.dtype),
            Parameter::Elements(x) => x.astype(self.dtype),
        }
    }
}

/// A parameter as an array. A number becomes a default float, as for every operator without another operand.
pub(super) fn alone(parameter: &Parameter) -> Result<Array> {
    match parameter {
        Parameter::Number(x) => Array::constant(Scalar::F64(*x), default_float()),
        Parameter::Elements(x) => Ok(x.clone()),
    }
}

fn arrays<'a>(context: &'a CompositeContext) -> impl Iterator<Item = &'a Array> {
    context
        .inputs
        .iter()
        .copied()
        .flatten()
        .filter(|x| !x.is_weak())
}
