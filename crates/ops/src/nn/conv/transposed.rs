//! Transposed convolution: the adjoint of convolution with respect to its data, as an operator of its own.

use mxnet_tensor::Dims;
use smallvec::SmallVec;

use super::geometry::{channels_first, is_channels_last, sizes, spatial_axes};
use super::{
    CONVOLUTION_DATA_GRADIENT, CUDNN_OFF, CUDNN_TUNE, DILATE, GROUPS, LAYOUT, NO_EFFECT, PAD,
    STRIDE, WORKSPACE, call, conv_params,
};
use crate::args::{Attrs, Param, ParamKind, Value};
use crate::context::CallContext;
use crate::error::{Result, Tuple};
use crate::nn::linear::check_bias;
use crate::opdef::{Cpu, OpDef, Probe, Surface};

/// Transposed convolution.
pub static DECONVOLUTION: OpDef = OpDef {
    name: "deconvolution",
    surface: &[Surface::Npx("deconvolution")],
    params: conv_params![
        Param::array("data"),
        Param::array("weight"),
        Param::optional_array("bias");
        Param::optional("adj", ParamKind::Ints),
        Param::optional("target_shape", ParamKind::Ints);
    ],
    doc: "Transposed convolution: the gradient of `convolution` with respect to its data, as a function of the cotangent. `data` is (n, c, [d, [h,]] \
          w), `weight` `(c, num_filter / num_group, *kernel)`. An axis of size s becomes `(s - 1) * stride - 2 * pad + dilate * (kernel - 1) + 1 + \
          adj`; `target_shape` gives the sizes instead, and `pad` and `adj` follow from it.",
    about: &[
        ("data", "The images, (n, c, [d, [h,]] w)."),
        ("weight", "The filters, `(c, num_filter / num_group, *kernel)`."),
        ("bias", "One number for each filter."),
        ("kernel", "Sizes of the filters; those of `weight` for None."),
        ("stride", "Distance between windows in the result, 1 for None."),
        ("dilate", "Distance between the elements that a window adds to, 1 for None."),
        ("pad", "Number of elements removed from both sides of each axis of the result."),
        ("adj", "Number of elements added at the end of each axis of the result."),
        ("target_shape", "Sizes of the result, from which `pad` and `adj` follow."),
        ("num_filter", "Number of filters; that of `weight` for None."),
        ("num_group", "Number of groups of channels that are convolved separately."),
        ("workspace", NO_EFFECT),
        ("no_bias", "Whether there is no bias."),
        ("cudnn_tune", NO_EFFECT),
        ("cudnn_off", NO_EFFECT),
        ("layout", "Order of the axes of `data`; the channels first for None."),
    ],
    returns: &[("ndarray", "Of shape (n, num_filter, ...).")],
    raises: &[("ValueError", "If the sizes do not fit.")],
    example: "
        >>> data = np.array([[[1.0, 2.0]]])
        >>> weight = np.array([[[1.0, 10.0, 100.0]]])
        >>> npx.deconvolution(data, weight, kernel=(3,), stride=(2,), num_filter=1, no_bias=True)
        array([[[  1.,  10., 102.,  20., 200.]]])
    ",
    cpu: Cpu::Composite(|context| {
        let (shape, pad, outputs) = transposed_shape(context)?;
        check_bias(context, 2, outputs)?;
        let mut attrs = Attrs::none();
        attrs.push(Value::from(&shape[..]));
        attrs.push(context.get("stride").clone());
        attrs.push(context.get("dilate").clone());
        attrs.push(Value::from(&pad[..]));
        attrs.push(context.get("num_group").clone());
        attrs.push(context.get("layout").clone());
        let inputs = [context.opt(0), context.opt(1), context.opt(2)];
        context.done(call(&CONVOLUTION_DATA_GRADIENT, &inputs, &attrs)?)
    }),
    probe: Probe::calls(&[
        "f((2, 4, 5)), f((4, 3, 3)), f((3,)), (3,)",
        "f((2, 4, 3, 4)), f((4, 2, 3, 2)), f((4,)), (3, 2), (2, 2), (1, 1), (1, 0), (1, 1), None, 4, 2",
        "f((1, 2, 3, 3)), f((2, 2, 4, 4)), None, (4, 4), (2, 2), target_shape=(6, 7), no_bias=True",
        "f((2, 3, 4, 4)), f((4, 3, 3, 2)), None, (3, 3), no_bias=True, layout='NHWC'",
    ])
    .ulp(64),
    ..OpDef::COMPOSITE
};

