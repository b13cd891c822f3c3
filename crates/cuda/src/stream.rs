//! CUDA streams, and marks in them, which implement the engine's events.
//!
//! A mark is a number. A driver event is recorded only when somebody queries a mark or waits for it on another stream, and then covers all work that
//! has been enqueued so far. So a launch does not pay for an event.
#![allow(unsafe_code)]

use std::any::Any;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use mxnet_core::Error;
use mxnet_engine::{Event, Failure, Stream};
use mxnet_tensor::TensorError;
use parking_lot::Mutex;

use crate::driver::{self, Context, Driver, Handle};
use crate::error::{NOT_READY, check, failed};
use crate::fault::Fault;

/// `CU_STREAM_NON_BLOCKING`: not ordered with the legacy default stream.
const NON_BLOCKING: u32 = 1;
/// `CU_EVENT_DISABLE_TIMING`.
const WITHOUT_TIMING: u32 = 2;

/// An unused stream or driver event of a device, for reuse.
struct Idle(u32, Handle);

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Idle {}

static IDLE_STREAMS: Mutex<Vec<Idle>> = Mutex::new(Vec::new());
static IDLE_EVENTS: Mutex<Vec<Idle>> = Mutex::new(Vec::new());

fn take_idle(idle: &Mutex<Vec<Idle>>, id: u32) -> Option<Handle> {
    let mut idle = idle.lock();
    let found = idle.iter().rposition(|Idle(of, _)| *of == id)?;
    Some(idle.swap_remove(found).1)
}

