//! Images: decoding, encoding, resizing, and batches on the engine's threads. The GIL is released meanwhile.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use mxnet::core::{Array, Error, Result, interrupt, memory};
use mxnet::engine::engine;
use mxnet::image::{self, Channels, Format, Interpolation, Normalization, Order, Pixels, Step};
use mxnet::tensor::DType;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::array::{Get, PyArray};
use crate::error::raise;
use crate::gil_release::without_gil;

/// The error of the image crate as an error of function `op`: unreadable data is an I/O error, an invalid request a value error.
fn fault(op: &'static str, error: &image::Error) -> Error {
    let problem = error.to_string();
    match error {
        image::Error::Value(_) => Error::value(op, problem),
        image::Error::Memory { .. } => Error::memory(op, problem),
        _ => Error::io(op, problem),
    }
}

fn channels(op: &'static str, flag: i64) -> Result<Channels> {
    match flag {
        -1 => Ok(Channels::Stored),
        0 => Ok(Channels::Grey),
        1 => Ok(Channels::Color),
        _ => Err(Error::value(
            op,
            format!("`flag` must be 1 (colour), 0 (grey) or -1 (as stored), found {flag}"),
        )),
    }
}

fn interpolation(op: &'static str, number: i64) -> Result<Interpolation> {
    Ok(match number {
        0 => Interpolation::Nearest,
        1 => Interpolation::Bilinear,
        2 => Interpolation::Cubic,
        3 => Interpolation::Area,
        4 => Interpolation::Lanczos,
        _ => {
            return Err(Error::value(
                op,
                format!("`interp` must be from 0 to 4, found {number}"),
            ));
        }
    })
}

/// Calls a decoder on a file of `len` bytes. Some damaged files make it panic, which becomes an error too.
fn decoded<R>(
    op: &'static str,
    len: usize,
    decode: impl FnOnce() -> image::Result<R>,
) -> Result<R> {
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(found) => found.map_err(|error| fault(op, &error)),
        Err(_) => Err(Error::io(
            op,
            format!("the image of {len} bytes is damaged: its decoder failed"),
        )),
    }
}

/// Time to decode a byte of a file, estimated high: a small file may hold a large image.
const NS_PER_FILE_BYTE: u64 = 320;

/// Time to encode or resize an element.
const NS_PER_ELEMENT: u64 = 20;

/// The result of `work`, computed on a new thread if it takes long, so that this thread can handle signals meanwhile.
fn interruptibly<R: Send + 'static>(
    cost_ns: u64,
    work: impl FnOnce() -> Result<R> + Send + 'static,
) -> Result<R> {
    interrupt::run_on_new_thread(cost_ns, work)?
}

fn array_of(pixels: &Pixels) -> Result<Array> {
    let shape = [pixels.height(), pixels.width(), pixels.channels()];
    Array::from_slice(pixels.data(), &shape)
}

fn pixels_of(op: &'static str, array: &Array) -> Result<Pixels> {
    let &[height, width, channels] = array.shape() else {
        let problem = format!("an image has 3 axes, (h, w, c), found {}", array.ndim());
        return Err(Error::shape(op, problem));
    };
    if array.dtype() != DType::U8 {
        let problem = format!("an image is uint8, found {}", array.dtype().name());
        return Err(Error::dtype(op, problem));
    }
    let array = array.snapshot()?;
    let held = array.read()?;
    let bytes = memory::collected(op, array.len(), held.bytes().iter().copied())?;
    Pixels::new(height, width, channels, bytes).map_err(|error| fault(op, &error))
}

/// Decodes a JPEG or PNG image: uint8 of shape (h, w, c).
#[pyfunction]
pub fn image_decode(
    py: Python<'_>,
    op: &str,
    bytes: PyBackedBytes,
    flag: i64,
    to_rgb: bool,
) -> PyResult<Py<PyArray>> {
    let op = if op == "imread" { "imread" } else { "imdecode" };
    let order = if to_rgb { Order::Rgb } else { Order::Bgr };
    let image = without_gil(py, || {
        let channels = channels(op, flag)?;
        let bytes = memory::collected(op, bytes.len(), bytes.iter().copied())?;
        interruptibly(NS_PER_FILE_BYTE * bytes.len() as u64, move || {
            array_of(&decoded(op, bytes.len(), || {
                image::decode(&bytes, channels, order)
            })?)
        })
    });
    PyArray::wrap(py, image.map_err(|error| raise(py, error))?)
}

/// Encodes an image: `.jpg` with a quality from 1 to 100, `.png` with a compression level from 0 to 9.
#[pyfunction]
pub fn image_encode<'py>(
    py: Python<'py>,
    image: &Bound<'py, PyArray>,
    quality: u8,
    is_png: bool,
) -> PyResult<Bound<'py, PyBytes>> {
    let op = "imencode";
    let array = image.get().array(py).detach();
    let format = match is_png {
        true => Format::Png { level: quality },
        false => Format::Jpeg { quality },
    };
    let file = without_gil(py, || {
        let pixels = pixels_of(op, &array)?;
        interruptibly(NS_PER_ELEMENT * array.len() as u64, move || {
            image::encode(&pixels, format).map_err(|error| fault(op, &error))
        })
    });
    let file = file.map_err(|error| raise(py, error))?;
    crate::numpy_export::bytes_of(py, &file)
}

