//! Normalisation of rows within each sample: layer, group, instance, RMS and L2 normalisation. Batch normalisation is in `batch_norm.rs`.
#![allow(unsafe_code)]

use mxnet_kernels::norm::{self as kernel, Affine, Centre, RowNorm};
use mxnet_tensor::{DType, Dims, Tensor};
use smallvec::SmallVec;

use crate::args::{Args, Attrs, Param, ParamKind, Value};
use crate::autograd::GradCx;
use crate::batching::Batch;
use crate::context::CallCx;
use crate::elementwise::explog::SQRT;
use crate::error::{Error, Result, Tuple};
use crate::invoke::invoke_with;
use crate::launch::elem;
use crate::nn::batch_norm::{NORM, affine_grads, four};
use crate::nn::operand::{self, Staged};
use crate::opdef::{Cpu, Grad, Keep, Onnx, OpDef, Probe, Surface};
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
    cpu: Cpu::Composite(|cx| along_axis(cx, true)),
    onnx: Onnx::Node {
        ty: "LayerNormalization",
        since: 17,
    },
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
    cpu: Cpu::Composite(|cx| along_axis(cx, false)),
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
    cpu: Cpu::Composite(|cx| over_groups(cx, cx.int("num_groups"))),
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
    cpu: Cpu::Composite(|cx| {
        let channels = cx.shape(0).get(1).copied().unwrap_or(0);
        over_groups(cx, channels as i64)
    }),
    onnx: Onnx::Node {
        ty: "InstanceNormalization",
        since: 6,
    },
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
    cpu: Cpu::Composite(|cx| {
        let x = cx.input(0).astype(operand::float_of(cx, 0)?)?;
        let ndim = x.ndim() as i64;
        let mode = cx.str("mode");
        let least = if mode == "instance" { 1 } else { 2 };
        if ndim < least {
            return Err(cx.shape_error(format!(
                "data have {ndim} axes, mode `{mode}` needs at least {least}"
            )));
        }
        let axes: SmallVec<[i64; 4]> = match mode {
            "channel" => SmallVec::from_slice(&[1]),
            "spatial" => (2..ndim).collect(),
            _ => (1..ndim).collect(),
        };
        let length = x.square()?.sum(Some(&axes), true)?.shift(cx.float("eps"))?;
        cx.done(x.div(&length.unary(&SQRT)?)?)
    }),
    onnx: Onnx::Node {
        ty: "LpNormalization",
        since: 1,
    },
    probe: Probe::calls(&[
        "f((2, 3))",
        "f((2, 3, 4)), 1e-3, 'channel'",
        "f((2, 3, 4)), 1e-3, 'spatial'",
    ])
    .ulp(16),
    ..OpDef::COMPOSITE
};

/// Normalisation of rows of `len` consecutive elements.
pub static ROW_NORM: OpDef = OpDef {
    name: "row_norm",
    params: &[
        Param::array("x"),
        Param::optional_array("gamma"),
        Param::optional_array("beta"),
        Param::required("len", ParamKind::Int),
        Param::int("groups", 0),
        Param::int("inner", 1),
        Param::bool("centred", true),
        Param::float("eps", 1e-5),
    ],
    doc: "Result, mean and inverse deviation of rows of `len` elements in C order. Without `groups`, gamma and beta have an element for each of a row; \
          with them, row r is group `r % groups` of a sample, and gamma and beta have an element for each `inner` elements of a sample. Rows that are \
          not `centred` have mean 0.",
    infer: |cx| {
        let dtype = operand::float_of(cx, 0)?;
        let (total, len) = (cx.input(0).len(), cx.int("len").max(0) as usize);
        let rows = total.checked_div(len).unwrap_or(0);
        let needed = geometry(&cx.args, total, operand::compute(dtype)).parameters();
        for i in [1, 2] {
            if let Some(vector) = cx.opt(i).filter(|v| v.len() != needed || v.ndim() != 1) {
                let name = ["gamma", "beta"][i - 1];
                return Err(cx.shape_error(format!(
                    "`{name}` has shape {}, needs ({needed},)",
                    Tuple(vector.shape())
                )));
            }
        }
        let statistics = (Dims::from_slice(&[rows]), operand::compute(dtype));
        cx.many([
            (Dims::from_slice(cx.shape(0)), dtype),
            statistics.clone(),
            statistics,
        ])
    },
    cpu: Cpu::Kernel(|cx| {
        let dtype = operand::compute(cx.output(0).dtype());
        let x = operand::dense(cx.input(0), dtype, cx.threads)?;
        let [gamma, beta, ..] = four(cx, [1, 2, usize::MAX, usize::MAX], dtype)?;
        let y = Staged::new(cx.output(0), dtype)?;
        let at = |t: &Option<Tensor>| operand::pointer(t.as_ref()).cast_const();
        let g = geometry(&cx.args, x.len(), dtype);
        // SAFETY: 1. operands are dense, of `dtype`, with as many elements as the geometry says (inference checked). 2. results overlap none.
        unsafe {
            kernel::row_norm(
                cx.threads,
                &g,
                x.data_ptr(),
                at(&gamma),
                at(&beta),
                y.ptr(),
                cx.output(1).data_ptr(),
                cx.output(2).data_ptr(),
            );
        }
        y.finish(cx.threads)
    }),
    grad: Grad::Fused(
        Keep {
            inputs: 0b11,
            outputs: 0b110,
        },
        |g| {
            let gradients = if g.has_dy(1) || g.has_dy(2) {
                row_slopes(g)?
            } else {
                let attrs: Attrs = ["len", "groups", "inner", "centred", "eps"]
                    .iter()
                    .map(|name| g.get(name).clone())
                    .collect();
                let inputs = [
                    Some(g.input(0)),
                    Some(g.dy(0)),
                    g.opt_input(1),
                    Some(g.output(1)),
                    Some(g.output(2)),
                ];
                invoke_with(&ROW_NORM_GRADIENT, &inputs, &attrs)?
            };
            Ok(affine_grads(g, gradients))
        },
        |g| Ok(affine_grads(g, row_slopes(g)?)),
    ),
    probe: Probe::calls(&[
        "f((3, 4)), f((4,)), f((4,)), 4",
        "f((2, 4, 3)), f((4,)), None, 6, 2, 3",
    ])
    .ulp(64),
    batch: Batch::Rule(|cx| match cx.is_batched(1) || cx.is_batched(2) {
        true => Err(cx.refused()),
        false => cx.call_with_first(0),
    }),
    ..NORM
};

