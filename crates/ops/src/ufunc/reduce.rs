//! `reduce`, `accumulate`, `reduceat` and `outer` of any elementwise function of two arrays.

use mxnet_tensor::{DType, Dims, Scalar, normalize_axes, normalize_axis};
use smallvec::SmallVec;

use super::dtype::{fold_dtype, foldable};
use super::kernels::{FOLD, SEGMENTS, STEPS};
use crate::args::{Attrs, Value};
use crate::elementwise::comparison::LESS;
use crate::elementwise::select::choose;
use crate::error::{Error, Result, Tuple};
use crate::invoke::{invoke_with, invoke1, only};
use crate::mode::Flags;
use crate::opdef::OpDef;
use crate::reduce::ANY;
use crate::{Array, creation, fp_errors, interrupt, memory, shape};

/// The start value of a fold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Initial {
    /// The function's identity if it has one, else the first element.
    Natural,
    /// The first element.
    First,
    /// This value.
    At(Scalar),
}

/// Arguments of a reduction besides the function and the elements.
#[derive(Clone, Copy)]
pub struct Reduction<'a> {
    /// Axes to fold; `None`: all of them.
    pub axes: Option<&'a [i64]>,
    /// Dtype to compute in and return.
    pub dtype: Option<DType>,
    /// Whether folded axes stay, with length 1.
    pub keepdims: bool,
    /// Start value.
    pub initial: Initial,
    /// Mask of the elements to fold, broadcast; `None`: all of them.
    pub mask: Option<&'a Array>,
}

impl Reduction<'_> {
    /// A reduction over all axes, in the natural dtype.
    pub const ALL: Reduction<'static> = Reduction {
        axes: None,
        dtype: None,
        keepdims: false,
        initial: Initial::Natural,
        mask: None,
    };
}

/// Folds the elements of `x` over axes with a binary elementwise function.
///
/// # Errors
/// [`Error::Value`] for functions that do not fold, for several axes where the order matters, for empty axes without an identity, and for a mask
/// without an identity; [`Error::Axis`]; [`Error::DType`]; [`Error::Shape`] for a mask that does not broadcast to `x`.
pub fn reduce(op: &'static OpDef, x: &Array, how: &Reduction) -> Result<Array> {
    let dtype = fold_dtype(op, "reduce", x, how.dtype)?;
    let axes = axes_of(x, how.axes)?;
    if axes.len() > 1 && !op.fold.reorders {
        let problem = format!(
            "reduction operation '{}' is not reorderable, so at most one axis may be specified",
            op.name
        );
        return Err(Error::value(op.name, problem));
    }
    let start = match how.initial {
        Initial::Natural => op.fold.identity,
        Initial::First => None,
        Initial::At(value) => Some(value),
    };
    let folded: usize = axes.iter().map(|&a| x.shape()[a as usize]).product();
    let shape = reduced_shape(x.shape(), &axes, how.keepdims);
    if start.is_none() {
        if how.mask.is_some() {
            let problem = format!(
                "reduction operation '{}' does not have an identity, so to use a where mask one has to specify 'initial'",
                op.name
            );
            return Err(Error::value(op.name, problem));
        }
        // As in NumPy, even if the result is empty: only the folded axes decide whether the call fails.
        if folded == 0 {
            let problem = format!(
                "zero-size array to reduction operation {} which has no identity",
                op.name
            );
            return Err(Error::value(op.name, problem));
        }
    }
    let x = &astype_of_loop(x, op, dtype)?;
    if let (0, Some(value)) = (folded, start) {
        return creation::full(&shape, value, dtype, x.device());
    }
    let mask = how.mask.map(|mask| fitting(op, mask, x)).transpose()?;
    // Masked elements are replaced by a neutral value: the identity, or for extremes the start value. While a gradient is recorded an infinite
    // identity would give infinity minus infinity in the gradient, so masked elements are skipped one by one instead.
    let composed_of_calls = op.fold.reduce.is_none() && is_composed(op, x);
    let neutral = op
        .fold
        .identity
        .or(if op.fold.reorders { start } else { None })
        .filter(|value| !composed_of_calls || value.as_f64().is_finite());
    let (x, mask) = match (mask, neutral) {
        (Some(mask), Some(neutral)) => {
            let neutral = Array::constant(neutral, dtype)?;
            (&choose(&mask, x, &neutral)?, None)
        }
        (mask, _) => (x, mask),
    };
    let explicit = match how.initial {
        Initial::At(value) => Some(value),
        _ => None,
    };
    let y = if let Some(fold) = op.fold.reduce {
        let attrs = attributes(fold, &axes, dtype, how.keepdims);
        return with_initial(op, invoke1(fold, &[x], &attrs)?, explicit, dtype);
    } else if composed_of_calls {
        let start = if mask.is_some() { start } else { explicit };
        let y = composed(op, x, mask.as_ref(), &axes, start)?;
        return y.reshape(&shape);
    } else {
        // Without a mask the identity has no effect and is skipped, except for functions that drop the sign of their operand.
        let drops_sign =
            matches!(op.name, "gcd" | "hypot") && matches!(how.initial, Initial::Natural);
        let start = if mask.is_some() || drops_sign {
            start
        } else {
            explicit
        };
        if let (&[axis], None, None) = (&axes[..], start, &mask) {
            check_division_steps(op, x, axis)?;
        }
        if op.refuses.is_some() && dtype.is_signed() && dtype.is_integer() {
            refuse_negative(
                op,
                x,
                axes.first().map_or(0, |&axis| axis as usize),
                start.is_some(),
            )?;
        }
        let attrs: Attrs = [
            Value::Str(op.name.into()),
            Value::from(&axes[..]),
            Value::DType(dtype),
            start.map_or(Value::None, Value::Scalar),
            Value::Bool(how.keepdims),
        ]
        .into_iter()
        .collect();
        invoke_with(&FOLD, &[Some(x), mask.as_ref()], &attrs)?
    };
    only(&FOLD, y)
}

