//! Checks small programs in every interleaving, up to the preemption bound.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p mxnet-engine --profile develop --test loom`
//!
//! Models with `threads: 0` have no workers: waiting threads run what is ready. This covers the queues with few threads.
#![cfg(loom)]

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, Ordering::Relaxed};
use loom::thread;
use mxnet_engine::{Access, Config, Engine, Failure, Mode, Op, Resource, Var, WaitError, set_gate};

/// Loom reports any access to the value that is not ordered with a conflicting one.
struct Cell {
    var: Var,
    value: UnsafeCell<u32>,
}

// SAFETY: the value is used by operations and guards that hold the variable only, which is what the models check.
unsafe impl Sync for Cell {}

impl Resource for Cell {
    fn var(&self) -> &Var {
        &self.var
    }
}

impl Cell {
    fn get(&self) -> u32 {
        // SAFETY: the caller holds the variable for reading; loom checks it.
        self.value.with(|value| unsafe { *value })
    }

    fn update(&self, change: impl FnOnce(u32) -> u32) {
        // SAFETY: the caller holds the variable for writing; loom checks it.
        self.value
            .with_mut(|value| unsafe { *value = change(*value) });
    }
}

fn cell() -> Arc<Cell> {
    Arc::new(Cell {
        var: Var::new(),
        value: UnsafeCell::new(0),
    })
}

/// Two variables sorted by address, which is the order of locking: a model must not depend on the allocator.
fn pair() -> (Arc<Cell>, Arc<Cell>) {
    let (a, b) = (cell(), cell());
    if Arc::as_ptr(&a) < Arc::as_ptr(&b) {
        (a, b)
    } else {
        (b, a)
    }
}

fn engine(threads: usize) -> Arc<Engine> {
    Arc::new(Engine::new(Config {
        threads,
        mode: Mode::Adaptive,
        inline_limit_ns: 10,
        max_bytes_in_flight: 1 << 20,
    }))
}

fn op(
    uses: &[(&Arc<Cell>, Access)],
    run: impl FnOnce() -> Result<(), Failure> + Send + 'static,
) -> Op {
    let uses = uses
        .iter()
        .map(|(cell, access)| (Arc::clone(cell) as Arc<dyn Resource>, *access))
        .collect();
    Op {
        name: "model",
        run: Box::new(run),
        uses,
        priority: 0,
        cost_ns: 0,
        bytes: 0,
        origin: None,
    }
}

/// Updates inline if possible, otherwise pushes.
fn update(engine: &Engine, cell: &Arc<Cell>, change: impl FnOnce(u32) -> u32 + Send + 'static) {
    match engine.try_acquire(&[], &[(&cell.var, Access::Write)], 0) {
        Some(_held) => cell.update(change),
        None => push_update(engine, cell, change),
    }
}

fn push_update(
    engine: &Engine,
    cell: &Arc<Cell>,
    change: impl FnOnce(u32) -> u32 + Send + 'static,
) {
    let inner = Arc::clone(cell);
    engine.push(op(&[(cell, Access::Write)], move || {
        inner.update(change);
        Ok(())
    }));
}

/// Waits, then reads without the engine; nobody writes any more.
fn value(engine: &Engine, cell: &Arc<Cell>) -> u32 {
    engine
        .wait_for(&cell.var, Access::Read, &mut || false)
        .expect("nothing fails");
    let held = engine
        .try_acquire(&[&cell.var], &[], 0)
        .expect("nobody writes");
    let value = cell.get();
    drop(held);
    value
}

fn model(preemptions: usize, program: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(program);
}

#[test]
fn inline_readers_and_a_writer_exclude_each_other() {
    model(3, || {
        let (engine, x) = (engine(0), cell());
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (engine, x) = (Arc::clone(&engine), Arc::clone(&x));
                thread::spawn(move || {
                    if let Some(_held) = engine.try_acquire(&[&x.var], &[], 0) {
                        assert!(x.get() <= 1);
                    }
                })
            })
            .collect();
        update(&engine, &x, |value| value + 1);
        threads
            .into_iter()
            .for_each(|thread| thread.join().expect("no panic"));
        assert_eq!(value(&engine, &x), 1);
    });
}

