//! Geometry of convolutions: checks attributes and shapes, with the channels first.

use mxnet_kernels::conv::Conv;
use mxnet_tensor::{Dims, Layout, Tensor};
use smallvec::SmallVec;

use crate::args::Args;
use crate::context::CallContext;
use crate::error::{Error, Result, Tuple};
use crate::linalg::flops_ns;
use crate::opdef::{Inferred, one};

/// Geometry of a convolution, and the axis of the channels.
pub(in crate::nn) struct Case {
    pub conv: Conv,
    pub ndim: usize,
    pub channels_last: bool,
}

impl Case {
    /// Checks the attributes and the shapes, which are in the user's layout.
    pub fn of(args: &Args, data: &[usize], weight: &[usize]) -> Result<Case> {
        let fail = |problem: String| Error::shape("", problem);
        let spatial = spatial_axes(data)?;
        if weight.len() != data.len() {
            return Err(fail(format!(
                "`weight` has {} axes, data of {} axes need as many",
                weight.len(),
                data.len()
            )));
        }
        let channels_last = is_channels_last(args, spatial)?;
        let (x, w) = (
            channels_first(data, channels_last),
            channels_first(weight, channels_last),
        );
        let groups = usize::try_from(args.int("num_group")).unwrap_or(0);
        if groups == 0 || x[1] % groups != 0 || w[0] % groups != 0 {
            return Err(Error::value(
                "",
                format!(
                    "`num_group` is {}, which does not divide {} channels and {} filters",
                    args.int("num_group"),
                    x[1],
                    w[0]
                ),
            ));
        }
        if w[1] * groups != x[1] {
            return Err(fail(format!(
                "`weight` is for {} channels ({} groups of {}), the data have {}",
                w[1] * groups,
                groups,
                w[1],
                x[1]
            )));
        }
        let mut conv = Conv {
            elem: mxnet_kernels::Elem::F32,
            n: x[0],
            groups,
            in_channels: x[1],
            out_channels: w[0],
            input: extents(&x[2..], 1),
            output: [1; 3],
            kernel: extents(&w[2..], 1),
            stride: sizes(args, "stride", spatial, 1, 1)?,
            pad: sizes(args, "pad", spatial, 0, 0)?,
            dilation: sizes(args, "dilate", spatial, 1, 1)?,
        };
        for axis in 3 - spatial..3 {
            let (input, kernel, pad) = (conv.input[axis], conv.kernel[axis], conv.pad[axis]);
            let reach = conv.dilation[axis] * kernel.saturating_sub(1) + 1;
            if kernel == 0 || input + 2 * pad < reach {
                return Err(fail(format!(
                    "kernel of size {kernel}, dilated to {reach}, does not fit spatial axis {} of size {input} with padding {pad} on both sides",
                    axis + spatial - 3
                )));
            }
            conv.output[axis] = (input + 2 * pad - reach) / conv.stride[axis] + 1;
        }
        Ok(Case {
            conv,
            ndim: data.len(),
            channels_last,
        })
    }

    pub fn kernel(&self) -> &[usize] {
        &self.conv.kernel[5 - self.ndim..]
    }

    /// Shape of the result, in the user's layout.
    pub fn result(&self) -> Dims {
        let c = &self.conv;
        let spatial = c.output[5 - self.ndim..].iter().copied();
        if self.channels_last {
            [c.n]
                .into_iter()
                .chain(spatial)
                .chain([c.out_channels])
                .collect()
        } else {
            [c.n, c.out_channels].into_iter().chain(spatial).collect()
        }
    }

    pub fn output(&self) -> Result<Inferred> {
        one(self.result())
    }

    /// An error unless argument `i` has the result's shape.
    pub fn expect(&self, context: &CallContext, name: &str, i: usize) -> Result<()> {
        let result = self.result();
        if context.shape(i) == result.as_slice() {
            return Ok(());
        }
        Err(context.shape_error(format!(
            "`{name}` has shape {}, the convolution's result has shape {}",
            Tuple(context.shape(i)),
            Tuple(&result)
        )))
    }

    /// A view of a tensor in the user's layout, with the channels first.
    pub fn first(&self, x: &Tensor) -> Result<Tensor> {
        Ok(if self.channels_last {
            x.with_layout(channels_first_layout(x.layout())?)
        } else {
            x.clone()
        })
    }

    pub fn cost_ns(&self) -> u64 {
        let c = &self.conv;
        let taps: usize = c.kernel.iter().product();
        let outputs: usize = c.output.iter().product();
        flops_ns(2 * c.n * c.out_channels * outputs * (c.in_channels / c.groups) * taps)
    }
}

/// (n, spatial..., c) -> (n, c, spatial...).
pub(in crate::nn) fn channels_first_layout(layout: &Layout) -> Result<Layout> {
    let last = layout.ndim() as isize - 1;
    let axes: SmallVec<[isize; 5]> = [0, last].into_iter().chain(1..last).collect();
    Ok(layout.transpose(Some(&axes))?)
}

/// A shape with the channels moved to axis 1.
pub(in crate::nn) fn channels_first(shape: &[usize], channels_last: bool) -> Dims {
    let mut shape = Dims::from_slice(shape);
    if channels_last {
        let channels = shape.remove(shape.len() - 1);
        shape.insert(1, channels);
    }
    shape
}

/// Number of spatial axes of the data.
pub(in crate::nn) fn spatial_axes(data: &[usize]) -> Result<usize> {
    match data.len() {
        3..=5 => Ok(data.len() - 2),
        found => Err(Error::shape(
            "",
            format!(
                "data have {found} axes, needs 3 to 5: samples, channels and 1 to 3 spatial axes"
            ),
        )),
    }
}

/// Whether attribute `layout` has the channels last. An error if it does not fit the number of spatial axes.
pub(in crate::nn) fn is_channels_last(args: &Args, spatial: usize) -> Result<bool> {
    let layout = args.str("layout");
    if !layout.is_empty() && layout.len() != spatial + 2 {
        return Err(Error::value(
            "",
            format!(
                "layout {layout} is for {} axes, the data have {}",
                layout.len(),
                spatial + 2
            ),
        ));
    }
    Ok(layout.ends_with('C'))
}

/// Spatial sizes as `[d, h, w]`; `fill` for absent axes.
pub(in crate::nn) fn extents(found: &[usize], fill: usize) -> [usize; 3] {
    let mut all = [fill; 3];
    all[3 - found.len()..].copy_from_slice(found);
    all
}

/// Attribute `name` (one number for each spatial axis, or one for all) as `[d, h, w]`.
pub(in crate::nn) fn sizes(
    args: &Args,
    name: &str,
    spatial: usize,
    default: usize,
    least: i64,
) -> Result<[usize; 3]> {
    let mut all = [default; 3];
    let given = args.ints(name);
    if given.is_empty() {
        return Ok(all);
    }
    if given.len() != spatial && !args.is_single(name) {
        return Err(Error::value(
            "",
            format!(
                "`{name}` has {} numbers, the data have {spatial} spatial axes",
                given.len()
            ),
        ));
    }
    if let Some(bad) = given.iter().find(|&&v| v < least) {
        return Err(Error::value(
            "",
            format!("`{name}` contains {bad}, must be at least {least}"),
        ));
    }
    for axis in 0..spatial {
        all[3 - spatial + axis] = given[axis.min(given.len() - 1)] as usize;
    }
    Ok(all)
}
