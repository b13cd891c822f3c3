//! `unique` and its relatives.
#![allow(unsafe_code)]

use mxnet_kernels::scratch::{collected, filled};
use mxnet_kernels::sort::{Nans, Runs, extremes, occurrences};
use mxnet_tensor::{DType, Kind};

use super::rows::SORT_ROWS;
use super::sort::argsort;
use crate::args::{Attrs, Param, Value};
use crate::autograd::GradContext;
use crate::context::EagerContext;
use crate::error::Result;
use crate::index::{SCATTER_ALONG, gather_along};
use crate::invoke::{invoke, invoke1};
use crate::launch::{Pool, elem};
use crate::opdef::{Cost, Cpu, Grad, Grads, Keep, Known, OpDef, Probe};
use crate::{Array, Outputs};

/// The kernel of `unique`.
pub static UNIQUE_PARTS: OpDef = OpDef {
    name: "unique_parts",
    params: &[Param::array("x"), Param::bool("equal_nan", true)],
    doc: "Three int64 arrays for the distinct elements, in ascending order, of an array of one axis: the first position of each; for each element of \
        `x` the index of its distinct element; and the number of occurrences of each. NaNs are one element if `equal_nan`.",
    cpu: Cpu::Eager(|context| {
        let x = context.input(0);
        one_axis(context)?;
        let n = x.len();
        let at = argsort(x)?;
        let sorted = gather_along(x, &at, 0)?;
        sorted.wait_to_read()?;
        let at = at.to_vec::<i64>()?;
        let starts = starts(context, &sorted)?.to_vec::<i64>()?;
        let count = starts.len();
        let index = collected(count, starts.iter().map(|&start| at[start as usize]));
        let ends = starts.iter().skip(1).copied().chain([n as i64]);
        let counts = collected(count, starts.iter().zip(ends).map(|(start, end)| end - start));
        let mut inverse = filled(n, 0_i64);
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
    }, Known::FromValues),
    cost: Cost::PerKiB(5000),
    grad: Grad::Stop("positions and counts are integers"),
    probe: Probe::calls(&["i((9,), 5)", "f((4,))", "f((0,))"]).against(
        "lambda x: (lambda r: (r[1], r[2], r[3]))(numpy.unique(x, return_index=True, return_inverse=True, return_counts=True))",
    ),
    ..OpDef::DEFAULT
};

/// Distinct elements only.
pub static UNIQUE_SORTED: OpDef = OpDef {
    name: "unique_sorted",
    params: &[Param::array("x"), Param::bool("equal_nan", true)],
    doc: "The distinct elements of an array of one axis, ascending. NaNs are one element if `equal_nan`. The gradient of an element goes to its \
          first position.",
    cpu: Cpu::Eager(
        |context| {
            one_axis(context)?;
            if let Some((values, _)) = tallied(context.input(0))? {
                return context.done(values);
            }
            let sorted = sorted(context.input(0))?;
            let runs = runs(context, &sorted);
            if runs.count() == sorted.len() {
                return context.done(sorted);
            }
            let out = Array::uninitialised(&[runs.count()], sorted.dtype(), sorted.device())?;
            // SAFETY: `out` has one element for each run and is not shared.
            unsafe { runs.write(&Pool, out.tensor().data_ptr(), std::ptr::null_mut()) };
            context.done(out)
        },
        Known::FromValues,
    ),
    grad: Grad::Rule(Keep::INPUTS, to_first_positions),
    probe: Probe::calls(&["i((9,), 5)", "f((4,))", "f((0,))"]).against("lambda x: numpy.unique(x)"),
    // Small integers are counted in one pass and written in a second one.
    positions: &[0],
    ..UNIQUE_PARTS
};

