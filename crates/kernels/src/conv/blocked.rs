//! Convolutions of batches of small images without columns: the data are laid out in blocks of images, and a micro-kernel sums over the taps that read
//! data, so taps in the padding cost nothing.
//!
//! The blocks of `micro` have output channels as rows. Their lanes are images, and for gradients of weights, input channels.

use super::epilogue::Typed;
use super::micro::{Blocked, Micro, Segment, fills};
use super::{Conv, run};
use crate::copy::copy_elements as copy;
use crate::real::Shared;
use crate::scratch::{self, memory};
use crate::{Serial, Threads};

/// Result positions whose block of results is written at once.
const CHUNK: usize = 64;
/// Smallest batch: fewer images would fill too few lanes.
const MIN_IMAGES: usize = 6;
/// Smallest number of channels that are summed. With 4, other implementations are faster.
const MIN_CHANNELS: usize = 6;
/// Largest number of pairs of a position and a tap.
const MAX_PAIRS: usize = 1 << 16;

/// Whether the batch and the sizes of `g` suit the blocks, and `channels` their rows.
fn suits<T: Blocked>(g: &Conv, channels: usize) -> bool {
    let pairs = g.in_len().max(g.out_len()) * g.taps();
    g.taps() > 1
        && pairs <= MAX_PAIRS
        && channels >= 8
        && g.n >= MIN_IMAGES
        && T::micro_for(g.n).is_some_and(|micro| fills(channels, micro.rows))
}

/// Whether gradients of the data are computed here.
pub(super) fn fits<T: Blocked>(g: &Conv) -> bool {
    suits::<T>(g, g.group().0) && suits::<T>(g, g.group().1)
}

/// Whether results are computed here. If there is an output position for each lane, `direct` is faster, unless many taps lie in the padding.
pub(super) fn fits_forward<T: Blocked>(g: &Conv) -> bool {
    let (ic, oc) = g.group();
    ic >= MIN_CHANNELS
        && suits::<T>(g, oc)
        && (fills(g.n, T::micro().lanes) || g.out_len() <= T::micro().lanes)
}

/// Whether gradients of the weights are computed here.
pub(super) fn fits_weights<T: Blocked>(g: &Conv) -> bool {
    let micro = T::micro();
    let (ic, oc) = g.group();
    let pairs = g.out_len() * g.taps();
    g.taps() > 1
        && pairs <= MAX_PAIRS
        && g.n >= 4
        && fills(ic, micro.lanes)
        && fills(oc, micro.rows)
}

/// Which source position each tap reads at each result position: `(tap, source)`, by result position.
struct Reads {
    pairs: Vec<(usize, usize)>,
    /// The pairs of position `p` are `pairs[starts[p]..starts[p + 1]]`.
    starts: Vec<usize>,
}

impl Reads {
    /// The reads of [`super::forward`]: output positions read input positions.
    fn of_output(g: &Conv) -> Reads {
        Reads::new(g, g.output, |axis, p, k| {
            (p * g.stride[axis] + k * g.dilation[axis])
                .checked_sub(g.pad[axis])
                .filter(|&i| i < g.input[axis])
                .map(|i| (i, g.input[axis]))
        })
    }

    /// The reads of the gradient with respect to the data: input positions read output positions.
    fn of_input(g: &Conv) -> Reads {
        Reads::new(g, g.input, |axis, p, k| {
            (p + g.pad[axis])
                .checked_sub(k * g.dilation[axis])
                .filter(|i| i % g.stride[axis] == 0 && i / g.stride[axis] < g.output[axis])
                .map(|i| (i / g.stride[axis], g.output[axis]))
        })
    }