/// An error if an element along the axis is a negative exponent. The first element is the base, unless the fold starts from a number.
fn refuse_negative(op: &'static OpDef, x: &Array, axis: usize, from_first: bool) -> Result<()> {
    if x.is_empty() || x.ndim() == 0 && !from_first {
        return Ok(());
    }
    let exponents = match from_first {
        true => x.clone(),
        false => shape::narrow(x, axis, 1, x.shape()[axis])?,
    };
    let zero = Array::constant(Scalar::I64(0), x.dtype())?;
    let negative = exponents.detach().binary(&LESS, &zero)?;
    let attrs: Attrs = [Value::None, Value::Bool(false)].into_iter().collect();
    if invoke1(&ANY, &[&negative], &attrs)?.item()? == Scalar::Bool(true) {
        let problem = "Integers to negative integer powers are not allowed.";
        return Err(Error::value(op.name, problem).with_hint("make one of them a float"));
    }
    Ok(())
}

/// Folds `initial` into the result. A Python number out of range of the dtype is an error there.
fn with_initial(
    op: &'static OpDef,
    y: Array,
    initial: Option<Scalar>,
    dtype: DType,
) -> Result<Array> {
    let y = y.astype(dtype)?;
    match initial {
        // A number of a higher kind is converted to the dtype of the result first.
        Some(value) if value.kind() > dtype.kind() => Array::constant(value, dtype)?.binary(op, &y),
        Some(value) => Array::weak_scalar(value)?.binary(op, &y)?.astype(dtype),
        None => Ok(y),
    }
}

/// Attributes of a reduction operator with its own kernel.
fn attributes(fold: &OpDef, axes: &[i64], dtype: DType, keepdims: bool) -> Attrs {
    let mut attrs = Attrs::none();
    for param in fold.params.iter().filter(|p| p.is_attribute()) {
        attrs.push(match param.name {
            "axis" => Value::from(axes),
            "dtype" => Value::DType(dtype),
            "keepdims" => Value::Bool(keepdims),
            _ => Value::from(param.default),
        });
    }
    attrs
}

/// The normalised axes of `x`. As in NumPy, a 0-d array may be folded over axis 0 or -1.
fn axes_of(x: &Array, axes: Option<&[i64]>) -> Result<SmallVec<[i64; 4]>> {
    match axes {
        None => Ok((0..x.ndim() as i64).collect()),
        Some([0 | -1]) if x.ndim() == 0 => Ok(SmallVec::new()),
        Some(axes) => {
            let axes: SmallVec<[isize; 4]> = axes.iter().map(|&a| a as isize).collect();
            Ok(normalize_axes(&axes, x.ndim())?
                .into_iter()
                .map(|a| a as i64)
                .collect())
        }
    }
}

/// The shape of a reduction over `axes`.
fn reduced_shape(shape: &[usize], axes: &[i64], keepdims: bool) -> Dims {
    let mut left = Dims::new();
    for (i, &n) in shape.iter().enumerate() {
        if !axes.contains(&(i as i64)) {
            left.push(n);
        } else if keepdims {
            left.push(1);
        }
    }
    left
}

/// A mask as booleans, broadcast to the shape of `x`.
fn fitting(op: &'static OpDef, mask: &Array, x: &Array) -> Result<Array> {
    let mask = mask.astype(DType::Bool)?;
    if mask.layout().broadcast_to(x.shape()).is_err() {
        let problem = format!(
            "`where` of shape {} does not broadcast to the array's shape {}",
            Tuple(mask.shape()),
            Tuple(x.shape())
        );
        return Err(Error::shape(op.name, problem));
    }
    mask.broadcast_to(x.shape())
}

