//! Pooling over one to three spatial axes, and its gradients: dense planes of `(d, h, w)`, one per image and channel.
//!
//! Windows are boxes. So a row of results is first a reduction over whole rows of the input, then over neighbours within the reduced row.

mod rows;

#[cfg(test)]
mod tests;

use crate::real::{Real, Shared, with_real};
use crate::{Elem, Threads, scratch};
use rows::Phases;

/// How a window is reduced to one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The largest element; NaN if there is one. The gradient goes to the first of equal maxima.
    Max,
    /// The sum; padding counts as 0.
    Sum,
    /// The sum divided by the number of positions inside the input.
    Average,
    /// The sum divided by the number of positions inside the input and its padding.
    AverageWithPad,
    /// `(sum |x|^p)^(1/p)`, `p >= 1`.
    Lp(u32),
}

/// Geometry of a pooling. Spatial axes are `[d, h, w]`. An axis that the data do not have gets extent, kernel and stride 1 and pad 0. For global
/// pooling, the kernel has the input's extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Element type of all operands: `F32` or `F64`.
    pub elem: Elem,
    /// How a window is reduced to one value.
    pub kind: Kind,
    /// Batch size times channels.
    pub planes: usize,
    /// Spatial extents of the input.
    pub input: [usize; 3],
    /// Spatial extents of the output; windows may end, or even begin, after the input's end.
    pub output: [usize; 3],
    /// Extents of the window.
    pub kernel: [usize; 3],
    /// Strides, at least 1.
    pub stride: [usize; 3],
    /// Padding at the start.
    pub pad: [usize; 3],
    /// Padding at the end; used only by [`Kind::AverageWithPad`].
    pub pad_end: [usize; 3],
}

/// How the number of windows is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Convention {
    /// Only windows inside the padded input count: rounds down.
    Valid,
    /// A last window may extend past the padded input: rounds up.
    Full,
}

/// Extent of the output along one axis; `padding` is the sum of both sides. 0 if the window does not fit.
pub fn output_extent(
    input: usize,
    kernel: usize,
    stride: usize,
    padding: usize,
    convention: Convention,
) -> usize {
    (input + padding)
        .checked_sub(kernel)
        .map_or(0, |room| match convention {
            Convention::Valid => room / stride + 1,
            Convention::Full => room.div_ceil(stride) + 1,
        })
}

impl Pool {
    fn in_len(&self) -> usize {
        self.input.iter().product()
    }

    fn out_len(&self) -> usize {
        self.output.iter().product()
    }

    /// Range of input positions that window `i` along `axis` covers.
    fn span(&self, axis: usize, i: usize) -> (usize, usize) {
        let start = i * self.stride[axis];
        let clip = |x: usize| x.saturating_sub(self.pad[axis]).min(self.input[axis]);
        (clip(start), clip(start + self.kernel[axis]))
    }

    /// Divisor of window `i` along `axis`.
    fn count(&self, axis: usize, i: usize) -> usize {
        let (start, end) = self.span(axis, i);
        if self.kind == Kind::AverageWithPad {
            let start = i * self.stride[axis];
            let last = self.input[axis] + self.pad[axis] + self.pad_end[axis];
            (start + self.kernel[axis]).min(last).saturating_sub(start)
        } else {
            end - start
        }
    }

    /// Length of a row with its padding, up to the last position of any window.
    fn padded(&self) -> usize {
        let reach = (self.output[2].max(1) - 1) * self.stride[2] + self.kernel[2];
        reach.max(self.pad[2] + self.input[2])
    }

    /// Planes per task: about 32 K elements.
    fn group(&self) -> usize {
        ((1 << 15) / (self.in_len() + self.out_len()).max(1)).max(1)
    }

    /// Calls `f(output row, (d, h) index of the output row)` for all rows of one plane.
    fn each_row(&self, mut f: impl FnMut(usize, [usize; 2])) {
        for row in 0..self.output[0] * self.output[1] {
            f(row, [row / self.output[1], row % self.output[1]]);
        }
    }

