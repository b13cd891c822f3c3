//! Complex numbers and their parts.

use mxnet_tensor::{DType, Dims, Layout, Scalar, Source};
use num_complex::Complex;

use crate::args::Param;
use crate::batching::Batch;
use crate::elementwise::arithmetic::MULTIPLY;
use crate::elementwise::comparison::{EQUAL, NOT_EQUAL};
use crate::error::Result;
use crate::memory_order::contiguous_like;
use crate::mode::Flags;
use crate::opdef::{
    Cost, Cpu, Grad, Keep, OpDef, Probe, ScalarPart, Surface, Viewed, ZeroDimResult, one_of,
};
use crate::{Array, cpu, creation};

pub(crate) static OPS: &[&OpDef] = &[&REAL, &IMAG, &IMAG_PART, &COMPLEX_OF, &ISCOMPLEX, &ISREAL];

/// Complex numbers from real and imaginary parts.
pub static COMPLEX_OF: OpDef = OpDef {
    name: "complex_of",
    params: &[Param::array("re"), Param::array("im")],
    doc: "Complex numbers with the given real and imaginary parts, which broadcast. Unlike `re + 1j * im`, it keeps infinities and NaN in each part.",
    infer: |context| {
        let (re, im) = (context.dtype_of(0), context.dtype_of(1));
        if re != im || !re.is_inexact() || re.is_complex() || re.size() < 4 {
            return Err(context.dtype_error(format!(
                "parts are float32 or float64, both the same, found {} and {}",
                re.name(),
                im.name()
            )));
        }
        one_of(
            mxnet_tensor::broadcast_shapes(&[context.shape(0), context.shape(1)])?,
            re.complex(),
        )
    },
    cpu: Cpu::Kernel(|context| {
        let out = context.output(0);
        cpu::copy(context.input(0), &out.real(), context.threads)?;
        cpu::copy(context.input(1), &out.imag()?, context.threads)
    }),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        g.elementwise(&[&|| g.dy(0).real_part(), &|| g.dy(0).unary(&IMAG_PART)])
    }),
    cost: Cost::PerKiB(40),
    probe: Probe::calls(&["f((2, 3)), f((2, 3))", "f((2, 1)), f((3,))", "f(()), f(())"])
        .against("lambda re, im: re + 1j * im"),
    batch: Batch::Leading(&[0]),
    ..OpDef::DEFAULT
};

/// Real part.
pub static REAL: OpDef = OpDef {
    name: "real",
    scalar_part: Some(ScalarPart::Real),
    surface: &[Surface::Np("real")],
    params: &[Param::array("val")],
    doc: "View of the real parts; the array itself if it is real.",
    about: &[("val", "The array.")],
    returns: &[("ndarray", "View of real dtype and the shape of `val`.")],
    example: "
        >>> np.real([1 + 2j, 3.0])
        array([1., 3.])
    ",
    infer: |context| {
        one_of(
            Dims::from_slice(context.shape(0)),
            context.dtype_of(0).real(),
        )
    },
    cpu: Cpu::View(|_| Ok(Viewed::RealParts)),
    grad: Grad::Rule(Keep::NOTHING, |g| g.one(g.dy(0).astype(g.dtype_of(0))?)),
    probe: Probe::calls(&["c((2, 3))", "f((2, 3))", "c(())", "i((3,), 4)", "c((0, 2))"]),
    ..OpDef::VIEW
};

/// Imaginary part of complex arrays.
pub static IMAG_PART: OpDef = OpDef {
    name: "imag_part",
    params: &[Param::array("val")],
    doc: "View of the imaginary parts of complex numbers.",
    infer: |context| {
        one_of(
            Dims::from_slice(context.shape(0)),
            context.dtype_of(0).real(),
        )
    },
    cpu: Cpu::View(|_| Ok(Viewed::ImaginaryParts)),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        let i = Array::weak_scalar(Scalar::C128(Complex::new(0.0, 1.0)))?;
        g.one(g.dy(0).binary(&MULTIPLY, &i)?)
    }),
    probe: Probe::calls(&["c((2, 3))", "c(())"]).against("np.imag"),
    ..OpDef::VIEW
};

