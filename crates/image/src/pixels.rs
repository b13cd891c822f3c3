//! 8-bit pixels in rows.

use crate::error::{Error, Result};
use crate::memory::with_capacity;

/// An image of shape (h, w, c): rows of pixels from the top, with interleaved channels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pixels {
    height: usize,
    width: usize,
    channels: usize,
    data: Vec<u8>,
}

impl Pixels {
    /// An image of these bytes.
    ///
    /// # Errors
    /// [`Error::Value`] if an axis is 0, there are more than four channels, or the number of bytes is not that of the shape.
    pub fn new(height: usize, width: usize, channels: usize, data: Vec<u8>) -> Result<Pixels> {
        let len = height
            .checked_mul(width)
            .and_then(|n| n.checked_mul(channels));
        if height == 0 || width == 0 || !(1..=4).contains(&channels) || len != Some(data.len()) {
            return Err(Error::Value(format!(
                "an image must have at least one pixel and 1 to 4 channels, found shape ({height}, {width}, {channels}) and {} bytes",
                data.len()
            )));
        }
        Ok(Pixels {
            height,
            width,
            channels,
            data,
        })
    }

    /// Number of rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of channels.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// All bytes, row by row.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// All bytes, mutable.
    pub(crate) fn data_mut(&mut self) -> &mut [u8] {
        &mut self.data
    }

    /// Converts to the bytes.
    pub fn into_data(self) -> Vec<u8> {
        self.data
    }

    /// A rectangle of the image.
    ///
    /// # Errors
    /// [`Error::Value`] if it is empty or exceeds the image; [`Error::Memory`].
    pub fn crop(&self, x: usize, y: usize, width: usize, height: usize) -> Result<Pixels> {
        let fits = |start: usize, len: usize, size: usize| {
            len > 0 && start.checked_add(len).is_some_and(|end| end <= size)
        };
        if !fits(x, width, self.width) || !fits(y, height, self.height) {
            return Err(Error::Value(format!(
                "a rectangle of {height} x {width} pixels at row {y}, column {x} does not fit into an image of {} x {}",
                self.height, self.width
            )));
        }
        let stride = self.width * self.channels;
        let columns = x * self.channels..(x + width) * self.channels;
        let mut data = with_capacity(height * columns.len())?;
        for row in self.data.chunks_exact(stride).skip(y).take(height) {
            data.extend_from_slice(&row[columns.clone()]);
        }
        Pixels::new(height, width, self.channels, data)
    }

    /// Mirrors the image left to right.
    pub fn flip_left_right(&mut self) {
        let (stride, channels) = (self.width * self.channels, self.channels);
        for row in self.data.chunks_exact_mut(stride) {
            for left in 0..row.len() / channels / 2 {
                let right = row.len() / channels - 1 - left;
                for c in 0..channels {
                    row.swap(left * channels + c, right * channels + c);
                }
            }
        }
    }

    /// Mirrors the image top to bottom.
    pub fn flip_top_bottom(&mut self) {
        let stride = self.width * self.channels;
        for top in 0..self.height / 2 {
            let bottom = self.height - 1 - top;
            let (before, behind) = self.data.split_at_mut(bottom * stride);
            before[top * stride..][..stride].swap_with_slice(&mut behind[..stride]);
        }
    }
}
