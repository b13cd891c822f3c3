//! Regions of interest: positions of maxima for `npx.roi_pooling`, and means of interpolated samples for `npx.roi_align`.
#![allow(unsafe_code)]

use mxnet_kernels::regions::{self as kernel, Regions, Samples};
use mxnet_tensor::{DType, Dims, Tensor};

use crate::args::{Param, ParamKind, Value};
use crate::autograd::GradContext;
use crate::context::{CallContext, KernelContext};
use crate::cpu;
use crate::error::{Error, Result, Tuple};
use crate::invoke::invoke1;
use crate::launch::elem;
use crate::nn::operand::{self, Staged};
use crate::opdef::{Cost, Cpu, Grad, Grads, Keep, OpDef, Probe, Surface, one_of};
use crate::types::Types;

const POOLED_SIZE: Param = Param::required("pooled_size", ParamKind::Ints);
const SCALE: Param = Param::required("spatial_scale", ParamKind::Float);
const RATIO: Param = Param::int("sample_ratio", -1);
const BY_POSITION: Param = Param::bool("position_sensitive", false);
const ALIGNED: Param = Param::bool("aligned", false);

/// Position of the largest element of each bin.
pub static ROI_LARGEST: OpDef = OpDef {
    name: "roi_largest",
    reports_as: Some("roi_pooling"),
    params: &[
        Param::array("data"),
        Param::array("rois"),
        POOLED_SIZE,
        SCALE,
    ],
    doc: "For regions `rois`, (r, 5), of images (n, c, h, w): the flat position of the largest element of each bin in its channel, or -1 for a bin \
        without pixels. int64, (r, c, *pooled_size).",
    infer: |context| {
        let (count, &[_, channels, ..], [down, right]) = sizes(context)?;
        one_of(
            Dims::from_slice(&[count, channels, down, right]),
            DType::I64,
        )
    },
    cpu: Cpu::Kernel(|context| {
        let dtype = operand::compute(operand_dtype(context.input(0)));
        let data = operand::dense(context.input(0), dtype, context.threads)?;
        let rois = regions(context, context.input(1), data.shape()[0])?;
        let out = Staged::new(context.output(0), DType::I64)?;
        let geometry = geometry(context, data.shape(), &rois, dtype);
        // SAFETY: 1. the images are dense, of `dtype` and the geometry's sizes. 2. inference gave the result its size.
        unsafe {
            kernel::largest(
                context.threads,
                &geometry,
                data.data_ptr(),
                out.ptr().cast(),
            );
        }
        out.finish(context.threads)
    }),
    grad: Grad::Stop("positions are piecewise constant"),
    cost: Cost::Of(work),
    probe: Probe::calls(&[
        "f((2, 3, 6, 5)), np.array([[0, 0, 0, 3, 4], [1, 1.2, 2, 3, 5.6], [-1, 0, 0, 1, 1]]), (2, 3), 1.0",
        "f((1, 1, 4, 4)), np.array([[0, -3, -2, 20, 30]]), (2, 2), 0.5",
    ]),
    positions: &[1],
    ..OpDef::DEFAULT
};

