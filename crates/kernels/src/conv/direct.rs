//! Convolutions without columns, with output channels as lanes: for few images, where [`super::blocked`] has too few lanes.
//!
//! The data are copied with their padding and channels last, so the elements that a row of taps reads for one position are contiguous. Weights are
//! packed in panels of output channels, `[panel][tap][channel][lane]`. The rows of a product are positions, of any images.

use super::crop::Crop;
use super::epilogue::Typed;
use super::padded::Padded;
use super::{Conv, PackedForm, blocked, depthwise, run};
use crate::conv::micro::Blocked;
use crate::copy::copy_elements as copy;
use crate::panels::{MAX_LANES, MAX_POSITIONS, Panels, Part, SLAB, TASK_WORK, finish, multiply};
use crate::real::{Real, Shared};
use crate::scratch::{self, memory};
use crate::{Serial, Threads};

/// A convolution whose results are computed here.
pub(super) struct Direct {
    /// The convolution without the taps that only read padding.
    g: Conv,
    crop: Option<Crop>,
}

impl Direct {
    /// `None` if another implementation is faster.
    pub(super) fn of<T: Panels + Blocked>(g: &Conv) -> Option<Direct> {
        if g.is_empty() {
            return None;
        }
        let crop = Crop::any(g);
        let inner = crop.as_ref().map_or(*g, |crop| crop.inner);
        let ((ic, oc), lanes) = (inner.group(), T::kernels().lanes);
        let fits = oc * 4 >= oc.next_multiple_of(lanes) * 3
            && ic * inner.kernel[2] >= MIN_STEPS
            && !depthwise::fits(&inner)
            && (!inner.is_pointwise() || ic >= MIN_POINTWISE)
            && !blocked::fits_forward::<T>(&inner);
        fits.then_some(Direct { g: inner, crop })
    }

    /// Panels of a group, and steps of a panel.
    fn panels<T: Panels>(&self) -> (usize, usize) {
        let (ic, oc) = self.g.group();
        (oc.div_ceil(T::kernels().lanes), self.g.taps() * ic)
    }

    /// Number of elements in the packed weights.
    pub(super) fn packed_len<T: Panels>(&self) -> usize {
        let (panels, steps) = self.panels::<T>();
        self.g.groups * panels * steps * T::kernels().lanes
    }

    /// The first tap in use along each axis, and the extents of the full kernel.
    fn first_and_whole(&self) -> ([usize; 3], [usize; 3]) {
        match &self.crop {
            Some(crop) => (crop.first, crop.whole),
            None => ([0; 3], self.g.kernel),
        }
    }

    /// The form of the packed weights.
    pub(super) fn form<T: Panels>(&self) -> PackedForm {
        let (g, (ic, oc)) = (&self.g, self.g.group());
        let (first, whole) = self.first_and_whole();
        let [a, b, c] = [g.kernel, first, whole];
        PackedForm {
            key: [
                g.groups,
                ic,
                oc,
                a[0],
                a[1],
                a[2],
                b[0],
                b[1],
                b[2],
                c[0],
                c[1],
                c[2],
                T::kernels().lanes,
            ],
            len_bytes: self.packed_len::<T>() * size_of::<T>(),
        }
    }

    /// Packs the weights.
    ///
    /// # Safety
    /// `w` has the weights of the whole kernel and `to` room for [`Direct::packed_len`].
    pub(super) unsafe fn pack<T: Panels>(
        &self,
        threads: &dyn Threads,
        w: Shared<T>,
        to: Shared<T>,
    ) {
        let ((ic, oc), lanes) = (self.g.group(), T::kernels().lanes);
        let (panels, steps) = self.panels::<T>();
        let kernel = self.g.kernel;
        let (first, whole) = self.first_and_whole();
        let taps: usize = whole.iter().product();
        // The position of each tap in a panel.
        let mut kept = scratch::filled(taps, None);
        for i in 0..kernel.iter().product() {
            let [_, h, w] = kernel;
            let k = [i / (h * w), i / w % h, i % w];
            let at: [usize; 3] = std::array::from_fn(|a| first[a] + k[a]);
            kept[(at[0] * whole[1] + at[1]) * whole[2] + at[2]] = Some(i);
        }
        run(threads, self.g.groups * panels, &|task| {
            let (group, o) = (task / panels, task % panels * lanes);
            let count = lanes.min(oc - o);
            let to = to.at(task * steps * lanes);
            // SAFETY: the panel is this task's own; the channels are inside the weights.
            unsafe {
                let from = w.at((group * oc + o) * ic * taps).cast_const();
                pack_panel(from, count, ic, taps, &kept, to, lanes);
            }
        });
    }

