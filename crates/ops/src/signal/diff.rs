//! Differences of neighbours.

use mxnet_tensor::{DType, Dims};
use smallvec::SmallVec;

use crate::args::Param;
use crate::cx::CompositeCx;
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
    doc: "Each element less the one before it along `axis`, `n` times over: one element fewer each time; of truth values whether they differ.\n\n`prepend` and `append` \
          are put at the ends of the axis first; arrays without axes are taken as one element there.",
    about: &[
        ("n", "How often."),
        ("prepend", "What is put in front first."),
        ("append", "What is put behind first."),
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

fn differences(cx: &CompositeCx) -> Result<Outputs> {
    let (x, n) = (cx.input(0), cx.int("n"));
    if n < 0 {
        return Err(cx.value_error(format!("`n` must not be negative, found {n}")));
    }
    if x.ndim() == 0 {
        return Err(cx.shape_error("`a` must have at least 1 axis, found shape ()"));
    }
    let axis = cx.axis("axis", 0)?;
    if n == 0 {
        return cx.done(x.clone());
    }
    let mut x = x.clone();
    let end = |i: usize| cx.opt(i).map(|end| end_piece(end, x.shape(), axis));
    let (before, after) = (end(1).transpose()?, end(2).transpose()?);
    if before.is_some() || after.is_some() {
        let joined = {
            let parts: SmallVec<[&Array; 3]> =
                before.iter().chain([&x]).chain(after.iter()).collect();
            concatenate(&parts, axis)?
        };
        x = joined;
    }
    for _ in 0..n {
        let len = x.shape()[axis];
        let later = narrow(&x, axis, len.min(1), len)?;
        let earlier = narrow(&x, axis, 0, len.saturating_sub(1))?;
        x = if x.dtype() == DType::Bool {
            later.binary(&NOT_EQUAL, &earlier)?
        } else {
            later.sub(&earlier)?
        };
    }
    cx.done(x)
}

/// What is put at an end of an axis: itself, or its only element all along the other axes.
fn end_piece(end: &Array, shape: &[usize], axis: usize) -> Result<Array> {
    let end = if end.is_weak() {
        // A Python number is an array of its own here, as in NumPy: it takes part in promotion.
        end.astype(default_dtype(end.dtype().kind()))?
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
