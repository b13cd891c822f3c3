//! Connectionist temporal classification (CTC): `ctc_loss` makes states of labels, whose paths `ctc_paths` adds up.
#![allow(unsafe_code)]

use mxnet_kernels::ctc::{self as kernel, Ctc, Frames};
use mxnet_kernels::segment;
use mxnet_tensor::{DType, Dims, Scalar, Tensor};
use smallvec::SmallVec;

use crate::args::{Attrs, Param, Value};
use crate::context::{CallContext, KernelContext};
use crate::creation::arange_on;
use crate::elementwise::comparison::{LESS, NOT_EQUAL};
use crate::elementwise::logic::LOGICAL_AND;
use crate::elementwise::select::WHERE;
use crate::error::{Error, Result, Tuple};
use crate::index::take_along_axis;
use crate::invoke::invoke1;
use crate::nn::operand::{self, Staged};
use crate::nn::softmax::log_softmax;
use crate::opdef::{Cost, Cpu, Grad, Grads, Keep, OpDef, Probe, Surface, one_of};
use crate::reduce::CUMPROD;
use crate::shape::{concatenate, narrow};
use crate::{Array, Outputs, creation};

/// The loss of a sample without a path, in place of infinity: it exceeds every other loss, but gradients of sums of losses are not NaN.
const NEVER: f64 = 1e30;

/// The negative log-probability of a sequence of labels.
pub static CTC_LOSS: OpDef = OpDef {
    name: "ctc_loss",
    surface: &[Surface::Npx("ctc_loss")],
    params: &[
        Param::array("data"),
        Param::array("label"),
        Param::optional_array("data_lengths"),
        Param::optional_array("label_lengths"),
        Param::bool("use_data_lengths", false),
        Param::bool("use_label_lengths", false),
        Param::choice("blank_label", &["first", "last"], "first"),
    ],
    doc: "Minus the log-probability that frames of logits spell a sequence of labels. Forward and backward recursion in log space and float64. A \
          sequence that cannot be spelt in its frames has a loss of 1e30 and a gradient of 0. The gradient of the gradient is an error.\n\nSource: A. \
          Graves et al., \"Connectionist Temporal Classification\", 2006, equations 6 to 16.",
    about: &[
        ("data", "Logits of the classes and of the blank, of shape (t, n, c); or ragged, (n, None, c)."),
        (
            "label",
            "Class numbers, of shape (n, length), or ragged, (n, None). Without `label_lengths` a sequence ends at its first padding: 0 if the blank is \
             first, -1 if it is last.",
        ),
        ("data_lengths", "Frames of each sample that count, of shape (n,)."),
        ("label_lengths", "Labels of each sample that count, of shape (n,)."),
        ("use_data_lengths", "Whether `data_lengths` is used."),
        ("use_label_lengths", "Whether `label_lengths` is used."),
        ("blank_label", "Whether the blank is class 0 or class `c - 1`."),
    ],
    returns: &[("ndarray", "Of shape (n,).")],
    raises: &[
        ("ValueError", "If shapes do not fit, or a flag is set without its lengths."),
        ("IndexError", "If a label that counts is no class."),
    ],
    example: "
        >>> scores = np.zeros((2, 1, 3))  # two steps, every class as likely
        >>> npx.ctc_loss(scores, np.array([[1]]))  # -log(3 / 9): three of nine paths
        array([1.0986123])
    ",
    cpu: Cpu::Composite(|context| {
        let (data, label) = (context.input(0), context.input(1));
        let (&[frames, batch, classes], &[labelled, _]) = (data.shape(), label.shape()) else {
            return Err(misfit(context, data, label));
        };
        if labelled != batch {
            return Err(misfit(context, data, label));
        }
        let lengths = |i: usize, name: &str| match (context.bool(&format!("use_{name}")), context.opt(i)) {
            (false, _) => Ok(None),
            (true, Some(lengths)) => Ok(Some(lengths)),
            (true, None) => Err(context.value_error(format!("`use_{name}` needs `{name}`"))),
        };
        let (blank, padding) = match context.str("blank_label") {
            "last" => (classes as i64 - 1, -1),
            _ => (0, 0),
        };
        let [states, may_skip, num_states] =
            states(label, lengths(3, "label_lengths")?, blank, padding)?;
        let states = states.reshape(&[1, batch, states.shape()[1]])?;
        let emitted = take_along_axis(&log_softmax(data, -1)?, &states, 2, "raise").map_err(
            |error| match error {
                Error::Index(_) => Error::index(
                    context.op.name,
                    format!("`label` must be from 0 to {}, the last class", classes as i64 - 1),
                ),
                error => error,
            },
        )?;
        let frames = match lengths(2, "data_lengths")? {
            Some(lengths) => lengths.astype(DType::I64)?,
            None => creation::full(&[batch], Scalar::I64(frames as i64), DType::I64, data.device())?,
        };
        let inputs = [&emitted, &may_skip, &num_states, &frames];
        context.done(invoke1(&CTC_PATHS, &inputs, &Attrs::none())?)
    }),
    probe: Probe::calls(&[
        "f((4, 2, 3)), np.array([[1, 2], [2, 0]])",
        "f((4, 2, 3)), np.array([[0, 1], [1, 1]]), np.array([4, 3]), np.array([1, 2]), True, True, 'last'",
    ])
    .ulp(64),
    positions: &[1, 2, 3],
    ..OpDef::COMPOSITE
};

