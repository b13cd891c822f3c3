//! Recurrent layers: stacked, bidirectional, with dropout between layers and sequences of several lengths.
#![allow(unsafe_code)]

use mxnet_kernels::rnn::{self as kernel, Cell, Cotangents, Direction, Gradients, Parameters, Rnn};
use mxnet_tensor::{DType, Dims, Tensor};
use smallvec::SmallVec;

use crate::args::{Args, Attrs, Param, ParamKind, Value};
use crate::cx::{CallCx, KernelCx};
use crate::eager::elem;
use crate::error::{Error, Result, Tuple};
use crate::invoke::{invoke, invoke_with, invoke1};
use crate::linalg::flops_ns;
use crate::nn::dropout::DROPOUT;
use crate::nn::operand::{self, Staged};
use crate::nn::unrolled::{self, Steps};
use crate::opdef::{Cost, Cpu, Grad, Grads, Keep, OpDef, Probe, Surface};
use crate::shape::{concatenate, narrow};
use crate::types::Types;
use crate::{Array, Outputs, creation, interp};

const MODES: &[&str] = &["rnn_relu", "rnn_tanh", "lstm", "gru"];

/// Layers of recurrent cells over whole sequences.
pub static RNN: OpDef = OpDef {
    name: "rnn",
    surface: &[Surface::Npx("rnn")],
    params: &[
        Param::array("data"),
        Param::array("parameters"),
        Param::array("state"),
        Param::optional_array("state_cell"),
        Param::optional_array("sequence_length"),
        Param::required("mode", ParamKind::Choice(MODES)),
        Param::required("state_size", ParamKind::Int),
        Param::required("num_layers", ParamKind::Int),
        Param::bool("bidirectional", false),
        Param::bool("state_outputs", false),
        Param::float("p", 0.0),
        Param::bool("use_sequence_length", false),
    ],
    doc: "Recurrent layers over `data` (time, n, c): `lstm`, `gru` (the reset gate after the product), `rnn_tanh` or `rnn_relu`. `state`, and `state_cell` for \
          an LSTM, are (num_layers * directions, n, state_size). `parameters` is one vector: for each layer and direction the weight from the input (gates * \
          state_size, c) and the one from the state (gates * state_size, state_size), then for each the two biases; gates are i, f, g, o and r, z, n. `p` is the \
          dropout between layers while training. With `use_sequence_length`, `sequence_length` (n,) says where each sequence ends: later results are 0, final states are \
          those of the last element, and the backward direction starts there. The result is (time, n, directions * state_size); `state_outputs` adds the final states.",
    cpu: Cpu::Composite(run_all),
    probe: Probe::calls(&[
        "f((3, 2, 2)), f((48,)), f((1, 2, 2)), f((1, 2, 2)), None, 'lstm', 2, 1",
        "f((3, 2, 2)), f((72,)), f((2, 2, 2)), None, None, 'gru', 2, 1, True, True",
        "f((3, 2, 2)), f((24,)), f((2, 2, 2)), None, np.array([3, 1]), 'rnn_tanh', 2, 2, state_outputs=True, use_sequence_length=True",
    ])
    .ulp(64),
    ..OpDef::COMPOSITE
};