/// Shape and padding of a transposed convolution's result, and its number of channels.
fn transposed_shape(context: &CallContext) -> Result<(Dims, SmallVec<[i64; 3]>, usize)> {
    let (data, weight) = (context.shape(0), context.shape(1));
    let spatial = spatial_axes(data)?;
    if weight.len() != data.len() {
        return Err(context.shape_error(format!(
            "`weight` has {} axes, data of {} axes need as many",
            weight.len(),
            data.len()
        )));
    }
    let last = is_channels_last(context, spatial)?;
    let (x, w) = (channels_first(data, last), channels_first(weight, last));
    if x[1] != w[0] {
        return Err(context.shape_error(format!(
            "the data have {} channels, the first axis of `weight` has size {}",
            x[1], w[0]
        )));
    }
    if let Some(kernel) = context.opt_ints("kernel") {
        let fits = |i: usize| kernel[i.min(kernel.len() - 1)] == w[2 + i] as i64;
        if kernel.len() != spatial && !context.is_single("kernel") || !(0..spatial).all(fits) {
            return Err(context.shape_error(format!(
                "`kernel` is {}, the weight has kernel {}",
                Tuple(kernel),
                Tuple(&w[2..])
            )));
        }
    }
    let groups = context.int("num_group").max(1) as usize;
    let outputs = w[1] * groups;
    if let Some(filters) = context
        .opt_int("num_filter")
        .filter(|&n| n != outputs as i64)
    {
        return Err(context.shape_error(format!(
            "`num_filter` is {filters}, the weight is for {outputs}"
        )));
    }
    let stride = sizes(context, "stride", spatial, 1, 1)?;
    let dilation = sizes(context, "dilate", spatial, 1, 1)?;
    let given_pad = sizes(context, "pad", spatial, 0, 0)?;
    let adj = sizes(context, "adj", spatial, 0, 0)?;
    let wanted = sizes(context, "target_shape", spatial, 0, 0)?;
    let mut shape: Dims = Dims::from_slice(&[x[0], outputs]);
    let mut pad = SmallVec::new();
    for i in 0..spatial {
        let axis = 3 - spatial + i;
        let reach = dilation[axis] * w[2 + i].saturating_sub(1) + 1;
        let full = (x[2 + i].max(1) - 1) * stride[axis] + reach;
        let (p, extra) = if wanted[axis] > 0 {
            if wanted[axis] > full + stride[axis] - 1 {
                return Err(context.value_error(format!(
                    "`target_shape` asks for {} on spatial axis {i}, at most {} can be reached",
                    wanted[axis],
                    full + stride[axis] - 1
                )));
            }
            // What exceeds the target becomes padding, half on each side. An odd excess is rounded up, and one element is added at the end.
            let cut = full.saturating_sub(wanted[axis]);
            (cut.div_ceil(2), wanted[axis] + 2 * cut.div_ceil(2) - full)
        } else {
            (given_pad[axis], adj[axis])
        };
        if extra >= stride[axis].max(dilation[axis]) {
            return Err(context.value_error(format!(
                "`adj` is {extra} on spatial axis {i}, must be less than its stride {}",
                stride[axis]
            )));
        }
        if full + extra < 2 * p {
            return Err(context.shape_error(format!(
                "padding {p} on both sides leaves nothing of {full} on spatial axis {i}"
            )));
        }
        shape.push(full + extra - 2 * p);
        pad.push(p as i64);
    }
    if last {
        let channels = shape.remove(1);
        shape.push(channels);
    }
    Ok((shape, pad, outputs))
}