/// Mean of the samples of each bin.
pub static ROI_ALIGN: OpDef = OpDef {
    name: "roi_align",
    surface: &[Surface::Npx("roi_align")],
    params: &[
        Param::array("data"),
        Param::array("rois"),
        POOLED_SIZE,
        SCALE,
        RATIO,
        BY_POSITION,
        ALIGNED,
    ],
    doc: "Means over the bins of image regions. Each bin has evenly spaced samples, which are interpolated between the four pixels around them. A \
          sample more than a pixel outside of the image counts as 0.\n\nThe gradient goes to the images; regions have none.\n\nSource: K. He et al., \
          Mask R-CNN (2017), section 3.",
    about: &[
        ("data", "Images, (n, c, h, w)."),
        (
            "rois",
            "Regions, (r, 5): image index, left, top, right, bottom. A negative image index gives zeros.",
        ),
        ("pooled_size", "Number of bins along height and width."),
        (
            "spatial_scale",
            "Factor from the units of `rois` to pixels of `data`.",
        ),
        (
            "sample_ratio",
            "Samples of a bin along each axis; if not above 0, the length of the bin in pixels, rounded up.",
        ),
        (
            "position_sensitive",
            "Whether bin b of output channel k reads channel `k * num_bins + b`; the result then has `c / num_bins` channels.",
        ),
        (
            "aligned",
            "Whether coordinates are moved by half a pixel, so that pixel i covers i to i + 1. Without it regions have at least one pixel.",
        ),
    ],
    returns: &[("ndarray", "Of shape `(r, c, *pooled_size)`.")],
    raises: &[
        ("ValueError", "If sizes do not fit."),
        ("IndexError", "If an image index is out of bounds; raised when the result is read."),
    ],
    example: "
        >>> image = np.arange(16.0).reshape(1, 1, 4, 4)
        >>> npx.roi_align(image, np.array([[0, 0, 0, 4, 4]]), (2, 2), 1.0, aligned=True)
        array([[[[ 2.5,  4.5],
                 [10.5, 12.5]]]])
    ",
    types: Types::REAL_FLOAT,
    infer: |context| {
        let (count, &[_, channels, ..], [down, right]) = sizes(context)?;
        let channels = pooled_channels(context, channels, down * right)?;
        one_of(Dims::from_slice(&[count, channels, down, right]), operand::float_of(context, 0)?)
    },
    cpu: Cpu::Kernel(|context| {
        let dtype = operand::compute(context.output(0).dtype());
        let data = operand::dense(context.input(0), dtype, context.threads)?;
        let rois = regions(context, context.input(1), data.shape()[0])?;
        let out = Staged::new(context.output(0), dtype)?;
        let geometry = geometry(context, data.shape(), &rois, dtype);
        // SAFETY: 1. the images are dense, of `dtype` and the geometry's sizes. 2. inference gave the result its size.
        unsafe {
            kernel::means(context.threads, &geometry, samples(context), data.data_ptr(), out.ptr());
        }
        out.finish(context.threads)
    }),
    grad: Grad::Rule(
        Keep {
            inputs: 0b11,
            outputs: 0,
        },
        |g| {
            let mut attrs = attributes(g);
            attrs.push(Value::Ints(
                g.input(0).shape().iter().map(|&n| n as i64).collect(),
            ));
            let dx = invoke1(&ROI_ALIGN_SPREAD, &[g.dy(0), g.input(1)], &attrs.into_iter().collect())?;
            Ok(Grads::from_vec(vec![Some(dx), None]))
        },
    ),
    cost: Cost::Of(work),
    probe: Probe::calls(&[
        "f((2, 3, 6, 5)), np.array([[0, 0, 0, 3, 4], [1, 1.2, 2, 3, 5.6], [-1, 0, 0, 1, 1]]), (2, 3), 1.0",
        "f((2, 4, 6, 5)), np.array([[0, 0, 0, 9, 8], [1, 1.2, 2, 3, 5.6]]), (2, 2), 0.5, 2, True, True",
    ])
    .ulp(64),
    positions: &[1],
    ..OpDef::DEFAULT
};

/// The adjoint of [`ROI_ALIGN`].
pub static ROI_ALIGN_SPREAD: OpDef = OpDef {
    name: "roi_align_spread",
    params: &[
        Param::array("dy"),
        Param::array("rois"),
        POOLED_SIZE,
        SCALE,
        RATIO,
        BY_POSITION,
        ALIGNED,
        Param::required("shape", ParamKind::Ints),
    ],
    doc: "Gradient of `roi_align` with respect to images of shape `shape`, given the result's cotangent. Each is linear, so each is the other's \
          gradient.",
    types: Types::REAL_FLOAT,
    infer: |context| {
        let shape = image_shape(context.ints("shape"));
        let &[_, channels, ..] = shape.as_slice() else {
            return Err(context.value_error("`shape` must have four sizes"));
        };
        let [down, right] = pooled(context)?;
        let channels = pooled_channels(context, channels, down * right)?;
        let wanted = [count_of(context)?, channels, down, right];
        if context.shape(0) != wanted {
            return Err(context.shape_error(format!("`dy` must have shape {}", Tuple(&wanted))));
        }
        one_of(shape, operand::float_of(context, 0)?)
    },
    cpu: Cpu::Kernel(|context| {
        let dx = context.output(0);
        let dtype = operand::compute(dx.dtype());
        let dy = operand::dense(context.input(0), dtype, context.threads)?;
        let rois = regions(context, context.input(1), dx.shape()[0])?;
        let out = Staged::new(dx, dtype)?;
        let geometry = geometry(context, dx.shape(), &rois, dtype);
        // SAFETY: 1. the cotangent is dense, of `dtype` and the size of a result, as inference checked. 2. `out` has the images' size.
        unsafe {
            kernel::spread_means(context.threads, &geometry, samples(context), dy.data_ptr(), out.ptr());
        }
        out.finish(context.threads)
    }),
    grad: Grad::Rule(
        Keep {
            inputs: 0b10,
            outputs: 0,
        },
        |g| {
            let attrs = attributes(g).into_iter().collect();
            let ddy = invoke1(&ROI_ALIGN, &[g.dy(0), g.input(1)], &attrs)?;
            Ok(Grads::from_vec(vec![Some(ddy), None]))
        },
    ),
    cost: Cost::PerKiB(4_000),
    probe: Probe::calls(&[
        "f((2, 3, 2, 3)), np.array([[0, 0, 0, 3, 4], [1, 1.2, 2, 3, 5.6]]), (2, 3), 1.0, -1, False, False, (2, 3, 6, 5)",
    ])
    .ulp(64),
    positions: &[1],
    ..OpDef::DEFAULT
};

