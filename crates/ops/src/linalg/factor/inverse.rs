//! Inverses and solutions of square systems.

use mxnet_linalg::Triangle;
use mxnet_tensor::{Dims, broadcast_shapes};
use smallvec::SmallVec;

use super::FACTORISATION;
use super::bridge::{bytes, bytes_mut, dense, elem, failed, squares, stack, with_threads};
use super::matrix::{Part, adjoint, only};
use crate::Array;
use crate::args::{Attrs, Param, ParamKind, Value};
use crate::batching::Batch;
use crate::context::CallContext;
use crate::error::{Result, Tuple};
use crate::invoke::invoke1;
use crate::opdef::{Cpu, Grad, Grads, Inferred, Keep, OpDef, Probe, Surface, one};

/// Inverses; NaN for singular matrices.
pub static INVERSE: OpDef = OpDef {
    name: "inverse",
    reports_as: Some("inv"),
    params: &[Param::array("a"), Param::bool("strict", true)],
    doc: "Inverses of square matrices (..., m, m). Singular ones are an error if `strict`, else their inverses are NaN.",
    infer: |context| {
        squares(context, 0)?;
        one(Dims::from_slice(context.shape(0)))
    },
    cpu: Cpu::Kernel(|context| {
        let (dtype, strict) = (context.output(0).dtype(), context.bool("strict"));
        let a = dense(context, 0, dtype)?;
        let shape = stack(a.shape());
        let x = bytes_mut(context, 0);
        with_threads(context, |run| {
            mxnet_linalg::inverse(
                elem(dtype),
                run,
                shape.count(),
                shape.n,
                strict,
                bytes(&a),
                x,
            )
        })
        .map_err(|f| failed(context, f))
    }),
    // Y = A^-1: dY = -Y dA Y. Source: Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation, 2008,
    // 2.2.3.
    grad: Grad::Rule(Keep::OUTPUTS, |g| {
        let h = adjoint(g.output(0))?;
        g.one(h.matmul(g.dy(0))?.matmul(&h)?.neg()?)
    }),
    probe: Probe::calls(&["f((3, 3))"])
        .against("lambda a: np.linalg.inv(a)")
        .ulp(2000),
    batch: Batch::Leading(&[2]),
    ..FACTORISATION
};

/// NumPy's `inv`.
pub static INV: OpDef = OpDef {
    name: "inv",
    surface: &[Surface::NpLinalg("inv")],
    params: &[Param::array("a")],
    doc: "Inverses of square matrices (..., m, m), by LU factorisation. A matrix counts as singular if a pivot is exactly zero.",
    about: &[("a", "The matrices.")],
    returns: &[("ndarray", "Of the shape of `a`.")],
    raises: &[(
        "LinAlgError",
        "If the matrices are not square, or one is singular.",
    )],
    example: "
        >>> np.linalg.inv([[2.0, 0.0], [0.0, 4.0]])
        array([[0.5 , 0.  ],
               [0.  , 0.25]])
    ",
    cpu: Cpu::Composite(|context| context.done(inverse(context.input(0))?)),
    probe: Probe::calls(&[
        "f((1, 1))",
        "f((3, 3))",
        "f((2, 4, 4))",
        "f((30, 30)) + 30 * np.eye(30, dtype='float32')",
        "f((0, 0))",
        "f((0, 3, 3))",
        "c((3, 3))",
    ])
    .ulp(2000),
    ..OpDef::COMPOSITE
};

/// The inverses of square matrices.
pub(super) fn inverse(a: &Array) -> Result<Array> {
    invoke1(&INVERSE, &[a], &[Value::Bool(true)].into_iter().collect())
}

