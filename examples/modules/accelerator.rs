//! A module in Rust with a fake accelerator: a kind of device with memory and streams of its own, and kernels for it.
//!
//! Its memory is main memory that only the module's functions touch. A stream is a queue with a thread that does the work in it, so calls return before
//! the work is done. `rustc --crate-type cdylib accelerator.rs` builds it.

#![allow(non_camel_case_types, reason = "names of the table")]

#[path = "../../crates/module/src/abi.rs"]
#[allow(dead_code, reason = "a module needs a part of the table")]
mod abi;

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use abi::*;

// Data types, as numbered in `mxnet.h`.
const INT64: i32 = 4;
const FLOAT32: i32 = 11;
const FLOAT64: i32 = 12;

// Memory.

/// Bytes that are allocated: the device has a megabyte.
static IN_USE: AtomicUsize = AtomicUsize::new(0);
const CAPACITY: usize = 1 << 20;

fn layout(len_bytes: usize) -> Option<Layout> {
    Layout::from_size_align(len_bytes.max(1), 64).ok()
}

unsafe extern "C" fn allocate(_state: *mut c_void, _id: u32, len_bytes: usize) -> *mut c_void {
    if IN_USE.fetch_add(len_bytes, Ordering::Relaxed) + len_bytes > CAPACITY {
        IN_USE.fetch_sub(len_bytes, Ordering::Relaxed);
        return ptr::null_mut();
    }
    match layout(len_bytes) {
        // SAFETY: the layout has a size that is not 0.
        Some(layout) => unsafe { alloc(layout) }.cast(),
        None => ptr::null_mut(),
    }
}

unsafe extern "C" fn free(_state: *mut c_void, _id: u32, block: *mut c_void, len_bytes: usize) {
    IN_USE.fetch_sub(len_bytes, Ordering::Relaxed);
    if let Some(layout) = layout(len_bytes) {
        // SAFETY: the engine gives back what `allocate` gave, with the same length.
        unsafe { dealloc(block.cast(), layout) };
    }
}

unsafe extern "C" fn copy(
    _state: *mut c_void,
    _id: u32,
    to: *mut c_void,
    from: *const c_void,
    len_bytes: usize,
) -> i32 {
    // SAFETY: both ranges have so many bytes and do not overlap, by the table's contract.
    unsafe { ptr::copy_nonoverlapping(from.cast::<u8>(), to.cast::<u8>(), len_bytes) };
    MX_MODULE_OK
}

// Streams and events.

/// How work has ended: a status and a message.
type Ended = (i32, [c_char; 256]);
const SUCCESS: Ended = (MX_MODULE_OK, [0; 256]);

/// A point in a stream. It is set when the work before it has ended.
#[derive(Default)]
struct Event {
    ended: Mutex<Option<Ended>>,
    is_set: Condvar,
}

impl Event {
    fn wait(&self) -> Ended {
        let ended = self.ended.lock().expect("nobody panics with it");
        let ended = self.is_set.wait_while(ended, |ended| ended.is_none());
        ended.expect("nobody panics with it").unwrap_or(SUCCESS)
    }
}

enum Task {
    /// Work that gets a buffer for a message and returns a status.
    Run(Box<dyn FnOnce(*mut c_char, usize) -> i32 + Send>),
    Wait(Arc<Event>),
    Record(Arc<Event>),
}

/// The thread of a stream.
fn work(tasks: Receiver<Task>) {
    let mut ended = SUCCESS;
    for task in tasks {
        match task {
            // Work behind a failure, up to the next event, belongs to the same operation: it is left out.
            Task::Run(run) if ended.0 == MX_MODULE_OK => {
                ended.0 = run(ended.1.as_mut_ptr(), ended.1.len());
            }
            Task::Run(_) => {}
            Task::Wait(event) => drop(event.wait()),
            Task::Record(event) => {
                *event.ended.lock().expect("nobody panics with it") = Some(ended);
                event.is_set.notify_all();
                ended = SUCCESS;
            }
        }
    }
}

