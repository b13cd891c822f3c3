//! Operators that work element by element.

pub mod arithmetic;
pub mod bitwise;
pub mod comparison;
pub mod select;
