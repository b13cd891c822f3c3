//! Normalisation within each sample: layer, group, instance, RMS and L2 normalisation. Batch normalisation is in `batch_norm.rs`.

use mxnet_tensor::Dims;
use smallvec::SmallVec;

use crate::args::{Attrs, Param, Value};
use crate::context::CallContext;
use crate::elementwise::explog::SQRT;
use crate::error::{Error, Result, Tuple};
use crate::invoke::invoke_with;
use crate::nn::operand::{self};
use crate::nn::row_norm::ROW_NORM;
use crate::opdef::{Cpu, OpDef, Probe, Surface};
use crate::{Array, Outputs};

/// Layer normalisation.
pub static LAYER_NORM: OpDef = OpDef {
    name: "layer_norm",
    surface: &[Surface::Npx("layer_norm")],
    params: &[
        Param::array("data"),
        Param::array("gamma"),
        Param::array("beta"),
        Param::int("axis", -1),
        Param::float("eps", 1e-5),
        Param::bool("output_mean_var", false),
    ],
    doc: "`(x - mean) / sqrt(var + eps) * gamma + beta` along one axis, with a gamma and beta for each position along it. With `output_mean_var` the \
        mean and `sqrt(var + eps)` of each row are returned too, of the data's shape without the axis.\n\nSource: Ba, Kiros and Hinton, Layer \
        Normalization, 2016.",
    about: &[
        ("gamma", "Scale of each position along the axis."),
        ("beta", "Shift of each position along the axis."),
        ("eps", "Added to the variance."),
        (
            "output_mean_var",
            "Whether mean and deviation are returned too.",
        ),
    ],
    returns: &[(
        "ndarray",
        "Of the shape of `data`; with `output_mean_var` a tuple of three.",
    )],
    raises: &[(
        "ValueError",
        "If `gamma` or `beta` does not have the length of the axis.",
    )],
    example: "
        >>> npx.layer_norm(np.array([[1.0, 3.0], [10.0, 30.0]]), np.ones(2), np.zeros(2), eps=0.0)
        array([[-1.,  1.],
               [-1.,  1.]])
    ",
    cpu: Cpu::Composite(|context| along_axis(context, true)),
    probe: Probe::calls(&[
        "f((3, 4)), f((4,)), f((4,))",
        "f((2, 3, 4)), f((3,)), f((3,)), 1, 1e-3",
        "f((2, 3, 4)), f((4,)), f((4,)), output_mean_var=True",
    ])
    .ulp(64),
    ..OpDef::COMPOSITE
};

/// Normalisation by the root mean square.
pub static RMS_NORM: OpDef = OpDef {
    name: "rms_norm",
    surface: &[Surface::Npx("rms_norm")],
    params: &[
        Param::array("data"),
        Param::array("gamma"),
        Param::int("axis", -1),
        Param::float("eps", 1e-5),
    ],
    doc: "`x / sqrt(mean(x^2) + eps) * gamma` along one axis, with a gamma for each position along it.\n\nSource: Zhang and Sennrich, Root Mean \
        Square Layer Normalization, 2019.",
    about: &[
        ("gamma", "Scale of each position along the axis."),
        ("eps", "Added to the mean square."),
    ],
    returns: &[("ndarray", "Of the shape of `data`.")],
    raises: &[(
        "ValueError",
        "If `gamma` does not have the length of the axis.",
    )],
    example: "
        >>> npx.rms_norm(np.array([[3.0, 4.0]]), np.ones(2), eps=0.0)
        array([[0.84852815, 1.1313709 ]])
    ",
    cpu: Cpu::Composite(|context| along_axis(context, false)),
    probe: Probe::calls(&["f((3, 4)), f((4,))", "f((2, 3, 4)), f((3,)), 1"]).ulp(64),
    ..OpDef::COMPOSITE
};

