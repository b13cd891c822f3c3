//! Streams and events of modules' devices: the engine's interface over the functions of the table.
//!
//! A module says only whether the work before an event has failed. What is computed from results of failed work fails by the sources that each event
//! keeps: the events before work whose results its own work reads.

use std::any::Any;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once, OnceLock};

use mxnet_core::{Error, OpDef, Result, call_site, caller};
use mxnet_engine::{Event, Failure, Stream};
use mxnet_tensor::error::DeviceError;
use mxnet_tensor::{Device, DeviceKind, TensorError};
use parking_lot::Mutex;

use crate::abi::{MX_MODULE_FAILED, MX_MODULE_OK, MX_MODULE_PENDING, mx_device};
use crate::call::{State, failure};
use crate::text::{self, MESSAGE_BYTES};

type MakeFn = unsafe extern "C" fn(*mut c_void, u32) -> *mut c_void;
/// A function that enqueues a copy in a stream.
pub type CopyFn =
    unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void, *const c_void, usize) -> i32;
type RecordFn = unsafe extern "C" fn(*mut c_void, *mut c_void) -> *mut c_void;
type StreamWaitFn = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void) -> i32;
type QueryFn = unsafe extern "C" fn(*mut c_void, *mut c_void) -> i32;
type WaitFn = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_char, usize) -> i32;
type FreeFn = unsafe extern "C" fn(*mut c_void, *mut c_void);

/// The functions of a device's streams.
#[derive(Clone, Copy)]
pub struct Functions {
    make_stream: MakeFn,
    pub enqueue_upload: CopyFn,
    pub enqueue_download: CopyFn,
    pub enqueue_copy: CopyFn,
    record_event: RecordFn,
    stream_wait: StreamWaitFn,
    query_event: QueryFn,
    wait_event: WaitFn,
    free_event: FreeFn,
}

/// The functions of the streams of the device `name`; `None` if it has no streams.
///
/// # Errors
/// [`Error::Value`] if some functions are missing.
pub fn describe(given: &mx_device, name: &str) -> Result<Option<Functions>> {
    if let (
        Some(make_stream),
        Some(enqueue_upload),
        Some(enqueue_download),
        Some(enqueue_copy),
        Some(record_event),
        Some(stream_wait),
        Some(query_event),
        Some(wait_event),
        Some(free_event),
    ) = (
        given.make_stream,
        given.enqueue_upload,
        given.enqueue_download,
        given.enqueue_copy,
        given.record_event,
        given.stream_wait,
        given.query_event,
        given.wait_event,
        given.free_event,
    ) {
        return Ok(Some(Functions {
            make_stream,
            enqueue_upload,
            enqueue_download,
            enqueue_copy,
            record_event,
            stream_wait,
            query_event,
            wait_event,
            free_event,
        }));
    }
    let is_there = [
        ("make_stream", given.make_stream.is_some()),
        ("enqueue_upload", given.enqueue_upload.is_some()),
        ("enqueue_download", given.enqueue_download.is_some()),
        ("enqueue_copy", given.enqueue_copy.is_some()),
        ("record_event", given.record_event.is_some()),
        ("stream_wait", given.stream_wait.is_some()),
        ("query_event", given.query_event.is_some()),
        ("wait_event", given.wait_event.is_some()),
        ("free_event", given.free_event.is_some()),
    ];
    let missing = is_there.iter().filter(|(_, is_there)| !is_there);
    let missing: Vec<String> = missing.map(|(name, _)| format!("`{name}`")).collect();
    if missing.len() == is_there.len() {
        return Ok(None);
    }
    let problem = format!(
        "the device `{name}` has streams without {}: all functions of streams must be there, or none",
        missing.join(", ")
    );
    Err(Error::value("load", problem))
}

/// Number of forks between the first process and this one.
static FORKS: AtomicU64 = AtomicU64::new(0);

#[cfg(unix)]
extern "C" fn count_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// The streams of a kind of device. They live until the process ends.
pub struct Streams {
    kind: DeviceKind,
    pub functions: Functions,
    pub state: State,
    /// All streams.
    queues: Mutex<Vec<Arc<Queue>>>,
    /// Those whose threads have ended.
    idle: Mutex<Vec<Arc<Queue>>>,
    /// Failures that `wait_all` may have to return.
    failures: Mutex<VecDeque<Failure>>,
    /// [`FORKS`] when the device was first used.
    used_at: OnceLock<u64>,
}

/// Largest number of failures that are kept for `wait_all`.
const MAX_FAILURES: usize = 1024;

