//! Calls of registered operators by name. The arguments go to the binder that all languages use.

use std::ffi::c_char;

use mxnet::core::bind::{self, Given};
use mxnet::core::{Array, Error, OpDef, Result, registry};

use crate::array::dtype_of;
use crate::foreign::{check_out, list, size_of_caller, text};
use crate::handles::{self, Object, mx_handle};
use crate::status::guard;

/// Nothing: the parameter is `None`.
pub const MX_ARG_NONE: i32 = 0;
/// A boolean, in `integer`.
pub const MX_ARG_BOOL: i32 = 1;
/// An integer, in `integer`.
pub const MX_ARG_INT: i32 = 2;
/// A real number, in `real`.
pub const MX_ARG_REAL: i32 = 3;
/// A complex number: real and imaginary part, in `reals`.
pub const MX_ARG_COMPLEX: i32 = 4;
/// Text, in `text`: a word, the name of a data type or of a device, an index expression such as "1:3, ..., newaxis".
pub const MX_ARG_TEXT: i32 = 5;
/// `len` texts, in `texts`.
pub const MX_ARG_TEXTS: i32 = 6;
/// `len` integers, in `ints`.
pub const MX_ARG_INTS: i32 = 7;
/// `len` real numbers, in `reals`.
pub const MX_ARG_REALS: i32 = 8;
/// An array, in `array`.
pub const MX_ARG_ARRAY: i32 = 9;
/// `len` arrays, in `arrays`; 0 stands for an absent array.
pub const MX_ARG_ARRAYS: i32 = 10;
/// A data type, in `integer`: one of `MX_BOOL` … `MX_COMPLEX128`.
pub const MX_ARG_DTYPE: i32 = 11;

/// What an argument holds.
#[repr(C)]
#[derive(Clone, Copy)]
pub union mx_value {
    /// `MX_ARG_BOOL`, `MX_ARG_INT`, `MX_ARG_DTYPE`.
    pub integer: i64,
    /// `MX_ARG_REAL`.
    pub real: f64,
    /// `MX_ARG_TEXT`.
    pub text: *const c_char,
    /// `MX_ARG_TEXTS`.
    pub texts: *const *const c_char,
    /// `MX_ARG_INTS`.
    pub ints: *const i64,
    /// `MX_ARG_COMPLEX`, `MX_ARG_REALS`.
    pub reals: *const f64,
    /// `MX_ARG_ARRAY`.
    pub array: mx_handle,
    /// `MX_ARG_ARRAYS`.
    pub arrays: *const mx_handle,
}

/// One argument. Its layout never changes; later versions add kinds.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mx_arg {
    /// The name of the parameter. Null passes the argument by position; positional arguments come before named ones.
    pub name: *const c_char,
    /// One of `MX_ARG_…`.
    pub kind: i32,
    /// Reserved; 0.
    pub reserved: i32,
    /// The number of entries, for kinds with several.
    pub len: usize,
    /// The argument.
    pub value: mx_value,
}

/// Receives the outputs of a call. Set `size` to `sizeof(mx_outputs)`: later versions append fields.
#[repr(C)]
pub struct mx_outputs {
    /// `sizeof(mx_outputs)` of the caller.
    pub size: usize,
    /// Receives the handles.
    pub arrays: *mut mx_handle,
    /// Number of handles that `arrays` is valid for.
    pub capacity: usize,
    /// Set to the number of outputs.
    pub len: usize,
}

