//! Gather and scatter along one axis, with one index for each element.
#![allow(unsafe_code)]

use mxnet_kernels::index::{self as kernel, Along, Write};
use mxnet_tensor::{DType, Dims, Scalar, broadcast_shapes};
use smallvec::SmallVec;

use super::positions::positions;
use super::resolved;
use crate::args::{Attrs, Param, ParamKind, Value};
use crate::batching::Batch;
use crate::context::CallContext;
use crate::creation::dims;
use crate::error::Result;
use crate::invoke::invoke1;
use crate::launch::elem;
use crate::opdef::{Cost, Cpu, Grad, Keep, OpDef, Probe, Surface, one};
use crate::types::Types;
use crate::{Array, cpu};

/// `out[i.., j, k..] = x[i.., indices[i.., j, k..], k..]`.
pub static GATHER_ALONG: OpDef = OpDef {
    name: "gather_along",
    params: &[
        Param::array("x"),
        Param::array("indices"),
        Param::required("axis", ParamKind::Int),
    ],
    doc: "The elements of `x` at `indices` along `axis`: int64 positions in range, of the shape of `x` except along `axis`.",
    types: Types::First,
    infer: |context| {
        fits(context, context.shape(0), context.shape(1))?;
        one(Dims::from_slice(context.shape(1)))
    },
    cpu: Cpu::Kernel(|context| {
        let (x, out, axis) = (
            context.input(0),
            context.output(0),
            context.axis("axis", 0)?,
        );
        let indices = positions(
            context.op.name,
            context.input(1),
            x.shape()[axis],
            context.threads,
        )?;
        let what = Along {
            elem: elem(x.dtype()),
            shape: out.shape(),
            axis,
            indices: indices.data_ptr().cast(),
            view_strides: &x.byte_strides(),
            dense_strides: &out.byte_strides(),
        };
        // SAFETY: 1. indices are dense, in range (`positions`) and of the output's shape (inference). 2. the layouts lie within their storages;
        // the output was allocated for this call.
        unsafe { kernel::gather_along(context.threads, &what, x.data_ptr(), out.data_ptr()) };
        Ok(())
    }),
    grad: Grad::Rule(Keep::inputs(2), |g| {
        let attrs: Attrs = [g.get("axis").clone(), Value::from(g.shape(0))]
            .into_iter()
            .collect();
        let dx = invoke1(&SCATTER_ALONG, &[g.dy(0), g.input(1)], &attrs)?;
        Ok(SmallVec::from_iter([Some(dx), None]))
    }),
    probe: Probe::calls(&[
        "f((3, 4)), i((3, 2), 4), 1",
        "f((3, 4, 2)), i((5, 4, 2), 3), 0",
    ])
    .against("numpy.take_along_axis"),
    cost: Cost::PerKiB(500),
    batch: Batch::Axes("axis"),
    positions: &[1],
    ..OpDef::DEFAULT
};

/// Zeros to which `y` is added at `indices` along an axis.
pub static SCATTER_ALONG: OpDef = OpDef {
    name: "scatter_along",
    params: &[
        Param::array("y"),
        Param::array("indices"),
        Param::required("axis", ParamKind::Int),
        Param::required("shape", ParamKind::Ints),
    ],
    doc: "Array of `shape`, zero except at `indices` along `axis`, where the elements of `y` are added.",
    types: Types::First,
    infer: |context| {
        let shape = dims(context.op.name, context.ints("shape"))?;
        if context.shape(0) != context.shape(1) {
            return Err(context.shape_error("`y` and `indices` must have the same shape"));
        }
        fits(context, &shape, context.shape(1))?;
        one(shape)
    },
    cpu: Cpu::Kernel(|context| {
        let (y, out, axis) = (context.input(0), context.output(0), context.axis("axis", 0)?);
        let indices = positions(context.op.name, context.input(1), out.shape()[axis], context.threads)?;
        cpu::fill(out, Scalar::I64(0), context.threads);
        let what = Along {
            elem: elem(y.dtype()),
            shape: y.shape(),
            axis,
            indices: indices.data_ptr().cast(),
            view_strides: &out.byte_strides(),
            dense_strides: &y.byte_strides(),
        };
        // SAFETY: as in `GATHER_ALONG`, the output being the side that is written.
        unsafe {
            kernel::scatter_along(context.threads, Write::Add, &what, out.data_ptr(), y.data_ptr());
        }
        Ok(())
    }),
    grad: Grad::Rule(Keep::inputs(2), |g| {
        let attrs: Attrs = [g.get("axis").clone()].into_iter().collect();
        let dy = invoke1(&GATHER_ALONG, &[g.dy(0), g.input(1)], &attrs)?;
        Ok(SmallVec::from_iter([Some(dy), None]))
    }),
    probe: Probe::calls(&["f((3, 2)), i((3, 2), 4), 1, (3, 4)", "f((5, 2)), i((5, 2), 3), 0, (3, 2)"])
        .against(
            "lambda y, at, axis, shape: (lambda z: (numpy.add.at(z, (at, numpy.arange(at.shape[1])) if axis == 0 else (numpy.arange(len(at))[:, None], at), y), z)[1])(numpy.zeros(shape))",
        ),
    cost: Cost::PerKiB(500),
    batch: Batch::Rule(|context| context.call_with(&["axis"], &["shape"])),
    positions: &[1],
    ..OpDef::DEFAULT
};

