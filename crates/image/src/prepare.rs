//! The steps from a file to a network's input, and the conversion to floats.

use crate::decode::{Channels, Order, decode};
use crate::error::{Error, Result};
use crate::pixels::Pixels;
use crate::resize::{Interpolation, resize};

/// A step of the preparation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Resizes to a given size.
    Resize {
        /// New rows.
        height: usize,
        /// New columns.
        width: usize,
        /// Interpolation.
        interpolation: Interpolation,
    },
    /// Resizes so that the shorter side has a given length; the longer side is in proportion, rounded down.
    ResizeShort {
        /// New length of the shorter side.
        size: usize,
        /// Interpolation.
        interpolation: Interpolation,
    },
    /// Crops a rectangle.
    Crop {
        /// First column.
        x: usize,
        /// First row.
        y: usize,
        /// Columns.
        width: usize,
        /// Rows.
        height: usize,
    },
    /// Crops a rectangle in the middle. An image that is too small is enlarged first.
    CenterCrop {
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
        /// Interpolation.
        interpolation: Interpolation,
    },
    /// Mirrors left to right.
    FlipLeftRight,
    /// Mirrors top to bottom.
    FlipTopBottom,
}

/// Decodes a file and applies steps to it.
///
/// # Errors
/// Those of [`decode`] and of the steps.
pub fn prepare(bytes: &[u8], channels: Channels, steps: &[Step]) -> Result<Pixels> {
    let mut image = decode(bytes, channels, Order::Rgb)?;
    for step in steps {
        image = apply(image, *step)?;
    }
    Ok(image)
}

/// Applies one step.
///
/// # Errors
/// Sizes that the step does not take, and no memory.
pub fn apply(mut image: Pixels, step: Step) -> Result<Pixels> {
    match step {
        Step::Resize {
            height,
            width,
            interpolation,
        } => resize(&image, height, width, interpolation),
        Step::ResizeShort {
            size,
            interpolation,
        } => {
            let (h, w) = (image.height(), image.width());
            let scaled = |long_side: usize, short_side: usize| {
                long_side
                    .checked_mul(size)
                    .map(|product| product / short_side)
                    .ok_or_else(|| {
                        Error::Value(format!("a short side of {size} pixels is too long"))
                    })
            };
            let (height, width) = match h > w {
                true => (scaled(h, w)?, size),
                false => (size, scaled(w, h)?),
            };
            resize(&image, height, width, interpolation)
        }
        Step::Crop {
            x,
            y,
            width,
            height,
        } => image.crop(x, y, width, height),
        Step::CenterCrop {
            height,
            width,
            interpolation,
        } => {
            let image = match image.height() < height || image.width() < width {
                true => resize(
                    &image,
                    image.height().max(height),
                    image.width().max(width),
                    interpolation,
                )?,
                false => image,
            };
            let (x, y) = ((image.width() - width) / 2, (image.height() - height) / 2);
            image.crop(x, y, width, height)
        }
        Step::FlipLeftRight => {
            image.flip_left_right();
            Ok(image)
        }
        Step::FlipTopBottom => {
            image.flip_top_bottom();
            Ok(image)
        }
    }
}

/// `(x / 255 - mean) / std`, with one number for each channel, or one for all.
#[derive(Clone, Debug, PartialEq)]
pub struct Normalization {
    /// Means.
    pub mean: Vec<f32>,
    /// Standard deviations.
    pub std: Vec<f32>,
}

/// Writes an image as floats, with the channels as the first axis: (h, w, c) -> (c, h, w).
///
/// # Errors
/// [`Error::Value`] if `to` does not have the image's number of elements, or if the means and deviations are neither one number nor one per channel.
pub fn to_planes(image: &Pixels, by: &Normalization, to: &mut [f32]) -> Result<()> {
    let channels = image.channels();
    let pick = |numbers: &[f32], c: usize| match numbers {
        [all] => Some(*all),
        numbers if numbers.len() == channels => numbers.get(c).copied(),
        _ => None,
    };
    if to.len() != image.data().len() {
        return Err(Error::Value(format!(
            "an image of shape ({}, {}, {channels}) does not have {} elements",
            image.height(),
            image.width(),
            to.len()
        )));
    }
    for (c, plane) in to
        .chunks_exact_mut(image.height() * image.width())
        .enumerate()
    {
        let (Some(mean), Some(std)) = (pick(&by.mean, c), pick(&by.std, c)) else {
            return Err(Error::Value(format!(
                "means and deviations must be one or {channels}, found {} and {}",
                by.mean.len(),
                by.std.len()
            )));
        };
        // A table of all 256 results, so that there is no division per pixel.
        let table: [f32; 256] = std::array::from_fn(|x| (x as f32 / 255.0 - mean) / std);
        for (y, pixel) in plane.iter_mut().zip(image.data().chunks_exact(channels)) {
            *y = table[usize::from(pixel[c])];
        }
    }
    Ok(())
}
