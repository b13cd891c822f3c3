//! Connectionist temporal classification: the sum over all alignments of a label sequence and its gradient, in float64 and log space.
//!
//! An alignment passes through the states `blank, l1, blank, l2, ..., blank`. At each frame it stays, advances by one state, or by two where the
//! blank may be skipped. Source: A. Graves et al., "Connectionist Temporal Classification", 2006, equations 6 to 16.

use crate::Threads;
use crate::real::Shared;

/// Log-probabilities of the states at each frame, and the allowed transitions. Arrays are dense, in C order.
#[derive(Clone, Copy, Debug)]
pub struct Ctc {
    /// Number of samples.
    pub batch: usize,
    /// Number of states, padding included.
    pub states: usize,
    /// `(rows, states)`: log-probability of each state's class. `frames` says which rows belong to which sample.
    pub emitted: *const f64,
    /// `(batch, states)`: nonzero where a state may be reached from two states before.
    pub may_skip: *const i64,
    /// `(batch,)`: number of valid states of each sample, at least 1.
    pub num_states: *const i64,
    /// Which rows are the frames of which sample.
    pub frames: Frames,
}

/// Which rows are the frames of which sample.
#[derive(Clone, Copy, Debug)]
pub enum Frames {
    /// `Padded(len, lengths)`: frame `t` of sample `n` is row `t * batch + n`. Each sample has `len` frames, of which the first `lengths[n]` are
    /// valid.
    Padded(usize, *const i64),
    /// The frames of sample `n` are the rows `offsets[n]..offsets[n + 1]`.
    Ragged(*const i64),
}

// SAFETY: the pointers are read only.
unsafe impl Sync for Ctc {}

/// `log(exp(a) + exp(b))`.
fn add(a: f64, b: f64) -> f64 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY {
        return high;
    }
    high + (low - high).exp().ln_1p()
}

impl Ctc {
    /// Number of valid frames and states of a sample, clipped to the array sizes.
    ///
    /// # Safety
    /// The struct's pointers are valid.
    unsafe fn counts(&self, n: usize) -> (usize, usize) {
        // SAFETY: guaranteed by the caller.
        let (frames, states) = unsafe {
            let frames = match self.frames {
                Frames::Padded(len, counts) => {
                    usize::try_from(*counts.add(n)).unwrap_or(0).min(len)
                }
                Frames::Ragged(offsets) => (*offsets.add(n + 1) - *offsets.add(n)) as usize,
            };
            (frames, *self.num_states.add(n))
        };
        (
            frames,
            usize::try_from(states).unwrap_or(1).clamp(1, self.states),
        )
    }

    /// The row of frame `t` of sample `n`.
    ///
    /// # Safety
    /// The struct's pointers are valid and `n < batch`.
    unsafe fn row(&self, t: usize, n: usize) -> usize {
        match self.frames {
            Frames::Padded(..) => t * self.batch + n,
            // SAFETY: guaranteed by the caller.
            Frames::Ragged(offsets) => unsafe { *offsets.add(n) as usize + t },
        }
    }

    /// Log-probabilities of the states of a sample at a frame.
    ///
    /// # Safety
    /// The struct's pointers are valid; `t` and `n` are in range.
    unsafe fn at(&self, t: usize, n: usize) -> &[f64] {
        // SAFETY: guaranteed by the caller.
        unsafe {
            std::slice::from_raw_parts(self.emitted.add(self.row(t, n) * self.states), self.states)
        }
    }

    /// # Safety
    /// The struct's pointers are valid and `n < batch`.
    unsafe fn skips(&self, n: usize) -> &[i64] {
        // SAFETY: guaranteed by the caller.
        unsafe { std::slice::from_raw_parts(self.may_skip.add(n * self.states), self.states) }
    }

