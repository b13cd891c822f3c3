//! Ranges of 8-bit integers: from the largest number, and from a histogram.
#![allow(unsafe_code)]

use mxnet_kernels::calibration;
use mxnet_tensor::{DType, Dims, Tensor};
use smallvec::SmallVec;

use crate::args::{Param, ParamKind};
use crate::context::KernelContext;
use crate::error::{Result, Tuple};
use crate::nn::operand;
use crate::opdef::{Cost, Cpu, Grad, Inferred, OpDef, OutSpec, Probe, Surface};
use crate::types::Types;

/// Two float32 of shape (1,).
fn two() -> Result<Inferred> {
    let one = || OutSpec {
        shape: Dims::from_slice(&[1]),
        dtype: Some(DType::F32),
    };
    Ok(SmallVec::from_iter([one(), one()]))
}

/// Writes the two results.
fn put(context: &KernelContext, values: [f32; 2]) {
    for (i, value) in values.into_iter().enumerate() {
        // SAFETY: a float32 output with one element.
        unsafe { context.output(i).data_ptr().cast::<f32>().write(value) };
    }
}

/// The elements of a dense float32 tensor.
fn elements(x: &Tensor) -> &[f32] {
    // SAFETY: a dense tensor of this type; the kernel has it for reading.
    unsafe { std::slice::from_raw_parts(x.data_ptr().cast::<f32>(), x.len()) }
}

/// Factors between an array and 8-bit integers.
pub static QUANTIZATION_SCALE: OpDef = OpDef {
    name: "quantization_scale",
    params: &[
        Param::array("x"),
        Param::required("dtype", ParamKind::DType),
    ],
    doc: "For the largest absolute value m of `x`: how many levels of `dtype` are in 1 (127 / m for int8, 255 / m for uint8; 0 if m is 0), and the \
          size of a level (m / 127 or m / 255).",
    types: Types::Infer,
    infer: |context| {
        operand::float_of(context, 0)?;
        match context.dtype("dtype") {
            Some(DType::I8 | DType::U8) => two(),
            _ => Err(context.value_error("`dtype` must be int8 or uint8")),
        }
    },
    cpu: Cpu::Kernel(|context| {
        let x = operand::dense(context.input(0), DType::F32, context.threads)?;
        let most = calibration::largest(context.threads, elements(&x));
        let levels = match context.dtype("dtype") {
            Some(DType::U8) => 255.0,
            _ => 127.0,
        };
        let factor = if most > 0.0 { levels / most } else { 0.0 };
        put(context, [factor, most / levels]);
        Ok(())
    }),
    grad: Grad::Stop("piecewise constant"),
    cost: Cost::PerKiB(100),
    probe: Probe::calls(&["f((3, 5)), dtype='int8'", "f((70,)), dtype='uint8'"]),
    ..OpDef::DEFAULT
};

/// The threshold of a histogram for 8-bit integers.
pub static CALIBRATE_ENTROPY: OpDef = OpDef {
    name: "calibrate_entropy",
    surface: &[Surface::Npx("contrib_calibrate_entropy")],
    params: &[
        Param::array("hist"),
        Param::array("hist_edges"),
        Param::int("num_quantized_bins", 255),
    ],
    doc: "The threshold at which a histogram is clipped so that the quantised values keep most of its information, and the Kullback-Leibler divergence \
          there.\n\nSource: S. Migacz, 8-bit Inference with TensorRT, GPU Technology Conference 2017.",
    about: &[
        ("hist", "(n,) counts of bins of equal width, symmetric about 0; n is odd."),
        ("hist_edges", "(n + 1,) bounds of the bins."),
        ("num_quantized_bins", "Number of levels, odd and at most n."),
    ],
    returns: &[("tuple of ndarray", "The threshold and the divergence, float32 of shape (1,).")],
    raises: &[("ValueError", "If the numbers of bins, edges and levels do not fit.")],
    example: "
        >>> counts, edges = np.histogram(np.array([-1.0, -0.5, 0.0, 0.5, 1.0]), bins=9, range=(-1.0, 1.0))
        >>> threshold, divergence = npx.contrib_calibrate_entropy(counts, edges, num_quantized_bins=3)
        >>> threshold.shape, divergence.shape
        ((1,), (1,))
    ",
    types: Types::Infer,
    infer: |context| {
        let levels = context.int("num_quantized_bins");
        let (bins, edges) = (context.shape(0), context.shape(1));
        let fits = match (bins, edges) {
            (&[n], &[m]) => n % 2 == 1 && m == n + 1 && levels > 0 && levels % 2 == 1 && levels as usize <= n,
            _ => false,
        };
        if !fits {
            return Err(context.shape_error(format!(
                "`hist` has shape {}, `hist_edges` {} and `num_quantized_bins` is {levels}: n bins, n odd, have n + 1 edges and an odd number of levels up \
                 to n",
                Tuple(bins),
                Tuple(edges)
            )));
        }
        for i in 0..2 {
            operand::float_of(context, i)?;
        }
        two()
    },
    cpu: Cpu::Kernel(|context| {
        let dense = |i: usize| operand::dense(context.input(i), DType::F32, context.threads);
        let (counts, edges) = (dense(0)?, dense(1)?);
        let levels = context.int("num_quantized_bins") as usize;
        let (threshold, divergence) = calibration::entropy_threshold(
            context.threads,
            elements(&counts),
            elements(&edges),
            levels,
        );
        put(context, [threshold, divergence]);
        Ok(())
    }),
    grad: Grad::Stop("piecewise constant"),
    probe: Probe::calls(&["np.abs(f((9,))), np.linspace(-1, 1, 10), 3"]),
    ..OpDef::DEFAULT
};
