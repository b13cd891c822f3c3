//! Tests of process-wide behaviour: fork, exit, affinity. They are one test, because `fork` waits for the process's engine.
#![cfg(target_os = "linux")]

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mxnet_engine::{Access, Op, Resource, Var, default_threads, engine};
use smallvec::smallvec;

#[derive(Default)]
struct Counter {
    var: Var,
    value: AtomicU64,
}

impl Resource for Counter {
    fn var(&self) -> &Var {
        &self.var
    }
}

fn add(counter: &Arc<Counter>, after: Duration) {
    let target = Arc::clone(counter);
    engine().push(Op {
        name: "add",
        run: Box::new(move || {
            std::thread::sleep(after);
            target.value.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }),
        uses: smallvec![(Arc::clone(counter) as Arc<dyn Resource>, Access::Write)],
        priority: 0,
        cost_ns: 0,
        bytes: 8,
        origin: None,
    });
}

fn value(counter: &Counter) -> u64 {
    engine()
        .wait_for(&counter.var, Access::Read, &mut || false)
        .expect("nothing fails");
    counter.value.load(Ordering::Relaxed)
}

/// Main function of the child. Its exit status says how far it got.
fn in_child(counter: &Arc<Counter>) -> i32 {
    if engine().stats().workers != 0 {
        return 2;
    }
    // Operations pushed before the fork are done; the engine and a new pool work.
    if value(counter) != 20 {
        return 3;
    }
    (0..10).for_each(|_| add(counter, Duration::ZERO));
    if value(counter) != 30 || engine().wait_all(&mut || false).is_err() {
        return 4;
    }
    let sum = AtomicU64::new(0);
    engine().run_tasks(100, &|index| {
        sum.fetch_add(index as u64, Ordering::Relaxed);
    });
    if sum.into_inner() != 4950 {
        return 5;
    }
    // This thread does not wait, so only a worker of the new pool can run it.
    add(counter, Duration::ZERO);
    let start = Instant::now();
    while counter.value.load(Ordering::Relaxed) != 31 {
        if start.elapsed() > Duration::from_secs(20) {
            return 6;
        }
        std::thread::yield_now();
    }
    0
}

#[test]
fn a_forked_child_has_a_pool_and_its_variables() {
    let counter: Arc<Counter> = Arc::default();
    for round in 0..5 {
        let before = value(&counter);
        counter.value.fetch_sub(before, Ordering::Relaxed);
        // Some of these are running and some are queued when the process forks.
        (0..20).for_each(|_| add(&counter, Duration::from_millis(1)));
        // SAFETY: the child calls only the engine, which is prepared for it, and the allocator, which glibc keeps usable
        // in a forked child; it leaves by `_exit`.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0, "fork failed");
        if pid == 0 {
            let status = in_child(&counter);
            // SAFETY: ends the child without running anything of the test harness.
            unsafe { libc::_exit(status) };
        }
        assert_eq!(
            wait_for_child(pid),
            0,
            "exit status of the child in round {round}"
        );
        add(&counter, Duration::ZERO);
        assert_eq!(value(&counter), 21, "the parent goes on");
    }
}

#[test]
fn a_forked_child_holds_nothing_that_another_thread_was_reading() {
    let counter: Arc<Counter> = Arc::default();
    for _ in 0..5 {
        let (begin, begun) = std::sync::mpsc::channel();
        let reader = {
            let counter = Arc::clone(&counter);
            std::thread::spawn(move || {
                let guard = engine().read(&[&counter.var], &mut || false);
                begin.send(()).expect("the test listens");
                std::thread::sleep(Duration::from_millis(20));
                drop(guard.expect("nothing fails"));
            })
        };
        begun.recv().expect("the reader begins");
        // SAFETY: as above.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0, "fork failed");
        if pid == 0 {
            let before = counter.value.load(Ordering::Relaxed);
            add(&counter, Duration::ZERO);
            let status = i32::from(value(&counter) != before + 1);
            // SAFETY: ends the child without running anything of the test harness.
            unsafe { libc::_exit(status) };
        }
        assert_eq!(wait_for_child(pid), 0, "exit status of the child");
        reader.join().expect("no panic");
        let before = value(&counter);
        add(&counter, Duration::ZERO);
        assert_eq!(value(&counter), before + 1, "the parent goes on");
    }
}