/// NumPy's `take_along_axis`.
pub static TAKE_ALONG_AXIS: OpDef = OpDef {
    name: "take_along_axis",
    surface: &[Surface::Np("take_along_axis")],
    params: &[
        Param::array("arr"),
        Param::array("indices"),
        Param::int("axis", -1).or_none(),
    ],
    doc: "The elements of `arr` at `indices` along `axis`; the other axes of the two broadcast. `axis=None` takes from the flattened array with \
          indices of one axis.",
    about: &[("indices", "Positions along the axis.")],
    returns: &[(
        "ndarray",
        "Of the shape of `indices`, its other axes broadcast.",
    )],
    raises: &[("IndexError", "If an index is out of bounds.")],
    example: "
        >>> x = np.array([[30, 10, 20], [5, 7, 6]])
        >>> np.take_along_axis(x, np.argsort(x, axis=1), axis=1)
        array([[10, 20, 30],
               [ 5,  6,  7]])
    ",
    cpu: Cpu::Composite(|context| {
        let (x, indices) = (context.input(0), context.input(1));
        if !indices.dtype().is_integer() {
            return Err(crate::Error::index(
                context.op.name,
                format!(
                    "`indices` must be integers, found {}",
                    indices.dtype().name()
                ),
            ));
        }
        if context.is_none("axis") {
            if indices.ndim() != 1 {
                return Err(context.value_error(format!(
                    "with axis=None `indices` must have 1 axis, found {}",
                    indices.ndim()
                )));
            }
            return context.done(take_along_axis(
                &x.reshape(&[x.len()])?,
                indices,
                0,
                "raise",
            )?);
        }
        let axis = context.axis("axis", 0)?;
        if indices.ndim() != x.ndim() {
            return Err(context.value_error(format!(
                "`indices` and `arr` must have the same number of axes, found {} and {}",
                indices.ndim(),
                x.ndim()
            )));
        }
        context.done(take_along_axis(x, indices, axis, "raise")?)
    }),
    probe: Probe::calls(&[
        "f((3, 4)), i((3, 2), 4), 1",
        "f((3, 4)), i((1, 4), 3), 0",
        "f((2, 3)), i((5,), 6), None",
        "f((2, 3, 2)), i((2, 1, 2), 3) - 3, -2",
        "f((0, 3)), i((0, 2), 3)",
    ]),
    positions: &[1],
    ..OpDef::COMPOSITE
};

/// An error unless the indices have the array's shape on all axes but `axis`.
fn fits(context: &CallContext, shape: &[usize], indices: &[usize]) -> Result<()> {
    let axis = mxnet_tensor::normalize_axis(context.int("axis") as isize, shape.len())?;
    let agrees = shape.len() == indices.len()
        && (0..shape.len()).all(|i| i == axis || shape[i] == indices[i])
        && context.dtype_of(1) == DType::I64;
    if agrees {
        Ok(())
    } else {
        Err(context.shape_error(format!(
            "`indices` must be int64 and have shape {} except along axis {axis}",
            crate::Tuple(shape)
        )))
    }
}

/// The elements of `x` at resolved `indices` along `axis`.
///
/// # Errors
/// [`crate::Error::Shape`] if the shapes differ on another axis.
pub fn gather_along(x: &Array, indices: &Array, axis: usize) -> Result<Array> {
    let attrs: Attrs = [Value::Int(axis as i64)].into_iter().collect();
    invoke1(&GATHER_ALONG, &[x, indices], &attrs)
}

/// The elements of `x` at `indices` along `axis`, the other axes broadcast. `mode` is `raise`, `wrap` or `clip`.
///
/// # Errors
/// [`crate::Error::Index`] for an index out of bounds, [`crate::Error::Shape`] for shapes that do not broadcast.
pub fn take_along_axis(
    x: &Array,
    indices: &Array,
    axis: usize,
    mode: &'static str,
) -> Result<Array> {
    let indices = resolved(indices, x.shape()[axis], axis, mode)?;
    let mut from = Dims::from_slice(x.shape());
    let mut at = Dims::from_slice(indices.shape());
    (from[axis], at[axis]) = (1, 1);
    let common = broadcast_shapes(&[&from, &at])?;
    (from, at) = (common.clone(), common);
    (from[axis], at[axis]) = (x.shape()[axis], indices.shape()[axis]);
    let spread = |x: &Array, shape: &Dims| match x.shape() == shape.as_slice() {
        true => Ok(x.clone()),
        false => x.broadcast_to(shape),
    };
    gather_along(
        &spread(x, &from)?,
        &spread(&indices, &at)?.contiguous()?,
        axis,
    )
}
