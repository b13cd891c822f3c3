//! QR factorisation.

use mxnet_linalg::Reflectors;
use mxnet_tensor::Dims;

use super::bridge::{bytes, bytes_mut, dense, elem, failed, matrices, stack, with_threads};
use super::inverse::solve_triangular;
use super::matrix::{Part, adjoint, mask, only};
use super::{FACTORISATION, factored};
use crate::Array;
use crate::args::{Attrs, Param, ParamKind, Value};
use crate::autograd::GradContext;
use crate::batching::Batch;
use crate::elementwise::select::choose;
use crate::error::{Error, Result};
use crate::invoke::invoke;
use crate::opdef::{Cpu, Grad, Keep, OpDef, Probe};
use crate::shape::{concatenate, narrow};

/// Q and R.
pub static QR: OpDef = OpDef {
    name: "qr",
    params: &[
        Param::array("a"),
        Param::required("mode", ParamKind::Choice(&["reduced", "complete", "r"])),
    ],
    doc: "a = q r for matrices (..., m, n) with orthonormal columns q and upper triangular r: with min(m, n) columns and rows (`reduced`), q (m, m) \
          (`complete`), or r alone (`r`). The diagonal of r is real. The gradient is that of the mode `reduced`; for m > n, `complete` has none.",
    infer: |context| {
        let shape = matrices(context, 0)?;
        let (m, n, k) = (shape.m, shape.n, shape.m.min(shape.n));
        let dtype = factored(context)?;
        let of = |rows: usize, columns: usize| -> (Dims, _) {
            let lead = shape.lead.iter().copied();
            (lead.chain([rows, columns]).collect(), dtype)
        };
        match context.str("mode") {
            "complete" => context.many([of(m, m), of(m, n)]),
            "r" => context.many([of(k, n)]),
            _ => context.many([of(m, k), of(k, n)]),
        }
    },
    is_sequential: true,
    cpu: Cpu::Kernel(|context| {
        let dtype = context.output(0).dtype();
        let a = dense(context, 0, dtype)?;
        let shape = stack(a.shape());
        let (form, r) = match context.str("mode") {
            "complete" => (Reflectors::Complete, 1),
            "r" => (Reflectors::ROnly, 0),
            _ => (Reflectors::Reduced, 1),
        };
        let q = if r == 1 {
            bytes_mut(context, 0)
        } else {
            &mut []
        };
        let r = bytes_mut(context, r);
        with_threads(context, |run| {
            let (m, n) = (shape.m, shape.n);
            mxnet_linalg::qr(elem(dtype), run, form, shape.count(), m, n, bytes(&a), q, r)
        })
        .map_err(|f| failed(context, f))
    }),
    grad: Grad::Rule(Keep::ALL, |g| g.one(g.fitted(gradient(g)?, 0)?)),
    probe: Probe::calls(&[
        "f((4, 3)), 'reduced'",
        "f((3, 3)), 'complete'",
        "f((2, 3, 5)), 'reduced'",
        "f((2, 4, 3)), 'r'",
        "c((4, 2)), 'reduced'",
    ])
    .against("np.linalg.qr")
    .ulp(200),
    batch: Batch::Leading(&[2]),
    ..FACTORISATION
};