#[test]
fn a_queued_writer_comes_between_what_was_before_and_after() {
    model(3, || {
        let (engine, x) = (engine(0), cell());
        let reader = {
            let (engine, x) = (Arc::clone(&engine), Arc::clone(&x));
            thread::spawn(move || {
                // It finds a state between two operations, never a torn one.
                if let Some(_held) = engine.try_acquire(&[&x.var], &[], 0) {
                    assert!([0, 1, 3].contains(&x.get()));
                }
            })
        };
        push_update(&engine, &x, |value| value + 1);
        update(&engine, &x, |value| value * 3);
        assert_eq!(value(&engine, &x), 3);
        reader.join().expect("no panic");
    });
}

#[test]
fn inline_and_queued_updates_of_two_threads_are_all_done() {
    model(2, || {
        let (engine, x) = (engine(0), cell());
        let other = {
            let (engine, x) = (Arc::clone(&engine), Arc::clone(&x));
            thread::spawn(move || {
                update(&engine, &x, |value| value + 1);
                engine
                    .wait_for(&x.var, Access::Read, &mut || false)
                    .expect("nothing fails");
            })
        };
        push_update(&engine, &x, |value| value + 10);
        engine
            .wait_for(&x.var, Access::Write, &mut || false)
            .expect("nothing fails");
        other.join().expect("no panic");
        assert_eq!(value(&engine, &x), 11);
    });
}

/// Adds one to both, as one pushed operation.
fn push_both(engine: &Engine, first: &Arc<Cell>, second: &Arc<Cell>) {
    let (a, b) = (Arc::clone(first), Arc::clone(second));
    engine.push(op(
        &[(first, Access::Write), (second, Access::Write)],
        move || {
            a.update(|value| value + 1);
            b.update(|value| value + 1);
            Ok(())
        },
    ));
}

/// Adds one to both, inline. Returns whether both were free.
fn inline_both(engine: &Engine, first: &Arc<Cell>, second: &Arc<Cell>) -> bool {
    let writes = [(&first.var, Access::Write), (&second.var, Access::Write)];
    let Some(_held) = engine.try_acquire(&[], &writes, 0) else {
        return false;
    };
    first.update(|value| value + 1);
    second.update(|value| value + 1);
    true
}

#[test]
fn two_pushers_of_two_variables_in_both_orders_do_not_deadlock() {
    model(2, || {
        let (engine, (x, y)) = (engine(0), pair());
        let other = {
            let (engine, x, y) = (Arc::clone(&engine), Arc::clone(&x), Arc::clone(&y));
            thread::spawn(move || push_both(&engine, &y, &x))
        };
        push_both(&engine, &x, &y);
        other.join().expect("no panic");
        assert_eq!((value(&engine, &x), value(&engine, &y)), (2, 2));
    });
}

#[test]
fn inline_users_of_two_variables_in_both_orders_get_all_or_nothing() {
    model(3, || {
        let (engine, (x, y)) = (engine(0), pair());
        let other = {
            let (engine, x, y) = (Arc::clone(&engine), Arc::clone(&x), Arc::clone(&y));
            thread::spawn(move || inline_both(&engine, &y, &x))
        };
        let done =
            u32::from(inline_both(&engine, &x, &y)) + u32::from(other.join().expect("no panic"));
        assert!(x.var.is_free() && y.var.is_free());
        assert_eq!((x.get(), y.get()), (done, done));
    });
}

#[test]
fn a_pusher_and_an_inline_user_of_two_variables_in_both_orders() {
    model(2, || {
        let (engine, (x, y)) = (engine(0), pair());
        let other = {
            let (engine, x, y) = (Arc::clone(&engine), Arc::clone(&x), Arc::clone(&y));
            thread::spawn(move || inline_both(&engine, &y, &x))
        };
        push_both(&engine, &x, &y);
        let done = 1 + u32::from(other.join().expect("no panic"));
        engine.wait_all(&mut || false).expect("nothing fails");
        assert_eq!((x.get(), y.get()), (done, done));
    });
}

