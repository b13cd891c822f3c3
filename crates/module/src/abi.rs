//! The C ABI between the engine and its modules. This file uses nothing of the engine: a module in Rust includes it unchanged.
//!
//! Structures that may grow begin with their size. `mx_tensor`, `mx_spec` and `mx_attribute` never change.

use std::ffi::{c_char, c_void};

/// Version of this ABI. An engine of version N loads modules of the versions N - 2 to N.
pub const MX_MODULE_ABI: u32 = 3;

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
/// A kernel of an existing operator declines this call; the next kernel gets it. A partitioner leaves a node, or a part, to the engine.
pub const MX_MODULE_DECLINED: i32 = 100;
/// The work before an event of a stream has not ended yet. Since version 3.
pub const MX_MODULE_PENDING: i32 = 101;

/// Largest number of axes of an array.
pub const MX_MODULE_MAX_NDIM: usize = 16;

/// No value.
pub const MX_PARAMETER_NONE: i32 = 0;
/// An integer attribute.
pub const MX_PARAMETER_INT: i32 = 2;
/// A truth value, in `integer`.
pub const MX_PARAMETER_BOOL: i32 = 1;
/// A real number.
pub const MX_PARAMETER_REAL: i32 = 3;
/// Text.
pub const MX_PARAMETER_TEXT: i32 = 5;
/// For attributes of operators of the engine: a value of another kind, in `text`, as files of graphs write it: `[0, 1]`, `{"dtype": "float32"}`.
pub const MX_PARAMETER_JSON: i32 = 6;

/// An operand that was not given.
pub const MX_OPERAND_NONE: i32 = 0;
/// An array: a value of the graph.
pub const MX_OPERAND_VALUE: i32 = 1;
/// A truth value, in `integer`.
pub const MX_OPERAND_BOOL: i32 = 2;
/// An integer.
pub const MX_OPERAND_INT: i32 = 3;
/// A real number.
pub const MX_OPERAND_REAL: i32 = 4;
/// A number of another kind, which can be copied to another node but not read.
pub const MX_OPERAND_OTHER: i32 = 5;

/// The node changes a part of a buffer: it cannot be replaced, moved or taken by a partitioner.
pub const MX_NODE_WRITES: u32 = 1;
/// The node draws random numbers.
pub const MX_NODE_DRAWS: u32 = 2;
/// A partitioner can take the node.
pub const MX_NODE_CAN_BE_TAKEN: u32 = 4;

/// Calls of the node must be made as often as the program makes them (`MX_OPERATOR_IMPURE`). Since version 3.
pub const MX_NODE_IMPURE: u32 = 8;

/// Calls of the operator differ although operands and attributes are equal, or change more than their outputs: it has state, draws random numbers of
/// its own, or writes to a file. Each call of the program is made once: graphs do not merge it with another, leave it out, repeat it or make it
/// earlier, and partitioners cannot take it. Calls that do not depend on each other are made in any order, or at once.
pub const MX_OPERATOR_IMPURE: u32 = 1;

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
    /// The attributes, in the order of the operator's parameters that are no arrays.
    pub attributes: *const mx_attribute,
    /// Number of attributes.
    pub num_attributes: usize,
    /// The `state` of the operator or the kernel.
    pub state: *mut c_void,
    /// Buffer for a message, if the kernel does not return `MX_MODULE_OK`.
    pub message: *mut c_char,
    /// Size of the buffer in bytes, including the terminating zero.
    pub message_capacity: usize,
    /// The stream on which the kernel enqueues its work without waiting for it: on a GPU a `CUstream`, whose context is current; on a device of a module
    /// that has streams, what its `make_stream` gave. Otherwise null. This structure is gone when the kernel returns, the arrays live until the work is
    /// done. Since version 3.
    pub stream: *mut c_void,
    /// Bit `i` says that operand `i` is a number: its element is in main memory and gone when the kernel returns. Always 0 on the CPU. Since version 3.
    pub numbers: u64,
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
    /// `MX_OPERATOR_…`, added. Since version 3.
    pub flags: u32,
    /// Must be 0. Since version 3.
    pub reserved: u32,
}

/// A kernel of an existing operator, or of one that the module has added.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mx_kernel_entry {
    /// The size of this structure.
    pub size: usize,
    /// The operator.
    pub op: *const c_char,
    /// The kind of device: "cpu", "gpu", or a kind that a module has added.
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

/// Copies bytes on device `id`; the copy is done when this returns. A status other than `MX_MODULE_OK` is a failure.
pub type mx_copy = Option<
    unsafe extern "C" fn(
        state: *mut c_void,
        id: u32,
        to: *mut c_void,
        from: *const c_void,
        len_bytes: usize,
    ) -> i32,
