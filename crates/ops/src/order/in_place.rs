//! In-place `sort` and `partition` of small arrays without allocation. Each function returns whether it did the work; if not, nothing
//! has changed, and the caller takes the general path, which reports errors.
#![allow(unsafe_code)]

use mxnet_engine::{Access, engine};
use mxnet_kernels::sort::{self as kernel, Order, Rows};

use super::rows::rows;
use crate::Array;
use crate::error::Result;
use crate::index::is_writable;
use crate::launch::Pool;

/// Up to this many elements the set-up of the general driver costs more than the work.
const SMALL_LEN: usize = 4096;

/// Sorts along an axis.
///
/// # Errors
/// [`crate::Error::Memory`].
pub fn sort_in_place(x: &Array, axis: isize) -> Result<bool> {
    let sort = |rows: &Rows, to: *mut u8| {
        // SAFETY: `arranged` gives dense rows, which may be written.
        unsafe { kernel::sort(&Pool, Order::Ascending, rows, to) };
    };
    Ok(arranged(x, axis, sort))
}

/// Partitions along an axis, so that element `kth` stands where sorting would put it.
pub fn partition_in_place(x: &Array, kth: isize, axis: isize) -> bool {
    let n = x.shape().last().map_or(0, |&n| n as isize);
    if !(-n..n).contains(&kth) {
        return false;
    }
    arranged(x, axis, |rows, to| {
        // SAFETY: as above; the position is one of the rows'.
        unsafe { kernel::partition(&Pool, kth.rem_euclid(n) as usize, rows, to) };
    })
}

/// Lets `work` rearrange the rows of a small dense array, if they lie along this axis.
fn arranged(x: &Array, axis: isize, work: impl FnOnce(&Rows, *mut u8)) -> bool {
    let ndim = x.ndim() as isize;
    if x.is_empty()
        || x.len() > SMALL_LEN
        || (axis != -1 && axis != ndim - 1)
        || ndim == 0
        || !is_writable(x)
        || !x.layout().is_contiguous()
    {
        return false;
    }
    let storage = x.tensor().storage();
    let Some(hold) = engine().try_hold(storage.var(), Access::Write, x.len() as u64) else {
        return false;
    };
    storage.bump_version();
    // The kernels write to the rows that they read.
    work(&rows(x.tensor()), x.tensor().data_ptr());
    drop(hold);
    true
}
