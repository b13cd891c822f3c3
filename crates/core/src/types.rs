//! Type rules: which dtypes an operator takes, computes in and returns.

use mxnet_tensor::{DType, Kind, Operand, Promotion, Scalar, promotion, result_type};

use crate::Array;
use crate::error::{Error, Result};
use crate::invoke::Call;

/// A set of dtypes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DTypes(u32);

impl DTypes {
    /// bool.
    pub const BOOL: DTypes = DTypes(1 << DType::Bool as u8);
    /// All signed and unsigned integers.
    pub const INT: DTypes = DTypes(
        1 << DType::I8 as u8
            | 1 << DType::I16 as u8
            | 1 << DType::I32 as u8
            | 1 << DType::I64 as u8
            | 1 << DType::U8 as u8
            | 1 << DType::U16 as u8
            | 1 << DType::U32 as u8
            | 1 << DType::U64 as u8,
    );
    /// All real floating types.
    pub const FLOAT: DTypes = DTypes(
        1 << DType::F16 as u8
            | 1 << DType::BF16 as u8
            | 1 << DType::F32 as u8
            | 1 << DType::F64 as u8,
    );
    /// Both complex types.
    pub const COMPLEX: DTypes = DTypes(1 << DType::C64 as u8 | 1 << DType::C128 as u8);
    /// Every dtype.
    pub const ALL: DTypes = DTypes::BOOL
        .or(DTypes::INT)
        .or(DTypes::FLOAT)
        .or(DTypes::COMPLEX);
    /// Every dtype except bool.
    pub const NUMBER: DTypes = DTypes::INT.or(DTypes::FLOAT).or(DTypes::COMPLEX);
    /// Every ordered dtype.
    pub const REAL: DTypes = DTypes::BOOL.or(DTypes::INT).or(DTypes::FLOAT);
    /// The four types that factorisations compute in: float16 and bfloat16 have too few digits.
    pub const FACTORED: DTypes = DTypes(
        1 << DType::F32 as u8
            | 1 << DType::F64 as u8
            | 1 << DType::C64 as u8
            | 1 << DType::C128 as u8,
    );
    /// Real and complex floating types.
    pub const INEXACT: DTypes = DTypes::FLOAT.or(DTypes::COMPLEX);

    /// The union.
    pub const fn or(self, other: DTypes) -> DTypes {
        DTypes(self.0 | other.0)
    }

    /// Whether `dtype` is in the set.
    pub const fn has(self, dtype: DType) -> bool {
        self.0 >> dtype as u8 & 1 == 1
    }

    /// The dtypes of the set, in order.
    pub fn iter(self) -> impl Iterator<Item = DType> {
        DType::ALL.into_iter().filter(move |&d| self.has(d))
    }
}

/// How a promoted dtype that the kernels do not take is converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lift {
    /// Not at all; it is an error.
    No,
    /// bool and integers become floats: the default float, or in NumPy mode the smallest float that holds them.
    ToFloat,
    /// bool and integers become the default float in both modes, as in true division.
    ToDefaultFloat,
    /// Everything becomes a float: as [`Lift::ToFloat`], but in NumPy mode always float64 or complex128.
    ToWidestFloat,
    /// bool becomes int8.
    BoolToI8,
}

/// The output's dtype as a function of the dtype to compute in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Out {
    /// The same.
    Same,
    /// bool.
    Bool,
    /// The real type of a complex type; otherwise the same.
    Real,
    /// Always this one.
    Fixed(DType),
    /// Two outputs: the first with the same dtype, the second with this one (`None`: the same).
    Two(Option<DType>),
}

impl Out {
    /// The dtype of the (first) output when computing in `compute`.
    #[inline]
    pub const fn of(self, compute: DType) -> DType {
        match self {
            Out::Same | Out::Two(_) => compute,
            Out::Bool => DType::Bool,
            Out::Real => compute.real(),
            Out::Fixed(dtype) => dtype,
        }
    }
}

