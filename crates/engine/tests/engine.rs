//! The contract, seen from outside: order, failures, modes, waiting.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use mxnet_engine::{Access, Config, Engine, Failure, Mode, Op, Panicked, Resource, Var, WaitError};
use smallvec::smallvec;

/// A variable with a log of what happened to it.
#[derive(Default)]
struct Cell {
    var: Var,
    log: Mutex<Vec<usize>>,
}

impl Resource for Cell {
    fn var(&self) -> &Var {
        &self.var
    }
}

impl Cell {
    fn log(&self) -> Vec<usize> {
        self.log.lock().expect("no holder panics").clone()
    }
}

fn cell() -> Arc<Cell> {
    Arc::default()
}

fn with_threads(threads: usize) -> Engine {
    Engine::new(Config {
        threads,
        ..Config::default()
    })
}

type Run = Box<dyn FnOnce() -> Result<(), Failure> + Send>;

fn op(
    uses: &[(&Arc<Cell>, Access)],
    run: impl FnOnce() -> Result<(), Failure> + Send + 'static,
) -> Op {
    let run: Run = Box::new(run);
    let uses = uses
        .iter()
        .map(|(cell, access)| (Arc::clone(cell) as Arc<dyn Resource>, *access))
        .collect();
    Op {
        name: "test",
        run,
        uses,
        priority: 0,
        cost_ns: 0,
        bytes: 0,
        origin: None,
    }
}

/// An operation that appends `value` to the cell's log.
fn append(cell: &Arc<Cell>, access: Access, value: usize) -> Op {
    let log = Arc::clone(cell);
    op(&[(cell, access)], move || {
        log.log.lock().expect("no holder panics").push(value);
        Ok(())
    })
}

/// Keeps a worker inside an operation until the sender is used or dropped. Returns when the operation runs, so that
/// nobody who waits later can take it over.
fn block(engine: &Engine, cell: &Arc<Cell>, access: Access) -> Sender<()> {
    let (open, gate): (Sender<()>, Receiver<()>) = channel();
    let (begin, begun) = channel();
    engine.push(op(&[(cell, access)], move || {
        begin.send(()).expect("the pusher listens");
        let _ = gate.recv();
        Ok(())
    }));
    begun.recv().expect("the operation runs");
    open
}

#[derive(Debug, PartialEq)]
struct Broken(u32);

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "broken {}", self.0)
    }
}

impl std::error::Error for Broken {}

fn fails(code: u32) -> Result<(), Failure> {
    Err(Failure::new(Box::new(Broken(code)), "test operation"))
}

fn code(error: Result<(), WaitError>) -> Option<u32> {
    match error {
        Ok(()) => None,
        Err(WaitError::Failed(failure)) => failure
            .error()
            .downcast_ref::<Broken>()
            .map(|broken| broken.0),
        Err(WaitError::Interrupted) => panic!("nobody interrupts"),
    }
}

fn wait(engine: &Engine, cell: &Arc<Cell>) -> Result<(), WaitError> {
    engine.wait_for(&cell.var, Access::Read, &mut || false)
}

#[test]
fn a_variable_is_small_and_free_to_create() {
    static VAR: Var = Var::new();
    assert!(VAR.is_free());
    assert!(size_of::<Var>() <= 32, "{} bytes", size_of::<Var>());
}

#[test]
fn one_writer_excludes_everyone() {
    let engine = with_threads(1);
    let var = Var::new();
    let held = engine
        .try_acquire(&[], &[(&var, Access::Write)], 0)
        .expect("free");
    assert!(!var.is_free());
    assert!(engine.try_acquire(&[&var], &[], 0).is_none());
    assert!(
        engine
            .try_acquire(&[], &[(&var, Access::Overwrite)], 0)
            .is_none()
    );
    drop(held);
    assert!(var.is_free());
}

#[test]
fn readers_share_and_exclude_writers() {
    let engine = with_threads(1);
    let var = Var::new();
    let first = engine.try_acquire(&[&var, &var], &[], 0).expect("free");
    let second = engine.try_acquire(&[&var], &[], 0).expect("readers share");
    drop(first);
    assert!(
        engine
            .try_acquire(&[], &[(&var, Access::Write)], 0)
            .is_none()
    );
    drop(second);
    assert!(
        engine
            .try_acquire(&[], &[(&var, Access::Write)], 0)
            .is_some()
    );
}

