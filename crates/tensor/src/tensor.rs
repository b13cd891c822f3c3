//! Tensors: a storage, a layout and a data type.

mod source;

use std::sync::Arc;

use crate::error::{DTypeError, ShapeError, TensorError, ViewObstacle};
use crate::{DType, Device, Layout, Storage, Strides, checked_len};

pub use source::Source;

/// Elements of one type in a storage. Clones share the elements.
#[derive(Clone, Debug)]
pub struct Tensor {
    storage: Arc<Storage>,
    layout: Layout,
    dtype: DType,
    /// Whether it was created as a view of another tensor.
    is_view: bool,
    /// Whether it must not be written, although its storage may be. Views inherit this.
    is_locked: bool,
}

impl Tensor {
    /// A view of a storage.
    ///
    /// # Errors
    ///
    /// `Shape` if an element would lie outside the storage.
    pub fn new(storage: Arc<Storage>, layout: Layout, dtype: DType) -> Result<Tensor, TensorError> {
        check_inside(&storage, &layout, dtype)?;
        Ok(Tensor {
            storage,
            layout,
            dtype,
            is_view: false,
            is_locked: false,
        })
    }

    /// A tensor from parts that are known to be consistent.
    pub(crate) fn from_parts(storage: Arc<Storage>, layout: Layout, dtype: DType) -> Tensor {
        debug_assert_eq!(check_inside(&storage, &layout, dtype), Ok(()));
        Tensor {
            storage,
            layout,
            dtype,
            is_view: false,
            is_locked: false,
        }
    }

    /// A new contiguous tensor, uninitialised.
    ///
    /// # Errors
    ///
    /// `Shape` for impossible shapes; `Memory` and `Device` as [`Storage::allocate`].
    #[inline]
    pub fn empty(shape: &[usize], dtype: DType, device: Device) -> Result<Tensor, TensorError> {
        let len_bytes = checked_len(shape)? * dtype.size();
        let storage = Storage::allocate(len_bytes, device)?;
        Ok(Tensor {
            storage,
            layout: Layout::contiguous(shape),
            dtype,
            is_view: false,
            is_locked: false,
        })
    }

    /// A new tensor with a dense layout (C or Fortran order, or any order without gaps or overlap). The elements are undefined. The offset of the
    /// layout is ignored, and nothing is checked.
    ///
    /// # Errors
    ///
    /// `Memory`; `Device` if the device does not exist.
    #[inline]
    pub fn empty_dense(
        layout: &Layout,
        dtype: DType,
        device: Device,
    ) -> Result<Tensor, TensorError> {
        let storage = Storage::allocate(layout.len() * dtype.size(), device)?;
        let layout = if layout.offset() == 0 {
            layout.clone()
        } else {
            layout.with_offset(0)
        };
        debug_assert_eq!(check_inside(&storage, &layout, dtype), Ok(()));
        Ok(Tensor {
            storage,
            layout,
            dtype,
            is_view: false,
            is_locked: false,
        })
    }

    /// As [`Tensor::empty_dense`], with exactly this layout, whose offset is 0.
    ///
    /// # Errors
    ///
    /// As [`Tensor::empty_dense`].
    #[inline]
    pub fn empty_as(layout: Layout, dtype: DType, device: Device) -> Result<Tensor, TensorError> {
        let storage = Storage::allocate(layout.len() * dtype.size(), device)?;
        Ok(Tensor::from_parts(storage, layout, dtype))
    }

    /// The 0-d tensor of a storage of one element.
    #[inline]
    pub fn of_element(storage: Arc<Storage>, dtype: DType) -> Tensor {
        debug_assert_eq!(storage.len_bytes(), dtype.size());
        Tensor {
            storage,
            layout: Layout::of_element(),
            dtype,
            is_view: false,
            is_locked: false,
        }
    }