/// The type rule of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Types {
    /// All array inputs promote to one dtype.
    Promote {
        /// Dtypes that the kernel computes in.
        accepts: DTypes,
        /// How other dtypes are converted.
        lift: Lift,
        /// Dtype of the output.
        out: Out,
    },
    /// The first input is a condition; the others promote to any dtype, which is the output's.
    Choose,
    /// The first input alone determines the dtype; the second is a count and must be an integer.
    Counted {
        /// Dtypes that the kernel computes in and returns.
        accepts: DTypes,
        /// How other dtypes are converted.
        lift: Lift,
    },
    /// Every output has the first input's dtype; all dtypes are allowed.
    First,
    /// Shape inference also returns dtypes and rejects those that the operator does not take.
    Infer,
}

impl Types {
    /// Arithmetic of numbers and booleans.
    pub const NUMERIC: Types = Types::same(DTypes::ALL);
    /// Arithmetic without booleans.
    pub const NUMBER: Types = Types::same(DTypes::NUMBER);
    /// Every ordered dtype.
    pub const REAL: Types = Types::same(DTypes::REAL);
    /// Integers and booleans.
    pub const BITS: Types = Types::same(DTypes::BOOL.or(DTypes::INT));
    /// Integers.
    pub const INTEGER: Types = Types::Promote {
        accepts: DTypes::INT,
        lift: Lift::BoolToI8,
        out: Out::Same,
    };
    /// Real or complex functions; integers become floats.
    pub const INEXACT: Types = Types::Promote {
        accepts: DTypes::INEXACT,
        lift: Lift::ToFloat,
        out: Out::Same,
    };
    /// Factorisations: real or complex, not float16 or bfloat16; integers become the default float.
    pub const FACTORED: Types = Types::Promote {
        accepts: DTypes::FACTORED,
        lift: Lift::ToDefaultFloat,
        out: Out::Same,
    };
    /// Real functions; integers become floats.
    pub const REAL_FLOAT: Types = Types::Promote {
        accepts: DTypes::FLOAT,
        lift: Lift::ToFloat,
        out: Out::Same,
    };
    /// Comparisons; every dtype.
    pub const COMPARE: Types = Types::Promote {
        accepts: DTypes::ALL,
        lift: Lift::No,
        out: Out::Bool,
    };

    /// Computes in and returns the promoted dtype, which must be one of these.
    pub const fn same(accepts: DTypes) -> Types {
        Types::Promote {
            accepts,
            lift: Lift::No,
            out: Out::Same,
        }
    }
}

/// The dtype that `inputs` promote to. Python numbers are weak.
#[inline]
pub fn promoted(inputs: &[Option<&Array>]) -> DType {
    let mode = promotion();
    match inputs {
        [Some(a)] => a.number().map_or(a.dtype(), dtype_of_number),
        [Some(a), Some(b)] if a.dtype() == b.dtype() && !a.is_weak() => a.dtype(),
        [Some(a), Some(b)] if b.is_weak() && !a.is_weak() && weak_fits(b, a.dtype()) => a.dtype(),
        [Some(a), Some(b)] if a.is_weak() && !b.is_weak() && weak_fits(a, b.dtype()) => b.dtype(),
        _ => {
            let mut operands = smallvec::SmallVec::<[Operand; 8]>::new();
            operands.extend(inputs.iter().flatten().map(|a| operand(a)));
            if operands.iter().all(|o| matches!(o, Operand::Weak(_))) {
                // All are Python numbers: the promotion mode determines the dtype.
                let kind = operands
                    .iter()
                    .filter_map(|o| {
                        if let Operand::Weak(k) = o {
                            Some(*k)
                        } else {
                            None
                        }
                    })
                    .max();
                return default_dtype(kind.unwrap_or(Kind::Float));
            }
            result_type(&operands, mode)
        }
    }
}

/// The dtype of a 0-d array made of a Python number of this kind.
pub fn default_dtype(kind: Kind) -> DType {
    match kind {
        Kind::Bool => DType::Bool,
        Kind::Integer => mxnet_tensor::default_int(),
        Kind::Float => mxnet_tensor::default_float(),
        Kind::Complex => mxnet_tensor::default_float().complex(),
    }
}