/// Solutions of stacks of systems.
pub static SOLVE_STACKS: OpDef = OpDef {
    name: "solve_stacks",
    params: &[Param::array("a"), Param::array("b")],
    doc: "The x of a x = b for `a` (..., m, m) and `b` (..., m, k) with the same leading axes.",
    infer: same_stacks,
    cpu: Cpu::Kernel(|context| {
        let dtype = context.output(0).dtype();
        let (a, b) = (dense(context, 0, dtype)?, dense(context, 1, dtype)?);
        let shape = stack(b.shape());
        let x = bytes_mut(context, 0);
        with_threads(context, |run| {
            let (a, b) = (bytes(&a), bytes(&b));
            mxnet_linalg::solve(elem(dtype), run, shape.count(), shape.m, shape.n, a, b, x)
        })
        .map_err(|f| failed(context, f))
    }),
    // dB = A^-H dX, dA = -dB X^H. Source: Giles 2008, 2.3.1.
    grad: Grad::Rule(
        Keep {
            inputs: 1,
            outputs: 1,
        },
        |g| {
            // `db` may still be complex where `b` is real: it is needed for dA before it is converted.
            let db = solve(&adjoint(g.input(0))?, g.dy(0))?;
            let da = if g.wants(0) {
                let da = db.matmul(&adjoint(g.output(0))?)?.neg()?;
                Some(g.fitted(da, 0)?)
            } else {
                None
            };
            Ok(Grads::from_iter([da, Some(g.fitted(db, 1)?)]))
        },
    ),
    probe: Probe::calls(&["f((3, 3)), f((3, 2))", "c((2, 3, 3)), c((2, 3, 1))"])
        .against("np.linalg.solve")
        .ulp(2000),
    batch: Batch::Leading(&[2]),
    ..FACTORISATION
};

fn same_stacks(context: &CallContext) -> Result<Inferred> {
    let a = squares(context, 0)?;
    let (b, wanted) = (context.shape(1), context.shape(0).len());
    if b.len() != wanted || b[..wanted - 1] != context.shape(0)[..wanted - 1] {
        return Err(context.shape_error(format!(
            "`b` has shape {}, needs {} rows a matrix",
            Tuple(b),
            a.n
        )));
    }
    one(Dims::from_slice(b))
}

fn solve(a: &Array, b: &Array) -> Result<Array> {
    invoke1(&SOLVE_STACKS, &[a, b], &Attrs::none())
}

/// NumPy's `solve`.
pub static SOLVE: OpDef = OpDef {
    name: "solve",
    surface: &[Surface::NpLinalg("solve")],
    params: &[Param::array("a"), Param::array("b")],
    doc: "The x of a x = b for square matrices `a` (..., m, m), by LU factorisation; `b` is one vector (m,) or matrices (..., m, k), and leading \
        axes broadcast. A matrix counts as singular if a pivot is exactly zero.",
    about: &[("a", "The matrices."), ("b", "The right-hand sides.")],
    returns: &[("ndarray", "Of the shape of `b`.")],
    raises: &[
        ("ValueError", "If the shapes do not fit."),
        (
            "LinAlgError",
            "If the matrices are not square, or one is singular.",
        ),
    ],
    example: "
        >>> np.linalg.solve([[2.0, 1.0], [1.0, 3.0]], [3.0, 5.0])
        array([0.8, 1.4])
    ",
    cpu: Cpu::Composite(|context| context.done(solve_any(context)?)),
    probe: Probe::calls(&[
        "f((3, 3)), f((3,))",
        "f((3, 3)), f((3, 2))",
        "f((2, 3, 3)), f((3,))",
        "f((2, 1, 3, 3)), f((4, 3, 2))",
        "f((3, 3)), f((2, 3, 2))",
        "f((30, 30)) + 30 * np.eye(30, dtype='float32'), f((30, 2))",
        "f((0, 0)), f((0,))",
        "f((2, 2)), f((2, 0))",
        "c((3, 3)), f((3, 1))",
    ])
    .ulp(2000),
    ..OpDef::COMPOSITE
};

fn solve_any(context: &CallContext) -> Result<Array> {
    let shape = squares(context, 0)?;
    let (a, b) = (context.input(0), context.input(1));
    let rows = match b.ndim() {
        0 => None,
        1 => Some(b.shape()[0]),
        n => Some(b.shape()[n - 2]),
    };
    if rows != Some(shape.n) {
        let found = rows.map_or("no axes".to_owned(), |n| format!("{n} rows"));
        return Err(context.shape_error(format!("`a` has {} rows, `b` has {found}", shape.n)));
    }
    let column;
    let b = if b.ndim() == 1 {
        column = b.reshape(&[b.len(), 1])?;
        &column
    } else {
        b
    };
    let x = if a.ndim() == 2 && b.ndim() > 2 {
        side_by_side(a, b)?
    } else {
        let lead = broadcast_shapes(&[shape.lead, &b.shape()[..b.ndim() - 2]])?;
        let full = |x: &Array| -> Result<Array> {
            let shape: Dims = lead
                .iter()
                .chain(&x.shape()[x.ndim() - 2..])
                .copied()
                .collect();
            if x.shape() == shape.as_slice() {
                return Ok(x.clone());
            }
            x.broadcast_to(&shape)
        };
        solve(&full(a)?, &full(b)?)?
    };
    if context.input(1).ndim() == 1 {
        return x.reshape(&x.shape()[..x.ndim() - 1]);
    }
    Ok(x)
}

