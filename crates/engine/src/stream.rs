//! Streams of devices as the engine sees them, and the events that a variable keeps.
//!
//! Launching device work is itself asynchronous: the launch holds its variables only while it launches, and leaves in
//! them an event that is complete when the device has done the work. Whoever uses a variable next orders itself behind
//! these events: another launch makes its stream wait for them, host work waits for them before it runs.

use std::any::Any;
use std::sync::Arc;

use crate::failure::Failure;
use crate::var::Access;

/// A point in a stream's work.
///
/// `query`, and `wait` after `query` was true, are called under a variable's lock: they use no variable.
pub trait Event: Send + Sync + 'static {
    /// Whether all work before the event has ended, well or not. Never blocks.
    fn query(&self) -> bool;

    /// Blocks until all work before the event has ended.
    ///
    /// # Errors
    /// The failure of that work, if the device reports one.
    fn wait(&self) -> Result<(), Failure>;

    /// For streams that recognise their own device's events.
    fn as_any(&self) -> &dyn Any;
}

/// A queue of device work that runs in order.
pub trait Stream: Send + Sync + 'static {
    /// Called before the work of an operation is enqueued, and before the stream waits for others on its behalf: what earlier operations failed
    /// with is not its own. Streams of which an operation enqueues all its work before it records need not know.
    fn begin(&self) {}

    /// An event behind all work enqueued so far.
    fn record(&self) -> Arc<dyn Event>;

    /// Makes work enqueued later wait for `event`, which may belong to another stream. A stream that cannot
    /// wait on the device for a foreign kind of event waits on the host. `uses_result`: the work enqueued up to the next
    /// [`Stream::record`] reads what the work before the event wrote, and fails if that failed.
    fn wait(&self, event: &Arc<dyn Event>, uses_result: bool);

    /// Whether all work enqueued so far has ended. Never blocks.
    fn query(&self) -> bool;

    /// For kernels, which enqueue their work on their own device's streams.
    fn as_any(&self) -> &dyn Any;
}

/// The events of device work in flight on one variable.
#[derive(Default)]
pub(crate) struct EventLog {
    /// Of the last write; it comes after everything before it.
    write: Option<Arc<dyn Event>>,
    /// Of the reads since.
    reads: Vec<Arc<dyn Event>>,
}

/// Above this many recorded reads the completed ones are dropped at each record.
const MANY_READS: usize = 8;

impl EventLog {
    /// Adds an event; returns those that it makes superfluous, to be dropped outside of any lock.
    pub(crate) fn record(&mut self, event: Arc<dyn Event>, access: Access) -> Vec<Arc<dyn Event>> {
        if access.is_write() {
            let mut old = std::mem::take(&mut self.reads);
            old.extend(self.write.replace(event));
            old
        } else {
            let old = if self.reads.len() >= MANY_READS {
                self.reads.extract_if(.., |read| read.query()).collect()
            } else {
                Vec::new()
            };
            self.reads.push(event);
            old
        }
    }

    /// The events that an access has to come after, and whether it reads what the work before them wrote.
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

    /// Takes out the events that are complete, to be dropped outside of any lock, and the failure of the write.
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
