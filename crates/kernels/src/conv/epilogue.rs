//! What follows a convolution: normalisation of each channel and ReLU, applied to tiles of the result while they are in the cache.

#![allow(
    clippy::needless_range_loop,
    reason = "iterator adapters may be compiled without the instruction set"
)]

use crate::real::{Real, Shared, normalised, per_isa, relu};

/// What follows a convolution. The normalisation comes before ReLU.
#[derive(Clone, Copy, Debug, Default)]
pub struct Epilogue {
    /// Mean, factor and shift of each output channel: `y` becomes `(y - mean) * factor + shift`, with the bits of `batch_norm_inference`.
    pub norm: Option<[*const u8; 3]>,
    /// Whether ReLU is applied.
    pub relu: bool,
}

/// An [`Epilogue`] with vectors of `T`.
#[derive(Clone, Copy)]
pub(super) struct Typed<T> {
    pub norm: Option<[Shared<T>; 3]>,
    pub relu: bool,
}

impl<T: Real> Typed<T> {
    pub(super) const NONE: Typed<T> = Typed {
        norm: None,
        relu: false,
    };

    pub(super) fn of(epilogue: Epilogue) -> Typed<T> {
        Typed {
            norm: (epilogue.norm).map(|vectors| vectors.map(|v| Shared(v.cast_mut().cast()))),
            relu: epilogue.relu,
        }
    }

    /// The vectors from a channel on.
    pub(super) fn from(&self, channel: usize) -> Option<[*const T; 3]> {
        self.norm
            .map(|vectors| vectors.map(|v| v.at(channel).cast_const()))
    }

    /// Applies it to `n` results of a channel.
    ///
    /// # Safety
    /// `y` has `n` elements, the vectors have the channel.
    pub(super) unsafe fn apply(&self, channel: usize, y: *mut T, n: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let norm = (self.from(channel)).map(|vectors| vectors.map(|v| *v));
            if norm.is_some() || self.relu {
                finish(y, n, norm, self.relu);
            }
        }
    }
}

per_isa! {
    /// Normalises `n` results of a channel and applies ReLU.
    ///
    /// # Safety
    /// `y` has `n` elements.
    unsafe fn finish<T>(y: *mut T, n: usize, norm: Option<[T; 3]>, applies_relu: bool) = finish_body
}

#[inline(always)]
unsafe fn finish_body<T: Real, const FMA: bool>(
    y: *mut T,
    n: usize,
    norm: Option<[T; 3]>,
    applies_relu: bool,
) {
    // SAFETY: guaranteed by the caller.
    let y = unsafe { std::slice::from_raw_parts_mut(y, n) };
    match (norm, applies_relu) {
        (None, false) => {}
        (None, true) => {
            for i in 0..n {
                y[i] = relu(y[i]);
            }
        }
        (Some(norm), false) => {
            for i in 0..n {
                y[i] = normalised::<T, FMA>(y[i], norm);
            }
        }
        (Some(norm), true) => {
            for i in 0..n {
                y[i] = relu(normalised::<T, FMA>(y[i], norm));
            }
        }
    }
}