impl Streams {
    /// The streams of a new kind of device.
    pub fn new(kind: DeviceKind, functions: Functions, state: State) -> &'static Streams {
        static REGISTERED: Once = Once::new();
        REGISTERED.call_once(|| {
            #[cfg(unix)]
            // SAFETY: the handler only changes an atomic. Without it (no memory) a forked process waits for ever for work that only the parent does.
            unsafe {
                libc::pthread_atfork(None, None, Some(count_fork));
            }
        });
        Box::leak(Box::new(Streams {
            kind,
            functions,
            state,
            queues: Mutex::default(),
            idle: Mutex::default(),
            failures: Mutex::default(),
            used_at: OnceLock::new(),
        }))
    }

    /// Whether this process was forked from one that has used the device: its threads and locks are not there.
    pub fn is_forked(&self) -> bool {
        let used_at = self.used_at.get();
        used_at.is_some_and(|&at| at != FORKS.load(Ordering::Relaxed))
    }

    /// Notes that this process uses the device.
    ///
    /// # Errors
    /// `Device` in a forked process.
    pub fn enter(&self, id: u32) -> std::result::Result<(), TensorError> {
        self.used_at.get_or_init(|| FORKS.load(Ordering::Relaxed));
        match self.is_forked() {
            false => Ok(()),
            true => Err(self.failed(
                id,
                "use in a forked process",
                "the device does not work in a process forked from one that uses it: start processes with the method 'spawn', or before it is first used",
            )),
        }
    }

    fn failed(&self, id: u32, action: &'static str, message: &str) -> TensorError {
        DeviceError::Failed {
            device: Device::new(self.kind, id),
            action,
            message: message.into(),
        }
        .into()
    }

    /// The calling thread's stream on device `id`.
    ///
    /// # Errors
    /// `Device` in a forked process, or if the module makes none.
    pub fn of_thread(&'static self, id: u32) -> std::result::Result<Arc<Queue>, TensorError> {
        self.enter(id)?;
        let of_thread = LEASES.try_with(|leases| {
            let mut leases = leases.borrow_mut();
            let is_wanted = |queue: &Queue| queue.id == id && ptr::eq(queue.streams, self);
            if let Some(found) = leases.iter().find(|lease| is_wanted(&lease.0)) {
                return Ok(found.0.clone());
            }
            let mut idle = self.idle.lock();
            let found = idle.iter().rposition(|queue| is_wanted(queue));
            let queue = match found {
                Some(found) => idle.swap_remove(found),
                None => self.make(id)?,
            };
            leases.push(Lease(queue.clone()));
            Ok(queue)
        });
        // While a thread ends it has no list of streams any more.
        of_thread.unwrap_or_else(|_| self.make(id))
    }

    fn make(&'static self, id: u32) -> std::result::Result<Arc<Queue>, TensorError> {
        // SAFETY: the module promises a function of this type.
        let handle = unsafe { (self.functions.make_stream)(self.state.0, id) };
        if handle.is_null() {
            return Err(self.failed(id, "making a stream", "its module gives none"));
        }
        let queue = Arc::new(Queue {
            streams: self,
            id,
            handle: State(handle),
            operation: Mutex::default(),
            in_flight: Mutex::default(),
        });
        self.queues.lock().push(queue.clone());
        Ok(queue)
    }

    /// Blocks until the work in all streams has ended.
    ///
    /// # Errors
    /// A failure of that work that no wait has returned yet.
    pub fn wait_all(&self) -> std::result::Result<(), Failure> {
        if self.is_forked() {
            return Ok(());
        }
        let queues = self.queues.lock().clone();
        for queue in queues {
            let in_flight: Vec<_> = queue.in_flight.lock().iter().cloned().collect();
            for point in in_flight {
                point.settle();
            }
            queue.in_flight.lock().retain(|point| !point.is_settled());
        }
        let mut failures = self.failures.lock();
        while let Some(oldest) = failures.pop_front() {
            if oldest.report() {
                return Err(oldest);
            }
        }
        Ok(())
    }

    /// A new failure of work in a stream.
    fn failure(&self, by: &Issued, status: i32, message: String) -> Failure {
        // Copies between devices have no kernel that could name their operator.
        let name = by.op.map_or("to_device", |op| op.name);
        let mut error = failure(name, status, message);
        if let Some(op) = by.op {
            error = error.reported_as(op);
        }
        let error = error.called_by(by.caller);
        let failure = Failure::new(Box::new(error), by.origin.as_deref().unwrap_or(""));
        let mut failures = self.failures.lock();
        if failures.len() == MAX_FAILURES {
            failures.pop_front();
        }
        failures.push_back(failure.clone());
        failure
    }
}

