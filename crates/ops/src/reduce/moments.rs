//! Variance and standard deviation.
#![allow(unsafe_code)]

use mxnet_kernels::reduce::{Moments, moments};
use mxnet_tensor::{Casting, DType};
use smallvec::SmallVec;

use crate::args::{Default, Param, ParamKind};
use crate::autograd::GradContext;
use crate::context::{CallContext, KernelContext};
use crate::elementwise::select::choose;
use crate::error::Result;
use crate::opdef::{Cpu, FpErrors, Grad, Grads, Inferred, Keep, OpDef, Probe, Surface};
use crate::reduce::fold::{REDUCTION, averaged, folded, over, own_axes, spread};
use crate::reduce::masked::no_degrees_of_freedom;
use crate::reduce::{MASKED_STD, MASKED_VAR};
use crate::{Array, creation};

/// Default fields for variance and standard deviation.
const SPREAD: OpDef = OpDef {
    about: &[
        (
            "ddof",
            "Subtracted from the number of elements in the divisor; also `correction`.",
        ),
        ("correction", "Another name of `ddof`."),
        ("mean", "The mean, if it has been computed before."),
    ],
    returns: &[(
        "ndarray",
        "Real floats, of the shape of `a` without the axes.",
    )],
    params: &[
        Param::array("a"),
        Param::reduced("axis"),
        Param::optional("dtype", ParamKind::DType),
        Param::out(),
        Param::float("ddof", 0.0).or(Default::Int(0)),
        Param::bool("keepdims", false),
    ],
    infer: real,
    warns: Some(no_degrees_of_freedom),
    probe: Probe::calls(&[
        "f((3, 4))",
        "f((3, 4)), 0",
        "f((2, 3, 4)), (0, 2), ddof=1",
        "f((3, 4)), -1, keepdims=True",
        "i((3, 4), 9), 1",
    ]),
    ..REDUCTION
};

/// Mean squared distance from the mean.
pub static VAR: OpDef = OpDef {
    name: "var",
    surface: &[Surface::Np("var"), Surface::Method("var")],
    doc: "Variance over `axis` (all axes for None): squared distances from the mean, divided by their number less `ddof`. Real for complex arrays.\n\n\
          Source: one pass over blocks centred on their own mean, joined by Chan, Golub and LeVeque's update.",
    example: "
        >>> np.var([1.0, 2.0, 4.0])
        array(1.5555556)
        >>> np.var([1.0, 2.0, 4.0], ddof=1)
        array(2.3333335)
    ",
    full_signature: Some(&MASKED_VAR),
    fp_errors: FpErrors::named("reduce"),
    cpu: Cpu::Kernel(|context| run(context, false)),
    grad: Grad::Rule(Keep::INPUTS, |g| g.one(slope(g, g.dy(0))?)),
    ..SPREAD
};

/// Square root of the variance.
pub static STD: OpDef = OpDef {
    name: "std",
    surface: &[Surface::Np("std"), Surface::Method("std")],
    out_casting: Casting::SameKind,
    doc: "Standard deviation over `axis` (all axes for None): the square root of `var`.",
    example: "
        >>> np.std([[1.0, 3.0], [2.0, 6.0]], axis=1)
        array([1., 2.])
    ",
    full_signature: Some(&MASKED_STD),
    fp_errors: FpErrors::named("reduce"),
    cpu: Cpu::Kernel(|context| run(context, true)),
    // d sqrt(v) = dv / (2 sqrt(v)). If all elements are equal, the slope is defined as 0: any finite divisor gives that.
    grad: Grad::Rule(Keep::ALL, |g| -> Result<Grads> {
        let deviation = g.output(0);
        let one = creation::ones(deviation.shape(), deviation.dtype(), deviation.device())?;
        let divisor = choose(&deviation.astype(DType::Bool)?, deviation, &one)?;
        g.one(slope(g, &g.dy(0).div(&divisor.scale(2.0)?)?)?)
    }),
    ..SPREAD
};

fn real(context: &CallContext) -> Result<Inferred> {
    own_axes(context)?;
    folded(context, |dtype: DType| averaged(dtype).real())
}

/// The gradient of the variance: 2 (x - mean) / (n - ddof) times the cotangent.
fn slope(g: &GradContext, dy: &Array) -> Result<Array> {
    let axes = g.reduced_axes("axis")?;
    let n: usize = axes.iter().map(|&a| g.shape(0)[a]).product();
    let axes: SmallVec<[i64; 4]> = axes.iter().map(|&a| a as i64).collect();
    let x = g.input(0);
    let x = if x.dtype().is_inexact() {
        x.clone()
    } else {
        x.astype(dy.dtype())?
    };
    let centred = x.sub(&x.mean(Some(&axes), true)?)?;
    spread(g, &dy.scale(2.0 / (n as f64 - g.float("ddof")))?)?.mul(&centred)
}

fn run(context: &KernelContext, root: bool) -> Result<()> {
    let ddof = context.float("ddof");
    let about_real = context
        .dtype("dtype")
        .is_some_and(|dtype| !dtype.is_complex());
    over(context, |source, reduced, target| {
        let (variance, deviation) = if root {
            (None, Some(*target))
        } else {
            (Some(*target), None)
        };
        // SAFETY: 1. both layouts lie within their storages. 2. the output was allocated for this call, so it overlaps nothing.
        unsafe {
            moments(
                context.threads,
                source,
                reduced,
                &Moments {
                    mean: None,
                    variance,
                    deviation,
                    ddof,
                    about_real,
                },
            )
        }
    })
}
