//! Recurrent layers: stacked, bidirectional, with dropout between layers and sequences of several lengths.

use mxnet_kernels::rnn::{Cell, Direction};
use mxnet_tensor::Dims;
use smallvec::SmallVec;

use crate::args::{Attrs, Param, ParamKind, Value};
use crate::context::CallContext;
use crate::error::{Error, Result, Tuple};
use crate::invoke::{invoke, invoke_with, invoke1};
use crate::nn::dropout::DROPOUT;
use crate::nn::operand;
use crate::nn::rnn_layer::{MODES, RNN_LAYER, cell};
use crate::nn::sequence::SEQUENCE_MASK;
use crate::nn::unrolled::{Clip, Steps, Weights, unroll};
use crate::opdef::{Amp, Cpu, Grad, Keep, OpDef, Probe, Surface};
use crate::shape::{concatenate, narrow};
use crate::{Array, Outputs};

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
        Param::optional("mode", ParamKind::Choice(MODES)),
        Param::optional("state_size", ParamKind::Int),
        Param::optional("num_layers", ParamKind::Int),
        Param::bool("bidirectional", false),
        Param::bool("state_outputs", false),
        Param::float("p", 0.0),
        Param::bool("use_sequence_length", false),
        Param::optional("projection_size", ParamKind::Int),
        Param::optional("lstm_state_clip_min", ParamKind::Float),
        Param::optional("lstm_state_clip_max", ParamKind::Float),
        Param::optional("lstm_state_clip_nan", ParamKind::Bool),
    ],
    doc: "Recurrent layers over `data` (time, n, c): `lstm`, `gru` (the reset gate after the product), `rnn_tanh` or `rnn_relu`. `state` is \
          (num_layers * directions, n, state_size), as is `state_cell` of an LSTM. `parameters` is one vector: for each layer and direction the \
          weight from the input (gates * state_size, c) and the one from the state (gates * state_size, state_size), then for each the two biases; \
          gates are i, f, g, o and r, z, n. `p` is the dropout between layers while training. With `use_sequence_length`, `sequence_length` (n,) has \
          the length of each sequence: later results are 0, final states are those of the last element, and the backward direction starts there. The \
          result is (time, n, directions * state_size); `state_outputs` adds the final states.\n\n\
          With `projection_size` the hidden state of an LSTM is its cell's output times one more weight, (projection_size, state_size), after the \
          other two: results and `state` have the size `projection_size`, `state_cell` the size `state_size`. `lstm_state_clip_min` and \
          `lstm_state_clip_max`, given together, bound the cell state after every step; with `lstm_state_clip_nan` NaN becomes the lower bound. \
          Layers with either go step by step, without the fused kernel.",
    about: &[
        ("data", "(time, n, c)."),
        ("parameters", "All weights, then all biases, in one vector."),
        ("state", "(num_layers * directions, n, state_size)."),
        ("state_cell", "Of the shape of `state`, for an LSTM."),
        ("sequence_length", "(n,), integers."),
        ("mode", "The kind of cell; required."),
        ("state_size", "Length of the state; required."),
        ("num_layers", "Number of stacked layers; required."),
        ("bidirectional", "Whether each layer also runs backwards."),
        ("state_outputs", "Whether the final states are returned too."),
        ("p", "Dropout between layers while training."),
        ("use_sequence_length", "Whether `sequence_length` is used."),
        ("projection_size", "Length of the projected state of an LSTM."),
        ("lstm_state_clip_min", "Lower bound of the cell state."),
        ("lstm_state_clip_max", "Upper bound of the cell state."),
        ("lstm_state_clip_nan", "Whether NaN becomes the lower bound."),
    ],
    returns: &[
        ("ndarray", "Of shape (time, n, directions * state_size); with `state_outputs` a tuple with the states."),
    ],
    raises: &[("ValueError", "If the sizes do not fit.")],
    example: "
        >>> data, state = np.ones((2, 1, 1)), np.zeros((1, 1, 1))
        >>> parameters = np.array([1.0, 0.5, 0.0, 0.0])  # both weights, both biases
        >>> npx.rnn(data, parameters, state, mode='rnn_relu', state_size=1, num_layers=1).ravel()
        array([1. , 1.5])
    ",
    cpu: Cpu::Composite(run_all),
    amp: Amp::Narrow,
    probe: Probe::calls(&[
        "f((3, 2, 2)), f((48,)), f((1, 2, 2)), f((1, 2, 2)), None, 'lstm', 2, 1",
        "f((3, 2, 2)), f((72,)), f((2, 2, 2)), None, None, 'gru', 2, 1, True, True",
        "f((3, 2, 2)), f((126,)), f((2, 2, 1)), f((2, 2, 3)), None, 'lstm', 3, 1, True, True, projection_size=1",
        "f((3, 2, 2)), f((48,)), f((1, 2, 2)), f((1, 2, 2)), None, 'lstm', 2, 1, lstm_state_clip_min=-0.25, lstm_state_clip_max=0.5",
        "f((3, 2, 2)), f((24,)), f((2, 2, 2)), None, np.array([3, 1]), 'rnn_tanh', 2, 2, state_outputs=True, use_sequence_length=True",
    ])
    .ulp(64),
    positions: &[4],
    ..OpDef::COMPOSITE
};