/// Distinct elements and counts, without positions: only the values are sorted.
pub static UNIQUE_RUNS: OpDef = OpDef {
    name: "unique_runs",
    params: &[Param::array("x"), Param::bool("equal_nan", true)],
    doc: "The distinct elements of an array of one axis, ascending, and the number of occurrences of each. NaNs are one element if `equal_nan`. The \
          gradient of an element goes to its first position.",
    cpu: Cpu::Eager(
        |context| {
            one_axis(context)?;
            if let Some((values, counts)) = tallied(context.input(0))? {
                return Ok(Outputs::from_iter([values, counts]));
            }
            let sorted = sorted(context.input(0))?;
            let n = sorted.len() as i64;
            let runs = runs(context, &sorted);
            let count = runs.count();
            let values = Array::uninitialised(&[count], sorted.dtype(), sorted.device())?;
            let counts = Array::uninitialised(&[count], DType::I64, sorted.device())?;
            let (to, at) = (
                values.tensor().data_ptr(),
                counts.tensor().data_ptr().cast::<i64>(),
            );
            // SAFETY: both have one element for each run and are not shared.
            let counts_of = unsafe {
                runs.write(&Pool, to, at);
                std::slice::from_raw_parts_mut(at, count)
            };
            // Converts starts to lengths in place: each iteration reads the start that follows, which is not overwritten yet.
            for k in 1..count {
                counts_of[k - 1] = counts_of[k] - counts_of[k - 1];
            }
            if let Some(last) = counts_of.last_mut() {
                *last = n - *last;
            }
            Ok(Outputs::from_iter([values, counts]))
        },
        Known::FromValues,
    ),
    grad: Grad::Rule(Keep::INPUTS, to_first_positions),
    probe: Probe::calls(&["i((9,), 5)", "f((4,))", "f((0,))"])
        .against("lambda x: numpy.unique(x, return_counts=True)"),
    positions: &[0],
    ..UNIQUE_PARTS
};

/// Scatters the cotangents of distinct elements to the elements' first positions.
fn to_first_positions(g: &GradContext) -> Result<Grads> {
    let attrs = [g.get("equal_nan").clone()].into_iter().collect();
    let parts = invoke(&UNIQUE_PARTS, &[g.input(0)], &attrs)?;
    let attrs: Attrs = [Value::Int(0), Value::from(g.shape(0))]
        .into_iter()
        .collect();
    g.one(invoke1(&SCATTER_ALONG, &[g.dy(0), &parts[0]], &attrs)?)
}

/// The elements of a 1-d array in ascending order. Waits for them.
fn sorted(x: &Array) -> Result<Array> {
    let attrs = [Value::Bool(false)].into_iter().collect();
    let sorted = invoke1(&SORT_ROWS, &[x], &attrs)?;
    sorted.wait_to_read()?;
    Ok(sorted)
}

/// With fewer integers, sorting is as fast as counting.
const MIN_TALLIED_LEN: usize = 1024;

/// Distinct elements and their counts, with one counter for each value between the smallest and the largest. `None` if they are not integers, or if
/// there would be many more counters than elements.
fn tallied(x: &Array) -> Result<Option<(Array, Array)>> {
    let n = x.len();
    if x.dtype().kind() != Kind::Integer || x.dtype() == DType::U64 || n < MIN_TALLIED_LEN {
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
    let mut tally = filled(span as usize, 0_i64);
    // SAFETY: as above; there is a counter for every value from the least to the largest.
    unsafe { occurrences(&Pool, elements, n, least, &mut tally) };
    let found = |&(_, &count): &(usize, &i64)| count > 0;
    let distinct = || tally.iter().enumerate().filter(found);
    let count = distinct().count();
    let values = collected(count, distinct().map(|(i, _)| least + i as i64));
    let counts = collected(count, distinct().map(|(_, &count)| count));
    Ok(Some((
        Array::from_slice(&values, &[values.len()])?.astype(x.dtype())?,
        Array::from_slice(&counts, &[counts.len()])?,
    )))
}

fn nans(context: &EagerContext) -> Nans {
    if context.bool("equal_nan") {
        Nans::Equal
    } else {
        Nans::Distinct
    }
}

fn one_axis(context: &EagerContext) -> Result<()> {
    if context.input(0).ndim() == 1 {
        Ok(())
    } else {
        Err(context.shape_error("`x` must have 1 axis"))
    }
}

/// The runs of equal elements of a sorted array.
fn runs(context: &EagerContext, sorted: &Array) -> Runs {
    let (data, n) = (sorted.tensor().data_ptr(), sorted.len());
    // SAFETY: the results of [`sorted`] and of gathers from it are dense and complete; every caller keeps them as long as the runs.
    unsafe { Runs::of(&Pool, elem(sorted.dtype()), nans(context), data, n) }
}

/// The starts of the runs.
fn starts(context: &EagerContext, sorted: &Array) -> Result<Array> {
    let runs = runs(context, sorted);
    let starts = Array::uninitialised(&[runs.count()], DType::I64, sorted.device())?;
    // SAFETY: the array has one element for each run and is not shared.
    unsafe {
        runs.write(
            &Pool,
            std::ptr::null_mut(),
            starts.tensor().data_ptr().cast(),
        )
    };
    Ok(starts)
}
