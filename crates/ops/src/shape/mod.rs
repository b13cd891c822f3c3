//! Operators that move or relabel elements without computing: copies, views, joins, splits.

mod copy;
mod view;

pub use copy::*;
pub use view::*;

use crate::opdef::OpDef;

pub(crate) static OPS: &[&OpDef] = &[&COPY, &ASTYPE, &RESHAPE, &TRANSPOSE, &BROADCAST_TO];
