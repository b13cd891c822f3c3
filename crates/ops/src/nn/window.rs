//! Attention to a window of neighbouring rows (sliding-window attention). The scores form a band matrix.
#![allow(unsafe_code)]

use mxnet_kernels::window::{self as kernel, Flow, Window};
use mxnet_tensor::{DType, Dims, Tensor};

use crate::Array;
use crate::args::{Attrs, Param, ParamKind};
use crate::autograd::GradContext;
use crate::context::{CallContext, KernelContext};
use crate::cpu;
use crate::error::{Result, Tuple};
use crate::invoke::invoke1;
use crate::launch::elem;
use crate::linalg::flops_ns;
use crate::nn::operand::{self, Staged};
use crate::opdef::{Cost, Cpu, Grad, Grads, Inferred, Keep, OpDef, Probe, Surface, one_of};
use crate::types::Types;

const WIDTH: Param = Param::required("w", ParamKind::Int);
const SYMMETRIC: Param = Param::required("symmetric", ParamKind::Bool);

const WINDOW: OpDef = OpDef {
    types: Types::REAL_FLOAT,
    cost: Cost::Of(|context| {
        let width = width(context).unwrap_or(1);
        flops_ns(2 * context.input(0).len().max(context.input(1).len()) * width)
    }),
    ..OpDef::DEFAULT
};

const ALL: Keep = Keep {
    inputs: 0b111,
    outputs: 0,
};

/// Scores of each row with the rows in its window.
pub static SLDWIN_ATTEN_SCORE: OpDef = OpDef {
    name: "sldwin_atten_score",
    surface: &[Surface::Npx("sldwin_atten_score")],
    params: &[
        Param::array("query"),
        Param::array("key"),
        Param::array("dilation"),
        WIDTH,
        SYMMETRIC,
    ],
    doc: "Products of each query with the keys in a window around it: score j of query i is its product with key `i + dilation * (j - w)`, and 0 where \
          there is no such key.\n\nSource: I. Beltagy et al., Longformer (2020), section 3.1.",
    about: &[
        ("query", "(n, length, heads, d)."),
        ("key", "(n, length, heads, d)."),
        (
            "dilation",
            "Distance of neighbours in the window, for each head; integers (heads,).",
        ),
        ("w", "Number of keys before a query in its window."),
        (
            "symmetric",
            "Whether the window has as many keys after the query.",
        ),
    ],
    returns: &[(
        "ndarray",
        "Of shape (n, length, heads, 2 w + 1), or (n, length, heads, w + 1) if not symmetric.",
    )],
    raises: &[("ValueError", "If the sizes do not fit.")],
    example: "
        >>> x = np.array([1.0, 2.0, 3.0]).reshape(1, 3, 1, 1)
        >>> npx.sldwin_atten_score(x, x, np.array([1]), w=1, symmetric=True)[0, :, 0]
        array([[0., 1., 2.],
               [2., 4., 6.],
               [6., 9., 0.]])
    ",
    infer: |context| {
        let rows = rows(context, 0)?;
        if context.shape(1) != rows {
            return Err(context.shape_error("`query` and `key` must have the same shape"));
        }
        let shape = [rows[0], rows[1], rows[2], width(context)?];
        one_of(
            Dims::from_slice(&shape),
            operand::float_promoted(context, 2)?,
        )
    },
    cpu: Cpu::Kernel(|context| {
        let case = Case::of(context, context.input(0).shape())?;
        // SAFETY: operands are dense, of the case's dtype and sizes; the result has the size that inference gave it.
        unsafe {
            kernel::scores(
                context.threads,
                &case.window(),
                case.at(0),
                case.at(1),
                case.out.ptr(),
            )
        };
        case.out.finish(context.threads)
    }),
    grad: Grad::Rule(ALL, |g| {
        let dquery = call(g, &SLDWIN_ATTEN_CONTEXT, g.dy(0), g.input(1))?;
        let dkey = call(g, &SLDWIN_ATTEN_SPREAD, g.dy(0), g.input(0))?;
        grads(g, [dquery, dkey])
    }),
    probe: Probe::calls(&[
        "f((2, 5, 2, 3)), f((2, 5, 2, 3)), np.array([1, 2]), 2, True",
        "f((1, 4, 1, 2)), f((1, 4, 1, 2)), np.array([1]), 1, False",
    ])
    .ulp(64),
    ..WINDOW
};

/// Weighted sums of the rows in a window.
pub static SLDWIN_ATTEN_CONTEXT: OpDef = OpDef {
    name: "sldwin_atten_context",
    surface: &[Surface::Npx("sldwin_atten_context")],
    params: &[
        Param::array("score"),
        Param::array("value"),
        Param::array("dilation"),
        WIDTH,
        SYMMETRIC,
    ],
    doc: "For each row the sum of the values in its window, weighted by their scores; see `sldwin_atten_score`.",
    about: &[
        ("score", "(n, length, heads, 2 w + 1), or (n, length, heads, w + 1) if not symmetric."),
        ("value", "(n, length, heads, d)."),
        ("dilation", "Distance of neighbours in the window, for each head; integers (heads,)."),
        ("w", "Number of values before a row that are summed."),
        ("symmetric", "Whether as many values after the row are summed, too."),
    ],
    returns: &[("ndarray", "Of shape (n, length, heads, d).")],
    raises: &[("ValueError", "If the sizes do not fit.")],
    example: "
        >>> x = np.array([1.0, 2.0, 3.0]).reshape(1, 3, 1, 1)
        >>> npx.sldwin_atten_context(np.ones((1, 3, 1, 2)), x, np.array([1]), w=1, symmetric=False)[0, :, 0, 0]
        array([1., 3., 5.])
    ",
    infer: summed,
    cpu: Cpu::Kernel(|context| sum(context, Flow::Gather)),
    grad: Grad::Rule(ALL, |g| {
        let dscore = call(g, &SLDWIN_ATTEN_SCORE, g.dy(0), g.input(1))?;
        let dvalue = call(g, &SLDWIN_ATTEN_SPREAD, g.input(0), g.dy(0))?;
        grads(g, [dscore, dvalue])
    }),
    probe: Probe::calls(&[
        "f((2, 5, 2, 5)), f((2, 5, 2, 3)), np.array([1, 2]), 2, True",
        "f((1, 4, 1, 2)), f((1, 4, 1, 2)), np.array([1]), 1, False",
    ])
    .ulp(64),
    ..WINDOW
};

