//! Convolution and its gradients over one to three spatial axes: dense `(n, c, d, h, w)` data, `(o, c / groups, kd, kh, kw)` weights.
//!
//! Tiles of bounded size are unfolded (im2col, `columns`) and multiplied (GEMM). Batches of small images are convolved in blocks
//! (`blocked`). Depthwise convolution (one channel per group) has its own loops (`depthwise`).

mod blocked;
mod columns;
mod crop;
mod depthwise;
mod direct;
mod epilogue;
mod gradients;
mod micro;
pub(crate) mod padded;

#[cfg(test)]
mod tests;

use crate::gemm::{self, GemmFloat};
use crate::panels::Panels;
use crate::real::{Real, Shared, with_real};
use crate::{Elem, Threads, scratch};
use columns::Tile;
use crop::Crop;
use direct::Direct;
pub use epilogue::Epilogue;
use epilogue::Typed;
use gradients::{WeightCut, bias_gradient_of, data_gradient_of, weight_gradient_of};
use micro::Blocked;

/// Geometry of a convolution. Spatial axes are `[d, h, w]`. An axis that the data do not have gets extent, kernel, stride and dilation 1 and pad 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conv {
    /// Element type of all operands: `F32` or `F64`.
    pub elem: Elem,
    /// Batch size.
    pub n: usize,
    /// Number of groups; divides both channel counts.
    pub groups: usize,
    /// Number of input channels.
    pub in_channels: usize,
    /// Number of output channels.
    pub out_channels: usize,
    /// Spatial extents of the input.
    pub input: [usize; 3],
    /// Spatial extents of the output. They may differ from [`output_extent`], which allows other padding at the end: positions outside the input read
    /// 0.
    pub output: [usize; 3],
    /// Spatial extents of the kernel.
    pub kernel: [usize; 3],
    /// Strides, at least 1.
    pub stride: [usize; 3],
    /// Zeros before the first element of each axis.
    pub pad: [usize; 3],
    /// Dilations, at least 1.
    pub dilation: [usize; 3],
}

/// `floor((input + 2 pad - dilation (kernel - 1) - 1) / stride) + 1`, or 0 where the kernel does not fit.
pub fn output_extent(
    input: usize,
    kernel: usize,
    stride: usize,
    pad: usize,
    dilation: usize,
) -> usize {
    let reach = dilation * (kernel.max(1) - 1) + 1;
    (input + 2 * pad)
        .checked_sub(reach)
        .map_or(0, |span| span / stride + 1)
}

impl Conv {
    pub(crate) fn in_len(&self) -> usize {
        self.input.iter().product()
    }
    pub(crate) fn out_len(&self) -> usize {
        self.output.iter().product()
    }
    pub(crate) fn taps(&self) -> usize {
        self.kernel.iter().product()
    }
    /// Number of input and of output channels in a group.
    pub(crate) fn group(&self) -> (usize, usize) {
        (
            self.in_channels / self.groups,
            self.out_channels / self.groups,
        )
    }
    pub(crate) fn weights(&self) -> usize {
        self.out_channels * self.in_channels / self.groups * self.taps()
    }
    /// Whether im2col would be the identity: kernel 1, stride 1, no padding.
    fn is_pointwise(&self) -> bool {
        self.taps() == 1 && self.stride == [1; 3] && self.pad == [0; 3] && self.input == self.output
    }
    /// Whether there is nothing to write or nothing to read.
    fn is_empty(&self) -> bool {
        self.n * self.in_channels * self.out_channels * self.in_len() * self.out_len() * self.taps()
            == 0
    }
}

/// Elements in one tile of columns: 512 KiB of f32, half of a common L2 cache.
const TILE: usize = 1 << 17;

/// The weights of a convolution.
#[derive(Clone, Copy, Debug)]
pub enum Weights {
    /// Dense.
    Dense(*const u8),
    /// Packed by [`pack`] for a geometry with the same [`packed_form`].
    Packed(*const u8),
}

