//! The PyO3 module `mxnet._core`.
