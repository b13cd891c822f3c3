//! Eigenvalues and eigenvectors.

use mxnet_linalg::Triangle;
use mxnet_tensor::Dims;

use super::bridge::{bytes, bytes_mut, dense, elem, failed, squares, stack, with_threads};
use super::matrix::{
    adjoint, as_column, as_row, diagonal, diagonal_matrix, hermitian, imaginary, inverse_gaps,
};
use super::{FACTORISATION, SOLVE_STACKS, dtype_within, factored};
use crate::args::{Attrs, Param, ParamKind, Value};
use crate::batching::Batch;
use crate::context::{CallContext, KernelContext};
use crate::elementwise::parts::REAL;
use crate::error::Result;
use crate::invoke::{invoke, invoke1};
use crate::opdef::{Cpu, Grad, Keep, OpDef, Probe, Surface, one_of};
use crate::{Array, Outputs};

const TRIANGLES: ParamKind = ParamKind::Choice(&["L", "U"]);

fn triangle(context: &KernelContext) -> Triangle {
    if context.str("UPLO") == "U" {
        Triangle::Upper
    } else {
        Triangle::Lower
    }
}

/// Eigenvalues and eigenvectors of Hermitian matrices.
pub static EIGH: OpDef = OpDef {
    name: "eigh",
    params: &[Param::array("a"), Param::required("UPLO", TRIANGLES)],
    doc: "a v = v diag(w) for Hermitian matrices (..., m, m), of which one triangle is read: eigenvalues w in ascending order, orthonormal columns \
          v. The gradient is that of a Hermitian matrix: both triangles share it; it needs eigenvalues that differ.",
    infer: |context| {
        let shape = squares(context, 0)?;
        let dtype = factored(context)?;
        let values: Dims = shape.lead.iter().copied().chain([shape.n]).collect();
        context.many([
            (values, dtype.real()),
            (Dims::from_slice(context.shape(0)), dtype),
        ])
    },
    is_sequential: true,
    cpu: Cpu::Kernel(|context| {
        let dtype = context.output(1).dtype();
        let a = dense(context, 0, dtype)?;
        let shape = stack(a.shape());
        let (w, v) = (bytes_mut(context, 0), bytes_mut(context, 1));
        with_threads(context, |run| {
            let (triangle, a) = (triangle(context), bytes(&a));
            mxnet_linalg::eigh(
                elem(dtype),
                run,
                triangle,
                shape.count(),
                shape.n,
                a,
                w,
                Some(v),
            )
        })
        .map_err(|f| failed(context, f))
    }),
    // dA = V (diag(dw) + V^H dV / (w_j - w_i)) V^H, made Hermitian. Source: Giles 2008, 3.1.
    grad: Grad::Rule(Keep::OUTPUTS, |g| {
        let (w, v) = (g.output(0), g.output(1));
        let h = adjoint(v)?;
        let da = if g.has_dy(1) {
            let inner = h.matmul(g.dy(1))?.mul(&inverse_gaps(w)?)?;
            v.matmul(&inner.add(&diagonal_matrix(g.dy(0))?)?)?
                .matmul(&h)?
        } else {
            v.mul(&as_row(g.dy(0))?)?.matmul(&h)?
        };
        g.one(g.fitted(hermitian(&da)?, 0)?)
    }),
    probe: Probe::calls(&[
        "(lambda x: x + x.T)(f((3, 3))), 'L'",
        "(lambda x: x + np.swapaxes(x, 1, 2))(f((2, 4, 4))), 'U'",
    ]),
    batch: Batch::Leading(&[2]),
    ..FACTORISATION
};

