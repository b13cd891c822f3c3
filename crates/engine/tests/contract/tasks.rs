//! `run_tasks`: inside operations, nested, with panics.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};

use mxnet_engine::{Access, Engine, Op, Panicked, WaitError};

use super::{cell, op, wait, with_threads};

#[test]
fn every_index_runs_once() {
    for threads in [0, 1, 4] {
        let engine = with_threads(threads);
        for n in [0, 1, 2, 7, 1000] {
            let runs: Vec<_> = (0..n).map(|_| AtomicUsize::new(0)).collect();
            engine.run_tasks(n, &|index| {
                runs[index].fetch_add(1, Ordering::Relaxed);
            });
            assert!(
                runs.iter().all(|run| run.load(Ordering::Relaxed) == 1),
                "{threads} threads, {n} tasks"
            );
        }
    }
}

#[test]
fn workers_take_part() {
    let engine = with_threads(3);
    // One thread alone cannot pass the barrier.
    let barrier = Barrier::new(3);
    engine.run_tasks(3, &|_| {
        barrier.wait();
    });
}

/// Sum over a nested parallel loop.
fn nested_sum(engine: &Engine, depth: usize) -> u64 {
    if depth == 0 {
        return 1;
    }
    let sum = AtomicU64::new(0);
    engine.run_tasks(4, &|index| {
        sum.fetch_add(
            nested_sum(engine, depth - 1) * (index as u64 + 1),
            Ordering::Relaxed,
        );
    });
    sum.into_inner()
}

#[test]
fn nested_from_many_foreign_threads_and_from_workers() {
    let engine: &'static Engine = Box::leak(Box::new(with_threads(2)));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20 {
                    assert_eq!(nested_sum(engine, 4), 10_000);
                }
            });
        }
        for _ in 0..100 {
            engine.push(op(&[], || {
                assert_eq!(nested_sum(engine, 3), 1000);
                Ok(())
            }));
        }
    });
    engine.wait_all(&mut || false).expect("all sums are right");
}

#[test]
fn the_lowest_panic_is_raised_after_all_tasks_have_ended() {
    for threads in [1, 3] {
        let engine = with_threads(threads);
        let ended = AtomicUsize::new(0);
        let caught = catch_unwind(AssertUnwindSafe(|| {
            engine.run_tasks(50, &|index| {
                ended.fetch_add(1, Ordering::Relaxed);
                assert!(index % 10 != 3, "task {index}");
            });
        }));
        let payload = caught.expect_err("five tasks panic");
        assert_eq!(
            payload.downcast_ref::<String>().map(String::as_str),
            Some("task 3")
        );
        assert_eq!(ended.load(Ordering::Relaxed), 50);
        engine.run_tasks(3, &|_| ());
    }
}

#[test]
fn a_panic_in_a_task_of_an_operation_is_the_operations_failure() {
    let engine: &'static Engine = Box::leak(Box::new(with_threads(2)));
    let cell = cell();
    engine.push(op(&[(&cell, Access::Write)], || {
        engine.run_tasks(4, &|index| assert!(index != 2, "task {index}"));
        Ok(())
    }));
    let Err(WaitError::Failed(failure)) = wait(engine, &cell) else {
        panic!("it failed")
    };
    let expected = Panicked {
        message: "task 2".to_owned(),
    };
    assert_eq!(failure.error().downcast_ref::<Panicked>(), Some(&expected));
}

#[test]
fn tasks_run_while_all_workers_are_busy() {
    let engine = with_threads(1);
    let busy = cell();
    let open = super::block(&engine, &busy, Access::Write);
    let runs = Arc::new(AtomicUsize::new(0));
    engine.run_tasks(10, &|_| {
        runs.fetch_add(1, Ordering::Relaxed);
    });
    assert_eq!(runs.load(Ordering::Relaxed), 10);
    drop(open);
}

#[test]
fn divided_work_is_pushed_if_much_is_in_flight() {
    let engine = with_threads(2);
    let (busy, other) = (cell(), cell());
    let (release, gate) = channel::<()>();
    engine.push(Op {
        cost_ns: 1_000_000_000,
        bytes: 1,
        ..op(&[(&busy, Access::Write)], move || {
            gate.recv().expect("the test lets it go on");
            Ok(())
        })
    });
    let writes = [(&other.var, Access::Write)];
    let limit = engine.inline_limit_ns();
    for _ in 0..1000 {
        engine.run_tasks(2, &|_| ());
        assert!(
            engine
                .try_acquire_parallel(&[], &writes, limit + 1)
                .is_none()
        );
    }
    release.send(()).expect("the operation waits for it");
    wait(&engine, &busy).expect("nothing fails");
}

#[test]
fn with_one_thread_no_divided_work_is_granted() {
    let engine = with_threads(1);
    let shared = cell();
    let writes = [(&shared.var, Access::Write)];
    let limit = engine.inline_limit_ns();
    for _ in 0..1000 {
        engine.run_tasks(2, &|_| ());
        engine.push(op(&[(&shared, Access::Write)], || Ok(())));
        wait(&engine, &shared).expect("nothing fails");
        assert!(
            engine
                .try_acquire_parallel(&[], &writes, limit + 1)
                .is_none()
        );
    }
}
