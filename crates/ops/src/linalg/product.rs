//! The matrix product, and `dot`.
#![allow(unsafe_code)]

use std::borrow::Cow;

use mxnet_kernels::Threads;
use mxnet_kernels::gemm::{Epilogue, Matrix, Problem, gemm};
use mxnet_tensor::{Dims, Layout, Tensor, broadcast_shapes};
use smallvec::SmallVec;

use crate::Array;
use crate::Outputs;
use crate::args::{Attrs, Param};
use crate::autograd::GradContext;
use crate::batching::{Batch, BatchContext};
use crate::context::CallContext;
use crate::elementwise::arithmetic::MULTIPLY;
use crate::error::{Result, Tuple};
use crate::invoke::invoke1;
use crate::launch::elem;
use crate::linalg::MATMUL_ALONG;
use crate::nn::operand;
use crate::opdef::{Amp, Cost, Cpu, Form, Grad, Grads, Inferred, Keep, OpDef, Probe, Surface, one};
use crate::types::Types;

/// The matrix product.
pub static MATMUL: OpDef = OpDef {
    name: "matmul",
    surface: &[Surface::Np("matmul"), Surface::NpLinalg("matmul")],
    params: &[Param::array("x1"), Param::array("x2"), Param::out()],
    full_signature: Some(&MATMUL_ALONG),
    core_signature: "(n?,k),(k,m?)->(n?,m?)",
    doc: "Matrix product `(..., m, k) @ (..., k, n) -> (..., m, n)`. Leading axes broadcast. A 1-D `x1` counts as a row and a 1-D `x2` as a column; \
        the added axis is removed from the result.\n\nfloat16 and bfloat16 are summed in float32. Integers wrap.",
    about: &[
        ("x1", "Matrices (..., m, k)."),
        ("x2", "Matrices (..., k, n)."),
    ],
    returns: &[("ndarray", "Of shape (..., m, n).")],
    raises: &[(
        "ValueError",
        "If the sizes do not fit, or an operand has no axis.",
    )],
    example: "
        >>> np.matmul([[1, 2], [3, 4]], [[0, 1], [1, 0]])
        array([[2, 1],
               [4, 3]])
        >>> np.matmul([[1, 2], [3, 4]], [1, 10])
        array([21, 43])
    ",
    form: Form::Out,
    types: Types::NUMERIC,
    infer: matmul_shape,
    cpu: Cpu::Kernel(|context| {
        let (a, b, c) = (context.input(0), context.input(1), context.output(0));
        let dtype = c.dtype();
        let a = operand::typed(a, dtype, context.threads)?;
        let b = operand::typed(b, dtype, context.threads)?;
        multiply(
            context.threads,
            &*as_matrix(&a, 0)?,
            &*as_matrix(&b, 1)?,
            c,
            &Epilogue::NONE,
        )
    }),
    grad: Grad::Rule(Keep::INPUTS, matmul_gradient),
    amp: Amp::Narrow,
    cost: Cost::Of(|context| {
        let k = context.shape(0).last().copied().unwrap_or(1);
        let outputs =
            matmul_shape(context).map_or(0, |specs| specs[0].shape.iter().product::<usize>());
        flops_ns(2 * k * outputs)
    }),
    parallel: true,
    probe: Probe::calls(&[
        "f((2, 3)), f((3, 4))",
        "f((3,)), f((3,))",
        "f((3,)), f((2, 3, 4))",
        "f((2, 3, 4)), f((4,))",
        "f((5, 1, 2, 3)), f((4, 3, 2))",
        "f((4, 2, 3)), f((3, 5))",
        "f((3, 2)).T, f((4, 3)).T",
        "f((0, 3)), f((3, 2))",
        "f((2, 0)), f((0, 3))",
        "i((2, 3), 9), i((3, 2), 9)",
    ])
    .ulp(16),
    batch: Batch::Rule(batched_matmul),
    ..OpDef::DEFAULT
};

