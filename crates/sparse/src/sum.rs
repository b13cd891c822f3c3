//! Sums of two sparse matrices.
#![allow(unsafe_code)]

use mxnet_core::context::CallContext;
use mxnet_core::launch::{Pool, elem};
use mxnet_core::opdef::one;
use mxnet_core::{
    Array, Attrs, Cost, Cpu, Error, Grad, Grads, Keep, Known, OpDef, Outputs, Param, Probe, Result,
    Types, invoke1,
};
use mxnet_kernels::sparse::{self, Sign};
use mxnet_tensor::{DType, Dims};
use smallvec::SmallVec;

use crate::gather::gathered;
use crate::operand::{
    Stored, check_integers, check_stored_row, compute_dtype, integer_output, integers, num_rows,
    pattern, promoted, values,
};
use crate::pattern::CSR_FIND;

pub(crate) static OPS: &[&OpDef] = &[&CSR_ADD];

/// The sum of two sparse matrices.
pub static CSR_ADD: OpDef = OpDef {
    name: "csr_add",
    params: &[
        Param::array("lhs_data"),
        Param::array("lhs_indices"),
        Param::array("lhs_indptr"),
        Param::array("rhs_data"),
        Param::array("rhs_indices"),
        Param::array("rhs_indptr"),
        Param::bool("subtract", false),
    ],
    doc: "The sum, or the difference, of two sparse matrices whose rows ascend without duplicates: values, indices and offsets over the union of their \
          patterns. Explicit zeros are stored.",
    types: Types::Infer,
    infer: |context| one(Dims::from_slice(context.shape(0))),
    cpu: Cpu::Eager(add, Known::FromValues),
    cost: Cost::PerKiB(1000),
    grad: Grad::Rule(
        Keep {
            inputs: 0b11_0110,
            outputs: 0b110,
        },
        |g| {
            let mut grads = Grads::from_elem(None, 6);
            for at in [0, 3] {
                if g.wants(at) {
                    let inputs = [g.input(at + 1), g.input(at + 2), g.output(1), g.output(2)];
                    let positions = invoke1(&CSR_FIND, &inputs, &Attrs::none())?;
                    let dx = gathered(g.dy(0), &positions)?;
                    grads[at] = Some(match at == 3 && g.bool("subtract") {
                        true => dx.neg()?,
                        false => dx,
                    });
                }
            }
            Ok(grads)
        },
    ),
    probe: Probe::calls(&[
        "f((3,)), np.array([0, 2, 1]), np.array([0, 2, 3]), f((3,)), np.array([2, 0, 1]), np.array([0, 1, 3])",
        "f((3,)), np.array([0, 2, 1]), np.array([0, 2, 3]), f((3,)), np.array([2, 0, 1]), np.array([0, 1, 3]), True",
        "f((0,)), np.zeros(0, 'int64'), np.array([0, 0]), c((1,)), np.array([2]), np.array([0, 1])",
    ])
    .against(
        "lambda a, j, p, b, k, q, minus=False: (lambda d, m: (d[m > 0], numpy.nonzero(m)[1], numpy.concatenate([[0], numpy.cumsum((m > 0).sum(1))])))(*(lambda dense: (dense(a, j, p) + (-1 if minus else 1) * dense(b, k, q), dense(a * 0 + 1, j, p).real + dense(b * 0 + 1, k, q).real))(lambda v, j, p: (lambda z: (z.__setitem__((numpy.repeat(numpy.arange(len(p) - 1), numpy.diff(p)), j), v), z)[1])(numpy.zeros((len(p) - 1, 3), v.dtype))))",
    ),
    positions: &[1, 2, 4, 5],
    ..OpDef::DEFAULT
};

fn add(context: &CallContext) -> Result<Outputs> {
    check_integers(context, &[1, 2, 4, 5])?;
    check_stored_row(context, 0, 1)?;
    check_stored_row(context, 3, 4)?;
    if context.shape(2) != context.shape(5) {
        return Err(context.shape_error(format!(
            "both matrices must have as many rows, found {} and {}",
            num_rows(context, 2)?,
            num_rows(context, 5)?
        )));
    }
    let dtype = promoted(context.dtype_of(0), context.dtype_of(3));
    let compute = compute_dtype(dtype);
    let tensor = |i: usize| context.input(i).tensor();
    let (lhs_indices, lhs_indptr) = (integers(tensor(1), &Pool)?, integers(tensor(2), &Pool)?);
    let (rhs_indices, rhs_indptr) = (integers(tensor(4), &Pool)?, integers(tensor(5), &Pool)?);
    let (lhs, rhs) = (("lhs_indices", "lhs_indptr"), ("rhs_indices", "rhs_indptr"));
    let a = pattern(context.op.name, lhs, &lhs_indices, &lhs_indptr)?;
    let b = pattern(context.op.name, rhs, &rhs_indices, &rhs_indptr)?;
    let (a_data, b_data) = (
        values(tensor(0), compute, &Pool)?,
        values(tensor(3), compute, &Pool)?,
    );
    let sign = match context.bool("subtract") {
        true => Sign::Minus,
        false => Sign::Plus,
    };
    let device = context.input(0).device();
    let indptr = Array::uninitialised(context.shape(2), DType::I64, device)?;
    let scratch = Stored::new(a.indices.len() + b.indices.len(), compute, device)?;
    let mut made = None;
    // SAFETY: dense values of this dtype, one for each stored element (checked); `scratch` and the closure provide the requested number of elements.
    unsafe {
        sparse::add(
            &Pool,
            elem(compute),
            (&a, a_data.operand()),
            (&b, b_data.operand(), sign),
            integer_output(indptr.tensor()),
            scratch.output(),
            |len| -> Result<_> { Ok(made.insert(Stored::new(len, compute, device)?).output()) },
        )
    }?;
    let made =
        made.ok_or_else(|| Error::internal(context.op.name, "the sum asked for no memory"))?;
    Ok(SmallVec::from_iter([
        made.data.astype(dtype)?,
        made.indices,
        indptr,
    ]))
}
