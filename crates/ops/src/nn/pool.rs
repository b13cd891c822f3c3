//! Pooling in one to three dimensions.
#![allow(unsafe_code)]

use mxnet_kernels::pool::{self, Convention, Kind, Pool};
use mxnet_tensor::{DType, Dims, Scalar, Tensor};
use smallvec::SmallVec;

use crate::args::{Args, Attrs, Param, ParamKind, Value};
use crate::autograd::GradContext;
use crate::batching::Batch;
use crate::context::KernelContext;
use crate::elementwise::comparison::EQUAL;
use crate::elementwise::select::choose;
use crate::error::{Error, Result, Tuple};
use crate::invoke::{invoke, invoke_with};
use crate::launch::elem;
use crate::nn::conv::{
    LAYOUTS, NO_EFFECT, channels_first, channels_first_layout, extents, is_channels_last, sizes,
    spatial_axes,
};
use crate::nn::operand::{self, Staged};
use crate::opdef::{Cost, Cpu, Grad, Grads, Keep, OpDef, Probe, Surface, one};
use crate::types::Types;
use crate::{Array, only};

const KERNEL: Param = Param::optional("kernel", ParamKind::Ints);
const STRIDE: Param = Param::optional("stride", ParamKind::Ints);
const PAD: Param = Param::optional("pad", ParamKind::Ints);
const TYPE: Param = Param::choice("pool_type", &["max", "avg", "sum", "lp"], "max");
const CONVENTION: Param = Param::choice("pooling_convention", &["valid", "full", "same"], "valid");
const GLOBAL: Param = Param::bool("global_pool", false);
const P_VALUE: Param = Param::optional("p_value", ParamKind::Int);
const COUNT_PAD: Param = Param::optional("count_include_pad", ParamKind::Bool);
const LAYOUT: Param = Param::optional("layout", ParamKind::Choice(LAYOUTS));

/// Names of the attributes of all three operators, in order.
const SHARED: [&str; 9] = [
    "kernel",
    "stride",
    "pad",
    "pool_type",
    "pooling_convention",
    "global_pool",
    "p_value",
    "count_include_pad",
    "layout",
];

/// Number of shared attributes before `cudnn_off`, which only [`POOLING`] has.
const CUDNN_OFF_AT: usize = 6;

const POOL: OpDef = OpDef {
    types: Types::REAL_FLOAT,
    cost: Cost::PerKiB(600),
    ..OpDef::DEFAULT
};

