//! Pooling over one to three spatial axes, and its gradients: dense planes of `(d, h, w)`, one per image and channel.
//!
//! Windows are boxes, so a row of results is a reduction over whole rows of the data, then over neighbours in the row so made.

mod rows;

#[cfg(test)]
mod tests;

use crate::real::{Real, Shared, with_real};
use crate::{Elem, Threads, scratch};
use rows::Phases;

/// How a window is reduced to one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The largest element; a NaN wins. Its gradient goes to the first of the largest.
    Max,
    /// The sum, padding being 0.
    Sum,
    /// The sum divided by the number of positions inside the data.
    Average,
    /// The sum divided by the number of positions inside the data and their padding.
    AverageWithPad,
    /// `(sum |x|^p)^(1/p)`, `p >= 1`.
    Lp(u32),
}

/// Geometry of a pooling. Spatial axes are `[d, h, w]`; those that the data lack have extent, kernel and stride 1 and pad 0. A global pool has
/// the data's extents as kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// `F32` or `F64`, of all operands.
    pub elem: Elem,
    /// How a window is reduced to one value.
    pub kind: Kind,
    /// Images times channels.
    pub planes: usize,
    /// Extents of the data.
    pub input: [usize; 3],
    /// Extents of the result; windows may end (or even begin) behind the data.
    pub output: [usize; 3],
    /// Extents of the window.
    pub kernel: [usize; 3],
    /// Steps, at least 1.
    pub stride: [usize; 3],
    /// Padding before the data.
    pub pad: [usize; 3],
    /// Padding behind the data; counted by [`Kind::AverageWithPad`] only.
    pub pad_end: [usize; 3],
}

/// Which windows count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Convention {
    /// Those that end inside the padded data: the division rounds down.
    Valid,
    /// Those that end behind them too: the division rounds up.
    Full,
}

/// Extent of the result along one axis, `padding` being the sum of both sides; 0 where the window does not fit.
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

    /// Positions of the data that window `i` along `axis` covers.
    fn span(&self, axis: usize, i: usize) -> (usize, usize) {
        let start = i * self.stride[axis];
        let clip = |x: usize| x.saturating_sub(self.pad[axis]).min(self.input[axis]);
        (clip(start), clip(start + self.kernel[axis]))
    }

    /// By how much window `i` along `axis` divides.
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

    /// Width of a row with its padding, as far as any window reaches.
    fn padded(&self) -> usize {
        let reach = (self.output[2].max(1) - 1) * self.stride[2] + self.kernel[2];
        reach.max(self.pad[2] + self.input[2])
    }

    /// Planes that one task handles: about 32 K elements.
    fn group(&self) -> usize {
        ((1 << 15) / (self.in_len() + self.out_len()).max(1)).max(1)
    }

    /// Calls `f(output row, (d, h) index of the output row)` for all rows of one plane.
    fn each_row(&self, mut f: impl FnMut(usize, [usize; 2])) {
        for row in 0..self.output[0] * self.output[1] {
            f(row, [row / self.output[1], row % self.output[1]]);
        }
    }

    /// Calls `f(offset of a data row in the plane)` for the rows that window row `at` covers.
    fn each_source(&self, at: [usize; 2], mut f: impl FnMut(usize)) {
        let ((d0, d1), (h0, h1)) = (self.span(0, at[0]), self.span(1, at[1]));
        for d in d0..d1 {
            for h in h0..h1 {
                f((d * self.input[1] + h) * self.input[2]);
            }
        }
    }

    /// Reciprocal counts along the last axis and of every output row, 1 for what does not divide.
    fn factors<T: Real>(&self, at: [usize; 2], columns: &[usize], scale: &mut [T]) {
        let rows = self.count(0, at[0]) * self.count(1, at[1]);
        for (s, &c) in scale.iter_mut().zip(columns) {
            *s = T::ONE / T::from_f64((rows * c).max(1) as f64);
        }
    }

    /// Whether the windows are the most common ones: the maxima of two by two, side by side and inside the data.
    fn is_squares(&self) -> bool {
        self.kind == Kind::Max
            && (self.kernel, self.stride, self.pad) == ([1, 2, 2], [1, 2, 2], [0; 3])
            && self.output[0] == self.input[0]
            && (1..3).all(|axis| 2 * self.output[axis] <= self.input[axis])
    }

    /// The offsets in the plane of the two data rows of window row `at`, [`Pool::is_squares`] being true.
    fn square(&self, at: [usize; 2]) -> (usize, usize) {
        let top = (at[0] * self.input[1] + 2 * at[1]) * self.input[2];
        (top, top + self.input[2])
    }

    fn divides(&self) -> bool {
        matches!(self.kind, Kind::Average | Kind::AverageWithPad)
    }
}

