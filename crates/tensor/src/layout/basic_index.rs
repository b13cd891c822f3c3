//! Basic indexing: views by integers, slices, `...` and new axes, computed in one pass. Index expressions with arrays are in `crate::index`.

use std::mem::MaybeUninit;

use super::Layout;
use crate::error::{IndexError, TensorError};

/// An entry of an index expression without arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BasicIndex {
    /// An integer: one element of an axis.
    Int(isize),
    /// A slice: start, stop and step on an axis.
    Slice(isize, isize, isize),
    /// `...`: the axes that no other entry indexes.
    Ellipsis,
    /// `None`: a new axis of length 1.
    NewAxis,
}

impl BasicIndex {
    /// Whether it consumes an axis.
    #[inline]
    pub fn takes_axis(&self) -> bool {
        matches!(self, BasicIndex::Int(_) | BasicIndex::Slice(..))
    }
}

/// Largest number of axes in a view of [`Layout::basic_view`]: that many are stored inline.
const MAX_INLINE_AXES: usize = 4;

impl Layout {
    /// View by index entries, in one pass. `None` if they are invalid (then [`Layout::index`] reports the error) or the view has more than four axes.
    #[inline]
    pub fn basic_view(&self, entries: &[BasicIndex]) -> Option<Layout> {
        let mut layout = MaybeUninit::uninit();
        // SAFETY: `write_basic_view` returns whether it has initialised the layout.
        unsafe {
            self.write_basic_view(entries, &mut layout)
                .then(|| layout.assume_init())
        }
    }

    /// [`Layout::basic_view`], constructed in place. Returns whether the layout was constructed.
    #[inline]
    pub fn write_basic_view(&self, entries: &[BasicIndex], to: &mut MaybeUninit<Layout>) -> bool {
        let taken = entries.iter().filter(|cut| cut.takes_axis()).count();
        let Some(rest) = self.ndim().checked_sub(taken) else {
            return false;
        };
        let shows = |cut: &&BasicIndex| matches!(cut, BasicIndex::Slice(..) | BasicIndex::NewAxis);
        // More axes would be on the heap, and nobody frees them if the layout is not used.
        if rest + entries.iter().filter(shows).count() > MAX_INLINE_AXES {
            return false;
        }
        let made = Layout::begin(to, self.offset);
        let (mut axis, mut has_rest) = (0, false);
        for cut in entries {
            match *cut {
                BasicIndex::Int(index) => {
                    let Ok(step) = element(axis, index, self.shape[axis]) else {
                        return false;
                    };
                    let step = (step as isize).wrapping_mul(self.strides[axis]);
                    made.offset = made.offset.wrapping_add_signed(step);
                    axis += 1;
                }
                BasicIndex::Slice(start, stop, step) => {
                    let mut row = AxisView {
                        size: self.shape[axis],
                        stride: self.strides[axis],
                        offset: made.offset,
                    };
                    if row
                        .slice(axis, Some(start), Some(stop), Some(step))
                        .is_err()
                    {
                        return false;
                    }
                    made.offset = row.offset;
                    made.push(row.size, row.stride);
                    axis += 1;
                }
                BasicIndex::NewAxis => made.push(1, 0),
                BasicIndex::Ellipsis if has_rest => return false,
                BasicIndex::Ellipsis => {
                    has_rest = true;
                    for _ in 0..rest {
                        made.push(self.shape[axis], self.strides[axis]);
                        axis += 1;
                    }
                }
            }
        }
        for axis in axis..self.ndim() {
            made.push(self.shape[axis], self.strides[axis]);
        }
        true
    }
}

/// One axis of a layout, and the position of its first element.
pub(crate) struct AxisView {
    pub size: usize,
    pub stride: isize,
    pub offset: usize,
}

impl AxisView {
    /// Applies a slice; `axis` is the number of the axis in errors.
    #[inline]
    pub fn slice(
        &mut self,
        axis: usize,
        start: Option<isize>,
        stop: Option<isize>,
        step: Option<isize>,
    ) -> Result<(), TensorError> {
        let (first, len, step) = bounds(axis, self.size, start, stop, step)?;
        // An empty slice keeps the offset, because its start may be outside the storage.
        if len > 0 {
            self.offset = self
                .offset
                .wrapping_add_signed((first as isize).wrapping_mul(self.stride));
        }
        self.size = len;
        // A step beyond the end is never taken, and its product with the stride may overflow.
        self.stride = self
            .stride
            .wrapping_mul(if len > 1 { step } else { step.signum() });
        Ok(())
    }
}

