//! Named arrays in safetensors files.

use std::path::Path;

use mxnet_core::{Result, files};

use crate::Array;

/// Writes named arrays to a file. An older file is replaced in one step.
///
/// # Errors
/// [`crate::Error::Io`] if the file cannot be written; [`crate::Error::DType`] for complex128, which the format does not have.
pub fn save<'a>(
    path: impl AsRef<Path>,
    arrays: impl IntoIterator<Item = (&'a str, &'a Array)>,
) -> Result<()> {
    let path = path.as_ref();
    files::save(path, owned(arrays), None).map_err(|error| error.at(path))
}

/// The bytes that [`save`] would write.
///
/// # Errors
/// [`crate::Error::DType`] for complex128, which the format does not have; [`crate::Error::Memory`].
///
/// ```
/// let x = mxnet::Array::from_slice(&[1.0f32, 2.0], &[2])?;
/// let bytes = mxnet::to_bytes([("x", &x)])?;
/// let named = mxnet::from_bytes(&bytes)?;
/// assert_eq!((named[0].0.as_str(), named[0].1.to_vec::<f32>()?), ("x", vec![1.0, 2.0]));
/// # Ok::<(), mxnet::Error>(())
/// ```
pub fn to_bytes<'a>(arrays: impl IntoIterator<Item = (&'a str, &'a Array)>) -> Result<Vec<u8>> {
    files::to_bytes(owned(arrays))
}

fn owned<'a>(
    arrays: impl IntoIterator<Item = (&'a str, &'a Array)>,
) -> Vec<(String, mxnet_core::Array)> {
    let arrays = arrays.into_iter();
    (arrays.map(|(name, x)| (name.to_owned(), x.as_ref().clone()))).collect()
}

/// Reads the arrays of a file, in the order in which they are stored.
///
/// # Errors
/// [`crate::Error::Io`] if the file cannot be read, is damaged, or has another format.
pub fn load(path: impl AsRef<Path>) -> Result<Vec<(String, Array)>> {
    let path = path.as_ref();
    Ok(wrapped(files::load(path).map_err(|error| error.at(path))?))
}

/// The arrays of a file whose bytes are given, in the order in which they are stored.
///
/// # Errors
/// [`crate::Error::Io`] if the bytes are damaged or have another format; [`crate::Error::Memory`].
pub fn from_bytes(bytes: &[u8]) -> Result<Vec<(String, Array)>> {
    Ok(wrapped(files::from_bytes(bytes)?))
}

fn wrapped((named, _): files::Loaded) -> Vec<(String, Array)> {
    let named = named.into_iter();
    named.map(|(name, x)| (name, Array::from(x))).collect()
}
