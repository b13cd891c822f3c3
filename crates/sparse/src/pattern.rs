//! Operators on patterns: check, transpose, sort, merge, search. They compute integers, so no gradient flows.

use mxnet_core::launch::Pool;
use mxnet_core::opdef::{one, one_of};
use mxnet_core::{
    Array, Attrs, Cost, Cpu, Grad, Known, OpDef, Outputs, Param, ParamKind, Probe, Result, Types,
    Value, invoke,
};
use mxnet_kernels::sparse::{self, Union};
use mxnet_tensor::{DType, Dims};

use crate::operand::{
    NAMES, check_integers, error, from_integers, index_arrays, integer_output, integers, length,
    num_rows, pattern,
};

pub(crate) static OPS: &[&OpDef] = &[
    &CSR_CHECK,
    &CSR_ROWS,
    &CSR_TRANSPOSE,
    &COO_ORDER,
    &CSR_MERGE,
    &CSR_FIND,
    &CSR_FIND_POINTS,
    &CONCATENATED_RANGES,
];

const INTEGERS: OpDef = OpDef {
    types: Types::Infer,
    grad: Grad::Stop("positions are integers"),
    cost: Cost::PerKiB(1000),
    ..OpDef::DEFAULT
};

/// Checks that index arrays are a valid pattern.
pub static CSR_CHECK: OpDef = OpDef {
    name: "csr_check",
    params: &[
        Param::array("indices"),
        Param::array("indptr"),
        Param::required("num_columns", ParamKind::Int),
    ],
    doc: "Checks index arrays of compressed rows: offsets begin at 0, do not decrease and end at the number of indices, which lie in \
          0..num_columns. Returns two booleans: whether indices ascend in each row, and whether they ascend without duplicates.",
    infer: |context| {
        check_integers(context, &[0, 1])?;
        length(context, "num_columns")?;
        one_of(Dims::from_slice(&[2]), DType::Bool)
    },
    cpu: Cpu::Eager(
        |context| {
            check_integers(context, &[0, 1])?;
            let num_columns = length(context, "num_columns")?;
            let (indices, indptr) = (
                integers(context.input(0).tensor(), &Pool)?,
                integers(context.input(1).tensor(), &Pool)?,
            );
            let rows = pattern(context.op.name, NAMES, &indices, &indptr)?;
            let (is_sorted, is_canonical) = sparse::check(&rows, num_columns)
                .map_err(|fault| error(context.op.name, NAMES, fault, Some(num_columns)))?;
            context.done(Array::from_slice(&[is_sorted, is_canonical], &[2])?)
        },
        Known::ByRule,
    ),
    probe: Probe::calls(&[
        "np.array([0, 2, 1]), np.array([0, 2, 3]), 3",
        "np.array([2, 0, 1]), np.array([0, 2, 3]), 3",
        "np.array([1, 1]), np.array([0, 2]), 2",
    ])
    .against(
        "lambda j, p, n: numpy.array([all((numpy.diff(j[a:b]) >= 0).all() for a, b in zip(p, p[1:])), all((numpy.diff(j[a:b]) > 0).all() for a, b in zip(p, p[1:]))])",
    ),
    positions: &[0, 1],
    ..INTEGERS
};

/// The row index of each stored element.
pub static CSR_ROWS: OpDef = OpDef {
    name: "csr_rows",
    params: &[Param::array("indices"), Param::array("indptr")],
    doc: "int64 row index of each stored element of compressed rows. Only the length of `indices` is used.",
    infer: |context| {
        check_integers(context, &[0, 1])?;
        one_of(Dims::from_slice(&[context.shape(0)[0]]), DType::I64)
    },
    cpu: Cpu::Kernel(|context| {
        let (indices, indptr) = index_arrays(context, 0)?;
        let rows = pattern(context.op.name, NAMES, &indices, &indptr)?;
        sparse::row_numbers(context.threads, &rows, integer_output(context.output(0)));
        Ok(())
    }),
    probe: Probe::calls(&[
        "np.array([0, 2, 1]), np.array([0, 2, 2, 3])",
        "np.zeros(0, 'int64'), np.array([0, 0])",
    ])
    .against("lambda j, p: numpy.repeat(numpy.arange(len(p) - 1), numpy.diff(p))"),
    positions: &[0, 1],
    ..INTEGERS
};