/// Whether the fold is composed of recorded calls of the function, so that its gradient is theirs.
fn is_composed(op: &OpDef, x: &Array) -> bool {
    let flags = Flags::current();
    op.is_differentiable() && flags.is_recording() && x.entry().is_some() && x.dtype().is_inexact()
}

/// A fold composed of calls of the function: combines both halves of an axis if the order does not matter, else one element after the other.
fn composed(
    op: &'static OpDef,
    x: &Array,
    mask: Option<&Array>,
    axes: &[i64],
    start: Option<Scalar>,
) -> Result<Array> {
    let order: SmallVec<[i64; 8]> = axes
        .iter()
        .copied()
        .chain((0..x.ndim() as i64).filter(|a| !axes.contains(a)))
        .collect();
    let rowed = |x: &Array| -> Result<Array> {
        let moved = x.transpose(Some(&order))?;
        let rows = moved.shape()[..axes.len()].iter().product();
        let width = moved.shape()[axes.len()..].iter().product();
        moved.reshape(&[rows, width])
    };
    let (mut x, mask) = (rowed(x)?, mask.map(rowed).transpose()?);
    if let (true, None) = (op.fold.reorders, &mask) {
        while x.shape()[0] > 1 {
            let (n, upper) = (x.shape()[0], x.shape()[0].div_ceil(2));
            let low = shape::narrow(&x, 0, 0, n - upper)?;
            let folded = low.binary(op, &shape::narrow(&x, 0, upper, n)?)?;
            x = match n % 2 {
                0 => folded,
                _ => shape::concatenate(&[&folded, &shape::narrow(&x, 0, n - upper, upper)?], 0)?,
            };
        }
        return match start {
            Some(value) => Array::constant(value, x.dtype())?.binary(op, &x),
            None => Ok(x),
        };
    }
    let row = |x: &Array, i: usize| shape::narrow(x, 0, i, i + 1);
    let mut y = match start {
        Some(value) => creation::full(&[1, x.shape()[1]], value, x.dtype(), x.device())?,
        None => row(&x, 0)?,
    };
    for i in usize::from(start.is_none())..x.shape()[0] {
        let next = y.binary(op, &row(&x, i)?)?;
        y = match &mask {
            Some(mask) => choose(&row(mask, i)?, &next, &y)?,
            None => next,
        };
    }
    Ok(y)
}

/// All intermediate results of folding `x` along an axis.
///
/// # Errors
/// As [`reduce`]; [`Error::DType`] for arrays without axes.
pub fn accumulate(op: &'static OpDef, x: &Array, axis: i64, dtype: Option<DType>) -> Result<Array> {
    foldable(op, "accumulate")?;
    if x.ndim() == 0 {
        return Err(Error::dtype(op.name, "cannot accumulate on a scalar"));
    }
    let axis = normalize_axis(axis as isize, x.ndim())?;
    let dtype = fold_dtype(op, "accumulate", x, dtype)?;
    let x = astype_of_loop(x, op, dtype)?;
    let composed = is_composed(op, &x);
    if let Some(steps) = op.fold.accumulate
        && (!composed || steps.is_differentiable())
    {
        let attrs: Attrs = [
            Value::Int(axis as i64),
            Value::DType(dtype),
            Value::Bool(false),
        ]
        .into_iter()
        .collect();
        return invoke1(steps, &[&x], &attrs);
    }
    if op.refuses.is_some() && dtype.is_signed() && dtype.is_integer() && x.shape()[axis] > 0 {
        refuse_negative(op, &x, axis, false)?;
    }
    if !composed {
        let attrs: Attrs = [
            Value::Str(op.name.into()),
            Value::Int(axis as i64),
            Value::DType(dtype),
        ]
        .into_iter()
        .collect();
        return invoke1(&STEPS, &[&x], &attrs);
    }
    let n = x.shape()[axis];
    let mut steps: Vec<Array> = Vec::with_capacity(n);
    for i in 0..n {
        let next = shape::narrow(&x, axis, i, i + 1)?;
        let step = match steps.last() {
            Some(last) => last.binary(op, &next)?,
            None => next,
        };
        steps.push(step);
    }
    match steps.iter().collect::<Vec<_>>().as_slice() {
        [] => Ok(x),
        steps => shape::concatenate(steps, axis),
    }
}