/// One layer in one direction.
pub static RNN_LAYER: OpDef = OpDef {
    name: "rnn_layer",
    params: &[
        Param::array("data"),
        Param::array("wi"),
        Param::array("wh"),
        Param::array("bi"),
        Param::array("bh"),
        Param::array("h0"),
        Param::optional_array("c0"),
        Param::required("mode", ParamKind::Choice(MODES)),
        Param::bool("reverse", false),
    ],
    doc: "Result, last hidden and last cell state of one recurrent layer in one direction, and what its gradient needs.",
    types: Types::REAL_FLOAT,
    infer: |cx| {
        let g = geometry(&cx.args, cx.shape(0), cx.shape(2), DType::F32);
        let dtype = crate::types::promoted(cx.inputs);
        let state = Dims::from_slice(&[g.batch, g.hidden]);
        let cells = if g.cell == Cell::Lstm {
            state.clone()
        } else {
            Dims::from_slice(&[0, g.hidden])
        };
        let kept = kernel::workspace_bytes(&g) / 4;
        cx.many([
            (Dims::from_slice(&[g.time, g.batch, g.hidden]), dtype),
            (state, dtype),
            (cells, dtype),
            (Dims::from_slice(&[kept]), operand::compute(dtype)),
        ])
    },
    cpu: Cpu::Kernel(forward),
    grad: Grad::Rule(
        Keep {
            inputs: 0b111_1111,
            outputs: 0b1001,
        },
        |g| {
            if interp::is_recording() {
                return unrolled::gradient(g, steps(&g.args));
            }
            let inputs: SmallVec<[Option<&Array>; 12]> = (0..7)
                .map(|i| g.opt_input(i))
                .chain([Some(g.output(0)), Some(g.output(3)), Some(g.dy(0))])
                .chain([g.has_dy(1).then(|| g.dy(1)), g.has_dy(2).then(|| g.dy(2))])
                .collect();
            let attrs: Attrs = [g.get("mode").clone(), g.get("reverse").clone()]
                .into_iter()
                .collect();
            let found = invoke_with(&RNN_LAYER_GRADIENT, &inputs, &attrs)?;
            let mut grads: Grads = found.into_iter().map(Some).collect();
            grads.truncate(g.num_inputs());
            for i in 0..grads.len() {
                if !g.wants(i) {
                    grads[i] = None;
                }
            }
            Ok(grads)
        },
    ),
    cost: Cost::Of(|cx| cost_ns(cx, 1)),
    probe: Probe::calls(&[
        "f((3, 2, 2)), f((8, 2)), f((8, 2)), f((8,)), f((8,)), f((2, 2)), f((2, 2)), 'lstm'",
    ])
    .ulp(64),
    ..OpDef::DEFAULT
};

/// The gradient of one layer.
pub static RNN_LAYER_GRADIENT: OpDef = OpDef {
    name: "rnn_layer_gradient",
    params: &[
        Param::array("data"),
        Param::array("wi"),
        Param::array("wh"),
        Param::array("bi"),
        Param::array("bh"),
        Param::array("h0"),
        Param::optional_array("c0"),
        Param::array("y"),
        Param::array("workspace"),
        Param::array("dy"),
        Param::optional_array("dhn"),
        Param::optional_array("dcn"),
        Param::required("mode", ParamKind::Choice(MODES)),
        Param::bool("reverse", false),
    ],
    doc: "Gradients of `rnn_layer` with respect to its arrays.",
    infer: |cx| {
        let cells = cx.opt(6).map_or(Dims::from_slice(&[0, 0]), |c| Dims::from_slice(c.shape()));
        let dtype = cx.dtype_of(7);
        let given = (0..6).map(|i| (Dims::from_slice(cx.shape(i)), dtype));
        cx.many(given.chain([(cells, dtype)]))
    },
    cpu: Cpu::Kernel(backward),
    grad: Grad::Stop("gradients of gradients are composed of other operators"),
    cost: Cost::Of(|cx| cost_ns(cx, 2)),
    probe: Probe::calls(&["f((1, 1, 1)), f((1, 1)), f((1, 1)), f((1,)), f((1,)), f((1, 1)), None, f((1, 1, 1)), f((1,)), f((1, 1, 1)), None, None, 'rnn_tanh'"]).ulp(64),
    ..OpDef::DEFAULT
};

