//! Views that add, drop, swap or reverse axes.

use mxnet_tensor::Layout;
use smallvec::SmallVec;

use super::view::RESHAPE;
use crate::Array;
use crate::args::{Attrs, Param, ParamKind, Value};
use crate::autograd::GradContext;
use crate::error::Result;
use crate::invoke::invoke1;
use crate::memory_order::axes_in_order;
use crate::opdef::{
    Cost, Cpu, Grad, Keep, OpDef, Probe, Sparse, Surface, Viewed, ZeroDimResult, one,
};
use crate::types::Types;

/// An attribute's integers as isize, which the tensor layer takes.
fn signed(values: &[i64]) -> SmallVec<[isize; 4]> {
    values.iter().map(|&v| v as isize).collect()
}

/// View with new axes of length 1 at these positions of the result.
pub static EXPAND_DIMS: OpDef = OpDef {
    name: "expand_dims",
    surface: &[Surface::Np("expand_dims")],
    params: &[Param::array("a"), Param::required("axis", ParamKind::Ints)],
    doc: "View with new axes of length 1 at these positions of the result.",
    returns: &[("ndarray", "View with more axes.")],
    example: "
        >>> np.expand_dims([1, 2], axis=0).shape
        (1, 2)
    ",
    cpu: Cpu::View(|context| {
        Ok(Viewed::Shared(
            context.layout.expand_dims(&signed(context.ints("axis")))?,
        ))
    }),
    grad: Grad::Rule(Keep::NOTHING, |g| g.one(g.dy(0).reshape(g.shape(0))?)),
    sparse: Sparse::KeepsZero,
    probe: Probe::calls(&["f((2, 3)), 0", "f((2, 3)), (0, -1)", "f(()), 0"]),
    ..OpDef::VIEW
};

/// View without these axes, which must have length 1; None drops all of length 1.
pub static SQUEEZE: OpDef = OpDef {
    name: "squeeze",
    surface: &[Surface::Np("squeeze"), Surface::Method("squeeze")],
    params: &[Param::array("a"), Param::reduced("axis")],
    doc: "View without these axes, which must have length 1; None drops all of length 1.",
    returns: &[(
        "ndarray",
        "View with fewer axes; `a` itself if `axis` is left out and no axis has length 1.",
    )],
    raises: &[("ValueError", "If an axis is longer than 1.")],
    example: "
        >>> np.squeeze([[[1, 2, 3]]])
        array([1, 2, 3])
    ",
    cpu: Cpu::View(|context| {
        if context.is_axis_of_scalar("axis", context.layout.ndim()) {
            return Ok(Viewed::Shared(context.layout.clone()));
        }
        if context.is_none("axis") && !context.layout.shape().contains(&1) {
            return Ok(Viewed::Itself);
        }
        Ok(Viewed::Shared(context.layout.squeeze(
            context.opt_ints("axis").map(signed).as_deref(),
        )?))
    }),
    grad: Grad::Rule(Keep::NOTHING, |g| g.one(g.dy(0).reshape(g.shape(0))?)),
    sparse: Sparse::KeepsZero,
    probe: Probe::calls(&[
        "f((1, 3, 1))",
        "f((1, 3, 1)), 0",
        "f((1, 3, 1)), (0, -1)",
        "f(())",
    ]),
    ..OpDef::VIEW
};

/// View with two axes exchanged.
pub static SWAPAXES: OpDef = OpDef {
    name: "swapaxes",
    surface: &[Surface::Np("swapaxes"), Surface::Method("swapaxes")],
    params: &[
        Param::array("a"),
        Param::required("axis1", ParamKind::Int),
        Param::required("axis2", ParamKind::Int),
    ],
    doc: "View with two axes exchanged.",
    returns: &[("ndarray", "View with the axes exchanged.")],
    example: "
        >>> np.swapaxes(np.zeros((2, 3, 4)), 0, 2).shape
        (4, 3, 2)
    ",
    cpu: Cpu::View(|context| {
        Ok(Viewed::Shared(context.layout.swap_axes(
            context.int("axis1") as isize,
            context.int("axis2") as isize,
        )?))
    }),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        let attrs: Attrs = [Value::Int(g.int("axis1")), Value::Int(g.int("axis2"))]
            .into_iter()
            .collect();
        g.one(invoke1(&SWAPAXES, &[g.dy(0)], &attrs)?)
    }),
    sparse: Sparse::KeepsZero,
    probe: Probe::calls(&["f((2, 3, 4)), 0, 2", "f((2, 3)), -1, 0"]),
    ..OpDef::VIEW
};