    /// `read(axis, position, tap)`: the source position along an axis and the source's extent.
    fn new(
        g: &Conv,
        [d, h, w]: [usize; 3],
        read: impl Fn(usize, usize, usize) -> Option<(usize, usize)>,
    ) -> Reads {
        let mut pairs = Vec::new();
        let mut starts = Vec::new();
        scratch::reserve(&mut pairs, d * h * w * g.taps());
        scratch::reserve(&mut starts, d * h * w + 1);
        starts.push(0);
        for p in 0..d * h * w {
            let at = [p / (h * w), p / w % h, p % w];
            for tap in 0..g.taps() {
                let k = [
                    tap / (g.kernel[1] * g.kernel[2]),
                    tap / g.kernel[2] % g.kernel[1],
                    tap % g.kernel[2],
                ];
                let source = (0..3).try_fold(0, |source, axis| {
                    read(axis, at[axis], k[axis]).map(|(i, len)| source * len + i)
                });
                pairs.extend(source.map(|source| (tap, source)));
            }
            starts.push(pairs.len());
        }
        Reads { pairs, starts }
    }

    fn at(&self, position: usize) -> &[(usize, usize)] {
        &self.pairs[self.starts[position]..self.starts[position + 1]]
    }
}

/// A convolution over blocks of images: `m` result channels and `k` source channels per group.
struct Product<'a, T> {
    micro: Micro<T>,
    n: usize,
    groups: usize,
    m: usize,
    k: usize,
    taps: usize,
    source_len: usize,
    result_len: usize,
    reads: &'a Reads,
}

impl<T: Blocked> Product<'_, T> {
    /// Computes the results. `weights(panel, group, first row, rows)` writes the weights of one panel of result channels as `[channel][tap][row]`.
    ///
    /// # Safety
    /// The operands are dense and of the sizes that the fields say; `y` overlaps none.
    unsafe fn run(
        &self,
        threads: &dyn Threads,
        x: Shared<T>,
        bias: Shared<T>,
        y: Shared<T>,
        epilogue: Typed<T>,
        weights: &(dyn Fn(*mut T, usize, usize, usize) + Sync),
    ) {
        let Micro {
            rows,
            lanes,
            run: micro,
        } = self.micro;
        let (blocks, panels) = (self.n.div_ceil(lanes), self.m.div_ceil(rows));
        let depth = self.k * self.taps;
        // [group][block of images][position][channel][image]
        let block_len = self.source_len * self.k * lanes;
        let mut source = memory::<T>(
            self.groups * blocks * block_len,
            !self.n.is_multiple_of(lanes),
        );
        let source = Shared(source.as_mut_ptr());
        run(threads, self.groups * blocks, &|task| {
            let (group, block) = (task / blocks, task % blocks);
            let count = lanes.min(self.n - block * lanes);
            // SAFETY: the block is this task's own; the images are inside the data.
            unsafe {
                copy(
                    &Serial,
                    [count, self.k, self.source_len],
                    source.at(task * block_len),
                    [1, lanes, self.k * lanes],
                    x.at((block * lanes * self.groups + group) * self.k * self.source_len),
                    [self.groups * self.k * self.source_len, self.source_len, 1],
                );
            }
        });
        // [group][panel][channel][tap][row]
        let mut packed = memory::<T>(
            self.groups * panels * depth * rows,
            !self.m.is_multiple_of(rows),
        );
        let packed = Shared(packed.as_mut_ptr());
        run(threads, self.groups * panels, &|task| {
            let (group, panel) = (task / panels, task % panels);
            weights(
                packed.at(task * depth * rows),
                group,
                panel * rows,
                rows.min(self.m - panel * rows),
            );
        });
        // With few blocks and chunks the panels are divided too.
        let chunks = self.result_len.div_ceil(CHUNK);
        let tasks = self.groups * blocks * chunks;
        let parts = 16usize.div_ceil(tasks).min(panels);
        let per_part = panels.div_ceil(parts);
        run(threads, tasks * parts, &|task| {
            let (part, task) = (task % parts, task / parts);
            let (chunk, task) = (task % chunks, task / chunks);
            let (block, group) = (task % blocks, task / blocks);
            let first = chunk * CHUNK;
            let len = CHUNK.min(self.result_len - first);
            let count = lanes.min(self.n - block * lanes);
            let source = source.at((group * blocks + block) * block_len);
            scratch::with::<T, _>(rows * len * lanes, |out| {
                let mut segments = Vec::new();
                scratch::reserve(&mut segments, self.taps);
                for panel in (part * per_part)..((part + 1) * per_part).min(panels) {
                    let a = packed.at((group * panels + panel) * depth * rows);
                    for p in 0..len {
                        segments.clear();
                        segments.extend(self.reads.at(first + p).iter().map(|&(tap, from)| {
                            Segment {
                                a: a.wrapping_add(tap * rows).cast_const(),
                                b: source.wrapping_add(from * self.k * lanes).cast_const(),
                            }
                        }));
                        // SAFETY: panel and block hold the steps of every tap; `out` holds rows of `len * lanes` elements.
                        unsafe {
                            micro(
                                &segments,
                                self.k,
                                self.taps * rows,
                                out.add(p * lanes),
                                len * lanes,
                            )
                        };
                    }
                    let row = panel * rows;
                    let count_rows = rows.min(self.m - row);
                    // SAFETY: the results of these channels, images and positions are this task's own.
                    unsafe {
                        for r in 0..count_rows {
                            let out = out.add(r * len * lanes);
                            let channel = group * self.m + row + r;
                            if !bias.is_null() {
                                let bias = *bias.at(channel);
                                for x in std::slice::from_raw_parts_mut(out, len * lanes) {
                                    *x += bias;
                                }
                            }
                            epilogue.before_store(channel, out, len * lanes);
                        }
                        let image_len = self.groups * self.m * self.result_len;
                        let start = block * lanes * image_len
                            + (group * self.m + row) * self.result_len
                            + first;
                        copy(
                            &Serial,
                            [count, count_rows, len],
                            y.at(start),
                            [image_len, self.result_len, 1],
                            out.cast_const(),
                            [1, len * lanes, lanes],
                        );
                        for image in 0..count {
                            let start = start + image * image_len;
                            epilogue.rows_after_store(y, start, count_rows, len, self.result_len);
                        }
                    }
                }
            });
        });
    }
}

