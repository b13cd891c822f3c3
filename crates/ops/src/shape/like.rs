//! Arrays whose shape is taken from another array.

use mxnet_tensor::{DType, Dims, Kind, Scalar, normalize_axis};

use super::narrow;
use crate::Array;
use crate::args::{Param, ParamKind};
use crate::context::CallContext;
use crate::creation::arange_on;
use crate::opdef::{Cpu, OpDef, Probe, Surface};

/// A range with the shape of another array.
pub static ARANGE_LIKE: OpDef = OpDef {
    name: "arange_like",
    surface: &[Surface::Npx("arange_like")],
    params: &[
        Param::array("data"),
        Param::float("start", 0.0),
        Param::float("step", 1.0),
        Param::int("repeat", 1),
        Param::optional("ctx", ParamKind::Device),
        Param::optional("axis", ParamKind::Int),
    ],
    doc: "A range with the shape of another array.",
    about: &[
        (
            "data",
            "Gives the shape and the kind of numbers. They have its dtype, or 32 bits if that is narrower: float16 cannot count beyond 2048, \
             bfloat16 not beyond 256.",
        ),
        ("start", "First number."),
        ("step", "Distance between the numbers."),
        (
            "repeat",
            "Number of repetitions of each number, at least 1.",
        ),
        (
            "ctx",
            "Device of the result; that of `data` for None.",
        ),
        (
            "axis",
            "Count along this axis of `data` only: the result has shape `(data.shape[axis],)`. None has the shape of `data`.",
        ),
    ],
    returns: &[("ndarray", "Of the shape of `data`, or of the length of the axis.")],
    raises: &[("ValueError", "If `repeat` is below 1.")],
    example: "
        >>> npx.arange_like(np.zeros((2, 3)), start=1, repeat=2)
        array([[1., 1., 2.],
               [2., 3., 3.]])
    ",
    cpu: Cpu::Composite(|context| {
        let (x, repeat) = (context.input(0), context.int("repeat"));
        if repeat < 1 {
            return Err(context.value_error(format!("`repeat` must be at least 1, found {repeat}")));
        }
        let shape = match context.opt_int("axis") {
            None => Dims::from_slice(x.shape()),
            Some(axis) => Dims::from_elem(x.shape()[normalize_axis(axis as isize, x.ndim())?], 1),
        };
        let device = context.device("ctx").unwrap_or_else(|| x.device());
        let count = arange_on(shape.iter().product(), DType::I64, device)?;
        let count = match repeat {
            1 => count,
            _ => count.floor_div(&Array::weak_scalar(Scalar::I64(repeat))?)?,
        };
        // If all numbers are integers, integer arithmetic is exact.
        let number = |value: f64| match value.fract() == 0.0 && value.abs() < 2f64.powi(53) {
            true => Array::weak_scalar(Scalar::I64(value as i64)),
            false => Array::weak_scalar(Scalar::F64(value)),
        };
        let values = count
            .mul(&number(context.float("step"))?)?
            .add(&number(context.float("start"))?)?;
        let dtype = match x.dtype() {
            narrow if narrow.size() < 4 && narrow.kind() == Kind::Float => DType::F32,
            narrow if narrow.size() < 4 => DType::I32,
            wide => wide,
        };
        context.done(values.astype(dtype)?.reshape(&shape)?)
    }),
    probe: Probe::calls(&["f((2, 3)), 1.0, 2.0, 2", "f((2, 3)), axis=1", "f((0, 3))"]).against(
        "lambda x, start=0.0, step=1.0, repeat=1, ctx=None, axis=None: \
         (np.arange(x.size if axis is None else x.shape[axis]) // repeat * step + start).reshape(x.shape if axis is None else -1)",
    ),
    ..OpDef::COMPOSITE
};

