//! Convolution fused with the batch normalisation after it, of predictions, and with the addition after that.
#![allow(unsafe_code)]

use mxnet_kernels::norm::over_deviations;

use super::{
    CONV, CONVOLUTION, CUDNN_OFF, CUDNN_TUNE, DILATE, GROUPS, LAYOUT, PAD, STRIDE, WORKSPACE,
    conv_params, convolve,
};
use crate::args::{Param, ParamKind};
use crate::error::Tuple;
use crate::launch::elem;
use crate::nn::batch_norm::four;
use crate::nn::operand;
use crate::opdef::{Cpu, Grad, OpDef, Probe};
use crate::workspace;

/// Convolution fused with a batch normalisation that has given statistics, with an addition after it and with ReLU after that. A graph pass replaces
/// the operators by it.
pub static CONVOLUTION_BATCH_NORM: OpDef = OpDef {
    name: "convolution_batch_norm",
    params: conv_params![
        Param::array("data"),
        Param::array("weight"),
        Param::optional_array("bias"),
        Param::optional_array("gamma"),
        Param::array("beta"),
        Param::array("mean"),
        Param::array("var"),
        Param::optional_array("addend");;
        Param::float("eps", 1e-3),
        Param::bool("relu", false)
    ],
    doc: "Batch normalisation of `convolution(data, weight, bias)` with these statistics, plus `addend`, which has the result's shape, and relu after it \
          if that is true: bit for bit the result of the operators.",
    infer: |context| {
        let outputs = (CONVOLUTION.infer)(context)?;
        let filters = context.shape(1)[0];
        for i in 3..7 {
            if let Some(vector) = context.opt(i).filter(|v| v.shape() != [filters]) {
                let name = context.op.array_params().nth(i).map_or("", |p| p.name);
                return Err(context.shape_error(format!(
                    "`{name}` has shape {}, needs ({filters},)",
                    Tuple(vector.shape())
                )));
            }
        }
        let result = outputs[0].shape.as_slice();
        if let Some(addend) = context.opt(7).filter(|x| x.shape() != result) {
            return Err(context.shape_error(format!(
                "`addend` has shape {}, the convolution's result has shape {}",
                Tuple(addend.shape()),
                Tuple(result)
            )));
        }
        Ok(outputs)
    },
    cpu: Cpu::Kernel(|context| {
        let dtype = operand::compute(context.output(0).dtype());
        let [gamma, beta, mean, var] = four(context, [3, 4, 5, 6], dtype)?;
        let filters = context.input(1).shape()[0];
        let factor = workspace::take(filters * dtype.size())?;
        let at = |vector: &Option<_>| operand::pointer(vector.as_ref()).cast_const();
        // SAFETY: dense vectors of this dtype, with an element for each filter (inference checked).
        unsafe {
            over_deviations(
                elem(dtype),
                filters,
                at(&gamma),
                at(&var),
                context.float("eps"),
                factor.data_ptr(),
            );
        }
        let norm = [at(&mean), factor.data_ptr(), at(&beta)];
        convolve(context, Some(norm), context.opt(7), context.bool("relu"))
    }),
    grad: Grad::Stop("a graph has its gradient before the pass that makes this operator"),
    cost: CONVOLUTION.cost,
    probe: Probe::calls(&[
        "f((2, 4, 6, 5)), f((6, 2, 3, 2)), f((6,)), f((6,)), f((6,)), f((6,)), np.ones((6,)), f((2, 6, 3, 5)), (3, 2), (2, 1), (1, 2), (1, 1), 6, 2",
    ])
    .ulp(64),
    ..CONV
};
