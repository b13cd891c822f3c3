//! Products: sparse with dense, dense at the positions of a pattern, sparse with sparse.
#![allow(unsafe_code)]

use mxnet_core::autograd::RowSparse;
use mxnet_core::context::CallCx;
use mxnet_core::launch::{Pool, elem};
use mxnet_core::opdef::RowGrad;
use mxnet_core::opdef::{one, one_of};
use mxnet_core::{
    Array, Attrs, Cost, Cpu, Grad, Grads, Inferred, Keep, KernelCx, Known, OpDef, Outputs, Param,
    ParamKind, Probe, Result, Tuple, Types, Value, invoke, invoke1,
};
use mxnet_kernels::sparse::{self, Heads, Pattern};
use mxnet_ops::order::{SEARCH_ROWS, UNIQUE_SORTED};
use mxnet_tensor::{DType, DeviceKind, Dims};
use smallvec::SmallVec;

use crate::gather::gathered;
use crate::operand::{
    NAMES, Stored, check_integers, check_stored, check_stored_row, compute_dtype, error,
    index_arrays, integer_output, integers, length, num_rows, pattern, promoted, values, write,
};
use crate::pattern::CSR_TRANSPOSE;

pub(crate) static OPS: &[&OpDef] = &[
    &CSR_MATMUL_DENSE,
    &CSR_TRANSPOSED_MATMUL_DENSE,
    &CSR_SAMPLED_DENSE,
    &CSR_MATMUL,
    &CSR_SAMPLED_MATMUL,
];

/// A sparse matrix times a dense array.
pub static CSR_MATMUL_DENSE: OpDef = OpDef {
    name: "csr_matmul_dense",
    params: &[
        Param::array("data"),
        Param::array("indices"),
        Param::array("indptr"),
        Param::array("x"),
    ],
    doc: "For each row of a pattern the sum of `data[k] * x[indices[k]]` over its stored elements k: the product of a sparse matrix with a dense \
          one, whose rows may have any shape. If `data` has shape (nnz, heads), the first axis of the rows of `x` has length `heads`, and each head \
          is a separate product.",
    types: Types::Infer,
    infer: infer_matmul_dense,
    cpu: Cpu::Kernel(matmul_dense),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        let (data, indices, indptr, x) = (g.input(0), g.input(1), g.input(2), g.input(3));
        let mut grads = Grads::from_elem(None, 4);
        if g.wants(0) {
            let x = x.conj()?;
            let attrs = heads_of(g.shape(0).len() > 1);
            grads[0] = Some(invoke1(&CSR_SAMPLED_DENSE, &[g.dy(0), &x, indices, indptr], &attrs)?);
        }
        if g.wants(3) {
            grads[3] = Some(times_transposed(&data.conj()?, indices, indptr, g.dy(0), g.shape(3)[0])?);
        }
        Ok(grads)
    }),
    row_grad: Some(RowGrad {
        name: "matmul",
        input: 3,
        applies: |g| g.takes_rows(3),
        rule: |g| {
            // The product with the transposed pattern, restricted to the stored columns: other rows have no gradient.
            let (data, indices, indptr) = (g.input(0), g.input(1), g.input(2));
            let rows = invoke1(&UNIQUE_SORTED, &[indices], &[Value::Bool(true)].into_iter().collect())?;
            let at = invoke1(&SEARCH_ROWS, &[&rows, indices], &[Value::Bool(false)].into_iter().collect())?;
            let (at, indptr, order) = transposed(&at, indptr, rows.len())?;
            let data = gathered(&data.conj()?, &order)?;
            let dx = invoke1(&CSR_MATMUL_DENSE, &[&data, &at, &indptr, g.dy(0)], &Attrs::none())?;
            RowSparse::new(rows, dx, g.shape(3))
        },
        instead: "use a variable with a dense gradient, or call the function outside the compiled one",
    }),
    cost: Cost::Of(|cx| product_cost(cx, 0, 3)),
    probe: Probe::calls(&[
        "f((4,)), np.array([0, 2, 1, 2]), np.array([0, 2, 2, 4]), f((3,))",
        "f((4,)), np.array([0, 2, 1, 2]), np.array([0, 2, 2, 4]), f((3, 5))",
        "f((4,)), np.array([0, 2, 1, 2]), np.array([0, 2, 2, 4]), f((3, 37))",
        "f((4, 2)), np.array([0, 2, 1, 2]), np.array([0, 2, 2, 4]), f((3, 2, 5))",
        "c((4,)), np.array([0, 2, 1, 2]), np.array([0, 2, 2, 4]), c((3, 2))",
        "i((4,)), np.array([0, 2, 1, 2]), np.array([0, 2, 2, 4]), i((3, 2))",
    ])
    .against(
        "lambda data, j, p, x: (lambda m: numpy.stack([m[a:b].sum(0) for a, b in zip(p, p[1:])]))(data.reshape(data.shape + (1,) * (x.ndim - data.ndim)) * x[j])",
    )
    .ulp(8),
    // No `positions`: the kernel checks every index and offset when it reads it, so that it stays within the operands even if other code changes
    // shared memory meanwhile. Large patterns need no copy.
    ..OpDef::DEFAULT
};