fn misfit(context: &CallContext, data: &Array, label: &Array) -> Error {
    let (data, label) = (Tuple(data.shape()), Tuple(label.shape()));
    context.shape_error(format!(
        "`data` must be (t, n, c) and `label` (n, length), found {data} and {label}"
    ))
}

/// The states of label sequences.
pub static CTC_STATES: OpDef = OpDef {
    name: "ctc_states",
    params: &[
        Param::array("label"),
        Param::optional_array("lengths"),
        Param::int("blank", 0),
        Param::int("padding", 0),
    ],
    doc: "The states that a path of `ctc_loss` goes through: the labels (n, length) between blanks, (n, 2 * length + 1); which of them may be entered by \
          skipping one; and the number of states of each sample, (n,). Without `lengths`, labels end at `padding`.",
    cpu: Cpu::Composite(|context| {
        if context.input(0).ndim() != 2 {
            return Err(context.shape_error("`label` must have two axes"));
        }
        let parts = states(
            context.input(0),
            context.opt(1),
            context.int("blank"),
            context.int("padding"),
        )?;
        Ok(Outputs::from_iter(parts))
    }),
    grad: Grad::Stop("states are integers"),
    probe: Probe::calls(&["i((2, 3), 3)", "i((2, 3), 3), i((2,), 4), 2, -1"]),
    positions: &[0, 1],
    ..OpDef::COMPOSITE
};

/// The results of [`CTC_STATES`].
fn states(label: &Array, lengths: Option<&Array>, blank: i64, padding: i64) -> Result<[Array; 3]> {
    let (batch, length, device) = (label.shape()[0], label.shape()[1], label.device());
    let number = |value| Array::weak_scalar(Scalar::I64(value));
    let label = label.astype(DType::I64)?;
    let lengths = match lengths {
        Some(lengths) => lengths.astype(DType::I64)?,
        None => {
            let is_label = label
                .binary(&NOT_EQUAL, &number(padding)?)?
                .astype(DType::I64)?;
            let attrs: Attrs = [Value::Int(1), Value::None, Value::Bool(false)]
                .into_iter()
                .collect();
            invoke1(&CUMPROD, &[&is_label], &attrs)?.sum(Some(&[1]), false)?
        }
    };
    let position = arange_on(length, DType::I64, device)?.reshape(&[1, length])?;
    let is_label = position.binary(&LESS, &lengths.reshape(&[batch, 1])?)?;
    let blanks = creation::full(&[batch, length, 1], Scalar::I64(blank), DType::I64, device)?;
    let label = invoke1(
        &WHERE,
        &[&is_label, &label, &number(blank)?],
        &Attrs::none(),
    )?;
    // A negative number would name a class from the end.
    let is_negative = label.binary(&LESS, &number(0)?)?;
    let label = invoke1(
        &WHERE,
        &[&is_negative, &number(i64::MIN)?, &label],
        &Attrs::none(),
    )?;
    // blank, l1, blank, l2, …, blank
    let pairs = concatenate(&[&blanks, &label.reshape(&[batch, length, 1])?], 2)?;
    let last = creation::full(&[batch, 1], Scalar::I64(blank), DType::I64, device)?;
    let states = concatenate(&[&pairs.reshape(&[batch, 2 * length])?, &last], 1)?;
    let num_all = 2 * length + 1;
    // A blank between two different labels may be skipped.
    let num_first = num_all.min(2);
    let entered = narrow(&states, 1, num_first, num_all)?;
    let left = narrow(&states, 1, 0, num_all - num_first)?;
    let is_new = entered.binary(&NOT_EQUAL, &left)?;
    let may_skip = entered
        .binary(&NOT_EQUAL, &number(blank)?)?
        .binary(&LOGICAL_AND, &is_new)?;
    let first = creation::zeros(&[batch, num_first], DType::Bool, device)?;
    let may_skip = concatenate(&[&first, &may_skip], 1)?;
    let num_states = lengths.mul(&number(2)?)?.add(&number(1)?)?;
    Ok([states, may_skip, num_states])
}