/// NumPy's `dot`.
pub static DOT: OpDef = OpDef {
    name: "dot",
    surface: &[Surface::Np("dot"), Surface::Method("dot")],
    params: &[Param::array("a").strong(), Param::array("b").strong()],
    doc: "Sum of products over the last axis of `a` and the second-to-last axis of `b` (its only one, if it is 1-D). The result has the other axes \
        of `a`, then those of `b`. If one of them is 0-d, the elementwise product.",
    about: &[("a", "First operand."), ("b", "Second operand.")],
    returns: &[("ndarray", "Of the other axes of `a`, then those of `b`.")],
    raises: &[("ValueError", "If the sizes do not fit.")],
    example: "
        >>> np.dot([1, 2, 3], [4, 5, 6])
        array(32)
        >>> np.dot([[1, 2], [3, 4]], [[0, 1], [1, 0]])
        array([[2, 1],
               [4, 3]])
    ",
    form: Form::Out,
    cpu: Cpu::Composite(|context| {
        let (a, b) = (context.input(0), context.input(1));
        if a.ndim() == 0 || b.ndim() == 0 {
            return context.done(invoke1(&MULTIPLY, &[a, b], &Attrs::none())?);
        }
        if b.ndim() <= 2 {
            return dot_checked(context).and_then(|()| context.done(a.matmul(b)?));
        }
        // (..., k) . (p, k, n) -> (..., p, n): the matrices of `b` become column blocks of one matrix.
        dot_checked(context)?;
        let (k, n) = (b.shape()[b.ndim() - 2], b.shape()[b.ndim() - 1]);
        let lead = &b.shape()[..b.ndim() - 2];
        let order: SmallVec<[i64; 4]> = [b.ndim() as i64 - 2]
            .into_iter()
            .chain(0..b.ndim() as i64 - 2)
            .chain([b.ndim() as i64 - 1])
            .collect();
        let columns = lead.iter().product::<usize>() * n;
        let flat = a.matmul(&b.transpose(Some(&order))?.reshape(&[k, columns])?)?;
        let shape: Dims = a.shape()[..a.ndim() - 1]
            .iter()
            .chain(lead)
            .copied()
            .chain([n])
            .collect();
        context.done(flat.reshape(&shape)?)
    }),
    probe: Probe::calls(&[
        "f((2, 3)), f((3, 4))",
        "f((3,)), f((3,))",
        "f((2, 3)), f((3,))",
        "f((2, 3, 4)), f((5, 4, 2))",
        "f((3,)), f((2, 3, 4))",
        "f(()), f((2, 3))",
        "f((2, 3)), 2.0",
    ])
    .ulp(16),
    ..OpDef::COMPOSITE
};

fn dot_checked(context: &CallContext) -> Result<()> {
    let (a, b) = (context.shape(0), context.shape(1));
    let (k, l) = (a[a.len() - 1], b[b.len().saturating_sub(2)]);
    if k == l {
        return Ok(());
    }
    let which = if b.len() == 1 {
        "only"
    } else {
        "second-to-last"
    };
    Err(context.shape_error(format!(
        "last axis of `a` (size {k}) must equal the {which} axis of `b` (size {l})"
    )))
}

/// Estimated time of a number of floating-point operations on one core, in nanoseconds.
pub fn flops_ns(flops: usize) -> u64 {
    // An estimate for AVX2; it only decides whether a call runs inline or is queued.
    flops as u64 / 50
}

fn matmul_shape(context: &CallContext) -> Result<Inferred> {
    let (a, b) = (context.shape(0), context.shape(1));
    for (name, shape) in [("x1", a), ("x2", b)] {
        if shape.is_empty() {
            return Err(context
                .shape_error(format!("`{name}` has 0 axes, at least 1 is needed"))
                .with_hint("multiply by a number with `*`"));
        }
    }
    let (k, l) = (a[a.len() - 1], b[b.len().saturating_sub(2)]);
    if k != l {
        let which = if b.len() == 1 {
            "only"
        } else {
            "second-to-last"
        };
        return Err(context.shape_error(format!(
            "last axis of `x1` (size {k}) must equal the {which} axis of `x2` (size {l})"
        )));
    }
    let mut shape = broadcast_shapes(&[
        &a[..a.len().saturating_sub(2)],
        &b[..b.len().saturating_sub(2)],
    ])
    .map_err(|_| {
        context.shape_error(format!(
            "leading axes {} and {} do not broadcast",
            Tuple(&a[..a.len().saturating_sub(2)]),
            Tuple(&b[..b.len().saturating_sub(2)])
        ))
    })?;
    if a.len() > 1 {
        shape.push(a[a.len() - 2]);
    }
    if b.len() > 1 {
        shape.push(b[b.len() - 1]);
    }
    one(shape)
}

