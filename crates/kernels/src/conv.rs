//! Convolution and its gradients over one to three spatial axes: dense `(n, c, d, h, w)` data, `(o, c / groups, kd, kh, kw)` weights.
//!
//! Tiles of bounded size are unfolded (im2col, `columns`) and multiplied (GEMM). Batches of small images are convolved in blocks
//! (`blocked`). Depthwise convolution (one channel per group) has its own loops (`depthwise`).

mod blocked;
mod columns;
mod crop;
mod depthwise;
mod direct;

#[cfg(test)]
mod tests;

use crate::gemm::{self, GemmFloat};
use crate::panels::Panels;
use crate::real::{Real, Shared, relu, sum_row, with_real};
use crate::{Elem, Threads, scratch};
use blocked::Blocked;
use columns::Tile;
use crop::Crop;
use direct::Direct;

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
        .map_or(0, |room| room / stride + 1)
}

impl Conv {
    fn in_len(&self) -> usize {
        self.input.iter().product()
    }
    fn out_len(&self) -> usize {
        self.output.iter().product()
    }
    fn taps(&self) -> usize {
        self.kernel.iter().product()
    }
    /// Number of input and of output channels in a group.
    fn group(&self) -> (usize, usize) {
        (
            self.in_channels / self.groups,
            self.out_channels / self.groups,
        )
    }
    fn weights(&self) -> usize {
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

/// `y = conv(x, w) + bias`; `bias` (one per output channel) may be null. With `relu`, ReLU is applied to each tile of the result while it is in cache.
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
    relu: bool,
) {
    // SAFETY: same contract.
    with_real!(g.elem, T => unsafe {
        forward_typed::<T>(threads, g, x.cast(), w, bias.cast(), y.cast(), relu)
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
    relu: bool,
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
            direct.forward(threads, x, packed, bias, Shared(y), relu);
            return drop(memory);
        }
        let (Weights::Dense(w) | Weights::Packed(w)) = w;
        match Crop::of(g) {
            None => forward_of::<T>(threads, g, x, w.cast(), bias, y, relu),
            Some(crop) => {
                let w = crop.weights::<T>(threads, w.cast());
                forward_of::<T>(threads, &crop.inner, x, w.as_ptr(), bias, y, relu)
            }
        }
    }
}

/// ReLU of `n` elements in place.
///
/// # Safety
/// `y` has `n` elements.
unsafe fn relu_row<T: Real>(y: *mut T, n: usize) {
    // SAFETY: guaranteed by the caller.
    for x in unsafe { std::slice::from_raw_parts_mut(y, n) } {
        *x = relu(*x);
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
fn run(threads: &dyn Threads, n: usize, task: &(dyn Fn(usize) + Sync)) {
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
    relu: bool,
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
                *y.at(i) = if bias.is_null() {
                    T::ZERO
                } else {
                    *bias.at(i / sp % g.out_channels)
                };
                if relu {
                    relu_row(y.at(i), 1);
                }
            }
        }
        return;
    }
    if depthwise::fits(g) {
        // SAFETY: same contract.
        return unsafe { depthwise::forward(threads, g, x, w, bias, y, relu) };
    }
    if blocked::fits_forward::<T>(g) {
        // SAFETY: same contract.
        return unsafe { blocked::forward(threads, g, x, w, bias, y, relu) };
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
                    if relu {
                        for i in 0..rows {
                            relu_row(c.add(i * c_stride), len);
                        }
                    }
                    if !direct_out {
                        for image in 0..tile.images {
                            for i in 0..rows {
                                let to = y.at((first + image * g.out_channels + i) * sp);
                                std::ptr::copy_nonoverlapping(c.add(i * len + image * sp), to, sp);
                            }
                        }
                    }
                }
            },
        );
    });
}

