//! Streams: a queue of work and a thread that executes it.

use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use mxnet_engine::{Event, Failure, Stream};
use parking_lot::{Condvar, Mutex};

type Ended = Result<(), Failure>;

/// An event: a point in a queue.
#[derive(Default)]
struct Mark {
    ended: Mutex<Option<Ended>>,
    has_ended: Condvar,
}

impl Event for Mark {
    fn query(&self) -> bool {
        self.ended.lock().is_some()
    }

    fn wait(&self) -> Ended {
        let mut ended = self.ended.lock();
        loop {
            if let Some(result) = &*ended {
                return result.clone();
            }
            self.has_ended.wait(&mut ended);
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

enum Task {
    Run(Box<dyn FnOnce() -> Ended + Send>),
    Wait(Arc<dyn Event>, bool),
    Record(Arc<Mark>),
}

/// A stream: one thread on one device.
pub struct Queue {
    tasks: Sender<Task>,
    /// The most recent event.
    last: Mutex<Option<Arc<Mark>>>,
}

impl Queue {
    fn new() -> Queue {
        let (tasks, received) = channel();
        thread::Builder::new()
            .name("simulated device".into())
            .spawn(move || work(&received))
            .expect("a thread can be started");
        Queue {
            tasks,
            last: Mutex::new(None),
        }
    }

    /// Enqueues work.
    pub fn enqueue(&self, work: impl FnOnce() -> Ended + Send + 'static) {
        self.send(Task::Run(Box::new(work)));
    }

    fn send(&self, task: Task) {
        // The thread lives longer than the sender, so this cannot fail.
        let _ = self.tasks.send(task);
    }
}

/// Main function of the thread of a queue.
fn work(tasks: &Receiver<Task>) {
    // Outcome of the work since the last recorded event.
    let mut ended: Ended = Ok(());
    let mut is_recorded = false;
    for task in tasks {
        if is_recorded && !matches!(task, Task::Record(_)) {
            (ended, is_recorded) = (Ok(()), false);
        }
        match task {
            Task::Run(run) => {
                if ended.is_ok() {
                    let result = catch_unwind(AssertUnwindSafe(run));
                    ended = result.unwrap_or_else(|panic| {
                        Err(Failure::from_panic(panic, "kernel of a simulated device"))
                    });
                }
            }
            Task::Wait(event, uses_result) => {
                let before = event.wait();
                if uses_result && ended.is_ok() {
                    ended = before;
                }
            }
            Task::Record(mark) => {
                *mark.ended.lock() = Some(ended.clone());
                mark.has_ended.notify_all();
                is_recorded = true;
            }
        }
    }
}

impl Stream for Queue {
    fn record(&self) -> Arc<dyn Event> {
        let mark = Arc::new(Mark::default());
        *self.last.lock() = Some(mark.clone());
        self.send(Task::Record(mark.clone()));
        mark
    }

    fn wait(&self, event: &Arc<dyn Event>, uses_result: bool) {
        self.send(Task::Wait(event.clone(), uses_result));
    }

    fn query(&self) -> bool {
        self.last.lock().as_ref().is_none_or(|mark| mark.query())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The calling thread's stream on device `id`.
pub fn of_thread(id: u32) -> Arc<dyn Stream> {
    thread_local! {
        static QUEUES: RefCell<HashMap<u32, Arc<Queue>>> = RefCell::new(HashMap::new());
    }
    QUEUES.with_borrow_mut(|queues| {
        queues
            .entry(id)
            .or_insert_with(|| Arc::new(Queue::new()))
            .clone()
    })
}
