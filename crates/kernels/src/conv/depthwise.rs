//! Depthwise convolution (one input channel per group) over two spatial axes: loops over a zero-padded plane.

use super::epilogue::Typed;
use super::{Conv, run};
use crate::lanes::in_lanes;
use crate::real::{Real, Shared, per_isa};
use crate::scratch;

/// Output positions computed together.
const POSITIONS: usize = 32;
/// Largest number of taps that these loops support.
const MAX_TAPS: usize = 128;

/// Whether these loops support the convolution.
pub(super) fn fits(g: &Conv) -> bool {
    let flat = g.input[0] == 1 && g.output[0] == 1 && g.kernel[0] == 1 && g.pad[0] == 0;
    // A padded plane above 512 KiB of f32 would not fit in L2.
    flat && g.in_channels == g.groups
        && g.out_channels <= 4 * g.groups
        && g.taps() <= MAX_TAPS
        && Plane::of(g).len() <= 1 << 17
}

/// The padded plane: every position that a tap reads, plus slack so that a row can be read `POSITIONS` positions past its end.
#[derive(Clone, Copy)]
struct Plane {
    rows: usize,
    width: usize,
}

impl Plane {
    fn of(g: &Conv) -> Plane {
        let reach = |a: usize| {
            let seen = (g.output[a].max(1) - 1) * g.stride[a]
                + (g.kernel[a].max(1) - 1) * g.dilation[a]
                + 1;
            seen.max(g.input[a] + g.pad[a])
        };
        Plane {
            rows: reach(1),
            width: reach(2) + POSITIONS * g.stride[2],
        }
    }

    fn len(&self) -> usize {
        self.rows * self.width
    }

    /// # Safety
    /// `x` has one plane of the input, `to` has room for the padded plane.
    unsafe fn fill<T: Real>(&self, g: &Conv, x: *const T, to: *mut T) {
        let [_, h, w] = g.input;
        // SAFETY: guaranteed by the caller; the input lies inside the padded plane.
        unsafe {
            std::slice::from_raw_parts_mut(to, self.len()).fill(T::ZERO);
            for y in 0..h {
                std::ptr::copy_nonoverlapping(
                    x.add(y * w),
                    to.add((y + g.pad[1]) * self.width + g.pad[2]),
                    w,
                );
            }
        }
    }
}

/// Offsets of the taps in the padded plane, and how many there are.
fn offsets(g: &Conv, plane: &Plane) -> ([usize; MAX_TAPS], usize) {
    let mut offsets = [0; MAX_TAPS];
    for (t, offset) in offsets.iter_mut().enumerate().take(g.taps()) {
        *offset = t / g.kernel[2] * g.dilation[1] * plane.width + t % g.kernel[2] * g.dilation[2];
    }
    (offsets, g.taps())
}

/// # Safety
/// Same as for `conv::forward`.
pub(super) unsafe fn forward<T: Real>(
    threads: &dyn crate::Threads,
    g: &Conv,
    x: Shared<T>,
    w: Shared<T>,
    bias: Shared<T>,
    y: Shared<T>,
    epilogue: Typed<T>,
) {
    let (plane, multiple, [_, oh, ow]) = (Plane::of(g), g.out_channels / g.groups, g.output);
    let (offsets, taps) = offsets(g, &plane);
    run(threads, g.n * g.groups, &|task| {
        scratch::with::<T, _>(plane.len(), |padded| {
            // SAFETY: input plane `task` and its output planes; the padded plane covers all positions that the rows read.
            unsafe {
                plane.fill(g, x.at(task * g.in_len()), padded);
                for o in 0..multiple {
                    let channel = task % g.groups * multiple + o;
                    let start = if bias.is_null() {
                        T::ZERO
                    } else {
                        *bias.at(channel)
                    };
                    for row in 0..oh {
                        let from = padded.add(row * g.stride[1] * plane.width);
                        let to = y.at((task * multiple + o) * oh * ow + row * ow);
                        taps_row(
                            from,
                            &offsets[..taps],
                            w.at(channel * taps),
                            start,
                            g.stride[2],
                            to,
                            ow,
                        );
                    }
                    let start = (task * multiple + o) * oh * ow;
                    epilogue.before_store(channel, y.at(start), oh * ow);
                    epilogue.after_store(y, start, oh * ow);
                }
            }
        });
    });
}

/// The convolution with reversed taps that computes the data gradient. `None` unless all strides are 1.
fn mirrored(g: &Conv) -> Option<Conv> {
    let reach = |a: usize| (g.kernel[a] - 1) * g.dilation[a];
    let pad = [
        0,
        reach(1).checked_sub(g.pad[1])?,
        reach(2).checked_sub(g.pad[2])?,
    ];
    let mirror = Conv {
        input: g.output,
        output: g.input,
        pad,
        ..*g
    };
    (g.stride == [1; 3] && g.out_channels == g.groups && Plane::of(&mirror).len() <= 1 << 17)
        .then_some(mirror)
}

