//! The forward pass.

use super::{Cell, Parameters, Rnn, copy_state, gates, product};
use crate::Threads;
use crate::gemm::{self, GemmFloat, Tile};
use crate::real::{Real, Shared};

/// # Safety
/// Same as for `rnn::forward`.
pub(super) unsafe fn run<T: Real + GemmFloat>(
    threads: &dyn Threads,
    g: &Rnn,
    p: &Parameters,
    lengths: Option<&[usize]>,
    [x, h0, c0]: [Shared<T>; 3],
    [y, hn, cn]: [Shared<T>; 3],
    [workspace, scratch]: [Shared<T>; 2],
) {
    let (width, state, hidden) = (g.width(), g.state(), g.hidden);
    let (sums, beside) = (workspace, Shared(workspace.at(g.workspace_lens().0)));
    if state == 0 {
        return;
    }
    // SAFETY: the workspace holds all gates, the scratch the transposed weights and a bias.
    unsafe {
        let bias = std::slice::from_raw_parts_mut(scratch.at(0), width);
        joint_bias::<T>(g, p, bias);
        let rows = g.time * g.batch;
        for row in 0..rows {
            std::ptr::copy_nonoverlapping(bias.as_ptr(), sums.at(row * width), width);
        }
        let wi = p.wi.cast::<T>();
        product(
            threads,
            (rows, width, g.input),
            x.at(0).cast_const(),
            (g.input, 1),
            wi,
            (1, g.input),
            sums.at(0),
            width,
            1.0,
        );
    }
    // (gate unit, hidden) -> (hidden, gate unit): the products of all steps then read neighbouring units together.
    let (wh, transposed) = (
        Shared(p.wh.cast_mut().cast::<T>()),
        Shared(scratch.at(width)),
    );
    // Square blocks, so that the cache lines of both sides stay in the cache until they are used completely.
    const BLOCK: usize = 16;
    for first in (0..hidden).step_by(BLOCK) {
        for unit in (0..width).step_by(BLOCK) {
            for u in unit..(unit + BLOCK).min(width) {
                for k in first..(first + BLOCK).min(hidden) {
                    // SAFETY: inside the weights and the scratch.
                    unsafe { *transposed.at(k * width + u) = *wh.at(u * hidden + k) }
                }
            }
        }
    }
    let bh = Shared(p.bh.cast_mut().cast::<T>());
    for s in 0..g.time {
        let t = g.step(s);
        let before = if s == 0 { None } else { Some(g.step(s - 1)) };
        let h_prev = before.map_or(h0, |b| Shared(y.at(b * state)));
        let c_prev = before.map_or(c0, |b| Shared(beside.at(b * state)));
        g.each_block(threads, |first, units| {
            // SAFETY: gates, cells and states of step t for the units of this task; the step before is complete.
            unsafe {
                // If one task has all units, the gates are contiguous: one product for all, otherwise one per gate.
                let joined = match units == hidden && g.cell != Cell::Gru {
                    true => g.cell.gates(),
                    false => 1,
                };
                for gate in (0..g.cell.gates()).step_by(joined) {
                    // In the GRU, the reset gate multiplies only the hidden product of n, including its bias, so it is stored separately.
                    let is_separate = g.cell == Cell::Gru && gate == 2;
                    let (c, c_stride) = if is_separate {
                        let share = Shared(beside.at(t * state + first));
                        for b in 0..g.batch {
                            for u in 0..units {
                                *share.at(b * hidden + u) = if bh.is_null() {
                                    T::ZERO
                                } else {
                                    *bh.at(2 * hidden + first + u)
                                };
                            }
                        }
                        (share.at(0), hidden)
                    } else {
                        (sums.at(t * g.batch * width + gate * hidden + first), width)
                    };
                    if h_prev.is_null() {
                        continue;
                    }
                    gemm::dense(&Tile {
                        m: g.batch,
                        n: joined * units,
                        k: hidden,
                        a: h_prev.at(0).cast_const(),
                        a_strides: (hidden as isize, 1),
                        b: transposed.at(gate * hidden + first).cast_const(),
                        b_strides: (width as isize, 1),
                        c,
                        c_strides: (c_stride as isize, 1),
                        alpha: T::ONE,
                        beta: T::ONE,
                    });
                }
                for b in 0..g.batch {
                    let row = sums.at((t * g.batch + b) * width + first);
                    let at = t * state + b * hidden + first;
                    let of = |state: Shared<T>| {
                        if state.is_null() {
                            std::ptr::null()
                        } else {
                            state.at(b * hidden + first).cast_const()
                        }
                    };
                    if lengths.is_some_and(|lengths| t >= lengths[b]) {
                        // Reverse direction, in the padding before the first valid step: the initial state is stored for it.
                        copy_state(h_prev, b * hidden + first, y.at(at), units);
                        if g.cell == Cell::Lstm {
                            copy_state(c_prev, b * hidden + first, beside.at(at), units);
                        }
                        continue;
                    }
                    match g.cell {
                        Cell::Lstm => {
                            gates::lstm(row, hidden, units, of(c_prev), beside.at(at), y.at(at))
                        }
                        Cell::Gru => {
                            gates::gru(row, hidden, units, beside.at(at), of(h_prev), y.at(at))
                        }
                        Cell::Tanh => gates::tanh(row.cast_const(), units, y.at(at)),
                        Cell::Relu => {
                            for u in 0..units {
                                let sum = *row.add(u);
                                *y.at(at + u) = if sum < T::ZERO { T::ZERO } else { sum };
                            }
                        }
                    }
                }
            }
        });
    }
    let copy = |from: Shared<T>, to: Shared<T>| {
        if to.is_null() {
            return;
        }
        // SAFETY: a whole state.
        unsafe {
            if from.is_null() {
                std::slice::from_raw_parts_mut(to.at(0), state).fill(T::ZERO);
            } else {
                std::ptr::copy_nonoverlapping(from.at(0), to.at(0), state);
            }
        }
    };
    let last = g.time.checked_sub(1).map(|s| g.step(s));
    copy(last.map_or(h0, |t| Shared(y.at(t * state))), hn);
    if g.cell == Cell::Lstm {
        copy(last.map_or(c0, |t| Shared(beside.at(t * state))), cn);
    }
    for (b, &length) in lengths.unwrap_or_default().iter().enumerate() {
        for t in length..g.time {
            // SAFETY: a row of the result.
            unsafe {
                copy_state(
                    Shared(std::ptr::null_mut()),
                    0,
                    y.at(t * state + b * hidden),
                    hidden,
                )
            }
        }
    }
}

/// `bi + bh`; only `bi` for the GRU's gate n.
///
/// # Safety
/// The biases that are not null have `g.width()` elements.
unsafe fn joint_bias<T: Real>(g: &Rnn, p: &Parameters, bias: &mut [T]) {
    let of = |b: *const u8, u: usize| {
        if b.is_null() {
            return T::ZERO;
        }
        // SAFETY: guaranteed by the caller.
        unsafe { *b.cast::<T>().add(u) }
    };
    for (u, bias) in bias.iter_mut().enumerate() {
        let is_separate = g.cell == Cell::Gru && u >= 2 * g.hidden;
        *bias = of(p.bi, u) + if is_separate { T::ZERO } else { of(p.bh, u) };
    }
}
