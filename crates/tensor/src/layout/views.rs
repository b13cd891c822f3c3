//! Views of a layout, by NumPy's rules.

use std::mem::MaybeUninit;

use super::strided::collect;
use super::{
    AxisView, Dims, Layout, Strides, checked_len, element, normalize_axes, normalize_axis,
};
use crate::error::{AxisError, ShapeError, TensorError};

impl Layout {
    /// Permutes the axes; reverses them for `None`.
    ///
    /// # Errors
    ///
    /// `Axis` if `axes` is not a permutation.
    #[inline]
    pub fn transpose(&self, axes: Option<&[isize]>) -> Result<Layout, TensorError> {
        let Some(axes) = axes else {
            return Ok(self.reversed());
        };
        if axes.len() != self.ndim() {
            return Err(AxisError::Count {
                found: axes.len(),
                required: self.ndim(),
            }
            .into());
        }
        let axes = normalize_axes(axes, self.ndim())?;
        Ok(self.permuted(&axes))
    }

    /// Swaps two axes.
    ///
    /// # Errors
    ///
    /// `Axis` when one does not exist.
    #[inline]
    pub fn swap_axes(&self, axis1: isize, axis2: isize) -> Result<Layout, TensorError> {
        let (a, b) = (
            normalize_axis(axis1, self.ndim())?,
            normalize_axis(axis2, self.ndim())?,
        );
        let mut layout = self.clone();
        layout.shape.swap(a, b);
        layout.strides.swap(a, b);
        Ok(layout)
    }

    /// Moves axes `source` to the positions `destination` of the result; the other axes keep their order.
    ///
    /// # Errors
    ///
    /// `Axis` when one does not exist, is repeated, or the lists have different lengths.
    pub fn move_axis(
        &self,
        source: &[isize],
        destination: &[isize],
    ) -> Result<Layout, TensorError> {
        let ndim = self.ndim();
        let source = normalize_axes(source, ndim)?;
        let destination = normalize_axes(destination, ndim)?;
        if source.len() != destination.len() {
            return Err(AxisError::Count {
                found: destination.len(),
                required: source.len(),
            }
            .into());
        }
        let mut others = (0..ndim).filter(|axis| !source.contains(axis));
        let order: Dims = (0..ndim)
            .filter_map(|position_of_axis| {
                match destination.iter().position(|&to| to == position_of_axis) {
                    Some(i) => Some(source[i]),
                    None => others.next(),
                }
            })
            .collect();
        Ok(self.permuted(&order))
    }

    /// Inserts axes of length 1 at these positions of the result.
    ///
    /// # Errors
    ///
    /// `Axis` when a position does not exist in the result or is repeated; `Shape` when there would be too many axes.
    pub fn expand_dims(&self, axes: &[isize]) -> Result<Layout, TensorError> {
        let ndim = self.ndim() + axes.len();
        if ndim > crate::MAX_NDIM {
            return Err(ShapeError::TooManyAxes { ndim }.into());
        }
        let axes = normalize_axes(axes, ndim)?;
        let mut layout = self.clone();
        let mut order = axes;
        order.sort_unstable();
        for axis in order {
            layout.shape.insert(axis, 1);
            layout.strides.insert(axis, 0);
        }
        Ok(layout)
    }

    /// Removes these axes, which must have length 1; for `None` all axes of length 1.
    ///
    /// # Errors
    ///
    /// `Axis` when one does not exist or is repeated; `Shape` when one is not of length 1.
    pub fn squeeze(&self, axes: Option<&[isize]>) -> Result<Layout, TensorError> {
        let drop = match axes {
            None if !self.shape.contains(&1) => return Ok(self.clone()),
            Some(axes) => {
                let axes = normalize_axes(axes, self.ndim())?;
                if let Some(&axis) = axes.iter().find(|&&axis| self.shape[axis] != 1) {
                    return Err(ShapeError::Squeeze {
                        axis,
                        size: self.shape[axis],
                    }
                    .into());
                }
                axes
            }
            None => (0..self.ndim())
                .filter(|&axis| self.shape[axis] == 1)
                .collect(),
        };
        let order: Dims = (0..self.ndim())
            .filter(|axis| !drop.contains(axis))
            .collect();
        Ok(self.permuted(&order))
    }

