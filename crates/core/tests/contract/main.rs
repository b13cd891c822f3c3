//! Tests of this crate alone, without operators.

mod config;
mod eager;
mod memory_order;
mod serialised;
mod tiles;