/// Splits a vector into consecutive parts.
pub static SPLIT_VECTOR: OpDef = OpDef {
    name: "split_vector",
    old_names: &["cut"],
    params: &[
        Param::array("data"),
        Param::required("sizes", ParamKind::Ints),
    ],
    doc: "Copies of consecutive parts of a vector. The gradient concatenates those of the parts.",
    infer: |context| {
        let total: i64 = context.ints("sizes").iter().sum();
        if context.shape(0) != [total as usize] {
            return Err(context.shape_error(format!(
                "a vector of shape {} cannot be cut into {total} elements",
                Tuple(context.shape(0))
            )));
        }
        context.many(
            context
                .ints("sizes")
                .iter()
                .map(|&n| (Dims::from_slice(&[n as usize]), context.dtype_of(0))),
        )
    },
    cpu: Cpu::Kernel(|context| {
        let x = context.input(0);
        let mut start = 0;
        for part in context.outputs {
            let layout =
                x.layout()
                    .slice(0, Some(start), Some(start + part.len() as isize), None)?;
            crate::cpu::copy(&x.with_layout(layout), part, context.threads)?;
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

/// Geometry of the stacked layers of a call.
struct Stack {
    gates: usize,
    hidden: usize,
    layers: usize,
    directions: usize,
    lstm: bool,
    /// Size of a projected state; `None` without projection.
    projection: Option<usize>,
    clip: Option<Clip>,
}

impl Stack {
    fn of(context: &CallContext) -> Result<Stack> {
        for name in ["mode", "state_size", "num_layers"] {
            if context.is_none(name) {
                return Err(context.value_error(format!("`{name}` must be given")));
            }
        }
        let positive = |name: &str| match context.int(name) {
            n if n > 0 => Ok(n as usize),
            n => Err(context.value_error(format!("`{name}` is {n}, must be at least 1"))),
        };
        let stack = Stack {
            gates: cell(context).gates(),
            hidden: positive("state_size")?,
            layers: positive("num_layers")?,
            directions: 1 + usize::from(context.bool("bidirectional")),
            lstm: context.str("mode") == "lstm",
            projection: match context.is_none("projection_size") {
                true => None,
                false => Some(positive("projection_size")?),
            },
            clip: clip(context)?,
        };
        if !stack.lstm && (stack.projection.is_some() || stack.clip.is_some()) {
            let problem = "`projection_size` and `lstm_state_clip_min` are for LSTM layers";
            return Err(
                context.value_error(format!("{problem}, not for '{}'", context.str("mode")))
            );
        }
        let [_, batch, input] = *context.shape(0) else {
            return Err(context.shape_error(format!(
                "data have {} axes, needs 3: time, samples, channels",
                context.shape(0).len()
            )));
        };
        let needed: usize = stack.sizes(input).iter().sum();
        if context.shape(1) != [needed] {
            return Err(context.shape_error(format!(
                "`parameters` has shape {}, these layers have {needed} parameters",
                Tuple(context.shape(1))
            )));
        }
        for (i, name, size) in [(2, "state", stack.width()), (3, "state_cell", stack.hidden)] {
            let state = [stack.layers * stack.directions, batch, size];
            if let Some(x) = context.opt(i).filter(|x| x.shape() != state) {
                return Err(context.shape_error(format!(
                    "`{name}` has shape {}, needs {}",
                    Tuple(x.shape()),
                    Tuple(&state)
                )));
            }
        }
        if stack.lstm != context.opt(3).is_some() {
            let problem = if stack.lstm {
                "an LSTM needs a `state_cell`"
            } else {
                "a `state_cell` is given, but only an LSTM has one"
            };
            return Err(context.value_error(problem));
        }
        if context.opt(4).is_some() != context.bool("use_sequence_length") {
            return Err(context.value_error(
                "`sequence_length` and `use_sequence_length` go together: give both or none",
            ));
        }
        if let Some(lengths) = context.opt(4).filter(|l| l.shape() != [batch]) {
            return Err(context.shape_error(format!(
                "`sequence_length` has shape {}, needs ({batch},)",
                Tuple(lengths.shape())
            )));
        }
        Ok(stack)
    }

    /// Size of the hidden state.
    fn width(&self) -> usize {
        self.projection.unwrap_or(self.hidden)
    }

    /// Weights of one layer and direction.
    fn num_weights(&self) -> usize {
        2 + usize::from(self.projection.is_some())
    }

    /// Sizes of the parts of the parameter vector: weights of all layers, then biases.
    fn sizes(&self, input: usize) -> SmallVec<[usize; 16]> {
        let rows = self.gates * self.hidden;
        let weights = (0..self.layers).flat_map(|layer| {
            let width = if layer == 0 {
                input
            } else {
                self.directions * self.width()
            };
            let sizes = [
                rows * width,
                rows * self.width(),
                self.width() * self.hidden,
            ];
            (0..self.directions).flat_map(move |_| sizes.into_iter().take(self.num_weights()))
        });
        let biases = std::iter::repeat_n(rows, 2 * self.layers * self.directions);
        weights.chain(biases).collect()
    }
}

fn run_all(context: &CallContext) -> Result<Outputs> {
    let stack = Stack::of(context)?;
    let x = context.input(0);
    let sizes: SmallVec<[i64; 16]> = stack
        .sizes(x.shape()[2])
        .iter()
        .map(|&n| n as i64)
        .collect();
    let parts = invoke(
        &SPLIT_VECTOR,
        &[context.input(1)],
        &[Value::from(&sizes[..])].into_iter().collect(),
    )?;
    let (y, h, c) = match context.opt(4) {
        None => layers(context, &stack, &parts, x, None)?,
        Some(lengths) => {
            // Steps after a sequence's end must have no effect, even if they hold NaN.
            let attrs = [Value::Bool(true), Value::Float(0.0), Value::Int(0)];
            let attrs: Attrs = attrs.into_iter().collect();
            let masked = invoke_with(&SEQUENCE_MASK, &[Some(x), Some(lengths)], &attrs)?;
            layers(context, &stack, &parts, &masked[0], Some(lengths))?
        }
    };
    let mut all: Outputs = SmallVec::from_iter([y]);
    if context.bool("state_outputs") {
        all.push(h);
        all.extend(c);
    }
    Ok(all)
}

/// All layers: result, hidden states, cell states.
fn layers(
    context: &CallContext,
    stack: &Stack,
    parts: &[Array],
    x: &Array,
    lengths: Option<&Array>,
) -> Result<(Array, Array, Option<Array>)> {
    let (state, cells) = (context.input(2), context.opt(3));
    let rows = stack.gates * stack.hidden;
    let each = stack.num_weights();
    let biases = &parts[each * stack.layers * stack.directions..];
    let mut x = x.clone();
    let (mut hs, mut cs): (Vec<Array>, Vec<Array>) = (Vec::new(), Vec::new());
    for layer in 0..stack.layers {
        if layer > 0 && context.float("p") > 0.0 {
            let attrs: Attrs = [
                context.get("p").clone(),
                Value::Word("training"),
                Value::None,
                Value::Bool(false),
            ]
            .into_iter()
            .collect();
            x = invoke1(&DROPOUT, &[&x], &attrs)?;
        }
        let mut ys: SmallVec<[Array; 2]> = SmallVec::new();
        for direction in 0..stack.directions {
            let at = layer * stack.directions + direction;
            let wi = parts[each * at].reshape(&[rows, x.shape()[2]])?;
            let wh = parts[each * at + 1].reshape(&[rows, stack.width()])?;
            let wr = stack
                .projection
                .map(|n| parts[each * at + 2].reshape(&[n, stack.hidden]));
            let wr = wr.transpose()?;
            let h0 = one_of(state, at)?;
            let c0 = cells.map(|c| one_of(c, at)).transpose()?;
            if stack.projection.is_some() || stack.clip.is_some() {
                let weights = Weights {
                    wi: &wi,
                    wh: &wh,
                    bi: &biases[2 * at],
                    bh: &biases[2 * at + 1],
                    wr: wr.as_ref(),
                };
                let found = stepped(
                    context,
                    stack,
                    direction,
                    &x,
                    lengths,
                    &weights,
                    (&h0, c0.as_ref()),
                )?;
                ys.push(found[0].clone());
                hs.push(found[1].reshape(&[1, h0.shape()[0], stack.width()])?);
                cs.push(found[2].reshape(&[1, h0.shape()[0], stack.hidden])?);
                continue;
            }
            let attrs: Attrs = [context.get("mode").clone(), Value::Bool(direction == 1)]
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
                lengths,
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

/// One LSTM layer in one direction, composed of operators: result, last state, last cell state.
fn stepped(
    context: &CallContext,
    stack: &Stack,
    direction: usize,
    x: &Array,
    lengths: Option<&Array>,
    weights: &Weights,
    (h0, c0): (&Array, Option<&Array>),
) -> Result<[Array; 3]> {
    let steps = Steps {
        cell: Cell::Lstm,
        direction: match direction {
            0 => Direction::Forward,
            _ => Direction::Reverse,
        },
        clip: stack.clip,
    };
    // float16 and bfloat16 are summed in float32, as in the kernel.
    let returned = crate::types::promoted(&context.inputs[..4]);
    let wide = |x: &Array| x.astype(operand::compute(returned));
    let [wi, wh, bi, bh] = [weights.wi, weights.wh, weights.bi, weights.bh].map(wide);
    let wr = weights.wr.map(wide).transpose()?;
    let weights = Weights {
        wi: &wi?,
        wh: &wh?,
        bi: &bi?,
        bh: &bh?,
        wr: wr.as_ref(),
    };
    let c0 = c0.map(wide).transpose()?;
    let (y, h, c) = unroll(steps, &wide(x)?, lengths, &weights, &wide(h0)?, c0.as_ref())?;
    let c = c.ok_or_else(|| Error::internal(context.op.name, "an LSTM without cell state"))?;
    Ok([
        y.astype(returned)?,
        h.astype(returned)?,
        c.astype(returned)?,
    ])
}

/// Bounds to which the cell state is clipped.
fn clip(context: &CallContext) -> Result<Option<Clip>> {
    match (context.opt_float("lstm_state_clip_min"), context.opt_float("lstm_state_clip_max")) {
        (Some(min), Some(max)) if min <= max => Ok(Some(Clip {
            min,
            max,
            nan: context.bool("lstm_state_clip_nan"),
        })),
        (Some(min), Some(max)) => Err(context.value_error(format!(
            "`lstm_state_clip_min` is {min}, above `lstm_state_clip_max`, which is {max}"
        ))),
        (None, None) if context.bool("lstm_state_clip_nan") => Err(context.value_error(
            "`lstm_state_clip_nan` needs the bounds `lstm_state_clip_min` and `lstm_state_clip_max`",
        )),
        (None, None) => Ok(None),
        _ => Err(context.value_error(
            "`lstm_state_clip_min` and `lstm_state_clip_max` go together: give both or none",
        )),
    }
}

/// Element `i` along the first axis.
fn one_of(x: &Array, i: usize) -> Result<Array> {
    narrow(x, 0, i, i + 1)?.reshape(&x.shape()[1..])
}

/// Concatenates arrays along an axis; returns a single array as it is.
fn joined(arrays: &[Array], axis: usize) -> Result<Array> {
    if let [only] = arrays {
        return Ok(only.clone());
    }
    concatenate(&arrays.iter().collect::<SmallVec<[&Array; 8]>>(), axis)
}