    /// A new contiguous tensor of zeros.
    ///
    /// # Errors
    ///
    /// As [`Tensor::empty`].
    pub fn zeros(shape: &[usize], dtype: DType, device: Device) -> Result<Tensor, TensorError> {
        let len_bytes = checked_len(shape)? * dtype.size();
        let storage = Storage::zeroed(len_bytes, device)?;
        Ok(Tensor {
            storage,
            layout: Layout::contiguous(shape),
            dtype,
            is_view: false,
            is_locked: false,
        })
    }

    /// The storage.
    #[inline]
    pub fn storage(&self) -> &Arc<Storage> {
        &self.storage
    }

    /// The layout of the elements in the storage.
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Their type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Whether it was created as a view of another tensor. Then its elements may be only a part of its storage.
    #[inline]
    pub fn is_view(&self) -> bool {
        self.is_view
    }

    /// Marks the tensor as the owner of its storage, not a view. For results that were constructed by a view with this layout.
    #[must_use]
    pub fn as_owner(mut self) -> Tensor {
        self.is_view = false;
        self
    }

    /// Whether writing through the tensor is forbidden: it, or a tensor it is a view of, is locked, or its storage is read-only.
    #[inline]
    pub fn is_read_only(&self) -> bool {
        self.is_locked || self.storage.is_read_only()
    }

    /// The same elements, with the result and its views read-only if `is_locked`; otherwise writable, if the storage is.
    #[must_use]
    pub fn locked(self, is_locked: bool) -> Tensor {
        Tensor { is_locked, ..self }
    }

