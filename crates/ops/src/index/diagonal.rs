//! Diagonals and triangles.

use mxnet_tensor::{Casting, DType, IndexItem, Layout, Scalar};
use smallvec::SmallVec;

use crate::Array;
use crate::args::{Attrs, Param, ParamKind, Value};
use crate::autograd::GradContext;
use crate::batching::Batch;
use crate::context::{CallContext, CompositeContext, ViewContext};
use crate::creation::dims;
use crate::elementwise::comparison::GREATER_EQUAL;
use crate::elementwise::select::choose;
use crate::error::Result;
use crate::invoke::invoke1;
use crate::opdef::{Cpu, Form, Grad, Grads, Keep, OpDef, Probe, Surface, Viewed, one};
use crate::types::Types;
use crate::{Outputs, cpu, reduce, sum_to};

/// A diagonal as a view.
pub static DIAGONAL: OpDef = OpDef {
    name: "diagonal",
    surface: &[Surface::Np("diagonal"), Surface::Method("diagonal")],
    params: &[
        Param::array("a"),
        Param::int("offset", 0),
        Param::int("axis1", 0),
        Param::int("axis2", 1),
    ],
    doc: "View of the diagonal of the matrices that `axis1` and `axis2` span, `offset` columns to the right of the main one. It becomes the last \
          axis. It is read-only.",
    about: &[(
        "offset",
        "Columns to the right of the main diagonal, to the left if negative.",
    )],
    returns: &[(
        "ndarray",
        "View without the two axes, with the diagonal as last axis.",
    )],
    raises: &[("ValueError", "If the array has fewer than two axes.")],
    example: "
        >>> np.diagonal([[1, 2, 3], [4, 5, 6]])
        array([1, 5])
        >>> np.diagonal([[1, 2, 3], [4, 5, 6]], offset=1)
        array([2, 6])
    ",
    cpu: Cpu::View(|context| Ok(Viewed::Locked(on_diagonal(context)?))),
    grad: Grad::Rule(Keep::NOTHING, spread),
    probe: Probe::calls(&[
        "f((3, 4))",
        "f((3, 4)), 1",
        "f((2, 3, 4)), -1, 1, 2",
        "f((2, 3, 4)), 0, 2, 0",
        "f((3, 0))",
        "f((2, 2)), 5",
    ]),
    ..OpDef::VIEW
};

/// `diagonal` as a writable view, as `einsum` returns it.
pub static WRITABLE_DIAGONAL: OpDef = OpDef {
    name: "writable_diagonal",
    params: DIAGONAL.params,
    doc: "View of a diagonal, as `diagonal`'s; it can be written to if the array can.",
    cpu: Cpu::View(|context| Ok(Viewed::Shared(on_diagonal(context)?))),
    grad: DIAGONAL.grad,
    probe: Probe::calls(&["f((3, 4))", "f((2, 3, 4)), -1, 1, 2"]).against("numpy.diagonal"),
    ..OpDef::VIEW
};

fn on_diagonal(context: &ViewContext) -> Result<Layout> {
    let [offset, axis1, axis2] =
        ["offset", "axis1", "axis2"].map(|name| context.int(name) as isize);
    Ok(context.layout.diagonal(offset, axis1, axis2)?)
}

fn spread(g: &GradContext) -> Result<Grads> {
    let attrs: Attrs = ["offset", "axis1", "axis2"]
        .iter()
        .map(|name| g.get(name).clone())
        .chain([Value::from(g.shape(0))])
        .collect();
    g.one(invoke1(&DIAGONAL_SPREAD, &[g.dy(0)], &attrs)?)
}

