//! Columns of a tile: row `(channel, tap)`, column `output position`, holding the element of the data that the tap sees there.

use super::Conv;
use crate::real::Real;

/// Output positions handled at once: either a stretch of one image, or all positions of several images.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tile {
    pub image: usize,
    pub images: usize,
    /// Stretch of positions in each image.
    pub start: usize,
    pub end: usize,
}

impl Tile {
    /// Columns of the tile.
    pub(super) fn len(&self) -> usize {
        self.images * (self.end - self.start)
    }

    /// Images that one tile holds so that it has about `wanted` columns.
    pub(super) fn images(g: &Conv, wanted: usize) -> usize {
        (wanted / g.out_len().max(1)).clamp(1, g.n.max(1))
    }

    /// Tiles of all images, at most `width` but at least `least` columns each where there are so many.
    pub(super) fn cut(g: &Conv, width: usize, least: usize) -> Vec<Tile> {
        let images = Tile::images(g, least);
        (0..g.n)
            .step_by(images)
            .flat_map(|image| Tile::of_images(g, image, images.min(g.n - image), width.max(least)))
            .collect()
    }

    /// Tiles of some images: one if there are several, stretches of `width` columns of a single one.
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

    /// The rows `channels = (first, count)` of an output-shaped operand over this tile's positions: where they begin and the row stride.
    /// Those of several images are copied side by side into `memory`.
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
                // SAFETY: a whole plane of the operand, and its place in `memory`.
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

/// One run of output positions along the last axis and what a tap sees of it.
struct Run {
    /// Where the run begins in the tile's row, and its length.
    at: usize,
    len: usize,
    /// Positions before the data begin, and after they end (`inside..outside` see data).
    inside: usize,
    outside: usize,
    /// Offset in the plane of the element that position `inside` sees.
    from: usize,
}

/// Calls `f` for every run of one image's stretch under tap `(kd, kh, kw)`.
#[inline(always)]
fn runs(g: &Conv, start: usize, end: usize, tap: [usize; 3], mut f: impl FnMut(Run)) {
    let [_, oh, ow] = g.output;
    let [id, ih, iw] = g.input;
    // Distance of the tap from the position's first element, may be negative.
    let shift: [isize; 3] =
        std::array::from_fn(|a| (tap[a] * g.dilation[a]) as isize - g.pad[a] as isize);
    // First and past-the-last position along the last axis that sees data.
    let step = g.stride[2] as isize;
    let first = if shift[2] >= 0 {
        0
    } else {
        (-shift[2] + step - 1) / step
    };
    let last = if iw as isize > shift[2] {
        (iw as isize - shift[2] + step - 1) / step
    } else {
        0
    };
    let mut p = start;
    while p < end {
        let (row, x) = (p / ow, p % ow);
        let len = (ow - x).min(end - p);
        let d = (row / oh * g.stride[0]) as isize + shift[0];
        let h = (row % oh * g.stride[1]) as isize + shift[1];
        let (mut inside, mut outside) = (0, 0);
        if (0..id as isize).contains(&d) && (0..ih as isize).contains(&h) {
            inside = (first - x as isize).clamp(0, len as isize) as usize;
            outside = (last - x as isize).clamp(inside as isize, len as isize) as usize;
        }
        let from = if inside < outside {
            let w = (x + inside) as isize * step + shift[2];
            ((d as usize * ih) + h as usize) * iw + w as usize
        } else {
            0
        };
        f(Run {
            at: p - start,
            len,
            inside,
            outside,
            from,
        });
        p += len;
    }
}

/// All taps, in the weights' order.
fn taps(g: &Conv) -> impl Iterator<Item = [usize; 3]> {
    let [kd, kh, kw] = g.kernel;
    (0..kd * kh * kw).map(move |t| [t / (kh * kw), t / kw % kh, t % kw])
}

/// Fills the columns of `channels` planes from `x` on.
///
/// # Safety
/// `x` is the first of the planes in the tile's first image; `columns` has room for `channels * taps * len` elements.
pub(super) unsafe fn gather<T: Real>(
    g: &Conv,
    tile: &Tile,
    x: *const T,
    channels: usize,
    columns: *mut T,
) {
    let (len, stretch, step) = (tile.len(), tile.end - tile.start, g.stride[2]);
    let mut row = columns;
    for c in 0..channels {
        for tap in taps(g) {
            for image in 0..tile.images {
                let plane = x.wrapping_add((image * g.in_channels + c) * g.in_len());
                let to = row.wrapping_add(image * stretch);
                runs(g, tile.start, tile.end, tap, |r| {
                    // SAFETY: `runs` stays inside the plane and inside the row of `stretch` columns.
                    unsafe {
                        let to = std::slice::from_raw_parts_mut(to.add(r.at), r.len);
                        to[..r.inside].fill(T::ZERO);
                        to[r.outside..].fill(T::ZERO);
                        let middle = &mut to[r.inside..r.outside];
                        let from = plane.add(r.from);
                        if step == 1 && middle.len() >= 16 {
                            middle.copy_from_slice(std::slice::from_raw_parts(from, middle.len()));
                        } else if step == 1 {
                            // A call of `memcpy` costs more than a few elements.
                            middle
                                .iter_mut()
                                .enumerate()
                                .for_each(|(i, to)| *to = *from.add(i));
                        } else {
                            for (i, to) in middle.iter_mut().enumerate() {
                                *to = *from.add(i * step);
                            }
                        }
                    }
                });
            }
            row = row.wrapping_add(len);
        }
    }
}

/// Adds the columns to the planes they were seen in: the transpose of [`gather`].
///
/// # Safety
/// As [`gather`]'s, with the planes written.
pub(super) unsafe fn scatter<T: Real>(
    g: &Conv,
    tile: &Tile,
    columns: *const T,
    channels: usize,
    dx: *mut T,
) {
    let (len, stretch, step) = (tile.len(), tile.end - tile.start, g.stride[2]);
    let mut row = columns;
    for c in 0..channels {
        for tap in taps(g) {
            for image in 0..tile.images {
                let plane = dx.wrapping_add((image * g.in_channels + c) * g.in_len());
                let from = row.wrapping_add(image * stretch);
                runs(g, tile.start, tile.end, tap, |r| {
                    // SAFETY: `runs` stays inside the plane and inside the row of `stretch` columns.
                    unsafe {
                        let from = std::slice::from_raw_parts(
                            from.add(r.at + r.inside),
                            r.outside - r.inside,
                        );
                        let to = plane.add(r.from);
                        if step == 1 {
                            for (to, &x) in std::slice::from_raw_parts_mut(to, from.len())
                                .iter_mut()
                                .zip(from)
                            {
                                *to += x;
                            }
                        } else {
                            for (i, &x) in from.iter().enumerate() {
                                *to.add(i * step) += x;
                            }
                        }
                    }
                });
            }
            row = row.wrapping_add(len);
        }
    }
}
