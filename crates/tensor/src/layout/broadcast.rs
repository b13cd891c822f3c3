//! Broadcasting, by NumPy's rules.

use super::strided::dims;
use super::{Dims, Layout, Strides, checked_len};
use crate::error::{ShapeError, TensorError};

/// The common shape after broadcasting; `()` for no shapes.
///
/// # Errors
///
/// `Shape` if two sizes at one axis, counted from the back, differ and neither is 1, or if the result is too big.
pub fn broadcast_shapes(shapes: &[&[usize]]) -> Result<Dims, TensorError> {
    let ndim = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    let mut result = Dims::from_elem(1, ndim);
    for shape in shapes {
        let first = ndim - shape.len();
        for (axis, &size) in shape.iter().enumerate() {
            let slot = &mut result[first + axis];
            if *slot == 1 {
                *slot = size;
            } else if size != 1 && size != *slot {
                return Err(broadcast_error(shapes, ndim));
            }
        }
    }
    if shapes.len() > 1 {
        checked_len(&result)?;
    }
    Ok(result)
}

/// The error for shapes that do not broadcast: the first axis from the back where sizes differ.
#[cold]
fn broadcast_error(shapes: &[&[usize]], ndim: usize) -> TensorError {
    let all = || shapes.iter().map(|shape| Box::from(*shape)).collect();
    for back in 1..=ndim {
        let mut sizes = shapes
            .iter()
            .filter(|s| s.len() >= back)
            .map(|s| s[s.len() - back])
            .filter(|&n| n != 1);
        if let Some(size) = sizes.next()
            && let Some(other) = sizes.find(|&other| other != size)
        {
            return ShapeError::Broadcast {
                shapes: all(),
                axis: ndim - back,
                sizes: (size, other),
            }
            .into();
        }
    }
    ShapeError::Broadcast {
        shapes: all(),
        axis: 0,
        sizes: (0, 0),
    }
    .into()
}

impl Layout {
    /// A view of shape `shape`. Axes of length 1 and missing leading axes are repeated by stride 0.
    ///
    /// # Errors
    ///
    /// `Shape` if an axis of another length would have to be repeated, or if `shape` has fewer axes or is too big.
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<Layout, TensorError> {
        let error = || ShapeError::BroadcastTo {
            from: (&*self.shape).into(),
            to: shape.into(),
        };
        let Some(first) = shape.len().checked_sub(self.ndim()) else {
            return Err(error().into());
        };
        checked_len(shape)?;
        let mut strides = Strides::from_elem(0, shape.len());
        for axis in 0..self.ndim() {
            if self.shape[axis] == shape[first + axis] {
                strides[first + axis] = self.strides[axis];
            } else if self.shape[axis] != 1 {
                return Err(error().into());
            }
        }
        Ok(Layout {
            shape: dims(shape),
            strides,
            offset: self.offset,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_stretch_from_the_back() {
        let of = |shapes: &[&[usize]]| broadcast_shapes(shapes).map(|dims| dims.to_vec());
        assert_eq!(of(&[]), Ok(vec![]));
        assert_eq!(of(&[&[2, 1, 4], &[3, 1], &[]]), Ok(vec![2, 3, 4]));
        assert_eq!(of(&[&[0], &[1]]), Ok(vec![0]));
        assert_eq!(of(&[&[1], &[0]]), Ok(vec![0]));
        assert!(of(&[&[0], &[2]]).is_err());
        let error = of(&[&[2, 3], &[1], &[4, 2]]).expect_err("3 is not 2");
        assert_eq!(
            error.to_string(),
            "shapes (2, 3) (1,) (4, 2) cannot be broadcast together: axis 1 of the result has sizes 3 and 2"
        );
        assert!(of(&[&[1 << 40, 1], &[1 << 40]]).is_err());
    }

    #[test]
    fn views_repeat_by_stride_zero() {
        let x = Layout::contiguous(&[3, 1]);
        let y = x.broadcast_to(&[2, 3, 4]).expect("stretches");
        assert_eq!((y.shape(), y.strides()), (&[2, 3, 4][..], &[0, 1, 0][..]));
        for shape in [&[3][..], &[4, 4], &[3, 1, 1, 2]] {
            let error = x.broadcast_to(shape).expect_err("does not stretch");
            assert!(matches!(
                error,
                TensorError::Shape(ShapeError::BroadcastTo { .. })
            ));
        }
        assert!(
            Layout::contiguous(&[])
                .broadcast_to(&[0, 5])
                .expect("a scalar")
                .is_empty()
        );
    }
}