    /// `x[start:stop:step]` along one axis. Bounds are clipped as in Python.
    ///
    /// # Errors
    ///
    /// `Axis` when it does not exist; `Index` when the step is 0.
    #[inline]
    pub fn slice(
        &self,
        axis: isize,
        start: Option<isize>,
        stop: Option<isize>,
        step: Option<isize>,
    ) -> Result<Layout, TensorError> {
        let axis = normalize_axis(axis, self.ndim())?;
        let mut layout = self.clone();
        layout.slice_axis(axis, start, stop, step)?;
        Ok(layout)
    }

    /// Selects index `index` of an axis and removes the axis.
    ///
    /// # Errors
    ///
    /// `Axis` when it does not exist; `Index` when the index is outside `-size..size`.
    #[inline]
    pub fn select(&self, axis: isize, index: isize) -> Result<Layout, TensorError> {
        let axis = normalize_axis(axis, self.ndim())?;
        let step = element(axis, index, self.shape[axis])?;
        let offset = self
            .offset
            .wrapping_add_signed((step as isize).wrapping_mul(self.strides[axis]));
        let from = |i: usize| if i < axis { i } else { i + 1 };
        let shape = collect(self.ndim() - 1, |i| self.shape[from(i)]);
        let strides = collect(self.ndim() - 1, |i| self.strides[from(i)]);
        Ok(Layout {
            shape,
            strides,
            offset,
        })
    }

    /// Reverses these axes; all for `None`.
    ///
    /// # Errors
    ///
    /// `Axis` when one does not exist or is repeated.
    pub fn flip(&self, axes: Option<&[isize]>) -> Result<Layout, TensorError> {
        let axes = match axes {
            Some(axes) => normalize_axes(axes, self.ndim())?,
            None => (0..self.ndim()).collect(),
        };
        let mut layout = self.clone();
        for axis in axes {
            layout.slice_axis(axis, None, None, Some(-1))?;
        }
        Ok(layout)
    }

    /// Part `part` (0 or 1: real or imaginary) of every complex element; positions count in parts.
    #[must_use]
    pub fn component(&self, part: usize) -> Layout {
        let mut layout = MaybeUninit::uninit();
        self.write_component(part, &mut layout);
        // SAFETY: it is written.
        unsafe { layout.assume_init() }
    }

    /// [`Layout::component`], constructed in place.
    #[inline]
    pub fn write_component(&self, part: usize, to: &mut MaybeUninit<Layout>) {
        let made = Layout::begin(to, self.offset.wrapping_mul(2).wrapping_add(part));
        for (&size, &stride) in self.shape.iter().zip(&self.strides) {
            made.push(size, stride.wrapping_mul(2));
        }
    }

    /// The diagonals of two axes, as a new last axis. Diagonal `offset` starts at column `offset` (`axis2`), or at row `-offset` (`axis1`) if
    /// negative.
    ///
    /// # Errors
    ///
    /// `Axis` if one does not exist or they are the same.
    pub fn diagonal(
        &self,
        offset: isize,
        axis1: isize,
        axis2: isize,
    ) -> Result<Layout, TensorError> {
        let ndim = self.ndim();
        let axes = [normalize_axis(axis1, ndim)?, normalize_axis(axis2, ndim)?];
        if axes[0] == axes[1] {
            return Err(AxisError::Repeated { axis: axes[1] }.into());
        }
        let (rows, columns) = (self.shape[axes[0]], self.shape[axes[1]]);
        let skip = offset.unsigned_abs();
        let (len, along) = if offset >= 0 {
            (rows.min(columns.saturating_sub(skip)), axes[1])
        } else {
            (columns.min(rows.saturating_sub(skip)), axes[0])
        };
        let step = self.strides[axes[0]].wrapping_add(self.strides[axes[1]]);
        let first = match len {
            0 => 0,
            _ => (skip as isize).wrapping_mul(self.strides[along]),
        };
        let offset = self.offset.wrapping_add_signed(first);
        if self.ndim() == 2 {
            let (shape, strides) = (Dims::from_slice(&[len]), Strides::from_slice(&[step]));
            return Ok(Layout::from_parts(shape, strides, offset));
        }
        let order: Dims = (0..self.ndim())
            .filter(|axis| !axes.contains(axis))
            .collect();
        let mut layout = self.permuted(&order);
        layout.offset = offset;
        layout.shape.push(len);
        layout.strides.push(step);
        Ok(layout)
    }

