//! Graph passes of modules. They are registered like those that programs write ([`mxnet_graph::passes::register`]).

use std::ffi::c_char;
use std::sync::Arc;

use mxnet_core::{Error, Result};
use mxnet_graph::Graph;
use mxnet_graph::passes::{self, Runs};

use crate::abi::{MX_MODULE_OK, mx_pass, mx_pass_call};
use crate::call::{State, failure};
use crate::session::Session;
use crate::text::{self, MESSAGE_BYTES};

/// A checked copy of a module's description of a pass.
#[derive(Clone, Copy)]
pub struct Description {
    /// Its name.
    pub name: &'static str,
    runs: Runs,
    run: unsafe extern "C" fn(*const mx_pass_call) -> i32,
    state: State,
}

/// Reads a structure that begins with its size.
///
/// # Safety
/// `given` is null or points to a structure that begins with its size.
pub unsafe fn sized<T: Copy>(given: *const T, what: &str) -> Result<T> {
    let wrong = |problem: String| Error::value("load", problem);
    if given.is_null() || !given.is_aligned() {
        return Err(wrong(format!("the {what} is null")));
    }
    // SAFETY: not null, and the caller's promise. The first word is the size.
    let size = unsafe { given.cast::<usize>().read() };
    if size < size_of::<T>() {
        let needed = size_of::<T>();
        return Err(wrong(format!(
            "the {what}'s structure has {size} bytes, at least {needed} are needed"
        )));
    }
    // SAFETY: the structure has at least the size that is read.
    Ok(unsafe { given.read() })
}

/// A name that no other pass has.
///
/// # Errors
/// [`Error::Value`] if it is empty or taken.
///
/// # Safety
/// `name` is null or a text.
pub unsafe fn new_name(name: *const c_char, what: &str) -> Result<&'static str> {
    // SAFETY: the caller's promise.
    let name = unsafe { text::copied(name, &format!("name of the {what}"))? };
    let is_own = name == "fuse" || passes::PASSES.iter().any(|(known, _)| *known == name);
    if name.is_empty() || is_own || passes::registered().iter().any(|(known, _)| known == name) {
        let problem = format!("{what} `{name}`: the name is empty or another pass has it");
        return Err(Error::value("load", problem));
    }
    Ok(name)
}

/// Checks and copies the description of a pass.
///
/// # Safety
/// `given` is null or points to a structure whose pointers are null or valid.
pub unsafe fn describe(given: *const mx_pass) -> Result<Description> {
    // SAFETY: the caller's promise.
    let (given, name) = unsafe {
        let given = sized(given, "pass")?;
        (given, new_name(given.name, "pass")?)
    };
    let wrong = |problem: &str| Error::value("load", format!("pass `{name}`: {problem}"));
    Ok(Description {
        name,
        runs: match given.always {
            0 => Runs::Chosen,
            1 => Runs::Always,
            _ => return Err(wrong("`always` must be 0 or 1")),
        },
        run: given.run.ok_or_else(|| wrong("it has no `run`"))?,
        state: State(given.state),
    })
}

/// The error of a function that did not return success. If it wrote no message, that of the engine's function which failed last.
pub fn refused(
    label: &'static str,
    status: i32,
    written: &[c_char; MESSAGE_BYTES],
    session: &mut Session,
) -> Error {
    match session.take_error().filter(|_| written[0] == 0) {
        Some(error) => failure(label, status, error.to_string()),
        None => failure(label, status, text::message(written)),
    }
}

/// Registers a pass.
///
/// # Errors
/// [`Error::Value`] if the name is taken.
pub fn add(module: &'static str, described: Description) -> Result<()> {
    let Description {
        name,
        runs,
        run,
        state,
    } = described;
    let label: &'static str = format!("pass `{name}` of the module `{module}`").leak();
    let pass = move |graph: &mut Graph| {
        // The whole `State`, which may be sent to other threads.
        let state = &state;
        let mut session = Session::new(graph.clone(), false);
        let mut written = [0 as c_char; MESSAGE_BYTES];
        let status = session.with_table(|graph| {
            let call = mx_pass_call {
                size: size_of::<mx_pass_call>(),
                graph,
                state: state.0,
                message: written.as_mut_ptr(),
                message_capacity: MESSAGE_BYTES,
            };
            // SAFETY: the module promises a function of this type; everything in `call` lives until it returns.
            unsafe { run(&raw const call) }
        });
        if status != MX_MODULE_OK {
            return Err(refused(label, status, &written, &mut session));
        }
        *graph = session.finish();
        Ok(())
    };
    passes::register_from("load", name, runs, Some(module), Arc::new(pass))
}
