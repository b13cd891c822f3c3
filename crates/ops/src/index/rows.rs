//! Index operators of networks: `pick`, one-hot rows, embeddings, `gather_nd` and its relatives.
//!
//! Data loaders often give labels and indices as floats, so these operators accept floats and truncate them.
#![allow(unsafe_code)]

use mxnet_kernels::index::one_hot;
use mxnet_tensor::{DType, Dims, IndexItem, Scalar};
use smallvec::SmallVec;

use super::positions::dense;
use super::row_sparse::rows_of_table;
use super::select::slices;
use super::{GATHER, INDEX_ADD, INDEX_ASSIGN, gather_along, resolved};
use crate::Array;
use crate::args::{Attrs, Param, ParamKind, Value};
use crate::batching::Batch;
use crate::context::{CallContext, CompositeContext};
use crate::creation::{dims, zeros};
use crate::error::{Result, Tuple};
use crate::invoke::invoke1;
use crate::launch::elem;
use crate::opdef::{Cpu, Grad, OpDef, Probe, Surface, one_of};

/// One element for each position along an axis.
pub static PICK: OpDef = OpDef {
    name: "pick",
    surface: &[Surface::Npx("pick")],
    params: &[
        Param::array("data"),
        Param::array("index"),
        Param::int("axis", -1).or_none(),
        Param::choice("mode", &["clip", "wrap"], "clip"),
        Param::bool("keepdims", false),
    ],
    doc: "One element of `data` along `axis` for each other position: `index` has the shape of `data` without the axis, or with length 1 there. \
          Indices out of bounds are clipped or wrapped. `axis=None` picks from the flattened array.",
    about: &[
        ("index", "Positions along the axis."),
        ("mode", "How a position out of bounds is treated: the nearest position ('clip'), or modulo the length ('wrap')."),
    ],
    returns: &[("ndarray", "Of the shape of `index`.")],
    raises: &[
        ("ValueError", "If `index` does not have the shape of `data` without the axis."),
    ],
    example: "
        >>> npx.pick(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0, 1]))
        array([1., 4.])
    ",
    cpu: Cpu::Composite(|context| {
        let index = integers(context.input(1))?;
        let (x, axis) = match context.opt_int("axis") {
            Some(_) => (context.input(0).clone(), context.axis("axis", 0)?),
            None => (context.input(0).reshape(&[context.input(0).len()])?, 0),
        };
        let mut thin = Dims::from_slice(x.shape());
        thin[axis] = 1;
        let mut without = thin.clone();
        without.remove(axis);
        if index.shape() != thin.as_slice() && index.shape() != without.as_slice() {
            return Err(context.shape_error(format!(
                "`index` must have shape {} or {}, found {}",
                Tuple(&without),
                Tuple(&thin),
                Tuple(index.shape())
            )));
        }
        let mode = if context.str("mode") == "wrap" {
            "wrap"
        } else {
            "clip"
        };
        let index = resolved(&index, x.shape()[axis], axis, mode)?.reshape(&thin)?;
        let picked = gather_along(&x, &index, axis)?;
        context.done(if context.bool("keepdims") {
            picked
        } else {
            picked.reshape(&without)?
        })
    }),
    probe: Probe::calls(&[
        "f((3, 4)), i((3,), 4)",
        "f((3, 4)), i((1, 4), 3), 0",
        "f((2, 3, 4)), i((2, 4), 9), 1, 'wrap', True",
        "f((6,)), i((), 6), None",
    ])
    .against(
        "lambda x, at, axis=-1, mode='clip', keepdims=False: (lambda x, axis: (lambda at: (lambda y: y if keepdims else y.squeeze(axis))(numpy.take_along_axis(x, at % x.shape[axis] if mode == 'wrap' else at.clip(0, x.shape[axis] - 1), axis)))(at if at.ndim == x.ndim else numpy.expand_dims(at, axis)))(x.ravel() if axis is None else x, 0 if axis is None else axis)",
    ),
    positions: &[1],
    ..OpDef::COMPOSITE
};

