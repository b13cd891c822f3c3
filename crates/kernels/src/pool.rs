//! Pooling over one to three spatial axes, and its gradients: dense planes of `(d, h, w)`, one per image and channel.
//!
//! Windows are boxes. So a row of results is first a reduction over whole rows of the input, then over neighbours within the reduced row.

mod max;
mod rows;

#[cfg(test)]
mod tests;

use crate::real::{Real, Shared, sum_row, with_real};
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
        .map_or(0, |extent| match convention {
            Convention::Valid => extent / stride + 1,
            Convention::Full => extent.div_ceil(stride) + 1,
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
    pub(crate) fn span(&self, axis: usize, i: usize) -> (usize, usize) {
        let start = i * self.stride[axis];
        let clip = |x: usize| x.saturating_sub(self.pad[axis]).min(self.input[axis]);
        (clip(start), clip(start + self.kernel[axis]))
    }

    /// Divisor of window `i` along `axis`.
    pub(crate) fn count(&self, axis: usize, i: usize) -> usize {
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

    /// Planes per task: about 8 K elements, some 4 us.
    fn group(&self) -> usize {
        ((1 << 13) / (self.in_len() + self.out_len()).max(1)).max(1)
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

    /// Whether each plane has one window, which is the plane.
    fn is_whole(&self) -> bool {
        self.output == [1; 3] && self.kernel == self.input && self.pad == [0; 3]
    }

    /// Whether windows are 2 x 2 with stride 2, inside the input: the most common pooling, which has its own loops.
    fn is_squares(&self) -> bool {
        (self.kernel, self.stride, self.pad) == ([1, 2, 2], [1, 2, 2], [0; 3])
            && self.output[0] == self.input[0]
            && (1..3).all(|axis| 2 * self.output[axis] <= self.input[axis])
    }

    /// Whether the result is a sum or a mean.
    fn adds(&self) -> bool {
        self.kind == Kind::Sum || self.divides()
    }

    fn divides(&self) -> bool {
        matches!(self.kind, Kind::Average | Kind::AverageWithPad)
    }
}

/// Runs `planes(first, count)` for all planes, several per task.
fn run(threads: &dyn Threads, g: &Pool, planes: impl Fn(usize, usize) + Sync) {
    let group = g.group();
    let task = |t: usize| planes(t * group, group.min(g.planes - t * group));
    match g.planes.div_ceil(group) {
        0 => {}
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
    if g.kind == Kind::Max {
        // SAFETY: planes of a task, and scratch memory of the length that the function asks for.
        return unsafe {
            let of = |first: usize| (x.at(first * g.in_len()), y.at(first * g.out_len()));
            if g.is_whole() {
                return run(threads, g, |first, count| {
                    let (x, y) = of(first);
                    let y = std::slice::from_raw_parts_mut(y, count);
                    let x = std::slice::from_raw_parts(x.cast_const(), count * g.in_len());
                    rows::max_of_parts(y, x, g.in_len());
                });
            }
            if g.is_squares() {
                return run(threads, g, |first, count| {
                    let (x, y) = of(first);
                    max::squares(g, count, x.cast_const(), y);
                });
            }
            let side = max::Side::new(g);
            run(threads, g, |first, count| {
                let (x, y) = of(first);
                scratch::with::<T, _>(side.scratch_len(), |memory| {
                    max::forward(g, &side, count, x.cast_const(), y, memory)
                });
            })
        };
    }
    if g.is_whole() && g.adds() {
        let scale = whole_scale::<T>(g);
        return run(threads, g, |first, count| {
            for plane in first..first + count {
                // SAFETY: the elements of this plane.
                unsafe { *y.at(plane) = sum_row(x.at(plane * g.in_len()), g.in_len()) * scale };
            }
        });
    }
    if g.is_squares() && g.adds() {
        let ([_, ih, iw], [od, oh, ow], scale) = (g.input, g.output, square_scale::<T>(g));
        return run(threads, g, |first, count| {
            for image in first * od..(first + count) * od {
                // SAFETY: an image of this task's planes in each array.
                let (to, from) = unsafe {
                    let to = std::slice::from_raw_parts_mut(y.at(image * oh * ow), oh * ow);
                    (
                        to,
                        std::slice::from_raw_parts(x.at(image * ih * iw).cast_const(), 2 * oh * iw),
                    )
                };
                rows::squares_sum(to, ow, from, iw, scale);
            }
        });
    }
    let [_, _, ow] = g.output;
    let (iw, padded) = (g.input[2], g.padded());
    let phases = Phases::new(padded, g.stride[2]);
    let columns: Vec<usize> = (0..ow).map(|i| g.count(2, i)).collect();
    run(threads, g, |first, count| {
        scratch::with::<T, _>(padded + ow + phases.len(), |memory| {
            // SAFETY: the rows of this task's planes; the scratch holds a padded row, a row of factors and the row by phases.
            unsafe {
                let buffer = std::slice::from_raw_parts_mut(memory, padded);
                let scale = std::slice::from_raw_parts_mut(memory.add(padded), ow);
                let split = std::slice::from_raw_parts_mut(memory.add(padded + ow), phases.len());
                for plane in first..first + count {
                    g.each_row(|row, at| {
                        buffer.fill(T::ZERO);
                        let data = &mut buffer[g.pad[2]..g.pad[2] + iw];
                        g.each_source(at, |from| {
                            let from = x.at(plane * g.in_len() + from);
                            let from = std::slice::from_raw_parts(from, iw);
                            match g.kind {
                                Kind::Lp(p) => rows::fold_power(data, from, p),
                                _ => rows::fold_sum(data, from),
                            }
                        });
                        let to = y.at(plane * g.out_len() + row * ow);
                        let to = std::slice::from_raw_parts_mut(to, ow);
                        to.fill(T::ZERO);
                        rows::split(split, buffer, phases);
                        rows::slide_sum(to, split, g.kernel[2], phases);
                        if g.divides() {
                            g.factors(at, &columns, scale);
                            to.iter_mut().zip(&*scale).for_each(|(y, &s)| *y *= s);
                        } else if let Kind::Lp(p) = g.kind {
                            to.iter_mut().for_each(|y| *y = root(*y, p));
                        }
                    });
                }
            }
        });
    });
}

/// The factor of the sum of a window of 2 x 2.
fn square_scale<T: Real>(g: &Pool) -> T {
    match g.divides() {
        true => T::from_f64(0.25),
        false => T::ONE,
    }
}

/// The factor of the sum of a whole plane.
fn whole_scale<T: Real>(g: &Pool) -> T {
    match g.divides() {
        true => T::ONE / T::from_f64((0..3).map(|axis| g.count(axis, 0)).product::<usize>() as f64),
        false => T::ONE,
    }
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
    if g.kind == Kind::Max {
        // SAFETY: planes of a task, and scratch memory of the length that the function asks for.
        return unsafe {
            let of = |first: usize| {
                let (inputs, outputs) = (first * g.in_len(), first * g.out_len());
                let (x, dy) = (x.at(inputs).cast_const(), dy.at(outputs).cast_const());
                (x, dy, dx.at(inputs))
            };
            if g.is_squares() {
                return run(threads, g, |first, count| {
                    let (x, dy, dx) = of(first);
                    scratch::with::<T, _>(max::squares_scratch_len(g), |memory| {
                        max::squares_gradient(g, count, x, dy, dx, memory)
                    });
                });
            }
            let (side, taps) = (max::Side::new(g), max::Taps::new(g));
            run(threads, g, |first, count| {
                let (x, dy, dx) = of(first);
                scratch::with::<T, _>(side.scratch_len(), |memory| {
                    max::backward(g, (&side, &taps), count, x, dy, dx, memory)
                });
            })
        };
    }
    if g.is_whole() && g.adds() {
        let scale = whole_scale::<T>(g);
        return run(threads, g, |first, count| {
            for plane in first..first + count {
                // SAFETY: the elements of this plane.
                unsafe {
                    let to = dx.at(plane * g.in_len());
                    std::slice::from_raw_parts_mut(to, g.in_len()).fill(*dy.at(plane) * scale);
                }
            }
        });
    }
    if g.is_squares() && g.adds() {
        let ([_, ih, iw], [od, oh, ow], scale) = (g.input, g.output, square_scale::<T>(g));
        return run(threads, g, |first, count| {
            for image in first * od..(first + count) * od {
                // SAFETY: an image of this task's planes in each array.
                let (dx, dy) = unsafe {
                    let dx = std::slice::from_raw_parts_mut(dx.at(image * ih * iw), ih * iw);
                    (
                        dx,
                        std::slice::from_raw_parts(dy.at(image * oh * ow).cast_const(), oh * ow),
                    )
                };
                if [2 * oh, 2 * ow] != [ih, iw] {
                    dx.fill(T::ZERO);
                }
                rows::squares_sum_gradient(&mut dx[..2 * oh * iw], iw, dy, ow, scale);
            }
        });
    }
    let ow = g.output[2];
    let (iw, padded) = (g.input[2], g.padded());
    let phases = Phases::new(padded, g.stride[2]);
    let columns: Vec<usize> = (0..ow).map(|i| g.count(2, i)).collect();
    let plane_gradient = |plane: usize| {
        // SAFETY: the elements of this plane.
        unsafe {
            let into = std::slice::from_raw_parts_mut(dx.at(plane * g.in_len()), g.in_len());
            into.fill(T::ZERO);
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
    };
    run(threads, g, |first, count| {
        (first..first + count).for_each(plane_gradient)
    });
}
