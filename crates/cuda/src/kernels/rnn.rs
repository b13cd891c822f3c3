//! Recurrent layers: the input's contribution to all gates is one matrix product; each step then multiplies the hidden state and applies the gates
//! (`rnn.cuh`).
//!
//! The workspace has the layout of the CPU kernels: all gates, then the LSTM's cell states or the GRU's hidden products of n.

use mxnet_core::context::KernelContext;
use mxnet_core::device_kernels::register as add;
use mxnet_core::{Error, Result};
use mxnet_tensor::{DType, DeviceKind, Scalar};

use super::attention::computed;
use super::matmul::{Matrix, product};
use super::operand::{self, Operand, WALK, c_type, for_each, source};
use crate::launch::{Arg, fault, launch};
use crate::text::MATH;

const RNN: &str = include_str!("../text/rnn.cuh");

pub(super) fn register(kind: DeviceKind) -> Result<()> {
    add("rnn_layer", kind, 0, forward)?;
    add("rnn_layer_gradient", kind, 0, backward)?;
    add("split_vector", kind, 0, |context| {
        let (x, mut start) = (Operand::input(context, 0)?, 0);
        let (stride, size) = (x.strides[0], x.dtype.size() as i64);
        for part in context.outputs {
            let at = x
                .ptr
                .wrapping_add_signed(start as i64 * stride as i64 * size);
            operand::copy(
                context,
                &Operand::at(at, part.shape(), &[stride], x.dtype),
                &Operand::of(part),
            )?;
            start += part.len();
        }
        Ok(())
    })
}

/// Numbers of the cells in the kernel source.
const LSTM: usize = 0;
const GRU: usize = 1;

/// Sizes of a layer.
struct Layer {
    cell: usize,
    reverse: bool,
    time: usize,
    batch: usize,
    input: usize,
    hidden: usize,
    dtype: DType,
}

impl Layer {
    fn of(context: &KernelContext) -> Layer {
        let (data, wh) = (context.input(0).shape(), context.input(2).shape());
        Layer {
            cell: match context.str("mode") {
                "lstm" => LSTM,
                "gru" => GRU,
                "rnn_tanh" => 2,
                _ => 3,
            },
            reverse: context.bool("reverse"),
            time: data[0],
            batch: data[1],
            input: data[2],
            hidden: wh[1],
            dtype: computed(context.output(0).dtype()),
        }
    }

    fn gates(&self) -> usize {
        [4, 3, 1, 1][self.cell]
    }

    fn width(&self) -> usize {
        self.gates() * self.hidden
    }

    fn state(&self) -> usize {
        self.batch * self.hidden
    }

    /// Time index of the `s`-th step in processing order.
    fn step(&self, s: usize) -> usize {
        if self.reverse { self.time - 1 - s } else { s }
    }

    /// Elements of the workspace: those of the gates of all steps, and those of one extra vector per step.
    fn workspace_lens(&self) -> (usize, usize) {
        let extra = if self.cell <= GRU {
            self.time * self.state()
        } else {
            0
        };
        (self.time * self.batch * self.width(), extra)
    }

    fn bytes(&self, elements: usize) -> u64 {
        (elements * self.dtype.size()) as u64
    }

    /// A dense matrix at an offset of `elements` from an address.
    fn matrix(&self, at: u64, elements: usize, row: usize, column: usize) -> Matrix {
        Matrix {
            at: at + self.bytes(elements),
            row,
            column,
        }
    }
}

fn pointer(x: Option<&Operand>) -> u64 {
    x.map_or(0, |x| x.ptr)
}

/// Input `i` dense as `dtype`; `None` if it is absent or empty.
fn given<'a>(context: &KernelContext<'a>, i: usize, dtype: DType) -> Result<Option<Operand<'a>>> {
    Ok(Operand::dense_or_none(context, i, dtype)?.filter(|x| !x.is_empty()))
}

/// The lengths of the sequences, if they are given. A length outside of `0..=time` is reported.
fn lengths<'a>(context: &KernelContext<'a>, g: &Layer) -> Result<Option<Operand<'a>>> {
    let Some(lengths) = given(context, 7, DType::I64)? else {
        return Ok(None);
    };
    let time = g.time;
    let report = fault(context, move |[i, length, _]| {
        let problem = format!("`sequence_length` {i} is {length}, must be in 0..={time}");
        Error::value("rnn", problem)
    })?;
    let args = [
        report,
        Arg::Pointer(lengths.ptr),
        Arg::I64(g.batch as i64),
        Arg::I64(time as i64),
    ];
    run(context, "CHECK", g, g.batch, &args)?;
    Ok(Some(lengths))
}

