//! Transforms along several axes: one after the other, the last one first, as NumPy orders them.

use smallvec::SmallVec;

use crate::Array;
use crate::args::{Default, Param, ParamKind};
use crate::context::{CallContext, CompositeContext};
use crate::error::{Error, Result};
use crate::fft::axis::{NORM, len_along, real_len, spec_of, to_real};
use crate::fft::line;
use crate::opdef::{Cpu, Form, OpDef, Probe, Surface, Warned};

const ANY: &[Param] = &[
    Param::array("a"),
    Param::optional("s", ParamKind::Ints).with_gaps(),
    Param::axes("axes"),
    NORM,
    Param::out(),
];

const TWO: &[Param] = &[
    Param::array("a"),
    Param::optional("s", ParamKind::Ints).with_gaps(),
    Param::axes("axes").or(Default::Ints(&[-2, -1])).or_none(),
    NORM,
    Param::out(),
];

/// Default fields for these operators.
const ALONG: OpDef = OpDef {
    about: &[
        (
            "s",
            "Lengths along the axes to which the array is truncated or zero-padded.",
        ),
        (
            "norm",
            "The direction that is divided by the number of elements.",
        ),
    ],
    returns: &[(
        "ndarray",
        "Of the shape of `a` except for the axes, in the precision of `a`: real from `irfft2` and `irfftn`, otherwise complex.",
    )],
    raises: &[(
        "ValueError",
        "If `s` and `axes` have different lengths, or a length is below 1.",
    )],
    form: Form::Out,
    warns: Some(warn_of_lengths),
    ..OpDef::COMPOSITE
};

/// Deprecation warnings for `s` without `axes` and for `None` in `s`, as in NumPy 2.0.
fn warn_of_lengths(context: &CallContext) -> Result<Option<Warned>> {
    let Some(lens) = context.opt_ints("s") else {
        return Ok(None);
    };
    Ok(match context.is_none("axes") {
        true => Some(Warned::Deprecated(
            "`axes` should not be `None` if `s` is not `None`: in a future version of NumPy, `s` will no longer apply to the last axes (deprecated in NumPy 2.0)",
        )),
        false => lens.contains(&Param::GAP).then_some(Warned::Deprecated(
            "an array containing `None` values to `s` is deprecated (NumPy 2.0): use -1 for the length of the array",
        )),
    })
}

const COMPLEX: Probe = Probe::calls(&[
    "f((3, 4))",
    "c((2, 3, 5))",
    "c((4, 6)), (5, 3), (0, 1)",
    "f((2, 3, 4)), (3, 2), (0, 1), norm='ortho'",
    "c((3, 4)), (-1, 6), (0, 1), 'forward'",
])
.ulp(16);

const REAL: Probe = Probe::calls(&[
    "f((3, 4))",
    "f((2, 3, 5))",
    "f((2, 3, 4)), (3, 2), (0, 1), norm='ortho'",
    "f((3, 4)), (-1, 6), (0, 1), 'forward'",
])
.ulp(16);

const HALF: Probe = Probe::calls(&[
    "c((3, 4))",
    "c((2, 3, 5))",
    "c((2, 3, 4)), (3, 5), (0, 1), norm='ortho'",
    "c((3, 4)), (-1, 6), (0, 1), 'forward'",
])
.ulp(16);

const FORWARD: OpDef = OpDef {
    cpu: Cpu::Composite(|context| context.done(complex(context, false)?)),
    probe: COMPLEX,
    ..ALONG
};

const BACKWARD: OpDef = OpDef {
    cpu: Cpu::Composite(|context| context.done(complex(context, true)?)),
    probe: COMPLEX,
    ..ALONG
};

const FROM_REAL: OpDef = OpDef {
    cpu: Cpu::Composite(|context| context.done(from_real(context)?)),
    probe: REAL,
    ..ALONG
};

const TO_REAL: OpDef = OpDef {
    cpu: Cpu::Composite(|context| context.done(into_real(context)?)),
    probe: HALF,
    ..ALONG
};

/// Complex transform along several axes.
pub static FFTN: OpDef = OpDef {
    name: "fftn",
    surface: &[Surface::NpFft("fftn")],
    params: ANY,
    doc: "Discrete Fourier transform along `axes`: all of them, or the last `len(s)` if only `s` is given.\n\n`s` has the lengths along these axes, to which `a` is truncated or zero-padded; -1 means the length of `a`. An axis that is named twice is transformed twice. `norm` as for `fft`. Without axes the array itself.",
    example: "
        >>> np.fft.fftn([[1.0, 2.0], [3.0, 4.0]])
        array([[10.+0.j, -2.+0.j],
               [-4.+0.j,  0.+0.j]])
    ",
    ..FORWARD
};

/// Inverse complex transform along several axes.
pub static IFFTN: OpDef = OpDef {
    name: "ifftn",
    surface: &[Surface::NpFft("ifftn")],
    params: ANY,
    doc: "Inverse discrete Fourier transform along `axes`. Parameters as for `fftn`.",
    example: "
        >>> np.fft.ifftn([[10.0, -2.0], [-4.0, 0.0]])
        array([[1.+0.j, 2.+0.j],
               [3.+0.j, 4.+0.j]])
    ",
    ..BACKWARD
};

/// Complex transform along two axes.
pub static FFT2: OpDef = OpDef {
    name: "fft2",
    surface: &[Surface::NpFft("fft2")],
    params: TWO,
    doc: "`fftn` along the last two axes, unless `axes` names others.",
    example: "
        >>> np.fft.fft2(np.eye(2))
        array([[2.+0.j, 0.+0.j],
               [0.+0.j, 2.+0.j]])
    ",
    ..FORWARD
};

