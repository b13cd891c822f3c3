//! Tests of the engine's contract through its public interface. This file has what the tests share.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use mxnet_engine::{Access, Config, Engine, Failure, Op, Resource, Var, WaitError};

mod failures;
mod order;
mod reading;
mod streams;
mod stress;
mod tasks;
mod waiting;

/// A variable with a log of the accesses to it.
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

/// Keeps a worker inside an operation until the sender is used or dropped. Returns when the operation runs, so that no waiting thread can take it
/// over.
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