    /// Splits an axis at `indices` into one more part than there are indices. Indices are taken as slice bounds: clipped, negative ones from the
    /// back.
    ///
    /// # Errors
    ///
    /// `Axis` when it does not exist.
    pub fn split(&self, axis: isize, indices: &[isize]) -> Result<Vec<Layout>, TensorError> {
        let mut start = Some(0);
        let ends = indices.iter().map(|&index| Some(index)).chain([None]);
        ends.map(|stop| self.slice(axis, std::mem::replace(&mut start, stop), stop, None))
            .collect()
    }

    /// Splits an axis into `sections` parts of equal length.
    ///
    /// # Errors
    ///
    /// `Axis` if it does not exist; `Shape` if its size is not a multiple of `sections`, or if `sections` is 0.
    pub fn split_evenly(&self, axis: isize, sections: usize) -> Result<Vec<Layout>, TensorError> {
        let axis = normalize_axis(axis, self.ndim())?;
        let size = self.shape[axis];
        if sections == 0 || !size.is_multiple_of(sections) {
            return Err(ShapeError::Split {
                axis,
                size,
                sections,
            }
            .into());
        }
        let len = size / sections;
        let part = |i: usize| {
            let mut layout = self.clone();
            layout.shape[axis] = len;
            if len > 0 {
                layout.offset = layout
                    .offset
                    .wrapping_add_signed(((i * len) as isize).wrapping_mul(self.strides[axis]));
            }
            layout
        };
        Ok((0..sections).map(part).collect())
    }

    /// Sliding windows of length `len` along one axis, as a new last axis; the axis itself indexes the starts of the windows.
    ///
    /// # Errors
    ///
    /// `Axis` if it does not exist; `Shape` if the window is longer than the axis, or if the view would have too many axes or elements.
    pub fn windows(&self, axis: isize, len: usize) -> Result<Layout, TensorError> {
        let axis = normalize_axis(axis, self.ndim())?;
        let size = self.shape[axis];
        if len > size {
            return Err(ShapeError::Window {
                axis,
                size,
                window: len,
            }
            .into());
        }
        let mut layout = self.clone();
        layout.shape[axis] = size - len + 1;
        layout.shape.push(len);
        layout.strides.push(self.strides[axis]);
        checked_len(&layout.shape)?;
        Ok(layout)
    }

    /// Slices one axis in place.
    #[inline]
    fn slice_axis(
        &mut self,
        axis: usize,
        start: Option<isize>,
        stop: Option<isize>,
        step: Option<isize>,
    ) -> Result<(), TensorError> {
        let mut row = AxisView {
            size: self.shape[axis],
            stride: self.strides[axis],
            offset: self.offset,
        };
        row.slice(axis, start, stop, step)?;
        (self.shape[axis], self.strides[axis], self.offset) = (row.size, row.stride, row.offset);
        Ok(())
    }

