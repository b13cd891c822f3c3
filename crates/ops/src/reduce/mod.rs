//! Reductions: one value from many, along axes.

mod fold;

pub use fold::*;

use crate::opdef::OpDef;

pub(crate) static OPS: &[&OpDef] = fold::OPS;
