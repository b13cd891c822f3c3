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
    let named = arrays
        .into_iter()
        .map(|(name, x)| (name.to_owned(), x.as_ref().clone()));
    files::save(path, named.collect(), None).map_err(|error| error.at(path))
}

/// Reads the arrays of a file, in the order in which they are stored.
///
/// # Errors
/// [`crate::Error::Io`] if the file cannot be read, is damaged, or has another format.
pub fn load(path: impl AsRef<Path>) -> Result<Vec<(String, Array)>> {
    let path = path.as_ref();
    let (named, _) = files::load(path).map_err(|error| error.at(path))?;
    let wrapped = named.into_iter().map(|(name, x)| (name, Array::from(x)));
    Ok(wrapped.collect())
}