/// An array broadcast to the shape of another.
pub static BROADCAST_LIKE: OpDef = OpDef {
    name: "broadcast_like",
    surface: &[Surface::Npx("broadcast_like")],
    params: &[
        Param::array("lhs"),
        Param::array("rhs"),
        Param::optional("lhs_axes", ParamKind::Ints),
        Param::optional("rhs_axes", ParamKind::Ints),
    ],
    doc: "Broadcasts an array to the shape of another, or some of its axes to the lengths of axes of the other.",
    about: &[
        ("lhs", "The array."),
        ("rhs", "Only its shape is used."),
        (
            "lhs_axes",
            "Axes of `lhs`, of length 1 or of the new length; given together with `rhs_axes`.",
        ),
        (
            "rhs_axes",
            "For each of them the axis of `rhs` that gives the length.",
        ),
    ],
    returns: &[("ndarray", "A view.")],
    raises: &[(
        "ValueError",
        "If the shapes do not fit, or the axes differ in number.",
    )],
    example: "
        >>> npx.broadcast_like(np.array([[1], [2]]), np.zeros((2, 3)))
        array([[1, 1, 1],
               [2, 2, 2]])
    ",
    cpu: Cpu::Composite(|context| {
        let (x, like) = (context.input(0), context.shape(1));
        if context.is_none("lhs_axes") && context.is_none("rhs_axes") {
            return context.done(x.broadcast_to(like)?);
        }
        let (left, right) = (context.ints("lhs_axes"), context.ints("rhs_axes"));
        if left.len() != right.len() || left.is_empty() {
            return Err(context.value_error(format!(
                "`lhs_axes` {left:?} and `rhs_axes` {right:?} must have equal lengths, at least 1"
            )));
        }
        let mut wanted = Dims::from_slice(x.shape());
        for (&i, &j) in left.iter().zip(right) {
            wanted[normalize_axis(i as isize, x.ndim())?] =
                like[normalize_axis(j as isize, like.len())?];
        }
        context.done(x.broadcast_to(&wanted)?)
    }),
    probe: Probe::calls(&[
        "f((2, 1)), f((2, 3))",
        "f((2, 1, 1)), f((4, 3)), (1, -1), (0, 1)",
    ])
    .against(
        "lambda x, y, i=None, j=None: np.broadcast_to(x, y.shape if i is None else (2, 4, 3))",
    ),
    ..OpDef::COMPOSITE
};

/// An array reshaped to the shape of another.
pub static RESHAPE_LIKE: OpDef = OpDef {
    name: "reshape_like",
    surface: &[Surface::Npx("reshape_like")],
    params: &[
        Param::array("lhs"),
        Param::array("rhs"),
        Param::optional("lhs_begin", ParamKind::Int),
        Param::optional("lhs_end", ParamKind::Int),
        Param::optional("rhs_begin", ParamKind::Int),
        Param::optional("rhs_end", ParamKind::Int),
    ],
    doc: "Reshapes an array to the shape of another, or a range of its axes to the lengths of a range of axes of the other.",
    about: &[
        ("lhs", "The array."),
        ("rhs", "Only its shape is used."),
        (
            "lhs_begin",
            "First axis of the range of `lhs`, as in slices.",
        ),
        ("lhs_end", "Where it ends."),
        (
            "rhs_begin",
            "First axis of the range of `rhs`, as in slices.",
        ),
        ("rhs_end", "Where it ends."),
    ],
    returns: &[("ndarray", "A view where possible.")],
    raises: &[("ValueError", "If the number of elements differs.")],
    example: "
        >>> npx.reshape_like(np.arange(6), np.zeros((2, 3)))
        array([[0, 1, 2],
               [3, 4, 5]])
    ",
    cpu: Cpu::Composite(|context| {
        let (x, like) = (context.input(0), context.shape(1));
        let (begin, end) = span(context, "lhs_begin", "lhs_end", x.ndim());
        let (first, last) = span(context, "rhs_begin", "rhs_end", like.len());
        let shape: Dims = x.shape()[..begin]
            .iter()
            .chain(&like[first..last])
            .chain(&x.shape()[end..])
            .copied()
            .collect();
        context.done(x.reshape(&shape)?)
    }),
    probe: Probe::calls(&[
        "f((6,)), f((2, 3))",
        "f((2, 6)), f((3, 2, 5)), 1, None, 0, -1",
    ])
    .against("lambda x, y, *axes: x.reshape((2, 3, 2) if axes else y.shape)"),
    ..OpDef::COMPOSITE
};

