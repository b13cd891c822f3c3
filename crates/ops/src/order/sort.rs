//! Sorting and selecting along any axis.

use mxnet_tensor::{DType, normalize_axis};

use super::rows::{
    ARGPARTITION_ROWS, PARTITION_ROWS, SORT_ROWS, TOPK_MASK, TOPK_ROWS, argsort_rows, at_positions,
};
use crate::args::{Param, ParamKind, Value};
use crate::context::CompositeContext;
use crate::error::Result;
use crate::invoke::invoke1;
use crate::opdef::{Cpu, OpDef, Probe, Surface};
use crate::{Array, Outputs};

/// NumPy's sorting algorithms. They may be abbreviated to their first letters.
const KINDS: &[&str] = &["quicksort", "heapsort", "mergesort", "stable"];

/// Parameters of `sort` and `argsort`. `order` names fields of NumPy's structured arrays, so it must be None here.
const SORTING: &[Param] = &[
    Param::array("a"),
    LAST_AXIS,
    Param::optional("kind", ParamKind::Str),
    Param::optional("order", ParamKind::Str),
    Param::optional("stable", ParamKind::Bool).keyword(),
    Param::bool("descending", false).keyword(),
];

/// `axis=-1`, `None` for the flattened array.
const LAST_AXIS: Param = Param::int("axis", -1).or_none();

/// NumPy's `sort`.
pub static SORT: OpDef = OpDef {
    name: "sort",
    surface: &[Surface::Np("sort")],
    params: SORTING,
    doc: "The elements sorted along `axis` (the flattened array for None), NaN last. `kind` and `stable` have no effect: every sort is stable.",
    about: &[
        (
            "kind",
            "Accepted for compatibility with NumPy; every sort is stable.",
        ),
        (
            "stable",
            "Accepted for compatibility with NumPy; every sort is stable.",
        ),
        ("descending", "Whether the largest come first."),
        ("order", "Must be None: there are no fields."),
    ],
    returns: &[("ndarray", "Of the shape and dtype of `a`.")],
    raises: &[("ValueError", "If `order` is given, or `kind` is unknown.")],
    example: "
        >>> np.sort([3, 1, 2])
        array([1, 2, 3])
        >>> np.sort([[3, 1], [2, 5]], axis=0)
        array([[2, 1],
               [3, 5]])
    ",
    cpu: Cpu::Composite(|context| {
        no_fields(context)?;
        known_kind(context)?;
        in_input_order(context, |x| {
            invoke1(
                &SORT_ROWS,
                &[x],
                &[context.get("descending").clone()].into_iter().collect(),
            )
        })
    }),
    probe: Probe::calls(&[
        "f((3, 4))",
        "f((3, 4)), 0",
        "f((3, 4)), None",
        "i((2, 5, 2), 4), 1",
        "f((0, 3)), 0",
        "b((7,))",
        "f(()), None",
    ]),
    ..OpDef::COMPOSITE
};

/// NumPy's `argsort`.
pub static ARGSORT: OpDef = OpDef {
    name: "argsort",
    surface: &[Surface::Np("argsort"), Surface::Method("argsort")],
    params: SORTING,
    doc: "The int64 positions that sort the array along `axis` (the flattened array for None), NaN last. The sort is stable; `kind` and `stable` have no effect.",
    about: &[
        (
            "kind",
            "Accepted for compatibility with NumPy; every sort is stable.",
        ),
        (
            "stable",
            "Accepted for compatibility with NumPy; every sort is stable.",
        ),
        ("descending", "Whether the largest come first."),
        ("order", "Must be None: there are no fields."),
    ],
    returns: &[("ndarray", "int64, of the shape of `a`.")],
    raises: &[("ValueError", "If `order` is given, or `kind` is unknown.")],
    example: "
        >>> np.argsort([30, 10, 20])
        array([1, 2, 0])
    ",
    cpu: Cpu::Composite(|context| {
        no_fields(context)?;
        known_kind(context)?;
        positions_along(context, |x| argsort_rows(x, context.bool("descending")))
    }),
    probe: Probe::calls(&[
        "f((3, 4))",
        "f((3, 4)), 0",
        "f((3, 4)), None",
        "f((0, 3)), 0",
        "f(()), None",
    ])
    .against("lambda a, axis=-1: numpy.argsort(a, axis, kind='stable')"),
    ..OpDef::COMPOSITE
};