/// The transposed pattern.
pub static CSR_TRANSPOSE: OpDef = OpDef {
    name: "csr_transpose",
    params: &[
        Param::array("indices"),
        Param::array("indptr"),
        Param::required("num_columns", ParamKind::Int),
    ],
    doc: "The pattern of the transposed matrix: its indices and offsets, and for each of its elements the position in the given pattern. Indices of \
          the result ascend.",
    infer: |context| {
        check_integers(context, &[0, 1])?;
        num_rows(context, 1)?;
        let (stored, columns) = (context.shape(0)[0], length(context, "num_columns")?);
        context.many([
            (Dims::from_slice(&[stored]), DType::I64),
            (Dims::from_slice(&[columns + 1]), DType::I64),
            (Dims::from_slice(&[stored]), DType::I64),
        ])
    },
    cpu: Cpu::Kernel(|context| {
        let (indices, indptr) = index_arrays(context, 0)?;
        let rows = pattern(context.op.name, NAMES, &indices, &indptr)?;
        let num_columns = context.output(1).len() - 1;
        sparse::transpose(
            context.threads,
            &rows,
            num_columns,
            integer_output(context.output(0)),
            integer_output(context.output(1)),
            integer_output(context.output(2)),
        )
        .map_err(|fault| error(context.op.name, NAMES, fault, Some(num_columns)))
    }),
    probe: Probe::calls(&[
        "np.array([0, 2, 1, 2]), np.array([0, 2, 2, 4]), 3",
        "np.zeros(0, 'int64'), np.array([0, 0]), 2",
    ])
    .against(
        "lambda j, p, n: (lambda rows: (lambda at: (rows[at], numpy.searchsorted(j[at], numpy.arange(n + 1)), at))(numpy.argsort(j, kind='stable')))(numpy.repeat(numpy.arange(len(p) - 1), numpy.diff(p)))",
    ),
    positions: &[0, 1],
    ..INTEGERS
};

/// Positions sorted by row and column.
pub static COO_ORDER: OpDef = OpDef {
    name: "coo_order",
    params: &[
        Param::array("rows"),
        Param::array("columns"),
        Param::required("num_rows", ParamKind::Int),
        Param::required("num_columns", ParamKind::Int),
    ],
    doc: "Positions that sort elements by row, then by column (stable); and the offsets of the rows.",
    infer: |context| {
        check_integers(context, &[0, 1])?;
        length(context, "num_columns")?;
        if context.shape(0) != context.shape(1) {
            return Err(context.shape_error("`rows` and `columns` must have the same length"));
        }
        let rows = length(context, "num_rows")?;
        context.many([
            (Dims::from_slice(context.shape(0)), DType::I64),
            (Dims::from_slice(&[rows + 1]), DType::I64),
        ])
    },
    cpu: Cpu::Kernel(|context| {
        let (rows, columns) = index_arrays(context, 0)?;
        let (num_rows, num_columns) = (context.int("num_rows") as usize, context.int("num_columns") as usize);
        let (positions, indptr) = (context.output(0), context.output(1));
        sparse::order(
            &rows,
            &columns,
            num_columns,
            integer_output(positions),
            integer_output(indptr),
        )
        .map_err(|fault| {
            // Column indices are checked first.
            let is_column = columns.iter().any(|&j| j as u64 >= num_columns as u64);
            let (name, len) = match is_column {
                true => ("columns", num_columns),
                false => ("rows", num_rows),
            };
            error(context.op.name, (name, ""), fault, Some(len))
        })
    }),
    probe: Probe::calls(&[
        "np.array([2, 0, 2, 0, 2]), np.array([1, 3, 0, 3, 1]), 3, 4",
        "np.zeros(0, 'int64'), np.zeros(0, 'int64'), 2, 2",
    ])
    .against(
        "lambda i, j, m, n: (numpy.lexsort((j, i)), numpy.searchsorted(numpy.sort(i), numpy.arange(m + 1)))",
    ),
    positions: &[0, 1],
    ..INTEGERS
};