/// [`super::forward`].
///
/// # Safety
/// As its, and [`fits_forward`].
pub(super) unsafe fn forward<T: Blocked>(
    threads: &dyn Threads,
    g: &Conv,
    x: Shared<T>,
    w: Shared<T>,
    bias: Shared<T>,
    y: Shared<T>,
    epilogue: Typed<T>,
) {
    let ((ic, oc), taps) = (g.group(), g.taps());
    let micro = T::micro_for(g.n).unwrap_or_else(T::micro);
    let rows = micro.rows;
    let product = Product {
        micro,
        n: g.n,
        groups: g.groups,
        m: oc,
        k: ic,
        taps,
        source_len: g.in_len(),
        result_len: g.out_len(),
        reads: &Reads::of_output(g),
    };
    let weights = |panel: *mut T, group: usize, row: usize, count: usize| {
        let from = w.at((group * oc + row) * ic * taps);
        // SAFETY: rows of this group's weights; a panel has room for them.
        unsafe {
            copy(
                &Serial,
                [ic * taps, count],
                panel,
                [rows, 1],
                from.cast_const(),
                [1, ic * taps],
            )
        }
    };
    // SAFETY: the geometry's operands.
    unsafe { product.run(threads, x, bias, y, epilogue, &weights) }
}

/// [`super::data_gradient`].
///
/// # Safety
/// As its, and [`fits`].
pub(super) unsafe fn data_gradient<T: Blocked>(
    threads: &dyn Threads,
    g: &Conv,
    dy: Shared<T>,
    w: Shared<T>,
    bias: Shared<T>,
    dx: Shared<T>,
) {
    let ((ic, oc), taps) = (g.group(), g.taps());
    let micro = T::micro_for(g.n).unwrap_or_else(T::micro);
    let rows = micro.rows;
    let product = Product {
        micro,
        n: g.n,
        groups: g.groups,
        m: ic,
        k: oc,
        taps,
        source_len: g.out_len(),
        result_len: g.in_len(),
        reads: &Reads::of_input(g),
    };
    let weights = |panel: *mut T, group: usize, row: usize, count: usize| {
        let from = w.at((group * oc * ic + row) * taps);
        // SAFETY: columns of this group's weights; a panel has room for them.
        unsafe {
            copy(
                &Serial,
                [oc, taps, count],
                panel,
                [taps * rows, rows, 1],
                from.cast_const(),
                [ic * taps, 1, taps],
            )
        }
    };
    // SAFETY: the geometry's operands.
    unsafe { product.run(threads, dy, bias, dx, Typed::NONE, &weights) }
}

