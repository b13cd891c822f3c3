//! Resizes images.

use std::cell::RefCell;

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{Filter, FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};

use crate::error::{Error, Result};
use crate::memory::{check_available, collected, resize as resize_bytes, zeros};
use crate::pixels::Pixels;

/// Interpolation between pixels. The numbers are those of the Python interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interpolation {
    /// 0: nearest pixel.
    Nearest,
    /// 1: linear between two pixels along each axis.
    Bilinear,
    /// 2: cubic convolution over four pixels along each axis, a = -0.75.
    Cubic,
    /// 3: mean of the pixels that a new pixel covers; bilinear if an axis grows.
    Area,
    /// 4: Lanczos (windowed sinc) over eight pixels along each axis.
    Lanczos,
}

/// R. Keys, "Cubic convolution interpolation for digital image processing", 1981, with a = -0.75.
fn cubic(x: f64) -> f64 {
    const A: f64 = -0.75;
    let x = x.abs();
    match x {
        x if x < 1.0 => ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0,
        x if x < 2.0 => ((x - 5.0) * x + 8.0) * x * A - 4.0 * A,
        _ => 0.0,
    }
}

fn sinc(x: f64) -> f64 {
    let x = x * std::f64::consts::PI;
    if x == 0.0 { 1.0 } else { x.sin() / x }
}

fn lanczos(x: f64) -> f64 {
    match x.abs() < 4.0 {
        true => sinc(x) * sinc(x / 4.0),
        false => 0.0,
    }
}

fn algorithm(interpolation: Interpolation, shrinks: bool) -> ResizeAlg {
    let custom = |name, function, support| {
        let filter = Filter::new(name, function, support).expect("the support is above 0");
        ResizeAlg::Interpolation(FilterType::Custom(filter))
    };
    match interpolation {
        Interpolation::Nearest => ResizeAlg::Nearest,
        Interpolation::Bilinear => ResizeAlg::Interpolation(FilterType::Bilinear),
        Interpolation::Cubic => custom("cubic", cubic, 2.0),
        Interpolation::Area if shrinks => ResizeAlg::Convolution(FilterType::Box),
        Interpolation::Area => ResizeAlg::Interpolation(FilterType::Bilinear),
        Interpolation::Lanczos => custom("lanczos4", lanczos, 4.0),
    }
}

/// The resizer and the pixels that it reads and writes.
///
/// The resizer is instantiated for four channels only, to keep the code small. Images with fewer channels are converted before and after.
#[derive(Default)]
struct Workspace {
    resizer: Resizer,
    source: Vec<u8>,
    target: Vec<u8>,
}

thread_local! {
    /// The workspace of this thread, whose buffers are reused.
    static WORKSPACE: RefCell<Workspace> = RefCell::default();
}

/// The image with another size. Pixel centres lie at half-integers. Weights outside the image are distributed over the pixels inside.
///
/// # Errors
/// [`Error::Value`] if the size is empty or too large; [`Error::Memory`].
pub fn resize(
    image: &Pixels,
    height: usize,
    width: usize,
    interpolation: Interpolation,
) -> Result<Pixels> {
    if (height, width) == (image.height(), image.width()) {
        let data = collected(image.data().len(), image.data().iter().copied())?;
        return Pixels::new(height, width, image.channels(), data);
    }
    let fits = height
        .checked_mul(width)
        .is_some_and(|n| n <= crate::MAX_PIXELS);
    if height == 0 || width == 0 || !fits {
        return Err(Error::Value(format!(
            "an image must have from 1 to {} pixels, found a size of {height} x {width}",
            crate::MAX_PIXELS
        )));
    }
    let fault = |error: String| Error::Value(error);
    let shrinks = height <= image.height() && width <= image.width();
    let options = ResizeOptions::new()
        .resize_alg(algorithm(interpolation, shrinks))
        .use_alpha(false);
    WORKSPACE.with_borrow_mut(|space| {
        let source = match image.channels() {
            4 => image.data(),
            channels => {
                to_four_channels(image.data(), channels, &mut space.source)?;
                &space.source
            }
        };
        resize_bytes(&mut space.target, 4 * height * width)?;
        check_available(workspace_bytes(image, height, width))?;
        // The sizes were checked to be below 2**32.
        let (w, h) = (image.width() as u32, image.height() as u32);
        let source = ImageRef::new(w, h, source, PixelType::U8x4)
            .map_err(|error| fault(error.to_string()))?;
        let (w, h) = (width as u32, height as u32);
        let mut target = Image::from_slice_u8(w, h, &mut space.target, PixelType::U8x4)
            .map_err(|error| fault(error.to_string()))?;
        space
            .resizer
            .resize(&source, &mut target, &options)
            .map_err(|error| fault(error.to_string()))?;
        let data = from_four_channels(&space.target, image.channels())?;
        Pixels::new(height, width, image.channels(), data)
    })
}

/// Largest memory that the resizer takes: four channels of an image that is resized along one axis, in a vector that grows to at most twice as much,
/// and the weights along both axes. The windows overlap at most nine times (eight pixels and their ends), and a weight takes 8 bytes, and 4 in its last form.
fn workspace_bytes(image: &Pixels, height: usize, width: usize) -> usize {
    const WEIGHT_BYTES: usize = 9 * 12;
    let longest = [image.height().max(height), image.width().max(width)];
    let between = (image.height() * width).max(height * image.width());
    2 * 4 * between + WEIGHT_BYTES * (longest[0] + longest[1])
}

/// Fills up pixels of one to three channels with zeros.
fn to_four_channels(data: &[u8], channels: usize, to: &mut Vec<u8>) -> Result<()> {
    fn fill<const C: usize>(data: &[u8], to: &mut [u8]) {
        for (from, to) in data
            .as_chunks::<C>()
            .0
            .iter()
            .zip(to.as_chunks_mut::<4>().0)
        {
            *to = std::array::from_fn(|c| if c < C { from[c] } else { 0 });
        }
    }
    resize_bytes(to, data.len() / channels * 4)?;
    match channels {
        1 => fill::<1>(data, to),
        2 => fill::<2>(data, to),
        _ => fill::<3>(data, to),
    }
    Ok(())
}

/// The first `channels` bytes of every four.
fn from_four_channels(data: &[u8], channels: usize) -> Result<Vec<u8>> {
    fn take<const C: usize>(data: &[u8], to: &mut [u8]) {
        for (from, to) in data
            .as_chunks::<4>()
            .0
            .iter()
            .zip(to.as_chunks_mut::<C>().0)
        {
            *to = std::array::from_fn(|c| from[c]);
        }
    }
    let mut to = zeros(data.len() / 4 * channels)?;
    match channels {
        1 => take::<1>(data, &mut to),
        2 => take::<2>(data, &mut to),
        3 => take::<3>(data, &mut to),
        _ => to.copy_from_slice(data),
    }
    Ok(to)
}