/// Rows of a table.
pub static EMBEDDING: OpDef = OpDef {
    name: "embedding",
    surface: &[Surface::Npx("embedding")],
    params: &[
        Param::array("data"),
        Param::array("weight"),
        Param::optional("input_dim", ParamKind::Int),
        Param::optional("output_dim", ParamKind::Int),
        Param::optional("dtype", ParamKind::DType),
        Param::bool("sparse_grad", false),
    ],
    doc: "The rows of `weight`, of shape (input_dim, output_dim), at the indices `data`: shape `data.shape + (output_dim,)`. Indices out of bounds \
          become the nearest row. `dtype` is the dtype of the result.\n\nThe gradient adds up the cotangents of equal indices in C order, so it does \
          not depend on the number of threads.",
    about: &[
        ("data", "Indices of rows, of any shape."),
        ("weight", "The rows, (input_dim, output_dim)."),
        ("input_dim", "Number of rows, checked against `weight`."),
        ("output_dim", "Length of a row, checked against `weight`."),
        (
            "sparse_grad",
            "Whether the gradient with respect to `weight` is row-sparse: only the rows that were read are held and added up. A variable whose \
                gradient is dense receives it as a dense array. Not in compiled functions, and dense inside `vmap` and `checkpoint`.",
        ),
    ],
    returns: &[("ndarray", "Of shape `data.shape + (output_dim,)`.")],
    raises: &[(
        "ValueError",
        "If `weight` does not have two axes, or other sizes than `input_dim` and `output_dim`.",
    )],
    example: "
        >>> weight = np.array([[0.0, 0.0], [1.0, 10.0], [2.0, 20.0]])
        >>> npx.embedding(np.array([2, 0]), weight)
        array([[ 2., 20.],
               [ 0.,  0.]])
    ",
    cpu: Cpu::Composite(|context| {
        let (data, weight) = (integers(context.input(0))?, context.input(1));
        if weight.ndim() != 2 {
            return Err(context.shape_error("`weight` must have 2 axes (input_dim, output_dim)"));
        }
        for (name, axis) in [("input_dim", 0), ("output_dim", 1)] {
            if let Some(n) = context.opt_int(name)
                && n != weight.shape()[axis] as i64
            {
                return Err(context.shape_error(format!(
                    "`{name}` is {n}, but axis {axis} of `weight` has size {}",
                    weight.shape()[axis]
                )));
            }
        }
        let data = resolved(&data, weight.shape()[0], 0, "clip")?;
        let rows = match context.bool("sparse_grad") {
            true => rows_of_table(weight, &data)?,
            false => slices(weight, &data, 0)?,
        };
        context.done(rows.astype(context.dtype("dtype").unwrap_or(weight.dtype()))?)
    }),
    probe: Probe::calls(&[
        "i((2, 3), 5), f((5, 4))",
        "i((0,), 5), f((5, 2)), 5, 2",
        "i((), 5), f((5, 2))",
    ])
    .against("lambda data, weight, *dims: weight[data]"),
    positions: &[0],
    ..OpDef::COMPOSITE
};

/// One-hot rows, given resolved labels.
pub static ONE_HOT_ROWS: OpDef = OpDef {
    name: "one_hot_rows",
    params: &[
        Param::array("indices"),
        Param::required("depth", ParamKind::Int),
        Param::float("on_value", 1.0),
        Param::float("off_value", 0.0),
        Param::required("dtype", ParamKind::DType),
    ],
    doc: "For each int64 index a row of `depth` elements: `on_value` at the index, `off_value` elsewhere; off everywhere if the index is not in \
          0..depth.",
    infer: |context| {
        let depth = context.int("depth");
        if depth < 0 {
            return Err(context.value_error(format!("`depth` must not be negative, found {depth}")));
        }
        if context.dtype_of(0) != DType::I64 {
            return Err(context.dtype_error("`indices` must be int64"));
        }
        let mut shape = Dims::from_slice(context.shape(0));
        shape.push(depth as usize);
        mxnet_tensor::checked_len(&shape)?;
        one_of(shape, context.dtype("dtype").unwrap_or(DType::F32))
    },
    cpu: Cpu::Kernel(|context| {
        let (x, out) = (context.input(0), context.output(0));
        let x = dense(x, context.threads)?;
        let (mut on, mut off) = ([0_u64; 2], [0_u64; 2]);
        let (on, off) = (on.as_mut_ptr().cast::<u8>(), off.as_mut_ptr().cast::<u8>());
        // SAFETY: 1. both patterns have 16 bytes, enough for every dtype. 2. `x` is dense int64 (inference), the output dense with `depth` elements for
        // each index.
        unsafe {
            Scalar::F64(context.float("on_value")).write(out.dtype(), on);
            Scalar::F64(context.float("off_value")).write(out.dtype(), off);
            one_hot(
                context.threads,
                elem(out.dtype()),
                x.data_ptr().cast(),
                x.len(),
                context.int("depth") as usize,
                on,
                off,
                out.data_ptr(),
            );
        }
        Ok(())
    }),
    grad: Grad::Stop("indices are integers"),
    probe: Probe::calls(&["i((2, 3), 4), 4, 1.0, 0.0, 'float32'"]).against(
        "lambda x, d, on, off, t: numpy.where(numpy.arange(d) == x[..., None], on, off).astype(t)",
    ),
    batch: Batch::Leading(&[0]),
    positions: &[0],
    ..OpDef::DEFAULT
};

