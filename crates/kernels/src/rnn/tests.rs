use super::*;
use crate::Serial;
use crate::threads::Scoped;
use crate::values::{Values, close};

/// Operands in the order x, h0, c0, wi, wh, bi, bh.
type Operands = [Vec<f64>; 7];

/// The layer as f64 loops: `(y, hn, cn)`.
fn reference(
    g: &Rnn,
    lengths: Option<&[usize]>,
    [x, h0, c0, wi, wh, bi, bh]: &Operands,
) -> [Vec<f64>; 3] {
    let (hidden, mut h, mut c) = (g.hidden, h0.clone(), c0.clone());
    let mut y = vec![0.0; g.time * g.state()];
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    for s in 0..g.time {
        let t = g.step(s);
        let before = h.clone();
        let goes_on = |b: &usize| lengths.is_none_or(|lengths| t < lengths[*b]);
        for b in (0..g.batch).filter(goes_on) {
            for u in 0..hidden {
                let gate = |k: usize| {
                    let row = k * hidden + u;
                    let i: f64 = (0..g.input)
                        .map(|j| wi[row * g.input + j] * x[(t * g.batch + b) * g.input + j])
                        .sum();
                    let h: f64 = (0..hidden)
                        .map(|j| wh[row * hidden + j] * before[b * hidden + j])
                        .sum();
                    (i + bi[row], h + bh[row])
                };
                let sum = |k: usize| gate(k).0 + gate(k).1;
                let at = b * hidden + u;
                h[at] = match g.cell {
                    Cell::Lstm => {
                        c[at] = sigmoid(sum(1)) * c[at] + sigmoid(sum(0)) * sum(2).tanh();
                        sigmoid(sum(3)) * c[at].tanh()
                    }
                    Cell::Gru => {
                        let (r, z, (i, h)) = (sigmoid(sum(0)), sigmoid(sum(1)), gate(2));
                        (1.0 - z) * (i + r * h).tanh() + z * before[at]
                    }
                    Cell::Tanh => sum(0).tanh(),
                    Cell::Relu => sum(0).max(0.0),
                };
            }
        }
        for b in (0..g.batch).filter(goes_on) {
            let own = b * hidden..(b + 1) * hidden;
            y[t * g.state()..][own.clone()].copy_from_slice(&h[own]);
        }
    }
    [y, h, c]
}

fn layers() -> Vec<(Rnn, bool, Option<&'static [usize]>)> {
    let mut all = vec![];
    for cell in [Cell::Lstm, Cell::Gru, Cell::Tanh, Cell::Relu] {
        for direction in [Direction::Forward, Direction::Reverse] {
            let small = Rnn {
                elem: Elem::F64,
                cell,
                direction,
                time: 5,
                batch: 3,
                input: 4,
                hidden: 6,
            };
            all.push((small, true, None));
            for lengths in [&[5, 2, 0], &[1, 5, 3], &[0, 0, 0]] {
                all.push((small, true, Some(lengths.as_slice())));
            }
            all.push((small, false, Some(&[3, 5, 1])));
            all.push((
                Rnn {
                    batch: 1,
                    hidden: 7,
                    ..small
                },
                false,
                None,
            ));
            all.push((Rnn { time: 1, ..small }, true, None));
        }
        // Enough work for several blocks of units, with a shorter last one.
        all.push((
            Rnn {
                elem: Elem::F64,
                cell,
                direction: Direction::Forward,
                time: 2,
                batch: 130,
                input: 3,
                hidden: 136,
            },
            true,
            None,
        ));
        // One sequence with several full panels of units, and a last one that is not full.
        all.push((
            Rnn {
                elem: Elem::F64,
                cell,
                direction: Direction::Forward,
                time: 3,
                batch: 1,
                input: 3,
                hidden: 300,
            },
            true,
            None,
        ));
    }
    all
}

