//! Convolution and its two gradients over one to three spatial axes, with groups and dilation: implicit matrix products whose operands are read in
//! place (`conv.cuh`, `tile.cuh`).

use mxnet_core::context::KernelContext;
use mxnet_core::device_kernels::register as add;
use mxnet_core::{Error, Result};
use mxnet_tensor::{DType, DeviceKind, Scalar, Tensor};
use smallvec::SmallVec;

use super::matmul::{Part, SUMS, TILE, Tiles, definitions, run, sizes};
use super::operand::{self, Operand, bytes, c_type, source};

const CONV: &str = include_str!("../text/conv.cuh");

pub(super) fn register(kind: DeviceKind) -> Result<()> {
    add("convolution", kind, 0, |context| forward(context, false))?;
    add("convolution_relu", kind, 0, |context| {
        forward(context, true)
    })?;
    add("convolution_data_gradient", kind, 0, |context| {
        let geometry = Geometry::of(context, context.output(0).shape(), context.input(1).shape())?;
        let dtype = context.output(0).dtype();
        let (y, w) = (
            geometry.first(context, 0, dtype)?,
            geometry.first(context, 1, dtype)?,
        );
        let bias = Operand::dense_or_none(context, 2, dtype)?;
        let operands = Operands {
            x: 0,
            w: w.ptr,
            y: y.ptr,
            bias: pointer(bias.as_ref()),
        };
        multiply(context, "DATA", &geometry, &operands)
    })?;
    add("convolution_weight_gradient", kind, 0, |context| {
        let geometry = Geometry::of(context, context.input(0).shape(), context.output(0).shape())?;
        let dtype = context.output(0).dtype();
        let (x, y) = (
            geometry.first(context, 0, dtype)?,
            geometry.first(context, 1, dtype)?,
        );
        let operands = Operands {
            x: x.ptr,
            w: 0,
            y: y.ptr,
            bias: 0,
        };
        multiply(context, "WEIGHT", &geometry, &operands)
    })
}

fn forward(context: &KernelContext, relu: bool) -> Result<()> {
    let (data, weight) = (context.input(0).shape(), context.input(1).shape());
    let mut geometry = Geometry::of(context, data, weight)?;
    geometry.relu = relu;
    let dtype = context.output(0).dtype();
    let (x, w) = (
        geometry.first(context, 0, dtype)?,
        geometry.first(context, 1, dtype)?,
    );
    let bias = Operand::dense_or_none(context, 2, dtype)?;
    let operands = Operands {
        x: x.ptr,
        w: w.ptr,
        y: 0,
        bias: pointer(bias.as_ref()),
    };
    multiply(context, "FORWARD", &geometry, &operands)
}

fn pointer(x: Option<&Operand>) -> u64 {
    x.map_or(0, |x| x.ptr)
}

struct Operands {
    x: u64,
    w: u64,
    y: u64,
    bias: u64,
}

/// Sizes of a convolution; spatial axes are `[d, h, w]`. Shape inference has checked them.
struct Geometry {
    images: usize,
    groups: usize,
    /// Input channels per group.
    channels: usize,
    filters: usize,
    input: [usize; 3],
    output: [usize; 3],
    kernel: [usize; 3],
    stride: [usize; 3],
    pad: [usize; 3],
    dilation: [usize; 3],
    channels_last: bool,
    /// Whether ReLU is applied.
    relu: bool,
}

impl Geometry {
    fn of(context: &KernelContext, data: &[usize], weight: &[usize]) -> Result<Geometry> {
        let channels_last = context.str("layout").ends_with('C');
        let (x, w) = (
            channels_first(data, channels_last),
            channels_first(weight, channels_last),
        );
        let spatial = x.len() - 2;
        let groups = context.int("num_group").max(1) as usize;
        let mut geometry = Geometry {
            images: x[0],
            groups,
            channels: w[1],
            filters: w[0] / groups,
            input: extents(&x[2..]),
            output: [1; 3],
            kernel: extents(&w[2..]),
            stride: spread(context, "stride", spatial, 1),
            pad: spread(context, "pad", spatial, 0),
            dilation: spread(context, "dilate", spatial, 1),
            channels_last,
            relu: false,
        };
        for axis in 3 - spatial..3 {
            let reach = geometry.dilation[axis] * (geometry.kernel[axis] - 1) + 1;
            let span = (geometry.input[axis] + 2 * geometry.pad[axis]).saturating_sub(reach);
            geometry.output[axis] = span / geometry.stride[axis] + 1;
        }
        let [in_len, out_len, taps] =
            [geometry.input, geometry.output, geometry.kernel].map(|x| x.iter().product::<usize>());
        // Positions and terms within an image are 32-bit numbers in the kernel.
        let largest = [
            in_len,
            out_len,
            taps.saturating_mul(geometry.channels.max(geometry.filters)),
        ];
        if largest.iter().any(|&n| u32::try_from(n).is_err()) {
            let problem = format!(
                "no kernel for images or filters of 2^32 elements on {}",
                context.device
            );
            return Err(Error::unsupported(context.op.name, problem));
        }
        Ok(geometry)
    }

    /// Input `i` as a dense array with the channels first.
    fn first<'a>(
        &self,
        context: &KernelContext<'a>,
        i: usize,
        dtype: DType,
    ) -> Result<Operand<'a>> {
        let x = Operand::input(context, i)?;
        let (shape, strides) = (
            channels_to_front(&x.shape, self.channels_last),
            channels_to_front(&x.strides, self.channels_last),
        );
        x.with(&shape, &strides).into_dense(context, dtype)
    }
}

