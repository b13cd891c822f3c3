//! The layout itself: construction, properties, overlap.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::mem::MaybeUninit;

use smallvec::SmallVec;

use super::{Dims, MAX_NDIM, Strides};
use crate::copy_words;
use crate::error::{AxisError, ShapeError, TensorError};

/// Shape, strides and offset, in elements.
///
/// Element `(i, j, …)` of an array is at `offset + i * strides[0] + j * strides[1] + …` in its storage. Strides may be 0 (broadcast) or negative
/// (flipped). Up to four axes are stored inline.
pub struct Layout {
    pub(super) shape: Dims,
    pub(super) strides: Strides,
    pub(super) offset: usize,
}

impl Clone for Layout {
    #[inline]
    fn clone(&self) -> Layout {
        Layout {
            shape: copy(&self.shape),
            strides: copy(&self.strides),
            offset: self.offset,
        }
    }
}

/// A bitwise copy if nothing is on the heap. `SmallVec::clone` copies element by element.
#[inline]
pub(crate) fn copy<T: Copy>(values: &SmallVec<[T; 4]>) -> SmallVec<[T; 4]> {
    if values.spilled() {
        SmallVec::from_slice(values)
    } else {
        // SAFETY: not spilled, so the value owns no other memory, and its elements are `Copy`: a bitwise copy is an independent value.
        unsafe { std::ptr::read(values) }
    }
}

impl Layout {
    /// Constructs a layout without axes in place.
    #[inline]
    pub(super) fn begin(to: &mut MaybeUninit<Layout>, offset: usize) -> &mut Layout {
        to.write(Layout {
            shape: SmallVec::new(),
            strides: SmallVec::new(),
            offset,
        })
    }

    /// Appends an axis.
    #[inline]
    pub(super) fn push(&mut self, size: usize, stride: isize) {
        self.shape.push(size);
        self.strides.push(stride);
    }

    /// Copies the layout to uninitialised memory.
    #[inline]
    pub fn copy_to(&self, to: &mut MaybeUninit<Layout>) {
        if self.shape.spilled() || self.strides.spilled() {
            to.write(self.clone());
        } else {
            // SAFETY: the value owns no other memory, so a bitwise copy is independent.
            unsafe { copy_words(self, to.as_mut_ptr()) };
        }
    }

    /// As [`Layout::copy_to`], with offset 0.
    #[inline]
    pub fn copy_dense_to(&self, to: &mut MaybeUninit<Layout>) {
        self.copy_to(to);
        // SAFETY: initialised by the line above.
        unsafe { to.assume_init_mut() }.offset = 0;
    }
}

impl PartialEq for Layout {
    fn eq(&self, other: &Layout) -> bool {
        self.shape == other.shape && self.strides == other.strides && self.offset == other.offset
    }
}

impl Eq for Layout {}

impl Hash for Layout {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.shape.hash(state);
        self.strides.hash(state);
        self.offset.hash(state);
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Layout {{ shape: {:?}, strides: {:?}, offset: {} }}",
            self.shape, self.strides, self.offset
        )
    }
}

impl Layout {
    /// A 0-d layout with offset 0.
    #[inline]
    pub fn of_element() -> Layout {
        Layout {
            shape: SmallVec::new(),
            strides: SmallVec::new(),
            offset: 0,
        }
    }

    /// Row-major (C order), with offset 0.
    ///
    /// The number of elements must have been checked with [`checked_len`]; otherwise strides may wrap.
    #[inline]
    pub fn contiguous(shape: &[usize]) -> Layout {
        Layout {
            shape: dims(shape),
            strides: c_strides(shape),
            offset: 0,
        }
    }

    /// Column-major (Fortran order), with offset 0; see [`Layout::contiguous`].
    pub fn fortran(shape: &[usize]) -> Layout {
        let mut strides = Strides::with_capacity(shape.len());
        let mut stride = 1isize;
        for &size in shape {
            strides.push(stride);
            stride = stride.wrapping_mul(size.max(1) as isize);
        }
        Layout {
            shape: dims(shape),
            strides,
            offset: 0,
        }
    }

