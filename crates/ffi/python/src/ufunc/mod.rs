//! Elementwise functions as Python objects: NumPy's `ufunc`s.
//!
//! `object.rs` is the type, `call.rs` what a call with NumPy's keywords does, `loops.rs` dtypes and type signatures, `outs.rs` the arrays
//! results are written to, `methods.rs` `reduce` and its relatives, `overriding.rs` operands of other libraries that answer
//! themselves.

mod call;
mod loops;
mod methods;
mod object;
mod outs;
mod overriding;

pub use call::general;
pub use object::{_ufunc, find, is_ufunc, make, register};
pub use overriding::{Stance, call as overridden, goes_first, method_call, stance};