/// View with the last two axes exchanged.
pub static MATRIX_TRANSPOSE: OpDef = OpDef {
    name: "matrix_transpose",
    surface: &[
        Surface::Np("matrix_transpose"),
        Surface::NpLinalg("matrix_transpose"),
    ],
    params: &[Param::array("x")],
    doc: "View with the last two axes exchanged.",
    about: &[("x", "The matrices (..., m, n).")],
    returns: &[("ndarray", "View of shape (..., n, m).")],
    raises: &[("ValueError", "If there are fewer than two axes.")],
    example: "
        >>> np.matrix_transpose([[1, 2], [3, 4]])
        array([[1, 3],
               [2, 4]])
    ",
    cpu: Cpu::View(|context| {
        if context.layout.ndim() < 2 {
            let problem = format!(
                "input array must be at least 2-dimensional, but it is {}",
                context.layout.ndim()
            );
            return Err(crate::Error::value(context.op.name, problem));
        }
        Ok(Viewed::Shared(context.layout.swap_axes(-2, -1)?))
    }),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        g.one(invoke1(&MATRIX_TRANSPOSE, &[g.dy(0)], &Attrs::none())?)
    }),
    sparse: Sparse::KeepsZero,
    probe: Probe::calls(&["f((2, 3, 4))", "f((2, 3))"]),
    ..OpDef::VIEW
};

/// View with axes moved to other positions; the others keep their order.
pub static MOVEAXIS: OpDef = OpDef {
    name: "moveaxis",
    surface: &[Surface::Np("moveaxis")],
    params: &[
        Param::array("a"),
        Param::required("source", ParamKind::Ints),
        Param::required("destination", ParamKind::Ints),
    ],
    doc: "View with axes moved to other positions; the others keep their order.",
    about: &[
        ("source", "Positions of the axes."),
        ("destination", "Their new positions."),
    ],
    returns: &[("ndarray", "View with the axes in another order.")],
    raises: &[("AxisError", "If the array has no such axis.")],
    example: "
        >>> np.moveaxis(np.zeros((2, 3, 4)), 0, -1).shape
        (3, 4, 2)
    ",
    cpu: Cpu::View(|context| {
        Ok(Viewed::Shared(context.layout.move_axis(
            &signed(context.ints("source")),
            &signed(context.ints("destination")),
        )?))
    }),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        let attrs: Attrs = [
            Value::from(g.ints("destination")),
            Value::from(g.ints("source")),
        ]
        .into_iter()
        .collect();
        g.one(invoke1(&MOVEAXIS, &[g.dy(0)], &attrs)?)
    }),
    sparse: Sparse::KeepsZero,
    probe: Probe::calls(&["f((2, 3, 4)), 0, -1", "f((2, 3, 4)), (0, 1), (-1, -2)"]),
    ..OpDef::VIEW
};

/// View with the elements in reverse order along these axes; None reverses all.
pub static FLIP: OpDef = OpDef {
    name: "flip",
    surface: &[Surface::Np("flip")],
    zero_dim: ZeroDimResult::Scalar,
    params: &[Param::array("m"), Param::axes("axis")],
    doc: "View with the elements in reverse order along these axes; None reverses all.",
    returns: &[("ndarray", "View of the shape of `m`.")],
    example: "
        >>> np.flip([[1, 2], [3, 4]])
        array([[4, 3],
               [2, 1]])
        >>> np.flip([[1, 2], [3, 4]], axis=1)
        array([[2, 1],
               [4, 3]])
    ",
    cpu: Cpu::View(|context| {
        Ok(Viewed::Shared(
            context
                .layout
                .flip(context.opt_ints("axis").map(signed).as_deref())?,
        ))
    }),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        g.one(invoke1(
            &FLIP,
            &[g.dy(0)],
            &[g.get("axis").clone()].into_iter().collect(),
        )?)
    }),
    sparse: Sparse::KeepsZero,
    probe: Probe::calls(&["f((2, 3))", "f((2, 3)), 0", "f((2, 3, 4)), (0, -1)"]),
    ..OpDef::VIEW
};

