//! Boolean masks as index arrays, and index arrays as one-hot rows.

use super::with_size;
use crate::reduce::Source;
use crate::reduce::kernel::truth_of;
use crate::reduce::plan::{Axes, Axis, Walk, count, join, split};
use crate::{Elem, Threads};

/// Elements of one task.
const CHUNK: usize = 16 * 1024;

/// Finds the elements of `src` that are not zero, in C order: writes their index on axis k to `out[k]` (contiguous) and returns how many
/// there are. With `out` empty it only counts. One pointer and a `shape` of one axis give flat positions.
///
/// # Safety
/// Every element of `src` can be read; `out` is empty, or has one pointer per axis with room for as many `i64` as there are results.
pub unsafe fn nonzero(threads: &dyn Threads, src: &Source, out: &[*mut i64]) -> usize {
    let mut axes: Axes = src
        .shape
        .iter()
        .zip(src.strides)
        .map(|(&len, &src)| Axis { len, src, dst: 0 })
        .collect();
    let n = count(&axes);
    join(&mut axes);
    let load = truth_of(src.elem);
    let stride = axes.last().map_or(src.elem.size() as isize, |a| a.src);
    let from = src.ptr as usize;
    let chunks = n.div_ceil(CHUNK);
    // Truth values of elements `start..end`, in pieces.
    let pieces = |chunk: usize, each: &mut dyn FnMut(usize, &[u8])| {
        let (mut at, end) = (chunk * CHUNK, n.min((chunk + 1) * CHUNK));
        let mut walk = Walk::new(&axes, at);
        let mut truths = [0u8; 1024];
        while at < end {
            let mut filled = 0;
            while filled < truths.len().min(end - at) {
                let (offset, left) = walk.run();
                let m = left.min(truths.len().min(end - at) - filled);
                // SAFETY: the run lies inside the source, and `m` values fit.
                unsafe {
                    load(
                        (from as *const u8).offset(offset),
                        stride,
                        m,
                        truths.as_mut_ptr().add(filled),
                    )
                };
                walk.advance(m);
                filled += m;
            }
            each(at, &truths[..filled]);
            at += filled;
        }
    };
    let mut starts = vec![0usize; chunks];
    let base = starts.as_mut_ptr() as usize;
    split(threads, chunks, n, &|chunk| {
        let mut found = 0;
        pieces(chunk, &mut |_, truths| {
            found += truths.iter().map(|&t| t as u32).sum::<u32>() as usize
        });
        // SAFETY: every task writes its own entry.
        unsafe { *(base as *mut usize).add(chunk) = found };
    });
    let mut total = 0;
    for start in &mut starts {
        total += std::mem::replace(start, total);
    }
    if out.is_empty() {
        return total;
    }
    let targets: Vec<usize> = out.iter().map(|&p| p as usize).collect();
    split(threads, chunks, n, &|chunk| {
        let mut to = starts[chunk];
        pieces(chunk, &mut |at, truths| {
            for i in (0..truths.len()).filter(|&i| truths[i] != 0) {
                let mut position = at + i;
                for (&target, &len) in targets.iter().zip(src.shape).rev() {
                    // SAFETY: this is result number `to`, and there is room for all.
                    unsafe { *(target as *mut i64).add(to) = (position % len) as i64 };
                    position /= len;
                }
                to += 1;
            }
        });
    });
    total
}

/// Writes `n` contiguous rows of `depth` elements: `off` everywhere, `on` at the row's index if that is in `0..depth`.
///
/// # Safety
/// `indices` holds `n` integers; `on` and `off` hold one element of type `elem`; `out` has room for `n * depth` elements.
#[expect(clippy::too_many_arguments, reason = "plain data of one small kernel")]
pub unsafe fn one_hot(
    threads: &dyn Threads,
    elem: Elem,
    indices: *const i64,
    n: usize,
    depth: usize,
    on: *const u8,
    off: *const u8,
    out: *mut u8,
) {
    let (indices, on, off, out) = (indices as usize, on as usize, off as usize, out as usize);
    split(threads, n, n * depth, &|row| {
        with_size!(elem.size(), T => {
            // SAFETY: row `row` is inside the output, and tasks write rows apart.
            unsafe {
                let line = std::slice::from_raw_parts_mut((out as *mut T).add(row * depth), depth);
                line.fill(*(off as *const T));
                let index = *(indices as *const i64).add(row);
                if (index as u64) < depth as u64 {
                    line[index as usize] = *(on as *const T);
                }
            }
        });
    });
}