/// The adjoint of [`SLDWIN_ATTEN_CONTEXT`]: sums over the rows in whose windows each row is.
pub static SLDWIN_ATTEN_SPREAD: OpDef = OpDef {
    name: "sldwin_atten_spread",
    params: &[
        Param::array("score"),
        Param::array("value"),
        Param::array("dilation"),
        WIDTH,
        SYMMETRIC,
    ],
    doc: "For each row the sum of the rows of `value` whose windows contain it, weighted by their scores for it.",
    infer: summed,
    cpu: Cpu::Kernel(|context| sum(context, Flow::Scatter)),
    grad: Grad::Rule(ALL, |g| {
        let dscore = call(g, &SLDWIN_ATTEN_SCORE, g.input(1), g.dy(0))?;
        let dvalue = call(g, &SLDWIN_ATTEN_CONTEXT, g.input(0), g.dy(0))?;
        grads(g, [dscore, dvalue])
    }),
    probe: Probe::calls(&["f((2, 5, 2, 5)), f((2, 5, 2, 3)), np.array([1, 2]), 2, True"]).ulp(64),
    ..WINDOW
};

/// Number of rows in a window.
fn width(context: &CallContext) -> Result<usize> {
    match context.int("w") {
        w if w < 0 => Err(context.value_error(format!("`w` must not be negative, found {w}"))),
        w if context.bool("symmetric") => Ok(2 * w as usize + 1),
        w => Ok(w as usize + 1),
    }
}

/// The shape of array `i`. An error unless it has as many heads as there are dilations.
fn rows<'a>(context: &CallContext<'a>, i: usize) -> Result<&'a [usize]> {
    let shape = context.shape(i);
    if shape.len() != 4 || context.shape(2) != &shape[2..3] {
        return Err(
            context.shape_error("operands must be (n, length, heads, d), and `dilation` (heads,)")
        );
    }
    if !context.dtype_of(2).is_integer() {
        return Err(context.dtype_error("`dilation` must be integers"));
    }
    operand::float_of(context, 0)?;
    operand::float_of(context, 1)?;
    Ok(shape)
}

fn summed(context: &CallContext) -> Result<Inferred> {
    let rows = rows(context, 1)?;
    let wanted = [rows[0], rows[1], rows[2], width(context)?];
    if context.shape(0) != wanted {
        return Err(context.shape_error(format!("`score` must have shape {}", Tuple(&wanted))));
    }
    one_of(Dims::from_slice(rows), operand::float_promoted(context, 2)?)
}

fn sum(context: &KernelContext, flow: Flow) -> Result<()> {
    let case = Case::of(context, context.input(1).shape())?;
    // SAFETY: operands are dense, of the case's dtype and sizes; the result has the size that inference gave it.
    unsafe {
        kernel::sums(
            context.threads,
            &case.window(),
            flow,
            case.at(0),
            case.at(1),
            case.out.ptr(),
        );
    }
    case.out.finish(context.threads)
}

/// Calls `op` with the window attributes of the call that is differentiated.
fn call(g: &GradContext, op: &'static OpDef, first: &Array, second: &Array) -> Result<Array> {
    let attrs: Attrs = ["w", "symmetric"]
        .iter()
        .map(|name| g.get(name).clone())
        .collect();
    invoke1(op, &[first, second, g.input(2)], &attrs)
}

fn grads(g: &GradContext, found: [Array; 2]) -> Result<Grads> {
    let mut grads = Grads::new();
    for (i, dx) in found.into_iter().enumerate() {
        grads.push(if g.wants(i) {
            Some(g.fitted(dx, i)?)
        } else {
            None
        });
    }
    grads.push(None);
    Ok(grads)
}

/// Dense operands of one call.
struct Case {
    dtype: DType,
    rows: [usize; 4],
    dilations: Vec<i64>,
    before: usize,
    width: usize,
    operands: [Tensor; 2],
    out: Staged,
}

impl Case {
    fn of(context: &KernelContext, rows: &[usize]) -> Result<Case> {
        let dtype = operand::compute(context.output(0).dtype());
        let dilation = operand::dense(context.input(2), DType::I64, context.threads)?;
        let before = context.int("w") as usize;
        Ok(Case {
            dtype,
            rows: [rows[0], rows[1], rows[2], rows[3]],
            dilations: cpu::read_dense(&dilation),
            before,
            width: if context.bool("symmetric") {
                2 * before + 1
            } else {
                before + 1
            },
            operands: [
                operand::dense(context.input(0), dtype, context.threads)?,
                operand::dense(context.input(1), dtype, context.threads)?,
            ],
            out: Staged::new(context.output(0), dtype)?,
        })
    }

    fn at(&self, i: usize) -> *const u8 {
        self.operands[i].data_ptr()
    }

    fn window(&self) -> Window<'_> {
        Window {
            elem: elem(self.dtype),
            batch: self.rows[0],
            length: self.rows[1],
            dilations: &self.dilations,
            dim: self.rows[3],
            before: self.before,
            width: self.width,
        }
    }
}
