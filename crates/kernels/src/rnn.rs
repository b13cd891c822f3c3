//! Recurrent layers: LSTM, GRU and the plain tanh or ReLU cell; one layer, one direction, with gradients.
//!
//! The contribution of the input to all gates is one matrix product over all time steps. Each step then multiplies the hidden state and applies the
//! gates, with blocks of hidden units as tasks.

mod backward;
mod forward;
mod gates;

#[cfg(test)]
mod tests;

use crate::gemm::{self, Epilogue, Matrix, Problem};
use crate::linear::Linear;
use crate::real::{Real, Shared, with_real};
use crate::{Elem, Threads};

/// Kind of recurrent cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Gates i, f, g, o: `c' = f c + i g`, `h' = o tanh(c')`.
    Lstm,
    /// Gates r, z, n: `n = tanh(Wx + b + r (Uh + d))`, `h' = (1 - z) n + z h`. The reset gate is applied after the product, as in cuDNN.
    Gru,
    /// `h' = tanh(Wx + b + Uh + d)`.
    Tanh,
    /// `h' = max(Wx + b + Uh + d, 0)`.
    Relu,
}

/// Largest number of gates per hidden unit.
const MAX_GATES: usize = 4;

impl Cell {
    /// Number of gates per hidden unit.
    pub const fn gates(self) -> usize {
        match self {
            Cell::Lstm => 4,
            Cell::Gru => 3,
            Cell::Tanh | Cell::Relu => 1,
        }
    }
}

/// Order of the time steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// First to last.
    Forward,
    /// Last to first; the initial state precedes the last step.
    Reverse,
}

/// Shape of the layer. With `g` gates: data `(time, batch, input)`, states `(batch, hidden)`, result `(time, batch, hidden)`,
/// `wi` `(g * hidden, input)`, `wh` `(g * hidden, hidden)`, biases `(g * hidden)`; gates in the order of [`Cell`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rnn {
    /// Element type of all operands: `F32` or `F64`.
    pub elem: Elem,
    /// Kind of cell.
    pub cell: Cell,
    /// Order of the time steps.
    pub direction: Direction,
    /// Number of time steps.
    pub time: usize,
    /// Number of sequences.
    pub batch: usize,
    /// Length of an input vector.
    pub input: usize,
    /// Length of a state vector.
    pub hidden: usize,
}

/// Parameters of the layer.
#[derive(Clone, Copy, Debug)]
pub struct Parameters {
    /// Weights from input to gates.
    pub wi: *const u8,
    /// Weights from hidden state to gates.
    pub wh: *const u8,
    /// Bias added to the input product; null means 0.
    pub bi: *const u8,
    /// Bias added to the hidden product; null means 0.
    pub bh: *const u8,
}

/// Weights that [`pack_input`] and [`pack_state`] have packed; [`forward`] packs those that are null into its scratch memory.
#[derive(Clone, Copy, Debug)]
pub struct Packed {
    /// Of [`Parameters::wi`].
    pub wi: *const u8,
    /// Of [`Parameters::wh`].
    pub wh: *const u8,
}

impl Packed {
    /// Nothing is packed.
    pub const NONE: Packed = Packed {
        wi: std::ptr::null(),
        wh: std::ptr::null(),
    };
}

/// Inputs of [`backward`]: cotangents of the results.
#[derive(Clone, Copy, Debug)]
pub struct Cotangents {
    /// Cotangent of the result.
    pub dy: *const u8,
    /// Cotangent of the last hidden state; null means 0.
    pub dhn: *const u8,
    /// Cotangent of the last cell state (LSTM); null means 0.
    pub dcn: *const u8,
}

/// Outputs of [`backward`]; those that are null are not computed.
#[derive(Clone, Copy, Debug)]
pub struct Gradients {
    /// Gradient of the data.
    pub dx: *mut u8,
    /// Gradient of the initial hidden state.
    pub dh0: *mut u8,
    /// Gradient of the initial cell state (LSTM).
    pub dc0: *mut u8,
    /// Gradient of `wi`.
    pub dwi: *mut u8,
    /// Gradient of `wh`.
    pub dwh: *mut u8,
    /// Gradient of `bi`.
    pub dbi: *mut u8,
    /// Gradient of `bh`.
    pub dbh: *mut u8,
}

/// Multiply-adds of a step from which on a second thread pays. A core is limited by its second-level cache, which holds the weights, and each core
/// has its own.
const TWO_TASK_WORK: usize = 1 << 16;
/// Multiply-adds of a step from which on more threads pay.
const MANY_TASK_WORK: usize = 1 << 21;

impl Rnn {
    fn width(&self) -> usize {
        self.cell.gates() * self.hidden
    }

    /// Number of elements of one state.
    fn state(&self) -> usize {
        self.batch * self.hidden
    }

    /// Elements of the workspace: those of the gates of all steps, and those of one extra vector per step (LSTM: cell state; GRU: `Uh + d` of n).
    fn workspace_lens(&self) -> (usize, usize) {
        let beside = matches!(self.cell, Cell::Lstm | Cell::Gru) as usize;
        (
            self.time * self.batch * self.width(),
            beside * self.time * self.state(),
        )
    }

    /// Time index of the `s`-th step in processing order.
    fn step(&self, s: usize) -> usize {
        match self.direction {
            Direction::Forward => s,
            Direction::Reverse => self.time - 1 - s,
        }
    }

    /// The product of all inputs.
    fn input_product(&self) -> Linear {
        Linear {
            elem: self.elem,
            rows: self.time * self.batch,
            outputs: self.width(),
            inputs: self.input,
        }
    }