/// Maximum, mean, sum or p-norm of each window.
pub static POOLING: OpDef = OpDef {
    name: "pooling",
    surface: &[Surface::Npx("pooling")],
    params: &[
        Param::array("data"),
        KERNEL,
        STRIDE,
        PAD,
        TYPE,
        CONVENTION,
        GLOBAL,
        Param::bool("cudnn_off", false),
        P_VALUE,
        COUNT_PAD,
        LAYOUT,
    ],
    doc: "Largest element (`max`), mean (`avg`), sum or `p_value`-norm (`lp`, 2 if left out) of windows of size `kernel` over one to three spatial \
          axes. `data` is (n, c, [d, [h,]] w), or has the channels last with the layouts NWC, NHWC and NDHWC. `stride` is 1 by default. `pad` \
          elements are added on both sides: they are never a maximum and add 0 to a sum; a mean counts them unless `count_include_pad` is False. \
          With the convention `valid` windows end inside the padded data, with `full` the last one may extend past their end, with `same` an axis of \
          size s has `ceil((s + 2 pad) / stride)` windows. With `global_pool` one window covers each channel.",
    about: &[
        ("data", "The images, (n, c, [d, [h,]] w)."),
        ("kernel", "Sizes of the windows."),
        ("stride", "Distance between windows, 1 for None."),
        (
            "pad",
            "Elements added on both sides of each axis, none for None.",
        ),
        ("pool_type", "What is computed of a window."),
        ("pooling_convention", "Where the last window ends."),
        ("global_pool", "Whether one window covers each channel."),
        ("cudnn_off", NO_EFFECT),
        ("p_value", "The p of `lp`."),
        ("count_include_pad", "Whether a mean counts the padding."),
        (
            "layout",
            "Order of the axes of `data`; the channels first for None.",
        ),
    ],
    returns: &[("ndarray", "Of shape (n, c, ...).")],
    raises: &[("ValueError", "If the sizes do not fit.")],
    example: "
        >>> data = np.array([[[1.0, 5.0, 2.0, 4.0]]])
        >>> npx.pooling(data, kernel=(2,), stride=(2,), pool_type='max')
        array([[[5., 4.]]])
        >>> npx.pooling(data, global_pool=True, pool_type='avg')
        array([[[3.]]])
    ",
    infer: |context| one(Case::of(context, context.shape(0))?.result()),
    cpu: Cpu::Kernel(|context| {
        let y = context.output(0);
        let case = Case::of(&context.args, context.input(0).shape())?;
        let dtype = operand::compute(y.dtype());
        let x = operand::dense(&case.first(context.input(0))?, dtype, context.threads)?;
        let out = Staged::new(&case.first(y)?, dtype)?;
        // SAFETY: 1. operands are dense, of `dtype` and of the extents that the geometry was made from. 2. the result does not overlap the data.
        unsafe {
            pool::forward(
                context.threads,
                &case.geometry(dtype),
                x.data_ptr(),
                out.ptr(),
            )
        };
        out.finish(context.threads)
    }),
    grad: Grad::Rule(Keep::ALL, |g| {
        let dx = match g.str("pool_type") {
            "lp" => norm_gradient(g)?,
            _ => spread(g, g.dy(0), g.input(0))?,
        };
        g.one(dx)
    }),
    probe: Probe::calls(&[
        "f((2, 3, 7)), (3,)",
        "f((2, 3, 6, 5)), (2, 3), (2, 1), (1, 1)",
        "f((2, 3, 6, 5)), (3, 2), (2, 2), (1, 0), 'avg', 'full'",
        "f((2, 3, 6, 5)), (3, 2), (2, 2), (1, 0), 'avg', count_include_pad=False",
        "f((1, 2, 4, 5, 3)), (2, 2, 2), pool_type='sum'",
        "f((2, 3, 6, 5)), (2, 2), pool_type='lp', p_value=3",
        "f((2, 3, 6, 5)), pool_type='avg', global_pool=True",
        "f((2, 6, 5, 3)), (2, 2), (2, 2), layout='NHWC'",
        "f((2, 3, 7)), (3,), (2,), pooling_convention='same'",
    ])
    .ulp(16),
    batch: Batch::Rule(|context| context.call(&context.in_a_row()?, context.attrs)),
    ..POOL
};