>;

/// Enqueues a copy of bytes in a stream; the status is that of enqueuing it.
pub type mx_enqueue_copy = Option<
    unsafe extern "C" fn(
        state: *mut c_void,
        stream: *mut c_void,
        to: *mut c_void,
        from: *const c_void,
        len_bytes: usize,
    ) -> i32,
>;

/// A kind of device: its memory, copies, and streams if it has them. The functions may be called on any thread, and on several threads at once; a
/// stream is used by one thread at a time.
///
/// Without streams the work of kernels and copies must be done when a call returns. With streams it is enqueued: the engine gives kernels a stream,
/// records an event after each operation, and makes streams wait for events of others where arrays are used by both. Either all functions from
/// `make_stream` on are there, or none. Work in a stream must not need the program, for instance the lock of Python's interpreter: a thread that has
/// it may wait for the work.
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
    /// Frees a block. No work that uses it is pending.
    pub free: Option<
        unsafe extern "C" fn(state: *mut c_void, id: u32, block: *mut c_void, len_bytes: usize),
    >,
    /// Copies from main memory to the device. No work that uses the bytes is pending, and the copy is done when this returns.
    pub upload: mx_copy,
    /// Copies from the device to main memory, likewise.
    pub download: mx_copy,
    /// Copies between two blocks of the device, likewise.
    pub copy: mx_copy,
    /// Passed to the functions.
    pub state: *mut c_void,
    /// Makes a stream on device `id`: a queue of work that runs in order. It lives until the process ends, and serves another thread when the first
    /// one has ended. Returns null on failure. This and what follows since version 3.
    pub make_stream: Option<unsafe extern "C" fn(state: *mut c_void, id: u32) -> *mut c_void>,
    /// Enqueues a copy from main memory to the device. The bytes live, and nobody writes them, until the copy is done.
    pub enqueue_upload: mx_enqueue_copy,
    /// Enqueues a copy from the device to main memory, likewise.
    pub enqueue_download: mx_enqueue_copy,
    /// Enqueues a copy between two blocks of the device, likewise.
    pub enqueue_copy: mx_enqueue_copy,
    /// Makes an event after all work that is in the stream now. Returns null on failure.
    pub record_event:
        Option<unsafe extern "C" fn(state: *mut c_void, stream: *mut c_void) -> *mut c_void>,
    /// Makes work that is enqueued later wait for an event of another stream, which may be on another device of the kind. This returns at once.
    pub stream_wait: Option<
        unsafe extern "C" fn(state: *mut c_void, stream: *mut c_void, event: *mut c_void) -> i32,
    >,
    /// Whether the work before an event has ended, successfully or not: `MX_MODULE_OK` or, at once, `MX_MODULE_PENDING`. Another status is an error: the
    /// engine takes the work as ended, and as failed.
    pub query_event: Option<unsafe extern "C" fn(state: *mut c_void, event: *mut c_void) -> i32>,
    /// Blocks until the work before an event has ended. `MX_MODULE_OK` if all work between the event before it in its stream and this one has succeeded,
    /// otherwise the status of the first that failed, with a message. Work of other operations goes on; if it uses results of what failed, the engine
    /// discards its results. It may be called several times, also at once.
    pub wait_event: Option<
        unsafe extern "C" fn(
            state: *mut c_void,
            event: *mut c_void,
            message: *mut c_char,
            message_capacity: usize,
        ) -> i32,
    >,
    /// Frees an event; its work may be pending still, and streams may still have to wait for it.
    pub free_event: Option<unsafe extern "C" fn(state: *mut c_void, event: *mut c_void)>,
}

/// A node of a graph: a number from 0, or -1 for none. It stays the same while a pass runs.
pub type mx_node = i64;
/// A value of a graph, that is an array which nodes read or make: a number from 0, or -1 for none.
pub type mx_value = i64;

/// An operand of a node.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mx_operand {
    /// One of `MX_OPERAND_…`.
    pub kind: i32,
    /// Of a number that has one: its data type, as numbered in `mxnet.h`. -1: the number takes the type of the other operands.
    pub dtype: i32,
    /// The value, if it is one. For `MX_OPERAND_OTHER`: a number by which the engine knows it.
    pub value: mx_value,
    /// Value of an integer or a boolean.
    pub integer: i64,
    /// Value of a real number.
    pub real: f64,
}

/// A call of an operator that becomes a node.
#[repr(C)]
pub struct mx_call {
    /// The size of this structure.
    pub size: usize,
    /// Name of the operator.
    pub op: *const c_char,
    /// `num_inputs` operands.
    pub inputs: *const mx_operand,
    /// Number of operands.
    pub num_inputs: usize,
    /// `num_attributes` names.
    pub names: *const *const c_char,
    /// `num_attributes` values. Attributes that are missing have their defaults.
    pub attributes: *const mx_attribute,
    /// Number of attributes.
    pub num_attributes: usize,
}

