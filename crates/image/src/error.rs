//! Errors of images.

/// Result of everything in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Errors of image data and of arguments.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Neither JPEG nor PNG.
    #[error("{len} bytes are neither a JPEG nor a PNG image")]
    Format {
        /// Number of bytes.
        len: usize,
    },
    /// The data end too early.
    #[error("the {format} image is truncated after {len} bytes")]
    Truncated {
        /// Name of the format.
        format: &'static str,
        /// Number of bytes.
        len: usize,
    },
    /// The data are invalid.
    #[error("the {format} image of {len} bytes is damaged: {problem}")]
    Damaged {
        /// Name of the format.
        format: &'static str,
        /// Number of bytes.
        len: usize,
        /// Message of the decoder.
        problem: String,
    },
    /// Too many pixels.
    #[error("the image has {height} x {width} pixels, at most {limit} are read")]
    TooLarge {
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
        /// Largest number of pixels.
        limit: usize,
    },
    /// Not enough memory.
    #[error("cannot allocate {bytes} bytes")]
    Memory {
        /// Number of bytes.
        bytes: usize,
    },
    /// An invalid size, rectangle or number of channels.
    #[error("{0}")]
    Value(String),
}