/// The gradient of pooling. That of p-norms is composed of sum pooling.
pub static POOLING_GRADIENT: OpDef = OpDef {
    name: "pooling_gradient",
    params: &[
        Param::array("dy"),
        Param::array("data"),
        KERNEL,
        STRIDE,
        PAD,
        TYPE,
        CONVENTION,
        GLOBAL,
        P_VALUE,
        COUNT_PAD,
        LAYOUT,
    ],
    doc: "Gradient of `pooling` with respect to `data`, given the result's cotangent `dy`. A window's maximum passes it to its first largest element.",
    infer: |context| {
        let result = Case::of(context, context.shape(1))?.result();
        if context.shape(0) != result.as_slice() {
            return Err(context.shape_error(format!(
                "`dy` has shape {}, pooling gives shape {}",
                Tuple(context.shape(0)),
                Tuple(&result)
            )));
        }
        if context.str("pool_type") == "lp" {
            return Err(context.value_error(
                "norms have no gradient kernel: their gradient is composed of that of sums",
            ));
        }
        one(Dims::from_slice(context.shape(1)))
    },
    cpu: Cpu::Kernel(|context| {
        let dx = context.output(0);
        let case = Case::of(&context.args, context.input(1).shape())?;
        let dtype = operand::compute(dx.dtype());
        let dy = operand::dense(&case.first(context.input(0))?, dtype, context.threads)?;
        let x = match case.pool.kind {
            Kind::Max => Some(operand::dense(
                &case.first(context.input(1))?,
                dtype,
                context.threads,
            )?),
            _ => None,
        };
        let out = Staged::new(&case.first(dx)?, dtype)?;
        // SAFETY: 1. operands are dense, of `dtype` and of the extents that the geometry was made from; only maxima read the data, only norms the
        // result. 2. the gradient overlaps neither.
        unsafe {
            pool::backward(
                context.threads,
                &case.geometry(dtype),
                operand::pointer(x.as_ref()),
                std::ptr::null(),
                dy.data_ptr(),
                out.ptr(),
            );
        }
        out.finish(context.threads)
    }),
    grad: Grad::Rule(Keep::inputs(0b10), |g| {
        let mut grads: Grads = SmallVec::from_elem(None, 2);
        if g.wants(0) {
            grads[0] = Some(gathered(g, g.dy(0), g.input(1))?);
        }
        Ok(grads)
    }),
    probe: Probe::calls(&[
        "f((2, 3, 5)), f((2, 3, 7)), (3,)",
        "f((2, 3, 4, 3)), f((2, 3, 6, 5)), (3, 2), (2, 2), (1, 0), 'avg', 'full'",
    ])
    .ulp(16),
    batch: Batch::Rule(|context| context.call(&context.in_a_row()?, context.attrs)),
    ..POOL
};

/// Elements of one array at the positions where windows of another array have their maximum.
pub static POOLING_SELECT: OpDef = OpDef {
    name: "pooling_select",
    params: &[
        Param::array("values"),
        Param::array("data"),
        KERNEL,
        STRIDE,
        PAD,
        TYPE,
        CONVENTION,
        GLOBAL,
        P_VALUE,
        COUNT_PAD,
        LAYOUT,
    ],
    doc: "For each window of `data` the element of `values`, of the same shape, where `data` has its first maximum: the transpose of \
          `pooling_gradient`, so that gradients of maxima have gradients.",
    infer: |context| {
        if context.shape(0) != context.shape(1) {
            return Err(context.shape_error("`values` and `data` must have the same shape"));
        }
        one(Case::of(context, context.shape(1))?.result())
    },
    cpu: Cpu::Kernel(select),
    grad: Grad::Rule(Keep::inputs(0b10), |g| {
        let mut grads: Grads = SmallVec::from_elem(None, 2);
        if g.wants(0) {
            grads[0] = Some(spread(g, g.dy(0), g.input(1))?);
        }
        Ok(grads)
    }),
    probe: Probe::calls(&["f((2, 3, 7)), f((2, 3, 7)), (3,)"]),
    batch: Batch::Rule(|context| context.call(&context.in_a_row()?, context.attrs)),
    ..POOL
};

/// Geometry of a pooling, and the axis of the channels.
pub(super) struct Case {
    pool: Pool,
    pub shape: Dims,
    channels_last: bool,
}