#[test]
fn a_failure_reaches_a_reader_pushed_by_another_thread() {
    #[derive(Debug)]
    struct Broken;
    impl std::fmt::Display for Broken {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("broken")
        }
    }
    impl std::error::Error for Broken {}

    model(2, || {
        let (engine, (x, y)) = (engine(0), pair());
        let held = engine
            .try_acquire(&[], &[(&x.var, Access::Overwrite)], 0)
            .expect("free");
        let other = {
            let (engine, x, y) = (Arc::clone(&engine), Arc::clone(&x), Arc::clone(&y));
            thread::spawn(move || {
                engine.push(op(&[(&x, Access::Read), (&y, Access::Write)], || {
                    unreachable!("its input failed")
                }));
                let Err(WaitError::Failed(failure)) =
                    engine.wait_for(&y.var, Access::Read, &mut || false)
                else {
                    panic!("y depends on what failed")
                };
                assert!(failure.error().is::<Broken>());
            })
        };
        held.fail(Failure::new(Box::new(Broken), "model"));
        other.join().expect("no panic");
        assert!(x.var.failure().is_some() && y.var.failure().is_some());
    });
}

#[test]
fn an_overwrite_clears_a_failure_for_those_behind_it() {
    model(2, || {
        let (engine, x) = (engine(0), cell());
        let held = engine
            .try_acquire(&[], &[(&x.var, Access::Write)], 0)
            .expect("free");
        let other = {
            let (engine, x) = (Arc::clone(&engine), Arc::clone(&x));
            thread::spawn(move || {
                let inner = Arc::clone(&x);
                engine.push(op(&[(&x, Access::Overwrite)], move || {
                    inner.update(|_| 5);
                    Ok(())
                }));
            })
        };
        held.fail(Failure::new("broken".into(), "model"));
        other.join().expect("no panic");
        assert_eq!(value(&engine, &x), 5);
        assert!(x.var.failure().is_none());
    });
}

#[test]
fn a_resource_deleted_while_operations_are_pending_lives_until_they_are_done() {
    model(2, || {
        let (engine, x) = (engine(1), cell());
        let observer = Arc::downgrade(&x);
        push_update(&engine, &x, |value| value + 1);
        push_update(&engine, &x, |value| {
            assert_eq!(value, 1);
            value + 1
        });
        drop(x);
        engine.wait_all(&mut || false).expect("nothing fails");
        assert!(observer.upgrade().is_none());
    });
}

/// Makes it a long operation, which waiting threads leave to a worker.
fn long(run: Op) -> Op {
    Op {
        cost_ns: 1_000_000_000,
        ..run
    }
}

#[test]
fn a_waiter_leaves_a_long_operation_to_a_worker_and_wakes_when_it_is_done() {
    model(2, || {
        let (engine, x) = (engine(1), cell());
        let inner = Arc::clone(&x);
        engine.push(long(op(&[(&x, Access::Write)], move || {
            inner.update(|value| value + 1);
            Ok(())
        })));
        assert_eq!(value(&engine, &x), 1);
    });
}

#[test]
fn a_waiter_that_was_counted_on_for_a_long_operation_calls_a_worker() {
    model(2, || {
        let (engine, x, y) = (engine(2), cell(), cell());
        let other = {
            let (engine, y) = (Arc::clone(&engine), Arc::clone(&y));
            thread::spawn(move || {
                let (send, done) = loom::sync::mpsc::channel();
                let inner = Arc::clone(&y);
                engine.push(long(op(&[(&y, Access::Write)], move || {
                    inner.update(|value| value + 1);
                    send.send(()).expect("the model listens");
                    Ok(())
                })));
                // This thread does not help, so others must run it.
                done.recv().expect("a worker runs it");
            })
        };
        push_update(&engine, &x, |value| value + 1);
        assert_eq!(value(&engine, &x), 1);
        other.join().expect("no panic");
    });
}

