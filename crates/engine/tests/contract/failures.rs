//! Propagation of failures: which variables carry them, who reports them, what clears them.

use std::sync::Arc;

use mxnet_engine::{Access, Failure, Op, Panicked, Var, WaitError};

use super::{append, block, cell, code, fails, op, wait, with_threads};

#[test]
fn a_failure_poisons_what_it_writes_and_what_depends_on_it() {
    let engine = with_threads(2);
    let (x, y, z, other) = (cell(), cell(), cell(), cell());
    engine.push(op(&[(&x, Access::Overwrite)], || fails(1)));
    engine.push(op(&[(&x, Access::Read), (&y, Access::Overwrite)], || {
        panic!("must not run")
    }));
    engine.push(op(&[(&y, Access::Read), (&z, Access::Write)], || {
        panic!("must not run")
    }));
    engine.push(append(&other, Access::Write, 1));
    assert_eq!(code(wait(&engine, &z)), Some(1));
    assert_eq!(code(wait(&engine, &z)), Some(1), "every wait says so");
    assert_eq!(code(wait(&engine, &x)), Some(1));
    wait(&engine, &other).expect("independent variables go on");
    assert_eq!(other.log(), [1]);
    let (from_x, from_z) = (
        x.var.failure().expect("poisoned"),
        z.var.failure().expect("poisoned"),
    );
    assert!(from_x.is_same(&from_z));
    assert_eq!(from_z.origin(), "test operation");
    let stats = engine.stats();
    assert_eq!((stats.failed, stats.skipped), (1, 2));
}

#[test]
fn only_an_overwrite_clears_a_failure() {
    let engine = with_threads(1);
    let cell = cell();
    engine.push(op(&[(&cell, Access::Overwrite)], || fails(1)));
    engine.push(append(&cell, Access::Write, 1));
    assert_eq!(code(wait(&engine, &cell)), Some(1));
    engine.push(append(&cell, Access::Overwrite, 2));
    wait(&engine, &cell).expect("cleared");
    engine.push(append(&cell, Access::Write, 3));
    wait(&engine, &cell).expect("cleared");
    assert_eq!(cell.log(), [2, 3]);
}

#[test]
fn an_overwrite_that_also_reads_does_not_clear() {
    let engine = with_threads(1);
    let cell = cell();
    engine.push(op(&[(&cell, Access::Overwrite)], || fails(1)));
    engine.push(op(
        &[(&cell, Access::Overwrite), (&cell, Access::Read)],
        || panic!("must not run"),
    ));
    assert_eq!(code(wait(&engine, &cell)), Some(1));
}

#[test]
fn an_overwrite_that_fails_replaces_the_failure() {
    let engine = with_threads(1);
    let cell = cell();
    engine.push(op(&[(&cell, Access::Overwrite)], || fails(1)));
    engine.push(op(&[(&cell, Access::Overwrite)], || fails(2)));
    assert_eq!(code(wait(&engine, &cell)), Some(2));
}

#[test]
fn of_several_failures_the_oldest_travels() {
    let engine = with_threads(0);
    let (a, b, c) = (cell(), cell(), cell());
    // Without workers, the waiting thread runs them in push order.
    engine.push(op(&[(&b, Access::Write)], || fails(1)));
    engine.push(op(&[(&a, Access::Write)], || fails(2)));
    engine.push(op(
        &[(&a, Access::Read), (&b, Access::Read), (&c, Access::Write)],
        || Ok(()),
    ));
    assert_eq!(code(wait(&engine, &c)), Some(1));
}

#[test]
fn a_panic_is_a_failure_with_its_message_and_origin() {
    let engine = with_threads(1);
    let cell = cell();
    let panics = op(&[(&cell, Access::Write)], || {
        panic!("index {} too large", 7)
    });
    engine.push(Op {
        name: "take",
        origin: Some(Arc::from("take at line 3")),
        ..panics
    });
    let Err(WaitError::Failed(failure)) = wait(&engine, &cell) else {
        panic!("it failed")
    };
    let expected = Panicked {
        message: "index 7 too large".to_owned(),
    };
    assert_eq!(failure.error().downcast_ref::<Panicked>(), Some(&expected));
    assert_eq!(failure.origin(), "take at line 3");
    engine.push(append(&cell, Access::Overwrite, 1));
    wait(&engine, &cell).expect("the worker lives on");
}

