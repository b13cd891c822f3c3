//! `trapezoid`: integrals of samples.

use mxnet_tensor::{Dims, Scalar, normalize_axis};

use super::diff::steps;
use crate::Array;
use crate::args::{Default, Param};
use crate::opdef::{Cpu, OpDef, Probe, Surface};
use crate::shape::narrow;

/// Integral by the trapezoidal rule.
pub static TRAPEZOID: OpDef = OpDef {
    name: "trapezoid",
    surface: &[Surface::Np("trapezoid")],
    params: &[
        Param::array("y"),
        Param::optional_array("x"),
        Param::array("dx").or(Default::Float(1.0)),
        Param::int("axis", -1),
    ],
    doc: "Integral along `axis` by the trapezoidal rule: sums of the means of neighbours times their distances.",
    about: &[
        ("y", "Samples."),
        (
            "x",
            "Coordinates of the samples: a vector along `axis`, or an array of the shape of `y`.",
        ),
        ("dx", "Distance between samples, if `x` is None."),
        ("axis", "The axis that is integrated over."),
    ],
    returns: &[("ndarray", "Of the shape of `y` without `axis`.")],
    raises: &[(
        "ValueError",
        "If there is no such axis, or the shapes do not fit.",
    )],
    example: "
        >>> np.trapezoid([1.0, 2.0, 3.0], dx=2)
        array(8.)
    ",
    cpu: Cpu::Composite(|context| {
        let y = context.input(0);
        let axis = context.axis("axis", 0)?;
        let distance = match context.opt(1) {
            None => match context.opt(2) {
                Some(dx) => dx.clone(),
                None => Array::weak_scalar(Scalar::F64(1.0))?,
            },
            Some(x) if x.ndim() == 1 => {
                let step = steps(x, 0)?;
                let mut shape: Dims = std::iter::repeat_n(1, y.ndim()).collect();
                shape[axis] = step.len();
                step.reshape(&shape)?
            }
            // Of more axes than the samples, it has those of the result.
            Some(x) => steps(x, normalize_axis(context.int("axis") as isize, x.ndim())?)?,
        };
        let len = y.shape()[axis];
        let later = narrow(y, axis, len.min(1), len)?;
        let earlier = narrow(y, axis, 0, len.saturating_sub(1))?;
        let areas = distance.mul(&later.add(&earlier)?)?.scale(0.5)?;
        context.done(areas.sum(Some(&[context.int("axis")]), false)?)
    }),
    probe: Probe::calls(&[
        "f((5,))",
        "f((3, 4)), None, 0.5, 0",
        "f((3, 4)), f((4,))",
        "f((3, 4)), f((3, 4)), axis=1",
        "i((2, 5), 9)",
    ])
    .ulp(16),
    ..OpDef::COMPOSITE
};
