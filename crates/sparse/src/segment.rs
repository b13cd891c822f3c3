//! Extrema of segments and their positions. A segment is a range of consecutive rows, given by offsets: for example the stored elements of each row of
//! a matrix. Sums, products and softmax of segments are operators of the ragged crate.
#![allow(unsafe_code)]

use mxnet_core::context::CallContext;
use mxnet_core::launch::elem;
use mxnet_core::{
    Array, Attrs, Cost, Cpu, Grad, Inferred, Keep, KernelContext, OpDef, Param, Probe, Result,
    Types, invoke1,
};
use mxnet_kernels::sparse::{self, Extremum, Pattern};
use mxnet_tensor::{DType, Dims};
use smallvec::SmallVec;

use crate::operand::{
    NAMES, check_integers, compute_dtype, integer_output, integers, num_rows, values, write,
};

pub(crate) static OPS: &[&OpDef] = &[&SEGMENT_MAX, &SEGMENT_MIN];

const CALLS: &[&str] = &[
    "f((6,)), np.array([0, 2, 2, 6])",
    "f((6, 3)), np.array([0, 5, 6])",
    "f((0, 2)), np.array([0, 0])",
];

/// Largest elements of segments.
pub static SEGMENT_MAX: OpDef = OpDef {
    name: "segment_max",
    doc: "Largest element of each segment `x[indptr[i]:indptr[i + 1]]` (along axis 0), 0 for empty ones, and its row, -1 for empty \
          ones. NaN is larger than all numbers; of equal elements the first one is taken.",
    params: &[Param::array("x"), Param::array("indptr")],
    types: Types::Infer,
    infer,
    cpu: Cpu::Kernel(|context| run(context, Extremum::Max)),
    grad: Grad::Rule(
        Keep {
            inputs: 0,
            outputs: 0b10,
        },
        |g| {
            let shape = Dims::from_slice(g.shape(0));
            let width: usize = shape[1..].iter().product();
            // Each column has its own maximum: positions in the flattened array.
            let at = flat_positions(g.output(1), width)?;
            let dy = g.dy(0).reshape(&[g.dy(0).len()])?;
            let length = mxnet_core::Value::Int(shape.iter().product::<usize>() as i64);
            let attrs: Attrs = [length].into_iter().collect();
            let dx = invoke1(&crate::gather::SCATTER_OR_SKIP, &[&dy, &at], &attrs)?;
            Ok(SmallVec::from_iter([Some(dx.reshape(&shape)?), None]))
        },
    ),
    probe: Probe::calls(CALLS).against(
        "lambda x, p: tuple(numpy.stack(y) for y in zip(*[(x[a:b].max(0), a + x[a:b].argmax(0)) if a < b else (numpy.zeros(x.shape[1:]), numpy.full(x.shape[1:], -1)) for a, b in zip(p, p[1:])]))",
    ),
    cost: Cost::PerKiB(300),
    positions: &[1],
    ..OpDef::DEFAULT
};

/// Smallest elements of segments.
pub static SEGMENT_MIN: OpDef = OpDef {
    name: "segment_min",
    doc: "Smallest element of each segment `x[indptr[i]:indptr[i + 1]]` (along axis 0), 0 for empty ones, and its row, -1 for empty \
          ones. NaN is smaller than all numbers; of equal elements the first one is taken.",
    cpu: Cpu::Kernel(|context| run(context, Extremum::Min)),
    probe: Probe::calls(CALLS).against(
        "lambda x, p: tuple(numpy.stack(y) for y in zip(*[(x[a:b].min(0), a + x[a:b].argmin(0)) if a < b else (numpy.zeros(x.shape[1:]), numpy.full(x.shape[1:], -1)) for a, b in zip(p, p[1:])]))",
    ),
    ..SEGMENT_MAX
};

/// Positions in a flattened array of rows of `width` elements, given the row for each column; negative for row -1.
fn flat_positions(rows: &Array, width: usize) -> Result<Array> {
    if rows.ndim() == 1 {
        return Ok(rows.clone());
    }
    let columns: Vec<i64> = (0..width as i64).collect();
    let columns = Array::from_slice(&columns, &[width])?.to_device(rows.device())?;
    let flat = rows.reshape(&[rows.shape()[0], width])?;
    // Row -1 must give a negative position: -width + column is negative.
    let width = Array::constant(mxnet_tensor::Scalar::I64(width as i64), DType::I64)?;
    let at = flat.mul(&width)?.add(&columns)?;
    at.reshape(&[at.len()])
}

fn infer(context: &CallContext) -> Result<Inferred> {
    check_integers(context, &[1])?;
    let Some((_, row)) = context.shape(0).split_first() else {
        return Err(context.shape_error("`x` must have an axis"));
    };
    if context.dtype_of(0).is_complex() {
        return Err(context.dtype_error("complex numbers have no largest or smallest"));
    }
    let mut shape = Dims::from_slice(&[num_rows(context, 1)?]);
    shape.extend_from_slice(row);
    context.many([(shape.clone(), context.dtype_of(0)), (shape, DType::I64)])
}

fn run(context: &KernelContext, extremum: Extremum) -> Result<()> {
    let (x, out) = (context.input(0), context.output(0));
    let indptr = integers(context.input(1), context.threads)?;
    // Only the offsets matter. The zeroed indices are never read, so that the system need not provide their pages.
    let indices = vec![0; x.shape()[0]];
    let rows = Pattern::new(&indices, &indptr)
        .map_err(|fault| crate::operand::error(context.op.name, NAMES, fault, None))?;
    let compute = compute_dtype(out.dtype());
    let width = x.shape()[1..].iter().product();
    let x = values(x, compute, context.threads)?;
    let arg = integer_output(context.output(1)).as_mut_ptr();
    write(out, compute, context.threads, |to| {
        // SAFETY: dense values of this dtype, with all rows of the segments (the pattern was checked); outputs have a row for each segment.
        unsafe {
            sparse::extreme_segments(
                context.threads,
                elem(compute),
                extremum,
                &rows,
                width,
                x.operand(),
                (to, arg),
            );
        }
        Ok(())
    })
}
