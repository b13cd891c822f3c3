//! Decodes image files in memory.

use std::io::Cursor;

use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use crate::error::{Error, Result};
use crate::memory::{check_available, collected, zeros};
use crate::pixels::Pixels;

/// Larger images are errors before memory is allocated, because a header can state any size.
pub const MAX_PIXELS: usize = 1 << 28;

/// Longest side of an image: the limit of the JPEG format, used for PNG too.
const MAX_SIDE: usize = 65_535;

/// Channels of the decoded image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channels {
    /// As stored: 1 to 4.
    Stored,
    /// One: brightness.
    Grey,
    /// Three.
    Color,
}

/// The order of the colour channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Red first.
    Rgb,
    /// Blue first.
    Bgr,
}

/// Decodes a JPEG or PNG image. 16-bit samples are reduced to their upper 8 bits. Transparency is dropped unless `channels` is `Stored`.
///
/// # Errors
/// [`Error::Format`], [`Error::Truncated`], [`Error::Damaged`], [`Error::TooLarge`] or [`Error::Memory`].
pub fn decode(bytes: &[u8], channels: Channels, order: Order) -> Result<Pixels> {
    let mut image = match bytes {
        [0xff, 0xd8, ..] => jpeg(bytes, channels)?,
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => png(bytes)?,
        _ => return Err(Error::Format { len: bytes.len() }),
    };
    image = match channels {
        Channels::Stored => image,
        Channels::Grey => to_grey(image)?,
        Channels::Color => to_color(image)?,
    };
    if order == Order::Bgr && image.channels() >= 3 {
        let size = image.channels();
        for pixel in image.data_mut().chunks_exact_mut(size) {
            pixel.swap(0, 2);
        }
    }
    Ok(image)
}

fn check_size(height: usize, width: usize) -> Result<()> {
    let fits = height.checked_mul(width).is_some_and(|n| n <= MAX_PIXELS);
    if fits && height <= MAX_SIDE && width <= MAX_SIDE {
        return Ok(());
    }
    Err(Error::TooLarge {
        height,
        width,
        limit: MAX_PIXELS,
    })
}

fn jpeg(bytes: &[u8], channels: Channels) -> Result<Pixels> {
    let len = bytes.len();
    let damaged = |problem: String| Error::Damaged {
        format: "JPEG",
        len,
        problem,
    };
    // The decoder fills missing data with grey, so truncation is detected here. In compressed data 0xff is followed by 0, so these two bytes are a
    // marker.
    let is_scan = |pair: &[u8]| pair == [0xff, 0xda];
    let scan = bytes.windows(2).rposition(is_scan);
    let is_whole = scan.is_some_and(|at| bytes[at..].windows(2).any(|pair| pair == [0xff, 0xd9]));
    let options = DecoderOptions::default()
        .set_max_width(MAX_SIDE)
        .set_max_height(MAX_SIDE);
    let mut decoder = JpegDecoder::new_with_options(Cursor::new(bytes), options);
    let truncated = Error::Truncated {
        format: "JPEG",
        len,
    };
    if let Err(error) = decoder.decode_headers() {
        return Err(match is_whole {
            true => damaged(format!("{error:?}")),
            false => truncated,
        });
    }
    let Some(info) = decoder.info() else {
        return Err(damaged("it has no header".to_owned()));
    };
    let (height, width) = (usize::from(info.height), usize::from(info.width));
    check_size(height, width)?;
    if !is_whole {
        return Err(truncated);
    }
    let stored = decoder.input_colorspace();
    let is_grey = stored == Some(ColorSpace::Luma);
    // Use the stored luma for greyscale, unless the image is stored as RGB or CMYK.
    let wants_luma = channels == Channels::Grey && stored == Some(ColorSpace::YCbCr);
    let luma = is_grey || wants_luma;
    let target = if luma {
        ColorSpace::Luma
    } else {
        ColorSpace::RGB
    };
    decoder.set_options(options.jpeg_set_out_colorspace(target));
    let channels = if luma { 1 } else { 3 };
    let mut data = zeros(height * width * channels)?;
    // The decoder holds the 16-bit coefficients of all components: those of the whole image if there are several scans, else of a row of blocks. Its
    // blocks have up to 32 x 32 pixels.
    let has_several_scans = bytes.windows(2).position(is_scan) != scan;
    let rows = if has_several_scans { height } else { 1 };
    let pixels = rows.next_multiple_of(32) * width.next_multiple_of(32);
    check_available(usize::from(info.components) * size_of::<i16>() * pixels)?;
    decoder
        .decode_into(&mut data)
        .map_err(|error| damaged(format!("{error:?}")))?;
    Pixels::new(height, width, channels, data)
}

fn png(bytes: &[u8]) -> Result<Pixels> {
    let len = bytes.len();
    let fault = |error: png::DecodingError| match error {
        png::DecodingError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            Error::Truncated { format: "PNG", len }
        }
        error => Error::Damaged {
            format: "PNG",
            len,
            problem: error.to_string(),
        },
    };
    let mut decoder = png::Decoder::new_with_limits(
        Cursor::new(bytes),
        png::Limits {
            bytes: 4 * MAX_PIXELS,
        },
    );
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let header = decoder.read_header_info().map_err(fault)?;
    let (height, width) = (header.height as usize, header.width as usize);
    check_size(height, width)?;
    let mut reader = decoder.read_info().map_err(fault)?;
    let size = reader.output_buffer_size().unwrap_or(0);
    let mut data = zeros(size)?;
    let frame = reader.next_frame(&mut data).map_err(fault)?;
    data.truncate(frame.buffer_size());
    Pixels::new(height, width, frame.color_type.samples(), data)
}

/// Luma of ITU-R BT.601 in 14-bit fixed point.
fn brightness(r: u8, g: u8, b: u8) -> u8 {
    let sum = 4899 * u32::from(r) + 9617 * u32::from(g) + 1868 * u32::from(b);
    ((sum + 8192) >> 14) as u8
}

fn to_grey(image: Pixels) -> Result<Pixels> {
    let (height, width) = (image.height(), image.width());
    let data = match image.channels() {
        1 => return Ok(image),
        2 => collected(height * width, image.data().chunks_exact(2).map(|p| p[0]))?,
        n => {
            let pixels = image.data().chunks_exact(n);
            collected(height * width, pixels.map(|p| brightness(p[0], p[1], p[2])))?
        }
    };
    Pixels::new(height, width, 1, data)
}

fn to_color(image: Pixels) -> Result<Pixels> {
    let (height, width) = (image.height(), image.width());
    let data = match image.channels() {
        3 => return Ok(image),
        n @ (1 | 2) => {
            let pixels = image.data().chunks_exact(n);
            collected(3 * height * width, pixels.flat_map(|p| [p[0]; 3]))?
        }
        n => {
            let pixels = image.data().chunks_exact(n);
            collected(3 * height * width, pixels.flat_map(|p| [p[0], p[1], p[2]]))?
        }
    };
    Pixels::new(height, width, 3, data)
}
