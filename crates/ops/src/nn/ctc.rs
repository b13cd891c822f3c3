//! The path sums of connectionist temporal classification (CTC). `npx.ctc_loss` builds the states from labels.
#![allow(unsafe_code)]

use mxnet_kernels::ctc::{self as kernel, Ctc, Frames};
use mxnet_kernels::segment;
use mxnet_tensor::{DType, Dims, Tensor};
use smallvec::SmallVec;

use crate::args::{Attrs, Param};
use crate::context::{CallCx, KernelCx};
use crate::error::{Error, Result, Tuple};
use crate::invoke::invoke1;
use crate::nn::operand::{self, Staged};
use crate::opdef::{Cost, Cpu, Grad, Grads, Keep, OpDef, Probe, one_of};

/// The loss of a sample without a path, in place of infinity: it exceeds every other loss, but gradients of sums of losses are not NaN.
const NEVER: f64 = 1e30;

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
    infer: |cx| {
        let batch = batch(cx)?;
        one_of(Dims::from_slice(&[batch]), operand::float_of(cx, 0)?)
    },
    cpu: Cpu::Kernel(|cx| {
        let operands = Operands::of(cx)?;
        let loss = Staged::new(cx.output(0), DType::F64)?;
        // SAFETY: 1. the operands are dense, of the types the kernel reads, and of the sizes that inference checked. 2. results overlap nothing.
        unsafe { kernel::loss(cx.threads, &operands.ctc(), NEVER, loss.ptr().cast()) };
        loss.finish(cx.threads)
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
    infer: |cx| {
        let batch = batch(cx)?;
        if cx.shape(4) != [batch] {
            return Err(cx.shape_error(format!("`dloss` has shape {}, needs ({batch},)", Tuple(cx.shape(4)))));
        }
        one_of(Dims::from_slice(cx.shape(0)), operand::float_of(cx, 0)?)
    },
    cpu: Cpu::Kernel(|cx| {
        let operands = Operands::of(cx)?;
        let dloss = operand::dense(cx.input(4), DType::F64, cx.threads)?;
        let slopes = Staged::new(cx.output(0), DType::F64)?;
        // SAFETY: as in `CTC_PATHS`.
        unsafe {
            kernel::gradient(
                cx.threads,
                &operands.ctc(),
                dloss.data_ptr().cast(),
                slopes.ptr().cast(),
            );
        }
        slopes.finish(cx.threads)
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
fn batch(cx: &CallCx) -> Result<usize> {
    let (batch, states, frames) = match (cx.shape(0), cx.shape(1)) {
        (&[_, batch, states], _) => (batch, states, batch),
        (&[_, states], &[batch, _]) => (batch, states, batch + 1),
        _ => {
            return Err(cx.shape_error(format!(
                "`emitted` has shape {}, needs (t, n, s), or (total, s) without padding",
                Tuple(cx.shape(0))
            )));
        }
    };
    let needed: [(usize, &str, &[usize]); 3] = [
        (1, "may_skip", &[batch, states]),
        (2, "num_states", &[batch]),
        (3, "frames", &[frames]),
    ];
    for (i, name, shape) in needed {
        if cx.shape(i) != shape {
            return Err(cx.shape_error(format!(
                "`{name}` has shape {}, needs {}",
                Tuple(cx.shape(i)),
                Tuple(shape)
            )));
        }
    }
    if states == 0 {
        return Err(cx.shape_error("there must be at least one state"));
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
    fn of(cx: &KernelCx) -> Result<Operands> {
        let operands = Operands {
            emitted: operand::dense(cx.input(0), DType::F64, cx.threads)?,
            may_skip: operand::dense(cx.input(1), DType::I64, cx.threads)?,
            num_states: operand::dense(cx.input(2), DType::I64, cx.threads)?,
            frames: operand::dense(cx.input(3), DType::I64, cx.threads)?,
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