/// The union of two patterns.
pub static CSR_MERGE: OpDef = OpDef {
    name: "csr_merge",
    params: &[
        Param::array("lhs_indices"),
        Param::array("lhs_indptr"),
        Param::array("rhs_indices"),
        Param::array("rhs_indptr"),
        Param::bool("both", false),
    ],
    doc: "The union of two patterns with ascending rows, or with `both` their intersection: indices, offsets, and for each element its position in \
        the first and in the second pattern, or -1 if a pattern does not have it.",
    infer: |context| {
        check_integers(context, &[0, 1, 2, 3])?;
        one(Dims::from_slice(context.shape(1)))
    },
    cpu: Cpu::Eager(
        |context| {
            check_integers(context, &[0, 1, 2, 3])?;
            if context.shape(1) != context.shape(3) {
                return Err(context.shape_error(format!(
                    "both patterns must have as many rows, found {} and {}",
                    num_rows(context, 1)?,
                    num_rows(context, 3)?
                )));
            }
            let mut parts = Vec::with_capacity(4);
            for i in 0..4 {
                parts.push(integers(context.input(i).tensor(), &Pool)?);
            }
            let (lhs, rhs) = (("lhs_indices", "lhs_indptr"), ("rhs_indices", "rhs_indptr"));
            let a = pattern(context.op.name, lhs, &parts[0], &parts[1])?;
            let b = pattern(context.op.name, rhs, &parts[2], &parts[3])?;
            let union = match context.bool("both") {
                true => Union::Both,
                false => Union::Either,
            };
            let merged = sparse::merge(&Pool, &a, &b, union);
            Ok(Outputs::from_iter([
                from_integers(&merged.indices)?,
                from_integers(&merged.indptr)?,
                from_integers(&merged.lhs)?,
                from_integers(&merged.rhs)?,
            ]))
        },
        Known::FromValues,
    ),
    probe: Probe::calls(&[
        "np.array([0, 2, 1]), np.array([0, 2, 3]), np.array([2, 0, 1]), np.array([0, 1, 3])",
        "np.array([0, 2, 1]), np.array([0, 2, 3]), np.array([2, 0, 1]), np.array([0, 1, 3]), True",
    ])
    .against(
        "lambda j, p, k, q, both=False: (lambda rows: (numpy.concatenate([r for r in rows]), numpy.cumsum([0] + [len(r) for r in rows]), numpy.concatenate([[p[i] + list(j[p[i]:p[i + 1]]).index(c) if c in j[p[i]:p[i + 1]] else -1 for c in r] for i, r in enumerate(rows)]).astype(int), numpy.concatenate([[q[i] + list(k[q[i]:q[i + 1]]).index(c) if c in k[q[i]:q[i + 1]] else -1 for c in r] for i, r in enumerate(rows)]).astype(int)))([(numpy.intersect1d if both else numpy.union1d)(j[p[i]:p[i + 1]], k[q[i]:q[i + 1]]) for i in range(len(p) - 1)])",
    ),
    positions: &[0, 1, 2, 3],
    ..INTEGERS
};

/// Searches the elements of one pattern in another.
pub static CSR_FIND: OpDef = OpDef {
    name: "csr_find",
    params: &[
        Param::array("indices"),
        Param::array("indptr"),
        Param::array("in_indices"),
        Param::array("in_indptr"),
    ],
    doc: "For each element of the first pattern its int64 position in the second one, -1 if that does not have it. The indices of each row ascend in \
        both.",
    infer: |context| {
        check_integers(context, &[0, 1, 2, 3])?;
        if context.shape(1) != context.shape(3) {
            return Err(context.shape_error("both patterns must have as many rows"));
        }
        one_of(Dims::from_slice(&[context.shape(0)[0]]), DType::I64)
    },
    cpu: Cpu::Kernel(|context| {
        let ((indices, indptr), (in_indices, in_indptr)) =
            (index_arrays(context, 0)?, index_arrays(context, 2)?);
        let wanted = pattern(context.op.name, NAMES, &indices, &indptr)?;
        let names = ("in_indices", "in_indptr");
        let stored = pattern(context.op.name, names, &in_indices, &in_indptr)?;
        sparse::find_entries(context.threads, &wanted, &stored, integer_output(context.output(0)));
        Ok(())
    }),
    probe: Probe::calls(&[
        "np.array([0, 2, 1]), np.array([0, 2, 3]), np.array([2, 0, 1]), np.array([0, 1, 3])",
    ])
    .against(
        "lambda j, p, k, q: numpy.concatenate([[q[i] + list(k[q[i]:q[i + 1]]).index(c) if c in k[q[i]:q[i + 1]] else -1 for c in j[p[i]:p[i + 1]]] for i in range(len(p) - 1)]).astype(int)",
    ),
    positions: &[0, 1, 2, 3],
    ..INTEGERS
};

