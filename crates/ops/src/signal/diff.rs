//! `diff` and `ediff1d`: differences of neighbouring elements.

use mxnet_tensor::{Casting, DType, Dims, can_cast};
use smallvec::SmallVec;

use crate::args::Param;
use crate::context::CompositeContext;
use crate::elementwise::comparison::NOT_EQUAL;
use crate::error::Result;
use crate::opdef::{Cpu, OpDef, Probe, Surface};
use crate::shape::{concatenate, narrow};
use crate::types::default_dtype;
use crate::{Array, Outputs};

/// Differences along an axis.
pub static DIFF: OpDef = OpDef {
    name: "diff",
    surface: &[Surface::Np("diff")],
    params: &[
        Param::array("a"),
        Param::int("n", 1),
        Param::int("axis", -1),
        Param::optional_array("prepend"),
        Param::optional_array("append"),
    ],
    doc: "Differences of neighbouring elements along `axis`, taken `n` times; each time the axis becomes one shorter. For booleans, whether \
        neighbours differ.\n\n`prepend` and `append` are first joined to the ends of the axis; a 0-d array counts as one element there.",
    about: &[
        ("n", "How often."),
        ("prepend", "Values joined at the start of the axis first."),
        ("append", "Values joined at the end of the axis first."),
    ],
    returns: &[(
        "ndarray",
        "Of the shape of `a`, `n` shorter along the axis.",
    )],
    raises: &[("ValueError", "If `n` is negative or there is no axis.")],
    example: "
        >>> np.diff([1, 4, 9, 16])
        array([3, 5, 7])
        >>> np.diff([1, 4, 9, 16], n=2)
        array([2, 2])
    ",
    cpu: Cpu::Composite(differences),
    probe: Probe::calls(&[
        "f((5,))",
        "f((3, 4)), 2, 0",
        "f((3, 4)), 1, -1, f((3, 1)), f((3, 2))",
        "i((6,), 9), 3",
        "b((7,))",
        "f((2, 3)), 5",
        "f((3, 4)), 1, 0, 2.0",
    ]),
    ..OpDef::COMPOSITE
};

/// NumPy's `ediff1d`.
pub static EDIFF1D: OpDef = OpDef {
    name: "ediff1d",
    surface: &[Surface::Np("ediff1d")],
    params: &[
        Param::array("ary"),
        Param::optional_array("to_end"),
        Param::optional_array("to_begin"),
    ],
    doc: "Differences of neighbours in the flattened array.",
    about: &[
        ("ary", "The array."),
        (
            "to_end",
            "Values appended to the differences; their dtype must cast to that of `ary`.",
        ),
        (
            "to_begin",
            "Values put before the differences, under the same condition.",
        ),
    ],
    returns: &[("ndarray", "One axis, the dtype of `ary`.")],
    raises: &[(
        "TypeError",
        "If the dtype of an end cannot become that of `ary`.",
    )],
    example: "
        >>> np.ediff1d([1, 4, 9], to_begin=0)
        array([0, 3, 5])
    ",
    cpu: Cpu::Composite(|context| {
        let x = context.input(0);
        let (n, dtype) = (x.len(), x.dtype());
        let end = |i: usize, name: &str| -> Result<Option<Array>> {
            let Some(end) = context.opt(i) else {
                return Ok(None);
            };
            // A Python number promotes by its kind only.
            let fits = match end.is_weak() {
                true => end.kind() <= dtype.kind(),
                false => can_cast(end.dtype(), dtype, Casting::SameKind),
            };
            if !fits {
                return Err(context.dtype_error(format!(
                    "dtype of `{name}` must be compatible with that of `ary`, {}, found {}",
                    dtype.name(),
                    end.dtype().name()
                )));
            }
            end.reshape(&[end.len()])?.astype(dtype).map(Some)
        };
        let before = end(2, "to_begin")?;
        let behind = end(1, "to_end")?;
        let x = x.reshape(&[n])?;
        let (later, earlier) = (
            narrow(&x, 0, n.min(1), n)?,
            narrow(&x, 0, 0, n.saturating_sub(1))?,
        );
        let steps = later.sub(&earlier)?;
        if behind.is_none() && before.is_none() {
            return context.done(steps);
        }
        let parts: SmallVec<[&Array; 3]> =
            before.iter().chain([&steps]).chain(behind.iter()).collect();
        context.done(concatenate(&parts, 0)?)
    }),
    probe: Probe::calls(&[
        "f((5,))",
        "f((3, 4)), f((2,)), f((1, 1))",
        "i((6,), 9), 3, np.array([7, 8])",
        "f((1,))",
        "f((0,)), 2.0",
    ]),
    ..OpDef::COMPOSITE
};

fn differences(context: &CompositeContext) -> Result<Outputs> {
    let (x, n) = (context.input(0), context.int("n"));
    if n < 0 {
        return Err(context.value_error(format!("`n` must not be negative, found {n}")));
    }
    if x.ndim() == 0 {
        return Err(context.shape_error("`a` must have at least 1 axis, found shape ()"));
    }
    let axis = context.axis("axis", 0)?;
    if n == 0 {
        return context.done(x.clone());
    }
    let mut x = x.clone();
    let end = |i: usize| context.opt(i).map(|end| end_piece(end, x.shape(), axis));
    let (before, after) = (end(1).transpose()?, end(2).transpose()?);
    if before.is_some() || after.is_some() {
        let joined = {
            let parts: SmallVec<[&Array; 3]> =
                before.iter().chain([&x]).chain(after.iter()).collect();
            concatenate(&parts, axis)?
        };
        x = joined;
    }
    // An empty axis stays empty; one more step still determines the dtype of the result.
    for _ in 0..n.min(x.shape()[axis] as i64 + 1) {
        x = steps(&x, axis)?;
    }
    context.done(x)
}

/// Each element less the one before it; of truth values whether they differ.
pub(super) fn steps(x: &Array, axis: usize) -> Result<Array> {
    let len = x.shape()[axis];
    let later = narrow(x, axis, len.min(1), len)?;
    let earlier = narrow(x, axis, 0, len.saturating_sub(1))?;
    match x.dtype() {
        DType::Bool => later.binary(&NOT_EQUAL, &earlier),
        _ => later.sub(&earlier),
    }
}

/// The array to join to an end of the axis; a 0-d array is broadcast along the other axes.
fn end_piece(end: &Array, shape: &[usize], axis: usize) -> Result<Array> {
    let end = if end.is_weak() {
        // As in NumPy, a Python number becomes an array of its default dtype here and takes part in promotion.
        end.astype(default_dtype(end.kind()))?
    } else {
        end.clone()
    };
    if end.ndim() > 0 {
        return Ok(end);
    }
    let mut one = Dims::from_slice(shape);
    one[axis] = 1;
    end.broadcast_to(&one)
}
