//! Sequences of different lengths in one array: one axis holds the steps, another the sequences.

use mxnet_tensor::{DType, Dims, Scalar};

use crate::Array;
use crate::args::{Attrs, Default, Param, ParamKind};
use crate::context::CallContext;
use crate::creation::arange_on;
use crate::elementwise::comparison::LESS;
use crate::elementwise::select::WHERE;
use crate::error::Result;
use crate::index::take_along_axis;
use crate::invoke::invoke1;
use crate::opdef::{Cpu, OpDef, Probe, Surface};
use crate::shape::{flip, narrow};

/// Default fields for these operators.
const SEQUENCES: OpDef = OpDef {
    about: &[
        ("data", "Of shape (t, n, ...) or, for axis 1, (n, t, ...)."),
        ("sequence_length", "Length of each sequence, of shape (n,)."),
        (
            "use_sequence_length",
            "Whether sequences end at `sequence_length`; otherwise all have the full length.",
        ),
        ("value", "The values to write."),
        ("axis", "The axis of the steps, 0 or 1."),
    ],
    raises: &[(
        "ValueError",
        "If the shapes do not fit, or lengths are missing.",
    )],
    ..OpDef::COMPOSITE
};

const DATA: Param = Param::array("data");
const LENGTHS: Param = Param::optional_array("sequence_length");
const USES: Param = Param::bool("use_sequence_length", false);
const AXIS: Param = Param::int("axis", 0);

/// Overwrites the steps after each sequence's end.
pub static SEQUENCE_MASK: OpDef = OpDef {
    name: "sequence_mask",
    surface: &[Surface::Npx("sequence_mask")],
    params: &[
        DATA,
        LENGTHS,
        USES,
        Param::required("value", ParamKind::Scalar).or(Default::Int(0)),
        AXIS,
    ],
    doc: "Overwrites the steps after the end of each sequence.",
    returns: &[("ndarray", "Shape and dtype of `data`.")],
    example: "
        >>> npx.sequence_mask(np.ones((3, 2)), np.array([1, 2]), True)
        array([[1., 1.],
               [0., 1.],
               [0., 0.]])
    ",
    cpu: Cpu::Composite(|context| {
        let (x, axis) = (context.input(0), axis(context)?);
        let Some(lengths) = lengths(context, axis)? else {
            return context.done(x.clone());
        };
        let (steps, ends) = steps(x, &lengths, axis)?;
        let value = Array::weak_scalar(context.scalar("value").unwrap_or(Scalar::I64(0)))?;
        let counts = steps.binary(&LESS, &ends)?;
        context.done(invoke1(&WHERE, &[&counts, x, &value], &Attrs::none())?)
    }),
    probe: Probe::calls(&[
        "f((3, 2)), i((2,), 4), True",
        "f((2, 3, 4)), i((2,), 4), True, 7.5, 1",
        "f((3, 2))",
    ]),
    positions: &[1],
    ..SEQUENCES
};

/// The last step of each sequence.
pub static SEQUENCE_LAST: OpDef = OpDef {
    name: "sequence_last",
    surface: &[Surface::Npx("sequence_last")],
    params: &[DATA, LENGTHS, USES, AXIS],
    doc: "The last step of each sequence.",
    returns: &[("ndarray", "Of shape (n, ...).")],
    example: "
        >>> steps = np.array([[1, 2], [3, 4], [5, 6]])  # three steps of two sequences
        >>> npx.sequence_last(steps, np.array([2, 3]), use_sequence_length=True)
        array([3, 6])
    ",
    cpu: Cpu::Composite(|context| {
        let (x, axis) = (context.input(0), axis(context)?);
        let rest: Dims = (0..x.ndim())
            .filter(|&i| i != axis)
            .map(|i| x.shape()[i])
            .collect();
        let last = match lengths(context, axis)? {
            None => {
                let n = x.shape()[axis];
                if n == 0 {
                    return Err(context.shape_error("the sequences have no steps"));
                }
                narrow(x, axis, n - 1, n)?
            }
            Some(lengths) => {
                let at = spread(&decremented(&lengths)?, 1 - axis, x.ndim())?;
                take_along_axis(x, &at, axis, "raise")?
            }
        };
        context.done(last.reshape(&rest)?)
    }),
    probe: Probe::calls(&[
        "f((3, 2)), i((2,), 3) + 1, True",
        "f((2, 3, 4)), i((2,), 3) + 1, True, 1",
        "f((3, 2))",
    ]),
    positions: &[1],
    ..SEQUENCES
};