/// The transpose of a sparse matrix times a dense array.
pub static CSR_TRANSPOSED_MATMUL_DENSE: OpDef = OpDef {
    name: "csr_transposed_matmul_dense",
    params: &[
        Param::array("data"),
        Param::array("indices"),
        Param::array("indptr"),
        Param::array("x"),
        Param::required("num_columns", ParamKind::Int),
    ],
    doc: "For each of `num_columns` columns of a pattern the sum of `data[k] * x[i]` over its stored elements k, where i is the row of k: the \
          product of the transpose of a sparse matrix with a dense one, whose rows may have any shape. The pattern is not transposed, which is \
          faster than `csr_transpose` and `csr_matmul_dense` if rows are short.",
    types: Types::Infer,
    infer: |cx| {
        check_integers(cx, &[1, 2])?;
        check_stored(cx, 0, 1)?;
        let (data, x, rows) = (cx.shape(0), cx.shape(3), num_rows(cx, 2)?);
        if data.len() != 1 || x.first() != Some(&rows) {
            return Err(cx.shape_error(format!(
                "`data` is a vector and `x` has a row for each of the {rows} rows of the pattern, found shapes {} and {}",
                Tuple(data),
                Tuple(x)
            )));
        }
        let mut shape = Dims::from_slice(x);
        shape[0] = length(cx, "num_columns")?;
        one_of(shape, promoted(cx.dtype_of(0), cx.dtype_of(3)))
    },
    cpu: Cpu::Kernel(transposed_matmul_dense),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        let (data, indices, indptr, x) = (g.input(0), g.input(1), g.input(2), g.input(3));
        let mut grads = Grads::from_elem(None, 4);
        if g.wants(0) {
            let x = x.conj()?;
            grads[0] = Some(invoke1(&CSR_SAMPLED_DENSE, &[&x, g.dy(0), indices, indptr], &heads_of(false))?);
        }
        if g.wants(3) {
            let data = data.conj()?;
            grads[3] = Some(invoke1(&CSR_MATMUL_DENSE, &[&data, indices, indptr, g.dy(0)], &Attrs::none())?);
        }
        Ok(grads)
    }),
    cost: Cost::Of(|cx| product_cost(cx, 0, 3)),
    probe: Probe::calls(&[
        "f((4,)), np.array([0, 2, 1, 2]), np.array([0, 2, 2, 4]), f((3,)), 3",
        "f((4,)), np.array([0, 2, 1, 2]), np.array([0, 2, 2, 4]), f((3, 5)), 4",
        "c((4,)), np.array([0, 2, 1, 2]), np.array([0, 2, 2, 4]), c((3, 2)), 3",
        "i((4,)), np.array([0, 2, 1, 2]), np.array([0, 2, 2, 4]), i((3, 2)), 3",
    ])
    .against(
        "lambda data, j, p, x, n: (lambda m: numpy.stack([m[j == c].sum(0) for c in range(n)]))(data.reshape(data.shape + (1,) * (x.ndim - data.ndim)) * x[numpy.repeat(numpy.arange(len(p) - 1), numpy.diff(p))])",
    )
    .ulp(8),
    ..OpDef::DEFAULT
};

