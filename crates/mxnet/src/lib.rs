//! The tensor engine as one crate: joins the parts, adds no logic.
//!
//! `core` has [`core::Array`], calls, gradients; `ops` has the operators; `tensor` has data types, layouts, devices; `engine` orders and runs the work;
//! `image` reads, writes and resizes images; `sparse` has the operators on the parts of sparse arrays.

#![forbid(unsafe_code)]

pub use mxnet_core as core;
pub use mxnet_engine as engine;
pub use mxnet_graph as graph;
pub use mxnet_image as image;
pub use mxnet_ops as ops;
pub use mxnet_simulated as simulated;
pub use mxnet_sparse as sparse;
pub use mxnet_tensor as tensor;
