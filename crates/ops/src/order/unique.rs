//! Distinct elements.
#![allow(unsafe_code)]

use mxnet_kernels::sort::{Nans, count_runs, extremes, first_of_runs, occurrences, runs};
use mxnet_tensor::{DType, Kind};

use super::rows::SORT_ROWS;
use super::sort::argsort;
use crate::args::{Attrs, Param, Value};
use crate::autograd::GradCx;
use crate::cx::EagerCx;
use crate::eager::{Pool, elem};
use crate::error::Result;
use crate::index::{SCATTER_ALONG, gather_along};
use crate::invoke::{invoke, invoke1};
use crate::opdef::{Cpu, Cuda, Grad, Grads, Keep, Onnx, OpDef, Probe};
use crate::{Array, Outputs};

/// What `unique` is made of.
pub static UNIQUE_PARTS: OpDef = OpDef {
    name: "unique_parts",
    params: &[Param::array("x"), Param::bool("equal_nan", true)],
    doc: "Three int64 arrays about the distinct elements of an array of one axis, in ascending order: the position where each stands first; for \
          each element of `x` the number of its distinct element; and how often each stands in `x`. NaNs are one element if `equal_nan`.",
    cpu: Cpu::Eager(|cx| {
        let x = cx.input(0);
        one_axis(cx)?;
        let n = x.len();
        let at = argsort(x)?;
        let sorted = gather_along(x, &at, 0)?;
        sorted.wait_to_read()?;
        let at = at.to_vec::<i64>()?;
        let starts = starts(cx, &sorted);
        let count = starts.len();
        let index: Vec<i64> = starts.iter().map(|&start| at[start as usize]).collect();
        let ends = starts.iter().skip(1).copied().chain([n as i64]);
        let counts: Vec<i64> = starts.iter().zip(ends).map(|(start, end)| end - start).collect();
        let mut inverse = vec![0_i64; n];
        let mut rest = at.iter();
        for (number, &len) in counts.iter().enumerate() {
            for &i in rest.by_ref().take(len as usize) {
                inverse[i as usize] = number as i64;
            }
        }
        Ok(Outputs::from_iter([
            Array::from_slice(&index, &[count])?,
            Array::from_slice(&inverse, &[n])?,
            Array::from_slice(&counts, &[count])?,
        ]))
    }),
    cuda: Cuda::HostOnly,
    grad: Grad::Stop("positions and counts are integers"),
    onnx: Onnx::Node {
        ty: "Unique",
        since: 11,
    },
    probe: Probe::calls(&["i((9,), 5)", "f((4,))", "f((0,))"]).against(
        "lambda x: (lambda r: (r[1], r[2], r[3]))(numpy.unique(x, return_index=True, return_inverse=True, return_counts=True))",
    ),
    ..OpDef::DEFAULT
};

/// Distinct elements where nobody asks for anything else.
pub static UNIQUE_SORTED: OpDef = OpDef {
    name: "unique_sorted",
    params: &[Param::array("x"), Param::bool("equal_nan", true)],
    doc: "The distinct elements of an array of one axis, ascending. NaNs are one element if `equal_nan`. The gradient of an element goes to its \
          first position.",
    cpu: Cpu::Eager(|cx| {
        one_axis(cx)?;
        if let Some((values, _)) = tallied(cx.input(0))? {
            return cx.done(values);
        }
        let sorted = sorted(cx.input(0))?;
        let (data, n, nans) = (sorted.tensor().data_ptr(), sorted.len(), nans(cx));
        let elem = elem(sorted.dtype());
        // SAFETY: `sorted` is dense and complete.
        let count = unsafe { count_runs(elem, nans, data, n) };
        if count == n {
            return cx.done(sorted);
        }
        let out = Array::uninitialised(&[count], sorted.dtype(), sorted.device())?;
        // SAFETY: as above; `out` has room for the runs and is known to nobody else.
        unsafe { first_of_runs(elem, nans, data, n, out.tensor().data_ptr()) };
        cx.done(out)
    }),
    grad: Grad::Rule(Keep::INPUTS, to_first_positions),
    probe: Probe::calls(&["i((9,), 5)", "f((4,))", "f((0,))"]).against("lambda x: numpy.unique(x)"),
    ..UNIQUE_PARTS
};

