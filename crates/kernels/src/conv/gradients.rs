//! Gradients of a convolution with respect to its data, weights and bias, of one element type.

use super::columns::Tile;
use super::micro::Blocked;
use super::{Conv, TILE, blocked, columns, depthwise, run};
use crate::gemm::{self, GemmFloat};
use crate::real::{Shared, sum_row, with_real};
use crate::{Threads, scratch};

/// # Safety
/// Same as for [`data_gradient`].
pub(super) unsafe fn data_gradient_of<T: Blocked + GemmFloat>(
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
pub(super) struct WeightCut {
    channels: usize,
    blocks: usize,
    pub(super) parts: usize,
    images: usize,
}

impl WeightCut {
    pub(super) fn of(g: &Conv) -> WeightCut {
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
pub(super) unsafe fn weight_gradient_of<T: Blocked + GemmFloat>(
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
pub(super) unsafe fn bias_gradient_of<T: Blocked + GemmFloat>(
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