impl Case {
    pub fn of(args: &Args, data: &[usize]) -> Result<Case> {
        let spatial = spatial_axes(data)?;
        let channels_last = is_channels_last(args, spatial)?;
        let shape = channels_first(data, channels_last);
        let input = extents(&shape[2..], 1);
        let global = args.bool("global_pool");
        let include = args.is_none("count_include_pad") || args.bool("count_include_pad");
        let p = args.opt_int("p_value").unwrap_or(2);
        if p < 1 || p > i64::from(u32::MAX) {
            return Err(Error::value(
                "",
                format!("`p_value` is {p}, must be at least 1"),
            ));
        }
        let kind = match args.str("pool_type") {
            "max" => Kind::Max,
            "sum" => Kind::Sum,
            "lp" => Kind::Lp(p as u32),
            _ if include => Kind::AverageWithPad,
            _ => Kind::Average,
        };
        let mut pool = Pool {
            elem: mxnet_kernels::Elem::F32,
            kind,
            planes: shape[0] * shape[1],
            input,
            output: [1; 3],
            kernel: input,
            stride: [1; 3],
            pad: [0; 3],
            pad_end: [0; 3],
        };
        if !global {
            if args.ints("kernel").is_empty() {
                return Err(Error::value(
                    "",
                    "`kernel` is needed unless `global_pool` is True",
                ));
            }
            pool.kernel = sizes(args, "kernel", spatial, 1, 1)?;
            pool.stride = sizes(args, "stride", spatial, 1, 1)?;
            pool.pad = sizes(args, "pad", spatial, 0, 0)?;
            pool.pad_end = pool.pad;
        }
        let convention = args.str("pooling_convention");
        for (axis, &size) in input.iter().enumerate().skip(3 - spatial) {
            let (kernel, pad) = (pool.kernel[axis], pool.pad[axis]);
            if size == 0 || kernel > size + 2 * pad {
                return Err(Error::shape(
                    "",
                    format!(
                        "kernel of size {kernel} does not fit spatial axis {} of size {size} with padding {pad} on both sides",
                        axis + spatial - 3
                    ),
                ));
            }
            pool.output[axis] = match convention {
                "same" if !global => (size + 2 * pad).div_ceil(pool.stride[axis]),
                "full" => {
                    pool::output_extent(size, kernel, pool.stride[axis], 2 * pad, Convention::Full)
                }
                _ => {
                    pool::output_extent(size, kernel, pool.stride[axis], 2 * pad, Convention::Valid)
                }
            };
        }
        Ok(Case {
            pool,
            shape,
            channels_last,
        })
    }

    pub fn geometry(&self, dtype: DType) -> Pool {
        Pool {
            elem: elem(dtype),
            ..self.pool
        }
    }

    /// Shape of the result, in the user's layout.
    pub fn result(&self) -> Dims {
        let spatial = &self.pool.output[5 - self.shape.len()..];
        let (n, c) = (self.shape[0], self.shape[1]);
        let mut shape = Dims::from_slice(&[n]);
        if !self.channels_last {
            shape.push(c);
        }
        shape.extend_from_slice(spatial);
        if self.channels_last {
            shape.push(c);
        }
        shape
    }

    /// A view of a tensor in the user's layout, with the channels first.
    pub fn first(&self, x: &Tensor) -> Result<Tensor> {
        Ok(if self.channels_last {
            x.with_layout(channels_first_layout(x.layout())?)
        } else {
            x.clone()
        })
    }
}

fn shared(g: &GradContext) -> Attrs {
    SHARED.iter().map(|name| g.get(name).clone()).collect()
}

/// Distributes the cotangents of windows to their elements.
fn spread(g: &GradContext, dy: &Array, data: &Array) -> Result<Array> {
    only(
        &POOLING_GRADIENT,
        invoke(&POOLING_GRADIENT, &[dy, data], &shared(g))?,
    )
}

/// The adjoint of [`spread`]: pools `values`, with the windows' maxima taken from `data`.
fn gathered(g: &GradContext, values: &Array, data: &Array) -> Result<Array> {
    if g.str("pool_type") == "max" {
        return only(
            &POOLING_SELECT,
            invoke(&POOLING_SELECT, &[values, data], &shared(g))?,
        );
    }
    let off = std::iter::once(Value::Bool(false));
    let (before, after) = SHARED.split_at(CUDNN_OFF_AT);
    let attrs = before
        .iter()
        .map(|name| g.get(name).clone())
        .chain(off)
        .chain(after.iter().map(|name| g.get(name).clone()))
        .collect();
    only(&POOLING, invoke_with(&POOLING, &[Some(values)], &attrs)?)
}