/// A vector as the row (`side` 0) or column (`side` 1) of a matrix product.
fn as_matrix(x: &Tensor, side: usize) -> Result<Cow<'_, Tensor>> {
    if x.ndim() > 1 {
        return Ok(Cow::Borrowed(x));
    }
    Ok(Cow::Owned(
        x.with_layout(x.layout().expand_dims(&[side as isize])?),
    ))
}

/// `c = a @ b` with an epilogue: `a` (..., m, k) and `b` (..., k, n) have any strides; `c` is dense, has the broadcast shape, and may lack the axes
/// of length 1 that stand for vectors. All have one dtype.
pub(crate) fn multiply(
    threads: &dyn Threads,
    a: &Tensor,
    b: &Tensor,
    c: &Tensor,
    epilogue: &Epilogue,
) -> Result<()> {
    let evenly = match (a.shape(), b.shape()) {
        (&[m, k], &[l, n]) => k == l && c.len() == m * n,
        (&[s, m, k], &[t, l, n]) => s == t && s > 1 && k == l && c.len() == s * m * n,
        _ => false,
    };
    if evenly {
        return multiply_evenly(threads, a, b, c, epilogue);
    }
    let (mut a, mut b) = (a.clone(), b.clone());
    let (k, n) = (b.shape()[b.ndim() - 2], b.shape()[b.ndim() - 1]);
    // A single matrix `b` for the whole batch: the batch axes of `a` are merged into its rows, if one stride walks them.
    let single = b.shape()[..b.ndim() - 2].iter().all(|&len| len == 1);
    if single && a.ndim() > 2 && !c.is_empty() {
        let rows = a.layout().reshape(&[(c.len() / n) as isize, k as isize])?;
        let only = b.layout().reshape(&[k as isize, n as isize])?;
        if let (Some(rows), Some(only)) = (rows, only) {
            (a, b) = (a.with_layout(rows), b.with_layout(only));
        }
    }
    let m = a.shape()[a.ndim() - 2];
    let batch = broadcast_shapes(&[&a.shape()[..a.ndim() - 2], &b.shape()[..b.ndim() - 2]])?;
    let with_batch =
        |rows: usize, cols: usize| -> Dims { batch.iter().copied().chain([rows, cols]).collect() };
    let full = with_batch(m, n);
    if full.iter().product::<usize>() != c.len() {
        let problem = format!(
            "result of shape {} for a product of shape {}",
            Tuple(c.shape()),
            Tuple(&full)
        );
        return Err(crate::Error::internal("matmul", problem));
    }
    let size = c.dtype().size() as isize;
    let strides = |x: &Tensor, shape: &[usize]| -> Result<SmallVec<[isize; 6]>> {
        let layout = x.layout().broadcast_to(shape)?;
        Ok(layout.strides().iter().map(|s| s * size).collect())
    };
    let (a_strides, b_strides) = (
        strides(&a, &with_batch(m, k))?,
        strides(&b, &with_batch(k, n))?,
    );
    let axes = batch.len();
    let c_strides: SmallVec<[isize; 6]> = Layout::contiguous(&full)
        .strides()
        .iter()
        .map(|s| s * size)
        .collect();
    let problem = Problem {
        elem: elem(c.dtype()),
        batch: &batch,
        m,
        n,
        k,
        alpha: 1.0,
        beta: 0.0,
    };
    let a = matrix_at(&a, &a_strides, axes);
    let b = matrix_at(&b, &b_strides, axes);
    let out = matrix_at(c, &c_strides, axes);
    // SAFETY: 1. strides of `a` and `b` are those of layouts that lie within their storages, broadcast. 2. `c` is dense, has the product's number of
    // elements (checked above) and was allocated for this call, so it overlaps nothing. 3. the bias, if any, has an element for each column (caller).
    unsafe { gemm(threads, &problem, &a, &b, &out, epilogue) };
    Ok(())
}