/// The dtype of an array made of one Python number: as [`default_dtype`], but uint64 for integers that need it. Integers beyond 64 bits do not fit
/// the returned dtype.
pub fn dtype_of_number(value: Scalar) -> DType {
    match value {
        Scalar::U64(x) if x > i64::MAX as u64 => DType::U64,
        other => default_dtype(other.kind()),
    }
}

fn operand(array: &Array) -> Operand {
    if array.is_weak() {
        Operand::Weak(array.kind())
    } else {
        Operand::Array(array.dtype())
    }
}

/// Whether a weak scalar leaves an array's dtype as it is.
#[inline]
fn weak_fits(weak: &Array, dtype: DType) -> bool {
    weak.kind() <= dtype.kind()
}

/// Dtypes of counts: integers that fit in int64.
const COUNTS: DTypes = DTypes(DTypes::BOOL.or(DTypes::INT).0 & !(1 << DType::U64 as u8));

/// Dtypes of an elementwise call: the one to compute in and the one to return.
///
/// # Errors
/// [`Error::DType`] if the operator does not take what the inputs promote to.
pub fn resolve_call(call: &Call) -> Result<(DType, DType)> {
    match call.op.types {
        Types::Promote { accepts, lift, out } => {
            resolve(call.op.name, accepts, lift, out, call.inputs, call.dtype)
        }
        Types::Choose => resolve(
            call.op.name,
            DTypes::ALL,
            Lift::No,
            Out::Same,
            call.inputs.get(1..).unwrap_or(&[]),
            call.dtype,
        ),
        Types::Counted { accepts, lift } => {
            let lead = call.inputs.get(..1).unwrap_or(&[]);
            if let Some(Some(count)) = call.inputs.get(1) {
                let exact = matches!(count.kind(), Kind::Bool | Kind::Integer);
                if !exact || (count.dtype() == DType::U64 && !count.is_weak()) {
                    return Err(rejected(call.op.name, COUNTS, count.dtype()));
                }
                // NumPy uses the first loop that takes both operands: a Python integer becomes float16.
                if let [Some(number)] = lead
                    && number.is_weak()
                    && number.kind() == Kind::Integer
                    && !count.is_weak()
                    && count.dtype().is_integer()
                    && call.dtype.is_none()
                    && promotion() == Promotion::NumPy
                {
                    return Ok((DType::F16, DType::F16));
                }
            }
            resolve(call.op.name, accepts, lift, Out::Same, lead, call.dtype)
        }
        Types::First | Types::Infer => Err(Error::internal(
            call.op.name,
            "this type rule needs shape inference",
        )),
    }
}

/// Dtypes of a call of a [`Types::Promote`] operator: the one to compute in and the one to return.
#[inline]
pub fn resolve(
    op: &'static str,
    accepts: DTypes,
    lift: Lift,
    out: Out,
    inputs: &[Option<&Array>],
    forced: Option<DType>,
) -> Result<(DType, DType)> {
    let found = promoted(inputs);
    let mut compute = forced.unwrap_or(found);
    if lift == Lift::ToWidestFloat && promotion() == Promotion::NumPy {
        compute = if compute.is_complex() {
            DType::C128
        } else {
            DType::F64
        };
    } else if !accepts.has(compute) {
        let exact = matches!(compute.kind(), Kind::Bool | Kind::Integer);
        let uses_smallest =
            exact && forced.is_none() && lift == Lift::ToFloat && promotion() == Promotion::NumPy;
        compute = if uses_smallest {
            smallest_float(inputs).or(Some(compute))
        } else {
            Some(compute)
        }
        .and_then(|d| {
            if accepts.has(d) {
                Some(d)
            } else {
                lifted(d, lift)
            }
        })
        .filter(|&d| accepts.has(d))
        .ok_or_else(|| rejected(op, accepts, compute))?;
    }
    Ok((compute, out.of(compute)))
}

/// The smallest float dtype that holds all values of a boolean or integer dtype of this size.
fn float_that_holds(dtype: DType) -> DType {
    match dtype.size() {
        1 => DType::F16,
        2 => DType::F32,
        _ => DType::F64,
    }
}