/// A thread's use of a stream.
struct Lease(Arc<Queue>);

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.0.streams.is_forked() {
            self.0.streams.idle.lock().push(self.0.clone());
        }
    }
}

thread_local! {
    static LEASES: RefCell<Vec<Lease>> = const { RefCell::new(Vec::new()) };
}

/// Who issued an operation.
#[derive(Clone, Default)]
struct Issued {
    op: Option<&'static OpDef>,
    caller: Option<&'static OpDef>,
    origin: Option<Arc<str>>,
}

/// The operation whose work is being enqueued.
#[derive(Default)]
struct Operation {
    issued: Issued,
    /// Events before work whose results it reads.
    sources: Vec<Arc<Point>>,
    /// A failure that is known when the work is enqueued.
    failure: Option<Failure>,
    /// Status and message of a function of the stream that failed.
    refused: Option<(i32, &'static str)>,
}

/// A stream.
pub struct Queue {
    streams: &'static Streams,
    id: u32,
    handle: State,
    operation: Mutex<Operation>,
    /// Events that were not known to be complete when the last one was recorded, in order.
    in_flight: Mutex<VecDeque<Arc<Point>>>,
}

impl Queue {
    /// The stream as the module knows it.
    pub fn handle(&self) -> *mut c_void {
        self.handle.0
    }

    /// Notes which operator the work being enqueued belongs to.
    pub fn set_operator(&self, op: &'static OpDef) {
        let issued = &mut self.operation.lock().issued;
        (issued.op, issued.caller) = (Some(op), caller::current());
    }
}

impl Stream for Queue {
    fn begin(&self) {
        let mut operation = self.operation.lock();
        *operation = Operation::default();
        operation.issued.origin = call_site::current();
    }

    fn record(&self) -> Arc<dyn Event> {
        let (functions, state) = (&self.streams.functions, self.streams.state.0);
        // SAFETY: the module made the stream, and promises a function of this type.
        let handle = unsafe { (functions.record_event)(state, self.handle.0) };
        let mut operation = self.operation.lock();
        if handle.is_null() {
            let message = "its module gives no event after the work";
            operation.refused.get_or_insert((MX_MODULE_FAILED, message));
        }
        if let Some((status, message)) = operation.refused.take() {
            let failure = (self.streams).failure(&operation.issued, status, message.to_owned());
            operation.failure.get_or_insert(failure);
        }
        let point = Arc::new(Point {
            streams: self.streams,
            id: self.id,
            queue: self.handle,
            event: State(handle),
            issued: operation.issued.clone(),
            sources: Mutex::new(std::mem::take(&mut operation.sources)),
            failure: operation.failure.take(),
            outcome: OnceLock::new(),
        });
        // If the operation has another event after this one, that includes its failure.
        operation.sources.push(point.clone());
        drop(operation);
        let mut in_flight = self.in_flight.lock();
        while let Some(first) = in_flight.front()
            && first.query()
        {
            first.settle();
            in_flight.pop_front();
        }
        in_flight.push_back(point.clone());
        Arc::new(Mark(point))
    }

    fn wait(&self, event: &Arc<dyn Event>, uses_result: bool) {
        let ours = event.as_any().downcast_ref::<Mark>();
        let Some(Mark(point)) = ours.filter(|mark| ptr::eq(mark.0.streams, self.streams)) else {
            // An event of another kind of device: wait for it here.
            let ended = event.wait();
            if let (true, Err(failure)) = (uses_result, ended) {
                self.operation.lock().failure.get_or_insert(failure);
            }
            return;
        };
        let is_here = point.queue.0 == self.handle.0;
        if !is_here && !point.is_settled() && !point.event.0.is_null() {
            let (functions, state) = (&self.streams.functions, self.streams.state.0);
            // SAFETY: the module made the stream and the event, and promises a function of this type.
            let status = unsafe { (functions.stream_wait)(state, self.handle.0, point.event.0) };
            if status != MX_MODULE_OK {
                // The order is kept nevertheless.
                let _ = point.ended();
                let message = "its stream cannot wait for an event";
                (self.operation.lock().refused).get_or_insert((status, message));
            }
        }
        if uses_result {
            let mut operation = self.operation.lock();
            match point.outcome.get() {
                Some(Ok(())) => {}
                Some(Err(failure)) => {
                    operation.failure.get_or_insert(failure.clone());
                }
                None if operation
                    .sources
                    .iter()
                    .any(|known| Arc::ptr_eq(known, point)) => {}
                None => operation.sources.push(point.clone()),
            }
        }
    }