    /// Lanes of a panel of packed weights.
    ///
    /// # Panics
    /// If `elem` is neither `F32` nor `F64`.
    pub fn lanes(&self) -> usize {
        self.input_product().lanes()
    }

    /// Hidden units per task: all of them below [`TWO_TASK_WORK`], half of them below [`MANY_TASK_WORK`].
    fn block(&self) -> usize {
        let units = match self.batch * self.width() * self.hidden {
            0..TWO_TASK_WORK => return self.hidden,
            TWO_TASK_WORK..MANY_TASK_WORK => self.hidden.div_ceil(2),
            _ => self.hidden.div_ceil(8).max(48),
        };
        units.next_multiple_of(self.lanes()).min(self.hidden)
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

/// Bytes of the workspace, which [`forward`] fills for [`backward`].
pub fn workspace_bytes(g: &Rnn) -> usize {
    let (gates, beside) = g.workspace_lens();
    (gates + beside) * g.elem.size()
}

/// Bytes of the packed weights from the input; `None` if [`forward`] takes dense weights.
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`.
pub fn packed_input_bytes(g: &Rnn) -> Option<usize> {
    let product = g.input_product();
    product.fits().then(|| product.packed_bytes())
}

/// Bytes of the packed weights from the state.
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`.
pub fn packed_state_bytes(g: &Rnn) -> usize {
    g.cell.gates() * g.hidden.next_multiple_of(g.lanes()) * g.hidden * g.elem.size()
}

/// Packs the weights from the input.
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`.
///
/// # Safety
/// `wi` has the weights, dense and aligned; `to` has [`packed_input_bytes`], aligned.
pub unsafe fn pack_input(threads: &dyn Threads, g: &Rnn, wi: *const u8, to: *mut u8) {
    // SAFETY: same contract.
    unsafe {
        g.input_product().pack(threads, wi, (g.input, 1), to);
    }
}

/// Packs the weights from the state, `[gate][panel of units][unit of the state][lane]`.
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`.
///
/// # Safety
/// `wh` has the weights, dense and aligned; `to` has [`packed_state_bytes`], aligned.
pub unsafe fn pack_state(threads: &dyn Threads, g: &Rnn, wh: *const u8, to: *mut u8) {
    let of_gate = Linear {
        elem: g.elem,
        rows: g.batch,
        outputs: g.hidden,
        inputs: g.hidden,
    };
    for gate in 0..g.cell.gates() {
        let from = gate * g.hidden * g.hidden * g.elem.size();
        let at = gate * of_gate.packed_bytes();
        // SAFETY: same contract.
        unsafe { of_gate.pack(threads, wh.add(from), (g.hidden, 1), to.add(at)) }
    }
}

/// Bytes of scratch memory for [`forward`] and for [`backward`].
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`.
pub fn scratch_bytes(g: &Rnn) -> usize {
    let forward = packed_state_bytes(g) + packed_input_bytes(g).unwrap_or(0);
    let backward = (g.width() * g.hidden).max(2 * g.state()) * g.elem.size();
    g.width() * g.elem.size() + forward.max(backward)
}

/// Runs the layer. Writes the hidden state after every step to `y`, and the last states to `hn` and `cn`, which may be null. `c0` and `cn` are used
/// by the LSTM only; `h0` and `c0` may be null, meaning 0.
///
/// With `lengths`, sequence `b` has `lengths[b]` steps. Steps after its end leave the states unchanged and have result 0.
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`, or if there is not one length for each sequence.
///
/// # Safety
/// Operands that are not null are dense, aligned and of the sizes that `g` says. Results, `workspace` ([`workspace_bytes`]) and `scratch`
/// ([`scratch_bytes`]) overlap nothing; the latter two are aligned to the element.
#[allow(clippy::too_many_arguments, reason = "the operator's operands")]
pub unsafe fn forward(
    threads: &dyn Threads,
    g: &Rnn,
    p: &Parameters,
    packed: Packed,
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
    // SAFETY: same contract.
    with_real!(g.elem, T => unsafe {
        let s = |p: *const u8| Shared(p.cast_mut().cast::<T>());
        forward::run::<T>(threads, g, p, packed, lengths, [s(x), s(h0), s(c0)], [s(y), s(hn), s(cn)], [s(workspace), s(scratch)])
    })
}

/// Gradients of [`forward`], from its operands, its result `y` and the `workspace` that it filled. Overwrites the workspace, and `y` after the
/// ends of sequences.
///
/// # Panics
/// Same as for [`forward`].
///
/// # Safety
/// Same as for [`forward`]; `y` and `workspace` are as [`forward`] left them.
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
    // SAFETY: same contract.
    with_real!(g.elem, T => unsafe {
        let s = |p: *const u8| Shared(p.cast_mut().cast::<T>());
        backward::run::<T>(threads, g, p, lengths, [s(x), s(h0), s(c0), s(y)], cotangents, gradients, [s(workspace), s(scratch)])
    })
}

/// Copies some units of a state of one sequence, from offset `own` on, to `to`; writes 0 if the state is null.
///
/// # Safety
/// `units` elements at both.
unsafe fn copy_state<T: Real>(state: Shared<T>, own: usize, to: *mut T, units: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if state.is_null() {
            std::slice::from_raw_parts_mut(to, units).fill(T::ZERO);
        } else {
            std::ptr::copy_nonoverlapping(state.at(own).cast_const(), to, units);
        }
    }
}

/// `c = a @ b + beta * c` with `(row, column)` strides in elements, on several threads.
///
/// # Safety
/// Same as for `gemm::gemm`.
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
    // SAFETY: same contract.
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
