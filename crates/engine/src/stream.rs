//! The engine's interface to streams of devices, and the events stored in variables.
//!
//! Launching device work is asynchronous: the launch holds its variables only while it enqueues work, and stores events in them that are complete
//! when the device has done the work. The next user of a variable waits for these events: a launch makes its stream wait, host work waits before it
//! runs.

use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;

use crate::failure::Failure;
use crate::var::Access;

/// A point in a stream's work.
///
/// `query`, and `wait` after `query` was true, are called under a variable's lock, so they must use no variable.
pub trait Event: Send + Sync + 'static {
    /// Whether all work before the event has ended, successfully or not. Never blocks.
    fn query(&self) -> bool;

    /// Blocks until all work before the event has ended.
    ///
    /// # Errors
    /// The failure of that work, if the device reports one.
    fn wait(&self) -> Result<(), Failure>;

    /// For streams, which downcast the events of their own device.
    fn as_any(&self) -> &dyn Any;
}

/// A queue of device work that runs in order.
pub trait Stream: Send + Sync + 'static {
    /// Called before the work of an operation is enqueued, and before the stream waits for events on its behalf. From here on failures belong to this
    /// operation. Streams whose operations enqueue all their work before `record` can ignore it.
    fn begin(&self) {}

    /// Returns an event after all work enqueued so far.
    fn record(&self) -> Arc<dyn Event>;

    /// Makes work that is enqueued later wait for `event`, which may belong to another stream. A stream whose device cannot wait for that kind of
    /// event waits on the host. `uses_result`: the work enqueued up to the next [`Stream::record`] reads results of the work before the event, and
    /// fails if that failed.
    fn wait(&self, event: &Arc<dyn Event>, uses_result: bool);

    /// Whether all work enqueued so far has ended. Never blocks.
    fn query(&self) -> bool;

    /// For kernels, which downcast to the streams of their own device.
    fn as_any(&self) -> &dyn Any;

    /// The stream as libraries of the device know it, such as a `CUstream`, whose context becomes current on this thread. Null if they do not.
    fn native_handle(&self) -> *mut c_void {
        std::ptr::null_mut()
    }
}

/// The end of work that failed.
pub(crate) struct Failed(pub Failure);

impl Event for Failed {
    fn query(&self) -> bool {
        true
    }

    fn wait(&self) -> Result<(), Failure> {
        Err(self.0.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The events of pending device work on one variable.
#[derive(Default)]
pub(crate) struct EventLog {
    /// Event of the last write, which comes after everything before it.
    write: Option<Arc<dyn Event>>,
    /// Events of the reads since the last write.
    reads: Vec<Arc<dyn Event>>,
    /// Number of reads at which completed ones are dropped next.
    many_reads: usize,
}

/// Number of reads after a write at which completed ones are dropped first.
const MANY_READS: usize = 8;

impl EventLog {
    /// Adds an event. Returns the events that it replaces, to be dropped outside of any lock.
    pub(crate) fn record(&mut self, event: Arc<dyn Event>, access: Access) -> Vec<Arc<dyn Event>> {
        if access.is_write() {
            let mut old = std::mem::take(&mut self.reads);
            self.many_reads = 0;
            old.extend(self.write.replace(event));
            old
        } else {
            let mut old = Vec::new();
            if self.reads.len() >= self.many_reads.max(MANY_READS) {
                old.extend(self.reads.extract_if(.., |read| read.query()));
                // So each record queries at most two events on average, however many are pending.
                self.many_reads = 2 * self.reads.len();
            }
            self.reads.push(event);
            old
        }
    }

    /// The events that an access must follow, and for each whether the access reads what the work before it wrote.
    pub(crate) fn before(&self, access: Access) -> Vec<(Arc<dyn Event>, bool)> {
        let reads = if access.is_write() {
            &self.reads[..]
        } else {
            &[]
        };
        let write = self
            .write
            .iter()
            .map(|event| (event.clone(), access.is_read()));
        let reads = reads.iter().map(|event| (event.clone(), false));
        write.chain(reads).collect()
    }

    /// Removes the events that are complete. Returns them, to be dropped outside of any lock, and the failure of the write.
    pub(crate) fn take_complete(&mut self) -> (Vec<Arc<dyn Event>>, Option<Failure>) {
        let mut old: Vec<_> = self.reads.extract_if(.., |read| read.query()).collect();
        let mut failure = None;
        if self.write.as_ref().is_some_and(|write| write.query()) {
            let write = self.write.take();
            failure = write.as_ref().and_then(|write| write.wait().err());
            old.extend(write);
        }
        (old, failure)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.write.is_none() && self.reads.is_empty()
    }

    /// Whether an access would have to wait for one of the events.
    pub(crate) fn blocks(&self, access: Access) -> bool {
        self.write.is_some() || (access.is_write() && !self.reads.is_empty())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// An event of work that has not ended, which counts its queries.
    struct Pending(Arc<AtomicUsize>);

    impl Event for Pending {
        fn query(&self) -> bool {
            self.0.fetch_add(1, Ordering::Relaxed);
            false
        }

        fn wait(&self) -> Result<(), Failure> {
            Ok(())
        }

        fn as_any(&self) -> &dyn Any {
            self
        }
    }

    #[test]
    fn pending_reads_are_not_queried_at_each_record() {
        let queries = Arc::new(AtomicUsize::new(0));
        let mut log = EventLog::default();
        let num_reads = 10_000;
        for _ in 0..num_reads {
            log.record(Arc::new(Pending(queries.clone())), Access::Read);
        }
        assert_eq!(log.before(Access::Write).len(), num_reads);
        assert!(queries.load(Ordering::Relaxed) < 4 * num_reads);
        // Reads that have ended are dropped.
        let mut log = EventLog::default();
        for _ in 0..num_reads {
            log.record(
                Arc::new(Failed(Failure::new("ended".into(), ""))),
                Access::Read,
            );
        }
        assert!(log.before(Access::Write).len() <= MANY_READS);
    }
}
