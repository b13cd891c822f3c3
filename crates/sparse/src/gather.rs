//! Gather and scatter of rows; negative positions mean zeros or no row.
#![allow(unsafe_code)]

use mxnet_core::opdef::one_of;
use mxnet_core::{
    Array, Attrs, Cost, Cpu, Grad, Keep, KernelContext, OpDef, Param, ParamKind, Probe, Result,
    Types, Value, invoke1,
};
use mxnet_kernels::Threads;
use mxnet_tensor::Dims;
use smallvec::SmallVec;

use crate::operand::{check_integers, compute_dtype, integers, length, values, write};

pub(crate) static OPS: &[&OpDef] = &[&GATHER_OR_ZERO, &SCATTER_OR_SKIP];

/// Gathers rows at positions; zeros at negative positions.
pub static GATHER_OR_ZERO: OpDef = OpDef {
    name: "gather_or_zero",
    params: &[Param::array("x"), Param::array("positions")],
    doc: "The rows of `x` (along axis 0) at int64 `positions`; zeros where a position is negative.",
    types: Types::Infer,
    infer: |context| {
        check_integers(context, &[1])?;
        if context.shape(0).is_empty() {
            return Err(context.shape_error("`x` must have an axis"));
        }
        let mut shape = Dims::from_slice(context.shape(0));
        shape[0] = context.shape(1)[0];
        one_of(shape, context.dtype_of(0))
    },
    cpu: Cpu::Kernel(gather),
    grad: Grad::Rule(Keep::inputs(0b10), |g| {
        let length = Value::Int(g.shape(0)[0] as i64);
        let dx = invoke1(
            &SCATTER_OR_SKIP,
            &[g.dy(0), g.input(1)],
            &[length].into_iter().collect(),
        )?;
        Ok(SmallVec::from_iter([Some(dx), None]))
    }),
    cost: Cost::PerKiB(400),
    probe: Probe::calls(&[
        "f((4,)), np.array([2, -1, 0, 2])",
        "f((4, 3)), np.array([2, -1, 0])",
        "f((0,)), np.array([-1, -1])",
    ])
    .against("lambda x, at: numpy.concatenate([x, numpy.zeros((1,) + x.shape[1:])])[at]"),
    positions: &[1],
    ..OpDef::DEFAULT
};

/// The inverse of `gather_or_zero`: adds rows at positions, and skips negative ones.
pub static SCATTER_OR_SKIP: OpDef = OpDef {
    name: "scatter_or_skip",
    params: &[
        Param::array("x"),
        Param::array("positions"),
        Param::required("length", ParamKind::Int),
    ],
    doc: "`length` rows: zeros, to which the rows of `x` are added at int64 `positions`, in order. Rows with negative positions are skipped.",
    types: Types::Infer,
    infer: |context| {
        check_integers(context, &[1])?;
        if context.shape(0).first() != context.shape(1).first() {
            return Err(context.shape_error("`x` must have a row for each position"));
        }
        let mut shape = Dims::from_slice(context.shape(0));
        shape[0] = length(context, "length")?;
        mxnet_tensor::checked_len(&shape)?;
        one_of(shape, context.dtype_of(0))
    },
    cpu: Cpu::Kernel(scatter),
    grad: Grad::Rule(Keep::inputs(0b10), |g| {
        let dx = invoke1(&GATHER_OR_ZERO, &[g.dy(0), g.input(1)], &Attrs::none())?;
        Ok(SmallVec::from_iter([Some(dx), None]))
    }),
    cost: Cost::PerKiB(400),
    probe: Probe::calls(&[
        "f((4,)), np.array([2, -1, 0, 2]), 5",
        "f((3, 2)), np.array([1, -1, 0]), 2",
    ])
    .against(
        "lambda x, at, n: (lambda y: (numpy.add.at(y, at[at >= 0], x[at >= 0]), y)[1])(numpy.zeros((n,) + x.shape[1:], x.dtype))",
    ),
    positions: &[1],
    ..OpDef::DEFAULT
};

/// The rows of `x` at `positions`.
pub(crate) fn gathered(x: &Array, positions: &Array) -> Result<Array> {
    invoke1(&GATHER_OR_ZERO, &[x, positions], &Attrs::none())
}