/// The smallest float that holds each integer input. NumPy takes them one by one, so int8 with uint8 gives float16.
fn smallest_float(inputs: &[Option<&Array>]) -> Option<DType> {
    let arrays = || inputs.iter().flatten().filter(|x| !x.is_weak());
    let widest = arrays().map(|x| x.dtype().kind()).max()?;
    if inputs.iter().flatten().any(|x| x.kind() > widest) {
        // A Python integer combined with booleans has its own dtype.
        return None;
    }
    arrays()
        .map(|x| float_that_holds(x.dtype()))
        .max_by_key(|d| d.size())
}

fn lifted(dtype: DType, lift: Lift) -> Option<DType> {
    let exact = matches!(dtype.kind(), Kind::Bool | Kind::Integer);
    match lift {
        Lift::ToFloat | Lift::ToWidestFloat if exact => Some(match promotion() {
            Promotion::Mx => mxnet_tensor::default_float(),
            Promotion::NumPy => float_that_holds(dtype),
        }),
        Lift::ToDefaultFloat if exact => Some(mxnet_tensor::default_float()),
        Lift::BoolToI8 if dtype == DType::Bool => Some(DType::I8),
        _ => None,
    }
}

#[cold]
fn rejected(op: &'static str, accepts: DTypes, found: DType) -> Error {
    let names: Vec<&str> = accepts.iter().map(DType::name).collect();
    Error::dtype(
        op,
        format!(
            "no kernel for dtype {}; it takes {}",
            found.name(),
            names.join(", ")
        ),
    )
}

/// The error for a Python integer that a dtype cannot hold.
#[cold]
pub fn out_of_bounds(op: &'static str, value: Scalar, dtype: DType) -> Error {
    let shown = match value {
        Scalar::U64(x) => x.to_string(),
        Scalar::Wide(x) if x.is_infinite() => "of more than 308 digits".to_owned(),
        Scalar::Wide(x) => format!("of about {x:e}"),
        other => other.as_i64().to_string(),
    };
    Error::overflow(
        op,
        format!("Python integer {shown} out of bounds for {}", dtype.name()),
    )
}

/// Checks that a Python number can become an element. NumPy's rules for that are stricter than those for arrays.
///
/// # Errors
/// [`Error::DType`] if a complex number would lose its imaginary part, [`Error::Value`] if NaN would become an integer, [`Error::Overflow`] if the
/// dtype cannot hold the number, truncated for an integer dtype.
#[inline]
pub fn check_element(op: &'static str, value: &Scalar, dtype: DType) -> Result<()> {
    match value {
        Scalar::I64(_) | Scalar::F64(_) if dtype.is_inexact() => Ok(()),
        _ => check_unlike(op, *value, dtype),
    }
}

/// [`check_element`] for a number whose kind is not the dtype's.
fn check_unlike(op: &'static str, value: Scalar, dtype: DType) -> Result<()> {
    let shown = |what: &str| format!("cannot convert {what} to {}", dtype.name());
    match (value, dtype.kind()) {
        (_, Kind::Bool) => Ok(()),
        (Scalar::C128(_), Kind::Integer | Kind::Float) => {
            Err(Error::dtype(op, shown("a complex number")))
        }
        (Scalar::F64(x), Kind::Integer) if x.is_nan() => Err(Error::value(op, shown("float NaN"))),
        (Scalar::F64(x), Kind::Integer) if x.is_infinite() => {
            Err(Error::overflow(op, shown("float infinity")))
        }
        (Scalar::F64(x), Kind::Integer) => {
            // -2^63 and 2^64 are exact as floats, so the bounds are exact.
            let whole = match x.trunc() {
                x if (-9_223_372_036_854_775_808.0..0.0).contains(&x) => Scalar::I64(x as i64),
                x if (0.0..18_446_744_073_709_551_616.0).contains(&x) => Scalar::U64(x as u64),
                x => Scalar::Wide(x),
            };
            check_unlike(op, whole, dtype)
        }
        _ if !value.fits(dtype) => Err(out_of_bounds(op, value, dtype)),
        _ => Ok(()),
    }
}
