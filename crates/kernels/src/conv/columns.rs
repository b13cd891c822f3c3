//! im2col: a matrix with one row for each `(channel, tap)` and one column for each output position. An entry is the input element that the tap reads.

use super::Conv;
use crate::real::{Real, per_isa};

/// Output positions handled at once: a range of positions of one image, or all positions of several images.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tile {
    pub image: usize,
    pub images: usize,
    /// Range of positions in each image.
    pub start: usize,
    pub end: usize,
}

impl Tile {
    /// Number of columns of the tile.
    pub(super) fn len(&self) -> usize {
        self.images * (self.end - self.start)
    }

    /// Number of images per tile for about `wanted` columns.
    pub(super) fn images(g: &Conv, wanted: usize) -> usize {
        (wanted / g.out_len().max(1)).clamp(1, g.n.max(1))
    }

    /// Splits all images into tiles of at most `width` columns, and at least `least` if there are that many columns.
    pub(super) fn cut(g: &Conv, width: usize, least: usize) -> Vec<Tile> {
        let images = Tile::images(g, least);
        (0..g.n)
            .step_by(images)
            .flat_map(|image| Tile::of_images(g, image, images.min(g.n - image), width.max(least)))
            .collect()
    }

    /// Tiles of some images: one tile if there are several images, ranges of `width` columns if there is one.
    pub(super) fn of_images(
        g: &Conv,
        image: usize,
        images: usize,
        width: usize,
    ) -> impl Iterator<Item = Tile> {
        let sp = g.out_len();
        let parts = if images > 1 {
            1
        } else {
            sp.div_ceil(width.max(1)).max(1)
        };
        // Multiples of 48 columns fill the micro-kernels' registers.
        let step = if parts == 1 {
            sp
        } else {
            sp.div_ceil(parts).next_multiple_of(48)
        };
        (0..sp).step_by(step.max(1)).map(move |start| Tile {
            image,
            images,
            start,
            end: (start + step).min(sp),
        })
    }

    /// Rows of an output-shaped operand for this tile's positions and `channels = (first, count)`. Returns their address and row stride.
    /// Rows of several images are first copied side by side into `memory`.
    ///
    /// # Safety
    /// `from` has the output's size; `memory` has room for `count * len` elements if the tile has several images.
    pub(super) unsafe fn rows_of<T: Real>(
        &self,
        g: &Conv,
        from: *const T,
        (first, count): (usize, usize),
        memory: *mut T,
    ) -> (*const T, usize) {
        let sp = g.out_len();
        let at = |image: usize, c: usize| {
            from.wrapping_add(((self.image + image) * g.out_channels + first + c) * sp)
        };
        if self.images == 1 {
            return (at(0, 0).wrapping_add(self.start), sp);
        }
        for c in 0..count {
            for image in 0..self.images {
                // SAFETY: a whole plane of the operand and its destination in `memory`.
                unsafe {
                    std::ptr::copy_nonoverlapping(
                        at(image, c),
                        memory.add(c * self.len() + image * sp),
                        sp,
                    )
                }
            }
        }
        (memory, self.len())
    }
}

/// A run of output positions along the last axis, and the input elements that a tap reads for it.
struct Run {
    /// Start of the run in the tile's row, and its length.
    at: usize,
    len: usize,
    /// The positions `inside..outside` of the run read input elements; those before and after read padding.
    inside: usize,
    outside: usize,
    /// Offset in the plane of the element that position `inside` reads.
    from: usize,
}

/// The range of positions that a tile takes from each of its images.
struct Range {
    len: usize,
    /// `[d, h, w]` of the first position.
    first: [usize; 3],
}

impl Range {
    fn of(g: &Conv, tile: &Tile) -> Range {
        let [_, oh, ow] = g.output;
        let row = tile.start / ow;
        Range {
            len: tile.end - tile.start,
            first: [row / oh, row % oh, tile.start % ow],
        }
    }
}

/// The input that one tap reads: its offset from the first element of a position, and the positions along the last axis at which it reads input.
struct Tap {
    shift: [isize; 3],
    first: isize,
    last: isize,
}

impl Tap {
    fn of(g: &Conv, tap: [usize; 3]) -> Tap {
        let shift: [isize; 3] =
            std::array::from_fn(|a| (tap[a] * g.dilation[a]) as isize - g.pad[a] as isize);
        let (step, width) = (g.stride[2] as isize, g.input[2] as isize);
        let reach = |span: isize| {
            if span > 0 {
                (span + step - 1) / step
            } else {
                0
            }
        };
        Tap {
            shift,
            first: reach(-shift[2]),
            last: reach(width - shift[2]),
        }
    }

    /// Calls `f` for every run of a range. The loop has no divisions, because a run may have only two or three elements.
    #[inline(always)]
    fn runs(&self, g: &Conv, range: &Range, mut f: impl FnMut(Run)) {
        let [_, oh, ow] = g.output;
        let [id, ih, iw] = g.input;
        let [mut row_d, mut row_h, mut x] = range.first;
        let mut p = 0;
        while p < range.len {
            let len = (ow - x).min(range.len - p);
            let d = (row_d * g.stride[0]) as isize + self.shift[0];
            let h = (row_h * g.stride[1]) as isize + self.shift[1];
            let (mut inside, mut outside, mut from) = (0, 0, 0);
            // As unsigned numbers, negative positions are larger than any extent.
            if ((d as usize) < id) & ((h as usize) < ih) {
                inside = (self.first - x as isize).clamp(0, len as isize) as usize;
                outside = (self.last - x as isize).clamp(inside as isize, len as isize) as usize;
                if inside < outside {
                    let w = ((x + inside) * g.stride[2]) as isize + self.shift[2];
                    from = (d as usize * ih + h as usize) * iw + w as usize;
                }
            }
            f(Run {
                at: p,
                len,
                inside,
                outside,
                from,
            });
            p += len;
            x = 0;
            row_h += 1;
            if row_h == oh {
                (row_h, row_d) = (0, row_d + 1);
            }
        }
    }
}

