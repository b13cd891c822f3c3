//! The fused operators: one step of an optimizer for many weights. Numbers that change at each step are arrays.

use mxnet_kernels::update::Rule;

use super::{CLIP, GRADS, WEIGHTS, WHY, infer, update};
use crate::args::{Param, ParamKind};
use crate::opdef::{Cost, Cpu, Grad, OpDef, Probe};

// Lists of the fused operators, all of one length n. An entry of a nullable list may be None.
const MOMS: Param = Param::arrays("moms").or_none();
/// float32 copies of float16 and bfloat16 weights. Where there is one, it is updated, and the weight receives its rounded elements.
const MASTERS: Param = Param::arrays("masters").or_none();
// Numbers of a step, each of shape (n,), or () for one that all weights share.
const LRS: Param = Param::array("lrs");
const WDS: Param = Param::array("wds");
const RESCALE_GRAD: Param = Param::array("rescale_grad");
/// Count of updates of each weight, this one included; without it there is no bias correction.
const COUNTS: Param = Param::optional_array("counts");

const FUSED: OpDef = OpDef {
    infer,
    grad: Grad::Stop(WHY),
    cost: Cost::PerKiB(60),
    parallel: true,
    ..OpDef::DEFAULT
};

/// SGD of all weights.
pub static FUSED_SGD: OpDef = OpDef {
    name: "fused_sgd",
    params: &[
        WEIGHTS,
        GRADS,
        MOMS,
        MASTERS,
        LRS,
        WDS,
        RESCALE_GRAD,
        Param::float("momentum", 0.0),
        CLIP,
    ],
    doc: "One step of gradient descent of many weights, in place; a weight with an entry in `moms` has momentum.",
    mutates: &[0, 2, 3],
    cpu: Cpu::Kernel(|context| {
        let momentum = context.float("momentum");
        update(context, 1, &|num_states| match num_states {
            0 => Rule::Sgd,
            _ => Rule::Momentum { momentum },
        })
    }),
    probe: Probe::calls(&[
        "[f((3, 4)), f((2,))], [f((3, 4)), f((2,))], [f((3, 4)), None], [None, None], np.ones((2,)), np.ones((2,)), np.ones(()), 0.9",
    ]),
    ..FUSED
};

/// Nesterov's accelerated gradient of all weights.
pub static FUSED_NAG: OpDef = OpDef {
    name: "fused_nag",
    params: FUSED_SGD.params,
    doc: "One step of Nesterov's accelerated gradient of many weights, in place; a weight without an entry in `moms` has no momentum.",
    mutates: &[0, 2, 3],
    cpu: Cpu::Kernel(|context| {
        let momentum = context.float("momentum");
        update(context, 1, &|num_states| match num_states {
            0 => Rule::Sgd,
            _ => Rule::Nag { momentum },
        })
    }),
    probe: Probe::calls(&[
        "[f((3,))], [f((3,))], [f((3,))], [None], np.ones((1,)), np.ones(()), np.ones(()), 0.9",
    ]),
    ..FUSED
};

const FUSED_MEANS: OpDef = OpDef {
    params: &[
        WEIGHTS,
        GRADS,
        Param::arrays("means"),
        Param::arrays("variances"),
        MASTERS,
        LRS,
        WDS,
        RESCALE_GRAD,
        COUNTS,
        Param::float("beta1", 0.9),
        Param::float("beta2", 0.999),
        Param::float("epsilon", 1e-8),
        CLIP,
    ],
    mutates: &[0, 2, 3, 4],
    probe: Probe::calls(&[
        "[f((3,))], [f((3,))], [np.zeros((3,))], [np.zeros((3,))], [None], np.ones((1,)), np.ones((1,)), np.ones(()), np.ones((1,))",
    ]),
    ..FUSED
};

/// Adam of all weights.
pub static FUSED_ADAM: OpDef = OpDef {
    name: "fused_adam",
    doc: "One step of Adam of many weights, in place, its bias corrected for `counts`.",
    cpu: Cpu::Kernel(|context| {
        let rule = Rule::Adam {
            beta1: context.float("beta1"),
            beta2: context.float("beta2"),
            epsilon: context.float("epsilon"),
        };
        update(context, 2, &|_| rule)
    }),
    ..FUSED_MEANS
};

/// AdamW of all weights.
pub static FUSED_ADAMW: OpDef = OpDef {
    name: "fused_adamw",
    doc: "One step of AdamW of many weights, in place, its bias corrected for `counts`; `wds` are not multiplied by the rates.",
    cpu: Cpu::Kernel(|context| {
        let rule = Rule::AdamW {
            beta1: context.float("beta1"),
            beta2: context.float("beta2"),
            epsilon: context.float("epsilon"),
        };
        update(context, 2, &|_| rule)
    }),
    ..FUSED_MEANS
};

/// RMSProp of all weights.
pub static FUSED_RMSPROP: OpDef = OpDef {
    name: "fused_rmsprop",
    params: &[
        WEIGHTS,
        GRADS,
        Param::arrays("variances"),
        Param::arrays("means").or_none(),
        MOMS,
        MASTERS,
        LRS,
        WDS,
        RESCALE_GRAD,
        Param::float("rho", 0.95),
        Param::float("momentum", 0.9),
        Param::float("epsilon", 1e-8),
        CLIP,
        Param::optional("clip_weights", ParamKind::Float),
    ],
    doc: "One step of RMSProp of many weights, in place; a weight with entries in `means` and `moms` takes the centered form, with momentum.",
    mutates: &[0, 2, 3, 4, 5],
    cpu: Cpu::Kernel(|context| {
        let (rho, epsilon) = (context.float("rho"), context.float("epsilon"));
        let momentum = context.float("momentum");
        update(context, 3, &|num_states| match num_states {
            1 => Rule::RmsProp { rho, epsilon },
            _ => Rule::RmsPropCentered {
                rho,
                momentum,
                epsilon,
            },
        })
    }),
    probe: Probe::calls(&[
        "[f((3,))], [f((3,))], [np.ones((3,))], [None], [None], [None], np.ones((1,)), np.ones((1,)), np.ones(())",
        "[f((3,))], [f((3,))], [np.ones((3,))], [np.zeros((3,))], [f((3,))], [None], np.ones((1,)), np.ones((1,)), np.ones(())",
    ]),
    ..FUSED
};

/// AdaGrad of all weights.
pub static FUSED_ADAGRAD: OpDef = OpDef {
    name: "fused_adagrad",
    params: &[
        WEIGHTS,
        GRADS,
        Param::arrays("histories"),
        MASTERS,
        LRS,
        WDS,
        RESCALE_GRAD,
        Param::float("epsilon", 1e-7),
        CLIP,
    ],
    doc: "One step of AdaGrad of many weights, in place.",
    mutates: &[0, 2, 3],
    cpu: Cpu::Kernel(|context| {
        let epsilon = context.float("epsilon");
        update(context, 1, &|_| Rule::AdaGrad { epsilon })
    }),
    probe: Probe::calls(&[
        "[f((3,))], [f((3,))], [np.zeros((3,))], [None], np.ones((1,)), np.ones((1,)), np.ones(())",
    ]),
    ..FUSED
};