    /// Calls `f(offset of an input row in the plane)` for the input rows that window row `at` covers.
    fn each_source(&self, at: [usize; 2], mut f: impl FnMut(usize)) {
        let ((d0, d1), (h0, h1)) = (self.span(0, at[0]), self.span(1, at[1]));
        for d in d0..d1 {
            for h in h0..h1 {
                f((d * self.input[1] + h) * self.input[2]);
            }
        }
    }

    /// Writes the reciprocal divisors of an output row to `scale`; all 1 for kinds without a divisor.
    fn factors<T: Real>(&self, at: [usize; 2], columns: &[usize], scale: &mut [T]) {
        let rows = self.count(0, at[0]) * self.count(1, at[1]);
        for (s, &c) in scale.iter_mut().zip(columns) {
            *s = T::ONE / T::from_f64((rows * c).max(1) as f64);
        }
    }

    /// Whether this is the most common pooling, which has its own loops: max over 2 x 2 windows with stride 2, inside the input.
    fn is_squares(&self) -> bool {
        self.kind == Kind::Max
            && (self.kernel, self.stride, self.pad) == ([1, 2, 2], [1, 2, 2], [0; 3])
            && self.output[0] == self.input[0]
            && (1..3).all(|axis| 2 * self.output[axis] <= self.input[axis])
    }

    /// Offsets in the plane of the two input rows of window row `at`; [`Pool::is_squares`] must hold.
    fn square(&self, at: [usize; 2]) -> (usize, usize) {
        let top = (at[0] * self.input[1] + 2 * at[1]) * self.input[2];
        (top, top + self.input[2])
    }

    fn divides(&self) -> bool {
        matches!(self.kind, Kind::Average | Kind::AverageWithPad)
    }
}

/// Runs `plane(index)` for all planes, several per task.
fn run(threads: &dyn Threads, g: &Pool, plane: impl Fn(usize) + Sync) {
    let group = g.group();
    let task = |t: usize| (t * group..((t + 1) * group).min(g.planes)).for_each(&plane);
    match g.planes.div_ceil(group) {
        1 => task(0),
        n => threads.run(n, &task),
    }
}

/// Writes the pooled data to `y`.
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`.
///
/// # Safety
/// `x` and `y` are dense, aligned, of the sizes that `g` says, and do not overlap.
pub unsafe fn forward(threads: &dyn Threads, g: &Pool, x: *const u8, y: *mut u8) {
    // SAFETY: same contract.
    with_real!(g.elem, T => unsafe { forward_of::<T>(threads, g, x.cast(), y.cast()) })
}

/// Writes the gradient of [`forward`] to `dx`. `x` is read by `Max` and `Lp`, `y` (the result) by `Lp`; other kinds may pass null.
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`.
///
/// # Safety
/// Operands that are read are dense, aligned, of the sizes that `g` says; `dx` overlaps none. For `Max` a plane has fewer than `2^32 - 1` elements.
pub unsafe fn backward(
    threads: &dyn Threads,
    g: &Pool,
    x: *const u8,
    y: *const u8,
    dy: *const u8,
    dx: *mut u8,
) {
    // SAFETY: same contract.
    with_real!(g.elem, T => unsafe { backward_of::<T>(threads, g, x.cast(), y.cast(), dy.cast(), dx.cast()) })
}

