//! Internal operators that transform one axis, with length, sign and scale as attributes. The public functions are composed of them.
//!
//! Each is linear, so its gradient is its adjoint. The adjoint of `fft_lines` is `fft_lines` with the other sign; `rfft_lines` and
//! `irfft_lines` are the adjoints of each other. A half spectrum omits the conjugate half, so its middle elements (all but the first and, for
//! an even length, the last) count twice: attribute `middle` is the factor for them.
#![allow(unsafe_code)]

use mxnet_fft::{self as kernel, Direction, Lines, Precision, Spectrum, Transform};
use mxnet_tensor::{DType, Dims, Scalar, Tensor};
use smallvec::SmallVec;

use crate::Array;
use crate::args::{Args, Attrs, Param, ParamKind, Value};
use crate::autograd::GradContext;
use crate::batching::Batch;
use crate::context::{CallContext, KernelContext};
use crate::error::Result;
use crate::invoke::invoke1;
use crate::nn::operand::{Staged, typed};
use crate::opdef::{Cost, Cpu, Grad, Inferred, Keep, OpDef, Probe, one_of};
use crate::shape::{narrow, pad_with};

const LINE: &[Param] = &[
    Param::array("x"),
    Param::required("n", ParamKind::Int),
    Param::int("axis", -1),
    Param::bool("inverse", false),
    Param::float("scale", 1.0),
];

const HALF: &[Param] = &[
    Param::array("x"),
    Param::required("n", ParamKind::Int),
    Param::int("axis", -1),
    Param::bool("inverse", false),
    Param::float("scale", 1.0),
    Param::float("middle", 1.0),
];

/// Default fields for these operators.
const LINES: OpDef = OpDef {
    params: LINE,
    cost: Cost::Of(|context| {
        let (x, n) = (context.input(0), context.int("n").max(1) as u64);
        let lines = x.len() as u64 / x.shape().iter().max().map_or(1, |&d| d.max(1) as u64);
        // A complex element of a line costs about log2(n) / 4 ns.
        (lines + 1) * n * (u64::from(n.ilog2()) / 4 + 1)
    }),
    ..OpDef::DEFAULT
};

/// `n` numbers -> `n` complex numbers.
pub static FFT_LINES: OpDef = OpDef {
    name: "fft_lines",
    doc: "`scale` times the sums of the elements along `axis`, truncated or zero-padded to `n`, times exp(-2 pi i j k / n), or with the other sign \
          if `inverse`.",
    infer: |context| infer_lines(context, |n| n, DType::complex),
    cpu: Cpu::Kernel(|context| {
        let spectrum = if context.input(0).dtype().is_complex() {
            Spectrum::Complex
        } else {
            Spectrum::RealToFull
        };
        run(context, spectrum, 1.0)
    }),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        let spec = Spec::of(&g.args).reversed();
        let dx = fft_lines(g.dy(0), &spec)?;
        let dx = if g.dtype_of(0).is_complex() { dx } else { dx.real_part()? };
        g.one(resized(g, &dx)?)
    }),
    probe: Probe::calls(&[
        "c((3, 4)), 4",
        "c((5, 2)), 7, 0, True, 0.5",
        "f((2, 6)), 5, 1, True",
        "f((3, 3)), 4, 0",
    ])
    .against("lambda x, n, axis=-1, inverse=False, scale=1.0: (np.fft.ifft(x, n, axis, 'forward') if inverse else np.fft.fft(x, n, axis)) * scale")
    .ulp(16),
    batch: Batch::Axes("axis"),
    ..LINES
};