/// Inverse complex transform along two axes.
pub static IFFT2: OpDef = OpDef {
    name: "ifft2",
    surface: &[Surface::NpFft("ifft2")],
    params: TWO,
    doc: "`ifftn` along the last two axes, unless `axes` names others.",
    example: "
        >>> np.fft.ifft2([[2.0, 0.0], [0.0, 2.0]])
        array([[1.+0.j, 0.+0.j],
               [0.+0.j, 1.+0.j]])
    ",
    ..BACKWARD
};

/// Transform of real numbers along several axes.
pub static RFFTN: OpDef = OpDef {
    name: "rfftn",
    surface: &[Surface::NpFft("rfftn")],
    params: ANY,
    doc: "Discrete Fourier transform of real numbers along `axes`: `rfft` along the last of them, `fft` along the others. Parameters as for `fftn`.",
    example: "
        >>> np.fft.rfftn(np.ones((2, 3)))
        array([[6.+0.j, 0.+0.j],
               [0.+0.j, 0.+0.j]])
    ",
    ..FROM_REAL
};

/// Inverse transform to real numbers along several axes.
pub static IRFFTN: OpDef = OpDef {
    name: "irfftn",
    surface: &[Surface::NpFft("irfftn")],
    params: ANY,
    doc: "Inverse of `rfftn`: `ifft` along all of `axes` but the last, then `irfft` along that one, whose length defaults to `2 (m - 1)` for m elements. \
          Parameters as for `fftn`.",
    example: "
        >>> np.fft.irfftn([[6.0, 0.0], [0.0, 0.0]], s=(2, 3), axes=(0, 1))
        array([[1., 1., 1.],
               [1., 1., 1.]])
    ",
    ..TO_REAL
};

/// Transform of real numbers along two axes.
pub static RFFT2: OpDef = OpDef {
    name: "rfft2",
    surface: &[Surface::NpFft("rfft2")],
    params: TWO,
    doc: "`rfftn` along the last two axes, unless `axes` names others.",
    example: "
        >>> np.fft.rfft2([[1.0, 2.0], [3.0, 4.0]])
        array([[10.+0.j, -2.+0.j],
               [-4.+0.j,  0.+0.j]])
    ",
    ..FROM_REAL
};

/// Inverse transform to real numbers along two axes.
pub static IRFFT2: OpDef = OpDef {
    name: "irfft2",
    surface: &[Surface::NpFft("irfft2")],
    params: TWO,
    doc: "`irfftn` along the last two axes, unless `axes` names others.",
    example: "
        >>> np.fft.irfft2([[10.0, -2.0], [-4.0, 0.0]])
        array([[1., 2.],
               [3., 4.]])
    ",
    ..TO_REAL
};

/// An axis as the caller gave it and the length along it; `None`: the default length.
type Step = (i64, Option<i64>);
type Steps = SmallVec<[Step; 4]>;

fn steps(context: &CompositeContext) -> Result<Steps> {
    let ndim = context.input(0).ndim() as i64;
    let (lens, axes) = (context.opt_ints("s"), context.opt_ints("axes"));
    let axes: SmallVec<[i64; 4]> = match (axes, lens) {
        (Some(axes), _) => SmallVec::from_slice(axes),
        (None, Some(lens)) => (-(lens.len() as i64)..0).collect(),
        (None, None) => (0..ndim).collect(),
    };
    if let Some(lens) = lens
        && lens.len() != axes.len()
    {
        let problem = format!(
            "Shape and axes have different lengths: {} and {}",
            lens.len(),
            axes.len()
        );
        return Err(context.value_error(problem));
    }
    axes.iter()
        .enumerate()
        .map(|(i, &axis)| {
            let own = len_along(context, axis)?;
            let len = lens.map(|lens| match lens[i] {
                -1 | Param::GAP => own,
                len => len,
            });
            Ok((axis, len))
        })
        .collect()
}

/// Complex transforms along the axes of `steps`, the last one first.
fn along(context: &CompositeContext, mut x: Array, steps: &[Step], inverse: bool) -> Result<Array> {
    for &(axis, len) in steps.iter().rev() {
        let len = match len {
            Some(len) => len,
            None => len_along(context, axis)?,
        };
        x = line::fft_lines(&x, &spec_of(context, len, axis, inverse)?)?;
    }
    Ok(x)
}

fn complex(context: &CompositeContext, inverse: bool) -> Result<Array> {
    along(context, context.input(0).clone(), &steps(context)?, inverse)
}

/// Splits off the last of the axes.
fn last<'a>(context: &CompositeContext, steps: &'a [Step]) -> Result<(&'a Step, &'a [Step])> {
    steps.split_last().ok_or_else(|| {
        Error::index(
            context.op.name,
            "at least 1 axis must be transformed, found 0",
        )
    })
}

fn from_real(context: &CompositeContext) -> Result<Array> {
    line::real_only(context)?;
    let steps = steps(context)?;
    let (&(axis, len), rest) = last(context, &steps)?;
    let len = match len {
        Some(len) => len,
        None => len_along(context, axis)?,
    };
    let half = line::rfft_lines(context.input(0), &spec_of(context, len, axis, false)?, 1.0)?;
    along(context, half, rest, false)
}

fn into_real(context: &CompositeContext) -> Result<Array> {
    let steps = steps(context)?;
    let (&(axis, len), rest) = last(context, &steps)?;
    let x = context.input(0);
    let len = match len {
        Some(len) => len,
        None => real_len(context, axis)?,
    };
    let spec = spec_of(context, len, axis, true)?;
    to_real(&along(context, x.clone(), rest, true)?, &spec)
}
