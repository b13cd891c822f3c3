//! Pooling of image regions: positions of the maximum of each bin (ROI pooling), and means of interpolated values (ROI align).
//!
//! A region is five numbers: the index of its image, then left, top, right and bottom, which are multiplied by a scale.

use crate::Threads;
use crate::real::{Real, Shared, with_real};

/// Sizes of dense images `(images, channels, height, width)` and of their regions `(regions, 5)`.
#[derive(Clone, Copy, Debug)]
pub struct Regions<'a> {
    /// Element type.
    pub elem: crate::Elem,
    /// Number of images.
    pub images: usize,
    /// Number of channels.
    pub channels: usize,
    /// Height and width of an image.
    pub size: [usize; 2],
    /// The regions, five numbers per region.
    pub regions: &'a [f64],
    /// Number of bins of a region, vertically and horizontally.
    pub bins: [usize; 2],
    /// Factor of the edges of regions.
    pub scale: f64,
}

impl Regions<'_> {
    /// Number of regions.
    pub fn count(&self) -> usize {
        self.regions.len() / 5
    }

    /// The image of region `r`; `None` if its index is out of range.
    fn image(&self, r: usize) -> Option<usize> {
        let image = self.regions[5 * r];
        (image >= 0.0 && image < self.images as f64).then_some(image as usize)
    }

    /// First and last edge of region `r` along an axis (0 vertical, 1 horizontal), scaled.
    fn edges(&self, r: usize, axis: usize) -> [f64; 2] {
        [2 - axis, 4 - axis].map(|i| self.regions[5 * r + i] * self.scale)
    }
}

/// Pixels `start..stop` of bin `b` of `bins` along an axis of `len` pixels, for a region from pixel `first` to pixel `last` inclusive. Bins have
/// equal real lengths; where these are not integers, neighbouring bins overlap.
fn pixels([first, last]: [f64; 2], b: usize, bins: usize, len: usize) -> [usize; 2] {
    // Integers beyond this range lie outside of any image.
    let whole = |x: f64| x.round().clamp(-1e9, 1e9) as i64;
    let first = whole(first);
    let size = (whole(last) - first + 1).max(1);
    let (b, bins) = (b as i64, bins as i64);
    let start = first + (b * size).div_euclid(bins);
    let stop = first - (-(b + 1) * size).div_euclid(bins);
    [start, stop].map(|x| x.clamp(0, len as i64) as usize)
}

/// For each region, channel and bin, writes the position of the maximum in its channel's plane, as a flat index in C order, or -1 for a bin without
/// pixels. `positions` has shape `(regions, channels, *bins)`. NaN counts as the maximum.
///
/// # Safety
/// `data` has the elements of the images, dense; `positions` has as many elements as there are bins of all regions and channels.
pub unsafe fn largest(threads: &dyn Threads, g: &Regions, data: *const u8, positions: *mut i64) {
    with_real!(g.elem, T => unsafe {
        // SAFETY: same contract.
        largest_of::<T>(threads, g, data.cast(), positions);
    });
}

/// # Safety
/// Same as for [`largest`].
unsafe fn largest_of<T: Real>(
    threads: &dyn Threads,
    g: &Regions,
    data: *const T,
    positions: *mut i64,
) {
    let (data, positions) = (Shared(data.cast_mut()), Shared(positions));
    let ([height, width], [down, right]) = (g.size, g.bins);
    let task = |r: usize| {
        let rows: Vec<_> = (0..down)
            .map(|b| pixels(g.edges(r, 0), b, down, height))
            .collect();
        let columns: Vec<_> = (0..right)
            .map(|b| pixels(g.edges(r, 1), b, right, width))
            .collect();
        for c in 0..g.channels {
            let mut out = positions.at((r * g.channels + c) * down * right);
            for &[top, bottom] in &rows {
                for &[left, end] in &columns {
                    let mut found = -1;
                    if let Some(image) = g.image(r) {
                        let plane = data.at((image * g.channels + c) * height * width);
                        let mut best = T::NEG_INFINITY;
                        for at in (top..bottom)
                            .flat_map(|row| (left..end).map(move |column| row * width + column))
                        {
                            // SAFETY: rows and columns were clipped to the image.
                            let x = unsafe { *plane.add(at) };
                            if found < 0 || x > best || x.is_nan() && !best.is_nan() {
                                (found, best) = (at as i64, x);
                            }
                        }
                    }
                    // SAFETY: each task writes its own region's bins, one after the other.
                    unsafe {
                        *out = found;
                        out = out.add(1);
                    }
                }
            }
        }
    };
    threads.run(g.count(), &task);
}