/// `n` real numbers -> the first half of their spectrum.
pub static RFFT_LINES: OpDef = OpDef {
    name: "rfft_lines",
    params: HALF,
    doc: "The first `n // 2 + 1` elements of `fft_lines` of real numbers; those that stand for two elements of the whole are multiplied by `middle`.",
    infer: |context| {
        real_only(context)?;
        infer_lines(context, |n| n / 2 + 1, DType::complex)
    },
    cpu: Cpu::Kernel(|context| run(context, Spectrum::RealToHalf, context.float("middle"))),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        let spec = Spec::of(&g.args).reversed();
        let dx = irfft_lines(g.dy(0), &spec, g.float("middle") / 2.0)?;
        g.one(resized(g, &dx)?)
    }),
    probe: Probe::calls(&[
        "f((3, 4)), 4",
        "f((5, 2)), 7, 0, True, 0.5",
        "f((2, 6)), 5, 1, True, 1.0, 2.0",
        "f((6,)), 6, 0, False, 1.0, 0.5",
    ])
    .against(
        "lambda x, n, axis=-1, inverse=False, scale=1.0, middle=1.0: np.moveaxis(np.moveaxis((np.conj if inverse else np.array)(np.fft.rfft(x, n, axis)) * scale, \
         axis, -1) * [1 if k == 0 or 2 * k == n else middle for k in range(n // 2 + 1)], -1, axis)",
    )
    .ulp(16),
    batch: Batch::Axes("axis"),
    ..LINES
};

/// The first half of a spectrum -> `n` real numbers.
pub static IRFFT_LINES: OpDef = OpDef {
    name: "irfft_lines",
    params: HALF,
    doc: "`fft_lines` of the `n` numbers whose first `n // 2 + 1` are given along `axis` (truncated or zero-padded) and whose others are conjugates of these, so that the sums are real. Those that stand for two are multiplied by `middle`; imaginary parts of the others are \
          ignored.",
    infer: |context| {
        if !context.dtype_of(0).is_complex() {
            return Err(context.dtype_error(format!("the spectrum must be complex, found {}", context.dtype_of(0).name())));
        }
        infer_lines(context, |n| n, DType::real)
    },
    cpu: Cpu::Kernel(|context| run(context, Spectrum::HalfToReal, context.float("middle"))),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        let spec = Spec::of(&g.args).reversed();
        let dx = rfft_lines(g.dy(0), &spec, g.float("middle") * 2.0)?;
        g.one(resized(g, &dx)?)
    }),
    probe: Probe::calls(&[
        "c((3, 3)), 4",
        "c((3, 2)), 5, 0, True, 0.5",
        "c((2, 4)), 6, 1, True, 1.0, 2.0",
        "c((1,)), 1",
    ])
    .against(
        "lambda x, n, axis=-1, inverse=False, scale=1.0, middle=1.0: np.fft.irfft(np.moveaxis(np.moveaxis(np.array(x) if inverse else np.conj(x), axis, -1) \
         * [1 if k == 0 or 2 * k == n else middle for k in range(n // 2 + 1)], -1, axis), n, axis, 'forward') * scale",
    )
    .ulp(16),
    batch: Batch::Axes("axis"),
    ..LINES
};

/// Length, axis, sign and factor of a transform.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spec {
    /// Length.
    pub n: usize,
    /// Axis; negative ones count from the end.
    pub axis: i64,
    /// Whether the exponent is positive.
    pub inverse: bool,
    /// Factor for the result.
    pub scale: f64,
}

impl Spec {
    fn of(args: &Args) -> Spec {
        Spec {
            n: args.int("n") as usize,
            axis: args.int("axis"),
            inverse: args.bool("inverse"),
            scale: args.float("scale"),
        }
    }

    fn reversed(self) -> Spec {
        Spec {
            inverse: !self.inverse,
            ..self
        }
    }

    fn attrs(&self) -> Attrs {
        [
            Value::Int(self.n as i64),
            Value::Int(self.axis),
            Value::Bool(self.inverse),
            Value::Float(self.scale),
        ]
        .into_iter()
        .collect()
    }
}

/// Calls [`FFT_LINES`].
///
/// # Errors
/// A length of 0, an axis that does not exist.
pub fn fft_lines(x: &Array, spec: &Spec) -> Result<Array> {
    invoke1(&FFT_LINES, &[x], &spec.attrs())
}

/// Calls [`RFFT_LINES`].
///
/// # Errors
/// As [`fft_lines`]; complex arrays.
pub fn rfft_lines(x: &Array, spec: &Spec, middle: f64) -> Result<Array> {
    let mut attrs = spec.attrs();
    attrs.push(Value::Float(middle));
    invoke1(&RFFT_LINES, &[x], &attrs)
}

/// Calls [`IRFFT_LINES`].
///
/// # Errors
/// As [`fft_lines`]; real arrays.
pub fn irfft_lines(x: &Array, spec: &Spec, middle: f64) -> Result<Array> {
    let mut attrs = spec.attrs();
    attrs.push(Value::Float(middle));
    invoke1(&IRFFT_LINES, &[x], &attrs)
}