/// The image, resized.
#[pyfunction]
pub fn image_resize(
    py: Python<'_>,
    image: &Bound<'_, PyArray>,
    height: usize,
    width: usize,
    interp: i64,
) -> PyResult<Py<PyArray>> {
    let op = "imresize";
    let array = image.get().array(py).detach();
    let resized = without_gil(py, || {
        let (pixels, interpolation) = (pixels_of(op, &array)?, interpolation(op, interp)?);
        let result_len = height
            .saturating_mul(width)
            .saturating_mul(pixels.channels());
        let len = array.len().saturating_add(result_len) as u64;
        interruptibly(len.saturating_mul(NS_PER_ELEMENT), move || {
            let found = image::resize(&pixels, height, width, interpolation);
            array_of(&found.map_err(|error| fault(op, &error))?)
        })
    });
    PyArray::wrap(py, resized.map_err(|error| raise(py, error))?)
}

/// A step of [`image_batch`]: its name and four numbers, of which it uses as many as it needs.
type Given = (String, [usize; 4]);

fn step(op: &'static str, (name, [a, b, c, d]): &Given) -> Result<Step> {
    let (a, b, c, d) = (*a, *b, *c, *d);
    let how = |number: usize| interpolation(op, i64::try_from(number).unwrap_or(i64::MAX));
    Ok(match name.as_str() {
        "resize" => Step::Resize {
            height: a,
            width: b,
            interpolation: how(c)?,
        },
        "resize_short" => Step::ResizeShort {
            size: a,
            interpolation: how(b)?,
        },
        "crop" => Step::Crop {
            x: a,
            y: b,
            width: c,
            height: d,
        },
        "center_crop" => Step::CenterCrop {
            height: a,
            width: b,
            interpolation: how(c)?,
        },
        "flip_left_right" => Step::FlipLeftRight,
        "flip_top_bottom" => Step::FlipTopBottom,
        _ => return Err(Error::value(op, format!("there is no step {name:?}"))),
    })
}

/// Decodes images, applies the steps of each and normalises: float32 of shape (n, c, h, w). There is one task for each image.
#[pyfunction]
pub fn image_batch(
    py: Python<'_>,
    files: Vec<PyBackedBytes>,
    flag: i64,
    steps: Vec<Vec<Given>>,
    mean: Vec<f32>,
    std: Vec<f32>,
) -> PyResult<Py<PyArray>> {
    let by = Normalization { mean, std };
    let batch = without_gil(py, || batch(&files, flag, &steps, &by));
    PyArray::wrap(py, batch.map_err(|error| raise(py, error))?)
}

fn batch(
    files: &[PyBackedBytes],
    flag: i64,
    steps: &[Vec<Given>],
    by: &Normalization,
) -> Result<Array> {
    let op = "image_batch";
    let channels = channels(op, flag)?;
    if files.len() != steps.len() || files.is_empty() {
        let problem = format!(
            "a batch has at least one image and steps for each, found {} and {}",
            files.len(),
            steps.len()
        );
        return Err(Error::value(op, problem));
    }
    let steps: Vec<Vec<Step>> = steps
        .iter()
        .map(|steps| steps.iter().map(|given| step(op, given)).collect())
        .collect::<Result<_>>()?;
    let images = in_parallel(files.len(), |i| {
        decoded(op, files[i].len(), || {
            image::prepare(&files[i], channels, &steps[i])
        })
        .map_err(|error| in_image(error, i))
    })?;
    let shape = |image: &Pixels| [image.channels(), image.height(), image.width()];
    let first = shape(&images[0]);
    if let Some(i) = images.iter().position(|image| shape(image) != first) {
        let problem = format!(
            "images of a batch must have one shape (c, h, w), found {first:?} of image 0 and {:?} of image {i}",
            shape(&images[i])
        );
        return Err(Error::shape(op, problem));
    }
    let [c, h, w] = first;
    let len = images.len() * images[0].data().len();
    let mut planes = memory::collected(op, len, std::iter::repeat_n(0.0, len))?;
    let of_images: Vec<_> = planes.chunks_mut(c * h * w).map(Mutex::new).collect();
    in_parallel(images.len(), |i| {
        let mut to = of_images[i].lock().unwrap_or_else(PoisonError::into_inner);
        image::to_planes(&images[i], by, &mut to).map_err(|error| fault(op, &error))
    })?;
    Array::from_slice(&planes, &[images.len(), c, h, w])
}

/// The error, with the index of its image.
fn in_image(mut error: Error, i: usize) -> Error {
    if let Some(fault) = error.fault_mut() {
        fault.problem = format!("image {i}: {}", fault.problem);
    }
    error
}

/// Results of `make` for 0 to `n - 1`, computed on the engine's threads; the error of the lowest index that failed.
fn in_parallel<T: Send>(n: usize, make: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
    let slots: Vec<Mutex<Option<Result<T>>>> = (0..n).map(|_| Mutex::new(None)).collect();
    engine().run_tasks(n, &|i| {
        let made = make(i);
        *slots[i].lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
    });
    let found = slots.into_iter().map(|slot| {
        let made = slot.into_inner().unwrap_or_else(PoisonError::into_inner);
        made.unwrap_or_else(|| Err(Error::internal("image_batch", "a task did not run")))
    });
    found.collect()
}
