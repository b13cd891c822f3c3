//! Elementwise operators on f32 arrays in L1, in L2 and in memory, on one thread and on two.
//!
//! Prints the best time of many runs, which other load on the machine affects least.

use std::hint::black_box;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Condvar, Mutex};
use std::time::Instant;

use mxnet_kernels::map::{self, InnerLoops, Operand};
use mxnet_kernels::{Elem, Serial, Threads, copy};

type Task = &'static (dyn Fn(usize) + Sync);

/// One worker thread besides the caller; enough to show whether blocks are split well.
struct Pair {
    send: Mutex<Sender<(Task, usize)>>,
    done: &'static (Mutex<bool>, Condvar),
}

impl Pair {
    fn new() -> Pair {
        let (send, receive) = channel::<(Task, usize)>();
        let done: &'static (Mutex<bool>, Condvar) = Box::leak(Box::default());
        std::thread::spawn(move || {
            while let Ok((task, n)) = receive.recv() {
                (1..n).step_by(2).for_each(task);
                *done.0.lock().expect("no holder panics") = true;
                done.1.notify_one();
            }
        });
        Pair {
            send: Mutex::new(send),
            done,
        }
    }
}

impl Threads for Pair {
    fn count(&self) -> usize {
        2
    }
    fn run(&self, n: usize, task: &(dyn Fn(usize) + Sync)) {
        // SAFETY: the worker is waited for below, before `task` goes out of scope.
        let lasting: Task = unsafe { std::mem::transmute(task) };
        self.send
            .lock()
            .expect("no holder panics")
            .send((lasting, n))
            .expect("the helper lives as long");
        (0..n).step_by(2).for_each(task);
        let mut done = self.done.0.lock().expect("no holder panics");
        while !*done {
            done = self.done.1.wait(done).expect("no holder panics");
        }
        *done = false;
    }
}

/// Best time of one call in microseconds.
fn best(mut call: impl FnMut()) -> f64 {
    let mut least = f64::INFINITY;
    let start = Instant::now();
    let mut runs = 0;
    while runs < 5 || (start.elapsed().as_millis() < 60 && runs < 20_000) {
        let begin = Instant::now();
        call();
        least = least.min(begin.elapsed().as_secs_f64() * 1e6);
        runs += 1;
    }
    least
}

fn main() {
    let pair = Pair::new();
    let unary: &[&InnerLoops] = &[
        &map::EXP,
        &map::TANH,
        &map::LOG,
        &map::SIN,
        &map::SIGMOID,
        &map::ERF,
        &map::GELU_ERF,
        &map::GELU_TANH,
        &map::SQRT,
        &map::RELU,
        &map::LOG1P,
        &map::ARCTAN,
    ];
    let binary: &[&InnerLoops] = &[
        &map::ADD,
        &map::MULTIPLY,
        &map::MAXIMUM,
        &map::LESS,
        &map::POWER,
    ];
    println!(
        "{:<12} {:>9} {:>12} {:>12}",
        "f32", "elements", "1 thread us", "2 threads us"
    );
    for n in [10_000usize, 1_000_000, 10_000_000] {
        let a: Vec<f32> = (0..n).map(|i| 0.25 + (i % 977) as f32 / 400.0).collect();
        let b: Vec<f32> = (0..n).map(|i| 0.5 + (i % 613) as f32 / 300.0).collect();
        let mut y = vec![0f32; n];
        let strides = [4isize];
        let shape = [n];
        let mut measure = |rows: &'static InnerLoops, threads: &dyn Threads| {
            let out_elem = rows.out_elem(Elem::F32);
            let out_strides = [out_elem.size() as isize];
            let outs = [Operand {
                ptr: y.as_mut_ptr().cast(),
                elem: out_elem,
                strides: &out_strides,
            }];
            let input = |v: &[f32]| Operand {
                ptr: v.as_ptr().cast_mut().cast(),
                elem: Elem::F32,
                strides: &strides,
            };
            let ins = [input(&a), input(&b)];
            best(|| {
                // SAFETY: n elements each; the output does not overlap the inputs.
                unsafe {
                    map::run(
                        threads,
                        rows,
                        Elem::F32,
                        black_box(&shape),
                        &outs,
                        &ins[..rows.ins as usize],
                        &[],
                    )
                }
            })
        };
        for rows in binary.iter().chain(unary) {
            let (one, two) = (measure(rows, &Serial), measure(rows, &pair));
            println!("{:<12} {n:>9} {one:>12.2} {two:>12.2}", rows.name);
        }
        let side = (n as f64).sqrt() as usize;
        let (shape, out_strides) = ([side, side], [4 * side as isize, 4]);
        let transposed = [4, 4 * side as isize];
        let mut turn = |threads: &dyn Threads| {
            best(|| {
                // SAFETY: side * side elements on both sides.
                unsafe {
                    copy::copy_nd(
                        threads,
                        4,
                        black_box(&shape),
                        y.as_mut_ptr().cast(),
                        &out_strides,
                        a.as_ptr().cast(),
                        &transposed,
                    );
                }
            })
        };
        let (one, two) = (turn(&Serial), turn(&pair));
        println!(
            "{:<12} {:>9} {one:>12.2} {two:>12.2}",
            "transpose",
            side * side
        );
        let mut special = |name: &str,
                           outs: [isize; 2],
                           a_strides: [isize; 2],
                           b_strides: [isize; 2],
                           shape: [usize; 2]| {
            let mut go = |threads: &dyn Threads| {
                let out = [Operand {
                    ptr: y.as_mut_ptr().cast(),
                    elem: Elem::F32,
                    strides: &outs,
                }];
                let ins = [
                    Operand {
                        ptr: a.as_ptr().cast_mut().cast(),
                        elem: Elem::F32,
                        strides: &a_strides,
                    },
                    Operand {
                        ptr: b.as_ptr().cast_mut().cast(),
                        elem: Elem::F32,
                        strides: &b_strides,
                    },
                ];
                // SAFETY: strides stay inside the n elements of each array.
                best(|| unsafe {
                    map::run(
                        threads,
                        &map::ADD,
                        Elem::F32,
                        black_box(&shape),
                        &out,
                        &ins,
                        &[],
                    )
                })
            };
            let (one, two) = (go(&Serial), go(&pair));
            println!(
                "{name:<12} {:>9} {one:>12.2} {two:>12.2}",
                shape[0] * shape[1]
            );
        };
        let s = 4 * side as isize;
        special("(N,1)+(1,M)", [s, 4], [4, 0], [0, 4], [side, side]);
        special("a + b.T", [s, 4], [s, 4], [4, s], [side, side]);
        special("a[::2]+b", [0, 4], [0, 8], [0, 8], [1, n / 2]);
        special("in place", [s, 4], [s, 4], [4, 0], [side, side]);
    }
}