/// An argument with the data that it points to, read once.
enum ReadArgument<'a> {
    /// The argument itself holds the value.
    Value(Given<'a>),
    Array(Array),
    Arrays(Vec<Option<Array>>),
    Texts(Vec<&'a str>),
}

/// # Safety
/// The argument holds a value of its kind.
unsafe fn read<'a>(argument: &mx_arg) -> Result<ReadArgument<'a>> {
    let (value, len) = (argument.value, argument.len);
    // SAFETY: the kind tells which field of the union is set; the caller guarantees that its pointer is valid.
    unsafe {
        Ok(match argument.kind {
            MX_ARG_NONE => ReadArgument::Value(Given::None),
            MX_ARG_BOOL => ReadArgument::Value(Given::Bool(value.integer != 0)),
            MX_ARG_INT => ReadArgument::Value(Given::Int(value.integer)),
            MX_ARG_REAL => ReadArgument::Value(Given::Float(value.real)),
            MX_ARG_COMPLEX => match list(value.reals, 2, "reals")? {
                &[re, im] => ReadArgument::Value(Given::Complex(re, im)),
                _ => ReadArgument::Value(Given::None),
            },
            MX_ARG_TEXT => ReadArgument::Value(Given::Text(text(value.text, "text")?)),
            MX_ARG_TEXTS => {
                let texts = list(value.texts, len, "texts")?;
                let texts = texts.iter().map(|&entry| text(entry, "texts"));
                ReadArgument::Texts(texts.collect::<Result<_>>()?)
            }
            MX_ARG_INTS => ReadArgument::Value(Given::Ints(list(value.ints, len, "ints")?)),
            MX_ARG_REALS => ReadArgument::Value(Given::Floats(list(value.reals, len, "reals")?)),
            MX_ARG_ARRAY => ReadArgument::Array(handles::array(value.array)?),
            MX_ARG_ARRAYS => {
                let arrays = list(value.arrays, len, "arrays")?.iter();
                let one = |&handle: &mx_handle| match handle {
                    0 => Ok(None),
                    handle => handles::array(handle).map(Some),
                };
                ReadArgument::Arrays(arrays.map(one).collect::<Result<_>>()?)
            }
            MX_ARG_DTYPE => {
                let number = i32::try_from(value.integer).unwrap_or(-1);
                ReadArgument::Value(Given::DType(dtype_of(number)?))
            }
            other => {
                let problem = format!("there is no kind {other} of arguments");
                return Err(Error::value("", problem));
            }
        })
    }
}

/// The operator of this name, as every language calls it.
pub fn find(name: &str) -> Result<&'static OpDef> {
    registry::find(name).ok_or_else(|| {
        let problem = format!("there is no operator `{name}`");
        Error::value("", problem).with_hint("mx_op_names lists all of them")
    })
}

/// Calls the operator `op` with `nargs` arguments. Outputs are new arrays; arrays given as `out` are written, and their handles are returned.
///
/// # Safety
/// `op` is null or a string; `args` is null or points to `nargs` valid arguments; `out` is null or points to a structure whose `size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_invoke(
    op: *const c_char,
    args: *const mx_arg,
    nargs: usize,
    out: *mut mx_outputs,
) -> i32 {
    guard("mx_invoke", || {
        // SAFETY: as the caller promises.
        let (name, arguments, out) = unsafe {
            (
                text(op, "op")?,
                list(args, nargs, "args")?,
                output_struct(out)?,
            )
        };
        // SAFETY: as the caller promises.
        let made = unsafe { call(find(name)?, arguments)? };
        // SAFETY: as the caller promises.
        unsafe { put(out, name, made)? };
        Ok(())
    })
}

/// The caller's structure for outputs, with `len` set to 0.
///
/// # Safety
/// `out` is null or a structure whose `size` is set, and nobody else uses it meanwhile.
pub(crate) unsafe fn output_struct<'a>(out: *mut mx_outputs) -> Result<&'a mut mx_outputs> {
    // SAFETY: as the caller promises.
    let size = unsafe { size_of_caller(out, "out")? };
    if size < size_of::<mx_outputs>() {
        let (needed, problem) = (size_of::<mx_outputs>(), format!("`out.size` is {size}"));
        return Err(Error::value("", problem).with_hint(format!("set it to {needed}")));
    }
    // SAFETY: not null and large enough, as was checked, and the caller's promise.
    let out = unsafe { &mut *out };
    out.len = 0;
    if out.capacity > 0 {
        check_out(out.arrays, "out.arrays")?;
    }
    Ok(out)
}

