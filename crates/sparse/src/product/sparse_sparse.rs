//! Products of two sparse matrices: whole, and at the positions of a pattern.
#![allow(unsafe_code)]

use mxnet_core::context::CallContext;
use mxnet_core::launch::{Pool, elem};
use mxnet_core::opdef::{one, one_of};
use mxnet_core::{
    Array, Attrs, Cost, Cpu, Grad, Grads, Keep, KernelContext, Known, OpDef, Outputs, Param,
    ParamKind, Probe, Result, Types, Value, invoke1,
};
use mxnet_kernels::sparse::{self, Pattern};
use mxnet_tensor::{DType, Dims};
use smallvec::SmallVec;

use crate::gather::gathered;
use crate::operand::{
    NAMES, Stored, check_integers, check_stored_row, compute_dtype, error, index_arrays,
    integer_output, integers, length, pattern, promoted, values, write,
};
use crate::pattern::transposed;

/// A sparse matrix times a sparse one.
pub static CSR_MATMUL: OpDef = OpDef {
    name: "csr_matmul",
    params: &[
        Param::array("lhs_data"),
        Param::array("lhs_indices"),
        Param::array("lhs_indptr"),
        Param::array("rhs_data"),
        Param::array("rhs_indices"),
        Param::array("rhs_indptr"),
        Param::required("num_columns", ParamKind::Int),
    ],
    doc: "The product of two sparse matrices, the second of `num_columns` columns: values, indices and offsets. Rows of the result ascend; explicit \
          zeros are stored.\n\nSource: Gustavson, Two fast algorithms for sparse matrices, ACM TOMS 4 (1978).",
    types: Types::Infer,
    infer: |context| one(Dims::from_slice(context.shape(0))),
    cpu: Cpu::Eager(matmul, Known::FromValues),
    cost: Cost::Of(matmul_cost),
    grad: Grad::Rule(
        Keep {
            inputs: u32::MAX,
            outputs: 0b110,
        },
        |g| {
            let (a, b) = ([g.input(0), g.input(1), g.input(2)], [g.input(3), g.input(4), g.input(5)]);
            let (indices, indptr) = (g.output(1), g.output(2));
            let num_columns = g.int("num_columns") as usize;
            let mut grads = Grads::from_elem(None, 6);
            if g.wants(0) {
                let data = b[0].conj()?;
                let inputs = [g.dy(0), indices, indptr, &data, b[1], b[2], a[1], a[2]];
                grads[0] = Some(sampled(&inputs, num_columns)?);
            }
            if g.wants(3) {
                // dB.T = dC.T @ conj(A), at the positions of B.T.
                let (dy_indices, dy_indptr, dy_at) = transposed(indices, indptr, num_columns)?;
                let dy = gathered(g.dy(0), &dy_at)?;
                let (a_indices, a_indptr, a_at) = transposed(a[1], a[2], g.shape(5)[0] - 1)?;
                let a_data = gathered(&a[0].conj()?, &a_at)?;
                let (b_indices, b_indptr, b_at) = transposed(b[1], b[2], num_columns)?;
                let inputs = [&dy, &dy_indices, &dy_indptr, &a_data, &a_indices, &a_indptr, &b_indices, &b_indptr];
                let found = sampled(&inputs, g.shape(2)[0] - 1)?;
                // Restores the order of B.
                let length = Value::Int(g.shape(3)[0] as i64);
                grads[3] = Some(invoke1(&crate::gather::SCATTER_OR_SKIP, &[&found, &b_at], &[length].into_iter().collect())?);
            }
            Ok(grads)
        },
    ),
    probe: Probe::calls(&[
        "f((4,)), np.array([0, 2, 1, 2]), np.array([0, 2, 2, 4]), f((4,)), np.array([1, 3, 0, 1]), np.array([0, 1, 2, 4]), 4",
        "c((3,)), np.array([0, 1, 1]), np.array([0, 2, 3]), c((2,)), np.array([0, 2]), np.array([0, 1, 2]), 3",
    ])
    .against(
        "lambda a, aj, ap, b, bj, bp, n: (lambda d: (d[0][d[1] > 0], numpy.nonzero(d[1])[1], numpy.concatenate([[0], numpy.cumsum((d[1] > 0).sum(1))])))((lambda dense: (dense(a, aj, ap, len(bp) - 1) @ dense(b, bj, bp, n), dense(numpy.ones(len(a)), aj, ap, len(bp) - 1) @ dense(numpy.ones(len(b)), bj, bp, n)))(lambda v, j, p, n: (lambda z: (z.__setitem__((numpy.repeat(numpy.arange(len(p) - 1), numpy.diff(p)), j), v), z)[1])(numpy.zeros((len(p) - 1, n), v.dtype))))",
    )
    .ulp(8),
    positions: &[1, 2, 4, 5],
    ..OpDef::DEFAULT
};