    /// [`super::forward`].
    ///
    /// # Safety
    /// As its, with the packed weights.
    pub(super) unsafe fn forward<T: Panels + Blocked>(
        &self,
        threads: &dyn Threads,
        x: Shared<T>,
        packed: Shared<T>,
        bias: Shared<T>,
        y: Shared<T>,
        epilogue: Typed<T>,
    ) {
        let g = &self.g;
        let ((_, oc), sp, micro) = (g.group(), g.out_len(), T::kernels());
        let (lanes, (panels, steps)) = (micro.lanes, self.panels::<T>());
        let data = Padded::of(g);
        let mut padded = memory::<T>(g.groups * data.group_len(g), data.is_padded(g));
        let [_, h, w] = g.input;
        let strides = [g.in_channels * g.in_len(), g.in_len(), h * w, w, 1];
        // SAFETY: the geometry's dense data; the copy has their size.
        unsafe {
            data.copy(
                threads,
                g,
                x.at(0).cast_const(),
                strides,
                padded.as_mut_ptr(),
            )
        };
        let padded = Shared(padded.as_mut_ptr());
        let parts = parts(&data, g);
        let positions = g.n * sp;
        let wanted = (TASK_WORK / (steps * lanes)).next_multiple_of(micro.rows());
        let most = wanted.clamp(micro.rows(), MAX_POSITIONS);
        let chunk = positions.div_ceil(positions.div_ceil(most));
        let chunks = positions.div_ceil(chunk);
        run(threads, g.groups * panels * chunks, &|task| {
            let (chunk_of, task) = (task % chunks, task / chunks);
            let (group, o) = (task / panels, task % panels * lanes);
            let first = chunk_of * chunk;
            let len = chunk.min(positions - first);
            let panel = packed.at(task * steps * lanes);
            let source = padded.at(group * data.group_len(g));
            let mut rows = [0; MAX_POSITIONS];
            data.offsets(g, first, &mut rows[..len]);
            scratch::with::<T, _>(len * lanes, |out| {
                // SAFETY: the panel has all steps; the data have the elements of all taps of each position; `out` holds `len` rows.
                unsafe { multiply(&micro, &parts, source, panel, &rows[..len], out) };
                let channels = lanes.min(oc - o);
                let channel = group * oc + o;
                let bias = match bias.is_null() {
                    true => std::ptr::null(),
                    false => bias.at(channel).cast_const(),
                };
                // SAFETY: `out` holds `len` rows; the results of these channels and positions are this task's own.
                unsafe {
                    let norm = epilogue.norm_from(channel);
                    let relu = epilogue.relu_before_store();
                    finish(out, len, lanes, bias, norm, channels, relu);
                    let mut p = 0;
                    while p < len {
                        let (image, at) = ((first + p) / sp, (first + p) % sp);
                        let count = (sp - at).min(len - p);
                        let start = (image * g.out_channels + channel) * sp + at;
                        copy(
                            &Serial,
                            [channels, count],
                            y.at(start),
                            [sp, 1],
                            out.add(p * lanes).cast_const(),
                            [1, lanes],
                        );
                        epilogue.rows_after_store(y, start, channels, count, sp);
                        p += count;
                    }
                }
            });
        });
    }
}

/// Packs the weights of `count` output channels, `[lane][channel][tap]`, as `[tap][channel][lane]`. `kept` has the new position of each tap.
///
/// # Safety
/// Both sides have the elements.
unsafe fn pack_panel<T: Real>(
    from: *const T,
    count: usize,
    channels: usize,
    taps: usize,
    kept: &[Option<usize>],
    to: *mut T,
    lanes: usize,
) {
    /// Weights of a lane that are transposed at once.
    const BLOCK: usize = 64;
    let row = channels * taps;
    let mut block = [[T::ZERO; MAX_LANES]; BLOCK];
    let (mut channel, mut tap) = (0, 0);
    for first in (0..row).step_by(BLOCK) {
        let len = BLOCK.min(row - first);
        // SAFETY: inside the weights and the block.
        unsafe {
            copy(
                &Serial,
                [len, count],
                block.as_mut_ptr().cast(),
                [MAX_LANES, 1],
                from.add(first),
                [1, row],
            );
        }
        for block in &block[..len] {
            if let Some(slot) = kept[tap] {
                let to = to.wrapping_add((slot * channels + channel) * lanes);
                // SAFETY: inside the panel.
                unsafe { std::ptr::copy_nonoverlapping(block.as_ptr(), to, lanes) };
            }
            tap += 1;
            if tap == taps {
                (tap, channel) = (0, channel + 1);
            }
        }
    }
}

/// With fewer contiguous steps, im2col is faster.
const MIN_STEPS: usize = 4;
/// Pointwise products (kernel 1) of fewer channels do not pay for the copy: they need no columns.
const MIN_POINTWISE: usize = 256;

/// The parts of a sum, by slab.
fn parts(data: &Padded, g: &Conv) -> Vec<Vec<Part>> {
    let (ic, [kd, kh, kw]) = (g.group().0, g.kernel);
    let [_, h, w] = data.extent;
    // Taps that read neighbours are one run.
    let (runs, run_len) = match g.dilation[2] {
        1 => (1, kw * ic),
        _ => (kw, ic),
    };
    let mut all: Vec<Vec<Part>> = Vec::new();
    scratch::reserve(&mut all, (g.taps() * ic).div_ceil(SLAB));
    let (mut step, mut left_in_slab) = (0, 0);
    for tap in 0..kd * kh * runs {
        let k = [tap / (kh * runs), tap / runs % kh, tap % runs];
        let i: [usize; 3] = std::array::from_fn(|a| k[a] * g.dilation[a]);
        let mut at = ((i[0] * h + i[1]) * w + i[2]) * ic;
        let mut left = run_len;
        while left > 0 {
            if left_in_slab == 0 {
                all.push(Vec::new());
                left_in_slab = SLAB;
            }
            let steps = left.min(left_in_slab);
            if let Some(slab) = all.last_mut() {
                slab.push(Part {
                    data: at,
                    step,
                    steps,
                });
            }
            (at, step) = (at + steps, step + steps);
            (left, left_in_slab) = (left - steps, left_in_slab - steps);
        }
    }
    all
}
