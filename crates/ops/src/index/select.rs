//! Whole slices along an axis: take, compress, extract.

use mxnet_tensor::{Casting, DType, Dims, IndexItem, Promotion, Scalar, promotion};

use super::resolve::resolved_or_unchanged;
use super::{GATHER, SCATTER_ADD, element_read, gather_along, nonzero};
use crate::Array;
use crate::args::{Attrs, Param, ParamKind, Value};
use crate::error::{Result, Tuple};
use crate::invoke::invoke1;
use crate::opdef::{Cpu, Form, OpDef, Probe, Surface};

/// NumPy's `take`.
pub static TAKE: OpDef = OpDef {
    name: "take",
    surface: &[Surface::Np("take"), Surface::Method("take")],
    params: &[
        Param::array("a"),
        Param::array("indices"),
        Param::optional("axis", ParamKind::Int),
        Param::out(),
        Param::choice("mode", &["raise", "wrap", "clip"], "raise"),
    ],
    form: Form::Out,
    out_casting: Casting::Unsafe,
    doc: "The slices of `a` at `indices` along `axis`, of the flattened array for None. `mode` determines how an index out of bounds is treated: an \
        error ('raise'; negative ones count from the end), modulo the length ('wrap'), or the nearest index ('clip').",
    about: &[
        (
            "indices",
            "Positions along the axis. Floats are truncated, unless NumPy's dtypes are set: programs for MXNet count in float32.",
        ),
        ("mode", "How a position out of bounds is treated."),
    ],
    returns: &[(
        "ndarray",
        "Of the shape of `a`, with that of `indices` in place of the axis.",
    )],
    raises: &[(
        "IndexError",
        "If a position is out of bounds and `mode` is 'raise'.",
    )],
    example: "
        >>> np.take([10, 20, 30], [2, 0, -1])
        array([30, 10, 30])
        >>> np.take([[1, 2], [3, 4]], [1], axis=1)
        array([[2],
               [4]])
    ",
    cpu: Cpu::Composite(|context| {
        let x = context.input(0);
        let converted;
        let indices = match (context.input(1).number(), context.dtype_of(1)) {
            // A constant index needs no index array.
            (Some(number @ Scalar::I64(_)), _) => {
                converted = Array::constant(number, DType::I64)?;
                &converted
            }
            // As in NumPy, booleans are the positions 0 and 1.
            (_, dtype)
                if dtype == DType::Bool || (dtype.is_float() && promotion() == Promotion::Mx) =>
            {
                converted = context.input(1).astype(DType::I64)?;
                &converted
            }
            _ => context.input(1),
        };
        let mode = match context.str("mode") {
            "wrap" => "wrap",
            "clip" => "clip",
            _ => "raise",
        };
        let taken = match context.is_none("axis") {
            true => take(&x.reshape(&[x.len()])?, indices, 0, mode),
            false => take(x, indices, context.axis("axis", 0)?, mode),
        };
        context.done(taken?)
    }),
    probe: Probe::calls(&[
        "f((3, 4)), i((2, 2), 12)",
        "f((3, 4)), i((2,), 3), 0",
        "f((3, 4)), i((), 4), 1",
        "f((2, 3, 4)), i((2, 2), 3) - 3, -2",
        "f((3, 4)), i((5,), 9) - 4, 1, mode='wrap'",
        "f((3, 4)), i((5,), 9) - 4, 1, mode='clip'",
    ]),
    positions: &[1],
    ..OpDef::COMPOSITE
};

/// NumPy's `compress`.
pub static COMPRESS: OpDef = OpDef {
    name: "compress",
    surface: &[Surface::Np("compress")],
    params: &[
        Param::array("condition"),
        Param::array("a"),
        Param::optional("axis", ParamKind::Int),
        Param::out(),
    ],
    form: Form::Out,
    out_casting: Casting::Unsafe,
    doc: "The slices of `a` along `axis` (of the flattened array for None) at which `condition`, an array of one axis, is true.",
    about: &[(
        "condition",
        "Booleans, one for each position along the axis.",
    )],
    returns: &[("ndarray", "Of the shape of `a` except along the axis.")],
    raises: &[
        ("ValueError", "If `condition` does not have one axis."),
        (
            "IndexError",
            "If a true element of `condition` is out of bounds of the axis.",
        ),
    ],
    example: "
        >>> np.compress([True, False, True], [[1, 2, 3], [4, 5, 6]], axis=1)
        array([[1, 3],
               [4, 6]])
    ",
    cpu: Cpu::Composite(|context| {
        let (condition, x) = (context.input(0), context.input(1));
        if condition.ndim() != 1 {
            return Err(context.value_error(format!(
                "`condition` must have 1 axis, found shape {}",
                Tuple(condition.shape())
            )));
        }
        if context.is_none("axis") {
            return context.done(chosen(condition, &x.reshape(&[x.len()])?)?);
        }
        let axis = context.axis("axis", 1)?;
        if x.ndim() == 1 {
            return context.done(chosen(condition, x)?);
        }
        let at = nonzero::positions(condition)?.index([IndexItem::Int(0)].into())?;
        let taken = take(x, &at, axis, "raise");
        context.done(taken?)
    }),
    probe: Probe::calls(&[
        "b((3,)), f((3, 4)), 0",
        "b((5,)), f((3, 4))",
        "b((2,)), f((3, 4)), -1",
        "b((4,)), f((5,)), 0",
        "b((5,)), f((5,)), -1",
    ]),
    positions: &[0],
    ..OpDef::COMPOSITE
};