/// Consecutive parts of a vector.
pub static CUT: OpDef = OpDef {
    name: "cut",
    params: &[
        Param::array("data"),
        Param::required("sizes", ParamKind::Ints),
    ],
    doc: "Consecutive parts of a vector, copied; their gradients are joined in one piece.",
    infer: |cx| {
        let total: i64 = cx.ints("sizes").iter().sum();
        if cx.shape(0) != [total as usize] {
            return Err(cx.shape_error(format!(
                "a vector of shape {} cannot be cut into {total} elements",
                Tuple(cx.shape(0))
            )));
        }
        cx.many(
            cx.ints("sizes")
                .iter()
                .map(|&n| (Dims::from_slice(&[n as usize]), cx.dtype_of(0))),
        )
    },
    cpu: Cpu::Kernel(|cx| {
        let x = cx.input(0);
        let mut start = 0;
        for part in cx.outputs {
            let layout =
                x.layout()
                    .slice(0, Some(start), Some(start + part.len() as isize), None)?;
            crate::cpu::copy(&x.with_layout(layout), part, cx.threads)?;
            start += part.len() as isize;
        }
        Ok(())
    }),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        let parts: SmallVec<[&Array; 8]> = (0..g.ints("sizes").len()).map(|i| g.dy(i)).collect();
        g.one(concatenate(&parts, 0)?)
    }),
    probe: Probe::calls(&["f((5,)), (2, 0, 3)"]),
    ..OpDef::DEFAULT
};

fn cost_ns(cx: &CallCx, passes: usize) -> u64 {
    let steps: usize = cx.shape(0)[..2].iter().product();
    passes as u64 * flops_ns(2 * steps * (cx.input(1).len() + cx.input(2).len()))
}

fn cell(args: &Args) -> Cell {
    match args.str("mode") {
        "lstm" => Cell::Lstm,
        "gru" => Cell::Gru,
        "rnn_tanh" => Cell::Tanh,
        _ => Cell::Relu,
    }
}

fn steps(args: &Args) -> Steps {
    Steps {
        cell: cell(args),
        direction: direction(args),
        clip: None,
    }
}

fn direction(args: &Args) -> Direction {
    if args.bool("reverse") {
        Direction::Reverse
    } else {
        Direction::Forward
    }
}

fn geometry(args: &Args, data: &[usize], wh: &[usize], dtype: DType) -> Rnn {
    Rnn {
        elem: elem(operand::compute(dtype)),
        cell: cell(args),
        direction: direction(args),
        time: data[0],
        batch: data[1],
        input: data[2],
        hidden: wh[1],
    }
}

fn forward(cx: &KernelCx) -> Result<()> {
    let [y, hn, cn, workspace] = [0, 1, 2, 3].map(|i| cx.output(i));
    let dtype = operand::compute(y.dtype());
    let g = geometry(&cx.args, cx.input(0).shape(), cx.input(2).shape(), dtype);
    let dense: SmallVec<[Option<Tensor>; 7]> = (0..7)
        .map(|i| operand::dense_or_none(cx.opt(i), dtype, cx.threads))
        .collect::<Result<_>>()?;
    let at = |i: usize| operand::pointer(dense[i].as_ref()).cast_const();
    let outs = [
        Staged::new(y, dtype)?,
        Staged::new(hn, dtype)?,
        Staged::new(cn, dtype)?,
    ];
    let scratch = operand::scratch(kernel::scratch_bytes(&g))?;
    if workspace.len() * dtype.size() < kernel::workspace_bytes(&g) {
        let problem = format!(
            "a workspace of {} elements for {} bytes",
            workspace.len(),
            kernel::workspace_bytes(&g)
        );
        return Err(Error::internal(cx.op.name, problem));
    }
    let parameters = Parameters {
        wi: at(1),
        wh: at(2),
        bi: at(3),
        bh: at(4),
    };
    let cells = if g.cell == Cell::Lstm {
        outs[2].ptr()
    } else {
        std::ptr::null_mut()
    };
    // SAFETY: 1. operands are dense, of `dtype` and of the sizes that the geometry says (the composite that calls this made them so). 2. results,
    // workspace and scratch are this call's own, of the sizes the kernel asks for.
    unsafe {
        kernel::forward(
            cx.threads,
            &g,
            &parameters,
            at(0),
            at(5),
            at(6),
            outs[0].ptr(),
            outs[1].ptr(),
            cells,
            workspace.data_ptr(),
            scratch.data_ptr(),
        );
    }
    for out in outs {
        out.finish(cx.threads)?;
    }
    Ok(())
}