/// An array sliced to the lengths of another.
pub static SLICE_LIKE: OpDef = OpDef {
    name: "slice_like",
    surface: &[Surface::Npx("slice_like")],
    params: &[
        Param::array("data"),
        Param::array("shape_like"),
        Param::ints("axes", &[]),
    ],
    doc: "Slices an array to the lengths of another.",
    about: &[
        ("shape_like", "Only its shape is used."),
        (
            "axes",
            "The axes to cut; all when empty, for which both must have as many.",
        ),
    ],
    returns: &[("ndarray", "A view.")],
    raises: &[(
        "ValueError",
        "If an axis of `data` is shorter, or without `axes` the numbers of axes differ.",
    )],
    example: "
        >>> npx.slice_like(np.array([[1, 2, 3], [4, 5, 6]]), np.zeros((1, 2)))
        array([[1, 2]])
    ",
    cpu: Cpu::Composite(|context| {
        let (x, like, given) = (context.input(0), context.shape(1), context.ints("axes"));
        let axes: Dims = match given {
            [] if like.len() != x.ndim() => {
                return Err(
                    context.shape_error("without `axes` both must have the same number of axes")
                );
            }
            [] => (0..x.ndim()).collect(),
            _ => (given
                .iter()
                .map(|&axis| normalize_axis(axis as isize, x.ndim())))
            .collect::<std::result::Result<_, _>>()?,
        };
        let mut view = x.clone();
        for axis in axes {
            let length = like.get(axis).filter(|&&length| length <= x.shape()[axis]);
            let Some(&length) = length else {
                return Err(context.shape_error(format!(
                    "axis {axis} of `data` cannot be sliced to the length of that of `shape_like`"
                )));
            };
            view = narrow(&view, axis, 0, length)?;
        }
        context.done(view)
    }),
    probe: Probe::calls(&["f((3, 4)), f((2, 3))", "f((3, 4)), f((5, 2)), (-1,)"])
        .against("lambda x, y, axes=(): x[:, :2] if axes else x[:2, :3]"),
    ..OpDef::COMPOSITE
};

/// All axes but the first merged to one.
pub static BATCH_FLATTEN: OpDef = OpDef {
    name: "batch_flatten",
    surface: &[Surface::Npx("batch_flatten")],
    params: &[Param::array("data")],
    doc: "Merges all axes after the first into one: (n, ...) becomes (n, m).",
    returns: &[("ndarray", "A view where possible.")],
    raises: &[("ValueError", "If `data` has no axes.")],
    example: "
        >>> npx.batch_flatten(np.zeros((2, 3, 4))).shape
        (2, 12)
    ",
    cpu: Cpu::Composite(|context| {
        let x = context.input(0);
        let [n, rest @ ..] = x.shape() else {
            return Err(context.shape_error("`data` must have at least one axis"));
        };
        context.done(x.reshape(&[*n, rest.iter().product()])?)
    }),
    probe: Probe::calls(&["f((2, 3, 4))", "f((3,))", "f((0, 3))"])
        .against("lambda x: x.reshape(x.shape[0], int(np.prod(x.shape[1:])))"),
    ..OpDef::COMPOSITE
};

/// The shape as an array.
pub static SHAPE_ARRAY: OpDef = OpDef {
    name: "shape_array",
    surface: &[Surface::Npx("shape_array")],
    params: &[Param::array("data")],
    doc: "The shape of an array as an array of one axis.",
    returns: &[("ndarray of int64", "Of shape (ndim,).")],
    example: "
        >>> npx.shape_array(np.zeros((2, 3)))
        array([2, 3])
    ",
    cpu: Cpu::Composite(|context| {
        let lengths: Vec<i64> = context.shape(0).iter().map(|&n| n as i64).collect();
        context.done(
            Array::from_slice(&lengths, &[lengths.len()])?.to_device(context.input(0).device())?,
        )
    }),
    probe: Probe::calls(&["f((2, 3))", "f(())"])
        .against("lambda x: np.array(x.shape, dtype='int64')"),
    ..OpDef::COMPOSITE
};

/// The number of elements as an array.
pub static SIZE_ARRAY: OpDef = OpDef {
    name: "size_array",
    surface: &[Surface::Npx("size_array")],
    params: &[Param::array("data")],
    doc: "The number of elements of an array as an array of one element.",
    returns: &[("ndarray of int64", "Of shape (1,).")],
    example: "
        >>> npx.size_array(np.zeros((2, 3)))
        array([6])
    ",
    cpu: Cpu::Composite(|context| {
        let size = Array::from_slice(&[context.input(0).len() as i64], &[1])?;
        context.done(size.to_device(context.input(0).device())?)
    }),
    probe: Probe::calls(&["f((2, 3))"]).against("lambda x: np.array([x.size])"),
    ..OpDef::COMPOSITE
};

/// The axes `begin..end` of an array with `ndim` axes, normalised like the bounds of a slice; empty if they cross.
fn span(context: &CallContext, begin: &str, end: &str, ndim: usize) -> (usize, usize) {
    let bound = |name: &str, default: usize| {
        context.opt_int(name).map_or(default, |i| {
            let i = if i < 0 { i + ndim as i64 } else { i };
            i.clamp(0, ndim as i64) as usize
        })
    };
    let begin = bound(begin, 0);
    (begin, bound(end, ndim).max(begin))
}
