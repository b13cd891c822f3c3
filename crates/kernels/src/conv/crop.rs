//! Convolution of small images: removes the taps of the kernel that only ever read padding.

use super::{Conv, run};
use crate::Threads;
use crate::real::{Real, Shared};
use crate::scratch::filled;

/// The taps of the kernel that read input.
pub(super) struct Crop {
    /// The convolution with the cropped kernel.
    pub inner: Conv,
    /// Number of taps removed at the beginning of each axis.
    pub first: [usize; 3],
    /// Extents of the full kernel.
    pub whole: [usize; 3],
}

/// The weights are copied only if a channel has at least this many results to use them for.
const MIN_USES: usize = 8;
/// Rows of weights per task.
const ROWS: usize = 4096;

impl Crop {
    /// The crop for `g`. `None` if every tap reads input, if none does, or if the weights are used too seldom to be worth copying.
    pub fn of(g: &Conv) -> Option<Crop> {
        (g.n * g.out_len() >= MIN_USES).then(|| Crop::any(g))?
    }

    /// The crop for `g`, however seldom the weights are used. `None` if every tap reads input, or if none does.
    pub fn any(g: &Conv) -> Option<Crop> {
        let (mut inner, mut first) = (*g, [0; 3]);
        for (axis, first) in first.iter_mut().enumerate() {
            let (pad, step) = (g.pad[axis], g.dilation[axis]);
            let reach = g.output[axis].checked_sub(1)? * g.stride[axis];
            // Tap k reads the input of positions k * step - pad to k * step - pad + reach.
            let before = pad.saturating_sub(reach).div_ceil(step);
            let end = (pad + g.input[axis]).div_ceil(step).min(g.kernel[axis]);
            // The remaining pad must not be negative.
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

    /// Calls `each(row, tap in the full kernel, tap in the cropped kernel)` for all weights; a row is a pair of output and input channel.
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

    /// The cropped weights.
    ///
    /// # Safety
    /// `w` has the weights of the full kernel.
    pub unsafe fn weights<T: Real>(&self, threads: &dyn Threads, w: *const T) -> Vec<T> {
        let mut found = filled(self.inner.weights(), T::ZERO);
        let (whole, taps) = (self.whole.iter().product::<usize>(), self.inner.taps());
        let (from, to) = (Shared(w.cast_mut()), Shared(found.as_mut_ptr()));
        self.walk(threads, |row, tap, part| {
            // SAFETY: inside both; each element of the cropped weights is written by one task.
            unsafe { *to.at(row * taps + part) = *from.at(row * whole + tap) }
        });
        found
    }

    /// Writes the gradient of the cropped weights into that of the full kernel, which is 0 elsewhere.
    ///
    /// # Safety
    /// `dw` has the size of the full weights, `part` that of the cropped ones.
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