/// Zeros with `y` on a diagonal.
pub static DIAGONAL_SPREAD: OpDef = OpDef {
    name: "diagonal_spread",
    params: &[
        Param::array("y"),
        Param::int("offset", 0),
        Param::int("axis1", 0),
        Param::int("axis2", 1),
        Param::required("shape", ParamKind::Ints),
    ],
    doc: "Array of `shape` with `y` on a diagonal (see `diagonal`) and zeros elsewhere.",
    types: Types::First,
    infer: |context| {
        let shape = dims(context.op.name, context.ints("shape"))?;
        mxnet_tensor::checked_len(&shape)?;
        let diagonal = Layout::contiguous(&shape).diagonal(
            context.int("offset") as isize,
            context.int("axis1") as isize,
            context.int("axis2") as isize,
        )?;
        context.input(0).layout().broadcast_to(diagonal.shape())?;
        one(shape)
    },
    cpu: Cpu::Kernel(|context| {
        let out = context.output(0);
        cpu::fill(out, Scalar::I64(0), context.threads);
        let view = out.layout().diagonal(
            context.int("offset") as isize,
            context.int("axis1") as isize,
            context.int("axis2") as isize,
        )?;
        cpu::copy(context.input(0), &out.with_layout(view), context.threads)
    }),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        let attrs: Attrs = ["offset", "axis1", "axis2"]
            .iter()
            .map(|name| g.get(name).clone())
            .collect();
        g.one(sum_to(&invoke1(&DIAGONAL, &[g.dy(0)], &attrs)?, g.shape(0))?)
    }),
    probe: Probe::calls(&["f((3,)), 0, 0, 1, (3, 4)", "f((1,)), 0, 0, 1, (3, 4)", "f((2, 2)), 1, 0, 2, (3, 2, 3)"])
        .against(
            "lambda y, offset, axis1, axis2, shape: (lambda z: (numpy.copyto((lambda d: (d.setflags(write=True), d)[1])(numpy.diagonal(z, offset, axis1, axis2)), y), z)[1])(numpy.zeros(shape))",
        ),
    batch: Batch::Rule(|context| context.call_with(&["axis1", "axis2"], &["shape"])),
    ..OpDef::DEFAULT
};

/// NumPy's `diag`.
pub static DIAG: OpDef = OpDef {
    name: "diag",
    surface: &[Surface::Np("diag")],
    params: &[Param::array("v"), Param::int("k", 0)],
    doc: "The `k`-th diagonal of a matrix, as a read-only view; or, of an array of one axis, the square matrix that has it there.",
    about: &[
        ("v", "A matrix, or the elements of a diagonal."),
        ("k", "Diagonal: 0 the main one, positive ones above it."),
    ],
    returns: &[("ndarray", "The diagonal, or a square matrix.")],
    raises: &[("ValueError", "If the array has neither one axis nor two.")],
    example: "
        >>> np.diag([1, 2])
        array([[1, 0],
               [0, 2]])
        >>> np.diag([[1, 2], [3, 4]])
        array([1, 4])
    ",
    cpu: Cpu::Composite(|context| {
        let (x, k) = (context.input(0), context.int("k"));
        match x.ndim() {
            1 => {
                let n = x.len() as i64 + k.abs();
                let attrs: Attrs = [
                    Value::Int(k),
                    Value::Int(0),
                    Value::Int(1),
                    Value::from(&[n, n][..]),
                ]
                .into_iter()
                .collect();
                context.done(invoke1(&DIAGONAL_SPREAD, &[x], &attrs)?)
            }
            2 => context.done(diagonal(x, k, 0, 1)?),
            n => Err(context.value_error(format!("the array must have 1 or 2 axes, found {n}"))),
        }
    }),
    probe: Probe::calls(&[
        "f((3,))",
        "f((3,)), -2",
        "f((3, 4))",
        "f((3, 4)), 2",
        "f((0,))",
    ]),
    ..OpDef::COMPOSITE
};

const TRIANGLE: OpDef = OpDef {
    about: &[
        ("m", "The matrices."),
        ("k", "Diagonal: 0 the main one, positive ones above it."),
    ],
    returns: &[("ndarray", "Of the shape and dtype of `m`.")],
    raises: &[("ValueError", "If `m` has no axis.")],
    params: &[Param::array("m"), Param::int("k", 0)],
    probe: Probe::calls(&[
        "f((3, 4))",
        "f((2, 3, 3)), 1",
        "i((3, 3), 9), -1",
        "f((0, 3))",
        "f((3,))",
    ]),
    ..OpDef::COMPOSITE
};