/// One-hot rows of labels.
pub static ONE_HOT: OpDef = OpDef {
    name: "one_hot",
    surface: &[Surface::Npx("one_hot")],
    params: &[
        Param::array("data"),
        Param::required("depth", ParamKind::Int),
        Param::float("on_value", 1.0),
        Param::float("off_value", 0.0),
        Param {
            default: crate::args::Default::Str("float32"),
            ..Param::required("dtype", ParamKind::DType)
        },
    ],
    doc: "For each label a row of `depth` elements (a new last axis): `on_value` at the label, `off_value` elsewhere; off everywhere for a label \
          that is not in 0..depth.",
    about: &[
        ("data", "The labels."),
        ("depth", "Length of a row."),
        ("on_value", "Element at the label."),
        ("off_value", "All other elements."),
    ],
    returns: &[("ndarray", "Of shape `data.shape + (depth,)`.")],
    raises: &[
        ("ValueError", "If `depth` is negative."),
    ],
    example: "
        >>> npx.one_hot(np.array([0, 2]), 3)
        array([[1., 0., 0.],
               [0., 0., 1.]])
    ",
    cpu: Cpu::Composite(|context| {
        let data = integers(context.input(0))?.astype(DType::I64)?;
        let attrs: Attrs = [
            context.get("depth").clone(),
            context.get("on_value").clone(),
            context.get("off_value").clone(),
            Value::DType(context.dtype("dtype").unwrap_or(DType::F32)),
        ]
        .into_iter()
        .collect();
        context.done(invoke1(&ONE_HOT_ROWS, &[&data], &attrs)?)
    }),
    probe: Probe::calls(&["i((2, 3), 4), 4", "i((2,), 9), 4, 5.0, -1.0, 'int32'", "i((), 3), 3"])
        .against("lambda x, depth, on=1.0, off=0.0, dtype='float32': numpy.where(numpy.arange(depth) == x[..., None], on, off).astype(dtype)"),
    positions: &[0],
    ..OpDef::COMPOSITE
};

/// Elements or slices at the columns of an index matrix.
pub static GATHER_ND: OpDef = OpDef {
    name: "gather_nd",
    surface: &[Surface::Npx("gather_nd")],
    params: &[Param::array("data"), Param::array("indices")],
    doc: "The slices of `data` at the columns of `indices`, of shape (m, ...) with m at most the number of axes of `data`: row i has indices into \
          axis i. The result has shape `indices.shape[1:] + data.shape[m:]`.",
    about: &[("indices", "Positions, one column for each slice.")],
    returns: &[("ndarray", "Of shape `indices.shape[1:] + data.shape[m:]`.")],
    raises: &[
        (
            "ValueError",
            "If `indices` has more rows than `data` has axes.",
        ),
        ("IndexError", "If an index is out of bounds."),
    ],
    example: "
        >>> npx.gather_nd(np.array([[1, 2], [3, 4]]), np.array([[0, 1], [1, 0]]))
        array([2, 3])
    ",
    cpu: Cpu::Composite(|context| {
        let x = context.input(0);
        let (key, columns) = columns(context, x.shape(), &integers(context.input(1))?)?;
        let inputs: SmallVec<[&Array; 4]> = std::iter::once(x).chain(&columns).collect();
        context.done(invoke1(&GATHER, &inputs, &[key].into_iter().collect())?)
    }),
    probe: Probe::calls(&[
        "f((3, 4)), i((2, 5), 3)",
        "f((3, 4)), i((1, 2, 2), 3)",
        "f((2, 3, 2)), i((3, 0), 2)",
    ])
    .against("lambda x, i: x[tuple(i)]"),
    positions: &[1],
    ..OpDef::COMPOSITE
};

