//! Operators that work element by element.

pub mod activation;
pub mod arithmetic;
pub mod bits;
pub mod bitwise;
pub mod close;
pub mod comparison;
pub mod explog;
pub mod incomplete;
pub mod logic;
pub mod network;
pub mod parts;
pub mod quantize;
pub mod rounding;
pub mod select;
pub mod special;
pub mod trig;