#[test]
fn a_resource_that_panics_when_dropped_ends_no_thread() {
    struct Bomb(Var);
    impl mxnet_engine::Resource for Bomb {
        fn var(&self) -> &Var {
            &self.0
        }
    }
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("boom");
        }
    }
    let engine = with_threads(1);
    let mut bomb = op(&[], || Ok(()));
    bomb.uses.push((Arc::new(Bomb(Var::new())), Access::Write));
    engine.push(bomb);
    let Err(WaitError::Failed(failure)) = engine.wait_all(&mut || false) else {
        panic!("it is reported")
    };
    assert_eq!(
        failure
            .error()
            .downcast_ref::<Panicked>()
            .map(|panicked| &*panicked.message),
        Some("boom")
    );
    let cell = cell();
    engine.push(append(&cell, Access::Write, 1));
    wait(&engine, &cell).expect("the worker lives on");
}

#[test]
fn an_inline_failure_poisons_its_writes_and_reads_see_poison() {
    let engine = with_threads(1);
    let (x, y) = (cell(), cell());
    let held = engine
        .try_acquire(&[], &[(&x.var, Access::Overwrite)], 0)
        .expect("free");
    assert!(held.poison().is_none());
    held.fail(Failure::new(Box::new(super::Broken(5)), "inline"));
    assert!(x.var.is_free() && x.var.failure().is_some());
    for access in [Access::Read, Access::Write] {
        assert!(engine.try_hold(&x.var, access, 0).is_none());
        assert!(engine.seqlock_read(&x.var, || ()).is_none());
        assert!(x.var.is_free() && x.var.failure().is_some());
    }

    let held = engine
        .try_acquire(&[&x.var], &[(&y.var, Access::Overwrite)], 0)
        .expect("free");
    let poison = held.poison().expect("x is poisoned");
    held.fail(poison);
    assert_eq!(code(wait(&engine, &y)), Some(5));

    let in_place = engine
        .try_acquire(&[&x.var], &[(&x.var, Access::Overwrite)], 0)
        .expect("free");
    assert!(in_place.poison().is_some(), "it reads what it overwrites");
    drop(in_place);
    assert!(x.var.failure().is_some(), "and so does not clear it");

    let overwrite = engine
        .try_acquire(&[], &[(&x.var, Access::Overwrite)], 0)
        .expect("free");
    assert!(overwrite.poison().is_none());
    drop(overwrite);
    assert!(x.var.failure().is_none());
    assert_eq!(engine.stats().failed, 1);
}

#[test]
fn a_refused_acquisition_clears_nothing() {
    let engine = with_threads(1);
    let (x, y) = (cell(), cell());
    engine.push(op(&[(&x, Access::Write)], || fails(1)));
    assert_eq!(code(wait(&engine, &x)), Some(1));
    let held = engine.try_acquire(&[&y.var], &[], 0).expect("free");
    let writes = [(&x.var, Access::Overwrite), (&y.var, Access::Overwrite)];
    assert!(engine.try_acquire(&[], &writes, 0).is_none());
    assert_eq!(code(wait(&engine, &x)), Some(1));
    drop(held);
}

#[test]
fn wait_all_returns_each_unreported_failure_once_and_keeps_the_poison() {
    let engine = with_threads(0);
    let (a, b, c) = (cell(), cell(), cell());
    engine.push(op(&[(&a, Access::Write)], || fails(1)));
    engine.push(op(&[(&b, Access::Write)], || fails(2)));
    engine.push(op(&[(&c, Access::Write)], || fails(3)));
    engine.push(op(&[(&a, Access::Read), (&c, Access::Read)], || Ok(())));
    assert_eq!(code(wait(&engine, &b)), Some(2));
    assert_eq!(code(engine.wait_all(&mut || false)), Some(1));
    assert_eq!(
        code(engine.wait_all(&mut || false)),
        Some(3),
        "2 was reported by its own wait"
    );
    assert_eq!(code(engine.wait_all(&mut || false)), None);
    assert_eq!(code(wait(&engine, &a)), Some(1));
}

#[test]
fn a_failure_reaches_operations_queued_before_it_happened() {
    let engine = with_threads(1);
    let (x, y, z) = (cell(), cell(), cell());
    let open = block(&engine, &x, Access::Write);
    engine.push(op(&[(&x, Access::Write), (&y, Access::Write)], || fails(9)));
    engine.push(op(&[(&y, Access::Read), (&z, Access::Write)], || {
        panic!("must not run")
    }));
    drop(open);
    assert_eq!(code(wait(&engine, &z)), Some(9));
}

#[test]
fn failures_that_were_reported_leave_room_for_others() {
    let engine = with_threads(1);
    let (x, y) = (cell(), cell());
    for _ in 0..2000 {
        engine.push(op(&[(&x, Access::Overwrite)], || fails(1)));
        assert_eq!(code(wait(&engine, &x)), Some(1));
    }
    engine.push(op(&[(&y, Access::Overwrite)], || fails(2)));
    assert_eq!(code(engine.wait_all(&mut || false)), Some(2));
}