/// # Safety
/// Same as for [`data_gradient`].
unsafe fn data_gradient_of<T: Blocked + GemmFloat>(
    threads: &dyn Threads,
    g: &Conv,
    dy: *const T,
    w: *const T,
    bias: *const T,
    dx: *mut T,
) {
    let ((ic, oc), sp) = (g.group(), g.out_len());
    let (dy, w, bias, dx) = (
        Shared(dy.cast_mut()),
        Shared(w.cast_mut()),
        Shared(bias.cast_mut()),
        Shared(dx),
    );
    if g.n * g.in_channels * g.in_len() == 0 {
        return;
    }
    if !g.is_empty() && depthwise::fits(g) {
        // SAFETY: same contract.
        return unsafe { depthwise::data_gradient(threads, g, dy, w, bias, dx) };
    }
    if !g.is_empty() && blocked::fits::<T>(g) {
        // SAFETY: same contract.
        return unsafe { blocked::data_gradient(threads, g, dy, w, bias, dx) };
    }
    // A task owns some channels of some images, so no other task adds to the same elements of `dx`.
    let images = Tile::images(g, 256);
    let taps = g.taps().max(1);
    let width = (images * sp).clamp(1, 768);
    let channels = (TILE / (taps * width)).clamp(1, ic).min(ic.div_ceil(
        if g.n.div_ceil(images) * g.groups < 8 {
            8
        } else {
            1
        },
    ));
    let blocks = ic.div_ceil(channels);
    run(threads, g.n.div_ceil(images) * g.groups * blocks, &|task| {
        let (image, rest) = (
            task / (g.groups * blocks) * images,
            task % (g.groups * blocks),
        );
        let (group, c0) = (rest / blocks, rest % blocks * channels);
        let (count, channels) = (images.min(g.n - image), channels.min(ic - c0));
        // SAFETY: planes of this task's images and channels; tiles stay inside the operands and the scratch.
        unsafe {
            let plane = |i: usize, c: usize| ((image + i) * g.groups + group) * ic + c0 + c;
            for i in 0..count {
                for c in 0..channels {
                    let start = if bias.is_null() {
                        T::ZERO
                    } else {
                        *bias.at(group * ic + c0 + c)
                    };
                    std::slice::from_raw_parts_mut(dx.at(plane(i, c) * g.in_len()), g.in_len())
                        .fill(start);
                }
            }
            if g.is_empty() {
                return;
            }
            let depth = channels * taps;
            for tile in Tile::of_images(g, image, count, width) {
                let len = tile.len();
                let direct_out = g.is_pointwise() && tile.images == 1;
                let copied = if tile.images > 1 {
                    (oc * len).next_multiple_of(16)
                } else {
                    0
                };
                scratch::with::<T, _>(
                    copied + if direct_out { 0 } else { depth * len },
                    |memory| {
                        let (b, b_stride) = tile.rows_of(g, dy.at(0), (group * oc, oc), memory);
                        let columns = memory.add(copied);
                        let into = dx.at(plane(0, 0) * g.in_len());
                        let (c, c_stride) = if direct_out {
                            (into.add(tile.start), g.in_len())
                        } else {
                            (columns, len)
                        };
                        gemm::dense(&gemm::Tile {
                            m: depth,
                            n: len,
                            k: oc,
                            // (o, c, tap) viewed as its transpose (c tap, o)
                            a: w.at(group * oc * ic * taps + c0 * taps),
                            a_strides: (1, (ic * taps) as isize),
                            b,
                            b_strides: (b_stride as isize, 1),
                            c,
                            c_strides: (c_stride as isize, 1),
                            alpha: T::ONE,
                            beta: if direct_out { T::ONE } else { T::ZERO },
                        });
                        if !direct_out {
                            columns::scatter(g, &tile, columns, channels, into);
                        }
                    },
                );
            }
        }
    });
}

/// How the gradient of the weights is split: into blocks of input channels, and into parts of the images whose sums are added in order.
struct WeightCut {
    channels: usize,
    blocks: usize,
    parts: usize,
    images: usize,
}

impl WeightCut {
    fn of(g: &Conv) -> WeightCut {
        let ic = g.group().0.max(1);
        // About 256 rows of columns per block: `dy` is read once for all of them, and 512 columns of the block fit in L2.
        let channels = (256 / g.taps().max(1)).clamp(1, ic);
        let blocks = ic.div_ceil(channels);
        let images = Tile::images(g, 512);
        let parts = 16usize
            .div_ceil(blocks * g.groups.max(1))
            .min(g.n.div_ceil(images))
            .max(1);
        let is_blocked = with_real!(g.elem, T => blocked::fits_weights::<T>(g));
        let parts = if depthwise::fits(g) || is_blocked {
            1
        } else {
            parts
        };
        WeightCut {
            channels,
            blocks,
            parts,
            images,
        }
    }
}

