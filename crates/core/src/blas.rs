//! The implementation of matrix products: the built-in kernels, or a library that is opened at run time. The setting `blas` selects it. This crate
//! cannot open libraries: a crate that can registers a function in [`OPENERS`].

use linkme::distributed_slice;
use parking_lot::Mutex;

use crate::error::{Error, Result};

/// The values of the setting `blas`.
pub const CHOICES: &[&str] = &["builtin", "openblas", "onednn", "auto"];

/// Functions that select the implementation of all following products, one of [`CHOICES`]. The linker collects them; the first one is used.
#[distributed_slice]
pub static OPENERS: [fn(&'static str) -> Result<()>];

static CHOICE: Mutex<&str> = Mutex::new("builtin");

/// The value of the setting.
pub(crate) fn choice() -> &'static str {
    *CHOICE.lock()
}

/// Selects the implementation of all following products. The previous choice stays if this fails.
///
/// # Errors
/// [`Error::Unsupported`] if the library is not on this machine or lacks a function, or if this program cannot open libraries.
pub(crate) fn choose(choice: &'static str) -> Result<()> {
    let mut chosen = CHOICE.lock();
    match OPENERS.first() {
        Some(open) => open(choice)?,
        None if matches!(choice, "builtin" | "auto") => {}
        None => {
            let problem = format!("`blas` cannot be '{choice}': this program has no modules");
            return Err(Error::unsupported("config", problem)
                .with_hint("build the crate `mxnet` with its feature `module`"));
        }
    }
    *chosen = choice;
    Ok(())
}