/// Writes the initial state, or 0, to the results after the ends of sequences.
fn fill_ends(
    context: &KernelContext,
    g: &Layer,
    lengths: &Operand,
    state: u64,
    y: u64,
) -> Result<()> {
    let args = [
        Arg::Pointer(lengths.ptr),
        Arg::Pointer(state),
        Arg::Pointer(y),
        Arg::I64(g.time as i64),
        Arg::I64(g.batch as i64),
        Arg::I64(g.hidden as i64),
    ];
    run(context, "ENDS", g, g.time * g.state(), &args)
}

fn forward(context: &KernelContext) -> Result<()> {
    let g = Layer::of(context);
    let lengths = lengths(context, &g)?;
    let (width, state, rows) = (g.width(), g.state(), g.time * g.batch);
    let dense = |i: usize| given(context, i, g.dtype);
    let (x, wi, wh) = (dense(0)?, dense(1)?, dense(2)?);
    let (bi, bh, h0, c0) = (dense(3)?, dense(4)?, dense(5)?, dense(6)?);
    let sums = context.output(3).data_ptr() as u64;
    if context.output(3).len() < g.workspace_lens().0 + g.workspace_lens().1 {
        return Err(Error::internal(
            context.op.name,
            "the workspace is too small",
        ));
    }
    let extra = sums + g.bytes(g.workspace_lens().0);
    let y = Operand::new(context, context.output(0).shape(), g.dtype)?;
    if rows * width > 0 {
        let args = [
            Arg::Pointer(pointer(bi.as_ref())),
            Arg::Pointer(pointer(bh.as_ref())),
            Arg::Pointer(sums),
            Arg::Pointer(extra),
            Arg::I64(rows as i64),
            Arg::I64(width as i64),
            Arg::I64(g.hidden as i64),
        ];
        run(context, "BIAS", &g, rows * width, &args)?;
        let operands = [
            g.matrix(pointer(x.as_ref()), 0, g.input, 1),
            g.matrix(pointer(wi.as_ref()), 0, 1, g.input),
            g.matrix(sums, 0, width, 1),
        ];
        product(context, g.dtype, [rows, width, g.input], operands, true)?;
    }
    for s in 0..g.time {
        let t = g.step(s);
        let before = |first: u64, of_steps: u64| match s {
            0 => first,
            s => of_steps + g.bytes(g.step(s - 1) * state),
        };
        let (h, c) = (
            before(pointer(h0.as_ref()), y.ptr),
            before(pointer(c0.as_ref()), extra),
        );
        let own = sums + g.bytes(t * g.batch * width);
        if h != 0 {
            // (gate unit, hidden) -> (hidden, gate unit)
            let wh = |gate: usize| {
                g.matrix(
                    pointer(wh.as_ref()),
                    gate * g.hidden * g.hidden,
                    1,
                    g.hidden,
                )
            };
            let states = g.matrix(h, 0, g.hidden, 1);
            let joined = if g.cell == GRU { 2 * g.hidden } else { width };
            let to = g.matrix(own, 0, width, 1);
            product(
                context,
                g.dtype,
                [g.batch, joined, g.hidden],
                [states, wh(0), to],
                true,
            )?;
            if g.cell == GRU {
                let to = g.matrix(extra, t * state, g.hidden, 1);
                product(
                    context,
                    g.dtype,
                    [g.batch, g.hidden, g.hidden],
                    [states, wh(2), to],
                    true,
                )?;
            }
        }
        let args = [
            Arg::Pointer(own),
            Arg::Pointer(extra + g.bytes(t * state)),
            Arg::Pointer(h),
            Arg::Pointer(c),
            Arg::Pointer(y.ptr + g.bytes(t * state)),
            Arg::Pointer(pointer(lengths.as_ref())),
            Arg::I64(t as i64),
            Arg::I64(g.batch as i64),
            Arg::I64(g.hidden as i64),
        ];
        run(context, "FORWARD", &g, state, &args)?;
    }
    let shape = [g.batch, g.hidden];
    let last = g.time.checked_sub(1).map(|s| g.step(s));
    let keep = |of_steps: u64, first: Option<&Operand>, to: usize| -> Result<()> {
        let to = Operand::of(context.output(to));
        let from = last.map_or(pointer(first), |t| of_steps + g.bytes(t * state));
        match from {
            0 => operand::fill(context, &to, Scalar::I64(0)),
            from => operand::copy(
                context,
                &Operand::at(from, &shape, &[g.hidden as isize, 1], g.dtype),
                &to,
            ),
        }
    };
    keep(y.ptr, h0.as_ref(), 1)?;
    if g.cell == LSTM {
        keep(extra, c0.as_ref(), 2)?;
    }
    if let Some(lengths) = &lengths {
        fill_ends(context, &g, lengths, 0, y.ptr)?;
    }
    operand::copy(context, &y, &Operand::of(context.output(0)))
}