/// Imaginary part.
pub static IMAG: OpDef = OpDef {
    name: "imag",
    scalar_part: Some(ScalarPart::Imag),
    surface: &[Surface::Np("imag")],
    params: &[Param::array("val")],
    doc: "View of the imaginary parts; for real arrays a read-only array of zeros.",
    about: &[("val", "The array.")],
    returns: &[(
        "ndarray",
        "View of real dtype and the shape of `val`; zeros for real arrays.",
    )],
    example: "
        >>> np.imag([1 + 2j, 3.0])
        array([2., 0.])
    ",
    zero_dim: ZeroDimResult::AsOperand,
    cpu: Cpu::Composite(|context| {
        let x = context.input(0);
        context.done(if x.dtype().is_complex() {
            x.unary(&IMAG_PART)?
        } else {
            // Zeros that share no memory with `x`: a write to them would not reach `x`.
            let zeros = creation::zeros(x.shape(), x.dtype(), x.device())?;
            zeros
                .seen_as(contiguous_like(x.layout())?)
                .as_owner()
                .locked(true)
        })
    }),
    probe: Probe::calls(&["c((2, 3))", "f((2, 3))", "c(())", "i((3,), 4)"]),
    ..OpDef::COMPOSITE
};

/// Storage and layout of the imaginary parts of a small real array: read-only zeros, which all such arrays share. `None`: take the general path.
///
/// # Errors
/// [`Error::Memory`](crate::Error::Memory), the first time.
#[inline]
pub fn no_parts(x: &Array) -> Result<Option<(Source, Layout)>> {
    if x.dtype().is_complex() || x.is_weak() || Flags::current().is_stacked() {
        return Ok(None);
    }
    let layout = contiguous_like(x.layout())?;
    let zeros = Source::zeros(x.len(), x.dtype(), x.device())?;
    Ok(zeros.map(|zeros| (zeros, layout)))
}

/// Where the imaginary part is not zero.
pub static ISCOMPLEX: OpDef = OpDef {
    name: "iscomplex",
    surface: &[Surface::Np("iscomplex")],
    params: &[Param::array("x")],
    doc: "Whether the imaginary part of each element is not 0.",
    about: &[("x", "The array.")],
    returns: &[("ndarray", "bool, of the shape of `x`.")],
    example: "
        >>> np.iscomplex([1 + 1j, 2])
        array([ True, False])
    ",
    cpu: Cpu::Composite(|context| {
        let x = context.input(0);
        context.done(if x.dtype().is_complex() {
            let zero = Array::weak_scalar(Scalar::I64(0))?;
            x.detach().unary(&IMAG_PART)?.binary(&NOT_EQUAL, &zero)?
        } else {
            creation::zeros(x.shape(), DType::Bool, x.device())?
        })
    }),
    probe: Probe::calls(&["c((2, 3))", "f((2, 3))", "np.array([1j, 2, nan * 1j])"]),
    ..OpDef::COMPOSITE
};

/// Where the imaginary part is zero.
pub static ISREAL: OpDef = OpDef {
    name: "isreal",
    scalar_part: Some(ScalarPart::IsReal),
    surface: &[Surface::Np("isreal")],
    doc: "Whether the imaginary part of each element is 0; true for real arrays.",
    example: "
        >>> np.isreal([1 + 1j, 2])
        array([False,  True])
    ",
    cpu: Cpu::Composite(|context| {
        let x = context.input(0);
        context.done(if x.dtype().is_complex() {
            let zero = Array::weak_scalar(Scalar::I64(0))?;
            x.detach().unary(&IMAG_PART)?.binary(&EQUAL, &zero)?
        } else {
            creation::ones(x.shape(), DType::Bool, x.device())?
        })
    }),
    params: &[Param::array("x")],
    about: &[("x", "The array.")],
    returns: &[("ndarray", "bool, of the shape of `x`.")],
    probe: Probe::calls(&["c((2, 3))", "f((2, 3))", "np.array([1j, 2, nan * 1j])"]),
    ..OpDef::COMPOSITE
};
