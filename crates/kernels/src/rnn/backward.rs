//! The backward pass. The gate activations stored by the forward pass are replaced, step by step, by the cotangents of their pre-activations.

use super::{Cell, Cotangents, Gradients, Parameters, Rnn, copy_state, gates, product};
use crate::Threads;
use crate::gemm::{self, GemmFloat, Tile};
use crate::norm::sum_columns;
use crate::real::{Real, Shared};

/// Cotangents of products with `wh`: rows of `width` elements, `stride` apart, for the gates from column `gate * hidden` on.
struct Share<T> {
    from: Shared<T>,
    stride: usize,
    gate: usize,
    width: usize,
}

/// # Safety
/// Same as for `rnn::backward`.
#[allow(clippy::too_many_arguments, reason = "the operator's operands")]
pub(super) unsafe fn run<T: Real + GemmFloat>(
    threads: &dyn Threads,
    g: &Rnn,
    p: &Parameters,
    lengths: Option<&[usize]>,
    [x, h0, c0, y]: [Shared<T>; 4],
    cotangents: &Cotangents,
    gradients: &Gradients,
    [workspace, scratch]: [Shared<T>; 2],
) {
    let (width, state, hidden) = (g.width(), g.state(), g.hidden);
    let (sums, beside) = (workspace, Shared(workspace.at(g.workspace_lens().0)));
    let (dh, dc) = (scratch, Shared(scratch.at(state)));
    let typed = |p: *const u8| Shared(p.cast_mut().cast::<T>());
    let (wh, dy) = (typed(p.wh), typed(cotangents.dy));
    // From here on, the elements of `sums` are replaced by the cotangents of the pre-activations, step by step.
    let shares = |t: usize| -> [Option<Share<T>>; 2] {
        let all = Share {
            from: Shared(sums.at(t * g.batch * width)),
            stride: width,
            gate: 0,
            width,
        };
        if g.cell != Cell::Gru {
            return [Some(all), None];
        }
        // For n, the reset gate multiplies the hidden product, whose cotangent is therefore stored separately.
        let of_n = Share {
            from: Shared(beside.at(t * state)),
            stride: hidden,
            gate: 2,
            width: hidden,
        };
        [
            Some(Share {
                width: 2 * hidden,
                ..all
            }),
            Some(of_n),
        ]
    };
    // dh (units of a block) += cotangents of step t's pre-activations @ wh.
    let through_wh = |t: usize, first: usize, units: usize| {
        for share in shares(t).into_iter().flatten() {
            // SAFETY: the cotangents of step t are complete; only this task writes these units of `dh`.
            unsafe {
                gemm::dense(&Tile {
                    m: g.batch,
                    n: units,
                    k: share.width,
                    a: share.from.at(0).cast_const(),
                    a_strides: (share.stride as isize, 1),
                    b: wh.at(share.gate * hidden * hidden + first).cast_const(),
                    b_strides: (hidden as isize, 1),
                    c: dh.at(first),
                    c_strides: (hidden as isize, 1),
                    alpha: T::ONE,
                    beta: T::ONE,
                });
            }
        }
    };
    // SAFETY: the scratch holds two states; cotangents that are not null hold one.
    unsafe {
        start(dh, typed(cotangents.dhn), state);
        start(
            dc,
            typed(if g.cell == Cell::Lstm {
                cotangents.dcn
            } else {
                std::ptr::null()
            }),
            state,
        );
    }
    for (b, &length) in lengths.unwrap_or_default().iter().enumerate() {
        for t in length..g.time {
            // Reverse direction: the first valid step was preceded by the initial state, so it is stored in the padding.
            // SAFETY: a row of the result.
            unsafe { copy_state(h0, b * hidden, y.at(t * state + b * hidden), hidden) }
        }
    }
    for s in (0..g.time).rev() {
        let t = g.step(s);
        let before = if s == 0 { None } else { Some(g.step(s - 1)) };
        let h_prev = before.map_or(h0, |b| Shared(y.at(b * state)));
        let c_prev = before.map_or(c0, |b| Shared(beside.at(b * state)));
        g.each_block(threads, |first, units| {
            if s + 1 < g.time {
                through_wh(g.step(s + 1), first, units);
            }
            // SAFETY: gates, cells and cotangents of step t for the units of this task.
            unsafe {
                for b in 0..g.batch {
                    let (row, own) = (
                        sums.at((t * g.batch + b) * width + first),
                        b * hidden + first,
                    );
                    let at = t * state + own;
                    if lengths.is_some_and(|lengths| t >= lengths[b]) {
                        // A step of the padding: the cotangents of the states pass unchanged.
                        let zero = Shared(std::ptr::null_mut());
                        for gate in 0..g.cell.gates() {
                            copy_state(zero, 0, row.add(gate * hidden), units);
                        }
                        if g.cell == Cell::Gru {
                            copy_state(zero, 0, beside.at(at), units);
                        }
                        continue;
                    }
                    for u in 0..units {
                        *dh.at(own + u) += *dy.at(at + u);
                    }
                    let of = |state: Shared<T>| {
                        if state.is_null() {
                            std::ptr::null()
                        } else {
                            state.at(own).cast_const()
                        }
                    };
                    let dh_row = dh.at(own);
                    match g.cell {
                        Cell::Lstm => {
                            gates::lstm_slope(
                                row,
                                hidden,
                                units,
                                of(c_prev),
                                beside.at(at).cast_const(),
                                dh_row.cast_const(),
                                dc.at(own),
                            );
                        }
                        Cell::Gru => {
                            gates::gru_slope(row, hidden, units, beside.at(at), of(h_prev), dh_row)
                        }
                        Cell::Tanh => {
                            for u in 0..units {
                                let h = *y.at(at + u);
                                *row.add(u) = *dh_row.add(u) * (T::ONE - h * h);
                            }
                        }
                        Cell::Relu => {
                            for u in 0..units {
                                *row.add(u) = if *y.at(at + u) > T::ZERO {
                                    *dh_row.add(u)
                                } else {
                                    T::ZERO
                                };
                            }
                        }
                    }
                    // Except in the GRU, the old state is used only through wh.
                    if g.cell != Cell::Gru {
                        std::slice::from_raw_parts_mut(dh_row, units).fill(T::ZERO);
                    }
                }
            }
        });
    }
    if g.time > 0 {
        g.each_block(threads, |first, units| through_wh(g.step(0), first, units));
    }
    // SAFETY: results that are not null hold one state.
    unsafe {
        for (from, to) in [
            (dh, gradients.dh0),
            (
                dc,
                if g.cell == Cell::Lstm {
                    gradients.dc0
                } else {
                    std::ptr::null_mut()
                },
            ),
        ] {
            if !to.is_null() {
                std::ptr::copy_nonoverlapping(from.at(0), to.cast(), state);
            }
        }
        parameters(threads, g, p, [x, h0, y], gradients, sums, beside);
    }
}