fn gather(context: &KernelContext) -> Result<()> {
    let (x, out) = (context.input(0), context.output(0));
    let at = integers(context.input(1), context.threads)?;
    let dense = values(x, x.dtype(), context.threads)?;
    let num_rows = x.shape()[0];
    let row_bytes = x.shape()[1..].iter().product::<usize>() * x.dtype().size();
    check_positions(context, &at, num_rows)?;
    if row_bytes == 0 {
        return Ok(());
    }
    let (from, to) = (dense.operand().ptr as usize, out.data_ptr() as usize);
    blocks(context.threads, at.len(), row_bytes, &|range| {
        let dst = (to as *mut u8).wrapping_add(range.start * row_bytes);
        let (src, at) = (from as *const u8, &at[range]);
        // SAFETY: 1. the output is dense, with a row for each position. 2. positions are below the number of rows of dense `x`. 3. the output was
        // allocated for this call, so nothing overlaps.
        unsafe {
            match row_bytes {
                4 => copy_rows::<4>(src, dst, at),
                8 => copy_rows::<8>(src, dst, at),
                16 => copy_rows::<16>(src, dst, at),
                _ => copy_long_rows(src, dst, at, row_bytes),
            }
        }
    });
    Ok(())
}

/// Rows of `N` bytes, zeros for negative positions.
///
/// # Safety
/// Rows at all other positions can be read at `src`, as many as positions written at `dst`, which does not overlap.
unsafe fn copy_rows<const N: usize>(src: *const u8, dst: *mut u8, at: &[i64]) {
    for (k, &j) in at.iter().enumerate() {
        let row = match j < 0 {
            true => [0; N],
            // SAFETY: the caller's.
            false => unsafe { src.cast::<[u8; N]>().wrapping_add(j as usize).read() },
        };
        // SAFETY: the caller's.
        unsafe { dst.cast::<[u8; N]>().wrapping_add(k).write(row) };
    }
}

/// [`copy_rows`] of any number of bytes.
///
/// # Safety
/// As there.
unsafe fn copy_long_rows(src: *const u8, dst: *mut u8, at: &[i64], bytes: usize) {
    for (k, &j) in at.iter().enumerate() {
        let dst = dst.wrapping_add(k * bytes);
        // SAFETY: the caller's.
        unsafe {
            match usize::try_from(j) {
                Ok(j) => dst.copy_from_nonoverlapping(src.wrapping_add(j * bytes), bytes),
                Err(_) => dst.write_bytes(0, bytes),
            }
        }
    }
}

/// Runs `task` on blocks of `0..n`.
fn blocks(
    threads: &dyn Threads,
    n: usize,
    row_bytes: usize,
    task: &(dyn Fn(std::ops::Range<usize>) + Sync),
) {
    let rows = (128 * 1024 / row_bytes.max(1)).max(1);
    let count = n.div_ceil(rows);
    if count < 2 || threads.count() < 2 {
        return task(0..n);
    }
    threads.run(count, &|t| task(t * rows..((t + 1) * rows).min(n)));
}

fn check_positions(context: &KernelContext, at: &[i64], num_rows: usize) -> Result<()> {
    // The maximum is computed without branches, so that the loop is vectorised.
    let largest = at.iter().fold(-1, |largest, &j| j.max(largest));
    if largest < num_rows as i64 {
        return Ok(());
    }
    let k = at.iter().position(|&j| j == largest).unwrap_or(0);
    Err(mxnet_core::Error::index(
        context.op.name,
        format!("positions[{k}] is {largest}, outside an axis of size {num_rows}"),
    ))
}

fn scatter(context: &KernelContext) -> Result<()> {
    let (x, out) = (context.input(0), context.output(0));
    let compute = compute_dtype(out.dtype());
    let at = integers(context.input(1), context.threads)?;
    let dense = values(x, compute, context.threads)?;
    let num_rows = out.shape()[0];
    let width = out.shape()[1..].iter().product::<usize>();
    check_positions(context, &at, num_rows)?;
    write(out, compute, context.threads, |to| {
        // SAFETY: 1. `x` is dense, of this dtype, with a row for each position. 2. `to` has the number of rows of the output. 3. positions are in
        // range.
        unsafe {
            mxnet_kernels::sparse::add_rows(
                context.threads,
                mxnet_core::launch::elem(compute),
                &at,
                width,
                dense.operand(),
                to,
                num_rows,
            );
        }
        Ok(())
    })
}
