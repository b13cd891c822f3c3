//! Index expressions from Rust's integers and ranges.

use std::ops::{Range, RangeFrom, RangeFull, RangeTo};

use mxnet_tensor::IndexItem;

/// A new axis of length 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewAxis;

/// Index of one axis. Negative positions count from the end.
pub trait IndexPart {
    /// Converts it to an entry of an index expression.
    fn item(self) -> IndexItem;
}

fn slice(start: Option<i64>, stop: Option<i64>) -> IndexItem {
    let bound = |x: Option<i64>| x.map(|x| x as isize);
    IndexItem::Slice {
        start: bound(start),
        stop: bound(stop),
        step: None,
    }
}

impl IndexPart for i64 {
    fn item(self) -> IndexItem {
        IndexItem::Int(self as isize)
    }
}

impl IndexPart for Range<i64> {
    fn item(self) -> IndexItem {
        slice(Some(self.start), Some(self.end))
    }
}

impl IndexPart for RangeFrom<i64> {
    fn item(self) -> IndexItem {
        slice(Some(self.start), None)
    }
}

impl IndexPart for RangeTo<i64> {
    fn item(self) -> IndexItem {
        slice(None, Some(self.end))
    }
}

impl IndexPart for RangeFull {
    fn item(self) -> IndexItem {
        IndexItem::ALL
    }
}

impl IndexPart for NewAxis {
    fn item(self) -> IndexItem {
        IndexItem::NewAxis
    }
}

/// An index expression: one part, or a tuple of up to four.
pub trait IntoIndex {
    /// The parts, in order.
    fn into_index(self) -> Vec<IndexItem>;
}

impl<A: IndexPart> IntoIndex for A {
    fn into_index(self) -> Vec<IndexItem> {
        vec![self.item()]
    }
}

macro_rules! tuples {
    ($(($($part:ident $at:tt),*)),*) => { $(
        impl<$($part: IndexPart),*> IntoIndex for ($($part,)*) {
            fn into_index(self) -> Vec<IndexItem> {
                vec![$(self.$at.item()),*]
            }
        }
    )* };
}
tuples!((A 0, B 1), (A 0, B 1, C 2), (A 0, B 1, C 2, D 3));