/// # Safety
/// Same as for [`forward`].
unsafe fn forward_of<T: Real>(threads: &dyn Threads, g: &Pool, x: *const T, y: *mut T) {
    let (x, y) = (Shared(x.cast_mut()), Shared(y));
    let [_, _, ow] = g.output;
    let (iw, padded) = (g.input[2], g.padded());
    let phases = Phases::new(padded, g.stride[2]);
    let columns: Vec<usize> = (0..ow).map(|i| g.count(2, i)).collect();
    let identity = if g.kind == Kind::Max {
        T::NEG_INFINITY
    } else {
        T::ZERO
    };
    if g.is_squares() {
        return run(threads, g, |plane| {
            g.each_row(|row, at| {
                let (top, low) = g.square(at);
                // SAFETY: the rows of this plane.
                unsafe {
                    let data = |from| {
                        std::slice::from_raw_parts(x.at(plane * g.in_len() + from).cast_const(), iw)
                    };
                    let to = y.at(plane * g.out_len() + row * ow);
                    let to = std::slice::from_raw_parts_mut(to, ow);
                    rows::squares_max(to, data(top), data(low));
                }
            });
        });
    }
    run(threads, g, |plane| {
        scratch::with::<T, _>(padded + ow + phases.len(), |memory| {
            // SAFETY: the rows of this plane; the scratch holds a padded row and a row of factors.
            unsafe {
                let buffer = std::slice::from_raw_parts_mut(memory, padded);
                let scale = std::slice::from_raw_parts_mut(memory.add(padded), ow);
                let split = std::slice::from_raw_parts_mut(memory.add(padded + ow), phases.len());
                g.each_row(|row, at| {
                    buffer.fill(identity);
                    let data = &mut buffer[g.pad[2]..g.pad[2] + iw];
                    g.each_source(at, |from| {
                        let from = std::slice::from_raw_parts(x.at(plane * g.in_len() + from), iw);
                        match g.kind {
                            Kind::Max => rows::fold_max(data, from),
                            Kind::Lp(p) => rows::fold_power(data, from, p),
                            _ => rows::fold_sum(data, from),
                        }
                    });
                    let to =
                        std::slice::from_raw_parts_mut(y.at(plane * g.out_len() + row * ow), ow);
                    to.fill(identity);
                    rows::split(split, buffer, phases);
                    if g.kind == Kind::Max {
                        rows::slide_max(to, split, g.kernel[2], phases);
                    } else {
                        rows::slide_sum(to, split, g.kernel[2], phases);
                    }
                    if g.divides() {
                        g.factors(at, &columns, scale);
                        to.iter_mut().zip(&*scale).for_each(|(y, &s)| *y *= s);
                    } else if let Kind::Lp(p) = g.kind {
                        to.iter_mut().for_each(|y| *y = root(*y, p));
                    }
                });
            }
        });
    });
}

fn root<T: Real>(x: T, p: u32) -> T {
    match p {
        1 => x,
        2 => T::from_f64(x.to_f64().sqrt()),
        _ => T::from_f64(x.to_f64().powf(1.0 / p as f64)),
    }
}

/// # Safety
/// Same as for [`backward`].
unsafe fn backward_of<T: Real>(
    threads: &dyn Threads,
    g: &Pool,
    x: *const T,
    y: *const T,
    dy: *const T,
    dx: *mut T,
) {
    let (x, y, dy, dx) = (
        Shared(x.cast_mut()),
        Shared(y.cast_mut()),
        Shared(dy.cast_mut()),
        Shared(dx),
    );
    let ow = g.output[2];
    let (iw, padded) = (g.input[2], g.padded());
    let phases = Phases::new(padded, g.stride[2]);
    let columns: Vec<usize> = (0..ow).map(|i| g.count(2, i)).collect();
    run(threads, g, |plane| {
        // SAFETY: the elements of this plane.
        unsafe {
            let into = std::slice::from_raw_parts_mut(dx.at(plane * g.in_len()), g.in_len());
            into.fill(T::ZERO);
            if g.kind == Kind::Max {
                return max_plane(
                    g,
                    x.at(plane * g.in_len()),
                    dy.at(plane * g.out_len()),
                    into,
                );
            }
            scratch::with::<T, _>(padded + ow + phases.len(), |memory| {
                let buffer = std::slice::from_raw_parts_mut(memory, padded);
                let row_of = std::slice::from_raw_parts_mut(memory.add(padded), ow);
                let split = std::slice::from_raw_parts_mut(memory.add(padded + ow), phases.len());
                g.each_row(|row, at| {
                    let first = plane * g.out_len() + row * ow;
                    let dy = std::slice::from_raw_parts(dy.at(first), ow);
                    match g.kind {
                        Kind::Lp(p) => {
                            // d|x|_p = sign(x) |x|^(p-1) y^(1-p). The factor that depends on x is applied below.
                            for (i, s) in row_of.iter_mut().enumerate() {
                                let y = (*y.at(first + i)).to_f64();
                                *s = if y == 0.0 {
                                    T::ZERO
                                } else {
                                    dy[i] * T::from_f64(y.powi(1 - p as i32))
                                };
                            }
                        }
                        Kind::Sum => row_of.copy_from_slice(dy),
                        _ => {
                            g.factors(at, &columns, row_of);
                            row_of.iter_mut().zip(dy).for_each(|(s, &dy)| *s *= dy);
                        }
                    }
                    split.fill(T::ZERO);
                    rows::spread(split, row_of, g.kernel[2], phases);
                    rows::join(buffer, split, phases);
                    g.each_source(at, |to| {
                        rows::fold_sum(&mut into[to..to + iw], &buffer[g.pad[2]..g.pad[2] + iw])
                    });
                });
            });
            if let Kind::Lp(p) = g.kind {
                for (i, dx) in into.iter_mut().enumerate() {
                    let x = *x.at(plane * g.in_len() + i);
                    let slope = rows::power(x.abs(), p - 1);
                    *dx *= if x < T::ZERO { -slope } else { slope };
                }
            }
        }
    });
}