    /// A layout of any shape, strides and offset.
    ///
    /// # Errors
    ///
    /// `Shape` if the lengths differ, there are too many axes, or an element would lie before the storage or beyond the address space.
    /// [`crate::Tensor::new`] checks the length of the storage.
    pub fn strided(
        shape: &[usize],
        strides: &[isize],
        offset: usize,
    ) -> Result<Layout, TensorError> {
        if shape.len() != strides.len() {
            return Err(ShapeError::Strides {
                shape: shape.len(),
                strides: strides.len(),
            }
            .into());
        }
        checked_len(shape)?;
        let layout = Layout {
            shape: dims(shape),
            strides: SmallVec::from_slice(strides),
            offset,
        };
        let (lowest, highest) = layout.wide_span();
        if lowest < 0 || highest > isize::MAX as i128 {
            return Err(ShapeError::OutsideStorage {
                lowest,
                end: highest + 1,
                len_bytes: isize::MAX as usize,
            }
            .into());
        }
        Ok(layout)
    }

    /// Sizes of the axes.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Strides in elements.
    #[inline]
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// Position of element `(0, 0, …)`, in elements from the start of the storage.
    #[inline]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Number of axes.
    #[inline]
    pub fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// Number of elements; 1 for a 0-d layout.
    #[inline]
    pub fn len(&self) -> usize {
        // A loop, because `product()` is not inlined here, and this is called several times in every operation.
        let mut len = 1usize;
        for &size in &self.shape[..] {
            len = len.wrapping_mul(size);
        }
        len
    }

    /// The elements of a contiguous layout as one axis.
    #[inline]
    pub fn as_row(&self) -> Layout {
        debug_assert!(self.is_contiguous());
        Layout {
            shape: SmallVec::from_buf_and_len([self.len(), 0, 0, 0], 1),
            strides: SmallVec::from_buf_and_len([1, 0, 0, 0], 1),
            offset: self.offset,
        }
    }

    /// Position in the storage of the element number `position` in C order, which must exist.
    #[inline]
    pub fn offset_at(&self, position: usize) -> usize {
        debug_assert!(position < self.len());
        // The check is cheaper than divisions.
        if self.is_contiguous() {
            return self.offset + position;
        }
        let (mut rest, mut offset_in_elements) = (position, self.offset);
        for (&n, &stride) in self.shape.iter().zip(&self.strides).rev() {
            offset_in_elements =
                offset_in_elements.wrapping_add_signed((rest % n) as isize * stride);
            rest /= n;
        }
        offset_in_elements
    }

    /// Position in the storage of the element at these indices; negative ones count from the end. `None` unless there is one index per axis and each
    /// is in range.
    #[inline]
    pub fn offset_of(&self, indices: &[isize]) -> Option<usize> {
        if indices.len() != self.ndim() {
            return None;
        }
        let mut offset_in_elements = self.offset;
        for (i, &index) in indices.iter().enumerate() {
            let size = self.shape[i] as isize;
            let index = if index < 0 { index + size } else { index };
            if !(0..size).contains(&index) {
                return None;
            }
            offset_in_elements = offset_in_elements.wrapping_add_signed(index * self.strides[i]);
        }
        Some(offset_in_elements)
    }

