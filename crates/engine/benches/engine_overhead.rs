//! Overhead of the engine for an operation that does nothing: median of many batches, in ns.
//!
//! `cargo bench -p mxnet-engine`

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use mxnet_engine::{Access, Op, Resource, Var, engine};
use smallvec::smallvec;

#[derive(Default)]
struct Owner(Var);

impl Resource for Owner {
    fn var(&self) -> &Var {
        &self.0
    }
}

/// Median time of one call, over 201 batches after one warm-up batch.
fn measure(name: &str, batch: u32, mut call: impl FnMut()) {
    let mut times: Vec<f64> = (0..202)
        .map(|_| {
            let start = Instant::now();
            (0..batch).for_each(|_| call());
            start.elapsed().as_nanos() as f64 / f64::from(batch)
        })
        .skip(1)
        .collect();
    times.sort_by(f64::total_cmp);
    println!(
        "{name:<44} {:>10.1} ns   (fastest {:.1})",
        times[times.len() / 2],
        times[0]
    );
}

fn empty(owner: &Arc<Owner>) -> Op {
    Op {
        name: "empty",
        run: Box::new(|| Ok(())),
        uses: smallvec![(Arc::clone(owner) as Arc<dyn Resource>, Access::Write)],
        priority: 0,
        cost_ns: 0,
        bytes: 0,
        origin: None,
    }
}

fn main() {
    let engine = engine();
    println!("{} threads", engine.num_threads());
    let (a, b, c) = (Var::new(), Var::new(), Var::new());
    measure("clock and loop, nothing else", 10_000, || {
        black_box(&a);
    });
    measure("inline: 2 reads", 10_000, || {
        let held = engine.try_acquire(&[black_box(&a), black_box(&b)], &[], 0);
        black_box(held.is_some());
    });
    measure("inline: 2 reads, 1 overwrite", 10_000, || {
        let writes = [(black_box(&c), Access::Overwrite)];
        let held = engine.try_acquire(&[black_box(&a), black_box(&b)], &writes, 0);
        black_box(held.is_some());
    });
    let atomics = [const { std::sync::atomic::AtomicUsize::new(0) }; 3];
    measure("the six atomic additions of that alone", 10_000, || {
        for word in &atomics {
            black_box(word).fetch_add(1, std::sync::atomic::Ordering::AcqRel);
        }
        for word in &atomics {
            black_box(word).fetch_sub(1, std::sync::atomic::Ordering::AcqRel);
        }
    });
    let owner: Arc<Owner> = Arc::default();
    measure("push, wait", 100, || {
        engine.push(empty(&owner));
        engine
            .wait_for(owner.var(), Access::Read, &mut || false)
            .expect("nothing fails");
    });
    // The worker sleeps, as after a pause, so the push has to wake it.
    let mut after_pause: Vec<_> = (0..301)
        .map(|_| {
            std::thread::sleep(std::time::Duration::from_micros(300));
            let start = Instant::now();
            engine.push(empty(&owner));
            let pushed = start.elapsed().as_nanos();
            engine
                .wait_for(owner.var(), Access::Read, &mut || false)
                .expect("nothing fails");
            (start.elapsed().as_nanos(), pushed)
        })
        .collect();
    after_pause.sort_unstable();
    let (both, push) = after_pause[150];
    println!(
        "{:<44} {both:>10} ns   (of which push {push})",
        "push, wait, after a pause"
    );
    let mut pushed = 0;
    measure("push, and one wait for every 100", 1000, || {
        engine.push(empty(&owner));
        pushed += 1;
        if pushed % 100 == 0 {
            engine
                .wait_for(owner.var(), Access::Read, &mut || false)
                .expect("nothing fails");
        }
    });
    measure("run_tasks: 1 empty task", 1000, || {
        engine.run_tasks(1, &|index| {
            black_box(index);
        });
    });
    measure("run_tasks: 2 empty tasks", 100, || {
        engine.run_tasks(2, &|index| {
            black_box(index);
        });
    });
    // 64 us of work in 16 tasks: two threads can save at most half of that.
    let work = |_: usize| {
        let start = Instant::now();
        while start.elapsed().as_nanos() < 4000 {
            std::hint::spin_loop();
        }
    };
    measure("run_tasks: 16 tasks of 4 us", 20, || {
        engine.run_tasks(16, &work)
    });
    measure("the same, pushed and waited for", 20, || {
        let mut op = empty(&owner);
        op.run = Box::new(move || {
            mxnet_engine::engine().run_tasks(16, &work);
            Ok(())
        });
        engine.push(op);
        engine
            .wait_for(owner.var(), Access::Read, &mut || false)
            .expect("nothing fails");
    });
    measure("the same, granted if a worker is awake", 20, || {
        let writes = [(owner.var(), Access::Write)];
        if let Some(_held) = engine.try_acquire_parallel(&[], &writes, 64_000) {
            return engine.run_tasks(16, &work);
        }
        let mut op = empty(&owner);
        op.run = Box::new(move || {
            mxnet_engine::engine().run_tasks(16, &work);
            Ok(())
        });
        engine.push(op);
        engine
            .wait_for(owner.var(), Access::Read, &mut || false)
            .expect("nothing fails");
    });
}
