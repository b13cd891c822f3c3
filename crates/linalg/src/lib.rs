//! Factorisations of dense matrices: LU, Cholesky, QR, singular values, eigenvalues.
//!
//! Every function takes a batch: `count` matrices one after another, each dense in C order, as the bytes of one element type. Small matrices are
//! factored by loops of this crate, others by `faer`, one thread each; large ones are split into chunks of columns that run in parallel. The split
//! depends on sizes only, so results do not depend on the number of threads. This crate has no threads of its own: the caller provides them as
//! [`Run`].

#![deny(unsafe_code)]
#![warn(missing_docs)]

mod batch;
mod cholesky;
mod eig;
mod eigh;
mod lu;
mod memory;
mod number;
mod parallel;
mod qr;
mod scale;
mod svd;
mod triangular;
mod unblocked;

pub use batch::{Elem, Failure, Fault, Run};
pub use cholesky::cholesky;
pub use eig::eig;
pub use eigh::{Triangle, eigh};
pub use lu::{cofactors, det, inverse, slogdet, solve};
pub use qr::{Reflectors, qr, qr_raw};
pub use svd::{Vectors, svd};
pub use triangular::solve_triangular;
