//! Recording and gradients.

use std::cell::RefCell;
use std::ffi::c_char;
use std::thread;

use mxnet::core::autograd::{self as tape, GradReq, Retain};
use mxnet::core::mode::{self, Scope};
use mxnet::core::{Array, Error, Result};

use crate::array::give_array;
use crate::foreign::{check_out, give, list, text};
use crate::handles::{self, Object, mx_handle};
use crate::status::guard;

thread_local! {
    /// The open scopes of this thread, the innermost last.
    static SCOPES: RefCell<Vec<(mx_handle, Scope)>> = const { RefCell::new(Vec::new()) };
}

/// Opens a scope in which calls of this thread are recorded (`is_recording` 1) or not (0), in training mode (`is_training` 1) or not (0).
/// `mx_record_end` must end it on the same thread, inner scopes first.
///
/// # Safety
/// `scope` is null or a variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_record_begin(
    is_recording: i32,
    is_training: i32,
    scope: *mut mx_handle,
) -> i32 {
    guard("mx_record_begin", || {
        check_out(scope, "scope")?;
        let handle = handles::add(Object::Scope(thread::current().id()))?;
        let entered = Scope::enter(is_recording != 0, is_training != 0);
        SCOPES.with_borrow_mut(|scopes| scopes.push((handle, entered)));
        // SAFETY: as the caller promises.
        unsafe { give(scope, handle, "scope") }
    })
}

/// Ends a scope: restores recording and training mode.
#[unsafe(no_mangle)]
pub extern "C" fn mx_record_end(scope: mx_handle) -> i32 {
    guard("mx_record_end", || {
        if handles::scope(scope)? != thread::current().id() {
            return Err(Error::value("", "the scope belongs to another thread"));
        }
        let ended = SCOPES.with_borrow_mut(|scopes| {
            let is_innermost = scopes.last().is_some_and(|(handle, _)| *handle == scope);
            is_innermost.then(|| scopes.pop()).flatten()
        });
        match ended {
            Some(_) => handles::remove(scope).map(drop),
            None => Err(Error::value(
                "",
                "a scope inside this one is open: end that first",
            )),
        }
    })
}

/// Gets whether calls of this thread are recorded, and whether it is in training mode (1 or 0).
///
/// # Safety
/// `is_recording` and `is_training` are null or variables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_record_state(is_recording: *mut i32, is_training: *mut i32) -> i32 {
    guard("mx_record_state", || {
        check_out(is_recording, "is_recording")?;
        check_out(is_training, "is_training")?;
        // SAFETY: as the caller promises.
        unsafe {
            give(
                is_recording,
                i32::from(mode::is_recording()),
                "is_recording",
            )?;
            give(is_training, i32::from(mode::is_training()), "is_training")
        }
    })
}

/// Makes the array a variable with a gradient of zeros. `grad_req` is "write", "add" or "null"; a null pointer means "write".
///
/// # Safety
/// `grad_req` is null or a zero-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_mark(array: mx_handle, grad_req: *const c_char) -> i32 {
    guard("mx_mark", || {
        let req = match grad_req.is_null() {
            true => GradReq::Write,
            // SAFETY: not null, and the caller's promise.
            false => match unsafe { text(grad_req, "grad_req")? } {
                "write" => GradReq::Write,
                "add" => GradReq::Add,
                "null" => GradReq::Null,
                other => {
                    let problem = format!("grad_req must be write, add or null, not '{other}'");
                    return Err(Error::value("", problem));
                }
            },
        };
        let mut variable = handles::array(array)?;
        tape::attach_grad(&mut variable, req)?;
        handles::replace_array(array, variable)
    })
}

