//! Elementwise functions as Python objects, like NumPy's ufuncs.
//!
//! `object.rs` is the type, `instance.rs` the objects in memory, `call.rs` implements calls with NumPy's keywords, `loops.rs` dtypes and type signatures, `outs.rs` the argument `out`,
//! `methods.rs` `reduce` and its relatives, `resolve_dtypes.rs` the method of that name, `overriding.rs` the protocol `__array_ufunc__`.

mod call;
mod instance;
mod loops;
mod method_arguments;
mod methods;
mod object;
mod outs;
mod overriding;
mod resolve_dtypes;

pub use call::general;
pub use instance::{_ufunc, find, is_ufunc};
pub use object::{make, register};
pub use overriding::{Override, call as overridden, has_higher_priority, method_call, override_of};