    /// The listed axes, in that order. The caller must know that the other axes have length 1 or are replaced.
    #[inline]
    fn permuted(&self, order: &[usize]) -> Layout {
        let shape = collect(order.len(), |axis| self.shape[order[axis]]);
        let strides = collect(order.len(), |axis| self.strides[order[axis]]);
        Layout {
            shape,
            strides,
            offset: self.offset,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::IndexError;

    fn offsets(layout: &Layout) -> Vec<usize> {
        layout.offsets().collect()
    }

    #[test]
    fn slices_follow_python() {
        let x = Layout::contiguous(&[5]);
        let of = |start, stop, step| offsets(&x.slice(0, start, stop, step).expect("a slice"));
        assert_eq!(of(None, None, None), [0, 1, 2, 3, 4]);
        assert_eq!(of(Some(-2), None, None), [3, 4]);
        assert_eq!(of(None, None, Some(-2)), [4, 2, 0]);
        assert_eq!(of(Some(100), Some(-100), Some(-3)), [4, 1]);
        assert_eq!(of(Some(3), Some(1), None), []);
        assert_eq!(of(Some(1), None, Some(isize::MAX)), [1]);
        assert_eq!(of(None, None, Some(isize::MIN)), [4]);
        let error = x.slice(-1, None, None, Some(0)).expect_err("step 0");
        assert_eq!(error, IndexError::ZeroStep { axis: 0 }.into());
    }

    #[test]
    fn empty_slices_stay_inside() {
        let x = Layout::contiguous(&[5, 2]);
        let empty = x.slice(0, Some(5), None, None).expect("nothing");
        assert_eq!((empty.shape(), empty.offset()), (&[0, 2][..], 0));
    }

    #[test]
    fn selection_names_axis_and_size() {
        let x = Layout::contiguous(&[2, 3]);
        assert_eq!(offsets(&x.select(-1, -1).expect("last column")), [2, 5]);
        let error = x.select(1, -4).expect_err("outside");
        assert_eq!(
            error,
            IndexError::OutOfBounds {
                axis: 1,
                index: -4,
                size: 3
            }
            .into()
        );
    }

    #[test]
    fn axes_are_moved_inserted_and_removed() {
        let x = Layout::contiguous(&[2, 1, 3, 4]);
        let shape =
            |layout: Result<Layout, TensorError>| layout.map(|layout| layout.shape().to_vec());
        assert_eq!(shape(x.transpose(None)), Ok(vec![4, 3, 1, 2]));
        assert_eq!(
            shape(x.transpose(Some(&[1, -1, 0, 2]))),
            Ok(vec![1, 4, 2, 3])
        );
        assert_eq!(
            shape(x.transpose(Some(&[0, 1]))),
            Err(AxisError::Count {
                found: 2,
                required: 4
            }
            .into())
        );
        assert_eq!(
            shape(x.transpose(Some(&[0, 1, 1, 2]))),
            Err(AxisError::Repeated { axis: 1 }.into())
        );
        assert_eq!(shape(x.swap_axes(0, -1)), Ok(vec![4, 1, 3, 2]));
        assert_eq!(shape(x.move_axis(&[0, 1], &[-1, 0])), Ok(vec![1, 3, 4, 2]));
        assert_eq!(shape(x.squeeze(None)), Ok(vec![2, 3, 4]));
        assert_eq!(shape(x.squeeze(Some(&[1]))), Ok(vec![2, 3, 4]));
        assert_eq!(
            shape(x.squeeze(Some(&[2]))),
            Err(ShapeError::Squeeze { axis: 2, size: 3 }.into())
        );
        assert_eq!(shape(x.expand_dims(&[0, -1])), Ok(vec![1, 2, 1, 3, 4, 1]));
        assert_eq!(
            shape(x.expand_dims(&[0, 0])),
            Err(AxisError::Repeated { axis: 0 }.into())
        );
        assert!(x.expand_dims(&[0; 61]).is_err());
    }

    #[test]
    fn diagonals_and_flips() {
        let x = Layout::contiguous(&[3, 4]);
        let diagonal = |offset| offsets(&x.diagonal(offset, 0, 1).expect("a plane"));
        assert_eq!(diagonal(0), [0, 5, 10]);
        assert_eq!(diagonal(2), [2, 7]);
        assert_eq!(diagonal(-2), [8]);
        assert_eq!(diagonal(4), []);
        assert_eq!(diagonal(isize::MIN), []);
        assert_eq!(
            x.diagonal(0, 1, -1),
            Err(AxisError::Repeated { axis: 1 }.into())
        );
        assert_eq!(
            offsets(&x.flip(None).expect("all")),
            (0..12).rev().collect::<Vec<_>>()
        );
    }

    #[test]
    fn parts_and_windows() {
        let x = Layout::contiguous(&[6]);
        let parts = |parts: Vec<Layout>| parts.iter().map(offsets).collect::<Vec<_>>();
        assert_eq!(
            parts(x.split(0, &[2, 9]).expect("cuts")),
            [vec![0, 1], vec![2, 3, 4, 5], vec![]]
        );
        assert_eq!(
            parts(x.split_evenly(0, 3).expect("thirds")),
            [[0, 1], [2, 3], [4, 5]]
        );
        assert_eq!(
            x.split_evenly(0, 4),
            Err(ShapeError::Split {
                axis: 0,
                size: 6,
                sections: 4
            }
            .into())
        );
        assert_eq!(x.windows(0, 4).expect("fits").shape(), [3, 4]);
        assert_eq!(
            x.windows(0, 7),
            Err(ShapeError::Window {
                axis: 0,
                size: 6,
                window: 7
            }
            .into())
        );
    }
}