/// Eigenvalues of Hermitian matrices.
pub static EIGVALSH_OF: OpDef = OpDef {
    name: "eigvalsh_of",
    params: &[Param::array("a"), Param::required("UPLO", TRIANGLES)],
    doc: "Eigenvalues of Hermitian matrices (..., m, m), of which one triangle is read, in ascending order.",
    infer: |context| {
        let shape = squares(context, 0)?;
        let values: Dims = shape.lead.iter().copied().chain([shape.n]).collect();
        one_of(values, factored(context)?.real())
    },
    is_sequential: true,
    cpu: Cpu::Kernel(|context| {
        let dtype = dtype_within(context.input(0).dtype(), context.output(0).dtype());
        let a = dense(context, 0, dtype)?;
        let shape = stack(a.shape());
        let w = bytes_mut(context, 0);
        with_threads(context, |run| {
            let (triangle, a) = (triangle(context), bytes(&a));
            mxnet_linalg::eigh(
                elem(dtype),
                run,
                triangle,
                shape.count(),
                shape.n,
                a,
                w,
                None,
            )
        })
        .map_err(|f| failed(context, f))
    }),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        let attrs: Attrs = [g.get("UPLO").clone()].into_iter().collect();
        let parts = invoke(&EIGH, &[g.input(0)], &attrs)?;
        let v = &parts[1];
        let da = v.mul(&as_row(g.dy(0))?)?.matmul(&adjoint(v)?)?;
        g.one(g.fitted(hermitian(&da)?, 0)?)
    }),
    probe: Probe::calls(&[
        "(lambda x: x + x.T)(f((3, 3))), 'L'",
        "(lambda x: x + np.conj(x.T))(c((3, 3))), 'U'",
        "f((0, 0)), 'L'",
    ])
    .against("np.linalg.eigvalsh")
    .ulp(100),
    batch: Batch::Leading(&[2]),
    ..FACTORISATION
};

/// Eigenvalues and eigenvectors, complex.
pub static EIG_COMPLEX: OpDef = OpDef {
    name: "eig_complex",
    params: &[Param::array("a")],
    doc: "a v = v diag(w) for square matrices (..., m, m): eigenvalues w in no particular order, columns v of length 1 with a real largest element, all complex.",
    infer: |context| {
        let shape = squares(context, 0)?;
        let dtype = factored(context)?.complex();
        let values: Dims = shape.lead.iter().copied().chain([shape.n]).collect();
        context.many([(values, dtype), (Dims::from_slice(context.shape(0)), dtype)])
    },
    is_sequential: true,
    cpu: Cpu::Kernel(|context| {
        let dtype = dtype_within(context.input(0).dtype(), context.output(0).dtype().real());
        let a = dense(context, 0, dtype)?;
        let shape = stack(a.shape());
        let (w, v) = (bytes_mut(context, 0), bytes_mut(context, 1));
        with_threads(context, |run| {
            mxnet_linalg::eig(
                elem(dtype),
                run,
                shape.count(),
                shape.n,
                bytes(&a),
                w,
                Some(v),
            )
        })
        .map_err(|f| failed(context, f))
    }),
    // dA = V^-H (diag(dw) + (V^H dV - V^H V diag(Re(V^H dV))) / conj(w_j - w_i)) V^H, for columns of length 1 with any phase.
    // Source: Boeddeker et al., On the computation of complex-valued gradients with application to statistically optimum beamforming, 2017, (4.77).
    grad: Grad::Rule(Keep::OUTPUTS, |g| {
        let (w, v) = (g.output(0), g.output(1));
        let h = adjoint(v)?;
        let mut inner = diagonal_matrix(g.dy(0))?;
        if g.has_dy(1) {
            let product = h.matmul(g.dy(1))?;
            let along = as_row(&diagonal(&product)?.unary(&REAL)?)?;
            let across = product.sub(&h.matmul(v)?.mul(&along)?)?;
            inner = inner.add(&across.mul(&inverse_gaps(w)?.conj()?)?)?;
        }
        g.one(fitted(
            g,
            &invoke1(&SOLVE_STACKS, &[&h, &inner.matmul(&h)?], &Attrs::none())?,
        )?)
    }),
    probe: Probe::calls(&["f((3, 3))", "c((2, 3, 3))"]),
    batch: Batch::Leading(&[2]),
    ..FACTORISATION
};

/// A complex gradient in the dtype of the matrix: a real matrix takes its real part.
fn fitted(g: &crate::autograd::GradContext, da: &Array) -> Result<Array> {
    if g.dtype_of(0).is_complex() {
        return g.fitted(da.clone(), 0);
    }
    g.fitted(da.unary(&REAL)?, 0)
}

static SQUARES: &[&str] = &["np.triu(f((3, 3)))", "np.triu(c((2, 3, 3)))"];

