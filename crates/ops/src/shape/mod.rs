//! Operators that move or relabel elements without computing: copies, views, joins, splits.

mod axes;
mod copy;
mod join;
mod like;
mod pad;
mod part;
mod repeat;
mod view;
mod window;

pub use axes::*;
pub use copy::*;
pub use join::*;
pub use like::*;
pub use pad::*;
pub use part::*;
pub use repeat::*;
pub use view::*;
pub use window::*;

use crate::opdef::OpDef;

pub(crate) static OPS: &[&OpDef] = &[
    &COPY,
    &COPY_IN_ORDER,
    &COPIED,
    &ASTYPE_SHARING,
    &CAST,
    &ASTYPE,
    &ASTYPE_OF,
    &TO_DEVICE,
    &TRANSFER,
    &RESHAPE,
    &RESHAPE_COPYING,
    &TRANSPOSE,
    &BROADCAST_TO,
    &RAVEL,
    &RAVEL_AS_IT_LIES,
    &FLATTEN,
    &FLATTEN_AS_IT_LIES,
    &EXPAND_DIMS,
    &SQUEEZE,
    &SWAPAXES,
    &MATRIX_TRANSPOSE,
    &MOVEAXIS,
    &FLIP,
    &FLIPLR,
    &FLIPUD,
    &ROT90,
    &CONCATENATE,
    &STACK,
    &VSTACK,
    &HSTACK,
    &DSTACK,
    &COLUMN_STACK,
    &SPLIT,
    &UNSTACK,
    &ARRAY_SPLIT,
    &SLICE_AXIS,
    &SLICE_LIKE,
    &BROADCAST_LIKE,
    &RESHAPE_LIKE,
    &ARANGE_LIKE,
    &BATCH_FLATTEN,
    &SHAPE_ARRAY,
    &SIZE_ARRAY,
    &UNSLICE,
    &PAD,
    &PAD_BORDER,
    &SLIDING_WINDOWS,
    &AS_STRIDED,
    &ROLL,
    &ROTATE,
    &TILE,
    &RESIZE,
    &REPEAT,
    &ATLEAST_1D,
    &ATLEAST_2D,
    &ATLEAST_3D,
];
