//! What follows a convolution: normalisation of each channel, an addition and ReLU, applied to tiles of the result while they are in the cache.

#![allow(
    clippy::needless_range_loop,
    reason = "iterator adapters may be compiled without the instruction set"
)]

use crate::real::{Real, Shared, normalised, per_isa, relu};

/// What follows a convolution: normalisation, then an addition, then ReLU.
#[derive(Clone, Copy, Debug, Default)]
pub struct Epilogue {
    /// Mean, factor and shift of each output channel: `y` becomes `(y - mean) * factor + shift`, with the bits of `batch_norm_inference`.
    pub norm: Option<[*const u8; 3]>,
    /// Elements that are added, of the result's shape and dense.
    pub addend: Option<*const u8>,
    /// Whether ReLU is applied.
    pub relu: bool,
}

/// An [`Epilogue`] with elements of `T`.
#[derive(Clone, Copy)]
pub(super) struct Typed<T> {
    norm: Option<[Shared<T>; 3]>,
    addend: Option<Shared<T>>,
    relu: bool,
}

impl<T: Real> Typed<T> {
    pub(super) const NONE: Typed<T> = Typed {
        norm: None,
        addend: None,
        relu: false,
    };

    pub(super) fn of(epilogue: Epilogue) -> Typed<T> {
        let typed = |v: *const u8| Shared(v.cast_mut().cast());
        Typed {
            norm: epilogue.norm.map(|vectors| vectors.map(typed)),
            addend: epilogue.addend.map(typed),
            relu: epilogue.relu,
        }
    }

    /// The vectors of the normalisation from a channel on.
    pub(super) fn norm_from(&self, channel: usize) -> Option<[*const T; 3]> {
        self.norm
            .map(|vectors| vectors.map(|v| v.at(channel).cast_const()))
    }

    /// Whether ReLU is applied before results are stored: with an addend it comes after that.
    pub(super) fn relu_before_store(&self) -> bool {
        self.relu && self.addend.is_none()
    }

    /// Applies to `n` results of a channel what comes before they are stored.
    ///
    /// # Safety
    /// `y` has `n` elements, the vectors have the channel.
    pub(super) unsafe fn before_store(&self, channel: usize, y: *mut T, n: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let norm = (self.norm_from(channel)).map(|vectors| vectors.map(|v| *v));
            let relu = self.relu_before_store();
            if norm.is_some() || relu {
                finish(y, n, norm, relu);
            }
        }
    }

    /// Applies the rest to `n` stored results from `at` on.
    ///
    /// # Safety
    /// The result `y` and the addend have these elements; nobody else uses those of `y`.
    pub(super) unsafe fn after_store(&self, y: Shared<T>, at: usize, n: usize) {
        if let Some(addend) = self.addend {
            // SAFETY: guaranteed by the caller.
            unsafe { add(y.at(at), addend.at(at).cast_const(), n, self.relu) }
        }
    }

    /// [`Typed::after_store`] of `rows` runs of `n` results, which are `stride` apart.
    ///
    /// # Safety
    /// As there.
    pub(super) unsafe fn rows_after_store(
        &self,
        y: Shared<T>,
        at: usize,
        rows: usize,
        n: usize,
        stride: usize,
    ) {
        let (runs, n) = if n == stride {
            (1, rows * n)
        } else {
            (rows, n)
        };
        for run in 0..runs {
            // SAFETY: guaranteed by the caller.
            unsafe { self.after_store(y, at + run * stride, n) }
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

per_isa! {
    /// Adds `n` elements and applies ReLU.
    ///
    /// # Safety
    /// `y` and `addend` have `n` elements and do not overlap.
    unsafe fn add<T>(y: *mut T, addend: *const T, n: usize, applies_relu: bool) = add_body
}

#[inline(always)]
unsafe fn add_body<T: Real, const FMA: bool>(
    y: *mut T,
    addend: *const T,
    n: usize,
    applies_relu: bool,
) {
    // SAFETY: guaranteed by the caller.
    let (y, addend) = unsafe {
        (
            std::slice::from_raw_parts_mut(y, n),
            std::slice::from_raw_parts(addend, n),
        )
    };
    match applies_relu {
        false => {
            for i in 0..n {
                y[i] += addend[i];
            }
        }
        true => {
            for i in 0..n {
                y[i] = relu(y[i] + addend[i]);
            }
        }
    }
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
