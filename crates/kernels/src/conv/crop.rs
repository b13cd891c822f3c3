//! Small images: taps of the kernel that meet padding only are left out.

use super::{Conv, run};
use crate::Threads;
use crate::real::{Real, Shared};
use crate::scratch::filled;

/// The part of the kernel that meets data.
pub(super) struct Crop {
    /// The convolution with that part as its kernel.
    pub inner: Conv,
    /// The taps before the part, along each axis.
    first: [usize; 3],
    /// Extents of the whole kernel.
    whole: [usize; 3],
}

/// Weights of fewer results in a channel are rather read where they are.
const MIN_USES: usize = 8;
/// Rows of weights that one task copies.
const ROWS: usize = 4096;

impl Crop {
    /// `None` if every tap meets data, if none does, or if the weights are used too seldom to be copied.
    pub fn of(g: &Conv) -> Option<Crop> {
        if g.n * g.out_len() < MIN_USES {
            return None;
        }
        let (mut inner, mut first) = (*g, [0; 3]);
        for (axis, first) in first.iter_mut().enumerate() {
            let (pad, step) = (g.pad[axis], g.dilation[axis]);
            let reach = g.output[axis].checked_sub(1)? * g.stride[axis];
            // Tap k meets positions k * step - pad to k * step - pad + reach.
            let before = pad.saturating_sub(reach).div_ceil(step);
            let end = (pad + g.input[axis]).div_ceil(step).min(g.kernel[axis]);
            // The pad that is left must not be negative.
            *first = before.min(pad / step);
            inner.kernel[axis] = end.checked_sub(*first).filter(|&taps| taps > 0)?;
            inner.pad[axis] = pad - *first * step;
        }
        let whole = g.kernel;
        (inner.kernel != whole).then_some(Crop {
            inner,
            first,
            whole,
        })
    }

    /// Calls `each(row, whole tap, tap of the part)` for all weights, by rows of one pair of channels.
    fn walk(&self, threads: &dyn Threads, each: impl Fn(usize, usize, usize) + Sync) {
        let taps = self.inner.taps();
        let rows = self.inner.weights() / taps;
        let [d, h, w] = self.inner.kernel;
        let task = |t: usize| {
            for row in t * ROWS..((t + 1) * ROWS).min(rows) {
                let mut part = 0;
                for i in self.first[0]..self.first[0] + d {
                    for j in self.first[1]..self.first[1] + h {
                        for k in self.first[2]..self.first[2] + w {
                            let tap = (i * self.whole[1] + j) * self.whole[2] + k;
                            each(row, tap, part);
                            part += 1;
                        }
                    }
                }
            }
        };
        run(threads, rows.div_ceil(ROWS), &task);
    }

    /// The weights of the part.
    ///
    /// # Safety
    /// `w` has the weights of the whole kernel.
    pub unsafe fn weights<T: Real>(&self, threads: &dyn Threads, w: *const T) -> Vec<T> {
        let mut found = filled(self.inner.weights(), T::ZERO);
        let (whole, taps) = (self.whole.iter().product::<usize>(), self.inner.taps());
        let (from, to) = (Shared(w.cast_mut()), Shared(found.as_mut_ptr()));
        self.walk(threads, |row, tap, part| {
            // SAFETY: inside both; each element of the part is written by one task.
            unsafe { *to.at(row * taps + part) = *from.at(row * whole + tap) }
        });
        found
    }

    /// Writes the gradient of the part to that of the whole kernel, which is 0 elsewhere.
    ///
    /// # Safety
    /// `dw` has the weights of the whole kernel, `part` those of the part.
    pub unsafe fn spread<T: Real>(&self, threads: &dyn Threads, part: &mut [T], dw: *mut T) {
        let (whole, taps) = (self.whole.iter().product::<usize>(), self.inner.taps());
        let rows = part.len() / taps;
        let (from, to) = (Shared(part.as_mut_ptr()), Shared(dw));
        run(threads, rows.div_ceil(ROWS), &|t: usize| {
            let count = ROWS.min(rows - t * ROWS);
            // SAFETY: the rows of this task.
            unsafe {
                std::slice::from_raw_parts_mut(to.at(t * ROWS * whole), count * whole)
                    .fill(T::ZERO);
            }
        });
        self.walk(threads, |row, tap, part| {
            // SAFETY: inside both; each element is written by one task.
            unsafe { *to.at(row * whole + tap) = *from.at(row * taps + part) }
        });
    }
}