fn check<T: Real>(tolerance: f64) {
    for (g, with_state, lengths) in layers() {
        let g = Rnn { elem: T::ELEM, ..g };
        let (state, width, large) = (g.state(), g.width(), g.hidden > 100);
        let sizes = [
            g.time * g.batch * g.input,
            state,
            state,
            width * g.input,
            width * g.hidden,
            width,
            width,
        ];
        let mut values = Values(g.hidden as u64 + width as u64);
        let mut typed: [Vec<T>; 7] = sizes.map(|n| values.take(n));
        if large {
            typed[4].iter_mut().for_each(|w| *w *= T::from_f64(0.1));
        }
        if !with_state {
            (typed[1], typed[2]) = (vec![T::ZERO; state], vec![T::ZERO; state]);
        }
        let operands: Operands = typed
            .clone()
            .map(|x| x.iter().map(|x| x.to_f64()).collect());
        let want = reference(&g, lengths, &operands);
        let d: [Vec<T>; 3] = [
            values.take(g.time * state),
            values.take(state),
            values.take(state),
        ];
        let weights: [Vec<f64>; 3] =
            std::array::from_fn(|i| d[i].iter().map(|x| x.to_f64()).collect());
        let outputs = if g.cell == Cell::Lstm { 3 } else { 2 };
        let loss = |operands: &Operands| -> f64 {
            let out = reference(&g, lengths, operands);
            (0..outputs)
                .map(|i| {
                    out[i]
                        .iter()
                        .zip(&weights[i])
                        .map(|(a, b)| a * b)
                        .sum::<f64>()
                })
                .sum()
        };
        let p = |x: &[T]| x.as_ptr().cast::<u8>();
        let state_of = |x: &[T]| if with_state { p(x) } else { std::ptr::null() };
        let mut previous = None;
        for threads in [&Serial as &dyn Threads, &Scoped(3)] {
            let nan = |n: usize| vec![<T as Real>::from_f64(f64::NAN); n];
            let (mut y, mut hn, mut cn) = (nan(g.time * state), nan(state), nan(state));
            let mut grads: [Vec<T>; 7] = sizes.map(nan);
            let (mut workspace, mut scratch) = (
                nan(workspace_bytes(&g) / size_of::<T>()),
                nan(scratch_bytes(&g) / size_of::<T>()),
            );
            let m = |x: &mut Vec<T>| x.as_mut_ptr().cast::<u8>();
            let parameters = Parameters {
                wi: p(&typed[3]),
                wh: p(&typed[4]),
                bi: p(&typed[5]),
                bh: p(&typed[6]),
            };
            let (x, h0, c0) = (p(&typed[0]), state_of(&typed[1]), state_of(&typed[2]));
            let [dx, dh0, dc0, dwi, dwh, dbi, dbh] = grads.each_mut().map(m);
            // SAFETY: dense vectors of the layer's sizes.
            unsafe {
                let (w, s) = (m(&mut workspace), m(&mut scratch));
                forward(
                    threads,
                    &g,
                    &parameters,
                    Packed::NONE,
                    x,
                    h0,
                    c0,
                    lengths,
                    m(&mut y),
                    m(&mut hn),
                    m(&mut cn),
                    w,
                    s,
                );
                let cotangents = Cotangents {
                    dy: p(&d[0]),
                    dhn: p(&d[1]),
                    dcn: p(&d[2]),
                };
                let gradients = Gradients {
                    dx,
                    dh0,
                    dc0,
                    dwi,
                    dwh,
                    dbi,
                    dbh,
                };
                backward(
                    threads,
                    &g,
                    &parameters,
                    x,
                    h0,
                    c0,
                    lengths,
                    m(&mut y.clone()),
                    &cotangents,
                    &gradients,
                    w,
                    s,
                );
            }
            let mut again = nan(g.time * state);
            // SAFETY: as above; the packed weights have the sizes asked for.
            unsafe {
                let mut wi = packed_input_bytes(&g).map(|bytes| nan(bytes / size_of::<T>()));
                let mut wh = nan(packed_state_bytes(&g) / size_of::<T>());
                if let Some(wi) = &mut wi {
                    pack_input(threads, &g, parameters.wi, m(wi));
                }
                pack_state(threads, &g, parameters.wh, m(&mut wh));
                let packed = Packed {
                    wi: wi.as_deref().map_or(std::ptr::null(), p),
                    wh: p(&wh),
                };
                // Weights that are packed are not read.
                let unread = Parameters {
                    wi: if wi.is_some() {
                        std::ptr::null()
                    } else {
                        parameters.wi
                    },
                    wh: std::ptr::null(),
                    ..parameters
                };
                let (w, s) = (m(&mut workspace), m(&mut scratch));
                let (hn, cn) = (std::ptr::null_mut(), std::ptr::null_mut());
                forward(
                    threads,
                    &g,
                    &unread,
                    packed,
                    x,
                    h0,
                    c0,
                    lengths,
                    m(&mut again),
                    hn,
                    cn,
                    w,
                    s,
                );
            }
            assert!(again == y, "packed weights change the result of {g:?}");
            close(&format!("y of {g:?}"), &y, &want[0], tolerance * 256.0);
            close(&format!("hn of {g:?}"), &hn, &want[1], tolerance * 256.0);
            if g.cell == Cell::Lstm {
                close(&format!("cn of {g:?}"), &cn, &want[2], tolerance * 256.0);
            } else {
                (cn, grads[2]) = (vec![], vec![]);
            }
            if previous.is_none() && !(large && T::ELEM == Elem::F32) {
                for (i, name) in ["dx", "dh0", "dc0", "dwi", "dwh", "dbi", "dbh"]
                    .iter()
                    .enumerate()
                {
                    // The f64 loops are too slow for finite differences of every gradient of the large layer.
                    if large && *name != "dx" && *name != "dwh" {
                        continue;
                    }
                    let picks = if large { 2 } else { 11 };
                    for at in (0..grads[i].len()).step_by(grads[i].len() / picks + 1) {
                        let moved = |h: f64| {
                            let mut operands = operands.clone();
                            operands[i][at] += h;
                            loss(&operands)
                        };
                        let h = 1e-4;
                        let slope = (8.0 * (moved(h) - moved(-h))
                            - (moved(2.0 * h) - moved(-2.0 * h)))
                            / (12.0 * h);
                        close(
                            &format!("{name}[{at}] of {g:?}"),
                            &grads[i][at..=at],
                            &[slope],
                            (tolerance * 2048.0).max(2e-8),
                        );
                    }
                }
            }
            let all = (y, hn, cn, grads);
            assert!(
                previous.is_none_or(|before| before == all),
                "thread count changes the result of {g:?}"
            );
            previous = Some(all);
        }
    }
}