unsafe extern "C" fn make_stream(_state: *mut c_void, _id: u32) -> *mut c_void {
    let (tasks, received) = channel::<Task>();
    let started = thread::Builder::new().name("accelerator".into()).spawn(move || work(received));
    match started {
        Ok(_) => Box::into_raw(Box::new(tasks)).cast(),
        Err(_) => ptr::null_mut(),
    }
}

/// # Safety
/// `stream` is what `make_stream` gave.
unsafe fn enqueue(stream: *mut c_void, task: Task) -> i32 {
    // SAFETY: the caller's promise; streams live until the process ends.
    match unsafe { &*stream.cast::<Sender<Task>>() }.send(task) {
        Ok(()) => MX_MODULE_OK,
        Err(_) => MX_MODULE_FAILED,
    }
}

/// Enqueues a function of Rust. If it panics, the operation fails.
///
/// # Safety
/// `stream` is what `make_stream` gave.
unsafe fn enqueue_function(stream: *mut c_void, function: impl FnOnce() + Send + 'static) -> i32 {
    let run = move |message: *mut c_char, capacity| {
        // SAFETY: the thread gives a buffer for a message.
        unsafe { guarded(message, capacity, || Ok(function())) }
    };
    // SAFETY: the caller's promise.
    unsafe { enqueue(stream, Task::Run(Box::new(run))) }
}

/// An address that goes to another thread.
#[derive(Clone, Copy)]
struct Address(usize);

unsafe extern "C" fn enqueue_copy(
    _state: *mut c_void,
    stream: *mut c_void,
    to: *mut c_void,
    from: *const c_void,
    len_bytes: usize,
) -> i32 {
    let (to, from) = (Address(to.expose_provenance()), Address(from.expose_provenance()));
    let function = move || {
        let to = ptr::with_exposed_provenance_mut::<u8>(to.0);
        // SAFETY: both ranges have so many bytes, do not overlap and live until the work is done, by the table's contract.
        unsafe { ptr::copy_nonoverlapping(ptr::with_exposed_provenance(from.0), to, len_bytes) };
    };
    // SAFETY: the engine gives one of our streams.
    unsafe { enqueue_function(stream, function) }
}

unsafe extern "C" fn record_event(_state: *mut c_void, stream: *mut c_void) -> *mut c_void {
    let event = Arc::new(Event::default());
    // SAFETY: the engine gives one of our streams.
    match unsafe { enqueue(stream, Task::Record(event.clone())) } {
        MX_MODULE_OK => Arc::into_raw(event).cast_mut().cast(),
        _ => ptr::null_mut(),
    }
}

unsafe extern "C" fn stream_wait(
    _state: *mut c_void,
    stream: *mut c_void,
    event: *mut c_void,
) -> i32 {
    let event = event.cast_const().cast::<Event>();
    // SAFETY: the engine gives one of our streams, and an event that it has not freed.
    unsafe {
        Arc::increment_strong_count(event);
        enqueue(stream, Task::Wait(Arc::from_raw(event)))
    }
}

unsafe extern "C" fn query_event(_state: *mut c_void, event: *mut c_void) -> i32 {
    // SAFETY: the engine gives an event that it has not freed.
    let ended = unsafe { &*event.cast::<Event>() }.ended.lock();
    match ended.expect("nobody panics with it").is_some() {
        true => MX_MODULE_OK,
        false => MX_MODULE_PENDING,
    }
}

unsafe extern "C" fn wait_event(
    _state: *mut c_void,
    event: *mut c_void,
    message: *mut c_char,
    capacity: usize,
) -> i32 {
    // SAFETY: the engine gives an event that it has not freed, and a buffer for a message.
    unsafe {
        let (status, written) = (*event.cast::<Event>()).wait();
        ptr::copy_nonoverlapping(written.as_ptr(), message, capacity.min(written.len()));
        status
    }
}

unsafe extern "C" fn free_event(_state: *mut c_void, event: *mut c_void) {
    // SAFETY: it is an event that the engine no longer uses.
    drop(unsafe { Arc::from_raw(event.cast_const().cast::<Event>()) });
}

