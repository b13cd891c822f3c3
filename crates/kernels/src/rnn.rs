//! Recurrent layers: LSTM, GRU and the plain tanh or ReLU cell; one layer, one direction, with gradients.
//!
//! The input's share of all gates is one product over all time steps. Then every step multiplies the hidden state and applies the gates,
//! blocks of hidden units as tasks.

mod backward;
mod forward;
mod gates;

#[cfg(test)]
mod tests;

use crate::gemm::{self, Epilogue, Matrix, Problem};
use crate::real::{Real, Shared, with_real};
use crate::{Elem, Threads};

/// Kind of recurrent cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Gates i, f, g, o: `c' = f c + i g`, `h' = o tanh(c')`.
    Lstm,
    /// Gates r, z, n: `n = tanh(Wx + b + r (Uh + d))`, `h' = (1 - z) n + z h`: the reset gate after the product, as in cuDNN.
    Gru,
    /// `h' = tanh(Wx + b + Uh + d)`.
    Tanh,
    /// `h' = max(Wx + b + Uh + d, 0)`.
    Relu,
}

impl Cell {
    /// Gates per hidden unit.
    pub const fn gates(self) -> usize {
        match self {
            Cell::Lstm => 4,
            Cell::Gru => 3,
            Cell::Tanh | Cell::Relu => 1,
        }
    }
}

/// In which order the time steps are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// First to last.
    Forward,
    /// Last to first: the initial state belongs before the last step.
    Reverse,
}

/// The layer's shape. With `g` gates: data `(time, batch, input)`, states `(batch, hidden)`, result `(time, batch, hidden)`,
/// `wi` `(g * hidden, input)`, `wh` `(g * hidden, hidden)`, biases `(g * hidden)`, gates in the order that [`Cell`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rnn {
    /// `F32` or `F64`, of all operands.
    pub elem: Elem,
    /// The cell.
    pub cell: Cell,
    /// The direction.
    pub direction: Direction,
    /// Time steps.
    pub time: usize,
    /// Sequences.
    pub batch: usize,
    /// Length of an input vector.
    pub input: usize,
    /// Length of a state vector.
    pub hidden: usize,
}

/// The layer's parameters.
#[derive(Clone, Copy, Debug)]
pub struct Parameters {
    /// Input to gates.
    pub wi: *const u8,
    /// Hidden state to gates.
    pub wh: *const u8,
    /// Bias beside `wi`; null is 0.
    pub bi: *const u8,
    /// Bias beside `wh`; null is 0.
    pub bh: *const u8,
}

/// Cotangents, from which [`backward`] starts.
#[derive(Clone, Copy, Debug)]
pub struct Cotangents {
    /// Of the result.
    pub dy: *const u8,
    /// Of the last hidden state; null is 0.
    pub dhn: *const u8,
    /// Of the last cell state (LSTM); null is 0.
    pub dcn: *const u8,
}

/// Outputs of [`backward`]; null pointers are not computed.
#[derive(Clone, Copy, Debug)]
pub struct Gradients {
    /// Of the data.
    pub dx: *mut u8,
    /// Of the first hidden state.
    pub dh0: *mut u8,
    /// Of the first cell state (LSTM).
    pub dc0: *mut u8,
    /// Of `wi`.
    pub dwi: *mut u8,
    /// Of `wh`.
    pub dwh: *mut u8,
    /// Of `bi`.
    pub dbi: *mut u8,
    /// Of `bh`.
    pub dbh: *mut u8,
}

impl Rnn {
    fn width(&self) -> usize {
        self.cell.gates() * self.hidden
    }

    /// Elements of one state.
    fn state(&self) -> usize {
        self.batch * self.hidden
    }

    /// Elements of all steps' gates, and beside them of one vector per step: the LSTM's cells, the GRU's `Uh + d` of n.
    fn kept(&self) -> (usize, usize) {
        let beside = matches!(self.cell, Cell::Lstm | Cell::Gru) as usize;
        (
            self.time * self.batch * self.width(),
            beside * self.time * self.state(),
        )
    }

    /// The `s`-th step taken.
    fn step(&self, s: usize) -> usize {
        match self.direction {
            Direction::Forward => s,
            Direction::Reverse => self.time - 1 - s,
        }
    }

    /// Hidden units of one task: all where a step is too little work to share.
    fn block(&self) -> usize {
        let work = self.batch * self.width() * self.hidden;
        if work < 1 << 21 {
            self.hidden
        } else {
            self.hidden
                .div_ceil(8)
                .max(48)
                .next_multiple_of(16)
                .min(self.hidden)
        }
    }

    /// Runs `task(first unit, units)` for all blocks.
    fn each_block(&self, threads: &dyn Threads, task: impl Fn(usize, usize) + Sync) {
        let block = self.block();
        let one = |b: usize| task(b * block, block.min(self.hidden - b * block));
        match self.hidden.div_ceil(block) {
            1 => one(0),
            n => threads.run(n, &one),
        }
    }
}