/// [`multiply`] of two matrices, or of two batches with one batch axis of equal length.
fn multiply_evenly(
    threads: &dyn Threads,
    a: &Tensor,
    b: &Tensor,
    c: &Tensor,
    epilogue: &Epilogue,
) -> Result<()> {
    let at = a.ndim() - 2;
    let (batch, [m, k]) = (&a.shape()[..at], [a.shape()[at], a.shape()[at + 1]]);
    let n = b.shape()[at + 1];
    let size = c.dtype().size() as isize;
    let problem = Problem {
        elem: elem(c.dtype()),
        batch,
        m,
        n,
        k,
        alpha: 1.0,
        beta: 0.0,
    };
    let steps = |strides: &[isize]| {
        strides
            .iter()
            .map(|s| s * size)
            .collect::<SmallVec<[isize; 4]>>()
    };
    let (of_a, of_b) = (steps(a.layout().strides()), steps(b.layout().strides()));
    let of_c = [(m * n) as isize * size, n as isize * size, size];
    let (a, b) = (matrix_at(a, &of_a, at), matrix_at(b, &of_b, at));
    let out = matrix_at(c, &of_c[1 - at..], at);
    // SAFETY: 1. strides of `a` and `b` are those of layouts that lie within their storages. 2. `c` is dense, has the product's number of elements
    // (caller) and was allocated for this call, so it overlaps nothing. 3. the bias, if any, has an element for each column (caller).
    unsafe { gemm(threads, &problem, &a, &b, &out, epilogue) };
    Ok(())
}

/// A tensor as the kernel takes matrices: the strides of `axes` batch axes, then those of rows and columns.
fn matrix_at<'a>(x: &Tensor, strides: &'a [isize], axes: usize) -> Matrix<'a> {
    Matrix {
        ptr: x.data_ptr(),
        row_stride: strides[axes],
        col_stride: strides[axes + 1],
        batch_strides: &strides[..axes],
    }
}

/// With C = A B: dA = dC B^H and dB = A^H dC, summed over broadcast axes; vectors as one-row and one-column matrices.
fn matmul_gradient(g: &GradContext) -> Result<Grads> {
    let (a, b) = (g.input(0), g.input(1));
    let rows = if a.ndim() == 1 {
        a.reshape(&[1, a.len()])?
    } else {
        a.clone()
    };
    let columns = if b.ndim() == 1 {
        b.reshape(&[b.len(), 1])?
    } else {
        b.clone()
    };
    let mut shape: Dims = g.dy(0).shape().iter().copied().collect();
    if b.ndim() == 1 {
        shape.push(1);
    }
    if a.ndim() == 1 {
        shape.insert(shape.len() - 1, 1);
    }
    let dy = g.dy(0).reshape(&shape)?;
    let mut grads = Grads::new();
    grads.push(if g.wants(0) {
        let da = dy.matmul(&columns.swap_last()?.conj()?)?;
        Some(crate::sum_to(&da, rows.shape())?.reshape(a.shape())?)
    } else {
        None
    });
    grads.push(if g.wants(1) {
        let db = if columns.ndim() == 2 && rows.ndim() > 2 {
            // A single matrix for the whole batch: its gradient is one product over all rows.
            let all = |x: &Array| {
                let n = x.shape()[x.ndim() - 1];
                x.reshape(&[x.shape()[..x.ndim() - 1].iter().product(), n])
            };
            all(&rows)?.conj()?.transpose(None)?.matmul(&all(&dy)?)?
        } else {
            rows.swap_last()?.conj()?.matmul(&dy)?
        };
        Some(crate::sum_to(&db, columns.shape())?.reshape(b.shape())?)
    } else {
        None
    });
    Ok(grads)
}

/// A product for each example of a batch. A vector that differs between examples becomes a matrix of one row or column.
fn batched_matmul(context: &BatchContext) -> Result<Outputs> {
    let axes_ahead = |i: usize| context.shape(i).len().saturating_sub(2);
    let ahead = axes_ahead(0).max(axes_ahead(1));
    let mut arrays = Vec::new();
    for i in 0..2 {
        let Some(x) = context.aligned(i, ahead + 2)? else {
            return Err(context.refused());
        };
        arrays.push(Some(match (context.is_batched(i), i, context.shape(i)) {
            // (size, 1.., n) already holds it as a row.
            (true, 1, [_]) => x.swap_last()?,
            _ => x,
        }));
    }
    context.call(&arrays, context.attrs)
}
