//! The keywords `casting`, `order`, `out` and `where` of composite operators.

use mxnet_tensor::{Casting, DType, can_cast};

use crate::Array;
use crate::args::Param;
use crate::context::CompositeContext;
use crate::elementwise::select::choose;
use crate::error::{Error, Result};

/// Casting rule for inputs and results.
pub(crate) const CASTING: Param = Param::choice(
    "casting",
    &["no", "equiv", "safe", "same_kind", "unsafe"],
    "same_kind",
)
.keyword();

/// Memory order of a new result.
pub(crate) const ORDER: Param = Param::choice("order", &["K", "C", "F", "A"], "K").keyword();

/// NumPy's `subok`: whether results keep the class of the first operand.
pub(crate) const SUBOK: Param = Param::bool("subok", true).keyword();

fn casting(context: &CompositeContext) -> Casting {
    context.str("casting").parse().unwrap_or(Casting::SameKind)
}

/// An operand in the dtype of the argument `dtype`, if that is given.
pub(crate) fn computed_in(context: &CompositeContext, i: usize, x: &Array) -> Result<Array> {
    match context.dtype("dtype") {
        Some(dtype) => operand_in(context, i, x, dtype),
        None => Ok(x.clone()),
    }
}

/// An operand in `dtype`. An error if the casting rule forbids the conversion.
pub(crate) fn operand_in(
    context: &CompositeContext,
    i: usize,
    x: &Array,
    dtype: DType,
) -> Result<Array> {
    let allowed = if x.is_weak() {
        casting(context) == Casting::Unsafe || x.dtype().kind() <= dtype.kind()
    } else {
        can_cast(x.dtype(), dtype, casting(context))
    };
    if !allowed {
        return Err(context.dtype_error(format!(
            "cannot cast operand {i} from {} to {} under casting rule '{}'",
            x.dtype().name(),
            dtype.name(),
            context.str("casting")
        )));
    }
    x.astype(dtype)
}

/// Converts the result to the dtype of `out`, which keeps its elements where `mask` is false; without `out`, to the memory order that `order` names.
pub(crate) fn delivered(
    context: &CompositeContext,
    y: Array,
    mask: Option<&Array>,
) -> Result<Array> {
    let Some(out) = context.outs.iter().copied().flatten().next() else {
        let y = match mask {
            // Elements that are not computed are undefined.
            Some(mask) => choose(
                mask,
                &y,
                &Array::uninitialised(y.shape(), y.dtype(), y.device())?,
            )?,
            None => y,
        };
        let fortran = |x: &&Array| x.layout().is_fortran() && !x.layout().is_contiguous();
        let mut arrays = context
            .inputs
            .iter()
            .copied()
            .flatten()
            .filter(|x| x.ndim() > 0);
        return match context.str("order") {
            "K" => Ok(y),
            "A" if arrays.all(|x| fortran(&x)) => y.in_order("F"),
            "A" => y.in_order("C"),
            order => y.in_order(order),
        };
    };
    if !can_cast(y.dtype(), out.dtype(), casting(context)) {
        let problem = format!(
            "cannot cast output from {} to {} with casting rule '{}'",
            y.dtype().name(),
            out.dtype().name(),
            context.str("casting")
        );
        return Err(Error::dtype(context.op.name, problem));
    }
    let y = y.astype(out.dtype())?;
    match mask {
        Some(mask) => choose(mask, &y, out),
        None => Ok(y),
    }
}
