//! Operators of neural networks: affine maps, convolution, pooling, normalisation, softmax and losses, dropout.
//!
//! The kernels take dense float32 or float64 operands; `operand` converts to and from these. A gradient that has its own kernel uses it in a
//! plain backward pass; if the backward pass itself is recorded, the rule composes differentiable operators instead.

mod attention;
mod batch_norm;
mod boxes;
mod calibration;
mod conv;
mod conv_batch;
mod ctc;
mod dropout;
mod int8;
mod layer_norm;
mod linear;
mod loss;
mod matching;
mod nms;
pub mod operand;
mod pool;
mod regions;
mod rnn;
mod rnn_layer;
mod row_norm;
mod sequence;
mod softmax;
mod unrolled;
mod update;
mod window;

pub use attention::*;
pub use batch_norm::*;
pub use boxes::*;
pub use calibration::*;
pub use conv::*;
pub use ctc::*;
pub use dropout::*;
pub use int8::*;
pub use layer_norm::*;
pub use linear::*;
pub use loss::*;
pub use matching::*;
pub use nms::*;
pub use pool::*;
pub use regions::*;
pub use rnn::*;
pub use rnn_layer::{RNN_LAYER, RNN_LAYER_GRADIENT};
pub use row_norm::*;
pub use sequence::*;
pub use softmax::*;
pub use update::*;
pub use window::*;

use crate::opdef::OpDef;

pub(crate) static OPS: &[&OpDef] = &[
    &FULLY_CONNECTED,
    &FULLY_CONNECTED_RELU,
    &CONVOLUTION,
    &CONVOLUTION_RELU,
    &CONVOLUTION_BATCH_NORM,
    &CONVOLUTION_DATA_GRADIENT,
    &CONVOLUTION_WEIGHT_GRADIENT,
    &DECONVOLUTION,
    &INT8_CONVOLUTION,
    &INT8_FULLY_CONNECTED,
    &INT8_POOLING,
    &QUANTIZATION_SCALE,
    &CALIBRATE_ENTROPY,
    &POOLING,
    &POOLING_GRADIENT,
    &POOLING_SELECT,
    &BATCH_NORM,
    &BATCH_NORM_TRAINING,
    &BATCH_NORM_INFERENCE,
    &BATCH_NORM_GRADIENT,
    &LAYER_NORM,
    &RMS_NORM,
    &GROUP_NORM,
    &INSTANCE_NORM,
    &L2_NORMALIZATION,
    &ROW_NORM,
    &ROW_NORM_GRADIENT,
    &SCALED_DOT_PRODUCT_ATTENTION,
    &ATTENTION,
    &ATTENTION_GRADIENT,
    &SOFTMAX,
    &LOG_SOFTMAX,
    &SOFTMAX_GRADIENT,
    &MASKED_SOFTMAX,
    &CTC_LOSS,
    &CTC_STATES,
    &CTC_PATHS,
    &CTC_PATHS_GRADIENT,
    &MASKED_LOG_SOFTMAX,
    &CROSS_ENTROPY,
    &CROSS_ENTROPY_GRADIENT,
    &SPARSE_CROSS_ENTROPY,
    &SMOOTH_L1,
    &DROPOUT,
    &DROPOUT_MASK,
    &RNN,
    &RNN_LAYER,
    &RNN_LAYER_GRADIENT,
    &BOX_NMS_ORDER,
    &MATCH_PAIRS,
    &ROI_LARGEST,
    &ROI_ALIGN,
    &ROI_ALIGN_SPREAD,
    &SLDWIN_ATTEN_SCORE,
    &SLDWIN_ATTEN_CONTEXT,
    &SLDWIN_ATTEN_SPREAD,
    &BOX_NMS,
    &BOX_IOU,
    &SEQUENCE_MASK,
    &SEQUENCE_LAST,
    &SEQUENCE_REVERSE,
    &SPLIT_VECTOR,
    &SGD_UPDATE,
    &NAG_UPDATE,
    &ADAM_UPDATE,
    &ADAMW_UPDATE,
    &RMSPROP_UPDATE,
    &ADAGRAD_UPDATE,
    &FUSED_SGD,
    &FUSED_NAG,
    &FUSED_ADAM,
    &FUSED_ADAMW,
    &FUSED_RMSPROP,
    &FUSED_ADAGRAD,
];