/// The common attributes of [`ROI_ALIGN`] and [`ROI_ALIGN_SPREAD`], in order.
fn attributes(g: &GradContext) -> Vec<Value> {
    let names = [
        "pooled_size",
        "spatial_scale",
        "sample_ratio",
        "position_sensitive",
        "aligned",
    ];
    names.iter().map(|name| g.get(name).clone()).collect()
}

/// Number of regions, shape of the images, bins along each axis.
fn sizes<'a>(context: &CallContext<'a>) -> Result<(usize, &'a [usize; 4], [usize; 2])> {
    let Ok(images) = <&[usize; 4]>::try_from(context.shape(0)) else {
        return Err(context.shape_error("`data` must have four axes, (n, c, h, w)"));
    };
    Ok((count_of(context)?, images, pooled(context)?))
}

fn count_of(context: &CallContext) -> Result<usize> {
    match context.shape(1) {
        &[count, 5] => Ok(count),
        _ => Err(context.shape_error("`rois` must be (r, 5): image, left, top, right, bottom")),
    }
}

fn pooled(context: &CallContext) -> Result<[usize; 2]> {
    let found = context.ints("pooled_size");
    match *found {
        [down, right] if down > 0 && right > 0 => Ok([down as usize, right as usize]),
        [n] if n > 0 => Ok([n as usize; 2]),
        _ => Err(context.value_error(format!(
            "`pooled_size` must be two positive numbers, found {}",
            Tuple(found)
        ))),
    }
}

fn pooled_channels(context: &CallContext, channels: usize, bins: usize) -> Result<usize> {
    if !context.bool("position_sensitive") {
        return Ok(channels);
    }
    if !channels.is_multiple_of(bins) {
        return Err(context.shape_error(format!(
            "{channels} channels are not a multiple of the {bins} bins, each of which needs its own channels"
        )));
    }
    Ok(channels / bins)
}

fn image_shape(shape: &[i64]) -> Dims {
    shape.iter().map(|&n| n.max(0) as usize).collect()
}

fn operand_dtype(x: &Tensor) -> DType {
    match x.dtype() {
        DType::F32 | DType::F16 | DType::BF16 => DType::F32,
        _ => DType::F64,
    }
}

/// The regions as float64.
///
/// # Errors
/// [`Error::Index`] for a region whose image index is out of bounds.
fn regions(context: &KernelContext, rois: &Tensor, images: usize) -> Result<Vec<f64>> {
    let dense = operand::dense(rois, DType::F64, context.threads)?;
    let found: Vec<f64> = cpu::read_dense(&dense);
    for (r, region) in found.chunks_exact(5).enumerate() {
        if region[0] >= images as f64 || region[0].is_nan() {
            return Err(Error::index(
                context.op.name,
                format!(
                    "region {r} is of image {}, but there are {images} images",
                    region[0]
                ),
            ));
        }
    }
    Ok(found)
}

fn geometry<'a>(
    context: &KernelContext,
    images: &[usize],
    regions: &'a [f64],
    dtype: DType,
) -> Regions<'a> {
    let bins = context.ints("pooled_size");
    Regions {
        elem: elem(dtype),
        images: images[0],
        channels: images[1],
        size: [images[2], images[3]],
        regions,
        bins: [bins[0], bins[bins.len() - 1]].map(|n| n as usize),
        scale: context.float("spatial_scale"),
    }
}

fn samples(context: &KernelContext) -> Samples {
    Samples {
        count: context.int("sample_ratio").max(0) as usize,
        is_aligned: context.bool("aligned"),
        is_by_position: context.bool("position_sensitive"),
    }
}

/// Cost estimate: a quarter of the pixels of each region's image, as if regions had half the image's height and width.
fn work(context: &CallContext) -> u64 {
    let (images, rois) = (context.shape(0), context.shape(1));
    (rois[0] * images[1..].iter().product::<usize>() / 4) as u64
}