/// Form of the packed weights of a geometry. Weights of the same sizes can be packed once for all geometries with the same `key`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedForm {
    /// Groups, channels, the extents of the kernel, the taps that are kept, lanes.
    pub key: [usize; 13],
    /// Size in bytes.
    pub len_bytes: usize,
}

/// The form of the packed weights that [`forward`] takes; `None` if it takes dense weights.
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`.
pub fn packed_form(g: &Conv) -> Option<PackedForm> {
    with_real!(g.elem, T => Direct::of::<T>(g).map(|direct| direct.form::<T>()))
}

/// Packs weights in the form that [`packed_form`] describes.
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`.
///
/// # Safety
/// `w` is dense and has the weights of `g`; `to` has the bytes of [`packed_form`], aligned to the element.
pub unsafe fn pack(threads: &dyn Threads, g: &Conv, w: *const u8, to: *mut u8) {
    with_real!(g.elem, T => {
        if let Some(direct) = Direct::of::<T>(g) {
            // SAFETY: same contract.
            unsafe { direct.pack::<T>(threads, Shared(w.cast_mut().cast()), Shared(to.cast())) }
        }
    })
}

/// `y = epilogue(conv(x, w) + bias)`; `bias` (one per output channel) may be null.
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`.
///
/// # Safety
/// All operands are dense, aligned and of the sizes that `g` says; `y` overlaps none. Packed weights are in [`packed_form`].
pub unsafe fn forward(
    threads: &dyn Threads,
    g: &Conv,
    x: *const u8,
    w: Weights,
    bias: *const u8,
    y: *mut u8,
    epilogue: Epilogue,
) {
    // SAFETY: same contract.
    with_real!(g.elem, T => unsafe {
        forward_typed::<T>(threads, g, x.cast(), w, bias.cast(), y.cast(), Typed::of(epilogue))
    })
}

/// # Safety
/// Same as for [`forward`].
unsafe fn forward_typed<T: Blocked + Panels + GemmFloat>(
    threads: &dyn Threads,
    g: &Conv,
    x: *const T,
    w: Weights,
    bias: *const T,
    y: *mut T,
    epilogue: Typed<T>,
) {
    let direct = Direct::of::<T>(g);
    // SAFETY: same contract; packed and cropped weights have the sizes that the kernels expect.
    unsafe {
        if let Some(direct) = &direct {
            let mut memory = Vec::new();
            let packed = match w {
                Weights::Packed(packed) => Shared(packed.cast_mut().cast()),
                Weights::Dense(w) => {
                    memory = scratch::memory::<T>(direct.packed_len::<T>(), false);
                    let packed = Shared(memory.as_mut_ptr());
                    direct.pack(threads, Shared(w.cast_mut().cast()), packed);
                    packed
                }
            };
            let [x, bias] = [x, bias].map(|p| Shared(p.cast_mut()));
            direct.forward(threads, x, packed, bias, Shared(y), epilogue);
            return drop(memory);
        }
        let (Weights::Dense(w) | Weights::Packed(w)) = w;
        match Crop::of(g) {
            None => forward_of::<T>(threads, g, x, w.cast(), bias, y, epilogue),
            Some(crop) => {
                let w = crop.weights::<T>(threads, w.cast());
                forward_of::<T>(threads, &crop.inner, x, w.as_ptr(), bias, y, epilogue)
            }
        }
    }
}

/// `dx`: the gradient of [`forward`] with respect to `x`, plus `bias` (one per *input* channel, may be null).
///
/// This is also transposed convolution. `g` then describes the convolution from the transposed one's result to its data: `dy` is the data, `w` has
/// shape `(in_channels of the transposed convolution, out_channels / groups, ...)` and `dx` is the result. Its gradient with respect to the data is
/// [`forward`], and with respect to the weights [`weight_gradient`] with the two operands exchanged.
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`.
///
/// # Safety
/// All operands are dense, aligned and of the sizes that `g` says; `dx` overlaps none.
pub unsafe fn data_gradient(
    threads: &dyn Threads,
    g: &Conv,
    dy: *const u8,
    w: *const u8,
    bias: *const u8,
    dx: *mut u8,
) {
    // SAFETY: same contract; the cropped weights have the sizes of the cropped geometry.
    with_real!(g.elem, T => unsafe {
        match Crop::of(g) {
            None => data_gradient_of::<T>(threads, g, dy.cast(), w.cast(), bias.cast(), dx.cast()),
            Some(crop) => {
                let w = crop.weights::<T>(threads, w.cast());
                data_gradient_of::<T>(threads, &crop.inner, dy.cast(), w.as_ptr(), bias.cast(), dx.cast())
            }
        }
    })
}