/// Runs `plane(index)` for all planes, some to a task.
fn run(threads: &dyn Threads, g: &Pool, plane: impl Fn(usize) + Sync) {
    let group = g.group();
    let task = |t: usize| (t * group..((t + 1) * group).min(g.planes)).for_each(&plane);
    match g.planes.div_ceil(group) {
        1 => task(0),
        n => threads.run(n, &task),
    }
}

/// `y`: the pooled data.
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`.
///
/// # Safety
/// `x` and `y` are dense, aligned, of the sizes that `g` says, and do not overlap.
pub unsafe fn forward(threads: &dyn Threads, g: &Pool, x: *const u8, y: *mut u8) {
    // SAFETY: forwarded.
    with_real!(g.elem, T => unsafe { forward_of::<T>(threads, g, x.cast(), y.cast()) })
}

/// `dx`: the gradient of [`forward`]. `x` is read by `Max` and `Lp`, `y` (the result) by `Lp`; others may pass null.
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
    // SAFETY: forwarded.
    with_real!(g.elem, T => unsafe { backward_of::<T>(threads, g, x.cast(), y.cast(), dy.cast(), dx.cast()) })
}

/// # Safety
/// As [`forward`]'s.
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
                // SAFETY: the plane's own rows.
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
            // SAFETY: the plane's own rows; the scratch holds a padded row and a row of factors.
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
/// As [`backward`]'s.
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
        // SAFETY: the plane's own elements.
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
                            // d|x|_p = sign(x) |x|^(p-1) y^(1-p); the factor that depends on x comes last.
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

/// Sends each `dy` to the first of the largest elements of its window, found again from the data.
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
                rows::squares_place(top_to, low_to, data(top), data(low), dy);
            }
        });
        return;
    }
    let phases = Phases::new(padded, g.stride[2]);
    // The padded row, the same by phases, the largest so far, and where in the plane it is.
    scratch::with::<T, _>(padded + phases.len() + 2 * ow, |memory| {
        // SAFETY: the scratch has room for the rows, the maxima, and the places, which are no wider than a `T`.
        unsafe {
            let buffer = std::slice::from_raw_parts_mut(memory, padded);
            let split = std::slice::from_raw_parts_mut(memory.add(padded), phases.len());
            let best = std::slice::from_raw_parts_mut(memory.add(padded + phases.len()), ow);
            let place = std::slice::from_raw_parts_mut(
                memory.add(padded + phases.len() + ow).cast::<u32>(),
                ow,
            );
            buffer.fill(T::NEG_INFINITY);
            g.each_row(|row, at| {
                best.fill(T::NEG_INFINITY);
                // Where all are -inf the first one stands for the largest; a window wholly outside has none.
                let mut first = None;
                g.each_source(at, |from| first = first.or(Some(from)));
                for (i, place) in place.iter_mut().enumerate() {
                    let (start, end) = g.span(2, i);
                    *place = first
                        .filter(|_| start < end)
                        .map_or(OUTSIDE, |from| (from + start) as u32);
                }
                g.each_source(at, |from| {
                    std::ptr::copy_nonoverlapping(x.add(from), buffer[g.pad[2]..].as_mut_ptr(), iw);
                    rows::split(split, buffer, phases);
                    rows::slide_place(
                        best,
                        place,
                        split,
                        g.kernel[2],
                        phases,
                        (from as u32).wrapping_sub(g.pad[2] as u32),
                    );
                });
                for (i, &place) in place.iter().enumerate() {
                    if place != OUTSIDE {
                        dx[place as usize] += *dy.add(row * ow + i);
                    }
                }
            });
        }
    });
}

/// The place of the largest element of a window that holds none.
const OUTSIDE: u32 = u32::MAX;
