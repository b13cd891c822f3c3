//! The forward pass.

use super::{
    Cell, MAX_GATES, Packed, Parameters, Rnn, copy_state, gates, pack_input, pack_state,
    packed_input_bytes, packed_state_bytes, product,
};
use crate::Threads;
use crate::panels::{MAX_LANES, MAX_ROWS, Panels, SIDE_BY_SIDE, SLAB, Segment};
use crate::real::{Real, Shared};

/// # Safety
/// Same as for `rnn::forward`.
#[allow(clippy::too_many_arguments, reason = "the operator's operands")]
pub(super) unsafe fn run<T: Panels>(
    threads: &dyn Threads,
    g: &Rnn,
    p: &Parameters,
    packed: Packed,
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
    // SAFETY: the workspace holds all gates; the scratch has room for a bias and for all packed weights.
    let packed_wh = unsafe {
        let bias = std::slice::from_raw_parts_mut(scratch.at(0), width);
        joint_bias::<T>(g, p, bias);
        let own = scratch.at(width);
        let wh = match packed.wh.is_null() {
            true => {
                pack_state(threads, g, p.wh, own.cast());
                own.cast_const()
            }
            false => packed.wh.cast::<T>(),
        };
        let rows = g.time * g.batch;
        if packed_input_bytes(g).is_some() {
            let own = own.add(packed_state_bytes(g) / size_of::<T>());
            let wi = match packed.wi.is_null() {
                true => {
                    pack_input(threads, g, p.wi, own.cast());
                    own.cast_const().cast()
                }
                false => packed.wi,
            };
            g.input_product().run(
                threads,
                x.at(0).cast_const().cast(),
                g.input,
                wi,
                bias.as_ptr().cast(),
                sums.at(0).cast(),
                false,
            );
        } else {
            for row in 0..rows {
                std::ptr::copy_nonoverlapping(bias.as_ptr(), sums.at(row * width), width);
            }
            product(
                threads,
                (rows, width, g.input),
                x.at(0).cast_const(),
                (g.input, 1),
                p.wi.cast::<T>(),
                (1, g.input),
                sums.at(0),
                width,
                1.0,
            );
        }
        Shared(wh.cast_mut())
    };
    let lanes = T::kernels().lanes;
    let gate_len = g.hidden.next_multiple_of(lanes) * g.hidden;
    let bh = Shared(p.bh.cast_mut().cast::<T>());
    for s in 0..g.time {
        let t = g.step(s);
        let before = if s == 0 { None } else { Some(g.step(s - 1)) };
        let h_prev = before.map_or(h0, |b| Shared(y.at(b * state)));
        let c_prev = before.map_or(c0, |b| Shared(beside.at(b * state)));
        g.each_block(threads, |first, units| {
            // SAFETY: gates, cells and states of step t for the units of this task; the step before is complete.
            unsafe {
                let mut products = [(std::ptr::null(), std::ptr::null_mut()); MAX_GATES];
                for (gate, product) in products.iter_mut().enumerate().take(g.cell.gates()) {
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
                    // Blocks of units begin at panels.
                    let panels = packed_wh.at(gate * gate_len + first * hidden).cast_const();
                    *product = (panels, c);
                    if g.batch > 1 {
                        add_product(h_prev.at(0), g.batch, hidden, panels, units, c, c_stride);
                    }
                }
                if g.batch == 1 && !h_prev.is_null() {
                    let products = &products[..g.cell.gates()];
                    add_products_of_one(h_prev.at(0), hidden, products, units);
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

/// Adds to `units` elements of each gate the product of one state, of `hidden` elements, with the gate's panels of weights. The result is that of
/// [`add_product`], bit for bit.
///
/// # Safety
/// `gates` has panels for `units` columns, and where the sums are.
unsafe fn add_products_of_one<T: Panels>(
    state: *const T,
    hidden: usize,
    gates: &[(*const T, *mut T)],
    units: usize,
) {
    let micro = T::kernels();
    let lanes = micro.lanes;
    let per_gate = units / lanes;
    let num_panels = gates.len() * per_gate;
    for step in (0..hidden).step_by(SLAB) {
        let (a, steps) = (state.wrapping_add(step), SLAB.min(hidden - step));
        let at = |panel: usize| {
            let (panels, sums) = gates[panel / per_gate];
            let unit = panel % per_gate * lanes;
            let from = panels.wrapping_add(unit * hidden + step * lanes);
            (from, sums.wrapping_add(unit))
        };
        let in_groups = num_panels / SIDE_BY_SIDE * SIDE_BY_SIDE;
        for first in (0..in_groups).step_by(SIDE_BY_SIDE) {
            let group: [_; SIDE_BY_SIDE] = std::array::from_fn(|i| at(first + i));
            // SAFETY: the caller's promise; the panels are different ones.
            unsafe { micro.add_panels(a, &group.map(|x| x.0), steps, &group.map(|x| x.1)) };
        }
        for panel in in_groups..num_panels {
            let (b, to) = at(panel);
            // SAFETY: the caller's promise.
            unsafe {
                micro.run(
                    1,
                    &[Segment { a, b, steps }],
                    &[0; MAX_ROWS],
                    to,
                    lanes,
                    true,
                )
            };
        }
    }
    let done = per_gate * lanes;
    if done < units {
        for &(panels, sums) in gates {
            let panels = panels.wrapping_add(done * hidden);
            // SAFETY: the caller's promise, for the panel that is not full.
            unsafe {
                add_product(
                    state,
                    1,
                    hidden,
                    panels,
                    units - done,
                    sums.wrapping_add(done),
                    0,
                )
            };
        }
    }
}

/// Adds to `units` columns of `c` the product of the states of a batch, dense rows of `hidden` elements, with panels of weights.
///
/// # Safety
/// All are of the sizes that the arguments say.
unsafe fn add_product<T: Panels>(
    states: *const T,
    batch: usize,
    hidden: usize,
    panels: *const T,
    units: usize,
    c: *mut T,
    c_stride: usize,
) {
    let micro = T::kernels();
    let lanes = micro.lanes;
    let tiles = batch.div_ceil(micro.rows());
    let per_tile = batch.div_ceil(tiles);
    let mut part = [T::ZERO; MAX_ROWS * MAX_LANES];
    for unit in (0..units).step_by(lanes) {
        let count = lanes.min(units - unit);
        for step in (0..hidden).step_by(SLAB) {
            for first in (0..batch).step_by(per_tile) {
                let rows = per_tile.min(batch - first);
                let mut offsets = [0; MAX_ROWS];
                for (r, offset) in offsets[..rows].iter_mut().enumerate() {
                    *offset = (first + r) * hidden;
                }
                let segment = [Segment {
                    a: states.wrapping_add(step),
                    b: panels.wrapping_add(unit * hidden + step * lanes),
                    steps: SLAB.min(hidden - step),
                }];
                let to = c.wrapping_add(first * c_stride + unit);
                // SAFETY: the caller's promise; a panel that is not full goes to `part`, which has room for all rows.
                unsafe {
                    if count == lanes {
                        micro.run(rows, &segment, &offsets, to, c_stride, true);
                        continue;
                    }
                    micro.run(rows, &segment, &offsets, part.as_mut_ptr(), lanes, false);
                    for r in 0..rows {
                        for l in 0..count {
                            *to.add(r * c_stride + l) += part[r * lanes + l];
                        }
                    }
                }
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
