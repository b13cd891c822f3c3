//! Read guards: what they block, what they allow, and how they end.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use mxnet_engine::{Access, Engine, ReadGuard, Resource, Var, WaitError};

use super::{Cell, append, block, cell, code, fails, op, wait, with_threads};

fn read<'v>(engine: &'v Engine, vars: &[&'v Var]) -> ReadGuard<'v> {
    engine
        .read(vars, &mut || false)
        .expect("nothing fails, nobody interrupts")
}

#[test]
fn a_read_waits_for_earlier_writes_and_blocks_later_ones() {
    for threads in [0, 1, 3] {
        let engine = with_threads(threads);
        let cell = cell();
        engine.push(append(&cell, Access::Write, 1));
        let guard = read(&engine, &[&cell.var]);
        assert_eq!(cell.log(), [1]);
        std::thread::scope(|scope| {
            let push = || engine.push(append(&cell, Access::Write, 2));
            scope.spawn(push).join().expect("no panic");
        });
        assert!(
            engine
                .try_acquire(&[], &[(&cell.var, Access::Write)], 0)
                .is_none()
        );
        assert_eq!(cell.log(), [1]);
        drop(guard);
        wait(&engine, &cell).expect("nothing fails");
        assert_eq!(cell.log(), [1, 2]);
        assert!(cell.var.is_free());
    }
}

#[test]
fn readers_of_several_threads_share_a_variable() {
    let engine = with_threads(1);
    let cell = cell();
    let guard = read(&engine, &[&cell.var]);
    std::thread::scope(|scope| {
        let other = || drop(read(&engine, &[&cell.var]));
        scope.spawn(other).join().expect("no panic");
    });
    drop(guard);
    assert!(cell.var.is_free());
}

#[test]
fn the_holder_reads_past_writers_that_wait_for_it() {
    for threads in [0, 2] {
        let engine = with_threads(threads);
        let (x, y) = (cell(), cell());
        let guard = read(&engine, &[&x.var]);
        std::thread::scope(|scope| {
            let push = || engine.push(append(&x, Access::Write, 7));
            scope.spawn(push).join().expect("no panic");
        });
        // A wait, a second guard and an operation of the holder all see the state that the guard holds.
        wait(&engine, &x).expect("nothing fails");
        drop(read(&engine, &[&x.var, &x.var]));
        let (seen, found) = (Arc::clone(&x), Arc::clone(&y));
        engine.push(op(&[(&x, Access::Read), (&y, Access::Write)], move || {
            let len = seen.log().len();
            found.log.lock().expect("no holder panics").push(len);
            Ok(())
        }));
        wait(&engine, &y).expect("nothing fails");
        assert_eq!(y.log(), [0]);
        drop(guard);
        wait(&engine, &x).expect("nothing fails");
        assert_eq!(x.log(), [7]);
    }
}

#[test]
fn the_holder_may_push_writes_which_wait_for_its_guard() {
    let engine = with_threads(2);
    let x = cell();
    let guard = read(&engine, &[&x.var]);
    engine.push(append(&x, Access::Write, 1));
    // Program order: this read comes after the write.
    engine.push(append(&x, Access::Read, 2));
    assert!(x.log().is_empty());
    drop(guard);
    engine.wait_all(&mut || false).expect("nothing fails");
    assert_eq!(x.log(), [1, 2]);
    drop(read(&engine, &[&x.var]));
}

#[test]
#[should_panic(expected = "behind its own write")]
fn a_holder_that_has_pushed_a_write_cannot_read_behind_it() {
    let engine = with_threads(1);
    let x = cell();
    let _guard = read(&engine, &[&x.var]);
    engine.push(append(&x, Access::Write, 1));
    let _ = engine.read(&[&x.var], &mut || false);
}

#[test]
#[should_panic(expected = "its own read guard holds")]
fn a_holder_cannot_wait_to_write() {
    let engine = with_threads(1);
    let x = cell();
    let _guard = read(&engine, &[&x.var]);
    let _ = engine.wait_for(&x.var, Access::Write, &mut || false);
}

#[test]
fn guards_of_one_thread_nest_and_end_in_any_order() {
    let engine = with_threads(1);
    let (x, y) = (cell(), cell());
    let outer = read(&engine, &[&x.var, &y.var]);
    let inner = read(&engine, &[&y.var]);
    drop(outer);
    assert!(x.var.is_free() && !y.var.is_free());
    engine.push(append(&y, Access::Write, 1));
    assert!(y.log().is_empty());
    drop(inner);
    wait(&engine, &y).expect("nothing fails");
    assert_eq!(y.log(), [1]);
}

#[test]
fn a_read_of_what_failed_reports_it_and_holds_nothing() {
    let engine = with_threads(1);
    let (x, y) = (cell(), cell());
    engine.push(op(&[(&x, Access::Write)], || fails(3)));
    let result = engine.read(&[&y.var, &x.var], &mut || false);
    assert_eq!(code(result.map(drop)), Some(3));
    assert!(x.var.is_free() && y.var.is_free());
    // It is reported: no later wait returns it.
    engine.wait_all(&mut || false).expect("reported already");
}

#[test]
fn an_interrupted_read_gives_back_its_places_and_grants() {
    let engine = with_threads(1);
    let (x, y) = (cell(), cell());
    let open = block(&engine, &x, Access::Write);
    // It is granted `y` and waits for `x`.
    let result = engine.read(&[&x.var, &y.var], &mut || true);
    assert!(matches!(result, Err(WaitError::Interrupted)));
    assert!(y.var.is_free());
    engine.push(append(&x, Access::Write, 1));
    drop(open);
    wait(&engine, &x).expect("nothing fails");
    assert_eq!(x.log(), [1]);
    assert!(x.var.is_free());
}

/// Two counters that every write changes together, behind one variable.
#[derive(Default)]
struct Twins {
    var: Var,
    counts: [AtomicUsize; 2],
}

impl Resource for Twins {
    fn var(&self) -> &Var {
        &self.var
    }
}

#[test]
fn readers_of_many_variables_and_writers_neither_tear_nor_deadlock() {
    let engine = with_threads(2);
    let all: Vec<Arc<Twins>> = (0..4).map(|_| Arc::default()).collect();
    let (is_over, torn) = (AtomicBool::new(false), Mutex::new(0));
    std::thread::scope(|scope| {
        for first in 0..2 {
            let (engine, all, is_over) = (&engine, &all, &is_over);
            scope.spawn(move || {
                let mut turn = first;
                while !is_over.load(Ordering::Relaxed) {
                    let pair = [&all[turn % 4], &all[(turn * 3 + 1) % 4]];
                    let written = pair.map(Arc::clone);
                    let mut write = op(&[] as &[(&Arc<Cell>, Access)], move || {
                        for twins in &written {
                            for count in &twins.counts {
                                count.fetch_add(1, Ordering::Relaxed);
                                std::hint::spin_loop();
                            }
                        }
                        Ok(())
                    });
                    write.uses = pair
                        .map(|twins| (Arc::clone(twins) as Arc<dyn Resource>, Access::Write))
                        .into_iter()
                        .collect();
                    write.bytes = 1 << 16;
                    engine.push(write);
                    turn += 1;
                }
            });
        }
        let readers: Vec<_> = (0..3)
            .map(|first| {
                let (engine, all, torn) = (&engine, &all, &torn);
                scope.spawn(move || {
                    for turn in 0..2000 {
                        let from = (first + turn) % 4;
                        let seen = [&all[from], &all[(from + 1 + turn % 3) % 4]];
                        let guard = read(engine, &seen.map(|twins| &twins.var));
                        for twins in seen {
                            let [a, b] = [0, 1].map(|i| twins.counts[i].load(Ordering::Relaxed));
                            if a != b {
                                *torn.lock().expect("no holder panics") += 1;
                            }
                        }
                        drop(guard);
                    }
                })
            })
            .collect();
        for reader in readers {
            reader.join().expect("no panic");
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(torn.into_inner().expect("no holder panics"), 0);
}