const SELECTING: &[Param] = &[
    Param::array("a"),
    Param::required("kth", ParamKind::Ints),
    LAST_AXIS,
    Param::choice("kind", &["introselect"], "introselect"),
    Param::optional("order", ParamKind::Str),
];

/// NumPy's `partition`.
pub static PARTITION: OpDef = OpDef {
    name: "partition",
    surface: &[Surface::Np("partition")],
    params: SELECTING,
    doc: "The elements partitioned along `axis`: those at positions `kth` are where sorting would put them, no element before them is larger, and none after them is smaller.",
    about: &[
        ("kth", "Positions, one or several."),
        ("kind", "Accepted for compatibility with NumPy."),
        ("order", "Must be None: there are no fields."),
    ],
    returns: &[("ndarray", "Of the shape and dtype of `a`.")],
    raises: &[(
        "ValueError",
        "If a position in `kth` is out of bounds, or `order` is given.",
    )],
    example: "
        >>> np.partition([7, 1, 5, 3], 1)[:2]
        array([1, 3])
    ",
    cpu: Cpu::Composite(|context| {
        no_fields(context)?;
        in_input_order(context, |x| match kth(context, x)? {
            Some(kth) => invoke1(
                &PARTITION_ROWS,
                &[x],
                &[Value::Int(kth)].into_iter().collect(),
            ),
            None => invoke1(
                &SORT_ROWS,
                &[x],
                &[Value::Bool(false)].into_iter().collect(),
            ),
        })
    }),
    probe: Probe::calls(&[
        "f((3, 2)), 1",
        "f((2, 3)), 0, 0",
        "f((5,)), (0, 1, 2, 3, 4)",
    ])
    .against("lambda a, kth, axis=-1: numpy.sort(a, axis)"),
    ..OpDef::COMPOSITE
};

/// NumPy's `argpartition`.
pub static ARGPARTITION: OpDef = OpDef {
    name: "argpartition",
    surface: &[Surface::Np("argpartition"), Surface::Method("argpartition")],
    params: SELECTING,
    doc: "The int64 positions of the elements that `partition` returns.",
    about: &[
        ("kth", "Positions, one or several."),
        ("kind", "Accepted for compatibility with NumPy."),
        ("order", "Must be None: there are no fields."),
    ],
    returns: &[("ndarray", "int64, of the shape of `a`.")],
    raises: &[(
        "ValueError",
        "If a position in `kth` is out of bounds, or `order` is given.",
    )],
    example: "
        >>> np.argpartition([7, 1, 5, 3], 1)[:2]
        array([1, 3])
    ",
    cpu: Cpu::Composite(|context| {
        no_fields(context)?;
        positions_along(context, |x| match kth(context, x)? {
            Some(kth) => invoke1(
                &ARGPARTITION_ROWS,
                &[x],
                &[Value::Int(kth)].into_iter().collect(),
            ),
            None => argsort_rows(x, false),
        })
    }),
    probe: Probe::calls(&[
        "f((3, 2)), 1",
        "f((2, 3)), 0, 0",
        "f((5,)), (0, 1, 2, 3, 4)",
    ])
    .against("lambda a, kth, axis=-1: numpy.argsort(a, axis)"),
    ..OpDef::COMPOSITE
};

