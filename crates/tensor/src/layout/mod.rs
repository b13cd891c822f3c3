//! Layouts: the positions of an array's elements in its storage. Views are in `views.rs`, reshaping in `reshape.rs`, broadcasting in `broadcast.rs`,
//! views by integers and slices in one pass in `basic_index.rs`, index expressions in `crate::index`.

mod basic_index;
mod broadcast;
mod reshape;
mod strided;
mod views;

pub use basic_index::BasicIndex;
pub(crate) use basic_index::{AxisView, element};
pub use broadcast::broadcast_shapes;
pub use reshape::reshape_dims;
pub use strided::{Layout, checked_len, normalize_axes, normalize_axis};

use smallvec::SmallVec;

/// Largest number of axes, as in NumPy.
pub const MAX_NDIM: usize = 64;

/// Sizes of axes; up to four are stored inline.
pub type Dims = SmallVec<[usize; 4]>;

/// Strides in elements (or in bytes where a name says so); up to four are stored inline.
pub type Strides = SmallVec<[isize; 4]>;
