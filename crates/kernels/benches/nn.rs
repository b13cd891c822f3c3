//! Times of the neural-network kernels: `cargo bench -p mxnet-kernels --bench nn -- [section…]`, sections as in `main`.
//! Prints the median wall time on one and two threads, and GF/s or GB/s where a kernel has a natural count.

use mxnet_kernels::conv::{self, Conv};
use mxnet_kernels::gemm::{Epilogue, Matrix, Problem, gemm};
use mxnet_kernels::norm::{self, Affine, BatchNorm, Centre, RowNorm, Statistics};
use mxnet_kernels::pool::{self, Kind, Pool};
use mxnet_kernels::rnn::{self, Cell, Cotangents, Direction, Gradients, Parameters, Rnn};
use mxnet_kernels::softmax::{self, Softmax};
use mxnet_kernels::{Elem, Scoped, Serial, Threads};
use std::time::Instant;

/// Median time in seconds of as many calls as fit in 0.6 s.
fn median(mut f: impl FnMut()) -> f64 {
    f();
    let start = Instant::now();
    let mut times = vec![];
    while times.len() < 3 || (start.elapsed().as_secs_f64() < 0.6 && times.len() < 5000) {
        let t = Instant::now();
        f();
        times.push(t.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// One line: name, medians on one and two threads, `count / time` in billions.
fn report(name: &str, count: f64, unit: &str, mut f: impl FnMut(&dyn Threads)) {
    let (one, two) = (median(|| f(&Serial)), median(|| f(&Scoped(2))));
    let rate = |t: f64| count / t / 1e9;
    println!(
        "{name:44} {:10.1} us {:10.1} us   {:7.1} {:7.1} {unit}",
        one * 1e6,
        two * 1e6,
        rate(one),
        rate(two)
    );
}

/// Values in [-1, 1), reproducible.
fn values(n: usize) -> Vec<f32> {
    let mut x = n as u64 | 1;
    let mut next = || {
        x = x
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (x >> 40) as f32 / (1u32 << 23) as f32 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

fn matrix(ptr: *const u8, size: usize, cols: usize, strides: &[isize]) -> Matrix<'_> {
    Matrix {
        ptr: ptr as *mut u8,
        row_stride: (cols * size) as isize,
        col_stride: size as isize,
        batch_strides: strides,
    }
}

fn gemm_section() {
    let sizes: &[(&str, usize, usize, usize, usize)] = &[
        ("4", 1, 4, 4, 4),
        ("8", 1, 8, 8, 8),
        ("16", 1, 16, 16, 16),
        ("64", 1, 64, 64, 64),
        ("256", 1, 256, 256, 256),
        ("512", 1, 512, 512, 512),
        ("1024", 1, 1024, 1024, 1024),
        ("2048", 1, 2048, 2048, 2048),
        ("64 x 128x64", 64, 128, 128, 64),
        ("m k n 4096 64 4096", 1, 4096, 4096, 64),
        ("m k n 1 4096 4096", 1, 1, 4096, 4096),
        ("m k n 4096 4096 1", 1, 4096, 1, 4096),
    ];
    for (elem, name) in [
        (Elem::F32, "f32"),
        (Elem::F64, "f64"),
        (Elem::BF16, "bf16"),
        (Elem::I32, "i32"),
        (Elem::C64, "c64"),
    ] {
        for &(label, batch, m, n, k) in sizes {
            if !matches!(elem, Elem::F32) && (m * n * k > 1 << 30 || batch > 1) {
                continue;
            }
            let size = elem.size();
            // Zeros in every type; the speed of dense code does not depend on the values.
            let buffer = |len: usize| vec![0u64; (len * size).div_ceil(8)];
            let (a, b, mut c) = (
                buffer(batch * m * k),
                buffer(batch * k * n),
                buffer(batch * m * n),
            );
            let strides = [
                (m * k * size) as isize,
                (k * n * size) as isize,
                (m * n * size) as isize,
            ];
            let c_ptr: *mut u64 = c.as_mut_ptr();
            let p = Problem {
                elem,
                batch: &[batch],
                m,
                n,
                k,
                alpha: 1.0,
                beta: 0.0,
            };
            let (ma, mb) = (
                matrix(a.as_ptr().cast(), size, k, &strides[..1]),
                matrix(b.as_ptr().cast(), size, n, &strides[1..2]),
            );
            let mc = matrix(c_ptr.cast(), size, n, &strides[2..]);
            let repeat = if m * n * k <= 4096 { 100 } else { 1 };
            report(
                &format!(
                    "gemm {name} {label}{}",
                    if repeat > 1 { " (100 calls)" } else { "" }
                ),
                (repeat * 2 * batch * m * n * k) as f64,
                "GF/s",
                |threads| {
                    for _ in 0..repeat {
                        // SAFETY: the buffers hold dense matrices of these sizes.
                        unsafe { gemm(threads, &p, &ma, &mb, &mc, &Epilogue::NONE) }
                    }
                },
            );
            if label == "1024" && elem == Elem::F32 {
                let bt = Matrix {
                    row_stride: 4,
                    col_stride: 4 * k as isize,
                    ..mb
                };
                report(
                    "gemm f32 1024 a @ b.T",
                    (2 * m * n * k) as f64,
                    "GF/s",
                    |threads| {
                        // SAFETY: the buffers hold dense matrices of these sizes.
                        unsafe { gemm(threads, &p, &ma, &bt, &mc, &Epilogue::NONE) }
                    },
                );
            }
        }
    }
}

fn conv_section() {
    let unfused = Conv {
        elem: Elem::F32,
        n: 32,
        groups: 1,
        in_channels: 64,
        out_channels: 64,
        input: [1, 56, 56],
        output: [1, 56, 56],
        kernel: [1, 3, 3],
        stride: [1; 3],
        pad: [0, 1, 1],
        dilation: [1; 3],
    };
    let shapes = [
        ("32x64x56x56 3x3", unfused),
        (
            "1x1 64->256",
            Conv {
                out_channels: 256,
                kernel: [1; 3],
                pad: [0; 3],
                ..unfused
            },
        ),
        (
            "depthwise 3x3 c64",
            Conv {
                groups: 64,
                ..unfused
            },
        ),
        (
            "LeNet first, batch 128",
            Conv {
                n: 128,
                in_channels: 1,
                out_channels: 6,
                input: [1, 28, 28],
                output: [1, 28, 28],
                kernel: [1, 5, 5],
                pad: [0, 2, 2],
                ..unfused
            },
        ),
        (
            "20->50 12x12 5x5, batch 128",
            Conv {
                n: 128,
                in_channels: 20,
                out_channels: 50,
                input: [1, 12, 12],
                output: [1, 8, 8],
                kernel: [1, 5, 5],
                pad: [0; 3],
                ..unfused
            },
        ),
        (
            "512x7x7 3x3, batch 8",
            Conv {
                n: 8,
                in_channels: 512,
                out_channels: 512,
                input: [1, 7, 7],
                output: [1, 7, 7],
                ..unfused
            },
        ),
        (
            "128->256 28x28 3x3/2, batch 8",
            Conv {
                n: 8,
                in_channels: 128,
                out_channels: 256,
                input: [1, 28, 28],
                output: [1, 14, 14],
                stride: [1, 2, 2],
                ..unfused
            },
        ),
    ];
    for (name, g) in shapes {
        let len = |c: usize, s: [usize; 3]| g.n * c * s.iter().product::<usize>();
        let (x, mut dx) = (
            values(len(g.in_channels, g.input)),
            values(len(g.in_channels, g.input)),
        );
        let (y, mut dy) = (
            values(len(g.out_channels, g.output)),
            values(len(g.out_channels, g.output)),
        );
        let weights =
            g.out_channels * g.in_channels / g.groups * g.kernel.iter().product::<usize>();
        let (w, mut dw) = (values(weights), values(weights));
        let mut scratch = vec![0u8; conv::weight_gradient_scratch_bytes(&g)];
        let flops = 2.0 * y.len() as f64 * (weights / g.out_channels) as f64;
        let (px, pw, py) = (
            x.as_ptr().cast::<u8>(),
            w.as_ptr().cast::<u8>(),
            y.as_ptr().cast::<u8>(),
        );
        let (pdx, pdw, pdy) = (
            dx.as_mut_ptr().cast::<u8>(),
            dw.as_mut_ptr().cast::<u8>(),
            dy.as_mut_ptr().cast::<u8>(),
        );
        // SAFETY: vectors of the geometry's sizes.
        let forward = |t: &dyn Threads| unsafe {
            conv::forward(
                t,
                &g,
                px,
                conv::Weights::Dense(pw),
                std::ptr::null(),
                pdy,
                conv::Epilogue::default(),
            )
        };
        report(&format!("conv {name} fwd"), flops, "GF/s", forward);
        // SAFETY: as above.
        let data =
            |t: &dyn Threads| unsafe { conv::data_gradient(t, &g, py, pw, std::ptr::null(), pdx) };
        report(&format!("conv {name} data gradient"), flops, "GF/s", data);
        let memory = scratch.as_mut_ptr();
        // SAFETY: as above; the scratch has the required size.
        let weight = |t: &dyn Threads| unsafe { conv::weight_gradient(t, &g, px, py, pdw, memory) };
        report(
            &format!("conv {name} weight gradient"),
            flops,
            "GF/s",
            weight,
        );
    }
}

fn pool_section() {
    let max = Pool {
        elem: Elem::F32,
        kind: Kind::Max,
        planes: 32 * 64,
        input: [1, 56, 56],
        output: [1, 28, 28],
        kernel: [1, 3, 3],
        stride: [1, 2, 2],
        pad: [0, 1, 1],
        pad_end: [0, 1, 1],
    };
    let global = Pool {
        kind: Kind::Average,
        output: [1; 3],
        kernel: [1, 56, 56],
        stride: [1; 3],
        pad: [0; 3],
        pad_end: [0; 3],
        ..max
    };
    let small = Pool {
        input: [1, 16, 16],
        output: [1, 8, 8],
        ..max
    };
    let squares = Pool {
        planes: 128 * 20,
        input: [1, 24, 24],
        output: [1, 12, 12],
        kernel: [1, 2, 2],
        pad: [0; 3],
        pad_end: [0; 3],
        ..max
    };
    for (name, g) in [
        ("max 3x3/2 of 16x16", small),
        ("max 2x2/2 of 24x24", squares),
        ("max 3x3/2", max),
        (
            "average 3x3/2",
            Pool {
                kind: Kind::Average,
                ..max
            },
        ),
        ("average global", global),
    ] {
        let outputs = g.planes * g.output.iter().product::<usize>();
        let (x, mut dx, mut y, dy) = (
            values(g.planes * g.input.iter().product::<usize>()),
            values(g.planes * g.input.iter().product::<usize>()),
            values(outputs),
            values(outputs),
        );
        let bytes = 4.0 * (x.len() + y.len()) as f64;
        let (px, pdx, py, pdy): (*const u8, *mut u8, *mut u8, *const u8) = (
            x.as_ptr().cast(),
            dx.as_mut_ptr().cast(),
            y.as_mut_ptr().cast(),
            dy.as_ptr().cast(),
        );
        // SAFETY: vectors of the geometry's sizes.
        report(
            &format!("pool {name} {:?} fwd", g.input),
            bytes,
            "GB/s",
            |t| unsafe { pool::forward(t, &g, px, py) },
        );
        // SAFETY: as above.
        report(
            &format!("pool {name} {:?} bwd", g.input),
            bytes,
            "GB/s",
            |t| unsafe { pool::backward(t, &g, px, py, pdy, pdx) },
        );
    }
}

fn norm_section() {
    let n = 32 * 64 * 56 * 56;
    let (x, dy, mut y) = (values(n), values(n), values(n));
    let mut small: Vec<Vec<f32>> = (0..6).map(|_| vec![1.0; 4096]).collect();
    let small: Vec<*mut u8> = small.iter_mut().map(|v| v.as_mut_ptr().cast()).collect();
    let (px, pdy, py): (*const u8, *const u8, *mut u8) =
        (x.as_ptr().cast(), dy.as_ptr().cast(), y.as_mut_ptr().cast());
    for (name, g) in [
        (
            "batch_norm 32x64x56x56",
            BatchNorm {
                elem: Elem::F32,
                n: 32,
                c: 64,
                inner: 56 * 56,
                epsilon: 1e-5,
            },
        ),
        (
            "batch_norm 128x1024",
            BatchNorm {
                elem: Elem::F32,
                n: 128,
                c: 1024,
                inner: 1,
                epsilon: 1e-5,
            },
        ),
    ] {
        let bytes = 4.0 * (g.n * g.c * g.inner) as f64;
        // SAFETY: vectors of the geometry's sizes.
        report(&format!("{name} fwd"), 2.0 * bytes, "GB/s", |t| unsafe {
            norm::batch_norm_training(t, &g, px, small[0], small[1], py, small[2], small[3])
        });
        // SAFETY: as above.
        report(&format!("{name} bwd"), 3.0 * bytes, "GB/s", |t| unsafe {
            norm::batch_norm_backward(
                t,
                &g,
                Statistics::Batch,
                px,
                pdy,
                small[0],
                small[2],
                small[3],
                py,
                small[4],
                small[5],
            )
        });
    }
    let g = RowNorm {
        elem: Elem::F32,
        rows: 1000,
        len: 1000,
        centre: Centre::Mean,
        affine: Affine::PerElement,
        epsilon: 1e-5,
    };
    let mut scratch = vec![0u8; norm::row_norm_backward_scratch_bytes(&g)];
    // SAFETY: vectors of the geometry's sizes.
    report("layer_norm 1000x1000 fwd", 8e6, "GB/s", |t| unsafe {
        norm::row_norm(t, &g, px, small[0], small[1], py, small[2], small[3])
    });
    // SAFETY: as above.
    report("layer_norm 1000x1000 bwd", 12e6, "GB/s", |t| unsafe {
        norm::row_norm_backward(
            t,
            &g,
            px,
            pdy,
            small[0],
            small[2],
            small[3],
            py,
            small[4],
            small[5],
            scratch.as_mut_ptr(),
        )
    });
}

fn softmax_section() {
    for n in [1000usize, 3162] {
        let g = Softmax {
            elem: Elem::F32,
            outer: n,
            len: n,
            inner: 1,
            temperature: 1.0,
        };
        let (x, dy, mut y) = (values(n * n), values(n * n), values(n * n));
        let (px, pdy, py): (*const u8, *const u8, *mut u8) =
            (x.as_ptr().cast(), dy.as_ptr().cast(), y.as_mut_ptr().cast());
        let bytes = 4.0 * (n * n) as f64;
        // SAFETY: vectors of the geometry's sizes.
        report(
            &format!("softmax {n}x{n} fwd"),
            2.0 * bytes,
            "GB/s",
            |t| unsafe {
                softmax::softmax(t, &g, softmax::Kind::Softmax, px, std::ptr::null(), py)
            },
        );
        // SAFETY: as above.
        report(
            &format!("softmax {n}x{n} bwd"),
            3.0 * bytes,
            "GB/s",
            |t| unsafe {
                softmax::softmax_backward(
                    t,
                    &g,
                    softmax::Kind::Softmax,
                    px,
                    pdy,
                    std::ptr::null(),
                    py,
                )
            },
        );
    }
}

fn rnn_section() {
    for (name, cell, batch) in [
        ("LSTM", Cell::Lstm, 32),
        ("GRU", Cell::Gru, 32),
        ("LSTM", Cell::Lstm, 1),
    ] {
        let g = Rnn {
            elem: Elem::F32,
            cell,
            direction: Direction::Forward,
            time: 64,
            batch,
            input: 256,
            hidden: 256,
        };
        let (states, width) = (64 * batch * 256, cell.gates() * 256);
        let (x, dy, mut y, mut dx) = (
            values(states),
            values(states),
            vec![0f32; states],
            vec![0f32; states],
        );
        let mut weights: Vec<Vec<f32>> = (0..4)
            .map(|_| values(width * 256).iter().map(|w| w * 0.06).collect())
            .collect();
        let mut bias = vec![0f32; width];
        let (mut w, mut s) = (
            vec![0f32; rnn::workspace_bytes(&g) / 4],
            vec![0f32; rnn::scratch_bytes(&g) / 4],
        );
        let pw: Vec<*mut u8> = weights.iter_mut().map(|w| w.as_mut_ptr().cast()).collect();
        let (null, none) = (std::ptr::null(), std::ptr::null_mut());
        let p = Parameters {
            wi: pw[0],
            wh: pw[1],
            bi: null,
            bh: null,
        };
        let pb: *mut u8 = bias.as_mut_ptr().cast();
        let gradients = Gradients {
            dx: dx.as_mut_ptr().cast(),
            dh0: none,
            dc0: none,
            dwi: pw[2],
            dwh: pw[3],
            dbi: pb,
            dbh: pb,
        };
        let cotangents = Cotangents {
            dy: dy.as_ptr().cast(),
            dhn: null,
            dcn: null,
        };
        let (px, py): (*const u8, *mut u8) = (x.as_ptr().cast(), y.as_mut_ptr().cast());
        let (w, s): (*mut u8, *mut u8) = (w.as_mut_ptr().cast(), s.as_mut_ptr().cast());
        let flops = 2.0 * (64 * batch * width * 512) as f64;
        // SAFETY: vectors of the layer's sizes.
        let forward = |t: &dyn Threads| unsafe {
            rnn::forward(
                t,
                &g,
                &p,
                rnn::Packed::NONE,
                px,
                null,
                null,
                None,
                py,
                none,
                none,
                w,
                s,
            )
        };
        report(
            &format!("{name} T64 B{batch} I256 H256 fwd"),
            flops,
            "GF/s",
            forward,
        );
        report(
            &format!("{name} T64 B{batch} I256 H256 fwd + bwd"),
            3.0 * flops,
            "GF/s",
            |t| {
                forward(t);
                // SAFETY: as above.
                unsafe {
                    rnn::backward(
                        t,
                        &g,
                        &p,
                        px,
                        null,
                        null,
                        None,
                        py,
                        &cotangents,
                        &gradients,
                        w,
                        s,
                    )
                }
            },
        );
    }
}

fn main() {
    let sections: [(&str, fn()); 6] = [
        ("gemm", gemm_section),
        ("conv", conv_section),
        ("pool", pool_section),
        ("norm", norm_section),
        ("softmax", softmax_section),
        ("rnn", rnn_section),
    ];
    let asked: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .collect();
    for (name, run) in sections {
        if asked.is_empty() || asked.iter().any(|a| a == name) {
            run();
        }
    }
}