/// Products of dense rows at the positions of a pattern.
pub static CSR_SAMPLED_DENSE: OpDef = OpDef {
    name: "csr_sampled_dense",
    params: &[
        Param::array("x"),
        Param::array("y"),
        Param::array("indices"),
        Param::array("indptr"),
        Param::bool("heads", false),
    ],
    doc: "For each stored element k of row i of a pattern the sum of the products of `x[i]` and `y[indices[k]]`, shape (nnz,): the elements of `x @ \
          y.T` at the stored positions. With `heads` the first axis of the rows is not summed: shape (nnz, heads).",
    types: Types::Infer,
    infer: infer_sampled_dense,
    cpu: Cpu::Kernel(sampled_dense),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        let (x, y, indices, indptr) = (g.input(0), g.input(1), g.input(2), g.input(3));
        let mut grads = Grads::from_elem(None, 4);
        if g.wants(0) {
            let y = y.conj()?;
            grads[0] = Some(invoke1(&CSR_MATMUL_DENSE, &[g.dy(0), indices, indptr, &y], &Attrs::none())?);
        }
        if g.wants(1) {
            grads[1] = Some(times_transposed(g.dy(0), indices, indptr, &x.conj()?, g.shape(1)[0])?);
        }
        Ok(grads)
    }),
    cost: Cost::Of(|cx| product_cost(cx, 2, 0)),
    probe: Probe::calls(&[
        "f((3, 5)), f((4, 5)), np.array([0, 3, 1, 2]), np.array([0, 2, 2, 4])",
        "f((3,)), f((4,)), np.array([0, 3, 1, 2]), np.array([0, 2, 2, 4])",
        "f((3, 2, 19)), f((4, 2, 19)), np.array([0, 3, 1, 2]), np.array([0, 2, 2, 4]), True",
        "c((3, 2)), c((4, 2)), np.array([0, 3, 1, 2]), np.array([0, 2, 2, 4])",
    ])
    .against(
        "lambda x, y, j, p, heads=False: (lambda m: m.reshape(m.shape[:1 + heads] + (-1,)).sum(-1))(x[numpy.repeat(numpy.arange(len(p) - 1), numpy.diff(p))] * y[j])",
    )
    .ulp(16),
    positions: &[2, 3],
    ..OpDef::DEFAULT
};

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
    infer: |cx| one(Dims::from_slice(cx.shape(0))),
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
    infer: |cx| {
        check_integers(cx, &[1, 2, 4, 5, 6, 7])?;
        check_stored_row(cx, 0, 1)?;
        check_stored_row(cx, 3, 4)?;
        if cx.shape(2) != cx.shape(7) {
            return Err(cx.shape_error("`lhs_indptr` and `indptr` must have the same length"));
        }
        one_of(
            Dims::from_slice(&[cx.shape(6)[0]]),
            promoted(cx.dtype_of(0), cx.dtype_of(3)),
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
    cost: Cost::Of(|cx| (cx.input(0).len() + cx.input(3).len() + 16 * cx.input(6).len()) as u64),
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

fn heads_of(has_heads: bool) -> Attrs {
    [Value::Bool(has_heads)].into_iter().collect()
}

/// Indices and offsets of the transposed pattern, and the original position of each of its elements.
pub(crate) fn transposed(
    indices: &Array,
    indptr: &Array,
    num_columns: usize,
) -> Result<(Array, Array, Array)> {
    let attrs: Attrs = [Value::Int(num_columns as i64)].into_iter().collect();
    let mut parts = invoke(&CSR_TRANSPOSE, &[indices, indptr], &attrs)?.into_iter();
    match (parts.next(), parts.next(), parts.next()) {
        (Some(indices), Some(indptr), Some(at)) => Ok((indices, indptr, at)),
        _ => Err(mxnet_core::Error::internal(
            CSR_TRANSPOSE.name,
            "three outputs were expected",
        )),
    }
}

/// Up to this number of elements in a row, a product with a transpose scatters instead of transposing first.
const SCATTERED_WIDTH: usize = 8;

/// The transpose of a sparse matrix with `num_columns` columns times a dense array.
fn times_transposed(
    data: &Array,
    indices: &Array,
    indptr: &Array,
    x: &Array,
    num_columns: usize,
) -> Result<Array> {
    let width: usize = x.shape()[1..].iter().product();
    let is_narrow = width <= SCATTERED_WIDTH && data.ndim() == 1;
    if is_narrow && x.device().kind() == DeviceKind::Cpu {
        let attrs: Attrs = [Value::Int(num_columns as i64)].into_iter().collect();
        return invoke1(
            &CSR_TRANSPOSED_MATMUL_DENSE,
            &[data, indices, indptr, x],
            &attrs,
        );
    }
    let (indices, indptr, at) = transposed(indices, indptr, num_columns)?;
    let data = gathered(data, &at)?;
    invoke1(
        &CSR_MATMUL_DENSE,
        &[&data, &indices, &indptr, x],
        &Attrs::none(),
    )
}

/// Nanoseconds of a sparse product: each stored element of the first matrix meets a row of the second, of mean length.
fn matmul_cost(cx: &CallCx) -> u64 {
    let of = |i: usize| cx.input(i).len() as u64;
    of(0).saturating_mul(8 + 8 * of(3) / of(5).max(1))
}

/// Nanoseconds of a product, by stored elements and elements of a dense row.
fn product_cost(cx: &CallCx, stored: usize, dense: usize) -> u64 {
    let rows = cx.shape(dense).first().copied().unwrap_or(1).max(1);
    let width = cx.input(dense).len() / rows;
    (cx.shape(stored).first().copied().unwrap_or(0) * (2 + width / 4)) as u64
}

fn infer_matmul_dense(cx: &CallCx) -> Result<Inferred> {
    check_integers(cx, &[1, 2])?;
    check_stored(cx, 0, 1)?;
    let (data, x) = (cx.shape(0), cx.shape(3));
    if x.is_empty() || data.len() > 2 || data.len() == 2 && x.get(1) != Some(&data[1]) {
        return Err(cx.shape_error(format!(
            "`data` of shape {} needs rows of `x` that begin with an axis of its heads, found shape {}",
            Tuple(data),
            Tuple(x)
        )));
    }
    let mut shape = Dims::from_slice(x);
    shape[0] = num_rows(cx, 2)?;
    one_of(shape, promoted(cx.dtype_of(0), cx.dtype_of(3)))
}

fn cut(heads: Option<usize>, row: &[usize]) -> Heads {
    let len: usize = row.iter().product();
    match heads {
        Some(0) | None => Heads {
            heads: heads.unwrap_or(1),
            width: len,
        },
        Some(heads) => Heads {
            heads,
            width: len / heads,
        },
    }
}

fn matmul_dense(cx: &KernelCx) -> Result<()> {
    let (data, x, out) = (cx.input(0), cx.input(3), cx.output(0));
    let (indices, indptr) = index_arrays(cx, 1)?;
    let rows = pattern(cx.op.name, NAMES, &indices, &indptr)?;
    let compute = compute_dtype(out.dtype());
    let num_x = x.shape()[0];
    let cut = cut(data.shape().get(1).copied(), &x.shape()[1..]);
    let (data, x) = (
        values(data, compute, cx.threads)?,
        values(x, compute, cx.threads)?,
    );
    write(out, compute, cx.threads, |to| {
        // SAFETY: dense values of this dtype: as many as inference checked; `to` has a row for each row of the pattern.
        unsafe {
            sparse::matmul_dense(
                cx.threads,
                elem(compute),
                &rows,
                cut,
                data.operand(),
                x.operand(),
                to,
            )
        }
        .map_err(|fault| error(cx.op.name, NAMES, fault, Some(num_x)))
    })
}

fn transposed_matmul_dense(cx: &KernelCx) -> Result<()> {
    let (data, x, out) = (cx.input(0), cx.input(3), cx.output(0));
    let (indices, indptr) = index_arrays(cx, 1)?;
    let rows = pattern(cx.op.name, NAMES, &indices, &indptr)?;
    let compute = compute_dtype(out.dtype());
    let num_columns = out.shape()[0];
    let width = x.shape()[1..].iter().product();
    let (data, x) = (
        values(data, compute, cx.threads)?,
        values(x, compute, cx.threads)?,
    );
    write(out, compute, cx.threads, |to| {
        // SAFETY: dense values of this dtype: as many as inference checked; `to` has a row for each column of the pattern.
        unsafe {
            sparse::transposed_matmul_dense(
                cx.threads,
                elem(compute),
                &rows,
                (num_columns, width),
                data.operand(),
                x.operand(),
                to,
            )
        }
        .map_err(|fault| error(cx.op.name, NAMES, fault, Some(num_columns)))
    })
}

fn infer_sampled_dense(cx: &CallCx) -> Result<Inferred> {
    check_integers(cx, &[2, 3])?;
    let (x, y) = (cx.shape(0), cx.shape(1));
    let heads = usize::from(cx.bool("heads"));
    if x.len() != y.len() || x.len() < 1 + heads || x[1..] != y[1..] {
        return Err(cx.shape_error(format!(
            "rows of `x` and `y` must have the same shape, with at least {heads} axes"
        )));
    }
    if x[0] != num_rows(cx, 3)? {
        return Err(cx.shape_error(format!(
            "`x` must have a row for each of the {} rows of the pattern, found {}",
            num_rows(cx, 3)?,
            x[0]
        )));
    }
    let mut shape = Dims::from_slice(&[cx.shape(2)[0]]);
    shape.extend_from_slice(&x[1..1 + heads]);
    one_of(shape, promoted(cx.dtype_of(0), cx.dtype_of(1)))
}

fn sampled_dense(cx: &KernelCx) -> Result<()> {
    let (x, y, out) = (cx.input(0), cx.input(1), cx.output(0));
    let (indices, indptr) = index_arrays(cx, 2)?;
    let rows = pattern(cx.op.name, NAMES, &indices, &indptr)?;
    let compute = compute_dtype(out.dtype());
    let num_y = y.shape()[0];
    let heads = cx.bool("heads").then(|| x.shape()[1]);
    let cut = cut(heads, &x.shape()[1..]);
    let (x, y) = (
        values(x, compute, cx.threads)?,
        values(y, compute, cx.threads)?,
    );
    write(out, compute, cx.threads, |to| {
        // SAFETY: dense values of this dtype: as many as inference checked; `to` has as many elements as the output.
        unsafe {
            sparse::sampled_dense(
                cx.threads,
                elem(compute),
                &rows,
                cut,
                x.operand(),
                y.operand(),
                to,
            )
        }
        .map_err(|fault| error(cx.op.name, NAMES, fault, Some(num_y)))
    })
}

fn matmul(cx: &CallCx) -> Result<Outputs> {
    check_integers(cx, &[1, 2, 4, 5])?;
    check_stored_row(cx, 0, 1)?;
    check_stored_row(cx, 3, 4)?;
    let num_columns = length(cx, "num_columns")?;
    let dtype = promoted(cx.dtype_of(0), cx.dtype_of(3));
    let compute = compute_dtype(dtype);
    let tensor = |i: usize| cx.input(i).tensor();
    let lhs_indices = integers(tensor(1), &Pool)?;
    let lhs_indptr = integers(tensor(2), &Pool)?;
    let rhs_indices = integers(tensor(4), &Pool)?;
    let rhs_indptr = integers(tensor(5), &Pool)?;
    let (lhs, rhs) = (("lhs_indices", "lhs_indptr"), ("rhs_indices", "rhs_indptr"));
    let a: Pattern = pattern(cx.op.name, lhs, &lhs_indices, &lhs_indptr)?;
    let b: Pattern = pattern(cx.op.name, rhs, &rhs_indices, &rhs_indptr)?;
    let a_data = values(tensor(0), compute, &Pool)?;
    let b_data = values(tensor(3), compute, &Pool)?;
    let device = cx.input(0).device();
    let indptr = Array::uninitialised(cx.shape(2), DType::I64, device)?;
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
            true => error(cx.op.name, rhs, fault, Some(num_columns)),
            false => error(cx.op.name, lhs, fault, Some(b.num_rows())),
        }
    })?;
    // Stored elements of a matrix without rows or columns are the only fault that has no position.
    let made = made.ok_or_else(|| {
        let problem = "a matrix without rows or columns has stored elements";
        mxnet_core::Error::index(cx.op.name, problem)
    })?;
    Ok(SmallVec::from_iter([
        made.data.astype(dtype)?,
        made.indices,
        indptr,
    ]))
}

