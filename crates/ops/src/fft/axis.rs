//! `fft`, `rfft` and relatives along one axis, with NumPy's `n` and `norm`.

use mxnet_tensor::DType;

use crate::Array;
use crate::args::{Param, ParamKind};
use crate::context::{CallContext, CompositeContext};
use crate::error::Result;
use crate::fft::line::{self, Spec, compute};
use crate::opdef::{Cpu, Form, OpDef, Probe, Surface};

const NORMS: ParamKind = ParamKind::Choice(&["backward", "ortho", "forward"]);
pub(super) const NORM: Param = Param::optional("norm", NORMS);

const ONE: &[Param] = &[
    Param::array("a"),
    Param::optional("n", ParamKind::Int),
    Param::int("axis", -1),
    NORM,
    Param::out(),
];

/// Default fields for these operators.
const ALONG: OpDef = OpDef {
    about: &[
        (
            "n",
            "Length along the axis to which the array is truncated or zero-padded; None leaves it unchanged.",
        ),
        ("norm", "The direction that is divided by the length."),
    ],
    returns: &[(
        "ndarray",
        "Of the shape of `a` except for `axis`, in the precision of `a`: real from `irfft` and `hfft`, otherwise complex.",
    )],
    raises: &[("ValueError", "If `n` is below 1.")],
    params: ONE,
    form: Form::Out,
    ..OpDef::COMPOSITE
};

/// Complex transform.
pub static FFT: OpDef = OpDef {
    name: "fft",
    surface: &[Surface::NpFft("fft")],
    doc: "Discrete Fourier transform along `axis`: sums of the elements times exp(-2 pi i j k / n).\n\n`a` is truncated or zero-padded to `n` elements (default: its length). \
          `norm` selects the direction that is divided by n: 'backward' (default) the inverse one, 'forward' this one, 'ortho' both by the square root. The result is complex, of the precision of `a`; integers become the default float.",
    example: "
        >>> np.fft.fft([1.0, 2.0, 3.0, 4.0])
        array([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j])
    ",
    cpu: Cpu::Composite(|context| {
        let spec = spec(context, len_along(context, context.int("axis"))?, false)?;
        context.done(line::fft_lines(context.input(0), &spec)?)
    }),
    probe: Probe::calls(&[
        "f((8,))",
        "c((3, 5))",
        "c((4, 6)), 8, 0",
        "f((2, 7)), 4, norm='ortho'",
        "c((5,)), norm='forward'",
    ])
    .ulp(16),
    ..ALONG
};

/// Inverse complex transform.
pub static IFFT: OpDef = OpDef {
    name: "ifft",
    surface: &[Surface::NpFft("ifft")],
    doc: "Inverse discrete Fourier transform along `axis`: sums of the elements times exp(2 pi i j k / n), divided by n, so that `ifft(fft(a))` is \
        `a`. Parameters as for `fft`.",
    example: "
        >>> np.fft.ifft([10, -2 + 2j, -2, -2 - 2j])
        array([1.+0.j, 2.+0.j, 3.+0.j, 4.+0.j])
    ",
    cpu: Cpu::Composite(|context| {
        let spec = spec(context, len_along(context, context.int("axis"))?, true)?;
        context.done(line::fft_lines(context.input(0), &spec)?)
    }),
    probe: Probe::calls(&[
        "f((8,))",
        "c((3, 5))",
        "c((4, 6)), 8, 0",
        "f((2, 7)), 4, norm='ortho'",
        "c((5,)), norm='forward'",
    ])
    .ulp(16),
    ..ALONG
};

/// Transform of real numbers.
pub static RFFT: OpDef = OpDef {
    name: "rfft",
    surface: &[Surface::NpFft("rfft")],
    doc: "Discrete Fourier transform of real numbers along `axis`: the first `n // 2 + 1` elements of `fft`, of which the others are conjugates. Parameters as for `fft`.",
    raises: &[
        ("ValueError", "If `n` is below 1."),
        ("TypeError", "If `a` is complex."),
    ],
    example: "
        >>> np.fft.rfft([1.0, 2.0, 3.0, 4.0])
        array([10.+0.j, -2.+2.j, -2.+0.j])
    ",
    cpu: Cpu::Composite(|context| {
        line::real_only(context)?;
        let spec = spec(context, len_along(context, context.int("axis"))?, false)?;
        context.done(line::rfft_lines(context.input(0), &spec, 1.0)?)
    }),
    probe: Probe::calls(&[
        "f((8,))",
        "f((3, 5))",
        "f((4, 6)), 8, 0",
        "f((2, 7)), 4, norm='ortho'",
    ])
    .ulp(16),
    ..ALONG
};

