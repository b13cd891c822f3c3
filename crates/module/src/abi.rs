//! The C ABI between the engine and its modules. This file uses nothing of the engine: a module in Rust includes it unchanged.
//!
//! Structures that may grow begin with their size. `mx_tensor`, `mx_spec` and `mx_attribute` never change.

use std::ffi::{c_char, c_void};

/// Version of this ABI. An engine of version N loads modules of the versions N - 2 to N.
pub const MX_MODULE_ABI: u32 = 1;

/// The call succeeded.
pub const MX_MODULE_OK: i32 = 0;
/// The operator does not accept these shapes.
pub const MX_MODULE_SHAPE: i32 = 1;
/// The operator does not accept these data types.
pub const MX_MODULE_DTYPE: i32 = 2;
/// The operator does not accept this value of an attribute.
pub const MX_MODULE_VALUE: i32 = 5;
/// Any other error.
pub const MX_MODULE_FAILED: i32 = 17;
/// A kernel of an existing operator declines this call; the next kernel gets it.
pub const MX_MODULE_DECLINED: i32 = 100;

/// Largest number of axes of an array.
pub const MX_MODULE_MAX_NDIM: usize = 16;

/// An integer attribute.
pub const MX_PARAMETER_INT: i32 = 2;
/// A truth value, in `integer`.
pub const MX_PARAMETER_BOOL: i32 = 1;
/// A real number.
pub const MX_PARAMETER_REAL: i32 = 3;
/// Text.
pub const MX_PARAMETER_TEXT: i32 = 5;

/// An array in memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mx_tensor {
    /// Address of element (0, 0, ...).
    pub data: *mut c_void,
    /// `ndim` sizes.
    pub shape: *const i64,
    /// `ndim` strides, in elements.
    pub strides: *const i64,
    /// The number of axes.
    pub ndim: i32,
    /// The data type, as numbered in `mxnet.h`.
    pub dtype: i32,
}

/// Shape and data type of an array.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mx_spec {
    /// The number of axes.
    pub ndim: i32,
    /// The data type, as numbered in `mxnet.h`.
    pub dtype: i32,
    /// The sizes.
    pub shape: [i64; MX_MODULE_MAX_NDIM],
}

/// The value of an attribute.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mx_attribute {
    /// One of `MX_PARAMETER_…`.
    pub kind: i32,
    /// Must be 0.
    pub reserved: i32,
    /// Value of an integer or a boolean.
    pub integer: i64,
    /// Value of a real number.
    pub real: f64,
    /// Value of a text.
    pub text: *const c_char,
}

/// Argument of a shape rule.
#[repr(C)]
pub struct mx_infer_call {
    /// The size of this structure.
    pub size: usize,
    /// `num_inputs` operands.
    pub inputs: *const mx_spec,
    /// Number of operands.
    pub num_inputs: usize,
    /// `num_attributes` attributes, in the order of the parameters.
    pub attributes: *const mx_attribute,
    /// Number of attributes.
    pub num_attributes: usize,
    /// Array of `num_outputs` outputs, which the rule writes.
    pub outputs: *mut mx_spec,
    /// Number of outputs.
    pub num_outputs: usize,
    /// The operator's `state`.
    pub state: *mut c_void,
    /// Buffer for a message, if the rule does not return `MX_MODULE_OK`.
    pub message: *mut c_char,
    /// Size of the buffer in bytes, including the terminating zero.
    pub message_capacity: usize,
}

/// Argument of a kernel.
#[repr(C)]
pub struct mx_kernel_call {
    /// The size of this structure.
    pub size: usize,
    /// The operator's name.
    pub op: *const c_char,
    /// `num_inputs` operands, which must not be written. An absent one has null `data` and `shape`.
    pub inputs: *const mx_tensor,
    /// Number of operands.
    pub num_inputs: usize,
    /// `num_outputs` outputs, which the kernel fills.
    pub outputs: *const mx_tensor,
    /// Number of outputs.
    pub num_outputs: usize,
    /// Attributes of an operator that a module defines; none for existing operators.
    pub attributes: *const mx_attribute,
    /// Number of attributes.
    pub num_attributes: usize,
    /// The `state` of the operator or the kernel.
    pub state: *mut c_void,
    /// Buffer for a message, if the kernel does not return `MX_MODULE_OK`.
    pub message: *mut c_char,
    /// Size of the buffer in bytes, including the terminating zero.
    pub message_capacity: usize,
}

/// A shape rule. It must depend on shapes, data types and attributes only.
pub type mx_infer = Option<unsafe extern "C" fn(call: *const mx_infer_call) -> i32>;
/// A kernel. It may be called on any thread, and on several threads at once.
pub type mx_kernel = Option<unsafe extern "C" fn(call: *const mx_kernel_call) -> i32>;

/// A parameter of an operator that is not an array.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mx_parameter {
    /// Its name.
    pub name: *const c_char,
    /// Default. Its kind is the kind of the parameter.
    pub value: mx_attribute,
}

