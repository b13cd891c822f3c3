//! Memory whose size depends on the image: an error if there is not enough, where `vec!` would end the process.

use std::io::{self, Write};

use crate::error::{Error, Result};

/// Reserves space for `more` elements.
fn reserve<T>(to: &mut Vec<T>, more: usize) -> Result<()> {
    to.try_reserve_exact(more).map_err(|_| Error::Memory {
        bytes: more.saturating_mul(size_of::<T>()),
    })
}

/// An empty vector with room for `len` elements.
pub(crate) fn with_capacity<T>(len: usize) -> Result<Vec<T>> {
    let mut all = Vec::new();
    reserve(&mut all, len)?;
    Ok(all)
}

/// The values of `of`, which are `len`.
pub(crate) fn collected<T>(len: usize, of: impl IntoIterator<Item = T>) -> Result<Vec<T>> {
    let mut all = with_capacity(len)?;
    all.extend(of);
    Ok(all)
}

/// As `vec![0; len]`.
pub(crate) fn zeros(len: usize) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    resize(&mut all, len)?;
    Ok(all)
}

/// As `to.resize(len, 0)`.
pub(crate) fn resize(to: &mut Vec<u8>, len: usize) -> Result<()> {
    reserve(to, len.saturating_sub(to.len()))?;
    to.resize(len, 0);
    Ok(())
}

/// Checks that `bytes` bytes can be allocated, for libraries that end the process if they cannot.
pub(crate) fn check_available(bytes: usize) -> Result<()> {
    let mut all = Vec::<u8>::new();
    reserve(&mut all, bytes)?;
    // An allocation that nobody uses may be optimised away.
    std::hint::black_box(&all);
    Ok(())
}

/// A file in memory that grows while it is written.
#[derive(Default)]
pub(crate) struct File {
    bytes: Vec<u8>,
    /// Size that could not be allocated.
    refused: usize,
}

impl File {
    /// The error of a failed write: writes fail for lack of memory only.
    pub(crate) fn error(&self) -> Error {
        Error::Memory {
            bytes: self.refused,
        }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.try_reserve(bytes.len()).is_err() {
            self.refused = self.bytes.len() + bytes.len();
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