/// Where [`means`] samples.
#[derive(Clone, Copy, Debug)]
pub struct Samples {
    /// Samples of a bin along each axis; 0 for the length of the bin in pixels, rounded up.
    pub count: usize,
    /// Whether pixel centres are at half-integer coordinates. Otherwise they are at integers, and regions are at least one pixel long.
    pub is_aligned: bool,
    /// Whether each bin has its own channels: bin `b` of channel `c` reads channel `c * bins + b`.
    pub is_by_position: bool,
}

/// The pixels of a bin along one axis with their weights.
struct Window {
    first: usize,
    weights: Vec<f64>,
}

/// Adds the weights of linear interpolation at `x` on an axis of `len` pixels. A position more than a pixel outside has no weights.
fn spread(x: f64, len: usize, window: &mut [f64]) {
    if len == 0 || !(-1.0..=len as f64).contains(&x) {
        return;
    }
    let x = x.clamp(0.0, (len - 1) as f64);
    let low = x as usize;
    let part = x - low as f64;
    window[low] += 1.0 - part;
    if part > 0.0 {
        window[low + 1] += part;
    }
}

impl Samples {
    /// The windows of all bins of region `r` along an axis.
    fn windows(self, g: &Regions, r: usize, axis: usize) -> Vec<Window> {
        let (bins, len) = (g.bins[axis], g.size[axis]);
        let shift = if self.is_aligned { 0.5 } else { 0.0 };
        let [first, last] = g.edges(r, axis);
        let size = match self.is_aligned {
            true => last - first,
            false => (last - first).max(1.0),
        };
        let bin = size / bins as f64;
        let count = match self.count {
            // Limits the samples of a region that is far larger than the image.
            0 => bin.ceil().clamp(1.0, 1e6) as usize,
            count => count,
        };
        let mut row = crate::scratch::filled(len, 0.0);
        (0..bins)
            .map(|b| {
                row.fill(0.0);
                for i in 0..count {
                    let within = (i as f64 + 0.5) * bin / count as f64;
                    spread(first - shift + b as f64 * bin + within, len, &mut row);
                }
                let used = |x: &f64| *x != 0.0;
                let first = row.iter().position(used).unwrap_or(0);
                let stop = row.iter().rposition(used).map_or(first, |i| i + 1);
                let weights = row[first..stop].iter().map(|x| x / count as f64).collect();
                Window { first, weights }
            })
            .collect()
    }

    /// Windows of all regions along both axes; `None` for a region whose image index is out of range.
    fn all(self, g: &Regions) -> Vec<Option<(usize, [Vec<Window>; 2])>> {
        (0..g.count())
            .map(|r| Some((g.image(r)?, [0, 1].map(|axis| self.windows(g, r, axis)))))
            .collect()
    }

    /// Number of channels of the result.
    fn channels(self, g: &Regions) -> usize {
        match self.is_by_position {
            true => g.channels / (g.bins[0] * g.bins[1]),
            false => g.channels,
        }
    }

    /// The channel that bin `b` of channel `c` of the result reads.
    fn channel(self, g: &Regions, c: usize, b: usize) -> usize {
        match self.is_by_position {
            true => c * g.bins[0] * g.bins[1] + b,
            false => c,
        }
    }
}

/// Writes the mean of the samples of each region, channel and bin, shape `(regions, channels, *bins)`; 0 for a region whose image index is out of
/// range.
///
/// # Safety
/// `data` has the elements of the images, dense; `out` has those of the result.
pub unsafe fn means(
    threads: &dyn Threads,
    g: &Regions,
    samples: Samples,
    data: *const u8,
    out: *mut u8,
) {
    with_real!(g.elem, T => unsafe {
        // SAFETY: same contract.
        means_of::<T>(threads, g, samples, data.cast(), out.cast());
    });
}

