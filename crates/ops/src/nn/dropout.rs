//! Dropout.
#![allow(unsafe_code)]

use mxnet_kernels::random::{Distribution, Stream, fill};
use mxnet_tensor::{DType, Dims};

use crate::args::{Attrs, Param, ParamKind, Value};
use crate::context::KernelContext;
use crate::cpu;
use crate::error::Result;
use crate::invoke::invoke1;
use crate::launch::elem;
use crate::nn::conv::NO_EFFECT;
use crate::nn::operand;
use crate::opdef::{Cost, Cpu, Grad, OpDef, Probe, Rng, Surface, one_of};

/// Sets random elements to zero.
pub static DROPOUT: OpDef = OpDef {
    name: "dropout",
    surface: &[Surface::Npx("dropout")],
    params: &[
        Param::array("data"),
        Param::float("p", 0.5),
        Param::choice("mode", &["training", "always"], "training"),
        Param::optional("axes", ParamKind::Ints),
        Param::bool("cudnn_off", false),
    ],
    doc: "While training, or always with mode `always`, each element becomes 0 with probability `p`, and the others are divided by `1 - p`. \
        Otherwise the result is `data`. Elements along `axes` are dropped together.\n\nSource: Srivastava et al., Dropout, 2014.",
    about: &[
        ("p", "Probability that an element is dropped."),
        (
            "mode",
            "When elements are dropped: while training, or always.",
        ),
        ("axes", "Axes along which elements are dropped together."),
        ("cudnn_off", NO_EFFECT),
    ],
    returns: &[("ndarray", "Of the shape and dtype of `data`.")],
    raises: &[("ValueError", "If `p` is not in [0, 1].")],
    example: "
        >>> x = np.ones(4)
        >>> npx.dropout(x, 0.5)
        array([1., 1., 1., 1.])
        >>> np.random.seed(0)
        >>> npx.dropout(x, 0.5, mode='always')
        array([2., 0., 0., 0.])
    ",
    cpu: Cpu::Composite(|context| {
        let p = context.float("p");
        if !(0.0..=1.0).contains(&p) {
            return Err(context.value_error(format!("`p` is {p}, must be in [0, 1]")));
        }
        let x = context.input(0);
        let x = x.astype(operand::float_of(context, 0)?)?;
        if p == 0.0 || !context.training && context.str("mode") == "training" {
            return context.done(x);
        }
        let mut shape = Dims::from_slice(x.shape());
        if !context.ints("axes").is_empty() {
            for axis in context.axes("axes", 0)? {
                shape[axis] = 1;
            }
        }
        let attrs: Attrs = [
            Value::from(&shape[..]),
            Value::Float(p),
            Value::DType(x.dtype()),
            Value::Device(x.device()),
        ]
        .into_iter()
        .collect();
        context.done(x.mul(&invoke1(&DROPOUT_MASK, &[], &attrs)?)?)
    }),
    probe: Probe::calls(&["f((3, 4))", "f((3, 4)), 0.25, 'training', (0,)"]),
    ..OpDef::COMPOSITE
};

/// Random factors of dropout: 0 or 1 / (1 - p).
pub static DROPOUT_MASK: OpDef = OpDef {
    name: "dropout_mask",
    params: &[
        Param::required("shape", ParamKind::Ints),
        Param::required("p", ParamKind::Float),
        Param::optional("dtype", ParamKind::DType),
        Param::optional("device", ParamKind::Device),
    ],
    doc: "0 with probability `p`, else `1 / (1 - p)`.",
    infer: |context| {
        let shape = crate::creation::dims(context.op.name, context.ints("shape"))?;
        one_of(
            shape,
            context
                .dtype("dtype")
                .unwrap_or_else(mxnet_tensor::default_float),
        )
    },
    cpu: Cpu::Kernel(mask),
    grad: Grad::Stop("a sample depends on no argument in a differentiable way"),
    // Enough for every dtype: a block of random bits gives two float64 or four float32 elements.
    rng: Rng::Blocks(|n| n.div_ceil(2)),
    cost: Cost::PerKiB(800),
    probe: Probe::calls(&["(3, 4), 0.5"]),
    ..OpDef::DEFAULT
};

fn mask(context: &KernelContext) -> Result<()> {
    let y = context.output(0);
    let p = context.float("p");
    if p >= 1.0 {
        cpu::fill(y, mxnet_tensor::Scalar::F64(0.0), context.threads);
        return Ok(());
    }
    let stream = Stream {
        seed: context.rng.seed,
        offset: context.rng.offset,
    };
    let dtype = operand::compute(y.dtype());
    let sample = operand::Staged::new(y, dtype)?;
    // SAFETY: a dense output that was allocated for this call, with `len` elements of `dtype`.
    unsafe {
        fill(
            context.threads,
            stream,
            Distribution::Bernoulli { p: 1.0 - p },
            elem(dtype),
            y.len(),
            sample.ptr(),
        )
    };
    scale(sample.tensor(), 1.0 / (1.0 - p), context);
    sample.finish(context.threads)
}

/// Multiplies a dense float32 or float64 tensor by a number, in place.
fn scale(x: &mxnet_tensor::Tensor, factor: f64, context: &KernelContext) {
    let single = x.dtype() == DType::F32;
    let narrow = factor as f32;
    let scalar = if single {
        std::ptr::from_ref(&narrow).cast_mut().cast::<u8>()
    } else {
        std::ptr::from_ref(&factor).cast_mut().cast::<u8>()
    };
    let size = x.dtype().size();
    const BLOCK: usize = 1 << 15;
    let start = x.data_ptr() as usize;
    let from = scalar as usize;
    context.threads.run(x.len().div_ceil(BLOCK), &|block| {
        let first = block * BLOCK;
        let n = BLOCK.min(x.len() - first);
        let at = (start + first * size) as *mut u8;
        // SAFETY: 1. blocks are disjoint parts of a dense tensor that this call may write. 2. the factor has the tensor's type and outlives the call;
        // the row function allows an output that is the same memory as an input.
        unsafe {
            mxnet_kernels::map::run_row(
                &mxnet_kernels::map::MULTIPLY,
                elem(x.dtype()),
                n,
                &[at, at, from as *mut u8],
                &[size as isize, size as isize, 0],
                &[],
            );
        }
    });
}