    /// Forward variables: log-probabilities `(frames, states)` of all partial alignments that are in state `s` at frame `t`; and that of all
    /// alignments.
    ///
    /// # Safety
    /// The struct's pointers are valid and `n < batch`.
    unsafe fn forward(&self, n: usize) -> (Vec<f64>, f64) {
        // SAFETY: guaranteed by the caller, here and below.
        let ((frames, count), skips) = unsafe { (self.counts(n), self.skips(n)) };
        let mut alpha = crate::scratch::filled(frames * count, f64::NEG_INFINITY);
        for t in 0..frames {
            // SAFETY: `t < frames`.
            let emitted = unsafe { self.at(t, n) };
            let (before, row) = alpha.split_at_mut(t * count);
            if t == 0 {
                row[..count.min(2)].copy_from_slice(&emitted[..count.min(2)]);
                continue;
            }
            let last = &before[(t - 1) * count..];
            for s in 0..count {
                let mut sum = last[s];
                if s > 0 {
                    sum = add(sum, last[s - 1]);
                }
                if s > 1 && skips[s] != 0 {
                    sum = add(sum, last[s - 2]);
                }
                row[s] = sum + emitted[s];
            }
        }
        let Some(last) = frames.checked_sub(1) else {
            // Without frames, only the empty label sequence is possible.
            return (alpha, if count == 1 { 0.0 } else { f64::NEG_INFINITY });
        };
        let last = &alpha[last * count..];
        let before = if count > 1 {
            last[count - 2]
        } else {
            f64::NEG_INFINITY
        };
        let total = add(last[count - 1], before);
        (alpha, total)
    }

    /// Backward variables: log-probabilities of all continuations after state `s` at frame `t`.
    ///
    /// # Safety
    /// The struct's pointers are valid and `n < batch`.
    unsafe fn backward(&self, n: usize) -> Vec<f64> {
        // SAFETY: guaranteed by the caller, here and below.
        let ((frames, count), skips) = unsafe { (self.counts(n), self.skips(n)) };
        let mut beta = crate::scratch::filled(frames * count, f64::NEG_INFINITY);
        for t in (0..frames).rev() {
            let (row, after) = beta[t * count..].split_at_mut(count);
            if t + 1 == frames {
                row[count.saturating_sub(2)..].fill(0.0);
                continue;
            }
            // SAFETY: `t + 1 < frames`.
            let emitted = unsafe { self.at(t + 1, n) };
            for s in 0..count {
                let mut sum = after[s] + emitted[s];
                if s + 1 < count {
                    sum = add(sum, after[s + 1] + emitted[s + 1]);
                }
                if s + 2 < count && skips[s + 2] != 0 {
                    sum = add(sum, after[s + 2] + emitted[s + 2]);
                }
                row[s] = sum;
            }
        }
        beta
    }
}

/// Writes minus the log-probability of each sample's labels. A sample without any valid alignment gets `never`.
///
/// # Safety
/// The pointers of `g` are valid for its sizes; `loss` has `batch` elements and overlaps nothing.
pub unsafe fn loss(threads: &dyn Threads, g: &Ctc, never: f64, loss: *mut f64) {
    let loss = Shared(loss);
    threads.run(g.batch, &|n| {
        // SAFETY: guaranteed by the caller; each task writes its own sample's loss.
        unsafe {
            let (_, total) = g.forward(n);
            *loss.at(n) = if total == f64::NEG_INFINITY {
                never
            } else {
                -total
            };
        }
    });
}

/// Writes `dy[n]` times the gradient of the loss with respect to `emitted`: minus the probability of being in each state at each frame. It is 0 for
/// padding and for samples without a valid alignment.
///
/// # Safety
/// Same as for [`loss`]; `dy` has `batch` elements, `dx` as many as `emitted`; they overlap nothing.
pub unsafe fn gradient(threads: &dyn Threads, g: &Ctc, dy: *const f64, dx: *mut f64) {
    let (dy, dx) = (Shared(dy.cast_mut()), Shared(dx));
    threads.run(g.batch, &|n| {
        // SAFETY: guaranteed by the caller; each task writes its own sample's gradient.
        unsafe {
            let (alpha, total) = g.forward(n);
            let (frames, count) = g.counts(n);
            let beta = g.backward(n);
            let rows = match g.frames {
                Frames::Padded(len, _) => len,
                Frames::Ragged(_) => frames,
            };
            for t in 0..rows {
                let row = dx.at(g.row(t, n) * g.states);
                for s in 0..g.states {
                    let counts = t < frames && s < count && total > f64::NEG_INFINITY;
                    *row.add(s) = if counts {
                        -*dy.at(n) * (alpha[t * count + s] + beta[t * count + s] - total).exp()
                    } else {
                        0.0
                    };
                }
            }
        }
    });
}
