//! What can be wrong with an image.

/// Result of everything in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Faults of image data and of what is asked for.
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
    /// The data make no sense.
    #[error("the {format} image of {len} bytes is damaged: {problem}")]
    Damaged {
        /// Name of the format.
        format: &'static str,
        /// Number of bytes.
        len: usize,
        /// What the decoder says.
        problem: String,
    },
    /// More pixels than one image may have.
    #[error("the image has {height} x {width} pixels, at most {limit} are read")]
    TooLarge {
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
        /// Most pixels.
        limit: usize,
    },
    /// A size, a rectangle or a number of channels that does not fit.
    #[error("{0}")]
    Value(String),
}