/// Gradients of row normalisation, fused in one kernel.
pub static ROW_NORM_GRADIENT: OpDef = OpDef {
    name: "row_norm_gradient",
    params: &[
        Param::array("x"),
        Param::array("dy"),
        Param::optional_array("gamma"),
        Param::array("mean"),
        Param::array("inverse"),
        Param::required("len", ParamKind::Int),
        Param::int("groups", 0),
        Param::int("inner", 1),
        Param::bool("centred", true),
        Param::float("eps", 1e-5),
    ],
    doc: "Gradients of `row_norm` with respect to x, gamma and beta.",
    infer: |cx| {
        let dtype = operand::float_of(cx, 0)?;
        let g = geometry(&cx.args, cx.input(0).len(), dtype);
        let needed = g.parameters();
        cx.check_shape(1, cx.shape(0))?;
        cx.check_shape(2, &[needed])?;
        cx.check_shape(3, &[g.rows])?;
        cx.check_shape(4, &[g.rows])?;
        let parameters = (Dims::from_slice(&[needed]), operand::compute(dtype));
        cx.many([
            (Dims::from_slice(cx.shape(0)), dtype),
            parameters.clone(),
            parameters,
        ])
    },
    cpu: Cpu::Kernel(|cx| {
        let dtype = operand::compute(cx.output(0).dtype());
        let x = operand::dense(cx.input(0), dtype, cx.threads)?;
        let dy = operand::dense(cx.input(1), dtype, cx.threads)?;
        let [gamma, mean, inverse, _] = four(cx, [2, 3, 4, usize::MAX], dtype)?;
        let dx = Staged::new(cx.output(0), dtype)?;
        let at = |t: &Option<Tensor>| operand::pointer(t.as_ref()).cast_const();
        let g = geometry(&cx.args, x.len(), dtype);
        let scratch = operand::scratch(kernel::row_norm_backward_scratch_bytes(&g))?;
        // SAFETY: 1. operands are dense, of `dtype`, with as many elements as the geometry says (inference of the forward call checked), the scratch
        // has the size the kernel asks for. 2. results overlap none.
        unsafe {
            kernel::row_norm_backward(
                cx.threads,
                &g,
                x.data_ptr(),
                dy.data_ptr(),
                at(&gamma),
                at(&mean),
                at(&inverse),
                dx.ptr(),
                cx.output(1).data_ptr(),
                cx.output(2).data_ptr(),
                scratch.data_ptr(),
            );
        }
        dx.finish(cx.threads)
    }),
    grad: Grad::Stop("gradients of gradients are composed of other operators"),
    probe: Probe::calls(&["f((3, 4)), f((3, 4)), f((4,)), f((3,)), f((3,)), 4"]).ulp(64),
    ..NORM
};

fn geometry(args: &Args, total: usize, dtype: DType) -> RowNorm {
    let size = |name: &str| args.int(name).max(0) as usize;
    let (len, groups) = (size("len"), size("groups"));
    RowNorm {
        elem: elem(operand::compute(dtype)),
        rows: total.checked_div(len).unwrap_or(0),
        len,
        centre: if args.bool("centred") {
            Centre::Mean
        } else {
            Centre::Zero
        },
        affine: if groups == 0 {
            Affine::PerElement
        } else {
            Affine::PerChannel {
                groups,
                inner: size("inner").max(1),
            }
        },
        epsilon: args.float("eps"),
    }
}

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

