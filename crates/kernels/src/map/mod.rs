//! Elementwise operators: their inner loops, and the N-d driver that calls them.

pub(crate) mod row;

mod arith;
mod compare;
pub(crate) mod complex;
mod division;
mod driver;
mod explog;
mod fold;
mod half_table;
mod incomplete;
mod math;
mod network;
mod quantize;
mod special;
#[cfg(target_arch = "x86_64")]
mod tanh;
mod trig;

pub use arith::*;
pub use compare::*;
pub use division::*;
pub(crate) use driver::convert;
pub use driver::{Loops, Operand, run, run_row};
pub use explog::*;
pub use fold::{Right, at_positions, fold_in_any_order, fold_rows, scan_rows};
pub use incomplete::*;
pub use network::*;
pub use quantize::*;
pub use row::{InnerLoop, InnerLoops, OutElem};
pub use special::*;
pub use trig::*;