/// Adds each `dy` to the first of the largest elements of its window, which are found again from the input.
///
/// # Safety
/// `x` and `dy` have one plane, of fewer than `2^32 - 1` elements.
unsafe fn max_plane<T: Real>(g: &Pool, x: *const T, dy: *const T, dx: &mut [T]) {
    let ow = g.output[2];
    let (iw, padded) = (g.input[2], g.padded());
    if g.is_squares() {
        g.each_row(|row, at| {
            let (top, low) = g.square(at);
            let (top_to, low_to) = dx[top..low + iw].split_at_mut(iw);
            // SAFETY: rows of the plane.
            unsafe {
                let data = |from| std::slice::from_raw_parts(x.add(from), iw);
                let dy = std::slice::from_raw_parts(dy.add(row * ow), ow);
                rows::squares_max_gradient(top_to, low_to, data(top), data(low), dy);
            }
        });
        return;
    }
    let phases = Phases::new(padded, g.stride[2]);
    // Four buffers: the padded row, the same split by phases, the maxima so far, and their positions in the plane.
    scratch::with::<T, _>(padded + phases.len() + 2 * ow, |memory| {
        // SAFETY: the scratch has room for the rows, the maxima, and the positions, which are not larger than a `T`.
        unsafe {
            let buffer = std::slice::from_raw_parts_mut(memory, padded);
            let split = std::slice::from_raw_parts_mut(memory.add(padded), phases.len());
            let best = std::slice::from_raw_parts_mut(memory.add(padded + phases.len()), ow);
            let positions = std::slice::from_raw_parts_mut(
                memory.add(padded + phases.len() + ow).cast::<u32>(),
                ow,
            );
            buffer.fill(T::NEG_INFINITY);
            g.each_row(|row, at| {
                best.fill(T::NEG_INFINITY);
                // If all elements are -inf, the first one is the maximum. A window that is wholly outside has none.
                let mut first = None;
                g.each_source(at, |from| first = first.or(Some(from)));
                for (i, position) in positions.iter_mut().enumerate() {
                    let (start, end) = g.span(2, i);
                    *position = first
                        .filter(|_| start < end)
                        .map_or(OUTSIDE, |from| (from + start) as u32);
                }
                g.each_source(at, |from| {
                    std::ptr::copy_nonoverlapping(x.add(from), buffer[g.pad[2]..].as_mut_ptr(), iw);
                    rows::split(split, buffer, phases);
                    rows::slide_argmax(
                        best,
                        positions,
                        split,
                        g.kernel[2],
                        phases,
                        (from as u32).wrapping_sub(g.pad[2] as u32),
                    );
                });
                for (i, &position) in positions.iter().enumerate() {
                    if position != OUTSIDE {
                        dx[position as usize] += *dy.add(row * ow + i);
                    }
                }
            });
        }
    });
}

/// Position of the maximum of a window that covers no element.
const OUTSIDE: u32 = u32::MAX;
