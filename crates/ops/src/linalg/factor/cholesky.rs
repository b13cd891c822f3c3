//! Cholesky factors.

use mxnet_tensor::Dims;

use super::FACTORISATION;
use super::bridge::{bytes, bytes_mut, dense, elem, failed, squares, stack, with_threads};
use super::inverse::solve_triangular;
use super::matrix::{Part, adjoint, hermitian, mask, only};
use crate::args::{Attrs, Param};
use crate::batching::Batch;
use crate::elementwise::select::choose;
use crate::invoke::invoke1;
use crate::opdef::{Cpu, Grad, Keep, OpDef, Probe, Surface, one};

const POSITIVE: &[&str] = &[
    "(lambda x: np.matmul(x, x.T) + 3 * np.eye(3, dtype='float32'))(f((3, 3)))",
    "(lambda x: np.matmul(x, np.conj(x.T)) + 3 * np.eye(3, dtype='float32'))(c((3, 3)))",
    "(lambda x: np.matmul(x, np.swapaxes(x, 1, 2)) + 3 * np.eye(4, dtype='float32'))(f((2, 4, 4)))",
    "f((0, 0))",
];

const EITHER: &[&str] = &[
    "(lambda x: np.matmul(x, x.T) + 3 * np.eye(3, dtype='float32'))(f((3, 3)))",
    "(lambda x: np.matmul(x, np.conj(x.T)) + 3 * np.eye(3, dtype='float32'))(c((3, 3))), upper=True",
];

/// Lower Cholesky factors.
pub static CHOLESKY_LOWER: OpDef = OpDef {
    name: "cholesky_lower",
    params: &[Param::array("a")],
    doc: "The lower triangular l with l l^H = a. Only the lower triangle of `a` is read.",
    infer: |context| {
        squares(context, 0)?;
        one(Dims::from_slice(context.shape(0)))
    },
    is_sequential: true,
    cpu: Cpu::Kernel(|context| {
        let dtype = context.output(0).dtype();
        let a = dense(context, 0, dtype)?;
        let shape = stack(a.shape());
        let l = bytes_mut(context, 0);
        with_threads(context, |run| {
            mxnet_linalg::cholesky(elem(dtype), run, shape.count(), shape.n, bytes(&a), l)
        })
        .map_err(|f| failed(context, f))
    }),
    // dA = L^-H phi(L^H dL) L^-1, made Hermitian, where phi takes the lower triangle and half the diagonal.
    // Source: Murray, Differentiation of the Cholesky decomposition, 2016, (7)-(10).
    grad: Grad::Rule(Keep::OUTPUTS, |g| {
        let l = g.output(0);
        let upper = adjoint(l)?;
        let product = upper.matmul(g.dy(0))?;
        let n = product.shape()[product.ndim() - 1];
        let halved = choose(&mask(n, Part::Diagonal)?, &product.scale(0.5)?, &product)?;
        let phi = only(&halved, Part::Lower)?;
        let left = solve_triangular(&upper, &phi, false)?;
        let both = adjoint(&solve_triangular(&upper, &adjoint(&left)?, false)?)?;
        g.one(hermitian(&both)?)
    }),
    probe: Probe::calls(POSITIVE)
        .against("np.linalg.cholesky")
        .ulp(200),
    batch: Batch::Leading(&[2]),
    ..FACTORISATION
};

/// NumPy's `cholesky`.
pub static CHOLESKY: OpDef = OpDef {
    name: "cholesky",
    surface: &[Surface::NpLinalg("cholesky")],
    params: &[Param::array("a"), Param::bool("upper", false).keyword()],
    doc: "Cholesky factors of Hermitian positive definite matrices (..., m, m): the lower triangular l with l l^H = a, or with `upper` the u with \
          u^H u = a. Only that triangle of `a` is read. The gradient is that of a Hermitian matrix: both triangles share it.",
    about: &[
        ("a", "The matrices."),
        ("upper", "Which triangle is the factor."),
    ],
    returns: &[("ndarray", "Of the shape of `a`.")],
    raises: &[(
        "LinAlgError",
        "If the matrices are not square, or one is not positive definite.",
    )],
    example: "
        >>> np.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]])
        array([[2., 0.],
               [1., 2.]])
    ",
    cpu: Cpu::Composite(|context| {
        squares(context, 0)?;
        let a = context.input(0);
        if !context.bool("upper") {
            return context.done(invoke1(&CHOLESKY_LOWER, &[a], &Attrs::none())?);
        }
        let lower = invoke1(&CHOLESKY_LOWER, &[&adjoint(a)?], &Attrs::none())?;
        context.done(adjoint(&lower)?.contiguous()?)
    }),
    probe: Probe::calls(EITHER).ulp(200),
    ..OpDef::COMPOSITE
};