/// The product of two sparse matrices at the positions of a third pattern.
pub static CSR_SAMPLED_MATMUL: OpDef = OpDef {
    name: "csr_sampled_matmul",
    params: &[
        Param::array("lhs_data"),
        Param::array("lhs_indices"),
        Param::array("lhs_indptr"),
        Param::array("rhs_data"),
        Param::array("rhs_indices"),
        Param::array("rhs_indptr"),
        Param::array("indices"),
        Param::array("indptr"),
        Param::required("num_columns", ParamKind::Int),
    ],
    doc: "For each stored element k of row i of the last pattern the product of row i of the first matrix and row `indices[k]` of the second one, \
          both with `num_columns` columns: the elements of `lhs @ rhs.T` at the stored positions.",
    types: Types::Infer,
    infer: |context| {
        check_integers(context, &[1, 2, 4, 5, 6, 7])?;
        check_stored_row(context, 0, 1)?;
        check_stored_row(context, 3, 4)?;
        if context.shape(2) != context.shape(7) {
            return Err(context.shape_error("`lhs_indptr` and `indptr` must have the same length"));
        }
        one_of(
            Dims::from_slice(&[context.shape(6)[0]]),
            promoted(context.dtype_of(0), context.dtype_of(3)),
        )
    },
    cpu: Cpu::Kernel(sampled_matmul),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        // With S the cotangent as a matrix of the third pattern: d lhs = S @ conj(rhs) and d rhs = S.T @ conj(lhs), each at the positions of its own
        // pattern.
        let mut grads = Grads::from_elem(None, 8);
        let (indices, indptr) = (g.input(6), g.input(7));
        let num_rhs = g.shape(5)[0] - 1;
        let num_columns = g.int("num_columns") as usize;
        let column_major = |at: usize| -> Result<(Array, Array, Array)> {
            let (t_indices, t_indptr, order) = transposed(g.input(at + 1), g.input(at + 2), num_columns)?;
            Ok((gathered(&g.input(at).conj()?, &order)?, t_indices, t_indptr))
        };
        if g.wants(0) {
            let (data, t_indices, t_indptr) = column_major(3)?;
            let inputs = [g.dy(0), indices, indptr, &data, &t_indices, &t_indptr, g.input(1), g.input(2)];
            grads[0] = Some(sampled(&inputs, num_rhs)?);
        }
        if g.wants(3) {
            let (t_indices, t_indptr, at) = transposed(indices, indptr, num_rhs)?;
            let dy = gathered(g.dy(0), &at)?;
            let (data, l_indices, l_indptr) = column_major(0)?;
            let inputs = [&dy, &t_indices, &t_indptr, &data, &l_indices, &l_indptr, g.input(4), g.input(5)];
            grads[3] = Some(sampled(&inputs, g.shape(2)[0] - 1)?);
        }
        Ok(grads)
    }),
    cost: Cost::Of(|context| (context.input(0).len() + context.input(3).len() + 16 * context.input(6).len()) as u64),
    probe: Probe::calls(&[
        "f((4,)), np.array([0, 2, 1, 2]), np.array([0, 2, 2, 4]), f((4,)), np.array([1, 2, 0, 1]), np.array([0, 1, 2, 4]), np.array([0, 1, 2, 2]), np.array([0, 2, 3, 4]), 3",
    ])
    .against(
        "lambda a, aj, ap, b, bj, bp, j, p, n: (lambda dense: (dense(a, aj, ap, n) @ dense(b, bj, bp, n).T)[numpy.repeat(numpy.arange(len(p) - 1), numpy.diff(p)), j])(lambda v, j, p, n: (lambda z: (z.__setitem__((numpy.repeat(numpy.arange(len(p) - 1), numpy.diff(p)), j), v), z)[1])(numpy.zeros((len(p) - 1, n), v.dtype)))",
    )
    .ulp(8),
    positions: &[1, 2, 4, 5, 6, 7],
    ..OpDef::DEFAULT
};