/// Eigenvalues, complex.
pub static EIGVALS_COMPLEX: OpDef = OpDef {
    name: "eigvals_complex",
    params: &[Param::array("a")],
    doc: "Eigenvalues of square matrices (..., m, m) in no particular order, complex.",
    infer: |context| {
        let shape = squares(context, 0)?;
        let values: Dims = shape.lead.iter().copied().chain([shape.n]).collect();
        one_of(values, factored(context)?.complex())
    },
    is_sequential: true,
    cpu: Cpu::Kernel(|context| {
        let dtype = dtype_within(context.input(0).dtype(), context.output(0).dtype().real());
        let a = dense(context, 0, dtype)?;
        let shape = stack(a.shape());
        let w = bytes_mut(context, 0);
        with_threads(context, |run| {
            mxnet_linalg::eig(elem(dtype), run, shape.count(), shape.n, bytes(&a), w, None)
        })
        .map_err(|f| failed(context, f))
    }),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        let parts = invoke(&EIG_COMPLEX, &[g.input(0)], &Attrs::none())?;
        let h = adjoint(&parts[1])?;
        let side = as_column(g.dy(0))?.mul(&h)?;
        g.one(fitted(
            g,
            &invoke1(&SOLVE_STACKS, &[&h, &side], &Attrs::none())?,
        )?)
    }),
    probe: Probe::calls(SQUARES),
    batch: Batch::Leading(&[2]),
    ..FACTORISATION
};

/// NumPy's `eigvals`.
pub static EIGVALS: OpDef = OpDef {
    name: "eigvals",
    surface: &[Surface::NpLinalg("eigvals")],
    params: &[Param::array("a")],
    doc: "Eigenvalues of square matrices (..., m, m) in no particular order; real if the matrices and all eigenvalues of the stack are.",
    about: &[("a", "The matrices.")],
    returns: &[("ndarray", "Of shape (..., m).")],
    raises: &[(
        "LinAlgError",
        "If the matrices are not square or not finite.",
    )],
    example: "
        >>> np.linalg.eigvals([[2.0, 0.0], [0.0, 3.0]])
        array([2., 3.])
    ",
    cpu: Cpu::Composite(|context| {
        real_if_all_are(
            context,
            invoke(&EIGVALS_COMPLEX, &[context.input(0)], &Attrs::none())?,
        )
    }),
    probe: Probe::calls(SQUARES),
    ..OpDef::COMPOSITE
};

/// NumPy's `eig`.
pub static EIG: OpDef = OpDef {
    name: "eig",
    params: &[Param::array("a")],
    doc: "a v = v diag(w) for square matrices (..., m, m): eigenvalues w in no particular order, columns v of length 1; real if the matrices and all \
        eigenvalues of the stack are.",
    cpu: Cpu::Composite(|context| {
        real_if_all_are(
            context,
            invoke(&EIG_COMPLEX, &[context.input(0)], &Attrs::none())?,
        )
    }),
    probe: Probe::calls(SQUARES),
    ..OpDef::COMPOSITE
};

/// The real parts, if the matrices are real and all eigenvalues are.
fn real_if_all_are(context: &CallContext, found: Outputs) -> Result<Outputs> {
    if context.dtype_of(0).is_complex() {
        return Ok(found);
    }
    let parts = imaginary(&found[0].detach())?.astype(mxnet_tensor::DType::F64)?;
    if parts.to_vec::<f64>()?.iter().any(|&x| x != 0.0) {
        return Ok(found);
    }
    found.iter().map(|x| x.unary(&REAL)?.contiguous()).collect()
}

/// NumPy's `eigvalsh`.
pub static EIGVALSH: OpDef = OpDef {
    name: "eigvalsh",
    surface: &[Surface::NpLinalg("eigvalsh")],
    params: &[
        Param::array("a"),
        Param::choice("UPLO", &["L", "U", "l", "u"], "L"),
    ],
    doc: "Eigenvalues of Hermitian matrices (..., m, m) in ascending order; `UPLO` says which triangle is read. The gradient is that of a Hermitian \
        matrix.",
    about: &[
        ("a", "The matrices."),
        (
            "UPLO",
            "Which triangle is read: the lower or the upper one.",
        ),
    ],
    returns: &[("ndarray", "Real, of shape (..., m).")],
    raises: &[(
        "LinAlgError",
        "If the matrices are not square, or have more than 2 rows and are not finite.",
    )],
    example: "
        >>> np.linalg.eigvalsh([[2.0, 1.0], [1.0, 2.0]])
        array([1., 3.])
    ",
    cpu: Cpu::Composite(|context| {
        let triangle = if context.str("UPLO").eq_ignore_ascii_case("u") {
            "U"
        } else {
            "L"
        };
        let attrs: Attrs = [Value::Word(triangle)].into_iter().collect();
        context.done(invoke1(&EIGVALSH_OF, &[context.input(0)], &attrs)?)
    }),
    probe: Probe::calls(&[
        "(lambda x: x + x.T)(f((3, 3)))",
        "(lambda x: x + x.T)(f((3, 3))), 'U'",
    ])
    .ulp(100),
    ..OpDef::COMPOSITE
};