/// The largest or smallest elements.
pub static TOPK: OpDef = OpDef {
    name: "topk",
    surface: &[Surface::Npx("topk")],
    params: &[
        Param::array("data"),
        LAST_AXIS,
        Param::int("k", 1),
        Param::choice("ret_typ", &["indices", "value", "both", "mask"], "indices"),
        Param::bool("is_ascend", false),
        Param {
            default: crate::args::Default::Str("float32"),
            ..Param::required("dtype", ParamKind::DType)
        },
    ],
    doc: "The `k` largest elements along `axis` (the flattened array for None), in descending order; with `is_ascend` the smallest, in ascending \
          order. All of them, sorted, for k < 1.\n\n`ret_typ` says what is returned: their `indices` in `dtype`, their `value`, `both` (values, \
          indices), or a `mask` of the array's shape and dtype with ones at their positions. NaN counts as the largest value, equal elements come in \
          the order of their indices.",
    about: &[
        ("k", "How many."),
        ("ret_typ", "What is returned."),
        ("is_ascend", "Whether the smallest are taken."),
        ("dtype", "Type of the indices."),
    ],
    returns: &[
        ("ndarray", "Of the shape of `data`, with length `k` along the axis; a tuple for 'both'."),
    ],
    raises: &[
        ("ValueError", "If `k` exceeds the length of the axis."),
    ],
    example: "
        >>> npx.topk(np.array([3.0, 9.0, 5.0]), k=2)
        array([1., 2.])
        >>> npx.topk(np.array([3.0, 9.0, 5.0]), k=2, ret_typ='value')
        array([9., 5.])
    ",
    cpu: Cpu::Composite(|context| {
        let (rows, back) = rows_of(context)?;
        let n = rows.shape()[rows.ndim() - 1];
        let k = match context.int("k") {
            k if k < 1 => n as i64,
            k => k,
        };
        let attrs = [Value::Int(k), Value::Bool(!context.bool("is_ascend"))]
            .into_iter()
            .collect();
        if context.str("ret_typ") == "mask" {
            let mask = invoke1(&TOPK_MASK, &[&rows], &attrs)?.astype(rows.dtype())?;
            return context.done(back.apply(mask, context.input(0).shape())?);
        }
        let at = invoke1(&TOPK_ROWS, &[&rows], &attrs)?;
        let mut outputs = Outputs::new();
        if context.str("ret_typ") != "indices" {
            outputs.push(back.moved(at_positions(&rows, &at)?)?);
        }
        if context.str("ret_typ") != "value" {
            let dtype = context.dtype("dtype").unwrap_or(DType::F32);
            outputs.push(back.moved(at.astype(dtype)?)?);
        }
        Ok(outputs)
    }),
    probe: Probe::calls(&[
        "f((3, 4))",
        "f((3, 4)), 0, 2, 'value'",
        "f((3, 4)), 1, 2, 'both', True",
        "f((3, 4)), -1, 2, 'mask'",
        "f((3, 4)), None, 3, 'indices', False, 'int64'",
    ])
    .against(
        "lambda a, axis=-1, k=1, ret='indices', ascend=False, dtype='float32': (lambda x, ax: (lambda at: {'indices': at.astype(dtype), 'value': numpy.take_along_axis(x, at, ax), 'both': (numpy.take_along_axis(x, at, ax), at.astype(dtype)), 'mask': (numpy.argsort(numpy.argsort(-x, ax), ax) < k).astype(x.dtype).reshape(a.shape)}[ret])(numpy.take(numpy.argsort(x if ascend else -x, ax, kind='stable'), range(k), ax)))(a.ravel() if axis is None else a, 0 if axis is None else axis)",
    ),
    ..OpDef::COMPOSITE
};

/// The positions that sort `x` along its last axis.
///
/// # Errors
/// [`crate::Error::Memory`].
pub fn argsort(x: &Array) -> Result<Array> {
    argsort_rows(x, false)
}

/// An error if `order` is given: there are no structured arrays.
fn no_fields(context: &CompositeContext) -> Result<()> {
    if context.is_none("order") {
        Ok(())
    } else {
        Err(context.value_error(format!(
            "cannot order by field '{}': arrays of numbers have no fields",
            context.str("order")
        )))
    }
}

/// An error for unknown algorithms, and if both `kind` and `stable` are given.
fn known_kind(context: &CompositeContext) -> Result<()> {
    if context.is_none("kind") {
        return Ok(());
    }
    if !context.is_none("stable") {
        return Err(context.value_error(
            "`kind` and keyword parameters can't be provided at the same time. Use only one of them",
        ));
    }
    let kind = context.str("kind").to_ascii_lowercase();
    if kind.starts_with(['q', 'h', 'm', 's']) {
        return Ok(());
    }
    let known = KINDS.join(", ");
    Err(context.value_error(format!(
        "argument `kind` must be one of {known}, not '{kind}'"
    )))
}