    /// Whether there are no elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// Whether the elements are consecutive in C order. Strides of axes of length 1 do not matter; an empty array is contiguous.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        let (shape, strides) = (&self.shape[..], &self.strides[..]);
        let mut expected = 1isize;
        for axis in (0..shape.len()).rev() {
            let size = shape[axis];
            if size != 1 {
                if strides[axis] != expected {
                    return self.is_empty();
                }
                expected = expected.wrapping_mul(size as isize);
            }
        }
        true
    }

    /// Whether the elements are consecutive in Fortran order. Strides of axes of length 1 do not matter; an empty array is contiguous.
    #[inline]
    pub fn is_fortran(&self) -> bool {
        let (shape, strides) = (&self.shape[..], &self.strides[..]);
        let mut expected = 1isize;
        for axis in 0..shape.len() {
            let size = shape[axis];
            if size != 1 {
                if strides[axis] != expected {
                    return self.is_empty();
                }
                expected = expected.wrapping_mul(size as isize);
            }
        }
        true
    }

    /// Whether two different indices may refer to the same element: an axis has stride 0, or strides interleave. May be true although no element is
    /// shared; `false` is exact.
    pub fn may_self_overlap(&self) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut axes: SmallVec<[(usize, usize); 4]> = SmallVec::new();
        for (&size, &stride) in self.shape.iter().zip(&self.strides) {
            if size > 1 {
                axes.push((stride.unsigned_abs(), size));
            }
        }
        axes.sort_unstable();
        // Each stride must exceed the extent of the axes with smaller strides.
        let mut reach = 0u128;
        for (stride, size) in axes {
            if stride as u128 <= reach {
                return true;
            }
            reach += stride as u128 * (size as u128 - 1);
        }
        false
    }

    /// Positions of the lowest and the highest element; `None` if there are none.
    #[inline]
    pub fn span(&self) -> Option<(usize, usize)> {
        let (mut lowest, mut highest) = (self.offset, self.offset);
        for (&size, &stride) in self.shape.iter().zip(&self.strides) {
            if size == 0 {
                return None;
            }
            let reach = (size as isize - 1).wrapping_mul(stride);
            if stride < 0 {
                lowest = lowest.wrapping_add_signed(reach);
            } else {
                highest = highest.wrapping_add_signed(reach);
            }
        }
        Some((lowest, highest))
    }

    /// Whether two layouts over the same storage and item size may share an element. May be true although they do not; `false` is exact: their spans
    /// are disjoint, or they have a common stride and different phases, as `x[::2]` and `x[1::2]`.
    pub fn may_overlap(&self, other: &Layout) -> bool {
        let (Some(a), Some(b)) = (self.span(), other.span()) else {
            return false;
        };
        if a.1 < b.0 || b.1 < a.0 {
            return false;
        }
        let raster = self
            .axes()
            .chain(other.axes())
            .fold(0, |gcd, (_, stride)| greatest_divisor(gcd, stride));
        raster == 0 || self.offset % raster == other.offset % raster
    }

    /// The same axes with another offset.
    #[inline]
    pub fn with_offset(&self, offset: usize) -> Layout {
        Layout {
            shape: copy(&self.shape),
            strides: copy(&self.strides),
            offset,
        }
    }

    /// Positions of all elements in C order, in elements from the start of the storage. For tests, printing and slow paths: kernels walk the strides
    /// themselves.
    pub fn offsets(&self) -> impl Iterator<Item = usize> + use<'_> {
        let mut index: Dims = SmallVec::from_elem(0, self.ndim());
        let mut at = self.offset as isize;
        let mut left = self.len();
        std::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            left -= 1;
            let here = at;
            for axis in (0..self.ndim()).rev() {
                index[axis] += 1;
                at += self.strides[axis];
                if index[axis] < self.shape[axis] {
                    break;
                }
                at -= self.strides[axis] * self.shape[axis] as isize;
                index[axis] = 0;
            }
            Some(here as usize)
        })
    }

    /// Size and absolute stride of the axes longer than 1.
    fn axes(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let axes = self.shape.iter().zip(&self.strides);
        axes.filter(|(size, _)| **size > 1)
            .map(|(&size, &stride)| (size, stride.unsigned_abs()))
    }

    /// The span, also of an invalid layout. Empty layouts return their offset.
    pub(crate) fn wide_span(&self) -> (i128, i128) {
        let (mut lowest, mut highest) = (self.offset as i128, self.offset as i128);
        if !self.is_empty() {
            for (&size, &stride) in self.shape.iter().zip(&self.strides) {
                // Below 2^127, because both factors have at most 64 bits and a sign.
                let reach = (size as i128 - 1) * stride as i128;
                lowest = lowest.saturating_add(reach.min(0));
                highest = highest.saturating_add(reach.max(0));
            }
        }
        (lowest, highest)
    }

    /// A layout from parts that are known to be a view of a valid layout.
    pub(crate) fn from_parts(shape: Dims, strides: Strides, offset: usize) -> Layout {
        debug_assert_eq!(shape.len(), strides.len());
        Layout {
            shape,
            strides,
            offset,
        }
    }
}

