use super::*;
use crate::Serial;
use crate::threads::Scoped;
use crate::values::{Values, close};

const BASE: Conv = Conv {
    elem: Elem::F64,
    n: 2,
    groups: 1,
    in_channels: 3,
    out_channels: 5,
    input: [1, 9, 11],
    output: [0; 3],
    kernel: [1, 3, 3],
    stride: [1; 3],
    pad: [0; 3],
    dilation: [1; 3],
};

/// Geometries that cover every code path for padding, strides and groups.
fn geometries() -> Vec<Conv> {
    let mut all = vec![
        BASE,
        Conv {
            pad: [0, 1, 1],
            ..BASE
        },
        Conv {
            pad: [0, 2, 1],
            stride: [1, 2, 3],
            kernel: [1, 2, 4],
            ..BASE
        },
        Conv {
            pad: [0, 2, 3],
            dilation: [1, 2, 3],
            ..BASE
        },
        // Taps that read only padding: at both ends, at one end, between strides, and with some pad that cannot be removed.
        Conv {
            n: 9,
            input: [1, 1, 1],
            pad: [0, 1, 1],
            ..BASE
        },
        Conv {
            n: 9,
            input: [1, 1, 6],
            pad: [0, 2, 1],
            kernel: [1, 4, 3],
            ..BASE
        },
        Conv {
            n: 9,
            input: [2, 1, 2],
            pad: [3, 2, 4],
            kernel: [4, 5, 5],
            dilation: [2, 1, 2],
            ..BASE
        },
        Conv {
            n: 9,
            input: [1, 2, 1],
            pad: [0, 3, 5],
            kernel: [1, 4, 4],
            stride: [1, 3, 2],
            dilation: [1, 2, 3],
            ..BASE
        },
        Conv {
            n: 9,
            input: [1, 1, 2],
            pad: [0, 1, 1],
            in_channels: 6,
            out_channels: 6,
            groups: 6,
            ..BASE
        },
        Conv {
            kernel: [1; 3],
            ..BASE
        },
        Conv {
            kernel: [1; 3],
            stride: [1, 2, 2],
            ..BASE
        },
        Conv {
            kernel: [1; 3],
            input: [1, 40, 50],
            n: 1,
            out_channels: 70,
            ..BASE
        },
        Conv {
            groups: 2,
            in_channels: 4,
            out_channels: 6,
            pad: [0, 1, 1],
            n: 5,
            ..BASE
        },
        // Blocks of images and channels: full ones, partly filled ones, groups, steps, and more positions than one chunk.
        Conv {
            n: 16,
            in_channels: 16,
            out_channels: 32,
            input: [1, 2, 3],
            pad: [0, 1, 1],
            ..BASE
        },
        // In blocks forward only: the input channels do not fill the rows of a block.
        Conv {
            n: 16,
            in_channels: 7,
            out_channels: 16,
            input: [1, 3, 4],
            pad: [0, 1, 0],
            ..BASE
        },
        // Few images, output channels as lanes: slabs, tiles and chunks, positions of several images, steps, groups, cropped kernels.
        Conv {
            n: 3,
            in_channels: 33,
            out_channels: 48,
            input: [1, 7, 9],
            pad: [0, 1, 1],
            ..BASE
        },
        Conv {
            n: 1,
            groups: 2,
            in_channels: 14,
            out_channels: 60,
            input: [3, 17, 6],
            kernel: [2, 2, 3],
            stride: [1, 2, 1],
            pad: [1, 0, 2],
            dilation: [2, 1, 2],
            ..BASE
        },
        Conv {
            n: 2,
            in_channels: 24,
            out_channels: 32,
            input: [1, 5, 6],
            kernel: [1, 1, 1],
            stride: [1, 2, 3],
            pad: [0, 1, 2],
            ..BASE
        },
        Conv {
            n: 1,
            in_channels: 300,
            out_channels: 31,
            input: [1, 1, 2],
            pad: [0, 1, 1],
            ..BASE
        },
        Conv {
            n: 29,
            groups: 2,
            in_channels: 28,
            out_channels: 26,
            input: [1, 3, 5],
            pad: [0, 1, 2],
            stride: [1, 2, 1],
            dilation: [1, 1, 2],
            ..BASE
        },
        Conv {
            n: 7,
            in_channels: 15,
            out_channels: 16,
            input: [1, 4, 4],
            pad: [0, 1, 1],
            ..BASE
        },
        Conv {
            n: 14,
            in_channels: 12,
            out_channels: 14,
            pad: [0, 2, 0],
            stride: [1, 1, 3],
            ..BASE
        },
        Conv {
            n: 16,
            in_channels: 8,
            out_channels: 8,
            input: [3, 4, 2],
            kernel: [2, 3, 1],
            pad: [1, 1, 0],
            ..BASE
        },
        Conv {
            groups: 4,
            in_channels: 4,
            out_channels: 4,
            pad: [0, 1, 1],
            ..BASE
        },
        Conv {
            groups: 3,
            in_channels: 3,
            out_channels: 6,
            pad: [0, 1, 2],
            stride: [1, 2, 1],
            kernel: [1, 3, 5],
            ..BASE
        },
        Conv {
            groups: 3,
            in_channels: 3,
            out_channels: 3,
            stride: [1, 1, 2],
            dilation: [1, 2, 2],
            input: [1, 9, 70],
            ..BASE
        },
        Conv {
            in_channels: 1,
            out_channels: 6,
            input: [1, 28, 28],
            kernel: [1, 5, 5],
            n: 33,
            ..BASE
        },
        Conv {
            in_channels: 20,
            input: [1, 60, 70],
            pad: [0, 1, 1],
            n: 1,
            ..BASE
        },
        Conv {
            in_channels: 300,
            input: [1, 7, 7],
            pad: [0, 1, 1],
            n: 7,
            out_channels: 9,
            ..BASE
        },
        Conv {
            input: [1, 1, 40],
            kernel: [1, 1, 5],
            pad: [0, 0, 2],
            ..BASE
        },
        Conv {
            input: [5, 6, 7],
            kernel: [3, 2, 3],
            pad: [1, 1, 0],
            stride: [2, 1, 2],
            ..BASE
        },
        Conv {
            input: [1, 3, 3],
            kernel: [1, 5, 5],
            pad: [0, 4, 4],
            dilation: [1, 2, 1],
            ..BASE
        },
    ];
    for g in &mut all {
        g.output = std::array::from_fn(|a| {
            output_extent(
                g.input[a],
                g.kernel[a],
                g.stride[a],
                g.pad[a],
                g.dilation[a],
            )
        });
    }
    // More padding at the end than at the start; and an output that does not cover the input.
    all.push(Conv {
        output: [1, 10, 6],
        pad: [0, 1, 1],
        ..BASE
    });
    all.push(Conv {
        groups: 3,
        out_channels: 3,
        output: [1, 10, 6],
        pad: [0, 1, 1],
        ..BASE
    });
    all
}