/// Exit status of the child. Kills it if it takes longer than 30 s.
fn wait_for_child(pid: libc::pid_t) -> i32 {
    let start = Instant::now();
    loop {
        let mut status = 0;
        // SAFETY: `status` is a valid pointer for the result, `pid` is a child of this process.
        let ended = unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) };
        if ended == pid {
            return if libc::WIFEXITED(status) {
                libc::WEXITSTATUS(status)
            } else {
                -1
            };
        }
        if start.elapsed() > Duration::from_secs(30) {
            // SAFETY: the child has not been waited for, so its process id has not been reused.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            return -2;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Runs one of the ignored tests below in a separate process.
fn run_in_process(name: &str, variables: &[(&str, &str)]) -> (bool, String, Duration) {
    let start = Instant::now();
    let program = std::env::current_exe().expect("the test has a path");
    let output = Command::new(program)
        .args(["--exact", "--ignored", "--nocapture", name])
        .env_remove("MXNET_NUM_THREADS")
        .envs(variables.iter().copied())
        .output()
        .expect("the test can run itself");
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text, start.elapsed())
}

/// Number of this process's workers that are running or runnable, from `/proc`.
fn busy_workers() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("a process lists its threads");
    let stats =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("stat")).ok());
    stats
        .filter(|stat| stat.contains("(mxnet-worker)") && stat.contains(") R "))
        .count()
}

#[test]
fn workers_of_an_idle_process_sleep() {
    let (is_success, text, _) = run_in_process("child_that_idles", &[("MXNET_NUM_THREADS", "2")]);
    assert!(is_success, "{text}");
}

#[test]
#[ignore = "run in a process of its own by workers_of_an_idle_process_sleep"]
fn child_that_idles() {
    // One thread alone cannot pass the barrier, so the worker has started.
    let barrier = std::sync::Barrier::new(2);
    engine().run_tasks(2, &|_| {
        barrier.wait();
    });
    let begin = Instant::now();
    // Takes some 50 us, if nothing else runs.
    while busy_workers() > 0 {
        assert!(
            begin.elapsed() < Duration::from_secs(20),
            "a worker stays awake"
        );
        std::thread::yield_now();
    }
    for _ in 0..100 {
        assert_eq!(busy_workers(), 0, "nothing woke a worker");
    }
}

#[test]
fn exit_does_not_wait_for_operations() {
    let (is_success, text, took) = run_in_process("child_that_exits", &[]);
    assert!(is_success && text.contains("leaving"), "{text}");
    assert!(took < Duration::from_secs(30), "took {took:?}");
}

#[test]
#[ignore = "run in a process of its own by exit_does_not_wait_for_operations"]
fn child_that_exits() {
    let counter: Arc<Counter> = Arc::default();
    (0..4).for_each(|_| add(&counter, Duration::from_secs(60)));
    println!("leaving");
    std::process::exit(0);
}

#[test]
fn the_thread_count_follows_environment_and_affinity() {
    let (is_success, text, _) = run_in_process("child_that_counts", &[("EXPECTED_THREADS", "1")]);
    assert!(is_success, "{text}");
    let (is_success, text, _) = run_in_process(
        "child_that_counts",
        &[("EXPECTED_THREADS", "3"), ("MXNET_NUM_THREADS", "3")],
    );
    assert!(is_success, "{text}");
    let (is_success, text, _) = run_in_process(
        "child_that_counts",
        &[("EXPECTED_THREADS", "1"), ("MXNET_NUM_THREADS", "many")],
    );
    assert!(
        is_success && text.contains("\"many\""),
        "a bad number is named: {text}"
    );
}

#[test]
#[ignore = "run in a process of its own by the_thread_count_follows_environment_and_affinity"]
fn child_that_counts() {
    // SAFETY: an all-zero set is a valid empty set, and both calls get its true size.
    let status = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let status = libc::sched_getaffinity(0, size_of_val(&set), &raw mut set);
        assert_eq!(status, 0);
        let first = (0..libc::CPU_SETSIZE as usize)
            .find(|cpu| libc::CPU_ISSET(*cpu, &set))
            .expect("some processor");
        libc::CPU_ZERO(&mut set);
        libc::CPU_SET(first, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set)
    };
    assert_eq!(status, 0);
    let expected = std::env::var("EXPECTED_THREADS").expect("set by the caller");
    assert_eq!(default_threads().to_string(), expected);
    assert_eq!(engine().num_threads().to_string(), expected);
}