fn greatest_divisor(mut a: usize, mut b: usize) -> usize {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A vector of `len` values, constructed in place if it fits. Pushing one by one, or copying a length that the compiler does not know, costs several
/// times as much.
#[inline]
pub(super) fn collect<T: Copy + Default>(
    len: usize,
    mut value: impl FnMut(usize) -> T,
) -> SmallVec<[T; 4]> {
    if len <= 4 {
        let mut small = [T::default(); 4];
        for (i, slot) in small.iter_mut().enumerate() {
            if i < len {
                *slot = value(i);
            }
        }
        SmallVec::from_buf_and_len(small, len)
    } else {
        (0..len).map(value).collect()
    }
}

#[inline]
pub(super) fn dims(shape: &[usize]) -> Dims {
    collect(shape.len(), |axis| shape[axis])
}

#[inline]
pub(super) fn c_strides(shape: &[usize]) -> Strides {
    let ndim = shape.len();
    let mut stride = 1isize;
    let mut strides = collect(ndim, |i| {
        // An axis of length 0 counts as 1, so that the strides of the other axes stay distinct.
        let here = stride;
        stride = stride.wrapping_mul(shape[ndim - 1 - i].max(1) as isize);
        here
    });
    strides.reverse();
    strides
}

/// Number of elements of a shape.
///
/// # Errors
///
/// `Shape` if there are more than [`MAX_NDIM`] axes, or if the product of the nonzero sizes, times 16 bytes (the largest element), exceeds `isize`.
#[inline]
pub fn checked_len(shape: &[usize]) -> Result<usize, TensorError> {
    let mut product = 16usize;
    let mut empty = false;
    for &size in shape {
        empty |= size == 0;
        product = match product.checked_mul(size.max(1)) {
            Some(product) if product <= isize::MAX as usize => product,
            _ => {
                return Err(ShapeError::TooBig {
                    shape: shape.into(),
                }
                .into());
            }
        };
    }
    if shape.len() > MAX_NDIM {
        return Err(ShapeError::TooManyAxes { ndim: shape.len() }.into());
    }
    Ok(if empty { 0 } else { product / 16 })
}

/// The axis counted from the front; negative axes count from the back.
///
/// # Errors
///
/// `Axis` if it is outside `-ndim..ndim`.
#[inline]
pub fn normalize_axis(axis: isize, ndim: usize) -> Result<usize, TensorError> {
    let from_front = if axis < 0 {
        axis.wrapping_add(ndim as isize)
    } else {
        axis
    };
    if (0..ndim as isize).contains(&from_front) {
        Ok(from_front as usize)
    } else {
        Err(AxisError::OutOfBounds { axis, ndim }.into())
    }
}

/// The axes counted from the front, in the order given.
///
/// # Errors
///
/// `Axis` if one is outside `-ndim..ndim` or repeated.
pub fn normalize_axes(axes: &[isize], ndim: usize) -> Result<Dims, TensorError> {
    let mut normal = Dims::with_capacity(axes.len());
    for &axis in axes {
        let axis = normalize_axis(axis, ndim)?;
        if normal.contains(&axis) {
            return Err(AxisError::Repeated { axis }.into());
        }
        normal.push(axis);
    }
    Ok(normal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_recognised() {
        let c = Layout::contiguous(&[2, 3, 4]);
        assert_eq!((c.strides(), c.len()), (&[12, 4, 1][..], 24));
        assert!(c.is_contiguous() && !c.is_fortran());
        let f = Layout::fortran(&[2, 3, 4]);
        assert_eq!(f.strides(), [1, 2, 6]);
        assert!(!f.is_contiguous() && f.is_fortran());
        let scalar = Layout::contiguous(&[]);
        assert_eq!(
            (scalar.len(), scalar.ndim(), scalar.span()),
            (1, 0, Some((0, 0)))
        );
        assert!(scalar.is_contiguous() && scalar.is_fortran());
        let empty = Layout::strided(&[3, 0], &[-7, 5], 0).expect("touches nothing");
        assert!(empty.is_contiguous() && empty.is_fortran() && empty.span().is_none());
        let ones = Layout::strided(&[1, 4, 1], &[99, 1, 0], 3).expect("one row");
        assert!(ones.is_contiguous() && ones.is_fortran());
        let six = Layout::contiguous(&[2; 6]);
        assert_eq!(six.strides(), [32, 16, 8, 4, 2, 1]);
        assert_eq!(six.clone(), six);
    }

    #[test]
    fn layouts_before_the_storage_are_refused() {
        assert!(Layout::strided(&[3], &[-1], 2).is_ok());
        let error = Layout::strided(&[3], &[-1], 1).expect_err("touches -1");
        assert!(
            matches!(
                error,
                TensorError::Shape(ShapeError::OutsideStorage { lowest: -1, .. })
            ),
            "{error}"
        );
        assert!(Layout::strided(&[3, 1], &[1], 0).is_err());
        assert!(Layout::strided(&[3], &[isize::MAX], 0).is_err());
    }

    #[test]
    fn sizes_are_checked() {
        assert_eq!(checked_len(&[]), Ok(1));
        assert_eq!(checked_len(&[3, 0, 5]), Ok(0));
        assert_eq!(checked_len(&[3, 4]), Ok(12));
        assert!(checked_len(&[1 << 31, 1 << 31]).is_err());
        assert!(checked_len(&[0, usize::MAX]).is_err());
        assert!(checked_len(&[1; 64]).is_ok());
        let error = checked_len(&[1; 65]).expect_err("65 axes");
        assert_eq!(
            error.to_string(),
            "an array can have at most 64 axes, found 65"
        );
    }

    #[test]
    fn axes_are_normalized() {
        assert_eq!(normalize_axis(-1, 3), Ok(2));
        assert_eq!(normalize_axis(-3, 3), Ok(0));
        for axis in [3, -4, isize::MIN, isize::MAX] {
            let error = normalize_axis(axis, 3).expect_err("outside");
            assert_eq!(error, AxisError::OutOfBounds { axis, ndim: 3 }.into());
        }
        assert_eq!(normalize_axes(&[2, -3], 3).expect("two axes")[..], [2, 0]);
        assert_eq!(
            normalize_axes(&[2, -1], 3),
            Err(AxisError::Repeated { axis: 2 }.into())
        );
    }

    #[test]
    fn interleaved_views_do_not_overlap() {
        let x = |offset, stride| Layout::strided(&[5], &[stride], offset).expect("a row");
        assert!(!x(0, 2).may_overlap(&x(1, 2)));
        assert!(x(0, 2).may_overlap(&x(2, 2)));
        assert!(!x(0, 1).may_overlap(&x(5, 1)));
        assert!(x(0, 1).may_overlap(&x(4, 1)));
        assert!(!x(0, 4).may_overlap(&x(18, -4)));
        assert!(x(0, 0).may_overlap(&x(0, 0)));
        assert!(!x(0, 0).may_overlap(&Layout::strided(&[0], &[1], 0).expect("empty")));
    }

    #[test]
    fn self_overlap_is_seen() {
        assert!(!Layout::contiguous(&[3, 4]).may_self_overlap());
        assert!(
            !Layout::strided(&[3, 4], &[-4, 1], 8)
                .expect("flipped")
                .may_self_overlap()
        );
        assert!(
            Layout::strided(&[3, 4], &[0, 1], 0)
                .expect("broadcast")
                .may_self_overlap()
        );
        assert!(
            Layout::strided(&[3, 4], &[1, 1], 0)
                .expect("windows")
                .may_self_overlap()
        );
        assert!(
            !Layout::strided(&[1, 4], &[0, 1], 0)
                .expect("length 1")
                .may_self_overlap()
        );
        assert!(
            !Layout::strided(&[0, 4], &[0, 0], 0)
                .expect("empty")
                .may_self_overlap()
        );
    }
}