/// The steps of each sequence in reverse order.
pub static SEQUENCE_REVERSE: OpDef = OpDef {
    name: "sequence_reverse",
    surface: &[Surface::Npx("sequence_reverse")],
    params: &[DATA, LENGTHS, USES, AXIS],
    doc: "Reverses each sequence within its length; later steps are unchanged. As in MXNet, `axis` must be 0.",
    returns: &[("ndarray", "Shape and dtype of `data`.")],
    example: "
        >>> steps = np.array([[1, 2], [3, 4], [5, 6]])  # three steps of two sequences
        >>> npx.sequence_reverse(steps, np.array([2, 3]), use_sequence_length=True)
        array([[3, 6],
               [1, 4],
               [5, 2]])
    ",
    cpu: Cpu::Composite(|context| {
        let x = context.input(0);
        if context.int("axis") != 0 {
            return Err(
                context.value_error(format!("`axis` must be 0, found {}", context.int("axis")))
            );
        }
        let Some(lengths) = lengths(context, 0)? else {
            return context.done(flip(x, &[0])?);
        };
        let (steps, ends) = steps(x, &lengths, 0)?;
        let counts = steps.binary(&LESS, &ends)?;
        let reversed_steps = decremented(&ends)?.sub(&steps)?;
        let at = invoke1(&WHERE, &[&counts, &reversed_steps, &steps], &Attrs::none())?;
        context.done(take_along_axis(x, &at, 0, "raise")?)
    }),
    probe: Probe::calls(&["f((3, 2)), i((2,), 4), True", "f((3, 2, 2))"]),
    positions: &[1],
    ..SEQUENCES
};

/// The axis of the steps.
fn axis(context: &CallContext) -> Result<usize> {
    match context.int("axis") {
        axis @ (0 | 1) => Ok(axis as usize),
        other => Err(context.value_error(format!("`axis` must be 0 or 1, found {other}"))),
    }
}

/// The lengths as int64; `None` unless `use_sequence_length` is set.
fn lengths(context: &CallContext, axis: usize) -> Result<Option<Array>> {
    let x = context.input(0);
    if x.ndim() < 2 {
        return Err(context.shape_error("`data` must have at least two axes"));
    }
    if !context.bool("use_sequence_length") {
        return Ok(None);
    }
    let Some(lengths) = context.opt(1) else {
        return Err(context.value_error("`use_sequence_length` needs `sequence_length`"));
    };
    let wanted = x.shape()[1 - axis];
    if lengths.shape() != [wanted] {
        return Err(context.shape_error(format!("`sequence_length` must have shape ({wanted},)")));
    }
    lengths.astype(DType::I64).map(Some)
}

/// A view of the 1-d array `x` that broadcasts along `axis` of an array with `ndim` axes.
fn spread(x: &Array, axis: usize, ndim: usize) -> Result<Array> {
    let mut shape = Dims::from_elem(1, ndim);
    shape[axis] = x.len();
    x.reshape(&shape)
}

/// Numbers of steps and lengths, in shapes that broadcast against `x`.
fn steps(x: &Array, lengths: &Array, axis: usize) -> Result<(Array, Array)> {
    let steps = arange_on(x.shape()[axis], DType::I64, x.device())?;
    Ok((
        spread(&steps, axis, x.ndim())?,
        spread(lengths, 1 - axis, x.ndim())?,
    ))
}

/// One less than each element.
fn decremented(x: &Array) -> Result<Array> {
    x.sub(&Array::weak_scalar(Scalar::I64(1))?)
}