/// A driver event.
struct DriverEvent {
    id: u32,
    handle: Handle,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for DriverEvent {}
// SAFETY: as above.
unsafe impl Sync for DriverEvent {}

impl DriverEvent {
    /// Records an event after the work in a stream.
    fn record(id: u32, stream: Handle) -> Result<DriverEvent, TensorError> {
        let (driver, _) = Context::enter(id)?;
        let mut handle = take_idle(&IDLE_EVENTS, id).unwrap_or(ptr::null_mut());
        if handle.is_null() {
            // SAFETY: `handle` is writable.
            let status = unsafe { (driver.cuEventCreate)(&raw mut handle, WITHOUT_TIMING) };
            check(id, "making an event", status)?;
        }
        let event = DriverEvent { id, handle };
        // SAFETY: both are valid and belong to the same context.
        let status = unsafe { (driver.cuEventRecord)(handle, stream) };
        check(id, "recording an event", status)?;
        Ok(event)
    }
}

impl Drop for DriverEvent {
    fn drop(&mut self) {
        if !driver::is_forked() {
            IDLE_EVENTS.lock().push(Idle(self.id, self.handle));
        }
    }
}

/// State of a stream.
struct Inner {
    id: u32,
    handle: Handle,
    /// Number of marks so far.
    issued: AtomicU64,
    /// The last mark whose work is known to have ended.
    completed: AtomicU64,
    /// Recorded driver events, each with the last mark that it covers, in order.
    recorded: Mutex<VecDeque<(u64, Arc<DriverEvent>)>>,
    /// Faults that the operation being enqueued may report: its own, and those of the results that it reads.
    faults: Mutex<Vec<Arc<Fault>>>,
    /// Faults that work in flight may report, with the mark after that work.
    reporting: Mutex<Vec<(u64, Arc<Fault>)>>,
    /// The failure after which the device no longer works.
    failure: OnceLock<Failure>,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Inner {
    /// The driver event that covers a mark, recorded if necessary; `None` if the work has ended.
    fn event_of(&self, mark: u64) -> Result<Option<Arc<DriverEvent>>, TensorError> {
        let mut recorded = self.recorded.lock();
        if self.is_known_complete(mark) {
            return Ok(None);
        }
        if let Some((_, event)) = recorded.iter().find(|(last, _)| *last >= mark) {
            return Ok(Some(event.clone()));
        }
        // All marks counted here were enqueued before, so the event covers them.
        let last = self.issued.load(Ordering::Acquire);
        let event = Arc::new(DriverEvent::record(self.id, self.handle)?);
        recorded.push_back((last, event.clone()));
        Ok(Some(event))
    }

    #[inline]
    fn is_known_complete(&self, mark: u64) -> bool {
        self.completed.load(Ordering::Acquire) >= mark
    }

    /// Notes that the work up to the event that covers `mark` has ended.
    fn complete(&self, mark: u64) {
        let mut recorded = self.recorded.lock();
        // Another thread may have asked about the same event and noted its end: the first event is a later one then.
        if self.is_known_complete(mark) {
            return;
        }
        let mut dropped = Vec::new();
        while let Some((last, event)) = recorded.pop_front() {
            self.completed.fetch_max(last, Ordering::AcqRel);
            dropped.push(event);
            if last >= mark {
                break;
            }
        }
        drop(recorded);
        drop(dropped);
    }

    fn fail(&self, error: TensorError) {
        let error: Error = error.into();
        self.failure
            .get_or_init(|| Failure::new(Box::new(error), ""));
    }

    /// Whether the work before a mark has ended, successfully or not.
    fn query(&self, mark: u64) -> bool {
        if self.is_known_complete(mark) || self.failure.get().is_some() || driver::is_forked() {
            return true;
        }
        match self.event_of(mark) {
            Ok(None) => true,
            Ok(Some(event)) => self.ended(mark, |driver| {
                // SAFETY: the event is valid.
                unsafe { (driver.cuEventQuery)(event.handle) }
            }),
            Err(error) => {
                self.fail(error);
                true
            }
        }
    }

    /// Queries the driver about the event that covers a mark.
    fn ended(&self, mark: u64, ask: impl FnOnce(&Driver) -> driver::Status) -> bool {
        let status = match Context::enter(self.id) {
            Ok((driver, _)) => ask(driver),
            Err(error) => {
                self.fail(error);
                return true;
            }
        };
        match status {
            0 => self.complete(mark),
            NOT_READY => return false,
            status => self.fail(failed(self.id, "running work", status)),
        }
        true
    }

    /// Blocks until the work before a mark has ended.
    fn wait(&self, mark: u64) -> Result<(), Failure> {
        if let Err(error) = driver::check_process(self.id) {
            return Err(Failure::new(Box::new(Error::from(error)), ""));
        }
        if !self.is_known_complete(mark) && self.failure.get().is_none() {
            match self.event_of(mark) {
                Ok(None) => {}
                Ok(Some(event)) => {
                    self.ended(mark, |driver| {
                        // SAFETY: the event is valid.
                        unsafe { (driver.cuEventSynchronize)(event.handle) }
                    });
                }
                Err(error) => self.fail(error),
            }
        }
        match self.failure.get() {
            Some(failure) => Err(failure.clone()),
            None => Ok(()),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if driver::is_forked() {
            return;
        }
        for (mark, fault) in std::mem::take(self.reporting.get_mut()) {
            if self.completed.load(Ordering::Acquire) < mark {
                // Leaked, because the device may still write to it.
                std::mem::forget(fault);
            }
        }
        IDLE_STREAMS.lock().push(Idle(self.id, self.handle));
    }
}

/// A point in a stream: the end of the work enqueued before it.
pub struct Mark {
    stream: Arc<Inner>,
    number: u64,
    /// Faults that the work before the mark may have reported, and those of the results that this work has read.
    faults: Vec<Arc<Fault>>,
}

impl Mark {
    /// Whether the mark belongs to this stream.
    #[inline]
    pub fn is_of(&self, queue: &Queue) -> bool {
        Arc::ptr_eq(&self.stream, &queue.0)
    }

    /// Whether the work is known to have ended, without querying the driver.
    #[inline]
    pub fn is_known_complete(&self) -> bool {
        self.stream.is_known_complete(self.number)
    }
}

impl Event for Mark {
    fn query(&self) -> bool {
        self.stream.query(self.number)
    }

    fn wait(&self) -> Result<(), Failure> {
        self.stream.wait(self.number)?;
        let failure = self.faults.iter().find_map(|fault| fault.failure());
        failure.map_or(Ok(()), Err)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A stream that one thread uses on one device.
pub struct Queue(Arc<Inner>);

impl Queue {
    /// Creates a stream on device `id`.
    ///
    /// # Errors
    /// `Device` if the driver refuses it.
    pub fn new(id: u32) -> Result<Queue, TensorError> {
        let (driver, _) = Context::enter(id)?;
        let mut handle = take_idle(&IDLE_STREAMS, id).unwrap_or(ptr::null_mut());
        if handle.is_null() {
            // SAFETY: `handle` is writable.
            let status = unsafe { (driver.cuStreamCreate)(&raw mut handle, NON_BLOCKING) };
            check(id, "making a stream", status)?;
        }
        let stream = Arc::new(Inner {
            id,
            handle,
            issued: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            recorded: Mutex::default(),
            faults: Mutex::default(),
            reporting: Mutex::default(),
            failure: OnceLock::new(),
        });
        let mut all = ALL.lock();
        all.retain(|stream| stream.strong_count() > 0);
        all.push(Arc::downgrade(&stream));
        Ok(Queue(stream))
    }

    /// `CUstream`.
    #[inline]
    pub fn handle(&self) -> Handle {
        self.0.handle
    }

    /// Index of the device.
    #[inline]
    pub fn id(&self) -> u32 {
        self.0.id
    }

    /// Adds a fault that the operation being enqueued may report.
    pub fn add_fault(&self, fault: Arc<Fault>) {
        self.0.faults.lock().push(fault);
    }

    /// A mark after all work enqueued so far, without faults.
    pub fn mark(&self) -> Mark {
        Mark {
            stream: self.0.clone(),
            number: self.0.issued.fetch_add(1, Ordering::AcqRel) + 1,
            faults: Vec::new(),
        }
    }

    /// The faults of the operation being enqueued, which ends at `mark`.
    fn faults_before(&self, mark: u64) -> Vec<Arc<Fault>> {
        let faults = self.0.faults.lock().clone();
        if faults.is_empty() {
            return faults;
        }
        // The device may write to these slots until the mark is reached, even if nobody holds the fault any more.
        let mut reporting = self.0.reporting.lock();
        reporting.extend(faults.iter().map(|fault| (mark, fault.clone())));
        let oldest = reporting.first().map_or(0, |(mark, _)| *mark);
        if reporting.len() > MANY_FAULTS && self.0.query(oldest) {
            reporting.retain(|(mark, _)| !self.0.is_known_complete(*mark));
        }
        faults
    }

    /// Blocks until all work enqueued so far has ended.
    ///
    /// # Errors
    /// `Device` if it failed.
    pub fn synchronize(&self) -> Result<(), TensorError> {
        let (driver, _) = Context::enter(self.0.id)?;
        // SAFETY: the stream is valid.
        let status = unsafe { (driver.cuStreamSynchronize)(self.0.handle) };
        check(self.0.id, "running work", status)
    }

    fn wait_for_mark(&self, mark: &Mark) {
        if mark.is_of(self) {
            return;
        }
        let waited = mark.stream.event_of(mark.number).and_then(|event| {
            let Some(event) = event else { return Ok(()) };
            let (driver, _) = Context::enter(self.0.id)?;
            // SAFETY: both are valid; the event may belong to another device.
            let status = unsafe { (driver.cuStreamWaitEvent)(self.0.handle, event.handle, 0) };
            check(self.0.id, "waiting for an event", status)
        });
        if let Err(error) = waited {
            self.0.fail(error);
        }
    }
}

/// With more outstanding faults than this, those of ended work are dropped.
const MANY_FAULTS: usize = 64;

impl Stream for Queue {
    fn begin(&self) {
        let mut faults = self.0.faults.lock();
        if !faults.is_empty() {
            faults.clear();
        }
    }

    fn record(&self) -> Arc<dyn Event> {
        let mut mark = self.mark();
        mark.faults = self.faults_before(mark.number);
        Arc::new(mark)
    }

    fn wait(&self, event: &Arc<dyn Event>, uses_result: bool) {
        let Some(mark) = event.as_any().downcast_ref::<Mark>() else {
            // An event of another kind of device: wait for it here. Its failure is passed on to the readers of the result.
            let ended = event.wait();
            if let (true, Err(failure)) = (uses_result, ended) {
                self.add_fault(Arc::new(Fault::known(failure)));
            }
            return;
        };
        if driver::is_forked() {
            return;
        }
        self.wait_for_mark(mark);
        if uses_result && !mark.faults.is_empty() {
            let mut own = self.0.faults.lock();
            for fault in &mark.faults {
                let is_over = mark.is_known_complete() && fault.failure().is_none();
                if !is_over && !own.iter().any(|known| Arc::ptr_eq(known, fault)) {
                    own.push(fault.clone());
                }
            }
        }
    }

    fn query(&self) -> bool {
        self.0.query(self.0.issued.load(Ordering::Acquire))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn native_handle(&self) -> Handle {
        Context::enter(self.id()).map_or(ptr::null_mut(), |_| self.0.handle)
    }
}

/// All streams.
static ALL: Mutex<Vec<Weak<Inner>>> = Mutex::new(Vec::new());

/// Blocks until the work in all streams has ended.
///
/// # Errors
/// A failure of that work that has not been raised yet.
pub fn wait_all() -> Result<(), Failure> {
    if driver::is_forked() {
        return Ok(());
    }
    let streams: Vec<_> = ALL.lock().iter().filter_map(Weak::upgrade).collect();
    let mut result = Ok(());
    for stream in streams {
        let ended = stream.wait(stream.issued.load(Ordering::Acquire));
        let reporting = std::mem::take(&mut *stream.reporting.lock());
        let (over, later): (Vec<_>, Vec<_>) =
            (reporting.into_iter()).partition(|(mark, _)| stream.is_known_complete(*mark));
        stream.reporting.lock().extend(later);
        let mut failures = over.iter().filter_map(|(_, fault)| fault.failure());
        let new = failures.find(Failure::report);
        let reported = new.map_or(Ok(()), Err);
        result = result.and(ended).and(reported);
    }
    result
}

/// The streams of a thread on a device: one for kernels, one for copies.
#[derive(Clone)]
struct OfThread {
    kernels: Arc<Queue>,
    copies: Arc<Queue>,
}

thread_local! {
    static STREAMS: RefCell<Vec<Option<OfThread>>> = const { RefCell::new(Vec::new()) };
}

fn of_thread<R>(id: u32, choose: impl FnOnce(&OfThread) -> R) -> Result<R, TensorError> {
    driver::check_process(id)?;
    STREAMS.with_borrow_mut(|streams| {
        let index = id as usize;
        if streams.len() <= index {
            streams.resize(index + 1, None);
        }
        let slot = &mut streams[index];
        if let Some(streams) = slot {
            return Ok(choose(streams));
        }
        let made = OfThread {
            kernels: Arc::new(Queue::new(id)?),
            copies: Arc::new(Queue::new(id)?),
        };
        Ok(choose(slot.insert(made)))
    })
}

/// The calling thread's stream for kernels on device `id`.
///
/// # Errors
/// `Device` if the driver refuses it.
#[inline]
pub fn for_kernels(id: u32) -> Result<Arc<Queue>, TensorError> {
    of_thread(id, |streams| streams.kernels.clone())
}

/// The calling thread's stream for copies from and to device `id`.
///
/// # Errors
/// `Device` if the driver refuses it.
pub fn for_copies(id: u32) -> Result<Arc<Queue>, TensorError> {
    of_thread(id, |streams| streams.copies.clone())
}

/// Makes another library's stream of device `id` wait for work in flight. `foreign` is a `CUstream` as an integer; 1 and 2 are the default streams.
///
/// # Errors
/// `Device` if the driver refuses it.
pub fn order_before(
    id: u32,
    events: &[(Arc<dyn Event>, bool)],
    foreign: u64,
) -> Result<(), TensorError> {
    for (event, _) in events {
        let Some(mark) = event.as_any().downcast_ref::<Mark>() else {
            let _ = event.wait();
            continue;
        };
        if let Some(recorded) = mark.stream.event_of(mark.number)? {
            let (driver, _) = Context::enter(id)?;
            // SAFETY: the event is valid; the caller guarantees that `foreign` is a stream.
            let status =
                unsafe { (driver.cuStreamWaitEvent)(foreign as Handle, recorded.handle, 0) };
            check(id, "waiting for an event", status)?;
        }
    }
    Ok(())
}

/// Makes the calling thread's stream wait for the work in another library's stream, and returns an event after that work.
///
/// # Errors
/// `Device` if the driver refuses it.
pub fn order_after(id: u32, foreign: Option<u64>) -> Result<Arc<dyn Event>, TensorError> {
    let queue = for_kernels(id)?;
    if let Some(foreign) = foreign {
        let event = DriverEvent::record(id, foreign as Handle)?;
        let (driver, _) = Context::enter(id)?;
        // SAFETY: both are valid.
        let status = unsafe { (driver.cuStreamWaitEvent)(queue.handle(), event.handle, 0) };
        check(id, "waiting for an event", status)?;
    }
    Ok(Arc::new(queue.mark()))
}

/// The calling thread's stream on device `id` as an integer (`CUstream`), so that other libraries can order their work before it.
///
/// # Errors
/// `Device` if the driver refuses it.
pub fn number_of_stream(id: u32) -> Result<u64, TensorError> {
    Ok(for_kernels(id)?.handle() as u64)
}