/// Folds segments of an axis, each from its start to the next start; the element at the start alone if the next start is not after it.
///
/// # Errors
/// As [`accumulate`]; [`Error::Index`] for starts out of bounds; [`Error::Value`] unless the starts are a 1-d array.
pub fn reduceat(
    op: &'static OpDef,
    x: &Array,
    starts: &Array,
    axis: i64,
    dtype: Option<DType>,
) -> Result<Array> {
    foldable(op, "reduceat")?;
    if x.ndim() == 0 {
        return Err(Error::dtype(op.name, "cannot reduceat on a scalar"));
    }
    if starts.ndim() != 1 {
        let problem = format!(
            "reduceat takes indices of one axis, found shape {}",
            Tuple(starts.shape())
        );
        return Err(Error::value(op.name, problem));
    }
    if !starts.dtype().is_integer() && !starts.is_empty() {
        let problem = format!(
            "reduceat takes integer indices, found {}",
            starts.dtype().name()
        );
        return Err(Error::dtype(op.name, problem));
    }
    let axis = normalize_axis(axis as isize, x.ndim())?;
    let starts: Vec<i64> = starts.detach().astype(DType::I64)?.to_vec()?;
    interrupt::check()?;
    let len = x.shape()[axis];
    if let Some(bad) = starts.iter().find(|&&s| s < 0 || s >= len as i64) {
        let problem = format!(
            "index {bad} out-of-bounds in {}.reduceat [0, {len})",
            op.name
        );
        return Err(Error::index(op.name, problem));
    }
    memory::check_available(op.name, 3 * size_of_val(&starts[..]))?;
    let dtype = fold_dtype(op, "reduceat", x, dtype)?;
    let x = astype_of_loop(x, op, dtype)?;
    let attrs: Attrs = [
        Value::Str(op.name.into()),
        Value::from(&starts[..]),
        Value::Int(axis as i64),
        Value::DType(dtype),
    ]
    .into_iter()
    .collect();
    interrupt::check()?;
    if !is_composed(op, &x) || starts.is_empty() {
        return invoke1(&SEGMENTS, &[&x], &attrs);
    }
    let axes = [axis as i64];
    let mut segments = Vec::with_capacity(starts.len());
    for (j, &start) in starts.iter().enumerate() {
        let end = starts.get(j + 1).map_or(len, |&next| next as usize);
        let part = shape::narrow(&x, axis, start as usize, end.max(start as usize + 1))?;
        let how = Reduction {
            axes: Some(&axes),
            dtype: Some(dtype),
            keepdims: true,
            initial: Initial::First,
            mask: None,
        };
        segments.push(reduce(op, &part, &how)?);
    }
    shape::concatenate(&segments.iter().collect::<Vec<_>>(), axis)
}

/// `a` with `b.ndim()` new axes at the end, so that a function of it and `b` combines all pairs of elements.
///
/// # Errors
/// [`Error::Value`] for functions that do not take two arrays.
pub fn outer(op: &'static OpDef, a: &Array, b: &Array) -> Result<Array> {
    if op.params.len() != 2 {
        return Err(Error::value(
            op.name,
            "outer product only supported for binary functions",
        ));
    }
    let mut shape = Dims::from_slice(a.shape());
    shape.resize(a.ndim() + b.ndim(), 1);
    if shape.len() == a.ndim() {
        return Ok(a.clone());
    }
    a.reshape(&shape)
}

/// The elements in the dtype in which `op` folds them; logical functions take elements of any dtype.
fn astype_of_loop(x: &Array, op: &'static OpDef, dtype: DType) -> Result<Array> {
    // Reduction kernels convert by themselves: sums of small integers need no copy in 64 bits.
    let converts = op
        .fold
        .reduce
        .is_some_and(|fold| fold.params.iter().any(|p| p.name == "dtype"));
    let logic = dtype == DType::Bool && op.fold.reduce.is_some();
    if x.dtype() == dtype || (converts && x.dtype().kind() <= dtype.kind()) || logic {
        return Ok(x.clone());
    }
    x.astype(dtype)
}

/// Checks the intermediate results of folding integers by division for floating-point errors (division by zero).
fn check_division_steps(op: &'static OpDef, x: &Array, axis: i64) -> Result<()> {
    let len = normalize_axis(axis as isize, x.ndim()).map(|axis| x.shape()[axis])?;
    if !fp_errors::is_watching() || !x.dtype().is_integer() || len < 2 {
        return Ok(());
    }
    fp_errors::unwatched(|| {
        let so_far = accumulate(op, x, axis, None)?;
        let axis = normalize_axis(axis as isize, x.ndim())?;
        let operands = [
            &shape::narrow(&so_far, axis, 0, len - 1)?,
            &shape::narrow(x, axis, 1, len)?,
        ];
        fp_errors::check_integers(op, &operands, x.dtype(), "reduce")
    })
}