/// Searches points in a pattern.
pub static CSR_FIND_POINTS: OpDef = OpDef {
    name: "csr_find_points",
    params: &[
        Param::array("indices"),
        Param::array("indptr"),
        Param::array("rows"),
        Param::array("columns"),
    ],
    doc: "For each point (row, column) its int64 position in a pattern whose rows ascend without duplicates; -1 if it is not there.",
    infer: |context| {
        check_integers(context, &[0, 1, 2, 3])?;
        if context.shape(2) != context.shape(3) {
            return Err(context.shape_error("`rows` and `columns` must have the same length"));
        }
        one_of(Dims::from_slice(&[context.shape(2)[0]]), DType::I64)
    },
    cpu: Cpu::Kernel(|context| {
        let ((indices, indptr), (rows, columns)) = (index_arrays(context, 0)?, index_arrays(context, 2)?);
        let stored = pattern(context.op.name, NAMES, &indices, &indptr)?;
        sparse::find_points(&stored, &rows, &columns, integer_output(context.output(0)));
        Ok(())
    }),
    probe: Probe::calls(&[
        "np.array([0, 2, 1]), np.array([0, 2, 3]), np.array([1, 0, 0, 1]), np.array([1, 2, 1, 0])",
    ])
    .against(
        "lambda j, p, rows, columns: numpy.array([p[r] + list(j[p[r]:p[r + 1]]).index(c) if c in j[p[r]:p[r + 1]] else -1 for r, c in zip(rows, columns)])",
    ),
    positions: &[0, 1, 2, 3],
    ..INTEGERS
};

/// Concatenated ranges of integers.
pub static CONCATENATED_RANGES: OpDef = OpDef {
    name: "concatenated_ranges",
    params: &[Param::array("starts"), Param::array("lengths")],
    doc: "The concatenated ranges `start, ..., start + length - 1` of all starts and lengths.",
    infer: |context| {
        check_integers(context, &[0, 1])?;
        one_of(Dims::from_slice(&[context.shape(0)[0]]), DType::I64)
    },
    cpu: Cpu::Eager(
        |context| {
            check_integers(context, &[0, 1])?;
            if context.shape(0) != context.shape(1) {
                return Err(context.shape_error("`starts` and `lengths` must have the same length"));
            }
            let (starts, lengths) = (
                integers(context.input(0).tensor(), &Pool)?,
                integers(context.input(1).tensor(), &Pool)?,
            );
            if let Some(at) = lengths.iter().position(|&n| n < 0) {
                return Err(context.value_error(format!(
                    "lengths[{at}] is {}, lengths must not be negative",
                    lengths[at]
                )));
            }
            let total: usize = lengths.iter().map(|&n| n as usize).sum();
            let out = Array::uninitialised(&[total], DType::I64, context.input(0).device())?;
            let mut rest = integer_output(out.tensor());
            for (&start, &n) in starts.iter().zip(&*lengths) {
                let (run, others) = rest.split_at_mut(n as usize);
                (start..).zip(run).for_each(|(i, to)| *to = i);
                rest = others;
            }
            context.done(out)
        },
        Known::FromValues,
    ),
    probe: Probe::calls(&[
        "np.array([3, 0, 7]), np.array([2, 0, 3])",
        "np.zeros(0, 'int64'), np.zeros(0, 'int64')",
    ])
    .against(
        "lambda s, n: numpy.concatenate([numpy.zeros(0, int)] + [numpy.arange(a, a + k) for a, k in zip(s, n)])",
    ),
    positions: &[0, 1],
    ..INTEGERS
};

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