/// The inverse of `gather_nd`.
pub static SCATTER_ND: OpDef = OpDef {
    name: "scatter_nd",
    surface: &[Surface::Npx("scatter_nd")],
    params: &[
        Param::array("data"),
        Param::array("indices"),
        Param::required("shape", ParamKind::Ints),
    ],
    doc: "Zeros of `shape` with `data`, of shape `indices.shape[1:] + shape[m:]`, at the columns of `indices`, of shape (m, ...).",
    about: &[
        ("data", "The values to write."),
        (
            "indices",
            "Positions, one column for each slice; of equal ones the last wins.",
        ),
        ("shape", "Shape of the result."),
    ],
    returns: &[("ndarray", "Of the shape `shape` and the dtype of `data`.")],
    raises: &[
        (
            "ValueError",
            "If `indices` has more rows than `shape` has axes, or `data` does not fit.",
        ),
        ("IndexError", "If an index is out of bounds."),
    ],
    example: "
        >>> npx.scatter_nd(np.array([5.0, 7.0]), np.array([[0, 1], [1, 0]]), (2, 2))
        array([[0., 5.],
               [7., 0.]])
    ",
    cpu: Cpu::Composite(|context| {
        let data = context.input(0);
        let base = zeros(
            &dims(context.op.name, context.ints("shape"))?,
            data.dtype(),
            data.device(),
        )?;
        context.done(changed(
            context,
            &base,
            &integers(context.input(1))?,
            data,
            false,
        )?)
    }),
    probe: Probe::calls(&[
        "f((3,)), i((2, 3), 4), (4, 4)",
        "f((2, 4)), i((1, 2), 3), (3, 4)",
    ])
    .against(
        "lambda y, at, shape: (lambda z: (z.__setitem__(tuple(at), y), z)[1])(numpy.zeros(shape))",
    ),
    positions: &[1],
    ..OpDef::COMPOSITE
};

const CHANGE: &[Param] = &[Param::array("a"), Param::array("ind"), Param::array("val")];

/// Values added at positions.
pub static NPX_INDEX_ADD: OpDef = OpDef {
    name: "index_add",
    surface: &[Surface::Npx("index_add")],
    params: CHANGE,
    doc: "Copy of `a` in which `val` was added at the columns of `ind`, of shape (m, n): row i has indices into axis i, so that `val` has a shape \
          that broadcasts to `(n,) + a.shape[m:]`. An `ind` of one axis holds indices into axis 0. Repeated positions add up.",
    about: &[("ind", "Positions, one column each."), ("val", "The values to add.")],
    returns: &[("ndarray", "Of the shape and dtype of `a`.")],
    raises: &[
        ("ValueError", "If `ind` has more rows than `a` has axes, or `val` does not broadcast."),
        ("IndexError", "If an index is out of bounds."),
    ],
    example: "
        >>> npx.index_add(np.zeros(4), np.array([[0, 2, 0]]), np.array([1.0, 2.0, 3.0]))
        array([4., 0., 2., 0.])
    ",
    cpu: Cpu::Composite(|context| {
        context.done(changed(context, context.input(0), &columns_of(context)?, context.input(2), true)?)
    }),
    probe: Probe::calls(&["f((3, 4)), i((2, 5), 3), f((5,))", "f((3, 4)), i((4,), 3), f((4,))"])
        .against("lambda a, at, v: (lambda z: (numpy.add.at(z, tuple(at) if at.ndim > 1 else at, v), z)[1])(a.copy())"),
    positions: &[1],
    ..OpDef::COMPOSITE
};