fn backward(context: &KernelContext) -> Result<()> {
    let g = Layer::of(context);
    let (width, state, hidden, rows) = (g.width(), g.state(), g.hidden, g.time * g.batch);
    let dense = |i: usize| given(context, i, g.dtype);
    let (x, wi, wh) = (dense(0)?, dense(1)?, dense(2)?);
    let (h0, c0, mut y, dy) = (dense(5)?, dense(6)?, dense(8)?, dense(10)?);
    let (dhn, dcn) = (dense(11)?, dense(12)?);
    let lengths = lengths(context, &g)?;
    if let (Some(lengths), Some(found)) = (&lengths, &y) {
        // Reverse direction: the first valid step was preceded by the initial state, so it is stored in the padding.
        let own = Operand::new(context, context.input(8).shape(), g.dtype)?;
        operand::copy(context, found, &own)?;
        fill_ends(context, &g, lengths, pointer(h0.as_ref()), own.ptr)?;
        y = Some(own);
    }
    let (all, beside_len) = g.workspace_lens();
    let workspace = Operand::input(context, 9)?;
    if workspace.len() < all + beside_len {
        let problem = format!(
            "a workspace of {} elements, needs {}",
            workspace.len(),
            all + beside_len
        );
        return Err(Error::value(context.op.name, problem));
    }
    // The steps overwrite the workspace, but the backward pass may run again: use a copy.
    let space = Operand::new(context, &workspace.shape, g.dtype)?;
    operand::copy(context, &workspace, &space)?;
    let (sums, extra) = (space.ptr, space.ptr + g.bytes(all));
    let begin = |from: Option<&Operand>| -> Result<Operand> {
        let to = Operand::new(context, &[state], g.dtype)?;
        match from {
            Some(from) => operand::copy(
                context,
                &Operand::at(from.ptr, &[state], &[1], g.dtype),
                &to,
            )?,
            None => operand::fill(context, &to, Scalar::I64(0))?,
        }
        Ok(to)
    };
    let dh = begin(dhn.as_ref())?;
    let dc = begin(dcn.as_ref().filter(|_| g.cell == LSTM))?;
    // dh += cotangents of step t's pre-activations @ wh.
    let through = |t: usize| -> Result<()> {
        let to = g.matrix(dh.ptr, 0, hidden, 1);
        let from = g.matrix(sums, t * g.batch * width, width, 1);
        let weights =
            |gate: usize| g.matrix(pointer(wh.as_ref()), gate * hidden * hidden, hidden, 1);
        let joined = if g.cell == GRU { 2 * hidden } else { width };
        product(
            context,
            g.dtype,
            [g.batch, hidden, joined],
            [from, weights(0), to],
            true,
        )?;
        if g.cell == GRU {
            let from = g.matrix(extra, t * state, hidden, 1);
            product(
                context,
                g.dtype,
                [g.batch, hidden, hidden],
                [from, weights(2), to],
                true,
            )?;
        }
        Ok(())
    };
    for s in (0..g.time).rev() {
        let t = g.step(s);
        if s + 1 < g.time {
            through(g.step(s + 1))?;
        }
        let before = |first: u64, of_steps: u64| match s {
            0 => first,
            s => of_steps + g.bytes(g.step(s - 1) * state),
        };
        let args = [
            Arg::Pointer(sums + g.bytes(t * g.batch * width)),
            Arg::Pointer(extra + g.bytes(t * state)),
            Arg::Pointer(before(pointer(h0.as_ref()), pointer(y.as_ref()))),
            Arg::Pointer(before(pointer(c0.as_ref()), extra)),
            Arg::Pointer(pointer(y.as_ref()) + g.bytes(t * state)),
            Arg::Pointer(pointer(dy.as_ref()) + g.bytes(t * state)),
            Arg::Pointer(dh.ptr),
            Arg::Pointer(dc.ptr),
            Arg::Pointer(pointer(lengths.as_ref())),
            Arg::I64(t as i64),
            Arg::I64(g.batch as i64),
            Arg::I64(hidden as i64),
        ];
        run(context, "BACKWARD", &g, state, &args)?;
    }
    if g.time > 0 {
        through(g.step(0))?;
    }
    let states =
        |x: &Operand| Operand::at(x.ptr, &[g.batch, hidden], &[hidden as isize, 1], g.dtype);
    operand::copy(context, &states(&dh), &Operand::of(context.output(5)))?;
    if !context.output(6).is_empty() {
        operand::copy(context, &states(&dc), &Operand::of(context.output(6)))?;
    }
    // The gradients of the parameters and of the data: products over all steps at once.
    let made = |i: usize| Operand::new(context, context.output(i).shape(), g.dtype);
    let [dx, dwi, dwh, dbi, dbh] = [made(0)?, made(1)?, made(2)?, made(3)?, made(4)?];
    let d = |row: usize, column: usize| g.matrix(sums, 0, row, column);
    let weights = g.matrix(pointer(wi.as_ref()), 0, g.input, 1);
    product(
        context,
        g.dtype,
        [rows, g.input, width],
        [d(width, 1), weights, g.matrix(dx.ptr, 0, g.input, 1)],
        false,
    )?;
    let data = g.matrix(pointer(x.as_ref()), 0, g.input, 1);
    product(
        context,
        g.dtype,
        [width, g.input, rows],
        [d(1, width), data, g.matrix(dwi.ptr, 0, g.input, 1)],
        false,
    )?;
    let ones = Operand::filled(context, &[1], g.dtype, Scalar::F64(1.0))?;
    let ones = g.matrix(ones.ptr, 0, 0, 0);
    product(
        context,
        g.dtype,
        [1, width, rows],
        [ones, d(width, 1), g.matrix(dbi.ptr, 0, width, 1)],
        false,
    )?;
    let split = if g.cell == GRU { 2 * hidden } else { width };
    for (from, stride, first, count) in [
        (sums, width, 0, split),
        (extra, hidden, split, width - split),
    ] {
        if count == 0 {
            continue;
        }
        // All steps but the first used the result of the step before as hidden state; it lies one step away in `y`.
        let (later, seen) = if g.reverse {
            (0, g.batch)
        } else {
            (g.batch, 0)
        };
        let steps = rows.saturating_sub(g.batch);
        let to = g.matrix(dwh.ptr, first * hidden, hidden, 1);
        let results = g.matrix(pointer(y.as_ref()), seen * hidden, hidden, 1);
        let later = g.matrix(from, if steps > 0 { later * stride } else { 0 }, 1, stride);
        product(
            context,
            g.dtype,
            [count, hidden, steps],
            [later, results, to],
            false,
        )?;
        if let (Some(h0), true) = (&h0, g.time > 0) {
            let own = g.matrix(from, g.step(0) * g.batch * stride, 1, stride);
            let states = g.matrix(h0.ptr, 0, hidden, 1);
            product(
                context,
                g.dtype,
                [count, hidden, g.batch],
                [own, states, to],
                true,
            )?;
        }
        let all = g.matrix(from, 0, stride, 1);
        product(
            context,
            g.dtype,
            [1, count, rows],
            [ones, all, g.matrix(dbh.ptr, first, width, 1)],
            false,
        )?;
    }
    for (i, from) in [dx, dwi, dwh, dbi, dbh].iter().enumerate() {
        operand::copy(context, from, &Operand::of(context.output(i)))?;
    }
    Ok(())
}

fn run(
    context: &KernelContext,
    which: &'static str,
    g: &Layer,
    n: usize,
    args: &[Arg],
) -> Result<()> {
    if n == 0 {
        return Ok(());
    }
    let (cell, dtype) = (g.cell, g.dtype);
    launch(
        context,
        &key(which, cell, dtype),
        || text(which, cell, dtype),
        for_each(n),
        args,
    )
}

fn key(which: &str, cell: usize, dtype: DType) -> String {
    format!("rnn_{}_{cell}:{}", which.to_lowercase(), c_type(dtype))
}

fn text(which: &str, cell: usize, dtype: DType) -> String {
    let head = format!(
        "typedef {} T;\n#define {which}\n#define CELL {cell}",
        c_type(dtype)
    );
    source(&[MATH, WALK, &head, RNN])
}

pub(super) fn texts(all: &mut Vec<(String, String)>) {
    for dtype in [DType::F32, DType::F64] {
        for which in ["BIAS", "CHECK", "ENDS", "FORWARD", "BACKWARD"] {
            for cell in 0..4 {
                all.push((key(which, cell, dtype), text(which, cell, dtype)));
            }
        }
    }
}
