//! Who multiplies matrices: the built-in kernels, or a library that is opened while the program runs. The setting `blas` chooses; the crate that can
//! open libraries is named by [`OPENERS`], as this crate knows none.

use linkme::distributed_slice;
use parking_lot::Mutex;

use crate::error::{Error, Result};

/// The values of the setting `blas`.
pub const CHOICES: &[&str] = &["builtin", "openblas", "onednn", "auto"];

/// Functions that make one of [`CHOICES`] compute the products that follow; the linker collects them, the first one counts.
#[distributed_slice]
pub static OPENERS: [fn(&'static str) -> Result<()>];

static CHOICE: Mutex<&str> = Mutex::new("builtin");

/// The value of the setting.
pub(crate) fn choice() -> &'static str {
    *CHOICE.lock()
}

/// Chooses who computes products from now on. What was chosen before stays if this fails.
///
/// # Errors
/// [`Error::Unsupported`] if the library is not on this machine, has not what is needed, or this program cannot open libraries.
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
