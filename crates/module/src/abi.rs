//! The C table between the engine and its modules. This file names nothing of the engine: a module in Rust includes it as it is.
//!
//! Structures that may grow begin with their size. `mx_tensor`, `mx_spec`, `mx_attribute` never change.

use std::ffi::{c_char, c_void};

/// The version that this table has. An engine of version N takes modules of the versions N - 2 to N.
pub const MX_MODULE_ABI: u32 = 1;

/// The call did what it should.
pub const MX_MODULE_OK: i32 = 0;
/// Shapes that the operator does not take.
pub const MX_MODULE_SHAPE: i32 = 1;
/// Data types that the operator does not take.
pub const MX_MODULE_DTYPE: i32 = 2;
/// An attribute that has no meaning.
pub const MX_MODULE_VALUE: i32 = 5;
/// Anything else that went wrong.
pub const MX_MODULE_FAILED: i32 = 17;
/// A kernel of an existing operator leaves this call to the next one.
pub const MX_MODULE_DECLINED: i32 = 100;

/// The most axes that an array has in the table.
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
    /// The element at position (0, 0, …).
    pub data: *mut c_void,
    /// `ndim` sizes.
    pub shape: *const i64,
    /// `ndim` strides, in elements.
    pub strides: *const i64,
    /// The number of axes.
    pub ndim: i32,
    /// The data type, by the numbers of `mxnet.h`.
    pub dtype: i32,
}

/// Shape and data type of an array.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mx_spec {
    /// The number of axes.
    pub ndim: i32,
    /// The data type, by the numbers of `mxnet.h`.
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
    /// 0.
    pub reserved: i32,
    /// Integers and truth values.
    pub integer: i64,
    /// Real numbers.
    pub real: f64,
    /// Text.
    pub text: *const c_char,
}

/// What a shape rule is given.
#[repr(C)]
pub struct mx_infer_call {
    /// The size of this structure.
    pub size: usize,
    /// `num_inputs` operands.
    pub inputs: *const mx_spec,
    /// How many.
    pub num_inputs: usize,
    /// `num_attributes` attributes, in the order of the parameters.
    pub attributes: *const mx_attribute,
    /// How many.
    pub num_attributes: usize,
    /// Room for `num_outputs` outputs, which the rule writes.
    pub outputs: *mut mx_spec,
    /// How many.
    pub num_outputs: usize,
    /// The operator's.
    pub state: *mut c_void,
    /// Room for a message, if the rule does not return `MX_MODULE_OK`.
    pub message: *mut c_char,
    /// For how many bytes, the zero byte included.
    pub message_capacity: usize,
}

/// What a kernel is given.
#[repr(C)]
pub struct mx_kernel_call {
    /// The size of this structure.
    pub size: usize,
    /// The operator's name.
    pub op: *const c_char,
    /// `num_inputs` operands, which are only read. An absent one has no `data` and no `shape`.
    pub inputs: *const mx_tensor,
    /// How many.
    pub num_inputs: usize,
    /// `num_outputs` outputs, which the kernel fills.
    pub outputs: *const mx_tensor,
    /// How many.
    pub num_outputs: usize,
    /// Attributes of an operator of a module; an existing operator has none here.
    pub attributes: *const mx_attribute,
    /// How many.
    pub num_attributes: usize,
    /// The operator's, or the kernel's.
    pub state: *mut c_void,
    /// Room for a message, if the kernel does not return `MX_MODULE_OK`.
    pub message: *mut c_char,
    /// For how many bytes, the zero byte included.
    pub message_capacity: usize,
}

/// A shape rule: it looks at shapes, data types and attributes, and at nothing else.
pub type mx_infer = Option<unsafe extern "C" fn(call: *const mx_infer_call) -> i32>;
/// A kernel. It may run on any thread, beside itself.
pub type mx_kernel = Option<unsafe extern "C" fn(call: *const mx_kernel_call) -> i32>;

/// A parameter of an operator that is no array.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mx_parameter {
    /// Its name.
    pub name: *const c_char,
    /// What it is when left out; its kind is what the parameter takes.
    pub value: mx_attribute,
}