/// Bytes that [`forward`] fills for [`backward`], whose contents it uses up.
pub fn workspace_bytes(g: &Rnn) -> usize {
    let (gates, beside) = g.kept();
    (gates + beside) * g.elem.size()
}

/// Bytes of working memory for [`forward`] and for [`backward`], free afterwards.
pub fn scratch_bytes(g: &Rnn) -> usize {
    (g.width() * (g.hidden + 1)).max(2 * g.state()) * g.elem.size()
}

/// Runs the layer: `y` gets the hidden state after every step, `hn` and `cn` (may be null) the last states. `c0` and `cn` concern the LSTM only;
/// `h0` and `c0` may be null, meaning 0.
///
/// With `lengths`, sequence `b` has `lengths[b]` steps: the steps behind its end keep the states, and their results are 0.
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`, or if there is not one length for each sequence.
///
/// # Safety
/// Operands that are not null are dense, aligned and of the sizes that `g` says; results, `workspace` ([`workspace_bytes`]) and `scratch`
/// ([`scratch_bytes`]), both aligned to the element, overlap nothing.
#[allow(clippy::too_many_arguments, reason = "the operator's operands")]
pub unsafe fn forward(
    threads: &dyn Threads,
    g: &Rnn,
    p: &Parameters,
    x: *const u8,
    h0: *const u8,
    c0: *const u8,
    lengths: Option<&[usize]>,
    y: *mut u8,
    hn: *mut u8,
    cn: *mut u8,
    workspace: *mut u8,
    scratch: *mut u8,
) {
    assert!(
        lengths.is_none_or(|lengths| lengths.len() == g.batch),
        "a length for each sequence"
    );
    // SAFETY: forwarded.
    with_real!(g.elem, T => unsafe {
        let s = |p: *const u8| Shared(p.cast_mut().cast::<T>());
        forward::run::<T>(threads, g, p, lengths, [s(x), s(h0), s(c0)], [s(y), s(hn), s(cn)], [s(workspace), s(scratch)])
    })
}

/// Gradients of [`forward`], from its operands, its result `y` and the `workspace` that it filled, which is overwritten, as is
/// `y` behind the ends of sequences.
///
/// # Panics
/// As [`forward`].
///
/// # Safety
/// As [`forward`]'s; `y` and `workspace` are as [`forward`] left them.
#[allow(clippy::too_many_arguments, reason = "the operator's operands")]
pub unsafe fn backward(
    threads: &dyn Threads,
    g: &Rnn,
    p: &Parameters,
    x: *const u8,
    h0: *const u8,
    c0: *const u8,
    lengths: Option<&[usize]>,
    y: *mut u8,
    cotangents: &Cotangents,
    gradients: &Gradients,
    workspace: *mut u8,
    scratch: *mut u8,
) {
    assert!(
        lengths.is_none_or(|lengths| lengths.len() == g.batch),
        "a length for each sequence"
    );
    // SAFETY: forwarded.
    with_real!(g.elem, T => unsafe {
        let s = |p: *const u8| Shared(p.cast_mut().cast::<T>());
        backward::run::<T>(threads, g, p, lengths, [s(x), s(h0), s(c0), s(y)], cotangents, gradients, [s(workspace), s(scratch)])
    })
}

/// Writes a state of sequence `b` to a row of results, or of cells.
///
/// # Safety
/// The units exist at both; a null state is 0.
unsafe fn hold<T: Real>(state: Shared<T>, own: usize, to: *mut T, units: usize) {
    // SAFETY: by the caller.
    unsafe {
        if state.is_null() {
            std::slice::from_raw_parts_mut(to, units).fill(T::ZERO);
        } else {
            std::ptr::copy_nonoverlapping(state.at(own).cast_const(), to, units);
        }
    }
}

/// `c = a @ b + beta * c` with `(row, column)` strides in elements, cut over threads.
///
/// # Safety
/// As `gemm::gemm`'s.
#[allow(clippy::too_many_arguments, reason = "three operands with strides")]
unsafe fn product<T: Real>(
    threads: &dyn Threads,
    (m, n, k): (usize, usize, usize),
    a: *const T,
    a_strides: (usize, usize),
    b: *const T,
    b_strides: (usize, usize),
    c: *mut T,
    c_stride: usize,
    beta: f64,
) {
    let size = size_of::<T>();
    let matrix = |ptr: *const T, (rows, cols): (usize, usize)| Matrix {
        ptr: ptr.cast_mut().cast(),
        row_stride: (rows * size) as isize,
        col_stride: (cols * size) as isize,
        batch_strides: &[],
    };
    let p = Problem {
        elem: T::ELEM,
        batch: &[],
        m,
        n,
        k,
        alpha: 1.0,
        beta,
    };
    // SAFETY: forwarded.
    unsafe {
        gemm::gemm(
            threads,
            &p,
            &matrix(a, a_strides),
            &matrix(b, b_strides),
            &matrix(c, (c_stride, 1)),
            &Epilogue::NONE,
        )
    }
}
