//! Gather and scatter along one axis with one index per output element: `take_along_axis`, `pick` and their gradients.

use super::{Sum, Write, with_size};
use crate::reduce::plan::{Axes, Axis, count, offsets};
use crate::reduce::with_elem;
use crate::threads::split;
use crate::{Elem, Threads};

/// Element `dense[i.., j, k..]` corresponds to `view[i.., indices[i.., j, k..], k..]`.
#[derive(Clone, Copy, Debug)]
pub struct Along<'a> {
    /// Element type; gathers and `Write::Set` use only its size.
    pub elem: Elem,
    /// Shape of the indices and of the dense side.
    pub shape: &'a [usize],
    /// The indexed axis.
    pub axis: usize,
    /// Resolved indices, contiguous in C order.
    pub indices: *const i64,
    /// Byte strides of the view, which has the same number of axes.
    pub view_strides: &'a [isize],
    /// Byte strides of the dense side.
    pub dense_strides: &'a [isize],
}

/// Gathers elements of `view` into `out`, the dense side.
///
/// # Safety
/// Every index is in range of the view's `axis`; the other axes of the view are at least as long as in `shape`; the view can be read and `out`
/// written; they do not overlap, nor do elements of `out` each other; all slices have equal length.
pub unsafe fn gather_along(threads: &dyn Threads, what: &Along, view: *const u8, out: *mut u8) {
    let row = with_size!(what.elem.size(), T => gather_row::<T> as Row);
    // SAFETY: guaranteed by the caller; rows only read the view.
    unsafe { run(threads, what, view.cast_mut(), out, row, GATHER_TASK) }
}

/// Scatters `values`, the dense side, into `view`. The result is that of writing in C order, for any number of threads.
///
/// # Safety
/// Same as for [`gather_along`], but `values` is read and the view written; elements of the view do not overlap each other.
pub unsafe fn scatter_along(
    threads: &dyn Threads,
    write: Write,
    what: &Along,
    view: *mut u8,
    values: *const u8,
) {
    let row = match write {
        Write::Set => with_size!(what.elem.size(), T => set_row::<T> as Row),
        Write::Add => with_elem!(what.elem, T => add_row::<T> as Row),
    };
    // SAFETY: guaranteed by the caller; rows only read the dense side.
    unsafe { run(threads, what, view, values.cast_mut(), row, usize::MAX) }
}

/// `(view, step, stride of the indexed axis, dense, step, indices, n)`, steps in bytes.
pub(super) type Row = unsafe fn(*mut u8, isize, isize, *mut u8, isize, *const i64, usize);

/// Elements of one task of a gather.
const GATHER_TASK: usize = 16 * 1024;

/// Runs `row` for all elements. A task gets whole lines along the indexed axis if they have at most `most` elements, otherwise parts of them.
unsafe fn run(
    threads: &dyn Threads,
    what: &Along,
    view: *mut u8,
    dense: *mut u8,
    row: Row,
    most: usize,
) {
    let ndim = what.shape.len();
    // Per axis: `src` is the view's stride, `dst` the dense side's; the indices are contiguous in C order.
    let mut axes = Axes::new();
    let mut steps = [0isize; 64];
    let mut step = 1;
    for i in (0..ndim).rev() {
        let src = if i == what.axis {
            0
        } else {
            what.view_strides[i]
        };
        axes.insert(
            0,
            Axis {
                len: what.shape[i],
                src,
                dst: what.dense_strides[i],
            },
        );
        steps[i] = step;
        step *= what.shape[i] as isize;
    }
    let total = count(&axes);
    if total == 0 {
        return;
    }
    let jump = what.view_strides[what.axis];
    // Two indices give the same element of the view only along the indexed axis. So a task of a scatter gets whole lines along it: the innermost axis
    // and, if the indexed axis is another one, that axis around it.
    let inner = axes[ndim - 1];
    let is_inner = what.axis == ndim - 1;
    let (line, line_step) = if is_inner {
        (
            Axis {
                len: 1,
                src: 0,
                dst: 0,
            },
            0,
        )
    } else {
        (axes[what.axis], steps[what.axis])
    };
    let outer: Axes = (0..ndim - 1)
        .filter(|&i| i != what.axis)
        .map(|i| axes[i])
        .collect();
    let outer_steps: Axes = (0..ndim - 1)
        .filter(|&i| i != what.axis)
        .map(|i| Axis {
            len: what.shape[i],
            src: steps[i],
            dst: 0,
        })
        .collect();
    let len = what.shape[what.axis];
    let part = if is_inner {
        most
    } else {
        (most / inner.len).max(1)
    };
    let parts = len.div_ceil(part);
    let (view, dense, indices) = (view as usize, dense as usize, what.indices as usize);
    split(threads, count(&outer) * parts, total, &|task| {
        let (src, dst) = offsets(&outer, task / parts);
        let at = offsets(&outer_steps, task / parts).0;
        let first = task % parts * part;
        let end = len.min(first.saturating_add(part));
        // SAFETY: every index is in range, so all addresses are inside the caller's arrays; tasks write disjoint elements.
        let line_at = |l: usize, i: usize, n: usize| unsafe {
            let (l, i) = (l as isize, i as isize);
            let view = (view as *mut u8).offset(src + l * line.src + i * inner.src);
            let dense = (dense as *mut u8).offset(dst + l * line.dst + i * inner.dst);
            let indices = (indices as *const i64).offset(at + l * line_step + i);
            row(view, inner.src, jump, dense, inner.dst, indices, n);
        };
        if is_inner {
            line_at(0, first, end - first);
        } else {
            (first..end).for_each(|l| line_at(l, 0, inner.len));
        }
    });
}

macro_rules! rows {
    ($($name:ident<$bound:ident>, |$view:ident, $dense:ident| $body:expr);*) => { $(
        pub(super) unsafe fn $name<T: $bound>(view: *mut u8, vs: isize, jump: isize, dense: *mut u8, ds: isize, at: *const i64, n: usize) {
            for i in 0..n as isize {
                // SAFETY: the caller gives `n` indices in range and `n` dense elements.
                unsafe {
                    let $view = view.offset(i * vs + *at.offset(i) as isize * jump).cast::<T>();
                    let $dense = dense.offset(i * ds).cast::<T>();
                    $body
                }
            }
        }
    )* };
}
rows!(
    gather_row<Copy>, |view, dense| *dense = *view;
    set_row<Copy>, |view, dense| *view = *dense;
    add_row<Sum>, |view, dense| *view = (*view).plus(*dense)
);