fn sampled_matmul(cx: &KernelCx) -> Result<()> {
    let out = cx.output(0);
    let compute = compute_dtype(out.dtype());
    let (a_indices, a_indptr) = index_arrays(cx, 1)?;
    let (b_indices, b_indptr) = index_arrays(cx, 4)?;
    let (indices, indptr) = index_arrays(cx, 6)?;
    let (lhs, rhs) = (("lhs_indices", "lhs_indptr"), ("rhs_indices", "rhs_indptr"));
    let a = pattern(cx.op.name, lhs, &a_indices, &a_indptr)?;
    let b = pattern(cx.op.name, rhs, &b_indices, &b_indptr)?;
    let sampled_pattern = pattern(cx.op.name, NAMES, &indices, &indptr)?;
    let a_data = values(cx.input(0), compute, cx.threads)?;
    let b_data = values(cx.input(3), compute, cx.threads)?;
    let num_columns = usize::try_from(cx.int("num_columns")).unwrap_or(0);
    write(out, compute, cx.threads, |to| {
        // SAFETY: dense values of this dtype, one for each stored element (inference); `to` has as many elements as the output.
        unsafe {
            sparse::sampled_matmul(
                cx.threads,
                elem(compute),
                (&a, a_data.operand()),
                (&b, b_data.operand()),
                num_columns,
                &sampled_pattern,
                to,
            )
        }
        .map_err(|fault| error(cx.op.name, NAMES, fault, None))
    })
}