/// Distinct elements where nobody asks for positions: only the values are sorted.
pub static UNIQUE_RUNS: OpDef = OpDef {
    name: "unique_runs",
    params: &[Param::array("x"), Param::bool("equal_nan", true)],
    doc: "The distinct elements of an array of one axis, ascending, and how often each stands there. NaNs are one element if `equal_nan`. The \
          gradient of an element goes to its first position.",
    cpu: Cpu::Eager(|cx| {
        one_axis(cx)?;
        if let Some((values, counts)) = tallied(cx.input(0))? {
            return Ok(Outputs::from_iter([values, counts]));
        }
        let sorted = sorted(cx.input(0))?;
        let starts = starts(cx, &sorted);
        let ends = starts.iter().skip(1).copied().chain([sorted.len() as i64]);
        let counts: Vec<i64> = starts
            .iter()
            .zip(ends)
            .map(|(start, end)| end - start)
            .collect();
        let starts = Array::from_slice(&starts, &[starts.len()])?;
        Ok(Outputs::from_iter([
            gather_along(&sorted, &starts, 0)?,
            Array::from_slice(&counts, &[counts.len()])?,
        ]))
    }),
    grad: Grad::Rule(Keep::INPUTS, to_first_positions),
    probe: Probe::calls(&["i((9,), 5)", "f((4,))", "f((0,))"])
        .against("lambda x: numpy.unique(x, return_counts=True)"),
    ..UNIQUE_PARTS
};

/// The cotangents of distinct elements, each at the first position of its element.
fn to_first_positions(g: &GradCx) -> Result<Grads> {
    let attrs = [g.get("equal_nan").clone()].into_iter().collect();
    let parts = invoke(&UNIQUE_PARTS, &[g.input(0)], &attrs)?;
    let attrs: Attrs = [Value::Int(0), Value::from(g.shape(0))]
        .into_iter()
        .collect();
    g.one(invoke1(&SCATTER_ALONG, &[g.dy(0), &parts[0]], &attrs)?)
}

/// The elements of one axis in ascending order, dense and complete.
fn sorted(x: &Array) -> Result<Array> {
    let attrs = [Value::Bool(false)].into_iter().collect();
    let sorted = invoke1(&SORT_ROWS, &[x], &attrs)?;
    sorted.wait_to_read()?;
    Ok(sorted)
}

/// Fewer integers than this are sorted as fast as they are counted.
const FEW: usize = 1024;

/// Distinct elements and how often each is there, by one counter for each value between the smallest and the largest, if they are integers and there
/// are not many more counters than elements.
fn tallied(x: &Array) -> Result<Option<(Array, Array)>> {
    let n = x.len();
    if x.dtype().kind() != Kind::Integer || x.dtype() == DType::U64 || n < FEW {
        return Ok(None);
    }
    let x64 = x.astype(DType::I64)?.contiguous()?;
    x64.wait_to_read()?;
    let elements: *const i64 = x64.tensor().data_ptr().cast_const().cast();
    // SAFETY: dense int64, complete, and held by `x64` throughout.
    let (least, largest) = unsafe { extremes(&Pool, elements, n) };
    let span = i128::from(largest) - i128::from(least) + 1;
    if span > 2 * n as i128 {
        return Ok(None);
    }
    let mut tally = vec![0_i64; span as usize];
    // SAFETY: as above; there is a counter for every value from the least to the largest.
    unsafe { occurrences(&Pool, elements, n, least, &mut tally) };
    let found = |&(_, &count): &(usize, &i64)| count > 0;
    let (values, counts): (Vec<i64>, Vec<i64>) = (tally.iter().enumerate())
        .filter(found)
        .map(|(i, &count)| (least + i as i64, count))
        .unzip();
    Ok(Some((
        Array::from_slice(&values, &[values.len()])?.astype(x.dtype())?,
        Array::from_slice(&counts, &[counts.len()])?,
    )))
}

fn nans(cx: &EagerCx) -> Nans {
    if cx.bool("equal_nan") {
        Nans::Equal
    } else {
        Nans::Distinct
    }
}

fn one_axis(cx: &EagerCx) -> Result<()> {
    if cx.input(0).ndim() == 1 {
        Ok(())
    } else {
        Err(cx.shape_error("`x` must have 1 axis"))
    }
}

/// Where runs of equal elements start in a sorted, dense array that was waited for.
fn starts(cx: &EagerCx, sorted: &Array) -> Vec<i64> {
    let nans = nans(cx);
    let mut starts = vec![0_i64; sorted.len()];
    // SAFETY: `sorted` is dense and complete (its caller's premise); there are at most as many runs as elements.
    let count = unsafe {
        runs(
            elem(sorted.dtype()),
            nans,
            sorted.tensor().data_ptr(),
            sorted.len(),
            starts.as_mut_ptr(),
        )
    };
    starts.truncate(count);
    starts
}