/// # Safety
/// Same as for [`means`].
unsafe fn means_of<T: Real>(
    threads: &dyn Threads,
    g: &Regions,
    samples: Samples,
    data: *const T,
    out: *mut T,
) {
    let (data, out) = (Shared(data.cast_mut()), Shared(out));
    let (plane, bins, channels) = (
        g.size[0] * g.size[1],
        g.bins[0] * g.bins[1],
        samples.channels(g),
    );
    let windows = samples.all(g);
    threads.run(g.count(), &|r| {
        for c in 0..channels {
            for b in 0..bins {
                let mut sum = 0.0;
                if let Some((image, [rows, columns])) = &windows[r] {
                    let (row, column) = (&rows[b / g.bins[1]], &columns[b % g.bins[1]]);
                    let channel = samples.channel(g, c, b);
                    for (i, down) in row.weights.iter().enumerate() {
                        let at = (image * g.channels + channel) * plane
                            + (row.first + i) * g.size[1]
                            + column.first;
                        let mut line = 0.0;
                        for (j, across) in column.weights.iter().enumerate() {
                            // SAFETY: windows lie within the image.
                            line += across * unsafe { *data.at(at + j) }.to_f64();
                        }
                        sum += down * line;
                    }
                }
                // SAFETY: each task writes the bins of its own region.
                unsafe { *out.at((r * channels + c) * bins + b) = T::from_f64(sum) };
            }
        }
    });
}

/// The transpose of [`means`], which is its gradient: adds to each pixel of `dx`, in the shape of the images, its weighted share of each bin of `dy`.
///
/// # Safety
/// `dy` has the elements of a result of [`means`], dense; `dx` has those of the images.
pub unsafe fn spread_means(
    threads: &dyn Threads,
    g: &Regions,
    samples: Samples,
    dy: *const u8,
    dx: *mut u8,
) {
    with_real!(g.elem, T => unsafe {
        // SAFETY: same contract.
        spread_means_of::<T>(threads, g, samples, dy.cast(), dx.cast());
    });
}

/// # Safety
/// Same as for [`spread_means`].
unsafe fn spread_means_of<T: Real>(
    threads: &dyn Threads,
    g: &Regions,
    samples: Samples,
    dy: *const T,
    dx: *mut T,
) {
    let (dy, dx) = (Shared(dy.cast_mut()), Shared(dx));
    let (plane, bins, channels) = (
        g.size[0] * g.size[1],
        g.bins[0] * g.bins[1],
        samples.channels(g),
    );
    let windows = samples.all(g);
    // One task per channel of an image, so that no two tasks write one pixel and the order of the sums is fixed.
    threads.run(g.images * g.channels, &|task| {
        let (image, channel) = (task / g.channels, task % g.channels);
        let mut sums = crate::scratch::filled(plane, 0.0);
        let (c, bins_read) = match samples.is_by_position {
            true => (channel / bins, channel % bins..channel % bins + 1),
            false => (channel, 0..bins),
        };
        for (r, window) in windows.iter().enumerate() {
            let Some((owner, [rows, columns])) = window else {
                continue;
            };
            if *owner != image {
                continue;
            }
            for b in bins_read.clone() {
                // SAFETY: a bin of the result.
                let slope = unsafe { *dy.at((r * channels + c) * bins + b) }.to_f64();
                let (row, column) = (&rows[b / g.bins[1]], &columns[b % g.bins[1]]);
                for (i, down) in row.weights.iter().enumerate() {
                    let at = (row.first + i) * g.size[1] + column.first;
                    for (j, across) in column.weights.iter().enumerate() {
                        sums[at + j] += slope * down * across;
                    }
                }
            }
        }
        for (i, sum) in sums.into_iter().enumerate() {
            // SAFETY: the plane of this task.
            unsafe { *dx.at(task * plane + i) = T::from_f64(sum) };
        }
    });
}