/// One matrix for all right-hand sides: their columns are concatenated, so that the matrix is factored once.
fn side_by_side(a: &Array, b: &Array) -> Result<Array> {
    let n = b.ndim();
    let (m, k) = (b.shape()[n - 2], b.shape()[n - 1]);
    let to_front: SmallVec<[i64; 4]> = [n as i64 - 2]
        .into_iter()
        .chain(0..n as i64 - 2)
        .chain([n as i64 - 1])
        .collect();
    let lead = &b.shape()[..n - 2];
    let columns = lead.iter().product::<usize>() * k;
    let flat = b.transpose(Some(&to_front))?.reshape(&[m, columns])?;
    let split: Dims = [m].iter().chain(lead).chain(&[k]).copied().collect();
    let back: SmallVec<[i64; 4]> = (1..n as i64 - 1).chain([0, n as i64 - 1]).collect();
    solve(a, &flat)?.reshape(&split)?.transpose(Some(&back))
}

/// Solutions of triangular systems.
pub static SOLVE_TRIANGULAR: OpDef = OpDef {
    name: "solve_triangular",
    params: &[
        Param::array("a"),
        Param::array("b"),
        Param::required("lower", ParamKind::Bool),
    ],
    doc: "The x of a x = b for triangular `a` (..., m, m), of which the other triangle is not read, and `b` (..., m, k) with the same leading axes.",
    infer: same_stacks,
    cpu: Cpu::Kernel(|context| {
        let dtype = context.output(0).dtype();
        let (a, b) = (dense(context, 0, dtype)?, dense(context, 1, dtype)?);
        let shape = stack(b.shape());
        let x = bytes_mut(context, 0);
        let triangle = if context.bool("lower") {
            Triangle::Lower
        } else {
            Triangle::Upper
        };
        with_threads(context, |run| {
            let (a, b) = (bytes(&a), bytes(&b));
            let (m, k) = (shape.m, shape.n);
            mxnet_linalg::solve_triangular(elem(dtype), run, triangle, shape.count(), m, k, a, b, x)
        })
        .map_err(|f| failed(context, f))
    }),
    // As `solve`, with the triangle of dA.
    grad: Grad::Rule(
        Keep {
            inputs: 1,
            outputs: 1,
        },
        |g| {
            let lower = g.bool("lower");
            let db = solve_triangular(&adjoint(g.input(0))?, g.dy(0), !lower)?;
            let da = if g.wants(0) {
                let da = db.matmul(&adjoint(g.output(0))?)?.neg()?;
                let da = if lower {
                    only(&da, Part::Lower)?
                } else {
                    only(&da.swap_last()?, Part::Lower)?.swap_last()?
                };
                Some(g.fitted(da, 0)?)
            } else {
                None
            };
            Ok(Grads::from_iter([da, Some(g.fitted(db, 1)?)]))
        },
    ),
    probe: Probe::calls(&[
        "f((3, 3)), f((3, 2)), True",
        "f((2, 3, 3)), f((2, 3, 1)), False",
        "c((4, 4)), c((4, 2)), True",
    ])
    .against("lambda a, b, lower: np.linalg.solve(np.tril(a) if lower else np.triu(a), b)")
    .within(0.5..2.0)
    .ulp(2000),
    batch: Batch::Leading(&[2]),
    ..FACTORISATION
};

/// The solution x of a x = b, where `a` is triangular.
pub(super) fn solve_triangular(a: &Array, b: &Array, lower: bool) -> Result<Array> {
    let attrs: Attrs = [Value::Bool(lower)].into_iter().collect();
    invoke1(&SOLVE_TRIANGULAR, &[a, b], &attrs)
}
