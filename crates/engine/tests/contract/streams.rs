//! Streams of a simulated device: each stream is a thread that runs its work in order.

use std::any::Any;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex};

use mxnet_engine::{Access, Engine, Event, Failure, Op, Stream, Var};

use super::{Broken, Cell, append, cell, code, op, wait, with_threads};

#[derive(Default)]
struct SimEvent {
    end: Mutex<Option<Result<(), Failure>>>,
    ended: Condvar,
}

impl SimEvent {
    fn complete(&self, end: Result<(), Failure>) {
        *self.end.lock().expect("no holder panics") = Some(end);
        self.ended.notify_all();
    }
}

impl Event for SimEvent {
    fn query(&self) -> bool {
        self.end.lock().expect("no holder panics").is_some()
    }

    fn wait(&self) -> Result<(), Failure> {
        let mut end = self.end.lock().expect("no holder panics");
        loop {
            match &*end {
                Some(end) => return end.clone(),
                None => end = self.ended.wait(end).expect("no holder panics"),
            }
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

type Work = Box<dyn FnOnce() -> Result<(), Failure> + Send>;

enum Item {
    Work(Work),
    Record(Arc<SimEvent>),
    Wait(Arc<dyn Event>),
}

struct SimStream {
    queue: Sender<Item>,
}

impl SimStream {
    fn new() -> SimStream {
        let (queue, items) = channel();
        std::thread::spawn(move || {
            // As on a device, work after failed work fails too.
            let mut state: Result<(), Failure> = Ok(());
            for item in items {
                match item {
                    Item::Work(work) => state = state.and_then(|()| work()),
                    Item::Record(event) => event.complete(state.clone()),
                    Item::Wait(event) => state = state.and(event.wait()),
                }
            }
        });
        SimStream { queue }
    }

    fn send(&self, item: Item) {
        self.queue
            .send(item)
            .expect("the stream lives as long as its queue");
    }
}

impl Stream for SimStream {
    fn record(&self) -> Arc<dyn Event> {
        let event = Arc::new(SimEvent::default());
        self.send(Item::Record(Arc::clone(&event)));
        event
    }

    fn wait(&self, event: &Arc<dyn Event>, _uses_result: bool) {
        self.send(Item::Wait(Arc::clone(event)));
    }

    fn query(&self) -> bool {
        self.record().query()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// What a device backend does for one operation.
fn launch(
    engine: &Engine,
    stream: &SimStream,
    reads: &[&Arc<Cell>],
    writes: &[&Arc<Cell>],
    work: Work,
) {
    let read_vars: Vec<&Var> = reads.iter().map(|cell| &cell.var).collect();
    let write_vars: Vec<_> = writes
        .iter()
        .map(|cell| (&cell.var, Access::Write))
        .collect();
    let held = engine
        .try_acquire_launch(&read_vars, &write_vars)
        .expect("no host work is in flight");
    let uses = || {
        let read = read_vars.iter().map(|var| (*var, Access::Read));
        read.chain(write_vars.iter().copied())
    };
    for (var, access) in uses() {
        var.events(access)
            .iter()
            .for_each(|(event, uses_result)| stream.wait(event, *uses_result));
    }
    stream.send(Item::Work(work));
    let event = stream.record();
    for (var, access) in uses() {
        var.record_event(Arc::clone(&event), access);
    }
    drop(held);
}

/// Work that waits for the sender to be dropped and then appends.
fn slow_append(cell: &Arc<Cell>, value: usize) -> (Work, Sender<()>) {
    let (open, gate) = channel();
    let cell = Arc::clone(cell);
    let work = Box::new(move || {
        let _ = gate.recv();
        cell.log.lock().expect("no holder panics").push(value);
        Ok(())
    });
    (work, open)
}

#[test]
fn host_work_comes_after_device_work() {
    let engine = with_threads(1);
    let (stream, x) = (SimStream::new(), cell());
    let (work, open) = slow_append(&x, 1);
    launch(&engine, &stream, &[], &[&x], work);
    assert!(!x.var.is_free());
    assert!(
        engine.try_acquire(&[&x.var], &[], 0).is_none(),
        "device work is in flight"
    );
    engine.push(append(&x, Access::Write, 2));
    drop(open);
    wait(&engine, &x).expect("nothing fails");
    assert_eq!(x.log(), [1, 2]);
    assert!(
        x.var.is_free()
            && engine
                .try_acquire(&[], &[(&x.var, Access::Write)], 0)
                .is_some()
    );
}

#[test]
fn waiting_for_a_variable_waits_for_its_device_work() {
    let engine = with_threads(1);
    let (stream, x) = (SimStream::new(), cell());
    let (work, open) = slow_append(&x, 1);
    launch(&engine, &stream, &[], &[&x], work);
    drop(open);
    wait(&engine, &x).expect("nothing fails");
    assert_eq!(x.log(), [1]);
}

#[test]
fn streams_are_ordered_by_events() {
    let engine = with_threads(1);
    let (first, second) = (SimStream::new(), SimStream::new());
    let (x, y) = (cell(), cell());
    let (work, open) = slow_append(&x, 1);
    launch(&engine, &first, &[], &[&x], work);
    let (from, to) = (Arc::clone(&x), Arc::clone(&y));
    launch(
        &engine,
        &second,
        &[&x],
        &[&y],
        Box::new(move || {
            let sum = from.log().iter().sum();
            to.log.lock().expect("no holder panics").push(sum);
            Ok(())
        }),
    );
    let (work, open_second) = slow_append(&x, 5);
    launch(&engine, &first, &[], &[&x], work);
    drop((open, open_second));
    wait(&engine, &y).expect("nothing fails");
    assert_eq!(y.log(), [1], "after the first write, before the second");
}

#[test]
fn device_reads_exclude_host_writes_only() {
    let engine = with_threads(1);
    let (stream, x, sink) = (SimStream::new(), cell(), cell());
    let (work, open) = slow_append(&sink, 1);
    launch(&engine, &stream, &[&x], &[&sink], work);
    assert!(
        engine.try_acquire(&[&x.var], &[], 0).is_some(),
        "readers share"
    );
    assert!(
        engine
            .try_acquire(&[], &[(&x.var, Access::Write)], 0)
            .is_none()
    );
    drop(open);
    engine
        .wait_for(&x.var, Access::Write, &mut || false)
        .expect("nothing fails");
    assert_eq!(sink.log(), [1]);
    assert!(
        engine
            .try_acquire(&[], &[(&x.var, Access::Write)], 0)
            .is_some()
    );
}

#[test]
fn a_failure_on_the_device_poisons() {
    let engine = with_threads(1);
    let (stream, x, y) = (SimStream::new(), cell(), cell());
    launch(
        &engine,
        &stream,
        &[],
        &[&x],
        Box::new(|| Err(Failure::new(Box::new(Broken(3)), "device"))),
    );
    engine.push(op(&[(&x, Access::Read), (&y, Access::Write)], || {
        panic!("must not run")
    }));
    assert_eq!(code(wait(&engine, &y)), Some(3));
    assert_eq!(code(wait(&engine, &x)), Some(3));
    engine.push(append(&x, Access::Overwrite, 1));
    wait(&engine, &x).expect("cleared");
}

#[test]
fn a_pushed_launch_does_not_wait_for_the_device() {
    let engine = with_threads(1);
    let (stream, x) = (SimStream::new(), cell());
    let (work, open) = slow_append(&x, 1);
    launch(&engine, &stream, &[], &[&x], work);
    let (send, launched) = channel();
    let seen = Arc::clone(&x);
    let run = op(&[(&x, Access::Write)], move || {
        send.send(seen.var.events(Access::Write).len())
            .expect("the test listens");
        Ok(())
    });
    engine.push_launch(Op {
        name: "launch",
        ..run
    });
    assert_eq!(
        launched.recv(),
        Ok(1),
        "it ran while the device was still at work"
    );
    drop(open);
    wait(&engine, &x).expect("nothing fails");
}

#[test]
fn a_failure_found_after_the_grant_is_among_the_events() {
    let failed = SimEvent::default();
    failed.complete(Err(Failure::new(Box::new(Broken(3)), "")));
    let failures = |var: &Var, access: Access| {
        let events = var.events(access);
        let read = events.iter().filter(|(_, uses_result)| *uses_result);
        read.filter(|(event, _)| event.wait().is_err()).count()
    };
    let var = Var::new();
    var.record_event(Arc::new(failed), Access::Write);
    assert_eq!(failures(&var, Access::Read), 1);
    // Another thread asks for the failure and so removes the event.
    assert!(var.failure().is_some());
    assert_eq!(failures(&var, Access::Read), 1);
    assert_eq!(failures(&var, Access::Overwrite), 0);
}
