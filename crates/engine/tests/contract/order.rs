//! The order in which accesses to a variable are granted.

use std::sync::mpsc::channel;

use mxnet_engine::{Access, Mode, Op, Var};

use super::{append, block, cell, wait, with_threads};

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
fn a_hold_excludes_like_an_operation_of_the_same_access() {
    let engine = with_threads(1);
    let cell = cell();
    let reading = engine.try_hold(&cell.var, Access::Read, 0).expect("free");
    assert!(engine.try_hold(&cell.var, Access::Write, 0).is_none());
    assert!(engine.try_acquire(&[&cell.var], &[], 0).is_some());
    engine.push(append(&cell, Access::Write, 1));
    assert!(
        engine.try_hold(&cell.var, Access::Read, 0).is_none(),
        "it does not overtake"
    );
    assert_eq!(cell.log(), [0; 0]);
    drop(reading);
    wait(&engine, &cell).expect("nothing fails");
    assert_eq!(cell.log(), [1]);
    let writing = engine.try_hold(&cell.var, Access::Write, 0).expect("free");
    assert!(engine.try_hold(&cell.var, Access::Read, 0).is_none());
    assert!(engine.try_acquire(&[&cell.var], &[], 0).is_none());
    drop(writing);
    assert!(cell.var.is_free());
    let expensive = engine.inline_limit_ns() + 1;
    assert!(
        engine
            .try_hold(&cell.var, Access::Read, expensive)
            .is_none()
    );
    engine.set_mode(Mode::Async);
    assert!(engine.try_hold(&cell.var, Access::Read, 0).is_none());
}

#[test]
fn an_optimistic_read_neither_waits_nor_blocks() {
    let engine = with_threads(1);
    let cell = cell();
    let peek = || engine.seqlock_read(&cell.var, || 1);
    assert_eq!(peek(), Some(1));
    let reading = engine.try_hold(&cell.var, Access::Read, 0).expect("free");
    assert_eq!(peek(), Some(1), "beside a reader");
    engine.push(append(&cell, Access::Write, 1));
    assert_eq!(peek(), None, "it does not overtake");
    drop(reading);
    wait(&engine, &cell).expect("nothing fails");
    assert_eq!(peek(), Some(1));
    let writing = engine.try_hold(&cell.var, Access::Write, 0).expect("free");
    assert_eq!(peek(), None);
    drop(writing);
    let write = || {
        let writing = engine.try_hold(&cell.var, Access::Write, 0);
        writing
            .map(drop)
            .expect("an optimistic read keeps nobody out");
    };
    assert_eq!(
        engine.seqlock_read(&cell.var, write),
        None,
        "written meanwhile"
    );
    let read = || {
        let reading = engine.try_hold(&cell.var, Access::Read, 0);
        reading.map(drop).expect("free");
    };
    assert_eq!(engine.seqlock_read(&cell.var, read), Some(()));
    engine.set_mode(Mode::Async);
    assert_eq!(peek(), None);
}

#[test]
fn a_pushed_operation_may_name_a_variable_several_times() {
    let engine = with_threads(1);
    let (x, y) = (cell(), cell());
    let uses = [
        (&x, Access::Read),
        (&y, Access::Read),
        (&x, Access::Write),
        (&x, Access::Read),
    ];
    let ran = std::sync::Arc::clone(&x);
    engine.push(super::op(&uses, move || {
        ran.log.lock().expect("no holder panics").push(7);
        Ok(())
    }));
    wait(&engine, &x).expect("nothing fails");
    assert_eq!(x.log(), [7]);
    assert!(x.var.is_free() && y.var.is_free());
}

#[test]
fn the_highest_priority_runs_first_and_equals_keep_their_order() {
    let engine = with_threads(1);
    let busy = cell();
    let open = block(&engine, &busy, Access::Write);
    let (send, receive) = channel();
    for (index, priority) in [0, -1, 5, 0, 5].into_iter().enumerate() {
        let send = send.clone();
        let run = super::op(&[], move || {
            send.send(index).expect("the test listens");
            Ok(())
        });
        engine.push(Op { priority, ..run });
    }
    drop(open);
    let order: Vec<_> = receive.iter().take(5).collect();
    assert_eq!(order, [2, 4, 0, 3, 1]);
}

#[test]
fn switching_modes_keeps_the_order() {
    let engine = with_threads(2);
    let cell = cell();
    for i in 0..300 {
        engine.set_mode([Mode::Adaptive, Mode::Async, Mode::Sync][i % 3]);
        match engine.try_acquire(&[], &[(&cell.var, Access::Write)], 0) {
            Some(_held) => cell.log.lock().expect("no holder panics").push(i),
            None => engine.push(append(&cell, Access::Write, i)),
        }
        if i % 3 == 2 {
            assert_eq!(
                cell.log().len(),
                i + 1,
                "in mode sync it has run when the call returns"
            );
        }
    }
    assert_eq!(cell.log(), (0..300).collect::<Vec<_>>());
}

#[test]
fn a_resource_is_dropped_by_its_last_operation() {
    let engine = with_threads(1);
    let cell = cell();
    let observer = std::sync::Arc::downgrade(&cell);
    let open = block(&engine, &cell, Access::Write);
    (0..10).for_each(|i| engine.push(append(&cell, Access::Write, i)));
    drop(cell);
    assert!(observer.upgrade().is_some(), "pending operations hold it");
    drop(open);
    engine.wait_all(&mut || false).expect("nothing fails");
    assert!(
        observer.upgrade().is_none(),
        "nothing holds it when all is done"
    );
}