/// For kernels that other modules add for this device: enqueues work that gets `argument` and a buffer for a message, and returns a status.
///
/// # Safety
/// `stream` is the stream of a kernel's call, and `work` may be called with `argument` on another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accelerator_launch(
    stream: *mut c_void,
    work: unsafe extern "C" fn(argument: *mut c_void, message: *mut c_char, capacity: usize) -> i32,
    argument: *mut c_void,
) -> i32 {
    let argument = Address(argument.expose_provenance());
    let run = move |message, capacity| {
        // SAFETY: the caller's promise; the thread gives a buffer for a message.
        unsafe { work(ptr::with_exposed_provenance_mut(argument.0), message, capacity) }
    };
    // SAFETY: the caller's promise.
    unsafe { enqueue(stream, Task::Run(Box::new(run))) }
}

// Kernels. They read the call's structure at once, because it is gone when they return, and enqueue a loop.

/// The elements of a dense float32 array, which lives until the work in the stream is done.
#[derive(Clone, Copy)]
struct Elements {
    data: *mut f32,
    len: usize,
}

// SAFETY: the engine orders the work that uses the elements.
unsafe impl Send for Elements {}

impl Elements {
    /// # Safety
    /// The array is valid for the call.
    unsafe fn of(x: &mx_tensor) -> Result<Elements, (i32, String)> {
        // SAFETY: an array has `ndim` sizes and strides.
        let (shape, strides) = unsafe {
            let ndim = x.ndim as usize;
            match ndim {
                0 => (&[][..], &[][..]),
                _ => (
                    std::slice::from_raw_parts(x.shape, ndim),
                    std::slice::from_raw_parts(x.strides, ndim),
                ),
            }
        };
        let mut step = 1;
        for (&n, &stride) in shape.iter().zip(strides).rev() {
            if x.dtype != FLOAT32 || n != 1 && stride != step {
                let problem = "the accelerator takes dense float32 arrays".to_owned();
                return Err((MX_MODULE_DTYPE, problem));
            }
            step *= n;
        }
        Ok(Elements { data: x.data.cast(), len: step as usize })
    }

    fn get(&self, i: usize) -> f32 {
        assert!(i < self.len);
        // SAFETY: element `i` exists.
        unsafe { self.data.add(i).read() }
    }

    fn set(&self, i: usize, value: f32) {
        assert!(i < self.len);
        // SAFETY: element `i` exists.
        unsafe { self.data.add(i).write(value) };
    }
}

#[derive(Clone, Copy)]
enum Operand {
    Array(Elements),
    Number(f32),
}

impl Operand {
    /// Operand `i` of a call; for `filled`, which has none, the attribute `value`.
    ///
    /// # Safety
    /// It is one of the engine's calls, and has this operand.
    unsafe fn of(call: &mx_kernel_call, i: usize) -> Result<Operand, (i32, String)> {
        // SAFETY: the caller's promise; a number is one element in main memory.
        unsafe {
            if call.num_inputs == 0 {
                let value = &*call.attributes.add(1);
                return Ok(Operand::Number(match value.kind {
                    MX_PARAMETER_REAL => value.real as f32,
                    _ => value.integer as f32,
                }));
            }
            let x = &*call.inputs.add(i);
            Ok(match (call.numbers >> i & 1, x.dtype) {
                (0, _) => Operand::Array(Elements::of(x)?),
                (_, FLOAT32) => Operand::Number(x.data.cast::<f32>().read()),
                (_, FLOAT64) => Operand::Number(x.data.cast::<f64>().read() as f32),
                (_, INT64) => Operand::Number(x.data.cast::<i64>().read() as f32),
                _ => return Err((MX_MODULE_DTYPE, "the accelerator takes real numbers".to_owned())),
            })
        }
    }

    fn fits(&self, out: &Elements) -> bool {
        matches!(self, Operand::Array(x) if x.len == out.len) || matches!(self, Operand::Number(_))
    }

    fn get(&self, i: usize) -> f32 {
        match self {
            Operand::Array(x) => x.get(i),
            Operand::Number(x) => *x,
        }
    }
}