/// The position of a selection of a single element, counted from the start; `None` for several, for which the rows are sorted.
fn kth(context: &CompositeContext, rows: &Array) -> Result<Option<i64>> {
    let n = rows.shape()[rows.ndim() - 1] as i64;
    let mut single = None;
    for &kth in context.ints("kth") {
        if !(-n..n).contains(&kth) && !rows.is_empty() {
            return Err(context.value_error(format!("kth(={kth}) out of bounds ({n})")));
        }
        single = Some(if kth < 0 { kth + n } else { kth });
    }
    Ok(single.filter(|_| context.ints("kth").len() == 1))
}

/// Moves rows back to the array's axis.
struct RowsAxis {
    /// The axis of the rows and the number of axes; `None` for the flattened array.
    axis: Option<(usize, usize)>,
}

impl RowsAxis {
    /// Moves the last axis back, in C order.
    fn moved(&self, x: Array) -> Result<Array> {
        match self.axis {
            Some((axis, ndim)) if axis + 1 < ndim => {
                let mut axes: Vec<i64> = (0..ndim as i64 - 1).collect();
                axes.insert(axis, ndim as i64 - 1);
                x.transpose(Some(&axes))?.contiguous()
            }
            _ => Ok(x),
        }
    }

    /// As [`RowsAxis::moved`], for a result with the array's number of elements: flattened ones get `shape` back.
    fn apply(&self, x: Array, shape: &[usize]) -> Result<Array> {
        match self.axis {
            Some(_) => self.moved(x),
            None => x.reshape(shape),
        }
    }
}

/// The array of the call with its axis moved to the end.
fn rows_of(context: &CompositeContext) -> Result<(Array, RowsAxis)> {
    let x = context.input(0);
    if context.is_none("axis") {
        return Ok((x.reshape(&[x.len()])?, RowsAxis { axis: None }));
    }
    rows_along(x, context.axis("axis", 0)?)
}

/// The array with `axis` moved to the end.
fn rows_along(x: &Array, axis: usize) -> Result<(Array, RowsAxis)> {
    let ndim = x.ndim();
    let back = RowsAxis {
        axis: Some((axis, ndim)),
    };
    if axis + 1 == ndim {
        return Ok((x.clone(), back));
    }
    let axes: Vec<i64> = (0..ndim)
        .filter(|&i| i != axis)
        .chain([axis])
        .map(|i| i as i64)
        .collect();
    Ok((x.transpose(Some(&axes))?, back))
}

/// A result that reorders the elements along the axis, in the memory order (C or Fortran) of the array.
fn in_input_order(
    context: &CompositeContext,
    compute: impl FnOnce(&Array) -> Result<Array>,
) -> Result<Outputs> {
    let x = context.input(0);
    if context.is_none("axis") || !x.layout().is_fortran() || x.layout().is_contiguous() {
        return along_rows(context, compute);
    }
    // The transpose is in C order; there the axis counts from the other end.
    let axis = x.ndim() - 1 - context.axis("axis", 0)?;
    let (rows, back) = rows_along(&x.transpose(None)?, axis)?;
    context.done(back.moved(compute(&rows)?)?.transpose(None)?)
}

/// A result that holds positions in the rows, in C order.
fn positions_along(
    context: &CompositeContext,
    compute: impl FnOnce(&Array) -> Result<Array>,
) -> Result<Outputs> {
    if context.input(0).ndim() == 0 {
        // As in NumPy, a 0-d array is a row of one element.
        if !context.is_none("axis") {
            normalize_axis(context.int("axis") as isize, 1)?;
        }
        return context.done(compute(&context.input(0).reshape(&[1])?)?);
    }
    along_rows(context, compute)
}

fn along_rows(
    context: &CompositeContext,
    compute: impl FnOnce(&Array) -> Result<Array>,
) -> Result<Outputs> {
    let (rows, back) = rows_of(context)?;
    context.done(back.moved(compute(&rows)?)?)
}