fn backward(cx: &KernelCx) -> Result<()> {
    let dtype = operand::compute(cx.output(0).dtype());
    let g = geometry(&cx.args, cx.input(0).shape(), cx.input(2).shape(), dtype);
    let dense: SmallVec<[Option<Tensor>; 12]> = (0..12)
        .map(|i| operand::dense_or_none(cx.opt(i), dtype, cx.threads))
        .collect::<Result<_>>()?;
    let at = |i: usize| operand::pointer(dense[i].as_ref()).cast_const();
    let outs: SmallVec<[Staged; 7]> = (0..7)
        .map(|i| Staged::new(cx.output(i), dtype))
        .collect::<Result<_>>()?;
    // The kernel uses the workspace up, but the graph may be walked again.
    let kept = cx.input(8);
    let space = Tensor::empty(kept.shape(), dtype, kept.device())?;
    crate::cpu::copy(kept, &space, cx.threads)?;
    if space.len() * dtype.size() < kernel::workspace_bytes(&g) {
        let problem = format!(
            "a workspace of {} bytes, needs {}",
            space.len() * dtype.size(),
            kernel::workspace_bytes(&g)
        );
        return Err(Error::value(cx.op.name, problem));
    }
    let scratch = operand::scratch(kernel::scratch_bytes(&g))?;
    let parameters = Parameters {
        wi: at(1),
        wh: at(2),
        bi: at(3),
        bh: at(4),
    };
    let cotangents = Cotangents {
        dy: at(9),
        dhn: at(10),
        dcn: if g.cell == Cell::Lstm {
            at(11)
        } else {
            std::ptr::null()
        },
    };
    let lstm = g.cell == Cell::Lstm && cx.opt(6).is_some();
    let gradients = Gradients {
        dx: outs[0].ptr(),
        dwi: outs[1].ptr(),
        dwh: outs[2].ptr(),
        dbi: outs[3].ptr(),
        dbh: outs[4].ptr(),
        dh0: outs[5].ptr(),
        dc0: if lstm {
            outs[6].ptr()
        } else {
            std::ptr::null_mut()
        },
    };
    // SAFETY: 1. operands are dense, of `dtype` and of the sizes that the geometry says: those of the forward call. 2. results, workspace (checked
    // above) and scratch are this call's own, of the sizes the kernel asks for.
    unsafe {
        kernel::backward(
            cx.threads,
            &g,
            &parameters,
            at(0),
            at(5),
            at(6),
            at(7),
            &cotangents,
            &gradients,
            space.data_ptr(),
            scratch.data_ptr(),
        );
    }
    for out in outs {
        out.finish(cx.threads)?;
    }
    Ok(())
}

/// What a call says about its layers.
struct Stack {
    gates: usize,
    hidden: usize,
    layers: usize,
    directions: usize,
    lstm: bool,
}

impl Stack {
    fn of(cx: &CallCx) -> Result<Stack> {
        let positive = |name: &str| match cx.int(name) {
            n if n > 0 => Ok(n as usize),
            n => Err(cx.value_error(format!("`{name}` is {n}, must be at least 1"))),
        };
        let stack = Stack {
            gates: cell(cx).gates(),
            hidden: positive("state_size")?,
            layers: positive("num_layers")?,
            directions: 1 + usize::from(cx.bool("bidirectional")),
            lstm: cx.str("mode") == "lstm",
        };
        let [_, batch, input] = *cx.shape(0) else {
            return Err(cx.shape_error(format!(
                "data have {} axes, needs 3: time, samples, channels",
                cx.shape(0).len()
            )));
        };
        let needed: usize = stack.sizes(input).iter().sum();
        if cx.shape(1) != [needed] {
            return Err(cx.shape_error(format!(
                "`parameters` has shape {}, these layers have {needed} parameters",
                Tuple(cx.shape(1))
            )));
        }
        let state = [stack.layers * stack.directions, batch, stack.hidden];
        for (i, name) in [(2, "state"), (3, "state_cell")] {
            if let Some(x) = cx.opt(i).filter(|x| x.shape() != state) {
                return Err(cx.shape_error(format!(
                    "`{name}` has shape {}, needs {}",
                    Tuple(x.shape()),
                    Tuple(&state)
                )));
            }
        }
        if stack.lstm != cx.opt(3).is_some() {
            let problem = if stack.lstm {
                "an LSTM needs a `state_cell`"
            } else {
                "a `state_cell` is given, but only an LSTM has one"
            };
            return Err(cx.value_error(problem));
        }
        if cx.opt(4).is_some() != cx.bool("use_sequence_length") {
            return Err(cx.value_error(
                "`sequence_length` and `use_sequence_length` go together: give both or none",
            ));
        }
        if let Some(lengths) = cx.opt(4).filter(|l| l.shape() != [batch]) {
            return Err(cx.shape_error(format!(
                "`sequence_length` has shape {}, needs ({batch},)",
                Tuple(lengths.shape())
            )));
        }
        Ok(stack)
    }