/// `to = from`, or 0 if that is null.
///
/// # Safety
/// `n` elements at each that is not null.
unsafe fn start<T: Real>(to: Shared<T>, from: Shared<T>, n: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if from.is_null() {
            std::slice::from_raw_parts_mut(to.at(0), n).fill(T::ZERO);
        } else {
            std::ptr::copy_nonoverlapping(from.at(0), to.at(0), n);
        }
    }
}

/// Gradients of the parameters and of the data, which are products over all steps at once.
///
/// # Safety
/// Same as for `rnn::backward`; `sums` and `beside` hold the cotangents of all steps.
unsafe fn parameters<T: Real + GemmFloat>(
    threads: &dyn Threads,
    g: &Rnn,
    p: &Parameters,
    [x, h0, y]: [Shared<T>; 3],
    to: &Gradients,
    sums: Shared<T>,
    beside: Shared<T>,
) {
    let (width, hidden, rows) = (g.width(), g.hidden, g.time * g.batch);
    let d = sums.at(0).cast_const();
    // SAFETY: whole operands; null results are skipped.
    unsafe {
        if !to.dx.is_null() {
            product(
                threads,
                (rows, g.input, width),
                d,
                (width, 1),
                p.wi.cast::<T>(),
                (g.input, 1),
                to.dx.cast::<T>(),
                g.input,
                0.0,
            );
        }
        if !to.dwi.is_null() {
            product(
                threads,
                (width, g.input, rows),
                d,
                (1, width),
                x.at(0).cast_const(),
                (g.input, 1),
                to.dwi.cast::<T>(),
                g.input,
                0.0,
            );
        }
        // In the GRU, the gate n has a separate cotangent for the product with `wh`.
        let split = if g.cell == Cell::Gru {
            2 * hidden
        } else {
            width
        };
        for (from, stride, first, count) in [
            (sums, width, 0, split),
            (beside, hidden, split, width - split),
        ] {
            if count == 0 {
                continue;
            }
            if !to.dwh.is_null() {
                // All steps but the first used the result of the step before as hidden state; it lies one step away in `y`.
                let (later, seen) = match g.direction {
                    super::Direction::Forward => (g.batch, 0),
                    super::Direction::Reverse => (0, g.batch),
                };
                let dwh = to.dwh.cast::<T>().add(first * hidden);
                let (a, b) = (
                    from.at(later * stride).cast_const(),
                    y.at(seen * hidden).cast_const(),
                );
                let steps = rows.saturating_sub(g.batch);
                product(
                    threads,
                    (count, hidden, steps),
                    a,
                    (1, stride),
                    b,
                    (hidden, 1),
                    dwh,
                    hidden,
                    0.0,
                );
                if !h0.is_null() && g.time > 0 {
                    let a = from.at(g.step(0) * g.batch * stride).cast_const();
                    product(
                        threads,
                        (count, hidden, g.batch),
                        a,
                        (1, stride),
                        h0.at(0).cast_const(),
                        (hidden, 1),
                        dwh,
                        hidden,
                        1.0,
                    );
                }
            }
            if !to.dbh.is_null() {
                sum_columns(
                    threads,
                    from.at(0).cast_const(),
                    stride,
                    rows,
                    count,
                    to.dbh.cast::<T>().add(first),
                );
            }
        }
        if !to.dbi.is_null() {
            sum_columns(threads, d, width, rows, width, to.dbi.cast::<T>());
        }
    }
}
