//! `fftfreq`, `rfftfreq`, `fftshift`, `ifftshift`.

use mxnet_tensor::{Dims, normalize_axis};
use smallvec::SmallVec;

use crate::args::{Attrs, Param, ParamKind, Value};
use crate::context::{CallContext, CompositeContext, KernelContext};
use crate::error::{Error, Result};
use crate::invoke::invoke1;
use crate::opdef::{Cost, Cpu, Grad, Inferred, OpDef, Probe, Surface, one_of};
use crate::shape::ROLL;
use crate::{Outputs, cpu};

const GRID: &[Param] = &[
    Param::required("n", ParamKind::Int),
    Param::float("d", 1.0),
    Param::optional("device", ParamKind::Device),
    Param::optional("dtype", ParamKind::DType).keyword(),
];

/// Default fields for the frequencies.
const FREQUENCIES: OpDef = OpDef {
    about: &[
        ("n", "Number of samples."),
        ("d", "Distance between the samples."),
        (
            "dtype",
            "Real floating-point dtype of the result; None is the default float.",
        ),
    ],
    returns: &[("ndarray", "The frequencies, one axis.")],
    raises: &[
        ("ValueError", "If `n` is negative."),
        ("TypeError", "If `dtype` is not a real floating-point type."),
        ("ZeroDivisionError", "If `n` or `d` is 0."),
    ],
    params: GRID,
    grad: Grad::Stop("it depends on no array"),
    cost: Cost::PerKiB(300),
    probe: Probe::calls(&["8", "7, 0.5", "1"]),
    ..OpDef::DEFAULT
};

/// Frequencies of a complex transform.
pub static FFTFREQ: OpDef = OpDef {
    name: "fftfreq",
    surface: &[Surface::NpFft("fftfreq")],
    doc: "Frequencies of the `n` elements of `fft` for samples `d` apart, in cycles per unit of `d`: 0, 1, ..., then the negative ones, over `n d`.",
    example: "
        >>> np.fft.fftfreq(5, d=0.1)
        array([ 0.,  2.,  4., -4., -2.])
    ",
    infer: |context| frequencies(context, |n| n),
    cpu: Cpu::Kernel(|context| {
        let positive = (context.int("n") + 1) / 2;
        fill(context, |i, n| if i < positive { i } else { i - n })
    }),
    ..FREQUENCIES
};

/// Frequencies of a transform of real numbers.
pub static RFFTFREQ: OpDef = OpDef {
    name: "rfftfreq",
    surface: &[Surface::NpFft("rfftfreq")],
    doc: "Frequencies of the `n // 2 + 1` elements of `rfft` for samples `d` apart, in cycles per unit of `d`: 0, 1, ... over `n d`.",
    example: "
        >>> np.fft.rfftfreq(5, d=0.1)
        array([0., 2., 4.])
    ",
    infer: |context| frequencies(context, |n| n / 2 + 1),
    cpu: Cpu::Kernel(|context| fill(context, |i, _| i)),
    ..FREQUENCIES
};

fn frequencies(context: &CallContext, len: fn(usize) -> usize) -> Result<Inferred> {
    let n = context.int("n");
    if n == 0 || context.float("d") == 0.0 {
        let problem = format!(
            "`n` and `d` must not be 0, found {n} and {}",
            context.float("d")
        );
        return Err(Error::zero_division(context.op.name, problem));
    }
    if n < 1 {
        return Err(context.value_error(format!("`n` must be at least 1, found {n}")));
    }
    let dtype = context
        .dtype("dtype")
        .unwrap_or_else(mxnet_tensor::default_float);
    if !dtype.is_float() {
        return Err(context.dtype_error(format!(
            "`dtype` must be a real floating-point type, found {}",
            dtype.name()
        )));
    }
    one_of(Dims::from_slice(&[len(n as usize)]), dtype)
}

/// Fills the output with `number(i, n)`, divided by n times the sample spacing.
fn fill(context: &KernelContext, number: impl Fn(i64, i64) -> i64 + Sync) -> Result<()> {
    let n = context.int("n");
    let unit = (n as f64 * context.float("d")).recip();
    cpu::generate(
        context.output(0),
        |i| number(i as i64, n) as f64 * unit,
        context.threads,
    )
}

const SHIFT: &[Param] = &[Param::array("x"), Param::axes("axes")];

/// Moves the zero frequency to the middle.
pub static FFTSHIFT: OpDef = OpDef {
    name: "fftshift",
    surface: &[Surface::NpFft("fftshift")],
    params: SHIFT,
    doc: "Elements shifted by half the length along `axes` (all of them for None), so that the zero frequency is in the middle.",
    about: &[("x", "The array.")],
    returns: &[("ndarray", "Of the shape of `x`.")],
    example: "
        >>> np.fft.fftshift(np.fft.fftfreq(4))
        array([-0.5 , -0.25,  0.  ,  0.25])
    ",
    cpu: Cpu::Composite(|context| shifted(context, |n| n / 2)),
    probe: Probe::calls(&[
        "f((5,))",
        "f((4, 3))",
        "f((4, 3)), 1",
        "f((2, 5)), (0, 1)",
        "f((0, 3))",
    ]),
    ..OpDef::COMPOSITE
};

/// Moves the zero frequency to the front.
pub static IFFTSHIFT: OpDef = OpDef {
    name: "ifftshift",
    surface: &[Surface::NpFft("ifftshift")],
    params: SHIFT,
    doc: "Inverse of `fftshift`: moves the zero frequency back to the front. The two differ by one element for odd lengths.",
    about: &[("x", "The array.")],
    returns: &[("ndarray", "Of the shape of `x`.")],
    example: "
        >>> np.fft.ifftshift(np.fft.fftshift([0, 1, 2, 3, 4]))
        array([0, 1, 2, 3, 4])
    ",
    cpu: Cpu::Composite(|context| shifted(context, |n| -(n / 2))),
    probe: Probe::calls(&[
        "f((5,))",
        "f((4, 3))",
        "f((4, 3)), 1",
        "f((2, 5)), (0, 1)",
        "f((0, 3))",
    ]),
    ..OpDef::COMPOSITE
};

fn shifted(context: &CompositeContext, half: fn(i64) -> i64) -> Result<Outputs> {
    let x = context.input(0);
    let axes: SmallVec<[i64; 4]> = match context.opt_ints("axes") {
        Some(axes) => SmallVec::from_slice(axes),
        None => (0..x.ndim() as i64).collect(),
    };
    if axes.is_empty() {
        return context.done(x.copy()?);
    }
    let shifts = axes
        .iter()
        .map(|&axis| {
            Ok(half(
                x.shape()[normalize_axis(axis as isize, x.ndim())?] as i64,
            ))
        })
        .collect::<Result<SmallVec<[i64; 4]>>>()?;
    let attrs: Attrs = [Value::Ints(shifts), Value::Ints(axes)]
        .into_iter()
        .collect();
    context.done(invoke1(&ROLL, &[x], &attrs)?)
}