/// Inverse transform to real numbers.
pub static IRFFT: OpDef = OpDef {
    name: "irfft",
    surface: &[Surface::NpFft("irfft")],
    doc: "Inverse of `rfft`: `n` real numbers (default: `2 (m - 1)` for the m elements of `a` along `axis`) whose transform begins with `a`.\n\nFor an odd number of elements, `n` must be given. The imaginary part of the first element, and for an even `n` of the last one, is ignored.",
    example: "
        >>> np.fft.irfft([10, -2 + 2j, -2])
        array([1., 2., 3., 4.])
        >>> np.fft.irfft(np.fft.rfft([1.0, 2.0, 3.0]), 3)
        array([1., 2., 3.])
    ",
    cpu: Cpu::Composite(|context| {
        let spec = spec(context, real_len(context, context.int("axis"))?, true)?;
        context.done(to_real(context.input(0), &spec)?)
    }),
    probe: Probe::calls(&[
        "c((5,))",
        "c((3, 5)), 7",
        "c((4, 3)), 9, 0",
        "c((2, 7)), 4, norm='ortho'",
        "f((2, 4))",
    ])
    .ulp(16),
    ..ALONG
};

/// Transform of numbers with Hermitian symmetry.
pub static HFFT: OpDef = OpDef {
    name: "hfft",
    surface: &[Surface::NpFft("hfft")],
    doc: "Discrete Fourier transform of a signal with Hermitian symmetry, of which `a` has the first half along `axis`: `n` real numbers (default: `2 (m - 1)` for m \
          elements). Parameters as for `fft`.",
    example: "
        >>> np.fft.hfft([1.0, 2.0, 3.0])
        array([ 8., -2.,  0., -2.])
    ",
    cpu: Cpu::Composite(|context| {
        let spec = spec(context, real_len(context, context.int("axis"))?, false)?;
        context.done(to_real(context.input(0), &spec)?)
    }),
    probe: Probe::calls(&[
        "c((5,))",
        "c((3, 5)), 7",
        "c((4, 3)), 9, 0",
        "c((2, 7)), 4, norm='ortho'",
        "c((4,)), norm='forward'",
    ])
    .ulp(16),
    ..ALONG
};

/// Inverse of the transform of numbers with Hermitian symmetry.
pub static IHFFT: OpDef = OpDef {
    name: "ihfft",
    surface: &[Surface::NpFft("ihfft")],
    doc: "Inverse of `hfft`: the first `n // 2 + 1` elements of the inverse transform of real numbers. Parameters as for `fft`.",
    raises: &[
        ("ValueError", "If `n` is below 1."),
        ("TypeError", "If `a` is complex."),
    ],
    example: "
        >>> np.fft.ihfft([8.0, -4.0, 0.0, -4.0])
        array([0.+0.j, 2.+0.j, 4.+0.j])
    ",
    cpu: Cpu::Composite(|context| {
        line::real_only(context)?;
        let spec = spec(context, len_along(context, context.int("axis"))?, true)?;
        context.done(line::rfft_lines(context.input(0), &spec, 1.0)?)
    }),
    probe: Probe::calls(&[
        "f((8,))",
        "f((3, 5))",
        "f((4, 6)), 8, 0",
        "f((2, 7)), 4, norm='ortho'",
        "f((5,)), norm='forward'",
    ])
    .ulp(16),
    ..ALONG
};

/// Size of the first argument along an axis.
pub(super) fn len_along(context: &CallContext, axis: i64) -> Result<i64> {
    let axis = mxnet_tensor::normalize_axis(axis as isize, context.input(0).ndim())?;
    Ok(context.shape(0)[axis] as i64)
}

/// The even number of real elements whose half spectrum the first argument has along an axis.
pub(super) fn real_len(context: &CallContext, axis: i64) -> Result<i64> {
    Ok(2 * (len_along(context, axis)? - 1))
}

/// The transform of the call. `default_len` is its length if the call has no `n`.
fn spec(context: &CompositeContext, default_len: i64, inverse: bool) -> Result<Spec> {
    spec_of(
        context,
        context.opt_int("n").unwrap_or(default_len),
        context.int("axis"),
        inverse,
    )
}

/// A transform of `n` along `axis` under the call's norm.
///
/// # Errors
/// [`crate::Error::Value`] if `n` is less than 1.
pub(super) fn spec_of(
    context: &CompositeContext,
    n: i64,
    axis: i64,
    inverse: bool,
) -> Result<Spec> {
    if n < 1 {
        let problem =
            format!("Invalid number of FFT data points ({n}) specified, must be at least 1");
        return Err(context.value_error(problem));
    }
    let scale = match (context.str("norm"), inverse) {
        ("ortho", _) => (n as f64).sqrt().recip(),
        ("forward", false) | ("" | "backward", true) => (n as f64).recip(),
        _ => 1.0,
    };
    Ok(Spec {
        n: n as usize,
        axis,
        inverse,
        scale,
    })
}

/// Real numbers from the first half of their spectrum, which may itself be real. float16 and bfloat16 keep their dtype, as in NumPy.
pub(super) fn to_real(x: &Array, spec: &Spec) -> Result<Array> {
    if x.dtype().is_complex() {
        return line::irfft_lines(x, spec, 1.0);
    }
    let y = line::irfft_lines(&x.astype(compute(x.dtype()).complex())?, spec, 1.0)?;
    match x.dtype() {
        half @ (DType::F16 | DType::BF16) => y.astype(half),
        _ => Ok(y),
    }
}
