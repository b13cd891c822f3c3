//! Max pooling and its gradient. Rows of windows are reduced side by side in one long row, because the rows of small images do not fill the vectors.

use super::Pool;
use super::rows::{self, Phases};
use crate::real::Real;
use crate::scratch;

/// Length of a long row: it stays in the first-level cache with its copies.
const LONG: usize = 1024;

/// Number of a tap that a window without elements has.
const OUTSIDE: u32 = u32::MAX;

/// How the rows of windows of a plane are joined to long rows.
pub(super) struct Side {
    /// Length of a row with its padding, a multiple of the stride.
    padded: usize,
    /// Rows of windows in a long row.
    num_rows: usize,
    /// Windows of a long row, those between two rows included, which are not used.
    num_windows: usize,
    phases: Phases,
    /// The rows that each row of windows reads.
    spans: Vec<(usize, usize)>,
}

/// Where the taps of windows lie, for the gradient.
pub(super) struct Taps {
    /// For each column of windows its first tap inside the input.
    first: Vec<u32>,
    /// For each tap the distance of its element from the first element of the window, in the plane.
    distances: Vec<usize>,
}

impl Taps {
    pub(super) fn new(g: &Pool) -> Taps {
        let step = g.stride[2];
        let first = (0..g.output[2]).map(|i| match g.span(2, i) {
            (start, end) if start < end => (start + g.pad[2] - i * step) as u32,
            _ => OUTSIDE,
        });
        let [kd, kh, kw] = g.kernel;
        let distance = |tap: usize| {
            let (d, h, w) = (tap / (kh * kw), tap / kw % kh, tap % kw);
            (d * g.input[1] + h) * g.input[2] + w
        };
        Taps {
            first: first.collect(),
            distances: (0..kd * kh * kw).map(distance).collect(),
        }
    }
}

impl Side {
    pub(super) fn new(g: &Pool) -> Side {
        let (step, ow) = (g.stride[2], g.output[2]);
        let padded = g.padded().next_multiple_of(step);
        // In a long row the windows between two rows are computed and not used. If most windows were such, as in global pooling, rows stay alone.
        let joins = padded / step <= 2 * ow;
        let num_rows = match joins {
            true => (LONG / padded).clamp(1, g.output[1].max(1)),
            false => 1,
        };
        let num_windows = match num_rows {
            1 => ow,
            _ => num_rows * padded / step,
        };
        Side {
            padded,
            num_rows,
            num_windows,
            phases: Phases::new(num_rows * padded, step),
            spans: scratch::collected(g.output[1], (0..g.output[1]).map(|h| g.span(1, h))),
        }
    }

    /// Elements of scratch memory of a task.
    pub(super) fn scratch_len(&self) -> usize {
        2 * self.phases.len() + 2 * self.num_windows
    }
}

/// The scratch memory of a task.
struct Scratch<'a, T> {
    /// A long row.
    long: &'a mut [T],
    /// The same by phases.
    split: &'a mut [T],
    /// The maximum of each window.
    best: &'a mut [T],
    /// The tap of each maximum.
    winners: &'a mut [u32],
}

/// # Safety
/// `memory` has [`Side::scratch_len`] elements, which nobody else uses.
#[inline(always)]
unsafe fn divided<'a, T: Real>(side: &Side, memory: *mut T) -> Scratch<'a, T> {
    let (len, n) = (side.phases.len(), side.num_windows);
    // SAFETY: four parts of the memory; a number of a tap is not larger than an element.
    unsafe {
        Scratch {
            long: std::slice::from_raw_parts_mut(memory, len),
            split: std::slice::from_raw_parts_mut(memory.add(len), len),
            best: std::slice::from_raw_parts_mut(memory.add(2 * len), n),
            winners: std::slice::from_raw_parts_mut(memory.add(2 * len + n).cast(), n),
        }
    }
}