/// (n, spatial.., c) as (n, c, spatial..), if the channels are last.
pub(super) fn channels_to_front<T: Copy>(x: &[T], channels_last: bool) -> SmallVec<[T; 8]> {
    let mut moved: SmallVec<[T; 8]> = x.iter().copied().collect();
    if channels_last && let Some(channels) = moved.pop() {
        moved.insert(1, channels);
    }
    moved
}

fn channels_first(shape: &[usize], channels_last: bool) -> SmallVec<[usize; 8]> {
    channels_to_front(shape, channels_last)
}

/// Sizes of spatial axes as `[d, h, w]`; missing ones are 1.
pub(super) fn extents(found: &[usize]) -> [usize; 3] {
    let mut all = [1; 3];
    all[3 - found.len()..].copy_from_slice(found);
    all
}

/// Attribute `name`, one number per spatial axis or one for all, as `[d, h, w]`.
pub(super) fn spread(
    context: &KernelContext,
    name: &str,
    spatial: usize,
    default: usize,
) -> [usize; 3] {
    let mut all = [default; 3];
    let given = context.ints(name);
    for axis in 0..spatial.min(if given.is_empty() { 0 } else { spatial }) {
        all[3 - spatial + axis] = given[axis.min(given.len() - 1)] as usize;
    }
    all
}

/// The result with the channels first: the output itself, or a buffer that is copied to the output at the end.
pub(super) fn staged<'a>(
    context: &KernelContext<'a>,
    y: &Tensor,
    channels_last: bool,
) -> Result<(Operand<'a>, Option<Operand<'a>>)> {
    let target = Operand::of(y);
    let (shape, strides) = (
        channels_to_front(&target.shape, channels_last),
        channels_to_front(&target.strides, channels_last),
    );
    let target = target.with(&shape, &strides);
    if target.is_dense() {
        return Ok((target, None));
    }
    Ok((Operand::new(context, &shape, y.dtype())?, Some(target)))
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Problem {
    m: i64,
    n: i64,
    k: i64,
    batches: i64,
    splits: i64,
    depth: i64,
    images: i64,
    groups: i64,
    channels: i64,
    filters: i64,
    relu: i64,
    input: [i64; 3],
    output: [i64; 3],
    kernel: [i64; 3],
    stride: [i64; 3],
    pad: [i64; 3],
    dilation: [i64; 3],
    x: u64,
    w: u64,
    y: u64,
    bias: u64,
    out: u64,
}

fn multiply(
    context: &KernelContext,
    which: &'static str,
    g: &Geometry,
    operands: &Operands,
) -> Result<()> {
    let [in_len, out_len, taps] =
        [g.input, g.output, g.kernel].map(|x| x.iter().product::<usize>());
    let (batches, m, n, k) = match which {
        "FORWARD" => (g.images * g.groups, g.filters, out_len, g.channels * taps),
        "DATA" => (g.images * g.groups, g.channels, in_len, g.filters * taps),
        _ => (g.groups, g.filters, g.channels * taps, g.images * out_len),
    };
    let (out, target) = staged(context, context.output(0), g.channels_last)?;
    if out.is_empty() {
        return Ok(());
    }
    if batches * m * n == 0 {
        return operand::fill(context, &Operand::of(context.output(0)), Scalar::I64(0));
    }
    let tiles = Tiles::of(out.dtype, [batches, m, n, k]);
    let numbers = |x: [usize; 3]| x.map(|x| x as i64);
    let problem = Problem {
        m: m as i64,
        n: n as i64,
        k: k as i64,
        batches: batches as i64,
        splits: tiles.splits as i64,
        depth: tiles.depth as i64,
        images: g.images as i64,
        groups: g.groups as i64,
        channels: g.channels as i64,
        filters: g.filters as i64,
        relu: i64::from(g.relu),
        input: numbers(g.input),
        output: numbers(g.output),
        kernel: numbers(g.kernel),
        stride: numbers(g.stride),
        pad: numbers(g.pad),
        dilation: numbers(g.dilation),
        x: operands.x,
        w: operands.w,
        y: operands.y,
        bias: operands.bias,
        out: out.ptr,
    };
    let (dtype, size) = (out.dtype, tiles.size);
    let key = |part| key(which, dtype, size, part);
    run(context, &tiles, dtype, bytes(&problem), &key, &|part| {
        text(which, dtype, size, part)
    })?;
    match target {
        Some(target) => operand::copy(context, &out, &target),
        None => Ok(()),
    }
}

fn key(which: &str, dtype: DType, size: [usize; 3], part: Part) -> String {
    let which = which.to_lowercase();
    match part {
        Part::Tiles => format!("conv_{which}:{}:{}x{}", c_type(dtype), size[0], size[1]),
        Part::Finish => format!("conv_{which}:{}:finish", c_type(dtype)),
    }
}

fn text(which: &str, dtype: DType, size: [usize; 3], part: Part) -> String {
    let which = format!("#define {which}");
    source(&[&definitions(dtype, size, part), &which, SUMS, CONV, TILE])
}

pub(super) fn texts(all: &mut Vec<(String, String)>) {
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        for which in ["FORWARD", "DATA", "WEIGHT"] {
            for &size in sizes(dtype) {
                all.push((
                    key(which, dtype, size, Part::Tiles),
                    text(which, dtype, size, Part::Tiles),
                ));
            }
            all.push((
                key(which, dtype, [16; 3], Part::Finish),
                text(which, dtype, [16; 3], Part::Finish),
            ));
        }
    }
}