#[test]
fn a_worker_runs_operations_that_no_thread_waits_for() {
    model(2, || {
        let (engine, x) = (engine(1), cell());
        let (send, done) = loom::sync::mpsc::channel();
        let inner = Arc::clone(&x);
        engine.push(op(&[(&x, Access::Write)], move || {
            inner.update(|value| value + 1);
            send.send(()).expect("the model listens");
            Ok(())
        }));
        done.recv().expect("a worker runs it");
        assert_eq!(value(&engine, &x), 1);
    });
}

#[test]
fn a_worker_that_stays_awake_misses_no_operation() {
    model(2, || {
        let (engine, x, y) = (engine(2), cell(), cell());
        let (send, done) = loom::sync::mpsc::channel();
        for cell in [&x, &y] {
            let (inner, send) = (Arc::clone(cell), send.clone());
            engine.push(op(&[(cell, Access::Write)], move || {
                inner.update(|value| value + 1);
                send.send(()).expect("the model listens");
                Ok(())
            }));
            done.recv().expect("a worker runs it");
        }
        assert_eq!((value(&engine, &x), value(&engine, &y)), (1, 1));
    });
}

#[test]
fn a_waiter_that_stays_awake_leaves_no_operation_behind() {
    model(2, || {
        let (engine, x, y) = (engine(2), cell(), cell());
        let other = {
            let (engine, y) = (Arc::clone(&engine), Arc::clone(&y));
            thread::spawn(move || {
                let (send, done) = loom::sync::mpsc::channel();
                let inner = Arc::clone(&y);
                engine.push(op(&[(&y, Access::Write)], move || {
                    inner.update(|value| value + 1);
                    send.send(()).expect("the model listens");
                    Ok(())
                }));
                // This thread does not help, so others must run it.
                done.recv().expect("somebody runs it");
            })
        };
        push_update(&engine, &x, |value| value + 1);
        assert_eq!(value(&engine, &x), 1);
        other.join().expect("no panic");
    });
}

/// Two values that are equal while nobody writes. Atomics, because an optimistic read may run concurrently with a write.
struct Twins {
    var: Var,
    values: [AtomicU32; 2],
}

impl Resource for Twins {
    fn var(&self) -> &Var {
        &self.var
    }
}

impl Twins {
    fn new() -> Arc<Twins> {
        Arc::new(Twins {
            var: Var::new(),
            values: [AtomicU32::new(0), AtomicU32::new(0)],
        })
    }

    fn read(&self) -> [u32; 2] {
        [0, 1].map(|i| self.values[i].load(Relaxed))
    }

    fn write(&self, value: u32) {
        for slot in &self.values {
            slot.store(value, Relaxed);
        }
    }
}

fn peek_beside(write: impl Fn(&Engine, &Arc<Twins>) + Copy + Sync + Send + 'static) {
    model(3, move || {
        let (engine, x) = (engine(0), Twins::new());
        let reader = {
            let (engine, x) = (Arc::clone(&engine), Arc::clone(&x));
            thread::spawn(move || {
                let mut last = 0;
                for _ in 0..2 {
                    if let Some([a, b]) = engine.seqlock_read(&x.var, || x.read()) {
                        assert_eq!(a, b, "half of a write was seen");
                        assert!(a >= last);
                        last = a;
                    }
                }
            })
        };
        write(&engine, &x);
        reader.join().expect("no panic");
        assert_eq!(engine.seqlock_read(&x.var, || x.read()), Some([2, 2]));
    });
}

#[test]
fn an_optimistic_read_sees_no_half_of_an_inline_write() {
    peek_beside(|engine, x| {
        for value in [1, 2] {
            let held = engine.try_hold(&x.var, Access::Write, 0);
            let held = held.expect("an optimistic read keeps nobody out");
            x.write(value);
            drop(held);
        }
    });
}