/// NumPy's `extract`.
pub static EXTRACT: OpDef = OpDef {
    name: "extract",
    surface: &[Surface::Np("extract")],
    params: &[Param::array("condition"), Param::array("arr")],
    doc: "The elements of the flattened `arr` at which the flattened `condition` is true.",
    about: &[("condition", "Booleans, one for each element.")],
    returns: &[("ndarray", "Copy with one axis and the dtype of `arr`.")],
    raises: &[(
        "IndexError",
        "If a true element of `condition` is out of bounds of `arr`.",
    )],
    example: "
        >>> x = np.arange(6)
        >>> np.extract(x % 2 == 0, x)
        array([0, 2, 4])
    ",
    cpu: Cpu::Composite(|context| {
        let (condition, x) = (context.input(0), context.input(1));
        context.done(chosen(
            &condition.reshape(&[condition.len()])?,
            &x.reshape(&[x.len()])?,
        )?)
    }),
    probe: Probe::calls(&["b((3, 4)), f((3, 4))", "b((2,)), f((3,))"]),
    positions: &[0],
    ..OpDef::COMPOSITE
};

/// The elements of `x` where `condition` is true; both have one axis.
fn chosen(condition: &Array, x: &Array) -> Result<Array> {
    if let Some(y) = element_read::masked(x, condition)? {
        return Ok(y);
    }
    let at = nonzero::positions(condition)?.index([IndexItem::Int(0)].into())?;
    take(x, &at, 0, "raise")
}

/// The slices of `x` at `indices` along `axis`. `mode` is `raise`, `wrap` or `clip`.
///
/// # Errors
/// [`crate::Error::Index`] for an index out of bounds with `raise`, or any index into an axis without elements; [`crate::Error::DType`] if the
/// indices are no integers.
pub fn take(x: &Array, indices: &Array, axis: usize, mode: &'static str) -> Result<Array> {
    if mode == "raise"
        && let Some(y) = element_read::take_positions(x, axis, &[indices])?
    {
        return Ok(y);
    }
    let shape: Dims = x.shape()[..axis]
        .iter()
        .chain(indices.shape())
        .chain(&x.shape()[axis + 1..])
        .copied()
        .collect();
    if x.shape()[..axis].contains(&0) {
        // The result is empty: the index values do not matter.
        return crate::creation::zeros(&shape, x.dtype(), x.device());
    }
    let indices = resolved_or_unchanged(indices, x.shape()[axis], axis, mode)?;
    slices(x, &indices, axis)
}

/// Zeros of `shape` to which the slices `y` are added at resolved `indices` along `axis`: the adjoint of [`slices`].
pub(crate) fn scattered_slices(
    y: &Array,
    indices: &Array,
    axis: usize,
    shape: &[usize],
) -> Result<Array> {
    let mut key = vec![IndexItem::ALL; axis];
    key.push(IndexItem::Array {
        shape: Dims::from_slice(indices.shape()),
    });
    let attrs: Attrs = [Value::Index(key.into()), Value::from(shape)]
        .into_iter()
        .collect();
    invoke1(&SCATTER_ADD, &[y, indices], &attrs)
}

/// The slices of `x` at resolved `indices` along `axis`.
pub(super) fn slices(x: &Array, indices: &Array, axis: usize) -> Result<Array> {
    // A 1-d array needs no blocks.
    if x.ndim() == 1 {
        let found = gather_along(x, &indices.reshape(&[indices.len()])?, 0)?;
        return found.reshape(indices.shape());
    }
    let mut key = vec![IndexItem::ALL; axis];
    key.push(IndexItem::Array {
        shape: Dims::from_slice(indices.shape()),
    });
    let attrs: Attrs = [Value::Index(key.into())].into_iter().collect();
    invoke1(&GATHER, &[x, indices], &attrs)
}
