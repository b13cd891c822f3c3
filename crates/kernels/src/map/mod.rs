//! Elementwise rows and the N-d driver that feeds them.

pub(crate) mod row;

mod arith;
mod driver;

pub use arith::*;
pub(crate) use driver::convert;
pub use driver::{Operand, run, run_row};
pub use row::{OutElem, RowFn, Rows};
