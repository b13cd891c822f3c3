//! Waits, interrupts, and the limit on bytes in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use mxnet_engine::{Access, Config, Engine, Mode, Op, WaitError};

use super::{Cell, append, block, cell, op, wait, with_threads};

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

#[test]
fn an_interrupted_waiter_lets_those_behind_it_go() {
    let engine = with_threads(1);
    let cell = cell();
    let held = engine.try_acquire(&[&cell.var], &[], 0).expect("free");
    // The waiter for writing would keep the reader behind it in the queue.
    let interrupted = engine.wait_for(&cell.var, Access::Write, &mut || true);
    assert!(matches!(interrupted, Err(WaitError::Interrupted)));
    engine.push(append(&cell, Access::Read, 1));
    engine.wait_all(&mut || false).expect("nothing fails");
    assert_eq!(cell.log(), [1]);
    drop(held);
}

#[test]
fn wait_all_waits_for_everything_pushed_before() {
    for threads in [0, 1, 3] {
        let engine = with_threads(threads);
        let cells: Vec<_> = (0..10).map(|_| cell()).collect();
        for round in 1..=20 {
            for cell in &cells {
                engine.push(append(cell, Access::Write, round));
            }
            engine.wait_all(&mut || false).expect("nothing fails");
            assert!(cells.iter().all(|cell| cell.log().len() == round));
        }
        assert_eq!(engine.stats().in_flight, 0);
    }
}

#[test]
fn wait_all_ends_although_another_thread_keeps_pushing() {
    let engine = with_threads(2);
    let stop = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Always has some operations in flight, but not more than a slow machine can finish.
            let (a, b) = (cell(), cell());
            while stop.load(Ordering::Relaxed) == 0 {
                engine.push(append(&a, Access::Write, 0));
                wait(&engine, &b).expect("nothing fails");
                engine.push(append(&b, Access::Write, 0));
                wait(&engine, &a).expect("nothing fails");
            }
        });
        for _ in 0..50 {
            engine.wait_all(&mut || false).expect("nothing fails");
        }
        stop.store(1, Ordering::Relaxed);
    });
}

#[test]
fn many_short_waits_are_interrupted_as_a_long_one_is() {
    let engine = with_threads(1);
    let cell = cell();
    // None lasts as long as the time between two checks.
    let short_wait = |_: &i32| {
        let open = block(&engine, &cell, Access::Write);
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(5));
                drop(open);
            });
            let found = engine.wait_for(&cell.var, Access::Read, &mut || true);
            matches!(found, Err(WaitError::Interrupted))
        })
    };
    // The first one may be due because this thread has made no check yet.
    assert_eq!((0..1000).filter(short_wait).take(2).count(), 2);
}

#[test]
fn wait_all_can_be_interrupted_and_repeated() {
    let engine = with_threads(1);
    let cell = cell();
    let open = block(&engine, &cell, Access::Write);
    for _ in 0..2 {
        assert!(matches!(
            engine.wait_all(&mut || true),
            Err(WaitError::Interrupted)
        ));
    }
    drop(open);
    engine.wait_all(&mut || false).expect("nothing fails");
}

/// An operation with an estimated cost of one second that runs until the sender is dropped.
fn long(cell: &Arc<Cell>) -> (Op, Sender<()>) {
    let (open, gate): (Sender<()>, Receiver<()>) = channel();
    let run = op(&[(cell, Access::Write)], move || {
        let _ = gate.recv();
        Ok(())
    });
    let cost_ns = 1_000_000_000;
    (Op { cost_ns, ..run }, open)
}

#[test]
fn a_wait_for_a_long_operation_is_interrupted_while_it_runs() {
    let (engine, cell) = (with_threads(1), cell());
    let (run, open) = long(&cell);
    engine.push(run);
    for wait in [
        engine.wait_for(&cell.var, Access::Read, &mut || true),
        engine.wait_all(&mut || true),
    ] {
        assert!(matches!(wait, Err(WaitError::Interrupted)));
    }
    drop(open);
    engine.wait_all(&mut || false).expect("nothing fails");
}

