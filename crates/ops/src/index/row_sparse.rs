//! Lookup of rows in a table, and its row-sparse gradient.

use mxnet_tensor::{DType, Dims, IndexItem};
use smallvec::SmallVec;

use super::advanced::{GATHER, SCATTER_ADD};
use crate::args::{Attrs, Param, ParamKind, Value};
use crate::autograd::RowSparse;
use crate::error::Result;
use crate::invoke::invoke1;
use crate::opdef::{Cpu, OpDef, Probe, RowGrad};
use crate::order::{SEARCH_ROWS, UNIQUE_SORTED};
use crate::{Array, Outputs};

/// Table rows whose gradient is row-sparse.
pub static GATHER_ROWS: OpDef = OpDef {
    name: "gather_rows",
    doc: "As `gather`, for rows selected by one array of indices in range. The gradient with respect to `x` is row-sparse: it holds the rows that \
          were read.",
    row_grad: Some(RowGrad {
        name: "embedding",
        input: 0,
        applies: |_| true,
        rule: |g| {
            let (table, indices) = (g.shape(0), g.input(1));
            let mut shape = Dims::from_slice(table);
            shape[0] = indices.len();
            let data = g.dy(0).reshape(&shape)?;
            RowSparse::new(indices.reshape(&[indices.len()])?, data, table)
        },
        instead: "leave `sparse_grad` out, or call the function outside the compiled one",
    }),
    probe: Probe::calls(&["f((3, 4)), [i((2, 5), 3)], (np.zeros((2, 5), dtype='int64'),)"])
        .against("lambda x, at, key: x[at[0]]"),
    positions: &[1],
    ..GATHER
};

/// Row-sparse gradient: one summed row for each distinct index.
pub static ROW_SPARSE_SUM: OpDef = OpDef {
    name: "row_sparse_sum",
    params: &[Param::array("indices"), Param::array("data")],
    doc: "The distinct int64 `indices`, ascending, and for each the sum of the rows `data[k]` with that index, added in order.",
    cpu: Cpu::Composite(|context| {
        check(context)?;
        let (indices, data) = (context.input(0), context.input(1));
        let attrs: Attrs = [Value::Bool(true)].into_iter().collect();
        let found = invoke1(&UNIQUE_SORTED, &[indices], &attrs)?;
        let attrs: Attrs = [Value::Bool(false)].into_iter().collect();
        let at = invoke1(&SEARCH_ROWS, &[&found, indices], &attrs)?;
        let sums = scattered(&at, data, found.len())?;
        Ok(Outputs::from_iter([found, sums]))
    }),
    probe: Probe::calls(&[
        "np.array([4, 1, 4, 0]), f((4, 3))",
        "np.array([2, 2]), f((2,))",
        "np.zeros(0, 'int64'), f((0, 2))",
    ])
    .against(
        "lambda at, x: (lambda u: (u, numpy.stack([x[at == j].sum(0) for j in u]) if len(u) else x))(numpy.unique(at))",
    )
    .ulp(4),
    positions: &[0],
    ..OpDef::COMPOSITE
};

/// A row-sparse array as a dense one.
pub static ROW_SPARSE_TO_DENSE: OpDef = OpDef {
    name: "row_sparse_to_dense",
    params: &[
        Param::array("indices"),
        Param::array("data"),
        Param::required("num_rows", ParamKind::Int),
    ],
    doc: "An array of `num_rows` rows, zeros to which the rows `data[k]` are added at int64 `indices[k]`.",
    cpu: Cpu::Composite(|context| {
        check(context)?;
        context.done(scattered(context.input(0), context.input(1), context.int("num_rows") as usize)?)
    }),
    probe: Probe::calls(&["np.array([4, 1, 4, 0]), f((4, 3)), 6", "np.array([2, 2]), f((2,)), 3"])
        .against("lambda at, x, n: (lambda y: (numpy.add.at(y, at, x), y)[1])(numpy.zeros((n,) + x.shape[1:], x.dtype))")
        .ulp(4),
    positions: &[0],
    ..OpDef::COMPOSITE
};

fn check(context: &crate::context::CompositeContext) -> Result<()> {
    let (indices, data) = (context.input(0), context.input(1));
    if indices.dtype() != DType::I64 || indices.ndim() != 1 {
        return Err(context.dtype_error("`indices` must be int64 of 1 axis"));
    }
    if data.shape().first() != indices.shape().first() {
        return Err(context.shape_error("`data` must have a row for each index"));
    }
    Ok(())
}

/// `num_rows` rows of zeros to which the rows of `data` are added.
fn scattered(indices: &Array, data: &Array, num_rows: usize) -> Result<Array> {
    let mut shape = Dims::from_slice(data.shape());
    shape[0] = num_rows;
    let key = vec![IndexItem::Array {
        shape: Dims::from_slice(indices.shape()),
    }];
    let attrs: SmallVec<[Value; 2]> =
        SmallVec::from_iter([Value::Index(key.into()), Value::from(&shape[..])]);
    invoke1(&SCATTER_ADD, &[data, indices], &attrs.into_iter().collect())
}

/// Rows of `table` at int64 `indices` in range.
pub(super) fn rows_of_table(table: &Array, indices: &Array) -> Result<Array> {
    let key = vec![IndexItem::Array {
        shape: Dims::from_slice(indices.shape()),
    }];
    let attrs: Attrs = [Value::Index(key.into())].into_iter().collect();
    invoke1(&GATHER_ROWS, &[table, indices], &attrs)
}
