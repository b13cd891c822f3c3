//! Arrays from nothing: constants, ranges, identities.

mod constant;

pub use constant::*;

use crate::opdef::OpDef;

pub(crate) static OPS: &[&OpDef] = constant::OPS;