    /// Sizes of the axes.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        self.layout.shape()
    }

    /// Number of axes.
    #[inline]
    pub fn ndim(&self) -> usize {
        self.layout.ndim()
    }

    /// Device of the storage.
    #[inline]
    pub fn device(&self) -> Device {
        self.storage.device()
    }

    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.layout.len()
    }

    /// Whether there are no elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.layout.is_empty()
    }

    /// Size of all elements in bytes; repeated elements of a broadcast view count each time.
    #[inline]
    pub fn len_bytes(&self) -> usize {
        self.len() * self.dtype.size()
    }

    /// Address of element `(0, 0, …)`; must not be accessed if there are no elements.
    #[inline]
    pub fn data_ptr(&self) -> *mut u8 {
        // Wrapping, because the offset of an empty view may be outside the storage.
        self.storage
            .ptr()
            .wrapping_add(self.layout.offset().wrapping_mul(self.dtype.size()))
    }

    /// Strides in bytes.
    #[inline]
    pub fn byte_strides(&self) -> Strides {
        let size = self.dtype.size() as isize;
        self.layout
            .strides()
            .iter()
            .map(|stride| stride.wrapping_mul(size))
            .collect()
    }

    /// The same storage with another layout, which must lie within the storage. That is checked in debug builds only; [`Tensor::new`] always checks.
    #[inline]
    pub fn with_layout(&self, layout: Layout) -> Tensor {
        debug_assert_eq!(check_inside(&self.storage, &layout, self.dtype), Ok(()));
        Tensor {
            storage: self.storage.clone(),
            layout,
            dtype: self.dtype,
            is_view: true,
            is_locked: self.is_locked,
        }
    }

    /// The source of views of this tensor as elements of `dtype`. The views are locked if the tensor is, or if `locks`.
    #[inline]
    pub fn source(&self, dtype: DType, locks: bool) -> Source {
        Source {
            storage: self.storage.clone(),
            dtype,
            is_view: true,
            is_locked: self.is_locked || locks,
        }
    }

    /// The source of views of this tensor, without cloning the storage.
    #[inline]
    pub fn into_source(self) -> Source {
        Source {
            storage: self.storage,
            dtype: self.dtype,
            is_view: self.is_view,
            is_locked: self.is_locked,
        }
    }

    /// Views the bytes as another type, by NumPy's rule: if the item size changes, the last axis must be contiguous, and its length in bytes stays
    /// the same.
    ///
    /// # Errors
    ///
    /// `DType` if the last axis, its length, a stride or the offset does not allow it.
    pub fn with_dtype_view(&self, dtype: DType) -> Result<Tensor, TensorError> {
        let (old, new) = (self.dtype.size(), dtype.size());
        let mut layout = self.layout.clone();
        if old != new {
            layout = self
                .resized(old, new)
                .map_err(|why| self.view_error(dtype, why))?;
        }
        Ok(Tensor {
            storage: self.storage.clone(),
            layout,
            dtype,
            is_view: true,
            is_locked: self.is_locked,
        })
    }

    fn resized(&self, old: usize, new: usize) -> Result<Layout, ViewObstacle> {
        let last = self.ndim().checked_sub(1).ok_or(ViewObstacle::NoAxis)?;
        let mut shape = crate::Dims::from_slice(self.shape());
        let mut strides = Strides::from_slice(self.layout.strides());
        if strides[last] != 1 && shape[last] != 1 && !self.is_empty() {
            return Err(ViewObstacle::LastAxis);
        }
        let row_bytes = shape[last] * old;
        if !row_bytes.is_multiple_of(new) {
            return Err(ViewObstacle::Length);
        }
        shape[last] = row_bytes / new;
        strides[last] = 1;
        let rescale = |bytes: isize| (bytes % new as isize == 0).then(|| bytes / new as isize);
        for (stride, size) in strides.iter_mut().zip(&shape).take(last) {
            // Strides of axes of length 1, and of empty arrays, are never used.
            *stride = match rescale(stride.wrapping_mul(old as isize)) {
                Some(stride) => stride,
                None if *size <= 1 || self.is_empty() => 0,
                None => return Err(ViewObstacle::Stride),
            };
        }
        let offset = match rescale(self.layout.offset().wrapping_mul(old) as isize) {
            Some(offset) => offset as usize,
            None if self.is_empty() => 0,
            None => return Err(ViewObstacle::Stride),
        };
        Ok(Layout::from_parts(shape, strides, offset))
    }

    /// A view of the real parts. A real tensor is returned as it is.
    pub fn real(&self) -> Tensor {
        if self.dtype.is_complex() {
            self.component(0)
        } else {
            self.clone()
        }
    }

    /// The imaginary parts, as a view.
    ///
    /// # Errors
    ///
    /// `DType` when the tensor is not complex.
    pub fn imag(&self) -> Result<Tensor, TensorError> {
        if self.dtype.is_complex() {
            Ok(self.component(1))
        } else {
            Err(self.view_error(self.dtype.real(), ViewObstacle::NotComplex))
        }
    }

    /// A view of one part of complex elements: an element is two adjacent real numbers.
    fn component(&self, part: usize) -> Tensor {
        Tensor {
            storage: self.storage.clone(),
            layout: self.layout.component(part),
            dtype: self.dtype.real(),
            is_view: true,
            is_locked: self.is_locked,
        }
    }

    /// Whether the two tensors may share a byte; `false` is exact. Also detects storages of other owners over the same memory.
    pub fn may_overlap(&self, other: &Tensor) -> bool {
        if Arc::ptr_eq(&self.storage, &other.storage) && self.dtype.size() == other.dtype.size() {
            return self.layout.may_overlap(&other.layout);
        }
        let (Some(a), Some(b)) = (self.addresses(), other.addresses()) else {
            return false;
        };
        // All devices in main memory share one address space.
        let same_space = self.device() == other.device()
            || (self.device().is_host() && other.device().is_host());
        same_space && a.0 < b.1 && b.0 < a.1
    }

    /// Lowest address and one past the highest.
    fn addresses(&self) -> Option<(usize, usize)> {
        let (lowest, highest) = self.layout.span()?;
        let (start, size) = (self.storage.ptr() as usize, self.dtype.size());
        Some((start + lowest * size, start + (highest + 1) * size))
    }

    #[cold]
    fn view_error(&self, to: DType, why: ViewObstacle) -> TensorError {
        DTypeError::View {
            from: self.dtype,
            to,
            shape: self.shape().into(),
            why,
        }
        .into()
    }
}