/// View with the elements in reverse order along axis 1.
pub static FLIPLR: OpDef = OpDef {
    name: "fliplr",
    surface: &[Surface::Np("fliplr")],
    params: &[Param::array("m")],
    doc: "View with the elements in reverse order along axis 1.",
    returns: &[("ndarray", "View of the shape of `m`.")],
    raises: &[("ValueError", "If there are fewer than two axes.")],
    example: "
        >>> np.fliplr([[1, 2], [3, 4]])
        array([[2, 1],
               [4, 3]])
    ",
    cpu: Cpu::View(|context| Ok(Viewed::Shared(context.layout.flip(Some(&[1]))?))),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        g.one(invoke1(&FLIPLR, &[g.dy(0)], &Attrs::none())?)
    }),
    sparse: Sparse::KeepsZero,
    probe: Probe::calls(&["f((2, 3))"]),
    ..OpDef::VIEW
};

/// View with the elements in reverse order along axis 0.
pub static FLIPUD: OpDef = OpDef {
    name: "flipud",
    surface: &[Surface::Np("flipud")],
    params: &[Param::array("m")],
    doc: "View with the elements in reverse order along axis 0.",
    returns: &[("ndarray", "View of the shape of `m`.")],
    raises: &[("ValueError", "If there is no axis.")],
    example: "
        >>> np.flipud([[1, 2], [3, 4]])
        array([[3, 4],
               [1, 2]])
    ",
    cpu: Cpu::View(|context| Ok(Viewed::Shared(context.layout.flip(Some(&[0]))?))),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        g.one(invoke1(&FLIPUD, &[g.dy(0)], &Attrs::none())?)
    }),
    sparse: Sparse::KeepsZero,
    probe: Probe::calls(&["f((2, 3))"]),
    ..OpDef::VIEW
};

/// Rotated by multiples of 90 degrees.
pub static ROT90: OpDef = OpDef {
    name: "rot90",
    surface: &[Surface::Np("rot90")],
    params: &[
        Param::array("m"),
        Param::int("k", 1),
        Param::ints("axes", &[0, 1]),
    ],
    doc: "View rotated `k` times by 90 degrees in the plane of two axes, from the first towards the second.",
    about: &[
        ("k", "Number of rotations by 90 degrees."),
        ("axes", "The plane, two axes."),
    ],
    returns: &[("ndarray", "View of the rotated array.")],
    raises: &[(
        "ValueError",
        "If `axes` does not name two different axes of the array.",
    )],
    example: "
        >>> np.rot90([[1, 2], [3, 4]])
        array([[2, 4],
               [1, 3]])
    ",
    cpu: Cpu::View(|context| {
        let axes = signed(context.ints("axes"));
        let [from, to] = axes[..] else {
            return Err(crate::Error::value(
                "rot90",
                format!("`axes` must name two axes, found {}", axes.len()),
            ));
        };
        let ndim = context.layout.ndim() as isize;
        if [from, to].iter().any(|axis| !(-ndim..ndim).contains(axis)) {
            let problem =
                format!("`axes` ({from}, {to}) are out of range for an array of {ndim} axes");
            return Err(crate::Error::value("rot90", problem));
        }
        if (from - to).rem_euclid(ndim) == 0 {
            let problem = format!("`axes` must name two different axes, found ({from}, {to})");
            return Err(crate::Error::value("rot90", problem));
        }
        Ok(Viewed::Shared(match context.int("k").rem_euclid(4) {
            0 => context.layout.clone(),
            1 => context.layout.flip(Some(&[to]))?.swap_axes(from, to)?,
            2 => context.layout.flip(Some(&[from, to]))?,
            _ => context.layout.swap_axes(from, to)?.flip(Some(&[to]))?,
        }))
    }),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        let attrs: Attrs = [Value::Int(-g.int("k")), g.get("axes").clone()]
            .into_iter()
            .collect();
        g.one(invoke1(&ROT90, &[g.dy(0)], &attrs)?)
    }),
    sparse: Sparse::KeepsZero,
    probe: Probe::calls(&[
        "f((2, 3))",
        "f((2, 3)), 2",
        "f((2, 3)), 3",
        "f((2, 3, 4)), 1, (2, 0)",
    ]),
    ..OpDef::VIEW
};