/// A graph, as a pass or a partitioner sees it. The functions may be called until the pass returns, on its thread. Numbers of nodes or values that
/// do not exist give -1, 0, null or a status, and change nothing. Texts are valid until the pass returns.
#[repr(C)]
pub struct mx_graph {
    /// The size of this structure.
    pub size: usize,
    /// Passed to the functions.
    pub context: *mut c_void,
    /// The number of nodes.
    pub num_nodes: Option<unsafe extern "C" fn(context: *mut c_void) -> usize>,
    /// The node at a position: each is behind those whose outputs it reads.
    pub node_at: Option<unsafe extern "C" fn(context: *mut c_void, position: usize) -> mx_node>,
    /// The name of a node's operator.
    pub op: Option<unsafe extern "C" fn(context: *mut c_void, node: mx_node) -> *const c_char>,
    /// `MX_NODE_…`, added.
    pub flags: Option<unsafe extern "C" fn(context: *mut c_void, node: mx_node) -> u32>,
    /// The number of operands of a node.
    pub num_inputs: Option<unsafe extern "C" fn(context: *mut c_void, node: mx_node) -> usize>,
    /// Operand `index` of a node.
    pub input: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            node: mx_node,
            index: usize,
            operand: *mut mx_operand,
        ) -> i32,
    >,
    /// The number of outputs of a node.
    pub num_outputs: Option<unsafe extern "C" fn(context: *mut c_void, node: mx_node) -> usize>,
    /// Output `index` of a node.
    pub output:
        Option<unsafe extern "C" fn(context: *mut c_void, node: mx_node, index: usize) -> mx_value>,
    /// An attribute of a node by its name. `MX_MODULE_VALUE` if its operator has none of this name.
    pub attribute: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            node: mx_node,
            name: *const c_char,
            attribute: *mut mx_attribute,
        ) -> i32,
    >,
    /// The number of inputs of the graph. All inputs of a part are arguments, in the order in which it is run with them.
    pub num_arguments: Option<unsafe extern "C" fn(context: *mut c_void) -> usize>,
    /// Input `index` of the graph.
    pub argument: Option<unsafe extern "C" fn(context: *mut c_void, index: usize) -> mx_value>,
    /// The number of results of the graph.
    pub num_results: Option<unsafe extern "C" fn(context: *mut c_void) -> usize>,
    /// Result `index` of the graph.
    pub result: Option<unsafe extern "C" fn(context: *mut c_void, index: usize) -> mx_value>,
    /// Shape and data type of a value.
    pub spec: Option<
        unsafe extern "C" fn(context: *mut c_void, value: mx_value, spec: *mut mx_spec) -> i32,
    >,
    /// Strides of a value, in elements; `strides` has `MX_MODULE_MAX_NDIM` entries. `offset` is the place of its first element in its buffer.
    pub strides: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            value: mx_value,
            strides: *mut i64,
            offset: *mut i64,
        ) -> i32,
    >,
    /// The buffer of a value. Two values of one buffer share elements.
    pub buffer: Option<unsafe extern "C" fn(context: *mut c_void, value: mx_value) -> i64>,
    /// The node that makes the buffer of a value; -1 for inputs of the graph.
    pub producer: Option<unsafe extern "C" fn(context: *mut c_void, value: mx_value) -> mx_node>,
    /// The number of nodes that read the buffer of a value.
    pub num_readers: Option<unsafe extern "C" fn(context: *mut c_void, value: mx_value) -> usize>,
    /// Node `index` of those that read the buffer of a value.
    pub reader: Option<
        unsafe extern "C" fn(context: *mut c_void, value: mx_value, index: usize) -> mx_node,
    >,
    /// 1 if the buffer of a value is needed after the run: by a result, or by an array that the graph changes. Otherwise 0.
    pub is_result: Option<unsafe extern "C" fn(context: *mut c_void, value: mx_value) -> i32>,
    /// Inserts a call before a node, or at the end for -1. The engine infers its outputs. It runs in the mode (training or inference) of that node,
    /// at the end in that of the last one. Returns the new node, or -1.
    pub insert: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            before: mx_node,
            call: *const mx_call,
        ) -> mx_node,
    >,
    /// Replaces the call that computes the outputs of a node. The outputs must keep their shapes, data types and strides.
    pub replace: Option<
        unsafe extern "C" fn(context: *mut c_void, node: mx_node, call: *const mx_call) -> i32,
    >,
    /// Replaces an operand of a node.
    pub set_input: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            node: mx_node,
            index: usize,
            operand: *const mx_operand,
        ) -> i32,
    >,
    /// Makes all nodes and results that read `old` read `to`, which has the same shape and data type. Refused if a node that changes an operand reads
    /// `old`, or would compute other outputs from the strides of `to`. If `old` is a result, also refused if `to` shares its buffer with an input,
    /// another result or an array that the graph changes, or has other strides: then use a `copy` of `to`.
    pub replace_value:
        Option<unsafe extern "C" fn(context: *mut c_void, old: mx_value, to: mx_value) -> i32>,
    /// Removes a node whose outputs nobody reads.
    pub remove: Option<unsafe extern "C" fn(context: *mut c_void, node: mx_node) -> i32>,
    /// The message of the last error of a function of this table; empty if there was none.
    pub error: Option<unsafe extern "C" fn(context: *mut c_void) -> *const c_char>,
}