/// Lower triangle.
pub static TRIL: OpDef = OpDef {
    name: "tril",
    surface: &[Surface::Np("tril"), Surface::Method("tril")],
    doc: "The elements of the matrices in the last two axes on and below the `k`-th diagonal, zeros above. An array of one axis counts as a row \
          that is repeated.",
    example: "
        >>> np.tril([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
        array([[1, 0, 0],
               [4, 5, 0],
               [7, 8, 9]])
    ",
    cpu: Cpu::Composite(|context| triangle(context, true)),
    ..TRIANGLE
};

/// Upper triangle.
pub static TRIU: OpDef = OpDef {
    name: "triu",
    surface: &[Surface::Np("triu"), Surface::Method("triu")],
    doc: "The elements of the matrices in the last two axes on and above the `k`-th diagonal, zeros below. An array of one axis counts as a row \
          that is repeated.",
    example: "
        >>> np.triu([[1, 2, 3], [4, 5, 6], [7, 8, 9]], k=1)
        array([[0, 2, 3],
               [0, 0, 6],
               [0, 0, 0]])
    ",
    cpu: Cpu::Composite(|context| triangle(context, false)),
    ..TRIANGLE
};

/// Sum of a diagonal.
pub static TRACE: OpDef = OpDef {
    name: "trace",
    surface: &[Surface::Np("trace"), Surface::Method("trace")],
    params: &[
        Param::array("a"),
        Param::int("offset", 0),
        Param::int("axis1", 0),
        Param::int("axis2", 1),
        Param::optional("dtype", ParamKind::DType),
        Param::out(),
    ],
    form: Form::Out,
    out_casting: Casting::Unsafe,
    doc: "Sum of the diagonal of the matrices that `axis1` and `axis2` span (see `diagonal`).",
    about: &[(
        "offset",
        "Columns to the right of the main diagonal, to the left if negative.",
    )],
    returns: &[("ndarray", "Without the two axes.")],
    raises: &[("ValueError", "If the array has fewer than two axes.")],
    example: "
        >>> np.trace([[1, 2], [3, 4]])
        array(5)
    ",
    cpu: Cpu::Composite(|context| {
        let diagonal = diagonal(
            context.input(0),
            context.int("offset"),
            context.int("axis1"),
            context.int("axis2"),
        )?;
        let attrs: Attrs = [
            Value::from(&[-1_i64][..]),
            context.get("dtype").clone(),
            Value::Bool(false),
        ]
        .into_iter()
        .collect();
        context.done(invoke1(&reduce::SUM, &[&diagonal], &attrs)?)
    }),
    probe: Probe::calls(&[
        "f((3, 4))",
        "f((3, 4)), 1",
        "f((2, 3, 4)), 0, 1, 2",
        "i((3, 3), 9)",
    ]),
    ..OpDef::COMPOSITE
};

fn diagonal(x: &Array, offset: i64, axis1: i64, axis2: i64) -> Result<Array> {
    let attrs: Attrs = [offset, axis1, axis2].map(Value::Int).into_iter().collect();
    invoke1(&DIAGONAL, &[x], &attrs)
}

/// The elements on and below a diagonal (on and above it unless `lower`); zeros elsewhere.
fn triangle(context: &CompositeContext, lower: bool) -> Result<Outputs> {
    let x = context.input(0);
    let k = context.int("k");
    let (rows, columns) = match *x.shape() {
        [.., rows, columns] => (rows, columns),
        [columns] => (columns, columns),
        [] => return Err(wrong_axes(context)),
    };
    let numbers = |n: usize, shift: i64| {
        let numbers: SmallVec<[i64; 32]> = (0..n as i64).map(|i| i.saturating_add(shift)).collect();
        Array::from_slice(&numbers, &[n])?.to_device(x.device())
    };
    // Row i keeps columns up to i + k (lower) or from i + k on (upper).
    let ends = numbers(rows, k)?.index([IndexItem::ALL, IndexItem::NewAxis].into())?;
    let columns = numbers(columns, 0)?;
    let kept = if lower {
        ends.binary(&GREATER_EQUAL, &columns)?
    } else {
        columns.binary(&GREATER_EQUAL, &ends)?
    };
    let zero = if x.dtype() == DType::Bool {
        Scalar::Bool(false)
    } else {
        Scalar::I64(0)
    };
    context.done(choose(&kept, x, &Array::constant(zero, x.dtype())?)?)
}

#[cold]
fn wrong_axes(context: &CallContext) -> crate::Error {
    context.value_error("the array must have at least 1 axis, found 0")
}