fn sampled(inputs: &[&Array], num_columns: usize) -> Result<Array> {
    let attrs: Attrs = [Value::Int(num_columns as i64)].into_iter().collect();
    invoke1(&CSR_SAMPLED_MATMUL, inputs, &attrs)
}

/// Nanoseconds of a sparse product: each stored element of the first matrix meets a row of the second, of mean length.
fn matmul_cost(context: &CallContext) -> u64 {
    let of = |i: usize| context.input(i).len() as u64;
    of(0).saturating_mul(8 + 8 * of(3) / of(5).max(1))
}

fn matmul(context: &CallContext) -> Result<Outputs> {
    check_integers(context, &[1, 2, 4, 5])?;
    check_stored_row(context, 0, 1)?;
    check_stored_row(context, 3, 4)?;
    let num_columns = length(context, "num_columns")?;
    let dtype = promoted(context.dtype_of(0), context.dtype_of(3));
    let compute = compute_dtype(dtype);
    let tensor = |i: usize| context.input(i).tensor();
    let lhs_indices = integers(tensor(1), &Pool)?;
    let lhs_indptr = integers(tensor(2), &Pool)?;
    let rhs_indices = integers(tensor(4), &Pool)?;
    let rhs_indptr = integers(tensor(5), &Pool)?;
    let (lhs, rhs) = (("lhs_indices", "lhs_indptr"), ("rhs_indices", "rhs_indptr"));
    let a: Pattern = pattern(context.op.name, lhs, &lhs_indices, &lhs_indptr)?;
    let b: Pattern = pattern(context.op.name, rhs, &rhs_indices, &rhs_indptr)?;
    let a_data = values(tensor(0), compute, &Pool)?;
    let b_data = values(tensor(3), compute, &Pool)?;
    let device = context.input(0).device();
    let indptr = Array::uninitialised(context.shape(2), DType::I64, device)?;
    let mut made = None;
    // SAFETY: dense values of this dtype, one for each stored element (checked); the closure allocates the requested number of elements.
    unsafe {
        sparse::matmul(
            &Pool,
            elem(compute),
            (&a, a_data.operand()),
            (&b, b_data.operand()),
            num_columns,
            integer_output(indptr.tensor()),
            |len| -> Result<_> { Ok(made.insert(Stored::new(len, compute, device)?).output()) },
        )
    }?
    .map_err(|fault| {
        let is_row = |&j: &i64| (j as u64) < b.num_rows() as u64;
        match a.indices.iter().all(is_row) {
            true => error(context.op.name, rhs, fault, Some(num_columns)),
            false => error(context.op.name, lhs, fault, Some(b.num_rows())),
        }
    })?;
    // Stored elements of a matrix without rows or columns are the only fault that has no position.
    let made = made.ok_or_else(|| {
        let problem = "a matrix without rows or columns has stored elements";
        mxnet_core::Error::index(context.op.name, problem)
    })?;
    Ok(SmallVec::from_iter([
        made.data.astype(dtype)?,
        made.indices,
        indptr,
    ]))
}

fn sampled_matmul(context: &KernelContext) -> Result<()> {
    let out = context.output(0);
    let compute = compute_dtype(out.dtype());
    let (a_indices, a_indptr) = index_arrays(context, 1)?;
    let (b_indices, b_indptr) = index_arrays(context, 4)?;
    let (indices, indptr) = index_arrays(context, 6)?;
    let (lhs, rhs) = (("lhs_indices", "lhs_indptr"), ("rhs_indices", "rhs_indptr"));
    let a = pattern(context.op.name, lhs, &a_indices, &a_indptr)?;
    let b = pattern(context.op.name, rhs, &b_indices, &b_indptr)?;
    let sampled_pattern = pattern(context.op.name, NAMES, &indices, &indptr)?;
    let a_data = values(context.input(0), compute, context.threads)?;
    let b_data = values(context.input(3), compute, context.threads)?;
    let num_columns = usize::try_from(context.int("num_columns")).unwrap_or(0);
    write(out, compute, context.threads, |to| {
        // SAFETY: dense values of this dtype, one for each stored element (inference); `to` has as many elements as the output.
        unsafe {
            sparse::sampled_matmul(
                context.threads,
                elem(compute),
                (&a, a_data.operand()),
                (&b, b_data.operand()),
                num_columns,
                &sampled_pattern,
                to,
            )
        }
        .map_err(|fault| error(context.op.name, NAMES, fault, None))
    })
}
