//! Means, variances and standard deviations that ignore NaN. Composed of masked sums.

use mxnet_tensor::{DType, Dims, Scalar};

use crate::Array;
use crate::args::{Param, ParamKind};
use crate::context::CompositeContext;
use crate::elementwise::comparison::{EQUAL, GREATER};
use crate::elementwise::explog::SQRT;
use crate::elementwise::logic::LOGICAL_AND;
use crate::elementwise::select::choose;
use crate::error::Result;
use crate::opdef::{Cpu, OpDef, Probe};
use crate::reduce::fold::averaged;

/// Mean of the elements that are not NaN.
pub static NANMEAN: OpDef = OpDef {
    name: "nanmean",
    params: &[
        Param::array("a"),
        Param::reduced("axis"),
        Param::optional("dtype", ParamKind::DType),
        Param::bool("keepdims", false),
        Param::optional_array("where"),
    ],
    doc: "Mean over `axis` (all axes for None) of the elements that are not NaN and where `where` is true; NaN if there is none. Computed in \
          `dtype`, or that of `a` (integers: the default float).",
    cpu: Cpu::Composite(|context| {
        let counted = Counted::new(context, context.bool("keepdims"))?;
        let mean = counted.sum(&counted.values)?.div(&counted.number)?;
        context.done(mean.astype_in("K", counted.dtype)?)
    }),
    probe: Probe::calls(&[
        "f((3, 4))",
        "f((2, 3, 4)), (2, 0), keepdims=True",
        "np.where(b((3, 4)), f((3, 4)), np.nan), 1",
        "f((3, 4)), 0, where=np.array([[True], [False], [True]])",
        "i((3, 4), 9), 1",
    ])
    .against("np.nanmean")
    .within(0.25..2.0),
    ..OpDef::COMPOSITE
};

/// Variance of the elements that are not NaN.
pub static NANVAR: OpDef = OpDef {
    name: "nanvar",
    params: &[
        Param::array("a"),
        Param::reduced("axis"),
        Param::optional("dtype", ParamKind::DType),
        Param::float("ddof", 0.0),
        Param::bool("keepdims", false),
        Param::optional_array("where"),
        Param::optional_array("mean"),
    ],
    doc: "Variance over `axis` (all axes for None) of the elements that are not NaN and where `where` is true: squared distances from `mean` (which \
        keeps the axes; computed by default), divided by their number less `ddof`. NaN if the divisor is not positive.",
    cpu: Cpu::Composite(|context| context.done(variance(context)?)),
    probe: Probe::calls(SPREADS).against("np.nanvar"),
    ..OpDef::COMPOSITE
};

/// Standard deviation of the elements that are not NaN.
pub static NANSTD: OpDef = OpDef {
    name: "nanstd",
    params: NANVAR.params,
    doc: "Standard deviation over `axis` (all axes for None) of the elements that are not NaN: the square root of `nanvar`.",
    cpu: Cpu::Composite(|context| {
        let variance = variance(context)?;
        context.done(variance.unary(&SQRT)?.astype(variance.dtype())?)
    }),
    probe: Probe::calls(SPREADS).against("np.nanstd"),
    ..OpDef::COMPOSITE
};

const SPREADS: &[&str] = &[
    "f((3, 4))",
    "f((2, 3, 4)), (2, 0), ddof=1, keepdims=True",
    "np.where(np.arange(12).reshape(3, 4) % 5 == 0, np.nan, f((3, 4))), 1",
    "f((3, 4)), 0, where=np.array([[True], [False], [True]])",
    "i((3, 4), 9), 1",
];

/// The elements that a call counts.
struct Counted<'a> {
    /// All elements, in the dtype of the computation.
    values: Array,
    /// Mask of the elements that count; `None` if all do.
    mask: Option<Array>,
    /// Number of elements that count, in the real dtype of the computation; 0-d if all do.
    number: Array,
    axes: Option<&'a [i64]>,
    keepdims: bool,
    /// Dtype of the result.
    dtype: DType,
}

