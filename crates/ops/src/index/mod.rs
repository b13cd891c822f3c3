//! Indexing: reading and writing with index arrays, masks and slices; diagonals.
//!
//! An index expression is a list of [`mxnet_tensor::IndexItem`] and one array for each index array and mask in it. Slices and integers give a
//! view (`basic`). Index arrays are checked at the call and become int64 positions in range ([`RESOLVE`]); masks become such positions too
//! ([`NONZERO_MATRIX`]). The kernels that remain (`advanced`, `along`) never fail, so the engine may run them at any time.

mod advanced;
mod along;
mod basic;
mod choose;
mod diagonal;
mod element_read;
mod element_write;
mod expression;
mod masked_write;
mod nonzero;
mod positions;
mod ravel_index;
mod resolve;
mod row_sparse;
mod rows;
mod select;
mod window;

pub use advanced::{GATHER, INDEX_ADD, INDEX_ASSIGN, SCATTER_ADD};
pub use along::{GATHER_ALONG, SCATTER_ALONG, TAKE_ALONG_AXIS, gather_along, take_along_axis};
pub use basic::{INDEX, INDEX_SPREAD};
pub use choose::{CHOOSE, CHOSEN};
pub use diagonal::{DIAG, DIAGONAL, DIAGONAL_SPREAD, TRACE, TRIL, TRIU, WRITABLE_DIAGONAL};
pub(crate) use element_write::is_writable;
pub use expression::{accumulate, get, set};
pub(crate) use expression::{selected_positions, spanned};
pub(crate) use positions::{dense, positions};

pub use element_read::{
    ByteBuffer, copy_bytes, element, elements_to, only_element, read, take_positions, with_bytes,
};
pub use element_write::{
    copy_element, put_array, put_element, put_inline_scalar, put_number, put_positions,
};
pub use masked_write::{Taken, is_same_kind, put_along, put_at, put_where};
pub use nonzero::{ARGWHERE, FLATNONZERO, NONZERO, NONZERO_MATRIX};
pub use ravel_index::{RAVEL_POSITIONS, UNRAVEL_INDEX};
pub use resolve::{RESOLVE, WRAPPED, resolved};
pub use row_sparse::{GATHER_ROWS, ROW_SPARSE_SUM, ROW_SPARSE_TO_DENSE};
pub use rows::{
    EMBEDDING, GATHER_ND, NPX_INDEX_ADD, NPX_INDEX_UPDATE, ONE_HOT, ONE_HOT_ROWS, PICK, SCATTER_ND,
};
pub(crate) use select::scattered_slices;
pub use select::{COMPRESS, EXTRACT, TAKE, take};
pub use window::{WINDOW, WINDOW_ASSIGN, WINDOW_SPREAD};

use crate::opdef::OpDef;

pub(crate) static OPS: &[&OpDef] = &[
    &INDEX,
    &INDEX_SPREAD,
    &WINDOW,
    &WINDOW_ASSIGN,
    &WINDOW_SPREAD,
    &RESOLVE,
    &WRAPPED,
    &GATHER,
    &SCATTER_ADD,
    &INDEX_ASSIGN,
    &INDEX_ADD,
    &GATHER_ALONG,
    &SCATTER_ALONG,
    &TAKE_ALONG_AXIS,
    &NONZERO_MATRIX,
    &NONZERO,
    &ARGWHERE,
    &FLATNONZERO,
    &UNRAVEL_INDEX,
    &RAVEL_POSITIONS,
    &TAKE,
    &CHOOSE,
    &CHOSEN,
    &COMPRESS,
    &EXTRACT,
    &PICK,
    &GATHER_ND,
    &SCATTER_ND,
    &ONE_HOT,
    &ONE_HOT_ROWS,
    &NPX_INDEX_ADD,
    &NPX_INDEX_UPDATE,
    &EMBEDDING,
    &GATHER_ROWS,
    &ROW_SPARSE_SUM,
    &ROW_SPARSE_TO_DENSE,
    &DIAGONAL,
    &WRITABLE_DIAGONAL,
    &DIAGONAL_SPREAD,
    &DIAG,
    &TRIL,
    &TRIU,
    &TRACE,
];
