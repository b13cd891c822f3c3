//! Pseudo-inverses.

use mxnet_tensor::{DType, Dims};

use super::bridge::matrices;
use super::matrix::{adjoint, as_row, number};
use super::{EIGH, SVD, cost_ns, factored};
use crate::args::{Attrs, Param, ParamKind, Value};
use crate::autograd::GradContext;
use crate::context::CallContext;
use crate::elementwise::comparison::GREATER;
use crate::elementwise::select::choose;
use crate::error::Result;
use crate::invoke::{invoke, invoke1};
use crate::opdef::{Amp, Cost, Cpu, Grad, Grads, Inferred, Keep, Known, OpDef, OutSpec, Probe};
use crate::reduce::MAX;
use crate::{Array, Outputs, creation};

/// Pseudo-inverses and singular values.
pub static PINV: OpDef = OpDef {
    name: "pinv",
    params: &[
        Param::array("a"),
        Param::array("rcond"),
        Param::required("hermitian", ParamKind::Bool),
    ],
    doc: "Moore-Penrose inverses (..., n, m) of matrices (..., m, n), and the singular values (of Hermitian matrices: absolute values of \
        eigenvalues). Values up to `rcond` (...) times the largest count as zero. The gradient takes the rank as constant.",
    infer: |context| {
        let (shape, dtype) = (matrices(context, 0)?, factored_matrix(context)?);
        let of = |tail: &[usize], dtype| OutSpec {
            shape: shape.lead.iter().chain(tail).copied().collect(),
            dtype: Some(dtype),
        };
        Ok(Inferred::from_iter([
            of(&[shape.n, shape.m], dtype),
            of(&[shape.m.min(shape.n)], dtype.real()),
        ]))
    },
    cpu: Cpu::Eager(pinv, Known::ByRule),
    cost: Cost::Of(cost_ns),
    grad: Grad::Rule(Keep::ALL, gradient),
    amp: Amp::WidenToF32,
    probe: Probe::calls(&[
        "f((3, 2)), np.array(1e-6), False",
        "f((2, 2, 3)), np.array(1e-6), False",
    ])
    .against("lambda a, rcond, hermitian: (np.linalg.pinv(a, rcond), np.linalg.svdvals(a))")
    .ulp(2000),
    ..OpDef::DEFAULT
};

fn pinv(context: &CallContext) -> Result<Outputs> {
    let shape = matrices(context, 0)?;
    let dtype = factored_matrix(context)?;
    let a = if context.dtype_of(0) == dtype {
        context.input(0).clone()
    } else {
        context.input(0).astype(dtype)?
    };
    let lead = || shape.lead.iter().copied();
    if a.is_empty() {
        let values: Dims = lead().chain([shape.m.min(shape.n)]).collect();
        let inverses: Dims = lead().chain([shape.n, shape.m]).collect();
        let device = a.device();
        return Ok(Outputs::from_iter([
            creation::zeros(&inverses, dtype, device)?,
            creation::zeros(&values, dtype.real(), device)?,
        ]));
    }
    let (left, values, right, sizes) = if context.bool("hermitian") {
        let parts = invoke(&EIGH, &[&a], &[Value::Word("L")].into_iter().collect())?;
        let (w, v) = (parts[0].clone(), parts[1].clone());
        let sizes = w.abs()?;
        (v.clone(), w, adjoint(&v)?, sizes)
    } else {
        let parts = invoke(&SVD, &[&a], &[Value::Bool(false)].into_iter().collect())?;
        let s = parts[1].clone();
        (adjoint(&parts[2])?, s.clone(), adjoint(&parts[0])?, s)
    };
    let inverse = reciprocals(&values, &sizes, context.input(1))?;
    let result = left.mul(&as_row(&inverse)?)?.matmul(&right)?;
    Ok(Outputs::from_iter([result, sizes]))
}

/// 1 / value for values whose size is above `rcond` times the largest; 0 for the others.
fn reciprocals(values: &Array, sizes: &Array, rcond: &Array) -> Result<Array> {
    let attrs: Attrs = [Value::from(&[-1_i64][..]), Value::Bool(true)]
        .into_iter()
        .collect();
    let largest = invoke1(&MAX, &[sizes], &attrs)?;
    let mut column = Dims::from_slice(rcond.shape());
    column.push(1);
    let least = rcond
        .astype(sizes.dtype())?
        .reshape(&column)?
        .mul(&largest)?;
    let kept = sizes.binary(&GREATER, &least)?;
    choose(&kept, &values.reciprocal()?, &number(0.0)?)
}

/// The dtype of the matrices: the tolerance takes no part in promotion.
fn factored_matrix(context: &CallContext) -> Result<DType> {
    factored(&CallContext {
        inputs: &context.inputs[..1],
        ..*context
    })
}

/// With P = A^+ of constant rank: dP = -P dA P + P P^H dA^H (I - A P) + (I - P A) dA^H P^H P. Source: Golub and Pereyra, The differentiation of pseudo-inverses
/// and nonlinear least squares problems whose variables separate, 1973, (4.12).
fn gradient(g: &GradContext) -> Result<Grads> {
    let (a, p) = (g.input(0), g.output(0));
    let h = adjoint(p)?;
    let mut da = None;
    if g.has_dy(0) {
        let dp = g.dy(0);
        let first = h.matmul(dp)?.matmul(&h)?.neg()?;
        // (I - A P) dP^H P P^H
        let right = adjoint(dp)?.matmul(p)?.matmul(&h)?;
        let second = right.sub(&a.matmul(&p.matmul(&right)?)?)?;
        // P^H P dP^H (I - P A)
        let left = h.matmul(p)?.matmul(&adjoint(dp)?)?;
        let third = left.sub(&left.matmul(p)?.matmul(a)?)?;
        da = Some(first.add(&second)?.add(&third)?);
    }
    if g.has_dy(1) {
        let parts = invoke(&SVD, &[a], &[Value::Bool(false)].into_iter().collect())?;
        let through = parts[0].mul(&as_row(g.dy(1))?)?.matmul(&parts[2])?;
        da = Some(match da {
            Some(da) => da.add(&through)?,
            None => through,
        });
    }
    let da = da.map(|da| g.fitted(da, 0)).transpose()?;
    Ok(Grads::from_iter([da, None]))
}