/// The real dtype that a transform computes in.
pub(super) fn compute(dtype: DType) -> DType {
    match dtype {
        DType::F64 | DType::C64 | DType::C128 => dtype,
        DType::F16 | DType::BF16 | DType::F32 => DType::F32,
        _ => mxnet_tensor::default_float(),
    }
}

pub(super) fn real_only(context: &CallContext) -> Result<()> {
    if context.dtype_of(0).is_complex() {
        return Err(context.dtype_error(format!(
            "the elements must be real, found {}",
            context.dtype_of(0).name()
        )));
    }
    Ok(())
}

fn infer_lines(
    context: &CallContext,
    len: fn(usize) -> usize,
    dtype: fn(DType) -> DType,
) -> Result<Inferred> {
    let axis = context.axis("axis", 0)?;
    let n = context.int("n");
    if n < 1 {
        let problem = format!("the number of data points must be at least 1, found {n}");
        return Err(context.value_error(problem));
    }
    let mut shape = Dims::from_slice(context.shape(0));
    shape[axis] = len(n as usize);
    one_of(shape, dtype(compute(context.dtype_of(0))))
}

fn run(context: &KernelContext, spectrum: Spectrum, middle: f64) -> Result<()> {
    let axis = context.axis("axis", 0)?;
    let dtype = compute(context.input(0).dtype());
    let x = typed(context.input(0), dtype, context.threads)?;
    let y = Staged::new(context.output(0), context.output(0).dtype())?;
    let what = Transform {
        spectrum,
        direction: if context.bool("inverse") {
            Direction::Inverse
        } else {
            Direction::Forward
        },
        precision: if matches!(dtype, DType::F32 | DType::C64) {
            Precision::Single
        } else {
            Precision::Double
        },
        n: context.int("n") as usize,
        scale: context.float("scale"),
        middle,
    };
    let (x_strides, y_strides) = (x.byte_strides(), y.tensor().byte_strides());
    let others = |all: &[isize]| -> SmallVec<[isize; 4]> {
        (0..all.len())
            .filter(|&a| a != axis)
            .map(|a| all[a])
            .collect()
    };
    let (x_outer, y_outer) = (others(&x_strides), others(&y_strides));
    let shape: Dims = (0..x.shape().len())
        .filter(|&a| a != axis)
        .map(|a| x.shape()[a])
        .collect();
    let lines = |t: &Tensor, strides: &[isize]| (t.data_ptr(), t.shape()[axis], strides[axis]);
    let (x_line, y_line) = (lines(&x, &x_strides), lines(y.tensor(), &y_strides));
    // SAFETY: 1. both layouts lie within their storages. The output is dense and was allocated for this call (or does not overlap the input);
    // inference gave the length of its lines. 2. `outer` and `shape` omit the same axis.
    unsafe {
        kernel::transform(
            context.threads,
            &what,
            &shape,
            &Lines {
                ptr: x_line.0,
                len: x_line.1,
                stride: x_line.2,
                outer: &x_outer,
            },
            &Lines {
                ptr: y_line.0,
                len: y_line.1,
                stride: y_line.2,
                outer: &y_outer,
            },
        );
    }
    y.finish(context.threads)
}

/// The gradient of truncating or zero-padding the axis to `n`, in the input's dtype: pads or truncates the other way.
fn resized(g: &GradContext, dx: &Array) -> Result<Array> {
    let axis = mxnet_tensor::normalize_axis(g.int("axis") as isize, dx.ndim())?;
    let (len, want) = (dx.shape()[axis], g.shape(0)[axis]);
    let dx = match len.cmp(&want) {
        std::cmp::Ordering::Equal => dx.clone(),
        std::cmp::Ordering::Greater => narrow(dx, axis, 0, want)?,
        std::cmp::Ordering::Less => {
            let mut widths: SmallVec<[i64; 8]> = SmallVec::from_elem(0, 2 * dx.ndim());
            widths[2 * axis + 1] = (want - len) as i64;
            pad_with(dx, &widths, Scalar::I64(0))?
        }
    };
    dx.astype(g.dtype_of(0))
}
