//! Elementwise functions as Python objects: NumPy's `ufunc`s.
//!
//! `object.rs` is the type, `call.rs` what a call with NumPy's keywords does, `loops.rs` dtypes and type signatures, `outs.rs` the arrays
//! results are written to, `methods.rs` `reduce` and its relatives.

mod call;
mod loops;
mod methods;
mod object;
mod outs;

pub use call::general;
pub use object::{_ufunc, find, make, register};