#[test]
fn an_optimistic_read_sees_no_half_of_a_pushed_write() {
    peek_beside(|engine, x| {
        for value in [1, 2] {
            let inner = Arc::clone(x);
            engine.push(Op {
                uses: [(Arc::clone(x) as Arc<dyn Resource>, Access::Write)]
                    .into_iter()
                    .collect(),
                ..op(&[], move || {
                    inner.write(value);
                    Ok(())
                })
            });
        }
        // This thread's own earlier writes come before its read.
        let seen = engine.seqlock_read(&x.var, || x.read());
        assert!(seen.is_none_or(|seen| seen == [2, 2]));
        engine
            .wait_for(&x.var, Access::Read, &mut || false)
            .expect("nothing fails");
    });
}

#[test]
fn wait_all_misses_nothing_and_sleeps_for_nothing() {
    model(2, || {
        let (engine, x) = (engine(0), cell());
        let other = {
            let (engine, x) = (Arc::clone(&engine), Arc::clone(&x));
            thread::spawn(move || {
                push_update(&engine, &x, |value| value + 1);
                engine.wait_all(&mut || false).expect("nothing fails");
                assert!(x.var.is_free());
            })
        };
        engine.wait_all(&mut || false).expect("nothing fails");
        other.join().expect("no panic");
        assert_eq!(value(&engine, &x), 1);
    });
}

#[test]
fn a_task_set_ends_when_its_helper_has_left() {
    model(2, || {
        let engine = engine(2);
        let sums = [UnsafeCell::new(0_u32), UnsafeCell::new(0)];
        struct Shared<'a>(&'a [UnsafeCell<u32>; 2]);
        // SAFETY: every task uses the cell of its own index.
        unsafe impl Sync for Shared<'_> {}
        impl Shared<'_> {
            fn add(&self, index: usize) {
                // SAFETY: as above; loom checks it.
                self.0[index].with_mut(|sum| unsafe { *sum += 1 });
            }
        }
        let shared = Shared(&sums);
        engine.run_tasks(2, &|index| shared.add(index));
        // A data race with the helper's write if `run_tasks` returned too early.
        // SAFETY: all tasks have ended; loom checks it.
        assert!(sums.iter().all(|sum| sum.with(|sum| unsafe { *sum }) == 1));
    });
}

/// Adds one to each sum, each in its own task.
fn add_to_each(engine: &Engine, sums: &[AtomicU32; 2]) {
    engine.run_tasks(2, &|index| {
        sums[index].fetch_add(1, Relaxed);
    });
    assert!(sums.iter().all(|sum| sum.load(Relaxed) == 1));
}

#[test]
fn two_task_sets_beside_each_other_end() {
    model(2, || {
        let engine = engine(2);
        let new_sums = || [AtomicU32::new(0), AtomicU32::new(0)];
        let other = {
            let engine = Arc::clone(&engine);
            thread::spawn(move || add_to_each(&engine, &new_sums()))
        };
        add_to_each(&engine, &new_sums());
        other.join().expect("no panic");
    });
}

#[test]
fn a_task_set_inside_an_operation_ends_beside_a_waiter_that_helps() {
    model(2, || {
        let (engine, x) = (engine(2), cell());
        let (inner, on) = (Arc::clone(&x), Arc::downgrade(&engine));
        engine.push(op(&[(&x, Access::Write)], move || {
            let sums = [AtomicU32::new(0), AtomicU32::new(0)];
            let engine = on.upgrade().expect("the model waits");
            add_to_each(&engine, &sums);
            inner.update(|value| value + 1);
            Ok(())
        }));
        assert_eq!(value(&engine, &x), 1);
    });
}

#[test]
fn a_reader_sees_no_half_of_an_inline_or_a_pushed_write() {
    model(3, || {
        let (engine, x) = (engine(0), cell());
        let reader = {
            let (engine, x) = (Arc::clone(&engine), Arc::clone(&x));
            thread::spawn(move || {
                let guard = engine
                    .read(&[&x.var], &mut || false)
                    .expect("nothing fails");
                assert!([0, 1, 3].contains(&x.get()));
                drop(guard);
            })
        };
        update(&engine, &x, |value| value + 1);
        push_update(&engine, &x, |value| value * 3);
        reader.join().expect("no panic");
        assert_eq!(value(&engine, &x), 3);
    });
}