/// # Safety
/// Same as for `conv::data_gradient`.
pub(super) unsafe fn data_gradient<T: Real>(
    threads: &dyn crate::Threads,
    g: &Conv,
    dy: Shared<T>,
    w: Shared<T>,
    bias: Shared<T>,
    dx: Shared<T>,
) {
    let (plane, multiple, [_, oh, ow], [_, h, wide]) =
        (Plane::of(g), g.out_channels / g.groups, g.output, g.input);
    let (offsets, taps) = offsets(g, &plane);
    if let Some(mirror) = mirrored(g) {
        // SAFETY: one set of taps per channel, read in reverse.
        let w: Vec<T> = (0..g.groups * taps)
            .map(|i| unsafe { *w.at(i / taps * taps + taps - 1 - i % taps) })
            .collect();
        // SAFETY: same contract with the roles of the operands exchanged.
        return unsafe {
            forward(
                threads,
                &mirror,
                dy,
                Shared(w.as_ptr().cast_mut()),
                bias,
                dx,
                Typed::NONE,
            )
        };
    }
    run(threads, g.n * g.groups, &|task| {
        scratch::with::<T, _>(plane.len(), |padded| {
            // SAFETY: input plane `task` and its output planes; the padded plane covers all positions that the rows write.
            unsafe {
                let start = if bias.is_null() {
                    T::ZERO
                } else {
                    *bias.at(task % g.groups)
                };
                std::slice::from_raw_parts_mut(padded, plane.len()).fill(start);
                for o in 0..multiple {
                    let channel = task % g.groups * multiple + o;
                    for row in 0..oh {
                        let to = padded.add(row * g.stride[1] * plane.width);
                        let from = dy.at((task * multiple + o) * oh * ow + row * ow);
                        for (t, &offset) in offsets[..taps].iter().enumerate() {
                            axpy_row(
                                from,
                                *w.at(channel * taps + t),
                                to.add(offset),
                                g.stride[2],
                                ow,
                            );
                        }
                    }
                }
                for row in 0..h {
                    let from = padded.add((row + g.pad[1]) * plane.width + g.pad[2]);
                    std::ptr::copy_nonoverlapping(from, dx.at(task * h * wide + row * wide), wide);
                }
            }
        });
    });
}

/// # Safety
/// Same as for `conv::weight_gradient`.
pub(super) unsafe fn weight_gradient<T: Real>(
    threads: &dyn crate::Threads,
    g: &Conv,
    x: Shared<T>,
    dy: Shared<T>,
    dw: Shared<T>,
) {
    let (plane, multiple, [_, oh, ow]) = (Plane::of(g), g.out_channels / g.groups, g.output);
    let (offsets, taps) = offsets(g, &plane);
    run(threads, g.groups, &|group| {
        scratch::with::<T, _>(plane.len(), |padded| {
            // SAFETY: the planes of one group in all images; only this task writes the group's weights.
            unsafe {
                let sums = dw.at(group * multiple * taps);
                std::slice::from_raw_parts_mut(sums, multiple * taps).fill(T::ZERO);
                for image in 0..g.n {
                    plane.fill(g, x.at((image * g.groups + group) * g.in_len()), padded);
                    for o in 0..multiple {
                        let from = dy.at(((image * g.groups + group) * multiple + o) * oh * ow);
                        let step = (g.stride[1] * plane.width, g.stride[2]);
                        for first in (0..taps).step_by(TAPS) {
                            let count = TAPS.min(taps - first);
                            // Taps past the end repeat the last one and are dropped.
                            let b = std::array::from_fn(|t| {
                                padded.add(offsets[first + t.min(count - 1)]).cast_const()
                            });
                            let dots = dot_planes(from, b, step, oh, ow);
                            for (t, &dot) in dots.iter().enumerate().take(count) {
                                *sums.add(o * taps + first + t) += dot;
                            }
                        }
                    }
                }
            }
        });
    });
}

per_isa! {
    /// One row of outputs: `to[i] = start + sum over t of w[t] * from[offset[t] + i * step]`.
    ///
    /// # Safety
    /// `n` elements at `to`, one weight per offset, and the padded plane around `from`.
    unsafe fn taps_row<T>(from: *const T, offsets: &[usize], w: *const T, start: T, step: usize, to: *mut T, n: usize) = taps_row_body
}