/// [`super::weight_gradient`].
///
/// # Safety
/// As its, and [`fits`].
pub(super) unsafe fn weight_gradient<T: Blocked>(
    threads: &dyn Threads,
    g: &Conv,
    x: Shared<T>,
    dy: Shared<T>,
    dw: Shared<T>,
) {
    let ((ic, oc), taps) = (g.group(), g.taps());
    let Micro {
        rows,
        lanes,
        run: micro,
    } = T::micro();
    let (panels, blocks) = (oc.div_ceil(rows), ic.div_ceil(lanes));
    // [group][block of channels][position][image][channel]
    let blocked = |from: Shared<T>, channels: usize, width: usize, len: usize| {
        let count = channels.div_ceil(width);
        let mut all = memory::<T>(
            g.groups * count * len * g.n * width,
            !channels.is_multiple_of(width),
        );
        let to = Shared(all.as_mut_ptr());
        run(threads, g.groups * count, &|task| {
            let (group, first) = (task / count, task % count * width);
            // SAFETY: the block is this task's own; the channels are inside the operand.
            unsafe {
                copy(
                    &Serial,
                    [g.n, width.min(channels - first), len],
                    to.at(task * len * g.n * width),
                    [width, 1, g.n * width],
                    from.at((group * channels + first) * len),
                    [g.groups * channels * len, len, 1],
                );
            }
        });
        all
    };
    let mut a = blocked(dy, oc, rows, g.out_len());
    let mut b = blocked(x, ic, lanes, g.in_len());
    let (a, b) = (Shared(a.as_mut_ptr()), Shared(b.as_mut_ptr()));
    let (a_len, b_len) = (g.out_len() * g.n * rows, g.in_len() * g.n * lanes);
    let reads = Reads::of_output(g);
    // (output position, input position) by tap
    let mut by_tap = Vec::new();
    scratch::reserve(&mut by_tap, taps);
    by_tap.resize_with(taps, Vec::new);
    for all in &mut by_tap {
        scratch::reserve(all, g.out_len());
    }
    for p in 0..g.out_len() {
        for &(tap, from) in reads.at(p) {
            by_tap[tap].push((p, from));
        }
    }
    run(threads, g.groups * panels, &|task| {
        let (group, row) = (task / panels, task % panels * rows);
        let a = a.at(task * a_len);
        let mut segments = Vec::new();
        scratch::reserve(&mut segments, g.out_len());
        scratch::with::<T, _>(rows * lanes * (taps + 1), |memory| {
            let sums = memory.wrapping_add(rows * lanes);
            for block in 0..blocks {
                let b = b.at((group * blocks + block) * b_len);
                let (count_rows, count) = (rows.min(oc - row), lanes.min(ic - block * lanes));
                for (tap, reads) in by_tap.iter().enumerate() {
                    segments.clear();
                    segments.extend(reads.iter().map(|&(p, from)| Segment {
                        a: a.wrapping_add(p * g.n * rows).cast_const(),
                        b: b.wrapping_add(from * g.n * lanes).cast_const(),
                    }));
                    // SAFETY: both blocks hold the images of every position; `memory` holds a block, and `sums` one of every tap.
                    unsafe {
                        micro(&segments, g.n, rows, memory, lanes);
                        for i in 0..count_rows * lanes {
                            *sums.add(i * taps + tap) = *memory.add(i);
                        }
                    }
                }
                // SAFETY: the weights of these channels are this task's own.
                unsafe {
                    for r in 0..count_rows {
                        let to = dw.at(((group * oc + row + r) * ic + block * lanes) * taps);
                        std::ptr::copy_nonoverlapping(sums.add(r * lanes * taps), to, count * taps);
                    }
                }
            }
        });
    });
}