/// Writes handles, some of which are new, to the caller's structure. If its capacity is too small, frees the new ones and sets `len` to the number
/// required.
///
/// # Safety
/// `out.arrays` is valid for `out.capacity` handles.
pub(crate) unsafe fn put(
    out: &mut mx_outputs,
    name: &str,
    made: Vec<(mx_handle, bool)>,
) -> Result<()> {
    out.len = made.len();
    if made.len() > out.capacity {
        for (handle, is_new) in made {
            if is_new {
                handles::remove(handle)?;
            }
        }
        let (found, capacity) = (out.len, out.capacity);
        let problem = format!("`{name}` has {found} outputs, but the capacity is {capacity}");
        return Err(Error::value("", problem));
    }
    for (i, (handle, _)) in made.into_iter().enumerate() {
        // SAFETY: `i` is less than `capacity`, the length of `arrays` by the caller's promise.
        unsafe { out.arrays.add(i).write(handle) };
    }
    Ok(())
}

/// Binds the arguments and calls the operator. Returns a handle for each output, and whether it is new.
///
/// # Safety
/// The arguments hold values of their kinds.
unsafe fn call(op: &'static OpDef, arguments: &[mx_arg]) -> Result<Vec<(mx_handle, bool)>> {
    // SAFETY: as the caller promises.
    let held = arguments.iter().map(|argument| unsafe { read(argument) });
    let held: Vec<ReadArgument<'_>> = held.collect::<Result<_>>()?;
    let lists: Vec<Vec<Option<&Array>>> = (held.iter())
        .map(|held| match held {
            ReadArgument::Arrays(arrays) => arrays.iter().map(Option::as_ref).collect(),
            _ => Vec::new(),
        })
        .collect();
    let given: Vec<Given<'_>> = (held.iter().zip(&lists))
        .map(|(held, list)| match held {
            ReadArgument::Value(given) => *given,
            ReadArgument::Array(array) => Given::Array(array),
            ReadArgument::Arrays(_) => Given::Arrays(list),
            ReadArgument::Texts(texts) => Given::Texts(texts),
        })
        .collect();
    let by_position = arguments.iter().take_while(|x| x.name.is_null()).count();
    let (positional, rest) = given.split_at(by_position);
    let mut named = Vec::with_capacity(rest.len());
    let mut out_at = None;
    for (at, (argument, &value)) in arguments.iter().zip(&given).enumerate().skip(by_position) {
        // SAFETY: as the caller promises.
        let name = unsafe {
            text(
                argument.name,
                "name of an argument after the first named one",
            )?
        };
        if name == "out" {
            out_at = Some(at);
        }
        named.push((name, value));
    }
    let outputs = bind::call(op, positional, &named)?;
    // SAFETY: as the caller promises; the argument was read already.
    let targets = match out_at.map(|at| unsafe { out_handles(&arguments[at]) }) {
        Some(targets) => targets?,
        None => Vec::new(),
    };
    let mut made = Vec::with_capacity(outputs.len());
    for (i, output) in outputs.into_iter().enumerate() {
        made.push(match targets.get(i) {
            Some(&handle) if handle != 0 => {
                // A recorded write makes the array the result of a recorded operation; otherwise the array is unchanged (it may be a variable).
                if mxnet::core::mode::is_recording() {
                    handles::replace_array(handle, output)?;
                }
                (handle, false)
            }
            _ => (handles::add(Object::Array(output))?, true),
        });
    }
    Ok(made)
}

/// The handles given for `out`.
///
/// # Safety
/// The argument holds a value of its kind.
unsafe fn out_handles(argument: &mx_arg) -> Result<Vec<mx_handle>> {
    // SAFETY: the kind says which field is set.
    unsafe {
        Ok(match argument.kind {
            MX_ARG_ARRAY => vec![argument.value.array],
            MX_ARG_ARRAYS => list(argument.value.arrays, argument.len, "out")?.to_vec(),
            _ => Vec::new(),
        })
    }
}