    /// Sizes of the parts of the parameter vector: weights of all layers, then biases.
    fn sizes(&self, input: usize) -> SmallVec<[usize; 16]> {
        let rows = self.gates * self.hidden;
        let weights = (0..self.layers).flat_map(|layer| {
            let width = if layer == 0 {
                input
            } else {
                self.directions * self.hidden
            };
            (0..self.directions).flat_map(move |_| [rows * width, rows * self.hidden])
        });
        let biases = std::iter::repeat_n(rows, 2 * self.layers * self.directions);
        weights.chain(biases).collect()
    }
}

fn run_all(cx: &CallCx) -> Result<Outputs> {
    let stack = Stack::of(cx)?;
    let x = cx.input(0);
    let sizes: SmallVec<[i64; 16]> = stack
        .sizes(x.shape()[2])
        .iter()
        .map(|&n| n as i64)
        .collect();
    let parts = invoke(
        &CUT,
        &[cx.input(1)],
        &[Value::from(&sizes[..])].into_iter().collect(),
    )?;
    let (state, cells) = (cx.input(2), cx.opt(3));
    let (y, h, c) = match cx.opt(4) {
        None => layers(cx, &stack, &parts, x, state, cells)?,
        Some(lengths) => by_length(cx, &stack, &parts, lengths)?,
    };
    let mut all: Outputs = SmallVec::from_iter([y]);
    if cx.bool("state_outputs") {
        all.push(h);
        all.extend(c);
    }
    Ok(all)
}

/// All layers over sequences of one length: result, hidden states, cell states.
fn layers(
    cx: &CallCx,
    stack: &Stack,
    parts: &[Array],
    x: &Array,
    state: &Array,
    cells: Option<&Array>,
) -> Result<(Array, Array, Option<Array>)> {
    let rows = stack.gates * stack.hidden;
    let biases = &parts[2 * stack.layers * stack.directions..];
    let mut x = x.clone();
    let (mut hs, mut cs): (Vec<Array>, Vec<Array>) = (Vec::new(), Vec::new());
    for layer in 0..stack.layers {
        if layer > 0 && cx.float("p") > 0.0 {
            let attrs: Attrs = [cx.get("p").clone(), Value::Word("training"), Value::None]
                .into_iter()
                .collect();
            x = invoke1(&DROPOUT, &[&x], &attrs)?;
        }
        let mut ys: SmallVec<[Array; 2]> = SmallVec::new();
        for direction in 0..stack.directions {
            let at = layer * stack.directions + direction;
            let wi = parts[2 * at].reshape(&[rows, x.shape()[2]])?;
            let wh = parts[2 * at + 1].reshape(&[rows, stack.hidden])?;
            let h0 = one_of(state, at)?;
            let c0 = cells.map(|c| one_of(c, at)).transpose()?;
            let attrs: Attrs = [cx.get("mode").clone(), Value::Bool(direction == 1)]
                .into_iter()
                .collect();
            let inputs = [
                Some(&x),
                Some(&wi),
                Some(&wh),
                Some(&biases[2 * at]),
                Some(&biases[2 * at + 1]),
                Some(&h0),
                c0.as_ref(),
            ];
            let found = invoke_with(&RNN_LAYER, &inputs, &attrs)?;
            ys.push(found[0].clone());
            let one = [1, h0.shape()[0], stack.hidden];
            hs.push(found[1].reshape(&one)?);
            if stack.lstm {
                cs.push(found[2].reshape(&one)?);
            }
        }
        x = joined(&ys, 2)?;
    }
    let c = if stack.lstm {
        Some(joined(&cs, 0)?)
    } else {
        None
    };
    Ok((x, joined(&hs, 0)?, c))
}