impl<'a> Counted<'a> {
    fn new(context: &CompositeContext<'a>, keepdims: bool) -> Result<Counted<'a>> {
        let x = context.input(0);
        // An axis out of bounds is an error of this operator, not of the sums below.
        let reduced = context.axes("axis", 0)?;
        let dtype = context.dtype("dtype").unwrap_or(averaged(x.dtype()));
        if x.dtype().is_inexact() && !dtype.is_inexact() {
            let problem = format!(
                "means that leave NaN out are floats, found dtype {}",
                dtype.name()
            );
            return Err(context.dtype_error(problem));
        }
        // Sums and counts of 16-bit floats are float32; means of integers may be asked for as integers.
        let values = x.astype_in(
            "K",
            match averaged(dtype) {
                DType::F16 | DType::BF16 => DType::F32,
                dtype => dtype,
            },
        )?;
        let given = match context.opt(1) {
            Some(mask) => Some(mask.astype_in("K", DType::Bool)?.broadcast_to(x.shape())?),
            None => None,
        };
        let valid = match x.dtype().is_inexact() {
            true => Some(x.binary(&EQUAL, x)?),
            false => None,
        };
        let mask = match (valid, given) {
            (Some(valid), Some(given)) => Some(valid.binary(&LOGICAL_AND, &given)?),
            (valid, given) => valid.or(given),
        };
        let axes = context.opt_ints("axis");
        let real = values.dtype().real();
        let number = match &mask {
            Some(mask) => mask.sum(axes, keepdims)?.astype_in("K", real)?,
            None => {
                let number: usize = reduced.iter().map(|&axis| x.shape()[axis]).product();
                Array::constant(Scalar::I64(number as i64), real)?.to_device(x.device())?
            }
        };
        Ok(Counted {
            values,
            mask,
            number,
            axes,
            keepdims,
            dtype,
        })
    }

    /// The elements, with 0 for those that do not count: NaN times 0 would be NaN in the gradient.
    fn filled(&self, x: &Array) -> Result<Array> {
        match &self.mask {
            Some(mask) => choose(mask, x, &Array::weak_scalar(Scalar::I64(0))?),
            None => Ok(x.clone()),
        }
    }

    fn sum(&self, x: &Array) -> Result<Array> {
        self.filled(x)?.sum(self.axes, self.keepdims)
    }
}

fn variance(context: &CompositeContext) -> Result<Array> {
    let counted = Counted::new(context, true)?;
    let (x, values) = (context.input(0), &counted.values);
    let mean = match context.opt(2) {
        Some(mean) => mean.clone(),
        None => counted.sum(values)?.div(&counted.number)?,
    };
    // In a real dtype the mean of complex numbers loses its imaginary part, while the distances from it keep theirs, as in NumPy.
    let complex;
    let values = match x.dtype().is_complex() && !values.dtype().is_complex() {
        true => {
            complex = x.astype(values.dtype().complex())?;
            &complex
        }
        false => values,
    };
    let distance = counted.filled(values)?.sub(&mean)?;
    let square = match distance.dtype().is_complex() {
        true => distance.mul(&distance.conj()?)?.real_part()?,
        false => distance.square()?,
    };
    let total = counted.sum(&square)?;
    let freedom = counted.number.shift(-context.float("ddof"))?;
    let zero = Array::weak_scalar(Scalar::F64(0.0))?;
    let variance = match x.dtype().is_inexact() {
        true => {
            let has_some = freedom.with_scalar(&GREATER, 0.0)?;
            let one = Array::weak_scalar(Scalar::F64(1.0))?;
            let nan = Array::weak_scalar(Scalar::F64(f64::NAN))?;
            let variance = total.div(&choose(&has_some, &freedom, &one)?)?;
            choose(&has_some, &variance, &nan)?
        }
        // With too few integers the result is that of the division, as for `var`.
        false => total.div(&freedom.maximum(&zero)?)?,
    };
    let dtype = context.dtype("dtype").unwrap_or(counted.dtype.real());
    let variance = variance.astype_in("K", dtype)?;
    if context.bool("keepdims") {
        return Ok(variance);
    }
    let reduced = context.axes("axis", 0)?;
    let shape: Dims = (0..x.ndim())
        .filter(|axis| !reduced.contains(axis))
        .map(|axis| x.shape()[axis])
        .collect();
    variance.reshape(&shape)
}