/// The Householder reflections whose product is Q.
pub static QR_RAW: OpDef = OpDef {
    name: "qr_raw",
    reports_as: Some("qr"),
    params: &[Param::array("a")],
    doc: "LAPACK's form of the factorisation of matrices (..., m, n): the transpose (..., n, m) of r with the vectors of the reflections below its diagonal, and \
          the factors tau (..., min(m, n)).",
    infer: |context| {
        let shape = matrices(context, 0)?;
        let dtype = factored(context)?;
        let lead = || shape.lead.iter().copied();
        context.many([
            (lead().chain([shape.n, shape.m]).collect(), dtype),
            (lead().chain([shape.m.min(shape.n)]).collect(), dtype),
        ])
    },
    is_sequential: true,
    cpu: Cpu::Kernel(|context| {
        let dtype = context.output(0).dtype();
        let a = dense(context, 0, dtype)?;
        let shape = stack(a.shape());
        let (h, tau) = (bytes_mut(context, 0), bytes_mut(context, 1));
        with_threads(context, |run| {
            let (m, n) = (shape.m, shape.n);
            mxnet_linalg::qr_raw(elem(dtype), run, shape.count(), m, n, bytes(&a), h, tau)
        })
        .map_err(|f| failed(context, f))
    }),
    grad: Grad::Stop("reflections are a storage form; differentiate q and r"),
    probe: Probe::calls(&["f((4, 3))", "f((2, 3, 3))", "c((3, 4))"])
        .against("lambda a: np.linalg.qr(a, 'raw')")
        .ulp(200),
    batch: Batch::Leading(&[2]),
    ..FACTORISATION
};

fn gradient(g: &GradContext) -> Result<Array> {
    let [.., m, n] = *g.shape(0) else {
        return Err(Error::internal("qr", "an operand without two axes"));
    };
    let recomputed;
    let (q, r, dq, dr): (&Array, &Array, Option<&Array>, &Array);
    if g.str("mode") == "r" {
        let attrs: Attrs = [Value::Word("reduced")].into_iter().collect();
        recomputed = invoke(&QR, &[g.input(0)], &attrs)?;
        (q, r, dq, dr) = (&recomputed[0], &recomputed[1], None, g.dy(0));
    } else {
        if g.str("mode") == "complete" && m > n {
            return Err(Error::autograd(
                "qr",
                format!("`complete` has no gradient for {m} x {n} matrices: the last {} columns of q are arbitrary", m - n),
            )
            .with_hint("mode='reduced' has one"));
        }
        (q, r, dq, dr) = (g.output(0), g.output(1), Some(g.dy(0)), g.dy(1));
    }
    if m >= n {
        return square(q, r, dq, dr);
    }
    // A = [A1 A2] with square A1 = Q R1 and A2 = Q R2. Source: Roberts and Roberts, QR and LQ decomposition matrix backpropagation algorithms, 2020.
    let columns = |x: &Array, from: usize, to: usize| narrow(x, x.ndim() - 1, from, to);
    let a2 = q.matmul(&columns(r, m, n)?)?;
    let dr2 = columns(dr, m, n)?;
    let through = a2.matmul(&adjoint(&dr2)?)?;
    let dq = match dq {
        Some(dq) => dq.add(&through)?,
        None => through,
    };
    let left = square(q, &columns(r, 0, m)?, Some(&dq), &columns(dr, 0, m)?)?;
    concatenate(&[&left, &q.matmul(&dr2)?], left.ndim() - 1)
}

/// dA = (dQ + Q sym(triu(dR R^H - Q^H dQ))) R^-H, where sym adds the conjugate transpose and halves the (real) diagonal. Source: Walter and
/// Lehmann, Algorithmic differentiation of linear algebra functions, 2010; for complex matrices R has a real diagonal.
fn square(q: &Array, r: &Array, dq: Option<&Array>, dr: &Array) -> Result<Array> {
    let mut inner = dr.matmul(&adjoint(r)?)?;
    if let Some(dq) = dq {
        inner = inner.sub(&adjoint(q)?.matmul(dq)?)?;
    }
    let upper = only(&inner.swap_last()?, Part::Lower)?.swap_last()?;
    let sum = upper.add(&adjoint(&upper)?)?;
    let n = sum.shape()[sum.ndim() - 1];
    let sym = choose(&mask(n, Part::Diagonal)?, &sum.scale(0.5)?, &sum)?;
    let mut total = q.matmul(&sym)?;
    if let Some(dq) = dq {
        total = total.add(dq)?;
    }
    // Y R^-H = (R^-1 Y^H)^H
    adjoint(&solve_triangular(r, &adjoint(&total)?, false)?)
}
