//! Determinants.

use mxnet_tensor::Dims;

use super::bridge::{bytes, bytes_mut, dense, elem, failed, squares, stack, with_threads};
use super::inverse::inverse;
use super::matrix::{adjoint, as_element, diagonal, imaginary, times_i};
use super::{FACTORISATION, factored};
use crate::Array;
use crate::args::{Attrs, Param};
use crate::batching::Batch;
use crate::context::CallContext;
use crate::error::Result;
use crate::invoke::invoke1;
use crate::opdef::{Cpu, FpErrors, Grad, GradRule, Inferred, Keep, OpDef, Probe, Surface, one};

fn per_matrix(context: &CallContext) -> Result<Inferred> {
    one(Dims::from_slice(squares(context, 0)?.lead))
}

/// Determinants.
pub static DET: OpDef = OpDef {
    name: "det",
    surface: &[Surface::NpLinalg("det")],
    params: &[Param::array("a")],
    doc: "Determinants of square matrices (..., m, m), by LU factors. The gradient exists for singular matrices too.",
    about: &[("a", "The matrices.")],
    returns: &[("ndarray", "Of shape (...).")],
    raises: &[("LinAlgError", "If the matrices are not square.")],
    example: "
        >>> np.linalg.det([[1.0, 2.0], [3.0, 4.0]])
        array(-1.9999999)
    ",
    infer: per_matrix,
    cpu: Cpu::Kernel(|context| {
        let dtype = context.output(0).dtype();
        let a = dense(context, 0, dtype)?;
        let shape = stack(a.shape());
        let y = bytes_mut(context, 0);
        with_threads(context, |run| {
            mxnet_linalg::det(elem(dtype), run, shape.count(), shape.n, bytes(&a), y);
        });
        Ok(())
    }),
    // The derivative with respect to an element is its cofactor. Source: Giles 2008, 2.2.4.
    grad: Grad::Rule(Keep::INPUTS, |g| {
        let slopes = invoke1(&COFACTORS, &[g.input(0)], &Attrs::none())?;
        g.one(as_element(g.dy(0))?.mul(&slopes.conj()?)?)
    }),
    probe: Probe::calls(&[
        "f((1, 1))",
        "f((2, 2))",
        "f((2, 4, 4))",
        "f((0, 0))",
        "f((0, 3, 3))",
        "c((3, 3))",
    ])
    .ulp(200),
    batch: Batch::Leading(&[2]),
    ..FACTORISATION
};

/// Derivatives of determinants with respect to the matrix elements.
pub static COFACTORS: OpDef = OpDef {
    name: "cofactors",
    params: &[Param::array("a")],
    doc: "The derivatives of determinants with respect to the elements of square matrices (..., m, m): det(a) times the transposed inverse, and its \
          limit for singular matrices.",
    infer: |context| {
        squares(context, 0)?;
        one(Dims::from_slice(context.shape(0)))
    },
    cpu: Cpu::Kernel(|context| {
        let dtype = context.output(0).dtype();
        let a = dense(context, 0, dtype)?;
        let shape = stack(a.shape());
        let c = bytes_mut(context, 0);
        with_threads(context, |run| {
            mxnet_linalg::cofactors(elem(dtype), run, shape.count(), shape.n, bytes(&a), c)
        })
        .map_err(|f| failed(context, f))
    }),
    grad: Grad::Rule(Keep::INPUTS, COFACTOR_RULE),
    probe: Probe::calls(&["f((3, 3))", "c((2, 2, 2))"])
        .against(
            "lambda a: np.linalg.det(a)[..., None, None] * np.swapaxes(np.linalg.inv(a), -1, -2)",
        )
        .ulp(2000),
    batch: Batch::Leading(&[2]),
    ..FACTORISATION
};

/// With B = A^-1, C = det(A) B^T: dC = det(A) (tr(B dA) B^T - B^T dA^T B^T). The inverse must exist.
const COFACTOR_RULE: GradRule = |g| {
    let (a, dc) = (g.input(0), g.dy(0));
    let inverse = inverse(a)?;
    let det = as_element(&a.unary(&DET)?)?;
    let h = adjoint(&inverse)?;
    // sum(conj(dC) * B^T) = tr(dC^H B^T), one number for each matrix.
    let trace = diagonal(&adjoint(dc)?.matmul(&inverse.swap_last()?)?)?.sum(Some(&[-1]), false)?;
    let first = as_element(&trace.conj()?)?.mul(&h)?;
    let second = h.matmul(&dc.swap_last()?)?.matmul(&h)?;
    g.one(det.conj()?.mul(&first.sub(&second)?)?)
};

/// Sign and logarithm of the absolute value of determinants.
pub static SLOGDET: OpDef = OpDef {
    name: "slogdet",
    params: &[Param::array("a")],
    doc: "Signs (complex: of length 1) and logarithms of the absolute value of the determinants of square matrices (..., m, m). Singular ones have sign 0 and \
          logarithm -inf.",
    infer: |context| {
        let lead = Dims::from_slice(squares(context, 0)?.lead);
        let dtype = factored(context)?;
        context.many([(lead.clone(), dtype), (lead, dtype.real())])
    },
    fp_errors: FpErrors {
        silent: true,
        ..FpErrors::DEFAULT
    },
    cpu: Cpu::Kernel(|context| {
        let dtype = context.output(0).dtype();
        let a = dense(context, 0, dtype)?;
        let shape = stack(a.shape());
        let (sign, log) = (bytes_mut(context, 0), bytes_mut(context, 1));
        with_threads(context, |run| {
            mxnet_linalg::slogdet(
                elem(dtype),
                run,
                shape.count(),
                shape.n,
                bytes(&a),
                sign,
                log,
            );
        });
        Ok(())
    }),
    // With t = tr(A^-1 dA): d log = Re t, d sign = i sign Im t. So dA = (d log - i Im(conj(d sign) sign)) A^-H.
    grad: Grad::Rule(
        Keep {
            inputs: 1,
            outputs: 1,
        },
        |g| {
            let h = adjoint(&inverse(g.input(0))?)?;
            let mut factor: Array = g.dy(1).clone();
            if h.dtype().is_complex() {
                let turn = imaginary(&g.dy(0).conj()?.mul(g.output(0))?)?;
                factor = factor.sub(&times_i(&turn)?)?;
            }
            g.one(g.fitted(as_element(&factor)?.mul(&h)?, 0)?)
        },
    ),
    probe: Probe::calls(&["f((3, 3))", "f((2, 2, 2))", "c((3, 3))", "f((0, 0))"])
        .against("np.linalg.slogdet")
        .ulp(200),
    batch: Batch::Leading(&[2]),
    ..FACTORISATION
};