#[test]
fn acquisition_is_all_or_nothing() {
    let engine = with_threads(1);
    let (a, b, c) = (Var::new(), Var::new(), Var::new());
    let held = engine
        .try_acquire(&[], &[(&c, Access::Write)], 0)
        .expect("free");
    assert!(
        engine
            .try_acquire(&[&b, &c], &[(&a, Access::Write)], 0)
            .is_none()
    );
    assert!(a.is_free() && b.is_free());
    drop(held);
}

#[test]
fn a_variable_read_and_written_in_place_is_written() {
    let engine = with_threads(1);
    let var = Var::new();
    let held = engine
        .try_acquire(
            &[&var, &var],
            &[(&var, Access::Overwrite), (&var, Access::Write)],
            0,
        )
        .expect("only this operation holds it");
    assert!(engine.try_acquire(&[&var], &[], 0).is_none());
    drop(held);
    assert!(var.is_free());
}

#[test]
fn modes_decide_what_runs_inline() {
    let engine = with_threads(1);
    let var = Var::new();
    let expensive = engine.inline_limit_ns() + 1;
    for (mode, cost_ns, is_inline) in [
        (Mode::Adaptive, 0, true),
        (Mode::Adaptive, expensive, false),
        (Mode::Async, 0, false),
        (Mode::Sync, expensive, true),
    ] {
        engine.set_mode(mode);
        assert_eq!(engine.mode(), mode);
        assert_eq!(
            engine.try_acquire(&[&var], &[], cost_ns).is_some(),
            is_inline,
            "{mode:?} {cost_ns}"
        );
    }
    assert_eq!(engine.stats().inline, 2);
}

#[test]
fn pushed_operations_keep_their_order_per_variable() {
    for threads in [0, 1, 3] {
        let engine = with_threads(threads);
        let cell = cell();
        (0..1000).for_each(|i| engine.push(append(&cell, Access::Write, i)));
        wait(&engine, &cell).expect("nothing fails");
        assert_eq!(cell.log(), (0..1000).collect::<Vec<_>>());
    }
}

#[test]
fn an_inline_operation_never_overtakes_a_queued_one() {
    let engine = with_threads(1);
    let cell = cell();
    let open = block(&engine, &cell, Access::Read);
    assert!(
        engine.try_acquire(&[&cell.var], &[], 0).is_some(),
        "readers share"
    );
    engine.push(append(&cell, Access::Write, 1));
    assert!(
        engine.try_acquire(&[&cell.var], &[], 0).is_none(),
        "a writer waits"
    );
    drop(open);
    wait(&engine, &cell).expect("nothing fails");
    assert!(engine.try_acquire(&[&cell.var], &[], 0).is_some());
    assert_eq!(cell.log(), [1]);
}

#[test]
fn what_is_pushed_waits_for_an_inline_guard() {
    let engine = with_threads(2);
    let cell = cell();
    let held = engine.try_acquire(&[&cell.var], &[], 0).expect("free");
    engine.push(append(&cell, Access::Write, 1));
    engine.push(append(&cell, Access::Write, 2));
    assert_eq!(cell.log(), [0; 0]);
    drop(held);
    wait(&engine, &cell).expect("nothing fails");
    assert_eq!(cell.log(), [1, 2]);
    assert_eq!(engine.stats().queued, 2);
}

#[test]
fn waiting_to_write_waits_for_readers() {
    let engine = with_threads(1);
    let cell = cell();
    let open = block(&engine, &cell, Access::Read);
    wait(&engine, &cell).expect("readers do not wait for readers");
    let interrupted = engine.wait_for(&cell.var, Access::Write, &mut || true);
    assert!(matches!(interrupted, Err(WaitError::Interrupted)));
    drop(open);
    engine
        .wait_for(&cell.var, Access::Write, &mut || false)
        .expect("nothing fails");
    assert!(cell.var.is_free());
}