/// An operator of a module.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mx_operator {
    /// The size of this structure.
    pub size: usize,
    /// Its name, which no other operator has.
    pub name: *const c_char,
    /// What it does; null for nothing.
    pub doc: *const c_char,
    /// `num_inputs` names of operands.
    pub inputs: *const *const c_char,
    /// How many.
    pub num_inputs: usize,
    /// How many outputs.
    pub num_outputs: usize,
    /// `num_parameters` parameters.
    pub parameters: *const mx_parameter,
    /// How many.
    pub num_parameters: usize,
    /// The shape rule. Null: each output is like the first operand.
    pub infer: mx_infer,
    /// The kernel for the CPU.
    pub kernel: mx_kernel,
    /// The operator that computes the gradients of the operands, with the same parameters, from the outputs' gradients, the operands and the outputs,
    /// in this order. Null: no gradient flows.
    pub gradient: *const c_char,
    /// Handed to the functions.
    pub state: *mut c_void,
}

/// A kernel of an operator that is there already.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mx_kernel_entry {
    /// The size of this structure.
    pub size: usize,
    /// The operator.
    pub op: *const c_char,
    /// The kind of device: "cpu", or one that a module has added.
    pub device: *const c_char,
    /// Kernels of higher priority are asked first; the engine's own has 0.
    pub priority: i32,
    /// 0.
    pub reserved: i32,
    /// The kernel.
    pub kernel: mx_kernel,
    /// Handed to the kernel.
    pub state: *mut c_void,
}

/// A kind of device: memory of its own, and copies. Its work is done when a call returns.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mx_device {
    /// The size of this structure.
    pub size: usize,
    /// The name of the kind.
    pub name: *const c_char,
    /// How many devices there are.
    pub count: usize,
    /// A block of so many bytes, aligned to 64, on device `id`; null if there is none.
    pub allocate:
        Option<unsafe extern "C" fn(state: *mut c_void, id: u32, len_bytes: usize) -> *mut c_void>,
    /// Gives a block back.
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
    /// Copies on the device.
    pub copy: Option<
        unsafe extern "C" fn(
            state: *mut c_void,
            id: u32,
            to: *mut c_void,
            from: *const c_void,
            len_bytes: usize,
        ) -> i32,
    >,
    /// Handed to the functions.
    pub state: *mut c_void,
}

/// What the engine offers a module while it is loaded. What is added counts once `init` has returned `MX_MODULE_OK`; else nothing of it does.
#[repr(C)]
pub struct mx_host {
    /// The size of this structure.
    pub size: usize,
    /// The engine's version of the table.
    pub abi: u32,
    /// 0.
    pub reserved: u32,
    /// Handed to the functions.
    pub context: *mut c_void,
    /// Adds an operator. The structure and what it points to are copied, but for the functions and the state.
    pub add_operator:
        Option<unsafe extern "C" fn(context: *mut c_void, operator: *const mx_operator) -> i32>,
    /// Adds a kernel.
    pub add_kernel:
        Option<unsafe extern "C" fn(context: *mut c_void, kernel: *const mx_kernel_entry) -> i32>,
    /// Adds a kind of device.
    pub add_device:
        Option<unsafe extern "C" fn(context: *mut c_void, device: *const mx_device) -> i32>,
}

/// What a library that is a module answers: it exports `const mx_module *mx_module_entry(void)`.
#[repr(C)]
pub struct mx_module {
    /// The size of this structure.
    pub size: usize,
    /// `MX_MODULE_ABI` of the header that the module was compiled with.
    pub abi: u32,
    /// 0.
    pub reserved: u32,
    /// The module's name.
    pub name: *const c_char,
    /// The module's version.
    pub version: *const c_char,
    /// Adds what the module has. It writes a message if it returns anything but `MX_MODULE_OK`.
    pub init: Option<
        unsafe extern "C" fn(
            host: *const mx_host,
            message: *mut c_char,
            message_capacity: usize,
        ) -> i32,
    >,
}

/// Runs the body of a function of a module in Rust: a panic, which must not leave a module, becomes a status and a message.
///
/// # Safety
/// `message` is null or has room for `capacity` bytes.
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
        // SAFETY: there is room for the text and a zero byte.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), message.cast::<u8>(), len);
            message.add(len).write(0);
        }
    }
    status
}