/// Bytes of working memory for [`weight_gradient`].
pub fn weight_gradient_scratch_bytes(g: &Conv) -> usize {
    let crop = Crop::of(g);
    let g = crop.as_ref().map_or(g, |crop| &crop.inner);
    let parts = WeightCut::of(g).parts;
    if parts > 1 {
        parts * g.weights() * g.elem.size()
    } else {
        0
    }
}

/// `dw`: the gradient of [`forward`] with respect to the weights.
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`.
///
/// # Safety
/// All operands are dense, aligned and of the sizes that `g` says; `dw` overlaps none; `scratch` has
/// [`weight_gradient_scratch_bytes`] bytes, aligned to the element.
pub unsafe fn weight_gradient(
    threads: &dyn Threads,
    g: &Conv,
    x: *const u8,
    dy: *const u8,
    dw: *mut u8,
    scratch: *mut u8,
) {
    // SAFETY: same contract; `part` has the size of the cropped weights and `dw` that of all weights.
    with_real!(g.elem, T => unsafe {
        match Crop::of(g) {
            None => weight_gradient_of::<T>(threads, g, x.cast(), dy.cast(), dw.cast(), scratch.cast()),
            Some(crop) => {
                let mut part = scratch::filled(crop.inner.weights(), T::ZERO);
                weight_gradient_of::<T>(threads, &crop.inner, x.cast(), dy.cast(), part.as_mut_ptr(), scratch.cast());
                crop.spread::<T>(threads, &mut part, dw.cast());
            }
        }
    })
}

/// `db`: the gradient of [`forward`] with respect to the bias, the sum of `dy` per output channel.
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`.
///
/// # Safety
/// `dy` and `db` are dense, aligned and of the sizes that `g` says, and do not overlap.
pub unsafe fn bias_gradient(threads: &dyn Threads, g: &Conv, dy: *const u8, db: *mut u8) {
    // SAFETY: same contract.
    with_real!(g.elem, T => unsafe { bias_gradient_of::<T>(threads, g, dy.cast(), db.cast()) })
}

/// Runs `n` tasks; a single task runs on the calling thread.
pub(crate) fn run(threads: &dyn Threads, n: usize, task: &(dyn Fn(usize) + Sync)) {
    if n == 1 {
        task(0)
    } else {
        threads.run(n, task)
    }
}

