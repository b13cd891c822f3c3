//! Greedy matching of rows and columns by scores. `npx.bipartite_matching` and `npx.multibox_target` use it.

use mxnet_kernels::scratch::{collected, filled};
use mxnet_tensor::{DType, Dims, Tensor};

use crate::args::{Param, ParamKind};
use crate::context::{CallContext, KernelContext};
use crate::cpu;
use crate::error::Result;
use crate::opdef::{Cost, Cpu, Grad, Inferred, OpDef, Probe};

/// Matched pairs of rows and columns.
pub static MATCH_PAIRS: OpDef = OpDef {
    name: "match_pairs",
    reports_as: Some("bipartite_matching"),
    params: &[
        Param::array("scores"),
        Param::required("threshold", ParamKind::Float),
        Param::bool("is_ascend", false),
        Param::int("topk", -1),
    ],
    doc: "Matches rows with columns, the best score first, each at most once; of equal scores the first one in C order. Only scores above \
          `threshold` match (below it if `is_ascend`, where small scores are good). Gives the column of each row, (b, n), and the row of each \
          column, (b, m), of `scores`, (b, n, m); -1 for unmatched ones. int64. At most `topk` pairs are made if it is above 0.",
    infer,
    cpu: Cpu::Kernel(pair),
    grad: Grad::Stop("which rows and columns match is piecewise constant"),
    cost: Cost::PerKiB(20_000),
    probe: Probe::calls(&[
        "f((2, 3, 4)), 0.1",
        "f((1, 5, 2)), 0.5, True, 1",
        "f((1, 0, 2)), 0.5",
    ]),
    ..OpDef::DEFAULT
};

fn infer(context: &CallContext) -> Result<Inferred> {
    let &[b, n, m] = context.shape(0) else {
        return Err(context.shape_error("`scores` must have three axes"));
    };
    context.many([n, m].map(|size| (Dims::from_slice(&[b, size]), DType::I64)))
}

fn pair(context: &KernelContext) -> Result<()> {
    let x = context.input(0);
    let dense = Tensor::empty(x.shape(), DType::F64, x.device())?;
    cpu::copy(x, &dense, context.threads)?;
    let scores: Vec<f64> = cpu::read_dense(&dense);
    let (n, m) = (x.shape()[1], x.shape()[2]);
    let mut columns = filled(x.shape()[0] * n, -1_i64);
    let mut rows = filled(x.shape()[0] * m, -1_i64);
    for (b, scores) in scores.chunks_exact((n * m).max(1)).enumerate() {
        for (row, column) in pairs(context, scores, n, m) {
            columns[b * n + row] = column as i64;
            rows[b * m + column] = row as i64;
        }
    }
    cpu::fill_from(context.output(0), &columns);
    cpu::fill_from(context.output(1), &rows);
    Ok(())
}

/// The matched pairs of one score matrix.
fn pairs(context: &KernelContext, scores: &[f64], n: usize, m: usize) -> Vec<(usize, usize)> {
    let (threshold, is_ascend) = (context.float("threshold"), context.bool("is_ascend"));
    let is_good = |score: f64| match is_ascend {
        true => score < threshold,
        false => score > threshold,
    };
    let good = (0..scores.len()).filter(|&i| is_good(scores[i]));
    let mut order = collected(scores.len(), good);
    order.sort_unstable_by(|&i, &j| {
        let ascending = scores[i].total_cmp(&scores[j]);
        let by_score = if is_ascend {
            ascending
        } else {
            ascending.reverse()
        };
        by_score.then(i.cmp(&j))
    });
    let limit = match context.int("topk") {
        topk if topk > 0 => topk as usize,
        _ => usize::MAX,
    };
    let (mut is_row_taken, mut is_column_taken) = (filled(n, false), filled(m, false));
    let mut found = collected(n.min(m), []);
    for i in order {
        let (row, column) = (i / m, i % m);
        if found.len() == limit.min(n).min(m) {
            break;
        }
        if !is_row_taken[row] && !is_column_taken[column] {
            is_row_taken[row] = true;
            is_column_taken[column] = true;
            found.push((row, column));
        }
    }
    found
}