/// The negative log-probability of all paths through the states.
pub static CTC_PATHS: OpDef = OpDef {
    name: "ctc_paths",
    params: &[
        Param::array("emitted"),
        Param::array("may_skip"),
        Param::array("num_states"),
        Param::array("frames"),
    ],
    doc: "Minus the log-probability, shape (n,), of all paths through the states of `ctc_loss`, given the log-probability of each state at each \
          frame, (t, n, s), whether each state may be reached from two states before, (n, s), and the number of valid states and frames of each \
          sample, (n,). Without padding, log-probabilities are (total, s), and `frames` (n + 1,) has the first frame of each sample and the total. A \
          sample without a path has 1e30.",
    infer: |context| {
        let batch = batch(context)?;
        one_of(Dims::from_slice(&[batch]), operand::float_of(context, 0)?)
    },
    cpu: Cpu::Kernel(|context| {
        let operands = Operands::of(context)?;
        let loss = Staged::new(context.output(0), DType::F64)?;
        // SAFETY: 1. the operands are dense, of the types the kernel reads, and of the sizes that inference checked. 2. results overlap nothing.
        unsafe { kernel::loss(context.threads, &operands.ctc(), NEVER, loss.ptr().cast()) };
        loss.finish(context.threads)
    }),
    grad: Grad::Rule(
        Keep {
            inputs: 0b1111,
            outputs: 0,
        },
        |g| {
            let inputs = [g.input(0), g.input(1), g.input(2), g.input(3), g.dy(0)];
            let mut grads: Grads = SmallVec::from_elem(None, 4);
            grads[0] = Some(invoke1(&CTC_PATHS_GRADIENT, &inputs, &Attrs::none())?);
            Ok(grads)
        },
    ),
    cost: Cost::PerKiB(20_000),
    probe: Probe::calls(&[
        "f((4, 2, 3)), np.array([[0, 0, 0], [0, 0, 1]]), np.array([3, 1]), np.array([4, 2])",
        "f((6, 3)), np.array([[0, 0, 0], [0, 0, 1]]), np.array([3, 1]), np.array([0, 4, 6])",
    ])
    .ulp(64),
    positions: &[1, 2, 3],
    ..OpDef::DEFAULT
};

