//! Singular values and vectors.

use mxnet_linalg::Vectors;
use mxnet_tensor::Dims;

use super::bridge::{bytes, bytes_mut, dense, elem, failed, matrices, stack, with_threads};
use super::matrix::{
    Part, adjoint, as_column, as_row, diagonal, diagonal_matrix, imaginary, inverse_gaps, mask,
    number, times_i,
};
use super::{FACTORISATION, factored};
use crate::Array;
use crate::args::{Attrs, Param, ParamKind, Value};
use crate::autograd::GradContext;
use crate::batching::Batch;
use crate::elementwise::select::choose;
use crate::error::Result;
use crate::invoke::invoke;
use crate::opdef::{Cpu, Grad, Keep, OpDef, Probe, Surface, one_of};
use crate::shape::narrow;

/// Left singular vectors, singular values, right singular vectors.
pub static SVD: OpDef = OpDef {
    name: "svd",
    params: &[
        Param::array("a"),
        Param::required("full_matrices", ParamKind::Bool),
    ],
    doc: "a = u diag(s) vh for matrices (..., m, n): orthonormal columns u, singular values s in descending order, orthonormal rows vh; all columns \
          and rows, or the first min(m, n). The gradient needs singular values that differ (and are not 0, if m and n differ), and is that of the \
          first min(m, n) vectors.",
    infer: |context| {
        let shape = matrices(context, 0)?;
        let (m, n, k) = (shape.m, shape.n, shape.m.min(shape.n));
        let dtype = factored(context)?;
        let (left, right) = if context.bool("full_matrices") {
            (m, n)
        } else {
            (k, k)
        };
        let of = |last: &[usize]| -> Dims { shape.lead.iter().chain(last).copied().collect() };
        context.many([
            (of(&[m, left]), dtype),
            (of(&[k]), dtype.real()),
            (of(&[right, n]), dtype),
        ])
    },
    is_sequential: true,
    cpu: Cpu::Kernel(|context| {
        let dtype = context.output(0).dtype();
        let a = dense(context, 0, dtype)?;
        let shape = stack(a.shape());
        let vectors = if context.bool("full_matrices") {
            Vectors::Full
        } else {
            Vectors::Reduced
        };
        let (u, s, vh) = (
            bytes_mut(context, 0),
            bytes_mut(context, 1),
            bytes_mut(context, 2),
        );
        with_threads(context, |run| {
            let (m, n) = (shape.m, shape.n);
            mxnet_linalg::svd(
                elem(dtype),
                run,
                vectors,
                shape.count(),
                m,
                n,
                bytes(&a),
                u,
                s,
                vh,
            )
        })
        .map_err(|f| failed(context, f))
    }),
    grad: Grad::Rule(Keep::OUTPUTS, |g| g.one(g.fitted(gradient(g)?, 0)?)),
    probe: Probe::calls(&["f((3, 3)), True", "f((4, 2)), False", "c((2, 3, 4)), False"]),
    batch: Batch::Leading(&[2]),
    ..FACTORISATION
};

/// Singular values.
pub static SVDVALS: OpDef = OpDef {
    name: "svdvals",
    surface: &[Surface::NpLinalg("svdvals")],
    params: &[Param::array("x")],
    doc: "Singular values of matrices (..., m, n) in descending order. A matrix with infinities gives NaN, as in NumPy.",
    about: &[("x", "The matrices.")],
    returns: &[("ndarray", "Real, of shape (..., min(m, n)).")],
    raises: &[("LinAlgError", "If a matrix holds NaNs.")],
    example: "
        >>> np.linalg.svdvals([[3.0, 0.0], [0.0, 4.0]])
        array([4., 3.])
    ",
    infer: |context| {
        let shape = matrices(context, 0)?;
        let dims: Dims = shape
            .lead
            .iter()
            .copied()
            .chain([shape.m.min(shape.n)])
            .collect();
        one_of(dims, factored(context)?.real())
    },
    is_sequential: true,
    cpu: Cpu::Kernel(|context| {
        let x = context.input(0);
        let dtype = super::dtype_within(x.dtype(), context.output(0).dtype());
        let a = dense(context, 0, dtype)?;
        let shape = stack(a.shape());
        let s = bytes_mut(context, 0);
        with_threads(context, |run| {
            let (m, n) = (shape.m, shape.n);
            let (a, no) = (bytes(&a), Vectors::No);
            mxnet_linalg::svd(
                elem(dtype),
                run,
                no,
                shape.count(),
                m,
                n,
                a,
                &mut [],
                s,
                &mut [],
            )
        })
        .map_err(|f| failed(context, f))
    }),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        let attrs: Attrs = [Value::Bool(false)].into_iter().collect();
        let parts = invoke(&SVD, &[g.input(0)], &attrs)?;
        let da = parts[0].mul(&as_row(g.dy(0))?)?.matmul(&parts[2])?;
        g.one(g.fitted(da, 0)?)
    }),
    probe: Probe::calls(&[
        "f((3, 3))",
        "f((2, 4, 3))",
        "c((2, 3))",
        "f((0, 3))",
        "f((3, 0))",
    ])
    .ulp(100),
    batch: Batch::Leading(&[2]),
    ..FACTORISATION
};

/// Source: Townsend, Differentiating the singular value decomposition, 2016; for the phases of complex vectors: Wan and Zhang, Automatic
/// differentiation for complex valued SVD, 2019.
fn gradient(g: &GradContext) -> Result<Array> {
    let [.., m, n] = *g.shape(0) else {
        return Err(crate::Error::internal("svd", "an operand without two axes"));
    };
    let k = m.min(n);
    let left = |x: &Array| narrow(x, x.ndim() - 1, 0, k);
    let right = |x: &Array| narrow(x, x.ndim() - 2, 0, k);
    let (u, s, vh) = (left(g.output(0))?, g.output(1), right(g.output(2))?);
    let mut inner = diagonal_matrix(g.dy(1))?;
    if !g.has_dy(0) && !g.has_dy(2) {
        return u.mul(&as_row(g.dy(1))?)?.matmul(&vh);
    }
    let (du, dvh) = (left(g.dy(0))?, right(g.dy(2))?);
    // 1 / (s_j^2 - s_i^2) off the diagonal.
    let sums = as_row(s)?.add(&as_column(s)?)?;
    let sums = choose(&mask(k, Part::Diagonal)?, &number(1.0)?, &sums)?;
    let gaps = inverse_gaps(s)?.div(&sums)?;
    let skew = |x: &Array| x.sub(&adjoint(x)?);
    let (uu, vv) = (adjoint(&u)?.matmul(&du)?, vh.matmul(&adjoint(&dvh)?)?);
    inner = inner.add(&skew(&uu)?.mul(&gaps)?.mul(&as_row(s)?)?)?;
    inner = inner.add(&as_column(s)?.mul(&skew(&vv)?.mul(&gaps)?)?)?;
    if u.dtype().is_complex() {
        let phase = imaginary(&diagonal(&uu)?)?.div(s)?;
        inner = inner.add(&diagonal_matrix(&times_i(&phase)?)?)?;
    }
    let mut da = u.matmul(&inner)?.matmul(&vh)?;
    let inverse = as_row(&s.reciprocal()?)?;
    if m > k {
        let outside = du.sub(&u.matmul(&uu)?)?;
        da = da.add(&outside.mul(&inverse)?.matmul(&vh)?)?;
    }
    if n > k {
        let outside = dvh.sub(&dvh.matmul(&adjoint(&vh)?)?.matmul(&vh)?)?;
        da = da.add(&u.mul(&inverse)?.matmul(&outside)?)?;
    }
    Ok(da)
}
