//! Products of a sparse and a dense operand, and of dense ones at the positions of a pattern. Those of two sparse matrices are in `product/`.
#![allow(unsafe_code)]

mod sparse_sparse;

use mxnet_core::autograd::RowSparse;
use mxnet_core::context::CallContext;
use mxnet_core::launch::elem;
use mxnet_core::opdef::RowGrad;
use mxnet_core::opdef::one_of;
use mxnet_core::{
    Array, Attrs, Cost, Cpu, Grad, Grads, Inferred, Keep, KernelContext, OpDef, Param, ParamKind,
    Probe, Result, Tuple, Types, Value, invoke1,
};
use mxnet_kernels::sparse::{self, Heads};
use mxnet_ops::order::{SEARCH_ROWS, UNIQUE_SORTED};
use mxnet_tensor::{DeviceKind, Dims};

use crate::gather::gathered;
use crate::operand::{
    NAMES, check_integers, check_stored, compute_dtype, error, index_arrays, length, num_rows,
    pattern, promoted, values, write,
};
use crate::pattern::transposed;
pub use sparse_sparse::{CSR_MATMUL, CSR_SAMPLED_MATMUL};

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
    cost: Cost::Of(|context| product_cost(context, 0, 3)),
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
    infer: |context| {
        check_integers(context, &[1, 2])?;
        check_stored(context, 0, 1)?;
        let (data, x, rows) = (context.shape(0), context.shape(3), num_rows(context, 2)?);
        if data.len() != 1 || x.first() != Some(&rows) {
            return Err(context.shape_error(format!(
                "`data` is a vector and `x` has a row for each of the {rows} rows of the pattern, found shapes {} and {}",
                Tuple(data),
                Tuple(x)
            )));
        }
        let mut shape = Dims::from_slice(x);
        shape[0] = length(context, "num_columns")?;
        one_of(shape, promoted(context.dtype_of(0), context.dtype_of(3)))
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
    cost: Cost::Of(|context| product_cost(context, 0, 3)),
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
    cost: Cost::Of(|context| product_cost(context, 2, 0)),
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

fn heads_of(has_heads: bool) -> Attrs {
    [Value::Bool(has_heads)].into_iter().collect()
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

/// Nanoseconds of a product, by stored elements and elements of a dense row.
fn product_cost(context: &CallContext, stored: usize, dense: usize) -> u64 {
    let rows = context.shape(dense).first().copied().unwrap_or(1).max(1);
    let width = context.input(dense).len() / rows;
    (context.shape(stored).first().copied().unwrap_or(0) * (2 + width / 4)) as u64
}

fn infer_matmul_dense(context: &CallContext) -> Result<Inferred> {
    check_integers(context, &[1, 2])?;
    check_stored(context, 0, 1)?;
    let (data, x) = (context.shape(0), context.shape(3));
    if x.is_empty() || data.len() > 2 || data.len() == 2 && x.get(1) != Some(&data[1]) {
        return Err(context.shape_error(format!(
            "`data` of shape {} needs rows of `x` that begin with an axis of its heads, found shape {}",
            Tuple(data),
            Tuple(x)
        )));
    }
    let mut shape = Dims::from_slice(x);
    shape[0] = num_rows(context, 2)?;
    one_of(shape, promoted(context.dtype_of(0), context.dtype_of(3)))
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

fn matmul_dense(context: &KernelContext) -> Result<()> {
    let (data, x, out) = (context.input(0), context.input(3), context.output(0));
    let (indices, indptr) = index_arrays(context, 1)?;
    let rows = pattern(context.op.name, NAMES, &indices, &indptr)?;
    let compute = compute_dtype(out.dtype());
    let num_x = x.shape()[0];
    let cut = cut(data.shape().get(1).copied(), &x.shape()[1..]);
    let (data, x) = (
        values(data, compute, context.threads)?,
        values(x, compute, context.threads)?,
    );
    write(out, compute, context.threads, |to| {
        // SAFETY: dense values of this dtype: as many as inference checked; `to` has a row for each row of the pattern.
        unsafe {
            sparse::matmul_dense(
                context.threads,
                elem(compute),
                &rows,
                cut,
                data.operand(),
                x.operand(),
                to,
            )
        }
        .map_err(|fault| error(context.op.name, NAMES, fault, Some(num_x)))
    })
}

fn transposed_matmul_dense(context: &KernelContext) -> Result<()> {
    let (data, x, out) = (context.input(0), context.input(3), context.output(0));
    let (indices, indptr) = index_arrays(context, 1)?;
    let rows = pattern(context.op.name, NAMES, &indices, &indptr)?;
    let compute = compute_dtype(out.dtype());
    let num_columns = out.shape()[0];
    let width = x.shape()[1..].iter().product();
    let (data, x) = (
        values(data, compute, context.threads)?,
        values(x, compute, context.threads)?,
    );
    write(out, compute, context.threads, |to| {
        // SAFETY: dense values of this dtype: as many as inference checked; `to` has a row for each column of the pattern.
        unsafe {
            sparse::transposed_matmul_dense(
                context.threads,
                elem(compute),
                &rows,
                (num_columns, width),
                data.operand(),
                x.operand(),
                to,
            )
        }
        .map_err(|fault| error(context.op.name, NAMES, fault, Some(num_columns)))
    })
}

fn infer_sampled_dense(context: &CallContext) -> Result<Inferred> {
    check_integers(context, &[2, 3])?;
    let (x, y) = (context.shape(0), context.shape(1));
    let heads = usize::from(context.bool("heads"));
    if x.len() != y.len() || x.len() < 1 + heads || x[1..] != y[1..] {
        return Err(context.shape_error(format!(
            "rows of `x` and `y` must have the same shape, with at least {heads} axes"
        )));
    }
    if x[0] != num_rows(context, 3)? {
        return Err(context.shape_error(format!(
            "`x` must have a row for each of the {} rows of the pattern, found {}",
            num_rows(context, 3)?,
            x[0]
        )));
    }
    let mut shape = Dims::from_slice(&[context.shape(2)[0]]);
    shape.extend_from_slice(&x[1..1 + heads]);
    one_of(shape, promoted(context.dtype_of(0), context.dtype_of(1)))
}

fn sampled_dense(context: &KernelContext) -> Result<()> {
    let (x, y, out) = (context.input(0), context.input(1), context.output(0));
    let (indices, indptr) = index_arrays(context, 2)?;
    let rows = pattern(context.op.name, NAMES, &indices, &indptr)?;
    let compute = compute_dtype(out.dtype());
    let num_y = y.shape()[0];
    let heads = context.bool("heads").then(|| x.shape()[1]);
    let cut = cut(heads, &x.shape()[1..]);
    let (x, y) = (
        values(x, compute, context.threads)?,
        values(y, compute, context.threads)?,
    );
    write(out, compute, context.threads, |to| {
        // SAFETY: dense values of this dtype: as many as inference checked; `to` has as many elements as the output.
        unsafe {
            sparse::sampled_dense(
                context.threads,
                elem(compute),
                &rows,
                cut,
                x.operand(),
                y.operand(),
                to,
            )
        }
        .map_err(|fault| error(context.op.name, NAMES, fault, Some(num_y)))
    })
}