fn check_inside(storage: &Storage, layout: &Layout, dtype: DType) -> Result<(), TensorError> {
    if layout.is_empty() {
        return Ok(());
    }
    let (lowest, highest) = layout.wide_span();
    let size = dtype.size() as i128;
    let (lowest, end) = (
        lowest.saturating_mul(size),
        highest.saturating_add(1).saturating_mul(size),
    );
    if lowest < 0 || end > storage.len_bytes() as i128 {
        return Err(ShapeError::OutsideStorage {
            lowest,
            end,
            len_bytes: storage.len_bytes(),
        }
        .into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(shape: &[usize], dtype: DType) -> Tensor {
        Tensor::zeros(shape, dtype, Device::CPU).expect("small")
    }

    #[test]
    fn layouts_must_lie_in_the_storage() {
        let storage = Storage::allocate(24, Device::CPU).expect("small");
        let of =
            |shape: &[usize], dtype| Tensor::new(storage.clone(), Layout::contiguous(shape), dtype);
        assert!(of(&[2, 3], DType::F32).is_ok());
        assert!(of(&[0, 1 << 40], DType::F32).is_ok());
        let error = of(&[2, 3], DType::F64).expect_err("48 bytes");
        assert_eq!(
            error,
            ShapeError::OutsideStorage {
                lowest: 0,
                end: 48,
                len_bytes: 24
            }
            .into()
        );
    }

    #[test]
    fn views_as_other_types() {
        let x = tensor(&[4, 6], DType::F32);
        let shape = |tensor: Result<Tensor, TensorError>| tensor.map(|t| t.shape().to_vec());
        assert_eq!(shape(x.with_dtype_view(DType::I32)), Ok(vec![4, 6]));
        assert_eq!(shape(x.with_dtype_view(DType::U8)), Ok(vec![4, 24]));
        let wide = x.with_dtype_view(DType::F64).expect("even rows");
        assert_eq!(
            (wide.shape(), wide.layout().strides()),
            (&[4, 3][..], &[3, 1][..])
        );
        let why = |tensor: &Tensor, dtype| match tensor.with_dtype_view(dtype) {
            Err(TensorError::DType(DTypeError::View { why, .. })) => Some(why),
            _ => None,
        };
        assert_eq!(why(&x, DType::C128), Some(ViewObstacle::Length));
        let transposed = x.with_layout(x.layout().transpose(None).expect("all axes"));
        assert_eq!(why(&transposed, DType::F64), Some(ViewObstacle::LastAxis));
        assert_eq!(why(&transposed, DType::I32), None);
        let odd = x.with_layout(
            x.layout()
                .slice(1, Some(1), Some(5), None)
                .expect("columns"),
        );
        assert_eq!(why(&odd, DType::F64), Some(ViewObstacle::Stride));
        assert_eq!(
            why(&tensor(&[], DType::F32), DType::U8),
            Some(ViewObstacle::NoAxis)
        );
    }

    #[test]
    fn complex_parts_are_views() {
        let z = tensor(&[2, 3], DType::C64);
        let z = z.with_layout(z.layout().slice(1, Some(1), None, None).expect("columns"));
        let (re, im) = (z.real(), z.imag().expect("complex"));
        assert!(re.layout().offsets().eq([2, 4, 8, 10]) && im.layout().offsets().eq([3, 5, 9, 11]));
        assert_eq!(
            (re.dtype(), im.data_ptr()),
            (DType::F32, z.data_ptr().wrapping_add(4))
        );
        assert!(!re.may_overlap(&im) && re.may_overlap(&z) && im.may_overlap(&z));
        assert!(re.imag().is_err() && Arc::ptr_eq(re.real().storage(), z.storage()));
    }
}
