//! Reshaping without a copy, if strides allow it.

use smallvec::SmallVec;

use super::strided::{c_strides, collect, dims};
use super::{Dims, Layout, Strides, checked_len};
use crate::error::{ShapeError, TensorError};

/// The sizes of a shape for `len` elements; one negative entry is inferred.
///
/// # Errors
///
/// `Shape` if the numbers of elements differ, the unknown size cannot be inferred, or there are two unknown sizes.
pub fn reshape_dims(len: usize, shape: &[isize]) -> Result<Dims, TensorError> {
    let mismatch = || {
        TensorError::from(ShapeError::Reshape {
            len,
            shape: shape.into(),
        })
    };
    let mut unknown = None;
    let mut known = Some(1usize);
    let mut dims = Dims::with_capacity(shape.len());
    for (axis, &size) in shape.iter().enumerate() {
        if size >= 0 {
            // The product may overflow before a zero makes it 0.
            known = if size == 0 {
                Some(0)
            } else {
                known.and_then(|known| known.checked_mul(size as usize))
            };
        } else if unknown.replace(axis).is_some() {
            return Err(ShapeError::Unknowns {
                shape: shape.into(),
            }
            .into());
        }
        dims.push(size.max(0) as usize);
    }
    if shape.contains(&0) {
        known = Some(0);
    }
    let known = known.ok_or_else(mismatch)?;
    match unknown {
        Some(axis) if known != 0 && len.is_multiple_of(known) => dims[axis] = len / known,
        None if known == len => {}
        _ => return Err(mismatch()),
    }
    checked_len(&dims)?;
    Ok(dims)
}

impl Layout {
    /// A view with another shape and the same elements in C order; `None` if the elements must be copied.
    ///
    /// # Errors
    ///
    /// As [`reshape_dims`].
    pub fn reshape(&self, shape: &[isize]) -> Result<Option<Layout>, TensorError> {
        if let &[size] = shape
            && (size == -1 || size as usize == self.len())
            && self.is_contiguous()
        {
            return Ok(Some(self.as_row()));
        }
        let dims = reshape_dims(self.len(), shape)?;
        Ok(self.reshape_to(&dims))
    }

    /// As [`Layout::reshape`], with the elements in Fortran order on both sides.
    ///
    /// # Errors
    ///
    /// As [`reshape_dims`].
    pub fn reshape_fortran(&self, shape: &[isize]) -> Result<Option<Layout>, TensorError> {
        let dims: Dims = reshape_dims(self.len(), shape)?.into_iter().rev().collect();
        // Fortran order is C order of the reversed axes.
        Ok(self
            .reversed()
            .reshape_to(&dims)
            .map(|layout| layout.reversed()))
    }

    /// As [`Layout::reshape`], for sizes that are known to have the same number of elements.
    fn reshape_to(&self, sizes: &[usize]) -> Option<Layout> {
        debug_assert_eq!(self.len(), sizes.iter().product::<usize>());
        let strides = if self.is_contiguous() {
            c_strides(sizes)
        } else {
            self.regroup(sizes)?
        };
        Some(Layout {
            shape: dims(sizes),
            strides,
            offset: self.offset,
        })
    }

    /// Strides for `dims`, if each group of old axes that a group of new ones replaces is contiguous.
    fn regroup(&self, dims: &[usize]) -> Option<Strides> {
        // Axes of length 1 do not matter. The layout has elements, because an empty one is contiguous.
        let old: SmallVec<[(usize, isize); 4]> = self
            .shape
            .iter()
            .copied()
            .zip(self.strides.iter().copied())
            .filter(|axis| axis.0 != 1)
            .collect();
        let mut strides = Strides::from_elem(0, dims.len());
        let (mut o, mut n) = (0, 0);
        while o < old.len() && n < dims.len() {
            // Extends both groups until they have the same number of elements.
            let (first, start) = (o, n);
            let (mut old_len, mut new_len) = (old[o].0, dims[n]);
            while old_len != new_len {
                if old_len < new_len {
                    o += 1;
                    // The stride of the outer axis must be the extent of the inner one.
                    if old[o - 1].1 != old[o].1.wrapping_mul(old[o].0 as isize) {
                        return None;
                    }
                    old_len *= old[o].0;
                } else {
                    n += 1;
                    new_len *= dims[n];
                }
            }
            debug_assert!(first <= o);
            let mut stride = old[o].1;
            for axis in (start..=n).rev() {
                strides[axis] = stride;
                stride = stride.wrapping_mul(dims[axis] as isize);
            }
            o += 1;
            n += 1;
        }
        // The remaining new axes have length 1; they get the stride of the axis before.
        for axis in n..dims.len() {
            strides[axis] = if axis > 0 { strides[axis - 1] } else { 1 };
        }
        Some(strides)
    }

    /// All axes in reverse order.
    pub(super) fn reversed(&self) -> Layout {
        let last = self.ndim().wrapping_sub(1);
        let shape = collect(self.ndim(), |axis| self.shape[last - axis]);
        let strides = collect(self.ndim(), |axis| self.strides[last - axis]);
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

    #[test]
    fn one_size_may_be_unknown() {
        let of = |len, shape: &[isize]| reshape_dims(len, shape).map(|dims| dims.to_vec());
        assert_eq!(of(6, &[-1, 2]), Ok(vec![3, 2]));
        assert_eq!(of(6, &[3, -2]), Ok(vec![3, 2]));
        assert_eq!(of(1, &[]), Ok(vec![]));
        assert_eq!(of(0, &[-1, 3]), Ok(vec![0, 3]));
        assert_eq!(of(0, &[0, 5]), Ok(vec![0, 5]));
        for (len, shape) in [
            (6, &[4, -1][..]),
            (6, &[0, -1]),
            (0, &[0, -1]),
            (6, &[5]),
            (6, &[]),
            (6, &[isize::MAX, 3]),
        ] {
            let error = of(len, shape).expect_err("does not fit");
            assert_eq!(
                error,
                ShapeError::Reshape {
                    len,
                    shape: shape.into()
                }
                .into()
            );
        }
        assert!(matches!(
            of(6, &[-1, -1]),
            Err(TensorError::Shape(ShapeError::Unknowns { .. }))
        ));
        assert!(matches!(
            of(1, &[1; 65]),
            Err(TensorError::Shape(ShapeError::TooManyAxes { ndim: 65 }))
        ));
    }

    #[test]
    fn strided_views_reshape_where_runs_allow() {
        let base = Layout::contiguous(&[4, 6]);
        let rows = base.slice(0, None, None, Some(2)).expect("rows");
        let cut = rows
            .reshape(&[2, 2, 3])
            .expect("12 elements")
            .expect("splits an axis");
        assert_eq!(cut.strides(), [12, 3, 1]);
        assert_eq!(rows.reshape(&[12]), Ok(None));
        let transposed = base.transpose(None).expect("all axes");
        assert_eq!(transposed.reshape(&[24]), Ok(None));
        assert!(
            transposed
                .reshape_fortran(&[24])
                .expect("24 elements")
                .is_some()
        );
        let ones = transposed
            .reshape(&[1, 6, 1, 4, 1])
            .expect("24 elements")
            .expect("adds axes");
        assert!(ones.offsets().eq(transposed.offsets()));
    }
}
