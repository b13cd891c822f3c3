//! Recurrent layers composed of differentiable operators, step by step. They replace the fused kernel where the gradient itself is
//! recorded, and serve cells that the kernel does not have.

use mxnet_kernels::rnn::{Cell, Direction};
use mxnet_tensor::Scalar;
use smallvec::SmallVec;

use crate::args::Attrs;
use crate::autograd::{self, GradContext, Retain};
use crate::elementwise::comparison::{EQUAL, GREATER};
use crate::elementwise::network::{RELU, SIGMOID};
use crate::elementwise::select::{BOUND, choose};
use crate::error::Result;
use crate::mode::{self, Scope};
use crate::nn::operand;
use crate::opdef::Grads;
use crate::shape::{concatenate, narrow};
use crate::{Array, creation, invoke1};

/// Parameters of one layer in one direction.
pub(super) struct Weights<'a> {
    /// From the input, (gates * hidden, c).
    pub wi: &'a Array,
    /// From the state, (gates * hidden, width of the state).
    pub wh: &'a Array,
    /// Biases, (gates * hidden,) each.
    pub bi: &'a Array,
    pub bh: &'a Array,
    /// Projection from the cell's output to the state, (width of the state, hidden); `None` for no projection.
    pub wr: Option<&'a Array>,
}

/// Direction of the steps and bounds of the cell state.
#[derive(Clone, Copy)]
pub(super) struct Steps {
    pub cell: Cell,
    pub direction: Direction,
    /// Bounds of an LSTM's cell state.
    pub clip: Option<Clip>,
}

/// Bounds of a cell state.
#[derive(Clone, Copy)]
pub(super) struct Clip {
    pub min: f64,
    pub max: f64,
    /// Whether NaN becomes the lower bound.
    pub nan: bool,
}

/// Results (time, n, width), last state (n, width) and, for an LSTM, last cell state (n, hidden) of one layer over `x` (time, n, c). Steps after the
/// end of a sequence, given by `lengths` (n,), leave the states unchanged; their results are 0.
pub(super) fn unroll(
    steps: Steps,
    x: &Array,
    lengths: Option<&Array>,
    weights: &Weights,
    h0: &Array,
    c0: Option<&Array>,
) -> Result<(Array, Array, Option<Array>)> {
    let (time, batch) = (x.shape()[0], x.shape()[1]);
    let (mut h, mut c) = (h0.clone(), c0.cloned());
    if steps.cell == Cell::Lstm && c.is_none() {
        let hidden = weights.wi.shape()[0] / steps.cell.gates();
        c = Some(creation::zeros(&[batch, hidden], x.dtype(), x.device())?);
    }
    let transposed = weights.wh.transpose(None)?;
    let from_input = x.matmul(&weights.wi.transpose(None)?)?.add(weights.bi)?;
    let mut results: Vec<Option<Array>> = vec![None; time];
    for step in 0..time {
        let t = match steps.direction {
            Direction::Forward => step,
            Direction::Reverse => time - 1 - step,
        };
        let a = narrow(&from_input, 0, t, t + 1)?.reshape(&from_input.shape()[1..])?;
        let b = h.matmul(&transposed)?.add(weights.bh)?;
        let (before, cell_before) = (h.clone(), c.clone());
        (h, c) = advance(steps, &a, &b, h, c)?;
        if let Some(wr) = weights.wr {
            h = h.matmul(&wr.transpose(None)?)?;
        }
        let row = [1, batch, h.shape()[1]];
        let mut result = h.clone();
        if let Some(lengths) = lengths {
            let step = Array::weak_scalar(Scalar::I64(t as i64))?;
            let goes_on = lengths.binary(&GREATER, &step)?.reshape(&[batch, 1])?;
            let zero = Array::constant(Scalar::F64(0.0), h.dtype())?;
            result = choose(&goes_on, &h, &zero)?;
            h = choose(&goes_on, &h, &before)?;
            c = match (c, cell_before) {
                (Some(new), Some(old)) => Some(choose(&goes_on, &new, &old)?),
                (c, _) => c,
            };
        }
        results[t] = Some(result.reshape(&row)?);
    }
    let rows: SmallVec<[&Array; 8]> = results.iter().flatten().collect();
    let y = match rows.is_empty() {
        true => creation::zeros(&[0, batch, h0.shape()[1]], x.dtype(), x.device())?,
        false => concatenate(&rows, 0)?,
    };
    Ok((y, h, c))
}