    fn query(&self) -> bool {
        self.in_flight.lock().back().is_none_or(|last| last.query())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn native_handle(&self) -> *mut c_void {
        self.handle.0
    }
}

/// A point in a stream, after the work of an operation.
struct Point {
    streams: &'static Streams,
    id: u32,
    /// The stream, as the module knows it.
    queue: State,
    /// The module's event; null if it gave none.
    event: State,
    issued: Issued,
    /// Events before work whose results the operation reads; empty when the outcome is known.
    sources: Mutex<Vec<Arc<Point>>>,
    /// A failure that was known when the work was enqueued.
    failure: Option<Failure>,
    outcome: OnceLock<std::result::Result<(), Failure>>,
}

impl Point {
    fn is_settled(&self) -> bool {
        self.outcome.get().is_some()
    }

    fn query(&self) -> bool {
        if self.is_settled() || self.event.0.is_null() || self.streams.is_forked() {
            return true;
        }
        // SAFETY: the module made the event, and promises a function of this type.
        match unsafe { (self.streams.functions.query_event)(self.streams.state.0, self.event.0) } {
            MX_MODULE_PENDING => false,
            MX_MODULE_OK => true,
            status => {
                let message = "its module does not say whether the work has ended".to_owned();
                self.settle_as(|| Some(self.streams.failure(&self.issued, status, message)));
                true
            }
        }
    }

    /// Blocks until the work has ended. Returns the status and the message of its own work.
    fn ended(&self) -> (i32, String) {
        let mut written = [0 as c_char; MESSAGE_BYTES];
        if self.event.0.is_null() {
            return (MX_MODULE_OK, String::new());
        }
        // SAFETY: the module made the event, and promises a function of this type; the buffer has this size.
        let status = unsafe {
            (self.streams.functions.wait_event)(
                self.streams.state.0,
                self.event.0,
                written.as_mut_ptr(),
                MESSAGE_BYTES,
            )
        };
        match status {
            MX_MODULE_OK => (status, String::new()),
            _ => (status, text::message(&written)),
        }
    }

    /// Stores the outcome, if there is none yet: a failure that the operation inherits, else that of its own work.
    fn settle_as(&self, own: impl FnOnce() -> Option<Failure>) {
        let sources = self.sources.lock().clone();
        let mut outcomes = sources.iter().filter_map(|source| source.outcome.get());
        let inherited = outcomes.find_map(|outcome| outcome.as_ref().err().cloned());
        self.outcome.get_or_init(|| {
            let failure = inherited.or_else(|| self.failure.clone()).or_else(own);
            failure.map_or(Ok(()), Err)
        });
        self.sources.lock().clear();
    }

    fn settle_after_sources(&self) {
        if !self.is_settled() {
            let (status, message) = self.ended();
            let own = || self.streams.failure(&self.issued, status, message);
            self.settle_as(|| (status != MX_MODULE_OK).then(own));
        }
    }

    fn unsettled_sources(&self) -> Vec<Arc<Point>> {
        let sources = self.sources.lock();
        (sources
            .iter()
            .filter(|source| !source.is_settled())
            .cloned())
        .collect()
    }

    /// Blocks until the work has ended, and stores the outcome. A chain of sources may be as long as the work in flight, so there is no recursion.
    fn settle(&self) {
        let mut stack = self.unsettled_sources();
        while let Some(point) = stack.last() {
            let before = point.unsettled_sources();
            if before.is_empty() {
                point.settle_after_sources();
                stack.pop();
            } else {
                stack.extend(before);
            }
        }
        self.settle_after_sources();
    }
}

impl Drop for Point {
    fn drop(&mut self) {
        if !self.event.0.is_null() && !self.streams.is_forked() {
            // SAFETY: the module made the event, and promises a function of this type; nobody else uses the event.
            unsafe { (self.streams.functions.free_event)(self.streams.state.0, self.event.0) }
        }
    }
}

/// An event as the engine knows it.
struct Mark(Arc<Point>);

impl Event for Mark {
    fn query(&self) -> bool {
        self.0.query()
    }

    fn wait(&self) -> std::result::Result<(), Failure> {
        let outcome = &self.0.outcome;
        if let Some(ended) = outcome.get() {
            return ended.clone();
        }
        if let Err(error) = self.0.streams.enter(self.0.id) {
            return Err(Failure::new(Box::new(Error::from(error)), ""));
        }
        self.0.settle();
        outcome.get().cloned().unwrap_or(Ok(()))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