#[test]
fn f64_matches_reference_loops_and_differences() {
    check::<f64>(f64::EPSILON);
}

#[test]
fn f32_matches_reference_loops_and_differences() {
    check::<f32>(f32::EPSILON as f64);
}

#[test]
fn missing_biases_and_cotangents_are_zero() {
    let g = Rnn {
        elem: Elem::F64,
        cell: Cell::Lstm,
        direction: Direction::Forward,
        time: 3,
        batch: 2,
        input: 2,
        hidden: 3,
    };
    let mut values = Values(8);
    let (x, wi, wh, dy): (Vec<f64>, Vec<f64>, Vec<f64>, Vec<f64>) = (
        values.take(12),
        values.take(24),
        values.take(36),
        values.take(18),
    );
    let zeros = [0f64; 12];
    let (null, z) = (std::ptr::null::<u8>(), zeros.as_ptr().cast::<u8>());
    let run = |bias: *const u8, last: *const u8| {
        let (mut y, mut dwi) = (vec![0f64; 18], vec![0f64; 24]);
        let (mut w, mut s) = (
            vec![0u64; workspace_bytes(&g) / 8],
            vec![0u64; scratch_bytes(&g) / 8],
        );
        let p = Parameters {
            wi: wi.as_ptr().cast(),
            wh: wh.as_ptr().cast(),
            bi: bias,
            bh: bias,
        };
        let none = std::ptr::null_mut();
        let gradients = Gradients {
            dx: none,
            dh0: none,
            dc0: none,
            dwi: dwi.as_mut_ptr().cast(),
            dwh: none,
            dbi: none,
            dbh: none,
        };
        let cotangents = Cotangents {
            dy: dy.as_ptr().cast(),
            dhn: last,
            dcn: last,
        };
        let (px, py, w, s) = (
            x.as_ptr().cast(),
            y.as_mut_ptr().cast::<u8>(),
            w.as_mut_ptr().cast(),
            s.as_mut_ptr().cast(),
        );
        // SAFETY: dense vectors of the layer's sizes.
        unsafe {
            forward(
                &Serial,
                &g,
                &p,
                Packed::NONE,
                px,
                last,
                last,
                None,
                py,
                none,
                none,
                w,
                s,
            );
            backward(
                &Serial,
                &g,
                &p,
                px,
                last,
                last,
                None,
                py,
                &cotangents,
                &gradients,
                w,
                s,
            );
        }
        (y, dwi)
    };
    let (with, without) = (run(z, z), run(null, null));
    assert!(with.0.iter().any(|&y| y != 0.0) && with.1.iter().any(|&d| d != 0.0));
    close("y", &without.0, &with.0, 4.0 * f64::EPSILON);
    close("dwi", &without.1, &with.1, 16.0 * f64::EPSILON);
}
