//! Elementwise functions as Python objects, like NumPy's ufuncs.
//!
//! `object.rs` is the type, `call.rs` implements calls with NumPy's keywords, `loops.rs` dtypes and type signatures, `outs.rs` the argument `out`,
//! `methods.rs` `reduce` and its relatives, `overriding.rs` the protocol `__array_ufunc__`.

mod call;
mod loops;
mod methods;
mod object;
mod outs;
mod overriding;

pub use call::general;
pub use object::{_ufunc, find, is_ufunc, make, register};
pub use overriding::{Override, call as overridden, has_higher_priority, method_call, override_of};