fn along_axis(cx: &CallCx, centred: bool) -> Result<Outputs> {
    let x = cx.input(0);
    let axis = cx.axis("axis", 0)?;
    let len = x.shape()[axis];
    for (i, name) in [(1, "gamma"), (2, "beta")] {
        if let Some(vector) = cx.opt(i).filter(|v| v.shape() != [len]) {
            return Err(cx.shape_error(format!(
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
        cx.opt(1),
        cx.opt(2),
        [len, 0, 1],
        centred,
        cx.float("eps"),
    )?;
    let y = swapped(&out[0])?;
    if !centred || !cx.bool("output_mean_var") {
        return cx.done(y);
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

fn over_groups(cx: &CallCx, groups: i64) -> Result<Outputs> {
    let (x, shape) = (cx.input(0), cx.shape(0));
    let [n, c, ..] = *shape else {
        return Err(cx.shape_error(format!(
            "data have {} axes, needs at least 2: samples and channels",
            shape.len()
        )));
    };
    if groups < 1 && c > 0 || groups > 0 && c % groups as usize != 0 {
        return Err(Error::value(
            cx.op.name,
            format!("`num_groups` is {groups}, which does not divide {c} channels"),
        ));
    }
    for (i, name) in [(1, "gamma"), (2, "beta")] {
        if let Some(vector) = cx.opt(i).filter(|v| v.shape() != [c]) {
            return Err(cx.shape_error(format!(
                "`{name}` has shape {}, needs ({c},): the channels",
                Tuple(vector.shape())
            )));
        }
    }
    let groups = groups.max(1) as usize;
    let inner: usize = shape[2..].iter().product();
    let out = row_norm(
        x,
        cx.opt(1),
        cx.opt(2),
        [c / groups * inner, groups, inner],
        true,
        cx.float("eps"),
    )?;
    let wanted =
        cx.op.params.iter().any(|p| p.name == "output_mean_var") && cx.bool("output_mean_var");
    if !wanted {
        return cx.done(out[0].clone());
    }
    let per_group = [n, groups];
    Ok(SmallVec::from_iter([
        out[0].clone(),
        out[1].reshape(&per_group)?,
        out[2].reciprocal()?.reshape(&per_group)?,
    ]))
}

/// Gradients of row normalisation composed of differentiable operators. The data is reshaped to (samples, groups, channels of a group, inner).
fn row_slopes(g: &GradCx) -> Result<Outputs> {
    let (len, groups) = (g.int("len") as usize, g.int("groups").max(0) as usize);
    let inner = if groups == 0 {
        1
    } else {
        g.int("inner").max(1) as usize
    };
    let per_sample = groups.max(1);
    let rows = g.output(1).len();
    let full = [rows / per_sample, per_sample, len / inner, inner];
    let one_each = [rows / per_sample, per_sample, 1, 1];
    let parameters = [1, per_sample, len / inner, 1];
    let work = g.output(1).dtype();
    let x = g.input(0).astype(work)?.reshape(&full)?;
    let dy = g.dy(0).astype(work)?.reshape(&full)?;
    let inverse = g.output(2).reshape(&one_each)?;
    let centred_rows = g.bool("centred");
    let centred = if centred_rows {
        x.sub(&g.output(1).reshape(&one_each)?)?
    } else {
        x
    };
    let hat = centred.mul(&inverse)?;
    let weighed = match g.opt_input(1) {
        Some(gamma) => dy.mul(&gamma.reshape(&parameters)?)?,
        None => dy.clone(),
    };
    let row = Some(&[2_i64, 3][..]);
    let mut inner_part = weighed.sub(&hat.mul(&weighed.mul(&hat)?.mean(row, true)?)?)?;
    if centred_rows {
        inner_part = inner_part.sub(&weighed.mean(row, true)?)?;
    }
    let mut dx = inner_part.mul(&inverse)?;
    let share = 1.0 / len as f64;
    if g.has_dy(1) && centred_rows {
        dx = dx.add(&g.dy(1).reshape(&one_each)?.scale(share)?)?;
    }
    if g.has_dy(2) {
        let cube = inverse.mul(&inverse.square()?)?;
        dx = dx.sub(
            &g.dy(2)
                .reshape(&one_each)?
                .scale(share)?
                .mul(&cube)?
                .mul(&centred)?,
        )?;
    }
    // Without groups, gamma and beta have one element for each element of a row; with groups, one for each channel.
    let others: &[i64] = if groups == 0 { &[0, 1, 3] } else { &[0, 3] };
    let size = if groups == 0 {
        len
    } else {
        groups * len / inner
    };
    let mut all = Outputs::new();
    all.push(dx.reshape(g.shape(0))?);
    all.push(dy.mul(&hat)?.sum(Some(others), false)?.reshape(&[size])?);
    all.push(dy.sum(Some(others), false)?.reshape(&[size])?);
    Ok(all)
}