/// With y = (sum |x|^p)^(1/p): dx = sign(x) |x|^(p-1) times the spread of dy / y^(p-1); 0 where y is.
fn norm_gradient(g: &GradContext) -> Result<Array> {
    let p = g.opt_int("p_value").unwrap_or(2);
    let (x, y, dy) = (g.input(0), g.output(0), g.dy(0));
    let x = x.astype(y.dtype())?;
    let zero = Array::constant(Scalar::I64(0), y.dtype())?;
    let one = Array::constant(Scalar::I64(1), y.dtype())?;
    let empty = y.binary(&EQUAL, &zero)?;
    // Divides by 1 where the norm is 0: an infinity there would become NaN in the gradient's own gradient.
    let divisor = power(&choose(&empty, &one, y)?, p - 1)?;
    let share = choose(&empty, &zero, &dy.div(&divisor)?)?;
    let attrs: Attrs = SHARED
        .iter()
        .map(|&name| {
            if name == "pool_type" {
                Value::Word("sum")
            } else {
                g.get(name).clone()
            }
        })
        .collect();
    let spread = only(
        &POOLING_GRADIENT,
        invoke(&POOLING_GRADIENT, &[&share, &x], &attrs)?,
    )?;
    spread.mul(&x.sign()?.mul(&power(&x.abs()?, p - 1)?)?)
}

/// `x` to a non-negative integer power, by repeated squaring.
fn power(x: &Array, mut exponent: i64) -> Result<Array> {
    let mut result: Option<Array> = None;
    let mut square = x.clone();
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = Some(match result {
                Some(r) => r.mul(&square)?,
                None => square.clone(),
            });
        }
        exponent >>= 1;
        if exponent > 0 {
            square = square.square()?;
        }
    }
    match result {
        Some(r) => Ok(r),
        None => crate::creation::ones(x.shape(), x.dtype(), x.device()),
    }
}

/// An unoptimised loop in float64: only second derivatives use it.
fn select(context: &KernelContext) -> Result<()> {
    let y = context.output(0);
    let case = Case::of(&context.args, context.input(1).shape())?;
    let values = operand::dense(&case.first(context.input(0))?, DType::F64, context.threads)?;
    let data = operand::dense(&case.first(context.input(1))?, DType::F64, context.threads)?;
    let out = Staged::new(&case.first(y)?, DType::F64)?;
    let (p, planes) = (case.pool, case.pool.planes);
    let (in_len, out_len): (usize, usize) = (p.input.iter().product(), p.output.iter().product());
    // SAFETY: dense float64 tensors with these numbers of elements; the first two are only read, and the third was allocated for this call.
    let (values, data, chosen) = unsafe {
        (
            std::slice::from_raw_parts(values.data_ptr().cast::<f64>(), planes * in_len),
            std::slice::from_raw_parts(data.data_ptr().cast::<f64>(), planes * in_len),
            std::slice::from_raw_parts_mut(out.ptr().cast::<f64>(), planes * out_len),
        )
    };
    let covered = |axis: usize, i: usize| {
        let start = i * p.stride[axis];
        let clip = |at: usize| at.saturating_sub(p.pad[axis]).min(p.input[axis]);
        clip(start)..clip(start + p.kernel[axis])
    };
    for (i, slot) in chosen.iter_mut().enumerate() {
        let (plane, at) = (i / out_len, i % out_len);
        let (d, h, w) = (
            at / (p.output[1] * p.output[2]),
            at / p.output[2] % p.output[1],
            at % p.output[2],
        );
        let mut best: Option<usize> = None;
        for z in covered(0, d) {
            for y in covered(1, h) {
                for x in covered(2, w) {
                    let here = plane * in_len + (z * p.input[1] + y) * p.input[2] + x;
                    let wins = best.is_none_or(|b| {
                        data[here] > data[b] || data[here].is_nan() && !data[b].is_nan()
                    });
                    if wins {
                        best = Some(here);
                    }
                }
            }
        }
        *slot = best.map_or(0.0, |b| values[b]);
    }
    out.finish(context.threads)
}
