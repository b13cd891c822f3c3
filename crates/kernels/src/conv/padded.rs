//! The copy of the data of a convolution with padding and the channels last, in which the elements that a row of taps reads are contiguous.

use super::Conv;
use crate::Threads;
use crate::copy::copy_elements as copy;

/// Layout of the padded copy of the data: `[group][image][position][channel]`.
pub(crate) struct Padded {
    /// Extents.
    pub extent: [usize; 3],
    /// Distance of the data's elements that are copied.
    pub step: [usize; 3],
    /// Distance of the windows in the copy.
    pub stride: [usize; 3],
}

impl Padded {
    pub fn of(g: &Conv) -> Padded {
        let axis = |a: usize| match g.kernel[a] {
            // Only the elements that the single tap reads are copied.
            1 => (g.output[a], g.stride[a], 1),
            k => (
                (g.output[a] - 1) * g.stride[a] + (k - 1) * g.dilation[a] + 1,
                1,
                g.stride[a],
            ),
        };
        let axes = [axis(0), axis(1), axis(2)];
        Padded {
            extent: axes.map(|axis| axis.0),
            step: axes.map(|axis| axis.1),
            stride: axes.map(|axis| axis.2),
        }
    }

    pub fn image_len(&self, g: &Conv) -> usize {
        self.extent.iter().product::<usize>() * g.group().0
    }

    pub fn group_len(&self, g: &Conv) -> usize {
        g.n * self.image_len(g)
    }

    /// The range of each axis of the copy that has data: position i has element `i * step - pad`.
    fn ranges(&self, g: &Conv) -> [(usize, usize); 3] {
        std::array::from_fn(|a| {
            let (step, pad) = (self.step[a], g.pad[a]);
            let end = (pad + g.input[a]).div_ceil(step).min(self.extent[a]);
            let first = pad.div_ceil(step).min(end);
            (first, end)
        })
    }

    /// Whether some positions of the copy have no data.
    pub fn is_padded(&self, g: &Conv) -> bool {
        let ranges = self.ranges(g);
        (0..3).any(|a| ranges[a] != (0, self.extent[a]))
    }

    /// Copies the data. Positions that have no data are not written.
    ///
    /// # Safety
    /// `x` has the geometry's data, with these distances in elements between images, channels and along the axes; `to` has [`Padded::group_len`]
    /// elements for each group.
    pub unsafe fn copy<T>(
        &self,
        threads: &dyn Threads,
        g: &Conv,
        x: *const T,
        [image, channel, strides @ ..]: [usize; 5],
        to: *mut T,
    ) {
        let ic = g.group().0;
        let ranges = self.ranges(g);
        let count = ranges.map(|(first, end)| end - first);
        if count.contains(&0) {
            return;
        }
        let [_, h, w] = self.extent;
        let to_strides = [h * w * ic, w * ic, ic];
        let sum = |f: &dyn Fn(usize) -> usize| f(0) + f(1) + f(2);
        let at = sum(&|a| ranges[a].0 * to_strides[a]);
        let source = sum(&|a| (ranges[a].0 * self.step[a] - g.pad[a]) * strides[a]);
        let [d_len, h_len, w_len] = to_strides;
        // SAFETY: the ranges are inside both sides.
        unsafe {
            copy(
                threads,
                [g.groups, g.n, count[0], count[1], count[2], ic],
                to.add(at),
                [self.group_len(g), self.image_len(g), d_len, h_len, w_len, 1],
                x.add(source),
                [
                    ic * channel,
                    image,
                    strides[0] * self.step[0],
                    strides[1] * self.step[1],
                    strides[2] * self.step[2],
                    channel,
                ],
            );
        }
    }

    /// The first elements that the positions of the results from `first` on read.
    pub fn offsets(&self, g: &Conv, first: usize, to: &mut [usize]) {
        let (ic, sp, [od, oh, ow]) = (g.group().0, g.out_len(), g.output);
        let [_, h, w] = self.extent;
        let [d_len, h_len, w_len] = [h * w * ic, w * ic, ic];
        let [sd, sh, sw] = self.stride;
        let p = first % sp;
        let (mut image, [mut i, mut j, mut k]) = (first / sp, [p / (oh * ow), p / ow % oh, p % ow]);
        let mut row = image * self.image_len(g) + i * sd * d_len + j * sh * h_len;
        for to in to {
            *to = row + k * sw * w_len;
            k += 1;
            if k == ow {
                (k, j) = (0, j + 1);
                if j == oh {
                    (j, i) = (0, i + 1);
                    if i == od {
                        (i, image) = (0, image + 1);
                    }
                }
                row = image * self.image_len(g) + i * sd * d_len + j * sh * h_len;
            }
        }
    }
}