/// All taps, in the weights' order.
fn taps(g: &Conv) -> impl Iterator<Item = [usize; 3]> {
    let [kd, kh, kw] = g.kernel;
    (0..kd * kh * kw).map(move |t| [t / (kh * kw), t / kw % kh, t % kw])
}

/// Copies `n` elements inline; for short rows a call of `memcpy` costs more than the copy.
///
/// # Safety
/// Both sides have `n` elements and do not overlap.
#[inline(always)]
unsafe fn copy<T: Real>(from: *const T, to: *mut T, n: usize) {
    /// Copies the first and the last `N` of `n` elements, which cover all of them if `N <= n <= 2 N`.
    #[inline(always)]
    unsafe fn ends<T: Real, const N: usize>(from: *const T, to: *mut T, n: usize) {
        // SAFETY: both sides have `n >= N` elements (the caller guarantees it); arrays are read and written unaligned.
        unsafe {
            let (head, tail) = (from.cast::<[T; N]>(), from.add(n - N).cast::<[T; N]>());
            let (head, tail) = (head.read_unaligned(), tail.read_unaligned());
            to.cast::<[T; N]>().write_unaligned(head);
            to.add(n - N).cast::<[T; N]>().write_unaligned(tail);
        }
    }
    // SAFETY: same contract.
    unsafe {
        match n {
            0 => {}
            1 => *to = *from,
            2..4 => ends::<T, 2>(from, to, n),
            4..8 => ends::<T, 4>(from, to, n),
            8..16 => ends::<T, 8>(from, to, n),
            16..=32 => ends::<T, 16>(from, to, n),
            _ => std::ptr::copy_nonoverlapping(from, to, n),
        }
    }
}

per_isa! {
    /// Fills the columns of `channels` planes from `x` on.
    ///
    /// # Safety
    /// `x` is the first of the planes in the tile's first image; `columns` has room for `channels * taps * len` elements.
    pub(super) unsafe fn gather<T>(g: &Conv, tile: &Tile, x: *const T, channels: usize, columns: *mut T) = gather_body
}

/// # Safety
/// Same as for [`gather`].
#[inline(always)]
unsafe fn gather_body<T: Real, const FMA: bool>(
    g: &Conv,
    tile: &Tile,
    x: *const T,
    channels: usize,
    columns: *mut T,
) {
    let (range, step) = (Range::of(g, tile), g.stride[2]);
    let mut row = columns;
    for c in 0..channels {
        for tap in taps(g) {
            let tap = Tap::of(g, tap);
            for image in 0..tile.images {
                let plane = x.wrapping_add((image * g.in_channels + c) * g.in_len());
                let to = row.wrapping_add(image * range.len);
                tap.runs(
                    g,
                    &range,
                    #[inline(always)]
                    |r| {
                        // SAFETY: `runs` stays inside the plane and inside the row of the stretch's columns.
                        unsafe {
                            let to = to.add(r.at);
                            for i in (0..r.inside).chain(r.outside..r.len) {
                                *to.add(i) = T::ZERO;
                            }
                            let (to, from) = (to.add(r.inside), plane.add(r.from));
                            let n = r.outside - r.inside;
                            if step == 1 {
                                copy(from, to, n);
                            } else {
                                for i in 0..n {
                                    *to.add(i) = *from.add(i * step);
                                }
                            }
                        }
                    },
                );
            }
            row = row.wrapping_add(tile.len());
        }
    }
}

per_isa! {
    /// Adds each column entry to the element that it was read from: the transpose of [`gather`].
    ///
    /// # Safety
    /// Same as for [`gather`], with the planes writable.
    pub(super) unsafe fn scatter<T>(g: &Conv, tile: &Tile, columns: *const T, channels: usize, dx: *mut T) = scatter_body
}

/// # Safety
/// Same as for [`scatter`].
#[inline(always)]
unsafe fn scatter_body<T: Real, const FMA: bool>(
    g: &Conv,
    tile: &Tile,
    columns: *const T,
    channels: usize,
    dx: *mut T,
) {
    let (range, step) = (Range::of(g, tile), g.stride[2]);
    let mut row = columns;
    for c in 0..channels {
        for tap in taps(g) {
            let tap = Tap::of(g, tap);
            for image in 0..tile.images {
                let plane = dx.wrapping_add((image * g.in_channels + c) * g.in_len());
                let from = row.wrapping_add(image * range.len);
                tap.runs(
                    g,
                    &range,
                    #[inline(always)]
                    |r| {
                        // SAFETY: `runs` stays inside the plane and inside the row of the stretch's columns.
                        unsafe {
                            let (to, from) = (plane.add(r.from), from.add(r.at + r.inside));
                            let n = r.outside - r.inside;
                            if step == 1 {
                                let whole = n / 8 * 8;
                                let mut i = 0;
                                while i < whole {
                                    // Index loops, because an iterator's closure may be compiled without the instruction set of this function.
                                    let to = to.add(i).cast::<[T; 8]>();
                                    let mut sum = to.read_unaligned();
                                    for (k, sum) in sum.iter_mut().enumerate() {
                                        *sum += *from.add(i + k);
                                    }
                                    to.write_unaligned(sum);
                                    i += 8;
                                }
                                for i in whole..n {
                                    *to.add(i) += *from.add(i);
                                }
                            } else {
                                for i in 0..n {
                                    *to.add(i * step) += *from.add(i);
                                }
                            }
                        }
                    },
                );
            }
            row = row.wrapping_add(tile.len());
        }
    }
}