/// Group normalisation.
pub static GROUP_NORM: OpDef = OpDef {
    name: "group_norm",
    surface: &[Surface::Npx("group_norm")],
    params: &[
        Param::array("data"),
        Param::array("gamma"),
        Param::array("beta"),
        Param::int("num_groups", 1),
        Param::float("eps", 1e-3),
        Param::bool("output_mean_var", false),
    ],
    doc: "Normalises the channels (axis 1) of each sample in `num_groups` groups, over a group's channels and all further axes; gamma and beta have \
        one element for each channel. With `output_mean_var` the mean and `sqrt(var + eps)` are returned too, of shape (n, num_groups).\n\nSource: \
        Wu and He, Group Normalization, 2018.",
    about: &[
        ("gamma", "Scale of each channel."),
        ("beta", "Shift of each channel."),
        (
            "num_groups",
            "Number of groups, a divisor of the number of channels.",
        ),
        ("eps", "Added to the variance."),
        (
            "output_mean_var",
            "Whether mean and deviation are returned too.",
        ),
    ],
    returns: &[(
        "ndarray",
        "Of the shape of `data`; with `output_mean_var` a tuple of three.",
    )],
    raises: &[
        (
            "ValueError",
            "If `gamma` or `beta` does not have one element for each channel.",
        ),
        (
            "ValueError",
            "If `num_groups` does not divide the channels.",
        ),
    ],
    example: "
        >>> x = np.array([[[1.0], [3.0], [10.0], [30.0]]])
        >>> npx.group_norm(x, np.ones(4), np.zeros(4), num_groups=2, eps=0.0)
        array([[[-1.],
                [ 1.],
                [-1.],
                [ 1.]]])
    ",
    cpu: Cpu::Composite(|context| over_groups(context, context.int("num_groups"))),
    probe: Probe::calls(&[
        "f((2, 4, 3)), f((4,)), f((4,)), 2",
        "f((2, 4)), f((4,)), f((4,))",
        "f((2, 4, 3, 2)), f((4,)), f((4,)), 4, output_mean_var=True",
    ])
    .ulp(64),
    ..OpDef::COMPOSITE
};

/// Instance normalisation.
pub static INSTANCE_NORM: OpDef = OpDef {
    name: "instance_norm",
    surface: &[Surface::Npx("instance_norm")],
    params: &[
        Param::array("data"),
        Param::array("gamma"),
        Param::array("beta"),
        Param::float("eps", 1e-3),
    ],
    doc: "Normalises each channel (axis 1) of each sample over all further axes; gamma and beta have one element for each channel.\n\nSource: \
        Ulyanov, Vedaldi and Lempitsky, Instance Normalization, 2016.",
    about: &[
        ("gamma", "Scale of each channel."),
        ("beta", "Shift of each channel."),
        ("eps", "Added to the variance."),
    ],
    returns: &[("ndarray", "Of the shape of `data`.")],
    raises: &[
        ("ValueError", "If `gamma` or `beta` does not have one element for each channel."),
    ],
    example: "
        >>> npx.instance_norm(np.array([[[1.0, 3.0], [10.0, 30.0]]]), np.ones(2), np.zeros(2), eps=0.0)
        array([[[-1.,  1.],
                [-1.,  1.]]])
    ",
    cpu: Cpu::Composite(|context| {
        let channels = context.shape(0).get(1).copied().unwrap_or(0);
        over_groups(context, channels as i64)
    }),
    probe: Probe::calls(&[
        "f((2, 3, 4)), f((3,)), f((3,))",
        "f((2, 3, 4, 2)), f((3,)), f((3,)), 1e-5",
    ])
    .ulp(64),
    ..OpDef::COMPOSITE
};

/// Rows divided by their Euclidean length.
pub static L2_NORMALIZATION: OpDef = OpDef {
    name: "l2_normalization",
    surface: &[Surface::Npx("l2_normalization")],
    params: &[
        Param::array("data"),
        Param::float("eps", 1e-10),
        Param::choice("mode", &["instance", "channel", "spatial"], "instance"),
    ],
    doc: "`x / sqrt(sum(x^2) + eps)`, the sum being over all of a sample (`instance`), over its channels (axis 1) at each position (`channel`), or over \
          all positions of a channel (`spatial`).",
    about: &[
        ("eps", "Added to the sum of squares."),
        ("mode", "The elements that are summed: see above."),
    ],
    returns: &[("ndarray", "Of the shape of `data`.")],
    raises: &[(
        "ValueError",
        "If `data` has no channel axis in a mode that needs it.",
    )],
    example: "
        >>> npx.l2_normalization(np.array([[3.0, 4.0]]))
        array([[0.6, 0.8]])
    ",
    cpu: Cpu::Composite(|context| {
        let x = context.input(0).astype(operand::float_of(context, 0)?)?;
        let ndim = x.ndim() as i64;
        let mode = context.str("mode");
        let least = if mode == "instance" { 1 } else { 2 };
        if ndim < least {
            return Err(context.shape_error(format!(
                "data have {ndim} axes, mode `{mode}` needs at least {least}"
            )));
        }
        let axes: SmallVec<[i64; 4]> = match mode {
            "channel" => SmallVec::from_slice(&[1]),
            "spatial" => (2..ndim).collect(),
            _ => (1..ndim).collect(),
        };
        let length = x
            .square()?
            .sum(Some(&axes), true)?
            .shift(context.float("eps"))?;
        context.done(x.div(&length.unary(&SQRT)?)?)
    }),
    probe: Probe::calls(&[
        "f((2, 3))",
        "f((2, 3, 4)), 1e-3, 'channel'",
        "f((2, 3, 4)), 1e-3, 'spatial'",
    ])
    .ulp(16),
    ..OpDef::COMPOSITE
};