/// Calls `f(output index, input index, weight index)` for every product of the convolution.
fn products(g: &Conv, mut f: impl FnMut(usize, usize, usize)) {
    let (ic, oc) = g.group();
    let flat = |at: [usize; 3], of: [usize; 3]| (at[0] * of[1] + at[1]) * of[2] + at[2];
    let unflat = |i: usize, of: [usize; 3]| [i / (of[1] * of[2]), i / of[2] % of[1], i % of[2]];
    for n in 0..g.n {
        for o in 0..g.out_channels {
            for p in 0..g.out_len() {
                for c in 0..ic {
                    for t in 0..g.taps() {
                        let (at, tap) = (unflat(p, g.output), unflat(t, g.kernel));
                        let seen: [isize; 3] = std::array::from_fn(|a| {
                            (at[a] * g.stride[a] + tap[a] * g.dilation[a]) as isize
                                - g.pad[a] as isize
                        });
                        if (0..3).all(|a| (0..g.input[a] as isize).contains(&seen[a])) {
                            let channel = o / oc * ic + c;
                            let i = (n * g.in_channels + channel) * g.in_len()
                                + flat(seen.map(|x| x as usize), g.input);
                            f(
                                (n * g.out_channels + o) * g.out_len() + p,
                                i,
                                (o * ic + c) * g.taps() + t,
                            );
                        }
                    }
                }
            }
        }
    }
}