/// The gradient of [`CTC_PATHS`].
pub static CTC_PATHS_GRADIENT: OpDef = OpDef {
    name: "ctc_paths_gradient",
    params: &[
        Param::array("emitted"),
        Param::array("may_skip"),
        Param::array("num_states"),
        Param::array("frames"),
        Param::array("dloss"),
    ],
    doc: "Gradient of `ctc_paths` with respect to `emitted`, given the loss's cotangent.",
    infer: |context| {
        let batch = batch(context)?;
        if context.shape(4) != [batch] {
            return Err(context.shape_error(format!("`dloss` has shape {}, needs ({batch},)", Tuple(context.shape(4)))));
        }
        one_of(Dims::from_slice(context.shape(0)), operand::float_of(context, 0)?)
    },
    cpu: Cpu::Kernel(|context| {
        let operands = Operands::of(context)?;
        let dloss = operand::dense(context.input(4), DType::F64, context.threads)?;
        let slopes = Staged::new(context.output(0), DType::F64)?;
        // SAFETY: as in `CTC_PATHS`.
        unsafe {
            kernel::gradient(
                context.threads,
                &operands.ctc(),
                dloss.data_ptr().cast(),
                slopes.ptr().cast(),
            );
        }
        slopes.finish(context.threads)
    }),
    grad: Grad::Rule(Keep::NOTHING, |_| {
        Err(Error::unsupported("ctc_loss", "the gradient of its gradient is not known"))
    }),
    cost: Cost::PerKiB(40_000),
    probe: Probe::calls(&["f((4, 2, 3)), np.array([[0, 0, 0], [0, 0, 1]]), np.array([3, 1]), np.array([4, 2]), f((2,))"]).ulp(64),
    positions: &[1, 2, 3],
    ..OpDef::DEFAULT
};

/// Checks that the shapes match. Returns the number of samples.
fn batch(context: &CallContext) -> Result<usize> {
    let (batch, states, frames) = match (context.shape(0), context.shape(1)) {
        (&[_, batch, states], _) => (batch, states, batch),
        (&[_, states], &[batch, _]) => (batch, states, batch + 1),
        _ => {
            return Err(context.shape_error(format!(
                "`emitted` has shape {}, needs (t, n, s), or (total, s) without padding",
                Tuple(context.shape(0))
            )));
        }
    };
    let needed: [(usize, &str, &[usize]); 3] = [
        (1, "may_skip", &[batch, states]),
        (2, "num_states", &[batch]),
        (3, "frames", &[frames]),
    ];
    for (i, name, shape) in needed {
        if context.shape(i) != shape {
            return Err(context.shape_error(format!(
                "`{name}` has shape {}, needs {}",
                Tuple(context.shape(i)),
                Tuple(shape)
            )));
        }
    }
    if states == 0 {
        return Err(context.shape_error("there must be at least one state"));
    }
    Ok(batch)
}

/// Dense copies of the operands (the operands themselves if they are dense).
struct Operands {
    emitted: Tensor,
    may_skip: Tensor,
    num_states: Tensor,
    frames: Tensor,
}

impl Operands {
    fn of(context: &KernelContext) -> Result<Operands> {
        let operands = Operands {
            emitted: operand::dense(context.input(0), DType::F64, context.threads)?,
            may_skip: operand::dense(context.input(1), DType::I64, context.threads)?,
            num_states: operand::dense(context.input(2), DType::I64, context.threads)?,
            frames: operand::dense(context.input(3), DType::I64, context.threads)?,
        };
        if operands.emitted.ndim() == 2 {
            // SAFETY: dense int64 elements, which the kernel may read.
            let offsets = unsafe {
                let frames = &operands.frames;
                std::slice::from_raw_parts(frames.data_ptr().cast::<i64>(), frames.len())
            };
            let rows = operands.emitted.shape()[0];
            if segment::check(offsets, rows).is_err() {
                let problem = format!(
                    "offsets of frames start with 0, do not decrease and end with their number {rows}"
                );
                return Err(Error::value("ctc_loss", problem));
            }
        }
        Ok(operands)
    }

    fn ctc(&self) -> Ctc {
        let (sample, emitted) = (self.may_skip.shape(), self.emitted.shape());
        let (batch, states) = (sample[0], sample[1]);
        let frames = self.frames.data_ptr().cast::<i64>().cast_const();
        Ctc {
            batch,
            states,
            frames: match emitted.len() {
                2 => Frames::Ragged(frames),
                _ => Frames::Padded(emitted[0], frames),
            },
            emitted: self.emitted.data_ptr().cast(),
            may_skip: self.may_skip.data_ptr().cast(),
            num_states: self.num_states.data_ptr().cast(),
        }
    }
}
