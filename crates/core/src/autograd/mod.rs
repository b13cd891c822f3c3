//! Differentiation: the recorded graph and the backward pass.

mod alias;
mod backward;
mod checkpoint;
mod cotangent;
mod custom;
mod node;
mod rule;
mod tape;

pub use alias::{check_writable, view_again, written_through};
pub use backward::{Retain, Through, backward, backward_to, grad, grad_within};
pub use checkpoint::{Checkpoint, FirstRun};
pub use cotangent::RowSparse;
pub use custom::{CustomBackward, graph_input, record_custom};
pub use node::{GradReq, Leaf, Node};
pub use rule::GradContext;
pub(crate) use tape::record;
pub use tape::record_as;
pub use tape::{attach_grad, attach_row_grad, drop_grad, gradient_of, mark_variable};