#[test]
fn a_push_in_mode_sync_is_interrupted_and_the_operation_goes_on() {
    let (engine, cell) = (with_threads(1), cell());
    engine.set_mode(Mode::Sync);
    let (run, open) = long(&cell);
    let pushed = engine.push_checked(run, &mut || true);
    assert!(matches!(pushed, Err(WaitError::Interrupted)));
    assert_eq!(engine.stats().in_flight, 1);
    drop(open);
    engine
        .push_checked(append(&cell, Access::Write, 5), &mut || false)
        .expect("nobody interrupts");
    assert_eq!(cell.log(), [5]);
}

#[test]
fn bytes_in_flight_are_bounded() {
    const BOUND: usize = 1000;
    let engine = Engine::new(Config {
        threads: 1,
        max_bytes_in_flight: BOUND,
        ..Config::default()
    });
    let done = Arc::new(AtomicUsize::new(0));
    for _ in 0..500 {
        let done = Arc::clone(&done);
        let run = op(&[], move || {
            done.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        engine.push(Op { bytes: 300, ..run });
        assert!(engine.stats().bytes_in_flight <= BOUND + 300);
    }
    engine.wait_all(&mut || false).expect("nothing fails");
    let stats = engine.stats();
    assert_eq!(
        (stats.bytes_in_flight, done.load(Ordering::Relaxed)),
        (0, 500)
    );
    assert!(
        stats.peak_bytes_in_flight > BOUND && stats.peak_bytes_in_flight <= BOUND + 600,
        "{stats:?}"
    );
}

#[test]
fn a_push_over_the_bound_does_not_wait_for_its_own_operation() {
    let engine = Engine::new(Config {
        threads: 1,
        max_bytes_in_flight: 10,
        ..Config::default()
    });
    let (open, gate) = std::sync::mpsc::channel::<()>();
    let run = op(&[], move || {
        gate.recv().expect("the sender sends before it goes");
        Ok(())
    });
    // If this waited, nobody would open the gate.
    engine.push(Op { bytes: 1000, ..run });
    open.send(()).expect("the operation has not ended");
    engine.wait_all(&mut || false).expect("nothing fails");
}

#[test]
fn the_bound_does_not_deadlock_with_an_inline_guard_of_the_pusher() {
    let engine = Engine::new(Config {
        threads: 1,
        max_bytes_in_flight: 10,
        ..Config::default()
    });
    let cell = cell();
    let held = engine.try_acquire(&[&cell.var], &[], 0).expect("free");
    for i in 0..3 {
        engine.push(Op {
            bytes: 100,
            ..append(&cell, Access::Write, i)
        });
    }
    drop(held);
    wait(&engine, &cell).expect("nothing fails");
    assert_eq!(cell.log(), [0, 1, 2]);
}

#[test]
fn operations_may_push_operations_in_every_mode() {
    for mode in [Mode::Adaptive, Mode::Async, Mode::Sync] {
        let engine: &'static Engine = Box::leak(Box::new(with_threads(1)));
        engine.set_mode(mode);
        let cell = cell();
        let inner = Arc::clone(&cell);
        engine.push(op(&[(&cell, Access::Write)], move || {
            inner.log.lock().expect("no holder panics").push(1);
            engine.push(append(&inner, Access::Write, 2));
            Ok(())
        }));
        engine.wait_all(&mut || false).expect("nothing fails");
        engine.wait_all(&mut || false).expect("nothing fails");
        assert_eq!(cell.log(), [1, 2], "{mode:?}");
    }
}

#[test]
fn the_number_of_threads_can_change() {
    let engine = with_threads(4);
    let cells: Vec<_> = (0..8).map(|_| cell()).collect();
    for round in 0..40 {
        let threads = 1 + round % 4;
        engine.set_num_threads(threads);
        assert_eq!(engine.num_threads(), threads);
        for cell in &cells {
            engine.push(append(cell, Access::Write, round));
        }
        engine.run_tasks(5, &|_| ());
    }
    engine.wait_all(&mut || false).expect("nothing fails");
    assert!(
        cells
            .iter()
            .all(|cell| cell.log() == (0..40).collect::<Vec<_>>())
    );
    assert!(engine.stats().workers <= 4);
}