#[inline(always)]
unsafe fn taps_row_body<T: Real, const FMA: bool>(
    from: *const T,
    offsets: &[usize],
    w: *const T,
    start: T,
    step: usize,
    to: *mut T,
    n: usize,
) {
    let mut i = 0;
    while i < n {
        let mut sums = [start; POSITIONS];
        for (t, &offset) in offsets.iter().enumerate() {
            // SAFETY: the plane's rows have `POSITIONS * step` elements of slack after the last one that positions below `n` read.
            unsafe {
                let (w, from) = (*w.add(t), from.add(offset + i * step));
                if step == 1 {
                    let from = from.cast::<[T; POSITIONS]>().read();
                    for l in 0..POSITIONS {
                        sums[l] = w.fma::<FMA>(from[l], sums[l]);
                    }
                } else {
                    for (l, sum) in sums.iter_mut().enumerate() {
                        *sum = w.fma::<FMA>(*from.add(l * step), *sum);
                    }
                }
            }
        }
        let len = POSITIONS.min(n - i);
        // SAFETY: i + len <= n.
        unsafe { std::ptr::copy_nonoverlapping(sums.as_ptr(), to.add(i), len) }
        i += len;
    }
}

per_isa! {
    /// `to[i * step] += w * from[i]`.
    ///
    /// # Safety
    /// `n` elements at `from`, `(n - 1) * step + 1` at `to`; they do not overlap.
    unsafe fn axpy_row<T>(from: *const T, w: T, to: *mut T, step: usize, n: usize) = axpy_row_body
}

#[inline(always)]
unsafe fn axpy_row_body<T: Real, const FMA: bool>(
    from: *const T,
    w: T,
    to: *mut T,
    step: usize,
    n: usize,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let from = std::slice::from_raw_parts(from, n);
        if step == 1 {
            for (to, &x) in std::slice::from_raw_parts_mut(to, n).iter_mut().zip(from) {
                *to = w.fma::<FMA>(x, *to);
            }
        } else {
            for (i, &x) in from.iter().enumerate() {
                let to = to.add(i * step);
                *to = w.fma::<FMA>(x, *to);
            }
        }
    }
}

/// Taps summed at the same time.
const TAPS: usize = 4;

per_isa! {
    /// Sums of `a[row, i] * b[t][row * step.0 + i * step.1]` over a plane of `rows x n`.
    ///
    /// # Safety
    /// `rows * n` elements at `a`; around each of `b` the padded plane.
    unsafe fn dot_planes<T>(a: *const T, b: [*const T; TAPS], step: (usize, usize), rows: usize, n: usize) -> [T; TAPS] = dot_planes_body
}

#[inline(always)]
unsafe fn dot_planes_body<T: Real, const FMA: bool>(
    a: *const T,
    b: [*const T; TAPS],
    step: (usize, usize),
    rows: usize,
    n: usize,
) -> [T; TAPS] {
    let mut sums = [[T::ZERO; LANES]; TAPS];
    for row in 0..rows {
        let (a, b) = (
            a.wrapping_add(row * n),
            b.map(|b| b.wrapping_add(row * step.0)),
        );
        let mut i = 0;
        // SAFETY: guaranteed by the caller; blocks end below n, the remaining elements are read one by one.
        unsafe {
            if step.1 == 1 {
                while i + LANES <= n {
                    block::<T, LANES, FMA>(a.add(i), b.map(|b| b.add(i)), &mut sums);
                    i += LANES;
                }
                if i + LANES / 2 <= n {
                    block::<T, { LANES / 2 }, FMA>(a.add(i), b.map(|b| b.add(i)), &mut sums);
                    i += LANES / 2;
                }
            }
            while i < n {
                for t in 0..TAPS {
                    let sum = &mut sums[t][i % LANES];
                    *sum = (*a.add(i)).fma::<FMA>(*b[t].add(i * step.1), *sum);
                }
                i += 1;
            }
        }
    }
    sums.map(|sums| in_lanes!(16; T::ZERO, |a, b| a + b; i in 0, LANES, |sum| sum + sums[i]))
}

/// Partial sums of one dot product.
const LANES: usize = 16;

/// # Safety
/// `N` elements are readable at `a` and at each of `b`.
#[inline(always)]
unsafe fn block<T: Real, const N: usize, const FMA: bool>(
    a: *const T,
    b: [*const T; TAPS],
    sums: &mut [[T; LANES]; TAPS],
) {
    // SAFETY: guaranteed by the caller.
    let a = unsafe { a.cast::<[T; N]>().read() };
    for t in 0..TAPS {
        // SAFETY: guaranteed by the caller.
        let b = unsafe { b[t].cast::<[T; N]>().read() };
        for l in 0..N {
            sums[t][l] = a[l].fma::<FMA>(b[l], sums[t][l]);
        }
    }
}