/// An operator that a module defines.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mx_operator {
    /// The size of this structure.
    pub size: usize,
    /// Its name, which must be new.
    pub name: *const c_char,
    /// Documentation; may be null.
    pub doc: *const c_char,
    /// `num_inputs` names of operands.
    pub inputs: *const *const c_char,
    /// Number of operands.
    pub num_inputs: usize,
    /// Number of outputs.
    pub num_outputs: usize,
    /// `num_parameters` parameters.
    pub parameters: *const mx_parameter,
    /// Number of parameters.
    pub num_parameters: usize,
    /// The shape rule. Null: each output has the shape and dtype of the first operand.
    pub infer: mx_infer,
    /// The kernel for the CPU.
    pub kernel: mx_kernel,
    /// Name of the operator that computes the gradients of the operands, with the same parameters, from the gradients of the outputs, the operands
    /// and the outputs, in this order. Null: no gradient flows.
    pub gradient: *const c_char,
    /// Passed to the functions.
    pub state: *mut c_void,
}

/// A kernel of an existing operator.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mx_kernel_entry {
    /// The size of this structure.
    pub size: usize,
    /// The operator.
    pub op: *const c_char,
    /// The kind of device: "cpu", or a kind that a module has added.
    pub device: *const c_char,
    /// Kernels of higher priority are tried first. The engine's own kernel has priority 0.
    pub priority: i32,
    /// Must be 0.
    pub reserved: i32,
    /// The kernel.
    pub kernel: mx_kernel,
    /// Passed to the kernel.
    pub state: *mut c_void,
}

/// A kind of device: its memory and copies. All work must be done when a call returns.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mx_device {
    /// The size of this structure.
    pub size: usize,
    /// Name of the kind.
    pub name: *const c_char,
    /// Number of devices.
    pub count: usize,
    /// Allocates `len_bytes` bytes, aligned to 64, on device `id`. Returns null on failure.
    pub allocate:
        Option<unsafe extern "C" fn(state: *mut c_void, id: u32, len_bytes: usize) -> *mut c_void>,
    /// Frees a block.
    pub free: Option<
        unsafe extern "C" fn(state: *mut c_void, id: u32, block: *mut c_void, len_bytes: usize),
    >,
    /// Copies from main memory to the device.
    pub upload: Option<
        unsafe extern "C" fn(
            state: *mut c_void,
            id: u32,
            to: *mut c_void,
            from: *const c_void,
            len_bytes: usize,
        ) -> i32,
    >,
    /// Copies from the device to main memory.
    pub download: Option<
        unsafe extern "C" fn(
            state: *mut c_void,
            id: u32,
            to: *mut c_void,
            from: *const c_void,
            len_bytes: usize,
        ) -> i32,
    >,
    /// Copies between two blocks of the device.
    pub copy: Option<
        unsafe extern "C" fn(
            state: *mut c_void,
            id: u32,
            to: *mut c_void,
            from: *const c_void,
            len_bytes: usize,
        ) -> i32,
    >,
    /// Passed to the functions.
    pub state: *mut c_void,
}

/// What the engine offers a module while it is loaded. What a module adds takes effect when `init` returns `MX_MODULE_OK`; on an error nothing is
/// added.
#[repr(C)]
pub struct mx_host {
    /// The size of this structure.
    pub size: usize,
    /// The engine's version of this ABI.
    pub abi: u32,
    /// Always 0.
    pub reserved: u32,
    /// Passed to the functions.
    pub context: *mut c_void,
    /// Adds an operator. The structure and everything that it points to is copied, except the functions and the state.
    pub add_operator:
        Option<unsafe extern "C" fn(context: *mut c_void, operator: *const mx_operator) -> i32>,
    /// Adds a kernel.
    pub add_kernel:
        Option<unsafe extern "C" fn(context: *mut c_void, kernel: *const mx_kernel_entry) -> i32>,
    /// Adds a kind of device.
    pub add_device:
        Option<unsafe extern "C" fn(context: *mut c_void, device: *const mx_device) -> i32>,
}

/// Description of a module. Its library exports `const mx_module *mx_module_entry(void)`.
#[repr(C)]
pub struct mx_module {
    /// The size of this structure.
    pub size: usize,
    /// `MX_MODULE_ABI` of the header that the module was compiled with.
    pub abi: u32,
    /// Must be 0.
    pub reserved: u32,
    /// The module's name.
    pub name: *const c_char,
    /// The module's version.
    pub version: *const c_char,
    /// Adds operators, kernels and devices. It writes a message if it does not return `MX_MODULE_OK`.
    pub init: Option<
        unsafe extern "C" fn(
            host: *const mx_host,
            message: *mut c_char,
            message_capacity: usize,
        ) -> i32,
    >,
}

/// For modules in Rust: runs the body of a function and converts a panic, which must not unwind into the engine, to a status and a message.
///
/// # Safety
/// `message` is null or a buffer of `capacity` bytes.
#[allow(dead_code, reason = "modules call it, the engine does not")]
pub unsafe fn guarded(
    message: *mut c_char,
    capacity: usize,
    body: impl FnOnce() -> Result<(), (i32, String)>,
) -> i32 {
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
    let (status, text) = match result {
        Ok(Ok(())) => return MX_MODULE_OK,
        Ok(Err(failure)) => failure,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            (
                MX_MODULE_FAILED,
                format!("panicked: {}", text.unwrap_or("no message")),
            )
        }
    };
    if !message.is_null() && capacity > 0 {
        let len = text.len().min(capacity - 1);
        // SAFETY: the buffer has space for the text and a zero byte.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), message.cast::<u8>(), len);
            message.add(len).write(0);
        }
    }
    status
}