fn check<T: Real>(tolerance: f64) {
    for g in geometries() {
        let g = Conv { elem: T::ELEM, ..g };
        let mut values = Values(g.in_len() as u64);
        let (xs, ys) = (
            g.n * g.in_channels * g.in_len(),
            g.n * g.out_channels * g.out_len(),
        );
        let (x, w, b): (Vec<T>, Vec<T>, Vec<T>) = (
            values.take(xs),
            values.take(g.weights()),
            values.take(g.out_channels),
        );
        let (dy, dxb): (Vec<T>, Vec<T>) = (values.take(ys), values.take(g.in_channels));
        let f = |x: &[T], i: usize| x[i].to_f64();
        let out_plane = |i: usize| i / g.out_len() % g.out_channels;
        let in_plane = |i: usize| i / g.in_len() % g.in_channels;
        let mut want_y: Vec<f64> = (0..ys).map(|i| f(&b, out_plane(i))).collect();
        let mut want_dx: Vec<f64> = (0..xs).map(|i| f(&dxb, in_plane(i))).collect();
        let (mut want_dw, mut want_db) = (vec![0.0; w.len()], vec![0.0; b.len()]);
        products(&g, |o, i, t| {
            want_y[o] += f(&x, i) * f(&w, t);
            want_dx[i] += f(&dy, o) * f(&w, t);
            want_dw[t] += f(&dy, o) * f(&x, i);
        });
        (0..ys).for_each(|i| want_db[out_plane(i)] += f(&dy, i));
        let bytes = |x: &[T]| x.as_ptr().cast::<u8>();
        let mut results: Vec<[Vec<T>; 4]> = vec![];
        for threads in [&Serial as &dyn Threads, &Scoped(3)] {
            let nan = |n: usize| vec![<T as Real>::from_f64(f64::NAN); n];
            let (mut y, mut dx, mut dw, mut db) = (nan(ys), nan(xs), nan(w.len()), nan(b.len()));
            let mut scratch = nan(weight_gradient_scratch_bytes(&g) / size_of::<T>());
            // SAFETY: dense vectors of the geometry's sizes.
            unsafe {
                let dense = Weights::Dense(bytes(&w));
                let to = y.as_mut_ptr().cast();
                forward(
                    threads,
                    &g,
                    bytes(&x),
                    dense,
                    bytes(&b),
                    to,
                    Epilogue::default(),
                );
                let mut with_packed = nan(ys);
                if let Some(form) = packed_form(&g) {
                    let mut packed = nan(form.len_bytes / size_of::<T>());
                    pack(threads, &g, bytes(&w), packed.as_mut_ptr().cast());
                    let packed = Weights::Packed(bytes(&packed));
                    let to = with_packed.as_mut_ptr().cast();
                    forward(
                        threads,
                        &g,
                        bytes(&x),
                        packed,
                        bytes(&b),
                        to,
                        Epilogue::default(),
                    );
                    assert!(
                        y == with_packed,
                        "packed weights change the result of {g:?}"
                    );
                }
                for relu in [true, false] {
                    let to = with_packed.as_mut_ptr().cast();
                    let norm = (!relu).then_some([bytes(&b), bytes(&w), bytes(&x)]);
                    let epilogue = Epilogue {
                        norm,
                        relu,
                        addend: None,
                    };
                    forward(threads, &g, bytes(&x), dense, bytes(&b), to, epilogue);
                    for (i, found) in with_packed.iter().enumerate() {
                        let mut want = [y[i]];
                        let channel = out_plane(i);
                        match relu {
                            true => want = [<T as Real>::from_f64(y[i].to_f64().max(0.0))],
                            false => {
                                let [mean, factor, shift] = [&b, &w, &x].map(|v| v[channel]);
                                let to = want.as_mut_ptr();
                                crate::norm::scale_shift(&y[i], 1, mean, factor, shift, to);
                            }
                        }
                        assert!(*found == want[0], "epilogue of {g:?}, relu: {relu}");
                    }
                    let addend: Vec<T> = y.iter().rev().copied().collect();
                    let (before, to) = (with_packed.clone(), with_packed.as_mut_ptr().cast());
                    let epilogue = Epilogue {
                        addend: Some(bytes(&addend)),
                        ..epilogue
                    };
                    forward(threads, &g, bytes(&x), dense, bytes(&b), to, epilogue);
                    for (i, found) in with_packed.iter().enumerate() {
                        let want = match relu {
                            true => <T as Real>::from_f64((y[i] + addend[i]).to_f64().max(0.0)),
                            false => before[i] + addend[i],
                        };
                        assert!(*found == want, "addend of {g:?}, relu: {relu}");
                    }
                }
                data_gradient(
                    threads,
                    &g,
                    bytes(&dy),
                    bytes(&w),
                    bytes(&dxb),
                    dx.as_mut_ptr().cast(),
                );
                let s = scratch.as_mut_ptr().cast();
                weight_gradient(
                    threads,
                    &g,
                    bytes(&x),
                    bytes(&dy),
                    dw.as_mut_ptr().cast(),
                    s,
                );
                bias_gradient(threads, &g, bytes(&dy), db.as_mut_ptr().cast());
            }
            let name = format!("{g:?}");
            let depth = (g.group().0.max(g.group().1) * g.taps()) as f64;
            close(&format!("y of {name}"), &y, &want_y, tolerance * depth);
            close(&format!("dx of {name}"), &dx, &want_dx, tolerance * depth);
            close(
                &format!("dw of {name}"),
                &dw,
                &want_dw,
                tolerance * (g.n * g.out_len()) as f64,
            );
            close(
                &format!("db of {name}"),
                &db,
                &want_db,
                tolerance * (g.n * g.out_len()) as f64,
            );
            results.push([y, dx, dw, db]);
        }
        assert!(
            results[0] == results[1],
            "thread count changes the result of {g:?}"
        );
    }
}

