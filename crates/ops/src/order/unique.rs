//! Distinct elements.
#![allow(unsafe_code)]

use mxnet_kernels::sort::{Nans, runs};

use super::sort::argsort;
use crate::args::Param;
use crate::eager::elem;
use crate::index::gather_along;
use crate::opdef::{Cpu, Cuda, Grad, Onnx, OpDef, Probe};
use crate::{Array, Outputs};

/// What `unique` is made of.
pub static UNIQUE_PARTS: OpDef = OpDef {
    name: "unique_parts",
    params: &[Param::array("x"), Param::bool("equal_nan", true)],
    doc: "Three int64 arrays about the distinct elements of an array of one axis, in ascending order: the position where each stands first; for \
          each element of `x` the number of its distinct element; and how often each stands in `x`. NaNs are one element if `equal_nan`.",
    cpu: Cpu::Eager(|cx| {
        let x = cx.input(0);
        if x.ndim() != 1 {
            return Err(cx.shape_error("`x` must have 1 axis"));
        }
        let n = x.len();
        let at = argsort(x)?;
        let sorted = gather_along(x, &at, 0)?;
        sorted.wait_to_read()?;
        let at = at.to_vec::<i64>()?;
        let nans = if cx.bool("equal_nan") {
            Nans::Equal
        } else {
            Nans::Distinct
        };
        let mut starts = vec![0_i64; n];
        // SAFETY: `sorted` is a dense result that was waited for; there are at most as many runs as elements.
        let count = unsafe {
            runs(
                elem(sorted.dtype()),
                nans,
                sorted.tensor().data_ptr(),
                n,
                starts.as_mut_ptr(),
            )
        };
        starts.truncate(count);
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
