//! Index expressions from Rust's integers and ranges.

use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use mxnet_tensor::IndexItem;

/// A new axis of length 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewAxis;

/// Index of one axis. Negative positions count from the end. (Clippy takes `1..-1` for an empty range: allow `clippy::reversed_empty_ranges`.)
pub trait IndexPart {
    /// Converts it to an entry of an index expression.
    fn item(self) -> IndexItem;
}

/// Stands for as many whole axes as are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ellipsis;

/// A range of which every `step`-th element is taken, from the end for negative steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step<R> {
    range: R,
    step: isize,
}

/// Ranges that [`step`] takes: those without a last position of their own, `a..b`, `a..`, `..b` and `..`.
pub trait StepRange: IndexPart {}

impl StepRange for RangeFull {}

/// Every `step`-th element of a range: `x.at(step(.., 2))`, `x.at(step(.., -1))` in reverse order. As in Python, positions of a range with a negative
/// step go downwards, and its end is left out.
pub fn step<R: StepRange>(range: R, step: isize) -> Step<R> {
    Step { range, step }
}

impl<R: StepRange> IndexPart for Step<R> {
    fn item(self) -> IndexItem {
        match self.range.item() {
            IndexItem::Slice { start, stop, .. } => IndexItem::Slice {
                start,
                stop,
                step: Some(self.step),
            },
            other => other,
        }
    }
}

fn slice(start: Option<isize>, stop: Option<isize>) -> IndexItem {
    IndexItem::Slice {
        start,
        stop,
        step: None,
    }
}

/// The end of a range whose last position is `last`. `None` for -1, the last of the axis: -1 + 1 would be position 0.
fn stop_after(last: isize) -> Option<isize> {
    match last {
        -1 => None,
        last => Some(last.saturating_add(1)),
    }
}

/// Positions of this type of integers, and ranges of them.
macro_rules! positions {
    ($($t:ty),*) => { $(
        impl IndexPart for $t {
            fn item(self) -> IndexItem {
                IndexItem::Int(position(self))
            }
        }

        impl StepRange for Range<$t> {}

        impl IndexPart for Range<$t> {
            fn item(self) -> IndexItem {
                slice(Some(position(self.start)), Some(position(self.end)))
            }
        }

        impl IndexPart for RangeInclusive<$t> {
            fn item(self) -> IndexItem {
                slice(Some(position(*self.start())), stop_after(position(*self.end())))
            }
        }

        impl StepRange for RangeFrom<$t> {}

        impl IndexPart for RangeFrom<$t> {
            fn item(self) -> IndexItem {
                slice(Some(position(self.start)), None)
            }
        }

        impl StepRange for RangeTo<$t> {}

        impl IndexPart for RangeTo<$t> {
            fn item(self) -> IndexItem {
                slice(None, Some(position(self.end)))
            }
        }

        impl IndexPart for RangeToInclusive<$t> {
            fn item(self) -> IndexItem {
                slice(None, stop_after(position(self.end)))
            }
        }
    )* };
}
positions!(i32, i64, usize);

/// A position as the engine has it. One that is too large for it is out of range of every axis anyway.
fn position(x: impl TryInto<isize>) -> isize {
    x.try_into().unwrap_or(isize::MAX)
}

impl IndexPart for RangeFull {
    fn item(self) -> IndexItem {
        IndexItem::ALL
    }
}

impl IndexPart for Ellipsis {
    fn item(self) -> IndexItem {
        IndexItem::Ellipsis
    }
}

impl IndexPart for NewAxis {
    fn item(self) -> IndexItem {
        IndexItem::NewAxis
    }
}

/// An index expression: one part, or a tuple of up to six.
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
tuples!((A 0, B 1), (A 0, B 1, C 2), (A 0, B 1, C 2, D 3), (A 0, B 1, C 2, D 3, E 4), (A 0, B 1, C 2, D 3, E 4, F 5));