/// The gradient of a variable: an array to which later backward passes write.
///
/// # Safety
/// `out` is null or a variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_gradient(array: mx_handle, out: *mut mx_handle) -> i32 {
    guard("mx_gradient", || {
        check_out(out, "out")?;
        let Some(leaf) = tape::gradient_of(&handles::array(array)?) else {
            let problem = "the array has no gradient";
            return Err(Error::autograd("", problem).with_hint("mark it with mx_mark first"));
        };
        // SAFETY: as the caller promises.
        unsafe { give_array(out, leaf.gradient()) }
    })
}

/// The arrays of handles; 0 stands for an absent array.
fn arrays(handles: &[mx_handle]) -> Result<Vec<Option<Array>>> {
    let one = |&handle: &mx_handle| match handle {
        0 => Ok(None),
        handle => handles::array(handle).map(Some),
    };
    handles.iter().map(one).collect()
}

/// The arrays of handles; an error if one is 0.
fn all_arrays(handles: &[mx_handle]) -> Result<Vec<Array>> {
    handles
        .iter()
        .map(|&handle| handles::array(handle))
        .collect()
}

/// The cotangents of `len` heads; `None` (ones) where none is given.
///
/// # Safety
/// `grads` is null or points to `len` handles.
unsafe fn head_grads(grads: *const mx_handle, len: usize) -> Result<Vec<Option<Array>>> {
    match grads.is_null() {
        true => Ok(vec![None; len]),
        // SAFETY: not null, and the caller's promise.
        false => arrays(unsafe { list(grads, len, "head_grads")? }),
    }
}

fn retain(keeps: i32) -> Retain {
    match keeps {
        0 => Retain::No,
        _ => Retain::Yes,
    }
}

/// Computes the gradients of the heads with respect to all variables that they were computed from, and stores them there. `head_grads` has one
/// cotangent for each head (0 means ones), or is null for ones everywhere. `retain_graph` 1 keeps the graph for another backward pass.
///
/// # Safety
/// `heads` and `head_grads` are null or point to `len` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_backward(
    heads: *const mx_handle,
    head_grads: *const mx_handle,
    len: usize,
    retain_graph: i32,
) -> i32 {
    guard("mx_backward", || {
        // SAFETY: as the caller promises.
        let heads = all_arrays(unsafe { list(heads, len, "heads")? })?;
        // SAFETY: as the caller promises.
        let given = unsafe { self::head_grads(head_grads, len)? };
        let heads: Vec<&Array> = heads.iter().collect();
        let given: Vec<Option<&Array>> = given.iter().map(Option::as_ref).collect();
        tape::backward(&heads, &given, retain(retain_graph), true)
    })
}

/// The gradients of the heads with respect to `num_variables` variables, as new arrays in `out`, which must be valid for that many handles.
/// `creates_graph` 1 records the backward pass, so that the gradients can be differentiated.
///
/// # Safety
/// The lists are null or point to as many handles as their lengths say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_grad(
    heads: *const mx_handle,
    head_grads: *const mx_handle,
    num_heads: usize,
    variables: *const mx_handle,
    num_variables: usize,
    creates_graph: i32,
    out: *mut mx_handle,
) -> i32 {
    guard("mx_grad", || {
        check_out(out, "out")?;
        // SAFETY: as the caller promises.
        let (heads, variables, given) = unsafe {
            (
                all_arrays(list(heads, num_heads, "heads")?)?,
                all_arrays(list(variables, num_variables, "variables")?)?,
                self::head_grads(head_grads, num_heads)?,
            )
        };
        let heads: Vec<&Array> = heads.iter().collect();
        let variables: Vec<&Array> = variables.iter().collect();
        let given: Vec<Option<&Array>> = given.iter().map(Option::as_ref).collect();
        let is_kept = retain(creates_graph);
        let grads = tape::grad(
            &heads,
            &variables,
            &given,
            is_kept,
            creates_graph != 0,
            true,
        )?;
        for (i, gradient) in grads.into_iter().enumerate() {
            // SAFETY: `out` is valid for one handle for each variable.
            unsafe { give_array(out.add(i), gradient)? };
        }
        Ok(())
    })
}