/// Flattened to one axis; a view if possible.
pub static RAVEL: OpDef = OpDef {
    name: "ravel",
    surface: &[Surface::Np("ravel"), Surface::Method("ravel")],
    params: &[Param::array("a"), Param::choice("order", &["C", "F"], "C")],
    doc: "The elements along one axis, in C order (`order='F'`: first axis fastest; `'K'`: in memory order, but forwards along each axis): a view if \
        they are contiguous in that order, else a copy.",
    returns: &[("ndarray", "One axis.")],
    example: "
        >>> np.ravel([[1, 2], [3, 4]])
        array([1, 2, 3, 4])
        >>> np.ravel([[1, 2], [3, 4]], order='F')
        array([1, 3, 2, 4])
    ",
    // The result is contiguous, as in NumPy: elements with a constant stride are copied, although a view could show them.
    cpu: Cpu::View(|context| {
        Ok(match context.str("order") == "F" {
            false if context.layout.is_contiguous() => Viewed::Shared(context.layout.as_row()),
            true if context.layout.is_fortran() => {
                Viewed::Shared(context.layout.transpose(None)?.as_row())
            }
            _ => Viewed::Computed(&FLATTEN),
        })
    }),
    full_signature: Some(&RAVEL_AS_IT_LIES),
    grad: Grad::Rule(Keep::NOTHING, |g| g.one(reshaped_as_input(g)?)),
    sparse: Sparse::KeepsZero,
    probe: Probe::calls(&["f((2, 3))", "f((2, 3)), 'F'", "f(())", "f((4, 4))[:, ::2]"]),
    ..OpDef::VIEW
};

/// The gradient of flattening: the cotangent in the shape of the input.
fn reshaped_as_input(g: &GradContext) -> Result<Array> {
    let attrs: Attrs = [Value::from(g.shape(0)), g.get("order").clone()]
        .into_iter()
        .collect();
    invoke1(&RESHAPE, &[g.dy(0)], &attrs)
}

/// `ravel` with any order.
pub static RAVEL_AS_IT_LIES: OpDef = OpDef {
    name: "ravel_as_it_lies",
    params: &[
        Param::array("a"),
        Param::choice("order", &["C", "F", "A", "K"], "C"),
    ],
    doc: "As `ravel`, also in orders that depend on the memory layout ('A', 'K').",
    cpu: Cpu::Composite(|context| {
        let x = context.input(0);
        let x = match axes_in_order(context.str("order"), x.layout()) {
            Some(axes) => {
                let order: SmallVec<[i64; 4]> = axes.iter().map(|&axis| axis as i64).collect();
                x.transpose(Some(&order))?
            }
            None => x.clone(),
        };
        context.done(x.contiguous()?.reshape(&[x.len()])?)
    }),
    probe: Probe::calls(&["f((2, 3))", "f((2, 3)), 'F'"]).against("numpy.ravel"),
    ..OpDef::COMPOSITE
};

/// Flattened to one axis, copied.
pub static FLATTEN: OpDef = OpDef {
    name: "flatten",
    surface: &[Surface::Method("flatten")],
    params: RAVEL.params,
    doc: "The elements flattened to one axis, copied.",
    returns: &[("ndarray", "One axis.")],
    example: "
        >>> np.array([[1, 2], [3, 4]]).flatten()
        array([1, 2, 3, 4])
    ",
    types: Types::First,
    infer: |context| one([context.input(0).len()].as_slice()),
    cpu: Cpu::Kernel(|context| {
        let (x, out) = (context.input(0), context.output(0));
        let layout = match context.str("order") {
            "F" => Layout::fortran(x.shape()),
            _ => Layout::contiguous(x.shape()),
        };
        crate::cpu::copy(x, &out.with_layout(layout), context.threads)
    }),
    full_signature: Some(&FLATTEN_AS_IT_LIES),
    grad: Grad::Rule(Keep::NOTHING, |g| g.one(reshaped_as_input(g)?)),
    sparse: Sparse::KeepsZero,
    cost: Cost::PerKiB(60),
    probe: Probe::calls(&["f((2, 3))", "f((2, 3)), 'F'", "f((4, 4))[:, ::2]"])
        .against("np.ndarray.flatten"),
    ..OpDef::DEFAULT
};