#[test]
fn a_reader_of_two_variables_and_a_pusher_in_the_other_order_do_not_deadlock() {
    model(2, || {
        let engine = engine(0);
        let (a, b) = pair();
        let reader = {
            let (engine, a, b) = (Arc::clone(&engine), Arc::clone(&a), Arc::clone(&b));
            thread::spawn(move || {
                let vars = [&b.var, &a.var];
                let guard = engine.read(&vars, &mut || false).expect("nothing fails");
                assert_eq!(a.get(), b.get());
                drop(guard);
            })
        };
        push_both(&engine, &b, &a);
        assert_eq!(value(&engine, &a), value(&engine, &b));
        reader.join().expect("no panic");
    });
}

#[test]
fn a_holder_reads_again_past_a_writer_that_waits_for_it() {
    model(3, || {
        let engine = engine(0);
        let (x, y) = pair();
        let writer = {
            let (engine, x) = (Arc::clone(&engine), Arc::clone(&x));
            thread::spawn(move || push_update(&engine, &x, |value| value + 1))
        };
        let guard = engine
            .read(&[&x.var], &mut || false)
            .expect("nothing fails");
        let seen = x.get();
        let (from, to) = (Arc::clone(&x), Arc::clone(&y));
        engine.push(op(&[(&x, Access::Read), (&y, Access::Write)], move || {
            let value = from.get();
            to.update(|_| value);
            Ok(())
        }));
        assert_eq!(value(&engine, &y), seen);
        drop(guard);
        writer.join().expect("no panic");
        assert_eq!(value(&engine, &x), 1);
    });
}

/// A model whose program forks.
fn model_of_fork(preemptions: usize, program: impl Fn() + Sync + Send + 'static) {
    set_gate(true);
    model(preemptions, program);
    set_gate(false);
}

#[test]
fn a_fork_finds_no_operation_half_done_and_stops_none() {
    model_of_fork(2, || {
        let (engine, x) = (engine(1), cell());
        let pusher = {
            let (engine, x) = (Arc::clone(&engine), Arc::clone(&x));
            thread::spawn(move || push_update(&engine, &x, |value| value + 1))
        };
        // Loom reports it if the operation runs meanwhile.
        engine.while_forking(|| assert!(x.get() <= 1));
        pusher.join().expect("no panic");
        assert_eq!(value(&engine, &x), 1);
    });
}

#[test]
fn a_fork_finds_no_variable_held_by_a_reader_and_keeps_none_out() {
    model_of_fork(2, || {
        let (engine, x) = (engine(0), cell());
        let reader = {
            let (engine, x) = (Arc::clone(&engine), Arc::clone(&x));
            thread::spawn(move || {
                let guard = engine
                    .read(&[&x.var], &mut || false)
                    .expect("nothing fails");
                assert!(x.get() <= 1);
                drop(guard);
            })
        };
        push_update(&engine, &x, |value| value + 1);
        engine.while_forking(|| assert!(x.var.is_free()));
        reader.join().expect("no panic");
        assert_eq!(value(&engine, &x), 1);
    });
}

#[test]
fn a_fork_beside_a_thread_that_waits_for_everything_ends() {
    model_of_fork(2, || {
        let (engine, x) = (engine(0), cell());
        let waiter = {
            let (engine, x) = (Arc::clone(&engine), Arc::clone(&x));
            thread::spawn(move || {
                push_update(&engine, &x, |value| value + 1);
                engine.wait_all(&mut || false).expect("nothing fails");
                assert!(x.var.is_free());
            })
        };
        engine.while_forking(|| assert!(x.get() <= 1));
        waiter.join().expect("no panic");
        assert_eq!(value(&engine, &x), 1);
    });
}