/// Normalises an index on an axis of this size.
#[inline]
pub(crate) fn element(axis: usize, index: isize, size: usize) -> Result<usize, TensorError> {
    let from_front = if index < 0 {
        index.wrapping_add(size as isize)
    } else {
        index
    };
    if (0..size as isize).contains(&from_front) {
        Ok(from_front as usize)
    } else {
        Err(IndexError::OutOfBounds { axis, index, size }.into())
    }
}

/// First element, number of elements and step of a slice, as Python's `slice.indices`. The first element is 0 if there are none.
#[inline]
fn bounds(
    axis: usize,
    size: usize,
    start: Option<isize>,
    stop: Option<isize>,
    step: Option<isize>,
) -> Result<(usize, usize, isize), TensorError> {
    let step = step.unwrap_or(1);
    let size = size as isize;
    let clip = |bound: isize, low: isize, high: isize| {
        let bound = if bound < 0 {
            bound.saturating_add(size)
        } else {
            bound
        };
        bound.clamp(low, high)
    };
    // For a negative step the bounds are the last element and the position before the first.
    let (start, stop, distance) = match step {
        0 => return Err(IndexError::ZeroStep { axis }.into()),
        1.. => {
            let start = start.map_or(0, |bound| clip(bound, 0, size));
            let stop = stop.map_or(size, |bound| clip(bound, 0, size));
            (start, stop, stop - start)
        }
        _ => {
            let start = start.map_or(size - 1, |bound| clip(bound, -1, size - 1));
            let stop = stop.map_or(-1, |bound| clip(bound, -1, size - 1));
            (start, stop, start - stop)
        }
    };
    debug_assert!(start >= -1 && stop >= -1);
    if distance <= 0 {
        return Ok((0, 0, step));
    }
    let len = if step == 1 {
        distance as usize
    } else {
        (distance as usize - 1) / step.unsigned_abs() + 1
    };
    Ok((start as usize, len, step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_in_one_pass_equal_single_steps() {
        use crate::IndexItem;
        let x = Layout::contiguous(&[2, 3, 5]);
        let x = x.transpose(Some(&[1, 0, 2])).expect("a permutation");
        let entries = [
            BasicIndex::Int(1),
            BasicIndex::Int(-2),
            BasicIndex::Int(7),
            BasicIndex::Slice(0, isize::MAX, 1),
            BasicIndex::Slice(3, -9, -2),
            BasicIndex::Slice(4, 2, 1),
            BasicIndex::Slice(0, 2, 0),
            BasicIndex::Ellipsis,
            BasicIndex::NewAxis,
        ];
        let item = |cut: &BasicIndex| match *cut {
            BasicIndex::Int(index) => IndexItem::Int(index),
            BasicIndex::Slice(start, stop, step) => IndexItem::Slice {
                start: Some(start),
                stop: Some(stop),
                step: Some(step),
            },
            BasicIndex::Ellipsis => IndexItem::Ellipsis,
            BasicIndex::NewAxis => IndexItem::NewAxis,
        };
        let n = entries.len();
        let (mut shown, mut refused) = (0, 0);
        for code in 0..n.pow(4) {
            for len in 0..=4 {
                let entries: Vec<BasicIndex> =
                    (0..len).map(|k| entries[code / n.pow(k) % n]).collect();
                let items: Vec<IndexItem> = entries.iter().map(item).collect();
                match (x.basic_view(&entries), x.index(&items)) {
                    (Some(found), Ok(wanted)) => {
                        assert_eq!(found, wanted.view, "{entries:?}");
                        shown += 1;
                    }
                    (None, Ok(wanted)) => {
                        assert!(wanted.view.ndim() > MAX_INLINE_AXES, "{entries:?}")
                    }
                    (None, Err(_)) => refused += 1,
                    (Some(found), Err(error)) => panic!("{entries:?} show {found:?}: {error}"),
                }
            }
        }
        assert!(shown > 1000 && refused > 1000, "{shown} and {refused}");
    }
}