/// Sequences of equal length together: later results are 0, and the states are those at the ends.
fn by_length(
    cx: &CallCx,
    stack: &Stack,
    parts: &[Array],
    lengths: &Array,
) -> Result<(Array, Array, Option<Array>)> {
    let (x, state, cells) = (cx.input(0), cx.input(2), cx.opt(3));
    let [time, batch, _] = *x.shape() else {
        return Err(Error::internal(
            cx.op.name,
            "data were checked to have 3 axes",
        ));
    };
    let lengths = lengths.detach().astype(DType::I64)?.to_vec::<i64>()?;
    if let Some((i, bad)) = lengths
        .iter()
        .enumerate()
        .find(|(_, l)| **l < 0 || **l > time as i64)
    {
        return Err(cx.value_error(format!(
            "`sequence_length` {i} is {bad}, must be in 0..={time}"
        )));
    }
    let mut found: Vec<Option<[Array; 3]>> = vec![None; batch];
    let mut distinct: Vec<i64> = lengths.clone();
    distinct.sort_unstable();
    distinct.dedup();
    for length in distinct {
        let members: Vec<usize> = (0..batch).filter(|&i| lengths[i] == length).collect();
        let pick = |x: &Array| -> Result<Array> {
            let columns: Vec<Array> = members
                .iter()
                .map(|&i| narrow(x, 1, i, i + 1))
                .collect::<Result<_>>()?;
            joined(&columns, 1)
        };
        let length = length as usize;
        let (h0, c0) = (pick(state)?, cells.map(&pick).transpose()?);
        let (y, h, c) = if length == 0 {
            let none = [0, members.len(), stack.directions * stack.hidden];
            (creation::zeros(&none, x.dtype(), x.device())?, h0, c0)
        } else {
            layers(
                cx,
                stack,
                parts,
                &narrow(&pick(x)?, 0, 0, length)?,
                &h0,
                c0.as_ref(),
            )?
        };
        let rest = creation::zeros(
            &[time - length, members.len(), y.shape()[2]],
            y.dtype(),
            y.device(),
        )?;
        let y = concatenate(&[&y, &rest], 0)?;
        for (column, &i) in members.iter().enumerate() {
            let column = |x: &Array| narrow(x, 1, column, column + 1);
            let cells = match &c {
                Some(c) => column(c)?,
                None => column(&h)?,
            };
            found[i] = Some([column(&y)?, column(&h)?, cells]);
        }
    }
    let all = |which: usize| -> Result<Array> {
        let columns: Vec<Array> = found.iter().flatten().map(|f| f[which].clone()).collect();
        joined(&columns, 1)
    };
    if batch == 0 {
        return layers(cx, stack, parts, x, state, cells);
    }
    Ok((
        all(0)?,
        all(1)?,
        if stack.lstm { Some(all(2)?) } else { None },
    ))
}

/// Element `i` along the first axis.
fn one_of(x: &Array, i: usize) -> Result<Array> {
    narrow(x, 0, i, i + 1)?.reshape(&x.shape()[1..])
}

/// Arrays joined along an axis; a single one as it is.
fn joined(arrays: &[Array], axis: usize) -> Result<Array> {
    if let [only] = arrays {
        return Ok(only.clone());
    }
    concatenate(&arrays.iter().collect::<SmallVec<[&Array; 8]>>(), axis)
}