/// The maxima of `count` planes.
///
/// # Safety
/// `x` and `y` have `count` planes, `memory` is that of [`Side::scratch_len`].
pub(super) unsafe fn forward<T: Real>(
    g: &Pool,
    side: &Side,
    count: usize,
    x: *const T,
    y: *mut T,
    memory: *mut T,
) {
    // SAFETY: `memory` has the elements, as the caller guarantees.
    let Scratch {
        long, split, best, ..
    } = unsafe { divided(side, memory) };
    let ([_, ih, iw], [od, oh, ow]) = (g.input, g.output);
    let per_row = side.padded / g.stride[2];
    for plane in 0..count {
        // SAFETY: one plane of each array.
        let (x, y) = unsafe {
            (
                std::slice::from_raw_parts(x.add(plane * g.in_len()), g.in_len()),
                std::slice::from_raw_parts_mut(y.add(plane * g.out_len()), g.out_len()),
            )
        };
        for d in 0..od {
            let (d0, d1) = g.span(0, d);
            let mut h = 0;
            while h < oh {
                let rows = side.num_rows.min(oh - h);
                long.fill(T::NEG_INFINITY);
                for z in d0..d1 {
                    let (to, from) = (&mut long[g.pad[2]..], &x[z * ih * iw..][..ih * iw]);
                    rows::fold_max(to, side.padded, from, iw, &side.spans[h..h + rows]);
                }
                best.fill(T::NEG_INFINITY);
                rows::split(split, long, side.phases);
                rows::slide_max(best, split, g.kernel[2], side.phases);
                for r in 0..rows {
                    y[(d * oh + h + r) * ow..][..ow].copy_from_slice(&best[r * per_row..][..ow]);
                }
                h += rows;
            }
        }
    }
}

/// Adds each `dy` to the first of the largest elements of its window, which are found again from the input, for `count` planes.
///
/// # Safety
/// `x`, `dy` and `dx` have `count` planes, `memory` is that of [`Side::scratch_len`].
pub(super) unsafe fn backward<T: Real>(
    g: &Pool,
    (side, taps): (&Side, &Taps),
    count: usize,
    x: *const T,
    dy: *const T,
    dx: *mut T,
    memory: *mut T,
) {
    // SAFETY: `memory` has the elements, as the caller guarantees.
    let Scratch {
        long,
        split,
        best,
        winners,
    } = unsafe { divided(side, memory) };
    let ([id, ih, iw], [od, oh, ow]) = (g.input, g.output);
    let [kd, kh, kw] = g.kernel;
    let per_row = side.padded / g.stride[2];
    // Padding is never overwritten.
    long.fill(T::NEG_INFINITY);
    for plane in 0..count {
        // SAFETY: one plane of each array.
        let (x, dy, dx) = unsafe {
            (
                std::slice::from_raw_parts(x.add(plane * g.in_len()), g.in_len()),
                std::slice::from_raw_parts(dy.add(plane * g.out_len()), g.out_len()),
                std::slice::from_raw_parts_mut(dx.add(plane * g.in_len()), g.in_len()),
            )
        };
        dx.fill(T::ZERO);
        for d in 0..od {
            let mut h = 0;
            while h < oh {
                let rows = side.num_rows.min(oh - h);
                best.fill(T::NEG_INFINITY);
                for r in 0..rows {
                    let ((d0, d1), (h0, h1)) = (g.span(0, d), g.span(1, h + r));
                    let is_empty = d0 == d1 || h0 == h1;
                    // If all elements are -inf, the first one is the maximum.
                    let (z, row) = (
                        (d0 + g.pad[0]).wrapping_sub(d * g.stride[0]),
                        (h0 + g.pad[1]).wrapping_sub((h + r) * g.stride[1]),
                    );
                    let before = (z.wrapping_mul(kh).wrapping_add(row)).wrapping_mul(kw) as u32;
                    for i in 0..ow {
                        let column = taps.first[i];
                        let is_outside = is_empty || column == OUTSIDE;
                        winners[r * per_row + i] =
                            if is_outside { OUTSIDE } else { before + column };
                    }
                }
                for z in 0..kd {
                    let from_d = (d * g.stride[0] + z).wrapping_sub(g.pad[0]);
                    if from_d >= id {
                        continue;
                    }
                    for row in 0..kh {
                        for r in 0..rows {
                            let from_h = ((h + r) * g.stride[1] + row).wrapping_sub(g.pad[1]);
                            let to = &mut long[r * side.padded + g.pad[2]..][..iw];
                            if from_h < ih {
                                to.copy_from_slice(&x[(from_d * ih + from_h) * iw..][..iw]);
                            } else {
                                to.fill(T::NEG_INFINITY);
                            }
                        }
                        let first = ((z * kh + row) * kw) as u32;
                        rows::split(split, long, side.phases);
                        rows::slide_argmax(best, winners, split, kw, side.phases, first);
                    }
                }
                for r in 0..rows {
                    let dy = &dy[(d * oh + h + r) * ow..][..ow];
                    let winners = &winners[r * per_row..][..ow];
                    // The first element of the window may lie in the padding, before the plane.
                    let mut corner = ((d * g.stride[0]).wrapping_sub(g.pad[0]).wrapping_mul(ih))
                        .wrapping_add(((h + r) * g.stride[1]).wrapping_sub(g.pad[1]))
                        .wrapping_mul(iw)
                        .wrapping_sub(g.pad[2]);
                    for i in 0..ow {
                        if winners[i] != OUTSIDE {
                            dx[corner.wrapping_add(taps.distances[winners[i] as usize])] += dy[i];
                        }
                        corner = corner.wrapping_add(g.stride[2]);
                    }
                }
                h += rows;
            }
        }
    }
}