/// # Safety
/// Same as for [`forward`].
unsafe fn forward_of<T: Blocked + GemmFloat>(
    threads: &dyn Threads,
    g: &Conv,
    x: *const T,
    w: *const T,
    bias: *const T,
    y: *mut T,
    epilogue: Typed<T>,
) {
    let ((ic, oc), sp) = (g.group(), g.out_len());
    let (x, w, bias, y) = (
        Shared(x.cast_mut()),
        Shared(w.cast_mut()),
        Shared(bias.cast_mut()),
        Shared(y),
    );
    if g.is_empty() {
        // Without input channels or taps every sum is empty.
        for i in 0..g.n * g.out_channels * sp {
            // SAFETY: inside `y` and `bias`.
            unsafe {
                let channel = i / sp % g.out_channels;
                *y.at(i) = if bias.is_null() {
                    T::ZERO
                } else {
                    *bias.at(channel)
                };
                epilogue.before_store(channel, y.at(i), 1);
                epilogue.after_store(y, i, 1);
            }
        }
        return;
    }
    if depthwise::fits(g) {
        // SAFETY: same contract.
        return unsafe { depthwise::forward(threads, g, x, w, bias, y, epilogue) };
    }
    if blocked::fits_forward::<T>(g) {
        // SAFETY: same contract.
        return unsafe { blocked::forward(threads, g, x, w, bias, y, epilogue) };
    }
    let depth = ic * g.taps();
    let taps = g.taps();
    let tiles = Tile::cut(g, (TILE / depth).min(1024), 192);
    // If there are few tiles, the output channels are split too. Each piece then builds the columns again.
    let pieces = 8usize.div_ceil(g.groups * tiles.len()).min(oc.div_ceil(64));
    let piece = oc.div_ceil(pieces).next_multiple_of(8);
    let pieces = oc.div_ceil(piece);
    run(threads, tiles.len() * g.groups * pieces, &|task| {
        let (tile, rest) = (
            tiles[task / (g.groups * pieces)],
            task % (g.groups * pieces),
        );
        let (group, o) = (rest / pieces, rest % pieces * piece);
        let rows = piece.min(oc - o);
        let len = tile.len();
        let direct_in = g.is_pointwise() && tile.images == 1;
        let direct_out = tile.images == 1;
        // Number of channels unfolded at once.
        let chunk = if direct_in {
            ic
        } else {
            (TILE / (taps * len)).clamp(1, ic)
        };
        let columns_len = if direct_in {
            0
        } else {
            (chunk * taps * len).next_multiple_of(16)
        };
        scratch::with::<T, _>(
            columns_len + if direct_out { 0 } else { rows * len },
            |columns| {
                // SAFETY: the scratch holds columns and result of the tile; offsets stay inside the operands, tiles are disjoint in `y`.
                unsafe {
                    let x = x.at((tile.image * g.groups + group) * ic * g.in_len());
                    let first = tile.image * g.out_channels + group * oc + o;
                    let (c, c_stride) = if direct_out {
                        (y.at(first * sp + tile.start), sp)
                    } else {
                        (columns.add(columns_len), len)
                    };
                    if !bias.is_null() {
                        for i in 0..rows {
                            std::slice::from_raw_parts_mut(c.add(i * c_stride), len)
                                .fill(*bias.at(group * oc + o + i));
                        }
                    }
                    for c0 in (0..ic).step_by(chunk) {
                        let channels = chunk.min(ic - c0);
                        let (b, b_stride) = if direct_in {
                            (x.add(tile.start), g.in_len())
                        } else {
                            (columns, len)
                        };
                        if !direct_in {
                            columns::gather(g, &tile, x.add(c0 * g.in_len()), channels, columns);
                        }
                        gemm::dense(&gemm::Tile {
                            m: rows,
                            n: len,
                            k: channels * taps,
                            a: w.at((group * oc + o) * depth + c0 * taps),
                            a_strides: (depth as isize, 1),
                            b,
                            b_strides: (b_stride as isize, 1),
                            c,
                            c_strides: (c_stride as isize, 1),
                            alpha: T::ONE,
                            beta: if c0 == 0 && bias.is_null() {
                                T::ZERO
                            } else {
                                T::ONE
                            },
                        });
                    }
                    for i in 0..rows {
                        epilogue.before_store(group * oc + o + i, c.add(i * c_stride), len);
                    }
                    if !direct_out {
                        for image in 0..tile.images {
                            for i in 0..rows {
                                let to = y.at((first + image * g.out_channels + i) * sp);
                                std::ptr::copy_nonoverlapping(c.add(i * len + image * sp), to, sp);
                            }
                        }
                    }
                    let in_image = if direct_out { len } else { sp };
                    for image in 0..tile.images {
                        let start = (first + image * g.out_channels) * sp + tile.start;
                        epilogue.rows_after_store(y, start, rows, in_image, sp);
                    }
                }
            },
        );
    });
}
