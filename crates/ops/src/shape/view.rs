//! Views of another shape: `reshape`, `ravel`, `broadcast_to`.

use std::sync::Arc;

use mxnet_tensor::reshape_dims;
use smallvec::SmallVec;

use crate::args::{Attrs, Param, ParamKind, Value};
use crate::error::Tuple;
use crate::invoke::invoke1;
use crate::opdef::{Cpu, Grad, Keep, OpDef, Probe, Sparse, Surface, Viewed};

/// Another shape, the same elements in C order.
pub static RESHAPE: OpDef = OpDef {
    name: "reshape",
    surface: &[
        Surface::Np("reshape"),
        Surface::Method("reshape"),
        Surface::Method("reshape_view"),
    ],
    params: &[
        Param::array("a"),
        Param::required("shape", ParamKind::Ints)
            .variadic()
            .or_none(),
        Param::choice("order", &["C", "F"], "C"),
    ],
    doc: "The elements, read and written in C order (`order='F'`: first axis fastest), with another shape: a view where the strides allow it, else a \
          copy. One size may be -1.",
    about: &[
        (
            "shape",
            "Lengths of the axes, of which one may be -1; those of `a` for None.",
        ),
        (
            "copy",
            "Whether to copy always (True), never (False), or only if needed (None).",
        ),
    ],
    returns: &[("ndarray", "View where possible.")],
    raises: &[("ValueError", "If the number of elements differs.")],
    example: "
        >>> np.reshape([1, 2, 3, 4, 5, 6], (2, 3))
        array([[1, 2, 3],
               [4, 5, 6]])
        >>> np.reshape([1, 2, 3, 4, 5, 6], (3, -1), order='F')
        array([[1, 4],
               [2, 5],
               [3, 6]])
    ",
    cpu: Cpu::View(|context| {
        let Some(shape) = context.opt_ints("shape") else {
            return Ok(Viewed::Shared(context.layout.clone()));
        };
        let shape: SmallVec<[isize; 4]> = shape.iter().map(|&d| d as isize).collect();
        let fortran = context.str("order") == "F";
        let found = if fortran {
            context.layout.reshape_fortran(&shape)?
        } else {
            context.layout.reshape(&shape)?
        };
        Ok(match found {
            Some(layout) => Viewed::Shared(layout),
            None if fortran => Viewed::CopiedFortran(reshape_dims(context.layout.len(), &shape)?),
            None => Viewed::Copied(reshape_dims(context.layout.len(), &shape)?),
        })
    }),
    full_signature: Some(&RESHAPE_COPYING),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        let attrs: Attrs = [Value::from(g.shape(0)), g.get("order").clone()]
            .into_iter()
            .collect();
        g.one(invoke1(&RESHAPE, &[g.dy(0)], &attrs)?)
    }),
    sparse: Sparse::KeepsZero,
    probe: Probe::calls(&[
        "f((2, 3)), (3, 2)",
        "f((2, 3)).T, (-1,)",
        "f((0, 3)), (3, 0)",
        "f(()), (1, 1)",
    ]),
    ..OpDef::VIEW
};

/// `reshape` with the argument `copy`.
pub static RESHAPE_COPYING: OpDef = OpDef {
    name: "reshape_copying",
    params: &[
        Param::array("a"),
        Param::required("shape", ParamKind::Ints)
            .variadic()
            .or_none(),
        Param::choice("order", &["C", "F", "A"], "C"),
        Param::optional("copy", ParamKind::Bool).keyword(),
    ],
    doc: "`copy=True` always copies, `copy=False` never does and is an error where it would be needed. `order='A'` is 'F' for an array in Fortran order, \
          else 'C'.",
    cpu: Cpu::Composite(|context| {
        let x = context.input(0);
        let fortran = match context.str("order") {
            "A" => x.layout().is_fortran() && !x.layout().is_contiguous(),
            order => order == "F",
        };
        let attrs: Attrs = [
            context.opt_ints("shape").map_or(Value::None, Value::from),
            Value::Word(if fortran { "F" } else { "C" }),
        ]
        .into_iter()
        .collect();
        let y = invoke1(&RESHAPE, &[x], &attrs)?;
        let is_shared = Arc::ptr_eq(x.tensor().storage(), y.tensor().storage());
        match (context.is_none("copy"), context.bool("copy")) {
            (false, true) if is_shared => context.done(y.copy_in("K")?),
            (false, false) if !is_shared => Err(context.value_error(format!(
                "Unable to avoid creating a copy while reshaping. The strides of shape {} do not allow shape {}",
                Tuple(x.shape()),
                Tuple(y.shape())
            ))),
            _ => context.done(y),
        }
    }),
    probe: Probe::calls(&[
        "f((2, 3)), (3, 2), copy=True",
        "f((2, 3)), (3, 2), order='F', copy=True",
        "f((0, 3)), (3, 0), copy=False",
    ])
    .against("np.reshape"),
    ..OpDef::COMPOSITE
};

