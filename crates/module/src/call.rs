//! Calls of functions of modules: converts tensors and attributes to the C ABI, and statuses to errors.

use std::ffi::{CString, c_char, c_void};
use std::ptr;

use mxnet_core::serialised::value_to_json;
use mxnet_core::{Args, Error, KernelContext, Result, Value};
use mxnet_tensor::{Scalar, Tensor};
use smallvec::SmallVec;

use crate::abi::{
    MX_MODULE_DECLINED, MX_MODULE_DTYPE, MX_MODULE_FAILED, MX_MODULE_OK, MX_MODULE_SHAPE,
    MX_MODULE_VALUE, MX_PARAMETER_BOOL, MX_PARAMETER_INT, MX_PARAMETER_JSON, MX_PARAMETER_NONE,
    MX_PARAMETER_REAL, MX_PARAMETER_TEXT, mx_attribute, mx_kernel, mx_kernel_call, mx_tensor,
};
use crate::stream::Queue;
use crate::text::{self, MESSAGE_BYTES};

/// A pointer that a module gave and gets back. The engine does not use it.
#[derive(Clone, Copy)]
pub struct State(pub *mut c_void);

// SAFETY: the pointer is only passed back to the module, whose functions may be called on any thread according to the ABI.
unsafe impl Send for State {}
// SAFETY: as above.
unsafe impl Sync for State {}

/// The error for a status other than success.
pub fn failure(op: &'static str, status: i32, message: String) -> Error {
    match status {
        MX_MODULE_SHAPE => Error::shape(op, message),
        MX_MODULE_DTYPE => Error::dtype(op, message),
        MX_MODULE_VALUE => Error::value(op, message),
        MX_MODULE_FAILED => Error::unsupported(op, message),
        other => Error::unsupported(op, format!("its module returned status {other}: {message}")),
    }
}

/// The value of an attribute as a C structure. Its text, if it has one, is added to `texts`, which must live as long.
pub fn attribute(value: &Value, texts: &mut Vec<CString>) -> mx_attribute {
    let mut entry = mx_attribute {
        kind: MX_PARAMETER_NONE,
        reserved: 0,
        integer: 0,
        real: 0.0,
        text: ptr::null(),
    };
    // The buffer of a text does not move when the text is moved into the list.
    let mut store = |text: &str| {
        texts.push(CString::new(text).unwrap_or_default());
        texts.last().map_or(ptr::null(), |text| text.as_ptr())
    };
    match value {
        Value::None => {}
        Value::Bool(x) | Value::Scalar(Scalar::Bool(x)) => {
            (entry.kind, entry.integer) = (MX_PARAMETER_BOOL, i64::from(*x));
        }
        Value::Int(x) | Value::Scalar(Scalar::I64(x)) => {
            (entry.kind, entry.integer) = (MX_PARAMETER_INT, *x);
        }
        Value::Float(x) | Value::Scalar(Scalar::F64(x)) => {
            (entry.kind, entry.real) = (MX_PARAMETER_REAL, *x);
        }
        Value::Str(x) => (entry.kind, entry.text) = (MX_PARAMETER_TEXT, store(x)),
        Value::Word(x) => (entry.kind, entry.text) = (MX_PARAMETER_TEXT, store(x)),
        other => (entry.kind, entry.text) = (MX_PARAMETER_JSON, store(&value_to_json(other))),
    }
    entry
}

/// Attributes as C structures. They own the texts.
pub struct Attributes {
    /// The entries.
    pub list: Vec<mx_attribute>,
    _texts: Vec<CString>,
}

impl Attributes {
    /// The attributes of a call.
    pub fn new(args: Args<'_>) -> Attributes {
        let mut texts = Vec::new();
        let values = args.attrs.values().iter();
        let list = values.map(|value| attribute(value, &mut texts)).collect();
        Attributes {
            list,
            _texts: texts,
        }
    }
}

/// A tensor as a C structure; `sizes` owns its shape and strides.
fn tensor(x: &Tensor, sizes: &mut Vec<Box<[i64]>>) -> mx_tensor {
    let numbers = |list: &[usize]| -> Box<[i64]> { list.iter().map(|&n| n as i64).collect() };
    let strides: Box<[i64]> = x.layout().strides().iter().map(|&n| n as i64).collect();
    sizes.push(numbers(x.shape()));
    sizes.push(strides);
    let last = sizes.len();
    mx_tensor {
        data: x.data_ptr().cast(),
        shape: sizes[last - 2].as_ptr(),
        strides: sizes[last - 1].as_ptr(),
        ndim: x.ndim() as i32,
        dtype: i32::from(x.dtype() as u8),
    }
}

const ABSENT: mx_tensor = mx_tensor {
    data: ptr::null_mut(),
    shape: ptr::null(),
    strides: ptr::null(),
    ndim: 0,
    dtype: 0,
};

/// Calls a kernel of a module. Returns `Ok(false)` if the kernel declined the call.
pub fn run_kernel(
    context: &KernelContext,
    kernel: mx_kernel,
    state: State,
    attributes: &[mx_attribute],
) -> Result<bool> {
    let Some(kernel) = kernel else {
        return Err(Error::internal(
            context.op.name,
            "the module gave no kernel",
        ));
    };
    let mut sizes = Vec::new();
    let inputs: SmallVec<[mx_tensor; 4]> = (context.inputs.iter())
        .map(|x| x.map_or(ABSENT, |x| tensor(x, &mut sizes)))
        .collect();
    let outputs: SmallVec<[mx_tensor; 2]> = context
        .outputs
        .iter()
        .map(|y| tensor(y, &mut sizes))
        .collect();
    let name = CString::new(context.op.name).unwrap_or_default();
    let mut written = [0 as c_char; MESSAGE_BYTES];
    let call = mx_kernel_call {
        size: size_of::<mx_kernel_call>(),
        op: name.as_ptr(),
        inputs: inputs.as_ptr(),
        num_inputs: inputs.len(),
        outputs: outputs.as_ptr(),
        num_outputs: outputs.len(),
        attributes: attributes.as_ptr(),
        num_attributes: attributes.len(),
        state: state.0,
        message: written.as_mut_ptr(),
        message_capacity: MESSAGE_BYTES,
        stream: (context.stream).map_or(ptr::null_mut(), |stream| stream.native_handle()),
        numbers: context.numbers,
    };
    if let Some(queue) = context
        .stream
        .and_then(|stream| stream.as_any().downcast_ref::<Queue>())
    {
        queue.set_operator(context.op);
    }
    // SAFETY: the module promises a function of this type; everything in `call` lives until it returns.
    match unsafe { kernel(&raw const call) } {
        MX_MODULE_OK => Ok(true),
        MX_MODULE_DECLINED => Ok(false),
        status => Err(failure(context.op.name, status, text::message(&written))),
    }
}