/// Values set at positions.
pub static NPX_INDEX_UPDATE: OpDef = OpDef {
    name: "index_update",
    surface: &[Surface::Npx("index_update")],
    params: CHANGE,
    doc: "Copy of `a` in which the columns of `ind`, of shape (m, n), hold `val`: row i of `ind` has indices into axis i, so that `val` has a \
          shape that broadcasts to `(n,) + a.shape[m:]`. An `ind` of one axis holds indices into axis 0. Of several values for one position the \
          last stays.",
    about: &[("ind", "Positions, one column each."), ("val", "The new elements.")],
    returns: &[("ndarray", "Of the shape and dtype of `a`.")],
    raises: &[
        ("ValueError", "If `ind` has more rows than `a` has axes, or `val` does not broadcast."),
        ("IndexError", "If an index is out of bounds."),
    ],
    example: "
        >>> npx.index_update(np.zeros(4), np.array([[1, 3]]), np.array([5.0, 6.0]))
        array([0., 5., 0., 6.])
    ",
    cpu: Cpu::Composite(|context| {
        context.done(changed(context, context.input(0), &columns_of(context)?, context.input(2), false)?)
    }),
    probe: Probe::calls(&["f((3, 4)), i((2, 5), 3), f((5,))", "f((3, 4)), i((4,), 3), f((1, 4))"])
        .against("lambda a, at, v: (lambda z: (z.__setitem__(tuple(at) if at.ndim > 1 else at, v), z)[1])(a.copy())"),
    positions: &[1],
    ..OpDef::COMPOSITE
};

/// Integer indices; floats are truncated.
fn integers(indices: &Array) -> Result<Array> {
    if indices.dtype().is_float() {
        indices.astype(DType::I64)
    } else {
        Ok(indices.clone())
    }
}

/// The index matrix `ind`; an array of fewer than two axes holds indices into axis 0.
fn columns_of(context: &CompositeContext) -> Result<Array> {
    let indices = integers(context.input(1))?;
    match indices.ndim() {
        0 | 1 => indices.reshape(&[1, indices.len()]),
        _ => Ok(indices),
    }
}

/// The canonical key of an index matrix, and its rows with positions in range.
fn columns(
    context: &CallContext,
    shape: &[usize],
    indices: &Array,
) -> Result<(Value, SmallVec<[Array; 4]>)> {
    let m = indices.shape().first().copied().unwrap_or(0);
    if indices.ndim() == 0 || m == 0 || m > shape.len() {
        return Err(context.shape_error(format!(
            "the first axis of the indices must have size 1 to {} (axes of the array), found shape {}",
            shape.len(),
            Tuple(indices.shape())
        )));
    }
    let rows = (0..m).map(|i| {
        let row = indices.index([IndexItem::Int(i as isize)].into())?;
        resolved(&row, shape[i], i, "raise")
    });
    let rows = rows.collect::<Result<SmallVec<[Array; 4]>>>()?;
    let item = IndexItem::Array {
        shape: Dims::from_slice(&indices.shape()[1..]),
    };
    Ok((Value::Index(vec![item; m].into()), rows))
}

/// A copy of `a` with `value`, broadcast and converted, set or added at the positions of an index matrix.
fn changed(
    context: &CompositeContext,
    a: &Array,
    indices: &Array,
    value: &Array,
    add: bool,
) -> Result<Array> {
    let (key, rows) = columns(context, a.shape(), indices)?;
    let mut positions_shape = Dims::from_slice(&indices.shape()[1..]);
    positions_shape.extend_from_slice(&a.shape()[rows.len()..]);
    if value.layout().broadcast_to(&positions_shape).is_err() {
        return Err(context.shape_error(format!(
            "values of shape {} do not broadcast to the shape {} of the indexed elements",
            Tuple(value.shape()),
            Tuple(&positions_shape)
        )));
    }
    // A copy, because a single stride must walk the positions.
    let value = value
        .astype(a.dtype())?
        .broadcast_to(&positions_shape)?
        .contiguous()?;
    let mut inputs: SmallVec<[&Array; 4]> = SmallVec::from_iter([a, &value]);
    inputs.extend(&rows);
    if add {
        invoke1(&INDEX_ADD, &inputs, &[key].into_iter().collect())
    } else {
        let attrs: Attrs = [key, Value::Bool(false)].into_iter().collect();
        invoke1(&INDEX_ASSIGN, &inputs, &attrs)
    }
}
