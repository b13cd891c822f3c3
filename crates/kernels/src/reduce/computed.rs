//! Reductions of elements that are computed when they are read.

use std::mem::MaybeUninit;

use super::Target;
use super::blocks::{BLOCK_BYTES, Block, Plan};
use super::elements::Elements;
use super::fold::Reduce;
use super::plan::{Axes, Axis, count, normalise};
use crate::{Elem, Threads};

/// Shortest run of computed elements: for each run, each operator that computes them is called.
const MIN_COMPUTED_ROW: usize = 64;

/// Elements that are computed when a reduction reads them, in C order.
pub struct Computed<'a> {
    /// Element type.
    pub elem: Elem,
    /// Length of every axis.
    pub shape: &'a [usize],
    /// Time of one element, in float32 additions.
    pub cost: usize,
    /// Computes the elements.
    pub row: &'a ComputeRow<'a>,
}

/// `row(first, n, to, scratch)` computes elements `first..first + n` and returns their address: `to`, which has room for them, or other memory.
/// `scratch` has [`Computed::SCRATCH_BYTES`] bytes, aligned to 64.
pub type ComputeRow<'a> = dyn Fn(usize, usize, *mut u8, *mut u8) -> *const u8 + Sync + 'a;

/// A block of elements, and scratch memory to compute them.
#[repr(C, align(64))]
pub(super) struct ComputedBlock {
    elements: Block,
    scratch: MaybeUninit<[[u64; 8]; Computed::SCRATCH_BYTES / 64]>,
}

impl Computed<'_> {
    /// Size of the scratch memory of a task.
    pub const SCRATCH_BYTES: usize = 32 * 1024;

    fn compute(&self, first: usize, n: usize, to: *mut u8, block: *mut u8) -> *const u8 {
        let scratch = block.wrapping_add(std::mem::offset_of!(ComputedBlock, scratch));
        (self.row)(first, n, to, scratch)
    }
}

impl Elements for Computed<'_> {
    type Buffer = MaybeUninit<ComputedBlock>;

    fn buffer() -> Self::Buffer {
        MaybeUninit::uninit()
    }

    fn start(buffer: &mut Self::Buffer) -> *mut u8 {
        buffer.as_mut_ptr().cast()
    }

    unsafe fn row(&self, at: isize, n: usize, buffer: *mut u8) -> *const u8 {
        self.compute(at as usize / self.elem.size(), n, buffer, buffer)
    }

    unsafe fn rows(
        &self,
        at: isize,
        stride: isize,
        count: usize,
        n: usize,
        buffer: *mut u8,
    ) -> (*const u8, isize, usize) {
        let len_bytes = n * self.elem.size();
        let count = match BLOCK_BYTES / len_bytes {
            fit if count <= fit => count,
            fit @ 0..4 => fit,
            fit => fit / 4 * 4,
        };
        let first = at as usize / self.elem.size();
        let step = stride as usize / self.elem.size();
        if step == n {
            let rows = self.compute(first, n * count, buffer, buffer);
            return (rows, stride, count);
        }
        let mut rows = (buffer.cast_const(), len_bytes as isize);
        for i in 0..count {
            let own = buffer.wrapping_add(i * len_bytes);
            let row = self.compute(first + i * step, n, own, buffer);
            // Rows that are not in the buffer are where the operator stores its result.
            if row != own {
                rows = (row.wrapping_offset(-(i as isize * stride)), stride);
            }
        }
        (rows.0, rows.1, count)
    }

    fn cost(&self) -> usize {
        self.cost.max(1)
    }
}

/// The plan of a reduction of dense elements in C order, and the first output; `None` if the plan does not read them in rows.
fn plan_of_rows(
    op: Reduce,
    src: &Computed,
    axes: &[bool],
    out: &Target,
) -> Option<(Plan, *mut u8)> {
    let size = src.elem.size();
    let (mut keep, mut red) = (Axes::new(), Axes::new());
    let mut stride = size as isize;
    for (i, &len) in src.shape.iter().enumerate().rev() {
        let (list, dst) = match axes[i] {
            true => (&mut red, 0),
            false => (&mut keep, out.strides[i]),
        };
        list.insert(
            0,
            Axis {
                len,
                src: stride,
                dst,
            },
        );
        stride *= len as isize;
    }
    if count(&keep) == 0 || count(&red) == 0 {
        return None;
    }
    let mut to = out.ptr;
    normalise(&mut keep, &mut std::ptr::null(), &mut to);
    normalise(&mut red, &mut std::ptr::null(), &mut std::ptr::null_mut());
    let plan = Plan::new(op, src.elem, out.elem, keep, red);
    let (row, len, least) = match (plan.columns, plan.red.last()) {
        // Parts of rows would be read and stored in short pieces.
        (true, _) if plan.width < plan.inner.len => return None,
        (true, _) => (plan.inner.src, plan.inner.len, MIN_COMPUTED_ROW),
        // Short rows that are folded in place are computed together.
        (false, Some(r)) if plan.in_place.is_some() => (r.src, r.len, MIN_COMPUTED_ROW),
        (false, Some(r)) => (r.src, r.len, 16 * MIN_COMPUTED_ROW),
        (false, None) => return None,
    };
    let is_read_in_rows = row == size as isize && len >= least && size <= plan.size;
    is_read_in_rows.then_some((plan, to))
}

/// Number of tasks of [`reduce_computed`] for these elements, axes and strides of the output; 0 if it does not take them.
///
/// Products are read twice, booleans need little memory, and complex elements are larger than their accumulators.
pub fn num_tasks_computed(op: Reduce, src: &Computed, axes: &[bool], out: &Target) -> usize {
    if op == Reduce::Prod || matches!(src.elem, Elem::Bool | Elem::C64 | Elem::C128) {
        return 0;
    }
    plan_of_rows(op, src, axes, out).map_or(0, |(plan, _)| plan.num_units() * plan.segments)
}

/// [`super::reduce`] of elements that are computed when they are read, each one once. The result has the same bits.
///
/// # Safety
/// [`num_tasks_computed`] is not 0. Every element of `out` (along the kept axes) can be written; its elements do not overlap each other, nor any memory
/// that `src` reads. `axes` and the strides have one entry per axis of `src`.
pub unsafe fn reduce_computed(
    threads: &dyn Threads,
    op: Reduce,
    src: &Computed,
    axes: &[bool],
    out: &Target,
) {
    if let Some((plan, to)) = plan_of_rows(op, src, axes, out) {
        // SAFETY: guaranteed by the caller.
        unsafe { plan.run(threads, src, to) }
    }
}
