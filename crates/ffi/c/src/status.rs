//! The status that calls return, and the description of the thread's last failure.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use mxnet::core::{Error, Result};

use crate::cancel::NoCancellation;
use crate::foreign::fill;

/// Success.
pub const MX_OK: i32 = 0;
/// Shapes that do not fit the operator or each other.
pub const MX_ERROR_SHAPE: i32 = 1;
/// A data type, or a type of argument, that the operator does not accept.
pub const MX_ERROR_DTYPE: i32 = 2;
/// An axis out of range or repeated.
pub const MX_ERROR_AXIS: i32 = 3;
/// An index out of range.
pub const MX_ERROR_INDEX: i32 = 4;
/// An invalid argument: a null pointer, a freed handle, an unknown word.
pub const MX_ERROR_VALUE: i32 = 5;
/// A matrix that does not have the requested factorisation.
pub const MX_ERROR_LINALG: i32 = 6;
/// A number out of range of the data type.
pub const MX_ERROR_OVERFLOW: i32 = 7;
/// A step of zero, or a division into zero parts.
pub const MX_ERROR_ZERO_DIVISION: i32 = 8;
/// Operands on different devices, or a device that does not exist.
pub const MX_ERROR_DEVICE: i32 = 9;
/// Out of memory.
pub const MX_ERROR_MEMORY: i32 = 10;
/// Not supported for these arguments; the message names the alternative.
pub const MX_ERROR_UNSUPPORTED: i32 = 11;
/// An error while reading or writing a file.
pub const MX_ERROR_IO: i32 = 12;
/// The requested gradient does not exist.
pub const MX_ERROR_AUTOGRAD: i32 = 13;
/// A floating-point error, in a thread that is set to raise an error for it.
pub const MX_ERROR_FLOATING_POINT: i32 = 14;
/// The values of an abstract array (without values) were requested.
pub const MX_ERROR_ABSTRACT: i32 = 15;
/// The wait was interrupted.
pub const MX_ERROR_INTERRUPTED: i32 = 16;
/// A broken invariant: please report it.
pub const MX_ERROR_INTERNAL: i32 = 17;

/// Description of a failure. Set `size` to `sizeof(mx_error)`: later versions append fields.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mx_error {
    /// `sizeof(mx_error)` of the caller.
    pub size: usize,
    /// One of `MX_ERROR_…`; `MX_OK` if no call of this thread has failed yet.
    pub status: i32,
    /// Reserved; 0.
    pub reserved: i32,
    /// The operator or function that failed; empty if unknown. Valid until the next failure of this thread.
    pub op: *const c_char,
    /// The whole message: what was found, what is required, and the operands. Valid until the next failure of this thread.
    pub message: *const c_char,
    /// A suggestion that works; empty if there is none. Valid until the next failure of this thread.
    pub hint: *const c_char,
}

struct Last {
    status: i32,
    op: CString,
    message: CString,
    hint: CString,
}

thread_local! {
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
}

fn status_of(error: &Error) -> i32 {
    match error {
        Error::Shape(_) => MX_ERROR_SHAPE,
        Error::DType(_) => MX_ERROR_DTYPE,
        Error::Axis(_) => MX_ERROR_AXIS,
        Error::Index(_) => MX_ERROR_INDEX,
        Error::Value(_) => MX_ERROR_VALUE,
        Error::LinAlg(_) => MX_ERROR_LINALG,
        Error::Overflow(_) => MX_ERROR_OVERFLOW,
        Error::ZeroDivision(_) => MX_ERROR_ZERO_DIVISION,
        Error::Device(_) => MX_ERROR_DEVICE,
        Error::Memory(_) => MX_ERROR_MEMORY,
        Error::Unsupported(_) => MX_ERROR_UNSUPPORTED,
        Error::Io(_) => MX_ERROR_IO,
        Error::Autograd(_) => MX_ERROR_AUTOGRAD,
        Error::FloatingPoint(_) => MX_ERROR_FLOATING_POINT,
        Error::Abstract(_) => MX_ERROR_ABSTRACT,
        Error::Interrupted => MX_ERROR_INTERRUPTED,
        // The error of the queued operation.
        Error::Failed(failure) => {
            let own = failure.error().downcast_ref::<Error>();
            own.map_or(MX_ERROR_INTERNAL, status_of)
        }
        _ => MX_ERROR_INTERNAL,
    }
}

/// Text as a C string; it ends at the first zero byte.
fn c_text(text: &str) -> CString {
    let until_zero = text.split('\0').next().unwrap_or("");
    CString::new(until_zero).unwrap_or_default()
}

fn remember(error: Error) -> i32 {
    let (status, message) = (status_of(&error), c_text(&error.to_string()));
    let fault = error.fault();
    let op = fault.map_or("", |fault| fault.op);
    let hint = fault.and_then(|fault| fault.hint.as_deref());
    let last = Last {
        status,
        op: c_text(op),
        message,
        hint: c_text(hint.unwrap_or("")),
    };
    // A thread that is exiting cannot store the failure; the status is returned nevertheless.
    let _ = LAST.try_with(|kept| kept.replace(Some(last)));
    status
}

/// The error under the name of an ABI function, for a part of it that callers of the ABI do not know.
pub fn named(function: &'static str) -> impl FnOnce(Error) -> Error {
    move |error| error.for_op(function, Vec::new)
}

/// Runs the body of an ABI function; errors and panics become a status.
pub fn guard(function: &'static str, body: impl FnOnce() -> Result<()>) -> i32 {
    let _no_cancellation = NoCancellation::new();
    let body = || {
        // There is no initialisation function, so every call registers the backends. The driver is loaded when a device is first used.
        mxnet::cuda::register()?;
        body()
    };
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => MX_OK,
        Ok(Err(error)) => remember(error.in_op(function)),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            remember(Error::internal(function, text.unwrap_or("panic")))
        }
    }
}

/// Writes the description of the last failure of this thread.
///
/// # Safety
/// `out` is null or points to a structure whose `size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_last_error(out: *mut mx_error) -> i32 {
    const EMPTY: *const c_char = c"".as_ptr();
    let facts = LAST.try_with(|kept| {
        kept.borrow().as_ref().map(|last| mx_error {
            size: 0,
            status: last.status,
            reserved: 0,
            op: last.op.as_ptr(),
            message: last.message.as_ptr(),
            hint: last.hint.as_ptr(),
        })
    });
    let facts = facts.ok().flatten().unwrap_or(mx_error {
        size: 0,
        status: MX_OK,
        reserved: 0,
        op: EMPTY,
        message: EMPTY,
        hint: EMPTY,
    });
    if out.is_null() {
        return MX_ERROR_VALUE;
    }
    // An error about `out` must not replace the last failure.
    // SAFETY: as the caller promises.
    match catch_unwind(|| unsafe { fill(out, facts, "out") }) {
        Ok(Ok(())) => MX_OK,
        _ => MX_ERROR_VALUE,
    }
}