/// # Safety
/// Same as for [`weight_gradient`].
unsafe fn weight_gradient_of<T: Blocked + GemmFloat>(
    threads: &dyn Threads,
    g: &Conv,
    x: *const T,
    dy: *const T,
    dw: *mut T,
    scratch: *mut T,
) {
    let ((ic, oc), taps) = (g.group(), g.taps());
    let (x, dy, dw, partial) = (
        Shared(x.cast_mut()),
        Shared(dy.cast_mut()),
        Shared(dw),
        Shared(scratch),
    );
    if g.weights() == 0 {
        return;
    }
    if g.is_empty() {
        // SAFETY: `dw` holds the weights.
        return unsafe { std::slice::from_raw_parts_mut(dw.0, g.weights()).fill(T::ZERO) };
    }
    if depthwise::fits(g) {
        // SAFETY: same contract.
        return unsafe { depthwise::weight_gradient(threads, g, x, dy, dw) };
    }
    if blocked::fits_weights::<T>(g) {
        // SAFETY: same contract.
        return unsafe { blocked::weight_gradient(threads, g, x, dy, dw) };
    }
    let cut = WeightCut::of(g);
    let per_part = g.n.div_ceil(cut.images).div_ceil(cut.parts) * cut.images;
    run(threads, cut.parts * g.groups * cut.blocks, &|task| {
        let (part, rest) = (
            task / (g.groups * cut.blocks),
            task % (g.groups * cut.blocks),
        );
        let (group, c0) = (rest / cut.blocks, rest % cut.blocks * cut.channels);
        let channels = cut.channels.min(ic - c0);
        let depth = channels * taps;
        let into = if cut.parts > 1 {
            partial.at(part * g.weights())
        } else {
            dw.at(0)
        };
        let c = into.wrapping_add((group * oc * ic + c0) * taps);
        let (first, end) = ((part * per_part).min(g.n), ((part + 1) * per_part).min(g.n));
        // SAFETY: a task owns its rows and columns of its part of the gradient; tiles stay inside the operands and the scratch.
        unsafe {
            for o in 0..oc {
                std::slice::from_raw_parts_mut(c.add(o * ic * taps), depth).fill(T::ZERO);
            }
            let width = (TILE / depth).clamp(64, 2048);
            for image in (first..end).step_by(cut.images) {
                for tile in Tile::of_images(g, image, cut.images.min(end - image), width) {
                    let len = tile.len();
                    let copied = if tile.images > 1 {
                        (oc * len).next_multiple_of(16)
                    } else {
                        0
                    };
                    let direct_in = g.is_pointwise() && tile.images == 1;
                    scratch::with::<T, _>(
                        copied + if direct_in { 0 } else { depth * len },
                        |memory| {
                            let (a, a_stride) = tile.rows_of(g, dy.at(0), (group * oc, oc), memory);
                            let x = x.at(((tile.image * g.groups + group) * ic + c0) * g.in_len());
                            let columns = memory.add(copied);
                            let (b, b_stride) = if direct_in {
                                (x.add(tile.start), g.in_len())
                            } else {
                                (columns, len)
                            };
                            if !direct_in {
                                columns::gather(g, &tile, x, channels, columns);
                            }
                            gemm::dense(&gemm::Tile {
                                m: oc,
                                n: depth,
                                k: len,
                                a,
                                a_strides: (a_stride as isize, 1),
                                b,
                                b_strides: (1, b_stride as isize),
                                c,
                                c_strides: ((ic * taps) as isize, 1),
                                alpha: T::ONE,
                                beta: T::ONE,
                            });
                        },
                    );
                }
            }
        }
    });
    if cut.parts > 1 {
        for i in 0..g.weights() {
            // SAFETY: inside `dw` and the parts.
            unsafe {
                *dw.at(i) = (1..cut.parts).fold(*partial.at(i), |sum, part| {
                    sum + *partial.at(part * g.weights() + i)
                })
            }
        }
    }
}

/// # Safety
/// Same as for [`bias_gradient`].
unsafe fn bias_gradient_of<T: Blocked + GemmFloat>(
    threads: &dyn Threads,
    g: &Conv,
    dy: *const T,
    db: *mut T,
) {
    let (sp, dy, db) = (g.out_len(), Shared(dy.cast_mut()), Shared(db));
    // SAFETY: only this task reads the planes of the channel and writes its sum.
    let channel = |c: usize| unsafe {
        let mut sum = 0.0;
        for n in 0..g.n {
            sum += sum_row(dy.at((n * g.out_channels + c) * sp), sp).to_f64();
        }
        *db.at(c) = T::from_f64(sum);
    };
    if g.n * g.out_channels * sp < 1 << 15 {
        (0..g.out_channels).for_each(channel)
    } else {
        run(threads, g.out_channels, &channel)
    }
}