/// One step, from the contributions of the input and of the state to the gates, the old state and the old cell state.
fn advance(
    steps: Steps,
    a: &Array,
    b: &Array,
    h: Array,
    c: Option<Array>,
) -> Result<(Array, Option<Array>)> {
    let hidden = a.shape()[1] / steps.cell.gates();
    let gate = |x: &Array, k: usize| narrow(x, 1, k * hidden, (k + 1) * hidden);
    match (steps.cell, c) {
        (Cell::Tanh, c) => Ok((a.add(b)?.tanh()?, c)),
        (Cell::Relu, c) => Ok((a.add(b)?.unary(&RELU)?, c)),
        (Cell::Gru, c) => {
            let r = gate(a, 0)?.add(&gate(b, 0)?)?.unary(&SIGMOID)?;
            let z = gate(a, 1)?.add(&gate(b, 1)?)?.unary(&SIGMOID)?;
            let new = gate(a, 2)?.add(&r.mul(&gate(b, 2)?)?)?.tanh()?;
            Ok((new.add(&z.mul(&h.sub(&new)?)?)?, c))
        }
        (Cell::Lstm, c) => {
            let sums = a.add(b)?;
            let i = gate(&sums, 0)?.unary(&SIGMOID)?;
            let f = gate(&sums, 1)?.unary(&SIGMOID)?;
            let g = gate(&sums, 2)?.tanh()?;
            let o = gate(&sums, 3)?.unary(&SIGMOID)?;
            let new = i.mul(&g)?;
            let c = match c {
                Some(c) => new.add(&f.mul(&c)?)?,
                None => new,
            };
            let c = bounded(c, steps.clip)?;
            Ok((o.mul(&c.tanh()?)?, Some(c)))
        }
    }
}

fn bounded(c: Array, clip: Option<Clip>) -> Result<Array> {
    let Some(Clip { min, max, nan }) = clip else {
        return Ok(c);
    };
    let bound = |x: f64| Array::weak_scalar(Scalar::F64(x));
    let within = invoke1(&BOUND, &[&c, &bound(min)?, &bound(max)?], &Attrs::none())?;
    if !nan {
        return Ok(within);
    }
    let is_number = c.binary(&EQUAL, &c)?;
    choose(
        &is_number,
        &within,
        &Array::constant(Scalar::F64(min), c.dtype())?,
    )
}

/// The gradient of `rnn_layer` as differentiable operators: the layer is computed once more step by step, and that is differentiated.
pub(super) fn gradient(g: &GradContext, steps: Steps) -> Result<Grads> {
    let _recording = Scope::enter(true, g.training);
    // Detached copies stand for the inputs: the gradient with respect to one must not include paths through another that was computed from it.
    let own: SmallVec<[Option<Array>; 7]> = (0..7)
        .map(|i| g.opt_input(i).map(|x| x.reshape(x.shape())).transpose())
        .collect::<Result<_>>()?;
    let dtype = operand::compute(g.dtype_of(0));
    let wide: SmallVec<[Option<Array>; 7]> = own
        .iter()
        .map(|x| x.as_ref().map(|x| x.astype(dtype)).transpose())
        .collect::<Result<_>>()?;
    let [
        Some(x),
        Some(wi),
        Some(wh),
        Some(bi),
        Some(bh),
        Some(h0),
        c0,
    ] = &wide[..]
    else {
        return Err(crate::Error::internal(g.op.name, "an input is missing"));
    };
    let weights = Weights {
        wi,
        wh,
        bi,
        bh,
        wr: None,
    };
    let (y, h, c) = unroll(steps, x, g.opt_input(7), &weights, h0, c0.as_ref())?;
    let mut heads: SmallVec<[Array; 3]> = SmallVec::new();
    let mut cotangents: SmallVec<[Array; 3]> = SmallVec::new();
    for (i, head) in [Some(y), Some(h), c].into_iter().enumerate() {
        if let Some(head) = head.filter(|head| g.has_dy(i) && head.entry().is_some()) {
            cotangents.push(g.dy(i).astype(dtype)?);
            heads.push(head);
        }
    }
    let wanted: SmallVec<[usize; 7]> = (0..g.num_inputs().min(7)).filter(|&i| g.wants(i)).collect();
    let variables: SmallVec<[&Array; 7]> = wanted.iter().filter_map(|&i| own[i].as_ref()).collect();
    let found = autograd::grad(
        &heads.iter().collect::<Vec<_>>(),
        &variables,
        &cotangents.iter().map(Some).collect::<Vec<_>>(),
        Retain::Yes,
        true,
        mode::is_training(),
    )?;
    let mut grads = Grads::from_elem(None, g.num_inputs());
    for (&i, gradient) in wanted.iter().zip(found) {
        grads[i] = Some(gradient);
    }
    Ok(grads)
}