/// Axes in another order.
pub static TRANSPOSE: OpDef = OpDef {
    name: "transpose",
    surface: &[
        Surface::Np("transpose"),
        Surface::Np("permute_dims"),
        Surface::Method("transpose"),
    ],
    params: &[Param::array("a"), Param::axes("axes").variadic()],
    doc: "View with the axes in the order `axes`; reversed if it is None.",
    about: &[("axes", "The axes in their new order; reversed for None.")],
    returns: &[("ndarray", "View with the axes in the new order.")],
    example: "
        >>> np.transpose([[1, 2, 3], [4, 5, 6]])
        array([[1, 4],
               [2, 5],
               [3, 6]])
        >>> np.transpose(np.zeros((2, 3, 4)), (1, 0, 2)).shape
        (3, 2, 4)
    ",
    cpu: Cpu::View(|context| {
        let axes: Option<SmallVec<[isize; 4]>> = context
            .opt_ints("axes")
            .map(|axes| axes.iter().map(|&a| a as isize).collect());
        Ok(Viewed::Shared(context.layout.transpose(axes.as_deref())?))
    }),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        let ndim = g.shape(0).len() as i64;
        let inverse: Option<SmallVec<[i64; 4]>> = g.opt_ints("axes").map(|axes| {
            let mut inverse = SmallVec::from_elem(0, axes.len());
            for (to, &from) in axes.iter().enumerate() {
                inverse[(if from < 0 { from + ndim } else { from }) as usize] = to as i64;
            }
            inverse
        });
        g.one(g.dy(0).transpose(inverse.as_deref())?)
    }),
    sparse: Sparse::KeepsZero,
    probe: Probe::calls(&[
        "f((2, 3))",
        "f((2, 3, 4)), (1, 2, 0)",
        "f((2, 3, 4)), (-1, 0, 1)",
        "f(())",
    ]),
    ..OpDef::VIEW
};

/// Broadcasts along new axes and axes of length 1.
pub static BROADCAST_TO: OpDef = OpDef {
    name: "broadcast_to",
    surface: &[Surface::Np("broadcast_to"), Surface::Method("broadcast_to")],
    params: &[
        Param::array("array"),
        Param::required("shape", ParamKind::Ints),
    ],
    doc: "View that repeats the elements along axes of length 1 and new leading axes. Every copy is the same memory, so it cannot be written to.",
    about: &[("array", "The array."), ("shape", "Lengths of the axes.")],
    returns: &[("ndarray", "View that cannot be written to.")],
    raises: &[(
        "ValueError",
        "If the array does not broadcast to the shape.",
    )],
    example: "
        >>> np.broadcast_to([1, 2], (2, 2))
        array([[1, 2],
               [1, 2]])
    ",
    cpu: Cpu::View(|context| {
        let shape = crate::creation::dims(context.op.name, context.ints("shape"))?;
        Ok(Viewed::Locked(context.layout.broadcast_to(&shape)?))
    }),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        g.one(crate::sum_to(g.dy(0), g.shape(0))?)
    }),
    probe: Probe::calls(&["f((3, 1)), (2, 3, 4)", "f(()), (2,)", "f((1, 0)), (5, 0)"]),
    ..OpDef::VIEW
};