/// [`forward`] for windows of 2 x 2.
///
/// # Safety
/// `x` and `y` have `count` planes; [`Pool::is_squares`] holds.
pub(super) unsafe fn squares<T: Real>(g: &Pool, count: usize, x: *const T, y: *mut T) {
    let ([_, ih, iw], [od, oh, ow]) = (g.input, g.output);
    for row in 0..count * od * oh {
        let top = (row / oh * ih + 2 * (row % oh)) * iw;
        // SAFETY: rows of the planes.
        unsafe {
            let data = |from: usize| std::slice::from_raw_parts(x.add(from), iw);
            let to = std::slice::from_raw_parts_mut(y.add(row * ow), ow);
            rows::squares_max(to, data(top), data(top + iw));
        }
    }
}

/// Elements of scratch memory of [`squares_gradient`].
pub(super) fn squares_scratch_len(g: &Pool) -> usize {
    4 * LONG.max(2 * g.output[2])
}

/// [`backward`] for windows of 2 x 2.
///
/// # Safety
/// `x`, `dy` and `dx` have `count` planes; [`Pool::is_squares`] holds; `memory` has [`squares_scratch_len`] elements.
pub(super) unsafe fn squares_gradient<T: Real>(
    g: &Pool,
    count: usize,
    x: *const T,
    dy: *const T,
    dx: *mut T,
    memory: *mut T,
) {
    let ([id, ih, iw], [_, oh, ow]) = (g.input, g.output);
    let (width, len) = (2 * ow, LONG.max(2 * ow));
    let num_rows = (len / width.max(1)).max(1);
    // SAFETY: four parts of the memory.
    let part = |i: usize| unsafe { std::slice::from_raw_parts_mut(memory.add(i * len), len) };
    let (top, low, top_to, low_to) = (part(0), part(1), part(2), part(3));
    let is_covered = 2 * oh == ih && width == iw;
    for image in 0..count * id {
        // SAFETY: an image of each array.
        let (x, dy, dx) = unsafe {
            (
                std::slice::from_raw_parts(x.add(image * ih * iw), ih * iw),
                std::slice::from_raw_parts(dy.add(image * oh * ow), oh * ow),
                std::slice::from_raw_parts_mut(dx.add(image * ih * iw), ih * iw),
            )
        };
        if !is_covered {
            dx.fill(T::ZERO);
        }
        let mut h = 0;
        while h < oh {
            let rows = num_rows.min(oh - h);
            for r in 0..rows {
                let from = &x[2 * (h + r) * iw..][..2 * iw];
                top[r * width..][..width].copy_from_slice(&from[..width]);
                low[r * width..][..width].copy_from_slice(&from[iw..][..width]);
            }
            let n = rows * width;
            let dy = &dy[h * ow..][..rows * ow];
            rows::squares_max_gradient(
                &mut top_to[..n],
                &mut low_to[..n],
                &top[..n],
                &low[..n],
                dy,
            );
            for r in 0..rows {
                let to = &mut dx[2 * (h + r) * iw..][..2 * iw];
                to[..width].copy_from_slice(&top_to[r * width..][..width]);
                to[iw..][..width].copy_from_slice(&low_to[r * width..][..width]);
            }
            h += rows;
        }
    }
}