/// `flatten` with any order.
pub static FLATTEN_AS_IT_LIES: OpDef = OpDef {
    name: "flatten_as_it_lies",
    params: RAVEL_AS_IT_LIES.params,
    doc: "As `flatten`, also in orders that depend on the memory layout ('A', 'K').",
    cpu: Cpu::Composite(|context| {
        let flat = invoke1(&RAVEL_AS_IT_LIES, &[context.input(0)], context.attrs)?;
        context.done(flat.copy()?)
    }),
    probe: Probe::calls(&["f((2, 3))", "f((2, 3)), 'F'"]).against("numpy.ndarray.flatten"),
    ..OpDef::COMPOSITE
};

/// View with at least 1 axis.
pub static ATLEAST_1D: OpDef = OpDef {
    name: "atleast_1d",
    params: &[Param::array("ary")],
    doc: "The array with at least 1 axis: new axes have length 1.",
    cpu: Cpu::Composite(|context| context.done(at_least_1(context.input(0))?)),
    probe: Probe::calls(&["f(())", "f((3,))", "f((2, 3))", "f((2, 3, 4))"]),
    ..OpDef::COMPOSITE
};

pub(super) fn at_least_1(x: &Array) -> Result<Array> {
    Ok(if x.ndim() == 0 {
        x.reshape(&[1])?
    } else {
        x.clone()
    })
}

/// View with at least 2 axes.
pub static ATLEAST_2D: OpDef = OpDef {
    name: "atleast_2d",
    params: &[Param::array("ary")],
    doc: "The array with at least 2 axes: new axes have length 1.",
    cpu: Cpu::Composite(|context| context.done(at_least_2(context.input(0))?)),
    probe: Probe::calls(&["f(())", "f((3,))", "f((2, 3))", "f((2, 3, 4))"]),
    ..OpDef::COMPOSITE
};

pub(super) fn at_least_2(x: &Array) -> Result<Array> {
    Ok(match x.ndim() {
        0 => x.reshape(&[1, 1])?,
        1 => x.reshape(&[1, x.len()])?,
        _ => x.clone(),
    })
}

/// View with at least 3 axes.
pub static ATLEAST_3D: OpDef = OpDef {
    name: "atleast_3d",
    params: &[Param::array("ary")],
    doc: "The array with at least 3 axes: new axes have length 1.",
    cpu: Cpu::Composite(|context| context.done(at_least_3(context.input(0))?)),
    probe: Probe::calls(&["f(())", "f((3,))", "f((2, 3))", "f((2, 3, 4))"]),
    ..OpDef::COMPOSITE
};

pub(super) fn at_least_3(x: &Array) -> Result<Array> {
    Ok(match *x.shape() {
        [] => x.reshape(&[1, 1, 1])?,
        [n] => x.reshape(&[1, n, 1])?,
        [m, n] => x.reshape(&[m, n, 1])?,
        _ => x.clone(),
    })
}

/// The elements in reverse order along these axes.
///
/// # Errors
/// [`crate::Error::Axis`] if an axis does not exist or repeats.
pub fn flip(x: &Array, axes: &[i64]) -> Result<Array> {
    invoke1(&FLIP, &[x], &[Value::from(axes)].into_iter().collect())
}

/// View with the axis at `source` moved to `destination`; negative positions count from the end.
///
/// # Errors
/// [`crate::Error::Axis`] if there is no such axis.
pub fn moveaxis(x: &Array, source: i64, destination: i64) -> Result<Array> {
    let attrs: Attrs = [Value::Int(source), Value::Int(destination)]
        .into_iter()
        .collect();
    invoke1(&MOVEAXIS, &[x], &attrs)
}