#[test]
fn f64_matches_reference_loops() {
    check::<f64>(2.0 * f64::EPSILON);
}

#[test]
fn f32_matches_reference_loops() {
    check::<f32>(2.0 * f32::EPSILON as f64);
}

#[test]
fn without_bias_nothing_is_added_and_empty_sums_are_zero() {
    let mut g = Conv {
        output: [1, 7, 9],
        ..BASE
    };
    let mut values = Values(1);
    let (x, w): (Vec<f64>, Vec<f64>) = (values.take(2 * 3 * 99), values.take(135));
    let (mut y, zero) = (vec![f64::NAN; 2 * 5 * 63], vec![0f64; 5]);
    let mut with_zero = y.clone();
    // SAFETY: dense vectors of the geometry's sizes.
    unsafe {
        forward(
            &Serial,
            &g,
            x.as_ptr().cast(),
            Weights::Dense(w.as_ptr().cast()),
            std::ptr::null(),
            y.as_mut_ptr().cast(),
            Epilogue::default(),
        );
        forward(
            &Serial,
            &g,
            x.as_ptr().cast(),
            Weights::Dense(w.as_ptr().cast()),
            zero.as_ptr().cast(),
            with_zero.as_mut_ptr().cast(),
            Epilogue::default(),
        );
    }
    assert_eq!(y, with_zero);
    g.in_channels = 0;
    // SAFETY: no input is read; `y` has the output's size.
    unsafe {
        forward(
            &Serial,
            &g,
            x.as_ptr().cast(),
            Weights::Dense(w.as_ptr().cast()),
            std::ptr::null(),
            y.as_mut_ptr().cast(),
            Epilogue::default(),
        )
    };
    assert!(y.iter().all(|&y| y == 0.0));
}

#[test]
fn output_extent_counts_whole_windows() {
    assert_eq!(output_extent(7, 3, 2, 1, 1), 4);
    assert_eq!(output_extent(7, 3, 1, 0, 3), 1);
    assert_eq!(output_extent(2, 3, 1, 0, 1), 0);
}