fn row_norm(
    x: &Array,
    gamma: Option<&Array>,
    beta: Option<&Array>,
    size: [usize; 3],
    centred: bool,
    eps: f64,
) -> Result<Outputs> {
    let mut attrs: Attrs = size.iter().map(|&n| Value::Int(n as i64)).collect();
    attrs.push(Value::Bool(centred));
    attrs.push(Value::Float(eps));
    invoke_with(&ROW_NORM, &[Some(x), gamma, beta], &attrs)
}

fn along_axis(context: &CallContext, centred: bool) -> Result<Outputs> {
    let x = context.input(0);
    let axis = context.axis("axis", 0)?;
    let len = x.shape()[axis];
    for (i, name) in [(1, "gamma"), (2, "beta")] {
        if let Some(vector) = context.opt(i).filter(|v| v.shape() != [len]) {
            return Err(context.shape_error(format!(
                "`{name}` has shape {}, needs ({len},): axis {axis} of the data",
                Tuple(vector.shape())
            )));
        }
    }
    // The axis is swapped with the last one, and back afterwards.
    let last = x.ndim() - 1;
    let swapped = |x: &Array| -> Result<Array> {
        if axis == last {
            return Ok(x.clone());
        }
        let mut order: SmallVec<[i64; 4]> = (0..=last as i64).collect();
        order.swap(axis, last);
        x.transpose(Some(&order))
    };
    let moved = swapped(x)?;
    let out = row_norm(
        &moved,
        context.opt(1),
        context.opt(2),
        [len, 0, 1],
        centred,
        context.float("eps"),
    )?;
    let y = swapped(&out[0])?;
    if !centred || !context.bool("output_mean_var") {
        return context.done(y);
    }
    // The statistics have the axes of the transposed data without its last axis: the former last axis stands at the position of `axis`.
    let rows = Dims::from_slice(&moved.shape()[..last]);
    let statistic = |s: &Array| -> Result<Array> {
        let s = s.reshape(&rows)?;
        if axis == last {
            return Ok(s);
        }
        let mut order: SmallVec<[i64; 4]> =
            (0..last as i64).filter(|&a| a != axis as i64).collect();
        order.push(axis as i64);
        s.transpose(Some(&order))
    };
    Ok(SmallVec::from_iter([
        y,
        statistic(&out[1])?,
        statistic(&out[2].reciprocal()?)?,
    ]))
}

fn over_groups(context: &CallContext, groups: i64) -> Result<Outputs> {
    let (x, shape) = (context.input(0), context.shape(0));
    let [n, c, ..] = *shape else {
        return Err(context.shape_error(format!(
            "data have {} axes, needs at least 2: samples and channels",
            shape.len()
        )));
    };
    if groups < 1 && c > 0 || groups > 0 && c % groups as usize != 0 {
        return Err(Error::value(
            context.op.name,
            format!("`num_groups` is {groups}, which does not divide {c} channels"),
        ));
    }
    for (i, name) in [(1, "gamma"), (2, "beta")] {
        if let Some(vector) = context.opt(i).filter(|v| v.shape() != [c]) {
            return Err(context.shape_error(format!(
                "`{name}` has shape {}, needs ({c},): the channels",
                Tuple(vector.shape())
            )));
        }
    }
    let groups = groups.max(1) as usize;
    let inner: usize = shape[2..].iter().product();
    let out = row_norm(
        x,
        context.opt(1),
        context.opt(2),
        [c / groups * inner, groups, inner],
        true,
        context.float("eps"),
    )?;
    let wanted = context
        .op
        .params
        .iter()
        .any(|p| p.name == "output_mean_var")
        && context.bool("output_mean_var");
    if !wanted {
        return context.done(out[0].clone());
    }
    let per_group = [n, groups];
    Ok(SmallVec::from_iter([
        out[0].clone(),
        out[1].reshape(&per_group)?,
        out[2].reciprocal()?.reshape(&per_group)?,
    ]))
}
