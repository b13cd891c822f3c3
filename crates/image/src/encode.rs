//! Encodes images to files in memory.

use jpeg_encoder::{ColorType, Encoder, EncodingError, SamplingFactor};

use crate::error::{Error, Result};
use crate::memory::{File, check_available};
use crate::pixels::Pixels;

/// File format of the encoded image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JPEG with a quality from 1 to 100. Above 90, chroma is not subsampled.
    Jpeg {
        /// From 1 to 100.
        quality: u8,
    },
    /// PNG with a compression level from 0 (none) to 9 (smallest).
    Png {
        /// From 0 to 9.
        level: u8,
    },
}

/// Encodes an RGB or greyscale image.
///
/// # Errors
/// [`Error::Value`] if the format does not allow the number of channels, the size, the quality or the level; [`Error::Memory`].
pub fn encode(image: &Pixels, format: Format) -> Result<Vec<u8>> {
    match format {
        Format::Jpeg { quality } => jpeg(image, quality),
        Format::Png { level } => png(image, level),
    }
}

fn jpeg(image: &Pixels, quality: u8) -> Result<Vec<u8>> {
    if !(1..=100).contains(&quality) {
        return Err(Error::Value(format!(
            "the quality of a JPEG image must be from 1 to 100, found {quality}"
        )));
    }
    let color = match image.channels() {
        1 => ColorType::Luma,
        3 => ColorType::Rgb,
        n => {
            return Err(Error::Value(format!(
                "a JPEG image must have 1 or 3 channels, found {n}"
            )));
        }
    };
    let (Ok(width), Ok(height)) = (u16::try_from(image.width()), u16::try_from(image.height()))
    else {
        return Err(Error::Value(format!(
            "a JPEG image can have at most 65535 x 65535 pixels, found {} x {}",
            image.height(),
            image.width()
        )));
    };
    let mut file = File::default();
    let mut encoder = Encoder::new(&mut file, quality);
    encoder.set_sampling_factor(match quality {
        0..=90 => SamplingFactor::R_4_2_0,
        _ => SamplingFactor::R_4_4_4,
    });
    match encoder.encode(image.data(), width, height, color) {
        Ok(()) => Ok(file.into_bytes()),
        Err(EncodingError::IoError(_)) => Err(file.error()),
        Err(error) => Err(Error::Value(error.to_string())),
    }
}

/// Largest memory that the PNG encoder takes beside its result, in sizes of the image. It compresses in memory: to at most 1.5 sizes (12 bits for a
/// byte), in a vector that is at most twice as long; if that is more than one size, it stores the bytes in a second vector.
const PNG_WORKSPACE: usize = 5;

fn png(image: &Pixels, level: u8) -> Result<Vec<u8>> {
    if level > 9 {
        return Err(Error::Value(format!(
            "the compression level of a PNG image must be from 0 to 9, found {level}"
        )));
    }
    let (Ok(width), Ok(height)) = (u32::try_from(image.width()), u32::try_from(image.height()))
    else {
        return Err(Error::Value(format!(
            "a PNG image must have less than 2**32 rows and columns, found {} x {}",
            image.height(),
            image.width()
        )));
    };
    let mut file = File::default();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(match image.channels() {
        1 => png::ColorType::Grayscale,
        2 => png::ColorType::GrayscaleAlpha,
        3 => png::ColorType::Rgb,
        _ => png::ColorType::Rgba,
    });
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(match level {
        0 => png::Compression::NoCompression,
        1..=3 => png::Compression::Fast,
        4..=6 => png::Compression::Balanced,
        _ => png::Compression::High,
    });
    check_available(PNG_WORKSPACE * image.data().len())?;
    let written = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(image.data())?;
        writer.finish()
    });
    match written {
        Ok(()) => Ok(file.into_bytes()),
        Err(png::EncodingError::IoError(_)) => Err(file.error()),
        Err(error) => Err(Error::Value(error.to_string())),
    }
}