/// An elementwise operator. One that has fewer operands is given the last one twice.
type Function = fn(f32, f32) -> f32;

static FUNCTIONS: [(&CStr, Function); 6] = [
    (c"add", |x, y| x + y),
    (c"subtract", |x, y| x - y),
    (c"multiply", |x, y| x * y),
    (c"duplicate", |x, _| x),
    (c"filled", |value, _| value),
    (c"exp", |x, _| {
        assert!(x < 1000.0, "the accelerator overheats");
        x.exp()
    }),
];

unsafe extern "C" fn elementwise(call: *const mx_kernel_call) -> i32 {
    // SAFETY: 1. the engine's structure is valid for the call. 2. `init` gave a function of the list as the state. 3. there is a buffer for a message.
    unsafe {
        let call = &*call;
        guarded(call.message, call.message_capacity, || {
            let function = *call.state.cast::<Function>();
            let (x, y) = (Operand::of(call, 0)?, Operand::of(call, call.num_inputs.saturating_sub(1))?);
            let out = Elements::of(&*call.outputs)?;
            if !x.fits(&out) || !y.fits(&out) {
                return Err((MX_MODULE_SHAPE, "the accelerator does not broadcast".to_owned()));
            }
            let function = move || (0..out.len).for_each(|i| out.set(i, function(x.get(i), y.get(i))));
            match enqueue_function(call.stream, function) {
                MX_MODULE_OK => Ok(()),
                status => Err((status, "the stream has ended".to_owned())),
            }
        })
    }
}

unsafe extern "C" fn init(host: *const mx_host, message: *mut c_char, capacity: usize) -> i32 {
    // SAFETY: the engine's table is valid while this runs, and there is a buffer for a message.
    unsafe {
        guarded(message, capacity, || {
            let host = &*host;
            let refused = |what: &str| (MX_MODULE_FAILED, format!("{what} was not taken"));
            let (Some(add_device), Some(add_kernel)) = (host.add_device, host.add_kernel) else {
                return Err(refused("a function of the table"));
            };
            let device = mx_device {
                size: size_of::<mx_device>(),
                name: c"accelerator".as_ptr(),
                count: 2,
                allocate: Some(allocate),
                free: Some(free),
                upload: Some(copy),
                download: Some(copy),
                copy: Some(copy),
                state: ptr::null_mut(),
                make_stream: Some(make_stream),
                enqueue_upload: Some(enqueue_copy),
                enqueue_download: Some(enqueue_copy),
                enqueue_copy: Some(enqueue_copy),
                record_event: Some(record_event),
                stream_wait: Some(stream_wait),
                query_event: Some(query_event),
                wait_event: Some(wait_event),
                free_event: Some(free_event),
            };
            if add_device(host.context, &raw const device) != MX_MODULE_OK {
                return Err(refused("the device"));
            }
            for (op, function) in &FUNCTIONS {
                let entry = mx_kernel_entry {
                    size: size_of::<mx_kernel_entry>(),
                    op: op.as_ptr(),
                    device: c"accelerator".as_ptr(),
                    priority: 0,
                    reserved: 0,
                    kernel: Some(elementwise),
                    state: ptr::from_ref(function).cast_mut().cast(),
                };
                if add_kernel(host.context, &raw const entry) != MX_MODULE_OK {
                    return Err(refused("a kernel"));
                }
            }
            Ok(())
        })
    }
}

struct Constant(mx_module);

// SAFETY: nobody writes it, and the texts that it points to are constant.
unsafe impl Sync for Constant {}

static MODULE: Constant = Constant(mx_module {
    size: size_of::<mx_module>(),
    abi: MX_MODULE_ABI,
    reserved: 0,
    name: c"accelerator".as_ptr(),
    version: c"1.0".as_ptr(),
    init: Some(init),
});

/// What makes the library a module.
#[unsafe(no_mangle)]
pub extern "C" fn mx_module_entry() -> *const mx_module {
    &raw const MODULE.0
}