/// Argument of a pass.
#[repr(C)]
pub struct mx_pass_call {
    /// The size of this structure.
    pub size: usize,
    /// The graph.
    pub graph: *const mx_graph,
    /// The `state` of the pass.
    pub state: *mut c_void,
    /// Buffer for a message, if the pass does not return `MX_MODULE_OK`.
    pub message: *mut c_char,
    /// Size of the buffer in bytes, including the terminating zero.
    pub message_capacity: usize,
}

/// Argument of the function of a partitioner that says whether it takes a node.
#[repr(C)]
pub struct mx_take_call {
    /// The size of this structure.
    pub size: usize,
    /// The graph, which cannot be changed.
    pub graph: *const mx_graph,
    /// The node.
    pub node: mx_node,
    /// The `state` of the partitioner.
    pub state: *mut c_void,
    /// Buffer for a message.
    pub message: *mut c_char,
    /// Size of the buffer in bytes, including the terminating zero.
    pub message_capacity: usize,
}

/// Argument of the function of a partitioner that compiles a part.
#[repr(C)]
pub struct mx_compile_call {
    /// The size of this structure.
    pub size: usize,
    /// The part, which cannot be changed. Its inputs are the arguments of `run`, its results the outputs that `run` computes.
    pub graph: *const mx_graph,
    /// Receives the handle that is passed to `run` and `free`.
    pub handle: *mut *mut c_void,
    /// The `state` of the partitioner.
    pub state: *mut c_void,
    /// Buffer for a message.
    pub message: *mut c_char,
    /// Size of the buffer in bytes, including the terminating zero.
    pub message_capacity: usize,
}

/// A graph pass.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mx_pass {
    /// The size of this structure.
    pub size: usize,
    /// Its name, by which it can be chosen or switched off.
    pub name: *const c_char,
    /// 1: it runs on every graph; 0: on graphs that choose it as their backend.
    pub always: i32,
    /// Must be 0.
    pub reserved: i32,
    /// Changes a graph. If it does not return `MX_MODULE_OK`, the graph stays as it was. It may be called on any thread.
    pub run: Option<unsafe extern "C" fn(call: *const mx_pass_call) -> i32>,
    /// Passed to the function.
    pub state: *mut c_void,
}

/// A partitioner: it takes nodes of a graph, and runs parts that are made of neighbours among them. All functions may be called on any thread.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mx_partitioner {
    /// The size of this structure.
    pub size: usize,
    /// Its name, by which graphs choose it as their backend.
    pub name: *const c_char,
    /// Smaller parts stay as they are.
    pub min_nodes: usize,
    /// Whether it takes a node: `MX_MODULE_OK` or `MX_MODULE_DECLINED`.
    pub take: Option<unsafe extern "C" fn(call: *const mx_take_call) -> i32>,
    /// Compiles a part; `MX_MODULE_DECLINED` leaves it to the engine.
    pub compile: Option<unsafe extern "C" fn(call: *const mx_compile_call) -> i32>,
    /// Runs a part: `state` is its handle, and there are no attributes. Arguments may have any strides. It may run several times at once.
    pub run: mx_kernel,
    /// Frees a handle. Null: handles need not be freed.
    pub free: Option<unsafe extern "C" fn(state: *mut c_void, handle: *mut c_void)>,
    /// Passed to the functions except `run`.
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
    /// Adds a graph pass. Since version 2.
    pub add_pass: Option<unsafe extern "C" fn(context: *mut c_void, pass: *const mx_pass) -> i32>,
    /// Adds a partitioner. Since version 2.
    pub add_partitioner: Option<
        unsafe extern "C" fn(context: *mut c_void, partitioner: *const mx_partitioner) -> i32,
    >,
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
    /// Adds operators, kernels, devices, passes and partitioners. It writes a message if it does not return `MX_MODULE_OK`.
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
